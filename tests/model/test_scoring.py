"""Scoring: gap conventions, fractions, presets, matrices of any kind, errors."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from biotite.sequence.align import SubstitutionMatrix

import jaxalign
from jaxalign import Scoring, UsageError
from jaxalign.model import scoring
from jaxalign.model.scoring import PRESET_NAMES, preset, resolve_ends
from jaxalign.model.statistics import parameters

NCBI = """# a comment, and a matrix that is not symmetric
   A  C  G  T
A  5 -4 -3 -4
C -4  5 -4 -3
G -1 -4  5 -4
T -4 -2 -4  6
"""


def gap_of(scoring, k):
    return (scoring.open + (k - 1) * scoring.extend) / scoring.scale


def test_default_is_blosum62_11_1():
    s = Scoring()
    assert (s.matrix_name, s.open, s.extend, s.scale) == ("BLOSUM62", 11, 1, 1)
    assert str(s) == "BLOSUM62, gap(k) = 11 + 1*(k-1)"
    at = {letter: k for k, letter in enumerate(s.alphabet.letters)}
    pairs = {"WW": 11, "AA": 4, "XX": -1, "BZ": 1, "WA": -3, "*W": -4, "**": 1}
    assert {p: s.scores[at[p[0]], at[p[1]]] for p in pairs} == pairs
    assert s.scores.dtype == np.int32 and s.symmetric


def test_blast_counts_opening_beside_the_first_residue():
    s = Scoring.blast(11, 1)
    assert [gap_of(s, k) for k in (1, 2, 10)] == [12, 13, 21]
    assert str(s) == "BLOSUM62, gap(k) = 12 + 1*(k-1)"
    assert Scoring.blast(10, 2, "BLOSUM50").matrix_name == "BLOSUM50"


def test_fractions_are_scaled_to_integers():
    s = Scoring("BLOSUM62", 10, 0.5)
    assert (s.scale, s.open, s.extend) == (2, 20, 1)
    np.testing.assert_array_equal(s.scores, 2 * Scoring().scores)
    assert str(s) == "BLOSUM62, gap(k) = 10 + 0.5*(k-1)"
    fine = Scoring(("AB", [[0.3, -0.125], [0, 1]]), 0.7, 0.001)
    assert (fine.scale, fine.open, fine.extend) == (1000, 700, 1)
    assert fine.scores.tolist() == [[300, -125], [0, 1000]]
    assert Scoring(gap_open=np.float64(1.5), gap_extend=np.int64(1)).scale == 2


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_presets(name):
    costs = {"blastp": (12, 1), "blastn": (7, 2), "needle": (10, 0.5)}
    costs |= {"ssearch": (12, 2), "mmseqs": (11, 1), "parasail": (10, 1)}
    costs |= {"ssearch-dna": (16, 4)}
    costs["foldseek"] = (10, 1)
    s = Scoring.preset(name)
    assert (gap_of(s, 1), gap_of(s, 2) - gap_of(s, 1)) == costs[name]
    modes = {"needle": ("semiglobal", "full")}
    wanted = modes.get(name, ("local", "alignment"))
    assert (preset(name).mode, preset(name).identity) == wanted
    names = {"blastn": "match 2 / mismatch -3", "ssearch": "BLOSUM50"}
    names |= {"ssearch-dna": "NUC"}
    names["foldseek"] = "protein + 3di"
    assert s.matrix_name == names.get(name, "BLOSUM62")


def test_match_mismatch_and_alphabets():
    dna = Scoring(match=1, mismatch=-1)
    codes = dna.alphabet.encode("ACGTN")
    assert dna.alphabet.kind == "dna"
    same = dna.scores[codes, codes].tolist()
    assert same == [1, 1, 1, 1, -1]  # unknown matches nothing
    assert dna.identical[codes, codes].tolist() == [True] * 4 + [False]
    # The usual gaps are those of blastn, in either convention; of others as before.
    for usual in (dna, Scoring.blast(match=1, mismatch=-1), replace(dna, match=3)):
        assert (usual.gap_open, usual.gap_extend) == (7, 2)
    for usual in (Scoring("NUC"), Scoring(match=1, mismatch=0, alphabet="protein")):
        assert (usual.gap_open, usual.gap_extend) == (11, 1)
    for kind in ("dna", "rna"):
        plain = Scoring(match=2, mismatch=-3, alphabet=kind)
        assert parameters(plain, "local") is not None
        assert plain == replace(preset("blastn").scoring, alphabet_name=kind)
    rna = Scoring("NUC", 10, 1, alphabet="rna")
    assert rna.alphabet.encode("ACGU").tolist() == codes[:4].tolist()
    own = Scoring(match=2, mismatch=0, alphabet="xyz")
    assert own.alphabet.letters == "xyz" and own.identical.all() == own.identical[0, 1]
    protein = Scoring(match=3, mismatch=-2, alphabet="protein")
    assert protein.alphabet == Scoring().alphabet


def test_x_is_identical_to_nothing():
    s = Scoring()
    x, w = s.alphabet.encode("XW")
    assert s.identical[w, w] and not s.identical[x, x] and not s.identical[w, x]


def test_ncbi_file(tmp_path):
    path = tmp_path / "own.mat"
    path.write_text(NCBI)
    s = Scoring(str(path), 5, 2)
    assert s.alphabet.letters == "ACGT" and not s.symmetric
    a, g = s.alphabet.encode("AG")
    assert (s.scores[a, g], s.scores[g, a]) == (-3, -1)  # row: the query's letter
    score = jaxalign.align("AG", "GG", s).score
    assert score == jaxalign.align("AG", "GG", Scoring(("ACGT", s.scores), 5, 2)).score


def test_shuffled_columns_are_put_in_order(tmp_path):
    path = tmp_path / "shuffled.mat"
    path.write_text("  C A\nA -1 2\nC 3 -2\n")
    s = Scoring(str(path))
    a, c = s.alphabet.encode("AC")
    assert (s.scores[a, a], s.scores[a, c], s.scores[c, a]) == (2, -1, -2)


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "no header line"),
        ("# only\n", "no header line"),
        ("A C\nA 1\nC 1 2\n", "line 2: row 'A' has 1 scores of 2"),
        (
            "#\nA C\nA 1 2\nG 1 2\n",
            "line 4: row 'G' is not a letter of the header, line 2",
        ),
        ("A C\nA 1 x\nC 1 2\n", "line 2: row 'A', column 'C': 'x' is not a number"),
        ("AA C\nAA 1 2\nC 1 2\n", "line 1: 'AA' is not a single letter"),
        ("A C\nA 1 2\n", "no row for 'C'"),
        ("A C\nA 1 nan\nC 1 2\n", "line 2: row 'A', column 'C': 'nan' is not a number"),
        (
            "A C\nA 1 2\nC -inf 2\n",
            "line 3: row 'C', column 'A': '-inf' is not a number",
        ),
        (
            "A C\nA 1 1e400\nC 1 2\n",
            "line 2: row 'A', .*'1e400' is not a finite number",
        ),
        ("A C\nA 1 1_0\nC 1 2\n", "line 2: row 'A', column 'C': '1_0' is not a number"),
        (
            "A C\nA 1 \uff12\nC 1 2\n",
            "line 2: row 'A', column 'C': '.' is not a number",
        ),
        ("A C\nA 1 0x1\nC 1 2\n", "line 2: row 'A', column 'C': '0x1' is not a number"),
        ("A C\nA 1 2\nC 1 2\nA 3 4\n", "line 4: row 'A' is in line 2 already"),
        ("#\nA C A\nA 1 2 3\nC 1 2 3\n", "line 2: letters must differ, and 'A'"),
        ("A >\nA 1 2\n> 1 2\n", "line 1: '>' cannot be a letter"),
        ("A -\nA 1 2\n- 1 2\n", "line 1: '-' cannot be a letter"),
        ("A \u00e9\nA 1 2\n\u00e9 1 2\n", "line 1: '.' cannot be a letter"),
        ("# a\u2028b\nA C\nA 1 x\nC 1 2\n", "line 3: row 'A', column 'C': 'x'"),
        ("A C\nA 1 2\n\0\0\n", "line 3: a zero byte"),
        ("#" * (2**22 + 1), "larger than"),
    ],
    ids=lambda text: ascii(text)[:40],
)
def test_bad_matrix_files(tmp_path, text, message):
    path = tmp_path / "bad.mat"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=f"bad.mat.*{message}"):
        _ = Scoring(str(path)).scores


def test_a_binary_file_is_no_matrix(tmp_path):
    path = tmp_path / "bad.mat"
    path.write_bytes(bytes(range(128, 256)) * 9)
    with pytest.raises(UsageError, match="bad.mat.*no header line"):
        Scoring(str(path))
    path.write_bytes(b"A C\n\xff\xfe 1 2\nC 1 2\n")
    with pytest.raises(UsageError, match="bad.mat, line 2: row"):
        Scoring(str(path))


@pytest.mark.parametrize("name", ["a\0b", "m" * 5000, ""])
def test_a_name_that_no_file_can_have(name):
    with pytest.raises(UsageError, match="unknown matrix"):
        Scoring(name)


def test_marks_and_ends_of_lines_of_other_systems(tmp_path):
    path = tmp_path / "own.mat"
    path.write_bytes(b"\xef\xbb\xbfA C\r\nA 1 2e0\r\nC +3. -.5\r\n")
    assert scoring.load_matrix(str(path))[1].tolist() == [[1, 2], [3, -0.5]]
    path.write_bytes(b"# \xe9\rA C\rA 1 2\rC 3 4\r")
    assert scoring.load_matrix(str(path))[1].tolist() == [[1, 2], [3, 4]]


def test_a_matrix_file_that_changed_is_read_again(tmp_path, monkeypatch):
    for folder, score in (("one", 1), ("other", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "m.txt").write_text(f"A C\nA {score} 0\nC 0 {score}\n")
    monkeypatch.chdir(tmp_path / "one")
    first = Scoring("m.txt")
    assert jaxalign.align("ACCA", "ACCA", first).score == 4
    monkeypatch.chdir(tmp_path / "other")
    assert jaxalign.align("ACCA", "ACCA", Scoring("m.txt")).score == 8
    assert Scoring("m.txt") != first
    (tmp_path / "other" / "m.txt").write_text("A C\nA 3 0\nC 0 3\n")
    assert jaxalign.align("ACCA", "ACCA", Scoring("m.txt")).score == 12
    # A scoring is a value: what it read stays.
    assert jaxalign.align("ACCA", "ACCA", first).score == 4


def test_a_folder_is_no_matrix(tmp_path):
    with pytest.raises(UsageError, match="is a folder"):
        Scoring(str(tmp_path))


def test_every_bundled_matrix_loads():
    """With either biotite, J left out, in an order of our own."""
    for name in scoring.matrix_names():
        s = Scoring(name)
        assert s.scores.shape == (s.alphabet.size,) * 2
    assert Scoring("blosum62").alphabet == Scoring("EBLOSUM62").alphabet
    assert Scoring("EDNAFULL").alphabet.letters[:4] == "ACGT"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(gap_open=-1), "gap_open = -1"),
        (dict(gap_extend=-0.5), "gap_extend = -0.5"),
        (dict(gap_open=1, gap_extend=2), "gap_extend = 2 exceeds gap_open"),
        (dict(gap_open=float("nan")), "gap_open"),
        (dict(gap_open="11"), "gap_open"),
        (dict(gap_open=2**15), "gap_open"),
        (dict(match=1), "needed together"),
        (dict(alphabet="dna"), "letters of BLOSUM62 are protein; the preset blastn"),
        (dict(matrix="NUC", alphabet="protein"), "letters of NUC are dna"),
        (dict(match=float("nan"), mismatch=0), "match"),
        (dict(matrix="BLOSUM26"), "unknown matrix 'BLOSUM26'"),
        (dict(gap_open=10.0001), "10.0001: gap costs and scores must all"),
        (dict(gap_extend=1 / 3), "of one fraction, 1/1000 or more"),
        (dict(matrix=("AB", [[1]])), "shape"),
        (dict(matrix=np.eye(3)), "an array needs its letters"),
        (dict(gap_open=True), "gap_open = True"),
        (dict(gap_extend=np.bool_(False)), "gap_extend = "),
        (dict(gap_open=1j), "gap_open = 1j"),
        (dict(match=True, mismatch=0), "match = True"),
        (dict(match="2", mismatch=0), "match = '2'"),
        (dict(match=1, mismatch=0, alphabet=["A"]), "alphabet"),
        (dict(match=1, mismatch=0, alphabet="AA"), "differ"),
        (dict(match=1, mismatch=0, alphabet="A-"), "'-' cannot be a letter"),
        (
            dict(match=1e308, mismatch=0, gap_open=0.5, gap_extend=0.5),
            "must stay below",
        ),
        (dict(matrix=("AA", [[1, 2], [3, 4]])), "differ"),
        (dict(matrix=("A>", [[1, 2], [3, 4]])), "'>' cannot be a letter"),
        (dict(matrix=("AB", [["1", "2"], ["3", "4"]])), "numbers are needed"),
        (dict(matrix=("AB", [[1, 2], [3]])), "cannot be read"),
        (dict(matrix=([1, 2], [[1, 2], [3, 4]])), "cannot be read"),
        (dict(matrix=("".join(map(chr, range(33, 333))), np.eye(300))), "letter"),
        (dict(matrix=("AB", [[1, 2], [3, np.inf]])), "finite"),
        (dict(matrix=("AB", [[1, 2], [3, 40000]])), "must stay below"),
    ],
    ids=str,
)
def test_errors_when_made(arguments, message):
    with pytest.raises(UsageError, match=message):
        Scoring(**arguments)


def test_a_scoring_is_a_value():
    """``Scoring() != Scoring()``, and ``dataclasses.replace`` raised."""
    own = ("ACDWX", np.arange(25.0).reshape(5, 5))
    makers = [
        Scoring,
        lambda: Scoring("PAM250"),
        lambda: Scoring(gap_open=12),
        lambda: Scoring("NUC", 8, 2),
        lambda: Scoring("NUC", 8, 2, alphabet="rna"),
        lambda: Scoring(match=2, mismatch=-3),
        lambda: Scoring(match=2, mismatch=-3, alphabet="rna"),
        lambda: Scoring(match=2, mismatch=-3, alphabet="protein"),
        lambda: Scoring(own, 4, 2),
        lambda: Scoring(("ACDWY", own[1]), 4, 2),
        lambda: Scoring((own[0], own[1] + 1), 4, 2),
    ]
    assert len({make() for make in makers}) == len(makers)
    for make in makers:
        made = make()
        for other in (make(), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
            assert other == made and hash(other) == hash(made)
        assert replace(made) == made and made != "BLOSUM62"
        assert "\n" not in repr(made) and len(repr(made)) < 90
    assert Scoring("eblosum62", 11.0, np.int64(1)) == Scoring()
    assert Scoring("EDNAFULL") == Scoring("NUC.4.4") == Scoring("NUC")
    assert Scoring("PAM250", match=1, mismatch=0) == Scoring(match=1, mismatch=0)


def test_replaced_fields():
    assert replace(Scoring(), gap_open=5) == Scoring(gap_open=5)
    assert replace(Scoring(), matrix="PAM250") == Scoring("PAM250")
    rna = Scoring(match=1, mismatch=-1, alphabet="rna")
    assert replace(rna, mismatch=-2) == Scoring(match=1, mismatch=-2, alphabet="rna")
    assert replace(rna, alphabet_name="dna") == Scoring(match=1, mismatch=-1)
    with pytest.raises(UsageError, match="gap_open = -1"):
        replace(Scoring(), gap_open=-1)


def test_an_array_is_copied():
    scores = np.eye(2)
    made, other = Scoring(("AC", scores)), Scoring((list("AC"), np.eye(2).tolist()))
    scores[0, 0] = 7
    assert made == other and made.scores.tolist() == [[1, 0], [0, 1]]
    with pytest.raises(ValueError, match="read-only"):
        made.matrix[1][0, 0] = 7


def test_unknown_preset():
    with pytest.raises(UsageError, match="unknown preset 'blast'"):
        Scoring.preset("blast")


def test_modes_and_free_ends():
    four = {"query_start", "query_end", "target_start", "target_end"}
    assert resolve_ends("semiglobal") == four and resolve_ends("local") == set()
    assert resolve_ends("global", ["query_end"]) == {"query_end"}
    with pytest.raises(UsageError, match="unknown mode 'glocal'"):
        resolve_ends("glocal")
    with pytest.raises(UsageError, match="free_ends = <list_iterator"):
        resolve_ends("global", iter(["query_end"]))
    with pytest.raises(UsageError, match="unknown free end 'q5'"):
        resolve_ends("global", ["q5"])
    for mode in ("local", "semiglobal"):
        with pytest.raises(UsageError, match="free_ends goes with mode 'global'"):
            resolve_ends(mode, ["query_end"])


@pytest.mark.parametrize("imported", [False, True])
def test_bundled_matrices_are_those_of_biotite(imported, monkeypatch):
    """Its files are read without importing it; without them it is imported."""
    known = sorted(SubstitutionMatrix.list_db())
    for function in (scoring.matrix_names, scoring._from_biotite):
        monkeypatch.setattr(scoring, function.__name__, function.__wrapped__)
    assert scoring._matrix_folder() is not None
    if imported:
        monkeypatch.setattr(scoring, "_matrix_folder", lambda: None)
    assert list(scoring.matrix_names()) == known and len(known) > 80
    for name in known:
        scores = SubstitutionMatrix.dict_from_db(name)
        letters, table = scoring._from_biotite(name)
        if name == "3Di":  # which has an unknown state here
            assert letters[-1] == "x" and not table[-1].any() and not table[:, -1].any()
            letters, table = letters[:-1], table[:-1, :-1]
        assert {*letters} == {a for a, _ in scores} - ({"J"} - {*letters})
        want = [[scores[a, b] for b in letters] for a in letters]
        np.testing.assert_array_equal(table, want, err_msg=name)
