"""The options of loaders: checked, and as the engine takes them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from . import _headrace, batch, share
from ._check import nearest, one_of
from ._types import Compress, Demand, Even, OnError, Output, PathLike, Shard, Strictness
from .errors import ArgumentError
from .node import numbered

if TYPE_CHECKING:
    from .fleet import Workers
    from .pipeline import Pipeline
    from .ray_workers import RayWorkers

_SERVICE_FILES = ("service_token_file", "service_tls_ca", "service_tls_cert", "service_tls_key")


class LoaderOptions(TypedDict, total=False):
    """Keyword arguments of `Pipeline.loader`, which describes them."""

    epochs: int | None
    seed: int | None
    threads: int | None
    ordered: bool
    memory: int | None
    plan: str | os.PathLike[str] | None
    optimize: bool | Strictness
    on_error: OnError
    errors_max: int | None
    timeout: float | None
    demand: Demand
    ledger: PathLike | None
    service: str | None
    service_job: str | None
    service_consumer: str | None
    service_weight: int
    service_token_file: PathLike | None
    service_tls_ca: PathLike | None
    service_tls_name: str | None
    service_tls_cert: PathLike | None
    service_tls_key: PathLike | None
    service_compress: Compress
    workers: str | Workers | None
    ray: bool | RayWorkers
    shard: Shard
    even: Even | None
    eval: bool
    output: Output | None
    schema: type[Any] | None
    device: Any
    pin_memory: bool
    progress: bool


_NAMES = tuple(LoaderOptions.__annotations__)

# The options that mean something without being given; all others are None then.
_DEFAULTS = {
    "epochs": 1,
    "ordered": True,
    "optimize": False,
    "on_error": "fail",
    "service_compress": "auto",
    "service_weight": 1,
    "ray": False,
    "shard": "auto",
    "eval": False,
    "pin_memory": False,
    "progress": False,
}


def changed(arguments: Mapping[str, Any]) -> LoaderOptions:
    """The arguments of `Pipeline.loader` that are not the defaults."""
    options = {name: arguments[name] for name in _NAMES}
    defaults = {name: _DEFAULTS.get(name) for name in _NAMES}
    return {  # type: ignore[return-value]
        name: value
        for name, value in options.items()
        if type(value) is not type(defaults[name]) or value != defaults[name]
    }


def demand_rate(demand: Any) -> float:
    """The engine's number for a demand."""
    if demand is None:
        return 0.0
    if isinstance(demand, str) and demand == "consumer":
        return -1.0  # HR_DEMAND_CONSUMER
    if isinstance(demand, bool) or not isinstance(demand, (int, float)) or not 0 < demand < 1e18:
        raise ArgumentError(
            f"loader(): demand is a number of records per second above 0, 'consumer' or None; not {demand!r:.60}",
            param="demand",
        )
    return float(demand)


