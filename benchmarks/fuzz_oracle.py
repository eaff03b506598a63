"""Scores, paths and their worth by NumPy, a row at a time: what the fuzz compares with.

Nothing of the project is imported. Rows i are query residues, columns j target
residues; a gap of k costs ``open + (k - 1) * extend``; E consumes the query (operation
1, I), F the target (operation 2, D). ``free`` has the names of the free ends, all four
in mode ``semiglobal``, none in mode ``local``. About 100 million cells a second.
"""

from typing import NamedTuple

import numpy as np

LOWEST = -(2**60)
MATCHES = 2**20  # matches are counted below a score times so much
PAIR, INSERTION, DELETION = range(3)
ENDS = ("query_start", "query_end", "target_start", "target_end")


class Problem(NamedTuple):
    """The scoring of a pair; integers. ``wildcard`` is no identity; 255: none."""

    scores: np.ndarray
    open: int
    extend: int
    local: bool
    free: frozenset
    wildcard: int = 255


def gap(length, p: Problem):
    """The cost of a gap of some length."""
    return np.where(length > 0, p.open + (length - 1) * p.extend, 0)


def rows(a, b, p: Problem):
    """H, E and F, a row after the other, int64 (n + 1,) each."""
    m, n = len(a), len(b)
    j = np.arange(n + 1, dtype=np.int64)
    free_query = p.local or "query_start" in p.free
    left = np.zeros(m + 1, np.int64) if free_query else -gap(np.arange(m + 1), p)
    h = 0 * j if p.local or "target_start" in p.free else -gap(j, p)
    e = np.full(n + 1, LOWEST)
    yield h, e, np.full(n + 1, LOWEST)
    profile = p.scores.astype(np.int64)[:, b]
    for i in range(1, m + 1):
        # E[i,j] = max(E[i-1,j] - extend, H[i-1,j] - open)
        e = np.maximum(e - p.extend, h - p.open)
        e[0] = LOWEST
        # H without F: a gap that opens where another of its kind ends is never better
        above = np.maximum(h[:-1] + profile[a[i - 1]], e[1:])
        h = np.concatenate(
            [left[i : i + 1], np.maximum(above, 0) if p.local else above]
        )
        # F[i,j] = max over k < j of H[i,k] - open - (j - 1 - k) * extend
        f = np.full(n + 1, LOWEST)
        best = np.maximum.accumulate(h + p.extend * j)[:-1]
        f[1:] = best - p.open - p.extend * (j[1:] - 1)
        h = np.maximum(h, f)
        yield h, e, f


def best(a, b, p: Problem) -> tuple[int, tuple]:
    """(score, end cell): of equal ones the smallest i, then the smallest j."""
    m, n, score, end = len(a), len(b), LOWEST, None
    for i, (h, _, _) in enumerate(rows(a, b, p)):
        first, last = _ending(i, m, n, p)
        if first <= last:
            j = first + int(np.argmax(h[first : last + 1]))
            if h[j] > score:
                score, end = int(h[j]), (i, j)
    return score, end


def _ending(i, m, n, p: Problem):
    """The first and the last column in which an alignment may end in row i."""
    if p.local or (i == m and "target_end" in p.free):
        return 0, n
    return (n, n) if i == m or "query_end" in p.free else (1, 0)


def matches(a, b, p: Problem) -> tuple[int, int]:
    """(score, most identical pairs of all alignments that have it)."""
    same = np.eye(len(p.scores), dtype=np.int64)
    if p.wildcard < len(same):
        same[p.wildcard, p.wildcard] = 0
    both = p.scores.astype(np.int64) * MATCHES + same
    costs = p.open * MATCHES, p.extend * MATCHES
    score, _ = best(a, b, Problem(both, *costs, *p[3:]))
    return score // MATCHES, score % MATCHES


