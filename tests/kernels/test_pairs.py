"""The Pallas kernels lower for CUDA anywhere; their values are those of the oracle in
the GPU interpreter (JAX 0.11 or newer) and, marked ``gpu``, on a device."""

from dataclasses import replace
from itertools import cycle, product

import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from kernel_cases import (
    ENDS,
    KINDS,
    LETTERS,
    SETS,
    aligned,
    check_paths,
    check_scores,
    edge_lengths,
    lower,
    matrix,
    name,
    padded,
    shape_of,
    values,
)

import kernels_pallas as kp
from kernels_pallas.core import mosaic
from kernels_pallas.core.target import AMPERE
from kernels_pallas.pairs import config
from kernels_pallas.pairs.config import NO_QUERY, stacked_strips


def only(kind):
    """All kinds, but only one of them in the quick part of the suite."""
    slow = pytest.mark.slow
    return [k if k == kind else pytest.param(k, marks=slow) for k in KINDS]


TRACKS = pytest.mark.parametrize(
    "tracks", (1, pytest.param(2, marks=pytest.mark.slow)), ids=("one", "two")
)

# Lowering, on any machine and every JAX


FEW_KINDS = [((True, True, True), False), ((False, False, False), True)]


@pytest.mark.parametrize(
    "kind, paths",
    [
        *FEW_KINDS,
        *(
            pytest.param(kind, k % 2 > 0, marks=pytest.mark.slow)
            for k, kind in enumerate(KINDS[1:-1])
        ),
    ],
    ids=lambda x: name(x) if isinstance(x, tuple) else str(x),
)
@pytest.mark.parametrize("tracks", (1, 2))
def test_lowers_for_cuda(kind, paths, tracks):
    s = shape_of(kind, 8, 16, tile=8 * paths, tracks=tracks)
    assert "mosaic_gpu" in lower(replace(s, plain=False))


@pytest.mark.parametrize("local", (True, pytest.param(False, marks=pytest.mark.slow)))
def test_the_positions_of_a_profile_lower(local):
    s = kp.choose(512, local=local, packed=True)
    assert "mosaic_gpu" in lower(s, 512, score_rows=512)


@pytest.mark.parametrize(
    "length, local", [(10000, True), pytest.param(5000, False, marks=pytest.mark.slow)]
)
def test_the_shape_for_long_queries_lowers(length, local):
    """Mosaic refuses what shared memory cannot hold."""
    s = kp.choose(length, local=local, packed=True)
    assert "mosaic_gpu" in lower(s, length)


@pytest.mark.slow
@pytest.mark.parametrize("local, packed", [(True, True), (False, False)])
def test_the_shapes_for_few_queries_lower(local, packed):
    columns = config.STACKED_COLUMNS if local else config.STEP_COLUMNS
    shapes = config.STACKED_SHAPES if local else config.FEW_QUERY_SHAPES
    for rows, lanes, *_ in shapes:
        s = kp.Fill(rows, lanes, columns, local, packed, stacks=2 if local else 0)
        assert "mosaic_gpu" in lower(s, 2000, queries=5)


# Values, in the interpreter


@values
@pytest.mark.parametrize(
    "kind, tracks",
    [(kind, 1) for kind in KINDS]
    + [pytest.param(KINDS[k], 2, marks=pytest.mark.slow) for k in (0, 1, 4, 7)],
    ids=lambda x: name(x) if isinstance(x, tuple) else str(x),
)
def test_scores_of_all_lengths(kind, tracks):
    s = shape_of(kind, tracks=tracks)
    check_scores(s, *edge_lengths(s), free=ENDS[1:3] * (tracks - 1))


@values
@pytest.mark.parametrize("local, packed", list(product((True, False), repeat=2)))
def test_a_row_of_scores_for_each_position(local, packed):
    """The rows that a query's letters have, in place of the letters."""
    rng, s = np.random.default_rng(4), shape_of((local, packed, True))
    m, n = [s.strip + 5] * 2, [0, 1, 30, 17]
    q, t = padded(rng, m[:1]).repeat(2, 0), padded(rng, n)
    by_position = np.zeros((64, len(matrix())), np.int32)
    by_position[: m[0]] = matrix()[q[0]]
    ends = () if local else ("query_start", "target_end")
    want = aligned(s, q, m, t, n, matrix(), (7, 2), ends).score
    found = aligned(s, 0 * q, m, t, n, by_position, (7, 2), ends).score
    np.testing.assert_array_equal(found, want)


