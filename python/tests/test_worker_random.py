"""What user code draws from random, numpy.random and torch: distinct in all workers and epochs."""

from __future__ import annotations

import functools
import pathlib
import random
import subprocess
import sys
import textwrap
import time
from typing import Any

import numpy as np
import pytest

import headrace as hr
import latefns
from headrace import seeding

torch = pytest.importorskip("torch")
import drawfns  # noqa: E402 - imports torch

OUTPUTS = ["a: int64", "b: int64", "c: int64"]


def run(pipe: hr.Pipeline, **options: Any) -> list[tuple[int, ...]]:
    """What the map drew, record by record."""
    return [row for batch in pipe.loader(output="numpy", **options) for row in rows_of(batch)]


def rows_of(batch: hr.Batch) -> list[tuple[int, ...]]:
    return list(zip(*(batch[name].tolist() for name in batch), strict=True))


def drawing(fn: Any, count: int = 120, **options: Any) -> hr.Pipeline:
    outputs = OUTPUTS if fn is drawfns.draws else [*OUTPUTS, "pid: int64"]
    return hr.range(count).map(fn, fields="value", outputs=outputs, version="1", **options).batch(4)


def check_distinct(rows: list[tuple[int, ...]]) -> None:
    drawn = [number for row in rows for number in row[:3]]
    assert len(set(drawn)) == len(drawn)


@pytest.mark.parametrize("fn", [drawfns.draws_and_process, latefns.draws])
def test_workers_and_epochs_draw_different_numbers(fn: Any) -> None:
    pipe = drawing(fn, variant="processes")
    together = run(pipe, threads=3, epochs=2)
    assert len(together) == 240 and len({row[3] for row in together}) > 1
    check_distinct(together)
    loader = pipe.loader(threads=2, output="numpy", seed=1)
    check_distinct(together + [row for _ in range(2) for batch in loader for row in rows_of(batch)])


def test_main_is_no_exception(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent("""\
            import random, time
            import numpy as np, numpy.random
            import torch
            import headrace as hr

            def draw(x):
                time.sleep(0.002)
                return random.getrandbits(62), np.random.randint(1 << 62), int(torch.randint(1 << 62, ()))

            if __name__ == "__main__":
                names = ["a: int64", "b: int64", "c: int64"]
                pipe = hr.range(100).map(draw, fields="value", outputs=names, variant="processes")
                drawn = [int(n) for b in pipe.batch(4).loader(epochs=2, threads=2) for f in b for n in b[f]]
                assert len(drawn) == 600 and len(set(drawn)) == 600, len(set(drawn))
            """)
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_one_worker_draws_the_same_again() -> None:
    pipe = drawing(drawfns.draws, variant="processes")
    first = run(pipe, threads=0, epochs=2, seed=3)
    assert first == run(pipe, threads=0, epochs=2, seed=3)
    check_distinct(first + run(pipe, threads=0, epochs=2, seed=4))


def test_ranks_and_resumed_runs_draw_numbers_of_their_own() -> None:
    pipe = drawing(drawfns.draws, variant="processes")
    ranks = [run(pipe, threads=0, shard=(rank, 2)) for rank in range(2)]
    check_distinct(ranks[0] + ranks[1])
    loader = pipe.loader(threads=0, output="numpy")
    for batch in loader:
        before = rows_of(batch)
        break
    resumed = pipe.loader(threads=0, output="numpy")
    resumed.load_state_dict(loader.state_dict())
    check_distinct(before + [row for batch in resumed for row in rows_of(batch)])


def test_a_worker_does_not_repeat_the_draws_of_the_one_it_replaces(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "drawn"
    fn = functools.partial(drawfns.dies_at_its_first_draw, file=str(file))
    pipe = hr.range(3).map(fn, fields="value", outputs=["a: int64"], variant="processes", version="1").batch(3)
    assert len(run(pipe, threads=0)) == 3
    lines = file.read_text().splitlines()
    assert len(lines) == 5
    check_distinct([tuple(map(int, line.split())) for line in lines])


@pytest.mark.parametrize("fn", [drawfns.draws, latefns.draws])
def test_numbers_seeded_by_the_record_do_not_depend_on_workers(fn: Any) -> None:
    seeded = functools.partial(drawing, fn, seed_globals=True)
    one, three = (run(seeded(variant="processes"), threads=n, epochs=2) for n in (1, 3))
    inline = run(seeded(variant="inline"), threads=2, epochs=2)
    assert [r[:3] for r in one] == [r[:3] for r in three] == [r[:3] for r in inline]
    check_distinct(one)
    check_distinct(one + run(seeded(variant="processes"), threads=2, seed=1))


def test_all_bits_of_a_key_count() -> None:
    """Of torch.manual_seed the lower 32 only: 100,000 records would have some equal pairs."""
    rows = []
    for key in [5, 5 | 1 << 31, 5 | 1 << 32, 5 | 1 << 63, 5 | 1 << 64, 5 | 1 << 127, 5 | 1 << 128]:
        with seeding.seeded(key):
            rows.append(drawfns.draws(0))
    check_distinct(rows)


def states() -> tuple[Any, ...]:
    kept = np.random.get_state(legacy=False)
    return random.getstate(), str(kept), torch.get_rng_state().tolist()


@pytest.mark.parametrize("threads", [0, 2])
def test_seeding_by_the_record_gives_the_trainers_generators_back(threads: int) -> None:
    before = states()
    pipe = hr.range(20).map(drawfns.draws, fields="value", outputs=OUTPUTS, variant="inline", seed_globals=True)
    pipe = pipe.flat_map(drawfns.each_draws, fields="a", outputs=["n: int64"], variant="inline", seed_globals=True)
    rows = run(pipe.batch(8), threads=threads)
    assert len(rows) == 120 and len(set(rows)) == 120 and states() == before
    with pytest.raises(hr.CodeError, match="ZeroDivisionError"):
        run(hr.range(2).map(lambda x: drawfns.draws(x)[0] // 0, variant="inline", seed_globals=True).batch(2))
    data = [0, 1, 2]
    assert len(hr.from_dataset(Drawing(data), variant="inline", seed_globals=True).batch(3).fields) == 1
    assert states() == before


def test_nodes_that_seed_by_the_record_take_turns() -> None:
    def slow(value: int) -> int:
        first = random.getrandbits(30)
        time.sleep(0.002)
        return first << 30 | random.getrandbits(30)

    before = states()
    pipe = hr.range(40)
    for _ in range(3):
        pipe = pipe.map(slow, variant="inline", seed_globals=True)
    runs = [run(pipe.batch(4), threads=threads, seed=5) for threads in (0, 3)]
    assert runs[0] == runs[1] and states() == before


class Drawing:
    """A dataset whose items are drawn."""

    def __init__(self, data: list[int]) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, i: int) -> float:
        return self.data[i] + random.random() + float(np.random.random()) + float(torch.rand(()))
