"""Run-length operations: ``length << 4 | op`` with BAM's letters, as uint32.

``I`` consumes query, ``D`` consumes target, ``M`` both; ``=`` and ``X`` split M.
"""

import numpy as np

M, I, D, EQUAL, DIFFER = 0, 1, 2, 7, 8  # noqa: E741
LETTERS = "MIDNSHP=X"


def run_lengths(steps, counts):
    """Single steps -> run-length operations.

    Parameters
    ----------
    steps : uint8 (total,)
        One operation a step, all paths one after another.
    counts : int64 (n,)
        Steps of each path.

    Returns
    -------
    operations : uint32 (runs,)
    offsets : int64 (n + 1,)
        Where the runs of each path begin.
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


def expand(operations) -> np.ndarray:
    """Run-length operations -> one uint8 operation a step."""
    operations = np.asarray(operations, np.uint32)
    return np.repeat((operations & 15).astype(np.uint8), operations >> 4)


def split_matches(operations, query, target, query_start, target_start):
    """M runs -> ``=`` and ``X`` runs; letters are compared, not classes."""
    steps = expand(operations)
    i = query_start + np.cumsum(steps != D) - 1
    j = target_start + np.cumsum(steps != I) - 1
    pairs = steps == M
    same = query[i[pairs]] == target[j[pairs]]
    steps[pairs] = np.where(same, EQUAL, DIFFER)
    return run_lengths(steps, np.array([len(steps)]))[0]


def cigar(operations) -> str:
    """Run-length operations -> CIGAR text, ``*`` where there is none."""
    operations = np.asarray(operations)
    return "".join(f"{op >> 4}{LETTERS[op & 15]}" for op in operations.tolist()) or "*"


def parse_cigar(text: str) -> np.ndarray:
    """CIGAR text -> run-length operations (``=`` and ``X`` become M)."""
    import re

    runs = re.findall(r"(\d+)([MIDX=])", text)
    code = {"M": M, "=": M, "X": M, "I": I, "D": D}
    return np.array([int(n) << 4 | code[op] for n, op in runs], np.uint32)
