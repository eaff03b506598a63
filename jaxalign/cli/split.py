"""``jaxalign split SEQS``: parts without a pair at or above a cut across them."""

from typing import Annotated, Literal

from cyclopts import Parameter

from jaxalign.cli.options import (
    FILE,
    AuditOptions,
    Cold,
    Fasta,
    ListOptions,
    PairTable,
    Second,
    VerbOptions,
)
from jaxalign.errors import UsageError


def split(
    sequences: Annotated[Fasta, Parameter(name="SEQS")],
    /,
    *,
    max_identity: Annotated[float | None, Parameter(metavar="F")] = None,
    cuts: Annotated[str | None, Parameter(metavar="F,F,F")] = None,
    parts: Annotated[str | None, Parameter(metavar="train=0.8,test=0.2")] = None,
    folds: Annotated[int | None, Parameter(metavar="K")] = None,
    labels: Annotated[
        str | None, FILE, Parameter(alias="--stratify", metavar="LABELS.tsv")
    ] = None,
    unlabelled: Literal["error", "label", "remove"] = "error",
    fixed: Annotated[str | None, FILE, Parameter(metavar="PARTS.tsv")] = None,
    priority: Annotated[str | None, FILE, Parameter(metavar="TABLE.tsv")] = None,
    pairs: PairTable = None,
    cold: Cold = "both",
    second: Second = "proteins",
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
        FASTA, plain, gz, bz2, xz or zst; - is standard input.
    max_identity
        The cut, 0 to 1: a pair across parts at exactly this identity is a leak.
    cuts
        In place of --max-identity: a split at each of these cuts, by one comparison of
        all pairs. The list has a column for each, as part_0.3.
    parts
        Names of the parts and their shares, which sum to 1.
    folds
        In place of --parts: so many equal parts, fold1 and so on.
    labels
        A table of names and labels; every part gets its share of each label, and the
        shares are printed.
    unlabelled
        Sequences that the table lacks: refuse, give them a label of their own, or leave
        them out.
    fixed
        A table of names and parts, an existing split that is repaired: as few
        sequences as can be move, or with --too-large remove are moved or taken out.
        Sequences that it lacks are placed. Shares are its own, unless --parts says
        others.
    priority
        With --too-large remove: a table of names and whole numbers from 1 on, in the
        column priority or the second. What has more stays. Others have 1.
    seed
        Another seed may give another split.
    too_large
        Where a component fits into no part: refuse, let shares differ, or take out
        sequences, which the list calls removed.
    fasta
        A folder for the FASTA of each part, headings whole: train.fasta and so on.
    certificate
        Audit the split, and write what was compared and found.
    pairs
        A table of two names a row, as interactions, which are split in place of the
        sequences: the list has a row a pair. --cold says what pairs of different parts
        may share.
    cold
        both (C3): no protein of a pair is near one of another part; pairs between parts
        are removed. one (C2): a pair has a protein that no earlier part is near to, or
        with --second groups its protein is near none of any other part. none (C1): no
        pair is in two parts.
    second
        The second column of --pairs: names of sequences too, or groups, as ligands.
    """
    from jaxalign.cli import split_job

    if pairs is not None:
        from jaxalign.cli import split_job
        from jaxalign.homology.api import PairChoices

        own = (cuts, labels, fixed, priority, fasta, certificate)
        split_job.check_pairs(own, audit, max_identity, too_large, unlabelled)
        shares = split_job.shares_of(parts)
        choices = PairChoices(shares, folds, cold, second, seed)
        about = split_job.PairsRequest(pairs, cold, second)
        how = max_identity, choices, output, options
        return split_job.split_pairs(sequences, about, *how)
    if (cold, second) != ("both", "proteins"):
        raise UsageError("--cold and --second are about the table of --pairs")
    request = split_job.SplitRequest(
        cuts=split_job.cuts_of(max_identity, cuts),
        series=cuts is not None,
        parts=split_job.shares_of(parts),
        folds=folds,
        labels=labels,
        unlabelled=unlabelled,
        fixed=fixed,
        priority=priority,
        seed=seed,
        too_large=too_large,
        fasta=fasta,
        certificate=certificate,
    )
    return split_job.run(sequences, request, audit, output, options)
