"""Families of nucleotides: beside plain loops over letters, positions and strands."""

from collections import Counter
from math import exp, log

import numpy as np
import pytest

import jaxalign
from jaxalign.family import engine
from jaxalign.io import fasta
from jaxalign.model import profile
from jaxalign.model.alphabet import as_sequences, named_alphabet

SCORING = jaxalign.Scoring.preset("ssearch-dna")
OPEN, EXTEND = 16, 4
COMPLEMENT = dict(zip("ACGUNRY", "UGCANYR", strict=True))
PAIRS = {("A", "R"): 1, ("G", "R"): 1, ("C", "R"): -4, ("U", "R"): -4}
OPTIONS = {"max_evalue": 50.0, "include": 1e-2, "correct_composition": False}
OPTIONS |= {"hsps": 1}


def turned(text):
    return "".join(COMPLEMENT[x] for x in reversed(text))


def mutated(rng, text, share=0.12):
    """Some letters exchanged, one left out, and two inserted."""
    letters = [str(rng.choice([*"ACGU"])) if rng.random() < share else x for x in text]
    where = int(rng.integers(9, len(text) - 9))
    return "".join((*letters[:where], "GA", *letters[where + 1 :]))


def random_text(rng, length):
    return "".join(rng.choice([*"ACGU"], length))


@pytest.fixture(scope="module")
def problem():
    """(query, database): relatives of 50 letters on both strands, and random ones."""
    rng = np.random.default_rng(3)
    query = random_text(rng, 50)
    database = []
    for k in range(40):
        text = random_text(rng, int(rng.integers(20, 150)))
        if k % 4 == 0:
            copy = mutated(rng, query[k % 7 : 50 - k % 5])
            copy = turned(copy) if k % 8 else copy
            text = text[:17] + copy + text[17:]
        database.append((f"t{k}", "RNY" * (k == 9) + text))
    return query, [*database, ("none", ""), ("short", "A")]


def scores_of_pairs(query):
    """The scores of the first pass, letter by letter."""
    return [{x: PAIRS.get((a, x), 5 if a == x else -4) for x in "ACGUR"} for a in query]


def best_local(scores, text):
    """Smith and Waterman, cell by cell; N and Y are taken from the codes."""
    best, above = 0, [(0, -(10**9))] * (len(text) + 1)
    for row in scores:
        left, insert, line = 0, -(10**9), [(0, -(10**9))]
        for j, letter in enumerate(text):
            up = above[j + 1]
            delete = max(up[0] - OPEN, up[1] - EXTEND)
            insert = max(left - OPEN, insert - EXTEND)
            left = max(0, above[j][0] + row[letter], delete, insert)
            line.append((left, delete))
            best = max(best, left)
        above = line
    return best


def plain_profile(rows):
    """Henikoff's weights and PSI-BLAST's pseudocounts with +5/-4, by loops."""
    unit = 0.191529283
    columns, weights, kinds = [*zip(*rows, strict=True)], [0.0] * len(rows), []
    for column in columns:
        counts = Counter(x for x in column if x in "ACGU")
        kinds.append(len(counts))
        for k, x in enumerate(column):
            weights[k] += 1 / (len(counts) * counts[x]) if x in counts else 0
    alpha, beta = sum(kinds) / len(kinds) - 1, 30 / 19
    equal, unequal = exp(5 * unit), exp(-4 * unit)
    related = {x: {y: equal if x == y else unequal for y in "ACGU"} for x in "ACGU"}
    scores = []
    for column in columns:
        seen = Counter()
        for k, x in enumerate(column):
            if x in "ACGU":
                seen[x] += weights[k] / sum(
                    weights[i] for i, y in enumerate(column) if y in "ACGU"
                )
        odds = {}
        for a in "ACGU":
            guess = sum(
                seen[b] * related[b][a] / sum(related[b].values()) for b in "ACGU"
            )
            odds[a] = log((alpha * seen[a] + beta * guess) / (alpha + beta) * 4)
        scores.append({a: round(x / unit) for a, x in odds.items()})
        for letter, several in (("N", "ACGU"), ("R", "AG"), ("Y", "CU")):
            mean = sum(odds[a] for a in several) / len(several)
            scores[-1][letter] = round(mean / unit)
    return scores


def found(family):
    strand = family.columns()["strand"][1:].tolist()
    return {*zip(family.names[1:], strand, family.table["score"], strict=True)}


