"""One alignment of two sequences: spans, operations, counts, rescoring.

*Partners* of an alignment are another form: int32 (m,), for each residue of the query
the residue of the target it is paired with (from 0, rising), -1 for none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jaxalign.errors import InputError, UsageError
from jaxalign.model import frames, operations, show
from jaxalign.model.alphabet import TRACK, Alphabet
from jaxalign.model.identity import denominator, ratio
from jaxalign.model.scoring import Scoring
from jaxalign.model.strands import MINUS

SPANS = ("query_start", "query_end", "target_start", "target_end")
COUNTS = ("identities", "columns", "gap_openings", "gaps")
MEANINGS = {  # of the signs between two rows: style and legend
    "|": ("i", "identical"),
    ":": ("s", "scores above 0"),
    ".": ("o", "scores 0 or less"),
    " ": ("g", "gap"),
}


@dataclass(frozen=True, eq=False)
class Alignment:
    """An alignment of two sequences, and its score.

    ``operations`` (uint32 runs, ``length << 4 | operation``; M is 0, I 1 and D 2)
    describe the core, from start cell to end cell. Residues that overhang at free ends,
    or lie outside a local alignment, are outside the spans, which are half-open and
    zero-based. ``print`` shows the core, numbered from 1. ``strand`` is 1 or -1 if
    strands were considered, otherwise None. On the minus strand (-1), ``query`` is the
    reverse complement, and operations and spans run along it; only the columns of
    ``to_pandas`` count along the plus strand, as those of a table do. ``states`` are
    the second tracks of query and target, where the scoring has two. It is an
    ``AlignmentResult`` (``model.frames``).
    """

    query: str
    target: str
    score: float
    query_start: int
    query_end: int
    target_start: int
    target_end: int
    operations: np.ndarray
    scoring: Scoring
    mode: str = "global"
    free_ends: frozenset = frozenset()
    query_name: str = "query"
    target_name: str = "target"
    implementation: str = ""
    strand: int | None = None
    states: tuple[str, str] | None = None

    def cigar(self, eqx: bool = False) -> str:
        """Return the CIGAR of the core: M, I (consumes query), D (consumes target).

        ``eqx`` writes ``=`` and ``X`` instead of M.
        """
        if not eqx:
            return operations.cigar(self.operations)
        encode, whole = self.scoring.alphabet.encode, (0, len(self.operations))
        query = encode(self.query)[self.query_start : self.query_end]
        target = encode(self.target)[self.target_start : self.target_end]
        runs, _ = operations.split_matches(self.operations, whole, query, target)
        return operations.cigar(runs)

    @property
    def columns(self) -> int:
        """Number of aligned columns, with gaps and without overhang."""
        return int((self.operations >> 4).sum())

    @property
    def gaps(self) -> int:
        """Number of columns with a gap."""
        kinds, lengths = self.operations & 15, self.operations >> 4
        return int(lengths[kinds != operations.M].sum())

    @property
    def gap_openings(self) -> int:
        """Number of gaps, runs of columns with a gap in the same row."""
        return int(((self.operations & 15) != operations.M).sum())

    @property
    def identities(self) -> int:
        """Number of columns with the same letter on both sides; X/X does not count."""
        a, b = self._paired()
        return int(self.scoring.identical[a, b].sum())

    def identity(self, kind: str = "alignment") -> float:
        """Divide identities by the denominator ``kind`` (``model.identity``): 0 to
        1."""
        counts = {name: getattr(self, name) for name in ("columns", "gaps", *SPANS)}
        below = denominator(kind, counts, len(self.query), len(self.target))
        return float(ratio(self.identities, below))

    def rows(self) -> tuple[str, str]:
        """Return the two gapped rows of the core, with ``-`` for a gap."""
        steps = operations.expand(self.operations)
        query = self.query[self.query_start : self.query_end]
        target = self.target[self.target_start : self.target_end]
        return _gapped(query, steps != operations.D), _gapped(
            target, steps != operations.I
        )

    def rescore(self) -> float:
        """Recompute the score from operations, matrix and gap costs."""
        a, b = self._paired()
        if self.scoring.tracks:
            alphabet = self.scoring.alphabet.states
            if self.states is None or alphabet is None:
                raise UsageError("the scoring has two tracks, and the alignment one")
            second = self._paired(self.states, alphabet)
            a, b = (x + y * TRACK for x, y in zip((a, b), second, strict=True))
        if self.scoring.by_position:
            steps = operations.expand(self.operations)
            paired = (steps == operations.M)[steps != operations.D]
            a = self.query_start + np.flatnonzero(paired)
        total = int(self.scoring.pair_scores(a, b).sum())
        costs, position = self.scoring.gap_costs, self.query_start
        for run in self.operations.tolist():
            kind, count = run & 15, run >> 4
            if kind != operations.D:
                position += count
            if kind == operations.M:
                continue
            if costs is None:
                total -= self.scoring.open + (count - 1) * self.scoring.extend
            elif kind == operations.D:
                behind = position - 1
                total -= int(costs.open_f[behind])
                total -= (count - 1) * int(costs.extend_f[behind])
            else:
                first, stop = position - count, position
                total -= int(costs.open_e[first])
                total -= int(costs.extend_e[first + 1 : stop].sum())
        return total if self.scoring.scale == 1 else total / self.scoring.scale

    def __str__(self) -> str:
        return "\n".join((self._heading(), *show.blocks(*self._shown())))

    def __repr__(self) -> str:
        pair = (show.cell(name) for name in (self.query_name, self.target_name))
        what = f"score={show.number(self.score)}, mode={self.mode!r}"
        what += ", strand=-1" if self.strand == MINUS else ""
        spans = f"[{self.query_start}:{self.query_end}], [{self.target_start}:"
        return f"<Alignment {' / '.join(pair)}: {what}, {spans}{self.target_end}]>"

    def _repr_html_(self) -> str:
        return show.coloured(self._heading(), *self._shown(), MEANINGS)

    # one row: names, score, spans, counts, CIGAR
    to_pandas, to_arrow, to_polars = frames.METHODS[:3]

    @property
    def _starts(self) -> tuple[int, int]:
        return self.query_start, self.target_start

    def _shown(self) -> tuple[Sequence[str], Sequence[str], Sequence[int], str]:
        """Names, gapped rows, where they start, and the signs between them."""
        rows = self.rows()
        signs = show.marks(*rows, self.scoring, self.query_start)
        return (self.query_name, self.target_name), rows, self._starts, signs

    def _heading(self) -> str:
        same, columns = self.identities, show.counted(self.columns, "column")
        mode = self.mode + ("; minus strand" if self.strand == MINUS else "")
        return (
            f"score {show.number(self.score)}; {mode}; {columns}, "
            f"{same:,} identical, {self.gaps:,} in gaps; {self.scoring}"
        )

    def _columns(self) -> dict:
        names = {"query": [self.query_name], "target": [self.target_name]}
        values = ("score", *SPANS, *COUNTS)
        numbers = {name: [getattr(self, name)] for name in values}
        if self.strand is not None:
            numbers["strand"] = [self.strand]
        if self.strand == MINUS:
            m = len(self.query)
            numbers["query_start"] = [m - self.query_end]
            numbers["query_end"] = [m - self.query_start]
        return names | numbers | {"cigar": [self.cigar()]}

    def _paired(
        self, texts: tuple[str, str] | None = None, alphabet: Alphabet | None = None
    ):
        """Codes of the residue pairs, int64, column by column; of the letters, or of
        other ``texts`` of an alphabet."""
        steps = operations.expand(self.operations)
        encode = (alphabet or self.scoring.alphabet).encode
        query, target = (encode(x) for x in texts or (self.query, self.target))
        query = query[self.query_start : self.query_end].astype(np.int64)
        target = target[self.target_start : self.target_end].astype(np.int64)
        return query[(steps == operations.M)[steps != operations.D]], target[
            (steps == operations.M)[steps != operations.I]
        ]

    def to_biotite(self):
        """Return a ``biotite.sequence.align.Alignment`` of the core, -1 for a gap.

        Sequences are ``ProteinSequence`` or ``NucleotideSequence`` if the alphabet
        allows, otherwise ``GeneralSequence``. Needs biotite.
        """
        from biotite.sequence.align import Alignment as BiotiteAlignment

        steps = operations.expand(self.operations)
        trace = np.full((len(steps), 2), -1, np.int64)
        trace[steps != operations.D, 0] = np.arange(self.query_start, self.query_end)
        trace[steps != operations.I, 1] = np.arange(self.target_start, self.target_end)
        pair = [_biotite_sequence(t, self.scoring) for t in (self.query, self.target)]
        return BiotiteAlignment(pair, trace, self.score)

    def to_biopython(self):
        """Return a ``Bio.Align.Alignment`` of the core (needs Biopython).

        Its first sequence is the target, as in Biopython. Both are ``SeqRecord`` with
        names, and include the residues outside the spans.
        """
        from Bio.Align import Alignment as BiopythonAlignment
        from Bio.Seq import Seq
        from Bio.SeqRecord import SeqRecord

        sequences = (self.target, self.target_name), (self.query, self.query_name)
        records = [SeqRecord(Seq(text), id=name) for text, name in sequences]
        turns = operations.corners(self.operations, self._starts)
        alignment = BiopythonAlignment(records, turns[::-1])
        alignment.score = self.score  # pyright: ignore[reportAttributeAccessIssue]
        return alignment

    @classmethod
    def from_biotite(cls, alignment: Any, scoring: Scoring, mode: str = "global"):
        """Convert a biotite ``alignment`` of two sequences, with its ``scoring`` and
        ``mode``.

        Raises
        ------
        InputError
            If there are not two sequences, or a column has two gaps.
        """
        trace = np.asarray(alignment.trace)
        if trace.shape[1] != 2 or (trace == -1).all(axis=1).any():
            raise InputError("a biotite alignment of two sequences is needed")
        steps = np.where(
            trace[:, 1] == -1, operations.I, np.where(trace[:, 0] == -1, 2, 0)
        )
        runs = operations.run_lengths(steps.astype(np.uint8), np.array([len(steps)]))[0]
        # Spans from the first to the last residue of each column of the trace.
        paired = [column[column >= 0] for column in trace.T]
        spans = [(int(x[0]), int(x[-1]) + 1) if x.size else (0, 0) for x in paired]
        texts = [str(sequence) for sequence in alignment.sequences]
        score = 0 if alignment.score is None else alignment.score
        query, target = texts
        (query_start, query_end), (target_start, target_end) = spans
        return cls(
            query,
            target,
            score,
            query_start,
            query_end,
            target_start,
            target_end,
            runs,
            scoring,
            mode,
        )


def _gapped(letters: str, present: np.ndarray) -> str:
    row = np.full(len(present), ord("-"), np.uint8)
    row[present] = np.frombuffer(letters.encode("latin-1"), np.uint8)
    return row.tobytes().decode("latin-1")


def _biotite_sequence(text: str, scoring: Scoring):
    import biotite.sequence as seq

    kind = scoring.alphabet.kind
    if kind == "protein":
        return seq.ProteinSequence(text)
    if kind == "dna":
        return seq.NucleotideSequence(text)
    return seq.GeneralSequence(seq.LetterAlphabet(scoring.alphabet.letters), text)


def most_accurate(posterior: ArrayLike, threshold: float = 0.0) -> np.ndarray:
    """The alignment with the largest sum of ``posterior - threshold`` over its pairs.

    The recurrence of a longest common subsequence with weights: gaps cost nothing.

    posterior : (m, n) probabilities
    threshold : pairs below it never pay; 0.5 keeps only pairs that are likelier than
        not.
    Returns int32 (m,). Partners.
    """
    gain = np.asarray(posterior, np.float64) - threshold
    m, n = gain.shape
    best = np.zeros((m + 1, n + 1))
    for i in range(m):
        # best[i+1, j] = max(best[i, j], best[i, j-1] + gain, best[i+1, j-1])
        row = np.maximum(best[i, 1:], best[i, :-1] + gain[i])
        np.maximum.accumulate(row, out=best[i + 1, 1:])
        np.maximum(best[i + 1, 1:], 0, out=best[i + 1, 1:])
    i, j, partners = m, n, np.full(m, -1, np.int32)
    while i and j:
        if best[i, j] == best[i - 1, j]:
            i -= 1
        elif best[i, j] == best[i, j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            partners[i] = j
    return partners


def partners_of(alignment: "Alignment") -> np.ndarray:
    """Partners of an ``Alignment``, int32 (m,)."""
    steps = operations.expand(alignment.operations)
    i = alignment.query_start + np.cumsum(steps != operations.D) - 1
    j = alignment.target_start + np.cumsum(steps != operations.I) - 1
    partners = np.full(len(alignment.query), -1, np.int32)
    partners[i[steps == operations.M]] = j[steps == operations.M]
    return partners


def packed_path(partners: np.ndarray, m: int, n: int, mode: str, free: frozenset):
    """Partners -> (spans, operations); free overhang is outside the spans.

    Between two pairs the query's residues come first. Where both sequences hang over
    at one end and both may, the longer piece is the one left outside.

    Returns (query_start, query_end, target_start, target_end), uint32 operations.
    """
    i = np.flatnonzero(partners >= 0)
    j = partners[i].astype(np.int64)
    if not len(i):
        if mode == "local" or len(free) == 4:
            return (0, 0, 0, 0), np.zeros(0, np.uint32)
        return (0, m, 0, n), _packed([(operations.I, m), (operations.D, n)])
    q0, t0 = _outside(i[0], j[0], mode, free, "start")
    q1, t1 = _outside(m - 1 - i[-1], n - 1 - j[-1], mode, free, "end")
    spans = q0, m - q1, t0, n - t1
    k, l = np.diff(i, prepend=q0 - 1) - 1, np.diff(j, prepend=t0 - 1) - 1
    steps = [
        run
        for a, b in zip(k, l, strict=True)
        for run in ((operations.I, a), (operations.D, b), (operations.M, 1))
    ]
    tail = [(operations.I, spans[1] - 1 - i[-1]), (operations.D, spans[3] - 1 - j[-1])]
    return tuple(int(x) for x in spans), _packed(steps + tail)


def between(
    partners: np.ndarray, spans: Sequence[int], query_first: bool
) -> np.ndarray:
    """Operations, uint32, of the alignment with these partners and spans.

    ``query_first`` says which of two gaps between two pairs comes first.
    """
    q0, q1, t0, t1 = spans
    i = np.flatnonzero(partners >= 0)
    j = partners[i].astype(np.int64)
    k = np.diff(i, prepend=q0 - 1, append=q1) - 1
    l = np.diff(j, prepend=t0 - 1, append=t1) - 1
    steps = []
    for a, b in zip(k, l, strict=True):
        gaps = (operations.I, a), (operations.D, b)
        steps += [*(gaps if query_first else gaps[::-1]), (operations.M, 1)]
    return _packed(steps[:-1])


def _outside(k: int, l: int, mode: str, free: frozenset[str], end: str):
    """Count the overhanging residues, of k and l, outside the alignment."""
    if mode == "local":
        return k, l
    query, target = f"query_{end}" in free, f"target_{end}" in free
    if query and target:
        return (k, 0) if k >= l else (0, l)
    return (k if query else 0), (l if target else 0)


def _packed(runs: list[tuple[int, int]]) -> np.ndarray:
    steps = np.repeat(*np.array(runs, np.int64).T).astype(np.uint8)
    return operations.run_lengths(steps, np.array([len(steps)]))[0]
