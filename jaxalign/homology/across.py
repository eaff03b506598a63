"""All pairs across some sets: how many are linked, and which are the worst.

The worst pairs are exact below the cut too: a pair is left out only where a bound
proves that it is no worse than all of the worst pairs known by then.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from jaxalign.homology.links import PairCounts
from jaxalign.homology.options import (
    Definition,
    everything,
    identities,
    pair_options,
)
from jaxalign.homology.seeds import likely_pairs
from jaxalign.model.alphabet import Sequences
from jaxalign.pairs import tables
from jaxalign.pairs.options import PairOptions
from jaxalign.pairs.parts import query_ranges

SEEDS = 8  # likely pairs that are aligned first, a worst pair
COLUMNS = ("a", "b", "i", "j")


@dataclass(frozen=True, eq=False)
class WorstPairs:
    """Pairs across, the worst first; of equals in the order of sets and sequences.

    Attributes
    ----------
    a, b, i, j : int64 (pairs,)
        Sequence i of set a, sequence j of set b, a < b.
    identity : float64 (pairs,)
    """

    a: np.ndarray
    b: np.ndarray
    i: np.ndarray
    j: np.ndarray
    identity: np.ndarray

    def __len__(self) -> int:
        return len(self.identity)

    def and_more(self, other: "WorstPairs", count: int) -> "WorstPairs":
        """The worst ``count`` pairs of both."""
        names = (*COLUMNS, "identity")
        both = {x: np.concatenate([getattr(self, x), getattr(other, x)]) for x in names}
        order = np.lexsort((both["j"], both["i"], both["b"], both["a"]))
        order = order[np.argsort(-both["identity"][order], kind="stable")]
        # A likely pair comes again among all pairs; equal pairs are neighbours now.
        keys = np.stack([both[x][order] for x in COLUMNS], axis=1)
        again = np.zeros(len(order), bool)
        again[1:] = (keys[1:] == keys[:-1]).all(axis=1)
        order = order[~again][:count]
        return WorstPairs(*(both[x][order] for x in names))


@dataclass(frozen=True, eq=False)
class Across:
    """What all pairs across showed.

    Attributes
    ----------
    worst : WorstPairs
    leaks : int
        Linked pairs.
    leaking : tuple of bool arrays, one a set
        Which sequences have a linked one in another set.
    """

    worst: WorstPairs
    leaks: int
    leaking: tuple[np.ndarray, ...]


def compare(
    sets: list[Sequences], definition: Definition, count: int, counts: PairCounts
) -> Across:
    """Compare every sequence of every set with every one of all other sets.

    Parameters
    ----------
    sets : list of Sequences
    definition : Definition
    count : int
        Of the worst pairs.
    counts : PairCounts
        Counts what is done.
    """
    empty = np.zeros(0, np.int64)
    worst = WorstPairs(empty, empty, empty, empty, np.zeros(0))
    leaking = tuple(np.zeros(len(one), bool) for one in sets)
    pairs = [(a, b) for a in range(len(sets)) for b in range(a + 1, len(sets))]
    pairs = [(a, b) for a, b in pairs if len(sets[a]) and len(sets[b])]
    for a, b in pairs:
        worst = worst.and_more(_seeds(sets, a, b, definition, count), count)
    whole = sum(_cells(sets[a], sets[b]) for a, b in pairs)
    leaks, done, full = 0, 0, definition.options.full_histogram
    shown = everything(definition)
    for a, b in pairs:
        for band in _bands(sets[a], sets[b]):
            least = worst.identity[-1] if len(worst) >= count else 0.0
            least = 0.0 if full else min(float(least), definition.cut)
            chosen = _watched(pair_options(shown, least), definition, done, whole)
            queries = sets[a].between(band.first, band.last)
            table = tables.run("cross", queries, sets[b], definition.scoring, chosen)
            shares = identities(table, definition)
            i, j = table["query"].astype(np.int64) + band.first, table["target"]
            some = _pairs(a, b, i, j.astype(np.int64), shares)
            linked = shares >= definition.cut
            leaking[a][i[linked]] = leaking[b][j[linked]] = True
            leaks += int(linked.sum())
            counts.add(table.info, shares, definition)
            worst = worst.and_more(some, count)
            done += band.cells
    return Across(worst, leaks, leaking)


def _pairs(a: int, b: int, i, j, shares) -> WorstPairs:
    full = np.full(len(i), a, np.int64), np.full(len(i), b, np.int64)
    return WorstPairs(*full, i, j, shares)


def _cells(a: Sequences, b: Sequences) -> int:
    return len(a.codes) * len(b.codes)


def _bands(a: Sequences, b: Sequences) -> list[query_ranges.Part]:
    """Queries whose pairs are computed at once: some thirty bands of a large job."""
    least = _cells(a, b) // query_ranges.MIN_PARTS
    cells = min(query_ranges.PART_CELLS, max(least, query_ranges.MIN_CELLS))
    rows = query_ranges.PART_ROWS
    return query_ranges.cut_search(a.lengths, len(b), len(b.codes), rows, cells)


def _seeds(sets, a: int, b: int, definition: Definition, count: int) -> WorstPairs:
    """Pairs of two sets that are likely among the worst, aligned."""
    i, j = likely_pairs(sets[a], sets[b], SEEDS * count)
    sides = sets[a].take(i), sets[b].take(j)
    chosen = pair_options(definition, 0.0)
    table = tables.run("zip", *sides, definition.scoring, chosen)
    rows = table["query"]
    return _pairs(a, b, i[rows], j[rows], identities(table, definition))


def _watched(
    chosen: PairOptions, definition: Definition, done: int, whole: int
) -> PairOptions:
    """Options with somebody who is told of the cells of the whole job."""
    tell: Callable | None = definition.options.progress
    if tell is None:
        return chosen
    report = tell

    def told(cells: int, of: int) -> None:
        report(done + min(cells, of), whole)

    return replace(chosen, progress=told, busy=definition.options.busy)
