"""All pairs across some sets: how many are linked, and which are the worst.

The worst pairs are exact below the cut too: a pair is left out only where a bound
proves that it is no worse than all of the worst pairs known by then.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from jaxalign.homology.links import PairCounts, longest_first, parts_of
from jaxalign.homology.nearest_across import NearestAcross, none_yet
from jaxalign.homology.options import (
    Definition,
    everything,
    identities,
    pair_options,
)
from jaxalign.homology.seeds import likely_pairs
from jaxalign.model.alphabet import Sequences
from jaxalign.model.table import Table
from jaxalign.pairs import jobs
from jaxalign.pairs.jobs import stream_parts
from jaxalign.pairs.options import PairOptions, make_task
from jaxalign.runtime import pipeline

SEEDS = 8  # likely pairs that are aligned first, a worst pair
COLUMNS = ("a", "b", "i", "j")
RISING_CUT = "worst identity known by then"  # below the cut of the definition
# Parts of all rounds up to one, of those before it: a round knows what was found
# before, and waits for its last part.
ROUNDS_RATIO = 5


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
    """The result of comparing all pairs across.

    Attributes
    ----------
    worst : WorstPairs
    leaks : int
        Linked pairs.
    leaking : tuple of bool arrays, one a set
        Which sequences have a linked one in another set.
    nearest : tuple of NearestAcross, one a set
        Exact for sequences with a linked one, and where all pairs are aligned.
    """

    worst: WorstPairs
    leaks: int
    leaking: tuple[np.ndarray, ...]
    nearest: tuple[NearestAcross, ...]


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
    leaking = tuple(np.zeros(len(sequences), bool) for sequences in sets)
    nearest = tuple(none_yet(len(sequences)) for sequences in sets)
    pairs = [(a, b) for a in range(len(sets)) for b in range(a + 1, len(sets))]
    pairs = [(a, b) for a, b in pairs if len(sets[a]) and len(sets[b])]
    for a, b in pairs:
        worst = worst.and_more(_seeds(sets, a, b, definition, count), count)
    falling, leaks = [longest_first(sequences) for sequences in sets], 0
    cells_in_all, cells_done = sum(_cells(sets[a], sets[b]) for a, b in pairs), 0

    def least() -> float:
        """The identity that no wanted pair is below."""
        known = worst.identity[-1] if len(worst) >= count else 0.0
        return min(float(known), definition.cut)

    for a, b in pairs:
        (of_a, queries), (of_b, targets) = falling[a], falling[b]
        watch = partial(_watched, definition, cells_in_all, cells_done)
        for table in _tables(queries, targets, definition, least, watch):
            shares = identities(table, definition)
            new = _pairs(a, b, of_a[table["query"]], of_b[table["target"]], shares)
            linked = shares >= definition.cut
            leaking[a][new.i[linked]] = leaking[b][new.j[linked]] = True
            nearest[a].add(new.i, b, new.j, shares)
            nearest[b].add(new.j, a, new.i, shares)
            leaks += int(linked.sum())
            counts.add(table.info, shares, definition)
            worst = worst.and_more(new, count)
        cells_done += _cells(queries, targets)
    return Across(worst, leaks, leaking, nearest)


def _tables(
    queries: Sequences,
    targets: Sequences,
    definition: Definition,
    least: Callable[[], float],
    watch: Callable[[PairOptions, int], PairOptions],
) -> Iterator[Table]:
    """All pairs of two sets at or above an identity, which is asked for again and again
    since it rises with what is found; more and more parts have the same."""
    shown, full = everything(definition), definition.options.full_histogram
    options = pair_options(shown)
    task = make_task("cross", queries, targets, definition.scoring, options)
    parts, at, cells_done = parts_of(task, definition), 0, 0
    while at < len(parts):
        batch = parts[at : ROUNDS_RATIO * at + 1]
        chosen = watch(pair_options(shown, 0.0 if full else least()), cells_done)
        task = make_task("cross", queries, targets, definition.scoring, chosen)
        if (chosen.min_identity or 0.0) < definition.cut:
            task = replace(task, filters=replace(task.filters, cut_name=RISING_CUT))
        yield from (table for _, table in stream_parts(task, batch, chosen))
        at += len(batch)
        cells_done += sum(part.cells for part in batch)


def _pairs(
    a: int, b: int, i: np.ndarray, j: np.ndarray, shares: np.ndarray
) -> WorstPairs:
    full = np.full(len(i), a, np.int64), np.full(len(i), b, np.int64)
    return WorstPairs(*full, i, j, shares)


def _cells(a: Sequences, b: Sequences) -> int:
    return len(a.codes) * len(b.codes)


def _seeds(
    sets: list[Sequences], a: int, b: int, definition: Definition, count: int
) -> WorstPairs:
    """Pairs of two sets that are likely among the worst, aligned."""
    threads = definition.options.threads or pipeline.default_threads()
    i, j = likely_pairs(sets[a], sets[b], SEEDS * count, threads)
    sides = sets[a].take(i), sets[b].take(j)
    cells = _cells(sets[a], sets[b])
    chosen = jobs.beside(pair_options(definition, 0.0), cells)
    table = jobs.run("zip", *sides, definition.scoring, chosen)
    rows = table["query"]
    return _pairs(a, b, i[rows], j[rows], identities(table, definition))


def _watched(
    definition: Definition,
    cells_in_all: int,
    before: int,
    chosen: PairOptions,
    cells_done: int,
) -> PairOptions:
    """Options with somebody who is told of the cells of the whole job."""
    tell: Callable | None = definition.options.progress
    if tell is None:
        return chosen
    report, first = tell, before + cells_done

    def progress(cells: int, of: int) -> None:
        report(first + min(cells, of), cells_in_all)

    return replace(chosen, progress=progress, busy=definition.options.busy)
