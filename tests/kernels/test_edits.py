"""Edit distances of the GPU kernel, in the interpreter."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from kernel_cases import inside_arrays, joined, target_blocks, values

from jaxalign.pairs.dp.edit_integers import distance
from kernels_pallas.core import mosaic
from kernels_pallas.core.mosaic import THREADS
from kernels_pallas.pairs import edit_words, edits, match_words

PADDING = 4


def sets(seed, count, longest):
    """Sequences of four letters."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, longest + 1, count)
    lengths[:3] = longest, 0, max(longest - 1, 0)
    return [rng.integers(0, PADDING, n).astype(np.uint8) for n in lengths]


def found(queries, targets, words):
    table = edits.edit_table(*joined(queries), words=words, padding=PADDING)
    blocks = target_blocks(targets, PADDING, front=True)
    result = edits.edits(table, blocks, words=words, padding=PADDING,
                         interpret=mosaic.interpreter())  # fmt: skip
    return inside_arrays(result)


def wanted(queries, targets):
    return [[distance(a.tolist(), b.tolist()) for b in targets] for a in queries]


@values
@pytest.mark.parametrize("words, longest", [(1, 32), (2, 63), (4, 97)])
def test_values_are_those_of_one_long_word(words, longest):
    queries, targets = sets(words, 5, longest), sets(9, THREADS + 3, 40)
    queries[-1] = targets[-1] = np.zeros(30, np.uint8)  # carries through all words
    got = found(queries, targets, words)[:, : len(targets)]
    assert got.tolist() == wanted(queries, targets)


@values
@pytest.mark.slow
def test_edges_cross_from_one_statement_to_the_next():
    words = edit_words.ASM_WORDS + 2
    queries = [np.zeros(words * 32, np.uint8), *sets(3, 3, words * 32)]
    targets = [np.zeros(20, np.uint8), *sets(4, 6, 30)]
    got = found(queries, targets, words)[:, : len(targets)]
    assert got.tolist() == wanted(queries, targets)


@pytest.mark.parametrize("words", [1, edit_words.ASM_WORDS, edits.EDIT_WORD_COUNTS[-1]])
def test_it_lowers_to_mosaic_for_a_gpu(words):
    size = -(-25 * edits.edit_row_words(words) // THREADS) * THREADS
    shapes = [(4, size), (2,), (2,), (64 * THREADS,)]
    table, *blocks = (jax.ShapeDtypeStruct(shape, jnp.int32) for shape in shapes)
    run = partial(edits.edits, words=words, padding=24)
    traced = jax.jit(run).trace(table, match_words.TargetBlocks(*blocks))
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert "mosaic_gpu" in text
