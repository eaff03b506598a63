"""Jobs by rows that come again: compiled once their rows have cost what programs cost.

Rows (``pairs.by_rows``) take seconds at every call; a compiled job takes seconds for
its programs once, and a fraction of the rows at every call. Nobody knows how many calls
there will be. This is the ski-rental problem, whose best strategy rents until the rents
reach the price, and then buys: any sequence of calls takes at most twice the time of
the best choice for it. Each kind of job, those with the same programs, has a price.
What a kind has paid beyond its own goes towards the start of JAX, which all share.

A job has the same rows both ways, bit for bit. Its plan, and so every file, says what
its arguments choose; ``info["ran"]`` alone says who has computed.
"""

import os
import sys
import threading
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from typing import Any

import numpy as np

from jaxalign.pairs.by_rows import (
    CELL_SECONDS,
    RowsWindow,
    may_have_gpu,
    rows_alone,
    seconds_of,
)
from jaxalign.pairs.cpu import partition
from jaxalign.pairs.plan import Piece, Plan, Run, Task, Worker
from jaxalign.pairs.result import Output
from jaxalign.runtime import forks, machine, program_folder
from jaxalign.runtime.pipeline import default_threads

PROGRAMS, MAKER = "jaxalign.pairs.cpu.execute", "jaxalign.runtime.programs"
# Seconds of the core that ``by_rows`` counts in (benchmarks.small_jobs)
START = 1.0  # JAX, imported and started
COMPILE = {"score": 3.0, "identity": 3.0, "stats": 5.0, "alignment": 5.0}  # a shape
LOAD = 0.5  # both programs of a shape, from the folder
CALL = 0.02  # a compiled job, however small
# Of a cell of a window, padding included
CELL = {"score": 1.5e-10, "identity": 4e-10, "stats": 4e-10, "alignment": 4e-10}
ZIPPED_CELL = 1e-9  # beside it: lanes look up their scores
LIVE_PAIR = 1e-4  # its path, where the scores of all come first
LIVE_PROGRAMS = "back", "boxes"  # beside scores, of about as many shapes
BESIDE = 0.5  # share of a price from which an idle core compiles


@dataclass(frozen=True)
class JobCosts:
    """Costs of a job: ``rows`` and ``compiled`` seconds at every call, and seconds of
    each of its ``shapes`` of programs once."""

    shapes: frozenset[Hashable]
    rows: float
    compiled: float
    price: float


@dataclass(frozen=True)
class Account:
    """Payments of the calls of a process so far.

    saved : for each kind, (seconds that compiled jobs would have saved, its price)
    bought : shapes whose programs are there
    """

    saved: Mapping[frozenset[Hashable], tuple[float, float]] = field(
        default_factory=dict
    )
    bought: frozenset[Hashable] = frozenset()

    def charged(self, job: JobCosts, start: float) -> tuple["Account", float]:
        """Charge a job by rows: (the account, what has been paid as a share of its
        price and the start: with 1 the job is compiled).

        start : seconds that JAX still takes to start
        """
        missing, saving = len(job.shapes - self.bought), job.rows - job.compiled
        if saving <= 0:
            return self, 0.0
        if not missing and not start:
            return self, 1.0
        price = missing * job.price
        paid = self.saved.get(job.shapes, (0.0, price))[0] + saving
        account = replace(self, saved={**self.saved, job.shapes: (paid, price)})
        beyond = sum(max(paid - whole, 0.0) for paid, whole in account.saved.values())
        return account, (min(paid, price) + min(beyond, start)) / (price + start)

    def having(self, shapes: frozenset[Hashable]) -> "Account":
        """The account once some programs are there."""
        return replace(self, bought=self.bought | shapes)


@dataclass(eq=False)
class _Process:
    """The account of this process, which its threads share."""

    account: Account = field(default_factory=Account)
    prices: dict[frozenset[Hashable], float] = field(default_factory=dict)
    compiling: set[frozenset[Hashable]] = field(default_factory=set)
    lock: Any = field(default_factory=threading.Lock)


_process = _Process()


def _forget() -> None:
    """Begin anew in a forked child, where no other thread lives on: one that was
    starting JAX leaves it as useless as one that had."""
    global _process
    forks.threads_lost |= bool(_process.compiling)
    _process = _Process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def cheaper(plan: Plan) -> Plan:
    """The plan by rows as it is, or with compiled pieces where these cost less, of the
    calls so far and this one. The rows of its result are the same."""
    # A piece that reports the cells of excluded pairs is no window.
    by_rows = [x for x in plan.pieces if isinstance(x.content, RowsWindow)]
    reports = [x for x in plan.pieces if not isinstance(x.content, RowsWindow)]
    tasks = list(dict.fromkeys(piece.task for piece in by_rows))
    is_open = all(task.implementation is None for task in tasks)
    # A GPU is not started for jobs that spare a process its start.
    if not tasks or not is_open or may_have_gpu() or forks.threads_lost:
        return plan
    windows = [piece.content for piece in by_rows]
    job = costs_of(tasks, seconds_of(windows, tasks[0].paths))
    if job is None:
        return plan
    process, start = _process, 0.0 if "jax" in sys.modules else START
    with process.lock:
        if job.shapes not in process.prices:
            price = LOAD if is_stored(job.shapes) else job.price
            process.prices[job.shapes] = price
        job = replace(job, price=process.prices[job.shapes])
        process.account, share = process.account.charged(job, start)
        idle = share >= BESIDE and job.price > LOAD and _has_idle_core()
        if job.shapes in process.compiling or (share < 1 and not idle):
            return plan
        missing = job.shapes - process.account.bought
        if missing:
            process.compiling.add(job.shapes)
    if missing and idle:
        threading.Thread(target=_buy, args=(process, job, tasks)).start()
        return plan
    if missing and not _buy(process, job, tasks):
        return plan
    figures = plan.figures | {"ran": "sweep"}
    pieces = [piece for task in tasks for piece in _compiled_plan(task).pieces]
    return replace(plan, pieces=(*reports, *pieces), figures=figures)


