"""Iterated search: alignments, weights, filters and files, each by plain loops."""

import gzip
import shutil
import string
import subprocess
from collections import Counter
from dataclasses import astuple
from importlib.resources import files
from math import exp, log

import numpy as np
import pytest

import jaxalign
from jaxalign.errors import InputError, UsageError
from jaxalign.family import engine, result
from jaxalign.family.result import columns
from jaxalign.io import fasta, picture
from jaxalign.model.profile import FREQUENCIES

GLOBINS = files("jaxalign.data") / "globins.fasta"
ALPHA = "VLSPADKTNVKAAWGKVGAHAGEYGAEALERMFLSFPTTKTYFPHFDLSHGSAQVKGHGKKVADALTNAVAHVDDM"
LETTERS = "ARNDCQEGHILKMFPSTWYV"


@pytest.fixture(scope="module")
def family():
    (result,) = jaxalign.search_family([("alpha", ALPHA)], str(GLOBINS))
    return result


@pytest.fixture(scope="module")
def database():
    return fasta.read(str(GLOBINS), jaxalign.Scoring().alphabet)


# What three readers of a3m do with a file, in our words.


def alphafold3(text, query):
    """AlphaFold 3, ``data/msa.py`` and its parser: lines of a record are joined;
    without lower case all rows have the query's length, and the first is the query;
    letters are those of proteins and -."""
    rows = []
    for line in text.splitlines():
        if line.startswith(">"):
            rows.append("")
        elif line.strip():
            rows[-1] += line.strip()
    removed = str.maketrans("", "", string.ascii_lowercase)
    aligned = [row.translate(removed) for row in rows]
    assert aligned[0] == query
    assert {len(row) for row in aligned} == {len(query)}
    assert set("".join(rows)) <= set(string.ascii_letters + "-")
    return aligned


def boltz(text):
    """Boltz, ``data/parse/a3m.py``: one line a row; lower case counts insertions;
    anything else is a known letter."""
    known = set(LETTERS + "XJBZOU-")
    rows = []
    for line in text.splitlines():
        line = line.strip()
        if line and line[0] not in "#>":
            rows.append([letter for letter in line if not letter.islower()])
    assert all(set(row) <= known for row in rows)
    assert {len(row) for row in rows} == {len(rows[0])}
    return ["".join(row) for row in rows]


def colabfold(text):
    """ColabFold, ``input.py``: lines that begin with # are left out; the first record
    is the query, and has no gap."""
    assert not text.startswith("#")
    records = text.split(">")[1:]
    rows = ["".join(record.split("\n")[1:]) for record in records]
    assert rows[0].isupper() and "-" not in rows[0]
    return rows


def test_readers_of_a3m_take_it(family, tmp_path):
    family.write(tmp_path / "a.a3m")
    text = (tmp_path / "a.a3m").read_text()
    rows = alphafold3(text, ALPHA)
    assert rows == boltz(text) and len(rows) == len(family)
    removed = str.maketrans("", "", string.ascii_lowercase)
    assert [row.translate(removed) for row in colabfold(text)] == rows


def test_letters_that_no_reader_knows_are_x(tmp_path):
    near = "*" + ALPHA[1:30] + "*U" + ALPHA[32:]
    (tmp_path / "d.fa").write_text(f">near\n{near}\n>far\n{ALPHA[::-1]}\n")
    query = [("q", ALPHA[:-1] + "*")]
    (result,) = jaxalign.search_family(query, tmp_path / "d.fa", unknown="X")
    assert result.query.endswith("X") and len(result) == 2
    result.write(tmp_path / "a.a3m")
    text = (tmp_path / "a.a3m").read_text()
    assert alphafold3(text, ALPHA[:-1] + "X") == boltz(text)
    assert result.table.info["substituted"] == 1


def test_rows_are_the_residues_of_their_spans(family, database):
    assert family.rows()[0] == ALPHA
    for k, row in enumerate(family.rows()[1:]):
        target = database.names.index(family.names[k + 1])
        start, end = family.table["target_start"][k], family.table["target_end"][k]
        assert row.replace("-", "").upper() == database.text(target)[start:end]
        assert sum(not letter.islower() for letter in row) == len(ALPHA)


