"""The straight line of ``jaxalign search``."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from jaxalign.cli import inputs, pairs, report
from jaxalign.cli.derive import Given
from jaxalign.cli.request import Request, resolve
from jaxalign.cli.run import run
from jaxalign.cli.terminal import Messages, Report
from jaxalign.database.api import SearchOptions, hits_of
from jaxalign.errors import UsageError
from jaxalign.io import output
from jaxalign.io.source import sha256
from jaxalign.model.statistics import parameters
from jaxalign.model.strands import strands_of
from jaxalign.model.table import Table, compact
from jaxalign.options import AlignedEnds, Execution, shared
from jaxalign.pairs import api


def search(options: Given) -> int:
    """``jaxalign search QUERY DB`` into one file."""
    request, database = resolve(options, mode="local"), options.database
    check(request, options)
    messages = Messages(options.quiet)
    request, read = read_inputs(request, options, options.json, messages)
    devices = pairs.select_device(options)
    record = settings(request, options)
    (queries,), within = read.sequences, filter_of(options, request)

    def compute(progress: Report | None) -> tuple[Table, Table]:
        reported = replace(record, progress=progress)
        table = hits_of(queries, database, request.scoring, reported)
        warn_of_letters(table.info, database, request, messages)
        return table, within(table)

    def finish(tables: tuple[Table, Table]) -> Iterator[str]:
        table, rows = tables
        pairs.write(rows, request, options.force)
        warn_of_fits(table.info, messages)
        yield summary(table.info, {"found": len(table), "kept": len(rows)})

    def about(tables: tuple[Table, Table]) -> dict:
        table, rows = tables
        device = pairs.device_of(table.info, devices)
        hits = {"found": len(table), "kept": len(rows)}
        described = as_dict(request, read, options, table.info, device)
        return described | {"hits": hits, "max_score": pairs.best_score(table)}

    lines = [heading(request, len(queries), database)]
    return run(options, messages, lines, compute, finish, about)


def read_inputs(
    request: Request,
    options: Given,
    hashed: bool,
    messages: Messages,
) -> tuple[Request, inputs.Inputs]:
    """(the request, scored as the letters ask for it; the queries); what cannot be
    searched or written is refused."""
    files = options.query, options.database, options.scoring.matrix
    output.check_inputs(request.out, files)
    beside = inputs.opening(options.database)
    about = options.scoring, hashed, messages.warn, beside, options.profile
    read = inputs.read((options.query,), request.scoring, *about)
    inputs.check(options.database)
    request = replace(request, scoring=read.scoring)
    check(request, options)
    pairs.rehearse(request, read.sequences)
    return request, read


def settings(request: Request, options: Given) -> SearchOptions:
    """The options of the search; filters are for its table. A bound on E-values asks
    for fitted ones where none are published.

    Raises
    ------
    UsageError
        Letters that have no other strand.
    """
    chosen = request.options
    strands_of(options.strand, request.scoring, chosen.mode)
    known = parameters(request.scoring, chosen.mode)
    usual = "published" if known or options.max_evalue is None else "fitted"
    return SearchOptions(
        top=options.top,
        align_top=chosen.output != "score",
        strand=options.strand,
        statistics=options.statistics or usual,
        unknown=options.scoring.unknown,
        **shared(chosen, AlignedEnds, Execution),
    )


def warn_of_letters(
    info: dict, database: str, request: Request, messages: Messages
) -> None:
    """Letters of the database that the alphabet lacks."""
    wildcard = request.scoring.alphabet.wildcard
    messages.warn_of_letters(database, info.get("substituted", 0), wildcard)


def check(request: Request, search: Given) -> None:
    """Refuse what can be, before anything is read."""
    bound = search.max_evalue
    if search.query == search.database == "-":
        raise UsageError("'-' twice: standard input can be read once")
    if search.top < 1:
        raise UsageError(f"--top {search.top}: 1 or more hits are needed")
    if request.options.output == "identity":
        raise UsageError("--output identity: search has score, stats and alignment")
    if not request.options.filter:
        raise UsageError("--no-filter: a search computes every score")
    if bound is not None and not bound >= 0:
        raise UsageError(f"--max-evalue {bound:g}: 0 or more is needed")
    if bound is not None and request.options.mode != "local":
        raise UsageError(f"--max-evalue {bound:g}: only local scores have E-values")


def filter_of(search: Given, request: Request) -> Callable[[Table], Table]:
    """A function that takes the hits within all bounds out of a table."""

    def within(table: Table) -> Table:
        if search.max_evalue is not None:
            table = table.filter(table["evalue"] <= search.max_evalue)
        filters = api.filters_of(request.options)
        mask = filters.mask(table.columns, *table.lengths())
        return compact(table.filter(mask))

    return within


def heading(request: Request, queries: int, database: str) -> str:
    """A line about the search, before it begins."""
    what = f"{queries:,} queries against {database}"
    kind = f"{request.scoring.alphabet.kind} alphabet"
    return "; ".join((str(request.scoring), report.mode(request), kind, what))


def summary(info: dict, hits: dict[str, int]) -> str:
    """A line about the search, after it."""
    count, total = hits["kept"], hits["found"]
    text = f"{count:,} hits" + (f" of {total:,}" if count < total else "")
    ran = f"{info['implementation']} ({info['reason']})"
    size = f"{info['sequences']:,} sequences of {info['residues']:,} residues"
    return (
        f"{ran}; {size} searched; "
        f"{text}; {info['cells']:,} cells in {report.speed(info)}{report.halved(info)}"
        f"{report.strands(info)}{_fitted(info)}"
    )


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


def warn_of_fits(info: dict, messages: Messages) -> None:
    """Say where E-values are not of the database itself."""
    counts = _sources(info)
    total = sum(counts.values())
    if many := counts.get("shuffled"):
        messages.warn(
            f"E-values of {many:,} of {total:,} queries are fitted to sequences of the "
            "database with their letters in random orders: too many of the database "
            "are related to these queries"
        )
    if many := counts.get("none"):
        messages.warn(
            f"{many:,} of {total:,} queries have no E-values: their scores with random "
            "sequences fit no distribution"
        )


def as_dict(
    request: Request,
    read: inputs.Inputs,
    search: Given,
    info: dict,
    device: dict,
) -> dict:
    """All that is known of a run but its hits."""
    counts = {name: info[name] for name in ("sequences", "residues")}
    path = search.database
    target = {"path": path, "sha256": sha256(path), **counts}
    return {
        "device": device,
        "implementation": info["implementation"],
        "reason": info["reason"],
        "scoring": report.scoring(request.scoring),
        "mode": request.options.mode,
        "out": request.out,
        "format": request.format,
        "inputs": report.files(read),
        "database": target,
        "top": search.top,
        "max_evalue": search.max_evalue,
        "strands": list(info.get("strands", (1,))),
        "statistics": info.get("statistics", "published"),
        "fitted_to": _sources(info),
        "seconds": info["seconds"],
        "cells": info["cells"],
        "gcups": report.gcups(info),
        "halved_launches": info["halved_launches"],
    }
