"""record.parse_example: tf.train.Example as its writers encode it, and as others might."""

from __future__ import annotations

import pathlib
import random
import struct
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.batch import Ragged
from test_tfrecord import packed


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def message(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def ints(values: list[int], rng: random.Random) -> bytes:
    """Packed, one by one, or in several runs."""
    if rng.random() < 0.3:
        return message(3, b"".join(varint(1 << 3) + varint(v) for v in values))
    cut = rng.randrange(len(values) + 1) if rng.random() < 0.3 else 0
    runs = [values[:cut], values[cut:]] if cut else [values]
    return message(3, b"".join(message(1, b"".join(map(varint, run))) for run in runs))


def floats(values: list[float], rng: random.Random) -> bytes:
    if rng.random() < 0.3:
        return message(2, b"".join(varint(1 << 3 | 5) + struct.pack("<f", v) for v in values))
    return message(2, message(1, struct.pack(f"<{len(values)}f", *values)))


def strings(values: list[bytes]) -> bytes:
    return message(1, b"".join(message(1, v) for v in values))


def example(features: dict[str, bytes], rng: random.Random) -> bytes:
    """In any order, with fields that are not known between them."""
    entries = []
    for name, feature in features.items():
        parts = [message(1, name.encode()), message(2, feature)]
        rng.shuffle(parts)
        entries.append(message(1, b"".join(parts)))
        if rng.random() < 0.3:
            entries.append(rng.choice([message(9, b"new"), varint(7 << 3) + varint(5), varint(8 << 3 | 5) + b"1234"]))
    rng.shuffle(entries)
    return message(1, b"".join(entries))


BOX = "image/object/bbox/in_units_of_the_shorter_side_from_the_upper_left_corner"
FEATURES = {
    "image": "image/encoded: bytes",
    "label": "int64",
    "box": f"{BOX}: float32[4]",
    "ids": "int64[length]",
}


def draw(rng: random.Random, count: int) -> tuple[list[bytes], list[dict[str, Any]]]:
    made, wanted = [], []
    for _ in range(count):
        record = {
            "image": rng.randbytes(rng.randrange(300)),
            "label": rng.randrange(-(2**63), 2**63),
            "box": [struct.unpack("<f", struct.pack("<f", rng.random()))[0] for _ in range(4)],
            "ids": [rng.randrange(-5, 2**40) for _ in range(rng.randrange(20))],
        }
        encoded = {
            "image/encoded": strings([record["image"]]),
            "label": ints([record["label"]], rng),
            BOX: floats(record["box"], rng),
            "ids": ints(record["ids"], rng),
            "other": rng.choice([strings([b"a", b"b"]), b"", ints([1, 2], rng)]),
        }
        made.append(example(encoded, rng))
        wanted.append(record)
    return made, wanted


def read(path: pathlib.Path, features: dict[str, str] = FEATURES, **options: Any) -> list[dict[str, Any]]:
    pipe = hr.tfrecord(path).parse_example(features).batch(5, ragged=True)
    got = []
    for batch in pipe.loader(output="numpy", **options):
        for i in range(batch.records):
            got.append({name: v.item(i) if isinstance(v := batch[name], Ragged) else v[i] for name in features})
    return got


def same(got: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return (
        got["image"] == wanted["image"]
        and got["label"] == wanted["label"]
        and np.array_equal(got["box"], wanted["box"])
        and np.array_equal(got["ids"], wanted["ids"])
    )


@pytest.mark.parametrize("threads", [0, 3])
def test_features_become_fields(tmp_path: pathlib.Path, rng: random.Random, threads: int) -> None:
    made, wanted = draw(rng, 60)
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"".join(map(packed, made)))
    got = read(path, threads=threads)
    assert len(got) == 60 and all(map(same, got, wanted))


def test_what_does_not_fit_is_named(tmp_path: pathlib.Path, rng: random.Random) -> None:
    path = tmp_path / "a.tfrecord"
    for features, encoded, match in (
        ({"x": "int64"}, {"y": ints([1], rng)}, "'x': the Example has none"),
        ({"x": "int64"}, {"x": strings([b"1"])}, "'x': it holds bytes"),
        ({"x": "float32"}, {"x": ints([1], rng)}, "'x': it holds integers"),
        ({"x": "int64"}, {"x": ints([1, 2], rng)}, "'x' has 2 items"),
        ({"x": "int64[2, n]"}, {"x": ints([1, 2, 3], rng)}, "'x' has 3 items"),
        ({"x": "bytes"}, {"x": strings([b"1", b"2"])}, "not one byte string"),
        ({"x": "a/b: bytes"}, {"x": strings([b"1"])}, "'a/b'"),
    ):
        path.write_bytes(packed(example(encoded, rng)))
        with pytest.raises(hr.FormatError, match=match):
            read(path, features)
    for kind, match in (("float64", "float32; tensor.cast"), ("int64[a, b]", "more than one"), ("strings[3]", "bytes")):
        with pytest.raises(hr.HeadraceError, match=match):
            read(path, {"x": kind})


def test_damaged_examples_are_bad_records_or_other_values(tmp_path: pathlib.Path, rng: random.Random) -> None:
    made, wanted = draw(rng, 10)
    path = tmp_path / "a.tfrecord"
    for _ in range(80):
        damaged = [bytearray(data) for data in made]
        at = rng.randrange(10)
        damaged[at][rng.randrange(len(damaged[at]))] ^= 1 << rng.randrange(8)
        del damaged[at][rng.randrange(len(damaged[at])) :]
        path.write_bytes(b"".join(packed(bytes(data)) for data in damaged))
        got = read(path, on_error="skip")
        assert len(got) in (9, 10)
        assert [r for r in wanted[:at] + wanted[at + 1 :] if not any(same(g, r) for g in got)] == []