def test_rows_are_those_of_the_paths(family):
    """Column by column, from the alignment as the table shows it."""
    for k, row in enumerate(family.rows()[1:]):
        shown = family.table.alignment(k)
        top, bottom = shown.rows()
        start, end = family.table["query_start"][k], family.table["query_end"][k]
        expected = "-" * start
        for a, b in zip(top, bottom, strict=True):
            expected += b.lower() if a == "-" else b
        assert row == expected + "-" * (len(ALPHA) - end)


def test_codes_are_those_of_the_rows(family):
    for row, codes in zip(family.rows(), family.codes, strict=True):
        upper = [letter for letter in row if not letter.islower()]
        expected = [-1 if x == "-" else LETTERS.index(x) for x in upper]
        assert codes.tolist() == expected


def test_scores_are_those_of_the_profile(family):
    """The last pass searched by a profile: every path is scored again, by hand."""
    scoring = family.table.scoring
    assert scoring.by_position
    for k, row in enumerate(family.rows()[1:]):
        total, position, kind = 0, 0, ""
        for letter in row[: len(row.rstrip("-"))]:
            before, kind = kind, "M" if letter.isupper() else letter and "I"
            kind = "D" if letter == "-" else kind
            if kind == "M":
                total += scoring.scores[position, LETTERS.index(letter)]
            elif position > family.table["query_start"][k] or kind == "I":
                total -= scoring.gap_extend if kind == before else scoring.gap_open
            position += kind != "I"
        assert total == family.table["score"][k]


def test_evalues_fall_with_the_score_that_is_left(family):
    left = family.table["score"] - family.table["bias"]
    assert (np.diff(family.table["evalue"]) >= 0).all()
    assert (np.diff(left) <= 0).all() and (family.table["bias"] > 0).all()
    last = family.passes[-1]
    space = len(ALPHA) * family.table.info["residues"]
    expected = last.k * space * np.exp(-last.lambda_ * left)
    np.testing.assert_allclose(family.table["evalue"], expected, rtol=1e-9)


def naive_lost(family, k):
    """HMMER's second null model for one hit, by loops."""
    scoring, unit = family.table.scoring, family.profile.unit
    row = family.rows()[k + 1]
    emitted, count, seen, position = Counter(), 0, Counter(), 0
    for letter in row:
        if letter != "-":
            count += 1
            seen[letter.upper()] += 1
            for a, name in enumerate(LETTERS):
                odds = exp(unit * scoring.scores[position, a])
                emitted[name] += odds if letter.isupper() else 1
        position += not letter.islower()
    bias = sum(n * log(emitted[x] / count) for x, n in seen.items())
    return log(1 + exp(bias) / 256) / unit


def test_composition(family):
    expected = [naive_lost(family, k) for k in range(len(family) - 1)]
    np.testing.assert_allclose(family.table["bias"], expected, rtol=1e-9)
    (plain,) = jaxalign.search_family(
        [("alpha", ALPHA)], str(GLOBINS), correct_composition=False, iterations=1
    )
    assert not plain.table["bias"].any()


def test_the_profile_by_loops(database):
    """Weights of Henikoff and Henikoff, pseudocounts of PSI-BLAST, one number after the
    other."""
    options = {"iterations": 1, "max_evalue": 1e-2}
    (once,) = jaxalign.search_family([("alpha", ALPHA)], database, **options)
    rows = once.codes[: once.passes[0].included + 1].tolist()
    weights, kinds = [0.0] * len(rows), []
    for column in zip(*rows, strict=True):
        counts = Counter(x for x in column if x >= 0)
        kinds.append(len(counts))
        for k, x in enumerate(column):
            weights[k] += 1 / (len(counts) * counts[x]) if x >= 0 else 0
    alpha, beta = sum(kinds) / len(kinds) - 1, 10
    matrix = jaxalign.Scoring().scores
    joint = [
        [
            FREQUENCIES[a] * FREQUENCIES[b] * exp(0.3176 * matrix[a, b])
            for b in range(20)
        ]
        for a in range(20)
    ]
    for i, column in enumerate(zip(*rows, strict=True)):
        seen = [0.0] * 20
        for k, x in enumerate(column):
            if x >= 0:
                seen[x] += weights[k]
        seen = [x / sum(seen) for x in seen]
        for a in range(20):
            expected = sum(seen[b] * joint[b][a] / sum(joint[b]) for b in range(20))
            mixed = (alpha * seen[a] + beta * expected) / (alpha + beta)
            score = log(mixed / FREQUENCIES[a]) / once.profile.unit
            assert abs(once.profile.scores[i, a] - score) <= 0.5 + 1e-9


