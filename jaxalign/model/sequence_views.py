"""Some sequences of a set in any order and as often as wanted, without a copy."""

from dataclasses import dataclass

import numpy as np

from jaxalign.model.alphabet import Sequences


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


def views(sequences: Sequences, indices) -> SequenceViews:
    """The sequences at ``indices``, in that order."""
    starts, lengths = sequences.starts[indices], sequences.lengths[indices]
    return SequenceViews(sequences.codes, starts, lengths)


def stacked(sequences, index, beyond: int = 0) -> np.ndarray:
    """uint8 (P, longest) codes of some sequences; what lies beyond the end is 0, or
    another letter."""
    begin, length = sequences.starts[index], sequences.lengths[index]
    shape = len(index), int(length.max(initial=0))
    codes = np.full(shape, beyond, np.uint8)
    inside = np.arange(codes.shape[1]) < length[:, None]
    place = np.repeat(begin - (np.cumsum(length) - length), length)
    codes[inside] = sequences.codes[place + np.arange(len(place))]
    return codes
