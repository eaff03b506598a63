"""The two passes by rows of the table, without logarithms: fast on a CPU.

A row of a batch is (B, N): no array is skewed, and the similarity is read, the
posterior written, as they lie in memory. Weights are linear, times one power of two a
row and pair. With x = M + E, the chain of gaps along a row is a sum,

    F[j] = sum over k < j of  open * extend^(j - 1 - k) * x[k],

a product with a triangular matrix: ``ChainMatrices`` cut it into blocks of columns, and
the sums of blocks into a small triangle of their own. Where all pairs of the batch have
the same gap costs, they have one triangle.

The pass down leaves all that a pair may follow where the pass up will write its
probability, so that the posterior is the one array of the size of the similarity that
the passes fill. E is kept beside it where payers are asked for, and F computed again.

Weights far below the largest of their row vanish. How much that can matter is bounded
afterwards, from the values of both directions: a weight that is lost is below the
smallest normal number, and what it could have become is at most that times the largest
weight of the other direction. ``lost`` is the sum of these bounds. Above
``MAX_LOST_PROBABILITY`` rows prove nothing, and logarithms compute the pair. Everything
added is positive, so that rounding is relative.

Gap costs are numbers, adjacent gaps are allowed. Weights of overhangs are products of a
number of the row and one of the column, or, where both ends are free, the larger of the
two. Local alignments have none.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.similarity.arguments import FORBIDDEN
from jaxalign.similarity.arrays import loop_state
from jaxalign.similarity.costs import gap_of

# log 2 in two parts; products of the first with whole numbers below 2^13 are exact.
LN2_HIGH, LN2_LOW = 0.693115234375, 3.1946184945309417e-05
MAX_LOST_PROBABILITY = 1e-7  # as large as the rounding of one probability
BLOCK_COLUMNS = 20, 16, 24, 28, 32, 12, 40  # of a row that are one product, best first
LOSSES_PER_CELL = 64  # sums and products that may fall below the smallest number


class RowTables(NamedTuple):
    """A batch: ``scores`` (B, M, N) over T, forbidden beyond the lengths; ``costs``
    (B, 4) over T, or (1, 4) for all, open and extend of the query's residues, then of
    the target's; ``m``, ``n`` int32 (B,); the others bool (B,)."""

    scores: jax.Array
    costs: jax.Array
    m: jax.Array
    n: jax.Array
    query_start: jax.Array
    query_end: jax.Array
    target_start: jax.Array
    target_end: jax.Array


class RowForm(NamedTuple):
    """Static: ``local`` alignments have no overhangs; with ``payers`` they are counted
    as well."""

    local: bool
    payers: bool


class RowExpectation(NamedTuple):
    """Expectations of a batch.

    log Z (B,) is ``high`` + ``remainder``; ``posterior`` (B, M, N); ``payers`` (B, 4)
    as ``costs``, or None; ``lost`` (B,) bounds the probability that is missing, nan
    where numbers were too large.
    """

    high: jax.Array
    remainder: jax.Array
    posterior: jax.Array
    payers: jax.Array | None
    lost: jax.Array


class ChainMatrices(NamedTuple):
    """For C blocks of K columns, with 1 for B where costs are shared: ``inside`` (B, K,
    K + 1), from a block to its chains, and to what leaves it; ``blocks`` (B, C, C),
    from what leaves a block to what enters another; ``decay`` (B, 1, K)."""

    inside: jax.Array
    blocks: jax.Array
    decay: jax.Array


class RowOverhang(NamedTuple):
    """Overhangs at the start, or at the end, of k residues of the query by row and of l
    of the target by column, int32 (B, M) and (B, N).

    ``query`` (B, M) and ``target`` (B, N) are their costs, 0 where they are free, and
    ``weight`` (B, N) is exp(-``target``).
    ``both_free`` says that both are free, so that the smaller cost counts;
    ``query_pays`` and ``target_pays`` who pays otherwise; bool (B,).
    """

    k: jax.Array
    l: jax.Array
    query: jax.Array
    target: jax.Array
    weight: jax.Array
    both_free: jax.Array
    query_pays: jax.Array
    target_pays: jax.Array


