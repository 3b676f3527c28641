"""Reproducers of what people reported about other loaders, with this one.

Some reports have theirs beside related tests: killed workers (pytorch#21554), forks
(#1355), stale shared memory (mosaicml/streaming#781) in test_code.py and test_loader.py.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import headrace as hr
import reportfns
import userfns
from conftest import descendants, run_script
from headrace import host


def proportional(pids: set[int], what: tuple[str, ...] = ("Pss_Anon:", "Pss_Shmem:")) -> int:
    """Bytes of memory of these processes, each shared page counted once (PSS).

    Without pages of files: those of the interpreter are shared with any process of the machine, so they change
    when another one ends.
    """
    total = 0
    for pid in pids:
        for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith(what):
                total += int(line.split()[1]) * 1024
    return total


def growth(dataset: Any, variant: Any, children: Any) -> tuple[int, int]:
    """Bytes by which all processes together grow within the first epoch, and from there to the fourth."""
    with hr.from_dataset(dataset, variant=variant).batch(1000).loader(epochs=4, threads=2, output="numpy") as loader:
        seen = []
        for i, batch in enumerate(loader):
            assert len(batch) == 1000
            if i in (NAMES // 10_000, NAMES // 1000 - 1, 4 * NAMES // 1000 - 5):
                seen.append(proportional(children() | {os.getpid()}))
    return seen[1] - seen[0], seen[2] - seen[1]


NAMES = 200_000


@pytest.mark.memory
@pytest.mark.parametrize("variant", ["threads", "processes"])
def test_memory_does_not_grow_with_the_records_of_an_array(variant: Any, children: Any) -> None:
    """pytorch#13246, in the form without Python objects."""
    first, later = growth(reportfns.Lengths(NAMES), variant, children)
    assert first < 3 << 20 and later < 3 << 20


@pytest.mark.memory
def test_memory_of_a_list_grows_by_a_copy_in_each_worker_at_most(children: Any) -> None:
    """pytorch#13246: counts of references are written to the pages of the list itself.

    In threads it does not grow at all.
    """
    names = reportfns.Names(NAMES)
    size = NAMES * (sys.getsizeof(names.names[0]) + 8)
    assert sum(growth(names, "processes", children)) < 2 * size
    first, later = growth(names, "threads", children)
    assert first < 3 << 20 and later < 3 << 20


