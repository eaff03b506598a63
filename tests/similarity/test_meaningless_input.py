"""Input that means nothing gives -inf, nan or an error, and never a number."""

from functools import partial
from itertools import cycle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxalign
from jaxalign.errors import UsageError

COSTS = {"gap_open": 1.5, "gap_extend": 0.25}
IMPLEMENTATIONS = ("log", "blocked", "scaled")
PER_PAIR = {
    "score": jaxalign.soft_score,
    "posterior": jaxalign.soft_posterior,
    "entropy": jaxalign.alignment_entropy,
    "gaps": jaxalign.expected_gaps,
    "log_prob": partial(jaxalign.alignment_log_prob, np.array([-1, 0, 1])),
}


def scores(*shape):
    return np.random.default_rng(4).normal(size=shape).astype(np.float32)


# --- labels


NO_ALIGNMENTS = [
    [0, 1, 2, 4, -1],  # beyond the length of the target
    [0, 1, 2, 7, -1],  # beyond the array
    [0, 1, 2, -1, 3],  # of a residue beyond the length of the query
    [0, 1, 1, 2, -1],
    [0, 2, 1, 3, -1],
    [-2, 0, 1, 2, -1],
]


@pytest.mark.parametrize(
    "mode", ["global", pytest.param("local", marks=pytest.mark.slow)]
)
def test_a_label_that_is_no_alignment(mode):
    """-inf, though its pairs score more than all alignments together."""
    s = jnp.full((5, 6), 50.0)

    @jax.jit
    def log_p(partners, s):
        return jaxalign.alignment_log_prob(
            partners, s, (np.int32(4), np.int32(4)), **COSTS, mode=mode
        )

    for partners in NO_ALIGNMENTS:
        assert log_p(jnp.array(partners), s) == -np.inf, partners
    assert np.isfinite(log_p(jnp.array([0, 1, 2, 3, -1]), s))


@pytest.mark.slow
def test_a_label_of_empty_sequences():
    empty = jnp.zeros((2, 0))
    log_p = partial(jaxalign.alignment_log_prob, similarity=empty, **COSTS)
    assert log_p(jnp.array([-1, -1])) == 0 and log_p(jnp.array([0, -1])) == -np.inf


@pytest.mark.slow
def test_a_certain_label_has_a_gradient():
    """A log probability that rounds to 0 is that of a maximum, not of a plateau."""
    s = 30.0 * jnp.eye(3)

    def log_p(s, t):
        label = jnp.arange(3)
        return jaxalign.alignment_log_prob(label, s, **COSTS, temperature=t)

    gradient = jax.grad(log_p)(s, 1.0)
    want = np.eye(3) - jaxalign.soft_posterior(s, **COSTS)
    np.testing.assert_allclose(gradient, want, atol=1e-7)


# --- temperatures


@pytest.mark.parametrize("temperature", [1e-45, 1e-30, 1e30, 1e308, np.inf, np.nan, -1])
def test_a_temperature_that_float32_has_no_answer_for(temperature):
    """At 1e-30 scores over it were cut, and a score of 13 was 14.9."""
    with pytest.raises(UsageError, match="from 1e-20 to 1e.20"):
        jaxalign.soft_score(scores(3, 4), **COSTS, temperature=temperature)


@pytest.mark.slow
def test_nor_has_it_inside_jit():
    @jax.jit
    def score(t):
        return jaxalign.soft_score(scores(3, 4), **COSTS, temperature=t)

    for temperature in (1e-30, 1e30, np.inf):
        assert np.isnan(score(np.float32(temperature)))
    hard = jaxalign.hard_alignment(scores(3, 4), **COSTS).score
    np.testing.assert_allclose(score(np.float32(1.1e-20)), hard, atol=1e-6)
    assert np.isfinite(score(np.float32(0.9e20)))


# --- nan and infinity


NAMES = ("score", "posterior", "gaps", "entropy")
NAN_CASES = [
    ("score", "log"),
    *(
        pytest.param(*case, marks=pytest.mark.slow)
        for case in zip(NAMES, cycle(IMPLEMENTATIONS[1:]), strict=False)
    ),
]


