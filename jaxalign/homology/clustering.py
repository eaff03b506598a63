"""Greedy clusters, longest first: what CD-HIT means, without its word filter.

Sequences are taken from the longest to the shortest, of equals in input order. One that
is linked to a representative joins the first one it is linked to; any other one becomes
a representative. So every member is linked to its representative, and no two
representatives are linked.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from math import isqrt
from typing import NamedTuple

import numpy as np
from scipy.cluster import hierarchy
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import squareform

from jaxalign.errors import MemoryPlanError, UsageError
from jaxalign.homology.across import zipped_pairs
from jaxalign.homology.certificate import OldClusters
from jaxalign.homology.evidence import Evidence, among, located
from jaxalign.homology.links import (
    Links,
    LinkTask,
    PairCounts,
    all_links,
    components,
    joined_links,
    joined_rows,
    link_jobs,
    longest_members,
    merged,
    parts_array,
    parts_of,
    rows_at_once,
    stream_links,
)
from jaxalign.homology.options import (
    METHODS,
    Definition,
    check_choice,
    identities,
    judges_of,
    measured,
    pair_options,
)
from jaxalign.homology.result import Clusters, Growth
from jaxalign.model.alphabet import Sequences, begins, renumbered
from jaxalign.model.identity import denominator, ratio
from jaxalign.model.strands import MINUS, PLUS
from jaxalign.pairs import engine, jobs, part_stream
from jaxalign.pairs.pair_matrix import WholeJob
from jaxalign.pairs.part_stream import Part
from jaxalign.pairs.plan import COLUMN_BYTES, Arrays, Plan, SavedState, Task, added
from jaxalign.pairs.proofs import proof
from jaxalign.pairs.proofs.proof import Survivors, proofs_of
from jaxalign.pairs.result import equal_texts
from jaxalign.runtime.devices import budget_of, by_length
from jaxalign.runtime.pipeline import teller

MIN_BAND, MAX_BAND = 64, 2**14  # sequences taken at once


@dataclass(frozen=True, eq=False)
class Greedy:
    """Representatives so far, and identities with them.

    Attributes
    ----------
    representative : int64 (n,)
        Of every sequence; of a representative itself.
    identity : float64 (n,)
        With the representative; 1 of a representative; nan where an edge alone links
        the two.
    """

    representative: np.ndarray
    identity: np.ndarray


def greedy(
    sequences: Sequences,
    definition: Definition,
    counts: PairCounts,
    saved: SavedState | None = None,
) -> Greedy:
    """Cluster a set greedily; no more than a band of pairs is in memory.

    A band of sequences that have no representative yet is aligned among itself, and
    its representatives with all shorter sequences that have none. A sequence that has
    a representative is not aligned again. So bands are narrow where most sequences
    find one, and wide where few do, since a wide one computes faster.

    saved : the state of a run that was interrupted, or may be, after each band
    """
    n, lengths = len(sequences), sequences.lengths
    later = by_length(lengths)
    state = Greedy(np.full(n, -1, np.int64), np.ones(n))
    report_progress, letters = definition.options.progress, int(lengths.sum())
    rows, width = rows_at_once(definition.options, 1), MIN_BAND
    if saved is not None and "later" in saved.arrays:
        before = saved.arrays
        later, width = before["later"], int(before["width"])
        state = Greedy(before["representative"], before["identity"])
        counts.restore(before)
    while len(later):
        band, later = later[:width], later[width:]
        _join_representatives(state, band, band, sequences, definition, counts)
        representatives = band[state.representative[band] < 0]
        state.representative[representatives] = representatives
        representatives = band[state.representative[band] == band]
        step = max(rows // max(len(later), 1), 1)
        for first in range(0, len(representatives), step):
            piece = representatives[first : first + step]
            _join_representatives(state, piece, later, sequences, definition, counts)
            later = later[state.representative[later] < 0]
        wide = len(representatives) * 2 > len(band)
        width = width * 2 if wide else max(width // 2, MIN_BAND)
        width = min(width, MAX_BAND, max(isqrt(rows), MIN_BAND))
        if report_progress:
            report_progress(
                (letters - int(lengths[later].sum())) * letters, letters * letters
            )
        if saved is not None:
            arrays = vars(state) | {"later": later, "width": np.array(width)}
            saved.save(lambda arrays=arrays: arrays | counts.saved())
    counts.pairs += n * (n - 1) // 2
    return state


def _join_representatives(
    state: Greedy,
    queries: np.ndarray,
    targets: np.ndarray,
    sequences: Sequences,
    definition: Definition,
    counts: PairCounts,
) -> None:
    """Let targets join the first query they are linked to.

    Queries that are the targets become representatives one after the other; a query
    that has joined another one is none.
    """
    if not len(queries) or not len(targets):
        return
    same, of_queries = queries is targets, sequences.take(queries)
    of_targets = of_queries if same else sequences.take(targets)
    longest, letters = int(sequences.lengths.max()), len(sequences.codes)
    whole = WholeJob((longest, longest), letters**2 // 2, len(sequences), letters)
    rows, columns, shares = _measured_pairs(
        of_queries, None if same else of_targets, definition, counts, whole=whole
    )
    if definition.evidence is not None:
        sides = of_queries, None if same else of_targets
        rows, columns, shares = _with_edges(
            definition.evidence, *sides, (rows, columns, shares)
        )
    sides = queries[rows].tolist(), targets[columns].tolist()
    for i, j, share in zip(*sides, shares.tolist(), strict=True):
        # Rows are in the order of queries: what comes first is the first to be joined.
        if state.representative[i] in (-1, i) and state.representative[j] < 0:
            state.representative[i] = i
            state.representative[j], state.identity[j] = i, share


def _with_edges(
    evidence: Evidence,
    queries: Sequences,
    targets: Sequences | None,
    pairs: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Leave out pairs (i, j, identity) that lack an edge which a link needs, and join
    those that an edge alone links, with nan."""
    first = evidence.places(queries)
    second = None if targets is None else evidence.places(targets)
    (i, j, shares), width = pairs, len(queries if targets is None else targets)
    either = located(evidence.either, first, second)
    if evidence.needed is not None:
        needed = located(evidence.needed, first, second)
        keep = among(needed, i, j, width) >= 0
        keep |= among(either, i, j, width) >= 0
        i, j, shares = i[keep], j[keep], shares[keep]
    i, j = np.concatenate([i, either[0]]), np.concatenate([j, either[1]])
    shares = np.append(shares, np.full(either.shape[1], np.nan))
    order = np.lexsort((shares, j, i))  # of a pair that comes twice, nan is last
    order = order[begins(i[order], j[order])]
    return i[order], j[order], shares[order]


