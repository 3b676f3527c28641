"""batch.bucket: batches of records of similar length, against a model in Python."""

from __future__ import annotations

import bisect
import itertools
import json
import pathlib
import random
from typing import Any

import numpy as np
import pytest

import headrace as hr


def model(lengths: list[int], boundaries: list[int], sizes: list[int], elements: int, multiple: int) -> list[list[int]]:
    """The numbers of the records of each batch; with `elements` sizes do not count."""
    held: list[list[int]] = [[] for _ in range(len(boundaries) + 1)]
    batches = []

    def padded(records: list[int]) -> int:
        longest = max(lengths[i] for i in records)
        return max(1, -(-longest // multiple) * multiple)

    for i, length in enumerate(lengths):
        at = bisect.bisect_right(boundaries, length)
        if elements and held[at] and (len(held[at]) + 1) * padded([*held[at], i]) > elements:
            batches.append(held[at])
            held[at] = []
        held[at].append(i)
        full = (len(held[at]) + 1) * padded(held[at]) > elements if elements else len(held[at]) == sizes[at]
        if full:
            batches.append(held[at])
            held[at] = []
    return batches + [records for records in held if records]


def lists(lengths: list[int]) -> hr.Pipeline:
    """Records {ids: n times their number, i: their number}."""
    return hr.from_columns({"i": np.arange(len(lengths)), "n": np.array(lengths)}).map(
        made, fields=["i", "n"], outputs=OUTPUTS
    )


def made(i: int, n: int) -> tuple[int, int, Any]:
    return i, n, np.full(int(n), i, np.int32)


OUTPUTS = {"i": "int64", "n": "int64", "ids": hr.spec("int32", (None,))}


def numbers(pipe: hr.Pipeline, **options: Any) -> list[list[int]]:
    return [batch.i.tolist() for batch in pipe.loader(output="numpy", **options)]


def records(pipe: hr.Pipeline, **options: Any) -> list[int]:
    return sorted(i for batch in numbers(pipe, **options) for i in batch)


def test_batches_are_those_of_a_model(rng: random.Random) -> None:
    lengths = [rng.randrange(50) for _ in range(300)]
    for _ in range(8):
        boundaries = sorted(rng.sample(range(1, 60), rng.randint(1, 5)))
        sizes = [rng.randint(1, 9) for _ in range(len(boundaries) + 1)]
        multiple = rng.choice([1, 8])
        elements = rng.choice([0, rng.randint(56, 400)])
        given: dict[str, Any] = {"elements": elements} if elements else {"size": sizes}
        by = rng.choice([{"by": "ids"}, {"by": "n"}, {}])
        pipe = lists(lengths).bucketed_batch(boundaries, multiple=multiple, value=-1, lengths="ids", **given, **by)
        want = model(lengths, boundaries, sizes, elements, multiple)
        for threads in (0, 3):
            assert numbers(pipe, threads=threads) == want
        for batch in pipe.loader(output="numpy"):
            longest = max(lengths[i] for i in batch.i)
            assert batch.ids.shape[1] == -(-longest // multiple) * multiple
            assert batch.ids_length.tolist() == [lengths[i] for i in batch.i]
            assert ((batch.ids >= 0).sum(1) == batch.ids_length).all()


def test_a_loader_resumes_after_any_batch(rng: random.Random) -> None:
    lengths = [rng.randrange(40) for _ in range(120)]
    pipe = lists(lengths).shuffle().bucketed_batch([10, 20, 30], [6, 5, 4, 3])
    whole = numbers(pipe, seed=3, epochs=2)
    loader = pipe.loader(seed=3, epochs=2, output="numpy")
    states = []
    for _ in loader:
        states.append(loader.state_dict())
    for at in rng.sample(range(len(states)), 6):
        again = pipe.loader(seed=3, epochs=2, output="numpy", threads=rng.choice([0, 2]))
        again.load_state_dict(states[at])
        assert [batch.i.tolist() for batch in again] == whole[at + 1 :]


def test_ranks_share_the_records(rng: random.Random) -> None:
    lengths = [rng.randrange(40) for _ in range(101)]
    pipe = lists(lengths).shuffle().bucketed_batch([10, 20], 4)
    seen: list[int] = []
    for rank in range(3):
        seen += records(pipe, shard=(rank, 3), even="none")
    assert sorted(seen) == list(range(101))
    with pytest.raises(hr.UnsupportedError, match="known only after"):
        pipe.loader(shard=(0, 3), even="drop")
    with pytest.raises(TypeError):
        len(pipe.loader())


def rounds(
    lengths: list[int], boundaries: list[int], sizes: list[int], elements: int, world: int, even: str, drop_last: bool
) -> list[list[list[int]]]:
    """With coordinated: the batches of each rank."""
    held: list[list[int]] = [[] for _ in range(len(boundaries) + 1)]
    ranks: list[list[list[int]]] = [[] for _ in range(world)]

    def is_over(records: list[int], at: int) -> bool:
        """Whether a rank has more records than a batch may have."""
        most = elements // max(1, *(lengths[i] for i in records)) if elements else sizes[at]
        return -(-len(records) // world) > most

    def deal(records: list[int]) -> None:
        for rank in range(world):
            share = records[rank::world]
            if not share and even == "repeat":
                share = records[-1:]
            if share:
                ranks[rank].append(share)

    for i, length in enumerate(lengths):
        at = bisect.bisect_right(boundaries, length)
        if held[at] and is_over([*held[at], i], at):
            deal(held[at])
            held[at] = []
        held[at].append(i)
        shortest = min(held[at], key=lambda i: lengths[i])
        if is_over([*held[at], shortest], at):
            deal(held[at])
            held[at] = []
    for records in sorted(held, key=lambda records: -min(len(records), world)):
        if records and not drop_last and (even != "drop" or len(records) >= world):
            deal(records)
    return ranks


def test_coordinated_ranks_get_the_same_bucket_in_each_step(rng: random.Random) -> None:
    for _ in range(12):
        lengths = [rng.randrange(50) for _ in range(rng.randrange(200))]
        boundaries = sorted(rng.sample(range(1, 60), rng.randint(1, 5)))
        sizes = [rng.randint(1, 5) for _ in range(len(boundaries) + 1)]
        elements = rng.choice([0, rng.randint(56, 200)])
        drop_last = rng.random() < 0.3
        given: dict[str, Any] = {"elements": elements} if elements else {"size": sizes}
        world = rng.randint(2, 5)
        even: Any = rng.choice(["none", "drop", "repeat"])
        pipe = lists(lengths).bucketed_batch(boundaries, by="n", coordinated=True, drop_last=drop_last, **given)
        want = rounds(lengths, boundaries, sizes, elements, world, even, drop_last)
        got = [numbers(pipe, shard=(rank, world), even=even, threads=rng.choice([0, 2])) for rank in range(world)]
        assert got == want
        for step in itertools.zip_longest(*got):
            assert len({bisect.bisect_right(boundaries, lengths[i]) for batch in step if batch for i in batch}) == 1
        if even != "none":
            assert len(set(map(len, got))) == 1
        if even != "drop" and not drop_last:
            assert {i for rank in got for batch in rank for i in batch} == set(range(len(lengths)))
        assert numbers(pipe) == numbers(lists(lengths).bucketed_batch(boundaries, by="n", drop_last=drop_last, **given))


def test_coordinated_ranks_make_equal_steps_without_asking_each_other() -> None:
    lengths = [length for length in range(40) for _ in range(5)]
    pipe = lists(lengths).shuffle().bucketed_batch([10, 20, 30], 3, by="n", coordinated=True)
    loaders = [pipe.loader(shard=(rank, 4), output="numpy", seed=1) for rank in range(4)]
    steps = [[batch.i.tolist() for batch in loader] for loader in loaders]
    assert [loader.even for loader in loaders] == ["repeat"] * 4
    assert len({len(batches) for batches in steps}) == 1
    assert {i for batches in steps for batch in batches for i in batch} == set(range(200))


@pytest.mark.parametrize("even", ["none", "drop", "repeat"])
def test_a_coordinated_rank_resumes_after_any_batch(rng: random.Random, even: Any) -> None:
    lengths = [rng.randrange(40) for _ in range(150)]
    pipe = lists(lengths).shuffle().bucketed_batch([10, 20, 30], [4, 3, 2, 1], by="n", coordinated=True)
    for rank in range(3):
        options: dict[str, Any] = {"seed": 3, "epochs": 2, "shard": (rank, 3), "even": even}
        whole = numbers(pipe, **options)
        loader = pipe.loader(output="numpy", **options)
        states = []
        for _ in loader:
            states.append(loader.state_dict())
        for at in rng.sample(range(len(states)), 5):
            again = pipe.loader(output="numpy", threads=rng.choice([0, 2]), **options)
            again.load_state_dict(states[at])
            assert [batch.i.tolist() for batch in again] == whole[at + 1 :]
        other = pipe.loader(output="numpy", **options | {"shard": ((rank + 1) % 3, 3)})
        with pytest.raises(hr.StateError, match=f"belongs to rank {rank} of 3.*bucketed_batch"):
            other.load_state_dict(states[2])
            next(iter(other))


def test_what_would_mix_the_rounds_of_ranks_is_refused() -> None:
    pipe = lists([3] * 20).bucketed_batch([5], 2, by="n", coordinated=True)
    with pytest.raises(hr.GraphError, match="would divide what 'batch.bucket' gives each rank: leave it out"):
        numbers(pipe.shard(0, 2))
    with pytest.raises(hr.GraphError, match="splits these over ranks"):
        numbers(lists([3] * 20).shard(0, 2).bucketed_batch([5], 2, by="n", coordinated=True))
    with pytest.raises(hr.GraphError, match="leave out `coordinated` there"):
        numbers(pipe.unbatch().bucketed_batch([5], 2, by="n", coordinated=True))
    with pytest.raises(hr.UnsupportedError, match="cannot be padded"):
        pipe.loader(shard=(0, 2), eval=True)
    assert len(numbers(pipe.unbatch().bucketed_batch([5], 2, by="n"), shard=(0, 2), even="none")) == 5


def test_shapes_are_those_of_boundaries(rng: random.Random) -> None:
    lengths = [rng.randrange(60) for _ in range(200)]
    pipe = lists(lengths).bucketed_batch([17, 33], elements=128, pad_to="boundary", too_long="drop")
    shapes = {batch.ids.shape for batch in pipe.loader(output="numpy")}
    assert {(8, 16), (4, 32)} <= shapes and {length for _, length in shapes} == {16, 32}
    assert records(pipe) == [i for i, length in enumerate(lengths) if length < 33]


def test_the_dimension_may_be_named(pictures: pathlib.Path) -> None:
    images = hr.files(pictures).decode()
    pipe = images.bucketed_batch([12], 4, dim=1, lengths="image")
    for batch in pipe.loader(output="numpy"):
        assert len({bool(width >= 12) for _, width in batch.image_length}) == 1
    with pytest.raises(hr.HeadraceError, match=r"2 dimensions of field \"image\" vary \(height, width\)"):
        images.bucketed_batch([12], 4).fields  # noqa: B018


def test_bytes_are_bucketed_by_their_number(rng: random.Random) -> None:
    texts = ["x" * rng.randrange(30) for _ in range(50)]
    pipe = hr.from_dataset([{"text": text} for text in texts]).bucketed_batch([10, 20], 3, by="text")
    seen = []
    for batch in pipe.loader(output="numpy"):
        assert len({bisect.bisect_right([10, 20], len(text)) for text in batch.text}) == 1
        seen += batch.text
    assert sorted(seen) == sorted(texts)


def fields(pipe: hr.Pipeline) -> list[str]:
    return [field.text() for field in pipe.fields]


def test_the_size_of_batches_is_known_where_it_is_one() -> None:
    some = lists([3, 4, 5])
    assert fields(some.bucketed_batch([4], 2, drop_last=True)) == ["int64[2]", "int64[2]", "int32[2, -1]"]
    assert fields(some.bucketed_batch([4], 2))[0] == "int64[batch]"
    assert fields(some.bucketed_batch([4], [2, 3], drop_last=True))[0] == "int64[batch]"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"boundaries": [3, 3], "size": 2}, "must ascend: 3 follows 3"),
        ({"boundaries": [3], "size": [1, 2, 3]}, "1 boundaries make 2 buckets"),
        ({"boundaries": [3]}, "either `size` or `elements`"),
        ({"boundaries": [3], "size": 1, "elements": 1}, "not both"),
        ({"boundaries": [3], "size": 1, "by": "other"}, 'no field "other"'),
        ({"boundaries": [3], "size": 1, "by": "ids", "dim": 1}, "has 1 dimension"),
    ],
)
def test_wrong_arguments_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(hr.HeadraceError, match=words) as caught:
        lists([1, 2]).bucketed_batch(**given).fields  # noqa: B018
    assert caught.value.op == "batch.bucket"


