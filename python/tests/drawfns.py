"""Functions of test_worker_random.py that draw from the global generators.

The module imports torch and numpy.random, so the process that workers are forked from has them.
"""

from __future__ import annotations

import os
import pathlib
import random
import signal
import time
from collections.abc import Iterator

import numpy as np
import numpy.random
import torch

BITS = 62


def draws(x: int) -> tuple[int, int, int]:
    """One number of each global generator."""
    return random.getrandbits(BITS), int(np.random.randint(1 << BITS)), int(torch.randint(1 << BITS, ()))


def draws_and_process(x: int) -> tuple[int, int, int, int]:
    """Slow enough that all workers get some."""
    time.sleep(0.002)
    return (*draws(x), os.getpid())


def each_draws(x: int) -> Iterator[int]:
    """Children that are drawn while the generator runs."""
    for _ in range(2):
        yield from draws(x)


def dies_at_its_first_draw(x: int, file: str) -> int:
    """Writes down what it draws, and kills the first two workers."""
    path = pathlib.Path(file)
    drawn = draws(x)
    with path.open("a") as out:
        out.write(" ".join(map(str, drawn)) + "\n")
    if len(path.read_text().splitlines()) <= 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return drawn[0]
