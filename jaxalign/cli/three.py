"""``jaxalign three ABC``: three sequences at once."""

from typing import Annotated

from cyclopts import Parameter

from jaxalign.cli.options import Fasta, ThreeOptions


def three(
    sequences: Annotated[Fasta, Parameter(name="ABC")],
    /,
    *,
    options: ThreeOptions = ThreeOptions(),  # noqa: B008
) -> int:
    """Align the three records of ABC with each other, exactly.

    Parameters
    ----------
    sequences
        FASTA with three records, plain, gz, bz2, xz or zst; - is standard input.
    """
    from jaxalign.cli import three_job

    return three_job.run(sequences, options)
