"""An alignment of a query with its relatives, and how it came about."""

import os
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import Any, NamedTuple

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.io import output
from jaxalign.model import frames, profile, statistics
from jaxalign.model.alphabet import NUCLEIC, Alphabet
from jaxalign.model.names import written
from jaxalign.model.numbers import texts_beside
from jaxalign.model.operations import D, I, M
from jaxalign.model.profile import RESIDUES, Profile, prior_of
from jaxalign.model.scoring import Scoring
from jaxalign.model.strands import MINUS, PLUS
from jaxalign.model.table import Steps, Table, steps_of

# ------------------------------------------------------------------------------
# Hits of one query on its positions: columns of codes, and rows of a3m text.

GAP = -1
ROWS_AT_ONCE = 2**13
LOWER = 32  # from an upper case letter of ASCII to the lower case one


class Columns(NamedTuple):
    """The residues of some hits.

    codes : int8 (hits, m). Of the residue at each position of the query, ``GAP`` where
        there is none.
    inserted : int64 (hits, letters). How many of each letter stand between positions.
    """

    codes: np.ndarray
    inserted: np.ndarray


def blocks(table: Table) -> Iterator[Table]:
    """Yield the rows of a table in blocks."""
    for start in range(0, len(table), ROWS_AT_ONCE):
        yield table[start : start + ROWS_AT_ONCE]


def columns(table: Table, length: int) -> Columns:
    """Collect the residues of the hits of a query of ``length`` positions."""
    size = table.targets.alphabet.size
    parts = [_columns(block, length, size) for block in blocks(table)]
    nothing = Columns(np.zeros((0, length), np.int8), np.zeros((0, size), np.int64))
    codes, inserted = zip(nothing, *parts, strict=True)
    return Columns(np.concatenate(codes), np.concatenate(inserted))


def _columns(table: Table, length: int, size: int) -> Columns:
    steps = steps_of(table)
    of_steps = _codes(table, steps)
    codes = np.full((len(table), length), GAP, np.int8)
    pairs, inserts = steps.kind == M, steps.kind == D
    codes[steps.row[pairs], steps.query[pairs]] = of_steps[pairs]
    place = steps.row[inserts] * size + of_steps[inserts]
    counts = np.bincount(place, minlength=len(table) * size)
    return Columns(codes, counts.reshape(len(table), size))


def a3m_rows(table: Table, length: int) -> list[str]:
    """Write the hits as rows of a3m: upper case and - at the positions of the query,
    lower case between them.

    A letter that means no residue, *, is X, which every reader knows.
    """
    return [row for block in blocks(table) for row in _a3m_rows(block, length)]


def _a3m_rows(table: Table, length: int) -> list[str]:
    steps = steps_of(table)
    counts = np.bincount(steps.row, minlength=len(table))
    start, end = table["query_start"].astype(np.int64), table["query_end"]
    offsets = np.concatenate([[0], np.cumsum(counts + length - (end - start))])
    text = np.full(offsets[-1], ord("-"), np.uint8)
    shift = offsets[:-1] + start - (np.cumsum(counts) - counts)
    place = np.arange(len(steps.row)) + shift[steps.row]
    letters = residue_letters(table.targets.alphabet)[_codes(table, steps)]
    letters[steps.kind == D] += LOWER
    written = steps.kind != I
    text[place[written]] = letters[written]
    whole = text.tobytes().decode()
    return [whole[a:b] for a, b in zip(offsets[:-1], offsets[1:], strict=True)]


def residue_letters(alphabet: Alphabet) -> np.ndarray:
    """Return uint8 ASCII of the codes; a code that is no letter is X."""
    return np.frombuffer(letters_of(alphabet.letters).encode(), np.uint8)


def letters_of(text: str) -> str:
    """Return the letters of a sequence in upper case; what is no letter is X."""
    return re.sub("[^A-Z]", "X", text.upper())


def _codes(table: Table, steps: Steps) -> np.ndarray:
    """Return the code of the target's residue at each step; of I any."""
    index = table["target"].astype(np.int64)[steps.row]
    place = np.asarray(table.targets.offsets)[index] + steps.target
    return table.targets.codes[np.minimum(place, len(table.targets.codes) - 1)]


