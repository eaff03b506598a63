"""No score is ever silently saturated: the score dtype is proved, else widened.

A fill of dtype d keeps minus infinity at half of its range (``pairs.dp.recurrence``),
so values must stay above that half, with room for one gap and one substitution; above,
they may use all of the range.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from jaxalign.model.scoring import Scoring

COST_STEP = 16
POSITION_ROWS = 512  # more than an alphabet has letters; few sizes are few programs
# score * IDENTITY_BASE + matches: the lexicographic score of max_identities.
IDENTITY_BASE = {"int32": 2**13, "int64": 2**20}


def scaled(scoring: Scoring, dtype: str, identity: bool, base: int | None = None):
    """(scores int64, gap open, gap extend) of a fill; with ``identity`` each score
    carries a match in its low digits, below ``base`` or ``IDENTITY_BASE``. Of a profile
    there are more rows, of zeros, up to ``POSITION_ROWS`` times a power of two."""
    factor = (base or IDENTITY_BASE[dtype]) if identity else 1
    scores = scoring.scores.astype(np.int64) * factor
    if scoring.by_position:
        last = max(len(scores) - 1, 0) // POSITION_ROWS
        rows = POSITION_ROWS * 2 ** last.bit_length()
        scores = np.pad(scores, ((0, rows - len(scores)), (0, 0)))
    elif identity and scoring.tracks:
        size = scoring.alphabet.size
        scores[0, :size, :size] += scoring.identical
    elif identity:
        scores = scores + scoring.identical
    return scores, scoring.open * factor, scoring.extend * factor


@dataclass(frozen=True)
class Range:
    """Proven bounds on every H of a table, in scaled integer scores."""

    low: int
    high: int


def score_range(m: int, n: int, scoring: Scoring, mode: str, margin: int = 0) -> Range:
    """Bounds from the lengths, the matrix and the gaps alone, for values that are held
    with up to ``margin`` added.

    High: every column pairs residues and each scores at most max(S). Low: two gaps
    reach every cell of a global table, and what is stored is at most one gap or one
    substitution below H.
    """
    best = scoring.highest
    worst = -scoring.lowest
    reach = 0 if mode == "local" else scoring.open + scoring.extend * max(m + n, 1)
    return Range(-(reach + 2 * scoring.open + worst), min(m, n) * best + best + margin)


def fits(bounds: Range, dtype: str, factor: int = 1) -> bool:
    """Whether values of this range, times ``factor``, never wrap in ``dtype``."""
    info = np.iinfo(dtype)
    low, high = bounds.low * factor, (bounds.high + 1) * factor
    return low > info.min // 2 + factor and high < info.max


def score_dtype(
    m: int, n: int, scoring: Scoring, mode: str, widest: bool = False, margin: int = 0
) -> str:
    """The narrowest dtype that provably holds all scores: int16, int32, or int64."""
    bounds = score_range(m, n, scoring, mode, margin)
    if not widest and fits(bounds, "int16"):
        return "int16"
    return "int32" if fits(bounds, "int32") else "int64"


def narrow_high(scoring: Scoring, mode: str, dtype: str, zero: int = 0) -> int:
    """The score up to which a local fill of a dtype is exact; 0 where it never is.

    H rises by max(S) at most from a cell to the next, so before it can wrap there is
    one above this score: a best of at most this proves that nothing has wrapped.
    ``zero`` is 0, or ``least_zero``, below which nothing wraps.
    """
    low, best = score_range(0, 0, scoring, mode).low, scoring.highest
    info = np.iinfo(dtype)
    fits_below = mode == "local" and (zero or low > info.min // 2 + 1)
    fits_below = fits_below and scoring.open <= info.max  # or it is no constant
    return max(info.max - zero - max(best, 0), 0) if fits_below else 0


def least_zero(scoring: Scoring, dtype: str) -> int:
    """Smallest encoding of a local score of 0: values fall below it by at most a gap of
    two residues or a substitution. Of costs by position, the next multiple of
    ``COST_STEP``: it is a constant of a program, which profiles share."""
    reach = max(scoring.open + scoring.extend, -scoring.lowest)
    if scoring.gap_costs is not None:
        reach = -(-reach // COST_STEP) * COST_STEP
    return int(np.iinfo(dtype).min) + reach


def fits_differences(scoring: Scoring, dtype: str, paths: bool) -> bool:
    """Whether an unsigned dtype holds all that a fill by differences computes
    (``pairs.dp.sweep.difference_fill``), at any lengths.

    With gaps that open at o, H[i,j] - H[i-1,j-1] is at most max(S), since without their
    last residues two sequences lose no more, and at least min(S); a difference of two
    neighbours is one of these less another neighbour's, which is -o at least. So with o
    or 2 * o added all are within 0 ... max(S) + 2 * o. What is subtracted of H,
    o - extend, leaves it above 0 as long as min(S) >= -(o + extend). With ``paths`` all
    have one more, and a gap in column 0 must cost something to go on.
    """
    best = scoring.highest
    worst = -scoring.lowest
    margin = int(paths)
    low, high = worst + margin, best + 2 * scoring.open + margin
    fits = low <= scoring.open + scoring.extend and high <= np.iinfo(dtype).max
    return fits and scoring.extend >= margin


def differences_base(scoring: Scoring, dtype: str) -> int:
    """The largest base of ``score * base + matches`` that an unsigned dtype holds in a
    fill by differences, by the same proof; fewer matches than that are exact. 0: none.
    """
    best = scoring.highest
    worst = -scoring.lowest
    if worst > scoring.open + scoring.extend:
        return 0
    base = (np.iinfo(dtype).max - 1) // max(best + 2 * scoring.open, 1)
    return min(int(base), IDENTITY_BASE["int32"])


def fits_bytes(scoring: Scoring, base: int) -> bool:
    """Whether a byte holds a score as a fill by differences takes it, plus 2 * open, or
    with ``base`` above 1 that and a match (``pairs.dp.sweep.lane_cells``)."""
    largest = scoring.highest + 2 * scoring.open
    return (largest if base == 1 else 2 * largest + 1) <= np.iinfo("uint8").max


def identity_dtype(m: int, n: int, scoring: Scoring, mode: str, margin: int = 0) -> str:
    """int32 where score * 2^13 + matches provably fits, else int64 with 2^20."""
    bounds = score_range(m, n, scoring, mode, margin)
    base = IDENTITY_BASE["int32"]
    if min(m, n) < base and fits(bounds, "int32", base):
        return "int32"
    return "int64"


def triple_dtype(lengths: Iterable[int], scoring: Scoring) -> str:
    """int32 where no H of three sequences can leave a quarter of its range, else int64.

    A column moves H by at most three substitutions, or one and two gaps, and no path,
    in a padded box either, has more than twice the residues and 64 columns. Minus
    infinity, half the range, then stays below every real H and wraps nowhere.
    """
    largest = int(np.abs(scoring.scores.astype(np.int64)).max(initial=0))
    reach = (2 * int(sum(lengths)) + 64) * (3 * largest + 3 * scoring.open + 1)
    return "int32" if reach < -(np.iinfo("int32").min // 4) else "int64"
