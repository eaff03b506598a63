"""The public functions: results against the oracle, inputs, outputs, errors."""

import json
import subprocess
import sys

import biotite.sequence as seq
import jax
import numpy as np
import oracle
import pytest
from cases import SETTINGS, check_rescored, check_rows, codes, same_tables, some_texts

import jaxalign
from jaxalign import InputError, Scoring, UsageError
from jaxalign.cli.main import main
from jaxalign.model import bounds
from jaxalign.model.alignment import Alignment
from jaxalign.model.identity import BY_PATH, IDENTITIES
from jaxalign.options import PairOptions
from jaxalign.pairs import api, engine

SKEW = Scoring(("ACDWX", np.arange(25).reshape(5, 5) % 7 - 3), 4, 2)
TEXTS = some_texts(1, 12)
OTHERS = some_texts(2, 12)[::-1]
settings = pytest.mark.parametrize("mode, free", SETTINGS, ids=["g", "s", "l", "ends"])


def chosen(mode, free, output="alignment"):
    return {"mode": mode, "free_ends": free, "output": output}


# ----------------------------------------------------------------------------- results


@settings
def test_include_self(mode, free):
    table = jaxalign.align_all(TEXTS, include_self=True, **chosen(mode, free))
    apart = table["query"] != table["target"]
    assert len(table) == 12 * 13 // 2
    same_tables(table.filter(apart), jaxalign.align_all(TEXTS, **chosen(mode, free)))
    check_rows(table.filter(~apart))


@pytest.mark.parametrize("mode", ["global", "semiglobal", "local"])
def test_fractions_are_exact(mode):
    """EMBOSS's 10/0.5, against the oracle on doubled integers."""
    needle = Scoring("BLOSUM62", 10, 0.5)
    table = jaxalign.align_pairs(TEXTS, OTHERS, needle, **chosen(mode, None))
    check_rows(table)
    check_rescored(table)
    assert table["score"].dtype == np.float64
    assert (table["score"] % 1 == 0.5).any()
    one = jaxalign.align(TEXTS[3], OTHERS[3], needle, mode=mode)
    assert one.score == one.rescore() == table["score"][3]
    H = jaxalign.dp_table(TEXTS[3], OTHERS[3], needle, mode=mode)
    assert mode != "global" or H[-1, -1] == 2 * one.score


# ------------------------------------------------------------------------------ tables


@settings
@pytest.mark.parametrize("scoring", [Scoring(), SKEW], ids=["protein", "skew"])
def test_dp_table(mode, free, scoring):
    """H, E and F are the oracle's; its minus infinity is any huge negative number."""
    rng = np.random.default_rng(6)
    for m, n in [(13, 9), (1, 20), (0, 4), (4, 0), (0, 0)]:
        a, b = codes(rng, m, 5), codes(rng, n, 5)
        problem = (scoring.scores, scoring.open, scoring.extend)
        want = oracle.tables(a, b, *problem, mode, free or frozenset())
        options = {"mode": mode, "free_ends": free}
        found = jaxalign.dp_table(a, b, scoring, gaps=True, **options)
        h = jaxalign.dp_table(a, b, scoring, **options)
        np.testing.assert_array_equal(h, found[0])
        for one, other in zip(found, want, strict=True):
            assert one.shape == (m + 1, n + 1) and one.dtype == np.int32
            finite = other > oracle.NEG_INF // 2
            np.testing.assert_array_equal(one[finite], other[finite])
            assert (one[~finite] < -(2**29)).all()


# ---------------------------------------------------------------------------- identity


@pytest.mark.parametrize(
    "mode", ["global", pytest.param("local", marks=pytest.mark.slow)]
)
def test_max_identities_are_widened(mode):
    """A proven |score| of 2^18 and more goes to int64: never wrapped."""
    big = Scoring(("ACGT", 30000 * np.eye(4) - 20000), 30000, 10000)
    rng = np.random.default_rng(8)
    sets = [codes(rng, n, 4) for n in (60, 64, 31, 0, 7)]
    table = jaxalign.align_all(sets, big, mode=mode, output="identity")
    assert table.info["dtypes"] == ["int64"]
    for k in range(len(table)):
        a, b = sets[table["query"][k]], sets[table["target"][k]]
        want = oracle.max_identities(a, b, big.scores, big.open, big.extend, mode)
        assert (table["score"][k], table["max_identities"][k]) == want
    check_rows(jaxalign.align_all(sets, big, **chosen(mode, None)))


