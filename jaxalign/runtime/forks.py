# pyright: strict
"""Whether this process was forked after JAX had started.

``import jaxalign`` imports this file, and whoever starts the command may interrupt it
until it watches for signals: so little is imported here.
"""

import os
import sys

threads_lost: bool = (
    False  # whether JAX's threads are those of a parent, or of its parents
)


def watch_forks() -> None:
    """Have forked children know whether JAX had started; the package calls it once."""
    if hasattr(os, "register_at_fork"):  # elsewhere nobody forks
        os.register_at_fork(after_in_child=_notice)


def _notice() -> None:
    """Record in a forked child whether JAX had started before the fork.

    JAX is not imported for this, and its ``backends_are_initialized`` not called: the
    lock that it takes may have been held by a thread which is not here to release it.
    """
    global threads_lost
    bridge = sys.modules.get("jax._src.xla_bridge")
    threads_lost |= bool(getattr(bridge, "_backends", None))
