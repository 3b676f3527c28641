"""What people get wrong, and what values may look like: the errors' words and parts."""

from __future__ import annotations

import copy
import os
import pathlib
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import badfns
import headrace as hr
import userfns
from headrace import _headrace

# Values that no operator takes for a parameter of another kind.
ODD = [object(), -(10**30), float("nan"), b"bytes", {1: 2}, "a\0b", "\ud800", len, 1j, [[]], {"a": object()}]


def first(pipe: hr.Pipeline, **options: Any) -> hr.Batch:
    return next(iter(pipe.loader(**{"output": "numpy", **options})))


# ---- operators ----


def operators() -> list[tuple[str, Callable[..., hr.Pipeline], list[str]]]:
    """(name, a call with one argument after the other, names of the parameters)."""
    made = []
    for op in _headrace.op_list():
        if op["name"].startswith("code."):
            continue
        inputs = {"source": 0, "zip": 2}.get(op["kind"], 1)
        fn = getattr(hr.ops, op["name"].replace(".", "_"))

        def call(fn: Any = fn, inputs: int = inputs, **params: Any) -> Any:
            return fn(*[hr.range(9)] * inputs, **params)

        made.append((op["name"], call, [p["name"] for p in op["params"]]))
    return made


@pytest.mark.parametrize(("op", "call", "params"), operators(), ids=lambda v: v if isinstance(v, str) else "")
def test_every_operator_blames_the_argument(op: str, call: Any, params: list[str]) -> None:
    with pytest.raises(hr.ArgumentError, match="there is no argument 'filed'") as caught:
        call(filed=1)
    assert (caught.value.op, caught.value.param, caught.value.node) == (op, "filed", op)
    for odd in ODD:
        for param in [*params, "name", *(["depends_on", "keep_position"] if not op.startswith("source.") else [])]:
            if (op, param) in [("record.select", "fields"), ("record.drop", "fields")]:
                continue  # given one by one
            with pytest.raises(hr.HeadraceError) as caught:
                call(**{param: odd})
                raise AssertionError(f"{op} took {param}={odd!r}")
            assert caught.value.op == op and caught.value.line == 0, str(caught.value)


