# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Run a task and make a table of what comes back; which pairs a call means."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from jaxalign.errors import InputError
from jaxalign.model.alphabet import Sequences
from jaxalign.model.scoring import Scoring, is_symmetric, resolve_ends
from jaxalign.model.table import Table
from jaxalign.pairs import engine
from jaxalign.pairs.options import PairOptions, make_task
from jaxalign.pairs.parts import part_stream, ray_tasks
from jaxalign.pairs.parts.query_ranges import Part
from jaxalign.pairs.plan import Task
from jaxalign.pairs.proofs import survivors
from jaxalign.pairs.windows import WholeJob


def run(
    kind: str,
    queries: Sequences,
    targets: Sequences,
    scoring: Scoring,
    options: PairOptions,
    whole: WholeJob | None = None,
) -> Table:
    """Compute a job of some options.

    whole : what it is a part of; such parts share their programs
    """
    began = time.perf_counter()
    task = make_task(kind, queries, targets, scoring, options)
    plan = survivors.plan(replace(task, whole=whole))
    columns, paths, info = engine.run(plan, options.progress, options.busy)
    info |= {"seconds": time.perf_counter() - began}
    return table_of(task, columns, paths, info)


def table_of(task: Task, columns: Any, paths: Any, info: Any) -> Table:
    """What ``engine.run`` returns, as a table."""
    operations, offsets = paths or (None, None)
    targets = task.targets
    if task.single_target is not None:
        targets = task.single_target
        columns = columns | {"target": np.zeros_like(columns["target"])}
    return Table(
        columns,
        task.queries,
        targets,
        task.scoring,
        task.mode,
        task.free,
        info["implementation"],
        info,
        operations,
        offsets,
    )


def stream(
    task: Task, some: list[Part], options: PairOptions
) -> Iterator[tuple[Part, Table]]:
    """Parts and their tables, computed here or on a cluster."""
    progress = options.progress, options.busy
    if options.cluster is None:
        parts = part_stream.stream(task, some, *progress)
    else:
        parts = ray_tasks.stream(task, some, options.cluster, *progress)
    for part, columns, paths, info in parts:
        yield part, table_of(task, columns, paths, info)


def pairing(queries: Sequences, targets: Sequences) -> tuple[str, Sequences, Sequences]:
    """zip, or one against all."""
    if len(queries) == 1 and len(targets) != 1:
        return "cross", queries, targets
    if len(targets) == 1 and len(queries) != 1:
        targets = targets.take([0] * len(queries))
    if len(queries) != len(targets):
        raise InputError(
            f"{len(queries)} queries and {len(targets)} targets: pairs are zipped, so "
            "there must be as many, or one on a side"
        )
    return "zip", queries, targets


def symmetric(scoring: Scoring, options: PairOptions) -> bool:
    """Whether swapping the sides of a pair changes no score."""
    return is_symmetric(scoring, resolve_ends(options.mode, options.free_ends))
