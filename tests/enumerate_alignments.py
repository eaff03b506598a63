"""Every alignment of two tiny sequences, scored by the definition: no recurrence.

An alignment is a string over M, I, D (I consumes query, D consumes target; I next to D
allowed in both orders). Shares nothing with the oracle it checks. The number of strings
is the Delannoy number: 321 for lengths 4 and 4.
"""

import re
from functools import cache
from itertools import product

ENDS = ("query_start", "query_end", "target_start", "target_end")


@cache
def paths(m, n):
    """All strings with m letters out of M, I and n letters out of M, D."""
    if m == 0 or n == 0:
        return ("I" * m + "D" * n,)
    last = (("M", m - 1, n - 1), ("I", m - 1, n), ("D", m, n - 1))
    return tuple(path + op for op, i, j in last for path in paths(i, j))


@cache
def overhang(path, free):
    """Lengths of the first and of the last gap, where these cost nothing.

    One gap that is the whole alignment is the last one, if that makes it free.
    """
    head = re.match(r"I+|D+|", path).group()
    tail = re.search(r"(?<!I)I+$|(?<!D)D+$|$", path).group()
    name = {"I": "query", "D": "target"}
    right = len(tail) if tail and f"{name[tail[0]]}_end" in free else 0
    left = len(head) if head and f"{name[head[0]]}_start" in free else 0
    return (0 if right == len(path) else left), right


@cache
def costly_gaps(path, free):
    """Lengths of the gaps that cost."""
    left, right = overhang(path, free)
    return [len(gap) for gap in re.findall(r"I+|D+", path[left : len(path) - right])]


@cache
def pairings(path):
    """(query position, target position) of the M columns."""
    out = []
    for k, op in enumerate(path):
        if op == "M":
            out.append((k - path[:k].count("D"), k - path[:k].count("I")))
    return out


def judge(path, a, b, S, open, ext, free):
    """(score, identities) of one alignment."""
    points = sum(S[a[i]][b[j]] for i, j in pairings(path))
    cost = sum(open + (k - 1) * ext for k in costly_gaps(path, free))
    return int(points - cost), sum(int(a[i] == b[j]) for i, j in pairings(path))


def candidates(a, b, S, open, ext, mode, free_ends=frozenset()):
    """Yields (score, identities, start cell, end cell, core string) of everything."""
    m, n = len(a), len(b)
    if mode == "local":
        yield from _local(a, b, S, open, ext)
        return
    free = frozenset(ENDS) if mode == "semiglobal" else frozenset(free_ends)
    for path in paths(m, n):
        left, right = overhang(path, free)
        head, core = path[:left], path[left : len(path) - right]
        start = (head.count("I"), head.count("D"))
        end = (start[0] + len(core) - core.count("D"),)
        end += (start[1] + len(core) - core.count("I"),)
        yield *judge(path, a, b, S, open, ext, free), start, end, core


def _local(a, b, S, open, ext):
    """All pairs of substrings, where no gap is free; the empty alignment once."""
    yield 0, 0, (0, 0), (0, 0), ""
    m, n = len(a), len(b)
    for i, j in product(range(m), range(n)):
        for k, l in product(range(i + 1, m + 1), range(j + 1, n + 1)):
            x, y = a[i:k], b[j:l]
            for path in paths(k - i, l - j):
                verdict = judge(path, x, y, S, open, ext, frozenset())
                yield *verdict, (i, j), (k, l), path


def best(found):
    """(best score, most identities among the alignments of that score)."""
    return max((score, identities) for score, identities, *_ in found)


def preferred(found):
    """(start, end, core string) that the tie rule picks among the optimal ones.

    Smallest end cell; then from the end backwards stop, diagonal, up, left, except that
    inside a gap going on with it comes first.
    """
    found = list(found)
    top = max(score for score, *_ in found)
    optimal = [rest for score, _, *rest in found if score == top]
    return min(optimal, key=lambda rest: (rest[1], _backwards(rest[2])))


def _backwards(core):
    ranks, inside = [], None
    for op in core[::-1]:
        ranks.append(0 if op == inside else "MID".index(op) + 2)
        inside = op if op in "ID" else None
    return [*ranks, 1]
