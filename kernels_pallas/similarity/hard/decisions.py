"""Decisions of cells, collected in words of 16: each enters at the lowest bit.

A comparison is the sign of a difference, which a funnel shift takes: two instructions,
where a selection by a predicate takes three. No number is minus zero.
"""

import jax.numpy as jnp
from jax import lax

LESS = """{ .reg .f32 a, b, d; .reg .b32 x; mov.b32 a, $2; mov.b32 b, $3;
sub.rn.f32 d, a, b; mov.b32 x, d; shf.l.wrap.b32 $0, x, $1, 1; }"""
POSITIVE = "{ .reg .b32 x; neg.s32 x, $2; shf.l.wrap.b32 $0, x, $1, 1; }"
LARGEST = """{{ .reg .pred p; .reg .f32 a, b, c; mov.b32 a, $2; mov.b32 b, $3;
mov.b32 c, $4; setp.gt.f32 p, a, b; setp.ge.and.f32 p, a, c, p; mov.b32 $0, $1;
@p add.s32 $0, $0, {0}; }}"""


def bits_of(number):
    """float32 -> int32, the same registers."""
    return lax.bitcast_convert_type(number, jnp.int32)


class Decisions:
    """``th`` is that of a fused function; words stay as they are where no decisions
    are ``wanted``."""

    def __init__(self, th, wanted: bool):
        self.th, self.wanted = th, wanted

    def none(self):
        """No decisions yet."""
        return self.th.splat(0)

    def less(self, word, a, b):
        """``word`` with whether a < b."""
        if not self.wanted:
            return word
        if self.th.plain:
            return (word << 1) | (a < b).astype(jnp.int32)
        return self.th.asm(LESS, word, a, b)

    def choice(self, after, up, p, f, e, column):
        """``after`` with whether p < f, ``up`` with whether e > p and e >= f, in the
        column of a cell of 16."""
        if not self.wanted:
            return after, up
        bit = 1 << (15 - column)
        if self.th.plain:
            up = up + jnp.where((e > p) & (e >= f), bit, 0)
        else:
            up = self.th.asm(LARGEST.format(bit), up, e, p, f)
        return self.less(after, p, f), up

    def positive(self, word, h):
        """``word`` with whether h, which is at least 0, is not 0."""
        if not self.wanted:
            return word
        if self.th.plain:
            return (word << 1) | (bits_of(h) > 0).astype(jnp.int32)
        return self.th.asm(POSITIVE, word, h)

    def both(self, low, high):
        """Two words of 16 decisions in one."""
        return low | (high << 16)
