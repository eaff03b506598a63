"""Count, then list the pairs of rows of letters whose distance is small.

A distance is the sum of a table over the positions, or an edit distance. A row has a
*code* of two words, so that the codes of two rows differ in few bits where their
distance is small. Each thread has four targets. It takes them through the queries of
its program: XOR and population counts rule out nearly all pairs, and a warp computes
the distances of the remaining ones together. Edit distances have a bit for each letter
of the query (Myers 1999, in the form of Hyyrö 2003).

Such pairs are rare, so the list has no room for all pairs: one launch counts the pairs
of every thread, and a second one repeats the work and writes each pair in its place.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.mosaic import THREADS, Threads, kernel, one_bits, where

CODE_WORDS = 2  # of a row
LETTERS_OF_WORD = 4  # a byte each
TABLE_LETTERS = 32  # of a row of the table
TABLE_WORDS = TABLE_LETTERS**2
TARGETS = 4  # of a thread
NEAR_BLOCK = TARGETS * THREADS  # targets of a program
CHUNKS = 32  # of the queries: programs side by side
PAIR_WORDS = 3  # query, target, distance
MAX_EDIT_ROWS = 32  # letters of a query, for edit distances


class NearRows(NamedTuple):
    """Rows of queries or targets, int32; R is a multiple of ``NEAR_BLOCK``."""

    codes: jax.Array  # (R * 2,): the words of a row side by side
    # (R, W): four letters a word, those of a row side by side; of queries, for edit
    # distances, (R, 32): ``match_rows``
    letters: jax.Array


class NearLimits(NamedTuple):
    """Largest differences of a near pair, int32."""

    bits: jax.Array  # (R,): bits of codes that may differ, by target; -1: no pair
    sums: jax.Array  # (R,): the largest distance, by target
    table: jax.Array  # (32 * 32,): the summand of query letter a, target letter b


class NearSizes(NamedTuple):
    """Sizes known at run time, int32 ()."""

    first: jax.Array  # first query
    last: jax.Array  # query after the last one
    targets: jax.Array
    triangle: jax.Array  # 1 for a set with itself: only targets after their query
    words: jax.Array  # words of letters to compare; edits: letters of a target
    rows: jax.Array  # edits: letters of a query


@jax.jit
def match_rows(letters: jax.Array):
    """Match words, int32 (R, 32): bit k of column c is 1 if letter k of a row is c.

    letters : int32 (R, W), as in ``NearRows``; up to 32 letters, then 31 as padding
    """
    codes = jnp.arange(TABLE_LETTERS - 1, dtype=jnp.int32)[None]
    match = jnp.zeros((letters.shape[0], TABLE_LETTERS - 1), jnp.int32)
    for k in range(min(letters.shape[1] * LETTERS_OF_WORD, MAX_EDIT_ROWS)):
        word, place = divmod(k, LETTERS_OF_WORD)
        letter = (letters[:, word : word + 1] >> (8 * place)) & 255
        match |= jnp.where(letter == codes, jnp.int32(1) << k, 0)
    return jnp.pad(match, ((0, 0), (0, 1)))


@partial(jax.jit, static_argnames=("edits", "interpret"))
def near_ends(
    queries: NearRows,
    targets: NearRows,
    limits: NearLimits,
    sizes: NearSizes,
    *,
    edits: bool = False,
    interpret: Any = None,
):
    """Count pairs: the end of each thread's pairs in the list of all, int32 (threads,),
    and the total, float32, since int32 might overflow.

    edits : static, whether distances are edit distances
    """
    numbers = jnp.stack([*sizes, jnp.int32(0)])
    arrays = numbers, *queries, *targets, *limits
    (counts,) = _run(arrays, [(threads_of(targets),)], targets, False, edits, interpret)
    return jnp.cumsum(counts), counts.astype(jnp.float32).sum()


@partial(jax.jit, static_argnames=("room", "edits", "interpret"))
def near_list(
    queries: NearRows,
    targets: NearRows,
    limits: NearLimits,
    sizes: NearSizes,
    ends: jax.Array,
    first: jax.Array,
    *,
    room: int,
    edits: bool = False,
    interpret: Any = None,
):
    """List queries, targets and distances of pairs from number ``first`` on: int32
    (3, room), undefined beyond the last pair.

    ends : from ``near_ends``
    room, edits : static
    """
    numbers = jnp.stack([*sizes, jnp.asarray(first, jnp.int32)])
    shapes = [(room,)] * PAIR_WORDS
    starts = jnp.pad(ends[:-1], (1, 0))
    arrays = numbers, *queries, *targets, *limits, starts
    return jnp.stack(_run(arrays, shapes, targets, True, edits, interpret))


def threads_of(targets: NearRows) -> int:
    """Number of threads of a launch."""
    return targets.codes.shape[0] // CODE_WORDS // TARGETS * CHUNKS


def _run(arrays, shapes, targets: NearRows, write: bool, edits: bool, interpret: Any):
    blocks = targets.codes.shape[0] // CODE_WORDS // NEAR_BLOCK
    strides = arrays[2].shape[1], targets.letters.shape[1]
    about = {"write": write, "edits": edits, "strides": strides}
    about["plain"] = interpret is not None
    body = partial(_near_program, **about)
    arrays = [x.reshape(-1) for x in arrays]
    scratch = [plgpu.SMEM((TABLE_WORDS,), jnp.int32)]
    grid, names = (blocks, CHUNKS), ("block", "chunk")
    return kernel(body, shapes, scratch, grid, names, interpret)(*arrays)


class _View(NamedTuple):
    """A thread's targets, and the arrays and sizes that it reads."""

    th: Threads
    x: Any  # letters of queries, and of targets
    y: Any
    sums: Any
    table: Any
    strides: tuple[int, int]  # words of a row of x, and of y
    words: Any  # as of ``NearSizes``
    rows: Any
    after: Any  # 1 if a target must follow its query
    places: tuple
    codes: tuple
    bits: tuple


