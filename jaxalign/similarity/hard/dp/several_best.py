"""The k best alignments of one pair: a fill, and k walks that leave each other.

In the ordered form of ``fill`` every set of pairs is exactly one path, so different
paths are different alignments. A walk from an end cell chooses a predecessor at every
cell, and the table says what each choice is worth: whoever leaves a path of score s for
a predecessor that is worth d less can still reach s - d, and no more. So the next best
alignment is always the best branch of those before it (Lawler, Management Sci. 18:401,
1972): the first ones are the k best end cells, and each path adds those of its own cells,
of which k are kept. Beside the fill that takes k walks, however large k.
"""  # noqa: E501

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.similarity.arguments import FORBIDDEN, ModeRules
from jaxalign.similarity.arrays import loop_state
from jaxalign.similarity.band import overhang_weight
from jaxalign.similarity.costs import Costs, CostTable, Weights, cost_at
from jaxalign.similarity.hard.dp.fill import diagonals_of, ordered_cells

IN_PAIR, IN_UP, IN_LEFT, START = 0, 1, 2, 3  # states; E is UP, F is LEFT


class SeveralPaths(NamedTuple):
    """By rank, the best first: ``score`` (k,), the cell of the last pair ``end_i``,
    ``end_j`` and the cell before the first one ``i``, ``j`` (k,), 0 where there is no
    pair; ``partners`` int32 (k, M)."""

    score: jax.Array
    end_i: jax.Array
    end_j: jax.Array
    i: jax.Array
    j: jax.Array
    partners: jax.Array


class CellValues(NamedTuple):
    """The best path to each state of each cell (D, R), that of (i, j) in [i + j, i];
    ``total`` with the end behind it."""

    p: jax.Array
    e: jax.Array
    f: jax.Array
    total: jax.Array


class Branches(NamedTuple):
    """Paths that nobody has walked: the ``score`` of each, the state ``kind`` of cell
    (``i``, ``j``) where it begins to be its own, and the rank of its ``parent``, with
    which it shares the pairs behind row i."""

    score: jax.Array
    i: jax.Array
    j: jax.Array
    kind: jax.Array
    parent: jax.Array


def several_best(weights: Weights, rules: ModeRules, k: int) -> SeveralPaths:
    """The k alignments of largest score; those that do not exist have ``FORBIDDEN`` or
    less."""
    table = CostTable(weights, rules)
    values, best = _filled(table, weights)
    rows = table.shape[0]

    def step(state: tuple[Any, ...], rank: jax.Array):
        branches, partners = state
        at = jnp.argmax(branches.score)
        branch = jax.tree.map(lambda x: x[at], branches)
        trail = _walk(branch, values, weights, rules)
        shared = jnp.where(table.i[:rows] >= branch.i, partners[branch.parent], -1)
        path = jnp.append(shared, -1).at[trail.row].set(trail.partner)[:rows]
        scores = branches.score.at[at].set(-jnp.inf)
        branches = _best_of(branches._replace(score=scores), trail, branch, rank, k)
        return (branches, partners.at[rank].set(path)), branch.score

    nobody = jnp.full((k + 1, rows), -1, jnp.int32)
    ends = _ends(values.total, best, weights.overhang.empty, k)
    state = loop_state((ends, nobody), rules.m)
    ranks = jnp.arange(k, dtype=jnp.int32)
    (_, partners), score = lax.scan(step, state, ranks)
    return SeveralPaths._make((score, *_borders(partners[:k]), partners[:k]))


def _filled(table: CostTable, weights: Weights):
    """(values of all cells, the best total of each row)."""
    none = jnp.full(table.rows, FORBIDDEN, weights.overhang.empty.dtype)
    cells = ordered_cells(table, local=False)

    def step(carry: tuple[jax.Array, ...], x: Costs):
        *lanes, best = carry
        lanes, _, total = cells(lanes, x)
        e, f, p = lanes[:3]
        return (*lanes, jnp.maximum(best, total)), CellValues(p, e, f, total)

    start = loop_state((none,) * 7, table.rules.m)
    xs = diagonals_of(table, weights.similarity, FORBIDDEN)
    (*_, best), values = lax.scan(step, start, xs)
    return values, best


