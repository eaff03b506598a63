"""``jaxalign search QUERY DB``: the best hits of every query in a database."""

from typing import Annotated

from cyclopts import Parameter

from jaxalign.cli.options import FLAG, Fasta, FolderOptions, HitOptions
from jaxalign.model.choices import Statistics, Strand


def search(
    query: Annotated[Fasta, Parameter(name="QUERY")],
    database: Annotated[Fasta, Parameter(name="DB")],
    /,
    *,
    top: Annotated[int, Parameter(metavar="N")] = 300,
    max_evalue: Annotated[float | None, Parameter(metavar="E")] = None,
    strand: Strand | None = None,
    statistics: Statistics | None = None,
    profile: Annotated[bool, FLAG] = False,
    folder: FolderOptions = FolderOptions(),  # noqa: B008
    options: HitOptions = HitOptions(),  # noqa: B008
) -> int:
    """Align every record of QUERY with every record of DB, and show the best.

    Every score is computed, none is estimated; hits are aligned again with their path.
    The mode is local unless another is asked for, and --output score leaves the paths
    out. m8 is BLAST's 12 columns. With -o FOLDER/ the result is a folder of parquet
    parts, some queries each, which --resume completes after an interruption.

    Parameters
    ----------
    query
        FASTA, plain, gz, bz2, xz or zst; - is standard input.
    database
        FASTA, read in blocks and never held whole, or what `jaxalign index` made.
    top
        Hits of a query at most, the best first.
    max_evalue
        Keep hits of at most this E-value, by published statistics, or where the
        scoring has none by fitted ones.
    strand
        Of nucleotides: which strands of the queries are aligned. The usual one is
        plus, and with the scoring of --preset blastn both.
    statistics
        Of bits and E-values: published in NCBI's table, or fitted to the scores of
        each query with a sample of DB.
    profile
        QUERY is a family of proteins: a HMMER3 model, or an alignment as a3m,
        Stockholm or FASTA. Its positions have scores of their own, and gaps the
        costs of --gap-open and --gap-extend.
    """
    from jaxalign.cli import search_job
    from jaxalign.cli.request import wants_folder

    bounds = top, max_evalue, strand, statistics, profile
    request = search_job.SearchRequest(query, database, *bounds)
    if wants_folder(options, folder):
        from jaxalign.cli import parts_job

        return parts_job.search(request, options, folder)
    return search_job.run(request, options)
