"""The 64-bit mode of JAX, for some computations only."""

from contextlib import nullcontext

import jax


def precision(dtype: str):
    """int64 needs JAX's 64-bit mode, for this computation only."""
    return jax.enable_x64(True) if dtype == "int64" else nullcontext()
