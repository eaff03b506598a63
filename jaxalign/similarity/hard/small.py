"""Small problems in NumPy: the best alignments of a batch, without a compiler.

The recurrences, walks and tie rules of ``hard.dp``: the same operations in the same
dtype, from the arrays of ``similarity.small``. A batch has B pairs; its tables have a
border before the first residues, so R = M + 1 rows and C = N + 1 columns, and D = M + N
+ 1 anti-diagonals.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from jaxalign.similarity import small
from jaxalign.similarity.arguments import (
    COSTLY,
    FORBIDDEN,
    Arguments,
    Band,
    checked_band,
    cost_shapes,
    outline_of,
)
from jaxalign.similarity.small import SmallModel, skewed, unskewed

STOP, UP, LEFT, PAIR = 0, 1, 2, 3
GO_UP, GO_LEFT, TO_PAIR = 4, 8, 16  # as in ``hard.dp.fill``
FREELY, AFTER_GAP = 0, 4
START = 3  # a state of ``hard.dp.several_best``, behind those of a pair, UP and LEFT
# Steps of all walks of a batch, one after the other; beyond, a compiled call is faster.
MAX_STEPS = 1 << 14


def fits(similarity: Any, fills: int, walks: int) -> bool:
    """Whether so many fills and walks of a similarity that is not JAX's are small."""
    shape, _ = outline_of(similarity)
    if len(shape) < 2:
        return True
    *batch, m, n = shape
    steps = walks * prod(batch) * (m + n)
    return small.is_small((fills, *shape)) and steps <= MAX_STEPS


class BestPaths(NamedTuple):
    """``score`` (B,), ``partners`` int32 (B, M) and ``spans`` int32 (B, 4) of the best
    alignments; nan or -inf, -1 and 0 where there is none."""

    score: np.ndarray
    partners: np.ndarray
    spans: np.ndarray


class CellTables(NamedTuple):
    """The best path to each state of each cell, ``p``, ``e`` and ``f`` (D, B, R), and
    the scores ``total`` (B, R, C) of paths that end there; weights of paths that start
    ``behind`` it, the ``costs`` of moves into it, and its directions ``codes``, uint8.
    """

    p: np.ndarray
    e: np.ndarray
    f: np.ndarray
    total: np.ndarray
    behind: np.ndarray
    costs: list[np.ndarray]
    codes: np.ndarray


def _filled(model: SmallModel, ordered: bool) -> CellTables:
    """Fill the tables; the plain form where they are not ``ordered``."""
    rules, s = model.rules, model.similarity
    (count, m, n), dtype = s.shape, s.dtype
    rows, columns = m + 1, n + 1
    diagonals, low = rows + n, dtype.type(FORBIDDEN)
    local, adjacent = bool(rules.local), bool(rules.adjacent)

    def by_diagonal(x: np.ndarray, top: int, left: int, outside: float) -> np.ndarray:
        widths = (0, 0), (top, 0), (left, 0)
        x = np.pad(x, widths, constant_values=outside)
        return skewed(x, rows, columns, outside).astype(dtype)

    s = by_diagonal(s, 1, 1, FORBIDDEN if ordered else 0)
    opening, extending = model.opening, model.extending
    costs = [by_diagonal(x, 1, 0, 0) for x in (opening.e, extending.e)]
    costs += [by_diagonal(x, 0, 1, 0) for x in (opening.f, extending.f)]
    open_e, more_e, open_f, more_f = costs
    # Negative zeros of free overhangs become zeros.
    behind = by_diagonal(model.start, 0, 0, FORBIDDEN) + dtype.type(0)
    left_open, _ = _open_starts(rules)
    # Lane i stands in place i + 1, behind one that is forbidden; diagonal d is d + 2.
    lanes = np.full((6, diagonals + 2, count, rows + 1), low, dtype)
    p, e, f, best, after, right = lanes[..., 1:]
    _, e_above, _, best_above, after_above, _ = lanes[..., :-1]
    extends = np.zeros((2, diagonals, count, rows), bool)
    for d in range(diagonals):
        at, before = d + 2, d + 1
        pair = s[d] + best_above[d]
        going, opened = e_above[before] - more_e[d], after_above[before] - open_e[d]
        extends[0, d], up = going >= opened, np.maximum(going, opened)
        going, opened = f[before] - more_f[d], right[before] - open_f[d]
        extends[1, d], left = going >= opened, np.maximum(going, opened)
        p[at], e[at], f[at] = pair, up, left
        pair_or_left = np.maximum(pair, left)
        top = np.maximum(pair_or_left, up)
        if ordered:
            best[at], after[at] = np.maximum(behind[d], top), pair
            right[at] = np.where(pair >= up, pair, up) if adjacent else pair
            continue
        best[at] = np.maximum(top, 0) if local else top
        after[at], right[at] = pair_or_left, pair
        # The borders: lane 0 is row 0, and lane d column 0.
        for lane, is_there, is_open in (0, d <= n, d == 0), (d, d <= m, True):
            if is_there:
                border = behind[d, :, lane]
                e[at, :, lane] = f[at, :, lane] = low
                best[at, :, lane] = after[at, :, lane] = border
                right[at, :, lane] = border if is_open and left_open else low
    p, e, f, best = (x[2:] for x in (p, e, f, best))
    codes = np.where(e >= f, UP, LEFT)
    codes[(p >= e) & (p >= f)] = PAIR
    top = np.maximum(np.maximum(p, e), f)
    if ordered:
        goes_on = top > behind if local else top >= behind
        to_pair = (p >= e) | (not adjacent)
    else:
        goes_on, to_pair = (top > 0) | (not local), p >= f
    codes[~goes_on] = STOP
    codes |= extends[0] * GO_UP | extends[1] * GO_LEFT | to_pair * TO_PAIR
    total = _totals(model, best, p, ordered)
    return CellTables(p, e, f, total, behind, costs, codes.astype(np.uint8))


