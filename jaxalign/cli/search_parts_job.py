"""``jaxalign search QUERY DB -o FOLDER/``: parts that are finished stay finished."""

import json
import os
from contextlib import closing
from dataclasses import replace

import numpy as np

from jaxalign.cli import inputs, job, parts_job, progress, report, search_job
from jaxalign.cli.options import FolderOptions, Options
from jaxalign.cli.request import Request, resolve
from jaxalign.database import large_searches
from jaxalign.database.api import in_memory
from jaxalign.errors import UsageError
from jaxalign.io import dataset
from jaxalign.io.source import sha256
from jaxalign.model.table import compact
from jaxalign.pairs import large_jobs


def run(
    query,
    database,
    top,
    worst,
    strand,
    statistics,
    profile: bool,
    options: Options,
    folder: FolderOptions,
) -> int:
    """Search for the queries of the parts that are not there; write each part."""
    # 1 check options, 2 read queries, 3 open the folder, 4 search and write by parts
    request = resolve(options, mode="local", folder=True)
    search_job.check(request, query, database, top, worst)
    _check_file(database)
    shard = parts_job.shard_of(folder.shard)
    messages = job.Messages(options.messages.quiet)
    which = query, database, top, worst, profile
    request, read = search_job.read_inputs(*which, request, options, True, messages)
    devices = job.select_device(options)
    queries, held = read.sequences[0], in_memory(database, request.scoring)
    some = large_searches.parts_search(queries, held, database, top, folder.part_rows)
    manifest = manifest_of(request, read, database, top, worst, options, some)
    manifest |= {"strand": strand, "statistics": statistics}
    force = options.output.force and shard is None
    dataset.begin(request.out, manifest, folder.resume, force, shard is not None)
    mine = large_jobs.share(some, shard)
    done = parts_job.finished(request.out, manifest, mine, folder.resume, messages)
    chosen = search_job.settings(request, options, top, worst, strand, statistics)
    messages.say(search_job.heading(request, len(queries), database))
    messages.say(f"{len(mine):,} of {len(some):,} parts, {len(done):,} finished before")
    which = {"part_rows": folder.part_rows, "skip": done, "shard": shard}
    source = database if held is None else held
    stream = (queries, source, request.scoring, replace(chosen, **which))
    info, hits = _search(stream, request, manifest, worst, options, messages, database)
    search_job.warn_of_fits(info, messages)
    messages.say(search_job.summary(info, hits["found"], hits["kept"]))
    if options.output.json:
        about = top, worst, job.device_of(info, devices)
        found = search_job.as_dict(request, read, database, info, *about)
        print(
            json.dumps(found | {"hits": hits, "warnings": messages.warnings}, indent=2)
        )
    return 0


def _check_file(database: str) -> None:
    if not os.path.isfile(database):
        inputs.check(database)
        raise UsageError(f"{database}: parts need a file, which can be read again")


SUMS = ("seconds", "cells", "halved_launches")
NOTHING = dict.fromkeys((*SUMS, "sequences", "residues"), 0)
NOTHING |= {"implementation": "", "reason": ""}


def _search(stream, request: Request, manifest, worst, options, messages, database):
    """Search and write; what was done, and how many hits."""
    info, hits = dict(NOTHING), {"found": 0, "kept": 0}
    *sets, chosen = stream
    asked, written = options.messages, (manifest, request.columns, request.identity)
    with progress.reporting(asked.progress, asked.quiet) as tell:
        chosen = replace(chosen, progress=tell)
        found = large_searches.hits_by_parts(*sets, chosen)
        with closing(found):
            for part, table in found:
                if not info["cells"]:
                    search_job.warn_of_letters(table, database, request, messages)
                kept = compact(search_job.filtered(table, request, worst))
                dataset.write_part(kept, request.out, part, *written)
                info = _more(info, table.info)
                hits["found"] += len(table)
                hits["kept"] += len(kept)
    return info, hits


def _more(info: dict, part: dict) -> dict:
    """What is known of a run, a part later."""
    same = ("sequences", "residues", "implementation", "reason")
    added = {name: info[name] + part[name] for name in SUMS}
    fits = {x: part[x] for x in ("statistics", "strands") if x in part}
    for name in ("lambda", "K", "fitted_to"):  # one a query of a part
        if name in part:
            fits[name] = np.concatenate([info.get(name, part[name][:0]), part[name]])
    return {name: part[name] for name in same} | added | fits


def manifest_of(request: Request, read, database, top, worst, options, some) -> dict:
    """What the rows of a result depend on."""
    about = {
        "format": "jaxalign search parts, 1",
        "database": {"sha256": sha256(database)},
        "unknown": options.scoring.unknown,
        "top": top,
        "max_evalue": worst,
        "parts_sha256": report.digest([part.last for part in some]),
    }
    return about | parts_job.depends(request, read, some)
