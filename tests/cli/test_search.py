"""``jaxalign search`` and ``jaxalign index``, in process."""

import io
import json
from pathlib import Path

import jax  # noqa: F401  (before main(): else it turns on a compilation cache)
import pytest

import jaxalign
from jaxalign.errors import EXIT_CODES
from jaxalign.io import fasta
from jaxalign.model.scoring import Scoring

QUERY = ">q1 first\nMKTAYIAKQR\nWNE\n>q2\nHEAGAWGHEE\n"
DB = ">t1\nMKTAIAKQRE\n>t2\nPAWHEAE\n>t3\nMKTAYIAKQRWNE\n>t4\nPAWHEAE\n>t5\nGG\n"
DONE, FAILED, USAGE, INPUT, MEMORY, DEVICE, LEAK, FORGED, INTERRUPTED = EXIT_CODES


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.fa").write_text(QUERY)
    (tmp_path / "d.fa").write_text(DB)


def table(text):
    head, *rows = (line.split("\t") for line in text.splitlines())
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_tsv(run):
    code, out, err = run("search", "q.fa", "d.fa", "--top", "2")
    rows = table(out)
    assert code == DONE
    hits = [(row["query"], row["target"], row["score"]) for row in rows]
    assert hits == [("q1", "t3", "71"), ("q1", "t1", "31"), ("q2", "t2", "17"),
                    ("q2", "t4", "17")]  # fmt: skip
    assert rows[0]["bits"] and float(rows[0]["evalue"]) < float(rows[1]["evalue"])
    assert "local" in err and "5 sequences of 39 residues searched; 4 hits" in err


def test_m8_has_12_columns(run):
    code, out, _ = run("search", "q.fa", "d.fa", "--top", "1", "--format", "m8", "-q")
    first = out.splitlines()[0].split("\t")
    assert code == DONE and len(first) == 12
    assert first[:10] == ["q1", "t3", "100.000", "13", "0", "0", "1", "13", "1", "13"]
    found = jaxalign.search(*both(), top=1)
    assert first[10:] == [f"{found['evalue'][0]:.3g}", f"{found['bits'][0]:.4g}"]


def both():
    return (fasta.read(x, Scoring().alphabet) for x in ("q.fa", "d.fa"))


@pytest.mark.parametrize("format", ["sam", "pair", "paf", "fasta", "parquet"])
def test_other_formats_name_hits_only(run, tmp_path, format):
    out = str(tmp_path / f"out.{format}")
    code, *_ = run("search", "q.fa", "d.fa", "--top", "1", "-o", out)
    data = (tmp_path / f"out.{format}").read_bytes()
    assert code == DONE and b"t3" in data and b"t5" not in data
    assert run("search", "q.fa", "d.fa", "-o", out)[0] == USAGE


def test_columns_and_filters(run):
    words = ("search", "q.fa", "d.fa", "--columns", "target,evalue,cigar,pident")
    code, out, _ = run(*words, "--max-evalue", "1e-3")
    assert code == DONE
    assert [(r["target"], r["cigar"]) for r in table(out)] == [("t3", "13M")]
    code, out, err = run(*words, "--min-identity", "0.9")
    assert {r["target"] for r in table(out)} >= {"t3"} and "hits of" in err
    code, out, _ = run("search", "q.fa", "d.fa", "--output", "score", "--top", "1")
    assert list(table(out)[0]) == ["query", "target", "score", "bits", "evalue"]


def test_an_index_gives_the_same_bytes(run):
    code, _, err = run("index", "d.fa")
    assert code == DONE and "5 sequences, 39 residues, longest 13" in err
    want = run("search", "q.fa", "d.fa", "-q")[1]
    assert run("search", "q.fa", "d.fa.jaxdb", "-q")[1] == want
    plain = run("all", "d.fa", "--output", "score", "-q")[1]
    assert run("all", "d.fa.jaxdb", "--output", "score", "-q")[1] == plain
    code, _, err = run("index", "d.fa.jaxdb", "--verify")
    assert code == DONE and "checksums are right" in err


