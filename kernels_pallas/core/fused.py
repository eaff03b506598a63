"""Many operations on registers as one primitive of JAX.

JAX traces and lowers every operation of a kernel by itself, which takes half a
millisecond: a second for the cells of a step, and Python's lock lets one kernel at a
time do so. A function that is given to ``fused`` is run once, while its kernel is
lowered, and emits the same MLIR directly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.mosaic import HALVES_LAYOUT, HALVES_TYPE, WORD_TYPE
from kernels_pallas.core.reals import REAL_TYPE
from kernels_pallas.core.registers import (
    WORD_LAYOUT,
    address,
    bits_of,
    dialects,
    fragment,
    inline,
    read,
)


def fused(th: Any, function: Callable, ref: Any, values: Any, like: Any):
    """The result of ``function(th, ref, values)``, whose operations are one primitive.

    Parameters
    ----------
    th : Threads
        The function gets it where it is plain, else an ``Emitter``: its words, halves
        and operators are what both have.
    ref : flat int32, what the function may load from
    values : a pytree of words, halves and float32 numbers, which are words there
    like : a pytree of the structure and the types of what the function returns
    """
    if th.plain:
        return function(th, ref, values)
    given, tree = jax.tree.flatten(values)
    likes, made_tree = jax.tree.flatten(like)
    layouts = (plgpu.RefType(), *map(_layout_of, given))

    @inline(arg_types=layouts, return_type=tuple(map(_type_of, likes)))
    def emit(_, ref: Any, *arrays):
        emitter = Emitter(th.integer_halves)
        registers = jax.tree.unflatten(tree, map(emitter.register, arrays))
        results = jax.tree.leaves(function(emitter, ref, registers))
        return tuple(
            emitter.array(x, y.dtype == jnp.float32)
            for x, y in zip(results, likes, strict=True)
        )

    return jax.tree.unflatten(made_tree, emit(ref, *given))


def _type_of(value: Any):
    types = {jnp.dtype(jnp.int32): WORD_TYPE, jnp.dtype(jnp.float32): REAL_TYPE}
    return types.get(value.dtype, HALVES_TYPE)


def _layout_of(value: Any):
    return WORD_LAYOUT if value.dtype.itemsize == 4 else HALVES_LAYOUT


@dataclass(frozen=True, slots=True)
class Register:
    """A word a thread, or two halves, while MLIR is emitted; other operands may be
    Python ints."""

    bits: Any  # i32
    halves: bool = False

    def __add__(self, other: "Register | int"):
        return self._with("addi", other)

    def __sub__(self, other: "Register | int"):
        return self._with("subi", other)

    def __mul__(self, other: "Register | int"):
        return self._with("muli", other)

    def __and__(self, other: "Register | int"):
        return self._with("andi", other)

    def __or__(self, other: "Register | int"):
        return self._with("ori", other)

    def __lshift__(self, other: "Register | int"):
        return self._with("shli", other)

    def _with(self, name: str, other: "Register | int"):
        _, utils, ir, arith, _, vector = dialects()
        i32 = ir.IntegerType.get_signless(32)
        left, right = (
            self.bits,
            utils.c(other, i32) if isinstance(other, int) else other.bits,
        )
        if not self.halves:
            return Register(getattr(arith, name)(left, right))
        pair = ir.VectorType.get((2,), ir.IntegerType.get_signless(16))
        left, right = (utils.bitcast(x, pair) for x in (left, right))
        return Register(utils.bitcast(getattr(arith, name)(left, right), i32), True)


@dataclass(frozen=True)
class Emitter:
    """The methods of ``Threads`` that a fused function may use, for registers."""

    integer_halves: bool
    plain = False

    def register(self, array: Any):
        """The register of an array."""
        return Register(bits_of(array), str(array.mlir_dtype) == "i16")

    def array(self, register: Register, real: bool = False):
        """A register as an array, of float32 where it is a ``real``."""
        mgpu, utils, ir, *_ = dialects()
        if real:
            kind = ir.VectorType.get((1,), ir.F32Type.get())
            bits = utils.bitcast(register.bits, kind)
            return fragment(mgpu, bits, WORD_LAYOUT.to_mgpu(), signed=None)
        lanes, layout = (2, HALVES_LAYOUT) if register.halves else (1, WORD_LAYOUT)
        kind = ir.VectorType.get((lanes,), ir.IntegerType.get_signless(32 // lanes))
        return fragment(mgpu, utils.bitcast(register.bits, kind), layout.to_mgpu())

    def splat(self, value: Any):
        """A Python int in every thread."""
        _, utils, ir, *_ = dialects()
        return Register(utils.c(value, ir.IntegerType.get_signless(32)))

    def words(self, register: Register):
        return Register(register.bits)

    def halves(self, register: Register):
        return Register(register.bits, True)

    def maximum(self, a: Register, b: Register):
        """As ``Threads.maximum``."""
        _, _, ir, arith, llvm, _ = dialects()
        if not a.halves:
            return Register(arith.maxsi(a.bits, b.bits))
        i32 = ir.IntegerType.get_signless(32)
        both, kind = [a.bits, b.bits], "s16x2" if self.integer_halves else "f16x2"
        asm = f"max.{kind} $0, $1, $2;"
        return Register(llvm.inline_asm(i32, both, asm, "=r,r,r"), True)

    def real(self, name: str, a: Register, b: Register):
        """The operation of MLIR's ``arith`` with this name, on words as float32."""
        _, utils, ir, arith, *_ = dialects()
        f32 = ir.F32Type.get()
        both = (utils.bitcast(x.bits, f32) for x in (a, b))
        results = getattr(arith, name)(*both)
        return Register(utils.bitcast(results, ir.IntegerType.get_signless(32)))

    def asm(self, text: str, *registers: Register):
        """A word by PTX: $0, from the words $1, $2, ... of the thread alone."""
        _, _, ir, _, llvm, _ = dialects()
        i32 = ir.IntegerType.get_signless(32)
        kinds = ",".join(["=r"] + ["r"] * len(registers))
        return Register(llvm.inline_asm(i32, [x.bits for x in registers], text, kinds))

    def shift_right(self, register: Register, count: int):
        """Words whose bits move down by a Python int; zeros follow."""
        _, utils, ir, arith, *_ = dialects()
        places = utils.c(count, ir.IntegerType.get_signless(32))
        return Register(arith.shrui(register.bits, places))

    def load(self, ref: Any, index: Register, count: int = 1, more: int = 0):
        """``count`` (1, 2 or 4) consecutive words, as ``Threads.load``."""
        pointer = address(ref, index.bits, None, 0, more)
        return tuple(map(Register, read(pointer, count)))
