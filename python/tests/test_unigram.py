"""Unigram models of Hugging Face's tokenizer.json: the ids and the text of its library."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import pathlib
import pickle
import random
import unicodedata
from typing import Any

import pytest

import headrace as hr
from conftest import ROOT

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
SPACES = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}


def quotes(text: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"String": text}, "content": '"'}


def sequence(kind: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", kind: list(parts)}


def field(data: bytes, number: int) -> bytes:
    """A member of a message, as SentencePiece's models are: the last of that number."""
    at, found = 0, b""

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            varint()
            continue
        length = varint() if tag & 7 == 2 else 4
        if tag >> 3 == number:
            found = data[at : at + length]
        at += length
    return found


@pytest.fixture(scope="module")
def charsmap() -> dict[str, Any]:
    """The rules of a SentencePiece model: nmt_nfkc, or some of them without the library that has them."""
    model = (ROOT / "fuzz/corpus/sentencepiece/unigram").read_bytes()
    with contextlib.suppress(ImportError):
        import sentencepiece

        made = io.BytesIO()
        lines = iter(["the water", "the wheel"] * 50)
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=lines, model_writer=made, vocab_size=20, hard_vocab_limit=False, minloglevel=2
        )
        model = made.getvalue()
    rules = field(field(model, 3), 2)
    assert rules, "the model has no rules"
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(rules).decode()}


def content_of(vocab: list[list[Any]], **parts: Any) -> dict[str, Any]:
    """A tokenizer.json as XLM-R's is."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    names = [token for token, _ in vocab]
    added = [{"id": names.index(name), "content": name, **flags} for name in SPECIALS if name in names]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [*added, {"id": len(vocab), "content": "<mask>", **flags}],
        "normalizer": None,
        "pre_tokenizer": METASPACE,
        "post_processor": None,
        "decoder": METASPACE,
        "model": {"type": "Unigram", "unk_id": names.index("<unk>"), "vocab": vocab, "byte_fallback": False},
        **parts,
    }


def write(folder: pathlib.Path, content: dict[str, Any]) -> pathlib.Path:
    path = folder / "a tokenizer.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


SMALL: list[list[Any]] = [[name, 0] for name in SPECIALS] + [
    ["▁", -2.5],
    ["▁the", -2],
    ["▁wat", -4],
    ["er", -3.25],
    ["▁water", -5],
    ["s", -4],
    ["e", -4.5],
]


def test_a_model_by_itself(tmp_path: pathlib.Path) -> None:
    path = write(tmp_path, content_of(SMALL))
    tokenizer = hr.Tokenizer.from_json(path)
    ids = [5, 8, 9, 4, 4, 3, 9, 10]
    for again in (tokenizer, pickle.loads(pickle.dumps(tokenizer))):
        assert again.encode("the waters  xyzse").tolist() == ids
    assert tokenizer.decode(ids) == "the waters  <unk>se"
    assert tokenizer.decode([0, 5, 11]) == "<s> the<mask>"
    assert tokenizer.encode("").tolist() == [] and tokenizer.decode([]) == ""
    assert tokenizer.encode(b"\xffs").tolist() == tokenizer.encode("\ufffds").tolist() == [4, 3, 9]
    assert tokenizer.vocab_size == 12
    with pytest.raises(hr.HeadraceError, match="ids must be 0 to 11"):
        tokenizer.decode([5, 12])
    values, offsets = tokenizer.encode_batch(["the water", "", "se"] * 50, threads=3)
    assert offsets.tolist()[:4] == [0, 2, 2, 5] and values.tolist() == [5, 8, 4, 9, 10] * 50
    lines = tmp_path / "lines.txt"
    lines.write_text("the water\r\n\nse", encoding="utf-8")
    for files in ({"json": path}, {"model": path}):
        pipe = hr.lines(lines).tokenize_unigram(path).detokenize(**files)
        assert [text for batch in pipe.batch(3).loader() for text in batch.text] == ["the water", "", "se"]
    with pytest.raises(hr.UnsupportedError, match="Unigram, not byte-level BPE"):
        _ = hr.lines(lines).tokenize_bpe(json=path).fingerprint
    with pytest.raises(hr.UnsupportedError, match="Unigram, not WordPiece"):
        _ = hr.lines(lines).tokenize_wordpiece(json=path).fingerprint


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"normalizer": {"type": "Nmt"}}, r'json:1:\d+: normalizer.type: "Nmt" is not supported'),
        ({"normalizer": sequence("normalizers", SPACES, {"type": "Prepend", "prepend": "▁"})}, '"Prepend"'),
        ({"normalizer": SPACES | {"pattern": {"Regex": "a+"}}}, r'pattern: "a\+"'),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AA?="}}, "base64"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "////"}}, "base64"),
        ({"normalizer": {"type": "StripAccents"}, "pre_tokenizer": METASPACE | {"prepend_scheme": "first"}}, '"first"'),
        ({"pre_tokenizer": {"type": "ByteLevel"}}, 'pre_tokenizer.type: "ByteLevel"'),
        ({"pre_tokenizer": sequence("pretokenizers", METASPACE, {"type": "WhitespaceSplit"})}, "after Metaspace"),
        (
            {
                "pre_tokenizer": sequence(
                    "pretokenizers", {"type": "WhitespaceSplit"}, METASPACE | {"prepend_scheme": "first"}
                )
            },
            'after WhitespaceSplit: "first"',
        ),
        ({"pre_tokenizer": METASPACE | {"prepend_scheme": "last"}}, 'prepend_scheme: "last"'),
        ({"pre_tokenizer": METASPACE | {"replacement": "ab"}}, '"replacement" must be a character'),
        ({"decoder": {"type": "CTC"}}, 'decoder.type: "CTC"'),
        ({"decoder": sequence("decoders", {"type": "Fuse"}, {"type": "ByteFallback"})}, '"ByteFallback"'),
        ({"model": {"type": "Unigram", "unk_id": None, "vocab": SMALL}}, "model.unk_id"),
        ({"model": {"type": "Unigram", "unk_id": 3, "vocab": []}}, "model.vocab must be"),
        ({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["a", "0"]]}}, "a score is a number"),
        ({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["", 0]]}}, "1 to 1024 bytes"),
        ({"added_tokens": [{"id": 5, "content": "the", "special": False}]}, '"the" is not special'),
        ({"added_tokens": [{"id": 5, "content": "the", "special": True}]}, "id of another token"),
    ],
)
def test_parts_that_are_refused(tmp_path: pathlib.Path, parts: dict[str, Any], words: str) -> None:
    with pytest.raises(hr.HeadraceError, match=words):
        hr.Tokenizer.from_json(write(tmp_path, content_of(SMALL) | parts))


# ---- as the library has them ----

MARKS = "\u0301\u0308\u0327\u200d\u0903\u094d\u093c\u0e33\u1161\u11a8\ufe0f\U0001f3fd\u0600\u0d4e\u20dd"
LETTERS = "abcdeE ABÉéñ\u0131İΣß  \u00a0\u3000\t\r\n\0▁``''\"\u0915\u0937\u1100\uac00\uff45ｶﾞ①ﬁ㍿\ufdfa中文\ufffd\u00ad\u200b👩🏽🇩🇪©"


def is_old(char: str) -> bool:
    """Whether all libraries' tables have it."""
    return unicodedata.ucd_3_2_0.category(char) != "Cn" or 0x1F300 <= ord(char) < 0x1FA00


