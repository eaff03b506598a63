"""Inputs of the kernels for soft scores of many tables, and sums over lanes.

Arrays of B pairs: scores (B, m, n), gap costs (B, 4): open and extend of the query's
residues, then of the target's; all float32 and divided by the temperature. ``rules``
int32 (B, 3): lengths of both, and flags.
"""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from kernels_pallas.core.reals import in_parts
from kernels_pallas.similarity.soft_cells import LOG_ZERO, Soft, SoftInputs, SoftSizes
from kernels_pallas.similarity.soft_passes import forward, reverse

QUERY_START, QUERY_END, TARGET_START, TARGET_END, LOCAL_MODE = (
    1 << k for k in range(5)
)


class Tables(NamedTuple):
    """Scores, gap costs, units and rules of a batch of pairs."""

    scores: jax.Array
    costs: jax.Array
    unit: jax.Array  # (B,), a power of two
    rules: jax.Array


def soft_score(tables: Tables, s: Soft | None = None, interpret=None):
    """log Z as a sum (high, rest), (B,) each; high has no tangent."""
    tables = Tables(*tables)
    s = s or choose(*tables.scores.shape)
    sizes = sizes_of(tables.scores.shape, s)
    inputs = inputs_of(tables, s, sizes)
    (ends,) = forward(inputs, s, sizes, False, interpret)
    return log_sum(*by_lane(ends, tables, s)[:2], tables)


def soft_expected(tables: Tables, s: Soft | None = None, interpret=None):
    """log Z as in ``soft_score``, posterior (B, m, n), expected payers (B, 4)."""
    tables = Tables(*tables)
    s = s or choose(*tables.scores.shape)
    run = partial(_expected, s=s, interpret=interpret)
    return in_parts(run, (tables,), most_pairs(tables, s), s.groups)


def _expected(tables: Tables, s: Soft, interpret):
    sizes = sizes_of(tables.scores.shape, s)
    inputs = inputs_of(tables, s, sizes)
    ends, *values = forward(inputs, s, sizes, True, interpret)
    high, log_z = log_sum(*by_lane(ends, tables, s)[:2], tables)
    z = pad_log_z(sizes.programs * s.groups, high, log_z, jnp.zeros_like(log_z))
    posterior, sums = reverse(inputs, values, z, tables.scores.shape[1:], s, sizes,
                              interpret)  # fmt: skip
    gaps = sums[: len(log_z)].sum(2) + empty_payers(tables, high, log_z)
    return (high, log_z), zero_outside(posterior, tables), gaps


def soft_product(
    tables: Tables, d_scores, d_costs, s: Soft | None = None, interpret=None
):
    """Tangents of posterior and payers for tangents of scores and costs."""
    tables = Tables(*tables)
    s = s or narrow(choose(*tables.scores.shape))
    s = replace(s, dual=True)
    run = partial(_product, s=s, interpret=interpret)
    arrays = tables, d_scores, d_costs
    return in_parts(run, arrays, most_pairs(tables, s), s.groups)


def _product(tables: Tables, d_scores, d_costs, s: Soft, interpret):
    sizes = sizes_of(tables.scores.shape, s)
    pairs = sizes.programs * s.groups
    changed = numbers_of(tables._replace(costs=d_costs), pairs - len(d_costs))
    changes = pad_scores(d_scores, s, sizes, 0), changed
    inputs = inputs_of(tables, s, sizes)._replace(changes=changes)
    ends, *values = forward(inputs, s, sizes, True, interpret)
    rests, base, d_rests = by_lane(ends, tables, s)

    def total(rests, costs):
        high, log_z = log_sum(rests, base, tables._replace(costs=costs))
        return log_z, high

    primals, changes = (rests, tables.costs), (d_rests, d_costs)
    log_z, d_rest, high = jax.jvp(total, primals, changes, has_aux=True)
    z = pad_log_z(pairs, high, log_z, d_rest)
    posterior, sums = reverse(inputs, values, z, tables.scores.shape[1:], s, sizes,
                              interpret)  # fmt: skip

    def payers_of(costs, log_z):
        return empty_payers(tables._replace(costs=costs), high, log_z)

    _, d_empty = jax.jvp(payers_of, (tables.costs, log_z), (d_costs, d_rest))
    return zero_outside(posterior, tables), sums[: len(log_z)].sum(2) + d_empty


def pad_log_z(pairs, high, log_z, change):
    """Lay out log Z and its tangent for the kernel, flat."""
    four = jnp.stack([high, log_z, change, jnp.zeros_like(log_z)], axis=1)
    return jnp.pad(four, ((0, pairs - len(four)), (0, 0))).reshape(-1)


def zero_outside(posterior, tables: Tables):
    """Set the posterior beyond the lengths to 0; the kernel writes nothing there."""
    count, m, n = tables.scores.shape
    i, j = jnp.arange(m, dtype=jnp.int32), jnp.arange(n, dtype=jnp.int32)
    rows = i[None, :] < tables.rules[:, :1]
    columns = j[None, :] < tables.rules[:, 1:2]
    inside = rows[:, :, None] & columns[:, None, :]
    return jnp.where(inside, posterior[:count, :, :n], 0)


def empty_payers(tables: Tables, high, log_z):
    """Expected payers that come from the alignment without pairs."""

    def log_of(costs):
        return log_empty(tables._replace(costs=costs))

    log, pull = jax.vjp(log_of, tables.costs)
    return -pull(jnp.exp(log - high - log_z))[0]


