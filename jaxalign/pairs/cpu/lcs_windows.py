"""Longest common subsequences of some queries with blocks of targets, on the CPU.

Targets lie in lanes, bits along them (``pairs.dp.bits``); all lanes read one query.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jaxalign.pairs.cpu.lane_packing import LCS_LANES, SHORT, SHORT_LANES
from jaxalign.pairs.cpu.rows_window import stacked
from jaxalign.pairs.dp import bits
from jaxalign.pairs.windows import bucket
from jaxalign.runtime.devices import on_cpu, precision
from jaxalign.runtime.programs import stored

# Words of a target that are swept at once: of each a program
WORD_COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, bits.MAX_WORDS)
QUERY_SLOTS = 256  # queries of a call; with short targets four times as many
LANES = (*LCS_LANES, SHORT_LANES)
LEAST_LETTERS = 2**16  # room for letters of queries

lcs_of_queries = stored(bits.lcs_of_queries, ("rows",))
lcs_of_pairs = stored(bits.lcs_of_pairs, ("rows",))


@dataclass(frozen=True, eq=False)
class QueryLetters:
    """Queries one after the other, as ``bits.lcs_of_queries`` reads them."""

    letters: np.ndarray  # uint8
    start: np.ndarray  # int32
    length: np.ndarray  # int32


def query_letters(queries, which, padding: int) -> QueryLetters:
    """Some queries, in that order.

    queries : Sequences; padding : a letter that matches nothing
    """
    length = queries.lengths[which]
    start = np.cumsum(length + bits.PADDING) - length
    room = int(length.sum()) + (len(length) + 1) * bits.PADDING
    letters = np.full(bucket(room, 4, LEAST_LETTERS), padding, np.uint8)
    to = np.repeat(start - (np.cumsum(length) - length), length)
    place = np.arange(len(to))
    source = np.repeat(queries.starts[which] - (np.cumsum(length) - length), length)
    letters[to + place] = queries.codes[source + place]
    return QueryLetters(letters, start.astype(np.int32), length.astype(np.int32))


class MatchWords(NamedTuple):
    """Targets in lanes, as ``bits.lcs_of_queries`` reads them."""

    match: np.ndarray  # uint64, uint32 (room for groups, letters + 1, words, lanes)
    groups: np.ndarray  # int32 ()


def match_words(targets, which, alphabet) -> MatchWords:
    """For each letter the columns of each target that hold it. Nothing matches the
    wildcard, nor the last letter."""
    size, longest = alphabet.size, int(targets.lengths[which].max(initial=0))
    words, groups = words_of(-(-longest // bits.WORD_BITS))
    lanes = next(x for x in LANES if x >= len(which))
    room = bucket(groups, 4, 1)
    width = SHORT if longest <= SHORT else bits.WORD_BITS
    codes = np.full((lanes, room * words * width), size, np.uint8)
    codes[: len(which), :longest] = stacked(targets, which, size)
    match = np.zeros((room, size + 1, words, lanes), f"<u{width // 8}")
    for letter in range(size):
        if letter != alphabet.wildcard_code:
            packed = np.packbits(codes == letter, axis=1, bitorder="little")
            by_word = np.ascontiguousarray(packed.view(match.dtype).T)
            match[:, letter] = by_word.reshape(room, words, lanes)
    return MatchWords(match, np.int32(groups))


def words_of(count: int) -> tuple[int, int]:
    """(words of a group, groups) for targets of so many words."""
    if count <= bits.MAX_WORDS:
        return next(x for x in WORD_COUNTS if x >= count), 1
    sizes = [(-(-count // x) * x, -x) for x in WORD_COUNTS if 2 * x >= bits.MAX_WORDS]
    all_words, words = min(sizes)
    return -words, all_words // -words


def lcs_block(queries: QueryLetters, some: slice, targets, which, alphabet):
    """LCS of a run of queries with a block of targets.

    Returns
    -------
    int16 (queries, targets), int32 of targets of many words
    """
    words = match_words(targets, which, alphabet)
    start, length = queries.start[some], queries.length[some]
    rows = _rows_of(words, length)
    found = [np.zeros((0, len(which)), np.int32 if rows else np.int16)]
    slots = QUERY_SLOTS if words.match.shape[-1] < LANES[-1] else 4 * QUERY_SLOTS
    with on_cpu(), precision("int64"):
        for at in range(0, len(start), slots):
            few = [x[at : at + slots] for x in (start, length)]
            count = len(few[0])
            few = [np.pad(x, (0, slots - count)) for x in few]
            args = (*words, queries.letters, *few, np.int32(count))
            lcs = lcs_of_queries(*args, rows=rows)
            found.append(np.asarray(lcs)[:count, : len(which)])
    return np.concatenate(found)


def _rows_of(words: MatchWords, length) -> int:
    """Room for carries from one group to the next."""
    return bucket(int(length.max(initial=0)), 4) if len(words.match) > 1 else 0


def lcs_zipped(queries, targets, i, j, alphabet) -> np.ndarray:
    """LCS of the pairs of a block, query ``i[k]`` with target ``j[k]``: int32."""
    words, length = match_words(targets, j, alphabet), queries.lengths[i]
    longest = int(length.max(initial=0))
    shape = bucket(longest) + 2 * bits.PADDING, words.match.shape[-1]
    letters = np.full(shape, alphabet.size, np.uint8)
    for lane, index in enumerate(i):
        one = queries[index]
        letters[bits.PADDING : bits.PADDING + len(one), lane] = one
    rows = _rows_of(words, length)
    with on_cpu(), precision("int64"):
        found = lcs_of_pairs(*words, letters, np.int32(longest), rows=rows)
        return np.asarray(found)[: len(i)]
