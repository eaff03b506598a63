"""Rows of a caller as unique receptors: what is equal, and what is no sequence."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np

from jaxalign.errors import InputError
from jaxalign.model.letters import LetterCodes
from jaxalign.repertoire.metrics import LETTERS

MAX_NAMED = 5  # rows that a message names
DROPPED = -1
_CODE = np.full(256, 255, np.uint8)
_CODE[[*map(ord, LETTERS)]] = np.arange(len(LETTERS))


@dataclass(frozen=True, eq=False)
class Chain:
    """One chain of all rows; None where a row lacks it.

    Attributes
    ----------
    name : str
        ``VJ`` (alpha, gamma, light), ``VDJ`` (beta, delta, heavy), or ``CDR3``.
    cdr3 : list of str or None
    v_genes : list of str or None, or None
    """

    name: str
    cdr3: list[str | None]
    v_genes: list[str | None] | None = None


@dataclass(frozen=True, eq=False)
class ReceptorRows:
    """Rows of a caller: a name and some chains each.

    ``origin`` says where rows come from: a file's path, say.
    """

    names: Sequence[str]
    chains: tuple[Chain, ...]
    origin: str = ""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.chains[0].cdr3)


@dataclass(frozen=True, eq=False)
class Values:
    """The unique values of a chain: CDR3 sequences with their V genes.

    Attributes
    ----------
    cdr3 : list of str
        Unique sequences.
    genes : list of str
        Unique V genes, empty where they do not count.
    parts : int64 (values, 1 or 2)
        The sequence, and the gene, of each value.
    """

    cdr3: list[str]
    genes: list[str]
    parts: np.ndarray

    def sequences(self, which: np.ndarray) -> LetterCodes:
        """Some of the unique sequences as codes, by rising numbers int64."""
        return self._encoded.chosen(which)

    @cached_property
    def _encoded(self) -> LetterCodes:
        return encoded(self.cdr3)


@dataclass(frozen=True, eq=False)
class Receptors:
    """Unique receptors of some rows.

    Attributes
    ----------
    rows : ReceptorRows
    vertex : int64 (rows,)
        The receptor of each row, ``DROPPED`` of one that was dropped.
    first : int64 (receptors,)
        The first row of each.
    counts : int64 (receptors,)
        How many rows are equal to it, itself too.
    values : tuple of Values
        Of each chain.
    of_chain : int64 (receptors, chains)
        Which value of each chain a receptor has; -1 for none.
    problems : dict
        Why rows have no distance, and which: reason -> int64 rows.
    """

    rows: ReceptorRows
    vertex: np.ndarray
    first: np.ndarray
    counts: np.ndarray
    values: tuple[Values, ...]
    of_chain: np.ndarray
    problems: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.first)


def problem_of(cdr3: Any) -> str | None:
    """Why a text is no CDR3 sequence; None where it is one."""
    if cdr3 is None or cdr3 != cdr3 or cdr3 == "":
        return "no sequence"
    if not isinstance(cdr3, str):
        return "no text"
    if not cdr3.strip(LETTERS):
        return None
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

    Parameters
    ----------
    bad : {"error", "keep", "drop"}
        ``keep`` makes each such row a receptor without edges.
    gene_known : function, optional
        Whether a V gene has distances; None where genes do not count.
    all_chains : bool
        Whether a row without one of several chains has no distance.

    Raises
    ------
    InputError
        There are such rows, and ``bad`` is "error".
    """
    reasons = _reasons(rows, gene_known, all_chains)
    problems = _by_reason(reasons)
    if problems and bad == "error":
        raise InputError(_refusal(rows, reasons, problems))
    with_genes = gene_known is not None
    keys = _keys(rows, reasons, with_genes)
    if problems and bad == "keep":
        keys = [(k,) if key is None else key for k, key in enumerate(keys)]
    kept: Any = slice(None)
    if problems:
        kept = [k for k, key in enumerate(keys) if key is not None]
        keys = [keys[k] for k in kept]
    vertex = np.full(len(rows), DROPPED, np.int64)
    known, vertex[kept] = numbered(keys)
    with_vertex = np.flatnonzero(vertex >= 0)
    first = np.zeros(len(known), np.int64)
    first[vertex[with_vertex][::-1]] = with_vertex[::-1]
    counts = np.bincount(vertex[with_vertex], minlength=len(known))
    if len(rows.chains) == 1 and not (problems or with_genes):  # keys are sequences
        own = np.arange(len(known))
        chains = [(Values(known, [], own[:, None]), own)]
    else:
        chains = [_values(rows, c, first, reasons, with_genes) for c in rows.chains]
    of_chain = [numbers for _, numbers in chains]
    of_chain = np.stack(of_chain, axis=1) if len(first) else np.zeros((0, len(chains)))
    values = tuple(some for some, _ in chains)
    of_chain = of_chain.astype(np.int64)
    return Receptors(rows, vertex, first, counts, values, of_chain, problems)


