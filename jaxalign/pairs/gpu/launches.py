"""Launches of the GPU kernels: which queries meet which targets, and in what arrays.

Static sizes are rungs of short ladders, since each of them is a compilation. Which rung
depends on the lengths of a job, its mode, type and output, and on nothing else; lengths
themselves are data.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import chain, product
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxalign.model import bounds
from jaxalign.model.alphabet import TRACK
from jaxalign.pairs.pair_matrix import Partition, pairs
from jaxalign.pairs.plan import Task
from jaxalign.runtime.devices import bucket, by_length

if TYPE_CHECKING:
    from jaxalign.model.alphabet import CodedSequences


# Queries, targets and zipped pairs of a launch; what fits and is needed is taken.
QUERY_COUNTS, LIST_SIZES = (64, 16, 4, 2), (16384, 4096, 1024, 256, 64)
FEW_PAIRS = 1024  # zipped, of a job: all wait for the longest
TARGET_COUNTS = (16384, 1024, 64)
CHECKPOINTED_TARGETS = (4096, 1024, 256, 64)  # of a launch that keeps checkpoints
WIDE_TARGETS = 2**18  # of few queries: fewer launches wait for last programs
MANY_LETTERS = 2**23  # of a side, from which on there is room for a block of a database
LIST_LETTERS = 2**26  # of each side of zipped pairs
MEAN_LETTERS = 512  # of a target, that a launch has room for
LEAST_ROWS = 1536  # letters of an array of queries
STACKED_ROWS = (
    9216  # … that are stacked: a launch takes as many slots, and their strips
)
# The least room for checkpoints, and the ratio of its rungs: the same for all cards, so
# that packs serve them.
LEAST_RECORDS, RECORDS_RATIO = 2**13, 8
# Cells; fewer, a second of an H200, take one height of strips: compiling costs more
COARSE_CELLS = 10**12
MIN_STRIP_ROWS = 384  # rows
# Letters of a query, runs kept of a path, and of all paths of a launch a pair; a launch
# with longer ones runs again.
PATH_ROOMS = ((LEAST_ROWS, 256, 64), (None, 512, 128))


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
    shape: Any = None  # ``kernels.Fill``
    path_runs: int = 0  # room for the runs of a path, where these are asked for
    mean_runs: int = 0  # … and for those of all paths, a pair

    @property
    def sizes(self) -> tuple:
        """All that its program depends on."""
        arrays = self.rows, self.columns, self.room, self.records
        runs = self.path_runs, self.mean_runs
        kind = self.dtype, self.proven, self.shape
        return *arrays, self.slots, self.places, *runs, *kind

    @property
    def pairs(self) -> int:
        """Places for pairs."""
        return self.places if self.zipped else self.slots * self.places


@dataclass
class LaunchSizes:
    """The largest launches of a task that fit some device bytes, of each kind of
    queries looked for once; ``listed``: of pairs that share no side."""

    task: Any
    kernels: Any
    budget: int
    listed: bool = False
    cache: dict = field(default_factory=dict)

    def largest(
        self,
        queries: np.ndarray,
        targets: np.ndarray,
        longest: tuple[int, int],
        cell_type: tuple[str, bool] | None,
    ) -> Launch | None:
        """Find the launch that holds the most of some pairs; None if the smallest does
        not fit.

        longest : of the queries and of the targets; cell_type : (dtype, proven) or None
        """
        if cell_type is None:
            return None
        task, kernels, m = self.task, self.kernels, longest[0]
        if not self.listed and (task.job.total < COARSE_CELLS or _few(task)):
            m = task.job.most[0]  # one shape for all
        s = shape(task, kernels, m, cell_type[0], self.listed)
        if self.listed:
            least_length = max(task.job.most) if _few_pairs(task) else 0
            rows = columns = array_rows(task, kernels, max(*longest, least_length))
        else:
            rows, columns = array_rows(task, kernels, m), 0
            rows = max(rows, STACKED_ROWS) if s.stacks else rows
        # Runs of a path, and of all paths a pair, that a launch has room for.
        rooms = (x[1:] for x in PATH_ROOMS if x[0] is None or rows <= x[0])
        of_path, mean = next(rooms)
        runs = (of_path, mean) if task.output == "alignment" else (0, 0)
        empty = Launch(queries, targets, rows, columns, 0, 0, 0, 0,
                       self.listed, *cell_type, s, *runs)  # fmt: skip
        if task.paths:  # whether checkpoints fit depends on who is there
            fits = (
                x
                for x in self._fitting(empty)
                if targets_in(task, kernels, x, queries[: x.slots], targets)
            )
            return next(fits, None)
        key = s, rows, columns, cell_type
        if key not in self.cache:
            self.cache[key] = next(self._fitting(empty), None)
        return self.cache[key]

    def smaller(self, launch: Launch) -> Launch | None:
        """Find the largest launch within the budget that holds part of another one's
        pairs, by the same kernels; None if the smallest does not fit."""
        task, kernels = self.task, self.kernels
        empty = replace(launch, room=0, records=0, slots=0, places=0)
        for candidate in self._fitting(empty):
            if candidate.pairs < launch.pairs or candidate.records < launch.records:
                first = launch.queries[: candidate.slots]
                if targets_in(task, kernels, candidate, first, launch.targets):
                    return candidate
        return None

    def _fitting(self, empty: Launch):
        """A launch in all sizes that fit the budget, most pairs first."""
        task, kernels, s = self.task, self.kernels, empty.shape
        for slots, places in self._sides(empty.rows, s.stacks > 0):
            room = 0
            if not self.listed:
                # Rows of letters: for targets of the mean length, and the longest ones
                # of the job; the same for all launches of these sizes.
                ends = kernels.rows_of(task.job.longest(places), s)
                mean = places * MEAN_LETTERS // (s.columns * s.groups)
                room = max(mean, bucket(int(ends[0]), 4, 256))
            launch = replace(empty, room=room, slots=slots, places=places)
            if task.paths:
                # Room for checkpoints: the rung that holds those of the longest
                # sequences of the job, or all that is left of the budget
                each, least, of = kernels.record_bytes(s), s.tile, task.job
                smallest = replace(launch, records=least)
                available = self.budget - launch_bytes(task, kernels, smallest)
                if self.listed:
                    rows, columns = launch.rows, launch.columns
                    m, n = (np.full(places, x) for x in (rows, columns))
                elif of.whole:
                    m, n = np.full(slots, launch.rows), of.longest(places)
                else:
                    m, n = of.falling[0], of.longest(places)
                    m = m[m <= launch.rows][:slots]
                    m = np.pad(m, (0, slots - len(m)))
                needed = int(kernels.records_of(m, n, s)[-1])
                records = LEAST_RECORDS
                while records < needed:
                    records *= RECORDS_RATIO
                records = min(records, max(available // each, 0))
                launch = replace(launch, records=records // least * least)
            if launch_bytes(task, kernels, launch) <= self.budget:
                yield launch

    def _sides(self, rows: int, stacked: bool):
        """(slots, places) to try, most pairs first; ``Task.window`` bounds both.

        rows : letters of a query, and in lists of a target
        stacked : whether queries are, so that an empty slot takes no time
        """
        task, whole = self.task, self.task.job.whole
        counts = CHECKPOINTED_TARGETS if task.paths else TARGET_COUNTS
        if _few(task) and len(task.targets.codes) >= MANY_LETTERS:
            counts = WIDE_TARGETS, *counts
        limit = task.window or counts[0]
        if self.listed:
            max_pairs = FEW_PAIRS if _few_pairs(task) else LIST_SIZES[0]
            max_pairs = min(max_pairs, max(LIST_LETTERS // rows, LIST_SIZES[-1]))
            return [(min(p, limit),) * 2 for p in LIST_SIZES if p <= max_pairs]
        needed = whole.targets if whole else len(task.job.target_lengths)
        needed = min((t for t in counts if t >= needed), default=counts[0])
        max_slots = QUERY_COUNTS[0]
        if not (whole or stacked):
            queries = len(task.job.query_lengths)
            max_slots = 2 if queries <= 2 else bucket(queries, 4, 4)
        places = [t for t in counts if t <= needed]
        slots = [q for q in QUERY_COUNTS if q <= max_slots] or QUERY_COUNTS[-1:]
        sizes = [(min(q, limit), min(t, limit)) for q, t in product(slots, places)]
        return sorted(sizes, key=lambda size: -size[0] * size[1])


def shape(task: "Task", kernels: Any, longest: int, dtype: str, listed: bool = False):
    """The ``Fill`` for queries of at most ``longest`` letters; lists and paths of short
    ones take the strips of the others, since compiling costs more."""
    packed = dtype == "int16" and task.output != "identity"
    linear = task.scoring.open == task.scoring.extend
    first_letters = task.scoring.alphabet.size if task.scoring.tracks else 0
    if _few(task) and not listed:
        return kernels.spread(
            *task.job.falling,
            local=task.local,
            packed=packed,
            linear=linear,
            first_letters=first_letters,
        )
    if task.paths or listed:
        longest = max(longest, min(task.job.most[0], MIN_STRIP_ROWS))
    if _few_pairs(task):
        longest = max(longest, task.job.most[0])
    return kernels.choose(
        longest,
        local=task.local,
        packed=packed,
        shared=not listed and task.job.kind != "zip",
        paths=task.paths,
        linear=linear,
        few_pairs=_few_pairs(task),
        first_letters=first_letters,
    )


def _few(task: "Task") -> bool:
    """Whether all queries fit one launch, whose shape is chosen for all of it; always
    with gap costs by position, beside which the rows of others would spill."""
    job = task.job
    whole = job.whole is not None and task.scoring.gap_costs is None
    single_launch = len(job.query_lengths) <= QUERY_COUNTS[0] and not whole
    return single_launch and task.job.kind == "cross" and not task.paths


def _few_pairs(task: "Task") -> bool:
    """Whether zipped pairs leave most of a GPU idle."""
    return task.job.kind == "zip" and len(task.job.query_lengths) <= FEW_PAIRS


def array_rows(task: "Task", kernels: Any, length: int) -> int:
    """Letters to allocate for sequences of up to ``length``: a bucket of at least
    ``LEAST_ROWS``, or of the longest sequence of the job if that is shorter. For a job
    for the nearest, which has many launches, the longest query counts alone."""
    longest = max(task.job.most) if task.nearest is None else task.job.most[0]
    return kernels.bucket(max(length, min(longest, LEAST_ROWS)))


def stacks_of(task: "Task", kernels: Any, launch: Launch):
    """How the queries of a launch are stacked."""
    return kernels.stack(task.job.query_lengths[launch.queries], launch.shape)


def targets_in(
    task: "Task", kernels: Any, launch: Launch, queries: np.ndarray, targets: np.ndarray
) -> int:
    """Count the targets (or pairs), longest first, that a launch has room for."""
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


def launch_bytes(task: "Task", kernels: Any, launch: Launch) -> int:
    """Device bytes of a launch: what the fill writes, codes, profiles, paths."""
    sizes = launch.slots, launch.places, launch.rows, launch.columns
    strips = 0
    if launch.shape.stacks:
        stacks = stacks_of(task, kernels, launch)
        strips = stacks.query.shape[2] // launch.shape.lanes
    sizes += launch.room, launch.records, strips
    fill = kernels.fill_bytes(launch.shape, *sizes)
    fill *= 2 if strips else 1  # the best of every lane is put into order
    letters = launch.places * launch.columns + launch.room * launch.shape.groups
    paths = 4 * (2 * launch.path_runs + launch.mean_runs)
    tracks = launch.shape.tracks
    profile = 0 if launch.zipped else 160 * tracks * launch.slots * launch.rows
    codes = 8 * launch.slots * launch.rows + 40 * letters
    return fill + codes + profile + launch.pairs * (64 + paths)


MAX_LETTERS = 30  # an alphabet of the kernels
SAFE_SCORE = 2**13  # a quarter of int16
LETTERS_AT_ONCE = 2**22  # whose scores are added up


def numbers(task: "Task"):
    """(scores, gap open, gap extend) of a task as the kernels see them."""
    return bounds.scaled(task.scoring, "int32", task.output == "identity")


def extremes(task: "Task"):
    """``numbers`` with the least and the largest score of two residues alone."""
    scores, *costs = numbers(task)
    tracks = scores if task.scoring.tracks else scores[None]
    least, largest = (
        sum(int(f(x, initial=0)) for x in tracks) for f in (np.min, np.max)
    )
    return np.array([least, largest]), *costs


@dataclass(frozen=True)
class Highest:
    """Upper bounds of the scores of every query and target of a task, int64; each side
    is computed when it is asked for, since a large database takes a while."""

    task: Any

    @cached_property
    def queries(self) -> np.ndarray:
        best = self._best(1)
        if self.task.scoring.by_position:
            return np.full(len(self.task.queries), best.sum())
        if self.task.queries is self.task.targets and self._symmetric:
            return self.targets
        return _most(self.task.queries, best)

    @cached_property
    def targets(self) -> np.ndarray:
        return _most(self.task.targets, self._best(0))

    def _best(self, axis: int) -> np.ndarray:
        """The largest score of every code with any other, at least 0; ``axis`` is that
        of the others."""
        best = np.maximum(numbers(self.task)[0], 0).max(axis - 2)
        if not self.task.scoring.tracks:
            return best
        first, second = best
        first = np.pad(first, (0, TRACK - len(first)))
        return np.add.outer(second, first).ravel()

    @property
    def _symmetric(self) -> bool:
        return np.array_equal(self._best(0), self._best(1))


def _most(side: "CodedSequences", best: np.ndarray) -> np.ndarray:
    """Bound scores by composition, or, far from any limit, by length, which is
    faster."""
    limits = side.lengths * int(best.max(initial=0))
    (far,) = np.nonzero(limits >= SAFE_SCORE)
    # Zipped pairs may have the same sequence many times.
    starts, first, which = np.unique(
        side.starts[far], return_index=True, return_inverse=True
    )
    stops = starts + side.lengths[far][first]
    # Sums of the best scores of the letters from rising starts up to stops, int64.
    sums, at = np.zeros(len(starts), np.int64), 0
    while at < len(starts):
        last = max(at + 1, int(np.searchsorted(stops, starts[at] + LETTERS_AT_ONCE)))
        start, end = int(starts[at]), int(stops[at:last].max())
        before = np.zeros(end - start + 1, np.int64)
        np.cumsum(best[side.codes[start:end]], out=before[1:])
        members = slice(at, last)
        sums[members] = before[stops[members] - start] - before[starts[members] - start]
        at = last
    limits[far] = sums[which]
    return limits


def takes(task: "Task") -> bool:
    """Whether the kernels have the letters of a task. Of a profile they take blocks
    alone, and with gap costs by position only their scores."""
    costs = task.scoring.gap_costs or ()
    beyond = task.scoring.by_position and task.job.kind == "zip"
    beyond |= task.paths and len(costs) > 0
    room = MAX_LETTERS - len(costs)  # each takes the place of a letter
    return letters_of(task) <= room and not beyond


def letters_of(task: "Task") -> int:
    """The letters of a task's alphabet; of two tracks those of the larger one."""
    alphabet = task.scoring.alphabet
    return max(alphabet.size, alphabet.states.size if alphabet.states else 0)


