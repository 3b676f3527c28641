"""make bench B=controller: how a run's threads follow a demand on real photos, while the demand, the machine and the
disk change.

    PYTHONPATH=$(sh tools/python-path) python bench/python/controller.py PHOTOS [--step SECONDS] [--long SECONDS]

cv_torch of examples/papers, whose photos come from a disk that takes 4 ms for each (a function that waits), with up to
24 threads. First what a fixed number of threads makes. Then a consumer that is paced at the demanded rate:

    steps      20 to 100 % of what all threads make, in jumps
    neighbour  half of it, while programs that compute on all cores come and go
    disk       a rate for which two threads are enough, while the disk takes ten times as long and recovers
    constant   half of it, and nothing changes

For each phase: when the number of threads was within one of that at its end for good, how often it changed, how many
threads there are at the end beside the fewest that make the rate, and which part of the demand came after 5 s.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from demand import capacity, pace

import headrace as hr

DISK_S = 0.004
THREADS = 24
SETTLE_S = 5.0
STEPS = (0.2, 0.6, 0.4, 1.0, 0.3, 0.8)
PACED = 0.97  # of what all threads make: a demand of all of it leaves nothing to catch up with

delay_s = DISK_S


def from_disk(encoded: Any) -> Any:
    """The disk."""
    time.sleep(delay_s)
    return encoded


def pipeline(photos: str) -> hr.Pipeline:
    """The steps of examples/papers/cv_torch.py, behind the slow disk."""
    return (
        hr.files(photos)
        .shuffle(seed=1)
        .map(from_disk, fields="data", variant="threads")
        .decode()
        .cast("float32")
        .random_resized_crop(244)
        .flip(p=0.5)
        .color_jitter(brightness=0.1, contrast=0.1, saturation=0.1, hue=0.1)
        .grayscale()
        .gaussian_blur(11, sigma=[0.1, 2.0])
        .normalize([0.1307], [0.3081])
        .batch(4)
    )


class Phase(NamedTuple):
    """A part of a run in which nothing changes."""

    name: str
    rate: float  # demanded
    settled_s: float  # until the number of threads stays within one of that at the end
    changes: int
    threads: int  # at its end
    part: float  # of the demand, that came after SETTLE_S


def phase(name: str, loader: Any, batches: Iterator[Any], rate: float, seconds: float) -> Phase:
    """Runs for that many seconds with this demand."""
    loader.demand = rate
    begin, before = time.perf_counter(), loader.stats()["thread_changes"]
    seen: list[tuple[float, int]] = []  # seconds, threads
    count, counted_s = 0, 0.0
    while (passed := time.perf_counter() - begin) < seconds:
        took = pace(batches, rate, 0.25)
        now = time.perf_counter() - begin
        seen.append((now, loader.stats()["threads_used"]))
        if passed >= SETTLE_S:
            count += took
            counted_s += now - passed
    last = seen[-1][1]
    settled_s = max((at for at, threads in seen if abs(threads - last) > 1), default=0.0)
    changes = loader.stats()["thread_changes"] - before
    return Phase(name, rate, settled_s, changes, last, count / max(counted_s, 1e-9) / rate)


def fewest(rates: list[float], demand: float) -> int:
    """Threads that make the demand; all where none do."""
    return next((n + 1 for n, rate in enumerate(rates) if rate >= demand), len(rates))


def run(title: str, pipe: hr.Pipeline, parts: list[tuple[str, float, float, Callable[[], None]]], rates: Any) -> None:
    """A run of several phases: name, demand, seconds, and what happens when it begins."""
    print(f"\n{title}")
    print(f"  {'':<22}{'demand':>8}{'came':>8}{'settled':>9}{'changes':>9}{'threads':>9}{'fewest':>8}")
    with pipe.loader(threads=THREADS, epochs=None, output="headrace", demand=parts[0][1]) as loader:
        batches = iter(loader)
        for name, rate, seconds, begin in parts:
            begin()
            p = phase(name, loader, batches, rate, seconds)
            least = fewest(rates, rate) if rates is not None else 0
            print(
                f"  {p.name:<22}{p.rate:>8.0f}{100 * p.part:>6.1f} %{p.settled_s:>7.2f} s{p.changes:>9}{p.threads:>9}"
                f"{least if least else '-':>8}",
                flush=True,
            )


class Neighbour:
    """Programs that compute on all cores."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []

    def come(self) -> None:
        """They begin."""
        cores = len(os.sched_getaffinity(0))
        self.processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(cores)]

    def go(self) -> None:
        """They end."""
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes = []


def set_delay(seconds: float) -> Callable[[], None]:
    """A function after which each photo takes that long."""

    def change() -> None:
        global delay_s
        delay_s = seconds

    return change


def main() -> None:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("photos")
    parser.add_argument("--step", type=float, default=20, help="seconds of a phase")
    parser.add_argument("--long", type=float, default=600, help="seconds in which nothing changes")
    args = parser.parse_args()
    pipe, neighbour = pipeline(args.photos), Neighbour()

    def nothing() -> None:
        return None

    print(f"controller: threads by demand, {len(os.sched_getaffinity(0))} CPUs, load {os.getloadavg()[0]:.1f}")
    counts = [1, 2, 3, 4, 6, 8, 12, 16, 24]
    known = {n: capacity(pipe, n, epochs=None) for n in counts}
    print("  fixed threads: " + ", ".join(f"{n}: {rate:.0f}/s" for n, rate in known.items()))
    most = max(known.values()) * PACED
    rates = [between(known, n) for n in range(1, THREADS + 1)]
    try:
        steps = [(f"{100 * part:.0f} %", most * part, args.step, nothing) for part in STEPS]
        run("steps", pipe, steps, rates)
        half = most / 2
        parts = [("alone", half, args.step, nothing), ("neighbour", half, args.step, neighbour.come)]
        run("neighbour", pipe, [*parts, ("alone again", half, args.step, neighbour.go)], None)
        slow = 1.8 * known[1]
        parts = [
            ("as before", slow, args.step, set_delay(DISK_S)),
            ("ten times as slow", slow, args.step, set_delay(10 * DISK_S)),
        ]
        run("disk", pipe, [*parts, ("as before", slow, args.step, set_delay(DISK_S))], None)
        if args.long > 0:
            run("constant", pipe, [("50 %", half, args.long, nothing)], rates)
    finally:
        neighbour.go()


def between(known: dict[int, float], threads: int) -> float:
    """The rate of a number of threads, by line between those that were measured."""
    below = max(n for n in known if n <= threads)
    above = min(n for n in known if n >= threads)
    if below == above:
        return known[below]
    return known[below] + (known[above] - known[below]) * (threads - below) / (above - below)


if __name__ == "__main__":
    main()
