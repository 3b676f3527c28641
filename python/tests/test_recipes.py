"""SimCLR's and DINO's recipes: the graph files and the Python functions are the same, and draw what the papers say."""

from __future__ import annotations

import importlib.util
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import headrace as hr

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
N = 60


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory, command: str) -> pathlib.Path:
    made = tmp_path_factory.mktemp("recipes") / "photos"
    subprocess.run(
        [command, "synth", "photos", str(made), "--count", str(N), "--width", "90", "--height", "70", "-q"], check=True
    )
    return made


def test_simclr(photos: pathlib.Path) -> None:
    made = example("recipes").simclr(str(photos), size=32, blur=5, batch=N)
    assert hr.load(EXAMPLES / "recipe_simclr.yaml", data=str(photos), size=32, blur=5, batch=N) == made
    assert [made.fields[f"{view}_image"].spec.text() for view in "ab"] == ["float32[batch, 3, 32, 32]"] * 2
    (batch,) = made.loader(seed=3, output="numpy")
    a, b = batch["a_image"], batch["b_image"]
    assert a.min() >= 0 and a.max() <= 1 and a.std() > 0.1
    assert (a != b).any(axis=(1, 2, 3)).all()
    grey = [int((v == v[:, :1]).all(axis=(1, 2, 3)).sum()) for v in (a, b)]
    assert all(0 < count < N / 2 for count in grey) and grey != [N, N]


def test_dino(photos: pathlib.Path) -> None:
    made = example("recipes").dino(str(photos), size=40, small=24, batch=N)
    assert hr.load(EXAMPLES / "recipe_dino.yaml", data=str(photos), size=40, small=24, batch=N) == made
    views = [f for f in made.fields if f.name.endswith("image")]
    assert [f.spec.shape[-1] for f in views] == [40, 40] + [24] * 8
    (batch,) = made.loader(seed=3, output="numpy")
    arrays = [batch[f.name] for f in views]
    for i, one in enumerate(arrays):
        assert np.isfinite(one).all() and one.std() > 0.3
        assert not any(np.array_equal(one, other) for other in arrays[:i])


@pytest.mark.parametrize("name", ["simclr", "dino"])
def test_the_picture_is_drawn(photos: pathlib.Path, name: str, tmp_path: pathlib.Path) -> None:
    subprocess.run(
        [sys.executable, str(EXAMPLES / "recipes.py"), str(photos), "sheet.png", name], cwd=tmp_path, check=True
    )
    assert (tmp_path / "sheet.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "sheet-small.png").exists() == (name == "dino")
