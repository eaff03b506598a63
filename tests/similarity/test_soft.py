"""Soft alignment: enumeration, limits, sum rules, derivatives, extremes.

Tolerances: float32 keeps 6e-8 of a number; a path of L steps rounds about L times, at
random, in values kept below 30 or so by the rebase. With L <= 12 in the enumerations
that is below 12 * 6e-8 * 30 = 2e-5 of the score and 2e-6 of a probability.
"""

import inspect
import re
from functools import partial
from itertools import product
from math import comb, log

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import END_SETS
from draws import pairwise
from similarity_enumeration import exact, sets

import jaxalign
from jaxalign import soft_posterior, soft_score
from jaxalign.errors import UsageError
from jaxalign.model.alignment import most_accurate
from jaxalign.model.scoring import FREE_ENDS
from jaxalign.similarity.arguments import FORBIDDEN, Gap, ModeRules
from jaxalign.similarity.costs import Weights, no_overhang, overhang
from jaxalign.similarity.soft import api
from jaxalign.similarity.soft.dp import free_energy, scan

SCORE, PROBABILITY = 2e-5, 2e-6
OPEN, EXTEND = 1.5, 0.375
MODES = [("global", ends) for ends in END_SETS] + [("local", frozenset())]
LENGTHS = [(5, 5), (4, 5), (5, 2), (1, 4), (1, 1), (0, 3), (4, 0), (0, 0)]
COSTS = {"gap_open": OPEN, "gap_extend": EXTEND}


def scores_of(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32) * 2


def run_time(settings):
    """Rules of many (mode, free ends, adjacent, lengths), stacked."""
    rows = [
        (m, n, *(end in free for end in FREE_ENDS), mode == "local", adjacent)
        for (mode, free), adjacent, (m, n) in settings
    ]
    columns = np.array(rows, np.int32).T
    return ModeRules(*columns[:2], *(columns[2:] > 0))


def model_score(block, s, opening, extending, temperature, rules):
    """The score of one pair with every rule known at run time only."""
    hang = overhang(opening, extending, s.shape, rules, FORBIDDEN)
    free = no_overhang(s.shape, s.dtype)
    hang = jax.tree.map(lambda a, b: jnp.where(rules.local, a, b), free, hang)
    return free_energy.score(
        Weights(s, opening, extending, hang), temperature, rules, block
    )


@pytest.mark.slow
@pytest.mark.parametrize("block", [None, 4])
def test_enumeration(block):
    """All modes and free ends, adjacent gaps or not, three temperatures, lengths."""
    settings = [*product(MODES, (True, False), LENGTHS)]
    s = jnp.asarray(scores_of(1, 5, 5))

    @jax.jit
    @partial(jax.vmap, in_axes=(0, None))
    @partial(jax.vmap, in_axes=(None, 0))
    def run(rules, temperature):
        def f(s, o, e, t):
            return model_score(block, s, Gap(o, o), Gap(e, e), t, rules)

        args = s, jnp.float32(OPEN), jnp.float32(EXTEND), temperature
        return jax.value_and_grad(f, (0, 1, 2, 3))(*args)

    temperatures = (0.3, 1.0, 3.0)
    found = run(run_time(settings), jnp.array(temperatures, jnp.float32))
    found = jax.tree.map(np.asarray, found)
    for k, ((mode, free), adjacent, (m, n)) in enumerate(settings):
        for l, t in enumerate(temperatures):
            score, (p, o, e, h) = found[0][k, l], (x[k, l] for x in found[1])
            inside = np.float64(s[:m, :n])
            want = exact(inside, OPEN, EXTEND, t, mode, free, adjacent)
            if want is None:
                assert score == -np.inf and not (p.any() or o or e or h)
                continue
            padded = np.pad(want.posterior, ((0, 5 - m), (0, 5 - n)))
            note = f"{mode} {set(free)} {adjacent} {m} {n} {t}"
            np.testing.assert_allclose(score, want.score, atol=SCORE, err_msg=note)
            np.testing.assert_allclose(p, padded, atol=PROBABILITY, err_msg=note)
            assert not p[m:].any() and not p[:, n:].any()
            counts = [-o, -e, h]
            exactly = [want.opens, want.extensions, want.entropy]
            np.testing.assert_allclose(counts, exactly, atol=SCORE, err_msg=note)


HBA = "VLSPADKTNVKAAWGKVGAHAGEYGAEALERMFLSFPTTKTYFPHFDLSH"
HBB = "VHLTPEEKSAVTALWGKVNVDEVGGEALGRLLVVYPWTQRFFESFGDLS"


def coded(*texts):
    scoring = jaxalign.Scoring()
    codes = [scoring.alphabet.encode(text) for text in texts]
    return codes, scoring.scores[np.ix_(*codes)].astype(np.float32)


