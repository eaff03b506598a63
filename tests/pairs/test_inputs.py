"""What a caller may hold: every form of input, at every public function."""

import gzip
import subprocess
import sys
import warnings
from pathlib import Path

import biotite.sequence as seq
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from Bio.Seq import MutableSeq, Seq
from Bio.SeqRecord import SeqRecord

import jaxalign
from jaxalign import InputError, Scoring, UsageError

NAMED = {"a": "MKTAYIAKQR", "b": "MKTAIAKQR", "c": "MRTAYLAR"}
TEXTS = list(NAMED.values())
FASTA = "".join(f">{name} and more\n{text}\n" for name, text in NAMED.items())
DNA = "ACGTTGCAAGGCTTACGATT"
NUCLEIC = Scoring("NUC")
SETS = {
    "align_pairs": lambda x, **o: jaxalign.align_pairs(x, x, **o),
    "align_all": jaxalign.align_all,
    "stream_all": lambda x, **o: [*jaxalign.stream_all(x, **o)],
    "scores_matrix": jaxalign.scores_matrix,
    "scores_matrix of two": lambda x, **o: jaxalign.scores_matrix(x, x, **o),
    "distance_matrix": jaxalign.distance_matrix,
    "plan": jaxalign.plan,
    "search": lambda x, **o: jaxalign.search(x, x, **o),
    "stream_search": lambda x, **o: [*jaxalign.stream_search(x, x, **o)],
}
PAIRS = {
    "align": jaxalign.align,
    "dp_table": jaxalign.dp_table,
    "directions": jaxalign.directions,
}
TRIPLES = {
    "align_three": jaxalign.align_three,
    "plan_three": jaxalign.plan_three,
    "align_triples": lambda *three, **o: jaxalign.align_triples([three], **o),
}
every_set = pytest.mark.parametrize("call", SETS.values(), ids=SETS)
every_pair = pytest.mark.parametrize("call", PAIRS.values(), ids=PAIRS)
every_triple = pytest.mark.parametrize("call", TRIPLES.values(), ids=TRIPLES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files: three records, their index, and one record each."""
    at = tmp_path_factory.mktemp("inputs")
    (at / "all.fa").write_text(FASTA)
    (at / "all.fa.gz").write_bytes(gzip.compress(FASTA.encode()))
    jaxalign.index_database(at / "all.fa", at / "all.jaxdb")
    for name, text in NAMED.items():
        (at / f"{name}.fa").write_text(f">{name}\n{text}\n")
    return at


def record(name, text, **annotations):
    return SeqRecord(Seq(text), id=name, annotations=annotations)


def same(one, other):
    """Results of any public function are alike."""
    if isinstance(one, jaxalign.Table):
        assert one.queries.texts() == other.queries.texts()
        assert tuple(one.queries.names) == tuple(other.queries.names)
        for name in one.columns:
            np.testing.assert_array_equal(one[name], other[name])
    elif isinstance(one, (list, tuple, jaxalign.TripleTable)):
        for a, b in zip(one, other, strict=True):
            same(a, b)
    elif isinstance(one, (jaxalign.Alignment, jaxalign.TripleAlignment)):
        assert str(one) == str(other)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other)


# ------------------------------------------------------------------------------- sets


@every_set
def test_a_set_in_any_form(call, folder):
    """The keys of a mapping were aligned; a path was a TypeError in align_all."""
    want = call(list(NAMED.items()))
    for given in (
        NAMED,
        {name: seq.ProteinSequence(text) for name, text in NAMED.items()},
        {name: Seq(text) for name, text in NAMED.items()},
        [record(*item) for item in NAMED.items()],
        [("a", TEXTS[0]), ("b", MutableSeq(TEXTS[1])), ("c", Seq(TEXTS[2]))],
        [(name, jnp.asarray(Scoring().alphabet.encode(text)))
         for name, text in NAMED.items()],
        [folder / "a.fa", str_record("b"), ("c", folder / "c.fa")],
        folder / "all.fa",
        str(folder / "all.fa"),
        folder / "all.fa.gz",
        folder / "all.jaxdb",
        jaxalign.open_database(folder / "all.jaxdb"),
    ):  # fmt: skip
        same(call(given), want)


def str_record(name):
    return name, NAMED[name]


@every_set
def test_no_set(call, folder):
    for given, message in (
        (5, "a int is not a set of sequences: give a list"),
        (None, "a NoneType is not a set"),
        (Scoring(), "a Scoring is not a set"),
        (b"MKV", "a list of sequences is needed, not one string"),
        (Seq("MKV"), r"a Seq may stand in a list, \[sequence\]"),
        (seq.ProteinSequence("MKV"), "a ProteinSequence may stand in a list"),
        (np.array([1, 2, 3], np.uint8), "a ndarray may stand in a list"),
        ("MKTAYIA", "MKTAYIA: no such file. Where a set of sequences is wanted"),
        (Path("nowhere.fa"), "nowhere.fa: no such file"),
        ([folder / "all.fa"], "has 3 records; one is needed"),
        ([3], "record 1: a int is not a sequence"),
        (["MK", ("b", None)], "record 2: a NoneType is not a sequence"),
        ([("a", "MK", "V")], "a tuple is not a sequence"),
        ([np.array([1.5])], "codes must be integers in one dimension"),
        ([Seq(None, 5)], "record|undefined"),
        ([("a\nb", "MK1")], r"record 1 \(a\\nb\), column 3"),
    ):
        if given is not None or call is not jaxalign.scores_matrix:
            with pytest.raises(InputError, match=message):
                call(given)


def test_a_frame_is_no_set():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"name": list(NAMED), "sequence": TEXTS})
    with pytest.raises(InputError, match="a DataFrame is not a set"):
        jaxalign.align_all(frame)
    same(jaxalign.align_all(frame["sequence"]), jaxalign.align_all(TEXTS))


def test_names_are_texts():
    table = jaxalign.align_all([(1, "MK"), ("b", "MK"), record("", "MK")])
    assert table.queries.names == ("1", "b", "seq3")


def test_neither_library_is_imported_for_the_question():
    program = (
        "import sys, jaxalign; jaxalign.align_all(['MK', 'MR'])\n"
        "assert 'Bio' not in sys.modules, 'Bio came in'"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# ---------------------------------------------------------------------------- singles


@every_pair
def test_a_single_sequence_in_any_form(call, folder):
    want = call(("a", TEXTS[0]), ("b", TEXTS[1]))
    for a, b in (
        (folder / "a.fa", folder / "b.fa"),
        (("a", folder / "a.fa"), {"b": TEXTS[1]}),
        (record("a", TEXTS[0]), ("b", Seq(TEXTS[1]))),
        (jaxalign.open_database(folder / "all.jaxdb").take([0]), str_record("b")),
    ):
        same(call(a, b), want)
    same(call(*TEXTS[:2]), call(Seq(TEXTS[0]), seq.ProteinSequence(TEXTS[1])))


@every_pair
def test_no_single_sequence(call, folder):
    with pytest.raises(InputError, match=r"all.fa: has 3 records; one is needed"):
        call(folder / "all.fa", "MK")
    with pytest.raises(InputError, match="target: has 3 sequences; one is needed"):
        call("MK", NAMED)
    with pytest.raises(InputError, match="record 1: a list is not a sequence"):
        call(["MK"], "MK")


def test_single_sequences_are_called_as_their_arguments():
    found = jaxalign.align(Seq("MK"), record("<unknown id>", "MK"))
    assert (found.query_name, found.target_name) == ("query", "target")


@every_triple
def test_a_triple_in_any_form(call, folder):
    want = call(*NAMED.items())
    same(call(*(folder / f"{name}.fa" for name in NAMED)), want)
    same(call(*(record(*item) for item in NAMED.items())), want)
    same(call(*({name: text} for name, text in NAMED.items())), want)


@pytest.mark.slow
def test_triples_in_any_form(folder):
    want = jaxalign.align_triples([tuple(NAMED.items())] * 2)
    assert want[0].names == tuple(NAMED)
    same(jaxalign.align_triples([NAMED, folder / "all.fa"]), want)
    database = jaxalign.open_database(folder / "all.jaxdb")
    same(jaxalign.align_triples(iter([database, NAMED])), want)
    same(jaxalign.align_triples(folder / "all.fa"), want[:1])
    (bare,) = jaxalign.align_triples([TEXTS])
    assert bare.names == ("a", "b", "c")
    for wrong in (["MK", "MR"], {"a": "MK"}):
        with pytest.raises(InputError, match="a triple has three sequences, not"):
            jaxalign.align_triples([wrong])


# ---------------------------------------------------------------------------- scoring


@pytest.mark.parametrize("call", [*SETS.values()], ids=SETS)
def test_a_set_scored_by_the_name_of_a_matrix(call):
    """``align("MKT", "MKA", "PAM250")`` was an AttributeError."""
    same(call(TEXTS, scoring="PAM250"), call(TEXTS, scoring=Scoring("PAM250")))
    for wrong, message in WRONG_SCORINGS:
        with pytest.raises(UsageError, match=message):
            call(TEXTS, scoring=wrong)


@pytest.mark.parametrize(
    "call", [*PAIRS.values(), *TRIPLES.values()], ids=[*PAIRS, *TRIPLES]
)
def test_sequences_scored_by_the_name_of_a_matrix(call):
    few = TEXTS[:2] if call in PAIRS.values() else TEXTS
    same(call(*few, scoring="PAM250"), call(*few, scoring=Scoring("PAM250")))
    for wrong, message in WRONG_SCORINGS:
        with pytest.raises(UsageError, match=message):
            call(*few, scoring=wrong)


WRONG_SCORINGS = [
    (11, "scoring is a int: a Scoring, the name of a matrix such as 'BLOSUM62'"),
    ("BLOSUM26", "unknown matrix 'BLOSUM26'"),
    ("blastn", r"'blastn' is a preset: use Scoring.preset\('blastn'\)"),
]


def test_other_functions_take_a_scoring_by_name(tmp_path):
    (tmp_path / "d.fa").write_text(f">d\n{DNA}\n")
    made = jaxalign.index_database(tmp_path / "d.fa", tmp_path / "d.jaxdb", "NUC")
    assert made["records"] == 1
    with pytest.raises(UsageError, match="scoring is a list"):
        jaxalign.index_database(tmp_path / "d.fa", tmp_path / "e.jaxdb", [1])
    accurate = jaxalign.mea_alignment(np.eye(3), "MKV", "MRV", "PAM250")
    assert accurate.scoring == Scoring("PAM250")
    own = ("AC", np.eye(2))
    assert jaxalign.align("AC", "AC", own).scoring == Scoring(own)
    (tmp_path / "own.mat").write_text("  A C\nA 1 0\nC 0 1\n")
    assert jaxalign.align("AC", "AC", tmp_path / "own.mat").score == 2


# ------------------------------------------------------------------------ nucleotides


@every_set
def test_sets_of_nucleotides(call, tmp_path):
    """DNA was scored with BLOSUM62 without a word."""
    typed = [seq.NucleotideSequence(DNA)], [record("d", DNA, molecule_type="mRNA")]
    for given in typed:
        with pytest.raises(UsageError, match=r"record 1 .* use scoring=Scoring.preset"):
            call(given)
        call(given, scoring=NUCLEIC)
    (tmp_path / "d.fa").write_text(f">d\n{DNA}\n")
    for given in ([DNA], {"d": DNA}, tmp_path / "d.fa", [Seq(DNA)], [DNA.lower()]):
        with pytest.warns(UserWarning, match="all letters are nucleotides, and BLOSUM"):
            call(given)
        call(given, scoring=NUCLEIC)


@every_pair
def test_pairs_of_nucleotides(call):
    with pytest.raises(UsageError, match="is of type NucleotideSequence"):
        call(seq.NucleotideSequence(DNA), "MK")
    with pytest.warns(UserWarning, match="nucleotides") as caught:
        call(DNA, DNA[::-1])
    assert [one.filename for one in caught] == [__file__]
    call(DNA, DNA, scoring=NUCLEIC)


@pytest.mark.slow
@every_triple
def test_triples_of_nucleotides(call):
    with pytest.warns(UserWarning, match="nucleotides"):
        call(DNA, DNA, DNA)
    call(DNA, DNA, DNA, scoring=NUCLEIC)


@pytest.mark.parametrize(
    "texts",
    [
        [DNA[:19]],  # too short to say
        ["ACGT" * 4, "MKV"],  # not all
        [DNA + "E"],  # no nucleotide
        ["A" * 50],  # one base of four
        ["ACDW" * 10],  # many letters that are rare in DNA
        [Scoring().alphabet.encode(DNA)],  # codes: whoever made them chose an alphabet
        ["MKV", ""],
        [],
    ],
    ids=str,
)
def test_letters_that_say_nothing(texts):
    jaxalign.align_all(texts)


def test_nucleotides_that_meet_proteins(tmp_path):
    """In a set of a call, and in a file that is read in blocks."""
    (tmp_path / "d.fa").write_text(f">d\n{DNA}\n")
    (tmp_path / "p.fa").write_text(f">p\n{TEXTS[0]}\n")
    cut = {"min_identity": 0.5}
    calls = {
        "align": lambda a, b: jaxalign.align(a, b),
        "align_pairs": lambda a, b: jaxalign.align_pairs([a], [b]),
        "audit": lambda a, b: jaxalign.audit([[a], [b]], **cut),
        "nearest": lambda a, b: jaxalign.nearest([a], b),
        "purge": lambda a, b: jaxalign.purge(b, [a], **cut),
        "search": lambda a, b: jaxalign.search([a], b),
    }
    for name, call in calls.items():
        sides = DNA, TEXTS[0]
        if name in ("nearest", "purge", "search"):
            sides = TEXTS[0], tmp_path / "d.fa"
            call(TEXTS[0], tmp_path / "p.fa")
        with pytest.warns(UserWarning, match="nucleotides, and BLOSUM62") as caught:
            call(*sides)
        assert [one.filename for one in caught] == [__file__], name


def test_all_sequences_of_a_call_count():
    half = DNA[:10], DNA[10:]
    with pytest.warns(UserWarning, match="nucleotides"):
        jaxalign.align(*half)


def test_nucleotides_are_told_once_a_place():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            jaxalign.align(DNA, DNA)
    assert len(caught) == 1


# ------------------------------------------------------------------ what is no sequence

CODES, OFFSETS = np.zeros(4, np.uint8), np.array([0, 2, 4])


@pytest.mark.parametrize(
    "codes, offsets, message",
    [
        (CODES.astype(float), OFFSETS, "codes must be integers in one dimension"),
        (CODES.reshape(2, 2), np.array([0, 1, 2]), "codes must be integers in one"),
        (
            CODES,
            OFFSETS + 0.5,
            "offsets must be integers in one dimension, not float64",
        ),
        (CODES, OFFSETS.astype(float), "offsets must be integers"),
        (CODES, OFFSETS[:, None], "offsets must be integers"),
        (CODES, np.array([0, 3, 2, 4]), "offsets must rise"),
        (CODES, np.array([0, 3, 2, 4], np.uint8), "offsets must rise"),
        (CODES, np.array([0, 3]), "offsets must rise"),
        (CODES, np.zeros(0, int), "offsets must rise"),
        (CODES + 24, OFFSETS, "codes must lie in 0..23"),
        (CODES.astype(int) - 1, OFFSETS, "codes must lie in 0..23"),
    ],
)
def test_flat_arrays_that_are_no_set(codes, offsets, message):
    with pytest.raises(InputError, match=message):
        jaxalign.align_all((codes, offsets), output="score")


@pytest.mark.parametrize("codes", [[[0.5, 1]], [np.zeros((2, 2), int)], [CODES == 0]])
def test_codes_that_are_no_sequence(codes):
    with pytest.raises(InputError, match="codes must be integers|is not a sequence"):
        jaxalign.align_all(codes, output="score")


def test_values_that_are_not_known_yet():
    """Inside jit an array has a shape and no values."""

    def score(codes):
        return jaxalign.align(codes, "MKV").score

    with pytest.raises(InputError, match="Inside jax.jit, arrays have none yet"):
        jax.jit(score)(jnp.zeros(3, jnp.uint8))
