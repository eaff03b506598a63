"""``jaxalign split``: of sequences, at one cut or several, or of pairs."""

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace

from jaxalign.cli import audit, links
from jaxalign.cli.audit import PART_COLUMNS
from jaxalign.cli.derive import Given, fractions, refuse
from jaxalign.cli.links import LinkJob
from jaxalign.cli.run import check_resume, place_of, run
from jaxalign.cli.terminal import Report
from jaxalign.errors import UsageError
from jaxalign.homology import api
from jaxalign.io import corpus_files, delimited, output
from jaxalign.io.runs import SavedRun
from jaxalign.model.alphabet import reading_of
from jaxalign.model.numbers import exact
from jaxalign.model.show import counted

# Options that do not go with --pairs.
OF_SEQUENCES = ("cuts", "labels", "fixed", "priority", "fasta", "certificate")
OF_SEQUENCES += ("report", "plot", "leaks", "too_large", "unlabelled")
OF_SEQUENCES += ("weights", "worst", "full_histogram", "across_only", "column")


def cuts_of(
    cut: float | None, cuts: str | None, relative: float | None = None
) -> tuple[float, ...]:
    """The cuts of ``--min-identity`` or of ``--cuts``; 0 where
    ``--min-relative-score`` is the only one."""
    if cuts is None and not (cut is None and relative is None):
        return (cut or 0.0,)
    if cut is not None:
        raise UsageError(
            "--min-identity and --cuts exclude each other: give one of them"
        )
    if cuts is None:
        raise UsageError(
            "split: --min-identity is missing: the cut, or --cuts or "
            "--min-relative-score"
        )
    values = fractions("--cuts", cuts)
    api.check_cuts("--cuts", values)
    return values


def shares_of(text: str | None) -> dict[str, float] | None:
    """ "train=0.8,test=0.2" -> names and shares."""
    if text is None:
        return None
    shares: dict[str, float] = {}
    for word in text.split(","):
        name, _, share = word.partition("=")
        try:
            value = float(share)
        except ValueError:
            raise UsageError(
                f"--parts {text}: names and shares are needed, such as "
                "train=0.8,test=0.2"
            ) from None
        if name.strip() in shares:
            raise UsageError(f"--parts {text}: {name.strip()} is given twice")
        shares[name.strip()] = value
    return shares


def split(given: Given) -> int:
    """``jaxalign split SEQS``."""
    if given.pairs is not None:
        return split_pairs(given)
    path, said = given.sequences, (given.min_identity, given.cuts)
    cuts = cuts_of(*said, given.min_relative_score)
    shares, of_series = shares_of(given.parts), given.cuts is not None
    outs = (given.out, given.certificate, given.report, given.leaks)
    audited = bool(given.certificate or given.report or given.plot or given.leaks)
    _check(given, audited)
    check_resume(given, (path,))
    audit_place = given.certificate or given.report or given.leaks
    if audit_place is not None:  # which has a state of its own
        SavedRun(audit_place, {}).is_begun(given.resume, given.force)
    beside = (given.labels, given.fixed, given.priority, given.weights)
    job = links.prepare((path,), given, outs, beside, audited)
    (data,) = job.read.sequences
    definition = links.defined(job, min(cuts), [data])
    choices = choices_of(job, shares)
    names = api.check_choices(choices, data).shares
    files = _files(path, given.fasta, names, given.force, (*outs, given.plot))
    linked = f"{len(data):,} sequences; linked: {definition}"
    chosen = hashlib.sha256(repr((choices, cuts)).encode()).hexdigest()
    place = place_of(given)
    saved, state = links.checkpoint(job, definition, {"choices": chosen}, place)

    def compute(progress: Report | None) -> list[api.Split]:
        reported = replace(definition, options=job.options_with(progress))
        return api.series_of(data, reported, choices, cuts, state)

    def finish(series: list[api.Split]) -> Iterator[str]:
        yield links.pairs_line(series[0].info)
        for result in series:
            yield _summary(result, of_series)
        columns = _columns(series) if of_series else series[0].columns()
        links.write_table(given.out, columns, given)
        if audited:
            audit.audit_split((path, given.out, given.certificate), job, series[0])
        reading = reading_of(given.scoring)
        for number, file in enumerate(files):
            members = series[0].part == number
            output.write_text(file, corpus_files.pieces(path, data, members, reading))

    def about(series: list[api.Split]) -> dict:
        shared = links.about_links(job, definition, series[0].info)
        described = _about(series, of_series)
        return shared | described | {"seed": given.seed, "audited": audited}

    evidence = links.evidence_lines(definition)
    heading = linked, definition.question(), *evidence
    heading += tuple(links.expected(definition, data))
    return run(given, job.messages, heading, compute, finish, about, saved=saved)


def _check_pairs(given: Given) -> None:
    """Refuse options of sequences beside --pairs."""
    why = (
        "--pairs goes with --min-identity, --parts, --folds, --cold, --second and "
        "--seed; jaxalign audit --pairs checks the list"
    )
    refuse(given, OF_SEQUENCES, f"about sequences: {why}")
    if not links.has_cut(given):
        raise UsageError(why)


