"""The kernel of one long pair, in the interpreter: score, end cell and path equal the
oracle's, with and without pruning."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from kernel_cases import lowered, values
from long_cases import answer, score_by_halves, wanted

import kernels_pallas
from jaxalign.affine import Gaps
from jaxalign.pairs.dp.window_program import WindowProblem
from jaxalign.pairs.long import fill as gpu_fill
from jaxalign.pairs.long import path, pruning
from jaxalign.pairs.long.align import Slabs
from jaxalign.pairs.long.blocks import Line, LongPair, TableBlock, whole
from jaxalign.pairs.long.fill import (
    HOST_CELLS,
    arrays_of,
    fill_by_tiles,
    fill_on_gpu,
    sizes_of,
)
from kernels_pallas.core import mosaic, target
from kernels_pallas.pairs import long_fill, long_values

LETTERS, OPEN, EXTEND = 5, 7, 2
ENDS = ("query_start", "query_end", "target_start", "target_end")
slow = pytest.mark.slow


def matrix(match=5):
    scores = np.full((LETTERS, LETTERS), -4, np.int32)
    np.fill_diagonal(scores, [match, 4, match, match + 1, match])
    scores[0, 2] = 1  # not symmetric
    return scores


def pair_of(query, target, mode, free_ends=(), scores=None, costs=(OPEN, EXTEND)):
    scores = matrix() if scores is None else scores
    free = frozenset(ENDS if mode == "semiglobal" else free_ends)
    problem = WindowProblem(
        scores.astype(np.int8),
        Gaps(*map(np.int32, costs)),
        {end: np.asarray(end in free) for end in ENDS},
        np.int32(LETTERS),
    )
    return LongPair(query, target, scores, *costs, free, mode == "local", problem)


def sequences(m, n, near):
    rng = np.random.default_rng(m + n)
    query = rng.integers(0, LETTERS, m).astype(np.uint8)
    if not near:
        return query, rng.integers(0, LETTERS, n).astype(np.uint8)
    target = np.concatenate([query[:40], query[47:], query, query])[:n].copy()
    target[::23] = 1
    return query, target


# Both have bands of 256 rows; those of 16 bits have twice as many lanes, of 4 rows.
WIDE = {"rows": 8, "steps": 32, "packed": False}
NARROW = {"rows": 4, "steps": 64, "packed": True}
FORMS = [WIDE, pytest.param(NARROW, marks=slow)]
names = {id(WIDE): "int32", id(NARROW): "int16"}.get


def form_name(form):
    return names(id(form))


def fill(pair, block, bound_score=pruning.NO_BOUND, form=WIDE, **options):
    """Blocks that are not small by the kernel."""
    run = partial(fill_on_gpu, kernels=kernels_pallas, **form)
    return run(pair, block, bound_score, interpret=mosaic.interpreter(), small=2**15,
               **options)  # fmt: skip


CASES = [
    ("global", (), 700, 330, True),
    pytest.param("local", (), 330, 400, True, marks=slow),
    pytest.param("semiglobal", (), 300, 420, False, marks=slow),
    pytest.param("global", ("query_start", "target_end"), 520, 300, True, marks=slow),
    pytest.param("global", ("target_start", "query_end"), 260, 500, False, marks=slow),
]


@pytest.fixture
def small_blocks(monkeypatch):
    """Lines and bands as close as the kernel has them; all prune."""
    monkeypatch.setattr(pruning, "MIN_CELLS", 0)
    monkeypatch.setattr(path, "ROWS", 256)
    monkeypatch.setattr(path, "LANES", 32)
    monkeypatch.setattr(gpu_fill, "LINE_ROWS", 256)
    monkeypatch.setattr(gpu_fill, "LINE_COLUMNS", 100)


@values
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("form", FORMS, ids=form_name)
@pytest.mark.parametrize("mode, free, m, n, near", CASES)
def test_a_pair_by_blocks(mode, free, m, n, near, form):
    pair = pair_of(*sequences(m, n, near), mode, free)
    want, run = wanted(pair, mode, frozenset(free)), partial(fill, form=form)
    for pruned, threads in ((True, 3), (False, 1)):  # of the path
        assert answer(pair, pruned, run, threads=threads) == want


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
    want, *_ = wanted(pair, mode, frozenset(free))
    for pruned in (True, False):
        assert score_by_halves(pair, pruned, fill) == want


@values
@pytest.mark.parametrize(
    "mode, free, m, n, near",
    [
        ("local", (), 270, 260, True),
        pytest.param("global", ("target_end",), 520, 300, True, marks=slow),
        pytest.param("semiglobal", (), 300, 420, False, marks=slow),
    ],
)
@pytest.mark.usefixtures("small_blocks")
def test_a_pair_in_slabs(mode, free, m, n, near):
    """Their lines are on the host, and the path goes from one to the next."""
    pair = pair_of(*sequences(m, n, near), mode, free)
    found = answer(pair, fill=fill, slabs=Slabs(m * n // 2, 2))
    assert found == wanted(pair, mode, frozenset(free))


@values
@pytest.mark.parametrize("form", FORMS, ids=form_name)
def test_lines_and_pruning(monkeypatch, form):
    """Lines equal those of the fill on a CPU; with the best score as a bound, chunks
    are left out, and the score is the same."""
    monkeypatch.setattr(gpu_fill, "LINE_ROWS", 256)
    monkeypatch.setattr(gpu_fill, "LINE_COLUMNS", 100)
    m, n = (700, 640) if form is WIDE else (1200, 1300)  # chunks are twice as wide
    pair = pair_of(*sequences(m, n, True), "global")
    grid = fill(pair, whole(pair), form=form)
    right = fill_by_tiles(pair, whole(pair), tile=(256, 100))
    assert set(grid.rows) == {*range(256, m, 256), m} == set(right.rows)
    check_lines(grid, right)
    best = int(right.rows[pair.m].h[-1])
    pruned = fill(pair, whole(pair), best, form, keep=False)
    assert pruned.cells < pair.m * pair.n
    assert pruned.rows[pair.m].h[-1] == best


@values
@slow
def test_lines_by_maxima_of_float16(monkeypatch):
    """GPUs before Hopper have no maxima of two int16; global values are at least 0."""
    monkeypatch.setattr(gpu_fill, "LINE_ROWS", 256)
    pair = pair_of(*sequences(400, 500, True), "global")
    with target.made_for(target.AMPERE):
        grid = fill(pair, whole(pair), form=NARROW)
    check_lines(grid, fill_by_tiles(pair, whole(pair), tile=(256, 500)))


def check_lines(grid, right):
    """All lines that two grids share, but the last row, have the same H and gaps."""
    rows, columns = grid.block.rows, grid.block.columns
    sides = (grid.rows, right.rows, columns), (grid.columns, right.columns, rows)
    for lines, others, last in sides:
        shared = (set(lines) & set(others)) - ({rows} if lines is grid.rows else set())
        assert shared
        for number in shared:
            one, other = (x[number].part(0, last) for x in (lines, others))
            assert (one.h == other.h).all()
            assert (one.gap[1:] == other.gap[1:]).all()


def holds(scores, costs, local, rows=4):
    shape = kernels_pallas.LongFill(rows, local, 4, 1, LETTERS + 1, packed=True)
    return kernels_pallas.long_fits_packed(scores, *costs, 10_000, shape)


def launches_of_16_bits(monkeypatch) -> list[bool]:
    """Of each launch to come, whether its values have 16 bits."""
    launches = []

    def stored(function, _):
        def run(*arrays, s, **static):
            launches.append(s.packed)
            return function(*arrays, s=s, **static)

        return run

    monkeypatch.setattr(gpu_fill, "stored", stored)
    return launches


@values
@slow
@pytest.mark.parametrize("costs", [(9, 2), (40, 0)], ids=str)
@pytest.mark.parametrize("mode", ["global", "local"])
def test_values_beyond_16_bits(monkeypatch, mode, costs):
    """Scores of thousands of letters, of the largest matrix that is proved: values less
    the base of a band are what 16 bits hold. Nothing is lost, so nothing runs twice."""
    monkeypatch.setattr(gpu_fill, "LINE_ROWS", 512)
    monkeypatch.setattr(gpu_fill, "LINE_COLUMNS", 400)
    local = mode == "local"
    match = max(k for k in range(5, 80) if holds(matrix(k), costs, local))
    query = np.zeros(1100, np.uint8)
    query[::3], query[700:] = 3, 0
    target = np.concatenate([query[:500], query[540:], np.full(60, 1, np.uint8)])
    pair = pair_of(query, target, mode, (), matrix(match), costs)
    launches = launches_of_16_bits(monkeypatch)
    grid = fill(pair, whole(pair), form=NARROW)
    right = fill_by_tiles(pair, whole(pair), tile=(256, 400))
    assert launches == [True]
    check_lines(grid, right)
    best = grid.spots[0].score if local else int(grid.rows[pair.m].h[-1])
    want = right.spots[0].score if local else int(right.rows[pair.m].h[-1])
    assert best == want


def far_pair(m, n, near, mode):
    """A pair of DNA whose numbers differ by more than 16 bits hold, band by band."""
    rng = np.random.default_rng(m + n)
    query, target = (rng.integers(0, 4, size).astype(np.uint8) for size in (m, n))
    if near:
        target[:m] = query[:n]
        target[::29] = 3
    scores = np.full((4, 4), -3, np.int32)
    np.fill_diagonal(scores, 1)
    return pair_of(query, target, mode, (), scores, (5, 2))


def lost_bands(pair, rows, interpret=None, packed=True):
    """(whether each band tells that values left the range, H of column n)."""
    shape = rows, 64, interpret, packed
    sizes = sizes_of(pair, whole(pair), kernels_pallas, False, *shape)
    arrays, segment = arrays_of(
        pair, whole(pair), pruning.NO_BOUND, kernels_pallas, sizes
    )
    s = sizes.shape
    lines = kernels_pallas.long_block(
        arrays, pair.scores, s, -(-s.chunks // segment), interpret
    )
    lost = np.asarray(lines.lost)[: sizes.bands].astype(bool)
    return lost, np.asarray(lines.columns[0, 0])[: pair.m]


@values
@slow
@pytest.mark.parametrize("mode, near", [("global", False), ("local", True)])
def test_no_band_of_many_chunks_loses_values(mode, near):
    pair = far_pair(500, 4000, near, mode)
    assert not lost_bands(pair, 4, mosaic.interpreter())[0].any()


@pytest.mark.gpu
@pytest.mark.parametrize("rows", [8, 16, 32])
@pytest.mark.parametrize("near", [False, True], ids=["random", "near"])
@pytest.mark.parametrize("mode", ["global", "local"])
def test_no_band_loses_values_on_a_gpu(mode, near, rows):
    """Numbers go beyond 40,000, so bases rise above the first, also in local mode; a
    compiler that forgot a sign told of lost values in nearly all bands."""
    pair = far_pair(60_000, 70_000, near, mode)
    lost, column = lost_bands(pair, rows)
    assert not lost.any()
    right = lost_bands(pair, rows, packed=False)[1]
    assert (column == right).all()


@values
@slow
@pytest.mark.parametrize("mode", ["global", "local"])
def test_values_out_of_range_are_found(monkeypatch, mode):
    """A matrix for which the range of a band is not proved: the kernel tells that
    values were lost, and the block is filled again in int32."""
    monkeypatch.setattr(gpu_fill, "LINE_ROWS", 512)
    monkeypatch.setattr(gpu_fill, "LINE_COLUMNS", 400)
    scores = np.full((LETTERS, LETTERS), -7, np.int32)
    np.fill_diagonal(scores, 45)
    assert not holds(scores, (OPEN, EXTEND), mode == "local")
    query = np.zeros(900, np.uint8)
    pair = pair_of(query, query[:700], mode, (), scores)
    launches = launches_of_16_bits(monkeypatch)
    grid = fill(pair, whole(pair), form=NARROW)
    assert launches == [True, False]
    check_lines(grid, fill_by_tiles(pair, whole(pair), tile=(256, 400)))


def test_blocks_between_lines_are_one_program():
    """A compilation takes seconds, and each block of a path has a size of its own."""
    m = 4_600_000
    pair = pair_of(np.zeros(m, np.uint8), np.zeros(m, np.uint8), "global")
    line = Line(np.zeros(1, np.int32), np.zeros(1, np.int32))
    sizes = (190_000, 190_000), (20_000, 170_000), (100_000, 3_000)
    blocks = [TableBlock(0, 0, *size, line, line) for size in sizes]
    shapes = [
        sizes_of(pair, block, kernels_pallas, True, None, None) for block in blocks
    ]
    assert len({sizes.shape for sizes in shapes}) == 1
    assert len({sizes.bands for sizes in shapes}) == 3


@values
@pytest.mark.parametrize("form", FORMS, ids=form_name)
def test_what_is_pruned_is_minus_infinity(form):
    """Pruned chunks store nothing: what they would have stored is there before."""
    pair = pair_of(*sequences(300, 260, False), "global", ("target_end",))
    interpret = mosaic.interpreter()
    block, far = whole(pair), 10**6
    shape = form["rows"], form["steps"], interpret, form["packed"]
    sizes = sizes_of(pair, block, kernels_pallas, True, *shape)
    arrays, _ = arrays_of(pair, block, far, kernels_pallas, sizes)

    def run(block, scores):
        inputs, top = long_fill.inputs_of(block, scores, sizes.shape)
        return long_fill.fill(inputs, top, sizes.shape, 1, interpret)

    out = jax.jit(run)(arrays, pair.scores)
    assert not out.computed[: sizes.bands].any()
    assert (out.columns == long_values.MINUS_INFINITY).all()
    assert (out.last_row == long_values.MINUS_INFINITY).all()


@pytest.mark.parametrize(
    "rows, local, packed",
    [
        (8, False, False),
        (16, True, True),
        *(
            pytest.param(*x, marks=pytest.mark.slow)
            for x in ((8, True, False), (16, False, True), (32, True, False),
                      (8, False, True), (32, False, False))
        ),
    ],
)  # fmt: skip
def test_it_lowers_to_mosaic_for_a_gpu(rows, local, packed):
    s = kernels_pallas.LongFill(rows, local, 8, 3, 5, 2, 2, last_row=not local,
                                packed=packed)  # fmt: skip
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
    lowered(run, block, array(4, 4))


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("rows", [300, 512, 513, 1024, 8192, 2**19, 2**20])
def test_a_block_for_a_gpu_has_a_line_inside(rows, packed):
    """Or a walk, and the search for the end of a local pair, would fill it for ever."""
    least = HOST_CELLS // rows + 1
    for columns in {least, least + 1, 8191, 8192, 8193, 50_000, 2**17}:
        if rows * columns <= HOST_CELLS:
            continue  # for the host
        pair = far_pair(rows, columns, False, "local")
        shape = kernels_pallas, True, None, None
        sizes = sizes_of(pair, whole(pair), *shape, packed=packed)
        assert sizes.bands > sizes.band_step or columns > sizes.capture


def test_tall_pairs_have_tall_bands():
    """16 rows a lane, of 16 bits where they hold the pair, else of 32."""
    dna = far_pair(2**19, 2**17, False, "global")
    shape = kernels_pallas, False, None, None

    def chosen(pair, packed=None):
        s = sizes_of(pair, whole(pair), *shape, packed=packed).shape
        return s.rows, s.packed

    assert chosen(dna) == (16, True)
    assert chosen(dna, False) == (16, False)
    wide = np.array([[11, -4], [-4, 9]], np.int32)
    protein = pair_of(dna.query % 2, dna.target % 2, "global", (), wide, (11, 1))
    assert chosen(protein) == (16, True)
    steep = pair_of(dna.query % 2, dna.target % 2, "global", (), wide * 5, (50, 1))
    assert chosen(steep) == (16, False)
    low = far_pair(2**17, 2**17, False, "global")
    assert chosen(low) == (8, True)


def test_the_range_is_proven():
    scores = np.array([[1, -3], [-3, 1]])
    assert long_values.long_fits(scores, 5, 2, 2 * 10**7)
    assert not long_values.long_fits(scores, 5, 2, 10**9)
    assert not long_values.long_fits(scores * 60, 5, 2, 1000)  # of 8 bits


@pytest.mark.parametrize("local", [True, False])
def test_the_range_of_16_bits_is_proven(local):
    dna = np.array([[1, -3], [-3, 1]])

    def fits(scores, gap_open, gap_extend, letters=10**7, rows=16, **options):
        s = kernels_pallas.LongFill(rows, local, 4, 9, 3, packed=True, **options)
        return kernels_pallas.long_fits_packed(scores, gap_open, gap_extend, letters, s)

    assert fits(dna, 5, 2)
    assert not fits(dna, 5, 2, 10**9)  # not even int32
    assert not fits(dna, 5, 2, steps=32)  # lane 63 would be two chunks behind
    assert not fits(dna * 25, 80, 20)
    assert fits(dna * 3, 5, 2) == local  # -9 + 5 + 2 is below 0
    assert fits(dna, 2, 3) == local  # the first letter of a gap costs less
    blosum = np.array([[11, -4], [-4, 9]])
    assert fits(blosum, 11, 1) and not fits(blosum, 11, 1, rows=32)
