"""Per-thread arithmetic and memory of float32 kernels: 128 numbers, one a thread.

Twins in plain ``jnp`` as in ``mosaic``. Exponentials are the special-function unit's,
at most two units in the last place off.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.mosaic import (
    HALVES_LAYOUT,
    HALVES_TYPE,
    THREADS,
    WORD_LAYOUT,
    WORD_TYPE,
    Threads,
    address,
    bits_of,
    dialects,
    fragment,
    inline,
    read,
    register,
)

REAL_TYPE = plgpu.ShapeDtypeStruct((THREADS,), jnp.float32, layout=WORD_LAYOUT)
LOG2E, ONE = "0f3FB8AA3B", "0f3F800000"  # as PTX writes float32
# log(1 + x) / x - 1 over x, on [0, 1], least absolute error 7e-9. The logarithm of the
# special-function unit is off by 4e-8 on the average, which a path adds up.
LOG1P = ("0f3B8E3A72", "0fBCD2E984", "0f3D92E80F", "0fBE05DBBB",
         "0f3E408C20", "0fBE7D840D", "0f3EAA8838", "0fBEFFFE89", ONE)  # fmt: skip
WARP = 32

EXP_OF_DISTANCE = f"""{{ .reg .f32 d; sub.f32 d, $1, $2; abs.f32 d, d; neg.f32 d, d;
mul.f32 d, d, {LOG2E}; ex2.approx.ftz.f32 $0, d; }}"""
LOG_OF_SUM = f"""{{ .reg .f32 h, p; max.f32 h, $2, $3; mov.f32 p, {LOG1P[0]};
{" ".join(f"fma.rn.f32 p, p, $1, {c};" for c in LOG1P[1:])}
fma.rn.f32 $0, p, $1, h; }}"""
EXP = f"{{ .reg .f32 d; mul.f32 d, $1, {LOG2E}; ex2.approx.ftz.f32 $0, d; }}"
# One Newton step: a probability that is split many times over must not drift.
INVERSE = f"""{{ .reg .f32 a, e;
rcp.approx.ftz.f32 a, $1; neg.f32 e, $1; fma.rn.f32 e, e, a, {ONE};
fma.rn.f32 $0, a, e, a; }}"""


def fragment_of(body: str, *values: jax.Array, pure: bool = True):
    """A float32 a thread by PTX, from other numbers; ``pure`` as in ``word_of``."""

    @inline(arg_types=(WORD_LAYOUT,) * len(values), return_type=REAL_TYPE)
    def run(_, *arrays):
        mgpu, _, ir, _, llvm, vector = dialects()
        f32, first = ir.F32Type.get(), ir.DenseI64ArrayAttr.get([0])
        operands = [vector.extract(register(x), [], first) for x in arrays]
        kinds = ",".join(["=f"] + ["f"] * len(operands))
        out = llvm.inline_asm(f32, operands, body, kinds, has_side_effects=not pure)
        number = vector.broadcast(ir.VectorType.get((1,), f32), out)
        return fragment(mgpu, number, WORD_LAYOUT.to_mgpu(), signed=None)

    return run(*values)


@dataclass(frozen=True)
class Reals:
    """Operations on float32 (128,). ``plain`` (static) takes the ``jnp`` twins."""

    th: Threads
    dual: bool = False  # whether functions are differentiated

    def splat(self, value: Any):
        """A scalar in every thread."""
        array = lax.broadcast(jnp.asarray(value, jnp.float32), (self.th.count,))
        return array if self.th.plain else plgpu.layout_cast(array, WORD_LAYOUT)

    def lse(self, a: jax.Array, b: jax.Array):
        """log(exp(a) + exp(b)), and exp(-|a - b|)."""
        if self.th.plain:
            less = jnp.exp(-jnp.abs(a - b))
            return jnp.maximum(a, b) + jnp.log1p(less), less
        less = fragment_of(EXP_OF_DISTANCE, a, b)
        return fragment_of(LOG_OF_SUM, less, a, b), less

    def exp(self, x: jax.Array):
        return jnp.exp(x) if self.th.plain else fragment_of(EXP, x)

    def inverse(self, x: jax.Array):
        return 1 / x if self.th.plain else fragment_of(INVERSE, x)

    def load(
        self,
        ref: Any,
        index: jax.Array,
        count: int = 1,
        base: Any = None,
        stride: int = 0,
        offset: int = 0,
    ):
        """As ``Threads.load``, of a float32 ref."""
        words = self.th.load(ref, index, count, base, stride, offset)
        if self.th.plain:
            return words
        return tuple(lax.bitcast_convert_type(x, jnp.float32) for x in words)

    def store(
        self,
        ref: Any,
        index: jax.Array,
        values: tuple[jax.Array, ...],
        base: Any = None,
        stride: int = 0,
        where: jax.Array | None = None,
        offset: int = 0,
    ):
        """As ``Threads.store``, to a float32 ref."""
        if not self.th.plain:
            values = tuple(lax.bitcast_convert_type(x, jnp.int32) for x in values)
        self.th.store(ref, index, values, base, stride, where, offset)

    def next_lane(
        self,
        values: tuple[jax.Array, ...],
        lanes: int,
        down: bool,
        shared: Any,
        turn: Any,
        thread: jax.Array,
    ):
        """The values of the previous thread (``down``: next), in groups of ``lanes``.

        Between warps they go through ``shared`` memory, whose two halves alternate with
        ``turn`` (0 or 1), so that one barrier an exchange is enough. The result of the
        thread at the border of a group is undefined.
        """
        if self.th.plain:
            source = jnp.clip(thread + (1 if down else -1), 0, self.th.count - 1)
            return tuple(x[source] for x in values)
        way, mask = ("down", 31) if down else ("up", 0)
        asm = f"shfl.sync.{way}.b32 $0, $1, 1, {mask}, -1;"
        within = tuple(fragment_of(asm, x, pure=False) for x in values)
        if lanes == WARP:
            return within
        th, count = self.th, len(values)
        warps = lanes // WARP
        lane, warp = thread & (WARP - 1), lax.shift_right_logical(thread, th.splat(5))
        sends, takes = (0, WARP - 1) if down else (WARP - 1, 0)
        at = (turn * warps + warp) * count
        edge = (lane == sends).astype(jnp.int32)
        for k, value in enumerate(values):
            self.store(shared, at + k, (value,), where=edge)
        th.wait()
        neighbour = jnp.clip(warp + (1 if down else -1), 0, warps - 1)
        at = (turn * warps + neighbour) * count
        across = [self.load(shared, at + k)[0] for k in range(count)]
        takes = lane == takes
        return tuple(
            jnp.where(takes, a, b) for a, b in zip(across, within, strict=True)
        )


def in_parts(run: Callable, arrays: Any, limit: int, multiple: int = 1):
    """``run(*arrays)``, of at most ``limit`` pairs at once, the length of every array;
    parts are multiples of a number, which divides the limit."""
    count = len(jax.tree.leaves(arrays)[0])
    if count <= limit:
        return run(*arrays)
    parts = -(-count // limit)
    each = -(-count // (parts * multiple)) * multiple

    def cut(x):
        x = jnp.pad(x, ((0, parts * each - count),) + ((0, 0),) * (x.ndim - 1))
        return x.reshape(parts, each, *x.shape[1:])

    results = lax.map(lambda part: run(*part), jax.tree.map(cut, arrays))
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:count], results)


# ------------------------------------------------------------------------------
# Many operations on registers as one primitive of JAX.
#
# JAX takes half a millisecond to trace and lower an operation: a second for the cells
# of a step, one kernel at a time because of Python's lock. ``fused`` calls its function
# once, while the kernel is lowered, and the function emits the same MLIR directly.


def fused(th: Any, function: Callable, ref: Any, values: Any, like: Any):
    """Call ``function(th, ref, values)`` as one primitive of JAX, with results like
    ``like``.

    Unless ``th`` is plain the function gets an ``Emitter``, of which it may use the
    words, halves and operators that ``Threads`` has too; float32 numbers are words.
    """
    if th.plain:
        return function(th, ref, values)
    leaves, tree = jax.tree.flatten(values)
    likes, like_tree = jax.tree.flatten(like)
    forms = (WORD_LAYOUT if x.dtype.itemsize == 4 else HALVES_LAYOUT for x in leaves)
    types = {jnp.dtype(jnp.int32): WORD_TYPE, jnp.dtype(jnp.float32): REAL_TYPE}
    results = tuple(types.get(x.dtype, HALVES_TYPE) for x in likes)

    @inline(arg_types=(plgpu.RefType(), *forms), return_type=results)
    def emit(_, ref: Any, *arrays):
        emitter = Emitter(th.integer_halves)
        registers = jax.tree.unflatten(tree, map(emitter.register, arrays))
        results = jax.tree.leaves(function(emitter, ref, registers))
        return tuple(
            emitter.array(x, y.dtype == jnp.float32)
            for x, y in zip(results, likes, strict=True)
        )

    return jax.tree.unflatten(like_tree, emit(ref, *leaves))


@dataclass(frozen=True, slots=True)
class Register:
    """A word or two halves of a thread while MLIR is emitted; the second operand of an
    operator may be a Python int."""

    bits: Any  # i32
    halves: bool = False

    def __add__(self, operand: "Register | int"):
        return self._with("addi", operand)

    def __sub__(self, operand: "Register | int"):
        return self._with("subi", operand)

    def __mul__(self, operand: "Register | int"):
        return self._with("muli", operand)

    def __and__(self, operand: "Register | int"):
        return self._with("andi", operand)

    def __or__(self, operand: "Register | int"):
        return self._with("ori", operand)

    def __lshift__(self, operand: "Register | int"):
        return self._with("shli", operand)

    def _with(self, name: str, operand: "Register | int"):
        _, utils, ir, arith, _, vector = dialects()
        i32 = ir.IntegerType.get_signless(32)
        a, b = (
            self.bits,
            utils.c(operand, i32) if isinstance(operand, int) else operand.bits,
        )
        if not self.halves:
            return Register(getattr(arith, name)(a, b))
        pair = ir.VectorType.get((2,), ir.IntegerType.get_signless(16))
        a, b = (utils.bitcast(x, pair) for x in (a, b))
        return Register(utils.bitcast(getattr(arith, name)(a, b), i32), True)


@dataclass(frozen=True)
class Emitter:
    """Methods of ``Threads`` for the registers of a fused function."""

    integer_halves: bool
    plain = False

    def register(self, array: Any):
        """The register of an array."""
        return Register(bits_of(array), str(array.mlir_dtype) == "i16")

    def array(self, register: Register, real: bool = False):
        """A register as an array; of float32 if ``real``."""
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
        operands, kind = [a.bits, b.bits], "s16x2" if self.integer_halves else "f16x2"
        asm = f"max.{kind} $0, $1, $2;"
        return Register(llvm.inline_asm(i32, operands, asm, "=r,r,r"), True)

    def real(self, name: str, a: Register, b: Register):
        """Apply MLIR's ``arith`` operation ``name`` to words as float32."""
        _, utils, ir, arith, *_ = dialects()
        f32 = ir.F32Type.get()
        operands = (utils.bitcast(x.bits, f32) for x in (a, b))
        results = getattr(arith, name)(*operands)
        return Register(utils.bitcast(results, ir.IntegerType.get_signless(32)))

    def asm(self, text: str, *registers: Register):
        """A word by PTX: $0, from the thread's words $1, $2, ..."""
        _, _, ir, _, llvm, _ = dialects()
        i32 = ir.IntegerType.get_signless(32)
        kinds = ",".join(["=r"] + ["r"] * len(registers))
        return Register(llvm.inline_asm(i32, [x.bits for x in registers], text, kinds))

    def shift_right(self, register: Register, count: int):
        """Shift words down by a Python int, with zeros from above."""
        _, utils, ir, arith, *_ = dialects()
        places = utils.c(count, ir.IntegerType.get_signless(32))
        return Register(arith.shrui(register.bits, places))

    def load(self, ref: Any, index: Register, count: int = 1, offset: int = 0):
        """``count`` (1, 2 or 4) consecutive words, as ``Threads.load``."""
        pointer = address(ref, index.bits, None, 0, offset)
        return tuple(map(Register, read(pointer, count)))
