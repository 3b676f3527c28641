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


def groups(file):
    for i in range(30):
        file[f"group/x{i}"] = number(20).astype("i2") + i


def grown(file):
    file.create_dataset("one", data=number(20, 6).astype("i2"), chunks=(3, 4), maxshape=(None, 6), compression="gzip")
    file.create_dataset("last", data=number(20, 7).astype("i4"), chunks=(3, 4), maxshape=(90, None))
    file.create_dataset("many", data=number(20, 60).astype("u1"), chunks=(1, 2), maxshape=(None, 60))
    file.create_dataset("larger", data=number(20, 4).astype("i4"), chunks=(3, 2), maxshape=(70, 9))
    two = {"chunks": (1, 2), "maxshape": (None, None)}
    file.create_dataset("two", data=number(20, 60).astype("u1"), **two)
    file.create_dataset("packed", data=number(20, 4).astype("u1"), compression="gzip", **two)


def structs(file):
    inner = [("p", ">i2"), ("q", "?")]
    points = np.zeros(20, [("a", "i4"), ("b", "f8", (2, 3)), ("s", "S5"), ("n", inner), ("c", "u1"), ("v", "V3")])
    points["a"] = points["c"] = points["n"]["p"] = number(20)
    points["b"] = number(20, 2, 3)
    points["s"] = [str(i).encode() for i in range(20)]
    points["n"]["q"] = number(20) % 2 == 1
    file["points"] = points
    pairs = np.zeros((20, 4), [("u", "f4"), ("v", "i8")])
    pairs["u"], pairs["v"] = number(20, 4), number(20, 4) + 1
    file.create_dataset("pairs", data=pairs, chunks=(6, 3), compression="gzip")
    file.create_dataset("grid", (20,), np.dtype(("i2", (2, 2))))[...] = number(20, 2, 2)
    file["inner"] = np.zeros(20, [("many", inner, (2,)), ("x", "u1")])
    file["opaque"] = np.zeros(20, "V5")


def outside(file):
    file.create_dataset("outside", (20,), "i4", external=[("outside.raw", 0, 80)], fillvalue=9)
    file["inside"] = number(20).astype("i4")


folder.mkdir(exist_ok=True)
write("plain", plain, libver="earliest")
write("plain_new", plain, libver="latest")
write("block", plain, libver="earliest", userblock_size=512)
write("chunked", chunked, libver="earliest")
write("chunked_new", fixed, libver="latest")
write("texts", texts, libver=("earliest", "v108"))
write("groups", groups, libver="latest")
write("grown", grown, libver="latest")
write("structs", structs, libver="earliest")
write("structs_new", structs, libver="latest")
write("outside", outside, libver="earliest")
write("outside_new", outside, libver="latest")
