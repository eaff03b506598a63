"""Longest common subsequences by words: the definition, brute force, odd lengths."""

from itertools import combinations, product

import numpy as np
import pytest
from cases import lcs_by_words, some_texts

from jaxalign.model.alphabet import as_sequences
from jaxalign.model.scoring import Scoring
from jaxalign.pairs.proofs import proof
from jaxalign.runtime.devices import by_length
from jaxalign.words import cpu, match_vectors, rows

SCORING = Scoring()
ALPHABET = SCORING.alphabet


def by_definition(a, b, wildcard=None) -> int:
    """The longest of all subsequences of ``a`` that is one of ``b``."""

    def within(some):
        rest = iter(b)
        return wildcard not in some and all(x in rest for x in some)

    sizes = range(min(len(a), len(b)), -1, -1)
    return next(k for k in sizes if any(map(within, combinations(a, k))))


def by_table(a, b, wildcard=None) -> int:
    """The recurrence, a row at a time."""
    row = np.zeros(len(b) + 1, int)
    b = np.frombuffer(b.encode(), np.uint8)
    for x in a.encode():
        same = (b == x) & (x != ord(wildcard or "\0"))
        new = np.maximum(row[1:], np.where(same, row[:-1] + 1, 0))
        row[1:] = np.maximum.accumulate(new)
    return int(row[-1])


def of_blocks(queries, targets, alphabet=ALPHABET):
    """(queries, targets) by ``lcs_windows``; in NumPy they are the same."""
    queries, targets = (as_sequences(x, alphabet) for x in (queries, targets))
    everyone = np.arange(len(queries))
    letters = match_vectors.query_letters(queries, everyone, alphabet.size)
    found = []
    for start in range(0, len(targets), 128):
        some = np.arange(start, min(start + 128, len(targets)))
        found.append(
            cpu.lcs_block(letters, slice(0, len(queries)), targets, some, alphabet)
        )
    found = np.concatenate(found, axis=1)
    order = by_length(queries.lengths)
    some = np.arange(len(targets))
    by_rows = rows.lcs_block(queries, order, targets, some, alphabet)
    np.testing.assert_array_equal(by_rows, found[order])
    return found


@pytest.mark.parametrize("letters, longest", [("AC", 5), ("ACX", 4)])
def test_all_short_words_against_the_definition(letters, longest):
    words = ["".join(x) for k in range(longest + 1) for x in product(letters, repeat=k)]
    want = np.array([[by_definition(a, b, "X") for b in words] for a in words])
    assert [[lcs_by_words(a, b, "X") for b in words] for a in words] == want.tolist()
    assert [[by_table(a, b, "X") for b in words] for a in words] == want.tolist()
    np.testing.assert_array_equal(of_blocks(words, words), want)


@pytest.mark.parametrize("longest", [63, 64, 65, 130, 260, 500])
def test_words_of_targets_join(longest):
    rng = np.random.default_rng(longest)
    targets = [
        "".join(rng.choice(list("ACDX"), n))
        for n in (longest, longest - 1, longest, 0, 1, *rng.integers(0, longest, 12))
    ]
    targets[2] = "A" * longest  # whose carries run through all words
    queries = [*targets[:6], "A" * 90, "C", "X" * 40, "".join(rng.choice(["A"], 70))]
    want = [[by_table(a, b, "X") for b in targets] for a in queries]
    assert of_blocks(queries, targets).tolist() == want


def test_targets_of_several_groups_of_words():
    rng = np.random.default_rng(9)
    longest = match_vectors.MAX_WORDS * match_vectors.WORD_BITS
    sizes = (longest, longest + 1, 3 * longest, 2 * longest - 7, 40)
    targets = ["".join(rng.choice(list("ACD"), n)) for n in sizes]
    targets.append("A" * 3 * longest)
    queries = ["".join(rng.choice(list("ACD"), n)) for n in (200, 1, 0, 77)]
    queries.append("A" * 150)
    want = [[lcs_by_words(a, b) for b in targets] for a in queries]
    assert of_blocks(queries, targets).tolist() == want


