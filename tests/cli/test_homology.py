"""cluster, dedup, split and audit from the command line."""

import hashlib
import json
import re
from pathlib import Path

import jax  # noqa: F401  (before main(), which else turns on a compilation cache)
import pytest

from jaxalign.cli.terminal import spoken
from jaxalign.errors import EXIT_CODES
from jaxalign.io import corpus_files, delimited

DONE, FAILED, USAGE, INPUT, MEMORY, DEVICE, LEAK, FORGED, INTERRUPTED = EXIT_CODES
P = "MKTAYIAKQRQISFVKSHFSRQ"
RECORDS = {
    "sp|P1|A_X first of all": P,
    "sp|P2|B_X": P[:-2] + "WW",
    "sp|P3|C_X": "HEAGAWGHEEPAWHEAEHEAGA",
    "sp|P4|D_X": "GGGGGGGGWWWWWWWWCCCCCC",
}
NAMES = [name.split()[0] for name in RECORDS]
CUT = ("--min-identity", "0.5")
HALVES = ("--parts", "train=0.5,test=0.5")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "".join(f">{name}\n{P}\n" for name, P in RECORDS.items())
    Path("s.fa").write_text(text)
    Path("train.fa").write_text(f">a\n{P}\n>b\nGGGGGGGG\n")
    Path("test.fa").write_text(f">c\n{P[:-2]}WW\n>d\nHEAGAWGHEE\n")
    return tmp_path


def rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_cluster(run):
    code, out, err = run("cluster", "s.fa", "--min-identity", "0.9")
    heading, *body = rows(out)
    assert code == DONE and heading == ["name", "cluster", "representative"]
    assert body == [
        [NAMES[0], "0", NAMES[0]],
        [NAMES[1], "0", NAMES[0]],
        [NAMES[2], "1", NAMES[2]],
        [NAMES[3], "2", NAMES[3]],
    ]
    assert "4 sequences; linked: identity_shorter >= 0.9, score >= 45; local" in err
    assert "6 pairs, " in err and "3 clusters of 4 sequences" in err


def test_clusters_grow(run):
    """The table is that of all pairs; what merged is said, and a summary has it."""
    old = [f">a\n{P}\n", ">b\nGGGGGGGGWWWWWWWWCCCCCC\n", ">c\nHEAGAWGHEEPAWHEAEHEAGA\n"]
    new = [f">d\n{P}GGGGGGGGWWWWWWWWCCCCCC\n", ">e\nLLLLLLLLLLKKKKKKKKKK\n"]
    Path("old.fa").write_text("".join(old))
    Path("all.fa").write_text("".join(old + new))
    words = ("--min-identity", "0.9", "--identity", "shorter")
    files = ("-o", "c.tsv", "--certificate", "c.json")
    assert run("cluster", "old.fa", *words, *files)[0] == DONE
    files = ("-o", "d.tsv", "--certificate", "d.json", "--update", "c.json")
    code, _, err = run("cluster", "all.fa", *words, *files)
    assert code == DONE
    assert "2 new sequences: 1 in old clusters, 1 in 1 new cluster; 2 old ones" in err
    assert "clusters 0, 1 are now 0: a and d (1.0000), b and d (1.0000)" in err
    numbers = {name: cluster for name, cluster, _ in rows(Path("d.tsv").read_text())}
    assert [numbers[x] for x in "abcde"] == ["0", "0", "2", "0", "3"]
    code, out, _ = run("cluster", "all.fa", *words, "--update", "d.json", "--json")
    about = {"added": 0, "joined": 0, "founded": 0, "merged": [], "bridges": []}
    assert code == DONE and json.loads(out)["update"] == about
    refusals = {
        ("--update", "c.json", "--method", "greedy"): (USAGE, "depend on all pairs"),
        ("--update", "c.json", "-o", "c.tsv", "--force"): (USAGE, "c.tsv"),
        ("--certificate", "x.json"): (USAGE, "add -o FILE"),
        ("--certificate", "x.json", "-o", "x", "--method", "average"): (USAGE, "grow"),
        ("--update", "c.json", "--min-length-ratio", "0.1"): (
            USAGE,
            "another rule",
        ),
        ("--update", "c.tsv"): (INPUT, "is not JSON"),
        ("--update", "none.json"): (INPUT, "cannot be read"),
    }
    for more, (code, said) in refusals.items():
        answer = run("cluster", "all.fa", *words, *more)
        assert answer[0] == code and said in answer[2], more
    Path("all.fa").write_text("".join(old + new).replace("GGWW", "GAWW"))
    code, _, err = run("cluster", "all.fa", *words, "--update", "c.json")
    assert code == FORGED and "one of them has changed" in err
    Path("c.tsv").write_text("name\tcluster\na\t0\n")
    code, _, err = run("cluster", "all.fa", *words, "--update", "c.json")
    assert code == FORGED and "cut short" in err


