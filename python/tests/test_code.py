"""User code: what functions receive and give, where they run, what happens when they fail."""

from __future__ import annotations

import os
import pathlib
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
import userfns
from conftest import descendants, run_script
from headrace import dataset, pickling

VARIANTS = ["inline", "threads", "processes"]


def values(pipe: hr.Pipeline, field: str = "value", **options: Any) -> list[Any]:
    return [x for b in pipe.batch(7).loader(output="numpy", **options) for x in np.asarray(b[field]).tolist()]


# ---- what goes in and out ----


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("threads", [0, 1, 3])
def test_map_filter_and_flat_map_give_the_same_everywhere(variant: Any, threads: int) -> None:
    pipe = (
        hr.range(50)
        .map(userfns.double, variant=variant)
        .filter(userfns.is_even, variant=variant)
        .flat_map(userfns.some, variant=variant)
    )
    wanted = [10 * x + i for x in range(0, 100, 2) for i in range(x % 4)]
    assert values(pipe, threads=threads) == wanted


MAKES = {
    "jitter": lambda p: p.color_jitter(brightness=1 / 3),
    "blur": lambda p: p.gaussian_blur(3, sigma=1.0),
    "decode": lambda p: p,
}
DEFERS = {
    "flip": lambda p: p.flip(p=0.67),
    "crop": lambda p: p.random_crop(20, pad_if_needed=True),
    "both": lambda p: p.random_resized_crop(12).flip(p=0.5),
}
USES: dict[str, Callable[[hr.Pipeline, Any], hr.Pipeline]] = {
    "map": lambda p, variant: p.map(userfns.identity, fields="image", variant=variant),
    "filter": lambda p, variant: p.filter(userfns.has_pixels, fields="image", variant=variant),
    "flat_map": lambda p, variant: p.flat_map(userfns.just_image, variant=variant),
    "map of two fields": lambda p, variant: p.map(userfns.identity_of_two, fields=["image", "label"], variant=variant),
    "map of batches": lambda p, variant: (
        p.resize(9).batch(4).map_batch(userfns.identity, fields="image", variant=variant)
    ),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("use", USES)
def test_an_image_that_some_records_defer_reaches_code_made(pictures: pathlib.Path, use: str, variant: Any) -> None:
    """A flip that is drawn leaves a description where it flips and pixels where it does not: code met the former as
    memory that was not there."""
    for make in MAKES.values():
        for defer in DEFERS.values():
            pipe = defer(make(hr.files(pictures, labels="folder").decode())).select("image", "label")
            plain = pipe.resize(9).batch(4)
            coded = USES[use](pipe, variant)
            coded = coded if use == "map of batches" else coded.resize(9).batch(4)
            for threads in (0, 2):
                got = [b.image.tobytes() for b in coded.loader(threads=threads, output="numpy", seed=threads)]
                assert got == [b.image.tobytes() for b in plain.loader(threads=threads, output="numpy", seed=threads)]


def test_code_that_refuses_such_images_is_in_the_ledger(pictures: pathlib.Path, tmp_path: pathlib.Path) -> None:
    pipe = hr.files(pictures).decode().color_jitter(brightness=1 / 3).flip(p=0.67)
    pipe = pipe.map(userfns.refuse, fields="image", outputs={"image": hr.spec("uint8", (None, None, 3))})
    loader = pipe.resize(8).batch(4).loader(on_error="skip", ledger=tmp_path / "ledger", threads=2)
    assert list(loader) == [] and len((tmp_path / "ledger").read_text().splitlines()) == 30


@pytest.mark.parametrize("size", [1, 2, 8])
def test_all_threads_have_records_however_few_a_batch_has(size: int) -> None:
    """Records of 1 MB: the first eight wait until all of them are in progress."""
    meeting, running = threading.Barrier(8), threading.Event()

    def wait(x: int) -> np.ndarray[Any, Any]:
        if x < 8 and running.is_set():
            meeting.wait(120)
        return np.full(1 << 20, x, np.uint8)

    loader = hr.range(24).map(wait).batch(size).loader(threads=8, output="numpy")
    running.set()
    assert [x for batch in loader for x in batch.value[:, 0].tolist()] == list(range(24))


@pytest.mark.parametrize("threads", [1, 3])
def test_batches_of_unknown_size_are_few_once_they_are_known_to_be_large(threads: int) -> None:
    begun: list[int] = []

    def large(x: int) -> np.ndarray[Any, Any]:
        begun.append(x)
        return np.full((1 << 20) + x % 2, x, np.uint8)

    loader = hr.range(200).map(large).batch(1).loader(threads=threads, output="numpy")
    begun.clear()
    for taken, batch in enumerate(loader, 1):
        if taken % 20 == 0:
            time.sleep(0.05)  # so that threads could be far ahead
        if taken > 64:  # the most that are made ahead, before the first one shows its size
            assert len(begun) - taken <= 8 + 4 * threads
        assert batch.value[0, 0] == taken - 1


def test_lambdas_and_closures_run_in_threads() -> None:
    by = 3
    assert values(hr.range(5).map(lambda x: x * by)) == [0, 3, 6, 9, 12]


def test_types_come_from_the_first_call() -> None:
    assert hr.range(3).map(lambda x: x / 2).fields[0].dtype == "float64"
    assert hr.range(3).map(lambda x: x > 1).fields[0].dtype == "bool"
    assert hr.range(3).map(lambda x: f"{x}").fields[0].dtype == "text"
    assert hr.range(3).map(lambda x: np.float32(x)).fields[0].dtype == "float32"
    assert hr.range(3).map(lambda x: np.zeros((2, 5), np.uint8)).fields[0].text() == "uint8[-1, -1]"
    fixed = hr.range(3).map(lambda x: np.zeros((2, 5), np.uint8)).batch(2)
    assert fixed.fields[0].shape[1:] == (2, 5)


@pytest.mark.parametrize(
    ("first", "later", "words"),
    [
        (True, 2, r"2 is neither True nor False, and field 'value' is bool: .* outputs=\{'value': 'int64'\}"),
        (True, 0.5, r"0\.5 is neither True nor False, .* outputs=\{'value': 'float64'\}"),
        (np.True_, np.array(7), "is neither True nor False"),
        (1, 2.5, r"2\.5 is no integer, and field 'value' is int64: .* outputs=\{'value': 'float64'\}"),
        (1, np.float64(2.5), "is no integer"),
    ],
)
def test_a_number_of_another_type_than_the_first_is_refused(first: Any, later: Any, words: str) -> None:
    """2 became True."""
    pipe = hr.range(2).map(lambda x: later if x else first).batch(2)
    with pytest.raises(TypeError, match=words):
        list(pipe.loader())


def test_zero_and_one_are_bools() -> None:
    values = [True, 0, 1, np.int64(1), np.False_, np.array(1.0)]
    (batch,) = hr.range(len(values)).map(lambda x: values[x]).batch(len(values)).loader(output="numpy")
    assert batch.value.dtype == bool and batch.value.tolist() == [True, False, True, True, False, True]


def test_lengths_may_vary_where_no_stack_follows() -> None:
    pipe = hr.range(5).map(lambda x: np.arange(x, dtype=np.int32)).padded_batch(5)
    assert next(iter(pipe.loader(output="numpy"))).value.shape == (5, 4)


def test_ragged_fields_are_values_and_offsets() -> None:
    pipe = hr.range(4).map(lambda x: np.arange(x, dtype=np.int32)).batch(4, ragged=True)
    flat, offsets = next(iter(pipe.loader(output="numpy"))).value
    assert flat.tolist() == [0, 0, 1, 0, 1, 2] and offsets.tolist() == [0, 0, 1, 3, 6]


def test_text_stays_text() -> None:
    batch = next(iter(hr.range(3).map(lambda x: f"é{x}").batch(3).loader(output="numpy")))
    assert batch.value == ["é0", "é1", "é2"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_fields_are_arguments_and_others_pass(variant: Any, pictures: pathlib.Path) -> None:
    base = hr.files(pictures, labels="folder").decode().resize(8)
    plain = next(iter(base.batch(30).loader(output="numpy")))
    one = base.map(userfns.brighten, fields="image", variant=variant).batch(30)
    batch = next(iter(one.loader(output="numpy", threads=2)))
    assert np.array_equal(batch.image, np.clip(plain.image.astype(int) + 10, 0, 255))
    assert np.array_equal(batch.label, plain.label)
    two = base.map(userfns.image_and_label, fields=["image", "label"], variant=variant).batch(30)
    batch = next(iter(two.loader(output="numpy", threads=2)))
    assert np.array_equal(batch.image, plain.image[:, ::-1]) and np.array_equal(batch.label, plain.label + 100)


@pytest.mark.parametrize("variant", VARIANTS)
def test_without_fields_records_are_dicts(variant: Any, pictures: pathlib.Path) -> None:
    base = hr.files(pictures, labels="folder").decode().resize(8)
    plain = next(iter(base.batch(30).loader(output="numpy")))
    batch = next(iter(base.map(userfns.mean_of, variant=variant).batch(30).loader(output="numpy")))
    assert set(batch) == {"mean", "label"}
    assert np.allclose(batch.mean, plain.image.mean((1, 2, 3)))


def test_image_operators_may_follow(pictures: pathlib.Path) -> None:
    pipe = hr.files(pictures).decode().map(userfns.brighten, fields="image").resize(8).normalize("imagenet").batch(4)
    assert next(iter(pipe.loader(output="numpy"))).image.shape == (4, 8, 8, 3)


def test_declared_outputs_need_no_first_call() -> None:
    calls: list[int] = []

    def fn(x: int) -> np.ndarray:
        calls.append(x)
        return np.full((2,), x, np.float32)

    pipe = hr.range(3).map(fn, fields="value", outputs={"half": hr.spec("float32", (2,))}).batch(3)
    assert pipe.fields[0].name == "half" and calls == []
    assert next(iter(pipe.loader(output="numpy"))).half.tolist() == [[0, 0], [1, 1], [2, 2]]


def test_map_batch_sees_whole_batches() -> None:
    pipe = hr.range(10).batch(4).map_batch(lambda b: {"sum": b["value"] + b["value"].sum()})
    assert [b.sum.tolist() for b in pipe.loader(output="numpy")] == [[6, 7, 8, 9], [26, 27, 28, 29], [25, 26]]
    pipe = hr.range(10).batch(5).map_batch(lambda v: v[::-1].copy(), fields="value")
    assert [b.value.tolist() for b in pipe.loader(output="numpy")] == [[4, 3, 2, 1, 0], [9, 8, 7, 6, 5]]


def test_objects_and_partials_can_be_called() -> None:
    import functools

    assert values(hr.range(3).map(userfns.Scale(1.5), variant="processes")) == [0, 1.5, 3]
    assert values(hr.range(3).map(functools.partial(pow, 2), variant="processes")) == [1, 2, 4]


def test_torch_tensors_come_back() -> None:
    torch = pytest.importorskip("torch")
    pipe = hr.range(3).map(lambda x: torch.full((2,), float(x))).batch(3)
    batch = next(iter(pipe.loader(output="torch")))
    assert batch.value.dtype == torch.float32 and batch.value.tolist() == [[0, 0], [1, 1], [2, 2]]


# ---- identity ----


def test_the_code_counts_for_the_fingerprint() -> None:
    def pipe(fn: Callable[..., Any], **options: Any) -> hr.Pipeline:
        return hr.range(3).map(fn, **options)

    def make(by: int) -> Callable[[int], int]:
        return lambda x: x * by

    assert pipe(make(2)) == pipe(make(2)) != pipe(make(3))
    assert pipe(lambda x: x + 1) != pipe(lambda x: x + 2)
    assert pipe(userfns.double) != pipe(userfns.square)
    assert pipe(userfns.Scale(2)) == pipe(userfns.Scale(2)) != pipe(userfns.Scale(3))
    assert pipe(make(2), version="1") == pipe(make(3), version="1") != pipe(make(3), version="2")


def test_where_code_runs_does_not_count() -> None:
    assert hr.range(3).map(userfns.double, variant="processes") == hr.range(3).map(userfns.double)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("threads", [0, 3])
def test_the_error_of_a_child_says_which_child_it_is(variant: Any, threads: int) -> None:
    # 2 has the children 20 and 21, 3 has 30, 31 and 32; all that is odd is refused.
    pipe = hr.range(8).skip(2).flat_map(userfns.some).map(userfns.refuses_odd, variant=variant, name="even")
    with pytest.raises(hr.CodeError) as caught:
        values(pipe, threads=threads)
    error = caught.value
    assert (error.node, error.record, error.epoch, error.position, error.children) == ("even", 2, 0, 0, (1,))
    assert "record 2, child 1" in error.message
    assert "21 is odd" in str(error.__cause__)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.position, copy.children) == (0, (1,))


# ---- random numbers ----


def test_steps_in_front_change_no_draws() -> None:
    wanted = values(hr.range(20).map(userfns.noise, name="mine"))
    assert values(hr.range(20).map(userfns.identity).map(userfns.noise, name="mine")) == wanted
    assert values(hr.range(20).take(30).map(userfns.noise, name="mine")) == wanted
    assert values(hr.range(20).map(userfns.noise, name="other")) != wanted


@pytest.mark.parametrize("variant", VARIANTS)
def test_rng_depends_on_record_and_seed_only(variant: Any) -> None:
    pipe = hr.range(40).shuffle().map(userfns.noise, variant=variant)
    wanted = values(hr.range(40).shuffle().map(userfns.noise), threads=0)
    assert len(set(wanted)) == 40
    assert values(pipe, threads=3) == wanted
    assert values(pipe, threads=2, seed=1) != wanted


def test_rng_goes_on_within_a_record_and_differs_by_epoch() -> None:
    pipe = hr.range(5).map(userfns.two_draws, fields="value", outputs=["a: float64", "b: float64"]).batch(5)
    first, second = list(pipe.loader(epochs=2, output="numpy"))
    assert not (first.a == first.b).any()
    assert not (first.a == second.a).any()
    again, _ = list(pipe.loader(epochs=2, output="numpy", threads=0))
    assert np.array_equal(first.a, again.a) and np.array_equal(first.b, again.b)


def test_rng_is_refused_outside() -> None:
    with pytest.raises(hr.CodeError, match="default_rng"):
        hr.rng()


@pytest.mark.parametrize("variant", ["inline", "processes"])
def test_global_generators_are_seeded_by_the_record(variant: Any) -> None:
    """pytorch#5059: equal NumPy seeds in workers."""
    pipe = hr.range(30).map(
        userfns.global_noise, fields="value", outputs=["a: float64", "b: float64"], variant=variant, seed_globals=True
    )
    batches = [next(iter(pipe.batch(30).loader(output="numpy", threads=n))) for n in (1, 3)]
    assert np.array_equal(batches[0].a, batches[1].a) and np.array_equal(batches[0].b, batches[1].b)
    assert len(set(batches[0].b.tolist())) == 30
    with pytest.raises(hr.CodeError, match="rng"):
        hr.range(3).map(userfns.global_noise, seed_globals=True)


# ---- failures ----


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_exception_names_node_record_and_cause(variant: Any) -> None:
    pipe = hr.range(10).map(userfns.fails_at_5, variant=variant, name="mine").batch(2)
    with pytest.raises(hr.CodeError, match="five is out") as caught:
        list(pipe.loader(output="numpy", threads=2))
    error = caught.value
    assert (error.node, error.op, error.record) == ("mine", "code.map", 5)
    assert "fails_at_5" in str(error.__cause__) or isinstance(error.__cause__, ValueError)


@pytest.mark.parametrize("variant", VARIANTS)
def test_bad_records_meet_the_policy(variant: Any) -> None:
    pipe = hr.range(10).map(userfns.fails_at_5, variant=variant)
    assert values(pipe, on_error="skip") == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    assert values(pipe, on_error="substitute") == [0, 1, 2, 3, 4, 6, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (lambda x: None, "outputs="),
        (lambda x: object(), "object"),
        (lambda x: np.array(["a"]), "<U1"),
        (lambda x: np.zeros(2, np.complex64), "complex64"),
        (lambda x: np.zeros(2, np.uint32), "uint32"),
        (userfns.fails_always, "never"),
    ],
)
def test_what_no_batch_can_hold_is_refused_before_the_run(fn: Any, words: str) -> None:
    with pytest.raises(hr.CodeError, match="code.map") as caught:
        _ = hr.range(3).map(fn).fields
    assert words in str(caught.value)


