"""The extension's runs: errors with all their parts, signals, threads, forks, the end."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import pathlib
import signal
import subprocess
import sys
import sysconfig
import threading
import time
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from conftest import run_script
from extfns import NUMBERS, coded, first, graph
from headrace import _headrace as ext

pytestmark = pytest.mark.usefixtures("nothing_left")


def drain(made: ext.Graph, **options: Any) -> list[int]:
    run = ext.Iter(made, options)
    values: list[int] = []
    try:
        while (batch := run.next()) is not None:
            values += np.asarray(batch.field(0)).tolist()
    finally:
        run.close()
    return values


STARTED: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    """One that hangs ends with its test, and so do its children."""
    yield
    while STARTED:
        process = STARTED.pop()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def script(text: str, *args: str) -> subprocess.Popen[str]:
    """A process that runs `text` after the imports that all of these need."""
    head = (
        "import json, os, signal, sys, threading, time\nfrom headrace import _headrace as ext\n"
        "sys.path.insert(0, sys.argv[1])\nfrom extfns import coded, graph\n"
    )
    return program(head + text, *args)


def program(text: str, *args: str) -> subprocess.Popen[str]:
    here = str(pathlib.Path(__file__).parent)
    process = subprocess.Popen(
        [sys.executable, "-c", text, here, *args],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    STARTED.append(process)
    return process


# ---- errors ----


def test_an_error_in_a_graph_has_its_place() -> None:
    with pytest.raises(ext.Error) as raised:
        ext.Graph.parse("headrace: 1\npipeline:\n  - source.rang: {n: 1}\n", "some.yaml", {})
    error = raised.value
    assert (error.code, error.file, error.line, error.column) == ("HR_ERR_NOT_FOUND", "some.yaml", 3, 5)
    assert error.record == -1 and error.detail == "" and error.__cause__ is None
    assert str(error) == error.message and "source.range" in error.message


def test_an_error_in_a_parameter_names_it() -> None:
    with pytest.raises(ext.Error) as raised:
        ext.Graph().add("source.range", "numbers", [], '{"n": -5}')
    assert (raised.value.node, raised.value.op, raised.value.param) == ("numbers", "source.range", "n")


def test_a_frozen_graph_takes_nothing_more() -> None:
    made = graph()
    made.freeze()
    for change in (
        lambda: made.add("source.range", None, [], None),
        lambda: made.code("f", "f", "map", len),
        lambda: made.host(lambda fd: 0, lambda pid: None, str),
    ):
        with pytest.raises(ext.Error) as raised:
            change()
        assert raised.value.code == "HR_ERR_STATE"


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"thread": 1}, ext.Error),
        ({"variant": "fast"}, ValueError),
        ({"threads": "x"}, TypeError),
        ({"seed": -1}, OverflowError),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        ext.Iter(graph(), options)


def test_a_field_that_is_not_there() -> None:
    batch = first(graph())
    with pytest.raises(ext.Error, match="it has value") as raised:
        batch.field("image")
    assert (raised.value.code, raised.value.param) == ("HR_ERR_NOT_FOUND", "image")
    with pytest.raises(ext.Error, match="no field 3"):
        batch.field(3)
    with pytest.raises(TypeError):
        batch.field(1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("variant", ["threads", "inline"])
def test_an_exception_of_user_code_arrives_whole(variant: str) -> None:
    def make(index: int) -> int:
        if index >= 7:
            raise LookupError(f"no\nrecord {index}")
        return index

    with pytest.raises(ext.Error) as raised:
        drain(coded(make, ["i: int64"], 50), variant=variant)
    error = raised.value
    assert (error.node, error.op, error.record) == ("make", "code.source", 7)
    assert "LookupError: no record 7 (test_ext_life.py:" in error.message and "\n" not in error.message
    assert isinstance(error.__cause__, LookupError)
    assert "raise LookupError" in "".join(traceback.format_exception(error.__cause__))
    assert "raise LookupError" in error.detail
    del error


def test_bad_records_are_skipped_and_their_exceptions_forgotten() -> None:
    def make(index: int) -> int:
        if index % 3 == 0:
            raise ValueError(index)
        return index

    assert drain(coded(make, ["i: int64"], 12), on_error="skip") == [1, 2, 4, 5, 7, 8, 10, 11]


@pytest.mark.parametrize("variant", ["threads", "inline"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_error_ends_the_run_as_it_is(variant: str, kind: type[BaseException]) -> None:
    def make(index: int) -> int:
        if index == 3:
            raise kind("stop")
        return index

    for policy in ("fail", "skip"):
        with pytest.raises(kind, match="stop"):
            drain(coded(make, ["i: int64"], 50), variant=variant, on_error=policy)


@pytest.mark.parametrize("end", [StopIteration, IndexError])
def test_a_source_says_where_it_ends(end: type[Exception]) -> None:
    def make(index: int) -> int:
        if index >= 13:
            raise end
        return index

    assert drain(coded(make, ["i: int64"], -1)) == list(range(13))
    assert drain(coded([1, 2, 3].__getitem__, ["i: int64"], -1)) == [1, 2, 3]


def test_an_index_error_in_deeper_code_is_an_error() -> None:
    with pytest.raises(ext.Error, match="IndexError"):
        drain(coded(lambda index: (lambda: [][index])(), ["i: int64"], -1))


@pytest.mark.parametrize(
    ("output", "value", "code", "words"),
    [
        ("i: int32", 1 << 40, "HR_ERR_RANGE", "1099511627776 does not fit into int32, the type of field 'i'"),
        ("i: uint8", -1, "HR_ERR_RANGE", "-1 does not fit into uint8, the type of field 'i'"),
        ("i: float64", 10**400, "HR_ERR_RANGE", "00 does not fit into float64, the type of field 'i'"),
        ("i: float64", 1j, "HR_ERR_TYPE", "field 'i' is float64: must be real number"),
        ("i: float16", 65520.0, "HR_ERR_RANGE", "65520.0 does not fit into float16, the type of field 'i'"),
        ("i: float16", -1e6, "HR_ERR_RANGE", "-1000000.0 does not fit into float16"),
        ("i: float16", np.float32(1e6), "HR_ERR_RANGE", "does not fit into float16"),
        ("i: float16", 10**6, "HR_ERR_RANGE", "1000000 does not fit into float16"),
        ("i: bfloat16", 3.4e38, "HR_ERR_RANGE", "does not fit into bfloat16, the type of field 'i'"),
        ("i: float32", 1e39, "HR_ERR_RANGE", "does not fit into float32, the type of field 'i'"),
        ("i: int32", 1.5, "HR_ERR_TYPE", "float"),
        ("i: int32", "text", "HR_ERR_TYPE", "declared as int32"),
        ("i: int32", None, "HR_ERR_TYPE", "None for field .i., and batches hold none"),
        ("i: int32[2]", np.zeros(3, np.int32), "HR_ERR_SHAPE", "int32 \\[3\\]"),
        ("i: int32[2]", np.zeros(2, np.float32), "HR_ERR_TYPE", "float32"),
        ("i: int32[2]", np.zeros(2, np.complex64), "HR_ERR_TYPE", "field 'i': no dtype"),
        ("i: int32[2]", [1, 1 << 40], "HR_ERR_RANGE", "field 'i' is int32: "),
        ("i: int32[2]", [1, 2.5], "HR_ERR_TYPE", r"field 'i' is int32: NumPy takes \[1, 2.5\] for float64; declare"),
        ("i: int32[2]", [1, None], "HR_ERR_TYPE", r"field 'i' is int32: NumPy takes \[1, None\] for object"),
        ("i: int32[2]", [1, [2]], "HR_ERR_TYPE", "field 'i' is int32: setting an array element"),
        ("i: int32[2]", np.zeros(2, "M8[s]"), "HR_ERR_TYPE", "field 'i' is int32: cannot include dtype 'M'"),
        ("i: int64", object(), "HR_ERR_TYPE", "make"),
        ("i: bytes", 5, "HR_ERR_TYPE", "make"),
        ("i: float32[9]", np.zeros((1,) * 9, np.float32), "HR_ERR_SHAPE", "make"),
    ],
)
def test_a_wrong_output_is_refused_with_words(output: str, value: Any, code: str, words: str) -> None:
    with pytest.raises(ext.Error, match=words) as raised:
        drain(coded(lambda index: value, [output]))
    assert raised.value.code == code and raised.value.record == 0


@pytest.mark.parametrize(
    ("output", "value", "expected"),
    [
        ("i: int32", np.int64(5), 5),
        ("i: float32", np.float64(0.5), 0.5),
        ("i: float32", 3, 3.0),
        ("i: float16", 65519.9, 65504.0),
        ("i: float16", float("inf"), float("inf")),
        ("i: float32", -3.4028235e38, -3.4028234663852886e38),
        ("i: float32", float("-inf"), float("-inf")),
        ("i: bool", True, True),
        ("i: bool", np.bool_(True), True),
        ("i: uint8[3]", [1, 2, 255], [1, 2, 255]),
        ("i: float32[2]", (1, 0.5), [1.0, 0.5]),
        ("i: uint8[3]", b"abc", [97, 98, 99]),
        ("i: uint8[2, 3]", np.arange(6, dtype=np.uint8).reshape(3, 2).T, [[0, 2, 4], [1, 3, 5]]),
        ("i: int16[2]", memoryview(np.array([1, 2, 3, 4], np.int16))[::2], [1, 3]),
        ("i: float32[0]", np.zeros(0, np.float32), []),
    ],
)
def test_outputs_of_many_kinds(output: str, value: Any, expected: Any) -> None:
    assert np.asarray(first(coded(lambda index: value, [output])).field(0))[4].tolist() == expected


def test_an_input_that_is_returned_is_passed_on() -> None:
    made = ext.Graph()
    made.code("s", "s", "source", lambda i: (np.arange(6, dtype=np.float32).reshape(2, 3) + i, b"t%d" % i))
    made.code("m", "m", "map", lambda a, t: (a if a[0, 0] % 2 else a[:], t))
    source = made.add("code.source", None, [], '{"code": "s", "count": 4, "outputs": ["a: float32[2,3]", "t: bytes"]}')
    node = made.add(
        "code.map", None, [source], '{"code": "m", "fields": ["a", "t"], "outputs": ["a: float32[2,3]", "t: bytes"]}'
    )
    made.add("batch.stack", None, [node], '{"size": 4}')
    batch = first(made)
    assert np.asarray(batch.field("a"))[:, 1, 2].tolist() == [5, 6, 7, 8]
    assert batch.field("t").strings() == [b"t0", b"t1", b"t2", b"t3"]


def test_filter_and_expand_call_python() -> None:
    made = ext.Graph()
    made.code("e", "e", "expand", lambda v: (v * 10 + i for i in range(v % 3)))
    made.code("f", "f", "filter", lambda v: v % 2 == 0)
    node = made.add("source.range", None, [], '{"n": 9}')
    node = made.add("code.expand", None, [node], '{"code": "e", "fields": ["value"], "outputs": ["value: int64"]}')
    node = made.add("code.filter", None, [node], '{"code": "f", "fields": ["value"]}')
    made.add("batch.stack", None, [node], '{"size": 4}')
    wanted = [v * 10 + i for v in range(9) for i in range(v % 3) if (v * 10 + i) % 2 == 0]
    assert drain(made) == wanted == drain(made, variant="inline")


def test_current_record_is_known_in_a_call_only() -> None:
    seen: dict[int, tuple[Any, ...]] = {}

    def make(index: int) -> int:
        record = ext.current_record()
        assert record is not None
        seen[index] = record
        return index

    assert ext.current_record() is None
    drain(coded(make, ["i: int64"]), seed=5)
    assert ext.current_record() is None
    again = dict(seen)
    drain(coded(make, ["i: int64"]), seed=5, variant="inline")
    assert {k: v[:6] for k, v in again.items()} == {k: v[:6] for k, v in seen.items()}
    assert seen[3][:3] == (5, 0, 3) and seen[3][5] == "make" and len({r[3:5] for r in seen.values()}) == 10


def test_thread_locals_of_user_code_live_as_long_as_the_thread() -> None:
    local = threading.local()
    made: list[int] = []

    def make(index: int) -> int:
        if not hasattr(local, "resource"):
            local.resource = index
            made.append(index)
        return index

    drain(coded(make, ["i: int64"], 20000, 10), threads=1)
    assert len(made) <= 2  # the worker, and the consumer when it helps


@pytest.mark.skipif(bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="its collector chooses its own moments")
def test_the_collector_may_end_a_graph_while_an_exception_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeping it makes a list and a tuple, and either may start the collector."""
    runs: list[Any] = []
    ready = threading.Event()
    words = ["words"]

    def formatted(exception: BaseException) -> list[str]:
        """The last Python before it is kept: from here on no list or tuple is at hand."""
        filled.append([[] for _ in range(200)])
        filled.append([tuple(range(i, i + 6)) for i in range(3000)])
        runs.clear()
        gc.set_threshold(1)
        gc.enable()
        return words

    def make(index: int) -> int:
        ready.wait(10)
        raise ValueError(index)

    monkeypatch.setattr(traceback, "format_exception", formatted)
    filled: list[Any] = []
    threshold = gc.get_threshold()
    gc.disable()
    try:
        runs.append([ext.Iter(coded(make, ["i: int64"], 1000), {"threads": 1})])
        runs[0].append(runs[0])  # a cycle: only the collector ends the iterator
        ready.set()
        end = time.monotonic() + 20
        while ext.live_objects()["iter"] and time.monotonic() < end:
            time.sleep(0.01)
    finally:
        gc.set_threshold(*threshold)
        gc.enable()
    assert not runs and ext.live_objects()["iter"] == 0


