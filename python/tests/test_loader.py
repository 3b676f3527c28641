"""Loaders: epochs, ranks, outputs, errors, ends; and what batches hand over."""

from __future__ import annotations

import copy
import gc
import inspect
import os
import pathlib
import pickle
import random
import sys
import threading
import time
import types
import warnings
from typing import Any

import numpy as np
import pytest

import headrace as hr
import userfns
from conftest import run_script
from headrace import _headrace, contact_sheet
from headrace.loader_options import LoaderOptions, changed


def numbers(batches: Any) -> list[int]:
    return [x for b in batches for x in np.asarray(b.value).tolist()]


# ---- epochs ----


def test_each_for_runs_the_next_epochs() -> None:
    loader = hr.range(20).shuffle().batch(20).loader(output="numpy")
    epochs = [numbers(loader) for _ in range(3)]
    assert all(sorted(e) == list(range(20)) for e in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
    assert numbers(hr.range(20).shuffle().batch(20).loader(epochs=3, output="numpy")) == [
        x for one in epochs for x in one
    ]


def test_one_epoch_can_be_had_by_number() -> None:
    loader = hr.range(20).shuffle().batch(20).loader(output="numpy")
    wanted = [numbers(loader) for _ in range(4)]
    assert numbers(loader.epoch(2)) == wanted[2]
    assert numbers(loader) == wanted[3]
    loader.set_epoch(1)
    assert numbers(loader) == wanted[1]


def test_after_a_loop_that_was_left_the_next_epoch_starts() -> None:
    loader = hr.range(20).batch(5).loader(output="numpy")
    for batch in loader:
        assert batch.epoch == 0
        break
    again = list(loader)
    assert numbers(again) == list(range(20)) and again[0].epoch == 1


def test_epochs_none_has_no_end() -> None:
    loader = hr.range(4).batch(4).loader(epochs=None, output="numpy")
    for i, batch in enumerate(loader):
        assert batch.epoch == i
        if i == 50:
            break
    with pytest.raises(TypeError, match="no end"):
        len(loader)


@pytest.mark.parametrize(
    ("pipe", "options", "length"),
    [
        (hr.range(10).batch(4), {}, 3),
        (hr.range(10).batch(4, drop_last=True), {}, 2),
        (hr.range(10).batch(4), {"epochs": 3}, 9),
        (hr.range(10), {}, 10),
        (hr.range(10).batch(2), {"shard": (0, 3), "even": "none"}, 2),
        (hr.range(10).batch(2), {"shard": (2, 3), "even": "none"}, 2),
        (hr.range(10).batch(3), {"shard": (0, 3), "even": "drop"}, 1),
        (hr.range(10).batch(3), {"shard": (2, 3), "even": "repeat"}, 2),
        (hr.range(10).batch(4).map_batch(lambda b: b), {}, 3),
        (hr.range(10).batch(4).unbatch(), {}, 10),
        (hr.range(10).batch(4, drop_last=True).unbatch().batch(3), {}, 3),
        (hr.range(23).batch(4, drop_last=True).unbatch().batch(3), {"shard": (1, 2), "even": "none"}, 3),
    ],
)
def test_len_is_the_number_of_batches(pipe: hr.Pipeline, options: dict[str, Any], length: int) -> None:
    loader = pipe.loader(output="numpy", **options)
    assert len(loader) == length == len(list(loader))


def test_len_after_a_filter_is_not_known() -> None:
    with pytest.raises(TypeError, match="filter"):
        len(hr.range(10).where("value < 5").loader())


# ---- ranks ----


@pytest.mark.parametrize("world", [1, 2, 3, 8])
def test_ranks_share_an_epoch(world: int) -> None:
    pipe = hr.range(103).shuffle().batch(4)
    shares = [numbers(pipe.loader(shard=(r, world), even="none", output="numpy")) for r in range(world)]
    assert sorted([x for one in shares for x in one]) == list(range(103))


@pytest.mark.parametrize("even", ["drop", "repeat"])
def test_even_shares_make_as_many_steps(even: Any) -> None:
    """huggingface/datasets#6623: a rank that runs dry."""
    pipe = hr.range(103).shuffle().map(lambda x: x).batch(4)
    shares = [numbers(pipe.loader(shard=(r, 8), even=even, output="numpy")) for r in range(8)]
    assert {len(s) for s in shares} == {12 if even == "drop" else 13}
    everything = {x for one in shares for x in one}
    assert len(everything) == (96 if even == "drop" else 103)


def test_even_shares_leave_random_operators_as_they_are(vision: hr.Pipeline) -> None:
    plain = list(vision.loader(output="numpy"))
    even = list(vision.loader(output="numpy", shard=(0, 1), even="drop"))
    assert all(np.array_equal(a.image, b.image) for a, b in zip(plain, even, strict=True))


def test_rank_and_world_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    loader = hr.range(8).batch(8).loader(output="numpy")
    assert (loader.rank, loader.world) == (1, 4) and numbers(loader) == [1, 5]
    assert numbers(hr.range(8).shard(0, 2).batch(8).loader(output="numpy")) == [0, 2, 4, 6]


def test_rank_and_world_come_from_torch_distributed() -> None:
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available():
        pytest.skip("this torch has no torch.distributed")
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        loader = hr.range(8).batch(8).loader(output="numpy")
        assert (loader.rank, loader.world) == (0, 1) and numbers(loader) == list(range(8))
    finally:
        torch.distributed.destroy_process_group()


def test_shuffle_and_take_under_several_epochs_is_warned_of_by_name() -> None:
    """A training and a validation set cut out of a shuffle overlap from the second epoch on."""
    parts = [hr.range(40).shuffle(seed=1).take(30, name="train"), hr.range(40).shuffle(seed=1).skip(30, name="val")]
    with pytest.warns(UserWarning, match="put 'train' before 'order.shuffle'") as seen:
        for _ in parts[0].batch(10).loader(epochs=2):
            pass
    assert [one.filename for one in seen] == [__file__]
    val = parts[1].cast("float32", field="value").batch(10).loader()
    list(val)
    with pytest.warns(UserWarning, match="'val' comes after 'order.shuffle'"):
        list(val)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(val)  # said once
        list(parts[0].batch(10).loader())
        list(hr.range(40).take(30).shuffle().batch(10).loader(epochs=3))


# ---- outputs ----


def test_a_batch_is_a_mapping_and_has_attributes(vision: hr.Pipeline) -> None:
    batch = next(iter(vision.loader(output="numpy")))
    assert list(batch) == ["image", "label"] or set(batch) == {"image", "label"}
    assert batch["image"] is batch.image and batch.records == 8 and batch.epoch == 0
    assert dict(batch).keys() == set(batch) and "image" in batch and "image" in dir(batch)
    assert "8 records" in repr(batch) and "float32[8, 3, 16, 16]" in repr(batch)
    with pytest.raises(hr.NotFoundError, match="did you mean 'image'"):
        batch["imgae"]
    with pytest.raises(AttributeError, match="did you mean 'image'"):
        _ = batch.imgae


def test_numpy_arrays_show_the_batch_and_are_read_only(vision: hr.Pipeline) -> None:
    batch = next(iter(vision.loader(output="numpy")))
    assert not batch.image.flags.writeable and batch.image.base is not None
    kept = batch.image
    wanted = kept.copy()
    del batch
    gc.collect()
    assert np.array_equal(kept, wanted)


def test_torch_tensors_show_the_batch(vision: hr.Pipeline) -> None:
    torch = pytest.importorskip("torch")
    loader = vision.loader()
    plain = next(iter(vision.loader(output="numpy")))
    batch = next(iter(loader))
    assert isinstance(batch.image, torch.Tensor) and batch.image.dtype == torch.float32
    assert np.array_equal(batch.image.numpy(), plain.image)
    batch.image.add_(1)  # in place: the memory is the batch's own
    assert np.array_equal(batch.image.numpy(), plain.image + 1)


def test_torch_gets_bfloat16(pictures: pathlib.Path) -> None:
    torch = pytest.importorskip("torch")
    pipe = hr.files(pictures).decode().resize(8).normalize("imagenet", dtype="bfloat16").batch(4)
    assert next(iter(pipe.loader(output="torch"))).image.dtype == torch.bfloat16


def test_torch_tensors_are_the_memory_of_the_batch() -> None:
    pytest.importorskip("torch")
    pipe = hr.range(8).map(lambda x: np.zeros((3, 500, 500), np.float32)).batch(2)
    for batch in pipe.loader(output="torch"):
        assert batch.value.data_ptr() == np.asarray(batch.raw("value")).ctypes.data


def test_headrace_output_gives_fields(vision: hr.Pipeline) -> None:
    field = next(iter(vision.loader(output="headrace"))).image
    assert isinstance(field, _headrace.Field) and memoryview(field).shape == (8, 3, 16, 16)


def test_no_cuda_is_said_in_words(vision: hr.Pipeline) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(hr.UnsupportedError, match="device='cpu'"):
        vision.loader(device="cuda")


def test_batches_arrive_on_the_device(vision: hr.Pipeline) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device here")
    plain = [b.image for b in vision.loader(output="torch")]
    moved = [b.image for b in vision.loader(device="cuda")]
    assert all(m.is_cuda and torch.equal(m.cpu(), p) for m, p in zip(moved, plain, strict=True))


# ---- errors and ends ----


def test_bad_records_are_skipped_and_listed(pictures: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "x.ppm").write_bytes(b"P6 nothing")
    for i, path in enumerate(sorted(pictures.rglob("*.ppm"))[:3]):
        (tmp_path / f"{i}.ppm").write_bytes(path.read_bytes())
    pipe = hr.files(tmp_path).decode().resize(8).batch(4)
    with pytest.raises(hr.HeadraceError, match="x.ppm") as caught:
        list(pipe.loader(output="numpy"))
    assert caught.value.node == "image.decode" and caught.value.record == 3
    loader = pipe.loader(output="numpy", on_error="skip", ledger=tmp_path / "bad.jsonl")
    assert [b.records for b in loader] == [3]
    assert loader.stats()["errors"] == 1 and "x.ppm" in (tmp_path / "bad.jsonl").read_text()


def test_a_closed_loader_says_so() -> None:
    with hr.range(10).batch(2).loader() as loader:
        run = iter(loader)
        next(run)
    assert list(run) == []
    with pytest.raises(hr.ClosedError, match="loader"):
        iter(loader)


def test_a_loop_that_another_one_ended_says_so() -> None:
    loader = hr.range(10).batch(3).loader(output="numpy")
    with pytest.raises(hr.StateError, match="another loop"):
        list(zip(loader, loader, strict=True))
    ended, run = iter(loader), iter(hr.range(0).batch(1).loader())
    assert numbers(ended) == list(range(10)) and list(run) == []
    assert numbers(loader) == list(range(10)) and list(ended) == list(run) == []  # they had come to their ends


@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_loader_is_not_copied(copier: Any) -> None:
    with pytest.raises(hr.StateError, match=r"pipeline\.loader\(\)"):
        copier(hr.range(10).loader())


def test_arguments_of_other_libraries_are_explained() -> None:
    numbers = hr.range(3)
    for call, words in (
        (lambda: numbers.shuffle(buffer_size=9), "it shuffles all records, differently"),
        (lambda: numbers.map(abs, num_parallel_calls=9), r"loader\(threads="),
        (lambda: numbers.padded_batch(2, padded_shapes=[9]), "longest record"),
        (lambda: hr.from_dataset([1], num_workers=2), r"loader\(threads="),
        (lambda: hr.mix([numbers, numbers], probs=[0.5, 0.5]), "they are weights"),
    ):
        with pytest.raises(hr.ArgumentError, match=f"there is no argument '.*'; .*{words}"):
            call()
    with pytest.raises(hr.CodeError, match=r"without fields it gets the whole record; fields=\["):
        hr.from_dataset([(1, 2)]).map(lambda x, y: x + y).fields  # noqa: B018


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epochs": 2**63}, "epochs must be below"),
        ({"seed": 10**30}, "seed must be below"),
        ({"ordered": "no"}, "ordered is True or False"),
        ({"progress": 1}, "progress is True or False"),
        ({"ledger": 3}, "ledger is the path"),
        ({"device": "bogus"}, "no torch device"),
        ({"thread": 1}, "did you mean 'threads'? Arguments are"),
        ({"num_workers": 2}, "'num_workers'; it is threads"),
        ({"batch_size": 2}, "pipe.batch(32).loader()"),
        ({"num_replicas": 2}, "there is no argument 'num_replicas'; ranks are given as shard="),
    ],
)
def test_wrong_options_are_told(options: dict[str, Any], words: str) -> None:
    if "device" in options:
        pytest.importorskip("torch")
    with pytest.raises(hr.ArgumentError) as caught:
        hr.range(3).loader(**options)
    assert words in str(caught.value) and caught.value.param in options
    with pytest.raises(hr.ArgumentError, match="positional"):
        hr.range(3).loader(3)  # type: ignore[call-arg]
    with pytest.raises(hr.ArgumentError, match="not a int"):
        hr.Loader(3)  # type: ignore[arg-type]


