"""The folder in which JAX keeps compiled programs between two runs of a command."""

import os
import stat
import sys
from pathlib import Path

CACHE = "JAX_COMPILATION_CACHE_DIR"
CACHE_FROM = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"


def keep_compilations() -> None:
    """Let JAX keep what it compiles, so that the next run starts at once; unless the
    user says where, or there is no folder that is safe."""
    if "jax" in sys.modules or CACHE in os.environ:
        return
    folder = default_folder()
    if folder and is_private(folder):
        os.environ[CACHE] = folder
        os.environ.setdefault(CACHE_FROM, "0.1")


def default_folder() -> str | None:
    """``jaxalign`` in the user's cache folder; None for a user without one.

    A relative ``XDG_CACHE_HOME`` is ignored, as the XDG Base Directory Specification
    wants it.
    """
    home = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(home):
        try:
            home = str(Path.home() / ".cache")
        except (RuntimeError, KeyError):  # no HOME, and no entry of this user's number
            return None
    return os.path.join(home, "jaxalign") if os.path.isabs(home) else None


def is_private(folder: str) -> bool:
    """Whether a folder is this user's and closed to others, made so where it can be.

    A program in it is run: who may write there could have any program run. A folder
    that others could only read is closed; one that they could write to is not used,
    since it may hold their programs by now.
    """
    try:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        os.makedirs(folder, 0o700, exist_ok=True)
        state = os.stat(folder, follow_symlinks=False)
        mine = stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid()
        if not mine or state.st_mode & 0o022:
            return False
        if state.st_mode & 0o777 != 0o700:
            os.chmod(folder, 0o700)
        return os.access(folder, os.W_OK)
    except (OSError, ValueError):
        return False