def test_dtype_of_identities():
    plain = Scoring(match=1, mismatch=0, gap_open=0, gap_extend=0)
    short, long = 2**13 - 1, 2**13
    assert bounds.identity_dtype(short, 10**5, plain, "global") == "int32"
    assert bounds.identity_dtype(long, long, plain, "local") == "int64"
    assert bounds.identity_dtype(60, 60, Scoring(), "global") == "int32"
    # 11 W ... W > 2^18 only past 23,831; the gaps reach 2^17 in global mode before.
    assert bounds.identity_dtype(8000, 8000, Scoring(), "local") == "int32"
    assert bounds.identity_dtype(8000, 130000, Scoring(), "local") == "int32"
    assert bounds.identity_dtype(8000, 130000, Scoring(), "global") == "int64"


def test_x_on_x_is_no_identity():
    found = jaxalign.align("WXXW", "WXXW")
    assert (found.identities, found.columns, found.cigar()) == (2, 4, "4M")
    table = jaxalign.align_pairs(["WXXW"], ["WXXW"], output="identity")
    assert table["max_identities"].tolist() == [2]
    dna = Scoring(match=1, mismatch=-1)
    assert jaxalign.align("ANNA", "ANNA", dna).identities == 2


def test_identity_kinds():
    """Query PPPWWWCW against target WWWW, ends free: the core is WWWCW over WWW-W."""
    scoring = Scoring(gap_open=3, gap_extend=1)
    options = dict(mode="semiglobal", output="alignment")
    table = jaxalign.align_pairs(["PPPWWWCW", ""], ["WWWW", ""], scoring, **options)
    one = table.alignment(0)
    assert one.rows() == ("WWWCW", "WWW-W")
    want = dict(alignment=5, full=8, aligned=4, shorter=4, longer=8, mean=6)
    want |= dict(query=8, target=4)
    assert sorted(want) == sorted(IDENTITIES)
    for kind, below in want.items():
        assert one.identity(kind) == table.identity(kind)[0] == 4 / below
        assert np.isnan(table.identity(kind)[1])
    paths = jaxalign.align_pairs(["WW"], ["WW"], output="identity")
    for kind in BY_PATH:
        with pytest.raises(UsageError, match="needs the path"):
            paths.identity(kind)
    assert paths.identity("shorter").tolist() == [1.0]
    with pytest.raises(UsageError, match="unknown identity 'blast'"):
        table.identity("blast")
    with pytest.raises(UsageError, match="no identities"):
        jaxalign.align_pairs(["WW"], ["WW"], output="score").identity()


@pytest.mark.parametrize("identity", ["shorter", "longer", "mean"])
def test_distance_matrix(identity):
    distance = jaxalign.distance_matrix(TEXTS, identity=identity, mode="semiglobal")
    table = jaxalign.align_all(TEXTS, mode="semiglobal", output="identity")
    assert distance.shape == (12, 12) and distance.dtype == np.float64
    np.testing.assert_array_equal(distance, distance.T)
    assert not distance.diagonal().any()
    want = 1 - np.nan_to_num(table.identity(identity))
    np.testing.assert_array_equal(distance[np.triu_indices(12, 1)], want)
    if identity == "shorter":
        assert (distance[0, 1:] == 1).all()  # an empty sequence is like none


def test_distance_matrix_refuses_what_is_not_symmetric():
    for identity in ("alignment", "query", "target"):
        with pytest.raises(UsageError, match="symmetric"):
            jaxalign.distance_matrix(["WW"], identity=identity)


# ------------------------------------------------------------------------ edges of size


@settings
def test_empty_sequences(mode, free):
    for output in ("alignment", "identity", "score"):
        table = jaxalign.align_pairs(
            ["", "", "WWW"], ["", "WWW", ""], **chosen(mode, free, output)
        )
        gap = {"global": -13, "semiglobal": 0, "local": 0}[mode]
        want = [0, gap, gap]
        if free:  # query_start and target_end
            want = [0, 0, 0]
        assert table["score"].tolist() == want
        if output == "alignment":
            check_rows(table)
            rows = [table.alignment(k).rows() for k in range(3)]
            gaps = [("", ""), ("---", "WWW"), ("WWW", "---")]
            assert rows == (gaps if gap and not free else [("", "")] * 3)
            empty = table.filter([True, False, False])
            assert empty.cigar(0) == "*" and empty["columns"].tolist() == [0]
        if output == "identity":
            assert table["max_identities"].tolist() == [0, 0, 0]


