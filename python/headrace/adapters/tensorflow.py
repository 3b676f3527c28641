"""TensorFlow: a pipeline as a tf.data.Dataset, for Keras and others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Unpack

import tensorflow as tf

from ..batch import Ragged
from ..errors import ArgumentError
from ..loader import Loader, LoaderOptions, UnknownLengthError
from ..pipeline import Pipeline
from ..structure import Parts, Structure, join, leaves

if TYPE_CHECKING:
    from ..build import Field


def signature(loader: Loader) -> Any:
    """What batches are, with tf.TensorSpec or tf.RaggedTensorSpec for values; a list is a tuple to tf.data."""
    specs = {field.name: _spec(field) for field in loader.pipeline.fields}
    structure = loader._structure
    return specs if structure is None else join(_tuples(structure), iter([specs[n] for n in leaves(structure)]))


def _tuples(structure: Structure) -> Structure:
    if isinstance(structure, str):
        return structure
    return Parts(
        tuple if structure.kind is list else structure.kind, structure.keys, tuple(map(_tuples, structure.parts))
    )


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
            of a dict of all. A data set of tuples gives tuples anyway.
        options: those of `Pipeline.loader`, for a pipeline.
    """
    if isinstance(source, Pipeline):
        loader = source.loader(**{"output": "numpy", **options})  # type: ignore[arg-type]
    else:
        loader = source
    specs = signature(loader)
    if pairs is not None and not isinstance(specs, dict):
        raise ArgumentError("dataset(): pairs are names of fields, but the items of this data set have none")

    def batches() -> Iterator[Any]:
        for batch in loader:
            values = _value(batch, specs)
            yield values if pairs is None else (values[pairs[0]], values[pairs[1]])

    wanted = specs if pairs is None else (specs[pairs[0]], specs[pairs[1]])
    made = tf.data.Dataset.from_generator(batches, output_signature=wanted)
    try:
        return made.apply(tf.data.experimental.assert_cardinality(len(loader)))
    except UnknownLengthError:
        return made


def _value(value: Any, spec: Any) -> Any:
    if isinstance(spec, dict):
        return {name: _value(value[name], one) for name, one in spec.items()}
    if isinstance(spec, tuple):
        made = list(map(_value, value, spec))
        return spec._make(made) if hasattr(spec, "_make") else tuple(made)
    if isinstance(value, Ragged):
        return tf.RaggedTensor.from_row_splits(value[0], value[1], validate=False)
    return value if not isinstance(value, list) else tf.constant(value, tf.string, (len(value),))
