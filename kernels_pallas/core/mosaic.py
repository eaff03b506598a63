"""Helpers that Pallas Mosaic GPU lacks: per-thread arithmetic and memory, versions.

A warpgroup is 128 threads. Arrays of 128 int32 (*words*) are one
register a thread; arrays of 256 int16 (*halves*) are the same register seen as two
16-bit lanes, which Hopper's DPX instructions work on (``Target`` has other GPUs).
Every helper that has to be written in MLIR or PTX has a twin in plain ``jnp``: with
``plain=True`` a kernel runs in the GPU interpreter (JAX 0.11 or newer), values and all.
"""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.target import FLOAT16_LIMIT

# ------------------------------------------------------------------------------
# Proof that kernels stay inside their arrays, in the interpreter.
#
# The twins of loads and stores read nothing and drop what they store where an index
# lies outside. On a GPU it would silently touch another allocation of JAX's pool. So
# each twin checks its indices here and lists the wrong ones for the test that ran the
# kernel.

OUTSIDE = []  # a sentence for each access that left its array
_TWIN_FILES = {"mosaic.py", "reals.py", "exchange.py"}


def check_access(
    size: int, first: jax.Array, count: int = 1, where: jax.Array | None = None
):
    """List a load or store of ``count`` words from ``first`` on that leaves an array of
    ``size`` words, or is not aligned to a vector of ``count``.

    Parameters
    ----------
    first : int32 (threads,)
    where : int32 (threads,), optional
        0 in masked threads, which neither load nor store.
    """
    wrong = (first < 0) | (first > size - count) | (first % count != 0)
    if where is not None:
        wrong = wrong & (where != 0)
    # File, line and function of the kernel that loads or stores
    frame = sys._getframe(1)
    while frame.f_back and Path(frame.f_code.co_filename).name in _TWIN_FILES:
        frame = frame.f_back
    code = frame.f_code
    caller = f"{Path(code.co_filename).name}:{frame.f_lineno} {code.co_name}"
    report = partial(jax.debug.callback, partial(_list, caller, size, count))
    lax.cond(jnp.any(wrong), report, lambda *_: None, first, wrong)


def _list(place: str, size: int, count: int, first: jax.Array, wrong: Any):
    (threads,) = wrong.nonzero()
    start = int(first[threads[0]])
    OUTSIDE.append(
        f"{place}: words {start} to {start + count - 1} of {size}, "
        f"thread {threads[0]} and {len(threads) - 1} others"
    )


# ------------------------------------------------------------------------------
# Registers and pointers of a thread in MLIR, for helpers that emit PTX. Call them
# inside ``inline_mgpu``.

THREADS = 128
WORD_LAYOUT = plgpu.Layout.WG_STRIDED((THREADS,), vec_size=1)


