"""A tokenizer's vocabulary as byte strings, and as a trie.

Ids that do not spell text (control, added and unused tokens) have no bytes and are never legal inside a record.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pipeline.core.errors import SpecError
from pipeline.decoding.arrays import Array
from pipeline.decoding.trie import Trie, TriePaths
from pipeline.decoding.unescaped import UnescapedIds

__all__ = ["Vocabulary"]


_MAX_TOKEN_BYTES = 255


class Vocabulary:
    """The byte string of each id.

    Args:
        tokens: one entry an id; None where the id spells no text (strings of over 255 bytes are left out).
        eos_ids: ids that end a completion.
        fingerprint: of the content; computed where it is not given.
    """

    def __init__(self, tokens: Sequence[bytes | None], eos_ids: Iterable[int], fingerprint: str | None = None) -> None:
        self.tokens = tuple(token if token and len(token) <= _MAX_TOKEN_BYTES else None for token in tokens)
        self.eos_ids = tuple(sorted(eos_ids))
        self.fingerprint = fingerprint or self._digest()

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def size(self) -> int:
        """Ids, spelling text or not."""
        return len(self.tokens)

    def _digest(self) -> str:
        digest = hashlib.sha256(json.dumps(self.eos_ids).encode())
        for token in self.tokens:
            digest.update(len(token or b"").to_bytes(4, "little") + (token or b""))
        return digest.hexdigest()[:16]

    @cached_property
    def max_token_bytes(self) -> int:
        return max(len(token) for token in self.tokens if token)

    @cached_property
    def trie(self) -> Trie:
        """Built once; 255,785 strings take well under a second."""
        return Trie.of(self.tokens)

    @cached_property
    def paths(self) -> TriePaths:
        return TriePaths.of(self.trie, self.size)

    @cached_property
    def unescaped(self) -> UnescapedIds:
        return UnescapedIds.of(self.tokens, *self.spelt)

    @cached_property
    def spelt(self) -> tuple[Array, Array]:
        """All byte strings in one uint8 array, and int32[size + 1] where each begins in it."""
        starts = np.zeros(self.size + 1, np.int64)
        np.cumsum([len(token or b"") for token in self.tokens], out=starts[1:])
        return np.frombuffer(b"".join(token or b"" for token in self.tokens), np.uint8), starts.astype(np.int32)

    def decode(self, token_ids: Iterable[int]) -> bytes:
        """The bytes that the ids spell together; ids without bytes add none."""
        return b"".join(self.tokens[index] or b"" for index in token_ids)

    @classmethod
    def from_tokenizer(cls, tokenizer: Any, *, size: int | None = None) -> Vocabulary:
        """Reads a `transformers` fast tokenizer: byte-level BPE (GPT-2's alphabet) or SentencePiece with byte fallback.

        Args:
            tokenizer: a `PreTrainedTokenizerFast`, or an object with `vocabulary_bytes()` and `eos_token_id`.
            size: ids of the model's output, where it is padded beyond the tokenizer's.

        Raises:
            SpecError: the tokenizer is of another kind, or has no end-of-sequence token.
        """
        if tokenizer.eos_token_id is None:
            raise SpecError("the model's tokenizer has no end-of-sequence token, which guided decoding needs")
        own = getattr(tokenizer, "vocabulary_bytes", None)
        tokens: list[bytes | None] = _spelled(tokenizer) if own is None else list(own())
        tokens += [None] * ((size or 0) - len(tokens))
        tokens[tokenizer.eos_token_id] = None
        return cls(tokens, {tokenizer.eos_token_id})


def _spelled(tokenizer: Any) -> list[bytes | None]:
    backend = tokenizer.backend_tokenizer
    steps = [step for step in (backend.decoder, backend.pre_tokenizer, backend.normalizer) if step is not None]
    # A step's state is its part of tokenizer.json; the whole file holds every merge and takes seconds to parse.
    kinds = "".join(step.__getstate__().decode() for step in steps)
    if '"ByteLevel"' in kinds:
        spell = _byte_level
    elif "▁" in kinds or '"ByteFallback"' in kinds:
        spell = _sentencepiece
    else:
        raise SpecError("the model's tokenizer is neither byte-level BPE nor SentencePiece with byte fallback")
    vocabulary = backend.get_vocab(with_added_tokens=False)
    added = set(tokenizer.added_tokens_decoder)
    size = max(max(vocabulary.values()), max(added, default=0)) + 1
    tokens: list[bytes | None] = [None] * size
    for text, index in vocabulary.items():
        if index not in added and not _is_control(text):
            tokens[index] = spell(text)
    return tokens


def _is_control(text: str) -> bool:
    return text.startswith("<") and text.endswith(">") and text.startswith(("<unused", "<|"))


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's printable stand-ins for bytes (Radford et al., 2019, `bytes_to_unicode`)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = {chr(value): value for value in printable}
    for offset, value in enumerate(value for value in range(256) if value not in set(printable)):
        alphabet[chr(256 + offset)] = value
    return alphabet


_ALPHABET = _byte_alphabet()


def _byte_level(text: str) -> bytes | None:
    try:
        return bytes(_ALPHABET[char] for char in text)
    except KeyError:
        return None


def _sentencepiece(text: str) -> bytes:
    if len(text) == 6 and text.startswith("<0x") and text.endswith(">"):
        return bytes([int(text[3:5], 16)])
    return text.replace("▁", " ").encode()
