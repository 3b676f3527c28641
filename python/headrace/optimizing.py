"""Pipeline.optimize: the nodes of a pipeline in the order that is cheapest.

The library finds the order and compares both (headrace/optimize.h). Here the pipeline is made
again with its nodes in other places. Names go with the nodes, and with them their random draws.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

from . import _headrace, build
from ._check import one_of, path_of
from ._types import PathLike, Rule, Strictness, Variant
from .errors import ArgumentError, CodeError, ReadError, translated
from .node import Node, Origin
from .profiling import Profile, count, number, profile, save, saved

if TYPE_CHECKING:
    from .pipeline import Pipeline

STRICTNESS: tuple[Strictness, ...] = ("exact", "close", "relaxed")  # as enum hr_strictness
RULES: tuple[Rule, ...] = ("headrace", "pecan", "written")  # as enum hr_rule
_NOT_YET = "a run whose loop waits tries worker processes; pipeline.optimize() measures them now"
_NEVER = "this run does not try worker processes; pipeline.optimize() measures them"
RULE_NUMBERS: dict[Rule, int] = {"headrace": 0, "pecan": 1, "written": 3}  # enum hr_rule


class Move(NamedTuple):
    """A node that stands elsewhere than written; places count from 1."""

    node: str
    was: int
    now: int


class CachePlace(NamedTuple):
    """A place for a cache, as predicted. Rates are records per second."""

    after: str | None  # the node that it is right after; None: no cache
    where: str  # "memory", "folder"; "" for none
    chosen: bool
    variant: Variant  # in which the pipeline was predicted to run
    entry_bytes: float  # of a record
    total_bytes: float  # of all records
    part: float  # of the records that find room, 0 to 1
    fill_rate: float  # in an epoch that fills the cache
    hit_rate: float  # in the others
    rate: float  # mean over the epochs
    gain: float  # by the rate without a cache
    refused: str  # why it cannot be there; "": it can, or it was not tried
    image: str | None = None  # the field that is kept as a JPEG; None: none is


class StepVariant(NamedTuple):
    """Where a step of your own code runs."""

    node: str
    variant: Variant
    moved: bool  # elsewhere than written
    reason: str


class Way(NamedTuple):
    """Steps of your own code in worker processes together, as predicted. Rates are records per second."""

    processes: str  # the names of what moves there, with commas; "": nothing
    rate: float
    cpu_ns: float  # per record
    gain: float  # rate by that of nothing
    reason: str  # what limits the rate


class Optimization(NamedTuple):
    """What `Pipeline.optimize` found. Times are CPU nanoseconds per record."""

    nodes: tuple[str, ...]  # names in the order of the pipeline
    moved: tuple[Move, ...]
    strictness: Strictness
    rule: Rule
    needs: Strictness  # how far its swaps let records differ: as little as pays; "exact" if nothing moved
    best: bool  # the profile knows no cheaper order that needs no more
    written_ns: float  # of the nodes that might have moved, per record of the sources: as measured
    predicted_ns: float  # and as predicted in the new order
    records: int  # that both orders were run over; 0 if nothing would move
    written_run_ns: float  # of the whole pipeline, per record that was compared: as written
    run_ns: float  # and in the new order
    difference: float  # the largest of a level, as a part of the range of its field; 0.0: the bytes are the same
    dropped: str  # why a cheaper order was not taken; "" if none was dropped
    profile: Profile
    caches: tuple[CachePlace, ...] = ()  # places for a cache, the best first; () unless `epochs` was given
    steps: tuple[StepVariant, ...] = ()  # of your own code
    ways: tuple[Way, ...] = ()  # to run them: the chosen one, then the others from the fastest on
    unmeasured: str = ""  # why no other order was looked for; "" if one was

    @property
    def order(self) -> tuple[Rule, Strictness]:
        """The rule and the strictness that give this order."""
        return (self.rule, self.needs) if self.moved else ("written", "exact")

    @property
    def predicted(self) -> float:
        """How many times faster the nodes that may move should be; 1.0 if none moved."""
        return self.written_ns / self.predicted_ns if self.moved and self.predicted_ns > 0 else 1.0

    @property
    def measured(self) -> float:
        """How many times faster the pipeline is: CPU time of the written order by that of this one."""
        return self.written_run_ns / self.run_ns if self.moved and self.run_ns > 0 else 1.0

    def __str__(self) -> str:
        text = self._order()
        return "\n".join([text, *map(_place, self.caches[:4]), *self.variants()])

    def variants(self) -> list[str]:
        """Lines about where your own code runs, and why."""
        if not self.steps:
            return []
        lines = [_way(way, "" if at else " (chosen)") for at, way in enumerate(self.ways[:2])]
        if all(way.processes for way in self.ways[:2]):
            lines += [_way(way, "") for way in self.ways[2:] if not way.processes]
        return lines + [f"  {step.node}: {step.variant}: {step.reason}" for step in self.steps]

    def _order(self) -> str:
        if self.unmeasured:
            return f"the order stays as written: not measured, as {self.unmeasured}"
        if not self.moved:
            return "\n".join([f"no order is cheaper ({self.strictness}, rule {self.rule})", *self._dropped()])
        lines = [f"{len(self.moved)} nodes stand elsewhere ({self.strictness}, rule {self.rule})"]
        was = {move.node: f"  (was {move.was})" for move in self.moved}
        lines += [f"  {at:3}  {name}{was.get(name, '')}" for at, name in enumerate(self.nodes, 1)]
        lines.append(
            f"  CPU per record: {_time(self.written_run_ns)} as written, {_time(self.run_ns)} now: "
            f"{self.measured:.2f}x ({self.predicted:.2f}x predicted for the nodes that may move)"
        )
        lines += ["  " + self._difference(), *self._dropped()]
        if not self.best and self.rule == "headrace":
            lines.append("  too many nodes may move to try all orders: there may be a better one")
        elif not self.best:
            lines.append("  another order may be cheaper: see rule headrace")
        return "\n".join(lines)

    def _dropped(self) -> list[str]:
        return [f"  the cheapest by the profile was dropped: {self.dropped}"] if self.dropped else []

    def _difference(self) -> str:
        if self.needs == "relaxed":
            return (
                f"{self.records} records have the same fields, shapes and dtypes; their values are those of other "
                "augmentations"
            )
        if self.difference == 0:
            return f"{self.records} records have the same bytes"
        return f"the levels of {self.records} records differ by at most {100 * self.difference:.2g} % of their range"


def _place(place: CachePlace) -> str:
    where = "no cache" if place.after is None else f"cache after {place.after} in {place.where}"
    where += ", as JPEGs" if place.image is not None else ""
    room = f", room for {100 * place.part:.0f} %" if place.part < 1 and place.after is not None else ""
    mark = " (chosen)" if place.chosen else ""
    why = f"; refused: {place.refused}" if place.refused else ""
    return f"  {where}{mark}: {place.gain:.2f}x predicted{room}{why}"


def _way(way: Way, mark: str) -> str:
    what = f"{way.processes} in worker processes" if way.processes else "your code as written"
    return f"  {what}{mark}: {way.gain:.2f}x predicted, {way.rate:.4g} records/s; {way.reason}"


def _time(ns: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"


class Settings(NamedTuple):
    """The arguments of `Graph.optimize` that are not the profile."""

    strictness: Strictness
    rule: Rule
    records: int
    seed: int


def knows_variants(costs: Profile) -> bool:
    """Whether user code was measured in other variants, too."""
    return any(node.serial is not None or node.process_ns is not None for node in costs)


def find(
    graph: _headrace.Graph, costs: Profile, settings: Settings, tick: Callable[[], object] | None = None
) -> tuple[_headrace.Graph, Optimization]:
    """The graph in the order that was found, or itself. `tick` is called in between; what it raises ends the search."""
    with translated():
        found, about = graph.optimize(
            costs.text,
            RULES.index(settings.rule),
            STRICTNESS.index(settings.strictness),
            settings.records,
            settings.seed,
            tick,
        )
        names, written = ([node["name"] for node in one.nodes()] for one in (found, graph))
    moved = tuple(
        Move(name, written.index(name) + 1, at) for at, name in enumerate(names, 1) if name != written[at - 1]
    )
    return found, Optimization(
        nodes=tuple(names),
        moved=moved,
        strictness=settings.strictness,
        rule=settings.rule,
        needs=STRICTNESS[about["needs"]],
        best=about["best"],
        written_ns=about["written_ns"],
        predicted_ns=about["predicted_ns"],
        records=about["records"],
        written_run_ns=about["written_run_ns"],
        run_ns=about["run_ns"],
        difference=about["difference"],
        dropped=about["dropped"],
        profile=costs,
    )


class Caching(NamedTuple):
    """The arguments of `Graph.caches` that are not the profile and the order."""

    epochs: int
    memory: int
    folder: str | None
    folder_bytes: int
    refresh: int
    quality: int  # 0: images are kept as they are
    allowed: int  # how far records may differ: a number of STRICTNESS


def places(
    graph: _headrace.Graph, costs: Profile, order: tuple[Rule, Strictness], asked: Caching
) -> tuple[CachePlace, ...]:
    """Where a cache pays in an order of `Optimization.order`."""
    rule, strictness = order
    with translated():
        found = graph.caches(costs.text, RULE_NUMBERS[rule], STRICTNESS.index(strictness), *asked)
    return tuple(CachePlace(**place) for place in found)


def ways(
    graph: _headrace.Graph, costs: Profile, order: tuple[Rule, Strictness], threads: int
) -> tuple[tuple[StepVariant, ...], tuple[Way, ...]]:
    """Where user code runs best in an order of `Optimization.order`."""
    rule, strictness = order
    with translated():
        steps, found = graph.variants(costs.text, RULE_NUMBERS[rule], STRICTNESS.index(strictness), threads)
    return tuple(StepVariant(**step) for step in steps), tuple(Way(**way) for way in found)


def _cache_nodes(place: CachePlace, asked: Caching) -> list[tuple[str, dict[str, Any]]]:
    """The flow.cache that was predicted, and what stands around it: operators and their parameters."""
    cache = ("flow.cache", _cache_params(place, asked))
    if place.image is None:
        return [cache]
    image = {"field": place.image, "to": place.image}
    return [("image.encode", {**image, "quality": asked.quality}), cache, ("image.decode", image)]


def _cache_params(place: CachePlace, asked: Caching) -> dict[str, Any]:
    folder = place.where == "folder"
    given = {
        "folder": asked.folder if folder else None,
        "budget": asked.folder_bytes if folder else asked.memory,
        "refresh": asked.refresh,
    }
    return {name: value for name, value in given.items() if value}


def reorder(
    nodes: list[Node],
    graph: _headrace.Graph,
    order: tuple[str, ...],
    cache: tuple[str, list[tuple[str, dict[str, Any]]]] | None = None,
    processes: frozenset[str] = frozenset(),
) -> Node:
    """The output of the pipeline whose place i holds the node named order[i]; `nodes` are those of `graph`.
    `cache`: the node after which a cache stands, and its nodes. `processes`: nodes of user code that run in
    worker processes."""
    infos = graph.nodes()
    at = {info["name"]: i for i, info in enumerate(infos)}
    several = {node.op for i, node in enumerate(nodes) if any(other.op == node.op for other in nodes[:i])}
    origin = Origin() if any(node.origin is not None for node in nodes) else None
    made = []
    for name in order:
        old = nodes[at[name]]
        params = dict(old.params)
        if "when" in params:  # draws are numbered in the order that was written
            params["when"] = json.loads(infos[at[name]]["params"])["when"]
        code, resolved = old.code, old.resolved
        if name in processes and code is not None:
            code = code._replace(variant="processes")
            resolved = resolved._replace(code=resolved.code._replace(variant="processes"))
        new = Node(old.op, params, (), name if old.op in several else old.name, code, origin)
        new.resolved, new.service = resolved, old.service
        made.append(new)
    for info, new in zip(infos, made, strict=True):
        new.inputs = tuple(made[i] for i in info["inputs"])
    if cache is not None:
        before = kept = made[order.index(cache[0])]
        for op, params in cache[1]:
            kept = Node(op, params, (kept,), None, None, None)
        for new in made:
            new.inputs = tuple(kept if one is before else one for one in new.inputs)
        if not any(kept in new.inputs for new in made):
            return kept
    if origin is not None:
        origin.nodes = made
    used = {i for info in infos for i in info["inputs"]}
    return next(new for i, new in enumerate(made) if i not in used)


def streams(built: build.Built) -> list[str]:
    """Names of the nodes that read an iterable."""
    nodes = zip(built.graph.nodes(), built.nodes, strict=True)
    return [info["name"] for info, node in nodes if node.code is not None and hasattr(node.code.fn, "reader")]


def free_steps(built: build.Built) -> list[str]:
    """Names of the nodes whose user code might run in worker processes instead of threads."""
    nodes, never = zip(built.graph.nodes(), built.nodes, strict=True), streams(built)
    steps = [info["name"] for info, node in nodes if node.code is not None and node.code.variant == "threads"]
    return [name for name in steps if name not in never]


def may_move(built: build.Built) -> bool:
    """Whether there is user code that can be measured in worker processes instead of threads."""
    return not streams(built) and bool(free_steps(built))


def cores_of(threads: int | None) -> int:
    """The cores that the threads of a run may use; 0 or None: one thread for each."""
    cpus = len(os.sched_getaffinity(0))
    return min(threads or cpus, cpus)


def read_by_one_run(names: list[str]) -> str:
    """Why nothing is measured beside a run."""
    return f"the iterable '{names[0]}' is read by the run alone"


def _unmeasured_steps(built: build.Built, why: str) -> tuple[StepVariant, ...]:
    return tuple(StepVariant(name, "threads", False, f"not measured: {why}") for name in free_steps(built))


def as_written(built: build.Built, strictness: Strictness, why: str) -> Optimization:
    """The report of a pipeline of which nothing was measured."""
    names = tuple(info["name"] for info in built.graph.nodes())
    nothing = Profile('{"seconds": 0, "nodes": []}')
    return Optimization(
        nodes=names,
        moved=(),
        strictness=strictness,
        rule="headrace",
        needs="exact",
        best=False,
        written_ns=0,
        predicted_ns=0,
        records=0,
        written_run_ns=0,
        run_ns=0,
        difference=0,
        dropped="",
        profile=nothing,
        unmeasured=why,
    )


def unmeasured(built: build.Built, threads: int | None, tries: bool) -> list[str]:
    """Lines about what a loader with `optimize=` does not measure, and why. `tries`: its runs may try worker
    processes."""
    found = streams(built)
    if found:
        return [f"optimize: nothing is measured: {read_by_one_run(found)}"]
    if threads == 0 or not may_move(built):
        return []
    costs = saved(built.graph, inline=True)
    if costs is not None and knows_variants(costs):
        return []
    return [f"optimize: {step.node}: {step.reason}" for step in _unmeasured_steps(built, _NOT_YET if tries else _NEVER)]


def with_variants(built: build.Built, node: Node) -> build.Built:
    """A graph whose user code can be measured in all variants."""
    return build.build(node, anywhere=True) if may_move(built) else built


def _separate(built: build.Built, node: Node) -> build.Built:
    """A graph that can be run beside others: iterables are read in a pass of its own."""
    streams = [n.code.fn for n in built.nodes if n.code is not None and hasattr(n.code.fn, "reader")]
    if any(getattr(stream, "once", False) for stream in streams):
        raise ArgumentError(
            "optimize(): the pipeline reads an iterator, which can be read once only; give hr.from_generator the "
            "function that makes it",
            param="pipeline",
        )
    return build.build(node) if streams else built


@contextlib.contextmanager
def workers(built: build.Built) -> Iterator[None]:
    """Keeps what starts worker processes, if there are any."""
    if built.host is None:
        yield
        return
    built.host.acquire()
    try:
        built.host.wait_imported()
        yield
    finally:
        built.host.release()


class Placed(NamedTuple):
    """Where the user code of a pipeline runs fastest, by saved costs."""

    built: build.Built | None  # the pipeline with it there; None: as written
    steps: tuple[StepVariant, ...]
    ways: tuple[Way, ...] = ()
    unmeasured: bool = False  # the costs of some code are not known


def placed(built: build.Built, node: Node, threads: int, tries: bool) -> Placed:
    """The pipeline with its user code where saved costs say that it is fastest. Order and records stay. `tries`: runs
    may try worker processes."""
    found, free = streams(built), may_move(built)
    if found:
        return Placed(None, _unmeasured_steps(built, read_by_one_run(found)))
    costs = saved(built.graph, inline=True) if free else None
    if costs is None or not knows_variants(costs):
        return Placed(None, _unmeasured_steps(built, _NOT_YET if tries else _NEVER), unmeasured=free)
    anywhere = build.build(node, anywhere=True)
    steps, by_rate = ways(anywhere.graph, costs, ("written", "exact"), threads)
    processes = frozenset(step.node for step in steps if step.moved)
    if not processes:
        return Placed(None, steps, by_rate)
    names = tuple(info["name"] for info in anywhere.graph.nodes())
    moved = build.build(reorder(anywhere.nodes, anywhere.graph, names, None, processes))
    return Placed(moved, steps, by_rate)


@contextlib.contextmanager
def measurable(built: build.Built, node: Node, variants: bool) -> Iterator[tuple[build.Built, str]]:
    """A graph with its workers, whose user code can be measured in all variants if `variants`; where they do not start
    for that: `built` with its own, and why."""
    with contextlib.ExitStack() as stack:
        found, why = with_variants(built, node) if variants else built, ""
        try:
            stack.enter_context(workers(found))
        except CodeError as error:
            from .host import is_importing

            if found is built or is_importing():
                raise
            found, why = built, str(error)
            stack.enter_context(workers(built))
        yield found, why


def _given(profile: Any) -> Profile | None:
    if profile is None or isinstance(profile, Profile):
        return profile
    if not isinstance(profile, (str, os.PathLike)):
        raise ArgumentError(
            f"optimize(): profile is a Profile, or the path of a file that holds one; not {profile!r:.60}",
            param="profile",
        )
    name = os.fsdecode(path_of(profile, "optimize"))
    try:
        with open(name, "rb") as file:
            text = file.read()
    except OSError as error:
        raise ReadError(f"cannot read {name}: {error.strerror}", file=name) from error
    with translated():
        _headrace.check_profile(text, ascii(name)[1:-1])
    return Profile(text.decode())


def _check_cache(asked: Caching) -> None:
    """ArgumentError for options of a cache that say nothing without another."""
    options = {
        "cache_memory": asked.memory,
        "cache_folder": asked.folder,
        "cache_bytes": asked.folder_bytes,
        "cache_quality": asked.quality,
        "refresh": asked.refresh,
    }
    given = [name for name, value in options.items() if value]
    if given and asked.epochs == 0:
        verb = "need" if len(given) > 1 else "needs"
        raise ArgumentError(
            f"optimize(): {', '.join(given)} {verb} epochs=: how many epochs the job will make", param=given[0]
        )
    if asked.folder_bytes and asked.folder is None:
        raise ArgumentError("optimize(): cache_bytes needs cache_folder=", param="cache_bytes")


class OptimizeOptions(TypedDict, total=False):
    """Keyword arguments of `Pipeline.optimize`, which describes them."""

    strictness: Strictness
    rule: Rule
    profile: Profile | PathLike | None
    records: int
    seconds: float
    fresh: bool
    seed: int
    epochs: int
    cache_memory: int
    cache_folder: PathLike | None
    cache_bytes: int
    cache_quality: int
    refresh: int
    variants: bool


def optimize(pipeline: Pipeline, **options: Unpack[OptimizeOptions]) -> Pipeline:
    """`pipeline.optimize(...)`: the pipeline with its operators in the order that is cheapest."""
    if not hasattr(pipeline, "_built"):
        raise ArgumentError(f"optimize() takes a Pipeline, not a {type(pipeline).__name__}", param="pipeline")
    return pipeline.optimize(**options)


def optimized(
    pipeline: Pipeline,
    strictness: Strictness,
    rule: Rule,
    given: Profile | PathLike | None,
    records: int,
    seconds: float,
    fresh: bool,
    seed: int,
    epochs: int,
    cache_memory: int,
    cache_folder: PathLike | None,
    cache_bytes: int,
    cache_quality: int,
    refresh: int,
    variants: bool,
) -> Pipeline:
    """`Pipeline.optimize`."""
    from .pipeline import Pipeline

    one_of("strictness", strictness, STRICTNESS)
    one_of("rule", rule, RULES)
    settings = Settings(
        strictness, rule, max(count("records", records, called="optimize"), 1), count("seed", seed, called="optimize")
    )
    if not 0 < number("seconds", seconds, "number of seconds", called="optimize") <= 86400:
        raise ArgumentError(f"optimize(): seconds is above 0 and at most 86400, not {seconds!r}", param="seconds")
    for param, value in (("fresh", fresh), ("variants", variants)):
        if not isinstance(value, bool):
            raise ArgumentError(f"optimize(): {param} is True or False, not {value!r:.60}", param=param)
    cache_memory = number("cache_memory", cache_memory, "whole number", called="optimize")
    if not -1 <= cache_memory < 1 << 63:
        raise ArgumentError(
            f"optimize(): cache_memory is -1 to {(1 << 63) - 1}, not {cache_memory}", param="cache_memory"
        )
    folder = None if cache_folder is None else os.fsdecode(path_of(cache_folder, "optimize"))
    asked = Caching(
        count("epochs", epochs, called="optimize"),
        cache_memory,
        folder,
        count("cache_bytes", cache_bytes, called="optimize"),
        count("refresh", refresh, called="optimize"),
        count("cache_quality", cache_quality, 100, called="optimize"),
        STRICTNESS.index(strictness),
    )
    _check_cache(asked)
    costs = _given(given)
    built = _separate(pipeline._built, pipeline._node)
    several = streams(built) if variants else []
    variants = variants and may_move(built)
    with measurable(built, pipeline._node, variants) as (built, why):
        if costs is None and not fresh:
            costs = saved(built.graph, inline=True)
            if costs is not None and variants and not why and not knows_variants(costs):
                costs = None
        if costs is None:
            costs = profile(built.graph, seconds, None, 0.05, 0, True, seed)
            save(built.graph, costs)
        _, found = find(built.graph, costs, settings)
        if asked.epochs > 0:
            found = found._replace(caches=places(built.graph, costs, found.order, asked))
        if variants:
            steps, found_ways = ways(built.graph, costs, found.order, 0)
            if why:
                steps = tuple(step._replace(reason=why) if step.variant == "threads" else step for step in steps)
            found = found._replace(steps=steps, ways=found_ways)
        elif several:
            why = f"each variant would read the iterable '{several[0]}' again"
            found = found._replace(steps=_unmeasured_steps(built, why))
    chosen = [place for place in found.caches if place.chosen and place.after is not None]
    processes = frozenset(step.node for step in found.steps if step.moved)
    cache = (str(chosen[0].after), _cache_nodes(chosen[0], asked)) if chosen else None
    changed = bool(found.moved or processes) or cache is not None
    faster = Pipeline(reorder(built.nodes, built.graph, found.nodes, cache, processes) if changed else pipeline._node)
    if not changed:
        faster.__dict__["_built"] = pipeline._built
    faster.__dict__["_report"] = found
    return faster
