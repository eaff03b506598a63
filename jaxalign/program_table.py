"""The programs of usual jobs with proteins on a GPU, listed without one.

A pack of programs (``jaxalign warmup --target``) has those of this table. Sizes of
launches are few, so that the programs of a job serve jobs of other sizes, too.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from jaxalign.database import scan
from jaxalign.model.alphabet import Sequences
from jaxalign.model.scoring import Scoring
from jaxalign.pairs.gpu import launch_outline
from jaxalign.pairs.options import PairOptions, make_task
from jaxalign.pairs.plan import Task, WholeCodes, zipped
from jaxalign.pairs.proofs import lcs_launches
from jaxalign.runtime.program_outline import ProgramCall, outline

# Lengths as those of proteins: ln N(5.7, 0.6), so that half are from 200 to 450
LOG_MEAN, LOG_SPREAD, SHORTEST, LONGEST = 5.7, 0.6, 20, 5000
# Those of CUDASW++
QUERIES = (144, 189, 222, 375, 464, 567, 657, 729, 850, 1000, 1500, 2005, 2504, 3005,
           3564, 4061, 4548, 4743, 5147, 5478)  # fmt: skip
SET, LARGE_BLOCK, SMALL_BLOCK = 12_000, 150_000, 60_000  # sequences
FEW, MANY = 1_000, 3_000  # pairs that a proof leaves
HITS, TOP = 200, 10
SEED = 2011
LINKED = PairOptions(output="identity", identity="longer", min_identity=0.4)


def proteins(lengths: np.ndarray, seed: int = SEED) -> Sequences:
    """Random sequences, the same whenever they are asked for."""
    dice = np.random.default_rng(seed)
    codes = dice.integers(0, 20, int(lengths.sum()), np.uint8)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Sequences(("",) * len(lengths), codes, offsets, Scoring().alphabet)


def usual_lengths(count: int) -> np.ndarray:
    """Lengths as proteins have them, longest first, up to ``LONGEST``."""
    dice = np.random.default_rng(SEED)
    lengths = np.exp(dice.normal(LOG_MEAN, LOG_SPREAD, count)).astype(np.int64)
    lengths = np.clip(np.sort(lengths)[::-1], SHORTEST, LONGEST)
    lengths[0] = LONGEST
    return lengths


def jobs(kernels: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """(name, a function that calls the programs of a job): ``search`` for scores and
    with alignments, ``all`` for scores, and what ``cluster``, ``dedup``, ``split`` and
    ``audit`` do."""
    scoring, queries = Scoring(), proteins(np.array(QUERIES))
    local = PairOptions(mode="local", output="score")
    nothing = proteins(np.zeros(0, np.int64))
    task = make_task("cross", queries, nothing, scoring, local)
    task = replace(task, top=TOP)
    for count in (LARGE_BLOCK, SMALL_BLOCK):
        block = proteins(usual_lengths(count))
        yield f"search of {count:,}", partial(scan.outlined, task, block, kernels)
    some = proteins(usual_lengths(SET))
    hits = np.arange(HITS)
    sides = queries.take(hits % len(queries)), some.take(hits)
    paths = replace(local, output="alignment")
    aligned = make_task("zip", *sides, scoring, paths)
    yield "hits of a search", partial(launch_outline.of_task, aligned, kernels)
    for options in (PairOptions(output="score"), local):
        every = make_task("all", some, some, scoring, options)
        name = f"all pairs, {options.mode} scores"
        yield name, partial(launch_outline.of_task, every, kernels)
    yield from _linked(some, kernels)


def _linked(some: Sequences, kernels: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """The programs of linked pairs: proofs, and the pairs that these leave."""
    task = make_task("all", some, some, Scoring(), LINKED)
    task = replace(task, whole_codes=(WholeCodes(some.codes),))
    launches = lcs_launches.LcsLaunches(task, kernels)
    yield "common subsequences", partial(lcs_launches.outlined, launches)
    for count in (FEW, MANY):
        for first in (0, len(some) - count - 1):
            left = _left(task, first, count)
            name = f"{count:,} pairs left, of up to {left.job.query_lengths.max():,}"
            yield name, partial(launch_outline.of_task, left, kernels)
    first, second = (some.take(np.arange(HITS) + k) for k in (0, 1))
    likely = make_task(
        "zip", first, second, Scoring(), replace(LINKED, min_identity=0.0)
    )
    yield "likely pairs", partial(launch_outline.of_task, likely, kernels)


def _left(task: Task, first: int, count: int) -> Task:
    """The task of some pairs of neighbours by length."""
    i = np.arange(first, first + count)
    return zipped(task, i, i + 1)


def calls_of(
    kernels: Any, names: Collection[str] | None = None
) -> dict[str, list[ProgramCall]]:
    """The calls of programs of every job, or of those with some names."""
    table: dict[str, list[ProgramCall]] = {}
    for name, job in jobs(kernels):
        if names is not None and name not in names:
            continue
        with outline() as calls:
            job()
        table[name] = calls
    return table
