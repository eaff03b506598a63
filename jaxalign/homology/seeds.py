"""Pairs across two sets that are likely to be alike, by shared words.

No result depends on them: what they find is a bound from below on the worst pairs, so
that fewer other pairs need be aligned to find those.
"""

import numpy as np
from scipy.sparse import csr_array

from jaxalign.model.alphabet import Sequences

WORD, SHORT_WORD = 4, 2  # letters; the second where sequences are short
SHORT = 40  # mean length
MOST_PRODUCTS = 3e8  # of words, about: seconds
QUERIES = 256  # whose counts are in memory at a time


def likely_pairs(a: Sequences, b: Sequences, count: int) -> tuple:
    """About the ``count`` pairs with the largest share of common words.

    Returns
    -------
    i, j : int64
        Sequences of ``a`` and of ``b``; each i at most once.
    """
    letters = a.alphabet.size
    mean = (len(a.codes) + len(b.codes)) / max(len(a) + len(b), 1)
    word = SHORT_WORD if mean < SHORT else WORD
    of_a, of_b = (_words(one, word, letters) for one in (a, b))
    some = _sample(of_a, of_b)
    of_a, columns = of_a[some], csr_array(of_b.T)
    best_j = np.zeros(len(some), np.int64)
    share = np.zeros(len(some))
    lengths = np.maximum(b.lengths, 1)
    for first in range(0, len(some), QUERIES):
        rows = slice(first, first + QUERIES)
        common = (of_a[rows] @ columns).toarray()
        common = common / np.maximum(a.lengths[some[rows]][:, None], lengths)
        best_j[rows] = common.argmax(axis=1)
        share[rows] = common.max(axis=1)
    best = np.argsort(-share, kind="stable")[:count]
    return some[best], best_j[best]


def _words(sequences: Sequences, word: int, letters: int) -> csr_array:
    """Which words every sequence has: (n, letters^word) of 0 and 1."""
    codes = sequences.codes.astype(np.int64)
    at = np.arange(max(len(codes) - word + 1, 0))
    words = np.zeros(len(at), np.int64)
    for k in range(word):
        words = words * letters + codes[k : k + len(at)]
    row = np.searchsorted(sequences.offsets, at, side="right") - 1
    inside = at + word <= sequences.offsets[row + 1]
    flat = np.unique(row[inside] * letters**word + words[inside])
    row, column = np.divmod(flat, letters**word)
    shape = (len(sequences), letters**word)
    return csr_array((np.ones(len(flat), np.float32), (row, column)), shape=shape)


def _sample(of_a: csr_array, of_b: csr_array) -> np.ndarray:
    """Queries, as many as may be compared, evenly over all."""
    products = float(of_a.sum(axis=0) @ of_b.sum(axis=0))
    dense = of_a.shape[0] * of_b.shape[0]
    step = int(np.ceil(max(products, dense, 1) / MOST_PRODUCTS))
    return np.arange(0, of_a.shape[0], step)