def _measured_pairs(
    queries: Sequences,
    targets: Sequences | None,
    definition: Definition,
    counts: PairCounts,
    least: float | None = None,
    whole: WholeJob | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (i, j, identity) of the pairs of a set, or of two, at or above the cut or
    ``least``, in the order of rows; ``counts`` counts the aligned ones."""
    parts, scoring = measured(definition, queries, targets), definition.scoring
    pairs, before = [], counts.pairs
    for judges, rows, columns in parts:
        query_side = queries.take(rows) if len(parts) > 1 else queries
        if columns is None:
            kind, columns, sides = "all", rows, (query_side, query_side)
        else:
            kind, side = "cross", queries if targets is None else targets
            side = side.take(columns) if len(columns) < len(side) else side
            sides = query_side, side
        tables = [
            jobs.run(kind, *sides, scoring, pair_options(judge, least), whole)
            for judge in judges
        ]
        lowest = definition.cut if least is None else least
        query, target, shares = joined_rows(tables, judges, counts, lowest)
        i, j = rows[query], columns[target]
        if targets is None:
            i, j = np.minimum(i, j), np.maximum(i, j)
        pairs.append((i, j, shares))
    counts.pairs = before  # the caller says how many there were
    i, j, shares = (np.concatenate(column) for column in zip(*pairs, strict=True))
    if len(parts) == 1:
        return i, j, shares
    order = np.lexsort((j, i))
    return i[order], j[order], shares[order]


# ------------------------------------------------------------------------------
# Components of links, without an alignment of every link.
#
# Where links connect two sequences already, the link that they may have themselves
# joins nothing: components are the same with it and without, so the pair is not
# aligned. What order pairs are aligned in decides how many are left out. Pairs of which
# no proof says that they are not linked (``pairs.proofs``) wait until they are many;
# then those of a spanning forest of them are aligned, the one whose pairs have the
# largest bounds on their identity, which most likely are links; then all whose two are
# still apart. Most links of real proteins are within large components, and few of these
# are aligned.
#
# Where most of a part's pairs may be linked, and few of these are connected, all are
# aligned at once: they share more work then.

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

    task : all pairs of the sequences, longest first, along one strand
    report_progress : is told of the cells of pairs that are aligned or need not be
    """

    task: Task
    definition: Definition
    labels: np.ndarray
    report_progress: Callable[[int], None]
    counts: PairCounts = field(default_factory=PairCounts)
    plus_counts: PairCounts | None = None  # of the plus strand, while minus is joined

    def apart(self, pairs: OpenPairs) -> OpenPairs:
        """Select the pairs between different components."""
        return pairs.some(self.labels[pairs.i] != self.labels[pairs.j])

    def cells(self, pairs: OpenPairs) -> int:
        lengths = self.task.queries.lengths
        return int((lengths[pairs.i] * lengths[pairs.j]).sum())


def joined_components(
    job: LinkTask, saved: SavedState | None = None
) -> tuple[np.ndarray, PairCounts]:
    """Find the components of a set, int32 (n,), numbered as by ``links.components`` of
    all links; and counts of the pairs, of which only aligned ones count as linked.

    saved : the state of a run that was interrupted, or may be, after each part
    """
    definition, tasks = job.judges[0], job.tasks
    parts, before = parts_of(tasks[0], definition), {}
    if saved is not None and "joined_done" in saved.arrays:
        before = saved.arrays
        parts = [Part(*x) for x in before["parts"].tolist()]
    cells = sum(part.cells for part in parts) * len(tasks)
    report_progress = teller(definition.options.progress, cells)
    labels = np.arange(len(job.rows), dtype=np.int32)
    labels = merged(labels, list(map(equal_texts, tasks)))
    tasks = [replace(x, equals_alike=False) for x in tasks]  # equal texts are joined
    state = Joining(tasks[0], definition, labels, report_progress)
    waiting, pair_count, finished = [], 0, 0
    if before:
        finished, state.labels = int(before["joined_done"]), before["labels"]
        state.task = tasks[(finished - 1) // len(parts)]
        waiting = [OpenPairs(*(before[name] for name in OpenPairs._fields))]
        pair_count = len(waiting[0].i)
        state.counts.restore(before)
        if "plus_counts" in before:
            state.plus_counts = PairCounts()
            state.plus_counts.restore({"counts": before["plus_counts"]})
        cells = sum(part.cells for part in (parts * len(tasks))[:finished])
        report_progress(cells - state.cells(waiting[0]))
    # All parts of one strand, then of the other one
    of_strands = [(task, part) for task in tasks for part in parts]
    for number, (task, part) in enumerate(of_strands[finished:], finished + 1):
        if task is not state.task:
            if waiting:
                _join(state, waiting)
            waiting, pair_count, state.task = [], 0, task
            state.plus_counts, state.counts = state.counts, PairCounts()
        waiting.append(_pairs_of(state, part))
        pair_count += len(waiting[-1].i)
        if pair_count >= MOST_WAITING:
            _join(state, waiting)
            waiting, pair_count = [], 0
        if saved is not None:
            saved.save(partial(_joined_state, state, waiting, parts, number))
    if waiting:
        _join(state, waiting)
    labels[job.rows] = state.labels.copy()
    # Each pair counts once: as of the strand that had more of them aligned
    of_strands = [x for x in (state.plus_counts, state.counts) if x is not None]
    return renumbered(labels), max(of_strands, key=lambda x: x.aligned)


def _joined_state(
    state: Joining, waiting: list[OpenPairs], parts: list[Part], finished: int
) -> Arrays:
    """Return the components after some parts, and the pairs that wait, as arrays."""
    none = OpenPairs(*(np.zeros(0, x) for x in (np.int64, np.int64, np.float64)))
    pairs = (np.concatenate(x) for x in zip(none, *waiting, strict=True))
    places = {"joined_done": np.array(finished), "parts": parts_array(parts)}
    open_pairs = dict(zip(OpenPairs._fields, pairs, strict=True))
    if state.plus_counts is not None:
        open_pairs["plus_counts"] = state.plus_counts.saved()["counts"]
    return open_pairs | places | {"labels": state.labels} | state.counts.saved()


def _pairs_of(state: Joining, part: Part) -> OpenPairs:
    """Return the pairs of a part that remain to be aligned."""
    rows = part.stop - part.start
    reserved = part_stream.reserved_bytes(state.task, [part], 1)
    part_task, computed = part_stream.tasks_of_part(state.task, part, reserved)
    proofs = proofs_of(replace(part_task, equals_alike=True))  # none of them is far
    assert proofs is not None
    passing = proof.find(proofs)
    # bounds on the identities of the pairs that no proof excludes
    assert passing is not None and passing.max_identities is not None
    i, j = proof.shifted(state.task, passing, part.first)
    m, n = (state.task.queries.lengths[side] for side in (i, j))
    below = denominator(state.definition.length, {}, m, n)
    bound = np.nan_to_num(ratio(passing.max_identities, below))
    pairs = state.apart(OpenPairs(i, j, bound))
    limit, remaining = proof.MAX_LEFT * part_task.job.cells, pairs
    state.counts.pairs += part_task.job.pairs
    before = replace(state.counts, histogram=state.counts.histogram.copy())
    if state.cells(pairs) > limit:
        remaining = _connected(state, pairs)
    if state.cells(remaining) > limit:
        state.counts = before  # no pair counts twice
        _run(state, engine.plan_rows(part_task, computed), rows, part.first)
        state.report_progress(part.cells)
        return pairs.some(np.zeros(0, np.int64))
    state.counts.excluded = added(state.counts.excluded, passing.excluded)
    state.report_progress(part.cells - state.cells(remaining))
    return remaining


def _join(state: Joining, waiting: Iterable[OpenPairs]) -> None:
    """Join components by the links among the waiting pairs."""
    every = zip(*waiting, strict=True)
    pairs = OpenPairs(*(np.concatenate(side) for side in every))
    remaining = _connected(state, state.apart(pairs))
    if len(remaining.i):
        _align(state, remaining)
    state.report_progress(state.cells(pairs))


def _connected(state: Joining, pairs: OpenPairs) -> OpenPairs:
    """Align spanning forests of the pairs; return the pairs that are still apart."""
    while len(pairs.i):
        forest = _forest(state.labels, pairs)
        linked = _align(state, pairs.some(forest))
        pairs = state.apart(pairs.some(np.setdiff1d(np.arange(len(pairs.i)), forest)))
        if 2 * linked < len(forest) or len(pairs.i) < LEAST_OF_A_FOREST:
            break
    return pairs


def _forest(labels: np.ndarray, pairs: OpenPairs) -> np.ndarray:
    """Select pairs that connect every two components that any pair does, with the
    largest bounds: Kruskal's spanning forest."""
    ends = labels[pairs.i].astype(np.int64), labels[pairs.j].astype(np.int64)
    edge = np.minimum(*ends) * len(labels) + np.maximum(*ends)
    best = np.lexsort((-pairs.bound, edge))
    edges, first = np.unique(edge[best], return_index=True)
    best = best[first]
    # No weight is 0, which would be no edge.
    weights = 2 - pairs.bound[best], np.divmod(edges, len(labels))
    tree = minimum_spanning_tree(csr_array(weights, shape=(len(labels),) * 2)).tocoo()
    tree_edges = tree.row.astype(np.int64) * len(labels) + tree.col
    return best[np.searchsorted(edges, np.sort(tree_edges))]


def _align(state: Joining, pairs: OpenPairs) -> int:
    """Align pairs and join their components; return the number of links."""
    order = np.lexsort((pairs.j, pairs.i))
    passing = Survivors(pairs.i[order], pairs.j[order])
    reserved = len(order) * COLUMN_BYTES["identity"]
    plan = proof.plan_of_survivors(replace(state.task, reserved=reserved), passing)
    return _run(state, plan, len(order))


def _run(state: Joining, plan: Plan, aligned: int, first: int = 0) -> int:
    """Run a plan whose sequences are numbered from the first of a part."""
    table = engine.run(plan, busy=state.definition.options.busy)
    shares = identities(table, state.definition)
    info = {"pairs": 0, "aligned_pairs": aligned, "excluded": {}}
    state.counts.add(table.info | info, shares, state.definition)
    i, j = (table[side].astype(np.int64) + first for side in ("query", "target"))
    state.labels = merged(state.labels, [(i, j)])
    return len(i)


# ------------------------------------------------------------------------------
# Complete and average linkage, by scipy: of the components of links, and of a matrix.
#
# No cluster of either kind leaves a component: where two clusters have an average, or a
# largest, distance within the cut, some pair between them is linked. So the condensed
# matrix of a component is enough.

APART = 2.0  # a distance above every one that identities give
MATRIX_COPIES = 4  # of 8 bytes: the square, the condensed one and that of scipy


def linkage_clusters(
    sequences: Sequences,
    definition: Definition,
    links: Links,
    component: np.ndarray,
    method: str,
    counts: PairCounts,
) -> np.ndarray:
    """Cluster labels of all sequences, int32 (n,), in the order of first members.

    component : int32 (n,); their components
    method : {"complete", "average"}; ``average`` aligns all pairs of a component, also
        those below the cut
    Raises MemoryPlanError: the matrix of the largest component exceeds the budget
    """
    sizes = np.bincount(component)
    largest = int(sizes.max(initial=0))
    budget = budget_of(definition.options.memory_budget)
    needed = 8 * largest**2 // 2 * MATRIX_COPIES
    if needed > budget:
        raise MemoryPlanError(
            f"the matrix of a component of {largest:,} sequences needs {needed:,} "
            f"bytes, the memory budget is {budget:,}: use method components or greedy, "
            "which need no matrix, or a higher cut, which has smaller components"
        )
    order = np.argsort(component, kind="stable")
    members = np.split(order, np.cumsum(sizes)[:-1])
    # the links of every component
    of_link = component[links.i]
    by_component = np.argsort(of_link, kind="stable")
    ends = np.cumsum(np.bincount(of_link, minlength=len(sizes)))[:-1]
    sides = links.i, links.j, links.identity
    parts = (np.split(side[by_component], ends) for side in sides)
    of_component = list(zip(*parts, strict=True))
    labels = np.arange(len(sequences))
    for number in np.flatnonzero(sizes > 1):
        family = members[number]
        if method == "complete":
            # its links; any other pair is farther than the cut
            i, j, identity = of_component[number]
            distance = np.full((len(family),) * 2, APART)
            rows, columns = np.searchsorted(family, i), np.searchsorted(family, j)
            distance[rows, columns] = distance[columns, rows] = 1 - identity
            np.fill_diagonal(distance, 0)
        else:
            distance = _all_distances(sequences, family, definition, counts)
        tree = hierarchy.linkage(squareform(distance, checks=False), method)
        groups = hierarchy.fcluster(tree, 1 - definition.cut, "distance")
        labels[family] = family[np.unique(groups, return_index=True)[1]][groups - 1]
    return renumbered(labels)


def _all_distances(
    sequences: Sequences, family: np.ndarray, definition: Definition, counts: PairCounts
):
    """Compute the distances of all pairs of a component; pairs of too unequal lengths
    have 1."""
    members, uncounted = sequences.take(family), PairCounts()
    i, j, shares = _measured_pairs(members, None, definition, uncounted, 0.0)
    counts.aligned += len(i)  # the pairs were counted with the links
    square = np.ones((len(family),) * 2)
    square[i, j] = square[j, i] = 1 - np.nan_to_num(shares)
    np.fill_diagonal(square, 0)
    return square


@dataclass(frozen=True, eq=False)
class Dendrogram:
    """Average linkage (UPGMA) of condensed distances.

    Attributes
    ----------
    order : int64 (n,)
        The leaves, from the first place to the last.
    lines : list of (heights (4,), places (4,))
        The corners of every joint; the k-th leaf of ``order`` has the place k.
    """

    order: np.ndarray
    lines: list


def dendrogram(distances: np.ndarray) -> Dendrogram:
    """The dendrogram of float (n (n - 1) / 2,) distances, n at least 2, in scipy's
    condensed order, which is that of ``align_all``."""
    tree = hierarchy.linkage(distances, "average")
    shown = hierarchy.dendrogram(tree, no_plot=True, get_leaves=True)
    places = (np.array(shown["icoord"]) - 5) / 10  # scipy's leaves have 5, 15, 25 …
    lines = list(zip(np.array(shown["dcoord"]), places, strict=True))
    return Dendrogram(np.array(shown["leaves"]), lines)


# ------------------------------------------------------------------------------
# Run a clustering or an audit of encoded sequences by its definition.


def clusters_of(
    data: Sequences,
    definition: Definition,
    method: str,
    every_link: bool = False,
    saved: SavedState | None = None,
) -> Clusters:
    """Cluster a set.

    every_link : count all links, also those of two sequences that other links connect
    saved : the state of a run that was interrupted, or may be
    Raises UsageError: an unknown method
    """
    check_choice("method", method, METHODS)
    if definition.evidence is not None and method in ("complete", "average"):
        raise UsageError(
            f"method {method!r} goes by the identities of all pairs, and edges have "
            "none: use components or greedy"
        )
    if not definition.cut and method in ("complete", "average"):
        raise UsageError(
            f"method {method!r} goes by identities: give min_identity beside "
            "min_relative_score, or use components or greedy"
        )
    counts, identity, strands = PairCounts(), None, None
    if method == "greedy":
        groups = greedy(data, definition, counts, saved)
        labels = renumbered(groups.representative)
        first = np.unique(labels, return_index=True)[1]
        representatives, identity = groups.representative[first], groups.identity
        if definition.options.strand == "both":
            strands = strands_with(data, groups.representative, definition)
    else:
        if method == "components":
            link_tasks = link_jobs(data, definition)
            job = link_tasks[0]
            # Where scores come first, they say of most pairs that they are not linked.
            every_link |= job.tasks[0].scores_first or len(data) < 2
            # Joining has one definition, of one strand or of both.
            every_link |= len(link_tasks) > 1 or definition.evidence is not None
            every_link |= definition.options.min_cov is not None
            every_link |= not definition.cut  # identities bound nothing
            every_link |= any(x.length != definition.length for x in job.judges)
            every_link |= any(x.mode != definition.mode for x in job.judges)
            proofs = None if every_link else proofs_of(job.tasks[0])
            # Common subsequences on a CPU may prove which pairs are not linked. A GPU
            # aligns the remaining pairs in less time than it takes to select some.
            if proofs is not None and proofs.lcs and proofs.launches is None:
                labels, counts = joined_components(job, saved)
            else:
                parts = stream_links(data, definition, counts, link_tasks, saved)
                labels = components(len(data), ((x.i, x.j) for x in parts))
        else:
            links = all_links(data, definition, counts, saved)
            groups = components(len(data), [(links.i, links.j)])
            labels = linkage_clusters(data, definition, links, groups, method, counts)
        representatives = longest_members(labels, data.lengths)
    about = counts.about()
    sides = data, labels, representatives, identity
    return Clusters(*sides, method, definition, about, strand=strands)


def strands_with(
    sequences: Sequences, representatives: np.ndarray, definition: Definition
) -> np.ndarray:
    """Find along which strand each sequence is as alike as it is to its representative:
    int8 (n,), 1 or -1."""
    strands = np.full(len(sequences), PLUS, np.int8)
    (members,) = np.nonzero(representatives != np.arange(len(sequences)))
    sides = sequences.take(members), sequences.take(representatives[members])
    _, judge = zipped_pairs(definition, *sides, 0)
    minus = np.array([x.minus for x in judges_of(definition)])
    strands[members[minus[judge]]] = MINUS
    return strands


def grown_of(
    data: Sequences,
    definition: Definition,
    old: OldClusters,
    saved: SavedState | None = None,
) -> Clusters:
    """Cluster a set of which old clusters are known: components of their links and of
    those that have a new end, which are all that are compared.

    saved : the state of a run that was interrupted, or may be
    Raises UsageError, InputError, VerificationError: see ``OldClusters``
    """
    old.check_rule(definition)
    rows, counts, n = old.rows(data), PairCounts(), len(data)
    is_new = np.ones(n, bool)
    is_new[rows] = False
    # A vertex is an old cluster, by its first member, or a new sequence.
    _, first, cluster = np.unique(old.numbers, return_index=True, return_inverse=True)
    vertex = np.arange(n)
    vertex[rows] = rows[first][cluster]
    links = joined_links([])
    for part in stream_links(
        data, definition, counts, link_jobs(data, definition, is_new), saved
    ):
        links = _strongest_forest(joined_links([links, part]), vertex)
    edges = [(vertex, np.arange(n)), (links.i, links.j)]
    labels = components(n, edges)
    return Clusters(
        data,
        labels,
        longest_members(labels, data.lengths),
        None,
        "components",
        definition,
        counts.about(),
        _growth(data, old, (rows, is_new), labels, links, vertex),
    )


def _strongest_forest(links: Links, vertex: np.ndarray) -> Links:
    """Select the spanning forest with the largest identities, of equals the first:
    it is the same however links come in parts."""
    order = np.lexsort((links.j, links.i, -links.identity))
    links = links.some(order)
    a, b, n = vertex[links.i], vertex[links.j], len(vertex)
    # the strongest link of every two vertices; no weight is 0, which would be no edge
    edge, at = np.unique(np.minimum(a, b) * n + np.maximum(a, b), return_index=True)
    graph = csr_array((at + 1.0, np.divmod(edge, max(n, 1))), shape=(n, n))
    tree = np.sort(minimum_spanning_tree(graph).data).astype(np.int64) - 1
    return links.some(tree)


def _growth(
    data: Sequences,
    old: OldClusters,
    sides: tuple[np.ndarray, np.ndarray],
    labels: np.ndarray,
    links: Links,
    vertex: np.ndarray,
) -> Growth:
    """Number the clusters, and find the links that merge old ones.

    sides : the old sequences, int64, and which sequences are new, bool (n,)
    """
    (rows, is_new), none = sides, np.iinfo(np.int64).max
    numbers = np.full(int(labels.max(initial=-1)) + 1, none)
    np.minimum.at(numbers, labels[rows], old.numbers)
    fresh = numbers == none
    numbers[fresh] = old.next_number + np.arange(int(fresh.sum()))
    names_now, before = np.unique([numbers[labels[rows]], old.numbers], axis=1)
    groups = np.split(before, np.flatnonzero(begins(names_now))[1:])
    merged = tuple(tuple(x.tolist()) for x in groups if len(x) > 1)
    # Of the forest, what ends in a new sequence leads to no further old cluster.
    bridges, before = links, -1
    while len(bridges) != before:
        before, ends = len(bridges), (vertex[bridges.i], vertex[bridges.j])
        leaf = is_new & (np.bincount(np.concatenate(ends), minlength=len(data)) == 1)
        bridges = bridges.some(~(leaf[ends[0]] | leaf[ends[1]]))
    names = np.array(data.names, object)
    return Growth(
        numbers,
        old.next_number + int(fresh.sum()),
        int(is_new.sum()),
        int((~fresh)[labels[is_new]].sum()),
        int(fresh.sum()),
        merged,
        {
            "cluster": numbers[labels[bridges.i]],
            "query": names[bridges.i],
            "target": names[bridges.j],
            "identity": bridges.identity,
        },
    )


def graph_of(data: Sequences, definition: Definition) -> csr_array:
    """Return links as a symmetric sparse matrix."""
    links = all_links(data, definition, PairCounts())
    sides = np.concatenate([links.i, links.j]), np.concatenate([links.j, links.i])
    values = np.concatenate([links.identity] * 2)
    return csr_array(coo_array((values, sides), shape=(len(data),) * 2))
