"""Pairs of some queries and some targets by their lengths: what depends on two lengths
is asked once, not for every pair."""

import numpy as np

NEVER = 2**30  # identical pairs: more than any two sequences have


def classes_of(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(distinct lengths, which of them each is) of lengths that fall."""
    new = np.ones(len(lengths), bool)
    new[1:] = lengths[1:] != lengths[:-1]
    return lengths[new], np.cumsum(new) - 1


def near(counts, least, queries, targets) -> tuple[np.ndarray, np.ndarray]:
    """Places (P,) of the queries and the targets whose count is not too low.

    Parameters
    ----------
    counts : int16, int32 (queries, targets)
    least : integers (classes, classes)
        The least count of two lengths, or ``NEVER``.
    queries, targets : integers (queries,), (targets,)
        The class of each.
    """
    highest = np.iinfo(counts.dtype).max
    least = np.minimum(least, highest).astype(counts.dtype)
    wide = np.take(least, targets, axis=1)
    mask = counts >= np.take(wide, queries, axis=0)
    return np.divmod(_nonzero(mask.reshape(-1)), max(len(targets), 1))


def _nonzero(mask: np.ndarray) -> np.ndarray:
    """``numpy.flatnonzero`` of a mask that is true in few places: eight at a time."""
    whole = len(mask) // 8 * 8
    (eights,) = np.nonzero(mask[:whole].view(np.uint64))
    place = (eights[:, None] * 8 + np.arange(8)).reshape(-1)
    place = np.concatenate([place, np.arange(whole, len(mask))])
    return place[mask[place]]
