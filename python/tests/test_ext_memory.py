"""The extension's memory: what keeps a batch alive, for how long, and who may write."""

from __future__ import annotations

import ctypes
import gc
import io
import json
import os
import pathlib
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest

import headrace as hr
from extfns import Foreign, coded, first, graph
from headrace import _headrace as ext

pytestmark = pytest.mark.usefixtures("nothing_left")


def rss() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_an_array_keeps_the_batch_alive_and_no_longer() -> None:
    batch = first(graph())
    gone = weakref.ref(batch)
    array = np.asarray(batch.field("value"))
    del batch
    gc.collect()
    assert gone() is None  # the object is not needed for its memory
    assert ext.live_objects()["hold"] == 1
    assert array.tolist() == list(range(10))
    part = array[3:5]
    del array
    assert part.tolist() == [3, 4]
    del part
    assert ext.live_objects()["hold"] == 0


def test_a_batch_outlives_its_iterator_and_graph() -> None:
    batch = first(graph())
    assert batch.records == 10 and batch.epoch == 0 and batch.names == ("value",)
    assert np.asarray(batch.field(0)).sum() == 45
    assert np.asarray(batch.field(-1)).sum() == 45


def test_arrays_are_read_only_by_buffer_and_by_dlpack() -> None:
    field = first(graph()).field("value")
    for array in (np.asarray(field), np.from_dlpack(field)):
        assert not array.flags.writeable
        with pytest.raises(ValueError):
            array.flags.writeable = True
    assert memoryview(field).readonly
    with pytest.raises(TypeError):
        io.BytesIO(b"x").readinto(field)  # asks for a buffer to write to
    assert io.BytesIO(b"12345678").readinto(field.writable()) == 8


class Buffer(ctypes.Structure):
    """Py_buffer; memoryview() hides what the protocol asks of a value without dimensions."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


def test_the_buffer_of_a_single_number_has_no_shape() -> None:
    """CPython's debug build asserts it."""
    pipe = hr.range(4).batch(4).map_batch(lambda x: x.sum(), fields="value", outputs="sum: int64")
    (batch,) = pipe.loader(output="headrace")
    view, full = Buffer(), 0x11C  # PyBUF_FULL_RO
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(batch.raw("sum")), ctypes.byref(view), full)
    found = (view.ndim, view.len, view.itemsize, view.shape, view.strides)
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(view))
    assert found == (0, 8, 8, None, None)
    assert np.asarray(batch.raw("sum")).shape == () and np.frombuffer(batch.raw("sum"), np.int64).tolist() == [6]


def test_writable_is_the_memory_itself_for_the_last_holder_only() -> None:
    batch = first(graph())
    field = batch.field("value")
    copy = np.asarray(field.writable())
    copy[0] = 99
    assert np.asarray(field)[0] == 0
    del batch, copy
    address = np.asarray(field).__array_interface__["data"][0]
    gc.collect()
    alone = np.asarray(field.writable())
    assert alone.__array_interface__["data"][0] == address
    alone[0] = 99
    assert np.asarray(field)[0] == 99


def test_writable_copies_while_an_array_is_out() -> None:
    field = first(graph()).field("value")
    array = np.asarray(field)
    other = np.asarray(field.writable())
    other[0] = 99
    assert array[0] == 0


@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (1, 3)])
def test_a_capsule_that_is_never_consumed_frees_what_it_holds(version: tuple[int, int] | None) -> None:
    field = first(graph()).field("value")
    capsule = field.__dlpack__(max_version=version)
    assert ("dltensor_versioned" in repr(capsule)) == (version is not None and version[0] >= 1)
    assert ext.live_objects()["export"] == 1
    del capsule
    assert ext.live_objects()["export"] == 0


