"""``jaxalign family``: files, folders, messages and refusals."""

import json
import re
import shutil
from importlib.resources import files

import numpy as np
import pytest

import jaxalign
from jaxalign.family import engine
from jaxalign.io import runs

DONE, USAGE, INPUT = 0, 2, 3
GLOBINS = str(files("jaxalign.data") / "globins.fasta")
ALPHA = "VLSPADKTNVKAAWGKVGAHAGEYGAEALERMFLSFPTTKTYFPHFDLSHGSAQVKGHGKKVADALTNAV"
ONCE = ("--iterations", "1")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.fa").write_text(f">alpha\n{ALPHA}\n")
    (tmp_path / "rev.fa").write_text(f">rev\n{ALPHA[::-1]}\n")
    (tmp_path / "both.fa").write_text(f">a|b\n{ALPHA[20:]}\n>rev\n{ALPHA[::-1]}\n")
    return tmp_path


def test_a_file(run, folder):
    code, out, err = run("family", "q.fa", GLOBINS, "-o", "a.a3m")
    assert (code, out) == (DONE, "")
    (expected,) = jaxalign.search_family([("alpha", ALPHA)], GLOBINS)
    lines = (folder / "a.a3m").read_text().splitlines()
    assert lines[1::2] == expected.rows()
    assert lines[0] == ">alpha" and lines[2].startswith(">P69905 2-71 E=")
    assert "pass 1: 11 hits, 11 included, 11 of them new" in err
    assert f"Neff {expected.neff:.2f}" in err


def test_standard_output_is_a3m(run):
    code, out, _ = run("family", "q.fa", GLOBINS, "-q", *ONCE)
    assert code == DONE and out.startswith(f">alpha\n{ALPHA}\n>P69905 ")


def test_no_relatives_are_said(run, folder):
    code, _, err = run("family", "rev.fa", GLOBINS, "-o", "a.a3m")
    assert code == DONE and "the alignment is the query alone" in err
    assert (folder / "a.a3m").read_text() == f">rev\n{ALPHA[::-1]}\n"


def test_a_folder_of_files(run, folder):
    code, _, err = run("family", "both.fa", GLOBINS, "-o", "out/", *ONCE)
    assert code == DONE
    assert sorted(x.name for x in (folder / "out").iterdir()) == ["a_b.a3m", "rev.a3m"]
    assert run("family", "both.fa", GLOBINS, "-o", "out/", *ONCE)[0] == USAGE
    again = run("family", "both.fa", GLOBINS, "-o", "out", "--force", *ONCE)
    assert again[0] == DONE


def test_json(run):
    code, out, _ = run("family", "q.fa", GLOBINS, "--json", "-q", *ONCE, "-id", "0.9")
    about = json.loads(out)
    assert code == DONE and about["database"]["sequences"] == 16
    (family,) = about["families"]
    assert family["passes"][0]["fitted_to"] == "database"
    assert not family["converged"] and family["rows"] == 11


def test_json_has_the_depth_by_position(run, folder):
    code, out, _ = run("family", "q.fa", GLOBINS, "--json", "-o", "a.a3m")
    (family,) = json.loads(out)["families"]
    lines = (folder / "a.a3m").read_text().splitlines()[1::2]
    rows = [[x for x in line if not x.islower()] for line in lines]
    depth = [sum(x != "-" for x in column) for column in zip(*rows, strict=True)]
    assert code == DONE and family["depth"] == depth and min(depth) < max(depth)
    weights = [0.0] * len(ALPHA)
    for row in rows:
        alike = 0
        for other in rows:
            pairs = [x for x in zip(row, other, strict=True) if x != ("-", "-")]
            alike += sum(a == b for a, b in pairs) >= 0.8 * len(pairs)
        weights = [w + (x != "-") / alike for w, x in zip(weights, row, strict=True)]
    assert family["neff_of_clusters"] == pytest.approx(np.median(weights), abs=1e-4)


def timeless(out):
    return re.sub(r'"seconds": [0-9.]+', "", out)


