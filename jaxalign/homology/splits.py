"""Components to parts: what is too large for a part, and how near the shares are."""

from dataclasses import dataclass
from math import isclose
from typing import Any

import numpy as np

from jaxalign.errors import InputError, UsageError
from jaxalign.homology.assignment import Wanted, assign, tally, wanted
from jaxalign.homology.links import Links
from jaxalign.homology.removal import Shares, divide
from jaxalign.model.names import CONTROL, written
from jaxalign.model.numbers import check_whole, is_number

SHOWN = 3  # names in a message
REMOVED = "removed"  # what lists call a sequence in no part


@dataclass(frozen=True, eq=False)
class Labels:
    """A label of every sequence: numbers into ``names``, int32 (n,)."""

    names: tuple[str, ...]
    numbers: np.ndarray


def shares_of(parts: Any, folds: int | None) -> dict[str, float]:
    """Names of parts and their shares, from ``parts`` or a number of ``folds``.

    Raises
    ------
    UsageError
        Both are given, shares do not sum to 1, or a name is not fit for a file.
    """
    if folds is not None:
        if parts is not None:
            raise UsageError("folds and parts exclude each other")
        check_whole("folds", folds, "2 or more are needed")
        if folds < 2:
            raise UsageError(f"folds = {folds}: 2 or more are needed")
        return {f"fold{number}": 1 / folds for number in range(1, folds + 1)}
    if not hasattr(parts, "items"):
        raise UsageError(
            "parts or folds are needed: parts={'train': 0.8, 'test': 0.2}, or folds=5"
        )
    shares = {str(name): share for name, share in parts.items()}
    for name, share in shares.items():
        odd = CONTROL.search(name) or "/" in name or name != name.strip()
        if not name or name == REMOVED or odd:
            raise UsageError(f"part {name!r}: this is no name for a part")
        if not (is_number(share) and 0 < share <= 1):
            raise UsageError(f"part {name}: {share!r} is no share above 0, up to 1")
    total = sum(shares.values())
    if len(shares) < 2 or not isclose(total, 1, abs_tol=1e-6):
        raise UsageError(
            f"{len(shares)} parts with shares that sum to {total:g}: two or more are "
            "needed, and a sum of 1"
        )
    return shares


def labels_of(labels: Any, names: tuple[str, ...]) -> Labels | None:
    """Labels of sequences: one each in their order, or a mapping of names to labels.

    Raises
    ------
    InputError
        A sequence has no label, or a label belongs to no sequence.
    """
    if labels is None:
        return None
    if hasattr(labels, "items"):
        values = _by_name({str(k): v for k, v in labels.items()}, names)
    else:
        values = list(labels)
        if len(values) != len(names):
            raise InputError(f"{len(values)} labels for {len(names)} sequences")
    kinds, numbers = np.unique(np.array([str(x) for x in values]), return_inverse=True)
    return Labels(tuple(kinds.tolist()), numbers.reshape(-1).astype(np.int32))


def _by_name(labels: dict, names: tuple[str, ...]) -> list:
    missing = [name for name in names if name not in labels]
    if missing:
        raise InputError(f"{_some(missing)} no label")
    unknown = sorted(labels.keys() - set(names))
    if unknown:
        raise InputError(f"{_some(unknown, 'label', 'belong')} to no sequence")
    return [labels[name] for name in names]


def _some(names: list[str], noun: str = "sequence", verb: str = "have") -> str:
    """``2 sequences (a, b) have``."""
    shown = ", ".join(map(written, names[:SHOWN])) + ", …" * (len(names) > SHOWN)
    single = len(names) == 1
    verb = {"have": "has", "belong": "belongs"}[verb] if single else verb
    return f"{len(names):,} {noun}{'' if single else 's'} ({shown}) {verb}"


def place(
    component: np.ndarray,
    links: Links | None,
    shares: dict[str, float],
    labels: Labels | None,
    seed: int,
    too_large: str,
) -> np.ndarray:
    """A part for every sequence, so that no link is left across parts.

    Parameters
    ----------
    component : int32 (n,)
    links : Links, or None
        Needed where something may be removed.
    shares : dict
    labels : Labels or None
    seed : int
    too_large : {"error", "keep", "remove"}

    Returns
    -------
    int32 (n,)
        Numbers of parts, -1 for what is removed.

    Raises
    ------
    UsageError
        A component fits no part, or a part would be empty.
    """
    ratios = np.array(list(shares.values()))
    numbers = None if labels is None else labels.numbers
    tallies = tally(component, numbers)
    aim = wanted(ratios, tallies)
    chosen, large = assign(tallies, aim, seed)
    if large.any() and too_large == "error":
        raise _too_large(tallies[:, 0], chosen, large, shares)
    part = chosen[component]
    if too_large == "remove" and len(np.unique(chosen)) < len(shares) and len(chosen):
        large[np.argmax(tallies[:, 0])] = True  # whole, it would leave a part empty
    if large.any() and too_large == "remove":
        assert links is not None
        part = _divided(component, links, ratios, numbers, seed, large, tallies, aim)
    sizes = np.bincount(part[part >= 0], minlength=len(shares))
    if (sizes == 0).any() and too_large != "keep":
        empty = list(shares)[int(np.argmin(sizes))]
        largest = int(tallies.max(initial=0))
        raise UsageError(
            f"part {empty} would be empty: {len(component):,} sequences have "
            f"{len(tallies):,} components, the largest of {largest:,}; "
            "a higher cut has more components, too_large='keep' allows empty parts"
        )
    return part


def _too_large(
    sizes: np.ndarray, chosen: np.ndarray, large: np.ndarray, shares: dict[str, float]
) -> UsageError:
    worst = int(np.argmax(np.where(large, sizes, -1)))
    name, share = list(shares.items())[int(chosen[worst])]
    return UsageError(
        f"{int(large.sum()):,} of {len(sizes):,} components fit into no part; the "
        f"largest of them has {int(sizes[worst]):,} of {int(sizes.sum()):,} sequences, "
        f"where part {name} should have {share:.1%} and larger components come "
        "first\nhint: too_large='keep' lets parts differ from their shares, "
        "too_large='remove' takes sequences out; a higher cut has smaller components"
    )


def _divided(
    component: np.ndarray,
    links: Links,
    ratios: np.ndarray,
    labels: np.ndarray | None,
    seed: int,
    large: np.ndarray,
    tallies: np.ndarray,
    aim: Wanted,
):
    """Parts where the components that are too large are divided, the others placed
    beside them."""
    inside = large[component]
    members = np.flatnonzero(inside)
    number = np.cumsum(inside) - 1
    linked = inside[links.i]  # and so is j: a link stays in its component
    inner = Links(
        number[links.i[linked]], number[links.j[linked]], links.identity[linked]
    )
    missing = len(component) - len(members)
    shares = Shares(ratios * len(component), missing)
    part = np.full(len(component), -1, np.int32)
    part[members] = divide(len(members), inner, shares, seed)
    before = np.zeros_like(aim.counts)
    counts = tally(part, labels)
    before[: len(counts), : counts.shape[1]] = counts
    chosen, _ = assign(tallies[~large], aim, seed, before)
    of_rest = np.cumsum(~large) - 1
    part[~inside] = chosen[of_rest[component[~inside]]]
    return part
