"""A GPU starts before a command knows all of its options.

NVIDIA's driver, JAX and its plugin take two to four seconds, which is most of many a
job, and wait for files and for each other. They start in a thread while the verbs are
imported and files are read. Only where a GPU will be used: large files, and nothing
said against it.
"""

import os
import threading
from contextlib import suppress

VERBOSE = {"-v", "--verbose"}
XLA_LOG, FATAL = "TF_CPP_MIN_LOG_LEVEL", "3"
PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
NVIDIA, DRIVER = "/proc/driver/nvidia", "libcuda.so.1"
VERBS = {"all", "search", "cluster", "dedup", "split", "audit"}
AGAINST = {"cpu", "rows", "sweep", "wavefront", "--help", "-h", "--plan"}
LEAST_BYTES = 2**20  # of a file with which a job is none by rows


def start(words: list[str]) -> None:
    """Begin to start what a command is likely to need."""
    if seems_large(words) and os.path.exists(NVIDIA):
        set_environment(words)
        threading.Thread(target=_start, daemon=True).start()


def seems_large(words: list[str]) -> bool:
    """Whether a command has files so large that it is a job for a GPU, if any."""
    said = {part for word in words for part in word.split("=")}
    if not words or words[0] not in VERBS or said & AGAINST:
        return False
    sizes = (os.path.getsize(word) for word in words if os.path.isfile(word))
    return max(sizes, default=0) >= LEAST_BYTES


def set_environment(words: list[str]) -> None:
    """Set what JAX reads when it starts, unless the user has.

    XLA says what ends the process and nothing else, unless asked for more: its errors
    reach the user as one line, where a failed device would log hundreds. Memory of a
    GPU is taken as it is needed: to reserve most of it takes two seconds.
    """
    os.environ.setdefault(PREALLOCATE, "false")
    if not VERBOSE & set(words):
        os.environ.setdefault(XLA_LOG, FATAL)


def _start() -> None:
    # What fails here fails again where it is needed.
    with suppress(Exception):
        import ctypes  # which others need not import

        ctypes.CDLL(DRIVER).cuInit(0)  # without Python's lock
    with suppress(Exception):
        from jaxalign.pairs.api import start_jax

        start_jax()
