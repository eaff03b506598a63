"""A result as it grows on a device, in input order, and its way to the host."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.model.table import SPANS
from jaxalign.run import gpu_arrays
from jaxalign.run.results import COUNTS
from jaxalign.run.windows import bucket


@dataclass
class Held:
    """A result as it grows on the device."""

    columns: dict
    runs: jax.Array  # of all paths so far, in the order of launches
    end: jax.Array  # (): how many
    known: int = 0  # … of the launches looked at


def empty(task) -> Held:
    """Columns of the result on the device; runs of a path begin at ``first``."""
    names = ["score"]
    names += ["max_identities"] if task.output == "identity" else []
    names += [*SPANS, *COUNTS] if task.paths else []
    names += ["count", "first"] if task.output == "alignment" else []
    columns = {name: gpu_arrays.column(task.job.pairs) for name in names}
    return Held(columns, jnp.zeros(1024, jnp.uint32), jnp.zeros((), jnp.int32))


def put(held: Held, found, room: int) -> None:
    """Put the findings of a launch into the result.

    room : runs that launches may find which are issued and not yet looked at
    """
    if found.runs is not None:
        ahead = held.known + room
        if ahead > len(held.runs):
            held.runs = gpu_arrays.grown(held.runs, size=bucket(ahead, 2, 1024))
    held.columns, held.runs, held.end = gpu_arrays.put(
        held.columns, held.runs, held.end, found
    )


def collect(jobs, out) -> None:
    """What jobs of one task, each on a device of its own, hold: to the host."""
    held = [job.held for job in jobs if job.held is not None]
    if not held:
        return
    columns = {name: [x.columns[name] for x in held] for name in held[0].columns}
    paths = None
    if "first" in columns:
        paths = _paths(held[0], columns, jobs[0].task.job.pairs)
    add = gpu_arrays.add
    out.take({name: partial(add, parts) for name, parts in columns.items()}, paths)
    for job in jobs:
        job.held = None


def _paths(held: Held, columns: dict, rows: int):
    """(runs, how many of each row) of the paths of one device, in input order."""
    (count,), (first,) = columns.pop("count"), columns.pop("first")
    counts = np.zeros(rows, np.int32)
    gpu_arrays.add([count], counts)
    total = int(counts.sum(dtype=np.int64))
    runs = np.zeros(total, np.uint32)
    size = bucket(total, 2, 1024)
    gpu_arrays.add([gpu_arrays.in_order(held.runs, count, first, size=size)], runs)
    return runs, counts.astype(np.int64)