# ------------------------------------------------------------------------------
# How many different sequences an alignment has: Neff.

CLUSTER_IDENTITY = 0.8


def by_entropy(rows: np.ndarray, residues: int = 20) -> float:
    """Compute the exponential of the mean entropy of the columns, from 1 to 20, or to 4
    of nucleotides.

    As HH-suite's Neff (Söding 2005), with one position-based weight a row in place of
    one a row and column. Frequencies are those of the residues, gaps left out.

    rows : int8 (rows, m). Codes; the first row is the query.
    residues : how many codes are residues, the first ones.
    """
    letters = np.where(rows < residues, rows, profile.OTHER_CODE).astype(np.int8)
    letters[rows < 0] = profile.GAP_CODE
    if not (letters >= 0).any():
        return 1.0
    share = profile.row_weights(letters, "henikoff")
    counts = profile.weighted_counts(letters, share, residues)
    total = counts.sum(1)
    parts = counts[total > 0] / total[total > 0][:, None]
    entropy = -(parts * np.log(np.where(parts > 0, parts, 1))).sum(1)
    return float(np.exp(entropy.mean()))


def by_clusters(
    rows: np.ndarray, identity: float = CLUSTER_IDENTITY, residues: int = 20
) -> float:
    """Compute the median over positions of the summed weights of the rows with a
    residue there; the weight of a row is 1 over the number of rows alike to it, itself
    included.

    As AlphaFold 2 counts the depth of an alignment (Jumper et al. 2021, fig. 5; weights
    of Wu et al. 2020). Two rows are alike where equal residues are ``identity`` or more
    of the positions at which either has one.

    rows : int8 (rows, m)
    """
    codes = np.where((rows >= 0) & (rows < residues), rows, -1).astype(np.int8)
    weights = 1 / np.maximum(_alike(_bits(codes), identity), 1)
    return float(np.median(weights @ (codes >= 0)))


def _alike(bits: np.ndarray, identity: float) -> np.ndarray:
    """Count the rows that each row is alike to, int64 (rows,).

    bits : uint64 (6, words, rows). Of ``_bits``.
    """
    counts = np.empty(bits.shape[2], np.int64)
    for k in range(len(counts)):
        row = bits[:, :, k, None]
        differ = np.bitwise_or.reduce(bits ^ row)
        either = np.bitwise_count(bits[0] | row[0]).sum(0, dtype=np.int64)
        equal = either - np.bitwise_count(differ).sum(0, dtype=np.int64)
        counts[k] = (equal >= identity * either - 1e-3).sum()
    return counts


def _bits(codes: np.ndarray) -> np.ndarray:
    """Pack the codes of rows into words: whether a position has a residue, then the
    five bits of its code, uint64 (6, words, rows). To compare them takes a fifth of the
    time of a product of matrices for each letter."""
    planes = [codes >= 0, *((codes >> bit) & 1 for bit in range(5))]
    packed = np.packbits(np.stack(planes).astype(bool), axis=2)
    words = np.pad(packed, [(0, 0), (0, 0), (0, -packed.shape[2] % 8)]).view(np.uint64)
    return np.ascontiguousarray(words.transpose(0, 2, 1))


# ------------------------------------------------------------------------------
# Files of an alignment: a3m, Stockholm, a HMMER3 model, and a matrix of PSI-BLAST.

ORDER = [RESIDUES.index(letter) for letter in sorted(RESIDUES)]  # HMMER's
KINDS = {"protein": "amino", "dna": "DNA", "rna": "RNA"}  # of HMMER's alphabets
HEADING = ("m->m", "m->i", "m->d", "i->m", "i->i", "d->m", "d->d")
LOWER_CASE = str.maketrans("", "", string.ascii_lowercase)
POSITION = re.compile("[A-Z-]")  # of a row of a3m


class AlignedText(NamedTuple):
    """An alignment and its profile, as the writers need them.

    names : of the rows, the query's first
    headings : the same, and of hits where they lie, E-values and bits
    spans : (first, last) residue of each row, counted from 1
    rows : of a3m
    profile, scoring : of the hits, and the gap costs
    """

    names: Sequence[str]
    headings: Sequence[str]
    spans: Sequence[tuple[int, int]]
    rows: Sequence[str]
    profile: Profile
    scoring: Scoring


