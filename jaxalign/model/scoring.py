"""Scoring: matrix and gap costs, the one place where conventions convert."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.model import matrix as matrices
from jaxalign.model.alphabet import DNA, PROTEIN, Alphabet, named_alphabet

MODES = ("global", "semiglobal", "local")
FREE_ENDS = ("query_start", "query_end", "target_start", "target_end")
# Scores are scaled to integers; a fraction finer than this is refused, not rounded.
MAX_SCALE = 1000


@dataclass(frozen=True, eq=False)
class Scoring:
    """A substitution matrix and the cost of gaps.

    A gap of k residues costs ``gap_open + (k - 1) * gap_extend`` (EMBOSS, parasail,
    biotite, the 2011 gpu-pairalign paper); ``Scoring.blast`` takes BLAST's numbers.
    Fractions such as EMBOSS's 10/0.5 are exact: everything is scaled to integers.

    Parameters
    ----------
    matrix : str or (letters, array)
        A bundled name (``jaxalign matrices``), an NCBI-format file, or letters and a
        square array; rows are the query's letters.
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
    """

    matrix: Any = "BLOSUM62"  # a name, a file, or (letters, array)
    gap_open: float = 11
    gap_extend: float = 1
    match: float | None = None
    mismatch: float | None = None
    alphabet_name: str | None = None

    def __init__(
        self,
        matrix="BLOSUM62",
        gap_open=11,
        gap_extend=1,
        *,
        match=None,
        mismatch=None,
        alphabet=None,
    ):
        values = (matrix, gap_open, gap_extend, match, mismatch, alphabet)
        names = self.__dataclass_fields__
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)
        _check(self)

    @classmethod
    def blast(cls, gap_open=11, gap_extend=1, matrix="BLOSUM62", **others):
        """BLAST's convention: a gap of k costs ``gap_open + k * gap_extend``."""
        return cls(matrix, gap_open + gap_extend, gap_extend, **others)

    @classmethod
    def preset(cls, name: str) -> "Scoring":
        """The scoring of ``PRESETS[name]``."""
        return preset(name).scoring

    @cached_property
    def _named(self):
        """(name, letters, float matrix)."""
        if self.match is not None:
            return _match_matrix(self.match, self.mismatch, self.alphabet_name)
        if isinstance(self.matrix, str):
            return (self.matrix, *matrices.load(self.matrix))
        letters, scores = self.matrix
        return "custom", letters, np.asarray(scores, float)

    @property
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
        """(size, size) int32, scaled; ``scores[query code, target code]``."""
        scaled = np.rint(self._named[2] * self.scale)
        if scaled.size and np.abs(scaled).max() >= 2**15:
            raise UsageError("substitution scores (scaled) must be below 32768")
        return scaled.astype(np.int32)

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

    @property
    def symmetric(self) -> bool:
        return bool((self.scores == self.scores.T).all())

    def __str__(self) -> str:
        gap = f"{self.gap_open:g} + {self.gap_extend:g}*(k-1)"
        return f"{self.matrix_name}, gap(k) = {gap}"


@dataclass(frozen=True)
class Preset:
    """What another tool does when nothing is said, in our terms."""

    scoring: Scoring
    mode: str
    identity: str


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


def resolve_ends(mode: str, free_ends=None) -> frozenset[str]:
    """Mode and free ends -> the set of free ends; local has none of its own.

    Raises
    ------
    UsageError
        Unknown mode or end, or free ends beside a mode that fixes them.
    """
    if mode not in MODES:
        raise UsageError(f"unknown mode {mode!r}: one of {', '.join(MODES)}")
    if free_ends is None:
        return frozenset(FREE_ENDS if mode == "semiglobal" else ())
    if mode != "global":
        raise UsageError(f"free_ends goes with mode 'global', not with {mode!r}")
    free_ends = frozenset(free_ends)
    unknown = free_ends - set(FREE_ENDS)
    if unknown:
        raise UsageError(
            f"unknown free end {sorted(unknown)[0]!r}: any of {', '.join(FREE_ENDS)}"
        )
    return free_ends


def is_symmetric(scoring: Scoring, free_ends) -> bool:
    """Whether swapping query and target changes no score."""
    other = {"query": "target", "target": "query"}
    ends = (end.split("_") for end in free_ends)
    return scoring.symmetric and set(free_ends) == {
        f"{other[side]}_{which}" for side, which in ends
    }


def _match_matrix(match, mismatch, alphabet_name):
    alphabet = named_alphabet(alphabet_name or "dna")
    same = np.eye(alphabet.size, dtype=bool)
    if alphabet.wildcard is not None:
        same[alphabet.wildcard_code, alphabet.wildcard_code] = False
    scores = np.where(same, float(match), float(mismatch))
    return f"match {match:g} / mismatch {mismatch:g}", alphabet.letters, scores


def _check(scoring: Scoring) -> None:
    if (scoring.match is None) != (scoring.mismatch is None):
        raise UsageError("match and mismatch go together")
    for name in ("gap_open", "gap_extend"):
        value = getattr(scoring, name)
        if not (isinstance(value, (int, float, np.number)) and 0 <= value < 2**15):
            raise UsageError(f"{name} = {value!r}: a cost is a number, 0 or more")
    if scoring.gap_extend > scoring.gap_open:
        raise UsageError(
            f"gap_extend = {scoring.gap_extend:g} exceeds gap_open = "
            f"{scoring.gap_open:g}: extending may not cost more than opening"
        )
    if scoring.match is None and not isinstance(scoring.matrix, str):
        if not (isinstance(scoring.matrix, (tuple, list)) and len(scoring.matrix) == 2):
            raise UsageError("an array needs its letters: matrix=(letters, array)")
        letters, scores = scoring.matrix
        if np.shape(scores) != (len(letters), len(letters)):
            raise UsageError(
                f"matrix of shape {np.shape(scores)} for {len(letters)} letters"
            )
        if len(set(letters)) != len(letters) or not np.isfinite(scores).all():
            raise UsageError("matrix letters must differ and scores be finite")
    for name in ("match", "mismatch"):
        if scoring.match is not None and not np.isfinite(getattr(scoring, name)):
            raise UsageError(f"{name} = {getattr(scoring, name)!r}: not a number")
    _ = scoring.scores  # loads the matrix and scales it: what is wrong shows here
