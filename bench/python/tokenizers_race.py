"""Part of make bench B=tokenize: the Python package beside gigatoken, tiktoken and sentencepiece, if installed.

All encode the same text with GPT-2's vocabulary in one process, in turns. CPU time of the process: on a machine with
other load it is the more stable. Cold is the first sight of the text by a new tokenizer; warm rows take it repeated to
50 MB. The pipeline is lines of a file to ids to rows of 1024 ids in batches of 64: ours a graph with best fit, in the
thread of the loop, gigatoken's the shortest that NumPy allows, which cuts documents at the ends of rows.
SentencePiece's models are trained by its package on the text; its ids are lists.

    tokenizers_race.py FOLDER [ROUNDS]      FOLDER has text/ and tokenizer/
"""

from __future__ import annotations

import itertools
import json
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import headrace as hr
import numpy as np

FOLDER = pathlib.Path(sys.argv[1])
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 7
ENCODER, MERGES = FOLDER / "tokenizer/gpt2-encoder.json", FOLDER / "tokenizer/gpt2-vocab.bpe"
TEXT = "".join((FOLDER / f"text/wikitext2-{part}.txt").read_text(encoding="utf-8") for part in ("valid", "test"))
MIB = len(TEXT.encode()) / 2**20
LINES = TEXT.splitlines(keepends=True)
PASSES = 22  # over the text in a warm sample, 50 MB
LENGTH, BATCH = 1024, 64
LINES_AT_ONCE = 8192  # that gigatoken's pipeline encodes in one call
CLAIMS = {  # least ratios to gigatoken
    "cold": 1.3,
    "warm": 1.3,
    "lines, encode": 1.3,
    "lines, encode_batch": 1.2,
    "lines to packed batches": 1.3,
}


def open_gigatoken() -> Any:
    import gigatoken

    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    vocab, merges = json.loads(ENCODER.read_text()), MERGES.read_text(encoding="utf-8").split("\n")[1:]
    model = {"type": "BPE", "vocab": vocab, "merges": [line for line in merges if line]}
    text = json.dumps({"version": "1.0", "pre_tokenizer": level, "decoder": level, "model": model, "added_tokens": []})
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(text)
        file.flush()
        return gigatoken.Tokenizer(file.name)


