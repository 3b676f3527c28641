"""Issue 14 A4: parts of a split are disjoint, cover everything, and keep their records."""

from __future__ import annotations

import io
import itertools
import json
import pathlib
import random
import subprocess
import tarfile
from collections import Counter
from collections.abc import Callable, Iterable

import pytest

import headrace as hr
from headrace import _headrace


def fill(folder: pathlib.Path, names: Iterable[str]) -> pathlib.Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return folder


def source(folder: pathlib.Path, **options: str) -> hr.Pipeline:
    return hr.files(folder, suffixes=[], paths=True, **options)  # type: ignore[arg-type]


def names(pipe: hr.Pipeline) -> list[str]:
    """What the records of an epoch hold, which is their path."""
    return [data.decode() for batch in pipe.batch(16).loader(output="numpy") for data in batch.data]


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """400 files in 25 folders of 4 classes."""
    return fill(tmp_path / "data", (f"{'abcd'[i % 4]}/p{i % 25:02}_{i:03}.bin" for i in range(400)))


def test_parts_are_disjoint_and_cover_everything_in_every_epoch_on_every_rank(
    folder: pathlib.Path, rng: random.Random
) -> None:
    everything = sorted(names(source(folder)))
    parts = hr.split(source(folder), [0.5, 0.3, 0.2], seed=rng.randrange(2**40))
    first = [set(names(p)) for p in parts]
    assert [len(one) for one in first] == [p.record_count for p in parts]
    epochs: list[list[list[str]]] = [[], [], []]
    for part in parts:
        world, seed = rng.randint(1, 3), rng.randrange(2**40)
        seen: list[list[str]] = [[], [], []]
        for rank in range(world):
            loader = (
                part.shuffle().batch(16).loader(shard=(rank, world), even="none", seed=seed, epochs=3, output="numpy")
            )
            for batch in loader:
                seen[batch.epoch] += (data.decode() for data in batch.data)
        for epoch in range(3):
            epochs[epoch].append(seen[epoch])
    for seen in epochs:
        assert sorted(name for one in seen for name in one) == everything
        assert [set(one) for one in seen] == first
    assert epochs[0] != epochs[1]


def test_parts_have_about_the_sizes_of_their_fractions(rng: random.Random) -> None:
    parts = hr.split(hr.range(100_000), [0.9, 0.1], seed=rng.randrange(2**40), by="index")
    counts = [p.record_count or 0 for p in parts]
    assert sum(counts) == 100_000
    assert abs(counts[1] - 10_000) < 1000  # more than ten standard deviations


def test_files_keep_their_part_when_others_are_added_and_removed(folder: pathlib.Path, rng: random.Random) -> None:
    seed = rng.randrange(2**40)

    def parts() -> list[set[str]]:
        return [set(names(p)) for p in hr.split(source(folder), [0.7, 0.3], seed=seed)]

    before = parts()
    fill(folder, (f"{rng.choice('abcde')}/{rng.random()}.bin" for _ in range(100)))
    gone = set(rng.sample(sorted(before[0] | before[1]), 50))
    for name in gone:
        (folder / name).unlink()
    for old, new, other in zip(before, parts(), reversed(parts()), strict=True):
        assert old - gone <= new and not old & other


def test_a_fraction_cut_in_two_leaves_the_other_parts(folder: pathlib.Path) -> None:
    train, rest = hr.split(source(folder), [0.8, 0.2], seed=3)
    same, val, test = hr.split(source(folder), [0.8, 0.1, 0.1], seed=3)
    assert names(same) == names(train)
    assert sorted(names(val) + names(test)) == sorted(names(rest))


def test_another_seed_divides_otherwise(folder: pathlib.Path) -> None:
    one, other = (set(names(hr.split(source(folder), [0.5, 0.5], seed=s)[0])) for s in (1, 2))
    assert 50 < len(one & other) < 150


