"""Pipeline.profile: what each node costs."""

from __future__ import annotations

import json
import logging
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from ._check import path_of
from .errors import ArgumentError, FormatError, HeadraceError, NotFoundError, translated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from . import _headrace
    from ._types import PathLike


_logger = logging.getLogger("headrace")


class NodeProfile(NamedTuple):
    """What a node costs. Times (nanoseconds) and bytes are per record that enters it."""

    node: str
    op: str
    records_in: int
    records_out: int  # that went on: children of an expansion, batches of a batch
    cpu_ns: float
    wait_ns: float  # without CPU: files, processes, locks
    deviation_ns: float  # of the CPU time of a record
    bytes_in: float  # of the fields that it reads, takes or updates
    bytes_out: float  # of those that it writes or updates
    fixed: float | None  # 0 to 1: the part of cpu_ns that does not depend on the bytes; None: not known
    width: float | None  # half of the 95 % confidence interval of cpu_ns, as a part of it
    serial: float | None = None  # of your code: the part of cpu_ns with the interpreter's lock; None: not known
    process_ns: float | None = None  # of your code: CPU in a worker process, transfer included; None: not known
    crowd: float | None = None  # CPU time while all cores run the pipeline, by cpu_ns; None: as the machine's
    ordered: float | None = None  # the part of cpu_ns that one thread at a time does, in order; None: not in order


class CodeCost(NamedTuple):
    """What a profile says of a step of your own code, besides: see NodeProfile."""

    serial: float
    process_ns: float


class Profile:
    """What the nodes of a pipeline cost: `profile["image.decode"]`, and iteration in order.

    `text` is the profile as JSON (docs/formats/profile.md), as `headrace profile` writes it.
    """

    def __init__(self, text: str) -> None:
        value: dict[str, Any] = json.loads(text)
        self.text = text
        self.seconds: float = value["seconds"]
        self.nodes = tuple(NodeProfile(*(node.get(name) for name in NodeProfile._fields)) for node in value["nodes"])

    def __getitem__(self, node: str) -> NodeProfile:
        for found in self.nodes:
            if found.node == node:
                return found
        raise NotFoundError(f"the profile has no node '{node}'; it has {', '.join(n.node for n in self.nodes)}")

    def __iter__(self) -> Iterator[NodeProfile]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        costs = ", ".join(f"{n.node} {n.cpu_ns / 1e3:.3g} us" for n in self.nodes)
        return f"<Profile of {len(self)} nodes: {costs}>"

    def with_code(self, costs: Mapping[str, CodeCost]) -> Profile:
        """The same with what is known of these nodes."""
        value = json.loads(self.text)
        for node in value["nodes"]:
            if node["node"] in costs:
                node |= costs[node["node"]]._asdict()
        return Profile(json.dumps(value))

    def save(self, path: PathLike) -> None:
        """Write `text` to a file."""
        with open(os.fsdecode(path_of(path, "save")), "w", encoding="utf-8") as file:
            file.write(self.text)


def number(name: str, value: Any, kind: str, called: str = "profile") -> Any:
    """`value` as a number of that kind; ArgumentError if it is none."""
    whole = kind == "whole number"
    if isinstance(value, bool) or not hasattr(value, "__index__" if whole else "__float__"):
        raise ArgumentError(f"{called}(): {name} is a {kind}, not {value!r:.60}", param=name)
    return value.__index__() if whole else float(value)


def count(name: str, value: Any, most: int = (1 << 63) - 1, called: str = "profile") -> int:
    """`value` as a whole number from 0 to `most`; ArgumentError if it is none."""
    value = number(name, value, "whole number", called)
    if not 0 <= value <= most:
        raise ArgumentError(f"{called}(): {name} is 0 to {most}, not {value!r:.60}", param=name)
    return int(value)


def saved(graph: _headrace.Graph, inline: bool) -> Profile | None:
    """The profile that is kept for this graph and machine, of composed nodes; preferably of a run that was inline
    or not."""
    for which in (inline, not inline):
        try:
            with translated():
                return Profile(graph.profile_load(which, True))
        except NotFoundError:
            continue
        except FormatError as error:
            _logger.warning("%s", error)
    return None


def save(graph: _headrace.Graph, costs: Profile) -> None:
    """Keep a profile for later. That it cannot be kept costs only time."""
    try:
        with translated():
            graph.profile_save(costs.text)
    except NotFoundError:  # turned off
        pass
    except HeadraceError as error:
        _logger.warning("%s", error)


def profile(
    graph: _headrace.Graph,
    seconds: float,
    records: int | None,
    width: float,
    threads: int | None,
    fuse: bool,
    seed: int,
) -> Profile:
    """`Pipeline.profile`."""
    seconds = number("seconds", seconds, "number of seconds")
    width = number("width", width, "number")
    if not isinstance(fuse, bool):
        raise ArgumentError(f"profile(): fuse is True or False, not {fuse!r:.60}", param="fuse")
    for name, value in (("seconds", seconds), ("width", width)):
        if not 0 < value <= 86400:
            raise ArgumentError(f"profile(): {name} is above 0 and at most 86400, not {value!r}", param=name)
    records = 0 if records is None else max(count("records", records), 1)
    seed = count("seed", seed)
    used = 0 if threads is None else count("threads", threads, 4096)
    with translated():
        text = graph.profile(seed, records, seconds, width, threads == 0, used, fuse)
    return Profile(text)
