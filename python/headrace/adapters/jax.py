"""JAX: batches as global arrays on a mesh of devices.

On one device `pipeline.loader(output="jax")` is enough. With several, each process reads its
share, and the arrays of all processes form one array, sharded along its first dimension.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Unpack

import jax

from ..batch import Ragged
from ..errors import ShapeError
from ..loader import Loader, LoaderOptions
from ..pipeline import Pipeline


def loader(pipeline: Pipeline, **options: Unpack[LoaderOptions]) -> Loader:
    """A loader of this process's share; rank and world are those of JAX, unless `shard` is given.

    All processes make the same number of steps, unless `even` is given. The batch size is that
    of one process.
    """
    given: LoaderOptions = {"output": "numpy", "shard": (jax.process_index(), jax.process_count()), **options}
    return pipeline.loader(**given)


def on_devices(batches: Iterable[Any], sharding: Any) -> Iterator[Any]:
    """Each batch as a dict of arrays, or what the items of the data set are, with this sharding, such as
    NamedSharding(mesh, P("data")).

        train = loader(pipeline, epochs=90)
        for batch in on_devices(train, sharding): ...       # train.state_dict() for the checkpoint

    Copies to devices are asynchronous. Byte strings and ragged fields cannot be on a device;
    leave them out before the batch.
    """
    make: Any = jax.make_array_from_process_local_data

    def placed(value: Any, name: str) -> Any:
        if isinstance(value, Mapping):
            return {key: placed(part, str(key)) for key, part in value.items()}
        if not isinstance(value, (list, tuple)):
            return make(sharding, value)
        if isinstance(value, Ragged) or all(isinstance(part, (str, bytes, list)) for part in value):
            raise ShapeError(
                f"'{name}' is ragged or byte strings; devices take arrays. Leave it out by .drop or .map before "
                "the batch, or pad it with .padded_batch",
                param=name,
            )
        parts = [placed(part, f"{name}[{at}]") for at, part in enumerate(value)]
        return value._make(parts) if hasattr(value, "_make") else type(value)(parts)

    for batch in batches:
        yield placed(batch, "batch")