@pytest.mark.parametrize("method", ["components", "greedy", "complete", "average"])
def test_methods_and_representatives(run, method):
    words = ("--method", method, "-o", "c.tsv", "--fasta", "r.fa", "-q")
    assert run("cluster", "s.fa", "--min-identity", "0.9", *words) == (DONE, "", "")
    assert len(rows(Path("c.tsv").read_text())) == 5
    kept = Path("r.fa").read_text()
    assert kept.startswith(">sp|P1|A_X first of all\n"), "headings stay whole"
    assert NAMES[1] not in kept and kept.count(">") == 3
    assert run("cluster", "s.fa", "--min-identity", "0.9", *words)[0] == USAGE


def test_dedup(run):
    code, out, _ = run("dedup", "s.fa", "--list", "l.tsv")
    assert code == DONE and out.count(">") == 3 and NAMES[1] not in out
    heading, *body = rows(Path("l.tsv").read_text())
    assert heading[-1] == "identity" and body[1][2:] == [NAMES[0], "0.909091"]
    assert run("dedup", "s.fa", "-o", "d.fa", "-q") == (DONE, "", "")
    assert Path("d.fa").read_text() == out


def test_split_and_its_files(run):
    words = ("-o", "sp.tsv", "--fasta", "parts", *HALVES)
    code, out, err = run("split", "s.fa", *CUT, *words)
    assert (code, out) == (DONE, "") and "shares differ by 0.00% at most" in err
    heading, *body = rows(Path("sp.tsv").read_text())
    assert heading == ["name", "part", "component"]
    parts = {name: part for name, part, _ in body}
    assert list(parts) == NAMES and parts[NAMES[0]] == parts[NAMES[1]]
    for part in ("train", "test"):
        text = (Path("parts") / f"{part}.fasta").read_text()
        assert text.count(">") == 2
        assert all(part == parts[name] for name in NAMES if f">{name}" in text)
    assert run("split", "s.fa", *CUT, *words, "--force")[0] == DONE
    code, _, err = run("split", "s.fa", *CUT, "--fasta", "parts", *HALVES)
    assert code == USAGE and "exists; use --force" in err
    code, _, err = run("audit", "parts/train.fasta", "parts/test.fasta", *CUT)
    assert code == DONE and "no leak in 4 pairs across train 2, test 2" in err


def test_labels_and_folds(run):
    text = "".join(f"{name}\t{k % 2}\n" for k, name in enumerate(NAMES))
    Path("labels.tsv").write_text("name\tlabel\n" + text)
    words = ("--labels", "labels.tsv", "--folds", "2", "--seed", "3")
    code, out, err = run("split", "s.fa", *CUT, *words)
    assert code == DONE and "those of labels by" in err
    assert {part for _, part, _ in rows(out)[1:]} == {"fold1", "fold2"}
    for text, message in (
        ("sp|P1|A_X\tx\n", "3 sequences (sp|P2|B_X, sp|P3|C_X, sp|P4|D_X) have no"),
        ("".join(f"{n}\tx\n" for n in (*NAMES, "z")), "1 label (z) belongs to no"),
        ("sp|P1|A_X\n", "line 1: a name and what belongs to it"),
        ("a\tx\na\ty\n", "line 2: 'a' comes twice"),
        ("\n", "lists no sequence"),
    ):
        Path("bad.tsv").write_text(text)
        words = ("--labels", "bad.tsv", "--folds", "2")
        code, out, err = run("split", "s.fa", *CUT, *words)
        assert (code, out) == (INPUT, "") and message in err


def test_a_series_of_cuts(run):
    words = ("--cuts", "0.5,0.95", "--folds", "2", "-o", "sp.tsv")
    code, _, err = run("split", "s.fa", *words)
    assert code == DONE and "cut 0.5: 3 components" in err and "cut 0.95: 4 comp" in err
    assert rows(Path("sp.tsv").read_text())[0] == ["name", "part_0.5", "part_0.95"]
    audit = ("audit", "s.fa", "--split", "sp.tsv", "--column")
    code, _, err = run(*audit, "part_0.5", *CUT, "-o", "c.json")
    assert code == DONE and "no leak" in err
    assert json.loads(Path("c.json").read_text())["split"]["column"] == "part_0.5"
    code, _, err = run("audit", "--verify", "c.json")
    assert code == DONE and "verified" in err
    assert run(*audit, "part_0.95", "--min-identity", "0.95")[0] == DONE
    code, _, err = run(*audit, "part_0.7", *CUT)
    assert (
        code == INPUT
        and "there is no column 'part_0.7'; the columns are part_0.5" in err
    )
    code, out, _ = run("split", "s.fa", *words[:4], "--json", "-q")
    assert code == DONE and json.loads(out)["cuts"]["0.95"]["components"] == 4


