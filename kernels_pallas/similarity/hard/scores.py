"""A lane's scores of a row: loads of 16 bytes, and float32 numbers from their bits."""

import jax.numpy as jnp

from kernels_pallas.core.access_check import check_access
from kernels_pallas.core.mosaic import Threads
from kernels_pallas.similarity.hard.shapes import COLUMNS, QUAD_BYTES, HardSizes

# What stands beyond a length in local mode: no path gains by it.
LOWEST_BITS = {
    "int8": 0x80808080,
    "int16": 0x80008000,
    "bfloat16": 0xFF80FF80,
    "float16": 0xFC00FC00,
    "float32": 0xFF800000,
}
HALF = "{{ .reg .b16 x, y; .reg .f32 f; mov.b32 {{x, y}}, $1;"
HALF += " cvt.f32.f16 f, {0}; mov.b32 $0, f; }}"
INTEGER = "{{ .reg .b32 x; .reg .f32 f; shr.s32 x, $1, {0}; cvt.rn.f32.s{1} f, x;"
INTEGER += " mov.b32 $0, f; }}"


def load_row(th: Threads, scores, z: HardSizes, quads, row):
    """The bits of 16 scores a thread, of the row with this number; words, or in the
    twin the numbers themselves. ``quads`` are words within a row."""
    stride = z.columns * z.itemsize // 4
    if not th.plain:
        loads = [th.load(scores, at, 4, row, stride) for at in quads]
        return tuple(word for load in loads for word in load)
    numbers, per_word = [], 4 // z.itemsize
    for at in quads:
        first = at + row * stride
        check_access(scores.size * z.itemsize // 4, first, 4)
        for k in range(QUAD_BYTES // z.itemsize):
            x = scores.at[first * 4 // z.itemsize + k].get(mode="fill", fill_value=0)
            numbers.append(x.astype(jnp.float32))
    assert len(numbers) == 4 * len(quads) * per_word
    return tuple(numbers)


def keep_masks(th: Threads, z: HardSizes, first, n):
    """Ones in the bits of columns within length ``n``, for each word of ``load_row``;
    ``first`` is the lane's first column."""
    per_word = 1 if th.plain else 4 // z.itemsize
    bits = 32 // per_word
    masks = []
    for word in range(COLUMNS // per_word):
        mask = th.splat(0)
        for k in range(per_word):
            ones = ((1 << bits) - 1) << (bits * k)
            inside = first + (word * per_word + k) < n
            mask = mask | jnp.where(inside, th.splat(_signed(ones)), th.splat(0))
        masks.append(mask)
    return tuple(masks)


def masked(th: Threads, z: HardSizes, words, keep):
    """``words`` with the lowest score where ``keep`` has no ones."""
    if th.plain:
        low = float(jnp.iinfo(z.dtype).min) if "int" in z.dtype else -jnp.inf
        return tuple(
            jnp.where(k != 0, x, low) for x, k in zip(words, keep, strict=True)
        )
    low = th.splat(_signed(LOWEST_BITS[z.dtype]))
    return tuple(((x ^ low) & k) ^ low for x, k in zip(words, keep, strict=True))


def numbers_of(th, z: HardSizes, words):
    """16 float32 from the bits; ``th`` is that of a fused function."""
    if th.plain or z.dtype == "float32":
        return list(words)
    out = []
    for word in words:
        if z.dtype == "bfloat16":
            out += [word << 16, word & _signed(0xFFFF0000)]
        elif z.dtype == "float16":
            out += [th.asm(HALF.format(half), word) for half in "xy"]
        else:
            bits = 8 * z.itemsize
            out += [th.asm(INTEGER.format(x, bits), word) for x in range(0, 32, bits)]
    return out


def _signed(bits: int) -> int:
    return bits - (1 << 32) if bits >= 1 << 31 else bits
