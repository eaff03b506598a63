"""Hard alignment of any similarity: enumeration, ``align_pairs``, the limit T -> 0."""

from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import END_SETS, SETTINGS, matrices, some_pairs
from enumerate_alignments import candidates, preferred
from similarity_enumeration import payers_of, price, sets

import jaxalign
from jaxalign import hard_alignment, soft_score
from jaxalign.errors import UsageError
from jaxalign.model import operations
from jaxalign.model.scoring import FREE_ENDS
from jaxalign.similarity import small

MODES = [("global", ends) for ends in END_SETS] + [("local", None)]
LENGTHS = [(4, 4), (3, 4), (4, 1), (1, 3), (0, 3), (2, 0), (0, 0)]


def path_of(result):
    """(start cell, end cell, string) of a pair, as in ``enumerate_alignments``."""
    m, n = result.lengths.tolist()
    one = result.alignment("A" * m, "A" * n)
    string = "".join("MID"[k] for k in operations.expand(one.operations))
    q0, q1, t0, t1 = result.spans.tolist()
    return (q0, t0), (q1, t1), string


@pytest.fixture
def small_form(monkeypatch):
    """Small problems go by NumPy, as they do for users."""
    monkeypatch.setattr(small, "MAX_LANES", 1 << 17)


GAPS = [(2, 1), (1, 1), (3, 0), (0, 0)]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_every_path_by_enumeration(dtype):
    """Score and tie rule for all modes, free ends, gaps, lengths; many are ties."""
    modes = MODES if dtype == np.float32 else MODES[::4]
    check_every_path(dtype, modes, LENGTHS, GAPS, jax.jit)


@pytest.mark.parametrize("dtype", [np.float64, np.int8])
def test_every_path_of_the_small_form(small_form, dtype):
    modes, step = MODES, 1 if dtype == np.float64 else 3
    check_every_path(dtype, modes[::step], LENGTHS[1::step], GAPS[::2], lambda run: run)


def check_every_path(dtype, modes, lengths, gaps, compiled):
    rng = np.random.default_rng(3)
    for mode, free in modes:
        run = compiled(partial(hard_alignment, mode=mode, free_ends=free))
        for (m, n), (opening, extending) in product(lengths, gaps):
            s = np.full((4, 4), 99, dtype)
            s[:m, :n] = rng.integers(-2, 3, (m, n))
            costs = {"gap_open": dtype(opening), "gap_extend": dtype(extending)}
            found = run(s, (np.int32(m), np.int32(n)), **costs)
            a, b = range(m), range(n)
            every = candidates(
                a, b, s.tolist(), opening, extending, mode, free or frozenset()
            )
            every = list(every)
            note = f"{mode} {free} {m} {n} {opening} {extending} {s[:m, :n].tolist()}"
            assert found.score == max(score for score, *_ in every), note
            assert path_of(found) == tuple(preferred(every)), note
            small_one = compiled is not jax.jit
            assert found.implementation == ("numpy" if small_one else "scored"), note


@pytest.mark.parametrize("adjacent", [True, False])
def test_the_k_best_of_the_small_form(small_form, adjacent):
    """Scores of all sets of pairs from the best down, each set once."""
    rng, modes = np.random.default_rng(4), MODES[::3] + MODES[-1:]
    for (mode, free), (m, n) in product(modes, [(3, 3), (2, 4), (1, 2), (3, 1)]):
        s = rng.integers(-4, 9, (m, n)) / 4
        costs = np.broadcast_to(
            np.array([0.75, 0.25])[:, None, None, None], (2, 2, m, n)
        )
        options = {"mode": mode, "free_ends": free, "adjacent_gaps": adjacent}
        best = jaxalign.k_best(40, s, gap_open=0.75, gap_extend=0.25, **options)
        every = sets(m, n, mode, frozenset(), True, 1.0, 1.0).pairs
        paths = [[*zip(*np.nonzero(pairs), strict=True)] for pairs in every]
        worth = {
            tuple(map(tuple, path)): total_of(
                s, costs, path, mode, free or frozenset(), adjacent
            )
            for path in paths
        }
        want = sorted(worth.values(), reverse=True)
        want = (want + [-np.inf] * 40)[:40]
        note = f"{mode} {free} {m} {n} {s.tolist()}"
        assert best.score.tolist() == want and best.implementation == "numpy", note
        found = [
            tuple((i, j) for i, j in enumerate(path) if j >= 0)
            for path in best.partners[np.isfinite(best.score)].tolist()
        ]
        assert len(set(found)) == len(found), note
        assert [worth[path] for path in found] == want[: len(found)], note