@pytest.mark.parametrize(
    ("make", "kind", "words", "op", "param"),
    [
        (lambda p: p.batch(4, True), hr.ArgumentError, "too many positional", "batch.stack", ""),
        (lambda p: p.batch(), hr.ArgumentError, "missing a required argument: 'size'", "batch.stack", ""),
        (lambda p: p.take(2, name=5), hr.ArgumentError, "not 5", "order.take", "name"),
        (lambda p: p.take(2, name=""), hr.ArgumentError, "not ''", "order.take", "name"),
        (lambda p: p.take(2, name="n" * 64), hr.ArgumentError, "1 to 63", "order.take", ""),
        (lambda p: p.shuffle(keep_position="no"), hr.DtypeError, "bool", "order.shuffle", "keep_position"),
        (lambda p: hr.ops.image_resize(3, 8), hr.ArgumentError, "hr.files()", "image.resize", ""),
        (lambda p: hr.range(9, name="x").take(2, name="x").fields, hr.GraphError, "another name", "order.take", ""),
        (lambda p: p.map(abs, fields=3), hr.ArgumentError, "names of fields", "code.map", "fields"),
        (lambda p: hr.from_dataset([1], names=3), hr.ArgumentError, "names of fields", "code.source", "names"),
        (lambda p: hr.from_dataset([(1, 2)], names=["a", "a"]), hr.ArgumentError, "twice", "code.source", "names"),
        (lambda p: hr.from_iterable([1], names=[1]), hr.ArgumentError, "names of fields", "code.source", "names"),
        (lambda p: hr.from_dataset(np.array(3)), hr.CodeError, "len()", "code.source", "dataset"),
        (lambda p: hr.from_dataset(badfns.Frame()), hr.ArgumentError, "to_numpy", "code.source", "dataset"),
        (lambda p: hr.from_dataset([{"a": {}}]).fields, hr.DtypeError, "'a'", "code.source", ""),
        (lambda p: p.map(abs, fields=[1]), hr.ArgumentError, "names of fields", "code.map", "fields"),
        (lambda p: p.map(abs, fields=["a", "a"]), hr.ArgumentError, "twice", "code.map", "fields"),
        (lambda p: p.map(abs, outputs=3), hr.ArgumentError, "hr.spec", "code.map", "outputs"),
        (lambda p: p.map(abs, outputs={"a": ("uint8", (2,), 3)}), hr.DtypeError, "no", "code.map", "dtype"),
        (lambda p: p.map(abs, outputs={"a": None}), hr.DtypeError, "None", "code.map", "dtype"),
        (lambda p: p.map(abs, version=2), hr.ArgumentError, "such as '2'", "code.map", "version"),
        (lambda p: p.map(abs, version="1#2"), hr.ArgumentError, "without '#'", "code.map", "version"),
        (lambda p: p.map(abs, seed_globals="no"), hr.ArgumentError, "True or False", "code.map", "seed_globals"),
        (lambda p: p.filter(None), hr.ArgumentError, "function", "code.filter", "fn"),
        (lambda p: p.map(badfns.later), hr.ArgumentError, "async", "code.map", "fn"),
        (lambda p: p.flat_map(badfns.later_many), hr.ArgumentError, "async", "code.expand", "fn"),
        (lambda p: p.filter(badfns.some), hr.ArgumentError, "generator", "code.filter", "fn"),
        (lambda p: p.map(badfns.Some()), hr.ArgumentError, ".flat_map", "code.map", "fn"),
        (lambda p: p.op("code.map", code="x"), hr.ArgumentError, "operator", "", "operator"),
        (lambda p: hr.from_dataset([1], variant="fork"), hr.ArgumentError, "'threads'", "code.source", "variant"),
        (lambda p: hr.spec("float32", 3), hr.ArgumentError, "one entry per dimension", "", "shape"),
        (lambda p: hr.spec("float32", "hw"), hr.ArgumentError, "one entry per dimension", "", "shape"),
        (lambda p: hr.spec(None), hr.DtypeError, "None", "", "dtype"),
        (lambda p: hr.load(3), hr.ArgumentError, "path", "", "path"),
        (lambda p: p.save(None), hr.ArgumentError, "path", "", "path"),
        (lambda p: p.save("/nowhere/x.yaml"), hr.ReadError, "/nowhere/x.yaml", "", ""),
        (lambda p: hr.from_yaml(b"x"), hr.ArgumentError, "text", "", "text"),
        (lambda p: hr.from_yaml("\ud800"), hr.ArgumentError, "UTF-8", "", "text"),
        (lambda p: hr.from_yaml("", n=object()), hr.ArgumentError, "n cannot be", "parameters", "n"),
        (lambda p: hr.Pipeline(), hr.ArgumentError, "hr.files()", "", ""),
        (lambda p: list(p), hr.ArgumentError, "pipe.loader()", "", ""),
    ],
)
def test_mistakes_are_told_with_op_and_parameter(
    make: Any, kind: type[hr.HeadraceError], words: str, op: str, param: str
) -> None:
    with pytest.raises(kind) as caught:
        make(hr.range(9))
    assert words in str(caught.value) and (caught.value.op, caught.value.param) == (op, param), str(caught.value)


def test_names_of_the_package_have_a_nearest_one() -> None:
    with pytest.raises(AttributeError) as caught:
        _ = hr.file  # type: ignore[attr-defined]
    assert (caught.value.name, caught.value.obj) == ("file", hr)  # the interpreter adds "Did you mean: 'files'?"


# ---- pipelines are values ----


def test_what_was_given_may_change_afterwards() -> None:
    mean, std = [0.5, 0.5, 0.5], np.array([1.0, 1.0, 1.0])
    pipe = hr.files("/nowhere").decode().normalize(mean, std)
    text = pipe.to_yaml()
    mean[0] = std[0] = 9.0
    assert pipe.to_yaml() == text


def test_a_pipeline_cannot_be_changed() -> None:
    pipe = hr.range(3)
    for change in (lambda: setattr(pipe, "seed", 1), lambda: setattr(pipe, "_node", 1), lambda: delattr(pipe, "_node")):
        with pytest.raises(AttributeError, match="never changes"):
            change()


def test_copies_and_pickles_of_a_pipeline_are_equal() -> None:
    base = hr.range(9)
    for pipe in (
        base,
        hr.zip(base.shuffle(seed=1), base.shuffle(seed=2), prefix=["a_", "b_"], paired=False).batch(2),
        base.map(userfns.double).filter(userfns.is_even).batch(2),
        hr.from_dataset([1, 2, 3]).map(userfns.double),
        hr.from_yaml(base.shuffle().to_yaml()),
    ):
        for _ in range(2):  # the second time it is built
            again = pickle.loads(pickle.dumps(pipe))
            assert again == pipe and hash(again) == hash(pipe) and {pipe: 1}[again] == 1
            assert copy.copy(pipe) is copy.deepcopy(pipe) is pipe


