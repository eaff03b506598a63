"""A band around the scaled diagonal: the table that a loop sees has its lanes alone.

With a band of half width w, residues i and j (from 0) of lengths m and n may be a pair,
or stand against a gap beside each other, where

    |(2 i + 1) n - (2 j + 1) m| <= w (m + n)

For equal lengths that is |i - j| <= w. Every anti-diagonal has at most w + 1 such
cells, whatever the lengths are. The result is that of a similarity of minus infinity
and of infinite gap costs at all other cells; free overhangs may pass them.

A band by rows (``first`` and ``last`` of ``ModeRules``) is any region whose edges do
not fall, such as blocks between anchors. Its residues i on an anti-diagonal, i + j = c,
are those with

    i + first[i] <= c <= i + last[i]

and both sides rise with i, so they follow each other, in at most ``band`` + 1 lanes.
"""

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.similarity.arguments import COSTLY, FORBIDDEN, Gap, ModeRules
from jaxalign.similarity.arrays import loop_state
from jaxalign.similarity.costs import (
    Costs,
    CostTable,
    Overhang,
    Weights,
    by_cell,
    cost_at,
    weight,
)

DIAGONALS = 64  # put in their places at a time
MORE_DIAGONALS = 2 * DIAGONALS  # that a block asks for beyond the last
MARGIN = 2  # half width of further lanes: the cell before a first pair lies in these


def allows(band: int, rules: ModeRules, i: jax.Array | int, j: jax.Array | int):
    """Whether the cell of residues i and j (from 0) lies in the band; before the first
    residue the cell of that one counts."""
    i, j = jnp.maximum(i, 0), jnp.maximum(j, 0)
    if rules.first is not None:
        first, last = (
            x.at[_clipped(i, rules)].get() for x in (rules.first, rules.last)
        )
        return (first <= j) & (j <= last)
    apart = (2 * i + 1) * rules.n - (2 * j + 1) * rules.m
    return jnp.abs(apart) <= band * (rules.m + rules.n)


def _clipped(i: jax.Array | int, rules: ModeRules):
    return jnp.clip(i, 0, jnp.maximum(rules.m, 1) - 1)


def limited_costs(
    side: str,
    band: int,
    rules: ModeRules,
    query: jax.Array,
    target: jax.Array,
    k: jax.Array,
    l: jax.Array,
):
    """Costs of overhangs before cell (k, l), for ``side`` "start", or after it;
    infinite where they leave the band."""
    m, n = rules.m, rules.n
    if side == "start":
        column = jnp.where(rules.target_start, l - 1, 0)
        first = allows(band, rules, 0, column) & allows(band, rules, k - 1, column)
        query = jnp.where(first | (k <= 0), query, COSTLY)
        then = allows(band, rules, k - 1, 0) & allows(band, rules, k - 1, l - 1)
        return query, jnp.where(then | (l <= 0), target, COSTLY)
    first = allows(band, rules, k, l - 1) & allows(band, rules, m - 1, l - 1)
    query = jnp.where(first | (k >= m), query, COSTLY)
    row = jnp.where(rules.query_end, k, m) - 1
    then = allows(band, rules, row, l) & allows(band, rules, row, n - 1)
    return query, jnp.where(then | (l >= n), target, COSTLY)


def overhang_costs(
    hang: Overhang,
    side: str,
    rules: ModeRules,
    band: int | None,
    i: jax.Array,
    j: jax.Array,
):
    """Costs of the overhangs of both sequences before cell (i, j), for ``side``
    "start", or after it."""
    query = cost_at(getattr(hang, f"{side}_query"), i, j, 0)
    target = cost_at(getattr(hang, f"{side}_target"), i, j, 1)
    if band is None:
        return query, target
    return limited_costs(side, band, rules, query, target, i, j)


def overhang_weight(
    hang: Overhang,
    side: str,
    rules: ModeRules,
    band: int | None,
    i: jax.Array,
    j: jax.Array,
):
    """Log weight of these overhangs."""
    costs = overhang_costs(hang, side, rules, band, i, j)
    k, l = (i, j) if side == "start" else (rules.m - i, rules.n - j)
    return weight(side, *costs, k, l, rules)[0]


def empty_fits(band: int, rules: ModeRules):
    """Whether the alignment without pairs stays in the band: with the query's residues
    first, and with the target's."""

    m, n = rules.m, rules.n
    first, end = allows(band, rules, 0, 0), allows(band, rules, m - 1, n - 1)

    def fits(
        query: jax.Array,
        target: jax.Array,
        free_query: jax.Array,
        free_target: jax.Array,
    ):
        fits_query = free_query | (m == 0) | query
        return fits_query & (free_target | (n == 0) | target)

    below, right = allows(band, rules, m - 1, 0), allows(band, rules, 0, n - 1)
    query_first = first & below, below & end, rules.query_start, rules.target_end
    target_first = right & end, first & right, rules.query_end, rules.target_start
    return fits(*query_first), fits(*target_first)


