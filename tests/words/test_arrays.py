"""Letters in arrays: every dtype, and offsets that are right or wrong in any way."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxalign
from jaxalign import InputError, UsageError

DTYPES = [np.dtype(name) for name in "u1 u2 u4 u8 i1 i2 i4 i8".split()]


def values_of(dtype):
    """Numbers of a dtype: few, so that some are equal, and those at its ends."""
    info = np.iinfo(dtype)
    ends = [info.min, info.min + 1, info.max - 1, info.max]
    return st.sampled_from([0, 1, 2, *ends])


@st.composite
def arrays(draw):
    dtype = draw(st.sampled_from(DTYPES))
    return np.array(draw(st.lists(values_of(dtype), max_size=6)), dtype)


def levenshtein(a, b) -> int:
    """The recurrence, of lists of Python integers."""
    row = [*range(len(b) + 1)]
    for i, x in enumerate(a, 1):
        last, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(last[j - 1] + (x != y), last[j] + 1, row[-1] + 1))
    return row[-1]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.tuples(arrays(), arrays()), min_size=1, max_size=3))
def test_numbers_of_any_dtypes_are_compared_as_numbers(pairs):
    queries, targets = ([pair[k] for pair in pairs] for k in (0, 1))
    want = [levenshtein(a.tolist(), b.tolist()) for a, b in pairs]
    assert jaxalign.edit_distance(queries, targets).tolist() == want


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    arrays(),
    st.lists(st.integers(-2, 9), max_size=4),
    st.sampled_from([*DTYPES, np.dtype("f4"), np.dtype(bool)]),
)
def test_offsets_of_flat_arrays_are_checked(flat, offsets, dtype):
    """They give what the pieces give, or an error: nothing beside the letters."""
    if dtype.kind == "u":
        offsets = [abs(x) for x in offsets]
    rises = offsets and offsets[0] == 0 and offsets[-1] == len(flat)
    rises = rises and offsets == sorted(offsets) and dtype.kind in "iu"
    held = np.array(offsets).astype(dtype)
    if not rises:
        with pytest.raises(InputError, match="offsets"):
            jaxalign.edit_distance((flat, held), [flat])
        return
    pieces = [flat[a:b].tolist() for a, b in zip(offsets, offsets[1:], strict=False)]
    want = [levenshtein(piece, flat.tolist()) for piece in pieces]
    assert jaxalign.edit_distance((flat, held), [flat]).tolist() == want


def test_flat_letters_are_whole_numbers():
    for flat in (np.zeros(3), np.zeros((3, 1), int)):
        with pytest.raises(InputError, match="whole numbers"):
            jaxalign.edit_distance((flat, np.array([0, 3])), [[1]])


@pytest.mark.parametrize("cut", [7, 2**63, 10**30, np.int64(7)])
def test_a_cut_may_be_any_number(cut):
    graph = jaxalign.edit_distance_graph(["ACDE", "A", ""], max_distance=cut)
    assert graph.toarray().tolist() == [[0, 3, 4], [3, 0, 1], [4, 1, 0]]


@pytest.mark.parametrize("cut", [-1, True, 1.5, "2", None])
def test_what_is_no_cut(cut):
    with pytest.raises(UsageError, match="max_distance"):
        jaxalign.edit_distance_graph(["ACDE", "A"], max_distance=cut)
