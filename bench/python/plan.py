"""make bench B=plan: the orders that each rule of `headrace optimize` finds, beside the written one.

For each graph of examples/ whose data is there: what the profile predicts, and what runs take, in
turns. Before each run of the written order the graph is profiled again, so that a prediction and the
run that it is compared with see the same neighbours; how far single runs are from the runs before
them is shown beside their predictions' errors. Then chains of simulated steps whose costs are known,
against the cheapest of all their legal orders. Needs Python 3.11 and the command, nothing else.

    plan.py BUILD PHOTOS [--json] [--plot FILE.svg] [--rounds N] [--only NAME,...] [--seconds S] [--seed S]
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import pathlib
import platform
import random
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import plan_plot

STRICTNESSES = ("exact", "relaxed")
BATCH = 16  # of the graphs that have the parameter, so that even short runs have many
RUN_SECONDS = 2.0  # of CPU time in a run that is measured
LEAST_BATCHES = 12  # in a run: the first three are not counted
COMPARED = 64  # records that optimize runs in both orders
SAME = "as written"
SURE = 0.05  # chance that any of some intervals misses
PREDICTED = {"rate": "records/s", "cpu_ns": "CPU per record"}
LEAST_GAIN = 0.98  # of our orders, over the written ones and those of other rules
OURS = "headrace"
AS_WRITTEN = "written"

CACHE = tempfile.TemporaryDirectory()  # for what runs keep, which is no use to later ones

CHAINS, PAIRS, FREE = 10, 4, 2  # simulated: 10 chains of 4 * 2 + 2 steps


def call(*words: str) -> Any:
    """The JSON that the command prints."""
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "HEADRACE_CACHE": CACHE.name})
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout)


def rules(command: str) -> list[str]:
    """The rules that the command offers, as its help lists them; without the one that changes nothing."""
    text = subprocess.run([command, "optimize", "--help"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"--rule (\S+)", text)
    if found is None:
        raise RuntimeError("headrace optimize has no option --rule")
    return [rule for rule in found[1].split("|") if rule != AS_WRITTEN]


@dataclass
class Order:
    """An order of a graph's nodes, and what it takes."""

    graph: str
    params: list[str]
    nodes: list[str]
    predicted_ns: float  # CPU per record of the source
    cpu_ns: list[float] = field(default_factory=list)  # measured, one per round
    rate: list[float] = field(default_factory=list)  # records/s
    predictions: list[dict[str, Any]] = field(default_factory=list)  # of the written order's runs


@dataclass
class Row:
    """What a rule made of a pipeline."""

    pipeline: str
    rule: str
    strictness: str
    order: Order
    note: str


def gains(base: Order, order: Order) -> list[float]:
    """CPU time of `base` by that of `order` in each round."""
    return [a / b for a, b in zip(base.cpu_ns, order.cpu_ns, strict=True)]


def gain(base: Order, order: Order) -> float:
    """The median of the rounds."""
    return statistics.median(gains(base, order))


def interval(values: list[float], among: int) -> tuple[float, float]:
    """Of the median: two of the sorted values, so that with `among` intervals the chance that one misses is SURE.

    With too few values it is all of them, and the chance is larger.
    """
    ordered = sorted(values)
    count, out, chance = len(ordered), 0, 0.5 ** len(ordered)
    while out + 1 < (count + 1) // 2:
        chance += math.comb(count, out + 1) * 0.5**count
        if 2 * chance > SURE / among:
            break
        out += 1
    return ordered[out], ordered[count - 1 - out]


def is_open(values: list[float]) -> bool:
    """Whether more rounds may show that a gain is less than the least."""
    low, high = interval(values, 1)
    return low < LEAST_GAIN <= high and statistics.median(values) < 1


