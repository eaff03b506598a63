"""Decisions of cells, collected in words of 16: each enters at the lowest bit.

A comparison is the sign of a difference, which a funnel shift takes: two instructions,
where a selection by a predicate takes three. No number is minus zero.

Where all numbers are whole, a difference clamped to [0, 1] is the decision itself, and
a float32 collects it: twice itself plus the decision. That is two instructions as well,
but both go to the pipe of multiplications, which takes twice as many as that of maxima
and shifts. It begins with 2^7, so that 16 decisions later its low bits are theirs.
"""

import jax.numpy as jnp
from jax import lax

from kernels_pallas.core.mosaic import Threads, word_of
from kernels_pallas.core.reals import Reals, fragment_of

LESS = """{ .reg .f32 a, b, d; .reg .b32 x; mov.b32 a, $2; mov.b32 b, $3;
sub.rn.f32 d, a, b; mov.b32 x, d; shf.l.wrap.b32 $0, x, $1, 1; }"""
POSITIVE = "{ .reg .b32 x; neg.s32 x, $2; shf.l.wrap.b32 $0, x, $1, 1; }"
LARGEST = """{{ .reg .pred p; .reg .f32 a, b, c; mov.b32 a, $2; mov.b32 b, $3;
mov.b32 c, $4; setp.gt.f32 p, a, b; setp.ge.and.f32 p, a, c, p; mov.b32 $0, $1;
@p add.s32 $0, $0, {0}; }}"""
TWO = "0f40000000"
WHOLE_LESS = "sub.rn.sat.f32 $0, $2, $1;"
WHOLE_MORE = "{ .reg .f32 d; sub.rn.f32 d, $1, $2; add.rn.sat.f32 $0, d, $3; }"
WHOLE_PUSH = f"fma.rn.f32 $0, $1, {TWO}, $2;"
JOIN = "prmt.b32 $0, $1, $2, 0x5410;"


def bits_of(number):
    """float32 -> int32, the same registers."""
    return lax.bitcast_convert_type(number, jnp.int32)


class FloatDecisions:
    """Of any numbers."""

    def __init__(self, r: Reals):
        self.r, self.th = r, r.th

    def none(self):
        """No decisions yet."""
        return self.th.splat(0)

    def less(self, word, a, b):
        """``word`` with whether a < b."""
        return _push_less(self.th, word, a, b)

    def choice(self, after, up, p, f, e, x, column):  # noqa: ARG002
        """``after`` with whether p < f, ``up`` with whether e > p and e >= f; x is the
        larger of p and f, ``column`` the cell's of 16."""
        return self.less(after, p, f), _add_largest(self.th, up, e, p, f, 15 - column)

    def positive(self, word, h):
        """``word`` with whether h, which is at least 0, is not 0."""
        if self.th.plain:
            return (word << 1) | (bits_of(h) > 0).astype(jnp.int32)
        return word_of(POSITIVE, word, bits_of(h), alone=True)

    def both(self, low, high):
        """Two words of 16 decisions in one."""
        return low | (high << 16)


class WholeDecisions(FloatDecisions):
    """Of whole numbers."""

    def none(self):
        return self.r.splat(128.0)

    def less(self, word, a, b):
        return self._push(word, self._is_less(a, b))

    def choice(self, after, up, p, f, e, x, column):  # noqa: ARG002
        beyond = self._is_less(p, f)
        if self.th.plain:
            is_up = jnp.clip((e - x) + beyond, 0, 1)
        else:
            is_up = fragment_of(WHOLE_MORE, e, x, beyond)
        return self._push(after, beyond), self._push(up, is_up)

    def positive(self, word, h):
        return self.less(word, self.r.splat(0.0), h)

    def both(self, low, high):
        low, high = bits_of(low), bits_of(high)
        if self.th.plain:
            return (low & 0xFFFF) | (high << 16)
        return word_of(JOIN, low, high, alone=True)

    def _is_less(self, a, b):
        if self.th.plain:
            return jnp.clip(b - a, 0, 1)
        return fragment_of(WHOLE_LESS, a, b)

    def _push(self, word, decision):
        if self.th.plain:
            return 2 * word + decision
        return fragment_of(WHOLE_PUSH, word, decision)


def _push_less(th: Threads, word, a, b):
    if th.plain:
        return (word << 1) | (a < b).astype(jnp.int32)
    return word_of(LESS, word, bits_of(a), bits_of(b), alone=True)


def _add_largest(th: Threads, word, a, b, c, place: int):
    """``word`` with bit ``place`` where a > b and a >= c."""
    if th.plain:
        return word + jnp.where((a > b) & (a >= c), 1 << place, 0)
    bits = map(bits_of, (a, b, c))
    return word_of(LARGEST.format(1 << place), word, *bits, alone=True)
