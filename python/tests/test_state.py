"""The place of a loader: saved, loaded, refused, moved to other ranks, killed and resumed."""

from __future__ import annotations

import json
import os
import pathlib
import random
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

import headrace as hr
import userfns


def take(loader: Any, count: int | None = None) -> list[list[float]]:
    got = []
    for batch in loader:
        got.append(np.asarray(batch[batch.names[0]]).reshape(-1).tolist())
        if count is not None and len(got) == count:
            break
    return got


def pipelines() -> list[Any]:
    return [
        pytest.param(lambda: hr.range(103).shuffle().batch(8), id="direct"),
        pytest.param(lambda: hr.range(103).shuffle().where("value % 3 != 0").shuffle(window=16).batch(8), id="filter"),
        pytest.param(lambda: hr.range(103).shuffle().map(userfns.noise).batch(8), id="threads"),
        pytest.param(lambda: hr.range(103).shuffle().map(userfns.noise, variant="processes").batch(8), id="processes"),
        pytest.param(lambda: hr.range(40).flat_map(userfns.some).batch(8), id="expand"),
        pytest.param(lambda: hr.from_dataset(userfns.Squares(103)).shuffle().batch(8), id="dataset"),
        pytest.param(lambda: hr.from_iterable(list(range(103))).map(userfns.noise).batch(8), id="iterable"),
    ]


@pytest.mark.parametrize("make", pipelines())
@pytest.mark.parametrize("at", [1, 5, 11])
def test_resumed_runs_give_what_the_unbroken_run_gives(make: Any, at: int) -> None:
    options: dict[str, Any] = {"epochs": 2, "seed": 5, "output": "numpy"}
    wanted = take(make().loader(threads=2, **options))
    loader = make().loader(threads=2, **options)
    head = take(loader, at)
    text = json.dumps(loader.state_dict())
    assert len(text) < 1024
    resumed = make().loader(threads=1, **options)
    resumed.load_state_dict(json.loads(text))
    assert head + take(resumed) == wanted


def test_the_state_is_of_the_last_batch_given_not_of_what_is_in_flight() -> None:
    loader = hr.range(1000).batch(10).loader(threads=2, output="numpy")
    run = iter(loader)
    for i in range(5):
        next(run)
        time.sleep(0.01)
        again = hr.range(1000).batch(10).loader(output="numpy")
        again.load_state_dict(loader.state_dict())
        assert next(iter(again)).value[0] == 10 * (i + 1)


def test_the_state_at_the_end_of_an_epoch() -> None:

    def make() -> Any:
        return hr.range(20).shuffle().batch(5).loader(output="numpy")

    loader = make()
    first, second = take(loader), take(loader)
    early = make()
    got = []
    for batch in early:
        got.append(batch)
        state = early.state_dict()  # before the loop knows that it is over
    resumed = make()
    resumed.load_state_dict(state)
    assert take(resumed) == [] and take(resumed) == second
    resumed.load_state_dict(early.state_dict())  # after the loop
    assert take(resumed) == second != first


def test_a_fresh_state_begins_at_the_beginning() -> None:
    loader = hr.range(20).batch(5).loader(output="numpy")
    other = hr.range(20).batch(5).loader(output="numpy")
    other.load_state_dict(loader.state_dict())
    assert len(take(other)) == 4


def test_set_epoch_keeps_a_state_of_that_epoch() -> None:
    """Accelerate and the Trainer call set_epoch before each epoch."""

    def make() -> Any:
        return hr.range(20).shuffle().batch(5).loader(output="numpy")

    loader = make()
    take(loader)
    head = take(loader, 2)
    state = loader.state_dict()
    wanted = take(make().epoch(1))
    resumed = make()
    resumed.load_state_dict(state)
    resumed.set_epoch(1)
    assert head + take(resumed) == wanted
    resumed.load_state_dict(state)
    resumed.set_epoch(0)
    assert len(take(resumed)) == 4


def test_a_loop_that_was_left_can_be_resumed_elsewhere() -> None:
    loader = hr.range(20).batch(5).loader(output="numpy")
    take(loader, 2)
    other = hr.range(20).batch(5).loader(output="numpy")
    other.load_state_dict(loader.state_dict())
    assert take(other) == [[10, 11, 12, 13, 14], [15, 16, 17, 18, 19]]


# ---- refusals ----


def test_states_of_others_are_refused_by_what_differs() -> None:
    state = hr.range(20).batch(5).loader().state_dict()
    with pytest.raises(hr.StateMismatchError, match="another pipeline"):
        hr.range(21).batch(5).loader().load_state_dict(state)
    with pytest.raises(hr.StateMismatchError, match="seed 0"):
        hr.range(20).batch(5).loader(seed=1).load_state_dict(state)
    assert issubclass(hr.StateMismatchError, ValueError)