# ---- states ----


def test_a_closed_iterator_says_so_and_keeps_its_last_words() -> None:
    run = ext.Iter(graph(), {})
    assert run.next() is not None
    state = run.save()
    run.close()
    run.close()
    assert run.save() == state and run.stats()["records"] == 10
    with pytest.raises(ext.Error, match="closed") as raised:
        run.next()
    assert raised.value.code == "HR_ERR_STATE"
    rest = ext.Iter(graph(), {"state": state})
    batch = rest.next()
    assert batch is not None and np.asarray(batch.field(0))[0] == 10
    rest.close()


def test_two_threads_take_turns_in_one_iterator() -> None:
    hold = threading.Event()
    run = ext.Iter(coded(lambda i: (hold.wait(20), i)[1], ["i: int64"]), {})
    taken: list[ext.Batch | None] = []
    looks: list[int] = []
    threads = [threading.Thread(target=lambda: taken.append(run.next())) for _ in range(3)]
    threads.append(threading.Thread(target=lambda: looks.append(run.stats()["batches"])))
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    assert looks == [] and taken == []
    hold.set()
    for thread in threads:
        thread.join()
    assert looks[0] > 0
    assert sorted(np.asarray(b.field(0)).tolist() for b in taken if b is not None) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert taken.count(None) == 1
    run.close()


