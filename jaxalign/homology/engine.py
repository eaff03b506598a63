"""Run a clustering or an audit of encoded sequences by its definition."""

from dataclasses import replace
from functools import partial

import numpy as np
from scipy.sparse import coo_array, csr_array

from jaxalign.homology import across, linkage
from jaxalign.homology.audit import Audit, with_alignments
from jaxalign.homology.greedy import greedy
from jaxalign.homology.joining import can_join, joined_components
from jaxalign.homology.links import (
    PairCounts,
    all_links,
    components,
    longest_members,
    stream_links,
)
from jaxalign.homology.options import METHODS, Definition, check_choice
from jaxalign.homology.other_measures import other_measures
from jaxalign.homology.result import Clusters
from jaxalign.model.alphabet import Sequences
from jaxalign.model.numbers import check_whole
from jaxalign.model.selection import renumbered
from jaxalign.runtime.pipeline import in_background


def clusters_of(
    data: Sequences, definition: Definition, method: str, every_link: bool = False
) -> Clusters:
    """Cluster a set.

    Parameters
    ----------
    every_link : bool
        Count all links, also those of two sequences that other links connect.

    Raises
    ------
    UsageError
        An unknown method.
    """
    check_choice("method", method, METHODS)
    counts, identity = PairCounts(), None
    if method == "greedy":
        groups = greedy(data, definition, counts)
        labels = renumbered(groups.representative)
        first = np.unique(labels, return_index=True)[1]
        representatives, identity = groups.representative[first], groups.identity
    elif method == "components" and not every_link and can_join(data, definition):
        labels, counts = joined_components(data, definition)
        representatives = longest_members(labels, data.lengths)
    else:
        labels = _linked(data, definition, method, counts)
        representatives = longest_members(labels, data.lengths)
    about = counts.about()
    return Clusters(data, labels, representatives, identity, method, definition, about)


def _linked(data: Sequences, definition: Definition, method: str, counts: PairCounts):
    """Labels by any method but the greedy one."""
    if method == "components":
        parts = stream_links(data, definition, counts)
        return components(len(data), ((x.i, x.j) for x in parts))
    links = all_links(data, definition, counts)
    groups = components(len(data), [(links.i, links.j)])
    return linkage.clusters(data, definition, links, groups, method, counts)


def graph_of(data: Sequences, definition: Definition) -> csr_array:
    """Links as a symmetric sparse matrix."""
    links = all_links(data, definition, PairCounts())
    sides = np.concatenate([links.i, links.j]), np.concatenate([links.j, links.i])
    values = np.concatenate([links.identity] * 2)
    return csr_array(coo_array((values, sides), shape=(len(data),) * 2))


def audit_of(
    parts: dict[str, Sequences],
    definition: Definition,
    removed: int = 0,
    unlisted: int = 0,
    with_others: bool = False,
) -> Audit:
    """Compare every pair across some parts.

    Parameters
    ----------
    removed, unlisted : int
        Sequences in no part, which the result says.
    with_others : bool
        Whether ``others`` of the result will be asked for: a thread computes them
        meanwhile.

    Raises
    ------
    UsageError
        ``worst`` is no number from 1 on.
    """
    check_whole("worst", definition.options.worst)
    counts, sets = PairCounts(), list(parts.values())
    others = None
    if with_others:
        (others,) = in_background(partial(other_measures, sets), [definition], 1)
    result = across.compare(sets, definition, definition.options.worst, counts)
    left_out = {"removed": removed, "unlisted": unlisted}
    audit = with_alignments(tuple(parts), sets, definition, result, counts, left_out)
    return replace(audit, future_others=others)
