"""How often each letter occurs, as bits: a bound of the letters that have no like.

Bit k of a letter says that it occurs more than k times. Two rows of bits then differ in
as many places as their sequences have letters without a partner of the same kind in the
other one, or in fewer, where a letter occurs more often than it has bits.
"""

import numpy as np


def composition_words(counts: np.ndarray, words: int) -> np.ndarray:
    """Words of how often each kind of letter occurs: uint32 (words, n).

    Parameters
    ----------
    counts : int (n, kinds)
        At most ``32 * words`` kinds.
    words : int
    """
    kinds = counts.shape[1]
    each, more = divmod(32 * words, kinds)
    room = each + (np.arange(kinds) < more)
    packed = np.zeros((words, len(counts)), np.uint32)
    bit = 0
    for kind in range(kinds):
        for level in range(int(room[kind])):
            place = np.uint32(bit % 32)
            packed[bit // 32] |= (counts[:, kind] > level).astype(np.uint32) << place
            bit += 1
    return packed


def kind_counts(
    codes: np.ndarray, offsets: np.ndarray, kinds: np.ndarray
) -> np.ndarray:
    """How often each kind of letter occurs in each sequence, int32 (n, kinds).

    Parameters
    ----------
    codes, offsets : uint8 (letters,), int64 (n + 1,)
    kinds : int (size,)
        The kind of each code, from 0 on.
    """
    count, many = len(offsets) - 1, int(kinds.max()) + 1
    rows = np.repeat(np.arange(count), np.diff(offsets))
    flat = rows * many + kinds[codes]
    counts = np.bincount(flat, minlength=count * many)
    return counts.reshape(count, many).astype(np.int32)


def merged_kinds(costs: np.ndarray, least: int) -> np.ndarray:
    """Kinds of letters, so that a letter with one of another kind costs ``least`` or
    more: int (letters,).

    Parameters
    ----------
    costs : int (letters, letters)
    """
    kinds = np.arange(len(costs))
    for a, b in zip(*np.nonzero(np.minimum(costs, costs.T) < least), strict=True):
        kinds[kinds == kinds[a]] = kinds[b]
    return np.unique(kinds, return_inverse=True)[1]