@pytest.mark.slow
def test_temperature_to_zero_is_the_hard_score():
    """0 <= F - hard <= T log(number of alignments), for the 16 free ends and local."""
    settings = [(mode, True, (49, 49)) for mode in MODES]

    @jax.jit
    @partial(jax.vmap, in_axes=(None, 0))
    def run(s, rules):
        costs = Gap(*[jnp.float32(11)] * 2), Gap(*[jnp.float32(1)] * 2)
        return model_score(None, s, *costs, jnp.float32(1e-3), rules)

    for a, b in ((HBA[:49], HBB[:49]), ("WWKKWW" * 8 + "A", "KWWWWK" * 8 + "G")):
        soft = np.float64(run(coded(a, b)[1], run_time(settings)))
        hard = []
        for mode, free in MODES:
            options = {"mode": mode, "free_ends": free if mode == "global" else None}
            hard.append(jaxalign.align(a, b, **options).score)
        bound = 1e-3 * log(comb(98, 49))
        assert (soft >= np.array(hard) - 1e-4).all()  # half a unit in the last place
        assert (soft <= np.array(hard) + bound + 1e-4).all()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["global", "semiglobal", "local"])
def test_without_adjacent_gaps_the_limit_is_biotites(mode):
    """The hard twin of ``adjacent_gaps=False``; harsh mismatches make it matter."""
    import biotite.sequence as seq
    from biotite.sequence import align as hard

    rng = np.random.default_rng(11)
    letters = seq.NucleotideSequence.unambiguous_alphabet()
    differ = 0
    for _ in range(12):
        values = rng.integers(-20, 3, (4, 4)) + 5 * np.eye(4, dtype=int)
        matrix = hard.SubstitutionMatrix(letters, letters, values.astype(np.int32))
        a, b = rng.integers(0, 4, 9), rng.integers(0, 4, 9)
        pair = [seq.NucleotideSequence() for _ in "ab"]
        pair[0].code, pair[1].code = a.astype(np.uint8), b.astype(np.uint8)
        options = {"gap_penalty": (-4, -1), "local": mode == "local"}
        options["terminal_penalty"] = mode != "semiglobal"
        found = hard.align_optimal(*pair, matrix, **options)
        want = float(found[0].score) if found else 0.0
        s = values[np.ix_(a, b)].astype(np.float32)
        options = {"gap_open": 4, "gap_extend": 1, "temperature": 1e-3, "mode": mode}
        got = float(soft_score(s, adjacent_gaps=False, **options))
        assert -1e-4 <= got - want <= 1e-3 * log(comb(18, 9)) + 1e-4
        differ += float(soft_score(s, **options)) > got + 0.5
    assert differ or mode != "global"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["global", "local"])
def test_padding_and_batches(mode):
    """A padded batch equals its trimmed members; padding of NaN changes nothing."""
    s = scores_of(4, 3, 6, 8)
    lengths = np.array([6, 4, 1], np.int32), np.array([8, 5, 8], np.int32)
    options = {**COSTS, "mode": mode, "temperature": np.array([0.5, 1, 2], np.float32)}
    for k, (m, n) in enumerate(zip(*lengths, strict=True)):
        s[k, m:], s[k, :, n:] = np.nan, np.nan
    value, gradient = jax.value_and_grad(
        lambda s: soft_score(s, lengths, **options).sum()
    )(jnp.asarray(s))
    several = soft_score(s, np.stack(lengths, -1), **options)
    np.testing.assert_allclose(several.sum(), value, rtol=1e-6)
    for k, (m, n) in enumerate(zip(*lengths, strict=True)):
        assert not gradient[k, m:].any() and not gradient[k, :, n:].any()
        if k != 1:  # compilations cost more than the comparison is worth
            continue
        alone = options | {"temperature": options["temperature"][k]}
        one = soft_score(s[k, :m, :n], **alone)
        np.testing.assert_allclose(several[k], one, atol=SCORE / 10)
        p = soft_posterior(s[k, :m, :n], **alone)
        np.testing.assert_allclose(gradient[k, :m, :n], p, atol=PROBABILITY)


@pytest.mark.slow
def test_sum_rules():
    """Rows and columns are probabilities; Euler: F = <S, P> - costs + T H."""
    s = scores_of(6, 4, 5)
    options = {**COSTS, "temperature": 0.8}
    p = soft_posterior(s, **options)
    assert p.sum(0).max() <= 1 + 1e-6 and p.sum(1).max() <= 1 + 1e-6
    opens, extensions = jaxalign.expected_gaps(s, **options)
    np.testing.assert_allclose(opens + extensions, 9 - 2 * p.sum(), atol=SCORE)
    mean = (s * p).sum() - OPEN * opens - EXTEND * extensions
    entropy = jaxalign.alignment_entropy(s, **options)
    f = soft_score(s, **options)
    np.testing.assert_allclose(mean + 0.8 * entropy, f, atol=SCORE)


# --- derivatives


@pytest.fixture(scope="module", params=["blocked", "rows"])
def second_order(request):
    """Hessian by the scores of a 4 x 5 pair, and what it is compared with."""
    s = jnp.asarray(scores_of(8, 4, 5))
    options = {"mode": "local", "temperature": 0.7, "implementation": request.param}

    def f(s):
        return soft_score(s, **COSTS, **options)

    return s, f, jax.jit(jax.hessian(f))


