"""A batch of a data set has the structure of its items; a batch of named fields is a mapping."""

from __future__ import annotations

import copy
import dataclasses
import pathlib
import pickle
import secrets
from typing import Any

import numpy as np
import pytest

import headrace as hr
from structurefns import ITEMS, Items, Point, brighter, picture, same
from test_examples import needs, script

COUNT = 10
RUNS = {
    "inline": ("inline", 0),
    "threads": ("threads", 2),
    "processes": ("processes", 2),
}


def collated(items: list[Any]) -> Any:
    """What torch's default_collate makes of items, with lists of numbers as arrays, and tuples as tuples."""
    first = items[0]
    if isinstance(first, dict):
        return {key: collated([item[key] for item in items]) for key in first}
    if isinstance(first, Point):
        return Point(*map(collated, map(list, zip(*items, strict=True))))
    if isinstance(first, tuple) or (isinstance(first, list) and np.asarray(first[0]).dtype.kind != "i"):
        return type(first)(map(collated, map(list, zip(*items, strict=True))))
    return items if isinstance(first, (str, bytes)) else np.stack([np.asarray(item) for item in items])


def check(got: Any, wanted: Any, array: Any, path: str = "batch") -> None:
    """Whether these are equal, of the same classes, and the arrays are of class `array`."""
    if isinstance(wanted, dict):
        assert type(got) is (hr.Batch if path == "batch" else dict) and list(got) == list(wanted), path
        for key in wanted:
            check(got[key], wanted[key], array, f"{path}[{key!r}]")
    elif isinstance(wanted, np.ndarray):
        assert type(got) is array and tuple(got.shape) == wanted.shape, path
        assert str(got.dtype).removeprefix("torch.") == str(wanted.dtype) and (np.asarray(got) == wanted).all(), path
    elif isinstance(wanted, list) and isinstance(wanted[0], (str, bytes)):
        assert got == wanted and all(type(a) is type(b) for a, b in zip(got, wanted, strict=True)), path
    else:
        assert type(got) is type(wanted) and len(got) == len(wanted), path
        for i, (one, other) in enumerate(zip(got, wanted, strict=True)):
            check(one, other, array, f"{path}[{i}]")


def array_of(output: str) -> Any:
    return np.ndarray if output == "numpy" else pytest.importorskip("torch").Tensor


@pytest.mark.parametrize("output", ["numpy", "torch"])
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("kind", ITEMS)
def test_a_batch_has_the_structure_of_the_items(kind: str, run: str, output: Any) -> None:
    array = array_of(output)
    variant, threads = RUNS[run]
    data = Items(kind, COUNT)
    pipe = hr.from_dataset(data, variant=variant).map(same, variant=variant).batch(4)  # type: ignore[arg-type]
    with pipe.loader(threads=threads, output=output) as loader:
        batches = list(loader)
    assert len(batches) == len(loader) == 3
    for at, batch in enumerate(batches):
        check(batch, collated([data[i] for i in range(COUNT)[4 * at : 4 * at + 4]]), array)


@pytest.mark.parametrize("kind", ITEMS)
def test_iterables_and_ranks_too(kind: str) -> None:
    data = Items(kind, COUNT)
    for pipe in (
        hr.from_iterable([data[i] for i in range(COUNT)]),
        hr.from_generator(lambda: map(ITEMS[kind], range(COUNT))),
    ):
        (batch,) = pipe.batch(COUNT).loader(output="numpy")
        check(batch, collated([data[i] for i in range(COUNT)]), np.ndarray)
    (batch,) = hr.from_dataset(data).batch(COUNT).loader(output="numpy", shard=(1, 2))
    check(batch, collated([data[i] for i in range(1, COUNT, 2)]), np.ndarray)


def test_for_x_y_in_loader_gives_pairs() -> None:
    seed = secrets.randbits(40)
    seen = []
    for x, y in hr.from_dataset(Items("pair", 40)).shuffle(seed=seed).batch(8).loader(epochs=2, output="numpy"):
        assert x.shape == (8, 4, 4, 3) and (x[:, 0, 0, 0] == y).all(), seed
        seen += y.tolist()
    assert sorted(seen[:40]) == sorted(seen[40:]) == list(range(40)) and seen[:40] != seen[40:], seed


