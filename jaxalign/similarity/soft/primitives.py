"""The soft kernels as JAX primitives: how they are batched and differentiated.

Three functions of a batch of tables, scores (B, m, n), gap costs (B, 4), units (B,)
and rules (B, 3), as the kernels of ``similarity.soft`` take them: log Z; log Z with its
gradient; and the product of its Hessian with a direction. ``vmap`` adds its axes to
B; gap costs of rows stay (1, 4) where all pairs share them. The product is linear in
the direction, and the Hessian is symmetric: transposed it is itself, so forward over
reverse and reverse over reverse both run as kernels. Higher derivatives, and devices
without the kernels, take ``soft.dp.free_energy``.
"""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad

from jaxalign.similarity.arguments import FORBIDDEN, Gap, ModeRules
from jaxalign.similarity.arrays import (
    batch_primitive,
    fold_into_batch,
    numbers_of,
    rules_of,
)
from jaxalign.similarity.costs import Weights, no_overhang, overhang
from jaxalign.similarity.soft.dp import free_energy, row_scan
from jaxalign.similarity.soft.dp.scan import BLOCK_DIAGONALS, Kernels

PRIMITIVE_NAMES = ("score", "expected", "product")
MAX_GROUP_BYTES = 128 << 20  # of the diagonals that logarithms keep
KEPT_BYTES = 4 * 6  # of a cell: scores, M, E, F, and what goes back
FLAGS = ("query_start", "query_end", "target_start", "target_end", "local")


class RowPasses(NamedTuple):
    """In the place of the functions of a package: ``soft.dp.row_scan``, and logarithms
    where that proves nothing."""

    form: row_scan.RowForm


Run = RowPasses | tuple[Any, Any, Any]  # or the three functions


@lru_cache
def kernels(package: Any, otherwise: int | None) -> Kernels:
    """The kernels that stand in for the two passes of ``soft.dp.free_energy``; the same
    object for the same input.

    ``package`` has the functions ``soft_score``, ``soft_expected``, ``soft_product``;
    ``otherwise`` is the ``block`` where ``soft.dp.free_energy`` computes derivatives
    itself."""
    run = package.soft_score, package.soft_expected, package.soft_product
    return _kernels(run, otherwise)


@lru_cache
def rows(local: bool, otherwise: int | None, pairs_only: bool) -> Kernels:
    """The same by ``soft.dp.row_scan``, on any device; ``pairs_only`` is that of
    ``Kernels``."""
    run = RowPasses(row_scan.RowForm(local, False))
    return _kernels(run, otherwise)._replace(pairs_only=pairs_only)


def _kernels(run: Run, otherwise: int | None) -> Kernels:
    score, expected = (partial(_of_one, x, run) for x in (_score, _expected))
    return Kernels(score, expected, otherwise)


def _of_one(
    primitive: Primitive,
    run: Run,
    similarity: jax.Array,
    costs: jax.Array,
    rules: ModeRules,
    unit: jax.Array,
    payers: bool = False,
):
    """Bind a primitive for one pair as a batch, which ``vmap`` enlarges."""
    run = _with_payers(run, payers)
    arrays = (x[None] for x in (similarity, costs, unit, numbers_of(rules, FLAGS)))
    return [x[0] for x in primitive.bind(*arrays, run=run)]


def _with_payers(run: Run, payers: bool) -> Run:
    """Kernels always count them."""
    if not isinstance(run, RowPasses):
        return run
    return run._replace(form=run.form._replace(payers=payers))


def _outputs(run: Run) -> int:
    """Count the outputs of "expected"; the fourth is the payers."""
    return 3 if isinstance(run, RowPasses) and not run.form.payers else 4


