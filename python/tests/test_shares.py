"""Which share of the records a loader takes: equal steps unasked, validation data whole, and said once."""

from __future__ import annotations

import importlib.util
import logging
import pathlib
import random
import secrets
import sys
from typing import Any

import numpy as np
import pytest

import headrace as hr
from conftest import run_ranks


def rank_of(monkeypatch: pytest.MonkeyPatch, rank: int, world: int) -> None:
    monkeypatch.setenv("RANK", str(rank))
    monkeypatch.setenv("WORLD_SIZE", str(world))


def test_ranks_of_the_environment_make_equal_steps_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """97 records, batch 16, two ranks: lengths were 4 and 3."""
    seen = []
    for rank in range(2):
        rank_of(monkeypatch, rank, 2)
        loader = hr.range(97).shuffle().batch(16).loader(output="numpy")
        got = list(loader)
        assert (loader.rank, loader.world, loader.even) == (rank, 2, "repeat")
        assert len(loader) == len(got) == 4
        seen += [x for batch in got for x in batch.value.tolist()]
    assert set(seen) == set(range(97)) and len(seen) == 98


def test_shard_none_takes_all_records_and_a_pair_those_of_the_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    rank_of(monkeypatch, 1, 2)
    pipe = hr.range(10).batch(10)
    (everything,) = pipe.loader(shard=None, output="numpy")
    assert everything.value.tolist() == list(range(10))
    (third,) = pipe.loader(shard=(2, 3), output="numpy", even="none")
    assert third.value.tolist() == [2, 5, 8]
    (own,) = pipe.loader(shard="auto", output="numpy")
    assert own.value.tolist() == [1, 3, 5, 7, 9]


def test_a_loader_says_once_which_share_it_took_and_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "headrace")
    hr.range(97).batch(16).loader()
    assert not caplog.messages
    rank_of(monkeypatch, 1, 2)
    loader = hr.range(97).batch(16).loader(epochs=3, output="numpy")
    list(loader)
    list(loader)
    (said,) = caplog.messages
    assert said == (
        "loader: rank 1 of 2 (from RANK and WORLD_SIZE) takes 49 of 97 records per epoch, in 4 steps (even='repeat')"
    )
    caplog.clear()
    hr.range(9).where("value % 3 == 0").loader(shard=(0, 2), even="none")
    assert "(from shard=) takes its records per epoch, in steps" in caplog.text and "even='none'" in caplog.text


def test_wrong_ranks_of_the_environment_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rank_of(monkeypatch, 2, 2)
    with pytest.raises(hr.ArgumentError, match="RANK=2 and WORLD_SIZE=2"):
        hr.range(9).batch(3).loader()
    monkeypatch.setenv("RANK", "${INDEX}")
    with pytest.raises(hr.ArgumentError, match=r"RANK=\$\{INDEX\} and WORLD_SIZE=2; correct it"):
        hr.range(9).batch(3).loader()
    monkeypatch.delenv("RANK")
    with pytest.raises(hr.ArgumentError, match="WORLD_SIZE=2 and no RANK"):
        hr.range(9).batch(3).loader()
    assert len(hr.range(9).batch(3).loader(shard=None)) == 3
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert len(hr.range(9).batch(3).loader()) == 3


@pytest.mark.parametrize("installed", [True, False])
def test_ranks_that_cannot_agree_on_equal_steps_are_refused(monkeypatch: pytest.MonkeyPatch, installed: bool) -> None:
    rank_of(monkeypatch, 0, 2)
    if installed:
        pytest.importorskip("torch")
    else:
        monkeypatch.setitem(sys.modules, "torch", None)
    pipe = hr.range(97).where("value % 3 == 0").batch(16)
    with pytest.raises(hr.ArgumentError, match=r"init_process_group\(\) first, or accept .* even='none'"):
        pipe.loader()
    assert list(pipe.loader(even="none", output="numpy"))


# ---- validation ----


