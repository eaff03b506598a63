"""Common subsequences and edit distances on the CPU, in the lanes of compiled words.

Of queries and a block of targets the targets lie in lanes, and all lanes read one query
(``match_vectors``). Of pairs each lane has its own. For edit distances of pairs NumPy
copies the letters before the end of each sequence, as many of all; what lies before the
sequence itself is not read. Such pairs run in the order of the words of their targets,
and of falling lengths of their queries, so that those swept at once are alike.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from jaxalign.model.alphabet import LetterCodes
from jaxalign.runtime.devices import bucket, by_length, on_cpu, precision
from jaxalign.runtime.programs import stored
from jaxalign.words import dp
from jaxalign.words.match_vectors import (
    FEW_LANES,
    LANE_BYTES,
    LANES,
    PADDING,
    WORD_BITS,
    MatchVectors,
    QueryLetters,
    lcs_vectors,
    word_type,
    words_of,
)

if TYPE_CHECKING:
    from jaxalign.model.alphabet import Alphabet, CodedSequences


# Queries of a call: of an LCS, with short targets four times as many; of edit distances
LCS_SLOTS, EDIT_SLOTS = 256, 1024
LANES_OF_WORDS = (128, 64)  # pairs with targets of two words, and of more
RUN_LETTERS = 2**20  # of a call, so that threads have some each
RUN_PAIRS = 2**14  # of a call, at most
LEAST_COLUMNS = 16  # of the shortest words
LEAST_ROOM = 2**12  # letters before the first sequence: more than a row has beyond it
LEAST_PLACES = 32  # room for the letters of a query

lcs_of_queries = stored(dp.lcs_of_queries, ("rows",))
lcs_of_pairs = stored(dp.lcs_of_pairs, ("rows",))
edits_of_queries = stored(dp.edits_of_queries, ("rows",))
edits_of_pairs = stored(dp.edits_of_pairs, ("words", "lanes", "planes", "bits", "rows"))


def lcs_block(
    queries: QueryLetters,
    run: slice,
    targets: "CodedSequences",
    which: np.ndarray,
    alphabet: "Alphabet",
) -> np.ndarray:
    """LCS of a run of queries with a block of targets.

    Returns int16 (queries, targets), int32 of targets of many words.
    """
    vectors = lcs_vectors(targets, which, alphabet)
    rows = _rows_of(vectors, queries.length[run], 4)
    slots = LCS_SLOTS if vectors.match.shape[-1] < LANES[-1] else 4 * LCS_SLOTS
    blocks = [np.zeros((0, len(which)), np.int32 if rows else np.int16)]
    for start, length, count in _slots(queries, run, slots, slots):
        with on_cpu(), precision("int64"):
            args = *vectors, queries.letters, start, length, np.int32(count)
            lcs = np.asarray(lcs_of_queries(*args, rows=rows))
        blocks.append(lcs[:count, : len(which)])
    return np.concatenate(blocks)


def edits_block(
    queries: QueryLetters, run: slice, vectors: MatchVectors
) -> Iterator[np.ndarray]:
    """Distances of a run of queries to a block of targets; the letter that pads the
    queries is the number of letters.

    Yields unsigned (queries, lanes). Of up to ``EDIT_SLOTS`` queries at a time.
    """
    rows = _rows_of(vectors, queries.length[run], 2)
    for start, length, count in _slots(queries, run, EDIT_SLOTS, 16):
        with on_cpu(), precision("int64"):
            args = *vectors, queries.letters, start, length, np.int32(count)
            yield np.asarray(edits_of_queries(*args, rows=rows))[:count]


def _slots(
    queries: QueryLetters, run: slice, slots: int, least: int
) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """(starts, lengths, how many) of the queries of each call, in as many slots."""
    start, length = queries.start[run], queries.length[run]
    for at in range(0, len(start), slots):
        count = min(slots, len(start) - at)
        room = 0, bucket(count, 4, least) - count
        part = slice(at, at + count)
        yield np.pad(start[part], room), np.pad(length[part], room), count


def _rows_of(vectors: MatchVectors, lengths: np.ndarray, step: int) -> int:
    """Room for the carries between groups of words, one per letter."""
    several = int(vectors.groups) > 1
    return bucket(int(lengths.max(initial=0)), step) if several else 0


def lcs_zipped(
    queries: "CodedSequences",
    targets: "CodedSequences",
    i: np.ndarray,
    j: np.ndarray,
    alphabet: "Alphabet",
) -> np.ndarray:
    """LCS of the pairs of a block, query ``i[k]`` with target ``j[k]``: int32."""
    vectors, length = lcs_vectors(targets, j, alphabet), queries.lengths[i]
    longest = int(length.max(initial=0))
    shape = bucket(longest) + 2 * PADDING, vectors.match.shape[-1]
    letters = np.full(shape, alphabet.size, np.uint8)
    for lane, index in enumerate(i):
        codes = queries[index]
        letters[PADDING : PADDING + len(codes), lane] = codes
    rows = _rows_of(vectors, length, 4)
    with on_cpu(), precision("int64"):
        lcs = lcs_of_pairs(*vectors, letters, np.int32(longest), rows=rows)
        return np.asarray(lcs)[: len(i)]


class PairLetters(NamedTuple):
    """Letters of all sequences, with room before the first."""

    codes: np.ndarray
    ends: np.ndarray  # int64, where each sequence ends
    lengths: np.ndarray
    planes: int  # bits of a letter, the padding letter has all of them

    def before(self, which: np.ndarray, width: int) -> np.ndarray:
        """Rows of the last ``width`` letters of sequences."""
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


def runs(
    lengths: np.ndarray, i: np.ndarray, j: np.ndarray
) -> Iterator[tuple[np.ndarray, int, int]]:
    """Places of pairs of like sizes, columns of their words, and lanes."""
    m, n = lengths[i], lengths[j]
    by_table = int(n.max(initial=0)) < len(n)
    classes = _classes(np.arange(n.max() + 1))[n] if by_table else _classes(n)
    order = by_length(m)
    order = order[by_length(classes[order])]
    ends = len(order) - np.cumsum(np.bincount(classes))
    at = 0
    while at < len(order):
        kind = int(classes[order[at]])
        columns, alike = kind * LEAST_COLUMNS, int(ends[kind - 1]) - at
        words = columns // WORD_BITS
        lanes = LANE_BYTES * 8 // columns if words <= 1 else LANES_OF_WORDS[words > 2]
        lanes = min(lanes, bucket(len(order), 2, FEW_LANES))
        letters = int(m[order[at]]) + columns
        limit = max(min(RUN_LETTERS // letters, RUN_PAIRS), lanes)
        # Lanes beyond those of a kind have shorter ones rather than none.
        count = min(-(-alike // lanes) * lanes, 1 << limit.bit_length() - 1)
        yield order[at : at + count], columns, lanes
        at += count


def _classes(columns: np.ndarray) -> np.ndarray:
    """Round the columns of targets up to size classes, in ``LEAST_COLUMNS``.

    Classes are exact up to eight words, and at most an eighth too large beyond.
    """
    words = -(-columns // WORD_BITS)
    shift = np.maximum(np.frexp(words)[1] - 3, 0)
    long = (-(-words >> shift) << shift) * (WORD_BITS // LEAST_COLUMNS)
    short = 2 ** np.frexp(np.maximum(columns - 1, 0) // LEAST_COLUMNS)[1]
    return np.where(columns <= WORD_BITS, short, long)


def edits_zipped(
    letters: PairLetters, i: np.ndarray, j: np.ndarray, columns: int, lanes: int
) -> np.ndarray:
    """Distances of the pairs of a run, query ``i[k]`` to target ``j[k]``."""
    m, n = letters.lengths[i], letters.lengths[j]
    longest, dtype = int(m.max(initial=0)), letters.codes.dtype
    word = np.promote_types(word_type(min(columns, WORD_BITS), longest), dtype)
    width, letter_bits = word.itemsize * 8, dtype.itemsize * 8
    words, groups = words_of(-(-columns // width))
    room = bucket(groups, 2, 1)
    count, slots = len(i), bucket(len(i), 4, lanes)
    i, j, m, n = (np.pad(x, (0, slots - len(x))) for x in (i, j, m, n))
    targets = letters.before(j, room * words * width).view(word)
    queries = letters.before(i, bucket(longest, 2, LEAST_PLACES)).view(word)
    sides = targets, n.astype(np.int32), queries, m.astype(np.int32)
    place = np.int32(-(-count // lanes)), np.int32(room - groups)
    rows = bucket(longest) if groups > 1 else 0
    static = {"words": words, "lanes": lanes, "planes": letters.planes}
    static |= {"bits": letter_bits, "rows": rows}
    with on_cpu(), precision("int64"):
        return np.asarray(edits_of_pairs(*sides, *place, **static))[:count]
