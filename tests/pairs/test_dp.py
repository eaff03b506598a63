"""Both fills, the end cells, the walk and the packed words, against the oracle.

One test is one compiled program: the loops over free ends, gap costs and matrices are
inside it.
"""

from contextlib import nullcontext
from functools import partial
from itertools import groupby, product
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from cases import END_SETS, GAPS, SWAPPED_OPS, matrices, some_pairs, swap_sides
from draws import pairwise

from jaxalign.affine import Gaps
from jaxalign.model import bounds
from jaxalign.model.scoring import FREE_ENDS, Scoring
from jaxalign.pairs import api
from jaxalign.pairs.dp import directions, matrix_rows, wavefront, window_program
from jaxalign.pairs.dp.sweep import TILE
from jaxalign.pairs.dp.sweep.lane_cells import Constants
from jaxalign.pairs.dp.sweep.lane_fill import Block

LANES, ROWS, SIZE, LETTERS = 16, 80, 80, 24
WILDCARD = 22
DTYPES = ("int16", "int32", "int64")
# All scores and costs times this: values that the next narrower dtype cannot hold.
FACTOR = {"int16": 1, "int32": 2**14, "int64": 2**40}


def precision(dtype):
    return jax.enable_x64(True) if dtype == "int64" else nullcontext()


def settings(local):
    """(mode, free ends) of one compiled program."""
    return [("local", frozenset())] if local else [("global", s) for s in END_SETS]


def cases(rng, local):
    """Settings x gaps, any tie, any matrix; local has one setting, so it repeats."""
    every = list(product(settings(local), GAPS.values())) * (4 if local else 1)
    tables = list(matrices().values())
    for setting, gaps in every:
        yield *setting, gaps, int(rng.integers(2)), tables[rng.integers(len(tables))]


def padded_matrix(S):
    """To one size for all alphabets, so that they share a program."""
    wide = np.full((LETTERS, LETTERS), -9)
    wide[: len(S), : len(S)] = S
    return wide


def problem_of(S, gaps, ends, dtype):
    small = "int8" if dtype == "int16" else dtype
    factor = FACTOR[dtype]
    return window_program.WindowProblem(
        jnp.asarray(S * factor, small),
        Gaps(*(jnp.asarray(g * factor, dtype) for g in gaps)),
        {end: jnp.asarray(end in ends) for end in FREE_ENDS},
        jnp.int32(WILDCARD),
    )


def stacked(sequences, length, dtype=np.uint8):
    """(count, length) codes with rubbish after each end, and int32 lengths."""
    rows = np.full((len(sequences), length), 3, dtype)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    return rows, np.array([len(s) for s in sequences], np.int32)


