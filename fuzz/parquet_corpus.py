#!/usr/bin/env python3
"""Writes the files of fuzz/corpus/parquet with pyarrow; tests read them without it.

    python3 fuzz/parquet_corpus.py
"""
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

folder = pathlib.Path(__file__).resolve().parent / "corpus/parquet"
numbers = range(24)
plain = pa.table({
    "id": pa.array(numbers, pa.int64()),
    "text": ["ü" * (i % 5) + str(i) for i in numbers],
    "ids": pa.array([[*range(i % 4)] for i in numbers], pa.list_(pa.int32())),
    "half": [i / 2 for i in numbers],
    "class": ["cat" if i % 3 else "dog" for i in numbers],
    "odd": [i % 2 == 1 for i in numbers],
    "image": pa.array([{"bytes": bytes([i] * i), "path": f"{i}.png"} for i in numbers],
                      pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
})
some = pa.table({
    "i": pa.array([1, None, 3, -4, 5] * 3, pa.int8()),
    "u": pa.array([0, 2**32 - 1, 7, None, 9] * 3, pa.uint32()),
    "t": pa.array(["abc", "abd", None, "", "abdef"] * 3),
    "f": pa.array([0.5, None, -2, 1e30, 3] * 3, pa.float32()),
    "x": pa.array([b"ab", b"ac", b"zz", None, b"\0\0"] * 3, pa.binary(2)),
    "b": pa.array([True, None, False, True, True] * 3),
    "l": pa.array([[1, 2], None, [], [3], [4, 5, 6]] * 3, pa.list_(pa.float64())),
    "d": pa.array([0, 1, None, 20000, -1] * 3, pa.date32()),
})
nested = pa.table({
    "i": [1, 2],
    "m": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int32())),
    "s": [["a"], []],
    "c": pa.array([{"x": {"y": 1}}, {"x": {"y": 2}}]),
    "n": pa.array([1, 2], pa.decimal128(5)),
})
coded = {"i": "DELTA_BINARY_PACKED", "u": "PLAIN", "t": "DELTA_BYTE_ARRAY", "f": "BYTE_STREAM_SPLIT",
         "x": "DELTA_BYTE_ARRAY", "b": "RLE", "l.list.element": "BYTE_STREAM_SPLIT", "d": "DELTA_BINARY_PACKED"}


def write(name, table, **options):
    pq.write_table(table, folder / name, store_schema=False, **options)


folder.mkdir(exist_ok=True)
write("plain", plain, compression="none", row_group_size=10, write_page_checksum=True)
write("snappy", plain, compression="snappy", data_page_version="2.0", row_group_size=7, data_page_size=32,
      write_batch_size=2, write_page_checksum=True)
write("gzip", some, compression="gzip", data_page_size=16, write_batch_size=4)
write("lz4", some, compression="lz4", use_dictionary=False, column_encoding=coded)
write("zstd", some, compression="zstd", data_page_version="2.0", use_dictionary=["t"], write_page_checksum=True)
write("wide", pa.table({"text": ["x" * 300, "y" * 300]}), compression="none", use_dictionary=False)
write("nested", nested)
write("empty", plain.slice(0, 0))

# Footers and pages by themselves, which the fuzzer reads too; two bytes before a page say its type and levels.
for name, number, kind in (("plain", 0, (2, 1)), ("plain", 2, (1, 6)), ("zstd", 5, (0, 1)), ("lz4", 7, (5, 6))):
    data = (folder / name).read_bytes()
    column = pq.ParquetFile(folder / name).metadata.row_group(0).column(number)
    end = (column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size
    page = data[column.data_page_offset : end]
    (folder / f"page-{name}-{number}").write_bytes(bytes(kind) + page)
for name in ("plain", "nested"):
    data = (folder / name).read_bytes()
    (folder / f"footer-{name}").write_bytes(data[len(data) - 8 - int.from_bytes(data[-8:-4], "little") : -8])
