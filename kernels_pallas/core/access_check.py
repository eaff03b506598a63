"""Proof that kernels stay inside their arrays, in the interpreter.

The twins of loads and stores read nothing and drop what they store where an index lies
outside, as a GPU does not: there such an index meets memory of somebody else, which
JAX's pool of memory hides. So each twin checks its indices here and lists the wrong
ones for the test that ran the kernel.
"""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

OUTSIDE = []  # a sentence for each access that left its array
_TWIN_FILES = {Path(__file__).name, "mosaic.py", "reals.py", "exchange.py", "values.py"}


def check_access(
    size: int, first: jax.Array, count: int = 1, where: jax.Array | None = None
):
    """List a load or store of words ``first`` to ``first + count - 1`` a thread that
    leaves an array of ``size`` words, or is not aligned to a vector of ``count``.

    Parameters
    ----------
    first : int32 (threads,)
    where : int32 (threads,), optional
        0 in threads that are masked, which neither load nor store.
    """
    wrong = (first < 0) | (first > size - count) | (first % count != 0)
    if where is not None:
        wrong = wrong & (where != 0)
    tell = partial(jax.debug.callback, partial(_list, _caller(), size, count))
    lax.cond(jnp.any(wrong), tell, lambda *_: None, first, wrong)


def _list(place: str, size: int, count: int, first: jax.Array, wrong: Any):
    (threads,) = wrong.nonzero()
    start = int(first[threads[0]])
    OUTSIDE.append(
        f"{place}: words {start} to {start + count - 1} of {size}, "
        f"thread {threads[0]} and {len(threads) - 1} others"
    )


def _caller() -> str:
    """File, line and function of the kernel that loads or stores."""
    frame = sys._getframe(1)
    while frame.f_back and Path(frame.f_code.co_filename).name in _TWIN_FILES:
        frame = frame.f_back
    code = frame.f_code
    return f"{Path(code.co_filename).name}:{frame.f_lineno} {code.co_name}"
