"""Functions of test_worker_random.py that import what they draw from when they are called."""

from __future__ import annotations

import os
import time


def draws(x: int) -> tuple[int, int, int, int]:
    """One number of each global generator, and the process."""
    import random

    import numpy as np
    import torch

    time.sleep(0.002)
    drawn = random.getrandbits(62), int(np.random.randint(1 << 62)), int(torch.randint(1 << 62, ()))
    return (*drawn, os.getpid())