class Pipeline:
    """A graph with its data: its profile, and an order for each rule."""

    def __init__(self, bench: Bench, made: dict[str, Any], folder: pathlib.Path) -> None:
        self.bench, self.name, self.folder = bench, made["name"], folder
        self.graph: str = made["graph"]
        values = dict(made["params"])
        if re.search(r"^  batch:", pathlib.Path(self.graph).read_text(), re.M):
            values["batch"] = str(BATCH)
        self.params = [word for name, value in values.items() for word in ("-p", f"{name}={value}")]
        self.profile = str(folder / "profile.json")
        known = self.measure(self.profile)
        self.names: list[str] = [n["node"] for n in known["nodes"]]
        sources = max(n["records_in"] for n in known["nodes"]) or 1
        self.total_ns = sum(n["cpu_ns"] * n["records_in"] for n in known["nodes"]) / sources
        self.written = Order(self.graph, self.params, [], self.total_ns)
        self.rows: list[Row] = [Row(self.name, AS_WRITTEN, "", self.written, "")]

    def measure(self, path: str) -> Any:
        """Writes a profile of the written order to a file."""
        options = ("--fuse", "--json", "-o", path, "--seconds", str(self.bench.seconds))
        return call(self.bench.command, "profile", self.graph, *self.params, *options)

    def find(self, rule: str, strictness: str) -> None:
        """Adds a row for the rule; orders that were found before are measured once."""
        path = str(self.folder / f"{rule}-{strictness}.yaml")
        options = ("--profile", self.profile, "--rule", rule, "--strictness", strictness, "--records", str(COMPARED))
        found = call(self.bench.command, "optimize", self.graph, *self.params, *options, "-q", "--json", "-o", path)
        note = f"dropped: {found['dropped']}" if found["dropped"] else ""
        order = self.written
        if found["moved"] > 0:
            predicted = self.total_ns - found["written_ns"] + found["predicted_ns"]
            same = [row.order for row in self.rows if row.order.nodes == found["nodes"]]
            order = same[0] if same else Order(path, [], found["nodes"], predicted)
        self.rows.append(Row(self.name, rule, strictness, order, note))

    def orders(self) -> list[Order]:
        """The different ones, the written one first."""
        return list({id(row.order): row.order for row in self.rows}.values())

    def contests(self) -> Iterator[tuple[Order, Order]]:
        """Other orders, as written or of another rule with the same strictness, with ours."""
        for ours in self.rows:
            for other in self.rows if ours.rule == OURS else ():
                if other.strictness in ("", ours.strictness) and other.order is not ours.order:
                    yield other.order, ours.order

    def run(self, order: Order) -> None:
        """Adds a round's figures."""
        records = max(int(RUN_SECONDS * 1e9 / max(order.predicted_ns, 20)), LEAST_BATCHES * BATCH)
        options = ("--json", "-q", "--epochs", "0", "--limit", str(records), "--errors", "skip")
        by: tuple[str, ...] = ()
        if order is self.written:
            by = ("--profile", str(self.folder / "round.json"))
            self.measure(by[1])
        made = call(self.bench.command, "run", order.graph, *order.params, *options, *by)
        steady = made["steady"]
        if "prediction" in made:
            order.predictions.append(made["prediction"])
        if steady["records"] == 0:
            raise RuntimeError(f"{self.name}: {records} records make too few batches to measure")
        order.cpu_ns.append(steady["cpu_seconds"] / steady["records"] * 1e9)
        order.rate.append(steady["records"] / steady["seconds"])


# ---- simulated steps ----


@dataclass
class Step:
    """A step of known cost: its time, the part of the records that it keeps, what it must follow."""

    name: str
    text: str
    us: float
    kept: float
    after: int  # number of a step, or -1


