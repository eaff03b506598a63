"""Query profiles by their formula; the striped fill equals the sweep."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import END_SETS, GAPS, codes, related

import jaxalign
from jaxalign.affine import Gaps
from jaxalign.errors import UsageError
from jaxalign.model.scoring import FREE_ENDS, Scoring
from jaxalign.pairs.dp import striped
from jaxalign.pairs.dp.profile import query_profile

pytestmark = pytest.mark.usefixtures("compiled")

SHAPES = [(1, 8), (4, 8), (8, 8), (1, 16), (4, 16), (8, 16)]  # VL, PL
COUNT, ROWS, COLUMNS = 12, 32, 24


@pytest.mark.parametrize("m, lanes", [(1, 1), (7, 1), (7, 4), (8, 4), (9, 4), (5, 8)])
def test_profiles_follow_the_formula(m, lanes):
    """P[r, i] = S(Q[i], r); P[r, (j-1) VL + i] = S(Q[(i-1) T + j], r), from 1."""
    rng = np.random.default_rng(m)
    query, scores = codes(rng, m, 5), rng.integers(-9, 9, (5, 5))  # not symmetric
    plain = np.asarray(query_profile(query, jnp.asarray(scores), lanes=lanes))
    found = query_profile(query, jnp.asarray(scores), "striped", lanes)
    steps = -(-m // lanes)
    assert plain.shape == (5, steps * lanes) and found.shape == (5, steps, lanes)
    flat = np.asarray(found).reshape(5, -1)
    for r in range(5):
        for i in range(1, m + 1):
            assert plain[r, i - 1] == scores[query[i - 1], r]
        for i in range(1, lanes + 1):
            for j in range(1, steps + 1):
                place = (i - 1) * steps + j
                score = scores[query[place - 1], r] if place <= m else 0
                assert flat[r, (j - 1) * lanes + i - 1] == score
    assert (plain[:, m:] == 0).all()


def test_unknown_layout():
    with pytest.raises(ValueError, match="sequential or striped"):
        query_profile(np.zeros(3, int), jnp.eye(2), "blocked")


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


QUICK = [(4, 16, True), (8, 8, False), (8, 16, True)]
CASES = [
    case if case in QUICK else pytest.param(*case, marks=pytest.mark.slow)
    for case in ((*shape, local) for shape in SHAPES for local in (True, False))
]


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


def test_implementation_striped():
    queries, targets = pairs()
    found = jaxalign.align_pairs(
        queries, targets, mode="local", output="score", implementation="striped"
    )
    assert found.implementation == "striped"
    np.testing.assert_array_equal(found["score"], swept(True, frozenset(), (11, 1)))


def test_striped_has_no_paths():
    with pytest.raises(UsageError, match="no paths"):
        jaxalign.align_pairs(["A"], ["A"], implementation="striped")
