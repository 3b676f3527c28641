"""Steps of a pipeline applied to one value after the other, in the caller's thread."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from . import _headrace, build
from ._numpy import np
from .dataset import source_of
from .errors import DtypeError, translated
from .fieldspec import Spec
from .pipeline import Pipeline

_COUNT = 1 << 40  # records that a run can make: no caller gets there
_KINDS_MAX = 8  # runs of one thread


class _Kind(NamedTuple):
    """What kind of value steps are applied to: encoded bytes, or an image of a dtype and some channels."""

    dtype: str
    channels: int = 0


class _Given:
    """A data set whose items are the value that the caller gives."""

    def __init__(self, kind: _Kind) -> None:
        self._kind = kind
        self.value: Any = None

    def __len__(self) -> int:
        return _COUNT

    def __getitem__(self, at: int) -> Any:
        return self.value

    def pipeline(self) -> Pipeline:
        """Of records with the field "image"."""
        kind = self._kind
        if kind.dtype == "bytes":
            return source_of(self, "vision", ("data",), {"data": Spec("bytes")}, "inline", "", False, None).decode()
        spec = Spec(kind.dtype, ("height", "width", kind.channels))
        made = source_of(self, "vision", ("image",), {"image": spec}, "inline", "", False, None)
        return made.kind("image", "image")


class _Run:
    """The steps on values of one kind."""

    def __init__(self, kind: _Kind, steps: Callable[[Pipeline], Pipeline]) -> None:
        self._given = _Given(kind)
        self._built = build.build(steps(self._given.pipeline())._node)
        options = {"variant": "inline", "epochs": 0, "rank": 0, "world": 1}
        with translated():
            plan = json.loads(self._built.graph.plan(options, True))
            for stage in plan["stages"]:  # so that no record is begun before its value is given
                stage["chunk_records"] = stage["memory"]["block_records"] = 1
            self._iter = _headrace.Iter(self._built.graph, {**options, "plan": json.dumps(plan)})

    def __call__(self, value: Any, seed: int) -> _headrace.Field:
        self._given.value = value
        try:
            with translated():
                self._iter.seed(seed)
                got = self._iter.next()
        finally:
            self._given.value = None
        assert got is not None
        return got.field("image")


class OneRecord:
    """Applies steps to one image after the other. Any thread may call it.

    steps: takes a pipeline with a field "image" and returns it with the steps.
    """

    def __init__(self, steps: Callable[[Pipeline], Pipeline]) -> None:
        self._steps = steps
        self._local = threading.local()

    def __call__(self, image: Any, seed: int) -> _headrace.Field:
        """The image after the steps, in a batch of one, with the numbers that record 0 of a run with this seed
        draws.

        Args:
            image: encoded bytes; or `[height, width]` or `[height, width, channels]` as a NumPy array or a
                PIL image; or `[channels, height, width]` as a torch tensor.
        """
        value = _plain(image)
        encoded = isinstance(value, bytes)
        kind = _Kind("bytes") if encoded else _Kind(value.dtype.name, value.shape[2])
        runs = self._runs()
        run = runs.pop(kind, None) or _Run(kind, self._steps)
        field = run(value, seed)
        runs[kind] = run  # only then: an error ends a run
        return field

    def _runs(self) -> dict[_Kind, _Run]:
        """Those of this thread."""
        local = self._local
        if getattr(local, "process", None) != os.getpid() or len(local.runs) > _KINDS_MAX:
            local.process, local.runs = os.getpid(), {}
        runs: dict[_Kind, _Run] = local.runs
        return runs


def _of_pil(image: Any) -> Any:
    if image.mode == "F" or image.mode.startswith("I"):
        raise DtypeError(
            f"a PIL image of mode {image.mode} has levels beyond 0 to 255, which Pillow would cut off: give an array "
            "of your range, such as (numpy.asarray(image) / 65535).astype(numpy.float32)"
        )
    same = image.mode in ("L", "RGB", "RGBA")
    return np.asarray(image if same else image.convert("L" if image.mode == "1" else "RGB"))


def _plain(image: Any) -> Any:
    """Bytes, or a NumPy array [height, width, channels]."""
    if isinstance(image, (bytes, bytearray, memoryview)):
        return bytes(image)
    if hasattr(image, "getbands") and hasattr(image, "convert"):  # a PIL image
        array = _of_pil(image)
    elif hasattr(image, "permute") and hasattr(image, "numpy"):  # a torch tensor
        if image.ndim not in (2, 3):
            raise DtypeError(f"an image as a tensor is [channels, height, width], not {list(image.shape)}")
        array = image.detach().cpu().numpy()
        array = array if array.ndim == 2 else np.moveaxis(array, 0, 2)
    elif isinstance(image, np.ndarray):
        array = image
    else:
        read = "; vision.read(path) gives the bytes of a file" if isinstance(image, (str, os.PathLike)) else ""
        raise DtypeError(
            "an image is needed: encoded bytes, a PIL image, a NumPy array or a torch tensor, "
            f"not {type(image).__name__}{read}"
        )
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or array.dtype.name not in ("uint8", "float32") or not 1 <= array.shape[2] <= 4:
        raise DtypeError(
            "an image is [height, width, 1 to 4 channels] of uint8 or float32 (a tensor [channels, height, width]), "
            f"not {array.dtype.name} {list(array.shape)}"
        )
    return np.ascontiguousarray(array)