@pytest.mark.slow
@pytest.mark.parametrize("mode, free_ends", SETTINGS)
def test_equal_to_align_pairs(mode, free_ends):
    """Where the similarity is a matrix look-up: scores, spans, paths, in ties too."""
    size, _ = matrices()["dna"]
    scoring = jaxalign.Scoring(match=2, mismatch=-3, gap_open=4, gap_extend=1)
    rng = np.random.default_rng(8)
    queries, targets = some_pairs(rng, 24, size, 40)
    ends = {"mode": mode, "free_ends": free_ends}
    letters = [
        [scoring.alphabet.decode(x) for x in side] for side in (queries, targets)
    ]
    want = jaxalign.align_pairs(*letters, scoring, output="alignment", **ends)
    lengths = tuple(np.array([*map(len, x)], np.int32) for x in (queries, targets))
    codes = [np.zeros((24, 48), np.int32) for _ in "ab"]
    for padded, side in zip(codes, (queries, targets), strict=True):
        for row, sequence in zip(padded, side, strict=True):
            row[: len(sequence)] = sequence
    gaps = {"gap_open": 4, "gap_extend": 1}
    found = hard_alignment((*codes, scoring.scores), lengths, **gaps, **ends)
    np.testing.assert_array_equal(found.score, want["score"])
    names = ("query_start", "query_end", "target_start", "target_end")
    spans = np.stack([want[name] for name in names], -1)
    np.testing.assert_array_equal(found.spans, spans)
    for one, other in zip(
        found.alignments(*letters, scoring), want.alignments(), strict=True
    ):
        assert one.cigar() == other.cigar() and one.rescore() == other.score
    # By vectors of equal costs, too.
    vectors = np.full(48, 4, np.int32), np.full(48, 4, np.int32)
    by_place = hard_alignment(
        (*codes, scoring.scores), lengths, gap_open=vectors, gap_extend=1, **ends
    )
    for one, other in zip(
        jax.tree.leaves(by_place), jax.tree.leaves(found), strict=True
    ):
        np.testing.assert_array_equal(one, other)


# --- gap costs by position, by the definition of the soft model

FORMS = ["full", "vector", "vector, not adjacent", "full, not adjacent"]


def best_by_definition(s, costs, mode, free, adjacent):
    """(score, pairs) of the best set of pairs; ``costs`` are those of opening by query
    and target and of extending, (2, 2, m, n)."""
    m, n = s.shape
    every = sets(m, n, mode, frozenset(), True, 1.0, 1.0).pairs
    where = [[*zip(*np.nonzero(pairs), strict=True)] for pairs in every]
    totals = [total_of(s, costs, pairs, mode, free, adjacent) for pairs in where]
    return max(totals), every[np.argmax(totals)]


def total_of(s, costs, pairs, mode, free, adjacent):
    free = frozenset(FREE_ENDS) if mode == "semiglobal" else free
    costs = np.float64(costs)
    payers = payers_of(costs, pairs, s.shape, mode, free, adjacent)
    points = sum(s[pair] for pair in pairs)
    return -np.inf if payers is None else points - price(costs, payers)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_costs_by_position(form):
    """In all modes and free ends, the forms in turn; to open may cost less than to
    extend."""
    m, n = 4, 3
    rng = np.random.default_rng(5)
    adjacent = "not" not in form
    for mode, free in dict.fromkeys([*MODES[FORMS.index(form) :: 4], MODES[-1]]):
        run = jax.jit(
            partial(hard_alignment, mode=mode, free_ends=free, adjacent_gaps=adjacent)
        )
        for _ in range(3):
            s = rng.normal(size=(m, n)).astype("f4") * 2
            costs = rng.uniform(0.1, 1.5, (2, 2, m, n)).astype("f4")
            give = [tuple(x) for x in costs]
            if "vector" in form:
                costs[:, 0] = costs[:, 0, :, :1]
                costs[:, 1] = costs[:, 1, :1]
                give = [(x[0, :, 0], x[1, 0]) for x in costs]
            found = run(s, gap_open=give[0], gap_extend=give[1])
            want, pairs = best_by_definition(
                s, costs, mode, free or frozenset(), adjacent
            )
            np.testing.assert_allclose(found.score, want, atol=1e-5, err_msg=str(free))
            partners = np.where(pairs.any(1), pairs.argmax(1), -1)
            np.testing.assert_array_equal(found.partners, partners, err_msg=str(free))
            rescored = rescore(s, costs, found, mode, free or frozenset())
            np.testing.assert_allclose(
                rescored, want, atol=1e-5, err_msg=f"{mode} {free}"
            )


