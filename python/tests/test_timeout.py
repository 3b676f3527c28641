"""loader(timeout=): a record at which the code stays is named."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import headrace as hr
import stuckfns

SPEC = ["value: int64"]


@pytest.mark.parametrize("variant", ["threads", "inline", "processes"])
@pytest.mark.filterwarnings("ignore:closed a run that has not ended")
def test_a_stuck_record_is_named(variant: Any, children: Any) -> None:
    pipe = hr.range(1000).map(stuckfns.stays_at_37, fields="value", outputs=SPEC, variant=variant, name="mine").batch(4)
    seen = 0
    with pytest.raises(hr.StuckError, match=r"no batch came within 2 s.*stays_at_37.*'mine'.*record 37") as caught:
        for _ in pipe.loader(threads=2, timeout=2):
            seen += 1
    assert isinstance(caught.value, TimeoutError)
    assert seen <= 9 and (caught.value.node, caught.value.record) == ("mine", 37)


@pytest.mark.filterwarnings("ignore:closed a run that has not ended")
def test_a_stuck_iterable_is_named() -> None:
    release = threading.Event()

    def items() -> Any:
        yield from range(10)
        release.wait(60)

    with pytest.raises(hr.StuckError, match="record 10"):
        list(hr.from_generator(items).batch(2).loader(threads=2, timeout=2))
    release.set()


def test_a_call_that_finds_types_has_the_timeout() -> None:
    release = threading.Event()

    def waits(value: int) -> int:
        release.wait(100)
        return value

    class Waits:
        def __len__(self) -> int:
            return 5

        def __getitem__(self, at: int) -> int:
            return waits(at)

    def items() -> Any:
        yield waits(1)

    mapped = hr.range(9).map(waits, fields="value", name="mine").batch(2)
    with pytest.raises(hr.StuckError, match=r"'mine' \(code.map\): .*waits did not return within 0.5 s") as caught:
        mapped.loader(timeout=0.5)
    assert (caught.value.node, caught.value.op) == ("mine", "code.map")
    with pytest.raises(hr.StuckError, match="the data set did not return"):
        hr.from_dataset(Waits()).batch(2).loader(timeout=0.5)
    with pytest.raises(hr.StuckError, match="did not return"):
        hr.from_generator(items).batch(2).loader(timeout=0.5)
    assert [batch.value.tolist() for batch in hr.range(3).map(lambda x: x, fields="value").batch(3).loader()] == [
        [0, 1, 2]
    ]
    declared = hr.range(3).map(lambda x: x, fields="value", outputs=SPEC)
    assert len(list(declared.loader(timeout=60))) == 3
    with pytest.raises(hr.CodeError, match="ZeroDivisionError"):
        hr.range(9).map(lambda value: value / 0, fields="value").loader(timeout=60)
    release.set()
    assert [batch.value.tolist() for batch in mapped.loader(timeout=60, output="numpy")][:1] == [[0, 1]]


@pytest.mark.parametrize("variant", ["threads", "processes"])
def test_only_the_wait_for_a_batch_counts(variant: Any) -> None:
    pipe = hr.range(40).map(stuckfns.slow, fields="value", outputs=SPEC, variant=variant).batch(2)
    got = []
    for batch in pipe.loader(threads=2, timeout=3, output="numpy"):
        got += batch.value.tolist()
        if len(got) == 10:
            time.sleep(3.5)  # the loop's own time
    assert got == list(range(40))


def test_what_a_timeout_cannot_do_is_refused() -> None:
    pipe = hr.range(4).batch(2)
    with pytest.raises(hr.ArgumentError, match="a timeout needs threads"):
        pipe.loader(threads=0, timeout=1)
    plan = pipe.plan(threads=0)
    with pytest.raises(hr.HeadraceError, match="a timeout needs threads"):
        list(pipe.loader(plan=plan, timeout=1))
    for wrong in (0, -1, True, "1", float("nan"), float("inf")):
        options: Any = {"timeout": wrong}
        with pytest.raises(hr.ArgumentError, match="timeout is a number of seconds"):
            pipe.loader(**options)


def test_a_loader_whose_code_hangs_keeps_no_other_from_being_made() -> None:
    going, begun = threading.Event(), threading.Event()

    def wait(value: int) -> dict[str, int]:
        begun.set()
        going.wait()
        return {"value": value}

    hanging = threading.Thread(target=lambda: hr.range(10).map(wait).batch(2).loader(), daemon=True)
    hanging.start()
    assert begun.wait(60)
    other = threading.Thread(target=lambda: hr.range(10).batch(2).loader(), daemon=True)
    other.start()
    other.join(20)
    done = not other.is_alive()
    going.set()
    hanging.join(60)
    assert done and not hanging.is_alive()
