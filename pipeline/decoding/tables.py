"""Compiling a guide: from an automaton over bytes and a vocabulary to the guide's arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pipeline.core.errors import SchemaRefusedError
from pipeline.decoding.arrays import Array
from pipeline.decoding.automata import Dfa, DfaArrays
from pipeline.decoding.collector import collector_paused
from pipeline.decoding.costs import NEVER, farthest, through_holes
from pipeline.decoding.edges import edges_of
from pipeline.decoding.grammar import Grammar
from pipeline.decoding.guide import FORMAT, Guide, guide_fingerprint, refuse_unspellable
from pipeline.decoding.rows import mask_rows
from pipeline.decoding.span_symbols import SPAN_SYMBOL, SpanKind
from pipeline.decoding.vocabulary import Vocabulary

__all__ = ["build_guide", "compile_guide"]

_MOST_PLAIN_STATES = 20_000


@collector_paused
def build_guide(
    dfa: Dfa,
    vocabulary: Vocabulary,
    *,
    fields: tuple[str, ...],
    grammar_fingerprint: str,
    spans: Sequence[SpanKind] = (),
    name: str = "record",
) -> Guide:
    """The guide of a byte automaton.

    Raises:
        SchemaRefusedError: the vocabulary cannot spell any accepted string.
    """
    from pipeline.decoding.unescaped_kernels import unescaped_next

    automaton = dfa.arrays
    table, class_of_byte = _dense(automaton)
    accepting = automaton.accepting.astype(np.uint8)
    field = automaton.tags
    holes = _holes(automaton)
    most_bytes = vocabulary.max_token_bytes
    while True:
        ways = _Ways(table, class_of_byte, vocabulary)
        distance = ways.to(accepting)
        to_hole = ways.to_each(holes[:, 0])
        whole = through_holes(distance, to_hole, holes, np.ones(len(holes), np.int64))
        if whole[0] >= NEVER:
            raise refuse_unspellable(name)
        stuck = whole >= NEVER
        if not stuck.any():
            break
        table, accepting, field, holes = _without(stuck, table, accepting, field, holes)
    onward = unescaped_next(table, class_of_byte)
    row_of_state, rows = mask_rows(table, class_of_byte, accepting, onward, vocabulary)
    token_data, token_start = vocabulary.spelt
    arrays = {
        "table": table,
        "class_of_byte": class_of_byte,
        "accepting": accepting,
        "distance": np.minimum(whole, NEVER).astype(np.uint16),
        "direct_distance": distance,
        "holes": holes,
        "hole_distance": to_hole,
        "far": farthest(ways.edges.starts, ways.edges.other, whole.astype(np.int32), most_bytes),
        "edge_start": ways.edges.starts,
        "edge_target": ways.edges.other,
        "tag_of_state": field,
        "row_of_state": row_of_state,
        "rows": rows,
        "onward": onward,
        "token_data": token_data,
        "token_start": token_start,
        "unescaped_rows": vocabulary.unescaped.rows,
        **vocabulary.trie.to_arrays("trie"),
        **vocabulary.unescaped.rest.to_arrays("rest"),
    }
    meta = {
        "format": FORMAT,
        "fingerprint": guide_fingerprint(grammar_fingerprint, vocabulary),
        "vocab_size": vocabulary.size,
        "eos_ids": list(vocabulary.eos_ids),
        "fields": list(fields),
        "span_kinds": [{**span.settings, "plain": _stored_plain(span)} for span in spans],
        "max_token_bytes": most_bytes,
    }
    return Guide(meta, arrays)


def _dense(dfa: DfaArrays) -> tuple[Array, Array]:
    """The table `[states, classes]` with the dead state named by the row count, and the class of each byte.

    Bytes between two neighbouring ends of edges behave alike everywhere, so that columns are made for these stretches
    alone, and merged where they are equal.
    """
    count = len(dfa.tags)
    is_byte = dfa.low < SPAN_SYMBOL
    sources = _sources(dfa)[is_byte]
    low, high, target = dfa.low[is_byte], dfa.high[is_byte], dfa.target[is_byte]
    begins = np.flatnonzero(np.isin(np.arange(256), np.concatenate([np.zeros(1, np.int32), low, high + 1])))
    stretch_of_byte = np.searchsorted(begins, np.arange(256), side="right") - 1
    first = stretch_of_byte[low]
    widths = stretch_of_byte[high] + 1 - first
    offsets = np.arange(widths.sum()) - np.repeat(np.cumsum(widths) - widths, widths)
    full = np.full((count, len(begins)), count, np.uint16 if count < 65535 else np.uint32)
    full[np.repeat(sources, widths), np.repeat(first, widths) + offsets] = np.repeat(target, widths)
    columns, class_of_stretch = np.unique(_column_hashes(full), return_inverse=True)
    sample = np.zeros(len(columns), np.int64)
    sample[class_of_stretch] = np.arange(len(begins))
    return np.ascontiguousarray(full[:, sample]), class_of_stretch[stretch_of_byte].astype(np.uint8)


def _column_hashes(full: Array) -> Array:
    """64-bit hashes of the columns: equal columns have equal ones, and 256 columns collide with odds of 2^-49."""
    rng = np.random.default_rng(0x5EED)
    weights = rng.integers(1, 2**63, size=len(full), dtype=np.uint64) | np.uint64(1)
    hashes: Array = np.zeros(full.shape[1], np.uint64)
    for start in range(0, len(full), 4096):
        block = full[start : start + 4096].astype(np.uint64) + np.uint64(1)
        hashes += (block * block * weights[start : start + 4096, None]).sum(axis=0, dtype=np.uint64)
    return hashes


def _stored_plain(span: SpanKind) -> dict[str, Any] | None:
    """The field's plain spellings, which listed values must be among; None where a stretch of text needs no check."""
    if not span.settings["listed"]:
        return None
    if span.plain.state_count > _MOST_PLAIN_STATES:
        raise SchemaRefusedError(
            f"an extractive field whose plain form takes {span.plain.state_count} states; simplify its pattern"
        )
    return {"edges": span.plain.edges, "accepting": span.plain.accepting}


