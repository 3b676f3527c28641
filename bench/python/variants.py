"""User code in threads, in processes and inline, on the interpreter that runs this.

    PYTHONPATH=$(sh tools/python-path) python bench/python/variants.py [ROUNDS]

Alternating, each in a separate process: medians of records per second relative to inline in the
same round, and of CPU time per record, which is less affected by other load.
docs/decisions/0013 has the results with and without the GIL.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import headrace as hr

SECONDS = 1.0
SCALE = np.float32(1 / 255)


def same(value: int) -> int:
    """Identity: the cost of a call."""
    return value


def spin(value: int) -> int:
    """About 50 us of Python."""
    total = value
    for i in range(1500):
        total += i & value
    return total


def picture(value: int) -> Any:
    """A photo of 150 kB, generated from its number."""
    return np.full((224, 224, 3), value % 251, np.uint8)


def normalize(image: Any) -> Any:
    """NumPy, which releases the GIL in its loops; outputs 600 kB."""
    return image * SCALE - np.float32(0.5)


CASES: dict[str, tuple[list[Callable[..., Any]], int]] = {
    "identity of ints": ([same], 256),
    "50 us of Python": ([spin], 64),
    "NumPy on 150 kB": ([picture, normalize], 16),
}
THREADS = {"inline": 0, "threads": 2, "processes": 2}


def below() -> set[int]:
    """This process and its descendants."""
    parents: dict[int, int] = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as file:
            parents[int(entry)] = int(file.read().rpartition(")")[2].split()[1])
    found = {os.getpid()}
    while more := {p for p, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def processor() -> float:
    """CPU seconds of all threads of this process and its descendants."""
    ran = 0
    for process in below():
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{process}/task"):
                with open(f"/proc/{process}/task/{thread}/schedstat", encoding="ascii") as file:
                    ran += int(file.read().split()[0])
    return ran / 1e9


def run(case: str, variant: str) -> None:
    """Runs one variant: prints records per second and microseconds of CPU time per record."""
    functions, size = CASES[case]
    pipe: Any = hr.range(10**9)
    for function in functions:
        pipe = pipe.map(function, fields="value", variant=variant)
    with pipe.batch(size).loader(threads=THREADS[variant], output="headrace") as loader:
        batches = iter(loader)
        begin = time.perf_counter()
        while time.perf_counter() - begin < SECONDS / 2:  # until everything made ahead is consumed
            next(batches)
        count, busy, begin = 0, processor(), time.perf_counter()
        while (taken := time.perf_counter() - begin) < SECONDS:
            next(batches)
            count += size
        print(count / taken, (processor() - busy) / count * 1e6)


def one_of_each(case: str) -> list[tuple[float, float]]:
    """The output of run() for each variant."""
    made = []
    for variant in THREADS:
        done = subprocess.run([sys.executable, __file__, case, variant], text=True, stdout=subprocess.PIPE, check=True)
        rate, cost = done.stdout.split()
        made.append((float(rate), float(cost)))
    return made


def main(rounds: int) -> None:
    """Runs all cases."""
    lock = "without" if sysconfig.get_config_var("Py_GIL_DISABLED") else "with"
    print(f"Python {sys.version.split()[0]} {lock} the GIL, {rounds} rounds")
    for case in CASES:
        found = [one_of_each(case) for _ in range(rounds)]
        for number, variant in enumerate(THREADS):
            ratio = statistics.median(one[number][0] / one[0][0] for one in found)
            cost = statistics.median(one[number][1] for one in found)
            print(f"{case:18} {variant:10} {ratio:6.2f} of inline {cost:8.2f} us of CPU per record", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        run(sys.argv[1], sys.argv[2])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
