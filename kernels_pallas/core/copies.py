"""Copies of a table from global to shared memory, in the way that a target has."""

from typing import Any

import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.mosaic import THREADS, Threads
from kernels_pallas.core.target import Target

COPY_WORDS = 256  # of a row of a table: the limit of one bulk copy
WORDS_A_TURN = 4


def copy_scratch(target: Target) -> list:
    """Scratch memory, beside the table, of a program that copies: a barrier or none."""
    return [plgpu.Barrier()] if target.bulk_copies else []


def copy_table(
    th: Threads,
    source: Any,
    which: Any,
    table: Any,
    barrier: Any,
    warpgroup: Any = None,
) -> None:
    """Copy table ``which`` of the tables ``source`` to shared memory, for all threads
    of the program, after which all of them may read it.

    Parameters
    ----------
    source : int32 (tables, rows, COPY_WORDS)
    which : int32 ()
    table : int32 (rows, COPY_WORDS), in shared memory
    barrier : that of ``copy_scratch``, or nothing
    warpgroup : int32 (), of several; the first one copies
    """

    def copy():
        if barrier:
            plgpu.copy_gmem_to_smem(source.at[which], table, *barrier)
        else:
            _copy_by_threads(th, source, which, table)

    if warpgroup is None:
        copy()
    else:
        pl.when(warpgroup == 0)(copy)
    if barrier:
        plgpu.barrier_wait(*barrier)
    else:
        th.wait()


def _copy_by_threads(th: Threads, source: Any, which: Any, table: Any) -> None:
    size, source, thread = table.size, th.read_only(source), th.index()
    which = jnp.asarray(which, jnp.int32)
    for first in range(0, size, WORDS_A_TURN * THREADS):
        at = WORDS_A_TURN * thread
        inside = (at + first < size).astype(jnp.int32)
        at = jnp.where(inside != 0, at, 0)
        words = th.load(source, at, WORDS_A_TURN, which, size, first)
        th.store(table, at, words, where=inside, more=first)
