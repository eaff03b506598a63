"""Text of alignments of a family: aligned FASTA, a3m and Stockholm."""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from jaxalign.errors import InputError
from jaxalign.model.family_text import lines_of, wrong

OTHER = re.compile(r"[^A-Za-z.~*-]")  # no letter of a row, and no gap


class AlignedRow(NamedTuple):
    """Aligned letters, and where they are: a line of a file, or a row of a list."""

    line: int
    letters: str


def alignment(source: Any) -> tuple[str, list[str], bool]:
    """(name, aligned rows, whether columns are told by case).

    Raises
    ------
    InputError
        No file or rows, a letter that is none, or rows of different lengths; the
        message names the line.
    """
    if not isinstance(source, (str, os.PathLike)):
        rows = [AlignedRow(k, row) for k, row in enumerate(_texts(source), 1)]
        _check(rows, lambda line, why: InputError(f"row {line} of an alignment: {why}"))
        return "alignment", [row.letters for row in rows], False
    lines = lines_of(source)
    stockholm = lines[0].startswith("# STOCKHOLM")
    rows = (_stockholm if stockholm else _fasta)(lines, source)
    by_case = not stockholm and len({len(row.letters) for row in rows}) > 1
    if by_case:
        rows = [AlignedRow(line, _columns(letters)) for line, letters in rows]
    _check(rows, lambda line, why: wrong(source, line, why))
    return Path(source).stem, [row.letters for row in rows], by_case


def _texts(source: Any) -> list[str]:
    rows = list(source) if isinstance(source, Iterable) else [source]
    if not all(isinstance(row, str) for row in rows):
        raise InputError("an alignment is a path or a list of aligned rows of text")
    return rows


def _columns(letters: str) -> str:
    """A row of a3m without what stands between columns."""
    return "".join(x for x in letters if not x.islower() and x != ".")


def _check(rows: list[AlignedRow], error: Callable[[int, str], Exception]) -> None:
    """Refuse rows that are none of one alignment; ``error`` takes a line and why."""
    if not rows:
        raise error(1, "there are no rows")
    length = len(rows[0].letters)
    for line, letters in rows:
        if other := OTHER.search(letters):
            raise error(line, f"{other[0]!r} is no letter and no gap")
        if len(letters) != length or not length:
            raise error(
                line,
                f"{len(letters)} columns, where the first row has {length}: the rows "
                "of an alignment have one length",
            )


def _stockholm(lines: list[str], source: Any) -> list[AlignedRow]:
    """Rows of the first alignment; blocks of one name are joined."""
    rows: dict[str, AlignedRow] = {}
    for number, line in enumerate(lines, 1):
        if line.startswith("//"):
            return list(rows.values())
        if line.strip() and not line.startswith("#"):
            name, *parts = line.split()
            if not parts:
                raise wrong(source, number, f"{name} has no letters")
            known = rows.get(name, AlignedRow(number, ""))
            rows[name] = AlignedRow(known.line, known.letters + "".join(parts))
    last = max((k for k, x in enumerate(lines, 1) if x.strip()), default=1)
    raise wrong(source, last, "the file ends before the alignment does, with //")


def _fasta(lines: list[str], source: Any) -> list[AlignedRow]:
    """Rows of aligned FASTA or a3m, at the lines of their headings."""
    rows: list[tuple[int, list[str]]] = []
    for number, line in enumerate(lines, 1):
        if line.startswith(">"):
            rows.append((number, []))
        elif line.strip() and not line.startswith("#"):
            if not rows:
                raise wrong(source, number, "no header before it")
            rows[-1][1].append(_letters(line, source, number))
    return [AlignedRow(number, "".join(parts)) for number, parts in rows]


def _letters(line: str, source: Any, number: int) -> str:
    """A line without spaces; what is no letter is named at once, in its own line."""
    letters = "".join(line.split())
    if other := OTHER.search(letters):
        raise wrong(source, number, f"{other[0]!r} is no letter and no gap")
    return letters
