"""``jaxalign all`` and ``jaxalign search`` with ``-o FOLDER/``: results part by part.

Parts that are finished stay finished, and ``--resume`` completes the others. A large
file of Parquet is written part by part, too, while the next ones are computed.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jaxalign.cli import inputs, pairs, report, search, terminal
from jaxalign.cli.derive import Given
from jaxalign.cli.inputs import Inputs
from jaxalign.cli.request import Request, resolve, wants_folder
from jaxalign.cli.run import run
from jaxalign.cli.terminal import Messages, Report
from jaxalign.database.api import hits_by_parts, in_memory, parts_search
from jaxalign.errors import UsageError
from jaxalign.io import formats
from jaxalign.io.runs import SavedRun
from jaxalign.io.source import sha256
from jaxalign.model.table import Table
from jaxalign.pairs import api, jobs
from jaxalign.pairs.jobs import Part

SUMMED = ("pairs", "cells", "aligned_pairs", "aligned_cells", "seconds")
SUMMED += ("halved_launches",)
# Of a search: the last of each, or joined where there is one a query.
OF_A_SEARCH = ("sequences", "residues", "implementation", "reason", "substituted")
OF_A_SEARCH += ("statistics", "strands", "lambda", "K", "fitted_to")
NO_PART = dict.fromkeys(("pairs", "cells", "halved_launches"), 0) | {"seconds": 0.0}
NO_HIT = dict.fromkeys(("sequences", "residues"), 0) | {
    "implementation": "",
    "reason": "",
}


@dataclass(frozen=True, eq=False)
class PartsFolder:
    """A folder of parts that this run completes.

    Attributes
    ----------
    request, run, shard : where and how its parts are written
    count : int
        Parts in all.
    mine : int
        Parts of this shard.
    skip : list of int
        Those of them that are finished.
    """

    request: Request
    run: SavedRun
    shard: tuple[int, int] | None
    count: int
    mine: int
    skip: list[int]

    def __str__(self) -> str:
        finished = f"{len(self.skip):,} finished before"
        return f"{self.mine:,} of {self.count:,} parts, {finished}"


def all_pairs(options: Given) -> int:
    """``jaxalign all SEQS``, into a folder or one file."""
    if not wants_folder(options):
        return pairs.all_pairs(options, one_file)
    if options.plot or options.dendrogram:
        raise UsageError("a picture is of a result in one piece, not of a folder")
    # 1 check options, 2 read, 3 open the folder, 4 plan, 5 align and write by parts
    request = resolve(options, folder=True)
    include_self, shard = options.include_self, options.shard
    messages, path = Messages(options.quiet), options.sequences
    request, read = pairs.read_inputs((path,), request, options, True, messages)
    pairs.rehearse(request, read.sequences)
    devices = pairs.select_device(options)
    which = {"include_self": include_self, "part_rows": options.part_rows}
    parts = jobs.parts_all(read.sequences[0], **which)
    manifest = manifest_of_pairs(request, read, include_self, parts)
    opened = opened_folder(request, manifest, parts, options, messages)
    chosen = replace(request.options, **which)
    if options.cluster:  # which chooses by itself
        chosen = replace(chosen, devices=options.devices)
    plan = api.plan_of(
        read.sequences[0], None, request.scoring, replace(chosen, parts=True)
    )
    pairs.introduce(request, plan, options, messages)
    messages.say(str(opened))
    chosen = replace(chosen, skip=opened.skip, shard=shard, cluster=options.cluster)
    with terminal.reporting(options.progress, options.quiet) as tell:
        chosen = pairs.watched(chosen, tell)
        stream = jobs.stream_parts(plan.task, plan.parts, chosen)
        info, rows = written(stream, opened)
    pairs.finish(request, read, plan | info, rows, options, devices, messages)
    return 0


def one_file(
    request: Request,
    read: Inputs,
    chosen: api.PairOptions,
    options: Given,
    devices: list,
    messages: Messages,
) -> int:
    """``jaxalign all SEQS -o FILE.parquet``, planned and written part by part."""
    (sequences,) = read.sequences
    rows_of_part = jobs.rows_at_once(len(sequences))
    in_parts = replace(chosen, parts=True, part_rows=rows_of_part)
    plan = api.plan_sets(sequences, scoring=request.scoring, options=in_parts)
    pairs.introduce(request, plan, options, messages)
    info, rows = {}, {}

    def compute(write: Callable[[Table], None]) -> None:
        with terminal.reporting(options.progress, options.quiet) as tell:
            watched = pairs.watched(chosen, tell)
            stream: Any = jobs.stream_parts(plan.task, plan.parts, watched)
            with closing(stream):
                new = _passed_on(stream, lambda table, _part: write(table))
        info.update(new[0])
        rows.update(new[1])

    assert request.out is not None, "standard output is no Parquet"
    about = request.columns, request.identity, options.force
    formats.write_while(request.out, *about, compute)
    pairs.finish(request, read, plan | info, rows, options, devices, messages)
    return 0


def search_database(options: Given) -> int:
    """``jaxalign search QUERY DB``, into a folder or one file."""
    if not wants_folder(options):
        return search.search(options)
    # 1 check options, 2 read queries, 3 open the folder, 4 search and write by parts
    request, database = resolve(options, mode="local", folder=True), options.database
    search.check(request, options)
    if not os.path.isfile(database):
        inputs.check(database)
        raise UsageError(f"{database}: parts need a file, which can be read again")
    messages = Messages(options.quiet)
    request, read = search.read_inputs(request, options, True, messages)
    devices = pairs.select_device(options)
    queries, index = read.sequences[0], in_memory(database, request.scoring)
    size = options.top, options.part_rows
    parts = parts_search(queries, index, database, *size)
    manifest = manifest_of_search(request, read, options, parts)
    opened = opened_folder(request, manifest, parts, options, messages)
    record = search.settings(request, options)
    record = replace(record, part_rows=size[1], skip=opened.skip, shard=options.shard)
    source = database if index is None else index

    def compute(progress: Report | None) -> tuple[dict, dict]:
        sides = queries, source, request.scoring
        stream = hits_by_parts(*sides, replace(record, progress=progress))
        within = search.filter_of(options, request)
        info, rows = written(stream, opened, within, OF_A_SEARCH)
        hits = {"found": rows["found"], "kept": rows["kept"]}
        return NO_HIT | info, hits

    def finish(result: tuple[dict, dict]) -> Iterator[str]:
        info, hits = result
        search.warn_of_letters(info, database, request, messages)
        search.warn_of_fits(info, messages)
        yield search.summary(info, hits)

    def about(result: tuple[dict, dict]) -> dict:
        info, hits = result
        device = pairs.device_of(info, devices)
        return search.as_dict(request, read, options, info, device) | {"hits": hits}

    lines = search.heading(request, len(queries), database), str(opened)
    return run(options, messages, lines, compute, finish, about)


def opened_folder(
    request: Request,
    manifest: dict,
    parts: list[Part],
    options: Given,
    messages: Messages,
) -> PartsFolder:
    """Begin a folder, or go on with one.

    Raises
    ------
    UsageError
        Parts are there, and nobody said that they should be completed; or the folder
        is of another run.
    """
    path, shard = request.out or "", options.shard
    joins = shard is not None
    force = options.force and not joins
    run = SavedRun(path, manifest)
    run.begin(options.resume, force, joins)
    mine = jobs.share(parts, shard)
    finished, lines = run.finished(mine)
    if finished and not options.resume:
        raise UsageError(
            f"{path}: {len(finished):,} parts exist; use --resume to go on"
        )
    for line in lines:
        messages.warn(line)
    return PartsFolder(request, run, shard, len(parts), len(mine), finished)


def written(
    stream: Any,
    folder: PartsFolder,
    chosen_rows: Callable[[Table], Table] = lambda table: table,
    also: tuple[str, ...] = (),
) -> tuple[dict, dict]:
    """Write the parts of a stream; (what was computed, how many rows there were).

    stream : generator of (Part, Table)
    chosen_rows : the rows of a table that are written
    also : figures that are taken from the parts beside sums
    """
    request = folder.request
    about = request.columns, request.identity
    writing = folder.run.writing(jobs.WRITERS, *about)
    with closing(stream), writing as write:
        return _passed_on(stream, write, chosen_rows, also)


def _passed_on(
    stream: Any,
    write: Callable[[Table, Part], object],
    chosen_rows: Callable[[Table], Table] = lambda table: table,
    also: tuple[str, ...] = (),
) -> tuple[dict, dict]:
    """As ``written``, by a function."""
    info, rows = dict(NO_PART), {"found": 0, "kept": 0, "max_score": None}
    for part, table in stream:
        output = chosen_rows(table)
        write(output, part)
        info = _more_info(info, table.info)
        for name in also:
            if name in table.info:
                info[name] = _joined(info.get(name), table.info[name])
        rows = _more_rows(rows, table, output)
    return info, rows


def _more_info(info: dict, more: dict) -> dict:
    """All that was computed, a part later."""
    summed = {name: info.get(name, 0) + more[name] for name in SUMMED if name in more}
    if "excluded" in more:
        counts = info.get("excluded", {})
        summed["excluded"] = api.added(counts, more["excluded"])
    return info | summed


def _joined(before: Any, value: Any) -> Any:
    """A figure of all parts so far: an array has an entry a query."""
    if before is None or not isinstance(value, np.ndarray):
        return value
    return np.concatenate([before, value])


def _more_rows(rows: dict, table: Table, output: Table) -> dict:
    """Rows found and written and the best score, a part later."""
    best = (rows["max_score"], pairs.best_score(output))
    return {
        "found": rows["found"] + len(table),
        "kept": rows["kept"] + len(output),
        "max_score": max((score for score in best if score is not None), default=None),
    }


def manifest_of_pairs(
    request: Request, read: Inputs, include_self: bool, parts: list[Part]
) -> dict:
    """All that the rows of all pairs depend on."""
    about = {"format": "jaxalign parts, 1", "include_self": include_self}
    about |= {"rows": parts[-1].stop}
    about |= {"parts_sha256": report.digest([part.stop for part in parts])}
    return about | _manifest(request, read, parts)


def manifest_of_search(
    request: Request,
    read: Inputs,
    options: Given,
    parts: list[Part],
) -> dict:
    """All that the rows of a search depend on."""
    about = {
        "format": "jaxalign search parts, 1",
        "database": {"sha256": sha256(options.database)},
        "unknown": options.scoring.unknown,
        "top": options.top,
        "max_evalue": options.max_evalue,
        "parts_sha256": report.digest([part.last for part in parts]),
    }
    about |= _manifest(request, read, parts)
    return about | {"strand": options.strand, "statistics": options.statistics}


def _manifest(request: Request, read: Inputs, parts: list[Part]) -> dict:
    """All that rows of whatever parts depend on."""
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
        "parts": len(parts),
        "jaxalign": report.versions()["jaxalign"],
        "versions": report.versions(),
    }
