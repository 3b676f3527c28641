"""JAX: batches as global arrays on a mesh of devices.

On one device `pipeline.loader(output="jax")` is enough. With several, each process reads its
share, and the arrays of all processes form one array, sharded along its first dimension.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Unpack

import jax

from ..batch import Batch
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


def on_devices(batches: Iterable[Batch], sharding: Any) -> Iterator[dict[str, jax.Array]]:
    """Each batch as a dict of arrays with this sharding, such as NamedSharding(mesh, P("data")).

        train = loader(pipeline, epochs=90)
        for batch in on_devices(train, sharding): ...       # train.state_dict() for the checkpoint

    Copies to devices are asynchronous. Byte strings and ragged fields cannot be on a device;
    drop them by `select` before the batch.
    """
    make: Any = jax.make_array_from_process_local_data
    for batch in batches:
        made: dict[str, jax.Array] = {}
        for name, value in batch.items():
            if isinstance(value, (list, tuple)):
                raise ShapeError(
                    f"field '{name}' is ragged or byte strings; devices take arrays. Drop it with .drop({name!r}), "
                    "or pad it with .padded_batch",
                    param=name,
                )
            made[name] = make(sharding, value)
        yield made
