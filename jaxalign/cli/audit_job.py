"""The straight line of ``jaxalign audit``, and of the audit of a new split."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from jaxalign.cli import audited_parts, link_job
from jaxalign.cli.audited_parts import AuditedParts
from jaxalign.cli.link_job import LinkJob
from jaxalign.cli.options import AuditOptions, VerbOptions
from jaxalign.cli.terminal import answer, as_json
from jaxalign.errors import LeakError, UsageError
from jaxalign.homology import api
from jaxalign.homology.api import Audit, define
from jaxalign.io import name_table, output
from jaxalign.model.numbers import check_whole
from jaxalign.model.scoring import Scoring

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
    column: str | None = None


def run(request: AuditRequest, audit: AuditOptions, options: VerbOptions) -> int:
    """``jaxalign audit PARTS``; 0, or 6 for a leak."""
    # 1 check and read, 2 parts, 3 compare, 4 say and write
    check_whole("--worst", audit.worst)
    _check(request)
    job = prepare(request, audit, options, ())
    cut, scoring = request.max_identity, job.read.scoring
    chosen = wanted(job.options, audit)
    definition = define(scoring, chosen, "--max-identity", cut)
    where = request.parts, request.split, job, request.partial
    parts = audited_parts.read(*where, column=request.column)
    result = compare(job, parts, definition)
    files = (
        audited_parts.files(request.parts, job),
        audited_parts.listed(request.split, request.column),
    )
    finish(job, result, files, request.out, audit)
    return 0 if result.holds else LEAK


def audit_split(
    where: tuple[str, str | None, str | None],
    job: LinkJob,
    split: api.Split,
    audit: AuditOptions,
) -> None:
    """Audit a split that was just made, and write what was asked for.

    where : paths of the sequences, of the list, and of the certificate
    """
    path, listed, out = where
    with job.watched() as chosen:
        definition = replace(split.definition, options=wanted(chosen, audit))
        parts = {name: split.take(name) for name in split.names}
        removed = len(split.removed)
        checked = api.audit_of(parts, definition, removed, with_others=True)
    files = audited_parts.files((path,), job), audited_parts.listed(listed)
    finish(job, checked, files, out, audit, split)
    if not checked.holds:
        raise LeakError(f"{path}: {checked.heading()}")


def prepare(
    request: AuditRequest,
    audit: AuditOptions,
    options: VerbOptions,
    beside: tuple[str, ...],
    scoring: Scoring | None = None,
):
    """Options and outputs checked, inputs read: a ``LinkJob``."""
    name_table.check_format(audit.leaks)
    outs = (request.out, audit.report, audit.leaks)
    files = (request.split, *beside)
    link_job.check_plot(audit.plot, request.force, (*request.parts, *files), outs)
    return link_job.prepare(
        request.parts, options, outs, request.force, files, True, scoring
    )


def wanted(options: api.HomologyOptions, audit: AuditOptions) -> api.HomologyOptions:
    """Options with how many of the worst pairs are wanted."""
    return replace(options, worst=audit.worst, full_histogram=audit.full_histogram)


def compare(job: LinkJob, parts: AuditedParts, definition: api.Definition) -> Audit:
    """Say what will be done, and do it."""
    sizes = ", ".join(f"{name} {len(data):,}" for name, data in parts.sets.items())
    job.messages.say(f"{sizes}; a leak: {definition}")
    with job.watched() as chosen:
        watchers = {"progress": chosen.progress, "busy": chosen.busy}
        seen = replace(definition, options=replace(definition.options, **watchers))
        return api.audit_of(parts.sets, seen, **parts.left_out, with_others=True)


def _check(request: AuditRequest) -> None:
    if request.split is None and len(request.parts) < 2:
        raise UsageError(
            f"{len(request.parts)} parts: an audit needs two files or more, or one "
            "with --split SPLIT.tsv"
        )
    if request.split is not None and len(request.parts) != 1:
        raise UsageError("--split says which sequence of one file is in which part")
    if request.partial and request.split is None:
        raise UsageError("--partial is about the table of --split")
    if request.column and request.split is None:
        raise UsageError("--column is one of the table of --split")
    if request.max_identity is None:
        raise UsageError("--max-identity is needed: the cut, 0 to 1")


def _shown(result: Audit) -> Iterable[str]:
    """The worst pairs, each with an alignment."""
    pairs = zip(result.lines(), result.alignments.alignments(), strict=True)
    return [f"{line}\n{alignment}" for line, alignment in pairs]


def _say_others(job: LinkJob, result: Audit) -> None:
    """Say in a line how pairs across look by other measures."""
    if others := result.others():
        said = "; ".join(map(str, others))
        job.messages.say(f"by other measures, of likely pairs alone: {said}")


def finish(
    job: LinkJob,
    result: Audit,
    files: tuple[list[dict], dict | None],
    out: str | None,
    audit: AuditOptions,
    split: api.Split | None = None,
) -> None:
    """Say and write what was found."""
    job.messages.say(link_job.pairs_line(result.info))
    job.messages.say(result.heading())
    _say_others(job, result)
    if audit.leaks is not None:
        link_job.write_table(audit.leaks, result.leak_columns(), job.verb)
    about = result.certificate(*files)
    if out is not None:
        output.write_text(out, [as_json(about) + "\n"])
    if audit.report is not None:
        output.write_text(audit.report, [result.report(split, not audit.across_only)])
    if audit.plot is not None:
        from jaxalign.cli import pictures

        pictures.across(audit.plot, result)
    if split is None:
        json_asked = job.verb.summary.json
        answer([as_json(about)] if json_asked else ["\n\n".join(_shown(result))])
