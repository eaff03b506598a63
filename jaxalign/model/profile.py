"""Profiles: a score for every letter at every position of a family of sequences.

A ``Profile`` is made of a sequence, of the columns of an alignment (aligned FASTA, a3m
or Stockholm), or of the model of a HMMER3 text file. Such a model has after its header
lines: HMM and a heading, COMPO, two lines before the first position, three lines
for each of LENG positions, and //. All numbers are -ln of probabilities, ``*`` that of
none, and those of a distribution sum to 1 (HMMER User's Guide 3.4, "HMMER profile HMM
files"). Nothing that is almost one is read.

A ``Family`` is a reference alignment: rows that curators aligned, and the pairs of
residues that they imply.
"""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jaxalign.errors import InputError, UsageError, shortened
from jaxalign.model import scoring
from jaxalign.model.alphabet import (
    BAD,
    NUCLEIC,
    PROTEIN,
    Alphabet,
    as_ascii,
    from_parts,
    named_alphabet,
)
from jaxalign.model.numbers import is_number
from jaxalign.model.scoring import Scoring, ScoringLike, as_scoring
from jaxalign.model.source import STDIN, label, open_text
from jaxalign.model.strands import look_nucleic


@dataclass(frozen=True)
class ReadText:
    """A text that was read, for what takes a path: a pipe is read once."""

    path: str
    lines: list[str]

    def __fspath__(self) -> str:
        return self.path

    def __str__(self) -> str:
        return label(self.path)


def read_text(source: Any) -> ReadText:
    """Read a text file as lines, numbered as an editor does."""
    if isinstance(source, ReadText):
        return source
    try:
        path = os.fsdecode(source)
    except TypeError as error:
        raise InputError(f"{source}: cannot be read as text ({error})") from error
    with open_text(path) as handle:
        return ReadText(path, handle.read().split("\n"))


def first_line(lines: list[str]) -> str:
    """The first line that is not blank."""
    return next((line for line in lines if line.strip()), "")


def wrong(source: Any, line: int, why: str) -> InputError:
    """An error in a line, which is counted from 1."""
    return InputError(f"{source}, line {line}: {why}")


FAMILY_GAP = -1


@dataclass(frozen=True, eq=False)
class Family:
    """The aligned sequences of a family.

    ``codes`` (count, columns) int16 are the codes of an alphabet, ``GAP`` where a row
    has a gap.
    """

    name: str
    names: tuple[str, ...]
    codes: np.ndarray

    def __len__(self) -> int:
        return len(self.names)


def sequence(family: Family, k: int) -> np.ndarray:
    """Row ``k`` without its gaps, uint8 codes.

    Examples
    --------
    >>> import numpy as np
    >>> from jaxalign.model.profile import Family, sequence
    >>> family = Family("f", ("a", "b"), np.array([[3, -1, 4], [3, 5, -1]], np.int16))
    >>> sequence(family, 0).tolist()
    [3, 4]
    """
    row = family.codes[k]
    return row[row != FAMILY_GAP].astype(np.uint8)


def partners(family: Family, i: int, j: int) -> np.ndarray:
    """Partners of row ``i`` in row ``j`` (see ``model.alignment``), int32 (m,).

    Examples
    --------
    >>> import numpy as np
    >>> from jaxalign.model.profile import Family, partners
    >>> family = Family("f", ("a", "b"), np.array([[3, -1, 4], [3, 5, -1]], np.int16))
    >>> partners(family, 0, 1).tolist()
    [0, -1]
    """
    query_residues, target_residues = (family.codes[k] != FAMILY_GAP for k in (i, j))
    places = np.where(target_residues, np.cumsum(target_residues) - 1, -1)
    return places[query_residues].astype(np.int32)


