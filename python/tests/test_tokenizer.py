"""hr.Tokenizer: golden ids of a small vocabulary, and the same ids as tiktoken and Hugging Face's library."""

from __future__ import annotations

import base64
import copy
import json
import os
import pathlib
import pickle
import random
import struct
import threading
import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from conftest import ROOT

MERGES = [
    "h e",
    "l l",
    "he ll",
    "hell o",
    "Ġ w",
    "Ġw o",
    "r l",
    "Ġwo rl",
    "Ġworl d",
    "Ġ Ġ",
    "ĠĠ ĠĠ",
    "1 2",
    "' s",
    "Ã ©",
]
SUFFIXES = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER, FIRST = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", r"[^\r\n\p{L}\p{N}]?"
PATTERNS = {
    "r50k": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    "cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$"
    r"|\s*[\r\n]|\s+(?!\S)|\s",
    "llama3": SUFFIXES + "|" + FIRST + r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + SPACES,
    "o200k": f"{FIRST}{UPPER}*{LOWER}+{SUFFIXES}?|{FIRST}{UPPER}+{LOWER}*{SUFFIXES}?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + SPACES,
}


def letters() -> dict[str, int]:
    """The characters that stand for bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}


class Files:
    """A vocabulary in all forms: gpt2's pair, tiktoken's ranks, tokenizer.json by pattern."""

    def __init__(self, folder: pathlib.Path, vocab: dict[str, int], merges: list[str]) -> None:
        self.folder, self.vocab, self.merges = folder, vocab, merges
        byte_of = letters()
        self.ranks = {
            bytes(byte_of[c] for c in token): i for token, i in vocab.items() if all(c in byte_of for c in token)
        }
        self.encoder, self.bpe = folder / "encoder.json", folder / "vocab.bpe"
        self.tiktoken = folder / "ranks.tiktoken"
        self.encoder.write_text(json.dumps(vocab))
        self.bpe.write_text("#version: 0.2\n" + "\n".join(merges) + "\n", encoding="utf-8")
        lines = (f"{base64.b64encode(token).decode()} {i}\n" for token, i in self.ranks.items())
        self.tiktoken.write_text("".join(lines))

    def json(self, pattern: str) -> pathlib.Path:
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": pattern == "r50k"}
        split = {"type": "Split", "pattern": {"Regex": PATTERNS[pattern]}, "behavior": "Isolated", "invert": False}
        path = self.folder / f"{pattern}.json"
        model = {"type": "BPE", "ignore_merges": False, "vocab": self.vocab, "merges": self.merges}
        path.write_text(
            json.dumps(
                {
                    "version": "1.0",
                    "added_tokens": [],
                    "normalizer": None,
                    "pre_tokenizer": level
                    if pattern == "r50k"
                    else {"type": "Sequence", "pretokenizers": [split, level]},
                    "decoder": level,
                    "model": model,
                }
            )
        )
        return path


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Files:
    vocab = {letter: i for i, letter in enumerate(letters())}
    for merge in MERGES:
        vocab[merge.replace(" ", "")] = len(vocab)
    vocab["<|end|>"] = len(vocab)
    return Files(tmp_path_factory.mktemp("small"), vocab, MERGES)


@pytest.fixture(scope="session")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Files:
    data = pathlib.Path(os.environ.get("HEADRACE_DATA") or ROOT.parent / "shared/data") / "tokenizer"
    if not data.exists():
        pytest.skip("no shared data")
    vocab = json.loads((data / "gpt2-encoder.json").read_text())
    del vocab["<|endoftext|>"]
    lines = (data / "gpt2-vocab.bpe").read_text(encoding="utf-8").split("\n")[1:]
    return Files(tmp_path_factory.mktemp("gpt2"), vocab, [line for line in lines if line])


@pytest.fixture(params=["small", "gpt2"])
def files(request: pytest.FixtureRequest) -> Files:
    found: Files = request.getfixturevalue(request.param)
    return found


def open_all(files: Files) -> list[hr.Tokenizer]:
    return [
        hr.Tokenizer.from_gpt2(files.encoder, files.bpe),
        hr.Tokenizer.from_tiktoken(files.tiktoken, "r50k"),
        hr.Tokenizer.from_json(files.json("r50k")),
    ]


# ---- a small vocabulary ----

GOLDEN = {
    "": [],
    "hello world": [259, 264],
    "hello's 12 1212": [259, 268, 220, 267, 220, 267, 267],
    "     hé": [266, 220, 71, 269],
    "<|end|>": [27, 91, 68, 77, 67, 91, 29],
}


def test_golden_ids(small: Files) -> None:
    for tokenizer in open_all(small):
        for text, ids in GOLDEN.items():
            got = tokenizer.encode(text)
            assert got.dtype == np.int32 and got.tolist() == ids, text
            assert tokenizer.encode(text.encode()).tolist() == ids
            assert tokenizer.decode(got) == text
        values, offsets = tokenizer.encode_batch(list(GOLDEN))
        assert values.dtype == np.int32 and offsets.dtype == np.int64
        assert values.tolist() == [i for ids in GOLDEN.values() for i in ids]
        assert offsets.tolist() == [0, *np.cumsum([len(ids) for ids in GOLDEN.values()])]
    assert open_all(small)[0].vocab_size == 271
    assert tokenizer.encode_batch([])[1].tolist() == [0]


def test_results_belong_to_the_caller(small: Files) -> None:
    tokenizer = open_all(small)[0]
    first, (second, _) = tokenizer.encode("hello"), tokenizer.encode_batch(["hello"])
    first[0] = second[0] = 7
    assert tokenizer.encode("hello").tolist() == [259]


def test_decoding(small: Files) -> None:
    tokenizer = open_all(small)[0]
    assert tokenizer.decode([270, 259]) == "<|end|>hello"
    assert tokenizer.decode(np.array([[259], [264]], np.int64)) == "hello world"
    assert tokenizer.decode([]) == ""
    broken = b"a\xff\xe4\xb8 \xed\xa0\x80\xf4\x90\x80\x80"
    ids = tokenizer.encode(broken)
    assert tokenizer.decode(ids) == broken.decode(errors="replace")
    assert tokenizer.decode(ids, errors="surrogateescape").encode(errors="surrogateescape") == broken


def test_pickles_and_copies(small: Files) -> None:
    for tokenizer in open_all(small):
        for other in (pickle.loads(pickle.dumps(tokenizer)), copy.deepcopy(tokenizer)):
            assert other.encode("hello world").tolist() == tokenizer.encode("hello world").tolist()
    assert "encoder.json" in repr(open_all(small)[0])


def test_handles_are_released(small: Files, nothing_left: None) -> None:
    for tokenizer in open_all(small):
        values, _ = tokenizer.encode_batch(["hello"] * 9)
        del tokenizer
        assert values.tolist() == [259] * 9


def test_threads_share_a_tokenizer(small: Files, rng: random.Random) -> None:
    tokenizer = open_all(small)[0]
    texts = [random_text(random.Random(rng.random()), 300) for _ in range(6)]
    wanted = [tokenizer.encode(text).tolist() for text in texts]
    wrong: list[str] = []

    def encode(text: str, ids: list[int]) -> None:
        for _ in range(30):
            if tokenizer.encode(text).tolist() != ids:
                wrong.append(text)

    threads = [threading.Thread(target=encode, args=pair) for pair in zip(texts, wanted, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda t, f: hr.Tokenizer.from_json("/nowhere/x.json"), hr.MissingFileError, "/nowhere/x.json"),
        (lambda t, f: hr.Tokenizer.from_tiktoken(f.tiktoken, "gpt9"), hr.ArgumentError, "cl100k"),
        (lambda t, f: hr.Tokenizer.from_tiktoken(f.bpe, "r50k"), hr.FormatError, "vocab.bpe:1"),
        (lambda t, f: hr.Tokenizer.from_json(f.encoder), hr.FormatError, "model.vocab"),
        (lambda t, f: t.encode(5), TypeError, "str or bytes"),
        (lambda t, f: t.encode("\ud800"), UnicodeEncodeError, "surrogates"),
        (lambda t, f: t.encode_batch(["a", None]), TypeError, "str or bytes"),
        (lambda t, f: t.encode_batch(["a"], threads=-1), hr.ArgumentError, "threads"),
        (lambda t, f: t.decode([271]), hr.RangeError, "0 to 270"),
        (lambda t, f: t.decode([-1]), hr.RangeError, "0 to 270"),
        (lambda t, f: t.decode([1 << 40]), hr.RangeError, "0 to 270"),
        (lambda t, f: t.decode([0.5]), hr.ArgumentError, "integers"),
    ],
)
def test_wrong_arguments(small: Files, call: Callable[[Any, Files], Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call(open_all(small)[0], small)


# ---- the same ids as others ----

RANGES = [(32, 127)] * 6 + [
    *((0, 0x250), (0x370, 0x530), (0x590, 0x780), (0x900, 0xE80), (0x1000, 0x2000), (0x2000, 0x2070)),
    *((0x2070, 0x2C00), (0x3000, 0x3100), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xE000, 0xFFFF), (0x10000, 0x12000)),
    *((0x1D000, 0x1F000), (0x1F300, 0x1FA00), (0x20000, 0x20100), (0xE000, 0x10FFFF)),
]
SPACE = [*" \n\t\x0b\x85\xa0\u1680\u2028\u3000", "  ", "\r\n", " \n", "\n ", "\n\n", "\t\t", " \xa0", " " * 7, " " * 70]
PIECES = [
    *(
        "'s",
        "'S",
        "'re",
        "'LL",
        "'d",
        "''",
        "'\u017f",
        "hello",
        "HELLO",
        "Hello",
        "helloWORLD",
        "12",
        "1234567",
        "½",
        "Ⅷ",
    ),
    *(
        "\u0301",
        "e\u0301",
        "A\u0301b",
        "\u01c5",
        "中",
        "中文",
        "ß",
        "İ",
        "👨\u200d👩\u200d👧",
        "🏽",
        "٣",
        "\0",
        "a\0",
        "\ufeff",
    ),
    *("/", "//\n", "!/\r\n", "...\n\n", "ab" * 60, "Ж" * 40, "中" * 40, "!?" * 50),
]


def random_text(rng: random.Random, pieces: int) -> str:
    def character() -> str:
        return chr(rng.randrange(*rng.choice(RANGES)))

    kinds = [lambda: rng.choice(SPACE), lambda: rng.choice(PIECES), character, lambda: character() + rng.choice(PIECES)]
    return "".join(rng.choice(kinds)() for _ in range(rng.randrange(1, pieces)))


def check_same(tokenizer: hr.Tokenizer, other: Callable[[str], list[int]], rng: random.Random) -> None:
    for text in (random_text(rng, 60) for _ in range(150)):
        got, wanted = tokenizer.encode(text).tolist(), other(text)
        assert got == wanted, f"{text!r}: {got} instead of {wanted}"
        assert tokenizer.decode(got) == text


@pytest.mark.parametrize("pattern", PATTERNS)
def test_ids_of_tiktoken(files: Files, pattern: Any, rng: random.Random) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    encoding = tiktoken.Encoding("test", pat_str=PATTERNS[pattern], mergeable_ranks=files.ranks, special_tokens={})
    check_same(hr.Tokenizer.from_tiktoken(files.tiktoken, pattern), encoding.encode_ordinary, rng)


@pytest.mark.parametrize("pattern", ["r50k", "llama3", "o200k"])
def test_ids_of_hugging_face(files: Files, pattern: str, rng: random.Random) -> None:
    other = pytest.importorskip("tokenizers").Tokenizer.from_file(str(files.json(pattern)))
    check_same(
        hr.Tokenizer.from_json(files.json(pattern)),
        lambda text: list(other.encode(text, add_special_tokens=False).ids),
        rng,
    )


@pytest.mark.parametrize("pattern", ["r50k", "o200k"])
def test_every_character_is_classed_as_by_tiktoken(tmp_path: pathlib.Path, pattern: Any) -> None:
    """All pairs of bytes are tokens, so that where words end shows in the ids."""
    tiktoken = pytest.importorskip("tiktoken")
    tokens = [bytes([a]) for a in range(256)] + [bytes([a, b]) for a in range(256) for b in range(256)]
    ranks = {token: i for i, token in enumerate(tokens)}
    path = tmp_path / "pairs.tiktoken"
    path.write_text("".join(f"{base64.b64encode(token).decode()} {i}\n" for token, i in ranks.items()))
    encoding = tiktoken.Encoding("test", pat_str=PATTERNS[pattern], mergeable_ranks=ranks, special_tokens={})
    tokenizer = hr.Tokenizer.from_tiktoken(path, pattern)
    for low in range(0, 0x110000, 4096):
        some = [chr(c) for c in range(low, low + 4096) if not 0xD800 <= c < 0xE000]
        text = "".join(f"a{c}A {c}\n" for c in some)
        assert tokenizer.encode(text).tolist() == encoding.encode_ordinary(text)


# ---- WordPiece ----

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "water", "##wheel", "##s", ",", ".", "'", "s", "the", "e", "中"]


def bert(words: list[str], **normalizer: Any) -> dict[str, Any]:
    """A tokenizer.json as BERT's is."""
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    options = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": words.index(word), "content": word, **flags} for word in specials],
        "normalizer": {"type": "BertNormalizer", **options, **normalizer},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {word: i for i, word in enumerate(words)},
        },
    }