# ---- through operators ----


def pairs() -> hr.Pipeline:
    return hr.from_dataset(Items("pair", COUNT))


def first(pipe: hr.Pipeline, **options: Any) -> Any:
    return next(iter(pipe.batch(4).loader(output="numpy", **options)))


@pytest.mark.parametrize("variant", ["threads", "inline", "processes"])
def test_map_gets_and_returns_items(variant: Any) -> None:
    x, y = first(pairs().map(brighter, variant=variant))
    assert (x[:, 0, 0, 0] == y + 1).all()


@pytest.mark.parametrize(
    ("fn", "wanted"),
    [
        (lambda p: (p[1], p[0]), "(label, image)"),
        (lambda p: Point(p[1], str(p[1])), "Point"),
        (lambda p: {"a": p[1], "b": {"c": str(p[1])}}, "dict"),
        (lambda p: p[1] * 2, "number"),
        (lambda p: [p[0], p[0]], "list"),
        (lambda p: (p, p[1]), "nested"),
    ],
)
def test_map_may_return_another_structure(fn: Any, wanted: str) -> None:
    items = [fn((picture(i), i)) for i in range(4)]
    check(first(pairs().map(fn)), collated(items), np.ndarray)
    check(
        first(pairs().flat_map(lambda pair: [fn(pair)] * 2)),
        collated([i for i in items[:2] for _ in range(2)]),
        np.ndarray,
    )


def test_filter_gets_items() -> None:
    x, y = first(pairs().filter(lambda pair: pair[1] % 3 == 0 and pair[0].shape == (4, 4, 3)))
    assert y.tolist() == [0, 3, 6, 9] and (x[:, 0, 0, 0] == y).all()


def test_map_batch_gets_and_returns_batches() -> None:
    texts = hr.from_dataset([(i, f"t{i}", [float(i)] * (i % 3)) for i in range(6)])

    def double(batch: Any) -> Any:
        numbers, names, rows = batch
        assert names == [f"t{i}" for i in numbers] and isinstance(rows, tuple)
        return numbers * 2, names, rows

    for numbers, names, rows in texts.batch(3, ragged=True).map_batch(double).loader(output="numpy"):
        assert names == [f"t{i // 2}" for i in numbers]
        assert [len(row) for row in rows.items()] == [i // 2 % 3 for i in numbers]
    halves = pairs().batch(5).map_batch(lambda pair: {"mean": pair[0].mean(axis=(1, 2, 3)), "label": pair[1]})
    for batch in halves.loader(output="numpy"):
        assert isinstance(batch, hr.Batch) and (batch.mean == batch.label).all()
    (squares,) = hr.from_dataset(list(range(5))).batch(5).map_batch(lambda x: x * x).loader(output="numpy")
    assert squares.tolist() == [0, 1, 4, 9, 16]


def test_operators_that_keep_the_fields_keep_the_structure() -> None:
    kept = pairs().shuffle().resize(8).flip(p=1.0).to("float32", layout="chw").take(8).map(lambda x: x, fields="image")
    x, y = first(kept)
    assert x.shape == (4, 3, 8, 8) and x.dtype == np.float32 and y.shape == (4,)
    ids = hr.from_dataset([{"text": f"t{i}", "at": {"x": i, "y": 2 * i}} for i in range(8)])
    batch = first(ids.shuffle(window=4).map(lambda t: t + "!", fields="text"))
    assert all(t == f"t{x}!" for t, x in zip(batch.text, batch["at"]["x"], strict=True))


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.rename({"label": "class"}),
        lambda p: p.drop("label"),
        lambda p: p.map(lambda r: r, fields=["image"], outputs={"copy": hr.spec("uint8", (4, 4, 3))}),
        lambda p: hr.zip(p, hr.range(COUNT)),
        lambda p: p.map(lambda pair: {"a": pair[1]}, outputs={"a": "int64"}),
    ],
)
def test_operators_that_change_the_fields_give_a_mapping(change: Any) -> None:
    changed = change(pairs())
    batch = first(changed)
    assert isinstance(batch, hr.Batch) and list(batch) == [f.name for f in changed.fields]


