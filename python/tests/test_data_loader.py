"""hr.DataLoader is held to torch's own: the same arguments, the same batches, and a state."""

from __future__ import annotations

import gc
import itertools
import json
import multiprocessing
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import headrace as hr
from conftest import run_script

torch = pytest.importorskip("torch")

from torch.utils import data as torch_data  # noqa: E402

import loaderfns  # noqa: E402
from headrace.data_loader import DataLoader  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create", "ignore:'pin_memory' argument")


@pytest.fixture(autouse=True)
def collected_between_tests() -> Iterator[None]:
    """An iterator of torch's that an error ends is garbage in a cycle. Collected while another one starts
    its workers, it closes descriptors that are no longer its own."""
    gc.disable()
    yield
    gc.enable()
    gc.collect()


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and a.stride() == b.stride() and torch.equal(a, b)
    if isinstance(a, np.ndarray):
        return type(a) is type(b) and a.dtype == b.dtype and bool((a == b).all())
    if isinstance(a, Mapping):
        return type(a) is type(b) and list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    return type(a) is type(b) and bool(a == b)


def seed_all(seed: int) -> None:
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)


def both(seed: int, make: Callable[[Any], Any], epochs: int = 2) -> tuple[list[Any], list[Any]]:
    """The batches of torch's loader and of ours, and a number drawn from the generator after them."""
    made = []
    for kind in (torch_data.DataLoader, DataLoader):
        seed_all(seed)
        loader = make(kind)
        made.append([batch for _ in range(epochs) for batch in loader] + [torch.rand(1)])
    return made[0], made[1]


ARGUMENTS: dict[str, dict[str, Any]] = {
    "default": {},
    "batches": {"batch_size": 4},
    "shuffle": {"batch_size": 4, "shuffle": True},
    "drop_last": {"batch_size": 4, "drop_last": True},
    "single": {"batch_size": None},
    "single shuffled": {"batch_size": None, "shuffle": True},
    "collate": {"batch_size": 4, "collate_fn": loaderfns.as_list},
    "batch_sampler": {"batch_sampler": [[1, 2], [3], [4, 5, 6, 0]]},
    "sampler": {"batch_size": 3, "sampler": [5, 3, 3, 1, 0, 7, 2]},
    "pin_memory": {"batch_size": 4, "pin_memory": True},
}
WORKERS: dict[str, dict[str, Any]] = {
    "none": {},
    "one": {"num_workers": 1},
    "three": {"num_workers": 3, "prefetch_factor": 1},
    "kept": {"num_workers": 2, "persistent_workers": True, "prefetch_factor": 4},
}


def chosen(workers: str, rng: random.Random) -> dict[str, Any]:
    """The options of a loader with workers, of any kind, or without."""
    kind = "none" if workers == "none" else rng.choice(["one", "three", "kept"])
    print("workers", kind)
    return WORKERS[kind]


@pytest.mark.parametrize("workers", ["none", "some"])
@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_batches_are_those_of_torch(
    arguments: str, workers: str, rng: random.Random, children: Callable[[], set[int]]
) -> None:
    """All items draw from torch, NumPy and random."""
    options = {**ARGUMENTS[arguments], **chosen(workers, rng)}
    kind = rng.choice([loaderfns.Items, loaderfns.Many])
    one, other = both(rng.randrange(2**60), lambda loader: loader(kind(19), **options))
    assert equal(one, other)


@pytest.mark.parametrize("kind", ["pair", "named", "text", "array", "dict"])
def test_items_of_any_kind(kind: str, rng: random.Random) -> None:
    one, other = both(rng.randrange(2**60), lambda loader: loader(loaderfns.Items(9, kind), 4, num_workers=1))
    assert equal(one, other)


def outcome(kind: Any, *args: Any, **options: Any) -> Any:
    """All batches of a loader, or the error."""
    try:
        return list(kind(*args, **options))
    except (RuntimeError, KeyError, TypeError) as error:
        return type(error).__name__, str(error).splitlines()[-1]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("differ", [False, True])
def test_large_items(workers: int, differ: bool, rng: random.Random) -> None:
    """They are copied into the batch one by one, which shows in nothing."""
    for kind in (loaderfns.Large, loaderfns.Same):
        dataset, options = kind(rng.randrange(2**30), differ), {"batch_size": rng.choice([1, 3, 11])}
        one, other = (
            outcome(loader, dataset, num_workers=workers, **options) for loader in (torch_data.DataLoader, DataLoader)
        )
        assert equal(one, other)