def test_parts_do_not_depend_on_where_the_folder_is(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    moved = hr.split(source(folder), [0.5, 0.5])[0]
    expected = names(moved)
    folder.rename(tmp_path / "elsewhere")
    assert names(hr.split(source(tmp_path / "elsewhere/"), [0.5, 0.5])[0]) == expected


GROUPS: dict[str, tuple[dict[str, str], Callable[[str], str]]] = {
    "the class": ({"by": "label"}, lambda name: name[0]),
    "the folder": ({"group": "^[^/]+"}, lambda name: name[0]),
    "the patient": ({"group": "p[0-9]+_"}, lambda name: name[2:5]),
}


@pytest.mark.parametrize("group", GROUPS)
def test_groups_are_never_cut(folder: pathlib.Path, group: str, rng: random.Random) -> None:
    options, group_of = GROUPS[group]
    for _ in range(40):  # all four classes fall into one part for some seeds, which is refused
        seed = rng.randrange(2**40)
        parts = hr.split(source(folder, labels="folder"), [0.5, 0.5], seed=seed, **options)  # type: ignore[arg-type]
        try:
            one, other = ({group_of(name) for name in names(part)} for part in parts)
        except hr.ArgumentError as error:
            assert "is in part" in str(error)
            continue
        assert not one & other
        assert len(one | other) == (25 if group == "the patient" else 4)
        return
    pytest.fail("no seed gave two parts")


def test_columns_of_a_labels_file_are_keys(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    table = tmp_path / "labels.csv"
    rows = [f"{p.relative_to(folder)},{i % 7},{i % 31}" for i, p in enumerate(sorted(folder.rglob("*.bin")))]
    table.write_text("\n".join(["path,label,patient", *rows]) + "\n")
    parts = hr.split(source(folder, labels=str(table)), [0.6, 0.4], by="patient")
    seen: list[set[int]] = []
    for part in parts:
        seen.append({int(v) for batch in part.batch(16).loader(output="numpy") for v in batch.patient})
    assert not seen[0] & seen[1] and seen[0] | seen[1] == set(range(31))
    # A patient whose id is no number makes all of them texts, and the others stay where they are.
    (folder / "a/new.bin").write_bytes(b"a/new.bin")
    table.write_text("\n".join(["path,label,patient", *rows, "a/new.bin,0,x1"]) + "\n")
    again = hr.split(source(folder, labels=str(table)), [0.6, 0.4], by="patient")
    for part, patients in zip(again, seen, strict=True):
        texts = {v for batch in part.batch(16).loader(output="numpy") for v in batch.patient}
        assert texts - {"x1"} == {str(v) for v in patients}


def test_classes_keep_their_part_when_others_are_added(folder: pathlib.Path) -> None:
    """Their numbers change."""
    seed = next(s for s in range(100) if _both(folder, s))
    before = [
        {n[0] for n in names(p)} for p in hr.split(source(folder, labels="folder"), [0.5, 0.5], seed=seed, by="label")
    ]
    fill(folder, ["A/1.bin", "bb/2.bin"])
    after = [
        {n.split("/")[0] for n in names(p)}
        for p in hr.split(source(folder, labels="folder"), [0.5, 0.5], seed=seed, by="label")
    ]
    assert all(old <= new for old, new in zip(before, after, strict=True))


def _both(folder: pathlib.Path, seed: int) -> bool:
    try:
        return all(p.record_count for p in hr.split(source(folder, labels="folder"), [0.5, 0.5], seed=seed, by="label"))
    except hr.ArgumentError:
        return False


def test_lines_and_numbers_have_keys(tmp_path: pathlib.Path) -> None:
    text = tmp_path / "words.txt"
    text.write_text("".join(f"{i % 50}\n" for i in range(500)))
    one, other = (
        Counter(line for batch in part.batch(9).loader(output="numpy") for line in batch.text)
        for part in hr.split(hr.lines(text), [0.5, 0.5], by="text")
    )
    assert not one.keys() & other.keys() and set((one + other).values()) == {10}
    parts = hr.split(hr.range(500), [0.5, 0.5], by="index")
    values = [sorted(int(v) for b in part.batch(9).loader(output="numpy") for v in b.value) for part in parts]
    longer = [
        sorted(int(v) for b in part.batch(9).loader(output="numpy") for v in b.value)
        for part in hr.split(hr.range(800), [0.5, 0.5], by="index")
    ]
    assert sorted(v for one in values for v in one) == list(range(500))
    assert [[v for v in one if v < 500] for one in longer] == values


def archives(folder: pathlib.Path, keys: Iterable[str], shards: int = 3) -> dict[str, int]:
    """{key: label} of records in tar archives, each with a picture that no decoder accepts."""
    made = {key: int(key[-2:]) % 4 for key in keys}
    folder.mkdir(exist_ok=True)
    for at in range(shards):
        with tarfile.open(folder / f"s-{at}.tar", "w") as archive:
            for key in list(made)[at::shards]:
                for ending, data in (("jpg", b"none"), ("cls", b" %d\n" % made[key]), ("txt", key[:3].encode())):
                    info = tarfile.TarInfo(f"{key}.{ending}")
                    info.size = len(data)
                    archive.addfile(info, io.BytesIO(data))
    return made


ARCHIVE = {"image": "jpg", "label": "cls", "text": "txt"}


def archived(folder: pathlib.Path) -> hr.Pipeline:
    return hr.tar(folder, fields=ARCHIVE, keys=True)


def keys_of(pipe: hr.Pipeline) -> list[str]:
    return [key for batch in pipe.batch(9).loader(output="numpy") for key in batch["key"]]


@pytest.mark.parametrize("shards", [1, 5, 300])
def test_records_of_archives_are_divided_by_their_names(
    tmp_path: pathlib.Path, rng: random.Random, shards: int
) -> None:
    seed = rng.randrange(2**40)
    made = archives(tmp_path / "d", (f"{'abc'[i % 3]}/p{i % 17:02}_{i:04}" for i in range(600)), shards)
    first = [set(keys_of(p)) for p in hr.split(archived(tmp_path / "d"), [0.7, 0.3], seed=seed)]
    assert sorted(first[0] | first[1]) == sorted(made) and not first[0] & first[1]
    assert 300 < len(first[0]) < 540
    assert [set(keys_of(p)) for p in hr.split(archived(tmp_path / "d"), [0.7, 0.3], seed=seed, by="key")] == first
    one, other = (
        {key[2:5] for key in keys_of(p)}
        for p in hr.split(archived(tmp_path / "d"), [0.5, 0.5], seed=seed, group="p[0-9]+")
    )
    assert not one & other and len(one | other) == 17
    more = archives(tmp_path / "d", [*made, *(f"new/x_{i:04}" for i in range(100))], shards)
    again = [set(keys_of(p)) for p in hr.split(archived(tmp_path / "d"), [0.7, 0.3], seed=seed)]
    assert len(again[0]) + len(again[1]) == len(more)
    assert all(before <= after for before, after in zip(first, again, strict=True))


@pytest.mark.parametrize("by", ["label", "text"])
def test_small_fields_of_archives_and_packed_records_are_keys(tmp_path: pathlib.Path, command: str, by: str) -> None:
    """They are read without the rest of the record, and nothing is decoded."""
    made = archives(tmp_path / "d", (f"{'abcdefghijklm'[i % 13]}{i % 10}/p_{i:04}" for i in range(260)))
    wanted = {key: label if by == "label" else key[:3] for key, label in made.items()}
    graph = tmp_path / "pack.yaml"
    archived(tmp_path / "d").save(graph)
    subprocess.run([command, "pack", graph, "-o", tmp_path / "packed", "-q"], check=True)
    divided = []
    for whole in (archived(tmp_path / "d"), hr.records(tmp_path / "packed")):
        seed = next(s for s in range(100) if _divides(whole, by, s))
        parts = [set(keys_of(p)) for p in hr.split(whole, [0.5, 0.5], by=by, seed=seed)]
        groups = [{wanted[key] for key in part} for part in parts]
        assert not groups[0] & groups[1] and parts[0] | parts[1] == set(made)
        divided.append(parts)
    assert divided[0] == divided[1]


def _divides(whole: hr.Pipeline, by: str, seed: int) -> bool:
    try:
        return all(p.record_count for p in hr.split(whole, [0.5, 0.5], by=by, seed=seed))
    except hr.ArgumentError:
        return False


def test_a_damaged_record_of_an_archive_is_in_one_part(tmp_path: pathlib.Path, rng: random.Random) -> None:
    made = archives(tmp_path / "d", (f"p_{i:04}" for i in range(100)), 1)
    file = tmp_path / "d/s-0.tar"
    data = bytearray(file.read_bytes())
    data[rng.randrange(1, 98) * 6 * 512 + 20] ^= 1  # in the first header of a record
    file.write_bytes(data)
    seen, bad = [], 0
    for part in hr.split(archived(tmp_path / "d"), [0.5, 0.5]):
        loader = part.batch(9).loader(output="numpy", on_error="skip")
        seen += [key for batch in loader for key in batch["key"]]
        bad += loader.stats()["errors"]
    assert bad >= 1 and len(set(seen)) == len(seen) >= 98 and set(seen) < set(made)


def test_what_is_not_known_before_reading_is_refused_with_what_is(tmp_path: pathlib.Path, command: str) -> None:
    archives(tmp_path / "d", [f"p_{i:02}" for i in range(20)])
    with pytest.raises(hr.ArgumentError, match=r'"image" is not known.*known are: label, text, key, path, index'):
        hr.split(archived(tmp_path / "d"), [0.5, 0.5], by="image")[0].fields  # noqa: B018
    graph, text = tmp_path / "pack.yaml", tmp_path / "text"
    text.write_text("a\nb\nc\n")
    hr.lines(text).save(graph)
    subprocess.run([command, "pack", graph, "-o", tmp_path / "t", "-q", "--format", "tfrecord"], check=True)
    with pytest.raises(hr.ArgumentError, match=r"known are: index .* 'headrace pack' has written all numbers"):
        hr.split(hr.tfrecord(tmp_path / "t"), [0.5, 0.5], by="label")[0].fields  # noqa: B018


@pytest.mark.parametrize(
    ("fractions", "words"),
    [
        ([0.8, 0.1], r"add one of 0\.1"),
        ([0.8, 0.3], r"add up to 1\.1"),
        ([1.0], "fractions"),
        ([1.2, -0.2], "fractions"),
    ],
)
def test_fractions_are_checked_at_the_call(fractions: list[float], words: str) -> None:
    """Nothing is opened for that: the folder does not exist."""
    with pytest.raises((hr.ArgumentError, hr.RangeError), match=words) as caught:
        hr.split(hr.files("/there/is/none"), fractions)
    assert (caught.value.op, caught.value.param) == ("order.split", "fractions")


def after_shuffle(p: hr.Pipeline) -> hr.Pipeline:
    return p.shuffle(seed=4)


def after_filter(p: hr.Pipeline) -> hr.Pipeline:
    return p.where("label != 2")


def after_batches(p: hr.Pipeline) -> hr.Pipeline:
    return p.shuffle().where("label != 2").batch(16)


def after_code(p: hr.Pipeline) -> hr.Pipeline:
    return p.map(bytes.upper, fields="data").repeat(1).filter(lambda data: True, fields="data")


def after_take(p: hr.Pipeline) -> hr.Pipeline:
    return p.take(300).skip(10)


@pytest.mark.parametrize("before", [after_shuffle, after_filter, after_batches, after_code, after_take])
def test_a_pipeline_that_does_more_is_divided_by_what_its_source_knows(
    folder: pathlib.Path, before: Callable[[hr.Pipeline], hr.Pipeline]
) -> None:
    def run(pipe: hr.Pipeline) -> list[str]:
        batches = pipe if before is after_batches else pipe.batch(16)
        return [d.decode().lower() for b in batches.loader(output="numpy", epochs=2) for d in b.data]

    whole = source(folder, labels="folder")
    parts = [run(part) for part in hr.split(before(whole), [0.6, 0.4], seed=8)]
    plain = [set(names(part)) for part in hr.split(whole, [0.6, 0.4], seed=8)]
    assert Counter(parts[0] + parts[1]) == Counter(run(before(whole)))
    assert all(set(part) <= all_of_it for part, all_of_it in zip(parts, plain, strict=True))


def test_zipped_records_stay_together(folder: pathlib.Path) -> None:
    """Their sources have different paths: one split of the pairs, not two of the sources."""
    pairs = hr.zip(source(folder), hr.range(400), prefix=["a_", "b_"])
    everything = {}
    for batch in pairs.batch(16).loader(output="numpy"):
        everything |= zip(batch.a_data, batch.b_value.tolist(), strict=True)
    seen = {}
    for part in hr.split(pairs, [0.5, 0.5]):
        for batch in part.shuffle().batch(16).loader(output="numpy"):
            seen |= zip(batch.a_data, batch.b_value.tolist(), strict=True)
    assert seen == everything
    halves = (hr.split(hr.range(20), [0.5, 0.5], seed=s, by="index")[0] for s in itertools.count())
    one, other = itertools.islice((half for half in halves if half.record_count == 10), 2)
    with pytest.raises(hr.GraphError, match=r"chooses other records .* hr\.split\(hr\.zip"):
        hr.zip(one, other, prefix=["a_", "b_"]).fields  # noqa: B018
    one, same = (hr.split(source(folder), [0.5, 0.5])[0] for _ in range(2))
    for batch in hr.zip(one, same, prefix=["a_", "b_"]).batch(9).loader(output="numpy"):
        assert batch.a_data == batch.b_data


def test_a_loop_over_a_part_resumes(folder: pathlib.Path, rng: random.Random) -> None:
    train, _ = hr.split(source(folder), [0.8, 0.2], seed=rng.randrange(2**40))
    pipe = train.shuffle().batch(7)

    def run(loader: hr.Loader) -> list[list[bytes]]:
        return [list(batch.data) for batch in loader]

    expected = run(pipe.loader(epochs=3, seed=5, output="numpy"))
    stop = rng.randrange(1, len(expected))
    loader = pipe.loader(epochs=3, seed=5, output="numpy")
    assert len(loader) == len(expected)
    done = []
    for batch in loader:
        done.append(list(batch.data))
        if len(done) == stop:
            state = loader.state_dict()
            break
    again = pipe.loader(epochs=3, seed=5, output="numpy")
    again.load_state_dict(state)
    assert done + run(again) == expected


def test_a_graph_file_says_the_same(folder: pathlib.Path, tmp_path: pathlib.Path, command: str) -> None:
    _, val = hr.split(source(folder), [0.8, 0.2], seed=11, group="^[^_]+")
    file = tmp_path / "val.yaml"
    file.write_text(
        "headrace: 1\npipeline:\n"
        f"  - source.files: {{path: '{folder}', suffixes: [], paths: true}}\n"
        "  - order.split: {fractions: [0.8, 0.2], part: 1, seed: 11, group: '^[^_]+'}\n"
    )
    assert hr.load(file) == val and hr.from_yaml(val.to_yaml()) == val
    train, _ = hr.split(source(folder), [0.8, 0.2], seed=11, group="^[^_]+")
    assert len({p.fingerprint for p in (train, val, source(folder))}) == 3
    text = subprocess.run([command, "explain", file], check=True, capture_output=True, text=True).stdout
    assert f"part 1 of 0 to 1: {val.record_count} of 400 records" in text
    ran = subprocess.run([command, "run", "--json", file], check=True, capture_output=True, text=True).stdout
    assert json.loads(ran)["records"] == val.record_count


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda p: hr.split(p, [0.8, 0.1]), r"add up to 0\.9, not 1: add one of 0\.1 for the records that are left"),
        (lambda p: hr.split(p, [0.8, 0.3]), r"add up to 1\.1, not 1"),
        (lambda p: hr.split(p, [1.0]), "fractions"),
        (lambda p: hr.split(p, [1.2, -0.2]), "fractions"),
        (lambda p: hr.split(p, 0.8), "fractions"),
        (lambda p: hr.split(p, [0.8, 0.2], seed=-1), "seed"),
        (lambda p: hr.split(p, [0.8, 0.2], by="lable"), r'did you mean "label"\? Known are: label, path, stem, index'),
        (lambda p: hr.split(p, [0.8, 0.2], group="(["), r'"\(\[" is no regular expression: '),
        (lambda p: hr.split(p, [0.8, 0.2], group="^z"), r'"\^z" matches nothing in the path "a/p'),
        (lambda p: hr.split(p, [0.8, 0.2], group="z" * 256), "at most 255 bytes"),
        (lambda p: hr.split(p, [0.8, 0.2], group=r"^a/p\d*"), r'has "\\d" at 5, which POSIX does not know: write'),
        (lambda p: hr.split(p, [0.8, 0.2], group=r"[[:alpha:]\d]+"), r'has "\\d" at 11'),
        (lambda p: hr.split(p, [0.8, 0.2], group="^.*?_"), r'has "\*\?" at 3, .* before the next _'),
        (lambda p: hr.split(p, [0.8, 0.2], group="(?:a|b)/"), r'has "\(\?" at 1'),
        (lambda p: hr.split(p.take(1), [0.5, 0.5]), "none of the 1 records is in part"),
        (
            lambda p: hr.split(p.shuffle().take(5), [0.5, 0.5]),
            "'order.take' selects records by their place after 'order.shuffle'",
        ),
        (lambda p: hr.split(hr.range(9), [0.5, 0.5]), r'"path" is not known; known are: index \(its number'),
        (lambda p: hr.split([1, 2], [0.5, 0.5]), "not a list"),
        (lambda p: (hr.ops.order_split(p.shuffle(), [0.5, 0.5], 0),), "put it before 'order.shuffle'"),
        (lambda p: (hr.ops.order_split(p.where("label > 0"), [0.5, 0.5], 0),), "put it before 'record.filter'"),
        (lambda p: (hr.ops.order_split(p, [0.5, 0.5], 2),), "part 2 of 2 parts: parts count from 0"),
    ],
)
def test_wrong_arguments_are_refused_with_what_works(
    folder: pathlib.Path, wrong: Callable[[hr.Pipeline], tuple[hr.Pipeline, ...]], words: str
) -> None:
    with pytest.raises((hr.ArgumentError, hr.GraphError, hr.RangeError, hr.LimitError), match=words) as caught:
        for part in wrong(source(folder, labels="folder")):
            part.fields  # noqa: B018
    assert caught.value.op in ("order.split", "order.take")


