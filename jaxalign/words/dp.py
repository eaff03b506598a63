"""Longest common subsequences and edit distances by bit-parallel words.

The bits of a target lie in words, its first column in the lowest bit of the first word,
and targets lie side by side in lanes; M[c] has the bits of the columns whose letter is
c. A *step* takes the words of all lanes a letter c of the query further, so that the
match words of a step are one row where all lanes read the same query. The words of long
targets fall into groups, one swept after the other. JAX's 64-bit mode has to be on.

Common subsequences: Crochemore, Iliopoulos, Pinzon and Reid (2001), in the form of
Hyyrö (2004). Bit j of V says that row i of the table of LCS does not rise from column j
to column j + 1, and

    U = V & M[c],    V' = (V + U) | (V & ~M[c]).

The zero bits of the last V are the length of the LCS. A letter that matches nothing
leaves V as it is, so it may stand for the wildcard and for padding. Of the sum V + U
only the carry joins one word to the next: it is the highest bit of U | (V & ~sum),
since U is part of V. Words come in blocks of ``BLOCK_WORDS``, and a block is one letter
behind the block before it: a step needs the carry that the block before left in the
step before. Within a step XLA computes the carries of a block once for each of its
words, so a block is short.

Edit distances: Myers (1999), in the form of Hyyrö (2003). Bit j of P says that a row of
the table rises by one from column j to column j + 1, bit j of N that it falls by one,
and

    E = M[c] | n,    D = (((E & P) + P) ^ P) | E | N,    U = N | ~(D | P),    V = D & P,
    H = U << 1 | p,  P' = (V << 1 | n) | ~(D | H),       N' = D & H.

U and V say that the table rises, or falls, from a row to the next, and p and n that it
does so at the left edge of a word: the highest bits of U and V of the word before, or
p = 1 and n = 0 of the first word. Blocks are not needed, since D is written down
(``_written``). A target ends at the highest bit of its last word, where p and n of all
rows add up to its distance. The columns before its first letter match the padding
letter alone, and begin with P = 0. Real letters carry p = 1 through such columns, and
the padding letter p = 0, and neither changes them. So the padding letter may come
before a query, where it changes nothing.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.one_function import CPU_OPTIONS, one_function
from jaxalign.words.match_vectors import PADDING

BLOCK_WORDS = 2


def word_at(match: jax.Array, group: jax.Array, letter: jax.Array, word: int):
    """Match words (lanes,) of a letter."""
    lanes = match.shape[-1]
    at = group, letter.astype(jnp.int32), jnp.int32(word), jnp.int32(0)
    return lax.dynamic_slice(match, at, (1, 1, 1, lanes)).reshape(lanes)


def _of_queries(
    result_of: Callable[..., jax.Array],
    dtype: Any,
    match: jax.Array,
    groups: jax.Array,
    letters: jax.Array,
    start: jax.Array,
    length: jax.Array,
    count: jax.Array,
):
    """Results dtype (slots, lanes) of one query after the other.

    result_of : function (match, groups, match_of, letters) -> result (lanes,) of one
        query, where ``match_of`` is a function (group, letter, word) -> match words
    """

    def all_queries(
        match: jax.Array,
        groups: jax.Array,
        letters: jax.Array,
        start: jax.Array,
        length: jax.Array,
        count: jax.Array,
    ):
        def query(q: jax.Array, results: jax.Array):
            first = lax.dynamic_index_in_dim(start, q, 0, False)

            def match_of(group: jax.Array, i: jax.Array, word: int):
                code = lax.dynamic_index_in_dim(letters, first + i, 0, False)
                return word_at(match, group, code, word)

            m = lax.dynamic_index_in_dim(length, q, 0, False)
            result = result_of(match, groups, match_of, m)
            return lax.dynamic_update_index_in_dim(results, result, q, 0)

        shape = start.shape[0], match.shape[-1]
        results = lax.full(shape, jnp.asarray(0, dtype))
        return lax.fori_loop(jnp.int32(0), count, query, results)

    return one_function(all_queries)(match, groups, letters, start, length, count)


def _next_row(
    words: Sequence[jax.Array],
    carries: tuple[jax.Array, ...],
    match: Callable[[int, int], jax.Array],
    first: jax.Array | None,
):
    """The words of all blocks a letter later, and what each carries to the next one.

    match : function (block, word) -> match words, of the letter that the block is at
    first : the carry into the first block, or None
    """
    words, behind = list(words), []
    for block, start in enumerate(range(0, len(words), BLOCK_WORDS)):
        carry = carries[block - 1] if block else first
        for word in range(start, min(start + BLOCK_WORDS, len(words))):
            v, bits = words[word], match(block, word)
            u = v & bits
            total = v + u if carry is None else v + u + carry
            highest = jnp.asarray(8 * v.dtype.itemsize - 1, v.dtype)
            over = lax.shift_right_logical(u | (v & ~total), highest)
            words[word], carry = total | (v & ~bits), over
        behind.append(carry)
    return tuple(words), tuple(behind)


def _lcs_sweep(
    match: Callable[[jax.Array, int], jax.Array],
    letters: jax.Array,
    shape: tuple[int, int],
    dtype: jnp.dtype,
    before: jax.Array | None = None,
):
    """Zero bits of the last row (lanes,) of some words, and their carries.

    match : function (letter, word) -> match words (lanes,); letters from
        ``-PADDING`` to ``letters + PADDING`` are asked for
    shape : (words, lanes)
    before : uint64 (rows, lanes) carries into the first word at each letter, or None
    """
    count, lanes = shape
    blocks = -(-count // BLOCK_WORDS)
    zero = lax.full((lanes,), jnp.asarray(0, dtype))
    ones = ~zero

    def step(i: jax.Array, state: tuple):
        words, carries, after = state
        first = (
            None if before is None else lax.dynamic_index_in_dim(before, i, 0, False)
        )
        words, carries = _next_row(
            words, carries, lambda block, word: match(i - block, word), first
        )
        if before is not None:  # the last block is at letter i - blocks + 1
            at = lax.max(i - jnp.int32(blocks - 1), jnp.int32(0))
            after = lax.dynamic_update_index_in_dim(after, carries[-1], at, 0)
        return words, carries, after

    after = None if before is None else lax.full_like(before, 0)
    state = (ones,) * count, (zero,) * blocks, after
    steps = letters + jnp.int32(blocks - 1)
    words, _, after = lax.fori_loop(jnp.int32(0), steps, step, state)
    total = zero
    for word in words:
        total = total + lax.population_count(~word)
    return total, after


def _subsequences(
    match: Callable[[jax.Array, jax.Array, int], jax.Array],
    letters: jax.Array,
    shape: tuple[int, int],
    dtype: jnp.dtype,
    groups: jax.Array,
    rows: int,
):
    """LCS (lanes,) of one query, or of a query a lane: int16 where there is one group
    of words, else int32.

    match : function (group, letter, word) -> match words (lanes,)
    rows : static, room for the letters of a query; 0: there is one group
    """
    if not rows:
        sweep = _lcs_sweep(
            lambda i, w: match(jnp.int32(0), i, w), letters, shape, dtype
        )
        return sweep[0].astype(jnp.int16)
    lanes = shape[1]

    def group(k: jax.Array, state: tuple[jax.Array, jax.Array]):
        total, carries = state
        zeros, carries = _lcs_sweep(
            lambda i, w: match(k, i, w), letters, shape, dtype, carries
        )
        return total + zeros, carries

    empty = (lax.full((n, lanes), jnp.asarray(0, dtype)) for n in (1, rows + PADDING))
    total, carries = empty
    state = total.reshape(lanes), carries
    lcs = lax.fori_loop(jnp.int32(0), groups, group, state)[0]
    return lcs.astype(jnp.int32)


@partial(jax.jit, static_argnames=("rows",))
def lcs_of_queries(
    match: jax.Array,
    groups: jax.Array,
    letters: jax.Array,
    start: jax.Array,
    length: jax.Array,
    count: jax.Array,
    *,
    rows: int = 0,
):
    """LCS of some queries with each of some targets in lanes.

    match : uint64 or uint32 (room for groups, letters + 1, words, lanes). A group has
        ``words`` of all targets; the last letter matches nothing.
    groups : int32. As many as the longest target needs.
    letters : uint8 (F,). Queries one after the other, ``PADDING`` times the last letter
        before, between and after them.
    start, length : int32 (slots,). Where the letters of each query begin, and how many
        they are.
    count : int32. The number of queries.
    rows : static. 0 where there is one group; else no query is longer.
    Returns int16 (slots, lanes), int32 where there are several groups.
    """
    _, _, words, lanes = match.shape

    def result_of(
        match: jax.Array, groups: jax.Array, match_of: Callable, m: jax.Array
    ):
        return _subsequences(match_of, m, (words, lanes), match.dtype, groups, rows)

    dtype = jnp.int32 if rows else jnp.int16
    return _of_queries(result_of, dtype, match, groups, letters, start, length, count)


@partial(jax.jit, static_argnames=("rows",))
def lcs_of_pairs(
    match: jax.Array,
    groups: jax.Array,
    letters: jax.Array,
    length: jax.Array,
    *,
    rows: int = 0,
):
    """LCS of pairs in lanes, each query with its own target.

    match, groups, rows : as of ``lcs_of_queries``
    letters : uint8 (letters, lanes). A query a lane, ``PADDING`` times the last letter
        before it and as many at least after it.
    length : int32. The longest of them.
    Returns int32 (lanes,)
    """
    _, _, words, lanes = match.shape

    def all_lanes(
        match: jax.Array, groups: jax.Array, letters: jax.Array, length: jax.Array
    ):
        lane = lax.iota(jnp.int32, lanes)

        def match_of(group: jax.Array, i: jax.Array, word: int):
            at = i + jnp.int32(PADDING)
            codes = lax.dynamic_index_in_dim(letters, at, 0, False)
            rows = lax.dynamic_slice(
                match,
                (group, jnp.int32(0), jnp.int32(word), jnp.int32(0)),
                (1, match.shape[1], 1, lanes),
            ).reshape(match.shape[1], lanes)
            return rows.at[codes.astype(jnp.int32), lane].get(
                mode="promise_in_bounds", unique_indices=True
            )

        shape = words, lanes
        lcs = _subsequences(match_of, length, shape, match.dtype, groups, rows)
        return lcs.astype(jnp.int32)

    return one_function(all_lanes)(match, groups, letters, length)


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
    same_row = (i + jnp.int32(2)) & jnp.int32(1)  # the same, which XLA cannot see
    return room, lax.dynamic_index_in_dim(room, same_row, 0, False)


def _edit_word(
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
    unit = p.dtype.type(1)
    equal = match if fall is None else match | fall
    room, d = _written(room, i, (((equal & p) + p) ^ p) | equal | n)
    up, down = n | ~(d | p), d & p
    ends = _highest(up), _highest(down)
    up, down = lax.shift_left(up, unit) | rise, lax.shift_left(down, unit)
    down = down if fall is None else down | fall
    return (down | ~(d | up), d & up), ends, room


def _joined(edge: tuple[jax.Array, jax.Array]):
    """p and n in two bits of a word."""
    rise, fall = edge
    return rise | lax.shift_left(fall, fall.dtype.type(1))


def _edit_sweep(
    match: Callable[[jax.Array, int], jax.Array],
    letters: jax.Array,
    initial: list[jax.Array],
    first: Callable[[jax.Array], tuple[jax.Array, Any]],
    before: jax.Array | None = None,
):
    """Rises less falls after the last of some words, and all edges there.

    match : function (letter, word) -> match words (lanes,)
    initial : P of each word before the first letter
    first : function letter -> edge before the first word, where there is no ``before``
    before : (rows, lanes) joined edges before the first word, or None
    """
    zero = lax.full_like(initial[0], 0)

    def step(i: jax.Array, state: tuple):
        words, rooms, total, after = state
        words, rooms = list(words), list(rooms)
        edge = first(i)
        if before is not None:
            edges = lax.dynamic_index_in_dim(before, i, 0, False)
            unit = edges.dtype.type(1)
            edge = edges & unit, lax.shift_right_logical(edges, unit)
        for k, word in enumerate(words):
            words[k], edge, rooms[k] = _edit_word(word, rooms[k], i, match(i, k), edge)
        if after is not None:
            after = lax.dynamic_update_index_in_dim(after, _joined(edge), i, 0)
        rise, fall = edge
        return tuple(words), tuple(rooms), total + rise - fall, after

    after = None if before is None else lax.full_like(before, 0)
    rooms = (lax.full((2, *zero.shape), zero.dtype.type(0)),) * len(initial)
    state = tuple((p, zero) for p in initial), rooms, zero, after
    _, _, total, after = lax.fori_loop(jnp.int32(0), letters, step, state)
    return total, after


def distances_of(
    match: Callable[[jax.Array, jax.Array, int], jax.Array],
    letters: jax.Array,
    initial: Callable[[jax.Array], list[jax.Array]],
    first: Callable[[jax.Array], tuple[jax.Array, Any]],
    groups: tuple[jax.Array, jax.Array],
    before: jax.Array | None,
):
    """Distances (lanes,) of one query, or of a query a lane.

    match : function (group, letter, word) -> match words (lanes,)
    initial : function group -> P of each of its words before the first letter
    groups : the first, and the one after the last
    before : edges before the first group; None: there is one group
    """
    start, stop = groups
    if before is None:
        words = initial(start)
        total, _ = _edit_sweep(lambda i, w: match(start, i, w), letters, words, first)
        return total + _letters_of(words)

    def group(k: jax.Array, state: tuple[jax.Array, jax.Array, jax.Array]):
        target_length, _, edges = state
        words = initial(k)
        total, edges = _edit_sweep(
            lambda i, w: match(k, i, w), letters, words, first, edges
        )
        return target_length + _letters_of(words), total, edges

    zero = lax.full_like(initial(start)[0], 0)
    target_length, total, _ = lax.fori_loop(start, stop, group, (zero, zero, before))
    return target_length + total


def _letters_of(words: list[jax.Array]):
    """How many letters of each target some words have, from their first P."""
    total = lax.full_like(words[0], 0)
    for p in words:
        total = total + lax.population_count(p)
    return total


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

    match : uint16, uint32 or uint64 (groups, letters + 1, words, lanes). The last
        letter matches the columns before each target, and no others.
    groups, letters, start, length, count, rows : as of ``lcs_of_queries``.
    Returns match.dtype (slots, lanes). Distances modulo its range.
    """
    _, _, words, lanes = match.shape
    one_bit = match.dtype.type(1)

    def result_of(
        match: jax.Array, groups: jax.Array, match_of: Callable, m: jax.Array
    ):
        padding = jnp.int32(match.shape[1] - 1)

        def initial(group: jax.Array):
            return [~word_at(match, group, padding, w) for w in range(words)]

        before = lax.full((rows, lanes), one_bit) if rows else None
        edge, group_range = lambda _: (one_bit, None), (jnp.int32(0), groups)
        return distances_of(match_of, m, initial, edge, group_range, before)

    return _of_queries(
        result_of, match.dtype, match, groups, letters, start, length, count
    )


