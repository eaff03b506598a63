"""Longest common subsequences of some queries with a block of targets, in NumPy: for
jobs that end sooner than a compiler (``pairs.dp.bit_rows``)."""

import numpy as np

from jaxalign.pairs.cpu.rows_window import stacked
from jaxalign.pairs.dp import bit_rows

STEP_PAIRS = 2**14  # of which a word is read at once: five such arrays stay in a cache


def lcs_block(queries, some, targets, which, alphabet) -> np.ndarray:
    """LCS of some queries, the longest first, with a block of targets, both by index.

    Returns
    -------
    int32 (queries, targets)
    """
    codes = stacked(targets, which, alphabet.size)
    match = bit_rows.match_words(codes, alphabet.size, alphabet.wildcard_code)
    step = max(STEP_PAIRS // max(len(which), 1), 1)
    found = [np.zeros((0, len(which)), np.int32)]
    for at in range(0, len(some), step):
        few = some[at : at + step]
        found.append(bit_rows.lcs(stacked(queries, few), queries.lengths[few], match))
    return np.concatenate(found)
