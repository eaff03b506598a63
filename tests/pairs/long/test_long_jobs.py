"""Long pairs through the public functions: chosen by size alone, said by the plan."""

from types import SimpleNamespace

import pytest
from long_cases import have_long_pairs, texts

import jaxalign
from jaxalign.pairs import compiled
from jaxalign.pairs.long import align, pruning


@pytest.fixture
def few_cells(monkeypatch):
    """Pairs of some ten thousand cells are long."""
    have_long_pairs(monkeypatch)
    monkeypatch.setattr(pruning, "MIN_CELLS", 0)


@pytest.mark.parametrize("mode", ["global", "local", "semiglobal"])
@pytest.mark.parametrize("output", ["score", "stats", "alignment"])
def test_long_pairs_have_the_rows_of_others(few_cells, mode, output):
    queries, targets = texts()
    options = {"mode": mode, "output": output}
    long = jaxalign.align_pairs(queries, targets, implementation="wavefront", **options)
    rows = jaxalign.align_pairs(queries, targets, implementation="rows", **options)
    assert long.implementation == "wavefront"
    for name in rows.columns:
        assert long[name].tolist() == rows[name].tolist(), name
    if output == "alignment":
        assert [long.cigar(k) for k in range(2)] == [rows.cigar(k) for k in range(2)]


def test_the_plan_says_so(few_cells):
    queries, targets = texts()
    plan = jaxalign.plan(queries, targets, implementation="wavefront")
    assert plan["checkpointed_pairs"] == 2 and plan["implementation"] == "wavefront"
    pieces = [piece.compute for piece in plan.pieces]
    assert [compute.func for compute in pieces] == [align._compute] * 2


def test_few_or_special_pairs_are_not_long(few_cells):
    queries, targets = texts()
    options = {"implementation": "wavefront"}
    for output, lists in (("identity", (queries, targets)), ("score", (["AC"], ["A"]))):
        plan = jaxalign.plan(*lists, output=output, **options)
        calls = [getattr(piece.compute, "func", None) for piece in plan.pieces]
        assert align._compute not in calls


def test_progress_ends_with_all_cells(few_cells):
    queries, targets = texts()
    told = []
    jaxalign.align_pairs(
        queries,
        targets,
        implementation="wavefront",
        output="stats",
        progress=lambda cells, total: told.append((cells, total)),
    )
    total = sum(len(a) * len(b) for a, b in zip(queries, targets, strict=True))
    assert told[-1] == (total, total)
    assert [cells for cells, _ in told] == sorted(cells for cells, _ in told)


def test_lines_fit_a_budget():
    m = n = 4_600_000
    assert align.bytes_needed(m, n, 2**32) <= 2**32
    assert align.lines(m, n, 2**32) == 32
    assert align.lines(m, n, 2**30) < 16


@pytest.mark.parametrize("output", ["score", "stats", "alignment"])
def test_a_gpu_takes_few_large_pairs_by_size_alone(monkeypatch, output):
    """Nobody has to name its kernels; the plan says what is taken."""
    kernels = SimpleNamespace(
        supported=lambda device: (True, "a test"), long_fits=lambda *args: True
    )
    monkeypatch.setattr(compiled, "kernels_pallas", kernels)
    monkeypatch.setattr(compiled, "_on_cpu", lambda task: False)
    monkeypatch.setattr(align, "GPU_LONG_CELLS", 10_000)
    monkeypatch.setattr(align, "LONG_CELLS", 10_000)
    monkeypatch.setenv("JAXALIGN_ROWS", "off")
    queries, targets = texts()
    plan = jaxalign.plan(queries, targets, output=output)
    assert plan["implementation"] == "pallas" and plan["checkpointed_pairs"] == 2
    assert plan["reason"] == "long pairs by pallas, in blocks"
    computes = [piece.compute for piece in plan.pieces]
    assert [compute.func for compute in computes] == [align._compute] * 2
    assert all(x.keywords["kernels"] is kernels for x in computes)
    kernels.long_fits = lambda *args: False  # scores that are no bytes
    pairs = [(0, 0), (1, 1)]
    assert not align.on_gpu(plan.task, kernels)
    assert not compiled._are_long(plan.task, pairs, on_gpu=True).any()
    assert compiled._by_blocks(plan.task, pairs, on_gpu=True) == ([], pairs)
