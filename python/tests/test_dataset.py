"""Issue 14 F: what users of DataLoader expect of a data set and its loader."""

from __future__ import annotations

import json
import pathlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace as hr
import userfns
from conftest import run_script


class Counted:
    """Squares; notes which items were read."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.read: list[int] = []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> int:
        self.read.append(at)
        return at * at


@pytest.mark.parametrize(
    "make",
    [
        lambda: hr.from_dataset([]),
        lambda: hr.from_dataset(()),
        lambda: hr.from_dataset(np.zeros((0, 3))),
        lambda: hr.from_dataset([], names=["x", "y"]),
        lambda: hr.from_dataset([], outputs={"x": "float32[3]"}),
        lambda: hr.from_dataset([]).shuffle(),
        lambda: hr.from_dataset([]).map(lambda x: (x, x)),
        lambda: hr.from_dataset([], names=["x"]).map(lambda x: x, fields="x"),
        lambda: hr.from_dataset([]).filter(bool),
        lambda: hr.from_iterable([]),
        lambda: hr.from_generator(lambda: iter(())),
    ],
)
@pytest.mark.parametrize("threads", [0, 2])
def test_an_empty_dataset_is_an_empty_loader(make: Any, threads: int) -> None:
    pipe = make().batch(4)
    for epochs in (1, 3):
        loader = pipe.loader(threads=threads, output="numpy", epochs=epochs)
        assert list(loader) == []
        assert list(loader) == []
        state = json.loads(json.dumps(loader.state_dict()))
        again = pipe.loader(threads=threads, output="numpy", epochs=epochs)
        again.load_state_dict(state)
        assert list(again) == []
    if make().record_count is not None:
        assert len(pipe.loader()) == 0 and len(pipe.loader(shard=(1, 3))) == 0


@pytest.mark.parametrize(
    ("items", "dtypes"),
    [
        ([1, 2.5], ["float64"]),
        ([(1,), (2.5,)], ["float64"]),
        ([{"a": {"b": 1}}, {"a": {"b": 2.5}}], ["float64"]),
        ((1, 2, 3), ["int64"]),
        ([(1, 1), (2.5, 1)], ["float64", "int64"]),
        ([{"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 2.5}}], ["int64", "float64"]),
        ([1.5, 2], ["float64"]),
        ([True, False], ["bool"]),
        ([True, 2], ["int64"]),
        ([(True, 1), (3, 2.5)], ["int64", "float64"]),
        ([True, 2.5], ["float64"]),
    ],
)
def test_an_int_first_and_a_float_later_is_a_float(items: Any, dtypes: list[str]) -> None:
    pipe = hr.from_dataset(items)
    assert [field.dtype for field in pipe.fields] == dtypes
    for variant in ("threads", "inline"):
        batches = list(hr.from_dataset(items, variant=variant).batch(2).loader(output="numpy"))  # type: ignore[arg-type]
        if not isinstance(items[0], (tuple, dict)):
            assert batches[0].tolist() == list(items)[:2]


def test_the_first_item_is_read_when_it_is_needed() -> None:
    dataset = Counted(9)
    pipe = hr.from_dataset(dataset).shuffle().batch(2)
    assert dataset.read == []
    assert [field.text() for field in pipe.fields] == ["int64[2]"] or dataset.read == [0]
    assert dataset.read == [0]
    read = []

    def items() -> Iterator[int]:
        for i in range(4):
            read.append(i)
            yield i

    lazy = hr.from_generator(items).batch(2)
    assert read == []
    assert [batch.tolist() for batch in lazy.loader(output="numpy", threads=0)] == [[0, 1], [2, 3]]
    with pytest.raises(hr.CodeError, match=r"from_dataset\(Bad\): item 0 raised ValueError: none"):
        hr.from_dataset(Bad()).batch(2).loader()


class Bad(Counted):
    def __init__(self) -> None:
        super().__init__(3)

    def __getitem__(self, at: int) -> int:
        raise ValueError("none")


def test_a_loader_knows_its_dataset_and_batch_size(pictures: pathlib.Path) -> None:
    items, stream = [1, 2, 3], iter([1, 2])
    loader = hr.from_dataset(items).shuffle().map(abs).batch(2).loader()
    assert loader.dataset is items and loader.batch_size == 2
    assert hr.from_iterable(stream).padded_batch(5).loader().dataset is stream
    pipe = hr.files(pictures).decode()
    assert pipe.loader().dataset is pipe and pipe.loader().batch_size is None
    both = hr.zip(hr.from_dataset(items, names=["a"]), hr.from_dataset(items, names=["b"])).batch(3)
    assert both.loader().dataset is both and both.loader().batch_size == 3


@pytest.mark.parametrize(
    "items", [[[1, 2], [3]], [np.zeros(2), np.zeros(3)], [(np.zeros((2, 3)), 1), (np.zeros((4, 3)), 1)]]
)
def test_records_of_differing_sizes_are_refused_with_padded_batch(items: Any) -> None:
    with pytest.raises(hr.ShapeError, match=r"batch\.pad \(.*padded_batch\)"):
        list(hr.from_dataset(items).batch(2).loader(output="numpy"))
    with pytest.raises(hr.ShapeError, match=r"batch\.pad \(.*padded_batch\)"):
        list(hr.from_dataset(items).filter(lambda item: True).batch(2).loader(output="numpy"))
    list(hr.from_dataset(items).padded_batch(2).loader(output="numpy"))


def test_lists_of_numbers_have_one_name() -> None:
    pipe = hr.from_dataset([[1, 2], [3]], names=["ids"]).padded_batch(2, lengths="ids")
    (batch,) = pipe.loader(output="numpy")
    assert batch.ids.tolist() == [[1, 2], [3, 0]] and batch.ids_length.tolist() == [2, 1]


ORDER = """
import sys, json, random
import torch, headrace as hr
def order(**options):
    return [int(v) for batch in hr.range(50).shuffle().batch(5).loader(output="numpy", **options) for v in batch["value"]]
