"""The fill by rows: milliseconds and GCUPS of windows of pairs, in NumPy, one thread.

    python benchmarks/small_jobs.py

``benchmarks/whole_process.py`` has whole processes, by rows and compiled.
"""

import argparse
import time
from itertools import product

import numpy as np
from measure import gcups, machine, show_machine

REPEATS = 5  # of which the best counts
SHAPES = ((1, 330, 340), (1, 900, 900), (100, 275, 275), (32, 900, 900))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.parse_args()
    from jaxalign.model.scoring import Scoring
    from jaxalign.pairs.dp.rows import RowsProblem

    show_machine(machine())
    scores = Scoring().scores.astype(np.int64)
    for shape, dtype, local in product(SHAPES, ("int16", "int32"), (False, True)):
        problem = RowsProblem(scores, 11, 1, frozenset(), local, False)
        best = [seconds(shape, problem, dtype, paths) for paths in (False, True)]
        cells = np.prod(shape)
        score, path = (f"{s * 1e3:.1f} ms, {gcups(cells, s):.3f} GCUPS" for s in best)
        name = f"{' x '.join(map(str, shape))} {'local' if local else 'global'} {dtype}"
        print(f"{name}: score {score}; with path {path}")


def seconds(shape, problem, dtype: str, paths: bool) -> float:
    """The best time of a fill, and of its walk with ``paths``, on random proteins."""
    from jaxalign.pairs.dp import rows

    pairs, m, n = shape
    rng, best = np.random.default_rng(2), np.inf
    queries, targets = (rng.integers(0, 20, (pairs, k), np.uint8) for k in (m, n))
    lengths = np.full(pairs, m), np.full(pairs, n)
    for _ in range(REPEATS):
        begin = time.perf_counter()
        sides = queries, lengths[0], targets, lengths[1]
        filled = rows.fill(*sides, problem, dtype, paths)
        if paths:
            rows.walk(filled, queries, targets, 255)
        best = min(best, time.perf_counter() - begin)
    return best


if __name__ == "__main__":
    main()