def expected(scores, database, family, bound):
    """All hits with E-values up to a bound; both strands are the search space."""
    last = family.passes[-1]
    space = 2 * sum(len(text) for _, text in database) * len(family.query)
    hits = set()
    for name, text in database:
        for strand, letters in ((1, text), (-1, turned(text))):
            score = best_local(scores, letters)
            if score and last.k * space * exp(-last.lambda_ * score) <= bound:
                hits.add((name, strand, score))
    return hits


def test_both_strands_by_positions(problem):
    query, database = problem
    plain = [x for x in database if x[0] != "t9"]  # scores of N are of the next pass
    (once,) = jaxalign.search_family([("q", query)], plain, SCORING, iterations=1,
                                     **OPTIONS)  # fmt: skip
    want = expected(scores_of_pairs(query), plain, once, 50)
    assert found(once) == want and {strand for _, strand, _ in want} == {1, -1}
    (twice,) = jaxalign.search_family([("q", query)], database, SCORING, iterations=2,
                                      **OPTIONS)  # fmt: skip
    first = once.table["evalue"] <= 1e-2
    covering = (once.codes[1:] >= 0).mean(1) >= 0.3
    rows = [row for row, x in zip(once.rows()[1:], first & covering, strict=True) if x]
    aligned = ["".join(x for x in row if not x.islower()) for row in [query, *rows]]
    scores = plain_profile(aligned)
    for row, others in zip(twice.table.scoring.scores, scores, strict=True):
        assert row[[0, 1, 2, 3, 4, 5, 14]].tolist() == [others[x] for x in "ACGURYN"]
    assert found(twice) == expected(scores, database, twice, 50)


def test_rows_are_letters_of_their_spans_and_strands(problem):
    query, database = problem
    (family,) = jaxalign.search_family([("q", query)], database, SCORING, **OPTIONS)
    texts = dict(database)
    for name, (first, last), row in zip(
        family.names[1:], family.spans.tolist(), family.rows()[1:], strict=True
    ):
        text = texts[name]
        span = (
            text[first - 1 : last] if first <= last else turned(text[last - 1 : first])
        )
        assert row.replace("-", "").upper() == span
    ends = family.columns()
    assert (ends["end"] - ends["start"])[1:].tolist() == [
        abs(b - a) + 1 for a, b in family.spans.tolist()
    ]


@pytest.mark.parametrize("strand", ["plus", "minus"])
def test_one_strand_alone(problem, strand):
    query, database = problem
    options = OPTIONS | {"iterations": 1, "max_evalue": 1e-3}
    about = [("q", query)], database, SCORING
    (both,) = jaxalign.search_family(*about, **options)
    (one,) = jaxalign.search_family(*about, strand=strand, **options)
    sign = 1 if strand == "plus" else -1
    assert found(one) == {x for x in found(both) if x[1] == sign} and len(one) > 3


def test_uracil_is_thymine(problem, tmp_path):
    """Whichever the database has, rows have the query's."""
    query, database = problem
    dna = [(name, text.replace("U", "T").lower()) for name, text in database if text]
    for name, records in (("d.fa", dna), ("r.fa", database)):
        lines = (f">{x}\n{text}\n" for x, text in records if text)
        (tmp_path / name).write_text("".join(lines))
    jaxalign.index_database(tmp_path / "d.fa", tmp_path / "i", "NUC")
    rows = []
    for letters, target in (
        ("U", dna),
        ("U", tmp_path / "i"),
        ("T", tmp_path / "r.fa"),
    ):
        own = [("q", query.replace("U", letters))]
        (family,) = jaxalign.search_family(own, target, SCORING, iterations=1)
        assert family.query == own[0][1]
        text = "".join(family.rows())
        assert letters in text.upper() and not {*"UT"} - {letters} & {*text.upper()}
        rows.append([row.replace("T", "U").replace("t", "u") for row in family.rows()])
    assert rows[0] == rows[1] == rows[2] and len(rows[0]) > 8