@pytest.mark.parametrize("every", [60.0, -1.0])
def test_files_are_written_as_passes_end_and_a_run_is_resumed(
    run, folder, monkeypatch, every
):
    """A query without relatives ends with the first pass: its file is there when the
    second one is interrupted. The state has the end of the first pass, or is younger
    than the file, which then stays as it is."""
    monkeypatch.setattr(runs, "EVERY", every)
    far = ALPHA[::-1]
    texts = {"sp|P1|A": ALPHA, "rev": far, "short": ALPHA[20:61], "tail": ALPHA[30:]}
    (folder / "many.fa").write_text("".join(f">{x}\n{y}\n" for x, y in texts.items()))
    words = ("family", "many.fa", GLOBINS, "--json", "--max-evalue", "1", "-o")
    code, out, err = run(*words, "whole/")
    whole = contents(folder / "whole")
    assert code == DONE and re.search(r"4 queries in [0-9.]+ s, [0-9.]+ s a query", err)
    assert {*whole} == {"sp_P1_A.a3m", "rev.a3m", "short.a3m", "tail.a3m"}
    assert whole["rev.a3m"] == f">rev\n{far}\n"
    calls, advance = [], engine._advance

    def interrupted(search, *about):
        calls.append(search)
        if len(calls) == 6:  # the second query of the second pass
            raise KeyboardInterrupt
        advance(search, *about)

    with monkeypatch.context() as context:
        context.setattr(engine, "_advance", interrupted)
        assert run(*words, "part/")[0] not in (DONE, USAGE, INPUT)
    assert contents(folder / "part") == {"rev.a3m": whole["rev.a3m"]}
    assert (folder / "part.partial").exists()
    shutil.copy(folder / "part.partial", folder / "lost.partial")
    code, _, err = run(*words, "lost/", "--resume")
    assert code == (DONE if every > 0 else USAGE) and ("missing" in err) == (every < 0)
    names = []

    def recorded(search, *about):
        names.append(search.sequences.names[0])
        advance(search, *about)

    monkeypatch.setattr(engine, "_advance", recorded)
    code, again, _ = run(*words, "part/", "--resume")
    assert code == DONE and contents(folder / "part") == whole
    assert timeless(again) == timeless(out) and ("rev" in names) == (every > 0)
    assert not (folder / "part.partial").exists()


def test_names_of_files_are_refused_before_the_search(run, folder, monkeypatch):
    monkeypatch.setattr(engine, "run", None)
    (folder / "two.fa").write_text(f">a|b\n{ALPHA}\n>a/b\n{ALPHA}\n")
    code, _, err = run("family", "two.fa", GLOBINS, "-o", "out/")
    assert code == USAGE and "rename one of them" in err
    code, _, err = run("family", "both.fa", GLOBINS, "-o", "out/", "--plot", "p.png")
    assert code == USAGE and "--plot FOLDER/" in err
    (folder / "empty.fa").write_text(f">a\n{ALPHA}\n>none\n\n")
    code, _, err = run("family", "empty.fa", GLOBINS, "-o", "out/")
    assert code == INPUT and "'none' is empty" in err


def test_coverage_of_each_query_is_drawn(run, folder):
    pytest.importorskip("matplotlib")
    words = ("family", "both.fa", GLOBINS, "-q", *ONCE, "-o", "out/", "--plot", "out/")
    assert run(*words)[0] == DONE
    names = {x.name for x in (folder / "out").iterdir()}
    assert names == {"a_b.a3m", "a_b.png", "rev.a3m", "rev.png"}
    assert run("family", "q.fa", GLOBINS, "-q", *ONCE, "--plot", "p.svg")[0] == DONE
    text = (folder / "p.svg").read_text()
    assert 'id="depth"' in text and 'id="rows"' in text


@pytest.mark.parametrize(
    "words, code, why",
    [
        (("both.fa", GLOBINS, "-o", "a.a3m"), USAGE, "-o FOLDER/"),
        (("q.fa", GLOBINS, "-o", "a.xyz"), USAGE, "one of a3m, stockholm, hmm, pssm"),
        (("q.fa", GLOBINS, "-o", "q.fa", "--format", "a3m"), USAGE, "is the input"),
        (("q.fa", GLOBINS, "-o", "-", "--json"), USAGE, "-o FILE"),
        (("-", "-"), USAGE, "twice"),
        (("q.fa", GLOBINS, "--iterations", "0"), USAGE, "--iterations"),
        (("q.fa", GLOBINS, "--include", "-1"), USAGE, "include"),
        (("q.fa", "missing.fa"), INPUT, "missing.fa"),
    ],
)
def test_refusals(run, words, code, why):
    done, _, err = run("family", *words)
    assert done == code and why in err


