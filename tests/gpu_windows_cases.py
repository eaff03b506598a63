"""What tests share with ``test_gpu_windows``."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from cases import codes

import jaxalign
import kernels_pallas as kernels
from jaxalign.model.alphabet import as_sequences
from jaxalign.model.scoring import resolve_ends
from jaxalign.pairs import compiled
from jaxalign.pairs.gpu import dispatch, launches
from jaxalign.pairs.plan import Task

interpreted = pytest.mark.skipif(
    kernels.interpreter() is None, reason="the GPU interpreter came with JAX 0.11"
)


def task_of(kind, output, mode="semiglobal", count=9, seed=0, tracks=1):
    rng = np.random.default_rng(seed)
    scoring = jaxalign.Scoring() if tracks == 1 else jaxalign.Scoring.preset("foldseek")
    sets = [
        as_sequences([codes(rng, n, 20) for n in rng.integers(0, 30, count)],
                     replace(scoring.alphabet, states=None))
        for _ in range(2)
    ]  # fmt: skip
    if tracks > 1:
        states = ([codes(rng, n, 20) for n in x.lengths] for x in sets)
        states = (as_sequences(x, scoring.alphabet.states) for x in states)
        sets = [x.with_states(y) for x, y in zip(sets, states, strict=True)]
    sets = sets[:1] * 2 if kind == "all" else sets
    free = resolve_ends(mode, None)
    return Task(kind, *sets, scoring, mode, free, output, budget=2**30)


def lognormal_task(kind, output, mode="global", count=300):
    """Sequences of as different lengths as proteins, whose letters do not matter."""
    rng, scoring = np.random.default_rng(1), jaxalign.Scoring()
    lengths = np.round(np.exp(rng.normal(5.6, 0.7, count))).astype(int)
    sets = as_sequences([np.zeros(n, np.uint8) for n in lengths], scoring.alphabet)
    return Task(kind, sets, sets, scoring, mode, resolve_ends(mode, None), output)


def times_computed(task, launches):
    """How often each row is computed."""
    seen = np.zeros(task.job.pairs, int)
    for piece in launches:
        i, j, wanted, swapped = task.job.meets(piece)
        first, last = np.where(swapped, j, i), np.where(swapped, i, j)
        np.add.at(seen, task.job.position(first[wanted], last[wanted]), 1)
    return seen


def beyond_int16():
    """(scoring, texts): matches of 1,000, and pairs of over 32 of them."""
    scoring = jaxalign.Scoring(match=1000, mismatch=-900, gap_open=1100, gap_extend=9)
    return scoring, ["A" * 40, "A" * 34, "A" * 20, "C" * 33, "C" * 40, "ACGT" * 5]


class Small:
    """The kernels in a shape of few rows for the interpreter, which is slow."""

    def __getattr__(self, name):
        return getattr(kernels, name)

    def choose(self, longest, *, local, packed, shared=True, paths=False, linear=False,
               few_pairs=False, first_letters=0):  # fmt: skip
        tile, linear = 4 if paths else 0, linear and not paths
        columns = 1 if first_letters and packed and not shared else 2
        return kernels.Fill(8, 8, columns, local, packed, shared, tile, True, linear,
                            first_letters=first_letters)  # fmt: skip

    def spread(self, m, n, *, local, packed, linear=False, first_letters=0):
        shape = self.choose(max(m), local=local, packed=packed, linear=linear,
                            first_letters=first_letters)  # fmt: skip
        return replace(shape, stacks=2 if local else 0)

    def bucket(self, length):
        return max(32, length)


class Interpreted(Small):
    """… that a GPU seems to support, for the engine."""

    def supported(self, device=None):
        return True, "in the interpreter"


def _drive(monkeypatch):
    """Let the engine run small launches in the interpreter."""
    monkeypatch.setattr(launches, "QUERY_COUNTS", (4,))
    monkeypatch.setattr(launches, "TARGET_COUNTS", (8,))
    monkeypatch.setattr(compiled, "kernels_pallas", Interpreted())
    prepare, alone = (
        dispatch.prepare,
        threading.Lock(),
    )  # it has one state for all threads
    monkeypatch.setattr(
        dispatch, "prepare", lambda task, own: prepare(task, own, kernels.interpreter())
    )
    run, scores = dispatch.run, dispatch.scores

    def run_in_turn(*args):
        with alone:
            return run(*args)

    def scores_in_turn(*args):
        with alone:
            return list(scores(*args))

    monkeypatch.setattr(dispatch, "run", run_in_turn)
    monkeypatch.setattr(dispatch, "scores", scores_in_turn)
