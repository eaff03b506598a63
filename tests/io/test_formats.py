"""Result files: what each format holds, and what every refusal says."""

import math
import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import oracle
import pytest

from jaxalign.errors import UsageError
from jaxalign.io import arrow, text_formats
from jaxalign.io.formats import FORMATS, SUFFIXES, resolve_format, write
from jaxalign.model import system
from jaxalign.model.alignment import Alignment
from jaxalign.model.alphabet import as_sequences
from jaxalign.model.names import read_back
from jaxalign.model.scoring import FREE_ENDS, Scoring
from jaxalign.model.table import Table
from jaxalign.model.triple import TripleAlignment

SPANS = ("query_start", "query_end", "target_start", "target_end")
STATS = ("columns", "identities", "gap_openings", "gaps")
QUERIES = [("q1", "WWCHEYAA"), ("q2", "MKVLAWFRHE"), ("q3", "")]
TARGETS = [("t1", "MMWWCHEY"), ("t2", "MRVAWFXE"), ("t3", "G")]

# query, target, start in both, CIGAR; overhangs follow from mode and lengths
SEMIGLOBAL = [
    (0, 0, 0, 2, "6M"),
    (1, 1, 0, 0, "3M1I3M1I2M"),
    (0, 2, 8, 0, ""),
    (1, 0, 0, 7, "1M"),
    (2, 1, 0, 8, ""),
]


def consumed(cigar, letters):
    return sum(int(n) for n, op in re.findall(r"(\d+)(\D)", cigar) if op in letters)


def aligned(row, mode, scoring):
    q, t, i, j, cigar = row
    spans = (i, i + consumed(cigar, "MI"), j, j + consumed(cigar, "MD"))
    names, texts = zip(QUERIES[q], TARGETS[t], strict=True)
    runs = oracle.runs_of_cigar(cigar)
    bare = Alignment(*texts, 0, *spans, runs, scoring, mode, frozenset(), *names)
    return replace(bare, score=bare.rescore())


def table_of(rows=SEMIGLOBAL, mode="semiglobal", output="alignment", scoring=None):
    scoring = scoring or Scoring()
    found = [aligned(row, mode, scoring) for row in rows]
    columns = {
        "query": np.array([row[0] for row in rows], np.int32),
        "target": np.array([row[1] for row in rows], np.int32),
        "score": np.array(
            [a.score for a in found], np.int32 if scoring.scale == 1 else float
        ),
    }
    if output == "identity":
        columns["max_identities"] = np.array([a.identities for a in found], np.int32)
    if output in ("stats", "alignment"):
        for name in (*SPANS, *STATS):
            columns[name] = np.array([getattr(a, name) for a in found], np.int32)
    sides = [as_sequences(s, scoring.alphabet) for s in (QUERIES, TARGETS)]
    free = frozenset(FREE_ENDS if mode == "semiglobal" else ())
    table = Table(columns, *sides, scoring, mode, free, "wavefront")
    if output != "alignment":
        return table
    offsets = np.cumsum([0, *(len(a.operations) for a in found)])
    flat = np.concatenate([np.zeros(0, np.uint32), *(a.operations for a in found)])
    return replace(table, operations=flat, operation_offsets=offsets)


def text_of(capsys, table, format, **options):
    write(table, "-", format, **options)
    return capsys.readouterr().out


def lines_of(capsys, table, format, **options):
    text = text_of(capsys, table, format, **options)
    return [line.split("\t") for line in text.splitlines()]


def refused(*arguments, **options):
    with pytest.raises(UsageError) as caught:
        write(*arguments, **options)
    return str(caught.value)


def says(message, *parts):
    missing = [part for part in parts if part not in message]
    assert not missing, f"{missing} not in {message!r}"


# ---- tsv and m8


