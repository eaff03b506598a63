"""Results: clusters of a set, and a split of it."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from jaxalign.errors import InputError, UsageError
from jaxalign.homology.assignment import REMOVED, Labels
from jaxalign.homology.certificate import (
    GROWING,
    OldClusters,
    check_growing,
    rule_of,
    sha256_of,
)
from jaxalign.homology.options import Definition
from jaxalign.model import frames, show
from jaxalign.model.alphabet import Sequences
from jaxalign.model.names import written
from jaxalign.model.source import sha256

MOST_LABELS = 8  # that have a line each


@dataclass(frozen=True, eq=False)
class Growth:
    """Old clusters after sequences were added.

    Attributes
    ----------
    numbers : int64 (clusters,)
        The number of every cluster. Old ones keep theirs, merged ones the smallest.
    next_number : int
        No cluster has had this number or a larger one.
    added, joined : int
        New sequences, and those of them that are in an old cluster.
    founded : int
        New clusters.
    merged : tuple of tuples of int
        Numbers of old clusters that are one now.
    bridges : dict of arrays
        The pairs that merge old clusters, strongest first: ``cluster`` (its number),
        ``query``, ``target`` (names) and ``identity``. They are a spanning tree of the
        merged clusters and the new sequences between them.
    """

    numbers: np.ndarray
    next_number: int
    added: int
    joined: int
    founded: int
    merged: tuple[tuple[int, ...], ...]
    bridges: dict[str, np.ndarray]

    def heading(self) -> str:
        """Say where the new sequences are, and how many old clusters are left."""
        text = (
            f"{show.counted(self.added, 'new sequence')}: {self.joined:,} in old "
            f"clusters, {self.added - self.joined:,} in "
            f"{show.counted(self.founded, 'new cluster')}"
        )
        if not self.merged:
            return f"{text}; no old ones merged"
        lost = sum(map(len, self.merged))
        return f"{text}; {lost:,} old ones merged into {len(self.merged):,}"

    def about(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        rows = zip(*(x.tolist() for x in self.bridges.values()), strict=True)
        return {
            "added": self.added,
            "joined": self.joined,
            "founded": self.founded,
            "merged": [list(x) for x in self.merged],
            "bridges": [dict(zip(self.bridges, row, strict=True)) for row in rows],
        }

    def lines(self) -> Iterator[str]:
        """Say which clusters merged, and by which pairs, a line for each."""
        rows = list(zip(*(x.tolist() for x in self.bridges.values()), strict=True))
        for numbers in self.merged:
            pairs = [
                f"{written(query)} and {written(target)} ({identity:.4f})"
                for number, query, target, identity in rows
                if number == numbers[0]
            ]
            clusters = show.listed([str(x) for x in numbers])
            yield f"clusters {clusters} are now {numbers[0]}: {show.listed(pairs)}"


@dataclass(frozen=True, eq=False, repr=False)
class Clusters:
    """Clusters of linked sequences.

    Attributes
    ----------
    sequences : Sequences
        The clustered set.
    labels : int32 (n,)
        The cluster of every sequence, numbered in the order of first members:
        scikit-learn's ``groups``.
    representatives : int64 (clusters,)
        The representative of every cluster: with method greedy the sequence that all
        members are linked to, otherwise the longest member.
    identity : float64 (n,) or None
        With method greedy, the identity of every sequence with its representative, 0 to
        1; 1 for a representative.
    method : str
        ``components``, ``greedy``, ``complete`` or ``average``.
    definition : Definition
        When two sequences are linked; ``str`` is the sentence.
    info : dict
        Numbers of pairs, in total, aligned, and excluded by each bound. Other pairs
        were not needed: one has a representative already, or links connect the two.
    growth : Growth or None
        With ``update``, what became of the old clusters.
    strand : int8 (n,) or None
        With method greedy and both strands, 1, or -1 if the identity is that of the
        reverse complement.
    """

    sequences: Sequences
    labels: np.ndarray
    representatives: np.ndarray
    identity: np.ndarray | None
    method: str
    definition: Definition
    info: dict
    growth: Growth | None = None
    strand: np.ndarray | None = None

    to_pandas, to_arrow, to_polars, write, __repr__, _repr_html_ = frames.METHODS

    @property
    def cuts(self) -> tuple[float, ...]:
        """The cut, across which no identity is rounded."""
        return (self.definition.cut,)

    def __len__(self) -> int:
        """Clusters."""
        return len(self.representatives)

    @property
    def sizes(self) -> np.ndarray:
        """Count the sequences of every cluster, int64 (clusters,)."""
        return np.bincount(self.labels, minlength=len(self))

    @property
    def representative_of(self) -> np.ndarray:
        """Return the index of every sequence's representative, int64 (n,)."""
        return self.representatives[self.labels]

    @property
    def numbers(self) -> np.ndarray:
        """Return the number that every cluster has in a table, int64 (clusters,)."""
        return np.arange(len(self)) if self.growth is None else self.growth.numbers

    def kept(self) -> Sequences:
        """Return the representatives, in input order."""
        return self.sequences.take(np.sort(self.representatives))

    def certificate(self, table: str | os.PathLike[str]) -> dict[str, Any]:
        """Return what ``update`` needs beside a table of these clusters, for JSON.

        Parameters
        ----------
        table : path
            The file that ``write`` made.

        Returns
        -------
        dict
            The rule of a link, and SHA-256 of the sequences and of the table.

        Raises
        ------
        UsageError
            If the method is not ``components``: other clusters cannot grow.
        InputError
            If there is no such file.
        """
        old, path = self.old(), os.fspath(table)
        if not os.path.isfile(path):
            raise InputError(f"{path}: no such file; write the table first")
        return {
            "format": GROWING,
            "definition": old.rule,
            "sha256": old.sha256,
            "next_cluster": old.next_number,
            "table": {"path": path, "sha256": sha256(path)},
        }

    def old(self) -> OldClusters:
        """Return these clusters as those to which sequences are added."""
        check_growing(self.method, self.definition.evidence)
        growth, names = self.growth, self.sequences.names
        return OldClusters(
            names,
            self.numbers[self.labels].astype(np.int64),
            len(self) if growth is None else growth.next_number,
            sha256_of(self.sequences),
            rule_of(self.definition),
        )

    def columns(self) -> dict[str, Any]:
        """Return one row per sequence: its name, cluster and representative."""
        names = np.array(self.sequences.names, object)
        columns = {
            "name": names,
            "cluster": self.numbers[self.labels],
            "representative": names[self.representative_of],
        }
        if self.identity is not None:
            columns["identity"] = self.identity
        return columns if self.strand is None else columns | {"strand": self.strand}

    def __str__(self) -> str:
        return f"{self.heading()}\n{self.method}, {self.definition}"

    def heading(self) -> str:
        """Count clusters and sequences."""
        largest = int(self.sizes.max(initial=0))
        return (
            f"{show.counted(len(self), 'cluster')} of {len(self.sequences):,} "
            f"sequences, the largest of {largest:,}"
        )