@values
@pytest.mark.slow
@pytest.mark.parametrize("local, packed", [(True, True), (False, False)])
def test_paths_of_a_row_of_scores_for_each_position(local, packed):
    rng, s = np.random.default_rng(4), shape_of((local, packed, True), 8, 16, tile=3)
    m, n = [s.strip + 5] * s.tables, [0, 1, 30, 17, 90]
    q, t = padded(rng, m[:1]).repeat(len(m), 0), padded(rng, n)
    t[4, :90] = np.resize(q[0], 90)
    by_position = np.zeros((200, len(matrix())), np.int32)
    by_position[: m[0]] = matrix()[q[0]]
    ends = () if local else ("query_start", "target_end")
    want = aligned(s, q, m, t, n, matrix(), (7, 2), ends, runs=64)
    found = aligned(s, q, m, t, n, by_position, (7, 2), ends, runs=64)
    for column, values_of in want._asdict().items():
        np.testing.assert_array_equal(getattr(found, column), values_of, column)


@values
@pytest.mark.parametrize(
    "packed, stacks, target",
    [
        (True, 1, kp.HOPPER),
        *(
            pytest.param(*x, marks=pytest.mark.slow)
            for x in product((True, False), (0, 1), (kp.HOPPER, AMPERE))
            if x != (True, 1, kp.HOPPER)
        ),
    ],
)
def test_gap_costs_by_position(packed, stacks, target):
    """Of a query with a half of registers for itself, in two strips and several
    lanes."""
    rng = np.random.default_rng(2)
    s = shape_of((True, packed, True), 4, 4)
    s = replace(s, stacks=stacks, target=target)
    m, n = s.strip + 7, [0, 1, 30, 17, 25, 40, 2, 33]
    best = rng.integers(0, LETTERS, m)
    scores = np.where(np.eye(LETTERS)[best], 9, -9) + rng.integers(-2, 3, (m, LETTERS))
    opening, extending = rng.choice([0, 9], (2, 2, m)) + rng.integers(0, 3, (2, 2, m))
    costs = np.stack([opening, np.minimum(opening, extending)], 1).reshape(4, m)
    t = padded(rng, n)
    for row in t:
        near = np.where(rng.random(m) < 0.7, best, rng.integers(0, LETTERS, m))
        near = np.repeat(near, rng.choice([0, 1, 1, 1, 2], m))
        row[:] = np.resize(near[rng.integers(0, 9) :], len(row))
    largest = int(opening.max()), int(extending.max())
    found = aligned(s, np.zeros((1, m), np.uint8), [m], t, n, scores, largest, (),
                    gap_costs=costs).score[0]  # fmt: skip
    want = [oracle.position_score(scores, b[:k], costs)
            for b, k in zip(t, n, strict=True)]  # fmt: skip
    assert found.tolist() == want


@values
@pytest.mark.parametrize("free", SETS, ids="-".join)
def test_all_free_ends(free):
    check_scores(shape_of((False, True, True), 4, 16), [7, 11], [9, 0, 1, 12] * 2,
                 free=free)  # fmt: skip


@values
@pytest.mark.parametrize(
    "local, tracks",
    [
        (True, 1),
        *(pytest.param(*x, marks=pytest.mark.slow) for x in ((True, 2), (False, 1))),
    ],
)
def test_targets_of_any_length_in_one_launch(local, tracks):
    s = shape_of((local, True, True), 4, 16, tracks=tracks)
    n = [40, 33, 9, 8, 8, 2, 1, 0, 17, 5, 5] + [0] * 13  # the last block is empty
    check_scores(s, [70, 9], n, free=ENDS[1:3], ragged=True)


@values
@pytest.mark.parametrize("gaps", ((4, 4), (3, 0), (0, 0)))
@pytest.mark.parametrize("local", (True, False))
def test_linear_and_free_gaps(local, gaps):
    check_scores(shape_of((local, True, True), 4, 16), [7, 11], [9, 2, 1, 12] * 2,
                 gaps, ("target_end",))  # fmt: skip