@pytest.mark.parametrize("matrix", ["BLOSUM62", "BLOSUM50", "PAM70"])
def test_unit_of_a_matrix(matrix):
    scores = jaxalign.Scoring(matrix).scores
    unit = engine.unit_of(scores)
    total = sum(
        FREQUENCIES[a] * FREQUENCIES[b] * exp(unit * scores[a, b])
        for a in range(20)
        for b in range(20)
    )
    assert unit > 0 and total == pytest.approx(1, abs=1e-9)


def random_rows(seed, count=14, length=23):
    rng = np.random.default_rng(seed)
    query = rng.integers(0, 20, length)
    rows = np.where(rng.random((count, length)) < 0.6, query, rng.integers(0, 24))
    other = rng.random((count, length)) < 0.25
    rows[other] = rng.integers(0, 22, other.sum())
    for row in rows:
        row[: rng.integers(0, 9)] = -1
        row[length - rng.integers(0, 9) :] = -1
    rows[3:6] = rows[2]
    rows[rng.random((count, length)) < 0.1] = -1
    return query.astype(np.uint8), rows.astype(np.int8)


def naive_kept(query, rows, coverage, query_identity, most):
    """hhfilter's rules, one residue after the other."""
    candidates = []
    for k, row in enumerate(rows):
        residues = [i for i, x in enumerate(row) if 0 <= x < 20]
        equal = sum(row[i] == query[i] for i in residues)
        enough = len(residues) >= coverage * len(query) and residues
        if enough and equal >= query_identity * len(residues) - 1e-4:
            candidates.append((-len(residues), k))
    staying = [query]
    result = []
    for _, k in sorted(candidates):
        for other in staying:
            pairs = [
                (x, y)
                for x, y in zip(rows[k], other, strict=True)
                if 0 <= x < 20 and 0 <= y < 20
            ]
            differing = sum(x != y for x, y in pairs)
            if pairs and differing <= (0.9999 - most) * len(pairs):
                break
        else:
            result.append(k)
            staying.append(rows[k])
    return sorted(result)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "bounds", [(0.6, 0, 1), (0, 0.55, 1), (0, 0, 0.8), (0.5, 0.4, 0.62), (0, 0, 0.3)]
)
def test_filters(seed, bounds):
    query, rows = random_rows(seed)
    expected = (
        naive_kept(query, rows, *bounds)
        if bounds[2] < 1
        else naive_kept(query, rows, *bounds[:2], 9)
    )
    kept = engine.filtered(query, rows, *bounds).tolist()
    assert kept == expected and (0 < len(kept) < len(rows) or bounds[2] == 0.3)


@pytest.mark.parametrize("seed, length", [(0, 23), (1, 64), (2, 150)])
def test_neff(seed, length):
    query, rows = random_rows(seed, length=length)
    rows = np.vstack([query.astype(np.int8)[None], rows])
    weights = np.zeros(len(rows))
    for column in rows.T:
        counts = Counter(x for x in column.tolist() if 0 <= x < 20)
        for k, x in enumerate(column.tolist()):
            if 0 <= x < 20:
                weights[k] += 1 / (len(counts) * counts[x])
    entropies = []
    for column in rows.T:
        sums = Counter()
        for k, x in enumerate(column.tolist()):
            if 0 <= x < 20:
                sums[x] += weights[k]
        total = sum(sums.values())
        entropies.append(-sum(v / total * log(v / total) for v in sums.values()))
    assert result.by_entropy(rows) == pytest.approx(exp(np.mean(entropies)))
    depth = np.zeros(rows.shape[1])
    for row in rows:
        alike = 0
        for other in rows:
            here, there = ((x >= 0) & (x < 20) for x in (row, other))
            equal = (here & there & (row == other)).sum()
            alike += equal >= 0.8 * (here | there).sum() - 1e-3
        depth += ((row >= 0) & (row < 20)) / alike
    assert result.by_clusters(rows) == pytest.approx(np.median(depth))
    assert result.by_entropy(rows[:1]) == 1 == result.by_clusters(rows[:1])


