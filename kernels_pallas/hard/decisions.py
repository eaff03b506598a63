"""Decisions of cells, collected in words: each enters at the lowest bit.

A comparison is the sign of a difference, which a funnel shift takes: two instructions,
where a selection by a predicate takes three. No number is minus zero.
"""

import jax.numpy as jnp
from jax import lax

from kernels_pallas.core.mosaic import Threads, word_of

LESS = """{ .reg .f32 a, b, d; .reg .b32 x; mov.b32 a, $2; mov.b32 b, $3;
sub.rn.f32 d, a, b; mov.b32 x, d; shf.l.wrap.b32 $0, x, $1, 1; }"""
POSITIVE = "{ .reg .b32 x; neg.s32 x, $2; shf.l.wrap.b32 $0, x, $1, 1; }"
LARGEST = """{{ .reg .pred p; .reg .f32 a, b, c; mov.b32 a, $2; mov.b32 b, $3;
mov.b32 c, $4; setp.gt.f32 p, a, b; setp.ge.and.f32 p, a, c, p; mov.b32 $0, $1;
@p add.s32 $0, $0, {0}; }}"""


def bits_of(number):
    """float32 -> int32, the same registers."""
    return lax.bitcast_convert_type(number, jnp.int32)


def push_less(th: Threads, word, a, b):
    """Whether a < b."""
    if th.plain:
        return (word << 1) | (a < b).astype(jnp.int32)
    return word_of(LESS, word, bits_of(a), bits_of(b), alone=True)


def push_positive(th: Threads, word, bits):
    """Whether an integer of at least 0 is not 0."""
    if th.plain:
        return (word << 1) | (bits > 0).astype(jnp.int32)
    return word_of(POSITIVE, word, bits, alone=True)


def add_largest(th: Threads, word, a, b, c, value: int):
    """``word + value`` where a > b and a >= c."""
    if th.plain:
        return word + jnp.where((a > b) & (a >= c), value, 0)
    bits = map(bits_of, (a, b, c))
    return word_of(LARGEST.format(value), word, *bits, alone=True)