@pytest.mark.parametrize("name, implementation", NAN_CASES)
def test_nan_within_the_lengths_is_nan(name, implementation):
    """In a similarity, an embedding and each gap cost; beyond the lengths it is not
    seen. One program for all of them."""
    function = PER_PAIR[name]

    @jax.jit
    def run(a, opening, m, t=1.0):
        options = {"gap_open": (opening, 1.5), "gap_extend": 0.25, "temperature": t}
        b = jnp.eye(4)
        options["implementation"] = implementation
        found = function((a, b), (m, np.int32(4)), **options)
        return jnp.stack([jnp.sum(x) for x in jax.tree.leaves(found)]).sum()

    a, opening = scores(3, 4), np.full(3, 1.5, np.float32)
    three, two = np.int32(3), np.int32(2)
    want = run(a, opening, two)
    assert np.isfinite(want)
    for wrong in (np.nan, np.inf):
        b = a.copy()
        b[2, 1] = wrong
        assert np.isnan(run(b, opening, three)) and run(b, opening, two) == want
    for wrong in (np.nan, -np.inf):
        cost = opening.copy()
        cost[2] = wrong
        assert np.isnan(run(a, cost, three))
    for t in (0.0, -1.0, np.nan):
        assert np.isnan(run(a, opening, three, np.float32(t)))
    assert np.isnan(run(a, opening, np.int32(4))) and np.isnan(run(a, opening, -three))


@pytest.mark.slow
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_gradients_of_nan_are_nan(implementation):
    """Those of the pair at hand; the others of the batch keep theirs."""
    s = scores(2, 4, 5)
    s[1, 2, 3] = np.inf

    def total(s):
        return jaxalign.soft_score(s, **COSTS, implementation=implementation).sum()

    value, gradient = jax.jit(jax.value_and_grad(total))(s)
    assert np.isnan(value) and np.isnan(gradient[1]).all()
    np.testing.assert_allclose(
        gradient[0], jaxalign.soft_posterior(s[0], **COSTS), atol=1e-6
    )


@pytest.mark.slow
def test_scaled_says_nothing_of_nan():
    s = scores(4, 5)
    s[1, 1] = np.nan
    assert np.isnan(jaxalign.soft_score(s, **COSTS, implementation="scaled"))


@pytest.mark.slow
def test_samples_and_divergence_of_nan():
    s = scores(3, 4)
    s[0, 0] = np.nan
    drawn = jaxalign.sample_alignments(jax.random.key(0), 2, s, **COSTS)
    assert (drawn == -1).all()
    p, q = ({"similarity": x, **COSTS} for x in (s, scores(3, 4)))
    assert np.isnan(jaxalign.kl_divergence(p, q))
    assert np.isnan(jaxalign.kl_divergence(q, p))


@pytest.mark.slow
def test_infinite_costs_forbid_gaps():
    """A gap that may not be extended may still be opened, at the ends as well."""
    s = np.zeros((3, 2), np.float32)
    cold = {"temperature": 1e-3}
    found = jaxalign.soft_score(s, gap_open=1.0, gap_extend=np.inf, **cold)
    np.testing.assert_allclose(found, -1, atol=1e-2)
    vectors = np.array([1, 1, np.inf], np.float32), 1.0
    more = np.array([np.inf, np.inf, 2.0], np.float32), 1.0
    options = {"gap_open": vectors, "gap_extend": more, **cold}
    found = jaxalign.soft_score(np.full((3, 1), -9.0, np.float32), **options)
    np.testing.assert_allclose(found, -9 - 1 - 2, atol=1e-2)
    hard = jaxalign.hard_alignment(s, gap_open=vectors, gap_extend=more)
    assert hard.score == -1


@pytest.mark.parametrize("name", PER_PAIR)
@pytest.mark.parametrize(
    "shape", [(0, 3, 4), pytest.param((2, 3, 0), marks=pytest.mark.slow)]
)
def test_arrays_without_entries(name, shape):
    """No pair, or no residue."""
    s = np.zeros(shape, np.float32)
    partners = np.full(shape[:2], -1)
    if name == "log_prob":
        found = jaxalign.alignment_log_prob(partners, s, **COSTS)
    else:
        found = PER_PAIR[name](s, **COSTS)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(found))
    assert all(x.shape[0] == shape[0] for x in jax.tree.leaves(found))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(0, 4), (2, 3, 0)])
def test_samples_divergence_and_hard_alignments_without_entries(shape):
    s = np.zeros(shape, np.float32)
    drawn = jaxalign.sample_alignments(jax.random.key(0), 5, s, **COSTS)
    assert drawn.shape == (5, *shape[:-1]) and (drawn == -1).all()
    p = {"similarity": s, **COSTS}
    assert (jaxalign.kl_divergence(p, p) == 0).all()
    assert (jaxalign.hard_alignment(s, **COSTS).partners == -1).all()


# --- what can be read two ways, or not at all


@pytest.mark.parametrize(
    "shape, lengths, cost",
    [
        ((4, 4, 5), None, (np.ones(4, np.float32), 1.0)),
        ((4, 4, 4), None, (np.ones((4, 4), np.float32), 1.0)),
        ((4, 5, 4, 5), None, np.ones((4, 5), np.float32)),
        ((2, 6, 8), [[6, 8], [4, 5]], 1.0),
    ],
)
def test_what_can_be_read_two_ways(shape, lengths, cost):
    for function in (jaxalign.soft_score, jaxalign.hard_alignment):
        with pytest.raises(UsageError, match="read (in )?two ways"):
            function(np.zeros(shape, np.float32), lengths, gap_open=cost, gap_extend=1)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 4])