def test_a_split_is_repaired(run):
    text = "".join(f"{name}\t{k % 2}\n" for k, name in enumerate(NAMES))
    Path("parts.tsv").write_text(text)
    code, out, err = run("split", "s.fa", *CUT, "--fixed", "parts.tsv")
    assert code == DONE and "3 stay where they were, 1 moved, 0 removed" in err
    assert "no repair changes less" in err
    Path("parts.tsv").write_text(f"{NAMES[0]}\ttrain\n{NAMES[1]}\ttest\n")
    words = ("--fixed", "parts.tsv", "--too-large", "remove", "--priority", "p.csv")
    Path("p.csv").write_text(f"id,priority\n{NAMES[1]},9\n")
    code, out, err = run("split", "s.fa", *CUT, *words, "--json", "-o", "sp.tsv")
    parts = {name: part for name, part, _ in rows(Path("sp.tsv").read_text())[1:]}
    assert code == DONE and parts[NAMES[0]] == parts[NAMES[1]] == "test"
    assert json.loads(out)["bounds"]["changes"]["moved"] == 1
    Path("p.csv").write_text(f"id,priority\n{NAMES[1]},high\n")
    code, _, err = run("split", "s.fa", *CUT, *words)
    assert code == INPUT and "priority 'high' is not a whole number" in err


def test_sequences_without_a_label(run):
    Path("labels.tsv").write_text("".join(f"{name}\tx\n" for name in NAMES[:3]))
    words = ("split", "s.fa", *CUT, "--folds", "2", "--stratify", "labels.tsv")
    code, _, err = run(*words)
    assert code == INPUT and "hint: --unlabelled label gives them one" in err
    code, out, err = run(*words, "--unlabelled", "remove")
    assert code == DONE and f"{NAMES[3]}\tremoved" in out
    assert "1 without a label are in no part" in err and "label x: 100.00%" in err
    code, out, err = run(*words, "--unlabelled", "label")
    assert code == DONE and "removed" not in out and "label unlabelled: 25.00%" in err


def test_pairs_are_split_and_audited(run):
    a, b, c, d = NAMES
    rows_of = [(a, b), (c, d), (b, c), (d, d)]
    text = "".join(f"{x}\t{y}\n" for x, y in rows_of)
    Path("p.tsv").write_text("receptor\tligand\n" + text)
    words = ("split", "s.fa", *CUT, *HALVES, "--pairs", "p.tsv")
    code, _, err = run(*words, "-o", "out.csv")
    assert code == DONE and "C3: no protein of a pair, on either side" in err
    assert "1 of 4 pairs removed by a search" in err
    heading, *body = Path("out.csv").read_text().splitlines()
    assert heading == "first,second,part" and len(body) == 4
    audit = ("audit", "s.fa", *CUT, "--pairs")
    assert run(*audit, "out.csv")[0] == DONE
    Path("bad.tsv").write_text(f"{a}\t{c}\tx\n{b}\t{d}\ty\n")
    code, _, err = run(*audit, "bad.tsv")
    assert code == LEAK and "2 of 2 pairs leak" in err
    assert f"bad.tsv, line 1: {a}, {c} leaks" in err
    assert run(*audit, "bad.tsv", "--cold", "one")[0] == DONE
    assert run(*audit, "bad.tsv", "--cold", "one", "--second", "groups")[0] == LEAK
    code, out, err = run(*words, "--cold", "none", "--json", "-o", "n.tsv")
    assert code == DONE and json.loads(out)["removed"] == 0
    Path("p.tsv").write_text(text + f"{a}\tligand7\n")
    code, _, err = run(*words)
    assert (
        code == INPUT and "p.tsv, line 5: ligand7 is not the name of a sequence" in err
    )
    assert "hint: --second groups reads" in err
    for more in (("--fixed", "p.tsv"), ("--too-large", "keep"), ("--cuts", "0.5")):
        code, _, err = run(*words, *more)
        assert code == USAGE and "--pairs goes with" in err
    assert run("split", "s.fa", *CUT, *HALVES, "--cold", "one")[0] == USAGE
    assert run(*audit, "out.csv", "--partial")[0] == USAGE


