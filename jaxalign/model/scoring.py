"""Scoring: matrix and gap costs, the one place where conventions convert."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from math import lcm
from typing import Any, get_args

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.model import matrix
from jaxalign.model.alphabet import DNA, PROTEIN, Alphabet, named_alphabet
from jaxalign.model.choices import FreeEnd, Identity, Mode
from jaxalign.model.scoring_check import check, is_profile, match_matrix, own_matrix

MODES: tuple[str, ...] = get_args(Mode)
FREE_ENDS: tuple[str, ...] = get_args(FreeEnd)
# Scores are scaled to integers; a fraction finer than this is refused, not rounded.
MAX_SCALE = 1000


@dataclass(frozen=True, eq=False)
class Scoring:
    """A substitution matrix and the cost of gaps.

    A gap of k residues costs ``gap_open + (k - 1) * gap_extend`` (EMBOSS, parasail,
    biotite, the 2011 gpu-pairalign paper); ``Scoring.blast`` takes BLAST's numbers.
    Fractions such as EMBOSS's 10/0.5 are exact: everything is scaled to integers.

    A scoring is a value: two that score alike are equal and have one hash, and
    ``dataclasses.replace(scoring, gap_open=5)`` is another. An array is copied.

    Parameters
    ----------
    matrix : str or (letters, array)
        A bundled name (``jaxalign matrices``), an NCBI-format file, or letters and a
        square array; rows are the query's letters. Results of a profile have the
        ``Profile`` there, whose rows are the query's positions.
    gap_open, gap_extend : int or float
        Non-negative, ``gap_extend <= gap_open``.
    match, mismatch : int or float, optional
        Instead of a matrix; the wildcard scores ``mismatch`` against everything.
    alphabet : str, optional
        ``protein``, ``dna``, ``rna`` or the letters; with match/mismatch ``dna`` is
        the default. ``rna`` reads a DNA matrix with U for T.

    Raises
    ------
    UsageError
        Unknown matrix, negative gap, gap_extend > gap_open, or a fraction finer
        than 1/1000.

    Examples
    --------
    >>> print(Scoring())
    BLOSUM62, gap(k) = 11 + 1*(k-1)
    >>> print(Scoring.blast(11, 1))
    BLOSUM62, gap(k) = 12 + 1*(k-1)
    >>> Scoring("EBLOSUM62", 11.0) == Scoring()
    True
    """

    matrix: Any = "BLOSUM62"  # a name, a file, or (letters, array)
    gap_open: float = 11
    gap_extend: float = 1
    match: float | None = None
    mismatch: float | None = None
    alphabet_name: str | None = None

    def __init__(
        self,
        matrix: Any = "BLOSUM62",
        gap_open: float = 11,
        gap_extend: float = 1,
        *,
        match: float | None = None,
        mismatch: float | None = None,
        alphabet: str | None = None,
        alphabet_name: str
        | None = None,  # the field's name, which ``dataclasses.replace`` uses
    ):
        letters = alphabet_name if alphabet is None else alphabet
        values = (own_matrix(matrix), gap_open, gap_extend, match, mismatch, letters)
        for name, value in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, name, value)
        check(self)

    @classmethod
    def blast(
        cls,
        gap_open: float = 11,
        gap_extend: float = 1,
        matrix: Any = "BLOSUM62",
        **others: Any,
    ):
        """BLAST's convention: a gap of k costs ``gap_open + k * gap_extend``."""
        return cls(matrix, gap_open + gap_extend, gap_extend, **others)

    @classmethod
    def preset(cls, name: str) -> "Scoring":
        """The scoring of ``PRESETS[name]``."""
        return preset(name).scoring

    @cached_property
    def _named(self):
        """(name, letters, float matrix)."""
        if self.match is not None and self.mismatch is not None:
            return match_matrix(self.match, self.mismatch, self.alphabet_name)
        if isinstance(self.matrix, str):
            return (self.matrix, *matrix.load(self.matrix))
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
    def matrix_name(self) -> str:
        return self._named[0]

    @cached_property
    def alphabet(self) -> Alphabet:
        """The letters, in the order of the rows of ``scores``."""
        letters = self._named[1]
        if letters == PROTEIN:
            return named_alphabet("protein")
        if letters in (DNA, DNA.replace("T", "U")):
            rna = self.alphabet_name == "rna"
            return named_alphabet("rna" if rna else "dna")
        return Alphabet(letters)

    @cached_property
    def scale(self) -> int:
        """A real score is an integer score divided by this."""
        values = {self.gap_open, self.gap_extend, *self._named[2].ravel().tolist()}
        scale = lcm(*(Fraction(str(value)).denominator for value in values))
        if scale > MAX_SCALE:
            fine = max(values, key=lambda value: Fraction(str(value)).denominator)
            raise UsageError(
                f"{fine!r}: gap costs and scores finer than 1/{MAX_SCALE} are not "
                "supported"
            )
        return scale

    @cached_property
    def scores(self) -> np.ndarray:
        """(size, size) int32, scaled; ``scores[query code, target code]``. Of a
        profile (m, size), and the first index is the position."""
        plain = self._named[2]
        if plain.size and np.abs(plain).max() >= 2**15 / self.scale:
            raise UsageError("substitution scores (scaled) must be below 32768")
        return np.rint(plain * self.scale).astype(np.int32)

    @cached_property
    def open(self) -> int:
        """Scaled integer cost of the first residue of a gap."""
        return int(round(Fraction(str(self.gap_open)) * self.scale))

    @cached_property
    def extend(self) -> int:
        """Scaled integer cost of each further residue of a gap."""
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
        return not self.by_position and bool((self.scores == self.scores.T).all())

    @cached_property
    def _value(self) -> tuple:
        """All that scores, identities and statistics depend on, and nothing else."""
        named = self.match is None and isinstance(self.matrix, str)
        name = matrix.plain_name(self.matrix) if named else self.matrix_name
        costs = self.open, self.extend, self.scale
        return name, self.alphabet, self.scores.tobytes(), costs

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scoring):
            return NotImplemented
        return self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        costs = f"gap_open={self.gap_open:g}, gap_extend={self.gap_extend:g}"
        letters = f", alphabet={self.alphabet_name!r}" if self.alphabet_name else ""
        if self.match is not None:
            pair = f"match={self.match:g}, mismatch={self.mismatch:g}"
            return f"Scoring({pair}, {costs}{letters})"
        size = self.alphabet.size
        matrix = f"({self.alphabet.letters!r}, <{size} x {size}>)"
        named = isinstance(self.matrix, str) or self.by_position
        matrix = repr(self.matrix) if named else matrix
        return f"Scoring({matrix}, {costs}{letters})"

    def __str__(self) -> str:
        gap = f"{self.gap_open:g} + {self.gap_extend:g}*(k-1)"
        return f"{self.matrix_name}, gap(k) = {gap}"


