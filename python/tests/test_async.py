"""`async for` over a loader."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from typing import Any

import numpy as np
import pytest

import headrace as hr


def values(batch: Any) -> list[int]:
    return [int(v) for v in batch.value]


def slowly(value: int) -> int:
    time.sleep(0.05)
    return value


def slow_loader(**options: Any) -> hr.Loader:
    return (
        hr.range(40)
        .map(slowly, fields="value", variant="threads")
        .batch(4)
        .loader(output="numpy", threads=1, **options)
    )


async def collect(loader: hr.Loader) -> list[list[int]]:
    return [values(batch) async for batch in loader]


def test_an_async_loop_gives_what_a_loop_gives() -> None:
    pipe = hr.range(103).shuffle(seed=3).batch(10)
    expected = [values(b) for b in pipe.loader(epochs=2, output="numpy")]
    loader = pipe.loader(epochs=2, output="numpy")
    assert asyncio.run(collect(loader)) == expected
    assert asyncio.run(collect(loader)) == [values(b) for e in (2, 3) for b in pipe.loader(output="numpy").epoch(e)]


def test_other_tasks_run_while_a_batch_is_made() -> None:
    async def main() -> tuple[int, int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.001)

        ticking = asyncio.create_task(tick())
        batches = len(await collect(slow_loader()))
        ticking.cancel()
        return batches, ticks

    batches, ticks = asyncio.run(main())
    assert batches == 10 and ticks > 2 * batches


def test_a_step_that_is_cancelled_loses_nothing() -> None:
    async def main() -> None:
        loader = slow_loader()
        loop = aiter(loader)
        got, states, cancelled = [], [], 0
        while True:
            try:
                batch = await asyncio.wait_for(anext(loop), 0.01)
            except TimeoutError:
                cancelled += 1
                states.append((len(got), loader.state_dict()))
                continue
            except StopAsyncIteration:
                break
            got.append(values(batch))
        assert cancelled > 3 and got == [list(range(i, i + 4)) for i in range(0, 40, 4)]
        # the state is that of the batches which were received
        for received, state in states[:: max(1, len(states) // 5)]:
            again = slow_loader()
            again.load_state_dict(state)
            assert [values(b) for b in again] == got[received:]

    asyncio.run(main())


def test_a_state_resumes_an_async_loop() -> None:
    async def main() -> None:
        pipe = hr.range(50).shuffle(seed=1).batch(5)
        loader = pipe.loader(output="numpy")
        expected = [values(b) for b in pipe.loader(output="numpy")]
        got = []
        async for batch in loader:
            got.append(values(batch))
            if len(got) == 4:
                state = loader.state_dict()
                break
        again = pipe.loader(output="numpy")
        again.load_state_dict(state)
        assert got == expected[:4] and await collect(again) == expected[4:]

    asyncio.run(main())


def test_errors_and_closing_end_an_async_loop() -> None:
    def fails(value: int) -> int:
        if value == 7:
            raise KeyError("seven")
        return value

    async def failing() -> None:
        loader = hr.range(20).map(fails, fields="value", variant="threads").batch(2).loader(output="numpy")
        loop = aiter(loader)
        with pytest.raises(KeyError, match="seven"):
            async for _ in loop:
                pass
        with pytest.raises(StopAsyncIteration):
            await anext(loop)

    async def closed() -> None:
        loader = slow_loader()
        loop = aiter(loader)
        await anext(loop)
        step = asyncio.ensure_future(anext(loop))
        await asyncio.sleep(0)
        await asyncio.to_thread(loader.close)
        with pytest.raises((hr.CancelledError, StopAsyncIteration)):
            while True:
                await step
                step = asyncio.ensure_future(anext(loop))
        with pytest.raises(hr.ClosedError):
            await collect(loader)

    asyncio.run(failing())
    asyncio.run(closed())


def test_an_async_loop_leaves_no_thread() -> None:
    def threads() -> list[str]:
        return [t.name for t in threading.enumerate() if t.name.startswith("headrace-async")]

    async def main() -> None:
        async for _ in hr.range(10).batch(2).loader():
            break

    asyncio.run(collect(hr.range(10).batch(2).loader(output="numpy")))
    asyncio.run(main())
    gc.collect()
    deadline = time.monotonic() + 30
    while threads() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threads() == []


def test_batches_in_completion_order_have_no_state_and_run() -> None:
    loader = hr.range(100).batch(10).loader(ordered=False, output="numpy")
    got = asyncio.run(collect(loader))
    assert sorted(v for b in got for v in b) == list(np.arange(100))
