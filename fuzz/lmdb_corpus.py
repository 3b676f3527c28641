#!/usr/bin/env python3
"""Writes the files of fuzz/corpus/lmdb with the package lmdb; tests read them without it.

    python3 fuzz/lmdb_corpus.py
"""
import pathlib
import tempfile

import lmdb

folder = pathlib.Path(__file__).resolve().parent / "corpus/lmdb"


def write(name, entries, database=None, **options):
    with tempfile.TemporaryDirectory() as place:
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
write("several", [(b"k", b"1"), (b"k", b"2")], database=b"a", dupsort=True)
