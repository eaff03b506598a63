"""The command line, in process: goldens, bad input, exit codes, what is written where.

``JAXALIGN_GOLDEN=write pytest tests/cli/test_cli.py`` writes the goldens anew; read the
difference before it is kept.
"""

import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import threading
import tty
from itertools import product
from pathlib import Path
from typing import Annotated, get_args

import jax  # before main(), which else turns on a compilation cache in the home folder
import numpy as np
import pyarrow.parquet as parquet
import pytest
from cases import text_of
from cyclopts import Parameter
from verb_jobs import VERBS
from verb_jobs import words as job

from jaxalign.cli import arguments, terminal
from jaxalign.cli.main import App
from jaxalign.cli.report import duration
from jaxalign.cli.report import size as size_text
from jaxalign.cli.request import scoring_of
from jaxalign.cli.terminal import progress_text, reporting, time
from jaxalign.errors import EXIT_CODES
from jaxalign.io import formats
from jaxalign.model import choices, scoring
from jaxalign.model.alphabet import UNKNOWN_POLICIES
from jaxalign.model.identity import IDENTITIES
from jaxalign.model.scoring import Scoring, load_matrix, matrix_names
from jaxalign.model.table import OUTPUTS
from jaxalign.options import Implementation
from jaxalign.pairs import api, by_rows, jobs, part_stream
from jaxalign.pairs.options import IMPLEMENTATIONS

