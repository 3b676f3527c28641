"""loader(optimize=...): the order changes while the loader runs, and nothing else does.

Where a test lowers the thresholds, the comparison begins with the first batches.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import headrace as hr
import userfns
from headrace import _headrace, live_order
from headrace.loader import Loader
from headrace.loader_run import Run


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compares at once, and changes whatever it gains."""
    monkeypatch.setattr(live_order, "_RUNS", 1)
    monkeypatch.setattr(live_order, "_PART", 1)
    monkeypatch.setattr(live_order, "_BLOCK", 0)
    monkeypatch.setattr(live_order.LiveOrder, "is_worth", lambda *unused: True)


def wasteful(records: int = 2000, us: int = 20) -> hr.Pipeline:
    pipe = hr.range(records).shuffle(seed=3).op("debug.spin", us=us, name="spin")
    return pipe.where("value % 4 == 0", name="filter").batch(10)


def hash_of(batch: Any) -> str:
    made = _headrace.Digest()
    _headrace.digest_batch(made, batch)
    return made.hexdigest()


def settle(loader: Loader) -> None:
    """Waits until the order is known, if it is being found."""
    assert loader._order is not None
    thread = loader._order._aside.thread
    if thread is not None:
        thread.join()


def run_of(loader: Loader) -> Run:
    run: Any = iter(loader)
    assert isinstance(run, Run)
    return run


def batches(run: Run, after: Callable[[int], object] = lambda at: None) -> list[str]:
    made = []
    with contextlib.suppress(StopIteration):
        for at in itertools.count():
            made.append(hash_of(run.take()))
            after(at)
    return made


def is_changed(run: Run) -> bool:
    return run._graph is not run._loader._built.graph


def plain(pipe: hr.Pipeline, **options: Any) -> tuple[list[str], list[dict[str, Any]]]:
    """Hashes and states of a loader in the written order."""
    loader = pipe.loader(**options)
    states: list[dict[str, Any]] = []
    return batches(run_of(loader), lambda at: states.append(loader.state_dict())), states


@pytest.mark.usefixtures("nothing_left")
def test_a_run_changes_its_order_and_gives_the_same_bytes(cache, monkeypatch):
    monkeypatch.setattr(live_order, "_BLOCK", 0)
    pipe = wasteful(20000)
    expected, _ = plain(pipe, seed=1, epochs=2)
    with pipe.loader(seed=1, epochs=2, optimize=True) as loader:
        assert loader.optimization is None
        run, changed = run_of(loader), []

        def look(at: int) -> None:
            if at == 600:
                settle(loader)
            changed.append(is_changed(run))

        assert batches(run, look) == expected
        report = loader.optimization
        assert report is not None and [move.node for move in report.moved] == ["filter", "spin"]
        assert changed == sorted(changed) and not changed[0] and changed[-1]
        assert loader.stats()["records"] == 10000 and loader.stats()["batches"] == 1000
        names = [node["node"] for node in loader.node_stats()]
        assert names == ["source.range", "order.shuffle", "filter", "spin", "batch.stack"]
    files = {file.name: file.read_text() for file in cache.iterdir()}
    assert len(files) == 5
    with pipe.loader(seed=1, epochs=2, optimize="exact") as loader:  # as saved, from the first batch on
        run = run_of(loader)
        assert is_changed(run) and loader.optimization is not None and batches(run) == expected
        assert run._past is None and loader.node_stats()[3]["records"] == 10000