@pytest.mark.slow
def test_hessian(second_order):
    """Symmetric, positive semidefinite, the covariance of pairs over T; where sums are
    of equal terms too (in zeros many are)."""
    given, _, hessian_of = second_order
    every = sets(4, 5, "local", frozenset(), True, OPEN, EXTEND)
    pairs = every.pairs.reshape(len(every.pairs), 20)
    for s in (given, jnp.zeros_like(given)):
        hessian = hessian_of(s).reshape(20, 20)
        np.testing.assert_allclose(hessian, hessian.T, atol=PROBABILITY)
        assert np.linalg.eigvalsh(np.float64(hessian)).min() > -1e-5
        scores = pairs @ np.float64(s).ravel() - OPEN * every.opens
        scores = (scores - EXTEND * every.extensions) / 0.7
        p = np.exp(scores - scores.max())
        centred = pairs - (p / p.sum()) @ pairs
        covariance = np.einsum("k,ka,kb->ab", p / p.sum(), centred, centred)
        np.testing.assert_allclose(hessian, covariance / 0.7, atol=SCORE)


@pytest.mark.slow
def test_every_transformation_agrees(second_order):
    """Reverse over reverse, the posterior's own rule, and forward mode."""
    s, f, hessian_of = second_order
    hessian = hessian_of(s).reshape(20, 20)
    v = jnp.asarray(scores_of(9, 4, 5))
    product = (hessian @ v.ravel()).reshape(4, 5)
    options = {**COSTS, "mode": "local", "temperature": 0.7}
    twice = jax.jit(jax.grad(lambda s: jnp.vdot(jax.grad(f)(s), v)))(s)
    layer = jax.jit(jax.grad(lambda s: jnp.vdot(soft_posterior(s, **options), v)))(s)
    _, tangent = jax.jit(lambda s: jax.jvp(jax.grad(f), (s,), (v,)))(s)
    for found in (twice, layer, tangent):
        np.testing.assert_allclose(found, product, atol=SCORE)
    forward = jax.jit(jax.jacfwd(f))(s)
    np.testing.assert_allclose(forward, soft_posterior(s, **options), atol=PROBABILITY)


@pytest.mark.slow
def test_finite_differences():
    """Every argument of a loss on score and posterior, in float64."""
    with jax.enable_x64(True):
        s = jnp.asarray(np.float64(scores_of(10, 3, 3)))
        w = jnp.asarray(np.float64(scores_of(11, 3, 3)))

        @jax.jit
        def loss(s, o, e, t):
            options = {"gap_open": (o, 0.9), "gap_extend": e, "temperature": t}
            p = soft_posterior(s, **options)
            return soft_score(s, **options) + jnp.vdot(p, w)

        at = [s, jnp.float64(1.4) * jnp.ones(3), jnp.float64(0.4), jnp.float64(0.8)]
        gradient = jax.jit(jax.grad(loss, (0, 1, 2, 3)))(*at)
        for k, part in enumerate(gradient):
            for index in np.ndindex(part.shape):
                ahead, behind = (
                    loss(*at[:k], at[k].at[index].add(h), *at[k + 1 :])
                    for h in (1e-5, -1e-5)
                )
                # h^2 for the third derivatives, eps / h for rounding: 1e-10 each.
                slope = (ahead - behind) / 2e-5
                np.testing.assert_allclose(part[index], slope, atol=1e-8)


@pytest.mark.slow
def test_the_temperature_to_third_order():
    """Curvature of the entropy, where some probabilities are 0."""
    s = scores_of(33, 4, 5)
    s[0, 0] = -np.inf
    with jax.enable_x64(True):
        s = jnp.asarray(np.float64(s))
        second = jax.grad(jax.grad(lambda t: soft_score(s, **COSTS, temperature=t)))
        slope = (second(1 + 1e-5) - second(1 - 1e-5)) / 2e-5
        np.testing.assert_allclose(jax.grad(second)(1.0), slope, atol=1e-8)


# --- numbers at the edge


@pytest.mark.slow
@pytest.mark.parametrize(
    "mode, temperature, adjacent",
    pairwise(("global", "local"), (1e-4, 1.0, 1e3), (False, True)),
)
def test_extremes_are_finite(mode, temperature, adjacent):
    """Forbidden pairs, -inf, huge scores, ties, empty sequences: values, gradients."""
    cases = np.stack([
        scores_of(12, 5, 6) * 100,
        np.full((5, 6), -np.inf, np.float32),
        np.full((5, 6), -1e9, np.float32),
        np.zeros((5, 6), np.float32),
        np.where(np.arange(6) % 2, -np.inf, scores_of(13, 5, 6)).astype(np.float32),
    ])  # fmt: skip
    cases = np.concatenate([cases, cases[:1], cases[:1], cases[:1]])
    lengths = np.array([[5, 6]] * 5 + [[0, 6], [1, 1], [0, 0]], np.int32)

    def run(s, o, e, t):
        options = {"mode": mode, "adjacent_gaps": adjacent}
        each = {"gap_open": o, "gap_extend": e, "temperature": t}
        return soft_score(s, lengths, **each, **options)

    args = [jnp.asarray(cases)]
    args += [jnp.float32(x) for x in (5.0, 0.5, temperature)]
    value, back = jax.vjp(run, *args)
    legal = np.ones(8, bool)
    if mode == "global" and not adjacent:
        legal[1] = False  # only the empty alignment is left, and it is not legal
    assert (np.isfinite(value) == legal).all()
    assert all(np.isfinite(x).all() for x in back(jnp.ones(8)))


