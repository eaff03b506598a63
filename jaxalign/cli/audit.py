"""``jaxalign audit``: parts, a new split, or a certificate that is verified."""

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jaxalign.cli import links
from jaxalign.cli.arguments import ScoringOptions
from jaxalign.cli.derive import Given, changed
from jaxalign.cli.links import LinkJob
from jaxalign.cli.terminal import answer, answer_json, as_json
from jaxalign.errors import InputError, LeakError, UsageError, VerificationError
from jaxalign.homology import api
from jaxalign.homology.api import REMOVED, Audit, certificate, coverage, define
from jaxalign.io import delimited, output
from jaxalign.io.delimited import PairList
from jaxalign.model.alphabet import UNKNOWN_POLICIES, Sequences
from jaxalign.model.names import written
from jaxalign.model.numbers import check_whole
from jaxalign.model.scoring import Scoring
from jaxalign.model.source import STDIN, sha256

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
            f"{split}: {len(unknown):,} names are not in {paths[0]} "
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
        raise InputError(f"{split}: has one part only, {', '.join(map(written, sets))}")
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
                    f"{same}: one file is given as two parts, and every sequence of it "
                    "would be a leak; give each part its own file, or one file with "
                    "--split SPLIT.tsv"
                )


def _some(names: Collection[str]) -> str:
    return ", ".join(map(written, [*names][:SHOWN]))


def _short(path: str) -> str:
    """data/train.fasta.gz -> train."""
    return os.path.basename(path).split(".")[0] or path


def audited_files(paths: Iterable[str], job: LinkJob) -> list[dict]:
    """Files that were read, and how, for a certificate."""
    unknown = job.verb.scoring.unknown
    read = zip(paths, job.read.hashes, job.read.sequences, strict=True)
    return [
        {"path": path, "sha256": digest, "records": len(sequences), "unknown": unknown}
        for path, digest, sequences in read
    ]


def audited_list(path: str | None, column: str | None = None) -> dict | None:
    """The list of a split, and its column where that is named, for a certificate."""
    if path is None:
        return None
    about = {"path": path, "sha256": sha256(path)}
    return about if column is None else about | {"column": column}


LEAK = LeakError.exit_code


def audit(given: Given) -> int:
    """``jaxalign audit PARTS``; 0, or 6 for a leak."""
    if given.pairs is not None:
        own = given.split or given.certificate or given.out
        if own or given.partial or given.column:
            raise UsageError("--pairs goes with --cold, --second and --max-identity")
        return audit_pairs(given)
    if given.certificate is not None:
        return verify(given.certificate, given)
    # 1 check and read, 2 parts, 3 compare, 4 say and write
    check_whole("--worst", given.worst)
    _check(given)
    job = prepare(given, ())
    chosen, scoring = wanted(job.options, given), job.read.scoring
    definition = define(scoring, chosen, "--max-identity", given.max_identity)
    where = given.parts, given.split, job, given.partial
    parts = read_parts(*where, column=given.column)
    result = compare(job, parts, definition)
    listed = audited_list(given.split, given.column)
    finish(job, result, (audited_files(given.parts, job), listed), given.out)
    return 0 if result.holds else LEAK


def audit_split(
    where: tuple[str, str | None, str | None],
    job: LinkJob,
    split: api.Split,
) -> None:
    """Audit a split that was just made, and write what was asked for.

    where : paths of the sequences, of the list, and of the certificate
    """
    path, listed, out = where
    with job.watched() as chosen:
        definition = replace(split.definition, options=wanted(chosen, job.verb))
        parts = {name: split.take(name) for name in split.names}
        removed = len(split.removed)
        checked = api.audit_of(parts, definition, removed, with_others=True)
    files = audited_files((path,), job), audited_list(listed)
    finish(job, checked, files, out, split)
    if not checked.holds:
        raise LeakError(f"{path}: {checked.heading()}")


def prepare(
    given: Given, beside: tuple[str, ...], scoring: Scoring | None = None
) -> LinkJob:
    """Options and outputs checked, inputs read."""
    delimited.check_list_format(given.leaks)
    outs = (given.out, given.report, given.leaks)
    files = (given.split, *beside)
    links.check_plot(given.plot, given.force, (*given.parts, *files), outs)
    return links.prepare(given.parts, given, outs, files, True, scoring)


def wanted(options: api.HomologyOptions, given: Given) -> api.HomologyOptions:
    """Options with how many of the worst pairs are wanted."""
    return replace(options, worst=given.worst, full_histogram=given.full_histogram)


def compare(job: LinkJob, parts: AuditedParts, definition: api.Definition) -> Audit:
    """Say what will be done, and do it."""
    sizes = ", ".join(f"{name} {len(data):,}" for name, data in parts.sets.items())
    job.messages.say(f"{sizes}; a leak: {definition}")
    with job.watched() as chosen:
        watchers = {"progress": chosen.progress, "busy": chosen.busy}
        seen = replace(definition, options=replace(definition.options, **watchers))
        return api.audit_of(parts.sets, seen, **parts.left_out, with_others=True)


