"""Every function of a model whose costs differ by sequence and by place, enumerated.

Costs, free ends and lengths differ by side in every case: with one cost for both
sequences a wrong side may be right by chance. The sets of pairs and what each of them
pays come from ``similarity_enumeration``, which knows no recurrence.
"""

from functools import cache
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import END_SETS
from similarity_enumeration import every_alignment, log_sum, pair_sets

import jaxalign

SIZE = (4, 5)
LENGTHS = [(4, 5), (3, 2), (2, 5), (1, 4), (0, 3), (2, 0)]
MODES = [("global", ends) for ends in END_SETS] + [("local", None)]
ATOL = 2e-5  # of a float32 score of twelve steps, as in test_soft.py
FORMS = ["number", "residue", "cell"]


class Model:
    """A random model: what the functions take, and what the enumeration does."""

    def __init__(self, seed, form, temperature):
        rng = np.random.default_rng(seed)
        self.s = rng.normal(size=SIZE).astype(np.float32) * 2
        self.temperature = np.float32(temperature)
        self.costs = rng.uniform(0.1, 3, (2, 2, *SIZE)).astype(np.float32)
        self.costs[1] /= 4
        if form == "number":  # by place alone extending may cost more than opening
            self.costs[1] = np.minimum(self.costs[1], self.costs[0] / 2)
        at = {"number": (0, 0), "residue": (slice(None), slice(None))}
        if form != "cell":
            query, target = at[form]
            self.costs[:, 0] = np.broadcast_to(
                self.costs[:, 0, query, :1].reshape(2, -1, 1), (2, *SIZE)
            )
            self.costs[:, 1] = np.broadcast_to(
                self.costs[:, 1, :1, target].reshape(2, 1, -1), (2, *SIZE)
            )
        self.opening, self.extending = (
            tuple(self.cut(x[side], form, side) for side in (0, 1)) for x in self.costs
        )

    @staticmethod
    def cut(cost, form, side):
        if form == "cell":
            return cost
        vector = cost[0] if side else cost[:, 0]
        return vector if form == "residue" else vector[0]

    @property
    def gaps(self):
        return {"gap_open": self.opening, "gap_extend": self.extending}

    def options(self, lengths):
        lengths = np.array(lengths, np.int32)
        return {"lengths": lengths, **self.gaps, "temperature": self.temperature}

    def distribution(self, case):
        """(every alignment, its probability, the soft score)"""
        every = every_alignment(self.s, self.costs, *case)
        t = float(self.temperature)
        with np.errstate(invalid="ignore"):
            total = log_sum(every.totals / t) if np.any(every.totals > -np.inf) else 0.0
        return every, np.exp(every.totals / t - total), t * total


@cache
def model(seed, form):
    return Model(seed, form, (0.7, 1.3)[seed % 2])


def cases(form):
    """(lengths, mode, free ends, adjacent), a part of their product; a form of costs
    has a third of it."""
    every = [*product(LENGTHS, MODES, (True, False))]
    every = [(lengths, *mode, adjacent) for lengths, mode, adjacent in every]
    legal = [c for c in every if c[3] or c[1] == "local" or 0 not in c[0]]
    chosen = legal[::7] + [(LENGTHS[0], *mode, True) for mode in MODES]
    return chosen[FORMS.index(form) :: len(FORMS)]


def given(case):
    lengths, mode, free, adjacent = case
    return lengths, {"mode": mode, "free_ends": free, "adjacent_gaps": adjacent}


