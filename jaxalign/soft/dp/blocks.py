"""Soft alignment in little memory: most diagonals are computed again in the reverse
pass.

The forward pass keeps the carry into every block of diagonals. Where the similarity is
given as vectors, the scores of a block are computed from them, and its posterior is
multiplied with them at once. So no array has the size of the table.
"""

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.similarity.arrays import FORBIDDEN, Factors
from jaxalign.similarity.cost_table import CostTable
from jaxalign.similarity.loops import begun
from jaxalign.soft.dp import scan
from jaxalign.soft.dp.diagonals import diagonals, successors

BLOCK_DIAGONALS = 64  # computed anew at a time
VECTORS = ("query_vectors", "target_vectors")


def run(block: int, table: CostTable, similarity):
    """(high, low, ends) of all diagonals, and the function of the reverse pass."""
    dtype = similarity.dtype
    count = table.rows + table.shape[1]
    blocks = -(-count // block)
    vectors = similarity if isinstance(similarity, Factors) else None

    def cut(name, x):
        if name == "d":
            return jnp.arange(blocks * block, dtype=x.dtype).reshape(blocks, block)
        fill = FORBIDDEN if name == "similarity" else 0
        widths = ((0, blocks * block - count),) + ((0, 0),) * (x.ndim - 1)
        x = jnp.pad(x, widths, constant_values=fill)
        return x.reshape(blocks, block, *x.shape[1:])

    def join(x):
        return x.reshape(blocks * block, *x.shape[2:])[:count]

    def scored(xs):
        if vectors is None:
            return xs
        dots = products(vectors, xs["d"])
        inside = jax.vmap(table.core)(xs["d"])
        return xs | {"similarity": jnp.where(inside, dots, FORBIDDEN)}

    xs = diagonals(table, None if vectors else similarity, cut)

    def ahead(carry, xs):
        after, ends = scan.forward_ends(table, carry, scored(xs))
        return after, (carry, ends)

    start = scan.first_carry(table, dtype)
    _, (entering, ends) = lax.scan(ahead, start, xs)

    def finish(on_diagonal, outputs):
        spent = outputs & set(VECTORS)
        inner = outputs - spent | ({"similarity"} if spent else frozenset())

        def back(carry, x):
            flow, sums = carry
            entering, xs, later, shares = x
            _, values = scan.forward(table, entering, scored(xs))
            flow, out = scan.reverse(table, flow, later, values, shares, inner)
            if vectors and spent:
                _, pull = jax.vjp(lambda v: products(v, xs["d"]), vectors)
                (more,) = pull(out.pop("similarity"))
                sums = jax.tree.map(jnp.add, sums, more)
            return (flow, sums), out

        later = successors(table, cut)
        flow = scan.first_flow(table, dtype, outputs)
        sums = begun(jax.tree.map(jnp.zeros_like, vectors), table.rules.m)
        every = entering, xs, later, cut("shares", on_diagonal)
        (flow, sums), out = lax.scan(back, (flow, sums), every, reverse=True)
        out = jax.tree.map(join, out)
        if sums is not None:
            out |= dict(zip(VECTORS, sums, strict=True))
        return flow, out

    return tuple(join(x) for x in ends), finish


def products(factors: Factors, d):
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
    dots = jnp.einsum("tpk,tck->tpc", a, b).reshape(tiles, block * wide)
    # Cell (p, q) of a tile stands in column q - p + B - 1: rows one shorter undo that.
    dots = jnp.pad(dots, ((0, 0), (0, block)))[:, block - 1 :]
    dots = dots[:, : block * (wide - 1)].reshape(tiles, block, wide - 1)
    dots = jnp.pad(dots, ((0, 0), (0, 0), (0, 1)))[:, :, :block]
    return dots.transpose(2, 0, 1).reshape(block, tiles * block)[:, :rows]