def write_json(folder: pathlib.Path, content: dict[str, Any]) -> pathlib.Path:
    path = folder / "a tokenizer.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_a_wordpiece_json_by_itself(tmp_path: pathlib.Path) -> None:
    path = write_json(tmp_path, bert(WORDS))
    tokenizer = hr.Tokenizer.from_json(path)
    ids = [12, 5, 6, 7, 8, 13, 14, 10, 11, 9, 1]
    for again in (tokenizer, pickle.loads(pickle.dumps(tokenizer))):
        assert again.encode("The\tWaterWheels, \u00c9中's. xyz").tolist() == ids
    assert tokenizer.decode(ids) == "the waterwheels, e 中 ' s. [UNK]"
    assert tokenizer.encode("").tolist() == [] and tokenizer.decode([]) == ""
    values, offsets = tokenizer.encode_batch(["the water", "", b"the \xff"] * 50, threads=3)
    assert offsets.tolist()[:4] == [0, 2, 2, 4] and values.tolist() == [12, 5, 12, 1] * 50
    assert tokenizer.vocab_size == len(WORDS)
    lines = tmp_path / "lines.txt"
    lines.write_text("the water\r\n\nwaterwheel", encoding="utf-8")
    pipe = hr.lines(lines).tokenize_wordpiece(json=path)
    back = pipe.detokenize(json=path).batch(3).loader()
    assert [text for batch in back for text in batch.text] == ["the water", "", "waterwheel"]
    with pytest.raises(hr.UnsupportedError, match="WordPiece, not byte-level BPE"):
        _ = hr.lines(lines).tokenize_bpe(json=path).fingerprint
    with pytest.raises(hr.ArgumentError, match="vocab or json"):
        _ = hr.lines(lines).tokenize_wordpiece(json=path, vocab=path).fingerprint


