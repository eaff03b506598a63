"""``jaxalign split SEQS``: parts without a pair at or above a cut across them."""

from typing import Annotated, Literal

from cyclopts import Parameter

from jaxalign.cli.options import FILE, AuditOptions, Fasta, ListOptions, VerbOptions


def split(
    sequences: Annotated[Fasta, Parameter(name="SEQS")],
    /,
    *,
    max_identity: Annotated[float, Parameter(metavar="F")],
    parts: Annotated[str | None, Parameter(metavar="train=0.8,test=0.2")] = None,
    folds: Annotated[int | None, Parameter(metavar="K")] = None,
    labels: Annotated[str | None, FILE, Parameter(metavar="LABELS.tsv")] = None,
    seed: int = 0,
    too_large: Literal["error", "keep", "remove"] = "error",
    fasta: Annotated[str | None, Parameter(metavar="FOLDER")] = None,
    certificate: Annotated[str | None, FILE, Parameter(metavar="OUT.json")] = None,
    audit: AuditOptions = AuditOptions(),  # noqa: B008
    output: ListOptions = ListOptions(),  # noqa: B008
    options: VerbOptions = VerbOptions(),  # noqa: B008
) -> int:
    """Split the records of SEQS so that no two of different parts are alike.

    Alike are two whose identity is --max-identity or more. Sequences that are connected
    by such pairs stay together. The list has a row a sequence: its name, part and
    component.

    Parameters
    ----------
    sequences
        FASTA, plain, gz, bz2 or xz; - is standard input.
    max_identity
        The cut, 0 to 1: a pair across parts at exactly this identity is a leak.
    parts
        Names of the parts and their shares, which sum to 1.
    folds
        In place of --parts: so many equal parts, fold1 and so on.
    labels
        A table of names and labels; every part gets its share of each label.
    seed
        Another seed may give another split.
    too_large
        Where a component fits into no part: refuse, let shares differ, or take out
        sequences, which the list calls removed.
    fasta
        A folder for the FASTA of each part, headings whole: train.fasta and so on.
    certificate
        Audit the split, and write what was compared and found.
    """
    from jaxalign.cli import split_job

    request = split_job.SplitRequest(
        max_identity=max_identity,
        parts=split_job.shares_of(parts),
        folds=folds,
        labels=labels,
        seed=seed,
        too_large=too_large,
        fasta=fasta,
        certificate=certificate,
    )
    return split_job.run(sequences, request, audit, output, options)
