"""``jaxalign repertoire CELLS``: receptors within a distance of each other."""

from typing import Annotated

from cyclopts import Parameter

from jaxalign.cli.options import FILE, Fasta, RepertoireVerbOptions


def repertoire(
    receptors: Annotated[Fasta, Parameter(name="CELLS")],
    /,
    *,
    reference: Annotated[str | None, FILE, Parameter(metavar="CELLS")] = None,
    options: RepertoireVerbOptions = RepertoireVerbOptions(),  # noqa: B008
) -> int:
    """All pairs of receptors within a distance: TCRdist, Hamming, Levenshtein, NW.

    Equal receptors are compared once. An edge has the names of the first rows of both,
    and the distance; each pair stands once.

    Parameters
    ----------
    receptors
        An AIRR table (tsv with junction_aa; v_call, locus and cell_id where they are
        needed) or FASTA of CDR3, plain, gz, bz2, xz or zst; - is standard input.
    reference
        Compare with these receptors instead of with each other.
    """
    from jaxalign.cli import repertoire_job

    return repertoire_job.run(receptors, reference, options)
