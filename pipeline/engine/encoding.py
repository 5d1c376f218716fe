"""Encodes text that is not trusted: whatever a document holds, none of its ids is a control token.

A tokenizer reads `<|im_end|>` in a text as the control token that ends a turn, so a document could forge one.
`encode_special_tokens` stops that for the tokens that a tokenizer calls special, but not for the others that were
added (`<tool_call>`, `<think>`): texts that hold one are cut inside it and encoded in pieces.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, Protocol

from pipeline.core.errors import EngineStartError, RequestRefusedError
from pipeline.engine.byte_tokenizer import ByteTokenizer

__all__ = ["DocumentEncoder", "Encoded", "document_encoder", "without_surrogates"]

_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"
_BLANKS = " \t\r\n\u2581"


@dataclass(frozen=True, slots=True)
class Encoded:
    """Ids, and for each the characters `[start, end)` of the text that it stands for."""

    ids: list[int]
    offsets: list[tuple[int, int]]


class DocumentEncoder(Protocol):
    """Encodes text that is not trusted.  The text holds no lone surrogate."""

    def ids(self, text: str) -> list[int]:
        """The text's ids, the fast way."""

    def encode(self, text: str) -> Encoded:
        """The text's ids with their places."""


def document_encoder(tokenizer: Any) -> DocumentEncoder:
    """The encoder that goes with a tokenizer.

    Raises:
        EngineStartError: the tokenizer is not a fast one, and would not tell where its tokens stand.
    """
    if isinstance(tokenizer, ByteTokenizer):
        return _ByteEncoder()
    if not getattr(tokenizer, "is_fast", False):
        raise EngineStartError("the model has no fast tokenizer (tokenizer.json), which is needed to encode documents")
    return _FastEncoder(tokenizer)


def without_surrogates(text: str) -> str:
    """The text with each lone surrogate, which no encoding can write, replaced by U+FFFD; lengths stay."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub(_REPLACEMENT, text)
    return text


class _ByteEncoder:
    def ids(self, text: str) -> list[int]:
        return list(text.encode())

    def encode(self, text: str) -> Encoded:
        offsets = [(place, place + 1) for place, char in enumerate(text) for _ in char.encode()]
        return Encoded(self.ids(text), offsets)


class _FastEncoder:
    """Over a twin of the tokenizer's Rust half, so that the original still reads control tokens in templates."""

    def __init__(self, tokenizer: Any) -> None:
        self._backend = _twin(tokenizer.backend_tokenizer)
        self._backend.no_truncation()
        self._backend.no_padding()
        self._backend.encode_special_tokens = True
        self._forbidden = frozenset(
            token_id for token_id, token in tokenizer.added_tokens_decoder.items() if token.content.strip(_BLANKS)
        )

    def ids(self, text: str) -> list[int]:
        ids: list[int] = self._backend.encode_batch_fast([text], add_special_tokens=False)[0].ids
        return ids if self._forbidden.isdisjoint(ids) else self._encode_in_pieces(text).ids

    def encode(self, text: str) -> Encoded:
        encoding = self._backend.encode(text, add_special_tokens=False)
        if self._forbidden.isdisjoint(encoding.ids):
            return Encoded(encoding.ids, encoding.offsets)
        return self._encode_in_pieces(text)

    def _encode_in_pieces(self, text: str) -> Encoded:
        """Cuts the text inside each token that it must not hold, until it holds none."""
        done: list[tuple[int, Encoded]] = []
        pending = [(0, text)]
        while pending:
            start, piece = pending.pop()
            encoding = self._backend.encode(piece, add_special_tokens=False)
            forged = [
                offset for token_id, offset in zip(encoding.ids, encoding.offsets, strict=True)
                if token_id in self._forbidden
            ]  # fmt: skip
            if not forged:
                done.append((start, Encoded(encoding.ids, encoding.offsets)))
            elif any(stop - begin < 2 for begin, stop in forged):
                pending.append((start, _blotted(piece, forged)))
            else:
                cuts = [0, *(begin + 1 for begin, _ in forged), len(piece)]
                pending.extend((start + a, piece[a:b]) for a, b in pairwise(cuts) if a < b)
        done.sort(key=lambda item: item[0])
        return Encoded(
            [token_id for _, encoded in done for token_id in encoded.ids],
            [(start + a, start + b) for start, encoded in done for a, b in encoded.offsets],
        )


def _blotted(piece: str, forged: list[tuple[int, int]]) -> str:
    """The text without the added tokens that are one character long, which cannot be cut."""
    characters = list(piece)
    for begin, stop in forged:
        if stop - begin < 2 and begin < len(characters):
            characters[begin] = _REPLACEMENT
    blotted = "".join(characters)
    if blotted == piece:
        raise RequestRefusedError("the document cannot be encoded without a control token in it")
    return blotted


def _twin(backend: Any) -> Any:
    """A `tokenizers.Tokenizer` with settings of its own over the same vocabulary and merges.

    Copied as JSON, as `copy.deepcopy` does it too, those of 262,144 ids take more than a second.
    """
    from tokenizers import Tokenizer

    twin = Tokenizer(backend.model)
    for part in ("normalizer", "pre_tokenizer", "decoder", "post_processor"):
        if (own := getattr(backend, part)) is not None:
            setattr(twin, part, own)
    added = backend.get_added_tokens_decoder()
    for is_special, run in groupby((added[token_id] for token_id in sorted(added)), key=lambda token: token.special):
        (twin.add_special_tokens if is_special else twin.add_tokens)(list(run))
    if {token_id: repr(token) for token_id, token in twin.get_added_tokens_decoder().items()} != {
        token_id: repr(token) for token_id, token in added.items()
    }:
        return Tokenizer.from_str(backend.to_str())
    return twin
