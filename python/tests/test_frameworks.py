"""The package in frameworks as their users run it: several processes, checkpoints, other numbers of ranks.

Each test is a program of its own, in as few processes as will do, since importing them is what takes time.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

import headrace as hr
from test_examples import needs, script

N = 26


def flat(batches: list[list[float]]) -> list[float]:
    return [x for batch in batches for x in batch]


LIGHTNING = """
import json, sys, warnings
warnings.filterwarnings("ignore")
import lightning as L, torch
from lightning.pytorch.callbacks import ModelCheckpoint
import headrace as hr
from headrace.adapters.lightning import DataModule

folder, pipe, world, checkpoint = sys.argv[1:]
pipe = {"counted": hr.range(26).shuffle().batch(4),
        "filtered": hr.range(26).shuffle().where("value % 5 != 0").batch(4)}[pipe]

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.seen = []
    def training_step(self, batch, index):
        self.seen.append((self.current_epoch, batch.value.tolist()))
        return (self.weight * batch.value.float()).sum()
    def validation_step(self, batch, index):
        pass
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-6)

model = Model()
keep = ModelCheckpoint(folder, filename="{step}", save_top_k=-1, every_n_train_steps=1)
trainer = L.Trainer(max_epochs=2, accelerator="cpu", devices=int(world), strategy="ddp" if world != "1" else "auto", logger=False,
                    callbacks=[keep], enable_progress_bar=False, enable_model_summary=False)
trainer.fit(model, DataModule(pipe, pipe, seed=3), ckpt_path=checkpoint if checkpoint != "-" else None)
json.dump(model.seen, open(f"{folder}/{'whole' if checkpoint == '-' else 'rest'}{trainer.global_rank}.json", "w"))
print("done")
"""


Seen = list[tuple[int, list[float]]]


def seen(folder: pathlib.Path, which: str, world: int) -> list[Seen]:
    """Epochs and values of each rank's batches."""
    found = []
    for rank in range(world):
        file = folder / f"{which}{rank}.json"
        found.append(json.loads(file.read_text()))
        file.unlink()
    return found


@needs("torch", "lightning")
@pytest.mark.parametrize("pipe", ["counted", "filtered"])
def test_two_ranks_of_lightning(pipe: str, tmp_path: pathlib.Path) -> None:
    """They make the same number of steps, and resume exactly: as two, and as one if that is possible."""
    script(tmp_path, LIGHTNING, tmp_path, pipe, 2, "-")
    whole = seen(tmp_path, "whole", 2)
    assert [e for e, _ in whole[0]] == [e for e, _ in whole[1]]
    for epoch in (0, 1):
        values = [x for rank in whole for e, xs in rank if e == epoch for x in xs]
        assert len(values) == len(set(values)) and (pipe == "filtered" or len(values) == N)
    for step in (2, sum(e == 0 for e, _ in whole[0])):
        script(tmp_path, LIGHTNING, tmp_path, pipe, 2, tmp_path / f"step={step}.ckpt")
        assert seen(tmp_path, "rest", 2) == [rank[step:] for rank in whole], f"from step {step}"
    script(tmp_path, LIGHTNING, tmp_path, pipe, 1, tmp_path / "step=1.ckpt")
    rest = [x for e, xs in seen(tmp_path, "rest", 1)[0] if e == 0 for x in xs]
    had = [x for rank in whole for _, xs in rank[:1] for x in xs]
    assert sorted(had + rest) == [x for x in range(N) if pipe == "counted" or x % 5]


TRAINER = """
import json, os, sys
import torch
from transformers import TrainingArguments
from headrace.adapters.huggingface import Trainer
import headrace as hr

folder, pipe = sys.argv[1:]
pipe = {"counted": hr.range(26).shuffle().batch(4),
        "filtered": hr.range(26).shuffle().where("value % 5 != 0").batch(4)}[pipe]

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.seen = []
    def forward(self, value, return_loss=True):
        if self.training:
            self.seen.append(value.tolist())
        return {"loss": (self.weight * value.float()).sum()}

def train(folder, resume=None):
    model = Model()
    length = {"num_train_epochs": 2} if pipe.record_count is not None else {"max_steps": 6}
    options = TrainingArguments(folder, save_steps=1, report_to="none", use_cpu=True, disable_tqdm=True, seed=3, **length)
    trainer = Trainer(model, options, train_dataset=pipe, eval_dataset=hr.range(10).batch(4))
    trainer.train(resume_from_checkpoint=resume)
    assert trainer.evaluate()["eval_loss"] is not None
    return model.seen

rank = int(os.environ["RANK"])
whole = train(folder)
result = {"whole": whole, "rest": {step: train(f"{folder}/again{step}", f"{folder}/checkpoint-{step}") for step in (2, 4)}}
json.dump(result, open(f"{folder}/{rank}.json", "w"))
"""


