"""Operators on text and token ids in pipelines, compared with what Python says."""

from __future__ import annotations

import base64
import pathlib
import random
import unicodedata
from typing import Any

import numpy as np
import pytest

import headrace as hr


@pytest.fixture
def byte_ranks(tmp_path: pathlib.Path) -> pathlib.Path:
    """A vocabulary whose tokens are the bytes."""
    path = tmp_path / "bytes.tiktoken"
    path.write_text("".join(f"{base64.b64encode(bytes([i])).decode()} {i}\n" for i in range(256)))
    return path


def write_lines(folder: pathlib.Path, lines: list[str]) -> pathlib.Path:
    path = folder / "lines.txt"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


# ---- text ----


def column(pipe: Any, field: str, **options: Any) -> list[Any]:
    return [item for batch in pipe.batch(100).loader(output="numpy", **options) for item in batch[field]]


def known() -> list[str]:
    """The characters that Python's tables have, so that those of a newer Unicode agree, and no line ends."""
    codes = (chr(c) for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000)
    return [c for c in codes if unicodedata.category(c) != "Cn" and c not in "\r\n"]


def through(folder: pathlib.Path, texts: list[str], step: str, **params: Any) -> list[str]:
    pipe = getattr(hr.lines(write_lines(folder, texts)), step)(**params)
    return list(column(pipe, "text"))


@pytest.mark.parametrize("form", ["nfc", "nfd", "nfkc", "nfkd"])
def test_normal_forms_are_those_of_python(tmp_path: pathlib.Path, form: Any, rng: random.Random) -> None:
    chars = known()
    marks = [c for c in chars if unicodedata.combining(c)]
    parts = [c for c in chars if unicodedata.decomposition(c)]
    mixed = [rng.choice(["", "e", *rng.choices(parts, k=3)]) for _ in range(20000)]
    texts = ["".join(chars[i : i + 50]) for i in range(0, len(chars), 50)]
    texts += [text + "".join(rng.choices(marks, k=rng.randrange(5))) for text in mixed]
    texts += ["".join(rng.choices([*parts, *marks, "\u1100", "\u1161", "\u11a8"], k=20)) for _ in range(2000)]
    got = through(tmp_path, texts, "normalize_text", form=form)
    for text, one in zip(texts, got, strict=True):
        assert one == unicodedata.normalize(form.upper(), text), ascii(text)


def test_lower_case_is_that_of_python(tmp_path: pathlib.Path) -> None:
    texts = [f"a{c}" for c in known()]
    assert through(tmp_path, texts, "lower_text") == ["a" + text[1:].lower() for text in texts]


def test_stripping_and_splitting_are_those_of_python(tmp_path: pathlib.Path, rng: random.Random) -> None:
    white = " \t\u00a0\u2003\u3000\x85"
    texts = ["".join(rng.choices(white + "ab\u00e9\u65e5", k=rng.randrange(12))) for _ in range(500)]
    assert through(tmp_path, texts, "strip_text") == [text.strip() for text in texts]
    path = write_lines(tmp_path, texts)
    for params, call in [
        ({}, lambda text: text.split()),
        ({"separator": "a"}, lambda text: text.split("a")),
        ({"separator": " \u00e9", "empty": False}, lambda text: [w for w in text.split(" \u00e9") if w]),
    ]:
        got = column(hr.lines(path).split_text(**params), "words", threads=2)
        assert [list(words) for words in got] == [call(text) for text in texts]


def test_words_to_ids(tmp_path: pathlib.Path) -> None:
    vocabulary = tmp_path / "my words.txt"
    vocabulary.write_bytes("\ufeff[UNK]\r\n\u00e9t\u00e9\r\nwheel".encode())
    pipe = hr.lines(write_lines(tmp_path, ["\u00c9T\u00c9 wheel", "", "Mill"])).lower_text().split_text()
    (batch,) = pipe.vocab_lookup(vocabulary, unknown="[UNK]").batch(3, ragged=True).loader(output="numpy")
    assert [item.tolist() for item in batch.tokens.items()] == [[1, 2], [], [0]]
    with pytest.raises(hr.HeadraceError, match='"mill" is not in'):
        list(pipe.vocab_lookup(vocabulary).batch(3, ragged=True).loader())


# ---- tokens.pad, tokens.pack ----


def packed(lists: list[bytes], length: int, bins: int, best: bool) -> list[list[bytes]]:
    """The rows of tokens.pack as lists of their parts."""
    rows, bins_open = [], []
    for items in lists:
        for at in range(0, len(items), length):
            part = items[at : at + length]
            room = [length - sum(map(len, row)) for row in bins_open]
            fits = [(room[i] if best else 0, i) for i in range(len(room)) if room[i] >= len(part)]
            if fits:
                row = bins_open[min(fits)[1]]
            else:
                if len(bins_open) == bins and len(part) < length:
                    rows.append(bins_open.pop(min(range(bins), key=lambda i: room[i])))
                row = []
                bins_open.append(row)
            row.append(part)
            if sum(map(len, row)) == length:
                bins_open.remove(row)
                rows.append(row)
    return rows + bins_open


