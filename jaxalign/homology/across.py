"""All pairs across some sets: how many are linked, and which are the worst.

The worst pairs are exact below the cut too: a pair is left out only where a bound
proves that it is no worse than all of the worst pairs known by then.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from jaxalign.homology.evidence import among, located, shared_groups
from jaxalign.homology.links import (
    PairCounts,
    joined_rows,
    longest_first,
    parts_array,
    parts_of,
    tables_of,
)
from jaxalign.homology.options import (
    LOCAL,
    Definition,
    everything,
    judges_of,
    measured,
    measured_pairs,
    pair_options,
    with_link,
)
from jaxalign.model.alphabet import (
    Sequences,
    begins,
    best_rows,
    first_track,
    from_parts,
    join_best,
)
from jaxalign.model.identity import Filters, of_lengths
from jaxalign.model.names import written
from jaxalign.model.numbers import exact, printed_beside
from jaxalign.model.statistics import parameters
from jaxalign.model.strands import reverse_complement
from jaxalign.model.table import Table
from jaxalign.pairs import by_rows, jobs, part_stream
from jaxalign.pairs.options import gate_of, make_task
from jaxalign.pairs.part_stream import Part
from jaxalign.pairs.plan import Arrays, SavedState, WholeCodes
from jaxalign.runtime import pipeline
from jaxalign.runtime.pipeline import in_threads

# ------------------------------------------------------------------------------
# Pairs across two sets that are likely to be alike, by shared words.
#
# No result depends on them: what they find is a bound from below on the worst pairs, so
# that fewer other pairs need be aligned to find those.

WORD, SHORT_WORD = 4, 2  # letters; the second where sequences are short
SHORT = 40  # mean length
MOST_PRODUCTS = 3e8  # of words, about: seconds
BLOCK = 256  # sequences whose words are sorted, and multiplied, at a time
FEW = 2048  # sequences of a set that are looked through before all are

Pairs = tuple[np.ndarray, np.ndarray]  # (i, j), int64 each, of two sets


def likely_pairs(
    a: Sequences, b: Sequences, longer: int = 0, shorter: int = 0, threads: int = 1
) -> tuple[Pairs, Pairs]:
    """Find pairs (i, j) of sequences of ``a`` and of ``b`` with the largest share of
    common words: about ``longer`` of them over the longer length, each sequence of the
    larger set at most once, and about ``shorter`` over the shorter one, each j at most
    once."""
    # Of the set that is sampled fewer words are sorted; its sequences are columns.
    turned = not shorter and len(a) > len(b)
    if turned:
        a, b = b, a
    letters = a.alphabet.size
    mean = (len(a.codes) + len(b.codes)) / max(len(a) + len(b), 1)
    word = SHORT_WORD if mean < SHORT else WORD
    sampled = _evenly(len(b), len(a) * len(b))  # whose counts are looked through

    def words_of(block: Sequences) -> csr_array:
        return _words(block, word, letters)

    def blocks_of(sequences: Sequences) -> Iterator[Sequences]:
        for first in range(0, len(sequences), BLOCK):
            yield sequences.between(first, first + BLOCK)

    # NumPy sorts, and SciPy multiplies, without Python's lock.
    of_b = csr_array(vstack(in_threads(words_of, blocks_of(b.take(sampled)), threads)))
    blocks = in_threads(words_of, blocks_of(a), threads)
    of_a = sum((x.sum(axis=0) for x in blocks), np.zeros(letters**word))
    fewer = _evenly(len(sampled), float(of_b.sum(axis=0) @ of_a))
    sampled, columns = sampled[fewer], csr_array(of_b[fewer].T)
    n = np.maximum(b.lengths[sampled], 1).astype(np.float32)
    by_rows = shorter and len(a) > len(b)
    sought = ((longer, np.maximum, 1 if by_rows else 0), (shorter, np.minimum, 0))

    def best_in(block: tuple[int, Any]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the best partner of each row or column, and its share."""
        first, words = block
        common, best = (words @ columns).toarray(), []
        m = np.maximum(a.lengths[first : first + BLOCK], 1).astype(np.float32)[:, None]
        for count, join, axis in sought:
            share = common / join(m, n) if count else np.zeros((1, 1), np.float32)
            best.append((share.argmax(axis=axis), share.max(axis=axis)))
        return best

    starts = range(0, len(a), BLOCK)
    of_blocks = in_threads(best_in, zip(starts, blocks, strict=True), threads)
    likely: list[Pairs] = []
    for (count, _, axis), best in zip(
        sought, zip(*of_blocks, strict=True), strict=True
    ):
        places, shares = zip(*best, strict=True)
        if axis:
            share, j = np.concatenate(shares), sampled[np.concatenate(places)]
            i = np.arange(len(j))
        else:
            block = np.argmax(shares, axis=0)
            at = block, np.arange(len(block))
            share, j = np.array(shares)[at], sampled[at[1]]
            i = np.array(places)[at] + block * BLOCK
        order = np.argsort(-share, kind="stable")[:count]
        likely.append((j[order], i[order]) if turned else (i[order], j[order]))
    return likely[0], likely[1]


