"""Which scores a CPU fills in 8 bits, twice the lanes of 16 an instruction, and which
identities in 16.

Local scores are tried in 8 bits. Without paths a score of 0 is held near the bottom of
the range. A score that 8 bits do not hold is seen (``model.bounds``), and such pairs
are computed again in more bits. Global tables are filled by differences, which 8 bits
provably hold at any length; with the matches of an identity in the low digits these
take 16.
"""

from typing import NamedTuple

from jaxalign.model import bounds
from jaxalign.pairs.cpu.lane_packing import SHORT_PAIRS
from jaxalign.pairs.dp.sweep.cell_blocks import Constants
from jaxalign.pairs.plan import Task
from jaxalign.pairs.run_state import Worker
from jaxalign.pairs.windows import Window
from jaxalign.runtime.devices import first_device

# With one pair in so many beyond them, a window is filled again …
MAX_OVERFLOW_RATIO = 32
WINDOWS_SKIPPED = 4  # … and so many windows of that thread are not tried


def _on_cpu(task: Task) -> bool:
    return first_device(task.devices).platform == "cpu"


def _large_on_cpu(task: Task) -> bool:
    return task.large and _on_cpu(task)


def limit(task: Task) -> int:
    """The local score up to which windows are tried in 8 bits first, which takes a
    program more; 0: they are not, as where each lane has a query of its own, whose
    scores are looked up. A table of a profile does without, too: the pairs beyond could
    not share its positions."""
    tried = task.kind != "zip" and task.output != "identity" and task.mesh is None
    if task.top is None:
        tried &= not task.scoring.by_position
    if not (tried and _large_on_cpu(task)):
        return 0
    zero = 0 if task.paths else bounds.least_zero(task.scoring, "int8")
    return bounds.narrow_high(task.scoring, task.mode, "int8", zero)


def costs(task: Task, window: Window, dtype: str) -> Constants | None:
    """Gap costs as constants of the program: local scores are then a third faster on a
    CPU (``pairs/dp/sweep/cell_blocks.py``), and other costs take another program."""
    scores = task.local and task.output == "score" and not window.zipped
    if not (scores and _large_on_cpu(task)):
        return None
    zero = bounds.least_zero(task.scoring, dtype) if dtype == "int8" else 0
    return Constants(task.scoring.open, task.scoring.extend, zero)


class Differences(NamedTuple):
    """How global tables are filled by differences
    (``pairs/dp/sweep/difference_fill.py``)."""

    cell: str  # dtype of a difference
    base: int  # score * base + matches is filled; 1 of a score alone
    opening: int  # to open a gap, beside its residues: a constant of the program


def differences(task: Task, window: Window) -> Differences | None:
    """The differences by which a window is filled: of scores in 8 bits, of identities
    in 16. None where its tables are filled as they are."""
    ends = {"query_end", "target_end"} & set(task.free)
    identity = task.output == "identity"
    other = task.scoring.by_position or task.mesh is not None
    # What lanes look up takes longer than the cells of short sequences.
    other |= window.zipped and (task.paths or window.lanes == SHORT_PAIRS)
    if task.mode == "local" or ends or other:
        return None
    if not (_large_on_cpu(task) or (identity and _on_cpu(task))):
        return None
    scoring, cell, base = task.scoring, "uint8", 1
    if identity:
        cell, base = "uint16", bounds.differences_base(scoring, "uint16")
        fits = min(window.m, window.n) < base
        fits &= task.dtype(window.m, window.n) == "int32"
    else:
        fits = bounds.fits_differences(scoring, cell, task.paths)
    if window.zipped:
        fits &= bounds.fits_bytes(scoring, base)
    opening = base * (scoring.open - scoring.extend)
    return Differences(cell, base, opening) if fits else None


def dtypes_of(task: Task, blocks: list[Window]) -> set[str]:
    """The narrow types in which some windows are filled."""
    tried = {"int8"} if blocks and limit(task) else set()
    each = (differences(task, window) for window in blocks)
    return tried | {one.cell for one in each if one is not None}


def to_be_tried(worker: Worker) -> bool:
    """Whether a thread tries its next window in 8 bits."""
    worker.windows_to_skip -= 1
    return worker.windows_to_skip < 0


def too_many(worker: Worker, beyond: int, pairs: int) -> bool:
    """Whether so many pairs of a window left 8 bits that it is filled again. Some
    windows of this thread are not tried then."""
    if beyond * MAX_OVERFLOW_RATIO <= pairs:
        return False
    worker.windows_to_skip = WINDOWS_SKIPPED
    return True