def _ends(totals: jax.Array, best: jax.Array, empty: jax.Array, k: int) -> Branches:
    """The k best end cells, which lie in the k rows with the best ones; the alignment
    without pairs ends in (0, 0)."""
    _, rows = lax.top_k(best, min(k, len(best)))
    scores = jnp.append(totals[:, rows].T, jnp.maximum(empty, FORBIDDEN))
    score, at = _largest(scores, k)
    count = len(totals)
    cell = jnp.minimum(at, scores.size - 2)
    i = rows[cell // count].astype(jnp.int32)
    i, j = (jnp.where(at >= scores.size - 1, 0, x) for x in (i, cell % count - i))
    kind, parent = (jnp.full(k, x, jnp.int32) for x in (IN_PAIR, k))
    return Branches(score, i, j, kind, parent)


class Trail(NamedTuple):
    """By step of a walk: the ``row`` of a pair and its ``partner``, or the row beyond
    all; the cell (``i``, ``j``) of the predecessor, and how much ``less`` (S, 4) is to
    be had in each of its states; -inf for that which was taken."""

    row: jax.Array
    partner: jax.Array
    i: jax.Array
    j: jax.Array
    less: jax.Array


def _walk(
    branch: Branches, values: CellValues, weights: Weights, rules: ModeRules
) -> Trail:
    """The best path of one branch, from its cell back."""
    rows, columns = weights.similarity.shape
    exists = branch.score > FORBIDDEN / 2
    kinds = jnp.arange(4, dtype=jnp.int32)

    def step(state: tuple[Any, ...], _: None):
        i, j, kind = state
        goes_on = (kind != START) & (i > 0) & (j > 0)
        at = i - jnp.where(kind == IN_LEFT, 0, 1), j - jnp.where(kind == IN_UP, 0, 1)
        a, b = (jnp.where(goes_on, x, 0) for x in at)
        choices = _choices(kind, (i, j), (a, b), values, weights, rules)
        choice = jnp.argmax(choices).astype(jnp.int32)
        less = choices - choices[choice]
        less = jnp.where(goes_on & (kinds != choice), less, -jnp.inf)
        row = jnp.where(goes_on & (kind == IN_PAIR), i - 1, rows)
        kind = jnp.where(goes_on, choice, START)
        return (a, b, kind), Trail(row, j - 1, a, b, less)

    kind = jnp.where(exists, branch.kind, START)
    state = loop_state((branch.i, branch.j, kind), values.p)
    return lax.scan(step, state, length=max(rows + columns, 1))[1]


def _choices(
    kind: jax.Array,
    cell: tuple[jax.Array, jax.Array],
    before: tuple[jax.Array, jax.Array],
    values: CellValues,
    weights: Weights,
    rules: ModeRules,
):
    """Values (4,) of the states of the cell ``before`` as predecessors of one in
    ``cell``, up to a number that they share."""
    place = before[0] + before[1], before[0]
    p, e, f = (x[place] for x in values[:3])
    after = jnp.maximum(cell[0] - 1, 0), jnp.maximum(cell[1] - 1, 0)
    opening, extending = weights.opening, weights.extending
    open_e, more_e = (cost_at(x.e, *after, 0) for x in (opening, extending))
    open_f, more_f = (cost_at(x.f, *after, 1) for x in (opening, extending))
    turn = jnp.where(rules.adjacent, e - open_f, FORBIDDEN)
    none = jnp.full_like(p, FORBIDDEN)
    start = overhang_weight(weights.overhang, "start", rules, None, *before)
    pair = jnp.stack([p, e, f, start])
    up = jnp.stack([p - open_e, e - more_e, none, none])
    left = jnp.stack([p - open_f, turn, f - more_f, none])
    return jnp.where(kind == IN_PAIR, pair, jnp.where(kind == IN_UP, up, left))


def _best_of(branches: Branches, trail: Trail, path: Branches, rank: jax.Array, k: int):
    """Merge the branches of a walked path and keep the k best."""
    score, at = _largest((path.score + trail.less).reshape(-1), k)
    step, kind = jnp.minimum(at // 4, len(trail.i) - 1), at % 4
    additions = Branches(score, trail.i[step], trail.j[step], kind, jnp.full(k, rank))
    every = jax.tree.map(lambda x, y: jnp.append(x, y), branches, additions)
    _, best = lax.top_k(every.score, k)
    return jax.tree.map(lambda x: x[best], every)


def _largest(x: jax.Array, k: int):
    """The k largest numbers and their places, which lie beyond x where x has fewer."""
    padding = jnp.full(max(k - x.size, 0), -jnp.inf, x.dtype)
    score, at = lax.top_k(jnp.append(x, padding), k)
    return score, at.astype(jnp.int32)


def _borders(partners: jax.Array):
    """The cell of the last pair of each path, and that before the first."""
    paired = partners >= 0
    rows = partners.shape[1]
    if not rows:
        return (jnp.zeros(len(partners), jnp.int32),) * 4
    i = jnp.argmax(paired, 1).astype(jnp.int32)
    end = rows - jnp.argmax(paired[:, ::-1], 1).astype(jnp.int32)
    nonempty = jnp.any(paired, 1)
    j, end_j = (
        jnp.take_along_axis(partners, at[:, None], 1)[:, 0] for at in (i, end - 1)
    )
    return tuple(jnp.where(nonempty, x, 0) for x in (end, end_j + 1, i, j))