def _sources(dfa: DfaArrays) -> Array:
    """int32[m]: the state that each edge leads from."""
    return np.repeat(np.arange(len(dfa.tags), dtype=np.int32), np.diff(dfa.starts))


def _holes(dfa: DfaArrays) -> Array:
    """int32[H, 3]: for each place that the document fills its state, its kind, and the state after it."""
    is_hole = dfa.low >= SPAN_SYMBOL
    return np.stack([_sources(dfa), dfa.low - SPAN_SYMBOL, dfa.target], axis=1)[is_hole].astype(np.int32)


class _Ways:
    """Least numbers of tokens through the fixed part of an automaton."""

    def __init__(self, table: Array, class_of_byte: Array, vocabulary: Vocabulary) -> None:
        self._table, self._class_of_byte = table, class_of_byte
        self._trie = vocabulary.trie
        self._most_bytes = vocabulary.max_token_bytes
        self.edges = edges_of(table)
        self._plain = edges_of(table, without=int(class_of_byte[0x22]))

    def to(self, goals: Array) -> Array:
        """Distance uint16[n] to the states where `goals` uint8[n] is set."""
        from pipeline.decoding.compile_kernels import distances

        trie = self._trie
        found: Array = distances(
            self._table, self._class_of_byte, goals,
            self.edges.starts, self.edges.other, self._plain.starts, self._plain.other, self._most_bytes,
            trie.byte, trie.depth, trie.after, trie.height, trie.has_quote, trie.first,
        )  # fmt: skip
        return found

    def to_each(self, states: Array) -> Array:
        """Distance uint16[len(states), n] to each state by itself."""
        rows = []
        for state in states.tolist():
            goals = np.zeros(len(self._table), np.uint8)
            goals[state] = 1
            rows.append(self.to(goals))
        return np.stack(rows) if rows else np.zeros((0, len(self._table)), np.uint16)


def _without(
    stuck: Array, table: Array, accepting: Array, field: Array, holes: Array
) -> tuple[Array, Array, Array, Array]:
    """Drops states that no sequence of tokens leads out of."""
    kept = np.flatnonzero(~stuck)
    names = np.full(len(table) + 1, len(kept), np.int64)
    names[kept] = np.arange(len(kept))
    holes = holes[~stuck[holes[:, 0]] & ~stuck[holes[:, 2]]]
    holes = np.stack([names[holes[:, 0]], holes[:, 1], names[holes[:, 2]]], axis=1).astype(np.int32)
    return names[table[kept].astype(np.int64)].astype(table.dtype), accepting[kept], field[kept], holes


def compile_guide(grammar: Grammar, vocabulary: Vocabulary) -> Guide:
    """Compiles a grammar against a vocabulary: once for all engines.

    Raises:
        SchemaRefusedError: the vocabulary cannot spell any record.
    """
    return build_guide(
        grammar.automaton.dfa,
        vocabulary,
        fields=grammar.fields,
        grammar_fingerprint=grammar.fingerprint,
        spans=grammar.spans,
        name=grammar.name,
    )