def test_nucleotides_are_scored_as_protein_with_a_warning(run, folder):
    (folder / "dna.fa").write_text(">d\n" + "ACGTTGCAAC" * 6 + "\n")
    (folder / "rows.a3m").write_text(f">a\n{ALPHA}\n>b\n{ALPHA}\n")
    calls = {
        ("family", "dna.fa", GLOBINS): "dna.fa are",
        ("family", "q.fa", "dna.fa"): "dna.fa are",
        ("search", "--profile", "rows.a3m", "dna.fa"): "dna.fa are",
        ("align", "--profile", "rows.a3m", "dna.fa"): "dna.fa are",
    }
    for words, what in calls.items():
        code, _, err = run(*words, "-q")
        assert (
            code == DONE and f"{what} nucleotides and are scored as protein" in err
        ), words
        assert "nucleotides" not in run(*words, "-q", "--alphabet", "protein")[2]
    for words in (("family", "q.fa", GLOBINS), ("align", *list(calls)[3][1:3], "q.fa")):
        assert "nucleotides" not in run(*words, "-q")[2]


BETA = "VHLTPEEKSAVTALWGKVNVDEVGGEALGRLLVVYPWTQRFFESFGDLSTPDAVMGNPKVKAHGKKVLGAFS"
INPUTS = {"alphafold3.json", "boltz.yaml", "colabfold.a3m", "A.csv"}


@pytest.fixture
def chains(folder):
    """Chains of hemoglobin, and globins of which four have a taxon."""
    (folder / "hb.fa").write_text(f">a\n{ALPHA}\n>b\n{BETA}\n>c\n{ALPHA}\n")
    taxa = {"P69905": 9606, "P68871": 9606, "P01958": 9796, "P02062": 9796}
    lines = [
        f"{line} OX={taxa[name]}" if (name := line[1:7]) in taxa else line
        for line in (folder / GLOBINS).read_text().splitlines()
    ]
    (folder / "g.fa").write_text("\n".join(lines) + "\n")
    table = "".join(f"{name}\t{taxon}\n" for name, taxon in taxa.items())
    (folder / "taxa.tsv").write_text(table)
    return folder


def contents(folder):
    return {x.name: x.read_text() for x in folder.iterdir()}


def test_a_complex(run, chains):
    code, out, err = run("family", "--pair", "hb.fa", "g.fa", "-o", "hb/", *ONCE)
    assert (code, out) == (DONE, "") and {*contents(chains / "hb")} == INPUTS | {
        "B.csv"
    }
    assert "hb: 3 chains of 2 sequences, 2 rows paired, 2 of all" in err
    assert "hb: b: " in err and "hits, 4 with a taxon" in err
    (result,) = jaxalign.search_complexes({"hb": "hb.fa"}, "g.fa", iterations=1)
    result.write("api/")
    assert contents(chains / "hb") == contents(chains / "api")
    again = "family", "--pair", "hb.fa", "g.fa", "-o", "hb", *ONCE
    assert run(*again)[0] == USAGE and run(*again, "--force")[0] == DONE


def test_a_folder_of_complexes(run, chains):
    (chains / "many").mkdir()
    (chains / "many" / "dimer.fasta").write_text(f">x\n{BETA}\n>y\n{BETA}\n")
    (chains / "many" / "hb.fa").write_text((chains / "hb.fa").read_text())
    (chains / "many" / "no.faa").write_text(f">r\n{ALPHA[::-1]}\n>b\n{BETA}\n")
    assert run("index", "g.fa", "-q")[0] == DONE
    line = "family", "--pair", "many", "g.fa.jaxdb", "-o", "out/", "--json", *ONCE
    code, out, err = run(*line)
    assert code == DONE and "no: 2 chains of 2 sequences, 0 rows paired" in err
    complexes = {x["complex"]: x for x in json.loads(out)["complexes"]}
    assert {x: y["pairs"] for x, y in complexes.items()} == {
        "dimer": 0,
        "hb": 2,
        "no": 0,
    }
    assert complexes["no"]["hits"][0] == 0 and complexes["dimer"]["sequences"] == 1
    assert len(json.loads(out)["families"]) == 3  # a, b and r: each once
    assert {*contents(chains / "out" / "dimer")} == INPUTS
    assert "-1" not in (chains / "out" / "no" / "A.csv").read_text()
    assert run("family", "--pair", "hb.fa", "g.fa", "-o", "hb/", *ONCE)[0] == DONE
    hb = contents(chains / "hb")
    assert contents(chains / "out" / "hb") == hb


def test_taxa_of_a_table(run, chains):
    words = "family", "--pair", "hb.fa", GLOBINS, *ONCE
    code, _, err = run(*words, "-o", "a/")
    assert code == DONE and "no hit has a taxon" in err and "0 rows paired" in err
    code, _, err = run(*words, "-o", "b/", "--taxa", "taxa.tsv")
    assert code == DONE and "2 rows paired" in err and "no hit" not in err
    run("family", "--pair", "hb.fa", "g.fa", *ONCE, "-o", "c/")
    assert contents(chains / "b") == contents(chains / "c")


