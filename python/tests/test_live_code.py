"""loader(optimize=...): user code moves to worker processes while a run is on, if that is faster there.

Where a test lowers the thresholds, the first batches begin the contest; where it decides the contest, a round is two
batches.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import random
import re
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
import userfns
from headrace import _headrace, live_code, live_order
from headrace.live_code import Contest, Sums
from headrace.loader import Loader
from headrace.loader_run import Run
from headrace.profiling import saved
from test_live_order import batches, hash_of, plain, run_of

pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core: nothing moves")


@pytest.fixture
def eager(cache: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries worker processes at once, whatever the loop waits."""
    for name, value in {"_LOOK_S": 0.0, "_WAITS": -1.0, "_CODE": 0.0, "_STEP": 0.0, "_BUSY": 1e9}.items():
        monkeypatch.setattr(live_code, name, value)
    monkeypatch.setattr(live_code, "_WINDOW_S", (0.0, 0.0))
    monkeypatch.setattr(live_code, "_BATCHES", 1)
    monkeypatch.setattr(live_code, "_WARM", 1)


def decided(monkeypatch: pytest.MonkeyPatch, won: bool, rounds: int = 3) -> None:
    """The contest ends so after some rounds."""

    def verdict(contest: Contest) -> bool | None:
        return won if len(contest.gains) >= rounds else None

    monkeypatch.setattr(Contest, "verdict", property(verdict))


def ready(loader: Loader) -> None:
    """Waits until worker processes can be tried, if they are being started."""
    thread = loader._order.code._aside.thread if loader._order is not None and loader._order.code is not None else None
    if thread is not None:
        thread.join()


def in_processes(run: Run) -> bool:
    return any(node["worker_seconds"] > 0 for node in run._iter.node_stats()) if run._iter is not None else False


def followed(loader: Loader, run: Run, states: list[Any] | None = None) -> tuple[list[str], list[bool]]:
    """Hashes of all batches, and whether each was made in worker processes."""
    where: list[bool] = []

    def look(at: int) -> None:
        ready(loader)
        where.append(in_processes(run))
        if states is not None:
            states.append(loader.state_dict())

    return batches(run, look), where


# ---- decisions ----


def rounds_of(first: Callable[[], float], other: Callable[[], float]) -> tuple[bool | None, int]:
    contest = Contest()
    while contest.verdict is None:
        contest.add(other() if contest.is_other else first())
    return contest.verdict, len(contest.gains)


def test_a_contest_ends_as_soon_as_it_is_clear(rng):
    assert rounds_of(lambda: 100, lambda: 190) == (True, 2)
    assert rounds_of(lambda: 100, lambda: 60) == (False, 2)
    assert rounds_of(lambda: 100, lambda: 110) == (True, 3)
    assert rounds_of(lambda: 100, lambda: 103) == (False, 3)
    for _ in range(200):
        check_noisy_contest(rng, rng.uniform(0.3, 3), rng.uniform(0, 0.4))


def check_noisy_contest(rng: random.Random, gain: float, noise: float) -> None:
    won, rounds = rounds_of(lambda: rng.uniform(1 - noise, 1), lambda: gain * rng.uniform(1 - noise, 1))
    assert 2 <= rounds <= 7
    if gain * (1 - noise) >= 1.05:
        assert won
    if gain <= 1.05 * (1 - noise):
        assert not won


def test_windows_of_a_contest_alternate_with_one_change_in_a_round():
    contest, where = Contest(), []
    for _ in range(12):
        where.append(contest.is_other)
        contest.add(1.0)
    assert where == [False, True, True, False] * 3
    contest = Contest()
    for at in range(8):
        contest.add(2.0 if contest.is_other else 1.0 + at)
    assert contest.gains == [2 / 1, 2 / 4, 2 / 5, 2 / 8]


def spent(seconds: float, waits: float, **nodes: float) -> Sums:
    return Sums(seconds, waits, nodes, dict.fromkeys(nodes, 100))


