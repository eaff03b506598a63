"""Identity of a pair: one count, eight denominators, each under its own name.

==========  ==================================================================
alignment   columns of the alignment (BLAST, MMseqs2 mode 0)
full        columns and overhanging residues (needle, GraphPart's ``full``)
aligned     columns without a gap (GraphPart's ``no_gaps``)
shorter     the shorter sequence (CD-HIT, MMseqs2 mode 1)
longer      the longer sequence (MMseqs2 mode 2)
mean        the mean of the two lengths
query       the query
target      the target
==========  ==================================================================
"""

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from jaxalign.errors import UsageError
from jaxalign.model.choices import Identity

IDENTITIES: tuple[str, ...] = get_args(Identity)
BY_PATH = ("alignment", "full", "aligned")


def usual_identity(mode: str, free: frozenset) -> Literal["shorter", "longer"]:
    """The denominator of identities without paths, where none is named.

    From end to end an alignment spreads a short sequence over a long one, so that
    unrelated ones look alike over the shorter length; not where ends may hang over.
    """
    return "longer" if mode != "local" and not free else "shorter"


def denominator(kind: str, columns: dict, m: Any, n: Any, xp: Any = np):
    """The denominator of ``kind``; ``columns`` are a table's, m and n the lengths;
    ``xp`` is numpy, or jax.numpy on a device.

    Raises
    ------
    UsageError
        Unknown kind, or one that needs a path where none was computed.
    """
    by_length = {
        "shorter": lambda: xp.minimum(m, n),
        "longer": lambda: xp.maximum(m, n),
        "mean": lambda: (m + n) / 2,
        "query": lambda: m,
        "target": lambda: n,
    }
    if kind in by_length:
        return by_length[kind]()
    if kind not in BY_PATH:
        raise UsageError(f"unknown identity {kind!r}: one of {', '.join(IDENTITIES)}")
    if "columns" not in columns:
        raise UsageError(
            f"identity {kind!r} needs the path's columns: use output='stats', or one "
            "of shorter, longer, mean, query, target"
        )
    if kind == "alignment":
        return columns["columns"]
    if kind == "aligned":
        return columns["columns"] - columns["gaps"]
    spans = columns["query_end"] - columns["query_start"]
    spans = spans + columns["target_end"] - columns["target_start"]
    return columns["columns"] + (m + n - spans)


def ratio(count: ArrayLike, below: ArrayLike):
    """count / below as float64, ``nan`` where there is nothing to divide by."""
    below = np.asarray(below, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(below > 0, np.asarray(count, float) / below, np.nan)
