"""The examples run in the frameworks that are installed, and resume where they were stopped.

`make check-adapters` makes an environment with all of them; elsewhere what is absent is skipped.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

import headrace as hr
from conftest import ROOT

EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="session")
def photos(command: str, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """train/ with 100 photos, val/ with 40."""
    folder = tmp_path_factory.mktemp("photos")
    for name, count, seed in (("train", 100, 1), ("val", 40, 2)):
        subprocess.run(
            [command, "synth", "photos", str(folder / name), "--count", str(count), "--seed", str(seed)],
            check=True,
            capture_output=True,
        )
    return folder


def run(name: str, *args: object, seconds: float = 180, kill_at: str | None = None) -> str:
    """What the example prints; `kill_at`: kill it when a line has this."""
    path = os.pathsep.join([str(pathlib.Path(hr.__file__).parents[1]), *(p for p in sys.path if p)])
    process = subprocess.Popen(
        [sys.executable, str(EXAMPLES / name), *map(str, args)],
        env={**os.environ, "PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "2"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if kill_at is None:
        out, _ = process.communicate(timeout=seconds)
        assert process.returncode == 0, out
        return out
    assert process.stdout is not None
    out = ""
    for line in process.stdout:
        out += line
        if kill_at in line:
            process.kill()
            return out + process.communicate()[0]
    raise AssertionError(out)


def losses(text: str) -> list[str]:
    return re.findall(r"^epoch (.*loss .*)$", text, re.MULTILINE)


def goes_on(head: list[str], rest: list[str], whole: list[str]) -> bool:
    """Whether `rest` resumes where `head` was killed, possibly after a step was saved but before it was printed."""
    lost = len(whole) - len(head) - len(rest)
    return lost in (0, 1) and head == whole[: len(head)] and rest == whole[len(head) + lost :]


def needs(*names: str) -> pytest.MarkDecorator:
    """Skip without these; they are not imported here, where they would share a process."""
    absent = [name for name in names if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(
        bool(absent), reason=f"{', '.join(absent)} not installed; `make check-adapters` installs it"
    )


# ---- the examples ----


@needs("torch")
def test_torch_resumes_after_a_kill(photos: pathlib.Path, tmp_path: pathlib.Path) -> None:
    whole = losses(run("train_torch.py", photos / "train", tmp_path / "whole.pt"))
    assert len(whole) == 8
    head = losses(run("train_torch.py", photos / "train", tmp_path / "broken.pt", "--save-every", 1, kill_at="epoch 1"))
    rest = losses(run("train_torch.py", photos / "train", tmp_path / "broken.pt"))
    assert goes_on(head, rest, whole)


@needs("torch", "lightning")
def test_lightning_example(photos: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert re.search(r"after 8 steps", run("train_lightning.py", photos, tmp_path))


@needs("torch", "transformers", "accelerate")
def test_huggingface_example(photos: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert re.search(r"after 8 steps", run("train_huggingface.py", photos, tmp_path))


@needs("jax")
def test_jax_resumes_after_a_kill(photos: pathlib.Path, tmp_path: pathlib.Path) -> None:
    whole = losses(run("train_jax.py", photos / "train", tmp_path / "whole.npz"))
    assert len(whole) == 6
    head = losses(run("train_jax.py", photos / "train", tmp_path / "broken.npz", "--save-every", 1, kill_at="epoch 1"))
    rest = losses(run("train_jax.py", photos / "train", tmp_path / "broken.npz"))
    assert goes_on(head, rest, whole)


@needs("tensorflow")
def test_tensorflow_example(photos: pathlib.Path, tmp_path: pathlib.Path) -> None:
    model = tmp_path / "model.keras"
    assert "1 epochs completed" in run("train_tensorflow.py", photos / "train", model, "--epochs", 1)
    again = run("train_tensorflow.py", photos / "train", model)
    assert "resuming with epoch 2" in again and "Epoch 2/2" in again and "Epoch 1/" not in again


@needs("torch", "ray")
def test_ray_example(photos: pathlib.Path, tmp_path: pathlib.Path) -> None:
    model = tmp_path / "model.pt"
    assert "epoch 0  4 steps on each worker" in run("train_ray.py", photos / "train", model, "--epochs", 1)
    again = run("train_ray.py", photos / "train", model, "--workers", 1)
    assert "epoch 1  7 steps on each worker" in again and "epoch 0 " not in again


# ---- as a stranger starts them ----


@pytest.mark.parametrize("name", sorted(file.name for file in EXAMPLES.glob("train_*.py")))
def test_without_its_framework_an_example_says_what_to_install(name: str, tmp_path: pathlib.Path) -> None:
    for package in ("torch", "lightning", "transformers", "jax", "tensorflow", "ray"):
        (tmp_path / f"{package}.py").write_text(f"raise ModuleNotFoundError(\"No module named '{package}'\")\n")
    path = os.pathsep.join([str(tmp_path), str(pathlib.Path(hr.__file__).parents[1]), *(p for p in sys.path if p)])
    out = subprocess.run(
        [sys.executable, str(EXAMPLES / name), "--help"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert out.returncode == 1 and out.stdout == ""
    assert re.fullmatch(r"No module named '\w+'; this example needs \w+: pip install .+\n", out.stderr)


@needs("torch")
def test_wrong_photos_are_said_in_a_sentence(tmp_path: pathlib.Path) -> None:
    (tmp_path / "one.jpg").write_bytes(b"no photo")
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(AssertionError) as caught:
            run("train_torch.py", folder, tmp_path / "model.pt")
        assert "train_torch.py: " in str(caught.value) and "Traceback" not in str(caught.value)


# ---- which records the frameworks see, unbroken and resumed ----

N = 50


def numbers(records: int = N, batch: int = 8) -> hr.Pipeline:
    return hr.range(records).shuffle().map(lambda x: float(x), version="1").batch(batch)


def filtered() -> hr.Pipeline:
    return hr.range(N).shuffle().where("value % 3 != 0").map(lambda x: float(x), version="1").batch(8)


LIGHTNING = """
import json, sys, warnings
warnings.filterwarnings("ignore")
import lightning as L, torch
from lightning.pytorch.callbacks import ModelCheckpoint
import headrace as hr
from headrace.adapters.lightning import DataModule
sys.path.insert(0, sys.argv[1])
import test_examples

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.seen = []
    def training_step(self, batch, index):
        assert type(batch) is hr.Batch
        self.seen.append((self.current_epoch, batch.value.tolist()))
        return (self.weight * batch.value.float()).sum()
    def validation_step(self, batch, index):
        pass
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-6)

