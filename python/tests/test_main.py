"""`python -m headrace`: the command."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest


def main(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headrace", *words],
        env={**os.environ, **environ},
        text=True,
        capture_output=True,
        timeout=60,
    )


def test_the_package_runs_the_command(command: str) -> None:
    by_name = subprocess.run([command, "version"], text=True, capture_output=True, check=True)
    done = main("version", HEADRACE_COMMAND=command)
    assert done.returncode == 0 and done.stdout == by_name.stdout
    assert "Usage: headrace COMMAND" in main("--help", HEADRACE_COMMAND=command).stdout
    wrong = main("rnu", HEADRACE_COMMAND=command)
    assert wrong.returncode == 2 and "did you mean run?" in wrong.stderr


def test_the_command_is_found_in_path(command: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "headrace").symlink_to(command)
    done = main("version", HEADRACE_COMMAND="", PATH=f"{tmp_path}:/usr/bin:/bin")
    assert done.returncode == 0 and done.stdout.startswith("headrace "), done


def test_signals_go_to_the_command(command: str, tmp_path: pathlib.Path) -> None:
    graph = tmp_path / "slow.yaml"
    graph.write_text("headrace: 1\npipeline:\n  - source.range: {n: 1000000}\n  - debug.sleep: {ms: 2}\n")
    state = tmp_path / "state"
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace", "run", str(graph), "--state", str(state), "--save-every", "1"],
        env={**os.environ, "HEADRACE_COMMAND": command},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 60
    while not state.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130


def test_what_is_missing_is_said(tmp_path: pathlib.Path) -> None:
    done = main("version", HEADRACE_COMMAND=str(tmp_path / "none"))
    assert done.returncode == 1 and f"cannot run {tmp_path}/none" in done.stderr and "Traceback" not in done.stderr


def test_a_package_without_the_command_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    import headrace.__main__ as module

    monkeypatch.delenv("HEADRACE_COMMAND", raising=False)
    monkeypatch.setattr(module, "_candidates", lambda: iter(["", "/absent/headrace"]))
    with pytest.raises(SystemExit, match="came without the headrace command"):
        module.main()
