"""Small problems in NumPy: the soft model of a batch, without a compiler.

The model of ``similarity.costs`` and ``soft.dp.scan``, in float64, by anti-diagonals:
row d of a skewed array has the pairs (i, j = d - i), from 0. A pair of residues is in
state M, a residue of the query against a gap in E, one of the target in F:

    M[i,j] = s[i,j] + lse(M, E, F [i-1,j-1], start[i,j])
    E[i,j] = lse(M[i-1,j] - open, E[i-1,j] - extend)
    F[i,j] = lse(M[i,j-1] - open, E[i,j-1] - open, F[i,j-1] - extend)

Each sum is kept as the shares of its terms, and all else is made of these: the reverse
pass multiplies by them, an entropy is that of these choices, a sample makes them. All
costs stand by cell here, those before the first residue and behind the last as a first
row or column; a batch has B pairs, and M, N are the sizes of its arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from jaxalign.model.alignment import most_accurate, packed_path
from jaxalign.similarity import arguments
from jaxalign.similarity.arguments import (
    COSTLY,
    FORBIDDEN,
    Arguments,
    Factors,
    Gap,
    check_temperature,
    checked_band,
    cost_shapes,
    outline_of,
)
from jaxalign.similarity.options import SimilarityOptions

STATES, START = 3, 3  # M, E and F; a path that starts
# Beyond, a compiled call is worth its compiler: the residues of two sequences, and
# lanes of all diagonals of a batch.
MAX_DIAGONALS, MAX_LANES = 512, 1 << 17


class SmallModel(NamedTuple):
    """Scores and costs of a batch, not yet over the temperature (B,).

    ``similarity`` (B, M, N); of the query's residues ``opening.e`` and ``extending.e``
    (B, M, N + 1), of the target's ``f`` (B, M + 1, N); the log weight of what hangs
    over at the ``start`` and the ``end``, (B, M + 1, N + 1), and of no pairs, ``empty``
    (B,); ``paid`` the shares of the two sequences in each of these; lengths ``m``,
    ``n`` (B,); whether the numbers are ``valid`` (B,). ``rules`` are those of the
    arguments.
    """

    similarity: np.ndarray
    opening: Gap
    extending: Gap
    start: np.ndarray
    end: np.ndarray
    empty: np.ndarray
    paid: tuple[Sequence[Any], Sequence[Any], Sequence[Any]]
    m: np.ndarray
    n: np.ndarray
    temperature: np.ndarray
    valid: np.ndarray
    rules: Any


def is_small(shape: tuple[int, ...]) -> bool:
    """Whether a batch of tables (..., m, n) is computed here."""
    *batch, m, n = shape
    return m + n <= MAX_DIAGONALS and prod(batch) * m * (m + n) <= MAX_LANES


def fits(similarity: Any) -> bool:
    """Whether a similarity that is not JAX's is small, or no similarity at all."""
    shape, _ = outline_of(similarity)
    return len(shape) < 2 or is_small(shape)


