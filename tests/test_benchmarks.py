"""The benchmarks' own arithmetic: problems repeat, cells and ratios are right."""

import ast
import json
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

import jax
import numpy as np
import oracle
import pytest
from cases import GAPS, SETTINGS, matrices, some_pairs

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.append(str(BENCHMARKS))

import fuzz_checks  # noqa: E402
import fuzz_jobs  # noqa: E402
import fuzz_oracle  # noqa: E402
import fuzz_run  # noqa: E402
import gpu  # noqa: E402
import gpu_forms  # noqa: E402
import gpu_fuzz  # noqa: E402
import learn  # noqa: E402
import measure  # noqa: E402
import papers_three  # noqa: E402
import peers  # noqa: E402
import problems  # noqa: E402
import profiles  # noqa: E402
import recall_three  # noqa: E402
import scale  # noqa: E402
import search  # noqa: E402

import kernels_pallas as kp  # noqa: E402
from jaxalign.io.fasta import pfam  # noqa: E402
from jaxalign.model.alphabet import as_sequences  # noqa: E402
from jaxalign.model.scoring import Scoring  # noqa: E402

SCRIPTS = sorted(
    file.stem for file in BENCHMARKS.glob("*.py") if "__main__" in file.read_text()
)
HELP = """
import runpy, sys
from pathlib import Path

folder, path = Path(sys.argv[1]), list(sys.path)
by_module = sys.argv[2] == "module"
for name in sys.argv[3:]:
    for key, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(folder)):
            del sys.modules[key]
    sys.path[:] = [str(folder.parent if by_module else folder), *path]
    sys.argv[1:] = ["--help"]
    try:
        if by_module:
            runpy.run_module(f"benchmarks.{name}", run_name="__main__")
        else:
            runpy.run_path(str(folder / f"{name}.py"), run_name="__main__")
    except SystemExit as end:
        assert end.code == 0, name
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["module", "file"])
def test_every_benchmark_runs_as_a_module_and_as_a_file(way, tmp_path):
    """All in one process, which imports jax once, and each script's neighbours anew."""
    command = [sys.executable, "-c", HELP, str(BENCHMARKS), way, *SCRIPTS]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.count("usage:") == len(SCRIPTS) >= 15


def test_what_scripts_import_exists():
    """Names, and attributes of modules, where they are needed: most scripts run on a
    GPU alone."""
    for file in BENCHMARKS.glob("*.py"):
        nodes = [*ast.walk(ast.parse(file.read_text()))]
        bound = {
            x.id
            for x in nodes
            if isinstance(x, ast.Name) and not isinstance(x.ctx, ast.Load)
        }
        bound |= {x.arg for x in nodes if isinstance(x, ast.arg)}
        used = {
            (x.value.id, x.attr)
            for x in nodes
            if isinstance(x, ast.Attribute) and isinstance(x.value, ast.Name)
        }
        for node in nodes:
            home = getattr(node, "module", None) or ""
            if home.startswith(("jaxalign", "kernels_pallas")):
                for alias in node.names:
                    one, name = found(home, alias.name), alias.asname or alias.name
                    assert one, (file.name, home, alias.name)
                    names = {attr for who, attr in used if who == name}
                    if isinstance(one, ModuleType) and name not in bound:
                        assert names <= {*dir(one)}, (file.name, name, names)


def found(home, name):
    """What a name of a module is; of a module that needs PyTorch its name."""
    try:
        module = import_module(home)
        return getattr(module, name, None) or import_module(f"{home}.{name}")
    except ModuleNotFoundError as missing:
        return missing.name == "torch" and name


def test_random_problem_is_pinned():
    made = problems.random_proteins("p", 20, 2)
    assert made.texts == ("NKGTDMYEDLIGLSDDMED", "IFEMDNALTEFQGGFFYWAIF")


def test_exact_length_is_exact():
    made = problems.exact_length(50, 3)
    assert made.lengths.tolist() == [50, 50, 50]
    assert len(set(made.texts)) == 3


def test_every_name_is_listed_once():
    names = problems.names()
    assert len(set(names)) == len(names) == 4 + 6 * 3
    with pytest.raises(KeyError, match="random-100"):
        problems.problem("no-such-problem")


