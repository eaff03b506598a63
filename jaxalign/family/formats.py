"""Files of an alignment: a3m, Stockholm, a HMMER3 model, and a matrix of PSI-BLAST."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from jaxalign.errors import UsageError
from jaxalign.family import hmm_text, stockholm_text
from jaxalign.io import output
from jaxalign.model.names import written
from jaxalign.model.profile import Profile
from jaxalign.model.scoring import Scoring

RESIDUES = 20


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
    return stockholm_text.lines(_different_names(text), text.rows)


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
    return hmm_text.lines(name, text.profile, *costs, len(text.rows))


def pssm(text: AlignedText) -> Iterator[str]:
    """The scores as PSI-BLAST's ``-out_ascii_pssm`` has them: place, letter of the
    query, and the 20 scores."""
    letters = text.profile.alphabet.letters[:RESIDUES]
    yield "\nLast position-specific scoring matrix computed\n"
    yield " " * 11 + "".join(f"{letter:>4}" for letter in letters) + "\n"
    scores = text.profile.scores[:, :RESIDUES].tolist()
    for k, (letter, row) in enumerate(zip(text.rows[0], scores, strict=True), 1):
        yield f"{k:5d} {letter}    " + "".join(f"{x:4d}" for x in row) + "\n"


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
