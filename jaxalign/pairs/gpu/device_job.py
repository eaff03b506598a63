"""A task on a device: what its launches share, and its result as it grows there.

The result is in input order. A launch is put into it once all of it is there, since
what is put gives its memory away: a launch that fails must not take the rows of others
with it. Should memory be missing even so, the rows are ``Lost``, and their launches run
again without it.

The bytes of a launch shape its arrays, and so its program. They are the same on every
device of which JAX may have ``USUAL_BYTES`` or more, whatever is free of it, and a
quarter of a smaller one.

Sequences are flat codes, in arrays of a few sizes. Blocks of a database whose codes
nobody can change stay on the device as long as they are on the host: a search of few
queries takes less time than to copy them there. So do the codes of a job that runs in
parts, as long as it runs.
"""

from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxalign.model.alignment import SPANS
from jaxalign.model.alphabet import Sequences
from jaxalign.pairs.gpu import device_arrays
from jaxalign.pairs.gpu.device_arrays import MAX_ROWS, SMALL_ROWS, LaunchResult, Order
from jaxalign.pairs.gpu.launches import MANY_LETTERS, THREADS_OF_A_DEVICE, numbers
from jaxalign.pairs.plan import Task, WholeCodes
from jaxalign.pairs.result import PATH_COUNTS, Output
from jaxalign.runtime import programs
from jaxalign.runtime.devices import Device, bucket, first_device
from jaxalign.runtime.programs import program

# Bytes of a device whose allocator does not say (``platform``)
UNKNOWN_DEVICE_BYTES = 2**32
# Bytes of a launch: a pool that grows finds so much in one piece, and more buy little
# (docs/gpu-kernels.md); those of a result that is put together on a device; and those
# of the smallest devices that have both.
LAUNCH_BYTES, RESULT_BYTES, USUAL_BYTES, LARGE_BYTES = 2**33, 2**34, 2**34, 2**35
MEAN_RUNS = 16  # of a path, in a result

_limits: dict = {}  # device -> bytes of launches, once a larger one found no memory


def budget(task: "Task") -> int:
    """Device bytes for one launch."""
    available = _limit(task)
    return LAUNCH_BYTES if available >= USUAL_BYTES else power(available) // 4


def power(count: int) -> int:
    """The power of two up to a count, 1 at least."""
    return 2 ** (max(count, 1).bit_length() - 1)


def memory_limit(device: Device) -> int | None:
    """Bytes that a launch on a device may take, None until one found no memory."""
    return _limits.get(device)


def lower_limit(device: Device, count: int) -> None:
    """Launches on a device take so many bytes at most from now on, in whichever job of
    this process: to try larger ones costs seconds each, while JAX waits for memory."""
    _limits[device] = min(count, memory_limit(device) or count)


def threads_of(task: "Task") -> int:
    """Host threads of a device; one is enough where no rows go to the host between."""
    several = task.reserved is not None or (len(task.devices) > 1 and not holds(task))
    return THREADS_OF_A_DEVICE if several or task.top else 1


def holds(task: "Task") -> bool:
    """Whether the rows of a task may be put together where they are computed; paths,
    which have no places of their own, on one device alone."""
    joined = task.output == "alignment" and len(task.devices) > 1
    if task.filtered or joined:
        return False
    # Rows are counted in int32.
    rows = task.job.pairs * (2 * MEAN_RUNS if task.output == "alignment" else 1)
    available = _limit(task)
    limit = RESULT_BYTES if available >= LARGE_BYTES else power(available) // 4
    # Device bytes of a whole result; runs are there twice when they are ordered.
    columns = 11 if task.paths else 2
    runs = 2 * MEAN_RUNS + 4 if task.output == "alignment" else 0
    return rows < MAX_ROWS and 4 * task.job.pairs * (columns + runs) < limit


def _limit(task: "Task") -> int:
    """Bytes of the smallest device of a task."""
    return min(of_device(device) for device in task.devices or jax.devices()[:1])


def of_device(device: Device) -> int:
    """Bytes that JAX may have of a device."""
    stats = device.memory_stats() or {}
    return stats.get("bytes_limit", UNKNOWN_DEVICE_BYTES)


