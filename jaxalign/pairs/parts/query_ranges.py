"""The rows of all pairs of a set in parts: some queries against all that follow.

A part is a band of the pair matrix, so its rows are consecutive rows of the result; of
two sets, as of a search, it is some queries against all targets. Parts depend on the
lengths alone, not on the machine: a run may go on elsewhere.
"""

from dataclasses import dataclass, replace

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.model.numbers import check_whole
from jaxalign.pairs import schedule
from jaxalign.pairs.plan import COLUMN_BYTES, Task
from jaxalign.pairs.windows import WholeJob
from jaxalign.runtime import pipeline

PART_ROWS = 2**22  # of a part, about; 184 MB of statistics
PART_CELLS = 2**40  # of a part; a minute or two on a few cores, a second on a GPU
MIN_PARTS = 32  # of a smaller job, so that several machines end together …
MIN_CELLS = 2**38  # … but so many cells each, and QUERIES_STEP queries
SEARCH_CELLS = 2**42  # … of a search, which may read the database for each part
LAST_RATIO = 1.5  # parts that the last one may be: a small triangle leaves lanes empty
# Times as many targets: no more cells in vain than a triangle of its own has
MIN_TARGET_RATIO = 3
MOST_ROWS = 2**61  # no job has as many; sums with it stay within int64
QUERIES_STEP = 64  # a launch on a GPU takes so many queries


@dataclass(frozen=True)
class Part:
    """Consecutive rows of a large result that are computed as one.

    Attributes
    ----------
    index : int
        Which of the parts.
    first, last : int
        Its queries, ``last`` not included.
    start, stop : int
        Its rows of the whole result as it is before filters, ``stop`` not included.
    cells : int
        About what it costs beside the other parts.
    """

    index: int
    first: int
    last: int
    start: int
    stop: int
    cells: int


