"""The soft kernels as JAX primitives: how they are batched and differentiated.

Three functions of a batch of tables, scores (B, m, n), gap costs (B, 4), units (B,)
and rules (B, 3), as the kernels of ``similarity.soft`` take them: log Z; log Z with its
gradient; and the product of its Hessian with a direction. ``vmap`` adds its axes to
B. The product is linear in the direction, and the Hessian is symmetric: transposed it
is itself, so forward over reverse and reverse over reverse both run as kernels. Higher
derivatives, and devices without the kernels, take ``soft.dp.free_energy``.
"""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching

from jaxalign.similarity.arrays import FORBIDDEN, Gap, ModeRules
from jaxalign.similarity.cost_table import Weights
from jaxalign.similarity.kernel_primitives import fold_into_batch, lower_to
from jaxalign.similarity.overhang import no_overhang, overhang
from jaxalign.similarity.soft.dp import free_energy, row_scan
from jaxalign.similarity.soft.dp.blocks import BLOCK_DIAGONALS
from jaxalign.similarity.soft.dp.kernels import Kernels
from jaxalign.similarity.soft.dp.scaled_scan import MAX_LOST_PROBABILITY

PRIMITIVE_NAMES = ("score", "expected", "product")
FLAGS = ("query_start", "query_end", "target_start", "target_end", "local")


@lru_cache
def kernels(package: Any, otherwise: int | None) -> Kernels:
    """The kernels that stand in for the two passes of ``soft.dp.free_energy``; the same
    object for the same input.

    Without ``package`` the rows of ``soft.dp.row_scan`` are computed anywhere; it has
    the functions ``soft_score``, ``soft_expected``, ``soft_product``;
    ``otherwise`` is the ``block`` where ``soft.dp.free_energy`` computes derivatives
    itself."""
    run = ()
    if package is not None:
        run = package.soft_score, package.soft_expected, package.soft_product
    return Kernels(
        partial(_of_one, _score, run), partial(_of_one, _expected, run), otherwise
    )


def _of_one(
    primitive: Primitive,
    run: tuple[Any, ...],
    similarity: jax.Array,
    costs: jax.Array,
    rules: ModeRules,
    unit: jax.Array,
):
    """A batch of one pair; ``vmap`` makes it larger."""
    flags = sum(
        jnp.where(getattr(rules, name), 1 << k, 0) for k, name in enumerate(FLAGS)
    )
    numbers = jnp.stack([jnp.asarray(x, jnp.int32) for x in (rules.m, rules.n, flags)])
    arrays = (x[None] for x in (similarity, costs, unit, numbers))
    return [x[0] for x in primitive.bind(*arrays, run=run)]


def _shapes(
    scores: Any, costs: Any, unit: Any, rules: Any, *_: Any, run: tuple[Any, ...]
):
    return {
        "score": [unit, unit],
        "expected": [unit, unit, scores, costs],
        "product": [scores, costs],
    }


def _primitive(name: str) -> Primitive:
    primitive = Primitive(f"soft_{name}")
    primitive.multiple_results = True
    primitive.def_impl(
        lambda *arrays, run: jax.jit(partial(primitive.bind, run=run))(*arrays)
    )
    primitive.def_abstract_eval(
        lambda *arrays, run: [
            x.update(weak_type=False) for x in _shapes(*arrays, run=run)[name]
        ]
    )
    batching.primitive_batchers[primitive] = partial(fold_into_batch, primitive)

    def plainly(*arrays: jax.Array, run: tuple[Any, ...]):
        forms = PLAIN_FORMS if run else PLAIN_FORMS | ROW_FORMS
        return list(forms[name](*arrays))

    def by_kernel(*arrays: jax.Array, run: tuple[Any, ...]):
        if not run:
            return plainly(*arrays, run=run)
        function = run[PRIMITIVE_NAMES.index(name)]
        return jax.tree.leaves(function(arrays[:4], *arrays[4:]))

    lower_to(primitive, by_kernel, plainly)
    return primitive


_score, _expected, _product = map(_primitive, PRIMITIVE_NAMES)


def _expected_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, run: tuple[Any, ...]
):
    """Payers are minus the gradient by their costs."""
    means = _expected.bind(*primals, run=run)
    d_scores, d_costs = map(ad.instantiate_zeros, tangents[:2])
    _, _, posterior, payers = means
    of_rest = jnp.sum(posterior * d_scores, (1, 2)) - jnp.sum(payers * d_costs, 1)
    changed = _product.bind(*primals, d_scores, d_costs, run=run)
    return means, [jnp.zeros_like(means[0]), of_rest, *changed]


ad.primitive_jvps[_expected] = _expected_jvp


def _product_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, run: tuple[Any, ...]
):
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


def _product_transpose(cotangents: Sequence[Any], *arrays: Any, run: tuple[Any, ...]):
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


def _log_z(scores: jax.Array, costs: jax.Array, unit: jax.Array, rules: jax.Array):
    """One pair by ``soft.dp.free_energy``."""
    m, n, flags = rules
    free = {name: (flags & (1 << k)) != 0 for k, name in enumerate(FLAGS)}
    mode = ModeRules(m, n, **free, adjacent=jnp.bool_(True))
    opening, extending = Gap(costs[0], costs[2]), Gap(costs[1], costs[3])
    paid = overhang(opening, extending, scores.shape, mode, FORBIDDEN)
    local = no_overhang(scores.shape, scores.dtype)
    hang = jax.tree.map(lambda x, y: jnp.where(mode.local, x, y), local, paid)
    weights = Weights(scores, opening, extending, hang)
    return free_energy.score(weights, jnp.ones((), scores.dtype), mode, BLOCK_DIAGONALS)


def _plain_score(*tables: jax.Array):
    rest = jax.vmap(_log_z)(*tables)
    return jnp.zeros_like(rest), rest


def _plain_expected(*tables: jax.Array):
    both = jax.vmap(jax.value_and_grad(_log_z, (0, 1)))(*tables)
    rest, (posterior, costs) = both
    return jnp.zeros_like(rest), rest, posterior, -costs


def _score_by_rows(*tables: jax.Array):
    return _by_rows(*tables)[:2]


def _by_rows(scores: jax.Array, costs: jax.Array, unit: jax.Array, rules: jax.Array):
    """``soft.dp.row_scan``, and logarithms where it does not prove its result for every
    pair of the batch."""
    m, n, flags = rules.T
    free = [(flags & (1 << k)) != 0 for k in range(len(FLAGS))]
    rows = row_scan.expected(row_scan.RowTables(scores, costs, m, n, *free))
    proved = jnp.all(rows.lost <= MAX_LOST_PROBABILITY)
    return jax.lax.cond(
        proved, lambda *_: tuple(rows[:4]), _plain_expected, scores, costs, unit, rules
    )


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


PLAIN_FORMS = {
    "score": _plain_score,
    "expected": _plain_expected,
    "product": _plain_product,
}
ROW_FORMS = {"score": _score_by_rows, "expected": _by_rows}
