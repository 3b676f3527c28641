"""Records shuffled from our container, and those of five others: python records.py FOLDER [PHOTOS]

FOLDER is what `make bench B=records` packs: 100,000 texts of 1000 bytes, each with a number. With PHOTOS, a folder of
files, also 3,000 records of their bytes, in batches of 64. The peers get the same records. Each reads an epoch in an
order of its own, by the call that it has for many records at a time, or by its own loader: `take` of Lance and a scan
by indices of Vortex to Arrow, `__getitems__` of ArrayRecord to a list of bytes, StreamingDataLoader of LitData,
StreamingDataset of MosaicML's MDS, which has records one by one. All in this process, files in the page cache, in
turns. Prints CPU time per record of all threads, medians, and the ratio to ours.
"""

from __future__ import annotations

import importlib.util
import itertools
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable

try:
    import numpy as np

    import headrace as hr
except ImportError as error:
    print(f"records: no comparison with others, {error}")
    sys.exit()

ROUNDS = 3
BATCH = 256  # records of 1 kB
PHOTOS, PHOTO_BATCH = 3000, 64

Epoch = Callable[[int], int]


def ours(records: hr.Pipeline, batch: int) -> Epoch:
    pipe = records.shuffle().batch(batch)

    def epoch(number: int) -> int:
        return sum(len(each["value"]) for each in pipe.loader(seed=number, threads=1))

    return epoch


def slices(count: int, batch: int, seed: int) -> Iterable[np.ndarray]:
    order = np.random.default_rng(seed).permutation(count)
    return (order[at : at + batch] for at in range(0, count, batch))


def lance_of(texts: list[bytes], folder: pathlib.Path, batch: int) -> Epoch:
    import lance
    import pyarrow as pa

    table = pa.table({"text": pa.array(texts, pa.binary()), "value": np.arange(len(texts))})
    data = lance.write_dataset(table, str(folder / "lance"))
    return lambda seed: sum(data.take(rows).num_rows for rows in slices(len(texts), batch, seed))


def vortex_of(texts: list[bytes], folder: pathlib.Path, batch: int) -> Epoch:
    import pyarrow as pa
    import vortex

    table = pa.table({"text": pa.array(texts, pa.binary()), "value": np.arange(len(texts))})
    vortex.io.write(table, str(folder / "data.vortex"))
    data = vortex.open(str(folder / "data.vortex"))

    def take(rows: np.ndarray) -> int:
        indices = vortex.array(pa.array(np.sort(rows).astype(np.uint64)))  # it takes no others
        return data.scan(indices=indices).read_all().to_arrow_table().num_rows

    return lambda seed: sum(map(take, slices(len(texts), batch, seed)))


def array_record_of(texts: list[bytes], folder: pathlib.Path, batch: int) -> Epoch:
    from array_record.python.array_record_data_source import ArrayRecordDataSource
    from array_record.python.array_record_module import ArrayRecordWriter

    path = str(folder / "data.array_record")
    writer = ArrayRecordWriter(path, "group_size:1,uncompressed")
    for i, text in enumerate(texts):
        writer.write(i.to_bytes(8, "little") + text)
    writer.close()
    data = ArrayRecordDataSource(path)
    return lambda seed: sum(len(data.__getitems__(rows.tolist())) for rows in slices(len(texts), batch, seed))


def litdata_of(texts: list[bytes], folder: pathlib.Path, batch: int) -> Epoch:
    from litdata import StreamingDataLoader, StreamingDataset
    from litdata.streaming.writer import BinaryWriter

    writer = BinaryWriter(str(folder / "litdata"), chunk_bytes="64MB")
    for i, text in enumerate(texts):
        writer[i] = {"text": text, "value": i}
    writer.done()
    writer.merge()

    def epoch(seed: int) -> int:
        data = StreamingDataset(str(folder / "litdata"), shuffle=True, seed=seed)
        return sum(len(each["value"]) for each in StreamingDataLoader(data, batch_size=batch, num_workers=0))

    return epoch


def mds_of(texts: list[bytes], folder: pathlib.Path, batch: int) -> Epoch:
    if "streaming" not in sys.modules:  # only streaming.base: the package itself needs torchvision
        if (spec := importlib.util.find_spec("streaming")) is None:
            raise ImportError("No module named 'streaming'")
        sys.modules["streaming"] = importlib.util.module_from_spec(spec)
    from streaming.base import MDSWriter, StreamingDataset

    with MDSWriter(out=str(folder / "mds"), columns={"text": "bytes", "value": "int"}) as writer:
        for i, text in enumerate(texts):
            writer.write({"text": text, "value": i})
    data = StreamingDataset(local=str(folder / "mds"), shuffle=True, batch_size=batch)
    return lambda seed: sum(1 for _ in data)  # the seed of its dataset and the number of the epoch decide


PEERS: dict[str, Callable[[list[bytes], pathlib.Path, int], Epoch]] = {
    "Lance": lance_of,
    "Vortex": vortex_of,
    "ArrayRecord": array_record_of,
    "LitData": litdata_of,
    "MDS": mds_of,
}


def race(what: str, records: hr.Pipeline, texts: list[bytes], batch: int) -> None:
    epochs = {"headrace": ours(records, batch)}
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        for peer, make in PEERS.items():
            try:
                epochs[peer] = make(texts, pathlib.Path(name), batch)
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
        print(f"{peer:14} {statistics.median(each):9.0f} ns of CPU per {what}, shuffled   {ratio:6.2f} x ours")


def race_photos(photos: pathlib.Path) -> None:
    files = [path.read_bytes() for path in sorted(photos.rglob("*")) if path.is_file()]
    texts = list(itertools.islice(itertools.cycle(files), PHOTOS))
    kilobytes = sum(map(len, texts)) / len(texts) / 1e3
    with tempfile.TemporaryDirectory() as name:
        columns = {"text": texts, "value": np.arange(len(texts))}
        packed = hr.from_columns(columns).pack(name)
        race(f"photo of {kilobytes:.0f} kB", hr.records(packed.path), texts, PHOTO_BATCH)


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    texts = (folder / "lines.txt").read_bytes().split(b"\n")[:-1]
    race("record of 1 kB", hr.records(str(folder / "own-*.records")), texts, BATCH)
    if len(sys.argv) > 2 and pathlib.Path(sys.argv[2]).is_dir():
        race_photos(pathlib.Path(sys.argv[2]))


if __name__ == "__main__":
    main()
