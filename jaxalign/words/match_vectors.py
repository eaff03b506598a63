"""Match vectors: for each letter the columns of each target that hold it, as bits.

Bits lie along a target, its first column in the lowest bit of the first word, and
targets lie side by side in lanes. Sequences that have more words than are swept at once
fall into groups of words.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jaxalign.model.alphabet import CodedSequences, LetterCodes, stacked
from jaxalign.runtime.devices import bucket

if TYPE_CHECKING:
    from jaxalign.model.alphabet import Alphabet


WORD_BITS = 64
MAX_WORDS = 16  # of a target that are swept at once
# Words of a target that are swept at once: of each a program
WORD_COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, MAX_WORDS)
PADDING = 8  # letters without a match before and after a query
LEAST_LETTERS = 2**20  # room for letters of queries, one size for most jobs

# Targets side by side in an LCS; 64 and 256 took as long or longer
LCS_LANES = (32, 128)
# Letters of short sequences, of which a block has more: a call would take longer than
# what it computes
SHORT, SHORT_LANES = 32, 512
LANES = (*LCS_LANES, SHORT_LANES)
MAX_SPREAD = 1.25  # times the shortest target that the longest of many lanes is

# Targets side by side in edit distances, which have short words where they are short
EDIT_WORDS = (np.uint16, np.uint32, np.uint64)
LANE_BYTES = 2048  # of the words of all lanes, where one word has a target …
MANY_LANES = ((4, 128), (8, 64))  # … lanes of more words, up to so many …
FEW_LANES = 32  # … and of still more, or where lengths differ


class MatchVectors(NamedTuple):
    """Targets in lanes."""

    match: np.ndarray  # unsigned (room for groups, letters + 1 or more, words, lanes)
    groups: np.int32


def flag_words(flags: np.ndarray, word: np.dtype, words: int) -> np.ndarray:
    """Flags (lanes, columns) as bits: (groups, words, lanes)."""
    octets = np.packbits(flags.reshape(-1), bitorder="little")
    by_word = octets.view(word.newbyteorder("<")).reshape(len(flags), -1).T
    return by_word.reshape(-1, words, len(flags))


def match_table(
    codes: np.ndarray,
    letters: int,
    word: np.dtype,
    words: int,
    rows: int = 0,
    room: int = 1,
    wildcard: int | None = None,
) -> np.ndarray:
    """Match vectors (room, rows, words, lanes) of ``letters`` letters; other rows are
    empty.

    codes : unsigned (lanes, columns). As many columns as some groups of ``words`` words
        have bits.
    rows, room : at least the letters, and the groups.
    wildcard : a letter that nothing matches.
    """
    groups = codes.shape[1] // (words * word.itemsize * 8)
    shape = max(room, groups), max(rows, letters), words, len(codes)
    match = np.zeros(shape, word)
    for letter in range(letters):
        if letter != wildcard:
            match[:groups, letter] = flag_words(codes == letter, word, words)
    return match


def words_of(count: int) -> tuple[int, int]:
    """(words of a group, groups) for targets of so many words."""
    if count <= MAX_WORDS:
        return next(x for x in WORD_COUNTS if x >= count), 1
    sizes = [(-(-count // x) * x, -x) for x in WORD_COUNTS if 2 * x >= MAX_WORDS]
    all_words, words = min(sizes)
    return -words, all_words // -words


def lcs_vectors(
    targets: CodedSequences, which: np.ndarray, alphabet: "Alphabet"
) -> MatchVectors:
    """Vectors of an LCS. Targets begin at the lowest bit. Nothing matches the wildcard,
    nor the letter after the last."""
    size, longest = alphabet.size, int(targets.lengths[which].max(initial=0))
    words, groups = words_of(-(-longest // WORD_BITS))
    word = np.dtype(np.uint32 if longest <= SHORT else np.uint64)
    lanes = next(x for x in LANES if x >= len(which))
    codes = np.full((lanes, groups * words * word.itemsize * 8), size, np.uint8)
    codes[: len(which), :longest] = stacked(targets, which, size)
    about = size + 1, bucket(groups, 4, 1), alphabet.wildcard_code
    return MatchVectors(match_table(codes, size, word, words, *about), np.int32(groups))


def edit_vectors(
    targets: LetterCodes, which: np.ndarray, longest_query: int
) -> MatchVectors:
    """Vectors of edit distances. Targets end at the highest bit, and letters after the
    last match the columns before them.

    other : no query has more letters
    """
    size, longest = targets.size, int(targets.lengths[which].max(initial=0))
    word, lanes = word_type(longest, longest_query), edit_lanes(longest, longest_query)
    lanes = lanes if len(which) > FEW_LANES else FEW_LANES
    width = word.itemsize * 8
    words, groups = words_of(max(-(-longest // width), 1))
    codes = np.full((lanes, groups * words * width), size, targets.codes.dtype)
    _fill_ends(codes, targets, which)
    rows, room = bucket(size, 2, 4) + 1, bucket(groups, 2, 1)
    match = match_table(codes, size, word, words, rows, room)
    match[:groups, size:] = flag_words(codes == size, word, words)[:, None]
    return MatchVectors(match, np.int32(groups))


def _fill_ends(rows: np.ndarray, sequences: LetterCodes, which: np.ndarray) -> None:
    """Write some sequences into rows, each up to the end of its row."""
    flat, width = sequences.codes, rows.shape[1]
    first, length = sequences.starts[which], sequences.lengths[which]
    total = int(length.sum())
    if total < SHORT * len(length):  # a sequence at a time would take longer
        ends = np.cumsum(length)
        back = np.repeat(ends, length) - np.arange(total)  # from the end, 1 the last
        row = np.repeat(np.arange(len(length)), length)
        rows[row, width - back] = flat[np.repeat(first + length, length) - back]
        return
    for row, at, count in zip(rows, first.tolist(), length.tolist(), strict=False):
        row[width - count :] = flat[at : at + count]


def word_type(longest: int, longest_query: int) -> np.dtype:
    """The words of targets of up to ``longest`` letters, whose distances to sequences
    of up to ``other`` letters are below their range."""
    for word in map(np.dtype, EDIT_WORDS):
        if longest <= word.itemsize * 8 and longest_query < 1 << word.itemsize * 8:
            return word
    return np.dtype(np.uint64)


def edit_lanes(longest: int, longest_query: int) -> int:
    """Lanes of edit distances to targets of up to ``longest`` letters."""
    words = -(-longest // WORD_BITS)
    if words <= 1:
        return LANE_BYTES // word_type(longest, longest_query).itemsize
    return next((lanes for limit, lanes in MANY_LANES if words <= limit), FEW_LANES)


@dataclass(frozen=True, eq=False)
class QueryLetters:
    """Queries one after the other, ``PADDING`` times a letter that nothing matches
    before, between and after them."""

    letters: np.ndarray  # uint8
    start: np.ndarray  # int32
    length: np.ndarray  # int32


def query_letters(
    queries: CodedSequences | LetterCodes, which: np.ndarray, padding: int
) -> QueryLetters:
    """Some queries, in that order."""
    length = queries.lengths[which]
    start = np.cumsum(length + PADDING) - length
    room = int(length.sum()) + (len(length) + 1) * PADDING
    letters = np.full(bucket(room, 4, LEAST_LETTERS), padding, np.uint8)
    to = np.repeat(start - (np.cumsum(length) - length), length)
    place = np.arange(len(to))
    source = np.repeat(queries.starts[which] - (np.cumsum(length) - length), length)
    letters[to + place] = queries.codes[source + place]
    return QueryLetters(letters, start.astype(np.int32), length.astype(np.int32))