def fit(make, folder, epochs, **options):
    model = Model()
    keep = ModelCheckpoint(folder, filename="{step}", save_top_k=-1, **options)
    trainer = L.Trainer(max_epochs=epochs, accelerator="cpu", logger=False, callbacks=[keep], enable_progress_bar=False,
                        enable_model_summary=False)
    return model, trainer

pipes = {"numbers": test_examples.numbers, "filtered": test_examples.filtered}
make, when, folder = pipes[sys.argv[2]], sys.argv[3], sys.argv[4]
options = {"every_n_train_steps": 1} if when == "steps" else {"every_n_epochs": 1}
model, trainer = fit(make, folder, 3, **options)
trainer.fit(model, DataModule(make(), make(), seed=3))
result = {"whole": model.seen, "resumed": {}}
import glob, re
for path in sorted(glob.glob(folder + "/*.ckpt")):
    step = int(re.search(r"step=(\\d+)", path)[1])
    if when == "steps" and step % 5 not in (0, 2):
        continue
    again, trainer = fit(make, folder + "/again", 3, **options)
    trainer.fit(again, DataModule(make(), make(), seed=3), ckpt_path=path)
    result["resumed"][step] = again.seen
print(json.dumps(result))
"""


@needs("torch", "lightning")
@pytest.mark.parametrize("pipe", ["numbers", "filtered"])
@pytest.mark.parametrize("when", ["steps", "epochs"])
def test_lightning_resumes_exactly(pipe: str, when: str, tmp_path: pathlib.Path) -> None:
    """From checkpoints within an epoch, at its end, and where the length is not known."""
    got = json.loads(script(tmp_path, LIGHTNING, pathlib.Path(__file__).parent, pipe, when, tmp_path / "kept"))
    whole = got["whole"]
    per_epoch = {e: sorted(x for epoch, xs in whole if epoch == e for x in xs) for e in range(3)}
    wanted = [float(x) for x in range(N) if pipe == "numbers" or x % 3]
    assert list(per_epoch.values()) == [wanted] * 3
    assert got["resumed"]
    for step, seen in got["resumed"].items():
        assert seen == whole[int(step) :], f"from step {step}"


TRAINER = """
import json, shutil, sys
import torch
from transformers import TrainingArguments
from headrace.adapters.huggingface import Trainer
sys.path.insert(0, sys.argv[1])
import test_examples

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.seen = []
    def forward(self, value, return_loss=True):
        if self.training:
            self.seen.append(value.tolist())
        return {"loss": (self.weight * value.float()).sum()}

