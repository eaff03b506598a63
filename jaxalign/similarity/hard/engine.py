"""Alignments of scored pairs: one pair, and one program for a batch of them.

**The hard kernels** are a JAX primitive. One function of a batch of tables, as the
kernels of ``similarity.hard`` take them: scores (B, m, n), gap costs (B, 4), borders
(B, m + 1) and (B, n + 1), rules (B, 3). ``vmap`` adds its axes to B. Devices without
the kernels take ``hard.dp.fill``.
"""

from collections.abc import Collection, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxalign.runtime import backend
from jaxalign.runtime.programs import program
from jaxalign.similarity import arrays
from jaxalign.similarity.arguments import COSTLY, FORBIDDEN, Gap, ModeRules, ScoredPair
from jaxalign.similarity.arrays import loop_state
from jaxalign.similarity.band import empty_fits, overhang_costs, without_band
from jaxalign.similarity.costs import Overhang, Weights, cost_at, no_overhang, overhang
from jaxalign.similarity.hard.dp import fill, several_best
from jaxalign.similarity.hard.dp.several_best import SeveralPaths

DTYPES = ("int8", "int16", "float16", "bfloat16", "float32")
MAX_ROWS = 2**31 - 1  # of all tables of a batch together
FLAGS = ("query_start", "query_end", "target_start", "target_end")


def takes(pair: ScoredPair, batch: tuple[int, ...], ranks: list[int]) -> bool:
    """Whether the kernels compute the plain form of this: gap costs that are numbers,
    float32, and a table with cells."""
    s = pair.similarity
    sizes = (*batch, *s.shape[-2:])
    if not all(isinstance(size, int) for size in sizes):  # symbolic, of jax.export
        return False
    rows = prod(sizes[:-1])
    numbers = not any(ranks) and pair.gap_open.e.dtype == jnp.float32
    return numbers and s.dtype.name in DTYPES and 0 not in sizes and rows <= MAX_ROWS


def best_path(run: Any, tables: Sequence[jax.Array], local: bool, last_column: bool):
    """Score, end cell, first cell and partners of one pair; what is not on the path is
    not defined. The score is nan where one within the lengths is nan or infinite.
    ``run`` is the package's ``hard_paths``, ``tables`` are those of ``arrays_of``."""
    form = {"run": run, "local": local, "last_column": last_column}
    return [x[0] for x in _paths.bind(*(x[None] for x in tables), **form)]


def arrays_of(
    scores: jax.Array, costs: tuple[Gap, Gap], hang: Overhang, rules: ModeRules
):
    """The arrays of one pair, as the kernels take them with an axis for the batch;
    ``costs`` are those of opening and of extending."""
    opening, extending = costs
    numbers = jnp.stack([opening.e, extending.e, opening.f, extending.f])
    left = jnp.where(rules.query_start | rules.local, 0, -hang.start_query)
    top = jnp.where(rules.target_start | rules.local, 0, -hang.start_target)
    return scores, numbers, left, top, arrays.numbers_of(rules, FLAGS)


def _plain_path(
    scores: jax.Array,
    costs: jax.Array,
    left: jax.Array,
    top: jax.Array,
    rules: jax.Array,
    *,
    local: bool,
):  # noqa: ARG001
    """Compute the path of ``best_path`` by ``hard.dp.fill``."""
    mode = arrays.rules_of(rules, FLAGS, local=jnp.bool_(local))
    opening, extending = Gap(costs[0], costs[2]), Gap(costs[1], costs[3])
    if local:
        hang = no_overhang(scores.shape, costs.dtype)
    else:
        hang = overhang(opening, extending, scores.shape, mode, FORBIDDEN)
    row = jnp.arange(scores.shape[0], dtype=jnp.int32)[:, None] < mode.m
    column = jnp.arange(scores.shape[1], dtype=jnp.int32)[None, :] < mode.n
    valid = jnp.bool_(True)
    if jnp.issubdtype(scores.dtype, jnp.floating):
        wrong = jnp.isnan(scores) | jnp.isposinf(scores)
        valid = ~jnp.any(wrong & row & column)
        scores = scores.astype(costs.dtype)
        scores = jnp.where(scores > FORBIDDEN / 10, scores, FORBIDDEN)
    weights = Weights(scores, opening, extending, hang)
    filled = fill.fill(weights, mode, local=local, ordered=False)
    path = fill.walk(filled, ordered=False)
    score = jnp.where(valid, filled.score, jnp.nan)
    return score, filled.i, filled.j, path.i, path.j, path.partners


