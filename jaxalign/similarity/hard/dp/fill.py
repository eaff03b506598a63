"""Two sequences whose pairs are scored one by one: anti-diagonals, directions, and the
walk back along them.

``wavefront`` reads a substitution matrix; here every pair of positions has a score of
its own, and gap costs may depend on the place. Two forms fill the table:

*Plain*, for costs that are numbers or vectors: the recurrence of ``recurrence`` and
its tie rule. Between two pairs the target's residues come first, as the tie rule would
have it, so a gap never opens anew where it could be extended:

    P[i,j] = s[i,j] + H[i-1,j-1]        E[i,j] = max(E[i-1,j] - ext, max(P, F)[i-1,j] - open)
    H      = max(P, E, F)               F[i,j] = max(F[i,j-1] - ext,        P[i,j-1]  - open)

*Ordered*, for costs by cell and for ``adjacent_gaps=False``: the soft model
(``soft.dp.scan``) with max in place of log-sum-exp. A path begins and ends with a pair,
overhangs have a cost (``similarity.costs``), and between two pairs the query's
residues come first, since costs by cell depend on the order:

    P[i,j] = s[i,j] + B[i-1,j-1]        E[i,j] = max(E[i-1,j] - ext,        P[i-1,j]  - open)
    B      = max(start, P, E, F)        F[i,j] = max(F[i,j-1] - ext, max(P, E)[i,j-1] - open)

A direction is a byte: which of stop, up, left and pair a path takes in H (or B), and
three decisions of gaps (``GO_UP``, ``GO_LEFT``, ``TO_PAIR``).
"""  # noqa: E501

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.similarity.arguments import FORBIDDEN, ModeRules
from jaxalign.similarity.arrays import columns_at, down, loop_state, skew
from jaxalign.similarity.band import BandTable
from jaxalign.similarity.costs import Costs, CostTable, Weights

STOP, UP, LEFT, PAIR = 0, 1, 2, 3
# E[i,j] extends that of the row above; F[i,j] that of the column before; a gap that
# opens after this cell follows its pair (and not the other gap).
GO_UP, GO_LEFT, TO_PAIR = 4, 8, 16


class ScoredFill(NamedTuple):
    """``score`` and end cell ``i``, ``j``, scalars; ``directions`` uint8 (D, lanes),
    those of cell (i, j) in [i + j, ``table.lane(i, i + j)``]."""

    score: jax.Array
    i: jax.Array
    j: jax.Array
    directions: jax.Array
    table: CostTable


def fill(
    weights: Weights,
    rules: ModeRules,
    *,
    local: bool,
    ordered: bool,
    band: int | None = None,
) -> ScoredFill:
    """Fill the table of one pair, in the form ``local``, ``ordered``; an ordered fill,
    which alone may have a ``band``, ends in (0, 0) where no pair is best.

    Costs and overhangs are of the dtype of the scores, plain: numbers or vectors. The
    similarity may be narrower.
    """
    if band is not None:
        return _banded(BandTable(weights, rules, band), weights, local)
    table = CostTable(weights, rules)
    dtype = weights.overhang.empty.dtype
    none = jnp.full(table.rows, FORBIDDEN, dtype)
    s = weights.similarity
    outside = FORBIDDEN if ordered else 0
    xs = diagonals_of(table, s, outside)
    cells = ordered_cells(table, local)

    def ordered_step(carry: Sequence[jax.Array], x: Costs):
        *lanes, best, best_j = carry
        lanes, code, total = cells(lanes, x)
        wins = total > best
        best = jnp.where(wins, total, best)
        best_j = jnp.where(wins, x["d"] - table.i, best_j)
        return (*lanes, best, best_j), code

    step = ordered_step if ordered else _plain_step(table, local)
    start = (none,) * 6 + (none, jnp.zeros_like(table.i))
    if ordered:
        # The alignment without pairs stands in (0, 0), and goes before its equals.
        empty = jnp.maximum(weights.overhang.empty, FORBIDDEN)
        start = (*start[:6], none.at[0].set(empty), start[7])
    carry, directions = lax.scan(step, loop_state(start, rules.m), xs)
    best, best_j = carry[6:]
    i = jnp.argmax(best).astype(jnp.int32)
    return ScoredFill(best[i], i, best_j[i], directions, table)


