"""The whole table of one pair, for eyes: H, E, F and the four boolean matrices."""

import numpy as np

from jaxalign.model.bounds import score_dtype
from jaxalign.pairs.cpu import long_pair
from jaxalign.pairs.cpu.execute import problem_of
from jaxalign.pairs.dp import directions, wavefront
from jaxalign.runtime.devices import precision, refuse_without_threads
from jaxalign.runtime.lengths import bucket


def _filled(a, b, scoring, mode, free, codes=False, tables=False):
    refuse_without_threads()
    local = mode == "local"
    dtype = score_dtype(len(a), len(b), scoring, mode, widest=True)
    rows, columns = bucket(len(a)), bucket(len(b))
    query, target = np.zeros(rows, np.int32), np.zeros(columns, np.int32)
    query[: len(a)], target[: len(b)] = a, b
    with precision(dtype):
        problem = problem_of(scoring, free, dtype)
        top = wavefront.top_border(
            columns, problem.free["target_start"] | local, problem.gaps
        )
        codes = wavefront.empty_codes(rows, columns) if codes else None
        args = (query, target, len(a), len(b), 0, top, problem, None, codes)
        return long_pair.fill_strip(*args, local=local, tables=tables)


def whole(a, b, scoring, mode, free):
    """(H, E, F) of codes a (m,), b (n,): (m + 1, n + 1), int32, or int64 if needed."""
    filled = _filled(a, b, scoring, mode, free, tables=True)
    inside = np.s_[: len(a) + 1, : len(b) + 1]
    return tuple(np.asarray(table)[inside] for table in filled.tables)


def directions_of(a, b, scoring, mode, free) -> dict:
    """The four boolean matrices (m, n) and ``words`` uint32 (ceil(m / 8), n)."""
    codes = _filled(a, b, scoring, mode, free, codes=True).codes
    words = wavefront.words_of(codes, bucket(len(b)))
    words = words[: -(-len(a) // 8), : len(b)]
    matrices = directions.split(directions.unpack(words)[: len(a)])
    arrays = {name: np.asarray(matrix) for name, matrix in matrices.items()}
    return arrays | {"words": np.asarray(words)}
