"""The global random generators that user code may draw from: random, numpy.random, torch.

Each is seeded with all bits of a key and a number of its own. With equal seeds `random` and
`numpy.random` would draw the same numbers, and `torch.manual_seed` uses 32 bits only, so that
two of 100,000 records would probably draw alike. Of torch's generators this is the CPU's.

A module that user code imports later is seeded right after its import.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NamedTuple

from . import _headrace
from ._numpy import np

_MT_WORDS = 624  # of a Mersenne Twister's state
_TORCH_WORDS_AT = 24  # their offset in torch's state, where each takes 64 bits


class _Generator(NamedTuple):
    """How to handle the generator of a module, which is the first argument."""

    save: Callable[[Any], Any]
    seed: Callable[[Any, int], None]
    restore: Callable[[Any, Any], None]


def _seed_numpy(random: Any, key: int) -> None:
    random.seed(np.frombuffer(key.to_bytes(24, "little"), "<u4"))


def _seed_torch(torch: Any, key: int) -> None:
    from random import Random

    generator = torch.default_generator
    generator.manual_seed(key & 0x7FFFFFFFFFFFFFFF)
    state = generator.get_state()
    words = state.numpy()[_TORCH_WORDS_AT : _TORCH_WORDS_AT + 8 * _MT_WORDS].view("<u8")
    if words[0] == key & 0xFFFFFFFF:  # else a future torch has another layout
        words[:] = np.frombuffer(Random(key).randbytes(4 * _MT_WORDS), "<u4")
        generator.set_state(state)


_GENERATORS = {
    "random": _Generator(
        lambda module: module.getstate(),
        lambda module, key: module.seed(4 * key + 1),
        lambda module, state: module.setstate(state),
    ),
    "numpy.random": _Generator(
        lambda module: module.get_state(legacy=False),
        lambda module, key: _seed_numpy(module, 4 * key + 2),
        lambda module, state: module.set_state(state),
    ),
    "torch": _Generator(
        lambda module: module.default_generator.get_state(),
        lambda module, key: _seed_torch(module, 4 * key + 3),
        lambda module, state: module.default_generator.set_state(state),
    ),
}


class Seeding:
    """Seeds the generators, also those of modules that are imported before `end`.

    keep: `end` restores them as they were.
    """

    __slots__ = ("_key", "_saved")

    def __init__(self, key: int, keep: bool) -> None:
        self._key = key
        self._saved: dict[str, Any] | None = {} if keep else None
        for name in _GENERATORS:
            module = sys.modules.get(name)
            if module is None or getattr(module.__spec__, "_initializing", False):
                if self not in sys.meta_path:
                    sys.meta_path.insert(0, self)
            else:
                self._seed(name, module)

    def end(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for name, state in (self._saved or {}).items():
            _GENERATORS[name].restore(sys.modules[name], state)

    def _seed(self, name: str, module: ModuleType) -> None:
        if self._saved is not None:
            self._saved[name] = _GENERATORS[name].save(module)
        _GENERATORS[name].seed(module, self._key)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A finder of modules (sys.meta_path): what the others find, seeded after its import."""
        if name not in _GENERATORS:
            return None
        for finder in [f for f in sys.meta_path if not isinstance(f, Seeding)]:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                self._seed_after(name, spec.loader)
                return spec
        return None

    def _seed_after(self, name: str, loader: Any) -> None:
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            run(module)
            if self in sys.meta_path:  # it has not ended
                self._seed(name, module)

        loader.exec_module = exec_module


_worker: Seeding | None = None  # in a worker process: what seeded its generators last


def record_key() -> int:
    """128 bits of (seed, epoch, record, node), for the record that user code has; else 0."""
    record = _headrace.current_record()
    return record[3] | record[4] << 64 if record is not None else 0


_exclusive = threading.RLock()  # the generators are those of all threads


class seeded:
    """The generators as seeded with `key`, in a `with` block. After it they are as they were
    before; in a worker process, where nobody else uses them, they stay. Threads take turns."""

    __slots__ = ("_key", "_seeding")

    def __init__(self, key: int) -> None:
        self._key = key
        self._seeding: Seeding | None = None

    def __enter__(self) -> None:
        if _worker is not None:
            _seed_worker(self._key)
            return
        _exclusive.acquire()
        try:
            self._seeding = Seeding(self._key, keep=True)
        except BaseException:
            _exclusive.release()
            raise

    def __exit__(self, *error: object) -> None:
        if self._seeding is None:
            return
        try:
            self._seeding.end()
        finally:
            _exclusive.release()


def _seed_worker(key: int) -> None:
    global _worker
    if _worker is not None:
        _worker.end()
    _worker = Seeding(key, keep=False)


def begin_epoch() -> None:
    """In a worker process, at the first record that it gets of an epoch: seeds the generators.

    The record's key differs from that of every record of another worker, epoch, rank, or part of
    a resumed run. A worker that replaces one that died at that record gets other numbers.
    """
    record = _headrace.current_record()
    assert record is not None
    key = record_key() | record[7] << 128
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(key & 0x7FFFFFFFFFFFFFFF)  # other devices
    _seed_worker(key)