def without_band(weights: Weights, rules: ModeRules, band: int) -> Weights:
    """The same problem without a band: forbidden pairs and infinite costs by cell."""
    shape, hang = weights.similarity.shape, weights.overhang
    i, j = (jnp.arange(n, dtype=jnp.int32) for n in shape)
    k, l = (jnp.arange(n + 1, dtype=jnp.int32) for n in shape)
    inside = allows(band, rules, i[:, None], j[None, :])
    grid = (k[:, None], l[None, :])
    start = (hang.start_query[:, None], hang.start_target[None, :])
    end = (hang.end_query[:, None], hang.end_target[None, :])
    sides = (
        limited_costs("start", band, rules, *start, *grid),
        limited_costs("end", band, rules, *end, *grid),
    )
    (a, b), (c, d) = jax.tree.map(
        lambda x: jnp.broadcast_to(x, (k.size, l.size)), sides
    )
    hang = Overhang(a, b, c, d, hang.empty)

    def cost(x: jax.Array, axis: int):
        x = jnp.expand_dims(x, 1 - axis) if x.ndim else x
        return jnp.where(inside, x, COSTLY)

    opening, extending = (
        Gap(cost(x.e, 0), cost(x.f, 1)) for x in (weights.opening, weights.extending)
    )
    s = jnp.where(inside, weights.similarity, FORBIDDEN)
    return Weights(s, opening, extending, by_cell(hang, rules))


