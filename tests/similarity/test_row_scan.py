"""The passes by rows: enumeration, logarithms, and where they prove nothing."""

from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import END_SETS
from similarity_enumeration import every_alignment, log_sum, pair_sets

import jaxalign
from jaxalign.errors import UsageError
from jaxalign.similarity.soft import primitives
from jaxalign.similarity.soft.dp import row_scan
from jaxalign.similarity.soft.dp.row_scan import RowExpectation, RowForm, RowTables

SIZE, LENGTHS = (4, 5), [(4, 5), (3, 2), (2, 5), (1, 1), (0, 3), (2, 0)]
ENDS = ("query_start", "query_end", "target_start", "target_end")
MODES = {
    "global": [("global", ends) for ends in END_SETS],
    "local": [("local", frozenset())],
}
# The query's, then the target's; no two overhangs cost the same.
COSTS = np.array([2.5, 0.3, 1.1, 0.63], np.float32)


def tables(s, costs, lengths, modes):
    m, n = np.array(lengths, np.int32).T
    inside = np.arange(s.shape[1])[None, :, None] < m[:, None, None]
    inside = inside & (np.arange(s.shape[2])[None, None] < n[:, None, None])
    flags = [np.array([end in free for _, free in modes]) for end in ENDS]
    costs = np.atleast_2d(costs).astype(np.float32)
    scores = np.where(inside, s, np.float32(-1e30))
    return RowTables(*map(jnp.asarray, (scores, costs, m, n, *flags)))


run = jax.jit(row_scan.expected, static_argnums=1)


def rules_of(batch, local):
    """Lengths and flags (B, 3), as the primitives take them."""
    flags = (x.astype(jnp.int32) << k for k, x in enumerate(batch[4:]))
    return jnp.stack([batch.m, batch.n, sum(flags, int(local) << len(ENDS))], 1)


@partial(jax.jit, static_argnums=1)
def run_logs(batch, form):
    """What pairs become that rows do not prove."""
    costs = jnp.broadcast_to(batch.costs, (len(batch.m), 4))
    unit, rules = jnp.ones(len(batch.m)), rules_of(batch, form.local)
    means = primitives._by_logs(4, batch.scores, costs, unit, rules)
    payers = means[3] if form.payers else None
    return RowExpectation(*means[:3], payers, jnp.zeros_like(means[0]))


QUICK = ((run, SIZE, False, False),)


def cases_of(local, size):
    """All free ends as one batch of tables of this size; their lengths and modes."""
    modes = MODES["local" if local else "global"]
    lengths = LENGTHS if size == SIZE else [(n, m) for m, n in LENGTHS]
    cases = [(x, mode) for x in lengths for mode in modes]
    s = np.random.default_rng(1).normal(size=(len(cases), *size)).astype(np.float32)
    return 2 * s, *zip(*cases, strict=True)


@pytest.mark.parametrize(
    ("function", "size", "local", "shared"),
    [
        pytest.param(*x, marks=[] if x in QUICK else [pytest.mark.slow])
        for x in product((run, run_logs), (SIZE, SIZE[::-1]), *2 * [(True, False)])
        if x[:2] != (run, SIZE[::-1])
    ],
)
def test_enumeration(function, size, local, shared):
    """Costs by direction, of all pairs or of each; more columns than rows, or fewer."""
    s, lengths, modes = cases_of(local, size)
    costs = COSTS[None] if shared else COSTS * np.linspace(0.5, 1.5, len(s))[:, None]
    batch = tables(s, costs, lengths, modes)
    found = function(batch, RowForm(local, payers=True))
    without = function(batch, RowForm(local, payers=False))
    assert without.payers is None
    assert (found.lost < 1e-20).all()
    costs = np.broadcast_to(costs, (len(s), 4)).reshape(-1, 2, 2)
    for k, (length, (mode, free)) in enumerate(zip(lengths, modes, strict=True)):
        wide = np.broadcast_to(costs[k].T[..., None, None], (2, 2, *size))
        every = every_alignment(s[k], wide, length, mode, free, True)
        score = log_sum(every.totals)
        p = np.exp(every.totals - score)
        pairs = np.zeros(size)
        for share, which in zip(p, pair_sets(*length), strict=True):
            for pair in which:
                pairs[pair] += share
        payers = np.einsum("k,kabij->ba", p, every.payers).ravel()
        note = f"{length} {mode} {free}"
        value = found.high[k] + found.remainder[k]
        np.testing.assert_allclose(value, score, atol=2e-5, err_msg=note)
        for p in (found.posterior[k], without.posterior[k]):
            np.testing.assert_allclose(p, pairs, atol=2e-6, err_msg=note)
        np.testing.assert_allclose(found.payers[k], payers, atol=2e-5, err_msg=note)