# Room in arrays of a side, beyond which it is a power of two: each is a compilation of
# all programs that gather letters. A block of a database has 2^26 letters, and the rest
# of a sequence.
LETTER_ROOMS, SEQUENCE_ROOMS = (MANY_LETTERS, 2**26 + 2**22), (2**16, 2**20)
PIECE = 2**22  # many letters go to the device in pieces, a whole number of each room

_copying = Lock()  # codes are copied by the first thread that needs them

KEPT_SHARE = 1 / 8  # of the memory of a device, for blocks that stay there


class DeviceSequences(NamedTuple):
    """One side on the device: flat codes, where each sequence begins, its length."""

    codes: jax.Array  # uint8 or uint16, one more than there are residues
    start: jax.Array  # int32
    length: jax.Array  # int32


_kept: WeakKeyDictionary[Sequences, dict] = WeakKeyDictionary()  # device -> itself
_whole: WeakKeyDictionary[WholeCodes, dict] = WeakKeyDictionary()  # device -> codes


def load_block(block: Sequences) -> DeviceSequences:
    """``load`` for a block of a database, or the query of a profile, which stays on the
    device if its codes cannot be written and there is room."""
    if block.codes.flags.writeable:
        return load_sequences(block)
    device = first_device()
    by_device = _kept.setdefault(block, {})
    if device not in by_device:
        loaded = load_sequences(block)
        resident = [x[device] for x in list(_kept.values()) if device in x]
        taken = sum(x.nbytes for arrays in (*resident, loaded) for x in arrays)
        if taken > KEPT_SHARE * of_device(device):
            return loaded
        by_device[device] = loaded
    return by_device[device]


def forget_sequences(device: Any) -> None:
    """Give back the memory of what stays on a device."""
    for by_device in (*_kept.values(), *_whole.values()):
        by_device.pop(device, None)


def load_sequences(
    sequences: Sequences,
    letters: int = 0,
    count: int = 0,
    wholes: Iterable[WholeCodes] = (),
) -> DeviceSequences:
    """One side of a task, to the device, in arrays for so many letters at least and so
    many sequences; of letters that are some of ``wholes`` these are taken."""
    count = places_of(sequences, count)
    codes, start = letters_of(sequences, wholes, letters)
    places = sequences.starts + start, sequences.lengths
    numbers = (padded_integers(x, count) for x in places)
    # One call for all three: each takes a millisecond.
    return jax.device_put(DeviceSequences._make([codes, *numbers]))


def places_of(sequences: Sequences, count: int = 0) -> int:
    """Room for the sequences of one side, at least ``count``; constant for sets of many
    letters."""
    large = len(sequences.codes) >= MANY_LETTERS
    return max(count, SEQUENCE_ROOMS[-1]) if large else count


def outlined(
    sequences: Sequences,
    letters: int = 0,
    count: int = 0,
    wholes: Iterable[WholeCodes] = (),
) -> DeviceSequences:
    """The shapes of ``load``; many letters come piece by piece, by programs."""
    mine = (x for x in wholes if x.begin(sequences.codes) is not None)
    whole = next(mine, None)
    codes = sequences.codes if whole is None else whole.codes
    needed = max(len(codes), letters if whole is None else 0) + 1
    letters_there = jax.ShapeDtypeStruct((_room(needed, LETTER_ROOMS),), codes.dtype)
    if len(codes) >= MANY_LETTERS:
        piece = jax.ShapeDtypeStruct((PIECE,), codes.dtype)
        letters_there = _with_piece(
            _no_letters(size=letters_there.size, dtype=str(codes.dtype)),
            piece,
            np.int32(0),
        )
    room = _room(max(len(sequences), places_of(sequences, count)), SEQUENCE_ROOMS)
    numbers = jax.ShapeDtypeStruct((room,), np.int32)
    return DeviceSequences._make([letters_there, numbers, numbers])


