"""Longest common subsequences of some queries with blocks of targets, on the CPU.

Targets lie in lanes, bits along them (``bits.lcs_words``); all lanes read one query.
"""

from typing import TYPE_CHECKING

import numpy as np

from jaxalign.bits import lcs_words
from jaxalign.bits.match_words import LANES, MatchWords, QueryLetters, match_words
from jaxalign.runtime.devices import on_cpu, precision
from jaxalign.runtime.lengths import bucket
from jaxalign.runtime.programs import stored

if TYPE_CHECKING:
    from jaxalign.model.alphabet import Alphabet
    from jaxalign.model.selection import CodedSequences


QUERY_SLOTS = 256  # queries of a call; with short targets four times as many

lcs_of_queries = stored(lcs_words.lcs_of_queries, ("rows",))
lcs_of_pairs = stored(lcs_words.lcs_of_pairs, ("rows",))


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
    slots = QUERY_SLOTS if words.match.shape[-1] < LANES[-1] else 4 * QUERY_SLOTS
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
    shape = bucket(longest) + 2 * lcs_words.PADDING, words.match.shape[-1]
    letters = np.full(shape, alphabet.size, np.uint8)
    for lane, index in enumerate(i):
        one = queries[index]
        letters[lcs_words.PADDING : lcs_words.PADDING + len(one), lane] = one
    rows = _rows_of(words, length)
    with on_cpu(), precision("int64"):
        lcs = lcs_of_pairs(*words, letters, np.int32(longest), rows=rows)
        return np.asarray(lcs)[: len(i)]