def test_the_key_is_what_steps_before_the_split_make(tmp_path: pathlib.Path, rng: random.Random) -> None:
    words = [f"w{rng.randrange(12)}" for _ in range(80)]
    rows = "".join(f"{rng.choice(['', ' '])}{rng.choice([w, w.upper()])},{w},{i}\n" for i, w in enumerate(words))
    (tmp_path / "t.csv").write_text("rough,clean,i\n" + rows)
    table, seed = hr.csv(tmp_path / "t.csv"), rng.randrange(2**40)

    def numbers(pipe: hr.Pipeline, by: str) -> list[list[int]]:
        parts = hr.split(pipe, [0.5, 0.5], by=by, seed=seed)
        return [[i for b in p.batch(16).loader(output="numpy", epochs=1) for i in b.i.tolist()] for p in parts]

    expected = numbers(table, "clean")
    clean = table.strip_text(field="rough").lower_text(field="rough")
    assert numbers(clean, "rough") == numbers(clean.rename({"rough": "key"}), "key") == expected
    assert numbers(table.rename({"rough": "clean", "clean": "rough"}), "rough") == expected
    assert numbers(table.map(lambda i: i, fields="i", outputs={"i": "int64"}), "clean") == expected


def test_a_key_that_changes_after_the_split_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "t.csv").write_text("city,n\n" + "".join(f"{'pP'[i % 2]}aris,{i}\n" for i in range(40)))
    table = hr.csv(tmp_path / "t.csv")
    shuffled = table.shuffle()
    for late in (shuffled.lower_text(field="city"), table.where("n > 3").map(str.lower, fields="city", name="mine")):
        with pytest.raises(hr.GraphError, match=r"changes \"city\" after '.*', and the split comes before") as caught:
            hr.split(late, [0.5, 0.5], by="city")
        assert caught.value.op in ("text.lower", "code.map")
    assert len(hr.split(table.lower_text(field="city").shuffle(), [0.999, 0.001], by="index")) == 2
    for kept in (
        shuffled.cast("float32", field="n"),
        shuffled.rename({"n": "m"}),
        shuffled.batch(2),
    ):
        assert len(hr.split(kept, [0.5, 0.5], by="n")) == 2


