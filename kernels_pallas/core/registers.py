"""Registers of a thread as Mosaic GPU holds them, and pointers, in MLIR: what helpers
that emit PTX are made of. They are called inside of ``inline_mgpu``."""

from collections.abc import Callable
from typing import Any

from jax.experimental.pallas import mosaic_gpu as plgpu

THREADS = 128
WORD_LAYOUT = plgpu.Layout.WG_STRIDED((THREADS,), vec_size=1)


def inline(**types: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``plgpu.inline_mgpu``, whose function is called without the context that it is
    given first: what it is declared to return says otherwise."""
    return plgpu.inline_mgpu(**types)


def dialects():
    """The MLIR dialects that the helpers emit; looked up late, they load slowly."""
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
    """``count`` (1, 2 or 4) consecutive words at a pointer, i32 each."""
    _, utils, ir, _, llvm, _ = dialects()
    i32 = ir.IntegerType.get_signless(32)
    if count == 1:
        return [llvm.load(i32, pointer, alignment=4)]
    kind = ir.VectorType.get((count,), i32)
    words = llvm.load(kind, pointer, alignment=4 * count)
    return [llvm.extractelement(words, utils.c(k, i32)) for k in range(count)]


def address(ref: Any, index: Any, base: Any, stride: int, more: int = 0):
    """Pointer to word ``base * stride + index + more`` of a flat int32 ref; the index
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
    return utils.getelementptr(pointer, [more], i32) if more else pointer