def is_old(char: str) -> bool:
    """Whether all libraries' tables have it."""
    return unicodedata.ucd_3_2_0.category(char) != "Cn" or 0x1F300 <= ord(char) < 0x1FA00


def test_ids_of_bert_as_hugging_face_has_them(tmp_path: pathlib.Path, rng: random.Random) -> None:
    """A model trained on the text at hand, with drawn options. Characters that are newer than the library's tables
    decompose differently."""
    tokenizers = pytest.importorskip("tokenizers")
    for _ in range(6):
        texts = ["".join(c for c in random_text(rng, 60) if is_old(c)) for _ in range(200)]
        trained = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
        options = {key: rng.random() < 0.5 for key in ("clean_text", "handle_chinese_chars", "lowercase")}
        content = bert(WORDS, strip_accents=rng.choice([None, True, False]), **options)
        trained.normalizer = tokenizers.normalizers.BertNormalizer(
            **{k: v for k, v in content["normalizer"].items() if k != "type"}
        )
        trained.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        trained.train_from_iterator(
            (text.replace("\0", "") for text in texts),  # JSON keys have no NUL characters here
            tokenizers.trainers.WordPieceTrainer(vocab_size=3000, special_tokens=WORDS[:5], show_progress=False),
        )
        vocab = trained.get_vocab()
        content = {**content, **bert(sorted(vocab, key=vocab.__getitem__)), "normalizer": content["normalizer"]}
        if rng.random() < 0.3:
            content["decoder"] = None
        path = write_json(tmp_path, content)
        ours, other = hr.Tokenizer.from_json(path), tokenizers.Tokenizer.from_file(str(path))
        for text in texts:
            ids = ours.encode(text).tolist()
            assert ids == other.encode(text, add_special_tokens=False).ids, ascii(text)
            assert ours.decode(ids) == other.decode(ids, skip_special_tokens=False), ids


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("normalizer", {"type": "NFC"}, r"json:1:\d+: normalizer.type"),
        ("pre_tokenizer", {"type": "Whitespace"}, "pre_tokenizer.type"),
        ("decoder", {"type": "ByteLevel"}, "decoder.type"),
        ("model", {"type": "WordLevel", "vocab": {}}, "model.type WordLevel"),
        ("added_tokens", [{"id": 5, "content": "water", "special": False}], "water"),
    ],
)
def test_parts_of_a_wordpiece_json_that_are_refused(tmp_path: pathlib.Path, part: str, value: Any, words: str) -> None:
    with pytest.raises(hr.UnsupportedError, match=words):
        hr.Tokenizer.from_json(write_json(tmp_path, bert(WORDS) | {part: value}))