def train(folder, resume=None, accumulate=1):
    model = Model()
    options = TrainingArguments(folder, num_train_epochs=3, save_steps=1, report_to="none", use_cpu=True, disable_tqdm=True,
                                gradient_accumulation_steps=accumulate, seed=3)
    trainer = Trainer(model, options, train_dataset=test_examples.numbers())
    trainer.train(resume_from_checkpoint=resume)
    return model.seen

folder, accumulate = sys.argv[2], int(sys.argv[3])
whole = train(folder, accumulate=accumulate)
result = {"whole": whole, "resumed": {}}
for step in (2, 3, 4):
    kept = f"{folder}/checkpoint-{step}"
    result["resumed"][step] = train(folder + f"/again{step}", kept, accumulate)
print()
print(json.dumps(result))
"""


@needs("torch", "transformers", "accelerate")
@pytest.mark.parametrize("accumulate", [1, 2])
def test_the_trainer_resumes_exactly(accumulate: int, tmp_path: pathlib.Path) -> None:
    """huggingface/datasets#7901: lost or repeated samples on resume."""
    got = json.loads(script(tmp_path, TRAINER, pathlib.Path(__file__).parent, tmp_path / "kept", accumulate))
    whole = got["whole"]
    assert len(whole) == 21
    for e in range(3):
        assert sorted(x for xs in whole[7 * e : 7 * e + 7] for x in xs) == list(range(N))
    per_epoch = -(-7 // accumulate)
    for step, seen in got["resumed"].items():
        done = int(step) // per_epoch * 7 + int(step) % per_epoch * accumulate
        assert seen == whole[done:], f"from step {step}"


@needs("torch", "accelerate")
def test_accelerate_keeps_a_loader(tmp_path: pathlib.Path) -> None:
    """`register_for_checkpointing` takes a loader as it is; `send_to_device` a batch."""
    text = """
import sys, torch
from accelerate import Accelerator
from accelerate.utils import send_to_device
import headrace as hr
def make():
    accelerator = Accelerator(cpu=True)
    loader = accelerator.prepare(hr.range(50).shuffle().batch(8).loader(epochs=2, output="torch"))
    accelerator.register_for_checkpointing(loader)
    return accelerator, loader
accelerator, loader = make()
seen = []
for i, batch in enumerate(loader):
    seen.append(send_to_device(batch, accelerator.device).value.tolist())
    if i == 8:
        accelerator.save_state(sys.argv[1])
accelerator, loader = make()
accelerator.load_state(sys.argv[1])
assert [b.value.tolist() for b in loader] == seen[9:]
print("same")
"""
    assert "same" in script(tmp_path, text, tmp_path / "state")


@needs("torch", "torchdata")
def test_torchdata_nodes_take_a_loader(tmp_path: pathlib.Path) -> None:
    """torchdata's Stateful protocol is what a loader has."""
    text = """
from torchdata.nodes import IterableWrapper, Loader
import headrace as hr
make = lambda: Loader(IterableWrapper(hr.range(40).shuffle().batch(8).loader(output="torch")))
node = make()
run = iter(node)
head = [next(run).value.tolist() for _ in range(2)]
state = node.state_dict()
rest = [b.value.tolist() for b in run]
again = make()
again.load_state_dict(state)
print([b.value.tolist() for b in again] == rest, len(rest))
"""
    assert script(tmp_path, text) == "True 3"


@needs("jax")
def test_jax_arrays_on_a_mesh(tmp_path: pathlib.Path) -> None:
    text = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import headrace as hr
from headrace.adapters import jax as hj
sharding = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), P("data"))
train = hj.loader(hr.range(32).shuffle().batch(8), epochs=2, seed=1)
got = [b["value"] for b in hj.on_devices(train, sharding)]
assert len(got) == 8 and all(len(a.sharding.device_set) == 4 for a in got)
plain = [b.value for b in hr.range(32).shuffle().batch(8).loader(epochs=2, seed=1, output="jax")]
assert all((np.asarray(a) == np.asarray(b)).all() for a, b in zip(got, plain)) and isinstance(plain[0], jax.Array)
try: next(hj.on_devices(hr.from_iterable([{"text": "a"}] * 2).batch(2).loader(output="numpy"), sharding))
except hr.ShapeError as error: print(error)
"""
    assert "'text' is ragged or byte strings" in script(tmp_path, text)


@needs("tensorflow")
def test_tensorflow_gets_every_kind_of_field(tmp_path: pathlib.Path) -> None:
    text = """