def test_another_shape_or_type_later_is_an_error_with_words() -> None:
    pipe = hr.range(5).map(lambda x: np.zeros(2 if x < 3 else 3, np.float32)).batch(5)
    with pytest.raises(hr.ShapeError, match="value"):
        list(pipe.loader(output="numpy"))
    pipe = hr.range(5).map(lambda x: x if x < 3 else "three").batch(5)
    with pytest.raises(hr.HeadraceError, match="value") as caught:
        list(pipe.loader(output="numpy"))
    assert caught.value.record == 3


def test_a_wrong_field_has_the_nearest_name() -> None:
    with pytest.raises(hr.GraphError, match="value"):
        _ = hr.range(5).map(abs, fields="valu").fields


def test_lambdas_are_refused_for_processes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)  # as if it were not installed
    pickling._by_value.cache_clear()
    with pytest.raises(hr.CodeError, match="pip install 'headrace.notebook.'.*, move it to a module"):
        hr.range(3).map(lambda x: x, variant="processes")


def test_a_script_without_guard_is_told_what_to_do(tmp_path: pathlib.Path) -> None:
    text = """
import headrace as hr
def f(x): return x + 1
if {guard}:
    print([b.value.tolist() for b in hr.range(6).map(f, variant="processes").batch(3).loader(output="numpy")])
"""
    good = run_script(tmp_path, text.format(guard='__name__ == "__main__"'))
    assert good.stdout.strip() == "[[1, 2, 3], [4, 5, 6]]", good.stderr
    bad = run_script(tmp_path, text.format(guard="True"))
    assert bad.returncode != 0 and "if __name__ == '__main__':" in bad.stderr


