"""``--resume`` and ``--shard`` of verbs that read a corpus block by block."""

import os
from dataclasses import asdict
from typing import TYPE_CHECKING

from jaxalign.cli import report
from jaxalign.cli.link_job import LinkJob
from jaxalign.cli.options import CorpusRunOptions
from jaxalign.cli.parts_job import shard_of
from jaxalign.errors import UsageError
from jaxalign.io import output
from jaxalign.io.checkpoint import Checkpoint, about_file
from jaxalign.io.source import STDIN

if TYPE_CHECKING:
    from jaxalign.database.nearest import NearestOptions
    from jaxalign.homology.purge import PurgeOptions

FREE = ("implementation", "memory_budget", "threads", "devices", "progress")


def check(run: CorpusRunOptions, out: str | None, corpus: str) -> None:
    """Refuse what cannot be, before any work is done.

    Raises
    ------
    UsageError
    """
    shard_of(run.shard)
    if run.resume and (out in (None, output.STDOUT) or corpus == STDIN):
        raise UsageError("--resume needs -o FILE, and a corpus that can be read again")


def checkpoint(
    job: LinkJob,
    run: CorpusRunOptions,
    chosen: "NearestOptions | PurgeOptions",
    files: tuple[str, ...],
    out: str | None,
) -> Checkpoint | None:
    """The file of the state of a run; None where it has none.

    chosen : options of the scan
    """
    if out in (None, output.STDOUT) or files == (STDIN,) or not _plain(files):
        return None
    options = {name: x for name, x in asdict(chosen).items() if name not in FREE}
    manifest = {
        "inputs": report.files(job.read),
        "corpus": [about_file(path) for path in files],
        "scoring": report.scoring(job.read.scoring)
        | {"scores_sha256": report.digest(job.read.scoring.scores)},
        "options": {name: repr(x) for name, x in options.items()},
        "shard": run.shard,
        "jaxalign": report.versions()["jaxalign"],
    }
    return Checkpoint(str(out), manifest)


def _plain(files: tuple[str, ...]) -> bool:
    """Whether all are files, and no pipes."""
    return all(map(os.path.isfile, files))


def share(count: int, run: CorpusRunOptions) -> tuple[int, int]:
    """The first of some rows, and one beyond the last, of a share."""
    shard = shard_of(run.shard)
    if shard is None:
        return 0, count
    k, n = shard
    return count * (k - 1) // n, count * k // n
