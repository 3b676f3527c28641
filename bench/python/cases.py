"""Runs one case of the benchmark in a separate process: cases.py NAME [ARGUMENT ...].

Prints one JSON object. Rates are measured between two batches of a continuing run, so that the
amount in flight is the same at both; start-up is a separate case.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import work

NOW = time.perf_counter
PHOTO_BATCH = 256
INTS = 200_000


def steady(batches: Iterator[Any], ahead: int, count: int) -> float:
    """Batches per second over `count` batches after the first `ahead`."""
    for _ in range(ahead):
        next(batches)
    begin = NOW()
    for _ in range(count):
        next(batches)
    return count / (NOW() - begin)


# ---- photos ----


def let_run_ahead(rate: float) -> None:
    """Waits until everything that is made ahead is there before memory is measured, as when
    training is slower than its loader: at most six batches for either side."""
    time.sleep(min(60, 6 * PHOTO_BATCH / rate))


def photos_torch(folder: str, which: str, workers: str, count: str) -> dict[str, float]:
    """torch's DataLoader with torchvision, or hr's, with hr.vision or without."""
    import photos
    from torch.utils.data import DataLoader

    import headrace as hr

    data: Any = (photos.VisionPhotos if which == "vision" else photos.Photos)(folder)
    kind: Any = DataLoader if which == "torch" else hr.DataLoader
    loader: Any = kind(data, PHOTO_BATCH, shuffle=False, num_workers=int(workers))
    batches = iter(loader)
    rate = PHOTO_BATCH * steady(batches, max(1, int(workers)), int(count))
    let_run_ahead(rate if int(workers) > 0 else 1e9)
    return {"rate": rate}


def photos_user(folder: str, variant: str, count: str) -> dict[str, float]:
    """The same data set and transforms in our worker processes."""
    import photos

    import headrace as hr

    pipe = hr.from_dataset(photos.Photos(folder), variant=variant).batch(PHOTO_BATCH)  # type: ignore[arg-type]
    with pipe.loader(threads=2) as loader:
        batches = iter(loader)
        rate = PHOTO_BATCH * steady(batches, 2, int(count))
        let_run_ahead(rate)
        return {"rate": rate}


def photos_rest(folder: str, variant: str, count: str) -> dict[str, float]:
    """Decode, crop and flip in Headrace; normalising stays in Python."""
    import torch  # noqa: F401

    import headrace as hr

    pipe = hr.files(folder).shuffle().decode().random_resized_crop(224).flip()
    pipe = pipe.map(work.normalize, fields="image", variant=variant).batch(PHOTO_BATCH)  # type: ignore[arg-type]
    with pipe.loader(threads=2, epochs=None) as loader:
        return {"rate": PHOTO_BATCH * steady(iter(loader), 4, int(count))}


def photos_ours(folder: str, batch: str, count: str) -> dict[str, float]:
    """examples/vision_rrc.yaml from Python."""
    import torch  # noqa: F401

    import headrace as hr

    graph = os.path.join(os.path.dirname(__file__), "../../examples/vision_rrc.yaml")
    with hr.load(graph, data=folder, batch=int(batch)).loader(threads=2, epochs=None) as loader:
        return {"rate": int(batch) * steady(iter(loader), 4, int(count))}


# ---- hand-over ----


def hand_over(folder: str) -> dict[str, float]:
    """Seconds from requesting a ready batch to its tensors."""
    import torch  # noqa: F401

    import headrace as hr

    graph = os.path.join(os.path.dirname(__file__), "../../examples/vision_rrc.yaml")
    made = {}

    def measure(name: str, pipe: hr.Pipeline, field: str, count: int, pause: float) -> None:
        with pipe.loader(threads=1, epochs=None) as loader, hr.range(1 << 30).batch(16).loader(threads=0) as other:
            batches, warm, both, tensors = iter(loader), iter(other), [], []
            next(batches)[field]
            for _ in range(count):
                time.sleep(pause)  # until the next one is ready
                for _ in range(8):
                    next(warm)["value"]  # caches are cold after the pause
                begin = NOW()
                batch = next(batches)
                between = NOW()
                tensor = batch[field]
                end = NOW()
                both.append(end - begin)
                tensors.append(end - between)
                assert tensor.shape[0] > 0
                del tensor, batch
        made[name] = statistics.median(both)
        made[name + "_tensor"] = statistics.median(tensors)

    measure("large", hr.load(graph, data=folder, batch=256), "image", 8, 2.0)
    measure("small", hr.range(1 << 30).batch(16), "value", 200, 0.002)
    return made


# ---- numbers ----


def _epoch(batches: Iterator[Any], records: int) -> float:
    """Nanoseconds per record, after the first batch."""
    next(batches)
    begin = NOW()
    for _ in batches:
        pass
    return (NOW() - begin) / records * 1e9


def ints(rounds: str) -> dict[str, list[float]]:
    """An identity over a list of numbers, alternating."""
    from torch.utils.data import DataLoader

    import headrace as hr

    class Mapped:
        def __init__(self) -> None:
            self.values = list(range(INTS))

        def __len__(self) -> int:
            return INTS

        def __getitem__(self, at: int) -> int:
            value: int = work.same(self.values[at])
            return value

    mapped: Any = Mapped()

    def torch_loader(workers: int) -> float:
        return _epoch(iter(DataLoader(mapped, 256, num_workers=workers)), INTS)

    def ours(variant: Any, threads: int, epochs: int) -> float:
        pipe = hr.from_dataset(list(range(INTS))).map(work.same, variant=variant).batch(256)
        with pipe.loader(threads=threads, epochs=epochs) as loader:
            return _epoch(iter(loader), INTS * epochs)

    contenders: dict[str, Callable[[], float]] = {
        "DataLoader, 0 workers": lambda: torch_loader(0),
        "headrace, inline": lambda: ours("inline", 0, 2),
        "headrace, threads, 1 thread": lambda: ours("threads", 1, 2),
        "headrace, threads, 2 threads": lambda: ours("threads", 2, 2),
        "DataLoader, 2 workers": lambda: torch_loader(2),
        "headrace, processes, 2 threads": lambda: ours("processes", 2, 4),
    }
    return _turns(contenders, int(rounds))


def _turns(contenders: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    made: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            made[name].append(run())
    return made


# ---- arrays ----


def arrays(size: str, batch: str, rounds: str) -> dict[str, list[float]]:
    """Arrays from two worker processes into batches, MB/s, alternating."""
    import multiprocessing

    import numpy as np
    from torch.utils.data import DataLoader

    import headrace as hr

    bytes_, batch_size = int(size), int(batch)
    count = max(8, (400 << 20) // (bytes_ * batch_size))  # batches
    long = batch_size * (count + 8)

    def mb(batches_per_second: float) -> float:
        return batches_per_second * batch_size * bytes_ / 1e6

    def torch_loader(torch: bool) -> float:
        data: Any = work.Arrays(bytes_, long, torch)
        return mb(steady(iter(DataLoader(data, batch_size, num_workers=2)), 4, count))

    def pool() -> float:
        data = work.Arrays(bytes_, long, False)
        with multiprocessing.get_context("fork").Pool(2) as workers:
            items = workers.imap(data.__getitem__, range(long), chunksize=batch_size)
            gathered = (np.stack([next(items) for _ in range(batch_size)]) for _ in range(count + 8))
            rate = mb(steady(gathered, 4, count))
            for _ in gathered:
                pass  # terminate() may hang while workers write results
            return rate

    def ours(through: bool) -> float:
        data = work.Arrays(bytes_, 4 * long, False)
        if through:
            pipe = hr.from_dataset(data).map(work.same, variant="processes").batch(batch_size)
        else:
            pipe = hr.from_dataset(data, variant="processes", outputs={"value": hr.spec("uint8", (bytes_,))}).batch(
                batch_size
            )
        with pipe.loader(threads=2) as loader:
            return mb(steady(iter(loader), 6, count))

    contenders: dict[str, Callable[[], float]] = {
        "DataLoader, tensors": lambda: torch_loader(True),
        "multiprocessing.Pool, NumPy": pool,
        "headrace, made in processes": lambda: ours(False),
        "headrace, there and back": lambda: ours(True),
    }
    return _turns(contenders, int(rounds))


# ---- starting ----


def start_torch(method: str) -> dict[str, float]:
    """Seconds to the first batch of two workers; torch is imported."""
    from torch.utils.data import DataLoader

    data: Any = work.Few()
    begin = NOW()
    next(iter(DataLoader(data, 256, num_workers=2, multiprocessing_context=method)))
    return {"seconds": NOW() - begin}


def start_ours(torch: str) -> dict[str, float]:
    """The same with our processes; includes importing headrace."""
    if torch == "torch":
        import torch as module  # noqa: F401
    begin = NOW()
    import headrace as hr

    with hr.from_dataset(work.Few(), variant="processes").batch(256).loader(threads=2) as loader:
        next(iter(loader))
        return {"seconds": NOW() - begin}


def first_batch(folder: str, torch: str) -> dict[str, float]:
    """The first batch of photos; BENCH_BEGIN says when the interpreter was started."""
    made = {}
    if torch == "torch":
        begin = NOW()
        import torch as module  # noqa: F401

        made["torch"] = NOW() - begin
    import headrace as hr

    pipe = hr.files(folder).shuffle().decode().random_resized_crop(224).flip().normalize("imagenet")
    pipe = pipe.to("float32", layout="chw").batch(32)
    with pipe.loader(threads=2, output="numpy") as loader:
        assert next(iter(loader)).image.shape == (32, 3, 224, 224)
        return {**made, "seconds": time.monotonic() - float(os.environ["BENCH_BEGIN"])}


def resume(count: str) -> dict[str, float]:
    """Seconds to the first batch after a state at 90 % of a shuffled epoch: of names in a
    file, which is read again, and of numbers."""
    import tempfile

    import headrace as hr

    def content(batch: hr.Batch) -> Any:
        field = batch.raw(batch.names[0])
        return bytes(field) if field.dtype is not None else field.strings()

    total = int(count)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.writelines(f"train/{i % 1000:04}/{i:07}.jpg\n" for i in range(total))
        file.flush()
        sources: dict[str, Callable[[], hr.Pipeline]] = {
            "names": lambda: hr.list(file.name),
            "numbers": lambda: hr.range(total),
        }
        made = {}
        for name, source in sources.items():
            pipe = source().shuffle().batch(256)
            with pipe.loader(output="headrace") as loader:
                batches = iter(loader)
                for _ in range(total * 9 // 10 // 256):
                    next(batches)
                state = loader.state_dict()
                after = content(next(batches))
            begin = NOW()
            with source().shuffle().batch(256).loader(output="headrace") as again:
                again.load_state_dict(state)
                batch = next(iter(again))
                made[name] = NOW() - begin
                assert content(batch) == after
    return made


CASES: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (photos_torch, photos_user, photos_rest, photos_ours, hand_over, ints, arrays, start_torch, start_ours)
} | {f.__name__: f for f in (first_batch, resume)}

if __name__ == "__main__":
    print(json.dumps(CASES[sys.argv[1]](*sys.argv[2:])))