@pytest.mark.parametrize("output", ["score", "identity", "stats", "alignment"])
def test_no_sequences_and_one(output):
    for table in (
        jaxalign.align_all([], output=output),
        jaxalign.align_all(["WW"], output=output),
        jaxalign.align_pairs([], [], output=output),
        jaxalign.align_pairs(["WW"], [], output=output),
        jaxalign.align_pairs([], ["WW"], output=output),
    ):
        assert len(table) == 0 and not len(table["score"])
        assert (table.operations is None) == (output != "alignment")
        assert len(table.to_pandas()) == 0
    alone = jaxalign.align_all(["WW"], include_self=True, output=output)
    assert alone["score"].tolist() == [22]


def test_no_sequences_in_matrices():
    assert jaxalign.scores_matrix([]).shape == (0, 0)
    assert jaxalign.scores_matrix(["WW"], []).shape == (1, 0)
    assert jaxalign.distance_matrix([]).shape == (0, 0)
    assert jaxalign.distance_matrix(["WW"]).tolist() == [[0.0]]


# ------------------------------------------------------------------------------ inputs


def test_codes_of_another_alphabet_are_read_as_letters():
    dna = jaxalign.align_pairs(["ACGT"], ["ACGT"], Scoring(match=1, mismatch=-1))
    protein = jaxalign.align_pairs(dna.queries, ["ACGT"])
    assert protein["score"].tolist() == [4 + 9 + 6 + 5]


@pytest.mark.parametrize(
    "queries, message",
    [
        (["MKV", "MK-V"], r"record 2 \(seq2\), column 3: '-' is not a letter"),
        ([("a", "MKV"), ("b", "MKVU")], r"record 2 \(b\), column 4: 'U'"),
        ([b"1MK", "W"], r"record 1 \(seq1\), column 1: '1'"),
        (["M\u00e4", "W"], "column 2"),
        (["M\u03b1", "W"], "column 2"),
        ([np.array([3, 24], np.uint8), "W"], "record 1"),
        (["W", "W", "W"], "3 queries and 2 targets"),
    ],
    ids=str,
)
def test_bad_input(queries, message):
    with pytest.raises(InputError, match=message):
        jaxalign.align_pairs(queries, ["MKV", "MKV"])


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(mode="glocal"), "unknown mode"),
        (dict(free_ends=["q5"]), "unknown free end"),
        (dict(mode="local", free_ends=["query_end"]), "free_ends goes with"),
        (dict(output="paths"), "unknown output 'paths'"),
        (dict(implementation="fast"), "unknown implementation 'fast'"),
        (dict(threads=0), "threads = 0"),
        (dict(threads=1.5), "threads = 1.5"),
        (dict(threads=True), "threads = True"),
        (dict(window="2"), "window = '2'"),
        (dict(window=0), "window = 0"),
        (dict(memory_budget="2 apples"), "memory budget"),
        (dict(memory_budget=0), "memory budget"),
        (dict(memory_budget=float("inf")), "memory budget inf"),
        (dict(memory_budget=float("nan")), "memory budget nan"),
        (dict(memory_budget=True), "memory budget True"),
        (dict(memory_budget=[1]), "memory budget .1."),
        (dict(memory_budget="5i"), "memory budget '5i'"),
        (dict(memory_budget="9" * 400), "memory budget '9"),
        (dict(memory_budget="\uff12GiB"), "memory budget '"),
        (dict(min_score="2"), "min_score = '2'"),
        (dict(min_identity=True), "min_identity = True"),
        (dict(devices=0.5), "device 0.5: a number"),
        (dict(devices=[0.5]), "device 0.5: a number"),
    ],
    ids=str,
)
def test_bad_usage(options, message):
    with pytest.raises(UsageError, match=message):
        jaxalign.align_pairs(["MKV"], ["MKV"], **options)


def test_pallas_is_never_replaced_by_another():
    with pytest.raises(jaxalign.DeviceError):
        jaxalign.align("MKV", "MKV", implementation="pallas")


# ----------------------------------------------------------------------- to other forms


@pytest.mark.parametrize("mode", ["global", "semiglobal", "local"])
@pytest.mark.parametrize(
    "scoring, letters",
    [(Scoring(gap_open=5), "ACDW"), (Scoring("NUC", 8, 2), "ACGT"), (SKEW, "ACDW"),
     (Scoring("NUC", 8, 2, alphabet="rna"), "ACGU")],
    ids=["protein", "dna", "own", "rna"],
)  # fmt: skip
def test_biotite_and_back(mode, scoring, letters):
    rng = np.random.default_rng(9)
    a, b = ("".join(rng.choice(list(letters), n)) for n in (40, 64))
    queries, targets = [a, b, "A", a], [b, b[20:], "C", ""]
    options = dict(mode=mode, output="alignment")
    table = jaxalign.align_pairs(queries, targets, scoring, **options)
    for k in range(4):
        one = table.alignment(k)
        other = one.to_biotite()
        assert [str(s) for s in other.sequences] == [queries[k], targets[k]]
        again = Alignment.from_biotite(other, scoring, mode)
        assert again.cigar() == one.cigar() and again.rows() == one.rows()
        assert again.score == one.score == again.rescore()
        if one.columns:
            spans = ("query_start", "query_end", "target_start", "target_end")
            assert [getattr(again, n) for n in spans] == [
                getattr(one, n) for n in spans
            ]