@pytest.mark.parametrize("include_self", [False, True])
def test_cells_are_the_sum_over_pairs(include_self):
    made = problems.random_proteins("p", 30, 7)
    pairs = made.pairs(include_self)
    cells = sum(made.lengths[i] * made.lengths[j] for i, j in pairs)
    assert len(pairs) == 7 * (8 if include_self else 6) // 2
    assert measure.all_pairs_cells(made.lengths, include_self) == cells


def test_median_of_turns_leaves_the_first_call_out():
    seen = []
    calls = {"a": lambda: seen.append("a") or 1, "b": lambda: seen.append("b") or 2}
    timed = measure.in_turns(calls, repeats=3)
    assert seen == ["a", "b"] * 4
    assert timed["b"]["result"] == 2
    assert timed["a"]["seconds"] >= 0


def test_row_of_a_contestant():
    made = problems.Problem("p", ("a", "b", "c"), ("A" * 10, "A" * 20, "A" * 30))
    entrant = peers.Contestant("parasail scan", "score", made.pairs(), None)
    times = {"seconds": 0.5, "spread": 0.0, "cores": 1.0, "first": 1.0, "result": [1]}
    row = peers._row(entrant, made, "local", 1, times)
    assert row["GCUPS"] == pytest.approx((200 + 300 + 600) / 0.5 / 1e9)
    assert row["pairs/s"] == 6


def test_ratio_is_to_the_fastest_parasail_row_of_the_same_output():
    rows = [
        {"tool": "parasail scan", "output": "score", "GCUPS": 1.0},
        {"tool": "parasail striped", "output": "score", "GCUPS": 2.0},
        {"tool": "parasail scan", "output": "alignment", "GCUPS": 0.5},
        {"tool": "jaxalign", "output": "score", "GCUPS": 9.0},
    ]
    assert peers._best_parasail(rows, "score") == 2.0
    assert peers._best_parasail(rows, "alignment") == 0.5


def test_sample_is_spread_and_within_the_pairs():
    made = problems.random_proteins("p", 30, 9)
    few = peers.sample(made, cells=5 * 900)
    assert set(few) <= set(made.pairs())
    assert 4 <= len(few) <= 7
    assert few[-1][0] > 0


def test_bound_of_a_kernel_is_the_slower_of_instructions_and_bytes():
    card = {"min_max": 9e12, "copy": 2e12}
    assert gpu.bound({"cost": (2.25, 0.0)}, card) == pytest.approx(4.0)
    assert gpu.bound({"cost": (1.5, 0.5)}, card) == pytest.approx(4.0)
    assert gpu.bound({"cost": (1.5, 1.0)}, card) == pytest.approx(2.0)
    assert gpu.bound({}, card) is None


def test_overhead_of_a_path_is_over_the_score_of_its_lengths(capsys):
    rows = [
        {"name": "local", "tcups": 6.0},
        {"name": "tiles, local", "tcups": 3.0},
        {"name": "score, local 1152", "tcups": 5.0},
        {"name": "tiles, local 1152", "tcups": 4.0},
    ]
    gpu.overheads(rows)
    assert [row.get("over_score") for row in rows] == [None, 2.0, None, 1.25]
    assert "X1.8 tiles, local: 2.00 x" in capsys.readouterr().out


def test_a_section_that_fails_is_a_row_and_not_the_end(capsys):
    (row,) = gpu.attempt("name", lambda: 1 / 0)
    assert row["right"] is False and "ZeroDivisionError" in capsys.readouterr().err
    assert "NOT CHECKED" in gpu.shown(row)


def test_rows_of_the_gpu_table_have_names_of_their_own():
    names = [name for name, _ in gpu.kernel_rows()]
    assert len(set(names)) == len(names)


def test_plain_scores_of_the_gpu_rows_are_right():
    q = t = np.arange(6)[None]
    best = int(np.diag(gpu.SCORES)[:6].sum())
    for local, free in ((True, ()), (False, ()), (False, gpu.ENDS)):
        assert gpu.reference(q, t, local, free) == [best]


