"""Batches on torch devices: in pinned memory that the CPU reads, and on a GPU where there is one."""

from __future__ import annotations

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