@pytest.mark.slow
@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("size", [SIZE, SIZE[::-1]])
def test_logarithms_hold_for_all_scores(size, local):
    """Of scores so large that one alignment has all probability, logarithms find the
    best one; the scores have no ties."""
    s, lengths, modes = cases_of(local, size)
    s, costs = s * np.float32(1e12), COSTS * np.float32(1e12)
    found = run_logs(tables(s, costs, lengths, modes), RowForm(local, payers=True))
    for k, (length, (mode, free)) in enumerate(zip(lengths, modes, strict=True)):
        wide = np.broadcast_to(costs.reshape(2, 2).T[..., None, None], (2, 2, *size))
        every = every_alignment(s[k], wide, length, mode, free, True)
        best = np.argmax(every.totals)
        pairs = np.zeros(size)
        for pair in list(pair_sets(*length))[best]:
            pairs[pair] = 1
        note = f"{length} {mode} {free}"
        value = found.high[k] + found.remainder[k]
        most, rounding = every.totals[best], 8 * float(np.finfo(np.float32).eps)
        atol = rounding * np.abs(s[k]).max()
        np.testing.assert_allclose(value, most, rounding, atol, err_msg=note)
        np.testing.assert_array_equal(found.posterior[k], pairs, err_msg=note)
        payers = every.payers[best].sum(axis=(2, 3)).T.ravel()
        np.testing.assert_allclose(found.payers[k], payers, atol=1e-6, err_msg=note)


@pytest.mark.slow
@pytest.mark.parametrize(("pairs", "calls"), [(6, "all"), (1, "some")])
def test_only_groups_without_proof_take_logarithms(monkeypatch, pairs, calls):
    """The second and the fifth pair of six have scores beyond the range of rows; a
    group is all pairs, or one of them."""
    cells = (sum(SIZE) + 1) * (SIZE[0] + 1)
    monkeypatch.setattr(
        primitives, "MAX_GROUP_BYTES", pairs * primitives.KEPT_BYTES * cells
    )
    s, lengths, modes = cases_of(False, SIZE)
    s, lengths, modes = s[:6], lengths[:6], modes[:6]
    s[[1, 4]] *= 200
    batch = tables(s, COSTS, lengths, modes)
    form = RowForm(local=False, payers=True)
    rules = rules_of(batch, False)
    wanted = primitives.RowPasses(form)
    found = partial(primitives._by_rows, wanted, 4)
    values = jax.jit(found)(batch.scores, batch.costs, jnp.ones(6), rules)
    rows, logs = run(batch, form), run_logs(batch, form)
    proved = np.asarray(rows.lost <= 1e-7)
    assert proved.tolist() == [True, False, True, True, False, True]
    for value, row, log in zip(values, rows[:4], logs[:4], strict=True):
        if calls == "all":
            np.testing.assert_allclose(value, log, rtol=1e-6, atol=1e-6)
        else:
            by_logs = np.asarray(log)[~proved]
            np.testing.assert_allclose(
                np.asarray(value)[~proved], by_logs, rtol=1e-6, atol=1e-6
            )
            by_rows = np.asarray(row)[proved]
            np.testing.assert_allclose(
                np.asarray(value)[proved], by_rows, rtol=1e-6, atol=1e-6
            )


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1, 12])
def test_rows_are_logarithms(scale):
    """A padded batch of more than a block of columns, all modes; where scores are far
    apart too, which rows cannot prove and hand over: value, gradients."""
    rng = np.random.default_rng(2)
    s = rng.normal(size=(3, 40, 37)).astype(np.float32) * scale
    s[0, 5:25, 5:25] += 4 * scale * np.eye(20, dtype=np.float32)
    s[0, 28:36, 1:9] += 4 * scale * np.eye(8, dtype=np.float32)
    lengths = np.array([[40, 37], [17, 37], [40, 9]], np.int32)

    @partial(jax.jit, static_argnames=("name", "mode"))
    def run(s, opening, name, mode):
        def f(s, o):
            return jaxalign.soft_score(
                s, lengths, gap_open=o, gap_extend=0.25, mode=mode, implementation=name
            ).sum()

        return jax.value_and_grad(f, (0, 1))(s, opening)

    opening = jnp.float32(3.0), jnp.float32(1.5)
    for mode in ("local",) if scale > 1 else ("local", "global", "semiglobal"):
        rows, logs = (run(s, opening, name, mode) for name in ("rows", "log"))
        for one, other in zip(*map(jax.tree.leaves, (rows, logs)), strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-6, atol=5e-5)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["local", "semiglobal"])
def test_products_of_what_is_not_proved(mode):
    """Hessian times direction, by scores and costs, with another cost for each of a
    mapped axis."""
    rng = np.random.default_rng(3)
    s, ds = rng.normal(size=(2, 2, 9, 7)).astype(np.float32)
    s = 100 * s
    openings = jnp.float32([3, 30]), jnp.float32([1.5, 2])
    lengths = np.array([[9, 7], [5, 7]], np.int32)

    @partial(jax.jit, static_argnames="name")
    def products(s, opening, name):
        def f(s, o):
            options = {"gap_open": o, "gap_extend": 0.25, "mode": mode}
            options |= {"implementation": name, "temperature": 1.5}
            return jaxalign.soft_score(s, lengths, **options).sum()

        def product(o):
            moved = ds, jax.tree.map(jnp.ones_like, o)
            return jax.jvp(jax.grad(f, (0, 1)), (s, o), moved)

        return jax.vmap(product)(opening)

    rows, logs = (products(s, openings, name) for name in ("rows", "log"))
    for one, other in zip(*map(jax.tree.leaves, (rows, logs)), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-6, atol=5e-5)
    free = jnp.full(2, mode == "semiglobal")
    batch = tables(s / 1.5, COSTS, lengths, [("", ())] * 2)
    batch = batch._replace(**dict.fromkeys(ENDS, free))
    lost = run(batch, RowForm(mode == "local", payers=True)).lost
    assert not (lost <= 1e-7).all()


