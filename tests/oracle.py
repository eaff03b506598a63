"""The oracle: exact pairwise alignment by plain loops over cells.

Numpy and the standard library only, nothing of the project, so that a mistake here and
the same mistake there would have to be made twice. Slow on purpose.

Query a (length m) runs along rows i, target b (length n) along columns j; cell (i, j)
means "i residues of a and j residues of b are used". Gap of k: open + (k - 1) * ext,
with open >= ext >= 0. E consumes query (operation I), F consumes target (operation D).
`free_ends` counts in mode "global" only: "semiglobal" frees all four, "local" none.
"""

import re
from itertools import groupby
from typing import NamedTuple

import numpy as np

# Far below any score of these tests, yet far from the edge of int64.
NEG_INF = -(1 << 40)

ALL_ENDS = frozenset({"query_start", "query_end", "target_start", "target_end"})
NO_ENDS = frozenset()

B_LEFT, B_UP, C_UP, C_LEFT = 8, 4, 2, 1
DIAGONAL = B_LEFT | B_UP


class Alignment(NamedTuple):
    """Score, start and end cells (i, j), operations [(op, length)] in reading order."""

    score: int
    start: tuple
    end: tuple
    operations: list


def free_set(mode, free_ends=NO_ENDS):
    """The ends whose overhang costs nothing; none in local mode."""
    if mode not in ("global", "semiglobal", "local"):
        raise ValueError(f"no such mode: {mode!r}")
    if not frozenset(free_ends) <= ALL_ENDS:
        raise ValueError(f"no such ends: {sorted(frozenset(free_ends) - ALL_ENDS)}")
    return {"global": frozenset(free_ends), "semiglobal": ALL_ENDS}.get(mode, NO_ENDS)


def gap_cost(length, open, ext):
    return open + (length - 1) * ext if length else 0


def tables(a, b, S, open, ext, mode, free_ends=NO_ENDS):
    """H, E, F as int64 (m + 1, n + 1)."""
    m, n = len(a), len(b)
    a, b, S = _lists(a, b, S)
    H = _borders(m, n, open, ext, mode, free_ends)
    E = [[NEG_INF] * (n + 1) for _ in range(m + 1)]
    F = [[NEG_INF] * (n + 1) for _ in range(m + 1)]
    # E[i,j] = max(E[i-1,j] - ext, H[i-1,j] - open)
    # F[i,j] = max(F[i,j-1] - ext, H[i,j-1] - open)
    # H[i,j] = max(H[i-1,j-1] + S(a_i, b_j), E[i,j], F[i,j])      local: and 0
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            E[i][j] = max(E[i - 1][j] - ext, H[i - 1][j] - open)
            F[i][j] = max(F[i][j - 1] - ext, H[i][j - 1] - open)
            D = H[i - 1][j - 1] + S[a[i - 1]][b[j - 1]]
            H[i][j] = max(D, E[i][j], F[i][j])
            if mode == "local":
                H[i][j] = max(0, H[i][j])
    return tuple(np.array(table, dtype=np.int64) for table in (H, E, F))


def position_score(rows, b, costs):
    """The best local score of positions, whose scores are ``rows`` (m, letters), with
    costs of each: (open_e, extend_e, open_f, extend_f). P, E and F end in a pair, in
    skipped positions and in residues of b; between two pairs E comes before F."""
    m, n = len(rows), len(b)
    open_e, ext_e, open_f, ext_f = ([None, *map(int, x)] for x in costs)
    P, E, F = ([[NEG_INF] * (n + 1) for _ in range(m + 1)] for _ in range(3))
    best = 0
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            before = max(0, *(table[i - 1][j - 1] for table in (P, E, F)))
            P[i][j] = before + int(rows[i - 1][b[j - 1]])
            E[i][j] = max(P[i - 1][j] - open_e[i], E[i - 1][j] - ext_e[i])
            pair_or_e = max(P[i][j - 1], E[i][j - 1])
            F[i][j] = max(pair_or_e - open_f[i], F[i][j - 1] - ext_f[i])
            best = max(best, P[i][j])
    return best


def _lists(a, b, S):
    """Python ints: no overflow, and faster than numpy scalars in loops over cells."""
    a, b, S = (np.asarray(x).astype(np.int64).tolist() for x in (a, b, S))
    return a, b, S


def _borders(m, n, open, ext, mode, free_ends):
    """H with column 0 and row 0 filled: 0 where that start is free, else one gap."""
    free = free_set(mode, free_ends)
    H = [[0] * (n + 1) for _ in range(m + 1)]
    if mode != "local" and "query_start" not in free:
        for i in range(m + 1):
            H[i][0] = -gap_cost(i, open, ext)
    if mode != "local" and "target_start" not in free:
        for j in range(n + 1):
            H[0][j] = -gap_cost(j, open, ext)
    return H


