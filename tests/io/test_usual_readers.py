"""What is written is read by the programs and libraries that people give it to: names
of any length, with signs that mean something there, overhangs, both strands, and all
sizes of sequences. A reader that is not installed is left out."""

import importlib
import io
import re
import shutil
import subprocess

import numpy as np
import pytest
from draws import pairwise

import jaxalign
from jaxalign.errors import UsageError
from jaxalign.io import formats
from jaxalign.model.alphabet import from_parts
from jaxalign.model.strands import other_strand

NAMES = {
    "short": "q1",
    "14": "ABCDEFGHIJKLMN",
    "200": "n" * 200,
    "bars": "sp|P69905|HBA_HUMAN",
    "colon": "chr1:100-200",
    "utf-8": "prot\u00e9ine_\U0001f9ec",
    "blanks": "two words",
    "number": "7",
    "hash": "#1",
}
MODES = ("local", "global", "semiglobal")
LENGTHS = (7, 50, 51, 130)
STRANDS = ("plus", "minus")
LETTERS = "ACGT"


def word(rng, length):
    return "".join(rng.choice(list(LETTERS), length))


def drawn(seed: int):
    """(what was drawn, a table of one alignment) for pairs of all factors."""
    names = list(NAMES)
    cases = pairwise(names, names, MODES, LENGTHS, STRANDS, seed=seed)
    rng = np.random.default_rng(seed)
    for query, target, mode, length, strand in cases:
        core = word(rng, length)
        before, half = int(rng.integers(44, 56)), length // 2
        long = word(rng, before) + core[:half] + "A" + core[half:]
        long += word(rng, int(rng.integers(60)))
        texts = [word(rng, 3) + core, long]
        scoring = jaxalign.Scoring(match=2, mismatch=-3, gap_open=5, gap_extend=2)
        if strand == "minus":
            texts[0] = other_strand(texts[0], scoring.alphabet)
        sets = [
            from_parts([name], [scoring.alphabet.encode(text)], scoring.alphabet)
            for name, text in zip((NAMES[query], NAMES[target]), texts, strict=True)
        ]
        table = jaxalign.align_pairs(
            *sets, scoring, mode=mode, strand="both", output="alignment"
        )
        yield (query, target, mode, length, strand), table


@pytest.fixture(scope="module", params=[0, pytest.param(1, marks=pytest.mark.slow)])
def alignments(request):
    return list(drawn(request.param))


def text_of(table, format, path) -> str:
    formats.write(table, path, format, force=True)
    return path.read_text(encoding="utf-8")


def test_pair_by_biopython(alignments, tmp_path):
    align_io = pytest.importorskip("Bio.AlignIO")
    align = importlib.import_module("Bio.Align")
    for case, table in alignments:
        text = text_of(table, "pair", tmp_path / "o.pair")
        (one,) = table.alignments()
        rows = one.rows()
        (read,) = align_io.parse(io.StringIO(text), "emboss")
        # It takes a row whose first block has one residue for one of the other strand.
        if any(re.match(r"-*[^-](-{49}|-*$)", str(x.seq)) for x in read):
            continue
        (again,) = align.parse(io.StringIO(text), "emboss")
        for k, row in enumerate(rows):
            name = (table.queries, table.targets)[k].names[0]
            name = re.sub("[ :]", "_", name)
            assert read[k].id == again.sequences[k].id == name, case
            assert row in str(read[k].seq) and row in again[k], case
        # The overhang is there, so each row has every letter that it may show.
        whole = one.mode != "local"
        for k, text in enumerate((one.query, one.target)):
            letters = str(read[k].seq).replace("-", "")
            assert letters == (text if whole else rows[k].replace("-", "")), case


def read_by_biopython(table, format, path):
    """A parsed alignment, (names, target span); None where the format refuses."""
    align = pytest.importorskip("Bio.Align")
    try:
        text = text_of(table, format, path)
    except UsageError as error:
        assert "cannot hold" in str(error)
        return None
    (read,) = align.parse(io.StringIO(text), format)
    ends = (int(read.coordinates[0][k]) for k in (0, -1))
    return (read.query.id, read.target.id), tuple(ends)


@pytest.mark.parametrize("format", ["sam", "maf"])
def test_spans_by_biopython(format, alignments, tmp_path):
    refused = set()
    for case, table in alignments:
        read = read_by_biopython(table, format, tmp_path / "o")
        (one,) = table.alignments()
        if read is None:
            refused |= {case[:2]}
            continue
        assert read == (
            (one.query_name, one.target_name),
            (one.target_start, one.target_end),
        ), case
    assert all({"utf-8", "blanks", "hash"} & {*names} for names in refused), refused