def test_names_make_a_mapping() -> None:
    batch = first(hr.from_dataset(Items("pair", COUNT), names=["x", "y"]))
    assert isinstance(batch, hr.Batch) and list(batch) == ["x", "y"] and batch.y.tolist() == [0, 1, 2, 3]
    assert first(hr.from_dataset([1, 2, 3, 4], names=["n"])).n.tolist() == [1, 2, 3, 4]
    declared = hr.from_dataset([(1, 2.0)] * 4, outputs={"n": "int64", "f": "float32"})
    assert {n: str(v.dtype) for n, v in first(declared).items()} == {"n": "int64", "f": "float32"}
    nested = first(hr.from_dataset([((1, 2), 3)] * 4, names=["size", "label"]))
    assert list(nested) == ["size.0", "size.1", "label"]


def test_eval_adds_a_name_to_dicts_and_makes_other_batches_mappings() -> None:
    batch = first(hr.from_dataset(Items("nested dict", COUNT)), eval=True)
    assert list(batch) == ["image", "size", "id", "valid"] and batch.valid.all() and len(batch["size"]) == 2
    batch = first(pairs(), eval=True)
    assert list(batch) == ["image", "label", "valid"]
    with pytest.raises(TypeError, match=r'batch\["image"\], batch\["label"\], batch\["valid"\]'):
        _image, _label = batch


# ---- what batches are ----


def test_unpacking_a_batch_of_named_fields_says_what_to_write() -> None:
    loader = hr.range(6).map(lambda x: {"image": x, "label": -x}).batch(3).loader(output="numpy")
    words = r'write `for batch in loader:` and batch\["image"\], batch\["label"\]'
    with pytest.raises(hr.ArgumentError, match=words):
        for _x, _y in loader:
            pass
    batch = next(iter(loader))
    with pytest.raises(TypeError, match=words):
        _first, *_rest = batch
    with pytest.raises(TypeError, match=words):
        [_x, _y] = batch
    names = ["image", "label"]
    assert list(batch) == [*batch] == sorted(batch) == names
    for name in batch:
        assert name in names
    assert list(dict(batch)) == list(batch.keys()) == list({**batch}) == names
    a, b = batch.values()
    (first_name, _), _ = batch.items()
    assert (a == -b).all() and first_name == "image" and batch.records == 3
    c, d = list(batch)
    e, f = map(str.upper, batch)
    assert [c, d] == names and [e, f] == ["IMAGE", "LABEL"]


def test_a_nested_batch_is_a_mapping_of_its_parts() -> None:
    batch = first(hr.from_dataset(Items("nested dict", COUNT)))
    assert isinstance(batch, hr.Batch) and batch.image["path"] == ["0.png", "1.png", "2.png", "3.png"]
    assert batch.records == 4 and batch.raw("image.pixels").shape == (4, 4, 4, 3)
    assert "image.path: text[4]" in repr(batch) and isinstance(batch["size"], tuple)
    for other in (copy.copy(batch), copy.deepcopy(batch), pickle.loads(pickle.dumps(batch))):
        assert other == batch and list(other) == ["image", "size", "id"] and other.records == 4
    assert first(hr.from_dataset(Items("nested dict", COUNT)).shuffle(seed=1)) != batch
    with pytest.raises(hr.NotFoundError, match="fields: image, size, id"):
        batch["image.path"]
    torch = pytest.importorskip("torch")
    moved = next(iter(hr.from_dataset(Items("nested dict", COUNT)).batch(4).loader(output="torch"))).to(torch.float64)
    assert moved.image["pixels"].dtype == moved["size"][1].dtype == torch.float64 and moved.records == 4
    assert moved.image["path"] == batch.image["path"]


def test_texts_are_str_everywhere(tmp_path: pathlib.Path) -> None:
    names = tmp_path / "names.txt"
    names.write_bytes("ä\n".encode() + b"\xff\n")
    lines = hr.lines(names)
    seen: list[Any] = []

    def look(text: Any) -> Any:
        seen.append(text)
        return text

    pipe = lines.map(look, outputs={"text": "text"}, fields=lines.fields[0].name)
    batch = first(pipe)
    wanted = ["ä", b"\xff".decode("utf-8", "surrogateescape")]
    assert [*batch.values()] == [wanted] and sorted(seen) == sorted(wanted) and pipe.fields[0].dtype == "text"
    back = first(lines.map(lambda t: t + "!"))
    assert [*back.values()] == [[w + "!" for w in wanted]]
    packed = lines.map(lambda t: t.encode("utf-8", "surrogateescape"))
    assert [*first(packed).values()] == [["ä".encode(), b"\xff"]] and packed.fields[0].dtype == "bytes"


