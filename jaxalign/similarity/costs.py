"""The numbers that score an alignment; overhangs: the weights of starting and ending in
a cell.

In these recurrences a path starts and ends with a pair of residues, and the mode only
says what k residues of the query and l of the target cost that hang over on one side:

===================  ==========================================================
nothing free         g(k) + g(l)
query's end free     g(l)
target's end free    g(k)
both free            min(g(k), g(l)): one hangs over freely, the other is a gap
local                0
===================  ==========================================================

with g(k) = open + (k - 1) extend, g(0) = 0. Without adjacent gaps (biotite's rule) an
overhang has k = 0 or l = 0. The hard score is the best path of the soft table.

A loop over diagonals reads these numbers and the gap costs from a ``CostTable``. Lanes
are the rows i of a table, row d of a skewed one holds j = d - i
(``similarity.arrays``). Costs that are one number or a vector over a sequence stay as
they are; full ones (M, N) are skewed and scanned with the similarity.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxalign.similarity.arguments import FORBIDDEN, Gap, ModeRules
from jaxalign.similarity.arrays import columns_at, skew, up

Costs = dict[str, jax.Array]  # by name, of one diagonal or of all


class Overhang(NamedTuple):
    """Costs of overhanging residues by cell: ``query`` (M + 1,) or (M + 1, N + 1),
    ``target`` (N + 1,) or (M + 1, N + 1), at the start and at the end; ``empty``
    scalar, the score of the alignment without pairs."""

    start_query: jax.Array
    start_target: jax.Array
    end_query: jax.Array
    end_target: jax.Array
    empty: jax.Array


def no_overhang(shape: tuple[int, ...], dtype: Any) -> Overhang:
    """Zero overhang costs, for local mode."""
    query, target = (jnp.zeros(size + 1, dtype) for size in shape)
    return Overhang(query, target, query, target, jnp.zeros((), dtype))


def overhang(
    opening: Gap,
    extending: Gap,
    shape: tuple[int, ...],
    rules: ModeRules,
    forbidden: float,
    empty_fits: tuple[jax.Array, jax.Array] | None = None,
) -> Overhang:
    """The overhang costs of a table of ``shape`` (M, N); differentiable in the costs.

    ``forbidden`` is the (finite) score of an alignment that does not exist.
    ``empty_fits`` says whether the alignment without pairs may have its query's
    residues first, and whether its target's; in a band one or both may not.
    """
    rows, columns = shape
    e = _runs(opening.e, extending.e, rows, rules.m, 0)
    f = _runs(opening.f, extending.f, columns, rules.n, 1)
    # Between two pairs E comes before F: column 0 (or j), then row i (or m).
    if e.head.ndim == 2:
        start_query = jnp.where(rules.target_start, e.head, e.head[:, :1])
    else:
        start_query = e.head
    if f.tail.ndim == 2:
        end_target = jnp.where(rules.query_end, f.tail, f.tail[rules.m][None])
    else:
        end_target = f.tail

    # The alignment without pairs. The query's residues come first, which may hang over
    # at the start, as those of the target at the end. The target's may come first where
    # they hang over at the start, or the query's at the end; then the better order
    # counts. No such path without adjacent gaps.
    def whole(runs: _Runs, free: jax.Array, at: jax.Array | int, axis: int):
        if runs.tail.ndim == 1:
            cost = runs.tail[0]
        else:
            cost = runs.tail[0, at] if axis == 0 else runs.tail[at, 0]
        return jnp.where(free, 0, cost)

    e_first = whole(e, rules.query_start, 0, 0) + whole(f, rules.target_end, rules.m, 1)
    f_first = whole(f, rules.target_start, 0, 1) + whole(e, rules.query_end, rules.n, 0)
    hangs = rules.target_start | rules.query_end
    e_fits, f_fits = (True, True) if empty_fits is None else empty_fits
    e_first = jnp.where(e_fits, e_first, -forbidden)
    f_first = jnp.where(f_fits & hangs, f_first, -forbidden)
    score = jnp.where(rules.local, 0, -jnp.minimum(e_first, f_first))
    exists = rules.adjacent | rules.local | (rules.m == 0) | (rules.n == 0)
    empty = jnp.where(exists, score, forbidden)
    return Overhang(start_query, f.head, e.tail, end_target, empty)


class _Runs(NamedTuple):
    """Cost of the first k residues, and of those after the first k, k = 0 ... M."""

    head: jax.Array
    tail: jax.Array


def _runs(
    opening: jax.Array, extending: jax.Array, size: int, length: jax.Array, axis: int
) -> _Runs:
    """Gap costs g by k; scalar costs in closed form, which avoids rounding of sums."""
    k = jnp.arange(size + 1, dtype=jnp.int32)
    if opening.ndim == extending.ndim == 0:
        remaining = jnp.maximum(length - k, 0)
        return _Runs(
            gap_of(opening, extending, k), gap_of(opening, extending, remaining)
        )
    full = max(opening.ndim, extending.ndim) == 2
    opening, extending = (
        _whole(x, size, axis, opening, extending) for x in (opening, extending)
    )
    index = k if not full else (k[:, None] if axis == 0 else k[None, :])
    inside = index < length
    axis = axis if full else 0
    ends = ((0, 0),) * axis + ((0, 1),) + ((0, 0),) * (opening.ndim - axis - 1)
    first = ((0, 0),) * axis + ((1, 0),) + ((0, 0),) * (opening.ndim - axis - 1)
    extends = jnp.where(inside, jnp.pad(extending, ends), 0)
    opens = jnp.where(inside, jnp.pad(opening, ends), 0)
    # head[k] = open[0] + sum of extend[1 ... k - 1]
    later = (index[..., :size] if axis else index[:size]) > 0
    steps = jnp.where(later, extending, opening)
    head = jnp.cumsum(jnp.pad(steps, first), axis)
    # tail[k] = open[k] + sum of extend[k + 1 ... length - 1]
    remaining = jnp.flip(jnp.cumsum(jnp.flip(extends, axis), axis), axis)
    remaining = jax.lax.slice_in_dim(remaining, 1, None, axis=axis)
    return _Runs(head, jnp.pad(remaining, ends) + opens)


def gap_of(opening: jax.Array, extending: jax.Array, k: jax.Array):
    """The cost of a gap of k residues, g(k), where costs are numbers."""
    cost = opening + jnp.maximum(k - 1, 0).astype(opening.dtype) * extending
    return jnp.where(k > 0, cost, 0)


def _whole(x: jax.Array, size: int, axis: int, *like: jax.Array):
    """Broadcast a cost to the rank of the largest; a full one gets its border."""
    full = next((y for y in like if y.ndim == 2), None)
    if full is None:
        return jnp.broadcast_to(x, (size,))
    if x.ndim == 1:
        x = x[:, None] if axis == 0 else x[None, :]
    x = jnp.broadcast_to(x, full.shape)
    border = ((0, 0), (1, 0)) if axis == 0 else ((1, 0), (0, 0))
    return jnp.pad(x, border, mode="edge") if x.size else jnp.pad(x, border)


def cost_at(cost: jax.Array, i: jax.Array, j: jax.Array, axis: int):
    """The cost of residue i of the query (axis 0) or j of the target at that place."""
    if cost.ndim == 0:
        return cost
    return cost[i, j] if cost.ndim == 2 else cost[(i, j)[axis]]


def by_cell(hang: Overhang, rules: ModeRules) -> Overhang:
    """Expand overhang costs to shape (M + 1, N + 1); where the smaller one counts, both
    are it."""

    def side(query: jax.Array, target: jax.Array, choice: jax.Array):
        query = query[:, None] if query.ndim == 1 else query
        target = target[None, :] if target.ndim == 1 else target
        query, target = jnp.broadcast_arrays(query, target)
        smaller = jnp.minimum(query, target)
        return (jnp.where(choice, smaller, x) for x in (query, target))

    adjacent = rules.adjacent
    starts = rules.query_start & rules.target_start & adjacent
    ends = rules.query_end & rules.target_end & adjacent
    start_query, start_target = side(hang.start_query, hang.start_target, starts)
    end_query, end_target = side(hang.end_query, hang.end_target, ends)
    return Overhang(start_query, start_target, end_query, end_target, hang.empty)


def weight(
    side: str,
    query: jax.Array,
    target: jax.Array,
    k: jax.Array,
    l: jax.Array,
    rules: ModeRules,
):
    """Log weight of an overhang of k and l residues, vectors over lanes, for ``side``
    "start" or "end"; and the shares of the costs ``query`` and ``target`` in it."""
    ends = "query_" + side, "target_" + side
    free_query, free_target = (getattr(rules, name) for name in ends)
    free_choice = free_query & free_target & rules.adjacent
    cheaper = jnp.where(query < target, 1.0, jnp.where(query == target, 0.5, 0.0))
    cheaper = cheaper.astype(query.dtype)
    a = jnp.where(free_choice, cheaper, jnp.where(free_query, 0, jnp.ones_like(query)))
    b = jnp.where(
        free_choice, 1 - cheaper, jnp.where(free_target, 0, jnp.ones_like(query))
    )
    a, b = jnp.where(rules.local, 0, a), jnp.where(rules.local, 0, b)
    ok = rules.adjacent | rules.local | (k <= 0) | (l <= 0)
    return jnp.where(ok, -(a * query + b * target), FORBIDDEN), a, b


class Weights(NamedTuple):
    """The numbers that score an alignment; arrays of one floating dtype.

    ``similarity`` (M, N); ``opening``, ``extending`` the gap costs; ``overhang`` the
    costs at the ends.
    """

    similarity: Any  # or ``Factors``, or None in gradients
    opening: Gap
    extending: Gap
    overhang: Overhang


class CostTable:
    """The loop's view of a problem: what is constant, and what comes by diagonal."""

    def __init__(self, weights: Weights, rules: ModeRules):
        self.shape = weights.similarity.shape
        self.rules = rules
        self.rows = self.shape[0] + 1
        self.i = jnp.arange(self.rows, dtype=jnp.int32)
        self.costs = {
            "open_e": (weights.opening.e, 0),
            "extend_e": (weights.extending.e, 0),
            "open_f": (weights.opening.f, 1),
            "extend_f": (weights.extending.f, 1),
        }
        self.hangs = {
            "start_query": (weights.overhang.start_query, 0),
            "start_target": (weights.overhang.start_target, 1),
            "end_query": (weights.overhang.end_query, 0),
            "end_target": (weights.overhang.end_target, 1),
        }
        self.constant = {}
        self.scanned = {}
        for name, (x, axis) in self.costs.items():
            if x.ndim:
                self._keep(name, jnp.pad(x, ((1, 0),) * x.ndim), axis)
            else:
                self.constant[name] = x
        for name, (x, axis) in self.hangs.items():
            self._keep(name, x, axis)
        # Names whose flows leave a loop diagonal by diagonal.
        self.by_diagonal = frozenset(self.scanned)

    def _keep(self, name: str, x: jax.Array, axis: int):
        if x.ndim == 2:
            self.scanned[name] = skew(x, 0)
        elif axis == 1:
            self.constant[name] = jnp.pad(x, (self.rows, self.rows + 2))[::-1]
        else:
            self.constant[name] = x

    def row(self, d: jax.Array):  # noqa: ARG002
        """The row of every lane of diagonal d."""
        return self.i

    def lane(self, i: jax.Array, d: jax.Array):  # noqa: ARG002
        """The lane of row i on diagonal d."""
        return i

    def ahead(self, x: jax.Array, d: jax.Array):  # noqa: ARG002
        """Values in lanes of diagonal d - 1, in those of d."""
        return x

    def back(self, x: jax.Array, d: jax.Array):  # noqa: ARG002
        """Values in lanes of diagonal d + 1, in those of d."""
        return x

    def at(self, name: str, rows: Costs, d: jax.Array):
        """The value of each lane on diagonal d; ``rows`` are those of full costs."""
        if name in rows:
            return rows[name]
        x = self.constant[name]
        axis = (self.costs | self.hangs)[name][1]
        return columns_at(x, self.rows, d) if x.ndim and axis else x

    def after(self, name: str, rows: Costs, d: jax.Array):
        """Costs of the move out of a lane of diagonal d into its cell on d + 1."""
        x = self.at(name, {}, d + 1) if name not in rows else rows[name]
        return up(x) if name.endswith("_e") and x.ndim else x

    def start(self, rows: Costs, d: jax.Array):
        """Log weight of starting behind each cell, and the shares of its costs."""
        i = self.row(d)
        return self._hang("start", rows, d, i, d - i)

    def end(self, rows: Costs, d: jax.Array):
        """Log weight of ending in each cell, and the shares of its costs."""
        i = self.row(d)
        remaining = self.rules.m - i, self.rules.n - (d - i)
        value, a, b = self._hang("end", rows, d, *remaining)
        return jnp.where(self.core(d), value, FORBIDDEN), a, b

    def _hang(self, side: str, rows: Costs, d: jax.Array, k: jax.Array, l: jax.Array):
        """``weight`` of overhangs of k and l residues on one side."""
        a, b = (
            jnp.broadcast_to(self.at(f"{side}_{name}", rows, d), (self.rows,))
            for name in ("query", "target")
        )
        return weight(side, *self.limited(side, a, b, d), k, l, self.rules)

    def limited(self, side: str, query: jax.Array, target: jax.Array, d: jax.Array):  # noqa: ARG002
        """Costs of overhangs, infinite where a band does not let them pass."""
        return query, target

    def core(self, d: jax.Array):
        """Lanes whose cell is a pair of residues that exist."""
        i = self.row(d)
        j = d - i
        return (i >= 1) & (i <= self.rules.m) & (j >= 1) & (j <= self.rules.n)
