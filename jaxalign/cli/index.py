"""``jaxalign index DB``: encode a database once."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Group, Parameter

from jaxalign.cli.options import FILE, FLAG, Fasta, ScoringOptions


@Parameter(name="*", group=Group("Output", sort_key=3))
@dataclass(frozen=True)
class IndexOptions:
    """Where the index goes."""

    out: Annotated[str | None, FILE, Parameter(alias="-o", metavar="OUT")] = None
    """The index. [DB.jaxdb]"""

    force: Annotated[bool, FLAG] = False
    """Replace an existing file."""

    verify: Annotated[bool, FLAG] = False
    """Read an index, DB, and compare its checksums; write nothing."""

    quiet: Annotated[bool, FLAG, Parameter(alias="-q")] = False
    """Only warnings and errors."""

    verbose: Annotated[bool, FLAG, Parameter(alias="-v")] = False
    """A traceback with an error."""


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
        FASTA, plain, gz, bz2 or xz; - is standard input.
    """
    from jaxalign.cli import index_job

    return index_job.run(database, scoring, options)
