"""The straight line of ``jaxalign audit``, and of the audit of a new split."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from jaxalign.cli import audited_parts, link_job
from jaxalign.cli.audited_parts import AuditedParts
from jaxalign.cli.options import AuditOptions, VerbOptions
from jaxalign.errors import LeakError, UsageError
from jaxalign.homology import api
from jaxalign.homology.api import Audit, define
from jaxalign.io import output
from jaxalign.model.numbers import check_whole

LEAK = LeakError.exit_code


@dataclass(frozen=True)
class AuditRequest:
    """The options of an audit of its own."""

    parts: tuple[str, ...]
    max_identity: float | None
    split: str | None
    out: str | None
    partial: bool
    force: bool


def run(asked: AuditRequest, audit: AuditOptions, options: VerbOptions) -> int:
    """``jaxalign audit PARTS``; 0, or 6 for a leak."""
    # 1 check and read, 2 parts, 3 compare, 4 say and write
    check_whole("--worst", audit.worst)
    _check(asked)
    job = prepare(asked, audit, options, ())
    cut, scoring = asked.max_identity, job.read.scoring
    chosen = wanted(job.options, audit)
    definition = define(scoring, chosen, "--max-identity", cut)
    parts = audited_parts.read(asked.parts, asked.split, job, asked.partial)
    found = compare(job, parts, definition)
    files = audited_parts.files(asked.parts, job), audited_parts.listed(asked.split)
    finish(job, found, files, asked.out, audit)
    return 0 if found.holds else LEAK


def audit_split(where, job, found: api.Split, audit: AuditOptions) -> None:
    """Audit a split that was just made, and write what was asked for.

    where : paths of the sequences, of the list, and of the certificate
    """
    path, listed, out = where
    with job.watched() as chosen:
        definition = replace(found.definition, options=wanted(chosen, audit))
        parts = {name: found.take(name) for name in found.names}
        checked = api.audit_of(parts, definition, len(found.removed))
    files = audited_parts.files((path,), job), audited_parts.listed(listed)
    finish(job, checked, files, out, audit, found)
    if not checked.holds:
        raise LeakError(f"{path}: {checked.heading()}")


def prepare(asked: AuditRequest, audit: AuditOptions, options, beside, scoring=None):
    """Options and outputs checked, inputs read: a ``LinkJob``."""
    outs, files = (asked.out, audit.report), (asked.split, *beside)
    link_job.check_plot(audit.plot, asked.force, (*asked.parts, *files), outs)
    return link_job.prepare(
        asked.parts, options, outs, asked.force, files, True, scoring
    )


def wanted(options: api.HomologyOptions, audit: AuditOptions) -> api.HomologyOptions:
    """Options with how many of the worst pairs are wanted."""
    return replace(options, worst=audit.worst, full_histogram=audit.full_histogram)


def compare(job, parts: AuditedParts, definition: api.Definition) -> Audit:
    """Say what will be done, and do it."""
    sizes = ", ".join(f"{name} {len(one):,}" for name, one in parts.sets.items())
    job.messages.say(f"{sizes}; a leak: {definition}")
    with job.watched() as chosen:
        told = {"progress": chosen.progress, "busy": chosen.busy}
        seen = replace(definition, options=replace(definition.options, **told))
        return api.audit_of(parts.sets, seen, **parts.left_out)


def _check(asked: AuditRequest) -> None:
    if asked.split is None and len(asked.parts) < 2:
        raise UsageError(
            f"{len(asked.parts)} parts: an audit needs two files or more, or one with "
            "--split SPLIT.tsv"
        )
    if asked.split is not None and len(asked.parts) != 1:
        raise UsageError("--split says which sequence of one file is in which part")
    if asked.partial and asked.split is None:
        raise UsageError("--partial is about the table of --split")
    if asked.max_identity is None:
        raise UsageError("--max-identity is needed: the cut, 0 to 1")


def _shown(found: Audit) -> Iterable[str]:
    """The worst pairs, each with an alignment."""
    pairs = zip(found.lines(), found.alignments.alignments(), strict=True)
    return [f"{line}\n{alignment}" for line, alignment in pairs]


def finish(job, found: Audit, files, out, audit: AuditOptions, split=None) -> None:
    """Say and write what was found."""
    job.messages.say(link_job.pairs_line(found.info))
    job.messages.say(found.heading())
    about = found.certificate(*files)
    text = json.dumps(about, indent=2, ensure_ascii=False)
    if out is not None:
        output.write_text(out, [text + "\n"])
    if audit.report is not None:
        output.write_text(audit.report, [found.report(split)])
    if audit.plot is not None:
        from jaxalign.cli import pictures

        pictures.across(audit.plot, found)
    if split is None:
        json_asked = job.asked.summary.json
        print(text if json_asked else "\n\n".join(_shown(found)))
