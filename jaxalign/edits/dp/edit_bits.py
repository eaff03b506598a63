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

Words, lanes and groups are those of ``bits.lcs_words``; blocks are not needed, since D
is written down (``_written``). A target ends at the highest bit of its last word, where
p and n of all rows add up to its distance. The columns before its first letter match
the padding letter alone, and begin with P = 0. Real letters carry p = 1 through such
columns, and the padding letter p = 0, and neither changes them. So the padding letter
may come before a query, where it changes nothing. Words are uint64, or shorter where
all targets are.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.one_function import CPU_OPTIONS, one_function


def _highest(word: jax.Array):
    bits = word.dtype.itemsize * 8
    return lax.shift_right_logical(word, word.dtype.type(bits - 1))


def _written(room: jax.Array, i: jax.Array, value: jax.Array):
    """(room, value), computed once: XLA:CPU has a loop for each array of the next row,
    and would compute what several of them read in each, but not what it reads back
    from a row of an array.

    room : (2, lanes), one row of which is written at letter ``i``
    """
    row = i & jnp.int32(1)
    room = lax.dynamic_update_slice_in_dim(room, value[None], row, 0)
    again = (i + jnp.int32(2)) & jnp.int32(1)  # the same, which XLA cannot see
    return room, lax.dynamic_index_in_dim(room, again, 0, False)


def _next_word(
    word: tuple[jax.Array, jax.Array],
    room: jax.Array,
    i: jax.Array,
    match: jax.Array,
    edge: tuple[jax.Array, jax.Array | None],
):
    """((P, N) of the next row, (p, n) of the word after, the room of D).

    edge : (p, n) of this word, n None where it is 0
    """
    (p, n), (rise, fall) = word, edge
    one = p.dtype.type(1)
    equal = match if fall is None else match | fall
    room, d = _written(room, i, (((equal & p) + p) ^ p) | equal | n)
    up, down = n | ~(d | p), d & p
    ends = _highest(up), _highest(down)
    up, down = lax.shift_left(up, one) | rise, lax.shift_left(down, one)
    down = down if fall is None else down | fall
    return (down | ~(d | up), d & up), ends, room


def _joined(edge: tuple[jax.Array, jax.Array]):
    """p and n in two bits of a word."""
    rise, fall = edge
    return rise | lax.shift_left(fall, fall.dtype.type(1))


def _parted(both: jax.Array):
    one = both.dtype.type(1)
    return both & one, lax.shift_right_logical(both, one)


def _sweep(
    match: Callable[[jax.Array, int], jax.Array],
    letters: jax.Array,
    begin: list[jax.Array],
    first: Callable[[jax.Array], tuple[jax.Array, Any]],
    before: jax.Array | None = None,
):
    """Rises less falls after the last of some words, and all edges there.

    match : function (letter, word) -> match words (lanes,)
    begin : P of each word before the first letter
    first : function letter -> edge before the first word, where there is no ``before``
    before : (rows, lanes) joined edges before the first word, or None
    """
    zero = lax.full_like(begin[0], 0)

    def step(i: jax.Array, state: tuple):
        words, rooms, total, after = state
        words, rooms = list(words), list(rooms)
        edge = first(i)
        if before is not None:
            edge = _parted(lax.dynamic_index_in_dim(before, i, 0, False))
        for k, word in enumerate(words):
            words[k], edge, rooms[k] = _next_word(word, rooms[k], i, match(i, k), edge)
        if after is not None:
            after = lax.dynamic_update_index_in_dim(after, _joined(edge), i, 0)
        rise, fall = edge
        return tuple(words), tuple(rooms), total + rise - fall, after

    after = None if before is None else lax.full_like(before, 0)
    rooms = (lax.full((2, *zero.shape), zero.dtype.type(0)),) * len(begin)
    state = tuple((p, zero) for p in begin), rooms, zero, after
    _, _, total, after = lax.fori_loop(jnp.int32(0), letters, step, state)
    return total, after


def distances_of(
    match: Callable[[jax.Array, jax.Array, int], jax.Array],
    letters: jax.Array,
    begin: Callable[[jax.Array], list[jax.Array]],
    first: Callable[[jax.Array], tuple[jax.Array, Any]],
    groups: tuple[jax.Array, jax.Array],
    before: jax.Array | None,
):
    """Distances (lanes,) of one query, or of a query a lane.

    match : function (group, letter, word) -> match words (lanes,)
    begin : function group -> P of each of its words before the first letter
    groups : the first, and the one after the last
    before : edges before the first group; None: there is one group
    """
    start, stop = groups
    if before is None:
        words = begin(start)
        total, _ = _sweep(lambda i, w: match(start, i, w), letters, words, first)
        return total + _letters_of(words)

    def group(k: jax.Array, state: tuple[jax.Array, jax.Array, jax.Array]):
        many, _, edges = state
        words = begin(k)
        total, edges = _sweep(lambda i, w: match(k, i, w), letters, words, first, edges)
        return many + _letters_of(words), total, edges

    zero = lax.full_like(begin(start)[0], 0)
    many, total, _ = lax.fori_loop(start, stop, group, (zero, zero, before))
    return many + total


def _letters_of(words: list[jax.Array]):
    """How many letters of each target some words have, from their first P."""
    total = lax.full_like(words[0], 0)
    for p in words:
        total = total + lax.population_count(p)
    return total


def word_at(match: jax.Array, group: jax.Array, letter: jax.Array, word: int):
    """Match words (lanes,) of a letter."""
    lanes = match.shape[-1]
    at = group, letter.astype(jnp.int32), jnp.int32(word), jnp.int32(0)
    return lax.dynamic_slice(match, at, (1, 1, 1, lanes)).reshape(lanes)


@partial(jax.jit, static_argnames=("rows",), compiler_options=CPU_OPTIONS)
def edits_of_queries(
    match: jax.Array,
    groups: jax.Array,
    letters: jax.Array,
    start: jax.Array,
    length: jax.Array,
    count: jax.Array,
    *,
    rows: int = 0,
):
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

    def all_queries(
        match: jax.Array,
        groups: jax.Array,
        letters: jax.Array,
        start: jax.Array,
        length: jax.Array,
        count: jax.Array,
    ):
        padding = jnp.int32(match.shape[1] - 1)

        def begin(group: jax.Array):
            return [~word_at(match, group, padding, w) for w in range(words)]

        def one(q: jax.Array, results: jax.Array):
            first = lax.dynamic_index_in_dim(start, q, 0, False)

            def match_of(group: jax.Array, i: jax.Array, word: int):
                code = lax.dynamic_index_in_dim(letters, first + i, 0, False)
                return word_at(match, group, code, word)

            before = lax.full((rows, lanes), one_bit) if rows else None
            m = lax.dynamic_index_in_dim(length, q, 0, False)
            edge, both = lambda _: (one_bit, None), (jnp.int32(0), groups)
            edits = distances_of(match_of, m, begin, edge, both, before)
            return lax.dynamic_update_index_in_dim(results, edits, q, 0)

        results = lax.full((start.shape[0], lanes), match.dtype.type(0))
        return lax.fori_loop(jnp.int32(0), count, one, results)

    return one_function(all_queries)(match, groups, letters, start, length, count)
