"""``jaxalign audit TRAIN TEST``: check anybody's split, every pair across."""

from typing import Annotated

from cyclopts import Parameter

from jaxalign.cli.options import (
    FILE,
    FLAG,
    AuditOptions,
    Cold,
    Fasta,
    PairTable,
    Second,
    VerbOptions,
)
from jaxalign.errors import UsageError


def audit(
    *parts: Annotated[Fasta, Parameter(name="PARTS")],
    max_identity: Annotated[float | None, Parameter(metavar="F")] = None,
    split: Annotated[str | None, FILE, Parameter(metavar="SPLIT.tsv")] = None,
    pairs: PairTable = None,
    cold: Cold = "both",
    second: Second = "proteins",
    column: Annotated[str | None, Parameter(metavar="NAME")] = None,
    certificate: Annotated[str | None, FILE, Parameter(metavar="FILE.json")] = None,
    out: Annotated[str | None, FILE, Parameter(alias="-o", metavar="OUT.json")] = None,
    partial: Annotated[bool, FLAG] = False,
    force: Annotated[bool, FLAG] = False,
    audit: AuditOptions = AuditOptions(),  # noqa: B008
    options: VerbOptions = VerbOptions(),  # noqa: B008
) -> int:
    """Compare every pair of sequences of different PARTS, exactly.

    The exit code is 0 where no pair is at --max-identity or above, 6 where one is, and
    7 where a certificate is not what it says. Every record is compared, unless
    --partial allows to leave some out. The worst pairs are printed with their
    alignments; they are exact below the cut too. With --json the certificate is
    printed in their place.

    Parameters
    ----------
    parts
        FASTA of each part, two or more; with --split one file that holds all.
    max_identity
        The cut, 0 to 1: a pair at exactly this identity is a leak.
    split
        A table of names and parts, as jaxalign split and GraphPart write it. It has to
        put every sequence into a part.
    pairs
        A table of two names and a part a row, as split --pairs writes it: its rule is
        checked, of --cold, in one file of sequences.
    cold
        What pairs of different parts may share, as of split.
    second
        The second column of --pairs: names of sequences too, or groups, as ligands.
    column
        The column of the table that has the parts, as part_0.3 of split --cuts.
    certificate
        Verify a certificate: do its audit again and compare. PARTS are the files that
        it names, unless others are given.
    out
        Write a certificate of this audit.
    partial
        Leave out sequences that the table calls removed, or does not have: the messages
        and the certificate say how many.
    force
        Replace existing output files.
    """
    from jaxalign.cli import audit_job

    if pairs is not None:
        from jaxalign.cli import split_job

        if split or certificate or out or partial or column:
            raise UsageError("--pairs goes with --cold, --second and --max-identity")
        about = split_job.PairsRequest(pairs, cold, second)
        return split_job.audit_pairs(parts, about, max_identity, options)
    request = audit_job.AuditRequest(
        parts,
        max_identity,
        split=split,
        out=out,
        partial=partial,
        force=force,
        column=column,
    )
    if certificate is not None:
        from jaxalign.cli import audit_job

        return audit_job.verify(certificate, request, audit, options)
    return audit_job.run(request, audit, options)
