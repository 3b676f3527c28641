"""Ranks that share an epoch: equal steps, and the rest of an epoch done by other ranks."""

from __future__ import annotations

import importlib.util
import pathlib
import random
from typing import Any

import pytest

import headrace as hr
from conftest import run_ranks


def take(loader: hr.Loader, steps: int | None) -> list[int]:
    """The values of the first `steps` batches; of all if None."""
    got: list[int] = []
    for number, batch in enumerate(loader if steps != 0 else [], 1):
        got += batch.value.tolist()
        if number == steps:
            break
    return got


def ranks(pipe: hr.Pipeline, world: int | None, **options: Any) -> list[hr.Loader]:
    """Loaders of all ranks; None: one that names no rank."""
    if world is None:
        return [pipe.loader(threads=0, output="numpy", **options)]
    options = {"even": "none", **options}
    return [pipe.loader(shard=(r, world), threads=0, output="numpy", **options) for r in range(world)]


@pytest.mark.parametrize("even", ["none", "drop", "repeat"])
@pytest.mark.parametrize("n", [1, 3, 23, 25])
def test_len_is_the_number_of_steps(even: Any, n: int) -> None:
    for world in (1, 2, 3):
        for drop_last in (False, True):
            loaders = ranks(hr.range(n).shuffle().batch(4, drop_last=drop_last), world, even=even, epochs=2)
            steps = [len(list(one)) for one in loaders]
            assert steps == [len(one) for one in loaders]
            assert even == "none" or len(set(steps)) == 1


@pytest.mark.parametrize("even", ["none", "drop", "repeat"])
@pytest.mark.parametrize("first", [None, 1, 2, 3, 8])
@pytest.mark.parametrize("then", [None, 1, 2, 4])
def test_other_ranks_do_the_rest(even: Any, first: int | None, then: int | None) -> None:
    """Whatever rank's state is kept; in epochs smaller than the ranks, too."""
    chance = random.Random(f"{even} {first} {then}")
    for n in (1, 3, 7, 97):
        for batch in (1, 4):
            pipe = hr.range(n).shuffle().batch(batch)
            before = ranks(pipe, first, even=even)
            fewest = min(len(one) for one in before)
            steps = chance.randint(0, fewest)
            seen = [take(one, steps) for one in before]
            assert even == "none" or len({len(one) for one in seen}) == 1
            state = chance.choice(before).state_dict()
            ended = steps == max(len(one) for one in before)
            after = ranks(pipe, then, even=even)
            for one in after:
                one.load_state_dict(state)
            rest = [take(one, None) for one in after]
            assert even == "none" or len({len(one) for one in rest}) == 1
            everything = [x for one in seen + rest for x in one]
            over = max(first or 1, then or 1) - 1
            assert n - len(set(everything)) <= (over if even == "drop" else 0), (n, batch, steps)
            if even != "repeat":
                assert len(everything) == len(set(everything)), (n, batch, steps)
            elif not ended:
                assert len(everything) - n < (then or 1), (n, batch, steps)


def test_the_choice_of_even_is_no_part_of_a_state() -> None:
    pipe = hr.range(50).shuffle().batch(4)
    loader = pipe.loader(shard=(0, 2), even="repeat", output="numpy")
    head = take(loader, 3)
    again = pipe.loader(shard=(0, 2), even="drop", output="numpy")
    again.load_state_dict(loader.state_dict())
    assert head + take(again, None) == take(pipe.loader(shard=(0, 2), output="numpy"), None)


def test_pipelines_of_several_sources_have_even_shares() -> None:
    pipe = hr.zip(hr.range(10), hr.range(10), prefix=["a_", "b_"]).shuffle().batch(4)
    counts = [sum(b.records for b in one) for one in ranks(pipe, 4, even="drop")]
    assert counts == [2, 2, 2, 2]


def test_a_substitute_for_the_last_record_comes_from_the_epoch() -> None:
    def picky(x: int) -> int:
        if x == 9:
            raise ValueError(x)
        return x

    pipe = hr.range(10).map(picky, outputs={"value": "int64"}).batch(2)
    got = [take(one, None) for one in ranks(pipe, 2, on_error="substitute")]
    assert got[0] == [0, 2, 4, 6, 8] and got[1][:4] == [1, 3, 5, 7] and 0 <= got[1][4] < 9


