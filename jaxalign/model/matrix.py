"""Substitution matrices: by name, from an NCBI-format file, or as an array.

A matrix is (letters, float array); rows are the query's letters.
"""

import os
import re
from functools import cache
from importlib.util import find_spec
from math import isfinite
from pathlib import Path

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.model.alphabet import DNA, PROTEIN, check_letters

ALIASES = {"EDNAFULL": "NUC", "DNAFULL": "NUC", "NUC.4.4": "NUC"}
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
MAX_FILE_BYTES = 2**22  # of a matrix of all letters there are, a tenth would do


@cache
def matrix_names() -> tuple[str, ...]:
    """The names of all bundled matrices (biotite's), sorted."""
    if folder := _matrix_folder():
        return tuple(sorted(path.stem for path in folder.glob("*.mat")))
    from biotite.sequence.align import SubstitutionMatrix

    return tuple(sorted(SubstitutionMatrix.list_db()))


@cache
def _matrix_folder() -> Path | None:
    """Where biotite has its matrices; importing it to read one takes half a second."""
    spec = find_spec("biotite")
    places = (spec and spec.submodule_search_locations) or []
    folders = (Path(place) / "sequence/align/matrix_data" for place in places)
    return next((folder for folder in folders if folder.is_dir()), None)


@cache
def plain_name(name: str) -> str:
    """The name of a bundled matrix without EMBOSS's E, as biotite spells it; any other
    name as it is."""
    plain = name[1:] if name.upper().startswith(("EBLOSUM", "EPAM")) else name
    plain = ALIASES.get(plain.upper(), plain)
    by_upper = {known.upper(): known for known in matrix_names()}
    return by_upper.get(plain.upper(), name)


def load(name: str) -> tuple[str, np.ndarray]:
    """A bundled matrix by any of its names, else an NCBI-format file.

    A file is read anew at every call: it may have changed, and so may the folder that
    its name is relative to.

    Raises
    ------
    UsageError
        Neither a bundled name nor a readable matrix file.
    """
    if (plain := plain_name(name)) in matrix_names():
        return _from_biotite(plain)
    if os.path.isfile(name):
        return parse(_text(name), name)
    if os.path.isdir(name):
        raise UsageError(f"matrix {name} is a folder")
    raise UsageError(
        f"unknown matrix {name[:60]!r}: neither a file nor one of the "
        f"{len(matrix_names())} bundled matrices (`jaxalign matrices` lists them)"
    )


def _text(name: str) -> str:
    """The text of a matrix file; what is no ASCII stays visible, for messages."""
    try:
        with open(name, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"matrix {name}: cannot be read ({error.strerror})") from error
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"matrix {name}: larger than {MAX_FILE_BYTES} bytes")
    if b"\0" in data:
        line = data[: data.index(0)].count(b"\n") + 1
        raise UsageError(f"{name}, line {line}: a zero byte; a matrix file is text")
    return data.decode("utf-8-sig", "replace")


@cache
def _from_biotite(name: str):
    if folder := _matrix_folder():
        scores = _scores_of((folder / f"{name}.mat").read_text())
    else:
        from biotite.sequence.align import SubstitutionMatrix

        scores = SubstitutionMatrix.dict_from_db(name)
    return canonical("".join(dict.fromkeys(a for a, _ in scores)), scores)


def _scores_of(text: str) -> dict:
    """Scores by letters as biotite has them, which reads the columns as rows."""
    rows = [line.split() for line in text.splitlines() if line.strip()]
    header, *rows = (row for row in rows if row[0][0] != "#")
    by_column = zip(*(row[1:] for row in rows), strict=True)
    return {
        (row[0], letter): int(value)
        for row, values in zip(rows, by_column, strict=True)
        for letter, value in zip(header, values, strict=True)
    }


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
        The text is no square matrix of finite numbers with the same letters, each once,
        on both sides. The message names file and line.
    """
    # Not splitlines, which ends lines at signs that no editor counts.
    lines = enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1)
    rows = [(line, words) for line, row in lines if (words := row.split())]
    rows = [(line, words) for line, words in rows if words[0][0] != "#"]
    if len(rows) < 2:
        raise UsageError(f"matrix {name}: no header line and rows")
    (top, header), *rows = rows
    _check_header(header, f"{name}, line {top}")
    scores, lines_of = {}, {}
    for line, (letter, *values) in rows:
        where = f"{name}, line {line}: row {letter!r}"
        if letter not in header:
            raise UsageError(f"{where} is no letter of the header, line {top}")
        if letter in lines_of:
            raise UsageError(f"{where} stands in line {lines_of[letter]} already")
        if len(values) != len(header):
            raise UsageError(f"{where} has {len(values)} scores of {len(header)}")
        lines_of[letter] = line
        for other, value in zip(header, values, strict=True):
            scores[letter, other] = _number(value, f"{where}, column {other!r}")
    missing = [letter for letter in header if letter not in lines_of]
    if missing:
        raise UsageError(f"matrix {name}: no row for {missing[0]!r}, line {top}")
    return canonical("".join(header), scores)


def _check_header(header: list[str], where: str) -> None:
    for letter in header:
        if len(letter) != 1:
            raise UsageError(f"{where}: {letter[:20]!r} is no single letter")
    try:
        check_letters("".join(header))
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def _number(text: str, where: str) -> float:
    """Digits as everybody writes them: ``float`` would take 1_0, nan and others."""
    if not NUMBER.fullmatch(text):
        raise UsageError(f"{where}: {text[:20]!r} is no number")
    if not isfinite(value := float(text)):
        raise UsageError(f"{where}: {text[:20]!r} is no finite number")
    return value
