"""The letters of queries, and the words of targets that say where a letter stands.

Bits lie along a target, and targets lie side by side in lanes.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jaxalign.model.alphabet import CodedSequences, stacked
from jaxalign.runtime.devices import bucket
from jaxalign.words import dp
from jaxalign.words.lanes import LCS_LANES, SHORT, SHORT_LANES

if TYPE_CHECKING:
    from jaxalign.model.alphabet import Alphabet, LetterCodes


# Words of a target that are swept at once: of each a program
WORD_COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, dp.MAX_WORDS)
LANES = (*LCS_LANES, SHORT_LANES)
LEAST_LETTERS = 2**20  # room for letters of queries, one size for most jobs


@dataclass(frozen=True, eq=False)
class QueryLetters:
    """Queries one after the other, as ``lcs_words.lcs_of_queries`` reads them."""

    letters: np.ndarray  # uint8
    start: np.ndarray  # int32
    length: np.ndarray  # int32


def query_letters(
    queries: "CodedSequences | LetterCodes", which: np.ndarray, padding: int
) -> QueryLetters:
    """Some queries, in that order.

    queries : Sequences; padding : a letter that matches nothing
    """
    length = queries.lengths[which]
    start = np.cumsum(length + dp.PADDING) - length
    room = int(length.sum()) + (len(length) + 1) * dp.PADDING
    letters = np.full(bucket(room, 4, LEAST_LETTERS), padding, np.uint8)
    to = np.repeat(start - (np.cumsum(length) - length), length)
    place = np.arange(len(to))
    source = np.repeat(queries.starts[which] - (np.cumsum(length) - length), length)
    letters[to + place] = queries.codes[source + place]
    return QueryLetters(letters, start.astype(np.int32), length.astype(np.int32))


class MatchWords(NamedTuple):
    """Targets in lanes, as ``lcs_words.lcs_of_queries`` reads them."""

    match: np.ndarray  # uint64, uint32 (room for groups, letters + 1, words, lanes)
    groups: np.int32


def match_words(
    targets: CodedSequences, which: np.ndarray, alphabet: "Alphabet"
) -> MatchWords:
    """For each letter the columns of each target that hold it. Nothing matches the
    wildcard, nor the last letter."""
    size, longest = alphabet.size, int(targets.lengths[which].max(initial=0))
    words, groups = words_of(-(-longest // dp.WORD_BITS))
    lanes = next(x for x in LANES if x >= len(which))
    room = bucket(groups, 4, 1)
    width = SHORT if longest <= SHORT else dp.WORD_BITS
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
    if count <= dp.MAX_WORDS:
        return next(x for x in WORD_COUNTS if x >= count), 1
    sizes = [(-(-count // x) * x, -x) for x in WORD_COUNTS if 2 * x >= dp.MAX_WORDS]
    all_words, words = min(sizes)
    return -words, all_words // -words