def test_tsv_of_stats(capsys):
    heading, first, second, *rows = lines_of(capsys, table_of(output="stats"), "tsv")
    assert heading == (
        "query target score identity_alignment columns identities gap_openings gaps "
        "query_start query_end target_start target_end query_length target_length"
    ).split(" ")
    assert first == "q1 t1 51 1.0000 6 6 0 0 0 6 2 8 8 8".split()
    assert second == "q2 t2 14 0.6000 10 6 2 2 0 10 0 8 10 8".split()
    assert rows[0] == "q1 t3 0 nan 0 0 0 0 8 8 0 0 8 1".split()  # nothing aligned


def test_tsv_of_scores_and_identities(capsys):
    assert lines_of(capsys, table_of(output="score"), None)[:2] == [
        ["query", "target", "score"],
        ["q1", "t1", "51"],
    ]
    table = table_of(output="identity")
    heading, first, *_ = lines_of(capsys, table, "tsv", identity="shorter")
    assert heading[3:] == [
        "identity_shorter", "max_identities", "query_length", "target_length",
    ]  # fmt: skip
    assert first[3:] == ["0.7500", "6", "8", "8"]


def test_scaled_scores_are_short_decimals(capsys):
    table = table_of(output="score", scoring=Scoring("BLOSUM62", 10, 0.5))
    table["score"][:] = [49.0, 10.5, 0, -2147483.5, -0.5]
    scores = [row[2] for row in lines_of(capsys, table, "tsv")[1:]]
    assert scores == ["49", "10.5", "0", "-2147483.5", "-0.5"]


def test_names_of_other_tools(capsys):
    names = (
        "qseqid sseqid qstart qend sstart send tstart tend qlen slen tlen alnlen "
        "length mismatch gapopen nident pident fident raw bits evalue cigar qcov tcov"
    ).split()
    rows = lines_of(capsys, table_of(), "tsv", columns=names, identity="query")
    row = dict(zip(names, rows[2], strict=True))
    assert rows[0] == names
    expected = {
        "qseqid": "q2", "sseqid": "t2", "qstart": "1", "qend": "10", "sstart": "1",
        "send": "8", "tstart": "1", "tend": "8", "qlen": "10", "slen": "8", "tlen": "8",
        "alnlen": "10", "length": "10", "mismatch": "2", "gapopen": "2", "nident": "6",
        "pident": "60.000", "fident": "0.6000", "raw": "14", "bits": "nan",
        "evalue": "nan", "cigar": "3M1I3M1I2M", "qcov": "1.000", "tcov": "1.000",
    }  # fmt: skip
    assert row == expected


def test_own_spans_count_from_0_and_others_from_1(capsys):
    names = ["target_start", "sstart", "target_end", "send"]
    rows = lines_of(capsys, table_of(output="stats"), "tsv", columns=names)
    assert rows[1] == ["2", "3", "8", "8"]


def test_fident_follows_the_identity_asked_for_and_pident_does_not(capsys):
    table, names = table_of(output="stats"), ["fident", "pident", "identity_target"]
    row = lines_of(capsys, table, "tsv", columns=names, identity="shorter")[2]
    assert row == ["0.7500", "60.000", "0.7500"]


def test_a_further_column_of_the_table(capsys):
    table = table_of(output="stats")
    table.columns["evalue"] = np.array([1e-30, 0.5, 1, 2, 3])
    table.columns["group"] = np.arange(5)
    rows = lines_of(capsys, table, "tsv", columns=["group", "evalue"])
    assert rows[1] == ["0", "1e-30"]


def test_m8(capsys):
    rows = lines_of(capsys, table_of(output="stats"), "m8")
    assert len(rows) == 5
    assert rows[0] == "q1 t1 100.000 6 0 0 1 6 3 8 nan nan".split()
    assert rows[1] == "q2 t2 60.000 10 2 2 1 10 1 8 nan nan".split()