GOLDEN = Path(__file__).parents[1] / "golden"
A = ">q1 first\nMKTAYIAKQR\nWNE\n>q2\nHEAGAWGHEE\n>q3\nMRVX\n"
B = ">t1\nMKTAIAKQRE\n>t2\nPAWHEAE\n>t3\nMRVX\n"
ONE = ">only\nHEAGAWGHEE\n"
DONE, FAILED, USAGE, INPUT, MEMORY, DEVICE, LEAK, FORGED, INTERRUPTED = EXIT_CODES


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with the inputs; names in messages stay short."""
    monkeypatch.chdir(tmp_path)
    for name, text in {"a.fa": A, "b.fa": B, "one.fa": ONE}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def golden(name: str, text: str):
    path = GOLDEN / name
    if os.environ.get("JAXALIGN_GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()


def without_version(text: str) -> str:
    return re.sub(r"(jaxalign |VN:)(?!1\.6)[\w.+]+", r"\1VERSION", text)


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_align_both_strands(run, folder):
    (folder / "q.fa").write_text(">q\nACGTACCCGATTGGAA\n")
    (folder / "t.fa").write_text(">t\nTTTTCCAATCGGGTACGTCC\n")
    words = "align", "q.fa", "t.fa", "--preset", "blastn", "--format", "paf"
    spans = {}
    for strand in (None, "plus", "minus", "both"):
        code, out, err = run(*words, *(strand and ("--strand", strand) or ()))
        assert code == DONE
        spans[strand] = out.split("\t")[2:9]
        said = {"both": "plus and minus"}.get(strand, strand)
        assert (f"; strands {said}" in err) == (strand is not None)
    # Letters 1 to 16 of the query are the complements of 18 to 3 of the target.
    assert spans["both"] == spans["minus"] == ["0", "16", "-", "t", "20", "2", "18"]
    assert spans[None] == spans["plus"] != spans["both"]
    answer = json.loads(run(*words[:5], "--strand", "both", "--json")[1])
    assert answer["strands"] == [1, -1] and "strands" not in answer["plan"]
    code, _, err = run("align", "a.fa", "b.fa", "--strand", "both")
    assert code == USAGE and "nucleotides have two strands" in err
    code, _, err = run("align", "a.fa", "b.fa", "--embeddings", "--strand", "both")
    assert code == USAGE and "--strand is about letters" in err


# Goldens -----------------------------------------------------------------------------


def test_align_zips(run):
    code, out, err = run("align", "a.fa", "b.fa", "--output", "alignment")
    assert code == DONE
    golden("align.tsv", out)
    heading, summary = err.splitlines()
    assert heading.startswith(
        "jaxalign: BLOSUM62, gap(k) = 11 + 1*(k-1); global; protein alphabet; "
        "output alignment; rows (a small job: about 0.0"
    )
    assert "3 pairs computed" in summary and "GCUPS" not in summary


def test_one_against_all_is_the_same_from_either_side(run):
    wanted = ("--columns", "query,target,score", "--output", "score", "-q")
    code, out, err = run("align", "one.fa", "a.fa", *wanted)
    assert (code, err) == (DONE, "")
    rows = [line.split("\t") for line in out.splitlines()[1:]]
    assert [row[1] for row in rows] == ["q1", "q2", "q3"]
    _, other, _ = run("align", "a.fa", "one.fa", *wanted)
    swapped = [line.split("\t") for line in other.splitlines()[1:]]
    assert [[t, q, score] for q, t, score in swapped] == rows


@pytest.mark.parametrize(
    "name, words",
    [
        ("all.pair", ()),
        ("all.sam", ()),
        ("all.paf", ()),
        ("all.fasta", ("--include-self",)),
        ("all_cigar.tsv", ("--columns", "qseqid,sseqid,pident,qstart,qend,cigar")),
    ],
)
def test_all_with_paths(run, folder, name, words):
    code, out, err = run("all", "a.fa", "-o", name, *words)
    assert (code, out) == (DONE, "")
    assert "output alignment" in err, "a format with paths raises the output"
    golden(name, without_version((folder / name).read_text()))


def test_blast_preset(run, folder):
    code, _, err = run("all", "a.fa", "--preset", "blastp", "-o", "all.m8")
    assert code == DONE
    assert "BLOSUM62, gap(k) = 12 + 1*(k-1); local" in err
    golden("all.m8", (folder / "all.m8").read_text())


def test_needle_preset_is_fractional_and_semiglobal(run):
    words = ("--preset", "needle", "--columns", "query,target,score,identity_full")
    code, out, err = run("align", "one.fa", "b.fa", *words)
    assert code == DONE
    assert "gap(k) = 10 + 0.5*(k-1); semiglobal" in err
    golden("needle.tsv", out)


def test_empty_sequence_is_aligned(run, folder):
    (folder / "e.fa").write_text(">none\n>some\nMKV\n")
    code, out, _ = run("all", "e.fa", "-q", "--columns", "score,columns,gaps,cigar")
    assert code == DONE
    assert out.splitlines()[1] == "-13\t3\t3\t3D"


def test_standard_input(run, monkeypatch):
    data = io.TextIOWrapper(io.BytesIO(gzip.compress(A.encode())))
    monkeypatch.setattr(sys, "stdin", data)
    code, out, _ = run("align", "-", "b.fa", "-q", "-o", "-", "--output", "alignment")
    assert code == DONE
    golden("align.tsv", out)


def test_min_identity_counts_what_it_drops(run):
    words = ("--min-identity", "0.6", "--output", "score", "--identity", "shorter")
    code, out, err = run("align", "a.fa", "b.fa", *words)
    assert code == DONE
    assert [line.split("\t")[0] for line in out.splitlines()[1:]] == ["q1", "q3"]
    assert "3 pairs computed, 2 kept (identity_shorter >= 0.6)" in err


def test_graphpart_reads_whole_headings(run):
    words = ("--format", "graphpart", "-o", "edges.csv", "-q")
    code, _, err = run("all", "a.fa", *words)
    assert code == DONE
    assert err.startswith("jaxalign: warning: a.fa: headings have descriptions")
    code, _, err = run("all", "b.fa", *words, "--force")
    assert (code, err) == (DONE, "")


def test_filters_name_their_columns(run):
    words = "--min-score 13 --min-cov 0.2 --coverage query --min-identity 0.1 -q"
    words += " --min-length-ratio 0.75 --mode semiglobal"
    code, out, _ = run("align", "a.fa", "b.fa", *words.split(), "--json")
    found = json.loads(out)
    assert code == DONE and found["filters"] == {
        "min_score": 13,
        "min_identity": 0.1,
        "min_cov": 0.2,
        "min_length_ratio": 0.75,
        "coverage": "query",
        "identity": "alignment",
    }
    assert found["pairs"] == {"computed": 3, "kept": 2}
    for wrong in (["--min-cov", "2"], ["--min-score", "nan"], ["--coverage", "any"]):
        assert run("align", "a.fa", "b.fa", *wrong)[0] == USAGE


def test_devices_by_number(run):
    words = ("all", "a.fa", "--output", "score", "-q")
    code, out, _ = run(*words)
    assert code == DONE
    assert run(*words, "--devices", "1,3") == (DONE, out, "")
    assert run(*words, "--devices", "4")[0] == DEVICE
    assert run(*words, "--devices", "one")[0] == USAGE


def test_json(run, folder):
    words = "--json --min-identity 0.9 --output alignment -o out.tsv -q".split()
    code, out, err = run("align", "a.fa", "b.fa", *words)
    assert (code, err) == (DONE, "")
    found = json.loads(out)
    assert found["pairs"] == {"computed": 3, "kept": 0}
    assert found["scoring"]["formula"] == str(Scoring())
    assert found["mode"] == "global" and found["free_ends"] == []
    first = found["inputs"][0]
    assert first["sha256"] == hashlib.sha256(A.encode()).hexdigest()
    assert (first["records"], first["residues"]) == (3, 27)
    assert found["implementation"] == "rows" and found["reason"]
    assert found["cells"] == 13 * 10 + 10 * 7 + 4 * 4
    assert found["gcups"] > 0 and found["seconds"] > 0 and found["warnings"] == []
    assert found["device"] == {"platform": "cpu", "kind": "NumPy", "count": 1}
    assert {"jaxalign", "jax", "jaxlib", "python"} <= set(found["versions"])
    assert len((folder / "out.tsv").read_text().splitlines()) == 1


def test_a_terminal_shows_the_alignments_of_few_pairs(run, folder, monkeypatch):
    """Ten pairs at most, and only where no option says what is printed; a pipe has a
    table."""

    def shown(*words):
        """What a terminal gets: the program writes to one end of a pair of devices."""
        ours, theirs = os.openpty()
        tty.setraw(theirs)  # no line feed becomes two characters
        parts: list[bytes] = []
        reader = threading.Thread(target=lambda: parts.extend(read_all(ours)))
        reader.start()
        with monkeypatch.context() as patch, open(theirs, "w") as stream:
            patch.setattr(sys, "stdout", stream)
            code, _, err = run(*words)
        reader.join()
        os.close(ours)
        return code, b"".join(parts).decode(), err

    table = run("align", "a.fa", "b.fa")[1]
    pair = run("align", "a.fa", "b.fa", "--format", "pair")[1]
    assert table.count("\n") == 4 and pair.count("# Length:") == 3
    assert without_version(shown("align", "a.fa", "b.fa")[1]) == without_version(pair)
    (folder / "many.fa").write_text("".join(f">n{k}\nMKTAYIAK\n" for k in range(11)))
    (folder / "ten.fa").write_text("".join(f">n{k}\nMKTAYIAK\n" for k in range(10)))
    (folder / "long.fa").write_text(f">l\n{'MKTAYIAKQR' * 1001}\n")
    assert shown("align", "one.fa", "ten.fa")[1].count("# Length:") == 10
    for words in (
        "align one.fa many.fa",
        "align one.fa long.fa",
        "align a.fa b.fa --output score",
        "align a.fa b.fa --identity shorter",
        "align a.fa b.fa --format m8",
        "align a.fa b.fa --columns query,cigar",
        "align a.fa b.fa -o -",
        "all a.fa",
        "search a.fa b.fa",
    ):
        piped = run(*words.split())
        assert piped[0] == DONE and shown(*words.split())[:2] == piped[:2], words
    about = json.loads(shown("align", "a.fa", "b.fa", "--json")[1])
    assert about["output"] == "stats"
    code, out, _ = shown("align", "a.fa", "b.fa", "-o", "o.tsv")
    assert (code, out) == (DONE, "") and (folder / "o.tsv").read_text() == table


def read_all(device):
    """The blocks that are written to a terminal, until it is closed."""
    with contextlib.suppress(OSError):  # of Linux, where the other end is closed
        while block := os.read(device, 4096):
            yield block


@pytest.mark.parametrize("format", ["sam", "paf"])
def test_nucleotides_in_sam_and_paf_need_a_mode(run, folder, format):
    """A read is not aligned from end to end with its reference by default."""
    (folder / "r.fa").write_text(f">r\n{READ}\n")
    (folder / "g.fa").write_text(f">g\n{GENE}\n")
    for line in ("align r.fa g.fa", "all g.fa", "align r.fa g.fa --alphabet rna"):
        words = (*line.split(), "-o", f"o.{format}", "-q")
        err = refused(run, folder, USAGE, *words)
        for option in ("--free-ends t5,t3", "--mode local", "--mode global"):
            assert option in err
            assert run(*words, *option.split(), "--force")[0] == DONE, option
        assert run(*words, "--preset", "blastn", "--force")[0] == DONE
        (folder / f"o.{format}").unlink()
    for line in ("search r.fa g.fa", "align r.fa g.fa --alphabet protein"):
        assert run(*line.split(), "-o", f"o.{format}", "--force", "-q")[0] == DONE


# Scoring from options ----------------------------------------------------------------


def made(*words):
    """The scoring of option words, by way of the real parser."""
    app = App(result_action="return_value")
    app.default(_scoring_verb)
    return app(list(words), exit_on_error=False, print_error=False)


FLAT, USUAL = Parameter(name="*"), arguments.ScoringOptions()


def _scoring_verb(*, chosen: Annotated[arguments.ScoringOptions, FLAT] = USUAL):
    return scoring_of(chosen)


@pytest.mark.parametrize(
    "words, expected",
    [
        ("", "BLOSUM62, gap(k) = 11 + 1*(k-1)"),
        ("--gap-style blast", "BLOSUM62, gap(k) = 12 + 1*(k-1)"),
        ("--gap-open 5 --gap-extend 2", "BLOSUM62, gap(k) = 5 + 2*(k-1)"),
        ("--gap-open 5 --gap-extend 2", "BLOSUM62, gap(k) = 5 + 2*(k-1)"),
        ("--gap-open 5 --gap-extend 2 --gap-style blast", "BLOSUM62, gap(k) = 7 + 2*("),
        ("--preset blastp --gap-style blast", "BLOSUM62, gap(k) = 12 + 1*(k-1)"),
        ("--preset ssearch --matrix PAM30", "PAM30, gap(k) = 12 + 2*(k-1)"),
        ("--preset blastn --mismatch -2", "match 2 / mismatch -2, gap(k) = 7 + 2*("),
        ("--preset blastn --gap-extend 3", "match 2 / mismatch -3, gap(k) = 7 + 3*("),
        (
            "--preset blastn --gap-style blast",
            "match 2 / mismatch -3, gap(k) = 7 + 2*(",
        ),
        (
            "--preset blastn --gap-style blast --gap-extend 3",
            "match 2 / mismatch -3, gap(k) = 8 + 3*(k-1)",
        ),
        ("--alphabet dna", "match 2 / mismatch -3, gap(k) = 7 + 2*(k-1)"),
        ("--alphabet rna --mismatch -2", "match 2 / mismatch -2, gap(k) = 7 + 2*(k-1)"),
        ("--alphabet dna --gap-style blast", "match 2 / mismatch -3, gap(k) = 7 + 2*("),
        ("--match 1 --mismatch -2", "match 1 / mismatch -2, gap(k) = 7 + 2*(k-1)"),
        (
            "--match 1 --mismatch -2 --alphabet protein",
            "match 1 / mismatch -2, gap(k) = 11 + 1*(k-1)",
        ),
        ("--alphabet rna --matrix NUC", "NUC, gap(k) = 11 + 1*(k-1)"),
        ("--preset needle --alphabet dna", "EDNAFULL, gap(k) = 10 + 0.5*(k-1)"),
        ("--preset needle --alphabet rna", "EDNAFULL, gap(k) = 10 + 0.5*(k-1)"),
        ("--preset needle --alphabet dna --matrix NUC", "NUC, gap(k) = 10 + 0.5*(k"),
        ("--gap-open 10 --gap-extend 0.5", "BLOSUM62, gap(k) = 10 + 0.5*(k-1)"),
    ],
)
def test_scoring_options(words, expected):
    assert str(made(*words.split())).startswith(expected)


def test_the_default_scoring_and_the_alphabet_of_rna():
    found, default = made(), Scoring()
    assert found.scores.tolist() == default.scores.tolist()
    assert (found.open, found.extend, found.scale) == (11, 1, 1)
    assert found.alphabet == default.alphabet
    assert made("--alphabet", "rna").alphabet.kind == "rna"
    assert made("--alphabet", "rna", "--matrix", "NUC").alphabet.kind == "rna"


NUCLEIC = "ACGTTGCAAGGCTTACGATTRNA"
CHOSEN = "match 2 / mismatch -3, gap(k) = 7 + 2*(k-1)"
SCORED = "all letters of n.fa are nucleotides and are scored as"


@pytest.mark.parametrize(
    "words, kind, scoring",
    [
        ("", "dna", CHOSEN),
        ("--gap-open 5 --gap-extend 2", "dna", "match 2 / mismatch -3, gap(k) = 5 + "),
        ("--preset needle", "dna", "EDNAFULL, gap(k) = 10 + 0.5*(k-1)"),
        ("--matrix PAM30", "protein", "PAM30"),
        ("--preset blastp", "protein", "BLOSUM62, gap(k) = 12 + 1*(k-1)"),
        (
            "--alphabet protein",
            None,
            "BLOSUM62, gap(k) = 11 + 1*(k-1); global; protein",
        ),
        ("--alphabet dna", None, CHOSEN + "; global; dna alphabet"),
        (
            "--preset blastn",
            None,
            "match 2 / mismatch -3, gap(k) = 7 + 2*(k-1); local; dna",
        ),
        (
            "--match 1 --mismatch -1",
            None,
            "match 1 / mismatch -1, gap(k) = 7 + 2*(k-1)",
        ),
    ],
)
def test_nucleotides_are_scored_as_what_they_are(run, folder, words, kind, scoring):
    """They say so; as protein with a warning, unless an alphabet is named."""
    (folder / "n.fa").write_text(f">x\n{NUCLEIC}\n>y\n{NUCLEIC.lower()}\n")
    code, _, err = run("all", "n.fa", *words.split())
    assert code == DONE and scoring in err and ("warning" in err) == (kind == "protein")
    if kind:
        assert f"{SCORED} {kind}" in err and f"{kind} alphabet" in err
    assert ("--alphabet protein" in err) == (kind == "dna")


def test_uracil_says_rna_and_few_nucleotides_protein(run, folder):
    (folder / "n.fa").write_text(f">x\n{NUCLEIC.replace('T', 'U')}\n>y\nACGU\n")
    code, out, err = run("all", "n.fa", "--json")
    about = json.loads(out)
    assert code == DONE and err.startswith(f"jaxalign: {SCORED} rna ({CHOSEN})")
    assert about["scoring"]["alphabet"] == "rna" and about["warnings"] == []
    assert run("all", "n.fa", "--json", "-q")[2] == ""
    (folder / "n.fa").write_text(">x\nACGTN\n>y\nACGN\n")
    code, _, err = run("info", "--plan", "n.fa")
    assert code == DONE and f"warning: {SCORED} protein" in err
    assert "--alphabet dna" in err and "--preset blastn" in err


READ, GENE = NUCLEIC.replace("R", "C")[2:], f"CC{NUCLEIC.replace('R', 'C')}"
MET = {  # verb: words, after its files
    "align": "r.fa g.fa --output stats",
    "search": "r.fa g.fa --columns pident,score",
    "nearest": "r.fa g.fa --strand plus",
    "audit": "r.fa g.fa --min-identity 0.5 --min-length-ratio 0.1",
    "purge": "g.fa --against r.fa --min-identity 0.5",
    "all": "b.fa --output stats",
    "dedup": "b.fa --min-identity 0.5",
}


@pytest.mark.parametrize("verb", MET)
def test_reads_of_rna_meet_genes_of_dna(run, folder, verb):
    """U is T, on whichever side and in whichever record: without an option and with
    --alphabet rna; as a file and as an index."""
    outcomes = []
    for read, gene in product((str, uracils), repeat=2):
        records = {"r": f">r\n{read(READ)}\n", "g": f">g\n{gene(GENE)}\n"}
        records["b"] = records["r"] + records["g"]
        for name, text in records.items():
            (folder / f"{name}.fa").write_text(text)
        for words in ("", " --alphabet rna"):
            code, out, _ = run(verb, *(MET[verb] + words).split(), "--force", "-q")
            outcomes.append((code, uracils(out)))
        if verb in ("search", "nearest"):
            kind = "dna" if gene is str else "rna"
            index = ["index", "g.fa", "--alphabet", kind, "--force", "-q"]
            assert run(*index)[0] == DONE
            words = MET[verb].replace("g.fa", "g.fa.jaxdb")
            code, out, _ = run(verb, *words.split(), "-q")
            outcomes.append((code, uracils(out)))
    assert len({*outcomes}) == 1 and outcomes[0][0] in (DONE, 6), outcomes


# Of repertoire both files are tables or CDR3, which nucleotides are an error in.
TWO_FILES = [x for x in VERBS if {"x", "y"} <= {*job(x, ["x", "y"])}]
TWO_FILES.remove("repertoire")


TWO_FILES[TWO_FILES.index("soft")] = pytest.param("soft", marks=pytest.mark.slow)


@pytest.mark.parametrize("verb", TWO_FILES)
def test_nucleotides_that_meet_proteins_are_warned_of(run, folder, verb):
    """On either side, as DNA and as RNA, in a file and against an index."""
    files = {"d.fa": GENE, "u.fa": uracils(GENE), "p.fa": "MKTAYIAKQRQISFVKSHFSRQ"}
    for name, text in files.items():
        (folder / name).write_text(f">x\n{text}\n")
    assert run(*"index p.fa -o p.jaxdb -q".split())[0] == DONE
    pairs = [("d.fa", "p.fa"), ("p.fa", "d.fa"), ("p.fa", "u.fa")]
    for a, b in [*pairs, ("u.fa", "p.jaxdb")] if verb in READ_INDEX else pairs:
        nucleic, protein = (a, b) if a in ("d.fa", "u.fa") else (b, a)
        code, _, err = run(*job(verb, [a, b], "-q"))
        codes = (INPUT,) if nucleic == "u.fa" else (DONE, LEAK)  # no residue is U
        assert code in codes and err.count("nucleotides") == 1, (a, b, err)
        assert f"letters of {nucleic} are nucleotides and are scored as protein" in err
        assert f"those of {protein} are not: translate them first" in err, (a, b)
    told = job(verb, ["d.fa", "p.fa"], "-q", "--alphabet", "protein")
    assert "nucleotides" not in run(*told)[2]
    (folder / "r.fa").write_text(">y\nMKTAIAKQRQISFVKSHFRQ\n")
    assert "nucleotides" not in run(*job(verb, ["r.fa", "p.fa"], "-q"))[2]


READ_INDEX = ("align", "search", "nearest", "family")


def uracils(text):
    return text.translate(str.maketrans("Tt", "Uu"))


@pytest.mark.slow
def test_every_verb_knows_nucleotides(run, folder):
    (folder / "n.fa").write_text("".join(f">s{k}\n{NUCLEIC}\n" for k in range(3)))
    for words in (
        ("align", "n.fa", "n.fa"),
        ("all", "n.fa", "-o", "parts/"),
        ("search", "n.fa", "n.fa"),
        ("search", "n.fa", "n.fa", "-o", "found/"),
        ("three", "n.fa"),
        ("soft", "n.fa", "n.fa"),
        ("info", "--plan", "n.fa"),
        ("index", "n.fa"),
    ):
        code, _, err = run(*words)
        assert code == DONE and "are nucleotides and are scored as dna" in err, words
        assert "arning" not in err


def test_unknown_letters_when_asked_are_counted(run, folder):
    (folder / "u.fa").write_text(">x\nMUOK\n>y\nMKKJ\n")
    code, out, err = run(*"all u.fa --unknown X -q --json --output score".split())
    assert code == DONE
    assert json.loads(out)["inputs"][0]["substituted"] == 3
    assert "warning: u.fa: 3 unknown letters are read as X" in err


def test_choices_are_those_of_the_code():
    pairs = [
        (choices.Mode, scoring.MODES),
        (arguments.PresetName, scoring.PRESET_NAMES),
        (choices.Output, OUTPUTS),
        (arguments.Format, formats.FORMATS),
        (choices.Identity, IDENTITIES),
        (Implementation, IMPLEMENTATIONS),
        (arguments.ScoringOptions.__annotations__["unknown"], UNKNOWN_POLICIES),
    ]
    for words, known in pairs:
        assert set(get_args(words)) == set(known)


# Bad input ---------------------------------------------------------------------------

BAD_FILES = {
    "U": (">a\nMK\n>x\nMKU\n", ["line 4, column 3", "record 2 ('x')", "'U'"]),
    "O": (">x\nOMK\n", ["line 2, column 1", "record 1 ('x')", "'O'"]),
    "J": (">x\nMK\nMJ\n", ["line 3, column 2", "'J'", "--unknown X"]),
    "digit": (">x\nMK1\n", ["line 2, column 3", "'1'", "alphabet is"]),
    "gap": (">x\nM-K\n", ["line 2, column 2", "'-'", "unaligned"]),
    "empty": ("", ["is empty", "'>'"]),
    "headless": ("MKV\n", ["line 1, column 1", "'>'", "'MKV'"]),
    "duplicate": (">x\nM\n>y\nM\n>x z\nM\n", ["line 5", "record 3", "record 1"]),
    "truncated": (gzip.compress(A.encode() * 50)[:-12], ["gzip", "truncated"]),
}


def refused(run, folder, code, *words):
    """The one message of a refusal; nothing is printed, written or traced."""
    before = names(folder)
    found, out, err = run(*words)
    assert (found, out) == (code, "")
    assert err.startswith("jaxalign: error: ") and err.count("error: ") == 1
    assert "Traceback" not in err
    assert names(folder) == before
    return err


@pytest.mark.parametrize("kind", BAD_FILES)
def test_bad_file(run, folder, kind):
    content, parts = BAD_FILES[kind]
    data = content if isinstance(content, bytes) else content.encode()
    (folder / "bad.fa").write_bytes(data)
    message = refused(run, folder, INPUT, "all", "bad.fa", "-o", "out.tsv")
    assert message.startswith("jaxalign: error: bad.fa")
    assert not [part for part in parts if part not in message]


@pytest.mark.parametrize(
    "words, part",
    [
        ("--gap-open 1 --gap-extend 2", "--gap-extend = 2 exceeds --gap-open = 1"),
        ("--gap-open -1", "--gap-open = -1"),
        ("--gap-extend -0.5", "--gap-extend = -0.5"),
        ("--gap-open nan", "finite"),
        ("--matrix BLOSUM63", "unknown matrix 'BLOSUM63'"),
        ("--matrix PAM30 --match 1", "exclude each other"),
        ("--match 1", "match and mismatch are needed together"),
        ("--alphabet dna --matrix PAM30", "PAM30 are protein"),
        ("--mode local --free-ends q5", "--free-ends goes with mode 'global'"),
        (
            "--free-ends q5,x3",
            "--free-ends x3: unknown end; choose from q5, q3, t5, t3",
        ),
        ("--mode glocal", "Choose from"),
        ("--min-identity 30", "a fraction from 0 to 1"),
        ("--columns query,score,what", "column 'what' is unknown"),
        ("--output score --columns gaps", "--output stats"),
        ("--output identity --identity alignment", "computes no path"),
        ("-o none/out.tsv", "folder none does not exist"),
        ("-o b.fa", "b.fa: exists; use --force"),
        ("-o out.xyz", "is not a format"),
        ("--format parquet", "give a file name"),
        ("--format sam --columns query", "fixed columns"),
        ("--json -o -", "-o FILE"),
        ("--json --format m8", "-o FILE"),
        ("--memory-budget lots", "write it as 2GiB"),
        ("--threads 0", "threads = 0"),
        ("--no-such", "Unknown option"),
        ("surplus", "surplus"),
    ],
)
def test_bad_usage(run, folder, words, part):
    assert part in refused(run, folder, USAGE, "all", "a.fa", *words.split())


@pytest.mark.parametrize(
    "words, code, part",
    [
        ("align a.fa none.fa -o x.tsv", INPUT, "none.fa: no such file"),
        ("align a.fa two.fa", USAGE, "a.fa has 3 records, two.fa has 2"),
        ("align - -", USAGE, "once"),
        ("align a.fa", USAGE, ""),
        ("align --bad a.fa b.fa", USAGE, ""),
        ("nothing", USAGE, ""),
        ("matrices BLOSUM63", USAGE, "BLOSUM63"),
        ("all a.fa --coverage query", USAGE, "without --min-cov"),
        *(
            (f"all a.fa --preset {name} --alphabet dna", USAGE, "are protein")
            for name in ("blastp", "ssearch", "mmseqs", "parasail")
        ),
    ],
)
def test_bad_arguments(run, folder, words, code, part):
    (folder / "two.fa").write_text(">x\nM\n>y\nM\n")
    assert part in refused(run, folder, code, *words.split())


def test_a_name_sam_cannot_hold_is_refused_before_the_work(run, folder, monkeypatch):
    monkeypatch.setattr("jaxalign.pairs.api.align_all", None)
    (folder / "odd.fa").write_text(">a,b\nMK\n>c\nMK\n")
    message = refused(run, folder, USAGE, "all", "odd.fa", "-o", "out.sam")
    assert "'a,b'" in message


def test_force_replaces(run, folder):
    (folder / "out.tsv").write_text("old")
    words = ("align", "a.fa", "b.fa", "-o", "out.tsv", "--output", "alignment")
    before = names(folder)
    assert run(*words, "--force")[0] == DONE
    assert names(folder) == before
    golden("align.tsv", (folder / "out.tsv").read_text())


def test_memory_budget_names_the_size_that_fits(run, folder):
    words = ("align", "a.fa", "b.fa", "-o", "out.tsv", "--memory-budget")
    message = refused(run, folder, MEMORY, *words, "100")
    fits = re.search(r"a budget of (\d+) bytes would fit", message)[1]
    assert run(*words, fits)[0] == DONE


def test_absent_device(run, folder):
    if jax.default_backend() != "cpu":
        pytest.skip("has a GPU")
    message = refused(run, folder, DEVICE, "all", "a.fa", "--device", "gpu")
    assert "--device gpu" in message
    assert run("all", "a.fa", "--device", "gpu", "--output", "score")[0] == DEVICE


@pytest.mark.parametrize(
    "error, code, part",
    [
        (KeyboardInterrupt(), INTERRUPTED, "interrupted"),
        (MemoryError("host"), MEMORY, "out of memory (host)"),
        (RuntimeError("RESOURCE_EXHAUSTED: 3 GiB"), MEMORY, "RESOURCE_EXHAUSTED"),
        (ZeroDivisionError("oops"), FAILED, "ZeroDivisionError: oops"),
    ],
)
def test_failure_while_running(run, folder, monkeypatch, error, code, part):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("jaxalign.pairs.api.run_plan", fail)
    assert part in refused(run, folder, code, "all", "a.fa", "-q", "-o", "out.tsv")


def test_failure_while_writing_leaves_nothing(run, folder, monkeypatch):
    def break_off(table, columns, identity):
        if len(table):
            raise OSError("disk full")
        return iter(())

    monkeypatch.setitem(formats.TEXTS, "tsv", break_off)
    words = ("align", "a.fa", "b.fa", "-q", "--output", "alignment", "-o", "out.tsv")
    assert "disk full" in refused(run, folder, FAILED, *words)


def test_verbose_shows_the_traceback(run):
    code, _, err = run("all", "none.fa", "-v")
    assert code == INPUT
    assert "Traceback" in err and err.splitlines()[-1].startswith("jaxalign: error: ")


# Other verbs -------------------------------------------------------------------------


def test_matrices_lists_and_prints(run, folder):
    code, out, _ = run("matrices")
    assert code == DONE and tuple(out.split("\n")[:-1]) == matrix_names()
    code, out, _ = run("matrices", "PAM30")
    (folder / "copy.mat").write_text(out)
    letters, scores = load_matrix("copy.mat")
    assert letters == load_matrix("PAM30")[0]
    assert scores.tolist() == load_matrix("PAM30")[1].tolist()


def test_info_and_plan(run):
    code, out, _ = run("info", "--plan", "a.fa", "--output", "score", "--threads", "1")
    assert code == DONE
    words = "jaxlib: ", "platform: ", "implementation: sweep", "implementation: rows"
    for part in (*words, "windows: 1"):
        assert part in out
    code, out, _ = run("info", "--plan", "a.fa", "--json")
    plan = json.loads(out)["plan"]
    assert (plan["pairs"], plan["records"], plan["dtypes"]) == (3, 3, ["int16"])


def test_info_says_what_the_options_give(run, folder):
    code, out, _ = run("info", "--threads", "1", "--memory-budget", "1GiB", "--json")
    runs = json.loads(out)["runs"]
    assert (code, runs["threads"], runs["budget_bytes"]) == (DONE, 1, 2**30)
    assert "device 7" in refused(run, folder, DEVICE, "info", "--devices", "7")
    words = ("info", "--plan", "a.fa", "--memory-budget", "1kB")
    assert "would fit" in refused(run, folder, MEMORY, *words)


def test_a_u_in_dna(run, folder):
    (folder / "u.fa").write_text(">x\nACGUU\n")
    words = ("all", "u.fa", "--alphabet", "dna", "-o", "out.tsv")
    message = refused(run, folder, INPUT, *words)
    assert "--alphabet rna reads U" in message
    assert "(and 1 more unknown letter)" in message


def test_a_set_too_large_for_one_table_still_has_a_folder(run, folder, monkeypatch):
    monkeypatch.setattr(part_stream, "PART_ROWS", 3000)
    (folder / "n.fa").write_text("".join(f">s{k}\nMK\n" for k in range(400)))
    words = ("--memory-budget", "3MiB", "--threads", "1", "--json")
    code, out, _ = run("info", "--plan", "n.fa", *words)
    found = json.loads(out)
    assert code == DONE and found["folder_plan"]["parts"] > 20
    assert "memory budget is 3 MiB" in found["plan"]["refused"]
    assert "-o FOLDER/" in found["plan"]["refused"]
    assert found["folder_plan"]["pairs"] == 400 * 399 // 2


def test_soft_prints_and_saves(run, folder):
    """The first record of each file; the numbers are the library's."""
    import jaxalign

    words = ("soft", "a.fa", "b.fa", "--temperature", "0.5", "-o", "p.npz")
    code, out, _ = run(*words)
    assert code == DONE
    head, numbers, _, said, *rows = out.splitlines()
    assert head.split("\t")[2:5] == [
        "soft_score",
        "expected_pairs",
        "expected_identities",
    ]
    hard = jaxalign.align("MKTAYIAKQRWNE", "MKTAIAKQRE")
    assert abs(float(numbers.split("\t")[2]) - hard.score) < 0.5
    assert tuple(rows) == hard.rows() and hard.cigar() in said
    saved = np.load(folder / "p.npz")
    assert saved["posterior"].shape == (13, 10) and list(saved["names"]) == ["q1", "t1"]
    assert tuple(saved["rows"]) == hard.rows() and saved["cigar"] == hard.cigar()
    assert "--force" in refused(run, folder, USAGE, *words)
    assert "temperature" in refused(
        run, folder, USAGE, *words[:3], "--temperature", "0"
    )


