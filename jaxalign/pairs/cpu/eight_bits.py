"""Which scores a CPU fills in 8 bits: twice the lanes of 16 an instruction.

Local scores are tried in 8 bits. Without paths a score of 0 is held near the bottom of
the range. A score that 8 bits do not hold is seen (``model.bounds``), and such pairs
are computed again in more bits. Global tables are filled by differences, which 8 bits
provably hold at any length.
"""

from jaxalign.model import bounds
from jaxalign.pairs.dp.sweep.cell_blocks import Constants
from jaxalign.pairs.plan import Task
from jaxalign.pairs.run_state import Worker
from jaxalign.pairs.windows import Window
from jaxalign.runtime.devices import first_device

# With one pair in so many beyond them, a window is filled again …
MAX_OVERFLOW_RATIO = 32
WINDOWS_SKIPPED = 4  # … and so many windows of that thread are not tried


def _large_on_cpu(task: Task) -> bool:
    return task.large and first_device(task.devices).platform == "cpu"


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


def opening(task: Task, window: Window) -> int | None:
    """The cost to open a gap, beside that of its residues, as a constant of the
    program that fills global tables by differences in 8 bits
    (``pairs/dp/sweep/difference_fill.py``); None where they are filled as they are."""
    ends = {"query_end", "target_end"} & set(task.free)
    cells = task.mode != "local" and not ends and task.output != "identity"
    shared = not (window.zipped or task.scoring.by_position or task.mesh is not None)
    if not (cells and shared and _large_on_cpu(task)):
        return None
    fits = bounds.fits_differences(task.scoring, "uint8", task.paths)
    return task.scoring.open - task.scoring.extend if fits else None


def dtypes_of(task: Task, blocks: list[Window]) -> set[str]:
    """The types of 8 bits in which some windows are filled."""
    tried = {"int8"} if blocks and limit(task) else set()
    differences = any(opening(task, window) is not None for window in blocks)
    return tried | ({"uint8"} if differences else set())


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
