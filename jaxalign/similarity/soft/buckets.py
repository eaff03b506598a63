"""Few padded shapes for pairs of many lengths: each shape is one compiled program."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jaxalign.errors import UsageError
from jaxalign.model.show import brief
from jaxalign.signatures import with_options
from jaxalign.similarity.options import SimilarityOptions


class LengthBucket(NamedTuple):
    """Pairs padded to one ``shape`` (m, n); ``indices`` are int64, in rising order."""

    shape: tuple[int, int]
    indices: np.ndarray

    __repr__ = brief


@with_options(SimilarityOptions, named=True)
def bucket_lengths(
    query_lengths: ArrayLike,
    target_lengths: ArrayLike,
    *,
    shapes: int = 8,
    multiple: int = 8,
) -> list[LengthBucket]:
    """Divide pairs among few padded shapes, with little padding.

    JAX compiles one program per shape of a batch. Batches of the same size from one
    bucket share a program.

    Parameters
    ----------
    query_lengths, target_lengths : int (count,)
        Lengths of pair k, at least 0.
    shapes : int
        Maximum number of buckets.
    multiple : int
        Lengths of shapes are multiples of this.

    Returns
    -------
    list of LengthBucket
        In order of rising size. Every pair is in one bucket, and fits its shape.

    Raises
    ------
    UsageError
        If the lengths are not two vectors of one size, or an option is below 1.

    Notes
    -----
    Greedy: repeatedly split the bucket, by query or target length, whose split saves
    most padding. Related pairs have similar lengths; unrelated pairs need more padding.

    Examples
    --------
    >>> import numpy as np, jaxalign
    >>> m, n = np.array([90, 300, 80, 310]), np.array([100, 280, 90, 300])
    >>> [(b.shape, b.indices.tolist()) for b in jaxalign.bucket_lengths(m, n, shapes=2)]
    [((96, 104), [0, 2]), ((312, 304), [1, 3])]
    """
    sides = np.asarray(query_lengths), np.asarray(target_lengths)
    lengths = np.stack(np.broadcast_arrays(*sides), -1)
    if lengths.ndim != 2 or lengths.dtype.kind not in "iu" or (lengths < 0).any():
        raise UsageError(
            f"lengths of {lengths.dtype}, shapes {[x.shape for x in sides]}: two "
            "vectors of integers of 0 or more are needed, with one entry per pair"
        )
    if shapes < 1 or multiple < 1:
        raise UsageError(f"shapes {shapes}, multiple {multiple}: 1 or more is needed")
    lengths = -(-lengths // multiple) * multiple
    if not len(lengths):
        return []
    parts = [np.arange(len(lengths))]
    cuts = [_best_cut(lengths)]
    while len(parts) < shapes:
        k = int(np.argmax([saved for saved, *_ in cuts]))
        saved, side, length = cuts[k]
        if saved <= 0:
            break
        part = parts.pop(k)
        del cuts[k]
        short = lengths[part, side] <= length
        for piece in (part[short], part[~short]):
            parts.append(piece)
            cuts.append(_best_cut(lengths[piece]))
    buckets = [LengthBucket(_shape(lengths[part]), part) for part in parts]
    return sorted(buckets, key=lambda bucket: bucket.shape[0] * bucket.shape[1])


def _shape(lengths: np.ndarray) -> tuple[int, int]:
    m, n = lengths.max(axis=0).tolist()
    return m, n


def _best_cut(lengths: np.ndarray) -> tuple[int, int, int]:
    """(cells saved, side, largest length of the first part) of the best cut in two."""
    whole = len(lengths) * int(lengths.max(axis=0).prod())
    best = 0, 0, 0
    for side in (0, 1):
        order = lengths[np.argsort(lengths[:, side], kind="stable")]
        count = np.arange(1, len(order))
        before = np.maximum.accumulate(order, axis=0)[:-1].prod(axis=1)
        after = np.maximum.accumulate(order[::-1], axis=0)[::-1][1:].prod(axis=1)
        cells = before * count + after * (len(order) - count)
        cells = np.where(order[1:, side] > order[:-1, side], cells, whole)
        if len(cells) and whole - cells.min() > best[0]:
            at = int(cells.argmin())
            best = int(whole - cells[at]), side, int(order[at, side])
    return best
