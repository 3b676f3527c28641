"""make bench B=demand: what a run costs whose consumer wants a part of what it can make.

    PYTHONPATH=$(sh tools/python-path) python bench/python/demand.py [ROUNDS]

A paced consumer takes 20, 50 and 100 % of the rate that all worker processes make, without a demand and with
`demand=` that rate, in turns: processes that get records, CPU time per record (all processes together), records by
those that were wanted, and the part of the time that the consumer waits. Then buffers: a demanded rate where one
record in 100 takes 30 times as long as the others, with more and fewer batches ahead. Medians over rounds.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import time
from typing import Any

import numpy as np
from variants import processor, spin

import headrace as hr

SHARES = (0.2, 0.5, 1.0)
SETTLE, SLICE, LATE = 4.0, 3.0, 0.25  # seconds
AHEAD = (2, 4, 16, 64)  # batches
RATE = 600  # records per second, for which two processes of `varies` are enough; a quarter of their time is spare


def sleeps(value: int) -> int:
    """2 ms without CPU, as of a file that is far away."""
    time.sleep(0.002)
    return value


def works(value: int) -> int:
    """About 200 us of Python."""
    return spin(value, 7000)


def varies(value: int) -> Any:
    """A photo of 150 kB in 2 ms, one of 100 in 60 ms."""
    time.sleep(0.06 if value % 100 == 50 else 0.002)
    return np.full((224, 224, 3), value % 251, np.uint8)


def pipeline(function: Any) -> Any:
    """The function in worker processes."""
    return hr.range(10**9).shuffle(seed=1).map(function, fields="value", variant="processes").batch(8)


def pace(batches: Any, rate: float, seconds: float) -> int:
    """Takes records at that rate, as far as they come; returns how many."""
    begin = due = time.perf_counter()
    count = 0
    while (now := time.perf_counter()) < begin + seconds:
        if now < due:
            time.sleep(due - now)
            continue
        records = next(batches).records
        count += records
        due = max(due, time.perf_counter() - LATE) + records / rate  # what is missed for longer is lost
    return count


def capacity(pipe: Any, threads: int, **options: Any) -> float:
    """Records per second of a fixed number of threads, each with its processes."""
    with pipe.loader(threads=threads, output="headrace", **options) as loader:
        batches = iter(loader)
        pace(batches, 1e9, 2)
        begin = time.perf_counter()
        return pace(batches, 1e9, SLICE) / (time.perf_counter() - begin)


def made(loader: Any) -> int:
    """Records that the function has made."""
    return sum(node["records"] for node in loader.node_stats() if node["op"] == "code.map")


def measured(pipe: Any, rate: float, **options: Any) -> dict[str, float]:
    """A paced run."""
    with pipe.loader(output="headrace", **options) as loader:
        batches = iter(loader)
        pace(batches, rate, SETTLE)
        busy, before, waited, begin = processor(), made(loader), loader.stats()["wait_seconds"], time.perf_counter()
        count = pace(batches, rate, SLICE)
        taken, stats = time.perf_counter() - begin, loader.stats()
        return {
            "processes": stats["processes_used"],
            "cpu": (processor() - busy) / (made(loader) - before) * 1e6,
            "records": count / taken / rate,
            "wait": (stats["wait_seconds"] - waited) / taken,
            "memory": stats["memory_peak_bytes"] / 1e6,
        }


def median(found: list[dict[str, float]], name: str) -> float:
    """Of all rounds."""
    return statistics.median(one[name] for one in found)


def line(found: list[dict[str, float]], others: list[dict[str, float]]) -> str:
    """Figures, with CPU time by that of the others in the same round."""
    part = statistics.median(a["cpu"] / b["cpu"] for a, b in zip(found, others, strict=True))
    return (
        f"{median(found, 'processes'):4.0f} processes  {median(found, 'cpu'):8.1f} us of CPU per record ({part:4.2f})  "
        f"{100 * median(found, 'records'):5.1f} % of the records  {100 * median(found, 'wait'):5.1f} % waiting"
    )


def shares(name: str, function: Any, threads: int, rounds: int) -> None:
    """A consumer that wants a part."""
    pipe = pipeline(function)
    found: dict[float, tuple[list[dict[str, float]], list[dict[str, float]]]] = {one: ([], []) for one in SHARES}
    for _ in range(rounds):
        most = capacity(pipe, threads)
        for share, (without, given) in found.items():
            without.append(measured(pipe, most * share, threads=threads))
            given.append(measured(pipe, most * share, threads=threads, demand=most * share))
    print(f"{name}, {threads} threads with a process each: {most:.0f} records/s")
    for share, (without, given) in found.items():
        print(f"  {100 * share:3.0f} % wanted, no demand  {line(without, without)}")
        print(f"                 demand     {line(given, without)}", flush=True)


def buffers(threads: int, rounds: int) -> None:
    """Fewer batches ahead at half of the capacity."""
    pipe = pipeline(varies)
    plan, found = pipe.plan(threads=threads), {ahead: [] for ahead in AHEAD}
    for _ in range(rounds):
        for ahead, rows in found.items():
            edited = re.sub(r"(batches_ahead|block_count): \d+", rf"\1: {ahead}", plan)
            rows.append(measured(pipe, RATE, plan=edited, demand=RATE))
    print(f"records of 150 kB, one of 100 is 30 times as slow, {RATE} records/s wanted and demanded, {threads} threads")
    for ahead, rows in found.items():
        print(f"  {ahead:3} batches ahead  {line(rows, rows)}  {median(rows, 'memory'):6.1f} MB", flush=True)


def main(rounds: int) -> None:
    """Runs all cases."""
    print(f"Python {sys.version.split()[0]}, {rounds} rounds, load {os.getloadavg()[0]:.1f}, {os.cpu_count()} CPUs")
    shares("2 ms without CPU", sleeps, 10, rounds)
    shares("200 us of Python", works, os.cpu_count() or 1, rounds)
    buffers(4, rounds)
    print(f"load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