@pytest.mark.slow
def test_scaled_is_rows_or_log():
    """``scaled`` equals ``log``: with costs by position, where rows prove nothing (low
    T, far-apart scores), and as rows."""
    s, lengths = jnp.asarray(scores_of(24, 2, 20, 24)), np.array([[20, 24], [9, 17]])
    lengths = lengths.astype(np.int32)

    @partial(jax.jit, static_argnames="name")
    def run(s, o, t, name):
        def f(s, o):
            options = {"gap_open": o, "gap_extend": EXTEND, "temperature": t}
            return soft_score(s, lengths, **options, implementation=name).sum()

        return jax.value_and_grad(f, (0, 1))(s, o)

    args = s, (jnp.float32(OPEN), jnp.full(24, OPEN)), jnp.float32(1)
    log, scaled = (run(*args, name) for name in ("log", "scaled"))
    same = partial(np.testing.assert_allclose, rtol=1e-6, atol=SCORE)
    jax.tree.map(same, scaled, log)
    cold = (run(*args[:2], jnp.float32(0.01), name) for name in ("log", "scaled"))
    jax.tree.map(np.testing.assert_array_equal, *cold)
    cold = (
        soft_score(s[0], **COSTS, temperature=0.01, implementation=name)
        for name in ("log", "scaled")
    )
    np.testing.assert_allclose(*cold, rtol=1e-6)
    # On the diagonal where the better region starts, the other is 120 nats ahead.
    apart = jnp.full((20, 24), -30.0).at[:4, 20:24].set(60 * jnp.eye(4))
    apart = apart.at[14:17, 2:5].set(60 * jnp.eye(3))
    posteriors = (
        soft_posterior(apart, **COSTS, mode="local", implementation=name)
        for name in ("log", "scaled", "rows")
    )
    log, scaled, rows = posteriors
    np.testing.assert_allclose(scaled, log, atol=1e-6)
    np.testing.assert_array_equal(scaled, rows)


@pytest.mark.slow
def test_entropy_where_weights_are_linear():
    """By ``scaled``, which is ``rows``, too: entropy and temperature gradient are those
    of ``log``."""
    s = jnp.asarray(scores_of(28, 12, 10))

    @partial(jax.jit, static_argnames="name")
    def run(t, name):
        def f(t):
            return soft_score(s, **COSTS, temperature=t, implementation=name)

        return jax.value_and_grad(f)(t)

    same = partial(np.testing.assert_allclose, rtol=1e-5)
    jax.tree.map(same, *(run(jnp.float32(1.3), name) for name in ("scaled", "log")))


@pytest.mark.slow
def test_a_tie_is_shared():
    p = soft_posterior(np.zeros((1, 2), np.float32), gap_open=1, gap_extend=1)
    np.testing.assert_allclose(p[0, 0], p[0, 1], rtol=1e-6)


@pytest.mark.parametrize(
    "shape, want",
    [
        ((0, 4), -OPEN - 3 * EXTEND),
        pytest.param((0, 0), 0, marks=pytest.mark.slow),
        pytest.param((3, 0), -2.25, marks=pytest.mark.slow),
    ],
)
def test_arrays_without_rows(shape, want):
    assert soft_score(np.zeros(shape, np.float32), **COSTS) == want
    assert soft_posterior(np.zeros(shape, np.float32), **COSTS).shape == shape


@pytest.mark.slow
def test_narrow_and_wide_floats():
    """bfloat16 is computed in float32; its gradient comes back as bfloat16."""
    s = jnp.asarray(scores_of(14, 4, 5)).astype(jnp.bfloat16)
    wide = soft_score(s.astype(jnp.float32), **COSTS)
    value, gradient = jax.value_and_grad(lambda s: soft_score(s, **COSTS))(s)
    assert value == wide and gradient.dtype == jnp.bfloat16
    with jax.enable_x64(True):
        doubles = np.float64(s)
        value = soft_score(doubles, **COSTS)
        want = exact(doubles, OPEN, EXTEND, 1.0, "global")
        assert value.dtype == np.float64
        np.testing.assert_allclose(value, want.score, rtol=1e-14)


# --- the other functions


@pytest.mark.slow
def test_inputs_of_three_kinds():
    codes, s = coded(HBA[:9], HBB[:8])
    matrix = jaxalign.Scoring().scores
    p = soft_posterior((*codes, matrix), gap_open=11, gap_extend=1)
    np.testing.assert_array_equal(p, soft_posterior(s, gap_open=11, gap_extend=1))
    a, b = scores_of(15, 2, 5, 3), scores_of(16, 2, 6, 3)
    product = np.einsum("bik,bjk->bij", a, b)
    found = jax.grad(lambda a: soft_score((a, b), **COSTS).sum())(jnp.asarray(a))
    want = np.einsum("bij,bjk->bik", soft_posterior(product, **COSTS), b)
    np.testing.assert_allclose(found, want, atol=SCORE)


