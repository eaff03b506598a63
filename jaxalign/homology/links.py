"""Links of a set: the pairs at or above the cut, part by part, or all of them, and the
connected components of a graph of links: never the matrix of all pairs."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from jaxalign.errors import MemoryPlanError
from jaxalign.homology.evidence import (
    BY_EDGES,
    Evidence,
    all_of_groups,
    among,
    located,
    shared_groups,
)
from jaxalign.homology.options import (
    Definition,
    Measured,
    identities,
    measured,
    pair_options,
)
from jaxalign.model.alphabet import Sequences, begins, renumbered
from jaxalign.model.numbers import exact
from jaxalign.model.table import Table
from jaxalign.options import Execution, PairOptions
from jaxalign.pairs import by_rows, part_stream
from jaxalign.pairs.jobs import tables_of, with_kernels
from jaxalign.pairs.options import make_task
from jaxalign.pairs.part_stream import Part
from jaxalign.pairs.plan import Arrays, SavedState, Task, added
from jaxalign.pairs.proofs import proof
from jaxalign.runtime.devices import budget_of, by_length, parts_budget

LINK_BYTES = 16  # two numbers of sequences, an identity
WORK_COPIES = 3  # of the links, while a graph is made of them
MIN_BUFFER = 2**20  # links that are merged at once, at least: a merge visits all labels

BINS = 50
EDGES = np.arange(BINS + 1) / BINS


@dataclass
class PairCounts:
    """Numbers of pairs that were aligned or excluded so far; they change while a job
    runs.

    ``excluded`` says of how many each bound proved that they are below the cut, and
    ``histogram`` counts the identities of all rows, int64 (bins,) between ``EDGES``.
    """

    pairs: int = 0
    aligned: int = 0
    linked: int = 0
    excluded: dict = field(default_factory=dict)
    seconds: float = 0.0
    implementation: str = ""
    histogram: np.ndarray = field(default_factory=lambda: np.zeros(BINS, np.int64))

    def add(self, info: dict, shares: np.ndarray, definition: Definition) -> None:
        """Count the pairs of a table, and the identities of its rows."""
        linked = int((shares >= definition.cut).sum())
        bins = np.searchsorted(EDGES, shares[~np.isnan(shares)], side="right") - 1
        self.histogram += np.bincount(np.minimum(bins, BINS - 1), minlength=BINS)
        self.pairs += info["pairs"]
        self.aligned += info.get("aligned_pairs", info["pairs"])
        self.linked += linked
        self.seconds += info["seconds"]
        self.implementation = self.implementation or info["implementation"]
        self.excluded = added(self.excluded, info.get("excluded", {}))

    def saved(self) -> dict[str, np.ndarray]:
        """Return the counts as an array, for a state."""
        about = vars(self) | {"histogram": self.histogram.tolist()}
        return {"counts": np.array(json.dumps(about))}

    def restore(self, arrays: Arrays) -> None:
        """Count on from a state."""
        about = json.loads(str(arrays["counts"]))
        vars(self).update(about, histogram=np.array(about["histogram"], np.int64))

    def about(self) -> dict:
        """Return the counts as plain values."""
        return {
            "all": self.pairs,
            "aligned": self.aligned,
            "excluded": dict(self.excluded),
            "at_or_above_cut": self.linked,
            "histogram": self.histogram,
        }


@dataclass(frozen=True, eq=False)
class Links:
    """Pairs i < j of a set at or above the cut, with their identities.

    Attributes
    ----------
    i, j : int32 (links,)
    identity : float64 (links,)
        ``BY_EDGES``, which is above every identity, where an edge links the two.
    """

    i: np.ndarray
    j: np.ndarray
    identity: np.ndarray

    def __len__(self) -> int:
        return len(self.i)

    def some(self, which: np.ndarray) -> "Links":
        """Select links."""
        return Links(self.i[which], self.j[which], self.identity[which])


class LinkTask(NamedTuple):
    """Pairs of a set that the same definitions judge, with a task for each of these;
    ``rows`` and ``columns`` number the sequences of the tasks, the longest first: then
    those of a part are alike in length, and lengths alone exclude most of the others.
    """

    judges: tuple[Definition, ...]
    rows: np.ndarray
    columns: np.ndarray
    tasks: list[Task]
    options: list[PairOptions]


def link_jobs(
    sequences: Sequences, definition: Definition, is_new: np.ndarray | None = None
) -> list[LinkTask]:
    """Make the jobs of the links of a set.

    is_new : bool (n,); only of pairs that have one of these sequences, or two
    """
    jobs, execution, lengths = [], definition.options, sequences.lengths
    squares = lengths.sum() ** 2 - (lengths**2).sum()
    divided = measured(definition, sequences) if is_new is None else []
    if is_new is not None:
        old, added_rows = np.flatnonzero(~is_new), np.flatnonzero(is_new)
        sides = sequences.take(added_rows.tolist()), sequences.take(old.tolist())
        for judges, rows, columns in measured(definition, sides[0]):
            columns = None if columns is None else added_rows[columns]
            divided.append(Measured(judges, added_rows[rows], columns))
        for judges, rows, columns in measured(definition, *sides):
            divided.append(Measured(judges, added_rows[rows], old[columns]))
        squares -= lengths[old].sum() ** 2 - (lengths[old] ** 2).sum()
        divided = [
            x for x in divided if len(x.rows) and (x.columns is None or len(x.columns))
        ]
    cells = int(squares) // 2
    for judges, rows, columns in divided:
        kind = "all" if columns is None else "cross"
        rows, queries = longest_first(sequences, rows)
        if columns is None:
            columns, targets = rows, queries
        else:
            columns, targets = longest_first(sequences, columns)
        options = [
            replace(
                with_kernels(pair_options(x), cells),
                progress=execution.progress,
                busy=execution.busy,
            )
            for x in judges
        ]
        tasks = [
            make_task(kind, queries, targets, definition.scoring, x) for x in options
        ]
        for task in tasks:
            proof.with_room(task, 0, partial(_name, sequences, rows))
        jobs.append(LinkTask(judges, rows, columns, tasks, options))
    sizes = [task.job.cells for job in jobs for task in job.tasks]
    if len(sizes) > 1 and execution.progress is not None:
        reports = iter(within(execution.progress, sizes))
        for job in jobs:
            job.options[:] = [replace(x, progress=next(reports)) for x in job.options]
    return jobs


def _name(sequences: Sequences, rows: np.ndarray, number: int) -> str:
    return sequences.names[int(rows[number])]


def within(progress: Callable, sizes: list[int]) -> list[Callable]:
    """The reports of progress of jobs of some sizes that are parts of one."""

    def report_of(before: int, size: int) -> Callable[[int, int], object]:
        total = sum(sizes)
        return lambda cells, of: progress(
            before + size * min(cells, of) // max(of, 1), total
        )

    starts = accumulate(sizes, initial=0)
    return [report_of(*job) for job in zip(starts, sizes, strict=False)]


def stream_links(
    sequences: Sequences,
    definition: Definition,
    counts: PairCounts,
    jobs: list[LinkTask] | None = None,
    saved: SavedState | None = None,
    least: float = 0.0,
) -> Iterator[Links]:
    """Yield the links of all pairs of a set, part by part, each pair once: those that
    alignments and edges decide over. ``counts`` counts them.

    Parameters are those of ``aligned_links``.
    """
    stream = aligned_links(sequences, definition, counts, jobs, saved, least)
    if definition.evidence is None or not definition.evidence.tables:
        return stream
    return _with_edges(stream, definition, definition.evidence, sequences, counts)


def _with_edges(
    stream: Iterable[Links],
    definition: Definition,
    evidence: Evidence,
    sequences: Sequences,
    counts: PairCounts,
) -> Iterator[Links]:
    """Leave out links that lack an edge which they need, and yield those of edges; the
    difference is counted at the end."""
    places, width, difference = evidence.places(sequences), len(sequences), 0
    either, needed = located(evidence.either, places), evidence.needed
    needed = None if needed is None else located(needed, places)
    seen = np.zeros(either.shape[1], bool)
    for links in stream:
        difference -= int((links.identity >= definition.cut).sum())
        at = among(either, links.i, links.j, width)
        seen[at[at >= 0]] = True
        keep = np.ones(len(links), bool)
        if needed is not None:
            keep = (among(needed, links.i, links.j, width) >= 0) | (at >= 0)
        identity = np.where(at >= 0, BY_EDGES, links.identity)
        difference += int((identity[keep] >= definition.cut).sum())
        yield Links(links.i, links.j, identity).some(keep)
    i, j = either[:, ~seen].astype(np.int32)
    counts.linked += difference + len(i)
    yield Links(i, j, np.full(len(i), BY_EDGES))


def kept_together(sequences: Sequences, definition: Definition) -> np.ndarray | None:
    """Number the sets of sequences that groups connect, int32 (n,); None where nothing
    is to stay together."""
    evidence = definition.evidence
    if evidence is None or not evidence.groupings:
        return None
    pairs = shared_groups(evidence.groupings, evidence.places(sequences))
    return components(len(sequences), [(pairs[0], pairs[1])])


def with_groups(sequences: Sequences, definition: Definition, links: Links) -> Links:
    """Join links with those of all pairs of one group; each pair once.

    Raises MemoryPlanError: the pairs of groups exceed the budget
    """
    evidence = definition.evidence
    if evidence is None or not evidence.groupings:
        return links
    budget = budget_of(definition.options.memory_budget)
    sizes = [np.bincount(x.group) for x in evidence.groupings]
    needed = sum(int((x * (x - 1) // 2).sum()) for x in sizes)
    if (needed + len(links)) * LINK_BYTES * WORK_COPIES > budget:
        raise MemoryPlanError(
            f"{needed:,} pairs are of one group: to remove sequences all of them are "
            f"needed, and they exceed the memory budget of {budget:,} bytes; raise the "
            "budget, or allow no removal"
        )
    i, j = all_of_groups(evidence.groupings, evidence.places(sequences)).astype("i4")
    links = joined_links([Links(i, j, np.full(len(i), BY_EDGES)), links])
    order = np.lexsort((-links.identity, links.j, links.i))
    links = links.some(order)
    return links.some(begins(links.i, links.j))


def aligned_links(
    sequences: Sequences,
    definition: Definition,
    counts: PairCounts,
    jobs: list[LinkTask] | None = None,
    saved: SavedState | None = None,
    least: float = 0.0,
) -> Iterator[Links]:
    """Yield the pairs of a set at or above the cut, part by part; ``counts`` counts
    them.

    saved : the state of a run that was interrupted, or may be: its links so far, unless
        they become more than a share of the memory, and the parts that they are of
    least : the identity from which on the state has the links; a run that is resumed
        yields no others of those before
    """
    stored, first_job, first_part = [], 0, 0
    before = {} if saved is None else saved.all()
    jobs = link_jobs(sequences, definition) if jobs is None else jobs
    if "links_done" in before:
        first_job, first_part = before["links_done"].tolist()
        if by_rows.is_short(jobs[first_job].tasks[0].job.total):
            # On this machine it has no parts to go on with.
            before, first_job, first_part = {}, 0, 0
    if "links_done" in before:
        counts.restore(before)
        stored.append(Links(before["i"], before["j"], before["identity"]))
        yield stored[0]
    limit = 0 if saved is None else budget_of(definition.options.memory_budget)
    for number, job in enumerate(jobs):
        judges, rows, columns, tasks, options = job
        if number < first_job:
            continue
        if saved is None or by_rows.is_short(tasks[0].job.total):
            parts, finished = partial(parts_of, tasks[0], judges[0]), 0
        else:
            # Parts depend on the budget: a run goes on with those that it began with.
            cut, finished = parts_of(tasks[0], judges[0]), 0
            if number == first_job and "links_done" in before:
                cut, finished = [Part(*x) for x in before["parts"].tolist()], first_part
            parts = partial(cut.__getitem__, slice(finished, None))
            sizes = [
                sum(x.cells for x in group)
                for group in (cut[:finished], cut[finished:])
            ]
            options = [
                x if x.progress is None
                else replace(x, progress=within(x.progress, sizes)[1])
                for x in options
            ]  # fmt: skip
        streams = [tables_of(*job, parts) for job in zip(tasks, options, strict=True)]
        for count, tables in enumerate(zip(*streams, strict=True), finished + 1):
            query, target, shares = joined_rows(tables, judges, counts, judges[0].cut)
            i, j = rows[query].astype(np.int32), columns[target].astype(np.int32)
            links = Links(np.minimum(i, j), np.maximum(i, j), shares)
            if saved is not None:
                stored.append(links.some(shares >= least) if least else links)
                if sum(map(len, stored)) * LINK_BYTES * WORK_COPIES > limit:
                    saved, stored = None, []
                elif not by_rows.is_short(tasks[0].job.total):
                    state = partial(_links_state, number, count, cut, stored, counts)
                    saved.put_if_due(state)
            yield links


def _links_state(
    job: int, finished: int, parts: list[Part], stored: list[Links], counts: PairCounts
) -> Arrays:
    """Return the links of some parts, and how many parts they are, as arrays."""
    stored[:] = [joined_links(stored)]
    links = {"i": stored[0].i, "j": stored[0].j, "identity": stored[0].identity}
    places = {"links_done": np.array([job, finished]), "parts": parts_array(parts)}
    return links | places | counts.saved()


def parts_array(parts: list[Part]) -> np.ndarray:
    """Return parts as integers, for a state: int64 (parts, 6)."""
    return np.array([astuple(part) for part in parts], np.int64).reshape(-1, 6)


def joined_links(parts: Sequence[Links]) -> Links:
    """Join links, one after the other."""
    empty = Links(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0))
    sides = ((part.i, part.j, part.identity) for part in [empty, *parts])
    return Links(*(np.concatenate(side) for side in zip(*sides, strict=True)))


def joined_rows(
    tables: Sequence[Table],
    judges: Sequence[Definition],
    counts: PairCounts,
    least: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (query, target, identity) of the rows of tables of the same pairs, one of
    each definition: each pair once, with the larger identity. Pairs without the
    coverage that is asked for are left out, and those below ``least`` by their path.

    ``counts`` takes the pairs of the table that has more of them aligned.
    """
    shares = [identities(*sides) for sides in zip(tables, judges, strict=True)]
    rows = [(x["query"], x["target"]) for x in tables]
    columns = [(*sides, y) for sides, y in zip(rows, shares, strict=True)]
    query, target, identity = columns[0]
    if len(tables) > 1:
        query, target, identity = map(np.concatenate, zip(*columns, strict=True))
        order = np.lexsort((-identity, target, query))
        order = order[begins(query[order]) | begins(target[order])]
        query, target, identity = query[order], target[order], identity[order]
    if judges[0].options.min_cov is not None:
        passing = identity >= least
        query, target, identity = query[passing], target[passing], identity[passing]
    infos = [table.info for table in tables]
    fuller = max(infos, key=lambda info: info.get("aligned_pairs", info["pairs"]))
    counts.add(
        fuller | {"seconds": sum(x["seconds"] for x in infos)}, identity, judges[0]
    )
    return query, target, identity


