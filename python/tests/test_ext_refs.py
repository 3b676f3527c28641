"""Reference counts: what the extension does many times leaves counts and blocks as they were.

A release build of CPython has no sys.gettotalrefcount. Instead: handles by class, blocks of
the allocator (any lost object shows), and the counts of objects that outlive every call
(a lost reference to one of them shows in no other way).
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

from headrace import _headrace as ext
from test_ext_memory import NUMBERS, coded, graph, nothing_left  # noqa: F401

ROUNDS = 25
# A reference lost in each round would be ROUNDS.
SLACK = ROUNDS // 2
# A block lost with each of a round's 24 records or more would be 24 * ROUNDS. Where exceptions
# are raised, caches of the interpreter fill up for hundreds of rounds: by 2 to 8 in each of the
# first 50, by 3 in all of the 300 that follow 650.
BLOCKS_SLACK = 12 * ROUNDS


class Tally:
    """Long-lived things that the paths below get, return and raise."""

    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    text = b"0123456789" * 10
    kind = type("Bad", (ValueError,), {})
    options: ClassVar[dict[str, Any]] = {"epochs": 2, "threads": 2}


def make(index: int) -> Any:
    return Tally.array, Tally.text, index


def passed_on(array: Any, text: Any) -> Any:
    return array, text


def fail(array: Any, text: Any) -> Any:
    raise Tally.kind("a bad record")


def children(array: Any, text: Any) -> Any:
    return [(array, text), (Tally.array, b"x")]


def run(made: ext.Graph, **options: Any) -> None:
    runner = ext.Iter(made, {**Tally.options, **options})
    while (batch := runner.next()) is not None:
        for name in batch.names:
            batch.field(name)
    runner.close()


def with_code(kind: str, function: Callable[..., Any]) -> ext.Graph:
    outputs = ["a: float32[2, 3]", "t: bytes"]
    made = ext.Graph()
    made.code("s", "s", "source", make)
    made.code("f", "f", kind, function)
    node = made.add("code.source", None, [], json.dumps({"code": "s", "count": 12, "outputs": [*outputs, "n: int64"]}))
    params: dict[str, Any] = {"code": "f", "fields": ["a", "t"]}
    node = made.add(
        f"code.{kind}", None, [node], json.dumps(params if kind == "filter" else {**params, "outputs": outputs})
    )
    made.add("batch.stack", None, [node], '{"size": 4}')
    return made


def graphs() -> None:
    made = ext.Graph.parse(NUMBERS % (20, 10), "test.yaml", {})
    made.freeze()
    told = made.fingerprint(), made.print("yaml"), made.print("json"), made.nodes(), made.fields(1), made.params()
    assert all(t is not None for t in (*told, made.record_count(), made.explain({}, True), ext.op_list()))


def wrong_graphs() -> None:
    for text in ("headrace: 1\npipeline:\n  - source.rang: {n: 1}\n", "headrace: 2", "]"):
        with pytest.raises(ext.Error):
            ext.Graph.parse(text, "test.yaml", {})
    for op, inputs, params in (("source.range", [7], "{}"), ("no.op", [], None), ("source.range", [], '{"n": "x"}')):
        with pytest.raises(ext.Error):
            ext.Graph().add(op, None, inputs, params)
    for wrong in ({"thread": 1}, {"variant": "fast"}, {"threads": "x"}):
        with pytest.raises((ext.Error, ValueError, TypeError)):
            ext.Iter(graph(), wrong)
    with pytest.raises(ValueError):
        ext.Graph().code("f", "f", "no kind", make)


def fields() -> None:
    runner = ext.Iter(coded(make, ["a: float32[2, 3]", "t: bytes", "n: int64"]), {"variant": "inline"})
    batch = runner.next()
    assert batch is not None
    array, text = batch.field("a"), batch.field(1)
    view, tensor, old = np.asarray(array), np.from_dlpack(array), array.__dlpack__()
    shown = array.writable(), array.__dlpack__(copy=True), text.bytes_list(), np.asarray(text.values()), text.offsets()
    told = array.shape, array.strides, array.dtype, array.name, array.nbytes, batch.records, batch.epoch
    assert len(shown) + len(told) == 12
    with pytest.raises(BufferError):
        memoryview(text)
    with pytest.raises(ext.Error):
        batch.field("no")
    del view, tensor, old, shown
    assert runner.save() and runner.stats()
    runner.close()


def bad_records() -> None:
    for on_error in ("skip", "fail"):
        try:
            run(with_code("map", fail), on_error=on_error)
        except ext.Error as error:
            assert type(error.__cause__) is Tally.kind


def wrong_outputs() -> None:
    for value in (None, "text", 1 << 70, np.zeros((3, 3)), [[1, 2], [3]], object()):
        with pytest.raises(ext.Error):
            run(coded(lambda index, value=value: value, ["a: float32[2]"]))
    run(coded(lambda index: [1.0, 2], ["a: float32[2]"]))
    run(coded(lambda index: 1.5, ["a: bfloat16"]))


PATHS: dict[str, Callable[[], None]] = {
    "graphs": graphs,
    "wrong graphs": wrong_graphs,
    "fields": fields,
    "map": lambda: run(with_code("map", passed_on)),
    "filter": lambda: run(with_code("filter", lambda array, text: len(text) > 3)),
    "expand": lambda: run(with_code("expand", children)),
    "bad records": bad_records,
    "wrong outputs": wrong_outputs,
}


def lasting() -> list[Any]:
    """What the counts of are looked at."""
    types = [ext.Error, ext.Graph, ext.Iter, ext.Batch, ext.Field, np.ndarray, np.dtype("float32"), np.dtype("int64")]
    functions = [make, passed_on, fail, children, np.asarray]
    return [*types, *functions, Tally.array, Tally.text, Tally.kind, Tally.options]


@pytest.fixture
def quiet() -> Iterator[None]:
    """The collector runs when it is told to."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_counts_stay_as_they_were(path: Callable[[], None]) -> None:
    def measure() -> tuple[int, list[int], dict[str, int]]:
        gc.collect()
        return sys.getallocatedblocks(), [sys.getrefcount(o) for o in things], ext.live_objects()

    def lost() -> str:
        """What one more window of ROUNDS loses, or nothing."""
        blocks, counts, handles = measure()
        for _ in range(ROUNDS):
            path()
        after = measure()
        assert after[2] == handles
        if after[0] - blocks >= BLOCKS_SLACK:
            return f"{(after[0] - blocks) / ROUNDS:.1f} blocks are lost in each round"
        for thing, before, count in zip(things, counts, after[1], strict=True):
            if abs(count - before) >= SLACK:
                return f"{thing!r}: {(count - before) / ROUNDS:+.1f} references in each round"
        return ""

    things = lasting()
    for _ in range(5):
        path()
    windows = [lost()]
    while windows[-1] and len(windows) < 4:  # caches fill up; what is lost is lost in every window
        windows.append(lost())
    assert not windows[-1], windows
