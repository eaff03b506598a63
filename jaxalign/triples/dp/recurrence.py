"""The cell rules of three sequences, elementwise; every triple fill calls them.

Letters are those of Li, Ranka and Sahni (Optimal Alignment of Three Sequences On A
GPU, section 3): sequences a, b, c along i, j, k. A column is a number t = 4a + 2b + c,
a bit where that sequence has a residue. A *model* says what gaps cost in the three
induced pairs, as states and moves between them:

``linear``         one state, 7 moves: the paper's recurrence, open == extend.
``quasi-natural``  the state is the last column, 7 states, 49 moves (Altschul 1989): a
                   run of residue/gap columns cut by a gap/gap column opens again.
``natural``        the state is the last pattern other than gap/gap of each pair,
                   13 states, 91 moves: the sum of the three affine pair scores.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.affine import Gaps

# Ties between columns: the first of this order wins, in every fill.
COLUMN_ORDER = (7, 6, 5, 3, 4, 2, 1)
SEQUENCE_PAIRS = ((0, 1), (0, 2), (1, 2))
BOTH, FIRST_ONLY, SECOND_ONLY, NEITHER = 3, 2, 1, 0


State = TypeVar("State", bound=Hashable)  # as a model describes it
Weights = dict[tuple[int, tuple], jax.Array]  # (column, gaps) -> score


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
    """Who of a pair has a residue: BOTH, FIRST_ONLY, SECOND_ONLY or NEITHER."""
    x, y = ((column >> (2 - sequence)) & 1 for sequence in pair)
    return 2 * x + y


def _gaps(before: tuple[int, ...], column: int):
    """The gaps that a column pays after the patterns ``before`` of the three pairs."""
    paid = []
    for pair, old in zip(SEQUENCE_PAIRS, before, strict=True):
        new = pattern(column, pair)
        if new in (FIRST_ONLY, SECOND_ONLY):
            paid.append((pair[new == FIRST_ONLY], new != old))
    return tuple(sorted(paid))


def _patterns(column: int):
    return tuple(pattern(column, pair) for pair in SEQUENCE_PAIRS)


def _after(before: tuple[int, ...], column: int):
    """The last patterns other than gap/gap, one column later."""
    pairs = zip(before, _patterns(column), strict=True)
    return tuple(new or old for old, new in pairs)


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
        states += [new for new in dict.fromkeys(after) if new not in states]
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
        ((column >> (2 - old)) & 1) << (2 - new) for new, old in enumerate(order)
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