def test_the_profile_is_searched_next(family):
    """A pass by hand gives the hits of the third one."""
    options = {"iterations": 2, "correct_composition": False}
    about = [("alpha", ALPHA)], str(GLOBINS)
    (second,) = jaxalign.search_family(*about, **options)
    options["iterations"] = 3
    (third,) = jaxalign.search_family(*about, **options)
    hits = jaxalign.search(second.profile, str(GLOBINS), statistics="fitted")
    hits = hits.filter(hits["evalue"] <= 1e-3)
    names = [hits.targets.names[k] for k in hits["target"]]
    assert tuple(names) == third.names[1:]
    np.testing.assert_array_equal(hits["score"], third.table["score"])
    np.testing.assert_allclose(hits["evalue"], third.table["evalue"])


@pytest.mark.slow
def test_queries_share_a_pass_and_files_are_read_in_blocks(tmp_path, monkeypatch):
    from jaxalign.database import pieces

    packed = tmp_path / "globins.fa.gz"
    packed.write_bytes(gzip.compress(GLOBINS.read_bytes()))
    queries = [("rev", ALPHA[::-1]), ("short", ALPHA[30:70])]
    whole = fasta.read(str(GLOBINS), jaxalign.Scoring().alphabet)
    twice = {"iterations": 2, "max_evalue": 1}
    each = [jaxalign.search_family([query], whole, **twice)[0] for query in queries]
    monkeypatch.setattr(pieces, "BLOCK_RECORDS", 5)
    together = jaxalign.search_family(queries, packed, **twice)
    assert len(each[1]) > 3
    for one, other in zip(each, together, strict=True):
        assert one.rows() == other.rows() and one.names == other.names
        np.testing.assert_array_equal(one.profile.scores, other.profile.scores)
        assert [x.hits for x in one.passes] == [x.hits for x in other.passes]


STRANDS = pytest.param("both strands", marks=pytest.mark.slow)


@pytest.mark.parametrize("kind", ["in memory", "a file", STRANDS])
def test_memory_bounds_the_queries_at_once(monkeypatch, database, kind):
    """Queries of unequal lengths, one without relatives, one after the other."""
    queries = [("a", ALPHA), ("rev", ALPHA[::-1]), ("short", ALPHA[20:61])]
    target, scoring = database if kind == "in memory" else str(GLOBINS), None
    if kind == "both strands":
        target = str(files("jaxalign.data") / "mitochondrion.fasta")
        scoring = jaxalign.Scoring.preset("ssearch-dna")
        genome = fasta.read(target, scoring.alphabet).text(0)
        turned = genome[900:700:-1].translate(str.maketrans("ACGT", "UGCA"))
        queries = [("a", genome[:150]), ("rev", turned), ("short", genome[300:360:2])]
    read, rounds, about = [], engine.Source.rounds, {"max_evalue": 1, "iterations": 2}
    monkeypatch.setattr(engine.Source, "rounds", lambda x: read.append(x) or rounds(x))
    together = jaxalign.search_family(queries, target, scoring, **about)
    assert len(read) == max(len(family.passes) for family in together)
    read.clear()
    monkeypatch.setattr(engine, "HIT_BYTES", 2**40)
    apart = jaxalign.search_family(queries, target, scoring, **about)
    assert len(read) == sum(len(family.passes) for family in together)
    assert max(map(len, together)) > 1
    assert [x.name for x in apart] == ["a", "rev", "short"]
    for one, other in zip(together, apart, strict=True):
        assert one.rows() == other.rows() and one.names == other.names
        assert [x[:3] for x in map(astuple, one.passes)] == [
            x[:3] for x in map(astuple, other.passes)
        ]
        for name, column in one.table.columns.items():
            np.testing.assert_array_equal(column, other.table[name])


