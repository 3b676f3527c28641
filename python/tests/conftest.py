"""What the tests share: a small folder of pictures, the command, a count of processes."""

from __future__ import annotations

import ctypes
import gc
import os
import pathlib
import random
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

import headrace as hr
from headrace import _headrace

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    # A shell starts background jobs with SIGINT ignored, which the programs under test would inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "memory: measures the memory of processes, which says nothing under sanitizers")
    config.addinivalue_line("markers", "fault: dies of a signal that sanitizers turn into an exit")
    config.addinivalue_line("markers", "fork: starts threads in a child of a program with threads")
    # A fresh seed for random examples, which the processes of pytest-xdist share.
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(secrets.randbits(32))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Prints the seed before the tests: a crash in C leaves no other trace."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.write_line(f"repeat random examples with --hypothesis-seed={session.config.option.hypothesis_seed}")


# The files that take longest start first, so that no core is idle while the last one runs.
LONGEST = ["worker_random", "training", "data_loader", "exit", "ext_life", "examples", "ext_refs", "close", "code"]


# HEADRACE_TEST_ROUNDS=n: only the tests that draw random numbers, n times each (make nightly).
ROUNDS = int(os.environ.get("HEADRACE_TEST_ROUNDS", "0"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if ROUNDS > 0 and "rng" in metafunc.fixturenames:
        metafunc.parametrize("rng", range(ROUNDS), indirect=True)


# Markers of tests that say nothing under sanitizers.
UNFIT = {
    "memory": "sanitizers keep what was freed, and shadows of all",
    "fault": "sanitizers end a process that gets this signal",
    "fork": "ASan's allocator may be locked in the child, and TSan ends it",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.stem.removeprefix("test_") not in LONGEST)
    if ROUNDS > 0:
        items[:] = [item for item in items if "rng" in getattr(item, "fixturenames", ())]
    program = ctypes.CDLL(None)  # see tools/sanitize-python
    if not hasattr(program, "__asan_init") and not hasattr(program, "__tsan_init"):
        return
    for item in items:
        for marker, reason in UNFIT.items():
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def torch_seed() -> None:
    """Loaders without a seed follow torch's, which another test may have imported."""
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture(autouse=True)
def cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The folder of saved profiles, one for each test: none comes from the user's."""
    folder = tmp_path / "headrace-cache"
    monkeypatch.setenv("HEADRACE_CACHE", str(folder))
    return folder / "profiles"


@pytest.fixture
def rng() -> random.Random:
    """Random numbers from a fresh seed, which is printed if the test fails."""
    seed = random.randrange(2**32)
    print("seed", seed)
    return random.Random(seed)


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """30 PPM files of differing sizes in folders a, b, c."""
    folder = tmp_path_factory.mktemp("pictures")
    for i in range(30):
        width, height = 24 + i, 40 - i // 2
        below = folder / "abc"[i % 3]
        below.mkdir(exist_ok=True)
        pixels = bytes(
            (x * 5 + y * 3 + c * 40 + i * 7) % 256 for y in range(height) for x in range(width) for c in range(3)
        )
        (below / f"{i:02}.ppm").write_bytes(b"P6 %d %d 255\n" % (width, height) + pixels)
    return folder


@pytest.fixture
def vision(pictures: pathlib.Path) -> hr.Pipeline:
    """Shuffled, cropped, flipped, normalised, in batches of 8."""
    return (
        hr.files(pictures, labels="folder")
        .shuffle()
        .decode()
        .random_resized_crop(16)
        .flip()
        .normalize("imagenet")
        .layout("chw")
        .batch(8)
    )


@pytest.fixture(scope="session")
def command() -> str:
    """The headrace command; skips without one."""
    found = os.environ.get("HEADRACE_COMMAND") or shutil.which("headrace", path=str(ROOT / "build"))
    if not found:
        pytest.skip("no headrace command; set HEADRACE_COMMAND or build it")
    return found


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """Every handle that a test makes is gone when it is over.

    Or soon after: user code that runs for more than a second is not waited for if an error or a
    signal ends its run.
    """
    gc.collect()
    before = _headrace.live_objects()
    yield
    until = time.monotonic() + 30
    while (gc.collect(), _headrace.live_objects())[1] != before and time.monotonic() < until:
        time.sleep(0.05)
    assert _headrace.live_objects() == before


@pytest.fixture
def children() -> Iterator[Callable[[], set[int]]]:
    """Processes below this one that run; none may be left when the test is over."""
    before = descendants()
    yield lambda: descendants() - before
    left = descendants() - before
    assert not left, f"processes {left} are left: {[_command(p) for p in left]}"


def descendants() -> set[int]:
    """Ids of all processes below this one, zombies not counted."""
    parents: dict[int, int] = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                parents[int(entry.name)] = int(fields[1])
    found = {os.getpid()}
    while more := {p for p, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {os.getpid()}


def _command(pid: int) -> str:
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return "gone"


def run_script(
    folder: pathlib.Path, text: str, *args: str, seconds: float = 60, **options: object
) -> subprocess.CompletedProcess[str]:
    """Run `text` as a script of its own, which may take `seconds`."""
    import sys

    script = folder / "script.py"
    script.write_text(text)
    path = os.pathsep.join([str(pathlib.Path(hr.__file__).parents[1]), *(p for p in sys.path if p)])
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [sys.executable, str(script), *args],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        **options,  # type: ignore[call-overload]
    )
    return done


def run_ranks(folder: pathlib.Path, script: str, world: int) -> list[tuple[str, str]]:
    """Run a script once per rank, side by side, with rank, world and a path to meet at as
    arguments. Returns stdout and stderr of each."""
    file = folder / "train.py"
    file.write_text(script)
    path = os.pathsep.join([str(pathlib.Path(hr.__file__).parents[1]), *(p for p in sys.path if p)])
    processes = [
        subprocess.Popen(
            [sys.executable, str(file), str(rank), str(world), str(folder / "meet")],
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]
    try:
        return [process.communicate(timeout=240) for process in processes]
    finally:
        for process in processes:
            process.kill()
