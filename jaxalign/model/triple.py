"""One alignment of three sequences: rows, spans, and scores counted from the rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, get_args

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.model import frames, operations, show
from jaxalign.model.alignment import SPANS, Alignment
from jaxalign.model.choices import GapModel
from jaxalign.model.scoring import FREE_ENDS, Scoring

GAP_MODELS: tuple[str, ...] = get_args(GapModel)
PAIRS = ((0, 1), (0, 2), (1, 2))
SIGNS = {"three": "*", "similar": ":", "two": ".", "none": " "}
MEANINGS = {  # of the signs below three rows: style and legend
    "*": ("i", "three equal"),
    ":": ("s", "similar"),
    ".": ("o", "two equal"),
    " ": ("g", "other"),
}


@dataclass(frozen=True, eq=False)
class TripleAlignment:
    """An alignment of three sequences, a, b and c.

    ``gapped`` holds the three gapped rows that ``rows`` returns, or None without a
    traceback. ``spans`` are half-open and zero-based. In local mode, rows and spans
    cover the match, otherwise the whole sequences. ``seconds`` and ``bytes`` are given
    by phase of the work. ``print`` shows the rows, numbered from 1, with a sign for
    each column: ``*`` three equal letters, ``:`` all pairs score above 0, ``.`` two
    equal letters. It is an ``AlignmentResult`` (``model.frames``).
    """

    sequences: tuple[str, str, str]
    names: tuple[str, str, str]
    score: float
    gapped: tuple[str, str, str] | None
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

    def rows(self) -> tuple[str, str, str]:
        """Return the three gapped rows, with ``-`` for a gap.

        Raises
        ------
        UsageError
            If only the score was computed.
        """
        if self.gapped is None:
            raise UsageError("no rows: only the score was asked for (traceback=None)")
        return self.gapped

    def pairs(self) -> tuple[Alignment, Alignment, Alignment]:
        """Return the induced alignments of (a, b), (a, c) and (b, c).

        Columns with a gap in both rows are dropped. Their scores are
        ``pair_scores``."""
        ab, ac, bc = (induced(self, x, y) for x, y in PAIRS)
        return ab, ac, bc

    def cigar(self, eqx: bool = False) -> tuple[str, str, str]:
        """Return the CIGARs of ``pairs``; ``eqx`` writes ``=`` and ``X`` for M."""
        ab, ac, bc = (pair.cigar(eqx) for pair in self.pairs())
        return ab, ac, bc

    def identity(self, kind: str = "alignment") -> tuple[float, float, float]:
        """Return the identities of ``pairs`` over the denominator ``kind``, 0 to 1."""
        ab, ac, bc = (pair.identity(kind) for pair in self.pairs())
        return ab, ac, bc

    @property
    def columns(self) -> int:
        """Number of columns of the rows."""
        return len(self.rows()[0])

    @property
    def pair_scores(self) -> tuple[float, float, float]:
        """Affine scores of the induced pairs (a, b), (a, c) and (b, c), after dropping
        columns with a gap in both rows."""
        ab, ac, bc = (self._unscaled(self._pair(x, y, True)) for x, y in PAIRS)
        return ab, ac, bc

    @property
    def score_natural(self) -> float:
        """Sum of ``pair_scores``: the score of this alignment with natural gaps."""
        return self._unscaled(sum(self._pair(x, y, True) for x, y in PAIRS))

    def rescore(self) -> float:
        """Recompute the score of the rows under the gap model."""
        drop = self.gap_model != "quasi-natural"
        return self._unscaled(sum(self._pair(x, y, drop) for x, y in PAIRS))

    def agreement(self) -> list[str]:
        """Classify each column: ``three`` or ``two`` equal letters, ``similar`` (every
        pair scores above 0), or ``none``. X equals nothing."""
        codes = np.array([coded(row, self.scoring) for row in self.rows()])
        residue = codes >= 0
        pairs = [(codes[x], codes[y], residue[x] & residue[y]) for x, y in PAIRS]
        same = sum(self.scoring.identical[x, y] & there for x, y, there in pairs)
        good = sum((self.scoring.scores[x, y] > 0) & there for x, y, there in pairs)
        kinds = np.select(
            [same == 3, good == 3, same == 1], ["three", "similar", "two"], "none"
        )
        return kinds.tolist()

    def consensus(self) -> str:
        """Return one character per column: the letter of all three; that of two, in
        lower case; ``+`` if all three are similar; otherwise a blank."""
        columns = zip(zip(*self.rows(), strict=True), self.agreement(), strict=True)
        return "".join(_agreed(letters, kind) for letters, kind in columns)

    def __str__(self) -> str:
        if self.gapped is None:
            return self._heading()
        lines = show.blocks(*self._shown(), under=True)
        return "\n".join((self._heading(), *lines))

    def __repr__(self) -> str:
        names = " / ".join(map(show.cell, self.names))
        what = f"score={show.number(self.score)}, mode={self.mode!r}"
        return f"<TripleAlignment {names}: {what}, gap_model={self.gap_model!r}>"

    def _repr_html_(self) -> str:
        if self.gapped is None:
            return f"<p>{escape(self._heading())}</p>"
        return show.coloured(self._heading(), *self._shown(), MEANINGS)

    # one row: names, score, spans, columns, scores and CIGARs of the induced pairs
    to_pandas, to_arrow, to_polars = frames.METHODS[:3]

    def _columns(self) -> dict[str, Any]:
        """The alignment as columns of one row."""
        return dict(_cells(self))

    def _shown(self) -> tuple[Sequence[str], Sequence[str], Sequence[int], str]:
        """Names, gapped rows, where they start, and the signs below them."""
        signs = "".join(SIGNS[kind] for kind in self.agreement())
        return self.names, self.rows(), [start for start, _ in self.spans], signs

    def _heading(self) -> str:
        what = f"score {show.number(self.score)}; {self.mode}; {self.gap_model} gaps"
        return f"{what}; {self.scoring}"

    def _pair(self, x: int, y: int, drop: bool) -> int:
        a, b = (coded(self.rows()[n], self.scoring) for n in (x, y))
        return pair_score(a, b, self.scoring, self.mode == "semiglobal", drop)

    def _unscaled(self, score: Any):
        return score if self.scoring.scale == 1 else score / self.scoring.scale


def _cells(triple: TripleAlignment) -> Iterator[tuple[str, list]]:
    """Names and values of the one row of a data frame."""
    yield from (
        (letter, [name]) for letter, name in zip("abc", triple.names, strict=True)
    )
    yield "score", [triple.score]
    if triple.gapped is None or triple.spans is None:
        return
    for letter, span in zip("abc", triple.spans, strict=True):
        yield f"{letter}_start", [span[0]]
        yield f"{letter}_end", [span[1]]
    yield "columns", [triple.columns]
    for (x, y), score, cigar in zip(
        PAIRS, triple.pair_scores, triple.cigar(), strict=True
    ):
        yield f"score_{'abc'[x]}{'abc'[y]}", [score]
        yield f"cigar_{'abc'[x]}{'abc'[y]}", [cigar]


def induced(triple: TripleAlignment, x: int, y: int) -> Alignment:
    """The alignment of two of the sequences that the three rows imply.

    Columns with a gap in both rows are dropped. In semiglobal mode what hangs over, a
    gap before the first or after the last residue of its row, lies outside the spans.
    """
    # The operation of each column in which one of the two rows has a residue.
    pair_rows = [triple.rows()[n] for n in (x, y)]
    gaps = [
        np.frombuffer(row.encode("latin-1"), np.uint8) == ord("-") for row in pair_rows
    ]
    steps = np.where(
        gaps[0], operations.D, np.where(gaps[1], operations.I, operations.M)
    )
    steps = steps[~(gaps[0] & gaps[1])].astype(np.uint8)
    runs = operations.run_lengths(steps, np.array([len(steps)]))[0]
    spans = [list(triple.spans[n]) for n in (x, y)]
    ends = frozenset(FREE_ENDS if triple.mode == "semiglobal" else ())
    if ends:  # take a gap at the start and one at the end off
        core = runs.tolist()
        for end, sign in ((0, 1), (-1, -1)):
            if core and core[end] & 15 != operations.M:
                run = core.pop(end)
                spans[run & 15 == operations.D][end] += sign * (run >> 4)
        runs = np.array(core, np.uint32)
    pair = Alignment(
        query=triple.sequences[x],
        target=triple.sequences[y],
        score=0,
        **dict(zip(SPANS, (*spans[0], *spans[1]), strict=True)),
        operations=runs,
        scoring=triple.scoring,
        mode=triple.mode,
        free_ends=ends,
        query_name=triple.names[x],
        target_name=triple.names[y],
        implementation=triple.implementation,
    )
    return replace(pair, score=pair.rescore())


def _agreed(letters: Sequence[str], kind: str) -> str:
    letter = max((x for x in letters if x != "-"), key=letters.count)
    if kind == "three":
        return letter.upper()
    if letters.count(letter) == 2 and kind != "none":
        return letter.lower()
    return "+" if kind == "similar" else " "


def coded(row: str, scoring: Scoring) -> np.ndarray:
    """A gapped row -> int64 codes, -1 for a gap."""
    letters = np.frombuffer(row.encode("latin-1"), np.uint8)
    codes = np.full(len(letters), -1, np.int64)
    residue = letters != ord("-")
    codes[residue] = scoring.alphabet.encode(letters[residue])
    return codes


def pair_score(
    x: np.ndarray, y: np.ndarray, scoring: Scoring, free: bool, drop: bool
) -> int:
    """The scaled affine score of two gapped rows of codes, -1 for a gap.

    With ``drop``, columns of two gaps are left out first, so that they cut no gap in
    two; with ``free``, gaps before the first or after the last residue of the row with
    the gap cost nothing.
    """
    if drop:
        columns = (x >= 0) | (y >= 0)
        x, y = x[columns], y[columns]
    paired = (x >= 0) & (y >= 0)
    total = int(scoring.scores[x[paired], y[paired]].sum())
    for row, partner in ((x, y), (y, x)):
        gap = (row < 0) & (partner >= 0)
        if free:
            before = np.cumsum(row >= 0)
            gap &= (before > 0) & (before < (row >= 0).sum())
        opens = int((gap & ~np.append(False, gap[:-1])).sum())
        total -= opens * scoring.open + (int(gap.sum()) - opens) * scoring.extend
    return total