def identity(family: Family, i: int, j: int) -> float:
    """Identical pairs over all pairs of two rows; 0 where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from jaxalign.model.profile import Family, identity
    >>> family = Family("f", ("a", "b"), np.array([[3, -1, 4], [3, 5, 2]], np.int16))
    >>> identity(family, 0, 1)
    0.5
    """
    a, b = family.codes[i], family.codes[j]
    paired = (a != FAMILY_GAP) & (b != FAMILY_GAP)
    return float((a == b)[paired].mean()) if paired.any() else 0.0


def agreement(partners: ArrayLike, reference: ArrayLike) -> tuple[float, float]:
    """(recall, precision) of pairs: the share of the reference's pairs that were found,
    and of the found ones that are in the reference; 1 of nothing.

    Parameters
    ----------
    found, reference : int32 (m,) partners

    Examples
    --------
    >>> from jaxalign.model.profile import agreement
    >>> agreement([0, 1, -1, 2], [0, 2, 3, -1])
    (0.3333333333333333, 0.3333333333333333)
    """
    partners, reference = np.asarray(partners), np.asarray(reference)
    right = int(((partners == reference) & (partners >= 0)).sum())
    counts = (int((pairs >= 0).sum()) for pairs in (reference, partners))
    recall, precision = (right / count if count else 1.0 for count in counts)
    return recall, precision


