"""A letter of the bit-parallel words of edit distances, in registers of a thread.

The recurrence is that of ``edits.edits``.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from kernels_pallas.core.mosaic import (
    WORD_LAYOUT,
    WORD_TYPE,
    Threads,
    words_of,
)
from kernels_pallas.core.registers import inline

ASM_WORDS = 8  # words of a statement


def next_row(
    th: Threads,
    rises: tuple,
    falls: tuple,
    masks: Any,
    edge: tuple,
    separators: Any = (),
) -> tuple:
    """P and N of the next letter, their words from the lowest on, and the edge.

    masks : functions without arguments -> match words
    edge : (h,), 0 or 1, or what lies left of the words: the carry of the sum, 0 or 1,
        and the words U and V, of which the highest bit counts
    separators : as ``masks``, if at all: bits where V is 0 and N becomes 1
    """
    up: list = []
    down: list = []
    for at in range(0, len(rises), ASM_WORDS):
        part = slice(at, at + ASM_WORDS)
        match, cuts = ([word() for word in side[part]] for side in (masks, separators))
        count = len(match)
        new_words = (_plain_row if th.plain else _row)(
            rises[part], falls[part], match, cuts, *edge
        )
        up += new_words[:count]
        down += new_words[count : 2 * count]
        edge = tuple(new_words[2 * count :])
    return tuple(up), tuple(down), edge


def _plain_row(
    rises: tuple, falls: tuple, match: Any, cuts: Any, *edge: jax.Array
) -> list:
    """P and N of some words, the carry of the sum and the last U and V, in ``jnp``.

    cuts : separators, or nothing
    edge : h, or these three of the words before
    """
    cuts = cuts or [jnp.zeros(rises[0].shape, jnp.int32)] * len(rises)
    unit, zero = jnp.uint32(1), jnp.zeros(rises[0].shape, jnp.int32)
    carry, up, down = (zero, edge[0] << 31, zero) if len(edge) == 1 else edge

    def unsigned(x):
        return lax.bitcast_convert_type(x, jnp.uint32)

    over = carry.astype(jnp.uint32)
    up, down, new_words = unsigned(up), unsigned(down), []
    for words in zip(rises, falls, match, cuts, strict=True):
        p, n, m, cut = map(unsigned, words)
        both = m & p
        total = both + p + over
        over = lax.shift_right_logical(both | (p & ~total), jnp.uint32(31))
        d = (total ^ p) | m | n
        before, up, down = (up, down), n | ~(d | p), d & p & ~cut
        h, v = (
            lax.shift_left(x, unit) | lax.shift_right_logical(y, jnp.uint32(31))
            for x, y in zip((up, down), before, strict=True)
        )
        new_words.append((v | ~(d | h), (d & h) | cut))
    new_words = [side for sides in zip(*new_words, strict=True) for side in sides]
    return [
        lax.bitcast_convert_type(x, jnp.int32) for x in (*new_words, over, up, down)
    ]


def _row(rises: tuple, falls: tuple, match: Any, cuts: Any, *edge: jax.Array) -> list:
    """The same by PTX; the carry stays in the condition code from word to word."""
    count = len(rises)
    outs = 2 * count + 3
    inputs = [*rises, *falls, *match, *cuts, *edge]
    given = [f"${outs + k}" for k in range(len(inputs))]
    p, n, m, s = (given[side * count :][:count] for side in range(4))
    before, first = given[3 * count + len(cuts) :], len(edge) == 1
    lines = [f".reg .b32 c, h, v, {_names('d', count)};"]
    lines += [f".reg .b32 {_names('u', count)}, {_names('w', count)};"]
    lines += [f"and.b32 d{k}, {m[k]}, {p[k]};" for k in range(count)]
    if not first:  # 0 or 1 + (2^32 - 1): the carry
        lines.append(f"add.cc.u32 c, {before[0]}, 0xffffffff;")
    for k in range(count):
        add = "add" if k == 0 and first else "addc"
        lines.append(f"{add}.cc.u32 d{k}, d{k}, {p[k]};")
    lines.append(f"addc.u32 ${2 * count}, 0, 0;")
    for k in range(count):
        if k == 0 and first:
            edges = f"mad.lo.u32 h, u0, 2, {before[0]};", "shl.b32 v, w0, 1;"
        else:
            up, down = (f"u{k - 1}", f"w{k - 1}") if k else before[1:]
            edges = (
                f"shf.l.wrap.b32 h, {up}, u{k}, 1;",
                f"shf.l.wrap.b32 v, {down}, w{k}, 1;",
            )
        lines += [
            f"lop3.b32 d{k}, d{k}, {p[k]}, {m[k]}, 0xbe;",  # (sum ^ P) | M
            f"or.b32 d{k}, d{k}, {n[k]};",
            f"lop3.b32 u{k}, {n[k]}, d{k}, {p[k]}, 0xf1;",  # N | ~(D | P)
            f"lop3.b32 w{k}, d{k}, {p[k]}, {s[k]}, 0x40;"  # D & P & ~S
            if cuts
            else f"and.b32 w{k}, d{k}, {p[k]};",
            *edges,
            f"lop3.b32 ${k}, v, d{k}, h, 0xf1;",  # V | ~(D | H)
            f"lop3.b32 ${count + k}, d{k}, h, {s[k]}, 0xea;"  # D & H | S
            if cuts
            else f"and.b32 ${count + k}, d{k}, h;",
        ]
    lines.append(f"mov.b32 ${2 * count + 1}, u{count - 1};")
    lines.append(f"mov.b32 ${2 * count + 2}, w{count - 1};")
    kinds = ",".join(["=&r"] * outs + ["r"] * len(inputs))

    @inline(arg_types=(WORD_LAYOUT,) * len(inputs), return_type=(WORD_TYPE,) * outs)
    def row(_, *given):
        return words_of("{ " + " ".join(lines) + " }", kinds, outs, given)

    return list(row(*inputs))


def _names(letter: str, count: int) -> str:
    return ", ".join(f"{letter}{k}" for k in range(count))
