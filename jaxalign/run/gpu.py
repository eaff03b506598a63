"""Launches on a GPU: codes go to the device once, results come back once.

``run.engine`` hands in the kernels (the package ``kernels_pallas``), so that this file
needs no GPU to be imported. Launches are issued without waiting for each other. What a
launch finds is put into the columns of the whole result on the device, in input order;
only a result too large for the device goes to the host launch by launch.
"""

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.model.table import SPANS
from jaxalign.run import results
from jaxalign.run.launch import MEAN_RUNS, RUNS, cells, highest, numbers, zipped
from jaxalign.run.results import COUNTS
from jaxalign.run.windows import bucket

IN_FLIGHT = 3  # launches issued and not yet looked at
SHARE = 0.8  # of the device memory that JAX may have
CHUNK = 2**22  # rows of a column copied to the host at once, by one of COPIERS threads
COPIERS = 4


class Loaded(NamedTuple):
    """One side on the device: flat codes, where each sequence begins, its length."""

    codes: jax.Array  # uint8, one more than there are residues
    start: jax.Array  # int32
    length: jax.Array  # int32


class Order(NamedTuple):
    """How pairs become rows: pair (i, j) is row ``base[i] + j``; of two sides that may
    be swapped, the one of smaller ``rank`` is the query of the launch."""

    base: jax.Array  # int32
    rank: jax.Array  # int32


class Found(NamedTuple):
    """What a launch found, sides swapped back, (Q, T) or (N,) where not said."""

    columns: dict
    row: jax.Array  # of the result, beyond its last for pairs that are not asked for
    wanted: jax.Array
    again: jax.Array | None  # pairs whose score may have left int16
    runs: jax.Array | None  # joined, one path after the other, start to end
    totals: jax.Array  # (3,): pairs to run again, runs of the longest path, all runs


@dataclass
class Held:
    """A result as it grows on the device."""

    columns: dict
    runs: jax.Array  # of all paths so far, in the order of launches
    end: jax.Array  # (): how many
    known: int = 0  # … of the launches looked at


@dataclass
class Job:
    """What all launches of a run share; ``kept`` and ``mean`` runs grow as needed."""

    task: Any
    kernels: Any
    sides: tuple  # of Loaded
    order: Order
    problem: Any
    held: Held | None  # None where the result is kept on the host
    out: results.Output
    interpret: Any = None
    kept: int = RUNS  # of a path
    mean: int = MEAN_RUNS  # of all paths of a launch, a pair

    @property
    def steps(self) -> bool:
        return self.task.output == "alignment"

    def capacity(self, launch) -> int:
        return self.mean * launch.pairs


def budget(task) -> int:
    """Device bytes for one launch, beside the result and the launch before."""
    share = SHARE * _limit()
    return int(share - (_result_bytes(task) if _fits(task) else 0)) // 2


def _limit() -> int:
    stats = jax.devices()[0].memory_stats() or {}
    return stats.get("bytes_limit", 2**32)


def _result_bytes(task) -> int:
    """Device bytes of a whole result; runs are there twice when they are ordered."""
    columns = 11 if task.paths else 2
    runs = 2 * MEAN_RUNS + 4 if task.output == "alignment" else 0
    return 4 * task.job.pairs * (columns + runs)


def _fits(task) -> bool:
    """Whether the result is kept on the device; its rows are counted in int32."""
    rows = task.job.pairs * (2 * MEAN_RUNS if task.output == "alignment" else 1)
    return rows < 2**30 and _result_bytes(task) < SHARE * _limit() / 3


def run(task, kernels, launches, out, interpret=None) -> None:
    """All launches of a task; columns and paths to ``out`` (``results.Output``).

    interpret : parameters of the GPU interpreter, for tests.
    """
    held = _empty(task) if _fits(task) else None
    job = Job(task, kernels, *_shared(task, kernels), held, out, interpret)
    again = _all(job, launches)
    if again:
        # Exactly the pairs whose score may have left int16, in int32.
        sides = (np.concatenate(side) for side in zip(*again, strict=True))
        made = zipped(task, kernels, *sides, budget(task), highest(task), wide=True)
        _all(job, made, counted=True)
    if held is not None:
        _collect(job)


