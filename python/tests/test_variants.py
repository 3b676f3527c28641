"""optimize(): user code goes to worker processes where the costs say so, and gives the same bytes there."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import build, optimizing
from headrace.profiling import Profile, save


def busy(value: int) -> int:
    """Some hundred microseconds of Python, for which the GIL is held."""
    total = value
    for i in range(4000):
        total += i & value
    return total


def noisy(value: int) -> Any:
    return np.full(4, value, np.float32) + hr.rng().normal(size=4).astype(np.float32)


def odd(value: Any) -> bool:
    return float(value[0]) % 2 > 0.2


def costs_of(pipe: hr.Pipeline, **nodes: tuple[float, float | None, float | None]) -> Profile:
    """A profile with these costs: ns inline, the part under the GIL, ns in a worker process."""
    text = pipe.profile(seconds=0.1, records=64, threads=1, fuse=True).text
    profile = json.loads(text)
    profile["variant"] = "inline"
    profile["machine"] |= {"cores": 2, "crowd": 1.0, "transfer_ns": 400.0, "transfer": 5e9}
    for node in profile["nodes"]:
        node |= {"cpu_ns": 100.0, "wait_ns": 0.0, "serial": None, "process_ns": None}
        cpu, serial, process = nodes.get(node["node"], (100.0, None, None))
        node |= {"cpu_ns": cpu, "serial": serial, "process_ns": process}
    return Profile(json.dumps(profile))


def digest(pipe: hr.Pipeline, **options: Any) -> str:
    found = hashlib.sha256()
    with pipe.loader(epochs=1, seed=3, output="headrace", **options) as loader:
        for batch in loader:
            for name in batch:
                found.update(np.ascontiguousarray(batch[name]).tobytes())
    return found.hexdigest()


def variants_of(pipe: hr.Pipeline) -> dict[str, str]:
    return {node.name or node.op: node.code.variant for node in build.numbered(pipe._node) if node.code is not None}


def test_a_profile_has_the_costs_of_all_variants() -> None:
    pipe = hr.range(5000).map(busy, fields="value", name="busy").batch(8)
    found = pipe.profile(seconds=1)
    busy_cost, rest = found["busy"], found["source.range"]
    assert busy_cost.serial is not None and busy_cost.process_ns is not None
    assert busy_cost.serial > 0.8
    assert busy_cost.process_ns > busy_cost.cpu_ns / 4
    assert rest.serial is None and rest.process_ns is None
    machine = json.loads(found.text)["machine"]
    assert machine["transfer_ns"] > 0 and machine["transfer"] > 0


def test_functions_that_hold_the_lock_move_and_give_the_same_bytes() -> None:
    pipe = (
        hr.range(300)
        .shuffle()
        .map(noisy, fields="value", name="noisy")
        .filter(odd, fields="value", name="odd")
        .batch(8, drop_last=False)
    )
    costs = costs_of(pipe, noisy=(2e5, 1.0, 2.1e5), odd=(2e4, 0.0, 6e4))
    fast = pipe.optimize(profile=costs, rule="written")
    assert variants_of(fast) == {"noisy": "processes", "odd": "threads"}
    assert fast.report is not None
    steps = {step.node: step for step in fast.report.steps}
    assert steps["noisy"].moved and not steps["odd"].moved
    assert "100 % of it with the lock" in steps["noisy"].reason
    assert fast.report.ways[0].processes == "noisy" and fast.report.ways[0].gain > 1.05
    assert fast.report.ways[0].rate >= max(way.rate for way in fast.report.ways) / 1.05
    for text in (str(fast.report), fast.explain()):
        assert "noisy in worker processes (chosen): " in text
        assert "noisy: processes: a record takes 200 us" in text
    assert fast.fingerprint == pipe.fingerprint
    assert digest(fast) == digest(fast, threads=0) == digest(pipe) == digest(pipe, threads=0)
    with pipe.loader(output="numpy", epochs=1, seed=3) as one, fast.loader(output="numpy", epochs=1, seed=3) as other:
        first = iter(one)
        for _ in range(3):
            next(first)
        other.load_state_dict(one.state_dict())
        assert [batch["value"].tobytes() for batch in other] == [batch["value"].tobytes() for batch in first]


def test_a_slice_moves_together() -> None:
    pipe = hr.range(50).map(busy, fields="value", name="one").map(busy, fields="value", name="two").batch(8)
    costs = costs_of(pipe, one=(2e5, 1.0, 2.02e5), two=(2e5, 1.0, 2.02e5))
    assert variants_of(pipe.optimize(profile=costs)) == {"one": "processes", "two": "processes"}


def test_what_cannot_move_stays_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.pickling._by_value", _no_cloudpickle)
    pipe = (
        hr.range(50)
        .map(lambda value: value + 1, fields="value", name="local")
        .map(busy, fields="value", name="alone", variant="inline")
        .map(busy, fields="value", name="seeded", variant="processes", seed_globals=True)
        .map(busy, fields="value", name="cheap")
        .batch(8)
    )
    costs = costs_of(pipe, local=(2e5, 1.0, None), alone=(2e5, 1.0, None), cheap=(300.0, 1.0, 900.0))
    fast = pipe.optimize(profile=costs)
    assert variants_of(fast) == variants_of(pipe)
    assert fast.report is not None
    reasons = {step.node: step.reason for step in fast.report.steps}
    assert "cannot be sent to a worker process" in reasons["local"] and "lambda" in reasons["local"]
    assert reasons["alone"] == "as written: variant: inline, one call at a time"
    assert reasons["seeded"] == "as written: variant: processes"
    assert reasons["cheap"].startswith("a record takes 0.3 us")


def _no_cloudpickle() -> Any:
    raise ImportError("cloudpickle")


def test_an_old_profile_chooses_nothing() -> None:
    pipe = hr.range(50).map(busy, fields="value", name="busy").batch(8)
    profile = json.loads(costs_of(pipe, busy=(2e5, 1.0, 2.1e5)).text)
    profile["headrace_profile"] = 1
    for key in ("transfer_ns", "transfer"):
        del profile["machine"][key]
    for node in profile["nodes"]:
        del node["serial"], node["process_ns"], node["crowd"], node["ordered"]
    fast = pipe.optimize(profile=Profile(json.dumps(profile)))
    assert variants_of(fast) == {"busy": "threads"}
    assert fast.report is not None and "measure again" in fast.report.steps[0].reason


def test_variants_can_be_left() -> None:
    pipe = hr.range(50).map(busy, fields="value", name="busy").batch(8)
    costs = costs_of(pipe, busy=(2e5, 1.0, 2.1e5))
    assert pipe.optimize(profile=costs, variants=False).report.steps == ()  # type: ignore[union-attr]
    with pytest.raises(hr.ArgumentError, match="variants is True or False"):
        pipe.optimize(profile=costs, variants="no")  # type: ignore[arg-type]


def numbers() -> Iterator[int]:
    yield from range(50)


@pytest.mark.parametrize(
    "source", [hr.from_iterable(range(50), name="numbers"), hr.from_generator(numbers, name="numbers")]
)
def test_an_iterable_is_read_by_no_measurement(source: hr.Pipeline, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "headrace")
    pipe = source.map(busy, name="busy").batch(8)
    assert not optimizing.may_move(pipe._built)
    fast = pipe.optimize(seconds=0.1)
    assert fast.report is not None and [step.node for step in fast.report.steps] == ["busy"]
    for text in (str(fast.report), fast.explain()):
        assert "busy: threads: not measured: each variant would read the iterable 'numbers' again" in text
    why = "the iterable 'numbers' is read by the run alone"
    for text in (pipe.explain(optimize=True), pipe.plan(optimize=True)):
        assert f"optimize: nothing is measured: {why}" in text
    assert why not in pipe.explain() + pipe.plan()
    with pipe.loader(output="numpy", optimize=True) as loader, pipe.loader(output="numpy") as other:
        assert str(loader.optimization) == f"the order stays as written: not measured, as {why}"
        assert len(list(loader)) == len(list(other))
        assert f"busy: threads: not measured: {why}" in str(loader.optimization)
        assert loader.optimization is not None and loader.optimization.nodes[0] == "numbers"
    assert f"'busy' stays as written: not measured: {why}" in caplog.text


def test_what_a_loader_has_not_measured_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    pipe = hr.range(50).map(busy, fields="value", name="busy").batch(8)
    line = (
        "optimize: busy: not measured: a run whose loop waits tries worker processes; pipeline.optimize() measures "
        "them now"
    )
    plan = pipe.plan(optimize=True)
    assert plan.startswith(f"# {line}\n") and line in pipe.explain(optimize=True)
    assert line not in pipe.explain(optimize=True, threads=0) + pipe.explain()
    assert digest(pipe, plan=plan) == digest(pipe)
    save(pipe._built.graph, costs_of(pipe, busy=(2e5, 1.0, 2.1e5)))
    assert line not in pipe.explain(optimize=True) + pipe.plan(optimize=True)


def test_measured_costs_decide(tmp_path: Path) -> None:
    pipe = hr.range(5000).map(busy, fields="value", name="busy").batch(8)
    fast = pipe.optimize(fresh=True, seconds=1)
    assert fast.report is not None
    assert fast.report.profile["busy"].serial is not None
    fast.report.profile.save(tmp_path / "p.json")
    again = pipe.optimize(profile=tmp_path / "p.json")
    assert again.report is not None and again.report.steps == fast.report.steps


def test_a_plan_cannot_send_what_was_not_pickled() -> None:
    pipe = hr.range(50).map(busy, fields="value", name="busy").batch(8)
    plan = pipe.plan(threads=2)
    at = plan.index("variant: threads", plan.index("node: busy"))
    edited = plan[:at] + plan[at:].replace("variant: threads", "variant: processes", 1)
    with pytest.raises(hr.HeadraceError, match="'busy' cannot run in a worker process: its variant is not"):
        list(pipe.loader(plan=edited, epochs=1))


def test_a_loader_uses_saved_costs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    pipe = hr.range(200).map(busy, fields="value", name="busy").batch(8)
    with pipe.loader(output="numpy", epochs=1, seed=3, optimize=True) as loader:  # nothing is saved
        want = [batch["value"].tobytes() for batch in loader]
        assert all(one.variant == "threads" for one in codes_of(loader))
    costs = json.loads(costs_of(pipe, busy=(2e5, 1.0, 2.1e5)).text)
    costs["machine"]["cores"] = json.loads(pipe.profile(seconds=0.1, records=8).text)["machine"]["cores"]
    if costs["machine"]["cores"] < 2:
        pytest.skip("one core: nothing moves")
    save(pipe._built.graph, Profile(json.dumps(costs)))
    with pipe.loader(output="numpy", epochs=1, seed=3, optimize=True) as loader:
        assert [batch["value"].tobytes() for batch in loader] == want
        assert [one.variant for one in codes_of(loader)] == ["processes"]
        assert [batch["value"].tobytes() for batch in loader] == want
        if loader.optimization is not None:
            assert loader.optimization.ways[0].processes == "busy"
    with pipe.loader(output="numpy", epochs=1, seed=3, optimize=True, threads=0) as loader:
        assert [batch["value"].tobytes() for batch in loader] == want
        assert [one.variant for one in codes_of(loader)] == ["threads"]


def codes_of(loader: Any) -> list[Any]:
    return [node.code for node in loader._built.nodes if node.code is not None]


SCRIPT = """
import headrace as hr