def _shapes(scores: Any, costs: Any, left: Any, top: Any, rules: Any, **_: Any):  # noqa: ARG001
    batch, m, _ = scores.shape
    each, score = rules.update(shape=(batch,)), costs.update(shape=(batch,))
    return [score, *[each] * 4, rules.update(shape=(batch, m))]


def _plain_paths(*tables: jax.Array, run: Any, local: bool, last_column: bool):  # noqa: ARG001
    return list(jax.vmap(partial(_plain_path, local=local))(*tables))


def _kernel_paths(*tables: jax.Array, run: Any, **form: Any):
    return list(run(tables, **form))


_paths = arrays.batch_primitive(
    "hard_paths", _shapes, _plain_paths, _kernel_paths, arrays.fold_into_batch
)


class ScoredForm(NamedTuple):
    """Static while tracing: the form of ``fill``; whether the kernels compute
    it, and for them whether any path may end in column n."""

    local: bool
    ordered: bool
    band: int | None = None
    kernels: bool = False
    last_column: bool = False


@program(("axes", "batch", "form"))
def alignments(
    pair: ScoredPair, axes: ScoredPair, batch: tuple[int, ...], form: ScoredForm
):
    """(score, partners, spans, lengths) over flattened batch axes: (...), (..., m),
    (..., 4) and (..., 2)."""
    return arrays.map_pairs(lambda single: _one(single, form), pair, axes, batch)


def _one(pair: ScoredPair, form: ScoredForm):
    rules = pair.rules
    if form.kernels:  # the plain form; they read the scores as they are, once
        scores, costs = arrays.multiplied(pair.similarity), _costs(pair)
        hang = _overhang(scores.shape, costs, rules, form)
        tables = arrays_of(scores, costs, hang, rules)
        run = backend.kernels()[0].hard_paths
        best = best_path(run, tables, form.local, form.last_column)
        score, end_i, end_j, i, j, partners = best
        row = jnp.arange(len(partners), dtype=jnp.int32)
        partners = jnp.where((row >= i) & (row < end_i), partners, -1)
        spans = _plain_spans(rules, end_i, end_j, i, j, form.local)
        valid = arrays.is_valid(pair, product=scores) & ~jnp.isnan(score)
        return _checked(rules, valid, score, partners, spans)
    weights = _weights(pair, form)
    kind = {"local": form.local, "ordered": form.ordered}
    filled = fill.fill(weights, rules, **kind, band=form.band)
    path = fill.walk(filled, ordered=form.ordered)
    ends = filled.i, filled.j, path.i, path.j
    if form.ordered:
        whole = several_best.SeveralPaths(filled.score, *ends, path.partners)
        spans = _ordered_spans(weights, rules, whole, form)
    else:
        spans = _plain_spans(rules, *ends, form.local)
    valid = arrays.is_valid(pair)
    return _checked(rules, valid, filled.score, path.partners, spans)


