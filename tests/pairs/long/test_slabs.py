"""A table in slabs of columns: the path of one table, also after an interruption."""

from functools import partial

import numpy as np
import pytest
from long_cases import (
    TILE,
    answer,
    have_long_pairs,
    have_small_blocks,
    pair_of,
    sequences,
    texts,
    wanted,
)

import jaxalign
from jaxalign.io import runs
from jaxalign.io.runs import SavedRun
from jaxalign.model.scoring import Scoring, as_scoring
from jaxalign.options import PairOptions
from jaxalign.pairs import jobs
from jaxalign.pairs.long import align
from jaxalign.pairs.long import align as long_align
from jaxalign.pairs.long import fill as tile_fill
from jaxalign.pairs.long.align import Halves, Slabs
from jaxalign.pairs.long.fill import fill_by_tiles
from jaxalign.pairs.plan import SavedState

SOME = Slabs(9000, 8)


class Killed(Exception):
    """A run ends."""


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    have_small_blocks(monkeypatch)


class Counted:
    """A fill that counts blocks of all rows, and ends the run before one of them."""

    def __init__(self, rows, last=10**9):
        self.rows, self.last, self.slabs = rows, last, 0

    def __call__(self, pair, block, *args, **options):
        if block.rows == self.rows and "share" in options:
            if self.slabs == self.last:
                raise Killed
            self.slabs += 1
        return fill_by_tiles(pair, block, *args, tile=TILE, **options)


def test_the_first_of_equal_local_ends_in_any_slab():
    """Of ends with the score, the first row wins, then the first column, whichever slab
    they are in, and whether a fill names a cell or rows and columns around it."""
    word, gap = np.arange(12, dtype=np.uint8), np.full(40, 18, np.uint8)
    query = np.concatenate([gap[:9], word, gap[:30], word])
    target = np.concatenate([word, gap, word, gap, word])
    pair = pair_of(query, target, as_scoring(Scoring()), "local")

    def vague(pair, block, *args, **options):
        grid = fill_by_tiles(pair, block, *args, tile=TILE, **options)
        if block.rows < pair.m or "share" not in options:
            return grid
        spots = tuple(
            long_align.Spot(
                x.score, (1, pair.m), (block.j + 1, block.j + block.columns)
            )
            for x in grid.spots
        )
        return long_align.replace(grid, spots=spots)

    for fill in (partial(fill_by_tiles, tile=TILE), vague):
        for cells in (3000, 4000, 10**9):
            found = answer(pair, False, fill, slabs=Slabs(cells, 9))
            assert found == wanted(pair, "local", frozenset())


@pytest.mark.parametrize("paths", [True, False])
@pytest.mark.parametrize(
    "last", [1, *(pytest.param(x, marks=pytest.mark.slow) for x in (0, 3))]
)
def test_a_run_goes_on(tmp_path, monkeypatch, paths, last):
    """From a file, after its last slab, with slabs of another size too."""
    monkeypatch.setattr(runs, "EVERY", -1.0)
    pair = pair_of(*sequences("near", 3), as_scoring(Scoring()), "semiglobal")
    want = wanted(pair, "semiglobal", frozenset())
    for cells in (9000, 5000, 10**9):
        file = SavedRun(str(tmp_path / f"{cells}-{last}"), {"a": 1})
        saved = SavedState({}, file.save)
        with pytest.raises(Killed):
            fill = Counted(pair.m, last)
            long_align.align(pair, fill, paths, slabs=Slabs(9000, 8, saved.part("x")))
        again = SavedState(file.load(True) or {}, file.save)
        fill, slabs = Counted(pair.m), Slabs(cells, 8, again.part("x"))
        cells_told = []
        result = long_align.align(
            pair, fill, paths, progress=cells_told.append, slabs=slabs
        )
        assert result.score == want[0]
        assert sum(cells_told) <= pair.m * pair.n
        if cells == 9000:
            assert fill.slabs == SOME.count(pair.m * pair.n) - last
        if paths:
            assert ["MID"[x] for x in result.steps] == want[3]
            assert (result.end_i, result.end_j) == want[2]


