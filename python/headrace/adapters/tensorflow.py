"""TensorFlow: a pipeline as a tf.data.Dataset, for Keras and others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Unpack

import tensorflow as tf

from ..loader import Loader, LoaderOptions, UnknownLengthError
from ..pipeline import Pipeline

if TYPE_CHECKING:
    from ..build import Field


def signature(pipeline: Pipeline) -> dict[str, Any]:
    """{field: tf.TensorSpec or tf.RaggedTensorSpec} of the pipeline's batches."""
    return {field.name: _spec(field) for field in pipeline.fields}


def _spec(field: Field) -> Any:
    if field.dtype in ("bytes", "text"):
        return tf.TensorSpec((None,), tf.string)
    shape = [size if isinstance(size, int) else None for size in field.shape]
    if field.ragged:
        return tf.RaggedTensorSpec([None, None, *shape[2:]], field.dtype, ragged_rank=1, row_splits_dtype=tf.int64)
    return tf.TensorSpec([None, *shape[1:]], field.dtype)


def dataset(
    source: Pipeline | Loader, *, pairs: tuple[str, str] | None = None, **options: Unpack[LoaderOptions]
) -> Any:
    """The batches of a pipeline, or of a loader of it, as a tf.data.Dataset.

    Each iteration of the data set runs the loader's next epochs. tf.data copies arrays into
    its own memory and reads ahead of the training: to resume, save the number of the epoch and
    call `set_epoch` of your own loader.

    Args:
        source: a pipeline, or a loader with output="numpy".
        pairs: return (features, target) from these two fields, as Keras' fit expects, instead
            of a dict of all.
        options: those of `Pipeline.loader`, for a pipeline.
    """
    if isinstance(source, Pipeline):
        loader = source.loader(**{"output": "numpy", **options})  # type: ignore[arg-type]
    else:
        loader = source
    specs = signature(loader.pipeline)

    def batches() -> Iterator[Any]:
        for batch in loader:
            values = {name: _value(value, specs[name]) for name, value in batch.items()}
            yield values if pairs is None else (values[pairs[0]], values[pairs[1]])

    wanted = specs if pairs is None else (specs[pairs[0]], specs[pairs[1]])
    made = tf.data.Dataset.from_generator(batches, output_signature=wanted)
    try:
        return made.apply(tf.data.experimental.assert_cardinality(len(loader)))
    except UnknownLengthError:
        return made


def _value(value: Any, spec: Any) -> Any:
    if isinstance(value, tuple):
        return tf.RaggedTensor.from_row_splits(value[0], value[1], validate=False)
    return value if not isinstance(value, list) else tf.constant(value, tf.string, (len(value),))