def test_from_biotite_wants_two_sequences():
    from biotite.sequence.align import Alignment as BiotiteAlignment

    three = [seq.ProteinSequence("MK")] * 3
    trace = np.array([[0, 0, 0], [1, 1, 1]])
    with pytest.raises(InputError):
        Alignment.from_biotite(BiotiteAlignment(three, trace, 0), Scoring())
    two = BiotiteAlignment(three[:2], np.array([[0, 0], [-1, -1], [1, 1]]), 0)
    with pytest.raises(InputError):
        Alignment.from_biotite(two, Scoring())


def test_cigars():
    scoring = Scoring(gap_open=3, gap_extend=1)
    one = jaxalign.align("WWWWCCAWW", "WWWWAXW", scoring)
    assert one.cigar() == "4M2I3M" and one.cigar(eqx=True) == "4=2I1=1X1="
    assert (one.gaps, one.gap_openings, one.columns) == (2, 1, 9)
    assert one.rows() == ("WWWWCCAWW", "WWWW--AXW")
    assert oracle.runs_of_cigar(one.cigar()).tolist() == one.operations.tolist()
    local = jaxalign.align("CCCWWWW", "WWDWWCC", scoring, mode="local")
    assert (local.cigar(), local.query_start, local.target_start) == ("2M1D2M", 3, 0)
    assert local.cigar(eqx=True) == "2=1D2="


def test_table_to_pandas_and_arrow():
    options = dict(mode="local", output="alignment")
    table = jaxalign.align_all([("a", "WWCW"), ("b", "WWW"), ("c", "")], **options)
    frame, arrow = table.to_pandas(), table.to_arrow()
    assert frame["query"].tolist() == ["a", "a", "b"]
    assert frame["target"].tolist() == ["b", "c", "c"]
    assert list(frame.columns) == arrow.column_names == [*table.columns, "cigar"]
    for name in frame.columns:
        assert arrow[name].to_pylist() == frame[name].tolist()
    assert frame["cigar"].tolist() == [table.cigar(k) for k in range(3)]
    assert table.row(0)["score"] == frame["score"][0]


def test_filter_keeps_paths():
    table = jaxalign.align_all(TEXTS, mode="local", output="alignment")
    mask = table["score"] > np.median(table["score"])
    kept = table.filter(mask)
    assert len(kept) == mask.sum() == len(kept.operation_offsets) - 1
    for new, old in enumerate(np.flatnonzero(mask)):
        assert kept.row(new) == table.row(old) and kept.cigar(new) == table.cigar(old)
        assert kept.alignment(new).rescore() == kept["score"][new]
    assert len(table.filter(np.zeros(len(table), bool))) == 0
    with pytest.raises(UsageError, match="output='alignment'"):
        jaxalign.align_pairs(["W"], ["W"]).cigar(0)


# ----------------------------------------------------------------------- lazy importing