def test_windows(tmp_path):
    """Copies in a long sequence, also where windows meet, are one hit each."""
    rng = np.random.default_rng(8)
    query = random_text(rng, 30)
    window = engine.window_of(as_sequences([query], named_alphabet("rna")))
    assert window == 512
    step, text = 512 - 64, random_text(rng, 9000)
    spans = []
    for k, start in enumerate(
        (0, step - 20, 2 * step + 40, 2 * step + 505, 4000, 8970)
    ):
        copy = turned(query) if k % 2 else query
        text = text[:start] + copy + text[start + 30 :]
        spans.append((start + 30, start + 1) if k % 2 else (start + 1, start + 30))
    records = [("a", random_text(rng, 100)), ("long", text)]
    path = tmp_path / "d.fa"
    path.write_text("".join(f">{name} x\n{x}\n" for name, x in records))
    for source in (records, path):
        (family,) = jaxalign.search_family([("q", query)], source, SCORING)
        assert sorted(map(tuple, family.spans.tolist())) == sorted(spans)
        assert {*family.rows()} == {query} and {*family.names[1:]} == {"long"}
    sequences = fasta.read(str(path), named_alphabet("rna"))
    for length in (64, 512, 9000):
        cut = engine.windows_of(sequences, length)
        whole = [""] * 2
        for name, part in zip(cut.names, cut.texts(), strict=True):
            record, _, place = name.partition("\0")
            k, place = sequences.names.index(record), int(place or 0)
            assert len(part) <= length and place <= len(whole[k])
            whole[k] = whole[k][:place] + part
        assert whole == sequences.texts()
    assert engine.windows_of(sequences, 9000) is sequences


def test_filters_and_diversity_count_four_letters():
    """N, code 14, is no residue."""
    query = np.array([0, 1, 2, 3, 0, 1], np.uint8)
    rows = np.array(
        [[0, 1, 2, 3, 14, 14], [14, 14, 14, 3, 0, 1], [0, 1, 2, 0, -1, -1]], np.int8
    )
    assert engine.filtered(query, rows, 0.6, residues=4).tolist() == [0, 2]
    assert engine.filtered(query, rows, 0, 1.0, residues=4).tolist() == [0, 1]
    assert engine.filtered(query, rows, 0, 0, 0.8, residues=4).tolist() == [2]


@pytest.mark.parametrize("kind, letters", [("RNA", "ACGU"), ("DNA", "ACGT")])
def test_a_model_of_nucleotides(problem, tmp_path, kind, letters):
    query, database = problem
    own = query.replace("U", letters[3])
    (family,) = jaxalign.search_family([("q", own)], database, SCORING)
    family.write(tmp_path / "a.hmm")
    lines = [x.split() for x in (tmp_path / "a.hmm").read_text().splitlines()]
    fields = {x[0]: x[1:] for x in lines}
    assert fields["ALPH"] == [kind] and fields["HMM"] == [*letters]
    assert int(fields["LENG"][0]) == 50 and int(fields["MAXL"][0]) == 200
    assert sum(x[0] == "STATS" for x in lines) == 3
    positions = [x for x in lines if x[-3:] == ["-"] * 3]
    emitted = [np.exp(-np.array(x[1:5], float)) for x in positions]
    consensus = family.profile.consensus.lower()
    assert len(emitted) == 50 and "".join(x[6] for x in positions) == consensus
    np.testing.assert_allclose(np.sum(emitted, 1), 1, atol=1e-4)
    unit, scores = family.profile.unit, family.profile.scores[:, :4]
    odds = np.exp(unit * scores)
    np.testing.assert_allclose(emitted, odds / odds.sum(1)[:, None], atol=1e-4)
    compo = np.exp(-np.array(fields["COMPO"], float))
    np.testing.assert_allclose(compo, np.mean(emitted, 0), atol=0.01)


def test_ambiguous_letters_are_means():
    odds = np.log(np.array([[0.7, 0.1, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25]]) * 4)
    scores = profile.whole_scores(odds, 0.1, named_alphabet("dna"))
    letters = "ACGTRYSWKMBDHVN"
    for letter, several in {**profile.IUPAC, "A": "A", "T": "T"}.items():
        mean = odds[0, ["ACGT".index(x) for x in several]].mean()
        assert scores[0, letters.index(letter)] == round(mean / 0.1)
    assert not scores[1].any()


def test_at_most_so_many_of_both_strands(problem):
    query, database = problem
    about = [("q", query)], database, SCORING
    (whole,) = jaxalign.search_family(*about, iterations=1, hsps=1)
    (few,) = jaxalign.search_family(*about, iterations=1, hsps=1, max_sequences=3)
    scores = sorted(whole.table["score"])[::-1]
    assert sorted(few.table["score"])[::-1] == scores[:3] and len(scores) > 6
