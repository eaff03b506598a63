"""One pair by the striped fill: lengths in buckets, lanes by length. Scores alone."""

import numpy as np

from jaxalign.pairs.cpu.long_pair import PairResult
from jaxalign.pairs.dp import striped
from jaxalign.runtime.lengths import bucket
from jaxalign.runtime.programs import program

# (VL, PL) on a CPU, the first from queries of its PL on: docs/logs/search-cpu.md.
SHAPES = ((64, 512), (16, 128), (8, 64))


def score(query, target, problem, local) -> PairResult:
    """The score of a pair.

    Parameters
    ----------
    query, target : uint8 codes (m,), (n,)
    problem : pairs.dp.window_program.WindowProblem
        The dtype of its gaps is proven for the whole pair.
    """
    lanes, part = next((s for s in SHAPES if len(query) >= s[1]), SHAPES[-1])
    sizes = bucket(len(query), 2, part), bucket(len(target))
    padded = [np.zeros(size, np.int32) for size in sizes]
    for wide, codes in zip(padded, (query, target), strict=True):
        wide[: len(codes)] = codes
    lengths = np.int32(len(query)), np.int32(len(target))
    found = _fill(*padded, *lengths, problem, local=local, lanes=lanes, part=part)
    return PairResult(int(found), 0, 0, *[0] * 6, None)


@program(("local", "lanes", "part"))
def _fill(query, target, m, n, problem, **static):
    scores, gaps, free, _ = problem
    return striped.fill(query, target, m, n, scores, gaps, free, **static)
