"""Batches on torch devices: in pinned memory that the CPU reads, and on a GPU where there is one."""

from __future__ import annotations

import gc
import pathlib
import random
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import headrace as hr


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> str:
    torch = pytest.importorskip("torch")
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device here")
    name: str = request.param
    return name


def fields(x: int) -> dict[str, Any]:
    return {
        "text": f"record {x}",
        "image": np.full((3, 5, 7), x, np.uint8),
        "empty": np.zeros((0, 4), np.float32),
        "ids": np.arange(x % 4, dtype=np.int32) + x,
        "boxes": np.full((x % 3, 4), x / 2, np.float32),
        "half": np.float16(x),
        "deep": {"flag": x % 2 == 0, "pair": (x, -x)},
    }


def flat(value: Any) -> list[Any]:
    """Tensors and texts of a batch in order, however they are nested."""
    if isinstance(value, (dict, hr.Batch)):
        return [leaf for key in value for leaf in flat(value[key])]
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in flat(part)]
    return [value]


def test_fields_of_all_kinds_arrive_unchanged(device: str) -> None:
    import torch

    pipe = hr.from_dataset([fields(x) for x in range(23)]).shuffle().batch(4, ragged=True)
    plain = [flat(batch) for batch in pipe.loader(seed=1, epochs=2, output="torch")]
    moved = [flat(batch) for batch in pipe.loader(seed=1, epochs=2, device=device, pin_memory=True)]
    assert len(plain) == len(moved) == 12
    for a, b in zip(plain, moved, strict=True):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            if isinstance(one, torch.Tensor):
                assert other.device.type == device and one.dtype == other.dtype and torch.equal(one, other.cpu())
            else:
                assert one == other


def test_a_batch_is_not_overwritten_before_it_is_copied(device: str) -> None:
    """Nothing waits for the device until the end."""
    import torch

    pipe = hr.range(96).map(lambda x: np.full(1 << 20, x, np.uint8)).batch(2)
    sums, last = [], None
    for batch in pipe.loader(threads=4, device=device, pin_memory=True):
        sums.append(batch.value[:, ::4096].sum(1, dtype=torch.int64))
        last = batch.value
    assert torch.cat(sums).tolist() == [x * 256 for x in range(96)]
    assert last is not None and last[:, 0].tolist() == [94, 95]


def test_tensors_stay_when_the_loader_is_closed(device: str) -> None:
    loader = hr.range(1000).map(lambda x: np.full(1 << 16, x % 251, np.uint8)).batch(3).loader(device=device)
    for at, batch in enumerate(loader):
        value = batch.value
        if at == 7:
            loader.close()
            break
    assert value.device.type == device
    assert value.min(1).values.tolist() == value.max(1).values.tolist() == [21, 22, 23]


def test_training_makes_the_steps_of_tensors_moved_by_hand(device: str) -> None:
    import torch

    def train(by_hand: bool) -> list[float]:
        model = torch.nn.Linear(6, 1).to(device)
        with torch.no_grad():
            model.weight.fill_(0.1)
            model.bias.fill_(0.0)
        steps = torch.optim.SGD(model.parameters(), lr=0.05)
        pipe = hr.from_dataset([(np.full(6, x / 40, np.float32), np.float32(x / 20)) for x in range(40)]).shuffle()
        options: dict[str, Any] = {"output": "torch"} if by_hand else {"device": device}
        losses = []
        for x, y in pipe.batch(8).loader(seed=3, epochs=4, **options):
            loss = (model(x.to(device)).squeeze(1) - y.to(device)).square().mean()
            steps.zero_grad()
            loss.backward()
            steps.step()
            losses.append(loss.item())
        return losses

    assert train(True) == train(False)


def test_devices_are_named_as_for_torch() -> None:
    torch = pytest.importorskip("torch")
    pipe = hr.range(4).batch(4)
    for name in ("cpu", "cpu:0", torch.device("cpu")):
        assert next(iter(pipe.loader(device=name))).value.tolist() == [0, 1, 2, 3]
    for wrong in ("gpu", "cuda:x", True, 1.5, -1, "0"):
        with pytest.raises(hr.ArgumentError, match="is no torch device") as caught:
            pipe.loader(device=wrong)
        assert repr(wrong) in str(caught.value) and "\n" not in str(caught.value)


def test_a_number_is_a_gpu() -> None:
    torch = pytest.importorskip("torch")
    pipe = hr.range(4).batch(4)
    if torch.cuda.is_available():
        assert next(iter(pipe.loader(device=0))).value.device == torch.device("cuda", 0)
        return
    with pytest.raises(hr.HeadraceError, match=r"(?i)accelerator|cuda"):
        pipe.loader(device=0)