@pytest.mark.usefixtures("eager")
def test_states_are_those_of_the_written_order_at_any_moment(rng):
    pipe = wasteful()
    expected, states = plain(pipe, seed=4, epochs=2)
    loader = pipe.loader(seed=4, epochs=2, optimize=True)
    run, wait = run_of(loader), rng.randrange(2, 90)
    made: list[dict[str, Any]] = []

    def look(at: int) -> None:
        made.append(loader.state_dict())
        if at == wait:
            settle(loader)

    assert batches(run, look) == expected and is_changed(run)
    assert made == states
    for _ in range(6):
        at = rng.randrange(len(states))
        for optimize in (False, True):
            other = pipe.loader(seed=4, epochs=2, threads=rng.randrange(3), optimize=optimize)
            other.load_state_dict(json.loads(json.dumps(made[at])))
            assert other.state_dict() == states[at]
            resumed = run_of(other)
            if optimize:
                settle(other)
            assert batches(resumed) == expected[at + 1 :]
            other.close()
    loader.close()


def random_pipeline(rng: random.Random) -> hr.Pipeline:
    pipe = hr.range(rng.randrange(200, 600), start=rng.randrange(-9, 9))
    if rng.random() < 0.7:
        pipe = pipe.shuffle(seed=rng.randrange(100))
    steps: list[Callable[[hr.Pipeline], hr.Pipeline]] = [
        lambda p: p.op("debug.spin", us=10),
        lambda p: p.op("debug.spin", us=20),
        lambda p: p.where(f"value % {rng.randrange(2, 5)} != 1"),
        lambda p: p.where(f"value < {rng.randrange(100, 500)}"),
        lambda p: p.op("debug.identity"),
    ]
    code: list[Callable[[hr.Pipeline], hr.Pipeline]] = [
        lambda p: p.map(userfns.double),
        lambda p: p.filter(userfns.is_even),
        lambda p: p.flat_map(userfns.twice),
        lambda p: p.shuffle(seed=5, window=16),
        lambda p: p.take(150),
    ]
    for part in range(2):
        for step in rng.sample(steps, rng.randrange(2, 5)):
            pipe = step(pipe)
        if part == 0 and rng.random() < 0.7:
            pipe = rng.choice(code)(pipe)
    return pipe.batch(rng.randrange(1, 9), drop_last=rng.random() < 0.5)


@pytest.mark.usefixtures("eager")
def test_random_pipelines(rng):
    changed = 0
    for _ in range(12):
        pipe = random_pipeline(rng)
        options: dict[str, Any] = {"seed": rng.randrange(1000), "epochs": 2, "threads": rng.randrange(3)}
        expected, states = plain(pipe, **options)
        loader = pipe.loader(**options, optimize=True)
        run, wait, made = run_of(loader), rng.randrange(0, 40), []

        def look(at: int, loader: Loader = loader, wait: int = wait, made: list[Any] = made) -> None:
            made.append(loader.state_dict())
            if at >= wait:
                settle(loader)

        assert batches(run, look) == expected, repr(pipe)
        assert made == states, repr(pipe)
        changed += is_changed(run)
        loader.close()
    print(changed, "of 12 changed")


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("strictness", ["close", "relaxed"])
def test_other_strictness_changes_with_an_epoch(strictness, cache):
    pipe = wasteful(400)
    expected, states = plain(pipe, seed=2, epochs=4)
    loader = pipe.loader(seed=2, epochs=4, optimize=strictness)
    run = run_of(loader)
    changed: list[tuple[int, bool]] = []
    made = []

    def look(at: int) -> None:
        if at == 12:
            settle(loader)
        changed.append((run.epoch, is_changed(run)))
        made.append(loader.state_dict())

    assert batches(run, look) == expected and made == states
    assert changed == sorted(changed) and len(set(changed)) == 4 and dict(changed)[3]  # one order in each epoch
    assert loader.stats()["records"] == 400 and loader.stats()["batches"] == 40
    loader.close()
    again = pipe.loader(seed=2, epochs=4, optimize=strictness)
    assert is_changed(run_of(again))  # before its first batch
    again.close()


