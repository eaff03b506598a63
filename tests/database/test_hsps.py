"""The alignments of a hit after the best: each is the best of those that are left.

The oracle is that of pairs, with a score for each cell of the table: those of earlier
paths are far below all others.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import oracle
import pytest
from cases import (
    GAPS,
    check_rescored,
    codes,
    matrices,
    operations,
    related,
    same_tables,
)
from enumerate_alignments import candidates, pairings

import jaxalign
from jaxalign.database import hits
from jaxalign.errors import MemoryPlanError, UsageError
from jaxalign.model.alphabet import from_parts
from jaxalign.model.scoring import Scoring
from jaxalign.options import SearchOptions
from jaxalign.pairs.dp import rows

LETTERS = "ARNDCQEGHILKMFPSTWYV"
FORBIDDEN = -(10**6)


def plain(a, b, scoring, count):
    """The first ``count`` alignments of two sequences as of the oracle."""
    scores = scoring.scores[np.ix_(a, b)].astype(np.int64)
    if scoring.by_position:
        scores = scoring.scores[:, b].astype(np.int64)
    sides, costs = (
        (np.arange(len(a)), np.arange(len(b))),
        (scoring.open, scoring.extend),
    )
    found = []
    while len(found) < count:
        one = oracle.align(*sides, scores, *costs, "local")
        if one.score <= 0:
            break
        found.append(one)
        i, j = one.start
        for op, length in one.operations:
            if op == "M":
                scores[np.arange(i, i + length), np.arange(j, j + length)] = FORBIDDEN
            i, j = i + length * (op != "D"), j + length * (op != "I")
    return found


def found_of(table, k):
    """A row of a table as the oracle has it."""
    spans = [int(table[f"{side}_{end}"][k]) for end in ("start", "end")
             for side in ("query", "target")]  # fmt: skip
    score = int(table["score"][k] * table.scoring.scale)
    return score, tuple(spans[:2]), tuple(spans[2:]), operations(table.runs(k))


def best(queries, targets, scoring):
    """The table of the best local alignments of zipped pairs."""
    options = dict(mode="local", output="alignment")
    table = jaxalign.align_pairs(queries, targets, scoring, **options)
    return replace(table, info=table.info | {"align_seconds": 0.0})


def further(table, count):
    """A table with all further alignments that score above 0, up to ``count`` a hit."""
    positive = lambda score, hit: np.where(score > 0, 0.0, 2.0)  # noqa: E731
    return hits.with_further(table, SearchOptions(hsps=count), positive)


def check(queries, targets, scoring, count):
    """All alignments of zipped pairs are the oracle's. Returns their table."""
    table, hit = further(best(queries, targets, scoring), count)
    for k in range(len(queries)):
        rows = np.flatnonzero(hit == k)
        pair = (table.queries[table["query"][rows[0]]],
                table.targets[table["target"][rows[0]]])  # fmt: skip
        want = plain(*pair, scoring, count)
        got = [found_of(table, row) for row in rows]
        assert got == [tuple(x) for x in want] or (not want and len(got) == 1), k
    assert (np.diff(hit) >= 0).all()
    check_rescored(table)
    return table


def scoring_of(name, gaps):
    letters, matrix = matrices()[name]
    opening, extending = GAPS[gaps]
    matrix = None if name == "protein" else (LETTERS[:letters], matrix)
    return Scoring(matrix=matrix or "BLOSUM62", gap_open=opening, gap_extend=extending)


@pytest.mark.parametrize(
    "name, gaps, striped",
    [("asymmetric", "affine", False), ("asymmetric", "linear", True),
     ("custom", "flat", True), ("protein", "affine", True)],
)  # fmt: skip
def test_each_is_the_best_of_what_is_left(monkeypatch, name, gaps, striped):
    monkeypatch.setattr(rows, "STRIPED_CELLS", 0 if striped else 2**30)
    scoring, rng = scoring_of(name, gaps), np.random.default_rng(4)
    letters = matrices()[name][0]
    pairs = [(codes(rng, m, letters), codes(rng, n, letters))
             for m, n in ((0, 9), (7, 0), (31, 12), (12, 31), (1, 1))]  # fmt: skip
    pairs += [(a, np.concatenate([related(rng, a, letters), related(rng, a, letters)]))
              for a in (codes(rng, m, letters) for m in (22, 9, 15))]  # fmt: skip
    pairs += [(b, a) for a, b in pairs[-2:]]
    table = check(*zip(*pairs, strict=True), scoring, 5)
    assert len(table) > 2 * len(pairs)


