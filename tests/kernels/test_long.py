"""The kernel of one long pair, in the interpreter: score, end cell and path equal the
oracle's, with and without pruning."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from kernel_cases import values

import kernels_pallas
from jaxalign.affine import Gaps
from jaxalign.pairs.dp.window_program import WindowProblem
from jaxalign.pairs.long import align as long_align
from jaxalign.pairs.long import band, gpu_fill, pruning, tile_fill
from jaxalign.pairs.long.blocks import Line, LongPair, TableBlock, whole
from jaxalign.pairs.long.halves import Halves
from kernels_pallas.core import mosaic
from kernels_pallas.pairs import long_block, long_fill, long_shapes

LETTERS, OPEN, EXTEND = 5, 7, 2
ENDS = ("query_start", "query_end", "target_start", "target_end")
slow = pytest.mark.slow


def pair_of(query, target, mode, free_ends=()):
    scores = np.full((LETTERS, LETTERS), -4, np.int32)
    np.fill_diagonal(scores, [5, 4, 5, 6, 5])
    scores[0, 2] = 1  # not symmetric
    free = frozenset(ENDS if mode == "semiglobal" else free_ends)
    problem = WindowProblem(
        scores.astype(np.int8),
        Gaps(np.int32(OPEN), np.int32(EXTEND)),
        {end: np.asarray(end in free) for end in ENDS},
        np.int32(LETTERS),
    )
    costs = OPEN, EXTEND
    return LongPair(query, target, scores, *costs, free, mode == "local", problem)


def sequences(m, n, near):
    rng = np.random.default_rng(m + n)
    query = rng.integers(0, LETTERS, m).astype(np.uint8)
    if not near:
        return query, rng.integers(0, LETTERS, n).astype(np.uint8)
    target = np.concatenate([query[:40], query[47:], query, query])[:n].copy()
    target[::23] = 1
    return query, target


def fill(pair, block, bound_score=pruning.NO_BOUND, **options):
    """Blocks that are not small by the kernel: 8 rows a lane, 32 steps a chunk."""
    run = partial(gpu_fill.fill, kernels=kernels_pallas, rows=8, steps=32)
    return run(pair, block, bound_score, interpret=mosaic.interpreter(), small=2**15,
               **options)  # fmt: skip


CASES = [
    ("global", (), 700, 330, True),
    pytest.param("local", (), 330, 400, True, marks=slow),
    pytest.param("semiglobal", (), 300, 420, False, marks=slow),
    pytest.param("global", ("query_start", "target_end"), 520, 300, True, marks=slow),
    pytest.param("global", ("target_start", "query_end"), 260, 500, False, marks=slow),
]


@values
@pytest.mark.parametrize("mode, free, m, n, near", CASES)
def test_a_pair_by_blocks(monkeypatch, mode, free, m, n, near):
    monkeypatch.setattr(pruning, "MIN_CELLS", 0)
    monkeypatch.setattr(band, "ROWS", 256)
    monkeypatch.setattr(band, "LANES", 32)
    monkeypatch.setattr(gpu_fill, "LINE_ROWS", 256)
    monkeypatch.setattr(gpu_fill, "LINE_COLUMNS", 100)
    pair = pair_of(*sequences(m, n, near), mode, free)
    score, start, end, operations = oracle.align(
        pair.query, pair.target, pair.scores, OPEN, EXTEND, mode, frozenset(free)
    )
    for pruned in (True, False):
        result = long_align.align(pair, fill, True, pruned)
        assert (result.score, (result.end_i, result.end_j)) == (score, tuple(end))
        assert (result.start_i, result.start_j) == tuple(start)
        steps = "".join("MID"[x] for x in result.steps)
        assert steps == "".join(op * length for op, length in operations)


@values
@pytest.mark.parametrize(
    "mode, free, m, n, near",
    [
        ("global", (), 270, 250, True),
        pytest.param("local", (), 330, 400, True, marks=slow),
        pytest.param("semiglobal", (), 300, 301, False, marks=slow),
        pytest.param("global", ("query_end",), 520, 300, True, marks=slow),
        pytest.param("global", ("target_start",), 260, 500, True, marks=slow),
    ],
)
def test_scores_by_halves(monkeypatch, mode, free, m, n, near):
    monkeypatch.setattr(pruning, "MIN_CELLS", 0)
    pair = pair_of(*sequences(m, n, near), mode, free)
    costs = pair.scores, OPEN, EXTEND, mode, frozenset(free)
    for pruned in (True, False):
        halves = Halves(pair, pruned)
        scores = [halves.fill(number, fill) for number in (0, 1)]
        assert scores == [None, oracle.score(pair.query, pair.target, *costs)]


@values
@pytest.mark.parametrize(
    "mode, free, m, n, near",
    [
        ("local", (), 270, 260, True),
        pytest.param("global", ("target_end",), 520, 300, True, marks=slow),
        pytest.param("semiglobal", (), 300, 420, False, marks=slow),
    ],
)
def test_a_pair_in_slabs(monkeypatch, mode, free, m, n, near):
    """Their lines are on the host, and the path goes from one to the next."""
    monkeypatch.setattr(pruning, "MIN_CELLS", 0)
    monkeypatch.setattr(band, "ROWS", 256)
    monkeypatch.setattr(band, "LANES", 32)
    monkeypatch.setattr(gpu_fill, "LINE_ROWS", 256)
    monkeypatch.setattr(gpu_fill, "LINE_COLUMNS", 100)
    pair = pair_of(*sequences(m, n, near), mode, free)
    score, start, end, operations = oracle.align(
        pair.query, pair.target, pair.scores, OPEN, EXTEND, mode, frozenset(free)
    )
    slabs = long_align.Slabs(m * n // 2, 2)
    result = long_align.align(pair, fill, True, slabs=slabs)
    assert (result.score, (result.end_i, result.end_j)) == (score, tuple(end))
    assert (result.start_i, result.start_j) == tuple(start)
    steps = "".join("MID"[x] for x in result.steps)
    assert steps == "".join(op * length for op, length in operations)


@values
def test_lines_and_pruning(monkeypatch):
    """Lines equal those of the fill on a CPU; with the best score as a bound, chunks
    are left out, and the score is the same."""
    monkeypatch.setattr(gpu_fill, "LINE_ROWS", 256)
    monkeypatch.setattr(gpu_fill, "LINE_COLUMNS", 100)
    pair = pair_of(*sequences(700, 640, True), "global")
    grid = fill(pair, whole(pair))
    right = tile_fill.fill(pair, whole(pair), tile=(256, 100))
    assert set(grid.rows) == {256, 512, 700} == set(right.rows)
    for lines, others in ((grid.rows, right.rows), (grid.columns, right.columns)):
        for number in set(lines) & set(others) - {pair.m}:
            one, other = lines[number].part(0, 600), others[number].part(0, 600)
            assert (one.h == other.h).all()
            assert (one.gap[1:] == other.gap[1:]).all()
    best = int(right.rows[pair.m].h[-1])
    pruned = fill(pair, whole(pair), best, keep=False)
    assert pruned.cells < pair.m * pair.n
    assert pruned.rows[pair.m].h[-1] == best


def test_blocks_between_lines_are_one_program():
    """A compilation takes seconds, and each block of a path has a size of its own."""
    m = 4_600_000
    pair = pair_of(np.zeros(m, np.uint8), np.zeros(m, np.uint8), "global")
    line = Line(np.zeros(1, np.int32), np.zeros(1, np.int32))
    sizes = (190_000, 190_000), (20_000, 170_000), (100_000, 3_000)
    blocks = [TableBlock(0, 0, *size, line, line) for size in sizes]
    shapes = [
        gpu_fill.sizes_of(pair, block, kernels_pallas, True, None, None)
        for block in blocks
    ]
    assert len({sizes.shape for sizes in shapes}) == 1
    assert len({sizes.bands for sizes in shapes}) == 3


@values
def test_what_is_pruned_is_minus_infinity():
    """Pruned chunks store nothing: what they would have stored is there before."""
    pair = pair_of(*sequences(300, 260, False), "global", ("target_end",))
    interpret = mosaic.interpreter()
    block, far = whole(pair), 10**6
    sizes = gpu_fill.sizes_of(pair, block, kernels_pallas, True, 8, 32, interpret)
    arrays, _ = gpu_fill.arrays_of(pair, block, far, kernels_pallas, sizes)

    def run(block, scores):
        inputs, top = long_block.inputs_of(block, scores, sizes.shape)
        return long_fill.fill(inputs, top, sizes.shape, 1, interpret)

    out = jax.jit(run)(arrays, pair.scores)
    assert not out.computed[: sizes.bands].any()
    assert (out.columns == long_shapes.MINUS_INFINITY).all()
    assert (out.last_row == long_shapes.MINUS_INFINITY).all()


@pytest.mark.parametrize(
    "rows, local",
    [
        (8, False),
        (16, True),
        *(
            pytest.param(*x, marks=pytest.mark.slow)
            for x in ((8, True), (16, False), (32, True), (32, False))
        ),
    ],
)
def test_it_lowers_to_mosaic_for_a_gpu(rows, local):
    s = kernels_pallas.LongFill(rows, local, 8, 3, 5, 2, 2, last_row=not local)
    height, width = s.bands * s.band, 4 * s.width

    def array(*shape, dtype=jnp.int32):
        return jax.ShapeDtypeStruct(shape, dtype)

    numbers = (array() for _ in kernels_pallas.LongNumbers._fields)
    block = kernels_pallas.LongBlock(
        kernels_pallas.LongNumbers(*numbers), array(height, dtype=jnp.uint8),
        array(width, dtype=jnp.uint8), array(2, width), array(2, height), array(),
        array(s.bands + 1),
    )  # fmt: skip
    run = partial(kernels_pallas.long_block, s=s, segments=2)
    traced = jax.jit(run).trace(block, array(4, 4))
    assert "mosaic_gpu" in traced.lower(lowering_platforms=("cuda",)).as_text()


def test_the_range_is_proven():
    scores = np.array([[1, -3], [-3, 1]])
    assert long_shapes.long_fits(scores, 5, 2, 2 * 10**7)
    assert not long_shapes.long_fits(scores, 5, 2, 10**9)
    assert not long_shapes.long_fits(scores * 60, 5, 2, 1000)  # of 8 bits
