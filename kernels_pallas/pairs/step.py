"""One step of a fill: U columns of K rows in every lane."""

from functools import partial

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl

from kernels_pallas.core.fused import fused
from kernels_pallas.core.mosaic import THREADS
from kernels_pallas.pairs.values import (
    ScoreArithmetic,
    load_words,
    row_zero,
    store_words,
)


def fill_step(view, k, rows, t, carry):
    """The carry after step ``t`` of strip ``k``: U more columns in every lane."""
    s, th, v, n = view.s, view.th, view.v, view.n
    u_rows, f_rows, corner, out, ahead, track = carry
    first = view.lane == th.splat(0)

    # Lane 0 has its row above and its letters from memory, others from the lane before.
    def handed_down(words):
        pairs = zip(ahead[words], out[words], strict=True)
        return tuple(jnp.where(first, a, th.shift_up(b, s.lanes)) for a, b in pairs)

    def values(words):
        given = handed_down(words)
        if s.stacks:  # where a query begins, the values of row 0
            given = (word & view.mask for word in given)
            if s.joined:
                given = (word | (v.word(n.corner) & ~view.mask) for word in given)
        return tuple(map(v.read, given))

    (letters,) = handed_down(slice(-1, None))
    above = values(slice(0, -1, 2))
    e = above if s.linear else values(slice(1, -1, 2))
    ahead = load_above(view, k, t + 1)
    # Both halves in one 32-bit addition: neither borrows, see ``ScoreArithmetic.add``.
    cost = th.splat(-n.cost * (65537 if s.packed else 1))
    constants = (v.of(n.floor), v.joined(-n.extend)) if s.local else ()
    lines = u_rows, f_rows, above, e
    where = letters, view.lane, rows or ()
    best = track[:1] if s.local else ()
    given = lines, corner, best, cost, constants, where
    like = *lines, best
    cells = partial(_cells, s=s)
    u_rows, f_rows, up, e, best = fused(th, cells, view.table, given, like)
    words = [th.words(x) for pair in zip(up, e, strict=True) for x in pair]
    store_below(view, k, t, words)
    if s.local:
        track = best + track[1:]
    else:
        last_column(view, k, t, u_rows)
        track = last_row(view, k, t, up, track)
    out = (*words, letters)
    return u_rows, f_rows, above[-1], out, ahead, track


def _cells(th, table, values, s):
    """U and F of all rows, U and E of the last row, and the best, after the U columns
    of a step (``core.fused``)."""
    # Letters of the 2011 paper; U = H - open is stored in place of H.
    # E[i,j] = max(E[i-1,j] - extend, U[i-1,j])
    # F[i,j] = max(F[i,j-1] - extend, U[i,j-1])
    # H[i,j] = max(U[i-1,j-1] + (S + open), E[i,j], F[i,j])     local: and 0
    # In border modes extending a gap costs nothing (``Numbers``). Where gaps are linear
    # E[i,j] is U[i-1,j], and F[i,j] is U[i,j-1]. Columns of a step
    # are taken one row apart: two cells that do not wait for each other stand side by
    # side.
    (u_rows, f_rows, up, e), corner, best, cost, constants, where = values
    v, largest = ScoreArithmetic(th, s), th.maximum
    scores = _scores_of(th, table, where, s)
    u_rows, f_rows, e, best = list(u_rows), list(f_rows), list(e), list(best)
    diagonal, up = [corner, *up[:-1]], list(up)
    floor, longer = constants or (None, None)
    for line in range(s.rows + s.columns - 1):
        for c in range(s.columns):
            r = line - c
            if not 0 <= r < s.rows:
                continue
            if s.linear:
                e[c], f_rows[r] = up[c], u_rows[r]
            elif s.local:
                e[c] = largest(v.plus(e[c], longer), up[c])
                f_rows[r] = largest(v.plus(f_rows[r], longer), u_rows[r])
            else:
                e[c] = largest(e[c], up[c])
                f_rows[r] = largest(f_rows[r], u_rows[r])
            score = scores(c, r)
            if s.local:
                h = largest(v.plus(diagonal[c], score), e[c])
                h = largest(largest(h, f_rows[r]), floor)
                best[0] = largest(best[0], h)
            else:
                h = largest(v.add(diagonal[c], score), e[c])
                h = largest(h, f_rows[r])
            diagonal[c] = u_rows[r]
            # Of border modes with linear gaps, U is H.
            u_rows[r] = up[c] = h if s.linear and not s.local else v.add(h, cost)
    return tuple(u_rows), tuple(f_rows), tuple(up), tuple(e), tuple(best)


