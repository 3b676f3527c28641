"""Transforms made of others, and functions among them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError, UnsupportedError
from ..pipeline import Pipeline
from .transform import Transform, tensor

_ORDERED_MAX = 4  # of RandomOrder in a pipeline, which has a branch for each of the 24 orders


@dataclass(eq=False)
class Lambda(Transform):
    """A function of yours, which is called with the tensor."""

    lambd: Callable[[Any], Any]

    def __post_init__(self) -> None:
        if not callable(self.lambd):
            raise ArgumentError(f"Lambda(): {self.lambd!r:.80} is not a function", param="lambd")

    def _calls(self) -> bool:
        return True

    def _of_image(self, image: Any) -> Any:
        return self.lambd(tensor(image))

    def _steps(self, p: Pipeline) -> Pipeline:
        name = getattr(self.lambd, "__name__", type(self.lambd).__name__)
        raise UnsupportedError(
            f"{name} is a function of yours on tensors; in a pipeline it is a step of its own, on arrays: "
            'pipeline.map(function, fields="image")'
        )


@dataclass(eq=False)
class _Listed(Transform):
    """Made of several transforms. With functions among them, `_mixed` calls them one by one and torch's generator is
    asked here; without, operators do all of it."""

    transforms: Iterable[Any]

    def __post_init__(self) -> None:
        name, given = type(self).__name__, self.transforms
        if isinstance(given, Iterable) and not isinstance(given, (str, bytes, Sequence)):
            self.transforms = given = list(given)  # of torch.nn.ModuleList and Sequential, say
        if isinstance(given, (str, bytes)) or not isinstance(given, Sequence) or not given:
            raise ArgumentError(f"{name}(): a list of transforms is needed, not {given!r:.60}", param="transforms")
        wrong = next((one for one in given if not callable(one)), None)
        if wrong is not None:
            raise ArgumentError(
                f"{name}(): {wrong!r:.80} is neither a transform of headrace.vision nor a function", param="transforms"
            )
        self._all = [one if isinstance(one, Transform) else Lambda(one) for one in given]
        self._has_functions = any(one._calls() for one in self._all)
        if not self._has_functions:
            super().__post_init__()

    def _calls(self) -> bool:
        return self._has_functions

    def _of_image(self, image: Any) -> Any:
        return self._mixed(image) if self._has_functions else super()._of_image(image)

    def _mixed(self, image: Any) -> Any:
        raise NotImplementedError


class Compose(_Listed):
    """The transforms, one after the other. Functions of yours may be among them; they are called with the tensor."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._parts: list[Transform] = []  # those of headrace.vision that follow one another are one
        if self._has_functions:
            for calls, run in itertools.groupby(self._all, lambda one: one._calls()):
                part = list(run)
                self._parts += part if calls else [Compose(part)]

    def _mixed(self, image: Any) -> Any:
        for part in self._parts:
            image = part(image)
        return image

    def _steps(self, p: Pipeline) -> Pipeline:
        for one in self._all:
            p = one(p)
        return p


@dataclass(eq=False)
class RandomApply(_Listed):
    """All of the transforms with probability `p`, or none."""

    p: float = 0.5

    def __post_init__(self) -> None:
        self._inner = Compose(self.transforms) if isinstance(self.transforms, Iterable) else None
        super().__post_init__()

    def _mixed(self, image: Any) -> Any:
        import torch

        return self._inner(image) if float(torch.rand(())) < self.p else tensor(image)

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.apply(self._inner, p=self.p)


@dataclass(eq=False)
class RandomChoice(_Listed):
    """One of the transforms; `p`: their weights."""

    p: Sequence[float] | None = None

    def _mixed(self, image: Any) -> Any:
        import torch

        weights = torch.tensor(self.p or [1] * len(self._all), dtype=torch.float32)
        return self._all[int(torch.multinomial(weights, 1))](image)

    def _steps(self, p: Pipeline) -> Pipeline:
        return p.one_of(self._all, weights=self.p)


class RandomOrder(_Listed):
    """The transforms in a random order."""

    def _of_image(self, image: Any) -> Any:
        import torch

        for at in torch.randperm(len(self._all)).tolist():
            image = self._all[at](image)
        return image

    def _steps(self, p: Pipeline) -> Pipeline:
        if len(self._all) > _ORDERED_MAX:
            raise UnsupportedError(
                f"RandomOrder of {len(self._all)} transforms has too many orders for a pipeline, which takes "
                f"{_ORDERED_MAX}",
                param="transforms",
            )
        return p.one_of([Compose(order) for order in itertools.permutations(self._all)])
