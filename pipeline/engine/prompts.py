"""From a document to a prompt's token ids.

Owns the splice: the author's part of a prompt is encoded once, the document alone for each call, and the ids are put
together, so that nothing in a document can be read as markup.
"""

from __future__ import annotations

import hashlib
import json
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pipeline.core.errors import EngineStartError
from pipeline.core.sections import ModelSpec, PromptSpec
from pipeline.engine.byte_tokenizer import ByteTokenizer
from pipeline.engine.encoding import Encoded, document_encoder, without_surrogates
from pipeline.engine.scripted_model import is_scripted
from pipeline.engine.templates import Rendered, render
from pipeline.engine.vllm_args import check_model, is_folder, set_environment

__all__ = ["LongDocuments", "PromptBuilder", "PromptResult", "load_tokenizer"]

LongDocuments = Literal["reject", "head", "tail"]

_CHARACTERS_A_TOKEN = 6
_REASON_CHARACTERS = 400
_MARGIN_TOKENS = 32
"""Ids near a cut in the text may differ from those of the whole text; so many are not looked at."""


def load_tokenizer(model: ModelSpec) -> Any:
    """The model's tokenizer: a `transformers` fast tokenizer, or `ByteTokenizer` for the scripted model.

    Raises:
        EngineStartError: one line that names the model and what is wrong.
    """
    if is_scripted(model):
        return ByteTokenizer()
    check_model(model)
    set_environment(model)
    from transformers import AutoTokenizer

    name = str(Path(model.name).expanduser()) if is_folder(model) else model.name
    try:
        return AutoTokenizer.from_pretrained(
            name, revision=model.revision or "main", trust_remote_code=False, local_files_only=is_folder(model)
        )
    except (OSError, ValueError, KeyError, ImportError) as error:
        reason = _reason(error)
        nearby = Path(model.name).parent
        hint = (
            f"; the folder {nearby} is here, without it"
            if name == model.name and nearby.name and nearby.is_dir()
            else ""
        )
        raise EngineStartError(f"the tokenizer of {model.name} cannot be loaded: {reason}{hint}") from error


def _reason(error: Exception) -> str:
    """What `transformers` said, on one line, or what it means that there is no copy on this machine."""
    from huggingface_hub import constants
    from huggingface_hub.errors import LocalEntryNotFoundError

    if not isinstance(error.__cause__, LocalEntryNotFoundError):
        return textwrap.shorten(str(error), _REASON_CHARACTERS, placeholder=" ...")
    asked = "HF_HUB_OFFLINE=0 would fetch it" if constants.HF_HUB_OFFLINE else f"{constants.ENDPOINT} does not answer"
    return f"there is no copy on this machine, and {asked}"


@dataclass(frozen=True, slots=True)
class PromptResult:
    """A prompt, or why there is none."""

    ids: list[int]
    """Empty where the document is too long."""
    document_tokens: int
    """Tokens of the document; of one that was not read to its end, at least so many."""
    document: str
    """The part of the document that the prompt holds, with lone surrogates replaced."""
    document_start: int = 0
    """Where that part starts in the whole document, in characters."""
    is_cut: bool = False
    is_too_long: bool = False


