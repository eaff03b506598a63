"""Edit distances of pairs, a pair a lane, on the CPU (``edits.dp.edit_planes``).

NumPy copies the letters before the end of each sequence, as many of all; what lies
before the sequence itself is not read. Pairs run in the order of the words of their
targets, and of falling lengths of their queries, so that those swept at once are alike.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from jaxalign.bits import lcs_words
from jaxalign.bits.match_words import words_of
from jaxalign.edits.cpu.edit_windows import FEW_LANES, LANE_BYTES, rows_of, word_type
from jaxalign.edits.dp import edit_planes
from jaxalign.model.letters import LetterCodes
from jaxalign.runtime.devices import on_cpu, precision
from jaxalign.runtime.lengths import bucket, by_length
from jaxalign.runtime.programs import stored

LANES_OF_WORDS = (128, 64)  # of targets of two words, and of more
RUN_LETTERS = 2**20  # of a call, so that threads have some each
RUN_PAIRS = 2**14  # of a call, at most
LEAST_COLUMNS = 16  # of the shortest words
LEAST_ROOM = 2**12  # letters before the first sequence: more than a row has beyond it
LEAST_PLACES = 32  # room for the letters of a query

edits_of_pairs = stored(
    edit_planes.edits_of_pairs, ("words", "lanes", "planes", "bits", "rows")
)


class PairLetters(NamedTuple):
    """Letters of all sequences, with room before the first."""

    codes: np.ndarray
    ends: np.ndarray  # int64, where each sequence ends
    lengths: np.ndarray
    planes: int  # bits of a letter, the padding letter has all of them

    def before(self, which: np.ndarray, width: int) -> np.ndarray:
        """The ``width`` letters before the end of some sequences, in rows."""
        codes = self.codes
        shape = len(codes) - width + 1, width
        return as_strided(codes, shape, codes.strides * 2)[self.ends[which] - width]


def pair_letters(sequences: LetterCodes) -> PairLetters:
    """Letters, lengths and padding as ``edits_zipped`` reads them."""
    codes, lengths = sequences.codes, sequences.lengths
    room = 3 * int(lengths.max(initial=0)) + LEAST_ROOM
    codes = np.concatenate([np.zeros(room, codes.dtype), codes])
    ends = sequences.offsets[1:] + room
    return PairLetters(codes, ends, lengths, sequences.size.bit_length())


def _classes(columns: np.ndarray) -> np.ndarray:
    """How many ``LEAST_COLUMNS`` the words of targets have, by their columns. Up to
    eight words are told apart, then up to one in eight."""
    words = -(-columns // lcs_words.WORD_BITS)
    shift = np.maximum(np.frexp(words)[1] - 3, 0)
    many = (-(-words >> shift) << shift) * (lcs_words.WORD_BITS // LEAST_COLUMNS)
    short = 2 ** np.frexp(np.maximum(columns - 1, 0) // LEAST_COLUMNS)[1]
    return np.where(columns <= lcs_words.WORD_BITS, short, many)


def lanes_of(columns: int, pairs: int) -> int:
    """How many of so many pairs are swept at once."""
    words = columns // lcs_words.WORD_BITS
    lanes = LANE_BYTES * 8 // columns if words <= 1 else LANES_OF_WORDS[words > 2]
    return min(lanes, bucket(pairs, 2, FEW_LANES))


def runs(
    lengths: np.ndarray, i: np.ndarray, j: np.ndarray
) -> Iterator[tuple[np.ndarray, int, int]]:
    """Places of pairs of like sizes, columns of their words, and lanes."""
    m, n = lengths[i], lengths[j]
    few = int(n.max(initial=0)) < len(n)
    classes = _classes(np.arange(n.max() + 1))[n] if few else _classes(n)
    order = by_length(m)
    order = order[by_length(classes[order])]
    ends = len(order) - np.cumsum(np.bincount(classes))
    at = 0
    while at < len(order):
        kind = int(classes[order[at]])
        columns, alike = kind * LEAST_COLUMNS, int(ends[kind - 1]) - at
        lanes = lanes_of(columns, len(order))
        letters = int(m[order[at]]) + columns
        most = max(min(RUN_LETTERS // letters, RUN_PAIRS), lanes)
        # Lanes beyond those of a kind have shorter ones rather than none.
        count = min(-(-alike // lanes) * lanes, 1 << most.bit_length() - 1)
        yield order[at : at + count], columns, lanes
        at += count


def edits_zipped(
    letters: PairLetters, i: np.ndarray, j: np.ndarray, columns: int, lanes: int
) -> np.ndarray:
    """Distances of the pairs of a run, query ``i[k]`` to target ``j[k]``."""
    m, n = letters.lengths[i], letters.lengths[j]
    longest, dtype = int(m.max(initial=0)), letters.codes.dtype
    word = np.promote_types(
        word_type(min(columns, lcs_words.WORD_BITS), longest), dtype
    )
    width, letter_bits = word.itemsize * 8, dtype.itemsize * 8
    words, groups = words_of(-(-columns // width))
    room = bucket(groups, 2, 1)
    count, slots = len(i), bucket(len(i), 4, lanes)
    i, j, m, n = (np.pad(x, (0, slots - len(x))) for x in (i, j, m, n))
    targets = letters.before(j, room * words * width).view(word)
    queries = letters.before(i, bucket(longest, 2, LEAST_PLACES)).view(word)
    sides = targets, n.astype(np.int32), queries, m.astype(np.int32)
    place = np.int32(-(-count // lanes)), np.int32(room - groups)
    static = {"words": words, "lanes": lanes, "planes": letters.planes}
    static |= {"bits": letter_bits, "rows": rows_of(groups, m)}
    with on_cpu(), precision("int64"):
        return np.asarray(edits_of_pairs(*sides, *place, **static))[:count]
