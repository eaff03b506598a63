"""The nearest of a corpus, by brute force over tiny sets; ties, blocks, odd inputs."""

import gzip
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import plain_launches
import pytest
from gpu_windows_cases import _drive, interpreted
from plain_launches import FEW

import jaxalign
from jaxalign import inputs
from jaxalign.corpus import Corpus
from jaxalign.database import nearest, nearest_launches, nearest_scan, nearest_state
from jaxalign.io import corpus_files
from jaxalign.pairs import by_rows
from jaxalign.pairs.gpu import launches
from jaxalign.pairs.proofs import proof
from jaxalign.words.rows import lcs_block

sys.path.append(str(Path(__file__).parents[1] / "homology"))
import brute_force as bf  # noqa: E402

SCORING = jaxalign.Scoring(match=2, mismatch=-1, gap_open=bf.OPEN, gap_extend=bf.EXTEND)
KINDS, MODES = ("longer", "shorter", "mean"), ("global", "local", "semiglobal")


def sets(seed: int, tests: int = 4, corpus: int = 9):
    words = bf.random_words(np.random.default_rng(seed), tests + corpus)
    return words[:tests], words[tests:]


def expected(identities: np.ndarray, top: int):
    """(index, identity) of the nearest of a row of identities, the best first."""
    known = np.flatnonzero(~np.isnan(identities))
    order = known[np.lexsort((known, -identities[known]))][:top]
    return order.tolist(), identities[order].tolist()


def check_identity(seed: int, **options):
    tests, corpus = sets(seed)
    kind, mode, top = KINDS[seed % 3], MODES[seed // 3 % 3], 1 + seed % 2
    ratio = options.get("min_length_ratio", 0.0)
    near = jaxalign.nearest(
        tests, corpus, SCORING, identity=kind, mode=mode, top=top, **options
    )
    assert np.unique(near.test).tolist() == [*range(len(tests))], "a row for every test"
    for i, test in enumerate(tests):
        row = np.array([bf.identity(test, other, kind, mode) for other in corpus])
        sizes = [sorted((len(test), len(other))) for other in corpus]
        apart = [high and low / high < ratio for low, high in sizes]
        row[np.array(apart, bool)] = np.nan
        rows = (near.test == i) & (near.index >= 0)
        got = near.index[rows].tolist(), near.identity[rows].tolist()
        assert got == expected(row, top), (seed, test, corpus)
        assert near.rank[rows].tolist() == [*range(1, rows.sum() + 1)]


@pytest.fixture(params=["few", "many"])
def rounds(request, monkeypatch):
    """Pairs are aligned a few at a time, or side by side at once."""
    few = request.param == "few"
    monkeypatch.setattr(nearest_scan, "FIRST_PAIRS", 1 if few else 8)
    monkeypatch.setattr(nearest_scan, "GROWTH", 2)
    monkeypatch.setattr(nearest_scan, "SHARED_QUERY", 32 if few else 2)


@pytest.mark.parametrize("seed", range(18))
def test_identity_is_the_largest(rounds, seed):
    check_identity(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 1000, 300))
def test_identity_is_the_largest_of_many(rounds, first):
    for seed in range(first, first + 100):
        check_identity(seed)


@pytest.mark.parametrize("seed", range(6))
def test_a_length_ratio_and_no_filter(seed):
    check_identity(seed, min_length_ratio=0.7)
    check_identity(seed, filter=False)


@pytest.mark.parametrize("seed", range(6))
def test_common_subsequences_leave_the_nearest(monkeypatch, rounds, seed):
    monkeypatch.setattr(proof, "LEAST_CELLS_BY_ROWS", 0)
    check_identity(seed)


