"""An audit covers every record or says so, and a certificate is what it says or is not
verified: lists of odd names, and every field of a certificate changed in turn."""

import json
from functools import partial
from itertools import combinations
from pathlib import Path

import jax  # noqa: F401  (before main(), which else turns on a compilation cache)
import pytest
from draws import changed, damaged
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaxalign.cli import audit
from jaxalign.cli.arguments import ScoringOptions
from jaxalign.cli.derive import Given
from jaxalign.cli.derive import changed as given_with
from jaxalign.cli.main import main
from jaxalign.errors import InputError, JaxalignError, LeakError, VerificationError
from jaxalign.homology import certificate
from jaxalign.model.names import written
from jaxalign.options import HomologyOptions

INPUT, LEAK, FORGED = (
    error.exit_code for error in (InputError, LeakError, VerificationError)
)
P = "MKTAYIAKQRQISFVKSHFSRQ"
TWINS = "ACDE"  # a sequence is one of these letters, so an identity is 0 or 1
CUT = ("--min-identity", "0.5")
every_length = pytest.mark.parametrize(
    "bounds",
    [
        partial(settings, max_examples=10, derandomize=True),
        pytest.param(partial(settings, max_examples=600), marks=pytest.mark.slow),
    ],
    ids=["short", "long"],
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.fa").write_text(f">a\n{P}\n>b\nGGGGGGGG\n")
    Path("test.fa").write_text(f">c\n{P[:-2]}WW\n>d\nHEAGAWGHEE\n")
    Path("s.fa").write_text(f">AC\n{P}\n>t2\n{P}\n>t3\nHEAGAWGHEE\n")
    return tmp_path


# ------------------------------------------------------------------------------- lists

NAMES = ("AC", "ac", "Name", "name", "NAME", "ZZ", "part", "cluster", "removed", "x,y")
NAMES += (r"a\tb", r"a\\tb", "a#", '"q"', "é", "a\x1bb")
PARTS = ("train", "test", "removed", "part", "cluster", "label")
HEADINGS = ("", "", "name\tpart", "AC\tcluster", "ac\tpart\tcomponent", "Name\tfold")


@st.composite
def lists(draw):
    """(names and letters of the records, heading or "", rows of names and parts)."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=2, max_size=5, unique=True))
    letters = {name: draw(st.sampled_from(TWINS)) * 5 for name in names}
    rows = [
        (name, draw(st.sampled_from(PARTS))) for name in draw(st.permutations(names))
    ]
    dropped = draw(st.sampled_from([None, None, *range(len(rows))]))
    rows = [row for k, row in enumerate(rows) if k != dropped]
    return letters, draw(st.sampled_from(HEADINGS)), rows


@every_length
def test_an_audit_covers_every_record(folder, capsys, bounds):
    """Code 0 only where no twins are across, and 6 only where some are, whatever the
    records and the parts are called; what is left out is said."""

    def check(drawn, partial_):
        letters, heading, rows = drawn
        word, _, part = heading.partition("\t")
        if part == "fold" and word in letters and word not in dict(rows):
            heading, rows = "", [(word, part), *rows]  # nothing tells the two apart
        Path("x.fa").write_text("".join(f">{n}\n{s}\n" for n, s in letters.items()))
        lines = [f"{written(name)}\t{part}" for name, part in rows]
        Path("x.tsv").write_text("\n".join(([heading] if heading else []) + lines))
        more = ("--partial",) * partial_
        code = main(["audit", "x.fa", "--split", "x.tsv", *CUT, "--json", *more])
        text, said = capsys.readouterr()
        inside = {name: part for name, part in rows if part != "removed"}
        pairs = combinations(inside.items(), 2)
        leaks = sum(letters[a] == letters[b] for (a, x), (b, y) in pairs if x != y)
        removed, unlisted = len(rows) - len(inside), len(letters) - len(rows)
        if code == INPUT:
            missing = bool(removed + unlisted) and not partial_
            one = len(set(inside.values())) < 2
            odd = "may be a heading" in said or "'Name' comes twice" in said
            assert missing or one or odd
            return
        assert code == (LEAK if leaks else 0)
        about = json.loads(text)
        assert about["leaks"] == leaks
        assert about["left_out"] == {"removed": removed, "unlisted": unlisted}
        assert partial_ or not removed + unlisted

    settled = bounds(
        deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    settled(given(lists(), st.booleans())(check))()


@pytest.mark.parametrize("name", ["AC", "name", "Name", "ZZ"])
def test_the_first_row_of_a_list_is_audited(run, name):
    """The first record of a list is no heading, whatever it is called."""
    Path("s.fa").write_text(f">{name}\n{P}\n>t2\n{P}\n>t3\nHEAGAWGHEE\n")
    for heading in ("", "name\tpart\n", "AC\tpart\n"):
        text = f"{heading}{name}\ttest\nt2\ttrain\nt3\ttest\n"
        Path("s.tsv").write_text(text)
        assert run("audit", "s.fa", "--split", "s.tsv", *CUT)[0] == LEAK, heading


def test_our_own_list_of_such_names(run):
    records = {"AC": P, "t2": P, "t3": "HEAGAWGHEE", "t4": "HEAGAWGHEE"}
    Path("s.fa").write_text("".join(f">{n}\n{s}\n" for n, s in records.items()))
    assert run("split", "s.fa", *CUT, "--folds", "2", "-o", "s.tsv")[0] == 0
    lines = Path("s.tsv").read_text().splitlines()
    assert lines[1].startswith("AC\tfold")
    other = {"fold1": "fold2", "fold2": "fold1"}
    name, part, number = lines[1].split("\t")
    lines[1] = "\t".join((name, other[part], number))
    Path("s.tsv").write_text("\n".join(lines))
    assert run("audit", "s.fa", "--split", "s.tsv", *CUT)[0] == LEAK


@pytest.mark.parametrize(
    "text, message",
    [
        ("AC\tpart\nt2\ttrain\nt3\ttest\n", "line 1: 'AC' is a sequence and may be a"),
        ("AC\ttest\nAC\ttrain\nt2\ttrain\nt3\ttest\n", "line 2: 'AC' comes twice"),
        (
            "AC\ttest\nt2\ttrain\n",
            "s.tsv: 1 of 3 sequences is in no part (1 unlisted): t3",
        ),
        ("AC\ttest\nt2\tremoved\nt3\ttrain\n", "s.tsv: 1 of 3 sequences is in no part"),
    ],
)
def test_lists_that_do_not_cover(run, text, message):
    Path("s.tsv").write_text(text)
    code, out, err = run("audit", "s.fa", "--split", "s.tsv", *CUT)
    assert (code, out) == (INPUT, "") and message in err


def test_a_partial_audit_says_what_it_left_out(run):
    Path("s.tsv").write_text("AC\ttest\nt2\tremoved\nt3\ttrain\n")
    words = ("audit", "s.fa", "--split", "s.tsv", *CUT, "--partial", "-o", "c.json")
    code, _, err = run(*words)
    assert code == 0 and "1 removed" in err
    about = json.loads(Path("c.json").read_text())
    assert "1 of 3 sequences is in no part" in about["claim"]
    code, _, err = run("audit", "--verify", "c.json")
    assert code == INPUT and "--partial" in err and "verified" not in err
    code, _, err = run("audit", "--verify", "c.json", "--partial")
    assert code == 0 and "verified" in err


def test_labels_of_such_names(run):
    """A record that is called as a heading keeps its label."""
    Path("l.tsv").write_text("AC\tx\nt2\ty\nt3\tx\n")
    words = ("--folds", "2", "--labels", "l.tsv", "-q", "--too-large", "keep")
    code, _, err = run("split", "s.fa", *CUT, *words)
    assert (code, err) == (0, "")
    Path("l.tsv").write_text("AC\tlabel\nt2\ty\nt3\tx\n")
    code, _, err = run("split", "s.fa", *CUT, *words)
    assert code == INPUT and "may be a heading" in err


# ------------------------------------------------------------------------ certificates


CERTIFICATES = {
    "clean": ("train.fa", "test.fa", "--min-identity", "0.95"),
    "leaks": ("train.fa", "test.fa", *CUT, "--worst", "3", "--min-length-ratio", "0.5"),
    "partial": ("s.fa", "--split", "s.tsv", *CUT, "--partial", "--unknown", "X"),
    "whole": ("train.fa", "test.fa", *CUT, "--link", "whole"),
    "dna": ("train.fa", "test.fa", *CUT, "--match", "3", "--mismatch", "-1.5",
            "--alphabet", "dna", "--unknown", "mask", "--mode", "semiglobal"),
    "covered": ("train.fa", "test.fa", *CUT, "--min-cov", "0.5", "--coverage", "query"),
    "evidence": ("train.fa", "test.fa", *CUT, "--edges", "e.tsv:3>=0.5,unknown=count",
                 "--edges", "e.csv:tm<=2,and", "--together", "g.tsv"),
    "purged": ("train.fa", "--against", "test.fa", *CUT, "--min-cov", "0.95",
               "-o", "clean.fa", "--certificate", "c.json"),
}  # fmt: skip


def certified(kind: str) -> tuple[int, dict]:
    """(the code of an audit, its certificate), and its files in this folder."""
    Path("s.fa").write_text(f">AC\n{P}\n>t2\n{P}\n>t3\nHEAGAWGHEEU\n")
    Path("s.tsv").write_text("AC\ttest\nt2\tremoved\nt3\ttrain\n")
    Path("e.tsv").write_text("a\tc\t0.5\nb\td\t0.7\nx\ta\t1\na\ta\t1\n")
    Path("e.csv").write_text("query,target,rmsd,tm\r\na,c,9,2\r\n")
    Path("g.tsv").write_text("name\tcomplex\tstudy\nb\t1\tx\nd\t1\ty\n")
    verb = ["purge"] if kind == "purged" else ["audit", "-o", "c.json"]
    code = main([*verb, *CERTIFICATES[kind], "-q", "--force"])
    return code, json.loads(Path("c.json").read_text())


# The values of ``audit --verify c.json --partial --quiet``.
NOT_GIVEN = "verify min_identity split out column leaks plot report link mode identity"
USUAL = Given(
    **vars(HomologyOptions()) | dict.fromkeys(NOT_GIVEN.split()) | {"progress": "none"},
    scoring=ScoringOptions(),
    device="auto",
    partial=True,
    quiet=True,
    force=False,
    json=False,
    across_only=False,
    named={},
)


def verify(parts=()) -> int:
    """The code of ``audit PARTS --verify c.json --partial``, without reading
    words."""
    try:
        return audit.verify("c.json", given_with(USUAL, parts=parts))
    except JaxalignError as error:
        return error.exit_code


@pytest.mark.parametrize(
    "kind, step",
    [
        ("leaks", 5),
        ("partial", 7),
        *(
            pytest.param(kind, 3 if kind == "evidence" else 1, marks=pytest.mark.slow)
            for kind in CERTIFICATES
        ),
    ],
)
def test_every_field_of_a_certificate_is_verified(folder, capsys, kind, step):
    """All of them are missing once, and every ``step``-th other change is made."""
    code, about = certified(kind)
    assert verify() == code and code in (0, LEAK)
    passed = []
    for number, (what, again) in enumerate(changed(about)):
        if number % step == 0 or KeyError in what:
            Path("c.json").write_text(json.dumps(again))
            code = verify()
            passed += [] if code in (INPUT, FORGED) else [(what, code)]
    assert passed == []


def test_a_certificate_in_earlier_words_is_verified(folder, capsys):
    """A question that was worded otherwise is the same; another question is not."""
    code, about = certified("leaks")
    about["question"] = about["question"].replace(*certificate.REWORDED)
    assert certificate.REWORDED[1] in about["question"]
    Path("c.json").write_text(json.dumps(about))
    assert verify() == code
    about["question"] += " of each"
    Path("c.json").write_text(json.dumps(about))
    assert verify() == FORGED


@pytest.mark.parametrize("step", [53, pytest.param(3, marks=pytest.mark.slow)])
def test_a_damaged_certificate_is_not_verified(folder, capsys, step):
    """It verifies where its text still means the same."""
    certified("partial")
    data = Path("c.json").read_bytes()
    for what, content in damaged(data, step):
        Path("c.json").write_bytes(content)
        if verify() not in (INPUT, FORGED):
            assert json.loads(content) == json.loads(data), what


def test_no_field_is_missing_where_others_give_the_files(folder):
    """The paths of the certificate are not opened, but are its own."""
    _, about = certified("leaks")
    parts = "train.fa", "test.fa"
    assert verify(parts) == LEAK
    for what, again in changed(about):
        if KeyError in what:
            Path("c.json").write_text(json.dumps(again))
            assert verify(parts) in (INPUT, FORGED), what


def test_files_of_a_certificate_are_verified(run):
    """Another byte in an input or a list is found, though no sequence is another."""
    for kind, file in (
        ("clean", "train.fa"),
        ("partial", "s.tsv"),
        ("partial", "s.fa"),
        ("evidence", "e.tsv"),
        ("evidence", "g.tsv"),
    ):
        certified(kind)
        Path(file).write_text(Path(file).read_text() + "\n")
        code, _, err = run("audit", "--verify", "c.json", "--partial")
        assert code == FORGED and "sha256" in err and "verified" not in err


def test_a_field_that_comes_twice(run):
    certified("leaks")
    text = Path("c.json").read_text()
    Path("c.json").write_text(text.replace('"leaks"', '"leaks": 0, "leaks"', 1))
    code, _, err = run("audit", "--verify", "c.json")
    assert code == INPUT and "'leaks' comes twice" in err


def test_a_certificate_from_python(run):
    """It names no files, and is verified with those that somebody has."""
    import jaxalign

    parts = {"train": Path("train.fa"), "test": Path("test.fa")}
    about = jaxalign.audit(parts, min_identity=0.95).certificate()
    Path("c.json").write_text(json.dumps(about))
    assert about["inputs"] == [] and about["split"] is None
    assert run("audit", "--verify", "c.json")[0] == INPUT
    words = ("audit", "train.fa", "test.fa", "--verify", "c.json")
    assert run(*words)[0] == 0
    Path("c.json").write_text(json.dumps(about | {"pairs": 5}))
    assert run(*words)[0] == FORGED
