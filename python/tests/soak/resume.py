"""Kill, resume, compare: `make soak-resume`, or resume.py --trials N --seed S.

A trial draws a pipeline and trains on it with ranks that are processes. All of them are
killed with SIGKILL at a random moment; the next world, of another size, resumes from the
last step of which every rank has a complete state, until the last world ends by itself.
Records trained on after that step count as lost and are repeated. The records of all
worlds together must then be those of an undisturbed run: none lost, none twice,
the same bytes, and where places are known beforehand in the same order. Meanwhile worker
processes are killed alone, and ranks die while they write a state.

A trial depends on the seed, its number, and the clock: the same seed draws the same
pipelines and worlds, the moments of the kills differ.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import math
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from typing import Any, NamedTuple

import graphs
import rank as ranks

import headrace as hr

END = 1 << 30  # the step after the last of an epoch
TIMEOUT_S = 300.0  # of a world; only a hang takes so long

Place = tuple[int, int]  # epoch, steps done in it
Record = list[Any]
Steps = dict[Place, list[Record]]  # what a rank got, by epoch and number of the step


class Failure(Exception):
    """A trial that did not come out as it must."""


class Life(NamedTuple):
    """What a world did that was kept."""

    size: int
    first: Place  # it began here, and was brought to its end there
    last: Place
    ranks: list[Steps]

    def has(self, epoch: int) -> bool:
        """Whether it did something of this epoch, if only find out that nothing was left."""
        return self.first[0] + (self.first[1] == END) <= epoch <= self.last[0]


class World:
    """The ranks of one life of a training run."""

    def __init__(self, folder: pathlib.Path, size: int, job: dict[str, Any]) -> None:
        self.folder, self.size, self.job = folder, size, job
        folder.mkdir()
        (folder / "job.json").write_text(json.dumps(job))
        path = os.pathsep.join([str(pathlib.Path(hr.__file__).parents[1]), *(p for p in sys.path if p)])
        self.ranks = []
        for number in range(size):
            args = [sys.executable, ranks.__file__, str(folder), str(number), str(size)]
            with open(folder / f"err-{number}", "w") as errors:
                self.ranks.append(
                    subprocess.Popen(
                        args,
                        env={**os.environ, "PYTHONPATH": path},
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=errors,
                        text=True,
                    )
                )

    def live(self, chance: random.Random, steps: int | None) -> bool:
        """Run until rank 0 has made about `steps` steps, then kill all; None: to the end.
        Says whether they came to the end."""
        try:
            for one in self.ranks:
                assert one.stdout is not None and one.stdin is not None
                if one.stdout.readline() != "ready\n":
                    raise Failure(f"a rank did not start:\n{self.errors()}")
            for one in self.ranks:
                assert one.stdin is not None
                with contextlib.suppress(BrokenPipeError):
                    one.stdin.write("\n")
                    one.stdin.flush()
            self._wait(chance, steps)
        finally:
            for one in self.ranks:
                one.kill()
            ended = [one.wait() for one in self.ranks]
            for one in self.ranks:
                for file in (one.stdin, one.stdout):
                    if file is not None:
                        with contextlib.suppress(BrokenPipeError):
                            file.close()
        if any(code not in (0, -signal.SIGKILL) for code in ended):
            raise Failure(f"a rank failed:\n{self.errors()}")
        return not any(ended)

    def _wait(self, chance: random.Random, steps: int | None) -> None:
        until = time.monotonic() + TIMEOUT_S
        worker = self.job["spec"]["map"] == "processes" and chance.random() < 0.7
        at = chance.randrange(steps + 1) if steps is not None else 2
        while any(one.poll() is None for one in self.ranks):
            if time.monotonic() > until:
                raise Failure(f"it hangs:\n{self.errors()}")
            if any(one.poll() not in (None, 0) for one in self.ranks):
                return  # a rank died, so all do
            done = (self.folder / "log-0").read_bytes().count(b"\n")
            if worker and done >= at and kill_a_worker(chance, [one.pid for one in self.ranks]):
                worker = False
            if steps is not None and done >= steps:
                time.sleep(chance.random() * 0.01)
                return
            time.sleep(0.002)

    def errors(self) -> str:
        """What ranks wrote to stderr."""
        texts = [(self.folder / f"err-{n}").read_text() for n in range(self.size)]
        return "\n".join(f"rank {n}: {text[-1500:]}" for n, text in enumerate(texts) if text)

    # ---- what they left ----

    def place(self) -> Place | None:
        """The furthest place of which every rank has a state."""
        have = [self._states(number) for number in range(self.size)]
        places = {place for one in have for place in one}
        common = [p for p in places if all(_state_at(one, p) is not None for one in have)]
        return max(common, default=None)

    def states(self, place: Place) -> list[dict[str, Any]]:
        """The state of each rank at `place`."""
        found = [_state_at(self._states(number), place) for number in range(self.size)]
        return [json.loads((self.folder / name).read_text()) for name in found if name is not None]

    def _states(self, number: int) -> dict[Place, str]:
        found = {}
        for file in self.folder.iterdir():
            if match := re.fullmatch(rf"(state|last|end)-{number}-(\d+)(?:-(\d+))?", file.name):
                kind, epoch, step = match.groups()
                found[int(epoch), END if kind == "end" else int(step)] = file.name
                if kind == "last":  # this rank has no more, others may
                    found[int(epoch), END - 1] = file.name
        return found

    def kept(self, place: Place) -> list[Steps]:
        """What each rank trained on ahead of `place`."""
        made = []
        for number in range(self.size):
            steps: Steps = {}
            for line in (self.folder / f"log-{number}").read_text().splitlines(keepends=True):
                if line.endswith("\n"):
                    one = json.loads(line)
                    if (one["epoch"], one["step"]) < place:
                        steps[one["epoch"], one["step"]] = one["records"]
            made.append(steps)
        return made


def _state_at(have: dict[Place, str], place: Place) -> str | None:
    """A rank that has ended the epoch stays after its last step, whatever others do."""
    if place in have:
        return have[place]
    epoch, step = place
    if step < END - 1 and (epoch, END - 1) in have:
        last = max(s for e, s in have if e == epoch and s < END - 1)
        return have[epoch, END - 1] if last < step else None
    return None


def kill_a_worker(chance: random.Random, parents: list[int]) -> bool:
    """SIGKILL to one process below these."""
    found, waiting = [], list(parents)
    while waiting:
        for file in pathlib.Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                below = list(map(int, file.read_text().split()))
                found += below
                waiting += below
    if not found:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(chance.choice(found), signal.SIGKILL)
    return True


# ---- a trial ----


def can_move(spec: graphs.Spec) -> bool:
    """Whether the world may change within an epoch; a window after a filter forbids it."""
    return not spec["window"]


def is_plain(spec: graphs.Spec) -> bool:
    """Whether every record's place is known beforehand."""
    return not spec["filter"] and not spec["children"] and not spec["window"]


