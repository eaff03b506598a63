"""Longest common subsequences by bit-parallel words, in NumPy: ``bits.lcs_words``
without a compiler.

Words of all pairs of some queries and some targets lie side by side, and a step reads
one letter of every query. Of U = V & M the rest of V is V - U, which is V ^ U.
"""

import numpy as np

from jaxalign.model.selection import stacked

WORD_BITS = 64
STEP_PAIRS = 2**14  # of which a word is read at once: five such arrays stay in a cache
_SHIFT = np.uint64(WORD_BITS - 1)


def match_words(codes: np.ndarray, letters: int, wildcard) -> np.ndarray:
    """For each letter the columns of each target that hold it.

    Parameters
    ----------
    codes : uint8 (targets, columns)
        ``letters`` beyond the end of a target.
    letters : int
        Of the alphabet.
    wildcard : int or None
        A letter that nothing matches.

    Returns
    -------
    uint64 (words, letters, targets)
        The first column is the lowest bit of the first word.
    """
    targets, columns = codes.shape
    words = max(-(-columns // WORD_BITS), 1)
    room = np.full((targets, words * WORD_BITS), letters, np.uint8)
    room[:, :columns] = codes
    match = np.zeros((words, letters, targets), np.uint64)
    for letter in range(letters):
        if letter != wildcard:
            packed = np.packbits(room == letter, axis=1, bitorder="little")
            match[:, letter] = packed.view("<u8").T
    return match


def lcs(codes: np.ndarray, lengths: np.ndarray, match: np.ndarray) -> np.ndarray:
    """LCS of some queries with each of some targets.

    Parameters
    ----------
    codes : uint8 (queries, letters)
    lengths : integers (queries,)
        Falling; what lies beyond the end of a query is not read.
    match : uint64 (words, letters, targets)
        See ``match_words``.

    Returns
    -------
    int32 (queries, targets)
    """
    words, _, targets = match.shape
    v = np.full((words, len(codes), targets), 2**64 - 1, np.uint64)
    carry, u, total, rest = (np.empty(v.shape[1:], np.uint64) for _ in range(4))
    longest = int(lengths.max(initial=0))
    present = np.searchsorted(-lengths, -np.arange(longest))  # queries with a letter
    for at, count in enumerate(present.tolist()):
        some = [x[:count] for x in (carry, u, total, rest)]
        _next_row(v[:, :count], match, codes[:count, at], *some)
    return np.bitwise_count(~v).sum(axis=0, dtype=np.int32)


def _next_row(v, match, letters, carry, u, total, rest) -> None:
    """Take the words of some pairs a letter further; the other arrays are room."""
    for word, (old, rows) in enumerate(zip(v, match, strict=True)):
        np.take(rows, letters, axis=0, out=u, mode="clip")
        np.bitwise_and(old, u, out=u)
        np.add(old, u, out=total)
        if word:
            np.add(total, carry, out=total)
        np.bitwise_xor(old, u, out=rest)
        np.bitwise_or(total, rest, out=old)
        if word + 1 < len(v):  # the carry: the highest bit of U | (V & ~total)
            np.invert(total, out=total)
            np.bitwise_and(rest, total, out=rest)
            np.bitwise_or(rest, u, out=rest)
            np.right_shift(rest, _SHIFT, out=carry)


def lcs_block(queries, some, targets, which, alphabet) -> np.ndarray:
    """LCS of some queries, the longest first, with a block of targets, both by index.

    Returns
    -------
    int32 (queries, targets)
    """
    codes = stacked(targets, which, alphabet.size)
    match = match_words(codes, alphabet.size, alphabet.wildcard_code)
    step = max(STEP_PAIRS // max(len(which), 1), 1)
    blocks = [np.zeros((0, len(which)), np.int32)]
    for at in range(0, len(some), step):
        few = some[at : at + step]
        blocks.append(lcs(stacked(queries, few), queries.lengths[few], match))
    return np.concatenate(blocks)
