"""``jaxalign align A B``: pairs of two files."""

from jaxalign.cli.options import Fasta, Options


def align(a: Fasta, b: Fasta, /, *, options: Options = Options()) -> int:  # noqa: B008
    """Align the records of A with those of B: first with first, second with second.

    Where one file has a single record, it is aligned with every record of the other.

    Parameters
    ----------
    a
        Queries: FASTA, plain, gz, bz2 or xz; - is standard input.
    b
        Targets.
    """
    from jaxalign.cli import job

    return job.pairs(a, b, options)
