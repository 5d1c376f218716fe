"""Writers of mask rows put down exactly the row, whatever they were made to read for it."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.decoding import row_writers
from pipeline.decoding.row_writers import RowWriters

_GUARD = 0xA5A5A5A5

Words = npt.NDArray[np.uint32]


def _written(writers: RowWriters, words: Words) -> Words:
    target = np.full(len(words) + 2, _GUARD, np.uint32)
    writers.writer(words)(target[1:].ctypes.data)
    assert target[0] == target[-1] == _GUARD
    return target[1:-1]


@st.composite
def _rows(draw: st.DrawFn) -> list[Words]:
    """Rows of one width: blank but for a few words, or one of three dense ones but for a few, or many."""
    width = draw(st.integers(1, 700))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    likes = [np.zeros(width, np.uint32), *rng.integers(0, 2**32, (3, width), np.uint32)]
    rows = []
    for like, share in draw(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 16, 17, 64])), max_size=8)):
        row = likes[like].copy()
        changed = rng.permutation(width)[: -(-width // share) if share else 0]
        row[changed] = rng.integers(0, 2**32, len(changed), np.uint32)
        row.flags.writeable = draw(st.booleans())  # as rows of a memory map are not
        rows.append(row)
    return rows


@settings(deadline=None)
@given(_rows())
def test_what_is_written_is_the_row(rows: list[Words]) -> None:
    writers = RowWriters(len(rows[0]) if rows else 1)
    kept = [(writers.writer(row), row.copy()) for row in rows]
    for write, row in kept:
        target = np.full(len(row) + 2, _GUARD, np.uint32)
        write(target[1:].ctypes.data)
        assert target[0] == target[-1] == _GUARD
        assert np.array_equal(target[1:-1], row)


def test_rows_that_nothing_is_like_are_written_whole() -> None:
    """Fails when a row beyond the last that is kept for comparison is compared with a wrong one."""
    rows = np.random.default_rng(5).integers(0, 2**32, (row_writers._MOST_BASES + 3, 64), np.uint32)
    writers = RowWriters(64)
    assert all(np.array_equal(_written(writers, row), row) for row in rows)


@pytest.mark.parametrize(("changed", "reads_another"), [(0, True), (8, True), (9, False)])
def test_a_row_much_like_another_is_read_from_it(changed: int, reads_another: bool) -> None:
    """The rows' memory is changed behind the writer's back, to see what it reads."""
    first = np.full(128, 7, np.uint32)
    row = first.copy()
    row[:changed] = 9
    writers = RowWriters(128)
    writers.writer(first)
    write = writers.writer(row)
    first[:], expected = 3, row.copy()
    target = np.zeros(128, np.uint32)
    write(target.ctypes.data)
    assert np.array_equal(target[:changed], expected[:changed])
    assert (target[changed:] == (3 if reads_another else 7)).all()


def test_rows_of_a_memory_map_and_others_take_the_same_machine_code() -> None:
    """Fails when a step would wait for the compiler at its first row of another kind."""
    from pipeline.decoding.write_kernels import differing

    rows = np.random.default_rng(6).integers(0, 2**32, (4, 64), np.uint32)
    for row in rows[:2]:
        row.flags.writeable = False
    writers = RowWriters(64)
    assert all(np.array_equal(_written(writers, row), row) for row in rows)
    assert len(differing.signatures) == 1
