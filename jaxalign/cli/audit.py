"""``jaxalign audit``: parts, a new split, or a certificate that is verified."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from jaxalign.cli import links
from jaxalign.cli.derive import Given, changed, refuse, refuse_others
from jaxalign.cli.links import LinkJob
from jaxalign.cli.run import check_resume, run
from jaxalign.cli.terminal import Report, answer, as_json
from jaxalign.errors import InputError, LeakError, UsageError, VerificationError
from jaxalign.homology import api
from jaxalign.homology.api import REMOVED, Audit, certificate, coverage
from jaxalign.io import delimited, output
from jaxalign.io.delimited import PairList
from jaxalign.model.alphabet import (
    AS_WRITTEN,
    UNKNOWN_POLICIES,
    Reading,
    Sequences,
    reading_of,
)
from jaxalign.model.names import written
from jaxalign.model.numbers import check_whole
from jaxalign.model.scoring import Scoring
from jaxalign.model.show import counted
from jaxalign.model.source import STDIN, sha256
from jaxalign.pairs.api import SavedState

# As jaxalign, GraphPart and others call them.
PART_COLUMNS = ("part", "cluster", "fold", "split", "set", "partition", "subset")
SHOWN = 3  # names in a message
LEAKS_SHOWN = 10  # pairs


@dataclass(frozen=True, eq=False)
class AuditedParts:
    """Parts by their names, and how many sequences are in none.

    Attributes
    ----------
    sets : dict of Sequences
    left_out : dict of int
        ``removed``, ``unlisted``.
    """

    sets: dict[str, Sequences]
    left_out: dict[str, int]


def read_parts(
    paths: Sequence[str],
    split: str | None,
    job: LinkJob,
    partial: bool,
    names: Sequence[str] = (),
    column: str | None = None,
) -> AuditedParts:
    """The parts of files, or of a list.

    Parameters
    ----------
    split : path of the list, or None
    partial : bool
        Whether sequences may be in no part.
    names : of parts that come first, where somebody has said them
    column : of the list; None where its heading says which one is meant

    Raises
    ------
    InputError
        Fewer than two parts, a name that is no sequence, or sequences in no part.
    """
    if split is None:
        names = names if len(names) == len(paths) else [_short(x) for x in paths]
        check_files(paths)
        names = paths if len(set(names)) < len(names) else names
        sets = dict(zip(names, job.read.sequences, strict=True))
        return AuditedParts(sets, {"removed": 0, "unlisted": 0})
    (data,) = job.read.sequences
    known = links.known_names(paths[0], job.read)
    table = delimited.read_names(split, known, PART_COLUMNS, column)
    numbers = {name: number for number, name in enumerate(data.names)}
    unknown = [name for name in table if name not in numbers]
    if unknown:
        raise InputError(
            f"{split}: not in {paths[0]}: {counted(len(unknown), 'name')} "
            f"({_some(unknown)}); a name is the first word of a heading, whole"
        )
    # Parts that are named come first.
    members: dict[str, list[int]] = {name: [] for name in names}
    for name, part in table.items():
        members.setdefault(part, []).append(numbers[name])
    removed = members.pop(REMOVED, [])
    sets = {name: data.take(sorted(rows)) for name, rows in members.items()}
    unlisted = [name for name in data.names if name not in table]
    left_out = {"removed": len(removed), "unlisted": len(unlisted)}
    if (removed or unlisted) and not partial:
        missing = [*(data.names[k] for k in removed[:SHOWN]), *unlisted]
        raise InputError(
            f"{split}: {coverage(sets.values(), left_out)}: {_some(missing)}\nhint: "
            "--partial audits the others, and the certificate says so"
        )
    if len(sets) < 2:
        raise InputError(
            f"{split}: has only one part: {', '.join(map(written, sets)) or 'none'}; "
            f"{api.TWO_PARTS}"
        )
    return AuditedParts(sets, left_out)


def check_files(paths: Sequence[str]) -> None:
    """Refuse a file that is two parts."""
    for number, path in enumerate(paths):
        for other in paths[:number]:
            a, b = ("/dev/stdin" if x == STDIN else x for x in (path, other))
            there = os.path.exists(a) and os.path.exists(b)
            if a == b or (there and os.path.samefile(a, b)):
                same = path if path == other else f"{other} and {path}"
                raise UsageError(
                    f"{same}: is given as two parts, so each of its sequences would be "
                    "a leak; give each part its own file, or one file with --split "
                    "SPLIT.tsv"
                )


def _some(names: Collection[str]) -> str:
    return ", ".join(map(written, [*names][:SHOWN]))


def _short(path: str) -> str:
    """data/train.fasta.gz -> train."""
    return os.path.basename(path).split(".")[0] or path


def audited_files(paths: Iterable[str], job: LinkJob) -> list[dict]:
    """Files that were read, and how, for a certificate."""
    policies = reading_of(job.verb.scoring).said()
    read = zip(paths, job.read.hashes, job.read.sequences, strict=True)
    return [
        {"path": path, "sha256": digest, "records": len(sequences)} | policies
        for path, digest, sequences in read
    ]


def audited_list(path: str | None, column: str | None = None) -> dict | None:
    """The list of a split, and its column where that is named, for a certificate."""
    if path is None:
        return None
    about = {"path": path, "sha256": sha256(path)}
    return about if column is None else about | {"column": column}


LEAK = LeakError.exit_code
PLACES = ("report", "leaks")  # outputs beside which a state may be
# Options that go with a certificate: where it is checked, and what is written.
VERIFIED = ("verify", "split", "partial", "out", "force", "json", "report")
VERIFIED += ("leaks", "plot", "full_histogram", "across_only", "resume", "device")
VERIFIED += ("implementation", "devices", "threads", "memory_budget")


def audit(given: Given) -> int:
    """``jaxalign audit PARTS``; 0, or 6 for a leak."""
    if given.pairs is not None:
        return audit_pairs(given)
    # 1 check and read, 2 parts, 3 compare, 4 say and write
    check_whole("--worst", given.worst)
    check_shown(given)
    lists = filter(None, (given.split, given.verify))
    check_resume(given, (*given.parts, *lists), PLACES)
    if given.verify is not None:
        return verify(given.verify, given)
    _check(given)
    job = prepare(given, ())
    definition = links.defined(job, given.min_identity)
    where = given.parts, given.split, job, given.partial
    parts = read_parts(*where, column=given.column)
    listed = audited_list(given.split, given.column)
    files = audited_files(given.parts, job), listed
    return run_audit(job, parts, definition, files, given.out)


def prepare(
    given: Given, beside: tuple[str, ...], scoring: Scoring | None = None
) -> LinkJob:
    """Options and outputs checked, inputs read."""
    delimited.check_list_format(given.leaks)
    outs = (None, given.out, given.report, given.leaks)  # the worst pairs are printed
    files = (given.split, *beside)
    return links.prepare(given.parts, given, outs, files, True, scoring)


def check_shown(given: Given) -> None:
    """Refuse options about a page, a picture and a table where there are none."""
    refuse(given, ("cold", "second"), "about the table of --pairs")
    if given.report is None:
        refuse(given, ("across_only",), "about the page of --report")
    if not (given.report or given.plot or given.leaks):
        refuse(given, ("full_histogram",), "about --report, --plot and --leaks")


def _check(request: Given) -> None:
    if request.split is None and len(request.parts) < 2:
        raise UsageError(
            f"{api.TWO_PARTS} files, not {len(request.parts)}, or one file "
            "and --split SPLIT.tsv"
        )
    if request.split is not None and len(request.parts) != 1:
        raise UsageError(
            "--split assigns the sequences of one file to parts: give one file, or "
            "leave out --split"
        )
    if request.split is None:
        refuse(request, ("partial", "column"), "about the table of --split")
    if not links.has_cut(request):
        raise UsageError(
            "audit: --min-identity is missing: the cut, 0 to 1, or --min-relative-score"
        )


def compare(
    job: LinkJob,
    parts: AuditedParts,
    definition: api.Definition,
    state: SavedState | None,
    progress: Report | None,
) -> Audit:
    """Compare all pairs of different parts."""
    watched = replace(job, options=definition.options).options_with(progress)
    sides = parts.sets, replace(definition, options=watched)
    return api.audit_of(*sides, **parts.left_out, with_others=True, saved=state)


def run_audit(
    job: LinkJob,
    parts: AuditedParts,
    definition: api.Definition,
    files: tuple[list[dict], dict | None],
    out: str | None,
    split: api.Split | None = None,
    check: Callable[[Audit], Iterable[str]] = lambda _: (),
) -> int:
    """Compare parts, say and write what was found; 0, or 6 for a leak.

    files : audited ones and list, for the certificate
    out : path of the certificate
    split : that was just made, whose list is the answer
    check : of a result that is written; yields messages
    """
    given, definition = job.verb, definition.of_sets(parts.sets.values())
    sizes = ", ".join(f"{name} {len(data):,}" for name, data in parts.sets.items())
    heading = [] if split else [f"{sizes}; a leak: {definition}"]
    heading += [] if split else links.evidence_lines(definition)
    heading += links.expected(definition, *parts.sets.values())
    shown = {x: getattr(given, x) for x in ("worst", "full_histogram", "across_only")}
    counts = {"parts": {x: len(y) for x, y in parts.sets.items()}} | parts.left_out
    about = {"list": files[1], **counts, **shown}
    about["certificate"] = None if split else given.verify
    saved, state = links.checkpoint(
        job, definition, about, out or given.report or given.leaks
    )

    def finish(result: Audit) -> Iterator[str]:
        yield links.pairs_line(result.info)
        yield result.heading()
        if measures := result.others():
            described = "; ".join(map(str, measures))
            yield f"by other measures, likely pairs only: {described}"
        page = None
        if given.report is not None:
            page = result.report(split, not given.across_only, state)
        if given.leaks is not None:
            cuts = (definition.cut,)
            links.write_table(given.leaks, result.leak_columns(), given, cuts)
        about = result.certificate(*files)
        if out is not None:
            output.write_text(out, [as_json(about) + "\n"])
        if page is not None:
            output.write_text(str(given.report), [page])
        if given.plot is not None:
            from jaxalign.cli import pictures

            pictures.across(given.plot, result)
        if split is None and given.json:
            answer([as_json(about)])
        elif split is None:  # the worst pairs, each with an alignment
            shown = zip(result.lines(), result.alignments, strict=True)
            pairs = "\n\n".join(f"{line}\n{pair}" for line, pair in shown)
            answer(["\n".join((pairs, *result.evidence_lines()))])

    def code(result: Audit) -> int:
        return 0 if result.holds else LEAK

    compute = partial(compare, job, parts, definition, state)
    ends = {"code": code, "saved": saved, "check": check}
    return run(given, job.messages, heading, compute, finish, **ends)


def audit_split(
    where: tuple[str, str | None, str | None],
    job: LinkJob,
    split: api.Split,
) -> None:
    """Audit a split that was just made, and write what was asked for.

    where : paths of the sequences, of the list, and of the certificate
    """
    path, listed, out = where
    sets = {name: split.take(name) for name in split.names}
    parts = AuditedParts(sets, {"removed": len(split.removed)})
    files = audited_files((path,), job), audited_list(listed)

    def check(checked: Audit) -> Iterable[str]:
        if not checked.holds:
            raise LeakError(f"{path}: {checked.heading()}")
        return ()

    definition = replace(split.definition, options=job.options)
    run_audit(job, parts, definition, files, out, split, check)


def audit_pairs(given: Given) -> int:
    """``jaxalign audit SEQS --pairs PAIRS.tsv``; 0, or 6 for a leak."""
    own = ("split", "verify", "out", "partial", "report", "plot")
    own += ("worst", "full_histogram", "across_only")
    why = "about sequences: --pairs goes with --cold, --second, --leaks, --min-identity"
    refuse(given, own, why)
    parts = given.parts
    if len(parts) != 1 or not links.has_cut(given):
        raise UsageError("--pairs needs one file of sequences, and --min-identity")
    delimited.check_list_format(given.leaks)
    check_resume(given, (parts[0], given.pairs), ("leaks",))
    settings = (None, given.leaks), True, given.column
    job, table, pairs, definition = read_pairs(parts[0], given, *settings)
    numbers = api.numbered_parts(table.parts or [], pairs)
    described = {"pairs": audited_list(given.pairs, given.column)}
    described["second"] = given.second
    described["cold"] = given.cold
    saved, state = links.checkpoint(job, definition, described, given.leaks)

    def compute(progress: Report | None) -> api.PairAudit:
        seen = replace(definition, options=job.options_with(progress))
        sides = job.read.sequences[0], seen, pairs, numbers
        return api.audit_pairs_of(*sides, given.cold, state)

    def finish(result: api.PairAudit) -> Iterator[str]:
        yield links.pairs_line(result.info)
        yield result.heading()
        rows = result.leaking.nonzero()[0]
        named = [(*table.pairs[k], str(result.names[result.part[k]])) for k in rows]
        for number, (a, b, _) in zip(rows[:LEAKS_SHOWN].tolist(), named, strict=False):
            yield f"{table.where(number)}: {a}, {b} leaks"
        if given.leaks is not None:
            columns = zip(*named, strict=True) if named else ((), (), ())
            titles = ("first", "second", "part")
            links.write_table(
                given.leaks, dict(zip(titles, columns, strict=True)), given
            )

    def about(result: api.PairAudit) -> dict:
        counts = {"leaks": result.leaks, "pairs": len(table.pairs), "cold": result.cold}
        return {"definition": links.about_definition(definition)} | counts

    def code(result: api.PairAudit) -> int:
        return 0 if result.holds else LEAK

    heading = [f"{len(table.pairs):,} pairs; a leak: {definition}"]
    heading += links.evidence_lines(definition)
    heading += links.expected(definition, *job.read.sequences)
    return run(given, job.messages, heading, compute, finish, about, code, saved)


def read_pairs(
    path: str,
    given: Given,
    outs: tuple[str | None, ...],
    parts: bool,
    column: str | None = None,
) -> tuple[LinkJob, PairList, Any, api.Definition]:
    """Options checked, sequences and pairs read; what near means."""
    job = links.prepare((path,), given, outs, (given.pairs,))
    known = links.known_names(path, job.read)
    table = delimited.read_pairs(given.pairs, known, parts, column)
    names = job.read.sequences[0].names
    pairs = api.named_pairs(table.pairs, names, given.second, table.where)
    definition = links.defined(job, given.min_identity, job.read.sequences)
    return job, table, pairs, definition


@dataclass(frozen=True)
class CertificateFiles:
    """The files that verify a certificate, and how their letters are read."""

    parts: tuple[str, ...]
    split: str | None
    column: str | None
    reading: Reading


def verify(path: str, given: Given) -> int:
    """Verify a certificate; 0, or 6 where it says that there are leaks.

    Raises
    ------
    VerificationError
        It is not what it says.
    """
    # 1 read the certificate and its files, 2 what is compared, 3 compare, 4 say
    refuse_others(
        given,
        VERIFIED,
        "not for --verify: a certificate has its own cut, links, scoring, column and "
        "--worst: leave out these options",
    )
    known = certificate.read(path)
    files = _certificate_files(path, known, given)
    # The alphabet is that of the certificate: it is not guessed from letters.
    scoring = replace(given.scoring, alphabet="protein", **files.reading._asdict())
    worst = max(len(known["worst"]), 1)
    definition = certificate.definition_of(known, api.HomologyOptions())
    evidence = {x: getattr(definition.options, x) for x in ("edges", "together")}
    given = changed(
        given,
        scoring=scoring,
        parts=files.parts,
        split=files.split,
        worst=worst,
        **evidence,
    )
    job = prepare(given, (path,), definition.scoring)
    definition = certificate.definition_of(known, job.options)
    definition = api.with_evidence(definition, links.every_name(job))
    names = [str(part.get("name")) for part in known["parts"]]
    where = files.parts, files.split, job, given.partial, names
    parts = read_parts(*where, files.column)
    read = _as_named(known, files, job)
    definition = definition.of_sets(parts.sets.values())
    again = certificate.subject(definition, parts.sets, parts.left_out, *read)
    _compare_certificates(path, known, again, again)

    def check(result: Audit) -> Iterable[str]:
        _compare_certificates(path, known, result.certificate(*read))
        opened = "" if files.parts == _paths(known) else "; its paths were not opened"
        return [f"{path}: verified, the same was found again{opened}"]

    return run_audit(job, parts, definition, read, given.out, check=check)


def _paths(known: dict) -> tuple[str, ...]:
    return tuple(str(file["path"]) for file in known["inputs"])


def _certificate_files(path: str, known: dict, request: Given) -> CertificateFiles:
    """The files of a certificate, unless somebody gives others."""
    try:
        named = _paths(known)  # which all inputs have, though nobody opens them
        parts = request.parts or named
        said = known.get("split") or {}
        split, column = request.split or said.get("path"), said.get("column")
        files = known["inputs"] or [AS_WRITTEN.said()]
        policies = [
            {x: file[x] for x in ("unknown", *file) if x in Reading._fields}
            for file in files
        ]
        readings = {reading_of(Reading(**x)) for x in policies}
    except (AttributeError, KeyError, TypeError, UsageError) as error:
        raise InputError(
            f"{path}: the inputs of the certificate lack {error}"
        ) from error
    unknown = {reading.unknown for reading in readings}
    if len(readings) != 1 or not unknown <= {*UNKNOWN_POLICIES} or not parts:
        raise InputError(
            f"{path}: the certificate names no files; give the files of the parts"
        )
    if not request.parts:
        try:
            check_files(parts)
        except UsageError as error:
            raise InputError(f"{path}: {error}") from error
    if split is not None and len(parts) != 1:
        raise InputError(
            f"{path}: a list belongs to one file of sequences, not {len(parts)}"
        )
    if split is None and len(parts) < 2:
        raise InputError(f"{path}: has {counted(len(parts), 'part')}; {api.TWO_PARTS}")
    split = None if split is None else str(split)
    column = None if split is None or column is None else str(column)
    return CertificateFiles(parts, split, column, readings.pop())


def _as_named(
    known: dict, files: CertificateFiles, job: LinkJob
) -> tuple[list, dict | None]:
    """(inputs, split) of the files that were read, under the paths of the certificate;
    none where it is of sequences and not of files."""
    if not known["inputs"]:
        return [], None
    inputs = audited_files(files.parts, job)
    split, said = audited_list(files.split, files.column), known.get("split")
    if len(inputs) == len(known["inputs"]):
        named = zip(inputs, known["inputs"], strict=True)
        inputs = [file | {"path": other["path"]} for file, other in named]
    if split and isinstance(said, dict) and "path" in said:
        split |= {"path": said["path"]}
    return inputs, split


def _compare_certificates(
    path: str, known: dict, again: dict, names: Any = None
) -> None:
    lines = certificate.differences(known, again, names)
    if lines:
        raise VerificationError(f"{path}: is not what it says\n" + "\n".join(lines))
