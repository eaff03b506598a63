"""``jaxalign all SEQS``: every pair of a set."""

from typing import Annotated

from cyclopts import Parameter

from jaxalign.cli.options import (
    FLAG,
    Cluster,
    Fasta,
    FolderOptions,
    Options,
    Pictures,
    Plot,
)
from jaxalign.errors import UsageError


def all_pairs(
    sequences: Annotated[Fasta, Parameter(name="SEQS")],
    /,
    *,
    include_self: Annotated[bool, FLAG] = False,
    cluster: Cluster = None,
    plot: Plot = None,
    dendrogram: Plot = None,
    folder: FolderOptions = FolderOptions(),  # noqa: B008
    options: Options = Options(),  # noqa: B008
) -> int:
    """Align all pairs of the records of SEQS, each pair once.

    With -o FOLDER/ the result is a folder of parquet parts, which --resume completes
    after an interruption, and which several --shard runs may fill together.

    Parameters
    ----------
    sequences
        FASTA, plain, gz, bz2, xz or zst; - is standard input.
    include_self
        Also every record with itself.
    cluster
        Compute on a Ray cluster; auto is the one this machine belongs to.
    plot
        Histogram of the identities; the suffix, png, svg or pdf, is the format. Needs
        jaxalign[plot].
    dendrogram
        Tree of the set by 1 - identity and average linkage (UPGMA).
    """
    from jaxalign.cli import job, parts_job
    from jaxalign.cli.request import wants_folder

    pictures = Pictures(plot, dendrogram) if plot or dendrogram else None
    if wants_folder(options, folder):
        if pictures:
            raise UsageError("a picture is of a result in one piece, not of a folder")
        return parts_job.all_pairs(sequences, options, folder, include_self, cluster)
    which = include_self, cluster, pictures
    return job.all_pairs(sequences, options, *which, parts_job.one_file)