@pytest.mark.parametrize("fit", ["best", "first"])
def test_rows_are_those_of_a_model(
    tmp_path: pathlib.Path, byte_ranks: pathlib.Path, rng: random.Random, fit: Any
) -> None:
    length, bins = rng.randint(1, 40), rng.randint(1, 6)
    lines = ["".join(rng.choices("abcdefgh", k=rng.randint(0, 30))) for _ in range(200)]
    want = packed([line.encode() for line in lines], length, bins, fit == "best")
    pipe = (
        hr.lines(write_lines(tmp_path, lines))
        .tokenize_bpe(ranks=byte_ranks)
        .pack_tokens(length, bins=bins, fit=fit, value=-1)
        .batch(7)
    )
    for threads in (1, 3):
        tokens, segments, positions = [], [], []
        for batch in pipe.loader(output="numpy", threads=threads):
            tokens += list(batch.tokens)
            segments += list(batch.segment_ids)
            positions += list(batch.positions)
        assert len(tokens) == len(want)
        for row, token, segment, position in zip(want, tokens, segments, positions, strict=True):
            rest = length - sum(map(len, row))
            assert token.tolist() == [*b"".join(row), *[-1] * rest]
            assert segment.tolist() == [i + 1 for i, part in enumerate(row) for _ in part] + [0] * rest
            assert position.tolist() == [k for part in row for k in range(len(part))] + [0] * rest


def test_packing_resumes_after_any_batch(tmp_path: pathlib.Path, byte_ranks: pathlib.Path, rng: random.Random) -> None:
    lines = ["".join(rng.choices("xyz", k=rng.randint(0, 50))) for _ in range(150)]
    path = write_lines(tmp_path, lines)

    def loader() -> Any:
        pipe = hr.lines(path).shuffle().tokenize_bpe(ranks=byte_ranks).pack_tokens(32, bins=5).batch(3)
        return pipe.loader(output="numpy", threads=2, seed=5, epochs=2)

    whole = [batch.tokens.tolist() for batch in loader()]
    stop = rng.randrange(1, len(whole))
    first = loader()
    got = []
    for batch in first:
        got.append(batch.tokens.tolist())
        if len(got) == stop:
            break
    second = loader()
    second.load_state_dict(first.state_dict())
    assert got + [batch.tokens.tolist() for batch in second] == whole


def test_padding_with_mask_and_lengths(tmp_path: pathlib.Path, byte_ranks: pathlib.Path) -> None:
    pipe = (
        hr.lines(write_lines(tmp_path, ["ab", "", "abcde"]))
        .tokenize_bpe(ranks=byte_ranks)
        .pad_tokens(length=5, value=9, side="start", mask=True, lengths=True)
        .batch(3)
    )
    (batch,) = pipe.loader(output="numpy")
    assert batch.tokens.tolist() == [[9, 9, 9, 97, 98], [9] * 5, [97, 98, 99, 100, 101]]
    assert batch.tokens_mask.dtype == np.bool_
    assert batch.tokens_mask.sum(1).tolist() == batch.tokens_length.tolist() == [2, 0, 5]
    with pytest.raises(hr.HeadraceError, match=r"tokens\.truncate"):
        list(hr.lines(tmp_path / "lines.txt").tokenize_bpe(ranks=byte_ranks).pad_tokens(length=4).batch(3).loader())


# ---- tokens.embed, text.detokenize ----


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8", "bool"])
def test_vectors_are_rows_of_the_table(tmp_path: pathlib.Path, byte_ranks: pathlib.Path, dtype: str) -> None:
    table = np.random.default_rng().integers(0, 100, (256, 5)).astype(dtype)
    np.save(tmp_path / "my table.npy", table)
    lines = ["water", "", "\u00e9"]
    pipe = hr.lines(write_lines(tmp_path, lines)).tokenize_bpe(ranks=byte_ranks).embed_tokens(tmp_path / "my table.npy")
    for threads in (1, 2):
        (batch,) = pipe.batch(3, ragged=True).loader(output="numpy", threads=threads)
        for line, tokens, vectors in zip(lines, batch.tokens.items(), batch.embeddings.items(), strict=True):
            assert tokens.tolist() == list(line.encode())
            assert vectors.dtype == dtype and vectors.shape == (len(tokens), 5)
            assert np.array_equal(vectors, table[tokens])


