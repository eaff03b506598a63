"""One XLA:CPU function for a piece of a program.

XLA:CPU runs each fusion of a loop body as a task of its own; a loop whose body is a
microsecond of work then spends most of its time between tasks. And a fusion that is
used twice is computed twice. The two frontend attributes below keep a call from being
inlined and have it compiled into a single function, loops included. They change no
value, and where they are unknown they are ignored. Measured in docs/kernels.md.
"""

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
        traced, shape = jax.make_jaxpr(
            lambda *flat: function(*jax.tree.unflatten(tree, flat)), return_shape=True
        )(*flat)
        used = {id(v) for eqn in traced.jaxpr.eqns for v in eqn.invars}
        used |= {id(v) for v in traced.jaxpr.outvars}
        kept = [id(v) in used for v in traced.jaxpr.invars]

        def narrow(*some):
            some = iter(some)
            full = [next(some) if k else None for k in kept]
            fill = [x if k else flat[n] for n, (x, k) in enumerate(zip(full, kept))]
            return function(*jax.tree.unflatten(tree, fill))

        with set_xla_metadata(inlineable="false", xla_cpu_small_call="true"):
            return jax.jit(narrow)(*(x for x, k in zip(flat, kept) if k))

    return call
