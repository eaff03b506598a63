"""Edit distances of pairs of the GPU kernel, in the interpreter."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from kernel_cases import inside_arrays, joined, target_blocks, values

from jaxalign.words.distances import distance
from kernels_pallas.core import mosaic
from kernels_pallas.core.mosaic import THREADS
from kernels_pallas.words import edits, lcs


def found(columns, letters, codes, words, several=False):
    padding = edits.pair_padding(codes)
    static = {"words": words, "padding": padding, "several": several}
    more = edits.MAX_ROWS_READ
    sides = []
    for some, options in ((columns, {"more": more}), (letters, {"front": True})):
        some = [*some, *[np.zeros(0, np.uint8)] * (-len(some) % THREADS)]
        sides += [target_blocks(some, padding, **options), joined(some)[2]]
    result = edits.pair_edits(*sides, **static, interpret=mosaic.interpreter())
    return inside_arrays(result)[: len(columns)].tolist()


def wanted(columns, letters):
    pairs = zip(columns, letters, strict=True)
    return [distance(a.tolist(), b.tolist()) for a, b in pairs]


def pairs_of(seed, codes, longest, count, shorter=20):
    """Pairs of all lengths, relatives and letters that are all the same among them."""
    rng = np.random.default_rng(seed)

    def some(length):
        return rng.integers(0, codes, length).astype(np.uint8)

    columns = [some(n) for n in rng.integers(0, longest + 1, count)]
    columns[:4] = some(longest), some(0), some(longest - 1), some(0)
    columns[4:6] = [np.full(longest, codes - 1, np.uint8)] * 2  # carries go through
    letters = [some(n) for n in rng.integers(0, shorter + 1, count)]
    letters[3:6] = some(0), np.full(shorter, codes - 1, np.uint8), some(shorter)
    for k in range(6, count, 3):
        letters[k] = columns[k][2 : 2 + shorter]
    return columns, letters


@values
@pytest.mark.parametrize(
    "codes, words, longest",
    [(4, 1, 32), (4, 2, 33), (1, 2, 63), (7, 2, 64), (11, 4, 97), (25, 2, 50),
     (255, 1, 31)],
)  # fmt: skip
def test_values_are_those_of_one_long_word(codes, words, longest):
    columns, letters = pairs_of(codes, codes, longest, THREADS + 5)
    assert found(columns, letters, codes, words) == wanted(columns, letters)


@values
@pytest.mark.parametrize("codes, words, longest", [(4, 2, 200), (20, 1, 97)])
def test_edges_cross_from_a_group_to_the_next(codes, words, longest):
    columns, letters = pairs_of(2, codes, longest, THREADS + 5, 30)
    columns[THREADS:] = [one[:40] for one in columns[THREADS:]]  # a block of fewer
    got = found(columns, letters, codes, words, several=True)
    assert got == wanted(columns, letters)


@pytest.mark.parametrize("codes", [1, 4, 5, 7, 8, 15, 16, 20, 64, 128, 255])
def test_fields_tell_all_codes_apart(codes):
    padding = edits.pair_padding(codes)
    fields = edits.code_fields(padding)
    assert codes <= padding <= 255
    rows = [
        tuple((code >> f.shift & 2**f.bits - 1) + f.first for f in fields)
        for code in range(padding + 1)
    ]
    assert len({*rows}) == padding + 1
    ends = [f.first + f.rows for f in fields]
    assert [f.first for f in fields] == [0, *ends[:-1]]
    for k, end in enumerate(ends):
        assert max(row[k] for row in rows) == end - 1


@pytest.mark.parametrize("words, several", [(1, False), (16, False), (16, True)])
@pytest.mark.parametrize("padding", [4, pytest.param(31, marks=pytest.mark.slow)])
def test_it_lowers_to_mosaic_for_a_gpu(words, several, padding):
    shapes = (2,), (2,), (600 * THREADS,)
    blocks = [jax.ShapeDtypeStruct(shape, jnp.int32) for shape in shapes]
    blocks = lcs.TargetBlocks(*blocks)
    lengths = jax.ShapeDtypeStruct((2 * THREADS,), jnp.int32)
    static = {"words": words, "several": several, "padding": padding}
    run = partial(edits.pair_edits, **static)
    traced = jax.jit(run).trace(blocks, lengths, blocks, lengths)
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert "mosaic_gpu" in text
