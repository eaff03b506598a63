"""Edit distances of some queries to blocks of targets, on the CPU.

Targets lie in lanes, bits along them (``edits.dp.edit_bits``), as for common
subsequences (``bits.lcs_windows``). Short targets have short words, of which a
step computes more.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from jaxalign.bits import lcs_words
from jaxalign.bits.match_words import QueryLetters, words_of
from jaxalign.edits.dp import edit_bits
from jaxalign.model.letters import LetterCodes
from jaxalign.runtime.devices import on_cpu, precision
from jaxalign.runtime.lengths import bucket
from jaxalign.runtime.programs import stored

QUERY_SLOTS = 1024  # queries of a call
WORDS = (np.uint16, np.uint32, np.uint64)
LANE_BYTES = 2048  # of the words of all lanes, where one word has a target …
MANY_LANES = ((4, 128), (8, 64))  # … lanes of more words, up to so many …
FEW_LANES = 32  # … and of still more, or where lengths differ
SHORT = 32  # letters on average, where a sequence at a time takes longer
MAX_SPREAD = 1.25  # times the shortest target that the longest of many lanes is

edits_of_queries = stored(edit_bits.edits_of_queries, ("rows",))


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
    words = -(-longest // lcs_words.WORD_BITS)
    if words <= 1:
        return LANE_BYTES // word.itemsize
    return next((lanes for most, lanes in MANY_LANES if words <= most), FEW_LANES)


def block_size(lengths: np.ndarray, at: int, other: int) -> int:
    """How many of some targets, longest first, are a block from place ``at`` on."""
    lanes = lanes_of(int(lengths[at]), other)
    last = lengths[min(at + lanes, len(lengths)) - 1]
    alike = lengths[at] <= max(MAX_SPREAD * last, lcs_words.WORD_BITS)
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