def small_model(
    read: Arguments,
    temperature: tuple[np.ndarray, int | None],
    band: int | None,
    dtype: Any = np.float64,
) -> SmallModel:
    """Lay the arguments out by cell; ``temperature`` is (array, axis of its batch), and
    ``band`` a half width, of a band by rows any, or None."""
    pair, axes, batch, _ = read
    rules, count = pair.rules, prod(batch)
    numbers = not any(map(len, cost_shapes(pair, axes)))

    def whole(x: np.ndarray, axis: int | None) -> np.ndarray:
        x = np.asarray(x, dtype)
        return x if axis == 0 else np.broadcast_to(x, (count, *x.shape))

    sides = zip(rules[:2], axes.rules[:2], strict=True)
    m, n = (whole(*side).astype(np.int32) for side in sides)
    rows, columns = pair.similarity.shape[-2:]
    in_rows = np.arange(rows)[:, None] < m[:, None, None]
    in_columns = np.arange(columns) < n[:, None, None]
    inside = in_rows & in_columns
    if isinstance(pair.similarity, Factors):
        a, b = map(whole, pair.similarity, axes.similarity)
        a, b = np.where(in_rows, a, 0), np.where(in_columns.swapaxes(1, 2), b, 0)
        wrong = [~np.isfinite(a), ~np.isfinite(b)]
        with np.errstate(invalid="ignore"):
            s = np.einsum("bik,bjk->bij", a, b)
    else:
        s = whole(pair.similarity, axes.similarity)
        wrong = [(np.isnan(s) | np.isposinf(s)) & inside]
    s = np.where(inside & (s > FORBIDDEN / 10) & (s < np.inf), s, FORBIDDEN)

    def payable(x: np.ndarray, axis: int | None, side: int) -> np.ndarray:
        """By cell, with a border of the nearest entries, and finite."""
        x, in_length = whole(x, axis), (in_rows, in_columns)[side]
        shape, across = [count, rows, columns], 2 - side
        shape[across] += 1
        unknown = np.isnan(x) | np.isneginf(x)
        x = np.where(unknown, 0, np.minimum(x, COSTLY))
        if x.ndim == 1:
            x, there = x[:, None, None], in_length.any((1, 2))
        elif x.ndim == 2:
            x, there = np.expand_dims(x, across), in_length.squeeze(across)
        else:
            there = inside
            border = x.take([0], across) if x.size else np.zeros_like(x, shape=shape)
            x = np.concatenate([border.take([0], across), x], across)
            # Beside an empty sequence the first entries count, though padding.
            length = np.maximum((n, m)[side], 1)[:, None]
            in_border = np.arange(shape[across]) <= length
            in_length = in_length & np.expand_dims(in_border, 1 + side)
        wrong.append(unknown & there)
        return np.where(np.broadcast_to(in_length, shape), x, COSTLY)

    opening, extending = (
        Gap(*(payable(*x, side) for side, x in enumerate(zip(cost, axis, strict=True))))
        for cost, axis in zip(pair[1:3], axes[1:3], strict=True)
    )
    valid = ~np.any([x.any((*range(1, x.ndim),)) for x in wrong], axis=0)
    e_head, e_tail = _runs(opening.e, extending.e, m, numbers)
    swapped = opening.f.swapaxes(1, 2), extending.f.swapaxes(1, 2)
    f_head, f_tail = (x.swapaxes(1, 2) for x in _runs(*swapped, n, numbers))
    pairs = np.arange(count)
    at_m, at_n = f_tail[pairs, m], e_tail[pairs, 0, n]
    # Between two pairs the query's residues come first.
    start_query = e_head if rules.target_start else e_head[:, :, :1]
    end_target = f_tail if rules.query_end else at_m[:, None]
    k, l = np.arange(rows + 1)[:, None], np.arange(columns + 1)
    at_start: tuple[Any, Any] = start_query, f_head
    at_end: tuple[Any, Any] = e_tail, end_target
    fits = np.bool_(True), np.bool_(True)
    if band is not None:
        sides = zip(rules[-2:], axes.rules[-2:], strict=True)
        first, last = (None if x is None else whole(x, axis) for x, axis in sides)
        allows = _allowed(band, m, n, first, last)
        at_start, at_end, fits = _limited(allows, at_start, at_end, m, n, k, l, rules)
        s = np.where(allows(k[:-1], l[:-1]), s, FORBIDDEN)
        within = Gap(allows(k[:-1], l - 1), allows(k - 1, l[:-1]))
        opening, extending = (
            Gap(*(np.where(x, y, COSTLY) for x, y in zip(within, cost, strict=True)))
            for cost in (opening, extending)
        )
    start, *starts = _hang(*at_start, end="start", k=k, l=l, rules=rules)
    left = m[:, None, None] - k, n[:, None, None] - l
    end, *ends = _hang(*at_end, end="end", k=left[0], l=left[1], rules=rules)
    # Without pairs the query's residues come first, or the target's where one hangs
    # over; the better order counts.
    e_first = np.where(rules.query_start, 0, e_tail[:, 0, 0])
    e_first = e_first + np.where(rules.target_end, 0, at_m[:, 0])
    f_first = np.where(rules.target_start, 0, f_tail[:, 0, 0])
    f_first = f_first + np.where(rules.query_end, 0, at_n)
    e_first = np.where(fits[0], e_first, -FORBIDDEN)
    hangs = rules.target_start | rules.query_end
    f_first = np.where(fits[1] & hangs, f_first, -FORBIDDEN)
    empty = np.where(rules.local, 0, -np.minimum(e_first, f_first))
    exists = rules.adjacent | rules.local | (m == 0) | (n == 0)
    empty = np.where(exists, empty, FORBIDDEN)
    first = np.where(e_first == f_first, 0.5, e_first < f_first) * ~rules.local
    paid = starts, ends, (first, (1 - first) * ~rules.local)
    t = whole(*temperature)
    return SmallModel(
        s, opening, extending, start, end, empty, paid, m, n, t, valid, rules
    )