def test_repeated_epochs_go_on_with_other_ranks() -> None:
    pipe = hr.range(20).repeat(3).batch(4)
    before = ranks(pipe, 2)
    seen = [x for one in before for x in take(one, 6)]
    after = ranks(pipe, 3)
    for one in after:
        one.load_state_dict(before[0].state_dict())
        seen += take(one, None)
    assert sorted(seen) == sorted([*range(20)] * 3)


# ---- refusals ----


@pytest.mark.parametrize("even", ["drop", "repeat"])
def test_even_shares_of_what_is_not_counted_are_refused(even: Any) -> None:
    pipe = hr.range(20).where("value % 3 != 0").batch(4)
    with pytest.raises(hr.UnsupportedError, match="even='steps'"):
        pipe.loader(shard=(0, 2), even=even)
    assert len(take(pipe.loader(shard=(0, 1), even=even, output="numpy"), None)) == 13


def test_equal_steps_want_torch_distributed() -> None:
    pytest.importorskip("torch")
    with pytest.raises(hr.ArgumentError, match="init_process_group"):
        hr.range(20).batch(4).loader(shard=(0, 2), even="steps")
    assert len(list(hr.range(20).batch(4).loader(shard=(0, 1), even="steps"))) == 5


def test_a_pipeline_that_shards_takes_no_even() -> None:
    pipe = hr.range(20).shard(0, 2).batch(4)
    with pytest.raises(hr.ArgumentError, match="shards already"):
        pipe.loader(even="drop")
    with pytest.raises(hr.ArgumentError, match="shards already"):
        pipe.loader(shard=(0, 2))


def test_where_ranks_stand_apart_a_state_says_whose_it_is() -> None:
    pipe = hr.range(40).where("value % 3 != 0").batch(4)
    one, other = ranks(pipe, 2)
    head = take(one, 2)
    with pytest.raises(hr.StateMismatchError, match=r"rank 0 of 2, this is rank 1 of 2"):
        other.load_state_dict(one.state_dict())
    again = ranks(pipe, 2)[0]
    again.load_state_dict(one.state_dict())
    assert head + take(again, None) == take(ranks(pipe, 2)[0], None)


# ---- for real ----

TRAIN = """
import sys, torch, torch.distributed as dist
import headrace as hr
torch.set_num_threads(1)
rank, world = int(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("gloo", init_method="file://" + sys.argv[3], rank=rank, world_size=world)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))

def train(loader, steps=None):
    seen = []
    for batch in loader:
        model(batch.value.float()[:, None]).sum().backward()  # waits for all ranks
        seen.append((batch.epoch, batch.value.tolist()))
        if len(seen) == steps:
            break
    return seen

def all_ranks(thing):
    things = [None] * world
    dist.all_gather_object(things, thing)
    return things

pipes = [
    hr.range(101).shuffle().where("value % 3 != 0 or value < 30").batch(4),
    hr.range(26).shuffle().batch(4),
    hr.range(60).where("value % 2 == 0").batch(4),  # with two ranks, one has none
    hr.range(101).shuffle().window(3).flat("value").batch(4),
]
for pipe in pipes:
    make = lambda: pipe.loader(even="steps", epochs=3, seed=2, threads=1, output="torch")
    whole = train(make())
    loader = make()
    assert (loader.rank, loader.world) == (rank, world)
    head = train(loader, 5)
    again = make()
    again.load_state_dict(loader.state_dict())
    assert head + train(again) == whole
    shares = all_ranks(whole)
    for epoch in range(3):
        assert len({sum(e == epoch for e, _ in share) for share in shares}) == 1
        values = [x for share in shares for e, xs in share if e == epoch for x in xs]
        assert len(values) == len(set(values))
for even, records in [("drop", 24 if world == 3 else 26), ("repeat", 27 if world == 3 else 26), ("steps", None)]:
    shares = all_ranks(train(pipes[1].loader(even=even, threads=1, output="torch")))
    assert len({len(share) for share in shares}) == 1
    assert records is None or sum(len(xs) for share in shares for _, xs in share) == records
dist.barrier()
dist.destroy_process_group()
print("equal steps")
"""


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("world", [2, 3])
def test_ranks_of_torch_make_equal_steps(world: int, tmp_path: pathlib.Path) -> None:
    """DistributedDataParallel waits for all ranks in each step: were one to run dry, this would hang."""
    for out, err in run_ranks(tmp_path, TRAIN, world):
        assert "equal steps" in out, err
