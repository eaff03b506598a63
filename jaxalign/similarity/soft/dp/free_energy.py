"""Soft alignment of one pair: free energy, posterior, gradients of every order.

The soft score F is T log of the sum of exp(score / T) over all alignments, each set of
pairs counted once; T -> 0 gives the hard score of the same rules. Its gradient is the
expected alignment: dF/dS[i,j] is the probability that i and j are a pair, dF/d(gap
cost) minus the expected number of residues that pay it, dF/dT the entropy.

The derivative is written out (``soft.dp.scan.reverse``): one more wavefront instead of
autodiff through the first, with shares that are normalised cell by cell. The rule is a
``custom_jvp``, linear in the tangents, so ``jvp``, ``vjp``, ``vmap`` and ``hessian``
follow. Miyazawa 1995 and Mensch and Blondel 2018 give the mathematics.

**The posterior** has derivatives in both modes. Its Jacobian is a part of the Hessian
of the soft score, hence the transpose of another part: P moves with S, costs and
temperature as their expectations move with S. Forward mode is one forward-mode pass
through the gradient of the score, and reverse mode is the same pass along the
cotangent. A JAX primitive says so, since autodiff would transpose the pass and keep all
that it computes.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import Primitive
from jax.interpreters import ad

from jaxalign.similarity.arguments import COSTLY, FORBIDDEN, Factors, Gap, ModeRules
from jaxalign.similarity.arrays import alike, batch_primitive, unskew
from jaxalign.similarity.band import BandTable
from jaxalign.similarity.costs import CostTable, Overhang, Weights
from jaxalign.similarity.soft.dp import scan
from jaxalign.similarity.soft.dp.scan import (
    VECTORS,
    Banded,
    Block,
    Kernels,
    as_table,
    diagonals,
    log_z,
    successors,
)

GAP_NAMES = ("open_e", "extend_e", "open_f", "extend_f")
OVERHANG_NAMES = ("start_query", "start_target", "end_query", "end_target")
EVERYTHING: frozenset[str] = frozenset(
    ("similarity", *GAP_NAMES, *OVERHANG_NAMES, "empty", "entropy")
)


class Expectation(NamedTuple):
    """Score and what an alignment holds on average; None where it is not among
    the outputs. ``gradient`` has the shapes of ``Weights``; ``entropy`` is a scalar, in
    nats."""

    score: jax.Array
    gradient: Weights
    entropy: jax.Array | None


@partial(jax.custom_jvp, nondiff_argnums=(3,))
def score(weights: Weights, temperature: jax.Array, rules: ModeRules, block: Block):
    """The soft score, a scalar; -inf where no alignment is legal.

    ``block`` is the number of diagonals that are recomputed at a time in the reverse
    pass; None keeps all of them."""
    if isinstance(block, Kernels) and block.pairs_only:
        block = block.otherwise
    scaled = over_temperature(weights, temperature, rules)
    if isinstance(block, Kernels):
        return log_z(block.score, scaled, temperature, rules)[0]
    table, block = table_of(scaled, rules, block)
    if isinstance(block, int):
        ends, _ = scan.run(block, table, scaled.similarity)
        return sum_up(ends, scaled.overhang.empty, temperature)[0]
    xs = diagonals(table, scaled.similarity)
    carry = scan.first_carry(table, scaled.similarity.dtype)
    _, ends = scan.forward_ends(table, carry, xs)
    return sum_up(ends, scaled.overhang.empty, temperature)[0]


@partial(score.defjvp, symbolic_zeros=True)
def _score_jvp(
    block: Block,
    primals: tuple[Weights, jax.Array, ModeRules],
    tangents: tuple[Any, ...],
):
    weights, temperature, rules = primals
    d_weights, d_temperature, _ = tangents
    named = to_names(d_weights) | {"entropy": d_temperature}
    named = {k: t for k, t in named.items() if not isinstance(t, SymbolicZero)}
    means = expected(weights, temperature, rules, block, frozenset(named))
    gradient = to_names(means.gradient) | {"entropy": means.entropy}
    tangent = jnp.zeros_like(means.score)
    for name, t in named.items():
        if gradient[name] is not None:  # kernels count overhangs with the costs
            tangent = tangent + jnp.sum(gradient[name] * t)
    return means.score, tangent


def expected(
    weights: Weights,
    temperature: jax.Array,
    rules: ModeRules,
    block: Block = None,
    outputs: frozenset[str] = EVERYTHING,
) -> Expectation:
    """Score and expectations in one forward and one reverse wavefront."""
    if isinstance(block, Kernels):
        pairs_only = outputs == {"similarity"}
        if "entropy" not in outputs and (pairs_only or not block.pairs_only):
            # Overhangs are counted with the gap costs; their own gradients are None.
            scaled = over_temperature(weights, temperature, rules)
            pay = not outputs.isdisjoint(GAP_NAMES)
            run = partial(block.expected, payers=pay)
            value, pairs, *payers = log_z(run, scaled, temperature, rules)
            gaps = dict(zip(GAP_NAMES, -payers[0], strict=True)) if pay else {}
            return Expectation(value, from_names({"similarity": pairs} | gaps), None)
        block = block.otherwise
    scaled = over_temperature(weights, temperature, rules)
    table, block = table_of(scaled, rules, block)
    if isinstance(block, int):
        ends, finish = scan.run(block, table, scaled.similarity)
    else:
        ends, finish = _whole(table, scaled)
    value, on_diagonal, empty = sum_up(ends, scaled.overhang.empty, temperature)
    flow, out = finish(on_diagonal, outputs)
    if "target_vectors" in out:  # those of the query were divided by T
        out["target_vectors"] = out["target_vectors"] * temperature
    entropy = None
    if "entropy" in outputs:
        entropy = jnp.sum(flow.sums["entropy"]) - scan.xlogx(empty)
    gradient = _gradient(table, scaled, flow.sums, out, empty, outputs)
    return Expectation(value, gradient, entropy)


def _whole(table: CostTable, weights: Weights):
    """Keep every diagonal."""
    xs = diagonals(table, weights.similarity)
    dtype = weights.similarity.dtype
    start = scan.first_carry(table, dtype)
    _, values = scan.forward(table, start, xs)

    def finish(on_diagonal: jax.Array, outputs: frozenset[str]):
        later = successors(table)
        flow = scan.first_flow(table, dtype, outputs)
        flow, out = scan.reverse(table, flow, later, values, on_diagonal, outputs)
        return flow, as_table(table, out)

    return (values.high, values.low, values.ends), finish


def table_of(weights: Weights, rules: ModeRules, block: Block):
    """The table that the loops see, and the engine without its band."""
    if isinstance(block, Banded):
        return BandTable(weights, rules, block.width), block.block
    return CostTable(weights, rules), block


def over_temperature(
    weights: Weights, temperature: jax.Array, rules: ModeRules
) -> Weights:
    """Everything over T; masks come first, so that nothing infinite is divided."""
    s = weights.similarity
    if isinstance(s, Factors):
        s = s._replace(query=s.query / temperature)
    else:
        row = jnp.arange(s.shape[0], dtype=jnp.int32)[:, None] < rules.m
        column = jnp.arange(s.shape[1], dtype=jnp.int32)[None, :] < rules.n
        alive = row & column & (s > FORBIDDEN / 10)
        s = jnp.maximum(jnp.where(alive, s, 0) / temperature, FORBIDDEN)
        s = jnp.where(alive, s, FORBIDDEN)

    def cost(x: jax.Array):
        payable = x < COSTLY
        x = jnp.minimum(jnp.where(payable, x, 0) / temperature, COSTLY)
        return jnp.where(payable, x, COSTLY)

    opening, extending = jax.tree.map(cost, (weights.opening, weights.extending))
    hang = Overhang._make(map(cost, weights.overhang))
    hang = hang._replace(empty=-cost(-weights.overhang.empty))
    return Weights(s, opening, extending, hang)


def sum_up(terms: tuple, empty: jax.Array, temperature: jax.Array):
    """Score, probability of ending on each diagonal, and that of no pairs.

    ``terms``: the log weights of the diagonals in three parts, to be added.
    Bases differ by whole numbers that may be large; the largest is taken out first.
    """
    high, low, ends = terms
    zero = jnp.zeros(1, high.dtype)
    high = jnp.concatenate([high, jax.lax.stop_gradient(empty)[None]])
    low = jnp.concatenate([low, zero])
    remainders = jnp.concatenate([ends, (empty - jax.lax.stop_gradient(empty))[None]])
    best = jax.lax.stop_gradient(jnp.argmax(high + remainders))
    top_high, top_low = high[best], low[best]
    logs = jnp.maximum((high - top_high) + (low - top_low) + remainders, FORBIDDEN)
    alive = remainders[best] + top_high > -COSTLY / 2
    largest = jax.lax.stop_gradient(jnp.max(logs))
    parts = jnp.exp(logs - largest)
    total = jnp.sum(parts)
    log = jnp.log(total) + largest
    value = temperature * top_high + temperature * (top_low + log)
    share = jnp.where(alive, parts / total, 0)
    value = jnp.where(alive, value, -jnp.inf)
    return value, share[:-1], share[-1]


def _gradient(
    table: CostTable,
    weights: Weights,
    sums: dict[str, jax.Array],
    out: dict[str, jax.Array],
    empty: jax.Array,
    outputs: frozenset[str],
) -> Weights:
    """Sums by lane and by diagonal -> arrays of the shapes of the weights."""
    named = {"empty": empty}
    m, n = table.shape
    if "similarity" in outputs:
        named["similarity"] = out["similarity"]
    named |= {name: out[name] for name in VECTORS if name in out}
    for name, (x, axis) in (table.costs | table.hangs).items():
        if name not in outputs:
            continue
        if isinstance(table, BandTable) and x.ndim:
            named[name] = table.as_vector(out[name], x.shape[0], axis)
            continue
        moved = name in table.costs  # kept with the cell before the one that pays
        if x.ndim == 2:
            whole = unskew(out[name], n + 1)
            cut = (whole[:-1, 1:], whole[1:, :-1])[axis] if moved else whole
        elif x.ndim == 1:
            line = out[name] if axis else sums[name]
            cut = line[: x.shape[0]]
        else:
            cut = jnp.sum(sums[name])
        named[name] = cut
    return from_names(named)


def to_names(weights: Weights) -> dict:
    """The leaves by name."""
    s = weights.similarity
    pairs = dict(zip(VECTORS, s, strict=True)) if isinstance(s, Factors) else {}
    pairs = pairs or {"similarity": s}
    names = ("open_e", "open_f", "extend_e", "extend_f", *OVERHANG_NAMES, "empty")
    leaves = (*weights.opening, *weights.extending, *weights.overhang)
    return pairs | dict(zip(names, leaves, strict=True))


def from_names(named: dict) -> Weights:
    """Weights of the leaves by name; None where there is none of a name."""
    get: Callable[[str], Any] = named.get
    vectors = [named[name] for name in VECTORS if name in named]
    return Weights(
        Factors._make(vectors) if vectors else get("similarity"),
        Gap(get("open_e"), get("open_f")),
        Gap(get("extend_e"), get("extend_f")),
        Overhang._make(get(name) for name in (*OVERHANG_NAMES, "empty")),
    )


PAIRS = ("similarity",)


@partial(jax.custom_jvp, nondiff_argnums=(3,))
def posterior(weights: Weights, temperature: jax.Array, rules: ModeRules, block: Block):
    """(M, N): the probability that residues i and j are a pair."""
    outputs = frozenset(PAIRS)
    return expected(weights, temperature, rules, block, outputs).gradient.similarity


@partial(posterior.defjvp, symbolic_zeros=True)
def _posterior_jvp(block: Block, primals: tuple[Any, ...], tangents: tuple[Any, ...]):
    weights, temperature, rules = primals
    d_weights, d_temperature, _ = tangents
    p = posterior(weights, temperature, rules, block)
    moved = to_names(d_weights) | {"entropy": d_temperature}
    moved = {k: t for k, t in moved.items() if not isinstance(t, SymbolicZero)}
    if not moved:
        return p, jnp.zeros_like(p)
    tables = to_names(weights) | {"entropy": temperature}, rules
    tables, moved = alike((tables, moved))
    leaves, tree = jax.tree.flatten(tables)
    names = tuple(sorted(moved))
    (change,) = product.bind(
        *leaves,
        *(moved[name] for name in names),
        tree=tree,
        along=names,
        into=PAIRS,
        block=block,
        batches=0,
    )
    return p, change


def _product(
    *arrays: jax.Array,
    tree: Any,
    along: tuple[str, ...],
    into: tuple[str, ...],
    block: Block,
    batches: int,
):
    """The change of the expectations ``into`` with the weights ``along``."""

    def of_one(leaves: Any, directions: Any):
        named, rules = jax.tree.unflatten(tree, leaves)

        def gradient(moved: Any):
            at = named | moved
            expectation = expected(
                from_names(at), at["entropy"], rules, block, frozenset(into)
            )
            means = to_names(expectation.gradient)
            means["entropy"] = expectation.entropy
            return [means[name] for name in into]

        at = {name: named[name] for name in along}
        changed = dict(zip(along, directions, strict=True))
        _, out = jax.jvp(gradient, (at,), (changed,))
        # Kernels count overhangs with the costs: there these have no mean.
        return [
            jnp.zeros_like(named[name]) if x is None else x
            for name, x in zip(into, out, strict=True)
        ]

    for _ in range(batches):
        of_one = jax.vmap(of_one)
    count = tree.num_leaves
    return of_one(list(arrays[:count]), list(arrays[count:]))


def _batched(
    primitive: Primitive,
    arrays: Sequence[jax.Array],
    axes: Sequence[int | None],
    *,
    batches: int,
    **settings: Any,
):
    """All arrays get the new axis, so that results have it too."""
    pairs = [*zip(arrays, axes, strict=True)]
    count = next(x.shape[axis] for x, axis in pairs if axis is not None)
    arrays = [
        jnp.broadcast_to(x, (count, *x.shape))
        if axis is None
        else jnp.moveaxis(x, axis, 0)
        for x, axis in pairs
    ]
    values = primitive.bind(*arrays, batches=batches + 1, **settings)
    return values, [0] * len(values)


def _jvp(
    primals: tuple[Any, ...], tangents: tuple[Any, ...], *, tree: Any, **settings: Any
):
    """Linear in the directions; by the weights it is differentiated as it stands."""
    value = product.bind(*primals, tree=tree, **settings)
    count = tree.num_leaves
    tables, directions, moved = primals[:count], primals[count:], tangents[:count]
    turned = [ad.instantiate_zeros(x) for x in tangents[count:]]
    change = product.bind(*tables, *turned, tree=tree, **settings)
    at = [k for k, x in enumerate(moved) if not isinstance(x, ad.Zero)]
    if not at:
        return value, change

    def by_tables(*values: Any):
        every = dict(enumerate(tables)) | dict(zip(at, values, strict=True))
        return _product(*every.values(), *directions, tree=tree, **settings)

    tables_and_tangents = [tables[k] for k in at], [moved[k] for k in at]
    _, third = jax.jvp(by_tables, *tables_and_tangents)
    return value, [x + y for x, y in zip(change, third, strict=True)]


def _transposed(
    cotangents: Sequence[Any],
    *arrays: Any,
    tree: Any,
    along: tuple[str, ...],
    into: tuple[str, ...],
    **settings: Any,
):
    """The Hessian is symmetric."""
    tables = arrays[: tree.num_leaves]
    back = [ad.instantiate_zeros(x) for x in cotangents]
    out = product.bind(*tables, *back, tree=tree, along=into, into=along, **settings)
    return [None] * len(tables) + out


def _shapes(*arrays: Any, tree: Any, into: tuple[str, ...], **_: Any):
    named, _ = jax.tree.unflatten(tree, arrays[: tree.num_leaves])
    return [named[name].update(weak_type=False) for name in into]


product = batch_primitive("soft_curvature", _shapes, _product, _product, _batched)
ad.primitive_jvps[product] = _jvp
ad.primitive_transposes[product] = _transposed
