"""Scoring: matrix and gap costs, the one place where conventions convert.

A substitution matrix comes by name, from an NCBI-format file, or as an array. Here it
is (letters, float array), and rows are the query's letters.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from importlib.util import find_spec
from math import isfinite, lcm, log
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from jaxalign.errors import InputError, UsageError, nearest_word
from jaxalign.model.alphabet import (
    DNA,
    NUCLEIC,
    PROTEIN,
    STATES,
    TRACK,
    Alphabet,
    CodedSequences,
    check_letters,
    named_alphabet,
)
from jaxalign.model.choices import FreeEnd, Identity, Mode
from jaxalign.model.numbers import is_number
from jaxalign.model.source import open_bytes

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
    """Normalise the name of a bundled matrix to biotite's spelling, without EMBOSS's E;
    other names are unchanged."""
    plain = name[1:] if name.upper().startswith(("EBLOSUM", "EPAM")) else name
    plain = ALIASES.get(plain.upper(), plain)
    by_upper = {spelling.upper(): spelling for spelling in matrix_names()}
    return by_upper.get(plain.upper(), name)


def load_matrix(name: str) -> tuple[str, np.ndarray]:
    """Load a bundled matrix by any of its names, else an NCBI-format file.

    A file is read anew at every call: it may have changed, and so may the folder that
    its name is relative to.
    """
    if (plain := plain_name(name)) in matrix_names():
        return _from_biotite(plain)
    if os.path.exists(name) and not os.path.isdir(name):
        try:
            with open_bytes(name) as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except InputError as error:
            raise UsageError(f"matrix {error}") from error
        if len(data) > MAX_FILE_BYTES:
            raise UsageError(f"matrix {name}: larger than {MAX_FILE_BYTES} bytes")
        if b"\0" in data:
            line = data[: data.index(0)].count(b"\n") + 1
            raise UsageError(f"{name}, line {line}: a zero byte; a matrix file is text")
        # What is no ASCII stays visible, for messages.
        return parse_matrix(data.decode("utf-8-sig", "replace"), name)
    if os.path.isdir(name):
        raise UsageError(f"matrix {name} is a folder")
    usual = ("BLOSUM62",)
    words = usual if usual[0].startswith(plain.upper()) else usual + matrix_names()
    meant = nearest_word(plain.upper(), words)
    raise UsageError(
        f"unknown matrix {name[:60]!r}: neither a file nor one of the "
        f"{len(matrix_names())} bundled matrices (`jaxalign matrices` lists them)"
        + (f"; did you mean {meant}?" if meant else "")
    )


@cache
def _from_biotite(name: str):
    if folder := _matrix_folder():
        text = (folder / f"{name}.mat").read_text()
        rows = [line.split() for line in text.splitlines() if line.strip()]
        header, *rows = (row for row in rows if row[0][0] != "#")
        by_column = zip(*(row[1:] for row in rows), strict=True)
        scores = {  # as biotite has them, which reads the columns as rows
            (row[0], letter): int(value)
            for row, values in zip(rows, by_column, strict=True)
            for letter, value in zip(header, values, strict=True)
        }
    else:
        from biotite.sequence.align import SubstitutionMatrix

        scores = SubstitutionMatrix.dict_from_db(name)
    return canonical("".join(dict.fromkeys(a for a, _ in scores)), scores)


def canonical(letters: str, scores: dict):
    """Fix letters and their order, whatever the source (biotite 2 added J)."""
    for ours in (PROTEIN, DNA):
        if set(ours) <= set(letters) and set(letters) - set(ours) <= {"J"}:
            letters = ours
    if letters == STATES[:-1]:  # an unknown state scores 0, as in Foldseek
        letters = STATES
        scores = {(a, b): 0 for a in letters for b in letters} | scores
    table = [[float(scores[a, b]) for b in letters] for a in letters]
    return letters, np.array(table)


def parse_matrix(text: str, name: str):
    """NCBI/EMBOSS matrix text -> (letters, array)."""
    # Not splitlines, which ends lines at signs that no editor counts.
    lines = enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1)
    rows = [(line, words) for line, row in lines if (words := row.split())]
    rows = [(line, words) for line, words in rows if words[0][0] != "#"]
    if len(rows) < 2:
        raise UsageError(f"matrix {name}: no header line and rows")
    (top, header), *rows = rows
    try:
        for letter in header:
            if len(letter) != 1:
                raise UsageError(f"{letter[:20]!r} is not a single letter")
        check_letters("".join(header))
    except UsageError as error:
        raise UsageError(f"{name}, line {top}: {error}") from None
    scores, lines_of = {}, {}
    for line, (letter, *values) in rows:
        where = f"{name}, line {line}: row {letter!r}"
        if letter not in header:
            raise UsageError(f"{where} is not a letter of the header, line {top}")
        if letter in lines_of:
            raise UsageError(f"{where} is in line {lines_of[letter]} already")
        if len(values) != len(header):
            raise UsageError(f"{where} has {len(values)} scores of {len(header)}")
        lines_of[letter] = line
        for column, value in zip(header, values, strict=True):
            # ``float`` would take 1_0, nan and others.
            if not NUMBER.fullmatch(value) or not isfinite(float(value)):
                kind = "finite number" if NUMBER.fullmatch(value) else "number"
                place = f"{where}, column {column!r}"
                raise UsageError(f"{place}: {value[:20]!r} is not a {kind}")
            scores[letter, column] = float(value)
    missing = [letter for letter in header if letter not in lines_of]
    if missing:
        raise UsageError(f"matrix {name}: no row for {missing[0]!r}, line {top}")
    return canonical("".join(header), scores)


KINDS = ("protein", *NUCLEIC)
COST_LIMIT = 2**15  # of a gap's residue


def own_matrix(matrix: Any):
    """Copy a (letters, array) matrix into a read-only array; a name is unchanged."""
    if isinstance(matrix, str) or is_profile(matrix) or not _is_pair(matrix):
        return matrix
    letters, scores = matrix
    try:
        letters = "".join(letters)
        scores = np.array(scores)
    except (TypeError, ValueError) as error:
        raise UsageError(f"matrix=(letters, array) cannot be read: {error}") from error
    scores.setflags(write=False)
    return letters, scores


def own_tracks(
    tracks: Any, matrix: Any, match: Any, letters: Any
) -> tuple[tuple[str, Any, float], ...]:
    """Check the two tracks of a scoring, and copy their arrays.

    Raises UsageError: they are not two of (alphabet, matrix, weight), or a matrix or an
    alphabet stands beside them.
    """
    if matrix not in ("BLOSUM62", None) or (match, letters) != (None, None):
        raise UsageError("tracks have matrices and alphabets of their own")
    form = "tracks: two of (alphabet, matrix, weight) are needed"
    if not isinstance(tracks, (tuple, list)) or len(tracks) != 2:
        raise UsageError(form)
    owned = []
    for track in tracks:
        if not isinstance(track, (tuple, list)) or len(track) != 3:
            raise UsageError(form)
        kind, matrix, weight = track
        if not (is_number(weight) and isfinite(weight)):
            raise UsageError(f"weight = {weight!r} of {kind}: not a finite number")
        scoring = Scoring(matrix)  # which checks it
        alphabet = named_alphabet(kind)
        if scoring.by_position or scoring.alphabet.letters != alphabet.letters:
            raise UsageError(
                f"the letters of {scoring.matrix_name} are not those of {kind}"
            )
        owned.append((kind, own_matrix(matrix), weight))
    return tuple(owned)


def _weighted(track: tuple[str, Any, float]) -> tuple[str, np.ndarray]:
    """(name, scores times the weight) of a track, in decimal fractions."""
    kind, matrix, weight = track
    name, _, scores = Scoring(matrix)._named
    name = name if isinstance(matrix, str) else kind
    factor = Fraction(str(weight))
    exact = [[float(Fraction(str(x)) * factor) for x in row] for row in scores.tolist()]
    return (name if weight == 1 else f"{weight:g}*{name}"), np.array(exact)


def is_profile(matrix: Any) -> bool:
    """Whether it is a ``model.profile.Profile``, whose file imports this one's."""
    return hasattr(matrix, "consensus")


