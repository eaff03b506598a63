"""One XLA:CPU function for a piece of a program.

XLA:CPU runs each fusion of a loop body as a task of its own; a loop whose body is a
microsecond of work then spends most of its time between tasks. And a fusion that is
used twice is computed twice. The two frontend attributes below keep a call from being
inlined and have it compiled into a single function, loops included. They change no
value, and where they are unknown they are ignored. Measured in docs/kernels.md.
"""

from itertools import compress

import jax
from jax.experimental.xla_metadata import set_xla_metadata

# Wide vectors pay for this kernel: integer max and add do not lower the clock.
CPU_OPTIONS = {"xla_cpu_prefer_vector_width": 512}


def one_function(function, enabled: bool = True):
    """``function`` of arrays (any pytrees) as a single compiled call on the CPU.

    Inside it use ``lax`` operations: a nested ``jit`` (``jnp.where`` is one) would
    become a call of its own, and slow.
    """
    if not enabled:
        return function

    def call(*args):
        # A parameter the function does not use stops XLA:CPU, so drop those first.
        flat, tree = jax.tree.flatten(args)

        def flattened(*flat):
            return function(*jax.tree.unflatten(tree, flat))

        jaxpr = jax.make_jaxpr(flattened)(*flat).jaxpr
        used = {id(v) for eqn in jaxpr.eqns for v in eqn.invars}
        used |= {id(v) for v in jaxpr.outvars}
        kept = [id(v) in used for v in jaxpr.invars]

        def narrow(*some):
            some = iter(some)
            pairs = zip(kept, flat, strict=True)
            return flattened(*(next(some) if k else x for k, x in pairs))

        with set_xla_metadata(inlineable="false", xla_cpu_small_call="true"):
            return jax.jit(narrow)(*compress(flat, kept))

    return call
