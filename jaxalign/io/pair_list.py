"""A table of pairs of names, as of interactions, and of the part of each."""

from dataclasses import dataclass

from jaxalign.errors import InputError
from jaxalign.io.known_names import KnownNames
from jaxalign.io.name_table import rows_of
from jaxalign.io.source import label
from jaxalign.model.names import read_back

PARTS = ("part", "split", "fold", "set")


@dataclass(frozen=True)
class PairList:
    """Rows of a table.

    Attributes
    ----------
    path : str
    lines : list of int
    pairs : list of (str, str)
    parts : list of str, or None
        Where a heading has a column of parts.
    """

    path: str
    lines: list[int]
    pairs: list[tuple[str, str]]
    parts: list[str] | None

    def where(self, number: int) -> str:
        """How messages call a pair."""
        return f"{label(self.path)}, line {self.lines[number]}"


def read(path: str, known: KnownNames, parts: bool = False) -> PairList:
    """Pairs of a table of two or more columns.

    The first line is a heading where neither of its names is a sequence and the first
    name of the second line is one.

    Parameters
    ----------
    parts : bool
        Whether a column of parts is needed: one that the heading calls so, else the
        third.

    Raises
    ------
    InputError
        A line has too few columns, or there is none.
    """
    rows = rows_of(path)
    place = 2
    if len(rows) > 1 and _is_heading(rows[0][1], rows[1][1], known):
        heading = [x.lower() for x in rows.pop(0)[1]]
        place = next((heading.index(x) for x in PARTS if x in heading[2:]), 2)
    least = place + 1 if parts else 2
    lines, pairs, of_pair = [], [], []
    for number, fields in rows:
        if len(fields) < least or not all(fields[:2]):
            needed = "two names and a part" if parts else "two names"
            raise InputError(
                f"{label(path)}, line {number}: {needed} are needed, apart by a tab"
            )
        lines.append(number)
        a, b = read_back(fields[0]), read_back(fields[1])
        pairs.append((known.resolve(a), known.resolve(b)))
        of_pair.append(read_back(fields[place]) if parts else "")
    if not pairs:
        raise InputError(f"{label(path)}: the file has no pair")
    return PairList(path, lines, pairs, of_pair if parts else None)


def _is_heading(first: list[str], second: list[str], known: KnownNames) -> bool:
    def is_sequence(text: str) -> bool:
        return known.resolve(read_back(text)) in known.names

    return not any(map(is_sequence, first[:2])) and is_sequence(second[0])
