"""Hashes of sequences with some letters deleted, and pairs that share one.

Two sequences x and y within an edit distance k have an alignment of s substitutions, d
letters of x alone and e of y alone, s + d + e <= k. Without the s + d letters of x and
the s + e letters of y that are not paired with their like, the two are equal: so they
share a variant with at most k letters deleted (Mor and Fraenkel 1982; Bocek et al.
2007, FastSS). Equal variants have equal hashes. A hash is a sum over positions of a
random number of position and letter, so that all variants come from a few running sums.
"""

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from jaxalign.model.selection import begins, ranks, spans

SEED = 1982
PAIRS_AT_ONCE = 2**22


def random_numbers(positions: int, letters: int) -> np.ndarray:
    """uint64 (positions, letters)."""
    draw = np.random.default_rng(SEED)
    return draw.integers(0, 2**64, (positions, letters), np.uint64)


def deletion_hashes(
    letters: np.ndarray, deleted: int, numbers: np.ndarray
) -> Iterator[np.ndarray]:
    """Hashes of sequences of one length, for each choice of letters to delete.

    Parameters
    ----------
    letters : uint8 (n, length)
    deleted : int
        How many letters, at most ``length``.
    numbers : uint64 (positions, letters)
        Of ``random_numbers``.

    Yields
    ------
    uint64 (n,), length over deleted times
    """
    count, length = letters.shape
    running = np.zeros((deleted + 1, length + 1, count), np.uint64)
    for shift in range(deleted + 1):
        for place in range(shift, length):
            value = numbers[place - shift][letters[:, place]]
            np.add(running[shift, place], value, out=running[shift, place + 1])
    for places in combinations(range(length), deleted):
        ends = (*places, length)
        hashes = running[0, ends[0]].copy()
        for shift, (place, end) in enumerate(zip(places, ends[1:], strict=True), 1):
            hashes += running[shift, end]
            hashes -= running[shift, place + 1]
        yield hashes


def pairs_of_equals(keys: np.ndarray, bits: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Pairs of numbers whose keys agree above them.

    Parameters
    ----------
    keys : uint64 (n,), sorted
        A hash above a number of ``bits`` bits; none twice.
    bits : int

    Yields
    ------
    (uint64 (p,), uint64 (p,))
        The smaller number first, some pairs at a time.
    """
    hashes = keys >> np.uint64(bits)
    first = np.flatnonzero(begins(hashes))
    sizes = np.diff(np.append(first, len(keys)))
    shared = sizes > 1
    first, sizes = first[shared], sizes[shared]
    numbers = keys & np.uint64(2**bits - 1)
    # Each member of a group is paired with those after it.
    places = np.repeat(first, sizes) + ranks(sizes)
    partners = np.repeat(first + sizes, sizes) - places - 1
    places, partners = places[partners > 0], partners[partners > 0]
    for start, stop in spans(partners, PAIRS_AT_ONCE):
        left = np.repeat(places[start:stop], partners[start:stop])
        yield numbers[left], numbers[left + 1 + ranks(partners[start:stop])]
