"""``jaxalign all SEQS``: every pair of a set."""

from typing import Annotated

from cyclopts import Parameter

from jaxalign.cli.options import FLAG, Fasta, Options


def all_pairs(
    sequences: Annotated[Fasta, Parameter(name="SEQS")],
    /,
    *,
    include_self: Annotated[bool, FLAG] = False,
    options: Options = Options(),  # noqa: B008
) -> int:
    """Align all pairs of the records of SEQS, each pair once.

    Parameters
    ----------
    sequences
        FASTA, plain, gz, bz2 or xz; - is standard input.
    include_self
        Also every record with itself.
    """
    from jaxalign.cli import job

    return job.all_pairs(sequences, options, include_self)
