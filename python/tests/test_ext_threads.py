"""Many threads over one iterator, batch, graph, loader: nothing is lost, torn or given twice.

On a free-threaded interpreter they run at once (make check-freethreaded); with the
interpreter's lock in turns, where the same must hold.
"""

from __future__ import annotations

import functools
import itertools
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from extfns import coded, graph
from headrace import _headrace as ext

pytestmark = pytest.mark.usefixtures("nothing_left")

THREADS = 4
FREE = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def together(work: Callable[[int], Any], count: int = THREADS) -> list[Any]:
    """What work(0), work(1), ... give, called at once in a thread each; the first error is raised."""
    begin = threading.Barrier(count)
    given: list[Any] = [None] * count
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            begin.wait(20)
            given[number] = work(number)
        except BaseException as error:  # noqa: BLE001 - it is raised again below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]
    return given


def values(batch: ext.Batch) -> list[int]:
    made: list[int] = np.asarray(batch.field(0)).tolist()
    return made


@pytest.mark.skipif(not FREE, reason="this interpreter has its lock")
def test_importing_the_package_does_not_bring_the_lock_back() -> None:
    code = "import sys, headrace, numpy; headrace.range(3).batch(2).loader(); print(sys._is_gil_enabled())"
    path = f"import sys; sys.path[:] = {sys.path!r}\n"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", path + code], text=True, capture_output=True, check=True
    )
    assert done.stdout == "False\n" and done.stderr == ""


# ---- one iterator ----


@pytest.mark.parametrize("variant", ["threads", "inline"])
@pytest.mark.parametrize("make", [lambda: graph(2000, 10), lambda: coded(lambda i: i, ["i: int64"], 2000, 10)])
def test_each_batch_goes_to_one_thread(make: Callable[[], ext.Graph], variant: str) -> None:
    run = ext.Iter(make(), {"variant": variant})

    def take(number: int) -> list[int]:
        taken: list[int] = []
        while (batch := run.next()) is not None:
            taken += values(batch)
        return taken

    shares = together(take)
    run.close()
    assert sorted(itertools.chain(*shares)) == list(range(2000))
    assert all(share == sorted(share) for share in shares)


def test_each_batch_of_a_loader_goes_to_one_thread() -> None:
    with hr.range(600).map(lambda v: v + 1, fields="value").batch(7).loader(epochs=2, output="numpy") as loader:
        batches = iter(loader)
        shares = together(lambda number: [v for batch in batches for v in batch.value.tolist()])
        assert sorted(itertools.chain(*shares)) == sorted(2 * list(range(1, 601)))
        assert loader.stats()["records"] == 1200 and loader.state_dict()["first"] == 2


def test_iterators_of_one_graph_in_many_threads() -> None:
    made = coded(lambda i: i * i, ["i: int64"], 300, 7)

    def drain(number: int) -> list[int]:
        run = ext.Iter(made, {"threads": 2, "variant": "inline" if number % 2 else "threads"})
        taken: list[int] = []
        while (batch := run.next()) is not None:
            taken += values(batch)
        run.close()
        return taken

    assert together(drain) == THREADS * [[i * i for i in range(300)]]


def test_one_pipeline_is_built_and_run_by_many_threads() -> None:
    pipe = hr.range(100).shuffle(seed=4).map(lambda v: v * 3, fields="value").batch(9)

    def drain(number: int) -> tuple[str, list[int]]:
        return pipe.fingerprint, [v for batch in pipe.loader(output="numpy") for v in batch.value.tolist()]

    given = together(drain)
    assert all(one == given[0] for one in given) and sorted(given[0][1]) == [3 * i for i in range(100)]


def test_close_while_others_wait_for_their_turn() -> None:
    stop = threading.Event()
    run = ext.Iter(coded(lambda i: (stop.wait(0.002), i)[1], ["i: int64"], 10**6, 10**5), {})

    def work(number: int) -> str:
        if number == 0:
            time.sleep(0.1)
            run.close()
            return ""
        with pytest.raises(ext.Error) as raised:
            run.next()
        return raised.value.code

    assert set(together(work)[1:]) <= {"HR_ERR_CANCELLED", "HR_ERR_STATE"}
    assert run.stats()["batches"] == 0


def test_runs_are_closed_and_dropped_by_many_threads_at_once() -> None:
    def make(index: int) -> int:
        return sum(range(200)) + index

    for _ in range(10):
        run = ext.Iter(coded(make, ["i: int64"], 10**6, 10), {"threads": 2})
        others = [run.next, run.close, run.cancel, run.stats, run.save, run.close]

        def work(number: int, calls: list[Callable[[], Any]] = others) -> None:
            try:
                calls[number]()
            except ext.Error as error:
                assert error.code in ("HR_ERR_CANCELLED", "HR_ERR_STATE")

        together(work, len(others))
        assert run.stats()["batches"] <= 1 and run.save()
        del run, others


