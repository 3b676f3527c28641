"""source.tar: archives written by Python's tarfile, whole and damaged."""

from __future__ import annotations

import io
import pathlib
import random
import tarfile
from typing import Any

import pytest

import headrace as hr

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
BLOCK = 512


def write(path: pathlib.Path, members: list[tuple[str, bytes]], format: int = tarfile.PAX_FORMAT) -> None:
    with tarfile.open(path, "w", format=format) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            if name.endswith("/"):
                info.type = tarfile.DIRTYPE
            archive.addfile(info, io.BytesIO(data))


def samples(rng: random.Random, count: int, long: bool = True) -> list[tuple[str, bytes, int]]:
    """Keys, bytes and labels. Some records are larger than what is read through a window."""
    made = []
    for i in range(count):
        folder = "/".join("d" * rng.randrange(1, 60) for _ in range(rng.randrange(3))) if long else "d"
        key = f"{folder}/{i:06d}{'ü' * rng.randrange(3)}".lstrip("/")
        size = rng.choice([0, 1, 511, 512, 513, rng.randrange(3000), rng.randrange(100_000)])
        made.append((key, rng.randbytes(size), rng.randrange(-5, 2**40)))
    return made


def members(made: list[tuple[str, bytes, int]], rng: random.Random) -> list[tuple[str, bytes]]:
    out: list[tuple[str, bytes]] = []
    for key, data, label in made:
        two = [(f"{key}.a.bin", data), (f"{key}.cls", f" {label}\n"[rng.randrange(2) :].encode())]
        rng.shuffle(two)
        out += two
        if rng.random() < 0.2:
            out.append((f"{key}.json", b"{}"))
        if rng.random() < 0.2:
            out.append(("folder/", b""))
    return out


def read(path: Any, **options: Any) -> list[tuple[str, bytes, int]]:
    pipe = hr.tar(path, fields={"data": "a.bin", "label": "cls"}, keys=True)
    got = []
    for batch in pipe.batch(7, ragged=True).loader(output="numpy", **options):
        got += list(zip(batch["key"], batch["data"], batch["label"].tolist(), strict=True))
    return [(key, data, label) for key, data, label in got]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("threads", [0, 3])
def test_what_tarfile_writes_is_read(tmp_path: pathlib.Path, rng: random.Random, format: str, threads: int) -> None:
    made = samples(rng, 200)
    for at in range(4):
        write(tmp_path / f"s-{at:03d}.tar", members(made[at::4], rng), FORMATS[format])
    wanted = [one for at in range(4) for one in made[at::4]]
    assert read(tmp_path / "s-{000..003}.tar", threads=threads) == wanted
    assert read(tmp_path / "*.tar", threads=threads) == wanted
    assert read(tmp_path, threads=threads) == wanted


def test_records_are_shuffled_and_resumed(tmp_path: pathlib.Path, rng: random.Random) -> None:
    made = samples(rng, 101)
    write(tmp_path / "s.tar", members(made, rng))
    pipe = hr.tar(tmp_path / "s.tar", fields={"data": "a.bin", "label": "cls"}).shuffle().batch(4, ragged=True)
    runs = []
    for threads in (0, 2):
        loader = pipe.loader(seed=3, threads=threads, output="numpy")
        runs.append([x for batch in loader for x in batch["label"].tolist()])
    assert runs[0] == runs[1] != [label for _, _, label in made]
    assert sorted(runs[0]) == sorted(label for _, _, label in made)
    loader = pipe.loader(seed=3, threads=2, output="numpy")
    run = iter(loader)
    head = [x for _ in range(9) for x in next(run)["label"].tolist()]
    again = pipe.loader(seed=3, threads=0, output="numpy")
    again.load_state_dict(loader.state_dict())
    assert head + [x for batch in again for x in batch["label"].tolist()] == runs[0]