def test_soft_does_not_print_a_long_alignment(run, folder, monkeypatch):
    """It says how to have it."""
    monkeypatch.setattr("jaxalign.cli.soft.LONGEST_PRINTED", 12)
    code, out, _ = run("soft", "a.fa", "b.fa", "-o", "p.npz")
    assert code == DONE and "-o OUT.npz" in out and "MKTAYIA" not in out
    assert "most accurate alignment: 13 columns" in out
    assert np.load(folder / "p.npz")["rows"][0] == "MKTAYIAKQRWNE"


@pytest.mark.slow
def test_embeddings(run, folder):
    """Pairs in order, of several shapes; numbers are those of the library."""
    import jaxalign

    rng = np.random.default_rng(5)
    sides = [
        {f"{name}{k}": rng.normal(size=(size, 4)).astype("f4") for k, size in sizes}
        for name, sizes in (
            ("q", [(0, 9), (2, 0)]),
            ("t", [(0, 7), (2, 5)]),
        )
    ]
    for file, arrays in zip("ab", sides, strict=True):
        np.savez(folder / f"{file}.npz", **arrays)
    words = ("align", "--embeddings", "a.npz", "b.npz", "--gap-open", "2")
    words += ("--gap-extend", "0.5", "--mode", "local")
    code, out, said = run(*words)
    assert code == DONE and "2 pairs" in said
    heading, *lines = [line.split("\t") for line in out.splitlines()]
    assert heading[-2:] == ["cigar", "partners"]
    gaps = {"gap_open": 2, "gap_extend": 0.5, "mode": "local"}
    for line, x, y in zip(lines, *sides, strict=True):
        best = jaxalign.hard_alignment((sides[0][x], sides[1][y]), **gaps)
        assert line[:2] == [x, y] and line[7] == best.alignment().cigar()
        np.testing.assert_allclose(float(line[2]), best.score, rtol=1e-4)
        assert line[3:7] == [str(k) for k in best.spans.tolist()]
        partners = ",".join(map(str, best.partners.tolist())) or "*"
        assert line[8] == partners
    code, _, _ = run(*words, "-o", "out.tsv")
    assert code == DONE and (folder / "out.tsv").read_text() == out
    assert "--force" in refused(run, folder, USAGE, *words, "-o", "out.tsv")
    assert "--gap-open" in refused(run, folder, USAGE, *words[:4])
    assert "letters" in refused(run, folder, USAGE, *words, "--min-score", "3")
    assert "npz" in refused(run, folder, INPUT, *words[:2], "a.fa", *words[3:])
    np.savez(folder / "b.npz", t=np.zeros((3, 5)), u=np.full((3, 5), np.nan))
    assert "nan" in refused(run, folder, INPUT, *words)
    np.savez(folder / "b.npz", t=np.zeros((3, 5)))
    assert "4 and 5 numbers" in refused(run, folder, INPUT, *words)
    np.savez(folder / "b.npz", **{x: np.zeros((3, 4)) for x in "tuv"})
    assert "array k" in refused(run, folder, USAGE, *words)


