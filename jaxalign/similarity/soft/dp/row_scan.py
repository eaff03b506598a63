"""The two passes by rows of the table, without logarithms: fast on a CPU.

A row of a batch is (B, N): no array is skewed, and the similarity is read, the
posterior written, as they lie in memory. Weights are linear, times one power of two a
row and pair. With x = M + E, the chain of gaps along a row is a sum,

    F[j] = sum over k < j of  open * extend^(j - 1 - k) * x[k],

a product with a triangular matrix: ``ChainMatrices`` cut it into blocks of
``BLOCK_COLUMNS``, and the sums of blocks into a small triangle of their own.

What ``soft.dp.scaled_scan`` says of weights that vanish holds here: a weight that is
lost is below the smallest normal number, and what it could have become is at most that
times the largest weight of the other direction. ``lost`` is the sum of these bounds.

Gap costs are numbers, adjacent gaps are allowed. Weights of overhangs are products of a
number of the row and one of the column, or, where both ends are free, the larger of the
two.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.similarity.arrays import FORBIDDEN
from jaxalign.similarity.loops import begun
from jaxalign.similarity.soft.dp.free_energy import sum_up
from jaxalign.similarity.soft.dp.scaled_scan import LN2_HIGH, LN2_LOW

BLOCK_COLUMNS = 16  # of a row that are one product
LOSSES_PER_CELL = 64  # sums and products that may fall below the smallest number


class RowTables(NamedTuple):
    """A batch: ``scores`` (B, M, N) over T, forbidden beyond the lengths; ``costs``
    (B, 4) over T, open and extend of the query's residues, then of the target's; ``m``,
    ``n`` int32 (B,); the others bool (B,)."""

    scores: jax.Array
    costs: jax.Array
    m: jax.Array
    n: jax.Array
    query_start: jax.Array
    query_end: jax.Array
    target_start: jax.Array
    target_end: jax.Array
    local: jax.Array


class RowExpectation(NamedTuple):
    """log Z (B,) is ``high`` + ``rest``; ``posterior`` (B, M, N), ``payers`` (B, 4) as
    ``costs``; ``lost`` (B,) bounds the probability that is missing, nan where numbers
    were too large."""

    high: jax.Array
    rest: jax.Array
    posterior: jax.Array
    payers: jax.Array
    lost: jax.Array


class ChainMatrices(NamedTuple):
    """``inside`` (B, K, K + 1): from a block of K columns to their chains, and to what
    leaves the block; ``blocks`` (B, C, C): from what leaves a block to what enters
    another; ``decay`` (B, 1, K)."""

    inside: jax.Array
    blocks: jax.Array
    decay: jax.Array


class RowOverhang(NamedTuple):
    """Overhangs at the start, or at the end, of k residues of the query by row and of l
    of the target by column, int32 (B, M) and (B, N).

    ``query`` (B, M) and ``target`` (B, N) are their costs, 0 where they are free, and
    ``weight`` (B, N) is exp(-``target``).
    ``both`` says that both are free, so that the smaller cost counts; ``query_pays``
    and ``target_pays`` who pays otherwise; bool (B,).
    """

    k: jax.Array
    l: jax.Array
    query: jax.Array
    target: jax.Array
    weight: jax.Array
    both: jax.Array
    query_pays: jax.Array
    target_pays: jax.Array


class RowValues(NamedTuple):
    """Of a row, over 2^``exponent`` (B,): ``before`` (B, N), all that a pair in a
    column may follow, E and F of the row, and the ``largest`` (B,) of it."""

    before: jax.Array
    e: jax.Array
    f: jax.Array
    exponent: jax.Array
    largest: jax.Array


def expected(tables: RowTables) -> RowExpectation:
    """Score and expectations of a batch, by one pass down and one pass up."""
    columns = tables.scores.shape[2]
    wide = -(-columns // BLOCK_COLUMNS) * BLOCK_COLUMNS
    padding = ((0, 0), (0, 0), (0, wide - columns))
    scores = jnp.pad(tables.scores, padding, constant_values=FORBIDDEN)
    tables = tables._replace(scores=scores)
    start, end = _sides(tables)
    xs = scores.transpose(1, 0, 2), jnp.arange(scores.shape[1], dtype=jnp.int32)
    values, ends = _down(tables, start, end, xs)
    empty, empty_payers = _empty(tables)
    exponent = values.exponent.astype(scores.dtype)
    logs = exponent * LN2_HIGH, exponent * LN2_LOW, ends
    one = jnp.ones((), scores.dtype)
    sums = jax.vmap(sum_up, ((1, 1, 1), 0, None))(logs, empty, one)
    _, _, of_empty, log_z = sums
    posterior, payers, lost = _up(tables, start, end, (*xs, values), log_z)
    payers = payers + of_empty[:, None] * empty_payers
    posterior = posterior.transpose(1, 0, 2)[:, :, :columns]
    high, low = log_z
    return RowExpectation(high, low, posterior, payers, lost)


def _down(tables: RowTables, start: RowOverhang, end: RowOverhang, xs: tuple[Any, ...]):
    """``RowValues`` by row, and the log of what ends in it (M, B), over 2^exponent."""
    open_e, more_e, open_f, more_f = jnp.exp(-tables.costs).T[..., None]
    chains = _chains(open_f, more_f, tables.scores.shape[2])
    zero = jnp.zeros_like(tables.scores[:, 0])
    rows = start.k.shape[1]

    def step(carry: tuple[Any, ...], x: tuple[Any, ...]):
        m, e, before, exponent = carry
        scores, i = x
        m, e = jnp.exp(scores) * before, open_e * m + more_e * e
        f = _chain(m + e, chains)
        after = m + e + f
        ends = jnp.sum(m * _beside(end, i), axis=1)
        alive = ends > 0
        ends = jnp.log(jnp.where(alive, ends, 1)) - _row(end, i)
        ends = jnp.where(alive, ends, FORBIDDEN)
        later = jnp.minimum(i + 1, rows - 1)
        largest = jnp.max(after, axis=1)
        values = RowValues(before, e, f, exponent, largest)
        top = jnp.maximum(largest, _over(exponent, -_row(start, later)))
        scale, more = _power(top)
        exponent = exponent + more
        starts = _weights(start, later, exponent)
        m, e, after = (y * scale[:, None] for y in (m, e, after))
        before = jnp.concatenate([starts[:, :1], after[:, :-1] + starts[:, 1:]], 1)
        return (m, e, before, exponent), (values, ends)

    none = jnp.zeros_like(tables.m)
    first = zero, zero, _weights(start, jnp.int32(0), none), none
    return lax.scan(step, begun(first, tables.scores), xs)[1]


def _up(
    tables: RowTables,
    start: RowOverhang,
    end: RowOverhang,
    xs: tuple[Any, ...],
    log_z: tuple[jax.Array, jax.Array],
):
    """(posterior by row (M, B, N), payers (B, 4), bound on what is lost (B,))."""
    open_e, more_e, open_f, more_f = jnp.exp(-tables.costs).T[..., None]
    chains = _chains(jnp.ones_like(open_f), more_f, tables.scores.shape[2])
    zero = jnp.zeros_like(tables.scores[:, 0])
    tiny = jnp.finfo(zero.dtype).tiny * LOSSES_PER_CELL * zero.shape[1]

    def step(carry: tuple[Any, ...], x: tuple[Any, ...]):
        to_m, to_e, exponent, paid, lost = carry
        scores, i, values = x
        # All that a gap of the target's residues in the next column may become.
        to_f = _chain(to_m[:, ::-1], chains)[:, ::-1]
        turn = to_m + open_f * to_f
        ending = _weights(end, i, exponent)
        of_m = ending + turn + open_e * to_e
        of_e = turn + more_e * to_e
        similarity = jnp.exp(scores)
        q = similarity * of_m
        log_share = _less(values.exponent + exponent, log_z)
        share = jnp.exp(log_share)[:, None]
        m, e, f = similarity * values.before * share, values.e * share, values.f * share
        starting = _weights(start, i, values.exponent) * q * share
        gaps = [
            m * open_e * to_e,
            e * more_e * to_e,
            (m + e) * open_f * to_f,
            f * more_f * to_f,
        ]
        paid = _paid(paid, gaps, ((start, starting), (end, ending * m)), i)
        posterior = q * values.before * share
        top = jnp.max(jnp.maximum(of_e, q), axis=1)
        largest = jnp.maximum(top, jnp.max(jnp.maximum(of_m, to_f), axis=1))
        bound = (1 + 2 * values.largest) * (1 + 2 * largest) * share[:, 0]
        earlier = jnp.maximum(i - 1, 0)
        scale, more = _power(jnp.maximum(top, _over(exponent, -_row(end, earlier))))
        q = jnp.concatenate([q[:, 1:], jnp.zeros_like(q[:, :1])], 1)
        q, of_e = q * scale[:, None], of_e * scale[:, None]
        return (q, of_e, exponent + more, paid, lost + tiny * bound), posterior

    paid = jnp.zeros_like(tables.costs), (zero, zero)
    first = zero, zero, jnp.zeros_like(tables.m), paid, jnp.zeros_like(zero[:, 0])
    first = begun(first, tables.scores)
    (*_, (payers, columns), lost), posterior = lax.scan(step, first, xs, reverse=True)
    for side, flow in zip((start, end), columns, strict=True):
        opens, more = _counts(side.l, flow.dtype)
        each = jnp.sum(flow * opens, 1), jnp.sum(flow * more, 1)
        nothing = jnp.zeros_like(each[0])
        payers = payers + jnp.stack([nothing, nothing, *each], 1)
    return posterior, payers, lost


def _paid(
    paid: tuple[jax.Array, tuple[jax.Array, jax.Array]],
    gaps: Sequence[jax.Array],
    overhangs: Sequence[tuple[RowOverhang, jax.Array]],
    i: jax.Array,
):
    """The payers so far, with one more row: (B, 4), and for what hangs over at the
    start and at the end the flows by column (B, N)."""
    payers, columns = paid
    payers = payers + jnp.stack([jnp.sum(x, axis=1) for x in gaps], 1)
    more_columns = []
    for (side, flow), column in zip(overhangs, columns, strict=True):
        query, target = _at(side.query, i)[:, None], side.target
        cheaper = jnp.where(query == target, 0.5, jnp.where(query < target, 1.0, 0.0))
        cheaper = cheaper.astype(flow.dtype)
        alone = side.query_pays[:, None], side.target_pays[:, None]
        a, b = (
            jnp.where(side.both[:, None], x, pays.astype(flow.dtype))
            for x, pays in zip((cheaper, 1 - cheaper), alone, strict=True)
        )
        by_query = jnp.sum(flow * a, axis=1)
        opens, more = _counts(_at(side.k, i), flow.dtype)
        nothing = jnp.zeros_like(by_query)
        payers += jnp.stack([by_query * opens, by_query * more, nothing, nothing], 1)
        more_columns.append(column + flow * b)
    return payers, tuple(more_columns)


def _sides(tables: RowTables) -> tuple[RowOverhang, RowOverhang]:
    """Overhangs before each pair of residues, and after it."""
    rows, columns = (
        jnp.broadcast_to(jnp.arange(size, dtype=jnp.int32), (len(tables.m), size))
        for size in tables.scores.shape[1:]
    )
    open_e, more_e, open_f, more_f = tables.costs.T[..., None]

    def side(k: jax.Array, l: jax.Array, free_query: jax.Array, free_target: jax.Array):
        k, l = jnp.maximum(k, 0), jnp.maximum(l, 0)
        both = free_query & free_target & ~tables.local
        query_pays = ~free_query & ~tables.local
        target_pays = ~free_target & ~tables.local
        query = _gap(open_e, more_e, k)
        target = _gap(open_f, more_f, l)
        query = jnp.where((query_pays | both)[:, None], query, 0)
        target = jnp.where((target_pays | both)[:, None], target, 0)
        weight = jnp.exp(-target)
        return RowOverhang(k, l, query, target, weight, both, query_pays, target_pays)

    after = tables.m[:, None] - 1 - rows, tables.n[:, None] - 1 - columns
    return (
        side(rows, columns, tables.query_start, tables.target_start),
        side(*after, tables.query_end, tables.target_end),
    )


def _gap(opening: jax.Array, extending: jax.Array, k: jax.Array):
    cost = opening + jnp.maximum(k - 1, 0).astype(opening.dtype) * extending
    return jnp.where(k > 0, cost, 0)


def _counts(k: jax.Array, dtype: Any):
    """How many of k residues open a gap, and extend it."""
    return (k > 0).astype(dtype), jnp.maximum(k - 1, 0).astype(dtype)


def _empty(tables: RowTables):
    """Score of the alignment without pairs (B,), and who pays (B, 4)."""
    open_e, more_e, open_f, more_f = tables.costs.T
    costs = _gap(open_e, more_e, tables.m), _gap(open_f, more_f, tables.n)
    first, later = (
        [jnp.where(free, 0, 1) for free in frees]
        for frees in (
            (tables.query_start, tables.target_end),
            (tables.query_end, tables.target_start),
        )
    )
    of_first, of_later = (
        costs[0] * pays[0].astype(costs[0].dtype)
        + costs[1] * pays[1].astype(costs[0].dtype)
        for pays in (first, later)
    )
    turned = (tables.target_start | tables.query_end) & (of_later < of_first)
    cost = jnp.where(turned, of_later, of_first)
    pays = [jnp.where(turned, y, x) for x, y in zip(first, later, strict=True)]
    pays = [jnp.where(tables.local, 0, x).astype(cost.dtype) for x in pays]
    counts = _counts(tables.m, cost.dtype), _counts(tables.n, cost.dtype)
    payers = [x * pay for pay, both in zip(pays, counts, strict=True) for x in both]
    score = jnp.maximum(jnp.where(tables.local, 0, -cost), FORBIDDEN)
    return score, jnp.stack(payers, 1)


def _chains(opening: jax.Array, extending: jax.Array, columns: int) -> ChainMatrices:
    """For costs that are factors (B, 1)."""
    k = jnp.arange(BLOCK_COLUMNS + 1, dtype=jnp.int32)
    block = jnp.arange(columns // BLOCK_COLUMNS, dtype=jnp.int32)

    def power(base: jax.Array, exponent: jax.Array):
        """(B, ...) of a base (B, 1); 0 for negative exponents (...)."""
        exponent = jnp.expand_dims(exponent, 0)
        base = base.reshape(-1, *(1,) * (exponent.ndim - 1))
        found = base ** jnp.maximum(exponent, 0).astype(base.dtype)
        return jnp.where(exponent >= 0, found, 0)

    inside = power(extending, k[None] - k[:-1, None] - 1)
    whole = extending**BLOCK_COLUMNS
    blocks = power(whole, block[None] - block[:, None] - 1)
    decay = power(extending, k[None, :-1])
    return ChainMatrices(opening[:, :, None] * inside, blocks, decay)


def _chain(x: jax.Array, chains: ChainMatrices):
    """The sum over k < j of opening * extending^(j - 1 - k) x[k]: (B, N)."""
    batch, columns = x.shape
    x = x.reshape(batch, -1, BLOCK_COLUMNS)
    y = jnp.einsum("bck,bkl->bcl", x, chains.inside)
    enters = jnp.einsum("bc,bcd->bd", y[..., -1], chains.blocks)
    return (y[..., :-1] + enters[..., None] * chains.decay).reshape(batch, columns)


def _at(table: jax.Array, i: jax.Array):
    return lax.dynamic_index_in_dim(table, i, axis=1, keepdims=False)


def _row(side: RowOverhang, i: jax.Array):
    """The smallest cost of an overhang in row i (B,)."""
    return jnp.where(side.both, 0, _at(side.query, i))


def _beside(side: RowOverhang, i: jax.Array):
    """Weights of row i (B, N) over that of ``_row``; 0 is less than any."""
    query = jnp.where(side.both, jnp.exp(-_at(side.query, i)), 0)
    return jnp.maximum(query[:, None], side.weight)


def _weights(side: RowOverhang, i: jax.Array, exponent: jax.Array):
    """Weights of row i (B, N) over 2^exponent."""
    return _beside(side, i) * _over(exponent, -_row(side, i))[:, None]


def _over(exponent: jax.Array, log: jax.Array):
    """exp(log) over 2^exponent."""
    exponent = exponent.astype(log.dtype)
    return jnp.exp((log - exponent * LN2_HIGH) - exponent * LN2_LOW)


def _less(exponent: jax.Array, log_z: tuple[jax.Array, jax.Array]):
    """The log of 2^exponent over Z."""
    exponent = exponent.astype(log_z[0].dtype)
    return (exponent * LN2_HIGH - log_z[0]) + (exponent * LN2_LOW - log_z[1])


def _power(x: jax.Array):
    """(2^-k, k int32) with 2^k near x, from its bits; 1 and 0 where that is 0."""
    bits = lax.bitcast_convert_type(x, jnp.int32) >> 23
    k = jnp.where(x > 0, jnp.clip(bits - 127, -120, 120), 0)
    return lax.bitcast_convert_type((127 - k) << 23, jnp.float32), k
