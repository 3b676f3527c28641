"""source.lines: text files as Python splits them, whatever their endings and sizes."""

from __future__ import annotations

import json
import os
import pathlib
import random
from typing import Any

import pytest

import headrace as hr

WORDS = [b"a", b"word", b" ", b"\xff\x80", "ü€𝄞".encode(), b"\0", b'"', b",", b"\r x"]


def draw(rng: random.Random, count: int, longest: int = 300) -> list[bytes]:
    """Lines; some are empty, some larger than what is read through a window."""
    made = []
    for _ in range(count):
        words = rng.choices(WORDS, k=rng.choice([0, 0, 1, 5, rng.randrange(40), rng.randrange(longest)]))
        made.append(b"".join(words))
    return made


def written(rng: random.Random, lines: list[bytes]) -> bytes:
    """As a file: LF or CR LF, perhaps with a byte order mark, perhaps without the last ending."""
    data = b"\xef\xbb\xbf" * rng.randrange(2)
    for line in lines:
        data += line + rng.choice([b"\n", b"\r\n"])
    if lines and lines[-1] and rng.random() < 0.5:
        data = data.rstrip(b"\r\n")
    return data


def read(path: Any, options: dict[str, Any] | None = None, **run: Any) -> list[bytes]:
    loader = hr.lines(path, **options or {}).batch(5, ragged=True).loader(output="numpy", **run)
    return [os.fsencode(line) for batch in loader for line in batch["text"]]


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_files_are_read_in_order(tmp_path: pathlib.Path, rng: random.Random, threads: int) -> None:
    made = [draw(rng, rng.choice([0, 1, 60])) for _ in range(4)]
    made[2].append(rng.randbytes(70_000).translate(None, b"\r\n"))  # too large for a window
    made[1].append(b"x" * 1_000_000)
    folder = tmp_path / "a folder"
    folder.mkdir()
    for at, lines in enumerate(made):
        (folder / f"part {at:03d}.txt").write_bytes(written(rng, lines))
    (folder / "other.md").write_text("no text of this set\n")
    wanted = [line for lines in made for line in lines]
    assert read(folder / "part {000..003}.txt", threads=threads) == wanted
    assert read(folder / "*.txt", threads=threads) == wanted
    assert read(folder, threads=threads) == wanted
    assert read(folder, {"skip_empty": True}, threads=threads) == [line for line in wanted if line]


def test_lines_are_shuffled_and_resumed(tmp_path: pathlib.Path, rng: random.Random) -> None:
    made = [b"%d" % i for i in range(101)]
    for at in range(3):
        (tmp_path / f"{at}.txt").write_bytes(b"\n".join(made[at::3]))
    pipe = hr.lines(tmp_path).shuffle().batch(4, ragged=True)
    runs = []
    for threads in (0, 2):
        loader = pipe.loader(seed=3, epochs=2, output="numpy", threads=threads)
        runs.append([line.encode() for batch in loader for line in batch["text"]])
    assert runs[0] == runs[1]
    assert sorted(runs[0][:101]) == sorted(runs[0][101:]) == sorted(made)
    assert runs[0][:101] != runs[0][101:]
    cut = rng.randrange(1, 50)
    loader = pipe.loader(seed=3, epochs=2, threads=2, output="numpy")
    run = iter(loader)
    head = [line.encode() for _ in range(cut) for line in next(run)["text"]]
    again = pipe.loader(seed=3, epochs=2, threads=0, output="numpy")
    again.load_state_dict(loader.state_dict())
    assert head + [line.encode() for batch in again for line in batch["text"]] == runs[0]


def test_ranks_divide_one_file(tmp_path: pathlib.Path) -> None:
    (tmp_path / "one.txt").write_bytes(b"".join(b"%d\n" % i for i in range(50)))
    seen: list[int] = []
    for rank in range(4):
        loader = (
            hr.lines(tmp_path / "one.txt").batch(3, ragged=True).loader(shard=(rank, 4), output="numpy", even="none")
        )
        part = [int(line) for batch in loader for line in batch["text"]]
        assert 12 <= len(part) <= 13
        seen += part
    assert sorted(seen) == list(range(50))


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf"])
def test_a_file_without_a_line_has_no_records(tmp_path: pathlib.Path, data: bytes) -> None:
    (tmp_path / "empty.txt").write_bytes(data)
    assert read(tmp_path / "empty.txt") == []
    (tmp_path / "full.txt").write_bytes(b"one")
    assert read(tmp_path) == [b"one"]


def test_identity_names_file_and_byte(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\n")
    (tmp_path / "b.txt").write_bytes(b"three\nboom")
    places: list[tuple[str, int]] = []

    def fail(text: str) -> str:
        if text in ("two", "boom"):
            raise ValueError(text)
        return text

    ledger = tmp_path / "bad.jsonl"
    loader = hr.lines(tmp_path).map(fail, fields="text", outputs="text: text").batch(9, ragged=True)
    batches = list(loader.loader(on_error="skip", ledger=ledger, output="numpy"))
    assert [x for b in batches for x in b["text"]] == ["one", "three"]
    for line in ledger.read_text().splitlines():
        one = json.loads(line)
        places.append((pathlib.Path(one["file"]).name, one["offset"]))
    assert places == [("a.txt", 8), ("b.txt", 6)]


def test_absurd_lines_are_bad_records(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "s.txt"
    path.write_bytes(b"short\n" + b"x" * 100_000 + b"\r\n" + b"y" * 10 + b"\r\n" + b"z" * 11)
    ledger = tmp_path / "bad.jsonl"
    assert read(path, {"max_bytes": 10}, on_error="skip", ledger=ledger) == [b"short", b"y" * 10]
    messages = [json.loads(line)["message"] for line in ledger.read_text().splitlines()]
    assert "s.txt: byte 6: a record of 1000" in messages[0] and "longer than max_bytes (10)" in messages[0]
    assert "s.txt: byte 100020: a record of 11 bytes" in messages[1]
    with pytest.raises(hr.LimitError, match="byte 6: a record of"):
        read(path, {"max_bytes": 10})
    assert len(read(path)) == 4
    parts = hr.split(hr.lines(path, max_bytes=10), [0.5, 0.5], by="text")
    assert sum(len(list(part.batch(1, ragged=True).loader(on_error="skip"))) for part in parts) == 2


def test_what_cannot_be_read_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"text\n" * 100)
    (tmp_path / "folder").mkdir()
    for name, match in (
        ("none.txt", "none.txt"),
        ("{1..0}.txt", "neither a range"),
    ):
        with pytest.raises(hr.HeadraceError, match=match):
            read(tmp_path / name)
    with pytest.raises(hr.ArgumentError, match="skip_empty"):
        hr.lines(tmp_path / "a.txt", skip_emtpy=True)  # type: ignore[call-arg]


def test_a_file_that_changed_is_named(tmp_path: pathlib.Path) -> None:
    for at in range(2):
        (tmp_path / f"{at}.txt").write_bytes(b"line\n" * 100)
    loader = hr.lines(tmp_path).batch(10, ragged=True).loader(output="numpy")
    assert len(list(loader)) == 20
    (tmp_path / "1.txt").write_bytes(b"other\n" * 100)
    with pytest.raises(hr.HeadraceError, match=r"1\.txt changed"):
        list(loader)