def _words(sequences: Sequences, word: int, letters: int) -> csr_array:
    """Mark the words of every sequence: (n, letters^word) of 0 and 1."""
    codes = first_track(sequences.codes).astype(np.int32)
    words = np.zeros(max(len(codes) - word + 1, 0), np.int32)
    for k in range(word):
        words = words * letters + codes[k : k + len(words)]
    # Those that no end of a sequence cuts; the last places are for ends before word.
    inside = np.ones(len(codes) + word, bool)
    for k in range(1, word):
        inside[sequences.offsets[1:] - k] = False
    counts = np.maximum(sequences.lengths - word + 1, 0)
    every, kinds = len(sequences), letters**word
    # One number a word of a sequence: sorted many times faster than by SciPy.
    dtype = np.int32 if every * kinds < 2**31 else np.int64
    starts = np.arange(every, dtype=dtype) * dtype(kinds)
    numbers = np.repeat(starts, counts) + words[inside[: len(words)]]
    numbers.sort()
    numbers = numbers[begins(numbers)]
    rows = np.searchsorted(numbers, np.append(starts, dtype(every * kinds)))
    columns = (numbers % kinds).astype(np.int32)
    ones = np.ones(len(columns), np.float32)
    return csr_array((ones, columns, rows), shape=(every, kinds))


def _evenly(count: int, products: float) -> np.ndarray:
    """Select as many queries as may be compared, evenly over all."""
    return np.arange(0, count, int(np.ceil(max(products, 1) / MOST_PRODUCTS)))


# ------------------------------------------------------------------------------
# The nearest sequence of another part, of every sequence, as pairs come in.

NONE = -1


@dataclass(frozen=True, eq=False)
class NearestAcross:
    """For every sequence of a set the nearest one of other sets, the first of equals.

    Attributes
    ----------
    part, place : int64 (n,)
        Its set and its number there, -1 where none is known.
    identity : float64 (n,)
        Of the two; -1 where none is known.
    """

    part: np.ndarray
    place: np.ndarray
    identity: np.ndarray

    def add(
        self, rows: np.ndarray, part: int, places: np.ndarray, identity: np.ndarray
    ) -> None:
        """Join pairs of sequences ``rows`` with ``places`` of another set."""
        aligned = ~np.isnan(identity)
        rows, places, identity = rows[aligned], places[aligned], identity[aligned]
        tables = self.part[:, None], self.place[:, None], self.identity[:, None]
        join_best(
            tables,
            tables[0] != NONE,
            rows,
            (np.full(len(rows), part), places, identity),
            lambda part, place, identity: (-identity, part, place),
        )