def _allowed(band: int, m: Any, n: Any, first: Any, last: Any) -> Callable[..., Any]:
    """Whether cells (i, j) lie in a band (``similarity.band``), (B, K, L) of arrays (K,
    1) and (L,), or with B before them; before the first residue that one counts."""
    pairs, m, n = (x[:, None, None] for x in (np.arange(len(m)), m, n))

    def allows(i: Any, j: Any) -> np.ndarray:
        i, j = np.maximum(i, 0), np.maximum(j, 0)
        if first is not None:
            at = pairs, np.minimum(i, np.maximum(m, 1) - 1)
            return (first[at] <= j) & (j <= last[at])
        return abs((2 * i + 1) * n - (2 * j + 1) * m) <= band * (m + n)

    return allows


def _limited(
    allows: Callable[..., Any],
    at_start: tuple[np.ndarray, ...],
    at_end: tuple[np.ndarray, ...],
    m: np.ndarray,
    n: np.ndarray,
    k: np.ndarray,
    l: np.ndarray,
    rules: Any,
) -> tuple[Any, Any, Any]:
    """Costs of overhangs, infinite where they leave a band, and whether the alignment
    without pairs stays in it, by either order: ``similarity.band``."""
    m, n = m[:, None, None], n[:, None, None]
    column = l - 1 if rules.target_start else 0 * l
    query = (allows(0 * k, column) & allows(k - 1, column)) | (k <= 0)
    target = (allows(k - 1, 0 * l) & allows(k - 1, l - 1)) | (l <= 0)
    start = np.where(query, at_start[0], COSTLY), np.where(target, at_start[1], COSTLY)
    row = k - 1 if rules.query_end else m - 1 + 0 * k
    query = (allows(k, l - 1) & allows(m - 1, l - 1)) | (k >= m)
    target = (allows(row, l) & allows(row, n - 1)) | (l >= n)
    end = np.where(query, at_end[0], COSTLY), np.where(target, at_end[1], COSTLY)
    corners = (0, 0), (m - 1, 0), (0, n - 1), (m - 1, n - 1)
    first, below, right, last = (allows(*x)[:, 0, 0] for x in corners)
    no_query, no_target = m[:, 0, 0] == 0, n[:, 0, 0] == 0
    e_fits = rules.query_start | no_query | (first & below)
    e_fits &= rules.target_end | no_target | (below & last)
    f_fits = rules.query_end | no_query | (right & last)
    f_fits &= rules.target_start | no_target | (first & right)
    return start, end, (e_fits, f_fits)


def _runs(
    opening: np.ndarray, extending: np.ndarray, length: np.ndarray, numbers: bool
):
    """Costs (B, L + 1, W) of the first k residues, and of those after the first k; of
    ``numbers`` in closed form, which avoids the rounding of sums."""
    count, size, wide = opening.shape
    head, tail = np.zeros((2, count, size + 1, wide), opening.dtype)
    if size and numbers:
        k = np.arange(size + 1, dtype=opening.dtype)[:, None]
        opening, extending = opening[:, :1], extending[:, :1]
        for runs, gap in ((head, k), (tail, length[:, None, None] - k)):
            cost = opening + np.maximum(gap - 1, 0).astype(runs.dtype) * extending
            runs[:] = np.where(gap > 0, cost, 0)
    elif size:
        inside = np.arange(size)[:, None] < length[:, None, None]
        steps = np.concatenate([opening[:, :1], extending[:, 1:]], 1)
        np.cumsum(steps, 1, out=head[:, 1:])
        later = np.cumsum(np.where(inside, extending, 0)[:, ::-1], 1)[:, ::-1]
        tail[:, :-1] = np.where(inside, opening, 0)
        tail[:, :-2] += later[:, 1:]
    return head, tail


