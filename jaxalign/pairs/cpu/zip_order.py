"""Zipped pairs in windows: how many lie side by side, and which."""

import numpy as np

from jaxalign.runtime.lengths import by_length

SHORT = 32  # letters of short sequences
SHORT_PAIRS = 2048  # of those in a window: a call takes as long as 1,000 of them


def zip_lanes(job, pairs: int, lanes: tuple[int, ...]) -> int:
    """Lanes of windows of zipped pairs, of those that windows have."""
    if max(job.most) <= SHORT and not job.paths and pairs > lanes[0]:
        return SHORT_PAIRS
    return lanes[1] if pairs > lanes[-1] else lanes[-1]


def alike(m, n, lanes: int) -> np.ndarray:
    """Pairs of lengths (P,) in the best of some orders for windows of so many: by
    cells, which suits sides of like lengths, or by one side in groups of windows, and
    in each group by the other, which suits few queries that meet many targets."""
    windows = -(-len(m) // lanes)
    size = max(-(-windows // max(round(windows**0.5), 1)), 1) * lanes
    orders = [by_length(m * (n + 1))]
    for first, second in ((m, n), (n, m)):
        order = by_length(first)
        groups = [order[k : k + size] for k in range(0, len(order), size)]
        orders.append(
            np.concatenate([x[by_length(second[x])] for x in groups or [order]])
        )

    def filled(order):
        starts = np.arange(0, len(order), lanes)
        most = (np.maximum.reduceat(x[order], starts) for x in (m, n))
        return int(np.prod([*most], axis=0).sum()) if len(order) else 0

    return min(orders, key=filled)
