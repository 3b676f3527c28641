"""Data sets and functions for worker processes of hr.DataLoader, importable so that they can be spawned."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info


class Pair(NamedTuple):
    x: Any
    y: Any


class Items(Dataset[Any]):
    """Items of every kind, with numbers drawn from all generators."""

    def __init__(self, count: int, kind: str = "dict") -> None:
        self.count, self.kind = count, kind

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> Any:
        drawn = torch.rand(2), np.random.rand(), random.random()
        x = torch.full((2, 3), at, dtype=torch.int32)
        if self.kind == "pair":
            return x, at
        if self.kind == "named":
            return Pair(x, drawn)
        if self.kind == "text":
            return f"item {at}"
        if self.kind == "array":
            return np.full((3,), at, np.float32)
        return {"x": x, "text": f"item {at}", "drawn": drawn, "list": [at, float(at)], "array": np.arange(at, at + 4)}


class Large(Dataset[Any]):
    """Items whose large tensors and arrays are copied into the batch one by one; some are of other kinds."""

    def __init__(self, seed: int, differ: bool) -> None:
        self.seed, self.differ = seed, differ

    def __len__(self) -> int:
        return 11

    def __getitem__(self, at: int) -> Any:
        made = np.random.default_rng((self.seed, at))
        size = 100 + (self.seed + at) % 2 * self.differ
        image = torch.from_numpy(made.standard_normal((3, 60, size)).astype(np.float32))
        array = made.integers(0, 255, (100, 400), np.uint8)
        item: dict[str, Any] = {
            "image": image.transpose(1, 2) if self.seed % 3 == 0 else image,
            "array": array if (self.seed + at) % 5 or not self.differ else torch.from_numpy(array),
            "inner": Pair((image.double(), at), [array.astype(np.int64), "text"]),
            "half": image.bfloat16(),
            "view": array[:, ::2],
            "swapped" if self.differ and at % 3 else "last": array.astype(np.float16),
        }
        return item if at % 2 == 0 or not self.differ else dict(reversed(item.items()))


class Same(Large):
    """One tensor for all items."""

    tensor = torch.ones(20_000)

    def __getitem__(self, at: int) -> Any:
        return self.tensor, self.tensor


class Many(Items):
    """Gives many items in one call."""

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self[at] for at in indices]


class Stream(IterableDataset[Any]):
    """The numbers from 0 up, split among the workers by default."""

    def __init__(self, count: int, divided: bool = True) -> None:
        self.count, self.divided = count, divided

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        step = info.num_workers if info is not None and self.divided else 1
        start = info.id if info is not None and self.divided else 0
        for at in range(start, self.count, step):
            yield at, torch.rand(1)


class Told(Dataset[Any]):
    """What a worker knows of itself."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, at: int) -> Any:
        info = get_worker_info()
        assert info is not None and info.dataset is self
        return info.id, info.num_workers, torch.initial_seed() == info.seed, os.environ.get("TOLD", "")


def tell(worker: int) -> None:
    os.environ["TOLD"] = f"worker {worker}"


def fail(worker: int) -> None:
    raise LookupError(f"no worker {worker}")


class Failing(Items):
    """Item 5 raises, ends its process or never comes."""

    def __init__(self, how: Any) -> None:
        super().__init__(12, "pair")
        self.how = how

    def __getitem__(self, at: int) -> Any:
        if at == 5:
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.how == "exit":
                os._exit(3)
            if self.how == "stuck":
                time.sleep(1000)
            raise self.how("five")
        return super().__getitem__(at)


class Slow(Dataset[Any]):
    """Some items take longer than others, so that batches are ready out of order."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> int:
        time.sleep(0.01 * (at % 4))
        return at


class ManyFailing(Failing):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self[at] for at in indices]


class Position:
    """An iterator that knows its place, and the state of the generator that it draws from."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers, self.at = numbers, 0

    def __iter__(self) -> Position:
        return self

    def __next__(self) -> Any:
        if self.at >= len(self.numbers):
            raise StopIteration
        self.at += 1
        return self.numbers[self.at - 1], torch.rand(1)

    def state_dict(self) -> dict[str, Any]:
        return {"at": self.at, "generator": torch.get_rng_state().tolist()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.at = state["at"]
        torch.set_rng_state(torch.tensor(state["generator"], dtype=torch.uint8))


class Positions(Stream):
    """Its iterators know their place; it is divided over the workers unevenly."""

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        numbers = list(range(self.count))
        if info is not None:
            numbers = [at for at in numbers if min(at % 5, info.num_workers - 1) == info.id]
        return Position(numbers)


class Generating(Stream):
    """A generator whose data set knows the place."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.at = self.start = 0

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        self.at, self.start = self.start, 0
        while self.at < self.count:
            self.at += 1
            yield self.at if info is None else (self.at, info.id)

    def state_dict(self) -> dict[str, Any]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.start = state["at"]


class Resetting(Stream):
    """A generator whose data set has another order in each epoch, and at the end of one a state that begins the next,
    as in torchdata's README."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.at = self.epoch = 0

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        numbers = np.random.default_rng(self.epoch).permutation(self.count).tolist()
        if info is not None:
            numbers = [n for at, n in enumerate(numbers) if min(at % 5, info.num_workers - 1) == info.id]
        for number in numbers[self.at :]:
            self.at += 1
            yield number
        self.at, self.epoch = 0, self.epoch + 1

    def state_dict(self) -> dict[str, Any]:
        return {"at": self.at, "epoch": self.epoch}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.at, self.epoch = state["at"], state["epoch"]


class Remembering(Items):
    """A map-style data set whose state is the generator of its worker."""

    def state_dict(self) -> dict[str, Any]:
        return {"torch": torch.get_rng_state().tolist()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        torch.set_rng_state(torch.tensor(state["torch"], dtype=torch.uint8))

    def __getitem__(self, at: int) -> Any:
        return at, torch.rand(1)


def unsendable(items: list[Any]) -> Any:
    return lambda: items


def as_list(items: list[Any]) -> Any:
    return {"items": items, "count": len(items), "set": {type(one).__name__ for one in items}}
