"""``jaxalign align A B``: pairs of two files."""

from typing import Annotated

from cyclopts import Parameter

from jaxalign.cli.options import FILE, FLAG, LONG, Fasta, Options, Pictures, Plot
from jaxalign.errors import UsageError
from jaxalign.model.choices import Strand


def align(
    a: Fasta,
    b: Fasta,
    /,
    *,
    embeddings: Annotated[bool, FLAG] = False,
    sequences: Annotated[str | None, FILE] = None,
    plot: Plot = None,
    profile: Annotated[bool, FLAG] = False,
    strand: Strand | None = None,
    resume: Annotated[bool, FLAG, Parameter(group=LONG)] = False,
    options: Options = Options(),  # noqa: B008
) -> int:
    """Align the records of A with those of B: first with first, second with second.

    Where one file has a single record, it is aligned with every record of the other.

    Parameters
    ----------
    a
        Queries: FASTA, plain, gz, bz2, xz or zst; - is standard input.
    b
        Targets.
    embeddings
        A and B are npz files with an array (residues, k) for each name; a pair of
        residues scores the product of their vectors. Writes a tsv with CIGAR and
        partners; needs --gap-open and --gap-extend.
    sequences
        FASTA of proteins with every name of both npz files, for the formats of -o and
        --format that have letters.
    plot
        Dot plot of a single pair with its path; the suffix, png, svg or pdf, is the
        format. Computes paths. Needs jaxalign[plot].
    profile
        A is a family of proteins: a HMMER3 model, or an alignment as a3m, Stockholm
        or FASTA. Its positions have scores of their own, and gaps the costs of
        --gap-open and --gap-extend.
    strand
        Of nucleotides: which strand of the queries is aligned, or of both the one that
        scores more. The usual one is plus.
    resume
        Complete an interrupted run: the state of very large pairs is in a file beside
        -o.
    """
    if profile and embeddings:
        raise UsageError("--profile and --embeddings: A is either")
    if sequences is not None and not embeddings:
        raise UsageError("--sequences goes with --embeddings")
    if embeddings:
        if plot:
            raise UsageError("--plot is of letters, not of --embeddings")
        if strand is not None:
            raise UsageError("--strand is of nucleotides, not of --embeddings")
        if resume:
            raise UsageError("--resume is of letters, not of --embeddings")
        from jaxalign.cli import embeddings_job

        return embeddings_job.align(a, b, options, sequences)
    from jaxalign.cli import job

    drawn = Pictures(dot_plot=plot) if plot else None
    return job.pairs(a, b, options, drawn, profile, strand, resume)