def _primitive(name: str) -> Primitive:
    def shapes(scores: Any, costs: Any, unit: Any, rules: Any, *_: Any, run: Run):
        costs = costs.update(shape=(*unit.shape, 4))
        return {
            "score": [unit, unit],
            "expected": [unit, unit, scores, costs][: _outputs(run)],
            "product": [scores, costs],
        }[name]

    def plainly(*arrays: jax.Array, run: Run):
        if name == "product":
            return list(_plain_product(*arrays))
        count = 2 if name == "score" else _outputs(run)
        if isinstance(run, RowPasses):
            return list(_by_rows(run, count, *arrays))
        return _by_logs(count, *arrays)

    def by_kernel(*arrays: jax.Array, run: Run):
        if isinstance(run, RowPasses):
            return plainly(*arrays, run=run)
        function = run[PRIMITIVE_NAMES.index(name)]
        return jax.tree.leaves(function(arrays[:4], *arrays[4:]))

    def fold(primitive: Primitive, arrays: Any, axes: Any, *, run: Run):
        """Costs (1, 4) of rows stay so while no axis is theirs, but beside a direction,
        which has a row for each pair."""
        shared = (1,) if isinstance(run, RowPasses) and name != "product" else ()
        return fold_into_batch(primitive, arrays, axes, shared, run=run)

    return batch_primitive(f"soft_{name}", shapes, plainly, by_kernel, fold)


_score, _expected, _product = map(_primitive, PRIMITIVE_NAMES)


def _expected_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, run: Run):
    """Payers are minus the gradient by their costs."""
    scores, costs, unit, rules = primals
    moved = not isinstance(tangents[1], ad.Zero)
    count = _outputs(run)
    means = _expected.bind(*primals, run=_with_payers(run, moved or count == 4))
    d_scores, d_costs = map(ad.instantiate_zeros, tangents[:2])
    of_rest = jnp.sum(means[2] * d_scores, (1, 2))
    if moved:
        of_rest = of_rest - jnp.sum(means[3] * d_costs, 1)
    costs, d_costs = (jnp.broadcast_to(x, (len(unit), 4)) for x in (costs, d_costs))
    changed = _product.bind(scores, costs, unit, rules, d_scores, d_costs, run=run)
    changes = [jnp.zeros_like(means[0]), of_rest, *changed]
    return means[:count], changes[:count]


ad.primitive_jvps[_expected] = _expected_jvp


def _product_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, run: Run):
    """Linear in the direction; the third derivative is that of
    ``soft.dp.free_energy``."""
    product = _product.bind(*primals, run=run)
    tables, direction = primals[:4], primals[4:]
    directions = [ad.instantiate_zeros(x) for x in tangents[4:]]
    changed = _product.bind(*tables, *directions, run=run)
    moved = tangents[:2]
    if all(isinstance(x, ad.Zero) for x in moved):
        return product, changed

    def by_tables(scores: jax.Array, costs: jax.Array):
        return _plain_product(scores, costs, *tables[2:], *direction)

    _, third = jax.jvp(by_tables, tables[:2], tuple(map(ad.instantiate_zeros, moved)))
    return product, [x + y for x, y in zip(changed, third, strict=True)]


ad.primitive_jvps[_product] = _product_jvp


def _product_transpose(cotangents: Sequence[Any], *arrays: Any, run: Run):
    """The Hessian by scores and costs is symmetric; payers bring a minus on each
    side."""
    like = arrays[4:]
    of_scores, of_payers = (
        jnp.zeros(x.aval.shape, x.aval.dtype) if isinstance(ct, ad.Zero) else ct
        for x, ct in zip(like, cotangents, strict=True)
    )
    scores, payers = _product.bind(*arrays[:4], of_scores, -of_payers, run=run)
    return [None] * 4 + [scores, -payers]


ad.primitive_transposes[_product] = _product_transpose