def test_worker_processes_are_tried_where_threads_leave_cores_idle_and_the_loop_waits():
    assert spent(10, 9, source=0.1, f=9.5).steps_to_move(["f"], 2) == ["f"]
    assert spent(10, 0.5, source=0.1, f=9.5).steps_to_move(["f"], 2) == []  # the loop does not wait
    assert spent(10, 9, source=0.1, f=19).steps_to_move(["f"], 2) == []  # both cores compute: it releases the lock
    assert spent(10, 9, decode=9.5, f=0.5).steps_to_move(["f"], 2) == []  # its time does not matter
    assert spent(10, 9, f=9, g=0.05, h=0.5).steps_to_move(["f", "g", "h"], 2) == ["f", "h"]
    assert spent(0, 0).steps_to_move(["f"], 2) == []


def test_costs_follow_from_a_contest():
    made = live_code.costs_of(["f", "g"], spent(10, 10, f=8, g=2.5), spent(5, 5, f=0.9, g=0.1))
    assert made["f"].serial == made["g"].serial == pytest.approx(10 / 10.5)
    assert made["f"].process_ns == pytest.approx(9e6) and made["g"].process_ns == pytest.approx(1e6)
    assert live_code.costs_of(["f"], spent(10, 10, f=8), spent(5, 5, f=1))["f"].serial == 1


# ---- runs ----


def code_pipe(records: int = 600) -> hr.Pipeline:
    return hr.range(records).shuffle(seed=3).map(userfns.square, name="f", fields="value").batch(5)


@pytest.mark.usefixtures("eager", "nothing_left", "children")
@pytest.mark.parametrize("won", [True, False])
def test_a_run_changes_its_variant_and_nothing_else(won, monkeypatch):
    decided(monkeypatch, won)
    pipe = code_pipe()
    expected, states = plain(pipe, seed=1, epochs=2)
    with pipe.loader(seed=1, epochs=2, optimize=True) as loader:
        run, made = run_of(loader), []
        got, where = followed(loader, run, made)
        assert got == expected and made == states
        assert not where[0] and where[-1] == won and {*where} == {True, False}
        assert sum(a != b for a, b in itertools.pairwise(where)) == (3 if won else 4)
        assert loader.stats()["records"] == 1200 and loader.stats()["errors"] == 0
        assert all(node["records"] >= 1200 for node in loader.node_stats())  # some were in flight at a change
        report = loader.optimization
        assert report is not None and [(s.node, s.moved) for s in report.steps] == [("f", won)]
        assert "measured while a run was on" in str(report)
        assert (loader._host is not None) == won
        assert batches(run_of(loader)) == plain(pipe, seed=1, epochs=4)[0][len(expected) :]


class Squares:
    """A data set, as PyTorch has them."""

    def __len__(self) -> int:
        return 400

    def __getitem__(self, at: int) -> tuple[int, float]:
        return at * at, at / 2


@pytest.mark.usefixtures("eager", "nothing_left", "children")
def test_a_data_set_moves(monkeypatch):
    decided(monkeypatch, True)
    pipe = hr.from_dataset(Squares()).shuffle().batch(5)
    expected, states = plain(pipe, seed=1, epochs=2)
    with pipe.loader(seed=1, epochs=2, optimize=True) as loader:
        run, made = run_of(loader), []
        got, where = followed(loader, run, made)
        assert got == expected and made == states and where[-1] and not where[0]


@pytest.mark.usefixtures("eager", "nothing_left")
def test_the_next_loader_knows_what_won(monkeypatch):
    decided(monkeypatch, True)
    pipe = code_pipe()
    monkeypatch.setattr(live_code, "costs_of", lambda moved, *of: {n: live_code.CodeCost(1.0, 1000.0) for n in moved})
    with pipe.loader(seed=1, optimize=True) as loader:
        expected, _ = followed(loader, run_of(loader))
    found = saved(pipe._built.graph, inline=True)
    assert found is not None and found["f"].serial == 1 and found["f"].process_ns == 1000
    with pipe.loader(seed=1, optimize=True) as loader:
        assert followed(loader, run_of(loader))[0] == expected
        assert loader._order is not None and loader._order.code is None  # by its costs, before the first batch


