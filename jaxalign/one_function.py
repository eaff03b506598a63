"""One XLA:CPU function for a piece of a program.

XLA:CPU runs each fusion of a loop body as a task of its own; a loop whose body is a
microsecond of work then spends most of its time between tasks. And a fusion that is
used twice is computed twice. The two frontend attributes below keep a call from being
inlined and have it compiled into a single function, loops included. They change no
value, and where they are unknown they are ignored (docs/logs/cpu-sweep.md).
"""

from collections.abc import Callable
from itertools import compress
from typing import Any

import jax
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import jaxpr_as_fun

# Wide vectors pay for this kernel: integer max and add do not lower the clock.
CPU_OPTIONS = {"xla_cpu_prefer_vector_width": 512}


def one_function(function: Callable, enabled: bool = True) -> Callable:
    """``function`` of arrays (any pytrees) as a single compiled call on the CPU.

    Inside it use ``lax`` operations: a nested ``jit`` (``jnp.where`` is one) would
    become a call of its own, and slow. It is traced once for arguments that are alike,
    so call the same one again where you can.
    """
    if not enabled:
        return function
    traced = {}

    def call(*args: Any):
        flat, tree = jax.tree.flatten(args)
        key = tree, tuple(map(jax.typeof, flat))
        if key not in traced:
            traced[key] = _traced(function, flat, tree)
        narrow, is_used = traced[key]
        with set_xla_metadata(inlineable="false", xla_cpu_small_call="true"):
            return narrow(*compress(flat, is_used))

    return call


def _traced(function: Callable, flat: list, tree: Any):
    """A ``jit`` of the arguments that are used, and which these are: with another
    parameter XLA:CPU would stop."""

    def flattened(*flat: Any):
        return function(*jax.tree.unflatten(tree, flat))

    closed, shape = jax.make_jaxpr(flattened, return_shape=True)(*flat)
    jaxpr, out = closed.jaxpr, jax.tree.structure(shape)
    used = {id(v) for eqn in jaxpr.eqns for v in eqn.invars}
    used |= {id(v) for v in jaxpr.outvars}
    is_used = [id(v) in used for v in jaxpr.invars]

    def narrow(*arrays: Any):
        remaining = iter(arrays)
        args = [next(remaining) if k else None for k in is_used]
        return jax.tree.unflatten(out, jaxpr_as_fun(closed)(*args))

    return jax.jit(narrow), is_used
