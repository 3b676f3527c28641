"""Functions of test_code_errors.py, and what they raise."""

from __future__ import annotations


class Mine(KeyError):
    """With a constructor of its own."""

    def __init__(self, number: int, word: str) -> None:
        super().__init__(f"{word} {number}")
        self.number = number


def value_error(x: int) -> int:
    """A class of the interpreter."""
    raise ValueError("no value")


def mine(x: int) -> int:
    """A class of this module."""
    raise Mine(x, "mine")


def local(x: int) -> int:
    """A class that no other process finds, with a base that it does."""

    class Local(LookupError):
        pass

    raise Local("local")


def decode_error(x: int) -> int:
    """A class with a layout of its own."""
    return len(b"\xff".decode())


def os_error(x: int) -> int:
    """A class that is chosen by a number."""
    raise OSError(2, "no such thing", "file")


def group(x: int) -> int:
    """A class that cannot be made from a text alone."""
    raise ExceptionGroup("several", [ValueError("one")])


def stop(x: int) -> int:
    """A class that would end the loop."""
    raise StopIteration


def leave(x: int) -> int:
    """No error at all, in a thread."""
    raise SystemExit("leaving")


def plain(x: int) -> int:
    """The class of all."""
    raise Exception("just so")


class Short:
    """Has fewer items than it says."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> int:
        return [0, 1][index]
