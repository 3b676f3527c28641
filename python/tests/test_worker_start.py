"""Worker processes import from where their parent does, and nothing else.

Poison is a module that must not be imported: it says so in a file and raises.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import threading
import time
import warnings
import zipfile
from collections.abc import Callable

import pytest

import badfns
import headrace as hr
import stuckfns
import threadfns
import userfns

PACKAGE = pathlib.Path(hr.__file__).parent
NAMES = ("json", "socket", "pickle", "ctypes", "traceback", "random", "numpy", "headrace", "importlib", "sitecustomize")
LIMIT = 60.0

USER = """
import os, sys

def double(value):
    return 2 * value

def python_path(value):
    return os.environ.get("PYTHONPATH", "").encode()

def search_path(value):
    return repr(sys.path).encode()

class Loaded:
    # An item says whether its process has imported what builds pipelines.
    def __len__(self):
        return 1

    def __getitem__(self, at):
        return int("headrace.pipeline" in sys.modules)
"""
DOUBLES = """
import headrace as hr
import userside

assert __name__ != "__mp_main__"
values = [v for b in hr.range(20).map(userside.double, variant="processes").batch(5).loader(threads=2, output="numpy")
          for v in b.value.tolist()]
assert values == list(range(0, 40, 2)), values
print("fine")
"""


@pytest.fixture
def poison(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder of modules that must not be imported, unless by a program that lies there."""
    folder = tmp_path / "poison"
    folder.mkdir()
    for name in NAMES:
        text = f"open({str(tmp_path / 'bitten')!r}, 'a').write('{name} ')\nraise SystemExit('{name} was imported')\n"
        (folder / f"{name}.py").write_text(text)
    return folder