@pytest.mark.parametrize(
    "kind, power",
    [
        ("f8", 300),
        ("u8", 64),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (("f4", 127), ("f2", 16), ("f8", 60), ("f4", -200))
        ),
    ],
)
def test_embeddings_that_overflow(run, folder, kind, power):
    """A finite score, or a refusal that names the array or the pair."""
    with np.errstate(over="ignore"):
        value = np.array(2.0**power if kind == "f8" else min(2.0**power, 3e38))
        value = value.astype(kind) if kind != "u8" else np.uint64(2 ** min(power, 63))
    for file, name in (("a", "long"), ("b", "other")):
        x = np.full((3, 2), value, kind)
        x[1] = 0
        np.savez(folder / f"{file}.npz", **{name: x})
    words = ("align", "--embeddings", "a.npz", "b.npz", "--gap-open", "2")
    code, out, err = run(*words, "--gap-extend", "1", "--mode", "semiglobal")
    if code == DONE:
        assert np.isfinite(float(out.splitlines()[1].split("\t")[2])) and power < 64
    else:
        assert code == INPUT and "long" in err and power >= 16
    code, _, err = run(*words[:-1], "1e38", "--gap-extend", "1")
    assert code in (INPUT, USAGE) and ("long" in err or "gap" in err)


@pytest.mark.slow
def test_embeddings_with_letters(run, folder):
    """Formats of letters show the same alignments."""
    rng = np.random.default_rng(6)
    for file, name, size in (("a", "q", 5), ("b", "t", 4)):
        np.savez(folder / f"{file}.npz", **{name: rng.normal(size=(size, 3))})
    (folder / "both.fa").write_text(">t\nMKVA\n>q\nMKIVA\n")
    words = ("align", "--embeddings", "a.npz", "b.npz", "--gap-open", "2")
    words += ("--gap-extend", "1")
    code, out, _ = run(*words)
    cigar = out.splitlines()[1].split("\t")[7]
    letters = ("--sequences", "both.fa")
    code, out, _ = run(*words, *letters, "--format", "fasta")
    assert code == DONE
    query, target = (line for line in out.split("\n") if line[:1] not in (">", ""))
    assert (query.replace("-", ""), target.replace("-", "")) == ("MKIVA", "MKVA")
    code, out, _ = run(*words, *letters, "--format", "sam")
    assert code == DONE and out.splitlines()[-1].split("\t")[5] == cigar
    code, out, _ = run(*words, *letters, "--columns", "cigar,bits")
    assert code == DONE and out.split()[-2:] == [cigar, "nan"]
    (folder / "both.fa").write_text(">t\nMKVA\n>q\nMKIV\n")
    assert "letters" in refused(run, folder, INPUT, *words, *letters)
    (folder / "both.fa").write_text(">t\nMKVA\n")
    assert "no sequence" in refused(run, folder, INPUT, *words, *letters)
    assert "--embeddings" in refused(run, folder, USAGE, "align", "a", "b", *letters)


