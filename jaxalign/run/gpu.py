"""Windows on a GPU: codes lie on the device, a launch takes some queries and targets.

``run.engine`` hands in the kernels (the package ``kernels_pallas``), so that this file
needs no GPU to be imported. Launches do not wait for each other: host threads take the
next one while the device works.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.errors import MemoryPlanError
from jaxalign.run import bounds, crossing, results
from jaxalign.run.memory import refuse_over, show_bytes
from jaxalign.run.windows import bucket, by_length, pairs

# Sizes of launches; a job of few targets takes no more than SMALL places.
QUERIES, TARGETS = (64, 16, 4, 2), (4096, 2048, 1024, 512, 256, 128, 64)
PAIRS = (16384, 4096, 1024, 256, 64)
SMALL = 512
IN_FLIGHT = 2  # launches at work or waiting; the host collects one meanwhile
LETTERS = 30  # an alphabet of the kernels
RUNS = 64  # run-length operations kept of a path; a launch with a longer one runs again


@dataclass(frozen=True)
class Launch:
    """Some queries and targets, and the static sizes of the arrays that hold them."""

    queries: np.ndarray
    targets: np.ndarray
    rows: int = 0  # letters of a query, a bucket
    columns: int = 0  # letters of a target
    slots: int = 0  # queries
    places: int = 0  # targets
    zipped: bool = False
    dtype: str | None = None
    each: int = 1


class Loaded(NamedTuple):
    """One side on the device: flat codes, where each sequence begins, its length."""

    codes: jax.Array  # uint8, one more than there are residues
    start: jax.Array  # int32
    length: jax.Array  # int32


def load(task) -> tuple[Loaded, Loaded]:
    """Copy the two sets of a task to the device, once."""
    queries = _load(task.queries)
    same = task.targets is task.queries
    return queries, queries if same else _load(task.targets)


def _load(sequences) -> Loaded:
    offsets = sequences.offsets.astype(np.int32)
    codes = np.append(sequences.codes, np.uint8(0))
    return Loaded(*map(jnp.asarray, (codes, offsets[:-1], np.diff(offsets))))


def memory(threads: int, devices=()) -> int:
    """Device bytes for one launch: each host thread has one in flight."""
    stats = [one.memory_stats() or {} for one in devices or jax.devices()[:1]]
    least = min(one.get("bytes_limit", 2**32) for one in stats)
    return int(0.8 * least) // min(threads, IN_FLIGHT)


def make_plan(task, kernels, limit: int) -> tuple[dict, list]:
    """As ``run.task.make_plan``: what the kernels will do, in launches of ``limit``
    device bytes at most; a pair (i, j) beyond them needs checkpointed strips.

    Raises
    ------
    MemoryPlanError
        The result exceeds the budget, or a pair does what is asked of the kernels
        alone.
    """
    refuse_over(task.result_bytes, task.budget, f"{task.job.pairs:,} pairs")
    pieces = list(cut(task, kernels, limit))
    launches = [piece for piece in pieces if isinstance(piece, Launch)]
    alone = len(pieces) - len(launches)
    if alone and task.implementation == "pallas":
        raise MemoryPlanError(
            f"{alone:,} pairs are beyond the kernels (letters, range of scores, or "
            f"{show_bytes(limit)} of device memory): leave the implementation open"
        )
    held = [launch_bytes(task, kernels, launch) for launch in launches]
    plan = {
        "pairs": task.job.pairs,
        "cells": task.job.cells,
        "windows": len(launches),
        "checkpointed_pairs": alone,
        "threads": min(task.threads, IN_FLIGHT) * max(1, len(task.devices)),
        "result_bytes": task.result_bytes,
        "window_bytes": max(held, default=0),
        "dtypes": sorted({launch.dtype for launch in launches}),
    }
    return plan, pieces


def numbers(task):
    """(scores, gap open, gap extend) of a task as the kernels see them."""
    return bounds.scaled(task.scoring, "int32", task.output == "identity")


def dtype_of(task, kernels, m: int, n: int) -> str | None:
    """int16 or int32 where the kernels provably hold all values, else None."""
    identity = task.output == "identity"
    if len(task.scoring.scores) > LETTERS:
        return None
    if identity and min(m, n) >= bounds.IDENTITY_BASE["int32"]:
        return None
    way = "tiles" if task.paths else None
    holds = partial(kernels.fits, *numbers(task), m, n, task.local, way=way)
    dtypes = ("int32",) if identity else ("int16", "int32")
    return next((dtype for dtype in dtypes if holds(dtype=dtype)), None)


def cut(task, kernels, budget: int) -> Iterator[Launch | tuple[int, int]]:
    """Launches of at most ``budget`` device bytes; a pair (i, j) that none can hold.

    One pair of length buckets has one size of launches, so it compiles once.
    """
    job = task.job
    if job.kind == "zip":
        order = by_length(job.query_lengths * (job.target_lengths + 1))
        yield from _zip(task, kernels, order, budget)
        return
    order, queries = by_length(job.target_lengths), by_length(job.query_lengths)
    half = job.kind == "all" and job.once
    for start in range(0, len(queries), QUERIES[0]):
        part = queries[start : start + QUERIES[0]]
        for alike in _by_bucket(
            kernels, job.target_lengths, order[start * half :], task.paths
        ):
            yield from _rectangle(task, kernels, part, alike, budget)


def _by_bucket(kernels, lengths, order, paths):
    """Runs of one length bucket, longest first."""
    buckets = [_bucket(kernels, int(n), paths) for n in lengths[order]]
    return np.split(order, np.flatnonzero(np.diff(buckets)) + 1)


def _bucket(kernels, length, paths):
    """Letters of an array: checkpoints take the whole of it, so one more for paths."""
    return 768 if paths and 384 < length <= 768 else kernels.bucket(length)


def _rectangle(task, kernels, queries, targets, budget):
    """Launches for some queries against targets of one bucket."""
    if not len(targets):
        return
    launch = _largest(task, kernels, queries, targets, budget)
    if launch is None:
        yield from pairs(task.job, Launch(queries, targets))
        return
    for q in range(0, len(queries), launch.slots):
        for t in range(0, len(targets), launch.places):
            yield replace(
                launch,
                queries=queries[q : q + launch.slots],
                targets=targets[t : t + launch.places],
            )


def _zip(task, kernels, order, budget):
    """Launches of pairs that share no side, of similar size."""
    while len(order):
        part = order[: PAIRS[0]]
        launch = _largest(task, kernels, part, part, budget)
        if launch is None:
            yield int(order[0]), int(order[0])
            order = order[1:]
            continue
        part = order[: launch.places]
        yield replace(launch, queries=part, targets=part)
        order = order[len(part) :]


def _largest(task, kernels, queries, targets, budget) -> Launch | None:
    """The launch of the most pairs that fits the budget; none if not even the least."""
    zipped = task.job.kind == "zip"
    m = int(task.job.query_lengths[queries].max(initial=0))
    n = int(task.job.target_lengths[targets].max(initial=0))
    dtype = dtype_of(task, kernels, m, n)
    most = len(task.job.target_lengths)
    sizes = [(p, p) for p in PAIRS] if zipped else list(product(QUERIES, TARGETS))
    sizes.sort(key=lambda size: -size[0] * size[1])
    longest = [_bucket(kernels, length, task.paths) for length in (m, n)]
    made = (Launch(queries, targets, *longest, *x, zipped, dtype) for x in sizes)
    made = (x for x in made if x.places <= SMALL or most > SMALL)
    if task.top:  # a search may have few queries: no launch of mostly empty slots
        most_slots = max(4 * len(queries) - 1, QUERIES[-1])
        made = (x for x in made if x.slots <= most_slots)
    fits = (x for x in made if dtype and launch_bytes(task, kernels, x) <= budget)
    return next(fits, None)


def _shape(task, kernels, launch):
    return kernels.choose(
        launch.rows,
        local=task.local,
        packed=launch.dtype == "int16",
        shared=not launch.zipped,
        way="tiles" if task.paths else None,
    )


def launch_bytes(task, kernels, launch) -> int:
    """Device bytes of a launch: what the fill writes, codes, and the paths."""
    sizes = launch.slots, launch.places, launch.rows, launch.columns
    held = kernels.fill_bytes(_shape(task, kernels, launch), *sizes)
    count = launch.places * (1 if launch.zipped else launch.slots)
    kept = 4 * RUNS if task.output == "alignment" else 0
    codes = 8 * (launch.slots * launch.rows + launch.places * launch.columns)
    return held + codes + count * (64 + kept)


@partial(jax.jit, static_argnames=("call", "swaps", "sizes", "options"))
def _call(queries, targets, i, j, problem, *, call, swaps, sizes, options):
    """Gather codes on the device and align them.

    queries, targets : Loaded; i, j : int32 (slots,), (places,), -1 where none is
    """
    q, m = _padded(queries, i, sizes[0])
    t, n = _padded(targets, j, sizes[1])
    tie = i[:, None] > j[None, :] if swaps else None
    return call(problem, q, m, t, n, tie, **dict(options))


def _padded(side, ids, size):
    """uint8 (count, size) and int32 (count,); nothing where an id is -1."""
    own = jnp.maximum(ids, 0)
    place = side.start[own][:, None] + jnp.arange(size, dtype=jnp.int32)[None, :]
    length = jnp.where(ids >= 0, side.length[own], 0)
    return side.codes.at[place].get(mode="clip"), length


def run(task, kernels, launch: Launch, sides, **options) -> results.Rows:
    """One launch, from ids to rows of the result.

    sides : the two ``Loaded`` sets of the task.
    options : what tests hand to the kernels (``shape``, ``interpret``).
    """
    found = task.job.meets(launch)
    swaps = bool(found.swapped.any())
    runs = RUNS if task.output == "alignment" else 0
    cells, keep = results.cells_of(task, found), found
    while True:
        made = _made(task, kernels, launch, sides, swaps, runs=runs, **options)
        kept = made.runs
        keep, made = crossing.crossed(task, found, made._replace(runs=None))
        longest = int(made.count.max(initial=0)) if runs else 0
        if longest <= runs:
            break
        runs = 2 ** int(np.ceil(np.log2(longest)))
    if not runs:
        return results.of_launch(task, keep, made, None, cells)
    total = int(made.count.sum())
    joined = _join(
        kept[: min(runs, bucket(longest, 2, 8))],
        *(crossing.grid(x, kept.shape[1:]) for x in (keep.wanted, keep.swapped)),
        _grid_of(made.count, keep.wanted, kept.shape[1:]),
        capacity=bucket(total, 2, 1024),
    )
    runs = np.asarray(joined)[:total]
    return results.of_launch(task, keep, made, runs, cells)


def scores(task, kernels, launch: Launch, sides, **options) -> jax.Array:
    """The scores of a launch, left on the device: int32 (slots, places)."""
    return _made(task, kernels, launch, sides, False, **options).score


def _made(task, kernels, launch, sides, swaps, **options):
    """The device result of a launch (``kernels_pallas.Result``)."""
    wildcard = task.scoring.alphabet.wildcard_code
    problem = kernels.problem_of(*numbers(task), task.free, wildcard)
    ids = [_ids(launch.queries, launch.slots), _ids(launch.targets, launch.places)]
    static = {"local": task.local, "dtype": launch.dtype, "paths": task.paths}
    static |= {"shape": _shape(task, kernels, launch)} | options
    return _call(
        *sides,
        *ids,
        problem,
        call=kernels.align_list if launch.zipped else kernels.align_block,
        swaps=swaps,
        sizes=(launch.rows, launch.columns),
        options=tuple(sorted(static.items())),
    )


def _grid_of(values, wanted, shape):
    grid = np.zeros(wanted.shape, np.int32)
    grid[wanted] = values
    return crossing.grid(grid, shape)


@partial(jax.jit, static_argnames=("capacity",))
def _join(runs, wanted, swapped, count, capacity):
    """Runs (R, ...), end to start -> those asked for, one path after the other, start
    to end: uint32 (capacity,). I and D (1 and 2) change places with the sides."""
    count = count.reshape(-1)
    begin = jnp.cumsum(count) - count
    r = jnp.arange(runs.shape[0], dtype=jnp.int32)[:, None]
    runs = runs.reshape(len(runs), -1).astype(jnp.uint32)
    turn = swapped.reshape(1, -1) & ((runs & 15) != 0)
    runs = jnp.where(turn, runs ^ jnp.uint32(3), runs)
    inside = wanted.reshape(1, -1) & (r < count[None, :])
    at = jnp.where(inside, begin[None, :] + count[None, :] - 1 - r, capacity)
    empty = jnp.zeros(capacity, jnp.uint32)
    return empty.at[at.reshape(-1)].set(runs.reshape(-1), mode="drop")


def _ids(indices, size):
    ids = np.full(size, -1, np.int32)
    ids[: len(indices)] = indices
    return ids
