"""``jaxalign search``: options -> inputs -> hits -> files."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from jaxalign.cli import inputs, pairs, parts, report
from jaxalign.cli.derive import Given
from jaxalign.cli.request import Request, check_identity, resolve, wants_folder
from jaxalign.cli.run import check_outputs, run
from jaxalign.cli.terminal import Messages, Report
from jaxalign.database.api import (
    SearchOptions,
    check_hsps,
    hits_by_parts,
    hits_of,
    in_memory,
    parts_search,
    residues_about,
)
from jaxalign.errors import UsageError
from jaxalign.io import corpus_files, output
from jaxalign.model.alphabet import NUCLEIC, reading_of
from jaxalign.model.show import counted
from jaxalign.model.source import is_stream, sha256
from jaxalign.model.statistics import parameters
from jaxalign.model.strands import strands_of
from jaxalign.model.table import Table, compact
from jaxalign.options import AlignedEnds, Execution, shared
from jaxalign.pairs import api

# Figures, how many hits are found and kept, and unless they are written by parts, the
# rows and the best score.
Found = tuple[dict, dict[str, int], Table | None, Any]


def search(given: Given) -> int:
    """``jaxalign search QUERY DB``, into a folder or one file."""
    folder, database = wants_folder(given), given.database
    request = resolve(given, mode="local", folder=folder)
    check(request, given)
    if folder and not os.path.isfile(database):
        if not is_stream(database):
            inputs.check(database)
        raise UsageError(
            f"{database}: a result in parts reads the database several times; give a "
            "file"
        )
    messages, hashed = Messages(given.quiet), given.json or folder
    request, read = read_inputs(request, given, hashed, messages)
    devices, (queries,) = pairs.select_device(given), read.sequences
    record, within = settings(request, given), filter_of(given, request)
    heading = [_heading(request, len(queries), given)]
    strands = strands_of(given.strand, request.scoring, request.options.mode) or (1,)
    letters = len(queries.codes) * len(strands) * residues_about(database)
    heading += report.expected(letters, "score", request.options)

    def in_one(progress: Report | None) -> Found:
        reported = replace(record, progress=progress)
        table = hits_of(queries, database, request.scoring, reported)
        rows = within(table)
        hits = {"found": len(table), "kept": len(rows)}
        return table.info, hits, rows, parts.best_score(table)

    compute = in_one
    if folder:
        opened, stream = _in_parts(request, read, given, record, messages)
        heading.append(str(opened))

        def by_parts(progress: Report | None) -> Found:
            also = parts.OF_A_SEARCH
            info, rows = parts.written(stream(progress), opened, within, also)
            hits = {name: rows[name] for name in ("found", "kept")}
            return parts.NO_HIT | info, hits, None, None

        compute = by_parts

    def finish(result: Found) -> Iterator[str]:
        info, hits, rows, _ = result
        count, wildcard = info.get("substituted", 0), request.scoring.alphabet.wildcard
        messages.warn_of_letters(database, count, wildcard)
        if rows is not None:
            pairs.write(rows, request, given.force)
        _warn_of_fits(info, messages)
        yield _summary(info, hits)

    def about(result: Found) -> dict:
        info, hits, rows, score = result
        device = pairs.device_of(info, devices)
        described = _as_dict(request, read, given, info, device) | {"hits": hits}
        best = {} if rows is None else {"max_score": score}
        return described | best

    return run(given, messages, heading, compute, finish, about)


def _in_parts(
    request: Request,
    read: inputs.Inputs,
    given: Given,
    record: SearchOptions,
    messages: Messages,
) -> tuple[parts.PartsFolder, Callable[[Report | None], Iterator]]:
    """(the folder, a function that searches for the parts that it lacks)."""
    (queries,), database = read.sequences, given.database
    index = in_memory(database, request.scoring)
    size = given.top, given.part_rows
    pieces = parts_search(queries, index, database, *size)
    manifest = {
        "format": "jaxalign search parts, 1",
        "database": {"sha256": sha256(database)},
        **reading_of(given.scoring).said(),
        "top": given.top,
        "hsps": given.hsps,
        "max_evalue": given.max_evalue,
        "parts_sha256": report.digest([part.last for part in pieces]),
    }
    manifest |= parts.manifest(request, read, pieces)
    manifest |= {"strand": given.strand, "statistics": given.statistics}
    opened = parts.opened_folder(request, manifest, pieces, given, messages)
    shares = {"part_rows": given.part_rows, "skip": opened.skip, "shard": given.shard}
    source = database if index is None else index

    def stream(progress: Report | None) -> Iterator:
        chosen = replace(record, progress=progress, **shares)
        return hits_by_parts(queries, source, request.scoring, chosen)

    return opened, stream


def read_inputs(
    request: Request,
    options: Given,
    hashed: bool,
    messages: Messages,
) -> tuple[Request, inputs.Inputs]:
    """(the request, scored as the letters ask for it; the queries); what cannot be
    searched or written is refused."""
    files = options.query, options.database, options.scoring.matrix
    if request.folder:
        output.check_inputs(request.out, files)
    else:
        check_outputs(options, request.out, (), files)
    beside = [(options.database, corpus_files.opening(options.database))]
    about = options.scoring, hashed, messages, beside, options.profile
    kinds: Any = {"local": request.options.mode == "local", "as_given": False}
    read = inputs.read((options.query,), request.scoring, *about, **kinds)
    inputs.check(options.database)
    request = replace(request, scoring=read.scoring)
    check(request, options)
    pairs.rehearse(request, read.sequences)
    check_identity(options, request, False)
    return request, read


def settings(request: Request, options: Given) -> SearchOptions:
    """The options of the search; filters are for its table. A bound on E-values asks
    for fitted ones where none are published, as further alignments do.

    Raises
    ------
    UsageError
        Letters that have no other strand, or further alignments that there are not.
    """
    chosen = request.options
    strands_of(options.strand, request.scoring, chosen.mode)
    known = parameters(request.scoring, chosen.mode)
    bounded = options.max_evalue is not None or options.hsps > 1
    usual = "fitted" if bounded and not known else "published"
    record = SearchOptions(
        top=options.top,
        hsps=options.hsps,
        align_top=chosen.output != "score",
        strand=options.strand,
        statistics=options.statistics or usual,
        **reading_of(options.scoring)._asdict(),
        **shared(chosen, AlignedEnds, Execution),
    )
    check_hsps(record, request.scoring)
    return record


def check(request: Request, search: Given) -> None:
    """Refuse what can be, before anything is read."""
    bound = search.max_evalue
    if search.query == search.database == "-":
        raise UsageError(
            "'-' is given twice, and standard input can be read only once: name a file"
        )
    if search.top < 1:
        raise UsageError(f"--top {search.top}: 1 or more hits are needed")
    if request.options.output == "identity":
        raise UsageError("--output identity: search has score, stats and alignment")
    if not request.options.filter:
        raise UsageError("--no-filter has no effect: a search computes every score")
    if bound is not None and not bound >= 0:
        raise UsageError(f"--max-evalue {bound:g}: 0 or more is needed")
    if bound is not None and request.options.mode != "local":
        raise UsageError(f"--max-evalue {bound:g}: only local scores have E-values")


def filter_of(search: Given, request: Request) -> Callable[[Table], Table]:
    """A function that takes the hits within all bounds out of a table."""

    filters, bound = api.filters_of(request.options), search.max_evalue
    cuts = filters.cuts if bound is None else (*filters.cuts, bound)

    def within(table: Table) -> Table:
        if bound is not None:
            table = table.filter(table["evalue"] <= bound)
        mask = filters.mask(table.columns, *table.lengths())
        return replace(compact(table.filter(mask)), cuts=cuts)

    return within


def _heading(request: Request, queries: int, given: Given) -> str:
    """A line about the search, before it begins."""
    what = f"{queries:,} quer{'y' if queries == 1 else 'ies'} against {given.database}"
    scoring, mode = request.scoring, request.options.mode
    kind = f"{scoring.alphabet.kind} alphabet"
    if scoring.alphabet.kind in NUCLEIC and not strands_of(given.strand, scoring, mode):
        kind += ", plus strands (--strand both: both)"
    return "; ".join((str(request.scoring), report.mode(request), kind, what))


def _summary(info: dict, hits: dict[str, int]) -> str:
    """A line about the search, after it."""
    count, total = hits["kept"], hits["found"]
    text = counted(count, "hit") + (f" of {total:,}" if count < total else "")
    ran = f"{info['implementation']} ({info['reason']})"
    size = f"{info['sequences']:,} sequences of {info['residues']:,} residues"
    fitted = ""
    if info.get("statistics") == "fitted":  # medians over the queries
        known = ~np.isnan(info["lambda"])
        fitted = "; E-values could not be fitted"
        if known.any():
            rate, factor = (np.median(info[name][known]) for name in ("lambda", "K"))
            fitted = "; E-values fitted to this search, "
            fitted += f"lambda {rate:.3g}, K {factor:.2g}"
    return (
        f"{ran}; {size} searched; "
        f"{text}; {info['cells']:,} cells in {report.speed(info)}{report.halved(info)}"
        f"{report.strands(info)}{fitted}"
    )


def _sources(info: dict) -> dict[str, int]:
    """How many queries were fitted to what."""
    sources = [] if "fitted_to" not in info else info["fitted_to"].tolist()
    return {name: sources.count(name) for name in dict.fromkeys(sources)}


def _warn_of_fits(info: dict, messages: Messages) -> None:
    """Say where E-values are not of the database itself."""
    counts = _sources(info)
    total = sum(counts.values())
    if many := counts.get("shuffled"):
        messages.warn(
            f"E-values of {many:,} of {total:,} queries are fitted to shuffled "
            "sequences of the database, because too many of its sequences are related "
            "to these queries"
        )
    if many := counts.get("none"):
        messages.warn(
            f"{many:,} of {total:,} queries have no E-values: their scores with random "
            "sequences fit no distribution"
        )


def _as_dict(
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
        "output": request.options.output,
        "identity": request.identity,
        "filters": request.filters,
        "out": request.out,
        "format": request.format,
        "inputs": report.files(read),
        "database": target,
        "top": search.top,
        "hsps": search.hsps,
        "max_evalue": search.max_evalue,
        "strands": list(info.get("strands", (1,))),
        "statistics": info.get("statistics", "published"),
        "fitted_to": _sources(info),
        "seconds": info["seconds"],
        "cells": info["cells"],
        "gcups": report.gcups(info),
        "halved_launches": info["halved_launches"],
    }