@pytest.mark.slow
def test_long_alignments_keep_their_digits():
    """One alignment has all of the probability; its log Z is beyond 2^13 log 2."""
    size = 1500
    s = np.full((1, size, size), -30, np.float32)
    s[0, np.arange(size), np.arange(size)] = 5.3
    costs = np.array([9, 9, 9, 9], np.float32)
    form = RowForm(local=True, payers=True)
    found = run(tables(s, costs, [(size, size)], MODES["local"]), form)
    pairs = np.diagonal(found.posterior[0])
    # It may begin late and end early: geometric series of both ends.
    missing = np.exp(-5.3 * np.arange(1, size + 1))
    np.testing.assert_allclose(pairs, (1 - missing) * (1 - missing[::-1]), atol=3e-6)
    assert found.high + found.remainder > 8192 * np.log(2)
    assert np.abs(found.payers).max() < 1e-6
    assert found.lost[0] < 1e-7


@pytest.mark.slow
def test_what_is_lost_is_said():
    """Two regions that no alignment joins, each far above the other's starts."""
    s = np.full((1, 60, 60), -30, np.float32)
    s[0, :28, 30:58] += 37 * np.eye(28, dtype=np.float32)
    s[0, 32:58, 0:26] += 37 * np.eye(26, dtype=np.float32)
    costs = np.array([9, 9, 9, 9], np.float32)
    form = RowForm(local=True, payers=False)
    found = run(tables(s, costs, [(60, 60)], MODES["local"]), form)
    assert not found.lost[0] <= 1e-7
    big = np.full((1, 3, 3), 300, np.float32)
    found = run(tables(big, costs, [(3, 3)], MODES["local"]), form)
    assert not found.lost[0] <= 1e-7


@pytest.mark.parametrize(
    ("shape", "options", "by_rows"),
    [
        ((4, 1024, 1024), {"mode": "global"}, True),
        ((4, 1024, 1023), {"mode": "global"}, False),
        ((4, 1024, 1023), {"mode": "semiglobal"}, False),
        ((4, 1024, 1024), {"mode": "local"}, True),
        ((4, 1024, 1023), {"mode": "local"}, False),
        ((16, 1024, 1024), {"implementation": "blocked"}, False),
        ((16, 1024, 1024), {"adjacent_gaps": False}, False),
        ((1, 5000, 5000), {}, False),
    ],
)
def test_large_batches_go_by_rows(shape, options, by_rows):
    """Nothing is computed: the program says it."""

    def f(s):
        return jaxalign.soft_score(s, gap_open=1.0, gap_extend=1.0, **options)

    program = jax.make_jaxpr(f)(jax.ShapeDtypeStruct(shape, jnp.float32))
    assert ("RowForm" in str(program)) == by_rows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "columns", "by", "by_rows"),
    [
        ("local", 256, ["similarity"], True),
        ("local", 255, ["similarity"], False),
        ("local", 256, ["similarity", "gap_open"], False),
        ("local", 256, ["similarity", "temperature"], False),
        ("global", 256, ["similarity"], False),
    ],
)
def test_gradients_of_pairs_go_by_rows_sooner(mode, columns, by, by_rows):
    def f(x):
        x = {"gap_open": 1.0, "temperature": 1.0} | x
        return jaxalign.soft_score(**x, gap_extend=1.0, mode=mode).sum()

    one = jax.ShapeDtypeStruct((), jnp.float32)
    s = jax.ShapeDtypeStruct((8, 256, columns), jnp.float32)
    x = {name: one for name in by}
    program = jax.make_jaxpr(jax.grad(f))(x | {"similarity": s})
    assert ("RowForm" in str(program)) == by_rows


def test_embeddings_are_not_multiplied_for_rows():
    def f(a, b):
        return jaxalign.soft_score((a, b), gap_open=1.0, gap_extend=1.0)

    one = jax.ShapeDtypeStruct((16, 1024, 8), jnp.float32)
    assert "RowForm" not in str(jax.make_jaxpr(f)(one, one))


@pytest.mark.parametrize(
    "options",
    [{"gap_open": (np.ones(4, np.float32), 1.0)}, {"adjacent_gaps": False}],
)
def test_what_rows_do_not_take(options):
    costs = {"gap_open": 1.0, "gap_extend": 1.0} | options
    with pytest.raises(UsageError, match="'rows' does not take"):
        jaxalign.soft_score(
            np.zeros((4, 5), np.float32), **costs, implementation="rows"
        )