def _payers(head: np.ndarray, tail: np.ndarray, length: np.ndarray):
    """The transpose of ``_runs``: (opens, extensions) (B, L, W) of their flows."""
    size = head.shape[1] - 1
    inside = np.arange(size)[:, None] < length[:, None, None]
    steps = np.cumsum(head[:, :0:-1], 1)[:, ::-1]
    opens, extensions = np.where(inside, tail[:, :-1], 0), steps.copy()
    opens[:, :1] += steps[:, :1]
    extensions[:, :1] = 0
    before = np.cumsum(tail[:, :-1], 1)[:, :-1]
    extensions[:, 1:] += np.where(inside[:, 1:], before, 0)
    return opens, extensions


def _hang(
    query: np.ndarray, target: np.ndarray, end: str, k: Any, l: Any, rules: Any
) -> tuple[Any, ...]:
    """(log weight, share of the query's cost, of the target's) of k and l residues that
    hang over at one end."""
    free_query, free_target = (
        getattr(rules, f"{side}_{end}") for side in ("query", "target")
    )
    query, target = np.broadcast_arrays(query, target)
    if rules.local:
        a = b = np.zeros_like(query)
    elif free_query and free_target and rules.adjacent:  # one of them hangs over
        a = np.where(query == target, 0.5, query < target)
        b = 1 - a
    else:
        a = np.full_like(query, not free_query)
        b = np.full_like(query, not free_target)
    exists = rules.adjacent | rules.local | (k <= 0) | (l <= 0)
    return np.where(exists, -(a * query + b * target), FORBIDDEN), a, b


class SmallFilled(NamedTuple):
    """``score`` (B,) and its ``log`` (B,), the score over T; of each pair the chance
    that a path ends there, ``on`` (D, B, M), or that there is none, ``none`` (B,); and
    the ``shares`` (D, 4, 3, B, M) of the states, or of a start, before each state."""

    score: np.ndarray
    log: np.ndarray
    on: np.ndarray
    none: np.ndarray
    shares: np.ndarray


def skewed(
    x: np.ndarray, rows: int, columns: int, outside: float = FORBIDDEN
) -> np.ndarray:
    """(B, M, N) -> (D, B, M), in row d the pairs (i, d - i)."""
    d, i, inside = _places(rows, columns)
    j = np.where(inside, d - i, 0)
    lanes = np.where(inside, x[:, i, j], outside)
    return np.ascontiguousarray(np.moveaxis(lanes, 0, 1))


def _places(rows: int, columns: int) -> tuple[Any, Any, Any]:
    """Diagonals (D, 1), lanes (M,), and which of them are pairs."""
    count = rows + columns - 1 if rows and columns else 0
    d, i = np.arange(count)[:, None], np.arange(rows)
    return d, i, (i <= d) & (d - i < columns)


