"""source.tfrecord: files whole, damaged and cut."""

from __future__ import annotations

import pathlib
import random
import struct
from typing import Any

import pytest

import headrace as hr


def _table() -> list[int]:
    made = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        made.append(crc)
    return made


TABLE = _table()


def masked_crc(data: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def packed(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + masked_crc(length) + data + masked_crc(data)


def draw(rng: random.Random, count: int) -> list[bytes]:
    return [rng.randbytes(rng.choice([0, 1, rng.randrange(300), rng.randrange(3000)])) for _ in range(count)]


def read(path: Any, **options: Any) -> list[bytes]:
    loader = hr.tfrecord(path).batch(5, ragged=True).loader(output="numpy", **options)
    return [data for batch in loader for data in batch["data"]]


@pytest.mark.parametrize("threads", [0, 3])
def test_shards_are_read_in_order(tmp_path: pathlib.Path, rng: random.Random, threads: int) -> None:
    made = [*draw(rng, 80), rng.randbytes(70_000)]  # the last is too large for a window
    for at in range(3):
        name = tmp_path / f"train.tfrecord-{at:05d}-of-00003"
        name.write_bytes(b"".join(map(packed, made[27 * at : 27 * (at + 1)])))
    assert read(tmp_path / "train.tfrecord-*", threads=threads) == made
    assert read(tmp_path / "train.tfrecord-{00000..00002}-of-00003", threads=threads) == made


def test_damage_is_found_and_the_other_records_are_read(tmp_path: pathlib.Path, rng: random.Random) -> None:
    made = draw(rng, 30)
    path = tmp_path / "s.tfrecord"
    whole = b"".join(map(packed, made))
    for _ in range(60):
        at = rng.randrange(len(whole))
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        ledger = tmp_path / "bad.jsonl"
        got = read(path, on_error="skip", ledger=ledger)
        end, wanted = 0, []
        for data in made:
            end += len(data) + 16
            if not end - len(data) - 16 <= at < end:
                wanted.append(data)
        assert got == wanted, at
        (line,) = ledger.read_text().splitlines()
        assert "s.tfrecord: byte" in line and "checksum is wrong" in line, line
        ledger.unlink()


@pytest.mark.parametrize("number", [20, 1 << 60])
def test_eight_bytes_and_their_checksum_are_no_length(tmp_path: pathlib.Path, number: int) -> None:
    """They look like one where a damaged length is followed by another."""
    made = [struct.pack("<Q", number + at) for at in range(20)]
    path = tmp_path / "s.tfrecord"
    damaged = bytearray(b"".join(map(packed, made)))
    damaged[5 * 24] ^= 1  # of 24 bytes each
    path.write_bytes(damaged)
    assert read(path, on_error="skip") == made[:5] + made[6:]


def test_a_cut_file_loses_its_last_record_only(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "s.tfrecord"
    whole = packed(b"one") + packed(b"two")
    for cut in range(1, 19):
        path.write_bytes(whole[:-cut])
        assert read(path, on_error="skip") == [b"one"], cut
        with pytest.raises(hr.FormatError, match="s.tfrecord: byte 19: the file ends in a record"):
            read(path)


def test_what_is_no_file_of_records_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "b.tfrecord").write_bytes(b"text " * 100)
    for name, match in (("b.tfrecord", "no TFRecord file"), ("c.tfrecord", "c.tfrecord")):
        with pytest.raises(hr.HeadraceError, match=match):
            read(tmp_path / name)