def test_all_alignments_of_tiny_sequences():
    """By the definition: of all alignments, those without the pairs of earlier ones."""
    rng = np.random.default_rng(8)
    scoring = replace(scoring_of("custom", "flat"), gap_open=2, gap_extend=1)
    for _ in range(12):
        a, b = codes(rng, 4, 3), codes(rng, 5, 3)
        table, hit = further(best([a], [b], scoring), 4)
        costs = scoring.open, scoring.extend
        every = []
        for score, _, (i, j), _, core in candidates(
            a, b, scoring.scores, *costs, "local"
        ):
            every.append((score, {(i + x, j + y) for x, y in pairings(core)}))
        paired = set()
        for k in range(len(table)):
            score, start, _, path = found_of(table, k)
            most = max(score for score, pairs in every if not pairs & paired)
            assert score == most
            place = np.array(start)
            for op, length in path:
                step = np.array([op != "D", op != "I"])
                if op == "M":
                    cells = place + np.arange(length)[:, None]
                    assert not paired & {*map(tuple, cells.tolist())}
                    paired |= {*map(tuple, cells.tolist())}
                place = place + length * step
        left = max(score for score, pairs in every if not pairs & paired)
        assert len(table) == 4 or left <= 0


@pytest.mark.parametrize("repeats", [1, 3])
def test_windows_of_long_targets(monkeypatch, repeats):
    """A query of a few letters, whose alignments span a part of the target: copies at
    equal scores, one beside another and far away, come by their ends."""
    seen, real = set(), hits._windows
    monkeypatch.setattr(
        hits, "_windows",
        lambda *some: [seen.add(x[2]) or x for x in real(*some)],
    )  # fmt: skip
    rng = np.random.default_rng(repeats)
    scoring = Scoring(match=2, mismatch=-3, alphabet="dna")
    query, text = "ACGTTGCAC", "".join(rng.choice(list("ACGT"), 210))
    places = [0, 9, 40, 41, 100, 190][:: 1 if repeats == 3 else 2]
    for place in places:
        text = text[:place] + query[: 7 + place % 3] * repeats + text[place:]
    for pair in ((query, text), (text, query), (query * 3, text)):
        check(*([side] for side in pair), scoring, 9)
    assert seen == {True, False}


def plain_scores(tables, *, local, last_column):
    """``kernels_pallas.hard_scores`` of (B, m, 1, n) scores, by full tables."""
    scores, costs, _, _, rules = (np.asarray(x) for x in tables)
    assert local and not last_column
    found = []
    for s, (e, e_more, f, f_more), (m, n, _) in zip(
        scores[:, :, 0], costs, rules, strict=True
    ):
        assert (e, e_more) == (f, f_more)
        table = s[:m, :n].clip(FORBIDDEN).astype(np.int64)
        sides = np.arange(m), np.arange(n)
        one = oracle.align(*sides, table, int(e), int(e_more), "local")
        found.append(one.score)
    return np.array(found, np.float32)


