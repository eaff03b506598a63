"""Both strands: beside searches of reverse complements by hand; how formats say it."""

import numpy as np
import pytest

import jaxalign
from jaxalign.errors import UsageError
from jaxalign.io import formats
from jaxalign.model.alphabet import DNA, as_sequences, named_alphabet
from jaxalign.model.strands import other_strand, reverse_complement

RNG = np.random.default_rng(11)
SCORING = jaxalign.Scoring(match=2, mismatch=-3, gap_open=6, gap_extend=2)
BASES = set("ACGT")
MEANING = {
    "A": "A", "C": "C", "G": "G", "T": "T", "R": "AG", "Y": "CT", "S": "CG",
    "W": "AT", "K": "GT", "M": "AC", "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG",
    "N": "ACGT",
}  # fmt: skip
PARTNER = {"A": "T", "C": "G", "G": "C", "T": "A"}


def text(length, letters="ACGT"):
    return "".join(RNG.choice(list(letters), length))


def turned(one):
    """The reverse complement by the meaning of each letter."""
    letters = {frozenset(bases): letter for letter, bases in MEANING.items()}
    partners = (frozenset(PARTNER[x] for x in MEANING[letter]) for letter in one)
    return "".join(letters[some] for some in partners)[::-1]


def rna(one):
    return one.replace("T", "U")


QUERIES = [("q1", text(60)), ("q2", text(45, DNA)), ("q3", text(30)), ("q4", "")]
DATABASE = [(f"t{k}", text(80)) for k in range(9)]
DATABASE += [
    ("plus", text(10) + QUERIES[0][1][5:50] + text(7)),
    ("minus", text(4) + turned(QUERIES[0][1])[:25] + "A" + turned(QUERIES[0][1])[25:]),
    ("both", QUERIES[2][1] + turned(QUERIES[2][1])),
]


def search(queries, **options):
    return jaxalign.search(queries, DATABASE, SCORING, **options)


def rows(table, strand):
    """Rows as tuples, with spans of the strand that is aligned."""
    names = ("score", "target_start", "target_end", "identities", "evalue")
    for k, row in enumerate(table):
        a = table.alignment(k)
        spans = a.query_start, a.query_end
        yield (row["query"], row["target"], strand, *spans, a.cigar(),
               *(row[x] for x in names))  # fmt: skip


@pytest.mark.parametrize("kind", ["dna", "rna"])
def test_complements_of_all_letters(kind):
    alphabet = named_alphabet(kind)
    some = [DNA, "", text(40, DNA)]
    want = [turned(one) for one in some]
    if kind == "rna":
        some, want = [rna(x) for x in some], [rna(x) for x in want]
    sequences = as_sequences(some, alphabet)
    assert reverse_complement(sequences).texts() == want
    assert [other_strand(x, alphabet) for x in some] == want


@pytest.mark.parametrize(
    "top",
    [
        pytest.param(1, marks=pytest.mark.slow),
        pytest.param(3, marks=pytest.mark.slow),
        50,
    ],
)
def test_hits_are_those_of_both_searches_by_hand(top):
    other = [(name, turned(one)) for name, one in QUERIES]
    plus, minus = search(QUERIES, top=50), search(other, top=50)
    assert "strand" not in plus.columns
    places = {name: k for k, (name, _) in enumerate(DATABASE)}
    whole = [*rows(plus, 1), *rows(minus, -1)]
    whole.sort(key=lambda row: (row[0], -row[6], places[row[1]], -row[2]))
    want = [row for k, row in enumerate(whole)
            if [x[0] for x in whole[:k]].count(row[0]) < top]  # fmt: skip
    table = search(QUERIES, top=top, strand="both")
    found = [one for k in range(len(table))
             for one in rows(table[k : k + 1], table["strand"][k])]  # fmt: skip
    assert found == want
    assert (table.rescore() == table["score"]).all()
    for strand, one in (("plus", plus), ("minus", minus)):
        alone = search(QUERIES, top=50, strand=strand)
        sign = 1 if strand == "plus" else -1
        assert list(rows(alone, sign)) == list(rows(one, sign))
        assert set(alone["strand"].tolist()) == {sign}


