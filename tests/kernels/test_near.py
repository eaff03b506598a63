"""Near rows of the GPU kernel, in the interpreter, and that it lowers for a GPU."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import receptor_oracle
from kernel_cases import inside_arrays, lowered, values

from kernels_pallas.core import mosaic
from kernels_pallas.words import near as sums
from kernels_pallas.words.near import (
    MAX_EDIT_ROWS,
    NEAR_BLOCK,
    NearLimits,
    NearRows,
    NearSizes,
    match_rows,
    near_ends,
    near_list,
    threads_of,
)

LETTERS = 5
ROOM = NEAR_BLOCK


def codes_of(rows: np.ndarray) -> np.ndarray:
    """Two words of a row, of random bits for each letter and position."""
    draw = np.random.default_rng(7)
    bits = draw.integers(0, 2**32, (rows.shape[1], LETTERS, 2), dtype=np.uint32)
    each = bits[np.arange(rows.shape[1]), rows]
    return np.bitwise_xor.reduce(each & each[:, :, ::-1], axis=1).view(np.int32)


def padded(values, more) -> jax.Array:
    return jnp.asarray(np.r_[values, np.full(ROOM - len(values), more)], jnp.int32)


def near_rows(rows: np.ndarray) -> NearRows:
    wide = np.zeros((ROOM, 4 * -(-rows.shape[1] // 4)), np.uint8)
    wide[: len(rows), : rows.shape[1]] = rows
    codes = np.pad(codes_of(rows), ((0, ROOM - len(rows)), (0, 0)))
    return NearRows(jnp.asarray(codes.reshape(-1)), jnp.asarray(wide.view("<i4")))


@values
@pytest.mark.slow
@pytest.mark.parametrize("triangle, positions", [(False, 7), (True, 4)])
def test_near_pairs_are_those_of_numpy(monkeypatch, triangle, positions):
    """Of some of the queries; lists begin in the midst of a thread's pairs."""
    monkeypatch.setattr(sums, "CHUNKS", 2)
    draw = np.random.default_rng(positions)
    x = draw.integers(0, LETTERS, (9, positions), np.uint8)
    y = x if triangle else draw.integers(0, LETTERS, (260, positions), np.uint8)
    table = draw.integers(1, 9, (LETTERS, LETTERS)) * (1 - np.eye(LETTERS, dtype=int))
    bits = draw.integers(20, 40, len(y))
    most = draw.integers(3, 30, len(y))
    wide = np.zeros((32, 32), np.int32)
    wide[:LETTERS, :LETTERS] = table
    limits = NearLimits(
        padded(bits, -1), padded(most, -1), jnp.asarray(wide.reshape(-1))
    )
    first, last = 1, len(x)
    numbers = first, last, len(y), int(triangle), -(-positions // 4), 0
    given = near_rows(x), near_rows(y), limits, NearSizes(*map(jnp.int32, numbers))

    one, other = (codes_of(rows).view(np.uint32) for rows in (x, y))
    differ = np.bitwise_count(one[:, None] ^ other[None]).sum(2)
    total = table[x[:, None], y[None]].sum(2)
    near = (differ <= bits[None]) & (total <= most[None])
    near[:first] = False
    if triangle:
        near &= np.arange(len(y))[None] > np.arange(len(x))[:, None]
    expected = {(i, j, int(total[i, j])) for i, j in np.argwhere(near).tolist()}
    assert len(expected) > 3

    interpret = mosaic.interpreter()
    ends, count = near_ends(*given, interpret=interpret)
    inside_arrays(ends)
    assert int(count) == len(expected)
    room = len(expected) - 2
    pairs = [
        inside_arrays(near_list(*given, ends, at, room=room, interpret=interpret))
        for at in (0, room)
    ]
    listed = np.concatenate([pairs[0], pairs[1][:, :2]], axis=1)
    assert {*map(tuple, listed.T.tolist())} == expected


@values
@pytest.mark.slow
def test_edit_distances(monkeypatch):
    """All pairs of two lengths, the longest query of 32 letters."""
    monkeypatch.setattr(sums, "CHUNKS", 2)
    draw = np.random.default_rng(3)
    x = draw.integers(0, 3, (3, MAX_EDIT_ROWS), np.uint8)
    y = draw.integers(0, 3, (150, 29), np.uint8)
    y[::2] = np.delete(x[draw.integers(0, 3, 75)], [4, 20, 31], axis=1)
    y[::6, 7:19] = draw.integers(0, 3, (25, 12))
    every = np.full(len(y), 64), np.full(len(y), 9)
    limits = NearLimits(
        padded(every[0], -1), padded(every[1], -1), jnp.zeros(1024, jnp.int32)
    )
    wide = np.full((ROOM, 32), 31, np.uint8)
    wide[: len(x)] = x
    match = match_rows(jnp.asarray(wide.view("<i4")))
    queries = NearRows(jnp.zeros(2 * ROOM, jnp.int32), match)
    targets = near_rows(y)._replace(codes=queries.codes)
    numbers = 0, len(x), len(y), 0, y.shape[1], x.shape[1]
    given = queries, targets, limits, NearSizes(*map(jnp.int32, numbers))
    texts = [["".join("ACG"[c] for c in row) for row in side] for side in (x, y)]
    distances = [
        [receptor_oracle.levenshtein(a, b) for b in texts[1]] for a in texts[0]
    ]
    expected = {
        (i, j, d)
        for i, row in enumerate(distances)
        for j, d in enumerate(row)
        if d <= 9
    }
    assert {3, 9} <= {d for *_, d in expected}
    options = {"edits": True, "interpret": mosaic.interpreter()}
    ends, count = near_ends(*given, **options)
    assert int(count) == len(expected)
    pairs = near_list(*given, ends, 0, room=len(expected), **options)
    assert {*map(tuple, inside_arrays(pairs).T.tolist())} == expected


def test_it_lowers_to_mosaic_for_a_gpu():
    def array(*shape):
        return jax.ShapeDtypeStruct(shape, jnp.int32)

    rows = NearRows(array(2 * ROOM), array(ROOM, 8))
    limits = NearLimits(array(ROOM), array(ROOM), array(1024))
    given = rows, rows, limits, NearSizes(*[array()] * 6)
    ends = array(threads_of(rows))
    for run, more in ((near_ends, ()), (near_list, (ends, array()))):
        options = {"room": 64} if more else {}
        lowered(partial(run, **options), *given, *more)
