"""A tokenizer's vocabulary as byte strings, and as a trie in preorder.

Ids that do not spell text (control, added and unused tokens) have no bytes and are never legal inside a record.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pipeline.core.errors import SpecError
from pipeline.decoding.arrays import Array

__all__ = ["Trie", "TriePaths", "Vocabulary"]


@dataclass(frozen=True, slots=True)
class Trie:
    """The vocabulary's byte strings in one tree, nodes in preorder, without a root.

    `byte` uint8[N], `depth` uint8[N] (1 for a first byte), `after` int32[N] (the first node outside the subtree),
    `height` uint8[N] (most bytes below), `has_quote` uint8[N] (whether a `"` is among the bytes below),
    `first` int32[N+1] (node i's ids are `ids[first[i]:first[i+1]]`), `ids` int32[T].
    """

    byte: Array
    depth: Array
    after: Array
    height: Array
    has_quote: Array
    first: Array
    ids: Array

    @property
    def arrays(self) -> tuple[Array, ...]:
        return self.byte, self.depth, self.after, self.height, self.has_quote, self.first, self.ids


@dataclass(frozen=True, slots=True)
class TriePaths:
    """What making rows by the dozen needs of a trie.

    `node_of_id` int32[32 * words] (the node where an id's string ends; N for those without one), `reaching` int64[257]
    (nodes on the way to a string of at least so many bytes).
    """

    node_of_id: Array
    reaching: Array


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
        from pipeline.decoding.compile_kernels import build_trie

        return Trie(*build_trie(*self._sorted()))

    @cached_property
    def paths(self) -> TriePaths:
        trie = self.trie
        nodes = len(trie.byte)
        node_of_id = np.full((self.size + 31) // 32 * 32, nodes, np.int32)
        node_of_id[trie.ids] = np.repeat(np.arange(nodes, dtype=np.int32), np.diff(trie.first))
        reached = np.bincount(trie.depth.astype(np.int64) + trie.height, minlength=257)
        return TriePaths(node_of_id, reached[::-1].cumsum()[::-1].copy())

    @cached_property
    def spelt(self) -> tuple[Array, Array]:
        """All byte strings in one uint8 array, and int32[size + 1] where each begins in it."""
        starts = np.zeros(self.size + 1, np.int64)
        np.cumsum([len(token or b"") for token in self.tokens], out=starts[1:])
        return np.frombuffer(b"".join(token or b"" for token in self.tokens), np.uint8), starts.astype(np.int32)

    def _sorted(self) -> tuple[Array, Array, Array]:
        spelling = sorted((token, index) for index, token in enumerate(self.tokens) if token is not None)
        offsets = np.zeros(len(spelling) + 1, np.int64)
        np.cumsum([len(token) for token, _ in spelling], out=offsets[1:])
        data = np.frombuffer(b"".join(token for token, _ in spelling), np.uint8)
        return data, offsets, np.array([index for _, index in spelling], np.int32)

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