def scores_by_kernel(
    scores: jax.Array,
    lengths: tuple[jax.Array, jax.Array],
    costs: Sequence[tuple[jax.Array, jax.Array]],
    local: bool,
    free: Collection[str],
):
    """Scores (Q, T) of the best alignments of all queries with all targets, from those
    of residues, float32 (Q, M, T, N), of ``lengths`` (Q, T), by costs of opening and of
    extending a gap, the query's and the target's."""
    queries, rows, targets, columns = scores.shape
    flags = {name: jnp.bool_(name in free) for name in FLAGS}
    flags |= {"local": jnp.bool_(local), "adjacent": jnp.bool_(True)}
    form = ScoredForm(local, ordered=False)

    def tables_of(m: jax.Array, n: jax.Array):
        rules = ModeRules(m, n, **flags)
        opening, extending = (arrays.payable(Gap(*cost), rules) for cost in costs)
        gaps = opening, extending
        hang = _overhang((rows, columns), gaps, rules, form)
        return arrays_of(jnp.float32(0), gaps, hang, rules)[1:]

    tables = jax.vmap(tables_of)(*(x.reshape(-1) for x in lengths))
    last_column = not local and "query_end" in free
    run = backend.kernels()[0].hard_scores
    best = run((scores, *tables), local=local, last_column=last_column)
    score = jnp.where(best > -COSTLY / 2, best, -jnp.inf)
    return jnp.where(jnp.isnan(best), jnp.nan, score).reshape(queries, targets)


@program(("axes", "batch", "form", "k", "disjoint"))
def several(
    pair: ScoredPair,
    axes: ScoredPair,
    batch: tuple[int, ...],
    form: ScoredForm,
    k: int,
    disjoint: bool,
):
    """Results of the ``k`` best alignments, or of ``k`` local hits, none of which
    shares a pair with an earlier one, with ranks as the first axis."""
    function = _hits if disjoint else _several
    values = arrays.map_pairs(
        lambda single: function(single, form, k), pair, axes, batch
    )
    return jax.tree.map(lambda x: jnp.moveaxis(x, len(batch), 0), values)


def _several(pair: ScoredPair, form: ScoredForm, k: int):
    weights, rules = _weights(pair, form), pair.rules
    whole = weights
    if form.band is not None:
        whole = without_band(weights, rules, form.band)
    paths = several_best.several_best(whole, rules, k)
    valid = arrays.is_valid(pair)

    def checked_path(path: SeveralPaths):
        spans = _ordered_spans(weights, rules, path, form)
        return _checked(rules, valid, path.score, path.partners, spans)

    return jax.vmap(checked_path)(paths)


def _hits(pair: ScoredPair, form: ScoredForm, k: int):
    dtype = pair.gap_open.e.dtype
    scores = arrays.multiplied(pair.similarity).astype(dtype)
    rows = jnp.arange(scores.shape[0], dtype=jnp.int32)

    def step(scores: jax.Array, _: None):
        path = _one(pair._replace(similarity=scores), form)
        partners = path[1]
        at = rows, jnp.where(partners >= 0, partners, scores.shape[1])
        return scores.at[at].set(FORBIDDEN, mode="drop"), path

    return jax.lax.scan(step, loop_state(scores, pair.rules.m), length=k)[1]


def _weights(pair: ScoredPair, form: ScoredForm) -> Weights:
    """Scores and costs of one pair; forbidden pairs and infinite costs are finite."""
    opening, extending = _costs(pair)
    dtype, s = opening.e.dtype, arrays.multiplied(pair.similarity)
    if jnp.issubdtype(s.dtype, jnp.floating):
        s = s.astype(dtype)
        s = jnp.where(s > FORBIDDEN / 10, s, FORBIDDEN)
    elif form.ordered:
        s = s.astype(dtype)
    hang = _overhang(s.shape, (opening, extending), pair.rules, form)
    return Weights(s, opening, extending, hang)


def _costs(pair: ScoredPair) -> tuple[Gap, Gap]:
    opening = arrays.payable(pair.gap_open, pair.rules)
    return opening, arrays.payable(pair.gap_extend, pair.rules)


