"""The cell rules of three sequences, elementwise; boxes of cells, which fills take and
give; and the walk along stored choices.

Letters are those of Li, Ranka and Sahni (Optimal Alignment of Three Sequences On A
GPU, section 3): sequences a, b, c along i, j, k. A column is a number t = 4a + 2b + c,
a bit where that sequence has a residue. A *model* says what gaps cost in the three
induced pairs, as states and moves between them:

``linear``         one state, 7 moves: the paper's recurrence, open == extend.
``quasi-natural``  the state is the last column, 7 states, 49 moves (Altschul 1989): a
                   run of residue/gap columns cut by a gap/gap column opens again.
``natural``        the state is the last pattern other than gap/gap of each pair,
                   13 states, 91 moves: the sum of the three affine pair scores.

The table of a triple has the cells i = 0..la, j = 0..lb, k = 0..lc. A *box* is any
block of it: local indices u, v, w count from 1, and index 0 is the layer of cells
before the block, minus infinity at the edge of the table, else the *faces* of the
blocks before (the chunks of the paper, section 4.1). The whole table is a box without
faces; so are the halves of a split, and a chunk is one with faces.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.affine import Gaps, neg_inf

# Ties between columns: the first of this order wins, in every fill.
COLUMN_ORDER = (7, 6, 5, 3, 4, 2, 1)
SEQUENCE_PAIRS = ((0, 1), (0, 2), (1, 2))
BOTH, FIRST_ONLY, SECOND_ONLY = 3, 2, 1

State = TypeVar("State", bound=Hashable)  # as a model describes it
Weights = dict[tuple[int, tuple], jax.Array]  # (column, gaps) -> score
# Of some cells: H of each state, pointers of each or None. What a fill's loop carries.
States = tuple[tuple[jax.Array, ...], tuple[jax.Array, ...] | None]
Carry = dict[str, Any]
BoxShape = tuple[int, int, int]  # (U, V, W)
BEGIN = -1  # the pointer of a path that starts at the seed: it has no point before


class Move(NamedTuple):
    """From state ``source`` by ``column``; ``gaps`` is a sorted tuple of (sequence
    with the gap, whether the gap opens), one for each residue/gap pair."""

    source: int
    column: int
    gaps: tuple[tuple[int, bool], ...]


class Model(NamedTuple):
    """``moves[q]`` are the moves into state q, best tie first; hashable, static."""

    name: str
    moves: tuple[tuple[Move, ...], ...]
    bits: int  # of a stored choice, an index into moves[q]

    @property
    def states(self) -> int:
        return len(self.moves)


def pattern(column: int, pair: tuple[int, int]) -> int:
    """Who of a pair has a residue: BOTH, FIRST_ONLY, SECOND_ONLY, or neither, 0."""
    x, y = ((column >> (2 - sequence)) & 1 for sequence in pair)
    return 2 * x + y


def _gaps(before: tuple[int, ...], column: int):
    """The gaps that a column pays after the patterns ``before`` of the three pairs."""
    paid = []
    for pair, old in zip(SEQUENCE_PAIRS, before, strict=True):
        current = pattern(column, pair)
        if current in (FIRST_ONLY, SECOND_ONLY):
            paid.append((pair[current == FIRST_ONLY], current != old))
    return tuple(sorted(paid))


def _patterns(column: int):
    return tuple(pattern(column, pair) for pair in SEQUENCE_PAIRS)


def _after(before: tuple[int, ...], column: int):
    """The last patterns other than gap/gap, one column later."""
    pairs = zip(before, _patterns(column), strict=True)
    return tuple(current or old for old, current in pairs)


def _model(
    name: str,
    start: State,
    step: Callable[[State, int], State],
    patterns: Callable[[State], tuple[int, ...]],
    bits: int,
):
    """States that ``start`` reaches, in the order of COLUMN_ORDER, and their moves."""
    states = [start]
    for state in states:  # grows while it is read
        after = (step(state, column) for column in COLUMN_ORDER)
        states += [
            successor for successor in dict.fromkeys(after) if successor not in states
        ]
    into = [[] for _ in states]
    for source, state in enumerate(states):
        for column in COLUMN_ORDER:
            target = states.index(step(state, column))
            into[target].append(Move(source, column, _gaps(patterns(state), column)))
    return Model(name, tuple(map(tuple, into)), bits)


LINEAR = _model("linear", 0, lambda state, column: 0, lambda state: (0, 0, 0), 3)
QUASI = _model("quasi-natural", 7, lambda state, column: column, _patterns, 3)
NATURAL = _model("natural", (BOTH,) * 3, _after, lambda state: state, 4)
MODELS = {model.name: model for model in (QUASI, NATURAL, LINEAR)}


def backwards(model: Model) -> Model:
    """The same paths read from the end: H_p is then the best way on from state p."""
    into = [[] for _ in model.moves]
    for target, moves in enumerate(model.moves):
        for move in moves:
            into[move.source].append(move._replace(source=target))
    return model._replace(moves=tuple(map(tuple, into)))


def relabel(model: Model, order: Sequence[int]) -> list[int]:
    """state -> the state that means the same once axis n is old axis ``order[n]``."""
    step = {(m.source, m.column): q for q, into in enumerate(model.moves) for m in into}
    same, ready = {0: 0}, [0]
    for state in ready:
        for column in COLUMN_ORDER:
            target = step[state, column]
            if target not in same:
                same[target] = step[same[state], turn(column, order)]
                ready.append(target)
    return [same[state] for state in range(model.states)]


def turn(column: Any, order: Sequence[int]):
    """A column number once axis n is old axis ``order[n]``; arrays too."""
    return sum(
        ((column >> (2 - old)) & 1) << (2 - axis) for axis, old in enumerate(order)
    )


def matrices_in(order: Sequence[int], matrices: Sequence[Any]) -> tuple:
    """The scores of the pairs once axis n is old axis ``order[n]``."""
    ordered = []
    for x, y in ((order[x], order[y]) for x, y in SEQUENCE_PAIRS):
        matrix = matrices[SEQUENCE_PAIRS.index((min(x, y), max(x, y)))]
        ordered.append(matrix if x < y else matrix.T)
    return tuple(ordered)


def weigh(model: Model, pairs: Sequence[jax.Array], gaps: Sequence[Gaps]) -> Weights:
    """(column, gaps) -> the score that it adds, for all moves of a model.

    ``pairs`` are the substitution scores of the cell's three residue pairs, and
    ``gaps`` the ``affine.Gaps`` of a gap in a, b and c at this cell: scalars or arrays.
    """
    sums = {}
    for move in (move for moves in model.moves for move in moves):
        if (key := (move.column, move.gaps)) not in sums:
            terms = [
                score
                for pair, score in zip(SEQUENCE_PAIRS, pairs, strict=True)
                if pattern(move.column, pair) == BOTH
            ]
            value = sum(terms[1:], terms[0]) if terms else jnp.zeros_like(pairs[0])
            for sequence, opens in move.gaps:
                cost = gaps[sequence].open if opens else gaps[sequence].extend
                value = value - cost
            sums[key] = value
    return sums


def triple_cell(
    model: Model,
    sources: Mapping[int, Sequence[jax.Array]],
    weights: Weights,
    floor: jax.Array | None = None,
) -> tuple[jax.Array, ...]:
    """H of one cell in every state.

    H_q[i,j,k] = max over moves (p, t, q) of
                 H_p[i - t_a, j - t_b, k - t_c] + residue pairs - gaps(p, t)

    ``sources[t][p]`` is H_p of the neighbour that column t comes from; ``weights`` is
    ``weigh(...)``; ``floor`` (local mode) is the score of an alignment that starts at
    this cell: 0, or minus infinity outside the table.
    """
    h = []
    for moves in model.moves:
        best = {}  # equal additions are added once
        for move in moves:
            key, value = (move.column, move.gaps), sources[move.column][move.source]
            best[key] = lax.max(best[key], value) if key in best else value
        ends = [value + weights[key] for key, value in best.items()]
        top = ends[0]
        for value in ends[1:]:
            top = lax.max(top, value)
        h.append(top)
    if floor is not None:
        h[0] = lax.max(h[0], floor)
    return tuple(h)


def choose(
    model: Model,
    h: Sequence[jax.Array],
    sources: Mapping[int, Sequence[jax.Array]],
    weights: Weights,
    values: Callable[[int, int], jax.Array],
):
    """For every state ``values(q, n)`` of the first move n that attains H."""
    out = []
    for q, moves in enumerate(model.moves):
        picked = values(q, len(moves) - 1)
        for n in range(len(moves) - 2, -1, -1):
            source, column, gaps = moves[n]
            attained = sources[column][source] + weights[column, gaps] == h[q]
            picked = lax.select(attained, values(q, n), picked)
        out.append(picked)
    return tuple(out)


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

    ``end`` (S,) is H at the cell ``size``, ``start_points`` (S,) its pointers;
    ``layer`` (S, U, V) H at w = size[2]; ``best`` and ``best_w`` (U, V) the best H over
    states and w, and its first w; ``choices`` uint8 bytes, in an order of the fill's
    own (``choice_at``); ``south`` (C, V, W) and ``east`` (C, U, W) the last layers
    along u and v, ``bottoms`` (W // height + 1, C, U, V) those at w = 0, height, ...:
    the S states, and with pointers as many again.
    """

    end: jax.Array
    start_points: jax.Array | None = None
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