def a3m(text: AlignedText) -> Iterator[str]:
    """Write a heading and one line for each row: Boltz reads a row from one line."""
    for heading, row in zip(text.headings, text.rows, strict=True):
        yield f">{written(heading)}\n{row}\n"


def one_word(name: str) -> str:
    """Write a name as one word that begins no comment and ends no alignment."""
    word = "_".join(written(name).split())
    return "_" + word if word.startswith(("#", "//")) or not word else word


def stockholm(text: AlignedText) -> Iterator[str]:
    """Write all columns, insertions padded with points; names end in their span."""
    # A repeated name, as the query's in the database, is numbered, since readers join
    # rows of one name.
    times, names = Counter(), []
    for name, (first, last) in zip(text.names, text.spans, strict=True):
        word, span = one_word(name), f"/{first}-{last}"
        times[word + span] += 1
        number = f"_{times[word + span]}" if times[word + span] > 1 else ""
        names.append(f"{word}{number}{span}")
    # Every residue has a column, and ``#=GC RF`` marks the positions of the query.
    widths = _widths(text.rows)
    longest = max(len("#=GC RF"), *map(len, names))
    yield "# STOCKHOLM 1.0\n\n"
    for name, row in zip(names, text.rows, strict=True):
        yield f"{name:{longest}} {_padded(row, widths)}\n"
    marks = "x".join("." * width for width in widths)
    yield f"{'#=GC RF':{longest}} {marks}\n//\n"


def hmm(text: AlignedText) -> Iterator[str]:
    """Write a HMMER3 model: emissions of the profile, transitions of the rows."""
    name = one_word(text.names[0])
    return _model(name, text.profile, moves_of(text), len(text.rows))


def pssm(text: AlignedText) -> Iterator[str]:
    """Write the scores like PSI-BLAST's ``-out_ascii_pssm``: place, letter of the
    query, and the scores of residues."""
    count = text.profile.alphabet.residues
    letters = text.profile.alphabet.letters[:count]
    yield "\nLast position-specific scoring matrix computed\n"
    yield " " * 11 + "".join(f"{letter:>4}" for letter in letters) + "\n"
    scores = text.profile.scores[:, :count].tolist()
    for k, (letter, row) in enumerate(zip(text.rows[0], scores, strict=True), 1):
        yield f"{k:5d} {letter}    " + "".join(f"{x:4d}" for x in row) + "\n"


def _widths(rows: Sequence[str]) -> list[int]:
    """Return the longest insertion before each position, and behind the last."""
    each = ([len(part) for part in POSITION.split(row)] for row in rows)
    return [max(lengths) for lengths in zip(*each, strict=True)]


def _padded(row: str, widths: list[int]) -> str:
    """Pad a row with points where other rows have more residues between positions."""
    inserted = POSITION.split(row)
    pieces = [part.ljust(width, ".") for part, width in zip(inserted, widths)]  # noqa: B905
    positions = [*POSITION.findall(row), ""]
    return "".join(a + b for a, b in zip(pieces, positions, strict=True))


