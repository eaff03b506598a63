"""Properties of the public functions, on batches of pairs that hypothesis draws.

All batches have as many pairs, and one of full length, so that examples differ in data
and not in what XLA compiles.
"""

import numpy as np
import oracle
import pytest
from cases import END_SETS, check_rows
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxalign
from jaxalign import Scoring
from jaxalign.model.identity import usual_identity
from jaxalign.model.scoring import is_symmetric, resolve_ends

LONGEST, PAIRS = 60, 11
OWN = "abcdefghijklmnopqrstuvwx"  # 24 letters: the program of the proteins
MODES = [("global", ends) for ends in END_SETS] + [("semiglobal", None)]
MODES += [("local", None)] * 6
checked = settings(max_examples=40, deadline=None, derandomize=True, database=None)
few = settings(checked, max_examples=10)


def own_matrix(symmetric):
    S = np.random.default_rng(1).integers(-6, 4, (24, 24))
    S = np.tril(S) + np.tril(S, -1).T if symmetric else S
    np.fill_diagonal(S, 5)
    return S


SYMMETRIC = [
    Scoring(),
    Scoring("BLOSUM62", 10, 0.5),
    Scoring("PAM250", 4, 4),
    Scoring(gap_open=0, gap_extend=0),
    Scoring(match=3, mismatch=-2, gap_open=4, alphabet="protein"),
    Scoring(match=5, mismatch=-20, gap_open=4, alphabet="protein"),
    Scoring((OWN, own_matrix(True)), 5, 2),
]
ANY = [*SYMMETRIC, Scoring((OWN, own_matrix(False)), 6, 1)]
DNA = [Scoring("NUC", 5, 2), Scoring(match=2, mismatch=-3, gap_open=2.5)]
LETTERS = {"dna": "ACGTN", "protein": "ACDWLVX"}  # the fewer, the more ties


@pytest.fixture(
    autouse=True,
    scope="module",
    params=["rows", pytest.param("compiled", marks=pytest.mark.slow)],
)
def way(request):
    """As users have small jobs, by rows, and as large ones are done."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "compiled":
            patch.setenv("JAXALIGN_ROWS", "off")
        yield


@st.composite
def pairs(draw, letters):
    """A query and a target: any, or the query with one piece exchanged."""
    lengths = st.sampled_from([0, 1, LONGEST // 2])
    words = lengths.flatmap(lambda n: st.text(letters, min_size=n, max_size=LONGEST))
    query = draw(words)
    if draw(st.booleans()):
        return query, draw(words)
    cut, on = (draw(st.integers(0, len(query))) for _ in "ij")
    target = query[:cut] + draw(st.text(letters, max_size=8)) + query[on:]
    return query, target[:LONGEST]


@st.composite
def problems(draw, scorings=ANY):
    """(queries, targets, options of ``align_pairs``)."""
    scoring, (mode, free) = map(draw, map(st.sampled_from, (scorings, MODES)))
    letters = LETTERS.get(scoring.alphabet.kind, "abcdx")
    full = st.text(letters, min_size=LONGEST, max_size=LONGEST)
    drawn = [draw(pairs(letters)) for _ in range(PAIRS - 1)]
    queries, targets = map(list, zip(*drawn, (draw(full), draw(full)), strict=True))
    return queries, targets, dict(scoring=scoring, mode=mode, free_ends=free)


def align(queries, targets, options, output="score", **more):
    return jaxalign.align_pairs(queries, targets, output=output, **options, **more)


def same_rows(one, other, rows=None):
    """Row k of ``one`` is row ``rows[k]`` of ``other``, in whatever both hold."""
    rows = np.arange(len(one)) if rows is None else np.asarray(rows)
    for name in (one.columns.keys() & other.columns.keys()) - {"query", "target"}:
        np.testing.assert_array_equal(one[name], other[name][rows], err_msg=name)
    if one.operations is not None:
        cigars = [other.cigar(k) for k in rows.tolist()]
        assert [one.cigar(k) for k in range(len(one))] == cigars


# ------------------------------------------------------------------------- one problem


@checked
@given(problems(ANY + DNA))
def test_rows_are_the_oracles(problem):
    check_rows(align(*problem, "alignment"))
    table = align(*problem, "identity")
    s = table.scoring
    rule = s.scores, s.open, s.extend, table.mode, table.free_ends
    for k in range(0, PAIRS, 3):
        pair = table.queries[k], table.targets[k]
        most = oracle.max_identities(*pair, *rule, s.alphabet.wildcard_code)
        assert (table["score"][k] * s.scale, table["max_identities"][k]) == most


@checked
@given(problems())
def test_outputs_agree_where_they_overlap(problem):
    full, most = align(*problem, "alignment"), align(*problem, "identity")
    for other in (align(*problem), align(*problem, "stats"), most):
        same_rows(other, full)
    assert (full["identities"] <= most["max_identities"]).all()
    assert (most["max_identities"] <= np.minimum(*full.lengths())).all()


# ---------------------------------------------------------------- an equivalent problem


@few
@given(problems(), st.sampled_from([62, 100]))
def test_other_pairs_of_the_batch_change_nothing(problem, length):
    queries, targets, options = problem
    long = queries[-1][0] * length
    more = [[long, "", long, ""], ["", long[:3], long, ""]]
    table = align(more[0] + queries, more[1] + targets, options, "alignment")
    same_rows(align(*problem, "alignment"), table, range(4, 4 + PAIRS))


# ------------------------------------------------------------------- bounds and orders


# ------------------------------------------------------------------ an oracle, matrices


@few
@given(problems())
def test_matrices_and_all_pairs(problem):
    queries, _, options = problem
    i, j = np.triu_indices(PAIRS, 1)
    table = jaxalign.align_all(queries, output="identity", **options)
    zipped = align([queries[k] for k in i], [queries[k] for k in j], options)
    same_rows(zipped, table)
    np.testing.assert_array_equal([table["query"], table["target"]], [i, j])
    square = jaxalign.scores_matrix(queries, **options)
    np.testing.assert_array_equal(square[i, j], table["score"])
    free = resolve_ends(options["mode"], options["free_ends"])
    if not is_symmetric(options["scoring"], free):
        return
    np.testing.assert_array_equal(square, square.T)
    distance = jaxalign.distance_matrix(queries, **options)
    np.testing.assert_array_equal(distance, distance.T)
    same = np.nan_to_num(table.identity(usual_identity(options["mode"], free)))
    np.testing.assert_array_equal(distance[i, j], 1 - same)
    assert not distance.diagonal().any() and (distance >= 0).all()
