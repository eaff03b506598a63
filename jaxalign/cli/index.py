"""``jaxalign index DB``: encode a database once."""

from typing import Annotated

from cyclopts import Parameter

from jaxalign.cli.options import Fasta, IndexOptions, ScoringOptions


def index(
    database: Annotated[Fasta, Parameter(name="DB")],
    /,
    *,
    scoring: ScoringOptions = ScoringOptions(),  # noqa: B008
    options: IndexOptions = IndexOptions(),  # noqa: B008
) -> int:
    """Encode the records of DB into a file that opens in milliseconds.

    Search and all take the index in place of the FASTA file. Of the scoring options
    only the alphabet counts, and what becomes of unknown letters.

    Parameters
    ----------
    database
        FASTA, plain, gz, bz2, xz or zst; - is standard input.
    """
    from jaxalign.cli import index_job

    return index_job.run(database, scoring, options)