def next_states(spec: graphs.Spec, moves: bool, states: list[Any], chance: random.Random) -> list[Any]:
    """What the next world is given: each rank its own, all the same, or all merged."""
    if not moves:
        return states
    if is_plain(spec) and chance.random() < 0.7:
        return states[:1]
    return [hr.merge_states(states)]


def trial(folder: pathlib.Path, chance: random.Random, worlds: list[int], command: str, spec: graphs.Spec) -> str:
    """One trial; Failure with the reason. Returns a description of what was done."""
    graphs.prepare(spec, folder, command)
    moves = can_move(spec) and chance.random() < 0.85
    if not moves:
        worlds = [chance.choice([1, 2, 3])] * len(worlds)
    states: list[Any] = []
    place: Place = (0, 0)
    lives: list[Life] = []
    for number, size in enumerate(worlds):
        epoch = place[0] + (place[1] == END)
        if epoch >= spec["epochs"]:
            break
        job = {
            "spec": spec, "data": str(folder), "states": states, "epoch": epoch, "bare": chance.random() < 0.5,
            "every": chance.choice([1, 2, 5]), "pause": chance.choice([0, 0.002, 0.01]), "die": None,
        }  # fmt: skip
        steps = max(1, math.ceil((spec["epochs"] - epoch) * spec["count"] / (size * spec["batch"])))
        target = None if number + 1 == len(worlds) else chance.randrange(max(1, steps * 2 // 5))
        if target is not None and chance.random() < 0.3:
            job["die"] = [chance.randrange(size), epoch, job["every"] * max(1, target // job["every"])]
        world = World(folder / f"world-{number}", size, job)
        ended = world.live(chance, target)
        if target is None and not ended:
            raise Failure(f"the last world did not end:\n{world.errors()}")
        found = world.place()
        if found is None:
            lives.append(Life(size, place, place, [{} for _ in range(size)]))
            continue
        lives.append(Life(size, place, found, world.kept(found)))
        place = found
        states = next_states(spec, moves, world.states(place), chance)
    compare(spec, moves, lives, folder)
    return " -> ".join(str(life.size) for life in lives)


def undisturbed(spec: graphs.Spec, folder: pathlib.Path, number: int, size: int) -> Steps:
    """What a rank receives if none is killed."""
    loader = ranks.loader_of({"spec": spec, "data": str(folder), "states": [], "bare": True}, number, size)
    return {(epoch, step): ranks.digests(batch) for epoch in range(spec["epochs"]) for step, batch in enumerate(loader)}


def compare(spec: graphs.Spec, moves: bool, lives: list[Life], folder: pathlib.Path) -> None:
    """All lives together against the undisturbed run."""
    whole = undisturbed({**spec, "tail": "none"}, folder, 0, 1)
    for epoch in range(spec["epochs"]):
        wanted = in_order([whole], epoch)
        got = [record for life in lives for record in in_order(life.ranks, epoch)]
        size = max(life.size for life in lives if life.has(epoch))
        compare_epoch(spec, f"epoch {epoch}", wanted, got, size)
    if not moves:
        size = lives[0].size
        for number in range(size):
            same = undisturbed(spec, folder, number, size)
            for epoch in range(spec["epochs"]):
                wanted = [same[p] for p in sorted(same) if p[0] == epoch]
                got = [life.ranks[number][p] for life in lives for p in sorted(life.ranks[number]) if p[0] == epoch]
                if wanted != got:
                    raise Failure(f"rank {number} of {size}, epoch {epoch}: batches differ: {differ(wanted, got)}")


def in_order(life: list[Steps], epoch: int) -> list[Record]:
    """The records of an epoch, those of ranks in turns."""
    shares = [[r for p in sorted(one) if p[0] == epoch for r in one[p]] for one in life]
    longest = max(map(len, shares), default=0)
    return [share[i] for i in range(longest) for share in shares if i < len(share)]


def compare_epoch(spec: graphs.Spec, where: str, wanted: list[Record], got: list[Record], size: int) -> None:
    """Nothing lost, nothing twice but what the tail allows; in order where places are known."""
    each = 3 if spec["children"] else 1
    tail = spec["tail"]
    lost_max = size * (spec["batch"] - 1) if tail == "drop_last" else (size - 1) * each if tail == "drop" else 0
    twice_max = (size - 1) * each if tail == "repeat" else 0
    key = collections.Counter(map(tuple, wanted))
    had = collections.Counter(map(tuple, got))
    lost, twice = key - had, had - key
    unknown = [r for r in twice if r not in key]
    if unknown:
        raise Failure(f"{where}: records of other bytes: {unknown[:3]}; lost {list(lost)[:3]}")
    if lost.total() > lost_max or twice.total() > twice_max:
        raise Failure(f"{where}: lost {lost.total()} {list(lost)[:5]}, twice {twice.total()} {list(twice)[:5]}")
    if is_plain(spec):
        left = iter(wanted)
        body = got[: len(wanted)] if tail == "repeat" else got
        if not all(any(r == w for w in left) for r in body):
            raise Failure(f"{where}: the order differs: {differ(wanted, got)}")


def differ(wanted: list[Any], got: list[Any]) -> str:
    """Where two lists part."""
    at = next((i for i, (a, b) in enumerate(zip(wanted, got, strict=False)) if a != b), min(len(wanted), len(got)))
    return (
        f"at {at} of {len(wanted)} and {len(got)}: {str(wanted[at : at + 1])[:200]} and {str(got[at : at + 1])[:200]}"
    )


# ---- many ----


def run(number: int, seed: int, worlds: list[int], command: str, keep: bool = False) -> dict[str, Any]:
    """Trial `number`, as a line of the summary."""
    chance = random.Random(f"{seed} {number}")
    spec = graphs.draw(chance)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="headrace-soak-"))
    begin = time.monotonic()
    done: dict[str, Any] = {"trial": number, "spec": spec, "worlds": "", "error": None}
    try:
        done["worlds"] = trial(folder, chance, worlds, command, spec)
    except Failure as failure:
        done["error"] = str(failure)
    except Exception:  # noqa: BLE001 - a trial that cannot be run has failed
        done["error"] = traceback.format_exc()
    finally:
        if keep and done["error"] is not None:
            done["folder"] = str(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    done["seconds"] = round(time.monotonic() - begin, 2)
    return done


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="number of the first trial")
    parser.add_argument("--seed", type=int, default=None, help="default: another one each time")
    parser.add_argument("--worlds", default="1,2,3,8,1")
    parser.add_argument("--keep", action="store_true", help="keep the folders of failed trials")
    parser.add_argument("--out", type=pathlib.Path, help="the summary as JSON lines")
    args = parser.parse_args()
    seed = random.randrange(1 << 30) if args.seed is None else args.seed
    command = os.environ.get("HEADRACE_COMMAND", "build/headrace")
    worlds = [int(w) for w in args.worlds.split(",")]
    print(f"seed {seed}, {args.trials} trials of worlds {args.worlds}", flush=True)
    failed = 0
    for number in range(args.first, args.first + args.trials):
        done = run(number, seed, worlds, command, args.keep)
        failed += done["error"] is not None
        word = "ok" if done["error"] is None else f"FAILED: {done['error']}\n  {done['spec']} {done.get('folder', '')}"
        print(f"trial {number}: {done['worlds']} in {done['seconds']} s: {word}", flush=True)
        if args.out is not None:
            with open(args.out, "a") as file:
                file.write(json.dumps(done) + "\n")
    print(f"{args.trials - failed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
