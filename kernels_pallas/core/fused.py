"""Many operations on registers as one primitive of JAX.

JAX traces and lowers every operation of a kernel by itself, which takes half a
millisecond: a second for the cells of a step, and Python's lock lets one kernel at a
time do so. A function that is given to ``fused`` is run once, while its kernel is
lowered, and emits the same MLIR directly.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.mosaic import HALVES_LAYOUT, HALVES_TYPE, WORD_TYPE
from kernels_pallas.core.registers import (
    WORD_LAYOUT,
    address,
    bits_of,
    dialects,
    fragment,
    read,
)


def fused(th, function, ref, values, like):
    """What ``function(th, ref, values)`` returns.

    Parameters
    ----------
    th : Threads
        The function gets it where it is plain, else an ``Emitter``: its words, halves
        and operators are what both have.
    ref : flat int32, what the function may load from
    values : a pytree of words and halves
    like : a pytree of the structure and the types of what the function returns
    """
    if th.plain:
        return function(th, ref, values)
    given, tree = jax.tree.flatten(values)
    likes, made_tree = jax.tree.flatten(like)
    layouts = (plgpu.RefType(), *map(_layout_of, given))

    @plgpu.inline_mgpu(arg_types=layouts, return_type=tuple(map(_type_of, likes)))
    def emit(_, ref, *arrays):
        emitter = Emitter()
        registers = jax.tree.unflatten(tree, map(emitter.register, arrays))
        made = jax.tree.leaves(function(emitter, ref, registers))
        return tuple(map(emitter.array, made))

    return jax.tree.unflatten(made_tree, emit(ref, *given))


def _type_of(value):
    return WORD_TYPE if value.dtype == jnp.int32 else HALVES_TYPE


def _layout_of(value):
    return WORD_LAYOUT if value.dtype == jnp.int32 else HALVES_LAYOUT


@dataclass(frozen=True, slots=True)
class Register:
    """A word a thread, or two halves, while MLIR is emitted; other operands may be
    Python ints."""

    bits: Any  # i32
    halves: bool = False

    def __add__(self, other):
        return self._with("addi", other)

    def __sub__(self, other):
        return self._with("subi", other)

    def __mul__(self, other):
        return self._with("muli", other)

    def __and__(self, other):
        return self._with("andi", other)

    def __or__(self, other):
        return self._with("ori", other)

    def __lshift__(self, other):
        return self._with("shli", other)

    def _with(self, name, other):
        _, utils, ir, arith, _, vector = dialects()
        i32 = ir.IntegerType.get_signless(32)
        one, two = (
            self.bits,
            utils.c(other, i32) if isinstance(other, int) else other.bits,
        )
        if not self.halves:
            return Register(getattr(arith, name)(one, two))
        pair = ir.VectorType.get((2,), ir.IntegerType.get_signless(16))
        one, two = (utils.bitcast(x, pair) for x in (one, two))
        return Register(utils.bitcast(getattr(arith, name)(one, two), i32), True)


class Emitter:
    """The methods of ``Threads`` that a fused function may use, for registers."""

    plain = False

    def register(self, array):
        """The register of an array."""
        _, _, ir, *_ = dialects()
        return Register(bits_of(array), ir.IntegerType(array.mlir_dtype).width == 16)

    def array(self, register):
        """A register as an array."""
        mgpu, utils, ir, *_ = dialects()
        lanes, layout = (2, HALVES_LAYOUT) if register.halves else (1, WORD_LAYOUT)
        kind = ir.VectorType.get((lanes,), ir.IntegerType.get_signless(32 // lanes))
        return fragment(mgpu, utils.bitcast(register.bits, kind), layout.to_mgpu())

    def splat(self, value):
        """A Python int in every thread."""
        _, utils, ir, *_ = dialects()
        return Register(utils.c(value, ir.IntegerType.get_signless(32)))

    def words(self, register):
        return Register(register.bits)

    def halves(self, register):
        return Register(register.bits, True)

    def maximum(self, a, b):
        """The larger of two words, or of two pairs of halves."""
        _, _, ir, arith, llvm, _ = dialects()
        if not a.halves:
            return Register(arith.maxsi(a.bits, b.bits))
        i32 = ir.IntegerType.get_signless(32)
        both = [a.bits, b.bits]
        return Register(
            llvm.inline_asm(i32, both, "max.s16x2 $0, $1, $2;", "=r,r,r"), True
        )

    def shift_right(self, register, count):
        """Words whose bits move down by a Python int; zeros follow."""
        _, utils, ir, arith, *_ = dialects()
        places = utils.c(count, ir.IntegerType.get_signless(32))
        return Register(arith.shrui(register.bits, places))

    def load(self, ref, index, count=1, more=0):
        """``count`` (1, 2 or 4) consecutive words, as ``Threads.load``."""
        pointer = address(ref, index.bits, None, 0, more)
        return tuple(map(Register, read(pointer, count)))