def _log_z(
    scores: jax.Array,
    costs: jax.Array,
    unit: jax.Array,
    rules: jax.Array,
    *,
    local: bool | None = None,
    block: int | None = BLOCK_DIAGONALS,
):
    """One pair by ``soft.dp.free_energy``; None reads from the rules whether it is
    local."""
    mode = rules_of(rules, FLAGS)
    opening, extending = Gap(costs[0], costs[2]), Gap(costs[1], costs[3])
    hang = no_overhang(scores.shape, scores.dtype)
    if not local:
        paid = overhang(opening, extending, scores.shape, mode, FORBIDDEN)
        either = partial(jnp.where, mode.local)
        hang = paid if local is False else jax.tree.map(either, hang, paid)
    weights = Weights(scores, opening, extending, hang)
    return free_energy.score(weights, jnp.ones((), scores.dtype), mode, block)


def _by_logs(
    count: int,
    *tables: jax.Array,
    local: bool | None = None,
    block: int | None = BLOCK_DIAGONALS,
) -> list[jax.Array]:
    """The first ``count`` results of "expected", by ``soft.dp.free_energy``."""
    function, means = partial(_log_z, local=local, block=block), []
    if count == 2:
        value = jax.vmap(function)(*tables)
    else:
        by = (0, 1)[: count - 2]
        value_and_slopes = jax.vmap(jax.value_and_grad(function, by))(*tables)
        value, (posterior, *slopes) = value_and_slopes
        means = [posterior, *(-x for x in slopes)]
    return [jnp.zeros_like(value), value, *means]


def _by_rows(
    run: RowPasses,
    count: int,
    scores: jax.Array,
    costs: jax.Array,
    unit: jax.Array,
    rules: jax.Array,
):
    """The first ``count`` results of ``soft.dp.row_scan``; of logarithms for groups of
    pairs of which rows do not prove each."""
    m, n, flags = rules.T
    free = [(flags & (1 << k)) != 0 for k in range(len(FLAGS) - 1)]
    tables = row_scan.RowTables(scores, costs, m, n, *free)
    rows = row_scan.expected(tables, run.form)
    size, block = _group(scores.shape)
    proved = rows.lost.reshape(-1, size) <= row_scan.MAX_LOST_PROBABILITY
    pairs = scores, jnp.broadcast_to(costs, (len(m), 4)), unit, rules

    def step(state: tuple[Any, ...]):
        """The first group that is not proved, in the place of its rows."""
        proved, *values = state
        # What does not change in a loop XLA computes before it, needed or not.
        inputs, proved = lax.optimization_barrier((pairs, proved))
        group = jnp.argmin(proved)
        cut = partial(lax.dynamic_slice_in_dim, start_index=group * size)
        part = [cut(x, slice_size=size) for x in inputs]
        means = _by_logs(count, *part, local=run.form.local, block=block)
        values = [
            lax.dynamic_update_slice_in_dim(x, y, group * size, axis=0)
            for x, y in zip(values, means, strict=True)
        ]
        return (proved.at[group].set(True), *values)

    # ``cond`` would copy what it hands on.
    means = [x for x in rows[:count] if x is not None]
    values = jnp.all(proved, axis=1), *means
    return lax.while_loop(lambda state: ~jnp.all(state[0]), step, values)[1:]


def _group(shape: tuple[int, ...]) -> tuple[int, int | None]:
    """How many pairs of a batch (B, M, N) logarithms take at a time, a divisor of B;
    and the diagonals that they compute anew, None where memory holds them all."""
    count, m, n = shape
    each = KEPT_BYTES * (m + n + 1) * (m + 1)
    limit = max(1, MAX_GROUP_BYTES // each)
    size = max(k for k in range(1, min(count, limit) + 1) if count % k == 0)
    return size, None if each <= MAX_GROUP_BYTES else BLOCK_DIAGONALS


def _plain_product(
    scores: jax.Array,
    costs: jax.Array,
    unit: jax.Array,
    rules: jax.Array,
    d_scores: jax.Array,
    d_costs: jax.Array,
):
    gradient = jax.vmap(jax.grad(_log_z, (0, 1)))
    _, (of_scores, of_costs) = jax.jvp(
        lambda s, c: gradient(s, c, unit, rules), (scores, costs), (d_scores, d_costs)
    )
    return of_scores, -of_costs
