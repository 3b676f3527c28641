"""Batches in an asyncio program: other tasks run while a batch is made.

python examples/cookbook/with_asyncio.py photos
"""

import asyncio
import sys

import headrace as hr


async def report(progress: dict[str, int]) -> None:
    """Any other task of the program."""
    while True:
        print(f"{progress['photos']} photos so far")
        await asyncio.sleep(0.5)


async def train(photos: hr.Pipeline) -> None:
    progress = {"photos": 0}
    reporting = asyncio.create_task(report(progress))
    with photos.batch(8).loader(output="numpy") as loader:
        async for batch in loader:
            progress["photos"] += batch.records
    reporting.cancel()
    print(f"{progress['photos']} photos in all")


folder = sys.argv[1] if len(sys.argv) > 1 else "photos"
asyncio.run(train(hr.files(folder).shuffle().decode().random_resized_crop(128)))
