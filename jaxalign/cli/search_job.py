"""The straight line of ``jaxalign search``."""

import json
from dataclasses import replace

import numpy as np

from jaxalign.cli import inputs, job, nucleotides, progress, report
from jaxalign.cli.options import Options
from jaxalign.cli.request import Request, resolve
from jaxalign.database.api import SearchOptions, hits_of
from jaxalign.errors import UsageError
from jaxalign.io import output
from jaxalign.io.source import sha256
from jaxalign.model.statistics import parameters
from jaxalign.model.strands import strands_of
from jaxalign.model.table import Table, compact
from jaxalign.pairs import api


def run(
    query: str,
    database: str,
    top: int,
    worst: float | None,
    strand,
    statistics,
    profile: bool,
    options,
) -> int:
    """``jaxalign search QUERY DB``."""
    # 1 check options, 2 read queries, 3 rehearse the output, 4 search, 5 write
    request = resolve(options, mode="local")
    check(request, query, database, top, worst)
    messages = job.Messages(options.messages.quiet)
    hashed = options.output.json
    which = query, database, top, worst, profile
    request, read = read_inputs(*which, request, options, hashed, messages)
    devices = job.select_device(options)
    chosen = settings(request, options, top, worst, strand, statistics)
    messages.say(heading(request, len(read.sequences[0]), database))
    table = _search(read.sequences[0], database, request, options, chosen)
    warn_of_letters(table, database, request, messages)
    kept = compact(filtered(table, request, worst))
    job.write(kept, request, options.output.force)
    warn_of_fits(table.info, messages)
    messages.say(summary(table.info, len(table), len(kept)))
    if options.output.json:
        about = (job.device_of(table.info, devices), messages.warnings)
        print(_as_json(request, read, database, table, len(kept), top, worst, *about))
    return 0


def read_inputs(
    query, database, top, worst, profile, request: Request, options, hashed, messages
):
    """(the request, scored as the letters ask for it; the queries); what cannot be
    searched or written is refused."""
    output.check_inputs(request.out, (query, database, options.scoring.matrix))
    asked, beside = options.scoring, nucleotides.opening(database)
    about = asked, hashed, messages.warn, beside, profile
    read = inputs.read((query,), request.scoring, *about)
    inputs.check(database)
    request = replace(request, scoring=read.scoring)
    check(request, query, database, top, worst)
    job.rehearse(request, read.sequences)
    return request, read


def settings(
    request: Request, options: Options, top: int, worst, strand, statistics
) -> SearchOptions:
    """The options of the search; filters are for its table. A bound on E-values asks
    for fitted ones where none are published.

    Raises
    ------
    UsageError
        Letters that have no other strand.
    """
    chosen = request.options
    strands_of(strand, request.scoring, chosen.mode)
    known = parameters(request.scoring, chosen.mode)
    usual = "published" if known or worst is None else "fitted"
    return SearchOptions(
        mode=chosen.mode,
        free_ends=chosen.free_ends,
        top=top,
        align_top=chosen.output != "score",
        strand=strand,
        statistics=statistics or usual,
        unknown=options.scoring.unknown,
        implementation=chosen.implementation,
        memory_budget=chosen.memory_budget,
        threads=chosen.threads,
        devices=chosen.devices,
    )


def warn_of_letters(table: Table, database, request: Request, messages) -> None:
    """Letters of the database that the alphabet lacks."""
    count = table.info.get("substituted")
    if count:
        wildcard = request.scoring.alphabet.wildcard
        messages.warn(f"{database}: {count} unknown letters are read as {wildcard}")


def check(request: Request, query, database, top, worst) -> None:
    """What can be refused before anything is read."""
    if query == database == "-":
        raise UsageError("'-' twice: standard input can be read once")
    if top < 1:
        raise UsageError(f"--top {top}: 1 or more hits are needed")
    if request.options.output == "identity":
        raise UsageError("--output identity: search has score, stats and alignment")
    if not request.options.filter:
        raise UsageError("--no-filter: a search computes every score")
    if worst is not None and not worst >= 0:
        raise UsageError(f"--max-evalue {worst:g}: 0 or more is needed")
    if worst is not None and request.options.mode != "local":
        raise UsageError(f"--max-evalue {worst:g}: only local scores have E-values")


