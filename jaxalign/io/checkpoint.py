"""The state of an interrupted run, in a file beside its output.

The file has arrays, and a description of all that they depend on: who goes on with it
has to describe the same.
"""

import hashlib
import json
import os
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.io import output

SUFFIX = ".partial"
EVERY = 60.0  # seconds
ENDS = 2**20  # bytes of either end of a large file, by which it is known again
MANIFEST = "manifest"
UNREADABLE = (OSError, ValueError, KeyError, EOFError, AttributeError)

Arrays = dict[str, np.ndarray]


class Checkpoint:
    """A file of the state of a run, written about once a minute.

    Parameters
    ----------
    path : str
        Of the output; the file has this name and ``.partial``.
    manifest : dict, or a function that returns it when it is needed first
        Plain values, all that the state depends on.
    """

    def __init__(self, path: str, manifest: dict | Callable[[], dict]):
        self.path = path + SUFFIX
        self._about = manifest
        self._written = time.monotonic()
        self._seconds = 0.0  # that the last state took to write

    @cached_property
    def _manifest(self) -> str:
        values = self._about() if callable(self._about) else self._about
        return json.dumps(values, sort_keys=True)

    def load(self, resume: bool, force: bool = False) -> Arrays | None:
        """The state of an interrupted run; None where there is none.

        Raises
        ------
        UsageError
            There is one and nobody said that it should be completed, or it is of
            another run or damaged.
        """
        if not os.path.exists(self.path):
            return None
        if not resume:
            if force:
                return None
            raise UsageError(
                f"{self.path}: is of an interrupted run; use --resume to complete it, "
                "or --force to begin anew"
            )
        try:
            with open(self.path, "rb") as raw:
                file = np.load(raw, allow_pickle=False)
                arrays = {name: file[name] for name in file.files}
            manifest = str(arrays.pop(MANIFEST))
        except (*UNREADABLE, zipfile.BadZipFile) as error:
            raise UsageError(f"{self.path}: is damaged; use --force") from error
        if manifest != self._manifest:
            raise UsageError(f"{self.path}: is of another run; use --force")
        return arrays

    def save(self, arrays: Callable[[], Arrays]) -> None:
        """Write a state, if the last one is old. One that takes seconds is written as
        many times less often."""
        began = time.monotonic()
        if began - self._written < EVERY * max(self._seconds, 1.0):
            return

        def fill(temporary: str) -> None:
            _write(temporary, arrays() | {MANIFEST: np.array(self._manifest)})

        output.write_file(self.path, fill)
        self._written = time.monotonic()
        self._seconds = self._written - began

    def remove(self) -> None:
        """The run is complete."""
        with suppress(FileNotFoundError):
            os.remove(self.path)


def _write(path: str, arrays: Arrays) -> None:
    """An ``.npz`` file; ``np.savez`` takes some names for options of its own."""
    with zipfile.ZipFile(path, "w") as file:
        for name, array in arrays.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as part:
                np.lib.format.write_array(part, array, allow_pickle=False)


def about_file(path: str) -> dict:
    """A file by its name, its size, and a SHA-256 of its two ends."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read(ENDS))
        file.seek(max(size - ENDS, 0))
        digest.update(file.read(ENDS))
    name = os.path.basename(path)
    return {"name": name, "bytes": size, "ends_sha256": digest.hexdigest()}