def _is_pair(matrix: Any) -> bool:
    return isinstance(matrix, (tuple, list)) and len(matrix) == 2


def check_scoring(scoring: Any) -> None:
    """Check the fields of a ``Scoring``, whose docstring says what they may be."""
    if (scoring.match is None) != (scoring.mismatch is None):
        raise UsageError("match and mismatch are needed together")
    for name in ("gap_open", "gap_extend") if scoring.gap_costs is None else ():
        value = getattr(scoring, name)
        if not (is_number(value) and 0 <= value < COST_LIMIT):
            raise UsageError(
                f"{name} = {value!r}: a cost must be a number from 0 to below "
                f"{COST_LIMIT}"
            )
    if scoring.gap_costs is None and scoring.gap_extend > scoring.gap_open:
        raise UsageError(
            f"gap_extend = {scoring.gap_extend:g} exceeds gap_open = "
            f"{scoring.gap_open:g}: extending may not cost more than opening; set "
            f"gap_extend to at most {scoring.gap_open:g}"
        )
    named = isinstance(scoring.matrix, str) or is_profile(scoring.matrix)
    named |= scoring.tracks is not None
    if scoring.match is None and not named:
        if not _is_pair(scoring.matrix):
            raise UsageError("an array needs its letters: matrix=(letters, array)")
        letters, scores = scoring.matrix
        if np.asarray(scores).dtype.kind not in "biuf":
            raise UsageError(
                f"matrix of {np.asarray(scores).dtype}: numbers are needed"
            )
        if np.shape(scores) != (len(letters), len(letters)):
            raise UsageError(
                f"matrix of shape {np.shape(scores)} for {len(letters)} letters"
            )
        check_letters(letters)
        if not np.isfinite(scores).all():
            raise UsageError("matrix scores must be finite")
    for name in ("match", "mismatch"):
        value = getattr(scoring, name)
        if value is not None and not (is_number(value) and np.isfinite(value)):
            raise UsageError(f"{name} = {value!r}: not a number")
    # Load the matrix, name its letters and scale it: what is wrong shows here.
    _ = scoring.scores
    name, letters = scoring.alphabet_name, scoring.alphabet
    as_rna = name == "rna" and "U" not in letters.letters  # which has no T for U
    if name in KINDS and letters.kind != name and (letters.kind in KINDS or as_rna):
        hint = "; the preset blastn scores nucleotides" if name in NUCLEIC else ""
        raise UsageError(
            f"alphabet = {name!r}: the letters of {scoring.matrix_name} are "
            f"{letters.kind}{hint}"
        )