def test_user_code_does_not_wait_for_the_call_it_is_in() -> None:
    runs: list[ext.Iter] = []
    raised: list[str] = []

    def make(index: int) -> int:
        if index == 3:
            with pytest.raises(ext.Error, match="further up") as error:
                runs[0].next()
            raised.append(error.value.code)
        return index

    runs.append(ext.Iter(coded(make, ["i: int64"]), {"variant": "inline"}))
    assert runs[0].next() is not None and raised == ["HR_ERR_STATE"]
    runs.pop().close()


def test_close_from_another_thread_ends_a_wait() -> None:
    stop = threading.Event()
    run = ext.Iter(coded(lambda i: (stop.wait(0.01), i)[1], ["i: int64"], 10**6, 10**5), {})
    raised: list[str] = []

    def wait() -> None:
        try:
            run.next()
        except ext.Error as error:
            raised.append(error.code)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.1)
    begin = time.monotonic()
    run.close()
    thread.join()
    assert raised == ["HR_ERR_CANCELLED"] and time.monotonic() - begin < 10


def test_user_code_that_closes_its_iterator_cancels_it() -> None:
    runs: list[ext.Iter] = []

    def make(index: int) -> int:
        if index == 5:
            runs[0].close()
        return index

    runs.append(ext.Iter(coded(make, ["i: int64"], 100), {"variant": "inline"}))
    with pytest.raises(ext.Error) as raised:
        while runs[0].next() is not None:
            pass
    assert raised.value.code == "HR_ERR_CANCELLED"
    runs.clear()