def test_a_key_that_needs_the_record_is_refused_by_name(folder: pathlib.Path) -> None:
    def refused(pipe: hr.Pipeline, by: str) -> str:
        with pytest.raises(hr.ArgumentError) as caught:
            hr.split(pipe, [0.5, 0.5], by=by)[0].fields  # noqa: B018
        assert caught.value.op == "order.split" and caught.value.param == "by"
        return str(caught.value)

    labels = source(folder, labels="folder")
    mapped = labels.map(lambda label: {"label": label}, fields="label", outputs={"label": "int64"}, name="mine")
    assert "\"label\" of 'mine' is made by 'mine' (code.map), which is your code" in refused(mapped, "label")
    assert "put 'order.split' before 'mine'" in refused(mapped, "label")
    cast = labels.cast("int32", field="label", name="small")
    assert "whose key is the name of a class: choose by it before it is changed" in refused(cast, "label")
    assert 'by "path" before it is changed, or by "stem"' in refused(labels.lower_text(field="path"), "path")
    assert len(hr.split(cast, [0.5, 0.5], by="path")) == 2


def test_a_wrong_key_is_named_with_its_line(folder: pathlib.Path, tmp_path: pathlib.Path, command: str) -> None:
    file = tmp_path / "g.yaml"
    file.write_text(
        "headrace: 1\npipeline:\n"
        f"  - source.files: {{path: '{folder}', suffixes: []}}\n"
        "  - order.split:\n      fractions: [0.5, 0.5]\n      part: 0\n      by: class\n"
    )
    done = subprocess.run([command, "run", file], capture_output=True, text=True)
    assert done.returncode == 2 and f"{file}:7:11: " in done.stderr and '"class" is not known' in done.stderr, done


def test_the_operator_is_known_by_its_name() -> None:
    assert "order.split" in {op["name"] for op in _headrace.op_list()}
    assert not hasattr(hr.Pipeline, "split")  # hr.split gives all parts
