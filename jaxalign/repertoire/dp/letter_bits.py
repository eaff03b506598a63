"""Codes of letters whose differing bits bound a distance of letters from below.

A bit divides the letters in two: a *cut*. If letters a and b are apart in c(a, b) of
the cuts, and c(a, b) <= scale * D(a, b) for all a and b, then of two rows of letters

    differing bits of their codes <= scale * (sum of D over their positions),

and the left side is a XOR and a population count of words. (A sum of cut metrics below
a metric: Deza and Laurent 1997, Geometry of Cuts and Metrics.)
"""

from fractions import Fraction

import numpy as np

APART = 4  # cuts between the letters that are farthest apart, at most
STARTS = 24  # of the search for a cut, each from other random sides
SEED = 1997


def letter_bits(table: np.ndarray, bits: int) -> tuple[np.ndarray, Fraction]:
    """(codes uint32 (letters,) of so many bits, their scale).

    Parameters
    ----------
    table : int (letters, letters)
        Distances, symmetric, 0 on the diagonal and nowhere negative.
    bits : int
    """
    scale = Fraction(APART, max(int(table.max()), 1))
    room = table * scale.numerator // scale.denominator
    codes = np.zeros(len(table), np.uint32)
    draw = np.random.default_rng(SEED)
    for bit in range(bits):
        sides = _cut(room, draw)
        room = room - (sides[:, None] != sides[None, :])
        codes |= sides.astype(np.uint32) << np.uint32(bit)
    return codes, scale


def _cut(room: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Sides, bool (letters,), that part as many pairs with room as a search finds, and
    no pair without."""
    groups = _joined(room < 1)
    count = int(groups.max()) + 1
    weights = np.zeros((count, count))
    np.add.at(weights, (groups[:, None], groups[None, :]), np.sqrt(np.maximum(room, 0)))
    np.fill_diagonal(weights, 0)
    best, most = np.zeros(count, bool), 0.0
    for _ in range(STARTS):
        sides = _local_search(weights, draw.random(count) < 0.5)
        parted = weights[sides][:, ~sides].sum()
        if parted > most:
            best, most = sides, parted
    return best[groups]


def _joined(near: np.ndarray) -> np.ndarray:
    """Groups of letters that must be on one side, int (letters,)."""
    groups = np.arange(len(near))
    for i, j in zip(*np.nonzero(near), strict=True):
        groups[groups == groups[i]] = groups[j]
    return np.unique(groups, return_inverse=True)[1]


def _local_search(weights: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """Move the group to the other side that gains most, while one gains."""
    while True:
        signs = np.where(sides, 1.0, -1.0)
        gains = signs * (weights @ signs)
        best = int(gains.argmax())
        if gains[best] <= 1e-9:
            return sides
        sides[best] = ~sides[best]


def words(codes: np.ndarray, letters: np.ndarray, bits: int, count: int) -> np.ndarray:
    """Codes of the middle positions of rows of letters, in words: uint32 (count, rows).

    Parameters
    ----------
    codes : uint32 (letters,)
    letters : uint8 (rows, positions)
    bits : int
        Of a code.
    count : int
        Words; positions that they have no room for are left out, from both ends.
    """
    room = 32 // bits
    first = max(letters.shape[1] - count * room, 0) // 2
    packed = np.zeros((count, len(letters)), np.uint32)
    for k in range(min(letters.shape[1], count * room)):
        packed[k % count] |= codes[letters[:, first + k]] << np.uint32(
            k // count * bits
        )
    return packed
