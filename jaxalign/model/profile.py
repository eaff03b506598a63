"""Profiles: a score for every letter at every position of a family of sequences."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jaxalign.errors import InputError, UsageError
from jaxalign.model import hmm_file, profile_counts, profile_files
from jaxalign.model.alphabet import (
    BAD,
    PROTEIN,
    Alphabet,
    from_parts,
    named_alphabet,
)
from jaxalign.model.numbers import is_number
from jaxalign.model.scoring import Scoring, ScoringLike, as_scoring

UNIT = profile_counts.LAMBDA  # nats: a score of 1, as in BLOSUM62
MAX_SCORE = 2**15 - 1  # and -MAX_SCORE: `hard_alignment` takes scores as int16
MAX_LOG_ODDS = 50 * UNIT  # of a letter of no probability, too
MIN_PSEUDOCOUNTS, MAX_PSEUDOCOUNTS = 1e-9, 1e9


@dataclass(frozen=True, eq=False)
class Profile:
    """Position-specific scores, as integers.

    Attributes
    ----------
    name : str
    scores : int32 (m, letters)
        In the order of the letters of ``alphabet``; 1 is ``unit`` nats of log-odds.
    alphabet : Alphabet
    unit : float
    gap_open, gap_extend : (costs of the profile's positions, costs of residues that
        stand behind a position), float (m,) each, in the same unit; None without

    Raises
    ------
    UsageError
        Scores that are not whole, finite, or one for every position and letter; costs
        that are not one for every position, 0 or more.
    """

    name: str
    scores: np.ndarray
    alphabet: Alphabet
    unit: float = UNIT
    gap_open: tuple[np.ndarray, np.ndarray] | None = None
    gap_extend: tuple[np.ndarray, np.ndarray] | None = None

    def __post_init__(self):
        scores = _checked_scores(self.scores, self.alphabet)
        object.__setattr__(self, "scores", scores)
        if not (is_number(self.unit) and 0 < self.unit < np.inf):
            raise UsageError(f"unit = {self.unit!r}: nats, a number above 0")
        if (self.gap_open is None) != (self.gap_extend is None):
            raise UsageError("gap_open and gap_extend go together")
        for name in ("gap_open", "gap_extend"):
            _check_costs(name, getattr(self, name), len(scores))

    def __len__(self) -> int:
        return len(self.scores)

    def __repr__(self) -> str:
        return f"Profile({self.name!r}, {len(self)} positions)"

    @cached_property
    def positions(self) -> np.ndarray:
        """int32 (m,), 0 to m - 1: codes of a query whose matrix is ``scores``."""
        return np.arange(len(self), dtype=np.int32)

    @cached_property
    def consensus(self) -> str:
        """The letter of largest score at each position."""
        count = 20 if self.alphabet.kind == "protein" else self.alphabet.size
        return self.alphabet.decode(self.scores[:, :count].argmax(1))

    @classmethod
    def from_sequence(cls, sequence: str, scoring: ScoringLike = None) -> "Profile":
        """The rows of a matrix for the letters of a sequence.

        Examples
        --------
        >>> from jaxalign.model.profile import Profile
        >>> profile = Profile.from_sequence("MKV")
        >>> profile.scores[0, :4].tolist(), profile.consensus
        ([-1, -1, -2, -3], 'MKV')
        """
        scoring = as_scoring(scoring)
        codes = scoring.alphabet.encode(sequence)
        if (codes == BAD).any():
            raise InputError(f"{sequence!r}: {scoring.alphabet.rule()}")
        if scoring.scale != 1:
            raise UsageError("a profile has whole scores, and this matrix has not")
        scores = scoring.scores[codes.astype(np.intp)]
        return cls("sequence", scores, scoring.alphabet)

    @classmethod
    def from_alignment(
        cls,
        source: str | os.PathLike[str] | list[str],
        *,
        pseudocounts: float = 10.0,
        weights: str | np.ndarray = "henikoff",
        max_gaps: float = 0.5,
    ) -> "Profile":
        """Log-odds of the columns of a protein alignment, as PSI-BLAST has them.

        Parameters
        ----------
        source : path of aligned FASTA, a3m or Stockholm, or a list of aligned rows
            The text says which of the first three. Of a3m the upper case columns are
            positions; of the others those with few gaps.
        pseudocounts : float, 1e-9 to 1e9
            The weight (beta) of what BLOSUM62 expects beside the letters seen; that of
            the letters is their mean number of kinds in a column, less one.
        weights : "henikoff", "equal", or a number for each row
            Position-based weights make rows that are alike count less.
        max_gaps : float
            A column with a larger weighted part of gaps is no position.

        Raises
        ------
        InputError
            The file cannot be read, or rows differ in length.
        UsageError
            An option is out of its range, or no column is a position.

        Notes
        -----
        Henikoff and Henikoff, J. Mol. Biol. 243:574 (1994); Altschul et al., Nucleic
        Acids Research 25:3389 (1997).

        Examples
        --------
        >>> from jaxalign.model.profile import Profile
        >>> profile = Profile.from_alignment(["MKV-A", "MKI-A", "MRVGA"])
        >>> profile, profile.scores[0, :4].tolist()
        (Profile('alignment', 4 positions), [-1, -1, -2, -3])
        """
        low, high = MIN_PSEUDOCOUNTS, MAX_PSEUDOCOUNTS
        if not (is_number(pseudocounts) and low <= pseudocounts <= high):
            raise UsageError(
                f"pseudocounts={pseudocounts!r}: a number from {low:g} to {high:g}"
            )
        if not (is_number(max_gaps) and 0 <= max_gaps <= 1):
            raise UsageError(f"max_gaps={max_gaps!r}: a fraction from 0 to 1")
        name, rows, by_case = profile_files.alignment(source)
        with _named(source):
            letters = profile_counts.codes_of(rows)
            share = profile_counts.row_weights(letters, weights)
            letters = profile_counts.positions(
                letters, share, None if by_case else max_gaps
            )
            share = profile_counts.row_weights(letters, weights)
            odds = profile_counts.log_odds(letters, share, float(pseudocounts))
        return cls(name, _whole_scores(odds), named_alphabet("protein"))

    @classmethod
    def from_hmm(cls, source: str | os.PathLike[str]) -> "Profile":
        """The match emissions of a protein HMM as log-odds, and its transitions as
        costs of gaps by position.

        Parameters
        ----------
        source : path of a HMMER3 text file; the first model is read

        Notes
        -----
        A gap behind position k costs what its transitions do beyond those of pairs:
        M to I and back to M, less M to M; or M to D and back. Costs below 0 become 0.
        Eddy, PLoS Computational Biology 7:e1002195 (2011).

        Raises
        ------
        InputError
            The file cannot be read or is no such model.
        """
        name, emissions, transitions = hmm_file.read(source)
        odds = profile_counts.odds_of_emissions(emissions)
        opening, more = profile_counts.gap_costs(transitions)
        alphabet = named_alphabet("protein")
        scores = _whole_scores(odds)
        return cls(name, scores, alphabet, UNIT, opening, more)


def as_query(query: Any, scoring: Scoring) -> tuple[Any, Scoring]:
    """A query and its scoring; a profile is its consensus, scored by its positions with
    the gap costs of the scoring."""
    if not isinstance(query, Profile):
        return query, scoring
    consensus = query.alphabet.encode(query.consensus)
    sequences = from_parts([query.name], [consensus], query.alphabet)
    return sequences, Scoring(query, scoring.gap_open, scoring.gap_extend)


def _whole_scores(odds: np.ndarray) -> np.ndarray:
    """Log-odds of the 20 residues in nats -> int32 (m, 24).

    B and Z are means of their two residues, X that of all, by frequency; * is the
    lowest score of the position."""
    odds = np.clip(odds, -MAX_LOG_ODDS, MAX_LOG_ODDS)
    scores = np.rint(odds / UNIT)
    others = [
        profile_counts.mean_of(odds, kinds) for kinds in ("ND", "QE", PROTEIN[:20])
    ]
    columns = [*(np.rint(x / UNIT) for x in others), scores.min(1)]
    return np.column_stack([scores, *columns]).astype(np.int32)


def _checked_scores(scores: Any, alphabet: Alphabet) -> np.ndarray:
    """Scores as int32."""
    array = np.asarray(scores)
    if array.dtype.kind not in "iuf" or array.ndim != 2:
        raise UsageError(
            f"scores of {array.dtype}, shape {array.shape}: whole numbers (positions, "
            "letters) are needed"
        )
    if array.shape[1] != alphabet.size or not len(array):
        raise UsageError(
            f"scores of shape {array.shape}: a position or more, and the "
            f"{alphabet.size} letters {alphabet.letters} are needed"
        )
    if not (np.abs(array.astype(float)) <= MAX_SCORE).all():
        raise UsageError(f"scores are finite, from {-MAX_SCORE} to {MAX_SCORE}")
    if (array != np.rint(array)).any():
        raise UsageError("a profile has whole scores, and these are not")
    return array.astype(np.int32)


def _check_costs(name: str, costs: Any, positions: int) -> None:
    if costs is None:
        return
    try:
        array = np.array(costs, float)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if array.shape != (2, positions) or not ((array >= 0) & np.isfinite(array)).all():
        raise UsageError(
            f"{name}: costs of the {positions} positions, and of residues behind each "
            "of them, are numbers, 0 or more"
        )


@contextmanager
def _named(source: Any) -> Iterator[None]:
    """Errors in the rows of a file name the file."""
    try:
        yield
    except UsageError as error:
        if not isinstance(source, (str, os.PathLike)):
            raise
        raise UsageError(f"{os.fspath(source)}: {error}") from None
