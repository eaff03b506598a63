"""``jaxalign cluster SEQS``: clusters of sequences that are alike."""

from typing import Annotated, Literal

from cyclopts import Parameter

from jaxalign.cli.options import FILE, Fasta, ListOptions, Plot, VerbOptions


def cluster(
    sequences: Annotated[Fasta, Parameter(name="SEQS")],
    /,
    *,
    min_identity: Annotated[float, Parameter(metavar="F")],
    method: Literal["components", "greedy", "complete", "average"] = "components",
    representatives: Annotated[str | None, FILE, Parameter(metavar="OUT.fasta")] = None,
    plot: Plot = None,
    output: ListOptions = ListOptions(),  # noqa: B008
    options: VerbOptions = VerbOptions(),  # noqa: B008
) -> int:
    """Cluster the records of SEQS by exact identities.

    Two sequences are linked where their identity is at least --min-identity. The list
    has a row a sequence: its name, cluster and representative.

    Parameters
    ----------
    sequences
        FASTA, plain, gz, bz2, xz or zst; - is standard input.
    min_identity
        The cut, 0 to 1.
    method
        components: connected by links. greedy: longest first, each joins the first
        representative that it is linked to, as CD-HIT means it. complete: all pairs of
        a cluster are linked. average: UPGMA.
    representatives
        FASTA of one sequence a cluster.
    plot
        The sizes of clusters as bars, png, svg or pdf. Needs jaxalign[plot].
    """
    from jaxalign.cli import link_job

    request = link_job.ClusterRequest(min_identity, method, representatives, plot)
    return link_job.cluster(sequences, request, output, options)
