"""A limit on the time in which user code is called to find out its types, before a run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from .errors import StuckError

T = TypeVar("T")


class _Called(NamedTuple):
    node: str
    op: str
    code: str


_called: dict[int, list[_Called]] = {}  # by thread: the user code that it is in


@contextmanager
def calling(node: str, op: str, code: str) -> Iterator[None]:
    """The block calls user code of a node."""
    calls = _called.setdefault(threading.get_ident(), [])
    calls.append(_Called(node, op, code))
    try:
        yield
    finally:
        calls.pop()
        if not calls:
            del _called[threading.get_ident()]


class _Worker(threading.Thread):
    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(name="headrace-types", daemon=True)
        self.work = work
        self.result: object = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self.work()
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            self.error = error


def within(seconds: float, work: Callable[[], T]) -> T:
    """What `work` returns or raises; it runs in a thread, which is left alone after `seconds`.

    Raises:
        StuckError: it took longer. Names the code that it was in.
    """
    worker = _Worker(work)
    worker.start()
    worker.join(seconds)
    if worker.is_alive():
        raise _stuck(seconds, worker)
    if worker.error is not None:
        raise worker.error
    return worker.result  # type: ignore[return-value]


def _stuck(seconds: float, worker: _Worker) -> StuckError:
    calls = _called.get(worker.ident or 0, [])
    if not calls:
        return StuckError(f"the types of the pipeline's fields were not known within {seconds:g} s")
    at = calls[-1]
    return StuckError(
        f"node '{at.node}' ({at.op}): {at.code} did not return within {seconds:g} s, when it was called to find out "
        "its types; outputs= declares them without a call",
        node=at.node,
        op=at.op,
    )