def test_tables_that_cannot_be_used(tmp_path: pathlib.Path, byte_ranks: pathlib.Path) -> None:
    pipe = hr.lines(write_lines(tmp_path, ["water"])).tokenize_bpe(ranks=byte_ranks)
    path = tmp_path / "table.npy"
    for array, words in [
        (np.zeros((256, 2), ">f4"), "little-endian"),
        (np.zeros((2, 256)).T, "ascontiguousarray"),
        (np.zeros(256), "must be a matrix"),
        (np.zeros((9, 2)), r"id 119 is no row of .*table\.npy, which has 9"),
    ]:
        np.save(path, array)
        with pytest.raises(hr.HeadraceError, match=words):
            list(pipe.embed_tokens(path).batch(1, ragged=True).loader())
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(hr.HeadraceError, match="the file ends before its data"):
        list(pipe.embed_tokens(path).batch(1, ragged=True).loader())


def test_texts_come_back(tmp_path: pathlib.Path, byte_ranks: pathlib.Path) -> None:
    lines = ["water wheel", "", "\u65e5\u672c \U0001f600"]
    pipe = hr.lines(write_lines(tmp_path, lines)).tokenize_bpe(ranks=byte_ranks).detokenize(ranks=byte_ranks)
    assert list(column(pipe, "text")) == lines


# ---- text.tokenize_wordpiece ----

# Newer than the library's tables, or than ours: decompositions and lower case differ.
NEW_CODES = {*range(0x16EA0, 0x16EB9), 0xA7CE, 0xA7D2, 0xA7D4}


def bert_lines(rng: random.Random, words: list[str]) -> list[str]:
    """Every character that both tables have, and mixtures of words."""
    chars = [c for c in known() if ord(c) not in NEW_CODES]
    accents = [c for c in chars if unicodedata.combining(c)]
    lines = ["".join(f"a{c} " for c in chars[i : i + 200]) for i in range(0, len(chars), 200)]
    for _ in range(3000):
        parts = rng.choices(
            [*words, " ", ",", "\u00a0", "'s", rng.choice(chars), rng.choice(accents)], k=rng.randrange(20)
        )
        lines.append("".join(part.upper() if rng.random() < 0.2 else part for part in parts))
    lines.append("a" * 99 + " " + "a" * 100 + " " + "a" * 101)
    return [line.translate({0x0B: None, 0x0C: None, 0x85: None}) for line in lines]


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("accents", ["auto", "strip", "keep"])
def test_word_pieces_are_those_of_hugging_face(
    tmp_path: pathlib.Path, rng: random.Random, lower: bool, accents: Any
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    some = [*"abcdetsw\u00e9\u00df\u03c3\u0436\u65e5", "water", "wheel", "the", "in"]
    chars = [chr(c) for c in range(33, 0x3000) if chr(c).isprintable()]
    pieces = ["[UNK]", *dict.fromkeys([*chars, *some, *(f"##{piece}" for piece in [*chars, *some])])]
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_bytes("\n".join(pieces).encode())
    strip = {"auto": None, "strip": True, "keep": False}[accents]
    other = tokenizers.Tokenizer(tokenizers.models.WordPiece({p: i for i, p in enumerate(pieces)}, unk_token="[UNK]"))
    other.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=lower, strip_accents=strip)
    other.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    lines = bert_lines(rng, some)
    pipe = hr.lines(write_lines(tmp_path, lines)).tokenize_wordpiece(vocab=vocabulary, lower=lower, accents=accents)
    batches = pipe.batch(500, ragged=True).loader(output="numpy")
    got = [item.tolist() for batch in batches for item in batch.tokens.items()]
    for line, ids in zip(lines, got, strict=True):
        assert ids == other.encode(line, add_special_tokens=False).ids, ascii(line)


# ---- tokens.mask ----


def test_masks_differ_between_epochs_and_not_between_threads(tmp_path: pathlib.Path, byte_ranks: pathlib.Path) -> None:
    path = write_lines(tmp_path, ["water wheel " * 20] * 10)
    pipe = hr.lines(path).tokenize_bpe(ranks=byte_ranks).mask_tokens(3, vocab_size=256, special=[32]).batch(5)

    def masked(**options: Any) -> list[Any]:
        return [
            (b.tokens.tolist(), b.labels.tolist()) for b in pipe.loader(output="numpy", epochs=2, seed=1, **options)
        ]

    whole = masked(threads=1)
    assert whole == masked(threads=3)
    assert whole[:2] != whole[2:]
    tokens, labels = np.array(whole[0][0]), np.array(whole[0][1])
    plain = np.frombuffer(b"water wheel " * 20, np.uint8)
    assert ((labels == -100) | (labels == plain)).all()
    assert (tokens == plain)[labels == -100].all()
    assert not (labels == 32).any() and (tokens == 3).any()