def test_json(run):
    run("index", "d.fa", "-q")
    words = ("--json", "--top", "3", "-o", "x.tsv", "-q")
    code, out, err = run("search", "q.fa", "d.fa.jaxdb", *words)
    about = json.loads(out)
    assert code == DONE and err == ""
    assert about["database"]["sequences"] == 5
    assert len(about["database"]["sha256"]) == len(about["inputs"][0]["sha256"]) == 64
    assert about["hits"]["found"] == len(table(Path("x.tsv").read_text()))
    assert about["cells"] == 23 * 39 and about["mode"] == "local"


def test_unknown_letters_of_a_database(run, tmp_path):
    (tmp_path / "u.fa").write_text(">u\nMKTAUIAKQR\n")
    code, _, err = run("search", "q.fa", "u.fa")
    assert code == INPUT and "line 2, column 5" in err and "--unknown X" in err
    code, out, err = run("search", "q.fa", "u.fa", "--unknown", "X")
    assert code == DONE and "1 unknown letters are read as X" in err
    assert run("index", "u.fa", "--unknown", "X")[0] == DONE


@pytest.mark.parametrize(
    "words, code, message",
    [
        (("search", "q.fa", "none.fa"), INPUT, "no such file"),
        (("search", "none.fa", "d.fa"), INPUT, "no such file"),
        (("search", "-", "-"), USAGE, "standard input can be read only once"),
        (("search", "q.fa", "d.fa", "--top", "0"), USAGE, "--top 0"),
        (("search", "q.fa", "d.fa", "--output", "identity"), USAGE, "Choose from"),
        (("search", "q.fa", "d.fa", "--mode", "global", "--max-evalue", "1"), USAGE,
         "only local scores have E-values"),
        (("search", "q.fa", "d.fa", "--max-evalue", "-1"), USAGE, "0 or more"),
        (("search", "q.fa", "d.fa", "--columns", "nonsense"), USAGE, "nonsense"),
        (("search", "q.fa", "d.fa", "--memory-budget", "1kB"), MEMORY, "would fit"),
        (("search", "q.fa", "d.fa", "--device", "gpu"), DEVICE, "gpu"),
        (("search", "q.fa"), USAGE, "DB"),
        (("index", "none.fa"), INPUT, "no such file"),
        (("index", "-"), USAGE, "-o OUT"),
        (("index", "d.fa", "--verify"), INPUT, "not an index"),
    ],
)  # fmt: skip
def test_refusals(run, words, code, message):
    found, out, err = run(*words)
    assert (found, out) == (code, "") and message in err


NUCLEIC = "ACGTTGCAAGGCTTACGATT"


@pytest.mark.parametrize("alphabet", ["dna", "protein", None])
def test_nucleotides_and_what_they_are_searched_in(run, tmp_path, alphabet):
    """The alphabet of an index decides, or the first letters of FASTA."""
    (tmp_path / "n.fa").write_text(f">n\n{NUCLEIC}\n")
    database = "n.fa"
    if alphabet:
        assert run("index", "n.fa", "--alphabet", alphabet, "-q") == (0, "", "")
        database = "n.fa.jaxdb"
    code, _, err = run("search", "n.fa", database)
    kind = alphabet or "dna"
    assert code == 0 and f"are nucleotides and are scored as {kind}" in err
    assert f"; {kind} alphabet; " in err  # both strands, where there are two
    assert ("strands plus and minus" in err) == (kind == "dna")
    code, _, err = run("search", "n.fa", database, "--gap-open", "8")
    assert ("dna alphabet, plus strands (--strand both" in err) == (kind == "dna")
    code, _, err = run("search", "n.fa", "d.fa")
    assert code == 0 and "protein alphabet" in err