MOST_REACHING = 2000  # pairs that reach the score of a link, to measure otherwise
PAIRS_AT_ONCE = 2**16  # of edges, whose sequences are copied
SEEDS = 8  # likely pairs that are aligned first, a worst pair
COLUMNS = ("a", "b", "i", "j")
WORST, NEAREST = (*COLUMNS, "identity"), ("part", "place", "identity")
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

    def some(self, which: np.ndarray) -> "WorstPairs":
        """Select pairs."""
        return WorstPairs(*(getattr(self, x)[which] for x in WORST))

    def joined(self, pairs: "WorstPairs") -> "WorstPairs":
        """Join two lists of pairs, one after the other."""
        sides = ((getattr(self, x), getattr(pairs, x)) for x in WORST)
        return WorstPairs(*map(np.concatenate, sides))

    def and_more(self, pairs: "WorstPairs", count: int) -> "WorstPairs":
        """Merge two lists of pairs, and keep the worst ``count``."""
        joined = self.joined(pairs)
        # A likely pair comes again among all pairs.
        pair = joined.a, joined.b, joined.i, joined.j
        group = np.zeros(len(joined), np.int8)
        order, _ = best_rows(group, (-joined.identity, *pair), count, distinct=True)
        return joined.some(order)

    def without(self, pairs: "WorstPairs") -> "WorstPairs":
        """Leave out pairs that are in another list."""
        rows, drop = (np.stack([getattr(x, y) for y in COLUMNS]) for x in (self, pairs))
        seen = set(map(tuple, drop.T.tolist()))
        unseen = [tuple(row) not in seen for row in rows.T.tolist()]
        return self.some(np.array(unseen, bool))


@dataclass(frozen=True, eq=False)
class Across:
    """The result of comparing all pairs across.

    Attributes
    ----------
    worst : WorstPairs
    leaks : int
        Linked pairs; pairs of one group do not count.
    by_edges : int
        Those of them that edges alone link.
    edges : WorstPairs
        As many of these as of ``worst``; identity 0 below the score of a link.
    leaking : tuple of bool arrays, one a set
        Which sequences have a linked one, or one of their group, in another set.
    nearest : tuple of NearestAcross, one a set
        Exact for sequences that an alignment links, and where all pairs are aligned.
    reaching : WorstPairs
        Where a link needs a score, those that reach it, linked or not, with the most
        identical pairs over the longer length, as their ``identity``.
    """

    worst: WorstPairs
    leaks: int
    by_edges: int
    edges: WorstPairs
    leaking: tuple[np.ndarray, ...]
    nearest: tuple[NearestAcross, ...]
    reaching: WorstPairs


