"""The plan of a triple, which is shown and then run: its traceback, and its bytes; and
many triples, in batches of boxes of one shape."""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import permutations
from queue import SimpleQueue
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.errors import CertificateError, MemoryPlanError
from jaxalign.model import bounds
from jaxalign.model.alphabet import Sequences, ranks
from jaxalign.model.scoring import Scoring
from jaxalign.model.triple import TripleTable
from jaxalign.options import Progress
from jaxalign.runtime import programs
from jaxalign.runtime.devices import (
    first_device,
    precision,
    show_bytes,
)
from jaxalign.runtime.pipeline import in_advance, teller
from jaxalign.runtime.programs import program
from jaxalign.triples import engine, gpu, tracebacks
from jaxalign.triples.dp import planes, recurrence
from jaxalign.triples.dp.recurrence import (
    MODELS,
    Box,
    FillOutputs,
    Model,
    TripleScoring,
    backwards,
    matrices_in,
)
from jaxalign.triples.options import (
    CHUNKED,
    KERNEL_SCHEDULE,
    SCHEDULE_OF_FILL,
    TripleRequest,
)
from jaxalign.triples.result import (
    EMPTY_REGION,
    Region,
    RegionBatch,
    Solution,
    Triple,
    TriplePlan,
    solution_of,
    table_of,
)

MAX_TRIPLES = 256  # of one batch
Found = list[tuple[np.ndarray, Solution | None]]


@dataclass(frozen=True, eq=False)
class TripleSet:
    """Sequences 3n, 3n + 1, 3n + 2 of a call, the longest last: ``orders`` (n, 3) are
    the caller's numbers of the axes, ``lengths`` theirs; ``kernels`` (n,) says which
    the kernels take. ``triple_set[k]`` is a ``Triple``, ``batch`` some as arrays."""

    sequences: Sequences
    scoring: Scoring
    request: TripleRequest
    orders: np.ndarray
    lengths: np.ndarray
    dtypes: list[str]
    kernels: np.ndarray

    def __len__(self) -> int:
        return len(self.orders)

    def __getitem__(self, number: int) -> Triple:
        kernels = self.request.kernels if self.kernels[number] else None
        return self.triple(number, kernels)

    def triple(self, number: int, kernels: Any) -> Triple:
        """Triple ``number``, computed by some kernels or by none."""
        order = tuple(self.orders[number].tolist())
        codes, options = self.sequences, self.request.options
        return Triple(
            tuple(codes[3 * number + axis] for axis in order),
            order,
            self.matrices[() if self.scoring.symmetric else order],
            (self.scoring.open, self.scoring.extend),
            self.dtypes[number],
            MODELS[options.gap_model],
            options.mode,
            options.schedule,
            kernels,
            self.request.budget,
        )

    @cached_property
    def matrices(self) -> dict[tuple[int, ...], tuple]:
        """Scores of the pairs of an order of the axes, () where any order will do."""
        plain = (self.scoring.scores,) * 3
        orders = permutations(range(3))
        return {(): plain} | {order: matrices_in(order, plain) for order in orders}

    def within(self, budget: int) -> "TripleSet":
        """The same triples with another budget."""
        return replace(self, request=replace(self.request, budget=budget))

    def batch(self, numbers: np.ndarray) -> RegionBatch:
        """Whole triples as a batch; their dtype, matrices and kernels are the same."""
        lengths = self.lengths[numbers]
        places = 3 * numbers[:, None] + self.orders[numbers]
        return RegionBatch(
            self[int(numbers[0])],
            self.sequences.codes,
            self.sequences.offsets[places],
            lengths,
            np.zeros_like(lengths),
            lengths,
            np.zeros(len(numbers), np.int64),
            np.full(len(numbers), -1),
        )