def most_pairs(tables: Tables, s: Soft) -> int:
    """Pairs of a launch whose values fit ``FORWARD_BYTES``."""
    sizes = sizes_of(tables.scores.shape, s)
    each = sizes.steps * s.quads * s.threads * 16
    return max(1, FORWARD_BYTES // each) * s.groups


FORWARD_BYTES = 8 << 30  # limit of the values of a forward pass
MAX_ROWS = 4096  # of a table


def choose(count: int, m: int, n: int) -> Soft:
    """Choose the shape for tables of m rows: a warp for few rows, else four or eight
    warps of a program. Steps of few cells compile in a fraction of the time, and more
    columns a step were not faster."""
    wide = 32 if m <= 128 else 128 if m <= 512 else 256
    rows = next(k for k in (2, 4, 8, 16, 32) if k * wide >= min(m, MAX_ROWS))
    return Soft(rows, wide, 2 if rows <= 8 else 1)


def narrow(s: Soft) -> Soft:
    """Reduce the columns a step: registers hold the tangents of 8 cells a thread."""
    return replace(s, columns=1) if s.cells > 8 else s


def sizes_of(shape, s: Soft) -> SoftSizes:
    count, m, n = shape
    blocks = -(-n // s.columns)
    return SoftSizes(
        -(-count // s.groups), s.strip, (blocks + 1) * s.columns, blocks + s.lanes - 1
    )


def inputs_of(tables: Tables, s: Soft, sizes: SoftSizes) -> SoftInputs:
    """Lay out the arrays of a launch, padded with pairs of length 0."""
    spare = sizes.programs * s.groups - len(tables.scores)
    rules = jnp.pad(tables.rules, ((0, spare), (0, 0)))
    blocks = -(-rules[:, 1] // s.columns)
    rows = -(-rules[:, 0] // s.rows)
    steps = jnp.where((blocks > 0) & (rows > 0), blocks + rows - 1, 0)
    steps = jnp.max(steps.reshape(-1, s.groups), axis=1)
    return SoftInputs(
        pad_scores(tables.scores, s, sizes, LOG_ZERO),
        numbers_of(tables, spare),
        jnp.stack([blocks, rows], axis=1).reshape(-1),
        steps,
    )


def pad_scores(scores, s: Soft, sizes: SoftSizes, fill):
    """Pad scores with a step of columns before the first, flat."""
    count, m, n = scores.shape
    padding = (
        sizes.programs * s.groups - count,
        sizes.rows - m,
        sizes.width - s.columns - n,
    )
    widths = (0, padding[0]), (0, padding[1]), (s.columns, padding[2])
    return jnp.pad(scores, widths, constant_values=fill).reshape(-1)


def numbers_of(tables: Tables, spare: int):
    """Lay out the numbers of each pair, float32 (B * 16,): see ``SoftView``."""
    m, n, flags = tables.rules.T
    start = _side(flags, QUERY_START, TARGET_START)
    end = _side(flags, QUERY_END, TARGET_END)
    columns = [*tables.costs.T, tables.unit, 1 / tables.unit, m, n, *start, *end]
    columns += [jnp.zeros_like(tables.unit)] * (16 - len(columns))
    numbers = jnp.stack([x.astype(jnp.float32) for x in columns], axis=1)
    return jnp.pad(numbers, ((0, spare), (0, 0)), constant_values=1).reshape(-1)


def _side(flags, query, target):
    """The three fields of ``Side``, as flags of each pair."""
    local = (flags & LOCAL_MODE) != 0
    query, target = (flags & query) != 0, (flags & target) != 0
    return query & target & ~local, ~(query | local), ~(target | local)


def by_lane(ends, tables: Tables, s: Soft):
    """Logs of the sums by lane (B, G), their bases and tangents."""
    top, sums, base, change = (
        x.reshape(-1, s.lanes)[: len(tables.scores)] for x in jnp.moveaxis(ends, 1, 0)
    )
    alive = top > LOG_ZERO / 20
    logs = jnp.where(alive, top + jnp.log(jnp.maximum(sums, 1e-30)), LOG_ZERO)
    change = jnp.where(alive, change / jnp.maximum(sums, 1e-30), 0)
    return logs, base * tables.unit[:, None], change


def log_sum(rests, high, tables: Tables):
    """Log of the sum over lanes and the alignment without pairs: (high, rest)."""
    high = jnp.pad(high, ((0, 0), (0, 1)))
    log_z = jnp.concatenate([rests, log_empty(tables)[:, None]], axis=1)
    best = jnp.argmax(high + log_z, axis=1)[:, None]
    ground = jnp.take_along_axis(high, best, axis=1)
    log_z = jax.nn.logsumexp((high - ground) + log_z, axis=1)
    return ground[:, 0], log_z


def log_empty(tables: Tables):
    """The log weight of the alignment without pairs, (B,)."""
    m, n, flags = tables.rules.T
    open_e, extend_e, open_f, extend_f = tables.costs.T
    e, f = _run(m, open_e, extend_e), _run(n, open_f, extend_f)
    zero = jnp.zeros_like(e)

    def cost(side, free):
        return jnp.where((flags & free) != 0, zero, side)

    e_first = cost(e, QUERY_START) + cost(f, TARGET_END)
    f_first = cost(f, TARGET_START) + cost(e, QUERY_END)
    return jnp.where((flags & LOCAL_MODE) != 0, zero, -jnp.minimum(e_first, f_first))


def _run(length, opening, extending):
    log_z = jnp.maximum(length - 1, 0).astype(opening.dtype)
    return jnp.where(length > 0, opening + log_z * extending, 0)