def test_images_are_shown_wherever_they_are() -> None:
    for kind in ("pair", "nested pair", "nested dict", "array"):
        assert hr.show(first(hr.from_dataset(Items(kind, COUNT)))).pixels.shape == (10, 10, 3)


# ---- items that differ ----


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([(1, 2), (1, 2, 3)], "2"),
        ([[np.zeros(2), 1], [np.zeros(2)]], r"expected 2 parts \(field0, field1\), got 1"),
        ([{"a": 1, "b": 2}, {"a": 1}], "expected the fields a, b; got a"),
        ([{"a": (1, 2)}, {"a": 1}], "expected a tuple of 2, got a int"),
        (
            [{"tags": ["x", "y"]}, {"tags": ["x"]}],
            r"expected 2 parts \(tags.0, tags.1\), got 1; only lists of numbers may",
        ),
    ],
)
def test_an_item_of_another_structure_is_refused_by_number(items: list[Any], words: str) -> None:
    with pytest.raises(hr.CodeError, match=words) as caught:
        list(hr.from_dataset(items).batch(2).loader(output="numpy"))
    assert caught.value.record == 1


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"a": {}}, "part 'a' is an empty dict"),
        ((), "an item is an empty tuple"),
        ({"a.b": 1, "a": {"b": 2}}, "two parts of an item would be the field 'a.b'"),
        ({"a": {"b": None}}, "'a.b'"),
    ],
)
def test_items_that_no_batch_can_hold_are_refused(item: Any, words: str) -> None:
    with pytest.raises(hr.HeadraceError, match=words):
        hr.from_dataset([item]).fields  # noqa: B018


def test_a_state_resumes_pairs(tmp_path: pathlib.Path) -> None:
    pipe = hr.from_dataset(Items("nested pair", 40)).shuffle().batch(4)
    loader = pipe.loader(output="numpy")
    run = iter(loader)
    done = [next(run) for _ in range(3)]
    state = loader.state_dict()
    rest = list(run)
    again = pipe.loader(output="numpy")
    again.load_state_dict(state)
    for one, other in zip(again, rest, strict=True):
        check(one, other, np.ndarray, "batch.")
    assert len(done) + len(rest) == 10


# ---- in frameworks ----

DATA = """
from typing import NamedTuple
import numpy as np, headrace as hr
class Point(NamedTuple):
    x: float
    y: int
pairs = hr.from_dataset([(np.full(3, i, np.float32), i) for i in range(8)]).batch(4)
texts = hr.from_dataset([{"at": Point(float(i), i), "text": f"t{i}"} for i in range(8)]).batch(4)
lists = hr.from_dataset([[np.full(3, i, np.float32), i] for i in range(8)]).batch(4)
"""


@needs("jax")
def test_jax_puts_pairs_on_devices(tmp_path: pathlib.Path) -> None:
    text = """
import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from headrace.adapters import jax as hj
sharding = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), P("data"))
for (x, y), kept in zip(hj.on_devices(hj.loader(pairs), sharding), pairs.loader(output="jax"), strict=True):
    assert isinstance(x, jax.Array) and (x[:, 0] == y).all() and jax.tree.all(jax.tree.map(lambda a, b: (a == b).all(), (x, y), kept))
(points,) = hj.on_devices(hj.loader(hr.from_dataset([{"at": Point(1.0, 2)}] * 4).batch(4)), sharding)
print(type(points["at"]).__name__, points["at"].y)
"""
    assert script(tmp_path, DATA + text) == "Point [2 2 2 2]"