@pytest.mark.slow
@pytest.mark.parametrize("form", [{}, {"mode": "local"}])
def test_a_gradient_by_the_matrix_has_no_scatter(form):
    """Which adds to the same few numbers from many places, slowly on GPUs; a code
    beyond the matrix still gives nan."""
    matrix, codes = scores_of(17, 4, 4), np.array([[0, 1, 3, 1], [2, 1, 0, 9]])
    other = np.array([[1, 3, 0, 2, 2], [1, 1, 2, 2, 0]])
    lengths = np.array([4, 3]), np.array([5, 4])

    def score(matrix, codes, costs=COSTS):
        return soft_score((codes, other, matrix), lengths, **costs, **form).sum()

    gradient = jax.jit(jax.grad(score))
    assert "scatter" not in gradient.lower(matrix, codes).as_text()
    found, want = gradient(matrix, codes), np.zeros((4, 4))
    s = matrix[codes.clip(0, 3)[:, :, None], other[:, None, :]]
    s[1, 3] = np.nan
    p = np.asarray(soft_posterior(s, lengths, **COSTS, **form))
    for k in range(2):
        m, n = lengths[0][k], lengths[1][k]
        np.add.at(want, np.ix_(codes[k, :m], other[k, :n]), p[k, :m, :n])
    np.testing.assert_allclose(found, want, atol=PROBABILITY)
    moved = jax.jvp(lambda x: score(x, codes), (matrix,), (s[0, :, :4],))[1]
    np.testing.assert_allclose(moved, np.sum(want * s[0, :, :4]), rtol=1e-5)
    many = jax.vmap(jax.grad(score), (0, None))(np.stack([matrix, matrix + 1]), codes)
    np.testing.assert_allclose(many[0], found, atol=PROBABILITY)
    wrong = codes + 4 * (codes == 3)
    assert np.isnan(gradient(matrix, wrong)).any()


def slopes_by_all(name, arrays, rules):
    """The text of the program of the gradient of one function by all of its numbers."""
    similarity, costs, lengths = arrays
    partners = np.array([[0, 1, 2, 3], [0, 1, -1, -1]])

    def total(similarity, costs, temperature):
        options = costs | {"temperature": temperature}
        if name == "kl_divergence":
            doubled = jax.tree.map(lambda x: 2 * x, similarity)
            models = ({"similarity": x} | options for x in (similarity, doubled))
            values = jaxalign.kl_divergence(*models, lengths, **rules)
        else:
            first = (partners,) if name == "alignment_log_prob" else ()
            values = getattr(api, name)(*first, similarity, lengths, **options, **rules)
        return sum(jnp.sum(x**2) for x in jax.tree.leaves(values))

    gradient = jax.grad(total, (0, 1, 2))
    return jax.jit(gradient).lower(similarity, costs, 1.5).as_text()


SCATTER = re.compile(r'"stablehlo.scatter"\(.*?\) <\{(.*?)\}>', re.S)
WITH_GRADIENTS = (
    "soft_score",
    "soft_posterior",
    "soft_summary",
    "expected_gaps",
    "alignment_entropy",
    "alignment_log_prob",
    "kl_divergence",
)


def check_scatters(name, form, rules):
    """Where a program puts numbers in their places, no two have the same."""
    m, n = 4, 5
    rng = np.random.default_rng(20)
    a, b = (rng.normal(size=(2, size, 3)).astype("f4") for size in (m, n))
    similarity = (a, b) if form == "embeddings" else np.einsum("bik,bjk->bij", a, b)
    number = {"gap_open": 2.0, "gap_extend": 0.5}
    full = {
        "by residue": lambda x: (np.full(m, x, "f4"), np.full(n, x, "f4")),
        "by cell": lambda x: np.full((m, n), x, "f4"),
    }
    costs = {k: full.get(form, np.float32)(x) for k, x in number.items()}
    lengths = np.array([4, 3], np.int32), np.array([5, 4], np.int32)
    text = slopes_by_all(name, (similarity, costs, lengths), rules)
    scatters = SCATTER.findall(text)
    assert len(scatters) == text.count('"stablehlo.scatter"(')
    note = name, form, rules
    assert all("unique_indices = true" in x for x in scatters), note


BY_ROWS = np.array([0, 0, 1, 2]), np.array([1, 2, 3, 4])


def test_gradients_in_a_band_add_nothing_to_the_same_place():
    """Which a GPU does one by one."""
    check_scatters("alignment_log_prob", "by residue", {"band": 2, "mode": "local"})


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_GRADIENTS)
@pytest.mark.parametrize(
    "form, rules",
    [
        ("numbers", {"mode": "local"}),
        ("numbers", {"band": 2, "mode": "semiglobal"}),
        ("numbers", {"band": BY_ROWS, "free_ends": ("query_end",)}),
        ("by residue", {"band": 2, "implementation": "blocked"}),
        ("by cell", {"mode": "semiglobal"}),
        ("by cell", {"adjacent_gaps": False}),
        ("embeddings", {"free_ends": ("query_start", "target_start")}),
    ],
)
def test_gradients_add_nothing_to_the_same_place(name, form, rules):
    check_scatters(name, form, rules)


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_GRADIENTS)
def test_gradients_by_rows_add_nothing_to_the_same_place(name):
    check_scatters(name, "numbers", {"implementation": "rows", "mode": "local"})