def test_rows_beyond_one_chunk(capsys):
    table = table_of(output="score")
    n = 250_001
    pairs = np.arange(n, dtype=np.int32) % 3
    columns = {"query": pairs, "target": pairs[::-1], "score": np.arange(n)}
    rows = lines_of(capsys, replace(table, columns=columns), "tsv")
    assert len(rows) == n + 1
    assert [int(row[2]) for row in rows[1:]] == list(range(n))
    assert rows[-1] == ["q2", "t1", "250000"]


@pytest.mark.parametrize("format", ["tsv", "m8", "paf", "maf", "sam", "fasta", "pair"])
def test_no_rows(capsys, format):
    text = text_of(capsys, table_of(rows=[]), format)
    assert "q1" not in text


# ---- sam and paf


def test_sam(capsys):
    header, rows = sam_of(capsys, table_of())
    assert header[0] == ["@HD", "VN:1.6", "SO:unknown"]
    assert header[1:4] == [
        ["@SQ", "SN:t1", "LN:8"],
        ["@SQ", "SN:t2", "LN:8"],
        ["@SQ", "SN:t3", "LN:1"],
    ]
    assert header[4][:3] == ["@PG", "ID:jaxalign", "PN:jaxalign"]
    assert header[4][4] == "DS:semiglobal, BLOSUM62, gap(k) = 11 + 1*(k-1)"
    assert rows[0] == ("q1 0 t1 3 255 6M2S * 0 0 WWCHEYAA * AS:i:51 NM:i:0".split())
    assert rows[1][1:6] == ["0", "t2", "1", "255", "3M1I3M1I2M"]
    assert rows[1][-1] == "NM:i:4"
    assert rows[2][1:6] == ["4", "*", "0", "0", "*"]
    assert rows[3][1:6] == ["256", "t1", "8", "255", "1M9S"]
    assert rows[4][9] == "*"


def sam_of(capsys, table):
    rows = lines_of(capsys, table, "sam")
    first = next(i for i, row in enumerate([*rows, [""]]) if row[0][:1] != "@")
    return rows[:first], rows[first:]


LOCAL = [(0, 0, 1, 3, "4M"), (1, 1, 2, 2, "1M1I3M"), (1, 0, 9, 6, "1M")]
GLOBAL = [(0, 0, 0, 0, "2D6M2I"), (1, 1, 0, 0, "1M2I7M"), (0, 2, 0, 0, "7I1M")]


@pytest.mark.parametrize(
    ("rows", "mode"),
    [(SEMIGLOBAL, "semiglobal"), (LOCAL, "local"), (GLOBAL, "global")],
)
def test_sam_cigars_consume_the_whole_query(capsys, rows, mode):
    table = table_of(rows, mode)
    lengths = dict(zip(table.targets.names, table.targets.lengths, strict=True))
    for row in sam_of(capsys, table)[1]:
        if int(row[1]) & 4:
            continue
        assert consumed(row[5], "MIS") == len(row[9])
        assert int(row[3]) - 1 + consumed(row[5], "MD") <= lengths[row[2]]
        assert re.fullmatch(r"(\d+S)?(\d+[MID])+(\d+S)?", row[5])


def test_sam_has_one_primary_line_a_query(capsys):
    table = table_of([(1, 0, 9, 6, "1M"), (1, 1, 0, 0, "3M"), (0, 0, 0, 2, "6M")])
    assert table["score"].tolist() == [5, 11, 51]
    flags = [(row[0], row[1]) for row in sam_of(capsys, table)[1]]
    assert flags == [("q2", "256"), ("q2", "0"), ("q1", "0")]


def test_sam_of_scaled_scores(capsys):
    table = table_of([SEMIGLOBAL[1]], scoring=Scoring("BLOSUM62", 10, 0.5))
    assert "AS:i" not in text_of(capsys, table, "sam")
    assert sam_of(capsys, table)[1][0][-2] == "as:f:16"


