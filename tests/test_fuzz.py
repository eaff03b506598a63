"""Whatever comes in, an answer or a documented refusal goes out, no other exception.

Hypothesis draws files and options that are nearly right, always the same ones: a few
dozen of each for `make test`, and some hundred for `make test-all`.
"""

import json
import struct
import zlib
from functools import partial

import jax  # noqa: F401  (before main(): else it turns on a compilation cache)
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from verb_jobs import VERBS, options, reads

import jaxalign
from jaxalign.cli.main import main
from jaxalign.errors import EXIT_CODES, JaxalignError
from jaxalign.io import embeddings, encoded_database, fasta, runs
from jaxalign.model import scoring
from jaxalign.model.alphabet import UNKNOWN_POLICIES, Reading
from jaxalign.model.scoring import Scoring

SHORT, LONG = 60, 500
FEW, MORE = 12, 120  # examples for which a command is run
PROTEIN = Scoring().alphabet
QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]


def lengths(short, long):
    """A few examples, and many with the slow tests."""
    return pytest.mark.parametrize(
        "count", [short, pytest.param(long, marks=pytest.mark.slow)]
    )


every_length, every_length_of_commands = lengths(SHORT, LONG), lengths(FEW, MORE)


def fuzz(count, check, *drawn):
    """Run a check on so many examples."""
    bounds = settings(
        max_examples=count,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=QUIET,
    )
    bounds(given(st.tuples(*drawn))(lambda values: check(*values)))()


def answered(function, *arguments, **options):
    """The answer, or None where it is refused in words."""
    try:
        return function(*arguments, **options)
    except JaxalignError as error:
        assert error.exit_code in EXIT_CODES and str(error)
        return None


def command(capsys, *words) -> str:
    """Run a command; what it prints to standard error."""
    code = main(list(words))
    said = capsys.readouterr().err
    assert code in EXIT_CODES and "hint: -v shows where" not in said, (code, said)
    return said


def pieces(*words, more=None):
    """Files put together from words."""
    some = st.sampled_from(words)
    some = some if more is None else st.one_of(some, some, some, more)
    return st.lists(some, max_size=12)


# ------------------------------------------------------------------------------- FASTA

FASTA = pieces(
    *(b">a\n", b">b\n", b">", b">c d\n", b"\n", b"\r", b"\r\n", b";x\n"),
    *(b"MKV\n", b"MKU\n"),
    *(b"acgt", b" ", b"\t", b"1", b"-", b"*", b"\0", b"\xff", b"\xc3\xa9", b"@a\n"),
    *(b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\x0b", b"\x1c", b"\x1f\x8b", b"BZh9"),
    b"\xfd7zXZ\0",
    more=st.binary(max_size=6),
)


@every_length
def test_fasta(count, tmp_path):
    path = tmp_path / "a.fa"

    def check(words, unknown):
        path.write_bytes(b"".join(words))
        whole = answered(fasta.read, path, PROTEIN, unknown)
        few = partial(fasta.read_blocks, path, PROTEIN, Reading(unknown), 4, 2)
        blocks = answered(lambda: [block for block, _ in few()])
        assert (whole is None) == (blocks is None)
        if whole is not None:
            texts = [text for block in blocks for text in block.texts()]
            assert whole.texts() == texts and set("".join(texts)) <= set(
                PROTEIN.letters
            )

    fuzz(count, check, FASTA, st.sampled_from(UNKNOWN_POLICIES))


# ---------------------------------------------------------------------------- matrices

MATRIX = pieces(
    *("A C\n", "A", "C", "A 1 2\n", "C 3 4\n", "C -1 0.5\n", " ", "\n", "\t", "#x\n"),
    *("nan", "inf", "1e400", "1e9", "1_0", "\uff11", "-", ">", "*", "\0", "\u2028"),
    *("é", " 1", " -2", "0x1", "1e-9", "A 1 2\nC 2 1\n", "A C\nA 1 2\nC 2 1\n"),
    more=st.text(max_size=4),
)


@every_length
def test_matrix_files(count, tmp_path):
    path = tmp_path / "m.txt"

    def check(words, opening):
        path.write_bytes("".join(words).encode("utf-8", "surrogatepass"))
        if (loaded := answered(scoring.load_matrix, str(path))) is not None:
            letters, scores = loaded
            assert len(set(letters)) == len(letters) == len(scores)
            assert np.isfinite(scores).all()
        made = answered(Scoring, str(path), opening, 1)
        assert made is None or made.scores.shape == (made.alphabet.size,) * 2

    fuzz(count, check, MATRIX, st.sampled_from([1, 1.5, 11, 1e9, 1 / 3, np.nan]))


@every_length
def test_matrices_as_arrays(count):
    letters = st.one_of(
        st.text(max_size=4), st.sampled_from(["AC", "ACGT", "", None, 7])
    )
    cells = st.one_of(st.integers(), st.floats(), st.sampled_from([True, "1", None]))
    rows = st.lists(st.lists(cells, max_size=3), max_size=3)

    def check(names, values):
        answered(Scoring, (names, values))
        answered(Scoring, (names, np.full((2, 2), 3)))
        answered(Scoring, match=1, mismatch=0, alphabet=names)

    fuzz(count, check, letters, rows)


# ------------------------------------------------------------- manifests and indices

LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 5), st.integers(), st.floats(),
    st.sampled_from(["", "A", "ACGT", "codes", "parts", 2**62, -64, 64, 4096, 4160]),
)  # fmt: skip
JSON = st.recursive(
    LEAVES,
    lambda x: st.one_of(
        st.lists(x, max_size=4), st.dictionaries(st.text(max_size=3), x, max_size=3)
    ),
    max_leaves=6,
)
WRONG_JSON = st.sampled_from(
    [b"", b"{", b"\xff", b"[" * 3000, b"null", b'{"a":1', b"1e999"]
)


