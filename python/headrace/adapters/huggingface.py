"""Hugging Face Trainer: pipelines instead of datasets.

    from headrace.adapters.huggingface import Trainer
    Trainer(model, args, train_dataset=train, eval_dataset=test).train()

Pipelines make batches, so the batch sizes, samplers, workers and collators of TrainingArguments
are ignored. The position in the training data is saved in trainer_state.json. On resume the
Trainer skips the batches of the epoch that it has already seen; it receives placeholders for
them, so that nothing is read twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch.utils.data import IterableDataset
from transformers import Trainer as _Trainer
from transformers import TrainerCallback
from transformers.trainer_callback import ExportableState

from ..loader import Loader, LoaderOptions, UnknownLengthError
from ..pipeline import Pipeline
from ._ranks import state_of_all, state_of_rank

# Without the frameworks their classes are Any to mypy, hence the ignores.


class Records(IterableDataset):  # type: ignore[misc,type-arg,no-untyped-call,unused-ignore]
    """The data set as the Trainer sees it: the length in records, items in batches."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[Any]:
        return iter(self._batches)

    def __len__(self) -> int:
        records = self._batches.loader.pipeline.record_count
        if records is None:
            raise UnknownLengthError("the number of records is not known before the run")
        return records


class Batches:
    """A loader with the attributes that Trainer and Accelerate expect of a DataLoader."""

    # Attributes that skip_first_batches passes to a torch DataLoader over `dataset`.
    batch_size = None  # the data set batches
    drop_last = False
    num_workers = 0
    prefetch_factor = None

    def __init__(self, loader: Loader) -> None:
        self.loader = loader
        self.dataset = Records(self)
        self._given = 0  # batches of the current epoch
        self._missed = 0  # those that an earlier run has trained on
        self._total = 0  # batches of the training
        self._before = 0  # epochs of the training that Trainer does not count
        self._counted = loader.pipeline.record_count is not None

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        missed, self._missed = self._missed, 0
        self._given = 0
        for _ in range(missed):
            yield {}
        self._given = missed if self._counted else 0
        for batch in self.loader:
            self._given += 1
            self._total += 1
            yield batch

    def set_epoch(self, epoch: int) -> None:
        """Begin with this epoch."""
        self._missed = 0
        self.loader.set_epoch(self._before + epoch)

    def state_dict(self) -> dict[str, Any]:
        """The loader's state, and how many batches of the epoch are done."""
        loader = state_of_all(self.loader, self.loader.state_dict())
        return {"loader": loader, "batches": self._given, "total": self._total}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a state.

        Without a length, Trainer treats all steps as one epoch: it skips as many batches as
        there were in total, and counts epochs from 0 again.
        """
        place = state_of_rank(self.loader, state["loader"])
        self.loader.load_state_dict(place)
        self._total = int(state["total"])
        self._missed = int(state["batches"]) if self._counted else self._total
        self._before = 0 if self._counted else int(place["at"])


def batches(pipeline: Pipeline, **options: Any) -> Batches:
    """For `get_train_dataloader` of your own Trainer to return."""
    given: LoaderOptions = {"output": "torch", **options}  # type: ignore[typeddict-item]
    return Batches(pipeline.loader(**given))


class KeepsPlace(TrainerCallback, ExportableState):  # type: ignore[misc,type-arg,no-untyped-call,unused-ignore]
    """Saves the position in the training data with the Trainer's state, and restores it."""

    def __init__(self) -> None:
        self._batches: Batches | None = None
        self._gathered: dict[str, Any] | None = None

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Gathers the states of all ranks if they differ; Trainer only asks rank 0."""
        if control.should_save and self._batches is not None and self._batches.loader.ranks_differ:
            self._gathered = self._batches.state_dict()

    def state(self) -> dict[str, Any]:
        """The state that the Trainer writes to trainer_state.json."""
        found = self._batches
        if found is None or found.loader.ranks_differ:
            place = self._gathered
        else:
            place = found.state_dict()
        return {"args": {}, "attributes": {"place": place}}

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Restores the position if the run resumes."""
        found = kwargs.get("train_dataloader")
        self._batches = found if isinstance(found, Batches) else None
        saved = state.stateful_callbacks.get(type(self).__name__)
        if self._batches is None or state.global_step == 0:
            return
        place = saved["attributes"].get("place") if isinstance(saved, dict) else None
        if place is not None:
            self._batches.load_state_dict(place)
        else:  # a checkpoint without a state: the Trainer reads and drops the batches of this epoch
            self._batches.set_epoch(int(state.epoch))


class _Length:
    """Replaces a pipeline while Trainer.__init__ inspects the data set."""

    def __init__(self, records: int) -> None:
        self._records = records

    def __len__(self) -> int:
        return self._records


class FromPipelines:
    """Mixin: `class MyTrainer(FromPipelines, Seq2SeqTrainer)` takes pipelines as data sets.

    `loader_options` are those of `Pipeline.loader`, such as seed and threads.
    """

    train_dataset: Any
    eval_dataset: Any

    def __init__(self, *args: Any, loader_options: LoaderOptions | None = None, **kwargs: Any) -> None:
        train = kwargs.get("train_dataset")
        if isinstance(train, Pipeline) and train.record_count is not None:
            kwargs["train_dataset"] = _Length(train.record_count)
        self._loader_options: LoaderOptions = loader_options or {}
        super().__init__(*args, **kwargs)
        if isinstance(train, Pipeline):
            self.train_dataset = train
            self.add_callback(KeepsPlace())  # type: ignore[attr-defined]

    def get_train_dataloader(self) -> Any:
        """Batches of the training pipeline."""
        if not isinstance(self.train_dataset, Pipeline):
            return super().get_train_dataloader()  # type: ignore[misc]
        args = self.__dict__["args"]
        seed = args.data_seed if args.data_seed is not None else args.seed
        return batches(self.train_dataset, **{"seed": seed, **self._loader_options})

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        """Batches of an evaluation pipeline, the same each time."""
        found = eval_dataset if eval_dataset is not None else self.eval_dataset
        if isinstance(found, str):
            found = self.eval_dataset[found]
        if not isinstance(found, Pipeline):
            return super().get_eval_dataloader(eval_dataset)  # type: ignore[misc]
        return batches(found, **self._loader_options)

    def get_test_dataloader(self, test_dataset: Any) -> Any:
        """As for evaluation."""
        if not isinstance(test_dataset, Pipeline):
            return super().get_test_dataloader(test_dataset)  # type: ignore[misc]
        return batches(test_dataset, **self._loader_options)


class Trainer(FromPipelines, _Trainer):  # type: ignore[misc,type-arg,no-untyped-call,unused-ignore]
    """transformers.Trainer that takes pipelines as `train_dataset` and `eval_dataset`."""