def _checked(options: Mapping[str, Any]) -> LoaderOptions:
    for name in options:
        if name not in _NAMES:
            ranks = " Ranks are given as shard=(rank, world)." if name in ("rank", "world", "num_replicas") else ""
            hint = ranks or nearest(name, _NAMES) or "."
            raise ArgumentError(
                f"loader(): there is no argument '{name}'{hint} Arguments are: {', '.join(_NAMES)}", param=name
            )
    for name in ("epochs", "seed", "threads", "memory", "errors_max"):
        value = options.get(name)
        if value is not None and (isinstance(value, bool) or not hasattr(value, "__index__")):
            raise ArgumentError(f"loader(): {name} is a whole number, not {value!r}", param=name)
        if value is not None and value < 0:
            raise ArgumentError(f"loader(): {name} must not be negative ({value})", param=name)
        if value is not None and value >= 1 << 63:
            raise ArgumentError(f"loader(): {name} must be below 2 to the 63rd ({value:.3g})", param=name)
    for name in ("ordered", "pin_memory", "progress", "eval"):
        if not isinstance(options.get(name, False), bool):
            raise ArgumentError(f"loader(): {name} is True or False, not {options[name]!r:.60}", param=name)
    if not isinstance(options.get("ledger"), (str, os.PathLike, type(None))):
        raise ArgumentError(f"loader(): ledger is the path of a file, not {options['ledger']!r:.60}", param="ledger")
    service = options.get("service")
    if not isinstance(service, (str, type(None))):
        raise ArgumentError(
            f"loader(): service is the 'host:port' of a dispatcher, not {service!r:.60}", param="service"
        )
    _check_consumer(options)
    weight = options.get("service_weight", 1)
    if isinstance(weight, bool) or not isinstance(weight, int) or not 1 <= weight <= 100:
        raise ArgumentError(f"loader(): service_weight is 1 to 100, not {weight!r:.60}", param="service_weight")
    for name in _SERVICE_FILES:
        if not isinstance(options.get(name), (str, os.PathLike, type(None))):
            raise ArgumentError(f"loader(): {name} is the path of a file, not {options[name]!r:.60}", param=name)
    if not isinstance(options.get("service_tls_name"), (str, type(None))):
        raise ArgumentError(
            f"loader(): service_tls_name is the name in a certificate, not {options['service_tls_name']!r:.60}",
            param="service_tls_name",
        )
    if options.get("service_compress", "auto") not in ("auto", "none", "lz4", "zstd"):
        raise ArgumentError(
            f"loader(): service_compress is 'auto', 'none', 'lz4' or 'zstd', not {options['service_compress']!r:.60}",
            param="service_compress",
        )
    fleet = "ray" if options.get("ray", False) is not False else "workers" if options.get("workers") is not None else ""
    if service is not None and fleet:
        raise ArgumentError(
            f"loader(): service= is for workers that run already, {fleet}= starts some; leave out one of them",
            param=fleet,
        )
    for name in (*_SERVICE_FILES, "service_tls_name"):
        if fleet and options.get(name) is not None:
            raise ArgumentError(
                f"loader(): workers that {fleet}= starts get a token of their own and no TLS; leave out {name}=",
                param=name,
            )
    if (service is not None or fleet) and options.get("optimize", False):
        raise ArgumentError(
            "loader(): the order of a service's graph is fixed; use pipe.optimize(), or leave out optimize=",
            param="optimize",
        )
    plan = options.get("plan")
    if not isinstance(plan, (str, os.PathLike, type(None))):
        raise ArgumentError(f"loader(): plan is a text or the path of a file, not {plan!r:.60}", param="plan")
    if isinstance(plan, str) and "\n" not in plan and not plan.lstrip().startswith("{"):
        raise ArgumentError(
            f"loader(): plan is the text of a plan, as pipe.plan() gives it, not {plan!r:.60}; give the path of a file "
            "as a pathlib.Path",
            param="plan",
        )
    for name in ("threads", "memory", "ordered"):
        if plan is not None and options.get(name) is not None:
            raise ArgumentError(f"loader(): {name} is decided by the plan; edit it there", param=name)
    _check_optimize(options)
    if options.get("epochs") == 0:
        raise ArgumentError("loader(): epochs=0 would give no batches; None means unlimited", param="epochs")
    timeout = options.get("timeout")
    if timeout is not None and (
        isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout < 1e9
    ):
        raise ArgumentError(
            f"loader(): timeout is a number of seconds above 0, or None; not {timeout!r:.60}", param="timeout"
        )
    if timeout is not None and options.get("threads") == 0:
        raise ArgumentError(
            "loader(): a timeout needs threads: with threads=0 the thread that runs the loop makes the batches, and "
            "cannot look at the clock meanwhile",
            param="timeout",
        )
    demand_rate(options.get("demand"))
    one_of("on_error", options.get("on_error", "fail"), ("fail", "skip", "substitute"))
    share.check(options.get("shard", "auto"))
    one_of("even", options.get("even"), (None, "none", "drop", "repeat", "steps"))
    if options.get("eval") and options.get("even") is not None:
        raise ArgumentError(
            "loader(): eval=True pads the shares, which gives equal steps; leave out even=", param="even"
        )
    one_of("output", options.get("output"), (None, "torch", "numpy", "jax", "headrace"))
    return options  # type: ignore[return-value]


