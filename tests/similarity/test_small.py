"""Small problems in NumPy against the compiled form, and against enumeration.

A float64 is off by 2e-16 of a number a step, and values are kept below 40 or so: 1e-12
is what 60 steps in a row could do. Of float32 the numbers are rounded once, at the end.
"""

import subprocess
import sys
from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import END_SETS
from similarity_enumeration import exact

import jaxalign
from jaxalign.errors import UsageError
from jaxalign.model.scoring import FREE_ENDS
from jaxalign.similarity import small
from jaxalign.similarity.hard import small as small_hard
from jaxalign.similarity.soft import api

M, N, PAIRS = 5, 6, 7
COSTS = {"gap_open": 2.0, "gap_extend": 0.5}
BY_ROWS = np.array([0, 0, 1, 2, 4]), np.array([1, 3, 3, 5, 5])


def drawn(rng, form, local):
    """A padded batch with forbidden pairs, and gap costs of one form. The last two
    sequences have no pair, and no gap where costs have a batch."""
    s = rng.normal(size=(PAIRS, M, N)) * 3
    s[rng.random(s.shape) < 0.1] = rng.choice([-1e30, -np.inf])
    lengths = rng.integers(0, M + 1, PAIRS), rng.integers(0, N + 1, PAIRS)
    lengths[0][0], lengths[1][0] = M, N
    s[-1], lengths[0][-1], lengths[1][-1] = -np.inf, 3, 4
    for k, (m, n) in enumerate(zip(*lengths, strict=True)):
        s[k, m:], s[k, :, n:] = np.nan, np.inf

    def cost(scale):
        shapes = {
            "numbers": [(), ()],
            "of two": [(), (PAIRS, N)],
            "by residue": [(PAIRS, M), (PAIRS, N)],
            "by cell": [(PAIRS, M, N)] * 2,
        }
        query, target = (rng.random(shape) * scale for shape in shapes[form])
        if form == "of two":  # a number may not open for less than it extends
            query += scale - 1
        if form == "by cell" and rng.random() < 0.5:
            return query
        if form != "numbers":
            target[rng.random(target.shape) < 0.1] = np.inf
            target[-1] = np.inf
        return (query, target) if form != "numbers" else float(query) + scale

    free = tuple(end for end in FREE_ENDS if rng.random() < 0.5)
    options = {"mode": "local"} if local else {"mode": "global", "free_ends": free}
    options["adjacent_gaps"] = bool(rng.random() < 0.6)
    if form != "by cell":
        options["band"] = (None, 2, BY_ROWS)[rng.integers(3)]
    costs = {"gap_open": cost(2.0), "gap_extend": cost(1.0)}
    costs["temperature"] = rng.random(PAIRS) + 0.5
    return s, lengths, costs, options


def check(found, compiled, tolerance, note):
    pairs = zip(*map(jax.tree.leaves, (found, compiled)), strict=True)
    for one, other in pairs:
        assert type(one) is np.ndarray and isinstance(other, jax.Array), note
        assert one.dtype == other.dtype, note
        limits = {"rtol": tolerance, "atol": tolerance, "err_msg": str(note)}
        np.testing.assert_allclose(one, other, **limits)


SLOW = pytest.mark.slow
FORMS = "numbers", "of two", "by residue", "by cell"
# Each seed is a program: free ends, band and mode are its own. The cases of a test draw
# from different seeds, so that together they have all of them.
SEEDS = 1


def seeds_of(*factors):
    """Seeds of a case, from the place of each of its values among the choices."""
    case = 0
    for value, choices in factors:
        case = case * len(choices) + choices.index(value)
    return range(SEEDS * case, SEEDS * (case + 1))


