"""Edit distances of pairs in lanes, each query with its own target.

The letters of a lane come as they lie in memory, several in a word. A program lays them
out: of the targets one *plane* for each bit of a letter, a bit of a word for each
column. A column matches a letter of the query where all bits do. The rest is
``edits.dp.edit_bits``.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.edits.dp.edit_bits import distances_of, word_at
from jaxalign.one_function import CPU_OPTIONS, one_function


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
    one = form.dtype.type(1)  # shifted by all bits it is 0
    mask = lax.shift_left(lax.full_like(words, 1), before * form.dtype.type(form.bits))
    mask = mask - one
    return (words & ~mask) | (form.every(padding) & mask)


def _plane(words: jax.Array, k: int, form: LetterWords):
    """Bit k of all letters: words (words, lanes) -> (words / bits, lanes)."""
    dtype, width = form.dtype, form.bits * form.count
    few = lax.shift_right_logical(words, dtype.type(k)) & form.every(1)
    # A product brings bit ``bits`` * j to place j of the highest ``count``.
    places = range(form.count)
    lift = sum(1 << (width - form.count + j - form.bits * j) for j in places)
    few = lax.shift_right_logical(
        few * dtype.type(lift), dtype.type(width - form.count)
    )
    few = few.reshape(-1, form.bits, words.shape[-1])
    plane = few[:, 0]
    for q in range(1, form.bits):
        plane = plane | lax.shift_left(few[:, q], dtype.type(q * form.count))
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

    Parameters
    ----------
    targets, queries : uint16, uint32 or uint64 (pairs, words of letters)
        Letters of ``bits`` bits, the first in the lowest. A row ends with a sequence;
        what comes before it is not read.
    target_length, query_length : int32 (pairs,)
    tiles : int32
        Only the first ``tiles * lanes`` pairs are computed.
    group : int32
        The first group of ``words`` words of a target that holds a letter.
    words, lanes : static; of a group, and pairs that are swept at once
    planes : static; letters are less than ``2**planes - 1``, the padding letter
    rows : static; 0 where there is one group, else no query is longer

    Returns
    -------
    targets.dtype (pairs,)
        Distances modulo its range.
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
        def some(x: jax.Array):
            return lax.dynamic_slice_in_dim(x, at * jnp.int32(lanes), lanes, 0)

        columns = _ends_in_lanes(some(targets), some(target_length), form, padding)
        bit_planes = [
            _plane(columns, k, form).reshape(groups, 1, words, lanes)
            for k in range(planes)
        ]
        lengths = some(query_length)
        letters = _ends_in_lanes(some(queries), lengths, form, padding)
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

        def begin(group: jax.Array):
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
            begin,
            lambda i: (real(codes(i)), None),
            (group if rows else jnp.int32(0), jnp.int32(groups)),
            before,
        )
        return lax.dynamic_update_slice_in_dim(results, edits, at * jnp.int32(lanes), 0)

    def all_tiles(tiles: jax.Array, *given: jax.Array):
        results = lax.full(given[0].shape[:1], dtype.type(0))
        return lax.fori_loop(
            jnp.int32(0), tiles, lambda at, results: tile(at, results, *given), results
        )

    given = targets, target_length, queries, query_length, group
    return one_function(all_tiles)(tiles, *given)
