"""Rows of a caller, unique receptors, and distances of V genes.

Columns of rearrangements become rows: one chain a row, or a cell a row
(``rows_of_table``). Equal rows are one receptor, and rows without a distance are named
(``unique_receptors``). Distances of V genes come from a table of the user's, or are
TCRdist of their loops.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np

from jaxalign.errors import InputError, UsageError
from jaxalign.model.alphabet import LetterCodes
from jaxalign.model.show import brief
from jaxalign.repertoire.metrics import LETTERS, PositionMetric

MAX_NAMED = 5  # rows that a message names
DROPPED = -1
LOOP_GAP = 4  # of each letter that a loop has more, as in TCRdist
ARMS = {
    "TRA": "VJ", "TRG": "VJ", "IGK": "VJ", "IGL": "VJ",
    "TRB": "VDJ", "TRD": "VDJ", "IGH": "VDJ",
}  # fmt: skip
# How many of a chain there were; the first column that has a value decides.
ABUNDANCE = ("umi_count", "duplicate_count", "consensus_count")
JUNCTION, GENE, CELL, NAME = "junction_aa", "v_call", "cell_id", "sequence_id"
LOCUS, CHIMERIC = "locus", "multi"  # as Cell Ranger writes it
# A row that says no to one of these is not usable, and why.
FLAGS = {
    "productive": "not productive",
    "is_cell": "no cell",
    "high_confidence": "low confidence",
}
YES, NO = ("t", "true", "1", "1.0", "yes"), ("f", "false", "0", "0.0", "no")
# Names of AIRR, and what 10x Genomics and others call the same. These are looked for
# where there is no ``junction_aa``.
COLUMNS: dict[str, tuple[str, ...]] = {
    JUNCTION: ("cdr3_aa", "cdr3", "CDR3", "cdr3aa", "CDR3aa"),
    GENE: ("v_gene",),
    LOCUS: ("chain",),
    CELL: ("barcode",),
    NAME: ("contig_id",),
    "umi_count": ("umis",),
    "duplicate_count": (),
    "consensus_count": ("reads",),
} | dict.fromkeys(FLAGS, ())
# Texts that mean nothing, whatever their case.
MISSING = ("", "na", "<na>", "n/a", "#n/a", "nan", "nat", "none", "null")
LONGEST_MISSING = max(map(len, MISSING))
_CODE = np.full(256, 255, np.uint8)
_CODE[[*map(ord, LETTERS)]] = np.arange(len(LETTERS))


@dataclass(frozen=True, eq=False)
class Chain:
    """One chain of all rows; None where a row lacks it.

    name : ``VJ`` (alpha, gamma, light), ``VDJ`` (beta, delta, heavy), or ``CDR3``.
    """

    name: str
    cdr3: list[str | None]
    v_genes: list[str | None] | None = None

    __repr__ = brief


@dataclass(frozen=True, eq=False)
class ReceptorRows:
    """Rows of a caller: a name and some chains each.

    origin : where rows come from: a file's path, say.
    faults : why rows are not usable, whatever their chains: row -> reason.
    numbers : the row of the caller's table that each row is, or begins with.
    """

    names: Sequence[str]
    chains: tuple[Chain, ...]
    origin: str = ""
    notes: tuple[str, ...] = ()
    faults: Mapping[int, str] = field(default_factory=dict)
    numbers: Sequence[int] | None = None

    __repr__ = brief

    def __len__(self) -> int:
        return len(self.chains[0].cdr3)


@dataclass(frozen=True, eq=False)
class Values:
    """The unique values of a chain: CDR3 sequences with their V genes.

    cdr3 : unique sequences.
    genes : unique V genes, empty where they do not count.
    parts : int64 (values, 1 or 2). The sequence, and the gene, of each value.
    """

    cdr3: list[str]
    genes: list[str]
    parts: np.ndarray

    __repr__ = brief

    def sequences(self, which: np.ndarray) -> LetterCodes:
        """Codes of the unique sequences with these rising numbers, int64."""
        return self._encoded.chosen(which)

    @cached_property
    def _encoded(self) -> LetterCodes:
        return encoded(self.cdr3)


@dataclass(frozen=True, eq=False)
class Receptors:
    """Unique receptors of some rows.

    vertex : int64 (rows,). The receptor of each row, ``DROPPED`` of one that was
        dropped.
    first : int64 (receptors,). The first row of each.
    counts : int64 (receptors,). How many rows are equal to it, itself too.
    values : of each chain.
    of_chain : int64 (receptors, chains). Which value of each chain a receptor has; -1
        for none.
    problems : why rows have no distance, and which: reason -> int64 rows.
    """

    rows: ReceptorRows
    vertex: np.ndarray
    first: np.ndarray
    counts: np.ndarray
    values: tuple[Values, ...]
    of_chain: np.ndarray
    problems: dict[str, np.ndarray]

    __repr__ = brief

    def __len__(self) -> int:
        return len(self.first)


def meanings(values: Iterable[Any]) -> list[Any]:
    """List the values of a list or a column, None where one means nothing."""
    return [
        x if type(x) is str and len(x) > LONGEST_MISSING else _meaning(x)
        for x in values
    ]


def _meaning(value: Any) -> Any:
    if isinstance(value, str):
        return None if value.strip().lower() in MISSING else value
    try:
        return value if value is not None and value == value else None
    except TypeError:  # pandas.NA is neither equal nor unequal to itself
        return None
    except ValueError:  # an array
        return str(value)


def problem_of(
    cdr3: Any, gene: str | None = None, gene_known: Callable[[str], bool] | None = None
) -> str | None:
    """Name the reason why a text is not a CDR3 sequence, or has no V gene, or None.

    gene_known : whether a V gene has distances; None where genes do not count.
    """
    if cdr3 is None or (isinstance(cdr3, str) and not cdr3):
        return "no sequence"
    if not isinstance(cdr3, str):
        return "no text"
    if not cdr3.strip(LETTERS):
        if gene_known is None or (gene and gene_known(gene)):
            return None
        return "unknown V gene" if gene else "no V gene"
    for letters, problem in (
        ("*", "stop codon (*)"),
        ("_", "shifted frame (_)"),
    ):
        if letters in cdr3:
            return problem
    if not cdr3.upper().strip(LETTERS):
        return "lower-case letters"
    return "letters outside the twenty"


def unique_receptors(
    rows: ReceptorRows,
    bad: str,
    gene_known: Callable[[str], bool] | None,
    all_chains: bool,
) -> Receptors:
    """Collapse equal rows, and find rows without a distance.

    bad : {"error", "keep", "drop"}. ``keep`` makes each such row a receptor without
        edges.
    gene_known : whether a V gene has distances; None where genes do not count.
    all_chains : whether a row without one of several chains has no distance.
    """
    reasons = _reasons(rows, gene_known, all_chains)
    # The rows of each reason.
    bad_rows: dict[str, list[int]] = {}
    for row, reason in enumerate(reasons):
        if reason is not None:
            bad_rows.setdefault(reason, []).append(row)
    problems = {why: np.array(places, np.int64) for why, places in bad_rows.items()}
    if problems and bad == "error":
        raise InputError(_refusal(rows, reasons, problems))
    with_genes = gene_known is not None
    keys = _keys(rows, reasons, with_genes)
    if problems and bad == "keep":
        keys = [(k,) if key is None else key for k, key in enumerate(keys)]
    places: Any = slice(None)
    if problems:
        places = [k for k, key in enumerate(keys) if key is not None]
        keys = [keys[k] for k in places]
    vertex = np.full(len(rows), DROPPED, np.int64)
    unique, vertex[places] = numbered(keys)
    with_vertex = np.flatnonzero(vertex >= 0)
    first = np.zeros(len(unique), np.int64)
    first[vertex[with_vertex][::-1]] = with_vertex[::-1]
    counts = np.bincount(vertex[with_vertex], minlength=len(unique))
    if len(rows.chains) == 1 and not (problems or with_genes):  # keys are sequences
        identity = np.arange(len(unique))
        chains = [(Values(unique, [], identity[:, None]), identity)]
    else:
        chains = [_values(rows, c, first, reasons, with_genes) for c in rows.chains]
    of_chain = [numbers for _, numbers in chains]
    of_chain = np.stack(of_chain, axis=1) if len(first) else np.zeros((0, len(chains)))
    values = tuple(value for value, _ in chains)
    of_chain = of_chain.astype(np.int64)
    return Receptors(rows, vertex, first, counts, values, of_chain, problems)


def numbered(items: list[Any]) -> tuple[list[Any], np.ndarray]:
    """Unique items by first occurrence, and the index of each item, int64 (items,)."""
    unique = [*dict.fromkeys(items)]
    if len(unique) == len(items):
        return unique, np.arange(len(items))
    numbers = dict(zip(unique, count(), strict=False))
    return unique, np.fromiter(map(numbers.__getitem__, items), np.int64, len(items))


def _all_fine(cdr3: list[Any]) -> bool:
    """Whether no sequence of a chain has a problem."""
    try:
        return all(cdr3) and not "".join(cdr3).strip(LETTERS)
    except TypeError:  # not all are texts
        return False


def _reasons(
    rows: ReceptorRows, gene_known: Callable[[str], bool] | None, all_chains: bool
) -> list[str | None]:
    """List the reason why each row has no distance, or None."""
    reasons: list[str | None] = [None] * len(rows)
    for row, fault in rows.faults.items():
        reasons[row] = fault
    missing = np.zeros(len(rows), np.int64)
    several = len(rows.chains) > 1
    for chain in rows.chains:
        if gene_known is None and _all_fine(chain.cdr3):
            continue
        for row, cdr3 in enumerate(chain.cdr3):
            gene = chain.v_genes[row] if chain.v_genes else None
            problem = problem_of(cdr3, gene, gene_known)
            if problem == "no sequence" and several:
                missing[row] += 1
            elif problem is not None and reasons[row] is None:
                reasons[row] = f"{problem}, chain {chain.name}" if several else problem
    for row in np.flatnonzero(missing).tolist() if several else ():
        if reasons[row] is None and (all_chains or missing[row] == len(rows.chains)):
            reasons[row] = "no sequence of a chain"
    return reasons


def _refusal(rows: ReceptorRows, reasons: list, problems: dict[str, np.ndarray]) -> str:
    """Names of the first bad rows, and how many there are."""
    bad = [row for row, reason in enumerate(reasons) if reason is not None]
    named = "; ".join(
        f"row {(rows.numbers or range(len(rows)))[row] + 1} ({rows.names[row]}): "
        f"{reasons[row]}" + _shown(chain.cdr3[row] for chain in rows.chains)
        for row in bad[:MAX_NAMED]
    )
    counts = ", ".join(f"{len(places):,} {why}" for why, places in problems.items())
    origin = f"{rows.origin}: " if rows.origin else ""
    return (
        f"{origin}{len(bad):,} of {len(rows):,} rows have no distance ({counts}): "
        f"{named}{'; …' if len(bad) > MAX_NAMED else ''}. bad='drop' (--bad drop) "
        "leaves them out, bad='keep' (--bad keep) keeps them without edges"
    )


def _shown(texts: Iterable[object]) -> str:
    words = [repr(text) for text in texts if isinstance(text, str) and text]
    return f", {', '.join(words)[:60]}" if words else ""


def _keys(rows: ReceptorRows, reasons: list, with_genes: bool) -> list:
    """Keys of rows, equal where the rows are; None of rows without a distance."""
    columns: list[list] = []
    for chain in rows.chains:
        columns.append([text or None for text in chain.cdr3])
        if with_genes:
            columns.append(list(chain.v_genes or [None] * len(rows)))
    keys = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    if not any(reasons):
        return keys
    return [
        key if why is None else None for key, why in zip(keys, reasons, strict=True)
    ]


def _values(
    rows: ReceptorRows, chain: Chain, first: np.ndarray, reasons: list, with_genes: bool
):
    """(unique values of a chain, index of each receptor's value int64)."""
    rows_of = first.tolist()
    places = [k for k, x in enumerate(rows_of) if reasons[x] is None and chain.cdr3[x]]
    numbers = np.full(len(first), -1, np.int64)
    sequences, which = numbered([chain.cdr3[rows_of[k]] for k in places])
    if not with_genes:
        numbers[places] = which
        return Values(sequences, [], np.arange(len(sequences))[:, None]), numbers
    v_genes = chain.v_genes or [None] * len(rows)
    genes, whose = numbered([v_genes[rows_of[k]] or "" for k in places])
    pairs = zip(which.tolist(), whose.tolist(), strict=True)
    parts, numbers[places] = numbered(list(pairs))
    return Values(sequences, genes, np.array(parts, np.int64).reshape(-1, 2)), numbers


def encoded(cdr3: list[str]) -> LetterCodes:
    """CDR3 sequences of the twenty letters as codes in the order of ``LETTERS``."""
    text = np.frombuffer("".join(cdr3).encode("ascii"), np.uint8)
    lengths = np.fromiter(map(len, cdr3), np.int64, len(cdr3))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return LetterCodes(_CODE[text], offsets, len(LETTERS))


@dataclass(frozen=True, eq=False)
class GeneDistances:
    """Distances of V genes.

    places : dict of str to int. The row of each gene.
    matrix : int64 (genes, genes)
    """

    places: dict[str, int]
    matrix: np.ndarray

    def knows(self, gene: str) -> bool:
        return self.place(gene) is not None

    def place(self, gene: str) -> int | None:
        """The row of a gene as a table names it: of several genes the first, with its
        allele or without, or with allele 01."""
        gene = gene.split(",")[0].strip()
        bare = gene.partition("*")[0]
        names = (gene, bare, f"{bare}*01") if gene == bare else (gene, bare)
        return next((self.places[x] for x in names if x in self.places), None)

    def between(self, a: list[str], b: list[str]) -> np.ndarray:
        """int64 (a, b); every gene is known."""
        rows, columns = ([self.place(gene) for gene in genes] for genes in (a, b))
        return self.matrix[np.ix_(np.array(rows, int), np.array(columns, int))]


def genes_from_table(table: Any) -> GeneDistances:
    """Distances of genes from a mapping of pairs, or a square table with names.

    table : mapping of (gene, gene) to int, or pandas.DataFrame. A pair in one order is
        enough; of a gene with itself the distance is 0.
    """
    if hasattr(table, "columns") and hasattr(table, "index"):
        names = [str(x) for x in table.index]
        if names != [str(x) for x in table.columns]:
            raise InputError("V genes: rows and columns need the same genes in order")
        return _checked(names, np.asarray(table))
    if not isinstance(table, Mapping):
        raise UsageError(
            "v_distances must be a mapping of pairs of genes, or a square "
            "pandas.DataFrame"
        )
    names = list(dict.fromkeys(str(gene) for pair in table for gene in pair))
    places = {name: k for k, name in enumerate(names)}
    matrix = np.full((len(names),) * 2, np.nan, object)
    np.fill_diagonal(matrix, 0)
    for (a, b), distance in table.items():
        i, j = places[str(a)], places[str(b)]
        matrix[i, j] = distance
        if (b, a) not in table:
            matrix[j, i] = distance
    return _checked(names, matrix)


def _checked(names: list[str], matrix: Any) -> GeneDistances:
    try:
        values = np.asarray(matrix, float)
    except (TypeError, ValueError) as error:
        raise InputError(f"V genes: distances must be numbers ({error})") from None
    whole = np.isfinite(values)
    whole[whole] = (values[whole] == np.floor(values[whole])) & (values[whole] >= 0)
    for rule, bad in (
        ("a whole number of 0 or more is needed", ~whole),
        ("the distance must be the same in both orders", values != values.T),
        ("the distance of a gene from itself must be 0", np.diag(np.diag(values) != 0)),
    ):
        if bad.any():
            i, j = np.argwhere(bad)[0]
            raise InputError(
                f"V genes {names[i]}, {names[j]}: {values[i, j]:g}: {rule}"
            )
    if len(set(names)) < len(names):
        twice = next(x for k, x in enumerate(names) if x in names[:k])
        raise InputError(f"V genes: the name {twice!r} comes twice")
    return GeneDistances({x: k for k, x in enumerate(names)}, values.astype(np.int64))


def genes_from_loops(
    loops: Mapping[str, str | Iterable[str]], table: np.ndarray
) -> GeneDistances:
    """TCRdist of genes: the sum of the distances of their loops.

    loops : mapping of gene to its loops. A text, or as many of each gene: CDR1, CDR2
        and CDR2.5, say. Gaps of an alignment (``.`` and ``-``) are taken out.
    table : int32 (20, 20). Distances of letters, before they are weighted.
    """
    names, sequences = [str(gene) for gene in loops], []
    for gene, texts in loops.items():
        texts = [texts] if isinstance(texts, str) else list(texts)
        sequences.append([x.replace(".", "").replace("-", "") for x in texts])
        if len(sequences[-1]) != len(sequences[0]):
            raise InputError(
                f"V gene {gene}: has {len(texts)} loops, where {names[0]} has "
                f"{len(sequences[0])}"
            )
        if bad := [x for x in sequences[-1] if x.strip(LETTERS)]:
            raise InputError(
                f"V gene {gene}: loop {bad[0]!r} has letters other than amino acids"
            )
    metric = PositionMetric(table, LOOP_GAP)
    matrix = np.zeros((len(names),) * 2, np.int64)
    for column in zip(*sequences, strict=True):
        codes = [encoded([text]).codes.astype(np.int64) for text in column]
        for i, x in enumerate(codes):
            for j, y in enumerate(codes[:i]):
                distance = _distance(x, y, metric)
                matrix[i, j] += distance
                matrix[j, i] += distance
    return GeneDistances({x: k for k, x in enumerate(names)}, matrix)


def _distance(x: np.ndarray, y: np.ndarray, metric: PositionMetric) -> int:
    short, long = sorted((x, y), key=len)
    surplus = len(long) - len(short)
    distances = []
    for comparison in metric.comparisons(len(short), 2**30, surplus):
        if surplus in comparison.surplus:
            from_start = np.array(comparison.from_start, np.int64)
            from_end = np.array(comparison.from_end, np.int64)
            parts = metric.table[short[from_start], long[from_start]].sum()
            parts += metric.table[short[-1 - from_end], long[-1 - from_end]].sum()
            distances.append(int(parts) + int(metric.penalty(surplus)))
    return min(distances)


def rows_of_table(
    columns: Mapping[str, Sequence[Any]],
    chains: str | None,
    gene_known: Callable[[str], bool] | None = None,
    origin: str = "",
    junctions: str | None = None,
) -> ReceptorRows:
    """The rows of a table of rearrangements.

    What a row that is not usable says of other columns decides nothing.

    columns : mapping of names of columns to their values. ``junction_aa``; ``v_call``,
        ``locus``, ``cell_id``, ``sequence_id``, ``productive`` and counts are read
        where they are needed, also by the names of ``COLUMNS``.
    chains : {"VJ", "VDJ", "sum", "all", "any"} or None. One arm alone, or both arms of
        each cell; None is for tables of one arm.
    gene_known : whether a V gene has distances; None where genes do not count.
    junctions : the column of the CDR3, in place of ``junction_aa``.
    """
    where = origin or "table"
    of_cells = chains in ("sum", "all", "any")
    table, notes = _table_of(columns, where, junctions, () if of_cells else ABUNDANCE)
    cdr3, count = table[JUNCTION], len(table[JUNCTION])
    blank: list[str | None] = [None] * count
    loci, genes = table.get(LOCUS) or blank, table.get(GENE) or blank
    faults = _faults(table, where)
    # The arm of every row, None where neither locus nor gene names it.
    sides = [*zip(loci, genes, strict=True)]
    arm_of = {(x, y): ARMS.get((x or (y or "")[:3]).upper()) for x, y in {*sides}}
    arms = [*map(arm_of.__getitem__, sides)]
    problems = blank
    if faults or gene_known is not None or not _all_fine(cdr3):
        problems = [
            faults.get(row) or problem_of(cdr3[row], gene, gene_known)
            for row, gene in enumerate(genes)
        ]
    for row, arm in enumerate(arms) if None in arm_of.values() else ():
        if arm is not None or problems[row] is not None:
            continue
        if loci[row]:
            raise InputError(
                f"{where}, row {row + 1}: locus {loci[row]!r} is unknown; "
                f"known: {', '.join(ARMS)}"
            )
        if chains is not None:
            problems[row] = faults[row] = "neither locus nor V gene"
    if chains is not None and count and not any(arms):
        raise InputError(
            f"{where}: chains={chains!r} needs locus or v_call, to tell the arm of a "
            "row"
        )
    if of_cells:
        return _cells(table, arms, problems, notes, where, origin)
    usable_arms = [x for x, why in zip(arms, problems, strict=True) if why is None]
    present = dict.fromkeys(filter(None, usable_arms))
    if chains is None and len(present) > 1:
        raise UsageError(
            f"{where}: chains of both arms, VJ and VDJ: choose one by chains='VJ' or "
            "'VDJ', or compare cells by both, by chains='sum', 'all' or 'any'"
        )
    rows = [*range(count)]
    if chains is not None:
        rows = [row for row, arm in enumerate(arms) if arm in (chains, None)]
    if len(rows) < count:
        notes = (*notes, f"{count - len(rows):,} rows of the other arm are left out")
    chain = Chain(str(chains or next(iter(present), "CDR3")), *_taken(table, rows))
    if faults:
        faults = {k: faults[row] for k, row in enumerate(rows) if row in faults}
    names = _names(table, rows, where)
    return ReceptorRows(names, (chain,), origin, notes, faults, rows)


def _table_of(
    columns: Mapping[str, Sequence[Any]],
    where: str,
    junctions: str | None,
    unread: Iterable[str],
) -> tuple[dict[str, list[str | None]], tuple[str, ...]]:
    """The columns that are read, by their names in AIRR, as texts; and notes."""
    if len({len(values) for values in columns.values()}) > 1:
        raise InputError(f"{where}: columns differ in length")
    table: dict[str, list[str | None]] = {}
    for name, synonyms in COLUMNS.items():
        candidates = (name,) if JUNCTION in columns else (name, *synonyms)
        if name == JUNCTION and junctions is not None:
            candidates, synonyms = (junctions,), ()
        title = next((x for x in candidates if x in columns), None)
        if title is not None and name not in unread:
            table[name] = _texts(columns[title])
        if name != JUNCTION or title == JUNCTION:
            continue
        if title is None:
            synonyms_text = f", nor {', '.join(synonyms)}" * bool(synonyms)
            raise InputError(
                f"{where}: no column {candidates[0]!r}{synonyms_text} "
                f"({', '.join(map(str, columns))[:200]})"
            )
        texts = [text for text in table[name] if text]
        if texts and not any(text.upper().strip("ACGTUN") for text in texts):
            raise InputError(f"{where}: column {title!r} has nucleotides")
    shifted = "cdr3_aa" in columns and (
        JUNCTION not in columns if junctions is None else junctions == "cdr3_aa"
    )
    note = (
        "cdr3_aa stands for junction_aa, which has a residue more at each end: ntrim, "
        "ctrim and the place of a gap are counted from the ends of cdr3_aa"
    )
    return table, (note,) if shifted else ()


class _Meanings(dict[str, str | None]):
    """Texts to themselves or None, looked at once: short ones are often the same."""

    def __missing__(self, text: str) -> str | None:
        self[text] = _meaning(text)
        return self[text]


def _texts(values: Iterable[Any]) -> list[str | None]:
    """Fields of a column as texts without space around them, None where one means
    nothing."""
    fields, short = [*values], _Meanings()
    if {*map(type, fields)} <= {str}:
        texts = map(str.strip, fields)
        return [x if len(x) > LONGEST_MISSING else short[x] for x in texts]
    bare = (x.strip() if isinstance(x, str) else x for x in fields)
    return [None if x is None else str(x) for x in meanings(bare)]


def _faults(table: dict[str, list[str | None]], where: str) -> dict[int, str]:
    """Why rows are not usable by what the table says of them: row -> reason."""
    faults: dict[int, str] = {}
    for name, reason in FLAGS.items():
        values = table.get(name, ())
        if {(value or YES[0]).lower() for value in {*values}} <= {*YES}:
            continue
        for row, value in enumerate(values):
            word = (value or YES[0]).lower()
            if word in NO:
                faults.setdefault(row, reason)
            elif word not in YES:
                raise InputError(
                    f"{where}, row {row + 1}: {name} {value!r} is neither T nor F"
                )
    for row, locus in enumerate(table.get(LOCUS, ())):
        if (locus or "").lower() == CHIMERIC:
            faults.setdefault(row, f"locus {locus}")
    return faults


def _taken(table: dict[str, list], rows: list[int]) -> tuple[list, list | None]:
    cdr3, genes = table[JUNCTION], table.get(GENE)
    if len(rows) == len(cdr3):
        return cdr3, genes
    genes = None if genes is None else [genes[row] for row in rows]
    return [cdr3[row] for row in rows], genes


def _names(table: dict[str, list], rows: list[int], where: str) -> Sequence[str]:
    """Names of rows: their own, that of a cell with one row, or a number."""
    blank = [None] * len(table[JUNCTION])
    ids, cells = table.get(NAME) or blank, table.get(CELL) or blank
    texts = [text for row in rows if (text := ids[row])]
    if len({*texts}) == len(rows):
        return texts
    of_cell = Counter(cells[row] for row in rows)
    names: dict[str, int] = {}
    for row in rows:
        cell = cells[row]
        shared = f"{cell}:{row + 1}" if cell and of_cell[cell] > 1 else cell
        name = ids[row] or shared or f"row{row + 1}"
        if names.setdefault(name, row) != row:
            raise InputError(
                f"{where}, rows {names[name] + 1} and {row + 1}: the name {name!r} "
                f"comes twice\nhint: without a column {NAME!r} rows are numbered"
            )
    return [*names]


def _cells(
    table: dict[str, list],
    arms: list[str | None],
    problems: list[str | None],
    notes: tuple[str, ...],
    where: str,
    origin: str,
) -> ReceptorRows:
    """One row per cell: the most abundant usable chain of each arm, the first of
    equals. A chain without a cell is a row of its own, which is not usable."""
    if CELL not in table:
        raise InputError(f"{where}: no column {CELL!r}, which pairs chains")
    usable = [row for row, why in enumerate(problems) if why is None]
    # The abundance of the chain in each row; 0 where no count is given.
    columns = (table[name] for name in ABUNDANCE if name in table)
    counts = next((x for x in columns if any(x[row] for row in usable)), None)
    abundance = np.zeros(len(arms))
    for row in usable if counts else ():
        try:
            abundance[row] = float(counts[row] or 0)
        except ValueError:
            abundance[row] = np.nan
        if not np.isfinite(abundance[row]):
            raise InputError(
                f"{where}, row {row + 1}: count {counts[row]!r} is not a number"
            )
    cells: dict[str, dict[str, int]] = {}
    first: list[int] = []
    orphans: list[int] = []
    surplus, unusable = 0, Counter[str]()
    for row, (cell, arm) in enumerate(zip(table[CELL], arms, strict=True)):
        if cell is None:
            orphans.append(row)
            continue
        if cell not in cells:
            first.append(row)
        chains = cells.setdefault(cell, {})
        problem = problems[row]
        if problem is not None or arm is None:
            unusable[str(problem)] += 1
            continue
        best = chains.get(arm)
        surplus += best is not None
        if best is None or abundance[row] > abundance[best]:
            chains[arm] = row
    if surplus:
        notes = (*notes, f"{surplus:,} further chains of cells are left out")
    if unusable:
        reasons = ", ".join(f"{n:,} {why}" for why, n in unusable.items())
        total = f"{unusable.total():,} chains of cells that are not usable"
        notes = (*notes, f"{total} are left out: {reasons}")
    genes = table.get(GENE)
    chains_of_cells = []
    no_chain: list[None] = [None] * len(orphans)
    for arm in ("VJ", "VDJ"):
        rows = [*(chains.get(arm) for chains in cells.values()), *no_chain]
        cdr3 = [None if row is None else table[JUNCTION][row] for row in rows]
        chain_genes = genes and [None if row is None else genes[row] for row in rows]
        chains_of_cells.append(Chain(arm, cdr3, chain_genes))
    faults = dict.fromkeys(range(len(cells), len(cells) + len(orphans)), f"no {CELL}")
    names = [*cells, *_names(table, orphans, where)]
    numbers = [*first, *orphans]
    return ReceptorRows(names, tuple(chains_of_cells), origin, notes, faults, numbers)