def test_an_audit_finds_the_leak(run):
    code, out, err = run("audit", "train.fa", "test.fa", *CUT, "--worst", "2")
    assert code == LEAK and "1 leak in 4 pairs across train 2, test 2" in err
    first, _ = out.split("\n\n0.", 1)
    assert first.startswith("0.9091 a (train), c (test)\nscore ") and P[:-2] in first
    assert run("audit", "train.fa", "test.fa", "--min-identity", "0.95")[0] == DONE


def test_every_leak_is_listed(run):
    words = ("audit", "train.fa", "test.fa", *CUT, "--leaks", "leaks.tsv")
    code, _, err = run(*words, "--report", "r.html", "--across-only")
    assert code == LEAK and "by other measures, likely pairs only: global" in err
    heading, *body = rows(Path("leaks.tsv").read_text())
    assert heading == ["name", "part", "leaks", "nearest", "nearest_part", "identity"]
    assert body == [
        ["a", "train", "True", "c", "test", "0.909091"],
        ["c", "test", "True", "a", "train", "0.909091"],
    ]
    assert "within parts" not in Path("r.html").read_text()
    assert run(*words[:-1], "all.csv", "--full-histogram")[0] == LEAK
    assert len(Path("all.csv").read_text().splitlines()) == 5
    assert run(*words[:-1], "leaks.doc")[0] == USAGE


def test_links_that_see_fragments(run):
    Path("whole.fa").write_text(f">w\n{P}GGHHWWCCDDEEPPYYGGHHWW\n>x\n{'Y' * 30}\n")
    Path("part.fa").write_text(f">f\n{P[3:15]}\n>y\n{'C' * 30}\n")
    audit = ("audit", "whole.fa", "part.fa", *CUT)
    assert run(*audit)[0] == LEAK and run(*audit, "--link", "whole")[0] == DONE
    local = "--link", "local", "--min-score", "40"
    code, _, err = run(*audit, *local, "-o", "c.json")
    assert code == LEAK
    assert "identity_shorter >= 0.5, score >= 40; local alignment" in err
    assert run("audit", "--verify", "c.json")[0] == LEAK
    for more in (("--mode", "local"), ("--identity", "mean"), ("--free-ends", "q5")):
        code, _, err = run(*audit, "--link", "local", *more)
        assert code == USAGE and "--link local sets the mode" in err
    words = ("cluster", "whole.fa", "--min-identity", "0.5", "--link", "local")
    assert "local alignment" in run(*words)[2]
    code, _, err = run("split", "whole.fa", *CUT, *HALVES, "--link", "local")
    assert code == DONE and "it links fragments" in err


def test_an_audit_of_a_list(run):
    text = "".join(f"{n},False,0,{k % 2}\n" for k, n in enumerate(NAMES))
    Path("split.csv").write_text("AC,priority,label-val,cluster\n" + text)
    code, out, err = run("audit", "s.fa", "--split", "split.csv", *CUT, "-q")
    assert (code, err) == (LEAK, "") and out.startswith("0.9091 sp|P1|A_X (0), sp|P2|")
    Path("split.tsv").write_text(f"{NAMES[0]}\ttrain\n{NAMES[2]}\ttest\n")
    code, _, err = run("audit", "s.fa", "--split", "split.tsv", *CUT)
    assert code == INPUT and "2 of 4 sequences are in no part (2 unlisted)" in err
    code, _, err = run("audit", "s.fa", "--split", "split.tsv", *CUT, "--partial")
    assert code == DONE and "2 of 4 sequences are in no part (2 unlisted)" in err
    Path("split.tsv").write_text("".join(f"{name}\ttrain\n" for name in NAMES))
    code, _, err = run("audit", "s.fa", "--split", "split.tsv", *CUT)
    assert code == INPUT and "has only one part: train" in err
    Path("split.tsv").write_text("P1\ttrain\nP2\ttest\n")
    code, _, err = run("audit", "s.fa", "--split", "split.tsv", *CUT)
    assert code == INPUT and "not in s.fa: 2 names (P1, P2); a name is the" in err


