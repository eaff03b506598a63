"""The task of some pairs of another one."""

from dataclasses import replace

from jaxalign.model.selection import views
from jaxalign.pairs.plan import Task
from jaxalign.pairs.windows import WholeJob


def zipped(task: Task, queries, targets) -> Task:
    """The task of some pairs of another one, whose rows are those of that one.

    queries, targets : integers (P,), indices of both sides of each pair
    """
    job = task.job
    whole = task.whole or WholeJob(
        job.most, job.cells, task.shape[1], len(task.targets.codes)
    )
    # What is aligned of the whole: of a part as large a share as of itself.
    cells = int((job.query_lengths[queries] * job.target_lengths[targets]).sum())
    left = round(whole.cells * cells / max(job.cells, 1))
    whole = whole._replace(cells=left)
    return replace(
        task,
        kind="zip",
        queries=views(task.queries, queries),
        targets=views(task.targets, targets),
        size=None,
        shift=0,
        whole=whole,
        rows=job.position(queries, targets),
        single_target=None,
    )
