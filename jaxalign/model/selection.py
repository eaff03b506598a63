"""Some of many that stand one after the other in flat arrays: rows of a table and their
ragged paths, groups, and sequences of a set in any order and as often as wanted."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from jaxalign.errors import UsageError
from jaxalign.model.alphabet import Sequences


def row_numbers(which: ArrayLike, count: int) -> np.ndarray:
    """A mask of ``count`` truth values, or numbers of rows -> numbers from 0.

    Raises
    ------
    UsageError
        See ``Table.filter``.
    """
    which = np.asarray(which)
    if which.ndim != 1:
        raise UsageError(f"rows of shape {which.shape}: one mask or list is needed")
    if which.dtype == bool:
        if len(which) != count:
            raise UsageError(f"a mask of {len(which):,} for {count:,} rows")
        return np.flatnonzero(which)
    if not len(which):
        return np.zeros(0, np.intp)
    if which.dtype.kind not in "iu":
        raise UsageError(
            f"rows by {which.dtype}: a mask of bool, or integers, are needed"
        )
    outside = (which < -count) | (which >= count)
    if outside.any():
        raise UsageError(f"row {which[outside][0]}: the table has {count:,} rows")
    return np.where(which < 0, which + count, which).astype(np.intp)


def gather_runs(runs: np.ndarray, offsets: np.ndarray, rows: np.ndarray):
    """The ragged rows ``rows`` of (runs, offsets), in that order."""
    counts = np.diff(offsets)[rows]
    new = np.concatenate([[0], np.cumsum(counts)])
    index = np.arange(new[-1]) + np.repeat(offsets[rows] - new[:-1], counts)
    return runs[index], new


def begins(*columns: np.ndarray) -> np.ndarray:
    """Whether each row of sorted columns differs from the one before it, bool (n,)."""
    new = np.zeros(len(columns[0]), bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


def ranks(sizes: np.ndarray) -> np.ndarray:
    """0 … size - 1 of each size, one after the other."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)


def spans(sizes: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """(start, stop) of runs of groups with ``most`` members together, or of one group
    that has more."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(ends):
        before = ends[start - 1] if start else 0
        stop = int(np.searchsorted(ends, before + most, side="right"))
        stop = max(stop, start + 1)
        yield start, stop
        start = stop


def renumbered(labels: np.ndarray) -> np.ndarray:
    """The same groups, numbered from 0 in the order of their first members, int32."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.empty(len(first), np.int32)
    order[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return order[inverse]


@dataclass(frozen=True, eq=False)
class SequenceViews:
    """The views of ``Sequences`` that alignments are computed from.

    ``codes`` (uint8) are those of the whole set; ``starts`` and ``lengths`` are int64,
    one a sequence.
    """

    codes: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int) -> np.ndarray:
        start = self.starts[index]
        return self.codes[start : start + self.lengths[index]]


# Sequences as codes in one flat array.
CodedSequences = Sequences | SequenceViews


def views(sequences: Sequences, indices: np.ndarray) -> SequenceViews:
    """The sequences at ``indices``, in that order."""
    starts, lengths = sequences.starts[indices], sequences.lengths[indices]
    return SequenceViews(sequences.codes, starts, lengths)


def stacked(
    sequences: CodedSequences, index: np.ndarray, beyond: int = 0
) -> np.ndarray:
    """uint8 (P, longest) codes of some sequences; what lies beyond the end is 0, or
    another letter."""
    begin, length = sequences.starts[index], sequences.lengths[index]
    shape = len(index), int(length.max(initial=0))
    codes = np.full(shape, beyond, np.uint8)
    inside = np.arange(codes.shape[1]) < length[:, None]
    place = np.repeat(begin - (np.cumsum(length) - length), length)
    codes[inside] = sequences.codes[place + np.arange(len(place))]
    return codes


def in_blocks(sequences: Sequences, residues: int, records: int) -> Iterator[Sequences]:
    """Blocks of a set; each ends with the record that reaches either number, and
    nothing is copied."""
    start, count = 0, len(sequences)
    while start < count:
        limit = sequences.offsets[start] + residues
        stop = int(np.searchsorted(sequences.offsets, limit, side="left"))
        stop = min(max(stop, start + 1), start + records, count)
        yield sequences.between(start, stop)
        start = stop