def _check(request: Given) -> None:
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


def finish(
    job: LinkJob,
    result: Audit,
    files: tuple[list[dict], dict | None],
    out: str | None,
    split: api.Split | None = None,
) -> None:
    """Say and write what was found."""
    given = job.verb
    job.messages.say(links.pairs_line(result.info))
    job.messages.say(result.heading())
    if measures := result.others():
        described = "; ".join(map(str, measures))
        job.messages.say(f"by other measures, of likely pairs alone: {described}")
    if given.leaks is not None:
        links.write_table(given.leaks, result.leak_columns(), job.verb)
    about = result.certificate(*files)
    if out is not None:
        output.write_text(out, [as_json(about) + "\n"])
    if given.report is not None:
        output.write_text(given.report, [result.report(split, not given.across_only)])
    if given.plot is not None:
        from jaxalign.cli import pictures

        pictures.across(given.plot, result)
    if split is None:
        lines = [as_json(about)] if given.json else ["\n\n".join(_shown(result))]
        answer(lines)


def audit_pairs(given: Given) -> int:
    """``jaxalign audit SEQS --pairs PAIRS.tsv``; 0, or 6 for a leak."""
    parts, cut = given.parts, given.max_identity
    if len(parts) != 1 or cut is None:
        raise UsageError("--pairs needs one file of sequences, and --max-identity")
    job, table = read_pairs(parts[0], given, (), True)
    (data,), scoring = job.read.sequences, job.read.scoring
    pairs = api.named_pairs(table.pairs, data.names, given.second, table.where)
    definition = api.define(scoring, job.options, "--max-identity", cut)
    numbers = api.numbered_parts(table.parts or [], pairs)
    job.messages.say(f"{len(table.pairs):,} pairs; a leak: {definition}")
    with job.watched() as chosen:
        seen = replace(definition, options=chosen)
        result = api.audit_pairs_of(data, seen, pairs, numbers, given.cold)
    job.messages.say(links.pairs_line(result.info))
    job.messages.say(result.heading())
    for number in result.leaking.nonzero()[0][:LEAKS_SHOWN].tolist():
        a, b = table.pairs[number]
        job.messages.say(f"{table.where(number)}: {a}, {b} leaks")
    if given.json:
        answer_json({"leaks": result.leaks, "pairs": len(table.pairs)})
    return 0 if result.holds else LEAK


def read_pairs(
    path: str, given: Given, outs: tuple[str | None, ...], parts: bool
) -> tuple[LinkJob, PairList]:
    """Options checked, sequences and pairs read."""
    job = links.prepare((path,), given, outs, (given.pairs,))
    known = links.known_names(path, job.read)
    return job, delimited.read_pairs(given.pairs, known, parts)


@dataclass(frozen=True)
class CertificateFiles:
    """The files that verify a certificate, and how their letters are read."""

    parts: tuple[str, ...]
    split: str | None
    column: str | None
    unknown: str


def verify(path: str, given: Given) -> int:
    """Verify a certificate; 0, or 6 where it says that there are leaks.

    Raises
    ------
    VerificationError
        It is not what it says.
    """
    # 1 read the certificate and its files, 2 what is compared, 3 compare, 4 say
    names = ("max_identity", "link", "mode", "free_ends", "identity")
    names += ("min_length_ratio",)
    usual = all(getattr(given, name) is None for name in names) and given.filter
    usual = usual and given.worst == api.HomologyOptions().worst
    if not usual or given.scoring != ScoringOptions():
        raise UsageError(
            "--certificate has its own cut, links, scoring and --worst: leave out "
            "these options"
        )
    known = certificate.read(path)
    files = _certificate_files(path, known, given)
    # The alphabet is that of the certificate: it is not guessed from letters.
    scoring = replace(given.scoring, unknown=files.unknown, alphabet="protein")
    worst = max(len(known["worst"]), 1)
    given = changed(
        given, scoring=scoring, parts=files.parts, split=files.split, worst=worst
    )
    definition = certificate.definition_of(known, api.HomologyOptions())
    job = prepare(given, (path,), definition.scoring)
    definition = certificate.definition_of(known, wanted(job.options, given))
    names = [str(part.get("name")) for part in known["parts"]]
    where = files.parts, files.split, job, given.partial, names
    parts = read_parts(*where, files.column)
    read = _as_named(known, files, job)
    again = certificate.subject(definition, parts.sets, parts.left_out, *read)
    _compare_certificates(path, known, again, again)
    result = compare(job, parts, definition)
    finish(job, result, read, given.out)
    _compare_certificates(path, known, result.certificate(*read))
    opened = "" if files.parts == _paths(known) else "; its paths were not opened"
    job.messages.say(f"{path}: verified, the same was found again{opened}")
    return 0 if result.holds else LeakError.exit_code


def _paths(known: dict) -> tuple[str, ...]:
    return tuple(str(file["path"]) for file in known["inputs"])


def _certificate_files(path: str, known: dict, request: Given) -> CertificateFiles:
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
            check_files(parts)
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