@pytest.mark.usefixtures("eager", "nothing_left")
def test_random_pipelines_keep_their_bytes_and_states(rng, monkeypatch):
    steps: list[Callable[[hr.Pipeline], hr.Pipeline]] = [
        lambda p: p.map(userfns.double),
        lambda p: p.filter(userfns.is_even),
        lambda p: p.flat_map(userfns.twice, outputs={"value": "int64"}),
        lambda p: p.shuffle(seed=5, window=16),
        lambda p: p.op("debug.spin", us=10),
        lambda p: p.where("value % 3 != 1"),
        lambda p: p.map(userfns.identity),
    ]
    changed = 0
    for _ in range(8):
        decided(monkeypatch, rng.random() < 0.5, rng.randrange(1, 6))
        pipe = hr.range(rng.randrange(200, 500))
        for step in rng.choices(steps, k=rng.randrange(1, 5)):
            pipe = step(pipe)
        pipe = pipe.batch(rng.randrange(1, 9))
        options: dict[str, Any] = {"seed": rng.randrange(1000), "epochs": 2, "threads": rng.randrange(1, 3)}
        expected, states = plain(pipe, **options)
        with pipe.loader(**options, optimize=True) as loader:
            run, made = run_of(loader), []
            got, where = followed(loader, run, made)
            assert got == expected, repr(pipe)
            assert made == states, repr(pipe)
            changed += len({*where}) > 1
            at = rng.randrange(len(states)) if states else None
        if at is not None:
            other = pipe.loader(**options)
            other.load_state_dict(made[at])
            assert batches(run_of(other)) == expected[at + 1 :]
    print(changed, "of 8 changed")


@pytest.mark.usefixtures("eager", "nothing_left")
def test_order_and_variant_change_in_one_run(monkeypatch):
    for name, value in {"_RUNS": 1, "_PART": 1, "_BLOCK": 0}.items():
        monkeypatch.setattr(live_order, name, value)
    monkeypatch.setattr(live_order.LiveOrder, "is_worth", lambda *unused: True)
    decided(monkeypatch, True)
    pipe = hr.range(4000).op("debug.spin", us=20, name="spin").where("value % 4 == 0", name="filter")
    pipe = pipe.map(userfns.square, name="f").batch(10)
    expected, states = plain(pipe, seed=1, epochs=2)
    with pipe.loader(seed=1, epochs=2, optimize=True) as loader:
        run, made = run_of(loader), []

        def look(at: int) -> None:
            ready(loader)
            if loader._order is not None and loader._order._aside.thread is not None:
                loader._order._aside.thread.join()
            made.append(loader.state_dict())

        assert batches(run, look) == expected and made == states
        report = loader.optimization
        assert report is not None and [(s.node, s.moved) for s in report.steps] == [("f", True)]
        assert bool(report.moved) == (run._graph is not loader._built.graph)  # a busy machine may show no gain
        assert any(node["worker_seconds"] > 0 for node in loader.node_stats())


@pytest.mark.usefixtures("eager", "nothing_left")
def test_an_order_that_is_found_after_the_contest_changes_only_if_it_is_worth_that(monkeypatch):
    monkeypatch.setattr(live_order.LiveOrder, "is_worth", lambda *unused: False)
    decided(monkeypatch, True)
    pipe = hr.range(4000).op("debug.spin", us=20, name="spin").where("value % 4 == 0", name="filter")
    pipe = pipe.map(userfns.square, name="f").batch(10)
    expected, _ = plain(pipe, seed=1)
    with pipe.loader(seed=1, optimize=True) as loader:
        run = run_of(loader)

        def look(at: int) -> None:
            ready(loader)
            order = loader._order
            if order is not None and order.code is not None and order.code.is_settled and order._aside.thread is None:
                for name, value in {"_RUNS": 1, "_PART": 1, "_BLOCK": 0}.items():
                    monkeypatch.setattr(live_order, name, value)
                order._next = 0
            if order is not None and order._aside.thread is not None:
                order._aside.thread.join()

        assert batches(run, look) == expected
        assert loader.optimization is not None and loader.optimization.steps[0].moved
        assert run._graph is loader._built.graph


