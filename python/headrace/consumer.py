"""A loader that is one of several consumers of a run: its commits and checkpoints.

A checkpoint is written aside, committed through the dispatcher, then put in place. The name of the file aside ends in
the number of the checkpoint, so that after a crash the dispatcher's number tells which file counts.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ._types import PathLike
from .errors import StateError, translated
from .loader_run import Run

if TYPE_CHECKING:
    from .loader import Loader


def _sync(path: str) -> None:
    """What lies at `path` survives a power cut."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _rename(aside: str, path: str) -> None:
    os.replace(aside, path)
    _sync(os.path.dirname(path) or ".")


class Consumer:
    """What a loader with service_consumer= has beside its runs."""

    def __init__(self, loader: Loader) -> None:
        self._of = weakref.ref(loader)
        self._waiting: Run | None = None  # opened to ask which checkpoint counts, for the next loop
        self.untaken = True  # no loop has received a batch
        self.uncommitted = 0  # batches that loops received

    @property
    def _loader(self) -> Loader:
        loader = self._of()
        assert loader is not None
        return loader

    def begin(self, epochs: int | None, state: str | None) -> Run:
        """The run of a loop."""
        if self.uncommitted:
            raise StateError(
                f"the loop before was left with {self.uncommitted} batches that it did not commit; others get them. "
                "Commit before you leave a loop, or make another loader and resume from its checkpoint()"
            )
        run, self._waiting = self._waiting, None
        if run is None or run._iter is None:
            return Run(self._loader, 0, epochs, state)
        if state is not None:
            with translated():
                run._iter.resume(state)
        return run

    def close(self) -> None:
        run, self._waiting = self._waiting, None
        if run is not None:
            run.close()

    def _run(self) -> Run:
        """The one of the loop."""
        run = self._loader._current()
        if run is None or run._iter is None:
            raise StateError("a consumer commits within its loop: each batch that a loop receives needs a commit there")
        return run

    def is_due(self) -> bool:
        run = self._run()
        assert run._iter is not None
        with translated():
            return run._iter.commit_due()

    def save(self) -> str | None:
        return self._run().save()

    @contextlib.contextmanager
    def commit(self, path: PathLike) -> Iterator[str]:
        engine = self._run()._iter
        assert engine is not None
        place = os.fspath(path)
        with translated():
            aside = f"{place}.{engine.committed() + 1}"
        yield aside
        if not os.path.isfile(aside):
            raise StateError(f"commit(): no file was written to the path that it gave, {aside}")
        _sync(aside)
        _sync(os.path.dirname(aside) or ".")
        with translated():
            engine.commit()
        self.uncommitted = 0
        _rename(aside, place)

    def checkpoint(self, path: PathLike) -> str | None:
        if self._waiting is None:
            if not self.untaken:
                raise StateError("checkpoint() is for a loader that has not begun")
            self._waiting = self._loader._ask_run()
        try:
            return self._found(os.fspath(path), self._waiting)
        except BaseException:
            self.close()  # others may be this consumer
            raise

    def _found(self, place: str, run: Run) -> str | None:
        engine = run._iter
        assert engine is not None
        with translated():
            number = engine.committed()
        if number == 0 and os.path.exists(place):  # what lies aside may count elsewhere
            raise StateError(
                f"{place} exists, and the dispatcher knows no checkpoint of this consumer: name a dispatcher with the "
                "journal of its commits, or remove the file to begin"
            )
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{place}.{number + 1}")  # of a commit that does not count
        if number > 0 and os.path.exists(f"{place}.{number}"):
            _rename(f"{place}.{number}", place)
        exists = os.path.exists(place)
        if number > 0 and not exists:
            raise StateError(
                f"checkpoint {number} of this consumer is committed, and there is neither {place} nor "
                f"{place}.{number}: bring it here, or take another name for a new consumer"
            )
        return place if exists else None
