"""The straight line of ``jaxalign search``."""

import json

from jaxalign import api
from jaxalign.cli import inputs, job, progress, report
from jaxalign.cli.options import Options
from jaxalign.cli.request import Request, resolve
from jaxalign.database import search
from jaxalign.errors import UsageError
from jaxalign.model.statistics import parameters
from jaxalign.model.table import Table, compact


def run(query: str, database: str, top: int, worst: float | None, options) -> int:
    """``jaxalign search QUERY DB``."""
    # 1 check options, 2 read queries, 3 rehearse the output, 4 search, 5 write
    request = resolve(options, mode="local")
    _check(request, query, database, top, worst)
    messages = job.Messages(options.messages.quiet)
    hashed, alphabet = options.output.json, request.scoring.alphabet
    read = inputs.read((query,), alphabet, options.scoring, hashed, messages.warn)
    inputs.check(database)
    job.rehearse(request, read.sequences)
    devices = api.select_device(options.machine.device)
    chosen = job.settings(request, options)
    chosen.pop("output")
    tiny = api.plan(
        ["A"], ["A"], implementation=chosen["implementation"], output="score"
    )
    messages.say(_heading(request, tiny, len(read.sequences[0]), database))
    table = _search(read.sequences[0], database, top, request, options, chosen)
    if table.info.get("substituted"):
        count = table.info["substituted"]
        messages.warn(
            f"{database}: {count} unknown letters are read as {alphabet.wildcard}"
        )
    kept = compact(_filter(table, request, worst, options.mode.min_identity))
    job.write(kept, request, options.output.force)
    messages.say(_summary(table, len(kept)))
    if options.output.json:
        about = (api.describe_device(devices), messages.warnings)
        print(_as_json(request, read, database, table, len(kept), top, worst, *about))
    return 0


def _check(request: Request, query, database, top, worst) -> None:
    """What can be refused before anything is read."""
    if query == database == "-":
        raise UsageError("'-' twice: standard input can be read once")
    if top < 1:
        raise UsageError(f"--top {top}: 1 or more hits are needed")
    if request.output == "identity":
        raise UsageError("--output identity: search has score, stats and alignment")
    known = parameters(request.scoring, request.mode)
    if worst is not None and not (worst >= 0 and known):
        why = "no statistics are published for it" if not known else "0 or more"
        raise UsageError(f"--max-evalue {worst:g}: {why} ({request.scoring})")


def _search(
    queries, database, top, request: Request, options: Options, chosen
) -> Table:
    asked = options.messages
    with progress.reporting(asked.progress, asked.quiet) as tell:
        return search(
            queries, database, request.scoring, top=top,
            align_top=request.output != "score", unknown=options.scoring.unknown,
            progress=tell, **chosen,
        )  # fmt: skip


def _filter(table: Table, request: Request, worst, least) -> Table:
    """Hits within both bounds."""
    if worst is not None:
        table = table.filter(table["evalue"] <= worst)
    if least is not None:
        table = table.filter(table.identity(request.identity) >= least)
    return table


def _heading(request: Request, plan: dict, queries: int, database: str) -> str:
    ran = f"{plan['implementation']} ({plan['reason']})"
    what = f"{queries:,} queries against {database}"
    kind = f"{request.scoring.alphabet.kind} alphabet"
    return "; ".join((str(request.scoring), report.mode(request), kind, ran, what))


def _summary(table: Table, kept: int) -> str:
    info = table.info
    hits = f"{kept:,} hits" + (f" of {len(table):,}" if kept < len(table) else "")
    return (
        f"{info['sequences']:,} sequences of {info['residues']:,} residues searched; "
        f"{hits}; {info['cells']:,} cells in {info['seconds']:.2f} s, "
        f"{report.gcups(table):.3g} GCUPS"
    )


def _as_json(request, read, database, table, kept, top, worst, device, warnings) -> str:
    """One JSON object about a run."""
    counts = {name: table.info[name] for name in ("sequences", "residues")}
    target = {"path": database, "sha256": inputs.sha256(database), **counts}
    about = {
        "versions": report.versions(),
        "device": device,
        "implementation": table.implementation,
        "reason": table.info["reason"],
        "scoring": report.scoring(request.scoring),
        "mode": request.mode,
        "out": request.out,
        "format": request.format,
        "inputs": report.files(read),
        "database": target,
        "top": top,
        "max_evalue": worst,
        "hits": {"found": len(table), "kept": kept},
        "max_score": table["score"].max().item() if len(table) else None,
        "seconds": table.info["seconds"],
        "cells": table.info["cells"],
        "gcups": report.gcups(table),
        "warnings": warnings,
    }
    return json.dumps(about, indent=2)
