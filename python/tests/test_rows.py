"""source.jsonl and source.csv: what Python's json and csv write is read, damage is found."""

from __future__ import annotations

import csv
import io
import json
import os
import pathlib
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

import headrace as hr

Row = dict[str, Any]
TYPES = {"id": "int64", "score": "float64", "name": "text"}
WORDS = ["a", "word", "ü€𝄞", '"', '""', ",", ";", "\t", "\\", "{", "\n", "\r\n", " x ", "0", "true", "nan", "/"]


def draw(rng: random.Random, count: int) -> list[Row]:
    """Rows of three columns; texts have all that quotes and escapes are for."""
    made = []
    for at in range(count):
        name = "".join(rng.choices(WORDS, k=rng.choice([1, 1, 2, 5, rng.randrange(1, 60)])))
        name += "" if name.strip(" \t") else "a"  # CSV takes no blanks without quotes
        if rng.random() < 0.01:
            name += "long" * 20_000
        made.append(
            {"id": rng.choice([at, -at, rng.randrange(-(2**63), 2**63)]), "score": rng.gauss(0, 1e3), "name": name}
        )
    return made


def as_jsonl(rng: random.Random, rows: list[Row]) -> bytes:
    ends, spaces = rng.choice(["\n", "\r\n"]), rng.choice([(", ", ": "), (",", ":")])
    lines = []
    for row in rows:
        items = list(row.items())
        rng.shuffle(items)
        lines.append(json.dumps(dict(items), ensure_ascii=rng.random() < 0.5, separators=spaces) + ends)
        if rng.random() < 0.05:
            lines.append(rng.choice(["", " ", "\t"]) + ends)
    return "".join(lines).encode()


def as_csv(rng: random.Random, rows: list[Row], delimiter: str = ",") -> bytes:
    out = io.StringIO(newline="")
    quoting = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC])
    writer = csv.DictWriter(
        out, list(rows[0]) if rows else list(TYPES), delimiter=delimiter, quoting=quoting,
        lineterminator=rng.choice(["\n", "\r\n"]),
    )  # fmt: skip
    writer.writeheader()
    for row in rows:
        writer.writerow({**row, "name": row["name"]} if "name" in row else row)
        if rng.random() < 0.05:
            out.write(rng.choice(["", " "]) + "\n")
    return out.getvalue().encode()


FORMATS: dict[str, tuple[Callable[..., Any], Callable[..., bytes]]] = {
    "jsonl": (hr.jsonl, as_jsonl),
    "csv": (hr.csv, as_csv),
}
each_format = pytest.mark.parametrize("format", FORMATS)


def rows_of(loader: Any) -> list[Row]:
    got: list[Row] = []
    for batch in loader:
        columns = {name: batch[name] for name in batch}
        texts = {n: c if isinstance(c, list) else c.tolist() for n, c in columns.items()}
        got += [dict(zip(texts, one, strict=True)) for one in zip(*texts.values(), strict=True)]
    return got


def read(source: Callable[..., Any], path: Any, options: Row | None = None, **run: Any) -> list[Row]:
    return rows_of(source(path, **options or {}).batch(5, ragged=True).loader(output="numpy", **run))


@each_format
@pytest.mark.parametrize("threads", [0, 3])
@pytest.mark.parametrize("declared", [False, True])
def test_what_python_writes_is_read(
    tmp_path: pathlib.Path, rng: random.Random, format: str, threads: int, declared: bool
) -> None:
    source, write = FORMATS[format]
    made = [draw(rng, count) for count in (40, 0, 1, 60)]
    made[0][0]["name"], made[0][0]["score"] = "text", 0.5  # whatever the draws, the types are these
    folder = tmp_path / "some rows"
    folder.mkdir()
    for at, rows in enumerate(made):
        data = b"\xef\xbb\xbf" * rng.randrange(2) + write(rng, rows)
        (folder / f"part {at:02d}.{format}").write_bytes(data.rstrip(b"\r\n") if rng.random() < 0.5 else data)
    wanted = [row for rows in made for row in rows]
    options = {"types": TYPES, "columns": list(TYPES)} if declared else {}
    for path in (folder, folder / f"*.{format}", folder / f"part {{00..03}}.{format}"):
        got = read(source, path, options, threads=threads)
        assert [row["id"] for row in got] == [row["id"] for row in wanted]
        assert [row["score"] for row in got] == [row["score"] for row in wanted]
        assert [row["name"].strip(" \t") for row in got] == [row["name"].strip(" \t") for row in wanted]