def test_dtypes_of_numpy_and_torch_are_parameters() -> None:
    wanted = hr.range(3).cast("float32", field="value")
    assert hr.range(3).cast(np.float32, field="value") == wanted  # type: ignore[arg-type]
    assert hr.range(3).cast(np.dtype("f4"), field="value") == wanted  # type: ignore[arg-type]
    torch = pytest.importorskip("torch")
    assert hr.range(3).cast(torch.float32, field="value") == wanted


# ---- batches ----


def test_fields_may_be_called_like_attributes() -> None:
    names = ["names", "keys", "items", "copy", "class", "_x", "with space", "records", "to", "get", "_batch", "__len__"]
    batch = first(hr.range(5).map(lambda x: {n: x + i for i, n in enumerate(names)}).batch(5))
    assert list(batch) == names and batch.records == 5
    for i, name in enumerate(names):
        assert batch[name].tolist() == [x + i for x in range(5)]
    assert pickle.loads(pickle.dumps(batch)) == batch == copy.deepcopy(batch)


@pytest.mark.parametrize("key", [0, None, slice(2), ["value"]])
def test_a_batch_is_asked_for_names_only(key: Any) -> None:
    with pytest.raises(hr.ArgumentError, match=r"batch\['value'\]"):
        first(hr.range(5).batch(3))[key]


def test_batches_are_equal_when_their_values_are() -> None:
    pipe = hr.range(5).map(lambda x: {"a": np.full(x % 2, x), "b": str(x)}).batch(3, ragged=True)
    assert first(pipe) == first(pipe) == first(pipe, output="headrace") != first(pipe, seed=1)["b"]
    one, other = list(hr.range(4).batch(2).loader(output="numpy"))
    assert one != other and one != {"value": one.value} and one != None  # noqa: E711
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_batches_can_be_pickled_and_keep_their_place() -> None:
    for output in ("numpy", "headrace"):
        batch = list(hr.range(5).batch(3).loader(output=output, epochs=2))[3]  # type: ignore[arg-type]
        again = pickle.loads(pickle.dumps(batch))
        assert (again.records, again.epoch, again.names, again.value.tolist()) == (2, 1, ("value",), [3, 4])
        assert repr(again) == repr(batch) == "<Batch of 2 records: value: int64[2]>"


# ---- what functions return ----


@pytest.mark.parametrize(
    "value",
    [
        np.array([1, 2], ">i4"),
        np.array([1.5, 2], ">f8"),
        np.array([[1, 2], [3, 4]], ">u2")[::-1, ::-1],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(6)[::-2],
        np.broadcast_to(np.float32(3), (2, 3)),
        np.zeros((0, 5), np.float32),
        [[1, 2], [3, 4]],
        range(3),
        pytest.param(memoryview(b"abc"), id="memoryview"),
    ],
    ids=str,
)
def test_arrays_of_any_layout_come_back(value: Any) -> None:
    got = first(hr.range(3).map(lambda x: value).batch(3)).value
    wanted = np.stack([np.asarray(value)] * 3)
    assert got.dtype == wanted.dtype.newbyteorder("=") and np.array_equal(got, wanted)


def test_bfloat16_comes_back() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    batch = first(hr.range(3).map(lambda x: np.array([x], ml_dtypes.bfloat16)).batch(3))
    assert batch.value.dtype == ml_dtypes.bfloat16 and batch.value.astype(int).ravel().tolist() == [0, 1, 2]


@pytest.mark.parametrize("value", [{}, {1: 2}, {"": 2}])
def test_records_are_dicts_of_named_fields(value: Any) -> None:
    with pytest.raises(hr.CodeError, match="dict of named fields") as caught:
        _ = hr.range(3).map(lambda x: value).fields
    assert (caught.value.node, caught.value.op) == ("code.map", "code.map")


def test_fields_of_named_tuples_keep_their_names() -> None:
    class Point(NamedTuple):
        x: int
        y: float

    assert first(hr.from_dataset([Point(1, 2.0)]).batch(1)) == Point([1], [2.0])


# ---- what functions raise ----