def least_type(
    task: "Task", kernels: Any, m: int, n: int, limits: Iterable[int]
) -> tuple[str, bool] | None:
    """(int16 or int32, whether its range is proved), None where the kernels cannot:
    from the lengths alone or, while a smaller one may do, from successive limits of the
    scores, each slower to compute.

    m, n : the longest query and target. Local int16 may go unproved: the kernels then
    mark the pairs that have to run again in int32. Not in a search, whose scores are
    used as they come.
    """
    identity, scoring = task.output == "identity", extremes(task)
    if not takes(task):
        return None
    if identity and min(m, n) >= bounds.IDENTITY_BASE["int32"]:
        return None
    free = task.local and not identity and task.top is None
    free = free and not task.scoring.by_position  # which no list takes
    above = scoring[1] if task.scoring.gap_costs else 0  # which E and F have on them
    cell_type = None
    for high in chain([min(m, n) * int(scoring[0].max())], limits):
        holds = partial(kernels.fits, *scoring, m, n, task.local, high + above)
        holds = partial(holds, paths=task.paths)
        if not identity and holds(dtype="int16"):
            return "int16", True
        if free and kernels.detects(*scoring):
            cell_type = "int16", False
        else:
            cell_type = ("int32", True) if holds(dtype="int32") else None
        if identity and cell_type:
            break
    return cell_type


