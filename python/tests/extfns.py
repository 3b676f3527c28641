"""What the tests of the extension share: small graphs, and rounds of all it does.

A round creates, uses and releases everything it needs, so that a count before and after
some rounds sees what is lost (test_ext_refs.py, tools/debug-python). Nothing here needs
pytest or NumPy itself: programs of their own start faster, and an interpreter that counts
references sees those of NumPy from PyPI only in part. What an array is comes from `arrays`.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from array import array
from collections.abc import Callable
from typing import Any, ClassVar

from headrace import _headrace as ext

NUMBERS = "headrace: 1\npipeline:\n  - source.range: {n: %d}\n  - batch.stack: {size: %d}\n"


def graph(records: int = 20, size: int = 10) -> ext.Graph:
    return ext.Graph.parse(NUMBERS % (records, size), "test.yaml", {})


def coded(function: Any, outputs: list[str], count: int = 10, size: int = 5, op: str = "batch.stack") -> ext.Graph:
    """A graph whose source is `function`."""
    made = ext.Graph()
    made.code("f", "f", "source", function)
    node = made.add("code.source", "make", [], json.dumps({"code": "f", "count": count, "outputs": outputs}))
    made.add(op, None, [node], json.dumps({"size": size}))
    return made


def first(made: ext.Graph, **options: Any) -> ext.Batch:
    run = ext.Iter(made, {"variant": "inline", **options})
    batch = run.next()
    run.close()
    assert batch is not None
    return batch


class Foreign:
    """An array of another library: DLPack, and neither a buffer nor a way to NumPy."""

    def __init__(self, shown: Any) -> None:
        self.shown = shown

    def __dlpack__(self) -> Any:
        return self.shown.__dlpack__()

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("this array is not for NumPy")


# ---- rounds ----


class Tally:
    """Long-lived things that the rounds get, return and raise."""

    array = memoryview(array("f", range(6))).cast("B").cast("f", (2, 3))
    text = b"0123456789" * 10
    kind = type("Bad", (ValueError,), {})
    options: ClassVar[dict[str, Any]] = {"epochs": 2, "threads": 2}


OUTPUTS = ["a: float32[2, 3]", "t: bytes"]


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


def with_code(kind: str, function: Callable[..., Any], variant: str = "threads") -> ext.Graph:
    made = ext.Graph()
    made.code("s", "s", "source", make)
    made.code("f", "f", kind, function)
    node = made.add("code.source", None, [], json.dumps({"code": "s", "count": 12, "outputs": [*OUTPUTS, "n: int64"]}))
    params: dict[str, Any] = {"code": "f", "fields": ["a", "t"], "variant": variant}
    node = made.add(
        f"code.{kind}", None, [node], json.dumps(params if kind == "filter" else {**params, "outputs": OUTPUTS})
    )
    made.add("batch.stack", None, [node], '{"size": 4}')
    return made


@contextlib.contextmanager
def refused(*kinds: type[BaseException]) -> Any:
    """As pytest.raises; an exception that is kept would be counted."""
    try:
        yield
    except kinds:
        return
    raise AssertionError(f"no {kinds}")


def graphs() -> None:
    made = ext.Graph.parse(NUMBERS % (20, 10), "test.yaml", {})
    made.freeze()
    told = made.fingerprint(), made.print("yaml"), made.print("json"), made.nodes(), made.fields(1), made.params()
    assert all(t is not None for t in (*told, made.record_count(), made.explain({}, True), ext.op_list()))


def wrong_graphs() -> None:
    for text in ("headrace: 1\npipeline:\n  - source.rang: {n: 1}\n", "headrace: 2", "]"):
        with refused(ext.Error):
            ext.Graph.parse(text, "test.yaml", {})
    for op, inputs, params in (("source.range", [7], "{}"), ("no.op", [], None), ("source.range", [], '{"n": "x"}')):
        with refused(ext.Error):
            ext.Graph().add(op, None, inputs, params)
    for wrong in ({"thread": 1}, {"variant": "fast"}, {"threads": "x"}):
        with refused(ext.Error, ValueError, TypeError):
            ext.Iter(graph(), wrong)
    with refused(ValueError):
        ext.Graph().code("f", "f", "no kind", make)


def fields() -> None:
    runner = ext.Iter(coded(make, [*OUTPUTS, "n: int64"]), {"variant": "inline"})
    batch = runner.next()
    assert batch is not None
    array, text = batch.field("a"), batch.field(1)
    view, old, new = memoryview(array), array.__dlpack__(), array.__dlpack__(max_version=(1, 0))
    shown = array.writable(), array.__dlpack__(copy=True), text.strings(), text.values(), memoryview(text.offsets())
    told = array.shape, array.strides, array.dtype, array.name, array.nbytes, batch.records, batch.epoch
    assert len(shown) + len(told) == 12
    with refused(BufferError):
        memoryview(text)
    with refused(BufferError):
        array.__dlpack__(stream=1)
    with refused(ext.Error):
        batch.field("no")
    del view, old, new, shown
    digest = ext.Digest()
    ext.digest_batch(digest, batch)
    assert len(digest.hexdigest()) == 32 and runner.stats() and runner.node_stats()
    with contextlib.closing(ext.Iter(coded(make, [*OUTPUTS, "n: int64"]), {"state": runner.save()})) as rest:
        assert rest.next() is not None
    runner.close()


def kept_batches() -> None:
    """Batches and what shows them outlive iterators that end in many ways."""
    kept: list[Any] = []
    for variant in ("threads", "inline"):
        for end in ("close", "drop", "cancel"):
            runner = ext.Iter(coded(make, [*OUTPUTS, "n: int64"], 1000), {"variant": variant})
            batch = runner.next()
            assert batch is not None
            field = batch.field("a")
            kept += [batch, field, memoryview(field), field.__dlpack__(), field.__dlpack__(max_version=(1, 0))]
            if end != "drop":
                getattr(runner, end)()
            del runner, batch, field
    while kept:
        kept.pop(0)


def foreign() -> None:
    field = first(coded(make, [*OUTPUTS, "n: int64"])).field("a")
    shown = Foreign(field)
    run(coded(lambda index: shown, ["a: float32[5, 2, 3]"]))
    with refused(ext.Error):
        run(coded(lambda index: shown, ["a: float32[2]"]))


def bad_records() -> None:
    for variant in ("threads", "inline"):
        for on_error in ("skip", "fail"):
            try:
                run(with_code("map", fail, variant), on_error=on_error)
            except ext.Error as error:
                assert type(error.__cause__) is Tally.kind


def wrong_outputs() -> None:
    square = Tally.array
    for value in (None, "text", 1 << 70, square, [[1, 2], [3]], object()):
        with refused(ext.Error):
            run(coded(lambda index, value=value: value, ["a: float32[2]"]))
    run(coded(lambda index: [1.0, 2], ["a: float32[2]"]))
    run(coded(lambda index: 1.5, ["a: bfloat16"]))


def endings() -> None:
    """What is no error ends a run, and sources say where they end."""

    def stop(index: int) -> int:
        if index == 3:
            raise SystemExit
        return index

    for variant in ("threads", "inline"):
        with refused(SystemExit):
            run(coded(stop, ["i: int64"]), variant=variant)
    run(coded([1, 2, 3].__getitem__, ["i: int64"], -1))
    runs: list[ext.Iter] = []

    def close(index: int) -> int:
        if index == 7:
            runs[0].close()
        return index

    runs.append(ext.Iter(coded(close, ["i: int64"]), {"variant": "inline"}))
    with refused(ext.Error):
        while runs[0].next() is not None:
            pass
    runs.clear()


def cycles() -> None:
    """A graph and an iterator that only the collector can end; it runs when the counting is done."""

    class Holder:
        def make(self, index: int) -> int:
            return index

    holder: Any = Holder()
    holder.graph = coded(holder.make, ["i: int64"])
    holder.run = ext.Iter(holder.graph, {"threads": 1})
    assert holder.run.next() is not None


def served() -> None:
    """The worker's side and the engine's in one process: a thread serves the socket."""
    servers: list[threading.Thread] = []
    found = {"f": ("map", passed_on)}

    def start(fd: int) -> int:
        theirs = socket.socket(fileno=os.dup(fd))

        def serve() -> None:
            with theirs:
                ext.serve(theirs.fileno(), found.get)

        servers.append(threading.Thread(target=serve))
        servers[-1].start()
        return len(servers)

    made = with_code("map", passed_on, "processes")
    made.host(start, lambda number: None, str)
    run(made, epochs=1)
    for server in servers:
        server.join()
    assert servers


ROUNDS: dict[str, Callable[[], None]] = {
    "graphs": graphs,
    "wrong graphs": wrong_graphs,
    "fields": fields,
    "kept batches": kept_batches,
    "foreign arrays": foreign,
    "map": lambda: run(with_code("map", passed_on)),
    "map inline": lambda: run(with_code("map", passed_on, "inline")),
    "filter": lambda: run(with_code("filter", lambda array, text: len(text) > 3)),
    "expand": lambda: run(with_code("expand", children)),
    "worker": served,
    "bad records": bad_records,
    "wrong outputs": wrong_outputs,
    "endings": endings,
    "cycles": cycles,
}