def test_user_code_may_run_a_pipeline_of_its_own() -> None:
    def make(index: int) -> int:
        return sum(drain(graph(10 + index, 4), threads=1))

    assert drain(coded(make, ["i: int64"], 4)) == [45, 55, 66, 78]


# ---- signals, forks, the end ----

WAITING = "run = ext.Iter({graph}, {{}})\nprint('waiting', flush=True)\n"
SLOW = "ext.Graph.parse('''headrace: 1\npipeline:\n  - source.range: {n: 100000}\n  - debug.sleep: {ms: 20}\n  - batch.stack: {size: 100000}\n''', 'x', {})"
SPINNING = "coded(lambda i: [i for _ in iter(int, 1)], ['i: int64'], 100, 100)"
SLEEPING = "coded(lambda i: time.sleep(3600), ['i: int64'], 100, 100)"


@pytest.mark.parametrize("made", [SLOW, SPINNING, SLEEPING], ids=["engine", "spinning code", "sleeping code"])
def test_ctrl_c_ends_a_wait(made: str) -> None:
    text = (
        WAITING.format(graph=made)
        + "try:\n    run.next()\nexcept KeyboardInterrupt:\n    print('interrupted', flush=True)\n"
        + "names = [open(f'/proc/self/task/{t}/comm').read() for t in os.listdir('/proc/self/task')]\n"
        + "print(sum(n.startswith('hr-') for n in names), flush=True)\n"
        + ("os._exit(0)\n" if made == SLEEPING else "")
    )
    process = script(text)
    assert process.stdout is not None and process.stdout.readline() == "waiting\n"
    time.sleep(0.3)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted\n"
    waited = time.monotonic() - begin
    threads = int(process.stdout.readline())
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert waited < 10  # of 3600 s, of 1000 s and more; how soon depends on the machine
    if made != SLEEPING:  # nothing can wake that one
        assert threads == 0