def _open_starts(rules: Any) -> list[bool]:
    """Whether residues of the query, and of the target, hang over at the start."""
    return [bool(x | rules.local) for x in (rules.query_start, rules.target_start)]


def _totals(
    model: SmallModel, best: np.ndarray, p: np.ndarray, ordered: bool
) -> np.ndarray:
    """Scores (B, R, C) of paths that end in a cell, ``FORBIDDEN`` where none may."""
    rules, (_, m, n) = model.rules, model.similarity.shape
    i, j = np.arange(m + 1)[:, None], np.arange(n + 1)
    last_i, last_j = model.m[:, None, None], model.n[:, None, None]
    inside = (i <= last_i) & (j <= last_j)
    if ordered:
        total = unskewed(p, m + 1, n + 1) + model.end.astype(p.dtype)
        total = np.where(inside & (i > 0) & (j > 0), total, p.dtype.type(FORBIDDEN))
        # The alignment without pairs stands in (0, 0), and goes before its equals.
        total[:, 0, 0] = np.maximum(model.empty, FORBIDDEN) + p.dtype.type(0)
        return total
    row, column = i == last_i, j == last_j
    ends = rules.local | (row & (column | rules.target_end))
    ends = (ends | (column & rules.query_end)) & inside
    return np.where(ends, unskewed(best, m + 1, n + 1), p.dtype.type(FORBIDDEN))


def best_alignments(model: SmallModel, ordered: bool) -> BestPaths:
    """The best alignment of each pair."""
    tables, (count, m, n) = _filled(model, ordered), model.similarity.shape
    flat = tables.total.reshape(count, -1)
    ends = flat.argmax(1)
    score = flat[np.arange(count), ends]
    partners = np.full((count, m), -1, np.int32)
    cells = np.zeros((4, count), np.int64)
    for k, end in enumerate(ends.tolist()):
        cell = divmod(end, n + 1)
        codes = tables.codes[:, k].tobytes()
        start = _walk(codes, m + 1, cell, ordered, partners[k])
        cells[:, k] = *start, *cell
    if ordered:
        spans = _ordered_spans(model, cells, (partners >= 0).any(1))
    else:
        i, j, end_i, end_j = cells
        open_left, open_top = _open_starts(model.rules)
        first_i = np.where((j > 0) | open_left, i, 0)
        spans = first_i, end_i, np.where((i > 0) | open_top, j, 0), end_j
    return _checked(model, score, partners, spans)


