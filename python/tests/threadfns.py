"""A module that starts a thread when it is imported, as some packages do."""

from __future__ import annotations

import os
import signal
import threading
import time

threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


def negate(x: int) -> int:
    return -x


def die(x: int) -> int:
    if x == 13:
        os.kill(os.getpid(), signal.SIGBUS)
    return x
