"""Text of alignments and of profile HMMs: aligned FASTA, a3m, Stockholm, HMMER3."""

import os
from pathlib import Path

import numpy as np

from jaxalign.errors import InputError

LETTERS, MOVES = 20, 7  # numbers in a line of emissions, and of transitions


def alignment(source) -> tuple[str, list[str], bool]:
    """(name, aligned rows, whether columns are told by case)."""
    if not isinstance(source, (str, os.PathLike)):
        return "alignment", [str(row) for row in source], False
    path, text = Path(source), _text(source)
    if text.startswith("# STOCKHOLM"):
        return path.stem, _stockholm(text), False
    rows = _fasta(text, path)
    return path.stem, rows, len({len(row) for row in rows}) > 1


def _text(source) -> str:
    try:
        return Path(source).read_text("ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{source}: cannot be read as text ({error})") from error


def _stockholm(text: str) -> list[str]:
    """Rows of the first alignment; blocks of one name are joined."""
    rows: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("//"):
            break
        if line.strip() and not line.startswith("#"):
            name, *parts = line.split()
            rows.setdefault(name, []).extend(parts)
    return ["".join(parts) for parts in rows.values()]


def _fasta(text: str, path) -> list[str]:
    rows: list[list[str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(">"):
            rows.append([])
        elif line.strip() and not line.startswith("#"):
            if not rows:
                raise InputError(f"{path}, line {number}: no header before it")
            rows[-1].append("".join(line.split()))
    return ["".join(parts) for parts in rows]


def hmm(source) -> tuple[str, np.ndarray, np.ndarray]:
    """(name, -ln of match emissions (m, 20), -ln of transitions behind each position
    (m, 7)) of the first model of a HMMER3 file."""
    lines = _text(source).splitlines()
    if not lines or not lines[0].startswith("HMMER3"):
        raise InputError(f"{source}: no HMMER3 text file")
    fields = dict(_field(line) for line in lines[1:] if line[:1].isalpha())
    begin = next((k for k, line in enumerate(lines) if line.startswith("HMM ")), None)
    if begin is None or fields.get("ALPH", "").lower() != "amino":
        raise InputError(f"{source}: no model of proteins")
    rows = [line.split() for line in lines[begin + 2 :]]
    end = next((k for k, row in enumerate(rows) if row[:1] == ["//"]), len(rows))
    rows = rows[:end]
    rows = rows[1:] if rows and rows[0][:1] == ["COMPO"] else rows
    rows = rows[2:]  # insert emissions and transitions before the first position
    try:
        emissions = [_numbers(row[1 : 1 + LETTERS], LETTERS) for row in rows[::3]]
        moves = [_numbers(row[:MOVES], MOVES) for row in rows[2::3]]
    except ValueError as error:
        raise InputError(f"{source}: {error}") from None
    if not emissions or len(moves) != len(emissions):
        raise InputError(f"{source}: the model is cut short")
    return fields.get("NAME", "model"), np.array(emissions), np.array(moves)


def _field(line: str) -> tuple[str, str]:
    name, _, value = line.partition(" ")
    return name, value.strip()


def _numbers(words: list[str], count: int) -> list[float]:
    if len(words) != count:
        raise ValueError(f"a line of {len(words)} numbers, where {count} are needed")
    return [np.inf if word == "*" else float(word) for word in words]