def test_collate_functions_of_the_user_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that torch keeps by type, too."""
    from torch.utils.data._utils import collate

    monkeypatch.setitem(collate.default_collate_fn_map, torch.Tensor, lambda items, collate_fn_map: len(items))
    for workers in (0, 1):
        loader = DataLoader(
            loaderfns.Same(0, False), 4, num_workers=workers, multiprocessing_context="fork" if workers else None
        )
        assert list(loader) == [[4, 4], [4, 4], [3, 3]]


@pytest.mark.parametrize("workers", ["none", "three"])
def test_generators_are_used_as_torch_does(workers: str, rng: random.Random) -> None:
    seed = rng.randrange(2**60)

    def make(loader: Any, sampler: Any = None) -> Any:
        generator = torch.Generator().manual_seed(seed)
        if sampler is not None:
            return loader(loaderfns.Items(19), 4, sampler=sampler(generator), generator=generator, **WORKERS[workers])
        return loader(loaderfns.Items(19), 4, shuffle=True, generator=generator, **WORKERS[workers])

    assert equal(*both(seed, make))
    weighted = lambda g: torch_data.WeightedRandomSampler(list(range(1, 20)), 30, generator=g)  # noqa: E731
    assert equal(*both(seed, lambda loader: make(loader, weighted)))
    subset = lambda g: torch_data.SubsetRandomSampler(range(3, 17), generator=g)  # noqa: E731
    assert equal(*both(seed, lambda loader: make(loader, subset)))


@pytest.mark.parametrize("divided", [True, False])
@pytest.mark.parametrize("workers", ["none", "some"])
@pytest.mark.parametrize("size", [1, 3, None])
def test_iterable_datasets(workers: str, divided: bool, size: int | None, rng: random.Random) -> None:
    """Workers end at different batches."""
    options = {"batch_size": size, **chosen(workers, rng)}
    drop = rng.random() < 0.5 and size is not None
    stream = loaderfns.Stream(rng.randrange(17), divided)
    one, other = both(rng.randrange(2**60), lambda loader: loader(stream, drop_last=drop, **options))
    assert equal(one, other)


def test_workers_know_themselves(children: Callable[[], set[int]]) -> None:
    loader = DataLoader(loaderfns.Told(), 2, num_workers=2, worker_init_fn=loaderfns.tell)
    got = [(ids.tolist(), counts.tolist(), seeds.tolist(), told) for ids, counts, seeds, told in loader]
    assert got == [([w, w], [2, 2], [True, True], (f"worker {w}",) * 2) for w in (0, 1, 0, 1)]
    assert torch_data.get_worker_info() is None
    with pytest.raises(LookupError, match="no worker 0"):
        list(DataLoader(loaderfns.Items(4), num_workers=1, worker_init_fn=loaderfns.fail))


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_workers_are_started_as_asked(context: str) -> None:
    for given in (context, multiprocessing.get_context(context)):
        loader = DataLoader(loaderfns.Items(6, "pair"), 3, num_workers=1, multiprocessing_context=given)
        assert [y.tolist() for _, y in loader] == [[0, 1, 2], [3, 4, 5]]
    stream = DataLoader(loaderfns.Positions(6), 2, num_workers=2, multiprocessing_context=context)
    head = [x.tolist() for x, _ in itertools.islice(stream, 1)]
    again = DataLoader(loaderfns.Positions(6), 2, num_workers=2, multiprocessing_context=context)
    again.load_state_dict(stream.state_dict())
    assert head + [x.tolist() for x, _ in again] == [[0, 5], [1, 2], [3, 4]]


def test_what_only_a_fork_can_share_reaches_the_workers() -> None:
    """Lambdas, local classes, locks and queues of multiprocessing, and changes between epochs."""
    queue: Any = multiprocessing.get_context("fork").Queue()

    class Local:
        lock = multiprocessing.get_context("fork").Lock()
        epoch = 0

        def __len__(self) -> int:
            return 4

        def __getitem__(self, at: int) -> Any:
            with self.lock:
                queue.put(at)
                return at, self.epoch

    dataset: Any = Local()
    loader = DataLoader(dataset, 2, num_workers=2, collate_fn=lambda items: items, multiprocessing_context="fork")
    for epoch in range(3):
        dataset.epoch = epoch
        assert list(loader) == [[(0, epoch), (1, epoch)], [(2, epoch), (3, epoch)]]
    assert sorted(queue.get(timeout=60) for _ in range(12)) == sorted([0, 1, 2, 3] * 3)


@pytest.mark.parametrize("kind", [loaderfns.Failing, loaderfns.ManyFailing])
@pytest.mark.parametrize("workers", [0, 2])
def test_an_exception_keeps_its_type_and_names_the_item(
    workers: int, kind: Any, children: Callable[[], set[int]]
) -> None:
    """As in torch, the loop may go on after it."""
    run, seen = iter(DataLoader(kind(KeyError), 2, num_workers=workers)), []
    for at in range(6):
        if at == 2:
            with pytest.raises(KeyError, match="five") as caught:
                next(run)
            text = "".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
            name = "items [4, 5] of ManyFailing" if kind is loaderfns.ManyFailing else "item 5 of Failing"
            assert f"This was {name}." in text
        else:
            seen.append(next(run)[1].tolist())
    with pytest.raises(StopIteration):
        next(run)
    assert seen == [[0, 1], [2, 3], [6, 7], [8, 9], [10, 11]]
    with pytest.raises(RuntimeError, match=r"items? .*5.* raised StopIteration"):
        list(DataLoader(kind(StopIteration), 2, num_workers=workers))
    with pytest.raises(ValueError, match=r"item 5 of Failing|ValueError: five|five"):
        list(DataLoader(kind(ValueError), None, num_workers=workers))


@pytest.mark.parametrize("how", ["kill", "exit"])
def test_a_dead_worker_is_an_error(how: str, tmp_path: pathlib.Path) -> None:
    """In a program of its own: torch's handler of a signal that comes late raises the error again, anywhere."""
    script = (
        "import loaderfns\nfrom headrace.data_loader import DataLoader\n"
        f"list(DataLoader(loaderfns.Failing({how!r}), 2, num_workers=2))\n"
    )
    done = run_script(tmp_path, script)
    assert done.returncode == 1
    assert re.search(r"RuntimeError: DataLoader worker \(pid.* (exited unexpectedly|is killed by signal)", done.stderr)