@pytest.mark.slow
def test_slopes_of_divergences_of_a_batch():
    """By rows as by diagonals, and one by one: costs are numbers for all pairs."""
    s, options = scores_of(21, 2, 4, 5), {"mode": "local"}

    def total(s, costs, lengths, implementation):
        p, q = ({"similarity": x, **costs, "temperature": 1.5} for x in (s, 2 * s))
        run = partial(jaxalign.kl_divergence, implementation=implementation)
        return run(p, q | {"gap_open": 1.0}, lengths, **options).sum()

    lengths = np.array([[4, 5], [3, 4]], np.int32)
    run = jax.jit(jax.grad(total, (0, 1)), static_argnums=3)
    slopes, of_costs = run(s, COSTS, lengths, "rows")
    want, of_costs_by_diagonal = run(s, COSTS, lengths, "log")
    np.testing.assert_allclose(slopes, want, atol=SCORE)
    each = [run(s[k], COSTS, lengths[k], "rows") for k in range(2)]
    for name, found in of_costs.items():
        np.testing.assert_allclose(found, of_costs_by_diagonal[name], atol=SCORE)
        alone = sum(costs[name] for _, costs in each)
        np.testing.assert_allclose(found, alone, atol=SCORE)
    np.testing.assert_allclose(slopes, np.stack([x for x, _ in each]), atol=SCORE)


@pytest.mark.slow
def test_a_hessian_by_the_matrix():
    """Symmetric, and what the difference of two gradients says."""
    matrix = scores_of(18, 3, 3)
    a, b, turn = np.array([0, 1, 2, 1]), np.array([1, 2, 0]), scores_of(19, 3, 3)

    def score(x):
        return soft_score((a, b, x), **COSTS)

    hessian = np.asarray(jax.hessian(score)(matrix)).reshape(9, 9)
    np.testing.assert_allclose(hessian, hessian.T, atol=PROBABILITY)
    ahead, back = (jax.grad(score)(matrix + k * turn) for k in (1e-2, -1e-2))
    change = hessian.reshape(3, 3, 9) @ turn.reshape(9)
    np.testing.assert_allclose(change, (ahead - back) / 2e-2, atol=2e-3)


@pytest.mark.parametrize(
    "m, n, k, block",
    [
        (5, 7, 3, 3),
        pytest.param(9, 2, 1, 4, marks=pytest.mark.slow),
        pytest.param(1, 1, 4, 16, marks=pytest.mark.slow),
    ],
)
def test_products_of_vectors_by_diagonal(m, n, k, block):
    """The blocked products are the skewed product, for blocks that fit and do not."""
    from jaxalign.similarity.arrays import skew

    products = jax.jit(scan.products)
    a, b = jnp.asarray(scores_of(m, m, k)), jnp.asarray(scores_of(n, n, k))
    whole = skew(jnp.pad(a @ b.T, ((1, 0), (1, 0))), 0)
    for first in range(0, m + n + 1, block):
        d = first + jnp.arange(block, dtype=jnp.int32)
        got = products(scan.Factors(a, b), d)
        want = whole[first : first + block]
        np.testing.assert_allclose(got[: len(want)], want, atol=1e-5)


@pytest.mark.slow
def test_vectors_are_as_good_as_their_product():
    """Without the product in memory: value, gradients, mixed derivatives, lengths."""
    a, b = jnp.asarray(scores_of(31, 2, 9, 3)), jnp.asarray(scores_of(32, 2, 8, 3))
    lengths = np.array([[9, 8], [4, 6]], np.int32)
    a = a.at[1, 4:].set(np.nan)

    @partial(jax.jit, static_argnames="name")
    def run(a, b, o, t, name):
        def f(a, b, o, t):
            options = {"gap_open": o, "gap_extend": EXTEND, "temperature": t}
            return soft_score((a, b), lengths, **options, implementation=name).sum()

        args, names = (a, b, o, t), (0, 1, 2, 3)
        value, slopes = jax.value_and_grad(f, names)(*args)
        along = jnp.zeros_like(a), jnp.ones_like(b), jnp.float32(1), jnp.float32(1)
        return value, slopes, jax.jvp(jax.grad(f, names), args, along)[1]

    args = a, b, jnp.float32(OPEN), jnp.float32(0.8)
    want, found = (run(*args, name) for name in ("log", "blocked"))
    assert not np.asarray(found[1][0])[1, 4:].any()
    same = partial(np.testing.assert_allclose, rtol=1e-5, atol=SCORE)
    jax.tree.map(same, found, want)


@pytest.mark.slow
def test_no_array_of_the_product_is_kept():
    """A pair whose product takes 36 MB: temporary memory of score and gradient."""
    a = jax.ShapeDtypeStruct((3000, 8), np.float32)

    def f(a, b):
        return soft_score((a, b), **COSTS, implementation="blocked")

    compiled = jax.jit(jax.grad(f, (0, 1))).lower(a, a).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 24e6


