"""Windows as one SPMD program over a ``jax.sharding.Mesh``: every device fills one.

For callers whose JAX program has a mesh. Windows of one static shape are stacked along
a new leading axis, which ``shard_map`` cuts over all axes of the mesh.
"""

from collections.abc import Iterator
from functools import partial
from inspect import unwrap
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from jaxalign.errors import UsageError
from jaxalign.pairs import result
from jaxalign.pairs.cpu import execute, lane_packing
from jaxalign.pairs.cpu.partition import STRIP_ROWS
from jaxalign.pairs.dp import window_program
from jaxalign.pairs.run_state import Run, Worker
from jaxalign.runtime.devices import precision

if TYPE_CHECKING:
    from jaxalign.pairs.plan import Task
    from jaxalign.pairs.windows import Window, WindowPairs


def check(mesh: Any, implementation: str | None) -> None:
    """Refuse what a mesh cannot run.

    Raises
    ------
    UsageError
        Another implementation than ``sweep``; devices of other processes.
    """
    if implementation not in (None, "sweep"):
        raise UsageError(f"a mesh runs implementation 'sweep', not {implementation!r}")
    if not hasattr(mesh, "is_multi_process"):
        raise UsageError(f"mesh = {mesh!r}: a jax.sharding.Mesh is needed")
    if mesh.is_multi_process:
        raise UsageError("all devices of a mesh must belong to this process")


def run(run: Run, worker: Worker) -> None:
    """All pieces of a run; those of no group come one by one."""
    task, groups = run.plan.task, {}
    for piece in run.plan.pieces:
        groups.setdefault(piece.group, []).append(piece)
    for piece in groups.pop(None, []):
        piece.compute(run, worker, piece)
    count = task.mesh.devices.size
    for (*_, dtype), pieces in groups.items():
        for start in range(0, len(pieces), count):
            alike = [piece.content for piece in pieces[start : start + count]]
            for rows in _together(task, alike, dtype):
                run.output.put(rows)
                worker.tell(rows.cells)


def _together(
    task: "Task", windows: "list[Window]", dtype: str
) -> Iterator[result.Rows]:
    """Up to one window a device, at the same time."""
    met = [task.job.meets(w) for w in windows]
    inputs = [_inputs(task, *pair) for pair in zip(windows, met, strict=True)]
    # A device without a window gets one of which no query is to be computed.
    idle = inputs[-1] | {"count": np.int32(0)}
    inputs += [idle] * (task.mesh.devices.size - len(inputs))
    stacked = jax.tree.map(lambda *values: np.stack(values), *inputs)
    first, identity = windows[0], task.output == "identity"
    with precision(dtype):
        window_results = _spmd(
            stacked,
            execute.problem_of(task.scoring, task.free, dtype, identity),
            mesh=task.mesh,
            local=task.local,
            shared=not first.zipped,
            capacity=first.capacity if task.paths else None,
            longest=first.longest,
            paths=task.paths,
            steps=task.output == "alignment",
        )
    window_results = jax.tree.map(np.asarray, window_results)
    for k, one in enumerate(met):
        yield result.collect(
            task, jax.tree.map(lambda x, k=k: x[k], window_results), one
        )


def _inputs(task: "Task", window: "Window", met: "WindowPairs") -> dict:
    """The inputs of one device, as host arrays."""
    queries, m = lane_packing.queries_of(task, window)
    start = np.zeros(window.slots, np.int32)
    start[: len(met.wanted)] = met.wanted.argmax(axis=1)
    return {
        "block": lane_packing.block_of(task, window),
        "queries": queries,
        "lengths": m,
        "start": start,
        "count": np.int32(len(met.wanted)),
        "tie": lane_packing.wide(window, met.swapped),
    }


@partial(
    jax.jit,
    static_argnames=(
        "mesh", "local", "shared", "capacity", "longest", "paths", "steps",
    ),
)  # fmt: skip
def _spmd(
    stacked: dict,
    problem: window_program.WindowProblem,
    *,
    mesh: Mesh,
    local: bool,
    shared: bool,
    capacity: int | None,
    **static: Any,
):
    """One window a device: results with the leading axis of the inputs."""
    over = PartitionSpec(mesh.axis_names)

    @partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(over, PartitionSpec()),
        out_specs=over,
        check_vma=False,
    )
    def each(stacked: dict, problem: window_program.WindowProblem):
        own = jax.tree.map(lambda values: values[0], stacked)
        block = own.pop("block")
        block = unwrap(window_program.load_block)(block, problem, local, shared)
        backtrack = None if capacity is None else jnp.zeros(capacity, jnp.uint8)
        window_results, _ = unwrap(window_program.run_window)(
            block,
            problem=problem,
            backtrack=backtrack,
            local=local,
            rows=STRIP_ROWS,
            fused=mesh.devices.flat[0].platform == "cpu",
            **own,
            **static,
        )
        return jax.tree.map(lambda values: values[None], window_results)

    return each(stacked, problem)