def test_coverage_is_drawn_by_identity(family, monkeypatch):
    """As ColabFold draws it: rows by identity, gaps white, the depth as a line."""
    figure = pytest.importorskip("matplotlib.figure")
    axes = figure.Figure().add_subplot()
    monkeypatch.setattr(picture, "_write", lambda path, size, draw: draw(axes))
    picture.coverage("p.png", family.codes, family.query_identities, "a$b$")
    rows = ["".join(x for x in row if not x.islower()) for row in family.rows()]
    depth = [sum(x != "-" for x in column) for column in zip(*rows, strict=True)]
    assert axes.lines[0].get_ydata().tolist() == depth == family.depth.tolist()
    same = [sum(map(str.__eq__, row, ALPHA)) / len(ALPHA) for row in rows]
    table = np.ma.filled(axes.images[0].get_array(), np.nan)
    order = sorted(range(len(rows)), key=lambda k: same[k])
    expected = [[same[k] if x != "-" else np.nan for x in rows[k]] for k in order]
    np.testing.assert_allclose(table, expected)
    assert axes.images[0].origin == "lower" and "-" in rows[1] + rows[-1]


def test_an_empty_query():
    with pytest.raises(InputError, match="'none' is empty"):
        jaxalign.search_family([("a", ALPHA), ("none", "")], str(GLOBINS))


def test_no_relatives():
    (result,) = jaxalign.search_family([("rev", ALPHA[::-1])], str(GLOBINS))
    assert result.rows() == [ALPHA[::-1]] and result.converged
    assert len(result.passes) == 1 and result.neff == 1
    assert "1 row" in repr(result)


def test_what_is_included(database):
    """A stricter bound, or more coverage, leaves hits out of the profile alone."""
    about = [("alpha", ALPHA)], database
    once = {"iterations": 1, "max_evalue": 1e-3}
    (loose,) = jaxalign.search_family(*about, **once, include=10)
    (strict,) = jaxalign.search_family(*about, **once, include=1e-9)
    assert strict.rows() == loose.rows()
    counts = [x.passes[0].included for x in (strict, loose)]
    assert counts[0] == (loose.table["evalue"] <= 1e-9).sum() < len(loose) < counts[1]
    (covering,) = jaxalign.search_family(*about, **once, include=1e-3, include_cov=0.97)
    covered = (covering.codes[1:] >= 0).mean(1) >= 0.97
    assert 0 < covering.passes[0].included == covered.sum() < counts[1]


def test_at_most_so_many(database):
    (result,) = jaxalign.search_family([("alpha", ALPHA)], database, max_sequences=3)
    assert len(result) == 4


def test_hmm_is_read_back(family, tmp_path):
    family.write(tmp_path / "a.hmm")
    profile = jaxalign.Profile.from_hmm(tmp_path / "a.hmm")
    assert profile.name == "alpha"
    difference = profile.scores[:, :20] - family.profile.scores[:, :20]
    shift = np.round(difference.mean(1)).astype(int)[:, None]
    assert np.abs(difference - shift).max() <= 1  # whole scores sum to no 1
    assert profile.gap_open is not None


def plain_moves(rows):
    """Transitions of some rows, one letter after the other."""
    upper = [[x for x in row if not x.islower()] for row in rows]
    columns = [*zip(*upper, strict=True)]
    weights, kinds = [0.0] * len(rows), []
    for column in columns:
        counts = Counter(x for x in column if x in LETTERS)
        kinds.append(len(counts))
        for k, x in enumerate(column):
            weights[k] += 1 / (len(counts) * counts[x]) if x in LETTERS else 0
    share = sum(kinds) / len(kinds) / sum(weights)
    prior = {"MM": 0.7939, "MI": 0.0278, "MD": 0.0135, "IM": 0.1551, "II": 0.1331}
    prior |= {"DM": 0.9002, "DD": 0.5630}
    moves = [dict(prior) for _ in range(len(columns) + 1)]
    for row, weight in zip(rows, weights, strict=True):
        place = len(row) - len(row.lstrip("-")) - 1
        states = "".join(
            "D" if x == "-" else "I" if x.islower() else "M" for x in row.strip("-")
        )
        for a, b in zip(states, states[1:], strict=False):
            place += a != "I"
            if a + b in prior:
                moves[place + 1][a + b] += weight * share
    moves[-1]["MD"] = 0
    for k, behind in enumerate(moves):
        totals = {x: sum(behind[y] for y in prior if y[0] == x) for x in "MID"}
        behind |= {x: behind[x] / totals[x[0]] for x in prior}
        if k in (0, len(columns)):
            behind |= {"DM": 1, "DD": 0}
    return [[*behind.values()] for behind in moves]


