"""Groups of sequences to parts: shares and labels as near as can be.

The distance of an assignment from what is asked is the sum over parts and labels of
(sequences - wanted)^2 / wanted, with the whole as one more label. Groups are placed
from the largest to the smallest where they add least; then single groups move, or two
are swapped, as long as that brings it nearer.
"""

from dataclasses import dataclass

import numpy as np

STEPS = 2000  # moves and swaps, at most
SWAPPED = 40  # kinds of groups that are swapped
ENOUGH = 1e-9  # by which a step must help
OVER = 1.1  # a part may have a tenth more than its share


@dataclass(frozen=True, eq=False)
class Wanted:
    """The sequences that every part should have.

    Attributes
    ----------
    counts : float64 (parts, 1 + labels)
        Column 0 is sequences, the others those of a label.
    """

    counts: np.ndarray

    @property
    def weight(self) -> np.ndarray:
        return 1 / np.maximum(self.counts, 0.5)


def wanted(ratios: np.ndarray, tallies: np.ndarray) -> Wanted:
    """Shares of the sum of some tallies (groups, 1 + labels)."""
    return Wanted(ratios[:, None] * tallies.sum(axis=0)[None, :])


def tally(groups: np.ndarray, labels: np.ndarray | None) -> np.ndarray:
    """Sequences of every group, in all and of each label: float64 (groups, 1 + labels).

    Members with a group below 0 count nowhere.
    """
    placed = groups >= 0
    count = int(groups.max(initial=-1)) + 1
    sizes = np.bincount(groups[placed], minlength=count)[:, None]
    if labels is None:
        return sizes.astype(np.float64)
    kinds = int(labels.max(initial=-1)) + 1
    flat = groups[placed].astype(np.int64) * kinds + labels[placed]
    table = np.bincount(flat, minlength=count * kinds).reshape(count, kinds)
    return np.concatenate([sizes, table], axis=1).astype(np.float64)


def assign(
    tallies: np.ndarray,
    aim: Wanted,
    seed: int | tuple[int, ...],
    before: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """A part for every group.

    Parameters
    ----------
    tallies : float64 (groups, 1 + labels)
    aim : Wanted
    seed : int, or several
        Of the order of groups of one size.
    before : float64 (parts, 1 + labels), optional
        What the parts have already.

    Returns
    -------
    part : int32 (groups,)
    too_large : bool (groups,)
        No part had room for it when it was placed: every one would be more than a
        tenth over its share.
    """
    random = np.random.default_rng(seed)
    order = np.lexsort((random.permutation(len(tallies)), -tallies[:, 0]))
    part = np.zeros(len(tallies), np.int32)
    too_large = np.zeros(len(tallies), bool)
    filled = np.zeros_like(aim.counts) if before is None else before.copy()
    share = aim.counts[:, 0]
    limit = np.maximum(np.floor(share * OVER), np.ceil(share))
    for group in order.tolist():
        more = tallies[group]
        fits = filled[:, 0] + more[0] <= limit
        cost = _cost(filled + more, aim) - _cost(filled, aim)
        too_large[group] = not fits.any()
        if fits.any():
            cost = np.where(fits, cost, np.inf)
        part[group] = chosen = int(np.argmin(cost))
        filled[chosen] += more
    if len(tallies):
        _improve(part, tallies, aim, filled)
    return part, too_large


def _cost(counts: np.ndarray, aim: Wanted) -> np.ndarray:
    """The distance of every part from what is wanted, (parts,)."""
    return ((counts - aim.counts) ** 2 * aim.weight).sum(axis=1)


def _improve(
    part: np.ndarray, tallies: np.ndarray, aim: Wanted, filled: np.ndarray
) -> None:
    """Move single groups, or swap two, while the distance falls, the best step first.

    Groups with equal tallies in one part are alike: one of them stands for all.
    """
    kinds, kind = np.unique(tallies, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    members = np.zeros((len(kinds), len(filled)), np.int64)
    np.add.at(members, (kind, part), 1)
    for _ in range(STEPS):
        steps = _best_move(kinds, members, aim, filled)
        steps = steps or _best_swap(kinds, members, aim, filled)
        if not steps:
            return
        for k, old, new in steps:
            part[np.flatnonzero((kind == k) & (part == old))[0]] = new
            members[k, old], members[k, new] = members[k, old] - 1, members[k, new] + 1
            filled[old], filled[new] = filled[old] - kinds[k], filled[new] + kinds[k]


def _best_move(
    kinds: np.ndarray, members: np.ndarray, aim: Wanted, filled: np.ndarray
) -> list[tuple]:
    """[(kind, from part, to part)], or nothing where no move helps."""
    here = _cost(filled, aim)
    gain = here - _costs(filled - kinds[:, None], aim)
    loss = _costs(filled + kinds[:, None], aim) - here
    change = loss[:, None, :] - gain[:, :, None]  # of kind k from part p to part q
    change[members == 0] = np.inf
    change[:, np.arange(len(filled)), np.arange(len(filled))] = np.inf
    k, old, new = np.unravel_index(np.argmin(change), change.shape)
    return [(k, old, new)] if change[k, old, new] < -ENOUGH else []


def _best_swap(
    kinds: np.ndarray, members: np.ndarray, aim: Wanted, filled: np.ndarray
) -> list[tuple]:
    """Two moves, of kind k from part p to part q and of kind l back; only of the
    smallest kinds."""
    few = np.argsort(kinds[:, 0], kind="stable")[:SWAPPED]
    differences = kinds[few][None] - kinds[few][:, None]  # of l and k
    here = _cost(filled, aim)
    other = _costs(filled + differences[:, :, None], aim) - here  # p has l for k
    change = other[:, :, :, None] + other.transpose(1, 0, 2)[:, :, None, :]
    there = members[few] > 0
    change[~(there[:, None, :, None] & there[None, :, None, :])] = np.inf
    k, l, p, q = np.unravel_index(np.argmin(change), change.shape)
    if not change[k, l, p, q] < -ENOUGH:
        return []
    return [(few[k], p, q), (few[l], q, p)]


def _costs(counts: np.ndarray, aim: Wanted) -> np.ndarray:
    """As ``_cost``, (..., parts)."""
    return ((counts - aim.counts) ** 2 * aim.weight).sum(axis=-1)
