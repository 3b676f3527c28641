"""Runs of a few records that find out what user code returns.

The run makes one record at a time and ends with the first good one: functions may be slow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from . import _headrace
from .errors import DtypeError, translated

if TYPE_CHECKING:
    from .build import Built


class Probe:
    """A filter that calls a function on record after record, up to `most`, until one is good."""

    def __init__(self, call: Callable[..., Any], expands: bool, most: int) -> None:
        self.call, self.expands, self.most = call, expands, most
        self.inputs: tuple[Any, ...] = ()
        self.value: Any = None
        self.done = False
        self.error: Exception | None = None
        self.tries = 0

    def __call__(self, *values: Any) -> bool:
        if self.done or self.tries >= self.most:
            return True
        self.tries += 1
        try:
            value = self.call(*values)
            if self.expands:
                value = next(iter(_iterable(value)), _NOTHING)
                if value is _NOTHING:
                    return False
        except Exception as error:  # noqa: BLE001 - user code raises what it likes
            self.error = self.error or error
            return self.tries >= self.most
        self.inputs, self.value, self.done = values, value, True
        return True


_NOTHING = object()


def _iterable(value: Any) -> Iterable[Any]:
    if not hasattr(value, "__iter__"):
        raise DtypeError(f"flat_map wants an iterable of records, not a {type(value).__name__}")
    return value  # type: ignore[no-any-return]


def why_not(probe: Probe, what: str) -> str:
    """Why a probe knows nothing after the run."""
    if probe.error is not None:
        e = probe.error
        return (
            f"raised {type(e).__name__}: {e} for the first {probe.tries} {what}(s), so it is not known what "
            "it returns; declare outputs={'name': hr.spec(dtype, shape)} or fix it"
        )
    return f"was given no {what}, so it is not known what it returns; declare outputs={{'name': hr.spec(dtype, shape)}}"


def run_first(built: Built, records: int) -> None:
    """Run a graph until it gave some records, one at a time where no batch needs more."""
    options: dict[str, Any] = {"variant": "inline", "records_max": records, "on_error": "skip"}
    with translated():
        options["plan"] = _one_by_one(built.graph.plan(options, False))
        run = _headrace.Iter(built.graph, options)
        try:
            while run.next() is not None:
                pass
        finally:
            run.close()


def _one_by_one(plan: str) -> str:
    """The plan with blocks of one record; blocks of direct stages are batches."""
    stages = re.split(r"^(?=  - reason:)", plan, flags=re.MULTILINE)
    return "".join(
        one if "\n    direct: true\n" in one else re.sub(r"^(      block_records:) \d+$", r"\1 1", one, flags=re.MULTILINE)
        for one in stages
    )