def draw_chain(rng: random.Random) -> list[Step]:
    """Pairs of a step that takes time and a filter that needs it, and free steps, in any legal order."""
    primes = rng.sample([2, 3, 5, 7, 11, 13], PAIRS)
    blocks: list[list[Step]] = []
    for at, prime in enumerate(primes):
        keep = rng.randint(max(1, prime // 3), prime - 1)
        us = round(3 * 20 ** rng.random(), 1)
        spin = Step(f"a{at}", f"debug.spin: {{us: {us}}}", us, 1, -1)
        where = f'record.filter: {{expr: "value % {prime} < {keep}", depends_on: [a{at}]}}'
        blocks += [[spin, Step(f"f{at}", where, 0, keep / prime, -1)]]
    for at in range(FREE):
        us = round(3 * 20 ** rng.random(), 1)
        blocks += [[Step(f"b{at}", f"debug.spin: {{us: {us}}}", us, 1, -1)]]
    rng.shuffle(blocks)
    steps: list[Step] = []
    for block in blocks:
        for step in block:
            step.after = len(steps) - 1 if step.name[0] == "f" else -1
            steps.append(step)
    return steps


def chain_text(steps: list[Step]) -> str:
    """The chain as a graph."""
    lines = ["headrace: 1", "pipeline:", "  - source.range: {n: 30030000}"]
    for step in steps:
        lines += [f"  - {step.text}", f"    name: {step.name}"]
    return "\n".join([*lines, "  - batch.stack: {size: 16}", ""])


def cost(steps: list[Step]) -> float:
    """Time of the steps for each record of the source, in us."""
    total, records = 0.0, 1.0
    for step in steps:
        total += records * step.us
        records *= step.kept
    return total


def cheapest(steps: list[Step]) -> float:
    """The least cost of all legal orders: records that pass a set of steps do not depend on its order."""
    every = (1 << len(steps)) - 1
    least = {0: (0.0, 1.0)}
    for chosen in range(every):
        if chosen not in least:
            continue
        total, records = least[chosen]
        for at, step in enumerate(steps):
            if chosen >> at & 1 or (step.after >= 0 and not chosen >> step.after & 1):
                continue
            more, there = chosen | 1 << at, total + records * step.us
            if more not in least or there < least[more][0]:
                least[more] = (there, records * step.kept)
    return least[every][0]


@dataclass
class Simulated:
    """A chain. Costs are by that of the cheapest order: as written, of the order found with the
    known costs, and of the one found with measured costs; gain: of the latter, measured."""

    written: float
    known: float
    found: float
    gain: float
    dropped: str


def tell_costs(path: pathlib.Path, steps: list[Step]) -> None:
    """Puts the known costs in place of the measured ones."""
    profile = json.loads(path.read_text())
    by_name = {step.name: step for step in steps}
    for node in profile["nodes"]:
        if step := by_name.get(node["node"]):
            node.update(cpu_ns=step.us * 1000, records_in=30030, records_out=round(step.kept * 30030))
    path.write_text(json.dumps(profile))


def simulate(bench: Bench, folder: pathlib.Path) -> list[Simulated]:
    """Optimizes chains of simulated steps."""
    rng = random.Random(bench.seed)
    graph, profile = folder / "chain.yaml", folder / "profile.json"
    options = ("--profile", str(profile), "--records", "200", "-q", "--json")
    made = []
    for _ in range(CHAINS):
        steps = draw_chain(rng)
        by_name = {step.name: step for step in steps}
        graph.write_text(chain_text(steps))
        call(
            bench.command,
            "profile",
            str(graph),
            "--fuse",
            "--json",
            "-o",
            str(profile),
            "--seconds",
            str(bench.seconds),
        )
        found = call(bench.command, "optimize", str(graph), *options)
        tell_costs(profile, steps)
        told = call(bench.command, "optimize", str(graph), *options)
        least = cheapest(steps)
        costs = [cost([by_name[name] for name in one["nodes"] if name in by_name]) / least for one in (told, found)]
        measured = found["written_run_ns"] / found["run_ns"] if found["run_ns"] else 1
        made.append(Simulated(cost(steps) / least, *costs, measured, found["dropped"] or ""))
    return made


# ---- the benchmark ----


class Bench:
    """All pipelines and chains; prints the table."""

    def __init__(self, build: pathlib.Path, args: argparse.Namespace) -> None:
        self.build, self.args = build, args
        self.command = str(build / "headrace")
        self.seconds, self.seed = args.seconds, args.seed
        self.rules = rules(self.command)
        self.rows: list[Row] = []
        self.simulated: list[Simulated] = []

    def graphs(self) -> Iterator[dict[str, Any]]:
        """The examples whose data is there; some of it was made for this run."""
        listing = subprocess.run(
            [str(self.build / "bench/pipelines"), self.args.photos], capture_output=True, text=True, check=True
        )
        for line in listing.stdout.splitlines():
            yield json.loads(line)

    def wanted(self, name: str) -> bool:
        """What --only asks for."""
        return self.args.only is None or name in self.args.only.split(",")

    def say(self, text: str) -> None:
        """Progress."""
        print(text, file=sys.stderr, flush=True)

    def measure(self, made: dict[str, Any]) -> None:
        """A pipeline: its profile, its orders, and its rounds."""
        with tempfile.TemporaryDirectory() as folder:
            pipeline = Pipeline(self, made, pathlib.Path(folder))
            for strictness in STRICTNESSES:
                for rule in self.rules:
                    pipeline.find(rule, strictness)
            orders = pipeline.orders()
            self.say(f"{pipeline.name}: {len(orders)} orders")
            for at in range(self.args.rounds_max if len(orders) > 1 else self.args.rounds):
                if at >= self.args.rounds and not any(is_open(gains(*pair)) for pair in pipeline.contests()):
                    break
                for order in orders:
                    pipeline.run(order)
        self.rows += pipeline.rows

    def run(self) -> None:
        """Everything, or what is complete when Ctrl-C stops it."""
        graphs = list(self.graphs())
        try:
            for made in graphs:
                if self.wanted(made["name"]):
                    self.measure(made)
            if self.wanted("simulated"):
                self.say("simulated")
                with tempfile.TemporaryDirectory() as folder:
                    self.simulated = simulate(self, pathlib.Path(folder))
        except KeyboardInterrupt:
            self.say("stopped")
        finally:
            for made in graphs:
                if made["graph"].endswith("/inflate.yaml"):
                    path = pathlib.Path(made["params"]["data"])
                    path.unlink(missing_ok=True)
                    path.with_name(path.name.replace("-000000.tfrecord", ".json")).unlink(missing_ok=True)

    # ---- what it shows ----

    def base(self, row: Row) -> Order:
        """The written order of a row's pipeline."""
        return next(r.order for r in self.rows if r.pipeline == row.pipeline and r.rule == AS_WRITTEN)

    def worst(self) -> list[tuple[str, float, float, bool, str]]:
        """What is claimed: the claim, the worst figure, its limit, at least or at most, and where."""
        rivals = [
            (other, row)
            for row in self.rows
            for other in self.rows
            if row.rule == OURS
            and other.rule != OURS
            and other.pipeline == row.pipeline
            and other.strictness in ("", row.strictness)
        ]
        made = []
        for what, rules in (("as written", [AS_WRITTEN]), ("by another rule", self.rules)):
            found = [(gains(other.order, row.order), other, row) for other, row in rivals if other.rule in rules]
            if not found:
                continue
            for kind, of in (
                ("median", statistics.median),
                ("that is shown", lambda values, among=len(found): interval(values, among)[1]),
            ):
                value, other, row = min(
                    ((of(values), other, row) for values, other, row in found), key=lambda one: one[0]
                )
                where = f"{place(row)}; {other.rule}"
                made.append((f"CPU time {what} / by rule headrace, least {kind}", value, LEAST_GAIN, True, where))
        for what, value in self.accuracy().items() if any(self.predicted()) else ():
            made += [(f"{what}, median of the pipelines", statistics.median(value), 0.1, False, "")]
            made += [(f"{what}, 90th percentile", percentile(value, 0.9), 0.2, False, "")]
        if self.simulated:
            known = max(chain.known for chain in self.simulated)
            made.append(("simulated, costs known: order / cheapest, worst", known, 1 + 1e-6, False, ""))
            worst = max(chain.found for chain in self.simulated)
            made.append(("simulated, costs measured: order / cheapest, worst", worst, 1.02, False, ""))
        return made

    def predicted(self) -> Iterator[Order]:
        """The written orders with predictions of their runs."""
        return (row.order for row in self.rows if row.rule == AS_WRITTEN and row.order.predictions)

    def accuracy(self) -> dict[str, list[float]]:
        """How far the cost model is from runs of the written orders: of each pipeline, by the median of its rounds."""
        return {
            f"error of predicted {what}": [
                abs(statistics.median(ratios(order, kind)) - 1) for order in self.predicted()
            ]
            for kind, what in PREDICTED.items()
        }

    def noise(self) -> Iterator[tuple[str, list[float], list[float]]]:
        """How far single runs are from their predictions, and from the runs before them."""
        for kind, what in PREDICTED.items():
            off = [abs(ratio - 1) for order in self.predicted() for ratio in ratios(order, kind)]
            runs = [[p[f"measured_{kind}"] for p in order.predictions] for order in self.predicted()]
            yield what, off, [abs(before / run - 1) for one in runs for before, run in itertools.pairwise(one)]

    def facts(self) -> dict[str, str]:
        """About the machine and the run."""
        version = subprocess.run([self.command, "--version"], capture_output=True, text=True).stdout.strip()
        return {
            "machine": f"{platform.machine()}, {len(os.sched_getaffinity(0))} CPUs, load {os.getloadavg()[0]:.1f}",
            "headrace": version,
            "rounds": str(self.args.rounds),
            "seed": str(self.seed),
        }

    def lines(self) -> Iterator[str]:
        """The table."""
        yield "plan: the orders of each rule, CPU us per record as predicted and measured, gain over the written order"
        for key, text in self.facts().items():
            yield f"  {key:<12} {text}"
        heading = (
            f"{'rule':<10}{'strictness':<12}{'predicted':>11}{'gain':>7}{'measured':>11}{'gain':>7}{'records/s':>12}"
        )
        pipeline = ""
        for row in self.rows:
            if row.pipeline != pipeline:
                pipeline = row.pipeline
                yield f"\n  {pipeline:<18}{heading}"
            yield self.line(row)
            if row.order.predictions and row.rule == AS_WRITTEN:
                yield f"  {'':<18}{self.model(row.order)}"
        if self.simulated:
            yield (
                "\n  simulated chains, cost by that of the cheapest order: as written, found with known costs, "
                "with measured ones; gain measured"
            )
            for chain in self.simulated:
                note = f"  dropped: {chain.dropped}" if chain.dropped else ""
                yield f"  {'':<18}{chain.written:>8.3f}{chain.known:>9.3f}{chain.found:>9.3f}{chain.gain:>9.2f}{note}"
        yield ""
        for what, off, before in self.noise():
            if before:
                yield (
                    f"  single runs, {what}: {spread(off)} from the prediction, {spread(before)} from the run before"
                )
        for what, value, limit, at_least, where in self.worst():
            reached = value >= limit if at_least else value <= limit
            yield (
                f"  {what:<62} {value:8.4g}, claim {'>=' if at_least else '<='} {limit:.6g}: "
                f"{'reached' if reached else 'NOT REACHED'}{' (' + where + ')' if where else ''}"
            )

    def model(self, order: Order) -> str:
        """What the cost model says of the written order beside what its runs did."""
        middle = {
            key: statistics.median(p[key] for p in order.predictions) for key in order.predictions[0] if key != "limit"
        }
        return (
            f"cost model: {middle['rate']:.5g} records/s, measured {middle['measured_rate']:.5g} without delays; "
            f"CPU {middle['cpu_ns'] / 1e3:.4g} us, measured {middle['measured_cpu_ns'] / 1e3:.4g}; "
            f"limited by {order.predictions[0]['limit']}"
        )

    def line(self, row: Row) -> str:
        """A row of the table."""
        base, order = self.base(row), row.order
        name = f"  {'':<18}{row.rule:<10}{row.strictness:<12}"
        if order is base and row.rule != AS_WRITTEN:
            return f"{name}{SAME}{'; ' + row.note if row.note else ''}"
        return (
            f"{name}{order.predicted_ns / 1e3:>11.4g}{base.predicted_ns / order.predicted_ns:>7.2f}"
            f"{statistics.median(order.cpu_ns) / 1e3:>11.4g}{gain(base, order):>7.2f}"
            f"{statistics.median(order.rate):>12.5g}"
        )

    def json(self) -> str:
        """The table as JSON."""
        rows = [
            {
                "pipeline": row.pipeline,
                "rule": row.rule,
                "strictness": row.strictness or None,
                "nodes": row.order.nodes,
                "as_written": row.order is self.base(row),
                "dropped": row.note or None,
                "predicted_ns": row.order.predicted_ns,
                "cpu_ns": row.order.cpu_ns,
                "records_per_second": row.order.rate,
                "cost_model": row.order.predictions if row.rule == AS_WRITTEN else None,
                "gain": gain(self.base(row), row.order),
            }
            for row in self.rows
        ]
        claims = [
            {"claim": what, "value": value, "at_least" if at_least else "at_most": limit, "where": where or None}
            for what, value, limit, at_least, where in self.worst()
        ]
        chains = [vars(chain) for chain in self.simulated]
        noise = [{"of": what, "predicted": off, "run_before": before} for what, off, before in self.noise()]
        return json.dumps({"facts": self.facts(), "rows": rows, "noise": noise, "simulated": chains, "claims": claims})


def ratios(order: Order, kind: str) -> list[float]:
    """What was predicted of each run, by what it took."""
    return [p[kind] / p[f"measured_{kind}"] for p in order.predictions]


def percentile(values: list[float], part: float) -> float:
    """Between neighbours by line."""
    ordered = sorted(values)
    at = part * (len(ordered) - 1)
    above = min(int(at) + 1, len(ordered) - 1)
    return ordered[int(at)] + (at - int(at)) * (ordered[above] - ordered[int(at)])


def spread(values: list[float]) -> str:
    """The median and the 90th percentile of some errors."""
    return f"{statistics.median(values):.1%} (90th percentile {percentile(values, 0.9):.1%})"


def place(row: Row) -> str:
    """The pipeline and strictness of a row, for claims."""
    return f"{row.pipeline}, {row.strictness}"


def main() -> None:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("photos", help="a folder of photos; sounds, digits and text are taken from those beside it")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--plot", type=pathlib.Path, help="also draw the table, as SVG (plan_plot.py)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rounds-max", type=int, default=15, help="where our order may be slower than another one")
    parser.add_argument("--seconds", type=int, default=3, help="to profile a pipeline")
    parser.add_argument("--only", help='names of pipelines, comma-separated; "simulated" for the chains')
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="of the simulated chains")
    args = parser.parse_args()
    bench = Bench(args.build.resolve(), args)
    bench.run()
    if args.plot is not None:
        args.plot.write_text(plan_plot.svg(json.loads(bench.json())))
    print(bench.json() if args.json else "\n".join(bench.lines()))


if __name__ == "__main__":
    main()