def drawn_text(rng: random.Random, length: int) -> str:
    kind = rng.random()
    if kind < 0.5:
        chars = rng.choices(LETTERS + MARKS * (kind < 0.3), k=length)
    elif kind < 0.8:
        words = ["the", "water", "Wheel", "turns", "", "é", "''", "<s>", "</s>", "▁a", "naïve", "\uff21\uff22"]
        chars = [rng.choice(words) + rng.choice(["", " ", "  ", "\n"]) for _ in range(length // 2)]
    else:
        codes = (
            rng.choice([rng.randrange(0x80), rng.randrange(0x3000), rng.randrange(0x110000)]) for _ in range(length)
        )
        chars = [chr(c) for c in codes if not 0xD800 <= c < 0xE000 and is_old(chr(c))]
    return "".join(chars)


def drawn_normalizer(rng: random.Random, charsmap: dict[str, Any]) -> dict[str, Any] | None:
    forms = [{"type": name} for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents")]
    strip = {"type": "Strip", "strip_left": rng.random() < 0.5, "strip_right": rng.random() < 0.5}
    parts = [
        charsmap,
        charsmap,
        SPACES,
        SPACES | {"content": "▁"},
        quotes("``"),
        quotes("''"),
        quotes("a"),
        strip,
        *forms,
    ]
    albert = [quotes("``"), quotes("''"), {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}, charsmap]
    drawn = rng.sample(parts, k=rng.randrange(1, 5))
    return rng.choice(
        [
            None,
            charsmap,
            sequence("normalizers", charsmap, strip, SPACES | {"content": "▁"}),
            sequence("normalizers", *albert),
            sequence("normalizers", *drawn),
            sequence("normalizers", sequence("normalizers", *drawn), SPACES),
        ]
    )


def drawn_metaspace(rng: random.Random) -> dict[str, Any]:
    return rng.choice(
        [
            METASPACE,
            METASPACE | {"prepend_scheme": rng.choice(["always", "first", "never"]), "split": rng.random() < 0.5},
            {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True, "str_rep": "▁"},
            {"type": "Metaspace", "replacement": "▁", "add_prefix_space": False, "prepend_scheme": "never"},
        ]
    )


def drawn_parts(rng: random.Random, charsmap: dict[str, Any]) -> dict[str, Any]:
    white = {"type": "WhitespaceSplit"}
    replace = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
    strip = {"type": "Strip", "content": " ", "start": rng.randrange(3), "stop": 0}
    chain = sequence("decoders", replace, {"type": "ByteFallback"}, {"type": "Fuse"}, strip)
    metaspace = drawn_metaspace(rng)
    normalizer = drawn_normalizer(rng, charsmap)
    removes = [
        p for p in flat(normalizer) if p["type"] == "StripAccents" or p.get("strip_left") or p.get("content") == '"'
    ]
    if removes and metaspace.get("prepend_scheme") == "first":
        metaspace = METASPACE  # the scheme is refused with these
    words = METASPACE if metaspace.get("prepend_scheme") == "first" else metaspace
    return {
        "normalizer": normalizer,
        "pre_tokenizer": rng.choice([None, white, metaspace, *[sequence("pretokenizers", white, words)] * 2]),
        "decoder": rng.choice([None, drawn_metaspace(rng), chain, sequence("decoders", {"type": "ByteFallback"})]),
    }


def flat(part: dict[str, Any] | None) -> list[dict[str, Any]]:
    if part is None or part["type"] != "Sequence":
        return [] if part is None else [part]
    return [inner for item in part["normalizers"] for inner in flat(item)]


def check_same(tmp_path: pathlib.Path, content: dict[str, Any], texts: list[str], rng: random.Random) -> None:
    library = pytest.importorskip("tokenizers")
    path = write(tmp_path, content)
    ours, other = hr.Tokenizer.from_json(path), library.Tokenizer.from_file(str(path))
    other.encode_special_tokens = True
    said = {key: content[key] for key in ("normalizer", "pre_tokenizer", "decoder")}
    for text in texts:
        ids = ours.encode(text).tolist()
        assert ids == other.encode(text, add_special_tokens=False).ids, (
            text.encode("unicode_escape"),
            [
                (p["type"], {k: v for k, v in p.items() if k != "precompiled_charsmap"})
                for p in flat(said["normalizer"])
            ],
            said["pre_tokenizer"],
        )
        assert ours.decode(ids) == other.decode(ids, skip_special_tokens=False), (ids, said["decoder"])
    some = rng.choices(range(len(content["model"]["vocab"])), k=20)
    assert ours.decode(some) == other.decode(some, skip_special_tokens=False), (some, said["decoder"])


def test_ids_of_drawn_models(tmp_path: pathlib.Path, charsmap: dict[str, Any], rng: random.Random) -> None:
    for _ in range(60):
        alphabet = rng.choice(["ab▁", "abc▁é中", "abcde ▁", "ab\u0301▁e"])
        vocab: dict[str, float] = dict.fromkeys(rng.sample(SPECIALS, k=4), 0)
        for _ in range(rng.randrange(60)):
            token = "".join(rng.choices(alphabet, k=rng.randrange(1, 6)))
            vocab[token] = rng.choice(
                [-5, -6, -7, -11, -4.1, rng.uniform(-15, 0), rng.uniform(0, 30) * (rng.random() < 0.1)]
            )
        fallback = rng.random() < 0.4
        for byte in range(256 if fallback else 0):
            if rng.random() < 0.99:
                vocab[f"<0x{byte:02X}>"] = 0
        content = content_of([list(item) for item in vocab.items()], **drawn_parts(rng, charsmap))
        content["model"]["byte_fallback"] = fallback
        texts = ["".join(rng.choices(alphabet + " ", k=n)) for n in (0, 1, 3, 10, 50)]
        check_same(tmp_path, content, texts + [drawn_text(rng, 30) for _ in range(20)], rng)


def test_ids_of_trained_models(tmp_path: pathlib.Path, charsmap: dict[str, Any], rng: random.Random) -> None:
    library = pytest.importorskip("tokenizers")
    for _ in range(4):
        texts = [drawn_text(rng, 60) for _ in range(200)]
        trained = library.Tokenizer(library.models.Unigram())
        trained.pre_tokenizer = library.pre_tokenizers.Metaspace()
        trainer = library.trainers.UnigramTrainer(
            vocab_size=rng.choice([3000, 5000]), special_tokens=SPECIALS, unk_token="<unk>", show_progress=False
        )
        trained.train_from_iterator((text.replace("\0", "") for text in texts), trainer)
        vocab = json.loads(trained.to_str())["model"]["vocab"]
        for _ in range(4):
            check_same(tmp_path, content_of(vocab, **drawn_parts(rng, charsmap)), texts, rng)


def test_every_character_joins_as_in_the_library(tmp_path: pathlib.Path, charsmap: dict[str, Any]) -> None:
    """After a letter with a rule of its own, which stands for all of its cluster, and between others."""
    pytest.importorskip("tokenizers")
    chars = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000 and is_old(chr(code))]
    texts = ["".join(f"\uff45{c}A{c}\uff45" for c in chars[at : at + 2000]) for at in range(0, len(chars), 2000)]
    vocab = [["<unk>", 0], *([c, -9] for c in sorted({c for text in texts[:40] for c in text}))]
    check_same(tmp_path, content_of(vocab, normalizer=charsmap, pre_tokenizer=None), texts, random.Random(1))