def _check_consumer(options: Mapping[str, Any]) -> None:
    for name in ("service_job", "service_consumer"):
        if not isinstance(options.get(name), (str, type(None))):
            raise ArgumentError(f"loader(): {name} is a name, not {options[name]!r:.60}", param=name)
        if options.get(name) is not None and options.get("service") is None:
            raise ArgumentError(f"loader(): {name} needs service='host:port'", param=name)
    if options.get("service_consumer") is None:
        return
    if options.get("service_job") is None:
        raise ArgumentError(
            "loader(): service_consumer needs service_job, the name that all consumers of the run give",
            param="service_job",
        )
    given = [name for name in ("shard", "even", "eval") if options.get(name) not in (None, "auto", False)]
    if given:
        raise ArgumentError(
            "loader(): consumers of one run have no shares: the next batches go to the first one with room; leave out "
            f"{given[0]}=",
            param=given[0],
        )


def _check_optimize(options: Mapping[str, Any]) -> None:
    chosen = options.get("optimize", False)
    one_of("optimize", chosen, (False, True, "exact", "close", "relaxed"))
    if not chosen:
        return
    if options.get("plan") is not None:
        raise ArgumentError(
            "loader(): a plan is of one order; give that of pipe.optimize(), or leave out optimize=", param="optimize"
        )
    if options.get("on_error") == "substitute":
        raise ArgumentError(
            "loader(): which record takes the place of a bad one depends on the order; use on_error='skip', or leave "
            "out optimize=",
            param="optimize",
        )


def with_service(pipeline: Pipeline, options: LoaderOptions) -> LoaderOptions:
    """The options with the service that `Pipeline.distribute` names, if they have none."""
    found = {node.service for node in numbered(pipeline._node) if node.service is not None}
    if options.get("service") is not None or not found:
        return options
    if len(found) > 1:
        raise ArgumentError(f"distribute(): one service at a time, not {' and '.join(sorted(found))}", param="service")
    return {**options, "service": found.pop()}


def engine_options(options: LoaderOptions) -> dict[str, Any]:
    """The engine's options for those of a loader; without epochs, state and ranks."""
    options = _checked(options)
    threads = options.get("threads")
    made: dict[str, Any] = {
        "seed": int(options.get("seed") or 0),
        "threads": int(threads or 0),
        "variant": "inline" if threads == 0 else "threads",
        "ordered": bool(options.get("ordered", True)),
        "memory_bytes": int(options.get("memory") or 0),
        "on_error": options.get("on_error", "fail"),
        "errors_max": int(options.get("errors_max") or 0),
        "timeout_ns": int((options.get("timeout") or 0) * 1e9),
        "demand": demand_rate(options.get("demand")),
    }
    ledger, plan = options.get("ledger"), options.get("plan")
    if ledger is not None:
        made["ledger"] = os.fspath(ledger)
    if options.get("service") is not None:
        made["service"] = options["service"]
    for name in ("service_job", "service_consumer"):
        if options.get(name) is not None:
            made[name] = options.get(name)
    if options.get("service_weight", 1) != 1:
        made["service_weight"] = options["service_weight"]
    if options.get("service_tls_name") is not None:
        made["service_tls_name"] = options["service_tls_name"]
    if options.get("service_compress", "auto") != "auto":
        made["service_compress"] = options["service_compress"]
    for name in _SERVICE_FILES:
        path: PathLike | None = options.get(name)  # type: ignore[assignment]
        if path is not None:
            made[name] = os.fspath(path)
    if isinstance(plan, os.PathLike):
        made["plan_name"] = os.fspath(plan)
        with open(plan, encoding="utf-8") as file:
            made["plan"] = file.read()
    elif plan is not None:
        made["plan"] = plan
    return made


def converter(options: LoaderOptions) -> Callable[[_headrace.Field], Any]:
    output, device = options.get("output"), options.get("device")
    pin = bool(options.get("pin_memory", False))
    if device is not None or pin:
        if output not in (None, "torch"):
            raise ArgumentError(f"device and pin_memory are torch's; output is '{output}'", param="device")
        if str(device) != "cpu" or pin:
            return batch.Device(device if device is not None else "cpu", pin)
        output = "torch"
    if output is None:
        output = "torch" if "torch" in sys.modules else "numpy"
    made: dict[str, Callable[[_headrace.Field], Any]] = {
        "torch": batch.to_torch,
        "numpy": batch.to_numpy,
        "jax": batch.to_jax,
        "headrace": batch.to_headrace,
    }
    return made[output]