def test_one_reading_is_taken(rows):
    s, cost = scores(4, 4, 5), np.full((rows, 4), 1.5, np.float32)
    plain = jaxalign.soft_score(s, **COSTS)
    found = jaxalign.soft_score(s, gap_open=(cost, 1.5), gap_extend=0.25)
    np.testing.assert_allclose(found, plain, atol=1e-5)


CODES = np.array([0, 3], np.uint8)


@pytest.mark.parametrize(
    "similarity, words",
    [
        ((np.array([0, 24]), CODES, np.zeros((24, 24))), "query code 24"),
        ((CODES, np.array([-1, 3]), np.zeros((24, 24))), "target code -1"),
        (("MKV", "MJV", "BLOSUM62"), "'J' at 2"),
        (("MKV", "MRV"), "Scoring"),
        ("MKV", "similarity"),
        (jaxalign.Scoring(), "not Scoring"),
        ((np.zeros((2, 3)), np.zeros((2, 4))), "embeddings"),
        (np.zeros((3, 3), complex), "real numbers"),
        (np.full((3, 3), "a"), "real numbers"),
        ((np.zeros((2, 3)), np.zeros((2, 3), object)), "real numbers"),
    ],
)
def test_similarities_that_are_refused(similarity, words):
    for function in (jaxalign.soft_score, jaxalign.soft_posterior):
        with pytest.raises(UsageError, match=words) as refusal:
            function(similarity, **COSTS)
        assert str(refusal.value).startswith(f"{function.__name__}: ")
    with pytest.raises(UsageError, match="^hard_alignment: "):
        jaxalign.hard_alignment(similarity, **COSTS)


@pytest.mark.slow
def test_strings_with_a_scoring():
    scoring = jaxalign.Scoring()
    gaps = {"gap_open": 11, "gap_extend": 1}
    codes = [scoring.alphabet.encode(text) for text in ("MKVA", "MRV")]
    want = jaxalign.soft_score((*codes, scoring.scores), **gaps)
    for given in (scoring, "BLOSUM62"):
        assert jaxalign.soft_score(("MKVA", "MRV", given), **gaps) == want
    best = jaxalign.hard_alignment(("MKVA", "MRV", scoring), **gaps)
    assert best.score == jaxalign.align("MKVA", "MRV").score


@pytest.mark.slow
def test_codes_that_only_a_program_sees():
    """Beyond the matrix: nan within the lengths, nothing beyond them."""

    @jax.jit
    def run(codes, m):
        lookup = codes, CODES, np.ones((24, 24), np.float32)
        return jaxalign.soft_score(lookup, (m, 2), **COSTS)

    codes = np.array([0, 1, 99])
    assert np.isnan(run(codes, 3)) and np.isfinite(run(codes, 2))
    padded = (codes, CODES, np.ones((24, 24), np.float32))
    assert run(codes, 2) == jaxalign.soft_score(padded, (2, 2), **COSTS)


@pytest.mark.parametrize("name", ["alignment_entropy", "expected_gaps"])
def test_messages_name_the_function(name):
    with pytest.raises(UsageError, match=f"^{name}: "):
        getattr(jaxalign, name)(np.zeros(3, np.float32), **COSTS)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"gap_open": 1j}, "soft_score: gap_open of complex"),
        ({"gap_open": None}, "soft_score: gap_open of NoneType"),
        ({"gap_extend": (1.0, "b")}, "soft_score: gap_extend of str"),
        ({"temperature": np.ones(5)}, "soft_score: an array of shape"),
        ({"temperature": 1j}, "soft_score: the temperature of complex"),
    ],
)
def test_numbers_that_are_refused(options, words):
    with pytest.raises(UsageError, match=f"^{words}"):
        jaxalign.soft_score(scores(4, 4, 5), **(COSTS | options))


def test_what_is_needed_is_named():
    with pytest.raises(TypeError, match="^soft_score needs gap_open and gap_extend$"):
        jaxalign.soft_score(scores(4, 4, 5))
    with pytest.raises(UsageError, match="^alignment_log_prob: partners of float32"):
        half = np.full(4, 0.5, np.float32)
        jaxalign.alignment_log_prob(half, scores(4, 5), **COSTS)
    with pytest.raises(UsageError, match="^k_best: k = 1.5: 1 to 64"):
        jaxalign.k_best(1.5, scores(4, 5), **COSTS)