def test_a_field_must_vary() -> None:
    with pytest.raises(hr.HeadraceError, match="no field has a size that varies"):
        hr.range(5).bucketed_batch([2], 2).fields  # noqa: B018
    two = hr.range(5).map(lambda v: {"a": np.ones(int(v)), "b": np.ones(int(v))})
    with pytest.raises(hr.HeadraceError, match=r"several fields have sizes that vary \(a, b\)"):
        two.bucketed_batch([2], 2).fields  # noqa: B018
    with pytest.raises(hr.HeadraceError, match="a length is an integer"):
        hr.range(5).cast("float32", field="value").bucketed_batch([2], 2, by="value").fields  # noqa: B018


@pytest.mark.parametrize("given", [{"elements": 20}, {"size": 2, "pad_to": "boundary"}])
def test_a_record_that_is_too_long_is_named(given: dict[str, Any]) -> None:
    pipe = lists([1, 2, 50, 3]).bucketed_batch([5], **given)
    with pytest.raises(hr.ShapeError, match=r'the length by field "ids" is 50.*\(record 2\)') as caught:
        list(pipe.loader())
    assert caught.value.record == 2 and caught.value.op == "batch.bucket"
    dropped = lists([1, 2, 50, 3]).bucketed_batch([5], too_long="drop", **given)
    assert records(dropped) == [0, 1, 3]