def diagonals_of(table: CostTable, similarity: jax.Array, outside: float) -> dict:
    """Scores and costs by diagonal, for a loop; ``outside`` on the borders."""
    padded = jnp.pad(similarity, ((1, 0), (1, 0)), constant_values=outside)
    d = jnp.arange(table.rows + table.shape[1], dtype=jnp.int32)
    return {"d": d, "similarity": skew(padded, outside)} | table.scanned


def _banded(table: BandTable, weights: Weights, local: bool) -> ScoredFill:
    """The ordered form in the lanes of a band. Rows change lanes, so the best cell is
    one for all of them."""
    dtype = weights.overhang.empty.dtype
    none = jnp.full(table.rows, FORBIDDEN, dtype)
    d = jnp.arange(sum(table.shape) + 1, dtype=jnp.int32)
    xs = {"d": d, "similarity": table.by_lanes(weights.similarity.astype(dtype))}
    cells, zero = ordered_cells(table, local), jnp.int32(0)

    def step(carry: Sequence[jax.Array], x: Costs):
        *lanes, best, best_i, best_j = carry
        d = x["d"]
        lanes, code, total = cells([table.ahead(y, d) for y in lanes], x)
        lane = jnp.argmax(total).astype(jnp.int32)
        i = table.row(d)[lane]
        value = total[lane]
        wins = (value > best) | ((value == best) & (i < best_i))
        ends = zip((value, i, d - i), (best, best_i, best_j), strict=True)
        ends = (jnp.where(wins, candidate, old) for candidate, old in ends)
        return (*lanes, *ends), code

    empty = jnp.maximum(weights.overhang.empty, FORBIDDEN)
    start = loop_state((*(none,) * 6, empty, zero, zero), table.rules.m)
    carry, directions = lax.scan(step, start, xs)
    score, i, j = carry[6:]
    return ScoredFill(score, i, j, directions, table)


def _plain_step(table: CostTable, local: bool):
    i, rules = table.i, table.rules
    open_left, open_top = rules.query_start | local, rules.target_start | local
    left = jnp.where(open_left, 0, -table.constant["start_query"])
    top = jnp.where(open_top, 0, -table.constant["start_target"])

    def step(carry: Sequence[jax.Array], x: Costs):
        b1, _, best, best_j = carry[4:]
        d = x["d"]
        j = d - i
        low = FORBIDDEN
        p, e, f, extends = _cells(table, carry, x)
        top_row, column = i == 0, j == 0
        edge = top_row | column
        border = jnp.where(top_row, columns_at(top, table.rows, d), left)
        code = _code(p, e, f, extends, p >= f)
        pair_or_left = jnp.maximum(p, f)
        h = jnp.where(edge, border, jnp.maximum(pair_or_left, e))
        if local:
            code = jnp.where(h > 0, code, code & ~PAIR)
            h = jnp.maximum(h, 0)
        e, f = jnp.where(edge, low, e), jnp.where(edge, low, f)
        after = jnp.where(edge, border, pair_or_left)
        to_right = jnp.where(column & open_left, border, jnp.where(edge, low, p))
        last_row, last_column = i == rules.m, j == rules.n
        ending = last_row & (last_column | rules.target_end)
        ending = local | ending | (last_column & rules.query_end)
        ending = ending & (i <= rules.m) & (j <= rules.n) & (j >= 0)
        wins = ending & (h > best)
        best, best_j = jnp.where(wins, h, best), jnp.where(wins, j, best_j)
        return (e, f, after, to_right, h, b1, best, best_j), code.astype(jnp.uint8)

    return step


def ordered_cells(table: CostTable, local: bool):
    """A diagonal: lanes of the one before -> (its lanes, directions, scores of paths
    that end in a pair there)."""
    adjacent = table.rules.adjacent

    def cells(carry: Sequence[jax.Array], x: Costs):
        b1, d = carry[4], x["d"]
        p, e, f, extends = _cells(table, carry, x)
        start = table.start(x, d)[0]
        to_pair = ~adjacent | (p >= e)
        code = _code(p, e, f, extends, to_pair)
        h = jnp.maximum(jnp.maximum(p, e), f)
        goes_on = h > start if local else h >= start
        code = jnp.where(goes_on, code, code & ~PAIR)
        b = jnp.maximum(start, h)
        y = jnp.where(to_pair, p, e)
        total = jnp.where(table.core(d), p + table.end(x, d)[0], FORBIDDEN)
        return (e, f, p, y, b, b1), code.astype(jnp.uint8), total

    return cells