# ---- SentencePiece ----

MODELS = ROOT / "fuzz/corpus/sentencepiece"


def number(value: int) -> bytes:
    """A varint."""
    return bytes([value & 127 | 128]) + number(value >> 7) if value > 127 else bytes([value])


def message(field: int, content: bytes) -> bytes:
    return number(field << 3 | 2) + number(len(content)) + content


def piece(text: str, score: float, kind: int) -> bytes:
    return message(1, message(1, text.encode()) + b"\x15" + struct.pack("<f", score) + b"\x18" + number(kind))


def drawn_model(rng: random.Random) -> tuple[bytes, str]:
    """A model file of either type over a few characters, with every kind of piece and option; and its characters."""
    alphabet, bytes_too = rng.choice(["ab▁", "abc▁é中", "abcdef▁", "ab ▁"]), rng.random() < 0.3
    pieces = {"<unk>": piece("<unk>", 0, 2), "<s>": piece("<s>", 0, 3)}
    for text in [*alphabet, *("".join(rng.choices(alphabet, k=rng.randrange(2, 6))) for _ in range(rng.randrange(40)))]:
        score, kind = rng.choice([-5, -6, -7, -11, rng.uniform(-15, 0)]), rng.choice([1] * 12 + [4, 5])
        if rng.random() < 0.9:
            pieces.setdefault(text, piece(text, score, kind))
    if bytes_too:
        pieces |= {f"<0x{byte:02X}>": piece(f"<0x{byte:02X}>", 0, 6) for byte in range(256)}
    options = b"".join(number(field << 3) + number(rng.randrange(2)) for field in (3, 4, 5) if rng.random() < 0.5)
    trainer = b"\x18" + number(rng.choice([1, 2])) + (b"\x98\x02\x01" if bytes_too else b"")
    trainer += b"\xc0\x01\x01" if rng.random() < 0.2 else b""
    return b"".join(pieces.values()) + message(2, trainer) + message(3, options), alphabet.replace("▁", " ")


