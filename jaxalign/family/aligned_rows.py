"""Hits of one query on its positions: columns of codes, and rows of a3m text."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from jaxalign.model.alphabet import Alphabet
from jaxalign.model.operations import D, I, M
from jaxalign.model.table import Table

GAP = -1
ROWS_AT_ONCE = 2**13
LOWER = 32  # from an upper case letter of ASCII to the lower case one


class Steps(NamedTuple):
    """The steps of many paths, one after the other, (steps,) each.

    ``row`` is the row of the table, ``kind`` M, I or D, ``position`` the query residue
    of the step (of D the one before it), ``code`` the target's residue, which I has
    not.
    """

    row: np.ndarray
    kind: np.ndarray
    position: np.ndarray
    code: np.ndarray


class Columns(NamedTuple):
    """The residues of some hits.

    Attributes
    ----------
    codes : int8 (hits, m)
        Of the residue at each position of the query, ``GAP`` where there is none.
    inserted : int64 (hits, letters)
        How many of each letter stand between positions.
    """

    codes: np.ndarray
    inserted: np.ndarray


def blocks(table: Table) -> Iterator[Table]:
    """The rows of a table, some at a time."""
    for start in range(0, len(table), ROWS_AT_ONCE):
        yield table[start : start + ROWS_AT_ONCE]


def columns(table: Table, length: int) -> Columns:
    """The residues of the hits of a query of ``length`` positions."""
    size = table.targets.alphabet.size
    parts = [_columns(block, length, size) for block in blocks(table)]
    nothing = Columns(np.zeros((0, length), np.int8), np.zeros((0, size), np.int64))
    codes, inserted = zip(nothing, *parts, strict=True)
    return Columns(np.concatenate(codes), np.concatenate(inserted))


def _columns(table: Table, length: int, size: int) -> Columns:
    steps = steps_of(table)
    codes = np.full((len(table), length), GAP, np.int8)
    pairs, inserts = steps.kind == M, steps.kind == D
    codes[steps.row[pairs], steps.position[pairs]] = steps.code[pairs]
    place = steps.row[inserts] * size + steps.code[inserts]
    counts = np.bincount(place, minlength=len(table) * size)
    return Columns(codes, counts.reshape(len(table), size))


def a3m_rows(table: Table, length: int) -> list[str]:
    """The hits as rows of a3m: upper case and - at the positions of the query, lower
    case between them.

    A letter that means no residue, *, is X, which every reader knows.
    """
    return [row for block in blocks(table) for row in _a3m_rows(block, length)]


def _a3m_rows(table: Table, length: int) -> list[str]:
    steps = steps_of(table)
    counts = np.bincount(steps.row, minlength=len(table))
    begin, end = table["query_start"].astype(np.int64), table["query_end"]
    offsets = np.concatenate([[0], np.cumsum(counts + length - (end - begin))])
    text = np.full(offsets[-1], ord("-"), np.uint8)
    shift = offsets[:-1] + begin - (np.cumsum(counts) - counts)
    place = np.arange(len(steps.row)) + shift[steps.row]
    letters = residue_letters(table.targets.alphabet)[steps.code]
    letters[steps.kind == D] += LOWER
    written = steps.kind != I
    text[place[written]] = letters[written]
    whole = text.tobytes().decode()
    return [whole[a:b] for a, b in zip(offsets[:-1], offsets[1:], strict=True)]


def residue_letters(alphabet: Alphabet) -> np.ndarray:
    """uint8 ASCII of the codes; what is no letter is X."""
    letters = "".join(x if x.isalpha() else "X" for x in alphabet.letters)
    return np.frombuffer(letters.encode(), np.uint8)


def text_of(codes: np.ndarray, alphabet: Alphabet) -> str:
    """The letters of a sequence; what is no letter is X."""
    return residue_letters(alphabet)[codes].tobytes().decode()


def steps_of(table: Table) -> Steps:
    """The steps of all paths of a table."""
    offsets = np.asarray(table.operation_offsets)
    runs = np.asarray(table.operations)[offsets[0] : offsets[-1]]
    lengths = (runs >> 4).astype(np.int64)
    kind = np.repeat((runs & 15).astype(np.uint8), lengths)
    row = np.repeat(np.repeat(np.arange(len(table)), np.diff(offsets)), lengths)
    position = _running(kind != D, row, table["query_start"])
    target = _running(kind != I, row, table["target_start"])
    index = table["target"].astype(np.int64)[row]
    place = np.asarray(table.targets.offsets)[index] + target
    code = table.targets.codes[np.minimum(place, len(table.targets.codes) - 1)]
    return Steps(row, kind, position, code)


def _running(consumed: np.ndarray, row: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The residue of a side at each step: the last that was consumed."""
    total = np.cumsum(consumed)
    first = np.flatnonzero(np.diff(row, prepend=-1))
    before = np.zeros(len(start), np.int64)
    before[row[first]] = total[first] - consumed[first]
    return start.astype(np.int64)[row] + total - before[row] - 1
