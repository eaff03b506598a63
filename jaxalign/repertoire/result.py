"""The result: a sparse graph of unique receptors."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, csr_matrix, save_npz
from scipy.sparse.csgraph import connected_components

from jaxalign.errors import UsageError
from jaxalign.model import frames, show
from jaxalign.model.alphabet import renumbered
from jaxalign.repertoire.graph import RepertoirePlan, expanded, neighbours
from jaxalign.repertoire.receptors import Receptors
from jaxalign.words.edges import (
    BITS,
    EdgeSet,
    bits_of,
    in_order,
    pack_all,
    unpacked,
    write_all,
)

EDGES_AT_ONCE = 2**21  # whose numbers a thread sorts
MANY_THREADS = 5  # to sort takes so many threads the time that SciPy takes one


@dataclass(frozen=True, eq=False, repr=False)
class RepertoireGraph:
    """Graph of receptors within a distance of each other, or of a reference.

    Attributes
    ----------
    matrix : scipy.sparse.csr_array, (receptors, receptors or reference) int32
        Distances, with zeros stored. For one set it is symmetric, with an empty
        diagonal.
    receptors, reference : Receptors, Receptors or None
        Unique receptors: ``counts`` is the number of rows of each, ``vertex`` the
        receptor of each row, and ``problems`` the rows without a distance, with
        reasons.
    plan : RepertoirePlan
        The checked options.
    seconds : float
        Elapsed time.
    """

    matrix: csr_array
    receptors: Receptors
    reference: Receptors | None
    plan: RepertoirePlan
    seconds: float

    to_pandas, to_arrow, to_polars, write, __repr__, _repr_html_ = frames.METHODS

    def __len__(self) -> int:
        """Receptors."""
        return len(self.receptors)

    @property
    def counts(self) -> np.ndarray:
        """Number of rows of each receptor, int64 (receptors,)."""
        return self.receptors.counts

    @property
    def edges(self) -> EdgeSet:
        """Return each edge once, as int32 i, j and distance; i < j in one set."""
        matrix = self.matrix.tocoo()
        i, j = matrix.coords
        once = i < j if self.reference is None else np.ones(len(i), bool)
        sides = (x[once].astype(np.int32) for x in (i, j, matrix.data))
        return EdgeSet(*sides)

    @cached_property
    def labels(self) -> np.ndarray:
        """Clonotype cluster of each receptor, int32 (receptors,): connected components,
        numbered in the order of their first members.

        Raises
        ------
        UsageError
            If the graph compares two sets.
        """
        self._refuse_two_sets("clusters")
        # Stored zeros are edges: ``csgraph`` reads the pattern of another matrix.
        pattern = csr_array(
            (np.ones(self.matrix.nnz, bool), self.matrix.indices, self.matrix.indptr),
            shape=self.matrix.shape,
        )
        return renumbered(connected_components(pattern, directed=False)[1])

    def of_rows(self) -> csr_array:
        """Expand the matrix to all input rows, (rows, rows or rows of the reference).

        Equal rows have a stored distance of 0; dropped rows have no edges.
        """
        one_set = self.reference is None
        columns_side = self.receptors if self.reference is None else self.reference
        has_value = self.receptors.of_chain.max(axis=1, initial=-1) >= 0
        matrix = self.matrix.tocoo()
        i, j = matrix.coords
        data: Any = matrix.data
        if one_set:
            vertices = np.flatnonzero(has_value)
            i, j = np.concatenate([i, vertices]), np.concatenate([j, vertices])
            data = np.concatenate([data, np.zeros(len(vertices), data.dtype)])
        sizes = len(self.receptors), len(columns_side)
        links = neighbours(EdgeSet(i, j, data), *sizes, symmetric=False)
        vertex = self.receptors.vertex, columns_side.vertex
        parts = [(np.zeros(0, np.int64),) * 3, *expanded(links, *vertex)]
        rows, columns, distance = (
            np.concatenate([part[side] for part in parts]) for side in range(3)
        )
        if one_set:
            real = rows != columns
            rows, columns, distance = rows[real], columns[real], distance[real]
        shape = len(vertex[0]), len(vertex[1])
        distance = distance.astype(np.int32)
        return csr_array(coo_array((distance, (rows, columns)), shape=shape))

    def to_scirpy(self) -> csr_matrix:
        """Return the matrix in scirpy's form, float64: distances plus 1, so that no
        zero is stored, and a diagonal of 1."""
        matrix = self.matrix.tocoo()
        i, j = matrix.coords
        data = matrix.data + 1.0
        if self.reference is None:
            vertices = np.flatnonzero(
                self.receptors.of_chain.max(axis=1, initial=-1) >= 0
            )
            i, j = np.concatenate([i, vertices]), np.concatenate([j, vertices])
            data = np.concatenate([data, np.ones(len(vertices))])
        matrix = csr_matrix((data, (i, j)), shape=self.matrix.shape)
        matrix.sort_indices()
        return matrix

    def columns(self) -> dict[str, Any]:
        """Return the input rows as columns: name, receptor, count and cluster."""
        vertex = self.receptors.vertex
        present = vertex >= 0
        count = np.where(present, self.counts[vertex] if len(self) else 0, 0)
        columns: dict[str, Any] = {
            "name": np.array(self.receptors.rows.names, object),
            "receptor": vertex,
            "count": count,
        }
        if self.reference is None:
            cluster = self.labels[vertex] if len(self) else np.zeros(len(vertex), int)
            columns["cluster"] = np.where(present, cluster, -1)
        return columns

    def save(self, path: str) -> None:
        """Write the matrix as .npz to ``path``, for ``scipy.sparse.load_npz``: eight
        bytes an entry, uncompressed, since zlib would take longer than the graph."""
        with open(path, "wb") as file:
            save_npz(file, self.matrix, compressed=False)

    def __str__(self) -> str:
        return "\n".join((self.heading(), str(self.plan.definition), *self.problems()))

    def heading(self) -> str:
        """Count receptors and edges in words."""
        pairs = self.matrix.nnz // (2 if self.reference is None else 1)
        against = ""
        if self.reference is not None:
            against = f" against {len(self.reference):,}"
        receptors = show.counted(len(self), "receptor")
        return f"{receptors}{against}, {show.counted(pairs, 'edge')}"

    def problems(self) -> list[str]:
        """Count the rows without a distance, one line per reason."""
        reasons = self.receptors.problems.items()
        return [f"{show.counted(len(rows), 'row')}: {why}" for why, rows in reasons]

    def _refuse_two_sets(self, subject: str) -> None:
        if self.reference is not None:
            raise UsageError(f"{subject}: a graph against a reference has none")


def matrix_of(
    edges: EdgeSet, rows: int, columns: int, one_set: bool, threads: int = 1
) -> csr_array:
    """Make a matrix of sorted edges, symmetric for one set."""
    i, j, distance = edges.sides
    shape = rows, columns
    if not one_set:
        return csr_array(coo_array((distance, (i, j)), shape=shape))
    bits = bits_of(rows), bits_of(columns), bits_of(distance.max(initial=0))
    if sum(bits) > BITS or threads < MANY_THREADS:
        # In this order the columns of a row rise.
        places = np.concatenate([j, i]), np.concatenate([i, j])
        return csr_array(coo_array((np.tile(distance, 2), places), shape=shape))
    return _symmetric(edges, bits, shape, threads)


def _symmetric(edges: EdgeSet, bits: tuple, shape: tuple, threads: int) -> csr_array:
    """Edges in both directions."""
    i, j, distance = edges.sides
    parts = []
    for at in range(0, len(i), EDGES_AT_ONCE):
        span = slice(at, at + EDGES_AT_ONCE)
        parts += [(x[span], y[span], distance[span]) for x, y in ((i, j), (j, i))]
    keys = pack_all(parts, bits, threads)
    columns, data = (np.empty(2 * len(i), np.int32) for _ in range(2))
    sizes = np.zeros(shape[0] + 1, np.int64)

    def write(place: slice, keys: np.ndarray) -> None:
        row, columns[place], data[place] = unpacked(keys, bits)
        if len(row):
            counts = np.bincount(row - row[0])
            sizes[row[0] + 1 : row[0] + 1 + len(counts)] = counts

    write_all(in_order(keys, sum(bits[1:]), threads), write, threads)
    starts = np.cumsum(sizes)
    starts = starts if starts[-1] >= 2**31 else starts.astype(np.int32)
    return csr_array((data, columns, starts), shape=shape)