@pytest.mark.slow
def test_slopes_of_full_costs():
    """Gradients by full costs go through the ends too: along a random direction."""
    with jax.enable_x64(True):
        rng = np.random.default_rng(27)
        at, along = (
            tuple(jnp.asarray(rng.uniform(0.2, 2, (3, 4))) for _ in range(4))
            for _ in "ab"
        )
        s = jnp.asarray(rng.normal(size=(3, 4)))
        for free in END_SETS[::3]:

            def f(h, free=free):
                a, b, c, d = (x + h * y for x, y in zip(at, along, strict=True))
                return soft_score(s, gap_open=(a, b), gap_extend=(c, d), free_ends=free)

            slope = (f(1e-5) - f(-1e-5)) / 2e-5
            np.testing.assert_allclose(jax.grad(f)(0.0), slope, atol=1e-8)


@pytest.mark.slow
def test_log_probability_of_the_hard_alignment():
    _, s = coded(HBA, HBB)
    best = jaxalign.align(HBA, HBB)
    options = {"gap_open": 11, "gap_extend": 1}
    log_p = jaxalign.alignment_log_prob(best, s, **options)
    want = best.score - soft_score(s, **options)
    np.testing.assert_allclose(log_p, want, atol=1e-4)
    cold = jaxalign.alignment_log_prob(best, s, **options, temperature=0.05)
    assert -1 < cold <= 0  # there is a second best alignment of the same score


@pytest.mark.slow
@pytest.mark.parametrize(
    "mode, adjacent",
    [("global", True), ("local", False)],
)
def test_samples_follow_the_posterior(mode, adjacent):
    """Frequencies within 5 standard deviations; every sample is legal."""
    s = scores_of(18, 2, 4, 5)
    options = {**COSTS, "mode": mode, "adjacent_gaps": adjacent}
    lengths = np.array([[4, 5], [3, 5]], np.int32)
    count = 4000
    key = jax.random.key(3)
    drawn = np.asarray(jaxalign.sample_alignments(key, count, s, lengths, **options))
    assert drawn.shape == (count, 2, 4)
    p = np.asarray(soft_posterior(s, lengths, **options))
    shares = (drawn[..., None] == np.arange(5)).mean(0)
    assert (abs(shares - p) <= 5 * np.sqrt(p * (1 - p) / count) + 1e-6).all()
    some = np.broadcast_to(s, (50, *s.shape))
    ends = np.broadcast_to(lengths, (50, 2, 2))
    log_p = jaxalign.alignment_log_prob(drawn[:50], some, ends, **options)
    assert np.isfinite(log_p).all()


@pytest.mark.slow
def test_a_divergence_is_infinite_where_support_is_lost():
    a, b = scores_of(20, 4, 5), scores_of(21, 4, 5)
    b[0, 0] = -np.inf
    p, q = ({"similarity": x, **COSTS} for x in (a, b))
    assert jaxalign.kl_divergence(p, p) <= SCORE
    assert jaxalign.kl_divergence(p, q) == np.inf
    assert np.isfinite(jaxalign.kl_divergence(q, p))


def test_most_accurate_pairs():
    """No set of pairs holds more of the posterior than the MEA alignment."""
    every = sets(4, 5, "global", frozenset(), True, 1.0, 1.0)
    for seed in range(5):
        gain = np.random.default_rng(seed).random((4, 5)) ** 3
        for threshold in (0.0, 0.3):
            partners = most_accurate(gain, threshold)
            rows = np.flatnonzero(partners >= 0)
            assert (np.diff(partners[rows]) > 0).all()
            held = (gain - threshold)[rows, partners[rows]].sum()
            best = np.einsum("kij,ij->k", every.pairs, gain - threshold).max()
            np.testing.assert_allclose(held, best, atol=1e-12)


@pytest.mark.parametrize(
    "mode, free",
    [
        pytest.param("global", ["query_end", "target_end"], marks=pytest.mark.slow),
        pytest.param("global", None, marks=pytest.mark.slow),
        pytest.param("semiglobal", None, marks=pytest.mark.slow),
        ("local", None),
    ],
)
def test_mea_alignments_of_a_batch(mode, free):
    """Inside ``jit`` and padded: the pairs, spans and scores of each pair alone."""
    rng = np.random.default_rng(34)
    p = rng.random((2, 3, 6, 7)).astype("f4") ** 3
    p[rng.random(p.shape) < 0.4] = 0.25  # many ties
    lengths = rng.integers(0, 7, (2, 3, 2)).astype(np.int32)
    for k in np.ndindex(2, 3):
        p[k][lengths[k][0] :], p[k][:, lengths[k][1] :] = np.nan, np.nan
    options = {"mode": mode, "free_ends": free, "threshold": 0.1}
    found = jax.jit(partial(jaxalign.mea_alignment, lengths=lengths, **options))(p)
    several = found.alignments()
    for number, k in enumerate(np.ndindex(2, 3)):
        m, n = lengths[k]
        alone = jaxalign.mea_alignment(p[k][:m, :n], **options)
        names = ("query_start", "query_end", "target_start", "target_end")
        spans = [getattr(alone, name) for name in names]
        assert found.spans[k].tolist() == spans
        assert several[number].cigar() == alone.cigar()
        np.testing.assert_allclose(found.score[k], alone.score, atol=1e-6)
    p[0, 0, 0, 0], lengths[0, 0] = np.nan, 5
    assert np.isnan(jaxalign.mea_alignment(p, lengths=lengths).score[0, 0])


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["semiglobal", "local"])
def test_mea_alignment_is_an_alignment(mode):
    """Cold, it is the hard alignment's pairs; it rescores as the hard one."""
    _, s = coded(HBA, HBB)
    options = {"gap_open": 11, "gap_extend": 1}
    p = soft_posterior(s, **options, mode=mode, temperature=0.05)
    found = jaxalign.mea_alignment(p, HBA, HBB, mode=mode, threshold=0.2)
    hard = jaxalign.align(HBA, HBB, mode=mode)
    assert found.rescore() == hard.score
    assert found.identities == hard.identities
    assert found.score <= min(p.shape)