class InParts(Protocol):
    """Members, sequences or pairs, that are put into parts."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def part(self) -> np.ndarray: ...

    @property
    def shares(self) -> np.ndarray: ...


def part_count(self: InParts) -> int:
    """Return the number of parts."""
    return len(self.names)


@property
def part_sizes(self: InParts) -> np.ndarray:
    """Number of members of every part, int64 (parts,)."""
    return np.bincount(self.part[self.part >= 0], minlength=len(self.names))


@property
def not_in_parts(self: InParts) -> np.ndarray:
    """Indices of the members in no part, int64."""
    return np.flatnonzero(self.part < 0)


@property
def largest_share_error(self: InParts) -> float:
    """Largest difference between a part's share of the kept members and its target."""
    placed = np.bincount(self.part[self.part >= 0], minlength=len(self.names))
    return float(np.abs(placed / max(placed.sum(), 1) - self.shares).max())


@dataclass(frozen=True, eq=False)
class Splitter:
    """Divide samples into training and test sets, as scikit-learn's splitters do.

    Attributes
    ----------
    pairs : tuple of (int64 (train,), int64 (test,))
        Indices of the sequences of each split.
    groups : int32 (n,)
        The component of every sequence. No link is across the two sets of a split.
    """

    pairs: tuple[tuple[np.ndarray, np.ndarray], ...]
    groups: np.ndarray

    def __repr__(self) -> str:
        return f"<Splitter: {show.counted(len(self.pairs), 'split')}>"

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits; the arguments are those of scikit-learn."""
        return len(self.pairs)

    def split(
        self, X: Any = None, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (training indices, test indices) of every split.

        Parameters
        ----------
        X, y : array-like (n, ...), optional
            A sample for each sequence, in the order of the split.
        groups : None
            A splitter has its own.

        Raises
        ------
        UsageError
            If there are more or fewer samples than sequences, or groups are given.
        """
        if groups is not None:
            raise UsageError("groups: the split has groups of its own; leave them out")
        for name, samples in (("X", X), ("y", y)):
            count = getattr(samples, "shape", None) or (
                (len(samples),) if hasattr(samples, "__len__") else None
            )
            if count is not None and count[0] != len(self.groups):
                raise UsageError(
                    f"{name} has {show.counted(count[0], 'sample')}, and the split "
                    f"{show.counted(len(self.groups), 'sequence')}: one sample for "
                    "each is needed, in the order of the split"
                )
        return iter(self.pairs)


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Parts of a set with no linked pair across them.

    Attributes
    ----------
    sequences : Sequences
        The whole set.
    names : tuple of str
        Names of the parts.
    part : int32 (n,)
        The part of every sequence; -1 if it was removed.
    groups : int32 (n,)
        The component of every sequence: scikit-learn's ``groups``.
    shares : float64 (parts,)
        Requested shares, which sum to 1.
    labels : Labels or None
        The label of every sequence.
    definition : Definition
        When two sequences are linked; ``str`` is the sentence.
    info : dict
        Numbers of pairs, and ``least_share_error`` and other bounds.
    weights : float64 (n,) or None
        What every sequence counts in the shares of parts, 1 on average.
    """

    sequences: Sequences
    names: tuple[str, ...]
    part: np.ndarray
    groups: np.ndarray
    shares: np.ndarray
    labels: Labels | None
    definition: Definition
    info: dict
    weights: np.ndarray | None = None

    to_pandas, to_arrow, to_polars, write, __repr__, _repr_html_ = frames.METHODS

    __len__ = part_count
    sizes = part_sizes
    removed = not_in_parts

    @property
    def share_error(self) -> float:
        """Largest difference between a part's share of the kept members and its
        target, by weight where sequences have one."""
        return float(np.abs(self.kept_shares - self.shares).max())

    @property
    def kept_shares(self) -> np.ndarray:
        """Every part's share of the kept members, float64 (parts,), by weight."""
        inside = self.part >= 0
        weights = None if self.weights is None else self.weights[inside]
        placed = np.bincount(self.part[inside], weights, len(self.names))
        return placed / (placed.sum() or 1)

    @property
    def label_counts(self) -> np.ndarray | None:
        """Count the sequences of every part and label, int64 (parts, labels)."""
        if self.labels is None:
            return None
        placed, kinds = self.part >= 0, len(self.labels.names)
        flat = self.part[placed].astype(np.int64) * kinds + self.labels.numbers[placed]
        return np.bincount(flat, minlength=len(self) * kinds).reshape(len(self), kinds)

    @property
    def label_error(self) -> float | None:
        """Return the largest difference between a label's share of a part and of
        all."""
        counts = self.label_counts
        if counts is None:
            return None
        shares = counts.sum(axis=0) / max(counts.sum(), 1)
        filled = counts[self.sizes > 0]
        return float(np.abs(filled / filled.sum(axis=1)[:, None] - shares).max())

    def indices(self, name: str) -> np.ndarray:
        """Return the indices of the sequences of the part ``name``, int64.

        They are in input order.

        Raises
        ------
        UsageError
            If there is no such part.
        """
        self._check_name(name)
        return np.flatnonzero(self.part == self.names.index(name))

    def _check_name(self, name: str) -> None:
        if name not in self.names:
            raise UsageError(f"part {name!r}: one of {', '.join(self.names)} is needed")

    def take(self, name: str) -> Sequences:
        """Return the sequences of the part ``name``."""
        return self.sequences.take(self.indices(name))

    def folds(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Return (indices of all other parts, of this part) for every part: the
        iterable that scikit-learn takes as ``cv``."""
        return self.splitter().split()

    def splitter(
        self, test: str | None = None, train: str | Sequence[str] | None = None
    ) -> "Splitter":
        """Return a cross-validator of scikit-learn's kind, which has its groups.

        Parameters
        ----------
        test : str, optional
            The part to test on, in one split. By default each part in turn.
        train : str or sequence of str, optional
            Parts to train on. By default all but the part to test on.

        Returns
        -------
        Splitter

        Raises
        ------
        UsageError
            If there is no such part, or a part would be tested on and trained on.

        Examples
        --------
        >>> import jaxalign
        >>> some = ["MKTAYIA", "MKTAIA", "MRVLLK", "WWPHGE"]
        >>> folds = jaxalign.split(some, min_identity=0.5, folds=2).splitter()
        >>> folds.get_n_splits(), [test.tolist() for _, test in folds.split()]
        (2, [[0, 1], [2, 3]])
        """
        tested = self.names if test is None else (test,)
        trained = (train,) if isinstance(train, str) else train
        for name in (*tested, *(trained or ())):
            self._check_name(name)
        if trained is not None and {*trained} & {*tested}:
            names = ", ".join(sorted({*trained} & {*tested}))
            raise UsageError(f"train = {train!r}: {names} cannot be tested on, too")
        number = self.names.index
        pairs = []
        for name in tested:
            parts = self.names if trained is None else trained
            sides = [number(x) for x in parts if x != name]
            indices = np.flatnonzero(np.isin(self.part, sides))
            pairs.append((indices, self.indices(name)))
        return Splitter(tuple(pairs), self.groups)

    def columns(self) -> dict[str, Any]:
        """Return one row per sequence: its name, part and component.

        The part "removed" means none."""
        parts = np.array([*self.names, REMOVED], object)
        return {
            "name": np.array(self.sequences.names, object),
            "part": parts[self.part],
            "component": self.groups,
        }

    def __str__(self) -> str:
        lines = (self.heading(), self.nearness(), *self.notes())
        return "\n".join((*lines, f"apart: {self.definition}"))

    def heading(self) -> str:
        """Summarise the sizes of the parts, and what was removed."""
        parts = zip(self.names, self.sizes.tolist(), strict=True)
        text = show.listed([f"{name} {size:,}" for name, size in parts])
        removed = len(self.removed)
        return f"{text}; {removed:,} removed" if removed else text

    def nearness(self) -> str:
        """Summarise how close shares and labels are to the request."""
        by_weight = "" if self.weights is None else " of the weight"
        text = f"shares{by_weight} differ by {self.share_error:.2%} at most"
        least = self.info.get("least_share_error", 0.0)
        if least > 0:
            text += f" (no split of these components by less than {least:.2%})"
        if self.labels is not None:
            text += f", those of labels by {self.label_error:.2%}"
        return text

    def notes(self) -> list[str]:
        """Describe what was removed, changed or left out, with bounds, and the shares
        of labels in every part."""
        lines, info = [], self.info
        if "fewest_removed" in info:
            least = info["fewest_removed"]
            removed = len(self.removed) - info.get("unlabelled", 0)
            lines.append(
                f"{removed:,} removed by a search; any split of these shares removes "
                f"{least:,} or more"
            )
        if "changes" in info:
            changes = info["changes"]
            moved, gone = changes["moved"], changes["removed"]
            text = f"{changes['kept']:,} stay where they were, {moved:,} moved, "
            text += f"{gone:,} removed"
            if changes["new"] or changes["new_removed"]:
                text += f"; {changes['new']:,} new placed"
            if changes["new_removed"]:
                text += f", {changes['new_removed']:,} new removed"
            weight, bound = changes["changed_weight"], changes["bound"]
            unit = "" if weight == moved + gone else " by their priority"
            least = "no repair changes less"
            if weight != bound:
                least = f"any repair changes {bound:,} or more"
            lines.append(f"{text}; {least}{unit}")
        if info.get("unlabelled"):
            lines.append(f"{info['unlabelled']:,} without a label are in no part")
        counts = self.label_counts
        if counts is None or self.labels is None:
            return lines
        sizes, total = np.maximum(counts.sum(axis=1), 1), max(int(counts.sum()), 1)
        order = np.argsort(-counts.sum(axis=0), kind="stable")
        for k in order[:MOST_LABELS].tolist():
            shares = zip(self.names, (counts[:, k] / sizes).tolist(), strict=True)
            text = ", ".join(f"{name} {share:.2%}" for name, share in shares)
            of_all = int(counts[:, k].sum()) / total
            lines.append(f"label {written(self.labels.names[k])}: {of_all:.2%}; {text}")
        if len(order) > MOST_LABELS:
            lines.append(f"{len(order) - MOST_LABELS:,} more labels")
        return lines
