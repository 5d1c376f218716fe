"""Our guides behind vLLM's structured-output interface.

Owns the two classes that vLLM's engine core calls at each step, and the shelf of guides that engine core has opened.
It decides nothing about what is legal: every question goes to a `Cursor`.  Runs in the engine core process only.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from vllm.utils.torch_utils import PIN_MEMORY
from vllm.v1.structured_output.backend_outlines import OutlinesBackend
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

from pipeline.core.errors import RequestRefusedError
from pipeline.decoding.guide import Guide
from pipeline.decoding.span_document import SpanDocument
from pipeline.engine.wire import Binding, is_guide_literal

if TYPE_CHECKING:
    from vllm.config import VllmConfig

__all__ = ["CursorGrammar", "GuideBackend", "GuideShelf", "MaskRows"]

logger = logging.getLogger(__name__)

_WORD_BITS = 32
_WORD_BYTES = 4


class CursorLike(Protocol):
    """What is asked of a `pipeline.decoding.Cursor`."""

    @property
    def is_terminated(self) -> bool: ...

    def advance(self, token_id: int) -> bool: ...

    def rollback(self, n: int) -> None: ...

    def validate(self, token_ids: Sequence[int]) -> list[int]: ...

    def forced(self) -> bytes: ...

    def write_mask(self, address: int) -> None: ...

    def reset(self) -> None: ...


class GuideLike(Protocol):
    """What is asked of a `pipeline.decoding.Guide`."""

    fingerprint: str
    vocab_size: int

    def warm(self) -> None: ...

    def cursor(
        self, budget_tokens: int | None = None, reserve: Sequence[int] = (), document: SpanDocument | None = None
    ) -> CursorLike: ...


@dataclass(slots=True)
class MaskRows:
    """Where the rows of vLLM's bitmask lie in memory.

    vLLM allocates one bitmask for the life of the engine; asking torch for a row's address costs more than writing
    the row, so the base address and the stride are kept and looked at again only if the tensor is another one.
    """

    base: int = 0
    stride_bytes: int = 0

    def address(self, bitmask: torch.Tensor, row: int) -> int:
        base: int = bitmask.data_ptr()
        if base != self.base:
            # The base last: vLLM fills many rows from several threads, and who sees it takes the stride for right.
            self.stride_bytes = bitmask.stride(0) * bitmask.element_size()
            self.base = base
        return base + row * self.stride_bytes


class CursorGrammar(StructuredOutputGrammar):  # type: ignore[misc]
    """One request's position in its guide, as vLLM asks for it.

    Tokens after the end token are ignored, as the stock backends do: with asynchronous scheduling vLLM may deliver
    some before it notices that the request is over.
    """

    def __init__(
        self, cursor: CursorLike, prefix: Sequence[int], rows: MaskRows, unused_bytes: tuple[int, int]
    ) -> None:
        """
        Args:
            cursor: at the start of the record.
            prefix: ids of the record that stand at the end of the prompt already.
            rows: shared by all grammars of the engine.
            unused_bytes: offset and length, within a row, of what the guide does not write: the ids that the
                model's logits have beyond the guide's vocabulary.

        Raises:
            RequestRefusedError: the guide does not allow the prefix.
        """
        self._cursor = cursor
        self._prefix = tuple(prefix)
        self._rows = rows
        self._unused_offset, self._unused_length = unused_bytes
        self._advance_over_prefix()

    def _advance_over_prefix(self) -> None:
        for position, token_id in enumerate(self._prefix):
            if not self._cursor.advance(token_id):
                raise RequestRefusedError(
                    f"token {position} of {len(self._prefix)} of the record's prefix (id {token_id}) "
                    "is not allowed by the guide within the budget"
                )

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        cursor = self._cursor
        for accepted, token_id in enumerate(tokens):
            if cursor.is_terminated:
                return True
            if not cursor.advance(token_id):
                cursor.rollback(accepted)
                return False
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        return [] if self._cursor.is_terminated else self._cursor.validate(tokens)

    def rollback(self, num_tokens: int) -> None:
        if num_tokens > 0:
            self._cursor.rollback(num_tokens)

    def forced(self) -> bytes:
        """What must follow, as far as the schema leaves no choice."""
        return self._cursor.forced()

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        self._write(self._rows.address(bitmask, batch_index))

    def write_mask(self, address: int) -> None:
        """As `fill_bitmask`, to the row at an address; all ids are legal once the request is over, as vLLM has it."""
        if self._cursor.is_terminated:
            ctypes.memset(address, 0xFF, self._unused_offset + self._unused_length)
        else:
            self._write(address)

    def _write(self, address: int) -> None:
        self._cursor.write_mask(address)
        if self._unused_length:
            ctypes.memset(address + self._unused_offset, 0, self._unused_length)

    def is_terminated(self) -> bool:
        return self._cursor.is_terminated

    def reset(self) -> None:
        self._cursor.reset()
        self._advance_over_prefix()


class GuideShelf:
    """The guides that this engine core has opened, by fingerprint.  Opened once, memory-mapped, never closed."""

    def __init__(self, vocab_size: int, load: Callable[[Path], GuideLike]) -> None:
        self._vocab_size = vocab_size
        self._load = load
        self._guides: dict[str, GuideLike] = {}

    def guide(self, fingerprint: str, path: Path) -> GuideLike:
        """The guide, opened at its first use.

        Raises:
            RequestRefusedError: the file is missing, holds another guide, or was made for a larger vocabulary than
                the model's logits have.
        """
        if (guide := self._guides.get(fingerprint)) is not None:
            return guide
        try:
            guide = self._load(path)
        except (OSError, ValueError) as error:
            raise RequestRefusedError(f"guide {fingerprint} cannot be opened: {error}") from error
        if guide.fingerprint != fingerprint:
            raise RequestRefusedError(f"{path.name} holds guide {guide.fingerprint}, not {fingerprint}")
        if _words(guide.vocab_size) > _words(self._vocab_size):
            raise RequestRefusedError(
                f"guide {fingerprint} was made for {guide.vocab_size} token ids; the model has {self._vocab_size}"
            )
        guide.warm()
        self._guides[fingerprint] = guide
        logger.info("guide %s opened", fingerprint)
        return guide


class _Unbound(StructuredOutputGrammar):  # type: ignore[misc]
    """What stands in a request until the scheduler binds it; nothing may be asked of it."""

    def _refuse(self) -> Any:
        raise RequestRefusedError("a guided request reached the sampler before the scheduler bound its cursor")

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        return bool(self._refuse())

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        return list(self._refuse())

    def rollback(self, num_tokens: int) -> None:
        self._refuse()

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        self._refuse()

    def is_terminated(self) -> bool:
        return bool(self._refuse())

    def reset(self) -> None:
        self._refuse()


class GuideBackend(StructuredOutputBackend):  # type: ignore[misc]
    """Makes grammars from guides; requests that are not ours get what vLLM's own Outlines backend makes of them."""

    def __init__(self, vllm_config: VllmConfig, tokenizer: Any, vocab_size: int) -> None:
        """
        Args:
            vllm_config: the engine's configuration.
            tokenizer: the engine's tokenizer; used for requests that are not ours only.
            vocab_size: how many ids the model's logits have.
        """
        super().__init__(vllm_config=vllm_config, tokenizer=tokenizer, vocab_size=vocab_size)
        self._rows = MaskRows()
        self._shelf = GuideShelf(vocab_size, Guide.load)
        self._stock: OutlinesBackend | None = None
        self._masks: torch.Tensor | None = None
        self._binder = ThreadPoolExecutor(1, thread_name_prefix="bind")

    def bind_soon(self, binding: Binding, prompt_ids: Sequence[int]) -> Future[StructuredOutputGrammar]:
        """As `bind`, in a thread: a cursor over a document takes milliseconds, and the scheduler has steps to make."""
        return self._binder.submit(self.bind, binding, prompt_ids)

    def bind(self, binding: Binding, prompt_ids: Sequence[int]) -> CursorGrammar:
        """The grammar of one request of ours.

        Raises:
            RequestRefusedError: the guide cannot be had, or does not allow the record's prefix.
        """
        guide = self._shelf.guide(binding.fingerprint, Path(binding.path))
        prefix = prompt_ids[len(prompt_ids) - binding.prefix_tokens :] if binding.prefix_tokens else ()
        written = _words(guide.vocab_size) * _WORD_BYTES
        unused = (written, _words(self.vocab_size) * _WORD_BYTES - written)
        return CursorGrammar(_cursor(guide, binding), prefix, self._rows, unused)

    def compile_grammar(
        self, request_type: StructuredOutputOptions, grammar_spec: str, stop_token_ids: set[int] | None = None
    ) -> StructuredOutputGrammar:
        if request_type is StructuredOutputOptions.REGEX and is_guide_literal(grammar_spec):
            return _Unbound()
        if self._stock is None:
            self._stock = OutlinesBackend(self.vllm_config, tokenizer=self.tokenizer, vocab_size=self.vocab_size)
        return self._stock.compile_grammar(request_type, grammar_spec, stop_token_ids)

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        return torch.full((max_num_seqs, _words(self.vocab_size)), -1, dtype=torch.int32, pin_memory=PIN_MEMORY)

    def masks(self, grammars: Sequence[CursorGrammar], most: int) -> npt.NDArray[np.int32]:
        """The masks of a batch int32[len(grammars), words], in one loop; they stand until the next call.

        Args:
            grammars: one for each row, `most` of them at most.
        """
        if self._masks is None or len(self._masks) < most:
            self._masks = self.allocate_token_bitmask(most)
        address, stride_bytes = self._masks.data_ptr(), self._masks.stride(0) * _WORD_BYTES
        for grammar in grammars:
            grammar.write_mask(address)
            address += stride_bytes
        filled: npt.NDArray[np.int32] = self._masks.numpy()[: len(grammars)]
        return filled

    def destroy(self) -> None:
        """Ends the thread; the mapped guides go with the process."""
        self._binder.shutdown(wait=True, cancel_futures=True)


def _cursor(guide: GuideLike, binding: Binding) -> CursorLike:
    try:
        document = None if binding.document is None else SpanDocument.from_bytes(binding.document)
        return guide.cursor(binding.budget_tokens, binding.reserve_tokens, document)
    except ValueError as error:
        raise RequestRefusedError(str(error)) from error


def _words(vocab_size: int) -> int:
    return (vocab_size + _WORD_BITS - 1) // _WORD_BITS