def test_mea_alignments_of_few_residues():
    anonymous = jaxalign.mea_alignment(np.eye(3))
    assert anonymous.cigar() == "3M" and anonymous.query == "XXX"
    assert jaxalign.mea_alignment(np.zeros((2, 3))).cigar() == "2I3D"
    assert jaxalign.mea_alignment(np.zeros((2, 3)), mode="local").cigar() == "*"
    lone = np.zeros((1, 3, 3), np.float32)
    lone[0, 1, 1] = 1  # overhangs as long as each other on both sides
    several = jaxalign.mea_alignment(lone, mode="semiglobal")
    alone = jaxalign.mea_alignment(lone[0], mode="semiglobal")
    assert several.spans.tolist() == [[1, 2, 0, 3]]
    assert several.alignments()[0].cigar() == alone.cigar() == "1D1M1D"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["global"])
def test_a_summary_is_what_three_functions_say(mode):
    """In one program; overhangs free where the mode has ends."""
    s = scores_of(2, 9, 13)
    free = None if mode == "local" else ("query_start", "target_end")
    options = {**COSTS, "mode": mode, "free_ends": free, "temperature": 0.7}
    several = (soft_score, soft_posterior, jaxalign.alignment_entropy)
    for got, function in zip(api.soft_summary(s, **options), several, strict=True):
        np.testing.assert_allclose(got, function(s, **options), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "change",
    [
        {"similarity": np.zeros(3, np.float32)},
        {"gap_open": np.zeros(7, np.float32)},
        {"gap_open": (1.0, 2.0, 3.0)},
        {"gap_open": (np.zeros(9, np.float32), 1.0)},
        {"temperature": 0.0},
        {"mode": "nowhere"},
        {"implementation": "gpu"},
        {"lengths": (5, 9)},
    ],
)
def test_refusals(change):
    arguments = {"similarity": np.zeros((5, 6), np.float32), **COSTS} | change
    with pytest.raises(UsageError):
        soft_score(**arguments)


def test_signatures_name_the_options():
    shown = inspect.signature(soft_score).parameters
    required = [x.name for x in shown.values() if x.default is x.empty]
    assert required == ["similarity", "gap_open", "gap_extend"]
    assert [*shown][2:] == [*inspect.signature(soft_posterior).parameters][2:]
    assert shown["mode"].default == "global" and shown["adjacent_gaps"].default is True
    with pytest.raises(TypeError, match="gap_open"):
        soft_score(np.zeros((2, 2)))


# --- larger


def doubled(s, block, **options):
    """Score and posterior in float32, and in float64."""
    name = "blocked" if block else "log"

    def run(s):
        return jax.jit(
            jax.value_and_grad(lambda s: soft_score(s, implementation=name, **options))
        )(s)

    single = run(jnp.asarray(s))
    with jax.enable_x64(True):
        return single, jax.tree.map(np.asarray, run(jnp.asarray(np.float64(s))))


def check_precision(single, double):
    """|F - F64| <= max(1e-4, 1.2e-7 |F|), two float32 units; posterior 1e-5."""
    (f, p), (f64, p64) = single, double
    assert abs(f - f64) <= max(1e-4, 1.2e-7 * abs(f64))
    assert abs(p - p64).max() <= 1e-5
    assert p.sum(0).max() <= 1 + 1e-5 and p.sum(1).max() <= 1 + 1e-5


@pytest.mark.slow
def test_precision_at_150(block=True):
    s = scores_of(22, 150, 140) - 1
    options = {"gap_open": 5.5, "gap_extend": 0.5, "mode": "local"}
    check_precision(*doubled(s, block, temperature=1.0, **options))


@pytest.mark.slow
@pytest.mark.parametrize("mode, temperature", [("local", 0.3), ("global", 3.0)])
def test_precision_at_2000(mode, temperature):
    s = scores_of(23, 2000, 2000) - 1
    options = {"gap_open": 5.5, "gap_extend": 0.5, "mode": mode}
    check_precision(*doubled(s, True, temperature=temperature, **options))
