"""One alignment of three sequences: rows, spans, and scores counted from the rows."""

from dataclasses import dataclass, field

import numpy as np

from jaxalign.model.scoring import Scoring

GAP_MODELS = ("quasi-natural", "natural", "linear")
PAIRS = ((0, 1), (0, 2), (1, 2))


@dataclass(frozen=True, eq=False)
class TripleAlignment:
    """An alignment of a, b and c and its score.

    ``rows`` are the three gapped rows, None where no traceback was asked for;
    ``spans`` half-open and zero-based. In local mode rows and spans cover the match,
    else all of the sequences. ``seconds`` and ``bytes`` tell the phases of the work.
    """

    sequences: tuple[str, str, str]
    names: tuple[str, str, str]
    score: float
    rows: tuple[str, str, str] | None
    spans: tuple | None
    scoring: Scoring
    gap_model: str
    mode: str
    schedule: str = "sloped"
    traceback: str | None = None
    implementation: str = ""
    cells: int = 0
    seconds: dict = field(default_factory=dict)
    bytes: dict = field(default_factory=dict)

    @property
    def columns(self) -> int:
        return len(self.rows[0])

    @property
    def pair_scores(self) -> tuple[float, float, float]:
        """Affine scores of the induced pairs (a, b), (a, c), (b, c): columns with a
        gap in both rows are dropped first."""
        ab, ac, bc = (self._unscaled(self._pair(x, y, True)) for x, y in PAIRS)
        return ab, ac, bc

    @property
    def score_natural(self) -> float:
        """The sum of ``pair_scores``: what this alignment scores with natural gaps."""
        return self._unscaled(sum(self._pair(x, y, True) for x, y in PAIRS))

    def rescore(self) -> float:
        """The score of these rows under the gap model, counted anew from them."""
        drop = self.gap_model != "quasi-natural"
        return self._unscaled(sum(self._pair(x, y, drop) for x, y in PAIRS))

    def agreement(self) -> list[str]:
        """For each column ``three`` letters are equal, ``two``, all residues are
        ``similar`` (every pair scores above 0), or ``none``; X agrees with nothing."""
        codes = np.array([coded(row, self.scoring) for row in self.rows])
        residue = codes >= 0
        pairs = [(codes[x], codes[y], residue[x] & residue[y]) for x, y in PAIRS]
        same = sum(self.scoring.identical[x, y] & there for x, y, there in pairs)
        good = sum((self.scoring.scores[x, y] > 0) & there for x, y, there in pairs)
        kinds = np.select(
            [same == 3, good == 3, same == 1], ["three", "similar", "two"], "none"
        )
        return kinds.tolist()

    def consensus(self) -> str:
        """A letter a column: that of all three; of two, in lower case; ``+`` where
        all three are similar; else a blank."""
        columns = zip(zip(*self.rows, strict=True), self.agreement(), strict=True)
        return "".join(_agreed(letters, kind) for letters, kind in columns)

    def _pair(self, x, y, drop) -> int:
        rows = (coded(self.rows[n], self.scoring) for n in (x, y))
        return pair_score(*rows, self.scoring, self.mode == "semiglobal", drop)

    def _unscaled(self, score):
        return score if self.scoring.scale == 1 else score / self.scoring.scale


def _agreed(letters, kind) -> str:
    most = max((x for x in letters if x != "-"), key=letters.count)
    if kind == "three":
        return most.upper()
    if letters.count(most) == 2 and kind != "none":
        return most.lower()
    return "+" if kind == "similar" else " "


def coded(row: str, scoring: Scoring) -> np.ndarray:
    """A gapped row -> int64 codes, -1 for a gap."""
    letters = np.frombuffer(row.encode("latin-1"), np.uint8)
    codes = np.full(len(letters), -1, np.int64)
    residue = letters != ord("-")
    codes[residue] = scoring.alphabet.encode(letters[residue])
    return codes


def pair_score(x, y, scoring: Scoring, free: bool, drop: bool) -> int:
    """The scaled affine score of two gapped rows of codes, -1 for a gap.

    With ``drop``, columns of two gaps are left out first, so that they cut no gap in
    two; with ``free``, gaps before the first or after the last residue of the row with
    the gap cost nothing.
    """
    if drop:
        some = (x >= 0) | (y >= 0)
        x, y = x[some], y[some]
    paired = (x >= 0) & (y >= 0)
    total = int(scoring.scores[x[paired], y[paired]].sum())
    for row, other in ((x, y), (y, x)):
        gap = (row < 0) & (other >= 0)
        if free:
            before = np.cumsum(row >= 0)
            gap &= (before > 0) & (before < (row >= 0).sum())
        opens = int((gap & ~np.append(False, gap[:-1])).sum())
        total -= opens * scoring.open + (int(gap.sum()) - opens) * scoring.extend
    return total
