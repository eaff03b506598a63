"""Results: what an alignment, a table and a triple share, how they show themselves."""

import re
from itertools import groupby

import numpy as np
import pytest
from cases import some_texts
from draws import pairwise

import jaxalign
from jaxalign import Scoring, UsageError
from jaxalign.io import formats
from jaxalign.model import table as table_module
from jaxalign.model.frames import AlignmentResult

TEXTS = some_texts(1, 12)
TRIPLE = ("MKTAYIAKQRWWW", "CCCMKTAIAKQR", "MRTAYLAR")
MODES = ("global", "semiglobal", "local")


def table_of(mode="local", output="alignment", texts=TEXTS):
    return jaxalign.align_all(texts, mode=mode, output=output)


def triple_of(**options):
    return jaxalign.align_three(("x", TRIPLE[0]), *TRIPLE[1:], **options)


def empty_table():
    return jaxalign.align_all([], output="alignment")


# ------------------------------------------------------------------------ the protocol


@pytest.mark.parametrize(
    "result",
    [
        table_of(),
        table_of().alignment(0),
        triple_of(),
        empty_table(),
        jaxalign.align_triples([TRIPLE, ("MK", "", "W")]),
    ],
    ids=["table", "alignment", "triple", "empty", "triples"],
)
def test_every_result_has_the_calls_of_the_protocol(result):
    assert isinstance(result, AlignmentResult)
    assert len(result.rows()) == len(result.cigar()) or isinstance(result.cigar(), str)
    assert "\n" not in repr(result) and len(repr(result)) < 200
    assert str(result) in f"{result}" and result._repr_html_().startswith("<")
    assert len(result.to_pandas()) == len(result.to_arrow())


@pytest.mark.parametrize("mode", MODES)
def test_a_table_answers_as_its_alignments_do(mode):
    table = table_of(mode)
    alignments = list(table.alignments())
    assert table.rows() == [one.rows() for one in alignments]
    assert table.cigar() == [one.cigar() for one in alignments]
    assert table.cigar(eqx=True) == [one.cigar(eqx=True) for one in alignments]
    np.testing.assert_array_equal(table.rescore(), table["score"])
    assert table.rescore().dtype == table["score"].dtype
    for kind in ("alignment", "full", "shorter"):
        wanted = [one.identity(kind) for one in alignments]
        np.testing.assert_array_equal(table.identity(kind), wanted)


WAYS = ("protein", "dna", "both", "minus", "matrix")


def letters_of(kind: str):
    """(letters, the scoring of pairs, options) of a kind of alignment."""
    if kind == "protein":
        return "ARNDX*", Scoring(), {}
    if kind == "matrix":
        return "ACX", Scoring(("ACX", [[2, -1, 0], [-1, 3, 0], [0, 0, 0]])), {}
    scoring = Scoring(match=2, mismatch=-3, gap_open=5, gap_extend=2)
    return "ACGTN", scoring, {} if kind == "dna" else {"strand": kind}


def walked(cigar: str, query: str, target: str, scoring: Scoring) -> float:
    """The score of a path of = and X, from texts: letters are as each column says."""
    places = {letter: k for k, letter in enumerate(scoring.alphabet.letters)}
    i = j = score = 0
    for size, letter in re.findall(r"(\d+)(.)", cigar):
        for number in range(int(size)):
            if letter in "ID":
                score -= scoring.gap_extend if number else scoring.gap_open
            else:
                a, b = query[i], target[j]
                assert (a == b) == (letter == "="), (cigar, i, j)
                score += scoring.scores[places[a], places[b]]
            i += letter != "D"
            j += letter != "I"
    assert (i, j) == (len(query), len(target))
    return score