def inline(**types: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``plgpu.inline_mgpu``, typed as a decorator: it declares a return type that hides
    that the decorated function is called without its first argument, the context."""
    return plgpu.inline_mgpu(**types)


def dialects():
    """The MLIR dialects that helpers emit; imported late because they load slowly."""
    from jax.experimental.mosaic import gpu as mgpu
    from jax.experimental.mosaic.gpu import utils
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import arith, llvm, vector

    return mgpu, utils, ir, arith, llvm, vector


def register(array: Any):
    return array.registers.flat[0]


def fragment(mgpu: Any, register: Any, layout: Any, signed: bool | None = True):
    import numpy as np

    registers = np.empty((1,), dtype=object)
    registers[0] = register
    return mgpu.FragmentedArray(_registers=registers, _layout=layout, _is_signed=signed)


def as_word(mgpu: Any, utils: Any, ir: Any, bits: Any):
    element = ir.VectorType.get((1,), ir.IntegerType.get_signless(32))
    return fragment(mgpu, utils.bitcast(bits, element), WORD_LAYOUT.to_mgpu())


def space(ref: Any):
    _, utils, ir, *_ = dialects()
    return ".shared" if utils.is_smem_ref(ref) else ".global"


def bits_of(array: Any):
    """The register of an array as i32."""
    _, utils, ir, *_ = dialects()
    return utils.bitcast(register(array), ir.IntegerType.get_signless(32))


def read(pointer: Any, count: int):
    """Load ``count`` (1, 2 or 4) consecutive words at a pointer, i32 each."""
    _, utils, ir, _, llvm, _ = dialects()
    i32 = ir.IntegerType.get_signless(32)
    if count == 1:
        return [llvm.load(i32, pointer, alignment=4)]
    kind = ir.VectorType.get((count,), i32)
    words = llvm.load(kind, pointer, alignment=4 * count)
    return [llvm.extractelement(words, utils.c(k, i32)) for k in range(count)]


def address(ref: Any, index: Any, base: Any, stride: int, offset: int = 0):
    """Pointer to word ``base * stride + index + offset`` of a flat int32 ref; ``index``
    is i32."""
    _, utils, ir, arith, llvm, _ = dialects()
    i32, i64 = (ir.IntegerType.get_signless(n) for n in (32, 64))
    shared = utils.is_smem_ref(ref)
    pointer = utils.memref_ptr(ref)
    if not shared:
        pointer = llvm.addrspacecast(ir.Type.parse("!llvm.ptr<1>"), pointer)
    if base:
        first = arith.extsi(i64, bits_of(base[0]))
        first = arith.muli(first, utils.c(stride, i64))
        index = arith.addi(first, arith.extsi(i64, index))
    pointer = utils.getelementptr(pointer, [index], i32)
    return utils.getelementptr(pointer, [offset], i32) if offset else pointer


WARPGROUP = "warpgroup"
HALVES_LAYOUT = plgpu.Layout.WG_STRIDED((2 * THREADS,), vec_size=2)
WORD_TYPE = plgpu.ShapeDtypeStruct((THREADS,), jnp.int32, layout=WORD_LAYOUT)
HALVES_TYPE = plgpu.ShapeDtypeStruct((2 * THREADS,), jnp.int16, layout=HALVES_LAYOUT)


def kernel(
    body: Callable,
    shapes: Sequence[tuple[int, ...]],
    scratch_types: Any,
    grid: tuple[int, ...],
    names: tuple[str, ...],
    interpret: Any,
    warpgroups: int = 1,
    dtypes: Any = jnp.int32,
    refs: Sequence[Any] = (),
):
    """``plgpu.kernel`` without automatic barriers; a function of arrays, which the body
    gets flat, that returns a list of arrays of these shapes and dtypes.

    With one or two warpgroups a thread may have 255 registers; with four it has 128,
    and twice the warps hide latency.

    dtypes : one for all results, or one each
    refs : passed on after the arrays
    """

    def named(*refs):
        return body(*refs)

    # Its name in profiles; Mosaic finds none in a ``partial``.
    named.__name__ = getattr(body, "func", body).__name__.strip("_")
    keywords = {} if interpret is None else {"interpret": interpret}
    if warpgroups > 1:
        keywords |= {"num_threads": warpgroups, "thread_name": WARPGROUP}
    dtypes = dtypes if isinstance(dtypes, list) else [dtypes] * len(shapes)
    run = plgpu.kernel(
        named,
        out_type=[
            jax.ShapeDtypeStruct((math.prod(shape),), dtype)
            for shape, dtype in zip(shapes, dtypes, strict=True)
        ],
        scratch_types=scratch_types,
        grid=grid,
        grid_names=names,
        compiler_params=plgpu.CompilerParams(
            unsafe_no_auto_barriers=True,
            lowering_semantics=plgpu.LoweringSemantics.Lane,
        ),
        **keywords,
    )
    # The wrapper that gives ``vmap`` a rule does not take references on JAX 0.10.
    run = getattr(run, "fun", run) if refs else run

    def launch(*arrays):
        out = run(*arrays, *refs)
        return [x.reshape(shape) for x, shape in zip(out, shapes, strict=True)]

    return launch


def interpreter():
    """Parameters of the GPU interpreter, or None where JAX is too old for values."""
    parameters = getattr(plgpu, "InterpretGPUParams", None)
    if tuple(int(x) for x in version("jax").split(".")[:2]) < (0, 11):
        return None
    return parameters and parameters()


def where(mask: jax.Array, yes: Any, no: Any):
    """``jnp.where`` on words; both cases may be scalars.

    A scalar first case would make Mosaic forget that the result is signed.
    """
    yes, no = (
        x if jnp.ndim(x) else plgpu.layout_cast(
            lax.broadcast(jnp.asarray(x, jnp.int32), (THREADS,)), WORD_LAYOUT
        )
        for x in (yes, no)
    )  # fmt: skip
    return lax.select(mask, yes, no)


@dataclass(frozen=True)
class Threads:
    """Per-thread operations. ``plain`` (static) takes the ``jnp`` twins."""

    plain: bool = False
    count: int = THREADS  # of the twin, which has those of all warpgroups in one array
    integer_halves: bool = True  # as of ``Target``

    def index(self):
        """Number of the thread, int32 (128,)."""
        if self.plain:
            return jnp.arange(self.count, dtype=jnp.int32)
        return plgpu.broadcasted_iota(jnp.int32, (THREADS,), 0, layout=WORD_LAYOUT)

    def splat(self, value: Any):
        """A scalar in every thread, int32 (128,)."""
        array = lax.broadcast(jnp.asarray(value, jnp.int32), (self.count,))
        return array if self.plain else plgpu.layout_cast(array, WORD_LAYOUT)

    def _each(self, value: Any):
        return value if value.ndim else self.splat(value)

    def any(self, flags: jax.Array):
        """1 if any thread of this warp has a flag (int32) other than 0, else 0.

        A scalar that differs between warps: it may steer loops without barriers between
        warps. The twin takes all 128 threads for one warp.
        """
        if self.plain:
            return jnp.any(flags != 0).astype(jnp.int32)
        out = plgpu.ShapeDtypeStruct((), jnp.int32, layout=plgpu.Layout.WG_SPLAT)

        @inline(arg_types=(WORD_LAYOUT,), return_type=out)
        def vote(_, x):
            mgpu, _, ir, _, llvm, _ = dialects()
            asm = "{ .reg .pred p, q; setp.ne.b32 p, $1, 0;"
            asm += " vote.sync.any.pred q, p, -1; selp.b32 $0, 1, 0, q; }"
            i32, bits = ir.IntegerType.get_signless(32), [bits_of(x)]
            answer = llvm.inline_asm(i32, bits, asm, "=r,r", has_side_effects=True)
            return mgpu.FragmentedArray.splat(answer, (), is_signed=True)

        return vote(flags)

    def words(self, halves: jax.Array):
        """int16 (256,) -> int32 (128,), the same registers."""
        if halves.dtype == jnp.int32:
            return halves
        if self.plain:
            return lax.bitcast_convert_type(halves.reshape(THREADS, 2), jnp.int32)
        return self._reinterpret(halves, HALVES_LAYOUT, WORD_TYPE)

    def halves(self, words: jax.Array):
        """int32 (128,) -> int16 (256,), the same registers."""
        if self.plain:
            return lax.bitcast_convert_type(words, jnp.int16).reshape(-1)
        return self._reinterpret(words, WORD_LAYOUT, HALVES_TYPE)

    def _reinterpret(self, value: Any, layout: Any, out: Any):
        @inline(arg_types=(layout,), return_type=out)
        def cast(_, x):
            mgpu, _, ir, _, _, vector = dialects()
            element = ir.IntegerType.get_signless(jnp.dtype(out.dtype).itemsize * 8)
            layout = out.layout.to_mgpu()
            kind = layout.registers_element_type(element)
            return fragment(mgpu, vector.bitcast(kind, register(x)), layout)

        return cast(value)

    def maximum(self, a: jax.Array, b: jax.Array):
        """The larger of two words, or of two pairs of halves.

        Without ``integer_halves`` that of their bits as float16: one of two halves at
        least is not negative and below ``FLOAT16_LIMIT``, and wins over one that is
        negative. (As float16 that is below 0, or NaN, which loses.)
        """
        if self.integer_halves or a.dtype != jnp.int16:
            return jnp.maximum(a, b)
        if self.plain:
            # The bits of the larger of two float16; a number wins over NaN
            def rank(bits):
                size = bits.astype(jnp.int32) & 0x7FFF
                order = jnp.where(bits < 0, -1 - size, size)
                return jnp.where(size > FLOAT16_LIMIT, -(2**20), order)

            both_nan = (rank(a) == -(2**20)) & (rank(b) == -(2**20))
            larger = jnp.where(rank(a) >= rank(b), a, b)
            return jnp.where(both_nan, jnp.int16(0x7FFF), larger)
        pair = self.words(a), self.words(b)
        return self.halves(word_of("max.f16x2 $0, $1, $2;", *pair, pure=True))

    def shift_right(self, words: jax.Array, count: int):
        """Shift words down by a Python int, with zeros from above."""
        return lax.shift_right_logical(words, self.splat(count))

    def shift_up(self, value: Any, width: int):
        """The value of the thread before, within groups of ``width`` threads; the first
        thread of a group keeps its value."""
        if self.plain:
            thread = jnp.arange(THREADS, dtype=jnp.int32)
            before = jnp.where(thread % width == 0, thread, thread - 1)
            return value[before]

        asm = f"shfl.sync.up.b32 $0, $1, 1, {(32 - width) << 8}, -1;"
        return word_of(asm, value)

    def read_only(self, ref: Any):
        """A ref that is only read; the twin loads it whole, which is faster there."""
        return ref[...].reshape(-1) if self.plain else ref

    def load(
        self,
        ref: Any,
        index: jax.Array,
        count: int = 1,
        base: Any = None,
        stride: int = 0,
        offset: int = 0,
    ):
        """Load ``count`` (1, 2 or 4) consecutive words a thread: a tuple of (128,).

        ``ref`` is flat int32; a thread's first word is ``base * stride + index +
        offset``, a multiple of ``count``. ``base``, a scalar or one a thread, is
        widened before it is multiplied. ``offset`` is static: loads that differ in it
        alone share one address.
        """
        if self.plain:
            flat = ref if isinstance(ref, jax.Array) else ref[...].reshape(-1)
            first = offset + (index if base is None else index + base * stride)
            check_access(flat.size, first, count)
            at = (first + k for k in range(count))
            return tuple(flat.at[i].get(mode="fill", fill_value=0) for i in at)
        types = (plgpu.RefType(), WORD_LAYOUT) + (
            () if base is None else (WORD_LAYOUT,)
        )

        @inline(arg_types=types, return_type=(WORD_TYPE,) * count)
        def loads(_, ref: Any, at, *base: Any):
            mgpu, utils, ir, *_ = dialects()
            pointer = address(ref, bits_of(at), base, stride, offset)
            return tuple(as_word(mgpu, utils, ir, v) for v in read(pointer, count))

        return loads(ref, index, *(() if base is None else (self._each(base),)))

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
        """Store ``len(values)`` (1, 2 or 4) consecutive words a thread, in threads
        where the int32 ``where`` is not 0; addresses as in ``load``."""
        count = len(values)
        if self.plain:
            old = ref[...]
            first = offset + (index if base is None else index + base * stride)
            check_access(old.size, first, count, where)
            if where is not None:
                first = jnp.where(where != 0, first, old.size)
            flat = old.reshape(-1)
            for k, value in enumerate(values):
                flat = flat.at[first + k].set(value, mode="drop")
            ref[...] = flat.reshape(old.shape)
            return
        extra = [x for x in (where, base) if x is not None]
        types = (plgpu.RefType(),) + (WORD_LAYOUT,) * (1 + count + len(extra))

        @inline(arg_types=types)
        def stores(_, ref: Any, at, *arrays):
            data, tail = list(map(bits_of, arrays[:count])), list(arrays[count:])
            mask = None if where is None else tail.pop(0)
            pointer = address(ref, bits_of(at), tail, stride, offset)
            vector = f".v{count}" if count > 1 else ""
            body = f"st{space(ref)}{vector}.b32 [$0], "
            names = ", ".join(f"${k + 1}" for k in range(count))
            body += f"{{{names}}};" if count > 1 else f"{names};"
            operands, kinds = [pointer, *data], "l" if space(ref) != ".shared" else "r"
            if mask is not None:
                operands.append(bits_of(mask))
                body = f"{{ .reg .pred p; setp.ne.b32 p, ${count + 1}, 0; @p {body} }}"
            kinds = ",".join([kinds] + ["r"] * (len(operands) - 1))
            emitted(body, kinds, 0, operands)

        scalars = [] if where is None else [where]
        scalars += [] if base is None else [self._each(base)]
        stores(ref, index, *values, *scalars)

    def wait(self):
        """Wait at a barrier of all threads of the program; all see what each stored
        before it."""
        if self.plain:
            return

        @inline()
        def barrier(_):
            emitted("bar.sync 0;", "", 0, ())

        barrier()


def word_of(asm: str, *words: jax.Array, pure: bool = False):
    """A word a thread by PTX: $0, from the words $1, $2, ...

    pure : whether it depends on nothing but the thread's words
    """
    kinds = ",".join(["=r"] + ["r"] * len(words))
    return words_of(asm, kinds, 1, words, pure)[0]


def one_bits(th: Threads, word: jax.Array):
    """Count the 1 bits of a word."""
    if th.plain:
        return lax.population_count(word)
    return word_of("popc.b32 $0, $1;", word, pure=True)


def words_of(asm: str, kinds: str, count: int, words: Any, pure: bool = True):
    """``count`` words a thread by PTX: the outputs $0, $1 ..., from ``words``, the
    operands after them; ``pure`` as in ``word_of``.

    kinds : LLVM's constraints of all operands
    """

    @inline(arg_types=(WORD_LAYOUT,) * len(words), return_type=(WORD_TYPE,) * count)
    def ask(_, *arrays: Any):
        return emitted(asm, kinds, count, map(bits_of, arrays), not pure)

    return ask(*words)


def emitted(asm: str, kinds: str, count: int, operands: Any, effects: bool = True):
    """``words_of`` inside ``inline_mgpu``, of registers and pointers; ``count`` may be
    0."""
    mgpu, utils, ir, _, llvm, _ = dialects()
    i32 = ir.IntegerType.get_signless(32)
    kind = f"!llvm.struct<({', '.join(['i32'] * count)})>" if count else "!llvm.void"
    kind = i32 if count == 1 else ir.Type.parse(kind)
    out = llvm.inline_asm(kind, list(operands), asm, kinds, has_side_effects=effects)
    words = [out] * count
    if count > 1:
        words = (llvm.extractvalue(i32, out, [k]) for k in range(count))
    return tuple(as_word(mgpu, utils, ir, word) for word in words)