def _overhang(
    shape: tuple[int, ...], costs: tuple[Gap, Gap], rules: ModeRules, form: ScoredForm
):
    if form.local:
        return no_overhang(shape, costs[0].e.dtype)
    fits = None if form.band is None else empty_fits(form.band, rules)
    opening, extending = costs
    return overhang(opening, extending, shape, rules, FORBIDDEN, fits)


def _plain_spans(
    rules: ModeRules,
    end_i: jax.Array,
    end_j: jax.Array,
    i: jax.Array,
    j: jax.Array,
    local: bool,
):
    """Spans of a path between two cells: on a border a free end hangs over, and the
    rest is a gap."""
    open_left, open_top = rules.query_start | local, rules.target_start | local
    first_i = jnp.where((j > 0) | open_left, i, 0)
    return first_i, end_i, jnp.where((i > 0) | open_top, j, 0), end_j


def _ordered_spans(
    weights: Weights, rules: ModeRules, path: SeveralPaths, form: ScoredForm
):
    """Spans of a path: where both sequences hang over freely, the one that would cost
    more does."""
    hang, local, (m, n) = weights.overhang, form.local, (rules.m, rules.n)
    before = path.i, path.j
    after = path.end_i, path.end_j
    costs = overhang_costs(hang, "start", rules, form.band, *before)
    free = rules.query_start | local, rules.target_start | local
    i, j = _outside(*before, *costs, *free, rules, local)
    costs = overhang_costs(hang, "end", rules, form.band, *after)
    free = rules.query_end | local, rules.target_end | local
    remaining = m - path.end_i, n - path.end_j
    k, l = _outside(*remaining, *costs, *free, rules, local)
    nonempty = jnp.any(path.partners >= 0)
    spans, zero = (i, m - k, j, n - l), jnp.int32(0)
    if local:
        return tuple(jnp.where(nonempty, x, zero) for x in spans)

    # The alignment without pairs: query residues first, or target residues.
    def cost(x: jax.Array, free: jax.Array, i: jax.Array, j: jax.Array, axis: int):
        return jnp.where(free, 0, cost_at(x, i, j, axis))

    query_first = cost(hang.end_query, rules.query_start, zero, zero, 0)
    query_first += cost(hang.end_target, rules.target_end, m, zero, 1)
    paid = query_first <= -hang.empty
    a = jnp.where(rules.query_start, m, 0), m, zero, jnp.where(rules.target_end, 0, n)
    b = zero, jnp.where(rules.query_end, 0, m), jnp.where(rules.target_start, n, 0), n
    empty = [jnp.where(paid, x, y) for x, y in zip(a, b, strict=True)]
    return tuple(jnp.where(nonempty, x, y) for x, y in zip(spans, empty, strict=True))


def _outside(
    k: jax.Array,
    l: jax.Array,
    query: jax.Array,
    target: jax.Array,
    free_query: jax.Array,
    free_target: jax.Array,
    rules: ModeRules,
    local: bool,
):
    """How many of k and l overhanging residues are outside the spans."""
    if not local:
        free_choice = free_query & free_target & rules.adjacent
        free_query &= ~free_choice | (query > target)
        free_target &= ~free_choice | ~free_query
    return jnp.where(free_query, k, 0), jnp.where(free_target, l, 0)


def _checked(
    rules: ModeRules,
    valid: jax.Array,
    score: jax.Array,
    partners: jax.Array,
    spans: Sequence[jax.Array],
):
    """(score, partners, spans, lengths): nan where the input is not ``valid`` to mean
    something, -inf where no alignment is legal."""
    lengths = jnp.stack([rules.m, rules.n]).astype(jnp.int32)
    ranges = jnp.stack([jnp.asarray(x, jnp.int32) for x in spans])
    legal = score > -COSTLY / 2
    score = jnp.where(legal, score, -jnp.inf)
    score = jnp.where(valid, score, jnp.nan)
    sure = legal & valid
    return score, jnp.where(sure, partners, -1), jnp.where(sure, ranges, 0), lengths