def _walk(
    codes: bytes, rows: int, cell: tuple[int, int], ordered: bool, partners: np.ndarray
) -> tuple[int, int]:
    """Write the partners of the path that ends in a cell, and return where it began."""
    i, j = cell
    after_up, after_left = (PAIR, AFTER_GAP) if ordered else (AFTER_GAP, PAIR)
    move = PAIR if ordered else FREELY
    while i and j:
        code = codes[(i + j) * rows + i]
        if move == FREELY:
            move = code & PAIR
        elif move == AFTER_GAP:
            gap = UP if ordered else LEFT  # that may stand before this one
            move = PAIR if code & TO_PAIR else gap
        if move == STOP:
            break
        if move == PAIR:
            i, j, move = i - 1, j - 1, FREELY
            partners[i] = j
        elif move == UP:
            i, move = i - 1, UP if code & GO_UP else after_up
        else:
            j, move = j - 1, LEFT if code & GO_LEFT else after_left
    return i, j


def _ordered_spans(
    model: SmallModel, cells: np.ndarray, nonempty: Any
) -> tuple[np.ndarray, ...]:
    """Spans of paths between ``cells`` (4, B), that before the first pair and that of
    the last one; where both sequences hang over freely, the one that would cost more
    does."""
    i, j, end_i, end_j = cells
    rules, (m, n), pairs = model.rules, (model.m, model.n), np.arange(len(model.m))
    start, end, (first, _) = model.paid

    def outside(shares: Any, at: Any, k: np.ndarray, l: np.ndarray):
        query, target = (x[(pairs, *at)] for x in shares)
        return np.where(query == 0, k, 0), np.where(target < 1, l, 0)

    k, l = outside(start, (i, j), i, j)
    after_k, after_l = outside(end, (end_i, end_j), m - end_i, n - end_j)
    spans = k, m - after_k, l, n - after_l
    if rules.local:
        return tuple(np.where(nonempty, x, 0) for x in spans)
    # The alignment without pairs: query residues first, or target residues.
    query_first = [m * rules.query_start, m, 0 * n, n * (not rules.target_end)]
    target_first = [0 * m, m * (not rules.query_end), n * rules.target_start, n]
    empty = (
        np.where(first > 0, *x) for x in zip(query_first, target_first, strict=True)
    )
    return tuple(np.where(nonempty, *x) for x in zip(spans, empty, strict=True))


def _checked(
    model: SmallModel, score: np.ndarray, partners: np.ndarray, spans: Any
) -> BestPaths:
    legal = score > -COSTLY / 2
    score = np.where(model.valid, np.where(legal, score, -np.inf), np.nan)
    sure = (legal & model.valid)[:, None]
    partners, ranges = (
        np.where(sure, x, y).astype(np.int32)
        for x, y in ((partners, -1), (np.stack(spans, 1), 0))
    )
    return BestPaths(score.astype(model.similarity.dtype), partners, ranges)


def local_hits(model: SmallModel, ordered: bool, count: int) -> list[BestPaths]:
    """The best local alignments, none of which shares a pair with an earlier one."""
    scores, hits = model.similarity.copy(), []
    for _ in range(count):
        hits.append(best_alignments(model._replace(similarity=scores), ordered))
        pair, row = np.nonzero(hits[-1].partners >= 0)
        scores[pair, row, hits[-1].partners[pair, row]] = FORBIDDEN
    return hits