def rescore(s, costs, found, mode, free):
    """Of the operations in the spans, in their order: what hangs over is free."""
    m, n = s.shape
    (i, j), end, string = path_of(found)
    free = frozenset(FREE_ENDS) if mode in ("semiglobal", "local") else free
    assert i == 0 or "query_start" in free
    assert j == 0 or "target_start" in free
    assert end[0] == m or "query_end" in free
    assert end[1] == n or "target_end" in free
    total, before = 0.0, ""
    for op in string:
        if op == "M":
            total += s[i, j]
        i, j = i + (op != "D"), j + (op != "I")
        if op != "M":
            total -= costs[int(op == before)]["ID".index(op)][
                max(i - 1, 0), max(j - 1, 0)
            ]
        before = op
    assert (i, j) == end
    return total


@pytest.mark.slow
def test_the_limit_of_the_soft_score():
    """0 <= F(T) - score <= T log(number of alignments), costs by position too."""
    rng = np.random.default_rng(6)
    s = rng.normal(size=(12, 14)).astype("f4")
    opening = tuple(rng.uniform(0.5, 2, k).astype("f4") for k in (12, 14))
    full = rng.uniform(0.5, 2, (12, 14)).astype("f4")
    for mode, free in (("global", None), ("global", {"query_start"}), ("local", None)):
        for cost in (opening, full):
            options = {"gap_open": cost, "gap_extend": 0.25, "mode": mode}
            options["free_ends"] = free
            hard = hard_alignment(s, **options).score
            soft = soft_score(s, **options, temperature=1e-3)
            assert -1e-4 <= soft - hard <= 1e-3 * 17 + 1e-4


# --- several alignments


@pytest.mark.parametrize("adjacent", [True, False])
def test_local_hits_of_the_small_form(small_form, adjacent):
    check_local_hits(adjacent)


@pytest.mark.slow
@pytest.mark.parametrize("adjacent", [True, False])
def test_local_hits_by_enumeration(adjacent):
    check_local_hits(adjacent)


def check_local_hits(adjacent):
    """Each is the best of all sets of pairs that share none with those before."""
    rng = np.random.default_rng(5)
    costs = rng.uniform(0.1, 1.5, (2, 2, 4, 5)).astype("f4")
    costs[:] = costs[..., :1, :1]  # numbers, of either sequence
    costs[1] = costs[0] / 3
    rules = {"adjacent_gaps": adjacent}
    rules |= {
        "gap_open": tuple(costs[0, :, 0, 0]),
        "gap_extend": tuple(costs[1, :, 0, 0]),
    }
    for m, n in ((4, 5), (3, 2), (0, 3)):
        s = np.zeros((4, 5), "f4")
        s[:m, :n] = rng.normal(size=(m, n)) * 2 + 1
        hits = jaxalign.local_hits(4, s, np.array([m, n]), **rules)
        every = sets(m, n, "local", frozenset(), True, 1.0, 1.0).pairs
        paths = [{*zip(*np.nonzero(pairs), strict=True)} for pairs in every]
        at = costs[..., :m, :n]
        totals = [
            total_of(s[:m, :n], at, sorted(pairs), "local", frozenset(), adjacent)
            if pairs
            else 0.0
            for pairs in paths
        ]
        used = set()
        for score, partners in zip(hits.score, hits.partners.tolist(), strict=True):
            free = [t for t, x in zip(totals, paths, strict=True) if not x & used]
            np.testing.assert_allclose(score, max(free), atol=1e-5)
            pairs = {(i, j) for i, j in enumerate(partners) if j >= 0}
            assert not pairs & used
            used |= pairs
            total = totals[paths.index(pairs)]
            np.testing.assert_allclose(score, total, atol=1e-5)