def test_damage_is_found_and_the_other_records_are_read(tmp_path: pathlib.Path, rng: random.Random) -> None:
    made = samples(rng, 30, long=False)
    path = tmp_path / "s.tar"
    write(path, members(made, rng))
    whole = bytearray(path.read_bytes())
    wanted = {key: (data, label) for key, data, label in made}
    for _ in range(40):
        at = rng.randrange(len(whole))
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        bad = tmp_path / "bad.jsonl"
        bad.unlink(missing_ok=True)
        got = read(path, on_error="skip", ledger=bad)
        same = [key for key, data, label in got if wanted.get(key) == (data, label)]
        assert len(same) >= len(made) - 2, at
        for line in bad.read_text().splitlines() if bad.exists() else []:
            assert "s.tar" in line and "byte" in line, line


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ([("a.jpg", b"x")], "s.tar: byte 0: the record has no member 'cls' for field 'label'"),
        ([("a.bin", b"x"), ("a.cls", b"one")], "s.tar: byte 1536: member 'a.cls' is no integer: \"one\""),
        ([("a.bin", b"x"), ("a.cls", b"99999999999999999999")], "is no integer"),
        (
            [("a.bin", b"x"), ("a.BIN", b"y"), ("a.cls", b"1")],
            "s.tar: byte 1536: member 'a.BIN' is the second one for field 'data'",
        ),
    ],
)
def test_bad_records_say_what_is_wrong(tmp_path: pathlib.Path, content: Any, match: str) -> None:
    write(tmp_path / "s.tar", content)
    with pytest.raises(hr.HeadraceError, match=match):
        list(hr.tar(tmp_path / "s.tar", fields={"data": "bin|jpg", "label": "cls"}).batch(1, ragged=True).loader())


def test_a_cut_archive_loses_its_last_record_only(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "s.tar"
    write(path, [(f"{i}.bin", bytes([i]) * 700) for i in range(5)])
    data = path.read_bytes()
    path.write_bytes(data[: 4 * 3 * BLOCK + 600])
    loader = hr.tar(path, fields={"data": "bin"}).batch(1, ragged=True).loader(output="numpy")
    run = iter(loader)
    for i in range(4):
        assert next(run)["data"] == [bytes([i]) * 700]
    with pytest.raises(hr.FormatError, match="byte 6144: the archive ends in a member"):
        next(run)


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"a": ".jpg"}, "without a dot"),
        ({"a": "jpg|cls"}, "some bytes"),
        ({"a": "jpg", "b": "png|jpg"}, '"jpg" is the ending of two fields'),
        ({"a": "jpg|"}, "without a dot"),
    ],
)
def test_endings_are_checked(tmp_path: pathlib.Path, fields: dict[str, str], match: str) -> None:
    with pytest.raises(hr.HeadraceError, match=match):
        hr.tar(tmp_path / "s.tar", fields=fields).batch(1, ragged=True).loader()


def test_what_is_no_archive_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "t.tar").write_text("no archive " * 100)
    for name, match in (("t.tar", "no tar archive"), ("none.tar", "none.tar")):
        with pytest.raises(hr.HeadraceError, match=match):
            list(hr.tar(tmp_path / name, fields={"data": "bin"}).batch(1, ragged=True).loader())


# ---- fields of the first record ----


def test_without_fields_the_first_record_tells_them(tmp_path: pathlib.Path) -> None:
    write(tmp_path / "a.tar", [("1.JPG", b"x"), ("1.seg.png", b"y"), ("1.cls", b"7"), ("1.2d", b"z"), ("2.jpg", b"!")])
    pipe = hr.tar(tmp_path / "a.tar", keys=True)
    assert [f.name for f in pipe.fields] == ["key", "jpg", "seg_png", "cls", "_2d"]
    with pytest.raises(hr.FormatError, match="no member 'seg.png' for field 'seg_png'"):
        list(pipe.batch(1).loader())
    (batch,) = pipe.batch(1, ragged=True).loader(on_error="skip", output="numpy")
    assert (batch["key"], batch["jpg"], batch["cls"].tolist(), batch["_2d"]) == (["1"], [b"x"], [7], [b"z"])
    named = hr.tar(tmp_path / "a.tar", fields={"jpg": "jpg", "cls": "cls"})
    assert named.fingerprint != pipe.fingerprint == hr.from_yaml(pipe.to_yaml()).fingerprint


