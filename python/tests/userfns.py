"""Functions that tests give to pipelines and worker processes find by name."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import headrace as hr


def identity(x: Any) -> Any:
    return x


def double(x: int) -> int:
    return 2 * x


def large(x: int) -> float:
    return 1e6


def faults(x: int) -> int:
    """Page faults of this process so far, after the use of two arrays of 1 MB."""
    import resource

    array = np.full(1 << 20, x % 251, np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt + 0 * len(array.tobytes())


def square(x: int) -> int:
    return x * x


def is_even(x: int) -> bool:
    return x % 2 == 0


def twice(x: int) -> Iterator[int]:
    yield x
    yield -x


def some(x: int) -> Iterator[int]:
    for i in range(x % 4):
        yield 10 * x + i


def noise(x: int) -> float:
    return float(hr.rng().random())


def global_noise(x: int) -> tuple[float, float]:
    return random.random(), float(np.random.random())


def two_draws(x: int) -> tuple[float, float]:
    return float(hr.rng().random()), float(hr.rng().random())


def fails_at_5(x: int) -> int:
    if x == 5:
        raise ValueError("five is out")
    return x


def refuses_odd(x: int) -> int:
    if x % 2 == 1:
        raise ValueError(f"{x} is odd")
    return x


def fails_always(x: int) -> int:
    raise ValueError("never")


def process_id(x: int) -> int:
    return os.getpid()


def torch_sum(x: int) -> float:
    import torch

    return float(torch.full((3,), float(x)).sum())


def slow(x: int) -> int:
    time.sleep(0.002)
    return x


def brighten(image: np.ndarray) -> np.ndarray:
    return np.clip(image.astype(np.int16) + 10, 0, 255).astype(np.uint8)


def has_pixels(image: np.ndarray) -> bool:
    return bool(image.sum() >= 0)


def just_image(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield record


def identity_of_two(image: np.ndarray, label: int) -> tuple[np.ndarray, int]:
    return image, label


def refuse(image: np.ndarray) -> np.ndarray:
    raise ValueError(f"{image.sum()} is refused")


def image_and_label(image: np.ndarray, label: int) -> tuple[np.ndarray, int]:
    return image[::-1].copy(), label + 100


def mean_of(record: dict[str, Any]) -> dict[str, Any]:
    return {"mean": float(record["image"].mean()), "label": record["label"]}


def kill_once(x: int) -> int:
    """Dies the first time that record 7 is seen (a file remembers)."""
    mark = os.environ["HR_TEST_MARK"]
    if x == 7 and not os.path.exists(mark):
        open(mark, "w").close()
        os.kill(os.getpid(), 9)
    return x


def kill_always(x: int) -> int:
    if x == 7:
        os.kill(os.getpid(), 9)
    return x


class Squares:
    """A map-style dataset."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> tuple[np.ndarray, int]:
        return np.full((4,), i * i, np.float32), i


class Scale:
    """A callable object with state."""

    def __init__(self, by: float) -> None:
        self.by = by

    def __call__(self, x: int) -> float:
        return x * self.by


def named_pair(value: Any) -> dict[str, Any]:
    """In another order than the outputs are declared in."""
    return {"half": value / 2, "same": value}


def forgets_to_return(value: Any) -> None:
    """A filter without `return`."""


def reverse_both(batch: dict[str, Any]) -> dict[str, Any]:
    """The array in a new view, the list of texts in place."""
    batch["t"].reverse()
    return {"v": batch["v"][::-1], "t": batch["t"]}
