"""The hard kernels as a JAX primitive: what ``vmap`` and other devices do with it.

One function of a batch of tables, as the kernels of ``similarity.hard`` take them:
scores (B, m, n), gap costs (B, 4), borders (B, m + 1) and (B, n + 1), rules (B, 3).
``vmap`` adds its axes to B. Devices without the kernels take ``hard.dp.fill``.
"""

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import batching

from jaxalign.similarity.arguments import ScoredPair
from jaxalign.similarity.arrays import FORBIDDEN, Gap, ModeRules
from jaxalign.similarity.cost_table import Weights
from jaxalign.similarity.hard.dp import fill, walk
from jaxalign.similarity.kernel_primitives import fold_into_batch, lower_to
from jaxalign.similarity.overhang import Overhang, no_overhang, overhang

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


def best_path(run: Any, arrays: Sequence[jax.Array], local: bool, last_column: bool):
    """Score, end cell, first cell and partners of one pair; what is not on the path is
    not defined. The score is nan where one within the lengths is nan or infinite.

    ``run`` is the package's ``hard_paths``, ``arrays`` are those of ``arrays_of``."""
    form = {"run": run, "local": local, "last_column": last_column}
    return [x[0] for x in _paths.bind(*(x[None] for x in arrays), **form)]


def arrays_of(
    scores: jax.Array, costs: tuple[Gap, Gap], hang: Overhang, rules: ModeRules
):
    """The arrays of one pair, as the kernels take them with an axis for the batch;
    ``costs`` are those of opening and of extending."""
    opening, extending = costs
    numbers = jnp.stack([opening.e, extending.e, opening.f, extending.f])
    left = jnp.where(rules.query_start | rules.local, 0, -hang.start_query)
    top = jnp.where(rules.target_start | rules.local, 0, -hang.start_target)
    flags = sum(
        jnp.where(getattr(rules, name), 1 << k, 0) for k, name in enumerate(FLAGS)
    )
    whole = [jnp.asarray(x, jnp.int32) for x in (rules.m, rules.n, flags)]
    return scores, numbers, left, top, jnp.stack(whole)


def _plain_path(
    scores: jax.Array,
    costs: jax.Array,
    left: jax.Array,
    top: jax.Array,
    rules: jax.Array,
    local: bool,
):  # noqa: ARG001
    """The same by ``hard.dp.fill``."""
    m, n, flags = rules
    free = {name: (flags & (1 << k)) != 0 for k, name in enumerate(FLAGS)}
    mode = ModeRules(m, n, **free, local=jnp.bool_(local), adjacent=jnp.bool_(True))
    opening, extending = Gap(costs[0], costs[2]), Gap(costs[1], costs[3])
    if local:
        hang = no_overhang(scores.shape, costs.dtype)
    else:
        hang = overhang(opening, extending, scores.shape, mode, FORBIDDEN)
    row = jnp.arange(scores.shape[0], dtype=jnp.int32)[:, None] < m
    column = jnp.arange(scores.shape[1], dtype=jnp.int32)[None, :] < n
    known = jnp.bool_(True)
    if jnp.issubdtype(scores.dtype, jnp.floating):
        wrong = jnp.isnan(scores) | jnp.isposinf(scores)
        known = ~jnp.any(wrong & row & column)
        scores = scores.astype(costs.dtype)
        scores = jnp.where(scores > FORBIDDEN / 10, scores, FORBIDDEN)
    weights = Weights(scores, opening, extending, hang)
    filled = fill.fill(weights, mode, local=local, ordered=False)
    path = walk.walk(filled, ordered=False)
    score = jnp.where(known, filled.score, jnp.nan)
    return score, filled.i, filled.j, path.i, path.j, path.partners


def _primitive() -> Primitive:
    primitive = Primitive("hard_paths")
    primitive.multiple_results = True

    def shapes(scores: Any, costs: Any, left: Any, top: Any, rules: Any, **_: Any):  # noqa: ARG001
        batch, m, _ = scores.shape
        each = rules.update(shape=(batch,), weak_type=False)
        score = costs.update(shape=(batch,), weak_type=False)
        return [score, *[each] * 4, rules.update(shape=(batch, m), weak_type=False)]

    def plainly(*arrays: jax.Array, run: Any, local: bool, last_column: bool):  # noqa: ARG001
        scores, costs, left, top, rules = arrays
        path = jax.vmap(partial(_plain_path, local=local))
        return list(path(scores, costs, left, top, rules))

    def by_kernel(*arrays: jax.Array, run: Any, **form: Any):
        return list(run(arrays, **form))

    primitive.def_impl(
        lambda *arrays, **form: jax.jit(partial(primitive.bind, **form))(*arrays)
    )
    primitive.def_abstract_eval(shapes)
    batching.primitive_batchers[primitive] = partial(fold_into_batch, primitive)
    lower_to(primitive, by_kernel, plainly)
    return primitive


_paths = _primitive()