@pytest.mark.parametrize("local", [True, False], ids=["local", "border"])
def test_jobs_of_both_gpu_forms_cover_all_kinds(local):
    """Blocks, lists, stacks, paths; jobs within the range of both, and beyond it."""
    kinds, fits, free = gpu_forms.kinds(local), set(), set()
    for key in ("shared", "paths", "linear"):
        assert {getattr(kind, key) for kind in kinds} == {True, False}
    assert {kind.stacked for kind in kinds} == {local, False}
    assert len({str(kind) for kind in kinds}) == len(kinds)
    for kind in kinds:
        shapes = [gpu_forms.shape_of(kind, card) for card in (kp.HOPPER, kp.AMPERE)]
        assert len({(s.shared, s.stacks, s.tile, s.linear) for s in shapes}) == 1
        jobs = [gpu_forms.job_of(kind, number) for number in range(16)]
        free |= {job["free"] for job in jobs}
        fits |= {gpu_forms.proved(kind, job, kp.AMPERE) for job in jobs}
        for job in jobs:
            assert (job["gaps"][0] == job["gaps"][1]) >= kind.linear
            assert {384, 0, 1} <= {*job["m"]} and {384, 0, 1} <= {*job["n"]}
    assert True in fits and len(free) == (1 if local else 16)


def test_forms_that_differ_are_counted():
    """Pairs that may have left a range are not compared; runs beyond a path neither."""
    score, over = np.array([[5, 7, 9]]), np.array([[False, True, False]])
    runs, count = np.array([[[16, 16, 16]], [[0, 0, 0]]]), np.array([[1, 1, 1]])
    first = {"score": score, "overflow": over, "runs": runs, "count": count}
    other = first | {"score": np.array([[5, 0, 9]]), "runs": runs + [[[0]], [[9]]]}

    def counts(one, two):
        return [int(x.sum()) for x in gpu_forms.differences(one, two)]

    assert counts(first, other) == [2, 0, 1]
    assert counts(first, first | {"count": count + [[0, 0, 1]]}) == [2, 1, 1]
    wrong = first | {"runs": runs + [[[0, 0, 1]], [[0, 0, 0]]]}
    assert counts(first, wrong) == [2, 1, 1]
    assert counts({"score": score}, {"score": score + over}) == [3, 1, 0]


def test_the_rate_kernel_lowers_for_cuda():
    numbers = jax.ShapeDtypeStruct((2,), np.int32)
    traced = jax.jit(gpu.min_max_kernel()).trace(numbers)
    assert "mosaic_gpu" in traced.lower(lowering_platforms=("cuda",)).as_text()


def test_queries_of_a_search_have_the_papers_lengths():
    records = [("a", "A" * 70), ("b", "C" * 63), ("c", "D" * 600)]
    found = search.queries(records, search.LENGTHS)
    assert [len(text) for _, text in found] == [63, 127, 255, 361, 511]
    assert found[0] == ("q63", "A" * 63)


def test_scores_listed_by_ssearch36():
    text = """             s-w
A6WX31 ACCD_OCHA4 Acetyl-coenzyme A (beta) ca ( 301)   40
C0Q034 5DNU_SALPC 5'-deoxynucleotidase YfbR   ( 199)   37

  2>>>P68871 HBB_HUMAN - 147 aa"""
    assert search._listed(text) == [40, 37]


def test_families_of_three_have_their_lengths():
    for lengths, name in papers_three.FAMILIES.items():
        assert tuple(map(len, papers_three.triple(lengths))) == lengths, name


def test_triples_are_distinct_and_repeat():
    from jaxalign.io import fasta

    family = fasta.pfam()["Caudal_act"]
    made = recall_three.drawn(family, 20)
    assert len(set(made)) == 20 and made == recall_three.drawn(family, 20)
    assert all(i < j < k < len(family) for i, j, k in made)


def test_recall_counts_pairs():
    assert recall_three.partners_of_rows("A-BC", "XYZ-").tolist() == [0, 2, -1]
    found, truth = [np.array([0, 2, -1])] * 3, [np.array([0, 1, 2])] * 3
    assert recall_three.counts([found], [truth]).tolist() == [[3, 9, 6]]


def test_learning_pairs_are_short_and_remote():
    from jaxalign.io import fasta
    from jaxalign.model.profile import identity, sequence

    family = fasta.pfam()["COX2_TM"]
    pairs = learn.pairs_of(family, np.random.default_rng(0), 8, longest=88)
    assert len(set(pairs)) == len(pairs) > 0
    for i, j in pairs:
        assert identity(family, i, j) <= learn.MOST_IDENTICAL
        assert max(len(sequence(family, k)) for k in (i, j)) <= 88
    a, b, lengths, truth = learn.padded(family, pairs, 96)
    assert a.shape == b.shape == truth.shape == (len(pairs), 96)
    assert (truth < lengths[:, 1:]).all()