@pytest.mark.slow
def test_hits_of_letters_and_of_a_batch():
    pair = "MKTAYWWWMKTAY", "MKTAY", jaxalign.Scoring()
    hits = jaxalign.local_hits(2, pair, gap_open=11, gap_extend=1)
    rows = [x.rows() for x in hits.alignments([pair[0]] * 2, [pair[1]] * 2)]
    assert rows == [("MKTAY", "MKTAY")] * 2
    s = np.random.default_rng(0).normal(size=(2, 6, 7)).astype("f4")
    both = jaxalign.local_hits(3, s, gap_open=1.0, gap_extend=0.5)
    assert both.partners.shape == (3, 2, 6)
    one = jaxalign.local_hits(3, s[1], gap_open=1.0, gap_extend=0.5)
    np.testing.assert_array_equal(both.partners[:, 1], one.partners)
    with pytest.raises(UsageError, match="1 to 64"):
        jaxalign.local_hits(65, s, gap_open=1.0, gap_extend=0.5)


@pytest.mark.slow
def test_the_k_best_of_a_batch():
    s = np.random.default_rng(13).normal(size=(2, 3, 6, 7)).astype("f4")
    gaps = {"gap_open": 1.0, "gap_extend": 0.5, "mode": "local"}
    lengths = np.array([6, 4, 2], np.int32), np.array([7, 7, 3], np.int32)
    lengths = tuple(np.broadcast_to(x, (2, 3)) for x in lengths)
    found = jax.jit(lambda s: jaxalign.k_best(3, s, lengths, **gaps))(s)
    assert found.partners.shape == (3, 2, 3, 6) and found.spans.shape == (3, 2, 3, 4)
    best = hard_alignment(s, lengths, **gaps)
    np.testing.assert_allclose(found.score[0], best.score, atol=1e-5)
    np.testing.assert_array_equal(found.partners[0], best.partners)
    np.testing.assert_array_equal(found.spans[0], best.spans)
    with pytest.raises(UsageError, match="^k_best: k = 0"):
        jaxalign.k_best(0, s, **gaps)


# --- arrays of every kind


@pytest.mark.slow
def test_ragged_batches_of_narrow_numbers():
    """Padding of nan is never seen; float16, bfloat16 and int8 are read exactly."""
    rng = np.random.default_rng(9)
    whole = rng.integers(-3, 4, (2, 3, 6, 7))
    lengths = rng.integers(0, 7, (2, 3, 2)).astype(np.int32)
    options = {"gap_open": 2.5, "gap_extend": 0.5, "mode": "local"}
    padded = whole.astype("f4")
    for k in np.ndindex(2, 3):
        padded[k][lengths[k][0] :], padded[k][:, lengths[k][1] :] = np.nan, np.nan
    found = hard_alignment(padded, lengths, **options)
    assert found.partners.shape == (2, 3, 6) and found.spans.shape == (2, 3, 4)
    for k in list(np.ndindex(2, 3))[::2]:
        m, n = lengths[k]
        alone = hard_alignment(whole[k][:m, :n].astype("f4"), **options)
        assert found.score[k] == alone.score
        np.testing.assert_array_equal(found.partners[k][:m], alone.partners)
        assert (np.asarray(found.partners[k][m:]) == -1).all()
    for dtype in (jnp.bfloat16, jnp.float16, jnp.int8):
        narrow = hard_alignment(jnp.asarray(whole, dtype), lengths, **options)
        for one, other in zip(
            jax.tree.leaves(narrow), jax.tree.leaves(found), strict=True
        ):
            np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_inside_jit_and_vmap():
    """A pytree: through ``vmap`` of one pair, with embeddings and costs of a batch."""
    rng = np.random.default_rng(10)
    a, b = rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 6, 3))
    a, b = jnp.asarray(a, jnp.float32), jnp.asarray(b, jnp.float32)
    opening = jnp.array([1.0, 2.0])

    @jax.jit
    @jax.vmap
    def run(a, b, opening):
        return hard_alignment((a, b), gap_open=opening, gap_extend=0.5)

    one, other = run(a, b, opening), hard_alignment(
        jnp.einsum("bik,bjk->bij", a, b), gap_open=opening, gap_extend=0.5
    )  # fmt: skip
    np.testing.assert_allclose(one.score, other.score, rtol=1e-6)
    np.testing.assert_array_equal(one.partners, other.partners)
    assert [x.score for x in other.alignments()] == other.score.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_narrow_embeddings_are_multiplied_as_they_are(dtype):
    """Of 16 bits into float32: as their float32 copies, and no copy is made."""
    rng = np.random.default_rng(11)
    narrow = [jnp.asarray(rng.normal(size=(3, x, 40)), dtype) for x in (5, 6)]
    options = {"gap_open": 2.0, "gap_extend": 0.5}
    wide = hard_alignment([x.astype(jnp.float32) for x in narrow], **options)
    found = hard_alignment(narrow, **options)
    assert found.score.dtype == jnp.float32
    np.testing.assert_allclose(found.score, wide.score, rtol=1e-5)
    np.testing.assert_array_equal(found.partners, wide.partners)
    text = str(jax.make_jaxpr(lambda a, b: hard_alignment((a, b), **options))(*narrow))
    kind = {"bfloat16": "bf16", "float16": "f16"}[jnp.dtype(dtype).name]
    assert "f32[3,5,40] = convert_element_type" not in text
    assert f"{kind}[3,5,40]" in text and "preferred_element_type=float32" in text


