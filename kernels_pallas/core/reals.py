"""Per-thread arithmetic and memory of float32 kernels: 128 numbers, one a thread.

Twins in plain ``jnp`` as in ``mosaic``. Exponentials are the special-function unit's,
at most two units in the last place off.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.mosaic import THREADS, WORD_LAYOUT, Threads
from kernels_pallas.core.registers import dialects, inline, register

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


def fragment_of(body: str, *values: jax.Array, alone: bool = True):
    """A number a thread by PTX, from others; ``alone`` as of ``word_of``."""

    @inline(arg_types=(WORD_LAYOUT,) * len(values), return_type=REAL_TYPE)
    def run(_, *arrays):
        mgpu, _, ir, _, llvm, vector = dialects()
        f32 = ir.F32Type.get()
        operands = [_scalar(x) for x in arrays]
        kinds = ",".join(["=f"] + ["f"] * len(operands))
        out = llvm.inline_asm(f32, operands, body, kinds, has_side_effects=not alone)
        return _number(mgpu, ir, vector, out)

    return run(*values)


def _number(mgpu: Any, ir: Any, vector: Any, value: Any):
    import numpy as np

    registers = np.empty((1,), dtype=object)
    kind = ir.VectorType.get((1,), ir.F32Type.get())
    registers[0] = vector.broadcast(kind, value)
    layout = WORD_LAYOUT.to_mgpu()
    return mgpu.FragmentedArray(_registers=registers, _layout=layout, _is_signed=None)


def _scalar(array: Any):
    _, _, ir, _, _, vector = dialects()
    return vector.extract(register(array), [], ir.DenseI64ArrayAttr.get([0]))


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
        more: int = 0,
    ):
        """As ``Threads.load``, of a float32 ref."""
        words = self.th.load(ref, index, count, base, stride, more)
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
        more: int = 0,
    ):
        """As ``Threads.store``, to a float32 ref."""
        if not self.th.plain:
            values = tuple(lax.bitcast_convert_type(x, jnp.int32) for x in values)
        self.th.store(ref, index, values, base, stride, where, more)

    def next_lane(
        self,
        values: tuple[jax.Array, ...],
        lanes: int,
        down: bool,
        shared: Any,
        turn: Any,
        thread: jax.Array,
    ):
        """The values of the thread before (``down``: behind), in groups of 32 or all.

        From warp to warp they go through ``shared`` memory, whose two halves take
        ``turn`` (0 or 1): then one barrier an exchange is enough. The thread at
        the border of a group gets anything.
        """
        if self.th.plain:
            other = jnp.clip(thread + (1 if down else -1), 0, self.th.count - 1)
            return tuple(x[other] for x in values)
        way, mask = ("down", 31) if down else ("up", 0)
        asm = f"shfl.sync.{way}.b32 $0, $1, 1, {mask}, -1;"
        within = tuple(fragment_of(asm, x, alone=False) for x in values)
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
        near = jnp.clip(warp + (1 if down else -1), 0, warps - 1)
        at = (turn * warps + near) * count
        across = [self.load(shared, at + k)[0] for k in range(count)]
        takes = lane == takes
        return tuple(
            jnp.where(takes, a, b) for a, b in zip(across, within, strict=True)
        )