def triples_of(
    sequences: Sequences, scoring: Scoring, request: TripleRequest
) -> TripleSet:
    """The triples of a call, and which of them the kernels take."""
    lengths = sequences.lengths.reshape(-1, 3)
    orders, totals = np.argsort(lengths, axis=1, kind="stable"), lengths.sum(axis=1)
    # A dtype that holds the longest holds all.
    longest = [totals.max(initial=0)]
    dtypes = [bounds.triple_dtype(longest, scoring)] * len(totals)
    if "int64" in dtypes:
        dtypes = [bounds.triple_dtype([total], scoring) for total in totals]
    ordered = np.take_along_axis(lengths, orders, axis=1)
    none = np.zeros(len(lengths), bool)
    triples = TripleSet(sequences, scoring, request, orders, ordered, dtypes, none)
    kernels, paths = request.kernels, request.options.traceback is not None
    if kernels is None or not len(lengths):
        return triples

    def taken(number: int) -> bool:
        triple = triples.triple(number, kernels)
        return not gpu.refusal(triple, kernels, request.named, paths)

    if taken(int(totals.argmax())):  # so are all that are shorter
        return replace(triples, kernels=~none)
    return replace(triples, kernels=np.array(list(map(taken, range(len(lengths))))))


def make_plan(triple: Triple, request: TripleRequest) -> TriplePlan:
    """The plan of a triple.

    ``auto`` is ``store`` where that fits the budget, or needs no more than ``split``,
    which divides until each region fits. A plan over budget is refused with a budget
    and lengths that would fit.
    """
    region, traceback = engine.whole(triple), request.options.traceback
    if traceback == "auto":
        stored, split = (
            bytes_of(triple, region, request, way) for way in ("store", "split")
        )
        traceback = "store" if stored <= max(request.budget, split) else "split"
    plan = _plan_with(traceback, triple, request)
    if plan.bytes <= request.budget:
        return plan

    def fits(length: int) -> bool:
        region = Region((0, 0, 0), (length,) * 3)
        try:
            return bytes_of(triple, region, request, plan.traceback) <= request.budget
        except MemoryPlanError:  # chunks of more points than a pointer can name
            return False

    largest, over = 0, 2**16
    while over - largest > 1:
        middle = (largest + over) // 2
        largest, over = (middle, over) if fits(middle) else (largest, middle)
    lengths = " x ".join(str(n) for n in sorted(triple.lengths))
    raise MemoryPlanError(
        f"{lengths} residues with traceback {plan.traceback or 'none'} need "
        f"{show_bytes(plan.bytes)}, and the memory budget is "
        f"{show_bytes(plan.budget_bytes)}: a budget of {plan.bytes} bytes would fit, "
        f"as would sequences of about {largest} residues each"
    )


def _plan_with(traceback: str | None, triple: Triple, request: TripleRequest):
    region, schedule = engine.whole(triple), triple.schedule
    names = {name: fill for fill, name in SCHEDULE_OF_FILL.items()}
    fill = names[schedule]
    if triple.kernels:
        fill, schedule = "pallas", KERNEL_SCHEDULE
    return TriplePlan(
        cells=region.cells,
        gap_model=request.options.gap_model,
        states=triple.model.states,
        implementation=fill,
        schedule=schedule,
        traceback=traceback,
        dtype=triple.dtype,
        bytes=bytes_of(triple, region, request, traceback),
        budget_bytes=request.budget,
    )


def bytes_of(
    triple: Triple, region: Region, request: TripleRequest, traceback: str | None
) -> int:
    """Least bytes of a traceback of a region."""
    if traceback == "store":
        return tracebacks.device_bytes(triple, region)
    if traceback in CHUNKED:
        grid = tracebacks.grid_for(triple, region, request, traceback)
        return sum(tracebacks.grid_bytes(grid).values())
    halves = traceback == "split" or by_halves(triple, region, request)
    return engine.sweep_bytes(triple, region) * (2 if halves else 1)


def by_halves(triple: Triple, region: Region, request: TripleRequest) -> bool:
    """Whether two devices fill the halves of a region for its score."""
    if len(request.devices) < 2 or triple.mode == "local" or region.extent[2] < 2:
        return False
    return 2 * engine.sweep_bytes(triple, region) <= request.budget


def run(
    sequences: Sequences,
    scoring: Scoring,
    request: TripleRequest,
    progress: Progress = None,
    saved: Any = None,
) -> TripleTable:
    """Plan and align the three sequences of a set.

    saved : the state of a run that was interrupted, or may be; of GPU kernels none
    """
    triples = triples_of(sequences, scoring, request)
    solution, job = _run_single(triples, progress, saved)
    every = [np.zeros(1, np.intp)]
    return table_of(
        sequences, scoring, request.options, triples.orders, every, [solution], [job]
    )