def _model(name: str, profile: Profile, moves: np.ndarray, rows: int) -> Iterator[str]:
    """Write a HMMER3 text file, line by line. Emissions are P_a exp(unit s_a).

    moves : as of ``moves_of``
    """
    # Emissions (m, residues), in HMMER's order of letters.
    alphabet, frequencies = profile.alphabet, prior_of(profile.alphabet).frequencies
    letters = alphabet.letters[: alphabet.residues]
    order = [letters.index(letter) for letter in sorted(letters)]
    odds = np.exp(profile.unit * profile.scores[:, : alphabet.residues])
    emitted = odds * frequencies
    emissions = (emitted / emitted.sum(1, keepdims=True))[:, order]
    null = NULL if alphabet.kind == "protein" else frequencies
    yield f"HMMER3/f [jaxalign]\nNAME  {name}\nLENG  {len(profile)}\n"
    if alphabet.kind != "protein":  # the longest hit, as nhmmer without a bound has it
        yield f"MAXL  {4 * len(profile)}\n"
    yield f"ALPH  {KINDS[alphabet.kind]}\nRF    no\nMM    no\n"
    yield f"CONS  yes\nCS    no\nMAP   no\nNSEQ  {rows}\n"
    for kind, (place, rate) in calibrated(emissions, moves, null).items():
        yield f"STATS LOCAL {kind:<8} {place:8.4f} {rate:8.5f}\n"
    yield f"HMM     {_words(sorted(letters))}\n        {_words(HEADING)}\n"
    used = occupancy(moves)
    yield f"  COMPO {_numbers(used @ emissions / used.sum())}\n"
    background = _numbers(frequencies[order])
    yield f"        {background}\n        {_numbers(moves[0])}\n"
    for k, row in enumerate(emissions, 1):
        letter = profile.consensus[k - 1].lower()
        yield f"{k:7d} {_numbers(row)} - {letter} - - -\n        {background}\n"
        yield f"        {_numbers(moves[k])}\n"
    yield "//\n"


# ------------------------------------------------------------------------------
# E-values of HMMER, which reads where the scores of a model lie: hmmsearch finds
# nothing with a model that does not say it.
#
# Eddy, PLoS Computational Biology 4:e1000069 (2008): bits of local alignments have the
# rate ln 2, of short models more, and a place that random sequences of HMMER's null
# model tell. Viterbi scores, and those without gaps (MSV), follow the distribution of
# extreme values, of which the place is its mode; of Forward scores the tail is
# exponential, and begins where the distribution of extreme values has ``TAIL`` left.

# Of Swiss-Prot 50.8, in the order of ``sorted(RESIDUES)``: the null model of HMMER 3.
NULL = np.array([
    0.0787945, 0.0151600, 0.0535222, 0.0668298, 0.0397062, 0.0695071, 0.0229198,
    0.0590092, 0.0594422, 0.0963728, 0.0237718, 0.0414386, 0.0482904, 0.0395639,
    0.0540978, 0.0683364, 0.0540687, 0.0673417, 0.0114135, 0.0304133,
])  # fmt: skip
NULL /= NULL.sum()
SIMULATED, LENGTH, FORWARD_LENGTH, TAIL = 200, 200, 100, 0.04
EDGE = 1.44  # what the rate of a short model gains, over its bits in all
CELLS_AT_ONCE = 2**20
LEAST_SHARE = 1e-9  # of a long deletion


def occupancy(moves: np.ndarray) -> np.ndarray:
    """Compute how likely each position is to be used, (m,).

    moves : as of ``moves_of``
    """
    used, before = np.empty(len(moves) - 1), 1.0
    for k, (mm, mi, _, _, _, dm, _) in enumerate(moves[:-1]):
        used[k] = before = before * (mm + mi) + (1 - before) * dm
    return used


def calibrated(
    emissions: np.ndarray, moves: np.ndarray, null: np.ndarray = NULL
) -> dict[str, tuple]:
    """Find (place, rate) in bits of the scores of a model: MSV, VITERBI and FORWARD.

    emissions : (m, residues). Probabilities, in HMMER's order of letters.
    moves : as of ``moves_of``
    null : (residues,). Probabilities by chance, of proteins by default.
    """
    odds, m = emissions / null, len(emissions)
    information = (emissions * np.log2(np.maximum(odds, 1e-300))).sum()
    rate = log(2) + EDGE / max(information, EDGE)
    # A path enters where a position is likely to be used, and no path is favoured.
    used, moves = occupancy(moves), moves[1:]
    enter = used / (used * np.arange(m, 0, -1)).sum()
    evenly, straight = np.full(m, 2 / (m * (m + 1))), np.zeros((m, MOVES))
    straight[:, 0] = 1
    rng, places = np.random.default_rng(0), {}
    for kind, ways in (("MSV", (straight, evenly)), ("VITERBI", (moves, enter))):
        letters = rng.choice(len(null), (SIMULATED, LENGTH), p=null)
        bits = local_bits(odds, *ways, letters, np.maximum)
        places[kind] = -log(np.exp(-rate * bits).mean()) / rate, rate
    letters = rng.choice(len(null), (SIMULATED, FORWARD_LENGTH), p=null)
    bits = local_bits(odds, moves, enter, letters, np.add)
    fitted_rate, log_k = statistics.most_likely(bits, np.ones(len(bits)))
    begins = (log_k - log(-log(1 - TAIL))) / fitted_rate
    places["FORWARD"] = begins + log(TAIL) / rate, rate
    return places


