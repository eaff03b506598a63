"""Splits of pairs of sequences, as of interactions, and their audit."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from jaxalign.errors import InputError, UsageError
from jaxalign.homology import interactions
from jaxalign.homology.interactions import UnitGraph
from jaxalign.homology.links import PairCounts, components, stream_links
from jaxalign.homology.options import Definition, check_choice
from jaxalign.homology.split_choices import REMOVED, shares_of
from jaxalign.model import frames
from jaxalign.model.alphabet import Sequences
from jaxalign.model.names import written
from jaxalign.model.numbers import check_whole

Cold = Literal["both", "one", "none"]
Second = Literal["proteins", "groups"]
CLASSES = {"both": "C3", "one": "C2", "none": "C1"}
SAYS = {
    "both": "no protein of a pair, on either side, is near one of another part",
    "one": "of a pair one side is near none of the pairs of earlier parts",
    "none": "no pair is in two parts",
}
SAYS_OF_GROUPS = {
    "both": "no protein is near one of another part, and no group is in two parts",
    "one": "no protein of the first column is near one of another part",
    "none": "no pair is in two parts",
}


@dataclass(frozen=True)
class PairChoices:
    """How pairs are put into parts: options of ``split_pairs``."""

    parts: Mapping[str, float] | None = None
    folds: int | None = None
    cold: Cold = "both"
    second: Second = "proteins"
    seed: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class PairSplit:
    """Parts of pairs of sequences.

    Attributes
    ----------
    sequences : Sequences
    first, second : int64 (pairs,)
        The sequences of every pair; where the second column is of groups, numbers into
        ``groups``.
    groups : tuple of str or None
    names : tuple of str
        Of the parts.
    part : int32 (pairs,)
        -1 of a pair that is in none.
    units : int32 (n,)
        The component of every sequence.
    shares : float64 (parts,)
        What was asked for.
    cold : {"both", "one", "none"}
    definition : Definition
    info : dict
        ``most_kept``: no split with these shares keeps more pairs.
    """

    sequences: Sequences
    first: np.ndarray
    second: np.ndarray
    groups: tuple[str, ...] | None
    names: tuple[str, ...]
    part: np.ndarray
    units: np.ndarray
    shares: np.ndarray
    cold: str
    definition: Definition
    info: dict[str, Any]

    def __len__(self) -> int:
        """Parts."""
        return len(self.names)

    @property
    def sizes(self) -> np.ndarray:
        """Pairs of every part, int64 (parts,)."""
        return np.bincount(self.part[self.part >= 0], minlength=len(self))

    @property
    def removed(self) -> np.ndarray:
        """Pairs in no part, int64."""
        return np.flatnonzero(self.part < 0)

    @property
    def share_error(self) -> float:
        """The largest difference of a part's share of what is kept from what was asked
        for."""
        return float(np.abs(self.sizes / max(self.sizes.sum(), 1) - self.shares).max())

    def columns(self) -> dict[str, Any]:
        """A row a pair: its names and its part; "removed" is no part."""
        names = np.array(self.sequences.names, object)
        others = names if self.groups is None else np.array(self.groups, object)
        parts = np.array([*self.names, REMOVED], object)
        return {
            "first": names[self.first],
            "second": others[self.second],
            "part": parts[self.part],
        }

    def to_pandas(self) -> Any:
        """``pandas.DataFrame``, one row a pair (needs pandas)."""
        return frames.to_pandas(self.columns())

    def heading(self) -> str:
        """Sizes of the parts, and what was removed, with its bound."""
        parts = zip(self.names, self.sizes.tolist(), strict=True)
        text = ", ".join(f"{name} {size:,}" for name, size in parts)
        text += f"; shares differ by {self.share_error:.2%} at most"
        if not len(self.removed):
            return f"{text}; no pair removed"
        least = max(len(self.part) - self.info["most_kept"], 0)
        return (
            f"{text}; {len(self.removed):,} of {len(self.part):,} pairs removed by a "
            f"search; any split with these shares removes {least:,} or more"
        )

    def __repr__(self) -> str:
        return f"<PairSplit: {self.heading()}>"

    def __str__(self) -> str:
        says = (SAYS if self.groups is None else SAYS_OF_GROUPS)[self.cold]
        lines = (self.heading(), f"{CLASSES[self.cold]}: {says}")
        return "\n".join((*lines, f"near: {self.definition}"))


@dataclass(frozen=True, eq=False)
class NamedPairs:
    """Pairs by numbers: of sequences, and of sequences or groups."""

    first: np.ndarray
    second: np.ndarray
    groups: tuple[str, ...] | None


def named_pairs(
    pairs: Iterable[Sequence[str]], names: Sequence[str], second: str, where: Any = None
) -> NamedPairs:
    """Pairs of names as numbers.

    Parameters
    ----------
    second : {"proteins", "groups"}
    where : function, optional
        (number of a pair from 0) -> how messages call it.

    Raises
    ------
    InputError
        A name is that of no sequence, or there is no pair.
    """
    known = {name: number for number, name in enumerate(names)}
    where = where or (lambda number: f"pair {number}")
    groups: dict[str, int] = {}
    first, other = [], []
    for number, (a, b) in enumerate(pairs):
        if a not in known:
            raise InputError(f"{where(number)}: {written(str(a))} is no sequence")
        if second == "proteins" and b not in known:
            raise InputError(
                f"{where(number)}: {written(str(b))} is no sequence\nhint: "
                "second='groups' takes the second column for groups, as ligands"
            )
        first.append(known[a])
        column = known if second == "proteins" else groups
        other.append(column.setdefault(b, len(column)))
    if not first:
        raise InputError("there is no pair")
    numbers = np.array(first, np.int64), np.array(other, np.int64)
    return NamedPairs(*numbers, tuple(groups) if second == "groups" else None)


def check_pair_choices(choices: PairChoices) -> dict[str, float]:
    """Shares by the names of parts; refuse what can be before anything is aligned.

    Raises
    ------
    UsageError
    """
    check_choice("cold", choices.cold, get_args(Cold))
    check_choice("second", choices.second, get_args(Second))
    seed = choices.seed
    check_whole("seed", seed + 1 if type(seed) is int else seed, "0 or more is needed")
    if choices.cold == "one" and choices.folds and choices.second == "proteins":
        raise UsageError(
            "folds with cold='one': a pair of two folds would belong to both, since "
            "either of its proteins is new to the other; give parts, or cold='both'"
        )
    return shares_of(choices.parts, choices.folds)


def split_pairs_of(
    data: Sequences, definition: Definition, pairs: NamedPairs, choices: PairChoices
) -> PairSplit:
    """Split pairs."""
    shares, counts = check_pair_choices(choices), PairCounts()
    stream = stream_links(data, definition, counts)
    units = components(len(data), ((x.i, x.j) for x in stream))
    return parts_of_pairs(data, definition, pairs, choices, (units, shares, counts))


def parts_of_pairs(
    data: Sequences,
    definition: Definition,
    pairs: NamedPairs,
    choices: PairChoices,
    known: tuple[np.ndarray, dict[str, float], PairCounts],
) -> PairSplit:
    """The parts of pairs whose components are known.

    known : components int32 (n,), shares by name, counts of pairs that were compared
    """
    units, shares, counts = known
    ratios, seed = np.array(list(shares.values())), choices.seed
    count = int(units.max(initial=-1)) + 1
    grouped = pairs.groups is not None
    second = pairs.second + count if grouped else units[pairs.second].astype(np.int64)
    many = count + (len(pairs.groups) if pairs.groups is not None else 0)
    graph = UnitGraph(many, units[pairs.first].astype(np.int64), second)
    about = counts.about() | {"seed": seed, "units": count}
    if choices.cold == "none":
        part = interactions.dealt(pair_keys(pairs, len(data)), ratios, seed)
    elif choices.cold == "both":
        of_unit = interactions.apart(graph, ratios, seed)
        part = interactions.pairs_apart(graph, of_unit)
    elif grouped:
        part = interactions.by_first(graph, ratios, seed)[graph.a]
    else:
        of_unit = interactions.by_last(graph, ratios, seed)
        part = interactions.pairs_by_last(graph, of_unit)
    sizes = np.bincount(part[part >= 0], minlength=len(ratios))
    if (sizes == 0).any():
        empty = list(shares)[int(np.argmin(sizes))]
        raise UsageError(
            f"part {empty} would be empty: {len(part):,} pairs join {count:,} "
            "components of sequences; a higher cut has more components"
        )
    if (part < 0).any():
        about["most_kept"] = interactions.most_apart(graph, sizes / sizes.sum())
    return PairSplit(
        sequences=data,
        first=pairs.first,
        second=pairs.second,
        groups=pairs.groups,
        names=tuple(shares),
        part=part.astype(np.int32),
        units=units,
        shares=ratios,
        cold=choices.cold,
        definition=definition,
        info=about,
    )


def pair_keys(pairs: NamedPairs, count: int) -> np.ndarray:
    """Equal numbers of equal pairs; of two proteins in either order."""
    a, b = pairs.first, pairs.second
    if pairs.groups is None:
        a, b = np.minimum(a, b), np.maximum(a, b)
    return a * (max(count, len(pairs.groups or ())) + 1) + b


def proteins_of(pairs: NamedPairs, inside: np.ndarray, first: bool) -> np.ndarray:
    """The sequences of some pairs, int64, without doubles.

    inside : bool (pairs,)
    first : whether those of the first column alone
    """
    sides = [pairs.first[inside]]
    if pairs.groups is None and not first:
        sides.append(pairs.second[inside])
    return np.unique(np.concatenate(sides))