def test_ids_of_sentencepiece(tmp_path: pathlib.Path, rng: random.Random) -> None:
    library = pytest.importorskip("sentencepiece")
    for _ in range(100):
        model, alphabet = drawn_model(rng)
        (tmp_path / "x.model").write_bytes(model)
        tokenizer, other = hr.Tokenizer.from_sentencepiece(tmp_path / "x.model"), library.SentencePieceProcessor()
        other.LoadFromSerializedProto(model)
        for length in (1, 3, 10, 40, 400):
            text = "".join(
                rng.choice(alphabet + ("  zé\ufffd▁\0" if rng.random() < 0.3 else "")) for _ in range(length)
            )
            ids = tokenizer.encode(text).tolist()
            assert ids == other.encode(text), (text, model)
            assert tokenizer.decode(ids) == other.decode(ids), (ids, model)
        ids = rng.choices(range(tokenizer.vocab_size), k=20)
        assert tokenizer.decode(ids) == other.decode(ids), (ids, model)


@pytest.mark.parametrize("name", ["unigram", "bpe", "bytes", "suffix"])
def test_ids_of_sentencepiece_for_all_text(name: str, rng: random.Random) -> None:
    library = pytest.importorskip("sentencepiece")
    tokenizer = hr.Tokenizer.from_sentencepiece(MODELS / name)
    other = library.SentencePieceProcessor(model_file=str(MODELS / name))
    for _ in range(300):
        text = random_text(rng, 60).encode()
        if rng.random() < 0.3:
            at = rng.randrange(len(text))
            text = text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :]
        ids = tokenizer.encode(text).tolist()
        assert ids == other.encode(text), text
        assert tokenizer.decode(ids) == other.decode(ids), text


