"""A triple, its tally, the regions of its table and its plan; and its results.

Paths stand one after the other in one array, so that a batch takes as many steps in
Python as one path.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxalign.affine import Gaps
from jaxalign.model.alphabet import Sequences, gather_runs, ranks
from jaxalign.model.scoring import Scoring
from jaxalign.model.triple import TripleTable
from jaxalign.options import TripleOptions
from jaxalign.triples.dp.recurrence import Model, TripleScoring, matrices_in


@dataclass(eq=False)
class Tally:
    """Cells and seconds of a triple while it is computed, of all orders of its axes.

    ``face_bytes`` are those of the chunks, ``listener`` hears the cells so far, and
    ``saved`` is the state of a run that was interrupted, or may be
    (``pairs.plan.SavedState``).
    """

    cells: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    face_bytes: dict[str, int] = field(default_factory=dict)
    listener: Callable[[int], object] | None = None
    saved: Any = None
    lock: Any = field(default_factory=threading.RLock)  # devices fill side by side

    def add(self, cells: int) -> None:
        """Count the cells of a fill, and tell the listener."""
        with self.lock:
            self.cells += cells
            if self.listener:
                self.listener(self.cells)

    @contextmanager
    def timed(self, phase: str):
        """Add the seconds of a block to those of a phase."""
        start = time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        with self.lock:
            self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds


@dataclass(frozen=True, eq=False)
class Triple:
    """A triple in an order of its axes; ``order[n]`` is the caller's number of axis n.

    ``matrices`` are the scores (A, A) of the pairs ab, ac, bc of this order, ``cost``
    the scaled (open, extend). ``kernels`` is ``kernels_pallas.triples.api`` where it
    does the work, else None; ``limit`` the bytes of a device that a launch may take to
    have a size of ``gpu.ROOMS``. Only ``tally`` changes.
    """

    codes: tuple
    order: tuple
    matrices: tuple
    cost: tuple
    dtype: str
    model: Model
    mode: str
    schedule: str
    kernels: Any = None
    limit: int = 0
    tally: Tally = field(default_factory=Tally)

    @cached_property
    def lengths(self):
        a, b, c = self.codes
        return len(a), len(b), len(c)

    def reordered(self, order: Sequence[int]) -> "Triple":
        """The same triple with axis n taken from axis ``order[n]``."""
        return replace(
            self,
            codes=tuple(self.codes[n] for n in order),
            order=tuple(self.order[n] for n in order),
            matrices=matrices_in(order, self.matrices),
        )

    @property
    def scoring(self) -> TripleScoring:
        """Scores and costs as arrays of the score dtype."""
        gaps = Gaps._make(jnp.asarray(cost, self.dtype) for cost in self.cost)
        ab, ac, bc = (jnp.asarray(m, self.dtype) for m in self.matrices)
        return TripleScoring(ab, ac, bc, gaps)


@dataclass(frozen=True)
class Region:
    """The cells from ``low`` to ``high``, both included, of a triple's table, entered
    in state ``start`` and left in state ``end`` (None: any)."""

    low: tuple
    high: tuple
    start: int = 0
    end: int | None = None

    @property
    def cells(self) -> int:
        return prod(n + 1 for n in self.extent)

    @cached_property
    def extent(self):
        """Residues of each axis that the region consumes."""
        (a, b, c), (to_a, to_b, to_c) = self.low, self.high
        return to_a - a, to_b - b, to_c - c


NO_FREE_END = -9  # an index that no cell has
EMPTY_REGION = Region((0, 0, 0), (0, 0, 0))


def whole(triple: Triple) -> Region:
    """All cells of a triple's table."""
    return Region((0, 0, 0), triple.lengths)