def test_a_worker_whose_sockets_are_closed_before_it_is_gone_is_dead(tmp_path: pathlib.Path) -> None:
    """Its last tensor cannot be taken then; without a worker that ends, that is the error. In programs of their own, as
    above."""
    script = (
        "import os, signal, sys, threading, loaderfns\nfrom headrace import data_loader\n"
        "data_loader._END_WAIT_S = 2.0\n"
        "run = iter(data_loader.DataLoader(loaderfns.Items(12, 'pair'), 2, num_workers=2))\n"
        "next(run)\n"
        "def get(timeout):\n"
        "    if sys.argv[1] == 'dies':\n"
        "        threading.Timer(0.5, os.kill, [run._workers[0].pid, signal.SIGKILL]).start()\n"
        "    raise ConnectionResetError('by the worker')\n"
        "run._data_queue.get = get\n"
        "try:\n"
        "    for _ in range(6):\n"  # some came with the first
        "        next(run)\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error, flush=True)\n"
        "    os._exit(0)\n"
    )
    dies, lives = (run_script(tmp_path, script, how) for how in ("dies", "lives"))
    assert re.match(r"RuntimeError DataLoader worker \(pid.* (exited unexpectedly|is killed by signal)", dies.stdout)
    assert lives.stdout == "ConnectionResetError by the worker\n"


def test_a_stuck_worker_is_an_error_after_the_timeout(children: Callable[[], set[int]]) -> None:
    with pytest.raises(RuntimeError, match="timed out after 2 seconds"):
        list(DataLoader(loaderfns.Failing("stuck"), 2, num_workers=1, timeout=2))


@pytest.mark.parametrize("workers", WORKERS)
def test_loops_may_be_left_nested_and_closed(workers: str, children: Callable[[], set[int]]) -> None:
    with DataLoader(loaderfns.Items(12, "pair"), 2, **WORKERS[workers]) as loader:
        for _ in loader:
            break
        assert [y.tolist() for _, y in loader] == [[i, i + 1] for i in range(0, 12, 2)]
        if workers != "kept":
            pairs = [(a.tolist(), b.tolist()) for (_, a), (_, b) in zip(loader, loader, strict=True)]
            assert pairs == [([i, i + 1], [i, i + 1]) for i in range(0, 12, 2)]
        run = iter(loader)
        next(run)
        loader.close()
        assert not children()
        with pytest.raises(StopIteration):
            next(run)
        again = [y.tolist() for _, y in loader]  # of an epoch from its beginning
        assert again == [[i, i + 1] for i in range(0, 12, 2)]
    assert not children()


