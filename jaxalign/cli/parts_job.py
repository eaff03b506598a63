"""``jaxalign all SEQS -o FOLDER/``: parts that are finished stay finished."""

import re
from contextlib import closing
from dataclasses import replace

from jaxalign.cli import job, progress, report
from jaxalign.cli.options import FolderOptions, Options
from jaxalign.cli.request import Request, resolve
from jaxalign.errors import UsageError
from jaxalign.io import dataset, part_files
from jaxalign.pairs import api, large_jobs


def wanted(options: Options, folder: FolderOptions) -> bool:
    """Whether the result is to be a folder of parts."""
    out = options.output.out or ""
    asked = folder.resume or folder.shard is not None or folder.part_rows is not None
    return asked or out.endswith("/") or (out != "-" and dataset.is_dataset(out))


def run(
    path: str, options: Options, folder: FolderOptions, include_self: bool, cluster
) -> int:
    """Compute the parts that are not there, and write each when it is done."""
    # 1 check options, 2 read, 3 open the folder, 4 plan, 5 align and write by parts
    request = resolve(options, folder=True)
    shard = shard_of(folder.shard)
    messages = job.Messages(options.messages.quiet)
    request, read = job.read_inputs((path,), request, options, True, messages)
    job.rehearse(request, read.sequences)
    devices = job.select_device(options)
    which = {"include_self": include_self, "part_rows": folder.part_rows}
    some = large_jobs.parts_all(read.sequences[0], **which)
    manifest = manifest_of(request, read, include_self, some)
    force = options.output.force and shard is None
    dataset.begin(request.out, manifest, folder.resume, force, shard is not None)
    mine = large_jobs.share(some, shard)
    done = finished(request.out, manifest, mine, folder.resume, messages)
    chosen = replace(request.options, **which)
    if cluster:  # which chooses by itself
        chosen = replace(chosen, devices=options.machine.devices)
    plan = api.plan_of(
        read.sequences[0], None, request.scoring, replace(chosen, parts=True)
    )
    job.introduce(request, plan, options, messages)
    messages.say(f"{len(mine):,} of {len(some):,} parts, {len(done):,} finished before")
    chosen = replace(chosen, skip=done, shard=shard, cluster=cluster)
    info, rows = _compute(plan, request, manifest, options, chosen)
    job.finish(request, read, plan | info, rows, options, devices, messages)
    return 0


def finished(path: str, manifest, parts, resume: bool, messages) -> list[int]:
    """Those of some parts that need not be computed.

    Raises
    ------
    UsageError
        There are some, and nobody asked to go on.
    """
    done, lines = part_files.finished(path, manifest, parts)
    if done and not resume:
        raise UsageError(f"{path}: {len(done):,} parts exist; use --resume to go on")
    for line in lines:
        messages.warn(line)
    return done


def shard_of(text: str | None) -> tuple[int, int] | None:
    """ "2/16" -> (2, 16)."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,99})/(\d{1,99})", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise UsageError(f"--shard {text}: K/N with K from 1 to N is needed")
    return int(found[1]), int(found[2])


def _compute(plan, request: Request, manifest, options, chosen):
    """Align and write; what was computed, and what of it was kept."""
    info = {"pairs": 0, "cells": 0, "seconds": 0.0, "halved_launches": 0}
    rows = {"kept": 0, "max_score": None}
    asked = options.messages
    with progress.reporting(asked.progress, asked.quiet) as tell:
        written = large_jobs.WRITERS, manifest, request.columns, request.identity
        chosen = job.watched(chosen, tell)
        stream = large_jobs.stream_parts(plan.task, plan.parts, chosen)
        with closing(stream), dataset.writing(request.out, *written) as write:
            for part, table in stream:
                write(table, part)
                info = _more_info(info, table.info)
                rows = _more(rows, table)
    return info, rows


def _more_info(info: dict, more: dict) -> dict:
    """What was computed, a part later."""
    names = {*info, "aligned_pairs", "aligned_cells"} & {*more} - {"excluded"}
    summed = {name: info.get(name, 0) + more[name] for name in names}
    if "excluded" in more:
        counts = info.get("excluded", {})
        summed["excluded"] = api.added(counts, more["excluded"])
    return summed


def _more(rows: dict, table) -> dict:
    """Rows kept and the best score, a part later."""
    best = (rows["max_score"], job.best_score(table))
    best = max((score for score in best if score is not None), default=None)
    return {"kept": rows["kept"] + len(table), "max_score": best}


def manifest_of(request: Request, read, include_self: bool, some) -> dict:
    """What the rows of a result depend on."""
    about = {"format": "jaxalign parts, 1", "include_self": include_self}
    about |= {"rows": some[-1].stop}
    about |= {"parts_sha256": report.digest([part.stop for part in some])}
    return about | depends(request, read, some)


def depends(request: Request, read, some) -> dict:
    """What rows of whatever parts depend on."""
    return {
        "inputs": [
            {"sha256": digest, "records": len(sequences), "substituted": count}
            for digest, sequences, count in zip(
                read.hashes, read.sequences, read.substituted, strict=True
            )
        ],
        "scoring": report.scoring(request.scoring)
        | {"scores_sha256": report.digest(request.scoring.scores)},
        "mode": request.options.mode,
        "free_ends": report.free_ends(request),
        "output": request.options.output,
        "identity": request.identity,
        "columns": list(request.columns) if request.columns else None,
        "filters": request.filters,
        "parts": len(some),
        "jaxalign": report.versions()["jaxalign"],
        "versions": report.versions(),
    }
