"""``jaxalign dedup SEQS``: one sequence of those that are alike."""

from typing import Annotated

from cyclopts import Parameter

from jaxalign.cli.options import FILE, FLAG, Fasta, VerbOptions


def dedup(
    sequences: Annotated[Fasta, Parameter(name="SEQS")],
    /,
    *,
    min_identity: Annotated[float, Parameter(metavar="F")] = 0.9,
    out: Annotated[str | None, FILE, Parameter(alias="-o", metavar="OUT.fasta")] = None,
    list_out: Annotated[
        str | None, FILE, Parameter(name="--list", metavar="OUT.tsv")
    ] = None,
    force: Annotated[bool, FLAG] = False,
    options: VerbOptions = VerbOptions(),  # noqa: B008
) -> int:
    """Keep one sequence of those whose identity is at least --min-identity.

    Sequences are taken from the longest to the shortest. One that is linked to a
    sequence that was kept is left out, any other one is kept. So no two that stay are
    linked, and each that goes is linked to the one that stands for it.

    Parameters
    ----------
    sequences
        FASTA, plain, gz, bz2, xz or zst; - is standard input.
    min_identity
        The cut, 0 to 1.
    out
        FASTA of what stays, headings whole. [standard output]
    list_out
        Who stands for whom: name, cluster, representative, identity.
    force
        Replace existing output files.
    """
    from jaxalign.cli import link_job

    request = link_job.ClusterRequest(min_identity, "greedy", out)
    return link_job.dedup(sequences, request, list_out, force, options)
