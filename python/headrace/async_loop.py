"""`async for batch in loader`: other tasks run while a batch is made.

The loader's iterator runs in a thread of its own, one step at a time: the engine works ahead as for any loop, so a step
mostly finds a batch that is ready. A step that is cancelled (asyncio.wait_for) loses nothing: its batch comes with the
next step, and until then the loader's state is the one before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from .errors import UnsupportedError

if TYPE_CHECKING:
    from .loader import Loader

_END = object()


class AsyncLoop:
    """The asynchronous iterator over one run of a loader. Used by one task at a time."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._batches: Iterator[Any] | None = None
        self._pool: ThreadPoolExecutor | None = ThreadPoolExecutor(1, "headrace-async")
        self._step: asyncio.Future[Any] | None = None
        self._before: dict[str, Any] | None = None  # the state before the step

    def __aiter__(self) -> AsyncLoop:
        return self

    async def __anext__(self) -> Any:
        if self._pool is None:
            raise StopAsyncIteration
        if self._step is None:
            self._step = asyncio.get_running_loop().run_in_executor(self._pool, self._take)
        try:
            batch = await asyncio.shield(self._step)
        except asyncio.CancelledError:
            raise  # the step goes on
        except BaseException:
            self._end()
            raise
        self._step = self._before = None
        if batch is _END:
            self._end()
            raise StopAsyncIteration
        return batch

    def _take(self) -> Any:
        if self._batches is None:
            self._batches = iter(self._loader)
        try:
            self._before = self._loader._state_now()
        except UnsupportedError:  # batches in completion order have no state
            self._before = None
        return next(self._batches, _END)

    def _end(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False)
        self._pool = self._step = self._before = self._batches = None

    def __del__(self) -> None:
        self._end()

    @property
    def pending(self) -> dict[str, Any] | None:
        """The state before a batch that was made and not received; None if there is none."""
        return self._before if self._step is not None else None