# Launches of queries; fewer are full: each waits for its longest program
MIN_GROUPS = 8
THREADS_OF_A_DEVICE = 2  # host threads of a device, but where its result is kept there


def cut(task: Task, kernels: Any, budget: int) -> Partition:
    """Launches of at most ``budget`` device bytes, and the pairs that none can hold."""
    job, high = task.job, Highest(task)
    if job.kind == "zip":
        order = by_length(job.query_lengths * (job.target_lengths + 1))
        return zipped(task, kernels, order, order, budget, high)
    order, queries = by_length(job.target_lengths), by_length(job.query_lengths)
    # Targets that one launch may hold, longest first: matches cannot be counted
    # beside long ones.
    lengths = task.job.target_lengths[order]
    beyond = (lengths >= bounds.IDENTITY_BASE["int32"]) & (task.output == "identity")
    parts = np.split(order, np.flatnonzero(np.diff(beyond)) + 1)
    sizes, split = LaunchSizes(task, kernels, budget), Partition([], [])
    half = job.kind == "all" and job.once

    @cache
    def highest_from(part: int) -> np.ndarray:
        """Upper bounds of the scores of each target and of those after it."""
        return np.maximum.accumulate(high.targets[parts[part]][::-1])[::-1]

    def limits(group: np.ndarray, part: int, first: int) -> Iterator[int]:
        """Upper bounds of scores: a quick one, and the least."""
        by_query = int(high.queries[group].max())
        yield by_query
        yield int(min(by_query, highest_from(part)[first]))

    for start, stop in _alike(task, kernels, queries):
        before = start if half else 0
        group = queries[start:stop]
        for part, members in enumerate(parts):
            if before < len(members):  # both sides longest first
                targets = members[before:]
                m = int(job.query_lengths[group[0]])
                n = int(job.target_lengths[targets[0]])
                score_limits = limits(group, part, before)
                cell_type = least_type(task, kernels, m, n, score_limits)
                launch = sizes.largest(group, targets, (m, n), cell_type)
                if launch is None:
                    split.pairs.extend(pairs(job, Launch(group, targets)))
                else:
                    split.blocks.extend(_filled(sizes, launch, group, targets))
            before = max(before - len(members), 0)
    return split


