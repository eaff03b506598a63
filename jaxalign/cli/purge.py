"""``jaxalign purge TRAIN --against TEST``: a training set without what is near."""

from typing import Annotated

from cyclopts import Parameter

from jaxalign.cli.options import FILE, FLAG, CorpusRunOptions, Fasta, VerbOptions


def purge(
    train: Annotated[Fasta, Parameter(name="TRAIN")],
    /,
    *,
    against: Annotated[str, FILE, Parameter(metavar="TEST")],
    max_identity: Annotated[float | None, Parameter(metavar="F")] = None,
    score: Annotated[float | None, Parameter(metavar="S")] = None,
    max_evalue: Annotated[float | None, Parameter(metavar="E")] = None,
    min_cov: Annotated[float | None, Parameter(metavar="F")] = None,
    out: Annotated[str | None, FILE, Parameter(alias="-o", metavar="OUT.fasta")] = None,
    removed: Annotated[str | None, FILE, Parameter(metavar="OUT.tsv")] = None,
    certificate: Annotated[str | None, FILE, Parameter(metavar="OUT.json")] = None,
    force: Annotated[bool, FLAG] = False,
    run: CorpusRunOptions = CorpusRunOptions(),  # noqa: B008
    options: VerbOptions = VerbOptions(),  # noqa: B008
) -> int:
    """Take out of TRAIN each sequence that is near to any sequence of TEST.

    Every pair is compared, exactly: none that stays is at the cut or beyond. The cut is
    one of --max-identity, --score and --max-evalue.

    Parameters
    ----------
    train
        FASTA, what `jaxalign index` made, or a folder of such files; read in blocks,
        never held whole.
    against
        FASTA of the test sequences; - is standard input.
    max_identity
        The cut, 0 to 1: a sequence goes that has this identity or more.
    score
        In place of it: the best local alignment has this score or more.
    max_evalue
        Or it has this E-value or less, in a search of all TRAIN.
    min_cov
        Only alignments count with at least this share of both sequences, in mode local
        or with free ends.
    out
        FASTA of what stays, headings whole. [standard output, unless --json takes it]
    removed
        Who goes: name, the nearest test sequence, identity, score or E-value.
    certificate
        Audit what stays against TEST, and write what was compared and found; jaxalign
        audit --certificate verifies it. Of a cut by --max-identity.
    force
        Replace existing output files.
    """
    from jaxalign.cli import corpus_job

    cuts = max_identity, score, max_evalue, min_cov
    request = corpus_job.PurgeRequest(
        train, against, *cuts, out, removed, certificate, force
    )
    return corpus_job.purge(request, run, options)
