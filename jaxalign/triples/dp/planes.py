"""Three sequences by sloped planes: all cells with the same Q = u + v + w at once.

SLOPED of Li, Ranka and Sahni (section 4.2): a plane depends on the three before it,
Q - 1 for columns of one residue, Q - 2 for two, Q - 3 for three. A plane is kept over
(u, v), and w = Q - u - v, so give the longest sequence as c. One ``fori_loop`` over
Q, of u + v + w steps; it lives inside ``jit`` and ``vmap``.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike

from jaxalign.affine import neg_inf
from jaxalign.triples.dp import recurrence
from jaxalign.triples.dp.recurrence import (
    COLUMN_ORDER,
    Box,
    BoxFill,
    Carry,
    Faces,
    FillOutputs,
    FillProblem,
    Model,
    States,
    TripleScoring,
)

FIRST_PLANE = 3  # u + v + w of the first cell
FIRST_STEP = FIRST_PLANE + 1  # of a box without faces


def last_step(size: Any) -> int:
    """The plane that ends a box of ``size``, int (3,)."""
    return int(sum(size))


def last_plane(shape: tuple[int, int, int]) -> int:
    """The greatest u + v + w of a box of ``shape``."""
    return sum(shape) - 3


def stored_cells(shape: tuple[int, int, int]) -> int:
    """Cells whose choices ``fill`` stores for a box of ``shape``."""
    return (last_plane(shape) + 1) * shape[0] * (shape[1] + shape[1] % 2)


def fill(
    model: Model,
    outputs: FillOutputs,
    box: Box,
    costs: TripleScoring,
    faces: Faces | None,
    stop: ArrayLike | None = None,
) -> BoxFill:
    """Fill a box by sloped planes, without ``faces`` where it is the whole table;
    ``stop`` is the last plane, sum(box.size) by default. A vmapped batch has one."""
    problem = FillProblem(model, outputs, box, costs, faces)
    stop = _end_plane(box) if stop is None else stop
    first = FIRST_STEP if faces is None else 0
    return finish(problem, advance(problem, begin(problem), first, stop))


def _end_plane(box: Box):
    return jnp.sum(box.size, dtype=jnp.int32)


def begin(problem: FillProblem):
    """The carry of ``advance`` before the first plane: the seed lies on plane 3, and
    nothing before it."""
    model, outputs, box, *_ = problem
    plane, dtype = box.shape[:2], problem.dtype
    h = (jnp.full(plane, neg_inf(dtype), dtype),) * model.states
    lost = jnp.full(plane, recurrence.BEGIN, jnp.int32)
    pointers = (lost,) * model.states if outputs.pointers else None
    seeded = tuple(x.at[1, 1].set(box.seed[s]) for s, x in enumerate(h))
    state: Carry = {"planes": ((seeded, pointers), (h, pointers), (h, pointers))}
    lone = _end_plane(box) == FIRST_PLANE
    lone = jnp.where(lone, box.seed, neg_inf(dtype))
    state["end"] = jnp.pad(lone, (0, model.states if outputs.pointers else 0))
    if outputs.layer:
        state["layer"] = h
    choice = (jnp.zeros(plane, jnp.uint32),) * model.states
    words = jax.eval_shape(partial(recurrence.pack_choices, model), choice)
    choices = last_plane(box.shape) + 1, *words.shape
    state |= recurrence.output_buffers(problem, plane, choices)
    if problem.faces is not None:
        return state | {"planes": ((h, pointers),) * 3}
    if outputs.layer or outputs.best:
        w = FIRST_PLANE - _sums(box.shape)
        state |= _record(problem, state, state["planes"][0], None, FIRST_PLANE, w)
    return state


def _sums(shape: tuple[int, int, int]):
    """u + v of the cells of a plane, int32 (U, V)."""
    u = jnp.arange(shape[0], dtype=jnp.int32)[:, None]
    return u + jnp.arange(shape[1], dtype=jnp.int32)[None, :]


def advance(problem: FillProblem, state: Carry, first: ArrayLike, stop: ArrayLike):
    """The carry after the planes ``first`` to ``stop``; a fill may go in pieces."""
    scores = _scores(problem.box, problem.costs)

    def plane(q: jax.Array, state: Carry):
        w = q - scores["uv"]
        cells, choices = _inner(problem, scores, state["planes"], q, w)
        cells = _with_borders(problem, cells, q, w)
        state = state | _record(problem, state, cells, choices, q, w)
        return state | {"planes": (cells, *state["planes"][:2])}

    bounds = jnp.asarray(first, jnp.int32), jnp.asarray(stop, jnp.int32) + 1
    return lax.fori_loop(*bounds, plane, state)


def _scores(box: Box, costs: TripleScoring):
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
        "uv": _sums(shape),
        "ab": costs.ab[box.a[:, None], box.b[None, :]].astype(dtype),
        "ac": costs.ac[box.a[:, None], c_ac],
        "bc": costs.bc[box.b[None, :], c_bc],
    }


def _inner(
    problem: FillProblem,
    scores: dict[str, jax.Array],
    planes: Sequence[States],
    q: jax.Array,
    w: jax.Array,
):
    """The cells u, v >= 1 of plane q: ((H, pointers), choices), (U - 1, V - 1)."""
    rows, columns, _ = problem.box.shape
    at, zero = last_plane(problem.box.shape) - q, jnp.zeros((), jnp.int32)
    dtype = problem.dtype
    ac = lax.dynamic_slice(scores["ac"], (zero, at), (rows, columns))[1:, 1:]
    bc = lax.dynamic_slice(scores["bc"], (at, zero), (rows, columns))[1:, 1:]
    pairs = scores["ab"][1:, 1:], ac.astype(dtype), bc.astype(dtype)
    u = jnp.arange(1, rows, dtype=jnp.int32)[:, None]
    v = jnp.arange(1, columns, dtype=jnp.int32)[None, :]
    places = u + jnp.zeros_like(v), v + jnp.zeros_like(u), w[1:, 1:]
    gaps = [recurrence.gap_costs(problem, n, places[n]) for n in range(3)]

    def source(column: int):
        """The neighbour that ``column`` comes from."""
        a, b, c = recurrence.bits(column)
        return recurrence.moved(
            planes[a + b + c - 1],
            lambda x: x[1 - a : x.shape[0] - a, 1 - b : x.shape[1] - b],
        )

    sources = {t: source(t) for t in COLUMN_ORDER}
    h, pointers, choices = recurrence.cell(problem, sources, pairs, gaps, places)
    return (h, pointers), choices


def _with_borders(problem: FillProblem, inner: States, q: jax.Array, w: jax.Array):
    """Put the layer before the box around the inner cells; into a box with faces the
    seed as well, where it beats the paths that came from them."""
    (h, pointers), faces, box = inner, problem.faces, problem.box
    minus = neg_inf(h[0].dtype)
    h = tuple(jnp.pad(x, ((1, 0), (1, 0)), constant_values=minus) for x in h)
    if pointers is not None:
        pointers = tuple(jnp.pad(x, ((1, 0), (1, 0))) for x in pointers)
    if faces is None:
        return h, pointers
    north, west = _edge(faces.north, q), _edge(faces.west, q)
    h = tuple(x.at[0, :].set(north[s]).at[:, 0].set(west[s]) for s, x in enumerate(h))
    if faces.top is not None:
        h = tuple(jnp.where(w == 0, faces.top[s], x) for s, x in enumerate(h))
    if pointers is not None:
        # A local path starts at a cell of a face, which it points to.
        u, v = (lax.broadcasted_iota(jnp.int32, box.shape[:2], n) for n in (0, 1))
        rim = (u == 0) | (v == 0)
        rim = rim if faces.top is None else rim | (w == 0)
        states = problem.model.states
        pointers = tuple(
            jnp.where(rim, recurrence.pointer(u, v, w, s, box.shape, states), x)
            for s, x in enumerate(pointers)
        )
    seeded = [(q == FIRST_PLANE) & (box.seed[s] > x[1, 1]) for s, x in enumerate(h)]
    h = tuple(
        x.at[1, 1].set(jnp.where(seeded[s], box.seed[s], x[1, 1]))
        for s, x in enumerate(h)
    )
    if pointers is not None:
        pointers = tuple(
            x.at[1, 1].set(jnp.where(seeded[s], recurrence.BEGIN, x[1, 1]))
            for s, x in enumerate(pointers)
        )
    return h, pointers


def _edge(face: jax.Array, q: jax.Array):
    """(S, X, W) -> (S, X): the cells of a face on plane q, minus infinity beside it."""
    x = jnp.arange(face.shape[1], dtype=jnp.int32)
    w = q - x
    h = face[:, x, jnp.clip(w, 0, face.shape[2] - 1)]
    inside = jnp.broadcast_to(((w >= 0) & (w < face.shape[2]))[None], h.shape)
    return jnp.where(inside, h, neg_inf(face.dtype))


def _record(
    problem: FillProblem,
    state: Carry,
    cells: States,
    choices: Sequence[jax.Array] | None,
    q: jax.Array | int,
    w: jax.Array,
):
    """The changes of the carry by this plane, output by output."""
    (h, pointers), outputs, box = cells, problem.outputs, problem.box
    channels, out = recurrence.channels_of(h, pointers), {}
    u, v = box.size[0], box.size[1]
    at_end = q == _end_plane(box)
    out["end"] = jnp.where(at_end, jnp.stack([x[u, v] for x in channels]), state["end"])
    if outputs.layer:
        last = w == box.size[2]
        pairs = zip(h, state["layer"], strict=True)
        out["layer"] = tuple(jnp.where(last, x, before) for x, before in pairs)
    if outputs.best:
        inside = (w >= 1) & (w <= box.size[2])
        out |= recurrence.record_best(outputs, state, h, w, inside)
    if choices is not None:
        padded = tuple(jnp.pad(x, ((1, 0), (1, 0))) for x in choices)
        packed = recurrence.pack_choices(problem.model, padded)
        out["choices"] = recurrence.put(state["choices"], packed, q)
    if outputs.faces:
        south, east = ([x[-1, :] for x in channels], [x[:, -1] for x in channels])
        out["south"] = recurrence.put(state["south"], jnp.stack(south), q)
        out["east"] = recurrence.put(state["east"], jnp.stack(east), q)
    if outputs.height:
        # Cells at w = 0, height, 2 * height ...: few such layers cross a plane.
        layers = state["bottoms"]
        widest = w.shape[0] + w.shape[1] - 2
        newest = q // outputs.height
        for back in range(widest // outputs.height + 2):
            layer = jnp.clip(newest - back, 0, layers.shape[0] - 1)
            old = lax.dynamic_index_in_dim(layers, layer, keepdims=False)
            on_layer = w == layer * outputs.height
            merged = [jnp.where(on_layer, x, old[n]) for n, x in enumerate(channels)]
            layers = recurrence.put(layers, jnp.stack(merged), layer)
        out["bottoms"] = layers
    return out


def finish(problem: FillProblem, state: Carry) -> BoxFill:
    """The outputs of a fill, from its last carry."""
    outputs, states = problem.outputs, problem.model.states
    rows, columns, deep = problem.box.shape

    def by_depth(name: str, fixed: int, wide: int):
        """(Q, C, X) by plane -> (C, X, W) by w; ``fixed`` is the other index."""
        if not outputs.faces:
            return None
        x = jnp.arange(wide, dtype=jnp.int32)[:, None]
        w = jnp.arange(deep, dtype=jnp.int32)[None, :]
        return jnp.moveaxis(state[name][fixed + x + w, :, x], 2, 0)

    return BoxFill(
        end=state["end"][:states],
        start_points=state["end"][states:] if outputs.pointers else None,
        layer=jnp.stack(state["layer"]) if outputs.layer else None,
        best=state.get("best"),
        best_w=state.get("best_w"),
        choices=state.get("choices"),
        south=by_depth("south", rows - 1, columns),
        east=by_depth("east", columns - 1, rows),
        bottoms=state.get("bottoms"),
    )


def choice_at(model: Model, choices: jax.Array, at: jax.Array):
    """The choice that ``fill`` stored for a point, int32 (4,) u, v, w, state."""
    u, v, w, state = at

    def stored(column: jax.Array):
        return choices.at[u + v + w, :, u, column].get(mode="clip")

    return recurrence.read_choice(model, stored, v, state)
