"""The numbers that score an alignment, as a loop over diagonals reads them.

Lanes are the rows i of a table, row d of a skewed one holds j = d - i
(``similarity.skewed``). Costs that are one number or a vector over a sequence stay as
they are; full ones (M, N) are skewed and scanned with the similarity.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxalign.similarity.arrays import FORBIDDEN, Gap, ModeRules
from jaxalign.similarity.overhang import Overhang, free_overhangs, weight
from jaxalign.similarity.skewed import columns_at, reversed_columns, skew, up

Costs = dict[str, jax.Array]  # by name, of one diagonal or of all


class Weights(NamedTuple):
    """The numbers that score an alignment; arrays of one floating dtype.

    ``similarity`` (M, N); ``opening``, ``extending`` the gap costs; ``overhang`` the
    costs at the ends (``similarity.overhang``).
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
            self.constant[name] = reversed_columns(x, self.rows)
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
        left = self.rules.m - i, self.rules.n - (d - i)
        value, a, b = self._hang("end", rows, d, *left)
        return jnp.where(self.core(d), value, FORBIDDEN), a, b

    def _hang(self, side: str, rows: Costs, d: jax.Array, k: jax.Array, l: jax.Array):
        """``overhang.weight`` of overhangs of k and l residues on one side."""
        a, b = (
            jnp.broadcast_to(self.at(f"{side}_{name}", rows, d), (self.rows,))
            for name in ("query", "target")
        )
        rules = self.rules
        free = free_overhangs(rules, side)
        return weight(a, b, k, l, free, rules, FORBIDDEN)

    def core(self, d: jax.Array):
        """Lanes whose cell is a pair of residues that exist."""
        i = self.row(d)
        j = d - i
        return (i >= 1) & (i <= self.rules.m) & (j >= 1) & (j <= self.rules.n)