def test_reliability_is_by_tenths_of_the_posterior():
    p, right = np.array([0.05, 0.15, 0.12, 1.0]), np.array([0, 1, 0, 1], bool)
    bins = learn.reliability([{"posterior": p, "right": right}])
    assert [(one["from"], one["pairs"], one["right"]) for one in bins] == [
        (0.0, 1, 0.0),
        (0.1, 2, 0.5),
        (0.9, 1, 1.0),
    ]


# Scale


def test_a_static_split_waits_for_its_heaviest_share():
    cells = [8, 8, 1, 1, 1, 1, 1, 1]
    seconds = [float(x) for x in cells]
    assert scale.makespans(cells, seconds, 2) == (11.0, 18.0)
    assert scale.makespans(cells, seconds, 1) == (22.0, 22.0)
    assert scale.makespans(cells[::-1], seconds[::-1], 8)[0] == 8.0


@pytest.mark.usefixtures("compiled")
def test_rows_of_scale_run(monkeypatch):
    monkeypatch.setattr(problems, "SETS", ())

    def few(count=None):
        texts = problems.random_proteins("p", 20, count or 12).texts
        return as_sequences(list(texts), Scoring().alphabet)

    monkeypatch.setattr(scale, "proteins", few)
    options = scale.parser().parse_args(["devices", "--counts", "1,2", "--count", "12"])
    options.modes = "local"
    one, two = scale.devices(options)
    assert one["sum of scores"] == two["sum of scores"] and one["speed-up"] == 1
    assert len(scale.lpt(options)) == 3


# The fuzz


@pytest.mark.parametrize("name, matrix", matrices().items())
def test_rows_of_numpy_are_the_oracles(name, matrix):
    letters, scores = matrix
    rng = np.random.default_rng(len(name))
    for mode, ends in SETTINGS:
        for gaps in GAPS.values():
            free = oracle.free_set(mode, ends or ())
            problem = fuzz_oracle.Problem(scores, *gaps, mode == "local", free, 3)
            for a, b in zip(*some_pairs(rng, 4, letters, 20), strict=True):
                want = oracle.align(a, b, scores, *gaps, mode, ends or ())
                row = fuzz_oracle.align(a, b, problem)
                steps = [("MID"[step], length) for length, step in row["operations"]]
                assert (row["score"], steps) == (want.score, want.operations)
                assert (row["query_start"], row["target_start"]) == want.start
                assert (row["query_end"], row["target_end"]) == want.end
                runs = [length << 4 | step for length, step in row["operations"]]
                runs = np.array(runs, np.uint32)
                assert fuzz_oracle.rescored(a, b, row, runs, problem) == row
                most = oracle.max_identities(
                    a, b, scores, *gaps, mode, ends or (), wildcard=3
                )
                assert fuzz_oracle.matches(a, b, problem) == most


@pytest.mark.slow
def test_jobs_repeat_and_stay_within_their_cells():
    drawn = [fuzz_jobs.draw(1, number) for number in range(300)]
    assert drawn == [fuzz_jobs.draw(1, number) for number in range(300)]
    assert {job.kind for job in drawn} >= {"all", "search", "three", "soft"}
    small = [fuzz_jobs.draw(1, number, 10**5) for number in range(0, 300, 7)]
    for job in small:
        scoring = fuzz_jobs.scoring_of(job)
        sides = [fuzz_jobs.sequences_of(job, scoring, side) for side in (0, 1)]
        lengths = [np.diff(offsets) for _, offsets in sides]
        assert [len(x) for x in lengths] == [job.queries, job.targets]
        assert max(x.max() for x in lengths) <= job.longest
        assert all(codes.max(initial=0) < len(scoring.scores) for codes, _ in sides)


def fuzz_job(**options):
    job = fuzz_jobs.Job(1, 0, "all", "alignment", "local", (), "protein", "BLOSUM62",
                        (11, 1), 7, 7, 30, "borders", "some")  # fmt: skip
    return replace(job, **options)


def test_a_job_of_the_fuzz_has_no_difference():
    for options in ({"again": True}, {"threshold": "min_cov"}):
        for number, ran in enumerate(("rows", "sweep")):
            result = fuzz_run.run(fuzz_job(number=number, **options))
            assert result["differences"] == [] and result["ran"] == ran


