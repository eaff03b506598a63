"""The straight line of ``jaxalign audit``, and of the audit of a new split."""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace

from jaxalign.cli import link_job
from jaxalign.cli.options import AuditOptions, VerbOptions
from jaxalign.errors import InputError, LeakError, UsageError
from jaxalign.homology import api
from jaxalign.homology.api import Audit, certificate, define
from jaxalign.io import name_table, output
from jaxalign.io.source import sha256
from jaxalign.model.alphabet import UNKNOWN_POLICIES
from jaxalign.model.names import written
from jaxalign.model.numbers import check_whole

LEAK = LeakError.exit_code
PART_COLUMNS = ("part", "cluster")  # as jaxalign and GraphPart call them


@dataclass(frozen=True)
class AuditRequest:
    """The options of an audit of its own."""

    parts: tuple[str, ...]
    max_identity: float | None
    split: str | None
    certificate: str | None
    out: str | None
    force: bool


def run(asked: AuditRequest, audit: AuditOptions, options: VerbOptions) -> int:
    """``jaxalign audit PARTS``; 0, or 6 for a leak."""
    # 1 what is audited, 2 check and read, 3 parts, 4 compare, 5 say and write
    known = definition = None
    check_whole("--worst", audit.worst)
    if asked.certificate is not None:
        asked, options, known = _of_certificate(asked, options)
        definition = certificate.definition_of(known, api.HomologyOptions())
    _check(asked)
    outs = (asked.out, audit.report)
    files = (asked.split, asked.certificate)
    link_job.check_plot(audit.plot, asked.force, (*asked.parts, *files), outs)
    scoring = None if definition is None else definition.scoring
    job = link_job.prepare(
        asked.parts, options, outs, asked.force, files, True, scoring
    )
    job = replace(job, options=_wanted(job.options, audit, known))
    if known is None:
        cut, scoring = asked.max_identity, job.read.scoring
        definition = define(scoring, job.options, "--max-identity", cut)
    else:
        definition = certificate.definition_of(known, job.options)
    parts = _parts(asked, job, known)
    if len(parts) < 2:
        raise InputError(f"{asked.split}: has one part only, {', '.join(parts)}")
    job.messages.say(f"{_sizes(parts)}; a leak: {definition}")
    with job.watched() as chosen:
        seen = replace(definition, options=_told(definition.options, chosen))
        found = api.engine.audit(parts, seen)
    files = _inputs(asked.parts, job), _file(asked.split)
    _finish(job, found, files, asked.out, audit)
    if known is not None:
        again = certificate.certificate_of(found, *files)
        lines = certificate.differences(known, again)
        if lines:
            raise LeakError(f"{asked.certificate}: " + "\n".join(lines))
        job.messages.say(f"{asked.certificate}: verified, the same was found again")
    return 0 if found.holds else LEAK


def audit_split(where, job, found: api.Split, audit: AuditOptions) -> None:
    """Audit a split that was just made, and write what was asked for.

    where : paths of the sequences, of the list, and of the certificate
    """
    path, listed, out = where
    with job.watched() as chosen:
        chosen = _wanted(chosen, audit, None)
        definition = replace(found.definition, options=chosen)
        parts = {name: found.take(name) for name in found.names}
        checked = api.engine.audit(parts, definition)
    files = _inputs((path,), job), _file(listed)
    _finish(job, checked, files, out, audit, found)
    if not checked.holds:
        raise LeakError(f"{path}: {checked.heading()}")


def _wanted(options: api.HomologyOptions, audit: AuditOptions, known):
    """Options with how many of the worst pairs are wanted."""
    worst = audit.worst if known is None else max(len(known["worst"]), 1)
    return replace(options, worst=worst, full_histogram=audit.full_histogram)


def _told(options: api.HomologyOptions, chosen: api.HomologyOptions):
    return replace(options, progress=chosen.progress, busy=chosen.busy)


def _check(asked: AuditRequest) -> None:
    if asked.split is None and len(asked.parts) < 2:
        raise UsageError(
            f"{len(asked.parts)} parts: an audit needs two files or more, or one with "
            "--split SPLIT.tsv"
        )
    if asked.split is not None and len(asked.parts) != 1:
        raise UsageError("--split says which sequence of one file is in which part")
    if asked.certificate is None and asked.max_identity is None:
        raise UsageError("--max-identity is needed: the cut, 0 to 1")


