"""State that the launches of a task share on a device."""

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from jaxalign.pairs.gpu import device_sequences
from jaxalign.pairs.gpu.device_arrays import Order
from jaxalign.pairs.gpu.device_result import DeviceResult
from jaxalign.pairs.gpu.score_types import numbers

if TYPE_CHECKING:
    from jaxalign.pairs.plan import Task


@dataclass
class DeviceJob:
    """Sequences, scoring and results that the launches of a task share on a device.

    A thread that runs some of them has a copy, of which the middle fields are its own;
    the last ones are those of all copies.
    """

    task: Any
    kernels: Any
    sides: tuple  # of ``device_sequences.DeviceSequences``
    order: Order
    problem: Any
    interpret: Any = None

    result: DeviceResult | None = None  # None: rows go to the host, launch by launch
    output: Any = None  # ``pairs.result.Output``
    tell: Any = None  # callable (cells more done)
    spilled: bool = False  # rows go to the host: there was no memory to hold them

    compiled: set = field(default_factory=set)  # static sizes
    halved: list = field(default_factory=list)  # launches that ran in halves

    @property
    def device(self):
        return self.sides[0].codes.device

    @property
    def steps(self) -> bool:
        return self.task.output == "alignment"


def load_sides(task: "Task", kernels: Any):
    """(the two sides, the order, the problem) on the device."""
    job, count = task.job, task.shape[0]
    sizes = (job.whole.letters, job.whole.targets) if job.whole else (0, 0)
    load = partial(device_sequences.load, wholes=task.whole_codes)
    if task.top is None:
        targets = load(task.targets, *sizes)
    else:
        targets = device_sequences.load_block(task.targets)
    queries = targets  # or the first of them
    if job.kind != "all":
        queries = load(task.queries, *sizes)
    rank = job.rank if job.kind == "all" and job.once else np.arange(task.shape[1])
    base = np.zeros(count) if job.kind == "zip" else job.position(np.arange(count), 0)
    order = jax.device_put(order_of(task, base, rank))
    return (queries, targets), order, problem_of(task, kernels)


def order_of(task: "Task", base: np.ndarray, rank: np.ndarray) -> Order:
    """An ``Order`` on the host, with room as the two sides have it."""
    count = task.job.whole.targets if task.job.whole else 0
    rooms = (device_sequences.places_of(x, count) for x in (task.queries, task.targets))
    places = zip((base, rank), rooms, strict=True)
    return Order._make(device_sequences.padded_integers(*x) for x in places)


def problem_of(task: "Task", kernels: Any):
    """The scoring of a task, on the device."""
    wildcard = task.scoring.alphabet.wildcard_code
    return kernels.problem_of(*numbers(task), task.free, wildcard)
