"""Data of three sequences in the order in which sloped planes read them.

Plane Q of a box holds the cells (u, v) with w = Q - u - v.
"""

import jax
import jax.numpy as jnp

from jaxalign.affine import neg_inf
from jaxalign.triples.dp.boxes import Box, TripleScoring


def last_plane(shape: tuple[int, int, int]) -> int:
    """The greatest u + v + w of a box of ``shape``."""
    return sum(shape) - 3


def sums(shape: tuple[int, int, int]):
    """u + v of the cells of a plane, int32 (U, V)."""
    u = jnp.arange(shape[0], dtype=jnp.int32)[:, None]
    return u + jnp.arange(shape[1], dtype=jnp.int32)[None, :]


def scores(box: Box, costs: TripleScoring):
    """Substitution scores so ordered that those of a plane are one contiguous slice.

    ac[x, y] of plane Q at (u, v) is S(a[u], c[Q - u - v]): row u of ``ac`` holds
    c backwards, moved by u, and the plane begins at column Qmax - Q.
    """
    shape = rows, columns, deep = len(box.a), len(box.b), len(box.c)
    top = last_plane(shape)
    u = jnp.arange(rows, dtype=jnp.int32)[:, None]
    v = jnp.arange(columns, dtype=jnp.int32)[None, :]
    ac_at = top - jnp.arange(top + columns, dtype=jnp.int32)[None, :] - u
    bc_at = top - jnp.arange(top + rows, dtype=jnp.int32)[:, None] - v
    c_ac, c_bc = (box.c[jnp.clip(at, 0, deep - 1)] for at in (ac_at, bc_at))
    dtype = costs.gaps.open.dtype
    return {
        "uv": sums(shape),
        "ab": costs.ab[box.a[:, None], box.b[None, :]].astype(dtype),
        "ac": costs.ac[box.a[:, None], c_ac],
        "bc": costs.bc[box.b[None, :], c_bc],
    }


def edge(face: jax.Array, q: jax.Array):
    """(S, X, W) -> (S, X): the cells of a face on plane q, minus infinity beside it."""
    x = jnp.arange(face.shape[1], dtype=jnp.int32)
    w = q - x
    h = face[:, x, jnp.clip(w, 0, face.shape[2] - 1)]
    inside = jnp.broadcast_to(((w >= 0) & (w < face.shape[2]))[None], h.shape)
    return jnp.where(inside, h, neg_inf(face.dtype))


def unweave(planes: jax.Array, fixed: int, wide: int, deep: int):
    """(Q, C, X) by plane -> (C, X, W) by w; ``fixed`` is the other index."""
    x = jnp.arange(wide, dtype=jnp.int32)[:, None]
    w = jnp.arange(deep, dtype=jnp.int32)[None, :]
    return jnp.moveaxis(planes[fixed + x + w, :, x], 2, 0)
