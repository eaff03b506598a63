"""Queries that share the strips of a fill, one below the other."""

from dataclasses import replace

import numpy as np
import pytest
from kernel_cases import aligned, check_scores, lower, matrix, shape_of, values

import kernels_pallas as kp
from kernels_pallas.pairs.config import NO_QUERY, stacked_strips


@pytest.mark.parametrize("packed", (True, False))
@pytest.mark.parametrize("stacks", (1, 2, 5))
def test_every_row_has_a_place(packed, stacks):
    """Chunks of a query follow each other in one table, and no strip is missing."""
    rng = np.random.default_rng(stacks)
    for lengths in ([], [0], [1, 0, 9], rng.integers(0, 200, 30).tolist()):
        s = kp.Fill(8, 4, 2, True, packed, stacks=stacks)
        found = kp.stack(lengths, s)
        used = found.strips * s.lanes
        assert (found.strips == stacked_strips(lengths, s)).all()
        for q, length in enumerate(lengths):
            item, table, place = np.nonzero(found.query == q)
            assert len(place) == -(-length // s.rows)
            if length:
                assert len({*zip(item, table, strict=True)}) == 1
                assert (place == place[0] + np.arange(len(place))).all()
                assert (found.chunk[item, table, place] == place - place[0]).all()
                assert place[-1] < used[item[0]]
        assert np.isin(found.query, [NO_QUERY, *range(len(lengths))]).all()


@values
@pytest.mark.parametrize("packed", (True, False))
def test_scores_of_stacked_queries(packed):
    """Of one letter and none, of whole lanes and strips, in more strips than one."""
    s = replace(shape_of((True, packed, True), 4, 8), stacks=2)
    m = [1, 0, s.rows, s.strip, s.strip + 3, 2 * s.rows + 1, 40, 3]
    check_scores(s, m, [0, 1, 9, 30, 8, 7, 17, 5])


@values
@pytest.mark.parametrize("columns", (1, 4))
def test_stacked_queries_with_linear_gaps_and_targets_of_any_length(columns):
    s = replace(shape_of((True, True, True), 4, 16, columns), linear=True, stacks=1)
    n = [40, 33, 9, 8, 8, 2, 1, 0, 17, 5, 5] + [0] * 13  # the last block is empty
    check_scores(s, [70, 9, 5, 0, 66], n, gaps=(4, 4), ragged=True)


@values
def test_a_query_gives_nothing_to_the_one_below():
    """Two halves of a target one below the other are no match of the whole."""
    s = replace(shape_of((True, True, True), 4, 8), stacks=1)
    target = np.arange(16, dtype=np.uint8)[None] % 5
    halves = target.reshape(2, 8)
    scores, gaps = 5 * np.eye(5, dtype=np.int32) - 4, (9, 9)
    found = aligned(s, halves.repeat(2, 0), [8] * 4, target, [16], scores, gaps, ())
    assert found.score.tolist() == [[8]] * 4


@values
def test_the_positions_of_a_profile_are_stacked():
    rng = np.random.default_rng(4)
    s = replace(shape_of((True, True, True), 4, 8), stacks=1)
    q = rng.integers(0, 5, (1, 40)).astype(np.uint8)
    t = np.resize(q, (4, 30))
    by_position = matrix()[q[0]]
    want = aligned(s, q, [40], t, [30, 9, 0, 17], matrix(), (7, 2), ()).score
    found = aligned(s, 0 * q, [40], t, [30, 9, 0, 17], by_position, (7, 2), ()).score
    np.testing.assert_array_equal(found, want)


def test_stacked_queries_lower_for_cuda():
    s = kp.Fill(64, 4, 4, True, True, stacks=2)
    assert "mosaic_gpu" in lower(s, 200, queries=5)


def test_a_search_leaves_few_rows_unused():
    """The queries of CUDASW++4.0, of which pairs in strips of 384 rows left 12 %."""
    m = [144, 189, 222, 375, 464, 567, 657, 729, 850, 1000, 1500, 2005, 2504, 3005,
         3564, 4061, 4548, 4743, 5147, 5478]  # fmt: skip
    s = kp.spread(m[::-1], np.full(10**5, 384), local=True, packed=True)
    assert 2 * stacked_strips(m, s).sum() * s.strip < 1.05 * sum(m)
