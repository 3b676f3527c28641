"""hr.DataLoader is held to torch's own: the same arguments, the same batches, and a state."""

from __future__ import annotations

import itertools
import json
import pathlib
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import headrace as hr
from conftest import run_script

torch = pytest.importorskip("torch")

from torch.utils import data as torch_data  # noqa: E402

import loaderfns  # noqa: E402
from headrace.data_loader import DataLoader  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create", "ignore:'pin_memory' argument")


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and a.stride() == b.stride() and torch.equal(a, b)
    if isinstance(a, np.ndarray):
        return type(a) is type(b) and a.dtype == b.dtype and bool((a == b).all())
    if isinstance(a, Mapping):
        return type(a) is type(b) and list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    return type(a) is type(b) and bool(a == b)


def seed_all(seed: int) -> None:
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)


def both(seed: int, make: Callable[[Any], Any], epochs: int = 2) -> tuple[list[Any], list[Any]]:
    """The batches of torch's loader and of ours, and a number drawn from the generator after them."""
    made = []
    for kind in (torch_data.DataLoader, DataLoader):
        seed_all(seed)
        loader = make(kind)
        made.append([batch for _ in range(epochs) for batch in loader] + [torch.rand(1)])
    return made[0], made[1]


ARGUMENTS: dict[str, dict[str, Any]] = {
    "default": {},
    "batches": {"batch_size": 4},
    "shuffle": {"batch_size": 4, "shuffle": True},
    "drop_last": {"batch_size": 4, "drop_last": True},
    "single": {"batch_size": None},
    "single shuffled": {"batch_size": None, "shuffle": True},
    "collate": {"batch_size": 4, "collate_fn": loaderfns.as_list},
    "batch_sampler": {"batch_sampler": [[1, 2], [3], [4, 5, 6, 0]]},
    "sampler": {"batch_size": 3, "sampler": [5, 3, 3, 1, 0, 7, 2]},
    "pin_memory": {"batch_size": 4, "pin_memory": True},
}
WORKERS: dict[str, dict[str, Any]] = {"none": {}}


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_batches_are_those_of_torch(
    arguments: str, workers: str, rng: random.Random, children: Callable[[], set[int]]
) -> None:
    """All items draw from torch, NumPy and random."""
    options = {**ARGUMENTS[arguments], **WORKERS[workers]}
    kind = rng.choice([loaderfns.Items, loaderfns.Many])
    one, other = both(rng.randrange(2**60), lambda loader: loader(kind(19), **options))
    assert equal(one, other)


@pytest.mark.parametrize("workers", ["none"])
def test_generators_are_used_as_torch_does(workers: str, rng: random.Random) -> None:
    seed = rng.randrange(2**60)

    def make(loader: Any, sampler: Any = None) -> Any:
        generator = torch.Generator().manual_seed(seed)
        if sampler is not None:
            return loader(loaderfns.Items(19), 4, sampler=sampler(generator), generator=generator, **WORKERS[workers])
        return loader(loaderfns.Items(19), 4, shuffle=True, generator=generator, **WORKERS[workers])

    assert equal(*both(seed, make))
    weighted = lambda g: torch_data.WeightedRandomSampler(list(range(1, 20)), 30, generator=g)  # noqa: E731
    assert equal(*both(seed, lambda loader: make(loader, weighted)))
    subset = lambda g: torch_data.SubsetRandomSampler(range(3, 17), generator=g)  # noqa: E731
    assert equal(*both(seed, lambda loader: make(loader, subset)))


@pytest.mark.parametrize("divided", [True, False])
@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("size", [1, 3, None])
def test_iterable_datasets(workers: str, divided: bool, size: int | None, rng: random.Random) -> None:
    """Workers end at different batches."""
    options = {"batch_size": size, **WORKERS[workers]}
    drop = rng.random() < 0.5 and size is not None
    stream = loaderfns.Stream(rng.randrange(17), divided)
    one, other = both(rng.randrange(2**60), lambda loader: loader(stream, drop_last=drop, **options))
    assert equal(one, other)


@pytest.mark.parametrize("workers", [0])
def test_no_items_are_no_batches(workers: int) -> None:
    for dataset in (loaderfns.Items(0), [], loaderfns.Stream(0)):
        loader = DataLoader(dataset, 4, num_workers=workers)
        assert list(loader) == [] and list(loader) == []
    assert len(DataLoader([], 4)) == 0