@values
@pytest.mark.parametrize(
    "kind, gaps", [*zip(KINDS, cycle(((4, 4), (0, 0))), strict=False)], ids=str
)
def test_linear_gaps_without_e_and_f(kind, gaps):
    s = replace(shape_of(kind, 4, 16), linear=True)
    count = s.block if not s.shared else 8
    m = [7, 70] if s.shared else [7, 70, 0, 65] * (count // 4)
    n = [9, 2, 1, 12, 0, 33, 5, 4] * (count // 8)
    check_scores(s, m, n, gaps, ("target_end", "query_start"))


@values
@pytest.mark.parametrize("columns", (1, pytest.param(4, marks=pytest.mark.slow)))
def test_other_columns_a_step(columns):
    s = shape_of((False, True, True), 4, 16, columns)
    check_scores(s, [7, 70], [9, 2, 1, 12] * 2, free=ENDS)


@values
@pytest.mark.parametrize("kind", only((True, True, True)), ids=name)
def test_paths(kind):
    s = shape_of(kind, 8, 16, tile=3)
    count = 4 if s.shared else s.groups * s.tables
    longest = 30 if kind[0] else 150  # a second strip doubles the time
    m = ([9, longest] if s.shared else [0, 1, 7, 8, 9, 13, 20, 5])[:count]
    n = [11, 0, 1, 14, 8, 7, 9, 12] + [0] * 9 * s.shared  # an empty block
    repeat = 1 if s.shared else count // 8
    check_paths(s, m * repeat, n * repeat, free=("query_end", "target_start"),
                ragged=s.shared)  # fmt: skip


@values
@pytest.mark.slow
@pytest.mark.parametrize("kind", [(True, True, False), (False, False, True)], ids=name)
def test_paths_of_two_tracks(kind):
    """A list and a block; identities are those of the first track."""
    s = shape_of(kind, 8, 16, tile=3, tracks=2)
    count = s.groups * s.tables // 4
    m = [9, 30] if s.shared else [0, 1, 7, 20] * count
    n = [11, 0, 1, 14, 8, 7, 9, 12] if s.shared else [9, 12, 0, 14] * count
    check_paths(s, m, n, free=ENDS[1:3], ragged=s.shared)


@values
@pytest.mark.slow
@pytest.mark.parametrize("local", (True, False))
def test_paths_of_linear_gaps(local):
    s = shape_of((local, True, True), 8, 16, tile=2)
    check_paths(s, [12, 9], [10, 5, 11, 9], (3, 3), ENDS, seed=3)


@values
def test_identity_without_a_path():
    rng = np.random.default_rng(1)
    scores, wildcard = matrix(1), 3
    m, n = [9, 6], [7, 10, 0, 12]
    q, t = padded(rng, m), padded(rng, n)
    same = np.diag(np.arange(len(scores)) != wildcard)
    problem = kp.problem_of(scores * 2**13 + same, 5 * 2**13, 2**13, (), wildcard)
    found = kp.align(
        problem, q, jnp.array(m), t, jnp.array(n),
        shape=shape_of((False, False, True), 4, 16), interpret=mosaic.interpreter(),
    ).score  # fmt: skip
    score, matches = (np.asarray(x) for x in kp.split_identity(found))
    for a, b in product(range(2), range(4)):
        x, y = q[a, : m[a]], t[b, : n[b]]
        want = oracle.max_identities(x, y, scores, 5, 1, "global", (), wildcard)
        assert (score[a, b], matches[a, b]) == want


@values
@TRACKS
def test_int16_says_when_a_score_may_have_wrapped(tracks):
    scores = np.full((2, 2), -5, np.int32)
    scores[0, 0], scores[1, 1] = 1000, 900
    s = shape_of((True, True, True), 4, 16)
    given = scores
    if tracks > 1:  # 400 and 360 of the first track, the rest of the second
        s = replace(s, first_letters=2)
        given = scores * 2 // 5, scores - scores * 2 // 5
    n = [40, 33, 32, 31, 30, 12, 0, 1]
    q = np.zeros((2, 40), np.uint8)
    q[1] = 1
    t = np.zeros((8, 40), np.uint8)
    found = aligned(s, q * (1 + LETTERS * (tracks - 1)), [40, 40], t, n, given,
                    (11, 1), ())  # fmt: skip
    found, overflow = found.score, found.overflow
    right = np.array([[1000 * k for k in n], [0] * 8])
    safe = kp.safe_score(scores, 11, 1)
    assert ((found == right) | ((found > safe) & (right > safe))).all()
    assert (found[:, 3:] == right[:, 3:]).all()
    assert (overflow == (found > safe)).all()
    assert overflow[0, :3].all() and not overflow[:, 3:].any()


# On a device


def device_lengths(rng, s, longest):
    """Lengths of queries and targets: none, one, about K, about a strip, any."""
    k, strip = s.rows, s.strip
    special = [0, 1, k - 1, k, k + 1, min(strip - 1, longest), min(strip + 1, longest)]
    if s.shared:
        m = [special[int(rng.integers(7))], int(rng.integers(longest // 2, longest))]
        n = special[:5] + [int(x) for x in rng.integers(1, longest, 12)]
        return m, n[: s.groups]
    count = 2 * s.groups * s.tables
    draw = rng.integers(0, longest, (2, count))
    draw[0, :7] = special
    draw[1, 5:12] = special
    return draw[0].tolist(), draw[1].tolist()


@pytest.mark.gpu
@pytest.mark.parametrize("form", ("scores", "linear", "paths"))
@pytest.mark.parametrize("kind", KINDS, ids=name)
def test_device_agrees(kind, form):
    local, packed, shared = kind
    paths, linear = form == "paths", form == "linear"
    options = {"paths": paths, "shared": shared, "linear": linear}
    for round, longest in enumerate((70, 130)):
        s = kp.choose(longest, local=local, packed=packed, **options)
        assert s.linear == linear
        rng = np.random.default_rng(round)
        m, n = device_lengths(rng, s, longest)
        free = SETS[int(rng.integers(16))]
        check = check_paths if paths else check_scores
        more = {"gaps": (4, 4)} if linear else {}
        check(s, m, n, free=free, seed=round, **more)


@pytest.mark.gpu
@pytest.mark.parametrize("paths", (False, True))
def test_device_agrees_on_all_free_ends(paths):
    s = kp.Fill(16, 16, 2, False, True, tile=8 * paths)
    for free in SETS:
        check = check_paths if paths else check_scores
        check(s, [17, 40], [0, 1, 16, 33, 25, 40, 7, 12], free=free)
        check(s, [17, 40], [0, 1, 16, 33, 25, 40, 7, 12], (3, 3), free)


@pytest.mark.gpu
@pytest.mark.parametrize("local", (True, False))
@pytest.mark.parametrize("longest", (200, 300, 500, 1900))
def test_device_agrees_on_ragged_targets(longest, local):
    s = kp.choose(longest, local=local, packed=True)
    rng = np.random.default_rng(longest)
    n = np.sort(rng.integers(0, 300, 70))[::-1].tolist() + [0] * 40
    check_scores(s, [longest, longest // 2], n, free=SETS[5], ragged=True)
    if (longest, local) in ((500, True), (1900, False)):  # a compilation each
        s = kp.choose(longest, local=local, packed=True, paths=True)
        check_paths(s, [longest, longest // 2], n[::4], free=SETS[5], ragged=True)


@pytest.mark.gpu
def test_tryptophan_with_itself():
    scores = np.array([[11, -4], [-4, 5]])
    q = np.zeros((2, 3000), np.uint8)
    m = jnp.array([3000, 2900])
    problem = kp.problem_of(scores, 11, 1)
    shapes = {
        dtype: kp.choose(3000, local=True, packed=dtype == "int16")
        for dtype in ("int16", "int32")
    }
    found = {
        dtype: np.asarray(kp.align(problem, q, m, q, m, shape=shape).score)
        for dtype, shape in shapes.items()
    }
    right = np.array([[33000, 31900], [31900, 31900]])
    safe = kp.safe_score(scores, 11, 1)
    assert (found["int32"] == right).all()
    assert ((found["int16"] == right) | (found["int16"] > safe)).all()
    assert (found["int16"][right <= safe] == 31900).all()


@pytest.mark.gpu
@pytest.mark.parametrize("local", (True, False))
def test_the_longest_entry_with_itself(local):
    length = 35213
    rng = np.random.default_rng(0)
    scores = np.full((20, 20), -4)
    np.fill_diagonal(scores, rng.integers(4, 12, 20))
    q = rng.integers(0, 20, (1, length)).astype(np.uint8)
    m = jnp.array([length])
    problem = kp.problem_of(scores, 11, 1)
    shape = kp.choose(length, local=local, packed=False, paths=True)
    r = kp.align(problem, q, m, q, m, shape=shape, runs=4)
    assert int(r.score[0, 0]) == np.diag(scores)[q[0]].sum()
    assert int(r.count[0, 0]) == 1 and int(r.runs[0, 0, 0]) == length << 4
    assert int(r.identities[0, 0]) == int(r.columns[0, 0]) == length


# Choices


def test_fits_counts_the_bias_and_the_skew():
    scores = np.array([[11, -4], [-4, 5]])
    assert kp.fits(scores, 11, 1, 384, 384, local=True)
    assert not kp.fits(scores, 11, 1, 3000, 3000, local=True)  # tryptophan with itself
    assert kp.fits(scores, 11, 1, 3000, 3000, local=True, highest=16000)
    assert kp.fits(scores, 11, 1, 3000, 3000, local=False, dtype="int32")
    assert not kp.fits(scores, 9000, 1, 20, 20, local=False)
    assert not kp.fits(scores, 1, 0, 20000, 20, local=False, highest=10)


@pytest.mark.parametrize("paths", (False, True))
def test_few_shapes_serve_all_lengths(paths):
    lengths = np.random.default_rng(0).lognormal(5.8, 0.6, 10000).astype(int) + 1
    pairs = {
        (kp.bucket(m), kp.bucket(n)) for m in lengths for n in lengths[:9] if n <= m
    }
    assert len(pairs) <= 6
    shapes = {kp.choose(m, local=True, packed=True, paths=paths) for m in lengths}
    assert len(shapes) <= 6 and all(s.strip <= 384 for s in shapes)


def test_strips_of_a_shape_leave_few_rows_over():
    for m in (1, 256, 257, 320, 500, 512, 1000, 1300, 1500):
        heights = {
            s.strip for s in (kp.choose(m, local=x, packed=True) for x in (0, 1))
        }
        (height,) = heights
        assert -(-m // height) * height == min(-(-m // h) * h for h in (256, 320, 384))


def test_few_queries_take_more_lanes():
    """So that the program of the longest targets is not what all wait for."""
    rng = np.random.default_rng(0)
    lengths = np.sort(rng.lognormal(5.8, 0.6, 20000).astype(int))[::-1]
    for local in (True, False):
        few = kp.spread([4095, 63], lengths, local=local, packed=True)
        many = kp.spread([380] * 64, lengths[lengths < 900], local=local, packed=True)
        assert few.lanes >= 16 > many.lanes and bool(few.stacks) == local
        assert few.strip <= 1536 and kp.spread([], [], local=local, packed=True).lanes


def test_blocks_without_targets_stay_in_the_room():
    """Letters beyond it would be looked up beyond the profile."""
    shape = kp.Fill(16, 16, 2, True, True)
    lengths = np.array([40, 30, 9, 8, 7, 5, 5, 4] + [0] * 40, np.int32)
    room = int(kp.rows_of(lengths[:8], shape)[-1])
    first = jnp.zeros(len(lengths), jnp.int32)
    codes, lengths = jnp.ones(50, jnp.uint8), jnp.asarray(lengths)
    starts, words = kp.letters(codes, first, lengths, shape=shape, room=room)
    assert len(words) == room * shape.groups and int(starts.max()) < room


def test_the_longest_queries_fit_shared_memory():
    """Scores of a strip for the largest alphabet, 227 KiB on Hopper."""
    for local, packed in product((True, False), repeat=2):
        shape = kp.choose(40000, local=local, packed=packed)
        assert shape.lanes == 32 and shape.strip * (30 + 2) * 4 <= 227 * 1024


def test_bytes_of_a_fill():
    s = kp.Fill(48, 8, 2, False, True)
    best, column = 2 * 128, 128 * 48
    items = 64 // s.groups
    boundary = 16 * 4  # a row of letters, since one strip hands nothing down
    size = 4 * (items * (best + column) + boundary)
    assert kp.fill_bytes(s, 2, 64, 384, 384) == size
    rows = 4 * (64 // 16) * 193
    more = kp.fill_bytes(s, 2, 64, 385, 384) - 4 * items * (best + 2 * column)
    assert (
        more
        == 4 * 16 * rows
        == kp.fill_bytes(s, 2, 64, 385, 384, 4 * 193)
        - 4 * (items * (best + 2 * column))
    )


def test_supported_says_why_not():
    works, why = kp.supported()
    assert why and (works or "GPU" in why or "Hopper" in why)


# Stacked queries ----------------------------------------------------------------------


@pytest.mark.parametrize("packed", (True, False))
@pytest.mark.parametrize("stacks", (1, 2, 5))
def test_every_row_has_a_place(packed, stacks):
    """Chunks of a query follow each other in one table, and no strip is missing."""
    rng = np.random.default_rng(stacks)
    for lengths in ([], [0], [1, 0, 9], rng.integers(0, 200, 30).tolist()):
        s = kp.Fill(8, 4, 2, True, packed, stacks=stacks)
        found = kp.stack(lengths, s)
        used = found.strips * s.lanes
        assert (found.strips == stacked_strips(lengths, s)).all()
        for q, length in enumerate(lengths):
            item, table, place = np.nonzero(found.query == q)
            assert len(place) == -(-length // s.rows)
            if length:
                assert len({*zip(item, table, strict=True)}) == 1
                assert (place == place[0] + np.arange(len(place))).all()
                assert (found.chunk[item, table, place] == place - place[0]).all()
                assert place[-1] < used[item[0]]
        assert np.isin(found.query, [NO_QUERY, *range(len(lengths))]).all()


@values
@pytest.mark.parametrize("packed", (True, False))
@TRACKS
def test_scores_of_stacked_queries(packed, tracks):
    """Of one letter and none, of whole lanes and strips, in more strips than one."""
    s = replace(shape_of((True, packed, True), 4, 8, tracks=tracks), stacks=2)
    m = [1, 0, s.rows, s.strip, s.strip + 3, 2 * s.rows + 1, 40, 3]
    check_scores(s, m, [0, 1, 9, 30, 8, 7, 17, 5])


@values
@pytest.mark.parametrize("columns", (1, 4))
def test_stacked_queries_with_linear_gaps_and_targets_of_any_length(columns):
    s = replace(shape_of((True, True, True), 4, 16, columns), linear=True, stacks=1)
    n = [40, 33, 9, 8, 8, 2, 1, 0, 17, 5, 5] + [0] * 13  # the last block is empty
    check_scores(s, [70, 9, 5, 0, 66], n, gaps=(4, 4), ragged=True)


@values
def test_a_query_gives_nothing_to_the_one_below():
    """Two halves of a target one below the other are no match of the whole."""
    s = replace(shape_of((True, True, True), 4, 8), stacks=1)
    target = np.arange(16, dtype=np.uint8)[None] % 5
    halves = target.reshape(2, 8)
    scores, gaps = 5 * np.eye(5, dtype=np.int32) - 4, (9, 9)
    found = aligned(s, halves.repeat(2, 0), [8] * 4, target, [16], scores, gaps, ())
    assert found.score.tolist() == [[8]] * 4


@values
def test_the_positions_of_a_profile_are_stacked():
    rng = np.random.default_rng(4)
    s = replace(shape_of((True, True, True), 4, 8), stacks=1)
    q = rng.integers(0, 5, (1, 40)).astype(np.uint8)
    t = np.resize(q, (4, 30))
    by_position = matrix()[q[0]]
    want = aligned(s, q, [40], t, [30, 9, 0, 17], matrix(), (7, 2), ()).score
    found = aligned(s, 0 * q, [40], t, [30, 9, 0, 17], by_position, (7, 2), ()).score
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("by_position", (False, True))
def test_stacked_queries_lower_for_cuda(by_position):
    s, rows = kp.Fill(64, 4, 4, True, True, stacks=2), 512 if by_position else 24
    assert "mosaic_gpu" in lower(s, 200, score_rows=rows, gap_costs=by_position,
                                 queries=5)  # fmt: skip


def test_a_search_leaves_few_rows_unused():
    """The queries of CUDASW++4.0, of which pairs in strips of 384 rows left 12 %."""
    m = [144, 189, 222, 375, 464, 567, 657, 729, 850, 1000, 1500, 2005, 2504, 3005,
         3564, 4061, 4548, 4743, 5147, 5478]  # fmt: skip
    s = kp.spread(m[::-1], np.full(10**5, 384), local=True, packed=True)
    assert 2 * stacked_strips(m, s).sum() * s.strip < 1.05 * sum(m)
