"""How arrays and objects are spelt once their parts are: brackets, commas, keys, and counts as far as bounds need them.

Parts are grafted, not joined by a subset construction; the tags of each gain the name of its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.decoding.assembly import Assembly
from pipeline.decoding.automata import Dfa
from pipeline.decoding.field_tags import FieldTags
from pipeline.decoding.jsontext import json_string
from pipeline.decoding.keys import Keys
from pipeline.decoding.shapes import Obj
from pipeline.decoding.strings import words

__all__ = ["ITEM", "OTHERS", "array_language", "object_language"]

ITEM = "[]"
"""Name of an array's place without an index of its own."""
OTHERS = "*"
"""Name of an object's undeclared properties."""


def array_language(
    items: Sequence[Dfa], rest: Dfa, least: int, most: int | None, tags: FieldTags, state_limit: int
) -> Dfa:
    """Arrays of `least` to `most` items.

    Args:
        items: spellings of the first ones, by position.
        rest: spellings of those after them.
        least: how many there must be.
        most: how many there may be, not fewer; None where nothing ends them.
        tags: by which fields are tagged.
        state_limit: states of the automaton, at most.

    Raises:
        StateLimitError: the automaton is too large.
    """
    # Items from `loop` on are alike and uncounted.
    loop = max(least, len(items), 1) if most is None else most
    assembly = Assembly(state_limit)
    after = [assembly.state() for _ in range(loop + 1)]
    end = assembly.state()
    first = assembly.literal(0, b"[")
    assembly.follow(first, after[0])
    for index in range(loop + 1):
        if index >= least:
            assembly.byte(after[index], 0x5D, end)
    is_alike = most is None and loop > len(items)
    """Whether the last counted item and those after it are alike, so that one copy serves."""
    for index in range(loop + (most is None and not is_alike)):
        item = items[index] if index < len(items) else rest
        if item.is_empty:
            break
        starts = [first if index == 0 else assembly.literal(after[index], b",")]
        if is_alike and index + 1 == loop:
            starts.append(assembly.literal(after[loop], b","))
        name = f"[{index}]" if index < len(items) else ITEM
        assembly.graft(starts, item, after[min(index + 1, loop)], tags.retag(name))
    return assembly.finish([end])


def object_language(
    shape: Obj,
    names: Sequence[str],
    values: Mapping[str, Dfa],
    others: Sequence[tuple[Dfa, Dfa]],
    tags: FieldTags,
    state_limit: int,
) -> Dfa:
    """Objects with their declared properties in order, undeclared ones after them.

    Args:
        shape: says what is required, and how many properties there may be.
        names: declared properties that can be written, in order.
        values: spellings of their values.
        others: keys of undeclared properties, as JSON strings, each time with the spellings of their values.
        tags: by which fields are tagged.
        state_limit: states of the automaton, at most.

    Raises:
        StateLimitError: the automaton is too large.
    """
    return _ObjectSpelling(shape, names, values, others, tags, state_limit).build()


class _ObjectSpelling:
    """One object: slots between properties, counted only as far as the bounds need it."""

    def __init__(
        self, shape: Obj, names: Sequence[str], values: Mapping[str, Dfa], others: Sequence[tuple[Dfa, Dfa]],
        tags: FieldTags, state_limit: int,
    ) -> None:  # fmt: skip
        self._tags = tags
        self._names = names
        self._values = values
        self._required = frozenset(shape.required)
        self._others = others
        least = shape.least if shape.least > len(self._required) else 0
        self._least, self._most = least, shape.most
        self._cap = least if shape.most is None else shape.most
        self._assembly = Assembly(state_limit)
        self._end = self._assembly.state()
        self._slots: dict[tuple[int, int, bool], int] = {}
        self._entries: dict[tuple[int, int], int] = {}
        self._queue: list[tuple[int, int, bool]] = []
        self._keys = Keys([*(json_string(words([name])) for name in names), *(keys for keys, _ in others)])
        self._key_states: dict[tuple[int, int, int], int] = {}
        self._key_queue: list[tuple[int, int, int]] = []

    def build(self) -> Dfa:
        self._assembly.follow(self._assembly.literal(0, b"{"), self._slot(0, 0, is_first=True))
        for index, count, is_first in self._queue:
            self._fill(index, count, is_first=is_first)
            self._spell_keys()
        return self._assembly.finish([self._end])

    def _slot(self, index: int, count: int, *, is_first: bool) -> int:
        """The state before property `index`, with `count` properties written."""
        key = (index, count, is_first)
        if key not in self._slots:
            self._slots[key] = self._assembly.state()
            self._queue.append(key)
        return self._slots[key]

    def _fill(self, index: int, count: int, *, is_first: bool) -> None:
        slot = self._slots[index, count, is_first]
        required = next((at for at in range(index, len(self._names)) if self._names[at] in self._required), None)
        if required is None and count >= self._least:
            self._assembly.byte(slot, 0x7D, self._end)
        if self._most is not None and count >= self._most:
            return
        stop = len(self._names) + len(self._others) if required is None else required + 1
        if index < stop:
            start = slot if is_first else self._assembly.literal(slot, b",")
            allowed = (1 << stop) - (1 << index)
            self._assembly.follow(start, self._key_state(0, allowed, min(count + 1, self._cap)))

    def _key_state(self, state: int, allowed: int, count: int) -> int:
        """A state of the keys where only the allowed properties may follow, the `count`-th of them."""
        key = (state, allowed & self._keys.reachable[state], count)
        if key not in self._key_states:
            self._key_states[key] = self._assembly.state()
            self._key_queue.append(key)
        return self._key_states[key]

    def _spell_keys(self) -> None:
        keys, reachable = self._keys.dfa, self._keys.reachable
        while self._key_queue:
            state, allowed, count = key = self._key_queue.pop()
            here = self._key_states[key]
            for low, high, target in keys.edges[state]:
                if allowed & reachable[target]:
                    self._assembly.edge(here, low, high, self._key_state(target, allowed, count))
            if keys.accepting[state]:
                self._assembly.byte(here, 0x3A, self._entry(keys.tags[state], count))

    def _entry(self, label: int, count: int) -> int:
        """Where the value of a property begins; one copy for each count."""
        key = (label, count)
        if key in self._entries:
            return self._entries[key]
        is_declared = label < len(self._names)
        name = self._names[label] if is_declared else OTHERS
        value = self._values[name] if is_declared else self._others[label - len(self._names)][1]
        entry = self._entries[key] = self._assembly.state()
        after = self._slot(label + 1 if is_declared else len(self._names), count, is_first=False)
        self._assembly.graft([entry], value, after, self._tags.retag(name))
        return entry
