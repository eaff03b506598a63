"""Pairs that provably cannot pass are not aligned; the rows are those without."""

import json
from itertools import cycle

import numpy as np
import plain_launches
import pytest
from cases import lcs_by_words, same_tables
from gpu_windows_cases import _drive

import jaxalign
import kernels_pallas
from jaxalign.cli.main import main
from jaxalign.model.alphabet import as_sequences
from jaxalign.model.scoring import Scoring
from jaxalign.model.table import join
from jaxalign.options import PairOptions
from jaxalign.pairs import compiled, part_stream, plan
from jaxalign.pairs.options import make_task
from jaxalign.pairs.pair_matrix import PairMatrix
from jaxalign.pairs.proofs import proof
from jaxalign.pairs.proofs.lcs_launches import LcsLaunches, LcsSizes
from jaxalign.words import cpu
from kernels_pallas.words import lcs

LETTERS = list("ACDEFGHIKLMNPQRSTVWYX")
MODES = [
    {},
    {"mode": "semiglobal"},
    {"mode": "local"},
    {"free_ends": ["query_start", "query_end"]},
    {"free_ends": ["query_start", "target_end"]},
]
SWEEP = {"implementation": "sweep"}  # else a small job counts no subsequences


def family(rng, count: int, length: int) -> list[str]:
    """Sequences with from no to nearly all residues changed, some with a piece lost."""
    first, others = rng.choice(LETTERS, length), []
    for _ in range(count):
        changed = rng.random(length) < rng.random()
        one = np.where(changed, rng.choice(LETTERS, length), first)
        start, stop = np.sort(rng.integers(0, length + 1, 2))
        if rng.random() < 0.3:
            one = np.delete(one, slice(start, stop))
        others.append("".join(one))
    return others


def sequences() -> list[str]:
    rng = np.random.default_rng(0)
    texts = [*family(rng, 12, 60), *family(rng, 10, 130), *family(rng, 6, 30)]
    texts += ["", "", "MKV", "WWWW", "XXXX", *family(rng, 2, 70)]
    return [texts[k] for k in rng.permutation(len(texts))]


TEXTS = sequences()


def unfiltered(table, options):
    """The rows that a table without filters has for some options."""
    cut, kind = options["min_identity"], options["identity"]
    kept = table.identity(kind) >= cut
    m, n = table.lengths()
    if "min_length_ratio" in options:
        with np.errstate(invalid="ignore"):
            kept &= np.minimum(m, n) / np.maximum(m, n) >= options["min_length_ratio"]
    if "min_cov" in options:
        for side, length in (("query", m), ("target", n)):
            span = table[f"{side}_end"] - table[f"{side}_start"]
            with np.errstate(invalid="ignore"):
                kept &= span / length >= options["min_cov"]
    return table.filter(kept)


CUTS = 0.4, 0.8
OUTPUTS = ["alignment", "identity", "stats", "alignment", "stats"]


@pytest.mark.slow
@pytest.mark.parametrize("ends, output", [*zip(MODES, OUTPUTS, strict=True)], ids=str)
def test_rows_are_the_same_for_every_denominator_and_cut(ends, output):
    whole = jaxalign.align_all(TEXTS, output=output, **ends)
    zipped = jaxalign.align_pairs(TEXTS, TEXTS[::-1], output=output, **ends)
    kinds = ["shorter", "longer", "mean", "query", "target"]
    kinds += ["alignment", "full", "aligned"] if output != "identity" else []
    fewer = 0
    for k, kind in enumerate(kinds):
        for cut in CUTS if output == "identity" else [CUTS[k % 2]]:
            options = {"min_identity": cut, "identity": kind}
            if ends and kind == "alignment":
                options["min_cov"] = 0.6
            if cut == 0.8:
                options["min_length_ratio"] = 0.5
            call = {"output": output, **ends, **SWEEP, **options}
            found = jaxalign.align_all(TEXTS, **call)
            same_tables(found, unfiltered(whole, options))
            pairs = jaxalign.align_pairs(TEXTS, TEXTS[::-1], **call)
            same_tables(pairs, unfiltered(zipped, options))
            excluded = sum(found.info["excluded"].values())
            assert found.info["aligned_pairs"] == len(whole) - excluded
            fewer += excluded > 0
    assert fewer > len(kinds) // 2


