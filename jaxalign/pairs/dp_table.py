"""The whole table of one pair, for eyes: H, E, F and the four boolean matrices."""

from typing import TYPE_CHECKING

import numpy as np

from jaxalign.model.bounds import score_dtype
from jaxalign.pairs.cpu import long_pair
from jaxalign.pairs.cpu.execute import problem_of
from jaxalign.pairs.dp import directions, wavefront
from jaxalign.runtime.devices import bucket, precision, refuse_without_threads

if TYPE_CHECKING:
    from jaxalign.model.scoring import Scoring


def _filled(
    a: np.ndarray,
    b: np.ndarray,
    scoring: "Scoring",
    mode: str,
    free: frozenset,
    codes: bool = False,
    tables: bool = False,
):
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
        room = wavefront.empty_codes(rows, columns) if codes else None
        args = (query, target, len(a), len(b), 0, top, problem, None, room)
        return long_pair.fill_strip(*args, local=local, tables=tables)


def whole_table(
    a: np.ndarray, b: np.ndarray, scoring: "Scoring", mode: str, free: frozenset
):
    """(H, E, F) of codes a (m,), b (n,): (m + 1, n + 1), int32, or int64 if needed."""
    filled = _filled(a, b, scoring, mode, free, tables=True)
    inside = np.s_[: len(a) + 1, : len(b) + 1]
    return tuple(np.asarray(table)[inside] for table in filled.tables)


def directions_of(
    a: np.ndarray, b: np.ndarray, scoring: "Scoring", mode: str, free: frozenset
) -> dict:
    """The four boolean matrices (m, n) and ``words`` uint32 (ceil(m / 8), n)."""
    codes = _filled(a, b, scoring, mode, free, codes=True).codes
    words = wavefront.words_of(codes, bucket(len(b)))
    words = words[: -(-len(a) // 8), : len(b)]
    matrices = directions.split(directions.unpack(words)[: len(a)])
    arrays = {name: np.asarray(matrix) for name, matrix in matrices.items()}
    return arrays | {"words": np.asarray(words)}