@pytest.mark.usefixtures("eager", "nothing_left", "children")
def test_epochs_in_loops_of_their_own_are_one_contest(monkeypatch):
    decided(monkeypatch, True, rounds=4)
    pipe = code_pipe(60)
    expected, _ = plain(pipe, seed=1, epochs=8)
    with pipe.loader(seed=1, optimize=True) as loader:
        got, where = [], []
        for _ in range(8):
            part, places = followed(loader, run_of(loader))
            got += part
            where += places
        assert got == expected and where[-1] and not where[0]
        assert loader.optimization is not None and loader.optimization.steps[0].moved


@pytest.mark.usefixtures("eager", "nothing_left")
@pytest.mark.parametrize("rank", range(2))
def test_ranks_change_with_an_epoch(rank, monkeypatch):
    decided(monkeypatch, True, rounds=2)
    options: dict[str, Any] = {"seed": 1, "epochs": 9, "shard": (rank, 2)}
    pipe = code_pipe(60)
    expected, states = plain(pipe, **options)
    with pipe.loader(**options, optimize=True) as loader:
        run, made = run_of(loader), []
        got, where = followed(loader, run, made)
        assert got == expected and made == states
        assert where[-1] and not where[0]
        assert all(at % 6 == 5 for at, (a, b) in enumerate(itertools.pairwise(where)) if a != b)


# ---- code that stays ----


def drawn(x: int) -> int:
    return random.randrange(1 << 40)


_home = os.getpid()  # in a worker process: of the one that imported this for it


def homesick(x: int) -> int:
    if os.getpid() != _home:
        raise ValueError("not here")
    return x


class Late:
    """Fails in a worker process from a record on."""

    def __init__(self, home: int, at: int, how: str) -> None:
        self.home, self.at, self.how = home, at, how

    def __call__(self, x: int) -> int:
        if os.getpid() != self.home and x == self.at:
            if self.how == "raise":
                raise ValueError("too late")
            os.kill(os.getpid(), signal.SIGKILL)
        return 3 * x


