"""make bench B=code, its second part: user code inline, in threads and in worker processes, predicted and measured.

    PYTHONPATH=$(sh tools/python-path) python bench/python/variants.py [ROUNDS]

Each graph is profiled and its variants are chosen as `pipe.optimize()` does; then they run in turns of 0.3 s, each
after what it made ahead was taken. Figures are ratios to inline in the same round (medians). On a quiet machine they
are those of wall time. Other work gives two threads more of the machine than one, also where a lock would let only one
run on free cores; there they are those of CPU time on the cores that there are, and two threads make at most as much
as the functions that never release the GIL let them. Inline is the unit, not a choice: `loader(threads=0)` decides it.
Then a loader with `optimize=True`, which knows no costs, finds its variant while it runs.
docs/decisions/0013 has results with and without the GIL, 0092 those of the model. Pillow is a case if it is installed.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

import headrace as hr

SLICE = 0.3  # seconds
REST, REST_MAX = 0.05, 1.0
LIVE = 16.0  # seconds in which a run has to find its variant
THREADS = 2
CLOSE = 0.05  # a choice that loses less than this is as good as the best
SCALE = np.float32(1 / 255)
PAGE = np.random.default_rng(0).integers(0, 64, 16000, np.uint8).tobytes()


def same(value: int) -> int:
    """Identity: the cost of a call."""
    return value


def spin(value: int, turns: int) -> int:
    """Some 30 ns of Python for each turn."""
    total = value
    for i in range(turns):
        total += i & value
    return total


def short(value: int) -> int:
    """About 20 us of Python."""
    return spin(value, 700)


def long(value: int) -> int:
    """About 200 us of Python."""
    return spin(value, 7000)


def picture(value: int) -> Any:
    """A photo of 150 kB, generated from its number."""
    return np.full((224, 224, 3), value % 251, np.uint8)


def normalize(image: Any) -> Any:
    """NumPy, which releases the GIL in its loops; outputs 600 kB."""
    return image * SCALE - np.float32(0.5)


def small(value: int) -> Any:
    """NumPy on 3 kB: calls, not loops, take the time."""
    image = np.full((32, 32, 3), value % 251, np.uint8)
    return (image[:, ::-1] * SCALE - np.float32(0.5)).sum(axis=2)


def photo(value: int) -> Any:
    """A JPEG of 320x240, decoded and resized by Pillow, which releases the GIL in both."""
    from PIL import Image

    with Image.open(io.BytesIO(jpeg(value % 8))) as image:
        return np.asarray(image.convert("RGB").resize((224, 224)))


@functools.cache
def jpeg(number: int) -> bytes:
    """A photo of waves and noise."""
    from PIL import Image

    y, x = np.mgrid[:240, :320]
    noise = np.random.default_rng(number).normal(0, 8, (240, 320))
    waves = [128 + 60 * np.sin(x / (9 + number + c)) + 40 * np.cos(y / (7 + c)) + noise for c in range(3)]
    file = io.BytesIO()
    Image.fromarray(np.clip(np.stack(waves, 2), 0, 255).astype(np.uint8)).save(file, "JPEG", quality=85)
    return file.getvalue()


def waits(value: int) -> int:
    """A request to a slow server: 2 ms without the GIL or a core."""
    time.sleep(0.002)
    return value


def large(value: int) -> Any:
    """An array of 1 MB."""
    return np.full(1 << 20, value % 251, np.uint8)


def turned(array: Any) -> Any:
    """1 MB in and out: a copy under the GIL, beside those of arguments and results, which release it."""
    return np.frombuffer(array.tobytes(), np.uint8)


def packed(value: int) -> int:
    """Some 300 us of zlib, which releases the GIL."""
    return len(zlib.compress(PAGE + value.to_bytes(8, "little")))


def sums(array: Any) -> int:
    """150 kB in, a number out: a loop in Python."""
    return spin(int(array[0, 0, 0]), 5000)


CASES: dict[str, tuple[list[Callable[..., Any]], int]] = {
    "identity of ints": ([same], 256),
    "20 us of Python": ([short], 128),
    "200 us of Python": ([long], 32),
    "NumPy on 3 kB": ([small], 64),
    "NumPy on 150 kB": ([picture, normalize], 16),
    "zlib": ([packed], 32),
    "1 MB in and out": ([large, turned], 8),
    "150 kB to a number": ([picture, sums], 32),
    "sleep of 2 ms": ([waits], 16),
}
if importlib.util.find_spec("PIL") is not None:
    CASES["Pillow, a photo"] = ([photo], 16)
HOLD = (same, short, long, sums)  # never release the GIL
WAIT = ("sleep of 2 ms",)  # cases that hardly compute: wall time is what they take, whatever else runs
VARIANTS = {"inline": 0, "threads": THREADS, "processes": THREADS}


def pipeline(case: str, variant: str) -> Any:
    """The pipeline with all functions in a variant."""
    functions, size = CASES[case]
    pipe: Any = hr.range(10**9)
    for function in functions:
        pipe = pipe.map(function, fields="value", variant=variant)
    return pipe.batch(size)


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


def rest(loader: Any) -> None:
    """Waits until the loader has made all that it may make ahead."""
    before, end = -1, time.perf_counter() + REST_MAX
    while (ready := loader.stats()["batches_ready"]) != before and time.perf_counter() < end:
        before = ready
        time.sleep(REST)


def slice_of(loader: Any, batches: Any) -> tuple[float, float]:
    """Records per second and microseconds of CPU time per record, after what was made ahead."""
    end = time.perf_counter() + SLICE
    while loader.stats()["batches_ready"] > 0 and time.perf_counter() < end:
        next(batches)
    count, busy, begin = 0, processor(), time.perf_counter()
    while (taken := time.perf_counter() - begin) < SLICE:
        count += next(batches).records
    made = count / taken, (processor() - busy) / count * 1e6
    rest(loader)
    return made


def turns(case: str, names: list[str], moved: str, rounds: int) -> None:
    """Runs the variants in turns, and prints what each slice made."""
    with contextlib.ExitStack() as stack:
        loaders = []
        for name in names:
            pipe = chosen(case, moved) if name == "chosen" else pipeline(case, name)
            loader = stack.enter_context(pipe.loader(threads=VARIANTS.get(name, THREADS), output="headrace"))
            batches = iter(loader)
            next(batches)
            rest(loader)
            loaders.append((name, loader, batches))
        for at in range(rounds):
            for name, loader, batches in loaders[at % len(loaders) :] + loaders[: at % len(loaders)]:
                print(name, *slice_of(loader, batches))


def choose(case: str) -> None:
    """Prints what is predicted: the functions that go to processes, and the rates of inline, threads, processes and
    the choice; then the part of the CPU time of functions that never release the GIL."""
    from headrace import build, optimizing

    pipe = pipeline(case, "threads")
    built = build.build(pipe._node, anywhere=True)
    with optimizing.workers(built):
        costs = optimizing.profile(built.graph, 3.0, None, 0.05, 0, True, 0)
    settings = optimizing.Settings("exact", "written", 64, 0)
    steps, found = optimizing.ways(built.graph, costs, settings, False, THREADS)
    alone = optimizing.ways(built.graph, costs, settings, False, 1)[1]
    names = ", ".join(step.node for step in steps)
    rates = [
        next(way.rate for way in ways if way.processes == which)
        for ways, which in ((alone, ""), (found, ""), (found, names))
    ]
    moved = [at for at, step in enumerate(steps) if step.moved]
    spent = [(fn, costs[step.node].cpu_ns) for fn, step in zip(CASES[case][0], steps, strict=True)]
    held = sum(ns for fn, ns in spent if fn in HOLD) / sum(node.cpu_ns for node in costs if "batch" not in node.op)
    print(",".join(map(str, moved)) or "-", *rates, found[0].rate, held)


def chosen(case: str, moved: str) -> Any:
    """The pipeline with some of its functions in processes."""
    functions, size = CASES[case]
    there = set() if moved == "-" else set(map(int, moved.split(",")))
    pipe: Any = hr.range(10**9)
    for at, function in enumerate(functions):
        pipe = pipe.map(function, fields="value", variant="processes" if at in there else "threads")
    return pipe.batch(size)


def live(case: str) -> None:
    """Prints in which variant a run ends that knows no costs, and after how many seconds it is there."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HEADRACE_CACHE"] = folder
        with pipeline(case, "threads").loader(threads=THREADS, output="headrace", optimize=True) as loader:
            begin, code = time.perf_counter(), None
            for _ in loader:
                code = loader._order.code
                if code is None or code.is_settled or time.perf_counter() - begin > LIVE:
                    break
            seconds = time.perf_counter() - begin
            moved = sum(step.moved for step in code.steps) if code is not None else 0
            print({0: "threads", len(CASES[case][0]): "processes"}.get(moved, "both"), seconds)


