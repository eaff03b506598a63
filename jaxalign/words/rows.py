"""Bit-parallel words in NumPy: common subsequences and edit distances without a
compiler.

Words of many pairs lie side by side, and a step reads one letter of every query; the
recurrences are those of ``words.dp``. Of U = V & M the rest of V is V - U, which is
V ^ U. Where a sequence is long, V is one integer of Python.
"""

from typing import TYPE_CHECKING

import numpy as np

from jaxalign.model.alphabet import CodedSequences, LetterCodes, stacked
from jaxalign.words.match_vectors import WORD_BITS, flag_words, match_table, word_type

if TYPE_CHECKING:
    from jaxalign.model.alphabet import Alphabet


STEP_PAIRS = 2**14  # of which a word is read at once: five such arrays stay in a cache
STEP_WORDS, STEP_MATCH = 2**16, 2**21  # of all pairs of a step, and of their vectors
# Of sequences whose pairs are counted together: NumPy is called for each word and
# letter, so pairs of a few longer ones are counted one after the other
MOST_LETTERS = (256, 512, 1024, 2048, 4096)
# Seconds of the calls for a word and a letter, of a word of a pair, and of a letter of
# a pair alone, and a word of that (AMD EPYC, AVX2, NumPy 2.4)
CALLS, WORD, LETTER, LETTER_WORD = 6e-6, 8.5e-10, 5e-7, 5e-10
EDIT_CALLS, EDIT_WORD = 1e-5, 5e-9  # the first two, of edit distances