@each_format
def test_rows_are_shuffled_and_resumed(tmp_path: pathlib.Path, rng: random.Random, format: str) -> None:
    source, write = FORMATS[format]
    made = [{"id": i, "name": f"n{i}"} for i in range(101)]
    for at in range(3):
        (tmp_path / f"{at}.{format}").write_bytes(write(rng, made[at::3]))
    pipe = source(tmp_path).shuffle().batch(4, ragged=True)
    runs = [rows_of(pipe.loader(seed=3, epochs=2, output="numpy", threads=threads)) for threads in (0, 2)]
    assert runs[0] == runs[1]
    assert sorted(row["id"] for row in runs[0][:101]) == sorted(row["id"] for row in runs[0][101:]) == list(range(101))
    assert runs[0][:101] != runs[0][101:]
    loader = pipe.loader(seed=3, epochs=2, threads=2, output="numpy")
    run = iter(loader)
    head = rows_of(next(run) for _ in range(rng.randrange(1, 50)))
    again = pipe.loader(seed=3, epochs=2, threads=0, output="numpy")
    again.load_state_dict(loader.state_dict())
    assert head + rows_of(again) == runs[0]


@each_format
def test_damage_is_found_and_the_other_rows_are_read(tmp_path: pathlib.Path, rng: random.Random, format: str) -> None:
    """A byte that becomes another letter is no damage that a text could show; a byte that
    breaks the syntax or a number is. Whatever it is, other rows are not touched."""
    source, write = FORMATS[format]
    words = ["plain", "two words", "a, b", 'say ""', "x\ny" if format == "csv" else "xy"]
    made = [{"id": i, "score": i / 8, "name": rng.choice(words)} for i in range(60)]
    path = tmp_path / f"s.{format}"
    whole = write(rng, made)
    first = whole.index(b"\n") + 1 if format == "csv" else 0
    wanted = {row["id"]: row for row in made}
    for _ in range(150):
        at = rng.randrange(first, len(whole))
        damaged = bytearray(whole)
        damaged[at] = rng.choice([damaged[at] ^ 1 << rng.randrange(8), *b'"\n\r,{}\\\0\xff'])
        path.write_bytes(damaged)
        ledger = tmp_path / "bad.jsonl"
        got = read(source, path, {"columns": list(TYPES), "types": TYPES}, on_error="skip", ledger=ledger)
        same = [row for row in got if wanted.get(row["id"]) == row]
        lost = len(made) - len(same)
        assert lost <= (4 if format == "csv" else 2), (at, damaged[at])
        for line in ledger.read_text().splitlines() if ledger.exists() else []:
            one = json.loads(line)
            number, byte = re.search(rf"s\.{format}:(\d+): byte (\d+): ", one["message"]).groups()  # type: ignore[union-attr]
            assert damaged[: one["offset"]].count(b"\n") + 1 == int(number), one
            assert one["offset"] <= int(byte) <= len(damaged) and abs(int(byte) - at) < 200, (at, one)
        ledger.unlink(missing_ok=True)


def test_keys_that_few_rows_have_are_left_out(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n{"a": 2, "b": 3}\n')
    assert read(hr.jsonl, path) == [{"a": 1}, {"a": 2}]
    for columns in ("*", ["*", "b"]):
        got = read(hr.jsonl, path, {"columns": columns, "types": {"b": "int64 = 0"}})
        assert got == [{"a": 1, "b": 0}, {"a": 2, "b": 3}]
    path.write_text('{"a": 1, "b": 2}\n{"a": 2}\n{"a": 3, "b": 4}\n')
    assert read(hr.jsonl, path, on_error="skip") == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]


