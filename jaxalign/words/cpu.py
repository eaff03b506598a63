"""Longest common subsequences of some queries with blocks of targets, on the CPU.

Targets lie in lanes, bits along them (``bits.lcs_words``); all lanes read one query.
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
    LANES,
    MatchWords,
    QueryLetters,
    match_words,
    words_of,
)

if TYPE_CHECKING:
    from jaxalign.model.alphabet import Alphabet, CodedSequences


LCS_QUERY_SLOTS = 256  # queries of a call; with short targets four times as many

lcs_of_queries = stored(dp.lcs_of_queries, ("rows",))
lcs_of_pairs = stored(dp.lcs_of_pairs, ("rows",))


def lcs_block(
    queries: QueryLetters,
    some: slice,
    targets: "CodedSequences",
    which: np.ndarray,
    alphabet: "Alphabet",
):
    """LCS of a run of queries with a block of targets.

    Returns
    -------
    int16 (queries, targets), int32 of targets of many words
    """
    words = match_words(targets, which, alphabet)
    start, length = queries.start[some], queries.length[some]
    rows = _rows_of(words, length)
    blocks = [np.zeros((0, len(which)), np.int32 if rows else np.int16)]
    slots = (
        LCS_QUERY_SLOTS if words.match.shape[-1] < LANES[-1] else 4 * LCS_QUERY_SLOTS
    )
    with on_cpu(), precision("int64"):
        for at in range(0, len(start), slots):
            few = [x[at : at + slots] for x in (start, length)]
            count = len(few[0])
            few = [np.pad(x, (0, slots - count)) for x in few]
            args = (*words, queries.letters, *few, np.int32(count))
            lcs = lcs_of_queries(*args, rows=rows)
            blocks.append(np.asarray(lcs)[:count, : len(which)])
    return np.concatenate(blocks)


def _rows_of(words: MatchWords, length: np.ndarray) -> int:
    """Room for carries from one group to the next."""
    return bucket(int(length.max(initial=0)), 4) if len(words.match) > 1 else 0


def lcs_zipped(
    queries: "CodedSequences",
    targets: "CodedSequences",
    i: np.ndarray,
    j: np.ndarray,
    alphabet: "Alphabet",
) -> np.ndarray:
    """LCS of the pairs of a block, query ``i[k]`` with target ``j[k]``: int32."""
    words, length = match_words(targets, j, alphabet), queries.lengths[i]
    longest = int(length.max(initial=0))
    shape = bucket(longest) + 2 * dp.PADDING, words.match.shape[-1]
    letters = np.full(shape, alphabet.size, np.uint8)
    for lane, index in enumerate(i):
        one = queries[index]
        letters[dp.PADDING : dp.PADDING + len(one), lane] = one
    rows = _rows_of(words, length)
    with on_cpu(), precision("int64"):
        lcs = lcs_of_pairs(*words, letters, np.int32(longest), rows=rows)
        return np.asarray(lcs)[: len(i)]


# ------------------------------------------------------------------------------
# Edit distances of some queries to blocks of targets, on the CPU.
#
# Targets lie in lanes, bits along them (``edits.dp.edit_bits``), as for common
# subsequences (``bits.lcs_windows``). Short targets have short words, of which a step
# computes more.

QUERY_SLOTS = 1024  # queries of a call
WORDS = (np.uint16, np.uint32, np.uint64)
LANE_BYTES = 2048  # of the words of all lanes, where one word has a target …
MANY_LANES = ((4, 128), (8, 64))  # … lanes of more words, up to so many …
FEW_LANES = 32  # … and of still more, or where lengths differ
SHORT = 32  # letters on average, where a sequence at a time takes longer
MAX_SPREAD = 1.25  # times the shortest target that the longest of many lanes is

edits_of_queries = stored(dp.edits_of_queries, ("rows",))


def word_type(longest: int, other: int) -> np.dtype:
    """The words of targets of up to ``longest`` letters, whose distances to sequences
    of up to ``other`` letters are below their range."""
    for word in map(np.dtype, WORDS):
        if longest <= word.itemsize * 8 and other < 1 << word.itemsize * 8:
            return word
    return np.dtype(np.uint64)


def lanes_of(longest: int, other: int) -> int:
    """Lanes of a block whose longest target has so many letters."""
    word = word_type(longest, other)
    words = -(-longest // dp.WORD_BITS)
    if words <= 1:
        return LANE_BYTES // word.itemsize
    return next((lanes for most, lanes in MANY_LANES if words <= most), FEW_LANES)


def block_size(lengths: np.ndarray, at: int, other: int) -> int:
    """How many of some targets, longest first, are a block from place ``at`` on."""
    lanes = lanes_of(int(lengths[at]), other)
    last = lengths[min(at + lanes, len(lengths)) - 1]
    alike = lengths[at] <= max(MAX_SPREAD * last, dp.WORD_BITS)
    return lanes if alike else min(lanes, FEW_LANES)


def _codes(
    targets: LetterCodes, which: np.ndarray, lanes: int, word: np.dtype, padding: int
):
    """(codes (lanes, columns) that end where the last word does, groups, words)."""
    longest = int(targets.lengths[which].max(initial=0))
    width = word.itemsize * 8
    words, groups = words_of(max(-(-longest // width), 1))
    codes = np.full((lanes, groups * words * width), padding, targets.codes.dtype)
    _fill_ends(codes, targets, which)
    return codes, groups, words


def _fill_ends(rows: np.ndarray, sequences: LetterCodes, which: np.ndarray) -> None:
    """Write some sequences into rows, each up to the end of its row."""
    flat, width = sequences.codes, rows.shape[1]
    first, length = sequences.starts[which], sequences.lengths[which]
    total = int(length.sum())
    if total < SHORT * len(length):
        ends = np.cumsum(length)
        back = np.repeat(ends, length) - np.arange(total)  # from the end, 1 the last
        row = np.repeat(np.arange(len(length)), length)
        rows[row, width - back] = flat[np.repeat(first + length, length) - back]
        return
    for row, at, count in zip(rows, first.tolist(), length.tolist(), strict=False):
        row[width - count :] = flat[at : at + count]


def _packed(columns: np.ndarray, word: np.dtype, room: int, groups: int, words: int):
    """Flags (lanes, columns) -> words (room, words, lanes), empty beyond ``groups``."""
    packed = np.packbits(columns, axis=1, bitorder="little")
    by_word = packed.view(word.newbyteorder("<")).T.reshape(groups, words, -1)
    if room == groups:
        return by_word
    return np.pad(by_word, ((0, room - groups), (0, 0), (0, 0)))


def rows_of(groups: int, length: np.ndarray) -> int:
    """Room for edges from one group to the next."""
    return bucket(int(length.max(initial=0))) if groups > 1 else 0


class TargetWords(NamedTuple):
    """Targets in lanes, as ``edit_bits.edits_of_queries`` reads them."""

    match: np.ndarray  # unsigned (room for groups, letters + 1, words, lanes)
    groups: np.int32


def target_words(targets: LetterCodes, which: np.ndarray, other: int) -> TargetWords:
    """For each letter the columns of each target that hold it.

    other : no query has more letters
    """
    size, longest = targets.size, int(targets.lengths[which].max(initial=0))
    word, lanes = word_type(longest, other), lanes_of(longest, other)
    lanes = lanes if len(which) > FEW_LANES else FEW_LANES
    codes, groups, words = _codes(targets, which, lanes, word, size)
    room = bucket(groups, 2, 1)
    match = np.zeros((room, bucket(size, 2, 4) + 1, words, lanes), word)
    for letter in range(size):
        match[:, letter] = _packed(codes == letter, word, room, groups, words)
    match[:, size:] = _packed(codes == size, word, room, groups, words)[:, None]
    return TargetWords(match, np.int32(groups))


def edits_block(
    queries: QueryLetters, some: slice, words: TargetWords
) -> Iterator[np.ndarray]:
    """Distances of a run of queries to a block of targets; the letter that pads the
    queries is the number of letters.

    Yields
    ------
    unsigned (queries, lanes)
        Of up to ``QUERY_SLOTS`` queries at a time.
    """
    start, length = queries.start[some], queries.length[some]
    rows = rows_of(int(words.groups), length)
    for at in range(0, len(start), QUERY_SLOTS):
        few = [x[at : at + QUERY_SLOTS] for x in (start, length)]
        count = len(few[0])
        few = [np.pad(x, (0, bucket(count, 4, 16) - count)) for x in few]
        with on_cpu(), precision("int64"):
            args = *words, queries.letters, *few, np.int32(count)
            yield np.asarray(edits_of_queries(*args, rows=rows))[:count]


# ------------------------------------------------------------------------------
# Edit distances of pairs, a pair a lane, on the CPU (``edits.dp.edit_planes``).
#
# NumPy copies the letters before the end of each sequence, as many of all; what lies
# before the sequence itself is not read. Pairs run in the order of the words of their
# targets, and of falling lengths of their queries, so that those swept at once are
# alike.

LANES_OF_WORDS = (128, 64)  # of targets of two words, and of more
RUN_LETTERS = 2**20  # of a call, so that threads have some each
RUN_PAIRS = 2**14  # of a call, at most
LEAST_COLUMNS = 16  # of the shortest words
LEAST_ROOM = 2**12  # letters before the first sequence: more than a row has beyond it
LEAST_PLACES = 32  # room for the letters of a query

edits_of_pairs = stored(dp.edits_of_pairs, ("words", "lanes", "planes", "bits", "rows"))


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
    words = -(-columns // dp.WORD_BITS)
    shift = np.maximum(np.frexp(words)[1] - 3, 0)
    many = (-(-words >> shift) << shift) * (dp.WORD_BITS // LEAST_COLUMNS)
    short = 2 ** np.frexp(np.maximum(columns - 1, 0) // LEAST_COLUMNS)[1]
    return np.where(columns <= dp.WORD_BITS, short, many)


def pair_lanes(columns: int, pairs: int) -> int:
    """How many of so many pairs are swept at once."""
    words = columns // dp.WORD_BITS
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
        lanes = pair_lanes(columns, len(order))
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
    word = np.promote_types(word_type(min(columns, dp.WORD_BITS), longest), dtype)
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