def open_tiktoken() -> Any:
    import tiktoken

    letters = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in letters]
    byte_of = {chr(b): b for b in letters} | {chr(256 + i): b for i, b in enumerate(others)}
    ranks = {
        bytes(byte_of[c] for c in token): i
        for token, i in json.loads(ENCODER.read_text()).items()
        if token != "<|endoftext|>"
    }
    pattern = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
    return tiktoken.Encoding("gpt2", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


def measure(call: Callable[[], Any], mib: float) -> float:
    """MiB per second of CPU."""
    start = time.process_time()
    call()
    return mib / (time.process_time() - start)


def packing_loader(path: str) -> Any:
    """The lines of a file in packed batches; it is opened here, as the tokenizer of gigatoken's is."""
    graph = f"""headrace: 1
pipeline:
  - source.lines: {{path: '{path}'}}
  - text.tokenize_bpe: {{encoder: '{ENCODER}', merges: '{MERGES}'}}
  - tokens.pack: {{length: {LENGTH}}}
  - batch.stack: {{size: {BATCH}}}
"""
    return hr.from_yaml(graph).loader(threads=0)


def pack_gigatoken(path: str, tokenizer: Any) -> int:
    """The same batches, but where a row is full, the ids of a line continue in the next one."""
    batches, rest = 0, np.empty(0, np.int32)
    with open(path, encoding="utf-8") as file:
        while lines := list(itertools.islice(file, LINES_AT_ONCE)):
            ids = tokenizer.encode_batch(lines, parallel=False).layout.content.data
            rest = np.concatenate([rest, ids.astype(np.int32)])
            full = len(rest) // (LENGTH * BATCH)
            for batch in np.split(rest[: full * LENGTH * BATCH], full) if full else []:
                batch.reshape(BATCH, LENGTH)
            batches, rest = batches + full, rest[full * LENGTH * BATCH :]
    return batches


def run(
    figures: dict[str, list[float]], name: str, make: Callable[[], Any], encode: str, batch: str, lines_path: str
) -> None:
    def add(row: str, value: float) -> None:
        figures.setdefault(f"{name}, {row}", []).append(value)

    tokenizer = make()
    one, many = getattr(tokenizer, encode), getattr(tokenizer, batch)
    one("a")
    add("cold", measure(lambda: one(TEXT), MIB))
    if name == "tiktoken":
        return
    more = {"threads": 1} if name == "headrace" else {"parallel": False}
    add("warm", measure(lambda: [one(TEXT) is None for _ in range(PASSES)], MIB * PASSES))
    add("lines, encode_batch", measure(lambda: [many(LINES, **more) is None for _ in range(PASSES)], MIB * PASSES))
    add("lines, encode", measure(lambda: [one(line) is None for line in LINES], MIB))
    if name == "headrace":
        loader = packing_loader(lines_path)
        pack = lambda: sum(1 for _ in loader)  # noqa: E731
    else:
        pack = lambda: pack_gigatoken(lines_path, tokenizer)  # noqa: E731
    add("lines to packed batches", measure(pack, MIB * PASSES))


def open_pieces(folder: str) -> dict[str, tuple[Any, Any]]:
    """Our tokenizer and sentencepiece's for a model of each type."""
    import sentencepiece as spm

    made = {}
    for kind in ("unigram", "bpe"):
        prefix = f"{folder}/{kind}"
        spm.SentencePieceTrainer.train(
            input=str(FOLDER / "text/wikitext2-valid.txt"),
            model_prefix=prefix,
            vocab_size=7000,
            model_type=kind,
            minloglevel=2,
        )
        path = f"{prefix}.model"
        made[kind] = hr.Tokenizer.from_sentencepiece(path), spm.SentencePieceProcessor(model_file=path)
    return made


def race_pieces(rounds: int) -> None:
    lines = [line for line in LINES if line.strip()]
    with tempfile.TemporaryDirectory() as folder:
        try:
            pairs = open_pieces(folder)
        except ImportError:
            print("sentencepiece is not installed")
            return
    print("million ids per second of CPU time, median; ratios within rounds")
    for kind, (ours, other) in pairs.items():
        ids = sum(len(ours.encode(line)) for line in lines) / 1e6
        assert all(ours.encode(line).tolist() == other.encode(line) for line in lines)
        calls = [
            lambda one=ours: [one.encode(line) is None for line in lines],
            lambda one=other: [one.encode(line) is None for line in lines],
        ]
        figures = [[measure(call, ids) for call in calls] for _ in range(rounds)]
        ratio = statistics.median(a / b for a, b in figures)
        for name, column in zip(("headrace", "sentencepiece"), zip(*figures, strict=True), strict=True):
            print(
                f"{name + ', ' + kind:32}{statistics.median(column):9.2f}{'' if name != 'headrace' else f'{ratio:26.2f}'}"
            )


def main() -> None:
    figures: dict[str, list[float]] = {}
    contenders: list[tuple[str, Callable[[], Any], str, str]] = [
        ("headrace", lambda: hr.Tokenizer.from_gpt2(ENCODER, MERGES), "encode", "encode_batch"),
        ("gigatoken", open_gigatoken, "encode", "encode_batch"),
        ("tiktoken", open_tiktoken, "encode_ordinary", "encode_ordinary_batch"),
    ]
    for name, make, *_ in contenders[1:]:
        try:
            make()
        except ImportError:
            print(f"{name} is not installed")
            contenders = [c for c in contenders if c[0] != name]
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as lines:
        lines.write(TEXT * PASSES)
        lines.flush()
        for _ in range(ROUNDS):
            for contender in contenders:
                run(figures, *contender, lines.name)
    print(f"MiB per second of CPU time, median of {ROUNDS} rounds; ratios of headrace within rounds")
    for row, values in figures.items():
        name, _, what = row.partition(", ")
        ours = figures[f"headrace, {what}"]
        ratio = statistics.median(a / b for a, b in zip(ours, values, strict=True))
        claim = CLAIMS.get(what) if name == "gigatoken" else None
        end = f"  claim >= {claim}: {'reached' if ratio >= claim else 'NOT REACHED'}" if claim else ""
        print(f"{row:36}{statistics.median(values):9.0f}  {min(values):7.0f} to {max(values):6.0f}  {ratio:6.2f}{end}")
    race_pieces(ROUNDS)


main()
