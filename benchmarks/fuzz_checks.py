"""Checks of the result of a job: a sentence for each fault, none where it is right.

Scores, ends, identities and paths of a sample are those of ``fuzz_oracle``; every path,
or as many as have ``COLUMNS`` columns, is worth its row; and every row is where it
belongs, with spans, counts and thresholds that agree.
"""

from dataclasses import dataclass
from functools import cached_property

import fuzz_oracle as oracle
import numpy as np

SAMPLE, CELLS, LARGE = 14, 2 * 10**7, 4 * 10**8  # pairs, their cells, of one in 25 jobs
WALKED = 5 * 10**5  # cells of a pair whose path is computed, too
PATHS, COLUMNS = 600, 10**6


@dataclass(frozen=True)
class Problem:
    """A job with its sequences, and how its pairs are numbered."""

    job: object
    scoring: object
    queries: list  # of code arrays
    targets: list

    @cached_property
    def costs(self) -> oracle.Problem:
        s, job = self.scoring, self.job
        return oracle.Problem(s.scores, s.open, s.extend, job.mode == "local", job.free,
                              s.alphabet.wildcard_code)  # fmt: skip

    @cached_property
    def pairs(self):
        """(i, j) of all rows there are without filters."""
        count = len(self.queries), len(self.targets)
        if self.job.kind in ("all", "stream", "distance"):
            own = self.job.include_self and self.job.kind != "distance"
            return np.triu_indices(count[0], 1 - own)
        if self.job.kind == "zip":
            return (np.arange(count[0]),) * 2
        return tuple(x.ravel() for x in np.indices(count))

    @cached_property
    def lengths(self):
        """Of the two sides."""
        return [np.array([len(x) for x in s]) for s in (self.queries, self.targets)]

    def cells(self, rows):
        i, j = (of[rows] for of in self.pairs)
        return self.lengths[0][i] * self.lengths[1][j]


def sample(problem: Problem, rng) -> list[int]:
    """Rows: the first, the last, the largest, empty ones and others, of few cells."""
    count = len(problem.pairs[0])
    if not count:
        return []
    some = rng.integers(0, count, 2000)
    cells = problem.cells(some)
    picked = [0, count - 1, some[cells.argmax()], some[cells.argmin()]]
    picked = [*picked, *some[: 2 * SAMPLE]]
    rest = LARGE if problem.job.number % 25 == 0 else CELLS
    kept = []
    for row in dict.fromkeys(map(int, picked)):
        cost = int(problem.cells(row))
        if cost <= rest and len(kept) < SAMPLE:
            kept, rest = [*kept, row], rest - cost
    return kept


def wanted(problem: Problem, row: int) -> dict:
    """The row as the oracle has it."""
    i, j = (int(of[row]) for of in problem.pairs)
    a, b, p = problem.queries[i], problem.targets[j], problem.costs
    if problem.job.output == "identity":
        values = dict(zip(("score", "max_identities"), oracle.matches(a, b, p),
                          strict=True))  # fmt: skip
    elif problem.job.output == "score" or len(a) * len(b) > WALKED:
        score, end = oracle.best(a, b, p)
        values = {"score": score}
        if problem.job.output != "score":
            values |= {"query_end": end[0], "target_end": end[1]}
    else:
        values = oracle.align(a, b, p)
    return values | {"score": values["score"] / problem.scoring.scale}


def differences(problem: Problem, table, rows: dict, least: dict):
    """Of a table: ``rows`` are row number -> what is wanted, ``least`` the filters."""
    at = yield from _order(problem, table, rows, bool(least))
    if at is None:
        return
    i, j = problem.pairs
    for row, want in rows.items():
        place = at.get(row)
        if place is None:
            known = "columns" in want or problem.job.output in ("score", "identity")
            known |= set(least) == {"min_score"}
            if known and kept(want, *sizes(problem, row), least):
                yield f"pair {i[row]}, {j[row]} is missing: {want}"
            continue
        got = {name: table[name][place].item() for name in want if name in SCALARS}
        if "operations" in want and table.operations is not None:
            runs = table.runs(place).tolist()
            got["operations"] = [(run >> 4, run & 15) for run in runs]
        want = {name: value for name, value in want.items() if name in got}
        if got != want:
            yield f"pair {i[row]}, {j[row]}: {got}, the oracle has {want}"
    yield from _whole(problem, table, least)


SCALARS = ("score", "max_identities", *oracle.ENDS, "identities", "columns",
           "gap_openings", "gaps")  # fmt: skip


def sizes(problem, row):
    both = problem.lengths, problem.pairs
    return (of[pair[row]] for of, pair in zip(*both, strict=True))


def _order(problem: Problem, table, rows, filtered):
    """Number -> place of rows of the whole result; None after a difference."""
    i, j = problem.pairs
    number = table["query"].astype(np.int64) * len(problem.targets) + table["target"]
    every = i * len(problem.targets) + j
    if not filtered:
        if len(number) != len(every) or (number != every).any():
            yield f"{len(number)} rows, {len(every)} in this order are right"
            return None
        return {row: row for row in rows}
    place = np.searchsorted(every, number)
    right = (every[np.minimum(place, len(every) - 1)] == number).all()
    if (np.diff(number) <= 0).any() or not right:
        yield "rows that are kept are out of order, or none of the job"
        return None
    return dict(zip(place.tolist(), range(len(place)), strict=True))