def busy(value):
    return sum(i & value for i in range(2000))

{guard}
    pipe = hr.range(5000).map(busy, fields="value", name="busy").batch(8)
    fast = pipe.optimize(fresh=True, seconds=0.5)
    print(fast.report.steps[0].reason)
    print("once")
"""


@pytest.mark.parametrize("guarded", [True, False])
def test_a_script_that_is_not_guarded_is_not_run_again(tmp_path: Path, guarded: bool) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(guard="if __name__ == '__main__':" if guarded else "for _ in range(1):"))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.count("once") == 1
    assert ("would run your script again" in done.stdout) == (not guarded)
    assert ("in a worker process, transfer included (measured)" in done.stdout) == guarded


def test_workers_that_do_not_start_leave_code_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = hr.range(50).map(busy, fields="value", name="busy").batch(8)
    costs = costs_of(pipe, busy=(2e5, 1.0, 2.1e5))
    monkeypatch.setattr("headrace.host.Host.wait_imported", _no_workers)
    fast = pipe.optimize(profile=costs)
    assert variants_of(fast) == {"busy": "threads"}
    assert fast.report is not None and fast.report.steps[0].reason == "there are no workers"
    assert len(pipe.profile(seconds=0.1, records=8)) == 3


def _no_workers(host: Any) -> None:
    raise hr.CodeError("there are no workers")