import numpy as np, tensorflow as tf, headrace as hr
from headrace.adapters.tensorflow import dataset
def record(x):
    return {"image": np.full((4, 5, 3), x, np.uint8), "text": f"no {x}", "label": x}
made = dataset(hr.range(10).map(record).batch(4))
got = list(made)
assert int(made.cardinality()) == 3 and [g["image"].shape[0] for g in got] == [4, 4, 2]
assert got[2]["text"].numpy().tolist() == [b"no 8", b"no 9"] and got[1]["label"].numpy().tolist() == [4, 5, 6, 7]
assert made.element_spec["image"].shape.as_list() == [None, 4, 5, 3]
ragged = hr.range(5).map(lambda x: np.arange(x, dtype=np.int64)).batch(5, ragged=True)
value = next(iter(dataset(ragged)))["value"]
assert value.to_list() == [list(range(x)) for x in range(5)]
print("same")
"""
    assert "same" in script(tmp_path, text)


@needs("torch")
def test_ray_shards_have_its_interface_without_ray(tmp_path: pathlib.Path) -> None:
    text = """
import torch, headrace as hr
from headrace.adapters.ray import Shard, shard
one = shard(hr.range(10).batch(4), seed=1)
got = [b["value"] for b in one.iter_torch_batches()]
assert isinstance(got[0], torch.Tensor) and [len(b) for b in got] == [4, 4, 2] and len(one) == 3
assert [b["value"].tolist() for b in one.iter_batches()] == [b.tolist() for b in got]
parts = [Shard(hr.range(10).batch(4).loader(shard=(r, 3), even="repeat", output="torch")) for r in range(3)]
print([len(list(p.iter_torch_batches(device="cpu"))) for p in parts])
"""
    assert script(tmp_path, text) == "[1, 1, 1]"


def script(folder: pathlib.Path, text: str, *args: object) -> str:
    """The last line that a program of its own prints."""
    file = folder / "script.py"
    file.write_text(text)
    path = os.pathsep.join([str(pathlib.Path(hr.__file__).parents[1]), *(p for p in sys.path if p)])
    out = subprocess.run(
        [sys.executable, str(file), *map(str, args)],
        env={**os.environ, "PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "2"},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
        cwd=folder,
    )
    assert out.returncode == 0, out.stdout[-2000:] + out.stderr[-4000:]
    return out.stdout.strip().splitlines()[-1]


@needs("torch")
def test_a_detector_learns_from_generated_scenes() -> None:
    text = run("train_detection.py", "--steps", 31, "--scenes", 80, seconds=600)
    steps = [float(loss) for loss in re.findall(r"^step \d+: loss (.*)$", text, re.MULTILINE)]
    assert len(steps) == 4 and max(steps[1:]) < 0.6 * steps[0]
    assert re.search(r"^test: \d+ of [1-9]\d* anchors", text, re.MULTILINE)


@needs("torch")
def test_a_segmenter_learns_from_generated_scenes() -> None:
    text = run("train_segmentation.py", "--steps", 31, "--scenes", 80, seconds=600)
    steps = [float(loss) for loss in re.findall(r"^step \d+: loss (.*)$", text, re.MULTILINE)]
    assert len(steps) == 4 and max(steps[1:]) < 0.7 * steps[0]
    assert re.search(r"^test: mean intersection over union 0\.\d+ of 4 classes", text, re.MULTILINE)
