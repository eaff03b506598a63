"""Launches for the GPU kernels, in the GPU interpreter: the table is the sweep's."""

from dataclasses import replace
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import codes, same_tables

import jaxalign
import kernels_pallas as kernels
from jaxalign.model.alphabet import as_sequences
from jaxalign.model.filters import Filters
from jaxalign.model.scoring import resolve_ends
from jaxalign.run import crossing, gpu, results, search
from jaxalign.run.task import Task

interpreted = pytest.mark.skipif(
    kernels.interpreter() is None, reason="the GPU interpreter came with JAX 0.11"
)


def task_of(kind, output, mode="semiglobal", count=9, seed=0):
    rng = np.random.default_rng(seed)
    scoring = jaxalign.Scoring()
    sets = [
        as_sequences([codes(rng, n, 20) for n in rng.integers(0, 30, count)],
                     scoring.alphabet)
        for _ in range(2)
    ]  # fmt: skip
    sets = sets[:1] * 2 if kind == "all" else sets
    free = resolve_ends(mode, None)
    return Task(kind, *sets, scoring, mode, free, output, budget=2**30)


def small(task, launch):
    """A shape of few rows for the interpreter, which is slow."""
    return kernels.Fill(
        8, 8, 2, task.local, launch.dtype == "int16", not launch.zipped,
        tile=4 if task.paths else 0, plain=True,
    )  # fmt: skip


def run_all(task, monkeypatch):
    """The result columns and paths of a task, launch by launch."""
    monkeypatch.setattr(gpu, "QUERIES", (4,))
    monkeypatch.setattr(gpu, "TARGETS", (8,))
    monkeypatch.setattr(gpu, "PAIRS", (8,))
    out = results.Output(task)
    sides = gpu.load(task)
    for launch in gpu.cut(task, kernels, 2**34):
        assert isinstance(launch, gpu.Launch)
        launch = replace(launch, rows=32, columns=32)
        options = {"shape": small(task, launch), "interpret": kernels.interpreter()}
        out.put(gpu.run(task, kernels, launch, sides, **options))
    return out.finish()


QUICK = (("zip", "alignment"),)
CASES = [
    case if case in QUICK else pytest.param(*case, marks=pytest.mark.slow)
    for case in product(("all", "zip", "cross"), ("score", "alignment"))
]


@interpreted
@pytest.mark.parametrize("kind, output", CASES)
def test_launches_give_the_sweeps_table(kind, output, monkeypatch):
    task = task_of(kind, output)
    columns, paths = run_all(task, monkeypatch)
    options = dict(mode=task.mode, output=output)
    if kind == "all":
        want = jaxalign.align_all(task.queries, **options)
    elif kind == "zip":
        want = jaxalign.align_pairs(task.queries, task.targets, **options)
    else:
        scores = jaxalign.scores_matrix(task.queries, task.targets, mode=task.mode)
        np.testing.assert_array_equal(columns["score"], scores.ravel())
        return
    runs, offsets = (None, None) if paths is None else paths
    found = replace(want, columns=columns, operations=runs, operation_offsets=offsets)
    same_tables(found, want)


@interpreted
@pytest.mark.slow
def test_max_identities_by_launches(monkeypatch):
    task = task_of("all", "identity", "local", count=5)
    columns, _ = run_all(task, monkeypatch)
    want = jaxalign.align_all(task.queries, mode="local", output="identity")
    np.testing.assert_array_equal(columns["max_identities"], want["max_identities"])
    np.testing.assert_array_equal(columns["score"], want["score"])


@interpreted
@pytest.mark.slow
def test_a_search_by_launches(monkeypatch):
    """Scores stay device arrays; the hits are those of the sweep."""
    monkeypatch.setattr(gpu, "QUERIES", (4,))
    monkeypatch.setattr(gpu, "TARGETS", (8,))
    task = replace(task_of("cross", "score", "local"), top=4)
    want = jaxalign.search(task.queries, task.targets, top=4, align_top=False)
    sides = gpu.load(task)

    def scores(task, take, _):
        for launch in gpu.cut(task, kernels, 2**34):
            launch = replace(launch, rows=32, columns=32)
            options = {"shape": small(task, launch), "interpret": kernels.interpreter()}
            found = gpu.scores(task, kernels, launch, sides, **options)
            assert isinstance(found, jax.Array)
            assert found.shape == (launch.slots, launch.places)
            take(launch.queries, launch.targets, found)
        return {}

    monkeypatch.setattr(search.engine, "scores", scores)
    best, _ = search._fold(task, np.arange(len(task.targets)), None, None)
    kept = np.asarray(best.index) >= 0
    np.testing.assert_array_equal(np.asarray(best.index)[kept], want["target"])
    np.testing.assert_array_equal(np.asarray(best.score)[kept], want["score"])