@pytest.mark.parametrize("kind", ["dna", "rna"])
def test_an_index_of_nucleotides_is_scored_as_what_it_is(run, tmp_path, kind):
    """Without a word of the command line, whether or not a FASTA says so too."""
    letters = NUCLEIC if kind == "dna" else NUCLEIC.replace("T", "U")
    (tmp_path / "n.fa").write_text(f">n\n{letters}\n>m\n{letters[2:]}\n")
    (tmp_path / "few.fa").write_text(f">n\n{letters[:9]}\n")
    assert run("index", "n.fa", "-q")[0] == 0
    assert run("all", "n.fa.jaxdb", "-q") == run("all", "n.fa", "-q")
    for query in ("few.fa", "n.fa", "n.fa.jaxdb"):
        code, out, err = run("search", query, "n.fa.jaxdb")
        assert code == 0 and f"; {kind} alphabet; " in err, err
        assert out == run("search", query, "n.fa")[1]
    assert run("search", "d.fa", "n.fa.jaxdb")[0] == INPUT


def test_a_wrong_index(run, tmp_path):
    run("index", "d.fa", "-q")
    assert run("index", "d.fa.jaxdb")[0] == USAGE
    assert run("index", "d.fa")[0] == USAGE
    data = (tmp_path / "d.fa.jaxdb").read_bytes()
    (tmp_path / "short").write_bytes(data[:-3])
    code, _, err = run("search", "q.fa", "short")
    assert code == INPUT and "truncated" in err
    (tmp_path / "n.fa").write_text(">n\nACGT\n")
    code, _, err = run("search", "n.fa", "d.fa.jaxdb", "--preset", "blastn")
    assert code == INPUT and "letters" in err


def test_strands_of_a_command(run, tmp_path):
    (tmp_path / "q.fa").write_text(">q\nACGTACCCGATTGGAA\n")
    (tmp_path / "d.fa").write_text(">t\nTTTTCCAATCGGGTACGTCC\n")
    command = ("search", "q.fa", "d.fa", "--top", "1", "-o", "hits.m8", "--force")
    spans = {}
    for words in ((), ("--strand", "plus"), ("--strand", "minus")):
        code, _, err = run(*command, "--preset", "blastn", *words)
        assert code == DONE
        spans[words[-1:]] = Path("hits.m8").read_text().split("\t")[6:10]
        assert "; strands " + (" ".join(words[1:]) or "plus and minus") in err
    assert spans[()] == spans[("minus",)] == ["1", "16", "18", "3"]
    assert spans[("plus",)] != spans[()]
    assert run(*command, "--preset", "blastp", "--strand", "both")[0] == USAGE


def test_evalues_are_fitted_where_none_are_published(run):
    words = ("search", "q.fa", "d.fa", "--preset", "ssearch", "--max-evalue", "0.01")
    code, out, err = run(*words)
    assert code == 0 and "E-values fitted to this search, lambda" in err
    rows = table(out)
    assert rows[0]["target"] == "t3"
    assert all(0 <= float(row["evalue"]) <= 0.01 for row in rows)
    code, out, err = run(*words[:-2], "--statistics", "published")
    assert code == 0 and "fitted" not in err and table(out)[0]["evalue"] == "nan"
    code, out, _ = run(*words[:3], "--json", "--statistics", "fitted", "-o", "a.tsv")
    assert code == 0 and json.loads(out)["statistics"] == "fitted"