def longest_first(
    sequences: Sequences, members: np.ndarray | None = None
) -> tuple[np.ndarray, Sequences]:
    """Sort a set, or members of it, by falling lengths, equals in input order: (order,
    int64; the sequences). They have no names: nobody sees them, and each part would
    copy its own."""
    lengths = sequences.lengths
    order = by_length(lengths)
    if members is not None:
        order = members[by_length(lengths[members])]
    return order, replace(sequences.take(order.tolist()), names=())


def parts_of(task: Task, definition: Definition) -> list[part_stream.Part]:
    """Cut a job of links, of one set or across two, into parts.

    Links are few, and parts of more queries take less time; but where a part has few
    pairs that can be excluded, all its rows are in memory.
    """
    in_memory = part_stream.parts_held(len(task.devices))
    in_memory *= 1 + (definition.options.strand == "both")
    rows = task.job.pairs // part_stream.MIN_PARTS
    rows = max(rows, part_stream.QUERIES_STEP * task.shape[1])
    rows = max(min(rows, rows_at_once(definition.options, in_memory)), 1)
    cells = max(task.job.cells // part_stream.MIN_PARTS, part_stream.MIN_CELLS)
    if not proof.on_gpu(task):  # which excludes as many as there are in a moment
        cells = min(cells, part_stream.PART_CELLS)
    if task.kind == "all":
        return part_stream.cut(task.queries.lengths, rows=rows, cells=cells)
    sizes = task.shape[1], len(task.targets.codes)
    return part_stream.cut_search(task.queries.lengths, *sizes, rows, cells)


def rows_at_once(options: Execution, in_memory: int) -> int:
    """Return how many pairs a job may have for ``in_memory`` jobs to fit memory, if all
    are linked."""
    budget = parts_budget(options.memory_budget)
    return part_stream.rows_within(budget, "identity", in_memory)


def all_links(
    sequences: Sequences,
    definition: Definition,
    counts: PairCounts,
    saved: SavedState | None = None,
) -> Links:
    """Collect all links of a set in memory, sorted by i and j.

    Raises MemoryPlanError: they exceed the budget; the message says how many there were
    """
    budget = budget_of(definition.options.memory_budget)
    parts, link_count = [], 0
    for part in stream_links(sequences, definition, counts, saved=saved):
        parts.append(part)
        link_count += len(part)
        if link_count * LINK_BYTES * WORK_COPIES > budget:
            raise MemoryPlanError(
                f"{link_count:,} pairs, and more to come, are at or above the cut of "
                f"{exact(definition.cut)}: they exceed the memory budget of {budget:,} "
                "bytes; raise the budget or the cut"
            )
    links = joined_links(parts)
    return links.some(np.lexsort((links.j, links.i)))


def components(
    count: int,
    links: Iterable[tuple[np.ndarray, np.ndarray]],
    together: np.ndarray | None = None,
) -> np.ndarray:
    """Find the components of a graph.

    links : iterable of (i, j); arrays of vertices of equal length, part by part
    together : int32 (count,), what ``kept_together`` returned
    Returns int32 (count,), numbered from 0 in the order of their first vertices
    """
    labels = np.arange(count, dtype=np.int32)
    labels = labels if together is None else together
    waiting, link_count = [], 0
    for i, j in links:
        waiting.append((i, j))
        link_count += len(i)
        if link_count >= max(MIN_BUFFER, count):
            labels, waiting, link_count = merged(labels, waiting), [], 0
    return renumbered(merged(labels, waiting))


def components_by_cut(
    count: int,
    parts: Iterable[Links],
    cuts: Sequence[float],
    together: np.ndarray | None = None,
) -> tuple[list, list]:
    """Find the components of a graph at each of several cuts, as ``components``.

    Returns (list of int32 (count,), list of int), components, and how many links there
        are, at each cut
    """
    start = np.arange(count, dtype=np.int32) if together is None else together
    labels = [start for _ in cuts]
    waiting, link_count, linked = [], 0, [0] * len(cuts)

    def merge() -> None:
        for k, cut in enumerate(cuts):
            masks = [x.identity >= cut for x in waiting]
            pairs = zip(waiting, masks, strict=True)
            linked[k] += int(sum(x.sum() for x in masks))
            labels[k] = merged(labels[k], [(x.i[y], x.j[y]) for x, y in pairs])

    for part in parts:
        waiting.append(part)
        link_count += len(part)
        if link_count >= max(MIN_BUFFER, count):
            merge()
            waiting, link_count = [], 0
    merge()
    return [renumbered(x) for x in labels], linked


def merged(labels: np.ndarray, waiting: list) -> np.ndarray:
    """Merge the components so far along further links."""
    if not waiting:
        return labels
    i, j = (np.concatenate(side) for side in zip(*waiting, strict=True))
    edges = labels[i], labels[j]
    shape = (len(labels),) * 2
    graph = coo_array((np.ones(len(i), bool), edges), shape=shape)
    return connected_components(graph, directed=False)[1][labels]


def longest_members(labels: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Find the longest member of every group, the first of equals: int64 (groups,)."""
    order = np.lexsort((np.arange(len(labels)), -lengths, labels))
    _, first = np.unique(labels[order], return_index=True)
    return order[first]