def _cells(table: CostTable, carry: Sequence[jax.Array], x: Costs):
    """P, E and F of an anti-diagonal, and whether E and F extend a gap."""
    e1, f1, x1, y1, b1, b2 = carry[:6]
    low = FORBIDDEN
    cost = {name: table.at(name, x, x["d"]) for name in table.costs}
    p = x["similarity"].astype(b1.dtype) + down(b2, low)
    e_more, e_new = down(e1, low) - cost["extend_e"], down(x1, low) - cost["open_e"]
    f_more, f_new = f1 - cost["extend_f"], y1 - cost["open_f"]
    e, f = jnp.maximum(e_more, e_new), jnp.maximum(f_more, f_new)
    return p, e, f, (e_more >= e_new, f_more >= f_new)


def _code(
    p: jax.Array,
    e: jax.Array,
    f: jax.Array,
    extends: Sequence[jax.Array],
    to_pair: jax.Array,
):
    """Diagonal before up before left."""
    kind = jnp.where(e >= f, UP, LEFT)
    kind = jnp.where((p >= e) & (p >= f), PAIR, kind)
    up_extends, left_extends = extends
    kind |= jnp.where(up_extends, GO_UP, 0) | jnp.where(left_extends, GO_LEFT, 0)
    return kind | jnp.where(to_pair, TO_PAIR, 0)


# What a path must do next, beside UP, LEFT and PAIR: as H says, or pair or other gap.
FREELY, AFTER_GAP = 0, 4
STEPS_AT_A_TIME = 4


class PartnerPath(NamedTuple):
    """``partners`` int32 (M,), and the cell (``i``, ``j``) where the walk ended: before
    the first pair, or on row 0 or column 0."""

    partners: jax.Array
    i: jax.Array
    j: jax.Array


def walk(filled: ScoredFill, *, ordered: bool) -> PartnerPath:
    """The path of one pair."""
    codes = filled.directions
    rows = filled.table.shape[0]
    after_up, after_left = (PAIR, AFTER_GAP) if ordered else (AFTER_GAP, PAIR)
    gap_before = UP if ordered else LEFT  # the gap that may stand before this one

    def unfinished(state: tuple[jax.Array, ...]):
        return ~state[3]

    def step(state: tuple[jax.Array, ...]):
        i, j, move, ended, partners = state
        ended = ended | (i == 0) | (j == 0)
        code = codes[i + j, filled.table.lane(i, i + j)].astype(jnp.int32)
        after_gap = jnp.where(code & TO_PAIR, PAIR, gap_before)
        op = jnp.where(move == AFTER_GAP, after_gap, move)
        op = jnp.where(move == FREELY, code & PAIR, op)
        ended = ended | (op == STOP)
        op = jnp.where(ended, STOP, op)
        at = jnp.where(op == PAIR, i - 1, rows)
        partners = partners.at[at].set(j - 1)
        move = jnp.where(op == PAIR, FREELY, move)
        move = jnp.where(op == UP, jnp.where(code & GO_UP, UP, after_up), move)
        move = jnp.where(op == LEFT, jnp.where(code & GO_LEFT, LEFT, after_left), move)
        i = i - jnp.where((op == PAIR) | (op == UP), 1, 0)
        j = j - jnp.where((op == PAIR) | (op == LEFT), 1, 0)
        return i, j, move, ended, partners

    def steps(state: tuple[jax.Array, ...]):
        for _ in range(STEPS_AT_A_TIME):
            state = step(state)
        return state

    first_move = jnp.int32(PAIR if ordered else FREELY)
    partners = jnp.full(rows + 1, -1, jnp.int32)  # the last takes what is no pair
    state = (filled.i, filled.j, first_move, jnp.bool_(False), partners)
    state = loop_state(state, codes)
    i, j, _, _, partners = lax.while_loop(unfinished, steps, state)
    return PartnerPath(partners[:rows], i, j)
