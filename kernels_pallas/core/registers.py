"""Registers of a thread as Mosaic GPU holds them, and pointers, in MLIR: what helpers
that emit PTX are made of. They are called inside of ``inline_mgpu``."""

from jax.experimental.pallas import mosaic_gpu as plgpu

THREADS = 128
WORD_LAYOUT = plgpu.Layout.WG_STRIDED((THREADS,), vec_size=1)


def dialects():
    """The MLIR dialects that the helpers emit; looked up late, they load slowly."""
    from jax.experimental.mosaic import gpu as mgpu
    from jax.experimental.mosaic.gpu import utils
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import arith, llvm, vector

    return mgpu, utils, ir, arith, llvm, vector


def register(array):
    return array.registers.flat[0]


def fragment(mgpu, register, layout):
    import numpy as np

    registers = np.empty((1,), dtype=object)
    registers[0] = register
    return mgpu.FragmentedArray(_registers=registers, _layout=layout, _is_signed=True)


def as_word(mgpu, utils, ir, bits):
    one = ir.VectorType.get((1,), ir.IntegerType.get_signless(32))
    return fragment(mgpu, utils.bitcast(bits, one), WORD_LAYOUT.to_mgpu())


def space(ref):
    _, utils, ir, *_ = dialects()
    return ".shared" if utils.is_smem_ref(ref) else ".global"


def address(ref, at, base, stride, more=0):
    """Pointer to word ``base * stride + at + more`` of a flat int32 ref."""
    _, utils, ir, arith, llvm, _ = dialects()
    i32, i64 = (ir.IntegerType.get_signless(n) for n in (32, 64))
    shared = utils.is_smem_ref(ref)
    pointer = utils.memref_ptr(ref)
    if not shared:
        pointer = llvm.addrspacecast(ir.Type.parse("!llvm.ptr<1>"), pointer)
    index = utils.bitcast(register(at), i32)
    if base:
        first = arith.extsi(i64, utils.bitcast(register(base[0]), i32))
        first = arith.muli(first, utils.c(stride, i64))
        index = arith.addi(first, arith.extsi(i64, index))
    pointer = utils.getelementptr(pointer, [index], i32)
    return utils.getelementptr(pointer, [more], i32) if more else pointer