def test_threads_may_have_loaders_of_their_own() -> None:
    got: dict[int, Any] = {}

    def run(number: int) -> None:
        got[number] = [y.tolist() for _, y in DataLoader(loaderfns.Items(10, "pair"), 5, num_workers=1)]

    threads = [threading.Thread(target=run, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [got[i] for i in range(3)] == [[[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]] * 3


@pytest.mark.parametrize("workers", [0, 2])
def test_no_items_are_no_batches(workers: int) -> None:
    for dataset in (loaderfns.Items(0), [], loaderfns.Stream(0)):
        loader = DataLoader(dataset, 4, num_workers=workers)
        assert list(loader) == [] and list(loader) == []
    assert len(DataLoader([], 4)) == 0


def test_items_are_fetched_when_they_are_needed() -> None:
    read: list[int] = []

    class Noted(loaderfns.Items):
        def __getitem__(self, at: int) -> Any:
            read.append(at)
            return at

    run = iter(DataLoader(Noted(9), 3, sampler=range(8, -1, -1)))
    assert read == []
    assert next(run).tolist() == [8, 7, 6] and read == [8, 7, 6]


# ---- states ----


def resumed(make: Callable[[], DataLoader], seed: int, stop: int) -> tuple[list[Any], list[Any]]:
    """The batches of one epoch, and of one that is left after `stop` batches and resumed in a new loader."""
    seed_all(seed)
    whole = list(make())
    seed_all(seed)
    loader = make()
    head = list(itertools.islice(loader, stop))
    state = json.loads(json.dumps(loader.state_dict()))
    del loader
    seed_all(seed + 1)
    again = make()
    again.load_state_dict(state)
    assert again.state_dict() == state
    tail = list(again)
    return whole, head + tail


def places(batches: list[Any]) -> list[Any]:
    """Without what was drawn."""
    return [(b["x"], b["text"]) for b in batches]


@pytest.mark.parametrize("workers", ["none", "some"])
@pytest.mark.parametrize(
    "arguments", ["batches", "shuffle", "drop_last", "batch_sampler", "sampler", "single shuffled"]
)
def test_an_epoch_resumes_at_any_batch(arguments: str, workers: str, rng: random.Random) -> None:
    options = {**ARGUMENTS[arguments], **chosen(workers, rng)}
    count = len(DataLoader(loaderfns.Items(19), **options))
    for stop in {rng.choice([0, 1]), rng.randrange(count), rng.choice([count - 1, count])}:
        made = resumed(lambda: DataLoader(loaderfns.Items(19), **options), rng.randrange(2**60), stop)
        assert equal(*map(places, made))


def test_an_epoch_resumes_with_other_workers(rng: random.Random) -> None:
    dataset, seed = loaderfns.Items(29), rng.randrange(2**60)
    seed_all(seed)
    whole = places(list(DataLoader(dataset, 3, shuffle=True)))
    for before, after in ((0, 2), (2, 0), (1, 3)):
        seed_all(seed)
        loader = DataLoader(dataset, 3, shuffle=True, num_workers=before)
        head = places(list(itertools.islice(loader, 4)))
        again = DataLoader(dataset, 3, shuffle=True, num_workers=after)
        again.load_state_dict(loader.state_dict())
        assert equal(whole, head + places(list(again)))


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("given", [False, True])
def test_the_end_of_an_epoch_is_the_beginning_of_the_next(given: bool, workers: str, rng: random.Random) -> None:
    """Its order follows the generator as it was, and the program's stays as it is."""
    seed = rng.randrange(2**60)

    def make() -> DataLoader[Any]:
        generator = torch.Generator().manual_seed(seed) if given else None
        return DataLoader(loaderfns.Items(13), 2, shuffle=True, generator=generator, **WORKERS[workers])

    seed_all(seed)
    loader = make()
    epochs = rng.randrange(3)
    for _ in range(epochs):
        list(loader)
    state = json.loads(json.dumps(loader.state_dict()))
    whole = [places(list(loader)) for _ in range(2 if given else 1)]
    seed_all(seed + 1)
    again = make()
    again.load_state_dict(state)
    assert again.state_dict() == state
    run = iter(again)
    torch.rand(1)
    head = list(itertools.islice(run, 2))
    third = make()
    third.load_state_dict(json.loads(json.dumps(again.state_dict())))
    assert equal([places(head + list(third)), *(places(list(third)) for _ in whole[1:])], whole)
    assert equal(places(head + list(run)), whole[0])
    before = torch.get_rng_state()
    again.load_state_dict(state)
    iter(again)
    assert given or torch.equal(before, torch.get_rng_state())


def test_resumed_workers_do_not_draw_the_first_numbers_again(rng: random.Random) -> None:
    seed = rng.randrange(2**60)
    loader = DataLoader(loaderfns.Items(40), 2, num_workers=2)
    seed_all(seed)
    first = list(itertools.islice(loader, 6))
    state = loader.state_dict()
    rests = []
    for other in (seed, seed + 1):  # of the program: it decides nothing
        seed_all(other)
        again = DataLoader(loaderfns.Items(40), 2, num_workers=2)
        again.load_state_dict(state)
        rests.append(list(again))
    assert equal(*rests)
    for at in range(3):
        drawn = [torch.cat([b["drawn"][at].flatten() for b in batches]) for batches in (first, rests[0])]
        assert not set(drawn[0].tolist()) & set(drawn[1].tolist())


@pytest.mark.parametrize("stop", [0, 1, 2, 5, 6])
@pytest.mark.parametrize("workers", [1, 3])
def test_batches_out_of_order_resume(workers: int, stop: int, rng: random.Random) -> None:
    """With in_order=False the state says which batches came before their turn."""
    options: dict[str, Any] = {"shuffle": True, "num_workers": workers, "in_order": False}
    seed_all(rng.randrange(2**60))
    dataset = loaderfns.Slow(19)
    loader = DataLoader(dataset, 3, **options)
    head = [tuple(x.tolist()) for x in itertools.islice(loader, stop)]
    state = json.loads(json.dumps(loader.state_dict()))
    again = DataLoader(dataset, 3, **options)
    again.load_state_dict(state)
    rest = [tuple(x.tolist()) for x in itertools.islice(again, 1)]
    third = DataLoader(dataset, 3, **{**options, "in_order": rng.random() < 0.5})
    third.load_state_dict(again.state_dict())
    rest += [tuple(x.tolist()) for x in third]
    assert sorted(x for one in head + rest for x in one) == list(range(19))


@pytest.mark.parametrize("workers", ["none", "one", "three"])
def test_a_generator_is_resumed_with_all_epochs_after(workers: str, rng: random.Random) -> None:
    seed = rng.randrange(2**60)

    def make() -> DataLoader:
        generator = torch.Generator().manual_seed(seed)
        return DataLoader(loaderfns.Items(13), 2, shuffle=True, generator=generator, **WORKERS[workers])

    loader = make()
    whole = [places(list(loader)) for _ in range(3)]
    for epoch, stop in ((0, 3), (2, 0), (1, 7)):
        loader = make()
        for _ in range(epoch):
            list(loader)
        head = places(list(itertools.islice(loader, stop)))
        again = make()
        again.load_state_dict(loader.state_dict())
        rest = [places(list(again)) for _ in range(epoch, 3)]
        rest[0] = head + rest[0]
        assert equal(rest, whole[epoch:])


@pytest.mark.parametrize("workers", ["none", "some"])
@pytest.mark.parametrize("divided", [True, False])
def test_iterable_datasets_resume(workers: str, divided: bool, rng: random.Random) -> None:
    """They are read again up to the place, so that they draw the same numbers in workers."""
    options = {"batch_size": rng.choice([1, 2, None]), **chosen(workers, rng)}
    stream = loaderfns.Stream(14, divided)
    whole, again = resumed(lambda: DataLoader(stream, **options), rng.randrange(2**60), rng.randrange(1, 6))
    if workers == "none":  # the numbers of the program's generator are its own
        whole, again = [[b[0] for b in one] for one in (whole, again)]
    assert equal(whole, again)


@pytest.mark.parametrize("workers", ["none", "some"])
@pytest.mark.parametrize("kind", [loaderfns.Positions, loaderfns.Generating, loaderfns.Remembering])
def test_states_of_datasets_are_those_of_the_place(kind: Any, workers: str, rng: random.Random) -> None:
    """Not of what was read ahead. Whatever they draw goes on, too."""
    options = {"batch_size": rng.choice([1, 2, 3]), **chosen(workers, rng)}
    for stop in {rng.randrange(3), rng.randrange(3, 7)}:
        if workers == "none" and kind is not loaderfns.Generating and stop == 0:
            continue  # the numbers are those of the program's generator
        assert equal(*resumed(lambda: DataLoader(kind(19), **options), rng.randrange(2**60), stop))


@pytest.mark.parametrize("kind", [loaderfns.Resetting, loaderfns.Generating, loaderfns.Positions, loaderfns.Stream])
@pytest.mark.parametrize("workers", [0, 2, 3])
def test_a_worker_that_has_ended_does_not_start_over(kind: Any, workers: int, rng: random.Random) -> None:
    """Its last batch was cut short, and by then its data set may have been reset for the next epoch, which begins as
    without the interruption."""
    options: dict[str, Any] = {"batch_size": rng.choice([2, 3, 4, 50]), "num_workers": workers, "collate_fn": numbers}
    if workers:
        options |= {"persistent_workers": rng.random() < 0.5, "in_order": rng.random() < 0.5}
    options |= rng.choice([{}, {}, {"drop_last": True}, {"batch_size": None, "collate_fn": None}])
    print(options)
    ordered = options.get("in_order", True)

    def made(batches: list[Any]) -> list[Any]:
        if options["batch_size"] is None:
            batches = [numbers([one]) for one in batches]
        return batches if ordered else sorted(batches)

    loader = DataLoader(kind(23), **options)
    states, whole = [], []
    for batch in loader:
        whole.append(batch)
        states.append(json.loads(json.dumps(loader.state_dict())))
    following = made(list(loader))
    for stop in {len(whole), rng.randint(1, max(1, len(whole))), len(whole) - 1} if states else ():
        again = DataLoader(kind(23), **options)
        if stop > 0:
            again.load_state_dict(states[stop - 1])
        run = iter(again)
        some = list(itertools.islice(run, rng.randrange(2)))
        if some and rng.random() < 0.5:  # as often as it is interrupted
            state, again = again.state_dict(), DataLoader(kind(23), **options)
            again.load_state_dict(state)
            run = iter(again)
        assert made(some + list(run)) == made(whole[stop:])
        assert made(list(again)) == following


def numbers(items: list[Any]) -> list[int]:
    """Of items of any data set, without what they drew."""
    return [int(one[0]) if isinstance(one, (tuple, list)) else int(one) for one in items]


def test_states_without_ends_of_workers_are_read() -> None:
    """Those that older versions saved."""
    loader = DataLoader(loaderfns.Positions(23), 2, num_workers=2)
    run = iter(loader)
    head = list(itertools.islice(run, 3))
    state = loader.state_dict()
    assert state["workers"].pop("ended") == [False, False]
    again = DataLoader(loaderfns.Positions(23), 2, num_workers=2)
    again.load_state_dict(state)
    assert len(head) + len(list(again)) == len(list(DataLoader(loaderfns.Positions(23), 2, num_workers=2)))


def test_a_loaded_state_ends_the_epoch_of_persistent_workers(rng: random.Random) -> None:
    loader = DataLoader(loaderfns.Positions(23), 2, **WORKERS["kept"])
    list(loader)
    whole = list(loader)
    run = iter(loader)
    head = list(itertools.islice(run, 3))
    state, rest = loader.state_dict(), list(run)
    for _ in range(2):
        loader.load_state_dict(state)
        assert equal(list(loader), rest)
    assert len(head + rest) == len(whole)


def test_iterables_need_the_same_workers_and_batches() -> None:
    loader = DataLoader(loaderfns.Stream(9), 2, num_workers=2)
    next(iter(loader))
    for workers in (0, 1, 3):
        again = DataLoader(loaderfns.Stream(9), 2, num_workers=workers)
        again.load_state_dict(loader.state_dict())
        for _ in range(2):  # the state stays pending
            with pytest.raises(hr.StateMismatchError, match="give num_workers=2"):
                next(iter(again))
    again = DataLoader(loaderfns.Stream(9), 3, num_workers=2)
    again.load_state_dict(loader.state_dict())
    with pytest.raises(hr.StateMismatchError, match="give batch_size=2"):
        next(iter(again))
    other = DataLoader(loaderfns.Items(9), 2, num_workers=2)
    other.load_state_dict(loader.state_dict())
    with pytest.raises(hr.StateMismatchError, match="another kind"):
        list(other)


class Counting(torch_data.Sampler[int]):
    """A sampler that knows its place and draws from a generator that nobody knows."""

    def __init__(self, count: int) -> None:
        self.order = list(range(count))
        random.SystemRandom().shuffle(self.order)
        self.at = 0

    def __iter__(self) -> Iterator[int]:
        while self.at < len(self.order):
            self.at += 1
            yield self.order[self.at - 1]
        self.at = 0

    def __len__(self) -> int:
        return len(self.order)

    def state_dict(self) -> dict[str, Any]:
        return {"order": list(self.order), "at": self.at}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.order, self.at = state["order"], state["at"]


@pytest.mark.parametrize("workers", ["none", "one", "three"])
def test_the_state_of_a_sampler_is_that_of_the_place(workers: str) -> None:
    """Not that of the batches that were drawn ahead."""
    dataset = loaderfns.Items(20)
    sampler = Counting(20)
    loader = DataLoader(dataset, 3, sampler=sampler, **WORKERS[workers])
    head = places(list(itertools.islice(loader, 2)))
    state = json.loads(json.dumps(loader.state_dict()))
    assert state["sampler"]["at"] == 6
    again = DataLoader(dataset, 3, sampler=Counting(20), **WORKERS[workers])
    again.load_state_dict(state)
    got = head + places(list(again))
    assert [text for _, texts in got for text in texts] == [f"item {at}" for at in sampler.order]


def test_a_sampler_that_gives_other_indices_is_refused() -> None:
    class Unknown(torch_data.Sampler[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(random.SystemRandom().sample(range(1000), 1000))

    for workers in (0, 1):
        loader = DataLoader(loaderfns.Items(1000), 50, sampler=Unknown(), num_workers=workers)
        next(iter(loader))
        again = DataLoader(loaderfns.Items(1000), 50, sampler=Unknown(), num_workers=workers)
        again.load_state_dict(loader.state_dict())
        for _ in range(2):  # the state stays pending
            with pytest.raises(hr.StateMismatchError, match="the sampler gives other indices"):
                next(iter(again))


@pytest.mark.parametrize("workers", [0, 1])
def test_an_iterable_that_became_shorter_is_refused(workers: int) -> None:
    loader = DataLoader(loaderfns.Stream(9), 2, num_workers=workers)
    list(itertools.islice(loader, 3))
    again = DataLoader(loaderfns.Stream(3), 2, num_workers=workers)
    again.load_state_dict(loader.state_dict())
    with pytest.raises(hr.StateMismatchError, match="ends before batch 3"):
        list(again)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: 3, "no state of hr.DataLoader|not a state"),
        (lambda s: {}, "not a state"),
        (lambda s: {**s, "headrace_data_loader": 2}, "not a state"),
        (lambda s: {k: v for k, v in s.items() if k != "drawn"}, "keys are missing: drawn"),
        (lambda s: {**s, "yielded": -1}, "yielded is -1"),
        (lambda s: {**s, "yielded": True}, "yielded is True"),
        (lambda s: {**s, "yielded": "1"}, "yielded is '1'"),
        (lambda s: {**s, "started": False}, "yielded is 1"),
        (lambda s: {**s, "started": 1}, "started is 1"),
        (lambda s: {**s, "ahead": [1]}, "ahead is"),
        (lambda s: {**s, "ahead": ["x"]}, "ahead is"),
        (lambda s: {**s, "workers": {}}, "workers is"),
        (lambda s: {**s, "workers": {"count": 2, "size": 1, "next": 0, "given": [1], "states": [None]}}, "workers is"),
        (
            lambda s: {
                **s,
                "workers": {"count": 0, "size": 1, "next": 0, "given": [1], "states": [None], "ended": [0]},
            },
            "workers is",
        ),
        (lambda s: {**s, "base_seed": None}, "base_seed is None"),
        (lambda s: {**s, "generator": "xyz"}, "not hexadecimal"),
        (lambda s: {**s, "generator": ""}, "yielded is 1"),
    ],
)
def test_damaged_states_are_refused(change: Callable[[Any], Any], words: str) -> None:
    loader = DataLoader(list(range(9)), 3, shuffle=True)
    next(iter(loader))
    with pytest.raises(hr.FormatError, match=words):
        DataLoader(list(range(9)), 3, shuffle=True).load_state_dict(change(loader.state_dict()))
    short = {**loader.state_dict(), "generator": "00" * 10}
    again = DataLoader(list(range(9)), 3, shuffle=True)
    again.load_state_dict(short)
    with pytest.raises(hr.FormatError, match="torch refuses"):
        next(iter(again))


def test_arguments_are_checked_as_torch_does() -> None:
    for options in (
        {"shuffle": True, "sampler": [1]},
        {"batch_size": None, "drop_last": True},
        {"num_workers": -1},
        {"timeout": -1},
        {"prefetch_factor": 2},
        {"persistent_workers": True},
        {"multiprocessing_context": "fork"},
        {"num_workers": 1, "multiprocessing_context": "thread"},
        {"batch_sampler": [[1]], "batch_size": 2},
    ):
        with pytest.raises(ValueError):
            DataLoader([1, 2], **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="shuffle"):
        DataLoader(loaderfns.Stream(3), shuffle=True)
    with pytest.raises(hr.ArgumentError, match=r"pipe\.batch\(32\)\.loader\(\)"):
        DataLoader(hr.range(3))
    assert isinstance(DataLoader([1]), torch_data.DataLoader) and hr.DataLoader is DataLoader
    assert DataLoader[int]([1]).dataset == [1]
    assert len(DataLoader(range(10), 3)) == 4 and len(DataLoader(range(10), 3, drop_last=True)) == 3  # type: ignore[arg-type]


def test_without_torch_it_says_what_to_install(tmp_path: pathlib.Path) -> None:
    done = run_script(
        tmp_path,
        "import sys\nsys.modules['torch'] = None\nimport headrace as hr\nfrom headrace import *\n"
        "try:\n    hr.DataLoader\nexcept ImportError as error:\n    print(error)\n",
    )
    assert "pip install torch" in done.stdout, done


LOOP = """
import sys, torch, headrace as hr
import loaderfns
if __name__ == "__main__":
    loader = hr.DataLoader(loaderfns.Failing("stuck"), 1, num_workers=2, persistent_workers=True)
    run = iter(loader)
    for _ in range(5):
        print(len(next(run)), flush=True)
"""


def test_a_program_that_ends_in_a_loop_leaves_nothing(tmp_path: pathlib.Path) -> None:
    done = run_script(tmp_path, LOOP)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n" * 5, ""), done


def test_control_c_ends_a_loop_that_waits(tmp_path: pathlib.Path, children: Callable[[], set[int]]) -> None:
    """Both the program and its workers get the signal, as from a terminal."""
    script = tmp_path / "script.py"
    script.write_text(LOOP + "    next(run)\n")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(pathlib.Path(hr.__file__).parents[1]), *sys.path])}
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    for _ in range(5):
        assert process.stdout.readline() == "2\n"
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode != 0 and "KeyboardInterrupt" in err, err