def align(a, b, p: Problem) -> dict:
    """The row of a table that the tie rule picks, and its ``operations``: (length,
    operation) in reading order. Holds three tables of int64."""
    h, e, f = (np.array(x) for x in zip(*rows(a, b, p), strict=True))
    score, end = best(a, b, p)
    (i, j), again, steps = end, None, []
    while i and j:
        step = _step(h, e, f, i, j, a, b, p) if again is None else again
        if step is None:
            break
        steps.append(step)
        if step == INSERTION:  # extend before close
            again = INSERTION if e[i, j] == e[i - 1, j] - p.extend else None
        elif step == DELETION:
            again = DELETION if f[i, j] == f[i, j - 1] - p.extend else None
        i, j = i - (step != DELETION), j - (step != INSERTION)
    if i and not j and not p.local and "query_start" not in p.free:
        i, steps = 0, steps + [INSERTION] * i
    elif j and not i and not p.local and "target_start" not in p.free:
        j, steps = 0, steps + [DELETION] * j
    return _counted(a, b, score, (i, j), end, np.array(steps[::-1], int), p)


def _step(h, e, f, i, j, a, b, p: Problem):
    """Diagonal, then up, then left; local mode stops at 0 before all of them."""
    here = h[i, j]
    if p.local and here == 0:
        return None
    if here == h[i - 1, j - 1] + int(p.scores[a[i - 1], b[j - 1]]):
        return PAIR
    return INSERTION if here == e[i, j] else DELETION


def _counted(a, b, score, start, end, steps, p: Problem) -> dict:
    i, j = positions(start[0], start[1], steps)
    pairs = steps == PAIR
    x, y = a[i[pairs]], b[j[pairs]]
    first = np.append(True, steps[1:] != steps[:-1])[: len(steps)]
    at = np.flatnonzero(first)
    lengths = np.diff(np.append(at, len(steps)))
    return {
        "score": score,
        "query_start": start[0], "query_end": end[0],
        "target_start": start[1], "target_end": end[1],
        "identities": int(((x == y) & (x != p.wildcard)).sum()),
        "columns": len(steps),
        "gap_openings": int((first & ~pairs).sum()),
        "gaps": int((~pairs).sum()),
        "operations": list(zip(lengths.tolist(), steps[at].tolist(), strict=True)),
    }  # fmt: skip


def positions(i, j, steps):
    """The cell of each step of a path that starts at (i, j)."""
    return (
        i + np.cumsum(steps != DELETION) - (steps != DELETION),
        j + np.cumsum(steps != INSERTION) - (steps != INSERTION),
    )


def rescored(a, b, row: dict, runs, p: Problem) -> dict:
    """The row that a path is worth, from its runs (length << 4 | operation) alone.

    Raises
    ------
    ValueError
        It is no path from its start to its end, or leaves out what has to be paid.
    """
    lengths, kinds = (runs >> 4).astype(np.int64), (runs & 15).astype(np.int64)
    start, end = ((row[f"query_{x}"], row[f"target_{x}"]) for x in ("start", "end"))
    steps = np.repeat(kinds, lengths)
    if (lengths < 1).any() or (kinds > DELETION).any() or (np.diff(kinds) == 0).any():
        raise ValueError("runs are empty, unknown, or not merged")
    i, j = positions(*start, steps)
    reached = (
        start[0] + int((steps != DELETION).sum()),
        start[1] + int((steps != INSERTION).sum()),
    )
    m, n = len(a), len(b)
    if reached != end or min(start) < 0 or end[0] > m or end[1] > n:
        raise ValueError(f"from {start} to {reached}, not {end}, of {(m, n)}")
    over = dict(zip(ENDS, (start[0], m - end[0], start[1], n - end[1]), strict=True))
    paid = not p.local and any(over[x] for x in ENDS if x not in p.free)
    twice = not p.local and (all(start) or (end[0] < m and end[1] < n))
    if paid or twice:
        raise ValueError(f"from {start} to {end} of {(m, n)}: an end is left out")
    first = np.cumsum(lengths) - lengths
    free = _at_free_ends(i[first], j[first], kinds, m, n, p)
    cost = (gap(lengths, p) * ((kinds != PAIR) & ~free)).sum()
    pairs = steps == PAIR
    total = p.scores[a[i[pairs]], b[j[pairs]]].sum(dtype=np.int64) - cost
    return _counted(a, b, int(total), start, end, steps, p)


def _at_free_ends(i, j, kinds, m, n, p: Problem):
    """Whether each gap lies wholly at a free end."""
    rows, columns = kinds == INSERTION, kinds == DELETION
    free = np.zeros(len(kinds), bool)
    for side, of, at, last in (("query", rows, j, n), ("target", columns, i, m)):
        free |= of & (at == 0) & (f"{side}_start" in p.free)
        free |= of & (at == last) & (f"{side}_end" in p.free)
    return free