def compare(name, form, local, seeds):
    with jax.enable_x64(True):
        for seed in seeds:
            rng = np.random.default_rng(seed)
            s, lengths, costs, options = drawn(rng, form, local)
            note = name, form, seed, options
            if name == "kl_divergence":
                p = {"similarity": s} | costs
                other = np.where(np.abs(s) < 1e9, s + rng.normal(size=s.shape), s)
                q = p | {"similarity": other, "temperature": 1.3}
                q |= drawn(rng, form, local)[2]
                found = api.kl_divergence(p, q, lengths, **options)
                p = p | {"similarity": jnp.asarray(s)}
                check(found, api.kl_divergence(p, q, lengths, **options), 1e-12, note)
                continue
            first = ()
            if name == "alignment_log_prob":
                partners = api.sample_alignments(
                    seed, 1, s, lengths, **costs, **options
                )[0]
                partners[1, :2] = rng.integers(-2, N, 2)
                partners[2, :2] = np.sort(rng.integers(0, N, 2))
                first = (partners,)
            function = getattr(api, name)
            found, compiled = (
                function(*first, x, lengths, **costs, **options)
                for x in (s, jnp.asarray(s))
            )
            check(found, compiled, 1e-12, note)


@pytest.mark.slow
def test_no_alignment_has_no_divergence():
    """Of one residue and none, where gaps are infinitely costly."""
    p = {"similarity": np.zeros((1, 1)), "gap_open": np.inf, "gap_extend": np.inf}
    lengths = 1, 0
    for x in (p["similarity"], jnp.asarray(p["similarity"])):
        one = p | {"similarity": x}
        assert api.soft_score(x, lengths, gap_open=np.inf, gap_extend=np.inf) == -np.inf
        assert np.isnan(api.kl_divergence(one, one, lengths))


