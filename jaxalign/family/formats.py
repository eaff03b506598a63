"""Files of an alignment: a3m, Stockholm, a HMMER3 model, and a matrix of PSI-BLAST."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import exp, log
from typing import NamedTuple

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.io import output
from jaxalign.model.names import written
from jaxalign.model.profile import Profile
from jaxalign.model.profile_counts import FREQUENCIES, RESIDUES
from jaxalign.model.scoring import Scoring

ORDER = [RESIDUES.index(letter) for letter in sorted(RESIDUES)]  # HMMER's
HEADING = ("m->m", "m->i", "m->d", "i->m", "i->i", "d->m", "d->d")
# Of a gap without cost for its further residues: a model needs an end of it.
MOST_EXTENDED = 0.999
POSITION = re.compile("[A-Z-]")  # of a row of a3m


class AlignedText(NamedTuple):
    """An alignment and its profile, as the writers need them.

    Attributes
    ----------
    names : of the rows, the query's first
    headings : the same, and of hits where they lie, E-values and bits
    spans : (first, last) residue of each row, counted from 1
    rows : of a3m
    profile, scoring : of the hits, and the gap costs
    """

    names: Sequence[str]
    headings: Sequence[str]
    spans: Sequence[tuple[int, int]]
    rows: Sequence[str]
    profile: Profile
    scoring: Scoring


def a3m(text: AlignedText) -> Iterator[str]:
    """A heading and one line for each row: Boltz reads a row from one line."""
    for heading, row in zip(text.headings, text.rows, strict=True):
        yield f">{written(heading)}\n{row}\n"


def stockholm(text: AlignedText) -> Iterator[str]:
    """All columns, those of insertions padded with points; names end in their span."""
    return _columns(_different_names(text), text.rows)


def _different_names(text: AlignedText) -> list[str]:
    """One word each; a name that comes again, as the query's in the database, is
    numbered, since readers join rows of one name."""
    times, names = Counter(), []
    for name, (first, last) in zip(text.names, text.spans, strict=True):
        word = "_".join(written(name).split()) or "_"
        times[word] += 1
        number = f"_{times[word]}" if times[word] > 1 else ""
        names.append(f"{word}{number}/{first}-{last}")
    return names


def hmm(text: AlignedText) -> Iterator[str]:
    """A HMMER3 model: emissions of the profile, and the same gap costs everywhere."""
    name = "_".join(written(text.names[0]).split()) or "_"
    costs = text.scoring.gap_open, text.scoring.gap_extend
    return _model(name, text.profile, *costs, len(text.rows))


def pssm(text: AlignedText) -> Iterator[str]:
    """The scores as PSI-BLAST's ``-out_ascii_pssm`` has them: place, letter of the
    query, and the 20 scores."""
    letters = text.profile.alphabet.letters[: len(RESIDUES)]
    yield "\nLast position-specific scoring matrix computed\n"
    yield " " * 11 + "".join(f"{letter:>4}" for letter in letters) + "\n"
    scores = text.profile.scores[:, : len(RESIDUES)].tolist()
    for k, (letter, row) in enumerate(zip(text.rows[0], scores, strict=True), 1):
        yield f"{k:5d} {letter}    " + "".join(f"{x:4d}" for x in row) + "\n"


def _columns(names: Sequence[str], rows: Sequence[str]) -> Iterator[str]:
    """Rows of a3m as a Stockholm alignment, line by line: every residue has a column,
    and ``#=GC RF`` marks the positions of the query."""
    widths = _widths(rows)
    longest = max(len("#=GC RF"), *map(len, names))
    yield "# STOCKHOLM 1.0\n\n"
    for name, row in zip(names, rows, strict=True):
        yield f"{name:{longest}} {_padded(row, widths)}\n"
    marks = "x".join("." * width for width in widths)
    yield f"{'#=GC RF':{longest}} {marks}\n//\n"


def _widths(rows: Sequence[str]) -> list[int]:
    """The longest insertion before each position, and behind the last."""
    each = ([len(part) for part in POSITION.split(row)] for row in rows)
    return [max(lengths) for lengths in zip(*each, strict=True)]


