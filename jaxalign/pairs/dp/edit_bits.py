"""Edit distances (Levenshtein) by bit-parallel words.

Myers (1999), in the form of Hyyrö (2003). Bit j of P says that a row of the table of
distances rises by one from column j to column j + 1, bit j of N that it falls by one;
M[c] has the bits of the columns whose letter is c. A letter c of the query takes both
to the next row,

    E = M[c] | n,    D = (((E & P) + P) ^ P) | E | N,    U = N | ~(D | P),    V = D & P,
    H = U << 1 | p,  P' = (V << 1 | n) | ~(D | H),       N' = D & H.

U and V say that the table rises, or falls, from a row to the next, and p and n that it
does so at the left edge of a word: the highest bits of U and V of the word before, or
p = 1 and n = 0 of the first word.

Words, lanes, blocks and groups are those of ``pairs.dp.bits``, with two differences.
A target ends at the highest bit of its last word, where p and n of all rows add up to
its distance. The columns before its first letter match the padding letter alone, and
begin with P = 0. Real letters carry p = 1 through such columns, and the padding letter
p = 0, and neither changes them. So the padding letter may come before a query, where
it changes nothing, but not after it: what is read there belongs to rows that nobody
counts. Words are uint64, or shorter where all targets are.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.pairs.dp.bits import BLOCK_WORDS, PADDING
from jaxalign.pairs.dp.call import CPU_OPTIONS, one_function


def _highest(word):
    bits = word.dtype.itemsize * 8
    return lax.shift_right_logical(word, word.dtype.type(bits - 1))


def _next_word(word, match, edge):
    """((P, N) of the next row, (p, n) of the word after).

    edge : (p, n) of this word, n None where it is 0
    """
    (p, n), (rise, fall) = word, edge
    one = p.dtype.type(1)
    equal = match if fall is None else match | fall
    d = (((equal & p) + p) ^ p) | equal | n
    up, down = n | ~(d | p), d & p
    ends = _highest(up), _highest(down)
    up, down = lax.shift_left(up, one) | rise, lax.shift_left(down, one)
    down = down if fall is None else down | fall
    return (down | ~(d | up), d & up), ends


def _next_row(words, edges, match, first):
    """The words of all blocks a letter later, and the edge after each block."""
    words, behind = list(words), []
    for block, start in enumerate(range(0, len(words), BLOCK_WORDS)):
        edge = edges[block - 1] if block else first
        for word in range(start, min(start + BLOCK_WORDS, len(words))):
            words[word], edge = _next_word(words[word], match(block, word), edge)
        behind.append(edge)
    return tuple(words), tuple(behind)


def _joined(edge):
    """p and n in two bits of a word."""
    rise, fall = edge
    return rise | lax.shift_left(fall, fall.dtype.type(1))


def _parted(both):
    one = both.dtype.type(1)
    return both & one, lax.shift_right_logical(both, one)


def _sweep(match, letters, begin, first, before=None):
    """Rises less falls after the last of some words, and all edges there.

    match : function (letter, word) -> match words (lanes,); letters from
        ``-PADDING`` to ``letters + PADDING`` are asked for
    begin : P of each word before the first letter
    first : function letter -> edge before the first word, where there is no ``before``
    before : (rows, lanes) joined edges before the first word, or None
    """
    blocks = -(-len(begin) // BLOCK_WORDS)
    zero = lax.full_like(begin[0], 0)

    def step(i, state):
        words, edges, total, after = state
        if before is None:
            edge = first(i)
        else:
            edge = _parted(lax.dynamic_index_in_dim(before, i, 0, False))
        words, edges = _next_row(words, edges, lambda b, w: match(i - b, w), edge)
        rise, fall = edges[-1]
        if before is not None:  # the last block is at letter i - blocks + 1
            at = lax.max(i - jnp.int32(blocks - 1), jnp.int32(0))
            after = lax.dynamic_update_index_in_dim(after, _joined(edges[-1]), at, 0)
        return words, edges, total + rise - fall, after

    after = None if before is None else lax.full_like(before, 0)
    state = tuple((p, zero) for p in begin), ((zero, zero),) * blocks, zero, after
    steps = letters + jnp.int32(blocks - 1)
    _, _, total, after = lax.fori_loop(jnp.int32(0), steps, step, state)
    return total, after


def _distances(match, letters, begin, first, groups, before):
    """Distances (lanes,) of one query, or of a query a lane.

    match : function (group, letter, word) -> match words (lanes,)
    begin : function group -> P of each of its words before the first letter
    before : edges before the first group; None: there is one group
    """
    if before is None:
        words = begin(jnp.int32(0))
        total, _ = _sweep(lambda i, w: match(jnp.int32(0), i, w), letters, words, first)
        return total + _letters_of(words)

    def group(k, state):
        many, _, edges = state
        words = begin(k)
        total, edges = _sweep(lambda i, w: match(k, i, w), letters, words, first, edges)
        return many + _letters_of(words), total, edges

    zero = lax.full_like(begin(jnp.int32(0))[0], 0)
    many, total, _ = lax.fori_loop(jnp.int32(0), groups, group, (zero, zero, before))
    return many + total


def _letters_of(words):
    """How many letters of each target some words have, from their first P."""
    total = lax.full_like(words[0], 0)
    for p in words:
        total = total + lax.population_count(p)
    return total


def _word(match, group, letter, word):
    """Match words (lanes,) of a letter."""
    lanes = match.shape[-1]
    at = group, letter.astype(jnp.int32), jnp.int32(word), jnp.int32(0)
    return lax.dynamic_slice(match, at, (1, 1, 1, lanes)).reshape(lanes)


@partial(jax.jit, static_argnames=("rows",), compiler_options=CPU_OPTIONS)
def edits_of_queries(match, groups, letters, start, length, count, *, rows: int = 0):
    """Distances of some queries to each of some targets in lanes.

    Parameters
    ----------
    match : uint16, uint32 or uint64 (groups, letters + 1, words, lanes)
        The last letter matches the columns before each target, and no others.
    groups, letters, start, length, count, rows
        As of ``bits.lcs_of_queries``.

    Returns
    -------
    match.dtype (slots, lanes)
        Distances modulo its range.
    """
    _, _, words, lanes = match.shape
    one_bit = match.dtype.type(1)

    def all_queries(match, groups, letters, start, length, count):
        padding = jnp.int32(match.shape[1] - 1)

        def begin(group):
            return [~_word(match, group, padding, w) for w in range(words)]

        def one(q, results):
            first = lax.dynamic_index_in_dim(start, q, 0, False)

            def match_of(group, i, word):
                code = lax.dynamic_index_in_dim(letters, first + i, 0, False)
                return _word(match, group, code, word)

            before = None
            if rows:
                before = lax.full((rows + PADDING, lanes), one_bit)
            m = lax.dynamic_index_in_dim(length, q, 0, False)
            found = _distances(
                match_of, m, begin, lambda _: (one_bit, None), groups, before
            )
            return lax.dynamic_update_index_in_dim(results, found, q, 0)

        results = lax.full((start.shape[0], lanes), match.dtype.type(0))
        return lax.fori_loop(jnp.int32(0), count, one, results)

    return one_function(all_queries)(match, groups, letters, start, length, count)


@partial(jax.jit, static_argnames=("rows",), compiler_options=CPU_OPTIONS)
def edits_of_pairs(planes, groups, letters, length, *, rows: int = 0):
    """Distances of pairs in lanes, each query with its own target.

    Parameters
    ----------
    planes : uint16, uint32 or uint64 (groups, planes, words, lanes)
        Bit k of the code of each column; the columns before a target have the padding
        letter. A column matches a letter where all bits do.
    groups, rows : as of ``edits_of_queries``
    letters : uint8, uint16 or uint32 (letters, lanes)
        A query a lane, its last letter in row ``PADDING + length - 1``; before it and
        after it are padding letters.
    length : int32
        The longest of them.

    Returns
    -------
    planes.dtype (lanes,)
        Distances modulo its range.
    """
    _, count, words, lanes = planes.shape
    dtype = planes.dtype

    def all_lanes(planes, groups, letters, length):
        padding = letters[0]

        def codes(i):
            return lax.dynamic_index_in_dim(letters, i + jnp.int32(PADDING), 0, False)

        def masks(code):
            code = code.astype(dtype)
            bits = (lax.shift_right_logical(code, dtype.type(k)) for k in range(count))
            return [dtype.type(0) - (bit & dtype.type(1)) for bit in bits]

        def match_of(group, code, word):
            differ = lax.full((lanes,), dtype.type(0))
            for k, mask in enumerate(masks(code)):
                differ = differ | (_word(planes, group, jnp.int32(k), word) ^ mask)
            return ~differ

        def begin(group):
            return [~match_of(group, padding, w) for w in range(words)]

        def first(i):
            return (codes(i) != padding).astype(dtype), None

        before = None
        if rows:
            real = lax.dynamic_slice_in_dim(letters, PADDING, rows + PADDING)
            before = (real != lax.broadcast_in_dim(padding, real.shape, (1,))).astype(
                dtype
            )
        return _distances(
            lambda group, i, word: match_of(group, codes(i), word),
            length,
            begin,
            first,
            groups,
            before,
        )

    return one_function(all_lanes)(planes, groups, letters, length)