@pytest.mark.parametrize(
    "kind", [np.asarray, pytest.param(jnp.asarray, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_pays_an_infinite_cost_has_no_probability(kind, dtype):
    """The second of two residues must be paired, or neither may be left."""
    with jax.enable_x64(dtype == np.float64):
        s = kind(np.zeros((2, 1, 2), dtype))
        target = np.array([[1.0, np.inf], [np.inf, np.inf]], dtype)
        costs = dict.fromkeys(
            ("gap_open", "gap_extend"), (np.zeros((2, 1), dtype), target)
        )
        for path, first in (([0], -np.inf), ([1], 0.0), ([-1], -np.inf)):
            found = jaxalign.alignment_log_prob(np.int32([path] * 2), s, **costs)
            np.testing.assert_array_equal(found, [first, -np.inf])
        p, q = ({"similarity": s} | costs for _ in range(2))
        q["gap_open"] = costs["gap_open"][0], kind(np.ones((2, 2), dtype))
        for x, y, first in ((p, q, np.log(2)), (q, p, np.inf)):
            found = jaxalign.kl_divergence(x, y)
            second = np.nan if x is p else np.inf
            np.testing.assert_allclose(found, [first, second], rtol=1e-6)


@SLOW
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("local", [False, True])
def test_best_paths_are_those_of_the_compiled_form(form, local):
    """Sums of quarters are exact, so that equal alignments tie: the same path."""
    for seed in seeds_of((local, (False, True)), (form, FORMS)):
        dtype = (np.float32, np.float64)[seed % 2]
        rng = np.random.default_rng(seed)
        s, lengths, *numbers = drawn(rng, form, local)
        s, costs = jax.tree.map(lambda x: np.round(4 * x) / 4, (s, numbers[0]))
        del costs["temperature"]
        options = costs | numbers[1]
        calls = {
            "hard_alignment": partial(jaxalign.hard_alignment, **options),
            "k_best": partial(jaxalign.k_best, 5, **options),
        }
        if options.pop("mode") == "local":
            calls["local_hits"] = partial(jaxalign.local_hits, 3, **options)
        for name, call in calls.items():
            with jax.enable_x64(dtype == np.float64):
                arrays = s.astype(dtype), jnp.asarray(s, dtype)
                found, compiled = (call(x, lengths) for x in arrays)
            note = f"{name} {dtype} {seed} {options}"
            assert found.implementation == "numpy", note
            assert compiled.implementation == "scored", note
            assert found.query_first == compiled.query_first, note
            pairs = zip(*map(jax.tree.leaves, (found, compiled)), strict=True)
            for one, other in pairs:
                assert one.dtype == other.dtype, note
                if name != "k_best":
                    np.testing.assert_array_equal(one, other, err_msg=note)
            if name == "k_best":
                np.testing.assert_array_equal(found.score, compiled.score, note)
                for pair in range(PAIRS):
                    assert ranked(found, pair) == ranked(compiled, pair), note


def ranked(best, pair):
    """Partners and spans of each score but the last, of which some are left out; of
    equals any may come first."""
    scores = np.asarray(best.score)[:, pair]
    rows = (np.asarray(x)[:, pair].tolist() for x in (best.partners, best.spans))
    paths = [*zip(scores, *rows, strict=True)]
    return [
        sorted(path for path in paths if path[0] == score)
        for score in dict.fromkeys(scores[scores > scores[-1]])
    ]


@pytest.mark.slow
def test_summaries_are_those_of_the_compiled_form():
    """Score, posterior and entropy of all ends, lengths and masks."""
    compare("soft_summary", "numbers", False, range(100, 106))


NAMES = "soft_summary", "expected_gaps", "alignment_log_prob", "kl_divergence"


@SLOW
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("local", [False, True])
def test_all_values_are_those_of_the_compiled_form(name, form, local):
    compare(name, form, local, seeds_of((name, NAMES), (form, FORMS)))


@pytest.mark.parametrize("adjacent", [True, False])
def test_enumeration(adjacent):
    """All modes and free ends, lengths from 0: every number of the model."""
    rng = np.random.default_rng(5)
    modes = [("global", frozenset(ends)) for ends in END_SETS] + [("local", None)]
    sizes = [(3, 4), (4, 1), (1, 3), (0, 3), (2, 0)]
    for (mode, free), (m, n), t in product(modes, sizes, (0.3, 2.0)):
        s = rng.normal(size=(m, n)) * 2
        options = {"mode": mode, "free_ends": free, "temperature": t}
        options |= {"gap_open": 1.5, "gap_extend": 0.375, "adjacent_gaps": adjacent}
        want = exact(s, 1.5, 0.375, t, mode, free or (), adjacent)
        score, posterior, entropy = api.soft_summary(s, **options)
        opens, extensions = jaxalign.expected_gaps(s, **options)
        note = f"{mode} {free} {m} {n} {t}"
        if want is None:
            assert score == -np.inf and not posterior.any() and not entropy, note
            continue
        found = score, opens, extensions, entropy
        wanted = want.score, want.opens, want.extensions, want.entropy
        np.testing.assert_allclose(found, wanted, atol=1e-12, err_msg=note)
        np.testing.assert_allclose(posterior, want.posterior, atol=1e-12, err_msg=note)


def test_numbers_of_32_bits():
    """They are rounded once: the value of float64, of the same numbers."""
    rng = np.random.default_rng(6)
    s = rng.normal(size=(40, 50)).astype(np.float32) * 3
    found = api.soft_summary(s, **COSTS)
    for one, other in zip(found, api.soft_summary(np.float64(s), **COSTS), strict=True):
        assert one.dtype == np.float32
        np.testing.assert_array_equal(one, other.astype(np.float32))


def test_low_temperatures_and_large_scores_keep_their_digits():
    """Of bases that are large, a posterior is that of scores without them."""
    s = np.random.default_rng(7).normal(size=(60, 70)) * 3
    more = np.where(np.eye(60, 70) > 0, 1e6, s)
    p = jaxalign.soft_posterior(more, **COSTS)
    np.testing.assert_allclose(p, np.eye(60, 70), atol=1e-12)
    for t in (1e-20, 1e-3, 1e20):
        score, p, h = api.soft_summary(s, **COSTS, temperature=t)
        assert np.isfinite([score, h]).all() and (p.sum(1) <= 1 + 1e-12).all()


@SLOW
def test_kinds_and_dtypes_go_through(monkeypatch):
    """Arrays of NumPy give those of NumPy, of JAX those of JAX, small or not."""
    s = np.random.default_rng(8).normal(size=(2, 4, 5))
    p = {"similarity": s, **COSTS}
    calls = {
        "soft_score": lambda s: jaxalign.soft_score(s, **COSTS),
        "soft_posterior": lambda s: jaxalign.soft_posterior(s, **COSTS),
        "expected_gaps": lambda s: jaxalign.expected_gaps(s, **COSTS),
        "alignment_entropy": lambda s: jaxalign.alignment_entropy(s, **COSTS),
        "alignment_log_prob": lambda s: jaxalign.alignment_log_prob(
            np.full((2, 4), -1), s, **COSTS
        ),
        "kl_divergence": lambda s: jaxalign.kl_divergence(
            p | {"similarity": s}, p | {"similarity": s}
        ),
        "mea_alignment": lambda s: jaxalign.mea_alignment(abs(s)).score,
        "hard_alignment": lambda s: jaxalign.hard_alignment(s, **COSTS).score,
        "k_best": lambda s: jaxalign.k_best(2, s, **COSTS).score,
        "local_hits": lambda s: jaxalign.local_hits(2, s, **COSTS).score,
        "profile_similarity": lambda s: jaxalign.profile_similarity(
            *[abs(s[..., :1]) * np.ones((1, 1, 24), s.dtype)] * 2
        ),
    }
    drawn = {
        "sample_alignments": lambda s: jaxalign.sample_alignments(1, 3, s, **COSTS),
        "partners": lambda s: jaxalign.hard_alignment(s, **COSTS).partners,
    }
    for lanes in (small.MAX_LANES, -1):  # the latter compiles, by one dtype each
        monkeypatch.setattr(small, "MAX_LANES", lanes)
        for number, (name, call) in enumerate((calls | drawn).items()):
            dtypes = (np.float64, np.float32)[:: (1, -1)[number % 2]]
            for dtype in dtypes if lanes > 0 else dtypes[:1]:
                for x in jax.tree.leaves(call(s.astype(dtype))):
                    note = name, lanes, dtype, type(x), x.dtype
                    assert isinstance(x, np.ndarray) and x.flags.writeable, note
                    assert x.dtype == (np.int32 if name in drawn else dtype), note
            found = jax.tree.leaves(call(jnp.asarray(s, jnp.float32)))
            assert all(isinstance(x, jax.Array) for x in found), name


def test_what_is_drawn_depends_on_the_seed_alone():
    """… and has the frequencies of the posterior."""
    s = np.random.default_rng(9).normal(size=(3, 4, 5)) * 2
    paths = jaxalign.sample_alignments(4, 2000, s, **COSTS)
    assert paths.shape == (2000, 3, 4)
    again = jaxalign.sample_alignments(4, 2000, s, **COSTS)
    np.testing.assert_array_equal(paths, again)
    assert (paths != jaxalign.sample_alignments(5, 2000, s, **COSTS)).any()
    shares = (paths[..., None] == np.arange(5)).mean(0)
    # Five standard deviations of a share of 2,000, which are 0.011 at most.
    np.testing.assert_allclose(shares, jaxalign.soft_posterior(s, **COSTS), atol=0.056)


@SLOW
def test_a_key_of_jax_draws_what_jax_draws():
    s = np.random.default_rng(10).normal(size=(4, 5)).astype(np.float32)
    key = jax.random.key(3)
    found, same = (
        jaxalign.sample_alignments(key, 4, x, **COSTS) for x in (s, jnp.asarray(s))
    )
    assert isinstance(found, jax.Array)
    np.testing.assert_array_equal(found, same)
    of_seed = jaxalign.sample_alignments(3, 4, jnp.asarray(s), **COSTS)
    np.testing.assert_array_equal(of_seed, same)


@pytest.mark.slow
def test_size_and_kind_choose_alone(monkeypatch):
    assert small.is_small((120, 128)) and small.is_small((8, 90, 90))
    assert not small.is_small((300, 300)) and not small.is_small((1, 20000))
    read = []
    monkeypatch.setattr(small, "problem", lambda *_: read.append(1) or 1 / 0)
    s = np.zeros((4, 5), np.float32)
    for form in ({}, {"implementation": "numpy"}):
        with pytest.raises(ZeroDivisionError):
            jaxalign.soft_score(s, **COSTS, **form)
    assert isinstance(jaxalign.soft_score(s, **COSTS, implementation="log"), np.ndarray)
    with pytest.raises(UsageError, match="'numpy' takes only NumPy arrays"):
        jaxalign.soft_score(jnp.asarray(s), **COSTS, implementation="numpy")


def test_walks_and_fills_are_counted():
    """A walk is a step a residue, one after the other; local hits are a fill each."""
    s = np.zeros((120, 128), np.float32)
    assert small_hard.fits(s, 1, 64) and not small_hard.fits(s, 1, 128)
    assert small_hard.fits(s, 4, 4) and not small_hard.fits(s, 5, 5)
    assert not small_hard.fits(np.zeros((1 << 12, 2, 4)), 1, 1)


@SLOW
def test_tracers_are_compiled():
    """… whichever argument they are, and NumPy arrays beside them; those that no tracer
    meets are NumPy's inside of a program, too."""
    s = np.random.default_rng(12).normal(size=(2, 4, 5)).astype(np.float32)
    gaps = jaxalign.expected_gaps(s, **COSTS)[0]
    assert isinstance(gaps, np.ndarray)
    slope = jax.grad(
        lambda cost: jaxalign.soft_score(s, gap_open=cost, gap_extend=0.5).sum()
    )(2.0)
    np.testing.assert_allclose(slope, -gaps.sum(), rtol=1e-5)
    best = jaxalign.hard_alignment(s, **COSTS)
    for run in (jax.jit, jax.vmap, lambda run: jax.jit(jax.vmap(run))):
        scores, paths = (
            run(lambda x: jaxalign.hard_alignment(x, **COSTS).score)(s),
            run(lambda x: jaxalign.k_best(2, x, **COSTS).partners)(s),
        )
        assert isinstance(scores, jax.Array) and isinstance(paths, jax.Array)
        np.testing.assert_allclose(scores, best.score, rtol=1e-6)
        first = paths[0] if run is jax.jit else paths[:, 0]
        np.testing.assert_array_equal(first, best.partners)

    @jax.jit
    def inside(x):
        constant = jaxalign.hard_alignment(s, **COSTS)
        assert isinstance(constant.score, np.ndarray)
        return x + constant.score

    np.testing.assert_allclose(inside(np.zeros(2, np.float32)), best.score)


@SLOW
def test_a_code_beyond_the_matrix_under_jit_gives_nan():
    """Outside of it the code is named."""
    matrix, a, b = np.eye(3, dtype=np.float32), np.array([0, 3]), np.array([1, 2])
    for x in (a, jnp.asarray(a)):
        with pytest.raises(UsageError, match="query code 3"):
            jaxalign.hard_alignment((x, b, matrix), **COSTS)
    for function in (jaxalign.soft_score, jaxalign.alignment_entropy):
        assert np.isnan(jax.jit(lambda a, f=function: f((a, b, matrix), **COSTS))(a))
    best = jax.jit(lambda a: jaxalign.hard_alignment((a, b, matrix), **COSTS))(a)
    assert np.isnan(best.score) and (best.partners == -1).all()


PROGRAM = """
import sys
import numpy as np
import jaxalign

s = np.eye(6)
options = {"gap_open": 2.0, "gap_extend": 0.5}
p = jaxalign.soft_posterior(s, **options)
jaxalign.mea_alignment(p)
jaxalign.sample_alignments(1, 3, ("MKTAY", "MKAY", jaxalign.Scoring()), **options)
jaxalign.alignment_log_prob(np.arange(6), s, **options)
jaxalign.expected_gaps((s, s), **options)
best = jaxalign.hard_alignment(s, **options)
assert best.implementation == best.alignment().implementation == "numpy"
jaxalign.k_best(3, s, **options)
jaxalign.local_hits(3, ("MKTAY", "MKAY", "BLOSUM62"), **options)
jaxalign.mea_alignment(p[None])
assert "jax" not in sys.modules
"""


def test_small_problems_import_no_compiler():
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
