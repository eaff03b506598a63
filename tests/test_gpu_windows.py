"""Launches for the GPU kernels, in the GPU interpreter: the table is the sweep's."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from cases import codes, same_tables

import jaxalign
import kernels_pallas as kernels
from jaxalign.model.alphabet import as_sequences
from jaxalign.model.scoring import resolve_ends
from jaxalign.run import gpu, launch, results
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


class Small:
    """The kernels in a shape of few rows for the interpreter, which is slow."""

    def __getattr__(self, name):
        return getattr(kernels, name)

    def choose(self, longest, *, local, packed, shared=True, way=None):
        tile = 4 if way else 0
        return kernels.Fill(8, 8, 2, local, packed, shared, tile, plain=True)

    def bucket(self, length):
        return max(32, length)


def run_all(task, monkeypatch, progress=None):
    """The result columns and paths of a task."""
    monkeypatch.setattr(launch, "QUERIES", (4,))
    monkeypatch.setattr(launch, "TARGETS", (8,))
    monkeypatch.setattr(launch, "PAIRS", (8,))
    out = results.Output(task, progress)
    pieces = list(launch.cut(task, Small(), 2**34))
    assert all(isinstance(piece, launch.Launch) for piece in pieces)
    gpu.run(task, Small(), pieces, out, kernels.interpreter())
    return out.columns, out.assemble()


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
        for piece in launch.cut(task, kernels, budget):
            if not isinstance(piece, launch.Launch):
                np.add.at(seen, task.job.position(*piece), 1)
                continue
            assert launch.launch_bytes(task, kernels, piece) <= budget
            assert len(piece.queries) <= piece.slots or piece.zipped
            assert len(piece.targets) <= piece.places
            if piece.room:
                rows = kernels.rows_of(lengths[piece.targets], piece.shape)
                assert rows[-1] <= piece.room
            i, j, wanted, swapped = task.job.meets(piece)
            first, last = np.where(swapped, j, i), np.where(swapped, i, j)
            np.add.at(seen, task.job.position(first[wanted], last[wanted]), 1)
            shape = piece.rows, piece.columns, piece.room, piece.slots, piece.places
            sizes.add((*shape, piece.shape))
        assert (seen == 1).all()
    assert len(sizes) <= (16 if output == "alignment" else 9)  # pairs of buckets