def partners_of(lengths):
    rows = np.full((len(pair_sets(*lengths)), SIZE[0]), -1, np.int32)
    for row, pairs in zip(rows, pair_sets(*lengths), strict=True):
        for i, j in pairs:
            row[i] = j
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_scores_posteriors_entropies_and_payers(form):
    one = model(2, form)
    for case in cases(form):
        lengths, rules = given(case)
        options = one.options(lengths) | rules
        every, p, score = one.distribution(case)
        shown = np.zeros((len(p), *SIZE))
        for k, pairs in enumerate(pair_sets(*lengths)):
            for pair in pairs:
                shown[k][pair] = 1
        note = f"{form} {case}"
        found = jaxalign.soft_score(one.s, **options)
        np.testing.assert_allclose(found, score, atol=ATOL, err_msg=note)
        found = jaxalign.soft_posterior(one.s, **options)
        want = np.einsum("k,kij->ij", p, shown)
        np.testing.assert_allclose(found, want, atol=ATOL, err_msg=note)
        found = jaxalign.alignment_entropy(one.s, **options)
        want = -np.sum(p[p > 0] * np.log(p[p > 0]))
        np.testing.assert_allclose(found, want, atol=ATOL, err_msg=note)
        payers = np.einsum("k,kabij->abij", p, every.payers)
        for found, want in zip(
            jaxalign.expected_gaps(one.s, **options), payers, strict=True
        ):
            for side in (0, 1):
                exactly = want[side]
                if form == "number":
                    exactly = exactly.sum()
                elif form == "residue":
                    exactly = exactly.sum(1 - side)
                np.testing.assert_allclose(
                    found[side], exactly, atol=ATOL, err_msg=note
                )


def check_frequencies(drawn, rows, p):
    """Samples are of these rows, within 5 standard deviations of ``p``."""
    numbers = {tuple(row): k for k, row in enumerate(rows.tolist())}
    counts = np.bincount([numbers[tuple(x)] for x in drawn.tolist()], minlength=len(p))
    wide = 5 * np.sqrt(p * (1 - p) / 2000) + 1e-3
    assert (abs(counts / 2000 - p) <= np.where(p > 0, wide, 0)).all()


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_log_probabilities_and_samples(form):
    """Each set of pairs has its own probability; samples are of them."""
    one = model(3, form)
    for case in cases(form):
        lengths, rules = given(case)
        options = one.options(lengths) | rules
        every, p, score = one.distribution(case)
        rows = partners_of(lengths)
        some = np.linspace(0, len(rows) - 1, 24).astype(int)
        batch = {"similarity": np.broadcast_to(one.s, (24, *SIZE))}
        found = jaxalign.alignment_log_prob(rows[some], **batch, **options)
        legal = every.totals[some] > -np.inf
        np.testing.assert_array_equal(found > -np.inf, legal)
        want = np.where(legal, (every.totals[some] - score) / one.temperature, -np.inf)
        np.testing.assert_allclose(found, want, atol=2 * ATOL, err_msg=str(case))
    drawn = jaxalign.sample_alignments(jax.random.key(1), 2000, one.s, **options)
    check_frequencies(drawn, rows, p)


@pytest.mark.slow
@pytest.mark.parametrize("form, of_q", [*product(FORMS, FORMS)])
def test_divergences(form, of_q):
    """KL(p, q), also where p and q differ about which sequence hangs over, and in the
    form of their costs."""
    p, q = model(4, form), model(5, of_q)
    for case in cases(form):
        lengths, rules = given(case)
        (every_p, shares, f_p), (every_q, _, f_q) = map(
            Model.distribution, (p, q), (case, case)
        )
        alive = shares > 0
        logs = [
            (every.totals[alive] - f) / float(x.temperature)
            for every, f, x in ((every_p, f_p, p), (every_q, f_q, q))
        ]
        want = np.sum(shares[alive] * (logs[0] - logs[1]))
        models = [
            {"similarity": x.s, **x.gaps, "temperature": x.temperature} for x in (p, q)
        ]
        found = jaxalign.kl_divergence(
            *models, lengths=np.array(lengths, np.int32), **rules
        )
        np.testing.assert_allclose(found, want, atol=3 * ATOL, err_msg=f"{form} {case}")


@pytest.mark.slow
@pytest.mark.parametrize("form, of_q", [("number", "residue"), ("cell", "number")])
def test_costs_of_two_forms_diverge_as_costs_of_one(form, of_q):
    """Costs of all forms that are one number."""
    numbers = np.float32([2, 0.5]), np.float32([3, 1])
    forms = {
        "number": lambda x: x,
        "residue": lambda x: (np.full(SIZE[0], x), np.full(SIZE[1], x)),
        "cell": lambda x: np.full(SIZE, x),
    }
    s = model(4, "number").s

    def divergence(*of):
        models = [
            {"similarity": s * k, "gap_open": form(x[0]), "gap_extend": form(x[1])}
            for k, x, form in zip((1, 2), numbers, of, strict=True)
        ]
        return jaxalign.kl_divergence(*models, free_ends=["query_end"])

    want = divergence(*[forms["number"]] * 2)
    found = divergence(forms[form], forms[of_q])
    np.testing.assert_allclose(found, want, atol=ATOL)