# ---- processes ----


def test_work_is_done_in_other_processes_and_all_end(children: Any) -> None:
    seen = set(values(hr.range(200).map(userfns.process_id, variant="processes"), threads=2))
    assert os.getpid() not in seen and 1 <= len(seen) <= 2


def test_modules_that_start_threads_are_never_forked(children: Any) -> None:
    import threadfns

    assert values(hr.range(50).map(threadfns.negate, variant="processes"), threads=2) == [-x for x in range(50)]


def test_torch_works_in_processes(children: Any) -> None:
    pytest.importorskip("torch")
    pipe = hr.range(50).map(userfns.torch_sum, variant="processes")
    assert values(pipe, threads=2) == [float(3 * x) for x in range(50)]


def test_user_code_that_does_not_import_there_is_named(tmp_path: pathlib.Path) -> None:
    (tmp_path / "onlyhere.py").write_text(
        "import os\nif os.environ.get('HEADRACE_WORKER'): raise RuntimeError('not in a worker')\ndef f(x): return x\n"
    )
    out = run_script(
        tmp_path,
        "import headrace as hr, onlyhere\n"
        "try: list(hr.range(3).map(onlyhere.f, variant='processes').batch(3).loader())\n"
        "except hr.CodeError as e: print(e)\n",
    )
    assert "not in a worker" in out.stdout, out.stderr


