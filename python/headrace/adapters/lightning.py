"""Lightning: loaders whose position is saved in the checkpoint.

Lightning saves and loads the state of any loader that has one. A plain loader would resume
wrongly in three cases that `Batches` handles. At the end of an epoch Lightning stops before the
loader can report the end, so a state saved there means "next epoch" and not "no batch left". It
does not load the state of a checkpoint at the end of an epoch, but calls `sampler.set_epoch`. And
if the length is unknown, it prefetches one batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Unpack

from ..errors import ArgumentError
from ..loader import Loader, LoaderOptions, UnknownLengthError
from ..pipeline import Pipeline
from ._ranks import state_of_all, state_of_rank

try:
    from lightning.pytorch import LightningDataModule
except ImportError:
    from pytorch_lightning import LightningDataModule  # type: ignore[assignment,unused-ignore]


class Batches:
    """A loader for Lightning's Trainer; each `for` is one epoch.

    Args:
        loader: made with epochs=1, the default.
        same: run epoch 0 each time, for validation.
    """

    batch_sampler = None  # Lightning looks for it in a sampler

    def __init__(self, loader: Loader, *, same: bool = False) -> None:
        self.loader = loader
        self._same = same
        self._resumed = False
        self._wanted: int | None = None  # the epoch to start with
        self._early: dict[str, Any] | None = None  # the state before the prefetched batch
        try:
            len(loader)
            self._ahead = False
        except UnknownLengthError:
            self._ahead = True

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        resumed, self._resumed = self._resumed, False
        wanted, self._wanted = self._wanted, None
        if wanted is not None:
            self.loader.set_epoch(wanted)
        gave = False
        for batch in self._epoch():
            gave = True
            yield batch
        if resumed and not gave:
            yield from self._epoch()

    def _epoch(self) -> Iterator[Any]:
        run = self.loader.epoch(0) if self._same else iter(self.loader)
        while True:
            before = self.loader.state_dict() if self._ahead else None
            try:
                batch = next(run)
            except StopIteration:
                self._early = None
                return
            self._early = before
            yield batch

    @property
    def sampler(self) -> Batches:
        """Where Lightning looks for `set_epoch`."""
        return self

    def set_epoch(self, epoch: int) -> None:
        """Run this epoch in the next `for`; a running loop is not affected."""
        self._wanted = None if self._same else epoch

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch that was trained on."""
        return state_of_all(self.loader, self._early if self._early is not None else self.loader.state_dict())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a state; from one at the end of an epoch with the next epoch."""
        self.loader.load_state_dict(state_of_rank(self.loader, state))
        self._resumed = True
        self._wanted = self._early = None


class DataModule(LightningDataModule):  # type: ignore[misc,unused-ignore]
    """Pipelines for `Trainer.fit(model, DataModule(train, val))`.

    Checkpoints hold the position in the training data, even within an epoch. With several
    ranks each reads its share, in the same number of steps. `eval=True` with
    `train_options={"eval": False}` marks the records that fill up shares of validation data.

    Args:
        train, val, test, predict: pipelines that end in batches; all but train may
            be lists of several.
        options: of `Pipeline.loader`, without epochs; `train_options` for training only.
    """

    def __init__(
        self,
        train: Pipeline | None = None,
        val: Pipeline | Sequence[Pipeline] | None = None,
        test: Pipeline | Sequence[Pipeline] | None = None,
        predict: Pipeline | Sequence[Pipeline] | None = None,
        *,
        train_options: LoaderOptions | None = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        super().__init__()
        if "epochs" in options or "epochs" in (train_options or {}):
            raise ArgumentError(
                "DataModule: epochs are counted by Lightning; give Trainer(max_epochs=)", param="epochs"
            )
        self.train, self.val, self.test, self.predict = train, val, test, predict
        self._options = options
        self._train_options: LoaderOptions = {**options, **(train_options or {})}

    def _batches(self, pipeline: Pipeline, options: LoaderOptions, same: bool) -> Batches:
        given: LoaderOptions = {"output": "torch", **options}
        return Batches(pipeline.loader(**given), same=same)

    def _evaluation(self, pipelines: Pipeline | Sequence[Pipeline] | None) -> Batches | list[Batches]:
        if isinstance(pipelines, Pipeline):
            return self._batches(pipelines, self._options, True)
        return [self._batches(one, self._options, True) for one in pipelines or ()]

    def train_dataloader(self) -> Batches | list[Batches]:
        """A loader of the training data; its order differs from epoch to epoch."""
        if self.train is None:
            return []
        made = self._batches(self.train, self._train_options, False)
        trainer = getattr(self, "trainer", None)
        if trainer is not None:
            made.set_epoch(trainer.fit_loop.epoch_progress.current.processed)
        return made

    def val_dataloader(self) -> Batches | list[Batches]:
        """The same batches in every validation."""
        return self._evaluation(self.val)

    def test_dataloader(self) -> Batches | list[Batches]:
        """As for validation."""
        return self._evaluation(self.test)

    def predict_dataloader(self) -> Batches | list[Batches]:
        """As for validation."""
        return self._evaluation(self.predict)