def test_transitions_of_a_model_are_those_of_the_rows(family, tmp_path):
    """Insertions, deletions and both side by side, in rows of unequal spans."""
    rows = family.rows()
    assert any("-" in row.strip("-") for row in rows)
    assert any(letter.islower() for row in rows for letter in row)
    text = family.as_text()
    width = len(ALPHA) - 8
    odd = ["-A" + "D" * width + "---A-W", "--Aq" + "D" * width + "rrC-eG--"]
    odd += ["-" * 9 + "X" * (len(ALPHA) - 9), ALPHA]
    assert {sum(not x.islower() for x in row) for row in odd} == {len(ALPHA)}
    for lines in (rows, [*rows, *odd], [ALPHA]):
        moves = result.moves_of(text._replace(rows=lines))
        np.testing.assert_allclose(moves, plain_moves(lines), rtol=1e-12)
        for part in (slice(0, 3), slice(3, 5), slice(5, 7)):
            np.testing.assert_allclose(moves[:, part].sum(1), 1)
    family.write(tmp_path / "a.hmm")
    lines = (tmp_path / "a.hmm").read_text().splitlines()
    start = next(k for k, line in enumerate(lines) if "COMPO" in line)
    for line, moves in zip(lines[start + 2 :: 3], plain_moves(rows), strict=True):
        expected = ["*" if x == 0 else f"{abs(log(x)):.5f}" for x in moves]
        assert line.split() == expected


def plain_bits(odds, moves, enter, letters, join):
    """The score of one sequence by HMMER's local model, cell by cell, in natural
    logarithms; ``join`` is of two logarithms."""
    with np.errstate(divide="ignore"):
        odds, enter, moves = np.log(odds), np.log(enter), np.log(moves)
    length, m, none = len(letters), len(odds), -np.inf
    stay, leave = np.log(length / (length + 3)), np.log(3 / (length + 3))
    match, insert, delete = [none] * m, [none] * m, [none] * m
    before, between, behind = 0.0, none, none
    for letter in letters:
        begin = join(before, between) + leave
        last = match, insert, delete
        match, insert, delete = [], [], []
        for k in range(m):
            path = begin + enter[k]
            if k:
                steps = zip(last, moves[k - 1, [0, 3, 5]], strict=True)
                for state, step in steps:
                    path = join(path, state[k - 1] + step)
            match.append(path + odds[k, letter])
            insert.append(join(last[0][k] + moves[k, 1], last[1][k] + moves[k, 4]))
            md, dd = moves[k - 1, [2, 6]]
            delete.append(join(match[k - 1] + md, delete[k - 1] + dd) if k else none)
        end = none
        for x in (*match, *delete):
            end = join(end, x)
        before = before + stay
        between = join(between + stay, end + np.log(0.5))
        behind = join(behind + stay, end + np.log(0.5))
    null = length * np.log(length / (length + 1)) + np.log(1 / (length + 1))
    return (behind + leave - null) / np.log(2)


@pytest.mark.parametrize("join", [np.logaddexp, np.maximum])
@pytest.mark.parametrize("m", [1, 2, 9])
def test_scores_of_a_model_cell_by_cell(m, join):
    rng = np.random.default_rng(m)
    odds = rng.dirichlet(np.ones(20), m) / result.NULL
    enter = rng.dirichlet(np.ones(m))
    letters = rng.integers(20, size=(4, 11))
    parts = [rng.dirichlet(np.ones(size), m) for size in (3, 2, 2)]
    straight = np.tile([1.0, *[0.0] * 6], (m, 1))
    for moves in (np.concatenate(parts, 1), straight):
        kind = np.add if join is np.logaddexp else np.maximum
        found = result.local_bits(odds, moves, enter, letters, kind)
        with np.errstate(invalid="ignore", divide="ignore"):
            want = [plain_bits(odds, moves, enter, x, join) for x in letters]
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)


