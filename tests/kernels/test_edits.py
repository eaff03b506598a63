"""Edit distances of the GPU kernel, in the interpreter."""

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

PADDING = 4


def sets(seed, count, longest):
    """Sequences of four letters."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, longest + 1, count)
    lengths[:3] = longest, 0, max(longest - 1, 0)
    return [rng.integers(0, PADDING, n).astype(np.uint8) for n in lengths]


def found(queries, targets, words, slots, met=(0, 2**20)):
    stacks, size = -(-len(queries) // slots) + 1, {"words": words, "padding": PADDING}
    layout = np.array([slots, len(queries), *met], np.int32)
    table = edits.edit_table(*joined(queries), layout[0], stacks=stacks, **size)
    lengths = np.zeros(-len(targets) // THREADS * -THREADS, np.int32)
    lengths[: len(targets)] = [len(target) for target in targets]
    blocks = target_blocks(targets, PADDING, more=0, front=True)
    result = edits.edit_distances(table, layout, blocks, lengths, rows=len(queries) + 1,
                         interpret=mosaic.interpreter(), **size)  # fmt: skip
    return inside_arrays(result)[: len(queries), : len(targets)]


def wanted(queries, targets):
    return [[distance(a.tolist(), b.tolist()) for b in targets] for a in queries]


@values
@pytest.mark.parametrize("words, slots", [(1, 1), (1, 2), (1, 5), (3, 2), (4, 3)])
def test_values_are_those_of_one_long_word(words, slots):
    longest = words * 32 // slots - edits.SEPARATORS
    queries, targets = sets(words, 2 * slots + 1, longest), sets(9, THREADS + 3, 40)
    # Carries run through all letters of a query, and U and V up to its end.
    queries[0] = queries[-1] = targets[-1] = np.zeros(longest, np.uint8)
    got = found(queries, targets, words, slots)
    assert got.tolist() == wanted(queries, targets)


@values
def test_blocks_that_no_query_meets_are_left_out():
    queries, targets = sets(1, 5, 30), sets(2, 3 * THREADS, 9)
    targets.sort(key=len, reverse=True)
    got = found(queries, targets, 2, 2, met=(1, 2))
    want = np.array(wanted(queries, targets))
    some = slice(THREADS, 2 * THREADS)
    assert (got[:, some] == want[:, some]).all()
    assert (got != want).any(0)[:THREADS].any() and (got != want)[:, some.stop :].any()


@values
@pytest.mark.slow
def test_edges_cross_from_one_statement_to_the_next():
    words = edits.ASM_WORDS + 2
    queries = [np.zeros(words * 32 - 2, np.uint8), *sets(3, 3, words * 32 - 2)]
    targets = [np.zeros(20, np.uint8), *sets(4, 6, 30)]
    got = found(queries, targets, words, 1)
    assert got.tolist() == wanted(queries, targets)


@pytest.mark.parametrize(
    "words", [1, pytest.param(edits.STACK_WORD_COUNTS[-1], marks=pytest.mark.slow)]
)
def test_it_lowers_to_mosaic_for_a_gpu(words):
    size = -(-26 * lcs.row_words(words) // THREADS) * THREADS
    shapes = [(4, size), (4,), (2,), (2,), (64 * THREADS,), (2 * THREADS,)]
    shapes = (jax.ShapeDtypeStruct(shape, jnp.int32) for shape in shapes)
    table, layout, *blocks, lengths = shapes
    run = partial(edits.edit_distances, words=words, padding=24, rows=8)
    blocks = lcs.TargetBlocks(*blocks)
    traced = jax.jit(run).trace(table, layout, blocks, lengths)
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert "mosaic_gpu" in text


def test_every_query_has_a_stack():
    for longest in range(edits.MAX_EDIT_QUERY + 1):
        words, slots = edits.edit_stack(longest)
        assert words * 32 // slots >= longest + edits.SEPARATORS
