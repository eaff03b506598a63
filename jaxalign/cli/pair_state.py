"""``jaxalign align --resume``: the state of very large pairs, beside the output."""

import os
from dataclasses import replace

from jaxalign.cli import report
from jaxalign.cli.inputs import Inputs
from jaxalign.cli.request import Request
from jaxalign.errors import UsageError
from jaxalign.io import output
from jaxalign.io.checkpoint import Checkpoint
from jaxalign.io.source import STDIN, sha256
from jaxalign.model.choices import Strand
from jaxalign.pairs.api import SavedState


def check(out: str | None, paths: tuple[str, ...]) -> None:
    """Refuse to go on with what cannot be, before any work is done.

    Raises
    ------
    UsageError
    """
    if out in (None, output.STDOUT) or STDIN in paths:
        raise UsageError("--resume needs -o FILE, and inputs that can be read again")


def checkpoint(
    request: Request, read: Inputs, strand: Strand | None
) -> Checkpoint | None:
    """The file of the state of a run; None where it has none."""
    out = request.out
    if out in (None, output.STDOUT) or not all(map(os.path.isfile, read.paths)):
        return None

    def manifest() -> dict:
        """All that the rows depend on; digests of files are read when they are needed,
        which is in few runs."""
        hashed = replace(read, hashes=tuple(map(sha256, read.paths)))
        return {
            "inputs": report.files(hashed),
            "scoring": report.scoring(request.scoring)
            | {"scores_sha256": report.digest(request.scoring.scores)},
            "mode": request.options.mode,
            "free_ends": report.free_ends(request),
            "output": request.options.output,
            "filters": request.filters,
            "strand": strand,
            "jaxalign": report.versions()["jaxalign"],
        }

    return Checkpoint(str(out), manifest)


def state_of(saved: Checkpoint | None, resume: bool, force: bool) -> SavedState | None:
    """The state of a run that was interrupted, or of one that begins.

    Raises
    ------
    UsageError
        See ``Checkpoint.load``.
    """
    if saved is None:
        return None
    return SavedState(saved.load(resume, force) or {}, saved.save)
