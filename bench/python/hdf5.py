"""HDF5 files scanned in order, and at random, by hr.hdf5 and by h5py, to NumPy, on one core.

    bench/python/hdf5.py [MIB]

Items of 1 kB, pictures of 150 kB, and single numbers; contiguous, in plain chunks, and in chunks of gzip or LZF;
and members of a compound type. h5py reads slices of as many rows as our batches have (`dataset[i : i + n]`), and at
random one row at a time, since its lists of rows are slower. Both run in turns, five times, in the calling thread.
Prints rows per second of CPU time, medians, and the ratio. Checks first that both give the same numbers.
"""

import pathlib
import statistics
import sys
import tempfile
import time

import h5py
import numpy as np

import headrace as hr


def cases(mib):
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, 1000, mib << 18).astype("f4")
    pairs = np.zeros(len(numbers) // 256, [("x", "f4", (128,)), ("y", "i4", (128,))])
    pairs["x"], pairs["y"] = numbers.reshape(-1, 2, 128)[:, 0], numbers.reshape(-1, 2, 128)[:, 1]
    items = numbers.reshape(-1, 256)
    pictures = numbers.view("u1")[: len(numbers) * 4 // 150528 * 150528].reshape(-1, 224, 224, 3)
    yield "1 kB, contiguous", items, {}
    yield "150 kB, contiguous", pictures, {}
    yield "4 bytes, contiguous", numbers, {}
    yield "1 kB, chunks of 64", items, {"chunks": (64, 256)}
    yield "1 kB, chunks of 64 that can grow", items, {"chunks": (64, 256), "maxshape": (None, 256)}
    yield "1 kB, gzip", items, {"chunks": (64, 256), "compression": "gzip"}
    yield "1 kB, shuffle and gzip", items, {"chunks": (64, 256), "compression": "gzip", "shuffle": True}
    yield "1 kB, LZF", items, {"chunks": (64, 256), "compression": "lzf"}
    yield "two members of 512 bytes", pairs, {}


def theirs(path, size, order):
    with h5py.File(path) as file:
        data = file["x"]
        if order is not None:
            for i in range(0, len(order), size):
                yield np.stack([data[row] for row in order[i : i + size]])
            return
        for i in range(0, len(data), size):
            yield data[i : i + size]


def ours(path, size, order):
    pipe = hr.hdf5(path)
    if order is not None:
        pipe = pipe.shuffle().take(len(order))
    for batch in pipe.batch(size).loader(threads=0, output="numpy", seed=1):
        yield batch["x"] if "x" in list(batch) else batch


def rate(scan, *args):
    begin = time.process_time()
    rows = sum(len(batch if isinstance(batch, np.ndarray) else batch["x.x"]) for batch in scan(*args))
    return rows / (time.process_time() - begin)


def check(path, size):
    """Both give the same rows."""
    mine, other = list(ours(path, size, None)), list(theirs(path, size, None))
    if not isinstance(mine[0], np.ndarray):
        for name in ("x", "y"):
            assert all(np.array_equal(a["x." + name], b[name]) for a, b in zip(mine, other, strict=True))
    else:
        assert all(np.array_equal(a, b) for a, b in zip(mine, other, strict=True)), path


def main(mib):
    print(f"{'rows per CPU second':44} {'hr.hdf5':>12} {'h5py':>12} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as folder:
        for name, data, options in cases(mib):
            path = pathlib.Path(folder) / "a.h5"
            with h5py.File(path, "w", libver="latest") as file:
                file.create_dataset("x", data=data, **options)
            size = max(32, min(65536, (1 << 20) // data[0].nbytes))
            check(path, size)
            order = np.random.default_rng(2).permutation(len(data))[:2000]
            for words, rows in (("", None), (", at random", order)):
                rates = [(rate(ours, path, size, rows), rate(theirs, path, size, rows)) for _ in range(5)]
                mine, other = (statistics.median(values) for values in zip(*rates, strict=True))
                print(f"{name + words:44} {mine:12,.0f} {other:12,.0f} {mine / other:6.2f}", flush=True)


main(int(sys.argv[1]) if len(sys.argv) > 1 else 64)
