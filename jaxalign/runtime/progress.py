"""What a caller hears of a run: cells done, devices at work."""

import threading


def teller(progress, total):
    """A function that adds up cells, whichever thread they come from."""
    lock, done = threading.Lock(), 0

    def tell(cells):
        nonlocal done
        with lock:
            done += cells
            if progress:
                progress(done, total)

    return tell


def watcher(busy, devices):
    """A function that counts devices at work; each may have several threads."""
    lock, at_work = threading.Lock(), {}

    def watch(device, change):
        with lock:
            at_work[device] = at_work.get(device, 0) + change
            if busy:
                busy(sum(count > 0 for count in at_work.values()), devices)

    return watch
