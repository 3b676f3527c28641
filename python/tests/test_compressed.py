"""Compressed shards: the same records as from the plain files, whatever is done with them."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import tarfile
import zlib
from collections.abc import Callable
from typing import Any

import pytest

import headrace as hr

Pack = Callable[[bytes], bytes]


def zstd(data: bytes, *options: str) -> bytes:
    return subprocess.run(["zstd", "-qc", "--check", *options], input=data, stdout=subprocess.PIPE, check=True).stdout


def sized_zstd(data: bytes) -> bytes:
    """A frame that says in its first bytes how long it is, as those of a file do."""
    return zstd(data, f"--stream-size={len(data)}")


FRAME_HEADER = 14
COMMAND = pytest.mark.skipif(shutil.which("zstd") is None, reason="the zstd command is not installed")
ZSTD, SIZED = (pytest.param(".zst", pack, marks=COMMAND) for pack in (zstd, sized_zstd))
BOTH = pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), ZSTD], ids=["gzip", "zstd"])


def framed(record: bytes) -> bytes:
    """A record of a TFRecord file, by our own writer's rules: checksums by a table."""
    head = struct.pack("<Q", len(record))
    return head + struct.pack("<I", masked(head)) + record + struct.pack("<I", masked(record))


def masked(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def row(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


TABLE = [row(byte) for byte in range(256)]


def archive(records: list[bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for at, record in enumerate(records):
            info = tarfile.TarInfo(f"{at:05d}.txt")
            info.size = len(record)
            tar.addfile(info, io.BytesIO(record))
    return out.getvalue()


def rows(records: list[bytes]) -> bytes:
    return b"number,text\n" + b"".join(b'%d,"%s"\r\n' % (at, record) for at, record in enumerate(records))


def objects(records: list[bytes]) -> bytes:
    return b"".join(b'{"text": "%s", "number": %d}\n' % (record, at) for at, record in enumerate(records))


# name, how a file is made of records, how it is read
FORMATS: list[tuple[str, Callable[[list[bytes]], bytes], Callable[..., Any]]] = [
    (".txt", lambda records: b"".join(record + b"\n" for record in records), hr.lines),
    (".csv", rows, lambda path, **more: hr.csv(path, columns=["text"], **more)),
    (".jsonl", objects, lambda path, **more: hr.jsonl(path, columns=["text"], **more)),
    (".tar", archive, lambda path, **more: hr.tar(path, fields={"text": "txt"}, **more)),
    (
        ".tfrecord",
        lambda records: b"".join(map(framed, records)),
        lambda path, **more: hr.tfrecord(path, field="text", **more),
    ),
]
EACH = pytest.mark.parametrize(("suffix", "write", "source"), FORMATS, ids=[one[0][1:] for one in FORMATS])


def draw(rng: random.Random, count: int, large: int = 50_000) -> list[bytes]:
    """Texts of letters and digits, none of which is in another; some are large."""
    made = []
    for at in range(count):
        size = rng.choice([1, 10, 100, 100, 1000, 1000, large if at % 50 == 0 else 200])
        made.append(b"r%d-" % at + rng.randbytes(size).hex().encode()[: rng.randrange(size + 1)])
    return made


def several(pack: Pack, data: bytes, rng: random.Random) -> bytes:
    """Packed as a few streams, cut anywhere."""
    cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(4)))
    return b"".join(pack(data[begin:end]) for begin, end in itertools.pairwise([0, *cuts, len(data)]))


def texts(pipe: Any, **run: Any) -> list[bytes]:
    loader = pipe.batch(7, ragged=True).loader(output="numpy", **run)
    return [bytes(x) if isinstance(x, (bytes, bytearray)) else os.fsencode(x) for b in loader for x in b["text"]]


@EACH
@BOTH
def test_records_are_those_of_the_plain_files(
    tmp_path: pathlib.Path, rng: random.Random, suffix: str, write: Any, source: Any, ending: str, pack: Pack
) -> None:
    plain, packed = tmp_path / "plain", tmp_path / "packed shards"
    plain.mkdir()
    packed.mkdir()
    wanted: list[bytes] = []
    for at in range(3):
        records = draw(rng, rng.choice([1, 40, 150]))
        wanted += records
        data = write(records)
        (plain / f"part {at}{suffix}").write_bytes(data)
        (packed / f"part {at}{suffix}{ending}").write_bytes(several(pack, data, rng))
    cache = rng.choice(["0", "64MiB"])
    pipe = source(packed, unpack_cache=cache)
    assert texts(pipe) == wanted
    for threads in (0, 1, 3):
        assert texts(pipe, threads=threads, epochs=2) == wanted * 2
    assert texts(source(packed / f"part {{0..2}}{suffix}{ending}")) == wanted
    assert texts(source(packed / f"*{ending}")) == wanted
    shuffled = texts(source(plain).shuffle(), seed=3)
    assert texts(pipe.shuffle(), seed=3, threads=2) == shuffled
    assert sorted(shuffled) == sorted(wanted)
    # what it unpacks to identifies a data set
    assert pipe.fingerprint == source(plain).fingerprint
    parts = [texts(pipe, shard=(rank, 3), even="none") for rank in range(3)]
    assert sorted(record for part in parts for record in part) == sorted(wanted)


@EACH
@BOTH
def test_a_run_resumes_anywhere(
    tmp_path: pathlib.Path, rng: random.Random, suffix: str, write: Any, source: Any, ending: str, pack: Pack
) -> None:
    records = draw(rng, 60)
    path = tmp_path / f"a b{suffix}{ending}"
    path.write_bytes(several(pack, write(records), rng))
    for pipe in (source(path), source(path).shuffle()):
        whole = texts(pipe, seed=1, epochs=2)
        loader = pipe.batch(7, ragged=True).loader(output="numpy", seed=1, epochs=2, threads=2)
        run = iter(loader)
        head = [x for _ in range(rng.randrange(1, 12)) for x in next(run)["text"]]
        again = pipe.batch(7, ragged=True).loader(output="numpy", seed=1, epochs=2, threads=0)
        again.load_state_dict(loader.state_dict())
        tail = [x for batch in again for x in batch["text"]]
        assert [bytes(x) if isinstance(x, bytes) else os.fsencode(x) for x in head + tail] == whole


def skipping(pipe: Any, ledger: pathlib.Path) -> tuple[list[bytes], list[dict[str, Any]]]:
    ledger.unlink(missing_ok=True)
    got = texts(pipe, on_error="skip", errors_max=100_000, ledger=ledger, threads=2)
    return got, [json.loads(line) for line in ledger.read_text().splitlines()] if ledger.exists() else []


@EACH
@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), ZSTD, SIZED], ids=["gzip", "zstd", "sized zstd"])
def test_damage_is_found_and_the_other_streams_are_read(
    tmp_path: pathlib.Path, rng: random.Random, suffix: str, write: Any, source: Any, ending: str, pack: Pack
) -> None:
    """A byte is damaged anywhere: what is delivered is right, and what is not is reported."""
    path, ledger = tmp_path / f"x{suffix}{ending}", tmp_path / "bad.jsonl"
    for _ in range(12):
        records = draw(rng, 60, large=1000)
        data = write(records)
        starts = [data.index(record) for record in records]
        cuts = [0, len(data) // 3, 2 * len(data) // 3, len(data)]
        streams = [pack(data[begin:end]) for begin, end in itertools.pairwise(cuts)]
        hit = rng.randrange(3)
        at = rng.randrange(len(streams[hit]))
        streams[hit] = bytes(b ^ (rng.randrange(1, 256) if i == at else 0) for i, b in enumerate(streams[hit]))
        path.write_bytes(b"".join(streams))
        try:
            got, bad = skipping(source(path), ledger)
        except hr.HeadraceError as error:
            assert hit == 0 and path.name in str(error), (at, error)  # the beginning of the file, or of a table
            continue
        wanted = [
            record
            for record, begin in zip(records, starts, strict=True)
            if begin + len(record) + 600 < cuts[hit] or begin - 1600 >= cuts[hit + 1]
        ]
        assert [record for record in records if record in set(got)] == got, (hit, at)
        assert got == records or any(path.name in one["message"] for one in bad), (hit, at)
        in_place = ending == ".gz" or (pack is sized_zstd and at >= FRAME_HEADER)
        if in_place or suffix not in (".tar", ".csv"):  # of which records may then begin anywhere
            assert set(wanted) <= set(got), (hit, at)


@EACH
@BOTH
def test_of_a_file_that_is_cut_short_the_beginning_is_read(
    tmp_path: pathlib.Path, rng: random.Random, suffix: str, write: Any, source: Any, ending: str, pack: Pack
) -> None:
    path, ledger = tmp_path / f"x{suffix}{ending}", tmp_path / "bad.jsonl"
    records = draw(rng, 9000 if ending == ".zst" else 2000)
    packed = pack(write(records))
    cut = len(packed) * 2 // 3
    while packed[cut - 1] < 128:  # or the end might be taken for the length of a gzip member
        cut -= 1
    path.write_bytes(packed[:cut])
    got, bad = skipping(source(path), ledger)
    assert len(got) > 100 and got == records[: len(got)]
    assert 1 <= len(bad) <= 2 and "ends inside of a" in bad[-1]["message"]
    assert all(one["file"].endswith(path.name) for one in bad)
    with pytest.raises(hr.HeadraceError, match="ends inside of a"):
        texts(source(path))


def test_a_cut_behind_a_record_of_an_archive_is_reported(tmp_path: pathlib.Path, rng: random.Random) -> None:
    """Where the file ends inside of the padding of a member, no member is damaged."""
    path, ledger = tmp_path / "x.tar.gz", tmp_path / "bad.jsonl"
    records = draw(rng, 20, large=1000)
    data = archive(records)
    at = rng.randrange(1, 19)
    end = data.index(records[at]) + len(records[at])
    following = (end + 511) // 512 * 512
    for cut in {end, end + 1, rng.randrange(end, following + 1), following - 1, following, following + 1}:
        for begin in (0, rng.randrange(end), end - 1):  # the stream that is cut short
            stream = zlib.compressobj(wbits=31)
            packed = stream.compress(data[begin:cut]) + stream.flush(zlib.Z_FULL_FLUSH)
            path.write_bytes((gzip.compress(data[:begin]) if begin else b"") + packed)
            got, bad = skipping(hr.tar(path, fields={"text": "txt"}), ledger)
            assert got == records[: at + 1], (begin, cut)
            assert len(bad) == 1 and "ends inside of a" in bad[0]["message"], (begin, cut)
            with pytest.raises(hr.HeadraceError, match="ends inside of a"):
                texts(hr.tar(path, fields={"text": "txt"}))


def test_records_with_checksums_are_read_up_to_the_damage(tmp_path: pathlib.Path, rng: random.Random) -> None:
    path, ledger = tmp_path / "x.tfrecord.gz", tmp_path / "bad.jsonl"
    records = draw(rng, 300, large=1000)
    packed = bytearray(gzip.compress(b"".join(map(framed, records))))
    packed[len(packed) * 3 // 4] ^= 0x5A
    path.write_bytes(packed)
    got, bad = skipping(hr.tfrecord(path, field="text"), ledger)
    assert len(got) > 100 and set(got) < set(records) and len(bad) >= 1


def test_tensorflows_zlib(tmp_path: pathlib.Path, rng: random.Random) -> None:
    records = draw(rng, 50)
    path = tmp_path / "a.tfrecord"
    for level in (0, 1, 6, 9):
        path.write_bytes(zlib.compress(b"".join(map(framed, records)), level))
        assert texts(hr.tfrecord(path, field="text")) == records
    # a plain file whose first length looks like zlib's beginning
    records = [b"x" * 0x9C78, b"y"]
    path.write_bytes(b"".join(map(framed, records)))
    assert texts(hr.tfrecord(path, field="text")) == records


def test_text_that_begins_like_zlib_is_text(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"x\x9c\nx^2\n")
    assert texts(hr.lines(tmp_path)) == [b"x\x9c", b"x^2"]


@BOTH
@pytest.mark.parametrize("data", [b"", b"\n", b"one", b"\xef\xbb\xbfone\r\ntwo", b"\r\n\r\n"])
def test_odd_texts(tmp_path: pathlib.Path, data: bytes, ending: str, pack: Pack) -> None:
    (tmp_path / "plain.txt").write_bytes(data)
    (tmp_path / f"packed.txt{ending}").write_bytes(pack(data))
    assert texts(hr.lines(tmp_path / f"packed.txt{ending}")) == texts(hr.lines(tmp_path / "plain.txt"))


@BOTH
def test_what_is_not_as_its_name_says_is_refused(tmp_path: pathlib.Path, ending: str, pack: Pack) -> None:
    path = tmp_path / f"a.txt{ending}"
    for data, match in ((b"", "it is empty"), (b"plain text", "does not begin so")):
        path.write_bytes(data)
        with pytest.raises(hr.FormatError, match=match):
            texts(hr.lines(path))
    path.write_bytes(pack(b""))
    assert texts(hr.lines(path)) == []
    (tmp_path / "named.txt").write_bytes(pack(b"found by how it begins\n"))
    assert texts(hr.lines(tmp_path / "named.txt")) == [b"found by how it begins"]


@BOTH
def test_bombs_are_refused_by_limits_that_are_options(tmp_path: pathlib.Path, ending: str, pack: Pack) -> None:
    path = tmp_path / f"a.txt{ending}"
    path.write_bytes(pack(b"0" * 70_000_000) if ending == ".zst" else gzip.compress(b"0" * 70_000_000, 1))
    with pytest.raises(hr.LimitError, match=r"a.txt.*ratio_max \(10\)"):
        texts(hr.lines(path, ratio_max=10))
    with pytest.raises(hr.LimitError, match=r"a.txt.*unpacked_max \(1000000 bytes\)"):
        texts(hr.lines(path, unpacked_max="1MB"))
    with pytest.raises(hr.ArgumentError, match="ratio_max"):
        hr.lines(path, ratio_mx=10)  # type: ignore[call-arg]
    if ending == ".gz":
        assert len(list(hr.lines(path, ratio_max=2000, max_bytes="100MB").loader(output="numpy"))) == 1


def test_a_packed_file_that_changed_is_named(tmp_path: pathlib.Path) -> None:
    for at in range(2):
        (tmp_path / f"{at}.txt.gz").write_bytes(gzip.compress(b"line\n" * 100))
    loader = hr.lines(tmp_path).batch(10, ragged=True).loader(output="numpy")
    assert len(list(loader)) == 20
    (tmp_path / "1.txt.gz").write_bytes(gzip.compress(b"other\n" * 100))
    with pytest.raises(hr.HeadraceError, match=r"1\.txt\.gz changed"):
        list(loader)


def test_splits_and_lines_of_packed_rows(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"name,age\n" + b"".join(b"n%d,%d\n" % (i, i) for i in range(3000)) + b"x,old\n"))
    parts = hr.split(hr.csv(path, types={"age": "int64"}), [0.5, 0.5], by="name")
    ages = [int(x) for part in parts for b in part.batch(50).loader(output="numpy", on_error="skip") for x in b["age"]]
    assert sorted(ages) == list(range(3000))
    with pytest.raises(hr.HeadraceError, match=r"a\.csv\.gz:3002: byte \d+: column \"age\""):
        list(hr.csv(path, types={"age": "int64"}).batch(50).loader(output="numpy"))
