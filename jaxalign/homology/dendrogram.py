"""The tree of a matrix of distances, and the lines that draw it."""

from dataclasses import dataclass

import numpy as np
from scipy.cluster import hierarchy


@dataclass(frozen=True, eq=False)
class Dendrogram:
    """Average linkage (UPGMA) of condensed distances.

    Attributes
    ----------
    order : int64 (n,)
        The leaves, from the first place to the last.
    lines : list of (heights (4,), places (4,))
        The corners of every joint; the k-th leaf of ``order`` has the place k.
    """

    order: np.ndarray
    lines: list


def dendrogram(distances) -> Dendrogram:
    """The dendrogram of float (n (n - 1) / 2,) distances, n at least 2, in scipy's
    condensed order, which is that of ``align_all``."""
    tree = hierarchy.linkage(distances, "average")
    shown = hierarchy.dendrogram(tree, no_plot=True, get_leaves=True)
    places = (np.array(shown["icoord"]) - 5) / 10  # scipy's leaves have 5, 15, 25 …
    lines = list(zip(np.array(shown["dcoord"]), places, strict=True))
    return Dendrogram(np.array(shown["leaves"]), lines)