@pytest.mark.parametrize("variant", ["inline", "threads", "processes"])
@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (badfns.no_memory, "MemoryError"),
        (badfns.odd_words, r"ValueError: bad \ud800   new line"),
        (badfns.no_words, "NoWords (badfns.py:"),
        (badfns.ours, "GraphError: of the user (badfns.py:"),
        (badfns.stops, "StopIteration"),
    ],
)
def test_whatever_is_raised_meets_the_policy(fn: Any, words: str, variant: Any) -> None:
    pipe = hr.range(7).map(fn, fields="value", outputs={"value": "int64"}, variant=variant, name="mine").batch(7)
    with pytest.raises(hr.CodeError) as caught:
        first(pipe, threads=1)
    assert (caught.value.node, caught.value.op, caught.value.record) == ("mine", "code.map", 3)
    assert words in str(caught.value) and caught.value.__cause__ is not None
    assert isinstance(caught.value.__cause__, hr.WorkerTraceback) == (variant == "processes")
    assert first(pipe, threads=1, on_error="skip").value.tolist() == [0, 1, 2, 4, 5, 6]


@pytest.mark.parametrize("fn", [badfns.leaves, badfns.interrupts])
def test_leaving_the_program_in_a_worker_ends_a_record_only(fn: Any) -> None:
    pipe = hr.range(7).map(fn, fields="value", outputs={"value": "int64"}, variant="processes").batch(7)
    with pytest.raises(hr.CodeError) as caught:
        first(pipe, threads=1)
    assert caught.value.record == 3
    assert first(pipe, threads=1, on_error="substitute").value.tolist() == [0, 1, 2, 4, 4, 5, 6]


def test_leaving_the_program_elsewhere_leaves_it() -> None:
    pipe = hr.range(7).map(badfns.leaves, fields="value", outputs={"value": "int64"}).batch(7)
    for threads in (0, 2):
        with pytest.raises(SystemExit, match="3"):
            first(pipe, threads=threads, on_error="skip")


def test_a_dead_worker_is_the_codes_fault() -> None:
    pipe = hr.range(7).map(badfns.dies, fields="value", outputs={"value": "int64"}, variant="processes").batch(7)
    with pytest.raises(hr.CodeError, match="3 times in a row") as caught:
        first(pipe, threads=1)
    assert caught.value.record == 3


# ---- where functions are ----

PROGRAM = """
import headrace as hr
def f(x): return x + 1
if __name__ == "__main__":
    try:
        print([b.value.tolist() for b in hr.range(4).map(f, variant="processes").batch(4).loader(output="numpy")])
    except hr.CodeError as error:
        print(error.node, error)
"""


def run_python(*args: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(pathlib.Path(hr.__file__).parents[1]), *(p for p in sys.path if p)])
    return subprocess.run(
        [sys.executable, *args], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=60
    )


def test_functions_that_workers_cannot_find_are_refused(tmp_path: pathlib.Path) -> None:
    program = "import sys\nsys.modules['cloudpickle'] = None\n" + PROGRAM  # as if it were not installed
    (tmp_path / "__main__.py").write_text(program)
    for args in (["-c", program], [str(tmp_path)]):
        out = run_python(*args)
        assert "code.map node 'code.map': __main__:f cannot be sent to a worker" in out.stdout, out.stderr
        assert "in a notebook, an interactive session" in out.stdout


def test_a_strict_interpreter_has_nothing_to_say(tmp_path: pathlib.Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    out = run_python("-X", "dev", "-W", "error", str(tmp_path / "program.py"))
    assert (out.stdout, out.stderr) == ("[[1, 2, 3, 4]]\n", "")


# ---- Ctrl-C ----

SLEEPER = """
import os, signal, sys, threading, time
import headrace as hr
def sleep(x):
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    time.sleep(30)
    return x
def some():
    yield 1
    sleep(2)
start = time.monotonic()
pipe = hr.range(9).map(sleep, fields="value", outputs={"value": "int64"}, variant="inline").batch(3)
try:
    if sys.argv[1] == "first look":
        hr.range(9).map(sleep).fields
    elif sys.argv[1] == "inline":
        list(pipe.loader(threads=0))
    else:
        list(hr.from_generator(some).batch(1).loader(threads=2))
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - start < 15, flush=True)
    os._exit(0)  # a thread may sleep on
"""


@pytest.mark.parametrize("where", ["first look", "inline", "after the consumer"])
def test_ctrl_c_ends_code_that_would_sleep_for_every_record(where: str) -> None:
    assert run_python("-c", SLEEPER, where).stdout == "interrupted True\n"