@dataclass(frozen=True, eq=False)
class RegionBatch:
    """Regions of triples of one dtype, as arrays: ``triple`` is one of them, whose
    model, mode, matrices, cost and kernels are those of all.

    The sequence on axis n of triple k is ``codes[first[k, n]:][: lengths[k, n]]``.
    ``first``, ``lengths``, ``low`` and ``high`` are int64 (n, 3), ``start`` and ``end``
    (n,) states, -1 for any end.
    """

    triple: Triple
    codes: np.ndarray
    first: np.ndarray
    lengths: np.ndarray
    low: np.ndarray
    high: np.ndarray
    start: np.ndarray
    end: np.ndarray

    def __len__(self) -> int:
        return len(self.first)

    @property
    def extents(self) -> np.ndarray:
        """Residues of each axis that the regions consume, int64 (n, 3)."""
        return self.high - self.low

    @property
    def cells(self) -> np.ndarray:
        """Cells of each region, int64 (n,)."""
        return (self.extents + 1).prod(axis=1)

    def take(self, which: np.ndarray) -> "RegionBatch":
        """Some of the regions, by numbers or by a mask."""
        names = "first", "lengths", "low", "high", "start", "end"
        return replace(self, **{name: getattr(self, name)[which] for name in names})

    def letters(self, reverse: bool = False) -> list[np.ndarray]:
        """Along each axis the codes of all regions, one after the other."""
        counts, out = self.extents, []
        for n in range(3):
            places = ranks(counts[:, n])
            from_ = self.high[:, n] - 1 if reverse else self.low[:, n]
            first = np.repeat(self.first[:, n] + from_, counts[:, n])
            out.append(self.codes[first - places if reverse else first + places])
        return out

    def padded(
        self, sizes: Sequence[int], before: int, letters: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """Along each axis the codes of a region a row, uint8 (n, size), zeros around
        them."""
        rows = []
        for size, of_side, counts in zip(sizes, letters, self.extents.T, strict=True):
            padded = np.zeros((len(self), size), np.uint8)
            at = np.arange(size) - before
            padded[(at >= 0) & (at < counts[:, None])] = of_side
            rows.append(padded)
        return rows

    def free_ends(self, reverse: bool = False) -> np.ndarray:
        """Indices of the axes, from the starts of the regions (reversed: the ends), at
        which a gap is free, (2, n, 3); negative where there is none."""
        if self.triple.mode != "semiglobal":
            return np.full((2, len(self), 3), NO_FREE_END)
        if reverse:
            return np.stack([self.high, self.high - self.lengths])
        return np.stack([-self.low, self.lengths - self.low])


def batch_of(triple: Triple, region: Region) -> RegionBatch:
    """One region of a triple as a batch."""
    lengths = np.array([triple.lengths])
    ends = np.cumsum(lengths, axis=1)
    end = -1 if region.end is None else region.end
    return RegionBatch(
        triple,
        np.concatenate(triple.codes),
        ends - lengths,
        lengths,
        np.array([region.low]),
        np.array([region.high]),
        np.array([region.start]),
        np.array([end]),
    )


def free_ends(triple: Triple, region: Region, reverse: bool = False) -> np.ndarray:
    """``RegionBatch.free_ends`` of one region, (2, 3)."""
    return batch_of(triple, region).free_ends(reverse)[:, 0]


@dataclass(frozen=True, eq=False)
class TriplePlan(Mapping[str, Any]):
    """Plan of one triple, or of a batch of one shape: the implementation that fills its
    boxes, how its path is traced back (None: not at all), and the bytes needed.

    It reads like a dict, ``plan["cells"]``; ``print`` shows one figure per line.
    """

    cells: int
    gap_model: str
    states: int
    implementation: str
    schedule: str
    traceback: str | None
    dtype: str
    bytes: int
    budget_bytes: int

    def __getitem__(self, name: str) -> Any:
        return vars(self)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def __len__(self) -> int:
        return len(vars(self))

    def __str__(self) -> str:
        lines = (f"{name.replace('_', ' ')}: {x}" for name, x in self.items())
        return "\n".join(lines)


class Solution(NamedTuple):
    """Scores of regions, int64 (n,), ``low`` and ``high`` (n, 3) of the regions that
    they belong to, the ``cells`` (n,) that were filled, and with paths ``steps``, uint8
    columns from start to end, one path after the other, and ``counts`` (n,) of them."""

    score: np.ndarray
    low: np.ndarray
    high: np.ndarray
    cells: np.ndarray
    steps: np.ndarray | None = None
    counts: np.ndarray | None = None


def solution_of(
    score: int, region: Region, cells: int, columns: np.ndarray | None
) -> Solution:
    """The solution of one region."""
    ends = np.array([region.low]), np.array([region.high])
    arrays = np.array([score]), *ends, np.array([cells])
    if columns is None:
        return Solution(*arrays)
    return Solution(*arrays, columns, np.array([len(columns)]))


def table_of(
    sequences: Sequences,
    scoring: Scoring,
    options: TripleOptions,
    orders: np.ndarray,
    numbers: Sequence[np.ndarray],
    solutions: Sequence[Solution],
    jobs: Sequence[dict[str, Any]],
) -> TripleTable:
    """The results of triples in the order of input: rows in the caller's order, scores
    unscaled.

    ``orders`` (triples, 3) are those of all, ``numbers`` the triples of each solution,
    and ``jobs`` what is told of each.
    """
    order = np.concatenate([np.zeros(0, np.intp), *numbers])
    back = np.argsort(order)
    arrays: list[Any] = [EMPTY_SOLUTION, *(solution[:4] for solution in solutions)]
    score, low, high, cells = (
        np.concatenate(each)[back] for each in zip(*arrays, strict=True)
    )
    job = np.repeat(np.arange(len(jobs)), list(map(len, numbers)))[back]
    table = TripleTable(
        sequences,
        scoring,
        options.gap_model,
        options.mode,
        score if scoring.scale == 1 else score / scoring.scale,
        cells,
        tuple(jobs),
        job,
    )
    if options.traceback is None:
        return table
    # Axis n of a triple is the caller's orders[n].
    spans = np.empty((len(order), 3, 2), np.int64)
    np.put_along_axis(spans, orders[:, :, None], np.stack([low, high], axis=2), axis=1)
    paths: list[Any] = [(solution.steps, solution.counts) for solution in solutions]
    counts = np.concatenate([np.zeros(0, np.int64), *(count for _, count in paths)])
    steps = np.concatenate([np.zeros(0, np.uint8), *(steps for steps, _ in paths)])
    offsets = np.concatenate([[0], np.cumsum(counts)])
    steps, offsets = gather_runs(steps, offsets, back)
    bits = (4 >> orders).astype(np.uint8)
    turned = np.zeros(len(steps), np.uint8)
    for axis in range(3):
        bit = np.repeat(bits[:, axis], np.diff(offsets))
        turned |= bit * ((steps >> (2 - axis)) & 1)
    return replace(table, spans=spans, steps=turned, offsets=offsets)


EMPTY_SOLUTION = Solution(
    np.zeros(0, np.int64),
    np.zeros((0, 3), np.int64),
    np.zeros((0, 3), np.int64),
    np.zeros(0, np.int64),
)[:4]


def gapped_rows(gap: int, letters: Sequence[np.ndarray], steps: np.ndarray):
    """Of each sequence the rows of all paths, uint8 codes, ``gap`` for a gap."""
    rows = np.full((3, len(steps)), gap, np.uint8)
    for axis, row in enumerate(rows):
        row[steps & (4 >> axis) > 0] = letters[axis]
    return rows