@pytest.mark.parametrize("kind, mode", pairwise(WAYS, MODES))
def test_equal_and_other_letters_are_told_apart(monkeypatch, kind, mode):
    """By a walk along the texts, with the score; whatever is compared at a time."""
    letters, scoring, options = letters_of(kind)
    random = np.random.default_rng(7)
    sizes = [0, 1, 1, 2, 5, 17, 30, 30, 41, 64]
    texts = ["".join(random.choice([*letters], size)) for size in sizes]
    texts += [texts[-1][:20] + texts[-2], letters * 3]
    queries = [texts[k] for k in range(len(texts)) for _ in texts]
    targets = [x for _ in texts for x in texts]
    table = jaxalign.align_pairs(
        queries, targets, scoring, mode=mode, output="alignment", **options
    )
    table = table.filter(random.permutation(len(table)))
    for steps in (1, 97, 2**22):
        monkeypatch.setattr(table_module, "STEPS", steps)
        split = table.with_matches()
        cigars = split.cigar()
        assert cigars == table.cigar(eqx=True)
    for row, cigar, plain in zip(table, cigars, table.cigar(), strict=True):
        query, target = (
            text[row[f"{side}_start"] : row[f"{side}_end"]]
            for side, text in (
                ("query", queries[int(row["query"][3:]) - 1]),
                ("target", targets[int(row["target"][3:]) - 1]),
            )
        )
        if row.get("strand") == -1:
            query = query[::-1].translate(str.maketrans("ACGT", "TGCA"))
        assert walked(cigar.replace("*", ""), query, target, scoring) == row["score"]
        merged = re.sub("[=X]", "M", cigar)
        steps = "".join(x * int(size) for size, x in re.findall(r"(\d+)(.)", merged))
        runs = ((x, len([*run])) for x, run in groupby(steps))
        assert ("".join(f"{size}{x}" for x, size in runs) or "*") == plain
    some = table[3:40].with_matches()
    assert some.cigar() == cigars[3:40] and table[:0].with_matches().cigar() == []


def test_frames_of_one_and_of_many_have_the_same_columns():
    table = table_of()
    many, one = table.to_pandas(), table.alignment(3).to_pandas()
    assert list(one.columns) == list(many.columns)
    assert one.iloc[0].tolist() == many.iloc[3].tolist()
    assert table.alignment(3).to_arrow().column_names == list(many.columns)


@pytest.mark.parametrize("output", ["score", "identity", "stats", "alignment"])
def test_frames_have_any_column_of_a_file(output, tmp_path):
    table = table_of(output=output)
    whole = table.to_pandas()
    assert {"query", "target", "score"} <= {*whole.columns}
    lengths = [table.queries.lengths[k] for k in table["query"]]
    if output == "identity":
        shares = whole["identity_shorter"]
        np.testing.assert_array_equal(shares, table.identity("shorter"))
        table.write(tmp_path / "default.tsv")
        assert whole["query_length"].tolist() == lengths
    columns = ["qseqid", "sseqid", "raw", "qlen", "tlen"]
    if output in ("stats", "alignment"):
        columns += ["fident", "pident", "qstart", "qcov"]
    if output == "alignment":
        columns += ["cigar"]
    frame = table.to_pandas(columns, identity="shorter")
    assert list(frame.columns) == columns == table.to_arrow(columns).column_names
    assert (
        table.to_arrow(columns, "shorter")
        .to_pandas()
        .astype(object)
        .equals(frame.astype(object))
    )
    path = tmp_path / "t.tsv"
    table.write(path, columns=columns, identity="shorter")
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    assert rows[0] == columns and len(rows) == len(frame) + 1
    for row, values in zip(rows[1:], frame.itertuples(index=False), strict=True):
        for text, value in zip(row, values, strict=True):
            if isinstance(value, float) and value == value:
                assert float(text) == pytest.approx(value, abs=6e-4)
            else:
                assert text == str(value)
    with pytest.raises(UsageError, match="column 'qwe' is unknown"):
        table.to_polars(["qwe"])
    if output == "score":
        with pytest.raises(UsageError, match="computed with output='stats'"):
            table.to_pandas(["qstart"])


def test_polars():
    polars = pytest.importorskip("polars")
    table = table_of()
    for result in (table, table.alignment(0), triple_of(), empty_table()):
        frame, other = result.to_polars(), result.to_pandas()
        assert isinstance(frame, polars.DataFrame)
        assert frame.columns == list(other.columns)
        assert [list(row) for row in frame.rows()] == other.to_numpy().tolist()
    assert table.to_polars().schema["query"] == polars.String