def test_what_is_excluded_by_which_inequality():
    cut, ratio, count = 0.6, 0.5, 0
    options = {"min_identity": cut, "min_length_ratio": ratio, "output": "identity"}
    info = jaxalign.align_all(TEXTS, **options, **SWEEP).info
    want = dict.fromkeys(info["excluded"], 0)
    by_ratio, by_length, by_lcs = want
    for i, a in enumerate(TEXTS):
        for b in TEXTS[i + 1 :]:
            few, many = sorted((len(a), len(b)))
            count += 1
            if not many or few / many < ratio:
                want[by_ratio] += 1
            elif few / many < cut:
                want[by_length] += 1
            elif lcs_by_words(a, b, "X") / many < cut:
                want[by_lcs] += 1
    assert info["excluded"] == want and min(want.values()) > 0
    assert by_ratio == "lengths: min(m, n) / max(m, n) < 0.5"
    assert by_length == "lengths: min(m, n) / max(m, n) < 0.6"
    assert by_lcs == "LCS: lcs / max(m, n) < 0.6"
    assert info["aligned_pairs"] == count - sum(want.values()) < info["pairs"] == count


@pytest.mark.slow
@pytest.mark.parametrize("include_self", [False, True])
def test_parts_shards_and_what_is_there_already(include_self, monkeypatch):
    monkeypatch.setattr(proof, "MAX_QUERIES", 7)
    options = {"min_identity": 0.6, "identity": "longer", "output": "alignment"}
    options |= SWEEP | {"include_self": include_self}
    want = jaxalign.align_all(TEXTS, **options, filter=False)
    assert 0 < len(want) < 100
    for rows in (40, 200, 10**6):
        found = list(jaxalign.stream_all(TEXTS, part_rows=rows, **options))
        same_tables(join((table for _, table in found), found[0][1].info), want)
        for part, table in found:
            n, shift = len(TEXTS), 0 if include_self else 1
            pairs = sum(n - shift - i for i in range(part.first, part.last))
            excluded = sum(table.info["excluded"].values())
            assert table.info["pairs"] == pairs == part.stop - part.start
            assert table.info["aligned_pairs"] == pairs - excluded
            inside = (table["query"] >= part.first) & (table["query"] < part.last)
            assert inside.all()
        by_index = {part.index: table for part, table in found}
        left = jaxalign.stream_all(TEXTS, part_rows=rows, skip=[0, 3], **options)
        for part, table in left:
            assert part.index not in (0, 3)
            same_tables(table, by_index[part.index])
        shards = [
            part.index
            for k in (1, 2, 3)
            for part, table in jaxalign.stream_all(
                TEXTS, part_rows=rows, shard=(k, 3), **options
            )
            if not same_tables(table, by_index[part.index])
        ]
        assert sorted(shards) == list(by_index)


@pytest.mark.parametrize(
    "devices", ["all", pytest.param([1, 3], marks=pytest.mark.slow)]
)
def test_several_devices(devices):
    options = {"min_identity": 0.5, "identity": "longer", "output": "stats"}
    want = jaxalign.align_all(TEXTS, **options, filter=False)
    found = jaxalign.align_all(TEXTS, **options, **SWEEP, devices=devices)
    same_tables(found, want)
    assert sum(found.info["excluded"].values()) > 100