def test_spans_of_a_query_count_along_its_plus_strand():
    table = search(QUERIES[:1], strand="both")
    row = next(x for x in table if x["target"] == "minus")
    assert row["strand"] == -1
    other = turned(QUERIES[0][1])
    start, end = 60 - row["query_end"], 60 - row["query_start"]
    target = dict(DATABASE)["minus"][row["target_start"] : row["target_end"]]
    assert target.startswith(other[start : start + 8])
    assert target.endswith(other[end - 8 : end])


def test_what_is_usual():
    def strands(scoring, **options):
        table = jaxalign.search(QUERIES, DATABASE, scoring, **options)
        return set(table.columns.get("strand", np.zeros(0)).tolist())

    blastn = jaxalign.Scoring.preset("blastn")
    assert strands(blastn) == {1, -1}
    assert strands(blastn, strand="plus") == {1}
    assert strands(blastn, mode="semiglobal") == set()
    assert strands(SCORING) == set()


def test_scores_alone_and_parts_and_files(tmp_path):
    table = search(QUERIES, strand="both")
    path = tmp_path / "d.fasta"
    path.write_text("".join(f">{name}\n{one}\n" for name, one in DATABASE))
    read = jaxalign.search(QUERIES, path, SCORING, strand="both")
    assert list(read) == list(table) and read.cigar() == table.cigar()
    scores = search(QUERIES, strand="both", align_top=False)
    for name in ("query", "target", "score", "strand", "evalue"):
        assert scores[name].tolist() == table[name].tolist()
    options = {"strand": "both", "part_rows": 300}
    stream = jaxalign.stream_search(QUERIES, DATABASE, SCORING, **options)
    parts = [table for _, table in stream]
    assert len(parts) > 1
    for name, column in table.columns.items():
        np.testing.assert_array_equal(np.concatenate([x[name] for x in parts]), column)


def test_proteins_have_one_strand():
    with pytest.raises(UsageError, match="nucleotides have two strands"):
        jaxalign.search(["MKV"], ["MKV"], strand="minus")
    with pytest.raises(UsageError, match="unknown strand 'watson'"):
        search(QUERIES, strand="watson")


def written(table, path, *columns):
    formats.write(table, path, columns=columns or None)
    return [line.split("\t") for line in path.read_text().splitlines()]


def test_formats_say_the_strand(tmp_path):
    scoring = jaxalign.Scoring.preset("blastn")
    query, target = "AACCGGTTTACGGATC", "GG" + turned("CCGGTTTACGGA") + "AAA"
    table = jaxalign.search([("q", query)], [("t", target)], scoring, top=1)
    # Letters 3 to 14 of the query are the complements of 14 to 3 of the target.
    names = ("qstart", "qend", "sstart", "send", "sstrand", "tstart", "tend")
    heading, row = written(table, tmp_path / "a.tsv", *names)
    assert row == ["3", "14", "14", "3", "minus", "3", "14"]
    assert written(table, tmp_path / "a.m8")[0][6:10] == ["3", "14", "14", "3"]
    assert written(table, tmp_path / "b.tsv")[0].count("sstrand") == 1
    paf = written(table, tmp_path / "a.paf")[0]
    assert paf[:9] == ["q", "16", "2", "14", "-", "t", "17", "2", "14"]
    sam = written(table, tmp_path / "a.sam")[-1]
    assert sam[:6] == ["q", "16", "t", "3", "255", "2S12M2S"]
    assert sam[9] == turned(query)
    plus = jaxalign.search([("q", query)], [("t", query)], scoring, top=1)
    assert written(plus, tmp_path / "p.sam")[-1][1] == "0"
    assert written(plus, tmp_path / "p.tsv", *names)[1][:5] == [
        "1", "16", "1", "16", "plus"
    ]  # fmt: skip
