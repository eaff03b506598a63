"""Distances of V genes: a table of the user's, or TCRdist of their loops."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxalign.errors import InputError, UsageError
from jaxalign.repertoire.metrics import LETTERS, PositionMetric
from jaxalign.repertoire.receptors import encoded

LOOP_GAP = 4  # of each letter that a loop has more, as in TCRdist


@dataclass(frozen=True, eq=False)
class GeneDistances:
    """Distances of V genes.

    Attributes
    ----------
    places : dict of str to int
        The row of each gene.
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


def from_table(table: Any) -> GeneDistances:
    """Distances of genes from a mapping of pairs, or a square table with names.

    Parameters
    ----------
    table : mapping of (gene, gene) to int, or pandas.DataFrame
        A pair in one order is enough; of a gene with itself the distance is 0.

    Raises
    ------
    InputError
        A distance is missing, no whole number from 0 on, or differs in both orders.
    """
    if hasattr(table, "columns") and hasattr(table, "index"):
        names = [str(x) for x in table.index]
        if names != [str(x) for x in table.columns]:
            raise InputError("V genes: rows and columns need the same names in order")
        return _checked(names, np.asarray(table))
    if not isinstance(table, Mapping):
        raise UsageError(
            "v_distances is a mapping of pairs of genes, or a square pandas.DataFrame"
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
        ("a whole number from 0 on is needed", ~whole),
        ("the same distance is needed in both orders", values != values.T),
        ("0 is needed of a gene with itself", np.diag(np.diag(values) != 0)),
    ):
        if bad.any():
            i, j = np.argwhere(bad)[0]
            raise InputError(
                f"V genes {names[i]}, {names[j]}: {values[i, j]:g}: {rule}"
            )
    if len(set(names)) < len(names):
        raise InputError("V genes: a name comes twice")
    return GeneDistances({x: k for k, x in enumerate(names)}, values.astype(np.int64))


def from_loops(
    loops: Mapping[str, str | Iterable[str]], table: np.ndarray
) -> GeneDistances:
    """TCRdist of genes: the sum of the distances of their loops.

    Parameters
    ----------
    loops : mapping of gene to its loops
        A text, or as many of each gene: CDR1, CDR2 and CDR2.5, say. Gaps of an
        alignment (``.`` and ``-``) are taken out.
    table : int32 (20, 20)
        Distances of letters, before they are weighted.

    Raises
    ------
    InputError
        Genes have different numbers of loops, or letters outside the twenty.
    """
    names, known = [str(gene) for gene in loops], []
    for gene, some in loops.items():
        some = [some] if isinstance(some, str) else list(some)
        known.append([x.replace(".", "").replace("-", "") for x in some])
        if len(known[-1]) != len(known[0]):
            raise InputError(f"V gene {gene}: {len(some)} loops, not {len(known[0])}")
        if bad := [x for x in known[-1] if x.strip(LETTERS)]:
            raise InputError(f"V gene {gene}: loop {bad[0]!r} has other letters")
    metric = PositionMetric(table, LOOP_GAP)
    matrix = np.zeros((len(names),) * 2, np.int64)
    for column in zip(*known, strict=True):
        matrix += loop_distances(list(column), metric)
    return GeneDistances({x: k for k, x in enumerate(names)}, matrix)


def loop_distances(texts: list[str], metric: PositionMetric) -> np.ndarray:
    """All distances of some short sequences, int64 (n, n)."""
    codes = [encoded([text]).codes.astype(np.int64) for text in texts]
    matrix = np.zeros((len(texts),) * 2, np.int64)
    for i, x in enumerate(codes):
        for j, y in enumerate(codes[:i]):
            matrix[i, j] = matrix[j, i] = _distance(x, y, metric)
    return matrix


def _distance(x: np.ndarray, y: np.ndarray, metric: PositionMetric) -> int:
    short, long = sorted((x, y), key=len)
    more = len(long) - len(short)
    distances = []
    for one in metric.comparisons(len(short), 2**30, more):
        if more in one.more:
            left = np.array(one.left, np.int64)
            right = np.array(one.right, np.int64)
            parts = metric.table[short[left], long[left]].sum()
            parts += metric.table[short[-1 - right], long[-1 - right]].sum()
            distances.append(int(parts) + int(metric.penalty(more)))
    return min(distances)
