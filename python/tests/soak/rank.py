"""A rank of a training run, as a process: `rank.py FOLDER RANK WORLD`.

FOLDER has job.json: the pipeline, and the states to resume from. The rank writes what each
step got to log-RANK, and its state every few steps to a file of its own: written beside,
synced, renamed, as checkpoints should be. On request it dies while it writes one.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import signal
import sys
import time
from typing import Any

import graphs
import numpy as np

import headrace as hr


def digests(batch: hr.Batch) -> list[list[Any]]:
    """[id, digest of all fields] of each record."""
    fields = {name: np.asarray(batch[name]) for name in sorted(batch)}
    return [
        [int(fields["id"][i]), hashlib.md5(b"".join(f[i].tobytes() for f in fields.values())).hexdigest()[:12]]
        for i in range(batch.records)
    ]


def save(folder: pathlib.Path, name: str, state: dict[str, Any], die: bool) -> None:
    """A file that is complete or not there."""
    text = json.dumps(state)
    with open(folder / f"{name}.new", "w") as file:
        file.write(text[: len(text) // 2])
        if die:
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        file.write(text[len(text) // 2 :])
        file.flush()
        os.fsync(file.fileno())
    os.rename(folder / f"{name}.new", folder / name)


def loader_of(job: dict[str, Any], rank: int, world: int) -> hr.Loader:
    """The loader of this rank, at the place that the job names."""
    spec = job["spec"]
    even = spec["tail"] if spec["tail"] in ("drop", "repeat") else "none"
    place: dict[str, Any] = {} if world == 1 and job["bare"] else {"shard": (rank, world)}
    pipe = graphs.build(spec, pathlib.Path(job["data"]))
    loader = pipe.loader(epochs=1, seed=spec["seed"], threads=spec["threads"], even=even, output="numpy", **place)
    states = job["states"]
    if len(states) > 1:
        loader.load_state_dict(states[rank])
    elif states:
        loader.load_state_dict(states[0])
    return loader


def train(folder: pathlib.Path, rank: int, world: int) -> None:
    """Run to the end of the last epoch, or until somebody kills this process."""
    job = json.loads((folder / "job.json").read_text())
    loader = loader_of(job, rank, world)
    state = loader.state_dict()
    with open(folder / f"log-{rank}", "w", buffering=1) as log:
        print("ready", flush=True)
        sys.stdin.readline()
        for epoch in range(job["epoch"], job["spec"]["epochs"]):
            step = 0
            for batch in loader:
                log.write(json.dumps({"epoch": epoch, "step": step, "records": digests(batch)}) + "\n")
                state = loader.state_dict()
                step += 1
                if step % job["every"] == 0:
                    save(folder, f"state-{rank}-{epoch}-{step}", state, job["die"] == [rank, epoch, step])
                time.sleep(job["pause"])
            if state["engine"] is not None:  # else it had no batch: nobody would have saved a state
                save(folder, f"last-{rank}-{epoch}-{step}", state, False)
            state = loader.state_dict()
            save(folder, f"end-{rank}-{epoch}", state, job["die"] == [rank, epoch, -1])
    print("done", flush=True)


if __name__ == "__main__":
    train(pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
