"""A thread of a loader beside its run, which any thread may end at any moment."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_JOIN_S = 2.0


class Aside:
    """One thread at a time. The run's thread begins it; any thread closes this, also while it begins."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.RLock()  # re-entrant: a signal handler may close it
        self._closed = False
        self.thread: threading.Thread | None = None  # the last one that began

    @property
    def is_alive(self) -> bool:
        return self.thread is not None and self.thread.is_alive()

    def begin(self, target: Callable[..., None], *args: Any) -> None:
        """Calls `target` in a thread, unless this is closed."""
        with self._lock:
            assert not self.is_alive
            if not self._closed:
                thread = threading.Thread(target=target, args=args, name=self._name, daemon=True)
                thread.start()
                self.thread = thread  # now that it can be joined

    def close(self) -> None:
        """No thread begins any more; waits a while for one that has."""
        with self._lock:
            self._closed = True
            thread = self.thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_JOIN_S)