def cut(
    lengths: np.ndarray,
    include_self: bool = False,
    rows: int | None = None,
    cells: int | None = None,
) -> list[Part]:
    """The parts of all pairs i < j (i <= j with ``include_self``) of some sequences.

    Parameters
    ----------
    lengths : int64 (n,)
    rows, cells : int, optional
        Of a part at most, unless a single query has more; of the last half as many
        more. By default ``PART_ROWS`` and ``PART_CELLS``, or a share of a smaller job.

    Returns
    -------
    list of Part
        One at least; where there is no pair, it has no rows.
    """
    n, follow = len(lengths), 0 if include_self else 1
    lengths = np.asarray(lengths, np.int64)
    partners = n - np.arange(n) - follow
    after = np.cumsum(lengths[::-1])[::-1] - follow * lengths
    row = np.concatenate([[0], np.cumsum(partners)])
    cell = np.concatenate([[0], np.cumsum(lengths * after)])
    rows = checked(rows) or min(
        PART_ROWS, max(int(row[n]) // MIN_PARTS, QUERIES_STEP * n, 1)
    )
    cells = cells or min(PART_CELLS, max(int(cell[n]) // MIN_PARTS, MIN_CELLS))
    return _bands(row, cell, rows, cells, LAST_RATIO)


def cut_search(
    lengths: np.ndarray,
    top: int,
    residues: int,
    rows: int = PART_ROWS,
    cells: int = SEARCH_CELLS,
) -> list[Part]:
    """The parts of a search: some queries against the whole database.

    Parameters
    ----------
    lengths : int64 (n,), of the queries
    top : int
        Rows of a query at most; ``start`` and ``stop`` count so many of each.
    residues : int
        Of the database, about; the same whenever the run goes on.
    rows, cells : int
        Of a part at most, unless a single query has more.
    """
    lengths = np.asarray(lengths, np.int64)
    row = np.arange(len(lengths) + 1, dtype=np.int64) * top
    cell = np.concatenate([[0], np.cumsum(lengths * max(residues, 1))])
    return _bands(row, cell, rows, cells)


def _bands(
    row: np.ndarray, cell: np.ndarray, rows: int, cells: int, most: float = 1
) -> list[Part]:
    """Some queries a part; ``row`` and ``cell`` count those of all queries before; the
    last is up to ``most`` parts."""
    bands, first, n = [], 0, len(row) - 1
    totals = (row, rows), (cell, cells)
    while row[first] < row[n] or not bands:
        last = min(_reach(total, first, limit) for total, limit in totals)
        if all(total[n] - total[first] <= most * limit for total, limit in totals):
            last = n
        last = max(last, min(first + 1, n))
        if last < n and last - first > QUERIES_STEP:
            last = first + (last - first) // QUERIES_STEP * QUERIES_STEP
        start, stop = int(row[first]), int(row[last])
        part_cells = int(cell[last] - cell[first])
        bands.append(Part(len(bands), first, last, start, stop, part_cells))
        first = last
    return bands


def cut_of(task: Task, rows: int | None = None) -> list[Part]:
    """The parts of a task of all pairs of a set.

    Raises
    ------
    UsageError
        ``rows`` below 1.
    """
    return cut(task.queries.lengths, task.include_self, rows)


def checked(rows: int | None) -> int | None:
    """Rows of a part, None where none are asked for.

    Raises
    ------
    UsageError
        Below 1.
    """
    check_whole("part_rows", rows)
    return rows and min(rows, MOST_ROWS)


def shard(parts: list[Part], k: int, n: int) -> list[Part]:
    """The k-th of n shares, from 1: parts by LPT on n machines that are alike; no
    machine beyond the number of parts has one.

    Raises
    ------
    UsageError
        There is no such share.
    """
    if not 1 <= k <= n:
        raise UsageError(f"shard {k} of {n}: from 1 to the number of shards")
    if k > len(parts):
        return []
    machines = min(n, len(parts))
    taken = schedule.plan([part.cells for part in parts], machines).windows[k - 1]
    return [parts[index] for index in sorted(taken)]


def _reach(total: np.ndarray, first: int, limit: int) -> int:
    """The largest end up to which the running total grows by the limit at most."""
    return int(np.searchsorted(total, total[first] + limit, "right")) - 1


def tasks_of(task: Task, part: Part, reserved: int) -> tuple[Task, list[Task]]:
    """The task whose result are the rows of a part, and those that compute them.

    Of two sets that is one task. Of one set it is one where its queries are few beside
    those they meet: they meet each other twice then. Else two: the queries against all
    that follow the part, and those of the part among themselves.

    reserved : bytes of results in memory while parts are at work
    """
    n = task.shape[0]
    if (part.first, part.last) == (0, n):
        whole = replace(task, reserved=reserved)
        return whole, [whole]
    if task.kind == "cross":
        letters = max(len(task.queries.codes), len(task.targets.codes))
        whole = WholeJob(task.job.most, task.job.cells, task.shape[1], letters)
        band = task.queries.between(part.first, part.last)
        rows = replace(task, queries=band, whole=whole, reserved=reserved)
        return rows, [rows]
    longest = int(task.queries.lengths.max(initial=0))
    whole = WholeJob((longest, longest), task.job.cells, n, len(task.queries.codes))
    same = replace(task, whole=whole, reserved=reserved)
    band = task.queries.between(part.first, part.last)
    rows = replace(same, queries=band, targets=task.queries.between(part.first, n))
    if len(band) * MIN_TARGET_RATIO <= len(rows.targets):
        rows = replace(rows, once=False)
        return rows, [rows]
    corner = replace(same, queries=band, targets=band, size=n - part.first)
    if part.last == n:
        return replace(corner, size=None), [corner]
    rest = task.queries.between(part.last, n)
    square = replace(corner, kind="cross", targets=rest, shift=len(band))
    return rows, [square, corner]


def parts_held(devices: int) -> int:
    """Parts whose rows are in memory at a time, while some devices compute."""
    return pipeline.PARTS_AHEAD * max(devices, 1) + pipeline.WRITERS


def reserved_bytes(task: Task, parts: list[Part], count: int) -> int:
    """Bytes of the ``count`` largest parts, all rows kept."""
    rows = sorted((part.stop - part.start for part in parts), reverse=True)
    return sum(rows[:count]) * COLUMN_BYTES[task.output]
