"""What finding out the types of user code costs: calls of functions, and nodes that are built."""

from __future__ import annotations

import random
import re
import secrets
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import build
from headrace.node import Node


def counted(calls: dict[int, int], at: int) -> Callable[[int], int]:
    def function(x: int) -> int:
        calls[at] = calls.get(at, 0) + 1
        return x + 1

    return function


def test_types_need_one_record_of_the_steps_before() -> None:
    calls: dict[int, int] = {}
    pipe = hr.range(1000).map(counted(calls, 0)).map(counted(calls, 1))
    assert pipe.fields[0].dtype == "int64"
    assert calls[0] <= 3 and calls[1] == 1, calls


def test_types_need_one_batch_of_the_steps_before() -> None:
    calls: dict[int, int] = {}
    pipe = hr.range(1000).map(counted(calls, 0)).batch(16).map_batch(lambda batch: {"x": batch["value"]})
    assert pipe.fields[0].name == "x"
    assert calls[0] <= 17, calls


def test_building_costs_the_same_for_each_function(monkeypatch: pytest.MonkeyPatch) -> None:
    assert work_of(monkeypatch, 200) < 2.2 * work_of(monkeypatch, 100)


def work_of(monkeypatch: pytest.MonkeyPatch, count: int) -> int:
    """Nodes that are built, and calls of functions, for a chain of maps and filters."""
    nodes: list[int] = []
    calls: dict[int, int] = {}
    assemble = build.assemble

    def counting(given: list[Node], *more: Any) -> Any:
        nodes.append(len(given))
        return assemble(given, *more)

    pipe = hr.range(1000)
    for at in range(count):
        pipe = pipe.map(counted(calls, at))
        if at % 5 == 0:
            pipe = pipe.filter(lambda x: x >= 0)
        if at % 3 == 0:
            pipe = pipe.map(lambda x: x + 1, fields="value")
        if at % 7 == 0:
            pipe = pipe.map(lambda x: x * 1.0, outputs={"value": hr.spec("float64")})
    with monkeypatch.context() as patch:
        patch.setattr(build, "assemble", counting)
        assert pipe.fields[0].dtype in ("int64", "float64")
    assert max(calls.values()) == 1, calls
    return sum(nodes) + sum(calls.values())


def test_a_long_pipeline_can_be_built() -> None:
    pipe = hr.range(10)
    for _ in range(900):
        pipe = pipe.where("value >= 0")
    assert pipe.map(lambda x: x + 1).fields[0].dtype == "int64"
    assert pipe.to_yaml().count("record.filter") == 900


def number(value: Any) -> int:
    """The first number in a value that holds one."""
    while isinstance(value, (dict, tuple, list)):
        value = next(iter(value.values() if isinstance(value, dict) else value))
    return int(np.asarray(value).ravel()[0]) if not isinstance(value, (str, bytes)) else int(value)


def raises_for_some(value: Any) -> Any:
    if number(value) % 3 == 0:
        raise ValueError("a third")
    return value


Step = Callable[[hr.Pipeline], hr.Pipeline]
STEPS: dict[str, Step] = {
    "same": lambda p: p.map(lambda x: x),
    "number": lambda p: p.map(number),
    "float": lambda p: p.map(lambda x: number(x) + 0.5),
    "text": lambda p: p.map(lambda x: str(number(x))),
    "bytes": lambda p: p.map(lambda x: b"%d" % number(x)),
    "array": lambda p: p.map(lambda x: np.full((2, 3, 3), number(x), np.uint8)),
    "vector": lambda p: p.map(lambda x: np.full(number(x) % 4 + 1, number(x), np.float32)),
    "fields": lambda p: p.map(lambda x: {"b": number(x), "a": np.full(2, number(x), np.int16)}),
    "pair": lambda p: p.map(lambda x: (number(x), {"t": str(number(x))})),
    "declared": lambda p: p.map(lambda x: {"b": number(x), "a": 1.0}, outputs={"a": "float64", "b": "int64"}),
    "one declared": lambda p: p.map(number, outputs={"value": "int32"}),
    "one field": lambda p: p.map(lambda b: b, fields="b"),
    "odd": lambda p: p.filter(lambda x: number(x) % 2 == 1),
    "none": lambda p: p.filter(lambda x: False),
    "raises": lambda p: p.map(raises_for_some),
    "nothing": lambda p: p.map(lambda x: None),
    "twice": lambda p: p.flat_map(lambda x: [x, x]),
    "where": lambda p: p.where("value > 2"),
    "batches": lambda p: p.batch(2).map_batch(lambda b: b).unbatch(),
}
SOURCES: dict[str, Callable[[], hr.Pipeline]] = {
    "range": lambda: hr.range(12),
    "items": lambda: hr.from_dataset([(i, {"x": np.float32(i)}) for i in range(12)]),
    "empty": lambda: hr.range(0),
}


def types_of(source: str, steps: list[str], together: bool) -> Any:
    """Fields and structure of a pipeline, or what is wrong, if all functions are resolved together or one by one."""
    pipe = SOURCES[source]()
    try:
        for step in steps:
            pipe = STEPS[step](pipe)
            if not together:
                assert pipe.fields
        return pipe.fields, pipe._built.structure, pipe.record_count
    except hr.HeadraceError as error:
        return type(error), re.sub(r"\[.*?\]", "", str(error))  # lengths are kept where a whole batch follows


def test_types_are_the_same_together_and_one_by_one() -> None:
    seed = secrets.randbits(32)
    print("seed", seed)
    rng = random.Random(seed)
    good = 0
    for _ in range(150):
        source = rng.choice(["range", "range", "items", "items", "empty"])
        steps = rng.choices(list(STEPS), k=rng.randint(1, 6))
        found = types_of(source, steps, together=True)
        assert found == types_of(source, steps, together=False), (source, steps)
        good += isinstance(found[0], tuple)
    assert good > 20