# ---- batches ahead ----


class Counted:
    """Items that count how many were fetched; those of even batches of two take longer if `slow_s` says so."""

    def __init__(self, slow_s: float = 0.0) -> None:
        self.fetched = multiprocessing.Value("q", 0)
        self.slow_s = slow_s

    def __len__(self) -> int:
        return 200

    def __getitem__(self, at: int) -> int:
        time.sleep(self.slow_s if at // 2 % 2 == 0 else 0)
        with self.fetched.get_lock():
            self.fetched.value += 1
        return at

    def settled(self, count: int) -> int:
        """Items fetched, when there are `count` of them and some time has passed, or after a minute."""
        until = time.monotonic() + 60
        while self.fetched.value < count and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.3)
        return int(self.fetched.value)


@pytest.mark.parametrize(("options", "ahead"), [({}, 3), ({"prefetch_factor": 2}, 4), ({"in_order": False}, 4)])
def test_batches_that_nobody_waits_for_are_as_few_as_keep_the_workers_busy(options: dict[str, Any], ahead: int) -> None:
    data = Counted()
    with DataLoader(data, 2, num_workers=2, **options) as loader:
        batches = iter(loader)
        for taken in range(1, 6):
            next(batches)
            assert data.settled(2 * (taken + ahead)) == 2 * (taken + ahead)