def _near_program(
    numbers, x_codes, x_letters, y_codes, y_letters, bits, sums, table, *refs,
    write: bool, edits: bool, strides: tuple[int, int], plain: bool,
):  # fmt: skip
    """Compare the queries of a chunk with the targets of a block."""
    th = Threads(plain)
    starts, out = (refs[0], refs[1:-1]) if write else (None, refs[:-1])
    block, chunk = lax.axis_index("block"), lax.axis_index("chunk")
    thread = th.index()
    for at in range(0, TABLE_WORDS, THREADS):
        th.store(refs[-1], thread, th.load(table, thread, offset=at), offset=at)
    th.wait()
    shared = th.read_only(refs[-1])
    start, stop, targets, triangle, words, rows, skipped = (
        numbers[k] for k in range(7)
    )
    block_start = block * NEAR_BLOCK
    each = lax.div(stop - start + CHUNKS - 1, jnp.int32(CHUNKS))
    start = start + chunk * each
    last = jnp.minimum(start + each, stop)
    # Queries after the targets of a triangle meet none of them.
    last = jnp.where(
        triangle != 0, jnp.minimum(last, block_start + NEAR_BLOCK - 1), last
    )
    last = jnp.where(block_start < targets, last, jnp.int32(0))
    places = tuple(thread + (block_start + k * THREADS) for k in range(TARGETS))
    codes = tuple(th.load(y_codes, CODE_WORDS * t, CODE_WORDS) for t in places)
    limits = tuple(th.load(bits, t)[0] for t in places)
    about = x_letters, y_letters, sums, shared, strides, words, rows
    view = _View(th, *about, th.splat(triangle), places, codes, limits)
    distance = _edits if edits else _sum
    slot = (block * CHUNKS + chunk) * THREADS + thread
    first = th.load(starts, slot)[0] - skipped if write else th.splat(0)
    add = partial(_listed, th, out) if write else lambda place, hit, _: place + hit

    def step(query, place):
        code = th.load(x_codes, th.splat(0), CODE_WORDS, query, CODE_WORDS)
        slack = [
            limit - one_bits(th, code[0] ^ a) - one_bits(th, code[1] ^ b)
            for limit, (a, b) in zip(view.bits, view.codes, strict=True)
        ]
        largest = slack[0]
        for value in slack[1:]:
            largest = jnp.maximum(largest, value)

        def look(place):
            """Add the near pairs of the query with the targets of this thread."""
            for target, bits in zip(view.places, slack, strict=True):
                close = _not_negative(th, bits)
                before = (target <= query).astype(jnp.int32) & view.after
                close = close & ~before
                compare = partial(_compare, view, query, target, close, distance, add)
                place = _once(th.any(close), compare, place)
            return place

        return _once(th.any(_not_negative(th, largest)), look, place)

    place = lax.fori_loop(jnp.minimum(start, last), last, step, first)
    if not write:
        th.store(out[0], slot, (place,))


