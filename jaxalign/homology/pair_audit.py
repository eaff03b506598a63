"""Check a split of pairs of sequences, whoever made it, exactly."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxalign.errors import InputError, UsageError
from jaxalign.homology import across
from jaxalign.homology.links import PairCounts
from jaxalign.homology.options import Definition
from jaxalign.homology.pair_splits import (
    CLASSES,
    SAYS,
    SAYS_OF_GROUPS,
    NamedPairs,
    pair_keys,
    proteins_of,
)
from jaxalign.homology.split_choices import REMOVED
from jaxalign.model.alphabet import Sequences


@dataclass(frozen=True, eq=False, repr=False)
class PairAudit:
    """A split of pairs, compared exactly.

    Attributes
    ----------
    names : tuple of str
        Of the parts, in their order.
    leaking : bool (pairs,)
        Pairs that break the rule: with a near one in another part, or for ``one`` with
        both sides near a pair of an earlier part.
    cold : {"both", "one", "none"}
    grouped : bool
        Whether the second column is of groups.
    definition : Definition
    info : dict
        Pairs of proteins across, and how many were aligned or excluded.
    """

    names: tuple[str, ...]
    leaking: np.ndarray
    cold: str
    grouped: bool
    definition: Definition
    info: dict[str, Any]

    @property
    def leaks(self) -> int:
        """Pairs that break the rule."""
        return int(self.leaking.sum())

    @property
    def holds(self) -> bool:
        """Whether no pair breaks the rule."""
        return self.leaks == 0

    def heading(self) -> str:
        """How many pairs there are, and how many of them break the rule."""
        count = f"{self.leaks:,} of {len(self.leaking):,} pairs leak"
        count = count if self.leaks else f"no leak in {len(self.leaking):,} pairs"
        says = (SAYS_OF_GROUPS if self.grouped else SAYS)[self.cold]
        return f"{count} across {', '.join(self.names)}; {CLASSES[self.cold]}: {says}"

    def __repr__(self) -> str:
        return f"<PairAudit: {self.heading()}>"

    def __str__(self) -> str:
        return f"{self.heading()}\nnear: {self.definition}"


def numbered_parts(
    parts: Sequence[str], pairs: NamedPairs
) -> tuple[tuple[str, ...], np.ndarray]:
    """(names of parts in the order of their first pairs, the number of every pair).

    Raises
    ------
    InputError
        There are not as many as pairs.
    """
    if len(parts) != len(pairs.first):
        raise InputError(f"{len(parts)} parts for {len(pairs.first)} pairs")
    names = tuple(x for x in dict.fromkeys(map(str, parts)) if x != REMOVED)
    number = {name: k for k, name in enumerate(names)} | {REMOVED: -1}
    return names, np.array([number[str(x)] for x in parts], np.int32)


def audit_pairs_of(
    data: Sequences,
    definition: Definition,
    pairs: NamedPairs,
    parts: tuple[tuple[str, ...], np.ndarray],
    cold: str,
) -> PairAudit:
    """Check parts of pairs.

    parts : names, and the number of every pair, -1 for one that is in none

    Raises
    ------
    UsageError
        There are fewer than two parts.
    """
    names, part = parts
    if len(names) < 2:
        raise UsageError(f"{len(names)} parts: an audit needs two or more")
    counts = PairCounts()
    if cold == "none":
        leaking = _shared(pair_keys(pairs, len(data)), part)
    elif cold == "one" and pairs.groups is None:
        leaking = _seen(data, definition, pairs, part, len(names), counts)
    else:
        first = cold == "one"
        near = _near(data, definition, pairs, part, len(names), first, counts)
        leaking = near[0]
        if cold == "both":
            other = near[1] if pairs.groups is None else _shared(pairs.second, part)
            leaking = leaking | other
    about = counts.about()
    grouped = pairs.groups is not None
    return PairAudit(names, leaking, cold, grouped, definition, about)


def _shared(keys: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Pairs whose key is in more than one part."""
    inside = part >= 0
    _, of_key = np.unique(keys, return_inverse=True)
    of_key = of_key.reshape(-1)
    both = np.unique(np.stack([of_key[inside], part[inside]]), axis=1)
    parts = np.bincount(both[0], minlength=int(of_key.max(initial=-1)) + 1)
    return inside & (parts[of_key] > 1)


def _near(
    data: Sequences,
    definition: Definition,
    pairs: NamedPairs,
    part: np.ndarray,
    parts: int,
    first: bool,
    counts: PairCounts,
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs whose first, and whose second protein is near one of another part.

    first : whether the first column alone counts
    """
    members = [proteins_of(pairs, part == number, first) for number in range(parts)]
    sets = [data.take(x.tolist()) for x in members]
    result = across.compare(sets, definition, 1, counts)
    near = np.zeros((parts, len(data)), bool)
    times = np.bincount(np.concatenate(members), minlength=len(data))
    for number, mask in enumerate(result.leaking):
        near[number, members[number][mask]] = True
        near[number, members[number]] |= times[members[number]] > 1  # itself elsewhere
    inside = part >= 0
    of_first = inside & near[part, pairs.first]
    if first or pairs.groups is not None:
        return of_first, np.zeros(len(part), bool)
    return of_first, inside & near[part, pairs.second]


def _seen(
    data: Sequences,
    definition: Definition,
    pairs: NamedPairs,
    part: np.ndarray,
    parts: int,
    counts: PairCounts,
) -> np.ndarray:
    """Pairs of which both proteins are near one of an earlier part."""
    leaking = np.zeros(len(part), bool)
    for number in range(1, parts):
        later, earlier = part == number, (part >= 0) & (part < number)
        members, before = (proteins_of(pairs, x, False) for x in (later, earlier))
        sets = [data.take(x.tolist()) for x in (members, before)]
        result = across.compare(sets, definition, 1, counts)
        near = np.zeros(len(data), bool)
        near[members[result.leaking[0]]] = True
        near[np.intersect1d(members, before)] = True  # itself
        leaking |= later & near[pairs.first] & near[pairs.second]
    return leaking