def test_a_handler_that_does_not_raise_does_not_disturb() -> None:
    process = script(
        "signal.signal(signal.SIGUSR1, lambda *a: print('handled', flush=True))\n"
        "def make(i):\n    time.sleep(0.05)\n    return i\n"
        "run = ext.Iter(coded(make, ['i: int64'], 20, 20), {'threads': 1})\nprint('waiting', flush=True)\n"
        "print(run.next().records, flush=True)\n"
    )
    assert process.stdout is not None and process.stdout.readline() == "waiting\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGUSR1)
    assert process.stdout.readline() == "handled\n"
    assert process.communicate(timeout=60)[0] == "20\n"
    assert process.returncode == 0


@pytest.mark.parametrize(
    "made",
    ["graph(100000, 10)", SLOW, "coded(lambda i: i, ['i: int64'], 10**6)", SPINNING],
    ids=["numbers", "slow", "code", "spinning"],
)
@pytest.mark.parametrize(
    "where", ["", "threading.Thread(target=run.next, daemon=True).start(); time.sleep(0.2)"], ids=["idle", "daemon"]
)
def test_the_interpreter_ends_while_threads_run(made: str, where: str) -> None:
    process = script(WAITING.format(graph=made) + where)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (0, "waiting\n"), errors
    assert "Fatal" not in errors and "Segmentation" not in errors


