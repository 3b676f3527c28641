"""Issue 14 B2: pipelines joined by a key."""

from __future__ import annotations

import json
import pathlib
import random
import re
import subprocess
from typing import Any, Literal

import pytest

import headrace as hr

Rows = list[dict[str, Any]]


def joined(left: Rows, right: Rows) -> list[tuple[Any, ...]]:
    """What the docs say, as a loop."""
    return [
        (a["id"], a["a"], b["b"])
        for a in left
        for b in right
        if a.get("id") is not None and b.get("id") is not None and a["id"] == b["id"]
    ]


def table(rng: random.Random, path: pathlib.Path, field: str, keys: list[Any]) -> Rows:
    """A file of JSON lines; some rows have no key, some a null."""
    rows: Rows = [{"id": keys[0], field: 0}]
    for i in range(1, rng.randint(2, 60)):
        rows.append({"id": rng.choice([*keys, None]), field: i})
        if rng.random() < 0.1:
            del rows[-1]["id"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return rows


def rows_of(pipe: hr.Pipeline, **options: Any) -> list[tuple[Any, ...]]:
    pipe = pipe.batch(4, ragged=True)

    def plain(value: Any) -> Any:
        return value if isinstance(value, str) else int(value)

    return [
        tuple(plain(b[f][i]) for f in ("id", "a", "b"))
        for b in pipe.loader(output="numpy", **options)
        for i in range(b.records)
    ]


@pytest.mark.parametrize("texts", [False, True], ids=["integers", "texts"])
def test_pairs_are_those_of_a_loop_and_resume_exactly(rng: random.Random, tmp_path: pathlib.Path, texts: bool) -> None:
    for _ in range(4):
        keys: list[Any] = [f'ключ {i}, "{i}"' if texts else (-1) ** i * i * 2**40 for i in range(rng.randint(1, 30))]
        left = table(rng, tmp_path / "l.jsonl", "a", keys)
        right = table(rng, tmp_path / "r.jsonl", "b", keys)
        expected = joined(left, right)
        pipe = hr.join(hr.jsonl(tmp_path / "l.jsonl"), hr.jsonl(tmp_path / "r.jsonl"), on="id")
        assert pipe.record_count == len(expected)
        assert rows_of(pipe) == rows_of(pipe, threads=3) == expected
        seed = rng.randrange(2**40)
        whole = rows_of(pipe.shuffle(), seed=seed, epochs=2)
        assert sorted(whole) == sorted(2 * expected)
        ranks = [rows_of(pipe.shuffle(), seed=seed, epochs=2, shard=(r, 2), even="none") for r in range(2)]
        half = len(expected)
        first = [ranks[i % 2][i // 2] for i in range(half)]
        assert first == whole[:half]


def numbers(path: pathlib.Path, **columns: Any) -> hr.Pipeline:
    """A table of columns of equal lengths."""
    rows = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(rows) + "\n")
    return hr.csv(path)


def test_a_state_resumes_after_any_batch(rng: random.Random, tmp_path: pathlib.Path) -> None:
    a, b = [rng.randrange(9) for _ in range(40)], [rng.randrange(9) for _ in range(30)]
    left = numbers(tmp_path / "left.csv", id=a, a=range(40))
    right = numbers(tmp_path / "right.csv", id=b, b=range(30))
    pipe = hr.join(left, right, on="id").shuffle().batch(5)
    seed = rng.randrange(2**40)

    def values(batches: Any) -> list[tuple[int, int]]:
        return [pair for x in batches for pair in zip(x.a.tolist(), x.b.tolist(), strict=True)]

    whole = values(pipe.loader(seed=seed, output="numpy"))
    assert sorted(whole) == sorted((i, k) for i in range(40) for k in range(30) if a[i] == b[k])
    loader = pipe.loader(seed=seed, output="numpy", threads=rng.randint(1, 3))
    steps = iter(loader)
    seen = values(next(steps) for _ in range(rng.randint(1, len(whole) // 5)))
    again = pipe.loader(seed=seed, output="numpy")
    again.load_state_dict(loader.state_dict())
    assert seen + values(again) == whole


def test_files_are_joined_with_a_table_by_their_stems(tmp_path: pathlib.Path) -> None:
    for folder, number in ("x", 7), ("y", 12), ("y", 100):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / f"{number:06}.tar.bin").write_bytes(b"%d" % number)
    (tmp_path / "table.csv").write_text("id,name\n12.tar,twelve\n000007.tar,seven\n1,one\n")
    (tmp_path / "numbers.jsonl").write_text('{"id": 12, "name": "twelve"}\n{"id": 7, "name": "seven"}\n')
    files = hr.files(tmp_path, suffixes=[".bin"])
    texts = hr.join(files, hr.csv(tmp_path / "table.csv"), left_on="stem", right_on="id")
    (batch,) = texts.batch(9, ragged=True).loader()
    assert [bytes(x) for x in batch.data] == [b"7"] and list(batch.name) == ["seven"]
    with pytest.raises(hr.ArgumentError, match='the "stem" of .* is a text and the "id" of .* is an integer'):
        print(hr.join(files, hr.jsonl(tmp_path / "numbers.jsonl"), left_on="stem", right_on="id").record_count)
    for file in tmp_path.glob("*/*.bin"):
        file.rename(file.with_name(file.name.replace(".tar", "")))
    counted = hr.join(
        hr.files(tmp_path, suffixes=[".bin"]),
        hr.jsonl(tmp_path / "numbers.jsonl"),
        left_on="stem",
        right_on="id",
        integers=True,
    )
    (batch,) = counted.batch(9, ragged=True).loader()
    assert [bytes(x) for x in batch.data] == [b"7", b"12"]
    assert list(batch.name) == ["seven", "twelve"]
    assert "2 pairs: 2 of 3 left records with 2 of 2 right records" in str(counted.batch(2, ragged=True).explain())


def test_the_file_of_the_record_that_fails_is_named(tmp_path: pathlib.Path) -> None:
    (tmp_path / "photos").mkdir()
    for i in range(4):
        (tmp_path / "photos" / f"{i}.jpg").write_bytes(b"no photo")
    (tmp_path / "t.csv").write_text("id,n\n2,5\n")
    pipe = hr.join(
        hr.files(tmp_path / "photos"), hr.csv(tmp_path / "t.csv"), left_on="stem", right_on="id", integers=True
    )
    with pytest.raises(hr.HeadraceError, match=r"2\.jpg"):
        list(pipe.decode().resize(8).batch(1).loader())


def test_wrong_joins_are_refused(tmp_path: pathlib.Path) -> None:
    left = numbers(tmp_path / "left.csv", id=range(3), x=range(3))
    right = numbers(tmp_path / "right.csv", id=range(5, 9), x=range(4))
    for wrong, message in (
        ({}, "it has no key for its inputs"),
        ({"on": "x"}, 'two inputs have a field "id": give each input a prefix'),
        ({"on": "id", "prefix": ["l_", "r_"]}, 'no "id" of .*, such as "0", is a "id" of .*, such as "5"'),
        ({"on": "ix", "prefix": ["l_", "r_"]}, '"ix" is not known.*id'),
    ):
        with pytest.raises(hr.HeadraceError, match=message):
            print(hr.join(left, right, **wrong).record_count)  # type: ignore[arg-type]
    with pytest.raises(hr.HeadraceError, match="record.filter"):
        print(hr.join(left.where("x > 1"), right, on="id", prefix=["l_", "r_"]).record_count)
    with pytest.raises(hr.HeadraceError, match="orders those of one input otherwise in every epoch"):
        print(hr.join(left.shuffle(), right, on="id", prefix=["l_", "r_"]).record_count)


def test_a_cache_tells_joins_of_other_orders_apart(tmp_path: pathlib.Path) -> None:
    left = numbers(tmp_path / "left.csv", id=[1, 2, 3, 4] * 3, a=range(12))
    right = numbers(tmp_path / "right.csv", id=[1, 2, 3, 4, 4], b=range(5))
    for some, rows in ((left.take(8), range(8)), (left.skip(4), range(4, 12)), (left, range(12))):
        pipe = hr.join(some, right, on="id")
        expected = [(i % 4 + 1, i, b) for i in rows for b in ((3, 4) if i % 4 == 3 else (i % 4,))]
        for _ in range(2):
            assert rows_of(pipe.cache(tmp_path / "kept"), epochs=2) == 2 * expected


def test_parts_of_a_join_share_no_left_record(rng: random.Random, tmp_path: pathlib.Path) -> None:
    left = numbers(tmp_path / "left.csv", id=[rng.randrange(20) for _ in range(50)], a=range(50))
    right = numbers(tmp_path / "right.csv", id=list(range(20)) * 2, b=range(40))
    pipe = hr.join(left, right, on="id")
    parts = [rows_of(part) for part in hr.split(pipe, [0.5, 0.5], seed=rng.randrange(1000), by="a")]
    assert sorted(parts[0] + parts[1]) == sorted(rows_of(pipe))
    assert not {a for _, a, _ in parts[0]} & {a for _, a, _ in parts[1]}
    by_right = [rows_of(part) for part in hr.split(pipe, [0.5, 0.5], seed=rng.randrange(1000), by="b")]
    assert not {b for *_, b in by_right[0]} & {b for *_, b in by_right[1]}


def test_a_memory_budget_counts_the_pairs(command: str, tmp_path: pathlib.Path) -> None:
    numbers(tmp_path / "left.csv", id=[7] * 400, a=range(400))
    numbers(tmp_path / "right.csv", id=[7] * 300, b=range(300))
    kept = []
    for count in (1, 400):
        (tmp_path / "graph.yaml").write_text(
            f"headrace: 1\npipeline:\n  - source.csv: {{path: '{tmp_path}/left.csv'}}\n"
            f"  - order.take: {{count: {count}}}\n    name: left\n"
            f"  - source.csv: {{path: '{tmp_path}/right.csv'}}\n    name: right\n    inputs: []\n"
            "  - flow.join: {on: id}\n    inputs: [left, right]\n  - batch.stack: {size: 10}\n"
        )
        args = [command, "plan", str(tmp_path / "graph.yaml"), "--memory", "200MB"]
        plan = subprocess.run(args, check=True, capture_output=True, text=True).stdout
        kept.append(int(re.search(r"^  kept: (\d+)$", plan, re.MULTILINE)[1]))  # type: ignore[index]
    # What opening the join allocates counts, besides the pairs.
    assert kept[1] - kept[0] == pytest.approx(8 * 300 * 399, rel=0.05)


def double(b: int) -> int:
    return int(b) * 2


@pytest.mark.parametrize("variant", ["threads", "processes"])
def test_a_left_join_keeps_records_without_a_match(
    rng: random.Random, tmp_path: pathlib.Path, variant: Literal["threads", "processes"]
) -> None:
    """Your functions before the join are not called for records that they do not have."""
    a, b = [rng.randrange(9) for _ in range(40)], [rng.randrange(3, 12) for _ in range(30)]
    left = numbers(tmp_path / "left.csv", id=a, a=range(40))
    right = numbers(tmp_path / "right.csv", id=b, b=range(30))
    right = right.map(double, fields="b", outputs={"b": "int64"}, variant=variant)
    pipe = hr.join(left, right, on="id", how="left", fill={"b": -7}, matched="known")
    expected = [
        row
        for i, key in enumerate(a)
        for row in ([(i, 2 * k, True) for k in range(30) if b[k] == key] or [(i, -7, False)])
    ]
    assert pipe.record_count == len(expected)

    def rows(**options: Any) -> list[tuple[int, int, bool]]:
        batches = pipe.batch(4).loader(output="numpy", **options)
        return [x for y in batches for x in zip(y.a.tolist(), y.b.tolist(), y.known.tolist(), strict=True)]

    assert rows() == rows(threads=3) == expected
    assert f"{sum(not known for *_, known in expected)} left records without a match" in str(pipe.batch(2).explain())


def test_keys_are_made_by_steps_before_the_join(tmp_path: pathlib.Path) -> None:
    left = numbers(tmp_path / "left.csv", name=["Ann", " BOB ", "Cy"], a=range(3))
    right = numbers(tmp_path / "right.csv", who=["bob", "ann", "ann"], b=range(3))
    clean = left.strip_text(field="name").lower_text(field="name")
    pipe = hr.join(clean, right.rename({"who": "name"}), on="name").batch(9, ragged=True)
    (batch,) = pipe.loader(output="numpy", epochs=1)
    assert list(batch.name) == ["ann", "ann", "bob"]
    assert list(zip(batch.a.tolist(), batch.b.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 0)]
    with pytest.raises(hr.ArgumentError, match=r'the "a" of .* is made by .*, which is your code'):
        print(
            hr.join(left.map(double, fields="a", outputs={"a": "int64"}), right, left_on="a", right_on="b").record_count
        )


def test_fields_of_records_without_a_match_are_what_fill_says(tmp_path: pathlib.Path) -> None:
    left = numbers(tmp_path / "left.csv", id=[1, 2], a=[10, 20])
    (tmp_path / "r.jsonl").write_text('{"id": 1, "x": 0.5, "name": "one", "words": "a b", "yes": true}\n')
    right = hr.jsonl(tmp_path / "r.jsonl").split_text(field="words")

    def second(**options: Any) -> list[Any]:
        pipe = hr.join(left, right, on="id", how="left", **options).batch(2, ragged=True)
        (batch,) = pipe.loader(output="numpy", epochs=1)
        return [float(batch.x[1]), batch.name[1], len(batch.words[1]), bool(batch.yes[1])]

    assert second(fill={"x": -1.5, "name": "", "words": [], "yes": True}) == [-1.5, "", 0, True]
    assert second(fill={"x": 3, "name": "== =x", "words": [], "yes": 1}) == [3, "== =x", 0, True]
    assert second(fill={"name": " x"}, matched="known") == [0, " x", 0, False]
    for wrong, message in (
        ({}, 'a record without a match has no "x": say what it becomes'),
        ({"fill": {"x": "much"}, "matched": "known"}, '"much" is no value of "x", which is float64'),
        ({"fill": {"nam": ""}, "matched": "known"}, 'called "nam"; did you mean "name"'),
        ({"fill": {"x": [1]}, "matched": "known"}, 'wants a number, a bool or a text for "x", not a list'),
        ({"matched": "a"}, 'an input has a field "a"'),
    ):
        with pytest.raises(hr.HeadraceError, match=message):
            second(**wrong)  # type: ignore[arg-type]
    with pytest.raises(hr.HeadraceError, match="which an inner join leaves out"):
        print(hr.join(left, right, on="id", fill={"x": 1}).record_count)
