"""Pipelines drawn at random, with functions that worker processes find by name.

A drawn pipeline is a dict for json, so that every rank's process builds the same. Each
record has a unique `id`: its number, or its parent's and the child's.
"""

from __future__ import annotations

import os
import pathlib
import random
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import headrace as hr

Spec = dict[str, Any]
Record = dict[str, Any]


def number(record: Any) -> int:
    """The id of a record, whatever its source calls it."""
    if isinstance(record, dict):
        if "id" in record:
            return int(record["id"])
        record = record["path"]
    if isinstance(record, str):  # "name-12", "boat/photo_00000012.jpg"
        record = "".join(c for c in os.path.basename(record) if c.isdigit())
    return int(record)


def noisy(record: Any) -> Record:
    """What the record held, and draws that are keyed by it."""
    made: Record = {"id": number(record), "noise": hr.rng().random(3)}
    if isinstance(record, dict) and "image" in record:
        made["mean"] = float(record["image"].mean())
    return made


def slow(record: Any) -> Record:
    """The same, and takes a moment, so that a kill meets it at work."""
    time.sleep(0.0005)
    return noisy(record)


def keep(record: Any) -> bool:
    """Two of three; another choice in every epoch."""
    return bool(hr.rng().random() < 0.66)


def children(record: Record) -> Iterator[Record]:
    """None to three of a record."""
    draws = hr.rng().random(4)
    for i in range(number(record) % 4):
        yield {"id": 10 * number(record) + i, "noise": draws[i]}


def doubled(batch: Record) -> Record:
    """A function of whole batches that looks at each record alone."""
    return {**batch, "double": batch["id"] * 2}


class Items:
    """A map-style dataset."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> Record:
        return {"id": i, "row": np.arange(i, i + 3, dtype=np.float32)}


class Lines:
    """An iterable without a length."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[Record]:
        for i in range(self.count):
            yield {"id": i, "row": np.arange(i, i + 3, dtype=np.float32)}


def draw(chance: random.Random) -> Spec:
    """A pipeline, and how it is run."""
    source = chance.choice(["range", "range", "list", "photos", "dataset", "dataset", "iterable", "generator"])
    endless = source in ("iterable", "generator")
    spec: Spec = {
        "source": source,
        "count": chance.randrange(24, 60) if source == "photos" else chance.randrange(40, 400),
        "seed": chance.randrange(1000),
        "epochs": chance.choice([1, 1, 2, 3]),
        "threads": chance.choice([0, 1, 2]),
        "shuffle": None if endless else chance.choice([0, 0, 16, None]),
        "map": chance.choice(["threads", "threads", "inline", "processes"]),
        "slow": chance.random() < 0.5,
        "filter": chance.choice([None, None, None, "where", "code"]),
        "children": chance.random() < 0.2,
        "window": 0,
        "batch": chance.choice([1, 3, 4, 8]),
        "map_batch": chance.random() < 0.2,
        "tail": chance.choice(["none", "none", "drop_last", *([] if endless else ["drop", "repeat"])]),
    }
    if spec["filter"] or spec["children"] or endless:
        spec["window"] = chance.choice([0, 0, 0, 16])
    if (spec["filter"] or spec["children"]) and spec["tail"] in ("drop", "repeat"):
        spec["tail"] = "none"  # even shares need a known number of records
    return spec


def build(spec: Spec, folder: pathlib.Path) -> hr.Pipeline:
    """The pipeline of a spec; `folder` has what its source reads."""
    variant = spec["map"]
    pipe = _source(spec, folder)
    if spec["shuffle"] is not None:
        pipe = pipe.shuffle(window=spec["shuffle"])
    if spec["source"] == "photos":
        pipe = pipe.decode().random_resized_crop(16).flip()
    if spec["filter"] == "code":
        pipe = pipe.filter(keep, variant=variant)
    pipe = pipe.map(slow if spec["slow"] else noisy, variant=variant)
    if spec["filter"] == "where":
        pipe = pipe.where("id % 3 != 1")
    if spec["children"]:
        pipe = pipe.flat_map(children, variant=variant)
    if spec["window"]:
        pipe = pipe.shuffle(window=spec["window"])
    pipe = pipe.batch(spec["batch"], drop_last=spec["tail"] == "drop_last")
    return pipe.map_batch(doubled) if spec["map_batch"] else pipe


def _source(spec: Spec, folder: pathlib.Path) -> hr.Pipeline:
    count = spec["count"]
    if spec["source"] == "range":
        return hr.range(count)
    if spec["source"] == "list":
        return hr.list(folder / "names.txt")
    if spec["source"] == "photos":
        return hr.files(folder / "photos", paths=True)
    if spec["source"] == "dataset":
        return hr.from_dataset(Items(count), variant=spec["map"])
    if spec["source"] == "iterable":
        return hr.from_iterable(Lines(count))
    return hr.from_generator(lambda: iter(Lines(count)), version=str(count))


def prepare(spec: Spec, folder: pathlib.Path, command: str) -> None:
    """Make what the source reads."""
    if spec["source"] == "list":
        (folder / "names.txt").write_text("".join(f"name-{i}\n" for i in range(spec["count"])))
    if spec["source"] == "photos":
        import subprocess

        size = ["--width", "48", "--height", "40", "--classes", "3"]
        subprocess.run(
            [command, "synth", "photos", folder / "photos", "-q", "-n", str(spec["count"]), *size], check=True
        )