def test_what_is_told_of_an_interrupted_call_is_not_interrupted() -> None:
    """An exception raised in an import there would leave the import lock to a thread that is gone."""
    process = script(
        "class Slow:\n"
        "    def format_exception(self, error):\n"
        "        try:\n"
        "            told.set()\n"
        "            for _ in range(100):\n"
        "                time.sleep(0.01)\n"
        "        except KeyboardInterrupt:\n"
        "            print('interrupted', flush=True)\n"
        "        return []\n"
        "told, sys.modules['traceback'] = threading.Event(), Slow()\n"
        "run = ext.Iter(coded(lambda i: [i for _ in iter(int, 1)], ['i: int64'], 100, 100), {'threads': 1})\n"
        "def take():\n"
        "    try:\n"
        "        run.next()\n"  # closes the run when close() has been called
        "    except ext.Error:\n"
        "        pass\n"
        "thread = threading.Thread(target=take)\n"
        "thread.start()\n"
        "time.sleep(0.2)\n"
        "run.close()\n"
        "thread.join()\n"
        "print(told.is_set())\n"
    )
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (0, "True\n"), errors


def test_an_error_after_the_end_of_the_program_is_an_error() -> None:
    """Functions of atexit that came before ours run after it."""
    process = program(LATE)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (0, "end\nHR_ERR_ARGUMENT\n"), errors


LATE = """
import atexit, sys

def late():
    try:
        extfns.run(extfns.coded(lambda index: 1 // 0, ["i: int64"]))
    except extfns.ext.Error as error:
        print(error.code, flush=True)

atexit.register(late)
sys.path.insert(0, sys.argv[1])
import extfns
print("end", flush=True)
"""


@pytest.mark.fork
def test_a_forked_child_is_told_and_does_not_hang() -> None:
    process = script(
        "run = ext.Iter(graph(100000, 10), {'threads': 2})\nbatch = run.next()\nfield = batch.field(0)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    try:\n        run.next()\n    except ext.Error as error:\n        print(error.code, error)\n"
        "    print(bytes(field)[8])\n"
        "    run.close()\n    del batch, field, run\n"
        "    mine = ext.Iter(graph(20, 20), {})\n    print(mine.next().records, flush=True)\n    sys.exit(0)\n"
        "print(os.waitpid(pid, 0)[1], run.next().epoch)\n"
    )
    output, errors = process.communicate(timeout=60)
    lines = output.splitlines()
    assert process.returncode == 0, errors
    assert lines[0].startswith("HR_ERR_STATE") and "forked" in lines[0]
    assert lines[1:] == ["1", "20", "0 0"], errors


@pytest.mark.fork
def test_a_forked_child_runs_code_that_other_threads_were_in() -> None:
    process = script(
        "child = False\n"
        "def make(i):\n    if not child:\n        time.sleep(0.3)\n    return i\n"
        "made = coded(make, ['i: int64'], 1000, 100)\n"
        "run = ext.Iter(made, {'threads': 8})\ntime.sleep(0.2)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    child = True\n"
        "    for _ in range(5):\n"
        "        mine, records = ext.Iter(made, {'threads': 8}), 0\n"
        "        while (batch := mine.next()) is not None:\n            records += batch.records\n"
        "        mine.close()\n"
        "    print(records, flush=True)\n    os._exit(0)\n"
        "print(os.waitpid(pid, 0)[1], flush=True)\nos._exit(0)\n"
    )
    output, errors = process.communicate(timeout=60)
    assert output.splitlines() == ["1000", "0"], errors