def gap_costs(problem: FillProblem, axis: int, index: jax.Array) -> Gaps:
    """Costs of a gap in a sequence at ``index``: nothing at its two free indices."""
    gaps, free = problem.costs.gaps, problem.box.free[axis]
    if not problem.outputs.free:
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

        def number_of(state: int, move: int):  # noqa: ARG001
            return jnp.full(h[0].shape, move, jnp.uint32)

        choices = choose(model, h, before, weights, number_of)
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


def moved(cells: States, cut: Callable[[jax.Array], jax.Array]) -> States:
    """A part of some cells: of H of each state, and of the pointers."""
    h, pointers = cells
    return tuple(map(cut, h)), pointers and tuple(map(cut, pointers))


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
    """The choice of ``state`` at v, int32; ``column_of_bytes(v)`` -> uint8 (L,)."""
    if model.states == 1:
        two_choices = column_of_bytes(v // 2)[0]
        return ((two_choices >> (4 * (v % 2)).astype(jnp.uint8)) & 7).astype(jnp.int32)
    stored = column_of_bytes(v).astype(jnp.uint32)
    each = -(-model.bits * min(8, model.states) // 8)
    first = (state // 8) * each
    word = jnp.zeros((), jnp.uint32)
    for byte in range(each):
        at = jnp.clip(first + byte, 0, stored.shape[0] - 1)
        inside = first + byte < stored.shape[0]
        word = word | jnp.where(inside, stored[at] << (8 * byte), jnp.uint32(0))
    shift = (model.bits * (state % 8)).astype(jnp.uint32)
    return ((word >> shift) & jnp.uint32(2**model.bits - 1)).astype(jnp.int32)


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


class ColumnPath(NamedTuple):
    """A walk: the point ``at`` which it ended, int32 (4,) u, v, w, state; the number of
    columns; and the columns, uint8 (T,), **from the end to the start**, then zeros."""

    at: jax.Array
    count: jax.Array
    columns: jax.Array


def walk(
    model: Model,
    choice_at: Callable[[jax.Array], jax.Array],
    start: jax.Array,
    longest: int,
    seeded: bool | jax.Array = True,
) -> ColumnPath:
    """Walk from ``start``, int32 (4,) u, v, w and state, to the seed (1, 1, 1), or to
    the layer before the box.

    ``choice_at`` gives the stored choice of such a point, int32. A path has at most
    ``longest`` columns (static), u + v + w. Without ``seeded`` no path starts at
    (1, 1, 1): the box lies further inside the table.
    """
    # Sources and columns of the moves into each state, (S, 2^bits) each, 0 for none.
    none = (0, 0, ())
    rows = [[*moves, *[none] * (2**model.bits - len(moves))] for moves in model.moves]
    sources, columns = (
        jnp.asarray([[move[part] for move in row] for row in rows], jnp.int32)
        for part in (0, 1)
    )
    bits = jnp.asarray((4, 2, 1), jnp.int32)

    def unfinished(path: ColumnPath):
        at = path.at[:3]
        return jnp.all(at > 0) & (jnp.any(at > 1) | ~jnp.asarray(seeded))

    def step(path: ColumnPath):
        state, choice = path.at[3], choice_at(path.at)
        column = columns[state, choice]
        residues = ((column & bits) > 0).astype(jnp.int32)
        at = jnp.append(path.at[:3] - residues, sources[state, choice])
        steps = path.columns.at[path.count].set(column.astype(jnp.uint8))
        return ColumnPath(at, path.count + 1, steps)

    empty = ColumnPath(start, jnp.int32(0), jnp.zeros(longest, jnp.uint8))
    return lax.while_loop(unfinished, step, empty)
