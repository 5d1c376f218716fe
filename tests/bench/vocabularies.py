"""Vocabularies to measure with: single bytes, a model's tokenizer, or the first part of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["BenchVocabulary", "byte_vocabulary", "read_vocabulary", "tokenizer_vocabulary"]


@dataclass(frozen=True, slots=True)
class BenchVocabulary:
    """Byte string of each id (None where it spells no text), the id that ends a record, and how text becomes ids."""

    name: str
    tokens: tuple[bytes | None, ...]
    eos_id: int
    encode: Callable[[str], list[int]]

    @property
    def size(self) -> int:
        return len(self.tokens)


def byte_vocabulary() -> BenchVocabulary:
    """256 ids of one byte each, then the end."""
    tokens = (*(bytes([value]) for value in range(256)), None)
    return BenchVocabulary("256 single bytes", tokens, 256, lambda text: list(text.encode()))


def tokenizer_vocabulary(folder: Path, *, most_ids: int | None = None) -> BenchVocabulary:
    """The vocabulary of the tokenizer in `folder`, of which the ids from `most_ids` on are left out.

    With `most_ids`, text is encoded by the longest match instead of by merges, and the last id becomes the end.
    """
    from transformers import AutoTokenizer

    from pipeline.decoding import Vocabulary

    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokens = list(Vocabulary.from_tokenizer(tokenizer).tokens)
    if most_ids is None:
        return BenchVocabulary(
            f"{folder.name} {len(tokens)}", tuple(tokens), int(tokenizer.eos_token_id), _encoder(tokenizer)
        )
    cut = [*tokens[: most_ids - 1], None]
    return BenchVocabulary(f"{folder.name} cut to {most_ids}", tuple(cut), most_ids - 1, _longest_match(cut))


def read_vocabulary(spelling: str) -> BenchVocabulary:
    """`bytes`, `FOLDER` of a tokenizer, or `FOLDER:N` for its first N ids."""
    if spelling == "bytes":
        return byte_vocabulary()
    folder, _, most = spelling.partition(":")
    return tokenizer_vocabulary(Path(folder), most_ids=int(most) if most else None)


def _encoder(tokenizer: Any) -> Callable[[str], list[int]]:
    def encode(text: str) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=False))

    return encode


def _longest_match(tokens: list[bytes | None]) -> Callable[[str], list[int]]:
    ids = {token: index for index, token in enumerate(tokens) if token is not None}
    longest = max(len(token) for token in ids)

    def encode(text: str) -> list[int]:
        data = text.encode()
        found: list[int] = []
        place = 0
        while place < len(data):
            end = next(end for end in range(min(len(data), place + longest), place, -1) if data[place:end] in ids)
            found.append(ids[data[place:end]])
            place = end
        return found

    return encode
