"""The straight line of ``jaxalign split``."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace

from jaxalign.cli import audit_job, link_job
from jaxalign.cli.options import AuditOptions, ListOptions, VerbOptions
from jaxalign.errors import UsageError
from jaxalign.homology import api
from jaxalign.io import fasta_records, name_table, output
from jaxalign.model.show import counted


@dataclass(frozen=True)
class SplitRequest:
    """The options of a split of its own."""

    max_identity: float
    parts: dict[str, float] | None
    folds: int | None
    labels: str | None
    seed: int
    too_large: str
    fasta: str | None
    certificate: str | None


def shares_of(text: str | None) -> dict[str, float] | None:
    """ "train=0.8,test=0.2" -> names and shares.

    Raises
    ------
    UsageError
    """
    if text is None:
        return None
    shares: dict[str, float] = {}
    for word in text.split(","):
        name, _, share = word.partition("=")
        try:
            value = float(share)
        except ValueError:
            raise UsageError(
                f"--parts {text}: names and shares are needed, as train=0.8,test=0.2"
            ) from None
        if name.strip() in shares:
            raise UsageError(f"--parts {text}: {name.strip()} comes twice")
        shares[name.strip()] = value
    return shares


def run(
    path: str,
    request: SplitRequest,
    audit: AuditOptions,
    listed: ListOptions,
    options: VerbOptions,
) -> int:
    """``jaxalign split SEQS``."""
    # 1 check and read, 2 say what will be done, 3 split, 4 write, 5 audit
    outs = (listed.out, request.certificate, audit.report)
    wanted = bool(request.certificate or audit.report or audit.plot)
    if request.certificate and listed.out is None:
        raise UsageError("--certificate is of a list in a file: -o SPLIT.tsv is needed")
    name_table.check_format(listed.out)
    beside = (request.labels,)
    link_job.check_plot(audit.plot, listed.force, (path, *beside), outs)
    job = link_job.prepare((path,), options, outs, listed.force, beside, wanted)
    cut, (data,) = request.max_identity, job.read.sequences
    definition = api.define(job.read.scoring, job.options, "--max-identity", cut)
    labels = None
    if request.labels:
        known = link_job.known_names(path, job.read)
        labels = name_table.read(request.labels, known, ("label",))
    choices = api.SplitChoices(
        request.parts, request.folds, labels, request.seed, request.too_large
    )
    shares = api.check_choices(choices, data)
    files = _files(path, request.fasta, shares, listed.force)
    job.messages.say(f"{len(data):,} sequences; linked: {definition}")
    with job.watched() as chosen:
        seen = replace(definition, options=chosen)
        result = api.split_of(data, seen, choices)
    job.messages.say(link_job.pairs_line(result.info))
    components = counted(len(set(result.groups.tolist())), "component")
    job.messages.say(f"{components}; {result.heading()}; {result.nearness()}")
    link_job.write_table(listed.out, result.columns(), options)
    for number, file in enumerate(files):
        members = result.part == number
        output.write_text(file, fasta_records.pieces(path, result.sequences, members))
    if wanted:
        where = path, listed.out, request.certificate
        audit_job.audit_split(where, job, result, audit)
    parts = {name: int((result.part == k).sum()) for k, name in enumerate(shares)}
    about = {"parts": parts, "removed": len(result.removed)}
    about |= {"components": len(set(result.groups.tolist())), "seed": request.seed}
    link_job.say_json(job, definition, result.info, about | {"audited": wanted})
    return 0


def _files(
    path: str, folder: str | None, names: Iterable[str], force: bool
) -> list[str]:
    """The FASTA of every part in a folder, which is made.

    Raises
    ------
    UsageError
        It is no folder, or a file is there.
    """
    if folder is None:
        return []
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise UsageError(f"--fasta {folder}: is no folder")
    with output.naming(folder):
        os.makedirs(folder, exist_ok=True)
    files = [os.path.join(folder, f"{name}.fasta") for name in names]
    for file in files:
        output.check(file, force)
        output.check_inputs(file, (path,))
    return files