def narrow(width):
    """(M, N): the pairs of a band of this half width."""
    i, j = np.indices(SIZE)
    apart = (2 * i + 1) * SIZE[1] - (2 * j + 1) * SIZE[0]
    return abs(apart) <= width * sum(SIZE)


@pytest.mark.slow
@pytest.mark.parametrize("implementation", ["blocked", "scaled", "band"])
def test_divergences_by_every_implementation(implementation):
    """With both starts and both ends free."""
    p, q = model(6, "number"), model(7, "number")
    options = {"implementation": implementation, "mode": "semiglobal"}
    band = None
    if implementation == "band":
        options = {"band": 1, "mode": "semiglobal"}
        band = narrow(1)
    logs = []
    for x in (p, q):
        every = every_alignment(x.s, x.costs, SIZE, "semiglobal", None, True, band)
        logs.append(every.totals / float(x.temperature))
        logs[-1] = logs[-1] - log_sum(logs[-1])
    alive = logs[0] > -np.inf
    want = np.sum(np.exp(logs[0][alive]) * (logs[0][alive] - logs[1][alive]))
    models = [
        {"similarity": x.s, **x.gaps, "temperature": x.temperature} for x in (p, q)
    ]
    found = jaxalign.kl_divergence(*models, **options)
    np.testing.assert_allclose(found, want, atol=3 * ATOL)


@pytest.mark.slow
def test_a_divergence_is_differentiable_where_both_ends_are_free():
    """Its gradient by a cost of q, by differences in float64."""
    p, q = model(4, "number"), model(5, "number")
    with jax.enable_x64(True):

        @jax.jit
        def loss(cost):
            wide = [
                {
                    "similarity": jnp.asarray(np.float64(x.s)),
                    "gap_open": (np.float64(x.opening[0]), np.float64(x.opening[1])),
                    "gap_extend": 0.25,
                }
                for x in (p, q)
            ]
            wide[1]["gap_open"] = (cost, wide[1]["gap_open"][1])
            return jaxalign.kl_divergence(*wide, mode="semiglobal")

        slope = (loss(1.5 + 1e-5) - loss(1.5 - 1e-5)) / 2e-5
        np.testing.assert_allclose(jax.grad(loss)(1.5), slope, atol=1e-8)


@pytest.mark.slow
def test_two_equal_models_do_not_diverge():
    s = np.array([[0, 0], [0, 1]], np.float32)
    p = {"similarity": s, "gap_open": (3.0, 1.0), "gap_extend": (0.1, 0.1)}
    q = p | {"gap_open": (1.0, 3.0)}
    assert jaxalign.kl_divergence(p, q, mode="semiglobal") < 1e-6


@pytest.mark.slow
def test_infinite_costs_of_q_are_infinitely_far():
    """Where p opens gaps, and only there."""
    s = np.eye(2, 3, dtype=np.float32)
    p = {"similarity": s, "gap_open": 1.0, "gap_extend": 1.0}
    q = p | {"gap_open": (1.0, np.inf)}
    assert jaxalign.kl_divergence(p, q) == np.inf
    assert np.isfinite(jaxalign.kl_divergence(q, p, free_ends=("target_end",)))
    assert jaxalign.kl_divergence(q, q, free_ends=("target_end",)) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_best_alignments(form):
    """The best one and the three best ones."""
    one = model(8, form)
    for case in cases(form):
        lengths, rules = given(case)
        options = {"lengths": np.array(lengths, np.int32), **one.gaps, **rules}
        every = every_alignment(one.s, one.costs, *case)
        totals = np.sort(np.append(every.totals, [-np.inf] * 3))[::-1]
        found = jaxalign.hard_alignment(one.s, **options)
        np.testing.assert_allclose(found.score, totals[0], atol=ATOL, err_msg=str(case))
        if totals[0] > -np.inf:
            best = partners_of(lengths)[np.argmax(every.totals)]
            np.testing.assert_array_equal(found.partners, best, err_msg=str(case))
        found = jaxalign.k_best(3, one.s, **options)
        np.testing.assert_allclose(
            found.score, totals[:3], atol=ATOL, err_msg=str(case)
        )


