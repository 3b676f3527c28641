"""Functions that fail at record 3 in odd ways, or that are of no use to a pipeline."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Iterator

import headrace as hr


class NoWords(Exception):
    """Cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def no_memory(x: int) -> int:
    if x == 3:
        raise MemoryError
    return x


def odd_words(x: int) -> int:
    if x == 3:
        raise ValueError("bad \ud800 \0 new\nline")
    return x


def no_words(x: int) -> int:
    if x == 3:
        raise NoWords
    return x


def ours(x: int) -> int:
    if x == 3:
        raise hr.GraphError("of the user")
    return x


def stops(x: int) -> int:
    if x == 3:
        raise StopIteration
    return x


def leaves(x: int) -> int:
    if x == 3:
        raise SystemExit(3)
    return x


def interrupts(x: int) -> int:
    if x == 3:
        raise KeyboardInterrupt
    return x


def dies(x: int) -> int:
    if x == 3:
        os._exit(3)
    return x


async def later(x: int) -> int:
    return x


async def later_many(x: int) -> AsyncIterator[int]:
    yield x


def some(x: int) -> Iterator[int]:
    yield x


class Some:
    """A generator as an object."""

    def __call__(self, x: int) -> Iterator[int]:
        yield x


class Frame:
    """As of pandas: items are columns."""

    iloc = None

    def __len__(self) -> int:
        return 3

    def __getitem__(self, label: int) -> list[int]:
        return [1, 2, 3]


class Dies:
    """At record 13: by a signal, or with an exit status."""

    def __init__(self, how: int | str) -> None:
        self.how = how

    def __call__(self, x: int) -> int:
        if x == 13 and isinstance(self.how, str):
            os.kill(os.getpid(), signal.Signals[self.how])
        elif x == 13:
            os._exit(int(self.how))
        return x


class Stays:
    """Cannot be read in another process."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __call__(self, x: int) -> int:
        return x

    def __reduce__(self) -> object:
        return _raised, (type(self.error), self.error.args)


def _raised(kind: type[Exception], args: tuple[object, ...]) -> None:
    raise kind(*args)
