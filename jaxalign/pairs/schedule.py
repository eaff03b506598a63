"""Windows over devices: longest processing time first, pulled by whichever is idle.

The task manager of the 2011 gpu-pairalign paper. Windows stand in one queue, in order
of estimated cells, heaviest first; a device that falls idle takes the next one. Were
all devices alike and the estimates exact, the last device would end within
(4/3 - 1/(3m)) of the best of all schedules on m devices (Graham, 1969, theorem 2).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from itertools import pairwise

import numpy as np

from jaxalign.pairs.windows import PairBlock, PairMatrix

MAX_HALVINGS = 6  # of the lists that devices take


@dataclass(frozen=True)
class Schedule:
    """Who would compute what, were all devices alike and the estimates exact.

    ``cells`` of each window, the ``order`` of the queue (indices, heaviest first), and
    ``windows``: for each device the indices it takes, in the order it takes them.
    """

    cells: tuple[int, ...]
    order: tuple[int, ...]
    windows: tuple[tuple[int, ...], ...]

    @property
    def loads(self) -> tuple[int, ...]:
        """Cells of each device."""
        return tuple(sum(self.cells[k] for k in taken) for taken in self.windows)

    @property
    def makespan(self) -> int:
        """Cells of the device that ends last."""
        return max(self.loads, default=0)

    @property
    def least(self) -> int:
        """No schedule ends before this: its share, and the heaviest window."""
        share = -(-sum(self.cells) // max(len(self.windows), 1))
        return max(share, max(self.cells, default=0))

    def __str__(self) -> str:
        head = f"{len(self.cells):,} windows, {sum(self.cells):,} cells"
        taken = zip(self.windows, self.loads, strict=True)
        lines = [
            f"device {k}: {len(windows):,} windows, {load:,} cells"
            for k, (windows, load) in enumerate(taken)
        ]
        over = self.makespan / self.least if self.least else 1
        return "\n".join([head, *lines, f"at most {over:.3f} times the least time"])


def plan(cells: Sequence[int], devices: int) -> Schedule:
    """The schedule of windows with these cells on some devices that are alike.

    Parameters
    ----------
    cells : sequence of int
    devices : int
        1 or more.

    Examples
    --------
    >>> print(plan([5, 5, 4, 4, 3, 3, 3], 3))
    7 windows, 27 cells
    device 0: 3 windows, 11 cells
    device 1: 2 windows, 8 cells
    device 2: 2 windows, 8 cells
    at most 1.222 times the least time
    """
    cells = tuple(int(x) for x in cells)
    order = heaviest_first(cells)
    idle = [(0, device) for device in range(devices)]
    heapify(idle)
    windows: list[list[int]] = [[] for _ in range(devices)]
    for k in order:
        load, device = idle[0]
        windows[device].append(k)
        heapreplace(idle, (load + cells[k], device))
    return Schedule(cells, order, tuple(map(tuple, windows)))


def heaviest_first(cells: Sequence[int]) -> tuple[int, ...]:
    """Indices by falling cells; equal ones as they come."""
    return tuple(np.argsort(-np.asarray(cells, np.float64), kind="stable").tolist())


def lists(pieces: list, devices: int) -> list[list]:
    """Pieces, heaviest first, in lists for devices that are slow to begin a piece after
    another is done: each takes half of its share at once, then half of the rest, and so
    on (guided self-scheduling, Polychronopoulos and Kuck, 1987), so that they end
    together though one be slower.

    Examples
    --------
    >>> lists(list(range(8)), 2)
    [[0, 2], [1, 3], [4], [5], [6], [7]]
    """
    shares = [pieces[k::devices] for k in range(devices)]
    parts = 2 ** min(MAX_HALVINGS, max(len(shares[-1]), 1).bit_length() - 1)
    ends = [0, *(parts - parts // 2**k for k in range(1, parts.bit_length())), parts]
    lists_of = [
        [one for k, one in enumerate(share) if begin <= k % parts < end]
        for begin, end in pairwise(ends)
        for share in shares
    ]
    return [some for some in lists_of if some]


def estimate(job: PairMatrix, block: PairBlock) -> int:
    """Cells of a window or a launch: the sum of its query lengths times that of its
    target lengths, as in the paper."""
    m, n = job.query_lengths[block.queries], job.target_lengths[block.targets]
    if block.zipped:
        return int((m * n).sum())
    return int(m.sum()) * int(n.sum())
