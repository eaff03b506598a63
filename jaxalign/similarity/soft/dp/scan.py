"""The two passes over anti-diagonals behind ``soft.dp.free_energy``: values, then
shares.

States of a cell (i, j): M, residues i and j are a pair; E, residue i of the query
stands against a gap; F, residue j of the target does. Between two pairs all E come
before all F, so that a set of pairs is exactly one path. Everything is divided by the
temperature, and the values of diagonal d are kept relative to a base, an integer near
their largest: float32 then keeps its digits however long the sequences are.

**In little memory** most diagonals are computed again in the reverse pass. The forward
pass keeps the carry into every block of diagonals. The scores of a block are read from
the table, and its posterior is added to one, so that neither is kept by diagonals.
Where the similarity is given as vectors, the scores of a block are computed from them,
and its posterior is multiplied with them at once: then no array has the size of the
table.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.similarity.arguments import COSTLY, FORBIDDEN, Factors, ModeRules
from jaxalign.similarity.arrays import down, loop_state, skew, unskew, up
from jaxalign.similarity.band import BandTable
from jaxalign.similarity.costs import Costs, CostTable, Weights


class Kernels(NamedTuple):
    """Two functions of one pair that replace the two passes, for gap costs that are
    numbers and with adjacent gaps; what hangs over they derive from the costs.

    Both take (similarity, costs (4,): open and extend of the query's residues, then of
    the target's, rules, unit), all over T; ``unit`` is a power of two near 1 / T.
    ``score`` returns log Z as (high, rest), ``expected`` these, the posterior (M, N)
    and, if its last argument is true, the expected payers (4,). ``otherwise`` is the
    ``block`` for entropies; with ``pairs_only`` for all but gradients by the similarity
    alone, and for scores without a gradient.
    """

    score: Callable
    expected: Callable
    otherwise: int | None
    pairs_only: bool = False


class Banded(NamedTuple):
    """A band of half width ``width`` (``similarity.band``), and the engine in it."""

    width: int
    block: int | None


Block = int | Kernels | Banded | None


def log_z(
    function: Callable[..., Any],
    scaled: Weights,
    temperature: jax.Array,
    rules: ModeRules,
):
    """Score by a function of ``Kernels``, and what else that returns; ``scaled`` are
    weights over T."""
    (open_e, open_f), (extend_e, extend_f) = scaled.opening, scaled.extending
    costs = jnp.stack([open_e, extend_e, open_f, extend_f])
    high, remainder, *means = function(
        scaled.similarity, costs, rules, _unit(temperature)
    )
    high = jax.lax.stop_gradient(high)
    value = temperature * high + temperature * remainder
    return jnp.where(high + remainder > -COSTLY / 2, value, -jnp.inf), *means


def _unit(temperature: jax.Array):
    """A power of two near 1 / T, at least 1; from its bits, since exp2 may round."""
    exponent = jnp.floor(-jnp.log2(jax.lax.stop_gradient(temperature)))
    bits = (jnp.clip(exponent, 0, 100).astype(jnp.int32) + 127) << 23
    return jax.lax.bitcast_convert_type(bits, jnp.float32)


def diagonals(
    table: CostTable,
    similarity: jax.Array | None,
    rows_of: Callable[[str, jax.Array], jax.Array] = lambda _, x: x,
):
    """The input of the forward scan: d, the scores and the full costs, all skewed.

    Without ``similarity`` its scores are left out. ``rows_of`` cuts arrays (D, ...)
    into what one scan takes (blocks, or itself).
    """
    count = sum(table.shape) + 1
    xs = {"d": jnp.arange(count, dtype=jnp.int32)}
    if similarity is not None and isinstance(table, BandTable):
        xs["similarity"] = table.by_lanes(similarity)
    elif similarity is not None:
        whole = jnp.pad(similarity, ((1, 0), (1, 0)), constant_values=FORBIDDEN)
        xs["similarity"] = skew(whole, FORBIDDEN)
    return {name: rows_of(name, x) for name, x in (xs | table.scanned).items()}


def successors(
    table: CostTable, rows_of: Callable[[str, jax.Array], jax.Array] = lambda _, x: x
):
    """The input of the reverse scan: full gap costs one diagonal later."""
    count = sum(table.shape) + 1
    xs = {"d": jnp.arange(count, dtype=jnp.int32)}
    for name, x in table.scanned.items():
        later = jnp.pad(x[1:], ((0, 1), (0, 0))) if name in table.costs else x
        xs[name] = later
    return {name: rows_of(name, x) for name, x in xs.items()}


def as_table(table: CostTable, out: dict) -> dict:
    """The output of the reverse scan with its posterior as (M, N)."""
    if "similarity" not in out:
        return out
    if isinstance(table, BandTable):
        return out | {"similarity": table.as_table(out["similarity"])}
    whole = unskew(out["similarity"], table.shape[1] + 1)
    return out | {"similarity": whole[1:, 1:]}


class ForwardValues(NamedTuple):
    """A forward pass, by diagonal.

    ``m, e, f`` (D, R) relative to ``base`` = ``high + low``, all (D,); ``ends`` (D,)
    the log weight of all paths that end on the diagonal, relative to it as well.
    """

    m: jax.Array
    e: jax.Array
    f: jax.Array
    high: jax.Array
    low: jax.Array
    ends: jax.Array


def lse(a: jax.Array, b: jax.Array):
    """log(exp(a) + exp(b)); smooth where a == b, to every order.

    Which one is larger is chosen, not computed: max and abs have kinks. No custom rule
    either: before JAX 0.12 ``jvp`` of ``grad`` drops those of functions in a loop.
    """
    first = a >= b
    large, small = lax.select(first, a, b), lax.select(first, b, a)
    return large + jnp.log1p(jnp.exp(small - large))


def first_carry(table: CostTable, dtype: Any):
    """Before diagonal 0: M, E, F, M or E (before F), B of two diagonals, and base."""
    dead = jnp.full(table.rows, FORBIDDEN, dtype)
    zero = jnp.zeros((), dtype)
    return loop_state((dead, dead, dead, dead, dead, dead, zero, zero), table.rules.m)


def forward(
    table: CostTable, carry: tuple[jax.Array, ...], xs: Costs
) -> tuple[tuple, ForwardValues]:
    """Diagonals ``xs["d"]`` in order -> (carry, everything they hold)."""
    return lax.scan(partial(_advance, table), carry, xs)


def forward_ends(table: CostTable, carry: tuple[jax.Array, ...], xs: Costs):
    """The same without the tables: all that a score needs."""

    def step(carry: tuple[jax.Array, ...], x: Any):
        carry, values = _advance(table, carry, x)
        return carry, (values.high, values.low, values.ends)

    return lax.scan(step, carry, xs)


def _advance(
    table: CostTable, carry: tuple[jax.Array, ...], x: Costs
) -> tuple[tuple, ForwardValues]:
    """One diagonal.

    M[i,j] = s[i,j] + B[i-1,j-1]            B = lse(start[i,j], M, E, F)
    E[i,j] = lse(M[i-1,j] - open, E[i-1,j] - extend)
    F[i,j] = lse(lse(M, E)[i,j-1] - open, F[i,j-1] - extend)
    """
    *lanes, high, low = carry
    d = x["d"]
    m1, e1, f1, t1, b1, b2 = (table.ahead(y, d) for y in lanes)
    cost = {name: table.at(name, x, d) for name in table.costs}
    m = x["similarity"] + down(b2, FORBIDDEN)
    e = lse(
        down(m1, FORBIDDEN) - cost["open_e"], down(e1, FORBIDDEN) - cost["extend_e"]
    )
    f = lse(t1 - cost["open_f"], f1 - cost["extend_f"])
    me = lse(m, e)
    a = lse(me, f)
    b = lse(table.start(x, d)[0] - high - low, a)
    best = jnp.max(jnp.where(table.core(d), a, FORBIDDEN))
    shift = jnp.where(best > -COSTLY / 2, jnp.round(best), 0)
    shift = lax.stop_gradient(shift)
    t, floor = jnp.where(table.rules.adjacent, me, m), lax.full_like(m, FORBIDDEN)
    m, e, f, t, b, b1 = (lax.max(y - shift, floor) for y in (m, e, f, t, b, b1))
    high, low = two_sum(high, low, shift)
    ending = m + table.end(x, d)[0]
    largest = lax.stop_gradient(jnp.max(ending))
    ends = largest + jnp.log(jnp.sum(jnp.exp(ending - largest)))
    return (m, e, f, t, b, b1, high, low), ForwardValues(m, e, f, high, low, ends)


def two_sum(high: jax.Array, low: jax.Array, term: jax.Array):
    """(high + low) + more with the rounding error of the sum kept in low."""
    total = high + term
    part = total - high
    return total, low + ((high - (total - part)) + (term - part))


class Flow(NamedTuple):
    """The reverse pass between two diagonals: posteriors of d + 1 and of d + 2."""

    m1: jax.Array
    e1: jax.Array
    f1: jax.Array
    m2: jax.Array
    sums: dict  # (R,) each: by row, or by column in the lane where the column is


def first_flow(table: CostTable, dtype: Any, outputs: frozenset[str]) -> Flow:
    zero = jnp.zeros(table.rows, dtype)
    arrays = table.costs | table.hangs | {"entropy": (zero, 0)}
    sums = {name: zero for name in sorted(outputs & set(arrays) - table.by_diagonal)}
    return loop_state(Flow(zero, zero, zero, zero, sums), table.rules.m)


def reverse(
    table: CostTable,
    flow: Flow,
    xs: Costs,
    values: ForwardValues,
    shares: jax.Array,
    outputs: frozenset[str],
):
    """Push the posterior back: each cell splits what arrives among its predecessors.

    ``shares`` (D,) is the probability that the path ends on the diagonal. Every split
    is normalised on its own, so nothing can exceed 1 and dead cells carry exactly 0.
    The cell at hand is the predecessor: it sees its own M, E, F and takes its share of
    the posteriors of E[i+1,j], F[i,j+1] and M[i+1,j+1].

    Returns (flow, by diagonal: posterior, column sums and full flows of ``outputs``).
    """
    adjacent = table.rules.adjacent

    def step(flow: Flow, x: Any):
        x, value, share = x
        d = x["d"]
        cost = {name: table.after(name, x, d) for name in table.costs}
        m1, e1, f1, m2 = (table.back(y, d) for y in flow[:4])
        start, start_a, start_b = table.start(x, d)
        end, end_a, end_b = table.end(x, d)
        m, e, f = value.m, value.e, value.f
        ending = share * jnp.exp(m + end - value.ends)
        to_e, to_f, to_m = up(e1), f1, up(m2)
        turn = jnp.where(adjacent, e, FORBIDDEN)
        of_e = _split(to_e, m - cost["open_e"], e - cost["extend_e"])
        of_f = _split(
            to_f, m - cost["open_f"], turn - cost["open_f"], f - cost["extend_f"]
        )
        of_m = _split(to_m, m, e, f, start - value.high - value.low)
        new_m = ending + of_e[0] + of_f[0] + of_m[0]
        new_e = of_e[1] + of_f[1] + of_m[1]
        new_f = of_f[2] + of_m[2]
        flows = {
            "open_e": -of_e[0],
            "extend_e": -of_e[1],
            "open_f": -(of_f[0] + of_f[1]),
            "extend_f": -of_f[2],
            "start_query": -of_m[3] * start_a,
            "start_target": -of_m[3] * start_b,
            "end_query": -ending * end_a,
            "end_target": -ending * end_b,
        }
        if "entropy" in outputs:
            splits = ((to_e, of_e), (to_f, of_f), (to_m, of_m))
            # Each split adds -sum of part log(part / total).
            flows["entropy"] = sum(
                xlogx(total) - sum(xlogx(part) for part in parts)
                for total, parts in splits
            ) - xlogx(ending)
        out = {"similarity": new_m} if "similarity" in outputs else {}
        sums = collect(table, flow.sums, flows, out, outputs)
        return Flow(new_m, new_e, new_f, m1, sums), out

    return lax.scan(step, flow, (xs, values, shares), reverse=True)


def collect(
    table: CostTable,
    sums: dict[str, jax.Array],
    flows: dict[str, jax.Array],
    out: dict[str, jax.Array],
    outputs: frozenset[str],
):
    """Add the flows of a diagonal to their sums; into ``out`` what leaves the loop.

    A sum by column stands in the lane where its column is, one lane down a step, and
    is complete when it reaches lane 0.
    """
    arrays, added = table.costs | table.hangs, {}
    for name, total in sums.items():
        if name in arrays and arrays[name][1] == 1 and arrays[name][0].ndim == 1:
            added[name] = up(total) + flows[name]
            out[name] = added[name][0]
        else:
            added[name] = total + flows[name]
    for name in sorted(outputs & table.by_diagonal):
        out[name] = flows[name]
    return added


def _split(total: jax.Array, *values: jax.Array):
    """``total`` among predecessors of these log weights."""
    largest = values[0]
    for value in values[1:]:
        largest = lax.max(largest, value)
    largest = lax.stop_gradient(largest)
    parts = [jnp.exp(value - largest) for value in values]
    scale = total / sum(parts[1:], parts[0])
    return [part * scale for part in parts]


def xlogx(p: jax.Array):
    """p log p, 0 at 0; derivatives up to the third are finite.

    They divide by p up to three times: below the third root of the smallest number the
    logarithm is a constant, which changes a term by less than that root.
    """
    return p * jnp.log(jnp.maximum(p, jnp.finfo(p.dtype).tiny ** (1 / 3)))


BLOCK_DIAGONALS = 64  # computed anew at a time
VECTORS = ("query_vectors", "target_vectors")


def run(block: int, table: CostTable, similarity: jax.Array | Factors):
    """(high, low, ends) of all diagonals, and the function of the reverse pass."""
    dtype = similarity.dtype
    count = sum(table.shape) + 1
    banded = isinstance(table, BandTable)
    blocks = -(-count // block)
    vectors: Any = similarity if isinstance(similarity, Factors) else None
    scores = None if isinstance(similarity, Factors) else similarity

    def cut(name: str, x: jax.Array):
        if name == "d":
            return jnp.arange(blocks * block, dtype=x.dtype).reshape(blocks, block)
        fill = FORBIDDEN if name == "similarity" else 0
        widths = ((0, blocks * block - count),) + ((0, 0),) * (x.ndim - 1)
        x = jnp.pad(x, widths, constant_values=fill)
        return x.reshape(blocks, block, *x.shape[1:])

    def join(x: jax.Array):
        return x.reshape(blocks * block, *x.shape[2:])[:count]

    whole = not (vectors or banded)
    padded: Any = None
    if scores is not None and not banded:
        # The table in whole tiles of rows, after a row 0, with columns on both sides
        # that a tile beyond it reads.
        border = (2 * block, 2 * block)
        padded = jnp.pad(scores, ((1, -(scores.shape[0] + 1) % block), border))

    def scored(xs: Costs):
        if banded:
            return xs
        if whole:
            cells = _by_diagonal(_tiles(padded, block, xs["d"][0]), table.rows)
        else:
            cells = products(vectors, xs["d"])
        inside = jax.vmap(table.core)(xs["d"])
        return xs | {"similarity": jnp.where(inside, cells, FORBIDDEN)}

    xs = diagonals(table, scores if banded else None, cut)

    def forward_block(carry: Any, xs: Costs):
        after, ends = forward_ends(table, carry, scored(xs))
        return after, (carry, ends)

    start = first_carry(table, dtype)
    _, (entering, ends) = lax.scan(forward_block, start, xs)

    def finish(on_diagonal: jax.Array, outputs: frozenset[str]):
        spent = outputs & set(VECTORS)
        inner = outputs - spent | ({"similarity"} if spent else frozenset())

        def back(carry: Any, x: Any):
            flow, sums, pairs = carry
            entering, xs, later, shares = x
            _, values = forward(table, entering, scored(xs))
            flow, out = reverse(table, flow, later, values, shares, inner)
            if vectors and spent:
                _, pull = jax.vjp(lambda v: products(v, xs["d"]), vectors)
                (change,) = pull(out.pop("similarity"))
                sums = jax.tree.map(jnp.add, sums, change)
            elif pairs is not None:
                pairs = _added(pairs, block, xs["d"][0], out.pop("similarity"))
            return (flow, sums, pairs), out

        later = successors(table, cut)
        flow = first_flow(table, dtype, outputs)
        sums = loop_state(jax.tree.map(jnp.zeros_like, vectors), table.rules.m)
        pairs = None
        if whole and "similarity" in outputs:
            pairs = loop_state(jnp.zeros_like(padded), table.rules.m)
        every = entering, xs, later, cut("shares", on_diagonal)
        carry, out = lax.scan(back, (flow, sums, pairs), every, reverse=True)
        (flow, sums, pairs), out = carry, jax.tree.map(join, out)
        if pairs is not None:
            (m, n), border = table.shape, 2 * block
            out["similarity"] = pairs[1 : m + 1, border : border + n]
        if sums is not None:
            out |= dict(zip(VECTORS, sums, strict=True))
        return flow, as_table(table, out) if banded else out

    return tuple(join(x) for x in ends), finish


def _start(padded: jax.Array, block: int, tile: jax.Array, d: jax.Array):
    """The first column that the cells of a tile on the diagonals from ``d`` on have."""
    first = d - tile * block - (block - 1) + 2 * block - 1
    return jnp.clip(first, 0, padded.shape[1] - (2 * block - 1))


def _tiles(padded: jax.Array, block: int, d: jax.Array):
    """(T, B, 2 B - 1): of each tile of rows the columns of B diagonals from d on."""
    tiles = padded.reshape(-1, block, padded.shape[1])
    number = jnp.arange(tiles.shape[0], dtype=d.dtype)

    def cut(tile: jax.Array, k: jax.Array):
        start = _start(padded, block, k, d)
        return lax.dynamic_slice_in_dim(tile, start, 2 * block - 1, axis=1)

    return jax.vmap(cut)(tiles, number)


def _added(padded: jax.Array, block: int, d: jax.Array, values: jax.Array):
    """``padded`` with the values (B, R) of diagonals d ... d + B - 1 added."""
    rows, wide = padded.shape[0], 2 * block - 1
    values = jnp.pad(values, ((0, 0), (0, rows - values.shape[1])))
    values = values.reshape(block, -1, block).transpose(1, 2, 0)
    values = jnp.pad(values, ((0, 0), (0, 0), (0, block - 2)))
    values = values.reshape(values.shape[0], -1)
    values = jnp.pad(values, ((0, 0), (block - 1, 1))).reshape(-1, block, wide)

    def add(padded: jax.Array, x: tuple[jax.Array, jax.Array]):
        k, change = x
        at = k * block, _start(padded, block, k, d)
        before = lax.dynamic_slice(padded, at, (block, wide))
        return lax.dynamic_update_slice(padded, before + change, at), None

    number = jnp.arange(values.shape[0], dtype=d.dtype)
    return lax.scan(add, padded, (number, values))[0]


def products(factors: Factors, d: jax.Array):
    """Dot products of the cells of consecutive diagonals ``d`` (B,): (B, M + 1).

    Lane i of row q holds the pair (i - 1, d[q] - i - 1), or zero outside of the table.
    Rows go in tiles of B, whose cells on these diagonals lie in 2 B - 1 columns. A tile
    is one small matrix product, half of which is used.
    """
    (size, width), block = factors.query.shape, d.shape[0]
    rows, columns = size + 1, factors.target.shape[0] + 1
    tiles, wide = -(-rows // block), 2 * block - 1
    a = jnp.pad(factors.query, ((1, tiles * block - rows), (0, 0)))
    a = a.reshape(tiles, block, width)
    before = tiles * block + block
    b = jnp.pad(factors.target, ((before + 1, before + wide + columns), (0, 0)))
    starts = d[0] - jnp.arange(tiles, dtype=d.dtype) * block - (block - 1) + before
    starts = jnp.clip(starts, 0, b.shape[0] - wide)
    b = jax.vmap(lambda start: lax.dynamic_slice_in_dim(b, start, wide))(starts)
    return _by_diagonal(jnp.einsum("tpk,tck->tpc", a, b), rows)


def _by_diagonal(tiles: jax.Array, rows: int):
    """Tiles (T, B, 2 B - 1) -> (B, rows): a row for each of their diagonals.

    Cell (p, q) of a tile stands in column q - p + B - 1: rows one shorter undo that.
    """
    count, block, wide = tiles.shape
    flat = tiles.reshape(count, block * wide)
    flat = jnp.pad(flat, ((0, 0), (0, block)))[:, block - 1 :]
    flat = flat[:, : block * (wide - 1)].reshape(count, block, wide - 1)
    flat = jnp.pad(flat, ((0, 0), (0, 0), (0, 1)))[:, :, :block]
    return flat.transpose(2, 0, 1).reshape(block, count * block)[:, :rows]