def test_the_place_is_asked_for_while_another_thread_iterates() -> None:
    pipe = hr.range(3000).shuffle(seed=3).batch(10)
    wanted = [batch.value.tolist() for batch in pipe.loader(output="numpy")]
    loader = pipe.loader(output="numpy")
    done = threading.Event()
    states: list[dict[str, Any]] = []

    def work(number: int) -> None:
        if number == 0:
            assert [batch.value.tolist() for batch in loader] == wanted
            done.set()
            return
        while not done.is_set():
            states.append(loader.state_dict())
            assert loader.stats().get("batches", 0) <= 300  # nothing before the first loop
            assert all(node["records"] <= 3000 for node in loader.node_stats())

    together(work, 2)
    for state in [s for s in states if s["engine"] is not None][:: len(states) // 3 + 1]:
        again = pipe.loader(output="numpy")
        again.load_state_dict(state)
        rest = [batch.value.tolist() for batch in again]
        assert rest == wanted[len(wanted) - len(rest) :]


# ---- batches and fields ----


def test_fields_are_taken_while_the_batch_is_dropped() -> None:
    for round_ in range(20):
        run = ext.Iter(graph(50, 50), {"variant": "inline", "epoch_first": round_})
        batch = run.next()
        assert batch is not None
        held: list[Any] = [batch]
        del batch

        def take(number: int, held: list[Any] = held, run: ext.Iter = run) -> int:
            if number == 0:
                held.clear()
                run.close()
                return 1225
            try:
                one = held[0]
            except IndexError:
                return 1225
            field = one.field(number % 1)
            del one
            return int(np.asarray(field).sum() if number % 2 else np.from_dlpack(field).sum())

        assert together(take) == THREADS * [1225]


def writable(field: ext.Field, number: int) -> np.ndarray[Any, Any]:
    return np.asarray(field.writable())


def test_the_memory_itself_is_given_to_one_thread_only() -> None:
    for _ in range(20):
        run = ext.Iter(graph(50, 50), {"variant": "inline"})
        batch = run.next()
        run.close()
        assert batch is not None
        field = batch.field(0)
        here = np.asarray(field).ctypes.data
        del batch
        made = together(functools.partial(writable, field))
        assert sum(one.ctypes.data == here for one in made) == 1
        for number, one in enumerate(made):
            one[:] = number
        assert [set(one.tolist()) for one in made] == [{number} for number in range(THREADS)]
        del field, made, one


def test_a_batch_makes_each_array_once() -> None:
    batch = next(iter(hr.range(100).batch(100).loader(output="numpy")))
    arrays = together(lambda number: batch.value)
    assert all(one is arrays[0] for one in arrays)


def test_a_digest_takes_each_addition_whole() -> None:
    alone, shared = ext.Digest(), ext.Digest()
    for _ in range(THREADS * 200):
        alone.add(b"0123456789")

    def add(number: int) -> None:
        for _ in range(200):
            shared.add(b"0123456789")

    together(add)
    assert shared.hexdigest() == alone.hexdigest()


# ---- user code ----


def test_errors_of_several_threads_end_the_run_with_the_first_record() -> None:
    begin = threading.Barrier(2)

    def make(index: int) -> int:
        if index >= 40:
            try:
                begin.wait(0.05)  # two at once, where there are two threads left
            except threading.BrokenBarrierError:
                pass
            raise LookupError(f"record {index}")
        return index

    for _ in range(5):
        begin.reset()
        run = ext.Iter(coded(make, ["i: int64"], 400, 20), {"threads": 3})
        with pytest.raises(ext.Error) as raised:
            while run.next() is not None:
                pass
        run.close()
        assert raised.value.record == 40 and str(raised.value.__cause__) == "record 40"
        del raised


def test_bad_records_of_many_runs_are_counted() -> None:
    def make(index: int) -> int:
        if index % 3 == 0:
            raise ValueError(index)
        return index

    made = coded(make, ["i: int64"], 90, 10)

    def drain(number: int) -> list[int]:
        run = ext.Iter(made, {"on_error": "skip", "threads": 2})
        taken: list[int] = []
        while (batch := run.next()) is not None:
            taken += values(batch)
        assert run.stats()["errors"] == 30
        run.close()
        return taken

    assert together(drain) == THREADS * [[i for i in range(90) if i % 3]]


def test_a_list_changes_while_it_is_a_source() -> None:
    items = list(range(1000))
    run = ext.Iter(coded(items.__getitem__, ["i: int64"], 1000, 10), {"threads": 2, "on_error": "skip"})
    done = threading.Event()

    def work(number: int) -> int:
        if number == 0:
            taken = 0
            while (batch := run.next()) is not None:
                assert all(0 <= v < 1000 for v in values(batch))
                taken += batch.records
            done.set()
            return taken
        while not done.is_set():
            items[:] = list(range(1000))
            items[number * 100 : number * 100 + 50] = [number] * 50
        return 0

    assert together(work)[0] == 1000
    run.close()


def test_graphs_go_while_their_code_runs() -> None:
    def make(index: int) -> int:
        return int(np.arange(50).sum()) + index

    def work(number: int) -> None:
        for _ in range(10):
            run = ext.Iter(coded(make, ["i: int64"], 10**6, 5), {"threads": 2})
            assert run.next() is not None
            del run

    together(work)
