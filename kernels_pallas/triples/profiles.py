"""Scores that a program of ``triples.fill`` reads.

Those of the letters of c with its rows of a and its columns of b lie in shared memory,
those of its rows with its columns in registers.
"""

from jax import lax

from kernels_pallas.core.mosaic import THREADS
from kernels_pallas.triples.shapes import MAX_CODES, WARPS

PAD_WORDS = 4  # of a row; lanes with different letters then meet in different banks


def store_profiles(th, s, arrays, profiles, triple, block):
    """Scores of c's letters with the program's columns of b and rows of a: words
    [letter][column] and [letter][row] of the two ``profiles``."""
    a, b, scores, (of_b, of_a) = arrays.a, arrays.b, arrays.scores, profiles
    thread = th.index()
    square = MAX_CODES * MAX_CODES
    high, wide = s.sides
    for first in range(0, wide, THREADS):
        column = thread + first
        (code,) = th.load(b, column, 1, triple * s.blocks[1] + block[1], wide)
        for letter in range(0, MAX_CODES, 4):
            at = (triple * 3 + 2) * square + code * MAX_CODES + letter
            for n, value in enumerate(th.load(scores, at, 4)):
                th.store(of_b, column + (letter + n) * wide, (value,))
    count = MAX_CODES * high // THREADS  # letters a thread
    row = thread & (high - 1)
    part = lax.div(thread, th.splat(high)) * count
    (code,) = th.load(a, row, 1, triple * s.blocks[0] + block[0], high)
    for letter in range(0, count, 4):
        at = (triple * 3 + 1) * square + code * MAX_CODES + letter + part
        values = th.load(scores, at, 4)
        for n, value in enumerate(values):
            at = row + (part + (letter + n)) * (high + PAD_WORDS)
            th.store(of_a, at, (value,))


def pair_scores(th, s, arrays, triple, strip, block_j, lane):
    """ab of the tile's cells, row by row."""
    a, b, scores = arrays.a, arrays.b, arrays.scores
    rows, columns = (), ()
    for r in range(0, s.rows, 4):
        rows += th.load(a, strip * s.rows + r, 4, triple, s.face[0])
    for x in range(0, s.columns, 4):
        at = block_j * s.sides[1] + lane * s.columns + x
        columns += th.load(b, at, 4, triple, s.face[1])
    first = triple * (3 * MAX_CODES * MAX_CODES)
    return tuple(
        tuple(th.load(scores, first + x * MAX_CODES + y)[0] for y in columns)
        for x in rows
    )


def letter_scores(view, letter):
    """Scores of a letter of c: ac of the tile's rows, bc of its columns."""
    th, s = view.th, view.s
    ac, bc = (), ()
    for x in range(0, s.columns, 4):
        at = letter * s.sides[1] + view.lane * s.columns + x
        bc += th.load(view.profiles[0], at, 4)
    for x in range(0, s.rows, 4):
        at = letter * (s.sides[0] + PAD_WORDS) + (view.strip & (WARPS - 1)) * s.rows + x
        ac += th.load(view.profiles[1], at, 4)
    return ac, bc