def test_a_certificate_is_verified(run):
    assert run("audit", "train.fa", "test.fa", *CUT, "-o", "c.json")[0] == LEAK
    about = json.loads(Path("c.json").read_text())
    assert about["leaks"] == 1 and not about["holds"]
    assert about["pairs"] == 4 and about["worst"][0]["identities"] == 20
    digest = hashlib.sha256(Path("train.fa").read_bytes()).hexdigest()
    assert about["inputs"][0]["sha256"] == digest
    code, _, err = run("audit", "--verify", "c.json")
    assert code == LEAK and "verified, the same was found again" in err
    moved = Path("moved")
    moved.mkdir()
    files = [str(Path(x).rename(moved / x)) for x in ("train.fa", "test.fa")]
    assert run("audit", "--verify", "c.json")[0] == INPUT
    code, _, err = run("audit", *files, "--verify", "c.json")
    assert code == LEAK and "verified" in err


@pytest.mark.parametrize(
    "words, says",
    [
        (("--preset", "needle"), "semiglobal alignment, EDNAFULL, gap(k) = 10 + 0.5"),
        (("--free-ends", "q5,t5", "--matrix", "PAM250"),
         "global alignment with free query_start, target_start, PAM250"),
        (("--mode", "local", "--identity", "shorter", "--min-length-ratio", "0.3"),
         "identity_shorter >= 0.5, length ratio (shorter / longer) >= 0.3; local"),
        (("--match", "3", "--mismatch", "-1", "--alphabet", "dna", "--link", "whole"),
         "match 3"),
        (("--alphabet", "auto"), "match 2 / mismatch -3"),
    ],
)  # fmt: skip
def test_certificates_of_other_definitions(run, words, says):
    text = ">{0}1\nACGTACGTAAGGCTTACGTAAC\n>{0}2\nACGTACGTTTGGCT\n"
    Path("x.fa").write_text(text.format("x"))
    Path("y.fa").write_text(text.format("y"))
    code, _, err = run("audit", "x.fa", "y.fa", *CUT, *words, "-o", "c.json")
    assert code == LEAK and says in err
    code, _, err = run("audit", "--verify", "c.json")
    assert code == LEAK and "verified, the same" in err and says in err


@pytest.mark.parametrize(
    "change, message",
    [
        ({"leaks": 0}, "leaks: the certificate has 0, the computation 1"),
        ({"worst": []}, "worst: the certificate has []"),
        (
            {"parts": [{"name": "train"}, {"name": "test"}]},
            "parts[0].sequences: the certificate",
        ),
    ],
)
def test_a_wrong_certificate(run, change, message):
    run("audit", "train.fa", "test.fa", *CUT, "-o", "c.json")
    about = json.loads(Path("c.json").read_text())
    Path("c.json").write_text(json.dumps(about | change))
    code, _, err = run("audit", "--verify", "c.json")
    assert code == FORGED and message in err and "verified" not in err


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "is not a certificate: it is not JSON"),
        ("[]", "is not a certificate"),
        ('{"format": "jaxalign certificate, 2"}', "lacks definition"),
    ],
)
def test_no_certificate(run, text, message):
    Path("c.json").write_text(text)
    code, _, err = run("audit", "train.fa", "test.fa", "--verify", "c.json")
    assert code == INPUT and message in err


def test_a_certificate_of_another_matrix_or_definition(run):
    run("audit", "train.fa", "test.fa", *CUT, "-o", "c.json")
    about = json.loads(Path("c.json").read_text())
    for name, value, message in (
        ("scores_sha256", "0", "is not the one of"),
        ("matrix", "NONE99", "NONE99"),
        ("cut", "x", "a fraction above 0"),
        ("gap_open", -1, "gap"),
    ):
        changed = about | {"definition": about["definition"] | {name: value}}
        Path("bad.json").write_text(json.dumps(changed))
        code, _, err = run("audit", "--verify", "bad.json")
        assert code == INPUT and message in err
    del about["definition"]["mode"]
    Path("bad.json").write_text(json.dumps(about))
    code, _, err = run("audit", "--verify", "bad.json")
    assert code == INPUT and "it lacks 'mode'" in err


def test_the_certificate_of_a_split(run):
    words = ("-o", "sp.tsv", "--certificate", "c.json", *HALVES)
    assert run("split", "s.fa", *CUT, *words)[0] == DONE
    about = json.loads(Path("c.json").read_text())
    digest = hashlib.sha256(Path("sp.tsv").read_bytes()).hexdigest()
    assert about["holds"] and about["split"] == {"path": "sp.tsv", "sha256": digest}
    code, _, err = run("audit", "--verify", "c.json")
    assert code == DONE and "verified" in err
    lines = Path("sp.tsv").read_text().splitlines()
    swapped = {"train": "test", "test": "train"}
    name, part, rest = lines[4].split("\t")
    lines[4] = "\t".join((name, swapped[part], rest))
    Path("sp.tsv").write_text("\n".join(lines) + "\n")
    code, _, err = run("audit", "--verify", "c.json")
    assert code == FORGED and "parts[0].sha256: the certificate has" in err


