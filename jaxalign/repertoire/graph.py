"""The plan of a repertoire graph, and edges of receptors.

Edges of a chain's unique CDR3 sequences come first (``near_pairs``): by any metric, who
is compared, and how. A receptor has chains, and a chain has a CDR3 sequence and a V
gene. Where the distance of two of them is a sum, or the largest, of their parts'
distances, every part is within the cutoff: so it is enough to look at pairs that the
graph of one part links (``join``).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jaxalign.model.alphabet import LetterCodes, Sequences, ranks, spans, views
from jaxalign.model.show import brief
from jaxalign.options import PairOptions
from jaxalign.pairs import by_rows, jobs
from jaxalign.pairs.api import LONG_JOB
from jaxalign.repertoire import bounds
from jaxalign.repertoire.bounds import LetterCosts
from jaxalign.repertoire.metrics import LETTERS, banded_scores, letter_scores
from jaxalign.repertoire.options import GraphDefinition
from jaxalign.repertoire.receptors import GeneDistances, Receptors
from jaxalign.repertoire.rectangles import Machine, check_all, has_kernels
from jaxalign.runtime.devices import at_once
from jaxalign.runtime.pipeline import in_threads
from jaxalign.words.distances import distances as edit_distances
from jaxalign.words.edges import EdgeList, EdgeSet, least, no_edges
from jaxalign.words.near_pairs import (
    LengthClasses,
    VariantJoin,
    add_by_variants,
    variant_count,
)

# To make, sort and compare a variant takes as long as so many pairs, of which some have
# enough letters in common to be compared.
VARIANT_PAIRS = 4
# Pairs of a job of edit distances that a GPU compares, all with all.
LEAST_OF_KERNELS, MOST_OF_KERNELS = 2**26, 2**46
# By a core (Xeon with AVX-512) and a GPU (H100): pairs by sums over positions or edit
# distances; by a core, pairs by scores, and variants.
NEAR_PAIRS_A_SECOND, SCORED_PAIRS_A_SECOND = (1e9, 2e11), 1e8
VARIANTS_A_SECOND = 1.4e6
SAMPLE = 1000  # sequences whose variants are counted
PAIRS_ALIGNED_AT_ONCE, PAIR_BYTES = 2**20, 256
PAIRS_AT_ONCE, JOIN_BYTES = 2**22, 64  # of a join
ADVICE = ", and stream_repertoire needs memory for a block of rows alone"


@dataclass(frozen=True, eq=False)
class RepertoirePlan:
    """One job: who is compared with whom, and what decides.

    reference : what they are compared with; None for themselves.
    combine : {"sum", "all", "any"}. How the distances of chains are one.
    blocks : receptors whose edges are found together.
    """

    receptors: Receptors
    reference: Receptors | None
    definition: GraphDefinition
    combine: str
    genes: GeneDistances | None
    blocks: tuple[range, ...]

    __repr__ = brief

    def __str__(self) -> str:
        count, rows = len(self.receptors), len(self.receptors.rows)
        against = ""
        if self.reference is not None:
            against = f" against {len(self.reference):,}"
        chains = [chain.name for chain in self.receptors.rows.chains]
        joined = f" {self.combine} of ".join(["", " and ".join(chains)])
        names = joined if len(chains) > 1 else f" {chains[0]}"
        blocks = f", {len(self.blocks)} blocks" if len(self.blocks) > 1 else ""
        subject = f"{rows:,} rows, {count:,} receptors{against};{names}"
        return f"{subject}: {self.definition}{blocks}"


def blocks_of(receptors: int, size: int | None) -> tuple[range, ...]:
    """Cut receptors into blocks of ``size``; one block if ``size`` is None."""
    step = max(receptors if size is None else size, 1)
    starts = range(0, max(receptors, 1), step)
    return tuple(range(start, min(start + step, receptors)) for start in starts)


def near_pairs(
    a: LetterCodes, b: LetterCodes | None, definition: GraphDefinition, machine: Machine
) -> EdgeSet:
    """Find all pairs within the cutoff, sorted by i and j.

    In one set of unique sequences i < j; with ``b``, i counts in a and j in b.
    """
    if not len(a) or (b is not None and not len(b)):
        return no_edges()
    edges = EdgeList(machine.budget, "cutoff", ADVICE)
    first, second = LengthClasses(a), None if b is None else LengthClasses(b)
    if definition.positions is not None:
        parts = first, second, definition.positions, definition.cutoff, edges
        making = bounds.position_rectangles(*parts)
        rectangles = in_threads(lambda make: make(), making, machine.threads)
        check_all(rectangles, machine)
    elif definition.metric == "levenshtein":
        _add_edits(first, second, definition.cutoff, edges, machine)
    else:
        _add_aligned(first, second, definition, edges, machine)
    return least(edges.parts, machine.threads)


def _add_edits(
    a: LengthClasses,
    b: LengthClasses | None,
    cutoff: int,
    edges: EdgeList,
    machine: Machine,
) -> None:
    """Add the pairs within an edit distance: by shared variants, or by a bound."""
    sequences, first = a.sequences, len(a.sequences)
    if b is not None:  # one set after the other
        offsets = np.concatenate(
            [sequences.offsets, b.sequences.offsets[1:] + sequences.offsets[-1]]
        )
        codes = np.concatenate([sequences.codes, b.sequences.codes])
        sequences = LetterCodes(codes, offsets, sequences.size)
    count = len(sequences)
    pairs = first * (count - first) if b else count * (count - 1) // 2
    kernels = pairs > LEAST_OF_KERNELS and has_kernels(machine.devices)
    variants = variant_count(sequences.lengths, cutoff)
    if not (kernels and pairs <= MOST_OF_KERNELS) and variants * VARIANT_PAIRS < pairs:
        join = VariantJoin(sequences, first if b else None, cutoff)
        add_by_variants(join, edges, machine.threads, machine.budget)
        return
    costs = LetterCosts(1 - np.eye(len(LETTERS), dtype=np.int64), 1, 1, 1)

    def distances(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return edit_distances(sequences, i, j + first if b else j, 1)

    bound = bounds.best_bound(costs, cutoff, a.sequences)
    bounds.add_near(a, b, bound, distances, edges, machine, edits=kernels)


def _add_aligned(
    a: LengthClasses,
    b: LengthClasses | None,
    definition: GraphDefinition,
    edges: EdgeList,
    machine: Machine,
) -> None:
    """Add the pairs whose global scores are within the cutoff of their own scores."""
    assert definition.scoring is not None
    scoring, scores = definition.scoring, letter_scores(definition.scoring)
    best, cutoff = np.diag(scores), definition.cutoff
    costs = np.minimum(best[:, None], best[None, :]) - scores
    gaps = LetterCosts(costs, int(best.min()), scoring.open, scoring.extend)
    linear = scoring.open == scoring.extend
    sides = a.sequences, (b or a).sequences
    letters = scoring.alphabet.encode(LETTERS).astype(np.uint8)
    self_scores: list[np.ndarray] = []  # scores of sequences with themselves
    encoded: list[Sequences] = []
    for side in sides:
        sums = np.concatenate([[0], np.cumsum(best[side.codes])])
        self_scores.append(sums[side.offsets[1:]] - sums[side.offsets[:-1]])
        codes = letters[side.codes]
        encoded.append(Sequences((), codes, side.offsets, scoring.alphabet))

    def near_diagonal(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Scores of pairs of two lengths, exact where they are within the cutoff."""
        m, n = int(sides[0].lengths[i[0]]), int(sides[1].lengths[j[0]])
        x = sides[0].codes[sides[0].starts[i][:, None] + np.arange(m)]
        y = sides[1].codes[sides[1].starts[j][:, None] + np.arange(n)]
        band = diagonals(m, n, gaps, cutoff)
        return banded_scores(scores, x, y, gaps.open, band)

    def aligned(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        options = PairOptions(output="score", threads=1, memory_budget=machine.budget)
        # Views have what a job reads of sequences.
        queries: Any = views(encoded[0], i)
        targets: Any = views(encoded[1], j)
        return jobs.run("zip", queries, targets, scoring, options)["score"]

    each = PAIR_BYTES * machine.threads
    step = at_once(PAIRS_ALIGNED_AT_ONCE, each, machine.budget)

    def distances(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        score, parts = near_diagonal if linear else aligned, [np.zeros(0, np.int64)]
        for start in range(0, len(i), step):
            span = slice(start, start + step)
            parts.append(score(i[span], j[span]))
        best_scores = np.minimum(self_scores[0][i], self_scores[1][j])
        return best_scores - np.concatenate(parts)

    bound = bounds.best_bound(gaps, cutoff, a.sequences)
    bounds.add_near(a, b, bound, distances, edges, machine, linear)


def diagonals(m: int, n: int, gaps: LetterCosts, cutoff: int) -> range:
    """Diagonals j - i that an alignment within the cutoff can touch, of linear gaps.

    Whoever goes w diagonals beyond 0 or n - m comes back: w letters more of either
    sequence are beside a gap, and those of one of the two are lost.
    """
    low, high = min(0, n - m), max(0, n - m)
    allowance, away = cutoff - gaps.open * (high - low), 2 * gaps.open + gaps.unpaired
    width = min(allowance // away, max(m, n)) if away else max(m, n)
    width = max(width, 0)
    return range(low - width, high + width + 1)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Values within the cutoff of each value, itself too, by rows.

    starts : int64 (rows + 1,)
    columns : int64 (links,). Rising in each row.
    distance : int64 (links,)
    width : how many columns there may be.
    """

    starts: np.ndarray
    columns: np.ndarray
    distance: np.ndarray
    width: int

    def look_up(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Distances int64 of pairs of values; -1 of pairs that are not linked."""
        rows = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        keys, pair_keys = rows * self.width + self.columns, i * self.width + j
        place = np.minimum(np.searchsorted(keys, pair_keys), max(len(keys) - 1, 0))
        if not len(keys):
            return np.full(len(i), -1, np.int64)
        return np.where(keys[place] == pair_keys, self.distance[place], -1)


def neighbours(edges: EdgeSet, rows: int, width: int, symmetric: bool) -> Neighbours:
    """Index edges by row; ``symmetric`` edges i < j count in both directions."""
    i, j, distance = (x.astype(np.int64) for x in edges.sides)
    if symmetric:
        diagonal = np.arange(rows)
        i, j = np.concatenate([j, diagonal, i]), np.concatenate([i, diagonal, j])
        distance = np.concatenate([distance, np.zeros(rows, np.int64), distance])
    order = np.argsort(i * width + j, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(i, minlength=rows))])
    return Neighbours(starts, j[order], distance[order], width)


def expanded(
    graph: Neighbours, a: np.ndarray, b: np.ndarray, pairs_at_once: int | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield pairs of things with linked values as (i, j, distance) arrays,
    ``pairs_at_once`` of them together.

    a, b : int64 (things,). The value of each thing of either side; -1 for none.
    """
    order = np.argsort(b, kind="stable")
    first = np.searchsorted(b[order], np.arange(graph.width))
    counts = np.searchsorted(b[order], np.arange(graph.width), side="right") - first
    per_link = counts[graph.columns]
    sums = np.concatenate([[0], np.cumsum(per_link)])
    pairs = np.where(a >= 0, sums[graph.starts[a + 1]] - sums[graph.starts[a]], 0)
    for start, stop in spans(pairs, pairs_at_once or PAIRS_AT_ONCE):
        things = np.flatnonzero(a[start:stop] >= 0) + start
        links = np.diff(graph.starts)[a[things]]
        i = np.repeat(things, links)
        link = np.repeat(graph.starts[a[things]], links) + ranks(links)
        size = per_link[link]
        i, link = np.repeat(i, size), np.repeat(link, size)
        j = order[first[graph.columns[link]] + ranks(size)]
        yield i, j, graph.distance[link]


def join(
    graphs: list[Neighbours],
    a: np.ndarray,
    b: np.ndarray,
    combine: str,
    cutoff: int,
    one_set: bool,
    budget: int,
) -> EdgeSet:
    """Join the graphs of the parts to edges of things.

    a, b : int64 (things, parts). The values of either side.
    combine : {"sum", "all", "any"}. The distance is the sum of the parts' distances,
        the largest, or the least.
    one_set : both sides are the same things: edges i < j alone.
    """
    edges = EdgeList(budget, "cutoff", ADVICE)

    def links(part: int) -> int:
        """Count the pairs of things that the graph of a part links."""
        graph = graphs[part]
        values = b[b[:, part] >= 0, part]
        counts = np.bincount(values, minlength=graph.width)[graph.columns]
        sums = np.concatenate([[0], np.cumsum(counts)])
        rows = a[a[:, part] >= 0, part]
        return int((sums[graph.starts[rows + 1]] - sums[graph.starts[rows]]).sum())

    every = range(len(graphs))
    pairs_at_once = at_once(PAIRS_AT_ONCE, JOIN_BYTES, budget)
    for part in every if combine == "any" else [min(every, key=links)]:
        for i, j, distance in expanded(
            graphs[part], a[:, part], b[:, part], pairs_at_once
        ):
            real = i < j if one_set else np.ones(len(i), bool)
            i, j, distance = i[real], j[real], distance[real]
            if combine != "any":
                for second in set(every) - {part}:
                    second_distance = graphs[second].look_up(a[i, second], b[j, second])
                    linked = second_distance >= 0
                    i, j, distance = i[linked], j[linked], distance[linked]
                    second_distance = second_distance[linked]
                    sum_and_largest = (
                        distance + second_distance,
                        np.maximum(distance, second_distance),
                    )
                    distance = sum_and_largest[combine == "all"]
            within = distance <= cutoff
            edges.add(i[within], j[within], distance[within])
    return least(edges.parts)


class EdgeBlock(NamedTuple):
    """Edges of a range of consecutive receptors (``rows``), sorted by i and j."""

    rows: range
    edges: EdgeSet

    __repr__ = brief


@dataclass(frozen=True, eq=False)
class _Receptors:
    """Receptors of one side of a block, and the values that they have."""

    receptors: Receptors
    rows: np.ndarray

    @property
    def sequences(self) -> tuple[LetterCodes, np.ndarray]:
        """Sequences of single-chain receptors, and the receptors that have one."""
        values, (which, numbers) = self.receptors.values[0], self.parts(0)
        return values.sequences(values.parts[which, 0]), np.flatnonzero(numbers >= 0)

    def parts(self, chain: int) -> tuple[np.ndarray, np.ndarray]:
        """(values in use, int64; index of each receptor's value, -1 for none)."""
        numbers = self.receptors.of_chain[self.rows, chain]
        values = numbers[numbers >= 0]
        if (np.diff(values) > 0).all():
            places = np.cumsum(numbers >= 0) - 1
        else:
            values = np.unique(values)
            places = np.searchsorted(values, numbers)
        return values, np.where(numbers >= 0, places, -1)


def expected_seconds(plan: RepertoirePlan, machine: Machine) -> float:
    """Seconds that a job takes, about; of a short one those of a CPU."""
    definition, columns = plan.definition, plan.reference or plan.receptors
    one_set = plan.reference is None
    sizes = [(len(x), len(columns) - one_set * x.start) for x in plan.blocks]
    # The pairs of a last block are looked at once, as those of one set in one block.
    pairs = sum(a * b / (1 + (one_set and a == b)) for a, b in sizes)
    scored = definition.positions is None and definition.metric != "levenshtein"
    if definition.positions is not None:
        seconds = pairs / NEAR_PAIRS_A_SECOND[0]
    elif scored:
        seconds = pairs / SCORED_PAIRS_A_SECOND
    else:
        texts = columns.values[0].cdr3
        lengths = np.array([len(x) for x in texts[:: len(texts) // SAMPLE + 1]])
        each = variant_count(lengths, definition.cutoff) / max(len(lengths), 1)
        variants = each * sum(a * (not one_set or a != b) + b for a, b in sizes)
        seconds = min(variants, pairs / VARIANT_PAIRS) / VARIANTS_A_SECOND
    chains = len(plan.receptors.values)
    seconds *= chains / machine.threads
    if scored or seconds < LONG_JOB or not by_rows.may_have_gpu():
        return seconds
    if not has_kernels(machine.devices):
        return seconds
    return pairs * chains / NEAR_PAIRS_A_SECOND[1] / max(len(machine.devices), 1)


def blocks(
    plan: RepertoirePlan, machine: Machine, first: int = 0
) -> Iterator[EdgeBlock]:
    """Yield the edges of all receptors, block by block from the ``first`` on: i < j of
    one set, (i of the receptors, j of the reference) of two."""
    for rows in plan.blocks[first:]:
        rows_side = _Receptors(plan.receptors, np.arange(rows.start, rows.stop))
        one_set = plan.reference is None
        if plan.reference is None:  # pairs i < j: those before the block are not needed
            columns_side = _Receptors(
                plan.receptors, np.arange(rows.start, len(plan.receptors))
            )
        else:
            columns_side = _Receptors(plan.reference, np.arange(len(plan.reference)))
        whole = one_set and rows.stop == len(plan.receptors)
        chains = range(len(plan.receptors.rows.chains))
        if len(chains) == 1 and plan.genes is None:
            edges = _of_sequences(plan, rows_side, columns_side, whole, machine)
        else:
            graphs, sides = [], []
            for chain in chains:
                graph, *numbers = _chain_graph(
                    plan, chain, rows_side, columns_side, whole, machine
                )
                graphs.append(graph)
                sides.append(numbers)
            a, b = (np.stack(side, axis=1) for side in zip(*sides, strict=True))
            about = plan.combine, plan.definition.cutoff, one_set, machine.budget
            edges = join(graphs, a, b, *about)
        edges = _named(edges, rows_side.rows, columns_side.rows)
        yield EdgeBlock(rows, edges)


def _named(edges: EdgeSet, a: np.ndarray, b: np.ndarray) -> EdgeSet:
    """Translate edges between places of rising arrays to the numbers there."""
    return EdgeSet(_at(a, edges.i), _at(b, edges.j), edges.distance)


def _at(numbers: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Numbers of a rising array at some places, int32."""
    first = int(numbers[0]) if len(numbers) else 0
    if not len(numbers) or numbers[-1] - first == len(numbers) - 1:  # it has all
        return places + np.int32(first) if first else places
    return numbers[places].astype(np.int32)


def _of_sequences(
    plan: RepertoirePlan,
    rows_side: _Receptors,
    columns_side: _Receptors,
    whole: bool,
    machine: Machine,
) -> EdgeSet:
    """Find edges of single-sequence receptors, which need no join."""
    (a, owners), (b, theirs) = (side.sequences for side in (rows_side, columns_side))
    if whole:
        return _named(near_pairs(a, None, plan.definition, machine), owners, owners)
    edges = _named(near_pairs(a, b, plan.definition, machine), owners, theirs)
    if plan.reference is not None:
        return edges
    real = edges.i < edges.j
    sides = in_threads(lambda side: side[real], edges.sides, min(machine.threads, 3))
    return EdgeSet(*sides)


def _chain_graph(
    plan: RepertoirePlan,
    chain: int,
    rows_side: _Receptors,
    columns_side: _Receptors,
    whole: bool,
    machine: Machine,
) -> tuple[Neighbours, np.ndarray, np.ndarray]:
    """Graph of a chain's values, and the value of each receptor on both sides."""
    (present, numbers), (theirs, places) = (
        rows_side.parts(chain),
        columns_side.parts(chain),
    )
    values = [side.receptors.values[chain] for side in (rows_side, columns_side)]
    parts = [values[0].parts[present], values[1].parts[theirs]]
    sequences = [np.unique(x[:, 0], return_inverse=True) for x in parts]
    texts = [
        value.sequences(which)
        for value, (which, _) in zip(values, sequences, strict=True)
    ]
    edges = near_pairs(texts[0], None if whole else texts[1], plan.definition, machine)
    graph = neighbours(edges, len(texts[0]), len(texts[1]), symmetric=whole)
    a, b = (places for _, places in sequences)
    if plan.genes is not None:
        genes = plan.genes.between(values[0].genes, values[1].genes)
        i, j = np.nonzero(genes <= plan.definition.cutoff)
        of_genes = neighbours(EdgeSet(i, j, genes[i, j]), *genes.shape, symmetric=False)
        a = np.stack([a, parts[0][:, 1]], axis=1)
        b = np.stack([b, parts[1][:, 1]], axis=1)
        about = "sum", plan.definition.cutoff, False, machine.budget
        edges = join([graph, of_genes], a, b, *about)
        graph = neighbours(edges, len(a), len(b), symmetric=False)
        return graph, numbers, places
    # Values that are one sequence each are numbered as the values are.
    rows = np.repeat(np.arange(len(graph.starts) - 1), np.diff(graph.starts))
    back = [np.argsort(side) for side in (a, b)]
    edges = EdgeSet(back[0][rows], back[1][graph.columns], graph.distance)
    graph = neighbours(edges, len(a), len(b), symmetric=False)
    return graph, numbers, places
