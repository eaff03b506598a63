"""Rates of the card: bytes a second of a copy, min-max instructions a second."""

import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from kernels_pallas.core.mosaic import THREADS, Threads, kernel

CHAINS, UNROLLED, LOOPS, PROGRAMS = 8, 16, 512, 132 * 16


def timed(run, *arguments, repeats: int = 5) -> float:
    """Median seconds of a call and all its device work; a first call is not counted."""
    jax.block_until_ready(run(*arguments))
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        jax.block_until_ready(run(*arguments))
        seconds.append(time.perf_counter() - begin)
    return float(np.median(seconds))


def copy_rate() -> float:
    """Bytes read and written a second, copying 1 GiB."""
    x = jnp.arange(2**28, dtype=jnp.int32)
    return 2 * x.nbytes / timed(jax.jit(lambda x: x + 1), x)


def min_max_rate() -> float:
    """``max(a + b, c)`` on pairs of int16 a second: one instruction a thread each."""
    chains = min_max_kernel()
    seconds = timed(jax.jit(chains), jnp.array([3, -5], jnp.int32))
    work = PROGRAMS * THREADS * CHAINS * UNROLLED * LOOPS
    return work / seconds


def min_max_kernel(interpret=None):
    """A kernel of independent chains of min-max instructions, and nothing else."""
    out = jax.ShapeDtypeStruct((PROGRAMS * THREADS,), jnp.int32)
    body = partial(_chains, plain=interpret is not None)
    return kernel(body, [out], [], (PROGRAMS,), ("program",), interpret)


def _chains(numbers, out, *, plain):
    th = Threads(plain)
    program = jax.lax.axis_index("program")
    a, b = (th.halves(th.splat(numbers[k] * 65537)) for k in range(2))
    start = tuple(th.halves(th.index() * (k + 1) + numbers[0]) for k in range(CHAINS))

    def loop(_, values):
        for _ in range(UNROLLED):
            values = tuple(jnp.maximum(x + a, b) for x in values)
        return values

    values = jax.lax.fori_loop(jnp.int32(0), jnp.int32(LOOPS), loop, start)
    total = th.splat(0)
    for value in values:
        total = total ^ th.words(value)
    th.store(out, th.index(), (total,), program, THREADS)