@pytest.mark.slow
def test_one_against_all_and_an_asymmetric_matrix(tmp_path):
    rng = np.random.default_rng(2)
    letters = "ACDEFGHIKLMNPQRSTVWYX"
    rows = rng.integers(-4, 3, (21, 21)) + 6 * np.eye(21, dtype=int)
    lines = ["  " + "  ".join(letters)]
    lines += [
        f"{x} " + " ".join(map(str, row)) for x, row in zip(letters, rows, strict=True)
    ]
    path = tmp_path / "skew.mat"
    path.write_text("\n".join(lines) + "\n")
    for scoring in (None, str(path)):
        options = {"min_identity": 0.5, "identity": "query", "output": "alignment"}
        for sides in ((TEXTS[3], TEXTS), (TEXTS, TEXTS[3])):
            sides = [[side] if isinstance(side, str) else side for side in sides]
            want = jaxalign.align_pairs(*sides, scoring, **options, filter=False)
            same_tables(jaxalign.align_pairs(*sides, scoring, **options, **SWEEP), want)
        want = jaxalign.align_all(TEXTS, scoring, **options, filter=False)
        same_tables(jaxalign.align_all(TEXTS, scoring, **options, **SWEEP), want)


@pytest.mark.slow
def test_a_set_where_nothing_or_everything_is_excluded():
    for texts in ([], ["MK"], ["MKV"] * 5, ["WWWW", "AAAA", "CCCC"], ["", ""]):
        for cut in (0.0, 1.0):
            options = {"min_identity": cut, "identity": "longer", "output": "identity"}
            want = jaxalign.align_all(texts, **options, filter=False)
            same_tables(jaxalign.align_all(texts, **options, **SWEEP), want)
            same_tables(jaxalign.align_all(texts, **options), want)


@pytest.mark.slow
def test_progress_reaches_the_end():
    seen = []
    options = {"min_identity": 0.7, "identity": "longer", **SWEEP}
    told = {"progress": lambda done, total: seen.append((done, total))}
    table = jaxalign.align_all(TEXTS, **options, **told)
    assert sum(table.info["excluded"].values())
    assert seen[-1] == (table.info["cells"],) * 2


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(
    "named", [pytest.param({"implementation": "rows"}, marks=pytest.mark.slow), {}]
)
def test_subsequences_are_counted_in_numpy_from_some_cells_on(named, monkeypatch):
    options = {"min_identity": 0.6, "identity": "longer", "output": "identity"}
    want = jaxalign.align_all(TEXTS, **options, filter=False)
    by_program = jaxalign.align_all(TEXTS, **options, **SWEEP).info["excluded"]
    monkeypatch.setattr(proof, "LEAST_CELLS_BY_ROWS", 10**9)
    few = jaxalign.align_all(TEXTS, **options, **named).info["excluded"]
    assert not any(name.startswith("LCS") for name in few)
    monkeypatch.setattr(proof, "LEAST_CELLS_BY_ROWS", 1000)
    monkeypatch.setattr(proof, "MAX_QUERIES", 30)
    monkeypatch.setattr(cpu, "lcs_block", None)
    more = jaxalign.align_all(TEXTS, **options, **named)
    same_tables(more, want)
    assert more.info["excluded"] == by_program
    if not named:
        monkeypatch.setattr(proof, "LEAST_CELLS", 1000)
        with pytest.raises(TypeError, match="NoneType"):
            jaxalign.align_all(TEXTS, **options)


@pytest.mark.slow
def test_where_there_is_no_bound_the_result_says_so():
    for options, words in (
        ({"identity": "aligned"}, "gap"),
        ({"mode": "local"}, "min_cov"),
        ({"filter": False}, "filter=False"),
    ):
        info = jaxalign.align_all(TEXTS, min_identity=0.5, **options, **SWEEP).info
        assert words in info["bound"] and info["bound"].startswith("none")
        assert info["aligned_pairs"] == info["pairs"] and info["excluded"] == {}
        plan = jaxalign.plan(TEXTS, min_identity=0.5, **options)
        assert plan["bound"] == info["bound"]
    assert "bound" not in jaxalign.align_all(TEXTS, min_score=3).info