def test_items_are_fetched_when_they_are_needed() -> None:
    read: list[int] = []

    class Noted(loaderfns.Items):
        def __getitem__(self, at: int) -> Any:
            read.append(at)
            return at

    run = iter(DataLoader(Noted(9), 3, sampler=range(8, -1, -1)))
    assert read == []
    assert next(run).tolist() == [8, 7, 6] and read == [8, 7, 6]


# ---- states ----


def resumed(make: Callable[[], DataLoader], seed: int, stop: int) -> tuple[list[Any], list[Any]]:
    """The batches of one epoch, and of one that is left after `stop` batches and resumed in a new loader."""
    seed_all(seed)
    whole = list(make())
    seed_all(seed)
    loader = make()
    head = list(itertools.islice(loader, stop))
    state = json.loads(json.dumps(loader.state_dict()))
    del loader
    seed_all(seed + 1)
    again = make()
    again.load_state_dict(state)
    assert again.state_dict() == state
    tail = list(again)
    return whole, head + tail


def places(batches: list[Any]) -> list[Any]:
    """Without what was drawn."""
    return [(b["x"], b["text"]) for b in batches]


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize(
    "arguments", ["batches", "shuffle", "drop_last", "batch_sampler", "sampler", "single shuffled"]
)
def test_an_epoch_resumes_at_any_batch(arguments: str, workers: str, rng: random.Random) -> None:
    options = {**ARGUMENTS[arguments], **WORKERS[workers]}
    count = len(DataLoader(loaderfns.Items(19), **options))
    for stop in {0, 1, count - 1, count, rng.randrange(count)}:
        made = resumed(lambda: DataLoader(loaderfns.Items(19), **options), rng.randrange(2**60), stop)
        if stop == 0:  # an epoch that follows the generators of the program
            assert len(made[1]) == count
        else:
            assert equal(*map(places, made))


@pytest.mark.parametrize("workers", ["none"])
def test_a_generator_is_resumed_with_all_epochs_after(workers: str, rng: random.Random) -> None:
    seed = rng.randrange(2**60)

    def make() -> DataLoader:
        generator = torch.Generator().manual_seed(seed)
        return DataLoader(loaderfns.Items(13), 2, shuffle=True, generator=generator, **WORKERS[workers])

    loader = make()
    whole = [places(list(loader)) for _ in range(3)]
    for epoch, stop in ((0, 3), (1, 5), (2, 0), (1, 7)):
        loader = make()
        for _ in range(epoch):
            list(loader)
        head = places(list(itertools.islice(loader, stop)))
        again = make()
        again.load_state_dict(loader.state_dict())
        rest = [places(list(again)) for _ in range(epoch, 3)]
        rest[0] = head + rest[0]
        assert equal(rest, whole[epoch:])


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("divided", [True, False])
def test_iterable_datasets_resume(workers: str, divided: bool, rng: random.Random) -> None:
    """They are read again up to the place, so that they draw the same numbers in workers."""
    options = {"batch_size": rng.choice([1, 2, None]), **WORKERS[workers]}
    stream = loaderfns.Stream(14, divided)
    whole, again = resumed(lambda: DataLoader(stream, **options), rng.randrange(2**60), rng.randrange(1, 6))
    if workers == "none":  # the numbers of the program's generator are its own
        whole, again = [[b[0] for b in one] for one in (whole, again)]
    assert equal(whole, again)


class Counting(torch_data.Sampler[int]):
    """A sampler that knows its place and draws from a generator that nobody knows."""

    def __init__(self, count: int) -> None:
        self.order = list(range(count))
        random.SystemRandom().shuffle(self.order)
        self.at = 0

    def __iter__(self) -> Iterator[int]:
        while self.at < len(self.order):
            self.at += 1
            yield self.order[self.at - 1]
        self.at = 0

    def __len__(self) -> int:
        return len(self.order)

    def state_dict(self) -> dict[str, Any]:
        return {"order": list(self.order), "at": self.at}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.order, self.at = state["order"], state["at"]