def _alike(task: Task, kernels: Any, queries: np.ndarray):
    """(start, stop) of queries, longest first, of one launch; at most as many as the
    largest takes. Where there are many, their best shapes are one, too."""
    lengths = task.job.query_lengths[queries].tolist()
    max_queries, large = QUERY_COUNTS[0], task.job.total >= COARSE_CELLS
    coarse = large and len(lengths) >= MIN_GROUPS * max_queries

    def kind(length: int):
        """The range of queries of a launch, and their shape and array sizes."""
        # Matches of a query cannot be counted beside those of long targets.
        long = task.output == "identity" and length >= bounds.IDENTITY_BASE["int32"]
        if not coarse:
            return long
        fill = shape(task, kernels, length, "int16")
        return fill, array_rows(task, kernels, length), long

    kinds = {length: kind(length) for length in set(lengths)}
    start = 0
    while start < len(lengths):
        stop, limit = start + 1, min(len(lengths), start + max_queries)
        while stop < limit and kinds[lengths[stop]] == kinds[lengths[start]]:
            stop += 1
        yield start, stop
        start = stop


def _filled(
    sizes: LaunchSizes, launch: Launch, queries: np.ndarray, targets: np.ndarray
):
    """Launches like one, as many as queries and targets fill."""
    for q in range(0, len(queries), launch.slots):
        remaining = targets
        while len(remaining):
            part = queries[q : q + launch.slots]
            count = targets_in(sizes.task, sizes.kernels, launch, part, remaining)
            yield replace(launch, queries=part, targets=remaining[:count])
            remaining = remaining[count:]