def test_more_batches_are_made_ahead_when_a_worker_is_idle_while_the_loop_waits() -> None:
    data = Counted(slow_s=0.01)
    with DataLoader(data, 2, num_workers=2) as loader:
        batches = iter(loader)
        for _ in range(40):
            next(batches)
        assert data.settled(2 * (40 + 4)) == 2 * (40 + 4)


def test_a_sampler_draws_when_it_does_in_torch() -> None:
    class Drawing(torch_data.Sampler[int]):
        def __len__(self) -> int:
            return 40

        def __iter__(self) -> Iterator[int]:
            for _ in range(40):
                yield int(torch.randint(200, (1,)))

    made = []
    for kind in (torch_data.DataLoader, DataLoader):
        seed_all(7)
        loader = kind(Counted(slow_s=0.005), 2, sampler=Drawing(), num_workers=2)
        made.append([(batch, torch.rand(1)) for batch in loader])
    assert equal(made[0], made[1])


def test_a_worker_does_not_end_the_loop_that_it_has_a_copy_of() -> None:
    script = """
import gc, os
import headrace as hr
gc.disable()
run = iter(hr.DataLoader(range(9), num_workers=1))
run.cycle = run
del run
os.register_at_fork(after_in_child=gc.collect)
assert len(list(hr.DataLoader(range(9), num_workers=1))) == 9
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
