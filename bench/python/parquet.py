"""Parquet files scanned in order by hr.parquet and by pyarrow, to NumPy, on one core.

    bench/python/parquet.py [ROWS]

Rows of 1 kB: a byte string of 1000 bytes, or a list of 250 floats, and a number; and 50 numbers of 4 or
8 bytes each. Uncompressed and by snappy, with pyarrow's defaults else. pyarrow reads batches of 65536
rows, and hands out the values of lists and the bytes of byte strings as one array, without objects of
Python; we give batches of 1024 rows, ragged. Both run in turns, five times, in the calling thread, and
decode all pages each time. Prints rows per second of CPU time, medians, and the ratio. Checks first
that both give the same numbers.
"""

import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import headrace as hr


def make(folder, count):
    rng = np.random.default_rng(1)
    ids = pa.array(np.arange(count))
    floats = pa.array(rng.random(250 * count, dtype=np.float32))
    tables = {
        "byte strings": {"id": ids, "bytes": pa.array([rng.bytes(1000) for _ in range(count)])},
        "lists of 250 floats": {
            "id": ids,
            "floats": pa.ListArray.from_arrays(np.arange(count + 1, dtype=np.int32) * 250, floats),
        },
        "50 numbers": {"id": ids} | {f"x{i}": pa.array(rng.random(count, dtype=np.float32)) for i in range(49)},
        "50 numbers of 8 bytes": {"id": ids}
        | {f"x{i}": pa.array(rng.random(count)) for i in range(25)}
        | {f"y{i}": pa.array(rng.integers(1 << 62, size=count)) for i in range(24)},
    }
    for name, columns in tables.items():
        for codec in ("none", "snappy"):
            path = folder / f"{name}, {codec}.parquet"
            pq.write_table(pa.table(columns), path, compression=codec, use_dictionary=False)
            yield path


def to_numpy(column):
    if pa.types.is_list(column.type):
        return column.flatten().to_numpy()
    if pa.types.is_binary(column.type):
        return np.frombuffer(column.buffers()[2], np.uint8)
    return column.to_numpy()


def theirs(path):
    for batch in pq.ParquetFile(path).iter_batches(use_threads=False):
        yield {name: to_numpy(batch[name]) for name in batch.schema.names}


def ours(path):
    yield from hr.parquet(path).batch(1024, ragged=True).loader(threads=0, output="numpy")


def rate(scan, path):
    begin = time.process_time()
    rows = sum(len(batch["id"]) for batch in scan(path))
    return rows / (time.process_time() - begin)


def main(count):
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    print(f"{'rows per CPU second':32} {'hr.parquet':>12} {'pyarrow':>12} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as folder:
        for path in make(pathlib.Path(folder), count):
            same = [np.concatenate([batch["id"] for batch in scan(path)]) for scan in (ours, theirs)]
            assert np.array_equal(*same), path
            rates = [(rate(ours, path), rate(theirs, path)) for _ in range(5)]
            mine, other = (statistics.median(values) for values in zip(*rates, strict=True))
            print(f"{path.stem:32} {mine:12,.0f} {other:12,.0f} {mine / other:6.2f}")


main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)