@pytest.mark.usefixtures("eager")
def test_ranks_change_with_an_epoch():
    pipe = wasteful(400)
    for rank in range(2):
        options: dict[str, Any] = {"seed": 2, "epochs": 3, "shard": (rank, 2), "even": "none"}
        expected, states = plain(pipe, **options)
        loader = pipe.loader(**options, optimize=True)
        run = run_of(loader)
        changed, made = [], []

        def look(
            at: int,
            loader: Loader = loader,
            run: Run = run,
            changed: list[tuple[int, bool]] = changed,
            made: list[dict[str, Any]] = made,
        ) -> None:
            settle(loader)
            changed.append((run.epoch, is_changed(run)))
            made.append(loader.state_dict())

        assert batches(run, look) == expected and made == states
        assert len(set(changed)) == 3 and changed[-1][1]
        loader.close()


@pytest.mark.usefixtures("eager")
def test_loops_of_one_epoch(cache):
    pipe = wasteful(400)
    expected = [plain(pipe, seed=2)[0]]
    written = pipe.loader(seed=2)
    assert batches(run_of(written)) == expected[0]
    expected += [batches(run_of(written)) for _ in range(3)]
    loader = pipe.loader(seed=2, optimize=True)
    assert [batches(run_of(loader), lambda at: settle(loader)) for _ in range(4)] == [expected[0], *expected[1:]]
    assert is_changed(run_of(loader))
    loader.close()


@pytest.mark.usefixtures("eager", "nothing_left")
def test_worker_processes_and_datasets(children):
    pipe = (
        hr.from_dataset(list(range(600)))
        .map(userfns.double, variant="processes")
        .op("debug.spin", us=20)
        .where("value % 8 == 0")
        .batch(5)
    )
    expected, states = plain(pipe, seed=1, epochs=2, threads=2)
    with pipe.loader(seed=1, epochs=2, threads=2, optimize=True) as loader:
        run = run_of(loader)
        made: list[dict[str, Any]] = []

        def look(at: int) -> None:
            made.append(loader.state_dict())
            if at == 10:
                settle(loader)

        assert batches(run, look) == expected and is_changed(run) and made == states


@pytest.mark.usefixtures("eager")
def test_functions_that_run_one_at_a_time_are_not_called_beside():
    inside = threading.Lock()
    threads = set()

    def alone(value: int) -> int:
        assert inside.acquire(blocking=False)
        threads.add(threading.current_thread().name)
        inside.release()
        return value

    pipe = hr.range(400).map(alone, variant="inline").op("debug.spin", us=20).where("value % 4 == 0").batch(5)
    expected = batches(run_of(pipe.loader(seed=1)))
    loader = pipe.loader(seed=1, optimize=True, epochs=1)
    assert batches(run_of(loader)) == expected and loader.optimization is None
    second = run_of(loader)
    assert loader.optimization is not None and is_changed(second)
    assert "headrace-order" not in threads
    loader.close()


def test_iterables_stay_as_written(caplog):
    caplog.set_level("INFO", "headrace")
    pipe = hr.from_iterable(iter(range(200))).op("debug.spin", us=20).where("value % 4 == 0").batch(5)
    loader = pipe.loader(optimize=True)
    assert len(batches(run_of(loader))) == 10
    report = loader.optimization
    assert report is not None and not report.moved and "is read by the run alone" in str(report)
    assert "the iterable 'code.source' is read by the run alone" in caplog.text
    loader.close()


def test_a_comparison_costs_less_than_2_percent():
    calls = {"beside": 0, "run": 0}

    def count(value: int) -> int:
        calls["beside" if threading.current_thread().name == "headrace-order" else "run"] += 1
        return value

    pipe = hr.range(200000).map(count).op("debug.spin", us=3).where("value % 2 == 0").batch(8)
    loader = pipe.loader(seed=1, threads=1, optimize=True)
    made: list[int] = []

    def look(at: int) -> None:
        if not made and loader._order is not None and loader._order._aside.thread is not None:
            made.append(calls["run"])
            settle(loader)

    assert len(batches(run_of(loader), look)) == 100000 // 8
    assert loader.optimization is not None and made
    assert 0 < calls["beside"] <= 0.02 * made[0], calls
    loader.close()


