"""The process of the command ``jaxalign``: its streams, its signals and its end.

Little is imported here: signals are watched before the rest is imported.
"""

import os
import sys

from jaxalign.cli import signals

TYPE_CHECKING = False  # that of typing would be imported
if TYPE_CHECKING:
    from typing import NoReturn


def begin() -> None:
    """Watch for signals, and take the places of closed streams."""
    signals.watch()
    open_closed_streams()


def end(code: int) -> "NoReturn":
    """End the process with an exit code, its answers written.

    Python would take its handlers of signals back first, and an interrupt then would
    end a job that is done with a code of its own. A process that has started JAX asks
    no device for anything any more: to give its memory back takes up to a second, and
    in the dead context of a device it would log an error each, wait for ever, or abort.
    Files were closed, and what was half written removed, on the way here. Who measures
    the process is told of its end, unless JAX has failed in it.
    """
    watched = sys.gettrace() or sys.getprofile() or "ray" in sys.modules
    if watched and not (code and "jax" in sys.modules):
        sys.exit(code)
    os._exit(code)


def open_closed_streams() -> None:
    """Have the numbers of closed standard streams taken: the next file that is opened
    would have one of them, and messages of libraries would go into it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # the lowest number that is free is this one
            os.open(os.devnull, os.O_RDWR)