@pytest.mark.parametrize("by_cell", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_numbers_that_mean_nothing(by_cell):
    """nan and inf within the lengths give nan; forbidden pairs do not pair."""
    s = np.zeros((3, 3), np.float32)
    gap = np.full((3, 3), 1, np.float32) if by_cell else 1.0
    options = {"gap_open": gap, "gap_extend": 0.5}
    for wrong in (np.nan, np.inf):
        t = s.copy()
        t[1, 2] = wrong
        found = hard_alignment(t, **options)
        assert np.isnan(found.score) and (found.partners == -1).all()
        assert hard_alignment(t, (1, 2), **options).score == -1


@pytest.mark.slow
def test_costs_that_mean_nothing():
    s, options = np.zeros((3, 3), np.float32), {"gap_open": 1.0, "gap_extend": 0.5}
    costs = (np.array([1, np.nan, 1], np.float32), 1.0)
    assert np.isnan(hard_alignment(s, gap_open=costs, gap_extend=0.5).score)
    costs = (np.array([1, np.inf, 1], np.float32), np.inf)
    found = hard_alignment(s, gap_open=costs, gap_extend=np.inf)
    assert found.score == 0 and found.partners.tolist() == [0, 1, 2]
    s[1] = -np.inf
    assert hard_alignment(s, gap_open=costs, gap_extend=np.inf).score == -np.inf
    beyond = jax.jit(lambda m: hard_alignment(s, (m, 3), **options).score)
    assert np.isnan(beyond(4)) and np.isfinite(beyond(3))


@pytest.mark.parametrize(
    "change",
    [
        {"similarity": np.zeros(3, np.float32)},
        {"gap_open": np.zeros(7, np.float32)},
        {"mode": "nowhere"},
        {"lengths": (5, 9)},
    ],
)
def test_refusals(change):
    gaps = {"gap_open": 1.0, "gap_extend": 0.5}
    with pytest.raises(UsageError):
        hard_alignment(**{"similarity": np.zeros((5, 6), np.float32), **gaps} | change)


@pytest.mark.slow
def test_sequences_of_other_lengths_are_refused():
    found = hard_alignment(np.zeros((2, 3), np.float32), gap_open=1, gap_extend=1)
    with pytest.raises(UsageError, match="2 x 3"):
        found.alignment("MKV", "MKV")
    with pytest.raises(UsageError, match="alignments"):
        hard_alignment(
            np.zeros((1, 2, 3), np.float32), gap_open=1, gap_extend=1
        ).alignment()