@pytest.mark.usefixtures("nothing_left")
def test_close_in_the_midst_of_a_comparison(monkeypatch, children):
    monkeypatch.setattr(live_order, "_RUNS", 1)
    monkeypatch.setattr(live_order, "_PART", 1)
    monkeypatch.setattr(live_order, "_BLOCK", 0)
    monkeypatch.setattr(live_order, "_RECORDS", 40)
    monkeypatch.setattr(live_order, "_BLOCK", 0)
    monkeypatch.setenv("HEADRACE_CACHE", "")

    pipe = hr.range(1 << 30).op("debug.spin", us=2000).where("value % 2 == 0").batch(2)
    for threads in (0, 2):
        loader = pipe.loader(optimize=True, threads=threads)
        run = run_of(loader)
        while loader._order is not None and loader._order._aside.thread is None:
            run.take()
        assert loader._order is not None and loader._order._aside.thread is not None
        thread = loader._order._aside.thread
        loader.close()
        thread.join(30)
        assert not thread.is_alive() and loader.optimization is None


@pytest.mark.usefixtures("eager")
def test_close_from_another_thread_while_it_changes():
    for _ in range(10):
        loader = wasteful(20000, us=5).loader(optimize=True, epochs=None)
        closer = threading.Timer(random.random() * 0.2, loader.close)
        closer.start()
        with contextlib.suppress(hr.CancelledError, hr.ClosedError):
            for _ in loader:
                pass
        closer.join()


@pytest.mark.usefixtures("eager")
def test_a_change_after_a_close_in_another_thread_ends_the_run():
    loader = wasteful(20000, us=5).loader(optimize=True, epochs=None)
    run, order = run_of(loader), loader._order
    assert order is not None
    run.take()
    closer = threading.Thread(target=loader.close)
    closer.start()
    closer.join()
    with pytest.raises(hr.CancelledError, match="closed in another thread"):
        run._change(order, "", {})


@pytest.mark.usefixtures("eager")
def test_threads_share_a_run_that_changes():
    pipe = wasteful(4000)
    expected, _ = plain(pipe, seed=1, epochs=2)
    loader = pipe.loader(seed=1, epochs=2, optimize=True)
    run, lock = run_of(loader), threading.Lock()
    made: list[str] = []

    def work() -> None:
        with contextlib.suppress(StopIteration):
            while True:
                got = hash_of(run.take())
                with lock:
                    made.append(got)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == sorted(expected)
    loader.close()


@pytest.mark.usefixtures("eager")
def test_bad_records_are_skipped_once():
    def bad(value: int) -> int:
        if value % 7 == 0:
            raise ValueError(value)
        return value

    pipe = hr.range(700).op("debug.spin", us=10).where("value % 2 == 0").map(bad).batch(5)
    options: dict[str, Any] = {"seed": 1, "epochs": 3, "on_error": "skip", "errors_max": 1000}
    expected, states = plain(pipe, **options)
    loader = pipe.loader(**options, optimize=True)
    made: list[dict[str, Any]] = []

    def look(at: int) -> None:
        settle(loader)
        made.append(loader.state_dict())

    assert batches(run_of(loader), look) == expected and made == states
    loader.close()


def test_sources_that_give_nothing_or_fail():
    with hr.range(0).op("debug.spin", us=1).where("value < 5").batch(2).loader(optimize=True) as loader:
        assert list(loader) == [] and loader.optimization is None and list(loader) == []
    with hr.range(3000).op("debug.spin", us=1).where("value < 0").batch(2).loader(optimize=True) as loader:
        assert list(loader) == [] and loader.optimization is None and list(loader) == []

    class Failing:
        def __len__(self) -> int:
            return 100

        def __getitem__(self, index: int) -> int:
            if index == 50:
                raise ValueError("no record here")
            return index

    pipe = hr.from_dataset(Failing()).op("debug.spin", us=1).where("value % 2 == 0").batch(2)
    with pipe.loader(optimize=True) as loader, pytest.raises(ValueError, match="no record here"):
        list(loader)