@pytest.mark.slow
def test_soft_draws_a_picture(run, folder):
    pytest.importorskip("matplotlib")
    words = ("soft", "a.fa", "b.fa", "--mode", "local", "--plot")
    assert run(*words, "p.png")[0] == DONE
    assert (folder / "p.png").read_bytes()[1:4] == b"PNG"
    assert "picture" in refused(run, folder, USAGE, *words, "p.doc")


def test_help_names_verbs_and_exit_codes(run):
    code, out, _ = run("--help")
    assert code == DONE
    told = " ".join(out.split())
    assert all(verb in told for verb in ("align", "all", "info", "soft"))
    assert all(f"{code} {text}" in told for code, text in EXIT_CODES.items())
    assert run("--version")[0] == DONE


# Start, pipes, progress --------------------------------------------------------------


@pytest.mark.parametrize(
    "words, without",
    [
        (["--help"], "jax jaxlib numpy"),
        (["align", "--help"], "jax jaxlib numpy"),
        (["all", "--help"], "jax jaxlib numpy"),
        (["matrices"], "jax jaxlib"),
    ],
)
def test_light_verbs_import_no_jax(words, without):
    code = (
        "import sys; from jaxalign.cli.main import main; assert main("
        f"{words}) == 0; assert not {set(without.split())} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert (done.returncode, done.stderr) == (DONE, b"")


def test_a_closed_pipe_is_quiet():
    reading, writing = os.pipe()
    os.close(reading)
    words = [sys.executable, "-m", "jaxalign", "matrices"]
    with os.fdopen(writing) as pipe:
        done = subprocess.run(words, stdout=pipe, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (FAILED, b"")


SIZED = ("all", "align", "search", "nearest", "family", "cluster", "dedup", "split")
SIZED += ("audit", "purge")


@pytest.mark.parametrize("verb", SIZED)
def test_a_long_job_says_before_it_how_long_it_will_take(
    run, folder, monkeypatch, verb
):
    """By its cells and by rates, here tiny ones; the answer is the same."""
    texts = "MKTAYIAKQRQISFVKSHFSRQ", "HEAGAWGHEEPAWHEAEWWCC", "LLVVTTSSNNGGFFYYPPDDKK"
    for name, some in (
        ("x.fa", texts[:1] if verb == "family" else texts),
        ("y.fa", texts),
    ):
        lines = (f">{name[0]}{k}\n{text}\n" for k, text in enumerate(some))
        (folder / name).write_text("".join(lines))
    words = job(verb, ["x.fa", "y.fa"], "--threads", "1", "--no-cache")
    words += ["-o", "-"] if verb == "all" else []
    code, answer, err = run(*words)
    assert code in (DONE, LEAK) and "jaxalign: about " not in err
    slow = dict.fromkeys(api.CELLS_A_SECOND, (1e-2, 1e-2))
    monkeypatch.setattr(api, "CELLS_A_SECOND", slow)
    monkeypatch.setattr(by_rows, "may_have_gpu", lambda: False)
    assert (code, answer, "") == (*run(*words, "-q")[:2], "")
    said = run(*words)[2]
    (line,) = [x for x in said.splitlines() if x.startswith("jaxalign: about ")]
    if verb == "all":
        cells = 22 * 21 + 22 * 22 + 21 * 22
        days = f"{cells / 1e-2 / 86400:.2g} days"
        assert line == f"jaxalign: about {days}, 0.14 kB of rows"


@pytest.mark.parametrize(
    "words",
    [
        "index a.fa",
        "soft a.fa b.fa -o x.npz",
        "three three.fa",
        "three three.fa --all",
        *(f"repertoire three.fa --metric {x}" for x in ("tcrdist", "levenshtein")),
        "repertoire three.fa --against three.fa --metric alignment --part-rows 1",
    ],
)
def test_other_long_jobs_are_told_beforehand(run, folder, monkeypatch, words):
    text = "".join(f">{x}\nMKTAYIAKQ\n" for x in "abc")
    (folder / "three.fa").write_text(text)
    first = run(*words.split(), "--force")
    assert first[0] == DONE and "jaxalign: about " not in first[2]
    monkeypatch.setattr(api, "LONG_JOB", 0)
    code, answer, err = run(*words.split(), "--force")
    assert (code, answer) == first[:2]
    (line,) = [x for x in err.splitlines() if x.startswith("jaxalign: about ")]
    assert ("posterior" in line, "index" in line) == (words[0] == "s", words[0] == "i")
    before, _, after = err.partition(line)
    assert ";" in before or after.strip()
    assert "about" not in run(*words.split(), "--force", "-q")[2]


def test_times_and_sizes_for_people():
    for seconds, text in (
        (60, "1 minute"), (700, "12 minutes"), (5399, "90 minutes"),
        (5400, "1.5 hours"), (1e5, "28 hours"), (2e5, "2.3 days"), (1e8, "1200 days"),
    ):  # fmt: skip
        assert duration(seconds) == text, seconds
    for count, text in (
        (140, "0.14 kB"),
        (3.3e9, "3.3 GB"),
        (9.996e8, "1 GB"),
        (2e12, "2 TB"),
    ):
        assert size_text(count) == text, count


@pytest.mark.parametrize("output", ["score", "identity", "stats", "alignment"])
def test_the_size_of_rows_is_about_that_of_the_file(run, folder, monkeypatch, output):
    """Within a factor of 1.5, of proteins with names of 20 letters."""
    rng = np.random.default_rng(5)
    records = {
        f"{k:020}": text_of(rng, 40 + k, "ACDEFGHIKLMNPQRSTVWY") for k in range(60)
    }
    text = "".join(f">{name}\n{letters}\n" for name, letters in records.items())
    (folder / "p.fa").write_text(text)
    slow = dict.fromkeys(api.CELLS_A_SECOND, (1e-2, 1e-2))
    monkeypatch.setattr(api, "CELLS_A_SECOND", slow)
    monkeypatch.setattr(by_rows, "may_have_gpu", lambda: False)
    code, _, err = run("all", "p.fa", "--output", output, "-o", "p.tsv")
    assert code == DONE
    said = float(re.search(r"([\d.]+) kB of rows", err)[1]) * 1000
    assert 2 / 3 < said / os.path.getsize("p.tsv") < 3 / 2


@pytest.mark.parametrize("words", ["index a.fa", "soft a.fa b.fa"])
def test_indices_and_soft_alignments_say_how_far_they_are(run, folder, words):
    code, _, err = run(*words.split(), "--progress", "json")
    states = [json.loads(x)["progress"] for x in err.splitlines() if x[:1] == "{"]
    assert code == DONE and (words[0] == "i" or states[-1]["cells_done"] == 13 * 10)
    assert not [x for x in run(*words.split(), "-q")[2].splitlines() if x[:1] == "{"]


def told(kind, capsys, monkeypatch, quiet=False, terminal=False):
    """What a report of four seconds' work prints, a report each second."""
    clock = iter(range(100))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    with reporting(kind, quiet) as report:
        for done in (10**9, 2 * 10**9, 4 * 10**9) if report else ():
            report(done, 4 * 10**9)
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_progress_says_that_programs_are_compiled(capsys, monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    with reporting("json") as report:
        report.programs(0, 8)
        report.programs(2, 8)
        report(5, 10)
        report.programs(8, 8)
    told = [json.loads(x)["progress"] for x in capsys.readouterr().err.splitlines()]
    assert [x.get("programs_compiled") for x in told] == [0, 2, 2, None]
    assert progress_text(told[1]) == "0 cells, compiling 3 of 8"
    assert progress_text(told[2]) == "5 cells, compiling 3 of 8"
    assert "GCUPS" in progress_text(told[3])


def test_progress_is_shown_before_the_first_cells_are_done(monkeypatch):
    """A first piece may take a minute."""
    shown = threading.Event()
    monkeypatch.setattr(terminal, "TICK", 1e-3)
    monkeypatch.setattr(terminal, "EVERY", {"json": 0.0})
    monkeypatch.setattr(terminal, "_as_json", lambda now: shown.set() or str(now))
    with reporting("json"):
        assert shown.wait(60)


def test_progress_as_json(capsys, monkeypatch):
    lines = told("json", capsys, monkeypatch).splitlines()
    states = [json.loads(line)["progress"] for line in lines]
    assert [state["cells_done"] for state in states] == [10**9, 2 * 10**9, 4 * 10**9]
    assert states[0] == {
        "cells_done": 10**9,
        "cells_total": 4 * 10**9,
        "seconds": 1,
        "gcups": 1.0,
        "eta_seconds": 3.0,
    }


def test_progress_says_how_many_devices_are_at_work(capsys, monkeypatch):
    monkeypatch.setattr(time, "monotonic", iter(range(9)).__next__)
    with reporting("json") as report:
        report.busy(2, 4)
        report(10**9, 2 * 10**9)
    now = json.loads(capsys.readouterr().err)["progress"]
    assert (now["devices_busy"], now["devices"]) == (2, 4)
    assert progress_text(now).endswith(", 2 of 4 devices busy")


def test_progress_for_people(capsys, monkeypatch):
    line = "jaxalign: 100% of 4e+09 cells, 1.33 GCUPS, ETA 0:00:00\n"
    assert told("plain", capsys, monkeypatch) == line
    # rich draws from a thread of its own, so the clock may have ticked more often.
    bar = r"100% of 4e\+09 cells, [\d.]+ GCUPS"
    assert re.search(bar, told("bar", capsys, monkeypatch))
    # Nothing for short work or when quiet.
    assert told("none", capsys, monkeypatch) == ""
    assert told("auto", capsys, monkeypatch) == ""
    assert told("auto", capsys, monkeypatch, quiet=True, terminal=True) == ""
    assert "GCUPS" in told("auto", capsys, monkeypatch, terminal=True)


def test_demo(run):
    """A table of the best and worst pairs, one alignment, and what it cost."""
    code, out, err = run("demo")
    assert code == DONE
    assert "best 10, last 3 of 120 pairs" in out
    assert "# 1: P69905" in out and "# 2: P68871" in out
    assert "; global; a small job: about" in out
    assert "120 pairs" in err and "cells" in err


@pytest.mark.parametrize("output", ["score", "stats", "alignment"])
def test_a_large_parquet_file_is_written_part_by_part(run, folder, monkeypatch, output):
    dice = np.random.default_rng(3)
    texts = ("".join(dice.choice(list("ACDEFGHIKL"), n)) for n in range(1, 41))
    (folder / "set.fa").write_text(
        "".join(f">s{k}\n{x}\n" for k, x in enumerate(texts))
    )
    monkeypatch.setattr(part_stream, "QUERIES_STEP", 4)
    words = "all", "set.fa", "--output", output, "--implementation", "rows", "--json"
    code, whole, _ = run(*words, "-o", "whole.parquet")
    assert code == DONE
    parts = []
    stream = jobs.stream

    def watch(task, some, options):
        for part, table in stream(task, some, options):
            parts.append(len(table))
            yield part, table

    monkeypatch.setattr(jobs, "stream", watch)
    monkeypatch.setattr(part_stream, "PART_ROWS", 250)
    code, by_parts, _ = run(*words, "-o", "parts.parquet")
    assert code == DONE and len(parts) >= 3 and sum(parts) == 40 * 39 // 2
    rows = [parquet.read_table(f"{x}.parquet").to_pylist() for x in ("whole", "parts")]
    assert rows[0] == rows[1]
    said = [json.loads(x) for x in (whole, by_parts)]
    assert said[0]["pairs"] == said[1]["pairs"]
    assert said[0].keys() == said[1].keys()
    # Rows that are left out make parts of few rows: they are joined first.
    parts.clear()
    filtered = "all", "set.fa", "--min-score", "5", "-o", "some.parquet", "--force"
    assert run(*filtered)[0] == DONE
    assert parquet.ParquetFile("some.parquet").num_row_groups == 1
