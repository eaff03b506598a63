"""Evidence beside alignments: pairs of tables, and groups of sequences.

A pair is linked if its alignment links it and all tables that are joined by ``and``
have it, or if a table joined by ``or`` has it, or if the two are of one group. Names
are numbered once; a set or a part finds its own sequences by their names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.model.alphabet import Sequences, begins
from jaxalign.model.choices import Edges
from jaxalign.model.names import written
from jaxalign.model.numbers import is_number
from jaxalign.model.show import listed

# What a link has for an identity where alignments do not decide over it.
BY_EDGES = 2.0


class EdgeTable(NamedTuple):
    """Pairs of names that pass the rule of a table, int64 (2, pairs), the smaller
    number first, distinct; and what a certificate says of the table."""

    pairs: np.ndarray
    about: dict[str, Any]

    def __str__(self) -> str:
        about = self.about
        return f"{written(about['column'])} {about['rule']} in {_file(about)}"


class Grouping(NamedTuple):
    """Groups of one column: their names; and memberships, int64 (n,) each, of numbers
    of sequences and of groups."""

    title: str
    names: tuple[str, ...]
    member: np.ndarray
    group: np.ndarray


@dataclass(frozen=True, eq=False)
class Evidence:
    """Tables and groups of some sequences.

    Attributes
    ----------
    number : mapping of names to int
    tables : tuple of EdgeTable
    groupings : tuple of Grouping
    together : dict or None
        What a certificate says of the groups.
    """

    number: Mapping[str, int]
    tables: tuple[EdgeTable, ...] = ()
    groupings: tuple[Grouping, ...] = ()
    together: dict[str, Any] | None = None

    def __str__(self) -> str:
        """The end of the sentence of a definition."""
        needed = [str(x) for x in self.tables if x.about["join"] == "and"]
        either = [str(x) for x in self.tables if x.about["join"] == "or"]
        text = f"; each of these pairs also with {listed(needed)}" if needed else ""
        text += "".join(f"; or {x}" for x in either)
        if self.together is not None:
            titles = " or ".join(written(x.title) for x in self.groupings)
            text += f"; or the same {titles} in {_file(self.together)}"
        return text

    def about(self) -> dict[str, Any]:
        """Tables and groups as plain values, for JSON."""
        edges = {"edges": [x.about for x in self.tables]} if self.tables else {}
        return edges | ({} if self.together is None else {"together": self.together})

    @cached_property
    def either(self) -> np.ndarray:
        """Pairs that any table joined by ``or`` links, int64 (2, pairs)."""
        pieces = [x.pairs for x in self.tables if x.about["join"] == "or"]
        return distinct(np.concatenate([np.zeros((2, 0), np.int64), *pieces], axis=1))

    @cached_property
    def needed(self) -> np.ndarray | None:
        """Pairs that all tables joined by ``and`` have; None where there is none."""
        pieces = [x.pairs for x in self.tables if x.about["join"] == "and"]
        if not pieces:
            return None
        pairs = np.concatenate(pieces, axis=1)
        pairs = pairs[:, np.lexsort(pairs[::-1])]
        first = np.flatnonzero(begins(*pairs))
        times = np.diff(np.append(first, pairs.shape[1]))
        return pairs[:, first[times == len(pieces)]]

    def places(self, sequences: Sequences) -> np.ndarray:
        """Where every name is in a set, int64 (names,); -1 where it is not."""
        places = np.full(len(self.number), -1)
        numbers = [self.number[name] for name in sequences.names]
        places[numbers] = np.arange(len(numbers))
        return places


def checked_cut(edges: Any) -> tuple[float, bool]:
    """Return the cut of edges, and whether values are at most as large; refuse words
    and cuts that are none."""
    if not isinstance(edges, Edges):
        raise UsageError(f"edges: {edges!r}: jaxalign.Edges are needed")
    upper = edges.at_most is not None
    cut: Any = edges.at_most if upper else edges.at_least
    two = upper and edges.at_least is not None
    if two or not is_number(cut) or not np.isfinite(cut):
        raise UsageError(
            f"edges: at_least = {edges.at_least!r}, at_most = {edges.at_most!r}: one "
            "of them is needed, a finite number"
        )
    for name, words in (("join", ("or", "and")), ("unknown", ("error", "count"))):
        if getattr(edges, name) not in words:
            value = getattr(edges, name)
            raise UsageError(f"edges: {name} = {value!r}: one of {', '.join(words)}")
    return float(cut), upper


def distinct(pairs: np.ndarray) -> np.ndarray:
    """Sort pairs, int64 (2, n), and leave out repeated ones."""
    pairs = pairs[:, np.lexsort(pairs[::-1])]
    return pairs[:, begins(*pairs)]


def located(
    pairs: np.ndarray, first: np.ndarray, second: np.ndarray | None = None
) -> np.ndarray:
    """Find pairs of names in a set, i < j, or across two: int64 (2, pairs), sorted.

    first, second : ``Evidence.places`` of the sets
    """
    if second is None:
        sides = np.sort(first[pairs], axis=0)
    else:
        a, b = pairs
        turned = np.stack([first[b], second[a]])
        sides = np.concatenate([np.stack([first[a], second[b]]), turned], axis=1)
    return distinct(sides[:, (sides >= 0).all(axis=0)])


def among(pairs: np.ndarray, i: np.ndarray, j: np.ndarray, width: int) -> np.ndarray:
    """Where pairs (i, j) are in sorted ``pairs``, int64 (n,); -1 where they are not.

    width : more than any j
    """
    keys = pairs[0] * width + pairs[1]
    sought = i.astype(np.int64) * width + j
    at = np.searchsorted(keys, sought)
    there = np.append(keys, -1)[at] == sought
    return np.where(there, at, -1)


def shared_groups(
    groupings: Sequence[Grouping], first: np.ndarray, second: np.ndarray | None = None
) -> np.ndarray:
    """Pairs that connect the members of each group within a set, or each member to one
    of its group across two sets: int64 (2, pairs), distinct.

    first, second : ``Evidence.places`` of the sets
    """
    pieces = [np.zeros((2, 0), np.int64)]
    for grouping in groupings:
        sides = []
        for places in (first, first if second is None else second):
            inside = places[grouping.member] >= 0
            members, groups = places[grouping.member[inside]], grouping.group[inside]
            first_of = np.full(len(grouping.names), -1)  # of each group
            first_of[groups[::-1]] = members[::-1]
            sides.append((members, groups, first_of))
        (rows, of_rows, first_row), (columns, of_columns, first_column) = sides
        pieces.append(np.stack([rows, first_column[of_rows]]))
        if second is not None:
            pieces.append(np.stack([first_row[of_columns], columns]))
    pairs = np.concatenate(pieces, axis=1)
    if second is None:
        pairs = np.sort(pairs[:, pairs[0] != pairs[1]], axis=0)
    return distinct(pairs[:, (pairs >= 0).all(axis=0)])


def all_of_groups(groupings: Sequence[Grouping], places: np.ndarray) -> np.ndarray:
    """Every pair of a set that is in one group, i < j: int64 (2, pairs), distinct."""
    pieces = [np.zeros((2, 0), np.int64)]
    for grouping in groupings:
        inside = places[grouping.member] >= 0
        members, groups = places[grouping.member[inside]], grouping.group[inside]
        order = np.argsort(groups, kind="stable")
        ends = np.cumsum(np.bincount(groups, minlength=len(grouping.names)))[:-1]
        for family in np.split(members[order], ends):
            family = np.unique(family)
            a, b = np.triu_indices(len(family), 1)
            pieces.append(np.stack([family[a], family[b]]))
    return distinct(np.concatenate(pieces, axis=1))


def divided_groups(
    groupings: Sequence[Grouping], sets: Sequence[np.ndarray]
) -> dict[str, list[str]]:
    """Names of the groups of each column that have members in two sets or more.

    sets : ``Evidence.places`` of each
    """
    divided = {}
    for grouping in groupings:
        times = np.zeros(len(grouping.names), np.int64)
        for places in sets:
            inside = grouping.group[places[grouping.member] >= 0]
            times[np.unique(inside)] += 1
        names = [grouping.names[k] for k in np.flatnonzero(times > 1).tolist()]
        divided[grouping.title] = names
    return divided


def _file(about: Mapping[str, Any]) -> str:
    return "arrays" if about["path"] is None else written(str(about["path"]))
