"""The first model of a HMMER3 text file, and nothing that is almost one.

A model has after its header lines: HMM and a heading, COMPO, two lines before the first
position, three lines for each of LENG positions, and //. All numbers are -ln of
probabilities, ``*`` that of none, and those of a distribution sum to 1 (HMMER User's
Guide 3.4, "HMMER profile HMM files").
"""

import os
import re
from typing import Any, NamedTuple

import numpy as np

from jaxalign.model.family_text import lines_of, wrong

LETTERS, MOVES = 20, 7  # numbers in a line of emissions, and of transitions
DISTRIBUTIONS = (slice(0, 3), slice(3, 5), slice(5, 7))  # from M, I and D
MOST_ANNOTATIONS = 5  # behind the emissions of a position: MAP, CONS, RF, MM, CS
TOLERANCE = 0.05  # of the sum of a distribution, whose numbers are rounded
# With a point, so that a number that is missing is not taken from an annotation.
NUMBER = re.compile(r"-?\d+\.\d+(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
ONCE = ("NAME", "LENG", "ALPH")  # fields that every model has


class ModelLine(NamedTuple):
    """A line that is not blank: its number and its words."""

    number: int
    words: list[str]


def read(source: Any) -> tuple[str, np.ndarray, np.ndarray]:
    """(name, -ln of match emissions (m, 20), -ln of transitions behind each position
    (m, 7)).

    Raises
    ------
    InputError
        No file, or no whole model of proteins; the message names the line.
    """
    lines = lines_of(source)
    if not lines[0].startswith("HMMER3"):
        raise wrong(source, 1, "no HMMER3 text file")
    rows = [ModelLine(k, x.split()) for k, x in enumerate(lines, 1) if x.strip()]
    begin = next((k for k, row in enumerate(rows) if row.words[0] == "HMM"), None)
    if begin is None:
        raise wrong(source, rows[-1].number, "the file ends before a line HMM")
    name, length = _header(source, rows[1:begin], rows[begin].number)
    return name, *_body(source, rows[begin + 1 :], rows[-1].number, length)


def _header(
    source: str | os.PathLike[str], rows: list[ModelLine], end: int
) -> tuple[str, int]:
    """(name, LENG) of the lines before HMM."""
    fields: dict[str, ModelLine] = {}
    for row in rows:
        field = row.words[0]
        if field in ONCE and field in fields:
            raise wrong(source, row.number, f"{field} comes twice")
        fields[field] = row
    for field in ONCE:
        if field not in fields:
            raise wrong(source, end, f"no line {field} before it")
        if len(fields[field].words) < 2:
            raise wrong(source, fields[field].number, f"{field} of nothing")
    kind, length = fields["ALPH"], fields["LENG"]
    if kind.words[1].lower() != "amino":
        raise wrong(source, kind.number, f"a model of {kind.words[1]}, not of proteins")
    if not length.words[1].isdecimal() or int(length.words[1]) < 1:
        raise wrong(source, length.number, f"LENG {length.words[1]}: 1 or more")
    return " ".join(fields["NAME"].words[1:]), int(length.words[1])


def _body(
    source: str | os.PathLike[str], rows: list[ModelLine], last: int, length: int
):
    """(emissions, transitions) of the lines behind HMM."""
    end = next((k for k, row in enumerate(rows) if row.words == ["//"]), None)
    if end is None:
        raise wrong(source, last, "the file ends before the model does, with //")
    if rows[0].words[0] != "m->m":
        raise wrong(source, rows[0].number, "the heading of transitions is needed")
    stop, rows = rows[end], rows[1:end]
    if rows and rows[0].words[0] == "COMPO":
        _emissions(source, rows.pop(0), "COMPO")
    for place in range(0, min(len(rows), 3 * length + 2)):
        _check_kind(source, rows[place], place)
    if len(rows) != 3 * length + 2:
        raise wrong(
            source,
            stop.number,
            f"LENG {length} needs {3 * length + 2} lines of numbers before it, there "
            f"are {len(rows)}",
        )
    _emissions(source, rows[0])
    _transitions(source, rows[1])
    emissions, transitions = [], []
    for k in range(length):
        match, insert, moves = rows[3 * k + 2 : 3 * k + 5]
        emissions.append(_emissions(source, match, str(k + 1)))
        _emissions(source, insert)
        transitions.append(_transitions(source, moves))
    return np.array(emissions), np.array(transitions)


def _check_kind(source: str | os.PathLike[str], row: ModelLine, place: int) -> None:
    """Refuse a line that stands at the place of another kind."""
    kind = ("insert emissions", "transitions", "match emissions")[place % 3]
    at_least, most = {
        "insert emissions": (LETTERS, LETTERS),
        "transitions": (MOVES, MOVES),
        "match emissions": (LETTERS + 1, LETTERS + 1 + MOST_ANNOTATIONS),
    }[kind]
    if not at_least <= len(row.words) <= most:
        raise wrong(
            source,
            row.number,
            f"{len(row.words)} words, where {kind} have {at_least}"
            + (f" to {most}" if most > at_least else ""),
        )


def _emissions(
    source: str | os.PathLike[str], row: ModelLine, name: str | None = None
) -> list[float]:
    """-ln of 20 probabilities, behind the name of the line."""
    words = row.words
    if name is not None:
        if words[0] != name:
            raise wrong(
                source, row.number, f"position {name} is needed, not {words[0]}"
            )
        words = words[1 : LETTERS + 1] if name != "COMPO" else words[1:]
    return _distributions(source, row.number, words, LETTERS, (slice(0, LETTERS),))


def _transitions(source: str | os.PathLike[str], row: ModelLine) -> list[float]:
    return _distributions(source, row.number, row.words, MOVES, DISTRIBUTIONS)


def _distributions(
    source: str | os.PathLike[str],
    number: int,
    words: list[str],
    count: int,
    parts: tuple[slice, ...],
) -> list[float]:
    """-ln of probabilities, each part of which sums to 1."""
    if len(words) != count:
        raise wrong(source, number, f"{len(words)} numbers, where {count} are needed")
    values = [_number(source, number, word) for word in words]
    for part in parts:
        total = float(np.exp(-np.array(values[part])).sum())
        if abs(total - 1) > TOLERANCE:
            raise wrong(
                source,
                number,
                f"probabilities {' '.join(words[part])}, as -ln, sum to {total:.3g}",
            )
    return values


def _number(source: str | os.PathLike[str], number: int, word: str) -> float:
    if word == "*":
        return np.inf
    if not NUMBER.fullmatch(word) or not 0 <= float(word) < np.inf:
        raise wrong(source, number, f"{word[:20]!r} is no -ln of a probability")
    return float(word)