@pytest.mark.parametrize(
    "words, code, why",
    [
        (("q.fa", "g.fa", "--pair-evalue", "1"), USAGE, "give --pair"),
        (("--pair", "hb.fa", "g.fa"), USAGE, "-o FOLDER/"),
        (("--pair", "hb.fa", "g.fa", "-o", "-"), USAGE, "-o FOLDER/"),
        (("--pair", "hb.fa", "g.fa", "-o", "x", "--format", "a3m"), USAGE, "--format"),
        (("--pair", "hb.fa", "old.jaxdb", "-o", "x"), USAGE, "the index has no taxa"),
        (("--pair", "hb.fa", "g.fa", "-o", "x", "--taxa", "no.tsv"), INPUT, "no.tsv"),
        (("--pair", "hb.fa", "g.fa", "-o", "g.fa"), USAGE, "is a file"),
        (("--pair", "hb.fa", "missing.fa", "-o", "x"), INPUT, "missing.fa"),
        (("--pair", "missing", "g.fa", "-o", "x"), INPUT, "missing"),
    ],
)
def test_refusals_of_complexes(run, chains, words, code, why):
    assert run("index", GLOBINS, "-o", "old.jaxdb", "-q")[0] == DONE
    done, _, err = run("family", *words)
    assert done == code and why in err, err


def test_nucleotides_are_known_by_their_letters(run, folder):
    """RNA in DNA, along the minus strand; rows have the query's U."""
    rna = "GGAUACGUCCAUUGCAGCUUAGCAUCGAACGUAUGCCAGUUACG"
    minus = rna[::-1].translate(str.maketrans("ACGU", "TGCA"))
    (folder / "r.fa").write_text(f">r\n{rna.lower()}\n")
    (folder / "d.fa").write_text(
        f">d\n{'ACCTGATTGCAGT' * 5}{minus}\n>e\n{'GTACA' * 9}\n"
    )
    code, out, err = run("family", "r.fa", "d.fa", *ONCE)
    assert code == DONE and "NUC, gap(k) = 16 + 4*(k-1), both strands" in err
    assert out.splitlines()[1::2] == [rna, rna] and ">d 109-66 E=" in out
    code, out, err = run("family", "r.fa", "d.fa", *ONCE, "--strand", "plus")
    assert (code, out) == (DONE, f">r\n{rna}\n") and ", plus strands" in err
    code, _, err = run("family", "r.fa", "d.fa", *ONCE, "--alphabet", "dna", "-q")
    assert code == INPUT and "holds 'u'" in err
    code, out, _ = run("family", "r.fa", "d.fa", *ONCE, "--match", "1", "--mismatch",
                       "-1", "--alphabet", "rna")  # fmt: skip
    assert code == DONE and out.splitlines()[1::2] == [rna, rna]
    code, _, err = run("family", "q.fa", GLOBINS, "--strand", "plus")
    assert code == USAGE and "--strand = 'plus': nucleotides have two strands" in err


def test_an_rna_beside_proteins(run, folder):
    """In a file of chains; which database it has is said."""
    rna = "GGAUACGUCCAUUGCAGCUUAGCAUCGAACGUAUGCCAGUUACG"
    (folder / "c.fa").write_text(f">a\n{ALPHA}\n>b\n{ALPHA[::-1]}\n>r\n{rna}\n")
    (folder / "r.fa").write_text(f">near\nACCA{rna}GGA\n")
    about = "family", "--pair", "c.fa", GLOBINS, "-o", "out/", *ONCE
    code, _, err = run(*about, "--rna-database", "r.fa")
    assert code == DONE and "r: 2 rows, the query's included" in err
    (job,) = [
        x["rna"]
        for x in json.loads((folder / "out" / "alphafold3.json").read_text())[
            "sequences"
        ]
        if "rna" in x
    ]
    assert job["unpairedMsa"] == f">query\n{rna}\n>near\n{rna}\n"
    assert job["id"] == ["C"] and not (folder / "out" / "C.csv").exists()
    code, _, err = run(*about, "--rna-database", "missing.fa", "--force")
    assert code == INPUT and "missing.fa" in err
    (folder / "c.fa").write_text(f">a\n{ALPHA}\n>b\n{ALPHA[::-1]}\n")
    code, _, err = run(*about, "--rna-database", "r.fa", "--force")
    assert code == USAGE and "no chain is RNA" in err
    code, _, err = run("family", "q.fa", GLOBINS, "--rna-database", "r.fa")
    assert code == USAGE and "give --pair" in err