@pytest.mark.parametrize(
    ("side", "name"), [("targets", "a,b"), ("targets", "=a"), ("queries", "a@b")]
)
def test_sam_refuses_names_it_cannot_hold(side, name):
    table = table_of()
    sequences = getattr(table, side)
    renamed = replace(sequences, names=(name, *sequences.names[1:]))
    says(refused(replace(table, **{side: renamed}), "-", "sam"), repr(name), "paf")


def test_paf(capsys):
    rows = lines_of(capsys, table_of(), "paf")
    assert rows[0] == ("q1 8 0 6 + t1 8 2 8 6 6 255 AS:i:51 cg:Z:6M".split())
    assert rows[1][:12] == "q2 10 0 10 + t2 8 0 8 6 10 255".split()
    assert rows[1][13] == "cg:Z:3M1I3M1I2M"
    assert len(rows[2]) == 13
    without = lines_of(capsys, table_of(output="stats"), "paf")
    assert without == [row[:13] for row in rows]


def test_maf(capsys):
    text = text_of(capsys, table_of(SEMIGLOBAL[:2]), "maf")
    version, about, *blocks = text.split("\n", 2)
    assert version == "##maf version=1" and about.startswith("# jaxalign ")
    assert blocks == [
        "\na score=51\ns t1 2 6 + 8 WWCHEY\ns q1 0 6 + 8 WWCHEY\n"
        "\na score=14\ns t2 0 8 + 8 MRV-AWF-XE\ns q2 0 10 + 10 MKVLAWFRHE\n"
    ]
    renamed = replace(table_of().queries, names=("a b", "q2", "q3"))
    says(refused(replace(table_of(), queries=renamed), "-", "maf"), "'a b'", "paf")


# ---- aligned fasta and pair


def test_fasta(capsys):
    text = text_of(capsys, table_of(SEMIGLOBAL[:2]), "fasta")
    assert text == (
        ">q1 pair=1 row=query span=0:6 length=8 mode=semiglobal score=51\nWWCHEY\n"
        ">t1 pair=1 row=target span=2:8 length=8 mode=semiglobal score=51\nWWCHEY\n"
        ">q2 pair=2 row=query span=0:10 length=10 mode=semiglobal score=14\n"
        "MKVLAWFRHE\n"
        ">t2 pair=2 row=target span=0:8 length=8 mode=semiglobal score=14\nMRV-AWF-XE\n"
    )


PAIR = """\
########################################
# Program: jaxalign 1.2.3
# Align_format: srspair
# Scoring: BLOSUM62, gap(k) = 11 + 1*(k-1)
# Mode: semiglobal
# Free_ends: query_end, query_start, target_end, target_start
# Overhang: residues beyond the free ends are written against gaps, \
counted in Length and Gaps
########################################

#=======================================
#
# Aligned_sequences: 2
# 1: q1
# 2: t1
# Matrix: BLOSUM62
# Gap_penalty: 11.0
# Extend_penalty: 1.0
#
# Length: 10
# Identity:       6/10 (60.0%)
# Similarity:     6/10 (60.0%)
# Gaps:           4/10 (40.0%)
# Score: 51
#
#
#=======================================

q1                 1 --WWCHEYAA      8
                       ||||||  \n\
t1                 1 MMWWCHEY--      8


#=======================================
#
# Aligned_sequences: 2
# 1: q2
# 2: t2
# Matrix: BLOSUM62
# Gap_penalty: 11.0
# Extend_penalty: 1.0
#
# Length: 10
# Identity:       6/10 (60.0%)
# Similarity:     7/10 (70.0%)
# Gaps:           2/10 (20.0%)
# Score: 14
#
#
#=======================================

q2                 1 MKVLAWFRHE     10
                     |:| ||| .|
t2                 1 MRV-AWF-XE      8


#---------------------------------------
#---------------------------------------
"""


def test_pair(capsys, monkeypatch):
    monkeypatch.setattr("jaxalign.io.text_formats.program_version", lambda: "1.2.3")
    assert text_of(capsys, table_of(SEMIGLOBAL[:2]), "pair") == PAIR