def test_threads_end_with_the_loop() -> None:
    def threads() -> set[str]:
        return set(os.listdir("/proc/self/task")) - before

    def left() -> set[str]:
        """One that was joined is listed for a moment longer."""
        until = time.monotonic() + 30
        while threads() and time.monotonic() < until:
            time.sleep(0.01)
        return threads()

    before: set[str] = set()
    before = threads()
    for _ in hr.range(10**9).batch(10).loader(threads=2):
        assert len(threads()) >= 2
        break
    gc.collect()
    assert not left()
    loader = hr.range(10**9).batch(10).loader(threads=2)
    run = iter(loader)
    next(run)
    loader.close()
    assert not left()


def test_nothing_is_kept_alive() -> None:
    gc.collect()
    before = _headrace.live_objects()
    for _ in range(3):
        kept = [b.value for b in hr.range(100).map(lambda x: x).batch(10).loader(output="numpy")]
        del kept
    gc.collect()
    assert _headrace.live_objects() == before


@pytest.mark.memory
def test_memory_stays_flat_over_epochs(pictures: pathlib.Path) -> None:
    """pytorch#13246: memory that grows."""
    pipe = hr.files(pictures).decode().resize(64).batch(10)
    loader = pipe.loader(output="numpy", threads=2)

    def resident() -> int:
        return int(open("/proc/self/statm").read().split()[1]) * 4096

    for _ in range(20):
        list(loader)
    before = resident()
    for _ in range(60):
        list(loader)
    assert resident() - before < 4 << 20