@pytest.mark.parametrize("most", [0, 60, 100, 300])
def test_long_sequences_pair_by_pair(most, monkeypatch):
    """Of either side, all or none; what is short is counted together, as ever."""
    monkeypatch.setattr(rows, "MOST_LETTERS", (most,))
    rng = np.random.default_rng(10)
    queries, targets = (
        ["".join(rng.choice(list("ACDX"), n)) for n in sizes]
        for sizes in ((150, 101, 100, 61, 0, 7), (70, 300, 1, 0, 99, 130, 64))
    )
    want = [[by_table(a, b, "X") for b in targets] for a in queries]
    assert of_blocks(queries, targets).tolist() == want


def test_more_queries_and_targets_than_a_call_takes():
    texts = some_texts(3, cpu.LCS_SLOTS + 60, 40)
    want = [[lcs_by_words(a, b, "X") for b in texts[:150]] for a in texts]
    assert of_blocks(texts, texts[:150]).tolist() == want


def test_pairs_near_a_cut_are_those_that_a_loop_finds():
    rng = np.random.default_rng(3)
    for height, columns in ((1, 1), (3, 5), (40, 33)):
        sides = (np.sort(rng.integers(0, 9, size))[::-1] for size in (height, columns))
        (m, of_query), (n, of_target) = map(proof.classes_of, sides)
        least = rng.integers(0, 12, (len(m), len(n)))
        least[rng.random(least.shape) < 0.2] = proof.NEVER
        counts = rng.integers(0, 8, (height, columns)).astype(np.int16)
        found = proof.near(counts, least, of_query, of_target)
        every = [(i, j) for i in range(height) for j in range(columns)]
        want = [x for x in every if counts[x] >= least[of_query[x[0]], of_target[x[1]]]]
        assert list(zip(*found, strict=True)) == want


def test_short_sequences_take_more_lanes_and_shorter_words():
    texts = ["A" * 32, *some_texts(8, 600, match_vectors.SHORT)]
    sequences = as_sequences(texts, ALPHABET)
    order = by_length(sequences.lengths)
    assert proof.block_size(sequences.lengths[order], 0) == 512
    words = match_vectors.lcs_vectors(sequences, order[:512], ALPHABET)
    assert words.match.dtype == np.uint32 and words.match.shape[-1] == 512
    letters = match_vectors.query_letters(sequences, order, ALPHABET.size)
    some = slice(3, len(order))
    found = cpu.lcs_block(letters, some, sequences, order[:512], ALPHABET)
    by_rows = rows.lcs_block(sequences, order[3:], sequences, order[:512], ALPHABET)
    np.testing.assert_array_equal(found, by_rows)
    for i, j in ((0, 0), (5, 511), (len(order) - 4, 3)):
        want = lcs_by_words(texts[order[i + 3]], texts[order[j]], "X")
        assert found[i, j] == want


@pytest.mark.parametrize("count, longest", [(1, 30), (20, 90), (128, 64), (40, 1100)])
def test_pairs_side_by_side(count, longest):
    queries, targets = (some_texts(seed, count, longest) for seed in (4, 5))
    targets[0] = queries[0] = "MK" * (longest // 2)
    sides = [as_sequences(x, ALPHABET) for x in (queries, targets)]
    everyone = np.arange(count)
    found = cpu.lcs_zipped(*sides, everyone, everyone[::-1], ALPHABET)
    pairs = zip(queries, targets[::-1], strict=True)
    assert found.tolist() == [lcs_by_words(a, b, "X") for a, b in pairs]


def test_nucleotides_and_codes():
    alphabet = Scoring(match=2, mismatch=-3).alphabet
    texts = ["ACGTNACGT", "NNNN", "TTTTGCA", "", "ACGT"]
    want = [[lcs_by_words(a, b, "N") for b in texts] for a in texts]
    assert of_blocks(texts, texts, alphabet).tolist() == want
