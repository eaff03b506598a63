"""A box of cells of three sequences: the input and the output of a fill.

The table of a triple has the cells i = 0..la, j = 0..lb, k = 0..lc. A *box* is any
block of it: local indices u, v, w count from 1, and index 0 is the layer of cells
before the block, minus infinity at the edge of the table, else the *faces* of the
blocks before (the chunks of Li, Ranka and Sahni, section 4.1). The whole table is a
box without faces; so are the halves of a split, and a chunk is one with faces.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.affine import Gaps, neg_inf
from jaxalign.triples.dp.recurrence import Model, choose, triple_cell, weigh

# Of some cells: H of each state, pointers of each or None. What a fill's loop carries.
States = tuple[tuple[jax.Array, ...], tuple[jax.Array, ...] | None]
Carry = dict[str, Any]
BoxShape = tuple[int, int, int]  # (U, V, W)
BEGIN = -1  # the pointer of a path that starts at the seed: it has no point before


class Box(NamedTuple):
    """One box; letters stand where they are consumed, so index 0 has none.

    a, b, c : int32 (U,), (V,), (W,)
    seed : (S,) of the score dtype, H of each state at cell (1, 1, 1), or minus
        infinity throughout where the table does not begin here
    size : int32 (3,), the last real cell; what lies beyond does not matter
    free : int32 (3, 2), the indices u (v, w) at which a gap in a (b, c) is free;
        negative where there is none
    """

    a: Any  # as the others: of NumPy, or of JAX in a program
    b: Any
    c: Any
    seed: Any
    size: Any
    free: Any

    @property
    def shape(self) -> tuple[int, int, int]:
        """(U, V, W)."""
        return len(self.a), len(self.b), len(self.c)


class Faces(NamedTuple):
    """H of the layer before a box: u = 0 (S, V, W), v = 0 (S, U, W), w = 0 (S, U, V)
    or None."""

    north: jax.Array
    west: jax.Array
    top: jax.Array | None


class TripleScoring(NamedTuple):
    """Substitution scores (A, A) of the pairs ab, ac, bc, and ``Gaps`` of scalars."""

    ab: jax.Array
    ac: jax.Array
    bc: jax.Array
    gaps: Gaps


class FillOutputs(NamedTuple):
    """The outputs of a fill, static. ``height`` is that of the paper's sub-chunks, 0
    for none; with ``reset`` pointers begin anew below each (BT3). ``best`` is taken
    over the first so many states. A ``local`` fill starts paths at any cell.
    """

    local: bool = False
    free: bool = False
    choices: bool = False
    layer: bool = False
    best: int = 0
    faces: bool = False
    pointers: bool = False
    height: int = 0
    reset: bool = False


class BoxFill(NamedTuple):
    """The result of a fill; None for every field that is not among its outputs.

    ``end`` (S,) is H at the cell ``size``, ``begin`` (S,) its pointers; ``layer``
    (S, U, V) H at w = size[2]; ``best`` and ``best_w`` (U, V) the best H over states
    and w, and its first w; ``choices`` uint8 bytes, in an order of the fill's own
    (``choice_at``); ``south`` (C, V, W) and ``east`` (C, U, W) the last layers along u
    and v, ``bottoms`` (W // height + 1, C, U, V) those at w = 0, height, ...: the S
    states, and with pointers as many again.
    """

    end: jax.Array
    begin: jax.Array | None = None
    layer: jax.Array | None = None
    best: jax.Array | None = None
    best_w: jax.Array | None = None
    choices: jax.Array | None = None
    south: jax.Array | None = None
    east: jax.Array | None = None
    bottoms: jax.Array | None = None


class FillProblem(NamedTuple):
    """All that a fill reads; model and outputs are static, ``faces`` None where the box
    is the whole table."""

    model: Model
    outputs: FillOutputs
    box: Box
    costs: TripleScoring
    faces: Faces | None = None

    @property
    def dtype(self):
        """That of the scores."""
        return self.costs.gaps.open.dtype


def pointer(
    u: jax.Array | int,
    v: jax.Array | int,
    w: jax.Array | int,
    state: int,
    shape: BoxShape,
    states: int,
):
    """The number of a point (u, v, w, state) of a box of ``shape``; int32."""
    return ((u * shape[1] + v) * shape[2] + w) * states + state


def point(number: int, shape: BoxShape, states: int) -> tuple[int, int, int, int]:
    """The inverse of ``pointer``, on the host."""
    number, state = divmod(number, states)
    number, w = divmod(number, shape[2])
    u, v = divmod(number, shape[1])
    return u, v, w, state


def gap_costs(gaps: Gaps, free: jax.Array, index: jax.Array, ends_free: bool) -> Gaps:
    """Costs of a gap in a sequence at ``index``: nothing at its two free indices."""
    if not ends_free:
        return gaps
    inside = (index != free[0]) & (index != free[1])
    return Gaps(*(jnp.where(inside, cost, jnp.zeros_like(cost)) for cost in gaps))


def cell(
    problem: FillProblem,
    sources: Mapping[int, States],
    scores: Sequence[jax.Array],
    gaps: Sequence[Gaps],
    places: Sequence[jax.Array],
):
    """One step of any fill: the rule, its choices, its pointers.

    ``sources[t]`` is a pair (H of each state, pointers of each state or None) of the
    neighbour column t comes from; ``places`` are the cells' u, v, w. Returns (H,
    pointers or None, choices or None).
    """
    model, outputs, shape = problem.model, problem.outputs, problem.box.shape
    before = {column: values for column, (values, _) in sources.items()}
    weights = weigh(model, scores, gaps)
    floor = None
    if outputs.local:
        zero, minus = jnp.zeros_like(scores[0]), neg_inf(scores[0].dtype)
        floor = jnp.where(places[2] >= 1, zero, jnp.full_like(zero, minus))
    h = triple_cell(model, before, weights, floor)
    pointers = choices = None
    if outputs.choices:
        choices = choose(model, h, before, weights, _numbers(h[0]))
    if outputs.pointers:

        def pointer_of(state: int, move: int):
            source, column, _ = model.moves[state][move]
            before = sources[column][1][source]
            if not (outputs.reset and column & 1):
                return before
            # A path that leaves the bottom of a sub-chunk starts anew from there.
            u, v, w = (x - b for x, b in zip(places, bits(column), strict=True))
            address = pointer(u, v, w, source, shape, model.states)
            return jnp.where((w % outputs.height == 0) & (w > 0), address, before)

        pointers = choose(model, h, before, weights, pointer_of)
    return h, pointers, choices


def bits(column: int) -> tuple[int, int, int]:
    """Residues of a, b and c in a column."""
    return column >> 2, (column >> 1) & 1, column & 1


def _numbers(like: jax.Array):
    return lambda state, move: jnp.full(like.shape, move, jnp.uint32)


def pack_choices(model: Model, choices: Sequence[jax.Array]):
    """Choices (U, V) of every state -> uint8 (L, U, V) or (1, U, ceil(V / 2)).

    A single state takes half a byte, two neighbours along v a byte; more states lie
    side by side, ``bits`` each, eight states to a word of up to four bytes.
    """
    if model.states == 1:
        lone = choices[0]
        lone = jnp.pad(lone, ((0, 0), (0, lone.shape[1] % 2)))
        return (lone[:, 0::2] | (lone[:, 1::2] << 4)).astype(jnp.uint8)[None]
    out = []
    for first in range(0, model.states, 8):
        group = choices[first : first + 8]
        word = group[0]
        for n, choice in enumerate(group[1:], 1):
            word = word | (choice << (model.bits * n))
        for byte in range(-(-model.bits * len(group) // 8)):
            out.append((word >> (8 * byte)).astype(jnp.uint8))
    return jnp.stack(out)


def choice_bytes(model: Model, cells: int) -> int:
    """Bytes of ``pack_choices`` for so many cells."""
    if model.states == 1:
        return cells // 2
    groups = [min(8, model.states - n) for n in range(0, model.states, 8)]
    return cells * sum(-(-model.bits * group // 8) for group in groups)


def read_choice(
    model: Model,
    column_of_bytes: Callable[[jax.Array], jax.Array],
    v: jax.Array,
    state: jax.Array,
):
    """The choice of ``state`` at v; ``column_of_bytes(v)`` -> uint8 (L,) there."""
    if model.states == 1:
        return (column_of_bytes(v // 2)[0] >> (4 * (v % 2)).astype(jnp.uint8)) & 7
    stored = column_of_bytes(v).astype(jnp.uint32)
    each = -(-model.bits * min(8, model.states) // 8)
    first = (state // 8) * each
    word = jnp.zeros((), jnp.uint32)
    for byte in range(each):
        at = jnp.clip(first + byte, 0, stored.shape[0] - 1)
        inside = first + byte < stored.shape[0]
        word = word | jnp.where(inside, stored[at] << (8 * byte), jnp.uint32(0))
    shift = (model.bits * (state % 8)).astype(jnp.uint32)
    return (word >> shift) & jnp.uint32(2**model.bits - 1)


def output_buffers(
    problem: FillProblem, plane: tuple[int, int], choices: tuple[int, ...]
):
    """The outputs of a fill in its carry, before its first step.

    ``plane`` is the shape of a plane or layer, ``choices`` that of all choices.
    """
    model, outputs, dtype = problem.model, problem.outputs, problem.dtype
    rows, columns, deep = problem.box.shape
    steps, channels = choices[0], model.states * (2 if outputs.pointers else 1)
    state, minus = {}, neg_inf(dtype)
    if outputs.best:
        state["best"] = jnp.full(plane, minus, dtype)
        state["best_w"] = jnp.zeros(plane, jnp.int32)
    if outputs.choices:
        state["choices"] = jnp.zeros(choices, jnp.uint8)
    if outputs.faces:
        state["south"] = jnp.full((steps, channels, columns), minus, dtype)
        state["east"] = jnp.full((steps, channels, rows), minus, dtype)
    if outputs.height:
        count = (deep - 1) // outputs.height + 1
        state["bottoms"] = jnp.full((count, channels, rows, columns), minus, dtype)
    return state


def record_best(
    outputs: FillOutputs,
    state: Carry,
    h: Sequence[jax.Array],
    w: jax.Array,
    inside: jax.Array | bool = True,
):
    """``best`` and ``best_w`` once the cells of a step are seen; H of each state."""
    top = h[0]
    for x in h[1 : outputs.best]:
        top = lax.max(top, x)
    better = (top > state["best"]) & inside
    best = jnp.where(better, top, state["best"])
    return {"best": best, "best_w": jnp.where(better, w, state["best_w"])}


def channels_of(h: tuple[jax.Array, ...], pointers: tuple[jax.Array, ...] | None):
    """H of each state and, where there are pointers, these as scores."""
    return h + tuple(x.astype(h[0].dtype) for x in pointers or ())


def put(buffer: jax.Array, value: jax.Array, index: jax.Array | int):
    """``buffer[index] = value`` along the first axis, in place within a loop."""
    start = (index,) + (jnp.zeros((), jnp.int32),) * (buffer.ndim - 1)
    return lax.dynamic_update_slice(buffer, value[None].astype(buffer.dtype), start)