def end_candidates(m, n, mode, free_ends=NO_ENDS):
    """Cells where an alignment may end, smallest i first, then smallest j."""
    free = free_set(mode, free_ends)
    for i in range(m + 1):
        for j in range(n + 1):
            in_last_row = i == m and (j == n or "target_end" in free)
            in_last_column = j == n and (i == m or "query_end" in free)
            if mode == "local" or in_last_row or in_last_column:
                yield i, j


def end_cell(H, mode, free_ends=NO_ENDS):
    """The best candidate; of equals the smallest i, then the smallest j."""
    best = None
    for cell in end_candidates(H.shape[0] - 1, H.shape[1] - 1, mode, free_ends):
        if best is None or H[cell] > H[best]:
            best = cell
    return best


def score(a, b, S, open, ext, mode, free_ends=NO_ENDS):
    H, _, _ = tables(a, b, S, open, ext, mode, free_ends)
    return int(H[end_cell(H, mode, free_ends)])


def directions(a, b, S, open, ext, mode, free_ends=NO_ENDS):
    """uint8 (m, n): the nibble b_left b_up c_up c_left of each cell i, j >= 1."""
    H, E, F = tables(a, b, S, open, ext, mode, free_ends)
    nibbles = np.zeros((len(a), len(b)), dtype=np.uint8)
    # c_up[i,j]   = (E[i,j] == E[i-1,j] - ext)    extend before close
    # c_left[i,j] = (F[i,j] == F[i,j-1] - ext)
    # b[i,j]      = stop (local, H == 0), else diagonal (H == D), else up (H == E),
    #               else left (H == F)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            D = H[i - 1, j - 1] + int(S[a[i - 1]][b[j - 1]])
            nibble = _move(H[i, j], D, E[i, j], F[i, j], mode)
            nibble |= C_UP if E[i, j] == E[i - 1, j] - ext else 0
            nibble |= C_LEFT if F[i, j] == F[i, j - 1] - ext else 0
            nibbles[i - 1, j - 1] = nibble
    return nibbles


def _move(h, d, e, f, mode):
    if mode == "local" and h == 0:
        return 0
    if h == d:
        return DIAGONAL
    if h == e:
        return B_UP
    assert h == f
    return B_LEFT


