"""The static shape of a launch over triples, and the arrays that it takes."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from kernels_pallas.core.mosaic import THREADS
from kernels_pallas.core.target import Target, this_target
from kernels_pallas.triples.rules import LINEAR, Rule

WARPS = THREADS // 32
MAX_CODES = 32  # letters of a score table; the last stands for "none"
PAD_CODE = MAX_CODES - 1
MINUS_INFINITY = -(2**29)
SEED_WORDS = 8  # words: X of cell (0, 0, 0), and D
# At a time on a multiprocessor: fewer programs wait for each other's batches, more for
# arithmetic.
RESIDENT_PROGRAMS = 2


class Shape(NamedTuple):
    """Static shape of a launch.

    ``rows`` (R) and ``columns`` (C, 4 or 8) of a thread's tile, ``batch`` steps between
    two barriers, ``blocks`` programs along i and j of each of ``triples``, ``deep``
    letters along k at most. ``layer`` and ``bytes`` say which scores are stored.
    """

    rule: Rule
    rows: int
    columns: int
    batch: int
    blocks: tuple
    deep: int
    triples: int = 1
    layer: bool = True
    bytes: bool = False
    backwards: bool = False
    early: int = 2  # steps between reading memory and needing it
    unroll: int = 2  # steps a turn of the loop
    plain: bool = False

    @property
    def sides(self):
        """Cells of a program along i and along j."""
        return WARPS * self.rows, 32 * self.columns

    @property
    def front(self):
        """Steps before k = 0 that are computed in vain."""
        return (WARPS - 1) * self.batch + 32

    @property
    def steps(self):
        """Steps that arrays have room for."""
        return self.front + self.deep + 1 + 31 + WARPS * self.batch + self.early

    @property
    def strips(self):
        return self.blocks[0] * WARPS

    @property
    def slot(self):
        """Words of a west face for one k: corners, up to four; R rows of each plane."""
        return 4 + self.rule.planes * self.rows

    @property
    def programs(self):
        return self.triples * self.blocks[0] * self.blocks[1]

    @property
    def face(self):
        """Cells (i, j) of a table, padded."""
        return self.strips * self.rows, self.blocks[1] * self.sides[1]


class Arrays(NamedTuple):
    """int32. ``sizes`` (triples, 4): la, lb, lc, 0; letters a, b, c (triples, room);
    ``scores`` (triples, 3, 32, 32) of ab, ac, bc; ``seeds`` (triples, 8): X at cell
    (0, 0, 0) in the order of ``triples.rules.COLUMNS``, and D."""

    sizes: jax.Array
    a: jax.Array
    b: jax.Array
    c: jax.Array
    scores: jax.Array
    seeds: jax.Array


def shape_of(lengths, rule=LINEAR, rows=None, columns=4, batch=None, triples=1,
             target: Target | None = None, **more: Any) -> Shape:  # fmt: skip
    """The shape for sequences of at most these three lengths; ``target`` is the GPU,
    that of JAX's first device by default."""
    la, lb, lc = lengths
    if rule.states > 1:  # registers are few
        more = {"early": 1, "unroll": 1} | more
    rows = rows or (8 if rule.states == 1 else 4)
    sides = WARPS * rows, 32 * columns
    blocks = -(-(la + 1) // sides[0]), -(-(lb + 1) // sides[1])
    # A quasi-natural step takes so long that the waits at its barriers count for less.
    resident = RESIDENT_PROGRAMS * (target or this_target()).cores
    few = triples * blocks[0] * blocks[1] < resident or rule.states > 1
    batch = batch or (4 if few else 8)
    return Shape(rule, rows, columns, batch, blocks, lc, triples, **more)


def table_of(scores, extend):
    """Scores (A, A) of a pair -> int32 (32, 32) for a fill; letters past A score 0."""
    scores = jnp.asarray(scores, jnp.int32) + 2 * jnp.asarray(extend, jnp.int32)
    spare = MAX_CODES - scores.shape[0]
    return jnp.pad(scores, ((0, spare), (0, spare)))


def arrays_of(s: Shape, letters, sizes, scores, seeds) -> Arrays:
    """Letters (triples, length) of a, b, c, garbage past their lengths; sizes
    (triples, 3)."""
    room = *s.face, s.steps
    front = 1, 1, s.front + 1
    rows = []
    for n in range(3):
        count = min(letters[n].shape[1], room[n] - front[n])
        inside = jnp.arange(count, dtype=jnp.int32)[None] < sizes[:, n : n + 1]
        codes = jnp.where(inside, letters[n][:, :count].astype(jnp.int32), PAD_CODE)
        after = room[n] - front[n] - count
        rows.append(
            jnp.pad(codes, ((0, 0), (front[n], after)), constant_values=PAD_CODE)
        )
    sizes = jnp.pad(sizes, ((0, 0), (0, 1)))
    a, b, c = rows
    return Arrays(sizes, a, b, c, scores, seeds)


def face_sizes(s: Shape) -> tuple[int, int, int]:
    """Words of the north faces, the west faces, the layer."""
    north = s.triples * s.steps * s.face[1] * s.rule.planes
    west = s.triples * s.strips * s.steps * s.slot
    layer = s.triples * s.rule.states * s.face[0] * s.face[1] if s.layer else 4
    return north, west, layer


def bytes_size(s: Shape) -> int:
    """Words of the lowest bytes of all H."""
    each = 32 * s.rows * s.columns // 4 * s.rule.states
    return s.triples * s.blocks[1] * s.strips * s.steps * each if s.bytes else 4


def fill_bytes(s: Shape) -> int:
    """Device bytes of a fill: faces, stored scores, letters."""
    letters = s.triples * (sum(s.face) + s.steps + 4 + SEED_WORDS)
    return 4 * (sum(face_sizes(s)) + bytes_size(s) + letters + s.programs)