def match_words(codes: np.ndarray, letters: int, wildcard: int | None) -> np.ndarray:
    """For each letter the columns of each target that hold it.

    codes : uint8 (targets, columns). ``letters`` beyond the end of a target.
    letters : of the alphabet.
    wildcard : a letter that nothing matches.
    Returns uint64 (words, letters, targets). The first column is the lowest bit of the
    first word.
    """
    targets, columns = codes.shape
    words = max(-(-columns // WORD_BITS), 1)
    room = np.full((targets, words * WORD_BITS), letters, np.uint8)
    room[:, :columns] = codes
    (match,) = match_table(room, letters, np.dtype(np.uint64), words, wildcard=wildcard)
    return np.ascontiguousarray(match.swapaxes(0, 1))


def lcs(codes: np.ndarray, lengths: np.ndarray, match: np.ndarray) -> np.ndarray:
    """LCS of some queries with each of some targets.

    codes : uint8 (queries, letters)
    lengths : integers (queries,). Falling; what lies beyond the end of a query is not
        read.
    match : uint64 (words, letters, targets). See ``match_words``.
    Returns int32 (queries, targets)
    """
    words, _, targets = match.shape
    v = np.full((words, len(codes), targets), 2**64 - 1, np.uint64)
    room = np.empty((4, *v.shape[1:]), np.uint64)
    longest = int(lengths.max(initial=0))
    present = np.searchsorted(-lengths, -np.arange(longest))  # queries with a letter
    for at, count in enumerate(present.tolist()):
        carry, u, total, remainder = (x[:count] for x in room)
        letters = codes[:count, at]
        for word, (old, rows) in enumerate(zip(v[:, :count], match, strict=True)):
            np.take(rows, letters, axis=0, out=u, mode="clip")
            np.bitwise_and(old, u, out=u)
            np.add(old, u, out=total)
            if word:
                np.add(total, carry, out=total)
            np.bitwise_xor(old, u, out=remainder)
            np.bitwise_or(total, remainder, out=old)
            if word + 1 < words:  # the carry: the highest bit of U | (V & ~total)
                np.invert(total, out=total)
                np.bitwise_and(remainder, total, out=remainder)
                np.bitwise_or(remainder, u, out=remainder)
                np.right_shift(remainder, np.uint64(WORD_BITS - 1), out=carry)
    return np.bitwise_count(~v).sum(axis=0, dtype=np.int32)


def lcs_block(
    queries: CodedSequences,
    rows: np.ndarray,
    targets: CodedSequences,
    columns: np.ndarray,
    alphabet: "Alphabet",
) -> np.ndarray:
    """LCS of some queries, the longest first, with a block of targets, both by index.

    Returns int32 (queries, targets)
    """
    rows, columns = np.asarray(rows), np.asarray(columns)
    counts = np.zeros((len(rows), len(columns)), np.int32)
    lengths = queries.lengths[rows], targets.lengths[columns]
    limit = min(MOST_LETTERS, key=lambda limit: _seconds(*lengths, limit))
    long = [side > limit for side in lengths]
    pairs = np.nonzero(long[0][:, None] | long[1][None])
    if len(pairs[0]):
        long_pairs = rows[pairs[0]], columns[pairs[1]]
        counts[pairs] = lcs_of_long(
            queries, long_pairs[0], targets, long_pairs[1], alphabet
        )
    short = rows[~long[0]], columns[~long[1]]
    if len(short[0]) and len(short[1]):
        codes = stacked(targets, short[1], alphabet.size)
        match = match_words(codes, alphabet.size, alphabet.wildcard_code)
        step = max(STEP_PAIRS // len(short[1]), 1)
        runs = (short[0][at : at + step] for at in range(0, len(short[0]), step))
        blocks = [lcs(stacked(queries, x), queries.lengths[x], match) for x in runs]
        counts[np.ix_(~long[0], ~long[1])] = np.concatenate(blocks)
    return counts


def _seconds(m: np.ndarray, n: np.ndarray, limit: int) -> float:
    """Estimate the seconds of a block whose longer pairs are counted singly.

    m, n : integers (queries,), (targets,)
    """
    short, columns = m[m <= limit], n[n <= limit]
    words = -(-int(columns.max(initial=0)) // WORD_BITS)
    step = max(STEP_PAIRS // max(len(columns), 1), 1)
    together = CALLS * words * float(short[::step].sum())
    together += WORD * words * len(columns) * float(short.sum())
    long_pairs = (m > limit)[:, None] | (n > limit)[None]
    shorter, longer = np.minimum(m[:, None], n[None]), np.maximum(m[:, None], n[None])
    each = shorter * (LETTER + LETTER_WORD / WORD_BITS * longer)
    return together + float(each[long_pairs].sum())


def lcs_of_long(
    queries: CodedSequences,
    i: np.ndarray,
    targets: CodedSequences,
    j: np.ndarray,
    alphabet: "Alphabet",
) -> np.ndarray:
    """LCS of pairs (i[k], j[k]), one after the other: V of the longer sequence is one
    integer of Python, of as many bits, and the letters are those of the shorter one.

    Returns int32 (pairs,)
    """
    wildcard, tables = alphabet.wildcard_code, {}

    def columns_of(side: int, sequences: CodedSequences, index: int) -> list[int]:
        """For each letter the places that hold it, as bits."""
        if (side, index) not in tables:
            codes, columns = sequences[index], [0] * alphabet.size
            for letter in {*range(alphabet.size)} - {wildcard}:
                octets = np.packbits(codes == letter, bitorder="little")
                columns[letter] = int.from_bytes(octets.tobytes(), "little")
            tables[side, index] = columns
        return tables[side, index]

    def of_pair(i: int, j: int) -> int:
        a, b = (0, queries, i), (1, targets, j)
        if len(queries[i]) > len(targets[j]):
            a, b = b, a
        columns, length = columns_of(*b), len(b[1][b[2]])
        every = (1 << length) - 1
        v = every
        for letter in a[1][a[2]].tolist():
            u = v & columns[letter]
            v = ((v + u) | (v ^ u)) & every
        return length - v.bit_count()

    pairs = zip(i.tolist(), j.tolist(), strict=True)
    return np.fromiter((of_pair(*pair) for pair in pairs), np.int32, len(i))


def edit_seconds(m: np.ndarray, words: int) -> float:
    """Estimate the seconds of ``edit_distances`` for m letters (falling) and targets of
    ``words`` words."""
    return words * (EDIT_CALLS * float(m[0]) + EDIT_WORD * float(m.sum()))


def edit_step(words: int, letters: int) -> int:
    """Pairs per step, for targets of ``words`` words."""
    words = max(words, 1)
    vectors = words * max(letters, 1)
    return max(min(STEP_PAIRS, STEP_WORDS // words, STEP_MATCH // vectors), 1)


def edit_distances(sequences: LetterCodes, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Edit distances of sequences i, of falling lengths, to sequences j: int32 (P,)."""
    m = sequences.lengths[i]
    which, place = np.unique(j, return_inverse=True)
    n, target_count = sequences.lengths[which], len(which)
    word = word_type(int(n.max(initial=0)), 0)
    width = word.itemsize * 8
    words = max(-(-int(n.max(initial=0)) // width), 1)
    inside = np.arange(words * width) < n[:, None]
    codes = np.full(inside.shape, sequences.size, np.uint16)
    codes[inside] = sequences.chosen(which).codes
    (match,) = match_table(codes, sequences.size, word, words)
    match = np.ascontiguousarray(match.swapaxes(0, 1)).reshape(words, -1)
    p_words = np.full((words, len(i)), np.iinfo(word).max, word)
    n_words = np.zeros_like(p_words)
    room = np.empty((6, len(i)), word)
    unit, highest, last = word.type(1), word.type(width - 1), words - 1
    first = sequences.starts[i]
    longest = int(m.max(initial=0))
    present = np.searchsorted(-m, -np.arange(longest))  # queries with a letter
    for at, count in enumerate(present.tolist()):
        letters = sequences.codes[first[:count] + at].astype(np.intp)
        at_match = letters * target_count + place[:count]
        equal, d, up, down, rise, fall = room[:, :count]
        pairs = zip(p_words[:, :count], n_words[:, :count], strict=True)
        for k, (p, n) in enumerate(pairs):
            np.take(match[k], at_match, out=equal, mode="clip")
            if k:
                np.bitwise_or(equal, fall, out=equal)
            np.bitwise_and(equal, p, out=d)
            np.add(d, p, out=d)
            np.bitwise_xor(d, p, out=d)
            np.bitwise_or(d, equal, out=d)
            np.bitwise_or(d, n, out=d)
            np.bitwise_or(d, p, out=up)
            np.invert(up, out=up)
            np.bitwise_or(up, n, out=up)
            np.bitwise_and(d, p, out=down)
            if k < last:  # the highest bits, which the next word takes up
                np.right_shift(up, highest, out=equal)
                np.right_shift(down, highest, out=n)
            np.left_shift(up, unit, out=up)
            np.bitwise_or(up, rise if k else unit, out=up)
            np.left_shift(down, unit, out=down)
            if k:
                np.bitwise_or(down, fall, out=down)
            if k < last:
                rise[:], fall[:] = equal, n
            np.bitwise_or(d, up, out=p)
            np.invert(p, out=p)
            np.bitwise_or(p, down, out=p)
            np.bitwise_and(d, up, out=n)
    (mask,) = flag_words(inside, word, words)
    rises = np.bitwise_count(p_words & mask[:, place]).sum(axis=0, dtype=np.int32)
    falls = np.bitwise_count(n_words & mask[:, place]).sum(axis=0, dtype=np.int32)
    return m.astype(np.int32) + rises - falls