def child(*words: str) -> list[str]:
    """The words that a process of its own prints."""
    done = subprocess.run([sys.executable, __file__, *words], text=True, stdout=subprocess.PIPE, check=True)
    return done.stdout.split()


def ratio(case: str, rounds: list[dict[str, tuple[float, float]]], variant: str, held: float) -> float:
    """The rate of a variant by that of inline. held: the part of its time with a lock that one thread at a time has."""
    wall = statistics.median(one[variant][0] / one["inline"][0] for one in rounds)
    cpus = len(os.sched_getaffinity(0))
    if variant == "inline" or case in WAIT or os.getloadavg()[0] < cpus / 2:
        return wall
    work = statistics.median(min(THREADS, cpus) * one["inline"][1] / one[variant][1] for one in rounds)
    return min(work, 1 / held) if held > 0 else work


def report(case: str, rounds: int) -> tuple[bool, str]:
    """Runs a case; returns whether the choice was the best or close to it, and its row of the table."""
    moved, *predicted, held = child("choose", case)
    rates = dict(zip([*VARIANTS, "chosen"], map(float, predicted), strict=True))
    every = ",".join(map(str, range(len(CASES[case][0]))))
    same_as = {"-": "threads", every: "processes"}.get(moved)
    names = [*VARIANTS] if same_as else [*VARIANTS, "chosen"]
    words = child("turns", case, ",".join(names), moved, str(rounds))
    slices = [(words[at], float(words[at + 1]), float(words[at + 2])) for at in range(0, len(words), 3)]
    found = [
        {name: (rate, cost) for name, rate, cost in slices[at : at + len(names)]}
        for at in range(0, len(slices), len(names))
    ]
    ratios = {name: ratio(case, found, name, float(held) if name == "threads" else 0) for name in names}
    choice = same_as or "chosen"
    best = max(names[1:], key=lambda name: ratios[name])
    good = ratios[choice] >= (1 - CLOSE) * ratios[best]
    print(f"{case}: {'best' if choice == best else 'within 5 %' if good else f'WORSE than {best}'}")
    for name in names:
        cost = statistics.median(one[name][1] for one in found)
        wall = statistics.median(one[name][0] / one["inline"][0] for one in found)
        mark = " <- chosen" if name == choice else ""
        print(
            f"  {name:10} predicted {rates[name] / rates['inline']:5.2f}  measured {ratios[name]:5.2f} "
            f"(wall {wall:5.2f}, {cost:8.2f} us of CPU per record){mark}",
            flush=True,
        )
    ended, seconds = child("live", case)
    kept = ended == "both" or ratios[ended] >= (1 - CLOSE) * ratios[best]
    after = f" after {float(seconds):.1f} s" if float(seconds) < LIVE else ""
    print(f"  optimize=True ends in {ended}{after}{'' if kept else f', WORSE than {best}'}", flush=True)
    good = good and kept
    cells = [f"{rates[name] / rates['inline']:.2f}, {ratios[name]:.2f}" for name in ("threads", "processes")]
    return good, f"| {case} | {cells[0]} | {cells[1]} | {choice if same_as else 'both'} |"


def main(rounds: int) -> None:
    """Runs all cases."""
    lock = "without" if sysconfig.get_config_var("Py_GIL_DISABLED") else "with"
    load = os.getloadavg()[0]
    print(f"Python {sys.version.split()[0]} {lock} the GIL, {rounds} rounds, load {load:.1f}; rates by that of inline")
    found = [report(case, rounds) for case in CASES]
    good = sum(one for one, _ in found)
    load = os.getloadavg()[0]
    print(f"{good} of {len(CASES)} cases: both choices are the best or within 5 % of it; load {load:.1f} at the end")
    print("| code: predicted, measured | two threads | two processes | chosen |", "|---|---|---|---|", sep="\n")
    print(*[row for _, row in found], sep="\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["choose"]:
        choose(sys.argv[2])
    elif sys.argv[1:2] == ["live"]:
        live(sys.argv[2])
    elif sys.argv[1:2] == ["turns"]:
        turns(sys.argv[2], sys.argv[3].split(","), sys.argv[4], int(sys.argv[5]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