def test_too_large(run):
    Path("same.fa").write_text("".join(f">s{k}\n{P}\n" for k in range(6)))
    code, out, err = run("split", "same.fa", *CUT, *HALVES)
    assert (code, out) == (USAGE, "") and "--too-large keep" in err
    code, out, err = run("split", "same.fa", *CUT, *HALVES, "--too-large", "keep")
    assert code == DONE and "shares differ by 50.00% at most" in err
    more = "".join(f">t{k}\n{'ACDEFGHIKL'[k] * 22}\n" for k in range(4))
    Path("same.fa").write_text(Path("same.fa").read_text() + more)
    code, out, err = run("split", "same.fa", *CUT, *HALVES, "--too-large", "remove")
    assert code == DONE and "removed" not in out and "train" in err
    again = "".join(f">u{k}\n{P}\n" for k in range(6))
    Path("same.fa").write_text(Path("same.fa").read_text() + again)
    code, out, err = run("split", "same.fa", *CUT, *HALVES, "--too-large", "remove")
    assert code == DONE and "1 removed" in err and out.count("\tremoved\t") == 1


@pytest.mark.parametrize(
    "words, code, message",
    [
        (("cluster", "s.fa"), USAGE, "--min-identity"),
        (("cluster", "s.fa", "--min-identity", "2"), USAGE, "--min-identity = 2.0"),
        (("cluster", "s.fa", "--min-identity", "1", "--method", "x"), USAGE, "method"),
        (("cluster", "s.fa", "--min-identity", "1", "--identity", "full"), USAGE,
         "identity"),
        (("cluster", "none.fa", "--min-identity", "1"), INPUT, "no such file"),
        (("cluster", "empty.fa", "--min-identity", "1"), INPUT, "is empty"),
        (("cluster", "s.fa", "--min-identity", "1", "-o", "s.tsv"), USAGE, "exists"),
        (("cluster", "s.tsv", "--min-identity", "1", "-o", "s.tsv", "--force"), USAGE,
         "is the input"),
        (("cluster", "s.fa", "--min-identity", "1", "-o", "x", "--fasta",
          "x"), USAGE, "two outputs go to the same place"),
        (("cluster", "s.fa", "--min-identity", "1", "--device", "gpu"), DEVICE, "gpu"),
        (("dedup", "s.fa", "--free-ends", "q5"), USAGE, "symmetric free ends"),
        (("dedup", "s.fa", "--min-length-ratio", "7"), USAGE, "--min-length-ratio = 7"),
        (("split", "s.fa", *CUT), USAGE, "parts or folds are needed"),
        (("split", "s.fa", *HALVES), USAGE, "--min-identity is missing: the"),
        (("split", "s.fa", *CUT, *HALVES, "--cuts", "0.5"), USAGE, "exclude each"),
        (("split", "s.fa", *HALVES, "--cuts", "0.5,x"), USAGE, "--cuts 0.5,x"),
        (("split", "s.fa", *HALVES, "--cuts", "0.5,0.5"), USAGE, "cut is given twice"),
        (("split", "s.fa", *HALVES, "--cuts", "0.5", "--fasta", "f"), USAGE, "need on"),
        (("audit", "train.fa", "test.fa", *CUT, "--column", "x"), USAGE, "--column is"),
        (("split", "s.fa", *CUT, *HALVES, "--folds", "2"), USAGE, "exclude"),
        (("split", "s.fa", *CUT, "--parts", "a=0.5,b=0.4"), USAGE, "sum to 0.9"),
        (("split", "s.fa", *CUT, "--parts", "a,b"), USAGE, "train=0.8"),
        (("split", "s.fa", *CUT, "--parts", "a=0.5,a=0.5"), USAGE, "a is given twice"),
        (("split", "s.fa", *CUT, "--parts", "removed=0.5,a=0.5"), USAGE, "not a valid"),
        (("split", "s.fa", *CUT, *HALVES, "--certificate", "c"), USAGE, "-o SPLIT"),
        (("split", "s.fa", *CUT, *HALVES, "--fasta", "s.fa"), USAGE, "is not a folder"),
        (("split", "s.fa", *CUT, *HALVES, "--labels", "none"), INPUT, "no such file"),
        (("audit", "train.fa", *CUT), USAGE, "two or more files"),
        (("audit", "train.fa", "test.fa"), USAGE, "--min-identity is missing"),
        (("audit", "-", "-", *CUT), USAGE, "'-' is given twice"),
        (("audit", "train.fa", "test.fa", *CUT, "--worst", "0"), USAGE, "--worst = 0"),
        (("audit", "train.fa", "test.fa", "--split", "x", *CUT), USAGE, "of one file"),
        (("audit", "--verify", "c.json", *CUT), USAGE, "leave out these"),
        (("audit", "--verify", "c.json", "--worst", "3"), USAGE, "leave out"),
        (("audit", "train.fa", "test.fa", *CUT, "--partial"), USAGE, "table of --sp"),
        (("audit", "--verify", "none.json"), INPUT, "No such file"),
    ],
)  # fmt: skip
def test_refusals(run, words, code, message):
    Path("empty.fa").write_text("")
    Path("s.tsv").write_bytes(Path("s.fa").read_bytes())
    found, out, err = run(*words)
    assert (found, out) == (code, "") and message in err
    assert not {"x", "c"} & {path.name for path in Path(".").iterdir()}