@pytest.mark.parametrize("records", [1, 5, 96, 97])
@pytest.mark.parametrize("world", [1, 2, 3, 7])
def test_validation_covers_everything_once_and_marks_its_padding(records: int, world: int) -> None:
    seed = secrets.randbits(40)
    pipe = hr.range(records).shuffle().batch(16)
    seen, padding, steps = [], 0, set()
    for rank in range(world):
        loader = pipe.loader(eval=True, shard=(rank, world), seed=seed, output="numpy")
        got = list(loader)
        steps |= {len(got), len(loader)}
        for batch in got:
            assert batch.valid.dtype == np.bool_ and batch.valid.shape == batch.value.shape
            seen += batch.value[batch.valid].tolist()
            padding += int((~batch.valid).sum())
    assert sorted(seen) == list(range(records)) and len(steps) == 1, seed
    assert padding == -records % world


def test_validation_resumes_with_other_ranks() -> None:
    chance = random.Random(secrets.randbits(40))
    for _ in range(30):
        records, first, then = chance.randint(1, 120), chance.randint(1, 4), chance.randint(1, 4)
        pipe = hr.range(records).batch(chance.choice([1, 4, 16]))
        before = [pipe.loader(eval=True, shard=(r, first), output="numpy", threads=0) for r in range(first)]
        stop = chance.randint(0, len(before[0]) - 1)
        seen: list[int] = []
        for loader in before:
            for _, batch in zip(range(stop), loader, strict=False):
                seen += batch.value[batch.valid].tolist()
        state = chance.choice(before).state_dict()
        for rank in range(then):
            rest = pipe.loader(eval=True, shard=(rank, then), output="numpy", threads=0)
            rest.load_state_dict(state)
            for batch in rest:
                seen += batch.value[batch.valid].tolist()
        assert sorted(seen) == list(range(records)), (records, first, then, stop)


@pytest.mark.parametrize("output", ["numpy", "torch", "headrace"])
def test_the_mask_is_a_field_like_any_other(output: Any) -> None:
    pytest.importorskip("torch" if output == "torch" else "numpy")
    (batch,) = hr.range(3).batch(4).loader(eval=True, shard=(3, 4), output=output)
    assert set(batch) == {"value", "valid"} and np.asarray(batch.valid).tolist() == [False]
    assert type(batch.valid) is type(batch.value)


@pytest.mark.parametrize(
    ("pipe", "shard", "words"),
    [
        (hr.range(20).batch(8, drop_last=True), (0, 2), "drops the last records"),
        (hr.range(20).where("value > 3").batch(8), (0, 2), "shard=None"),
        (hr.range(20).rename({"value": "valid"}).batch(8), (0, 2), 'a field "valid"'),
        (hr.range(20).shard(0, 2).batch(8), "auto", "shards already"),
    ],
)
def test_validation_data_that_cannot_be_covered_once_is_refused(pipe: hr.Pipeline, shard: Any, words: str) -> None:
    with pytest.raises(hr.HeadraceError, match=words):
        pipe.loader(eval=True, shard=shard)


# ---- for real ----

SCRIPT = """
import sys, torch, torch.distributed as dist
import headrace as hr
torch.set_num_threads(1)
rank, world = int(sys.argv[1]), int(sys.argv[2])
train, val = hr.range(97).shuffle().batch(16), hr.range(97).batch(16)
dist.init_process_group("gloo", init_method="file://" + sys.argv[3], rank=rank, world_size=world)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
loader = train.loader(threads=1)
assert (loader.rank, loader.world, loader.even) == (rank, world, "repeat")
for batch in loader:
    model(batch.value.float()[:, None]).sum().backward()  # waits for all ranks
total = torch.zeros(2, dtype=torch.int64)
for batch in val.loader(eval=True, threads=1):
    step = torch.stack([(batch.value * batch.valid).sum(), batch.valid.sum()])
    dist.all_reduce(step)  # in every step: also this waits
    total += step
assert total.tolist() == [97 * 96 // 2, 97], total
dist.barrier()
dist.destroy_process_group()
print("equal steps")
"""


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_ranks_of_torch_train_and_validate_without_a_word_about_ranks(tmp_path: pathlib.Path) -> None:
    for out, err in run_ranks(tmp_path, SCRIPT, 2):
        assert "equal steps" in out, err