seed = int(sys.argv[1])
torch.manual_seed(seed)
before = torch.get_rng_state()
one = order()
assert torch.equal(before, torch.get_rng_state())   # nothing is drawn
assert one == order() == order(seed=seed) != order(seed=seed + 1)
torch.manual_seed(seed + 1)
assert order() == order(seed=seed + 1) != one
assert order(shard=(0, 2)) == order(shard=(0, 2), seed=0)
torch.manual_seed(seed)
loader = hr.range(50).shuffle().batch(5).loader(output="numpy")
run = iter(loader)
head = [int(v) for _ in range(3) for v in next(run)["value"]]
state = json.loads(json.dumps(loader.state_dict()))
assert state["seed"] == seed
torch.manual_seed(12345)
again = hr.range(50).shuffle().batch(5).loader(output="numpy")
again.load_state_dict(state)
assert head + [int(v) for batch in again for v in batch["value"]] == one
try:
    hr.range(50).shuffle().batch(5).loader(seed=seed + 1).load_state_dict(state)
except hr.StateMismatchError as error:
    assert "seed" in str(error)
else:
    raise AssertionError
torch.manual_seed(-1)
order()
print(json.dumps(one))
"""


def test_torch_manual_seed_decides_the_order(tmp_path: pathlib.Path, rng: random.Random) -> None:
    pytest.importorskip("torch")
    seed = rng.randrange(2**40)
    done = run_script(tmp_path, ORDER, str(seed))
    assert done.returncode == 0, done.stderr
    pipe = hr.range(50).shuffle().batch(5)
    assert json.loads(done.stdout) == [int(v) for b in pipe.loader(seed=seed, output="numpy") for v in b["value"]]


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (np.zeros((4, 4), np.uint8), r"lacks the channels, \[height, width, 1\]; of a NumPy array, array\[..., None\]"),
        (np.zeros((4, 4, 3), np.float32), "declare levels of 0 to 1 an image with record.kind"),
        (np.zeros((4, 4, 3), np.int32), r"that is uint8 \[height, width, 1 to 4 channels\]"),
    ],
)
def test_what_is_no_image_is_told_how_to_become_one(image: Any, words: str) -> None:
    with pytest.raises(hr.DtypeError, match=words):
        hr.from_dataset([{"image": image}]).flip().fields  # noqa: B018


def test_lists_of_whole_numbers_are_not_rounded() -> None:
    big = 2**63
    with pytest.raises(hr.DtypeError, match=r"'v' is a list of whole numbers that NumPy takes for float64"):
        hr.from_dataset([{"u": 1, "v": [big, -1]}]).fields  # noqa: B018
    pipe = hr.from_dataset([{"u": 1, "v": [1.0, -1]}, {"u": 1, "v": [big, -1]}])
    assert [batch.v.tolist() for batch in pipe.batch(2).loader(output="numpy")] == [[[1, -1], [float(big), -1]]]


@pytest.mark.parametrize("variant", ["threads", "processes"])
def test_errors_about_values_name_their_field(variant: Any) -> None:
    def run(second: Any, first: Any) -> None:
        list(hr.from_dataset([{"u": 1, "v": first}, {"u": 1, "v": second}], variant=variant).batch(2).loader())

    with pytest.raises(OverflowError, match=rf"{2**63} does not fit into int64, the type of field 'v' \(record 1\)"):
        run(2**63, 2)
    with pytest.raises(TypeError, match=r"field 'v' is int64: NumPy takes \[2.5, 3\] for float64; declare another"):
        run([2.5, 3], [2, 3])
    mapped = hr.range(3).map(userfns.large, outputs={"y": "float16"}, variant=variant)
    with pytest.raises(OverflowError, match=r"1000000.0 does not fit into float16, the type of field 'y' \(record 0\)"):
        list(mapped.loader())