def test_another_field_that_is_too_long_for_its_boundary_is_named() -> None:
    pipe = hr.range(3).map(lambda v: {"n": int(v), "a": np.ones(3 * int(v) + 1)})
    with pytest.raises(hr.ShapeError, match=r'field "a" has size 7 in dimension 0.*4.*\(record 2\)'):
        list(pipe.bucketed_batch([5], 2, by="n", pad_to="boundary").loader())


def test_a_resumed_run_makes_only_the_records_that_were_held(rng: random.Random) -> None:
    lengths = [rng.randrange(1, 40) for _ in range(3000)]
    called: list[int] = []

    def count(value: int) -> int:
        called.append(value)
        return value

    for share in ({}, {"shard": (1, 3), "even": "none"}):
        pipe = (
            hr.range(3000)
            .shuffle()
            .where("value % 5 != 1")
            .map(count)
            .map(lambda v: (v, np.full(lengths[int(v)], v)), outputs={"i": "int64", "ids": hr.spec("int64", (None,))})
            .bucketed_batch([10, 20, 30, 39], 8)
        )
        whole = numbers(pipe, threads=0, **share)
        loader = pipe.loader(threads=0, output="numpy", **share)
        running, at = iter(loader), 4 * len(whole) // 5
        for _ in range(at):
            next(running)
        state = loader.state_dict()
        loader.close()
        for threads in (0, 2):
            again = pipe.loader(threads=threads, output="numpy", **share)
            again.load_state_dict(state)
            called.clear()
            rest = [batch.i.tolist() for batch in again]
            assert rest == whole[at:]
            # The rest, at most 16 batches before it, and what was held.
            most = sum(map(len, rest)) + 16 * 8 + 5 * 7
            assert sum(map(len, rest)) <= len(called) <= most