def _all(job: Job, launches, counted=False) -> list:
    """Issue launches, some ahead of those looked at; pairs that have to run again."""
    waiting, again = deque(), []
    for launch in launches:
        waiting.append((launch, _issue(job, launch), job.kept))
        if len(waiting) >= IN_FLIGHT:
            again += _look(job, *waiting.popleft(), counted)
    while waiting:
        again += _look(job, *waiting.popleft(), counted)
    return again


def _look(job: Job, launch, found, kept, counted) -> list:
    """Wait for a launch; if its paths are longer than thought, issue it again.

    kept : runs of a path that it had room for.
    """
    repeat, longest, total = (int(x) for x in np.asarray(found.totals))
    _known(job, found, total)
    if job.steps and (longest > kept or total > len(found.runs)):
        job.kept = bucket(longest, 2, job.kept)
        job.mean = bucket(-(-total // launch.pairs), 2, job.mean)
        found = _issue(job, launch)
        _known(job, found, total)
    done = 0 if counted else cells(job.task.job, launch)
    if job.held is None:
        job.out.put(_to_host(job, launch, found, total), done)
    else:
        job.out.tell(done)
    if not repeat:
        return []
    at = np.nonzero(np.asarray(found.again))
    return [(launch.queries[at[0]], launch.targets[at[-1]])]


def _known(job, found, total):
    if job.held is not None and job.steps:
        job.held.known += min(total, len(found.runs))


def _shared(task, kernels):
    """(the two sides, the order, the problem) on the device."""
    queries = _load(task.queries)
    targets = queries if task.targets is task.queries else _load(task.targets)
    job, count = task.job, len(task.queries)
    rank = job.rank if job.kind == "all" and job.once else np.arange(count)
    base = np.zeros(count) if job.kind == "zip" else job.position(np.arange(count), 0)
    order = Order(*(_long(x, np.int32) for x in (base, rank)))
    wildcard = task.scoring.alphabet.wildcard_code
    problem = kernels.problem_of(*numbers(task), task.free, wildcard)
    return (queries, targets), order, problem


def _load(sequences) -> Loaded:
    offsets, codes = sequences.offsets, np.append(sequences.codes, np.uint8(0))
    numbers = (_long(x, np.int32) for x in (offsets[:-1], np.diff(offsets)))
    return Loaded(_long(codes, np.uint8), *numbers)


def _long(values, dtype):
    """On the device, in an array of some power of two: sizes of a data set would each
    be a compilation."""
    made = np.zeros(bucket(len(values), 2, 1024), dtype)
    made[: len(values)] = values
    return jnp.asarray(made)


def _empty(task) -> Held:
    """Columns of the result on the device; runs of a path begin at ``first``."""
    names = ["score"]
    names += ["max_identities"] if task.output == "identity" else []
    names += [*SPANS, *COUNTS] if task.paths else []
    names += ["count", "first"] if task.output == "alignment" else []
    columns = {name: jnp.zeros(max(task.job.pairs, 1), jnp.int32) for name in names}
    return Held(columns, jnp.zeros(1024, jnp.uint32), jnp.zeros((), jnp.int32))


def _issue(job: Job, launch) -> Found:
    """Issue a launch, and what puts its findings into the result; nothing waits."""
    task, kernels = job.task, job.kernels
    kind, once = task.job.kind, task.job.once
    ids = [_ids(launch.queries, launch.places if launch.zipped else launch.slots),
           _ids(launch.targets, launch.places)]  # fmt: skip
    options = {"local": task.local, "dtype": launch.dtype, "paths": task.paths,
               "runs": job.kept if job.steps else 0, "shape": launch.shape,
               "interpret": job.interpret}  # fmt: skip
    options |= {"room": launch.room} if launch.room else {}
    made = _call(
        *job.sides,
        *ids,
        job.problem,
        call=kernels.align_list if launch.zipped else kernels.align_block,
        ragged=kernels.Ragged if launch.room else None,
        zipped=launch.zipped,
        swaps=kind == "all" and once,
        sizes=(launch.rows, launch.columns),
        options=tuple(sorted(options.items())),
    )
    found = _found(
        made._replace(overflow=None) if launch.proven else made,
        *ids,
        job.order,
        np.int32(min(task.job.pairs, 2**30)),
        kind=kind,
        once=once,
        inclusive=task.job.include_self,
        zipped=launch.zipped,
        split=kernels.split_identity if task.output == "identity" else None,
        capacity=job.capacity(launch) if job.steps else 0,
    )
    if job.held is not None:
        _hold(job, job.held, launch, found)
    return found


def _hold(job: Job, held: Held, launch, found: Found) -> None:
    """Put the findings of a launch into the result."""
    if found.runs is not None:
        ahead = held.known + (IN_FLIGHT + 1) * job.capacity(launch)
        if ahead > len(held.runs):
            held.runs = _grown(held.runs, size=bucket(ahead, 2, 1024))
    held.columns, held.runs, held.end = _put(held.columns, held.runs, held.end, found)


@partial(
    jax.jit,
    static_argnames=("call", "ragged", "zipped", "swaps", "sizes", "options"),
)
def _call(
    queries, targets, i, j, problem, *, call, ragged, zipped, swaps, sizes, options
):
    """Gather codes on the device and align them.

    queries, targets : Loaded; i, j : int32 (slots,), (places,), -1 where none is
    """
    q, m = _padded(queries, i, sizes[0])
    if ragged is None:
        t, n = _padded(targets, j, sizes[1])
    else:
        own = jnp.maximum(j, 0)
        t, n = ragged(targets.codes, targets.start[own]), _lengths(targets, j)
    later = i > j if zipped else i[:, None] > j[None, :]
    return call(problem, q, m, t, n, later if swaps else None, **dict(options))


def _padded(side, ids, size):
    """uint8 (count, size) and int32 (count,); nothing where an id is -1."""
    start = side.start[jnp.maximum(ids, 0)]
    place = start[:, None] + jnp.arange(size, dtype=jnp.int32)[None, :]
    return side.codes.at[place].get(mode="clip"), _lengths(side, ids)


def _lengths(side, ids):
    return jnp.where(ids >= 0, side.length[jnp.maximum(ids, 0)], 0)


@partial(
    jax.jit,
    static_argnames=("kind", "once", "inclusive", "zipped", "split", "capacity"),
)
def _found(
    made, i, j, order, pairs, *, kind, once, inclusive, zipped, split, capacity
) -> Found:
    """``kernels.Result`` of a launch -> ``Found``."""
    if not zipped:
        i, j = jnp.broadcast_arrays(i[:, None], j[None, :])
    wanted = (i >= 0) & (j >= 0)
    if kind == "all":
        before = order.rank[i] < order.rank[j]
        wanted &= before | (i == j) if inclusive else before
    swapped = (i > j) if kind == "all" and once else jnp.zeros_like(wanted)
    first, last = jnp.where(swapped, j, i), jnp.where(swapped, i, j)
    beyond = jnp.arange(wanted.size, dtype=jnp.int32).reshape(wanted.shape) + pairs
    row = jnp.where(wanted, order.base[first] + last, beyond)
    columns = _oriented(made, swapped, split)
    again = None if made.overflow is None else made.overflow & wanted
    zero = jnp.int32(0)
    repeat = zero if again is None else again.sum(dtype=jnp.int32)
    if not capacity:
        return Found(columns, row, wanted, again, None, jnp.stack([repeat, zero, zero]))
    count = jnp.where(wanted, made.count, 0)
    runs, begin = _join(made.runs, count, swapped, capacity)
    columns |= {"count": count, "first": begin}
    totals = jnp.stack([repeat, count.max(), count.sum(dtype=jnp.int32)])
    return Found(columns, row, wanted, again, runs, totals)


def _oriented(made, swapped, split) -> dict:
    """Columns of the pairs with their sides swapped back."""
    if split is not None:
        return dict(zip(("score", "max_identities"), split(made.score), strict=True))
    columns = {"score": made.score}
    if made.columns is None:
        return columns
    spans = made.start_i, made.end_i, made.start_j, made.end_j
    others = spans[2:] + spans[:2]
    for name, own, other in zip(SPANS, spans, others, strict=True):
        columns[name] = jnp.where(swapped, other, own)
    return columns | {name: getattr(made, name) for name in COUNTS}


def _join(runs, count, swapped, capacity):
    """Runs (R, ...), end to start -> (one path after the other, start to end, uint32
    (capacity,); where each begins). I and D (1 and 2) change places with the sides."""
    begin = (jnp.cumsum(count.reshape(-1)) - count.reshape(-1)).reshape(count.shape)
    r = jnp.arange(runs.shape[0], dtype=jnp.int32).reshape(-1, *(1,) * count.ndim)
    runs = runs.astype(jnp.uint32)
    turned = swapped[None] & ((runs & 15) != 0)
    runs = jnp.where(turned, runs ^ jnp.uint32(3), runs)
    at = jnp.where(r < count[None], (begin + count - 1)[None] - r, capacity)
    empty = jnp.zeros(capacity, jnp.uint32)
    joined = empty.at[at.reshape(-1)].set(runs.reshape(-1), mode="drop")
    return joined, begin


@partial(jax.jit, donate_argnames=("columns", "runs"))
def _put(columns, runs, end, found: Found):
    """Columns and runs with those of a launch in place."""
    values = found.columns
    if found.runs is not None:
        values = values | {"first": values["first"] + end}
        runs = jax.lax.dynamic_update_slice(runs, found.runs, (end,))
        # Where there are more, the launch is issued again.
        end = end + jnp.minimum(found.totals[2], len(found.runs))
    row = found.row.reshape(-1)

    def put(column, values):
        values = values.reshape(-1)
        return column.at[row].set(values, mode="drop", unique_indices=True)

    return {name: put(x, values[name]) for name, x in columns.items()}, runs, end


@partial(jax.jit, static_argnames="size")
def _grown(runs, *, size):
    return jnp.zeros(size, runs.dtype).at[: len(runs)].set(runs)


def _collect(job: Job) -> None:
    """The columns, and the paths in input order, to the host."""
    columns = dict(job.held.columns)
    if job.steps:
        count, first = columns.pop("count"), columns.pop("first")
        host = np.empty(job.task.job.pairs, np.int32)
        _copy(count, host)
        total = int(host.sum(dtype=np.int64))
        runs = np.empty(total, np.uint32)
        size = bucket(total, 2, 1024)
        _copy(_in_order(job.held.runs, count, first, size=size), runs)
        job.out.pieces.append((None, runs, host.astype(np.int64)))
    job.out.take({name: partial(_copy, column) for name, column in columns.items()})


@partial(jax.jit, static_argnames="size")
def _in_order(runs, count, first, *, size):
    """Joined runs of all launches in the order of the rows: (size,)."""
    begin = jnp.cumsum(count) - count
    shift = jnp.repeat(first - begin, count, total_repeat_length=size)
    places = jnp.arange(size, dtype=jnp.int32)
    return runs.at[places + shift].get(mode="clip")


def _copy(values, into) -> None:
    """Copy the first values of a device array to the host, in pieces side by side."""
    size = min(CHUNK, len(into))

    def piece(start):
        start = min(start, len(into) - size)
        into[start : start + size] = _piece(values, np.int32(start), size=size)

    with ThreadPoolExecutor(COPIERS) as pool:
        list(pool.map(piece, range(0, len(into), size or 1)))


@partial(jax.jit, static_argnames="size")
def _piece(values, start, *, size):
    return jax.lax.dynamic_slice(values, (start,), (size,))


def _to_host(job: Job, launch, found: Found, total) -> results.Rows:
    """Rows of a launch whose result is kept on the host."""
    wanted = np.asarray(found.wanted)
    columns = {name: np.asarray(x)[wanted] for name, x in found.columns.items()}
    at = np.nonzero(wanted)
    i, j = launch.queries[at[0]], launch.targets[at[-1]]
    if job.task.job.kind == "all" and job.task.job.once:
        i, j = np.minimum(i, j), np.maximum(i, j)
    paths = None
    if found.runs is not None:
        columns.pop("first")
        counts = columns.pop("count").astype(np.int64)
        paths = np.asarray(found.runs)[:total], counts
    return results.Rows(job.task.job.position(i, j), columns, paths)


def _ids(indices, size):
    ids = np.full(size, -1, np.int32)
    ids[: len(indices)] = indices
    return ids
