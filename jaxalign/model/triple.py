"""Alignments of three sequences, one or many as columns: rows, spans, and scores
counted from the rows."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from itertools import pairwise
from typing import Any, get_args, overload

import numpy as np
from numpy.typing import ArrayLike

from jaxalign.errors import UsageError
from jaxalign.model import frames, operations, show
from jaxalign.model.alignment import SPANS, Alignment
from jaxalign.model.alphabet import Sequences, gather_runs, ranks, row_numbers
from jaxalign.model.choices import GapModel
from jaxalign.model.scoring import FREE_ENDS, Scoring

GAP_MODELS: tuple[str, ...] = get_args(GapModel)
PAIRS = ((0, 1), (0, 2), (1, 2))
SIGNS = {"three": "*", "similar": ":", "two": ".", "none": " "}
BLOCK = 2**14  # triples made into objects at a time, by an iteration
NEITHER = 15  # an operation that no pair has: two gaps
# [has x a residue, has y]: the operation of a column of a pair
NO_ROWS = "no rows: only the score was asked for; leave out traceback=None"
KINDS = np.array([[NEITHER, operations.D], [operations.I, operations.M]], np.uint8)
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
            raise UsageError(NO_ROWS)
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


@dataclass(frozen=True, eq=False)
class TripleTable:
    """Alignments of many triples as columns, in input order, an ``AlignmentResult``.

    ``len(table)`` counts the triples; ``table[3]`` and a ``for`` loop give each as a
    ``TripleAlignment``, ``table[10:20]`` is a table. ``sequences`` has three of each
    triple, ``score`` (n,) is int64, or float64 where the scoring is scaled, ``spans``
    int64 (n, 3, 2). ``steps`` uint8 has the columns of all alignments, 4 for a residue
    of a, + 2 of b, + 1 of c, and ``offsets`` int64 (n + 1,) where each begins; all
    three are None where no traceback was asked for. ``jobs[job[k]]`` tells how triple
    k was computed, ``cells`` (n,) how many.
    """

    sequences: Sequences
    scoring: Scoring
    gap_model: str
    mode: str
    score: np.ndarray
    cells: np.ndarray
    jobs: tuple[dict[str, Any], ...]
    job: np.ndarray
    spans: np.ndarray | None = None
    steps: np.ndarray | None = None
    offsets: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.score)

    @overload
    def __getitem__(self, key: int) -> TripleAlignment: ...
    @overload
    def __getitem__(self, key: slice) -> "TripleTable": ...
    def __getitem__(self, key: int | slice):
        """A triple by number, a table by a slice."""
        if isinstance(key, slice):
            first, last, step = key.indices(len(self))
            if step == 1:
                return self._between(first, max(first, last))
            return self.filter(np.arange(len(self))[key])
        index = range(len(self))[key]
        return next(iter(self._between(index, index + 1)))

    def __iter__(self) -> Iterator[TripleAlignment]:
        for first in range(0, len(self), BLOCK):
            part = self._between(first, min(first + BLOCK, len(self)))
            texts, names = _threes(part.sequences.texts()), _threes(part.names())
            rows: list[Any] = [None] * len(part)
            spans = rows
            if part.spans is not None:
                rows, spans = part.rows(), part.spans.tolist()
            for n, score in enumerate(part.score.tolist()):
                yield TripleAlignment(
                    sequences=texts[n],
                    names=names[n],
                    score=score,
                    gapped=rows[n],
                    spans=spans[n] and tuple(map(tuple, spans[n])),
                    scoring=self.scoring,
                    gap_model=self.gap_model,
                    mode=self.mode,
                    cells=int(part.cells[n]),
                    **deepcopy(part.jobs[part.job[n]]),
                )

    def names(self) -> list[str]:
        """The names of all sequences, three of each triple."""
        return list(self.sequences.names)

    def filter(self, which: ArrayLike) -> "TripleTable":
        """Select the triples ``which``: a mask or numbers, as of ``Table.filter``."""
        rows = row_numbers(which, len(self))
        part = replace(
            self,
            sequences=self.sequences.take((3 * rows[:, None] + np.arange(3)).ravel()),
            score=self.score[rows],
            cells=self.cells[rows],
            job=self.job[rows],
        )
        if self.steps is None or self.spans is None or self.offsets is None:
            return part
        steps, offsets = gather_runs(self.steps, self.offsets, rows)
        return replace(part, spans=self.spans[rows], steps=steps, offsets=offsets)

    def _between(self, first: int, last: int) -> "TripleTable":
        """Triples that follow each other; the table itself where that is all."""
        if (first, last) == (0, len(self)):
            return self
        part = replace(
            self,
            sequences=self.sequences.between(3 * first, 3 * last),
            score=self.score[first:last],
            cells=self.cells[first:last],
            job=self.job[first:last],
        )
        if self.steps is None or self.spans is None or self.offsets is None:
            return part
        offsets = self.offsets[first : last + 1]
        steps = self.steps[offsets[0] : offsets[-1]]
        offsets = offsets - offsets[0]
        return replace(part, spans=self.spans[first:last], steps=steps, offsets=offsets)

    def columns(self) -> dict[str, Any]:
        """The triples as columns: names, score and, with paths, spans, columns, and
        scores and CIGARs of the induced pairs."""
        names = self.names()
        columns: dict[str, Any] = {
            letter: _texts(names[n::3]) for n, letter in enumerate("abc")
        }
        columns["score"] = self.score
        if self.spans is None or self.offsets is None:
            return columns
        for n, letter in enumerate("abc"):
            columns[f"{letter}_start"] = self.spans[:, n, 0]
            columns[f"{letter}_end"] = self.spans[:, n, 1]
        columns["columns"] = np.diff(self.offsets)
        scores = self.pair_scores
        for n, (x, y) in enumerate(PAIRS):
            pair = f"{'abc'[x]}{'abc'[y]}"
            columns[f"score_{pair}"] = scores[:, n]
            columns[f"cigar_{pair}"] = _texts(self._cigars(x, y, False))
        return columns

    def rows(self) -> list[tuple[str, str, str]]:
        """The three gapped rows of every triple, ``-`` for a gap."""
        alphabet, (_, offsets) = self.scoring.alphabet, self._paths()
        letters = np.frombuffer((alphabet.letters + "-").encode(), np.uint8)
        a, b, c = (letters[row].tobytes().decode() for row in self._gapped)
        pairs = pairwise(offsets.tolist())
        return [(a[at:to], b[at:to], c[at:to]) for at, to in pairs]

    def cigar(self, eqx: bool = False) -> list[tuple[str, str, str]]:
        """CIGARs of the induced pairs; with ``eqx``, ``=`` and ``X`` instead of M."""
        return list(zip(*(self._cigars(x, y, eqx) for x, y in PAIRS), strict=True))

    def identity(self, kind: str = "alignment") -> np.ndarray:
        """Identities of the induced pairs (n, 3) over the denominator ``kind``."""
        out = np.array([triple.identity(kind) for triple in self], float)
        return out.reshape(-1, 3)

    @property
    def pair_scores(self) -> np.ndarray:
        """Affine scores (n, 3) of the induced pairs (a, b), (a, c) and (b, c)."""
        scores = [self._pair_scores(x, y, True) for x, y in PAIRS]
        return self._unscaled(np.stack(scores, axis=1))

    @property
    def score_natural(self) -> np.ndarray:
        """Scores (n,) of the rows with natural gaps, sums of ``pair_scores``."""
        return self._unscaled(sum(self._pair_scores(x, y, True) for x, y in PAIRS))

    def rescore(self) -> np.ndarray:
        """Recompute the scores (n,) of the rows under the gap model."""
        drop = self.gap_model != "quasi-natural"
        return self._unscaled(sum(self._pair_scores(x, y, drop) for x, y in PAIRS))

    to_pandas, to_arrow, to_polars, write, __repr__, _repr_html_ = frames.METHODS

    def __str__(self) -> str:
        heading = "a", "b", "c", "score"
        body = []
        for k in show.some_rows(len(self)):
            cells = ["..."] * len(heading)
            if k is not None:
                named = self.sequences.names[3 * k : 3 * k + 3]
                cells = [*map(show.cell, named), show.number(self.score[k].item())]
            body.append(cells)
        return "\n".join((self.heading(), "", *show.lines_of(heading, body)))

    def heading(self) -> str:
        """Number of triples, mode, gap model and scoring."""
        what = f"{show.counted(len(self), 'triple')}; {self.mode}; {self.gap_model}"
        return f"{what} gaps; {self.scoring}"

    def _paths(self) -> tuple[np.ndarray, np.ndarray]:
        if self.steps is None or self.offsets is None:
            raise UsageError(NO_ROWS)
        return self.steps, self.offsets

    @cached_property
    def _gapped(self) -> np.ndarray:
        """Codes of the gapped rows (3, columns of all), the alphabet's size for a
        gap."""
        steps, _ = self._paths()
        assert self.spans is not None  # for pyright: there are paths
        out = np.full((3, len(steps)), self.scoring.alphabet.size, np.uint8)
        first = self.sequences.starts.reshape(-1, 3)
        for n, row in enumerate(out):
            low, high = self.spans[:, n].T
            at = np.repeat(first[:, n] + low, high - low) + ranks(high - low)
            row[steps & (4 >> n) > 0] = self.sequences.codes[at]
        return out

    def _pair_scores(self, x: int, y: int, drop: bool) -> np.ndarray:
        """Scaled scores (n,) of an induced pair, as ``pair_score``."""
        steps, offsets = self._paths()
        first, second = (steps & (4 >> side) > 0 for side in (x, y))
        rows = self._gapped[[x, y]]
        if drop:  # columns of two gaps
            filled = first | second
            offsets = np.concatenate([[0], np.cumsum(filled)])[offsets]
            first, second, rows = first[filled], second[filled], rows[:, filled]
        size = self.scoring.alphabet.size + 1
        scores = np.zeros((size, size), np.int64)  # no score for a gap
        scores[:-1, :-1] = self.scoring.scores
        total = scores.ravel()[rows[0].astype(np.intp) * size + rows[1]]
        starts = offsets[:-1][offsets[:-1] < offsets[1:]]
        for row, partner in ((first, second), (second, first)):
            gap = partner & ~row
            # Those before the first residue of the row and after the last are free.
            if self.mode == "semiglobal":
                taken = np.concatenate([[0], np.cumsum(row)])
                low, high = (
                    np.repeat(taken[ends], np.diff(offsets))
                    for ends in (offsets[:-1], offsets[1:])
                )
                gap &= (taken[1:] > low) & (taken[1:] < high)
            before = np.append(False, gap[:-1])
            before[starts] = False
            total[gap] -= np.where(before[gap], self.scoring.extend, self.scoring.open)
        sums = np.concatenate([[0], np.cumsum(total)])
        return np.diff(sums[offsets])

    def _cigars(self, x: int, y: int, eqx: bool) -> list[str]:
        """CIGARs of an induced pair, without the gaps that hang over in semiglobal
        mode."""
        steps, offsets = self._paths()
        kinds = KINDS[(steps >> (2 - x)) & 1, (steps >> (2 - y)) & 1]
        if eqx:
            rows = self._gapped[[x, y]]
            same = (kinds == operations.M) & (rows[0] == rows[1])
            kinds = np.where(
                same, operations.EQUAL, np.where(kinds == 0, operations.DIFFER, kinds)
            ).astype(np.uint8)
        filled = kinds != NEITHER
        offsets = np.concatenate([[0], np.cumsum(filled)])[offsets]
        runs, offsets = operations.run_lengths(kinds[filled], np.diff(offsets))
        if self.mode == "semiglobal":
            hangs = np.isin(runs & 15, (operations.I, operations.D))
            first, last = offsets[:-1], offsets[1:] - 1
            paired = first <= last
            cut = np.zeros(len(runs), bool)
            for ends in (first[paired], last[paired]):
                cut[ends] |= hangs[ends]
            offsets = np.concatenate([[0], np.cumsum(~cut)])[offsets]
            runs = runs[~cut]
        text, ends = operations.cigars(runs, offsets)
        letters = text.tobytes().decode()
        return [letters[at:to] for at, to in pairwise(ends.tolist())]

    def _unscaled(self, scores: Any) -> Any:
        return scores if self.scoring.scale == 1 else scores / self.scoring.scale


def _threes(items: Sequence[str]) -> list[tuple[str, str, str]]:
    return list(zip(items[::3], items[1::3], items[2::3], strict=True))


def _texts(items: list[str]) -> np.ndarray:
    out = np.empty(len(items), object)
    out[:] = items
    return out


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