@st.composite
def changed(draw, about):
    """A document of JSON in which some entries are others, missing or new."""
    about = json.loads(json.dumps(about))
    for _ in range(draw(st.integers(1, 2))):
        place = about
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = draw(st.sampled_from(keys)) if keys else None
            inner = place[key] if keys else None
            if not isinstance(inner, (dict, list)) or not inner or draw(st.booleans()):
                break
            place = inner
        if key is None or (isinstance(place, dict) and draw(st.booleans())):
            key = key if key is not None and isinstance(place, dict) else "new"
        if isinstance(place, dict) and draw(st.integers(0, 4)) == 0:
            place.pop(key, None)
        elif isinstance(place, dict) or keys:
            place[key] = draw(JSON)
    return json.dumps(about).encode()


MANIFEST = {
    "format": 1, "inputs": [{"path": "a.fa", "sha256": "00"}], "filters": {"a": 1},
    "mode": "local", "parts": 3, "part_rows": 100, "versions": {"jaxalign": "0.1.0"},
}  # fmt: skip


@every_length
def test_embeddings(count, tmp_path):
    """Bytes of an npz file, changed and cut."""
    path = tmp_path / "a.npz"
    np.savez(path, a=np.ones((3, 2), np.float32), b=np.zeros((0, 2)))
    whole, arrays = path.read_bytes(), {"a": [[1, 1]] * 3, "b": []}

    def check(changes, end):
        content = bytearray(whole)
        for place, value in changes:
            content[place] = value
        path.write_bytes(content[:end])
        found = answered(embeddings.read, str(path))
        assert found is None or {k: x.tolist() for k, x in found.items()} == arrays

    places = st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255))
    ends = st.one_of(st.just(len(whole)), st.integers(0, len(whole)))
    fuzz(count, check, st.lists(places, max_size=3), ends)


@every_length
def test_manifests(count, tmp_path):
    def check(text, resume):
        (tmp_path / runs.DATASET_MANIFEST).write_bytes(text)
        answered(runs.SavedRun(str(tmp_path), MANIFEST).begin, resume, False, False)
        answered(runs.complete, str(tmp_path))
        found = answered(runs.read_manifest, str(tmp_path))
        assert found is None or runs.digest(found)

    texts = st.one_of(changed(MANIFEST), changed(MANIFEST), WRONG_JSON)
    fuzz(count, check, texts, st.booleans())


