"""Paths from the live part of a local table are those of the whole table.

The oracle is ``implementation="rows"``: whole tables in NumPy, pair by pair.
"""

from itertools import product

import numpy as np
import pytest
from cases import same_tables, text_of

import jaxalign
from jaxalign import Scoring
from jaxalign.pairs.cpu import execute, partition

pytestmark = pytest.mark.usefixtures("compiled")

LETTERS = "ACDEFGHIKLMNPQRSTVWY"


@pytest.fixture
def pairs_found(monkeypatch):
    """Have every local path come from its live part; count pairs, and those beyond."""
    counts, find = np.zeros(2, int), execute._live_starts

    def watched(task, ends):
        starts, beyond = find(task, ends)
        counts[:] += len(beyond), beyond.sum()
        return starts, beyond

    monkeypatch.setattr("jaxalign.pairs.plan.LARGE_JOB_CELLS", 0)
    monkeypatch.setattr(execute, "LIVE_CELLS", 0)
    monkeypatch.setattr(partition, "LIVE_CELLS", 0)
    monkeypatch.setattr(partition, "TEAM_JOB_CELLS", 0)
    monkeypatch.setattr(execute, "MAX_OVERFLOW_RATIO", 1)
    monkeypatch.setattr(execute, "_live_starts", watched)
    return counts


def mutated(rng, text, share, letters=LETTERS):
    """A relative: some letters replaced, left out or added."""
    found = []
    for letter in text:
        kind = rng.random()
        if kind > share:
            found.append(letter)
        elif kind > share / 4:
            found.append(rng.choice([*letters]))
        elif kind > share / 8:
            found += [letter, *rng.choice([*letters], rng.integers(1, 5))]
    return "".join(found)


def check(texts, scoring=None, **options):
    options = {"mode": "local", "output": "alignment", **options}
    found = jaxalign.align_all(texts, scoring, **options, implementation="sweep")
    want = jaxalign.align_all(texts, scoring, **options, implementation="rows")
    same_tables(found, want)
    return found


def proteins(rng):
    """Unlike ones, relatives, repeats, a lone letter and empty ones."""
    first = text_of(rng, 150, LETTERS)
    texts = [text_of(rng, n, LETTERS) for n in (0, 1, 7, 33, 150, 290, 0)]
    texts += [first, mutated(rng, first, 0.6), "PQ" * 20, "QPQ" * 15, "ACDW" * 9]
    shared = text_of(rng, 12, LETTERS)  # two ends with one score
    return [*texts, text_of(rng, 60, LETTERS) + shared + "G" * 70 + shared]


@pytest.mark.slow
def test_local_paths(pairs_found):
    texts = proteins(np.random.default_rng(5))
    table = check(texts)
    assert pairs_found[0] > 0.9 * len(table) and not pairs_found[1]
    assert 0 < table["query_start"].max() and 0 < table["target_start"].max()
    check(texts[::-1], output="stats")  # the other order of the sides


@pytest.mark.slow
@pytest.mark.parametrize("costs", [{}, {2: 0}, {8: 0}], ids=str)
def test_teams(costs, pairs_found, monkeypatch):
    """Queries one at a time or in teams, the last of them with fewer; of some pairs 8
    bits do not hold the score. Sides are swapped where the longer sequence is last."""
    monkeypatch.setattr("jaxalign.pairs.cpu.partition.TEAM_COST", costs)
    teams, live_ends = set(), execute._live_ends

    def watched(task, window, *options):
        teams.add(window.team)
        return live_ends(task, window, *options)

    monkeypatch.setattr(execute, "_live_ends", watched)
    rng = np.random.default_rng(12)
    texts = proteins(rng)
    texts.append(mutated(rng, texts[5], 0.1))
    for order in (texts, texts[::-1]):
        table = check(order)
    assert teams == set(costs or [1])
    assert table["score"].max() > 256 and pairs_found[0] < 2 * len(table)


@pytest.mark.slow
def test_jobs_of_few_long_sequences(pairs_found, monkeypatch):
    """Tables of 2**16 cells or more on average come from their live parts, others not,
    where the job is not large."""
    monkeypatch.undo()
    counts, find = np.zeros(1, int), execute._live_starts

    def watched(task, ends):
        counts[0] += len(ends.query)
        return find(task, ends)

    monkeypatch.setattr(partition, "TEAM_JOB_CELLS", 10**6)
    monkeypatch.setattr(execute, "_live_starts", watched)
    texts = proteins(np.random.default_rng(11))
    check(texts)
    assert not counts[0]
    long = [text_of(np.random.default_rng(k), 280 + 9 * k, LETTERS) for k in range(9)]
    long.append(mutated(np.random.default_rng(9), long[3], 0.2))
    table = check(long)
    assert table["score"].max() > 256 and counts[0] == len(table) - 1