def test_a_worker_killed_once_is_replaced(
    children: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pytorch#21554: hang after a killed worker."""
    monkeypatch.setenv("HR_TEST_MARK", str(tmp_path / "mark"))
    pipe = hr.range(300).map(userfns.kill_once, fields="value", outputs=["value: int64"], variant="processes")
    assert values(pipe, threads=2) == list(range(300))
    assert (tmp_path / "mark").exists()


def test_a_record_that_kills_its_worker_is_bad_by_itself(children: Any) -> None:
    pipe = hr.range(20).map(userfns.kill_always, fields="value", outputs=["value: int64"], variant="processes")
    assert values(pipe, threads=1, on_error="skip") == [x for x in range(20) if x != 7]
    with pytest.raises(hr.HeadraceError) as caught:
        values(pipe, threads=1)
    assert caught.value.record == 7


def test_random_kills_lose_nothing(children: Any) -> None:
    pipe = hr.range(600).map(userfns.slow, variant="processes").batch(20)
    got: list[int] = []
    before = descendants()
    for i, batch in enumerate(pipe.loader(threads=2, output="numpy")):
        got += batch.value.tolist()
        if i % 6 == 3:
            workers = [p for p in descendants() - before if b"headrace.worker" in _cmdline(p)]
            parents = {int(pathlib.Path(f"/proc/{p}/stat").read_text().rpartition(")")[2].split()[1]) for p in workers}
            victims = [p for p in workers if p not in parents]
            if victims:
                os.kill(victims[i % len(victims)], signal.SIGKILL)
    assert got == list(range(600))


def _cmdline(pid: int) -> bytes:
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_leaving_the_loop_ends_all_processes(children: Any) -> None:
    for _ in hr.range(100000).map(userfns.double, variant="processes").batch(10).loader(threads=2):
        assert children()
        break


def test_a_killed_program_leaves_nothing(tmp_path: pathlib.Path) -> None:
    """mosaicml/streaming#781. Shared memory has no name that could stay: test_reports.py."""
    text = """
import os, sys, userfns, headrace as hr
for i, b in enumerate(hr.range(10**9).map(userfns.double, variant="processes").batch(10).loader(threads=2)):
    if i == 3:
        sys.path.append("")
        from conftest import descendants
        print(*descendants(), flush=True)
        os.kill(os.getpid(), 9)
"""
    out = run_script(tmp_path, text)
    pids = list(map(int, out.stdout.split()))
    assert len(pids) >= 2, out.stderr
    until = time.monotonic() + 60
    while any(b"headrace.worker" in _cmdline(p) for p in pids):
        assert time.monotonic() < until, "workers outlive their program"
        time.sleep(0.02)


def test_ctrl_c_returns_and_leaves_nothing(tmp_path: pathlib.Path) -> None:
    text = """
import os, signal, threading, userfns, headrace as hr
from conftest import descendants
pipe = hr.range(10**9).map(userfns.slow, variant="processes").batch(10**6)
timer = threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT))
try:
    timer.start()
    next(iter(pipe.loader(threads=2)))  # a batch takes 15 minutes
except KeyboardInterrupt:
    timer.join()
    print("interrupted", len(descendants()), threading.active_count())
"""
    out = run_script(tmp_path, text)
    assert out.stdout.split() == ["interrupted", "0", "1"], out.stderr


# ---- Python objects as sources ----


@pytest.mark.parametrize("variant", VARIANTS)
def test_datasets_go_in_unchanged(variant: Any) -> None:
    pipe = hr.from_dataset(userfns.Squares(20), names=["x", "y"], variant=variant).shuffle().batch(20)
    batch = next(iter(pipe.loader(output="numpy", threads=2)))
    assert sorted(batch.y.tolist()) == list(range(20))
    assert np.array_equal(batch.x[:, 0], batch.y.astype(np.float32) ** 2)


def test_lists_dicts_and_tuples_become_fields() -> None:
    assert [f.name for f in hr.from_dataset([1, 2]).fields] == ["value"]
    assert [f.name for f in hr.from_dataset([{"a": 1, "b": 2.0}]).fields] == ["a", "b"]
    assert [f.name for f in hr.from_dataset([{"a": 1, "b": 2.0}], names=["b"]).fields] == ["b"]
    assert [f.name for f in hr.from_dataset([(1, "x")]).fields] == ["field0", "field1"]
    pairs = [(np.zeros((5, 6, 3), np.uint8), 1)]
    assert [f.name for f in hr.from_dataset(pairs).fields] == ["image", "label"]
    assert hr.from_dataset(pairs).resize(4).batch(1).fields[0].shape[1:] == (4, 4, 3)


def test_lengths_of_items_are_fixed_where_a_stack_follows_only() -> None:
    items = [np.zeros((2 + i, 5), np.float32) for i in range(3)]
    assert hr.from_dataset(items).batch(2).fields[0].shape[1:] == (2, 5)
    assert [b.shape for b in hr.from_dataset(items).batch(1).loader(output="numpy")] == [
        (1, 2, 5),
        (1, 3, 5),
        (1, 4, 5),
    ]
    assert next(iter(hr.from_dataset(items).padded_batch(3).loader(output="numpy"))).shape == (3, 4, 5)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: hr.from_dataset(3), "__len__"),
        (lambda: hr.from_dataset([{"aa": 1}], names=["ab"]), "did you mean 'aa'"),
        (lambda: hr.from_dataset([(1, 2)], names=["a"]), "2 parts"),
        (lambda: hr.from_dataset([lambda: 0]), "function"),
        (lambda: hr.from_dataset({1: 2}), "item 0"),
        (lambda: hr.from_iterable(3), "iterated"),
        (lambda: hr.from_generator(iter([])), "from_iterable"),
    ],
)
def test_what_is_no_dataset_is_refused_with_words(make: Any, words: str) -> None:
    with pytest.raises(hr.HeadraceError) as caught:
        make().fields  # noqa: B018
    assert words in str(caught.value) and caught.value.op == "code.source"


