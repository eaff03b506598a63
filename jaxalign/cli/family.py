"""``jaxalign family QUERY DB``: the relatives of a protein, aligned to it."""

from typing import Annotated

from cyclopts import Parameter

from jaxalign.cli.options import FamilyVerbOptions, Fasta


def family(
    query: Annotated[Fasta, Parameter(name="QUERY")],
    database: Annotated[Fasta, Parameter(name="DB")],
    /,
    *,
    options: FamilyVerbOptions = FamilyVerbOptions(),  # noqa: B008
) -> int:
    """Find the relatives of QUERY in DB by iterated search, and align them to it.

    The first pass searches by the sequence, the next ones by a profile of the hits,
    until no hit is new. Every score is computed, nothing is prefiltered. The a3m is
    what AlphaFold 3, Boltz and ColabFold read. Without relatives it has one sequence.

    Parameters
    ----------
    query
        FASTA of proteins, plain, gz, bz2, xz or zst; - is standard input. Of several
        records the output is a folder, with a file for each.
    database
        FASTA, read in blocks and never held whole, or what `jaxalign index` made.
    """
    from jaxalign.cli import family_job

    return family_job.run(query, database, options)
