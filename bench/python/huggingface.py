"""A Hugging Face dataset through hr.from_dataset and through PyTorch's DataLoader.

    bench/python/huggingface.py [RECORDS]

Text of about 200 characters, a label, a number and ten ids, saved to disk and mapped, in the default
format, shuffled, in batches of 64 as torch tensors and lists of str. Both loaders run in turns, five
times, in the calling process (no workers, no threads besides). Prints records per second of CPU time,
medians, and the ratio. Checks first that both give the same items.
"""

import pathlib
import random
import statistics
import sys
import tempfile
import time

import datasets
import torch

import headrace as hr


def make(folder, count):
    rng = random.Random(1)
    words = "the quick brown fox jumps over a lazy dog and then sleeps".split()
    columns = {
        "text": [" ".join(rng.choices(words, k=45)) for _ in range(count)],
        "label": [rng.randrange(10) for _ in range(count)],
        "score": [rng.random() for _ in range(count)],
        "ids": [[rng.randrange(50000) for _ in range(10)] for _ in range(count)],
    }
    datasets.Dataset.from_dict(columns).save_to_disk(folder)
    return datasets.load_from_disk(folder)


def collate(items):
    """As default_collate gives it, but that lists of numbers stay together."""
    return {
        "text": [item["text"] for item in items],
        "label": torch.tensor([item["label"] for item in items]),
        "score": torch.tensor([item["score"] for item in items], dtype=torch.float64),
        "ids": torch.tensor([item["ids"] for item in items]),
    }


def cpu_time(loader):
    begin = time.process_time()
    records = sum(len(batch["label"]) for batch in loader)
    return records / (time.process_time() - begin)


def main(count):
    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory() as folder:
        dataset = make(pathlib.Path(folder) / "data", count)
        ours = hr.from_dataset(dataset).shuffle().batch(64).loader(threads=0, output="torch")
        plain = hr.from_dataset(dataset).batch(64).loader(threads=0, output="torch")
        theirs = torch.utils.data.DataLoader(dataset, batch_size=64, shuffle=True, collate_fn=collate)
        for ours_batch, wanted in zip(
            plain, torch.utils.data.DataLoader(dataset, batch_size=64, collate_fn=collate), strict=True
        ):
            for name, value in wanted.items():
                same = list(ours_batch[name]) == value if name == "text" else torch.equal(ours_batch[name], value)
                assert same, name
        rates = {"headrace": [], "DataLoader": []}
        for _ in range(5):
            rates["headrace"].append(cpu_time(ours))
            rates["DataLoader"].append(cpu_time(theirs))
    middle = {name: statistics.median(values) for name, values in rates.items()}
    for name, value in middle.items():
        print(f"{name:12} {value:12,.0f} records per CPU second")
    print(f"ratio        {middle['headrace'] / middle['DataLoader']:12.1f}")


main(int(sys.argv[1]) if len(sys.argv) > 1 else 20000)