def test_importing_imports_no_jax():
    program = (
        "import sys, jaxalign; jaxalign.Scoring(); jaxalign.UsageError; dir(jaxalign)\n"
        "assert 'jax' not in sys.modules, 'jax came in'\n"
        "assert jaxalign.align('MK', 'MK').score == 10\n"
        "outside = {'jax', 'jaxlib', 'biotite', 'kernels_pallas'}\n"
        "assert not outside & sys.modules.keys(), outside & sys.modules.keys()\n"
        "assert jaxalign.dp_table('MK', 'MK').shape == (3, 3) and 'jax' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_public_names():
    for name in jaxalign.__all__:
        assert getattr(jaxalign, name).__doc__, name
    assert set(jaxalign.__all__) <= set(dir(jaxalign))
    with pytest.raises(AttributeError, match="no attribute 'alignment'"):
        _ = jaxalign.alignment


def test_the_package_has_no_other_names():
    """``jaxalign.version`` was a function of importlib."""
    program = (
        "import jaxalign\n"
        "names = {name for name in dir(jaxalign) if name[:2] != '__'}\n"
        "assert names == set(jaxalign.__all__), names ^ set(jaxalign.__all__)\n"
        "for name in ('version', 'import_module', 'PackageNotFoundError'):\n"
        "    assert not hasattr(jaxalign, name), name\n"
        "assert jaxalign.__version__"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_plan_does_nothing_but_count():
    made = jaxalign.plan(TEXTS)
    lengths = np.array([len(t) for t in TEXTS])
    assert made["pairs"] == 66
    i, j = np.triu_indices(12, 1)
    assert made["cells"] == (lengths[i] * lengths[j]).sum()
    assert made["implementation"] == "rows" and made["dtypes"] == ["int16"]
    assert made["reason"].startswith("a small job: about 0.0")
    zipped = jaxalign.plan(TEXTS, OTHERS)
    assert zipped["cells"] == sum(map(lambda a, b: len(a) * len(b), TEXTS, OTHERS))
    assert api.plan(TEXTS[:1], OTHERS)["pairs"] == 12


@pytest.mark.parametrize("query, target", [("MKT", ""), ("", "MKT"), ("", "")])
def test_directions_of_an_empty_sequence(query, target):
    matrices = jaxalign.directions(query, target)
    words = matrices.pop("words")
    assert words.shape == (-(-len(query) // 8), len(target))
    assert {m.shape for m in matrices.values()} == {(len(query), len(target))}


@pytest.mark.parametrize(
    "call",
    [
        lambda: jaxalign.align("ARND", "ARND").score,
        lambda: jaxalign.align_all(["ARND", "ARNE"], output="alignment")["score"][0],
        pytest.param(
            lambda: jaxalign.align_all(["ARND"] * 2, implementation="sweep")["score"][
                0
            ],
            marks=pytest.mark.slow,
        ),
        lambda: jaxalign.align_all(["ARND"] * 2, implementation="rows")["score"][0],
        lambda: jaxalign.search(["ARND"], ["ARND"])["score"][0],
        lambda: jaxalign.align_three("ARND", "ARND", "ARNE").score,
        lambda: jaxalign.edit_distance(["ARND"], ["ARNE"])[0],
        lambda: len(jaxalign.cluster(["ARND", "WWWW"], min_identity=0.5)),
        lambda: jaxalign.scores_matrix(["ARND"])[0, 0],
    ],
    ids=["align", "paths", "sweep", "rows", "search", "three", "edits", "cluster"]
    + ["matrix"],
)
def test_a_call_inside_a_traced_function_computes_at_once(call):
    """Values that JAX does not trace are constants there, as in NumPy."""
    want = float(call())
    assert jax.jit(lambda x: x + float(call()))(1.0) == 1 + want
    assert jax.grad(lambda x: x * float(call()))(1.0) == want


# Plans --------------------------------------------------------------------------------


PLANNED = ["MKTAYIAKQR", "MKTAYIKQR", "MRTAYIW", "KQRQ"]


def test_a_plan_reads_like_a_dict_and_prints():
    plan = jaxalign.plan(PLANNED)
    assert plan["pairs"] == 6 and "cells" in plan and len(plan) == len(dict(plan))
    assert json.loads(json.dumps(dict(plan))) == dict(plan) == plan
    assert (plan | {"pairs": 7})["pairs"] == 7
    assert "pairs: 6\n" in str(plan) and "\n" not in repr(plan)
    with pytest.raises(AttributeError):
        plan.figures = {}  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("options", [{}, {"min_score": 1.0}, {"part_rows": 3}])
def test_a_plan_of_a_set_can_be_run(options):
    chosen = PairOptions(**options)
    table = api.run_plan(api.plan_of(PLANNED, None, None, chosen), chosen)
    options.pop("part_rows", None)
    same_tables(table, jaxalign.align_all(PLANNED, **options))


@pytest.mark.parametrize("targets", [PLANNED[::-1], PLANNED[:1]])
def test_a_plan_of_two_sets_can_be_run(targets):
    plan = api.plan_of(PLANNED, targets, None, PairOptions())
    table = api.run_plan(plan, PairOptions())
    same_tables(table, jaxalign.align_pairs(PLANNED, targets))
    assert len(table.targets) == len(targets)


def test_the_command_line_plans_once(tmp_path, monkeypatch):
    """What it says before the work is what it runs."""
    fasta = tmp_path / "some.fasta"
    fasta.write_text("".join(f">{k}\n{text}\n" for k, text in enumerate(PLANNED)))
    plans, plan = [], engine.plan
    monkeypatch.setattr(engine, "plan", lambda task: plans.append(task) or plan(task))
    assert main(["all", str(fasta), "-o", str(tmp_path / "rows.tsv"), "-q"]) == 0
    assert len(plans) == 1