def _check(given: Given, audited: bool) -> None:
    """Refuse options that do not go together."""
    audit.check_shown(given)
    if not (given.certificate or given.report):
        refuse(given, ("worst",), "about --certificate and --report")
    if given.labels is None:
        refuse(given, ("unlabelled",), "about the table of --labels")
    tables = (given.labels, given.fixed, given.priority, given.weights)
    if sum(x is not None for x in tables) != 1:
        why = "about one table, of --labels, --fixed, --priority or --weights"
        refuse(given, ("column",), why)
    if given.certificate and given.out is None:
        raise UsageError("--certificate describes a split in a file: add -o SPLIT.tsv")
    if given.cuts is not None and (audited or given.fasta or given.fixed):
        raise UsageError(
            "--fasta, --fixed, --certificate, --report and --plot need one split, with "
            "--min-identity; jaxalign audit --split LIST --column part_0.3 audits one "
            "of --cuts"
        )
    delimited.check_list_format(given.out)


def choices_of(job: LinkJob, shares: dict[str, float] | None) -> api.SplitChoices:
    """The choices of a split, its tables read."""
    given = job.verb
    known = links.known_names(given.sequences, job.read)
    columns = {
        "labels": ("label", "class"),
        "fixed": PART_COLUMNS,
        "priority": ("priority",),
        "weights": ("weight",),
    }
    files = {name: getattr(given, name) for name in columns}
    tables = {
        name: None
        if file is None
        else delimited.read_names(file, known, columns[name], given.column)
        for name, file in files.items()
    }
    return api.SplitChoices(
        parts=shares,
        folds=given.folds,
        seed=given.seed,
        too_large=given.too_large,
        unlabelled=given.unlabelled,
        **tables,
    )


def _summary(result: api.Split, of_series: bool) -> str:
    """Components, parts and nearness of a split."""
    components = counted(int(result.groups.max(initial=-1)) + 1, "component")
    text = f"{components}; {result.heading()}; {result.nearness()}"
    cut = f"cut {exact(result.definition.cut)}: " if of_series else ""
    return "\n".join((cut + text, *result.notes()))


def _columns(series: list[api.Split]) -> dict:
    """A row a sequence: its name, and its part at each cut."""
    columns = {"name": series[0].columns()["name"]}
    parts = {f"part_{exact(x.definition.cut)}": x.columns()["part"] for x in series}
    return columns | parts


def _about(series: list[api.Split], of_series: bool) -> dict:
    """A split as plain values; of a series under its cut."""
    rows = [
        {
            "parts": dict(zip(result.names, result.sizes.tolist(), strict=True)),
            "removed": len(result.removed),
            "components": len(set(result.groups.tolist())),
            "share_error": result.share_error,
            "label_error": result.label_error,
            "bounds": {
                name: result.info[name]
                for name in ("least_share_error", "fewest_removed", "changes")
                if name in result.info
            },
        }
        for result in series
    ]
    if not of_series:
        return rows[0]
    cuts = (exact(result.definition.cut) for result in series)
    return {"cuts": dict(zip(cuts, rows, strict=True))}


def _files(
    path: str,
    folder: str | None,
    names: Iterable[str],
    force: bool,
    outs: Iterable[str | None],
) -> list[str]:
    """The FASTA of every part in a folder, which is made.

    Raises
    ------
    UsageError
        It is no folder, or a file is there.
    """
    if folder is None:
        return []
    if os.path.realpath(folder) in map(os.path.realpath, filter(None, outs)):
        raise UsageError(f"two outputs go to the same place: {folder}")
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise UsageError(f"--fasta {folder}: is not a folder; name another one")
    files = [output.file_in(folder, name, ".fasta") for name in names]
    with output.naming(folder):
        os.makedirs(folder, exist_ok=True)
    for file in files:
        output.check(file, force)
        output.check_inputs(file, (path,))
    return files


def split_pairs(given: Given) -> int:
    """``jaxalign split SEQS --pairs PAIRS.tsv``."""
    _check_pairs(given)
    shares = shares_of(given.parts)
    how = given.folds, given.cold, given.second, given.seed
    choices = api.PairChoices(shares, *how)
    delimited.check_list_format(given.out)
    api.check_pair_choices(choices)
    check_resume(given, (given.sequences, given.pairs))
    job, table, pairs, definition = audit.read_pairs(
        given.sequences, given, (given.out,), False
    )
    (data,) = job.read.sequences
    counts = f"{len(table.pairs):,} pairs of {len(data):,} sequences"
    described = {"pairs": audit.audited_list(given.pairs), "choices": repr(choices)}
    place = place_of(given)
    saved, state = links.checkpoint(job, definition, described, place)

    def compute(progress: Report | None) -> api.PairSplit:
        reported = replace(definition, options=job.options_with(progress))
        return api.split_pairs_of(data, reported, pairs, choices, state)

    def finish(result: api.PairSplit) -> Iterator[str]:
        yield links.pairs_line(result.info)
        yield str(result).rsplit("\n", 1)[0]
        links.write_table(given.out, result.columns(), given)

    def about(result: api.PairSplit) -> dict:
        return links.about_links(job, definition, result.info) | {
            "parts": dict(zip(result.names, result.sizes.tolist(), strict=True)),
            "removed": len(result.removed),
            "most_kept": result.info.get("most_kept", len(table.pairs)),
            "cold": result.cold,
            "seed": choices.seed,
        }

    heading = [f"{counts}; near: {definition}", *links.evidence_lines(definition)]
    heading += links.expected(definition, data)
    return run(given, job.messages, heading, compute, finish, about, saved=saved)
