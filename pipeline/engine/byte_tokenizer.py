"""A tokenizer without a model: ids 0 to 255 are the bytes, 256 ends a completion.

It has just what `PromptBuilder` and `Vocabulary.from_tokenizer` ask of a tokenizer, so that a whole run can be played
by the scripted engine.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["ByteTokenizer"]

_EOS_ID = 256


class ByteTokenizer:
    """Every text has exactly one encoding, and no text has a control id in it."""

    chat_template: str | None = None
    bos_token_id: int | None = None
    eos_token_id: int = _EOS_ID

    def __len__(self) -> int:
        return _EOS_ID + 1

    def vocabulary_bytes(self) -> list[bytes | None]:
        """The bytes of each id; None for the end token."""
        return [*(bytes([value]) for value in range(256)), None]

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        """The text's UTF-8 bytes."""
        return list(text.encode())

    def decode(self, token_ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        """The text of the ids; bytes that are no UTF-8 become U+FFFD."""
        return bytes(token_id for token_id in token_ids if token_id < _EOS_ID).decode("utf-8", "replace")