NO_OPTION = re.compile(r"(?<![-\w])[a-z]+(_[a-z]+)+|\w='|\{'")


@pytest.mark.parametrize(
    "words",
    [
        "split s.fa --min-identity 0.5",
        "split s.fa --min-identity 0.5 --folds 1",
        "split s.fa --min-identity 0.5 --folds 2 --seed -1",
        "split same.fa --min-identity 0.5 --folds 2",
        "split same.fa --min-identity 0.5 --folds 2 --too-large remove",
        "split s.fa --min-identity 0.5 --folds 2 --min-length-ratio 7",
        "split s.fa --min-identity 0.5 --folds 2 --mode local --free-ends q5",
        "split s.fa --min-identity 0.5 --folds 2 --threads 0",
        "cluster s.fa --min-identity 0.5 --gap-open 1 --gap-extend 2",
        "dedup s.fa --memory-budget lots",
        "audit s.fa same.fa --min-identity 7",
        "audit s.fa same.fa --min-identity 0.5 --worst 0",
    ],
)
def test_errors_speak_the_language_of_the_command_line(run, words):
    """Options are called as they are typed, not as Python has them."""
    Path("same.fa").write_text("".join(f">s{k}\n{P}\n" for k in range(6)))
    code, _, err = run(*words.split())
    assert code == USAGE and not NO_OPTION.search(err.split("error: ")[1]), err


def test_options_are_spoken():
    flags = {"--parts", "--folds", "--min-identity", "--too-large"}
    text = "a_file.fa: min_identity = 2, parts={'a': 0.8, 'b': 0.2} or folds=5"
    assert spoken(text, flags) == (
        "a_file.fa: --min-identity = 2, --parts a=0.8,b=0.2 or --folds 5"
    )
    assert spoken("too_large='keep', output='x'", flags) == (
        "--too-large keep, output='x'"
    )
    assert spoken("--min-identity too_large.fa", flags) == "--min-identity too_large.fa"


@pytest.mark.parametrize("suffix", ["tsv", "csv", "parquet", "txt"])
def test_lists_are_of_the_format_of_their_suffix(run, suffix):
    """Written and read: what one verb writes another audits."""
    odd = 'x,"y"'
    Path("odd.fa").write_text(f">{odd}\n{'Y' * 22}\n" + Path("s.fa").read_text())
    out = f"split.{suffix}"
    words = ("split", "odd.fa", *CUT, *HALVES, "-o", out)
    assert run(*words, "--certificate", "c.json")[0] == DONE
    content = Path(out).read_bytes()
    assert content.startswith(
        {"csv": b"name,part,component\n", "parquet": b"PAR1"}.get(
            suffix, b"name\tpart\tcomponent\n"
        )
    )
    table = delimited.read_names(out, {odd, *NAMES}, ("part",))
    assert [*table] == [odd, *NAMES] and {*table.values()} == {"train", "test"}
    assert run("audit", "odd.fa", "--split", out, *CUT)[0] == DONE
    assert run("audit", "--verify", "c.json")[0] == DONE
    for verb in ("cluster", "dedup"):
        option = "-o" if verb == "cluster" else "--list"
        words = (verb, "odd.fa", "--min-identity", "0.9", option, f"{verb}.{suffix}")
        assert run(*words)[0] == DONE
        assert len(delimited.rows_of(f"{verb}.{suffix}")) == 6