def _not_negative(th: Threads, words: jax.Array):
    """1 where a word is not negative, else 0."""
    return th.shift_right(~words, 31)


def _once(flag: jax.Array, function: Any, state: jax.Array):
    """``function(state)`` if the flag of the warp is not 0, else ``state``."""
    return lax.while_loop(
        lambda carry: carry[0] != 0,
        lambda carry: (jnp.int32(0), function(carry[1])),
        (flag, state),
    )[1]


def _compare(view: _View, query, target, close, distance, add, place):
    """Add the pair of each thread whose ``close`` is 1 and whose distance is small."""
    th = view.th
    total = distance(view, query, target)
    (limit,) = th.load(view.sums, target)
    hit = close & (total <= limit).astype(jnp.int32)
    return add(place, hit, (th.splat(query), target, total))


def _sum(view: _View, query, target):
    """Sum the table over the positions of a pair."""
    th = view.th

    def four(word, total):
        at = th.splat(word)
        (x,) = th.load(view.x, at, base=query, stride=view.strides[0])
        (y,) = th.load(view.y, at, base=target, stride=view.strides[1])
        for k in range(LETTERS_OF_WORD):
            a = th.shift_right(x, 8 * k) & 255
            b = th.shift_right(y, 8 * k) & 255
            total = total + th.load(view.table, a * TABLE_LETTERS + b)[0]
        return total

    return lax.fori_loop(jnp.int32(0), view.words, four, th.splat(0))


def _edits(view: _View, query, target):
    """Edit distance: take a column of differences through the target's letters."""
    th = view.th
    last = th.splat(view.rows - 1)

    def letter(k, state):
        rises, falls, total = state
        at = th.splat(lax.div(k, jnp.int32(LETTERS_OF_WORD)))
        (four,) = th.load(view.y, at, base=target, stride=view.strides[1])
        code = lax.shift_right_logical(four, th.splat(8 * (k & 3))) & 31
        (match,) = th.load(view.x, code, base=query, stride=view.strides[0])
        diagonal = (((match & rises) + rises) ^ rises) | match | falls
        up = falls | ~(diagonal | rises)
        down = rises & diagonal
        total = total + (lax.shift_right_logical(up, last) & 1)
        total = total - (lax.shift_right_logical(down, last) & 1)
        up = (up << 1) | 1
        return (down << 1) | ~(diagonal | up), up & diagonal, total

    start = th.splat(-1), th.splat(0), th.splat(view.rows)
    return lax.fori_loop(jnp.int32(0), view.words, letter, start)[2]


def _listed(th: Threads, out, place, hit, pair):
    """Write a pair at its place in the list, if that is within the list."""
    room = out[0].shape[0]
    inside = ((place >= 0) & (place < room)).astype(jnp.int32) & hit
    at = where(inside != 0, place, 0)
    for ref, word in zip(out, pair, strict=True):
        th.store(ref, at, (word,), where=inside)
    return place + hit
