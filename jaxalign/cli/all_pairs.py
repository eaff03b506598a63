"""``jaxalign all SEQS``: every pair of a set."""

from typing import Annotated

from cyclopts import Parameter

from jaxalign.cli.options import FLAG, Cluster, Fasta, FolderOptions, Options


def all_pairs(
    sequences: Annotated[Fasta, Parameter(name="SEQS")],
    /,
    *,
    include_self: Annotated[bool, FLAG] = False,
    cluster: Cluster = None,
    folder: FolderOptions = FolderOptions(),  # noqa: B008
    options: Options = Options(),  # noqa: B008
) -> int:
    """Align all pairs of the records of SEQS, each pair once.

    With -o FOLDER/ the result is a folder of parquet parts, which --resume completes
    after an interruption, and which several --shard runs may fill together.

    Parameters
    ----------
    sequences
        FASTA, plain, gz, bz2 or xz; - is standard input.
    include_self
        Also every record with itself.
    cluster
        Compute on a Ray cluster; auto is the one this machine belongs to.
    """
    from jaxalign.cli import job, parts_job

    if parts_job.wanted(options, folder):
        return parts_job.run(sequences, options, folder, include_self, cluster)
    return job.all_pairs(sequences, options, include_self, cluster)
