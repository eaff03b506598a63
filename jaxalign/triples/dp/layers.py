"""Three sequences by layers: w after w, and in a layer its anti-diagonals u + v.

LAYERED of Li, Ranka and Sahni (section 4.1): a layer needs the one before it, an
anti-diagonal the two before it. It takes (u + v) * w steps where ``planes`` takes
u + v + w, but on a CPU its rows stay in the cache. The results are the same.

A layer is skewed, (D, U): row d = u + v, entry u. Entries with v outside the box
hold minus infinity on the left, and on the right values that nothing inside reads.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.typing import ArrayLike

from jaxalign.affine import neg_inf
from jaxalign.triples.dp import recurrence
from jaxalign.triples.dp.recurrence import (
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

FIRST_STEP = 1  # the first layer of a box


def stored_cells(shape: tuple[int, int, int]) -> int:
    """Cells whose choices ``fill`` stores for a box of ``shape``."""
    return shape[2] * (shape[0] + shape[1] - 1) * (shape[0] + shape[0] % 2)


def last_step(size: Any) -> int:
    """The layer that ends a box of ``size``, int (3,)."""
    return int(size[2])


def fill(
    model: Model,
    outputs: FillOutputs,
    box: Box,
    costs: TripleScoring,
    faces: Faces | None,
    stop: ArrayLike | None = None,
) -> BoxFill:
    """Fill a box by layers, as ``planes.fill`` does; ``stop`` is the last layer."""
    problem = FillProblem(model, outputs, box, costs, faces)
    last = box.size[2] if stop is None else stop
    return finish(problem, advance(problem, begin(problem), FIRST_STEP, last))


def begin(problem: FillProblem):
    """The carry of ``advance`` before the first layer: the top face, or minus
    infinity; pointers to the cells of that face."""
    model, outputs, box, _, faces = problem
    dtype, (rows, columns, deep) = problem.dtype, box.shape
    plane = rows + columns - 1, rows
    top = None if faces is None else faces.top
    h = (jnp.full(plane, neg_inf(dtype), dtype),) * model.states
    if top is not None:
        h = tuple(_skew(top[s]) for s in range(model.states))
    pointers = None
    if outputs.pointers:
        u = jnp.arange(rows, dtype=jnp.int32)[None, :]
        v = jnp.arange(rows + columns - 1, dtype=jnp.int32)[:, None] - u
        pointers = (jnp.full_like(v, recurrence.BEGIN),) * model.states
        if top is not None:
            pointers = tuple(
                recurrence.pointer(u, v, 0, s, box.shape, model.states)
                for s in range(model.states)
            )
    choice = (jnp.zeros((1, rows), jnp.uint32),) * model.states
    each = jax.eval_shape(partial(recurrence.pack_choices, model), choice)
    choices = deep, plane[0], *each.shape
    buffers = recurrence.output_buffers(problem, plane, choices)
    return {"layer": (h, pointers)} | buffers


def advance(problem: FillProblem, state: Carry, first: ArrayLike, stop: ArrayLike):
    """The carry after the layers ``first`` to ``stop``; a fill may go in pieces."""
    box, scores = problem.box, problem.costs.ab
    ab = _skew(scores[box.a[:, None], box.b[None, :]].astype(problem.dtype))

    def layer(w: jax.Array, state: Carry):
        cells, choices = _layer(problem, ab, state["layer"], w)
        state = state | _record(problem, state, cells, choices, w)
        return state | {"layer": cells}

    bounds = jnp.asarray(first, jnp.int32), jnp.asarray(stop, jnp.int32) + 1
    return lax.fori_loop(*bounds, layer, state)


def _layer(problem: FillProblem, ab: jax.Array, above: States, w: jax.Array):
    """Layer w: ((H, pointers), packed choices), by a scan over its anti-diagonals."""
    model, outputs, box, costs, _ = problem
    rows, columns, _ = box.shape
    u, dtype = jnp.arange(1, rows, dtype=jnp.int32), problem.dtype
    ac = costs.ac[box.a[1:], box.c[w]].astype(dtype)
    bc = costs.bc[box.b, box.c[w]].astype(dtype)
    bc = jnp.pad(bc[::-1], (rows, rows))  # entry rows + columns - 1 - v
    gap_c = recurrence.gap_costs(problem, 2, jnp.zeros_like(u) + w)

    def part(row: States, shift: int):
        """Entries u - 1 (shift 0) or u (shift 1) for u = 1 .. U - 1."""
        return recurrence.moved(row, lambda x: x[shift : x.shape[0] - 1 + shift])

    def diagonal(carry: tuple[States, ...], row: tuple[jax.Array, jax.Array, States]):
        d, ab_row, above0 = row
        back1, back2, above1, above2 = carry
        v = d - u
        start = rows + columns - 1 - d
        scores = ab_row[1:], ac, lax.dynamic_slice(bc, (start + 1,), (rows - 1,))
        gap_a, gap_b = (
            recurrence.gap_costs(problem, n, x) for n, x in ((0, u), (1, v))
        )
        sources = {
            4: part(back1, 0),
            2: part(back1, 1),
            6: part(back2, 0),
            1: part(above0, 1),
            5: part(above1, 0),
            3: part(above1, 1),
            7: part(above2, 0),
        }
        places = u, v, jnp.zeros_like(u) + w
        gaps = gap_a, gap_b, gap_c
        inner = recurrence.cell(problem, sources, scores, gaps, places)
        cells = _with_borders(problem, inner[:2], d, w)
        out = None
        if outputs.choices:
            wide = tuple(jnp.pad(x, (1, 0))[None, :] for x in inner[2])
            out = recurrence.pack_choices(model, wide)
        return (cells, back1, above0, above1), (cells, out)

    # Rows before the first.
    h, pointers = above
    minus = tuple(jnp.full_like(x[0], neg_inf(dtype)) for x in h)
    lost = pointers and tuple(jnp.full_like(x[0], recurrence.BEGIN) for x in pointers)
    steps = jnp.arange(rows + columns - 1, dtype=jnp.int32)
    _, rows_of_layer = lax.scan(diagonal, ((minus, lost),) * 4, (steps, ab, above))
    return rows_of_layer


def _with_borders(problem: FillProblem, inner: States, d: jax.Array, w: jax.Array):
    """A whole row: north at u = 0, west at v = 0, the seed, nothing where v < 0."""
    model, _, box, _, faces = problem
    (h, pointers), (rows, columns, _) = inner, box.shape
    u = jnp.arange(rows, dtype=jnp.int32)
    v, minus = d - u, neg_inf(h[0].dtype)
    inside, seeded = (u >= 1) & (v >= 1), (u == 1) & (v == 1) & (w == 1)
    h = tuple(jnp.pad(x, (1, 0)) for x in h)
    rim = jnp.full((model.states, rows), minus, h[0].dtype)
    if faces is not None:
        north = faces.north[:, jnp.clip(d, 0, columns - 1), w][:, None]
        rim = jnp.where(((u == 0) & (d < columns))[None, :], north, rim)
        rim = jnp.where(((v == 0) & (u > 0))[None, :], faces.west[:, :, w], rim)
    seeds = [seeded & (box.seed[s] > x) for s, x in enumerate(h)]
    h = tuple(
        jnp.where(seeds[s], box.seed[s], jnp.where(inside, x, rim[s]))
        for s, x in enumerate(h)
    )
    if pointers is not None:
        addresses = (
            recurrence.pointer(u, v, w, s, box.shape, model.states)
            for s in range(model.states)
        )
        pairs = zip(seeds, pointers, addresses, strict=True)
        pointers = tuple(
            jnp.where(seed, recurrence.BEGIN, jnp.where(inside, jnp.pad(x, (1, 0)), y))
            for seed, x, y in pairs
        )
    return h, pointers


def _record(
    problem: FillProblem,
    state: Carry,
    cells: States,
    choices: jax.Array | None,
    w: jax.Array,
):
    """The changes of the carry by this layer, output by output."""
    (h, pointers), outputs, out = cells, problem.outputs, {}
    rows, columns, _ = problem.box.shape
    channels = recurrence.channels_of(h, pointers)
    if outputs.best:
        out |= recurrence.record_best(outputs, state, h, w)
    if choices is not None:
        out["choices"] = recurrence.put(state["choices"], choices, w)
    if outputs.faces:
        v, u = (jnp.arange(n, dtype=jnp.int32) for n in (columns, rows))
        south = jnp.stack([x[rows - 1 + v, rows - 1] for x in channels])
        east = jnp.stack([x[u + columns - 1, u] for x in channels])
        out["south"] = recurrence.put(state["south"], south, w)
        out["east"] = recurrence.put(state["east"], east, w)
    if outputs.height:

        def with_bottom(layers: jax.Array):
            bottom = jnp.stack([_unskew(x, columns) for x in channels])
            return recurrence.put(layers, bottom, w // outputs.height)

        stored, is_bottom = state["bottoms"], w % outputs.height == 0
        out["bottoms"] = lax.cond(is_bottom, with_bottom, lambda layers: layers, stored)
    return out


def finish(problem: FillProblem, state: Carry) -> BoxFill:
    """The outputs of a fill, from its last carry."""
    (h, pointers), outputs, box = state["layer"], problem.outputs, problem.box
    columns = box.shape[1]
    u, v = box.size[0], box.size[1]

    def by_depth(name: str):
        return jnp.moveaxis(state[name], 0, 2) if outputs.faces else None

    return BoxFill(
        end=jnp.stack([x[u + v, u] for x in h]),
        start_points=jnp.stack([x[u + v, u] for x in pointers])
        if outputs.pointers
        else None,
        layer=jnp.stack([_unskew(x, columns) for x in h]) if outputs.layer else None,
        best=_unskew(state["best"], columns) if outputs.best else None,
        best_w=_unskew(state["best_w"], columns) if outputs.best else None,
        choices=state.get("choices"),
        south=by_depth("south"),
        east=by_depth("east"),
        bottoms=state.get("bottoms"),
    )


def _skew(layer: jax.Array):
    """(U, V) -> (D, U), minus infinity where v lies outside."""
    rows, columns = layer.shape
    u = jnp.arange(rows, dtype=jnp.int32)[None, :]
    v = jnp.arange(rows + columns - 1, dtype=jnp.int32)[:, None] - u
    h = layer[u, jnp.clip(v, 0, columns - 1)]
    return jnp.where((v >= 0) & (v < columns), h, neg_inf(layer.dtype))


def _unskew(layer: jax.Array, columns: int):
    """(D, U) -> (U, V)."""
    u = jnp.arange(layer.shape[1], dtype=jnp.int32)[:, None]
    return layer[u + jnp.arange(columns, dtype=jnp.int32)[None, :], u]


def choice_at(model: Model, choices: jax.Array, at: jax.Array):
    """The choice that ``fill`` stored for a point, int32 (4,) u, v, w, state."""
    u, v, w, state = at

    def stored(column: jax.Array):
        return choices.at[w, u + v, :, 0, column].get(mode="clip")

    return recurrence.read_choice(model, stored, u, state)
