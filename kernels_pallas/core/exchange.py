"""Hand results from program to program of one launch, through global memory.

A program announces with ``announce`` how far it is; another waits for that number with
``await_number``. ``fetch`` after the wait reads past the first-level cache and sees all
that was stored before the announcement. Programs take their work by ``ticket``, so
whoever waits waits for a program that runs already: nothing can lock.
Every function has a twin in plain ``jnp`` for the interpreter, where programs run one
after the other: nobody waits there.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.mosaic import (
    THREADS,
    WORD_LAYOUT,
    WORD_TYPE,
    Threads,
    address,
    bits_of,
    check_access,
    dialects,
    emitted,
    inline,
    word_of,
)
from kernels_pallas.core.target import Target


def uniform(th: Threads, value: jax.Array):
    """Turn a word that all threads of a warp share into a scalar to steer loops."""
    if th.plain:
        return value[0]
    out = plgpu.ShapeDtypeStruct((), jnp.int32, layout=plgpu.Layout.WG_SPLAT)

    @inline(arg_types=(WORD_LAYOUT,), return_type=out)
    def read(_, x):
        return dialects()[0].FragmentedArray.splat(bits_of(x), (), is_signed=True)

    return read(value)


def fetch(th: Threads, ref: Any, index: jax.Array, base: Any, stride: int):
    """Load four words, as ``Threads.load``, that other programs may have stored."""
    if th.plain:
        return th.load(ref, index, 4, base, stride)
    asm = "ld.relaxed.gpu.global.v4.b32 {$0, $1, $2, $3}, [$4];"
    return _access(asm, "=r,=r,=r,=r", ref, index, base=base, stride=stride)


def await_number(
    th: Threads, ref: Any, index: jax.Array, least: jax.Array, seen: jax.Array
):
    """Wait until word ``index`` is at least ``least``; returns the number seen.

    ``seen`` is the number of an earlier wait: where it is enough nothing is read.
    """
    if th.plain:
        check_access(ref.size, index)
        return seen

    asm = "{ .reg .pred p; mov.b32 $0, $3; setp.ge.s32 p, $0, $2; @p bra done;"
    asm += " again: ld.acquire.gpu.global.b32 $0, [$1]; setp.lt.s32 p, $0, $2;"
    asm += " @p bra again; done: }"
    return _access(asm, "=&r", ref, index, least, seen)[0]


def announce(
    th: Threads, ref: Any, index: jax.Array, number: jax.Array, where: jax.Array
):
    """Store a number where ``where`` is not 0, after all stores that the program made
    before its last ``Threads.wait``."""
    if th.plain:
        return th.store(ref, index, (number,), where=where)

    asm = "{ .reg .pred p; setp.ne.b32 p, $2, 0;"
    asm += " @p st.release.gpu.global.b32 [$0], $1; }"
    return _access(asm, "", ref, index, number, where)


def _access(
    asm: str,
    results: str,
    ref: Any,
    index: jax.Array,
    *words: jax.Array,
    base: Any = None,
    stride: int = 0,
):
    """Run PTX at a word of global memory. Operands are its results, the pointer, then
    ``words``; ``results`` are the constraints of the results, separated by commas."""
    outputs = results.split(",") if results else []
    scalars = () if base is None else (base,)
    types = plgpu.RefType(), *(WORD_LAYOUT,) * (1 + len(words) + len(scalars))

    @inline(arg_types=types, return_type=(WORD_TYPE,) * len(outputs))
    def run(_, ref: Any, at, *arrays):
        pointer = address(ref, bits_of(at), arrays[len(words) :], stride)
        operands = [pointer, *map(bits_of, arrays[: len(words)])]
        kinds = ",".join([*outputs, "l", *["r"] * len(words)])
        return emitted(asm, kinds, len(outputs), operands)

    return run(ref, index, *words, *scalars)


def ticket(th: Threads, ref: Any, shared: Any, program: Any):
    """Draw the next number from word 0 of ``ref``, the same in all threads of the
    program; ``shared`` is a word of shared memory. The twin returns ``program``."""
    if th.plain:
        return th.splat(program)

    @inline(arg_types=(plgpu.RefType(), WORD_LAYOUT), return_type=WORD_TYPE)
    def take(_, ref: Any, first):
        _, utils, ir, _, llvm, _ = dialects()
        pointer = ir.Type.parse("!llvm.ptr<1>")
        zero = llvm.addrspacecast(pointer, utils.memref_ptr(ref))
        asm = "{ .reg .pred p; setp.ne.b32 p, $2, 0; mov.b32 $0, 0;"
        asm += " @p atom.relaxed.gpu.global.add.u32 $0, [$1], 1; }"
        return emitted(asm, "=&r,l,r", 1, [zero, bits_of(first)])[0]

    first = (th.index() == 0).astype(jnp.int32)
    number = take(ref, first)
    th.store(shared, th.splat(0), (number,), where=first)
    th.wait()
    return th.load(shared, th.splat(0))[0]


def with_byte(th: Threads, word: jax.Array, value: jax.Array, place: int, byte=0):
    """``word`` with byte ``byte`` of a value in its byte ``place``; int32 (128,)."""
    if th.plain:
        byte = lax.shift_right_logical(value, th.splat(8 * byte)) & 255
        mask = (~(255 << 8 * place) + 2**31) % 2**32 - 2**31
        return (word & mask) | lax.shift_left(byte, th.splat(8 * place))

    selected = sum((4 + byte if n == place else n) << (4 * n) for n in range(4))
    return word_of(f"prmt.b32 $0, $1, $2, {selected};", word, value, pure=True)


def ballot(th: Threads, flags: jax.Array):
    """A bit for each lane of the warp whose word is not 0; the same in all lanes."""
    if th.plain:
        bits = lax.shift_left(jnp.ones(32, jnp.int32), jnp.arange(32, dtype=jnp.int32))
        return th.splat(jnp.sum(jnp.where(flags[:32] != 0, bits, 0), dtype=jnp.int32))

    asm = "{ .reg .pred p; setp.ne.b32 p, $1, 0; vote.sync.ballot.b32 $0, p, -1; }"
    return word_of(asm, flags)


# ------------------------------------------------------------------------------
# Copy a table from global to shared memory, in bulk where the target can.

COPY_WORDS = 256  # of a row of a table: the limit of one bulk copy
WORDS_A_TURN = 4


def copy_scratch(target: Target) -> list:
    """Scratch memory that ``copy_table`` needs besides the table: a barrier or none."""
    return [plgpu.Barrier()] if target.bulk_copies else []


def copy_table(
    th: Threads,
    source: Any,
    which: Any,
    table: Any,
    barrier: Any,
    warpgroup: Any = None,
) -> None:
    """Copy table ``which`` of ``source``, int32 (tables, rows, COPY_WORDS), to shared
    memory and wait until all threads of the program may read it.

    barrier : from ``copy_scratch``; may be empty
    warpgroup : int32 (), where a program has several; the first one copies
    """

    def copy():
        if barrier:
            plgpu.copy_gmem_to_smem(source.at[which], table, *barrier)
            return
        # All threads load and store, WORDS_A_TURN words each.
        words, thread = th.read_only(source), th.index()
        number = jnp.asarray(which, jnp.int32)
        for first in range(0, table.size, WORDS_A_TURN * THREADS):
            at = WORDS_A_TURN * thread
            inside = (at + first < table.size).astype(jnp.int32)
            at = jnp.where(inside != 0, at, 0)
            values = th.load(words, at, WORDS_A_TURN, number, table.size, first)
            th.store(table, at, values, where=inside, offset=first)

    if warpgroup is None:
        copy()
    else:
        pl.when(warpgroup == 0)(copy)
    if barrier:
        plgpu.barrier_wait(*barrier)
    else:
        th.wait()
