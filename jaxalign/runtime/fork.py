# pyright: strict
"""Calls that need JAX, in a process that was forked after JAX had started.

JAX computes in threads, and a forked child has only the thread that forked: what it
asks of JAX waits for ever. Such a call is refused. The fork itself, and children that
ask nothing of JAX, are left alone; so are children forked before JAX starts.
"""

import os
import sys

from jaxalign.errors import DeviceError

_threads_lost = False  # in this process, or in one that it descends from


def watch() -> None:
    """From now on, notice forks that leave JAX's threads behind."""
    if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
        os.register_at_fork(after_in_child=_notice)


def refuse_without_threads() -> None:
    """Refuse what would wait for JAX's threads in a process that has none.

    Raises
    ------
    DeviceError
        The process was forked after JAX had started.
    """
    if _threads_lost:
        raise DeviceError(
            "this process was forked after JAX had started, and JAX's threads do not "
            "live on in a forked child: this call would wait for ever. Start workers "
            'with multiprocessing.get_context("spawn") or "forkserver", or fork before '
            "the first call that uses JAX"
        )


def _notice() -> None:
    """In a new child: had JAX started, whoever started it?

    JAX is not imported for this, and its ``backends_are_initialized`` not called: the
    lock that it takes may have been held by a thread which is not here to release it.
    """
    global _threads_lost
    bridge = sys.modules.get("jax._src.xla_bridge")
    _threads_lost |= bool(getattr(bridge, "_backends", None))
