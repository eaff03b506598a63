"""Run a split of encoded sequences, or a series by one pass of identities."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.homology import repair
from jaxalign.homology.links import (
    Links,
    PairCounts,
    all_links,
    components,
    components_by_cut,
    stream_links,
)
from jaxalign.homology.options import TOO_LARGE, Definition, TooLarge, check_choice
from jaxalign.homology.removal import graph_of
from jaxalign.homology.result import Split
from jaxalign.homology.separator import most_members
from jaxalign.homology.split_tables import (
    UNLABELLED,
    KnownParts,
    Labels,
    labels_of,
    parts_of,
    weights_of,
)
from jaxalign.homology.splits import (
    check_parts,
    fewest_removed,
    least_share_error,
    place,
    shares_of,
)
from jaxalign.model.alphabet import Sequences
from jaxalign.model.numbers import check_whole

Unlabelled = Literal["error", "label", "remove"]


@dataclass(frozen=True)
class SplitChoices:
    """How components are put into parts: options of ``split``."""

    parts: Mapping[str, float] | None = None
    folds: int | None = None
    labels: Mapping[str, Any] | Sequence[Any] | None = None
    seed: int = 0
    too_large: TooLarge = "error"
    unlabelled: Unlabelled = "error"
    fixed: Mapping[str, Any] | Sequence[Any] | None = None
    priority: Mapping[str, Any] | Sequence[Any] | None = None


@dataclass(frozen=True, eq=False)
class SplitTask:
    """A split whose choices are checked.

    Attributes
    ----------
    data : Sequences
        Those that are put into parts.
    members : int64 (n,)
        Which of all sequences these are.
    shares : dict of float
    labels : Labels or None
    known : KnownParts or None
        Numbers of its parts are places of ``shares``.
    weight : int64 (n,) or None
    """

    data: Sequences
    members: np.ndarray
    shares: dict[str, float]
    labels: Labels | None
    known: KnownParts | None
    weight: np.ndarray | None


def check_choices(choices: SplitChoices, data: Sequences) -> SplitTask:
    """Refuse what can be before anything is aligned.

    Raises
    ------
    UsageError, InputError
    """
    check_choice("too_large", choices.too_large, TOO_LARGE)
    check_choice("unlabelled", choices.unlabelled, get_args(Unlabelled))
    if choices.unlabelled != "error" and choices.labels is None:
        raise UsageError(f"unlabelled = {choices.unlabelled!r}: there are no labels")
    if choices.priority is not None and choices.too_large != "remove":
        raise UsageError("priority says what is removed: too_large='remove' is needed")
    seed = choices.seed
    check_whole("seed", seed + 1 if type(seed) is int else seed, "0 or more is needed")
    members = np.arange(len(data))
    labels = choices.labels
    if choices.unlabelled == "remove":
        members = _labelled(labels, data.names)
    tables = (labels, choices.fixed, choices.priority)
    remaining = data if len(members) == len(data) else data.take(members.tolist())
    labels, fixed, priority = (_of_members(x, data, members) for x in tables)
    usual = UNLABELLED if choices.unlabelled == "label" else None
    known = parts_of(fixed, remaining.names)
    shares, known = _shares(choices, known)
    return SplitTask(
        remaining,
        members,
        shares,
        labels_of(labels, remaining.names, usual),
        known,
        weights_of(priority, remaining.names),
    )


def _labelled(labels: Any, names: tuple[str, ...]) -> np.ndarray:
    """The sequences that have a label."""
    if hasattr(labels, "items"):
        return np.array([k for k, x in enumerate(names) if x in labels], np.int64)
    return np.array([k for k, x in enumerate(labels) if x is not None], np.int64)


def _of_members(table: Any, data: Sequences, members: np.ndarray) -> Any:
    """A table about all sequences, of some of them alone."""
    if table is None or len(members) == len(data):
        return table
    if hasattr(table, "items"):
        gone = set(data.names) - {data.names[k] for k in members.tolist()}
        return {name: value for name, value in table.items() if name not in gone}
    values = list(table)
    return [values[k] for k in members.tolist()] if len(values) == len(data) else values


def _shares(
    choices: SplitChoices, known: KnownParts | None
) -> tuple[dict[str, float], KnownParts | None]:
    """(shares by name; the existing split, its parts numbered as these)."""
    if known is None:
        return shares_of(choices.parts, choices.folds), None
    if choices.parts is None and choices.folds is None:
        sizes = np.bincount(known.part[known.part >= 0], minlength=len(known.names))
        shares = (sizes / sizes.sum()).tolist()
        return dict(zip(known.names, shares, strict=True)), known
    shares = shares_of(choices.parts, choices.folds)
    lacking = [name for name in known.names if name not in shares]
    if lacking:
        raise UsageError(f"fixed has the part {lacking[0]!r}, and parts do not")
    numbers = np.array([[*shares].index(name) for name in known.names] + [-1])
    return shares, KnownParts(tuple(shares), numbers[known.part].astype(np.int32))


def split_of(data: Sequences, definition: Definition, choices: SplitChoices) -> Split:
    """Split a set."""
    return series_of(data, definition, choices, (definition.cut,))[0]


def series_of(
    data: Sequences,
    definition: Definition,
    choices: SplitChoices,
    cuts: Sequence[float],
) -> list[Split]:
    """Split a set at every one of some cuts; pairs are compared once.

    Parameters
    ----------
    definition : Definition
        Of the lowest cut.
    cuts : sequence of float
    """
    task, counts = check_choices(choices, data), PairCounts()
    if choices.too_large == "remove":
        links = all_links(task.data, definition, counts)
        at = [_above(links, cut) for cut in cuts]
        groups = [components(len(task.data), [(x.i, x.j)]) for x in at]
        linked = [len(x) for x in at]
    else:
        at: list[Links | None] = [None] * len(cuts)
        stream = stream_links(task.data, definition, counts)
        groups, linked = components_by_cut(len(task.data), stream, cuts)
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
        for cut, group, links, count in zip(cuts, groups, at, linked, strict=True)
    ]


def _above(links: Links, cut: float) -> Links:
    """Links at or above a cut."""
    some = links.identity >= cut
    return Links(links.i[some], links.j[some], links.identity[some])


def _split(
    data: Sequences,
    task: SplitTask,
    choices: SplitChoices,
    definition: Definition,
    graph: tuple[np.ndarray, Links | None],
    about: dict[str, Any],
) -> Split:
    """The split by some links."""
    (groups, links), shares, known = graph, task.shares, task.known
    ratios = np.array(list(shares.values()))
    sizes = np.bincount(groups, minlength=1)
    about = about | {"least_share_error": least_share_error(sizes, ratios)}
    if known is None:
        chosen = choices.seed, choices.too_large, task.weight
        part = place(groups, links, shares, task.labels, *chosen)
        if links is not None and (part < 0).any():
            about |= {"fewest_removed": _fewest(groups, links, part, ratios)}
    else:
        numbers = None if task.labels is None else task.labels.numbers
        weight = np.ones(len(groups), np.int64) if task.weight is None else task.weight
        about_parts = ratios, numbers, choices.seed
        part, changes = repair.repaired(groups, links, known.part, weight, *about_parts)
        check_parts(part, shares, sizes[:, None], choices.too_large)
        about |= {"changes": changes}
    return Split(
        sequences=data,
        names=tuple(shares),
        part=_of_all(part, task, len(data), -1),
        groups=_of_all(groups, task, len(data)),
        shares=ratios,
        labels=_labels_of_all(task, len(data)),
        definition=definition,
        info=about | {"unlabelled": len(data) - len(task.members)},
    )


def _fewest(
    groups: np.ndarray, links: Links, part: np.ndarray, ratios: np.ndarray
) -> int:
    """Sequences that every split of these shares takes out, at least."""
    divided = np.zeros(int(groups.max()) + 1, bool)
    divided[groups[part < 0]] = True
    room = int(most_members(ratios * len(part)).max())
    return fewest_removed(graph_of(len(part), links), groups, divided, room)


def _of_all(values: np.ndarray, task: SplitTask, count: int, other: int | None = None):
    """Values of all sequences, int32; ``other`` of those that are left out, or numbers
    that no sequence has."""
    fresh = np.arange(count) + int(values.max(initial=-1)) + 1
    result = fresh if other is None else np.full(count, other)
    result[task.members] = values
    return result.astype(np.int32)


def _labels_of_all(task: SplitTask, count: int) -> Labels | None:
    """Labels of all sequences; those that are left out are in no part to count in."""
    if task.labels is None:
        return None
    return Labels(task.labels.names, _of_all(task.labels.numbers, task, count, 0))