def test_the_command_line_counts(tmp_path, capsys):
    path = tmp_path / "some.fa"
    path.write_text("".join(f">s{k}\n{text}\n" for k, text in enumerate(TEXTS) if text))
    words = ["all", str(path), "--implementation", "sweep", "--min-identity", "0.6"]
    words += ["--output", "identity", "--min-length-ratio", "0.5"]
    assert main([*words, "-o", str(tmp_path / "a.tsv"), "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    counts = found["excluded"]
    assert found["pairs"]["computed"] - found["aligned"] == sum(counts.values()) > 0
    assert found["bound"] == "identity <= lcs / max(m, n)"
    assert f"{counts['LCS: lcs / max(m, n) < 0.6']:,} by LCS: lcs" in err
    assert main([*words, "-o", str(tmp_path / "b.tsv"), "--no-filter"]) == 0
    assert "bound none" in capsys.readouterr().err
    assert (tmp_path / "a.tsv").read_text() == (tmp_path / "b.tsv").read_text()
    folder = [*words, "--part-rows", "50", "-o", str(tmp_path / "parts"), "--json"]
    assert main(folder) == 0
    parts = json.loads(capsys.readouterr().out)
    assert parts["excluded"] == counts and parts["aligned"] == found["aligned"]


# GPUs ---------------------------------------------------------------------------------


@pytest.fixture
def launched(monkeypatch):
    """Launches on devices that are CPUs; a list of them."""
    return plain_launches.use(monkeypatch)


LAUNCHES = [(None, 0), (None, 900), ([0, 2], 10**6)]
KINDS = ["longer", "mean", "query", "alignment"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, devices, together",
    [(kind, *how) for kind, how in zip(KINDS, cycle(LAUNCHES), strict=False)],
)
def test_rows_by_launches(launched, monkeypatch, kind, devices, together):
    options = {"min_identity": 0.6, "identity": kind, "output": "identity"}
    if kind == "alignment":
        options |= {"output": "stats", "min_cov": 0.7, "mode": "semiglobal"}
    if kind == "mean":
        options |= {"min_length_ratio": 0.6}
    call = SWEEP | ({"devices": devices} if devices else {})
    want = jaxalign.align_all(TEXTS, **options, filter=False)
    limits = {"looked_at": together, "pairs": 2**16, "parts": 3}
    monkeypatch.setattr(part_stream, "ON_GPU", part_stream.Limits(**limits))
    monkeypatch.setattr(proof, "MAX_LEFT_OF_A_GPU", 1)
    found = jaxalign.align_all(TEXTS, part_rows=200, **options, **call)
    same_tables(found, want)
    names = {device.id if device else None for device, _ in launched}
    assert names == {*(devices or [None])}
    swapped = {swapped for _, swapped in launched}
    assert swapped == ({False} if together else {False, True})
    monkeypatch.undo()
    on_cpu = jaxalign.align_all(TEXTS, **options, **SWEEP).info
    # Of two long sequences no subsequence is counted.
    *others, last = found.info["excluded"]
    assert last.startswith("LCS") and found.info["excluded"][last] > 0
    assert all(found.info["excluded"][x] == on_cpu["excluded"][x] for x in others)
    assert found.info["excluded"][last] <= on_cpu["excluded"][last]
    excluded = sum(found.info["excluded"].values())
    assert excluded + found.info["aligned_pairs"] == found.info["pairs"]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("cut", [0.1, 0.45, 0.9])
def test_the_search_stops_where_most_pairs_pass(cut, threads, monkeypatch):
    """… whatever share is too many, and only there."""
    options = PairOptions(
        output="identity", min_identity=cut, threads=threads, implementation="sweep"
    )
    scoring = Scoring()
    texts = as_sequences(TEXTS, scoring.alphabet)
    task = make_task("all", texts, texts, scoring, options)
    monkeypatch.setattr(proof, "MAX_QUERIES", 8)
    proofs, usual, looked = proof.proofs_of(task), proof.looks, []

    def looks(proofs):
        for number, look in enumerate(usual(proofs)):
            yield lambda device, n=number, look=look: looked.append(n) or look(device)

    monkeypatch.setattr(proof, "looks", looks)
    every = proof.find(proofs)
    count, share = len(looked), proof.cells_of(task, every) / task.job.cells
    assert count > 2
    for limit in (0.0, 0.5 * share, 0.99 * share, share, 1.01 * share, 1.0):
        looked.clear()
        found = proof.find(proofs, None, limit)
        kept = found is not None and proof.worthwhile(task, found, limit) is not None
        assert kept == (share <= limit and any(every.excluded.values()))
        if found is not None:
            assert np.array_equal(found.i, every.i) and found.excluded == every.excluded
        elif limit < 0.5 * share:
            assert len(looked) < count


@pytest.mark.parametrize("itself", [False, True])
@pytest.mark.parametrize("kind", ["all", "cross", "zip"])
def test_excluded_pairs_are_counted_as_one_by_one(kind, itself, monkeypatch):
    monkeypatch.setattr(proof, "ROWS", 3)
    lengths = np.random.default_rng(5).integers(0, 9, 25)
    queries = lengths if kind == "zip" else lengths[:11]
    job = PairMatrix(kind, queries, lengths[::-1] if kind == "zip" else lengths, itself)
    tests = {"both ways": lambda m, n: abs(m - n) < 5, "one way": lambda m, n: m <= n}
    meets = {"zip": lambda i, j: i == j, "cross": lambda i, j: True}
    meets |= {"all": (lambda i, j: i <= j) if itself else (lambda i, j: i < j)}
    want, kept = dict.fromkeys([*tests, "rest"], 0), 0
    for i, m in enumerate(job.query_lengths):
        for j, n in enumerate(job.target_lengths):
            if meets[kind](i, j):
                failed = [name for name, test in tests.items() if not test(m, n)]
                rest = ["rest"] if (i + j) % 3 else []
                kept += not failed and not rest
                for name in [*failed, *rest][:1]:
                    want[name] += 1
    count = proof.excluded_pairs
    assert count(job, tests, "rest", kept) == want and min(want.values()) > 0
    assert count(job, {}, None, 0) == {}


@pytest.mark.skipif(
    kernels_pallas.interpreter() is None, reason="the GPU interpreter came in JAX 0.11"
)
def test_the_engine_filters_by_kernels(monkeypatch):
    options = {"min_identity": 0.6, "identity": "longer", "output": "identity"}
    some = [text for text in TEXTS if len(text) < 70][:9]
    want = jaxalign.align_all(some, **options, filter=False)
    _drive(monkeypatch)
    interpret = kernels_pallas.interpreter()
    few = LcsSizes(4, 32, lcs.THREADS, 32, 2**14)
    monkeypatch.setattr(
        compiled,
        "lcs_launches",
        lambda task: LcsLaunches(task, kernels_pallas, interpret, sizes=few),
    )
    options["implementation"] = "pallas"
    found = jaxalign.align_all(some, **options, threads=1, devices=[0])
    assert found.implementation == "pallas" and found.info["excluded"]
    for name in ("query", "target", "score", "max_identities"):
        np.testing.assert_array_equal(found[name], want[name])


@pytest.mark.parametrize(
    "output, options",
    [
        pytest.param(
            "identity",
            {"min_score": 150, "min_length_ratio": 0.5, "include_self": True},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "alignment",
            {"min_score": 120, "min_identity": 0.4, "part_rows": 60},
            marks=pytest.mark.slow,
        ),
        # which nearly all pairs reach
        pytest.param("alignment", {"min_score": 1}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_scores_are_computed_before_rows(output, options, monkeypatch):
    """A large local job with a ``min_score`` aligns the pairs that reach it alone."""
    monkeypatch.setattr(plan, "LARGE_JOB_CELLS", 1)
    texts = sequences()[:24]
    scoring = jaxalign.Scoring(gap_open=9, gap_extend=2)
    options |= {"mode": "local", "output": output} | SWEEP
    table = jaxalign.align_all(texts, scoring, **options)
    every = jaxalign.align_all(texts, scoring, **options, filter=False)
    same_tables(table, every)
    excluded, aligned = table.info["excluded"], table.info["aligned_pairs"]
    assert sum(excluded.values()) + aligned == table.info["pairs"]
    most_excluded = len(table) <= aligned < table.info["pairs"] / 2
    assert most_excluded == (options["min_score"] > 1)
