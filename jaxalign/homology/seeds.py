"""Pairs across two sets that are likely to be alike, by shared words.

No result depends on them: what they find is a bound from below on the worst pairs, so
that fewer other pairs need be aligned to find those.
"""

import numpy as np
from scipy.sparse import csr_array

from jaxalign.model.alphabet import Sequences
from jaxalign.model.selection import begins
from jaxalign.runtime.pipeline import in_threads

WORD, SHORT_WORD = 4, 2  # letters; the second where sequences are short
SHORT = 40  # mean length
MOST_PRODUCTS = 3e8  # of words, about: seconds
QUERIES = 256  # whose counts are in memory at a time


def likely_pairs(
    a: Sequences, b: Sequences, count: int, threads: int = 1, of_shorter: bool = False
) -> tuple:
    """About the ``count`` pairs with the largest share of common words, of the longer
    length or of the shorter one.

    Returns
    -------
    i, j : int64
        Sequences of ``a`` and of ``b``; each i at most once.
    """
    letters = a.alphabet.size
    mean = (len(a.codes) + len(b.codes)) / max(len(a) + len(b), 1)
    word = SHORT_WORD if mean < SHORT else WORD
    sampled = _evenly(len(a), len(a) * len(b))  # whose counts are looked through
    of_a = _words(a.take(sampled.tolist()), word, letters)
    of_b = _words(b, word, letters)
    fewer = _evenly(len(sampled), float(of_a.sum(axis=0) @ of_b.sum(axis=0)))
    sampled, of_a, columns = sampled[fewer], of_a[fewer], csr_array(of_b.T)
    lengths = np.maximum(b.lengths, 1)

    def best_of(first: int) -> tuple[np.ndarray, np.ndarray]:
        """The best target of some queries, and its share."""
        rows = slice(first, first + QUERIES)
        common = (of_a[rows] @ columns).toarray()
        join = np.minimum if of_shorter else np.maximum
        own = np.maximum(a.lengths[sampled[rows]][:, None], 1)
        common = common / join(own, lengths)
        return common.argmax(axis=1), common.max(axis=1)

    # SciPy multiplies without Python's lock.
    blocks = in_threads(best_of, range(0, len(sampled), QUERIES), threads)
    none = np.zeros(0, np.int64), np.zeros(0)
    sides = zip(none, *blocks, strict=True)
    best_j, share = (np.concatenate(side) for side in sides)
    best = np.argsort(-share, kind="stable")[:count]
    return sampled[best], best_j[best]


def _words(sequences: Sequences, word: int, letters: int) -> csr_array:
    """Which words every sequence has: (n, letters^word) of 0 and 1."""
    codes = sequences.codes.astype(np.int32)
    words = np.zeros(max(len(codes) - word + 1, 0), np.int32)
    for k in range(word):
        words = words * letters + codes[k : k + len(words)]
    # Those that no end of a sequence cuts; the last places are for ends before word.
    inside = np.ones(len(codes) + word, bool)
    for k in range(1, word):
        inside[sequences.offsets[1:] - k] = False
    counts = np.maximum(sequences.lengths - word + 1, 0)
    every, kinds = len(sequences), letters**word
    # One number a word of a sequence: sorted many times faster than by SciPy.
    numbers = np.repeat(np.arange(every) * kinds, counts) + words[inside[: len(words)]]
    numbers.sort()
    numbers = numbers[begins(numbers)]
    rows = np.searchsorted(numbers, np.arange(every + 1) * kinds)
    columns = (numbers % kinds).astype(np.int32)
    ones = np.ones(len(columns), np.float32)
    return csr_array((ones, columns, rows), shape=(every, kinds))


def _evenly(count: int, products: float) -> np.ndarray:
    """As many queries of some as may be compared, evenly over all."""
    return np.arange(0, count, int(np.ceil(max(products, 1) / MOST_PRODUCTS)))
