"""Loaders that start their workers themselves, as processes of this host."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import headrace as hr
from conftest import run_script
from headrace import fleet

Children = Callable[[], set[int]]


@pytest.fixture(autouse=True)
def started(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fleets find the command, and libevent is there."""
    monkeypatch.setenv("HEADRACE_COMMAND", command)
    done = subprocess.run(
        [command, "dispatcher", "--listen", "127.0.0.1:x"], capture_output=True, text=True, check=False
    )
    if "libevent" in done.stderr:
        pytest.skip(done.stderr)


def numbers(count: int = 200) -> hr.Pipeline:
    return hr.range(count).shuffle().batch(8)


def values(loader: hr.Loader) -> list[list[int]]:
    return [np.asarray(batch["value"]).tolist() for batch in loader]


def until(holds: Callable[[], Any], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to hold in time"
        time.sleep(0.02)


def commands(children: Children) -> dict[int, list[str]]:
    """The headrace processes below this one: {pid: words}."""
    found = {}
    for pid in children():
        with contextlib.suppress(OSError):
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            if words[0].endswith("headrace"):
                found[pid] = words
    return found


def test_batches_and_states_are_those_of_a_loader_without_workers(children: Children) -> None:
    pipe = numbers()
    with pipe.loader(seed=3, workers="local:2") as loader:
        again = pipe.loader(seed=3)
        assert values(loader) == values(again)
        assert len(commands(children)) == 3
        steps = iter(loader)
        part = [np.asarray(next(steps)["value"]).tolist() for _ in range(5)]
        state = loader.state_dict()
    assert not children()
    wanted = values(again)
    other = pipe.loader(seed=3)
    other.load_state_dict(state)
    assert part + values(other) == wanted


def test_loaders_share_the_workers_of_one_object(children: Children) -> None:
    workers = hr.LocalWorkers(2)
    train, val = numbers().loader(workers=workers), numbers(50).loader(workers=workers)
    assert workers.live() == [] and not children()  # nothing runs before the first loop
    assert values(train) == values(numbers().loader())
    assert values(val) == values(numbers(50).loader())
    assert len(commands(children)) == 3
    train.close()
    assert len(workers.live()) == 2
    del val  # ends its lease as well
    until(lambda: not children())
    assert workers.live() == []
    assert values(numbers().loader(workers=workers)) == values(numbers().loader())  # and they start again
    until(lambda: not children())


def test_a_killed_worker_or_dispatcher_starts_again(children: Children) -> None:
    pipe = numbers(20000)
    workers = hr.LocalWorkers(2)
    with pipe.loader(workers=workers) as loader:
        got = []
        for step, batch in enumerate(loader):
            got.append(np.asarray(batch["value"]).tolist())
            if step in (100, 400, 700):
                kind = "dispatcher" if step == 400 else "worker"
                os.kill(next(pid for pid, words in commands(children).items() if words[1] == kind), signal.SIGKILL)
        assert got == values(pipe.loader())
        until(lambda: len(workers.live()) == 2 and len(commands(children)) == 3)


def kill_keeper(children: Children) -> None:
    """Ends a fleet by the process that keeps it, which ends the others."""
    below = commands(children)
    os.kill(next(pid for pid in children() if pid not in below), signal.SIGKILL)
    until(lambda: not any(_runs(pid) for pid in below))


def test_the_next_loop_starts_a_fleet_that_was_lost(children: Children) -> None:
    with numbers().loader(workers="local:1") as loader:
        first = values(loader)
        kill_keeper(children)
        assert [first, values(loader)] == [values(numbers().loader()), values(numbers().loader(epochs=2))[25:]]


def test_a_loop_moves_from_a_fleet_that_was_lost_to_another(children: Children) -> None:
    pipe = numbers(100_000)
    with pipe.loader(seed=2, workers="local:2") as loader:
        got, killed = [], 0
        for step, batch in enumerate(loader):
            got.append(np.asarray(batch["value"]).tolist())
            # The loop has up to 4096 batches when it learns of a loss: the other fleet may start later.
            if step == 100 or (step >= 2000 and killed == 1 and len(commands(children)) == 3):
                kill_keeper(children)
                killed += 1
        assert killed == 2
        assert got == values(pipe.loader(seed=2))
        assert loader.stats()["records"] == 100_000


def test_the_rest_of_a_pipeline_runs_here_whatever_happens_to_its_workers(children: Children) -> None:
    def thirds(value: Any) -> bool:
        return bool(value % 3 == 0)

    pipe = hr.range(20_000).shuffle().filter(thirds).batch(8)
    with pipe.loader(seed=1, workers="local:2") as loader:
        got = []
        for step, batch in enumerate(loader):
            got.append(np.asarray(batch["value"]).tolist())
            if step == 100:
                kill_keeper(children)
        assert got == values(pipe.loader(seed=1))


def test_a_loop_that_finds_no_other_fleet_ends(children: Children, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = numbers(1 << 40).loader(workers="local:1")
    steps = iter(loader)
    next(steps)
    monkeypatch.setenv("HEADRACE_COMMAND", "/nowhere/headrace")
    kill_keeper(children)
    with pytest.raises(hr.StateError, match="cannot start: .*/nowhere/headrace"):
        for _ in steps:
            pass
    monkeypatch.undo()
    loader.close()


def test_workers_drain_in_the_middle_of_an_epoch(children: Children) -> None:
    pipe = numbers(20000)
    workers = hr.LocalWorkers(3)
    with pipe.loader(workers=workers) as loader:
        got = []
        for step, batch in enumerate(loader):
            got.append(np.asarray(batch["value"]).tolist())
            running = workers._shared.fleet
            assert running is not None
            if step == 100:
                running.provisioner.stop(2)
                assert len(workers.live()) == 1
            if step == 300:
                running.provisioner.start(1)
                assert len(workers.live()) == 2
        assert got == values(pipe.loader())
        until(lambda: len(commands(children)) == 3)  # the drained ones have ended


def test_nothing_outlives_an_owner_that_is_killed(tmp_path: pathlib.Path, children: Children) -> None:
    script = tmp_path / "owner.py"
    script.write_text(
        "import headrace as hr, os, subprocess, sys\n"
        "loader = hr.range(1 << 40).batch(8).loader(workers='local:2')\n"
        "next(iter(loader))\n"
        # A child that has inherited everything, so that no pipe of the owner's closes with it.
        "subprocess.Popen(['sleep', '60'], close_fds=False)\n"
        "print('runs', flush=True)\n"
        "sys.stdin.read()\n"
    )
    path = os.pathsep.join([str(pathlib.Path(hr.__file__).parents[1]), *(p for p in sys.path if p)])
    owner = subprocess.Popen(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None and owner.stdin is not None
    assert owner.stdout.readline() == "runs\n"
    below = commands(children)
    assert sorted(words[1] for words in below.values()) == ["dispatcher", "worker", "worker"]
    sleeping = [pid for pid in children() if pathlib.Path(f"/proc/{pid}/comm").read_text() == "sleep\n"]
    owner.kill()
    owner.wait()
    until(lambda: not any(_runs(pid) for pid in below))
    for pid in sleeping:
        os.kill(pid, signal.SIGKILL)
    owner.communicate()


def _runs(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_script_that_just_ends_leaves_nothing_and_says_nothing(tmp_path: pathlib.Path, children: Children) -> None:
    text = """
import headrace as hr
if __name__ == "__main__":
    loader = hr.range(1000).batch(8).loader(workers="local:2")
    print(len(list(loader)))
"""
    done = run_script(tmp_path, text)
    assert (done.stdout, done.stderr, done.returncode) == ("125\n", "", 0)


def test_workers_are_confined_to_the_cpus_that_they_are_given(children: Children) -> None:
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        pytest.skip("this process may use one CPU only")
    with numbers().loader(workers=hr.LocalWorkers(2, cpus=usable[:2])) as loader:
        values(loader)
        shares = [os.sched_getaffinity(pid) for pid, words in commands(children).items() if words[1] == "worker"]
        assert sorted(map(sorted, shares)) == [[usable[0]], [usable[1]]]
    with numbers().loader(workers=hr.LocalWorkers(2, cpus=usable[:1])) as loader:
        values(loader)
        shares = [os.sched_getaffinity(pid) for pid, words in commands(children).items() if words[1] == "worker"]
        assert shares == [{usable[0]}, {usable[0]}]


def test_the_token_is_secret_and_needed(children: Children) -> None:
    workers = hr.LocalWorkers(1)
    with numbers().loader(workers=workers) as loader:
        values(loader)
        running = workers._shared.fleet
        assert running is not None
        address, token = running.service
        assert not any(token in word for words in commands(children).values() for word in words)
        with pytest.raises(hr.AccessError, match="a token is needed"):
            values(numbers().loader(service=address))


def test_what_a_process_says_when_it_cannot_start_is_reported(children: Children) -> None:
    keeper = fleet.Keeper("t" * 20)
    try:
        with pytest.raises(hr.StateError, match="cannot start: .*256.256"):
            keeper.start("dispatcher", "--listen", "256.256.256.256:0")
        assert keeper.live() == []
    finally:
        keeper.close()
    with pytest.raises(hr.StateError, match="has ended"):
        keeper.live()


@pytest.fixture
def no_ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "ray", None)  # an import raises ImportError, as without Ray
    yield


def test_without_ray_its_workers_are_refused_with_what_to_install(no_ray: None) -> None:
    for options in ({"ray": True}, {"workers": "ray"}, {"workers": "ray:2"}, {"ray": hr.RayWorkers(2)}):
        with pytest.raises(hr.UnsupportedError, match=r"pip install 'ray\[default\]'"):
            numbers().loader(**options)  # type: ignore[arg-type]
    with pytest.raises(hr.UnsupportedError, match=r"pip install 'ray\[data\]'"):
        hr.to_ray_dataset(numbers())


def test_wrong_arguments_are_refused() -> None:
    def refused(match: str, **options: Any) -> None:
        with pytest.raises(hr.ArgumentError, match=match):
            numbers().loader(**options)

    refused("'local:N' starts N", workers=2)
    refused("called 'locale'; did you mean 'local'", workers="locale:2")
    refused("as in 'local:2'", workers="local")
    refused("as in 'ray:2'", workers="ray:two")
    refused("1 to 64, not 0", workers="local:0")
    refused("1 to 64, not 65", workers="local:65")
    refused("leave out one of them", workers="local:2", ray=True)
    refused("workers that run already", workers="local:2", service="127.0.0.1:1")
    refused("a token of their own", workers="local:2", service_token_file="token")
    refused("order of a service's graph", workers="local:2", optimize=True)
    refused("ray is True or", ray="yes")
    refused("ray is True or", ray=hr.LocalWorkers(2))
    for cpus in ([], [1 << 20]):
        with pytest.raises(hr.ArgumentError, match="cpus are numbers of CPUs"):
            hr.LocalWorkers(2, cpus=cpus)
    with pytest.raises(hr.ArgumentError, match="threads is a number"):
        hr.LocalWorkers(2, threads=0)
