"""Tokenizers by themselves, with the ids of tiktoken, of Hugging Face's library and of sentencepiece."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from . import _headrace
from ._numpy import np
from ._types import PathLike
from .errors import ArgumentError, RangeError, translate, translated

if TYPE_CHECKING:
    import numpy.typing as npt

Pattern: TypeAlias = Literal["r50k", "cl100k", "o200k", "llama3"]


class Tokenizer:
    """Text to token ids and back; made by `from_gpt2`, `from_tiktoken`, `from_json` or
    `from_sentencepiece`.

    The ids are those of tiktoken's `encode_ordinary` and of Hugging Face's tokenizers with
    `add_special_tokens=False`: text that looks like a special token is ordinary text. Each byte of
    a text that is not part of a well-formed UTF-8 character is encoded as it is, so `decode` with
    `errors="surrogateescape"` returns what was encoded. Immutable and thread-safe; a call releases
    the interpreter's lock unless the text is short. Each thread that encodes uses about 20 MB.

    A pickled tokenizer holds the paths of its files, which are read again where it is loaded.
    """

    __slots__ = ("_args", "_handle")
    _args: tuple[str, str, str]

    def __init__(self, form: str, path: PathLike, other: PathLike = "") -> None:
        self._args = (form, os.fspath(path), os.fspath(other))
        with translated():
            self._handle = _headrace.Tokenizer(*self._args)

    @classmethod
    def from_gpt2(cls, encoder_json: PathLike, vocab_bpe: PathLike) -> Tokenizer:
        """GPT-2's pair of files, pattern r50k.

        Args:
            encoder_json: tokens and their ids (encoder.json, vocab.json).
            vocab_bpe: merges, one a line (vocab.bpe, merges.txt).

        Raises:
            MissingFileError, ReadError, FormatError, LimitError: a file is missing, cannot be read,
                is malformed, or is longer than 64 MiB.
        """
        return cls("gpt2", os.path.abspath(encoder_json), os.path.abspath(vocab_bpe))

    @classmethod
    def from_tiktoken(cls, path: PathLike, pattern: Pattern) -> Tokenizer:
        """A rank file of tiktoken: a token in base64 and its rank, which is its id, per line.

        Args:
            path: the file (cl100k_base.tiktoken, Llama 3's tokenizer.model).
            pattern: how text is split into words: "r50k", "cl100k", "o200k" or "llama3".

        Raises:
            ArgumentError: there is no such pattern. For files, as from_gpt2.
        """
        return cls("tiktoken", os.path.abspath(path), pattern)

    @classmethod
    def from_json(cls, path: PathLike) -> Tokenizer:
        """Hugging Face's tokenizer.json, if it is byte-level BPE, WordPiece (BERT, DistilBERT) or Unigram (T5,
        XLNet, ALBERT, mBART, XLM-R).

        With BPE there must be no normalizer, and the pre_tokenizer must be ByteLevel, or a Split by
        the pattern of GPT-2, Llama 3 or o200k followed by ByteLevel. With WordPiece the normalizer
        must be BertNormalizer or none, the pre_tokenizer BertPreTokenizer, the decoder WordPiece or
        none. With Unigram the normalizer is made of Precompiled, NFC, NFD, NFKC, NFKD, Lowercase,
        StripAccents, Strip and Replace, the pre_tokenizer of WhitespaceSplit and Metaspace, and the
        decoder is Metaspace, or Replace, ByteFallback, Fuse and Strip, or none. The post_processor,
        truncation and padding are not applied; special tokens are only decoded.

        Raises:
            UnsupportedError: it is another kind of tokenizer. For the file, as from_gpt2.
        """
        return cls("json", os.path.abspath(path))

    @classmethod
    def from_sentencepiece(cls, path: PathLike) -> Tokenizer:
        """A model file of SentencePiece (spm.model, tokenizer.model), of type unigram or bpe.

        The ids are those of the sentencepiece library. Text is normalised by the model's rules
        first, and bytes that are not UTF-8 are U+FFFD; `decode` returns the normalised text.
        Control symbols such as "<s>" are ordinary text for `encode`, and nothing for `decode`.

        Raises:
            UnsupportedError: the model is of type word or char, or has a denormalizer. For the
                file, as from_gpt2.
        """
        return cls("sentencepiece", os.path.abspath(path))

    def encode(self, text: str | bytes) -> npt.NDArray[np.int32]:
        """The ids of a text, int32 [n].

        Raises:
            UnicodeEncodeError: a str has lone surrogates; pass `text.encode(errors="surrogatepass")`.
            LimitError: the text is longer than 2 GiB.
        """
        try:  # `with translated()` takes longer than a short text
            return np.frombuffer(self._handle.encode(text), np.int32)
        except _headrace.Error as error:
            made = translate(error)
            raise made from made.__cause__

    def encode_batch(
        self, texts: Sequence[str | bytes], threads: int = 0
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """The ids of many texts in one array, and where each begins.

        Args:
            texts: str or bytes.
            threads: 1 to 256; 0: one for each CPU. The result does not depend on it.

        Returns:
            (values, offsets): int32 [n] and int64 [len(texts) + 1]. The ids of text i are
            `values[offsets[i] : offsets[i + 1]]`.
        """
        with translated():
            values, offsets = self._handle.encode_batch(texts, threads)
        return np.asarray(values), np.frombuffer(offsets, np.int64)

    def decode(self, ids: npt.ArrayLike, errors: str = "replace") -> str:
        """The text of ids.

        Args:
            ids: integers of any shape, in order.
            errors: what becomes of bytes that are not UTF-8, as for bytes.decode.

        Raises:
            RangeError: an id is no token.
        """
        array = np.asarray(ids)
        if array.size and array.dtype.kind not in "iu":
            raise ArgumentError(f"ids must be integers, not {array.dtype}", param="ids")
        if array.size and (array.min() < 0 or array.max() >= self.vocab_size):
            raise RangeError(f"ids must be 0 to {self.vocab_size - 1}", param="ids")
        with translated():
            return self._handle.decode(np.ascontiguousarray(array, np.int32)).decode(errors=errors)

    @property
    def vocab_size(self) -> int:
        """The largest id plus one."""
        return self._handle.vocab_size

    def __reduce__(self) -> tuple[Any, ...]:
        return Tokenizer, self._args

    def __repr__(self) -> str:
        return f"<headrace.Tokenizer of {self._args[1]}, {self.vocab_size} ids>"
