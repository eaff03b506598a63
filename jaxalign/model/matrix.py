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
def load(name: str) -> tuple[str, np.ndarray]:
    """A bundled matrix by any of its names, else an NCBI-format file.

    Raises
    ------
    UsageError
        Neither a bundled name nor a readable matrix file.
    """
    plain = name[1:] if name.upper().startswith(("EBLOSUM", "EPAM")) else name
    plain = ALIASES.get(plain.upper(), plain)
    by_upper = {known.upper(): known for known in matrix_names()}
    if plain.upper() in by_upper:
        return _from_biotite(by_upper[plain.upper()])
    if Path(name).is_file():
        return parse(Path(name).read_text(), name)
    raise UsageError(
        f"unknown matrix {name!r}: neither a file nor one of the "
        f"{len(by_upper)} bundled matrices (`jaxalign matrices` lists them)"
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
    lines = [line.split() for line in text.splitlines()]
    lines = [words for words in lines if words and not words[0].startswith("#")]
    if len(lines) < 2:
        raise UsageError(f"matrix {name}: no header line and rows")
    header, rows = lines[0], lines[1:]
    if sorted(header) != sorted(words[0] for words in rows):
        raise UsageError(f"matrix {name}: row and column letters differ")
    if any(len(letter) != 1 for letter in header):
        raise UsageError(f"matrix {name}: a letter is one character")
    if any(len(words) != len(header) + 1 for words in rows):
        raise UsageError(f"matrix {name}: every row needs {len(header)} scores")
    try:
        pairs = {(w[0], b): float(v) for w in rows for b, v in zip(header, w[1:])}  # noqa: B905
    except ValueError as error:
        raise UsageError(f"matrix {name}: {error}") from None
    return canonical("".join(header), pairs)