def test_pair_of_local_shows_the_match_only(capsys):
    text = text_of(capsys, table_of(LOCAL[:1], "local"), "pair")
    says(text, "q1                 2 WCHE      5", "t1                 4 WCHE      7")
    assert "Overhang" not in text


def test_pair_breaks_lines_at_50_and_counts_on(capsys):
    table = table_of([(0, 0, 0, 0, "8M")], "global")
    long = as_sequences([("q1", "W" * 120)], table.scoring.alphabet)
    short = as_sequences([("a_name_longer_than_13", "W" * 60)], table.scoring.alphabet)
    columns = {name: values.copy() for name, values in table.columns.items()}
    columns["query_end"][:], columns["target_end"][:] = 120, 60
    table = replace(
        table,
        columns=columns,
        queries=long,
        targets=short,
        operations=oracle.runs_of_cigar("60M60I"),
        operation_offsets=np.array([0, 2]),
    )
    rows = [r for r in text_of(capsys, table, "pair").splitlines() if r[:1] not in "#"]
    upper = [r for r in rows if r.startswith("q1 ")]
    lower = [r for r in rows if r.startswith("a_name")]
    assert [r.split()[1::2] for r in upper] == [
        ["1", "50"],
        ["51", "100"],
        ["101", "120"],
    ]
    assert [r.split()[1::2] for r in lower] == [["1", "50"], ["51", "60"], ["60", "60"]]
    assert {r.index("W") for r in upper} == {21}
    assert all(r.startswith("a_name_longer ") for r in lower)


# ---- parquet