@pytest.mark.parametrize("suffix", ["xlsx", "json", "m8", "gz"])
def test_lists_of_no_format_are_refused(run, suffix):
    out = f"split.{suffix}"
    for words in (
        ("split", "s.fa", *CUT, *HALVES, "-o", out),
        ("cluster", "s.fa", "--min-identity", "0.5", "-o", out),
        ("dedup", "s.fa", "--list", out),
    ):
        code, _, err = run(*words)
        assert code == USAGE and f"{out}: the suffix" in err and not Path(out).exists()


def test_one_file_as_two_parts_is_refused(run):
    Path("also.fa").symlink_to("train.fa")
    for other in ("train.fa", "also.fa"):
        code, _, err = run("audit", "train.fa", "test.fa", other, *CUT)
        assert code == USAGE and "is given as two parts" in err


@pytest.mark.parametrize("heading", ["id,fold", "Entry,Split", "AC,cluster", "x,part"])
def test_headings_of_lists(run, heading):
    text = "".join(f"{name},{k // 2}\n" for k, name in enumerate(NAMES))
    Path("list.csv").write_text(f"{heading}\n{text}")
    code, _, err = run("audit", "s.fa", "--split", "list.csv", *CUT)
    assert code == DONE and "across 0 2, 1 2" in err


def test_lists_may_have_whole_headings(run):
    """What a table calls a sequence: its name, or its heading."""
    headings = [*RECORDS]
    text = "".join(f"{name}\t{k // 2}\n" for k, name in enumerate(headings))
    Path("list.tsv").write_text(text)
    assert " " in headings[0]
    assert run("audit", "s.fa", "--split", "list.tsv", *CUT)[0] == DONE
    words = ("--labels", "list.tsv", "--folds", "2")
    assert run("split", "s.fa", *CUT, *words)[0] == DONE
    Path("list.tsv").write_text(text.replace("first of all", "second of all"))
    code, _, err = run("split", "s.fa", *CUT, *words)
    assert code == INPUT and f"{NAMES[0]}) has no label" in err


def test_an_interruption_leaves_nothing(run, monkeypatch):
    from jaxalign.homology import clustering

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(clustering, "stream_links", interrupted)
    words = ("--min-identity", "0.5", "-o", "c.tsv", "--fasta", "r.fa")
    code, out, err = run("cluster", "s.fa", *words)
    assert code == INTERRUPTED and "interrupted" in err
    assert not {"c.tsv", "r.fa"} & {path.name for path in Path(".").iterdir()}


def test_progress_lines(run):
    words = ("--min-identity", "0.5", "--progress", "json")
    _, _, err = run("cluster", "s.fa", *words)
    assert '{"progress": {' in err


def test_records_of_what_is_read_once_or_is_an_index(run, folder):
    run("index", "s.fa", "-q")
    plain = run("dedup", "s.fa", "-q")[1].replace(" first of all", "")
    assert run("dedup", "s.fa.jaxdb", "-q")[1] == plain
    assert corpus_files.WIDTH == 60


def test_names_are_read_back(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text("a\\tb\tx\n\nc\ty\n")
    assert delimited.read_names(str(path), ()) == {"a\tb": "x", "c": "y"}


def test_one_json_object(run):
    links = ("--min-identity", "0.9", "--json", "-q")
    code, out, err = run("cluster", "s.fa", *links)
    found = json.loads(out)
    assert (code, err) == (DONE, "") and found["clusters"] == 3 and found["alone"] == 2
    assert found["pairs"]["all"] == 6 and found["definition"]["cut"] == 0.9
    digest = hashlib.sha256(Path("s.fa").read_bytes()).hexdigest()
    assert [one["sha256"] for one in found["inputs"]] == [digest]
    code, out, _ = run("dedup", "s.fa", *links, "-o", "kept.fa")
    assert (code, json.loads(out)["clusters"]) == (DONE, 3)
    assert Path("kept.fa").read_text().count(">") == 3
    code, out, _ = run("split", "s.fa", *CUT, *HALVES, "--json", "--certificate", "c")
    assert code == USAGE, "certificate describes a split in a file"
    code, out, _ = run("split", "s.fa", *CUT, *HALVES, "--json", "-o", "s.tsv", "-q")
    assert code == DONE and sum(json.loads(out)["parts"].values()) == 4
    words = ("audit", "train.fa", "test.fa", *CUT, "-q")
    code, out, _ = run(*words, "--json", "-o", "audit.json")
    assert code == LEAK and json.loads(out) == json.loads(
        Path("audit.json").read_text()
    )
    code, out, err = run("cluster", "s.fa", *links, "-o", "-")
    assert (code, out) == (USAGE, "") and "needs -o FILE" in err