@pytest.mark.parametrize("name", ["pandas", "polars", "pyarrow"])
def test_a_missing_library_is_named_with_its_cure(name, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, name, None)
    call = "to_arrow" if name == "pyarrow" else f"to_{name}"
    for result in (table_of(), table_of().alignment(0), triple_of()):
        with pytest.raises(UsageError, match=f"{call} needs {name}: pip install"):
            getattr(result, call)()


@pytest.mark.parametrize("output", ["score", "identity", "stats"])
def test_what_needs_paths_says_so(output):
    table = table_of(output=output)
    for call in (table.rows, table.cigar, table.rescore, lambda: table.alignment(0)):
        with pytest.raises(UsageError, match="output='alignment'"):
            call()


@pytest.mark.parametrize("suffix", [".tsv", ".sam", ".fasta", ".parquet"])
def test_a_table_writes_itself(suffix, tmp_path):
    table, paths = table_of(), [tmp_path / f"{name}{suffix}" for name in "ab"]
    formats.write(table, paths[0])
    table.write(paths[1])
    assert paths[0].read_bytes() == paths[1].read_bytes()
    with pytest.raises(UsageError, match="exists"):
        table.write(paths[1])
    table.write(paths[1], "tsv", ["score"], force=True)
    written = [float(line) for line in paths[1].read_text().split()[1:]]
    assert written == table["score"].tolist()


# ------------------------------------------------------------------------------- rows


def test_iteration_gives_rows():
    table = table_of()
    assert list(table) == [table.row(k) for k in range(len(table))] and len(table) == 66
    assert table[2] == table.row(2) and table[-1] == table.row(65)
    assert list(empty_table()) == []
    with pytest.raises(IndexError):
        _ = table[66]


@pytest.mark.parametrize(
    "rows",
    [slice(3), slice(10, 20), slice(-4, None), slice(None, None, -7), slice(9, 2),
     slice(60, 99), slice(80, 90)],
    ids=str,
)  # fmt: skip
def test_slices(rows):
    table = table_of()
    part, numbers = table[rows], range(66)[rows]
    assert list(part) == [table.row(k) for k in numbers]
    assert part.cigar() == [table.cigar(k) for k in numbers]
    assert part[1:].cigar() == part.cigar()[1:]
    scores = table_of(output="score")[rows]
    np.testing.assert_array_equal(scores["score"], part["score"])


@pytest.mark.parametrize("rows", [[0, 2], [2, 0, 0], [-1], [], np.array([1], np.uint8)])
def test_filter_by_integers(rows):
    """``filter([0, 2])`` gave row 1: integers were cast to truth values."""
    table = table_of()
    for kept in (table.filter(rows), table[rows]):
        assert list(kept) == [table.row(k) for k in rows]
        assert kept.cigar() == [table.cigar(k) for k in rows]


def test_filter_by_a_mask():
    table = table_of()
    mask = table["score"] > 20
    assert list(table.filter(mask)) == [row for row in table if row["score"] > 20]
    assert list(table[mask.tolist()]) == list(table[mask])
    assert len(empty_table().filter([])) == 0


@pytest.mark.parametrize(
    "rows, message",
    [
        ([True, False], "a mask of 2 values for 66 rows"),
        ([0, 66], "row 66: the table has 66 rows"),
        ([-67], "row -67"),
        ([0.0, 2.0], "rows by float64: bool or integers are needed"),
        (["seq1"], "bool or integers"),
        ([[0, 1]], r"rows of shape \(1, 2\)"),
        (3, r"rows of shape \(\)"),
    ],
    ids=str,
)
def test_what_filter_refuses(rows, message):
    with pytest.raises(UsageError, match=message):
        table_of().filter(rows)


def test_one_row_counted_from_the_end():
    table = table_of()
    assert table.cigar(-1) == table.cigar(65)
    assert table.alignment(-1).rows() == table.alignment(65).rows()


# ------------------------------------------------------------------------------ shown

SHOWN = """\
score 74; global; 69 columns, 13 identical, 56 in gaps; BLOSUM62, gap(k) = 11 + 1*(k-1)

query  1 MKTAYIA-----------------------------------------------------  7
         |||||||
b      1 MKTAYIAGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGGG 60

query  8 ---KQRQWC 13
            ||||||
b     61 GGGKQRQWC 69"""