def test_parquet_reads_back(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    table, path = table_of(), str(tmp_path / "r.parquet")
    write(table, path, identity="shorter")
    back = pq.read_table(path)
    assert back.column_names == [
        "query", "target", "score", "identity_shorter", *STATS, *SPANS,
        "query_length", "target_length", "cigar",
    ]  # fmt: skip
    for name in ("score", *STATS, *SPANS):
        assert np.array_equal(back[name].to_numpy(), table[name]), name
        assert str(back.schema.field(name).type) == "int32"
    assert back["query"].to_pylist() == ["q1", "q2", "q1", "q2", "q3"]
    assert str(back.schema.field("query").type).startswith("dictionary")
    assert back["cigar"].to_pylist() == [table.cigar(i) for i in range(5)]
    identities = back["identity_shorter"].to_pylist()
    assert identities[:4] == [0.75, 0.75, 0.0, 0.0]
    assert math.isnan(identities[4])
    metadata = {k.decode(): v.decode() for k, v in back.schema.metadata.items()}
    assert metadata["jaxalign.scoring"] == str(table.scoring)
    assert metadata["jaxalign.mode"] == "semiglobal"
    assert metadata["jaxalign.implementation"] == "wavefront"
    assert metadata["jaxalign.version"] == system.program_version()
    group = pq.ParquetFile(path).metadata.row_group(0)
    assert group.column(0).compression == "ZSTD"


def test_parquet_row_groups_hold_their_own_names(tmp_path, monkeypatch):
    pq = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(arrow, "ROW_GROUP_OF_PATHS", 2)
    table, path = table_of(), str(tmp_path / "r.parquet")
    write(table, path)
    file = pq.ParquetFile(path)
    held = []
    for k in range(file.num_row_groups):
        group = file.read_row_group(k)["query"]
        held.append((group.to_pylist(), group.chunk(0).dictionary.to_pylist()))
    assert held == [
        (["q1", "q2"], ["q1", "q2"]),
        (["q1", "q2"], ["q1", "q2"]),
        (["q3"], ["q3"]),
    ]
    assert pq.read_table(path)["target"].to_pylist() == [
        table.targets.names[k] for k in table["target"]
    ]


def test_parquet_with_columns_and_without_rows(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    path, names = str(tmp_path / "r.parquet"), ["qseqid", "pident", "cigar"]
    write(table_of(rows=[]), path, columns=names)
    back = pq.read_table(path)
    assert (back.column_names, len(back)) == (names, 0)


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = refused(table_of(), str(tmp_path / "r.parquet"))
    says(message, "pyarrow", "pip install pyarrow")
    assert os.listdir(tmp_path) == []


# ---- where it is written


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_suffix_names_the_format(tmp_path, suffix):
    path = tmp_path / f"result{suffix.upper()}"
    write(table_of(), path)
    assert path.stat().st_size > 0
    assert os.listdir(tmp_path) == [path.name]


def test_format_wins_over_suffix(tmp_path):
    write(table_of(), tmp_path / "r.tsv", "m8")
    assert (tmp_path / "r.tsv").read_text().startswith("q1\tt1\t100.000\t")


@pytest.mark.parametrize("name", ["r.txt", "r", "r.tar"])
def test_unknown_suffix(tmp_path, name):
    message = refused(table_of(), tmp_path / name)
    says(message, name, *SUFFIXES, *FORMATS)
    assert os.listdir(tmp_path) == []


def test_results_are_not_compressed(tmp_path):
    message = refused(table_of(), tmp_path / "r.tsv.gz")
    says(message, "r.tsv.gz: outputs are not compressed; give ", "r.tsv")
    assert os.listdir(tmp_path) == []


def test_parquet_on_standard_output():
    says(refused(table_of(), "-", "parquet"), "binary", "'-'")
    assert resolve_format("-") == "tsv"


def test_existing_output(tmp_path):
    path = tmp_path / "r.tsv"
    path.write_text("mine")
    says(refused(table_of(), path), str(path), "exists", "force=True")
    assert path.read_text() == "mine"
    write(table_of(), path, force=True)
    assert path.read_text().startswith("query\t")


def test_folders(tmp_path):
    message = refused(table_of(), tmp_path / "none" / "r.tsv")
    says(message, str(tmp_path / "none"), "does not exist")
    folder = tmp_path / "r.tsv"
    folder.mkdir()
    says(refused(table_of(), folder, force=True), str(folder), "folder")


@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize("name", ["r.tsv", "r.parquet"])
def test_a_failure_leaves_nothing_behind(tmp_path, monkeypatch, existing, name):
    path = tmp_path / name
    if existing:
        path.write_text("mine")

    def interrupted(self, kind):
        raise KeyboardInterrupt

    monkeypatch.setattr(Table, "identity", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(table_of(), path, force=True)
    assert os.listdir(tmp_path) == ([name] if existing else [])
    assert not existing or path.read_text() == "mine"


def test_links_are_followed_and_devices_are_not_replaced(tmp_path):
    (tmp_path / "real.tsv").write_text("old")
    (tmp_path / "link.tsv").symlink_to(tmp_path / "real.tsv")
    write(table_of(), tmp_path / "link.tsv", force=True)
    assert (tmp_path / "link.tsv").is_symlink()
    assert (tmp_path / "real.tsv").read_text().startswith("query\t")
    write(table_of(), os.devnull, "tsv")
    assert not os.path.isfile(os.devnull)


# ---- names that hold a tab or a line feed

ODD = ["a\tb", "two\nlines", "back\\tslash\x1b"]


def odd_table(output="alignment"):
    table = table_of(output=output)
    names = {side: replace(getattr(table, side), names=tuple(ODD))
             for side in ("queries", "targets")}  # fmt: skip
    return replace(table, **names)


@pytest.mark.parametrize("format", ["tsv", "m8", "paf"])
def test_a_name_shifts_no_row(capsys, format):
    """A tab in a name made a field more, a line feed a line more."""
    rows = lines_of(capsys, odd_table(), format)
    plain = lines_of(capsys, table_of(), format)
    assert [len(row) for row in rows] == [len(row) for row in plain]
    second = 5 if format == "paf" else 1
    numbers = {"q1": 0, "q2": 1, "q3": 2, "t1": 0, "t2": 1, "t3": 2}
    for row, want in zip(rows, plain, strict=True):
        for at in (0, second):
            if want[at] in numbers:
                assert read_back(row[at]) == ODD[numbers[want[at]]]


@pytest.mark.parametrize("format", ["fasta", "pair"])
def test_a_name_breaks_no_line(capsys, format):
    text = text_of(capsys, odd_table(), format)
    says(text, "a\\tb", "two\\nlines", "back\\\\tslash\\x1b")
    plain = text_of(capsys, table_of(), format)
    assert len(text.splitlines()) == len(plain.splitlines())
    assert "\t" not in text and "\x1b" not in text


@pytest.mark.parametrize("format", ["pretty", "fasta", "clustal"])
def test_a_name_breaks_no_line_of_three(capsys, format):
    rows, spans = ("MK", "MR", "M-"), ((0, 2), (0, 2), (0, 1))
    how = Scoring(), "quasi-natural", "global"
    odd, plain = (
        TripleAlignment(("MK", "MR", "M"), names, 5, rows, spans, *how)
        for names in (tuple(ODD), ("a", "b", "c"))
    )
    texts = []
    for found in (odd, plain):
        text_formats.write_triple(found, "-", format)
        texts.append(capsys.readouterr().out)
    assert len(texts[0].splitlines()) == len(texts[1].splitlines())
    says(texts[0], "a\\tb", "two\\nlines", "back\\\\tslash\\x1b")


def test_parquet_holds_names_as_they_are(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    write(odd_table(), str(tmp_path / "r.parquet"))
    back = pq.read_table(str(tmp_path / "r.parquet"))
    assert back["query"].to_pylist()[:2] == [ODD[0], ODD[1]]


@pytest.mark.parametrize("format", ["sam", "graphpart"])
def test_formats_of_others_refuse_such_names(format):
    table = odd_table(output="alignment")
    says(refused(table, "-", format), f"format {format!r} cannot hold", "'a\\tb'")


# ---- columns and data that are not there


@pytest.mark.parametrize(
    "output, format, options, parts",
    [
        ("alignment", "xml", {}, ["'xml'", *FORMATS]),
        ("alignment", None, {"identity": "best"}, ["'best'", "shorter", "alignment"]),
        *(
            (
                "score",
                None,
                {"columns": [name]},
                [repr(name), "output='stats'", "query, target, score"],
            )
            for name in ("qstart", "gaps", "pident", "mismatch", "qcov")
        ),
        ("identity", None, {}, ["'alignment'", "output='stats'"]),
        (
            "score",
            None,
            {"columns": ["identity_query"]},
            ["'identity_query'", "output='identity'"],
        ),
        ("score", "m8", {}, ["format 'm8'", "output='stats'"]),
        ("identity", "paf", {}, ["format 'paf'", "output='stats'"]),
        *(
            ("stats", name, {}, [f"format {name!r}", "output='alignment'"])
            for name in ("sam", "fasta", "pair")
        ),
        ("stats", None, {"columns": ["cigar"]}, ["'cigar'", "output='alignment'"]),
        *(
            ("alignment", name, {"columns": ["query"]}, [repr(name), "csv or parquet"])
            for name in ("m8", "sam", "paf", "maf", "fasta", "pair")
        ),
    ],
    ids=str,
)
def test_what_cannot_be_written(output, format, options, parts):
    says(refused(table_of(output=output), "-", format, **options), *parts)


def test_unknown_column(tmp_path):
    message = refused(table_of(), tmp_path / "r.tsv", columns=["query", "nope"])
    says(message, "'nope'", "qseqid", "identity_shorter", "cigar")
    assert os.listdir(tmp_path) == []


def test_pyarrow_is_imported_only_for_parquet():
    code = (
        "import sys, jaxalign.io.formats; print({'pyarrow', 'jax'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.strip() == "set()", found.stderr