def words(a, b, S, open, ext, mode, free_ends=NO_ENDS):
    """uint32 (ceil(m / 8), n): row r = i - 1 at nibble 7 - r mod 8; padding is 0."""
    nibbles = directions(a, b, S, open, ext, mode, free_ends)
    packed = np.zeros((-(-len(a) // 8), len(b)), dtype=np.uint32)
    for r, c in np.ndindex(*nibbles.shape):
        packed[r // 8, c] |= np.uint32(int(nibbles[r, c]) << 4 * (7 - r % 8))
    return packed


def walk(nibbles, end, mode, free_ends=NO_ENDS):
    """(start, end, operations): from the end cell back along the nibbles.

    The c bits stand in the cell a move leaves, so the one just left says whether the
    gap goes on; only when it does not is b of the cell arrived at read.
    """
    i, j = end
    backwards, going_on = [], None
    while i > 0 and j > 0:
        nibble = int(nibbles[i - 1, j - 1])
        op = going_on or _operation(nibble)
        if op is None:
            break
        backwards.append(op)
        goes_on = {"I": nibble & C_UP, "D": nibble & C_LEFT}.get(op)
        going_on = op if goes_on else None
        i, j = i - (op != "D"), j - (op != "I")
    border, start = _border_walk(i, j, mode, free_ends)
    return start, tuple(end), run_lengths((backwards + border)[::-1])


def _operation(nibble):
    return {0: None, DIAGONAL: "M", B_UP: "I", B_LEFT: "D"}[nibble & DIAGONAL]


def _border_walk(i, j, mode, free_ends):
    """On row 0 or column 0: stop where the overhang is free, else on to (0, 0)."""
    free = free_set(mode, free_ends)
    if mode == "local" or (i > 0 and j > 0):
        return [], (i, j)
    if i > 0 and "query_start" not in free:
        return ["I"] * i, (0, 0)
    if j > 0 and "target_start" not in free:
        return ["D"] * j, (0, 0)
    return [], (i, j)


def run_lengths(ops):
    """Letters to [(op, length)]."""
    return [(op, len(list(run))) for op, run in groupby(ops)]


def runs_of_cigar(text):
    """CIGAR text -> uint32 runs as in BAM, length * 16 + 0, 1 or 2 for M, I or D;
    ``=`` and ``X`` are M."""
    code = {"M": 0, "=": 0, "X": 0, "I": 1, "D": 2}
    runs = re.findall(r"(\d+)([MIDX=])", text)
    return np.array([int(n) << 4 | code[op] for n, op in runs], np.uint32)


def align(a, b, S, open, ext, mode, free_ends=NO_ENDS):
    """Score, directions and walk in one call."""
    H, _, _ = tables(a, b, S, open, ext, mode, free_ends)
    end = end_cell(H, mode, free_ends)
    nibbles = directions(a, b, S, open, ext, mode, free_ends)
    return Alignment(int(H[end]), *walk(nibbles, end, mode, free_ends))


def rescore(a, b, start, end, operations, S, open, ext, mode, free_ends=NO_ENDS):
    """Score of a written alignment, from its operations alone.

    Every gap costs, except one that lies wholly at a free end: an I run in column 0 or
    n, a D run in row 0 or m. I directly beside D are two gaps. ValueError when the
    operations do not lead from start to end, or leave out an overhang that costs.
    """
    m, n = len(a), len(b)
    free = free_set(mode, free_ends)
    if mode != "local":
        _check_overhang(start, end, m, n, free)
    total, (i, j) = 0, start
    for op, length in _merged(operations):
        if op == "M":
            total += sum(int(S[a[i + k]][b[j + k]]) for k in range(length))
        elif not _at_free_end(op, i, j, m, n, free):
            total -= gap_cost(length, open, ext)
        i, j = i + length * (op != "D"), j + length * (op != "I")
    if (i, j) != tuple(end):
        raise ValueError(f"operations lead to {(i, j)}, not to {tuple(end)}")
    return total


def _merged(operations):
    """Neighbouring runs of one operation are one gap, however they were written."""
    return run_lengths([op for op, length in operations for _ in range(length)])


def _at_free_end(op, i, j, m, n, free):
    # In column 0 no target residue is used yet, so an I run there is the leading one.
    name, at, last = ("query", j, n) if op == "I" else ("target", i, m)
    leading, trailing = f"{name}_start" in free, f"{name}_end" in free
    return (leading and at == 0) or (trailing and at == last)


def _check_overhang(start, end, m, n, free):
    (i, j), (k, l) = start, end
    left = dict(query_start=i, target_start=j, query_end=m - k, target_end=n - l)
    paid = any(left[name] for name in ALL_ENDS - free)
    # Two overhangs at one end would lie beside each other: one of them has to cost.
    if paid or (i and j) or (k < m and l < n):
        raise ValueError(f"{start}..{end} of {(m, n)} is no alignment with {set(free)}")


def columns(operations):
    return sum(length for _, length in operations)


def gap_openings(operations):
    return sum(op != "M" for op, _ in _merged(operations))


def gaps(operations):
    return sum(length for op, length in operations if op != "M")


def identities(a, b, start, operations, wildcard=None):
    """M columns of one letter twice; the code `wildcard` is identical to nothing."""
    count, (i, j) = 0, start
    for op, length in operations:
        if op == "M":
            pairs = zip(a[i : i + length], b[j : j + length], strict=True)
            count += sum(_identical(x, y, wildcard) for x, y in pairs)
        i, j = i + length * (op != "D"), j + length * (op != "I")
    return count


def _identical(x, y, wildcard):
    return int(x == y and x != wildcard)


def max_identities(a, b, S, open, ext, mode, free_ends=NO_ENDS, wildcard=None):
    """(score, matches), the lexicographic maximum over all alignments.

    All optimal alignments count: whatever their end cell, and in local mode also those
    of score 0 with columns in them.
    """
    m, n = len(a), len(b)
    a, b, S = _lists(a, b, S)
    H = [[(h, 0) for h in row] for row in _borders(m, n, open, ext, mode, free_ends)]
    E = [[(NEG_INF, 0)] * (n + 1) for _ in range(m + 1)]
    F = [[(NEG_INF, 0)] * (n + 1) for _ in range(m + 1)]
    # The recurrence of `tables` on pairs: tuples compare lexicographically, and adding
    # a column adds to both parts, so the best pair extends to the best pair.
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            x, y = a[i - 1], b[j - 1]
            E[i][j] = max(_plus(E[i - 1][j], -ext), _plus(H[i - 1][j], -open))
            F[i][j] = max(_plus(F[i][j - 1], -ext), _plus(H[i][j - 1], -open))
            D = _plus(H[i - 1][j - 1], S[x][y], _identical(x, y, wildcard))
            H[i][j] = max(D, E[i][j], F[i][j])
            if mode == "local":
                H[i][j] = max((0, 0), H[i][j])
    return max(H[i][j] for i, j in end_candidates(m, n, mode, free_ends))


def _plus(pair, points, matches=0):
    return pair[0] + points, pair[1] + matches
