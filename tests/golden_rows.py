"""Results as the text that ``golden_jobs`` hashes, a job a line."""

import hashlib
from dataclasses import dataclass
from functools import singledispatch

import numpy as np

import jaxalign

BY_LENGTH = ("shorter", "longer", "mean", "query", "target")
BY_PATH = ("alignment", "full", "aligned")
STATISTICS = ("bits", "evalue")
VERY_LOW = -(10**6)  # below it a cell of E or F is minus infinity, however large
EVERY = 10  # rows of a table from one ``Alignment`` looked at to the next


@dataclass(frozen=True, eq=False)
class Matrix:
    """What ``scores_matrix`` or ``distance_matrix`` gave; a job is an entry."""

    values: np.ndarray
    queries: list
    targets: list
    scoring: jaxalign.Scoring
    mode: str
    free_ends: frozenset


@dataclass(frozen=True, eq=False)
class Cells:
    """H, E, F and directions of a pair; a job is a pair."""

    query: str
    target: str
    scoring: jaxalign.Scoring
    mode: str
    free_ends: frozenset
    h: np.ndarray
    e: np.ndarray
    f: np.ndarray
    directions: dict


@dataclass(frozen=True)
class Note:
    """Part of the digest, and no job."""

    text: str


def digest(lines) -> str:
    """16 hexadecimal digits of SHA-256."""
    text = "\n".join(lines)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@singledispatch
def rows(result) -> list[str]:
    """A result as lines, a job each. Text is a job of its own."""
    raise TypeError(f"{type(result)} has no rows")


@rows.register
def _(text: str):
    return [text]


@rows.register
def _(note: Note):
    return []


@rows.register
def _(table: jaxalign.Table):
    names = [name for name in table.columns if name not in STATISTICS]
    fields = [[str(value) for value in table[name].tolist()] for name in names]
    fields += [_rounded(table[name]) for name in STATISTICS if name in table.columns]
    fields += [[repr(x) for x in table.identity(kind).tolist()]
               for kind in _identities(table)]  # fmt: skip
    if has_paths(table):
        fields.append([_paths(table, k) for k in range(len(table))])
    return ["\t".join(row) for row in zip(*fields, strict=True)]


def heading(result) -> list[str]:
    """Of a table: names and dtypes of columns, names of a row, how many pairs."""
    if isinstance(result, Note):
        return [result.text]
    if not isinstance(result, jaxalign.Table):
        return []
    kinds = " ".join(f"{name}:{column.dtype}" for name, column in
                     result.columns.items())  # fmt: skip
    first = result.row(0) if len(result) else {"query": "none", "target": "none"}
    names = first["query"], first["target"], result.mode, *sorted(result.free_ends)
    return [kinds, " ".join(names), str(result.info.get("pairs"))]


def has_paths(table: jaxalign.Table) -> bool:
    try:
        return len(table) > 0 and bool(table.cigar(0))
    except jaxalign.UsageError:
        return False


def _identities(table):
    if "columns" in table.columns:
        return BY_PATH + BY_LENGTH
    return BY_LENGTH if "max_identities" in table.columns else ()


def _rounded(values):
    """Logarithms and powers differ in their last digits from one NumPy to another."""
    return [f"{value:.6g}" for value in values.tolist()]


def _paths(table, k):
    paths = [table.cigar(k), " ".join(map(str, table.runs(k).tolist()))]
    if k % EVERY:
        return "\t".join([*paths, table.cigar(k, eqx=True)])
    return "\t".join(paths + rows(table.alignment(k)))


@rows.register
def _(found: jaxalign.Alignment):
    fields = [found.query_name, found.target_name, found.query, found.target]
    fields += [found.score, type(found.score).__name__, found.rescore()]
    fields += [found.query_start, found.query_end]
    fields += [found.target_start, found.target_end, found.mode]
    fields += [",".join(sorted(found.free_ends)), found.cigar(), found.cigar(eqx=True)]
    fields += [found.columns, found.identities, found.gaps, found.gap_openings]
    fields += [repr(found.identity(kind)) for kind in BY_PATH + BY_LENGTH]
    return ["\t".join(map(str, [*fields, *found.rows()]))]


def rows_of_triple(found):
    """The gapped rows, a field or a call; None where only the score was asked for."""
    try:
        return found.rows() if callable(found.rows) else found.rows
    except jaxalign.UsageError:
        return None


@rows.register
def _(found: jaxalign.TripleAlignment):
    fields = [*found.names, found.gap_model, found.mode, f"{found.score:g}"]
    gapped = rows_of_triple(found)
    if gapped is not None:
        spans = [f"{start}-{end}" for start, end in found.spans]
        scores = found.rescore(), *found.pair_scores, found.score_natural
        fields += [*gapped, *spans, *(f"{score:g}" for score in scores)]
        fields += [found.columns, found.consensus()]
        fields.append(" ".join(found.agreement()))
    return ["\t".join(map(str, fields))]


@rows.register
def _(table: jaxalign.TripleTable):
    return [row for triple in table for row in rows(triple)]


@rows.register
def _(matrix: Matrix):
    values = matrix.values
    return [
        f"{values.dtype} {i} {j} {value!r}"
        for i, row in enumerate(values.tolist())
        for j, value in enumerate(row)
    ]


@rows.register
def _(cells: Cells):
    gaps = [np.maximum(table, VERY_LOW) for table in (cells.e, cells.f)]
    arrays = {"H": cells.h, "E": gaps[0], "F": gaps[1], **cells.directions}
    arrays["words"] = without_padding(arrays["words"], len(cells.query))
    return [" ".join(_array(name, arrays[name]) for name in sorted(arrays))]


def without_padding(words, rows):
    """Packed directions whose last word has zeros below the last row."""
    last = np.array(0xFFFFFFFF << 4 * (-rows % 8) & 0xFFFFFFFF, np.uint32)
    return np.concatenate([words[:-1], words[-1:] & last])


def _array(name, array):
    content = np.ascontiguousarray(array)
    of_bytes = hashlib.sha256(content.tobytes()).hexdigest()[:16]
    return f"{name} {content.dtype} {content.shape} {of_bytes}"