def test_content_stays_right_over_many_short_epochs(device: str, rng: random.Random) -> None:
    """Epochs are left early, fields differ in size; nothing waits for the device until the end."""
    import torch

    sums, expected = [], []
    for _ in range(12):
        batch, threads, size = rng.randint(1, 5), rng.choice([0, 1, 4]), rng.choice([1, 1000, 1 << 18])
        pipe = hr.range(60).map(lambda x, size=size: {"a": np.full(size, x, np.uint8), "b": np.full(3, x, np.int64)})
        loader = pipe.batch(batch).loader(threads=threads, device=device, pin_memory=True, epochs=2)
        for _ in range(3):
            left = rng.randint(0, 30)
            for at, got in enumerate(loader):
                sums.append(torch.stack([got.a.sum(dtype=torch.int64), got.b.sum()]))
                first = at % -(-60 // batch) * batch
                records = range(first, min(first + batch, 60))
                expected.append([size * sum(records), 3 * sum(records)])
                if at == left:
                    break
        loader.close()
    assert torch.stack(sums).tolist() == expected


def test_threads_that_share_a_loop_get_right_tensors(device: str) -> None:
    """Each uses a stream of its own, where there are streams."""
    import torch

    pipe = hr.range(200).map(lambda x: np.full(1 << 16, x, np.uint8)).batch(2)
    batches = iter(pipe.loader(threads=4, device=device))
    sums: list[Any] = []

    def consume() -> None:
        stream = torch.cuda.Stream() if device == "cuda" else None
        with torch.cuda.stream(stream):
            sums.extend(batch.value[:, ::256].sum(1, dtype=torch.int64) for batch in batches)
        if stream is not None:
            stream.synchronize()

    threads = [threading.Thread(target=consume) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(torch.cat(sums).tolist()) == [x * 256 for x in range(200)]


def test_tensors_outlive_their_batches_and_the_loader(device: str) -> None:
    import torch

    loader = hr.range(40).map(lambda x: np.full(1 << 20, x, np.uint8)).batch(4).loader(device=device)
    kept = [batch.value for batch in loader]
    del loader
    gc.collect()
    # These would take memory that was freed.
    others = [torch.zeros(1 << 22, dtype=torch.uint8, device=device) for _ in range(10)]
    assert [tensor.sum(dtype=torch.int64).item() for tensor in others] == [0] * 10
    assert torch.cat(kept)[:, ::4096].sum(1, dtype=torch.int64).tolist() == [x * 256 for x in range(40)]


@pytest.mark.parametrize("end", ["pass", "raise KeyError('left')", "sys.exit(3)", "loader.close()"])
def test_a_program_ends_quietly_with_copies_under_way(device: str, tmp_path: pathlib.Path, end: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        f"""\
import sys
import numpy as np, torch
import headrace as hr

loader = hr.range(100).map(lambda x: np.full(1 << 20, x, np.uint8)).batch(8).loader(threads=2, device={device!r})
batches = iter(loader)
kept = [next(batches).value for _ in range(3)]
{end}
"""
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    code, last = {"raise KeyError('left')": (1, "KeyError: 'left'"), "sys.exit(3)": (3, "")}.get(end, (0, ""))
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.strip().rpartition("\n")[2] == last, done.stderr


def test_pinned_batches_are_pinned_where_there_is_a_gpu() -> None:
    torch = pytest.importorskip("torch")
    pipe = hr.from_dataset([fields(x) for x in range(8)]).batch(4, ragged=True)
    for batch in pipe.loader(pin_memory=True):
        for leaf in flat(batch):
            if isinstance(leaf, torch.Tensor):
                assert leaf.device.type == "cpu" and (leaf.is_pinned() == torch.cuda.is_available() or not leaf.numel())
    data = torch.utils.data.TensorDataset(torch.arange(12).reshape(6, 2))
    for workers in (0, 2):
        made = list(hr.DataLoader(data, 3, num_workers=workers, pin_memory=True))
        assert torch.cat([x for (x,) in made]).tolist() == data.tensors[0].tolist()
        assert all(x.is_pinned() == torch.cuda.is_available() for (x,) in made)


def test_cuda_stays_the_gpu_that_was_current_when_the_loader_was_made() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.device_count() < 2:
        pytest.skip("it takes two CUDA devices")
    loader = hr.range(8).batch(4).loader(device="cuda")
    with torch.cuda.device(1):
        assert [batch.value.device for batch in loader] == [torch.device("cuda", 0)] * 2