def several_best(model: SmallModel, count: int) -> list[BestPaths]:
    """The ``count`` best alignments: ``hard.dp.several_best``, a walk after a walk."""
    tables, (batch, m, n) = _filled(model, ordered=True), model.similarity.shape
    low = model.similarity.dtype.type(FORBIDDEN)
    # What each predecessor of a state of a cell is worth, (D, 3, 4, B, R).
    into = np.full((m + n + 1, 3, 4, batch, m + 1), low)
    values = tables.p, tables.e, tables.f
    for state, x in enumerate((*values, tables.behind)):
        into[2:, 0, state, :, 1:] = x[:-2, :, :-1]
    p, e, f = (x[:-1] for x in values)
    open_e, more_e, open_f, more_f = (x[1:] for x in tables.costs)
    into[1:, 1, 0, :, 1:] = p[..., :-1] - open_e[..., 1:]
    into[1:, 1, 1, :, 1:] = e[..., :-1] - more_e[..., 1:]
    into[1:, 2, 0] = p - open_f
    if model.rules.adjacent:
        into[1:, 2, 1] = e - open_f
    into[1:, 2, 2] = f - more_f
    scores = np.zeros((count, batch), low.dtype)
    partners = np.full((count, batch, m), -1, np.int32)
    for k in range(batch):
        total = tables.total[k]
        _several_paths(total, into[:, :, :, k], scores[:, k], partners[:, k])
    paths = []
    for score, path in zip(scores, partners, strict=True):
        paired = path >= 0
        nonempty = paired.any(1)
        cells = np.zeros((4, batch), np.int64)
        if m:
            pairs, last = np.arange(batch), m - 1 - paired[:, ::-1].argmax(1)
            first = paired.argmax(1)
            cells[:] = first, path[pairs, first], last + 1, path[pairs, last] + 1
            cells *= nonempty
        spans = _ordered_spans(model, cells, nonempty)
        paths.append(_checked(model, score, path, spans))
    return paths


def _several_paths(
    total: np.ndarray, into: np.ndarray, scores: np.ndarray, partners: np.ndarray
) -> None:
    """Write the ``scores`` (k,) and ``partners`` (k, M) of one pair."""
    k, width = len(scores), max(total.shape[1] - 1, 1)
    # Branches: scores, and (i, j, state, parent) of each; the first are end cells, in
    # the rows with the best ones, and the alignment without pairs.
    cells = total[1:, 1:]
    best = np.argsort(-cells.max(1, initial=FORBIDDEN), kind="stable")[:k]
    score = np.append(cells[best], total[0, 0])
    order = np.argsort(-score, kind="stable")[:k]
    branches = [
        (int(best[at // width]) + 1, at % width + 1, 0, -1)
        if at < len(score) - 1
        else (0, 0, 0, -1)
        for at in order.tolist()
    ]
    score = score[order]
    for rank in range(k):
        top = int(score.argmax())
        value, (i, j, kind, parent) = score[top], branches[top]
        scores[rank], path = value, partners[rank]
        if parent >= 0:
            path[i:] = partners[parent][i:]
        if value <= FORBIDDEN / 2:
            kind = START
        less, visited = [], []
        while kind != START and i and j:
            choices = into[i + j, kind, :, i]
            if kind == 0:
                path[i - 1] = j - 1
            i, j = i - (kind != 2), j - (kind != 1)
            kind = int(choices.argmax())
            change = choices - choices[kind]
            change[kind] = -np.inf
            less.append(change)
            visited.append((i, j))
        score[top] = -np.inf
        additions = (value + np.array(less, score.dtype)).reshape(-1)
        score = np.append(score, additions)
        order = np.argsort(-score, kind="stable")[:k]
        size = len(branches)
        branches = [
            branches[x]
            if x < size
            else (*visited[(x - size) // 4], (x - size) % 4, rank)
            for x in order.tolist()
        ]
        score = score[order]


def results(
    read: Arguments, band: Band, count: int | None, disjoint: bool
) -> tuple[Any, Any, Any, Any, bool]:
    """(score, partners, spans, lengths, whether the query's residues come first) of the
    best alignments, or of ``count`` with ranks as the first axis: local hits where they
    are ``disjoint``."""
    pair, axes, batch, _ = read
    dtype, ranks = pair.gap_open.e.dtype, [*map(len, cost_shapes(pair, axes))]
    width = checked_band(band, pair.similarity.shape, ranks)
    model = small.small_model(read, (np.ones((), dtype), None), width, dtype)
    several = count is not None and not disjoint
    ordered = several or 2 in ranks or width is not None or not pair.rules.adjacent
    if count is None:
        paths = [best_alignments(model, ordered)]
    elif disjoint:
        paths = local_hits(model, ordered, count)
    else:
        paths = several_best(model, count)
    lengths = np.stack([model.m, model.n], 1)
    values = *zip(*paths, strict=True), [lengths] * len(paths)
    leading = batch if count is None else (count, *batch)
    score, partners, spans, sizes = (
        np.stack(x).reshape((*leading, *x[0].shape[1:])) for x in values
    )
    return score, partners, spans, sizes, bool(ordered)