class LetterWords(NamedTuple):
    """How letters lie in a word: ``count`` of them, of ``bits`` bits each."""

    dtype: Any
    bits: int

    @property
    def count(self) -> int:
        return self.dtype.itemsize * 8 // self.bits

    def every(self, value: int):
        """A value in each letter of a word."""
        return self.dtype.type(sum(value << self.bits * k for k in range(self.count)))


def _ends_in_lanes(
    rows: jax.Array, lengths: jax.Array, form: LetterWords, padding: int
):
    """Rows (lanes, words) whose last letters are sequences, as words (words, lanes)
    with padding letters before each sequence."""
    words = rows.T
    place = lax.broadcasted_iota(jnp.int32, words.shape, 0) * jnp.int32(form.count)
    before = jnp.int32(len(words) * form.count) - lengths
    before = lax.broadcast_in_dim(before, words.shape, (1,)) - place
    before = lax.clamp(jnp.int32(0), before, jnp.int32(form.count)).astype(form.dtype)
    unit = form.dtype.type(1)  # shifted by all bits it is 0
    mask = lax.shift_left(lax.full_like(words, 1), before * form.dtype.type(form.bits))
    mask = mask - unit
    return (words & ~mask) | (form.every(padding) & mask)


def _plane(words: jax.Array, k: int, form: LetterWords):
    """Bit k of all letters: words (words, lanes) -> (words / bits, lanes)."""
    dtype, width = form.dtype, form.bits * form.count
    flags = lax.shift_right_logical(words, dtype.type(k)) & form.every(1)
    # A product brings bit ``bits`` * j to place j of the highest ``count``.
    places = range(form.count)
    lift = sum(1 << (width - form.count + j - form.bits * j) for j in places)
    flags = lax.shift_right_logical(
        flags * dtype.type(lift), dtype.type(width - form.count)
    )
    flags = flags.reshape(-1, form.bits, words.shape[-1])
    plane = flags[:, 0]
    for q in range(1, form.bits):
        plane = plane | lax.shift_left(flags[:, q], dtype.type(q * form.count))
    return plane


