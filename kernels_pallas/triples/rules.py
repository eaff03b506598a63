"""The cells of a tile of three sequences, in registers: two gap models.

Letters are those of Li, Ranka and Sahni (Optimal Alignment of Three Sequences On A GPU,
section 3). A column is a number t = 4a + 2b + c, a bit where that sequence has a
residue. Scores are skewed: H' = H + 2 extend (i + j + k), so that a gap that goes on
costs nothing; 2 extend is in every substitution score.

``linear``, open == extend, five min-max instructions and an addition a cell:

    H[i,j,k] = max(H[i-1,j,k], H[i,j-1,k], H[i,j,k-1],
                   H[i-1,j-1,k] + ab, H[i-1,j,k-1] + ac, H[i,j-1,k-1] + bc,
                   H[i-1,j-1,k-1] + ab + ac + bc)

``quasi-natural`` (Altschul 1989) has a state for every last column, and 49 moves. A
column t with a gap opens gaps in 0, 1 or 2 of its pairs: none after t itself, one after
the two columns of ``NEAR``, two after the others; t = 7 opens none. So one maximum a
state is enough, taken where the move begins:

    X_7 = M = max of all H_p
    X_t = max(H_t, H_p - D for p in NEAR[t], M - 2 D)            D = open - extend
    H_t[i,j,k] = X_t[i-t_a, j-t_b, k-t_c] + its residue pairs

15 min-max instructions. From the end backwards the same sweep gives B_p, the best way
on from state p, with Y_t = B_t[...] + residue pairs and

    B_7 = max(Y_7, max of the other Y_t - 2 D)
    B_p = max(B_7, Y_p, Y_t - D for t in NEAR[p])
"""

from typing import NamedTuple

import jax.numpy as jnp

COLUMNS = (7, 6, 5, 3, 4, 2, 1)  # states in this order; the first of a tie wins
NEAR = {6: (4, 2), 5: (4, 1), 3: (2, 1), 4: (6, 5), 2: (6, 3), 1: (5, 3)}


class Rule(NamedTuple):
    """``planes`` values a cell hands to a neighbour, ``corners`` those of them that go
    across a corner, ``states`` values a cell has."""

    name: str
    planes: int
    corners: tuple
    states: int


LINEAR = Rule("linear", 1, (0,), 1)
QUASI = Rule("quasi-natural", 4, (1, 3), 7)
RULES = {rule.name: rule for rule in (LINEAR, QUASI)}


class Around(NamedTuple):
    """The cells around a tile: planes x columns above it, planes x rows before it,
    corners, for one k."""

    north: tuple
    west: tuple
    corner: tuple


def opened(before: int, column: int) -> int:
    """Pairs in which ``column`` opens a gap after the column ``before``."""
    if column == 7 or before == column:
        return 0
    return 1 if before in NEAR[column] else 2


def cells(rule: Rule, old, around: Around, past: Around, scores, more):
    """(tile, south, east, values) of one layer.

    ``old`` and ``tile`` (rows, columns, planes) are the values of cells for the next
    layer; ``south`` and ``east`` as ``Around.north`` and ``west``; ``values`` (rows,
    columns, states). ``scores`` are ab (rows, columns), ac (rows,), bc (columns,);
    ``more`` the step's origin mask, seeds, D, and whether it goes backwards.
    """
    step = _linear if rule.states == 1 else _quasi
    return step(old, around, past, scores, more)


def _linear(old, around, past, scores, more):
    ab, ac, bc = scores
    origin, seeds, *_ = more
    (north,), (west,), (corner,) = around
    (north_old,), (west_old,), (corner_old,) = past
    above, above_old = (corner, *north), (corner_old, *north_old)
    tile = []
    for r in range(len(ac)):
        row = [west[r]]
        row_old = (west_old[r], *(x for (x,) in old[r]))
        for x in range(len(bc)):
            m = jnp.maximum(above_old[x + 1] + ac[r], row_old[x + 1])
            m = jnp.maximum(row_old[x] + bc[x], m)
            both = jnp.maximum(above_old[x] + (ac[r] + bc[x]), above[x])
            m = jnp.maximum(both + ab[r][x], m)
            m = jnp.maximum(jnp.maximum(m, above[x + 1]), row[-1])
            row.append(jnp.where(origin, seeds[0], m) if r == x == 0 else m)
        above, above_old = tuple(row), row_old
        tile.append(tuple((x,) for x in row[1:]))
    south = (tuple(x for (x,) in tile[-1]),)
    east = (tuple(row[-1][0] for row in tile),)
    return tuple(tile), south, east, tile


def _quasi(old, around, past, scores, more):
    # South X_4, X_6, X_5, X_7; east X_2, X_6, X_3, X_7; kept X_1, X_5, X_3, X_7.
    ab, ac, bc = scores
    x4, x6, *_ = around.north
    _, _, x5, x7 = past.north
    x6, x7 = (around.corner[0], *x6), (past.corner[1], *x7)
    tile, values, east = [], [], []
    for r in range(len(ac)):
        x2 = around.west[0][r]
        row4, row6, row5, row7 = [], [around.west[1][r]], [], [past.west[3][r]]
        before3 = past.west[2][r]
        row, row_values = [], []
        for x in range(len(bc)):
            x1, *old_values = old[r][x]
            h = {
                7: x7[x] + (ab[r][x] + (ac[r] + bc[x])),
                6: x6[x] + ab[r][x],
                5: x5[x] + ac[r],
                3: before3 + bc[x],
                4: x4[x],
                2: x2,
                1: x1,
            }
            go, value = _leave(h, more, r == x == 0)
            row4.append(go[4])
            row6.append(go[6])
            row5.append(old_values[0])
            row7.append(old_values[2])
            before3, x2 = old_values[1], go[2]
            row.append((go[1], go[5], go[3], go[7]))
            row_values.append(value)
        x4, x6, x5, x7 = row4, row6, row5, row7
        east.append((go[2], go[6], go[3], go[7]))
        tile.append(tuple(row))
        values.append(row_values)
    last = tile[-1]
    south = (
        tuple(x4),
        tuple(x6[1:]),
        tuple(x[1] for x in last),
        tuple(x[3] for x in last),
    )
    return tuple(tile), south, tuple(zip(*east, strict=True)), values


def _leave(h, more, first):
    """X of all columns from H of all states, and the values of the cell."""
    origin, seeds, d, backwards = more
    less = {t: x - d for t, x in h.items() if t != 7}
    if backwards:
        best = _largest([h[t] for t in COLUMNS[1:]])
        go = {7: jnp.maximum(best - 2 * d, h[7])}
    else:
        go = {7: _largest(list(h.values()))}
    low = go[7] if backwards else go[7] - 2 * d
    for t in COLUMNS[1:]:
        p, q = NEAR[t]
        near = jnp.maximum(jnp.maximum(h[t], less[p]), less[q])
        go[t] = jnp.maximum(near, low)
    if first:
        go = {
            t: jnp.where(origin, seed, go[t])
            for t, seed in zip(COLUMNS, seeds, strict=True)
        }
    value = go if backwards else h
    return go, tuple(value[t] for t in COLUMNS)


def _largest(values):
    top = values[0]
    for x in values[1:]:
        top = jnp.maximum(top, x)
    return top