def test_a_loader_may_be_used_in_another_thread() -> None:
    got: list[int] = []
    thread = threading.Thread(target=lambda: got.extend(numbers(hr.range(50).batch(7).loader(output="numpy"))))
    thread.start()
    thread.join()
    assert got == list(range(50))


def test_stats_stay_after_the_run() -> None:
    loader = hr.range(100).batch(10).loader()
    list(loader)
    assert loader.stats()["records"] == 100
    assert 1 <= loader.stats()["threads_used"] <= loader.stats()["threads"]
    nodes = {n["node"]: n for n in loader.node_stats()}
    assert nodes["source.range"]["records"] == 100 and nodes["source.range"]["bytes_written"] == 800
    assert nodes["batch.stack"]["records"] == 100 and nodes["batch.stack"]["records_out"] == 10
    for node in nodes.values():
        assert 0 <= node["worker_seconds"] <= node["seconds"] and node["wait_seconds"] >= 0
        assert node["record_ns"] >= 0 and node["record_ns_variance"] >= 0 and node["bytes_in"] >= node["bytes_read"]


def test_progress_shows_and_ends(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from headrace import progress

    monkeypatch.setattr(progress, "_installed", lambda name: False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert numbers(hr.range(100).batch(10).loader(progress=True, output="numpy")) == list(range(100))
    lines = capsys.readouterr().err.split("\r")
    assert "epoch 0  100/100" in lines[-1] and lines[-1].endswith("\n")


def test_progress_in_a_notebook_without_widgets(monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace import progress

    drawn: list[str] = []
    cell = types.SimpleNamespace(update=drawn.append)

    def display(html: str, display_id: bool) -> Any:
        drawn.append(html)
        return cell

    page = types.SimpleNamespace(HTML=str, display=display)
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell, display=page))
    monkeypatch.setitem(sys.modules, "IPython.display", page)
    monkeypatch.setattr(progress, "_installed", lambda name: False)
    assert numbers(hr.range(100).batch(10).loader(progress=True, output="numpy")) == list(range(100))
    assert drawn[0].startswith("<div>epoch 0") and 'value="100" max="100"' in drawn[-1]


@pytest.mark.fork
def test_a_fork_of_a_running_program_does_not_hang(tmp_path: pathlib.Path) -> None:
    """pytorch#1355, #75147: hang in forked workers."""
    text = """
import os, headrace as hr
run = iter(hr.range(10**6).batch(10).loader(threads=2, output="numpy"))
next(run)
pid = os.fork()
if pid == 0:
    got = sum(b.records for b in hr.range(1000).batch(10).loader(threads=2))
    os._exit(0 if got == 1000 else 1)
print(os.waitpid(pid, 0)[1], next(run).value[0])
"""
    out = run_script(tmp_path, text)
    assert out.stdout.split() == ["0", "10"], out.stderr


# ---- pictures ----


def test_show_draws_a_sheet(vision: hr.Pipeline, tmp_path: pathlib.Path) -> None:
    sheet = hr.show(next(iter(vision.loader(output="numpy"))), captions=None)
    sheet.save(tmp_path / "sheet.png")
    data = (tmp_path / "sheet.png").read_bytes()
    assert data.startswith(b"\x89PNG") and sheet.pixels.shape == (3 * 18 - 2, 3 * 18 - 2, 3)
    reread = hr.files(tmp_path, suffixes=["png"]).decode().batch(1)
    assert np.array_equal(next(iter(reread.loader(output="numpy"))).image[0], sheet.pixels)


@pytest.mark.parametrize("steps", [0, 1, 3, 255])
def test_a_sheet_is_a_png_file_whatever_its_pixels(steps: int, rng: random.Random, tmp_path: pathlib.Path) -> None:
    numbers = np.random.default_rng(rng.getrandbits(32))
    pixels = np.cumsum(numbers.integers(-steps, steps, (3, 20, 30, 3), endpoint=True), axis=1 + steps % 2).astype(
        np.uint8
    )
    sheet = hr.show(pixels)
    sheet.save(tmp_path / "sheet.png")
    (reread,) = hr.files([tmp_path / "sheet.png"]).decode().batch(1).loader(output="numpy")
    assert np.array_equal(reread.image[0], sheet.pixels)


@pytest.mark.parametrize("shape", [(4, 5, 6, 3), (4, 3, 5, 6), (4, 1, 5, 6), (4, 5, 6), (4, 5, 6, 4)])
def test_show_takes_any_layout(shape: tuple[int, ...]) -> None:
    assert hr.show(np.random.default_rng(0).random(shape, np.float32)).pixels.shape == (12, 14, 3)


def test_show_takes_fields_one_image_and_no_numbers(vision: hr.Pipeline) -> None:
    assert hr.show(next(iter(vision.loader(output="headrace"))), captions=None).pixels.shape == (52, 52, 3)
    assert hr.show(np.zeros((5, 6, 3), np.uint8)).pixels.shape == (5, 6, 3)
    assert hr.show(np.array([[[[np.nan, np.inf, -np.inf]]]])).pixels.shape == (1, 1, 3)


def ink(sheet: contact_sheet.Sheet, top: int, left: int, letters: int) -> list[str]:
    """The letters of a caption, one text of marks each."""
    dark = sheet.pixels[top : top + 8, left : left + 6 * letters, 0] == 0
    return ["".join("#" if dot else "." for dot in dark[:, 6 * i : 6 * i + 5].ravel()) for i in range(letters)]


def test_show_writes_captions(pictures: pathlib.Path) -> None:
    """Issue 14 A6: names of classes and files are below the pictures."""
    images = hr.files(pictures, labels="folder", paths=True).decode().resize((20, 20))
    batch = next(iter(images.batch(6).loader(output="numpy")))
    sheet = hr.show(batch, columns=3)
    assert sheet.pixels.shape == (2 * (20 + 2 * 10 + 2) - 2, 3 * (6 * 6 + 2) - 2, 3)  # "00.ppm" has six letters
    letter = {
        c: ink(hr.show(np.full((1, 9, 9, 3), 255, np.uint8), captions=[c]), 10, 0, 1)[0] for c in "ab0123456789.pm"
    }
    assert len(set(letter.values())) == len(letter) and "#" in letter["."]
    for i, path in enumerate(batch.path):
        top, left = i // 3 * 42 + 21, i % 3 * 38
        assert ink(sheet, top, left, 1) == [letter["abc"[batch.label[i]]]]
        assert ink(sheet, top + 10, left, 6) == [letter[c] for c in path.rpartition("/")[2]]
    assert (hr.show(batch.to("cpu") if hasattr(batch.image, "to") else batch).pixels != 255).any()
    numbers = hr.show({"image": batch.image, "label": batch.label}, count=1)
    assert ink(numbers, 21, 0, 1) == [letter[str(batch.label[0])]]
    long = hr.show(np.full((1, 9, 9, 3), 255, np.uint8), captions=["a" * 99 + "b1"])
    assert long.pixels.shape == (19, 120, 3) and ink(long, 10, 108, 2) == [letter["b"], letter["1"]]
    with pytest.raises(hr.NotFoundError, match="'lable' for the captions; fields: "):
        hr.show(batch, captions="lable")
    for wrong in ("label", ["a"], 3):
        with pytest.raises(hr.ArgumentError, match="6 texts, one for each image"):
            hr.show(batch.image, captions=wrong)  # type: ignore[arg-type]


def test_show_refuses_what_is_no_picture() -> None:
    with pytest.raises(hr.ShapeError, match="n, h, w, c"):
        hr.show(np.zeros((3, 3)))
    for odd in (None, "x", np.zeros((2, 4, 4, 3), complex)):
        with pytest.raises(hr.DtypeError, match="numbers"):
            hr.show(odd)
    for options in ({"count": 0}, {"count": 2.5}, {"columns": -1}):
        with pytest.raises(hr.ArgumentError, match="at least 1"):
            hr.show(np.zeros((2, 4, 4, 3)), **options)  # type: ignore[arg-type]
    with pytest.raises(hr.NotFoundError, match="field="):
        hr.show(next(iter(hr.range(3).batch(3).loader(output="numpy"))))


def test_slow_code_does_not_stop_the_interpreter() -> None:
    ticks = 0
    stop = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not stop.is_set():
            ticks += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    list(hr.range(200).map(userfns.slow, variant="processes").batch(20).loader(threads=1))
    stop.set()
    thread.join()
    assert ticks > 20


def test_a_batch_can_be_made_of_values_and_moved(vision: hr.Pipeline) -> None:
    """Trainer, Accelerate and Lightning do so to move it."""
    batch = next(iter(vision.loader(output="numpy")))
    again = type(batch)(dict(batch.items()))
    assert list(again) == list(batch) and again.image is batch.image and again.records == 8
    with pytest.raises(hr.StateError, match="made of values"):
        again.raw("image")
    assert batch.get("mask") is None and again.get("mask", 1) == 1
    torch = pytest.importorskip("torch")
    moved = next(iter(vision.loader(output="torch"))).to(torch.device("cpu"), non_blocking=True)
    assert moved.records == 8 and moved.epoch == 0 and moved.image.dtype == torch.float32


def test_the_signature_of_loader_has_every_option_with_its_default() -> None:
    parameters = dict(inspect.signature(hr.Pipeline.loader).parameters)
    del parameters["self"]
    assert list(parameters) == list(LoaderOptions.__annotations__)
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters.values())
    defaults = {name: p.default for name, p in parameters.items()}
    assert changed(defaults) == {}
    pipe = hr.range(3).batch(2)
    assert repr(pipe.loader(**defaults)) == repr(pipe.loader()) == repr(hr.Loader(pipe))
    assert changed({**defaults, "epochs": True, "seed": 0, "threads": 0}) == {"epochs": True, "seed": 0, "threads": 0}
    assert "seed=3" in repr(pipe.loader(seed=3, ordered=True))
