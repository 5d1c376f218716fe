"""A small byte-level vocabulary with merges, and oracles that share no code with the package."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from pipeline.decoding import Grammar, Guide, Verdict, Vocabulary

_WORDS = [
    b'":"', b'","', b'{"', b'"}', b"null", b"true", b"false", b"name", b"total", b"ab", b"abc", b"the ", b" SDN", b"12",
    b"00", b".5", b"}]", b"[{", b'":', b',"', b'""', b"2018", b"-0", b"\xc3\xa9", b"\xe6\x97", b"co", b"company", b"",
]  # fmt: skip
EOS = 2


@cache
def vocabulary() -> Vocabulary:
    """Ids 0-3 are control tokens, then every byte, then words; two ids spell the same bytes."""
    tokens: list[bytes | None] = [None, None, None, None]
    tokens += [bytes([value]) for value in range(256)]
    tokens += [word or b"ab" for word in _WORDS]
    return Vocabulary(tokens, {EOS})


def legal_ids(words: npt.NDArray[np.uint32], size: int) -> list[int]:
    """The ids whose bit is set."""
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")[:size]
    return [int(index) for index in np.flatnonzero(bits)]


def successors(guide: Guide) -> list[set[int]]:
    """For each state the states that one token leads to, by walking each token by itself."""
    tokens = [token for token in vocabulary().tokens if token]
    found: list[set[int]] = []
    table, classes = np.asarray(guide.table), np.asarray(guide.class_of_byte)
    for start in range(guide.state_count):
        reached = set()
        for token in tokens:
            state = start
            for byte in token:
                state = int(table[state, classes[byte]])
                if state == guide.state_count:
                    break
            else:
                reached.add(state)
        found.append(reached)
    return found


def is_enforced(grammar: Grammar) -> bool:
    """Whether every field is enforced, so that no record can be refused afterwards."""
    return all(verdict.verdict is Verdict.ENFORCED for verdict in grammar.verdicts)