def test_a_search_of_few_queries_leaves_few_slots_empty():
    task = replace(task_of("cross", "score", "local", count=3), top=4)
    (launch, *_) = gpu.cut(task, kernels, 2**34)
    assert len(launch.queries) <= launch.slots < 4 * len(task.queries)


@pytest.mark.parametrize("kind", ["all", "zip", "cross"])
@pytest.mark.parametrize("output", ["score", "alignment", "identity"])
def test_every_pair_comes_once(kind, output):
    """Whatever the budget; each launch within it, in few compilations."""
    rng = np.random.default_rng(1)
    lengths = np.round(np.exp(rng.normal(5.6, 0.7, 300))).astype(int)
    scoring = jaxalign.Scoring()
    sets = as_sequences([np.zeros(n, np.uint8) for n in lengths], scoring.alphabet)
    task = Task(kind, sets, sets, scoring, "local", resolve_ends("local", None), output)
    for budget in (2**22, 2**28, 2**35):
        seen, sizes = np.zeros(task.job.pairs, int), set()
        for piece in gpu.cut(task, kernels, budget):
            if not isinstance(piece, gpu.Launch):
                np.add.at(seen, task.job.position(*piece), 1)
                continue
            assert gpu.launch_bytes(task, kernels, piece) <= budget
            i, j, wanted, swapped = task.job.meets(piece)
            first, last = np.where(swapped, j, i), np.where(swapped, i, j)
            np.add.at(seen, task.job.position(first[wanted], last[wanted]), 1)
            sizes.add((piece.rows, piece.columns, piece.slots, piece.places))
        assert (seen == 1).all()
    assert len(sizes) <= (16 if output == "alignment" else 9)  # pairs of buckets


@pytest.mark.parametrize("output", ["stats", "identity"])
def test_what_a_filter_drops_stays_on_the_device(output):
    """A launch's result as the kernels give it, made from the sweep's table."""
    filters = {"stats": Filters(5, 0.2, "full", 0.3), "identity": Filters(-30, 0.2)}
    chosen = replace(filters[output], identity="full" if output == "stats" else "mean")
    task = replace(task_of("all", output, count=20), filters=chosen)
    options = {"mode": task.mode, "output": output}
    want = jaxalign.align_all(task.queries, **options)
    order = np.argsort(-task.queries.lengths, kind="stable")
    found = task.job.meets(gpu.Launch(order, order))
    made = as_launched(task, want, found)
    keep, crossed = crossing.crossed(task, found, made)
    rows = results.of_launch(task, keep, crossed, None, 0)
    assert found.swapped[found.wanted].any()
    out = results.Output(task)
    out.put(rows)
    mask = chosen.mask(want.columns, *want.lengths())
    assert 0 < mask.sum() == len(crossed.score) < len(want)
    for name, values in out.finish()[0].items():
        np.testing.assert_array_equal(values, want[name][mask], err_msg=name)


def as_launched(task, table, found):
    """Grids (Q, T) in the orientation computed, larger than the pairs asked for."""
    flip, w = found.swapped, found.wanted
    i = np.where(flip, found.target, found.query)
    j = np.where(flip, found.query, found.target)
    at = np.where(w, task.job.position(i, j), 0)

    def grid(name):
        return jnp.pad(jnp.asarray(table[name][at]), ((0, 2), (0, 4)))

    if task.output == "identity":
        base = np.int32(8192)
        return kernels.Result(grid("score") * base + grid("max_identities"))
    flip, made = jnp.pad(jnp.asarray(flip), ((0, 2), (0, 4))), {}
    for end in ("start", "end"):
        own, other = grid(f"query_{end}"), grid(f"target_{end}")
        made[f"{end}_i"] = jnp.where(flip, other, own)
        made[f"{end}_j"] = jnp.where(flip, own, other)
    counts = {name: grid(name) for name in results.COUNTS}
    return kernels.Result(grid("score"), **made, **counts, count=grid("gaps"))