def _of_certificate(asked: AuditRequest, options: VerbOptions):
    """(request, options, certificate): what a certificate says of the inputs."""
    if asked.max_identity is not None or options != replace(
        VerbOptions(),
        machine=options.machine,
        messages=options.messages,
        summary=options.summary,
    ):
        raise UsageError(
            "--certificate has its own cut, links and scoring: leave out these options"
        )
    known = certificate.read(asked.certificate)
    try:
        parts = asked.parts or tuple(str(one["path"]) for one in known["inputs"])
        split = asked.split or (known["split"] or {}).get("path")
        unknown = {one["unknown"] for one in known["inputs"]} or {"error"}
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(f"{asked.certificate}: inputs lack {error}") from error
    if len(unknown) != 1 or not unknown <= {*UNKNOWN_POLICIES} or not parts:
        raise InputError(f"{asked.certificate}: names no files; give PARTS")
    # The alphabet is that of the certificate: it is not guessed from letters.
    scoring = replace(options.scoring, unknown=unknown.pop(), alphabet="protein")
    request = replace(asked, parts=parts, split=split)
    return request, replace(options, scoring=scoring), known


def _parts(asked: AuditRequest, job, known: dict | None) -> dict:
    """Names of parts and their sequences; of a certificate those that it has."""
    names = [] if known is None else [str(x.get("name")) for x in known["parts"]]
    if asked.split is None:
        if len(names) != len(asked.parts):
            names = [_short(path) for path in asked.parts]
        if len(set(names)) < len(names):
            names = list(asked.parts)
        return dict(zip(names, job.read.sequences, strict=True))
    members = _members(asked, job, names)
    (data,) = job.read.sequences
    return {part: data.take(sorted(some)) for part, some in members.items()}


def _members(asked: AuditRequest, job, names: list[str]) -> dict[str, list[int]]:
    """The sequences of every part of a list; parts that are named come first."""
    (data,), parts = job.read.sequences, name_table.read(asked.split, PART_COLUMNS)
    where = {name: number for number, name in enumerate(data.names)}
    unknown = [name for name in parts if name not in where]
    if unknown:
        some = ", ".join(map(written, unknown[:3]))
        raise InputError(
            f"{asked.split}: {len(unknown):,} names are not in {asked.parts[0]} "
            f"({some}); a name is the first word of a heading, whole"
        )
    missing = len(data) - len(parts)
    if missing:
        job.messages.warn(f"{asked.split}: {missing:,} sequences are in no part")
    members: dict[str, list[int]] = {name: [] for name in names}
    for name, part in parts.items():
        members.setdefault(part, []).append(where[name])
    members.pop(api.REMOVED, None)
    return members


def _short(path: str) -> str:
    """data/train.fasta.gz -> train."""
    return os.path.basename(path).split(".")[0] or path


def _sizes(parts: dict) -> str:
    return ", ".join(f"{name} {len(one):,}" for name, one in parts.items())


def _inputs(paths: Iterable[str], job) -> list[dict]:
    """Files that were read, and how."""
    scoring = job.asked.scoring
    return [
        {"path": path, "sha256": digest, "records": len(one)}
        | {"unknown": scoring.unknown}
        for path, digest, one in zip(
            paths, job.read.hashes, job.read.sequences, strict=True
        )
    ]


def _shown(found: Audit) -> Iterable[str]:
    """The worst pairs, each with an alignment."""
    pairs = zip(found.lines(), found.alignments.alignments(), strict=True)
    return [f"{line}\n{alignment}" for line, alignment in pairs]


def _file(path: str | None) -> dict | None:
    return None if path is None else {"path": path, "sha256": sha256(path)}


def _finish(job, found: Audit, files, out, audit: AuditOptions, split=None) -> None:
    """Say and write what was found."""
    job.messages.say(link_job.pairs_line(found.info))
    job.messages.say(found.heading())
    about = certificate.certificate_of(found, *files)
    text = json.dumps(about, indent=2, ensure_ascii=False)
    if out is not None:
        output.write_text(out, [text + "\n"])
    if audit.report is not None:
        output.write_text(audit.report, api.report(found, split))
    if audit.plot is not None:
        from jaxalign.cli import pictures

        pictures.across(audit.plot, found)
    if split is None:
        json_asked = job.asked.summary.json
        print(text if json_asked else "\n\n".join(_shown(found)))