def letters_of(
    sequences: Sequences, wholes: Iterable[WholeCodes] = (), least: int = 0
) -> tuple:
    """Codes on JAX's default device, and the place where the sequences begin: an array
    of their own, with room for at least ``least`` letters, or one of ``wholes`` that
    contains them."""
    for whole in wholes:
        start = whole.begin(sequences.codes)
        if start is not None:
            return _on_device(whole), start
    return _letters(sequences.codes, least), 0


def _on_device(whole: WholeCodes) -> jax.Array:
    """All codes of a job, on JAX's default device."""
    device = first_device()
    with _copying:
        there = _whole.setdefault(whole, {})
        if device not in there:  # another device copies faster than the host
            copies = [*there.values()] or [_letters(whole.codes, 0)]
            there[device] = jax.device_put(copies[0], device)
        return there[device]


def padded_integers(values: np.ndarray, count: int = 0) -> np.ndarray:
    """int32, for so many sequences at least."""
    return _long(values, np.int32, count, SEQUENCE_ROOMS)


def _letters(codes: np.ndarray, least: int) -> np.ndarray | jax.Array:
    """Copy codes to an array with room for at least so many letters and one more; large
    sets go to the device piece by piece, without a copy on the host."""
    needed = max(len(codes), least) + 1
    if len(codes) < MANY_LETTERS:
        return _long(codes, codes.dtype, needed, LETTER_ROOMS)
    size = _room(needed, LETTER_ROOMS)
    array = _no_letters(size=size, dtype=str(codes.dtype))
    for start in range(0, len(codes), PIECE):
        piece = codes[start : start + PIECE]
        if len(piece) < PIECE:
            piece = np.pad(piece, (0, PIECE - len(piece)))
        array = _with_piece(array, piece, np.int32(start))
    return array


@program(("size", "dtype"))
def _no_letters(*, size: int, dtype: str):
    return jnp.zeros(size, dtype)


@program(donate_argnums=0)
def _with_piece(array: jax.Array, piece: jax.Array, start: jax.Array):
    return lax.dynamic_update_slice(array, piece, (start,))


def _room(needed: int, sizes: tuple[int, ...]):
    """One of some sizes, or a power of two beyond."""
    return next((x for x in sizes if x >= needed), bucket(needed, 2, sizes[-1]))


def _long(
    values: np.ndarray, dtype: np.dtype | type, least: int, sizes: tuple[int, ...]
) -> np.ndarray:
    """An array of one of the sizes of ``_room``."""
    size = _room(max(len(values), least), sizes)
    array = np.zeros(size, dtype)
    array[: len(values)] = values
    return array


LEAST_RUNS, RUNS_RATIO = 2**17, 8  # rungs of room for the runs of all paths


class Lost(Exception):
    """No memory was left to put a launch into a result, whose rows are now invalid."""


@dataclass
class DeviceResult:
    """A result as it grows on the device."""

    columns: dict
    runs: jax.Array  # of all paths so far, in the order of launches
    end: jax.Array  # (): how many
    room_used: int = 0  # the same, on the host, or more
    launches: list = field(default_factory=list)  # whose rows are here or will be
    cells_reported: int = 0  # their cells that progress has been told of


@dataclass
class DeviceJob:
    """Sequences, scoring and results that the launches of a task share on a device.

    A thread that runs some of them has a copy, of which the middle fields are its own;
    the last ones are those of all copies.
    """

    task: Task
    kernels: Any
    sides: tuple  # of ``DeviceSequences``
    order: Order
    problem: Any
    interpret: Any = None

    result: DeviceResult | None = None  # None: rows go to the host, launch by launch
    output: Any = None  # ``pairs.result.Output``
    report_progress: Any = None  # callable (cells more done)
    spilled: bool = False  # rows go to the host: there was no memory to hold them

    compiled: set = field(default_factory=set)  # static sizes
    halved: list = field(default_factory=list)  # launches that ran in halves

    @property
    def device(self):
        return self.sides[0].codes.device


