"""Records of 1 kB, shuffled, from our container, Lance and ArrayRecord, to batches of 256: python records.py FOLDER

FOLDER is what `make bench B=records` packs: 100,000 texts of 1000 bytes, each with a number. The peers get the same
records. Each reads an epoch in an order of its own, by the call that it has for many records at a time: `take` of
Lance to Arrow, `__getitems__` of ArrayRecord to a list of bytes, all in this process, files in the page cache, in
turns. Prints CPU time per record of all threads, medians, and the ratio to ours.
"""

from __future__ import annotations

import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

try:
    import numpy as np

    import headrace as hr
except ImportError as error:
    print(f"records: no comparison with others, {error}")
    sys.exit()

BATCH, ROUNDS = 256, 3


def ours(folder: pathlib.Path) -> Callable[[int], int]:
    pipe = hr.records(str(folder / "own-*.records")).shuffle().batch(BATCH)

    def epoch(number: int) -> int:
        return sum(len(batch["value"]) for batch in pipe.loader(seed=number, threads=1))

    return epoch


def slices(count: int, seed: int) -> list[np.ndarray]:
    order = np.random.default_rng(seed).permutation(count)
    return [order[at : at + BATCH] for at in range(0, count, BATCH)]


def lance_of(texts: list[bytes], folder: pathlib.Path) -> Callable[[int], int]:
    import lance
    import pyarrow as pa

    table = pa.table({"text": pa.array(texts, pa.binary()), "value": np.arange(len(texts))})
    data = lance.write_dataset(table, str(folder / "lance"))
    return lambda seed: sum(data.take(rows).num_rows for rows in slices(len(texts), seed))


def array_record_of(texts: list[bytes], folder: pathlib.Path) -> Callable[[int], int]:
    from array_record.python.array_record_data_source import ArrayRecordDataSource
    from array_record.python.array_record_module import ArrayRecordWriter

    path = str(folder / "data.array_record")
    writer = ArrayRecordWriter(path, "group_size:1,uncompressed")
    for i, text in enumerate(texts):
        writer.write(i.to_bytes(8, "little") + text)
    writer.close()
    data = ArrayRecordDataSource(path)
    return lambda seed: sum(len(data.__getitems__(rows.tolist())) for rows in slices(len(texts), seed))


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    texts = (folder / "lines.txt").read_bytes().split(b"\n")[:-1]
    epochs = {"headrace": ours(folder)}
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        for peer, make in (("Lance", lance_of), ("ArrayRecord", array_record_of)):
            try:
                epochs[peer] = make(texts, pathlib.Path(name))
            except ImportError as error:
                print(f"{peer}: skipped, {error}")
        for number in range(ROUNDS + 1):  # the first one fills caches
            for peer, epoch in epochs.items():
                begin = time.process_time()
                count = epoch(number)
                spent = time.process_time() - begin
                assert count == len(texts), (peer, count)
                if number > 0:
                    times.setdefault(peer, []).append(spent * 1e9 / count)
        for peer, each in times.items():
            ratio = statistics.median(a / b for a, b in zip(each, times["headrace"], strict=True))
            print(f"{peer:14} {statistics.median(each):9.0f} ns of CPU per record, shuffled   {ratio:6.2f} x ours")


main()
