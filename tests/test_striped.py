"""The striped fill of the benchmarks: its profile, and the scores of the sweep."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import END_SETS, GAPS, codes, related
from pairs import striped

import jaxalign
from jaxalign.affine import Gaps
from jaxalign.model.scoring import FREE_ENDS, Scoring

pytestmark = pytest.mark.usefixtures("compiled")

SHAPES = [(1, 8), (4, 8), (8, 8), (1, 16), (4, 16), (8, 16)]  # VL, PL
COUNT, ROWS, COLUMNS = 12, 32, 24


@pytest.mark.parametrize("m, lanes", [(1, 1), (7, 1), (7, 4), (8, 4), (9, 4), (5, 8)])
def test_profiles_follow_the_formula(m, lanes):
    """P[r, (j-1) VL + i] = S(Q[(i-1) T + j], r), from 1."""
    rng = np.random.default_rng(m)
    query, scores = codes(rng, m, 5), rng.integers(-9, 9, (5, 5))  # not symmetric
    profile = striped.query_profile(query, jnp.asarray(scores), lanes)
    steps = -(-m // lanes)
    assert profile.shape == (5, steps, lanes)
    flat = np.asarray(profile).reshape(5, -1)
    for r in range(5):
        for i in range(1, lanes + 1):
            for j in range(1, steps + 1):
                place = (i - 1) * steps + j
                score = scores[query[place - 1], r] if place <= m else 0
                assert flat[r, (j - 1) * lanes + i - 1] == score


@cache
def pairs():
    """Related pairs, cut to all sorts of lengths: none, one, whole partitions."""
    rng = np.random.default_rng(1)
    queries = [codes(rng, n, 20) for n in (0, 1, 8, 16, 17, 31, 32, 32, 24, 5, 32, 30)]
    targets = [related(rng, q, 20).astype(np.uint8)[:COLUMNS] for q in queries]
    targets[2], targets[7] = codes(rng, 0, 20), codes(rng, COLUMNS, 20)
    return queries, targets


def padded(sequences, length):
    wide = np.full((len(sequences), length), 3, np.int32)
    for row, one in zip(wide, sequences, strict=True):
        row[: len(one)] = one
    return wide, np.array([len(x) for x in sequences], np.int32)


@partial(jax.jit, static_argnames=("local", "lanes", "part"))
def fill_all(query, target, m, n, scores, gaps, free, **static):
    def one(query, target, m, n):
        return striped.fill(query, target, m, n, scores, gaps, free, **static)

    return jax.vmap(one)(query, target, m, n)


CASES = [(*shape, local) for shape in SHAPES for local in (True, False)]


@pytest.mark.slow
@pytest.mark.parametrize("lanes, part, local", CASES)
def test_striped_is_the_sweep(lanes, part, local):
    (query, m), (target, n) = map(padded, pairs(), (ROWS, COLUMNS))
    scores = jnp.asarray(Scoring().scores)
    for name, costs in GAPS.items():
        for ends in [frozenset()] if local else END_SETS[::5]:
            gaps = Gaps(*(jnp.asarray(x, jnp.int32) for x in costs))
            free = {end: jnp.asarray(end in ends) for end in FREE_ENDS}
            args = query, target, m, n, scores, gaps, free
            found = fill_all(*args, local=local, lanes=lanes, part=part)
            np.testing.assert_array_equal(found, swept(local, ends, costs), str(name))


@cache
def swept(local, ends, costs):
    options = {"mode": "local"} if local else {"free_ends": ends}
    scoring = Scoring("BLOSUM62", *costs)
    made = jaxalign.align_pairs(
        *pairs(), scoring, output="score", implementation="sweep", **options
    )
    return made["score"]


@pytest.mark.slow
def test_the_lazy_loop_is_needed_and_runs_through_stripes():
    """A gap of many stripes: a deletion of 20 rows in a query of 4 stripes of 8."""
    rng = np.random.default_rng(2)
    target = codes(rng, 12, 20)
    query = np.concatenate([target[:6], codes(rng, 20, 20), target[6:]]).astype(int)
    scoring = Scoring(match=9, mismatch=-9, gap_open=10, gap_extend=1,
                      alphabet="protein")  # fmt: skip
    args = ([query.astype(np.uint8)], [target.astype(np.uint8)], scoring)
    (want,) = jaxalign.align_pairs(*args, mode="local", output="score")["score"]
    assert want == 12 * 9 - 29
    gaps = Gaps(jnp.int32(10), jnp.int32(1))
    free = dict.fromkeys(FREE_ENDS, jnp.asarray(False))
    found = striped.fill(
        *map(jnp.asarray, (query, target)), jnp.int32(32), jnp.int32(12),
        jnp.asarray(scoring.scores), gaps, free, local=True, lanes=4, part=32,
    )  # fmt: skip
    assert found == want


@pytest.mark.slow
@pytest.mark.parametrize("length", [0, 63, 130])
def test_scores_of_codes(length):
    """Below the first shape, of no whole partition, of several."""
    rng = np.random.default_rng(length)
    query, target = codes(rng, length, 20), codes(rng, 90, 20)
    (want,) = jaxalign.align_pairs([query], [target], mode="local", output="score",
                                   implementation="sweep")["score"]  # fmt: skip
    assert striped.score(query, target, Scoring()) == want
    assert want > 0 or not length
