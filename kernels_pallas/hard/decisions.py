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

LESS = """{ .reg .f32 a, b, d; .reg .b32 x; mov.b32 a, $2; mov.b32 b, $3;
sub.rn.f32 d, a, b; mov.b32 x, d; shf.l.wrap.b32 $0, x, $1, 1; }"""
POSITIVE = "{ .reg .b32 x; neg.s32 x, $2; shf.l.wrap.b32 $0, x, $1, 1; }"
LARGEST = """{{ .reg .pred p; .reg .f32 a, b, c; mov.b32 a, $2; mov.b32 b, $3;
mov.b32 c, $4; setp.gt.f32 p, a, b; setp.ge.and.f32 p, a, c, p; mov.b32 $0, $1;
@p add.s32 $0, $0, {0}; }}"""
BITS_OF_128 = 0x43000000
TWO = "0f40000000"
WHOLE_LESS = "sub.rn.sat.f32 $0, $2, $1;"
CLAMPED = "add.rn.sat.f32 $0, $1, 0f00000000;"
WHOLE_MORE = "{ .reg .f32 d; sub.rn.f32 d, $1, $2; add.rn.sat.f32 $0, d, $3; }"
WHOLE_PUSH = f"fma.rn.f32 $0, $1, {TWO}, $2;"
JOIN = "prmt.b32 $0, $1, $2, 0x5410;"


def bits_of(number):
    """float32 -> int32, the same registers."""
    return lax.bitcast_convert_type(number, jnp.int32)


class FloatDecisions:
    """Of any numbers. ``th`` is that of a fused function."""

    def __init__(self, th):
        self.th = th

    def none(self):
        """No decisions yet."""
        return self.th.splat(0)

    def less(self, word, a, b):
        """``word`` with whether a < b."""
        if self.th.plain:
            return (word << 1) | (a < b).astype(jnp.int32)
        return self.th.asm(LESS, word, a, b)

    def choice(self, after, up, p, f, e, x, column):  # noqa: ARG002
        """``after`` with whether p < f, ``up`` with whether e > p and e >= f; x is the
        larger of p and f, ``column`` the cell's of 16."""
        bit = 1 << (15 - column)
        if self.th.plain:
            up = up + jnp.where((e > p) & (e >= f), bit, 0)
        else:
            up = self.th.asm(LARGEST.format(bit), up, e, p, f)
        return self.less(after, p, f), up

    def positive(self, word, h):
        """``word`` with whether h, which is at least 0, is not 0."""
        if self.th.plain:
            return (word << 1) | (bits_of(h) > 0).astype(jnp.int32)
        return self.th.asm(POSITIVE, word, h)

    def both(self, low, high):
        """Two words of 16 decisions in one."""
        return low | (high << 16)


class WholeDecisions(FloatDecisions):
    """Of whole numbers."""

    def none(self):
        if self.th.plain:
            return jnp.full(self.th.count, 128.0, jnp.float32)
        return self.th.splat(BITS_OF_128)

    def less(self, word, a, b):
        return self._push(word, self._is_less(a, b))

    def choice(self, after, up, p, f, e, x, column):  # noqa: ARG002
        beyond = self._is_less(p, f)
        if self.th.plain:
            is_up = jnp.clip((e - x) + beyond, 0, 1)
        else:
            is_up = self.th.asm(WHOLE_MORE, e, x, beyond)
        return self._push(after, beyond), self._push(up, is_up)

    def positive(self, word, h):
        decision = jnp.clip(h, 0, 1) if self.th.plain else self.th.asm(CLAMPED, h)
        return self._push(word, decision)

    def both(self, low, high):
        if self.th.plain:
            return (bits_of(low) & 0xFFFF) | (bits_of(high) << 16)
        return self.th.asm(JOIN, low, high)

    def _is_less(self, a, b):
        if self.th.plain:
            return jnp.clip(b - a, 0, 1)
        return self.th.asm(WHOLE_LESS, a, b)

    def _push(self, word, decision):
        if self.th.plain:
            return 2 * word + decision
        return self.th.asm(WHOLE_PUSH, word, decision)