class BandTable(CostTable):
    """The loop's view of a banded problem: lane r of diagonal d is row
    ``first_row(d) + r``. Gap costs are numbers or vectors."""

    def __init__(self, weights: Weights, rules: ModeRules, band: int):
        self.band = band
        super().__init__(weights, rules)
        self.first_rows = None
        if rules.first is not None:
            # The row of lane 0 on each diagonal: one before the first residue that may
            # meet another one there.
            i = jnp.arange(rules.last.shape[0], dtype=jnp.int32)
            ends = i + rules.last[_clipped(i, rules)]
            d = jnp.arange(sum(self.shape) + MORE_DIAGONALS, dtype=jnp.int32)
            self.first_rows = jnp.searchsorted(ends, d - 2).astype(jnp.int32)
        self.rows = band + MARGIN + 1
        self.lane_numbers = jnp.arange(self.rows, dtype=jnp.int32)
        arrays = (self.costs | self.hangs).items()
        self.by_diagonal = frozenset(name for name, (x, _) in arrays if x.ndim)
        wide = 2 * self.rows
        # Each pair of a batch has vectors of its own, or gradients of slices would be
        # added up in the ones of all.
        zero = 0 * rules.m

        def constant(x: jax.Array, axis: int):
            x = jnp.pad(x[::-1] if axis else x, (wide, wide)) if x.ndim else x
            return x + zero.astype(x.dtype)

        self.constant = {name: constant(*array) for name, array in arrays}
        self.scanned = {}

    def _keep(self, name: str, x: jax.Array, axis: int):
        """Arrays are laid out for the band instead."""

    def first_row(self, d: jax.Array):
        """The row of lane 0 on diagonal d; it rises by 0 or 1 a diagonal."""
        if self.first_rows is not None:
            return self.first_rows[jnp.maximum(d, 0)]
        m, n = self.rules.m, self.rules.n
        total = jnp.maximum(m + n, 1)
        least = (2 * d - 3) * m - n - (self.band + MARGIN) * total
        return -(-least // (2 * total)) + 1

    def row(self, d: jax.Array):
        return self.first_row(d) + self.lane_numbers

    def lane(self, i: jax.Array, d: jax.Array):
        return i - self.first_row(d)

    def ahead(self, x: jax.Array, d: jax.Array):
        """Lanes of diagonal d - 1 -> those of d."""
        moves = self.first_row(d) > self.first_row(d - 1)
        later = jnp.concatenate([x[1:], jnp.full_like(x[:1], FORBIDDEN)])
        return jnp.where(moves, later, x)

    def back(self, x: jax.Array, d: jax.Array):
        """Lanes of diagonal d + 1 -> those of d."""
        moves = self.first_row(d + 1) > self.first_row(d)
        earlier = jnp.concatenate([jnp.zeros_like(x[:1]), x[:-1]])
        return jnp.where(moves, earlier, x)

    def _vector(self, name: str, d: jax.Array, shift: int):
        """Entries i - shift, or j - shift, of the lanes of diagonal d."""
        x, axis = (self.costs | self.hangs)[name]
        constant, first = self.constant[name], self.first_row(d)
        if not x.ndim:
            return constant
        start = x.shape[0] - 1 - d + first + shift if axis else first - shift
        return lax.dynamic_slice_in_dim(constant, start + 2 * self.rows, self.rows)

    def at(self, name: str, rows: Costs, d: jax.Array):  # noqa: ARG002
        if name in self.hangs:
            return self._vector(name, d, 0)
        i = self.row(d) - 1
        inside = allows(self.band, self.rules, i, d - 2 - i)
        return jnp.where(inside, self._vector(name, d, 1), COSTLY)

    def after(self, name: str, rows: Costs, d: jax.Array):  # noqa: ARG002
        i = self.row(d) - (0 if name.endswith("_e") else 1)
        inside = allows(self.band, self.rules, i, d - 1 - i)
        return jnp.where(inside, self._vector(name, d, 0), COSTLY)

    def limited(self, side: str, query: jax.Array, target: jax.Array, d: jax.Array):
        i = self.row(d)
        return limited_costs(side, self.band, self.rules, query, target, i, d - i)

    def core(self, d: jax.Array):
        i = self.row(d) - 1
        return super().core(d) & allows(self.band, self.rules, i, d - 2 - i)

    def places(self, d: jax.Array):
        """(rows, columns, whether it is in the band) of all lanes of diagonals d (D,),
        (D, R) each."""
        i = jax.vmap(self.row)(d)
        return i, d[:, None] - i, jax.vmap(self.core)(d)

    def by_lanes(self, similarity: jax.Array):
        """(M, N) -> (D, R): scores by diagonal, forbidden outside of the band."""
        count, columns = sum(self.shape) + 1, self.shape[1]
        i, j, inside = self.places(jnp.arange(count, dtype=jnp.int32))
        # Places beyond the table differ too, so that a gradient adds nothing up.
        beyond = similarity.size + jnp.arange(i.size, dtype=jnp.int32).reshape(i.shape)
        at = jnp.where(inside, (i - 1) * columns + (j - 1), beyond)
        flat = similarity.reshape(-1).at[at]
        return flat.get(mode="fill", fill_value=FORBIDDEN, unique_indices=True)

    def as_table(self, lanes: jax.Array):
        """(D, R) -> (M, N), zero outside of the band."""
        count = lanes.shape[0]
        blocks = -(-count // DIAGONALS)
        lanes = jnp.pad(lanes, ((0, blocks * DIAGONALS - count), (0, 0)))
        lanes = lanes.reshape(blocks, DIAGONALS, self.rows)

        def add(table: jax.Array, x: tuple[jax.Array, jax.Array]):
            k, values = x
            d = k * DIAGONALS + jnp.arange(DIAGONALS, dtype=jnp.int32)
            i, j, inside = self.places(d)
            row = jnp.where(inside, i - 1, self.shape[0] + self.lane_numbers[None])
            place = table.at[row, jnp.where(inside, j - 1, d[:, None])]
            return place.set(values, mode="drop", unique_indices=True), None

        table = loop_state(jnp.zeros(self.shape, lanes.dtype), self.rules.m)
        number = jnp.arange(blocks, dtype=jnp.int32)
        return lax.scan(add, table, (number, lanes))[0]

    def as_vector(self, lanes: jax.Array, size: int, axis: int):
        """(D, R) -> sums (size,) by row, or by column.

        Of a block of diagonals, whose lanes move by one place at most from each to the
        next, the lanes are put below each other; their sum is a slice of the result.
        """
        count, rows = lanes.shape
        blocks, wide = -(-count // DIAGONALS), rows + DIAGONALS
        d = jnp.arange(blocks * DIAGONALS, dtype=jnp.int32)
        first = jax.vmap(self.first_row)(d)
        if axis:
            lanes, first = lanes[:, ::-1], d - first - (rows - 1)
        widths = (0, blocks * DIAGONALS - count), (0, DIAGONALS)
        lanes = jnp.pad(lanes, widths).reshape(blocks, DIAGONALS, wide)
        first = first.reshape(blocks, DIAGONALS)
        moves = (first - first[:, :1])[..., None]
        for bit in range((DIAGONALS - 1).bit_length()):
            by = 1 << bit
            later = jnp.pad(lanes, ((0, 0), (0, 0), (by, 0)))[..., :wide]
            lanes = jnp.where((moves & by) > 0, later, lanes)
        place = first[:, :1] + jnp.arange(wide, dtype=jnp.int32)[None]
        inside = (place >= 0) & (place < size)
        sums = jnp.where(inside, lanes.sum(1), 0)

        def add(total: jax.Array, x: tuple[jax.Array, jax.Array]):
            start, values = x
            old = lax.dynamic_slice(total, (start,), (wide,))
            return lax.dynamic_update_slice(total, old + values, (start,)), None

        total = loop_state(jnp.zeros(size + 2 * wide, lanes.dtype), self.rules.m)
        total, _ = lax.scan(add, total, (first[:, 0] + wide, sums))
        return lax.slice_in_dim(total, wide, wide + size)
