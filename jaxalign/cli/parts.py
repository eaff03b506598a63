"""``jaxalign all`` and ``jaxalign search`` with ``-o FOLDER/``: results part by part.

Parts that are finished stay finished, and ``--resume`` completes the others.
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxalign.cli import report
from jaxalign.cli.derive import Given
from jaxalign.cli.inputs import Inputs
from jaxalign.cli.request import Request
from jaxalign.cli.terminal import Messages
from jaxalign.errors import UsageError
from jaxalign.io.runs import SavedRun
from jaxalign.model.table import Table
from jaxalign.pairs import api, jobs
from jaxalign.pairs.jobs import Part

SUMMED = ("pairs", "cells", "aligned_pairs", "aligned_cells", "seconds")
SUMMED += ("halved_launches",)
# Of a search: the last of each, or joined where there is one a query.
OF_A_SEARCH = ("sequences", "residues", "implementation", "reason", "substituted")
OF_A_SEARCH += ("statistics", "strands", "lambda", "K", "fitted_to")
NO_PART = dict.fromkeys(("pairs", "cells", "halved_launches"), 0) | {"seconds": 0.0}
NO_HIT = dict.fromkeys(("sequences", "residues"), 0)
NO_HIT |= dict.fromkeys(("implementation", "reason"), "")


@dataclass(frozen=True, eq=False)
class PartsFolder:
    """A folder of parts that this run completes.

    Attributes
    ----------
    request, run : where and how its parts are written
    count : int
        Parts in all.
    mine : int
        Parts of this shard.
    skip : list of int
        Those of them that are finished.
    """

    request: Request
    run: SavedRun
    count: int
    mine: int
    skip: list[int]

    def __str__(self) -> str:
        finished = f"{len(self.skip):,} finished before"
        return f"{self.mine:,} of {self.count:,} parts, {finished}"


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
    path, joins = request.out or "", options.shard is not None
    run = SavedRun(path, manifest)
    run.begin(options.resume, options.force and not joins, joins)
    mine = jobs.share(parts, options.shard)
    finished, lines = run.finished(mine)
    if finished and not options.resume:
        raise UsageError(
            f"{path}: {len(finished):,} parts exist; use --resume to continue"
        )
    for line in lines:
        messages.warn(line)
    return PartsFolder(request, run, len(parts), len(mine), finished)


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
    about = folder.request.columns, folder.request.identity
    with closing(stream), folder.run.writing(jobs.WRITERS, *about) as write:

        def write_rows(table: Table, part: Part) -> None:
            write(folder.request.rows(table), part)

        return passed_on(stream, write_rows, chosen_rows, also)


def passed_on(
    stream: Any,
    write: Callable[[Table, Part], object],
    chosen_rows: Callable[[Table], Table] = lambda table: table,
    also: tuple[str, ...] = (),
) -> tuple[dict, dict]:
    """As ``written``, by a function."""
    info: dict[str, Any] = dict(NO_PART)
    rows: dict[str, Any] = {"found": 0, "kept": 0, "max_score": None}
    for part, table in stream:
        output, figures = chosen_rows(table), table.info
        write(output, part)
        for name in SUMMED:
            if name in figures:
                info[name] = info.get(name, 0) + figures[name]
        if "excluded" in figures:
            info["excluded"] = api.added(info.get("excluded", {}), figures["excluded"])
        for name in also:
            if name in figures:
                value = figures[name]
                if isinstance(value, np.ndarray) and info.get(name) is not None:
                    # an entry a query
                    value = np.concatenate([info[name], value])
                info[name] = value
        best = rows["max_score"], best_score(output)
        rows = {
            "found": rows["found"] + len(table),
            "kept": rows["kept"] + len(output),
            "max_score": max((x for x in best if x is not None), default=None),
        }
    return info, rows


def best_score(table: Table):
    """The greatest score of the rows kept, None where there is none."""
    return table["score"].max().item() if len(table) else None


def manifest(request: Request, read: Inputs, parts: list[Part]) -> dict:
    """All that rows of whatever parts depend on."""
    columns = read.hashes, read.sequences, read.substituted
    files = [
        {"sha256": digest, "records": len(sequences), "substituted": count}
        for digest, sequences, count in zip(*columns, strict=True)
    ]
    about = {
        "mode": request.options.mode,
        "free_ends": report.free_ends(request),
        "output": request.options.output,
        "identity": request.identity,
        "columns": list(request.columns) if request.columns else None,
        "filters": request.filters,
        "parts": len(parts),
    }
    about |= {"eqx": True} if request.eqx else {}
    described = report.manifest(files, request.scoring, about)
    return described | {"versions": report.versions()}
