"""The short form of `make soak-resume`: two trials of kill and resume, one with worker processes."""

from __future__ import annotations

import importlib
import pathlib
import random
import sys
from typing import Any

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "soak"))
graphs: Any = importlib.import_module("graphs")
resume: Any = importlib.import_module("resume")

PLAIN = {
    "source": "range", "count": 150, "seed": 3, "epochs": 2, "threads": 2, "shuffle": 0, "map": "threads",
    "slow": False, "filter": None, "children": False, "window": 0, "batch": 4, "map_batch": True, "tail": "none",
}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({}, id="every place is known"),
        pytest.param({"filter": "code", "children": True, "map": "processes", "map_batch": False}, id="ranks differ"),
    ],
)
def test_worlds_that_are_killed_train_on_what_an_unbroken_run_trains_on(
    change: dict[str, Any], tmp_path: pathlib.Path
) -> None:
    """Failure says what was lost, repeated, or of other bytes."""
    chance = random.Random(4)
    assert resume.trial(tmp_path, chance, [1, 2, 1], "", {**PLAIN, **change}).startswith("1 -> 2")


def test_the_soak_finds_what_is_lost_repeated_or_changed() -> None:
    """A check that cannot fail proves nothing."""
    wanted = [[i, f"{i}"] for i in range(20)]
    resume.compare_epoch(PLAIN, "", wanted, wanted, 2)
    for wrong in (wanted[1:], [*wanted, wanted[3]], [[0, "x"], *wanted[1:]], [wanted[1], wanted[0], *wanted[2:]]):
        with pytest.raises(resume.Failure):
            resume.compare_epoch(PLAIN, "", wanted, wrong, 2)
    resume.compare_epoch({**PLAIN, "tail": "drop"}, "", wanted, wanted[:-1], 2)
    with pytest.raises(resume.Failure):
        resume.compare_epoch({**PLAIN, "tail": "drop"}, "", wanted, wanted[:-2], 2)


def test_drawn_pipelines_can_be_built(tmp_path: pathlib.Path, command: str) -> None:
    chance = random.Random(1)
    for number in range(12):
        spec = graphs.draw(chance)
        folder = tmp_path / str(number)
        folder.mkdir()
        graphs.prepare(spec, folder, command)
        assert {"id", "noise"} <= {f.name for f in graphs.build(spec, folder).fields}