@needs("torch", "transformers", "accelerate")
@pytest.mark.parametrize("pipe", ["counted", "filtered"])
def test_two_ranks_of_the_trainer(pipe: str, tmp_path: pathlib.Path) -> None:
    ranks = torchrun(tmp_path, TRAINER, 2, tmp_path, pipe)
    assert len(ranks[0]["whole"]) == len(ranks[1]["whole"])
    for rank in ranks:
        for step, rest in rank["rest"].items():
            assert rest == rank["whole"][int(step) :], f"from step {step}"
    if pipe == "counted":
        assert sorted(flat([b for rank in ranks for b in rank["whole"][:4]])) == list(range(N))


def torchrun(folder: pathlib.Path, text: str, world: int, *args: object) -> list[dict[str, Any]]:
    """What each rank wrote to RANK.json."""
    file = folder / "script.py"
    file.write_text(text)
    path = os.pathsep.join([str(pathlib.Path(hr.__file__).parents[1]), *(p for p in sys.path if p)])
    command = [
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(world),
        str(file),
        *map(str, args),
    ]
    out = subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        cwd=folder,
    )
    assert out.returncode == 0, out.stdout[-2000:] + out.stderr[-6000:]
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(world)]


@needs("torch", "torchdata")
def test_checkpoints_of_torch_hold_a_loader(tmp_path: pathlib.Path) -> None:
    """torch.distributed.checkpoint, a state per dp rank as torchtitan keeps it, StatefulDataLoader with and without worker."""
    text = """
import pickle, sys, warnings
warnings.filterwarnings("ignore")
import torch, torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.stateful import Stateful
from torchdata.stateful_dataloader import StatefulDataLoader
import headrace as hr
folder = sys.argv[1]

def make(**options):
    return hr.range(50).shuffle().batch(4).loader(epochs=2, seed=5, threads=1, output="torch", **options)

def values(batches):
    return [b["value"].tolist() for b in batches]

def begun(batches, steps):
    run = iter(batches)
    for _ in range(steps):
        next(run)
    return run

loader = make()
assert isinstance(loader, Stateful)
run = begun(loader, 5)
dcp.save({"loader": loader, "step": 5}, checkpoint_id=folder + "/whole")
again = make()
dcp.load({"loader": again, "step": 0}, checkpoint_id=folder + "/whole")
assert values(again) == values(run)

class Titan(Stateful):
    def __init__(self, rank, world):
        self.loader, self.rank, self.world = make(shard=(rank, world), even="repeat"), rank, world
    def state_dict(self):
        return {f"dp_rank_{self.rank}": pickle.dumps(self.loader.state_dict()), "world_size": self.world}
    def load_state_dict(self, state):
        assert state["world_size"] == self.world
        self.loader.load_state_dict(pickle.loads(state[f"dp_rank_{self.rank}"]))

for rank in range(2):
    one, other = Titan(rank, 2), Titan(rank, 2)
    run = begun(one.loader, 3)
    dcp.save({"dataloader": one}, checkpoint_id=f"{folder}/{rank}")
    dcp.load({"dataloader": other}, checkpoint_id=f"{folder}/{rank}")
    assert values(other.loader) == values(run)

class Wrapped(torch.utils.data.IterableDataset):
    def __init__(self):
        self.loader = make()
    def __iter__(self):
        return map(dict, self.loader)
    def state_dict(self):
        return self.loader.state_dict()
    def load_state_dict(self, state):
        self.loader.load_state_dict(state)

for workers in (0, 1):
    one, other = (StatefulDataLoader(Wrapped(), batch_size=None, num_workers=workers) for _ in range(2))
    run = begun(one, 4)
    other.load_state_dict(one.state_dict())
    rest = values(run)
    assert values(other) == rest and len(rest) == 22
print("exact")
"""
    assert script(tmp_path, text, tmp_path) == "exact"