def costs_of(tasks: list[Task], rows: float) -> JobCosts | None:
    """The costs of a job that some tasks compute; None where no programs would help.

    rows : seconds of all by rows
    """
    shapes, compiled, output = set[Hashable](), CALL, tasks[0].output
    if rows_alone(tasks[0]):
        return None
    for task in tasks:
        teams = partition.may_have_teams(task)
        room = partition.Room(task.window_budget)
        split = partition.cut(task.job, room, teams=teams)
        split = partition.without_lone(task.job, split)
        constant = output == "identity" or teams
        gaps = (task.scoring.open, task.scoring.extend) if constant else ()
        about = output, task.local, task.scoring.alphabet.padding, *gaps
        if teams:
            shapes |= {(*about, name) for name in LIVE_PROGRAMS}
            compiled += LIVE_PAIR * task.job.pairs / task.threads
        for window in split.blocks:
            sizes = window.lanes, window.rows, window.columns, window.longest
            sizes += window.slots, window.places, window.capacity, window.zipped
            sizes += (window.team,)
            shapes.add((*about, *sizes, task.dtype(window.m, window.n)))
            cost = CELL["score" if window.team > 1 else output]
            cost += ZIPPED_CELL * window.zipped
            compiled += cost * partition.swept_cells(task.job, window) / task.threads
        i, j = np.array(split.pairs, int).reshape(-1, 2).T
        cells = task.queries.lengths[i] * task.targets.lengths[j]
        compiled += float(cells.sum()) * CELL_SECONDS
    if not shapes or rows <= compiled:
        return None
    return JobCosts(frozenset(shapes), rows, compiled, COMPILE[output])


def _compiled_plan(task: Task) -> Plan:
    from jaxalign.pairs import compiled  # which imports JAX

    return compiled.plan_compiled(task)


def _pieces_beyond(run: Run) -> list[Piece]:
    from jaxalign.pairs import compiled  # which imports JAX

    return compiled.pieces_beyond(run)


def _buy(process: _Process, job: JobCosts, tasks: list[Task]) -> bool:
    """Have the programs of a job, by a window of each shape; whether they are there. A
    kind that fails stays by rows."""
    try:
        for task in tasks:
            plan = _compiled_plan(task)
            if plan["implementation"].split(", ")[0] != "sweep":
                return False  # JAX computes elsewhere
            run, worker = Run(plan, Output(task)), Worker()
            groups = {piece.group: piece for piece in plan.pieces if piece.group}
            for piece in groups.values():
                if not threading.main_thread().is_alive():  # the process ends
                    return False
                piece.compute(run, worker, piece)
            while run.live or run.beyond:
                for piece in _pieces_beyond(run):
                    piece.compute(run, worker, piece)
    except Exception:  # what a call answers may not depend on those before
        return False
    with process.lock:
        process.account = process.account.having(job.shapes)
        process.compiling.discard(job.shapes)
    if (folder := program_folder.program_folder()) is not None:
        about = {"shapes": sorted(map(str, job.shapes))}
        program_folder.write_program(folder, _name_of(job.shapes), about, b"")
    return True


def is_stored(shapes: frozenset[Hashable]) -> bool:
    """Whether an earlier process has left all programs of a kind in the folder: an
    entry without a program says so, as long as its programs are used no longer."""
    folder = program_folder.program_folder()
    name = _name_of(shapes)
    return folder is not None and program_folder.read_program(folder, name) is not None


def _name_of(shapes: frozenset[Hashable]) -> str:
    """The name of the entry of a kind: all that its programs depend on, which is known
    without JAX."""
    text = repr((_environment(), sorted(map(str, shapes))))
    return f"kind-{blake2b(text.encode(), digest_size=16).hexdigest()}"


@cache
def _environment() -> str:
    settings = {k: v for k, v in os.environ.items() if k.startswith(("JAX_", "XLA_"))}
    makers = [version(name) for name in ("jax", "jaxlib", "numpy")]
    code = machine.code_digest(f"{PROGRAMS} {MAKER}")
    return repr(
        (makers, sys.version, machine.processor(), sorted(settings.items()), code)
    )


def _has_idle_core() -> bool:
    """Whether a core has nothing to do beside this thread."""
    cores = default_threads()
    try:
        return cores > 1 and os.getloadavg()[0] < cores - 0.5
    except (AttributeError, OSError):  # not on this system
        return False
