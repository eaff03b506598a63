"""Subsequences and edit distances of the GPU kernels, in the interpreter."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import lcs_by_words
from kernel_cases import inside_arrays, joined, lowered, target_blocks, values

from jaxalign.words.distances import distance
from kernels_pallas.core import mosaic
from kernels_pallas.core.mosaic import THREADS
from kernels_pallas.words import edits, lcs

PADDING = 5  # beyond the wildcard, the last of five letters
WILDCARD = 4


def sets(seed, count, longest):
    """Sequences of five letters, the longest and an empty one among them."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, longest + 1, count)
    lengths[:3] = longest, 0, max(longest - 1, 0)
    return [rng.integers(0, PADDING, n).astype(np.uint8) for n in lengths]


def subsequences(queries, targets, words):
    table = lcs.match_table(*joined(queries), words=words, padding=PADDING,
                            wildcard=WILDCARD)  # fmt: skip
    result = lcs.subsequences(table, target_blocks(targets, PADDING), words=words,
                              interpret=mosaic.interpreter())  # fmt: skip
    return inside_arrays(result)[:, : len(targets)].tolist()


def distances(queries, targets, words, slots, met=(0, 2**20)):
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


def array(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def test_rows_of_match_words_lie_in_different_banks():
    for words in range(1, 65):
        row = lcs.row_words(words)
        assert row >= words and len({row * letter % 32 for letter in range(32)}) == 32


@values
@pytest.mark.parametrize(
    "words, longest, same",
    [
        *((1, 32, 30), (2, 63, 30), (3, 90, 30), (5, 160, 30)),
        (lcs.ASM_WORDS + 1, (lcs.ASM_WORDS + 1) * 32, (lcs.ASM_WORDS + 1) * 32),
    ],
)
def test_subsequences_are_those_of_one_long_word(words, longest, same):
    """Carries go through all words, and from a statement of assembler to the next."""
    queries, targets = sets(words, 5, longest), sets(9, THREADS + 3, 40)
    queries[-1], targets[-1] = np.zeros(same, np.uint8), np.zeros(30, np.uint8)
    want = [[lcs_by_words(a, b, WILDCARD) for b in targets] for a in queries]
    assert subsequences(queries, targets, words) == want


@pytest.mark.parametrize("words", [1, lcs.ASM_WORDS, lcs.WORD_COUNTS[-1]])
def test_subsequences_lower_to_mosaic_for_a_gpu(words):
    size = -(-25 * lcs.row_words(words) // THREADS) * THREADS
    blocks = lcs.TargetBlocks(array(2), array(2), array(64 * THREADS))
    lowered(partial(lcs.subsequences, words=words), array(4, size), blocks)


# ------------------------------------------------------- edit distances of two sets


@values
@pytest.mark.parametrize("words, slots", [(1, 1), (1, 2), (1, 5), (3, 2), (4, 3)])
def test_distances_are_those_of_one_long_word(words, slots):
    longest = words * 32 // slots - edits.SEPARATORS
    queries, targets = sets(words, 2 * slots + 1, longest), sets(9, THREADS + 3, 40)
    # Carries run through all letters of a query, and U and V up to its end.
    queries[0] = queries[-1] = targets[-1] = np.zeros(longest, np.uint8)
    got = distances(queries, targets, words, slots)
    assert got.tolist() == wanted(queries, targets)


@values
def test_blocks_that_no_query_meets_are_left_out():
    queries, targets = sets(1, 5, 30), sets(2, 3 * THREADS, 9)
    targets.sort(key=len, reverse=True)
    got = distances(queries, targets, 2, 2, met=(1, 2))
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
    got = distances(queries, targets, words, 1)
    assert got.tolist() == wanted(queries, targets)


@pytest.mark.parametrize(
    "words", [1, pytest.param(edits.STACK_WORD_COUNTS[-1], marks=pytest.mark.slow)]
)
def test_distances_lower_to_mosaic_for_a_gpu(words):
    size = -(-26 * lcs.row_words(words) // THREADS) * THREADS
    blocks = lcs.TargetBlocks(array(2), array(2), array(64 * THREADS))
    run = partial(edits.edit_distances, words=words, padding=24, rows=8)
    lowered(run, array(4, size), array(4), blocks, array(2 * THREADS))


def test_every_query_has_a_stack():
    for longest in range(edits.MAX_EDIT_QUERY + 1):
        words, slots = edits.edit_stack(longest)
        assert words * 32 // slots >= longest + edits.SEPARATORS


# ---------------------------------------------------------- edit distances of pairs


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


def check_pairs(columns, letters, codes, words, several):
    padding = edits.pair_padding(codes)
    static = {"words": words, "padding": padding, "several": several}
    more = edits.MAX_ROWS_READ
    sides = []
    for some, options in ((columns, {"more": more}), (letters, {"front": True})):
        some = [*some, *[np.zeros(0, np.uint8)] * (-len(some) % THREADS)]
        sides += [target_blocks(some, padding, **options), joined(some)[2]]
    result = edits.pair_edits(*sides, **static, interpret=mosaic.interpreter())
    pairs = zip(columns, letters, strict=True)
    want = [distance(a.tolist(), b.tolist()) for a, b in pairs]
    assert inside_arrays(result)[: len(columns)].tolist() == want


@values
@pytest.mark.parametrize(
    "codes, words, longest",
    [(4, 1, 32), (4, 2, 33), (1, 2, 63), (7, 2, 64), (11, 4, 97), (25, 2, 50),
     (255, 1, 31)],
)  # fmt: skip
def test_distances_of_pairs_are_those_of_one_long_word(codes, words, longest):
    columns, letters = pairs_of(codes, codes, longest, THREADS + 5)
    check_pairs(columns, letters, codes, words, several=False)


@values
@pytest.mark.parametrize("codes, words, longest", [(4, 2, 200), (20, 1, 97)])
def test_edges_cross_from_a_group_to_the_next(codes, words, longest):
    columns, letters = pairs_of(2, codes, longest, THREADS + 5, 30)
    columns[THREADS:] = [one[:40] for one in columns[THREADS:]]  # a block of fewer
    check_pairs(columns, letters, codes, words, several=True)


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
def test_pairs_lower_to_mosaic_for_a_gpu(words, several, padding):
    blocks = lcs.TargetBlocks(array(2), array(2), array(600 * THREADS))
    side = blocks, array(2 * THREADS)
    static = {"words": words, "several": several, "padding": padding}
    lowered(partial(edits.pair_edits, **static), *side, *side)