def test_types_follow_from_all_rows(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [
        {"i": 1, "f": 1, "b": True, "t": "x", "l": [1, 2], "m": 1},
        {"i": -2, "f": 0.5, "b": False, "t": "", "l": {"k": "ü"}, "m": None},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    pipe = hr.jsonl(path, columns=["i", "f", "b", "t", "l"])
    assert [str(pipe.fields[name].dtype) for name in "ifb"] == ["int64", "float64", "bool"]
    got = read(hr.jsonl, path, {"columns": ["i", "f", "b", "t", "l"]})
    assert got == [
        {"i": 1, "f": 1.0, "b": True, "t": "x", "l": "[1,2]"},
        {"i": -2, "f": 0.5, "b": False, "t": "", "l": '{"k":"ü"}'},
    ]
    assert read(hr.jsonl, path, {"columns": "m", "types": {"m": "json = 0"}}) == [{"m": "1"}, {"m": "0"}]
    (tmp_path / "a.csv").write_text('i,f,t,q\n1,2,x,"1"\n2,3.5,7,2\n')
    assert read(hr.csv, tmp_path / "a.csv") == [
        {"i": 1, "f": 2.0, "t": "x", "q": 1},
        {"i": 2, "f": 3.5, "t": "7", "q": 2},
    ]


@pytest.mark.parametrize(
    ("format", "text", "message"),
    [
        ("jsonl", '{"a": 1}\n\n{"a": "x"}\n', r'a.jsonl:3: byte 11: column "a": the text "x" is no int64'),
        ("jsonl", '{"a": 1}\n{"b": 1}\n', r'a.jsonl:2: byte 9: column "a": the value is missing'),
        ("jsonl", '{"a": null}\n', r'a.jsonl:1: byte 0: column "a": the value is missing'),
        ("jsonl", '{"a": 1}\n[1]\n', r"a.jsonl:2: byte 9: no JSON object"),
        ("jsonl", '{"a": 1}\n{"a": 01}\n', r"a.jsonl:2: byte 16: no JSON object: "),
        ("jsonl", '{"a": 1, "a": 2}\n', r"a.jsonl:1: byte \d+: no JSON object: "),
        ("jsonl", '{"a": 9223372036854775808}\n', r'column "a": "9.*" is no int64'),
        ("jsonl", '{"a": 1.0}\n', r'column "a": "1.0" is no int64'),
        ("jsonl", '{"a": 1, "ü": "\\ud800"}\n', r"byte \d+: no JSON object: unpaired surrogate"),
        ("jsonl", '{"a": 1}{"a": 2}\n', r"a.jsonl:1: byte 8: no JSON object"),
        ("csv", "a,b\n1,2\n3\n", r"a.csv:3: byte 8: 1 cells, and 2 in the first line"),
        ("csv", 'a,b\n"x\ny",2\n,2\n', r'a.csv:2: byte 5: column "a": the text "x.y" is no int64'),
        ("csv", "a,b\n\n1,2\n ,2\n", r'a.csv:4: byte 9: column "a": the value is missing'),
        ("csv", "a,b\nNA,2\n", r'a.csv:2: byte 4: column "a": the value is missing'),
        ("csv", 'a,b\n1,2"3\n', r"a.csv:2: byte 7: a quote stands inside a cell"),
        ("csv", 'a,b\n"1,2\n', r"a.csv:2: byte 4: the quote that begins here is not closed"),
        ("csv", "a,b\n1,2\rx\n", r"a.csv:2: byte 7: a carriage return"),
        ("csv", "a,b\n1.0,2\n", r'column "a": "1.0" is no int64'),
        ("csv", "a,b\n99999999999999999999,2\n", r"is no int64"),
    ],
)
def test_bad_rows_name_file_line_byte_and_column(tmp_path: pathlib.Path, format: str, text: str, message: str) -> None:
    path = tmp_path / f"a.{format}"
    path.write_bytes(text.encode())
    with pytest.raises(hr.FormatError) as caught:
        read(FORMATS[format][0], path, {"columns": "a", "types": {"a": "int64"}})
    assert re.search(message, str(caught.value).replace("\n", "."))


@pytest.mark.parametrize(("format", "text"), [("csv", "a\n1\n1e400\n"), ("jsonl", '{"a": 1.5}\n{"a": -1e999}\n')])
@pytest.mark.parametrize("given", [{}, {"types": {"a": "float64"}}])
def test_a_number_beyond_float64_is_no_infinity(
    tmp_path: pathlib.Path, format: str, text: str, given: dict[str, Any]
) -> None:
    path = tmp_path / f"a.{format}"
    path.write_text(text)
    with pytest.raises(hr.FormatError, match=rf"a\.{format}:\d.*is no float64"):
        read(FORMATS[format][0], path, given)


def test_invalid_utf8_is_text_in_csv_and_damage_in_json(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"a,b\n\xff\x80,1\n")
    assert os.fsencode(read(hr.csv, tmp_path / "a.csv")[0]["a"]) == b"\xff\x80"
    (tmp_path / "a.jsonl").write_bytes(b'{"a": "ok"}\n{"a": "\xff"}\n')
    with pytest.raises(hr.FormatError, match="a.jsonl:2: byte 19: no JSON object: invalid UTF-8"):
        read(hr.jsonl, tmp_path / "a.jsonl")


@each_format
def test_missing_values_have_defaults(tmp_path: pathlib.Path, format: str) -> None:
    path = tmp_path / f"a.{format}"
    lines = {"jsonl": '{"i": 1, "t": "x"}\n{"f": null}\n', "csv": "i,f,b,t\n1,,True,x\n,nan,,\n"}
    path.write_text(lines[format])
    types = {"i": "int64 = -7", "f": "float64=0.25", "b": "bool = true", "t": "text ="}
    got = read(FORMATS[format][0], path, {"columns": list(types), "types": types})
    assert got == [{"i": 1, "f": 0.25, "b": True, "t": "x"}, {"i": -7, "f": 0.25, "b": True, "t": ""}]


@each_format
@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"columns": ["ida"]}, r'no column is called "ida"; did you mean "id"\?; the columns are "id", "name"'),
        ({"types": {"nmae": "text"}}, r'no column is called "nmae"; did you mean "name"'),
        ({"types": {"id": "int"}}, "it is int64, float64, bool, text or json"),
        ({"types": {"id": "int64 = x"}}, "its default is no value of the type"),
        ({"types": {"id": "int64 0"}}, "may have a default"),
        ({"max_bytes": 0}, "max_bytes"),
    ],
)
def test_wrong_options_are_refused(tmp_path: pathlib.Path, format: str, options: Row, match: str) -> None:
    source, write = FORMATS[format]
    path = tmp_path / f"a.{format}"
    path.write_bytes(write(random.Random(1), [{"id": 1, "name": "x"}]))
    with pytest.raises(hr.HeadraceError, match=match):
        read(source, path, options)