def test_a_member_may_be_called_as_the_key_would_be(tmp_path: pathlib.Path) -> None:
    write(tmp_path / "a.tar", [("1.key", b"x"), ("1.txt", b"y")])
    (batch,) = hr.tar(tmp_path / "a.tar").batch(1, ragged=True).loader(output="numpy")
    assert (batch["key"], batch["txt"]) == ([b"x"], ["y"])
    with pytest.raises(hr.HeadraceError, match='"key" is a field of a member already'):
        _ = hr.tar(tmp_path / "a.tar", keys=True).fields
    (batch,) = hr.tar(tmp_path / "a.tar", keys=True, key_field="stem").batch(1, ragged=True).loader(output="numpy")
    assert (batch["stem"], batch["key"]) == (["1"], [b"x"])


@pytest.mark.parametrize("variant", [{"threads": 0}, {"threads": 3}])
def test_found_fields_survive_shuffle_split_and_resume(tmp_path: pathlib.Path, variant: dict[str, Any]) -> None:
    for shard in range(3):
        write(
            tmp_path / f"{shard}.tar",
            [m for i in range(9) for m in ((f"{shard}{i}.txt", b"%d" % i), (f"{shard}{i}.cls", b"%d" % i))],
        )
    pipe = hr.tar(tmp_path, keys=True).shuffle(seed=3).batch(4, ragged=True)
    loader = pipe.loader(output="numpy", **variant)
    batches = iter(loader)
    first = [next(batches)["key"] for _ in range(3)]
    again = pipe.loader(output="numpy", **variant)
    again.load_state_dict(loader.state_dict())
    rest = [batch["key"] for batch in again]
    assert sorted(key for keys in first + rest for key in keys) == [f"{s}{i}" for s in range(3) for i in range(9)]
    train, val = hr.split(hr.tar(tmp_path), [0.5, 0.5], seed=1, by="cls")
    assert (train.record_count or 0) + (val.record_count or 0) == 27


def test_a_member_is_lost_with_its_extension(tmp_path: pathlib.Path, rng: random.Random) -> None:
    """Without the extension its name would be cut, and a sparse member's map would be data."""
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in (("a.txt", b"a"), ("n" * 120 + ".txt", b"n" * 600), ("z.txt", b"z")):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    whole = path.read_bytes()

    def check(data: bytes, words: str) -> None:
        path.write_bytes(data)
        pipe = hr.tar(path, fields={"text": "txt"}, keys=True).batch(1)
        assert [b["key"][0] for b in pipe.loader(on_error="skip", output="numpy")] == ["a", "z"]
        with pytest.raises(hr.FormatError, match=rf"a\.tar: byte 1024: {words}"):
            list(pipe.loader())

    start = 2 * BLOCK  # of the second member's extension
    sparse = b"22 GNU.sparse.major=1\n"
    assert b"path=nnn" in whole[start + BLOCK : start + 2 * BLOCK]
    check(whole[: start + BLOCK] + sparse + whole[start + BLOCK + len(sparse) :], "a sparse member")
    for at in [start + rng.randrange(100), start + BLOCK + rng.randrange(4), start + BLOCK + 3]:
        damaged = bytearray(whole)
        damaged[at] ^= 0x40
        check(damaged, "a header's checksum is wrong|a pax header is damaged")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        ([], r"/a\.tar: there is no record that could tell the fields"),
        ([("1.a b", b""), ("1.a_b", b"")], "a_b"),
        ([(f"1.m{i}", b"") for i in range(70)], "more than 64 members"),
    ],
)
def test_what_cannot_be_told_is_said(tmp_path: pathlib.Path, make: list[tuple[str, bytes]], words: str) -> None:
    write(tmp_path / "a.tar", make)
    with pytest.raises(hr.HeadraceError, match=words):
        _ = hr.tar(tmp_path / "a.tar").fields


def test_a_damaged_first_record_is_said(tmp_path: pathlib.Path) -> None:
    write(tmp_path / "a.tar", [("1.txt", b"x" * 100), ("2.txt", b"y")], tarfile.USTAR_FORMAT)
    data = bytearray((tmp_path / "a.tar").read_bytes())
    data[3] ^= 1
    (tmp_path / "a.tar").write_bytes(data)
    with pytest.raises(hr.FormatError, match="first record is damaged"):
        _ = hr.tar(tmp_path / "a.tar").fields
    (batch,) = hr.tar(tmp_path / "a.tar", fields={"text": "txt"}).batch(2).loader(on_error="skip")
    assert list(batch["text"]) == ["y"]