def _padded(row: str, widths: list[int]) -> str:
    """A row with points where others have more residues between positions."""
    inserted = POSITION.split(row)
    pieces = [part.ljust(width, ".") for part, width in zip(inserted, widths)]  # noqa: B905
    positions = [*POSITION.findall(row), ""]
    return "".join(a + b for a, b in zip(pieces, positions, strict=True))


def _model(
    name: str, profile: Profile, gap_open: float, gap_extend: float, rows: int
) -> Iterator[str]:
    """A HMMER3 text file, line by line; costs are those of the profile's unit.

    Emissions are P_a exp(unit s_a). With gaps of ``open`` and ``extend`` nats, ends of
    the costs that ``Profile.from_hmm`` reads back:

        d = exp(-extend) from D to D,  x = exp(-open) / (1 - d),  M to M 1 / (1 + 2 x),
        M to D, and M to I, x / (1 + 2 x).
    """
    yield "HMMER3/f [jaxalign]\n"
    yield f"NAME  {name}\nLENG  {len(profile)}\nALPH  amino\nRF    no\nMM    no\n"
    yield f"CONS  yes\nCS    no\nMAP   no\nNSEQ  {rows}\n"
    yield f"HMM     {_words(sorted(RESIDUES))}\n        {_words(HEADING)}\n"
    moves = transitions(gap_open * profile.unit, gap_extend * profile.unit)
    background = _numbers(FREQUENCIES[ORDER])
    yield f"        {background}\n        {_numbers(_first(moves))}\n"
    for k, row in enumerate(_emissions(profile), 1):
        letter = profile.consensus[k - 1].lower()
        yield f"{k:7d} {_numbers(row)} - {letter} - - -\n        {background}\n"
        last = k == len(profile)
        yield f"        {_numbers(_last(moves) if last else moves)}\n"
    yield "//\n"


def transitions(opening: float, extending: float) -> list[float]:
    """Probabilities from M to M, I and D, from I to M and I, from D to M and D."""
    more = min(exp(-extending), MOST_EXTENDED)
    x = exp(-opening) / (1 - more)
    whole = 1 + 2 * x
    return [1 / whole, x / whole, x / whole, 1 - more, more, 1 - more, more]


def _first(moves: list[float]) -> list[float]:
    """Before the first position there is no deletion to come from."""
    return [*moves[:5], 1.0, 0.0]


def _last(moves: list[float]) -> list[float]:
    """Behind the last position no deletion begins."""
    match, insert = moves[:2]
    total = match + insert
    return [match / total, insert / total, 0.0, *moves[3:5], 1.0, 0.0]


def _emissions(profile: Profile) -> np.ndarray:
    """(m, 20), in HMMER's order of letters."""
    odds = np.exp(profile.unit * profile.scores[:, : len(RESIDUES)])
    emitted = odds * FREQUENCIES
    return (emitted / emitted.sum(1, keepdims=True))[:, ORDER]


def _words(words: Iterable[str]) -> str:
    return " ".join(f"{word:>8}" for word in words)


def _numbers(probabilities: Iterable[float]) -> str:
    """-ln of each, * of 0."""
    return _words(f"{abs(log(p)):.5f}" if p > 0 else "*" for p in probabilities)


SUFFIXES = {".a3m": "a3m", ".sto": "stockholm", ".hmm": "hmm", ".pssm": "pssm"}
WRITERS: dict[str, Callable[[AlignedText], Iterator[str]]] = {
    "a3m": a3m,
    "stockholm": stockholm,
    "hmm": hmm,
    "pssm": pssm,
}


def format_of(path: str, format: str | None) -> str:
    """The format of a file by its suffix, if none is named; of standard output a3m.

    Raises
    ------
    UsageError
    """
    named = format or next((x for end, x in SUFFIXES.items() if path.endswith(end)), "")
    if not named and path == output.STDOUT:
        return "a3m"
    if named not in WRITERS:
        known, ends = ", ".join(WRITERS), ", ".join(SUFFIXES)
        raise UsageError(
            f"{path}: format {named!r}: one of {known}, or a suffix of {ends}"
        )
    return named


def write(text: AlignedText, path: str, format: str | None, force: bool) -> None:
    """Write a file, whole or not at all."""
    writer = WRITERS[format_of(path, format)]
    output.check(path, force)
    output.write_text(path, writer(text))