@pytest.mark.parametrize("workers", ["none"])
def test_the_state_of_a_sampler_is_that_of_the_place(workers: str) -> None:
    """Not that of the batches that were drawn ahead."""
    dataset = loaderfns.Items(20)
    sampler = Counting(20)
    loader = DataLoader(dataset, 3, sampler=sampler, **WORKERS[workers])
    head = places(list(itertools.islice(loader, 2)))
    state = json.loads(json.dumps(loader.state_dict()))
    assert state["sampler"]["at"] == 6
    again = DataLoader(dataset, 3, sampler=Counting(20), **WORKERS[workers])
    again.load_state_dict(state)
    got = head + places(list(again))
    assert [text for _, texts in got for text in texts] == [f"item {at}" for at in sampler.order]


def test_a_sampler_that_gives_other_indices_is_refused() -> None:
    class Unknown(torch_data.Sampler[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(random.SystemRandom().sample(range(1000), 1000))

    for workers in (0,):
        loader = DataLoader(loaderfns.Items(1000), 50, sampler=Unknown(), num_workers=workers)
        next(iter(loader))
        again = DataLoader(loaderfns.Items(1000), 50, sampler=Unknown(), num_workers=workers)
        again.load_state_dict(loader.state_dict())
        for _ in range(2):  # the state stays pending
            with pytest.raises(hr.StateMismatchError, match="the sampler gives other indices"):
                next(iter(again))


def test_an_iterable_that_became_shorter_is_refused() -> None:
    loader = DataLoader(loaderfns.Stream(9), 2)
    list(itertools.islice(loader, 3))
    again = DataLoader(loaderfns.Stream(3), 2)
    again.load_state_dict(loader.state_dict())
    with pytest.raises(hr.StateMismatchError, match="ends before batch 3"):
        list(again)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: 3, "no state of hr.DataLoader|not a state"),
        (lambda s: {}, "not a state"),
        (lambda s: {**s, "headrace_data_loader": 2}, "not a state"),
        (lambda s: {k: v for k, v in s.items() if k != "drawn"}, "keys are missing: drawn"),
        (lambda s: {**s, "yielded": -1}, "yielded is -1"),
        (lambda s: {**s, "yielded": True}, "yielded is True"),
        (lambda s: {**s, "yielded": "1"}, "yielded is '1'"),
        (lambda s: {**s, "generator": "xyz"}, "not hexadecimal"),
        (lambda s: {**s, "generator": ""}, "yielded is 1"),
    ],
)
def test_damaged_states_are_refused(change: Callable[[Any], Any], words: str) -> None:
    loader = DataLoader(list(range(9)), 3, shuffle=True)
    next(iter(loader))
    with pytest.raises(hr.FormatError, match=words):
        DataLoader(list(range(9)), 3, shuffle=True).load_state_dict(change(loader.state_dict()))
    short = {**loader.state_dict(), "generator": "00" * 10}
    again = DataLoader(list(range(9)), 3, shuffle=True)
    again.load_state_dict(short)
    with pytest.raises(hr.FormatError, match="torch refuses"):
        next(iter(again))


def test_arguments_are_checked_as_torch_does() -> None:
    for options in (
        {"shuffle": True, "sampler": [1]},
        {"batch_size": None, "drop_last": True},
        {"num_workers": -1},
        {"timeout": -1},
        {"prefetch_factor": 2},
        {"persistent_workers": True},
        {"batch_sampler": [[1]], "batch_size": 2},
    ):
        with pytest.raises(ValueError):
            DataLoader([1, 2], **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="shuffle"):
        DataLoader(loaderfns.Stream(3), shuffle=True)
    with pytest.raises(hr.UnsupportedError, match="variant='processes'"):
        DataLoader([1, 2], num_workers=2)
    with pytest.raises(hr.ArgumentError, match=r"pipe\.batch\(32\)\.loader\(\)"):
        DataLoader(hr.range(3))
    assert isinstance(DataLoader([1]), torch_data.DataLoader) and hr.DataLoader is DataLoader
    assert len(DataLoader(range(10), 3)) == 4 and len(DataLoader(range(10), 3, drop_last=True)) == 3  # type: ignore[arg-type]


def test_without_torch_it_says_what_to_install(tmp_path: pathlib.Path) -> None:
    done = run_script(
        tmp_path,
        "import sys\nsys.modules['torch'] = None\nimport headrace as hr\nfrom headrace import *\n"
        "try:\n    hr.DataLoader\nexcept ImportError as error:\n    print(error)\n",
    )
    assert "pip install torch" in done.stdout, done