def test_columns_that_do_not_go_together_are_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.jsonl"
    for lines, match in (
        ('{"a": 1}\n\n{"a": "x"}\n', 'a.jsonl:3: column "a": a text, and other lines have numbers: declare'),
        ('{"a": 1}\n{"a": true}\n', 'a.jsonl:2: column "a": true or false'),
        ('{"a": 1}\n{"a": [1]}\n', 'a.jsonl:2: column "a": a list or an object'),
        ('{"a": null}\n', 'column "a" has no value in any row'),
        ("", "has no row"),
    ):
        path.write_text(lines)
        with pytest.raises(hr.HeadraceError, match=match):
            read(hr.jsonl, path)
    assert read(hr.jsonl, path, {"columns": "a", "types": {"a": "int64"}}) == []


def test_headers_are_detected_or_told(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("1,x\n2,y\n")
    numbered = [{"column_1": 1, "column_2": "x"}, {"column_1": 2, "column_2": "y"}]
    assert read(hr.csv, path) == read(hr.csv, path, {"header": "no"}) == numbered
    assert read(hr.csv, path, {"header": "yes"}) == [{"1": 2, "x": "y"}]
    assert read(hr.csv, path, {"names": ["n", "t"]}) == [{"n": 1, "t": "x"}, {"n": 2, "t": "y"}]
    path.write_text("a.b,c/d\n1,2\n")  # no header by its looks
    assert read(hr.csv, path, {"columns": ["c/d"]}) == [{"c/d": 2}]
    path.write_text("a,b\nc,d\n")
    assert read(hr.csv, path, {"header": "no", "columns": "column_2"}) == [{"column_2": "b"}, {"column_2": "d"}]
    with pytest.raises(hr.ArgumentError, match="3 names, and 2 columns"):
        read(hr.csv, path, {"names": ["a", "b", "c"]})
    (tmp_path / "b.csv").write_text("b,a\n1,2\n")
    with pytest.raises(hr.FormatError, match="b.csv:1: the header differs"):
        read(hr.csv, tmp_path)


@pytest.mark.parametrize("delimiter", [";", "tab", "\t", "|", " "])
def test_delimiters(tmp_path: pathlib.Path, rng: random.Random, delimiter: str) -> None:
    path = tmp_path / "a.csv"
    made = [row for row in draw(rng, 40) if row["name"].strip(" \t")]
    path.write_bytes(as_csv(rng, made, "\t" if delimiter == "tab" else delimiter))
    if delimiter == " ":
        with pytest.raises(hr.ArgumentError, match="delimiter is one ASCII character"):
            read(hr.csv, path, {"delimiter": delimiter})
        return
    got = read(hr.csv, path, {"delimiter": delimiter, "types": TYPES})
    assert [row["id"] for row in got] == [row["id"] for row in made]
    assert [row["name"].strip(" \t") for row in got] == [row["name"].strip(" \t") for row in made]


def test_lines_are_counted_in_long_files(tmp_path: pathlib.Path, rng: random.Random) -> None:
    count = 5000
    bad = sorted(rng.sample(range(count), 20))
    rows = [f'{"x" if i in bad else i},"line\n{i}"\n' + "\n" * (i % 7 == 0) for i in range(count)]
    path = tmp_path / "a.csv"
    path.write_text("n,t\n" + "".join(rows))
    ledger = tmp_path / "bad.jsonl"
    assert len(read(hr.csv, path, {"types": {"n": "int64"}}, on_error="skip", ledger=ledger)) == count - 20
    numbers = [int(re.search(r"a\.csv:(\d+):", json.loads(x)["message"])[1]) for x in ledger.read_text().splitlines()]  # type: ignore[index]
    assert numbers == [2 + "".join(rows[:i]).count("\n") for i in bad]


@each_format
def test_absurd_rows_are_bad_records(tmp_path: pathlib.Path, format: str) -> None:
    source, write = FORMATS[format]
    path = tmp_path / f"a.{format}"
    path.write_bytes(write(random.Random(1), [{"id": i, "name": "x" * n} for i, n in enumerate([1, 500_000, 2])]))
    got = read(source, path, {"max_bytes": "1k"}, on_error="skip")
    assert got == [{"id": 0, "name": "x"}, {"id": 2, "name": "xx"}]
    with pytest.raises(hr.LimitError, match="longer than max_bytes"):
        read(source, path, {"max_bytes": "1k"})
    assert len(read(source, path)) == 3


@each_format
def test_rows_are_split_by_a_column(tmp_path: pathlib.Path, format: str) -> None:
    source, write = FORMATS[format]
    path = tmp_path / f"a.{format}"
    path.write_bytes(write(random.Random(1), [{"id": i, "name": f"g{i % 10}"} for i in range(200)]))
    parts = [read(lambda _, p=part: p, path) for part in hr.split(source(path), [0.5, 0.5], by="name")]
    assert sorted(row["id"] for part in parts for row in part) == list(range(200))
    assert {row["name"] for row in parts[0]}.isdisjoint({row["name"] for row in parts[1]})


@each_format
def test_what_cannot_be_read_is_refused(tmp_path: pathlib.Path, format: str) -> None:
    with pytest.raises(hr.HeadraceError, match=f"none.{format}"):
        read(FORMATS[format][0], tmp_path / f"none.{format}")


def test_a_header_with_dots_above_numbers_is_refused_until_it_is_told(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "iris.csv"
    file.write_text("Sepal.Length,kind\n5.1,setosa\n4.9,setosa\n")
    with pytest.raises(hr.FormatError, match="header: yes or header: no"):
        hr.csv(file).fields  # noqa: B018
    assert [f.name for f in hr.csv(file, header="yes").fields] == ["Sepal.Length", "kind"]
    assert hr.csv(file, header="no").record_count == 3
    file.write_text("a.jpg,cat\nb.jpg,dog\n")
    assert hr.csv(file).record_count == 2


def test_a_header_with_another_delimiter_or_encoding_is_refused(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "a.csv"
    for delimiter, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        file.write_text(f"id{delimiter}kind\n1{delimiter}x\n")
        with pytest.raises(hr.FormatError, match=f"separated by {name}: say delimiter"):
            hr.csv(file).fields  # noqa: B018
        assert [f.name for f in hr.csv(file, header="yes").fields] == [f"id{delimiter}kind"]
        assert [f.name for f in hr.csv(file, delimiter=delimiter).fields] == ["id", "kind"]
    file.write_text("id;kind,n\n1,2\n")
    assert [f.name for f in hr.csv(file).fields] == ["id;kind", "n"]
    for encoding in ("latin-1", "utf-16"):
        file.write_bytes("größe,n\n1,2\n".encode(encoding))
        with pytest.raises(hr.FormatError, match="the name of column 1 is not UTF-8"):
            hr.csv(file).fields  # noqa: B018
    file.write_bytes("größe,n\n1,2\n".encode("latin-1"))
    assert [f.name for f in hr.csv(file, names=["size", "n"]).fields] == ["size", "n"]


def test_a_quoted_header_error_names_its_place(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.csv").write_text('\na,"b\n1,2\n')
    with pytest.raises(hr.FormatError, match="a.csv:2:3: the quote that begins here is not closed"):
        read(hr.csv, tmp_path / "a.csv")


@pytest.mark.parametrize("other", ["", ', "l": [1, {"k": "\\u00e9"}]'])
def test_digits_of_large_whole_numbers_are_not_lost(tmp_path: pathlib.Path, other: str) -> None:
    """With `other`, the line needs the parser of nested values."""
    path = tmp_path / "a.jsonl"
    numbers = [2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 10**40 + 1]
    path.write_text("".join(f'{{"a": {number} {other}}}\n' for number in numbers))

    def read(**options: Any) -> list[Any]:
        pipe = hr.jsonl(path, columns=["a"], **options).batch(1)
        return [batch["a"][0] for batch in pipe.loader(output="numpy", on_error="skip")]

    assert read() == read(types={"a": "int64"}) == numbers[:2]
    assert read(types={"a": "json"}) == [str(number) for number in numbers]
    assert read(types={"a": "float64"}) == [float(number) for number in numbers]
    with pytest.raises(hr.FormatError, match=rf'a\.jsonl:3: byte \d+: column "a": "{2**63}" is no int64'):
        list(hr.jsonl(path, columns=["a"]).batch(1).loader())


@pytest.mark.parametrize(
    ("format", "text", "words"),
    [
        ("jsonl", '\n[{"a": 1}]\n', r"a\.jsonl:2: no JSON object; nor can any other line be read"),
        ("jsonl", '{"a": 01}\n{\n', r"a\.jsonl:1: no JSON object: expected ',' or '}'; nor"),
        ("csv", "a,b\n1,2,\n3,4,\n", r"a\.csv:2: 3 cells, and 2 in the first line.*; nor"),
    ],
)
def test_a_file_without_a_row_that_can_be_read_says_why(
    tmp_path: pathlib.Path, format: str, text: str, words: str
) -> None:
    path = tmp_path / f"a.{format}"
    path.write_text(text)
    with pytest.raises(hr.FormatError, match=words):
        _ = getattr(hr, format)(path).fields
