"""Longest common subsequences of the GPU kernel, in the interpreter."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import lcs_by_words
from kernel_cases import inside_arrays, joined, target_blocks, values

from kernels_pallas.core import mosaic
from kernels_pallas.core.mosaic import THREADS
from kernels_pallas.words import lcs

WILDCARD, PADDING = 4, 5


def sets(seed, count, longest):
    """Sequences of five letters, one of them the wildcard."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, longest + 1, count)
    lengths[:3] = longest, 0, max(longest - 1, 0)
    return [rng.integers(0, 5, n).astype(np.uint8) for n in lengths]


def found(queries, targets, words):
    table = lcs.match_table(*joined(queries), words=words, padding=PADDING,
                            wildcard=WILDCARD)  # fmt: skip
    result = lcs.subsequences(table, target_blocks(targets, PADDING), words=words,
                              interpret=mosaic.interpreter())  # fmt: skip
    return inside_arrays(result)


@values
@pytest.mark.parametrize("words, longest", [(1, 32), (2, 63), (3, 90), (5, 160)])
def test_values_are_those_of_one_long_word(words, longest):
    queries, targets = sets(words, 5, longest), sets(9, THREADS + 3, 40)
    queries[-1] = targets[-1] = np.zeros(30, np.uint8)  # carries through all words
    want = [[lcs_by_words(a, b, WILDCARD) for b in targets] for a in queries]
    assert found(queries, targets, words)[:, : len(targets)].tolist() == want


@values
def test_a_carry_crosses_from_one_statement_to_the_next():
    words = lcs.ASM_WORDS + 1
    queries = [np.zeros(words * 32, np.uint8), *sets(3, 3, words * 32)]
    targets = [np.zeros(20, np.uint8), *sets(4, 6, 30)]
    want = [[lcs_by_words(a, b, WILDCARD) for b in targets] for a in queries]
    assert found(queries, targets, words)[:, : len(targets)].tolist() == want


def test_rows_of_match_words_lie_in_different_banks():
    for words in range(1, 65):
        row = lcs.row_words(words)
        assert row >= words and len({row * letter % 32 for letter in range(32)}) == 32


@pytest.mark.parametrize("words", [1, lcs.ASM_WORDS, lcs.WORD_COUNTS[-1]])
def test_it_lowers_to_mosaic_for_a_gpu(words):
    size = -(-25 * lcs.row_words(words) // THREADS) * THREADS
    shapes = [(4, size), (2,), (2,), (64 * THREADS,)]
    table, *blocks = (jax.ShapeDtypeStruct(shape, jnp.int32) for shape in shapes)
    run = partial(lcs.subsequences, words=words)
    traced = jax.jit(run).trace(table, lcs.TargetBlocks(*blocks))
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert "mosaic_gpu" in text