def order_of(task: Task, base: np.ndarray, rank: np.ndarray) -> Order:
    """An ``Order`` on the host, with room as the two sides have it; nothing for the
    scores of a search, which have no rows."""
    if task.top is not None:
        return Order._make([*np.zeros((2, 1), np.int32), np.int32(0)])
    count = task.job.whole.targets if task.job.whole else 0
    rooms = (places_of(x, count) for x in (task.queries, task.targets))
    places = zip((base, rank), rooms, strict=True)
    half = 1 + task.job.include_self if task.job.kind == "all" else 0
    return Order._make([*(padded_integers(*x) for x in places), np.int32(half)])


def problem_of(task: Task, kernels: Any):
    """The scoring of a task, on the device."""
    alphabet, (scores, *costs) = task.scoring.alphabet, numbers(task)
    costs = *costs, task.free, alphabet.wildcard_code
    if alphabet.states is None:
        return kernels.problem_of(scores, *costs, gap_costs=task.scoring.gap_costs)
    sizes = alphabet.size, alphabet.states.size
    first, second = (x[:n, :n] for x, n in zip(scores, sizes, strict=True))
    return kernels.problem_of(first, *costs, second=second)


@contextmanager
def _lost():
    try:
        yield
    except programs.RuntimeFailure as error:
        if programs.out_of_memory(error):
            raise Lost from error
        raise


def names_of(task: Task) -> list[str]:
    """The columns of a result."""
    names = ["score"]
    names += ["max_identities"] if task.output == "identity" else []
    names += [*SPANS, *PATH_COUNTS] if task.paths else []
    return names + (["count", "first"] if task.output == "alignment" else [])


def empty_result(task: Task) -> DeviceResult:
    """Columns of the result on the device; runs of a path begin at ``first``."""
    with _lost():
        columns = device_arrays.columns(names_of(task), task.job.pairs)
        runs, end = jax.device_put((np.zeros(LEAST_RUNS, np.uint32), np.int32(0)))
        jax.block_until_ready((columns, runs, end))
    return DeviceResult(columns, runs, end)


def put_launch(whole: DeviceResult, result: LaunchResult, total: int) -> None:
    """Put the rows of a launch, which are there, into the whole result.

    total : runs of all its paths
    """
    with _lost():
        if result.runs is not None:
            needed = whole.room_used + len(result.runs)
            if needed > len(whole.runs):
                size = bucket(needed, RUNS_RATIO, LEAST_RUNS)
                whole.runs = device_arrays.grow(whole.runs, size=size)
            whole.room_used += min(total, len(result.runs))
        whole.columns, whole.runs, whole.end = device_arrays.put(
            whole.columns, whole.runs, whole.end, result
        )


def wait_for(whole: DeviceResult) -> None:
    """Wait until all launches are put into a result."""
    with _lost():
        jax.block_until_ready((whole.columns, whole.runs, whole.end))


def collect(jobs: list[DeviceJob], out: Output) -> None:
    """Bring the results of jobs of one task, each on its own device, to the host."""
    results = [job.result for job in jobs if job.result is not None]
    if not results:
        return
    columns = {name: [x.columns[name] for x in results] for name in results[0].columns}
    paths = None
    if "first" in columns:
        # Runs of the paths of one device, in input order, and how many of each row
        whole, rows = results[0], jobs[0].task.job.pairs
        (count,), (first,) = columns.pop("count"), columns.pop("first")
        counts = np.zeros(rows, np.int32)
        device_arrays.add([count], counts)
        total = int(counts.sum(dtype=np.int64))
        runs = np.zeros(total, np.uint32)
        size = bucket(total, RUNS_RATIO, LEAST_RUNS)
        try:
            device_arrays.add(
                [device_arrays.in_order(whole.runs, count, first, size=size)], runs
            )
        except programs.RuntimeFailure as error:
            if not programs.out_of_memory(error):
                raise
            runs = device_arrays.rows_in_order(
                whole.runs, np.asarray(first)[:rows], counts
            )
        paths = runs, counts.astype(np.int64)
    small = [x for parts in columns.values() for x in parts if x.size <= SMALL_ROWS]
    for column in small:
        column.copy_to_host_async()
    add = device_arrays.add
    out.take({name: partial(add, parts) for name, parts in columns.items()}, paths)
    for job in jobs:
        job.result = None