def test_a_sub_interpreter_is_refused(tmp_path: pathlib.Path) -> None:
    """In a program of its own: where there was one, PyGILState_Check holds for ever, which torch's backward refuses."""
    name = "_xxsubinterpreters" if sys.version_info < (3, 13) else "_interpreters"
    pytest.importorskip(name)
    inside = (
        "import sys\nsys.path[:] = {path!r}\ntry:\n    import headrace\nexcept ImportError as e:\n"
        "    assert 'interpreter' in str(e), e\nelse:\n    raise SystemExit('imported')"
    )
    script = (
        f"import sys\nimport {name} as interpreters\nhere = interpreters.create()\n"
        f"assert interpreters.run_string(here, {inside!r}.format(path=sys.path)) is None\ninterpreters.destroy(here)\n"
    )
    done = run_script(tmp_path, script)
    assert done.returncode == 0, done.stderr


# ---- the rest ----


def test_the_digest_is_the_commands(command: str, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "graph.yaml"
    file.write_text(NUMBERS % (100, 7))
    said = subprocess.run([command, "run", "--digest", "--json", str(file)], check=True, text=True, capture_output=True)
    digest = ext.Digest()
    run = ext.Iter(ext.Graph.load(os.fspath(file), {}), {})
    while (batch := run.next()) is not None:
        ext.digest_batch(digest, batch)
    run.close()
    assert digest.hexdigest() == json.loads(said.stdout)["digest"]


def test_a_packer_is_used_by_one_thread_until_it_is_closed(tmp_path: pathlib.Path) -> None:
    numbers = ext.Graph()
    numbers.add("source.range", None, [], '{"n": 30}')
    packer = ext.Packer(numbers, {}, str(tmp_path), "part", "records", 0, 10, 0, 0, False)
    assert ext.live_objects()["packer"] == 1 and packer.state() is None and not packer.complete()
    with pytest.raises(TypeError):
        packer.add(3)
    with pytest.raises(ext.Error, match="no shard has ended"):
        packer.mark("{}")
    packer.close()
    with pytest.raises(ext.Error, match="closed"):
        packer.finish()
    assert ext.live_objects()["packer"] == 0
    assert [p.name for p in tmp_path.iterdir()] == ["part.json"]


def test_the_table_of_ops_is_whole() -> None:
    ops = {op["name"]: op for op in ext.op_list()}
    assert list(ops) == sorted(ops)
    param = {p["name"]: p for p in ops["source.range"]["params"]}["n"]
    assert param["required"] and param["type"] == "int" and param["fallback"] is None and param["help"]
    assert ops["image.flip"]["traits"] and ops["image.flip"]["kind"] == "map"


def test_nodes_fields_and_text_of_a_graph() -> None:
    made = graph(30, 7)
    made.freeze()
    assert [n["op"] for n in made.nodes()] == ["source.range", "batch.stack"]
    assert json.loads(made.nodes()[0]["params"]) == {"n": 30} and made.nodes()[1]["inputs"] == [0]
    value = {"name": "value", "dtype": "int64", "ragged": False, "text": False, "shape": [], "dims": [], "classes": []}
    assert made.fields(0) == [value]
    assert made.record_count() == 30 and len(made.fingerprint()) == 32
    again = ext.Graph.parse(made.print("json"), "x.json", {})
    again.freeze()
    assert again.fingerprint() == made.fingerprint()
    assert json.loads(made.explain({}, True)) and "stage 1" in made.explain({"threads": 1}, False)