@pytest.mark.slow
@pytest.mark.parametrize("costs", [(11, 1), (0, 0), (4, 4), (6, 0)], ids=str)
def test_gap_costs_and_asymmetric_scores(costs, pairs_found):
    rng = np.random.default_rng(6)
    scores = rng.integers(-6, 5, (4, 4)) + 3 * np.eye(4, dtype=int)
    texts = [text_of(rng, n, "ACGT") for n in rng.integers(0, 60, 24)]
    for matrix in (scores, (scores + scores.T) // 2):
        check(texts, Scoring(("ACGT", matrix), *costs))
    assert pairs_found[0]


@pytest.mark.slow
def test_live_parts_that_are_too_long(pairs_found):
    """Paths of 700 and 1,150 columns, two of five a mismatch, with scores that 8 bits
    hold: beyond the room of boxes, and beyond that of the pass back."""
    rng, texts = np.random.default_rng(7), []
    for length in (700, 1150):
        first = text_of(rng, length, "ACGT")
        turned = first.translate(str.maketrans("ACGT", "CGTA"))
        chosen = [(turned, first, first, turned, first)[k % 5] for k in range(length)]
        texts += [first, "".join(text[k] for k, text in enumerate(chosen))]
    scores = np.where(np.eye(4, dtype=bool), 1, -1)
    table = check(texts, Scoring(("ACGT", scores), 4, 1))
    shorter, longer = np.sort(table["columns"])[-2:]
    assert execute.BOX_SIZES[-1] < shorter < execute.live_part.LETTERS < longer
    assert pairs_found.tolist() == [len(table), 1]


@pytest.mark.slow
def test_all_short_sequences(pairs_found):
    """All pairs of two letters, up to a length of 4, both ways round."""
    texts = ["".join(x) for n in range(5) for x in product("AC", repeat=n)]
    matrices = (
        [[1, -1], [-1, 1]],
        [[2, 0], [-1, 1]],
        [[1, 0], [0, 0]],
        [[2, -3], [1, 2]],
    )
    for matrix, costs in product(matrices, [(0, 0), (1, 1), (2, 1), (3, 0)]):
        scoring = Scoring(("AC", matrix), *costs)
        for order in (texts, texts[::-1]):
            check(order, scoring)
    assert pairs_found[0] == 16 * 31 * 30 and not pairs_found[1]


def check_zipped(pairs, scoring=None, **options):
    """Zipped pairs of neighbours with one query; others are filled whole."""
    sides = [list(side) for side in zip(*pairs, strict=True)]
    options = {"mode": "local", "output": "alignment", **options}
    found, want = (
        jaxalign.align_pairs(*sides, scoring, **options, implementation=name)
        for name in ("sweep", "rows")
    )
    same_tables(found, want)
    return found


def of_queries(rng, queries, texts):
    """Each query with some texts in a row; lone pairs stand between them."""
    pairs = []
    for query, count in zip(queries, (5, 1, 9, 4, 3, 6), strict=False):
        pairs += [(query, texts[k]) for k in rng.integers(0, len(texts), count)]
        pairs.append((texts[3], query))
    return pairs


@pytest.mark.slow
def test_hits_by_query(pairs_found, monkeypatch):
    """Windows of one query find the paths of hits, with scores that 8 bits do not
    hold."""
    monkeypatch.setattr(execute, "SAME_QUERY", 4)
    monkeypatch.setattr(execute, "HIT_CELLS", 0)
    rng = np.random.default_rng(8)
    texts = proteins(rng)
    queries = [texts[5], texts[8], texts[0], texts[6], texts[-1], texts[4]]
    pairs = of_queries(rng, queries, texts)
    table = check_zipped(pairs)
    assert table["score"].max() > 256
    assert pairs_found[0] == 5 + 9 + 4 + 6 and not pairs_found[1]
    check_zipped([pair[::-1] for pair in pairs], output="stats")  # no query in a row
    assert pairs_found[0] == 5 + 9 + 4 + 6
    check_zipped(pairs, min_score=60)
    assert pairs_found[0] == 5 + 9 + 4 + 6  # scores come first then


@pytest.mark.slow
@pytest.mark.parametrize("costs", [(11, 1), (0, 0)], ids=str)
def test_costs_of_hits(costs, pairs_found, monkeypatch):
    monkeypatch.setattr(execute, "SAME_QUERY", 4)
    monkeypatch.setattr(execute, "HIT_CELLS", 0)
    rng = np.random.default_rng(9)
    scores = rng.integers(-6, 5, (4, 4)) + 3 * np.eye(4, dtype=int)
    texts = [text_of(rng, n, "ACGT") for n in rng.integers(0, 60, 24)]
    pairs = [(texts[k], text) for k in range(0, 24, 4) for text in texts[k // 2 :]]
    check_zipped(pairs, Scoring(("ACGT", scores), *costs))
    assert pairs_found[0] == len(pairs)


@pytest.mark.slow
def test_paths_of_a_search(pairs_found, monkeypatch):
    monkeypatch.setattr(execute, "SAME_QUERY", 4)
    monkeypatch.setattr(execute, "HIT_CELLS", 0)
    texts = proteins(np.random.default_rng(10))
    queries = [texts[4], texts[5], texts[1]]
    found, want = (
        jaxalign.search(queries, texts, top=8, implementation=name)
        for name in ("sweep", "rows")
    )
    same_tables(found, want)
    assert pairs_found[0] == len(found) > 16