MODES: tuple[str, ...] = get_args(Mode)
FREE_ENDS: tuple[str, ...] = get_args(FreeEnd)
# Scores are scaled to integers; a fraction finer than this is refused, not rounded.
MAX_SCALE = 1000


def _usual_gaps(
    matrix: Any, match: float | None, letters: str | None
) -> tuple[int, int]:
    """(gap_open, gap_extend) where none are named: of nucleotides without a matrix
    those of blastn, of 3Di those of Foldseek."""
    if match is None and isinstance(matrix, str) and plain_name(matrix) == "3Di":
        return 10, 1
    plain = match is not None and named_alphabet(letters or "dna")
    return (7, 2) if plain and plain.kind in NUCLEIC else (11, 1)


class PositionCosts(NamedTuple):
    """Costs by position of a profile, whole numbers: int32 (m,) each.

    ``e`` is a gap that skips the position, ``f`` one of target residues behind it. A
    gap of several positions has the ``open_e`` of its first and the ``extend_e`` of the
    others; between two pairs the skipped positions come first, as in
    ``hard_alignment``, so a gap ``f`` stands behind the last of them.
    """

    open_e: np.ndarray
    extend_e: np.ndarray
    open_f: np.ndarray
    extend_f: np.ndarray


@dataclass(frozen=True, eq=False)
class Scoring:
    """A substitution matrix and the cost of gaps.

    A gap of k residues costs ``gap_open + (k - 1) * gap_extend``, as in EMBOSS,
    parasail, biotite and the 2011 gpu-pairalign paper; ``Scoring.blast`` takes BLAST's
    numbers. Fractions such as EMBOSS's 10/0.5 are exact: scores are scaled to integers.

    A scoring is a value: two that score alike are equal and have the same hash, and
    ``dataclasses.replace(scoring, gap_open=5)`` makes another. An array is copied.

    Parameters
    ----------
    matrix : str or (letters, array)
        A bundled name (``jaxalign matrices``), a file in NCBI's format, or letters and
        a square array whose rows are the query's letters. In results of a profile it is
        the ``Profile``, whose rows are the query's positions.
    gap_open, gap_extend : int or float, optional
        Costs of the first and of each further residue of a gap, with ``0 <= gap_extend
        <= gap_open``. By default 11 and 1, or 7 and 2 (BLAST's 5 + 2k) for nucleotides
        scored by ``match`` and ``mismatch``, or 10 and 1 (Foldseek's) for ``3Di``. Of a
        ``Profile`` with costs of its own they are these, rounded to whole numbers, and
        both are None; local alignments alone take them.
    match, mismatch : int or float, optional
        Scores instead of a matrix. The wildcard scores ``mismatch`` against everything.
    alphabet : str, optional
        ``protein``, ``dna``, ``rna`` or the letters; ``dna`` by default with match and
        mismatch. ``rna`` reads a DNA matrix with U for T, and T as U.
    tracks : two of (alphabet, matrix, weight), optional
        In place of a matrix: residues have two letters, such as an amino acid and a 3Di
        state, and the score of a pair is the sum of both matrices, each times its
        weight. Identities are those of the first track.

    Raises
    ------
    UsageError
        If the matrix is unknown, a gap cost is negative, gap_extend > gap_open, a
        number has a fraction finer than 1/1000, or ``alphabet`` does not fit the
        matrix.

    Examples
    --------
    >>> print(Scoring())
    BLOSUM62, gap(k) = 11 + 1*(k-1)
    >>> print(Scoring.blast(11, 1))
    BLOSUM62, gap(k) = 12 + 1*(k-1)
    >>> print(Scoring(match=2, mismatch=-3))
    match 2 / mismatch -3, gap(k) = 7 + 2*(k-1)
    >>> Scoring("EBLOSUM62", 11.0) == Scoring()
    True
    """

    matrix: Any = "BLOSUM62"  # a name, a file, or (letters, array)
    gap_open: Any = 11  # a number, or None of costs by position
    gap_extend: Any = 1
    match: float | None = None
    mismatch: float | None = None
    alphabet_name: str | None = None
    tracks: tuple[tuple[str, Any, float], ...] | None = None

    def __init__(
        self,
        matrix: Any = "BLOSUM62",
        gap_open: float | None = None,
        gap_extend: float | None = None,
        *,
        match: float | None = None,
        mismatch: float | None = None,
        alphabet: str | None = None,
        alphabet_name: str | None = None,  # which ``dataclasses.replace`` gives
        tracks: Sequence[tuple[str, Any, float]] | None = None,
    ):
        letters = alphabet_name if alphabet is None else alphabet
        by_position = is_profile(matrix) and matrix.gap_open is not None
        if not (by_position and gap_open is gap_extend is None):
            usual_open, usual_extend = _usual_gaps(matrix, match, letters)
            gap_open = usual_open if gap_open is None else gap_open
            gap_extend = usual_extend if gap_extend is None else gap_extend
        if tracks is not None:
            tracks, matrix = own_tracks(tracks, matrix, match, letters), None
        values = own_matrix(matrix), gap_open, gap_extend, match, mismatch, letters
        values = *values, tracks
        for name, value in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, name, value)
        check_scoring(self)

    @classmethod
    def blast(
        cls,
        gap_open: float | None = None,
        gap_extend: float | None = None,
        matrix: Any = "BLOSUM62",
        **options: Any,
    ):
        """Make a scoring from BLAST's ``gap_open`` and ``gap_extend``, where a gap of k
        costs gap_open + k * gap_extend.

        By default they are 11 and 1, or 5 and 2 for nucleotides scored by ``match`` and
        ``mismatch``. ``matrix`` and other ``options`` are those of ``Scoring``.
        """
        usual = cls(matrix, **options)
        extend = usual.gap_extend if gap_extend is None else gap_extend
        if gap_open is None:
            nucleic = usual.match is not None and usual.alphabet.kind in NUCLEIC
            gap_open = 5 if nucleic else 11
        return cls(matrix, gap_open + extend, extend, **options)

    @classmethod
    def preset(cls, name: str) -> "Scoring":
        """Return the scoring of the preset ``name`` (``PRESET_NAMES``)."""
        return preset(name).scoring

    @cached_property
    def _named(self):
        """(name, letters, float matrix); of two tracks (2, size, size)."""
        if self.tracks is not None:
            names, parts = zip(*map(_weighted, self.tracks), strict=True)
            size = max(map(len, parts))
            wide = [np.pad(x, (0, size - len(x))) for x in parts]
            letters = named_alphabet(self.tracks[0][0]).letters
            return " + ".join(names), letters, np.stack(wide)
        if self.match is not None and self.mismatch is not None:
            alphabet = named_alphabet(self.alphabet_name or "dna")
            same = np.eye(alphabet.size, dtype=bool)
            if alphabet.wildcard is not None:
                same[alphabet.wildcard_code, alphabet.wildcard_code] = False
            scores = np.where(same, float(self.match), float(self.mismatch))
            name = f"match {self.match:g} / mismatch {self.mismatch:g}"
            return name, alphabet.letters, scores
        if isinstance(self.matrix, str):
            return (self.matrix, *load_matrix(self.matrix))
        if self.by_position:
            profile = self.matrix
            letters = profile.alphabet.letters
            return f"profile {profile.name}", letters, profile.scores.astype(float)
        letters, scores = self.matrix
        return "custom", letters, np.asarray(scores, float)

    @cached_property
    def by_position(self) -> bool:
        """Whether rows of ``scores`` are positions of a profile, the only query."""
        return is_profile(self.matrix)

    @cached_property
    def gap_costs(self) -> PositionCosts | None:
        """Costs by position; None where they are numbers. Extending costs no more than
        opening: a profile in which it does has the smaller number for both."""
        if not self.by_position or self.gap_open is not None:
            return None
        opening, extending = (
            np.rint(np.clip(costs, 0, COST_LIMIT - 1)).astype(np.int32)
            for costs in (self.matrix.gap_open, self.matrix.gap_extend)
        )
        extending = np.minimum(opening, extending)
        return PositionCosts(opening[0], extending[0], opening[1], extending[1])

    @cached_property
    def matrix_name(self) -> str:
        return self._named[0]

    @cached_property
    def alphabet(self) -> Alphabet:
        """The letters, in the order of the rows of ``scores``."""
        letters = self._named[1]
        if self.tracks is not None:
            first, second = (named_alphabet(kind) for kind, *_ in self.tracks)
            return replace(first, states=second)
        if letters == PROTEIN:
            return named_alphabet("protein")
        if letters == STATES:
            return named_alphabet("3di")
        if letters in (DNA, DNA.replace("T", "U")):
            rna = self.alphabet_name == "rna"
            return named_alphabet("rna" if rna else "dna")
        return Alphabet(letters)

    @cached_property
    def scale(self) -> int:
        """A real score is an integer score divided by this."""
        values = {self.gap_open, self.gap_extend} - {None}
        values |= {*self._named[2].ravel().tolist()}
        scale = lcm(*(Fraction(str(value)).denominator for value in values))
        if scale > MAX_SCALE:
            fine = max(values, key=lambda value: Fraction(str(value)).denominator)
            raise UsageError(
                f"{fine!r}: gap costs and scores must all be multiples of one "
                f"fraction, 1/{MAX_SCALE} or more: round them"
            )
        return scale

    @cached_property
    def scores(self) -> np.ndarray:
        """(size, size) int32, scaled; ``scores[query code, target code]``. Of a
        profile (m, size), and the first index is the position. Of two tracks
        (2, size, size), padded with 0."""
        plain = self._named[2]
        if plain.size and np.abs(plain).max() >= 2**15 / self.scale:
            largest = np.abs(plain).max()
            raise UsageError(
                f"a score of {largest:,g}: with a scale of {self.scale}, scores must "
                f"stay below {2**15 // self.scale:,}"
            )
        return np.rint(plain * self.scale).astype(np.int32)

    @cached_property
    def highest(self) -> int:
        """The largest score that a pair of residues may have, scaled; 0 if none."""
        scores = self.scores if self.tracks else self.scores[None]
        return sum(int(x.max(initial=0)) for x in scores)

    @cached_property
    def lowest(self) -> int:
        """The least score that a pair of residues may have, scaled, at most 0."""
        scores = self.scores if self.tracks else self.scores[None]
        return sum(int(x.min(initial=0)) for x in scores)

    def pair_scores(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Look up scores, scaled, int32.

        Parameters
        ----------
        a, b : integers
            Codes of queries and of targets, of one shape.
        """
        if self.tracks is None:
            return self.scores[a, b]
        first, second = self.scores
        return first[a % TRACK, b % TRACK] + second[a // TRACK, b // TRACK]

    def best_scores(self, codes: np.ndarray) -> np.ndarray:
        """Bound what each residue may score with any other: scaled, unsigned.

        Parameters
        ----------
        codes : integers
            Of residues.
        """
        tracks = self.scores if self.tracks else self.scores[None]
        best = np.maximum(tracks.max(axis=1), tracks.max(axis=2)).clip(0)
        best = best.astype(np.min_scalar_type(int(best.max(axis=1).sum())))
        return self._of_letters(best, codes)

    def _of_letters(self, values: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Sum values (tracks, letters) of the letters of each residue."""
        if self.tracks is None:
            return values[0][codes]
        return values[0][codes % TRACK] + values[1][codes // TRACK]

    def highest_scores(self, sequences: CodedSequences) -> np.ndarray:
        """Bound the score of each sequence with any other: scaled, int64 (n,), the sums
        of ``best_scores``.

        Parameters
        ----------
        sequences : Sequences
            Of this alphabet; they may overlap.
        """
        return _sums(sequences, self.best_scores(sequences.codes))

    def self_scores(self, sequences: CodedSequences) -> np.ndarray:
        """Score each sequence with itself, residue by residue: float64 (n,), the sums
        of the diagonal of the matrix over its residues.

        Parameters
        ----------
        sequences : Sequences
            Of this alphabet; they may overlap.
        """
        tracks = self.scores if self.tracks else self.scores[None]
        diagonal = tracks.diagonal(axis1=1, axis2=2).astype(np.int64)
        values = self._of_letters(diagonal, sequences.codes)
        return _sums(sequences, values) / self.scale

    @cached_property
    def open(self) -> int:
        """Scaled integer cost of the first residue of a gap; by position the largest
        one."""
        if self.gap_costs is not None:
            return int(max(self.gap_costs.open_e.max(), self.gap_costs.open_f.max()))
        return int(round(Fraction(str(self.gap_open)) * self.scale))

    @cached_property
    def extend(self) -> int:
        """Scaled integer cost of each further residue of a gap; by position the largest
        one."""
        if self.gap_costs is not None:
            costs = self.gap_costs
            return int(max(costs.extend_e.max(), costs.extend_f.max()))
        return int(round(Fraction(str(self.gap_extend)) * self.scale))

    @cached_property
    def identical(self) -> np.ndarray:
        """(size, size) bool: the same letter on both sides; X/X is no identity."""
        same = np.eye(self.alphabet.size, dtype=bool)
        if self.alphabet.wildcard is not None:
            same[self.alphabet.wildcard_code, self.alphabet.wildcard_code] = False
        return same

    @cached_property
    def symmetric(self) -> bool:
        return not self.by_position and bool(
            (self.scores == self.scores.swapaxes(-1, -2)).all()
        )

    @cached_property
    def _value(self) -> tuple:
        """Key for equality: all that scores, identities and statistics depend on."""
        named = self.match is None and isinstance(self.matrix, str)
        name = plain_name(self.matrix) if named else self.matrix_name
        costs = self.open, self.extend, self.scale
        costs += tuple(x.tobytes() for x in self.gap_costs or ())
        return name, self.alphabet, self.scores.tobytes(), costs

    def __eq__(self, value: object) -> bool:
        if not isinstance(value, Scoring):
            return NotImplemented
        return self._value == value._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        if self.gap_costs is not None:
            return f"Scoring({self.matrix!r})"
        costs = f"gap_open={self.gap_open:g}, gap_extend={self.gap_extend:g}"
        letters = f", alphabet={self.alphabet_name!r}" if self.alphabet_name else ""
        if self.tracks is not None:
            return f"Scoring(tracks=<{self.matrix_name}>, {costs})"
        if self.match is not None:
            pair = f"match={self.match:g}, mismatch={self.mismatch:g}"
            return f"Scoring({pair}, {costs}{letters})"
        size = self.alphabet.size
        matrix = f"({self.alphabet.letters!r}, <{size} x {size}>)"
        named = isinstance(self.matrix, str) or self.by_position
        matrix = repr(self.matrix) if named else matrix
        return f"Scoring({matrix}, {costs}{letters})"

    def __str__(self) -> str:
        if self.gap_costs is not None:
            return f"{self.matrix_name}, gap costs by position"
        gap = f"{self.gap_open:g} + {self.gap_extend:g}*(k-1)"
        return f"{self.matrix_name}, gap(k) = {gap}"


# A scoring as a caller may give it; None is ``Scoring()``.
ScoringLike = Scoring | str | os.PathLike[str] | tuple[str, Any] | None


def _sums(sequences: CodedSequences, values: np.ndarray) -> np.ndarray:
    """Sum values of residues over each sequence, int64 (n,)."""
    before = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    return before[sequences.starts + sequences.lengths] - before[sequences.starts]


def as_scoring(
    scoring: ScoringLike, by_position: bool = False, tracks: bool = False
) -> Scoring:
    """Convert the argument ``scoring`` of a call to a ``Scoring``.

    Parameters
    ----------
    scoring : Scoring, str, Path, (letters, array) or None
        The name of a bundled matrix, a matrix file or an array, with the gap costs of
        ``Scoring()``; None is ``Scoring()``.
    by_position : bool
        Whether it may be that of a profile's results.
    tracks : bool
        Whether it may have two tracks.

    Raises
    ------
    UsageError
        It is none of these, or that of a profile's results or of two tracks where it
        may not be.

    Examples
    --------
    >>> print(as_scoring("PAM250"))
    PAM250, gap(k) = 11 + 1*(k-1)
    """
    if scoring is None:
        return _usual()
    if isinstance(scoring, Scoring):
        if scoring.by_position and not by_position:
            raise UsageError("a profile is a query: give it in place of the sequence")
        if scoring.tracks and not tracks:
            raise UsageError(
                f"{scoring.matrix_name}: two tracks are aligned in pairs only, and "
                "neither indexed"
            )
        return scoring
    if isinstance(scoring, str) and scoring in PRESET_NAMES:
        raise UsageError(f"{scoring!r} is a preset: use Scoring.preset({scoring!r})")
    if isinstance(scoring, (str, os.PathLike)):
        return Scoring(os.fspath(scoring))
    if isinstance(scoring, tuple) and len(scoring) == 2 and isinstance(scoring[0], str):
        return Scoring(scoring)
    raise UsageError(
        f"scoring is a {type(scoring).__name__}: a Scoring, the name of a matrix such "
        "as 'BLOSUM62', a matrix file, or (letters, array) is needed"
    )


@cache
def _usual() -> Scoring:
    return Scoring()


@dataclass(frozen=True)
class Preset:
    """The defaults of another tool, in our terms."""

    scoring: Scoring
    mode: Mode
    identity: Identity


_PRESETS: dict[str, Callable[[], Preset]] = {
    "blastp": lambda: Preset(Scoring.blast(11, 1), "local", "alignment"),
    "blastn": lambda: Preset(Scoring(match=2, mismatch=-3), "local", "alignment"),
    "needle": lambda: Preset(Scoring("BLOSUM62", 10, 0.5), "semiglobal", "full"),
    "ssearch": lambda: Preset(Scoring.blast(10, 2, "BLOSUM50"), "local", "alignment"),
    # Pearson's FASTA programs, of nucleotides: +5/-4, -12/-4.
    "ssearch-dna": lambda: Preset(Scoring("NUC", 16, 4), "local", "alignment"),
    "mmseqs": lambda: Preset(Scoring("BLOSUM62", 11, 1), "local", "alignment"),
    "parasail": lambda: Preset(Scoring("BLOSUM62", 10, 1), "local", "alignment"),
    "foldseek": lambda: Preset(_foldseek(), "local", "alignment"),
}
PRESET_NAMES = tuple(_PRESETS)


def _foldseek() -> Scoring:
    """Amino acids and 3Di as Foldseek's ``structurealign`` adds them up: log-odds times
    1.4 and 2.1 bits, each rounded, and gaps 10 and 1. Its composition bias and the
    score of the reversed query, which it subtracts, are left out. The log-odds are
    those of the published half-bit tables, with the lambda that 3Di's states."""
    tracks = []
    for kind, name, bits, unit in (
        ("protein", "BLOSUM62", 1.4, 0.5),
        ("3di", "3Di", 2.1, 0.351568 / log(2)),
    ):
        letters, scores = load_matrix(name)
        tracks.append((kind, (letters, np.rint(scores * (bits * unit))), 1))
    return Scoring(tracks=tracks, gap_open=10, gap_extend=1)


@cache
def preset(name: str) -> Preset:
    """A preset by name (``PRESET_NAMES``).

    Raises
    ------
    UsageError
        No such preset.
    """
    if name not in _PRESETS:
        meant = nearest_word(name, _PRESETS)
        hint = f"; did you mean {meant}?" if meant else ""
        raise UsageError(f"unknown preset {name!r}: one of {', '.join(_PRESETS)}{hint}")
    return _PRESETS[name]()


def resolve_ends(mode: str, free_ends: Any = None) -> frozenset[FreeEnd]:
    """Mode and free ends -> the set of free ends; local has none of its own."""
    if mode not in MODES:
        raise UsageError(f"unknown mode {mode!r}: one of {', '.join(MODES)}")
    if free_ends is None:
        return frozenset(get_args(FreeEnd) if mode == "semiglobal" else ())
    if mode != "global":
        raise UsageError(f"free_ends goes with mode 'global', not with {mode!r}")
    choices = f"any of {', '.join(FREE_ENDS)}"
    if not isinstance(free_ends, Collection):  # an iterator could be read only once
        raise UsageError(f"free_ends = {free_ends!r}: {choices}")
    ends = frozenset(free_ends)
    if unknown := sorted(map(repr, ends - set(FREE_ENDS))):
        raise UsageError(f"unknown free end {unknown[0]}: {choices}")
    return ends


def is_symmetric(scoring: Scoring, free_ends: Iterable[str]) -> bool:
    """Whether swapping query and target changes no score."""
    swapped = {"query": "target", "target": "query"}
    ends = (end.split("_") for end in free_ends)
    return scoring.symmetric and set(free_ends) == {
        f"{swapped[side]}_{which}" for side, which in ends
    }