def packed_block(targets, per_lane):
    """Targets packed by hand, there and back: ``per_lane`` in a lane, no scores."""
    lanes, tiles = len(targets) // per_lane, SIZE // TILE * per_lane
    codes = np.full((tiles * TILE, lanes), LETTERS, np.uint8)
    target = np.zeros((tiles, lanes), np.int32)
    begins = np.zeros((tiles, lanes), bool)
    turn = np.arange(len(targets), dtype=np.int32) % (2 * lanes)
    lane = np.minimum(turn, 2 * lanes - 1 - turn)
    length = np.array([len(t) for t in targets], np.int32)
    used, first = np.zeros(lanes, int), np.zeros_like(lane)
    for t, letters in enumerate(targets):
        k, begin = lane[t], used[lane[t]]
        used[k] += max(1, -(-len(letters) // TILE))
        target[begin : used[k], k], begins[begin, k] = t, True
        first[t] = used[k] * TILE - len(letters)
        codes[first[t] : used[k] * TILE, k] = letters
    places = target, first[target], begins, lane, first, length
    return Block(codes, *places, np.int32(max(used)), np.int32(len(targets)))


def swept(queries, targets, problem, local, shared, tie, **static):
    """One window of a query a lane, or of one query (``shared``): (result, words of
    each pair)."""
    block = packed_block(targets, 2 if shared else 1)
    lanes, columns = block.codes.shape[1], int(block.tiles) * TILE
    query_codes, m = stacked(queries, ROWS)
    wide = 1 if shared else LANES
    query_codes, m_of = query_codes[:wide].T[None], m[None, :wide]
    static = {"rows": 8, "paths": True, "steps": True, "fused": True} | static
    backtrack = jnp.zeros(ROWS // 2 * len(block.codes) * lanes, jnp.uint8)
    ties = np.full((1, LANES), bool(tie))
    result, backtrack = window_program.run_window(
        window_program.load_block(block, problem, local, shared=shared),
        query_codes, m_of, np.zeros(1, np.int32), np.int32(1), ties, problem, backtrack,
        local=local, longest=SIZE, **static,
    )  # fmt: skip
    kept = np.asarray(backtrack)[: ROWS // 2 * columns * lanes]
    wide = np.zeros((ROWS // 2, len(block.codes), lanes), np.uint8)  # one program
    wide[:, :columns] = kept.reshape(-1, columns, lanes)
    words = joined_bytes(wide)
    places = zip(m, block.first, block.length, block.lane, strict=True)
    own = [words[: -(-k // 8), first : first + n, lane] for k, first, n, lane in places]
    return jax.tree.map(np.asarray, result), own


def joined_bytes(pairs):
    """(4 * w, ...) uint8, two cells each -> (w, ...) uint32 words."""
    first, second, third, last = (pairs[k::4].astype(np.uint32) for k in range(4))
    return first << 24 | second << 16 | third << 8 | last


def packed(nibbles):
    """The words of nibbles (m, n), by numpy."""
    m, n = nibbles.shape
    rows = np.zeros((-(-m // 8), 8, n), np.uint32)
    rows.reshape(len(rows) * 8, n)[:m] = nibbles
    shifts = 4 * np.arange(7, -1, -1, dtype=np.uint32)[None, :, None]
    return (rows << shifts).sum(axis=1).astype(np.uint32)


def same_words(words, want, m):
    """Word for word, in the pair's own 4 * ceil(m / 8) * n bytes."""
    assert words.dtype == np.uint32 and words.shape == want.shape
    mask = np.full(want.shape, 0xFFFFFFFF, np.uint32)
    if m % 8:
        mask[-1:] <<= np.uint32(4 * (8 - m % 8))
    np.testing.assert_array_equal(words & mask, want & mask)


def reference(a, b, problem):
    """The oracle's (alignment, nibbles), as ``oracle.align`` puts them together."""
    H, _, _ = oracle.tables(a, b, *problem)
    end = oracle.end_cell(H, *problem[3:])
    nibbles = oracle.directions(a, b, *problem)
    walked = oracle.walk(nibbles, end, *problem[3:])
    return oracle.Alignment(int(H[end]), *walked), nibbles


def swapped_reference(a, b, problem):
    """The oracle's alignment of (b, a), with its two sides swapped back."""
    S, open, ext, mode, ends = problem
    found, _ = reference(b, a, (S.T, open, ext, mode, swap_sides(ends)))
    ops = [(SWAPPED_OPS[op], length) for op, length in found.operations]
    return oracle.Alignment(found.score, found.start[::-1], found.end[::-1], ops), None


def unscaled(score):
    """The score, where a factor was in it."""
    whole, rest = divmod(int(score), FACTOR[str(score.dtype)])
    assert rest == 0
    return whole


def lane_alignment(result, lane):
    walked = result.walked
    steps = walked.steps[0, :, lane]
    steps = steps[steps != 3][::-1]
    ops = [("MID"[op], len(list(run))) for op, run in groupby(steps)]
    start = int(walked.i[0, lane]), int(walked.j[0, lane])
    end = int(result.end_i[0, lane]), int(result.end_j[0, lane])
    return oracle.Alignment(unscaled(result.score[0, lane]), start, end, ops)


def lane_counts(walked, lane):
    names = ("columns", "gap_openings", "gaps", "identities")
    return tuple(int(getattr(walked, name)[0, lane]) for name in names)


def check_lanes(result, words, queries, targets, problem, tie):
    for lane, (a, b) in enumerate(zip(queries, targets, strict=True)):
        want, nibbles = (swapped_reference if tie else reference)(a, b, problem)
        assert lane_alignment(result, lane) == want, (problem[1:], tie, a, b)
        ops = want.operations
        counts = oracle.columns(ops), oracle.gap_openings(ops), oracle.gaps(ops)
        counts += (oracle.identities(a, b, want.start, ops, WILDCARD),)
        assert lane_counts(result.walked, lane) == counts
        if not tie:
            same_words(words[lane], packed(nibbles), len(a))


def test_packed_is_the_oracles():
    rng = np.random.default_rng(2)
    S = padded_matrix(Scoring().scores)
    for m in (0, 5, 8, 19):
        a, b = rng.integers(0, 20, m), rng.integers(0, 20, 7)
        problem = (S, 5, 1, "local", frozenset())
        want, nibbles = reference(a, b, problem)
        assert want == oracle.align(a, b, *problem)
        np.testing.assert_array_equal(packed(nibbles), oracle.words(a, b, *problem))


SWEEPS = pairwise(DTYPES, (True, False), (True, False), corners=[("int16", True, True)])


@pytest.mark.parametrize(
    "dtype, local, shared",
    [SWEEPS[0], *(pytest.param(*x, marks=pytest.mark.slow) for x in SWEEPS[1:])],
)
def test_sweep(dtype, local, shared):
    rng = np.random.default_rng([DTYPES.index(dtype), local, shared])
    for mode, ends, gaps, tie, (letters, S) in cases(rng, local):
        queries, targets = some_pairs(rng, LANES, letters, one_query=shared)
        S = padded_matrix(S)
        with precision(dtype):
            problem = problem_of(S, gaps, ends, dtype)
            out = swept(queries, targets, problem, local, shared, tie)
        assert out[0].score.dtype == dtype
        check_lanes(*out, queries, targets, (S, *gaps, mode, ends), tie)


@pytest.mark.slow
@pytest.mark.parametrize(
    "local, form", [(False, {"rows": 16}), (True, {"fused": False})]
)
def test_sweep_forms(local, form):
    """Strips of 16 rows, and without the calls that make XLA:CPU fast: the same."""
    rng = np.random.default_rng(11)
    for k, (mode, ends) in enumerate(settings(local)[::3]):
        queries, targets = some_pairs(rng, LANES, 20)
        gaps = list(GAPS.values())[k % 4]
        S = padded_matrix(Scoring().scores)
        problem = problem_of(S, gaps, ends, "int16")
        out = swept(queries, targets, problem, local, False, k % 2, **form)
        check_lanes(*out, queries, targets, (S, *gaps, mode, ends), k % 2)


@pytest.mark.slow
@pytest.mark.parametrize("constant", [False, True], ids=["costs", "constant-costs"])
def test_eight_bits_say_when_they_do_not_hold(constant):
    """Up to the bound a score of int8 is the oracle's; beyond it the score found is
    beyond it, too, however often the values have wrapped."""
    rng = np.random.default_rng(13)
    held, upper, beyond = 0, 0, 0
    for _, ends, gaps, _, (letters, S) in cases(rng, local=True):
        scoring = SimpleNamespace(scores=S, open=gaps[0], extend=gaps[1])
        scoring.highest, scoring.lowest = int(S.max()), int(S.min())
        scoring.gap_costs = None
        zero = bounds.least_zero(scoring, "int8") if constant else 0
        high = bounds.narrow_high(scoring, "local", "int8", zero)
        assert high == 127 - zero - S.max()
        assert not bounds.narrow_high(scoring, "global", "int8", zero)
        _, targets = some_pairs(rng, LANES, letters)
        half = len(targets) // 2  # likeness of all degrees
        query = rng.integers(0, letters, SIZE).astype(np.uint8)
        for k in range(half):
            change = rng.random(SIZE) < (k / half) ** 3
            targets[k] = np.where(change, rng.integers(0, letters, SIZE), query)
        S = padded_matrix(S)
        small = problem_of(S, gaps, ends, "int16")
        small = small._replace(gaps=Gaps(*(np.int8(g) for g in gaps)))
        costs = Constants(*map(int, gaps), zero) if constant else None
        found = scores_alone(query, targets, small, costs)
        assert found.dtype == ("int16" if constant else "int8")
        want = [oracle.score(query, b, S, *gaps, "local") for b in targets]
        for got, score in zip(found.tolist(), want, strict=True):
            assert got == score if score <= high else got > high
        held += sum(20 < score <= high for score in want)
        upper += sum(high // 2 < score <= high for score in want)
        beyond += sum(score > high + 84 for score in want)
    assert held > 20 and upper > 20 and beyond > 20


@pytest.mark.parametrize("columns, lanes", [(2 * 64, 8), (80, 4)])
def test_a_database_profile_over_another(columns, lanes):
    """Columns in use have their scores; those far behind them stay."""
    rng = np.random.default_rng(0)
    scores = rng.integers(-4, 12, (5, 5)).astype(np.int8)
    codes = rng.integers(0, 5, (columns, lanes)).astype(np.uint8)
    room = jnp.full((5, columns + 2, lanes), 99, np.int8)
    for used in (0, TILE, 4 * TILE):
        found = matrix_rows.database_profile_in(scores, codes, np.int32(used), room)
        whole = matrix_rows.database_profile(scores, codes)
        np.testing.assert_array_equal(found[:, :used], whole[:, :used])
        np.testing.assert_array_equal(found[:, 64:], room[:, 64:])


def scores_alone(
    query, targets, problem, costs=None, opening=None, paths=False, cell="uint8"
):
    """Local scores of a query, no paths. Global ones by differences where ``opening``
    is given, then also with ``paths``."""
    differences = None if opening is None else cell
    backtrack = jnp.zeros(ROWS // 2 * SIZE * 2 * LANES, jnp.uint8) if paths else None
    shared = problem.costs is None
    block = window_program.load_block(
        packed_block(targets, 2), problem, not differences, shared, None, differences
    )
    codes, m = stacked([query], ROWS)
    result, _ = window_program.run_window(
        block, codes.T[None], m[None], np.zeros(1, np.int32), np.int32(1),
        np.zeros((1, LANES), bool), problem, backtrack, local=not differences,
        rows=8, longest=SIZE, paths=paths, steps=False, fused=True, costs=costs,
        opening=opening,
    )  # fmt: skip
    return np.asarray(result.score[0])


@pytest.mark.parametrize(
    "dtype", ["int16", pytest.param("int32", marks=pytest.mark.slow)]
)
def test_constant_costs(dtype):
    """Gap costs as constants of the program, all lanes in one loop: the oracle's."""
    rng = np.random.default_rng(14)
    S = padded_matrix(Scoring().scores)
    for turn in range(4):
        queries, targets = some_pairs(rng, LANES, 20)
        problem = problem_of(S, (7, 2), set(), dtype)
        costs = Constants(*(int(gap) for gap in problem.gaps))
        found = scores_alone(queries[turn], targets, problem, costs)
        want = [oracle.score(queries[turn], b, S, 7, 2, "local") for b in targets]
        assert [unscaled(score) for score in found] == want


def by_position(problem, query, seed=0):
    """The problem of a profile: the rows of a query, with costs of each."""
    rng, size = np.random.default_rng(seed), len(query)
    scores = np.zeros((2 * ROWS, problem.scores.shape[1]), problem.scores.dtype)
    scores[:size] = np.asarray(problem.scores)[query]
    scores[:size] += rng.integers(-1, 2, scores[:size].shape).astype(scores.dtype)
    extend = rng.integers(0, 4, (2, 2 * ROWS))
    open_e, open_f = extend + rng.integers(0, 6, extend.shape)
    costs = np.stack([open_e, extend[0], open_f, extend[1]])
    return problem._replace(scores=scores, costs=costs.astype(problem.gaps.open.dtype))


@pytest.mark.parametrize(
    "dtype", ["int16", pytest.param("int8", marks=pytest.mark.slow)]
)
def test_costs_by_position(dtype):
    rng = np.random.default_rng(15)
    S = padded_matrix(Scoring().scores)
    zero = -90 if dtype == "int8" else 0
    for turn in range(4):
        queries, targets = some_pairs(rng, LANES, 20)
        query = queries[turn]
        problem = by_position(problem_of(S, (9, 3), set(), "int16"), query, turn)
        gaps = Gaps(*(np.asarray(g, dtype) for g in problem.gaps))
        problem = problem._replace(gaps=gaps, costs=problem.costs.astype(dtype))
        found = scores_alone(query, targets, problem, Constants(0, 0, zero))
        rows, costs = problem.scores[: len(query)], problem.costs[:, : len(query)]
        want = [oracle.position_score(rows, b, costs) for b in targets]
        assert max(want) > 0 or not len(query)
        high = np.iinfo(dtype).max - zero - int(rows.max(initial=0))
        holds = np.array(want) <= high
        np.testing.assert_array_equal(found[holds], np.array(want)[holds])
        assert (found[~holds] > high).all()


def test_window_computes_what_it_is_told_to():
    """The first ``count`` queries, each from its ``start`` in the targets on."""
    rng = np.random.default_rng(12)
    queries, targets = some_pairs(rng, LANES, 4)
    targets = sorted(targets, key=len, reverse=True)
    S = padded_matrix(Scoring().scores)
    problem = problem_of(S, (5, 2), set(), "int32")
    block = window_program.load_block(packed_block(targets, 2), problem, False)
    query_codes, m = stacked(queries[3:6], ROWS)
    query_codes, m = query_codes[..., None], m[:, None]
    start = np.array([0, 9, 0], np.int32)
    result, none = window_program.run_window(
        block, query_codes, m, start, np.int32(2), np.zeros((3, LANES), bool), problem,
        local=False, rows=8, longest=SIZE, paths=False, steps=False, fused=True,
    )  # fmt: skip
    want = [[oracle.score(a, b, S, 5, 2, "global") for b in targets]
            for a in queries[3:5]]  # fmt: skip
    assert none is None and result.walked is None
    scores = np.array([*want, [0] * LANES]) * FACTOR["int32"]
    for found, wanted, first in zip(result.score, scores, start, strict=True):
        np.testing.assert_array_equal(found[first:], wanted[first:])


@pytest.mark.parametrize(
    "dtype, local",
    [
        ("int16", True),
        ("int32", False),
        pytest.param("int64", True, marks=pytest.mark.slow),
    ],
)
def test_wavefront(dtype, local):
    """Under jit and vmap; the words are the sweep's, as both are the oracle's."""
    rng = np.random.default_rng([7, DTYPES.index(dtype), local])
    fill = partial(wavefront.fill, local=local, words=True)
    fill = jax.jit(jax.vmap(fill, in_axes=(0, 0, 0, 0, None, None, None)))
    for mode, ends, gaps, _, (letters, S) in cases(rng, local):
        queries, targets = some_pairs(rng, LANES, letters)
        S = padded_matrix(S)
        with precision(dtype):
            problem = problem_of(S, gaps, ends, dtype)
            (a, m), (b, n) = (stacked(x, SIZE, np.int32) for x in (queries, targets))
            end, words = fill(a, b, m, n, problem.scores, problem.gaps, problem.free)
            end, words = jax.tree.map(np.asarray, (end, words))
        assert end.score.dtype == dtype
        for k, (x, y) in enumerate(zip(queries, targets, strict=True)):
            want, nibbles = reference(x, y, (S, *gaps, mode, ends))
            found = unscaled(end.score[k]), (end.i[k], end.j[k])
            assert found == (want.score, want.end)
            inside = words[k][: -(-len(x) // 8), : len(y)]
            same_words(inside, packed(nibbles), len(x))


# ------------------------------------------------------------------------- directions


def test_pack_and_unpack_are_inverses():
    rng = np.random.default_rng(3)
    nibbles = rng.integers(0, 16, (24, 7)).astype(np.uint8)
    words = directions.pack(jnp.asarray(nibbles))
    assert words.shape == (3, 7) and words.dtype == jnp.uint32
    np.testing.assert_array_equal(directions.unpack(words), nibbles)
    text = "".join(f"{d:x}" for d in nibbles[8:16, 2])
    assert f"{int(words[1, 2]):08x}" == text  # row 0 of a group is the highest
    again = directions.pack(directions.unpack(words))
    np.testing.assert_array_equal(again, words)


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("mode", ["global", "semiglobal", "local"])
def test_boolean_matrices_are_what_they_say(mode, gap):
    """From H, E, F of dp_table, as papers and contract define them."""
    rng = np.random.default_rng(5)
    scoring = Scoring("BLOSUM62", *GAPS[gap])
    a, b = (rng.integers(0, 4, n).astype(np.uint8) for n in (37, 29))
    H, E, F = api.dp_table(a, b, scoring, mode=mode, gaps=True)
    found = api.directions(a, b, scoring, mode=mode)
    h, e, f = (table[1:, 1:] for table in (H, E, F))
    diagonal = h == H[:-1, :-1] + scoring.scores[a][:, b]
    stop = (h == 0) & (mode == "local")
    want = {
        "b_left": ~stop & (diagonal | (h != e)),
        "b_up": ~stop & (diagonal | (h == e)),
        "c_up": e == E[:-1, 1:] - scoring.extend,
        "c_left": f == F[1:, :-1] - scoring.extend,
    }
    for name, matrix in want.items():
        assert found[name].dtype == bool
        np.testing.assert_array_equal(found[name], matrix, err_msg=name)
    bits = [found[name].astype(np.uint8) for name in want]
    nibbles = bits[0] << 3 | bits[1] << 2 | bits[2] << 1 | bits[3]
    unpacked = np.asarray(directions.unpack(jnp.asarray(found["words"])))
    np.testing.assert_array_equal(unpacked[: len(a)], nibbles)
    problem = (scoring.scores, scoring.open, scoring.extend, mode)
    same_words(found["words"], oracle.words(a, b, *problem), len(a))