@pytest.mark.parametrize("by_position", [False, True])
def test_scores_where_there_is_a_gpu(monkeypatch, by_position):
    """The kernels get the scores of all cells, those of earlier paths forbidden."""
    import jax

    from jaxalign.database import further_scores

    rng = np.random.default_rng(4)
    parts = [codes(rng, n, 20) for n in (3, 7, 1)]
    queries = from_parts("abc", parts, Scoring().alphabet)
    targets = from_parts(
        "xyz", [codes(rng, n, 20) for n in (9, 4, 15)], queries.alphabet
    )
    scoring = replace(Scoring(), gap_open=6, gap_extend=2)
    if by_position:
        rows = ["MKVLAGE", "MKILAGD", "MRVLGGE"]
        profile = jaxalign.Profile.from_alignment(rows)
        queries = from_parts("a", [codes(rng, 7, 20)], queries.alphabet)
        scoring = Scoring(profile, 6, 2)
    query = np.arange(6) % len(queries)
    target, first = np.array([0, 1, 2, 2, 2, 0]), np.array([0, 1, 2, 0, 5, 8])
    stop = np.array([9, 4, 11, 15, 6, 9])
    sizes = queries.lengths[query]
    start = np.cumsum(sizes) - sizes
    partners = rng.integers(-1, 15, (3, sizes.sum())).astype(np.int32)

    class Kernels:
        hard_scores = staticmethod(
            lambda tables, **form: jax.pure_callback(
                lambda *x: plain_scores(x, **form),
                jax.ShapeDtypeStruct(tables[0].shape[:1], np.float32), *tables
            )
        )  # fmt: skip

    monkeypatch.setattr(further_scores.backend, "kernels", lambda: (Kernels, ""))
    monkeypatch.setattr(further_scores, "LAUNCH_CELLS", 2**16)  # several launches
    windows = further_scores.Windows(query, target, first, stop, partners, start)
    found = further_scores.scores(queries, targets, scoring, windows)
    for k in range(6):
        a, b = queries[query[k]], targets[target[k]][first[k] : stop[k]]
        table = scoring.scores[:, b] if by_position else scoring.scores[np.ix_(a, b)]
        table = table.astype(np.int64)
        for i, j in product(range(len(a)), range(len(b))):
            if first[k] + j in partners[:, start[k] + i]:
                table[i, j] = FORBIDDEN
        sides = np.arange(len(a)), np.arange(len(b))
        assert found[k] == oracle.align(*sides, table, 6, 2, "local").score
    sizes = queries.lengths[query], stop - first
    assert not further_scores.taken(scoring, *sizes, 9).any()  # too few cells
    monkeypatch.setattr(further_scores, "LEAST_CELLS", 0)
    assert further_scores.taken(scoring, *sizes, 9).all()
    assert not further_scores.taken(scoring, *sizes, 2**24).any()


def test_blocks_of_hits(monkeypatch):
    rng = np.random.default_rng(2)
    pairs = [(codes(rng, 20, 20), codes(rng, 60, 20)) for _ in range(9)]
    first = best(*zip(*pairs, strict=True), Scoring())
    want, hit = further(first, 3)
    monkeypatch.setattr(hits, "FURTHER_RESIDUES", 100)
    table, same = further(first, 3)
    same_tables(table, want)
    np.testing.assert_array_equal(hit, same)


def text_of(rng, length):
    return "".join(rng.choice(list(LETTERS), length))


@pytest.fixture(scope="module")
def planted():
    """A domain, and proteins with 0, 1, 2 and 30 copies of it that differ."""
    rng = np.random.default_rng(6)
    domain = text_of(rng, 70)

    def copy():
        changed = rng.random(len(domain)) < 0.3
        letters = zip(domain, changed, strict=True)
        return "".join(LETTERS[rng.integers(20)] if x else c for c, x in letters)

    database, spans = {}, {}
    for count in (30, 2, 0, 1):
        text, spans[f"p{count}"] = text_of(rng, 15), []
        for _ in range(count):
            one = copy()
            spans[f"p{count}"].append((len(text), len(text) + len(one)))
            text += one + text_of(rng, int(rng.integers(0, 40)))
        database[f"p{count}"] = text
    return domain, database | {f"r{k}": text_of(rng, 200) for k in range(60)}, spans


def covers(starts, ends, spans):
    """How many spans are covered by half, each by one row at least."""
    pairs = [*zip(starts.tolist(), ends.tolist(), strict=True)]
    return sum(any(2 * (min(b, y) - max(a, x)) > b - a for x, y in pairs)
               for a, b in spans)  # fmt: skip


@pytest.mark.parametrize("statistics", ["published", "fitted"])
def test_planted_domains_are_found(planted, statistics):
    domain, database, spans = planted
    one = jaxalign.search([domain], database, top=9, statistics=statistics)
    table = jaxalign.search([domain], database, top=9, hsps=99, statistics=statistics)
    names = np.array([table.targets.names[k] for k in table["target"]])
    for name, copies in spans.items():
        of_name = table.filter(names == name)
        found = covers(of_name["target_start"], of_name["target_end"], copies)
        assert found == len(copies)
        assert (np.diff(of_name["score"]) <= 0).all()
    # The best ones are those of a search without further ones, in their order, and
    # E-values are of each score alone.
    rows = np.sort(np.unique(table["target"], return_index=True)[1])
    same_tables(table.filter(rows), one)
    scores, evalues = (
        table["score"],
        dict(zip(one["score"], one["evalue"], strict=True)),
    )
    assert len(table) > len(one) + 29
    for score, evalue in zip(scores.tolist(), table["evalue"].tolist(), strict=True):
        assert evalues.get(score, evalue) == evalue