def test_a_sentencepiece_model_by_itself() -> None:
    tokenizer = hr.Tokenizer.from_sentencepiece(MODELS / "unigram")
    again = pickle.loads(pickle.dumps(tokenizer))
    ids = [33, 0, 35, 48, 5, 0]
    assert tokenizer.encode("waterX\twheel<sep>tÉ ").tolist() == again.encode("waterX\twheel<sep>tÉ ").tolist() == ids
    assert tokenizer.decode(ids) == "water \u2047  wheel<sep>t \u2047 "
    assert tokenizer.encode("\ufdfa").tolist() == [30, 33, 40, 30, 42, 36, 41, 35]  # more ids than bytes
    values, offsets = tokenizer.encode_batch(["the water", "", "\ufdfa"] * 50, threads=3)
    assert offsets.tolist()[:4] == [0, 2, 2, 10] and len(values) == 500
    assert tokenizer.vocab_size == 52
    assert "unigram" in repr(tokenizer)


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("cut", hr.FormatError, "malformed at byte"),
        ("empty", hr.FormatError, "unknown piece"),
        ("type-word", hr.UnsupportedError, "type word"),
        ("nowhere", hr.MissingFileError, "nowhere"),
    ],
)
def test_wrong_sentencepiece_models(name: str, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        hr.Tokenizer.from_sentencepiece(MODELS / name)


@pytest.mark.parametrize("threads", [1, 3])
def test_pieces_in_batches(tmp_path: pathlib.Path, threads: int) -> None:
    lines = ["the water", "", "a mill\tturns", "\ufdfa", "in the wheel"] * 9
    (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    pipe = hr.lines(tmp_path / "lines.txt").tokenize_unigram(MODELS / "unigram").batch(4, ragged=True)
    tokenizer = hr.Tokenizer.from_sentencepiece(MODELS / "unigram")
    got = [item.tolist() for b in pipe.loader(output="numpy", threads=threads) for item in b.tokens.items()]
    assert got == [tokenizer.encode(line).tolist() for line in lines]


# ---- in a pipeline ----


@pytest.mark.parametrize("threads", [1, 3])
def test_ids_in_batches(small: Files, tmp_path: pathlib.Path, rng: random.Random, threads: int) -> None:
    lines = [random_text(rng, 40).replace("\n", " ").replace("\r", " ") for _ in range(50)]
    lines[0] = lines[0].lstrip("\ufeff")  # a byte order mark there is no text
    path = tmp_path / "lines.txt"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    pipe = hr.lines(path).tokenize_bpe(encoder=small.encoder, merges=small.bpe).batch(4, ragged=True)
    tokenizer = open_all(small)[0]
    got = [item.tolist() for b in pipe.loader(output="numpy", threads=threads) for item in b.tokens.items()]
    assert got == [tokenizer.encode(line).tolist() for line in lines]