@pytest.mark.memory
@pytest.mark.parametrize("workers", [1, 4])
def test_a_list_is_in_memory_once_however_many_workers_read_it(workers: int, children: Any) -> None:
    """pytorch#13246, where the list is the data set: no process but this one holds it as objects."""
    count, size = 150_000, 60 << 20
    names = [f"{i:08}" + "x" * (size // count - 8 - 57) for i in range(count)]
    pipe = hr.from_dataset(names, variant="processes").shuffle().batch(500)
    with pipe.loader(threads=workers, epochs=2, output="headrace") as loader:
        for i, batch in enumerate(loader):
            assert batch.strings()[0].endswith("x")
            if i == 10:
                before = proportional(children(), ("Pss_Anon:",))
            elif i == count // 500 + 10:
                assert len(children()) == workers + 1
                assert proportional(children(), ("Pss_Anon:",)) - before < workers * (3 << 20)
                break


def test_nothing_is_kept_in_dev_shm(children: Any) -> None:
    """pytorch#5040, #108861: /dev/shm is full; ours are memory files that no folder holds."""

    def shared(pid: int) -> set[str]:
        files = set()
        for file in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                files.add(os.readlink(file))
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
        return {line for line in (*files, *maps) if "/dev/shm/" in line}

    before = shared(os.getpid())  # semaphores of other tests
    pipe = hr.range(24).map(reportfns.large, variant="processes").batch(2)
    for batch in pipe.loader(threads=2, output="numpy"):
        assert batch.value.shape == (2, 1 << 20)
        for pid in children() | {os.getpid()}:
            assert not shared(pid) - before


def test_all_processes_killed_at_once_lose_nothing(children: Any) -> None:
    """pytorch#21554, as the system does it when memory is short: whatever process it takes."""
    got: list[int] = []
    killed = 0
    before = descendants()
    pipe = hr.range(2000).map(userfns.slow, variant="processes").batch(20)
    for i, batch in enumerate(pipe.loader(threads=2, output="numpy")):
        got += batch.value.tolist()
        if i in (10, 40):
            for pid in descendants() - before:
                os.kill(pid, signal.SIGKILL)
                killed += 1
    assert killed >= 4 and got == list(range(2000))


def test_a_starter_of_workers_killed_at_its_start_is_started_again(
    monkeypatch: pytest.MonkeyPatch, children: Any
) -> None:
    """The same, while it imports what the functions need."""
    killed: list[int] = []
    ready = host.Nursery.ready

    def kill_first(nursery: host.Nursery) -> None:
        if not killed:
            killed.append(nursery.process.pid)
            nursery.process.kill()
        ready(nursery)

    monkeypatch.setattr(host.Nursery, "ready", kill_first)
    loader = hr.range(20).map(userfns.double, variant="processes").batch(4).loader(threads=1, output="numpy")
    with loader:
        assert [x for b in loader for x in b.value.tolist()] == [2 * x for x in range(20)]
    assert killed


def test_a_starter_killed_before_it_hears_anything_is_started_again(
    monkeypatch: pytest.MonkeyPatch, children: Any
) -> None:
    """As above, before the functions are sent."""
    killed: list[int] = []
    ask = host.Nursery.ask

    def kill_first(nursery: host.Nursery, *args: Any, **options: Any) -> Any:
        if not killed:
            killed.append(nursery.process.pid)
            nursery.process.kill()
            nursery.process.wait()
        return ask(nursery, *args, **options)

    monkeypatch.setattr(host.Nursery, "ask", kill_first)
    loader = hr.range(20).map(userfns.double, variant="processes").batch(4).loader(threads=1, output="numpy")
    with loader:
        assert [x for b in loader for x in b.value.tolist()] == [2 * x for x in range(20)]
    assert killed


def test_torch_threads_in_the_program_do_not_hang_workers(children: Any) -> None:
    """pytorch#75147, #1355: a lock of a thread pool that was held when the worker was forked."""
    torch = pytest.importorskip("torch")
    a = torch.ones(400, 400)
    for _ in range(3):
        a = (a @ a) / 400
    pipe = hr.range(40).map(reportfns.product, variant="processes").batch(4)
    got = [x for b in pipe.loader(threads=2, output="numpy") for x in b.value.tolist()]
    assert np.allclose(got, [200.0 * x * x for x in range(40)])


@pytest.mark.parametrize("seed_globals", [False, True])
def test_workers_do_not_draw_the_same_numbers(seed_globals: bool, children: Any) -> None:
    """pytorch#5059: equal NumPy seeds in all workers, and in all epochs."""
    pipe = hr.from_dataset(reportfns.Draws(), variant="processes", seed_globals=seed_globals, version="1").batch(8)
    drawn = []
    for batch in pipe.loader(threads=2, epochs=3, output="numpy"):
        drawn += [x for values in batch for x in values.tolist()]
    assert len(set(drawn)) == len(drawn) == 3 * 64 * 2


SAMPLES = 300


def samples(kind: str) -> hr.Pipeline:
    """A pipeline over the numbers below SAMPLES, from what people load them from."""
    if kind in ("map-style", "map-style in processes"):
        variant: Any = "processes" if "processes" in kind else "threads"
        return hr.from_dataset(userfns.Squares(SAMPLES), names=["square", "id"], variant=variant)
    if kind == "iterable":
        return hr.from_iterable([{"id": i} for i in range(SAMPLES)])
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_dict({"id": list(range(SAMPLES))})
    if kind == "huggingface map-style":
        return hr.from_dataset(table)
    return hr.from_iterable(table.to_iterable_dataset(num_shards=4))


def train(
    pipe: hr.Pipeline, world: int, state: Any, steps: int | None, **options: Any
) -> tuple[list[int], Any, set[int]]:
    """(samples seen by all ranks, the state of rank 0, numbers of steps) after `steps` steps."""
    seen: list[int] = []
    states, counts = [], set()
    for rank in range(world):
        with pipe.loader(shard=(rank, world), threads=2, output="numpy", **{"even": "none", **options}) as loader:
            if state is not None:
                loader.load_state_dict(state)
            done = 0
            for batch in loader:
                seen += batch.id.tolist()
                states.append(json.loads(json.dumps(loader.state_dict())))
                done += 1
                if done == steps:
                    break
            counts.add(done)
    return seen, states[steps - 1 if steps is not None else 0], counts


@pytest.mark.parametrize(
    ("kind", "worlds"),
    [
        ("map-style in processes", (1, 2)),
        *itertools.product(
            ["map-style", "iterable", "huggingface map-style", "huggingface iterable"], [(1, 1), (3, 3), (2, 3)]
        ),
    ],
)
def test_no_sample_is_lost_or_repeated_on_resume(kind: str, worlds: tuple[int, int], children: Any) -> None:
    """huggingface/datasets#7901: with several workers and ranks, what workers had in flight was lost or came twice."""
    pipe = samples(kind)
    if "map-style" in kind:
        pipe = pipe.shuffle(seed=1)
    pipe = pipe.batch(8)
    head, state, _ = train(pipe, worlds[0], None, 9)
    rest, _, _ = train(pipe, worlds[1], state, None)
    assert sorted(head + rest) == list(range(SAMPLES))


@pytest.mark.parametrize("kind", ["map-style", "huggingface map-style"])
@pytest.mark.parametrize("even", ["drop", "repeat"])
def test_ranks_make_equal_steps_before_and_after_a_resume(kind: str, even: Any, children: Any) -> None:
    """huggingface/datasets#6623: shares that differ by a record make steps that differ by one."""
    pipe = samples(kind).shuffle().batch(7)
    head, state, _ = train(pipe, 8, None, 2, even=even)
    for world in (3, 8):
        rest, _, counts = train(pipe, world, state, None, even=even)
        assert len(counts) == 1
        assert set(head + rest) <= set(range(SAMPLES)) and len(set(head + rest)) > SAMPLES - world
        assert even == "drop" or set(head + rest) == set(range(SAMPLES))


RANK = """
import sys, torch.distributed as dist, torch, headrace as hr
rank, path = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2)
steps = 0
for batch in hr.range(101).shuffle().batch(10).loader(even="repeat", output="torch"):
    dist.all_reduce(batch.value.sum())  # waits for the other, as DDP does
    steps += 1
print(steps)
"""


def test_no_rank_runs_dry(tmp_path: pathlib.Path) -> None:
    """huggingface/datasets#6623: a rank with one batch less leaves the others waiting for ever."""
    pytest.importorskip("torch")
    script = tmp_path / "rank.py"
    script.write_text(RANK)
    path = os.pathsep.join([str(pathlib.Path(hr.__file__).parents[1]), *(p for p in sys.path if p)])
    ranks = [
        subprocess.Popen(
            [sys.executable, str(script), str(rank), str(tmp_path / "meet")],
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        assert [process.communicate(timeout=1200)[0] for process in ranks] == ["6\n", "6\n"]
    finally:
        for process in ranks:
            process.kill()


def test_a_second_start_after_ctrl_c_finds_nothing_stale(tmp_path: pathlib.Path) -> None:
    """mosaicml/streaming#781: the next start stumbles over what the interrupted one left."""
    text = """
import os, signal, headrace as hr, reportfns
pipe = hr.range(200).map(reportfns.large, variant="processes").batch(2)
for start in range(2):
    try:
        for i, batch in enumerate(pipe.loader(threads=2, output="numpy")):
            if start == 0 and i == 2:
                os.kill(os.getpid(), signal.SIGINT)
            if i == 5:
                print("goes")
                break
    except KeyboardInterrupt:
        print("interrupted")
"""
    out = run_script(tmp_path, text)
    assert out.stdout.split() == ["interrupted", "goes"], out.stderr
