# pyright: strict
"""Progress of a run, as a caller hears of it: cells computed, devices at work."""

import threading
from collections.abc import Callable


def teller(
    progress: Callable[[int, int], object] | None, total: int
) -> Callable[[int], None]:
    """A function that adds up cells, whichever thread they come from."""
    lock, sum_of_cells = threading.Lock(), 0

    def tell(cells: int) -> None:
        nonlocal sum_of_cells
        with lock:
            sum_of_cells += cells
            if progress:
                progress(sum_of_cells, total)

    return tell


def watcher(
    busy: Callable[[int, int], object] | None, devices: int
) -> Callable[[object, int], None]:
    """A function that counts devices at work; each may have several threads."""
    lock, at_work = threading.Lock(), dict[object, int]()

    def watch(device: object, change: int) -> None:
        with lock:
            at_work[device] = at_work.get(device, 0) + change
            if busy:
                busy(sum(count > 0 for count in at_work.values()), devices)

    return watch