# A scoring as a caller may give it; None is ``Scoring()``.
ScoringLike = Scoring | str | os.PathLike[str] | tuple[str, Any] | None


def as_scoring(scoring: ScoringLike, by_position: bool = False) -> Scoring:
    """The ``Scoring`` that a caller means by the argument ``scoring``.

    Parameters
    ----------
    scoring : Scoring, str, Path, (letters, array) or None
        The name of a bundled matrix, a matrix file or an array, with the gap costs of
        ``Scoring()``; None is ``Scoring()``.
    by_position : bool
        Whether it may be that of a profile's results.

    Raises
    ------
    UsageError
        It is none of these, or that of a profile's results.

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


@cache
def preset(name: str) -> Preset:
    """A preset by name (``PRESET_NAMES``).

    Raises
    ------
    UsageError
        No such preset.
    """
    makers = {
        "blastp": lambda: Preset(Scoring.blast(11, 1), "local", "alignment"),
        "blastn": lambda: Preset(
            Scoring.blast(5, 2, match=2, mismatch=-3), "local", "alignment"
        ),
        "needle": lambda: Preset(Scoring("BLOSUM62", 10, 0.5), "semiglobal", "full"),
        "ssearch": lambda: Preset(
            Scoring.blast(10, 2, "BLOSUM50"), "local", "alignment"
        ),
        "mmseqs": lambda: Preset(Scoring("BLOSUM62", 11, 1), "local", "alignment"),
        "parasail": lambda: Preset(Scoring("BLOSUM62", 10, 1), "local", "alignment"),
    }
    if name not in makers:
        raise UsageError(f"unknown preset {name!r}: one of {', '.join(makers)}")
    return makers[name]()


PRESET_NAMES = ("blastp", "blastn", "needle", "ssearch", "mmseqs", "parasail")


def resolve_ends(mode: str, free_ends: Any = None) -> frozenset[FreeEnd]:
    """Mode and free ends -> the set of free ends; local has none of its own.

    Raises
    ------
    UsageError
        Unknown mode or end, or free ends beside a mode that fixes them.
    """
    if mode not in MODES:
        raise UsageError(f"unknown mode {mode!r}: one of {', '.join(MODES)}")
    if free_ends is None:
        return frozenset(get_args(FreeEnd) if mode == "semiglobal" else ())
    if mode != "global":
        raise UsageError(f"free_ends goes with mode 'global', not with {mode!r}")
    choices = f"any of {', '.join(FREE_ENDS)}"
    try:
        ends = frozenset(free_ends)
    except TypeError:
        raise UsageError(f"free_ends = {free_ends!r}: {choices}") from None
    if unknown := sorted(map(repr, ends - set(FREE_ENDS))):
        raise UsageError(f"unknown free end {unknown[0]}: {choices}")
    return ends


def is_symmetric(scoring: Scoring, free_ends: Iterable[str]) -> bool:
    """Whether swapping query and target changes no score."""
    other = {"query": "target", "target": "query"}
    ends = (end.split("_") for end in free_ends)
    return scoring.symmetric and set(free_ends) == {
        f"{other[side]}_{which}" for side, which in ends
    }
