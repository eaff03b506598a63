"""Soft alignment in little memory: most diagonals are computed again in the reverse
pass.

The forward pass keeps the carry into every block of diagonals. The scores of a block
are read from the table, and its posterior is added to one, so that neither is kept by
diagonals. Where the similarity is given as vectors, the scores of a block are computed
from them, and its posterior is multiplied with them at once: then no array has the size
of the table.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.similarity.arrays import FORBIDDEN, Factors
from jaxalign.similarity.band import BandTable
from jaxalign.similarity.cost_table import Costs, CostTable
from jaxalign.similarity.loops import begun
from jaxalign.similarity.soft.dp import scan
from jaxalign.similarity.soft.dp.diagonals import as_table, diagonals, successors

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
    padded: Any = None if scores is None or banded else _tiled(scores, block)

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

    def ahead(carry: Any, xs: Costs):
        after, ends = scan.forward_ends(table, carry, scored(xs))
        return after, (carry, ends)

    start = scan.first_carry(table, dtype)
    _, (entering, ends) = lax.scan(ahead, start, xs)

    def finish(on_diagonal: jax.Array, outputs: frozenset[str]):
        spent = outputs & set(VECTORS)
        inner = outputs - spent | ({"similarity"} if spent else frozenset())

        def back(carry: Any, x: Any):
            flow, sums, pairs = carry
            entering, xs, later, shares = x
            _, values = scan.forward(table, entering, scored(xs))
            flow, out = scan.reverse(table, flow, later, values, shares, inner)
            if vectors and spent:
                _, pull = jax.vjp(lambda v: products(v, xs["d"]), vectors)
                (more,) = pull(out.pop("similarity"))
                sums = jax.tree.map(jnp.add, sums, more)
            elif pairs is not None:
                pairs = _added(pairs, block, xs["d"][0], out.pop("similarity"))
            return (flow, sums, pairs), out

        later = successors(table, cut)
        flow = scan.first_flow(table, dtype, outputs)
        sums = begun(jax.tree.map(jnp.zeros_like, vectors), table.rules.m)
        pairs = None
        if whole and "similarity" in outputs:
            pairs = begun(jnp.zeros_like(padded), table.rules.m)
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


def _tiled(similarity: jax.Array, block: int):
    """The table in whole tiles of rows, after a row 0, with columns on both sides that
    a tile beyond it reads."""
    rows = similarity.shape[0] + 1
    return jnp.pad(similarity, ((1, -rows % block), (2 * block, 2 * block)))


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
        k, more = x
        at = k * block, _start(padded, block, k, d)
        before = lax.dynamic_slice(padded, at, (block, wide))
        return lax.dynamic_update_slice(padded, before + more, at), None

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