def compare(
    sets: list[Sequences],
    definition: Definition,
    count: int,
    counts: PairCounts,
    saved: SavedState | None = None,
    likely: Future | None = None,
) -> Across:
    """Compare every sequence of every set with every one of all other sets.

    saved : the state of a run that was interrupted, or may be, after each part
    likely : what ``likely_across`` finds in a thread meanwhile
    """
    worst = reaching = no_pairs()
    leaking = tuple(np.zeros(len(sequences), bool) for sequences in sets)
    sizes = [len(sequences) for sequences in sets]
    nearest = tuple(
        NearestAcross(np.full(n, NONE), np.full(n, NONE), np.full(n, float(NONE)))
        for n in sizes
    )
    pairs = [(a, b) for a in range(len(sets)) for b in range(a + 1, len(sets))]
    pairs = [(a, b) for a, b in pairs if len(sets[a]) and len(sets[b])]
    threads = definition.options.threads or pipeline.default_threads()
    before = {} if saved is None else saved.all()

    def least() -> float:
        """Return the identity below which no pair is among the worst."""
        lowest = worst.identity[-1] if len(worst) >= count else 0.0
        return min(float(lowest), definition.cut)

    def seeds() -> Iterator[tuple[int, int, np.ndarray, np.ndarray]]:
        """Find pairs likely among the worst: of some sequences, then of all."""
        samples = [np.arange(0, n, max(-(-n // FEW), 1)) for n in sizes]
        for a, b in pairs if max(sizes) > FEW else ():
            sides = sets[a].take(samples[a]), sets[b].take(samples[b])
            (i, j), _ = likely_pairs(*sides, SEEDS * count, 0, threads)
            yield a, b, samples[a][i], samples[b][j]
        of_longer = {} if likely is None else likely.result()[0]
        for a, b in pairs:
            if (a, b) not in of_longer:
                sides = sets[a], sets[b]
                of_longer[a, b], _ = likely_pairs(*sides, SEEDS * count, 0, threads)
            yield a, b, *of_longer[a, b]

    # With all identities, all pairs are aligned in any case.
    for a, b, i, j in [] if before or definition.options.full_histogram else seeds():
        sides = sets[a].take(i), sets[b].take(j)
        shares, _ = zipped_pairs(definition, *sides, _cells(sets[a], sets[b]))
        of_sets = np.full(len(i), a), np.full(len(i), b)
        compared = WorstPairs(*of_sets, i, j, shares)
        worst = worst.and_more(compared.some(~np.isnan(shares)), count)
        if least() >= definition.cut:
            break
    falling, leaks, first_job = [longest_first(x) for x in sets], 0, 0
    if before:
        counts.restore(before)
        worst, reaching = (
            WorstPairs(*(before[f"{kind}_{x}"] for x in WORST))
            for kind in ("worst", "reaching")
        )
        ends = np.cumsum(sizes)[:-1]
        leaking = tuple(np.split(before["leaking"], ends))
        sides = (np.split(before[f"nearest_{x}"], ends) for x in NEAREST)
        nearest = tuple(NearestAcross(*x) for x in zip(*sides, strict=True))
        leaks, first_job = before["leaks_and_job"].tolist()
    cells_in_all, cells_done = sum(_cells(sets[a], sets[b]) for a, b in pairs), 0
    job, evidence = -1, definition.evidence
    places = [] if evidence is None else [evidence.places(x) for x in sets]
    needed: dict[tuple[int, int], np.ndarray] = {}
    if evidence is not None and evidence.needed is not None:
        needed = {(a, b): located(evidence.needed, places[a], places[b])
                  for a, b in pairs}  # fmt: skip

    def sorted_part(a: int, rows: np.ndarray) -> tuple[np.ndarray, Sequences]:
        return falling[a] if len(rows) == sizes[a] else longest_first(sets[a], rows)

    of_parts = (
        (a, b, part)
        for a, b in pairs
        for part in measured(definition, sets[a], sets[b])
    )

    def state(job: int, batch: Round | None = None) -> Arrays:
        """Return the pairs found, and which parts they are of, as arrays."""
        arrays = {f"worst_{x}": getattr(worst, x) for x in WORST}
        arrays |= {f"reaching_{x}": getattr(reaching, x) for x in WORST}
        for name in NEAREST:
            arrays[f"nearest_{name}"] = np.concatenate(
                [getattr(x, name) for x in nearest]
            )
        arrays["leaking"] = np.concatenate(leaking)
        arrays["leaks_and_job"] = np.array([leaks, job])
        if batch is not None:
            arrays["parts"] = parts_array(batch.parts)
            arrays["batch"] = np.array([batch.lowest, batch.finished, batch.stop])
        return arrays | counts.saved()

    for job, (a, b, (judges, rows, columns)) in enumerate(of_parts):
        assert columns is not None
        (of_a, queries), (of_b, targets) = sorted_part(a, rows), sorted_part(b, columns)
        of_job, first_round = (cells_done, cells_in_all), None
        cells_done += _cells(queries, targets)
        if job < first_job:
            continue
        if job == first_job and "batch" in before:
            lowest, finished, stop = before["batch"].tolist()
            parts = [Part(*x) for x in before["parts"].tolist()]
            first_round = Round(parts, lowest, int(finished), int(stop))
        for tables, of_gates, batch in _tables(
            queries, targets, judges, least, of_job, first_round
        ):
            for scored in of_gates:
                sides = of_a[scored["query"]], of_b[scored["target"]]
                of_longer = of_lengths(
                    "longer", scored["max_identities"], *scored.lengths()
                )
                of_sets = np.full(len(scored), a), np.full(len(scored), b)
                pairs_that_reach = WorstPairs(*of_sets, *sides, of_longer)
                reaching = reaching.and_more(pairs_that_reach, MOST_REACHING)
            query, target, shares = joined_rows(tables, judges, counts)
            i, j = of_a[query], of_b[target]
            of_sets = np.full(len(i), a), np.full(len(i), b)
            compared = WorstPairs(*of_sets, i, j, shares)
            linked = shares >= definition.cut
            if needed:
                linked &= among(needed[a, b], i, j, sizes[b]) >= 0
            leaking[a][compared.i[linked]] = leaking[b][compared.j[linked]] = True
            nearest[a].add(compared.i, b, compared.j, shares)
            nearest[b].add(compared.j, a, compared.i, shares)
            leaks += int(linked.sum())
            worst = worst.and_more(compared, count)
            if saved is not None and batch is not None:
                saved.put_if_due(partial(state, job, batch))
    if saved is not None:
        saved.put(state(job + 1), without=before)
    by_edges, edge_pairs = 0, no_pairs()
    for a, b in pairs if evidence is not None else ():
        assert evidence is not None
        edges = located(evidence.either, places[a], places[b])
        of_groups = shared_groups(evidence.groupings, places[a], places[b])
        for (i, j), edge in ((edges, True), (of_groups, False)):
            shares = np.nan_to_num(_in_blocks(definition, sets[a], sets[b], i, j))
            if edge:  # those that alignments link count already
                aligned = shares >= definition.cut
                if needed:
                    aligned &= among(needed[a, b], i, j, sizes[b]) >= 0
                by_edges += int((~aligned).sum())
                compared = WorstPairs(
                    np.full(len(i), a), np.full(len(i), b), i, j, shares
                )
                edge_pairs = edge_pairs.and_more(compared.some(~aligned), count)
            leaking[a][i] = leaking[b][j] = True
            nearest[a].add(i, b, j, shares)
            nearest[b].add(j, a, i, shares)
    linked_pairs = leaks + by_edges, by_edges, edge_pairs
    return Across(worst, *linked_pairs, leaking, nearest, reaching)


def _in_blocks(
    definition: Definition, a: Sequences, b: Sequences, i: np.ndarray, j: np.ndarray
) -> np.ndarray:
    """Return the identities of pairs (i, j) of two sets, as ``zipped_pairs``."""
    shares = np.zeros(len(i))
    for first in range(0, len(i), PAIRS_AT_ONCE):
        block = slice(first, first + PAIRS_AT_ONCE)
        sides = a.take(i[block]), b.take(j[block])
        shares[block] = zipped_pairs(definition, *sides, _cells(a, b))[0]
    return shares


def no_pairs() -> WorstPairs:
    """An empty list."""
    empty = np.zeros(0, np.int64)
    return WorstPairs(empty, empty, empty, empty, np.zeros(0))


def zipped_pairs(
    definition: Definition, queries: Sequences, targets: Sequences, cells: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the identities of pairs (k, k), float64 (n,), nan where there is none, and
    which of ``judges_of`` says so, int64 (n,).

    cells : of the job that they belong to
    """
    of_judges = measured_pairs(definition, queries, targets)
    measures: list[jobs.PairMeasure] = [
        (
            jobs.with_kernels(pair_options(judge, 0.0), cells),
            judge.length,
            gate_of(judge.options),
            rows,
        )
        for judge, rows in zip(judges_of(definition), of_judges, strict=True)
    ]
    sides = queries, targets, definition.scoring
    shares, _, which = jobs.by_measures(*sides, measures)
    return shares, which


class Round(NamedTuple):
    """Parts up to ``stop`` of a job, ``finished`` of them, whose pairs are wanted from
    the identity ``lowest`` on."""

    parts: list[Part]
    lowest: float
    finished: int
    stop: int


def _tables(
    queries: Sequences,
    targets: Sequences,
    judges: tuple[Definition, ...],
    least: Callable[[], float],
    of_job: tuple[int, int],
    first_round: Round | None = None,
) -> Iterator[tuple[tuple[Table, ...], list[Table], Round | None]]:
    """Yield all pairs of two sets at or above an identity, a table of each definition;
    those that are aligned since they reach the score of one, a table of each that has
    one; and the round whose last finished part they are, None for a job without
    parts. The identity rises with the worst pairs up to the cut, and until then it is
    asked again before every round; rounds grow.

    of_job : cells of the whole job that are done, and all
    first_round : that of a run that was interrupted
    """
    shown, full = list(map(everything, judges)), judges[0].options.full_histogram
    scoring, cut = judges[0].scoring, judges[0].cut
    # Of each strand the queries once, whose letters stay on a device
    minus = [reverse_complement(queries)] if judges[-1].minus else []
    of_strands = [queries, *minus]
    task = make_task("cross", queries, targets, scoring, pair_options(shown[0]))
    letters = part_stream.whole_codes(task)
    letters = (*(WholeCodes(x.codes) for x in minus), *letters)
    short = first_round is None and by_rows.is_short(task.job.total)
    parts, at, (cells_done, cells_in_all) = [], 0, of_job
    if first_round is not None:
        parts, at = first_round.parts, first_round.finished
        cells_done += sum(part.cells for part in parts[:at])
    elif not short:
        parts = parts_of(task, judges[0])
    report_progress: Callable | None = judges[0].options.progress
    while short or at < len(parts):
        if first_round is not None and at < first_round.stop:
            lowest, stop = first_round.lowest, first_round.stop
        else:
            lowest = 0.0 if full else least()
            rises = not full and lowest < cut
            stop = min(ROUNDS_RATIO * at + 1, len(parts)) if rises else len(parts)
        batch, streams, filters = parts[at:stop], [], []
        for judge in shown:
            batch_options = jobs.with_kernels(pair_options(judge, lowest), cells_in_all)
            if report_progress is not None:
                batch_options = replace(
                    batch_options,
                    progress=lambda cells, of, before=cells_done: report_progress(
                        before + min(cells, of), cells_in_all
                    ),
                    busy=judge.options.busy,
                )
            sides = of_strands[judge.minus], targets, scoring
            task = make_task("cross", *sides, replace(batch_options, strand=None))
            task = replace(task, whole_codes=letters)
            if lowest < cut:
                task = replace(task, filters=replace(task.filters, cut_name=RISING_CUT))
            scored = task.filters.min_score, task.filters.min_relative_score
            filters.append(task.filters if any(scored) else None)
            if scored != (None, None):
                # What is aligned is not lost: it may be linked by other measures.
                score_alone = replace(task.filters, min_identity=None)
                task = replace(task, filters=score_alone, later_filters=task.filters)
            if short:
                streams.append(tables_of(task, batch_options, list))
            else:
                stream = jobs.stream_parts(task, batch, batch_options)
                streams.append(table for _, table in stream)
        for finished, tables in enumerate(zip(*streams, strict=True), at + 1):
            linked = tuple(
                x if y is None else x.filter(_passing(x, y))
                for x, y in zip(tables, filters, strict=True)
            )
            pairs = zip(tables, filters, strict=True)
            scored = [x for x, gate in pairs if gate is not None]
            batch_round = None if short else Round(parts, lowest, finished, stop)
            yield linked, scored, batch_round
        if short:
            return
        at = stop
        cells_done += sum(part.cells for part in batch)


def _passing(table: Table, filters: Filters) -> np.ndarray:
    """Which rows filters keep: those of equal texts, too, whatever they score."""
    m, n = table.lengths()
    equal = (m == n) & (table["max_identities"] == m)
    scored = None
    if filters.min_relative_score is not None:
        of_queries, of_targets = map(
            table.scoring.self_scores, (table.queries, table.targets)
        )
        scored = of_queries[table["query"]], of_targets[table["target"]]
    return equal | filters.mask(table.columns, m, n, self_scores=scored)


def _cells(a: Sequences, b: Sequences) -> int:
    return len(a.codes) * len(b.codes)


# ------------------------------------------------------------------------------
# Pairs across that are alike by other measures than that of an audit.
#
# A split by one measure says nothing of another: end to end over the longer length, a
# fragment is unlike the protein that it is of. Pairs across that share the most words
# for the shorter length are compared by other measures, and so are pairs that reach the
# score of a link. These are some pairs and no proof; the audit by that measure is one.

LIKELY = 200  # pairs that are looked at, of every two parts
OTHERWISE = ("link", "min_length_ratio", "min_score", "min_relative_score", "min_cov",
             "progress", "busy")  # fmt: skip
MEASURES = (("global", "longer"), ("global", "shorter"), ("local", "shorter"))
LEAST_OF_SHORTER = 0.5  # cuts below it say nothing of global alignments of fragments


@dataclass(frozen=True)
class OtherMeasure:
    """Likely pairs across by another measure.

    Attributes
    ----------
    mode, identity : str
    score : float or None
        What a local alignment has to reach.
    pairs, linked : int
        Pairs that were compared, and those at or above the cut.
    worst : (str, str)
        The names of the pair with the largest identity.
    largest : float
    cut : float
    """

    mode: str
    identity: str
    score: float | None
    pairs: int
    linked: int
    worst: tuple[str, str]
    largest: float
    cut: float

    def __str__(self) -> str:
        a, b = map(written, self.worst)
        largest = printed_beside(self.largest, 4, self.cut, 1)
        gate = "" if self.score is None else f", score >= {exact(self.score)}"
        count = f"at least {self.linked:,}" if self.linked else "none"
        text = (
            f"{self.mode}, over the {self.identity}{gate}: {count} at or above the "
            f"cut, of {self.pairs:,} compared"
        )
        return f"{text}, worst {largest:.4f} ({a}, {b})" if self.largest else text

    def and_of(self, further: "OtherMeasure") -> "OtherMeasure":
        """Join what the same measure says of different pairs."""
        worse = max(self, further, key=lambda x: x.largest)
        pairs, linked = self.pairs + further.pairs, self.linked + further.linked
        return replace(worse, pairs=pairs, linked=linked)


def likely_across(
    sets: list[Sequences], definition: Definition
) -> tuple[dict[tuple[int, int], Pairs], WorstPairs]:
    """Find pairs across that share many words, of every two sets: over the longer
    length, those that ``compare`` takes, and over the shorter one."""
    threads = definition.options.threads or pipeline.default_threads()
    count, of_longer, likely = SEEDS * definition.options.worst, {}, no_pairs()
    for a, second in enumerate(sets):
        for b, first in enumerate(sets[:a]):
            strands = [second]
            if definition.options.strand == "both":
                strands.append(reverse_complement(second))
            for side in strands if len(first) and len(second) else ():
                longer, (i, j) = likely_pairs(first, side, count, LIKELY, threads)
                of_longer.setdefault((b, a), longer)
                of_sets = np.full(len(i), b), np.full(len(i), a)
                of_strand = WorstPairs(*of_sets, i, j, np.zeros(len(i)))
                likely = likely.joined(of_strand.without(likely))
    return of_longer, likely


def other_measures(
    sets: list[Sequences], definition: Definition, pairs: WorstPairs
) -> list[OtherMeasure]:
    """Compare some pairs across by the measures that differ from the definition's."""
    options, alphabet = definition.options, sets[0].alphabet
    if not definition.cut:  # of relative scores: no other measure has one
        return []
    sides = []
    for of_sets, places in ((pairs.b, pairs.j), (pairs.a, pairs.i)):
        of_pairs = list(zip(of_sets.tolist(), places.tolist(), strict=True))
        names = [sets[a].names[k] for a, k in of_pairs]
        sides.append(from_parts(names, [sets[a][k] for a, k in of_pairs], alphabet))
    queries, targets = sides
    cells = sum(_cells(x, y) for x, y in combinations(sets, 2))
    results = []
    for mode, identity in MEASURES if len(queries) else ():
        by_chance = (mode, identity) == ("global", "shorter")
        by_chance &= definition.cut < LEAST_OF_SHORTER
        if by_chance or (mode, identity) == (definition.mode, definition.length):
            continue
        changes = {"mode": mode, "identity": identity, "free_ends": None}
        otherwise = replace(options, **changes, **dict.fromkeys(OTHERWISE))
        if mode == LOCAL and parameters(definition.scoring, LOCAL) is not None:
            otherwise = replace(otherwise, link=LOCAL)
            otherwise = with_link(otherwise, definition.scoring, sets)
        redefined = replace(definition, options=otherwise).of_sets(sets)
        shares, _ = zipped_pairs(redefined, queries, targets, cells)
        shares = np.nan_to_num(shares)
        at, score = int(np.argmax(shares)), redefined.options.min_score
        linked = int((shares >= definition.cut).sum())
        worst = queries.names[at], targets.names[at]
        about = mode, identity, score, len(queries), linked, worst, float(shares[at])
        results.append(OtherMeasure(*about, definition.cut))
    return results