@pytest.mark.parametrize(
    "column", ["score", "query_start", "identities", "target", "operations"]
)
def test_a_wrong_column_or_path_is_a_difference(column, monkeypatch):
    call = fuzz_run._call

    def wrong(*args):
        table = call(*args)
        if column == "operations":
            table.operations[0] ^= 1 << 4
        else:
            table.columns[column][3] += 1
        return table

    monkeypatch.setattr(fuzz_run, "_call", wrong)
    assert fuzz_run.run(fuzz_job())["differences"]


def test_filters_are_the_tables():
    table = fuzz_run._call(*_problem(fuzz_job(output="stats")), {})
    m, n = table.lengths()
    for kind in ("alignment", "full", "aligned", "shorter", "mean", "target"):
        least = {"min_identity": 0.2, "identity": kind}
        keep = fuzz_checks.kept(table.columns, m, n, least)
        np.testing.assert_array_equal(keep, table.identity(kind) >= 0.2)


def _problem(job):
    scoring = fuzz_jobs.scoring_of(job)
    flat = fuzz_jobs.sequences_of(job, scoring, 0)
    codes = np.split(flat[0], flat[1][1:-1])
    return fuzz_checks.Problem(job, scoring, codes, codes), (flat, flat)


CHILD = """
import json, os, time
print(json.dumps({"device": "none", "platform": "cpu", "jax": "0"}), flush=True)
first = int(sys.argv[2].split("=")[1])
print(json.dumps({"begin": first, "job": "kind=all"}), flush=True)
"""


@pytest.mark.parametrize(
    "ending, why",
    [
        ("os._exit(9)", "ended with 9"),
        pytest.param("time.sleep(900)", "silent for", marks=pytest.mark.slow),
    ],
)
def test_a_process_that_dies_or_hangs_is_a_fault(ending, why, tmp_path, monkeypatch):
    (tmp_path / "fuzz_run.py").write_text(f"import sys{CHILD}{ending}")
    monkeypatch.setattr(gpu_fuzz, "HERE", tmp_path)
    patience = "10" if "sleep" in ending else "600"  # seconds; a process starts within
    words = ["--device", "cpu", "--jobs", "2", "--timeout", patience]
    results = tmp_path / "results.jsonl"
    assert gpu_fuzz.main([*words, "--results", str(results)]) == 1
    line = json.loads(results.read_text())
    assert line["jobs"] == line["faults"] == 2
    assert [x["number"] for x in line["bad"]] == [0, 1] and why in line["bad"][0][
        "fault"
    ]


@pytest.mark.slow
def test_the_fuzz_runs(tmp_path):
    words = ["--device", "cpu", "--jobs", "4", "--cells", "2000", "--seed", "2"]
    words += ["--results", str(tmp_path / "results.jsonl")]
    assert gpu_fuzz.main(words) == 0


def test_recall_counts_relatives_above_decoys():
    one = profiles.Problem("x", ["MK"], ["MK", "MR", "KM", *["WW"] * 199], 3)
    scores = np.array([5.0, 3.0, 1.0, 4.0, 2.0, *[0.0] * 197])
    assert profiles.recalls(one, scores) == (1, 2)
    made = profiles.problem(pfam()["LuxC"], 2)
    assert len(made.texts) == 3 * made.count
    assert sorted(made.texts[0]) == sorted(made.texts[made.count])
    assert {len(row) for row in made.rows} == {len(made.rows[0])}


def test_large_sets_repeat_and_have_relatives():
    """A copy of a protein has its length; a relative most of its residues' places."""
    some, again = (scale.large_set(400, 0.5) for _ in range(2))
    assert (some.codes == again.codes).all() and len(some) == 400
    real = scale.proteins()
    few = scale.large_set(len(real) + 40, 1.0)
    for k in range(len(real), len(few)):
        one, other = few[k], few[k - len(real)]
        assert len(one) == len(other)
        assert (one == other).mean() > 0.1 or len(one) < 20


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["cluster", "audit", "dedup"])
def test_rows_of_large_sets_do_not_depend_on_devices(verb):
    words = ["links", "--verbs", verb, "--proteins", "12", "--counts", "1,2"]
    alone, both = scale.links(scale.parser().parse_args(words))
    assert alone["pairs"] == (66 if verb != "audit" else 3 * 9)
    assert (alone["devices"], both["devices"]) == (1, 2)
    for name in ("pairs", "found", "clusters", "digest"):
        assert alone[name] == both[name]
