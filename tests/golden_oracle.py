"""The rows of ``golden_jobs`` against the oracles, so that no mistake is frozen."""

import tempfile
from functools import singledispatch
from pathlib import Path

import golden_rows
import numpy as np
import oracle
import oracle3
from golden_draw import Draw

import jaxalign

LARGEST = 10**6  # cells of a pair: beyond, the oracle takes minutes
LARGEST_TRIPLE = 40**3
COMPLEMENT = str.maketrans("ACGTRYSWKMBDHVN", "TGCAYRSWMKVHDBN")


def check(groups, share: float) -> int:
    """Compare a share of the rows of each group; 1 where one is wrong."""
    seen = wrong = 0
    for group in groups:
        draw = Draw(f"oracle {group.name}")
        with tempfile.TemporaryDirectory() as folder:
            results = group.run(Path(folder))
        for result in results:
            for label, good in compare(result, draw, share):
                seen, wrong = seen + 1, wrong + (not good)
                if not good:
                    print(f"wrong: {group.name}: {label}")
    print(f"{seen} rows compared, {wrong} wrong")
    return 1 if wrong else 0


def some(draw, count: int, share: float):
    """Which of ``count`` rows are compared."""
    return [
        k for k, dice in enumerate(draw.numbers(count, 1000)) if dice < 1000 * share
    ]


@singledispatch
def compare(result, draw, share):
    """(label, whether it is right) of some rows; texts are not compared."""
    return []


@compare.register
def _(table: jaxalign.Table, draw, share):
    m, n = table.lengths()
    for k in some(draw, len(table), share):
        if m[k] * n[k] <= LARGEST:
            yield f"row {k}", _good_row(table, k)


def _good_row(table, k) -> bool:
    s = table.scoring
    a, b = table.queries[table["query"][k]], table.targets[table["target"][k]]
    problem = s.scores, s.open, s.extend, table.mode, table.free_ends
    got = {name: column[k].item() for name, column in table.columns.items()}
    if got.get("strand") == -1:  # spans of a query count along its plus strand
        text = s.alphabet.decode(a).translate(COMPLEMENT)[::-1]
        a = s.alphabet.encode(text)
        ends = len(a) - got["query_end"], len(a) - got["query_start"]
        got["query_start"], got["query_end"] = ends
    if "max_identities" in got:
        wildcard = s.alphabet.wildcard_code
        score, most = oracle.max_identities(a, b, *problem, wildcard)
        return (score / s.scale, most) == (got["score"], got["max_identities"])
    if "columns" not in got:
        return oracle.score(a, b, *problem) / s.scale == got["score"]
    want = _row(a, b, s, problem)
    if golden_rows.has_paths(table):
        got["operations"] = _operations(table.runs(k))
    return all(got.get(name, value) == value for name, value in want.items())


def _row(a, b, scoring, problem) -> dict:
    """The oracle's score, spans, counts and operations."""
    x = oracle.align(a, b, *problem)
    wildcard = scoring.alphabet.wildcard_code
    return {
        "score": x.score / scoring.scale,
        "query_start": x.start[0],
        "query_end": x.end[0],
        "target_start": x.start[1],
        "target_end": x.end[1],
        "columns": oracle.columns(x.operations),
        "identities": oracle.identities(a, b, x.start, x.operations, wildcard),
        "gap_openings": oracle.gap_openings(x.operations),
        "gaps": oracle.gaps(x.operations),
        "operations": x.operations,
    }


def _operations(runs):
    return [("MID"[run & 15], run >> 4) for run in runs.tolist()]


@compare.register
def _(found: jaxalign.Alignment, draw, share):
    for _ in some(draw, 1, share):
        s = found.scoring
        a, b = s.alphabet.encode(found.query), s.alphabet.encode(found.target)
        problem = s.scores, s.open, s.extend, found.mode, found.free_ends
        want = _row(a, b, s, problem)
        good = _operations(found.operations) == want.pop("operations")
        names = all(getattr(found, name) == value for name, value in want.items())
        yield found.cigar(), good and names


@compare.register
def _(matrix: golden_rows.Matrix, draw, share):
    s, shape = matrix.scoring, matrix.values.shape
    for k in some(draw, matrix.values.size, share):
        i, j = np.unravel_index(k, shape)
        a = s.alphabet.encode(matrix.queries[i])
        b = s.alphabet.encode(matrix.targets[j])
        problem = s.scores, s.open, s.extend, matrix.mode, matrix.free_ends
        want = oracle.score(a, b, *problem) / s.scale
        yield f"entry {i} {j}", want == matrix.values[i, j]


@compare.register
def _(cells: golden_rows.Cells, draw, share):
    for _ in some(draw, 1, share):
        s = cells.scoring
        a, b = s.alphabet.encode(cells.query), s.alphabet.encode(cells.target)
        problem = s.scores, s.open, s.extend, cells.mode, cells.free_ends
        h, e, f = oracle.tables(a, b, *problem)
        good = (h == cells.h).all()
        good &= (e[1:, 1:] == cells.e[1:, 1:]).all()
        good &= (f[1:, 1:] == cells.f[1:, 1:]).all()
        words = golden_rows.without_padding(cells.directions["words"], len(a))
        good &= (oracle.words(a, b, *problem) == words).all()
        nibbles = oracle.directions(a, b, *problem)
        bits = {"b_left": oracle.B_LEFT, "b_up": oracle.B_UP,
                "c_up": oracle.C_UP, "c_left": oracle.C_LEFT}  # fmt: skip
        for name, bit in bits.items():
            good &= (cells.directions[name] == ((nibbles & bit) > 0)).all()
        yield f"tables {cells.query} {cells.target}", bool(good)


@compare.register
def _(found: jaxalign.TripleAlignment, draw, share):
    for _ in some(draw, 1, share):
        s = found.scoring
        codes = [s.alphabet.encode(text) for text in found.sequences]
        if np.prod([len(code) for code in codes]) > LARGEST_TRIPLE:
            continue
        costs = s.open, s.extend
        want = oracle3.score(codes, s.scores, *costs, found.gap_model, found.mode)
        good = want / s.scale == found.score
        if golden_rows.rows_of_triple(found) is not None:
            good = good and found.rescore() == found.score
        yield " ".join(found.sequences), good