@partial(
    jax.jit,
    static_argnames=("words", "lanes", "planes", "bits", "rows"),
    compiler_options=CPU_OPTIONS,
)
def edits_of_pairs(
    targets: jax.Array, target_length: jax.Array, queries: jax.Array,
    query_length: jax.Array, tiles: jax.Array, group: jax.Array,
    *, words: int, lanes: int, planes: int, bits: int, rows: int = 0,
):  # fmt: skip
    """Distances of pairs in lanes, each query with its own target.

    The letters of a lane come as they lie in memory, several in a word. The program
    lays them out: of the targets one *plane* for each bit of a letter, a bit of a word
    for each column. A column matches a letter of the query where all bits do.

    targets, queries : uint16, uint32 or uint64 (pairs, words of letters). Letters of
        ``bits`` bits, the first in the lowest. A row ends with a sequence; what comes
        before it is not read.
    target_length, query_length : int32 (pairs,)
    tiles : int32. Only the first ``tiles * lanes`` pairs are computed.
    group : int32. The first group of ``words`` words of a target that holds a letter.
    words, lanes : static; of a group, and pairs that are swept at once
    planes : static; letters are less than ``2**planes - 1``, the padding letter
    rows : static; 0 where there is one group, else no query is longer
    Returns targets.dtype (pairs,). Distances modulo its range.
    """
    form, padding = LetterWords(targets.dtype, bits), 2**planes - 1
    places = queries.shape[1] * form.count
    groups = targets.shape[1] // (words * bits)
    dtype, highest = form.dtype, jnp.int32(form.count.bit_length() - 1)

    def tile(
        at: jax.Array,
        results: jax.Array,
        targets: jax.Array,
        target_length: jax.Array,
        queries: jax.Array,
        query_length: jax.Array,
        group: jax.Array,
    ):
        def part(x: jax.Array):
            return lax.dynamic_slice_in_dim(x, at * jnp.int32(lanes), lanes, 0)

        columns = _ends_in_lanes(part(targets), part(target_length), form, padding)
        bit_planes = [
            _plane(columns, k, form).reshape(groups, 1, words, lanes)
            for k in range(planes)
        ]
        lengths = part(query_length)
        letters = _ends_in_lanes(part(queries), lengths, form, padding)
        longest = lax.reduce(lengths, jnp.int32(0), lax.max, (0,))

        def codes(i: jax.Array):
            """The letter in the lowest bits, others above it."""
            place = jnp.int32(places) - longest + i
            word = lax.shift_right_logical(place, highest)
            shift = (place & jnp.int32(form.count - 1)) * jnp.int32(bits)
            word = lax.dynamic_index_in_dim(letters, word, 0, False)
            return lax.shift_right_logical(
                word, lax.broadcast_in_dim(shift.astype(dtype), (lanes,), ())
            )

        def match_of(group: jax.Array, codes: jax.Array, word: int):
            differ = lax.full((lanes,), dtype.type(0))
            for k, plane in enumerate(bit_planes):
                bit = lax.shift_right_logical(codes, dtype.type(k)) & dtype.type(1)
                plane = word_at(plane, group, jnp.int32(0), word)
                differ = differ | (plane ^ (dtype.type(0) - bit))
            return ~differ

        def real(codes: jax.Array):
            return ((codes & dtype.type(padding)) != dtype.type(padding)).astype(dtype)

        def initial(group: jax.Array):
            every = lax.full((lanes,), dtype.type(padding))
            return [~match_of(group, every, w) for w in range(words)]

        before = None
        if rows:
            before = lax.full((rows, lanes), dtype.type(0))

            def edge(i: jax.Array, before: jax.Array):
                return lax.dynamic_update_index_in_dim(before, real(codes(i)), i, 0)

            before = lax.fori_loop(jnp.int32(0), longest, edge, before)
        edits = distances_of(
            lambda group, i, word: match_of(group, codes(i), word),
            longest,
            initial,
            lambda i: (real(codes(i)), None),
            (group if rows else jnp.int32(0), jnp.int32(groups)),
            before,
        )
        return lax.dynamic_update_slice_in_dim(results, edits, at * jnp.int32(lanes), 0)

    def all_tiles(tiles: jax.Array, *arrays: jax.Array):
        results = lax.full(arrays[0].shape[:1], dtype.type(0))
        return lax.fori_loop(
            jnp.int32(0), tiles, lambda at, results: tile(at, results, *arrays), results
        )

    arrays = targets, target_length, queries, query_length, group
    return one_function(all_tiles)(tiles, *arrays)