def smaller(task: Task, kernels: Any, launch: Launch, budget: int) -> list[Launch]:
    """Cut a launch into launches of at most so many device bytes, with fewer pairs or
    checkpoints; empty if the smallest one takes more."""
    sizes = LaunchSizes(task, kernels, budget, listed=launch.zipped)
    like = sizes.smaller(launch)
    if like is None:
        return []
    queries, targets = launch.queries, launch.targets
    if not launch.zipped:
        return list(_filled(sizes, like, queries, targets))
    launches = []
    while len(queries):
        count = targets_in(task, kernels, like, queries, targets)
        launches.append(replace(like, queries=queries[:count], targets=targets[:count]))
        queries, targets = queries[count:], targets[count:]
    return launches


def zipped(
    task: Task,
    kernels: Any,
    queries: np.ndarray,
    targets: np.ndarray,
    budget: int,
    high: Highest,
    wide: bool = False,
) -> Partition:
    """Launches of pairs that share no side, of similar size; ``wide`` those that run
    again in int32, for scores in arrays for any pair of the job: they compile once."""
    sizes, split = LaunchSizes(task, kernels, budget, listed=True), Partition([], [])

    def highest(i: np.ndarray, j: np.ndarray) -> Iterator[int]:
        yield min(int(high.queries[i].max()), int(high.targets[j].max()))

    while len(queries):
        limit = LIST_SIZES[0]
        block = queries[:limit], targets[:limit]
        sides = task.job.query_lengths, task.job.target_lengths
        m, n = (int(x[of].max()) for x, of in zip(sides, block, strict=True))
        longest = m, n
        cell_type = least_type(task, kernels, m, n, highest(*block))
        if cell_type is not None and wide:
            longest = longest if task.paths else task.job.most
            cell_type = "int32", True
        launch = sizes.largest(*block, longest, cell_type)
        if launch is None:
            split.pairs.append((int(queries[0]), int(targets[0])))
            queries, targets = queries[1:], targets[1:]
            continue
        count = targets_in(task, kernels, launch, queries, targets)
        part = {"queries": queries[:count], "targets": targets[:count]}
        split.blocks.append(replace(launch, **part))
        queries, targets = queries[count:], targets[count:]
    return split
