#!/usr/bin/env python3
"""Writes the files of fuzz/corpus/lmdb with the package lmdb; tests read them without it.

    python3 fuzz/lmdb_corpus.py
"""
import pathlib
import struct
import tempfile

import lmdb

folder = pathlib.Path(__file__).resolve().parent / "corpus/lmdb"


def begin(path, page_bytes):
    """Writes an empty environment: liblmdb makes pages as large as the system's, but keeps the size that a file has."""
    pages = bytearray()
    for number in range(2):
        free = struct.pack("<IHHQQQQQ", page_bytes, 8, 0, 0, 0, 0, 0, 2**64 - 1)  # MDB_INTEGERKEY
        main = struct.pack("<IHHQQQQQ", 0, 0, 0, 0, 0, 0, 0, 2**64 - 1)
        meta = struct.pack("<IIQQ", 0xBEEFC0DE, 1, 0, 1 << 20) + free + main + struct.pack("<QQ", 1, number)
        pages += (struct.pack("<QHHHH", number, 0, 8, 0, 0) + meta).ljust(page_bytes, b"\0")
    path.write_bytes(pages)


def write(name, entries, database=None, page_bytes=None, **options):
    with tempfile.TemporaryDirectory() as place:
        if page_bytes:
            begin(pathlib.Path(place) / "data.mdb", page_bytes)
        with lmdb.open(place, max_dbs=2 if database else 0, map_size=1 << 20) as env:
            chosen = env.open_db(database, **options) if database else env.open_db(**options)
            with env.begin(write=True, db=chosen) as txn:
                for key, value in entries:
                    txn.put(key, value)
        (folder / name).write_bytes((pathlib.Path(place) / "data.mdb").read_bytes())


folder.mkdir(exist_ok=True)
write("plain", [(f"{i:03d}".encode(), bytes([i]) * (i * i % 300)) for i in range(100)])
write("big", [(b"big", b"x" * 9000), (b"small", b"y")])
write("empty", [])
write("named", [(b"k", b"v"), (b"l", b"w")], database=b"a")
for page_bytes in (512, 8192, 16384):
    many = [(f"{i:03d}".encode(), bytes([i]) * (i * i % 150)) for i in range(100)]
    write(f"pages{page_bytes}", [*many, (b"big", b"x" * 40000)], page_bytes=page_bytes)
write("several", [(b"k", b"1"), (b"k", b"2")], database=b"a", dupsort=True)