@pytest.mark.parametrize(
    "change",
    [
        {"headrace": 1},
        {"headrace": 3},
        {"first": -1},
        {"first": "0"},
        {"at": None},
        {"epochs": 0},
        {"engine": "{"},
        {"engine": 3},
    ],
)
def test_damaged_states_are_refused(change: dict[str, Any]) -> None:
    loader = hr.range(20).batch(5).loader()
    with pytest.raises(hr.FormatError):
        loader.load_state_dict({**loader.state_dict(), **change})


@pytest.mark.parametrize("state", [{}, {"headrace": 1}, {"a": 1}, [1], None])
def test_what_is_no_state_is_refused(state: Any) -> None:
    with pytest.raises(hr.FormatError):
        hr.range(20).batch(5).loader().load_state_dict(state)


def test_unordered_runs_have_no_place() -> None:
    loader = hr.range(1000).batch(10).loader(ordered=False)
    run = iter(loader)
    next(run)
    with pytest.raises(hr.UnsupportedError):
        loader.state_dict()
    del run


def test_a_closed_loader_takes_no_state() -> None:
    loader = hr.range(20).batch(5).loader()
    state = loader.state_dict()
    loader.close()
    with pytest.raises(hr.ClosedError):
        loader.load_state_dict(state)


# ---- other ranks ----


@pytest.mark.parametrize("variant", ["threads", "processes"])
def test_worlds_may_change_within_an_epoch(variant: Any) -> None:
    """1 -> 2 -> 3 -> 8 -> 1 ranks; each record once (huggingface/datasets#7901)."""
    n = 997
    pipe = hr.range(n).shuffle().map(userfns.identity, variant=variant).batch(4)
    seen: list[float] = []
    state: dict[str, Any] | None = None
    for world, steps in [(1, 20), (2, 15), (3, 12), (8, 7), (1, None)]:
        states = []
        for rank in range(world):
            loader = pipe.loader(rank=rank, world=world, output="numpy", threads=1)
            if state is not None:
                loader.load_state_dict(state)
            seen += [x for one in take(loader, steps) for x in one]
            states.append(loader.state_dict())
        state = states[-1]
    assert sorted(seen) == list(range(n))


# ---- kills ----

TRAIN = """
import json, os, sys, hashlib
import numpy as np, userfns, headrace as hr
state, log, variant = sys.argv[1:]
pipe = hr.range(400).shuffle().map(userfns.noise, variant=variant).batch(7)
loader = pipe.loader(epochs=2, threads=2, seed=3, output="numpy")
if os.path.exists(state):
    loader.load_state_dict(json.load(open(state))["loader"])
    done = json.load(open(state))["done"]
else:
    done = []
print("ready", flush=True)
for batch in loader:
    done.append(hashlib.md5(batch.value.tobytes()).hexdigest()[:8])
    with open(state + ".new", "w") as file:
        json.dump({"loader": loader.state_dict(), "done": done}, file)
    os.replace(state + ".new", state)
json.dump(done, open(log, "w"))
"""


@pytest.mark.parametrize("variant", ["threads", "processes"])
def test_kill_minus_nine_at_random_moments(variant: str, tmp_path: pathlib.Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    path = os.pathsep.join([str(pathlib.Path(hr.__file__).parents[1]), *(p for p in sys.path if p)])

    def run(name: str, kill_after: float | None) -> None:
        process = subprocess.Popen(
            [sys.executable, str(script), str(tmp_path / f"{name}.state"), str(tmp_path / f"{name}.log"), variant],
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        process.stdout.readline()
        if kill_after is not None:
            time.sleep(kill_after)
            process.kill()
        process.communicate(timeout=60)

    run("whole", None)
    chance = random.Random(11)
    for _ in range(4):
        run("broken", chance.random() * 0.08)
    run("broken", None)
    assert json.loads((tmp_path / "broken.log").read_text()) == json.loads((tmp_path / "whole.log").read_text())


def test_far_into_an_epoch_is_found_at_once() -> None:
    """O(1), whatever the length of the epoch."""
    pipe = hr.range(10**12).shuffle().batch(256)
    loader = pipe.loader(output="numpy")
    head = take(loader, 3)
    state = loader.state_dict()
    engine = json.loads(state["engine"])
    engine["position"] = 9 * 10**11 // 256 * 256
    start = time.perf_counter()
    resumed = pipe.loader(output="numpy")
    resumed.load_state_dict({**state, "engine": json.dumps(engine)})
    assert len(take(resumed, 1)[0]) == 256 and head
    assert time.perf_counter() - start < 0.5


def test_an_iterator_that_nobody_asks_leaves_the_state() -> None:
    """Lightning calls iter() once to see whether it can."""

    def make() -> hr.Loader:
        return hr.range(20).batch(5).loader(output="numpy")

    loader = make()
    whole = take(loader)
    head = make()
    next(iter(head))
    resumed = make()
    resumed.load_state_dict(head.state_dict())
    iter(resumed)
    assert take(resumed) == whole[1:]