def test_where_the_scores_of_a_model_lie(family):
    """Other random sequences have the same place."""
    moves = result.moves_of(family.as_text())
    odds = np.exp(family.profile.unit * family.profile.scores[:, :20])
    emissions = (odds / odds.sum(1, keepdims=True))[:, result.ORDER]
    places = result.calibrated(emissions, moves)
    rng = np.random.default_rng(7)
    letters = rng.choice(20, (800, 200), p=result.NULL)
    m = len(emissions)
    enter = np.full(m, 2 / (m * (m + 1)))
    emitted = emissions / result.NULL
    for kind, ways, join in (
        ("MSV", np.tile([1.0, *[0.0] * 6], (m, 1)), np.maximum),
        ("VITERBI", moves[1:], np.maximum),
        ("FORWARD", moves[1:], np.add),
    ):
        place, rate = places[kind]
        length = result.FORWARD_LENGTH if kind == "FORWARD" else result.LENGTH
        bits = result.local_bits(emitted, ways, enter, letters[:, :length], join)
        if kind == "FORWARD":  # whose tail alone is known
            again = np.quantile(bits, 1 - result.TAIL) + log(result.TAIL) / rate
        else:
            again = -log(np.exp(-rate * bits).mean()) / rate
        assert abs(again - place) < 0.6, (kind, again, place)  # bits


def test_hmmsearch_finds_what_it_finds_with_its_own_model(family, tmp_path):
    hmmsearch, hmmbuild = shutil.which("hmmsearch"), shutil.which("hmmbuild")
    if not (hmmsearch and hmmbuild):
        pytest.skip("HMMER is not here")
    found = {}
    family.write(tmp_path / "a.hmm")
    family.write(tmp_path / "a.sto")
    command = [hmmbuild, "--amino", tmp_path / "b.hmm", tmp_path / "a.sto"]
    subprocess.run(command, check=True, capture_output=True)
    for name in "ab":
        table = tmp_path / f"{name}.txt"
        command = [hmmsearch, "--tblout", table, tmp_path / f"{name}.hmm", GLOBINS]
        subprocess.run(command, check=True, capture_output=True)
        rows = [x.split() for x in table.read_text().splitlines() if x[0] != "#"]
        found[name] = {row[0] for row in rows if float(row[4]) < 1e-5}
    assert set(family.names[1:]) & found["b"] <= found["a"] and len(found["a"]) > 3


@pytest.mark.parametrize("query", [ALPHA.replace("A", "u", 2), ALPHA[:20] + "*ob"])
def test_the_row_of_a_query_has_its_letters(query, tmp_path):
    """AlphaFold 3 takes U for C, O for X, B for D, and a row of others is no query."""
    path = tmp_path / "q.fa"
    path.write_text(f">alpha\n{query}\n")
    (found,) = jaxalign.search_family(str(path), str(GLOBINS), unknown="X")
    found.write(tmp_path / "q.a3m")
    heading, row = (tmp_path / "q.a3m").read_text().splitlines()[:2]
    assert (heading, row) == (">alpha", query.upper().replace("*", "X"))
    read = jaxalign.Profile.from_alignment(tmp_path / "q.a3m")
    assert len(read) <= len(query)


def test_stockholm_is_read_back(family, tmp_path):
    from Bio import AlignIO

    family.write(tmp_path / "a.sto")
    record = AlignIO.read(tmp_path / "a.sto", "stockholm")
    assert [row.id.split("/")[0] for row in record] == list(family.names)
    marks = [k for k, x in enumerate(record.column_annotations["reference_annotation"])
             if x == "x"]  # fmt: skip
    for row, expected in zip(record, family.rows(), strict=True):
        text = str(row.seq)
        upper = [letter for letter in expected if not letter.islower()]
        assert [text[k] for k in marks] == upper
        assert text.replace(".", "").replace("-", "") == expected.replace("-", "")


def test_names_of_stockholm_differ(tmp_path):
    database = [("q", ALPHA), ("a b", ALPHA[:60]), ("a_b", ALPHA[:60])]
    (result,) = jaxalign.search_family([("q", ALPHA)], database)
    result.write(tmp_path / "a.sto")
    lines = (tmp_path / "a.sto").read_text().splitlines()[2:-2]
    names = [line.split()[0] for line in lines]
    assert sorted(names) == ["a_b/1-60", "a_b_2/1-60", "q/1-76", "q_2/1-76"]