Side = RowOverhang | None  # None for local alignments


class RowValues(NamedTuple):
    """By row, over 2^``exponent`` (M, B): E (M, B, N) or None; the ``total`` (M, B) of
    all weights, since their largest takes longer to find."""

    e: jax.Array | None
    exponent: jax.Array
    total: jax.Array


def expected(tables: RowTables, form: RowForm) -> RowExpectation:
    """Score and expectations of a batch, by one pass down and one pass up."""
    columns = tables.scores.shape[2]
    wide = -(-columns // block_columns(columns)) * block_columns(columns)
    padding = ((0, 0), (0, 0), (0, wide - columns))
    scores = jnp.pad(tables.scores, padding, constant_values=FORBIDDEN)
    tables = tables._replace(scores=scores)
    start, end = (None, None) if form.local else overhangs(tables)
    before, values, ends = _down(tables, start, end, form)
    empty, empty_payers = empty_alignment(tables, form.local)
    # Z (B,) as 2^top exp(rest), from the logs of what ends by row, over 2^exponent, and
    # the log of no pairs; and the probability of no pairs.
    alive = ends > FORBIDDEN
    top = jnp.max(jnp.where(alive, values.exponent, jnp.iinfo(jnp.int32).min), 0)
    top = jnp.where(jnp.any(alive, axis=0), top, 0)
    high, low = _log(top, ends.dtype)
    logs = sum(_log(values.exponent - top[None], ends.dtype), ends)
    empty = (empty - high) - low
    largest = jnp.maximum(jnp.max(logs, axis=0), empty)
    none = jnp.exp(empty - largest)
    total = jnp.sum(jnp.exp(logs - largest[None]), axis=0) + none
    log_z, of_empty = (top, jnp.log(total) + largest), none / total
    posterior, payers, lost = _up(tables, start, end, values, before, log_z)
    if payers is not None:
        payers = payers + of_empty[:, None] * empty_payers
    (high, low), remainder = _log(log_z[0], scores.dtype), log_z[1]
    return RowExpectation(
        high, low + remainder, posterior[:, :, :columns], payers, lost
    )


def block_columns(columns: int) -> int:
    """The width of a block, which leaves the fewest columns to fill up."""
    return min(BLOCK_COLUMNS, key=lambda width: -columns % width)


def _log(exponent: jax.Array, dtype: Any):
    """The log of 2^exponent in two parts, the first exact below 5,900."""
    exponent = exponent.astype(dtype)
    return exponent * LN2_HIGH, exponent * LN2_LOW


def _down(tables: RowTables, start: Side, end: Side, form: RowForm):
    """All that a pair in a cell may follow (B, M, N), ``RowValues``, and the log of
    what ends in a row (M, B), over 2^exponent."""
    open_e, more_e, open_f, more_f = jnp.exp(-tables.costs).T[..., None]
    chains = _chains(open_f, more_f, tables.scores.shape[2])
    zero = jnp.zeros_like(tables.scores[:, 0])
    rows = tables.scores.shape[1]

    def step(carry: tuple[Any, ...], i: jax.Array):
        # After the row above, and E of this one, over the exponent of the row above.
        after, e, scale, exponent, table = carry
        shifted = jnp.pad(after[:, :-1], ((0, 0), (1, 0)))
        before = shifted * scale[:, None] + _weights(start, i, exponent)
        table = _with_row(table, before, i)
        m, e = jnp.exp(_row_of(tables.scores, i)) * before, e * scale[:, None]
        x = m + e
        after = x + _chain(x, chains)
        ends = _total(m if end is None else m * _beside(end, i))
        alive = ends > 0
        ends = jnp.log(jnp.where(alive, ends, 1))
        ends = jnp.where(
            alive, ends if end is None else ends - _cost(end, i), FORBIDDEN
        )
        later = jnp.minimum(i + 1, rows - 1)
        total = _total(after)
        values = RowValues(e if form.payers else None, exponent, total)
        scale, shift = _power(
            jnp.maximum(total, _largest_weight(start, later, exponent))
        )
        e = open_e * m + more_e * e
        return (after, e, scale, exponent + shift, table), (values, ends)

    ones = jnp.ones_like(zero[:, 0])
    none = jnp.zeros(ones.shape, jnp.int32)
    first = zero, zero, ones, none, jnp.zeros_like(tables.scores)
    xs = jnp.arange(rows, dtype=jnp.int32)
    carry, (values, ends) = lax.scan(step, loop_state(first, tables.scores), xs)
    return carry[-1], values, ends


def _up(
    tables: RowTables,
    start: Side,
    end: Side,
    values: RowValues,
    before: jax.Array,
    log_z: tuple[jax.Array, jax.Array],
):
    """(posterior (B, M, N), payers (B, 4) or None, bound on what is lost (B,)); the
    posterior takes the place of ``before``, row by row."""
    open_e, more_e, open_f, more_f = jnp.exp(-tables.costs).T[..., None]
    rows, width = tables.scores.shape[1:]
    chains = _chains(open_f, more_f, width)
    # Chain matrices with the columns reversed.
    unit = _chains(jnp.ones_like(open_f), more_f, width)
    inside, blocks = (x[:, ::-1] for x in unit[:2])
    inside = jnp.concatenate([inside[..., -2::-1], inside[..., -1:]], -1)
    chains_back = ChainMatrices(inside, blocks[..., ::-1], unit.decay[..., ::-1])
    zero = jnp.zeros_like(tables.scores[:, 0])
    tiny = jnp.finfo(zero.dtype).tiny * LOSSES_PER_CELL * width
    pays = values.e is not None

    def step(carry: tuple[Any, ...], x: tuple[Any, ...]):
        # Of the row below, over its exponent: pairs, and all that E may become.
        q, to_e, scale, exponent, paid, lost, table, before = carry
        i, values = x
        to_m = jnp.pad(q[:, 1:], ((0, 0), (0, 1))) * scale[:, None]
        to_e = to_e * scale[:, None]
        # All that a gap of the target's residues in the next column may become.
        to_f = _chain(to_m, chains_back)
        turn = to_m + open_f * to_f
        ending = _weights(end, i, exponent)
        of_m = ending + turn + open_e * to_e
        of_e = turn + more_e * to_e
        similarity = jnp.exp(_row_of(tables.scores, i))
        q = similarity * of_m
        share = jnp.exp(_less(values.exponent + exponent, log_z))[:, None]
        if pays:
            m, e = similarity * before, values.e
            either = m + e
            f = _chain(either, chains)
            pairs = (m, to_e), (e, to_e), (either, to_f), (f, to_f)
            costs = jnp.concatenate([open_e, more_e, open_f, more_f], 1)
            gaps = jnp.stack([_total(a * b) for a, b in pairs], 1) * costs * share
            flows = []
            if start is not None and end is not None:
                starting = _weights(start, i, values.exponent) * q * share
                flows = [(start, starting), (end, ending * m * share)]
            paid = _paid(paid, gaps, flows, i)
        table = _with_row(table, q * before * share, i)
        # Read after the row is written: otherwise XLA copies the table.
        earlier = jnp.maximum(i - 1, 0)
        before = _row_of(table, earlier)
        total = _total(of_e + q + of_m + to_f)
        # What comes from the row below is scaled to at most 2.
        bound = 4 * (1 + values.total) * (1 + total) * share[:, 0]
        scale, shift = _power(
            jnp.maximum(total, _largest_weight(end, earlier, exponent))
        )
        exponent, lost = exponent + shift, lost + tiny * bound
        return (q, of_e, scale, exponent, paid, lost, table, before), None

    nothing, ones = jnp.zeros_like(zero[:, 0]), jnp.ones_like(zero[:, 0])
    none = jnp.zeros(ones.shape, jnp.int32)
    columns = () if start is None else (zero, zero)
    paid = (jnp.zeros((len(ones), 4), zero.dtype), columns) if pays else None
    first = zero, zero, ones, none, paid, nothing
    first = (*loop_state(first, tables.scores), before, before[:, -1])
    xs = jnp.arange(rows, dtype=jnp.int32), values
    carry, _ = lax.scan(step, first, xs, reverse=True)
    *_, paid, lost, posterior, _ = carry
    if paid is None:
        return posterior, None, lost
    payers, columns = paid
    sides = [side for side in (start, end) if side is not None]
    for side, flow in zip(sides, columns, strict=True):
        opens, extends = counts(side.l, flow.dtype)
        each = jnp.sum(flow * opens, 1), jnp.sum(flow * extends, 1)
        payers = payers + jnp.stack([nothing, nothing, *each], 1)
    return posterior, payers, lost


def _paid(
    paid: tuple[jax.Array, tuple[jax.Array, ...]],
    gaps: jax.Array,
    hanging: Sequence[tuple[RowOverhang, jax.Array]],
    i: jax.Array,
):
    """The payers so far, with ``gaps`` (B, 4) of one more row: (B, 4), and for what
    hangs over at the start and at the end the flows by column (B, N)."""
    payers, columns = paid
    payers = payers + gaps
    more_columns = []
    for (side, flow), column in zip(hanging, columns, strict=True):
        query, target = _row_of(side.query, i)[:, None], side.target
        cheaper = jnp.where(query == target, 0.5, jnp.where(query < target, 1.0, 0.0))
        cheaper = cheaper.astype(flow.dtype)
        single_payers = side.query_pays[:, None], side.target_pays[:, None]
        a, b = (
            jnp.where(side.both_free[:, None], x, pays.astype(flow.dtype))
            for x, pays in zip((cheaper, 1 - cheaper), single_payers, strict=True)
        )
        by_query = _total(flow * a)
        opens, extends = counts(_row_of(side.k, i), flow.dtype)
        nothing = jnp.zeros_like(by_query)
        payers += jnp.stack([by_query * opens, by_query * extends, nothing, nothing], 1)
        more_columns.append(column + flow * b)
    return payers, tuple(more_columns)


def overhangs(tables: RowTables) -> tuple[RowOverhang, RowOverhang]:
    """Overhangs before each pair of residues, and after it."""
    rows, columns = (
        jnp.broadcast_to(jnp.arange(size, dtype=jnp.int32), (len(tables.m), size))
        for size in tables.scores.shape[1:]
    )
    open_e, more_e, open_f, more_f = tables.costs.T[..., None]

    def side(k: jax.Array, l: jax.Array, free_query: jax.Array, free_target: jax.Array):
        k, l = jnp.maximum(k, 0), jnp.maximum(l, 0)
        both_free = free_query & free_target
        query_pays, target_pays = ~free_query, ~free_target
        query = gap_of(open_e, more_e, k)
        target = gap_of(open_f, more_f, l)
        query = jnp.where((query_pays | both_free)[:, None], query, 0)
        target = jnp.where((target_pays | both_free)[:, None], target, 0)
        weight = jnp.exp(-target)
        return RowOverhang(
            k, l, query, target, weight, both_free, query_pays, target_pays
        )

    after = tables.m[:, None] - 1 - rows, tables.n[:, None] - 1 - columns
    return (
        side(rows, columns, tables.query_start, tables.target_start),
        side(*after, tables.query_end, tables.target_end),
    )


def counts(k: jax.Array, dtype: Any):
    """Count the residues that open a gap of k residues, and that extend it."""
    return (k > 0).astype(dtype), jnp.maximum(k - 1, 0).astype(dtype)


def empty_alignment(tables: RowTables, local: bool):
    """Score of the alignment without pairs (B,), and who pays (B, 4)."""
    if local:
        nothing = jnp.zeros_like(tables.scores[:, 0, 0])
        return nothing, jnp.zeros((len(nothing), 4), nothing.dtype)
    open_e, more_e, open_f, more_f = tables.costs.T
    costs = gap_of(open_e, more_e, tables.m), gap_of(open_f, more_f, tables.n)
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
    pays = [x.astype(cost.dtype) for x in pays]
    numbers = counts(tables.m, cost.dtype), counts(tables.n, cost.dtype)
    payers = [x * pay for pay, pair in zip(pays, numbers, strict=True) for x in pair]
    return jnp.maximum(-cost, FORBIDDEN), jnp.stack(payers, 1)


def _chains(opening: jax.Array, extending: jax.Array, columns: int) -> ChainMatrices:
    """Chain matrices of costs given as factors (B, 1)."""
    width = block_columns(columns)
    k = jnp.arange(width + 1, dtype=jnp.int32)
    block = jnp.arange(columns // width, dtype=jnp.int32)

    def power(base: jax.Array, exponent: jax.Array):
        """(B, ...) of a base (B, 1); 0 for negative exponents (...)."""
        exponent = jnp.expand_dims(exponent, 0)
        base = base.reshape(-1, *(1,) * (exponent.ndim - 1))
        raised = base ** jnp.maximum(exponent, 0).astype(base.dtype)
        return jnp.where(exponent >= 0, raised, 0)

    inside = power(extending, k[None] - k[:-1, None] - 1)
    blocks = power(extending**width, block[None] - block[:, None] - 1)
    decay = power(extending, k[None, :-1])
    return ChainMatrices(opening[:, :, None] * inside, blocks, decay)


def _chain(x: jax.Array, chains: ChainMatrices):
    """The sum over k < j of opening * extending^(j - 1 - k) x[k]: (B, N); over k > j by
    turned matrices."""
    y = x.reshape(len(x), -1, chains.inside.shape[1])
    y = _product(y, chains.inside)
    enters = _product(y[..., -1:].swapaxes(1, 2), chains.blocks).swapaxes(1, 2)
    return (y[..., :-1] + enters * chains.decay).reshape(x.shape)


def _product(x: jax.Array, matrices: jax.Array):
    """(B, C, K) times (B, K, L), or times (1, K, L): one product then."""
    if len(matrices) > 1:
        return jnp.einsum("bck,bkl->bcl", x, matrices)
    flat = x.reshape(-1, x.shape[-1]) @ matrices[0]
    return flat.reshape(*x.shape[:-1], -1)


def _total(x: jax.Array):
    """Sum each row, by a product, since XLA reduces the last axis slowly."""
    return x @ jnp.ones_like(x[0])


def _row_of(table: jax.Array, i: jax.Array):
    """Row i of a table (B, M, ...)."""
    return lax.dynamic_index_in_dim(table, i, axis=1, keepdims=False)


def _with_row(table: jax.Array, row: jax.Array, i: jax.Array):
    return lax.dynamic_update_slice_in_dim(table, row[:, None], i, axis=1)


def _cost(side: RowOverhang, i: jax.Array):
    """The smallest cost of an overhang in row i (B,)."""
    return jnp.where(side.both_free, 0, _row_of(side.query, i))


def _beside(side: RowOverhang, i: jax.Array):
    """Weights of row i (B, N) over that of ``_row``; 0 is less than any."""
    query = jnp.where(side.both_free, jnp.exp(-_row_of(side.query, i)), 0)
    return jnp.maximum(query[:, None], side.weight)


def _weights(side: Side, i: jax.Array, exponent: jax.Array):
    """Weights of row i over 2^exponent, (B, N), or (B, 1) for all columns."""
    largest = _largest_weight(side, i, exponent)[:, None]
    return largest if side is None else _beside(side, i) * largest


def _largest_weight(side: Side, i: jax.Array, exponent: jax.Array):
    """The largest of the weights of row i over 2^exponent (B,)."""
    if side is None:  # 2^-exponent from its bits, 0 below the smallest normal number
        bits = (127 - jnp.clip(exponent, -126, 127)) << 23
        return lax.bitcast_convert_type(bits, jnp.float32)
    log = -_cost(side, i)
    high, low = _log(exponent, log.dtype)
    return jnp.exp((log - high) - low)


def _less(exponent: jax.Array, log_z: tuple[jax.Array, jax.Array]):
    """The log of 2^exponent over Z; powers are subtracted as whole numbers, which long
    alignments make too large for a logarithm in float32."""
    high, low = _log(exponent - log_z[0], log_z[1].dtype)
    return high + (low - log_z[1])


def _power(x: jax.Array):
    """(2^-k, k int32) with 2^k near x, from its bits; 1 and 0 where that is 0."""
    bits = lax.bitcast_convert_type(x, jnp.int32) >> 23
    k = jnp.where(x > 0, jnp.clip(bits - 127, -120, 120), 0)
    return lax.bitcast_convert_type((127 - k) << 23, jnp.float32), k