@pytest.mark.usefixtures("eager")
def test_a_filter_that_drops_all_and_batches_that_never_fill(cache, caplog):
    caplog.set_level("INFO", "headrace")
    pipe = hr.range(100).op("debug.spin", us=5).where("value % 4 == 0").batch(20, drop_last=True)
    for _ in range(2):
        loader = pipe.loader(optimize=True, epochs=2)
        assert len(batches(run_of(loader), lambda at, loader=loader: settle(loader))) == 2  # type: ignore[misc]
        loader.close()


def test_a_profile_that_is_wrong_is_found_out(cache, caplog):
    """The saved profile says that a cheap filter is dear, and that little is left before it."""
    pipe = hr.range(3000).where("value % 4 == 0", name="filter").op("debug.spin", us=20, name="spin").batch(5)
    graph = pipe._built.graph
    profile = json.loads(pipe.profile(fuse=True, seconds=0.5).text)
    for node in profile["nodes"]:
        if node["node"] == "spin":
            node["records_out"] //= 100
        if node["node"] == "filter":
            node["cpu_ns"] = 1e5
    graph.profile_save(json.dumps(profile))
    expected, _ = plain(pipe, seed=1)
    loader = pipe.loader(seed=1, optimize=True)
    assert batches(run_of(loader)) == expected
    report = loader.optimization
    assert report is not None and report.moved == () and "times the CPU time" in report.dropped
    loader.close()


def test_a_start_is_not_held_up(cache, monkeypatch):
    """With a saved profile, but records that are too dear to compare before the first batch."""
    monkeypatch.setattr(live_order, "_START_S", 1e-6)
    pipe = wasteful()
    pipe.optimize(seconds=0.3)
    loader = pipe.loader(seed=1, optimize=True)
    run = run_of(loader)
    assert not is_changed(run) and loader.optimization is None
    loader.close()
    monkeypatch.setattr(live_order, "_START_S", 60)
    loader = pipe.loader(seed=1, optimize=True)
    assert is_changed(run_of(loader))
    loader.close()


def test_an_order_that_cannot_be_opened_is_given_up(eager, monkeypatch):
    pipe = wasteful()
    expected, _ = plain(pipe, seed=1, epochs=2)
    loader = pipe.loader(seed=1, epochs=2, optimize=True)
    run = run_of(loader)
    opened = run._open

    def refuse(graph: Any, state: str | None) -> Any:
        if graph is not loader._built.graph:
            raise hr.StateError("not today")
        return opened(graph, state)

    monkeypatch.setattr(run, "_open", refuse)
    assert batches(run, lambda at: settle(loader)) == expected and not is_changed(run)
    loader.close()


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"optimize": "exactly"}, "did you mean 'exact'"),
        ({"optimize": 2}, "optimize must be one of"),
        ({"optimize": True, "plan": "{}"}, "a plan is of one order"),
        ({"optimize": True, "on_error": "substitute"}, "takes the place of a bad one"),
    ],
)
def test_wrong_options_are_named(options, part):
    with pytest.raises(hr.ArgumentError, match=part):
        wasteful().loader(**options)


def test_other_loaders_look_once(monkeypatch):
    """Without a profile and with few records nothing is compared, and nothing is asked again."""
    asked = []
    original = live_order.saved
    monkeypatch.setattr(live_order, "saved", lambda *args: asked.append(1) or original(*args))
    with wasteful(400).loader(optimize=True) as loader:
        began = time.monotonic()
        for _ in range(3):
            assert len(list(loader)) == 10
        assert time.monotonic() - began < 60
        assert asked == [1] and loader.optimization is None and loader._order is not None
    with wasteful(400).loader(optimize=False) as loader:
        assert loader._order is None
