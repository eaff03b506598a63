"""The parts of a scoring: its matrix as values of its own, and what is refused."""

from typing import Any

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.model.alphabet import check_letters, named_alphabet
from jaxalign.model.numbers import is_number

COST_LIMIT = 2**15  # of a gap's residue


def own_matrix(matrix: Any):
    """A name as it is; (letters, array) with an array that nobody else can change."""
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


def is_profile(matrix: Any) -> bool:
    """Whether it is a ``model.profile.Profile``, whose file imports this one's."""
    return hasattr(matrix, "consensus")


def _is_pair(matrix: Any) -> bool:
    return isinstance(matrix, (tuple, list)) and len(matrix) == 2


def match_matrix(match: float, mismatch: float, alphabet_name: str | None):
    alphabet = named_alphabet(alphabet_name or "dna")
    same = np.eye(alphabet.size, dtype=bool)
    if alphabet.wildcard is not None:
        same[alphabet.wildcard_code, alphabet.wildcard_code] = False
    scores = np.where(same, float(match), float(mismatch))
    return f"match {match:g} / mismatch {mismatch:g}", alphabet.letters, scores


def check(scoring: Any) -> None:
    """Refuse what is no scoring; ``Scoring`` says what that is.

    Raises
    ------
    UsageError
    """
    if (scoring.match is None) != (scoring.mismatch is None):
        raise UsageError("match and mismatch go together")
    for name in ("gap_open", "gap_extend"):
        value = getattr(scoring, name)
        if not (is_number(value) and 0 <= value < COST_LIMIT):
            raise UsageError(
                f"{name} = {value!r}: a cost is a number from 0 to below {COST_LIMIT}"
            )
    if scoring.gap_extend > scoring.gap_open:
        raise UsageError(
            f"gap_extend = {scoring.gap_extend:g} exceeds gap_open = "
            f"{scoring.gap_open:g}: extending may not cost more than opening"
        )
    named = isinstance(scoring.matrix, str) or is_profile(scoring.matrix)
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
    _ = scoring.alphabet, scoring.scores