def test_a_database_of_relatives_is_said(run, monkeypatch):
    """An E-value that no unrelated sequence of the database speaks for."""
    one = "MKTAYIAKQRWNEHFLDVGSTPCMKYRWAEDNQIHLKFGTSVP"
    texts = [one[: 42 - k % 12] for k in range(60)]
    Path("f.fa").write_text("".join(f">v{k}\n{x}\n" for k, x in enumerate(texts)))
    monkeypatch.setattr("jaxalign.database.fitted.LEAST", 60)
    Path("one.fa").write_text(f">q\n{one}\n")
    words = ("search", "one.fa", "f.fa", "--preset", "ssearch", "--max-evalue", "1e-3")
    code, out, err = run(*words)
    assert code == 0 and len(table(out)) == 60 and "fitted to shuffled sequences" in err
    code, out, _ = run(*words, "--json", "-o", "f.tsv")
    assert json.loads(out)["fitted_to"] == {"shuffled": 1}
    assert "fitted to shuffled sequences" in json.loads(out)["warnings"][0]
    assert run(*words, "-o", "folder/")[0] == 0


def test_a_model_has_its_own_gap_costs(run):
    """Those of its transitions in mode local, where no cost is named."""
    query = Path("d.fa").read_text().splitlines()[5]
    (family,) = jaxalign.search_family([("q", query * 3)], "d.fa")
    family.write("a.hmm")
    profile = jaxalign.Profile.from_hmm("a.hmm")
    costs = Scoring(gap_open=11, gap_extend=1)
    options = "--profile", "a.hmm", "d.fa", "-q", "--json", "-o", "h.tsv", "--force"
    for named, mode, scoring in (
        ((), "local", None),
        (("--gap-open", "11"), "local", costs),
        (("--mode", "global"), "global", costs),
    ):
        code, out, _ = run("search", *options, *named)
        want = jaxalign.search(profile, "d.fa", scoring, mode=mode)
        assert code == DONE
        said = json.loads(out)["scoring"]
        assert (said["formula"].endswith("by position")) == (scoring is None)
        assert said["gap_open"] == want.scoring.gap_open
        assert json.loads(out)["max_score"] == want["score"].max()


def test_a_profile_is_a_query(run, monkeypatch):
    """An alignment of one row: the search and the alignments of the profile."""
    Path("family.a3m").write_text(">one\nMKTAYIAKQRWNE\n>two\nMKTaaAYLAKQRWQE\n")
    options = "--profile", "family.a3m", "d.fa", "-q"
    code, out, _ = run("search", *options, "--max-evalue", "1e9")
    profile = jaxalign.Profile.from_alignment("family.a3m")
    hits = jaxalign.search(profile, "d.fa", statistics="fitted")
    assert code == DONE
    assert [row["target"] for row in table(out)] == [row["target"] for row in hits]
    assert [int(row["score"]) for row in table(out)] == hits["score"].tolist()
    code, out, _ = run("align", *options, "--mode", "local")
    want = jaxalign.align_profile(profile, "d.fa", gap_open=11, gap_extend=1)
    assert code == DONE
    assert [int(row["score"]) for row in table(out)] == [one.score for one in want]
    text = Path("family.a3m").read_text()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    code, piped, _ = run("align", "--profile", "-", *options[2:], "--mode", "local")
    assert (code, piped.replace("\nalignment\t", "\nfamily\t")) == (DONE, out)
    code, _, err = run("search", *options, "--alphabet", "dna")
    assert code == USAGE and "profiles are of proteins" in err
    bases = ">a\nACGTACGTACGTACGTACGT\n>b\nACGTACGTACGTACGAACGT\n"
    Path("bases.a3m").write_text(bases)
    of_bases = "search", "--profile", "bases.a3m", *options[2:]
    code, _, err = run(*of_bases)
    assert code == INPUT and "--alphabet protein reads" in err
    assert run(*of_bases, "--alphabet", "protein")[0] == DONE
    code, _, err = run("search", *options, "--matrix", "PAM30")
    assert code == USAGE and "a profile has its own scores" in err
    code, _, err = run("search", "--profile", "nowhere.hmm", "d.fa")
    assert code == INPUT and "nowhere.hmm" in err
    code, _, err = run("align", "--embeddings", *options)
    assert code == USAGE and "--profile and --embeddings exclude" in err