def test_a_dataset_that_is_shorter_than_it_says_loses_nothing_silently() -> None:
    class Short(userfns.Squares):
        def __getitem__(self, i: int) -> tuple[np.ndarray, int]:
            if i == 3:
                raise IndexError("3 is not here")
            return super().__getitem__(i)

    with pytest.raises(hr.CodeError, match="no item 3") as caught:
        list(hr.from_dataset(Short(5)).batch(5).loader(output="numpy"))
    assert caught.value.record == 3


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_iterables_keep_their_order(threads: int) -> None:
    pipe = hr.from_iterable([3 * i for i in range(100)]).map(lambda x: x + 1).batch(9)
    got = [x for b in pipe.loader(output="numpy", threads=threads, epochs=2) for x in b.tolist()]
    assert got == 2 * [3 * i + 1 for i in range(100)]


def test_ranks_share_an_iterable_without_hoarding(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[Any] = []
    reader = dataset.Stream.reader
    monkeypatch.setattr(dataset.Stream, "reader", lambda stream: passes.append(reader(stream)) or passes[-1])
    pipe = hr.from_iterable(np.zeros(200_000, np.uint8) + np.uint8(i % 256) for i in range(2000))
    seen = [b[0, 0] for b in pipe.batch(1).loader(shard=(5, 8), even="none", output="numpy", threads=2)]
    assert seen == [i % 256 for i in range(5, 2000, 8)]
    stashes = [len(e._stash) for one in passes for e in one._epochs.values()]
    assert stashes and sum(stashes) <= 512


def test_an_iterator_read_once_loses_nothing() -> None:
    pipe = hr.from_iterable(iter(range(20))).map(lambda x: x * 2).batch(6)
    got = [x for b in pipe.loader(output="numpy", threads=2) for x in b.tolist()]
    assert got == [2 * i for i in range(20)]
    with pytest.raises(hr.CodeError, match="from_generator"):
        list(pipe.loader(output="numpy"))


def test_generators_start_again_in_each_epoch() -> None:
    starts: list[int] = []

    def numbers() -> Any:
        starts.append(1)
        yield from ({"n": i, "text": str(i)} for i in range(10))

    pipe = hr.from_generator(numbers).batch(4)
    loader = pipe.loader(output="numpy")
    for _ in range(2):
        assert [n for b in loader for n in b.n.tolist()] == list(range(10))


def test_what_an_iterable_raises_belongs_to_the_record_that_was_read() -> None:
    """Also if the thread that read it had asked for a later one."""
    from headrace.dataset import _Epoch

    def numbers() -> Any:
        yield from range(2)
        raise RuntimeError("the well is dry")

    epoch = _Epoch(numbers())
    with pytest.raises(StopIteration):
        epoch.at(4)
    assert [epoch.at(1), epoch.at(0)] == [1, 0]
    with pytest.raises(RuntimeError, match="the well is dry"):
        epoch.at(2)


def test_an_iterable_that_raises_does_not_end_early() -> None:
    def broken(kind: type[Exception]) -> Any:
        def numbers() -> Any:
            yield from range(5)
            raise kind("the well is dry")

        return hr.from_generator(numbers).batch(2)

    for kind in (RuntimeError, IndexError, KeyError):
        for threads in (0, 2, 4):
            for _ in range(20):
                with pytest.raises(hr.CodeError, match="the well is dry"):
                    list(broken(kind).loader(output="numpy", threads=threads))


def test_an_iterable_goes_on_behind_a_record_that_is_bad() -> None:
    class Numbers:
        def __init__(self) -> None:
            self.at = 0

        def __iter__(self) -> Numbers:
            return self

        def __next__(self) -> int:
            self.at += 1
            if self.at == 4:
                raise ValueError("no four")
            if self.at > 9:
                raise StopIteration
            return self.at

    for threads in (0, 3):
        loader = hr.from_generator(Numbers).batch(2).loader(output="numpy", on_error="skip", threads=threads)
        assert [int(n) for b in loader for n in b] == [1, 2, 3, 5, 6, 7, 8, 9]


def test_an_iterable_that_raises_names_the_record() -> None:
    def numbers() -> Any:
        yield from range(5)
        raise RuntimeError("the well is dry")

    with pytest.raises(hr.CodeError, match="the well is dry") as caught:
        list(hr.from_generator(numbers).batch(2).loader(output="numpy"))
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_function_may_write_to_its_arrays() -> None:
    data = [np.full((4, 3), i, np.float32) for i in range(8)]

    def negate(x: np.ndarray) -> np.ndarray:
        x *= -1
        return x

    def first_zero(record: dict[str, Any]) -> dict[str, Any]:
        record["a"][0] = 0
        return record

    got = np.concatenate(list(hr.from_dataset(data).map(negate).batch(4).loader(output="numpy")))
    assert (got == -np.stack(data)).all()
    pairs = hr.from_dataset([(x, x) for x in data], names=["a", "b"]).map(first_zero).batch(8)
    batch = next(iter(pairs.loader(output="numpy")))
    assert (batch.a[:, 0] == 0).all() and (batch.a[:, 1:] == np.stack(data)[:, 1:]).all()
    assert (batch.b == np.stack(data)).all()  # returned as it was
    views = hr.from_dataset(data).map(lambda x: x[::-1]).map(negate).batch(8)
    assert (next(iter(views.loader(output="numpy"))) == -np.stack(data)).all()
    assert all((x == i).all() for i, x in enumerate(data))  # those of the data set are not written to


def test_a_changed_array_behind_a_reversed_axis_is_copied() -> None:
    """Strided inputs: a layout makes channels first of channels last without moving bytes."""
    data = [np.arange(24, dtype=np.uint8).reshape(4, 2, 3) + i for i in range(4)]

    def zero(x: np.ndarray) -> np.ndarray:
        x[0] = 0
        return x

    pipe = (
        hr.from_dataset(data, names=["image"])
        .kind("image", "image")
        .layout("chw", field="image")
        .map(zero, fields="image")
        .batch(4)
    )
    want = np.stack(data).transpose(0, 3, 1, 2).copy()
    want[:, 0] = 0
    assert (next(iter(pipe.loader(output="numpy"))).image == want).all()