def _run_single(
    triples: TripleSet, progress: Progress = None, saved: Any = None
) -> tuple[Solution, dict[str, Any]]:
    """The solution of one triple by its own plan, and what its result tells."""
    triple, request = triples[0], triples.request
    plan = make_plan(triple, request)
    if progress:
        total = plan.cells * (2 if plan.traceback == "split" else 1)
        triple.tally.listener = lambda cells: progress(min(cells, total), total)
    if not triple.kernels:
        triple.tally.saved = saved
    start = time.perf_counter()
    letters = "three sequences of {:,} x {:,} x {:,} letters".format(*triple.lengths)
    try:
        with on_first(request.devices), precision(triple.dtype):
            with programs.explained(letters):
                solution = _align(triple, request, plan)
    except MemoryPlanError:
        # In pieces of half the size, if the path may be divided
        size = request.budget if plan.traceback == "split" else plan.bytes
        least = bytes_of(triple, engine.whole(triple), request, "split")
        if (half := max(size // 2, least)) >= size:
            raise
        less = triples.within(half)
        with suppress(MemoryPlanError):
            make_plan(less[0], less.request)
            return _run_single(less, progress, saved)
        raise
    except CertificateError:
        if request.named:
            raise
        request = replace(request, kernels=None)
        by_planes = triples_of(triples.sequences, triples.scoring, request)
        return _run_single(by_planes, progress, saved)
    triple.tally.seconds["total"] = time.perf_counter() - start
    job = _job_of(plan) | {"seconds": triple.tally.seconds}
    job["bytes"] = triple.tally.face_bytes | job["bytes"]
    return solution, job


def on_first(devices: Sequence[Any]) -> AbstractContextManager[Any]:
    """A context in which JAX computes on the first of the devices that were named."""
    return jax.default_device(devices[0]) if devices else nullcontext()


def _job_of(plan: TriplePlan) -> dict[str, Any]:
    """The plan of a triple in the words of its result."""
    names = "schedule", "traceback", "implementation"
    planned = {"bytes": {"planned": plan.bytes}, "seconds": {}}
    return {name: plan[name] for name in names} | planned


def _align(triple: Triple, request: TripleRequest, plan: TriplePlan) -> Solution:
    """The best path of a triple, or its score."""
    region, traceback = engine.whole(triple), plan.traceback
    if triple.mode == "local":
        # The region that a best local alignment covers, by two sweeps.
        with triple.tally.timed("ends"):
            best, high = engine.best_cell(triple, region)
            if traceback is None:
                return solution_of(max(best, 0), region, triple.tally.cells, None)
            if best <= 0:
                nothing = np.zeros(0, np.uint8)
                return solution_of(0, EMPTY_REGION, triple.tally.cells, nothing)
            before = Region((0, 0, 0), high)
            low = engine.best_cell(triple, before, reverse=True)[1]
        region = Region(low, high)
        triple = replace(triple, mode="global")
    if traceback is None:
        with triple.tally.timed("fill"):
            if by_halves(triple, region, request):
                score = tracebacks.score_by_halves(triple, region, request.devices)
            else:
                score = engine.score(triple, region)
        return solution_of(score, region, triple.tally.cells, None)
    if traceback == "store":
        score, columns = tracebacks.align_stored(triple, region)
    elif traceback == "split":
        # One that is named divides even a region which could be stored whole.
        limit = request.budget
        if request.options.traceback == "split":
            limit = min(limit, tracebacks.device_bytes(triple, region) // 16)
        score, columns = tracebacks.align_split(triple, region, limit, request.devices)
    else:
        grid = tracebacks.grid_for(triple, region, request, traceback)
        triple.tally.face_bytes = tracebacks.grid_bytes(grid)
        score, columns = tracebacks.align_chunks(grid)
    return solution_of(score, region, triple.tally.cells, columns)


def run_many(
    sequences: Sequences,
    scoring: Scoring,
    request: TripleRequest,
    progress: Progress = None,
) -> TripleTable:
    """Align the triples 3n, 3n + 1, 3n + 2 of a set, in batches of one shape; the
    largest first, each by the next device that is idle."""
    triples = triples_of(sequences, scoring, request)
    paths = request.options.traceback is not None
    # Threads do not know a caller's choice of a device. Two of each: while kernels fill
    # a batch, the host packs the next one and counts the paths of the one before.
    every = request.devices or (first_device(),)
    every *= 2 if triples.kernels.any() else 1
    idle = SimpleQueue()
    for device in every:
        idle.put(device)
    cells = (triples.lengths + 1).prod(axis=1)
    add_cells = teller(progress, int(cells.sum()))

    overlap = len(every) if len(every) > 1 else 0
    budget = request.budget // (1 + (overlap > 0))

    def solved(numbers: np.ndarray, limit: int = budget) -> Found:
        """Solutions of a batch, in parts where memory is short; None for triples that
        have to run alone, below."""
        device, part = idle.get(), triples.within(limit)
        try:
            subject = f"{len(numbers):,} triples"
            with jax.default_device(device), programs.explained(subject):
                return [(numbers, align_batch(part.batch(numbers), paths))]
        except (CertificateError, MemoryPlanError):
            if len(numbers) == 1:
                return [(numbers, None)]
        finally:
            idle.put(device)
        half = len(numbers) // 2
        return solved(numbers[:half], limit // 2) + solved(numbers[half:], limit // 2)

    parts = batches(triples.within(budget))
    solutions = in_advance(solved, parts, overlap) if overlap else map(solved, parts)
    numbers, answers, jobs = [], [], []
    for pieces in solutions:
        for which, solution in pieces:
            if solution is None:
                continue
            plan = _plan_with(paths and "store" or None, triples[which[0]], request)
            numbers.append(which)
            answers.append(solution)
            jobs.append(_job_of(plan))
            add_cells(int(cells[which].sum()))
    placed = np.concatenate([np.zeros(0, np.intp), *numbers])
    for n in np.setdiff1d(np.arange(len(triples)), placed).tolist():
        single = sequences.between(3 * n, 3 * n + 3)
        solution, job = _run_single(triples_of(single, scoring, request))
        numbers.append(np.array([n]))
        answers.append(solution)
        jobs.append(job)
    return table_of(
        sequences, scoring, request.options, triples.orders, numbers, answers, jobs
    )


def batches(triples: TripleSet) -> list[np.ndarray]:
    """Numbers of triples that run together, of one shape and dtype, of the same
    matrices, within the budget; those with the most cells first.

    A batch is filled up to a power of two. A triple whose choices alone exceed the
    budget is left out.
    """
    lengths, groups = triples.lengths, {}
    paths = triples.request.options.traceback is not None
    for n, shape in enumerate(map(tuple, lengths.tolist())):
        by_kernels = bool(triples.kernels[n])
        if by_kernels:
            shape = gpu.cube_of(shape, paths) or gpu.rounded(shape)
        else:
            shape = engine.shape_of_extent(shape)
        order = () if triples.scoring.symmetric else tuple(triples.orders[n].tolist())
        key = by_kernels, shape, triples.dtypes[n], order
        groups.setdefault(key, []).append(n)
    parts = []
    for group in groups.values():
        first = triples[group[0]]
        if first.kernels:
            longest = tuple(lengths[group].max(axis=0).tolist())
            size = gpu.most_triples(first, longest, paths)
        else:
            choices = tracebacks.device_bytes(first, engine.whole(first))
            size = triples.request.budget // choices
        if not size:
            continue
        size = min(2 ** (size.bit_length() - 1), MAX_TRIPLES)
        numbers = np.array(group)
        numbers = numbers[np.lexsort(-lengths[numbers].T[::-1])]
        parts += [numbers[start : start + size] for start in range(0, len(group), size)]
    return sorted(parts, key=lambda part: lengths[part[0]].tolist(), reverse=True)


def align_batch(batch: RegionBatch, paths: bool) -> Solution:
    """Scores, and with ``paths`` their columns, of triples of one shape and dtype."""
    with precision(batch.triple.dtype):
        if batch.triple.mode != "local":
            return _trace_batch(batch, paths)
        # The ends by one sweep, the starts by one back; then the cells between them.
        scores, high = _best_cells(batch)
        if not paths:
            scores = np.maximum(scores, 0)
            return Solution(scores, batch.low, batch.high, batch.cells)
        before = replace(batch, high=high)
        _, low = _best_cells(before, reverse=True)
        aligned = (scores > 0)[:, None]
        inner = replace(
            batch,
            triple=replace(batch.triple, mode="global"),
            low=np.where(aligned, low, 0),
            high=np.where(aligned, high, 0),
        )
        answer = _trace_batch(inner, paths)
        return answer._replace(cells=batch.cells + before.cells + answer.cells)


def _best_cells(
    batch: RegionBatch, reverse: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """(scores, cells (n, 3)) of the best local end of each region, or start going
    back."""
    if batch.triple.kernels:
        return gpu.best_cells(batch, reverse)
    outputs = engine.best_outputs(batch.triple, reverse)
    filled = _sweep(batch, reverse, **outputs)
    best, best_w = np.asarray(filled.best), np.asarray(filled.best_w)
    cells = []
    for n in range(len(batch)):
        low, high = tuple(batch.low[n].tolist()), tuple(batch.high[n].tolist())
        region = Region(low, high)
        cells.append(engine.greatest_cell(region, best[n], best_w[n], reverse))
    return np.array([x for x, _ in cells]), np.array([cell for _, cell in cells])


def _trace_batch(batch: RegionBatch, paths: bool) -> Solution:
    """The best path of each region, or its score."""
    if batch.triple.kernels:
        return gpu.solve(batch, paths)
    filled = _sweep(batch, choices=paths)
    count, model = len(batch), batch.triple.model
    ends = np.asarray(filled.end)[:count]
    states = np.where(batch.end < 0, ends.argmax(axis=1), batch.end)
    scores = ends[np.arange(count), states].astype(np.int64)
    solution = Solution(scores, batch.low, batch.high, batch.cells)
    if not paths:
        return solution
    points = np.ones((len(filled.end), 4), np.int32)
    points[:count, :3] += batch.extents.astype(np.int32)
    points[:count, 3] = states
    longest = engine.padded_length(int(points[:, :3].sum(axis=1).max()))
    traces = walks(model, filled.choices, points, longest)
    columns = np.asarray(traces.columns)
    counts = np.asarray(traces.count)[:count].astype(np.int64)
    last = np.arange(count) * columns.shape[1] + counts - 1  # which comes first
    steps = columns.ravel()[np.repeat(last, counts) - ranks(counts)].astype(np.uint8)
    return solution._replace(steps=steps, counts=counts)


def _sweep(batch: RegionBatch, reverse: bool = False, **outputs: Any):
    """Fill a region of each triple; the batch is padded to a power of two."""
    triple, count = batch.triple, 2 ** (len(batch) - 1).bit_length()
    shape = engine.shape_of_extent(batch.extents.max(axis=0).tolist())
    letters = batch.padded(shape, 2, batch.letters(reverse))
    seed = engine.seed_of(triple, None if reverse else (0,))
    free = batch.free_ends(reverse).transpose(1, 2, 0) + 1
    arrays = (
        *(rows.astype(np.int32) for rows in letters),
        np.broadcast_to(seed, (len(batch), *seed.shape)),
        batch.extents.astype(np.int32) + 1,
        free.astype(np.int32),
    )
    box = Box._make(gpu.filled_up(rows, count) for rows in arrays)
    costs = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), triple.scoring
    )
    box.size[len(batch) :] = 1  # of what pads the batch, the first cell
    static = FillOutputs(free=triple.mode == "semiglobal", **outputs)
    model = backwards(triple.model) if reverse else triple.model
    return fills(model, static, tracebacks.many_at_once(), box, costs)


@program(("model", "outputs", "at_once"))
def fills(
    model: Model, outputs: FillOutputs, at_once: bool, box: Box, costs: TripleScoring
):
    """``planes.fill`` of every box of a batch: in the same steps, or one box after
    the other, whose planes then stay in the cache of a core."""
    last = jnp.max(jnp.sum(box.size, axis=1, dtype=jnp.int32)) if at_once else None

    def fill_box(box: Box, costs: TripleScoring):
        return planes.fill(model, outputs, box, costs, None, last)

    if at_once:
        return jax.vmap(fill_box)(box, costs)
    return jax.lax.map(lambda each: fill_box(*each), (box, costs))


@program(("model", "longest"))
def walks(model: Model, choices: jax.Array, points: jax.Array, longest: int):
    """The path through every box of a batch."""

    def walk_box(choices: jax.Array, point: jax.Array):
        choice_at = partial(planes.choice_at, model, choices)
        return recurrence.walk(model, choice_at, point, longest)

    return jax.vmap(walk_box)(choices, points)