def test_readers_that_go_forward_resume(rng: random.Random) -> None:
    lengths = [rng.randrange(1, 40) for _ in range(500)]

    def items() -> Any:
        for i, n in enumerate(lengths):
            yield {"i": i, "ids": np.full(n, i)}

    def pipeline() -> hr.Pipeline:
        return hr.from_generator(items).bucketed_batch([10, 20], 5)

    whole = numbers(pipeline(), epochs=1)
    loader = pipeline().loader(epochs=1, output="numpy")
    running = iter(loader)
    for _ in range(60):
        next(running)
    again = pipeline().loader(epochs=1, output="numpy")
    again.load_state_dict(loader.state_dict())
    assert [batch.i.tolist() for batch in again] == whole[60:]


@pytest.mark.parametrize("on_error", ["skip", "substitute"])
def test_bad_records_are_listed_once_if_a_run_resumes(
    tmp_path: pathlib.Path, rng: random.Random, on_error: Any
) -> None:
    pipe = hr.range(800).shuffle().op("debug.fail", probability=0.2).bucketed_batch([200, 500], 5, by="value")

    def batches(ledger: pathlib.Path, at: int) -> list[list[int]]:
        """Interrupted after `at` batches and again 20 batches later."""
        seen: list[list[int]] = []
        state: Any = None
        for stop in (at, at + 20, 1 << 30):
            loader = pipe.loader(output="numpy", on_error=on_error, errors_max=800, ledger=ledger)
            if state is not None:
                loader.load_state_dict(state)
            for batch in loader:
                seen.append(batch.value.tolist())
                state = loader.state_dict()
                if len(seen) == stop:
                    break
            loader.close()
        return seen

    whole = batches(tmp_path / "whole", 1 << 20)
    for at in rng.sample(range(20, len(whole) - 30), 4):
        assert batches(tmp_path / str(at), at) == whole
        assert (tmp_path / str(at)).read_text() == (tmp_path / "whole").read_text()


@pytest.mark.parametrize(
    "state", ["x", "5", " 5 ", "5  6 ", "99999 ", "-1 ", "3 3 ", "18446744073709551617 ", "1 2 3 4 5 6 7 8 9 10 11 12 "]
)
def test_a_damaged_state_is_refused_or_resumed(state: str) -> None:
    pipe = hr.range(400).shuffle().bucketed_batch([100, 250], 4, by="value")
    loader = pipe.loader(output="numpy")
    running = iter(loader)
    for _ in range(40):
        next(running)
    saved = loader.state_dict()
    text = json.loads(saved["engine"])
    assert text["nodes"][0]["node"] == "batch.bucket" and text["nodes"][0]["state"]
    text["nodes"][0]["state"] = state
    saved["engine"] = json.dumps(text)
    again = pipe.loader(output="numpy")
    try:
        again.load_state_dict(saved)
        list(again)
        assert state.startswith("1 2 3")  # records that the run can make
    except hr.HeadraceError as error:
        assert "damaged" in str(error)
