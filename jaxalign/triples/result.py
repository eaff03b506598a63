"""A triple, its tally, the regions of its table and its plan; and its results.

Paths stand one after the other in one array, so that a batch takes as many steps in
Python as one path.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import accumulate
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxalign.affine import Gaps
from jaxalign.model.scoring import Scoring
from jaxalign.model.triple import TripleAlignment
from jaxalign.triples.dp.recurrence import Model, TripleScoring, matrices_in

Three = tuple[str, str, str]


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

    def add(self, cells: int) -> None:
        """Count the cells of a fill, and tell the listener."""
        self.cells += cells
        if self.listener:
            self.listener(self.cells)

    @contextmanager
    def timed(self, phase: str):
        """Add the seconds of a block to those of a phase."""
        start = time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds


@dataclass(frozen=True, eq=False)
class Triple:
    """A triple in an order of its axes; ``order[n]`` is the caller's number of axis n.

    ``matrices`` are the scores (A, A) of the pairs ab, ac, bc of this order, ``cost``
    the scaled (open, extend). ``kernels`` is ``kernels_pallas.triples.api`` where it
    does the work, else None. Only ``tally`` changes.
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


def free_ends(triple: Triple, region: Region, reverse: bool = False):
    """Indices of a region's axes, from its start (reversed: its end), at which a gap is
    free, twice three; negative where there is none."""
    if triple.mode != "semiglobal":
        return ((NO_FREE_END,) * 3,) * 2
    if reverse:
        pairs = zip(region.high, triple.lengths, strict=True)
        return region.high, tuple(high - x for high, x in pairs)
    pairs = zip(region.low, triple.lengths, strict=True)
    return tuple(-low for low in region.low), tuple(x - low for low, x in pairs)


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


class ScoredPath(NamedTuple):
    """A score, the region it belongs to, and its path: the columns from start to end,
    or None for scores alone."""

    score: int
    region: Region
    columns: np.ndarray | None = None


def alignments(
    texts: Sequence[Three],
    names: Sequence[Three],
    scoring: Scoring,
    plan: TriplePlan,
    triples: Sequence[Triple],
    paths: Sequence[ScoredPath],
) -> list[TripleAlignment]:
    """The results of triples from their ``ScoredPath``: rows in the caller's order,
    scores unscaled."""
    _, regions, columns = zip(*paths, strict=True)
    alphabet, rows, out = scoring.alphabet, None, []
    if columns[0] is not None:  # the gapped rows of every path, as texts
        steps, bounds = joined(columns)
        ascii_of = np.frombuffer((alphabet.letters + "-").encode(), np.uint8)
        gapped = gapped_rows(alphabet.size, letters_of(triples, regions), steps)
        a, b, c = (ascii_of[row].tobytes().decode() for row in gapped)
        pairs = zip(*bounds.tolist(), strict=True)
        rows = [(a[at:to], b[at:to], c[at:to]) for at, to in pairs]
    for n, (triple, (score, region, _)) in enumerate(zip(triples, paths, strict=True)):
        back, tally = _back(triple.order), triple.tally
        spans = tuple(zip(back(region.low), back(region.high), strict=True))
        alignment = TripleAlignment(
            sequences=texts[n],
            names=names[n],
            score=score if scoring.scale == 1 else score / scoring.scale,
            gapped=None if rows is None else back(rows[n]),
            spans=None if rows is None else spans,
            scoring=scoring,
            gap_model=triple.model.name,
            mode=triple.mode,
            schedule=plan.schedule,
            traceback=plan.traceback,
            implementation=plan.implementation,
            cells=tally.cells,
            seconds=dict(tally.seconds),
            bytes=tally.face_bytes | {"planned": plan.bytes},
        )
        out.append(alignment)
    return out


@cache
def _back(order: tuple[int, ...]):
    """Three things in the order of the axes -> in the caller's."""
    return itemgetter(*(order.index(n) for n in range(3)))


def letters_of(
    triples: Sequence[Triple], regions: Sequence[Region], reverse: bool = False
) -> list[np.ndarray]:
    """Along each axis the codes of all regions, one after the other."""
    step, pairs = -1 if reverse else 1, list(zip(triples, regions, strict=True))
    return [
        np.concatenate([t.codes[n][p.low[n] : p.high[n]][::step] for t, p in pairs])
        for n in range(3)
    ]


def gapped_rows(gap: int, letters: Sequence[np.ndarray], steps: np.ndarray):
    """Of each sequence the rows of all paths, uint8 codes, ``gap`` for a gap."""
    rows = np.full((3, len(steps)), gap, np.uint8)
    for axis, row in enumerate(rows):
        row[steps & (4 >> axis) > 0] = letters[axis]
    return rows


def joined(paths: Sequence[np.ndarray]):
    """(all columns, (starts, ends) of the paths in them)."""
    ends = np.fromiter(accumulate(map(len, paths), initial=0), np.intp)
    return np.concatenate(paths), np.stack([ends[:-1], ends[1:]])
