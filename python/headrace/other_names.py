"""Names that people look for on a Pipeline, and what they are called here."""

from __future__ import annotations

from collections.abc import Iterable

from ._check import nearest

_SAID = {
    "loaders read ahead by themselves, and loader(memory=) bounds it": "prefetch prefetch_to_device",
    "hr.zip(a, b)": "zip zip_with",
    "hr.concat(a, b)": "concat concatenate chain",
    "hr.interleave(pipes)": "interleave",
    "hr.mix(pipes, weights=...)": "mix sample_from_datasets choose_from_datasets",
    "hr.join(a, b, on=...)": "join",
    "hr.split(pipe, [0.8, 0.2])": "split random_split train_test_split",
    "map_batch(function), after batch(size)": "collate collate_fn",
    "batch(size)": "batched",
    "batch(size, ragged=True)": "ragged_batch",
    "bucketed_batch(boundaries, size)": "bucket bucket_by_sequence_length bucketbatch group_by_window dynbatch",
    'loader(output="numpy")': "as_numpy_iterator as_numpy numpy with_format set_format",
    'for batch in pipe.loader(output="torch"): ...': "to_iter_dataset as_iterator iterator to_torch",
    "map(function)": "map_dict map_tuple random_map starmap transform",
    "flat_map(function)": "flatmap flatten",
    "filter(function), or where(expression)": "reject rejection_resample",
    "select(fields)": "to_tuple extract_keys select_columns select_fields",
    "drop(fields)": "remove_columns drop_columns",
    "rename({old: new})": "rename_column rename_columns rename_keys",
    "loader(seed=...)": "seed set_seed set_epoch",
    "loader(shard=...), which takes torch.distributed's rank by itself": "sharding_filter split_by_node",
    'loader(on_error="skip")': "ignore_errors",
    "cache(folder)": "snapshot persist",
    "loader(threads=...)": "num_workers",
    "take(count)": "head limit",
    "record_count": "len length cardinality",
    'layout("chw"); loaders give tensors': "to_tensor totensor",
}
_WORDS = {name: words for words, names in _SAID.items() for name in names.split()}


def meant(name: str, methods: Iterable[str]) -> str:
    """What says the same as `name`, or the methods that are like it, as words after it; "" if nothing is."""
    if name in _WORDS:
        return f": {_WORDS[name]}"
    methods = [method for method in methods if not method.startswith("_")]
    parts = {part for part in name.split("_") if part != "random"}
    alike = [method for method in methods if parts & set(method.split("_"))]
    alike.sort(key=lambda method: -len(parts & set(method.split("_"))))
    return f"; there is {', '.join(alike[:12])}" if alike else nearest(name, methods)
