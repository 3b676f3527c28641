"""make bench B=python: the package vs. the command and PyTorch's DataLoader.

Needs torch and torchvision; tools/bench finds them in the peers' environment
(bench/peers/setup.sh). Every case is a separate process on the same cores (cases.py); numbers and
arrays alternate within one process, everything else between processes.

    driver.py BUILD PHOTOS [--json] [--rounds N] [--only GROUP,...]
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

from table import Table

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIMIT_SECONDS = 600
PHOTOS = "photos, crop 224, 2 cores, batches of 256"
MEMORY = "memory of all processes, run ahead"


def tree(root: int) -> set[int]:
    """The process `root` and its descendants."""
    parents: dict[int, int] = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = {root}
    while more := {p for p, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def memory_bytes(root: int) -> int:
    """Memory of a process and its descendants; shared pages are divided among their users.

    Shared files that are held open count whole: DataLoader's batches that wait in its
    queue are mapped by nobody.
    """
    total, mapped = 0, 0
    files: dict[tuple[int, int], int] = {}
    for pid in tree(root):
        try:
            for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += 1024 * int(line.split()[1])
                elif line.startswith("Pss_Shmem:"):
                    mapped += 1024 * int(line.split()[1])
            for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                if os.readlink(fd).startswith(("/dev/shm/", "/memfd:")):
                    stat = fd.stat()
                    files[stat.st_dev, stat.st_ino] = 512 * stat.st_blocks
        except OSError:
            continue
    return total - mapped + max(mapped, sum(files.values()))


def run(command: list[str], memory: bool = False) -> dict[str, Any]:
    """The JSON that a process prints last; with "memory", also the peak memory of its tree."""
    env = {**os.environ, "BENCH_BEGIN": repr(time.monotonic())}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    over, peak = threading.Event(), 0

    def watch() -> None:
        nonlocal peak
        while not over.wait(0.25):
            peak = max(peak, memory_bytes(process.pid))

    watcher = threading.Thread(target=watch, daemon=True)
    if memory:
        watcher.start()
    try:
        out, err = process.communicate(timeout=LIMIT_SECONDS)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    finally:
        over.set()
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {err.strip()[-2000:]}")
    made: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    if memory:
        watcher.join()
        made["memory"] = peak
    return made


class Bench:
    """The groups of rows: each adds its figures in every round and its claims at the end."""

    def __init__(self, build: pathlib.Path, photos: pathlib.Path, thousand: pathlib.Path) -> None:
        self.build, self.photos, self.thousand = build, photos, thousand
        self.table = Table()

    def case(self, name: str, *args: object, memory: bool = False) -> dict[str, Any]:
        return run([sys.executable, str(HERE / "cases.py"), name, *map(str, args)], memory)

    # ---- photos ----

    def command_rate(self, batch: int, epochs: int) -> float:
        """headrace run of the same graph, after its first batches."""
        graph = ROOT / "examples/vision_rrc.yaml"
        params = ["-p", f"data={self.photos}", "-p", f"batch={batch}"]
        options = ["--json", "--threads", "2", "--epochs", str(epochs)]
        made = run([str(self.build / "headrace"), "run", str(graph), *options, *params])
        return float(made["steady"]["records"] / made["steady"]["seconds"])

    def command(self) -> None:
        """Python vs. the command."""
        for row, rate in (
            ("headrace run", lambda: self.command_rate(256, 24)),
            ("from Python", lambda: self.case("photos_ours", self.photos, 256, 36)["rate"]),
        ):
            self.table.add("vision_rrc, 2 threads", "photos/s", row, rate())

    def command_claims(self) -> None:
        self.table.claim(
            "vision_rrc from Python / headrace run",
            self.table.ratios("vision_rrc, 2 threads", "from Python", "headrace run"),
            0.97,
        )

    def handover(self) -> None:
        """From a ready batch to a tensor; the preceding next() also wakes the engine's threads,
        which includes the time to wake a sleeping core."""
        made = self.case("hand_over", self.photos)
        for row in ("large", "small"):
            size = "154 MB" if row == "large" else "128 B"
            self.table.add("ready batch to torch", "us", f"{size}, next() and tensor", made[row] * 1e6)
            self.table.add("ready batch to torch", "us", f"{size}, tensor alone", made[row + "_tensor"] * 1e6)

    def handover_claims(self) -> None:
        for size in ("154 MB", "128 B"):
            values = self.table.rows["ready batch to torch"][f"{size}, tensor alone"]
            self.table.claim(f"a ready batch of {size} as a tensor, us", values, 20, at_least=False)

    def photo_rates(self) -> None:
        """torchvision transforms in Headrace and in DataLoader."""
        for workers in (0, 1, 2):
            for name, which in (("DataLoader", "torch"), ("hr.DataLoader", "hr"), ("hr.vision", "vision")):
                count = 12 if which == "vision" else 4
                made = self.case("photos_torch", self.photos, which, workers, count, memory=True)
                self.table.add(PHOTOS, "photos/s", f"{name}, {workers} workers", made["rate"])
                self.table.add(MEMORY, "MB", f"{name}, {workers} workers", made["memory"] / 1e6)
        made = self.case("photos_user", self.photos, "processes", 4, memory=True)
        self.table.add(PHOTOS, "photos/s", "same code in our processes", made["rate"])
        self.table.add(MEMORY, "MB", "same code in our processes", made["memory"] / 1e6)
        for variant in ("processes", "threads"):
            rate = self.case("photos_rest", self.photos, variant, 12)["rate"]
            self.table.add(PHOTOS, "photos/s", f"normalise left in Python, {variant}", rate)
        self.table.add(PHOTOS, "photos/s", "all ours", self.case("photos_ours", self.photos, 256, 20)["rate"])

    def photo_rates_claims(self) -> None:
        rows = self.table.rows[PHOTOS]
        base, own, vision = (
            max((row for row in rows if row.startswith(name)), key=lambda row: sum(rows[row]))
            for name in ("DataLoader", "hr.DataLoader", "hr.vision")
        )
        self.table.facts["photos"] = f"DataLoader is fastest with {base.split()[1]} workers"
        same, rest = "same code in our processes", "normalise left in Python, processes"
        self.table.claim("same code in our processes / DataLoader", self.table.ratios(PHOTOS, same, base), 1)
        self.table.claim("its memory / DataLoader's", self.table.ratios(MEMORY, same, base), 0.7, at_least=False)
        self.table.claim("hr.DataLoader / DataLoader", self.table.ratios(PHOTOS, own, base), 1)
        self.table.claim(
            "memory of hr.DataLoader / DataLoader's", self.table.ratios(MEMORY, own, base), 0.7, at_least=False
        )
        self.table.claim(
            "hr.DataLoader with hr.vision / DataLoader with torchvision", self.table.ratios(PHOTOS, vision, base), 2
        )
        self.table.claim("decode, crop, flip ours / DataLoader", self.table.ratios(PHOTOS, rest, base), 1.6)

    # ---- numbers and arrays ----

    def ints(self) -> None:
        """Identity over 200,000 numbers."""
        for row, values in self.case("ints", 1).items():
            self.table.add("identity over 200,000 ints, batches of 256", "ns/record", row, values[0])

    def ints_claims(self) -> None:
        group = "identity over 200,000 ints, batches of 256"
        rows = [f"headrace, {v}" for v in ("inline", "threads, 1 thread", "threads, 2 threads")]
        best = min(rows, key=lambda row: sum(self.table.rows[group][row]))
        self.table.claim(
            f"DataLoader with 0 workers / {best}", self.table.ratios(group, "DataLoader, 0 workers", best), 1.5
        )
        processes = self.table.ratios(group, "DataLoader, 2 workers", "headrace, processes, 2 threads")
        self.table.claim("DataLoader with 2 workers / processes", processes, 10)

    def arrays(self) -> None:
        """Arrays from worker processes."""
        for size, batch in ((238_144, 16), (4 << 20, 4)):
            for row, values in self.case("arrays", size, batch, 1).items():
                self.table.add(f"arrays of {size} bytes, 2 processes", "MB/s", row, values[0])

    def arrays_claims(self) -> None:
        for size in (238_144, 4 << 20):
            group = f"arrays of {size} bytes, 2 processes"
            for base, limit in (("DataLoader, tensors", 3), ("multiprocessing.Pool, NumPy", 8)):
                values = self.table.ratios(group, "headrace, made in processes", base)
                self.table.claim(f"arrays of {size} bytes / {base}", values, limit)

    # ---- starting ----

    def start(self) -> None:
        """Time to the first batch of two worker processes."""
        group = "first batch of a trivial data set, processes"
        for method in ("spawn", "fork"):
            seconds = self.case("start_torch", method)["seconds"]
            self.table.add(group, "s", f"DataLoader, {method}", seconds)
        self.table.add(group, "s", "headrace, torch imported", self.case("start_ours", "torch")["seconds"])
        self.table.add(group, "s", "headrace, import included", self.case("start_ours", "none")["seconds"])

    def start_claims(self) -> None:
        group = "first batch of a trivial data set, processes"
        ratios = self.table.ratios(group, "headrace, torch imported", "DataLoader, spawn")
        self.table.claim("start of processes / DataLoader with spawn", ratios, 0.5, at_least=False)
        values = self.table.rows[group]["headrace, import included"]
        self.table.claim("first batch with processes, s", values, 1.5, at_least=False)

    def first(self) -> None:
        """From the start of the interpreter to the first batch of 1000 photos."""
        group = "python to the first batch, 1000 photos"
        for row, torch in (("headrace", "none"), ("headrace beside torch", "torch")):
            made = self.case("first_batch", self.thousand, torch)
            self.table.add(group, "s", row, made["seconds"])
            if torch == "torch":
                self.table.add(group, "s", "  of which torch's import", made["torch"])

    def first_claims(self) -> None:
        values = self.table.rows["python to the first batch, 1000 photos"]["headrace"]
        self.table.claim("first batch after python starts, s", values, 0.3, at_least=False)

    def resume(self) -> None:
        """A state at 90 % of 1.28 million names."""
        for row, seconds in self.case("resume", 1_280_000).items():
            self.table.add("resume at 90 % of 1,280,000", "ms", row, seconds * 1e3)

    def resume_claims(self) -> None:
        for row, values in self.table.rows["resume at 90 % of 1,280,000"].items():
            self.table.claim(f"resume at 90 % of 1,280,000 {row}, ms", values, 100, at_least=False)


GROUPS = ("command", "handover", "photo_rates", "ints", "arrays", "start", "first", "resume")


def thousand_photos(photos: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """A folder of 1000 links to the available photos."""
    files = sorted(photos.rglob("[!.]*.*"))
    for at in range(1000):
        file = files[at % len(files)]
        (folder / f"{at:04}{file.suffix}").symlink_to(file)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("photos", type=pathlib.Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(GROUPS), help="groups, comma-separated: " + ", ".join(GROUPS))
    args = parser.parse_args()
    chosen = args.only.split(",")
    if unknown := [group for group in chosen if group not in GROUPS]:
        parser.error(f"unknown group {unknown[0]}; the groups are {', '.join(GROUPS)}")
    cores = sorted(os.sched_getaffinity(0))[:2]
    os.sched_setaffinity(0, cores)
    # The cases run compiled modules, as those of an installed package are.
    os.environ.setdefault("PYTHONPYCACHEPREFIX", str(args.build.resolve() / "pycache"))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args.build.resolve(), args.photos.resolve(), pathlib.Path(folder))
        thousand_photos(args.photos.resolve(), bench.thousand)
        import torch

        bench.table.facts = {
            "machine": f"{platform.machine()}, CPUs {cores} of {os.cpu_count()}",
            "versions": f"Python {platform.python_version()}, torch {torch.__version__}",
            "rounds": str(args.rounds),
        }
        for at in range(args.rounds):
            for group in chosen:
                print(f"round {at + 1} of {args.rounds}: {group}", file=sys.stderr, flush=True)
                step: Callable[[], None] = getattr(bench, group)
                step()
        for group in chosen:
            getattr(bench, group + "_claims")()
    print(
        bench.table.json() if args.json else "python: the package vs. the command and DataLoader\n" + bench.table.show()
    )


if __name__ == "__main__":
    main()
