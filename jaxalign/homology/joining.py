"""Components of links, without an alignment of every link.

Where links connect two sequences already, the link that they may have themselves joins
nothing: components are the same with it and without, so the pair is not aligned. What
order pairs are aligned in decides how many are left out. Pairs of which no proof says
that they are not linked (``pairs.proofs``) wait until they are many; then those of a
spanning forest of them are aligned, the one whose pairs have the largest bounds on
their identity, which most likely are links; then all whose two are still apart. Most
links of real proteins are within large components, and few of these are aligned.

Where most of a part's pairs may be linked, and few of these are connected, all are
aligned at once: they share more work then.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree

from jaxalign.homology.links import PairCounts, longest_first, merged, parts_of
from jaxalign.homology.options import Definition, identities, pair_options
from jaxalign.model.alphabet import Sequences
from jaxalign.model.identity import denominator, ratio
from jaxalign.model.selection import renumbered
from jaxalign.pairs import engine
from jaxalign.pairs.options import make_task
from jaxalign.pairs.parts import query_ranges
from jaxalign.pairs.parts.query_ranges import Part
from jaxalign.pairs.plan import COLUMN_BYTES, Plan, Task, added
from jaxalign.pairs.proofs import survivors
from jaxalign.pairs.proofs.proof import Survivors, proofs_of
from jaxalign.runtime.pipeline import teller

MOST_WAITING = 2**20  # pairs that wait for others, 24 bytes each
# Pairs that are worth another forest, if of the last one half were links: each forest
# has windows of its own
LEAST_OF_A_FOREST = 2**13


class OpenPairs(NamedTuple):
    """Pairs of the sequences by falling length that may be links.

    i, j : int64 (pairs,); bound : float64 (pairs,), no identity is above it
    """

    i: np.ndarray
    j: np.ndarray
    bound: np.ndarray

    def some(self, which: np.ndarray) -> "OpenPairs":
        return OpenPairs(*(side[which] for side in self))


@dataclass(eq=False)
class Joining:
    """Components so far, ``labels`` (n,), and the pairs counted so far; both change
    while a job runs.

    task : all pairs of the sequences, longest first
    tell : is told of the cells of pairs that are aligned or need not be
    """

    task: Task
    definition: Definition
    labels: np.ndarray
    tell: Callable[[int], None]
    counts: PairCounts = field(default_factory=PairCounts)

    def apart(self, pairs: OpenPairs) -> OpenPairs:
        """Those whose two are in different components."""
        return pairs.some(self.labels[pairs.i] != self.labels[pairs.j])

    def cells(self, pairs: OpenPairs) -> int:
        lengths = self.task.queries.lengths
        return int((lengths[pairs.i] * lengths[pairs.j]).sum())


def can_join(sequences: Sequences, definition: Definition) -> bool:
    """Whether common subsequences on a CPU say which pairs may be linked. A GPU aligns
    those that are left in less time than it takes to choose among them."""
    if len(sequences) < 2:
        return False
    task = make_task(
        "all", sequences, sequences, definition.scoring, pair_options(definition)
    )
    proofs = proofs_of(task)
    return proofs is not None and proofs.lcs and proofs.launches is None


def joined_components(
    sequences: Sequences, definition: Definition
) -> tuple[np.ndarray, PairCounts]:
    """The components of a set, int32 (n,), as ``links.components`` of all links numbers
    them; and counts of the pairs, of which only those that were aligned count as
    linked."""
    options, (order, falling) = definition.options, longest_first(sequences)
    task = make_task(
        "all", falling, falling, definition.scoring, pair_options(definition)
    )
    parts = parts_of(task, definition)
    tell = teller(options.progress, sum(part.cells for part in parts))
    labels = np.arange(len(sequences), dtype=np.int32)
    state, waiting, many = Joining(task, definition, labels, tell), [], 0
    for part in parts:
        waiting.append(_pairs_of(state, part))
        many += len(waiting[-1].i)
        if many >= MOST_WAITING:
            _join(state, waiting)
            waiting, many = [], 0
    if waiting:
        _join(state, waiting)
    labels[order] = state.labels.copy()
    return renumbered(labels), state.counts


def _pairs_of(state: Joining, part: Part) -> OpenPairs:
    """The pairs of a part that are to be aligned yet."""
    rows = part.stop - part.start
    reserved = rows * COLUMN_BYTES["identity"]
    own, computed = query_ranges.tasks_of(state.task, part, reserved)
    proofs = proofs_of(own)
    assert proofs is not None
    passing = survivors.find(proofs)
    pairs = state.apart(_bounded(state, passing, part))
    most, left = survivors.MAX_LEFT * own.job.cells, pairs
    state.counts.pairs += own.job.pairs
    before = replace(state.counts, histogram=state.counts.histogram.copy())
    if state.cells(pairs) > most:
        left = _connected(state, pairs)
    if state.cells(left) > most:
        state.counts = before  # no pair counts twice
        _run(state, engine.plan_rows(own, computed), part.stop - part.start, part.first)
        state.tell(part.cells)
        return pairs.some(np.zeros(0, np.int64))
    state.counts.excluded = added(state.counts.excluded, passing.excluded)
    state.tell(part.cells - state.cells(left))
    return left


def _bounded(state: Joining, passing: Survivors, part: Part) -> OpenPairs:
    """The pairs that proofs leave of a part, with bounds on identities."""
    assert passing.most is not None
    i, j = survivors.shifted(state.task, passing, part.first)
    lengths = state.task.queries.lengths
    kind = state.definition.options.identity
    bound = ratio(passing.most, denominator(kind, {}, lengths[i], lengths[j]))
    return OpenPairs(i, j, np.nan_to_num(bound))


def _join(state: Joining, waiting: Iterable[OpenPairs]) -> None:
    """Join components by the links among the pairs that wait."""
    every = zip(*waiting, strict=True)
    pairs = OpenPairs(*(np.concatenate(side) for side in every))
    left = _connected(state, state.apart(pairs))
    if len(left.i):
        _align(state, left)
    state.tell(state.cells(pairs))


def _connected(state: Joining, pairs: OpenPairs) -> OpenPairs:
    """The pairs that are still apart after forests of them are aligned."""
    while len(pairs.i):
        forest = _forest(state.labels, pairs)
        linked = _align(state, pairs.some(forest))
        pairs = state.apart(pairs.some(np.setdiff1d(np.arange(len(pairs.i)), forest)))
        if 2 * linked < len(forest) or len(pairs.i) < LEAST_OF_A_FOREST:
            break
    return pairs


def _forest(labels: np.ndarray, pairs: OpenPairs) -> np.ndarray:
    """Which pairs connect all components that any pairs do, with the largest bounds:
    Kruskal's spanning forest."""
    ends = labels[pairs.i].astype(np.int64), labels[pairs.j].astype(np.int64)
    edge = np.minimum(*ends) * len(labels) + np.maximum(*ends)
    best = np.lexsort((-pairs.bound, edge))
    edges, first = np.unique(edge[best], return_index=True)
    best = best[first]
    # No weight is 0, which would be no edge.
    weights = 2 - pairs.bound[best], np.divmod(edges, len(labels))
    tree = minimum_spanning_tree(csr_array(weights, shape=(len(labels),) * 2)).tocoo()
    chosen = tree.row.astype(np.int64) * len(labels) + tree.col
    return best[np.searchsorted(edges, np.sort(chosen))]


def _align(state: Joining, pairs: OpenPairs) -> int:
    """Align pairs, join what they link, and say how many links there are."""
    order = np.lexsort((pairs.j, pairs.i))
    passing = Survivors(pairs.i[order], pairs.j[order])
    reserved = len(order) * COLUMN_BYTES["identity"]
    plan = survivors.plan_of(replace(state.task, reserved=reserved), passing)
    return _run(state, plan, len(order))


def _run(state: Joining, plan: Plan, aligned: int, first: int = 0) -> int:
    """Run a plan whose sequences count from the first of a part."""
    table = engine.run(plan, busy=state.definition.options.busy)
    shares = identities(table, state.definition)
    info = {"pairs": 0, "aligned_pairs": aligned, "excluded": {}}
    state.counts.add(table.info | info, shares, state.definition)
    i, j = (table[side].astype(np.int64) + first for side in ("query", "target"))
    state.labels = merged(state.labels, [(i, j)])
    return len(i)