def local_bits(
    odds: np.ndarray,
    moves: np.ndarray,
    enter: np.ndarray,
    letters: np.ndarray,
    join: np.ufunc,
) -> np.ndarray:
    """Score sequences by a model as HMMER does, local and in several pieces, in bits.

    odds : (m, 20)
    moves : (m, 7). Probabilities behind each position.
    enter : (m,). Probability to begin at each position.
    letters : int (count, length)
    join : np.add of all paths (Forward), np.maximum of the best one (Viterbi)
    """
    by_letter = np.ascontiguousarray(odds.T, np.float32)
    mm, mi, md, im, ii, dm, dd = np.ascontiguousarray(moves.T, np.float32)
    (count, length), m = letters.shape, len(odds)
    stay, leave = length / (length + 3), 3 / (length + 3)
    size, ends = max(CELLS_AT_ONCE // m, 1), []
    # Deletions of 1, 2, 4 … positions more: what they multiply one by.
    longer, reach, share = [], 1, dd[:-1]
    while reach < m and share.max() > LEAST_SHARE:
        longer.append((reach, share))
        reach, share = 2 * reach, share[reach:] * share[:-reach]
    for start in range(0, count, size):
        part = letters[start : start + size]
        # What ends in a match, an insertion and a deletion of each position, and what
        # lies between two pieces or behind the last.
        match = insert = delete = np.zeros((len(part), m), np.float32)
        between = np.zeros(len(part), np.float32)
        for step, column in enumerate(part.T):
            restart = join(np.float32(stay**step), between) * np.float32(leave)
            before = join(join(match * mm, insert * im), delete * dm)
            insert = join(match * mi, insert * ii)
            match = restart[:, None] * enter.astype(np.float32)
            match[:, 1:] = join(match[:, 1:], before[:, :-1])
            match *= by_letter[column]
            delete = np.zeros_like(match)
            delete[:, 1:] = match[:, :-1] * md[:-1]
            for reach, share in longer:
                delete[:, reach:] = join(delete[:, reach:], delete[:, :-reach] * share)
            end = join.reduce(join(match, delete), axis=1) / 2
            between = join(between * np.float32(stay), end)
        ends.append(between)
    likelihood = np.concatenate(ends).astype(float) * leave
    by_chance = length * log(length / (length + 1)) - log(length + 1)
    return (np.log(likelihood) - by_chance) / log(2)


# ------------------------------------------------------------------------------
# Transitions of a model: weighted counts of the rows, and a prior of HMMER.
#
# From M to M, I and D, from I to M and I, from D to M and D: each of these three sums
# to 1, as the mean of the posterior of a Dirichlet prior. A local alignment begins and
# ends with a match, so it counts nothing before or behind. A model has no move from I
# to D or back. Rows weigh as for emissions (Henikoff), and together as many as a
# position has kinds of letters on average: alpha + 1 of PSI-BLAST
# (``model.profile.log_odds_of``).

MOVES, NO_MOVE = 7, 7
MOVE_OF = np.array([[0, 1, 2], [3, 4, NO_MOVE], [5, NO_MOVE, 6]])  # of M, I and D
FROM = slice(0, 3), slice(3, 5), slice(5, 7)
# ``p7_prior.c`` of HMMER 3.4: of proteins Mitchison's, of nucleotides of rmark
AMINO = 0.7939, 0.0278, 0.0135, 0.1551, 0.1331, 0.9002, 0.5630
NUCLEOTIDE = 2.0, 0.1, 0.1, 0.12, 0.4, 0.5, 1.0


def moves_of(text: AlignedText) -> np.ndarray:
    """Estimate the transitions behind each position, (m + 1, 7); row 0 is before the
    first one. Behind the last one no deletion begins."""
    alphabet, m = text.profile.alphabet, len(text.profile)
    upper = "".join(text.rows).translate(LOWER_CASE).encode()
    codes = alphabet.table[np.frombuffer(upper, np.uint8).reshape(-1, m)]
    letters = codes.astype(np.int8)
    letters[codes >= alphabet.residues] = profile.OTHER_CODE
    weights = np.full(len(letters), 1 / len(letters))
    if (letters >= 0).any():
        weights = profile.row_weights(letters, "henikoff")
    kinds = np.mean([len(set(x[x >= 0])) for x in letters.T])
    counts = np.zeros((m + 1, MOVES + 1))
    for row, weight in zip(text.rows, weights * max(kinds, 1), strict=True):
        ascii_codes = np.frombuffer(row.encode(), np.uint8)
        state = np.where(ascii_codes == ord("-"), 2, ascii_codes >= ord("a"))
        position = np.cumsum(state != 1)  # from 1
        matches = np.flatnonzero(state == 0)
        within = slice(*matches[[0, -1]]) if len(matches) else slice(0)
        move = MOVE_OF[state[:-1][within], state[1:][within]]
        np.add.at(counts, (position[:-1][within], move), weight)
    prior = AMINO if alphabet.kind == "protein" else NUCLEOTIDE
    moves = counts[:, :MOVES] + prior
    moves[-1, 2] = 0
    for part in FROM:
        moves[:, part] /= moves[:, part].sum(1, keepdims=True)
    moves[[0, -1], 5:] = 1, 0
    return moves


def _words(words: Iterable[str]) -> str:
    return " ".join(f"{word:>8}" for word in words)


def _numbers(probabilities: Iterable[float]) -> str:
    """-ln of each, * of 0."""
    return _words(f"{abs(log(p)):.5f}" if p > 0 else "*" for p in probabilities)


SUFFIXES = {".a3m": "a3m", ".sto": "stockholm", ".hmm": "hmm", ".pssm": "pssm"}
WRITERS: dict[str, Callable[[AlignedText], Iterator[str]]] = {
    "a3m": a3m,
    "stockholm": stockholm,
    "hmm": hmm,
    "pssm": pssm,
}


def format_of(path: str, format: str | None) -> str:
    """Return the format of a file: the named one, or by its suffix; a3m for standard
    output."""
    named = format or next((x for end, x in SUFFIXES.items() if path.endswith(end)), "")
    if not named and path == output.STDOUT:
        return "a3m"
    if named not in WRITERS:
        formats, ends = ", ".join(WRITERS), ", ".join(SUFFIXES)
        raise UsageError(
            f"{path}: format {named!r}: one of {formats}, or a suffix of {ends}"
        )
    return named


@dataclass(frozen=True)
class PassSummary:
    """One pass: how many hits it has, how many of them are new in the next profile, and
    the statistics of its scores.

    ``fitted_to`` is ``database``, ``shuffled`` or ``none``, as in ``search``.
    """

    hits: int
    included: int
    new: int
    lambda_: float
    k: float
    fitted_to: str
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class FamilyAlignment:
    """The relatives of a query, aligned to its positions.

    Attributes
    ----------
    name, query : str
        Name and sequence of the query.
    table : Table
        The hits with their paths, smallest E-value first. It has the columns of
        ``search``, and ``bias``, the score subtracted for the composition of a hit.
    codes : int8 (hits + 1, m)
        Residues at the query's positions, -1 for none; the first row is the query.
    spans : int64 (hits, 2)
        First and last residue of each hit in its sequence, from 1. Of the minus strand
        of nucleotides first > last, and the table has the reverse complement.
    profile : Profile
        Profile of the included hits, for ``search`` and ``align``.
    passes : tuple of PassSummary
        Figures of each pass.
    converged : bool
        Whether the last pass included the same hits as the one before.
    """

    name: str
    query: str
    table: Table
    codes: np.ndarray
    spans: np.ndarray
    profile: Profile
    passes: tuple[PassSummary, ...]
    converged: bool

    to_pandas, to_arrow, to_polars = frames.METHODS[:3]
    __repr__, _repr_html_ = frames.METHODS[-2:]

    def __len__(self) -> int:
        """Rows, the query included."""
        return len(self.codes)

    def heading(self) -> str:
        """Summarise the query, the numbers of rows and passes, and the diversity."""
        count = len(self.passes)
        passes = f"{count} pass{'es' * (count != 1)}"
        return f"{self.name!r}, {len(self)} rows, {passes}, Neff {self.neff:.1f}"

    @property
    def cuts(self) -> tuple[float, ...]:
        """The largest E-values of hits, and of those that make the next profile."""
        return self.table.cuts

    def columns(self) -> dict[str, Any]:
        """Return the rows as columns, the query first: name, span along the plus
        strand, statistics, and the row in a3m form; of nucleotides the strand, too."""
        table, whole = self.table, len(self.query)
        strand = np.where(self.spans[:, 0] > self.spans[:, 1], MINUS, PLUS)
        nucleic = self.profile.alphabet.kind in NUCLEIC
        strands = {"strand": np.concatenate([[PLUS], strand]).astype(np.int8)}
        return {
            "name": np.array(self.names, object),
            "start": np.concatenate([[0], self.spans.min(1) - 1]),
            "end": np.concatenate([[whole], self.spans.max(1)]),
            **(strands if nucleic else {}),
            "evalue": np.concatenate([[np.nan], table["evalue"]]),
            "bits": np.concatenate([[np.nan], table["bits"]]),
            "row": np.array(self.rows(), object),
        }

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the rows, the query first."""
        targets = self.table.targets.names
        return (self.name, *(targets[k] for k in self.table["target"].tolist()))

    def rows(self) -> list[str]:
        """Format the rows as a3m: upper case and - at the query's positions, lower
        case between them."""
        return [self.query, *a3m_rows(self.table, len(self.query))]

    @cached_property
    def neff(self) -> float:
        """Compute the exponential of the mean column entropy, like HH-suite's Neff."""
        return by_entropy(self.codes, self.profile.alphabet.residues)

    @property
    def depth(self) -> np.ndarray:
        """Count the rows with a residue at each position, the query's included: int64
        (m,)."""
        return (self.codes >= 0).sum(0)

    @property
    def query_identities(self) -> np.ndarray:
        """Compute the share of the query's positions at which each row has its residue,
        float64 (hits + 1,): gaps count as differences, as in ColabFold's plots."""
        return (self.codes == self.codes[0]).mean(1)

    def neff_of_clusters(self, identity: float = CLUSTER_IDENTITY) -> float:
        """Compute the median number of rows per position, counting rows with at least
        this ``identity`` as one: the depth of AlphaFold 2."""
        return by_clusters(self.codes, identity, self.profile.alphabet.residues)

    def write(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        force: bool = False,
    ) -> None:
        """Write the alignment as ``a3m``, ``stockholm``, ``hmm`` or ``pssm``.

        Parameters
        ----------
        path : path
            ``-`` is standard output.
        format : str, optional
            By default from the suffix: .a3m, .sto, .hmm or .pssm.
        force : bool
            Replace an existing file.

        Raises
        ------
        UsageError
            If the format is unknown, or the file exists and ``force`` is false.
        """
        path = os.fspath(path)
        writer = WRITERS[format_of(path, format)]
        output.check(path, force)
        output.write_text(path, writer(self.as_text()))

    def as_text(self) -> AlignedText:
        """Return names, spans and rows, for the writers."""
        spans, bits = self.spans.tolist(), self.table["bits"].tolist()
        evalues = texts_beside(self.table["evalue"], 2, *self.cuts)
        details = zip(self.names[1:], spans, bits, evalues, strict=True)
        headings = [self.name]
        headings += [
            f"{name} {first}-{last} E={evalue} bits={bits:.1f}"
            for name, (first, last), bits, evalue in details
        ]
        spans = [(1, len(self.query)), *map(tuple, spans)]
        return AlignedText(
            self.names, headings, spans, self.rows(), self.profile, self.table.scoring
        )