@pytest.mark.slow
def test_a_band_has_gaps_of_the_query_first():
    """The alignment without pairs, too, where nothing hangs over: its gaps pass the
    lower left corner, which may lie in a band by rows, and never the upper right."""
    s = np.full((3, 3), -9, np.float32)
    costs = {"gap_open": 1.0, "gap_extend": 1.0}
    upper = np.array([0, 1, 2]), np.full(3, 2)
    lower = np.zeros(3, int), np.array([0, 0, 2])
    assert jaxalign.hard_alignment(s, **costs, band=lower).score == -6
    assert jaxalign.hard_alignment(s, **costs, band=upper).score < -6


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["global", "semiglobal", "local"])
def test_samples_and_best_alignments_in_a_band(mode):
    one = model(9, "residue")
    rules = {"mode": mode, "band": 1}
    every = every_alignment(one.s, one.costs, SIZE, mode, None, True, narrow(1))
    best = jaxalign.k_best(4, one.s, **one.gaps, **rules)
    np.testing.assert_allclose(best.score, np.sort(every.totals)[:-5:-1], atol=ATOL)
    rows = partners_of(SIZE)
    for score, partners in zip(best.score, best.partners.tolist(), strict=True):
        at = rows.tolist().index(partners)
        np.testing.assert_allclose(score, every.totals[at], atol=ATOL)
    t = float(one.temperature)
    p = np.exp(every.totals / t - log_sum(every.totals / t))
    options = {**one.gaps, **rules, "temperature": one.temperature}
    drawn = jaxalign.sample_alignments(jax.random.key(2), 2000, one.s, **options)
    check_frequencies(drawn, rows, p)


FUNCTIONS = [
    jaxalign.soft_score,
    jaxalign.soft_posterior,
    jaxalign.hard_alignment,
    lambda *given, **options: jaxalign.k_best(2, *given, **options),
    lambda s, lengths, **options: jaxalign.kl_divergence(
        {"similarity": s, **options}, {"similarity": s, **options}, lengths
    ),
]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    "gap_open, gap_extend, text",
    [
        (-1, 0.5, "gap_open = -1: a cost must be 0 or more"),
        ((2.0, 3.0), (1.0, -0.5), "gap_extend = -0.5"),
        ((np.array([1, 1, -2, 1], np.float32), 3.0), 1.0, "gap_open = -2"),
        (1.0, 2.0, "gap_extend = 2 exceeds gap_open = 1: extending may not cost more"),
        ((2.0, 1.0), 1.5, "gap_extend = 1.5 exceeds gap_open = 1"),
        (np.array([3, 1], np.float32), 2.0, "gap_extend = 2 exceeds gap_open = 1"),
    ],
)
def test_costs_are_checked_alike(function, gap_open, gap_extend, text):
    s, lengths = np.zeros((2, *SIZE), np.float32), np.full((2, 2), 4, np.int32)
    with pytest.raises(jaxalign.UsageError, match=text):
        function(s, lengths, gap_open=gap_open, gap_extend=gap_extend)


@pytest.mark.slow
def test_padding_of_costs_is_not_read():
    cost = np.array([2, 1, -np.inf, -7], np.float32)
    lengths = np.array([2, 5], np.int32)
    one, other = (
        jaxalign.soft_score(
            np.zeros(SIZE, np.float32), lengths, gap_open=(x, 3.0), gap_extend=0.5
        )
        for x in (cost, abs(cost[[0, 1, 0, 0]]))
    )
    assert one == other


def test_a_model_needs_its_costs():
    p = {"similarity": np.eye(3, dtype=np.float32), "gap_open": 1.0}
    with pytest.raises(jaxalign.UsageError, match="a model needs gap_extend"):
        jaxalign.kl_divergence(p, p)