def test_print_shows_the_alignment():
    """``print(alignment)`` showed the fields of a dataclass."""
    found = jaxalign.align("MKTAYIAKQRQWC", ("b", "MKTAYIA" + "G" * 56 + "KQRQWC"))
    found = found.__class__(**{**found.__dict__, "score": 74})
    assert str(found) == SHOWN
    assert (
        repr(found) == "<Alignment query / b: score=74, mode='global', [0:13], [0:69]>"
    )


def test_print_shows_spans_from_1_and_signs():
    found = jaxalign.align("CCCMKTLIA", "MRTIA", Scoring(gap_open=3), mode="local")
    lines = str(found).splitlines()
    assert lines[2:] == ["query  4 MKTLIA 9", "         |:| ||", "target 1 MRT-IA 5"]
    assert str(jaxalign.align("", "", mode="local")).startswith("score 0; local; 0 col")


def test_print_shows_three_rows():
    lines = str(triple_of()).splitlines()
    assert lines[0].startswith("score 9; global; quasi-natural gaps; BLOSUM62")
    assert lines[2:] == [
        "x  1 ---MKTAYIAKQRWWW 13",
        "b  1 CCCMKTA-IAKQR--- 12",
        "c  1 ---MRTAYLAR-----  8",
        "        *:**.:*:..",
    ]
    bare = triple_of(traceback=None)
    assert "\n" not in str(bare)
    with pytest.raises(UsageError, match="only the score was asked for"):
        bare.rows()
    assert bare.to_pandas().iloc[0].tolist() == ["x", "b", "c", 9]


def test_repr_of_many_is_short():
    """A table of 500 proteins printed tens of kB."""
    named = [(f"a protein with a long name, {k}", "MKV") for k in range(500)]
    table = jaxalign.align_pairs(named, named, output="score")
    assert len(repr(table)) < 100 and len(repr(table.queries)) < 80
    lines = str(table).splitlines()
    assert len(lines) == 14 and max(map(len, lines)) < 88
    assert lines[0].startswith("500 alignments: 500 x 500 sequences; global; BLOSUM62")
    assert lines[8].split() == ["..."] * 3
    assert table._repr_html_().count("<tr>") == 12


def test_html_is_escaped():
    table = jaxalign.align_pairs([("<b>", "MK")], [("a&b", "MK")], output="alignment")
    for result in (table, table.alignment(0)):
        assert "&lt;b&gt;" in result._repr_html_() and "a&amp;b" in result._repr_html_()


# ------------------------------------------------------------------- triples and pairs


THREE = TRIPLE, ("MK", "", "W"), ("", "", "")
FIRST_THREE, *OTHER_THREE = pairwise(
    THREE,
    ("quasi-natural", "natural"),
    MODES,
    corners=[(TRIPLE, "quasi-natural", "global")],
)


@pytest.mark.parametrize(
    "texts, model, mode",
    [
        FIRST_THREE,
        *(pytest.param(*case, marks=pytest.mark.slow) for case in OTHER_THREE),
    ],
)
def test_induced_pairs(mode, model, texts):
    found = jaxalign.align_three(*texts, mode=mode, gap_model=model)
    pairs = found.pairs()
    assert tuple(pair.score for pair in pairs) == found.pair_scores
    assert found.cigar() == tuple(pair.cigar() for pair in pairs)
    np.testing.assert_array_equal(found.identity(), [p.identity() for p in pairs])
    assert [pair.query_name + pair.target_name for pair in pairs] == ["ab", "ac", "bc"]
    for (x, y), pair in zip(((0, 1), (0, 2), (1, 2)), pairs, strict=True):
        both = zip(found.rows()[x], found.rows()[y], strict=True)
        kept = [column for column in both if column != ("-",) * 2]
        kept = ["".join(column[side] for column in kept) for side in (0, 1)]
        assert all(short in long for short, long in zip(pair.rows(), kept, strict=True))
        if mode != "semiglobal":
            assert list(pair.rows()) == kept