class Bound:
    """Holds what cannot be pickled."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self, x: int) -> int:
        return x + self.lock.locked()


@pytest.mark.usefixtures("eager", "nothing_left", "children")
@pytest.mark.parametrize(
    ("fn", "why"),
    [
        (drawn, "its results differ there"),
        (homesick, "it fails in worker processes: .*not here"),
        (Bound(), "pickle"),
    ],
)
def test_code_that_does_not_do_the_same_in_worker_processes_stays(fn, why, monkeypatch, caplog):
    decided(monkeypatch, True)
    pipe = hr.range(300).map(fn, name="f", fields="value", outputs={"value": "int64"}).batch(5)
    with caplog.at_level(logging.INFO, "headrace"), pipe.loader(seed=1, optimize=True) as loader:
        run = run_of(loader)
        got, where = followed(loader, run)
        assert len(got) == 60 and not any(where) and loader.stats()["records"] == 300
        report = loader.optimization
        assert report is not None and not report.steps[0].moved
    assert re.search(why, report.steps[0].reason), report.steps[0].reason
    assert "your code stays as written" in caplog.text
    if fn is not drawn:
        assert got == plain(pipe, seed=1)[0]


@pytest.mark.usefixtures("eager", "nothing_left", "children")
@pytest.mark.parametrize("how", ["raise", "kill"])
def test_a_run_returns_to_threads_if_worker_processes_fail(how, monkeypatch):
    decided(monkeypatch, True, rounds=1000)
    monkeypatch.setattr(Contest, "is_other", property(lambda contest: True))
    pipe = hr.range(400).map(Late(os.getpid(), 311, how), name="f", fields="value", outputs={"value": "int64"}).batch(5)
    expected, states = plain(pipe, seed=1)
    with pipe.loader(seed=1, optimize=True) as loader:
        run, made = run_of(loader), []
        got, where = followed(loader, run, made)
        assert got == expected and made == states
        assert any(where) and not where[-1] and not where[0]
        assert loader.optimization is not None
        assert "it failed in worker processes" in loader.optimization.steps[0].reason
        assert loader.stats()["records"] == 400 and loader.stats()["errors"] == 0


class Heavy:
    """A function with an array."""

    def __init__(self) -> None:
        self.table = np.arange(1 << 18)

    def __call__(self, x: int) -> int:
        return int(self.table[x])


@pytest.mark.usefixtures("eager", "nothing_left", "children")
def test_data_that_would_fill_the_memory_stays(monkeypatch):
    decided(monkeypatch, True)
    monkeypatch.setattr(_headrace, "free_memory", lambda: 4 << 20)  # the array has 2 MiB
    pipe = hr.range(300).map(Heavy(), name="f", fields="value", outputs={"value": "int64"}).batch(5)
    with pipe.loader(seed=1, optimize=True) as loader:
        got, where = followed(loader, run_of(loader))
        assert got == plain(pipe, seed=1)[0] and not any(where)
        assert loader.optimization is not None
        assert "it holds more than 1 MiB of data" in loader.optimization.steps[0].reason


class Interrupts:
    """Sends the parent a Ctrl-C, once, when a worker process makes a record."""

    def __init__(self, home: int, folder: str) -> None:
        self.home, self.folder = home, folder

    def __call__(self, x: int) -> int:
        if os.getpid() != self.home:
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.folder)
                os.kill(self.home, signal.SIGINT)
                time.sleep(0.2)
        return 3 * x


@pytest.mark.usefixtures("eager", "nothing_left", "children")
def test_ctrl_c_in_a_trial_loses_no_batch(monkeypatch, tmp_path):
    decided(monkeypatch, False)
    code = Interrupts(os.getpid(), str(tmp_path / "sent"))
    pipe = hr.range(400).map(code, name="f", fields="value", outputs={"value": "int64"}).batch(5)
    expected, _ = plain(pipe, seed=1)
    with pipe.loader(seed=1, optimize=True) as loader:
        run, made, interrupts = run_of(loader), [], 0
        while True:
            try:
                made.append(hash_of(run.take()))
            except KeyboardInterrupt:
                interrupts += 1
            except StopIteration:
                break
            ready(loader)
        assert interrupts == 1 and made == expected


def test_an_error_of_the_code_is_that_of_the_code(eager, monkeypatch):
    decided(monkeypatch, True, rounds=1000)

    def fails(x: int) -> int:
        if x == 200:
            raise KeyError("no such record")
        return x

    pipe = hr.range(400).map(fails, name="f", fields="value", outputs={"value": "int64"}).batch(5)
    with pipe.loader(seed=1, optimize=True) as loader, pytest.raises(KeyError, match="no such record"):
        followed(loader, run_of(loader))


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("options", [{"on_error": "skip"}, {"ordered": False}, {"threads": 0}])
def test_runs_that_cannot_go_back_do_not_try(options, eager):
    with code_pipe().loader(seed=1, optimize=True, **options) as loader:
        run_of(loader)
        assert loader._order is not None and loader._order.code is None
    if options != {"threads": 0}:
        assert "this run does not try worker processes" in code_pipe().explain(optimize=True, **options)


@pytest.mark.usefixtures("eager", "nothing_left", "children")
def test_loops_may_be_left_at_any_moment(rng, monkeypatch):
    decided(monkeypatch, True, rounds=6)
    pipe = code_pipe()
    expected, _ = plain(pipe, seed=1, epochs=1)
    for _ in range(6):
        loader = pipe.loader(seed=1, optimize=True)
        at = rng.randrange(40)
        for i, batch in enumerate(iter(run_of(loader).take, None)):
            assert hash_of(batch) == expected[i]
            if rng.random() < 0.5:
                ready(loader)
            if i == at:
                break
        if rng.random() < 0.3:
            loader.close()
        elif rng.random() < 0.5:
            closing = threading.Thread(target=loader.close)
            closing.start()
            closing.join()
        del loader


@pytest.mark.usefixtures("eager", "nothing_left", "children")
def test_another_thread_may_close_the_loader_meanwhile(rng, monkeypatch):
    decided(monkeypatch, True, rounds=50)
    pipe = code_pipe(4000)
    for _ in range(3):
        loader = pipe.loader(seed=1, epochs=None, optimize=True)
        run = run_of(loader)
        timer = threading.Timer(rng.uniform(0.05, 0.6), loader.close)
        timer.start()
        until = time.monotonic() + 60
        with contextlib.suppress(hr.HeadraceError, StopIteration):
            while time.monotonic() < until:
                run.take()
                ready(loader)
        assert time.monotonic() < until
        timer.join()
