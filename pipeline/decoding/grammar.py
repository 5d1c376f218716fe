"""From a Pydantic type or a JSON Schema to a grammar: one automaton over bytes, and a verdict for each field."""

from __future__ import annotations

import enum
import hashlib
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pipeline.core.errors import SchemaRefusedError
from pipeline.decoding.automata import NO_TAG, Dfa, StateLimitError
from pipeline.decoding.collector import collector_paused
from pipeline.decoding.effort import MOST_STATES, Effort, efforts
from pipeline.decoding.emit import Emitter
from pipeline.decoding.field_tags import RECORD
from pipeline.decoding.findings import FieldFindings
from pipeline.decoding.normalize import Normalizer
from pipeline.decoding.pydantic_schema import schema_of_type
from pipeline.decoding.refusals import RefusedError
from pipeline.decoding.shapes import Term
from pipeline.decoding.span_symbols import SpanKind

__all__ = ["Automaton", "FieldVerdict", "Grammar", "Verdict", "compile_grammar", "lint_fields"]

_VERSION = 6
"""Part of every fingerprint: to be raised when the same record type gives another automaton."""


class Verdict(enum.StrEnum):
    """What the guide promises of a field."""

    ENFORCED = "enforced"
    """Whatever is generated satisfies the field."""
    WIDENED = "widened"
    """The shape is enforced; the reason says what is checked afterwards."""
    REFUSED = "refused"
    """No guide can be made; the reason says why."""


@dataclass(frozen=True, slots=True)
class FieldVerdict:
    """One field by path, such as `items[].amount`; the record itself is `(record)`."""

    path: str
    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Automaton:
    """The records of a grammar as an automaton over bytes."""

    dfa: Dfa
    _distances: list[int] = field(default_factory=list, repr=False, compare=False)

    @property
    def state_count(self) -> int:
        return self.dfa.state_count

    def accepts(self, data: bytes) -> bool:
        """Whether `data` is a record: UTF-8, compact JSON, declared order."""
        return self.dfa.accepts(data)

    def sample(self, rng: random.Random, max_bytes: int = 2000) -> bytes:
        """A random record; beyond `max_bytes` it takes the shortest way to its end."""
        if not self._distances:
            self._distances.extend(self._byte_distances())
        distance = self._distances
        written = bytearray()
        state = 0
        while True:
            row = self.dfa.edges[state]
            if self.dfa.accepting[state] and (not row or rng.random() < 0.5 or len(written) > max_bytes):
                return bytes(written)
            if len(written) > max_bytes or rng.random() < 0.05:
                low, high, state = min(row, key=lambda edge: distance[edge[2]])
            else:
                low, high, state = rng.choice(row)
            written.append(rng.randint(low, high))

    def _byte_distances(self) -> list[int]:
        count = self.dfa.state_count
        sources: list[list[int]] = [[] for _ in range(count)]
        for state, row in enumerate(self.dfa.edges):
            for _, _, target in row:
                sources[target].append(state)
        distance = [count + 1] * count
        queue = [state for state in range(count) if self.dfa.accepting[state]]
        for state in queue:
            distance[state] = 0
        for state in queue:
            for source in sources[state]:
                if distance[source] > distance[state] + 1:
                    distance[source] = distance[state] + 1
                    queue.append(source)
        return distance


@dataclass(frozen=True, slots=True)
class Grammar:
    """A compiled record type.

    Attributes:
        name: of the record type.
        schema: the JSON Schema it was made from.
        automaton: its records.
        verdicts: one for each field, in order of declaration.
        fields: path of each tag of the automaton.
    """

    name: str
    schema: Mapping[str, Any]
    automaton: Automaton
    verdicts: tuple[FieldVerdict, ...]
    fields: tuple[str, ...]
    spans: tuple[SpanKind, ...] = ()
    """Kinds of extractive fields, by the symbol that stands for their content."""
    fingerprint: str = field(default="")


