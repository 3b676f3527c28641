"""A whole training: it learns, and killed at any moment it ends with the weights of a run that was not."""

from __future__ import annotations

import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import pytest

import headrace as hr
from conftest import ROOT

pytest.importorskip("torch")

EXAMPLE = ROOT / "examples" / "train_lenet.py"
MNIST = pathlib.Path(os.environ.get("HEADRACE_DATA", ROOT.parent / "shared" / "data")) / "mnist"


def start(*args: str | pathlib.Path) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(pathlib.Path(hr.__file__).parents[1]), *(p for p in sys.path if p)])
    return subprocess.Popen(
        [sys.executable, str(EXAMPLE), *map(str, args)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[str, str]:
    """(all it said, digest of the weights)."""
    out, err = process.communicate(timeout=1200)
    found = re.search(r"weights ([0-9a-f]{32})", out)
    assert found, out + err
    return out, found.group(1)


def kill_after_saves(process: subprocess.Popen[str], checkpoint: pathlib.Path, saves: int, seconds: float) -> None:
    """Kills it a moment after it has saved `saves` times, if it does not end before that."""
    last = None
    until = time.monotonic() + 600
    while saves >= 0 and process.poll() is None:  # the first look sees the run before
        assert time.monotonic() < until, process.communicate()
        inode = checkpoint.stat().st_ino if checkpoint.exists() else None
        saves -= inode != last
        last = inode
        time.sleep(0.001)
    time.sleep(seconds)
    process.kill()
    out, errors = process.communicate()
    assert process.returncode == -signal.SIGKILL or "weights " in out, errors


def test_killed_and_resumed_it_ends_with_the_same_weights(tmp_path: pathlib.Path) -> None:
    args = ("--epochs", "1", "--batch", "100", "--save-every", "3", "--checkpoint")
    _, whole = finish(start(*args, tmp_path / "whole.pt"))
    chance = random.Random()
    for _ in range(3):
        kill_after_saves(
            start(*args, tmp_path / "broken.pt"), tmp_path / "broken.pt", chance.randint(1, 5), chance.random() * 0.02
        )
    out, digest = finish(start(*args, tmp_path / "broken.pt"))
    assert "resuming after step" in out
    assert digest == whole


def test_lenet_learns_digits() -> None:
    """On MNIST where it is there, else on drawn digits."""
    process = start("--data", MNIST) if (MNIST / "t10k-images-idx3-ubyte.gz").exists() else start()
    out, _ = finish(process)
    found = re.search(r"accuracy ([0-9.]+)", out)
    assert found and float(found.group(1)) > 0.97, out
    assert process.returncode == 0