@pytest.mark.parametrize("many", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("seed", range(6))
def test_bounds_of_launches(monkeypatch, seed, many):
    """As on a GPU, where of few or all queries many pairs are left."""
    monkeypatch.setattr(nearest_scan, "_launches", CountedBy)
    monkeypatch.setattr(nearest_launches, "FIRST_PAIRS", 1)
    monkeypatch.setattr(nearest_launches, "BIN", 2)
    monkeypatch.setattr(nearest_launches, "MAX_LEFT", many)
    monkeypatch.setattr(nearest_launches, "LAUNCHES_KEPT", 1 + seed % 3)
    check_identity(seed, min_length_ratio=0.7 * (seed % 2))


@pytest.mark.parametrize("many", [0.0, 2.0])
@pytest.mark.parametrize("coverage", ["both", "shorter"])
def test_a_coverage_after_bounds_of_launches(monkeypatch, coverage, many):
    """The nearest of each query by identity alone may be one that does not pass."""
    tests, corpus = sets(5, 8, 24)
    asked: Any = {"mode": "local", "identity": "shorter", "top": 2}
    gate: Any = {"min_cov": 0.75, "coverage": coverage}
    want = jaxalign.nearest(tests, corpus, SCORING, min_score=0, **asked, **gate)
    ungated = jaxalign.nearest(tests, corpus, SCORING, **asked)
    assert ungated.index.tolist() != want.index.tolist()
    monkeypatch.setattr(nearest_scan, "_launches", CountedBy)
    monkeypatch.setattr(nearest_launches, "FIRST_PAIRS", 1)
    monkeypatch.setattr(nearest_launches, "BIN", 2)
    monkeypatch.setattr(nearest_launches, "MAX_LEFT", many)
    near = jaxalign.nearest(tests, corpus, SCORING, **asked, **gate)
    assert near.index.tolist() == want.index.tolist()
    np.testing.assert_array_equal(near.identity, want.identity)


class CountedBy:
    """In place of launches on a GPU: the same counts, from NumPy; long queries are left
    to their lengths."""

    longest, targets, query_count, sizes = 4, 4, 2, FEW

    def __init__(self, task):
        self.task = task

    def counted(self, rows, columns, device):
        task, room = self.task, np.full((8, 4), 99, np.int16)
        sides = task.queries, rows, task.targets, columns
        lcs = lcs_block(*sides, task.scoring.alphabet)
        room[: len(rows), : len(columns)] = lcs
        return jax.device_put(room, device)


@pytest.mark.slow
def test_launches_leave_the_nearest(monkeypatch):
    """Counts of the kernel's program, whose steps are plain; long queries as well."""
    words = [word * 12 for word in bf.random_words(np.random.default_rng(4), 25)]
    tests, corpus = [*words[:5], words[0] + words[1] * 2], words[5:]
    whole = jaxalign.nearest(tests, corpus, SCORING, link="whole")
    plain_launches.use(monkeypatch)
    monkeypatch.setattr(proof, "LEAST_CELLS", 0)
    monkeypatch.setattr(by_rows, "seems_small", lambda task: False)
    same(jaxalign.nearest(tests, corpus, SCORING, link="whole"), whole)


@pytest.mark.parametrize(
    "by, seed",
    [
        *((by, seed) for by in ("identity", "score") for seed in (0, 1)),
        *(
            pytest.param(("identity", "score")[x % 2], x, marks=pytest.mark.slow)
            for x in range(2, 6)
        ),
    ],
)
def test_blocks_change_nothing(monkeypatch, tmp_path, by, seed):
    """One block, a block a record, pieces of blocks, files of a folder, an index."""
    tests, corpus = sets(seed, 3, 8)
    link = {"link": "local", "min_score": 4} if seed == 1 and by == "identity" else {}
    link = link or {"link": "whole"}
    names = [f"c{k}" for k in range(len(corpus))]
    whole = jaxalign.nearest(
        tests, [*zip(names, corpus, strict=True)], SCORING, by=by, top=2, **link
    )
    records = [f">{a}\n{b}\n" for a, b in zip(names, corpus, strict=True)]
    single, folder = tmp_path / "all.fa", tmp_path / "folder"
    folder.mkdir()
    single.write_text("".join(records))
    (folder / "a.fa").write_text("".join(records[:3]))
    packed = gzip.compress("".join(records[3:5]).encode())
    (folder / "b.fasta.gz").write_bytes(packed)
    (folder / "part").write_text("no sequences")
    (tmp_path / "c.fa").write_text("".join(records[5:]))
    jaxalign.index_database(tmp_path / "c.fa", folder / "c.jaxdb", SCORING)
    same(jaxalign.nearest(tests, single, SCORING, by=by, top=2, **link), whole)
    monkeypatch.setattr(nearest_scan, "BOUNDS_AT_ONCE", 6)
    default = corpus_files.blocks.__defaults__
    monkeypatch.setattr(corpus_files.blocks, "__defaults__", (default[0], 5, 2))
    same(jaxalign.nearest(tests, single, SCORING, by=by, top=2, **link), whole)
    same(jaxalign.nearest(tests, folder, SCORING, by=by, top=2, **link), whole)


def same(near, other):
    """Two results are equal row by row."""
    ours, theirs = near.columns(), other.columns()
    assert ours.keys() == theirs.keys()
    for name, column in ours.items():
        np.testing.assert_array_equal(column, theirs[name])
    assert near.index.tolist() == other.index.tolist()


def local_score(a: str, b: str) -> int:
    import oracle

    codes = [[bf.LETTERS.index(x) for x in word] for word in (a, b)]
    return oracle.max_identities(
        *codes, bf.matrix(), bf.OPEN, bf.EXTEND, "local", wildcard=bf.WILDCARD
    )[0]


@pytest.mark.parametrize("seed", range(8))
def test_scores_are_the_best(seed):
    tests, corpus = sets(seed)
    near = jaxalign.nearest(tests, corpus, SCORING, by="score")
    assert near.test.tolist() == [*range(len(tests))]
    for i, test in enumerate(tests):
        scores = [bf.either_strand(local_score, test, other) for other in corpus]
        assert near.index[i] == int(np.argmax(scores)), "the first of the best"
        assert near.score[i] == max(scores)


def test_costs_that_differ_by_side():
    """A matrix that is not symmetric, and free ends of one side."""
    scores = np.array([[3, -1, 0], [-2, 3, -1], [1, 0, 3]])
    scoring = jaxalign.Scoring(("ABC", scores), 4, 1)
    words = ["ABCA", "BCAB", "CA", "ABBCA", "CCAAB"]
    options = {"mode": "global", "free_ends": ("target_start", "target_end")}
    near = jaxalign.nearest(words[:2], words[2:], scoring, **options)
    for i in range(2):
        rows = jaxalign.align_pairs(
            [words[i]] * 3, words[2:], scoring, output="identity", **options
        )
        assert near.identity[i] == rows.identity("longer").max()
        assert near.index[i] == int(np.argmax(rows.identity("longer")))


def test_odd_test_sequences_have_a_row_and_a_note():
    corpus = [("first", "MKTAYIAK"), ("second", "MKTAYIAK")]
    tests = [("empty", ""), ("unknown", "XXX"), ("same", "MKTAYIAK")]
    near = jaxalign.nearest(tests, corpus)
    assert near.columns()["nearest"].tolist() == ["first"] * 3, "ties: the first"
    assert near.identity.tolist() == [0, 0, 1] and np.isnan(near.evalue[:2]).all()
    notes = near.notes
    assert "empty" in notes[0] and "no known residue" in notes[1] and not notes[2]
    assert near.band_counts.tolist() == [2, 0, 0, 0, 1, 0]
    far = jaxalign.nearest(["MK"], corpus, min_length_ratio=0.9, link="whole")
    assert far.nearest.tolist() == [-1] and "compared" in far.notes[0]
    assert far.band_counts.tolist() == [0, 0, 0, 0, 0, 1] and np.isnan(far.score[0])
    assert len(jaxalign.nearest([], corpus)) == 0
    assert jaxalign.nearest(["MK"], []).nearest.tolist() == [-1]


def test_bands_have_their_lower_edge():
    near = jaxalign.nearest(["AAAAAAAAAA"], ["AAAAAGGGGG"], bands=(0.5, 0.75))
    assert (
        near.identity.tolist() == [0.5] and near.band_names[near.band[0]] == "0.5-0.75"
    )
    assert "0.5-0.75          1  100.0%" in str(near)


@pytest.mark.parametrize(
    "options, text",
    [
        ({"by": "name"}, "by = 'name'"),
        ({"identity": "query"}, "identity = 'query'"),
        ({"top": 0}, "top = 0"),
        ({"bands": ()}, "bands = ()"),
        ({"bands": (0.5, 0.4)}, "rising fractions"),
        ({"bands": (0.5, 2)}, "rising fractions"),
        ({"min_length_ratio": 2}, "min_length_ratio = 2"),
        ({"min_length_ratio": 0.5, "by": "score"}, "by = 'identity'"),
        ({"by": "bits", "scoring": SCORING}, "no statistics are published"),
        ({"mode": "glocal"}, "glocal"),
        ({"tops": 1}, "did you mean 'top'"),
    ],
)
def test_refusals(options, text):
    with pytest.raises(jaxalign.UsageError, match=".") as error:
        jaxalign.nearest(["ACGT"], ["ACGT"], **options)
    assert text in str(error.value)


@pytest.mark.parametrize(
    "files, text",
    [
        ({}, "the folder has no file"),
        ({"a.fa": ">a\nACGT\n", "b.fa": ">b\nAC\n>a\nAC\n"}, "'a' is repeated"),
        ({"a.fa": ">a\nACGT\n>a\nAC\n"}, "record 2 has the name 'a' of record 1"),
        ({"a.fa": ">a\nACGT\n", "b.fa": ">b\nAC1\n"}, "line 2, column 3"),
        ({"a.fa": ""}, "is empty"),
        ({"a.fa.gz": gzip.compress(b">a\nACGT\n" * 99)[:-9]}, "truncated"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, files, text):
    for name, content in files.items():
        content = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(content)
    with pytest.raises(jaxalign.InputError) as error:
        jaxalign.nearest(["ACGT"], tmp_path, SCORING, link="whole")
    assert text in str(error.value)


def test_a_file_beside_its_index(tmp_path):
    (tmp_path / "a.fa").write_text(">a\nACGT\n")
    jaxalign.index_database(tmp_path / "a.fa", tmp_path / "a.fa.jaxdb", SCORING)
    with pytest.raises(jaxalign.InputError, match="would count twice"):
        jaxalign.nearest(["ACGT"], tmp_path, SCORING, link="whole")


@interpreted
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("filtered", [True, False])
def test_kernels_bring_the_nearest(monkeypatch, filtered, seed):
    """By the kernels in the interpreter: several pieces, jobs, and launches of a job;
    copies, and sequences without a known residue."""
    _drive(monkeypatch)
    monkeypatch.setattr(launches, "LIST_SIZES", (8,))
    monkeypatch.setattr(nearest_scan, "_launches", CountedBy)
    monkeypatch.setattr(nearest_scan, "BOUNDS_AT_ONCE", 6 * 14)
    monkeypatch.setattr(nearest_launches, "FIRST_PAIRS", 1)
    monkeypatch.setattr(nearest_launches, "BIN", 2)
    monkeypatch.setattr(nearest_launches, "MAX_LEFT", 0.0)
    for module in (nearest_launches, nearest_scan):
        monkeypatch.setattr(module, "QUERIES_AT_ONCE", 3)
    monkeypatch.setattr(CountedBy, "longest", 99)
    tests, corpus = sets(seed, 4, 18)
    tests = [*tests, "", "NN"]
    corpus = [*corpus, "", "NNN", *corpus[:5], tests[0], tests[0], tests[1], "", "A"]
    kind, top = KINDS[seed], 1 + 2 * seed
    options = nearest.NearestOptions(
        identity=kind, top=top, implementation="pallas", filter=filtered,
        min_length_ratio=0.4 * seed, threads=2,
    )  # fmt: skip
    (encoded,) = inputs.sets(SCORING, tests)
    state = nearest.scanned(encoded, Corpus(corpus, SCORING), SCORING, options)
    assert state.implementation == "pallas"
    for i, test in enumerate(tests):
        row = np.array([bf.identity(test, other, kind) for other in corpus])
        ratio = [min(len(test), len(x)) / max(len(test), len(x), 1) for x in corpus]
        row[np.array(ratio) < options.min_length_ratio] = np.nan
        row[[test == x for x in corpus]] = (
            1.0  # Equal texts are alike, whatever is in them.
        )
        some = state.index[i] != nearest_state.NONE
        got = state.index[i, some].tolist(), state.identity[i, some].tolist()
        assert got == expected(row, top), (i, test)


@pytest.mark.parametrize("top", [1, 3, 9])
def test_every_query_has_as_many_rows_by_score(top):
    """Those that score 0 come in the order of the corpus, after the others."""
    tests, corpus = ["WWWW", "PP", "AWA"], ["P", "W", "", "GW", "A", "PWP"]
    names = [f"seq{k}" for k in range(1, 7)]
    near = jaxalign.nearest(tests, corpus, top=top, by="score")
    scores = jaxalign.align_pairs(
        [x for x in tests for _ in corpus], corpus * len(tests), mode="local"
    )["score"].reshape(len(tests), -1)
    want = np.argsort(-scores, axis=1, kind="stable")[:, :top]
    called = [near.corpus.names[k] for k in near.nearest.tolist()]
    assert called == [names[j] for row in want.tolist() for j in row]
    assert near.score.tolist() == np.take_along_axis(scores, want, 1).ravel().tolist()
