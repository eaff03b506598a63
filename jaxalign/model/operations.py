"""Run-length operations: ``length << 4 | op`` with BAM's letters, as uint32.

``I`` consumes query, ``D`` consumes target, ``M`` both; ``=`` and ``X`` split M.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

M, I, D, EQUAL, DIFFER = 0, 1, 2, 7, 8  # noqa: E741
LETTERS = "MIDNSHP=X"


def run_lengths(steps: np.ndarray, counts: np.ndarray):
    """Single steps -> run-length operations.

    steps : uint8 (total,). One operation a step, all paths one after another.
    counts : int64 (n,). Steps of each path.
    Returns operations, uint32 (runs,), and offsets, int64 (n + 1,), of each path.
    """
    ends = np.cumsum(counts)
    first = np.zeros(len(steps) + 1, bool)
    first[1:-1] = steps[1:] != steps[:-1]
    first[ends - counts] = True
    first[len(steps)] = True
    at = np.flatnonzero(first)
    operations = (np.diff(at) << 4 | steps[at[:-1]]).astype(np.uint32)
    starts = np.searchsorted(at[:-1], ends)
    return operations, np.concatenate([[0], starts])


def expand(operations: np.ndarray) -> np.ndarray:
    """Run-length operations -> one uint8 operation a step."""
    operations = np.asarray(operations, np.uint32)
    return np.repeat((operations & 15).astype(np.uint8), operations >> 4)


def corners(operations: np.ndarray, starts: tuple[int, int]) -> np.ndarray:
    """Where a path from ``starts`` turns, int64 (2, runs + 1): in query and target."""
    operations = np.asarray(operations, np.uint32)
    kinds, lengths = operations & 15, (operations >> 4).astype(np.int64)
    steps = np.stack([lengths * (kinds != D), lengths * (kinds != I)])
    turns = np.concatenate([np.zeros((2, 1), np.int64), steps.cumsum(axis=1)], axis=1)
    return turns + np.asarray(starts)[:, None]


def split_matches(
    operations: np.ndarray, offsets: ArrayLike, query: np.ndarray, target: np.ndarray
):
    """M runs of many paths -> ``=`` and ``X`` runs; letters are compared, not classes.

    operations, offsets : uint32 (runs,), and int64 (n + 1,), where each path begins
    query, target : uint8. Codes of the residues that the paths cover, end to end.
    Returns operations and offsets.
    """
    steps = expand(operations)
    pairs = steps == M
    same = query[pairs[steps != D]] == target[pairs[steps != I]]
    steps[pairs] = np.where(same, EQUAL, DIFFER)
    ends = np.concatenate([[0], np.cumsum(operations >> 4, dtype=np.int64)])
    return run_lengths(steps, np.diff(ends[np.asarray(offsets)]))


def cigar(operations: np.ndarray) -> str:
    """Run-length operations -> CIGAR text, ``*`` where there is none."""
    operations = np.asarray(operations)
    return "".join(f"{op >> 4}{LETTERS[op & 15]}" for op in operations.tolist()) or "*"


def cigars(operations: Any, offsets: Any):
    """CIGAR text of many rows, one after the other.

    Parameters
    ----------
    operations : uint32 (runs,)
    offsets : int64 (n + 1,)
        Where the runs of each row begin; the first may be above 0.

    Returns
    -------
    text : uint8 (letters,)
        ASCII; ``*`` for a row without runs.
    offsets : int64 (n + 1,)
        Where the text of each row begins.

    Examples
    --------
    >>> text, offsets = cigars(np.array([12 << 4, 1 << 4 | 2], np.uint32), [0, 2, 2])
    >>> text.tobytes(), offsets.tolist()
    (b'12M1D*', [0, 5, 6])
    """
    offsets = np.asarray(offsets, np.int64)
    runs = np.asarray(operations, np.uint32)[offsets[0] : offsets[-1]]
    offsets = offsets - offsets[0]
    empty = offsets[1:] == offsets[:-1]
    runs = np.insert(runs, offsets[:-1][empty], np.uint32(len(LETTERS)))
    offsets = offsets + np.concatenate([[0], np.cumsum(empty)])
    letters = np.frombuffer((LETTERS + "*").encode(), np.uint8)[runs & 15]
    # A run has its letter and the decimal digits of its length; 0 has none.
    lengths = runs >> 4
    powers = (10**k for k in range(len(str(int(lengths.max(initial=0))))))
    digits = sum(((lengths >= power).astype(np.int64) for power in powers), np.int64(0))
    ends = np.zeros(len(runs) + 1, np.int64)
    np.cumsum(1 + digits, out=ends[1:])
    text = np.empty(ends[-1], np.uint8)
    text[ends[1:] - 1] = letters
    at, longer = ends[1:] - 2, np.flatnonzero(lengths)
    while len(longer):
        text[at[longer]] = 48 + lengths[longer] % 10
        lengths[longer] //= 10
        at[longer] -= 1
        longer = longer[lengths[longer] > 0]
    return text, ends[offsets]
