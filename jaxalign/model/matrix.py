"""Substitution matrices: by name, from an NCBI-format file, or as an array.

A matrix is (letters, float array); rows are the query's letters.
"""

from functools import cache
from pathlib import Path

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.model.alphabet import DNA, PROTEIN

ALIASES = {"EDNAFULL": "NUC", "DNAFULL": "NUC", "NUC.4.4": "NUC"}


@cache
def matrix_names() -> tuple[str, ...]:
    """The names of all bundled matrices (biotite's), sorted."""
    from biotite.sequence.align import SubstitutionMatrix

    return tuple(sorted(SubstitutionMatrix.list_db()))


@cache
def plain_name(name: str) -> str:
    """The name of a bundled matrix without EMBOSS's E, as biotite spells it; any other
    name as it is."""
    plain = name[1:] if name.upper().startswith(("EBLOSUM", "EPAM")) else name
    plain = ALIASES.get(plain.upper(), plain)
    by_upper = {known.upper(): known for known in matrix_names()}
    return by_upper.get(plain.upper(), name)


@cache
def load(name: str) -> tuple[str, np.ndarray]:
    """A bundled matrix by any of its names, else an NCBI-format file.

    Raises
    ------
    UsageError
        Neither a bundled name nor a readable matrix file.
    """
    if (plain := plain_name(name)) in matrix_names():
        return _from_biotite(plain)
    if Path(name).is_file():
        return parse(Path(name).read_text(), name)
    if Path(name).is_dir():
        raise UsageError(f"matrix {name} is a folder")
    raise UsageError(
        f"unknown matrix {name!r}: neither a file nor one of the "
        f"{len(matrix_names())} bundled matrices (`jaxalign matrices` lists them)"
    )


def _from_biotite(name: str):
    from biotite.sequence.align import SubstitutionMatrix

    scores = SubstitutionMatrix.dict_from_db(name)
    return canonical("".join(dict.fromkeys(a for a, _ in scores)), scores)


def canonical(letters: str, scores: dict):
    """Fix letters and their order, whatever the source (biotite 2 added J)."""
    for ours in (PROTEIN, DNA):
        if set(ours) <= set(letters) and set(letters) - set(ours) <= {"J"}:
            letters = ours
    table = [[float(scores[a, b]) for b in letters] for a in letters]
    return letters, np.array(table)


def parse(text: str, name: str):
    """NCBI/EMBOSS matrix text -> (letters, array).

    Raises
    ------
    UsageError
        The text is no square matrix of numbers with the same letters on both sides.
    """
    lines = [(k, line.split()) for k, line in enumerate(text.splitlines(), 1)]
    lines = [(k, words) for k, words in lines if words and words[0][0] != "#"]
    if len(lines) < 2:
        raise UsageError(f"matrix {name}: no header line and rows")
    (top, header), *rows = lines
    for letter in header:
        if len(letter) != 1:
            raise UsageError(f"{name}, line {top}: {letter!r} is no single letter")
    pairs = {}
    for k, (letter, *values) in rows:
        where = f"{name}, line {k}: row {letter!r}"
        if letter not in header:
            raise UsageError(f"{where} is no letter of the header, line {top}")
        if len(values) != len(header):
            raise UsageError(f"{where} has {len(values)} scores of {len(header)}")
        pairs |= {
            (letter, other): _number(value, f"{where}, column {other!r}")
            for other, value in zip(header, values, strict=True)
        }
    missing = [letter for letter in header if (letter, letter) not in pairs]
    if missing:
        raise UsageError(f"matrix {name}: no row for {missing[0]!r}")
    return canonical("".join(header), pairs)


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{where}: {text!r} is no number") from None
