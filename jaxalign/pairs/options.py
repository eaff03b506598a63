"""Options of the public functions -> a task; what a run returns -> a table."""

from jaxalign.errors import InputError, UsageError
from jaxalign.model.alphabet import Sequences
from jaxalign.model.filters import Filters
from jaxalign.model.filters import check as check_filters
from jaxalign.model.numbers import check_whole
from jaxalign.model.scoring import is_symmetric, resolve_ends
from jaxalign.model.table import OUTPUTS, Table
from jaxalign.pairs import engine
from jaxalign.pairs.cpu.spmd import check as check_mesh
from jaxalign.pairs.parts import part_stream, ray_tasks
from jaxalign.pairs.plan import Task
from jaxalign.runtime import memory, pipeline
from jaxalign.runtime.devices import resolve_devices


def make_task(
    kind,
    queries,
    targets,
    scoring,
    include_self=False,
    *,
    mode="global",
    free_ends=None,
    output="stats",
    implementation=None,
    memory_budget=None,
    threads=None,
    window=None,
    devices=None,
    mesh=None,
    min_score=None,
    min_identity=None,
    min_cov=None,
    coverage="both",
    identity=None,
) -> Task:
    """The task of some options; see ``api.align_pairs`` for what they mean.

    Raises
    ------
    UsageError, DeviceError
    """
    if output not in OUTPUTS:
        raise UsageError(f"unknown output {output!r}: one of {', '.join(OUTPUTS)}")
    check_whole("threads", threads)
    check_whole("window", window)
    usual = "shorter" if output == "identity" else "alignment"
    kept = Filters(min_score, min_identity, identity or usual, min_cov, coverage)
    check_filters(kept, output)
    chosen = resolve_devices(devices)
    if mesh is not None:
        check_mesh(mesh, implementation)
    return Task(
        kind,
        queries,
        targets,
        scoring,
        mode,
        resolve_ends(mode, free_ends),
        output,
        include_self,
        implementation,
        memory.budget(memory_budget),
        max(threads or pipeline.default_threads(), len(chosen)),
        window,
        kept,
        chosen,
        mesh,
    )


def run(kind, queries, targets, scoring, **options) -> Table:
    """Compute a job of some options."""
    watched, options = watched_in(options)
    task = make_task(kind, queries, targets, scoring, **options)
    return table_of(task, *engine.run(engine.plan(task), *watched))


def table_of(task, columns, paths, info) -> Table:
    """What ``engine.run`` returns, as a table."""
    runs, offsets = paths or (None, None)
    return Table(
        columns,
        task.queries,
        task.targets,
        task.scoring,
        task.mode,
        task.free,
        info["implementation"],
        info,
        runs,
        offsets,
    )


def stream(task, some, watched, cluster):
    """Parts and their tables, computed here or on a cluster."""
    if cluster is None:
        found = part_stream.stream(task, some, *watched)
    else:
        found = ray_tasks.stream(task, some, cluster, *watched)
    for part, columns, paths, info in found:
        yield part, table_of(task, columns, paths, info)


def watched_in(options: dict):
    """((progress, busy), the other options)."""
    names = ("progress", "busy")
    rest = {name: value for name, value in options.items() if name not in names}
    return tuple(options.get(name) for name in names), rest


def pairing(queries: Sequences, targets: Sequences):
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


def symmetric(scoring, options) -> bool:
    ends = resolve_ends(options.get("mode", "global"), options.get("free_ends"))
    return is_symmetric(scoring, ends)


def every_pair(options: dict) -> dict:
    """Refuse filters where each pair has its place in the answer."""
    for name in ("min_score", "min_identity", "min_cov"):
        if options.get(name) is not None:
            raise UsageError(f"{name}: use align_pairs or align_all, which drop rows")
    return dict(options)
