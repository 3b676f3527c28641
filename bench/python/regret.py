"""make bench B=regret: our plan against random legal plans of the same graph, and our cache against other places.

For each graph of examples/ whose data is there: random plans differ in the order of nodes (those that
any rule finds without changing a byte), threads, variant, composition, buffers and chunks. Equal plans
count once, and those that equal ours not at all. All run once; the fastest run again beside ours, in
turns, until it is known whether they are faster. Regret is how much faster the best of them is. Then
the places for a cache that the cost model likes best run for a few epochs beside no cache.

What counts is CPU time by the number of threads that compute at a time: other programs change it
little, but it does not see waits and what one thread does for all.

    regret.py BUILD PHOTOS [--json] [--plans N] [--rounds N] [--only NAME,...] [--seconds S] [--seed S]
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import plan

FINALISTS = 5
ROUNDS_MIN = 8  # fewer cannot make intervals of five finalists sure
NARROW = 0.02  # half of an interval that is narrow enough
EPOCHS = 3  # of runs with a cache
CACHE_ROUNDS = 7
CACHE_RECORDS = (24, 20_000)  # of the data sets that are run with one
CACHE_NS = 3e9  # of work in an epoch, at most


@dataclass
class Candidate:
    """A way to run a pipeline."""

    label: str
    words: list[str]  # of headrace run
    key: str = ""  # equal for plans that run alike
    rate: float = 0.0  # of the first run: records per second of CPU time, times the CPUs that compute
    gains: list[float] = field(default_factory=list)  # rate by that of ours in the same round


@dataclass
class Regret:
    """Of a pipeline."""

    pipeline: str
    plans: int  # different ones
    rounds: int
    regret: float  # rate of the best plan by that of ours, minus 1: the median; 0 if ours is the best
    low: float  # the same, at least: where the interval begins
    high: float
    best: str


@dataclass
class Place:
    """A place for a cache: gains over EPOCHS epochs."""

    pipeline: str
    after: str
    where: str
    chosen: bool
    gains: list[float] = field(default_factory=list)  # predicted, one per round
    predicted: float = 1.0
    cpu_seconds: list[float] = field(default_factory=list)
    measured: float = 0.0


def records_for(total_ns: float) -> int:
    """Records of a run that is long enough to measure."""
    return max(int(plan.RUN_SECONDS * 1e9 / max(total_ns, 20)), plan.LEAST_BATCHES * plan.BATCH)


class Sweep:
    """Random plans of one pipeline, and ours."""

    def __init__(self, pipeline: plan.Pipeline, rng: random.Random) -> None:
        self.pipeline, self.rng = pipeline, rng
        self.command = pipeline.bench.command
        self.cpus = len(os.sched_getaffinity(0))
        self.graphs: list[tuple[str, list[str]]] = [
            (order.graph, order.params) for order in pipeline.orders()
        ]  # the written one first
        ours = next(row.order for row in pipeline.rows if row.rule == plan.OURS)
        self.ours = Candidate("ours", [ours.graph, *ours.params])
        self.count = 0

    def edited(self, graph: str, words: list[str]) -> str | None:
        """A plan file with other chunks and batches ahead; None if the command refuses it."""
        done = subprocess.run([self.command, "plan", graph, *words], capture_output=True, text=True)
        if done.returncode != 0:
            return None
        text = re.sub(
            r"chunk_ns: (\d+)", lambda m: f"chunk_ns: {int(int(m[1]) * 8 ** self.rng.uniform(-1, 1))}", done.stdout
        )
        text = re.sub(r"batches_ahead: (\d+)", lambda m: f"batches_ahead: {self.rng.randint(1, 2 * int(m[1]))}", text)
        self.count += 1
        path = self.pipeline.folder / f"plan{self.count}.yaml"
        path.write_text(text)
        return str(path)

    def draw(self) -> Candidate:
        """A random plan."""
        rng = self.rng
        at = rng.randrange(len(self.graphs))
        graph, params = self.graphs[at]
        words = []
        variant = rng.choice(("threads", "threads", "threads", "inline", "processes"))
        if variant != "threads":
            words += ["--variant", variant]
        threads = rng.randint(1, 2 * self.cpus)
        if variant != "inline":
            words += ["--threads", str(threads)]
        if rng.random() < 0.2:
            words += ["--no-fuse"]
        label = f"order {at}, {' '.join(words)}"
        if rng.random() < 0.6 and (path := self.edited(graph, [*params, *words])):
            return Candidate(label + ", other chunks and buffers", [graph, *params, "--plan", path])
        if rng.random() < 0.5:
            words += ["--memory", f"{2 ** rng.uniform(8, 11):.0f}MB"]
        return Candidate(f"order {at}, {' '.join(words)}", [graph, *params, *words])

    def known(self, candidate: Candidate) -> bool:
        """Sets the key; False if the command refuses the plan, as with a budget that is too small."""
        done = subprocess.run([self.command, "plan", *candidate.words], capture_output=True, text=True)
        candidate.key = re.sub(r"(?m)^.*reason: .*\n", "", done.stdout)
        return done.returncode == 0

    def run(self, candidate: Candidate) -> float:
        """The rate of a run; 0 if the command refuses it."""
        limit = str(records_for(self.pipeline.total_ns))
        options = ("--json", "-q", "--epochs", "0", "--limit", limit, "--errors", "skip")
        done = subprocess.run([self.command, "run", *candidate.words, *options], capture_output=True, text=True)
        if done.returncode != 0:
            return 0.0
        # The whole run: plans that make many batches ahead would look fast after the first few.
        made = json.loads(done.stdout)
        computing = max(min(made["threads_used"], self.cpus), 1)
        return float(made["records"] / max(made["cpu_seconds"], 1e-9) * computing)

    def finalists(self, plans: int) -> tuple[int, list[Candidate]]:
        """The fastest of different random plans, and how many there were."""
        found: dict[str, Candidate] = {}
        self.known(self.ours)
        for _ in range(plans):
            candidate = self.draw()
            if self.known(candidate) and candidate.key != self.ours.key:
                found.setdefault(candidate.key, candidate)
        for candidate in found.values():
            candidate.rate = self.run(candidate)
        ranked = sorted(found.values(), key=lambda c: -c.rate)
        return len(found), [c for c in ranked[:FINALISTS] if c.rate > 0]

    def regret(self, plans: int, rounds: int) -> Regret:
        """Runs all, then the best beside ours until their intervals are narrow or below ours."""
        plans, ranked = self.finalists(plans)
        open_ones = list(ranked)
        made = 0
        while open_ones and made < rounds:
            made += 1
            mine = self.run(self.ours)
            self.rng.shuffle(open_ones)
            for candidate in open_ones:
                candidate.gains.append(self.run(candidate) / mine)
            if made >= ROUNDS_MIN:
                open_ones = [c for c in open_ones if not settled(plan.interval(c.gains, len(ranked)))]
        if not ranked:
            return Regret(self.pipeline.name, plans, 0, 0.0, 0.0, 0.0, "")
        best = max(ranked, key=lambda c: statistics.median(c.gains))
        low, high = (max(bound - 1, 0.0) for bound in plan.interval(best.gains, len(ranked)))
        gain = max(statistics.median(best.gains) - 1, 0.0)
        return Regret(self.pipeline.name, plans, made, gain, low, high, best.label)


def settled(bounds: tuple[float, float]) -> bool:
    """Whether more rounds would not help: not faster than ours, or known well enough."""
    low, high = bounds
    return high <= 1 or (high - low) / 2 <= NARROW


def caches(pipeline: plan.Pipeline, rounds: int) -> list[Place]:
    """The best places and no cache, run for EPOCHS epochs each."""
    command, folder = pipeline.bench.command, pipeline.folder
    written = folder / "written.yaml"
    kept = folder / "entries"
    words = [pipeline.graph, *pipeline.params, "--profile", pipeline.profile, "--rule", "written", "-q"]
    proposing = ("optimize", *words, "--json", "--epochs", str(EPOCHS), "--cache-folder", str(kept))
    try:
        found = plan.call(command, *proposing)
    except RuntimeError:
        return []  # a source that does not know how many records it has
    plan.call(command, "optimize", *words, "--json", "-o", str(written))
    head, *nodes = re.split(r"^  - ", written.read_text(), flags=re.M)
    total = max((place["total_bytes"] / max(place["entry_bytes"], 1) for place in found["caches"]), default=0)
    if len(nodes) != len(pipeline.names) or not CACHE_RECORDS[0] <= total <= CACHE_RECORDS[1]:
        return []
    if total * pipeline.total_ns > CACHE_NS:
        return []
    allowed = [place for place in found["caches"] if place["refused"] is None]
    none = [place for place in allowed if place["after"] is None]
    made: list[tuple[Place, pathlib.Path]] = []
    for place in [*none, *[p for p in allowed if p["after"] is not None][:4]]:
        text = list(nodes)
        if place["after"] is not None:
            params = f": {{folder: '{kept}'}}" if place["in"] == "folder" else ""
            text.insert(pipeline.names.index(place["after"]) + 1, f"flow.cache{params}\n")
        path = folder / f"cache{len(made)}.yaml"
        path.write_text("  - ".join([head, *text]))
        one = Place(pipeline.name, place["after"] or "", place["in"] or "", place["chosen"])
        done = subprocess.run([command, "plan", str(path)], capture_output=True, text=True)
        if done.returncode == 0:  # else a place after the chosen one, which was not tried: it is refused
            made.append((one, path))
    for _ in range(rounds):
        # What memory costs changes from minute to minute, so each round has its own predictions.
        predicted = {(p["after"] or "", p["in"] or ""): p["gain"] for p in plan.call(command, *proposing)["caches"]}
        for one, path in made:
            one.gains.append(predicted[one.after, one.where])
            subprocess.run(["rm", "-rf", str(kept)], check=True)
            done = plan.call(command, "run", str(path), "--json", "-q", "--epochs", str(EPOCHS), "--errors", "skip")
            one.cpu_seconds.append(done["cpu_seconds"])
    for one, _ in made:
        one.predicted = statistics.median(one.gains)
        one.measured = statistics.median(a / b for a, b in zip(made[0][0].cpu_seconds, one.cpu_seconds, strict=True))
    return [one for one, _ in made]


class Bench(plan.Bench):
    """All pipelines; prints the tables."""

    def __init__(self, build: pathlib.Path, args: argparse.Namespace) -> None:
        super().__init__(build, args)
        self.regrets: list[Regret] = []
        self.places: list[Place] = []

    def measure(self, made: dict[str, Any]) -> None:
        rng = random.Random(f"{self.seed} {made['name']}")
        with tempfile.TemporaryDirectory() as folder:
            pipeline = plan.Pipeline(self, made, pathlib.Path(folder))
            for rule in self.rules:
                pipeline.find(rule, "exact")
            if self.args.plans > 0:
                self.regrets.append(Sweep(pipeline, rng).regret(self.args.plans, self.args.rounds))
                self.say(f"{pipeline.name}: regret {100 * self.regrets[-1].regret:.1f} %")
            self.places += caches(pipeline, min(self.args.rounds, CACHE_ROUNDS))

    def claims(self) -> list[tuple[str, float, float]]:
        """What is claimed: the claim, the figure, and its limit."""
        made = []
        if self.regrets:
            values = [one.regret for one in self.regrets]
            made += [("regret, median of the pipelines", statistics.median(values), 0.02)]
            made += [("regret, worst", max(values), 0.08)]
            least = max(one.low for one in self.regrets)
            made += [("regret that is shown (where its interval begins), worst", least, 0.08)]
        shortfalls = []
        for name in {place.pipeline for place in self.places}:
            mine = [place for place in self.places if place.pipeline == name]
            chosen = [place.measured for place in mine if place.chosen]
            if chosen:
                shortfalls.append(max(place.measured for place in mine) / chosen[0] - 1)
        if shortfalls:
            made += [("cache: best measured place / chosen one, minus 1, worst", max(shortfalls), 0.15)]
        return made

    def lines(self) -> Iterator[str]:
        yield "regret: CPU time of our plan by that of the best of random plans, and caches beside none"
        for key, text in self.facts().items():
            yield f"  {key:<12} {text}"
        heading = f"{'plans':>6}{'rounds':>8}{'regret':>9}{'at least':>10}{'at most':>9}"
        yield f"\n  {'pipeline':<18}{heading}  best of the others"
        for one in self.regrets:
            figures = f"{100 * one.regret:>8.1f}%{100 * one.low:>9.1f}%{100 * one.high:>8.1f}%"
            yield f"  {one.pipeline:<18}{one.plans:>6}{one.rounds:>8}{figures}  {one.best}"
        if self.places:
            yield f"\n  {'cache':<18}{'predicted':>10}{'measured':>10}  gain in CPU time over {EPOCHS} epochs"
        for place in self.places:
            where = f"after {place.after} in {place.where}" if place.after else "none"
            mark = "  (chosen)" if place.chosen else ""
            yield f"  {place.pipeline:<18}{place.predicted:>10.2f}{place.measured:>10.2f}  {where}{mark}"
        yield ""
        for what, value, limit in self.claims():
            yield f"  {what:<62} {value:8.4g}, claim <= {limit:g}: {'reached' if value <= limit else 'NOT REACHED'}"

    def json(self) -> str:
        claims = [{"claim": what, "value": value, "at_most": limit} for what, value, limit in self.claims()]
        return json.dumps(
            {
                "facts": self.facts(),
                "regrets": [vars(one) for one in self.regrets],
                "caches": [vars(one) for one in self.places],
                "claims": claims,
            }
        )


def main() -> None:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("photos", help="a folder of photos; sounds, digits and text are taken from those beside it")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--plans", type=int, default=200, help="random plans for each pipeline; 0: only caches")
    parser.add_argument("--rounds", type=int, default=15, help="at most; caches: 7 of them")
    parser.add_argument("--seconds", type=int, default=3, help="to profile a pipeline")
    parser.add_argument("--only", help="names of pipelines, comma-separated")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="of the random plans")
    args = parser.parse_args()
    bench = Bench(args.build.resolve(), args)
    bench.run()
    sys.stdout.write((bench.json() if args.json else "\n".join(bench.lines())) + "\n")


if __name__ == "__main__":
    main()
