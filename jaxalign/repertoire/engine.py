"""Edges of unique CDR3 sequences by any metric: who is compared, and how."""

from typing import Any

import numpy as np

from jaxalign.edits.engine import distances as edit_distances
from jaxalign.model.alphabet import Sequences
from jaxalign.model.letters import LetterCodes
from jaxalign.model.scoring import Scoring
from jaxalign.model.selection import views
from jaxalign.pairs import jobs
from jaxalign.pairs.options import PairOptions
from jaxalign.repertoire import by_composition, by_deletion, by_position
from jaxalign.repertoire.by_composition import LetterCosts
from jaxalign.repertoire.by_position import LengthClasses
from jaxalign.repertoire.candidates import check_all, has_kernels
from jaxalign.repertoire.dp.banded import banded_scores
from jaxalign.repertoire.edges import EdgeList, Edges, least, no_edges
from jaxalign.repertoire.metrics import LETTERS, letter_scores
from jaxalign.repertoire.options import GraphDefinition
from jaxalign.repertoire.rectangles import Machine
from jaxalign.runtime.pipeline import in_threads

# To make, sort and compare a variant takes as long as so many pairs, of which some have
# enough letters in common to be compared.
VARIANT_PAIRS = 4
# Pairs of a job of edit distances that a GPU compares, all with all.
LEAST_OF_KERNELS, MOST_OF_KERNELS = 2**26, 2**46
PAIRS_ALIGNED_AT_ONCE = 2**20


def near_pairs(
    a: LetterCodes, b: LetterCodes | None, definition: GraphDefinition, machine: Machine
) -> Edges:
    """Pairs within the cutoff: i < j of one set of unique sequences, or, with ``b``,
    (i of a, j of b) of two; by i and j.

    Raises
    ------
    MemoryPlanError
        They exceed the budget.
    """
    if not len(a) or (b is not None and not len(b)):
        return no_edges()
    edges = EdgeList(machine.budget)
    first, second = LengthClasses(a), None if b is None else LengthClasses(b)
    if definition.positions is not None:
        parts = first, second, definition.positions, definition.cutoff, edges
        making = by_position.rectangles(*parts)
        rectangles = in_threads(lambda make: make(), making, machine.threads)
        check_all(rectangles, machine.threads, machine.devices)
    elif definition.metric == "levenshtein":
        _add_edits(first, second, definition.cutoff, edges, machine)
    else:
        _add_aligned(first, second, definition, edges, machine)
    return least(edges.parts, machine.threads)


def chained(a: LetterCodes, b: LetterCodes | None) -> LetterCodes:
    """One set after the other."""
    if b is None:
        return a
    offsets = np.concatenate([a.offsets, b.offsets[1:] + a.offsets[-1]])
    return LetterCodes(np.concatenate([a.codes, b.codes]), offsets, a.size)


def _add_edits(
    a: LengthClasses,
    b: LengthClasses | None,
    cutoff: int,
    edges: EdgeList,
    machine: Machine,
) -> None:
    both = chained(a.sequences, b and b.sequences)
    first, many = len(a.sequences), len(both)
    pairs = first * (many - first) if b else many * (many - 1) // 2
    kernels = pairs > LEAST_OF_KERNELS and has_kernels(machine.devices)
    variants = by_deletion.variant_count(both.lengths, cutoff)
    if not (kernels and pairs <= MOST_OF_KERNELS) and variants * VARIANT_PAIRS < pairs:
        join = by_deletion.Join(both, first if b else None, cutoff)
        by_deletion.add_near(join, edges, machine.threads, machine.budget)
        return
    costs = LetterCosts(1 - np.eye(len(LETTERS), dtype=np.int64), 1, 1, 1)

    def distances(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return edit_distances(both, i, j + first if b else j, 1)

    bound = by_composition.best_bound(costs, cutoff, a.sequences)
    by_composition.add_near(a, b, bound, distances, edges, machine, edits=kernels)


def _add_aligned(
    a: LengthClasses,
    b: LengthClasses | None,
    definition: GraphDefinition,
    edges: EdgeList,
    machine: Machine,
) -> None:
    assert definition.scoring is not None
    scoring, scores = definition.scoring, letter_scores(definition.scoring)
    best = np.diag(scores)
    costs = np.minimum(best[:, None], best[None, :]) - scores
    gaps = LetterCosts(costs, int(best.min()), scoring.open, scoring.extend)
    sides = [a.sequences, (b or a).sequences]
    own = [self_scores(side, best) for side in sides]
    encoded = [as_scored(side, scoring) for side in sides]

    linear = scoring.open == scoring.extend
    cutoff = definition.cutoff

    def distances(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        most = np.minimum(own[0][i], own[1][j])
        if not linear:
            return most - align_scores(encoded[0], encoded[1], i, j, scoring)
        return most - _near_diagonal(sides[0], sides[1], i, j, scores, gaps, cutoff)

    bound = by_composition.best_bound(gaps, cutoff, a.sequences)
    by_composition.add_near(a, b, bound, distances, edges, machine, linear)


def _near_diagonal(
    a: LetterCodes,
    b: LetterCodes,
    i: np.ndarray,
    j: np.ndarray,
    scores: np.ndarray,
    gaps: LetterCosts,
    cutoff: int,
) -> np.ndarray:
    """Scores of pairs of two lengths, exact where the distance is within the cutoff."""
    m, n = int(a.lengths[i[0]]), int(b.lengths[j[0]])
    x = a.codes[a.offsets[i][:, None] + np.arange(m)]
    y = b.codes[b.offsets[j][:, None] + np.arange(n)]
    band = diagonals(m, n, gaps, cutoff)
    return banded_scores(scores, x, y, gaps.open, band)


def diagonals(m: int, n: int, gaps: LetterCosts, cutoff: int) -> range:
    """Diagonals j - i that an alignment within the cutoff can touch, of linear gaps.

    Whoever goes w diagonals beyond 0 or n - m comes back: w letters more of either
    sequence are beside a gap, and those of one of the two are lost.
    """
    low, high = min(0, n - m), max(0, n - m)
    left, away = cutoff - gaps.open * (high - low), 2 * gaps.open + gaps.alone
    more = min(left // away, max(m, n)) if away else max(m, n)
    more = max(more, 0)
    return range(low - more, high + more + 1)


def self_scores(sequences: LetterCodes, best: np.ndarray) -> np.ndarray:
    """Scores of sequences with themselves, int64 (n,)."""
    sums = np.concatenate([[0], np.cumsum(best[sequences.codes])])
    return sums[sequences.offsets[1:]] - sums[sequences.offsets[:-1]]


def as_scored(sequences: LetterCodes, scoring: Scoring) -> Sequences:
    """The same in the alphabet of a scoring, without names."""
    places = scoring.alphabet.encode(LETTERS)
    codes = places[sequences.codes].astype(np.uint8)
    return Sequences((), codes, sequences.offsets, scoring.alphabet)


def align_scores(
    a: Sequences, b: Sequences, i: np.ndarray, j: np.ndarray, scoring: Scoring
) -> np.ndarray:
    """Global scores of some pairs, int64 (P,)."""
    options = PairOptions(output="score", threads=1)
    scores = [np.zeros(0, np.int64)]
    for start in range(0, len(i), PAIRS_ALIGNED_AT_ONCE):
        some = slice(start, start + PAIRS_ALIGNED_AT_ONCE)
        # Views have what a job reads of sequences.
        queries: Any = views(a, i[some])
        targets: Any = views(b, j[some])
        scores.append(jobs.run("zip", queries, targets, scoring, options)["score"])
    return np.concatenate(scores)
