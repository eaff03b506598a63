"""Launches of the GPU kernels: which queries meet which targets, in what arrays.

Pure and on the host. Static sizes are few, since each of them is a compilation; lengths
are data.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from jaxalign.errors import MemoryPlanError
from jaxalign.run import bounds
from jaxalign.run.gpu_range import dtype_of, highest
from jaxalign.run.memory import refuse_over, show_bytes
from jaxalign.run.task import describe
from jaxalign.run.windows import bucket, by_length, pairs

# Queries, targets and zipped pairs of a launch; what fits and is needed is taken.
QUERIES, PAIRS = (64, 16, 4, 2), (16384, 4096, 1024, 256, 64)
TARGETS = (16384, 8192, 4096, 2048, 1024, 512, 256, 128, 64)
CHECKPOINTED = 4096  # targets of a launch that keeps checkpoints
ROOM = 2**22  # words of letters of targets
WIDE, MORE = 32768, 2  # targets, and times the room, for few queries: fewer last ones
GROUPS = 8  # launches of queries; fewer are full: each waits for its longest program
COARSE = 2 * 10**10  # cells; fewer take one height of strips: compiling costs more
STRIP = 384  # rows
IN_FLIGHT = 2  # host threads of a device, but where its result is kept there
RUNS = 256  # kept of a path; a launch with a longer one is compiled and runs again
MEAN_RUNS = 16  # … and of all paths of a launch, a pair


@dataclass(frozen=True)
class Launch:
    """Some queries and targets, and the static sizes of the arrays that hold them."""

    queries: np.ndarray
    targets: np.ndarray
    rows: int = 0  # letters of a query
    columns: int = 0  # letters of a target, or
    room: int = 0  # rows of letters of targets of any lengths (``kernels.letters``)
    records: int = 0  # of checkpoints
    slots: int = 0  # queries
    places: int = 0  # targets
    zipped: bool = False
    dtype: str = ""
    proven: bool = True  # else the kernels say which scores may have left the dtype
    shape: object = None  # ``kernels.Fill``
    each: int = 1

    @property
    def pairs(self) -> int:
        """Places for pairs."""
        return self.places if self.zipped else self.slots * self.places


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
    dtypes = {launch.dtype for launch in launches}
    made = describe(task, len(launches), alone, held, dtypes)
    return made | {"threads": min(task.threads, IN_FLIGHT)}, pieces


def cut(task, kernels, budget: int) -> Iterator[Launch | tuple[int, int]]:
    """Launches of at most ``budget`` device bytes; a pair (i, j) that none can hold."""
    job, high = task.job, highest(task)
    if job.kind == "zip":
        order = by_length(job.query_lengths * (job.target_lengths + 1))
        yield from zipped(task, kernels, order, order, budget, high)
        return
    order, queries = by_length(job.target_lengths), by_length(job.query_lengths)
    parts = _by_range(task, order)
    half = job.kind == "all" and job.once
    for start, stop in _alike(task, kernels, queries):
        before = start if half else 0
        for some in parts:
            met = some[before:]
            yield from _rectangle(task, kernels, queries[start:stop], met, budget, high)
            before = max(before - len(some), 0)


def _alike(task, kernels, queries):
    """(start, stop) of queries, longest first, of one launch; at most as many as the
    largest takes. Where there are many, their best shapes are one, too."""
    lengths = task.job.query_lengths[queries].tolist()
    many = len(lengths) >= GROUPS * QUERIES[0] and task.job.total >= COARSE
    kind = _kind if many else _range
    known = {length: kind(task, kernels, length) for length in set(lengths)}
    start = 0
    while start < len(lengths):
        stop, limit = start + 1, min(len(lengths), start + QUERIES[0])
        while stop < limit and known[lengths[stop]] == known[lengths[start]]:
            stop += 1
        yield start, stop
        start = stop


def _kind(task, kernels, length):
    """What queries of a launch have in common: shape, size of arrays, range."""
    s = _shape(task, kernels, length, "int16")
    return s, _rows(kernels, s, length), _range(task, kernels, length)


def _range(task, kernels, length):
    """Whether matches of a query cannot be counted beside those of long targets."""
    return task.output == "identity" and length >= bounds.IDENTITY_BASE["int32"]


def _rows(kernels, s, length):
    """Letters of an array of queries: a strip, or a bucket of lengths."""
    return s.strip if length <= s.strip else kernels.bucket(length)


def _by_range(task, order):
    """Targets that one launch may hold, longest first: matches cannot be counted beside
    long ones."""
    lengths = task.job.target_lengths[order]
    beyond = (lengths >= bounds.IDENTITY_BASE["int32"]) & (task.output == "identity")
    return np.split(order, np.flatnonzero(np.diff(beyond)) + 1)


def _rectangle(task, kernels, queries, targets, budget, high):
    """Launches for some queries against targets of one range."""
    if not len(targets):
        return
    launch = _largest(task, kernels, queries, targets, budget, high)
    if launch is None:
        yield from pairs(task.job, Launch(queries, targets))
        return
    for q in range(0, len(queries), launch.slots):
        rest = targets
        while len(rest):
            part = queries[q : q + launch.slots]
            count = _held(task, kernels, launch, part, rest)
            yield replace(launch, queries=part, targets=rest[:count])
            rest = rest[count:]


def _held(task, kernels, launch, queries, targets) -> int:
    """How many of the targets (or pairs), longest first, a launch has room for."""
    n = task.job.target_lengths[targets[: launch.places]]
    blocks, s = len(n), launch.shape
    if launch.room:
        ends = kernels.rows_of(n, s)
        blocks = int(np.searchsorted(ends, launch.room, side="right"))
    if launch.records:
        # Empty slots take a strip too; blocks without targets take nothing.
        m = task.job.query_lengths[queries[: launch.places]]
        m = m if launch.zipped else np.pad(m, (0, launch.slots - len(m)))
        ends = kernels.records_of(m, n, s)
        blocks = min(blocks, int(np.searchsorted(ends, launch.records, side="right")))
    return min(blocks * s.block, launch.places)


def zipped(task, kernels, queries, targets, budget, high, wide=False):
    """Launches of pairs that share no side, of similar size; ``wide`` in int32."""
    while len(queries):
        some = slice(0, PAIRS[0])
        launch = _largest(
            task, kernels, queries[some], targets[some], budget, high, True, wide
        )
        if launch is None:
            yield int(queries[0]), int(targets[0])
            queries, targets = queries[1:], targets[1:]
            continue
        count = _held(task, kernels, launch, queries, targets)
        yield replace(launch, queries=queries[:count], targets=targets[:count])
        queries, targets = queries[count:], targets[count:]


def _largest(task, kernels, queries, targets, budget, high, listed=False, wide=False):
    """The launch of the most pairs that fits the budget; none if not even the least."""
    m = int(task.job.query_lengths[queries].max(initial=0))
    n = int(task.job.target_lengths[targets].max(initial=0))
    most = min(int(side[of].max(initial=0)) for side, of in
               zip(high, (queries, targets), strict=True))  # fmt: skip
    chosen = dtype_of(task, kernels, m, n, most)
    if chosen is None:
        return None
    dtype, proven = ("int32", True) if wide else chosen
    make = partial(_sized, task, kernels, queries, targets, m, n)
    made = (make(size, dtype, proven, listed) for size in _sizes(task, listed))
    if task.paths:
        made = (_with_records(task, kernels, x, budget) for x in made)
        made = (x for x in made if _held(task, kernels, x, queries[: x.slots], targets))
    fits = (x for x in made if launch_bytes(task, kernels, x) <= budget)
    return next(fits, None)


def _with_records(task, kernels, launch, budget):
    """A launch with room for checkpoints: for the longest sequences of the job, or all
    that is left of the budget."""
    s, of = launch.shape, task.job
    each, least = kernels.record_bytes(s), s.tile or 1
    rest = budget - launch_bytes(task, kernels, replace(launch, records=least))
    if launch.zipped:
        m, n = (np.full(launch.places, x) for x in (launch.rows, launch.columns))
    elif of.whole:
        m, n = np.full(launch.slots, launch.rows), of.longest(launch.places)
    else:
        m, n = of.falling[0], of.longest(launch.places)
        m = m[m <= launch.rows][: launch.slots]
        m = np.pad(m, (0, launch.slots - len(m)))
    needed = bucket(int(kernels.records_of(m, n, s)[-1]), 2, 256)
    return replace(launch, records=min(needed, rest // each) // least * least)


def _sizes(task, listed):
    """(slots, places) to try, most pairs first; ``Task.window`` bounds both."""
    wide = (WIDE, *TARGETS) if _few(task) else TARGETS
    whole = task.job.whole
    limit = task.window or wide[0]
    if listed:
        return [(min(p, limit),) * 2 for p in PAIRS]
    needed = bucket(whole.targets if whole else len(task.job.target_lengths))
    needed = min(needed, CHECKPOINTED) if task.paths else needed
    few = QUERIES[0] if whole else bucket(len(task.job.query_lengths), 4, 4)
    places = [t for t in wide if t <= needed]
    slots = [q for q in QUERIES if q <= few]
    sizes = [(min(q, limit), min(t, limit)) for q, t in product(slots, places)]
    return sorted(sizes, key=lambda size: -size[0] * size[1])


def _sized(task, kernels, queries, targets, m, n, size, dtype, proven, listed):
    """A launch of some size, arrays for its longest sequences."""
    coarse = not listed and (task.job.total < COARSE or _few(task))
    longest = task.job.most[0] if coarse else m
    s = _shape(task, kernels, longest, dtype, listed)
    if listed:
        rows, columns, room = kernels.bucket(m), kernels.bucket(n), 0
    else:
        rows, columns = _rows(kernels, s, longest), 0
        room = _room(task, kernels, s, size)
    sizes = rows, columns, room, 0, *size
    return Launch(queries, targets, *sizes, listed, dtype, proven, s)


def _room(task, kernels, s, size) -> int:
    """Rows of letters of a launch: for the longest targets of the job, or all that is
    sensible. The same for all launches of these sizes."""
    ends = kernels.rows_of(task.job.longest(size[1]), s)
    needed = bucket(int(ends[-1]), 2, 256)
    room = ROOM * (MORE if _few(task) else 1)
    return max(min(needed, room // s.groups), int(ends[0]))


def _few(task) -> bool:
    """Whether all queries are in one launch, and its shape is chosen for all of it."""
    few = len(task.job.query_lengths) <= QUERIES[0] and task.job.whole is None
    return few and task.job.kind == "cross" and not task.paths


def _shape(task, kernels, longest, dtype, listed=False):
    """The ``Fill`` for queries of at most ``longest`` letters; paths of short ones take
    the strips of the others, since compiling costs more."""
    packed = dtype == "int16" and task.output != "identity"
    if _few(task) and not listed:
        sides = task.job.falling
        return kernels.spread(*sides, local=task.local, packed=packed)
    if task.paths:
        longest = max(longest, min(task.job.most[0], STRIP))
    return kernels.choose(
        longest,
        local=task.local,
        packed=packed,
        shared=not listed and task.job.kind != "zip",
        way="tiles" if task.paths else None,
    )


def launch_bytes(task, kernels, launch) -> int:
    """Device bytes of a launch: what the fill writes, codes, profiles, paths."""
    sizes = launch.slots, launch.places, launch.rows, launch.columns
    held = kernels.fill_bytes(launch.shape, *sizes, launch.room, launch.records)
    letters = launch.places * launch.columns + launch.room * launch.shape.groups
    kept = 4 * (RUNS + MEAN_RUNS) if task.output == "alignment" else 0
    profile = 0 if launch.zipped else 160 * launch.slots * launch.rows
    codes = 8 * launch.slots * launch.rows + 40 * letters
    return held + codes + profile + launch.pairs * (64 + kept)
