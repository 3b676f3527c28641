"""Padding that batches by length leave, and what they cost: batch.bucket beside batch.pad.

    bench/python/buckets.py [TEXT]

The lines of a text file, some shared data or the pages of docs/ unless given, are shuffled and tokenized, a token per
byte, in batches of 32 records, and of at most as many padded elements as those have on average. Prints the part of
each that is padding, and records per second of one thread and per second of CPU, as medians of runs in turns. With
PyTorch: a DataLoader without workers over the same lists in memory, tokenized before, by a batch sampler that collects
batches in the same buckets, and pad_sequence.

Then the same for RANKS ranks that train together: a step takes as long as that of the rank with the most elements.
Prints these, per record, and what part of the ranks' time is spent waiting for that rank.
"""

import base64
import bisect
import pathlib
import random
import statistics
import sys
import tempfile
import time

import headrace as hr

ROUNDS = 7
EPOCHS = 20
SIZE = 32
RANKS = 4
BOUNDARIES = [32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536]


def find_text(folder):
    shared = pathlib.Path("../shared/data/text/wikitext2-valid.txt")
    if len(sys.argv) > 1:
        text = pathlib.Path(sys.argv[1]).read_text()
    elif shared.exists():
        text = shared.read_text()
    else:
        text = "\n".join(page.read_text() for page in sorted(pathlib.Path("docs").rglob("*.md")))
    path = folder / "lines.txt"
    path.write_text("".join(line + "\n" for line in text.split("\n") if line.strip()))
    return path


def headrace(pipe):
    """Returns (records, elements, elements that are padding) of a run."""
    records = elements = used = 0
    for batch in pipe.loader(epochs=EPOCHS, threads=1, output="numpy"):
        records += batch.records
        elements += batch.tokens.size
        used += int(batch.tokens_length.sum())
    return records, elements, elements - used


def samples(lengths, rng):
    """The same buckets over shuffled numbers of records."""
    order = list(range(len(lengths)))
    rng.shuffle(order)
    held = [[] for _ in range(len(BOUNDARIES) + 1)]
    for i in order:
        records = held[bisect.bisect_right(BOUNDARIES, lengths[i])]
        records.append(i)
        if len(records) == SIZE:
            yield records[:]
            records.clear()
    yield from (records for records in held if records)


def torch_loader(lists):
    import torch
    from torch.nn.utils.rnn import pad_sequence

    lengths = [len(item) for item in lists]

    class Sampler:
        def __iter__(self):
            return samples(lengths, random.Random(1))

    def collate(items):
        return pad_sequence(items, batch_first=True), torch.tensor([len(item) for item in items])

    tensors = [torch.tensor(list(item), dtype=torch.int32) for item in lists]
    return torch.utils.data.DataLoader(tensors, batch_sampler=Sampler(), collate_fn=collate)


def by_torch(loader):
    records = elements = used = 0
    for _ in range(EPOCHS):
        for tokens, lengths in loader:
            records += len(tokens)
            elements += tokens.numel()
            used += int(lengths.sum())
    return records, elements, elements - used


def elements_of_steps(pipe):
    """Elements of each rank's batch, for each step, and how many records there were."""
    loaders = [pipe.loader(epochs=EPOCHS // 4, seed=1, output="numpy", shard=(rank, RANKS), even="none") for rank in range(RANKS)]
    steps, records = [], 0
    for batches in zip(*loaders):
        steps.append([batch.tokens.size for batch in batches])
        records += sum(batch.records for batch in batches)
    return steps, records


def print_ranks(ways):
    print(f"\n{f'{RANKS} ranks':32}{'per record':>12}{'ratio':>8}{'waiting':>10}")
    base = None
    for way, pipe in ways.items():
        steps, records = elements_of_steps(pipe)
        longest = sum(max(step) for step in steps)
        base = base or longest / records
        waiting = 1 - sum(map(sum, steps)) / RANKS / longest
        print(f"{way:32}{longest / records:12.1f}{longest / records / base:8.2f}{100 * waiting:9.1f}%")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path, ranks = find_text(folder), folder / "bytes.tiktoken"
        ranks.write_text("".join(f"{base64.b64encode(bytes([i])).decode()} {i}\n" for i in range(256)))
        ids = hr.lines(path).shuffle().tokenize_bpe(ranks=ranks)
        padded = ids.padded_batch(SIZE, lengths="tokens")
        records, elements, _ = headrace(padded)
        most = max(elements // (records // SIZE), max(map(len, path.read_bytes().splitlines())))
        by_size = ids.bucketed_batch(BOUNDARIES, SIZE, lengths="tokens")
        by_elements = ids.bucketed_batch(BOUNDARIES, elements=most, lengths="tokens")
        ways = {
            f"batch.pad, size: {SIZE}": lambda: headrace(padded),
            f"batch.bucket, size: {SIZE}": lambda: headrace(by_size),
            f"batch.bucket, elements: {most}": lambda: headrace(by_elements),
        }
        try:
            loader = torch_loader(path.read_bytes().splitlines())
            ways[f"DataLoader, size: {SIZE}"] = lambda: by_torch(loader)
        except ImportError:
            print("no PyTorch: without its DataLoader")
        found = {way: [] for way in ways}
        parts = {}
        for _ in range(ROUNDS):
            for way, run in ways.items():
                start, cpu = time.perf_counter(), time.process_time()
                records, elements, padding = run()
                found[way].append((records / (time.perf_counter() - start), records / (time.process_time() - cpu)))
                parts[way] = 100 * padding / elements
        speeds = {way: [statistics.median(part) for part in zip(*runs, strict=True)] for way, runs in found.items()}
        base = next(iter(speeds.values()))
        print(f"{'':32}{'padding':>9}{'records/s':>12}{'ratio':>8}{'per s of CPU':>14}{'ratio':>8}")
        for way, (wall, cpu) in speeds.items():
            print(f"{way:32}{parts[way]:8.1f}%{wall:12.0f}{wall / base[0]:8.2f}{cpu:14.0f}{cpu / base[1]:8.2f}")
        together = ids.bucketed_batch(BOUNDARIES, SIZE, lengths="tokens", coordinated=True)
        print_ranks({f"batch.pad, size: {SIZE}": padded, "batch.bucket": by_size, "batch.bucket, coordinated": together})


if __name__ == "__main__":
    main()
