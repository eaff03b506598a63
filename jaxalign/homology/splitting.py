"""Run a split of encoded sequences, or a series by one pass of identities.

Components of links go into parts. What is too large for a part is divided, and a bound
of the shares, which every split of a set meets, stands beside what is reached.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from jaxalign.errors import UsageError
from jaxalign.homology import removal
from jaxalign.homology.assignment import (
    Labels,
    SplitChoices,
    SplitTask,
    aimed_tallies,
    assign,
    check_choices,
    tally,
)
from jaxalign.homology.links import (
    Links,
    PairCounts,
    all_links,
    components,
    components_by_cut,
    kept_together,
    stream_links,
    with_groups,
)
from jaxalign.homology.options import Definition
from jaxalign.homology.removal import (
    Balance,
    Shares,
    divide,
    fewest_removed,
    graph_of,
    least_cover,
    most_members,
)
from jaxalign.homology.result import Split
from jaxalign.model.alphabet import Sequences, renumbered
from jaxalign.pairs.plan import SavedState

# ------------------------------------------------------------------------------
# Repair an existing split: no link across its parts, and as little changed as can be.
#
# Without removal every component goes, whole, to the part that holds most of it: no
# repair moves fewer. With removal of every link across parts an end has to change, so
# that the least weight that changes is that of a least vertex cover (``cover``); what
# then has its links into one part goes there, and the others are in no part. A sequence
# that the split does not have goes where its links lead.


@dataclass(frozen=True, eq=False)
class Repair:
    """Parts of sequences after a repair.

    Attributes
    ----------
    part : int32 (n,)
        -1 for what is removed, or, of ``free`` sequences, may go anywhere.
    free : bool (n,)
    bound : int
        The weight of sequences that any repair changes, at least.
    """

    part: np.ndarray
    free: np.ndarray
    bound: int


def by_moves(
    component: np.ndarray, before: np.ndarray, weight: np.ndarray, parts: int
) -> Repair:
    """Move members of components to the part that holds most of their weight.

    component : int32 (n,)
    before : int32 (n,); the part of every sequence before, -1 for none
    weight : int64 (n,)
    """
    count = int(component.max(initial=-1)) + 1
    listed = before >= 0
    flat = component[listed].astype(np.int64) * parts + before[listed]
    weights = np.bincount(flat, weight[listed], minlength=count * parts)
    weights = weights.reshape(count, parts)
    part = weights.argmax(axis=1).astype(np.int32)[component]
    free = weights.sum(axis=1)[component] == 0
    part[free] = -1
    bound = int(weights.sum() - weights.max(axis=1, initial=0).sum())
    return Repair(part, free, bound)


def by_removal(
    graph: csr_array, links: Links, before: np.ndarray, weight: np.ndarray
) -> Repair:
    """Take out, or move, an end of every link across parts.

    graph : csr_array (n, n), both directions of every link
    """
    a, b = before[links.i], before[links.j]
    across = (a >= 0) & (b >= 0) & (a != b)
    cover = least_cover(links.i[across], links.j[across], weight)
    part = before.astype(np.int32).copy()
    part[cover.inside] = -1
    order = np.flatnonzero(cover.inside)
    order = order[np.argsort(-weight[order], kind="stable")]
    for v in order.tolist():  # a move is better than to be in no part
        linked_parts = removal.parts_linked(v, graph, part)
        if len(linked_parts) == 1:
            part[v] = linked_parts[0]
    free = _join(graph, part, before < 0)
    return Repair(part, free, cover.bound)


def _join(graph: csr_array, part: np.ndarray, unplaced: np.ndarray) -> np.ndarray:
    """Put new vertices where their links lead, from vertex to vertex; remove those
    whose links lead into two parts. Return the vertices that no link reaches: bool
    (n,)."""
    open_vertices = unplaced.copy()
    frontier = np.flatnonzero(part >= 0)
    while len(frontier):
        reached = np.unique(np.concatenate(
            [removal.neighbours_of(graph, v) for v in frontier.tolist()]
        ))  # fmt: skip
        reached = reached[open_vertices[reached]]
        for v in reached.tolist():
            linked_parts = removal.parts_linked(v, graph, part)
            part[v] = linked_parts[0] if len(linked_parts) == 1 else -1
        open_vertices[reached] = False
        frontier = reached[part[reached] >= 0]
    return open_vertices


def repaired(
    component: np.ndarray,
    links: Links | None,
    before: np.ndarray,
    weight: np.ndarray,
    ratios: np.ndarray,
    labels: np.ndarray | None,
    seed: int,
    sizes: np.ndarray | None = None,
) -> tuple[np.ndarray, dict[str, int]]:
    """Repair an existing split: (a part for every sequence, -1 for none; the changes,
    in numbers).

    component : int32 (n,)
    links : None where nothing may be removed
    before : int32 (n,); the part of every sequence before, -1 of a new one
    weight : int64 (n,)
    ratios : float64 (parts,); shares by which what has no link to any part is placed
    labels : int32 (n,) or None
    sizes : float64 (n,) or None; what sequences count in the shares
    """
    if links is None:
        repair, groups = by_moves(component, before, weight, len(ratios)), component
    else:
        repair = by_removal(graph_of(len(before), links), links, before, weight)
        inner = repair.free[links.i] & repair.free[links.j]
        sides = (links.i[inner], links.j[inner])
        groups = components(len(before), [sides])
    part = repair.part.copy()
    if repair.free.any():
        # free sequences go into parts by whole groups and by the shares
        free, of_free = repair.free, renumbered(groups[repair.free])
        everywhere = tally(np.zeros(len(part), np.int32), labels, None, sizes)
        aim = aimed_tallies(ratios, everywhere)
        shape = int(of_free.max()) + 1, aim.counts.shape[1]
        about = [None if x is None else x[free] for x in (labels, sizes)]
        tallies = tally(of_free, about[0], shape, about[1])
        before_free = tally(part, labels, aim.counts.shape, sizes)
        part[free] = assign(tallies, aim, seed, before_free)[0][of_free]
    listed = before >= 0
    moved, gone = listed & (part >= 0) & (part != before), part < 0
    changed = moved | (listed & gone)
    return part, {
        "kept": int((listed & ~changed).sum()),
        "moved": int(moved.sum()),
        "removed": int((listed & gone).sum()),
        "new": int((~listed & ~gone).sum()),
        "new_removed": int((~listed & gone).sum()),
        "changed_weight": int(weight[changed].sum()),
        "bound": repair.bound,
    }


def split_of(data: Sequences, definition: Definition, choices: SplitChoices) -> Split:
    """Split a set."""
    return series_of(data, definition, choices, (definition.cut,))[0]


def series_of(
    data: Sequences,
    definition: Definition,
    choices: SplitChoices,
    cuts: Sequence[float],
    saved: SavedState | None = None,
) -> list[Split]:
    """Split a set at several cuts; pairs are compared once.

    definition : of the lowest cut
    saved : the state of a run that was interrupted, or may be
    """
    task, counts = check_choices(choices, data), PairCounts()
    if choices.too_large == "remove":
        links = all_links(task.data, definition, counts, saved)
        above = [links.some(links.identity >= cut) for cut in cuts]
        linked = [len(x) for x in above]
        above = [with_groups(task.data, definition, x) for x in above]
        groups = [components(len(task.data), [(x.i, x.j)]) for x in above]
    else:
        above = [None] * len(cuts)
        stream = stream_links(task.data, definition, counts, saved=saved)
        together = kept_together(task.data, definition)
        groups, linked = components_by_cut(len(task.data), stream, cuts, together)
    about = counts.about() | {"seed": choices.seed, "too_large": choices.too_large}
    return [
        _split(
            data,
            task,
            choices,
            replace(definition, cut=cut),
            (group, links),
            about | {"at_or_above_cut": count},
        )
        for cut, group, links, count in zip(cuts, groups, above, linked, strict=True)
    ]


def _split(
    data: Sequences,
    task: SplitTask,
    choices: SplitChoices,
    definition: Definition,
    graph: tuple[np.ndarray, Links | None],
    about: dict[str, Any],
) -> Split:
    """Split a set by the links of one cut."""
    (groups, links), shares, fixed_parts = graph, task.shares, task.fixed_parts
    ratios = np.array(list(shares.values()))
    sizes = np.bincount(groups, task.sizes, 1)
    about = about | {"least_share_error": least_share_error(sizes, ratios)}
    if fixed_parts is None:
        placing = choices.seed, choices.too_large, task.weight, task.sizes
        part = place(groups, links, shares, task.labels, *placing)
        if links is not None and (part < 0).any():
            # every split of these shares takes out so many sequences at least
            divided = np.zeros(int(groups.max()) + 1, bool)
            divided[groups[part < 0]] = True
            room = int(most_members(ratios * len(part)).max())
            fewest = fewest_removed(graph_of(len(part), links), groups, divided, room)
            about |= {"fewest_removed": fewest}
    else:
        numbers = None if task.labels is None else task.labels.numbers
        weight = np.ones(len(groups), np.int64) if task.weight is None else task.weight
        about_parts = ratios, numbers, choices.seed, task.sizes
        part, changes = repaired(groups, links, fixed_parts.part, weight, *about_parts)
        check_parts(part, shares, sizes[:, None], choices.too_large)
        about |= {"changes": changes}
    labels = task.labels
    if labels is not None:  # those that are left out are in no part to count in
        numbers = _of_all(labels.numbers, task, len(data), 0)
        labels = Labels(labels.names, numbers)
    weights = None
    if task.sizes is not None:
        weights = np.zeros(len(data))
        weights[task.members] = task.sizes
    return Split(
        sequences=data,
        names=tuple(shares),
        part=_of_all(part, task, len(data), -1),
        groups=_of_all(groups, task, len(data)),
        shares=ratios,
        labels=labels,
        definition=definition,
        info=about | {"unlabelled": len(data) - len(task.members)},
        weights=weights,
    )


def _of_all(
    values: np.ndarray, task: SplitTask, count: int, default: int | None = None
):
    """Extend values to all sequences, int32. Sequences that were left out get
    ``default``, or numbers that no sequence has."""
    fresh = np.arange(count) + int(values.max(initial=-1)) + 1
    result = fresh if default is None else np.full(count, default)
    result[task.members] = values
    return result.astype(np.int32)


def place(
    component: np.ndarray,
    links: Links | None,
    shares: dict[str, float],
    labels: Labels | None,
    seed: int,
    too_large: str,
    weight: np.ndarray | None = None,
    sizes: np.ndarray | None = None,
) -> np.ndarray:
    """Put every sequence into a part, so that no link is across parts.

    component : int32 (n,)
    links : needed where something may be removed
    weight : int64 (n,), optional; priorities: what is removed is to have as little as
        can be
    sizes : float64 (n,), optional; what sequences count in the shares
    Returns int32 (n,), numbers of parts, -1 for what is removed
    Raises UsageError: a component fits no part, or a part would be empty
    """
    ratios = np.array(list(shares.values()))
    numbers = None if labels is None else labels.numbers
    tallies = tally(component, numbers, None, sizes)
    aim = aimed_tallies(ratios, tallies)
    part_of, large = assign(tallies, aim, seed)
    if large.any() and too_large == "error":
        counts = tallies[:, 0]
        worst = int(np.argmax(np.where(large, counts, -1)))
        name, share = list(shares.items())[int(part_of[worst])]
        raise UsageError(
            f"{int(large.sum()):,} of {len(counts):,} components fit into no part; the "
            f"largest of them has {round(counts[worst]):,} of {round(counts.sum()):,} "
            f"sequences{'' if sizes is None else ' by weight'}, and part {name} should "
            f"have {share:.1%}; larger components are placed first\nhint: "
            "too_large='keep' lets parts differ from their shares, too_large='remove' "
            "removes sequences; a higher cut has smaller components"
        )
    part = part_of[component]
    if too_large == "remove" and len(np.unique(part_of)) < len(shares) and len(part_of):
        large[np.argmax(tallies[:, 0])] = True  # whole, it would leave a part empty
    if large.any() and too_large == "remove":
        assert links is not None
        if numbers is None:
            # components that are too large are divided, the others put beside them
            inside = large[component]
            number = np.cumsum(inside) - 1
            linked = inside[links.i]  # and so is j: a link stays in its component
            i, j = number[links.i[linked]], number[links.j[linked]]
            inner, count = Links(i, j, links.identity[linked]), int(inside.sum())
            weights = None if weight is None else weight[inside]
            target = Shares(ratios * len(component), len(component) - count, weights)
            part = np.full(len(component), -1, np.int32)
            part[inside] = divide(count, inner, target, seed)
            before = tally(part, None, aim.counts.shape)
            places, _ = assign(tallies[~large], aim, seed, before)
            of_rest = np.cumsum(~large) - 1
            part[~inside] = places[of_rest[component[~inside]]]
        else:
            part = removal.divide_balanced(
                links, Balance(ratios, numbers, weight), seed
            )
    check_parts(part, shares, tallies, too_large)
    return part


def check_parts(
    part: np.ndarray, shares: dict[str, float], tallies: np.ndarray, too_large: str
) -> None:
    """Refuse a split with an empty part, unless sizes may be as they come."""
    sizes = np.bincount(part[part >= 0], minlength=len(shares))
    if (sizes == 0).any() and too_large != "keep":
        empty = list(shares)[int(np.argmin(sizes))]
        largest = int(tallies.max(initial=0))
        raise UsageError(
            f"part {empty} would be empty: {len(part):,} sequences have "
            f"{len(tallies):,} components, the largest of {largest:,}; "
            "a higher cut has more components, too_large='keep' allows empty parts"
        )


def least_share_error(sizes: np.ndarray, ratios: np.ndarray) -> float:
    """Bound from below the share_error of parts that hold components whole.

    The part with the largest component has its share of all at least.

    sizes : numbers (components,)
    ratios : float64 (parts,); shares that are asked for
    """
    total = float(sizes.sum()) or 1.0
    return max(float(sizes.max(initial=0)) / total - float(ratios.max()), 0.0)