def test_a_consumed_capsule_is_freed_with_the_array() -> None:
    array = np.from_dlpack(first(graph()).field("value"))
    assert ext.live_objects()["export"] == 1 and ext.live_objects()["field"] == 0
    assert array.tolist() == list(range(10))
    del array
    assert ext.live_objects()["export"] == 0


def test_a_consumer_that_refuses_the_tensor_says_so_itself() -> None:
    """It drops the capsule with its exception set."""
    with pytest.raises((RuntimeError, BufferError), match="dtype"):
        np.from_dlpack(first(coded(lambda index: 1.5, ["a: bfloat16"])).field("a"))


def test_dlpack_refuses_what_it_cannot_do() -> None:
    field = first(graph()).field("value")
    assert field.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="stream"):
        field.__dlpack__(stream=1)
    with pytest.raises(BufferError, match=r"\(2, 0\)"):
        field.__dlpack__(dl_device=(2, 0))
    copy = np.from_dlpack(field, copy=True)
    copy[0] = 99
    assert np.asarray(field)[0] == 0


DTYPES = ["uint8", "int8", "int16", "uint16", "int32", "int64", "float16", "float32", "float64", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_goes_in_and_comes_out(dtype: str) -> None:
    values = np.array([[0, 1, 2], [3, 100, 1]]).astype(dtype)
    scalar = values[0, 1].item()
    made = coded(lambda index: (values, scalar), [f"a: {dtype}[2, 3]", f"b: {dtype}"])
    batch = first(made)
    for array in (np.asarray(batch.field("a")), np.from_dlpack(batch.field("a"))):
        assert array.dtype == np.dtype(dtype) and array.shape == (5, 2, 3)
        assert np.array_equal(array[4], values)
    assert np.asarray(batch.field("b")).tolist() == [scalar] * 5
    assert batch.field("a").dtype == dtype
    assert batch.field("a").strides == np.asarray(batch.field("a")).strides


def test_half_and_brain_floats_round_to_the_nearest_even() -> None:
    values = [
        0.0,
        1.0,
        -2.5,
        65504.0,
        65519.9,
        6e-8,
        2.9e-8,
        3.1e-5,
        0.1,
        60000.1,
        float("inf"),
        float("-inf"),
        2049.0,
        2051.0,
    ]
    batch = first(coded(lambda i: (values[i], values[i]), ["h: float16", "b: bfloat16"], len(values), len(values)))
    assert np.asarray(batch.field("h")).tolist() == np.array(values).astype(np.float16).tolist()
    assert batch.field("b").dtype == "bfloat16"
    brain = np.asarray(batch.field("b"))
    assert brain.dtype == np.uint16
    assert brain[1] == 0x3F80 and brain[2] == 0xC020 and brain[8] == 0x3DCD and brain[10] == 0x7F80


def test_byte_strings_are_a_list_or_values_and_offsets() -> None:
    texts = [b"", b"one", b"\0two\0", b"drei", b"x" * 1000]
    batch = first(coded(lambda i: texts[i], ["t: bytes"], 5))
    field = batch.field("t")
    assert field.dtype is None and field.ragged
    assert field.strings() == texts
    offsets = np.asarray(field.offsets())
    assert offsets.tolist() == [0, 0, 3, 8, 12, 1012]
    values = np.asarray(field.values())
    assert values.dtype == np.uint8 and values[3:8].tobytes() == b"\0two\0"
    with pytest.raises(BufferError, match="strings"):
        memoryview(field)
    with pytest.raises(BufferError, match="strings"):
        field.__dlpack__()
    with pytest.raises(ext.Error) as raised:
        first(graph()).field("value").strings()
    assert raised.value.code == "HR_ERR_TYPE"


def test_memoryview_has_shape_format_and_strides() -> None:
    view = memoryview(first(graph()).field("value"))
    assert (view.format, view.shape, view.strides, view.readonly, view.nbytes) == ("l", (10,), (8,), True, 80)


def test_user_code_may_keep_what_it_was_given() -> None:
    kept: list[np.ndarray[Any, Any]] = []
    made = ext.Graph()
    made.code("s", "s", "source", lambda i: np.full(1000, i, np.int32))
    made.code("m", "m", "map", lambda a: (kept.append(a), a)[1])
    node = made.add("code.source", None, [], '{"code": "s", "count": 50, "outputs": ["a: int32[1000]"]}')
    node = made.add("code.map", None, [node], '{"code": "m", "fields": ["a"], "outputs": ["a: int32[1000]"]}')
    made.add("batch.stack", None, [node], '{"size": 5}')
    run = ext.Iter(made, {"epochs": 3})
    while (batch := run.next()) is not None:
        array = np.asarray(batch.field("a"))
        assert (array == array[:, :1]).all()
    run.close()
    assert len(kept) == 150
    for a in kept:
        assert a.flags.writeable and (a == a[0]).all()
    assert sorted(int(a[0]) for a in kept) == sorted(list(range(50)) * 3)


@pytest.mark.memory
def test_epochs_leave_memory_as_it_was() -> None:
    made = coded(lambda i: (np.full(5000, i, np.float32), b"x" * (i * 10)), ["a: float32[5000]", "t: bytes"], 40, 8)

    def epochs(count: int) -> None:
        run = ext.Iter(made, {"epochs": count, "threads": 2})
        while (batch := run.next()) is not None:
            np.asarray(batch.field("a")), batch.field("t").strings(), np.from_dlpack(batch.field("a"))
        run.close()

    epochs(60)
    gc.collect()
    before, objects = rss(), len(gc.get_objects())
    for _ in range(10):
        epochs(20)
    gc.collect()
    assert rss() - before < 32 << 20  # arenas of new threads; a lost batch per epoch is 160 MB
    assert len(gc.get_objects()) - objects < 20


def test_a_cycle_through_user_code_is_collected() -> None:
    class Holder:
        graph: ext.Graph
        run: ext.Iter

        def make(self, index: int) -> int:
            return index

    holder = Holder()
    holder.graph = coded(holder.make, ["i: int64"])
    holder.run = ext.Iter(holder.graph, {})
    assert holder.run.next() is not None
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None


def test_an_iterator_dropped_inside_of_its_own_code_ends() -> None:
    runs: list[ext.Iter] = []
    ready = threading.Event()
    before = ext.live_objects()["code"]

    def make(index: int) -> int:
        ready.wait(10)
        if index == 3:
            runs.clear()
        return index

    runs.append(ext.Iter(coded(make, ["i: int64"], 1000), {"threads": 1}))
    ready.set()
    end = time.monotonic() + 60
    while ext.live_objects()["code"] > before and time.monotonic() < end:
        time.sleep(0.01)
    assert not runs and ext.live_objects()["code"] == before


torch: Any = None
try:
    import torch  # type: ignore[no-redef,import-not-found,unused-ignore]
except ImportError:
    pass
needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed here")


@needs_torch
@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
def test_torch_takes_fields_without_a_copy(dtype: str) -> None:
    batch = first(coded(lambda i: 1, [f"a: {dtype}"]))
    field = batch.field("a")
    tensor = torch.from_dlpack(field)
    assert str(tensor.dtype) == f"torch.{dtype}" and tensor.tolist() == [1] * 5
    if dtype != "bfloat16":
        assert tensor.data_ptr() == np.asarray(field).__array_interface__["data"][0]
    del batch, field
    assert ext.live_objects()["export"] == 1
    assert tensor.tolist() == [1] * 5
    del tensor
    gc.collect()


@pytest.mark.parametrize("dtype", DTYPES)
def test_user_code_may_return_what_shows_itself_by_dlpack(dtype: str) -> None:
    values = np.arange(24).reshape(4, 6).astype(dtype)
    made = coded(
        lambda index: (Foreign(values[:2, 1:4]), Foreign(values.T)), [f"a: {dtype}[2, 3]", f"b: {dtype}[6, 4]"]
    )
    batch = first(made)
    assert np.array_equal(np.asarray(batch.field("a"))[4], values[:2, 1:4])
    assert np.array_equal(np.asarray(batch.field("b"))[0], values.T)


def test_an_array_that_no_way_leads_to_is_an_error_in_its_own_words() -> None:
    strange = Foreign(np.zeros(3, np.complex64))
    with pytest.raises(ext.Error, match="this array is not for NumPy"):
        first(coded(lambda index: strange, ["a: float32[3]"]))


def test_arrays_of_bfloat16_come_in_as_they_are() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.array([[1.5, -2.0], [0.1, 3e38]]).astype(ml_dtypes.bfloat16)
    field = first(coded(lambda index: values, ["a: bfloat16[2, 2]"])).field("a")
    assert np.array_equal(np.asarray(field)[0], values.view(np.uint16))
    with pytest.raises(ext.Error) as raised:
        first(coded(lambda index: values, ["a: float32[2, 2]"]))
    assert raised.value.code == "HR_ERR_TYPE"


@needs_torch
@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
def test_user_code_may_return_torch_tensors(dtype: str) -> None:
    values = torch.arange(24).reshape(4, 6).to(getattr(torch, dtype))
    batch = first(coded(lambda index: (values[1:3], values.T), [f"a: {dtype}[2, 6]", f"b: {dtype}[6, 4]"]))
    for name, expected in (("a", values[1:3]), ("b", values.T)):
        tensor = torch.from_dlpack(batch.field(name))
        assert tensor.dtype == values.dtype and torch.equal(tensor[4], expected)


@needs_torch
def test_a_torch_tensor_of_another_type_is_refused() -> None:
    for value in (torch.zeros(3, dtype=torch.bfloat16), torch.zeros(3, dtype=torch.uint16)):
        other = "uint16" if value.dtype == torch.bfloat16 else "bfloat16"
        with pytest.raises(ext.Error) as raised:
            first(coded(lambda index, value=value: value, [f"a: {other}[3]"]))
        assert raised.value.code == "HR_ERR_TYPE"
    with pytest.raises(ext.Error, match="detach"):
        first(coded(lambda index: torch.zeros(3, requires_grad=True), ["a: float32[3]"]))


@needs_torch
@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_a_torch_view_of_an_input_comes_back_whole() -> None:
    made = ext.Graph()
    made.code("s", "s", "source", lambda i: np.full(50_000, i, np.float32))
    made.code("m", "m", "map", lambda a: torch.from_dlpack(a.copy()) if a[0] == 1 else torch.from_numpy(a))
    node = made.add("code.source", None, [], '{"code": "s", "count": 4, "outputs": ["a: float32[50000]"]}')
    node = made.add("code.map", None, [node], '{"code": "m", "fields": ["a"], "outputs": ["a: float32[50000]"]}')
    made.add("batch.stack", None, [node], '{"size": 4}')
    assert np.asarray(first(made).field("a"))[:, 49_999].tolist() == [0, 1, 2, 3]


def test_a_graph_is_read_while_another_thread_freezes_it(tmp_path: pathlib.Path) -> None:
    for i in range(300):
        (tmp_path / f"{i}.jpg").touch()
    for _ in range(20):
        made = ext.Graph()
        node = made.add("source.files", "files", [], json.dumps({"path": str(tmp_path)}))
        made.add("batch.stack", "batch", [node], '{"size": 10, "ragged": true}')
        thread = threading.Thread(target=made.freeze)
        thread.start()
        while thread.is_alive():
            assert [n["name"] for n in made.nodes()] == ["files", "batch"]
            assert made.record_count() in (-1, 300)
            assert [f["name"] for f in made.fields(0)] in ([], ["data"])
        thread.join()
        assert len(made.fingerprint()) == 32 and made.record_count() == 300
