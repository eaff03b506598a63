# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false
"""Public functions of edit (Levenshtein) distances: integers, paths, near pairs.

Substituting, inserting or deleting a letter costs 1. Any character is a letter, and
case matters: ``a`` is not ``A``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np
from scipy.sparse import coo_array, csr_array

from jaxalign import inputs
from jaxalign.errors import InputError, UsageError
from jaxalign.inputs import SetLike
from jaxalign.model import operations
from jaxalign.model.numbers import check_whole, is_number
from jaxalign.runtime import pipeline
from jaxalign.runtime.devices import budget_of
from jaxalign.signatures import with_options
from jaxalign.words import distances, near_pairs


@dataclass(frozen=True, kw_only=True)
class EditOptions:
    """Every option of edit distances, with its default."""

    threads: int | None = None
    memory_budget: int | str | None = None


class EditKeywords(TypedDict, total=False):
    """Options of edit distances."""

    threads: int | None
    memory_budget: int | str | None


@overload
def edit_distance(
    queries: SetLike,
    targets: SetLike,
    *,
    return_cigars: Literal[False] = False,
    **options: Unpack[EditKeywords],
) -> np.ndarray: ...


@overload
def edit_distance(
    queries: SetLike,
    targets: SetLike,
    *,
    return_cigars: Literal[True],
    **options: Unpack[EditKeywords],
) -> tuple[np.ndarray, list[str]]: ...


@with_options(EditOptions)
def edit_distance(
    queries: SetLike,
    targets: SetLike,
    *,
    return_cigars: bool = False,
    **options: Unpack[EditKeywords],
) -> np.ndarray | tuple[np.ndarray, list[str]]:
    """Compute the edit distance of query k to target k, or of one sequence to many.

    Parameters
    ----------
    queries, targets : path, mapping, iterable, Sequences or flat ``(codes, offsets)``
        See ``jaxalign.inputs``. Letters are compared as written, so any str is a
        sequence; so is an array of integers.
    return_cigars : bool
        Return (distances, CIGARs) instead. CIGARs have ``=`` and ``X``, ``I`` for a
        letter of the query and ``D`` for a letter of the target; ``*`` if both
        sequences are empty. Ties are resolved as in ``align``.
    threads : int, optional
        Host threads; all cores by default.
    memory_budget : int or str, optional
        Bytes, or text such as ``"2GiB"``. By default half of the free memory. CIGARs
        need a quarter of a byte per cell of the largest pair.

    Returns
    -------
    int32 (n,)

    Raises
    ------
    InputError
        If the two sides have different numbers of sequences, both above 1; a file
        cannot be read; or one side is text and the other numbers.
    UsageError
        If an option is unknown or out of range.
    MemoryPlanError
        If the table of a path exceeds the budget.

    Notes
    -----
    Bit-parallel, after Myers (1999) in the form of Hyyrö (2003). Jobs of at least 4,096
    pairs that would take the host threads more than a second run on JAX's default
    device if it is a GPU with kernels and no sequence has more than 131,072 letters.

    Examples
    --------
    >>> import jaxalign
    >>> jaxalign.edit_distance(["kitten", "MKTAYIA"], ["sitting", "MKTAIA"])
    array([3, 1], dtype=int32)
    >>> jaxalign.edit_distance(["kitten"], ["sitting"], return_cigars=True)
    (array([3], dtype=int32), ['1X3=1X1=1D'])
    """
    threads, budget = _checked(EditOptions(**options))
    sequences, (query_count, target_count) = inputs.letters(queries, targets)
    count = _pairs(query_count, target_count)
    i = np.arange(count) if query_count == count else np.zeros(count, np.int64)
    j = np.arange(count) if target_count == count else np.zeros(count, np.int64)
    j = j + query_count
    if not return_cigars:
        return distances.distances(sequences, i, j, threads)
    edits, steps = distances.paths(sequences, i, j, budget)
    return edits, [operations.cigar(runs) for runs in steps]


def _pairs(queries: int, targets: int) -> int:
    if queries == targets or targets == 1:
        return queries
    if queries == 1:
        return targets
    raise InputError(
        f"{queries} queries and {targets} targets: the numbers must be equal, or one "
        "of them 1"
    )


def _checked(options: EditOptions) -> tuple[int, int]:
    """(threads, bytes) of some options."""
    check_whole("threads", options.threads)
    threads = options.threads or pipeline.default_threads()
    return threads, budget_of(options.memory_budget)


@with_options(EditOptions, like=(edit_distance,))
def edit_distance_graph(
    sequences: SetLike, *, max_distance: int, **options: Unpack[EditKeywords]
) -> Any:
    """Find all pairs of a set within an edit distance, as a sparse matrix.

    Every pair is compared, or proved to be farther apart. Only pairs of the result are
    held in memory.

    Parameters
    ----------
    sequences : path, mapping, iterable, Sequences or flat ``(codes, offsets)``
        See ``jaxalign.inputs``. Letters are compared as written.
    max_distance : int
        Largest distance of a pair of the result.

    Returns
    -------
    scipy.sparse.csr_array, (n, n) int32
        Distances; symmetric, with an empty diagonal. Two equal sequences have a stored
        0, which ``scipy.sparse.csgraph`` and scikit-learn read as an edge. ``nnz``
        counts it, but ``toarray()`` does not show it.

    Raises
    ------
    InputError
        If a file cannot be read.
    UsageError
        If an option is unknown or out of range.
    MemoryPlanError
        If the pairs of the result exceed the budget.

    Examples
    --------
    >>> import jaxalign
    >>> cdr3s = ["CASSLGQAYEQYF", "CASSLGTAYEQYF", "CASSLGTEQYF", "CSARDRTGNGYTF"]
    >>> jaxalign.edit_distance_graph(cdr3s, max_distance=2).toarray().tolist()
    [[0, 1, 0, 0], [1, 0, 2, 0], [0, 2, 0, 0], [0, 0, 0, 0]]
    """
    value: Any = max_distance
    is_whole = isinstance(value, int | np.integer) and is_number(value)
    if not is_whole or max_distance < 0:
        raise UsageError(
            f"max_distance = {max_distance!r}: a whole number of 0 or more is needed"
        )
    threads, budget = _checked(EditOptions(**options))
    encoded, _ = inputs.letters(sequences)
    # No distance is greater than the longer of two lengths.
    cut = min(int(max_distance), int(encoded.lengths.max(initial=0)))
    i, j, distance = near_pairs.within(encoded, cut, threads, budget).sides
    sides = np.concatenate([i, j]), np.concatenate([j, i])
    shape = (len(encoded),) * 2
    return csr_array(coo_array((np.tile(distance, 2), sides), shape=shape))
