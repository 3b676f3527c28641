#!/usr/bin/env python3
"""Writes the files of fuzz/corpus/hdf5 with the package h5py; tests read them without it.

    python3 fuzz/hdf5_corpus.py

python/tests/test_hdf5.py knows what is in them.
"""

import pathlib

import h5py
import numpy as np

folder = pathlib.Path(__file__).resolve().parent / "corpus/hdf5"


def number(count, *shape):
    """Elements that follow from their place."""
    items = int(np.prod((count, *shape)))
    return (np.arange(items) * 7 % 101).reshape(count, *shape)


def write(name, make, **options):
    with h5py.File(folder / name, "w", **options) as file:
        make(file)


def plain(file):
    file["images"] = number(20, 3, 5).astype("u1")
    file["train/labels"] = number(20).astype(">i4")
    file["train/weights"] = number(20).astype("<f8")
    file["big"] = number(20).astype("u8")
    file["half"] = number(20, 2).astype("f2")
    file["good"] = number(20) % 2 == 1


def chunked(file):
    file.create_dataset("gzip", data=number(20, 6, 5).astype("i2"), chunks=(4, 4, 5), compression="gzip", shuffle=True)
    file.create_dataset("lzf", data=number(20, 6).astype("f4"), chunks=(3, 6), compression="lzf", fletcher32=True)
    file.create_dataset("plain", data=number(20, 7).astype("i8"), chunks=(3, 4))
    some = file.create_dataset("some", (20,), "i4", chunks=(5,), fillvalue=9)
    some[5:10] = number(20)[5:10]


def fixed(file):
    chunked(file)
    file.create_dataset("one", data=number(20, 4).astype("i4"), chunks=(20, 4))
    file.create_dataset("single", data=number(20, 4).astype("i4"), chunks=(20, 4), compression="gzip")
    file.create_dataset("pages", data=number(20, 200).astype("u1"), chunks=(1, 2))


def texts(file):
    words = ["é" * (i % 5) + str(i) for i in range(20)]
    file.create_dataset("any", data=words, dtype=h5py.string_dtype())
    file["fixed"] = np.array([word.encode()[:6] for word in words], "S6")
    blobs = file.create_dataset("blobs", (20,), h5py.vlen_dtype("u1"))
    for i in range(20):
        blobs[i] = np.full(i * 30, i, "u1")
    file["names"] = np.zeros(20, [("a", "i4"), ("b", "f4")])  # compound: left out


folder.mkdir(exist_ok=True)
write("plain", plain, libver="earliest")
write("plain_new", plain, libver="latest")
write("block", plain, libver="earliest", userblock_size=512)
write("chunked", chunked, libver="earliest")
write("chunked_new", fixed, libver="latest")
write("texts", texts, libver=("earliest", "v108"))