def test_sam_by_samtools(alignments, tmp_path):
    pysam = pytest.importorskip("pysam")
    for case, table in alignments:
        if not (NAMES[case[0]] + NAMES[case[1]]).isascii() or "blanks" in case:
            continue
        text_of(table, "sam", tmp_path / "o.sam")
        with pysam.AlignmentFile(str(tmp_path / "o.sam")) as file:
            (read,) = list(file)
        (one,) = table.alignments()
        assert (read.query_name, read.reference_name) == (
            one.query_name,
            one.target_name,
        )
        assert read.is_reverse == (table["strand"][0] < 0)
        assert (read.reference_start, read.reference_end) == (
            one.target_start,
            one.target_end,
        ), case


@pytest.mark.parametrize("format", ["tsv", "m8", "paf"])
def test_tables_by_pandas(format, alignments, tmp_path):
    pandas = pytest.importorskip("pandas")
    for case, table in alignments:
        text_of(table, format, tmp_path / "o.tsv")
        heading = 0 if format == "tsv" else None
        rows = pandas.read_csv(tmp_path / "o.tsv", sep="\t", header=heading, dtype=str)
        names = rows.iloc[0, [0, 5 if format == "paf" else 1]].tolist()
        assert names == [table.queries.names[0], table.targets.names[0]], case


@pytest.fixture(scope="module")
def families():
    """A family whose names are odd, the query's too."""
    rng = np.random.default_rng(3)
    letters = "ARNDCQEGHILKMFPSTWYV"
    query = "".join(rng.choice([*letters], 80))
    names = [*NAMES.values(), "//end", "#=GC RF", "a#b", "ss_predicted"]
    changed = (
        "".join(rng.choice([*letters]) if rng.random() < 0.3 else x for x in query)
        for _ in names
    )
    noise = [(f"n{k}", "".join(rng.choice([*letters], 90))) for k in range(60)]
    database = [*zip(names, changed, strict=True), *noise]
    queries = [(name, query) for name in names]
    found = jaxalign.search_family(queries, database, iterations=2)
    assert all(len(family) == len(names) + 1 for family in found)
    return found


def test_families_by_their_readers(families, tmp_path):
    for family in families:
        for end in (".a3m", ".sto", ".hmm"):
            family.write(tmp_path / f"x{end}", force=True)
        rows = [row for row in family.rows() if row]
        text = (tmp_path / "x.a3m").read_text(encoding="utf-8")
        assert [x for x in text.split("\n") if x and x[0] != ">"] == rows
        profiles = [
            jaxalign.Profile.from_alignment(tmp_path / "x.a3m"),
            jaxalign.Profile.from_alignment(tmp_path / "x.sto", max_gaps=0.99),
            jaxalign.Profile.from_hmm(tmp_path / "x.hmm"),
        ]
        positions = len(family.query)
        assert len(profiles[0]) == len(profiles[2]) == positions <= len(profiles[1])
        hits = jaxalign.search(profiles[2], [family.query, family.query[::-1]], top=1)
        assert hits["target"].tolist() == [0]
        align_io = pytest.importorskip("Bio.AlignIO")
        (read,) = align_io.parse(tmp_path / "x.sto", "stockholm")
        assert len(read) == len(family)
        plain = ["".join(x for x in row if x != "-").upper() for row in rows]
        assert [str(row.seq.replace("-", "")).upper() for row in read] == plain


@pytest.mark.skipif(not shutil.which("hmmsearch"), reason="HMMER is not here")
def test_families_by_hmmsearch(families, tmp_path):
    for family in families:
        family.write(tmp_path / "x.hmm", force=True)
        (tmp_path / "q.fa").write_text(f">hit\n{family.query}\n")
        command = ["hmmsearch", "--noali", tmp_path / "x.hmm", tmp_path / "q.fa"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert ">> hit" in done.stdout


def test_several_and_empty_alignments_by_biopython(tmp_path):
    align_io = pytest.importorskip("Bio.AlignIO")
    align = importlib.import_module("Bio.Align")
    queries, targets = ["WWWWHHHH", "MKV", "CCCC"], ["WWWWHHHH", "P", "CCCC"]
    table = jaxalign.align_pairs(queries, targets, mode="local", output="alignment")
    assert table["score"][1] == 0
    for order in ([0, 1, 2], [1, 0, 2], [0, 2, 1]):
        text = text_of(table.filter(np.array(order)), "pair", tmp_path / "o.pair")
        assert "score 0, no columns" in text
        for read in (align_io.parse, align.parse):
            found = [
                str(x[0].seq if read is align_io.parse else x[0])
                for x in read(io.StringIO(text), "emboss")
            ]
            assert found == [queries[k] for k in order if k != 1], order
