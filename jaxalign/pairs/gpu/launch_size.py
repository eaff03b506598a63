"""The arrays of a launch: how many queries and targets, letters, checkpoints.

Static sizes are few, since each of them is a compilation; lengths are data.
"""

from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from jaxalign.runtime.lengths import bucket

# Queries, targets and zipped pairs of a launch; what fits and is needed is taken.
QUERY_COUNTS, LIST_SIZES = (64, 16, 4, 2), (16384, 4096, 1024, 256, 64)
FEW_PAIRS = 1024  # zipped, of a job: all wait for the longest
TARGET_COUNTS = (16384, 8192, 4096, 2048, 1024, 512, 256, 128, 64)
CHECKPOINTED_TARGETS = 4096  # targets of a launch that keeps checkpoints
LETTER_WORDS = 2**22  # words of letters of targets
# Targets, and times the room, for few queries: fewer launches wait for last programs
WIDE_TARGETS, WIDE_ROOM_RATIO = (2**18, 2**17, 2**16, 2**15), 16
# Cells; fewer, a second of an H200, take one height of strips: compiling costs more
COARSE_CELLS = 10**12
MIN_STRIP_ROWS = 384  # rows
PATH_RUNS = 256  # kept of a path; a launch with a longer one is compiled and runs again
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
    known: dict = field(default_factory=dict)

    def largest(
        self,
        queries: np.ndarray,
        targets: np.ndarray,
        longest: tuple[int, int],
        chosen: tuple[str, bool] | None,
    ) -> Launch | None:
        """The launch of the most of some pairs, none if not even the least fits.

        longest : of the queries and of the targets; chosen : (dtype, proven) or None
        """
        if chosen is None:
            return None
        task, kernels, m = self.task, self.kernels, longest[0]
        if not self.listed and (task.job.total < COARSE_CELLS or _few(task)):
            m = task.job.most[0]  # one shape for all
        s = shape(task, kernels, m, chosen[0], self.listed)
        if self.listed:
            rows, columns = (kernels.bucket(n) for n in longest)
        else:
            rows, columns = rows_of_query(kernels, s, m), 0
        empty = Launch(queries, targets, rows, columns, 0, 0, 0, 0,
                       self.listed, *chosen, s)  # fmt: skip
        if task.paths:  # whether checkpoints fit depends on who is there
            fits = (
                x
                for x in self._fitting(empty)
                if targets_in(task, kernels, x, queries[: x.slots], targets)
            )
            return next(fits, None)
        key = s, rows, columns, chosen
        if key not in self.known:
            self.known[key] = next(self._fitting(empty), None)
        return self.known[key]

    def smaller(self, launch: Launch) -> Launch | None:
        """The largest launch within the budget that holds some pairs of another one,
        by the same kernels; none if not even the least does."""
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
        task, kernels = self.task, self.kernels
        for slots, places in self._sides():
            room = 0 if self.listed else _room(task, kernels, empty.shape, places)
            launch = replace(empty, room=room, slots=slots, places=places)
            if task.paths:
                launch = _with_records(task, kernels, launch, self.budget)
            if launch_bytes(task, kernels, launch) <= self.budget:
                yield launch

    def _sides(self):
        """(slots, places) to try, most pairs first; ``Task.window`` bounds both."""
        task, whole = self.task, self.task.job.whole
        wide = (*WIDE_TARGETS, *TARGET_COUNTS) if _few(task) else TARGET_COUNTS
        limit = task.window or wide[0]
        if self.listed:
            most = FEW_PAIRS if _few_pairs(task) else LIST_SIZES[0]
            return [(min(p, limit),) * 2 for p in LIST_SIZES if p <= most]
        needed = bucket(whole.targets if whole else len(task.job.target_lengths))
        needed = min(needed, CHECKPOINTED_TARGETS) if task.paths else needed
        few = QUERY_COUNTS[0] if whole else bucket(len(task.job.query_lengths), 4, 4)
        places = [t for t in wide if t <= needed]
        slots = [q for q in QUERY_COUNTS if q <= few]
        sizes = [(min(q, limit), min(t, limit)) for q, t in product(slots, places)]
        return sorted(sizes, key=lambda size: -size[0] * size[1])


def shape(task, kernels, longest, dtype, listed=False):
    """The ``Fill`` for queries of at most ``longest`` letters; paths of short ones take
    the strips of the others, since compiling costs more."""
    packed = dtype == "int16" and task.output != "identity"
    linear = task.scoring.open == task.scoring.extend
    if _few(task) and not listed:
        sides = task.job.falling
        return kernels.spread(*sides, local=task.local, packed=packed, linear=linear)
    if task.paths:
        longest = max(longest, min(task.job.most[0], MIN_STRIP_ROWS))
    return kernels.choose(
        longest,
        local=task.local,
        packed=packed,
        shared=not listed and task.job.kind != "zip",
        paths=task.paths,
        linear=linear,
        few=_few_pairs(task),
    )


def _few(task) -> bool:
    """Whether all queries are in one launch, and its shape is chosen for all of it."""
    few = len(task.job.query_lengths) <= QUERY_COUNTS[0] and task.job.whole is None
    return few and task.job.kind == "cross" and not task.paths


def _few_pairs(task) -> bool:
    """Whether zipped pairs leave most of a GPU idle."""
    return task.job.kind == "zip" and len(task.job.query_lengths) <= FEW_PAIRS


def rows_of_query(kernels, s, length):
    """Letters of an array of queries: a strip, or a bucket of lengths."""
    return s.strip if length <= s.strip else kernels.bucket(length)


def _room(task, kernels, s, places) -> int:
    """Rows of letters of a launch: for the longest targets of the job, or all that is
    sensible. The same for all launches of these sizes."""
    ends = kernels.rows_of(task.job.longest(places), s)
    needed = bucket(int(ends[-1]), 2, 256)
    room = LETTER_WORDS * (WIDE_ROOM_RATIO if _few(task) else 1)
    return max(min(needed, room // s.groups), int(ends[0]))


def _with_records(task, kernels, launch, budget):
    """A launch with room for checkpoints: for the longest sequences of the job, or all
    that is left of the budget."""
    s, of = launch.shape, task.job
    each, least = kernels.record_bytes(s), s.tile
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


def stacks_of(task, kernels, launch):
    """How the queries of a launch are stacked."""
    return kernels.stack(task.job.query_lengths[launch.queries], launch.shape)


def targets_in(task, kernels, launch, queries, targets) -> int:
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


def launch_bytes(task, kernels, launch) -> int:
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
    paths = 4 * (2 * PATH_RUNS + MEAN_RUNS) if task.output == "alignment" else 0
    profile = 0 if launch.zipped else 160 * launch.slots * launch.rows
    codes = 8 * launch.slots * launch.rows + 40 * letters
    return fill + codes + profile + launch.pairs * (64 + paths)
