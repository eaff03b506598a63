"""The walk of three sequences alone, from bytes that no kernel made: several windows
along every axis, in the GPU interpreter (JAX 0.11 or newer)."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernels_pallas.core import mosaic
from kernels_pallas.triples import api
from kernels_pallas.triples.shapes import COLUMNS, arrays_of, moves, table_of
from kernels_pallas.triples.walk import walk

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        mosaic.interpreter() is None, reason="the GPU interpreter came with JAX 0.11"
    ),
]
COST = 7  # open - extend, quasi-natural
LENGTHS = (20, 23, 26), (33, 9, 20), (0, 6, 3), (17, 40, 4)


def into(cell, texts, table, columns=COLUMNS):
    """(state, column, cell before, score of the column's letters) into a cell."""
    x, y, z = (text[max(i - 1, 0)] if len(text) else 0
               for text, i in zip(texts, cell, strict=True))  # fmt: skip
    pairs = (6, table[x, y]), (5, table[x, z]), (3, table[y, z])
    for n, column in enumerate(columns):
        before = tuple(i - (column >> (2 - axis) & 1) for axis, i in enumerate(cell))
        if min(before) >= 0:
            worth = sum(score for two, score in pairs if column & two == two)
            yield n, column, before, worth


def filled(texts, table, rule):
    """H of all states and cells; where states are clamped, as a fill stores it."""
    h = np.full((rule.states, *(len(text) + 1 for text in texts)), -(10**6))
    h[(0, 0, 0, 0)] = 0
    for cell in list(product(*map(range, h.shape[1:])))[1:]:
        if rule.states == 1:
            for _, _, before, worth in into(cell, texts, table):
                h[(0, *cell)] = max(h[(0, *cell)], h[(0, *before)] + worth)
            continue
        for n, _, before, worth in into(cell, texts, table, rule.columns):
            ends = [h[(p, *before)] - COST * len(x) for p, x in moves(rule)[n].items()]
            h[(n, *cell)] = max(ends) + worth
    if rule.name == "natural":
        h = np.maximum(h, h.max(axis=0) - (rule.apart * COST + 1))
    return h


def walked(h, texts, table, state, rule):
    """(columns, count) by the walk's own ties; a count of -1 where no move attains."""
    cell, path = tuple(n - 1 for n in h.shape[1:]), []
    while any(cell):
        columns = rule.columns if rule.states > 1 else COLUMNS
        for n, _, before, worth in into(cell, texts, table, columns):
            if len(h) == 1:
                if (h[(0, *before)] + worth - h[(0, *cell)]) % 256 == 0:
                    break
            elif n == state:
                # A path has begun at cell (0, 0, 0), in state 0.
                found = {
                    m for m, *_ in into(before, texts, table, columns)
                    if m in moves(rule)[n]
                    and (h[(m, *before)] - COST * len(moves(rule)[n][m]) + worth
                         - h[(n, *cell)]) % 256 == 0
                } if any(before) else {0}  # fmt: skip
                if found:
                    state = min(found)
                    break
        else:
            return path, -1
        path.append(columns[n])
        cell = before
    return path, len(path)


def laid(s, tables):
    """Bytes of tables where a fill keeps them; garbage elsewhere."""
    width = s.rule.states * s.rows * s.columns * s.lanes // 4
    size = s.triples * s.blocks[1] * s.strips * s.steps * width
    kept = np.random.default_rng(1).integers(0, 256, 4 * size, dtype=np.uint8)
    for triple, h in enumerate(tables):
        for state, (i, j, k) in product(
            range(len(h)), [np.indices(h.shape[1:]).reshape(3, -1)]
        ):
            block, rest = np.divmod(j, s.sides[1])
            line = (triple * s.blocks[1] + block) * s.strips + i // s.rows
            line = line * s.steps + k + rest // 4 + s.front
            number = i % s.rows * s.rule.states + state
            word = line * width + number // 4 * 4 * s.lanes + rest // 4 * 4 + number % 4
            kept[word * 4 + j % 4] = h[state].reshape(-1) & 255
    return kept.view(np.int32)


@pytest.mark.parametrize("broken", [False, True], ids=["sound", "broken"])
@pytest.mark.parametrize("model", ["linear", "quasi-natural", "natural"])
def test_a_walk_by_windows(model, broken):
    rng = np.random.default_rng(5)
    table = rng.integers(-4, 6, (20, 20))
    triples = [[rng.integers(0, 20, n) for n in lengths] for lengths in LENGTHS]
    rule, most = api.RULES[model], np.max(LENGTHS, axis=0)
    s = api.shape_of(most.tolist(), rule, rows=4, batch=4, triples=len(LENGTHS),
                       bytes=True, plain=True)  # fmt: skip
    tables = [filled(texts, table, rule) for texts in triples]
    if broken:
        for h in tables:
            h[:, h.shape[1] // 2] += 1
    ends = [int(np.argmax(h[:, -1, -1, -1])) for h in tables]
    letters = [
        jnp.array([np.pad(texts[n], (0, most[n] - len(texts[n]))) for texts in triples])
        for n in range(3)
    ]
    scores = jnp.broadcast_to(table_of(table, 0), (len(LENGTHS), 3, 32, 32))
    row = [0] * (rule.seed_words - 1) + [COST]
    seeds = jnp.tile(jnp.array(row, jnp.int32), (len(LENGTHS), 1))
    borders = jnp.zeros((len(LENGTHS), 8), jnp.int32)
    sizes = jnp.array(LENGTHS, jnp.int32)
    arrays = arrays_of(s, letters, sizes, scores, seeds, borders)
    run = jax.jit(lambda *x: walk(*x, s, mosaic.interpreter()))
    columns, count = run(arrays, laid(s, tables), jnp.array(ends, jnp.int32))
    want = [
        walked(h, texts, table, end, rule)
        for h, texts, end in zip(tables, triples, ends, strict=True)
    ]
    assert np.asarray(count).tolist() == [length for _, length in want]
    assert any(length == -1 for _, length in want) == broken
    for found, (path, length) in zip(np.asarray(columns), want, strict=True):
        assert found[: max(length, 0)].tolist() == path[: max(length, 0)]
