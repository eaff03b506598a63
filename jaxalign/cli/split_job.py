"""The straight line of ``jaxalign split``."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace

from jaxalign.cli import audit_job, link_job
from jaxalign.cli.audit_job import PART_COLUMNS
from jaxalign.cli.link_job import LinkJob
from jaxalign.cli.options import AuditOptions, ListOptions, VerbOptions
from jaxalign.cli.terminal import answer_json
from jaxalign.errors import LeakError, UsageError
from jaxalign.homology import api
from jaxalign.io import corpus_files, delimited, output
from jaxalign.io.delimited import PairList
from jaxalign.model.show import counted


@dataclass(frozen=True)
class SplitRequest:
    """The options of a split of its own; ``series`` says that each cut has a column."""

    cuts: tuple[float, ...]
    series: bool
    parts: dict[str, float] | None
    folds: int | None
    labels: str | None
    unlabelled: api.Unlabelled
    fixed: str | None
    priority: str | None
    seed: int
    too_large: api.TooLarge
    fasta: str | None
    certificate: str | None


def cuts_of(cut: float | None, cuts: str | None) -> tuple[float, ...]:
    """The cuts of ``--max-identity`` or of ``--cuts``.

    Raises
    ------
    UsageError
    """
    if cut is not None and cuts is None:
        return (cut,)
    if cut is not None or cuts is None:
        raise UsageError("--max-identity or --cuts is needed, and not both")
    try:
        values = tuple(float(word) for word in cuts.split(","))
    except ValueError:
        raise UsageError(f"--cuts {cuts}: fractions are needed, as 0.3,0.5") from None
    api.check_cuts("--cuts", values)
    return values


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
    outs = (listed.out, request.certificate, audit.report, audit.leaks)
    wanted = bool(request.certificate or audit.report or audit.plot or audit.leaks)
    _check(request, listed, wanted)
    beside = (request.labels, request.fixed, request.priority)
    link_job.check_plot(audit.plot, listed.force, (path, *beside), outs)
    job = link_job.prepare((path,), options, outs, listed.force, beside, wanted)
    cut, (data,) = min(request.cuts), job.read.sequences
    definition = api.define(job.read.scoring, job.options, "--max-identity", cut)
    choices = choices_of(path, request, job)
    names = api.check_choices(choices, data).shares
    files = _files(path, request.fasta, names, listed.force)
    job.messages.say(f"{len(data):,} sequences; linked: {definition}")
    job.messages.say(definition.question())
    with job.watched() as chosen:
        seen = replace(definition, options=chosen)
        series = api.series_of(data, seen, choices, request.cuts)
    job.messages.say(link_job.pairs_line(series[0].info))
    for result in series:
        _say(result, job, request.series)
    columns = _columns(series) if request.series else series[0].columns()
    link_job.write_table(listed.out, columns, options)
    for number, file in enumerate(files):
        members = series[0].part == number
        output.write_text(file, corpus_files.pieces(path, data, members))
    if wanted:
        where = path, listed.out, request.certificate
        audit_job.audit_split(where, job, series[0], audit)
    about = _about(series, request) | {"seed": request.seed, "audited": wanted}
    link_job.say_json(job, definition, series[0].info, about)
    return 0


def check_pairs(
    tables: tuple[str | None, ...],
    audit: AuditOptions,
    max_identity: float | None,
    too_large: str,
    unlabelled: str,
) -> None:
    """Refuse options of sequences beside --pairs.

    Raises
    ------
    UsageError
    """
    usual = (too_large, unlabelled) == ("error", "error") and audit == AuditOptions()
    if any(x is not None for x in tables) or not usual or max_identity is None:
        raise UsageError(
            "--pairs goes with --max-identity, --parts, --folds, --cold, --second and "
            "--seed; other options of split are about sequences, and jaxalign audit "
            "--pairs checks the list"
        )


def _check(request: SplitRequest, listed: ListOptions, audited: bool) -> None:
    """Refuse options that do not go together."""
    if request.certificate and listed.out is None:
        raise UsageError("--certificate is of a list in a file: -o SPLIT.tsv is needed")
    if request.series and (audited or request.fasta or request.fixed):
        raise UsageError(
            "--fasta, --fixed, --certificate, --report and --plot are of one split, "
            "with --max-identity; jaxalign audit --split LIST --column part_0.3 audits "
            "one of --cuts"
        )
    delimited.check_list_format(listed.out)


def choices_of(path: str, request: SplitRequest, job: LinkJob) -> api.SplitChoices:
    """The choices of a split, its tables read."""
    known = link_job.known_names(path, job.read)
    columns = {
        "labels": ("label", "class"),
        "fixed": PART_COLUMNS,
        "priority": ("priority",),
    }
    tables = {
        name: None if file is None else delimited.read_names(file, known, columns[name])
        for name in columns
        for file in [getattr(request, name)]
    }
    return api.SplitChoices(
        parts=request.parts,
        folds=request.folds,
        seed=request.seed,
        too_large=request.too_large,
        unlabelled=request.unlabelled,
        **tables,
    )


def _say(result: api.Split, job: LinkJob, of_series: bool) -> None:
    """Say how a split came out."""
    components = counted(int(result.groups.max(initial=-1)) + 1, "component")
    text = f"{components}; {result.heading()}; {result.nearness()}"
    cut = f"cut {result.definition.cut:g}: " if of_series else ""
    job.messages.say("\n".join((cut + text, *result.notes())))


def _columns(series: list[api.Split]) -> dict:
    """A row a sequence: its name, and its part at each cut."""
    columns = {"name": series[0].columns()["name"]}
    parts = {f"part_{x.definition.cut:.15g}": x.columns()["part"] for x in series}
    return columns | parts


def _about(series: list[api.Split], request: SplitRequest) -> dict:
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
    if not request.series:
        return rows[0]
    cuts = (f"{result.definition.cut:.15g}" for result in series)
    return {"cuts": dict(zip(cuts, rows, strict=True))}


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


# ------------------------------------------------------------------------------
# The straight lines of ``jaxalign split --pairs`` and ``jaxalign audit --pairs``.


@dataclass(frozen=True)
class PairsRequest:
    """The options of pairs: their table, what they share, what its second column is."""

    pairs: str
    cold: api.Cold
    second: api.Second


def split_pairs(
    path: str,
    request: PairsRequest,
    max_identity: float | None,
    choices: api.PairChoices,
    listed: ListOptions,
    options: VerbOptions,
) -> int:
    """``jaxalign split SEQS --pairs PAIRS.tsv``."""
    # 1 check and read, 2 say what will be done, 3 split, 4 write
    delimited.check_list_format(listed.out)
    api.check_pair_choices(choices)
    job, table = _read_pairs(path, request, (listed.out,), listed.force, options, False)
    (data,) = job.read.sequences
    pairs = api.named_pairs(table.pairs, data.names, request.second, table.where)
    cut, scoring = max_identity, job.read.scoring
    definition = api.define(scoring, job.options, "--max-identity", cut)
    said = f"{len(table.pairs):,} pairs of {len(data):,} sequences"
    job.messages.say(f"{said}; near: {definition}")
    with job.watched() as chosen:
        seen = replace(definition, options=chosen)
        result = api.split_pairs_of(data, seen, pairs, choices)
    job.messages.say(link_job.pairs_line(result.info))
    job.messages.say(str(result).rsplit("\n", 1)[0])
    link_job.write_table(listed.out, result.columns(), options)
    about = {
        "parts": dict(zip(result.names, result.sizes.tolist(), strict=True)),
        "removed": len(result.removed),
        "most_kept": result.info.get("most_kept", len(table.pairs)),
        "cold": result.cold,
        "seed": choices.seed,
    }
    link_job.say_json(job, definition, result.info, about)
    return 0


def audit_pairs(
    parts: tuple[str, ...],
    request: PairsRequest,
    max_identity: float | None,
    options: VerbOptions,
) -> int:
    """``jaxalign audit SEQS --pairs PAIRS.tsv``; 0, or 6 for a leak."""
    if len(parts) != 1 or max_identity is None:
        raise UsageError("--pairs needs one file of sequences, and --max-identity")
    job, table = _read_pairs(parts[0], request, (), False, options, True)
    (data,) = job.read.sequences
    pairs = api.named_pairs(table.pairs, data.names, request.second, table.where)
    scoring = job.read.scoring
    definition = api.define(scoring, job.options, "--max-identity", max_identity)
    numbers = api.numbered_parts(table.parts or [], pairs)
    job.messages.say(f"{len(table.pairs):,} pairs; a leak: {definition}")
    with job.watched() as chosen:
        seen = replace(definition, options=chosen)
        result = api.audit_pairs_of(data, seen, pairs, numbers, request.cold)
    job.messages.say(link_job.pairs_line(result.info))
    job.messages.say(result.heading())
    for number in result.leaking.nonzero()[0][:SHOWN].tolist():
        a, b = table.pairs[number]
        job.messages.say(f"{table.where(number)}: {a}, {b} leaks")
    if options.summary.json:
        answer_json({"leaks": result.leaks, "pairs": len(table.pairs)})
    return 0 if result.holds else LeakError.exit_code


SHOWN = 10  # leaking pairs


def _read_pairs(
    path: str,
    request: PairsRequest,
    outs: tuple[str | None, ...],
    force: bool,
    options: VerbOptions,
    parts: bool,
) -> tuple[LinkJob, PairList]:
    """Options checked, sequences and pairs read."""
    job = link_job.prepare((path,), options, outs, force, (request.pairs,))
    known = link_job.known_names(path, job.read)
    return job, delimited.read_pairs(request.pairs, known, parts)
