"""A reference alignment: rows that curators aligned, and the pairs they imply."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

GAP = -1


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
    >>> from jaxalign.model.family import Family, sequence
    >>> family = Family("f", ("a", "b"), np.array([[3, -1, 4], [3, 5, -1]], np.int16))
    >>> sequence(family, 0).tolist()
    [3, 4]
    """
    row = family.codes[k]
    return row[row != GAP].astype(np.uint8)


def partners(family: Family, i: int, j: int) -> np.ndarray:
    """Partners of row ``i`` in row ``j`` (see ``model.pairing``), int32 (m,).

    Examples
    --------
    >>> import numpy as np
    >>> from jaxalign.model.family import Family, partners
    >>> family = Family("f", ("a", "b"), np.array([[3, -1, 4], [3, 5, -1]], np.int16))
    >>> partners(family, 0, 1).tolist()
    [0, -1]
    """
    here, there = (family.codes[k] != GAP for k in (i, j))
    places = np.where(there, np.cumsum(there) - 1, -1)
    return places[here].astype(np.int32)


def identity(family: Family, i: int, j: int) -> float:
    """Identical pairs over all pairs of two rows; 0 where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from jaxalign.model.family import Family, identity
    >>> family = Family("f", ("a", "b"), np.array([[3, -1, 4], [3, 5, 2]], np.int16))
    >>> identity(family, 0, 1)
    0.5
    """
    a, b = family.codes[i], family.codes[j]
    paired = (a != GAP) & (b != GAP)
    return float((a == b)[paired].mean()) if paired.any() else 0.0


def agreement(partners: ArrayLike, reference: ArrayLike) -> tuple[float, float]:
    """(recall, precision) of pairs: the share of the reference's pairs that were found,
    and of the found ones that are in the reference; 1 of nothing.

    Parameters
    ----------
    found, reference : int32 (m,) partners

    Examples
    --------
    >>> from jaxalign.model.family import agreement
    >>> agreement([0, 1, -1, 2], [0, 2, 3, -1])
    (0.3333333333333333, 0.3333333333333333)
    """
    partners, reference = np.asarray(partners), np.asarray(reference)
    right = int(((partners == reference) & (partners >= 0)).sum())
    counts = (int((pairs >= 0).sum()) for pairs in (reference, partners))
    recall, precision = (right / count if count else 1.0 for count in counts)
    return recall, precision