@every_length_of_commands
def test_certificates(count, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, letters in (("a.fa", "MKVLAT"), ("b.fa", "MKVLWW")):
        (tmp_path / name).write_text(f">{name}\n{letters}\n")
    cut = ("--min-identity", "0.9", "-o", "c.json", "-q")
    command(capsys, "audit", "a.fa", "b.fa", *cut)
    written = json.loads((tmp_path / "c.json").read_text())

    def check(text, files):
        (tmp_path / "c.json").write_bytes(text)
        command(capsys, "audit", *files, "--verify", "c.json", "-q")

    texts = st.one_of(changed(written), changed(written), WRONG_JSON)
    fuzz(count, check, texts, st.sampled_from([(), ("a.fa", "b.fa"), ("a.fa",)]))


LABELS = pieces(
    b"a\t", b"b\t", b"x", b"y\n", b"\n", b"name\tpart\n", b"a,0\n", b"AC,cluster\n",
    b"\xff", b"\\t", b"removed\n", b"c\tz\n", b"\x00", more=st.binary(max_size=4),
)  # fmt: skip


@every_length_of_commands
def test_labels_and_parts(count, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.fa").write_text(">a\nMKVLAT\n>b\nWWWW\n")

    def check(words, labels):
        (tmp_path / "t").write_bytes(b"".join(words))
        if labels:
            cut = ("--min-identity", "0.5", "--folds", "2", "-q")
            command(capsys, "split", "s.fa", "--labels", "t", *cut)
        else:
            command(capsys, "audit", "s.fa", "--split", "t", "--min-identity", "1")

    fuzz(count, check, LABELS, st.booleans())


NUMBERS = b" ".join([b"2.99573"] * 20)
FAMILY = pieces(
    b">a\n", b"MKV", b"mk", b"-", b"\n", b"A", b"# STOCKHOLM 1.0\n", b"r MK\n", b"//\n",
    b"HMMER3/f\n", b"ALPH amino\n", b"NAME x\n", b"HMM  A\n", b"m->m\n", b"COMPO\n",
    b"1 %b 1 x\n" % NUMBERS, b"%b\n" % NUMBERS, b"0.36 1.61 2.3 0.3 1.35 0.0 *\n",
    b"\xff", b"LENG 1\n",
    b"nan 1 2 0.3 1.5 0.5 *\n",
    more=st.binary(max_size=4),
)  # fmt: skip


@every_length_of_commands
def test_families_of_a_profile(count, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.fa").write_text(">a\nMKVLAT\n>b\nWWWW\n")

    def check(words):
        (tmp_path / "family").write_bytes(b"".join(words))
        command(capsys, "search", "--profile", "family", "s.fa", "-q")

    fuzz(count, check, FAMILY)


@pytest.fixture
def index(tmp_path):
    """An index of three sequences."""
    (tmp_path / "a.fa").write_text(">a\nMKV\n>b\nACDEFG\n>c\n\n")
    jaxalign.index_database(tmp_path / "a.fa", tmp_path / "a.jaxdb")
    return tmp_path / "a.jaxdb"


def opened(path, capsys):
    """What is opened can be read to its end."""
    if (found := answered(jaxalign.open_database, path)) is not None:
        assert len(found.texts()) == len(list(found.names)) == len(found)
    command(capsys, "index", "--verify", str(path))


@every_length_of_commands
def test_pages_of_an_index(count, index, capsys):
    data = index.read_bytes()
    length = struct.unpack("<I", data[16:20])[0]
    about = json.loads(data[20 : 20 + length])

    def check(text):
        head = struct.pack("<8sIII", b"JAXALNDB", 1, zlib.crc32(text), len(text))
        page = (head + text)[: encoded_database.PAGE]
        rest = data[encoded_database.PAGE :]
        index.write_bytes(page.ljust(encoded_database.PAGE, b"\0") + rest)
        opened(index, capsys)

    fuzz(count, check, st.one_of(changed(about), changed(about), WRONG_JSON))


@every_length_of_commands
def test_bytes_of_an_index(count, index, capsys):
    whole, records = index.read_bytes(), [("a", "MKV"), ("b", "ACDEFG"), ("c", "")]
    places = st.one_of(st.integers(0, 600), st.integers(4096, len(whole) - 1))

    def check(changes, end):
        data = bytearray(whole[:end])
        for place, value in changes:
            data[min(place, len(data) - 1)] = value
        index.write_bytes(data)
        opened(index, capsys)
        found = answered(jaxalign.open_database, index, verify=True)
        if found is not None:
            assert [*zip(found.names, found.texts(), strict=True)] == records

    changes = st.lists(st.tuples(places, st.integers(0, 255)), max_size=4)
    ends = st.one_of(st.just(len(whole)), st.integers(1, len(whole)))
    fuzz(count, check, changes, ends)


# ----------------------------------------------------------------------------- options

VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 9), st.floats(), st.text(max_size=4),
    st.sampled_from([
        10**8, 1e400, "inf", "2GiB", "1e3", "local", "global", "score", "stats", "q5",
        ["query_start"], "query_start", [1], (1, 2), {}, b"x", 1j, np.int64(2),
        np.float32(0.5), np.True_, "identity", "shorter", "sweep",
    ]),
)  # fmt: skip
NAMES = (
    "mode", "free_ends", "output", "implementation", "memory_budget", "threads",
    "window", "devices", "min_score", "min_identity", "min_cov", "coverage",
    "min_length_ratio", "filter",
    "identity", "mesh", "strand",
)  # fmt: skip


@every_length
def test_options_of_python(count):
    def check(options):
        plan = answered(jaxalign.plan, ["MKV", "MK"], ["MKV"] * 2, **options)
        assert plan is None or plan["pairs"] == 2

    fuzz(count, check, st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=2))