@needs("tensorflow")
def test_tf_data_has_the_structure(tmp_path: pathlib.Path) -> None:
    text = """
from headrace.adapters.tensorflow import dataset
for x, y in dataset(pairs):
    assert (x[:, 0].numpy() == y.numpy()).all()
for x, y in dataset(lists):
    assert (x[:, 0].numpy() == y.numpy()).all()
got = [(type(b["at"]).__name__, b["at"].y.numpy().tolist(), b["text"].numpy().tolist()) for b in dataset(texts)]
assert got[1] == ("Point", [4, 5, 6, 7], [b"t4", b"t5", b"t6", b"t7"]), got
(one, two) = dataset(hr.from_dataset(["a", "b"]).batch(1))
print(one.numpy().tolist() + two.numpy().tolist())
"""
    assert script(tmp_path, DATA + text) == "[b'a', b'b']"


@needs("torch", "lightning")
def test_lightning_trains_on_pairs(tmp_path: pathlib.Path) -> None:
    text = """
import warnings
warnings.filterwarnings("ignore")
import lightning as L, torch
from headrace.adapters.lightning import DataModule
seen = []
class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Linear(3, 1)
    def training_step(self, batch, index):
        x, y = batch
        seen.append(y.tolist())
        return ((self.weight(x)[:, 0] - y) ** 2).mean()
    def validation_step(self, batch, index):
        assert type(batch["at"]) is Point and isinstance(batch["at"].x, torch.Tensor) and isinstance(batch.text[0], str)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-6)
trainer = L.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                    enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Model(), DataModule(pairs, texts))
print(seen)
"""
    assert script(tmp_path, DATA + text) == "[[0, 1, 2, 3], [4, 5, 6, 7]]"


@needs("torch", "accelerate")
def test_accelerate_moves_pairs(tmp_path: pathlib.Path) -> None:
    text = """
import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device
accelerator = Accelerator(cpu=True)
for x, y in accelerator.prepare(pairs.loader(output="torch")):
    x, y = send_to_device((x, y), accelerator.device)
    assert (x[:, 0] == y).all()
for batch in texts.loader(output="torch"):
    moved = send_to_device(batch, accelerator.device)
    assert type(moved) is hr.Batch and type(moved["at"]) is Point and moved.text == batch.text and moved.records == 4
print("moved")
"""
    assert script(tmp_path, DATA + text) == "moved"


@needs("torch")
def test_ray_gives_pairs(tmp_path: pathlib.Path) -> None:
    text = """
from headrace.adapters.ray import shard
for x, y in shard(pairs).iter_torch_batches(device="cpu"):
    assert (x[:, 0] == y).all()
for x, y in shard(pairs).iter_batches():
    assert isinstance(x, np.ndarray) and (x[:, 0] == y).all()
print([b["at"].y.tolist() + b["text"] for b in shard(texts).iter_batches()])
"""
    assert (
        script(tmp_path, DATA + text) == "[[0, 1, 2, 3, 't0', 't1', 't2', 't3'], [4, 5, 6, 7, 't4', 't5', 't6', 't7']]"
    )


def test_devices_get_pairs() -> None:
    torch = pytest.importorskip("torch")
    for device in ("cpu", *(["cuda"] if torch.cuda.is_available() else [])):
        for x, y in pairs().batch(4).loader(device=device):
            assert x.device.type == y.device.type == device and (x[:, 0, 0, 0] == y).all()


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: int


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([Frozen(1)], "is a Frozen, a dataclass: give a named tuple, or a dict"),
        ([{"x": None}], "'x' is None, and batches hold none: give a value"),
        ([{"x": 1}, {"x": None}], "None for field 'x', and batches hold none: give a value"),
        ([np.datetime64("2020-01-01")], "batches hold no times"),
    ],
)
def test_what_no_batch_holds_is_refused_with_what_to_give(items: list[Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        list(hr.from_dataset(items).batch(2).loader())


@pytest.mark.parametrize("items", [[{"a": 1, "b": 2}, {"a": 1}], [["x", "y"], ["x"]]])
def test_messages_name_no_place_in_the_package(items: list[Any]) -> None:
    with pytest.raises(hr.CodeError) as caught:
        list(hr.from_dataset(items).batch(2).loader())
    assert ".py:" not in str(caught.value)


def test_fields_are_found_by_name() -> None:
    fields = hr.from_dataset([{"a": 1, "b": "x"}]).fields
    assert "a" in fields and "c" not in fields and fields[0] in fields
    assert dict(fields) == dict(fields.items()) == {"a": fields[0], "b": fields[1]}
    assert fields.keys() == ("a", "b")