HMM_LETTERS, MOVES = 20, 7  # numbers in a line of emissions, and of transitions
DISTRIBUTIONS = (slice(0, 3), slice(3, 5), slice(5, 7))  # from M, I and D
MOST_ANNOTATIONS = 5  # behind the emissions of a position: MAP, CONS, RF, MM, CS
TOLERANCE = 0.05  # of the sum of a distribution, whose numbers are rounded
# With a point, so that a number that is missing is not taken from an annotation.
HMM_NUMBER = re.compile(r"-?\d+\.\d+(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
ONCE = ("NAME", "LENG", "ALPH")  # fields that every model has


class ModelLine(NamedTuple):
    """A line that is not blank: its number and its words."""

    number: int
    words: list[str]


def read_hmm(source: Any) -> tuple[str, np.ndarray, np.ndarray]:
    """(name, -ln of match emissions (m, 20), -ln of transitions behind each position
    (m, 7))."""
    source = read_text(source)
    lines = source.lines
    if not first_line(lines).startswith("HMMER3"):
        raise wrong(source, 1, "not a HMMER3 text file")
    rows = [ModelLine(k, x.split()) for k, x in enumerate(lines, 1) if x.strip()]
    start = next((k for k, row in enumerate(rows) if row.words[0] == "HMM"), None)
    if start is None:
        raise wrong(source, rows[-1].number, "no line begins with HMM")
    # The lines before HMM.
    fields: dict[str, ModelLine] = {}
    for row in rows[1:start]:
        field = row.words[0]
        if field in ONCE and field in fields:
            raise wrong(source, row.number, f"{field} comes twice")
        fields[field] = row
    for field in ONCE:
        if field not in fields:
            raise wrong(source, rows[start].number, f"no line {field} before HMM")
        if len(fields[field].words) < 2:
            raise wrong(source, fields[field].number, f"{field} has no value")
    kind, length = fields["ALPH"], fields["LENG"]
    if kind.words[1].lower() != "amino":
        raise wrong(source, kind.number, f"a model of {kind.words[1]}, not of proteins")
    if not length.words[1].isdecimal() or int(length.words[1]) < 1:
        raise wrong(source, length.number, f"LENG {length.words[1]}: must be 1 or more")
    name, length = " ".join(fields["NAME"].words[1:]), int(length.words[1])
    return name, *_body(source, rows[start + 1 :], rows[-1].number, length)


def _body(
    source: str | os.PathLike[str], rows: list[ModelLine], last: int, length: int
):
    """(emissions, transitions) of the lines behind HMM."""
    end = next((k for k, row in enumerate(rows) if row.words == ["//"]), None)
    if end is None:
        raise wrong(source, last, "the file ends before the model's last line, //")
    if rows[0].words[0] != "m->m":
        raise wrong(source, rows[0].number, "the heading of transitions is needed")
    if len(rows) > end + 1:
        why = "another model after //: a profile is one, which `hmmfetch FILE NAME`"
        raise wrong(source, rows[end + 1].number, f"{why} extracts")
    stop, rows = rows[end], rows[1:end]
    if rows and rows[0].words[0] == "COMPO":
        _emissions(source, rows.pop(0), "COMPO")
    largest = HMM_LETTERS + 1 + MOST_ANNOTATIONS
    kinds = (
        ("insert emissions", HMM_LETTERS, HMM_LETTERS),
        ("transitions", MOVES, MOVES),
        ("match emissions", HMM_LETTERS + 1, largest),
    )
    for place, row in enumerate(rows[: 3 * length + 2]):
        kind, smallest, largest = kinds[place % 3]
        if not smallest <= len(row.words) <= largest:
            words = f"{len(row.words)} words, where {kind} have {smallest}"
            words += f" to {largest}" if largest > smallest else ""
            raise wrong(source, row.number, words)
    if len(rows) != 3 * length + 2:
        raise wrong(
            source,
            stop.number,
            f"LENG {length} needs {3 * length + 2} lines of numbers before //, but "
            f"there are {len(rows)}",
        )
    _emissions(source, rows[0])
    _distributions(source, *rows[1], MOVES, DISTRIBUTIONS)
    emissions, transitions = [], []
    for k in range(length):
        match, insert, moves = rows[3 * k + 2 : 3 * k + 5]
        emissions.append(_emissions(source, match, str(k + 1)))
        _emissions(source, insert)
        transitions.append(_distributions(source, *moves, MOVES, DISTRIBUTIONS))
    return np.array(emissions), np.array(transitions)


def _emissions(
    source: str | os.PathLike[str], row: ModelLine, name: str | None = None
) -> list[float]:
    """-ln of 20 probabilities, behind the name of the line."""
    words = row.words
    if name is not None:
        if words[0] != name:
            raise wrong(
                source, row.number, f"position {name} is needed, not {words[0]}"
            )
        words = words[1 : HMM_LETTERS + 1] if name != "COMPO" else words[1:]
    return _distributions(
        source, row.number, words, HMM_LETTERS, (slice(0, HMM_LETTERS),)
    )


def _distributions(
    source: str | os.PathLike[str],
    number: int,
    words: list[str],
    count: int,
    parts: tuple[slice, ...],
) -> list[float]:
    """-ln of probabilities, each part of which sums to 1."""
    if len(words) != count:
        raise wrong(source, number, f"{len(words)} numbers, where {count} are needed")
    for word in words:
        if word == "*":
            continue
        if not HMM_NUMBER.fullmatch(word) or not 0 <= float(word) < np.inf:
            raise wrong(source, number, f"{word[:20]!r} is not -ln of a probability")
    values = [np.inf if word == "*" else float(word) for word in words]
    for part in parts:
        total = float(np.exp(-np.array(values[part])).sum())
        if abs(total - 1) > TOLERANCE:
            raise wrong(
                source,
                number,
                f"probabilities {' '.join(words[part])}, as -ln, sum to {total:.3g}",
            )
    return values


# Rows of HH-suite that are no sequences: secondary structure and accessibility, and the
# letters they were made for.
ANNOTATION = re.compile(r"(ss|sa|aa)_(pred|conf|dssp)\b")
OTHER_LETTERS = re.compile(r"[^A-Za-z.~*-]")  # no letter of a row, and no gap


COMPRESSED = re.compile(r"\.(gz|bgz|bz2|xz|zst)$", re.IGNORECASE)  # ends of names


class AlignedRow(NamedTuple):
    """Aligned letters, and where they are: a line of a file, or a row of a list."""

    line: int
    letters: str


def read_alignment(source: Any) -> tuple[str, list[str], bool]:
    """(name, aligned rows, whether columns are told by case)."""
    if not isinstance(source, (str, os.PathLike)):
        texts = list(source) if isinstance(source, Iterable) else [source]
        if not all(isinstance(text, str) for text in texts):
            raise InputError(
                "an alignment must be a path or a list of aligned rows of text"
            )
        rows = [AlignedRow(k, text) for k, text in enumerate(texts, 1)]
        _check(rows, lambda line, why: InputError(f"row {line} of an alignment: {why}"))
        return "alignment", [row.letters for row in rows], False
    source = read_text(source)
    lines = source.lines
    stockholm = first_line(lines).startswith("# STOCKHOLM")
    rows = (_stockholm if stockholm else _fasta)(lines, source)
    by_case = not stockholm and len({len(row.letters) for row in rows}) > 1
    if by_case:  # of a3m: what stands between columns goes
        columns = ((x for x in row.letters if not x.islower()) for row in rows)
        texts = ["".join(letters).replace(".", "") for letters in columns]
        rows = [AlignedRow(row.line, x) for row, x in zip(rows, texts, strict=True)]
    _check(rows, lambda line, why: wrong(source, line, why))
    name = Path(COMPRESSED.sub("", source.path)).stem
    name = "alignment" if source.path == STDIN else name
    return name, [row.letters for row in rows], by_case


ANOTHER = "another alignment behind the end of the first: a profile is of one"


def _check(rows: list[AlignedRow], error: Callable[[int, str], Exception]) -> None:
    """Check rows of one alignment; ``error`` takes a line and a reason."""
    if not rows:
        raise error(1, "there are no rows")
    length = len(rows[0].letters)
    for line, letters in rows:
        if invalid := OTHER_LETTERS.search(letters):
            raise error(line, f"{invalid[0]!r} is neither a letter nor a gap")
        if len(letters) != length or not length:
            raise error(
                line,
                f"{len(letters)} columns, where the first row has {length}: the rows "
                "of an alignment have one length",
            )


def _stockholm(lines: list[str], source: Any) -> list[AlignedRow]:
    """Rows of the alignment; blocks of one name are joined."""
    rows: dict[str, AlignedRow] = {}
    for number, line in enumerate(lines, 1):
        if line.startswith("//"):
            behind = enumerate(lines[number:], number + 1)
            if second := next((k for k, x in behind if x.strip("\0 \t")), None):
                raise wrong(source, second, ANOTHER)
            return list(rows.values())
        if line.strip() and not line.startswith("#"):
            name, *parts = line.split()
            if ANNOTATION.match(name):
                continue
            if not parts:
                raise wrong(source, number, f"{name} has no letters")
            previous = rows.get(name, AlignedRow(number, ""))
            rows[name] = AlignedRow(previous.line, previous.letters + "".join(parts))
    last = max((k for k, x in enumerate(lines, 1) if x.strip()), default=1)
    raise wrong(source, last, "the file ends before the alignment's last line, //")


def _fasta(lines: list[str], source: Any) -> list[AlignedRow]:
    """Rows of aligned FASTA or a3m, at the lines of their headings; a zero byte ends an
    alignment of MMseqs2."""
    rows: list[tuple[int, list[tuple[int, str]]]] = []
    parts, ended = None, False  # of the last row
    for number, line in enumerate(lines, 1):
        ended |= line.startswith("\0")
        text = line.strip("\0")
        if text.strip() and not text.startswith(("#", ";")):
            if ended:
                raise wrong(source, number, ANOTHER)
            if text.startswith(">"):
                parts = []
                if not ANNOTATION.match(text[1:].lstrip()):
                    rows.append((number, parts))
            elif parts is None:
                why = "no header before it: an alignment is FASTA, a3m or Stockholm"
                raise wrong(source, number, why)
            else:
                parts.append((number, "".join(text.split())))
        ended |= line.endswith("\0")
    for _, parts in rows:
        for number, letters in parts:  # each in its own line
            if invalid := OTHER_LETTERS.search(letters):
                raise wrong(source, number, f"{invalid[0]!r}: neither letter nor gap")
    return [AlignedRow(number, "".join(x for _, x in parts)) for number, parts in rows]


RESIDUES = PROTEIN[:20]  # ARNDCQEGHILKMFPSTWYV
GAPS = "-.~"
GAP_CODE, OTHER_CODE = -1, -2  # beside the residues; B, Z, X are no evidence
LAMBDA = 0.3176  # of BLOSUM62 without gaps, nats a score
# Robinson and Robinson, PNAS 88:8880 (1991), in the order of ``RESIDUES``.
FREQUENCIES = np.array([
    0.07805, 0.05129, 0.04487, 0.05364, 0.01925, 0.04264, 0.06295, 0.07377, 0.02199,
    0.05142, 0.09019, 0.05744, 0.02243, 0.03856, 0.05203, 0.07120, 0.05841, 0.01330,
    0.03216, 0.06441,
])  # fmt: skip
FREQUENCIES /= FREQUENCIES.sum()


class Prior(NamedTuple):
    """The letters of a position that are expected before any is seen.

    frequencies : (residues,). Of residues by chance, in the order of the alphabet.
    matrix, unit : name of a matrix, and nats of its scores. They give the frequencies
        of pairs of related residues.
    pseudocounts : weight of the frequencies that the matrix expects.
    means : letters of several residues, and these.
    """

    frequencies: np.ndarray
    matrix: str
    unit: float
    pseudocounts: float
    means: dict[str, str]


# IUPAC's letters, by codes: of RNA, T is U.
IUPAC = {
    "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC",
    "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT",
}  # fmt: skip
OF_PROTEINS = Prior(
    FREQUENCIES, "BLOSUM62", LAMBDA, 10.0, {"B": "ND", "Z": "QE", "X": RESIDUES}
)
# As many pseudocounts beside 3 further letters as 10 beside 19.
OF_NUCLEOTIDES = Prior(np.full(4, 0.25), "NUC", 0.1915, 10 * 3 / 19, IUPAC)


def prior_of(alphabet: Alphabet) -> Prior:
    """The prior of proteins or nucleotides."""
    return OF_NUCLEOTIDES if alphabet.kind in NUCLEIC else OF_PROTEINS


def codes_of(rows: list[str]) -> np.ndarray:
    """Aligned rows of ASCII, all of one length -> int8 (rows, columns)."""
    table = np.full(128, OTHER_CODE, np.int8)
    for code, letter in enumerate(RESIDUES):
        table[[ord(letter), ord(letter.lower())]] = code
    table[[ord(x) for x in GAPS]] = GAP_CODE
    return table[np.array([list(row.encode("ascii")) for row in rows])]


def row_weights(letters: np.ndarray, weights: "ArrayLike") -> np.ndarray:
    """Weights of the rows, with sum 1.

    Henikoff and Henikoff (1994): a column with k kinds of letters gives 1 / (k n) to
    each of the n rows with a letter."""
    count = len(letters)
    if isinstance(weights, str):
        if weights not in ("henikoff", "equal"):
            raise UsageError(
                f"weights = {weights!r}: must be henikoff, equal, or numbers"
            )
        total = np.ones(count)
        if weights == "henikoff":
            counts = weighted_counts(letters, None, 20)
            with np.errstate(divide="ignore"):
                share = 1 / (np.count_nonzero(counts, 1)[:, None] * counts)
            column = np.arange(letters.shape[1])[:, None]
            # Axis 0 is summed column by column.
            total = np.where(letters.T >= 0, share[column, letters.T], 0).sum(0)
    else:
        try:
            total = np.asarray(weights, float)
        except (TypeError, ValueError):
            raise UsageError(
                f"weights = {shortened(repr(weights))}: must be numbers"
            ) from None
        if total.shape != (count,) or not (total >= 0).all():
            raise UsageError(
                f"weights: {count} numbers, one per row and none below 0, are needed"
            )
    if not 0 < total.sum() < np.inf:
        raise UsageError("the weights of the rows add up to 0; one must be above 0")
    return total / total.sum()


def weighted_counts(
    letters: np.ndarray, weights: np.ndarray | None, kinds: int
) -> np.ndarray:
    """Sum the weights of the rows with each kind of letter in each column: (columns,
    kinds); without weights, count the rows.

    letters : integers (rows, columns). Codes; those below 0 or of no kind are left out.
    """
    rows, columns = letters.shape
    is_letter = (letters >= 0) & (letters < kinds)
    place = (np.arange(columns) * kinds + letters)[is_letter]
    of_rows = None
    if weights is not None:
        of_rows = np.broadcast_to(weights[:, None], (rows, columns))[is_letter]
    return np.bincount(place, of_rows, columns * kinds).reshape(columns, kinds)


def log_odds_of(
    letters: np.ndarray,
    weights: np.ndarray,
    pseudocounts: float,
    prior: Prior = OF_PROTEINS,
) -> np.ndarray:
    """ln(Q / P) of the residues, (m, residues), Q as in PSI-BLAST:

    Q_a = (alpha f_a + beta g_a) / (alpha + beta),  g_a = sum over b of f_b q_ab / P_b

    with the weighted frequencies f, target frequencies q = P P exp(lambda s) of the
    prior's matrix, alpha = mean number of kinds of letters in a column, less 1.
    """
    count = len(prior.frequencies)
    f = weighted_counts(letters, weights, count)
    f /= f.sum(1, keepdims=True)
    scores = scoring.load_matrix(prior.matrix)[1][:count, :count]
    q = np.exp(prior.unit * scores) * np.outer(prior.frequencies, prior.frequencies)
    q /= q.sum()
    conditional = q / q.sum(1, keepdims=True)
    every = weighted_counts(letters, None, int(letters.max()) + 1)
    alpha = np.count_nonzero(every, 1).mean() - 1
    mixed = (alpha * f + pseudocounts * (f @ conditional)) / (alpha + pseudocounts)
    return np.log(mixed / prior.frequencies)


UNIT = LAMBDA  # nats: a score of 1, as in BLOSUM62
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
        One column per letter of ``alphabet``, in its order; 1 is ``unit`` nats of
        log-odds.
    alphabet : Alphabet
    unit : float
        Nats per unit of score.
    gap_open, gap_extend : (float (m,), float (m,)) or None
        Costs of the profile's positions, and of residues inserted after each position,
        in the unit of the scores.

    Raises
    ------
    UsageError
        If scores are not finite integers, one per position and letter, or costs are not
        0 or more, one per position.
    """

    name: str
    scores: np.ndarray
    alphabet: Alphabet
    unit: float = UNIT
    gap_open: tuple[np.ndarray, np.ndarray] | None = None
    gap_extend: tuple[np.ndarray, np.ndarray] | None = None

    def __post_init__(self):
        scores = np.asarray(self.scores)
        if scores.dtype.kind not in "iuf" or scores.ndim != 2:
            raise UsageError(
                f"scores of {scores.dtype}, shape {scores.shape}: whole numbers "
                "(positions, letters) are needed"
            )
        if scores.shape[1] != self.alphabet.size or not len(scores):
            raise UsageError(
                f"scores of shape {scores.shape}: at least one position, and the "
                f"{self.alphabet.size} letters {self.alphabet.letters}, are needed"
            )
        if not (np.abs(scores.astype(float)) <= MAX_SCORE).all():
            raise UsageError(f"scores must be finite, from {-MAX_SCORE} to {MAX_SCORE}")
        if (scores != np.rint(scores)).any():
            at = tuple(np.argwhere(scores != np.rint(scores))[0].tolist())
            raise UsageError(
                f"scores{list(at)} = {scores[at]}: the scores of a profile must be "
                "whole numbers; multiply and round them, and give their unit"
            )
        scores = scores.astype(np.int32)
        object.__setattr__(self, "scores", scores)
        if not (is_number(self.unit) and 0 < self.unit < np.inf):
            raise UsageError(f"unit = {self.unit!r}: must be a number above 0, in nats")
        if (self.gap_open is None) != (self.gap_extend is None):
            raise UsageError(
                "gap_open and gap_extend go together: give both or neither"
            )
        for name in ("gap_open", "gap_extend"):
            if (costs := getattr(self, name)) is None:
                continue
            try:
                array = np.array(costs, float)
            except (TypeError, ValueError):
                array = np.array(np.nan)
            whole = array.shape == (2, len(scores)) and np.isfinite(array).all()
            if not (whole and (array >= 0).all()):
                raise UsageError(
                    f"{name}: a pair of arrays is needed, with a number of 0 or more "
                    f"for each of the {len(scores)} positions"
                )

    def __len__(self) -> int:
        return len(self.scores)

    def __repr__(self) -> str:
        return shortened(f"Profile({self.name!r}, {len(self)} positions)")

    @cached_property
    def positions(self) -> np.ndarray:
        """int32 (m,), 0 to m - 1: codes of a query whose matrix is ``scores``."""
        return np.arange(len(self), dtype=np.int32)

    @cached_property
    def consensus(self) -> str:
        """The letter of largest score at each position."""
        residues = self.scores[:, : self.alphabet.residues]
        return self.alphabet.decode(residues.argmax(1))

    @classmethod
    def from_sequence(cls, sequence: str, scoring: ScoringLike = None) -> "Profile":
        """Make a profile of the ``scoring``'s matrix rows for the letters of a
        ``sequence``.

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
            raise UsageError(
                f"{scoring.matrix_name} or its gap costs have fractions: a profile "
                "needs whole numbers"
            )
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
        alphabet: str | None = None,
    ) -> "Profile":
        """Compute the log-odds of the columns of a protein alignment, as PSI-BLAST
        does.

        Parameters
        ----------
        source : path of aligned FASTA, a3m or Stockholm, or a list of aligned rows
            The format of a file is found from its text; it may be plain, gz, bz2, xz or
            zst, and ``-`` is standard input. Positions are the upper case columns of
            a3m, and otherwise the columns with few gaps. Rows of secondary structure
            from HH-suite (``ss_pred``, ``ss_conf``, ``ss_dssp`` …) are left out.
        pseudocounts : float, 1e-9 to 1e9
            Weight (beta) of the frequencies that BLOSUM62 expects. The weight of the
            observed letters is the mean number of different letters per column, less 1.
        weights : "henikoff", "equal", or a number for each row
            Weights of rows. Henikoff's position-based weights count similar rows less.
        max_gaps : float
            Largest weighted share of gaps in a column that is a position, 0 to 1.
        alphabet : "protein", optional
            States that the letters are residues, even if all look like nucleotides.

        Returns
        -------
        Profile

        Raises
        ------
        InputError
            If the file cannot be read or has several alignments, rows differ in length,
            or all letters look like nucleotides.
        UsageError
            If an option is out of range, or no column is a position.

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
                f"pseudocounts = {pseudocounts!r}: must be a number from {low:g} to "
                f"{high:g}"
            )
        if not (is_number(max_gaps) and 0 <= max_gaps <= 1):
            raise UsageError(f"max_gaps = {max_gaps!r}: must be a fraction from 0 to 1")
        if alphabet not in (None, "protein"):
            raise UsageError(f"alphabet = {alphabet!r}: a profile is of proteins only")
        is_file = isinstance(source, (str, os.PathLike))
        source = read_text(source) if is_file else source
        name, rows, by_case = read_alignment(source)
        no_gaps = str.maketrans("", "", GAPS)
        texts = (as_ascii(row.translate(no_gaps)) for row in rows)
        if alphabet is None and look_nucleic(texts):
            raise InputError(
                f"{source if is_file else 'rows'}: all letters are nucleotides, and a "
                "profile is of proteins\nhint: alphabet='protein' reads them as "
                "residues"
            )
        letters = codes_of(rows)
        try:
            share = row_weights(letters, weights)
            keep = (letters >= 0).any(0)
            if not by_case:
                keep &= share @ (letters == GAP_CODE) <= max_gaps
            if not keep.any():
                raise UsageError(
                    "no column of the alignment is a position: all have more gaps than "
                    "max_gaps"
                )
            letters = letters[:, keep]
            share = row_weights(letters, weights)
        except UsageError as error:
            if not is_file:
                raise
            raise UsageError(f"{source}: {error}") from None
        odds = log_odds_of(letters, share, float(pseudocounts))
        return cls(name, whole_scores(odds), named_alphabet("protein"))

    @classmethod
    def from_hmm(cls, source: str | os.PathLike[str]) -> "Profile":
        """Make a profile of a protein HMM: match emissions as log-odds, transitions as
        gap costs by position.

        Parameters
        ----------
        source : path
            A HMMER3 text file of one model (plain, gz, bz2, xz or zst); ``-`` is
            standard input.

        Returns
        -------
        Profile

        Raises
        ------
        InputError
            If the file cannot be read, is not a HMMER3 model, or has several models.

        Notes
        -----
        A gap after position k costs its transitions (M to I and back to M, or M to D
        and back) minus M to M. Costs below 0 become 0. Eddy, PLoS Computational Biology
        7:e1002195 (2011).
        """
        name, emissions, transitions = read_hmm(source)
        # -ln p by position in HMMER's order of letters -> ln(p / P) in ours
        order = [sorted(RESIDUES).index(residue) for residue in RESIDUES]
        odds = -emissions[:, order] - np.log(FREQUENCIES)
        # Costs of positions that are left out, and of residues behind a position.
        mm, mi, md, im, ii, dm, dd = np.minimum(transitions, 50).T
        before = np.maximum(np.arange(len(mm)) - 1, 0)  # D of k is entered from k - 1
        leave = np.maximum(md[before] + dm - mm, 0) / LAMBDA
        insert = np.maximum(mi + im - mm, 0) / LAMBDA
        opening, extending = (leave, insert), (dd[before] / LAMBDA, ii / LAMBDA)
        alphabet = named_alphabet("protein")
        scores = whole_scores(odds)
        return cls(name, scores, alphabet, UNIT, opening, extending)


def as_query(query: "Profile", scoring: Scoring | None) -> tuple[Any, Scoring]:
    """The consensus of a profile, and its scoring by positions: with the gap costs of a
    scoring, or without one with those of the positions, where there are any."""
    consensus = query.alphabet.encode(query.consensus)
    sequences = from_parts([query.name], [consensus], query.alphabet)
    costs = (scoring.gap_open, scoring.gap_extend) if scoring else (None, None)
    kind = query.alphabet.kind
    return sequences, Scoring(query, *costs, alphabet=kind if kind in NUCLEIC else None)


def whole_scores(
    odds: np.ndarray, unit: float = UNIT, alphabet: Alphabet | None = None
) -> np.ndarray:
    """Log-odds of residues in nats (m, residues) -> int32 (m, letters); 1 is ``unit``
    nats.

    A letter of several residues, as B or X, is their mean by frequency; * is the lowest
    score of the position.

    alphabet : of proteins by default"""
    alphabet = alphabet or named_alphabet("protein")
    prior, letters = prior_of(alphabet), alphabet.letters.replace("U", "T")
    odds = np.clip(odds, -MAX_LOG_ODDS, MAX_LOG_ODDS)
    columns = [*np.rint(odds / unit).T]
    lowest = np.min(columns, axis=0)
    for letter in letters[alphabet.residues :]:
        at = [letters.index(residue) for residue in prior.means.get(letter, "")]
        share = prior.frequencies[at] / prior.frequencies[at].sum()
        columns.append(np.rint(odds[:, at] @ share / unit) if at else lowest)
    return np.column_stack(columns).astype(np.int32)
