"""The straight line of ``jaxalign audit --certificate``: do an audit again."""

from dataclasses import dataclass, replace
from typing import Any

from jaxalign.cli import audit_job, audited_parts
from jaxalign.cli.audit_job import AuditRequest
from jaxalign.cli.link_job import LinkJob
from jaxalign.cli.options import AuditOptions, VerbOptions
from jaxalign.errors import InputError, LeakError, UsageError, VerificationError
from jaxalign.homology import api
from jaxalign.homology.api import certificate
from jaxalign.model.alphabet import UNKNOWN_POLICIES


@dataclass(frozen=True)
class CertificateFiles:
    """The files that verify a certificate, and how their letters are read."""

    parts: tuple[str, ...]
    split: str | None
    column: str | None
    unknown: str


def run(
    path: str, request: AuditRequest, audit: AuditOptions, options: VerbOptions
) -> int:
    """Verify a certificate; 0, or 6 where it says that there are leaks.

    Raises
    ------
    VerificationError
        It is not what it says.
    """
    # 1 read the certificate and its files, 2 what is compared, 3 compare, 4 say
    _check(request, audit, options)
    known = certificate.read(path)
    files = _files(path, known, request)
    # The alphabet is that of the certificate: it is not guessed from letters.
    scoring = replace(options.scoring, unknown=files.unknown, alphabet="protein")
    options = replace(options, scoring=scoring)
    request = replace(request, parts=files.parts, split=files.split)
    definition = certificate.definition_of(known, api.HomologyOptions())
    job = audit_job.prepare(request, audit, options, (path,), definition.scoring)
    audit = replace(audit, worst=max(len(known["worst"]), 1))
    chosen = audit_job.wanted(job.options, audit)
    definition = certificate.definition_of(known, chosen)
    names = [str(part.get("name")) for part in known["parts"]]
    where = files.parts, files.split, job, request.partial, names
    parts = audited_parts.read(*where, files.column)
    read = _as_named(known, files, job)
    again = certificate.subject(definition, parts.sets, parts.left_out, *read)
    _compare(path, known, again, again)
    result = audit_job.compare(job, parts, definition)
    audit_job.finish(job, result, read, request.out, audit)
    _compare(path, known, result.certificate(*read))
    opened = "" if files.parts == _paths(known) else "; its paths were not opened"
    job.messages.say(f"{path}: verified, the same was found again{opened}")
    return 0 if result.holds else LeakError.exit_code


def _check(request: AuditRequest, audit: AuditOptions, options: VerbOptions) -> None:
    """Refuse what a certificate says itself."""
    free = ("machine", "messages", "summary")
    usual = replace(VerbOptions(), **{name: getattr(options, name) for name in free})
    given = request.max_identity is not None or audit.worst != AuditOptions().worst
    if given or options != usual:
        raise UsageError(
            "--certificate has its own cut, links, scoring and --worst: leave out "
            "these options"
        )


def _paths(known: dict) -> tuple[str, ...]:
    return tuple(str(file["path"]) for file in known["inputs"])


def _files(path: str, known: dict, request: AuditRequest) -> CertificateFiles:
    """The files of a certificate, unless somebody gives others."""
    try:
        named = _paths(known)  # which all inputs have, though nobody opens them
        parts = request.parts or named
        said = known.get("split") or {}
        split, column = request.split or said.get("path"), said.get("column")
        unknown = {file["unknown"] for file in known["inputs"]} or {"error"}
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(f"{path}: inputs lack {error}") from error
    if len(unknown) != 1 or not unknown <= {*UNKNOWN_POLICIES} or not parts:
        raise InputError(f"{path}: names no files; give PARTS")
    if not request.parts:
        try:
            audited_parts.check_files(parts)
        except UsageError as error:
            raise InputError(f"{path}: {error}") from error
    if split is not None and len(parts) != 1:
        raise InputError(f"{path}: a list is of one file, and there are {len(parts)}")
    if split is None and len(parts) < 2:
        raise InputError(f"{path}: {len(parts)} parts, where two or more are needed")
    split = None if split is None else str(split)
    column = None if split is None or column is None else str(column)
    return CertificateFiles(parts, split, column, unknown.pop())


def _as_named(
    known: dict, files: CertificateFiles, job: LinkJob
) -> tuple[list, dict | None]:
    """(inputs, split) of the files that were read, under the paths of the certificate;
    none where it is of sequences and not of files."""
    if not known["inputs"]:
        return [], None
    inputs = audited_parts.files(files.parts, job)
    split, said = audited_parts.listed(files.split, files.column), known.get("split")
    if len(inputs) == len(known["inputs"]):
        named = zip(inputs, known["inputs"], strict=True)
        inputs = [file | {"path": other["path"]} for file, other in named]
    if split and isinstance(said, dict) and "path" in said:
        split |= {"path": said["path"]}
    return inputs, split


def _compare(path: str, known: dict, again: dict, names: Any = None) -> None:
    lines = certificate.differences(known, again, names)
    if lines:
        raise VerificationError(f"{path}: is not what it says\n" + "\n".join(lines))