@pytest.mark.slow
def test_a_profile_and_few_alignments(planted):
    """``hsps`` bounds the rows of a hit; scores are those of positions."""
    domain, database, _ = planted
    profile = jaxalign.search_family([("d", domain)], database)[0].profile
    table = jaxalign.search(profile, database, hsps=3, top=3, statistics="fitted")
    assert np.bincount(table["target"]).max() == 3
    for target in np.unique(table["target"]):
        rows = np.flatnonzero(table["target"] == target)
        want = plain(table.queries[0], table.targets[target], table.scoring, len(rows))
        assert [found_of(table, k) for k in rows] == [tuple(x) for x in want]


def test_both_strands():
    rng = np.random.default_rng(3)
    gene = "".join(rng.choice(list("ACGT"), 60))
    turned = gene[::-1].translate(str.maketrans("ACGT", "TGCA"))
    gap = ["".join(rng.choice(list("ACGT"), 50)) for _ in range(5)]
    genome = gap[0] + gene + gap[1] + turned + gap[2] + gene + gap[3] + turned + gap[4]
    table = jaxalign.search([gene], [genome], Scoring.preset("blastn"), hsps=2)
    got = [(table["strand"][k], table["score"][k], table["target_start"][k])
           for k in range(len(table))]  # fmt: skip
    assert got == [(1, 120, 50), (1, 120, 270), (-1, 120, 160), (-1, 120, 380)]
    assert set(table["query_start"]) == {0}


def test_every_domain_is_a_row_of_a_family(planted):
    domain, database, spans = planted
    usual, one, every = (
        jaxalign.search_family([("d", domain)], database, **given)[0]
        for given in ({}, {"hsps": 1}, {"hsps": 40})
    )
    assert one.names.count("p30") == one.names.count("p2") == 1
    assert usual.names.count("p30") == 4 and usual.names.count("p2") == 2
    table = every.table
    names = np.array([table.targets.names[k] for k in table["target"]])
    for name, copies in spans.items():
        rows = names == name
        found = covers(table["target_start"][rows], table["target_end"][rows], copies)
        assert found == len(copies)
    assert (np.diff(table["evalue"]) >= 0).all()
    texts = [row.replace("-", "").upper() for row in every.rows()[1:]]
    ends = table["target_start"].tolist(), table["target_end"].tolist()
    assert texts == [database[x][a:b] for x, a, b in zip(names, *ends, strict=True)]


def test_parts_and_files_have_every_row(planted, tmp_path):
    domain, database, _ = planted
    path = tmp_path / "db.fasta"
    path.write_text("".join(f">{name}\n{text}\n" for name, text in database.items()))
    queries = {"a": domain, "b": domain[:50]}
    want = jaxalign.search(queries, database, hsps=5, top=4)
    parts = jaxalign.stream_search(queries, str(path), hsps=5, top=4, part_rows=4)
    tables = [table for _, table in parts]
    assert len(tables) == 2
    for name in ("query", "score", "target_start", "evalue"):
        got = np.concatenate([table[name] for table in tables])
        np.testing.assert_array_equal(got, want[name])
    for suffix in ("m8", "sam", "paf", "maf", "pair", "fasta", "tsv"):
        want.write(tmp_path / f"hits.{suffix}")
    lines = (tmp_path / "hits.m8").read_text().splitlines()
    assert len(lines) == len(want)
    lines = (tmp_path / "hits.sam").read_text().splitlines()
    flags = [line.split("\t")[1] for line in lines if line[0] != "@"]
    assert flags.count("0") == 2 and len(flags) == len(want)


@pytest.mark.parametrize(
    "options, words",
    [
        (dict(hsps=0), "1 or more alignments"),
        (dict(hsps=2, mode="global"), "local alignments"),
        (dict(hsps=2, align_top=False), "local alignments"),
        (dict(hsps=2, scoring=Scoring(gap_open=30)), "no statistics"),
    ],
)
def test_refusals(options, words):
    scoring = options.pop("scoring", None)
    with pytest.raises(UsageError, match=words):
        jaxalign.search(["MKT"], ["MKTA"], scoring, **options)


def test_a_path_beyond_the_budget(monkeypatch):
    """A pair that needs more than a window may have is refused, in words."""
    rng = np.random.default_rng(0)
    a, b = codes(rng, 300, 20), codes(rng, 400, 20)
    table = best([a], [b], Scoring())
    monkeypatch.setattr("jaxalign.pairs.plan.MAX_WINDOW_BYTES", 2**14)
    with pytest.raises(MemoryPlanError, match="leave out hsps"):
        further(table, 2)