@every_length
def test_arguments_of_a_scoring(count):
    names = ("matrix", "gap_open", "gap_extend", "match", "mismatch", "alphabet")

    def check(options):
        made = answered(Scoring, **options)
        assert made is None or made.open >= made.extend >= 0

    fuzz(count, check, st.dictionaries(st.sampled_from(names), VALUES, max_size=3))


FORMS = st.recursive(
    st.one_of(VALUES, st.sampled_from(["MKV", "", "MK1", ("a", "MK"), b"MK"])),
    lambda x: st.one_of(st.lists(x, max_size=3), st.tuples(x, x)),
    max_leaves=4,
)


@every_length
def test_sequences_in_any_form(count):
    def check(queries):
        answered(jaxalign.plan, queries, output="score")
        answered(jaxalign.plan, [queries], output="score")

    fuzz(count, check, FORMS)


# Options of all verbs, but for those that ask for a cluster.
OPTIONS = sorted({name for verb in VERBS for name in options(verb)} - {"--cluster"})
WORDS = (*OPTIONS, "--help", "--", "-", "--no-force", "--x")
GIVEN = (
    "local", "global", "q5,q3", "shorter", "0.5", "2", "-1", "nan", "inf", "1e400",
    "1_0", "", " ", "score", "m8", "tsv", "out/", ".", "/", "cigar,x", "1GiB",
    "9" * 400, "5i", "blastn", "BLOSUM62", "m\0", "m" * 300, "blast", "dna",
    "mask", "1/2", "0/0", "a=0.5,b=0.5", "a=nan,b=1", "greedy", "remove",
    "both", "minus", "fitted",
    "\u00e9", "true", "false", "0,1", "cpu", "sweep", "query",
)  # fmt: skip


@every_length_of_commands
def test_words_of_a_command(count, tmp_path, monkeypatch, capsys):
    """There is no such input: what is right ends with exit code 3."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", None)
    verbs = st.sampled_from([verb for verb in VERBS if reads(verb)])
    words = st.lists(st.sampled_from([*WORDS, *GIVEN]), max_size=5)

    def check(verb, more, files):
        command(capsys, verb, *["none.fa"] * files, *more)

    fuzz(count, check, verbs, words, st.integers(1, 3))


# Receptors ---------------------------------------------------------------------------


@every_length_of_commands
def test_receptor_tables(count, capsys, tmp_path):
    path = tmp_path / "cells.tsv"
    names = ["junction_aa", "locus", "v_call", "cell_id", "umi_count", "", "x"]
    fields = st.sampled_from(
        ["CASSLGQAYEQYF", "CASSLGTAYEQYF", "CAS*F", "cassf", "", "TRB", "TRA", "7", "é"]
    )
    rows = st.lists(st.lists(fields, min_size=2, max_size=4), max_size=5)
    words = st.sampled_from(
        [[], ["--bad", "drop"], ["--bad", "keep"], ["--chains", "any"],
         ["--chains", "VJ", "--bad", "drop"], ["--metric", "alignment"],
         ["--metric", "levenshtein", "--cutoff", "9", "--bad", "keep"],
         ["--cutoff", "-1"], ["--ntrim", "50", "--bad", "keep"],
         ["--v-loops", str(path)], ["--v-distances", str(path)]]
    )  # fmt: skip

    def check(heading, lines, more):
        lines = ["\t".join(line) for line in (heading, *lines)]
        path.write_text("\n".join(lines), encoding="utf-8")
        command(capsys, "repertoire", str(path), *more)

    heading = st.lists(st.sampled_from(names), min_size=2, max_size=4)
    fuzz(count, check, heading, rows, words)