def test_pssm(family, tmp_path):
    family.write(tmp_path / "a.txt", "pssm")
    lines = (tmp_path / "a.txt").read_text().splitlines()[2:]
    assert lines[0].split() == list(LETTERS) and len(lines) == len(ALPHA) + 1
    for k, line in enumerate(lines[1:]):
        number, letter, *scores = line.split()
        assert (int(number), letter) == (k + 1, ALPHA[k])
        assert [int(x) for x in scores] == family.profile.scores[k, :20].tolist()


@pytest.mark.parametrize(
    "options, words",
    [
        ({"iterations": 0}, "iterations = 0"),
        ({"max_sequences": 0}, "max_sequences = 0"),
        ({"max_evalue": -1}, "max_evalue = -1"),
        ({"max_evalue": float("nan")}, "max_evalue = nan"),
        ({"include": -1.0}, "include = -1"),
        ({"min_cov": 1.5}, "min_cov = 1.5"),
        ({"include_cov": "x"}, "include_cov = 'x'"),
        ({"scoring": jaxalign.Scoring("3Di")}, "proteins or nucleotides"),
        ({"scoring": jaxalign.Scoring(match=5, mismatch=-1)}, "the mean score"),
        ({"strand": "plus"}, "strand = 'plus'"),
        ({"scoring": jaxalign.Scoring("BLOSUM62", 10.5, 1)}, "whole"),
        ({"format": "a3m"}, "format"),
    ],
)
def test_options_are_checked(options, words):
    with pytest.raises(UsageError, match=words):
        jaxalign.search_family(["MKV"], ["MKV"], **options)


def test_standard_input_is_read_once():
    with pytest.raises(UsageError, match="standard input"):
        jaxalign.search_family(["MKV"], "-")


def test_formats_are_known(family, tmp_path):
    with pytest.raises(UsageError, match="one of a3m, stockholm, hmm, pssm"):
        family.write(tmp_path / "a.txt")
    family.write(tmp_path / "a.a3m")
    with pytest.raises(UsageError, match="exists"):
        family.write(tmp_path / "a.a3m")


def test_empty_rows_of_paths():
    (result,) = jaxalign.search_family([("rev", ALPHA[::-1])], str(GLOBINS))
    hits = columns(result.table, len(ALPHA))
    assert hits.codes.shape == (0, len(ALPHA)) and not hits.inserted.size


@pytest.mark.slow
def test_queries_side_by_side_as_where_there_is_a_gpu(tmp_path, monkeypatch):
    """Scans of a block, fits and hits of several queries at once change no row."""
    from jaxalign.family import engine

    rng = np.random.default_rng(2)
    queries = {
        "alpha": ALPHA,
        "part": ALPHA[20:90],
        "none": "".join(rng.choice([*LETTERS], 60)),
    }
    decoys = ("".join(rng.choice([*LETTERS], 90)) for _ in range(90))
    text = "".join(f">d{k}\n{x}\n" for k, x in enumerate(decoys))
    packed = tmp_path / "some.fa.gz"
    packed.write_bytes(gzip.compress(GLOBINS.read_bytes() + text.encode()))
    monkeypatch.setattr("jaxalign.database.pieces.BLOCK_RECORDS", 40)
    want = jaxalign.search_family(queries, packed, iterations=2)
    monkeypatch.setattr(engine, "may_have_gpu", lambda: True)
    kept, may_pass = [], engine._may_pass

    def counted(queries, largest, hits):
        kept.append(may_pass(queries, largest, hits))
        return kept[-1]

    monkeypatch.setattr(engine, "_may_pass", counted)
    found = jaxalign.search_family(queries, packed, iterations=2)
    assert len(kept) > 5 and 0 < np.concatenate([x.sum(1) for x in kept]).max() < 40
    assert [len(x.table) for x in found] == [len(x.table) for x in want]
    for one, same in zip(found, want, strict=True):
        assert one.passes[-1].hits == same.passes[-1].hits
        np.testing.assert_array_equal(one.codes, same.codes)
        np.testing.assert_array_equal(one.spans, same.spans)
        np.testing.assert_array_equal(one.table["evalue"], same.table["evalue"])