@collector_paused
def compile_grammar(record: Any, *, recursion_depth: int = 3, extractive: bool = True) -> Grammar:
    """Compiles a record type.

    Args:
        record: anything Pydantic's `TypeAdapter` takes, or a JSON Schema as a mapping (drafts 4 to 2020-12).
        recursion_depth: how often a recursive type may stand inside itself.
        extractive: whether fields marked with `Span` are filled from the document; if not, they are plain.

    Raises:
        SchemaRefusedError: a construct cannot be compiled; the message names the field, why, and what to write instead.
    """
    name, schema, emitter, dfa = _emit(record, recursion_depth, is_lenient=False, is_extractive=extractive)
    if dfa.is_empty:
        raise SchemaRefusedError(f"{name}: no value satisfies the schema")
    verdicts = _verdicts(emitter)
    dfa, fields = _in_declared_order(dfa, emitter.fields, [verdict.path for verdict in verdicts])
    content = json.dumps([_VERSION, schema, recursion_depth, extractive], sort_keys=False, default=str)
    fingerprint = hashlib.sha256(content.encode()).hexdigest()[:16]
    return Grammar(name, schema, Automaton(dfa), verdicts, fields, tuple(emitter.spans), fingerprint)


def _in_declared_order(dfa: Dfa, fields: tuple[str, ...], order: list[str]) -> tuple[Dfa, tuple[str, ...]]:
    """Tags renamed so that they count the fields in use, in order of declaration."""
    place = {path: index for index, path in enumerate(order)}
    tags = dfa.arrays.tags
    used = sorted(np.unique(tags[tags >= 0]).tolist(), key=lambda tag: place.get(fields[tag], len(place)))
    names: dict[str, int] = {}
    # The last one stands for NO_TAG, which is -1.
    renamed = np.full(max(used, default=-1) + 2, NO_TAG, np.int32)
    for tag in used:
        renamed[tag] = names.setdefault(fields[tag], len(names))
    return Dfa.of_arrays(dfa.arrays._replace(tags=renamed[tags])), tuple(names)


@collector_paused
def lint_fields(record: Any, *, recursion_depth: int = 3) -> tuple[FieldVerdict, ...]:
    """A verdict for each field, refused ones among them."""
    try:
        *_, emitter, _ = _emit(record, recursion_depth, is_lenient=True, is_extractive=True)
    except SchemaRefusedError as error:
        return (FieldVerdict(RECORD, Verdict.REFUSED, error.message),)
    return _verdicts(emitter)


def _emit(
    record: Any, recursion_depth: int, *, is_lenient: bool, is_extractive: bool
) -> tuple[str, Mapping[str, Any], Emitter, Dfa]:
    is_schema = isinstance(record, Mapping | bool)
    schema: Any = record if is_schema else schema_of_type(record)
    name = (
        str(schema.get("title", "schema"))
        if is_schema and not isinstance(record, bool)
        else getattr(record, "__name__", None) or str(record)
    )
    normalizer = Normalizer(schema, dialect="ecma" if is_schema else "rust")
    made: tuple[Emitter, Dfa] | None = None
    in_vain: Effort | None = None
    for effort in efforts(recursion_depth, is_schema=is_schema):
        if in_vain is not None and effort.is_as(in_vain):
            continue
        emitter = Emitter(normalizer, effort, is_lenient=is_lenient, is_extractive=is_extractive)
        try:
            made = emitter, emitter.node((Term(schema),), ())
            break
        except StateLimitError:
            in_vain = None if emitter.is_open else effort
        except RefusedError as error:
            path = emitter.found.refused or RECORD
            raise SchemaRefusedError(f"{name}, field {path}: {error}") from error
        except RecursionError as error:
            raise SchemaRefusedError(f"{name}: nested too deeply") from error
    if made is None:
        raise SchemaRefusedError(
            f"{name}: its automaton needs more than {MOST_STATES} states; bound its lists and strings, or split it"
        )
    return name, schema, *made


def _verdicts(emitter: Emitter) -> tuple[FieldVerdict, ...]:
    return tuple(_verdict(path, found) for path, found in emitter.found.by_field().items())


def _verdict(path: str, found: FieldFindings) -> FieldVerdict:
    if found.refusal is not None:
        return FieldVerdict(path, Verdict.REFUSED, found.refusal)
    if found.notes:
        return FieldVerdict(path, Verdict.WIDENED, "; ".join(found.notes))
    return FieldVerdict(path, Verdict.ENFORCED, "unrolled to a bounded depth" if found.is_unrolled else "")