@needs("jax")
def test_jax_arrays_are_on_the_default_device(tmp_path: pathlib.Path) -> None:
    text = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax, numpy as np, headrace as hr
pipe = hr.from_dataset([{"x": np.full(i + 1, i, np.int32), "y": i} for i in range(8)]).cast("bfloat16", field="y").batch(4, ragged=True)

def arrays():
    return [array for batch in pipe.loader(output="jax") for array in (*batch["x"], batch["y"])]

def check(device):
    assert all(array.device == device for array in arrays()) and len(arrays()) > 2
    assert [array.tolist() for array in arrays()] == wanted

wanted = [array.tolist() for array in arrays()]
check(jax.local_devices()[0])  # a GPU where JAX has one
first, second = jax.local_devices(backend="cpu")
with jax.default_device(second):
    check(second)
jax.config.update("jax_default_device", "cpu")
check(first)
print("there")
"""
    assert script(tmp_path, text) == "there"


@needs("jax")
def test_jax_arrays_show_the_batch_where_jax_has_the_type(tmp_path: pathlib.Path) -> None:
    text = """
import gc, jax, numpy as np, headrace as hr
jax.config.update("jax_platforms", "cpu")
numbers = hr.range(64).map(lambda x: np.full((3, 5), x), outputs={"value": hr.spec("int64", (3, 5))})
for dtype in ("uint8", "int8", "uint16", "int16", "int32", "float16", "float32", "bool"):
    batch = next(iter(numbers.cast(dtype, field="value").batch(8).loader(output="jax", threads=0)))
    assert batch.value.dtype == dtype and batch.value.shape == (8, 3, 5)
    assert batch.value.unsafe_buffer_pointer() == np.asarray(batch.raw("value")).ctypes.data, dtype
batch = next(iter(numbers.cast("bfloat16", field="value").batch(8).loader(output="jax", threads=0)))
assert batch.value.dtype == "bfloat16" and float(batch.value[7].sum()) == 105
wide = next(iter(numbers.batch(8).loader(output="jax", threads=0)))  # JAX has no 64-bit types by default
assert wide.value.dtype == "int32" and int(wide.value[7].sum()) == 105

kept = [batch.value for batch in hr.range(4000).cast("int32", field="value").batch(1000).loader(output="jax", threads=1)]
gc.collect()
assert [int(one.sum()) for one in kept] == [sum(range(i, i + 1000)) for i in range(0, 4000, 1000)]

batch = next(iter(numbers.cast("float32", field="value").batch(32).loader(output="jax", threads=0)))
value, before = batch.value, np.asarray(batch.raw("value")).copy()
jax.jit(lambda x: x + 1, donate_argnums=0)(value).block_until_ready()
assert (np.asarray(batch.raw("value")) == before).all()
print("shown")
"""
    assert script(tmp_path, text) == "shown"


@needs("torch")
def test_what_torch_devices_say(tmp_path: pathlib.Path) -> None:
    text = """
import torch, headrace as hr
pipe = hr.range(8).batch(4)
for options in ({"device": "cpu"}, {"device": torch.device("cpu")}, {"output": "torch"}, {"device": "cpu", "pin_memory": True}):
    assert next(iter(pipe.loader(**options))).value.tolist() == [0, 1, 2, 3]
if not torch.cuda.is_available():
    try:
        pipe.loader(device="cuda")
    except hr.UnsupportedError as error:
        assert "no CUDA device" in str(error) and error.param == "device"
    else:
        raise SystemExit("device='cuda' was taken")
for wrong in ("cuba", "numpy"):
    try:
        pipe.loader(device=wrong) if wrong == "cuba" else pipe.loader(device="cpu", output="numpy")
    except hr.HeadraceError as error:
        assert error.param == "device", error
    else:
        raise SystemExit("a wrong device was taken")
print("said")
"""
    assert script(tmp_path, text) == "said"