def numbered(items: list[Any]) -> tuple[list[Any], np.ndarray]:
    """Unique items in the order of their first places, and which of them each is, int64
    (items,)."""
    unique = [*dict.fromkeys(items)]
    if len(unique) == len(items):
        return unique, np.arange(len(items))
    known = dict(zip(unique, count(), strict=False))
    return unique, np.fromiter(map(known.__getitem__, items), np.int64, len(items))


def _all_fine(cdr3: list[Any]) -> bool:
    """Whether no sequence of a chain has a problem."""
    try:
        return all(cdr3) and not "".join(cdr3).strip(LETTERS)
    except TypeError:  # not all are texts
        return False


def _reasons(
    rows: ReceptorRows, gene_known: Callable[[str], bool] | None, all_chains: bool
) -> list[str | None]:
    """Why each row has no distance, None of most."""
    reasons: list[str | None] = [None] * len(rows)
    missing = np.zeros(len(rows), np.int64)
    several = len(rows.chains) > 1
    for chain in rows.chains:
        if gene_known is None and _all_fine(chain.cdr3):
            continue
        for row, cdr3 in enumerate(chain.cdr3):
            problem = problem_of(cdr3)
            if problem is None and gene_known is not None:
                gene = chain.v_genes[row] if chain.v_genes else None
                if not gene:
                    problem = "no V gene"
                elif not gene_known(gene):
                    problem = "unknown V gene"
            if problem == "no sequence" and several:
                missing[row] += 1
            elif problem is not None and reasons[row] is None:
                reasons[row] = f"{problem}, chain {chain.name}" if several else problem
    for row in np.flatnonzero(missing).tolist() if several else ():
        if reasons[row] is None and (all_chains or missing[row] == len(rows.chains)):
            reasons[row] = "no sequence of a chain"
    return reasons


def _by_reason(reasons: list[str | None]) -> dict[str, np.ndarray]:
    rows: dict[str, list[int]] = {}
    for row, reason in enumerate(reasons):
        if reason is not None:
            rows.setdefault(reason, []).append(row)
    return {reason: np.array(some, np.int64) for reason, some in rows.items()}


def _refusal(rows: ReceptorRows, reasons: list, problems: dict[str, np.ndarray]) -> str:
    """Names of the first bad rows, and how many there are."""
    bad = [row for row, reason in enumerate(reasons) if reason is not None]
    named = "; ".join(
        f"row {row + 1} ({rows.names[row]}): {reasons[row]}"
        + _shown(chain.cdr3[row] for chain in rows.chains)
        for row in bad[:MAX_NAMED]
    )
    counts = ", ".join(f"{len(some):,} {why}" for why, some in problems.items())
    origin = f"{rows.origin}: " if rows.origin else ""
    return (
        f"{origin}{len(bad):,} of {len(rows):,} rows have no distance ({counts}): "
        f"{named}{'; …' if len(bad) > MAX_NAMED else ''}. bad='drop' (--bad drop) "
        "leaves them out, bad='keep' (--bad keep) keeps them without edges"
    )


def _shown(texts: Iterable[object]) -> str:
    known = [repr(text) for text in texts if isinstance(text, str) and text]
    return f", {', '.join(known)[:60]}" if known else ""


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
    """(the unique values of a chain, int64 (receptors,): which of them each has)."""
    rows_of = first.tolist()
    some = [k for k, x in enumerate(rows_of) if reasons[x] is None and chain.cdr3[x]]
    numbers = np.full(len(first), -1, np.int64)
    sequences, which = numbered([chain.cdr3[rows_of[k]] for k in some])
    if not with_genes:
        numbers[some] = which
        return Values(sequences, [], np.arange(len(sequences))[:, None]), numbers
    v_genes = chain.v_genes or [None] * len(rows)
    genes, whose = numbered([v_genes[rows_of[k]] or "" for k in some])
    pairs = zip(which.tolist(), whose.tolist(), strict=True)
    parts, numbers[some] = numbered(list(pairs))
    return Values(sequences, genes, np.array(parts, np.int64).reshape(-1, 2)), numbers


def encoded(cdr3: list[str]) -> LetterCodes:
    """CDR3 sequences of the twenty letters as codes in the order of ``LETTERS``."""
    text = np.frombuffer("".join(cdr3).encode("ascii"), np.uint8)
    lengths = np.fromiter(map(len, cdr3), np.int64, len(cdr3))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return LetterCodes(_CODE[text], offsets, len(LETTERS))
