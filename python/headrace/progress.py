"""A progress bar: by rich if it is installed, else a line on stderr that is rewritten.

In a notebook rich needs ipywidgets; if either is missing, the bar is HTML that is updated.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .loader_run import Run

_SECONDS = 0.1  # between updates


class Progress:
    """Shows the progress of a run. Records are those of one epoch; None if unknown."""

    def __init__(self, records: int | None) -> None:
        self._records = records
        self._bar: Any = None
        self._task: Any = None
        self._cell: Any = None  # IPython's display handle
        self._shown = 0.0
        self._rich = _installed("rich") and (not _in_notebook() or _installed("ipywidgets"))

    def begin(self, run: Run) -> None:
        """A run starts."""
        self.end()
        if not self._rich:
            if _in_notebook():
                page: Any = importlib.import_module("IPython.display")
                self._cell = page.display(page.HTML(_html(f"epoch {run.first}", 0, None, 0.0)), display_id=True)
            return
        from rich import progress

        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[rate]:.0f} records/s"),
            progress.TimeRemainingColumn(),
            transient=False,
        )
        self._task = self._bar.add_task(f"epoch {run.first}", total=self._records, rate=0.0)
        self._bar.start()

    def advance(self, run: Run) -> None:
        """The loop received a batch."""
        now = time.monotonic()
        if now - self._shown < _SECONDS:
            return
        self._shown = now
        self._show(run)

    def _show(self, run: Run) -> None:
        stats = run.stats()
        rate = stats["records"] / max(stats["seconds"], 1e-9)
        if self._bar is not None:
            total = stats["epoch_records"] if stats["epoch_records"] >= 0 else None
            self._bar.update(
                self._task, completed=stats["epoch_done"], total=total, rate=rate, description=f"epoch {stats['epoch']}"
            )
        elif self._cell is not None:
            page: Any = importlib.import_module("IPython.display")
            total = stats["epoch_records"] if stats["epoch_records"] >= 0 else None
            self._cell.update(page.HTML(_html(f"epoch {stats['epoch']}", stats["epoch_done"], total, rate)))
        elif sys.stderr.isatty():
            of = f"/{stats['epoch_records']}" if stats["epoch_records"] >= 0 else ""
            line = f"epoch {stats['epoch']}  {stats['epoch_done']}{of}  {rate:.0f} records/s"
            print(f"\r{line:<60}", end="", file=sys.stderr, flush=True)

    def end(self, run: Run | None = None) -> None:
        """The run has ended; `run` has its final position."""
        if run is not None and self._shown:
            self._show(run)
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        elif self._cell is not None:
            self._cell = None
        elif self._shown and not self._rich and sys.stderr.isatty():
            print(file=sys.stderr)
        self._shown = 0.0


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _in_notebook() -> bool:
    """Whether this runs in a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def _html(what: str, done: int, total: int | None, rate: float) -> str:
    limits = f'value="{done}" max="{total}"' if total is not None else ""
    of = f"/{total}" if total is not None else ""
    return f"<div>{what} <progress {limits}></progress> {done}{of} &nbsp; {rate:.0f} records/s</div>"