@pytest.fixture
def side(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with a script and the user's module beside it."""
    folder = tmp_path / "side"
    folder.mkdir()
    (folder / "userside.py").write_text(USER)
    (folder / "script.py").write_text(DOUBLES)
    return folder


def path_of_package() -> str:
    """What lets a program of this interpreter import headrace and its dependencies."""
    return os.pathsep.join([str(pathlib.Path(hr.__file__).parents[1]), *(p for p in sys.path if "site-packages" in p)])


def run(cwd: pathlib.Path, *args: str, python_path: str | None = None) -> None:
    environ = {**os.environ, "PYTHONPATH": path_of_package() if python_path is None else python_path}
    done = subprocess.run(
        [sys.executable, *args], cwd=cwd, env=environ, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    bitten = cwd.parent / "bitten"
    assert not bitten.exists(), bitten.read_text()
    assert done.returncode == 0 and done.stdout.endswith("fine\n"), done.stderr


@pytest.mark.parametrize("flags", [[], ["-P"], ["-s"], ["-O"], ["-X", "dev"], ["-W", "ignore"]], ids=" ".join)
def test_the_working_directory_is_not_searched(poison: pathlib.Path, side: pathlib.Path, flags: list[str]) -> None:
    if flags == ["-P"]:  # then the parent does not search the script's folder either
        run(poison, *flags, str(side / "script.py"), python_path=f"{side}{os.pathsep}{path_of_package()}")
    else:
        run(poison, *flags, str(side / "script.py"))


@pytest.mark.parametrize("flags", [["-I"], ["-E"]], ids=" ".join)
def test_a_path_that_the_program_made_itself(poison: pathlib.Path, side: pathlib.Path, flags: list[str]) -> None:
    """The environment is ignored, by workers as well."""
    made = [str(side), *path_of_package().split(os.pathsep)]
    (side / "script.py").write_text(f"import sys\nsys.path += {made!r}\n{DOUBLES}")
    run(poison, *flags, str(side / "script.py"))


def test_functions_of_the_script_itself(poison: pathlib.Path, side: pathlib.Path) -> None:
    (side / "script.py").write_text(
        "import headrace as hr\ndef square(x):\n    return x * x\n"
        "if __name__ == '__main__':\n"
        "    pipe = hr.range(5).map(square, variant='processes').batch(5)\n"
        "    print([b.value.tolist() for b in pipe.loader(threads=1, output='numpy')], 'fine')\n"
    )
    run(poison, str(side / "script.py"))


def test_a_script_without_a_guard_is_refused(poison: pathlib.Path, side: pathlib.Path) -> None:
    """Also where the environment says that this process is a worker, which it is not."""
    (side / "script.py").write_text(
        "import os\nos.environ['HEADRACE_WORKER'] = '1'\nimport headrace as hr\n"
        "def square(x):\n    return x * x\n"
        "try:\n    list(hr.range(5).map(square, variant='processes').batch(5).loader(threads=1))\n"
        "except hr.CodeError as error:\n    assert 'if __name__ ==' in str(error), error\n    print('fine')\n"
        "    if __name__ != '__main__':\n        raise\n"
    )
    run(poison, str(side / "script.py"))


def test_a_module_that_runs_by_name(poison: pathlib.Path, side: pathlib.Path) -> None:
    run(poison, "-P", "-m", "script", python_path=f"{side}{os.pathsep}{path_of_package()}")


def test_a_program_in_the_working_directory(side: pathlib.Path) -> None:
    """A path that has the working directory has it for workers, too."""
    run(side, "-c", DOUBLES)


def test_a_program_in_a_zip_file(poison: pathlib.Path, side: pathlib.Path) -> None:
    app = side.parent / "app.pyz"
    with zipfile.ZipFile(app, "w") as file:
        file.writestr("__main__.py", DOUBLES)
        file.writestr("userside.py", USER)
    run(poison, str(app))


def test_the_packages_folder_does_not_go_before_the_library(poison: pathlib.Path, side: pathlib.Path) -> None:
    """A backport beside the package, say in site-packages, must not replace a module."""
    (poison / "headrace.py").unlink()
    (poison / "headrace").symlink_to(PACKAGE)
    (poison / "numpy.py").unlink()
    head = f"import sys\nsys.path.append({str(poison)!r})\n"
    (side / "script.py").write_text(head + DOUBLES)
    others = os.pathsep.join(p for p in path_of_package().split(os.pathsep) if "site-packages" in p)
    run(side, str(side / "script.py"), python_path=others)


def test_a_package_that_is_no_longer_on_the_path(poison: pathlib.Path, side: pathlib.Path) -> None:
    head = f"import sys\nimport headrace, numpy\nsys.path.remove({str(pathlib.Path(hr.__file__).parents[1])!r})\n"
    (side / "script.py").write_text(head + DOUBLES)
    run(poison, str(side / "script.py"))


def test_the_environment_of_workers_is_the_parents(side: pathlib.Path) -> None:
    (side / "script.py").write_text(
        "import os, sys, headrace as hr, userside\n"
        "def one(f):\n    pipe = hr.range(1).map(f, variant='processes').batch(1)\n"
        "    return [b.value[0] for b in pipe.loader(threads=1)][0]\n"
        "assert one(userside.python_path) == os.environ['PYTHONPATH'].encode()\n"
        "assert one(userside.search_path) == repr(sys.path).encode()\nprint('fine')\n"
    )
    run(side, str(side / "script.py"))


def test_a_worker_with_a_data_set_imports_no_pipelines(side: pathlib.Path) -> None:
    (side / "script.py").write_text(
        "import headrace as hr, userside\n"
        "pipe = hr.from_dataset(userside.Loaded(), variant='processes').batch(1)\n"
        "assert userside.Loaded()[0] == 1 and [int(b[0]) for b in pipe.loader(threads=1)] == [0]\nprint('fine')\n"
    )
    run(side, str(side / "script.py"))


def test_a_nursery_that_an_engine_thread_starts_takes_signals(children: Callable[[], set[int]]) -> None:
    """Threads of the engine block all signals, and a process inherits that."""
    pipe = hr.range(400).map(userfns.slow, variant="processes").batch(20)
    seen: set[int] = set()
    for at, _ in enumerate(pipe.loader(threads=2)):
        running = children()
        if at == 3:
            host = pipe.loader()._built.host
            assert host is not None and host._nursery is not None
            host._nursery.process.kill()
        for pid in running - seen:
            until = time.monotonic() + LIMIT
            while _blocks_signals(pid):  # as long as its interpreter starts
                assert time.monotonic() < until, pid
                time.sleep(0.01)
        seen |= running
    assert len(seen) > 3  # a second nursery


def _blocks_signals(pid: int) -> bool:
    """False for a process that has ended."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    return any(line.startswith("SigBlk:") and int(line.split()[1], 16) != 0 for line in lines)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        pytest.param(badfns.Dies("SIGSEGV"), "was killed by SIGSEGV", marks=pytest.mark.fault),
        (badfns.Dies("SIGKILL"), "was killed by SIGKILL, perhaps because the machine ran out of memory"),
        (badfns.Dies(3), "ended with exit status 3"),
        # each worker is a process of its own
        pytest.param(threadfns.die, "was killed by SIGBUS", marks=pytest.mark.fault),
    ],
)
def test_an_error_says_how_a_worker_ended(function: Callable[[int], int], words: str) -> None:
    pipe = hr.range(40).map(function, variant="processes").batch(4)
    with pytest.raises(hr.CodeError, match=f"died in the code of node 'code.map'.*; the last one {words} ") as caught:
        list(pipe.loader(threads=2))
    assert caught.value.record == 13


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("no file"), "ValueError: no file"),
        (ValueError("\U0001f300" * 300_000), "ValueError: \U0001f300\U0001f300"),
        (ValueError("bad \ud800 name"), "ValueError: bad "),
        (badfns.NoWords(), "NoWords: it has no words"),
    ],
    ids=["short", "long", "surrogate", "no words"],
)
def test_an_error_says_why_code_cannot_be_imported(error: Exception, words: str) -> None:
    pipe = hr.range(40).map(badfns.Stays(error), variant="processes", outputs={"value": hr.spec("int64")}).batch(4)
    with pytest.raises(hr.CodeError, match=f"a worker process cannot import your code: {words}"):
        list(pipe.loader(threads=2))


def test_close_ends_a_loop_whose_workers_are_still_importing(children: Callable[[], set[int]]) -> None:
    loader = hr.range(100).map(stuckfns.HangsInWorkers(), variant="processes").batch(4).loader(threads=2)
    errors: list[BaseException] = []

    def loop() -> None:
        try:
            list(loader)
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            errors.append(error)

    consumer = threading.Thread(target=loop, daemon=True)
    consumer.start()
    while not children():
        consumer.join(0.01)
        assert consumer.is_alive(), errors
    closer = threading.Thread(target=loader.close, daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        closer.start()
        closer.join(LIMIT)
        consumer.join(LIMIT)
    assert not closer.is_alive() and not consumer.is_alive()
    assert isinstance(errors[0], hr.ClosedError)


@pytest.mark.memory
def test_a_worker_keeps_the_memory_of_its_arrays() -> None:
    pipe = hr.range(300).map(userfns.faults, fields="value", variant="processes").batch(1)
    with pipe.loader(threads=1, output="numpy") as loader:
        seen = [int(batch.value[0]) for batch in loader]
    assert seen[-1] - seen[99] < 200 * 20, seen  # 512 of each record if pages are returned