def kept(columns, m, n, least: dict):
    """Whether rows (arrays, or numbers) reach all thresholds."""
    keep = np.ones(np.shape(columns["score"]), bool)
    if "min_score" in least:
        keep &= np.asarray(columns["score"]) >= least["min_score"]
    count = columns.get("identities", columns.get("max_identities"))
    if "min_identity" in least:
        keep &= _share(count, _below(columns, m, n, least)) >= least["min_identity"]
    for side, size in (("query", m), ("target", n)):
        asked = least.get("coverage", "both") in ("both", side)
        if "min_cov" in least and asked:
            span = np.subtract(columns[f"{side}_end"], columns[f"{side}_start"])
            keep &= _share(span, size) >= least["min_cov"]
    return keep


def _below(columns, m, n, least):
    """The denominators of identities."""
    if least["identity"] in ("alignment", "full", "aligned"):
        spans = sum(np.subtract(columns[f"{x}_end"], columns[f"{x}_start"])
                    for x in ("query", "target"))  # fmt: skip
        gaps, over = np.asarray(columns["gaps"]), m + n - spans
        more = {"alignment": 0, "aligned": -gaps, "full": over}
        return columns["columns"] + more[least["identity"]]
    lengths = {"shorter": np.minimum(m, n), "longer": np.maximum(m, n)}
    lengths |= {"mean": (m + n) / 2, "query": m, "target": n}
    return lengths[least["identity"]]


def _share(count, below):
    """A fraction, below every threshold where there is nothing to divide by."""
    below = np.asarray(below, float)
    return np.where(below > 0, np.asarray(count) / np.where(below > 0, below, 1), -1.0)


def _whole(problem: Problem, table, least):
    """Checks of all rows."""
    columns = table.columns
    m = problem.lengths[0][columns["query"]]
    n = problem.lengths[1][columns["target"]]
    if not kept(columns, m, n, least).all():
        yield f"rows below {least} are kept"
    yield from _empty(problem, columns["score"] * problem.scoring.scale, m, n)
    if "max_identities" in columns:
        most = columns["max_identities"]
        if ((most < 0) | (most > np.minimum(m, n))).any():
            yield "more identities than residues"
    if "columns" in columns:
        yield from paths(problem, table, m, n)


def _empty(problem: Problem, score, m, n):
    """Scores of pairs with an empty sequence are known, others have bounds."""
    p, none = problem.costs, (m == 0) | (n == 0)
    want = np.zeros(len(m), np.int64)
    for side, size in (("query", m), ("target", n)):
        if not p.local and not p.free & {f"{side}_start", f"{side}_end"}:
            want -= oracle.gap(size, p)
    if (score[none] != want[none]).any():
        yield f"{int((score[none] != want[none]).sum())} scores of empty sequences"
    if (score > np.minimum(m, n) * max(int(p.scores.max()), 0)).any():
        yield "scores above what so many residues can have"
    if (p.local or len(p.free) == 4) and (score < 0).any():
        yield "scores below 0"


def paths(problem: Problem, table, m, n):
    """Spans and counts of all rows agree; the paths of many are worth them."""
    c = {name: table[name].astype(np.int64) for name in SCALARS[2:]}
    spans = c["query_end"] - c["query_start"], c["target_end"] - c["target_start"]
    pairs = c["columns"] - c["gaps"]
    wrong = (c["query_start"] < 0) | (c["query_end"] > m) | (c["target_start"] < 0)
    wrong |= (c["target_end"] > n) | (spans[0] < 0) | (spans[1] < 0)
    wrong |= (sum(spans) != 2 * pairs + c["gaps"]) | (pairs < c["identities"])
    wrong |= (c["gaps"] < c["gap_openings"]) | (np.minimum(*spans) < pairs)
    wrong |= (c["gaps"] > 0) & (c["gap_openings"] < 1) | (c["identities"] < 0)
    if wrong.any():
        yield f"spans and counts of {int(wrong.sum())} rows, the first {wrong.argmax()}"
    if table.operations is None:
        return
    offsets = table.operation_offsets
    if len(offsets) != len(table) + 1 or offsets[-1] != len(table.operations):
        yield "operations and their offsets"
        return
    rng, left = np.random.default_rng(len(table)), COLUMNS
    for row in rng.permutation(len(table))[:PATHS].tolist():
        left -= int(c["columns"][row])
        if left > 0:
            yield from _path(problem, table, row)


def _path(problem: Problem, table, row):
    got = {
        name: table[name][row].item() for name in SCALARS if name != "max_identities"
    }
    a, b = problem.queries[table["query"][row]], problem.targets[table["target"][row]]
    try:
        want = oracle.rescored(a, b, got, table.runs(row), problem.costs)
    except (ValueError, IndexError) as error:
        yield f"row {row}: {error}"
        return
    want["score"] /= problem.scoring.scale
    if any(want[name] != value for name, value in got.items()):
        yield f"row {row}: {got}, its path is worth {want}"
