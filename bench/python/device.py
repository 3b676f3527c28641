"""make bench B=device: training on a CUDA device with Headrace's batches vs. PyTorch's DataLoader.

    device.py PHOTOS [--json] [--rounds N] [--steps N] [--batch N] [--model NAME] [--device NAME]

Needs torch and torchvision ($TORCH_PYTHON). Photos become uint8 CHW of 224 x 224, which the model
normalises on the device. Contenders alternate in every round. Without a CUDA device it prints so;
`--device cpu` tries it out.

What the groups say:
    training         a step of the model with data that stays on the device is the ceiling. In the loops
                     that wait, loss.item() ends each step.
    a batch          from memory, without decoding: time until the loop has the batch, and it is on the device
    the copy         its parts, of a tensor as large as a batch
    loaders alone    records per second without a model. "processes of one thread" share nothing, so that
                     their sum is what the machine can do.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from table import Table

import headrace as hr

HERE = pathlib.Path(__file__).resolve().parent
NOW = time.perf_counter
SIDE, CLASSES = 224, 1000
PASSES = 100_000  # over the photos in one epoch, which does not end while it is measured
LEAD_S, SPAN_S = 8.0, 6.0  # before processes are measured together, and how long
MODEL_S = 0.03  # of a loop that does something between two batches
COPIES = 20  # of a batch, per round
AHEAD = 4  # batches that Headrace has ready, at least as many as it makes ahead


def photos(folder: str, batch: int) -> hr.Pipeline:
    pipe = hr.files(folder).shuffle().repeat(PASSES).decode().random_resized_crop(SIDE).flip()
    return pipe.layout("chw").batch(batch)


def cpus() -> int:
    return len(os.sched_getaffinity(0))


def counts() -> list[int]:
    """Numbers of threads: powers of two, and one per CPU."""
    return sorted({n for n in (1, 2, 4, 8, 16, 32, 64) if n <= cpus()} | {cpus()})


def cores() -> str:
    """CPUs and cores of this machine; two CPUs of a core are not two cores."""
    found = set()
    for cpu in os.sched_getaffinity(0):
        with contextlib.suppress(OSError):
            at = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
            found.add(at.read_text().strip())
    return f"{cpus()} CPUs, {len(found) or 'unknown'} cores"


def processor() -> str:
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def one_of_many(folder: str, batch: int, begin: float) -> None:
    """Prints the photos per second of one thread between `begin` and SPAN_S later, by the monotonic clock."""
    with photos(folder, batch).loader(threads=1, output="numpy") as loader:
        batches, records = iter(loader), 0
        while time.monotonic() < begin:
            next(batches)
        first = time.monotonic()
        while time.monotonic() < begin + SPAN_S:
            records += next(batches).records
        print(records / (time.monotonic() - first))


class Bench:
    """The groups of rows; each adds its figures in every round."""

    def __init__(self, torch: Any, torchvision: Any, given: argparse.Namespace) -> None:
        self.torch, self.folder, self.batch, self.steps = torch, given.photos, given.batch, given.steps
        self.device = torch.device(given.device)
        self.table = Table()
        torch.manual_seed(0)
        torch.backends.cudnn.benchmark = True
        model = getattr(torchvision.models, given.model)(num_classes=CLASSES)
        self.model = model.to(self.device, memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        size = (self.batch, 3, SIDE, SIDE)
        self.fixed = torch.randint(0, 256, size, dtype=torch.uint8, device=self.device)
        self.classes = torch.randint(0, CLASSES, (self.batch,), device=self.device)
        self.mean = torch.tensor([123.675, 116.28, 103.53], device=self.device).view(1, 3, 1, 1)
        self.std = torch.tensor([58.395, 57.12, 57.375], device=self.device).view(1, 3, 1, 1)

    def wait(self) -> None:
        if self.device.type == "cuda":
            self.torch.cuda.synchronize(self.device)

    # ---- training ----

    def step(self, images: Any) -> Any:
        images = ((images.float() - self.mean) / self.std).contiguous(memory_format=self.torch.channels_last)
        with self.torch.autocast(self.device.type, dtype=self.torch.bfloat16):
            loss = self.torch.nn.functional.cross_entropy(self.model(images), self.classes)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def train(self, batches: Iterator[Any], ahead: int, waits: bool) -> float:
        """Images per second after `ahead` batches, which the loader may have made before it was measured."""
        for _ in range(ahead):
            next(batches)
        for _ in range(3):
            self.step(next(batches))
        self.wait()
        begin = NOW()
        for _ in range(self.steps):
            loss = self.step(next(batches))
            if waits:
                loss.item()
        self.wait()
        rate: float = self.steps * self.batch / (NOW() - begin)
        return rate

    @contextlib.contextmanager
    def ours(self) -> Iterator[Iterator[Any]]:
        with photos(self.folder, self.batch).loader(device=self.device, seed=1) as loader:
            yield (batch.image for batch in loader)

    @contextlib.contextmanager
    def theirs(self) -> Iterator[Iterator[Any]]:
        yield (images.to(self.device, non_blocking=True) for images in self.data_loader())

    @contextlib.contextmanager
    def ceiling(self) -> Iterator[Iterator[Any]]:
        yield itertools.repeat(self.fixed)

    def data_loader(self) -> Any:
        from photos import LevelPhotos

        return self.torch.utils.data.DataLoader(
            LevelPhotos(self.folder),
            self.batch,
            shuffle=True,
            num_workers=cpus(),
            pin_memory=self.device.type == "cuda",
        )

    def training(self) -> None:
        made: tuple[tuple[str, Any, int], ...] = (
            ("data on the device", self.ceiling, 0),
            ("Headrace", self.ours, AHEAD),
            (f"DataLoader, {cpus()} workers", self.theirs, 2 * cpus()),
        )
        for waits in (False, True):
            group = "training, loops that wait for each step" if waits else "training"
            for row, batches, ahead in made:
                with batches() as found:
                    self.table.add(group, "images/s", row, self.train(iter(found), ahead, waits))

    # ---- copies ----

    def arrivals(self) -> None:
        """How long a loop waits for a batch that needs no work but the copy."""
        import numpy as np

        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "levels.npy"
            np.save(path, np.random.default_rng(1).integers(0, 256, (4 * self.batch, 3, SIDE, SIDE), np.uint8))
            pipe = hr.npy(path).repeat(PASSES).batch(self.batch)
            ways: tuple[tuple[str, dict[str, Any]], ...] = (
                ("a view of the batch", {"output": "torch"}),
                ("on the device", {"device": self.device}),
            )
            if self.device.type == "cuda":
                ways += (("in pinned memory", {"pin_memory": True}),)
            for row, options in ways:
                with pipe.loader(**options) as loader:
                    batches, took = iter(loader), 0.0
                    for at in range(AHEAD + COPIES):
                        time.sleep(MODEL_S)
                        begin = NOW()
                        next(batches).array  # noqa: B018 - this copies it
                        self.wait()
                        took += (NOW() - begin) * (at >= AHEAD)
                self.table.add("a batch, while the device has nothing to do", "ms", row, took / COPIES * 1e3)

    def copy(self) -> None:
        """What each way to the device costs; the first time does not count."""
        if self.device.type != "cuda":
            return
        for at in range(3):
            for row, took in self.copy_parts():
                if at > 0:
                    self.table.add("the copy", "ms", row, took * 1e3)

    def copy_parts(self) -> Iterator[tuple[str, float]]:
        torch, to = self.torch, {"device": self.device, "non_blocking": True}
        images = torch.randint(0, 256, self.fixed.shape, dtype=torch.uint8)

        def timed(call: Callable[[], Any]) -> tuple[Any, float]:
            self.wait()
            begin = NOW()
            made = call()
            self.wait()
            return made, NOW() - begin

        pinned, took = timed(images.pin_memory)
        yield "to pinned memory", took
        yield "from there to the device", timed(lambda: pinned.to(**to))[1]
        yield "to the device, not pinned", timed(lambda: images.to(self.device))[1]
        runtime, at, size = torch.cuda.cudart(), images.data_ptr(), images.numel()
        error, took = timed(lambda: runtime.cudaHostRegister(at, size, 0))
        if int(error) != 0:
            print(f"cudaHostRegister fails here: {error}", file=sys.stderr)
            return
        yield "cudaHostRegister", took
        yield "from registered memory to the device", timed(lambda: images.to(**to))[1]
        yield "cudaHostUnregister", timed(lambda: runtime.cudaHostUnregister(at))[1]

    # ---- loaders alone ----

    def alone(self, batches: Iterator[Any], ahead: int, count: int) -> tuple[float, float]:
        """Photos per second, and the CPU time of this process in ms per photo."""
        for _ in range(ahead):
            next(batches)
        begin, used = NOW(), time.process_time()
        for _ in range(count):
            next(batches)
        records = count * self.batch
        return records / (NOW() - begin), (time.process_time() - used) / records * 1e3

    def loaders(self) -> None:
        rate, cost = "loaders alone", "CPU time per photo"
        for threads in counts():
            with photos(self.folder, self.batch).loader(threads=threads, output="torch") as loader:
                found, used = self.alone(iter(loader), AHEAD, 2 + 2 * threads)
            row = f"Headrace, threads={threads}"
            self.table.add(rate, "photos/s", row, found)
            self.table.add(cost, "ms", row, used)
        self.table.add(rate, "photos/s", f"Headrace, {cpus()} processes of one thread", self.together(cpus()))
        found, _ = self.alone(iter(self.data_loader()), 2 * cpus(), cpus())
        self.table.add(rate, "photos/s", f"DataLoader, {cpus()} workers", found)

    def together(self, count: int) -> float:
        """The sum of processes that run at the same time, which share nothing."""
        begin = time.monotonic() + LEAD_S
        options = ["--one-of-many", repr(begin), "--batch", "64"]
        command = [sys.executable, str(HERE / "device.py"), self.folder, *options]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
        rates = [float(one.communicate()[0]) for one in running]
        if any(one.returncode for one in running):
            raise RuntimeError("a process of the benchmark failed")
        return sum(rates)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("photos")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40, help="of the model, measured in a round")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--model", default="resnet50", help="of torchvision.models")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", default="training,arrivals,copy,loaders", help="groups, with commas")
    parser.add_argument("--one-of-many", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one_of_many is not None:
        one_of_many(given.photos, given.batch, given.one_of_many)
        return
    try:
        import numpy as np
        import torch
        import torchvision
    except ImportError as error:
        print(f"device: nothing to measure, torch and torchvision are needed ($TORCH_PYTHON): {error}")
        return
    if torch.device(given.device).type == "cuda" and not torch.cuda.is_available():
        print("device: nothing to measure, torch sees no CUDA device here")
        return
    bench = Bench(torch, torchvision, given)
    bench.table.facts = {
        "device": torch.cuda.get_device_name(given.device) if bench.device.type == "cuda" else given.device,
        "processor": f"{processor()}, {cores()}",
        "versions": f"headrace {hr.__version__}, Python {platform.python_version()}, torch {torch.__version__}, "
        f"torchvision {torchvision.__version__}, NumPy {np.__version__}",
        "training": f"{given.model}, bf16, channels_last, batches of {given.batch}, {given.steps} steps",
    }
    for _ in range(given.rounds):
        for group in given.only.split(","):
            getattr(bench, group)()
    print(bench.table.json() if given.json else bench.table.show())


if __name__ == "__main__":
    main()