def load_above(view, k, t):
    """U and E above row 0 of the strip in step ``t``, 2U words, and the letters of that
    step. Only the first lane of a group uses them."""
    th, s = view.th, view.s
    # After its last step a block has one more row of letters, all beyond the end.
    t = jnp.minimum(t, view.total - (s.lanes - 1))
    letters = th.load(view.targets, view.group, 1, view.start + t, s.groups)

    def from_memory():
        if s.tile:  # step t of the first lane is step t + G - 1 of the last
            base = view.record(k - 1) + t + s.lanes - 1
            at, stride = view.group * s.lanes + s.lanes - 1, THREADS
            source = view.out["bottom_rows"]
        else:
            base, stride = view.room + view.start + t, s.groups
            at, source = view.group, view.out["boundary"]
        return load_words(th, source, at, 2 * s.columns, base, stride)

    if view.strip_room == 1:
        return row_zero(view, t) + letters
    # Beyond the last column of the block nothing was stored.
    stored = (k > 0) & (t < view.total - (s.lanes - 1))
    above = lax.cond(stored, from_memory, partial(row_zero, view, t))
    return tuple(above) + letters


def _scores_of(th, table, where, s):
    """A function (column of the step, row) -> word of biased substitution scores."""
    letters, lane, rows = where
    loaded = {}

    def letter(c):
        return th.shift_right(letters, 8 * c) & 255

    def by_profile(c, r):
        # Four rows a load; lanes of a group side by side, so that no two of them
        # meet in a bank whatever letters they have.
        if c not in loaded:
            loaded[c] = letter(c) * s.strip + lane * 4
        if (c, r // 4) not in loaded:
            more = (r // 4) * (4 * s.lanes)
            loaded[c, r // 4] = th.load(table, loaded[c], 4, more=more)
        return loaded[c, r // 4][r % 4]

    def by_table(c, r):
        low = (rows[r] & 0xFFFF) + letter(c)
        (score,) = th.load(table, low)
        if not s.packed:
            return score
        high = th.shift_right(rows[r], 16) + letter(c + s.columns)
        return score + th.load(table, high)[0]

    return by_profile if s.shared else by_table


def store_below(view, k, t, words):
    """Store the boundary row for the strip below; with checkpoints, the last row of
    every lane."""
    s, th = view.s, view.th
    if s.tile:
        base = view.record(k) + t
        store_words(th, view.out["bottom_rows"], view.thread, words, base, THREADS)
    elif view.strip_room > 1:
        last = (view.lane == th.splat(s.lanes - 1)).astype(jnp.int32)
        step = t - (s.lanes - 1)
        inside = (step >= 0) & (k + 1 < view.count)
        last = last * th.splat(inside.astype(jnp.int32))
        base = view.room + view.start + jnp.maximum(step, 0)
        store_words(th, view.out["boundary"], view.group, words, base, s.groups, last)


def last_column(view, k, t, rows):
    """Border modes: U of column n, for ``ends`` to choose from."""
    th, s = view.th, view.s
    words = [th.words(x) for x in rows]
    base = view.item * view.strip_room + k

    def store():
        for table, end in enumerate(view.ends[: 1 if s.shared else s.tables]):
            here = (th.splat(t) - view.lane == end - 1).astype(jnp.int32)
            for c in range(0, s.rows, 4):
                at = (view.thread + table * THREADS) * s.rows + c
                room = s.slots * THREADS * s.rows
                th.store(view.out["column"], at, words[c : c + 4], base, room, here)

    pl.when(t >= view.tail)(store)


def last_row(view, k, t, up, track):
    """Border modes: the best of row m and its first column, where a path may end there.

    Stored values are skewed; U[m,j] - extend * j compares between columns.
    """
    v, th, n, s = view.v, view.th, view.n, view.s

    def follow():
        best, place = track
        step = (th.splat(t) - view.lane) * s.columns
        for c in range(s.columns):
            j = [step + (c + 1) - x for x in view.lead]
            inside = v.both(
                *((x > 0) & (x <= y) for x, y in zip(j, view.columns, strict=True))
            )
            at = v.join(*j)
            value = up[c] - v.join(*(n.unskew * x for x in j))
            better = inside & (value > best)
            best = jnp.where(better, value, best)
            place = jnp.where(better, at, place)
        return best, place

    has_row_m = (n.rows_end != 0) & (k == view.count - 1)
    return tuple(lax.cond(has_row_m, follow, lambda: track))