def test_a_pair_that_is_aligned_is_not_filled_again():
    pair = pair_of(*sequences("near", 3), as_scoring(Scoring()), "global")
    for paths in (True, False):
        saved = SavedState()
        slabs = SOME._replace(saved=saved.part("x"))
        fill = partial(fill_by_tiles, tile=TILE)
        one = long_align.align(pair, fill, paths, slabs=slabs)
        assert {*saved.arrays} <= {"x.numbers", "x.steps"}
        again = long_align.align(pair, None, paths, slabs=slabs)
        assert again[:-1] == one[:-1]
        assert (again.steps is None) == (not paths)
        assert not paths or (again.steps == one.steps).all()


def test_as_few_lines_as_one_table_has(monkeypatch):
    """Lines of columns are shared by the slabs; of a score the last one is enough."""
    monkeypatch.setattr(tile_fill, "LINES", 6)
    pair = pair_of(*sequences("random", 3), as_scoring(Scoring()), "global")
    fill = partial(fill_by_tiles, tile=(16, 16))
    for count in (2, 3, 6):
        slabs = Slabs(-(-pair.m * pair.n // count), 6)
        grids = long_align.fill_slabs(pair, pair.n, fill, -(10**9), True, None, slabs)
        assert len(grids) == count
        assert sum(len(grid.columns) for grid in grids) <= 6
        saved = SavedState()
        slabs = slabs._replace(saved=saved)
        grids = long_align.fill_slabs(pair, pair.n, fill, -(10**9), False, None, slabs)
        assert [len(grid.columns) for grid in grids] == [0] * (count - 1) + [1]
        lines = [name for name in saved.arrays if name.endswith(".column_lines")]
        assert lines == [f"{count - 1}.column_lines"]


@pytest.mark.parametrize("mode", ["global", "local", "semiglobal"])
def test_halves_in_slabs_go_on(mode):
    pair = pair_of(*sequences("near", 3), as_scoring(Scoring()), mode)
    want = wanted(pair, mode, frozenset())[0]
    saved = SavedState()
    both = Halves(pair, slabs=SOME._replace(saved=saved))
    both.fill(0, Counted(pair.m))
    with pytest.raises(Killed):
        both.fill(1, Counted(pair.m, 1))
    again = Halves(pair, slabs=SOME._replace(saved=SavedState(dict(saved.arrays))))
    fills = Counted(pair.m), Counted(pair.m)
    assert [again.fill(k, fills[k]) for k in (1, 0)] == [None, want]
    assert fills[0].slabs == 0 and fills[1].slabs > 0


# Jobs --------------------------------------------------------------------------------


@pytest.fixture
def few_cells(monkeypatch):
    """Pairs of some ten thousand cells are long, and have slabs."""
    have_long_pairs(monkeypatch)
    monkeypatch.setattr(align, "SLAB_CELLS", 10_000)
    monkeypatch.setattr(tile_fill, "LINES", 32)


@pytest.mark.parametrize("output", ["score", "alignment"])
def test_a_job_goes_on(few_cells, monkeypatch, output):
    """Of its pairs one is aligned before the interruption."""
    queries, targets = texts()
    named = {"implementation": "wavefront", "output": output}
    options = PairOptions(**named, threads=1, mode="local")
    want = jaxalign.align_pairs(queries, targets, mode="local", output=output,
                                implementation="rows")  # fmt: skip
    fill, count = fill_by_tiles, [0]

    def counted(*args, **given):
        count[0] += "share" in given
        if count[0] == killed:
            raise Killed
        return fill(*args, **given)

    monkeypatch.setattr(tile_fill, "fill_by_tiles", counted)
    plan = jobs.plan_of(queries, targets, None, options)
    saved, killed = SavedState(), 9
    with pytest.raises(Killed):
        jobs.run_plan(plan, options, saved)
    killed, count[0] = 0, 0
    again = SavedState(dict(saved.arrays))
    table = jobs.run_plan(jobs.plan_of(queries, targets, None, options), options, again)
    assert 0 < count[0] < 9
    for name in want.columns:
        assert table[name].tolist() == want[name].tolist(), name
    if output == "alignment":
        assert table.cigar() == want.cigar()
