"""A guide: an automaton compiled against one vocabulary.  Shared, read-only, one copy a machine.

It holds the byte table, which ids are legal in each state (distinct rows, most of them made ahead), the exact number of
tokens each state still needs, and the names of the fields.  It decides nothing: a `Cursor` walks it.
"""

from __future__ import annotations

import hashlib
import json
import mmap
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from pipeline.core.errors import SchemaRefusedError
from pipeline.decoding.arrays import Array, pack, unpack
from pipeline.decoding.automata import NO_TAG, Dfa
from pipeline.decoding.cost_shelf import CostShelf
from pipeline.decoding.row_shelf import RowShelf
from pipeline.decoding.trie import Trie
from pipeline.decoding.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pipeline.decoding.cursor import Cursor
    from pipeline.decoding.span_cursor import Walker
    from pipeline.decoding.span_document import SpanDocument

__all__ = ["FORMAT", "Guide"]

FORMAT = 3
_OF_VOCABULARY = ("trie_", "token_", "rest_", "unescaped_")
_RESERVE_TOKENS = 8
_FORCED_KEPT = 4096
_STEPS_KEPT = 1_000_000
_FORCED_BYTES = 256


class Guide:
    """Made by `compile_guide`, or read with `load`; see `tables.build_guide` for the arrays.

    Attributes:
        fingerprint: of the automaton, the vocabulary and the format.
        vocab_size: ids that a mask row speaks of.
        least_tokens: the fewest tokens that spell a record; the end-of-sequence token is not counted.
        fields: path of each field, by the field's index.
        span_kinds: settings of each kind of extractive field, for the finder of candidates.
        hole_of_state: kind, and state after it, of each place that the document fills.
        closing: what it costs to close from each state.
    """

    def __init__(self, meta: dict[str, Any], arrays: dict[str, Array]) -> None:
        self._meta = meta
        self._arrays = arrays
        self.fingerprint: str = meta["fingerprint"]
        self.vocab_size: int = meta["vocab_size"]
        self.eos_ids: tuple[int, ...] = tuple(meta["eos_ids"])
        self.fields: tuple[str, ...] = tuple(meta["fields"])
        self.table = arrays["table"]
        self.state_count = len(self.table)
        self.distance = arrays["distance"]
        self.least_tokens = int(self.distance[0])
        self.span_kinds: tuple[dict[str, Any], ...] = tuple(meta["span_kinds"])
        self.hole_of_state = {int(state): (int(kind), int(after)) for state, kind, after in arrays["holes"]}
        self.trie = Trie.from_arrays("trie", arrays)
        self.class_of_byte = arrays["class_of_byte"]
        self.accepting = arrays["accepting"]
        self.words = (self.vocab_size + 31) // 32
        self._rows = RowShelf(arrays, self.trie, self.eos_ids)
        self.row, self.tight_row, self.writer = self._rows.row, self._rows.tight_row, self._rows.writer
        self.closing = CostShelf(arrays, meta["max_token_bytes"])
        self._walkers: WeakKeyDictionary[SpanDocument, list[Walker]] = WeakKeyDictionary()
        self._forced: dict[int, bytes] = {}
        self._open: dict[int, bool] = {}
        self.closing.costs()
        self._flat = np.ascontiguousarray(self.table).reshape(-1).data
        self._classes = bytes(self.class_of_byte)
        self._width = self.table.shape[1]
        self._tags = arrays["tag_of_state"].data
        self._accepting = bytes(self.accepting)
        self._token_data = arrays["token_data"].data
        self._token_start = arrays["token_start"].data
        self._steps: dict[int, int] = {}
        self._along: dict[int, tuple[str, ...]] = {}

    @property
    def usual_reserve(self) -> tuple[int, ...]:
        """Tokens to keep back for each field that is still to come, by its index, where the budget allows it."""
        return (_RESERVE_TOKENS,) * len(self.fields)

    @property
    def size_bytes(self) -> int:
        """Of the automaton's own arrays; those of the vocabulary, which all its guides share, are left out."""
        return sum(array.nbytes for name, array in self._arrays.items() if not name.startswith(_OF_VOCABULARY))

    def is_accepting(self, state: int) -> bool:
        return self._accepting[state] == 1

    def next_state(self, state: int, token_id: int) -> int:
        """The state after one id, or -1 where it is not legal; ids that spell nothing never are."""
        if not 0 <= token_id < self.vocab_size:
            return -1
        key = state * self.vocab_size + token_id
        found = self._steps.get(key)
        if found is None:
            if len(self._steps) >= _STEPS_KEPT:
                self._steps.clear()
            found = self._steps[key] = self._walk(state, token_id)
        return found

    def _walk(self, state: int, token_id: int) -> int:
        start, stop = self._token_start[token_id], self._token_start[token_id + 1]
        if start == stop:
            return -1
        for byte in self._token_data[start:stop]:
            state = self._flat[state * self._width + self._classes[byte]]
            if state == self.state_count:
                return -1
        return state

    def forced(self, state: int) -> bytes:
        """What must follow, byte by byte, as far as the schema leaves no choice."""
        found = self._forced.get(state)
        if found is None:
            if len(self._forced) >= _FORCED_KEPT:
                self._forced.clear()
            found = self._forced[state] = self._only_way(state)
        return found

    def _only_way(self, state: int) -> bytes:
        forced = bytearray()
        while len(forced) < _FORCED_BYTES and not self.is_accepting(state) and state not in self.hole_of_state:
            kinds = np.flatnonzero(self.table[state] != self.state_count)
            spelt = np.flatnonzero(np.isin(self.class_of_byte, kinds))
            if len(spelt) != 1:
                break
            forced.append(int(spelt[0]))
            state = int(self.table[state, kinds[0]])
        return bytes(forced)

    def decode(self, token_ids: Sequence[int]) -> bytes:
        """The bytes that the ids spell together."""
        starts = self._token_start
        return b"".join(self._token_data[starts[i] : starts[i + 1]] for i in token_ids if i < self.vocab_size)

    def warm(self) -> None:
        """Loads the machine code that cursors may need: milliseconds, or seconds where it was never compiled before."""
        from pipeline.decoding.span_cursor import Walker
        from pipeline.decoding.span_document import SpanDocument, view_of_values

        self._rows.warm(self.closing.costs())
        if self.span_kinds:
            made = SpanDocument((view_of_values([(b"a", 0, 1)]),))
            for document in (made, SpanDocument.from_bytes(made.to_bytes())):
                Walker(self, document.views[0]).first_row(0)

    def walkers(self, document: SpanDocument) -> list[Walker]:
        """One for each kind of extractive field; made once a document, as long as the document lives."""
        found = self._walkers.get(document)
        if found is None:
            from pipeline.decoding.span_cursor import Walker

            known: dict[int, Walker] = {}
            found = [known.get(id(v)) or known.setdefault(id(v), Walker(self, v)) for v in document.views]
            self._walkers[document] = found
        return found

    def plain_spelling(self, kind: int) -> Dfa | None:
        """The spellings of an extractive kind's field if it were plain; None where any stretch of text is one."""
        stored = self.span_kinds[kind]["plain"]
        if stored is None:
            return None
        edges = tuple(tuple((low, high, target) for low, high, target in row) for row in stored["edges"])
        return Dfa(edges, tuple(stored["accepting"]), (NO_TAG,) * len(edges))

    @cached_property
    def roots(self) -> Array:
        """int32[256]: the trie's node for each first byte, or -1."""
        nodes = np.full(256, -1, np.int32)
        node = 0
        while node < len(self.trie.byte):
            nodes[self.trie.byte[node]] = node
            node = int(self.trie.after[node])
        return nodes

    def field_of(self, state: int) -> str | None:
        """Path of the field that is written in this state; None between fields."""
        index = self._tags[state]
        return self.fields[index] if index >= 0 else None

    def fields_along(self, state: int, token_id: int) -> tuple[str, ...]:
        """Paths of the fields that an id writes in, each once, in order; empty where it is not legal."""
        if self.next_state(state, token_id) < 0:
            return ()
        key = state * self.vocab_size + token_id
        found = self._along.get(key)
        if found is None:
            if len(self._along) >= _STEPS_KEPT:
                self._along.clear()
            tags: dict[int, None] = {}
            for byte in self.decode((token_id,)):
                state = self._flat[state * self._width + self._classes[byte]]
                tags[self._tags[state]] = None
            found = self._along[key] = tuple(self.fields[tag] for tag in tags if tag >= 0)
        return found

    def is_open(self, state: int) -> bool:
        """Whether the field that is written in this state is gone on with by some byte."""
        found = self._open.get(state)
        if found is None:
            tags = self._arrays["tag_of_state"]
            after = self.table[state]
            after = after[after != self.state_count]
            found = self._open[state] = bool(tags[state] >= 0 and (tags[after] == tags[state]).any())
        return found

    def cursor(
        self, budget_tokens: int | None = None, reserve: Sequence[int] = (), document: SpanDocument | None = None
    ) -> Cursor:
        """A cursor at the start.

        Args:
            budget_tokens: the most ids a record may take, the end-of-sequence id not counted; None for no budget.
            reserve: tokens to keep back for each field, by its index; scaled down where the budget cannot hold them.
            document: what extractive fields may copy; needed where the guide has any, and not used otherwise.

        Raises:
            ValueError: the budget is below the least record's tokens, or the document is missing.
        """
        from pipeline.decoding.cursor import Cursor
        from pipeline.decoding.span_cursor import SpanCursor

        if not self.span_kinds:
            return Cursor(self, budget_tokens, tuple(reserve))
        if document is None:
            raise ValueError(f"guide {self.fingerprint} has extractive fields; it needs the document")
        return SpanCursor(self, budget_tokens, tuple(reserve), document)

    def to_bytes(self) -> bytes:
        """Arrays only; `from_bytes` reads it."""
        return pack(self._meta, self._arrays)

    def save(self, path: Path | str) -> None:
        """Writes the file beside itself first, so that a reader never sees half of it."""
        target = Path(path)
        partial = target.with_name(f".{target.name}.{id(self):x}.partial")
        partial.write_bytes(self.to_bytes())
        partial.replace(target)

    @classmethod
    def from_bytes(cls, buffer: bytes | memoryview) -> Guide:
        """Zero-copy: the guide keeps views of the buffer.

        Raises:
            ValueError: the buffer is no guide, or one of another format.
        """
        meta, arrays = unpack(memoryview(buffer))
        if meta.get("format") != FORMAT:
            raise ValueError(f"guide format {meta.get('format')}, this version reads {FORMAT}")
        return cls(meta, arrays)

    @classmethod
    def load(cls, path: Path | str) -> Guide:
        """Through a memory map, so that all processes of a machine share one copy."""
        with Path(path).open("rb") as file:
            return cls.from_bytes(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))


def guide_fingerprint(grammar_fingerprint: str, vocabulary: Vocabulary) -> str:
    """16 hexadecimal digits."""
    content = json.dumps([FORMAT, grammar_fingerprint, vocabulary.fingerprint, vocabulary.size])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def refuse_unspellable(grammar_name: str) -> SchemaRefusedError:
    return SchemaRefusedError(f"{grammar_name}: the model's vocabulary cannot spell any record of this schema")