def _search(
    queries, database, request: Request, options: Options, chosen: SearchOptions
) -> Table:
    messages = options.messages
    with progress.reporting(messages.progress, messages.quiet) as tell:
        chosen = replace(chosen, progress=tell)
        return hits_of(queries, database, request.scoring, chosen)


def filtered(table: Table, request: Request, worst) -> Table:
    """Hits within all bounds."""
    if worst is not None:
        table = table.filter(table["evalue"] <= worst)
    filters = api.filters_of(request.options)
    return table.filter(filters.mask(table.columns, *table.lengths()))


def heading(request: Request, queries: int, database: str) -> str:
    """What will be done."""
    what = f"{queries:,} queries against {database}"
    kind = f"{request.scoring.alphabet.kind} alphabet"
    return "; ".join((str(request.scoring), report.mode(request), kind, what))


def summary(info: dict, found: int, kept: int) -> str:
    """What has been done."""
    hits = f"{kept:,} hits" + (f" of {found:,}" if kept < found else "")
    ran = f"{info['implementation']} ({info['reason']})"
    size = f"{info['sequences']:,} sequences of {info['residues']:,} residues"
    return (
        f"{ran}; {size} searched; "
        f"{hits}; {info['cells']:,} cells in {report.speed(info)}{report.halved(info)}"
        f"{_strands(info)}{_fitted(info)}"
    )


def _strands(info: dict) -> str:
    """Which strands were aligned, where that was a question."""
    words = {1: "plus", -1: "minus"}
    names = [words[sign] for sign in info.get("strands", ())]
    return f"; strands {' and '.join(names)}" if names else ""


def _fitted(info: dict) -> str:
    """That statistics were fitted, with medians over the queries."""
    if info.get("statistics") != "fitted":
        return ""
    known = ~np.isnan(info["lambda"])
    if not known.any():
        return "; E-values could not be fitted"
    rate, factor = (np.median(info[name][known]) for name in ("lambda", "K"))
    return f"; E-values fitted to this search, lambda {rate:.3g}, K {factor:.2g}"


def _sources(info: dict) -> dict[str, int]:
    """How many queries were fitted to what."""
    sources = [] if "fitted_to" not in info else info["fitted_to"].tolist()
    return {name: sources.count(name) for name in dict.fromkeys(sources)}


def warn_of_fits(info: dict, messages) -> None:
    """Say where E-values are not of the database itself."""
    counts = _sources(info)
    whole = sum(counts.values())
    if many := counts.get("shuffled"):
        messages.warn(
            f"E-values of {many:,} of {whole:,} queries are fitted to sequences of the "
            "database with their letters in random orders: too many of the database "
            "are related to these queries"
        )
    if many := counts.get("none"):
        messages.warn(
            f"{many:,} of {whole:,} queries have no E-values: their scores with random "
            "sequences fit no distribution"
        )


def _as_json(request, read, database, table, kept, top, worst, device, warnings) -> str:
    """One JSON object about a run."""
    about = as_dict(request, read, database, table.info, top, worst, device)
    about["hits"] = {"found": len(table), "kept": kept}
    about["max_score"] = table["score"].max().item() if len(table) else None
    return json.dumps(about | {"warnings": warnings}, indent=2)


def as_dict(request, read, database, info, top, worst, device) -> dict:
    """What is known of a run but its hits."""
    counts = {name: info[name] for name in ("sequences", "residues")}
    target = {"path": database, "sha256": sha256(database), **counts}
    return {
        "versions": report.versions(),
        "device": device,
        "implementation": info["implementation"],
        "reason": info["reason"],
        "scoring": report.scoring(request.scoring),
        "mode": request.options.mode,
        "out": request.out,
        "format": request.format,
        "inputs": report.files(read),
        "database": target,
        "top": top,
        "max_evalue": worst,
        "strands": list(info.get("strands", (1,))),
        "statistics": info.get("statistics", "published"),
        "fitted_to": _sources(info),
        "seconds": info["seconds"],
        "cells": info["cells"],
        "gcups": report.gcups(info),
        "halved_launches": info["halved_launches"],
    }
