"""Few padded shapes for many lengths."""

import numpy as np
import pytest

from jaxalign import UsageError, bucket_lengths


def protein_lengths(seed, count):
    drawn = np.random.default_rng(seed).normal(size=count)
    return np.clip(np.exp(5.7 + 0.45 * drawn), 20, 3000).astype(int)


def fewest_cells(lengths, shapes):
    """Of squares, by dynamic programming over the lengths that occur."""
    sizes, counts = np.unique(-(-lengths // 8) * 8, return_counts=True)
    before = np.concatenate([[0], np.cumsum(counts)])
    best = np.full((shapes + 1, len(sizes) + 1), np.inf)
    best[:, 0] = 0
    for k in range(1, shapes + 1):
        for j in range(1, len(sizes) + 1):
            last = (before[j] - before[:j]) * sizes[j - 1] ** 2
            best[k, j] = (best[k - 1, :j] + last).min()
    return best[-1, -1]


@pytest.mark.parametrize("related", [True, False])
def test_every_pair_fits_its_shape(related):
    m = protein_lengths(1, 400)
    n = m + np.random.default_rng(2).integers(-9, 10, 400) if related else m[::-1]
    buckets = bucket_lengths(m, n)
    assert len(buckets) == 8
    every = np.concatenate([bucket.indices for bucket in buckets])
    assert (np.sort(every) == np.arange(400)).all()
    for (rows, columns), indices in buckets:
        assert rows % 8 == columns % 8 == 0 and (np.diff(indices) > 0).all()
        assert m[indices].max() <= rows and n[indices].max() <= columns


def test_little_padding():
    """A sixth more cells than the best eight squares at most; with 12, a fifth is
    padding."""
    for seed in range(5):
        m = protein_lengths(seed, 300)
        cells = {}
        for shapes in (8, 12):
            buckets = bucket_lengths(m, m, shapes=shapes)
            areas = [b.shape[0] * b.shape[1] * len(b.indices) for b in buckets]
            cells[shapes] = sum(areas)
        assert fewest_cells(m, 8) <= cells[8] < fewest_cells(m, 8) * 7 / 6
        assert 1 - (m**2).sum() / cells[12] < 0.2


def test_few_lengths_and_refusals():
    (one,) = bucket_lengths([7, 5, 8], [3, 2, 1])
    assert one.shape == (8, 8) and one.indices.tolist() == [0, 1, 2]
    assert bucket_lengths(np.zeros(0, int), np.zeros(0, int)) == []
    for wrong in (([1.5], [2]), ([[1]], [[2]]), ([-1], [2])):
        with pytest.raises(UsageError, match="bucket_lengths"):
            bucket_lengths(*wrong)
    with pytest.raises(UsageError, match="bucket_lengths"):
        bucket_lengths([1], [2], shapes=0)