def unskewed(x: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """(D, ..., M) -> (..., M, N)."""
    i, j = np.arange(rows)[:, None], np.arange(columns)
    return np.moveaxis(x[i + j, ..., i], (0, 1), (-2, -1))


def _scaled(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Log weights over the temperature; what is forbidden stays so."""
    alive = x > -COSTLY
    scaled = np.where(alive, x, 0) / t.reshape(-1, *[1] * (x.ndim - 1))
    return np.where(alive, np.maximum(scaled, FORBIDDEN), FORBIDDEN)


def filled(model: SmallModel) -> SmallFilled:
    """The forward pass."""
    s, t = model.similarity, model.temperature
    count, rows, columns = s.shape
    scored = s, -model.opening.e[:, :, 1:], -model.extending.e[:, :, 1:]
    scored += -model.opening.f[:, 1:], -model.extending.f[:, 1:]
    scored += model.start[:, :-1, :-1], model.end[:, 1:, 1:]
    s, open_e, more_e, open_f, more_f, start, end = (
        skewed(_scaled(x, t), rows, columns) for x in scored
    )
    diagonals = len(s)
    # Values are relative to a base, a whole number in two parts, by diagonal.
    values = np.full((diagonals + 2, STATES, count, rows + 1), FORBIDDEN)
    shares = np.zeros((diagonals, STATES + 1, STATES, count, rows))
    high, low = np.zeros((2, diagonals, count))
    base, residual, shift = np.zeros((3, count))
    before = np.full((STATES + 1, STATES, count, rows), FORBIDDEN)
    for d in range(diagonals):
        lanes = slice(max(0, d - columns + 1), min(rows - 1, d) + 1)
        places, above = slice(lanes.start + 1, lanes.stop + 1), lanes
        into = before[..., lanes]
        np.subtract(values[d, ..., above], shift[:, None], out=into[:STATES, 0])
        np.subtract(start[d, :, lanes], (base + residual)[:, None], out=into[START, 0])
        np.add(values[d + 1, 0, :, above], open_e[d, :, lanes], out=into[0, 1])
        np.add(values[d + 1, 1, :, above], more_e[d, :, lanes], out=into[1, 1])
        np.add(values[d + 1, 0, :, places], open_f[d, :, lanes], out=into[0, 2])
        if model.rules.adjacent:
            np.add(values[d + 1, 1, :, places], open_f[d, :, lanes], out=into[1, 2])
        np.add(values[d + 1, 2, :, places], more_f[d, :, lanes], out=into[2, 2])
        best = into.max(0)
        parts = np.exp(into - best)
        total = parts.sum(0)
        np.divide(parts, total, out=shares[d, ..., lanes])
        value = best + np.log(total)
        value[0] += s[d, :, lanes]
        top = value.max((0, 2))
        shift = np.where(top > -COSTLY / 2, np.round(top), 0)
        np.subtract(value, shift[:, None], out=values[d + 2, ..., places])
        # base + rest + shift, with the rounding error of the sum kept in the rest
        total = base + shift
        part = total - base
        residual = residual + ((base - (total - part)) + (shift - part))
        base = total
        high[d], low[d] = base, residual
    empty = _scaled(model.empty, t)
    logs = np.full((diagonals + 1, count, max(rows, 1)), FORBIDDEN)
    logs[:-1, :, :rows], logs[-1, :, 0] = values[2:, 0, :, 1:] + end, empty
    high, low = (np.concatenate([x, np.zeros((1, count))]) for x in (high, low))
    largest = high + logs.max(2)
    at = largest.argmax(0), np.arange(count)
    alive = largest[at] > -COSTLY / 2
    logs += ((high - high[at]) + (low - low[at]))[..., None]
    top_log = logs.max((0, 2))
    parts = np.exp(logs - top_log[:, None])
    total = parts.sum((0, 2))
    parts *= np.where(alive, 1 / total, 0)[:, None]
    log = low[at] + np.log(total) + top_log
    score = np.where(alive, t * high[at] + t * log, -np.inf)
    on, none = parts[:-1, :, :rows], parts[-1, :, 0]
    return SmallFilled(score, high[at] + log, on, none, shares)


def flows(fill: SmallFilled, columns: int) -> np.ndarray:
    """The probability (D, 3, B, M) that a path passes each state: the reverse pass."""
    shares = fill.shares
    diagonals, _, _, count, rows = shares.shape
    passing = np.zeros((diagonals + 2, STATES, count, rows + 1))
    passing[2:, 0, :, 1:] = fill.on
    for d in reversed(range(diagonals)):
        lanes = slice(max(0, d - columns + 1), min(rows - 1, d) + 1)
        places = slice(lanes.start + 1, lanes.stop + 1)
        parts = shares[d, :STATES, ..., lanes] * passing[d + 2, ..., places]
        passing[d + 1, ..., lanes] += parts[:, 1]
        passing[d + 1, ..., places] += parts[:, 2]
        passing[d, ..., lanes] += parts[:, 0]
    return passing[2:, ..., 1:]


def posterior(fill: SmallFilled, passing: np.ndarray, columns: int) -> np.ndarray:
    """(B, M, N)."""
    return unskewed(passing[:, 0], fill.shares.shape[-1], columns)


def entropy(fill: SmallFilled, passing: np.ndarray) -> np.ndarray:
    """(B,) in nats: of the end, and of each choice on the way back."""
    shares = fill.shares
    logs = np.log(shares, where=shares > 0, out=np.zeros_like(shares))
    choices = (shares * logs).sum(1) * passing
    ends = _xlogx(fill.on).sum((0, 2)) + _xlogx(fill.none)
    return -choices.sum((0, 1, 3)) - ends


def _xlogx(p: np.ndarray) -> np.ndarray:
    return p * np.log(p, where=p > 0, out=np.zeros_like(p))


class Payers(NamedTuple):
    """The means of a path, by cell, in the shapes of ``SmallModel``."""

    similarity: np.ndarray
    opening: Gap
    extending: Gap
    start: np.ndarray
    end: np.ndarray
    empty: np.ndarray


def payers(fill: SmallFilled, passing: np.ndarray, columns: int) -> Payers:
    """The flows of costs between pairs, and of overhangs."""
    rows = fill.shares.shape[-1]
    parts = fill.shares * passing[:, None]

    def cells(x: np.ndarray, top: int, left: int, bottom: int = 0, right: int = 0):
        widths = (0, 0), (top, bottom), (left, right)
        return np.pad(unskewed(x, rows, columns), widths)

    opening = Gap(cells(parts[:, 0, 1], 0, 1), cells(parts[:, :2, 2].sum(1), 1, 0))
    extending = Gap(cells(parts[:, 1, 1], 0, 1), cells(parts[:, 2, 2], 1, 0))
    start, end = cells(parts[:, START, 0], 0, 0, 1, 1), cells(fill.on, 1, 1)
    pairs = posterior(fill, passing, columns)
    return Payers(pairs, opening, extending, start, end, fill.none)


def expected_gaps(model: SmallModel, mean: Payers) -> tuple[Gap, Gap]:
    """Payers of opening and of extending a gap, by cell, overhangs included."""
    rules, (m, n) = model.rules, (model.m, model.n)
    (a, b), (c, d), (e_first, f_first) = model.paid
    pairs = np.arange(len(m))
    # Flows of the costs of the first residues and of the last, of each sequence.
    e_head, f_head = mean.start * a, mean.start * b
    e_tail, f_tail = mean.end * c, mean.end * d
    if not rules.target_start:
        e_head = _gathered(e_head, 2, 0 * n)
    if not rules.query_end:
        f_tail = _gathered(f_tail, 1, m)
    e_first, f_first = mean.empty * e_first, mean.empty * f_first
    e_tail[:, 0, 0] += e_first * (not rules.query_start)
    f_tail[pairs, m, 0] += e_first * (not rules.target_end)
    f_tail[:, 0, 0] += f_first * (not rules.target_start)
    e_tail[pairs, 0, n] += f_first * (not rules.query_end)
    of_e = _payers(e_head, e_tail, m)
    of_f = _payers(f_head.swapaxes(1, 2), f_tail.swapaxes(1, 2), n)
    opens, extensions = (
        Gap(cost.e + e, cost.f + f.swapaxes(1, 2))
        for cost, e, f in zip(mean[1:3], of_e, of_f, strict=True)
    )
    return opens, extensions


def _gathered(x: np.ndarray, axis: int, place: np.ndarray) -> np.ndarray:
    """``x`` with all that it has along an axis in one place of it."""
    whole, total = np.zeros_like(x), x.sum(axis, keepdims=True)
    at = np.broadcast_to(np.expand_dims(place, (1, 2)), total.shape)
    np.put_along_axis(whole, at, total, axis)
    return whole


def in_shape_of(cost: np.ndarray, axis: int | None, x: np.ndarray, side: int):
    """Sums by cell in the shape of a cost: (B,), (B, L) or (B, M, N)."""
    rank = cost.ndim - (axis == 0)
    if rank == 0:
        return x.sum((1, 2))
    if rank == 1:
        return x.sum(2 - side)
    inner = x[:, :, 1:].copy() if side == 0 else x[:, 1:].copy()
    border = (x[:, :, 0], x[:, 0])[side]
    if inner.size:
        inner[(slice(None),) * (2 - side) + (0,)] += border
    return inner


def path_log(model: SmallModel, partners: np.ndarray) -> np.ndarray:
    """Scores over T (B,) of alignments (B, M); -inf where one is not legal."""
    logs = np.full(len(partners), -np.inf)
    for k, path in enumerate(partners):
        m, n, t = model.m[k], model.n[k], model.temperature[k]
        i = np.flatnonzero(path >= 0)
        j = path[i]
        sound = (path[path < 0] == -1).all() and (np.diff(j) > 0).all()
        if not sound or (i >= m).any() or (j >= n).any():
            continue
        terms = [model.empty[k]]
        if len(i):
            terms = [model.start[k, i[0], j[0]], model.end[k, i[-1] + 1, j[-1] + 1]]
            terms += [*model.similarity[k, i, j]]
        for a, b, c, d in zip(i[:-1], i[1:], j[:-1], j[1:], strict=True):
            if b > a + 1:  # the query's residues in the column of the pair before
                terms.append(-model.opening.e[k, a + 1, c + 1])
                terms += [*-model.extending.e[k, a + 2 : b, c + 1]]
            if d > c + 1:  # the target's in the row above the next pair
                terms.append(-model.opening.f[k, b, c + 1])
                terms += [*-model.extending.f[k, b, c + 2 : d]]
            if b > a + 1 and d > c + 1 and not model.rules.adjacent:
                terms.append(FORBIDDEN)
        if min(terms) > -COSTLY / 2:
            logs[k] = sum(terms) / t
    return logs


def divergence(p: SmallModel, q: SmallModel) -> np.ndarray:
    """KL(p, q) (B,); inf where q forbids what happens under p, nan where p allows no
    alignment."""
    fills, columns = [filled(x) for x in (p, q)], p.similarity.shape[2]
    mean = payers(fills[0], flows(fills[0], columns), columns)
    values = fills[1].log - fills[0].log

    def terms(x: SmallModel) -> list[np.ndarray]:
        costs = (*x.opening, *x.extending)
        return [x.similarity, *(-cost for cost in costs), x.start, x.end, x.empty]

    of_mean = [mean.similarity, *mean.opening, *mean.extending, *mean[3:]]
    refused = np.zeros(len(values), bool)
    for x, y, flow in zip(terms(p), terms(q), of_mean, strict=True):
        axes = tuple(range(1, x.ndim))
        of_p, of_q = (
            _finite(z) / t.reshape(-1, *[1] * (x.ndim - 1))
            for z, t in ((x, p.temperature), (y, q.temperature))
        )
        values = values + (flow * (of_p - of_q)).sum(axes)
        refused |= ((y <= -COSTLY) & (flow != 0)).any(axes)
    values = np.where(refused, np.inf, np.maximum(values, 0))
    return np.where(np.isneginf(fills[0].score), np.nan, values)


def _finite(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < COSTLY, x, 0)


def draw(model: SmallModel, seed: int, count: int) -> np.ndarray:
    """``count`` alignments of each pair: partners int32 (count, B, M).

    By one stream of NumPy: the end of each, then its choices, pair by pair from the
    end.
    """
    fill, random = filled(model), np.random.default_rng(seed)
    diagonals, _, _, batch, rows = fill.shares.shape
    partners = np.full((count, batch, rows), -1, np.int32)
    if not diagonals:
        return partners
    # (B, D * M + 1): the chances of all ends
    ends = fill.on.swapaxes(0, 1).reshape(batch, -1)
    ends = np.cumsum(np.concatenate([ends, fill.none[:, None]], 1), 1)
    drawn = random.random((count, batch)) * ends[:, -1]
    pairs = zip(ends, drawn.T, strict=True)
    at = np.array([x.searchsorted(y, "right") for x, y in pairs], int)
    at = np.minimum(at.T, ends.shape[1] - 1)
    kind = np.where(at == ends.shape[1] - 1, START, 0)
    kind[:, ends[:, -1] == 0] = START
    d, i = np.divmod(np.minimum(at, ends.shape[1] - 2), rows)
    j, pair = d - i, np.broadcast_to(np.arange(batch), at.shape)
    walks = np.nonzero(kind != START)
    while len(walks[0]):
        row, column, state = i[walks], j[walks], kind[walks]
        met = state == 0
        partners[(*(x[met] for x in walks), row[met])] = column[met]
        shares = fill.shares[row + column, :, state, pair[walks], row]
        points = random.random(len(row)) * shares.sum(1)
        choice = (np.cumsum(shares, 1) <= points[:, None]).sum(1)
        i[walks] = row - (state != 2)
        j[walks] = column - (state != 1)
        kind[walks] = np.minimum(choice, START)
        goes_on = kind[walks] != START
        walks = tuple(x[goes_on] for x in walks)
    return np.where(model.valid[:, None], partners, -1).astype(np.int32)


class SmallProblem(NamedTuple):
    """A batch of ``shape`` (..., m, n), its arguments, and the dtype of results."""

    model: SmallModel
    read: Arguments
    shape: tuple[int, ...]
    dtype: Any

    def result(self, x: np.ndarray) -> np.ndarray:
        """Results (B, ...) in the shape of the batch; nan where numbers are none."""
        valid = self.model.valid.reshape(-1, *[1] * (x.ndim - 1))
        x = np.where(valid, x, np.nan).astype(self.dtype)
        return x.reshape((*self.shape[:-2], *x.shape[1:]))

    def score(self) -> np.ndarray:
        """The soft score."""
        return self.result(filled(self.model).score)

    def posterior(self) -> np.ndarray:
        """Probabilities of pairs."""
        return self.summary()[1]

    def entropy(self) -> np.ndarray:
        """In nats."""
        return self.summary()[2]

    def summary(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Score, posterior and entropy."""
        fill, columns = filled(self.model), self.shape[-1]
        passing = flows(fill, columns)
        pairs = posterior(fill, passing, columns)
        values = fill.score, pairs, entropy(fill, passing)
        score, pairs, nats = map(self.result, values)
        return score, pairs, nats

    def gaps(self, shared: tuple[bool, ...]) -> tuple[Any, Any]:
        """Payers in the shape of their costs, or of costs ``shared`` by the two."""
        fill, columns = filled(self.model), self.shape[-1]
        mean = payers(fill, flows(fill, columns), columns)
        pair, axes = self.read[:2]
        counts = []
        for is_shared, by_cell, cost, axis in zip(
            shared, expected_gaps(self.model, mean), pair[1:3], axes[1:3], strict=True
        ):
            sides = [
                self.result(in_shape_of(cost[k], axis[k], by_cell[k], k))
                for k in range(2)
            ]
            counts.append(sides[0] + sides[1] if is_shared else Gap(*sides))
        return counts[0], counts[1]

    def log_prob(self, partners: np.ndarray) -> np.ndarray:
        """Log probabilities of alignments (B, m)."""
        logs = path_log(self.model, partners)
        with np.errstate(invalid="ignore"):
            logs = np.where(logs > -np.inf, logs - filled(self.model).log, -np.inf)
        return self.result(np.minimum(logs, 0))

    def draw(self, seed: int, count: int) -> np.ndarray:
        """Partners (count, ..., m) of alignments drawn."""
        partners = draw(self.model, seed, count)
        return partners.reshape(count, *self.shape[:-1])

    def divergence(self, second: SmallProblem) -> np.ndarray:
        """KL of this and another distribution."""
        values = divergence(self.model, second.model)
        return self.result(np.where(second.model.valid, values, np.nan))


def problem(similarity: Any, lengths: Any, options: SimilarityOptions) -> SmallProblem:
    """Read the arguments of a soft function."""
    costs = options.gap_open, options.gap_extend
    ends = options.mode, options.free_ends, options.adjacent_gaps
    read = arguments.read(similarity, lengths, *costs, *ends, band=options.band)
    ranks = map(len, cost_shapes(read.pair, read.axes))
    band = checked_band(options.band, read.pair.similarity.shape, ranks)
    check_temperature(options.temperature, np)
    temperature = read.fit(options.temperature, rank=0)
    shape = (*read.batch, *read.pair.similarity.shape[-2:])
    dtype = read.pair.gap_open.e.dtype
    return SmallProblem(small_model(read, temperature, band), read, shape, dtype)


def most_accurate_of(
    read: Arguments, threshold: Any, mode: str, free: frozenset[str]
) -> tuple[Any, Any, Any, Any]:
    """(score, partners, spans, lengths) of posteriors: ``model.alignment`` by pair."""
    pair, axes, batch, fit = read
    rows, count = pair.similarity.shape[-2], prod(batch)

    def whole(x: np.ndarray, axis: int | None) -> np.ndarray:
        return x if axis == 0 else np.broadcast_to(x, (count, *x.shape))

    posteriors, less = (
        whole(pair.similarity, axes.similarity),
        whole(*fit(threshold, rank=0)),
    )
    m, n = whole(pair.rules.m, axes.rules.m), whole(pair.rules.n, axes.rules.n)
    score = np.zeros(count, posteriors.dtype)
    partners = np.full((count, rows), -1, np.int32)
    spans = np.zeros((count, 4), np.int32)
    for k in range(count):
        p = posteriors[k, : m[k], : n[k]]
        if np.isnan(p).any():
            score[k], path = np.nan, partners[k, : m[k]]
        else:
            path = most_accurate(p, less[k])
            paired = np.flatnonzero(path >= 0)
            score[k] = p[paired, path[paired]].sum()
        partners[k, : m[k]] = path
        spans[k] = packed_path(path, int(m[k]), int(n[k]), mode, free)[0]
    lengths = np.stack([m, n], 1).astype(np.int32)
    score, partners, spans, lengths = (
        x.reshape((*batch, *x.shape[1:])) for x in (score, partners, spans, lengths)
    )
    return score, partners, spans, lengths