class PromptBuilder:
    """Builds the prompts of one job.  Not for use by two threads at once."""

    def __init__(self, tokenizer: Any, spec: PromptSpec, template: str | None, schema: Mapping[str, Any]) -> None:
        """
        Args:
            tokenizer: from `load_tokenizer`.
            spec: the system message and the examples.
            template: the text of `spec.template`, or None for the default.
            schema: the record's JSON Schema, as the template prints it.

        Raises:
            SpecError: the template cannot be rendered, or does not print the document exactly once.
            EngineStartError: the tokenizer cannot tell where its tokens stand in a text.
        """
        self._encoder = document_encoder(tokenizer)
        rendered = render(spec, template, schema, tokenizer)
        place = rendered.slots.index(None)
        self._fingerprint = _digest(rendered)
        self._head = _start_ids(tokenizer) + self._encode_fixed(tokenizer, rendered, 0, place + 1)
        self._tail = self._encode_fixed(tokenizer, rendered, place + 1, len(rendered.parts))

    def _encode_fixed(self, tokenizer: Any, rendered: Rendered, start: int, stop: int) -> list[int]:
        """The author's parts `[start, stop)`, and the texts put in between them."""
        ids: list[int] = []
        for index in range(start, stop):
            ids += tokenizer.encode(rendered.parts[index], add_special_tokens=False) if rendered.parts[index] else []
            if index < len(rendered.slots) and (text := rendered.slots[index]) is not None:
                ids += self._encoder.ids(without_surrogates(text))
        return ids

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits: of everything in the prompt but the document."""
        return self._fingerprint

    @property
    def fixed_tokens(self) -> int:
        """Tokens of a prompt around an empty document."""
        return len(self._head) + len(self._tail)

    def build(self, text: str, max_prompt_tokens: int | None = None, mode: LongDocuments = "reject") -> PromptResult:
        """The prompt of one document.

        Args:
            text: the document.
            max_prompt_tokens: what the prompt may take; None for no limit.
            mode: for a document that does not fit: `reject` gives no prompt, `head` and `tail` keep that end of it.

        Raises:
            RequestRefusedError: the text cannot be encoded without a control token in it.
        """
        text = without_surrogates(text)
        if max_prompt_tokens is None:
            ids = self._encoder.ids(text)
            return PromptResult(self._spliced(ids), len(ids), text)
        room = max_prompt_tokens - self.fixed_tokens
        if room < 1:
            return PromptResult([], 0, "", is_too_long=True)
        if len(text) <= room * _CHARACTERS_A_TOKEN:
            ids = self._encoder.ids(text)
            if len(ids) <= room:
                return PromptResult(self._spliced(ids), len(ids), text)
        encoded, start, is_whole = self._read(text, room, from_end=mode == "tail")
        if is_whole and len(encoded.ids) <= room:
            return PromptResult(self._spliced(encoded.ids), len(encoded.ids), text)
        if mode == "reject":
            return PromptResult([], len(encoded.ids), "", is_too_long=True)
        return self._cut(text, encoded, start, room, mode)

    def _read(self, text: str, room: int, *, from_end: bool) -> tuple[Encoded, int, bool]:
        """Encodes as much of one end of the text as shows whether it fits; where that starts; whether it is all."""
        characters = (room + _MARGIN_TOKENS) * _CHARACTERS_A_TOKEN
        while True:
            start = max(0, len(text) - characters) if from_end else 0
            piece = text[start:] if from_end else text[:characters]
            encoded = self._encoder.encode(piece)
            if len(piece) == len(text) or len(encoded.ids) > room + _MARGIN_TOKENS:
                return encoded, start, len(piece) == len(text)
            characters *= 4

    def _cut(self, text: str, encoded: Encoded, start: int, room: int, mode: LongDocuments) -> PromptResult:
        """Keeps `room` ids of one end, without a part of a character."""
        offsets, count = encoded.offsets, len(encoded.ids)
        if mode == "head":
            stop = room
            while 0 < stop < count and offsets[stop][0] < offsets[stop - 1][1]:
                stop -= 1
            ids, kept = encoded.ids[:stop], text[: offsets[stop - 1][1]] if stop else ""
            return PromptResult(self._spliced(ids), count, kept, is_cut=True)
        first = count - room
        while 0 < first < count and offsets[first][0] < offsets[first - 1][1]:
            first += 1
        at = start + offsets[first][0] if first < count else len(text)
        return PromptResult(self._spliced(encoded.ids[first:]), count, text[at:], document_start=at, is_cut=True)

    def _spliced(self, document_ids: list[int]) -> list[int]:
        return [*self._head, *document_ids, *self._tail]


def _start_ids(tokenizer: Any) -> list[int]:
    """What the tokenizer puts before every text by itself; a chat template writes it out."""
    if tokenizer.chat_template or tokenizer.bos_token_id is None:
        return []
    bos: int = tokenizer.bos_token_id
    return [bos] if tokenizer.encode("a", add_special_tokens=True)[:1] == [bos] else []


def _digest(rendered: Rendered) -> str:
    return hashlib.sha256(json.dumps([rendered.parts, rendered.slots]).encode()).hexdigest()[:16]
