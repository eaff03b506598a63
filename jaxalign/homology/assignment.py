"""Groups of sequences to parts: shares and labels as near as can be.

The distance of an assignment from what is asked is the sum over parts and labels of
(sequences - wanted)^2 / wanted, with the whole as one more label. Groups are placed
from the largest to the smallest where they add least; then single groups move, or two
are swapped, as long as that brings it nearer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isclose
from typing import Any, Literal, get_args

import numpy as np

from jaxalign.errors import InputError, UsageError
from jaxalign.homology.options import TOO_LARGE, TooLarge, check_choice
from jaxalign.model.alphabet import Sequences
from jaxalign.model.names import CONTROL, written
from jaxalign.model.numbers import check_whole, is_number
from jaxalign.model.show import counted

# ------------------------------------------------------------------------------
# Choices of a split, checked before anything is aligned: the shares of its parts, and
# tables about sequences, of their labels, their parts until now, their priorities.

SHOWN = 3  # names in a message
REMOVED = "removed"  # what lists call a sequence in no part
UNLABELLED = "unlabelled"  # the label of sequences that have none
HIGHEST = 1_000_000  # a priority
MAX_FOLDS = 10_000
Unlabelled = Literal["error", "label", "remove"]


@dataclass(frozen=True, eq=False)
class Labels:
    """A label of every sequence: numbers into ``names``, int32 (n,)."""

    names: tuple[str, ...]
    numbers: np.ndarray


@dataclass(frozen=True, eq=False)
class KnownParts:
    """An existing split: names of its parts, and that of every sequence, int32 (n,), -1
    of one that it does not have."""

    names: tuple[str, ...]
    part: np.ndarray


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
    weights: Mapping[str, Any] | Sequence[Any] | None = None


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
    fixed_parts : KnownParts or None
        Numbers of its parts are places of ``shares``.
    weight : int64 (n,) or None
        Priorities.
    sizes : float64 (n,) or None
        What sequences count in the shares of parts, 1 on average.
    """

    data: Sequences
    members: np.ndarray
    shares: dict[str, float]
    labels: Labels | None
    fixed_parts: KnownParts | None
    weight: np.ndarray | None
    sizes: np.ndarray | None


def check_choices(choices: SplitChoices, data: Sequences) -> SplitTask:
    """Refuse invalid choices before anything is aligned."""
    check_choice("too_large", choices.too_large, TOO_LARGE)
    check_choice("unlabelled", choices.unlabelled, get_args(Unlabelled))
    if choices.unlabelled != "error" and choices.labels is None:
        raise UsageError(
            f"unlabelled = {choices.unlabelled!r} has no effect without labels"
        )
    if choices.priority is not None and choices.too_large != "remove":
        raise UsageError("priority says what to remove: it needs too_large='remove'")
    divided = choices.too_large == "remove" and choices.fixed is None
    if choices.weights is not None and divided:
        raise UsageError(
            "weights with too_large='remove': it divides a component that is too large "
            "by numbers of sequences, and parts would miss their shares of the weight; "
            "leave out weights, or use too_large='keep', which divides none"
        )
    seed = choices.seed
    check_whole("seed", seed, "0 or more is needed", least=0)
    members = np.arange(len(data))
    labels = choices.labels
    if choices.unlabelled == "remove":
        named: Any = labels  # a mapping, or a label each
        if hasattr(labels, "items"):
            mask = [name in named for name in data.names]
        else:
            mask = [label is not None for label in named]
        members = np.flatnonzero(mask)
    tables = (labels, choices.fixed, choices.priority, choices.weights)
    remaining = data if len(members) == len(data) else data.take(members.tolist())
    labels, fixed, priority, weights = (_of_members(x, data, members) for x in tables)
    usual = UNLABELLED if choices.unlabelled == "label" else None
    fixed_parts = parts_of(fixed, remaining.names)
    sizes = sizes_of(weights, remaining.names)
    shares, fixed_parts = _shares(choices, fixed_parts, sizes)
    return SplitTask(
        remaining,
        members,
        shares,
        labels_of(labels, remaining.names, usual),
        fixed_parts,
        weights_of(priority, remaining.names),
        sizes,
    )


def _of_members(table: Any, data: Sequences, members: np.ndarray) -> Any:
    """Restrict a table of all sequences to the members."""
    if table is None or len(members) == len(data):
        return table
    if hasattr(table, "items"):
        gone = set(data.names) - {data.names[k] for k in members.tolist()}
        return {name: value for name, value in table.items() if name not in gone}
    values = list(table)
    return [values[k] for k in members.tolist()] if len(values) == len(data) else values


def _shares(
    choices: SplitChoices, fixed_parts: KnownParts | None, sizes: np.ndarray | None
) -> tuple[dict[str, float], KnownParts | None]:
    """Return (shares by name; the existing split, with parts numbered as the
    shares)."""
    if fixed_parts is None:
        return shares_of(choices.parts, choices.folds), None
    if choices.parts is None and choices.folds is None:
        listed = fixed_parts.part >= 0
        counts = np.bincount(
            fixed_parts.part[listed],
            None if sizes is None else sizes[listed],
            len(fixed_parts.names),
        )
        shares = (counts / counts.sum()).tolist()
        return dict(zip(fixed_parts.names, shares, strict=True)), fixed_parts
    shares = shares_of(choices.parts, choices.folds)
    lacking = [name for name in fixed_parts.names if name not in shares]
    if lacking:
        raise UsageError(
            f"fixed has the part {lacking[0]!r}, which parts lacks: give it a share, "
            "or leave out parts"
        )
    numbers = np.array([[*shares].index(name) for name in fixed_parts.names] + [-1])
    return shares, KnownParts(tuple(shares), numbers[fixed_parts.part].astype(np.int32))


def shares_of(parts: Any, folds: int | None) -> dict[str, float]:
    """Names of parts and their shares, from ``parts`` or a number of ``folds``.

    Raises UsageError: both are given, shares do not sum to 1, or a name is not fit for
        a file
    """
    if folds is not None:
        if parts is not None:
            raise UsageError("folds and parts exclude each other")
        needed = f"2 to {MAX_FOLDS:,} are needed"
        check_whole("folds", folds, needed)
        if not 2 <= folds <= MAX_FOLDS:
            raise UsageError(f"folds = {folds}: {needed}")
        return {f"fold{number}": 1 / folds for number in range(1, folds + 1)}
    if not hasattr(parts, "items"):
        raise UsageError(
            "parts or folds are needed: parts={'train': 0.8, 'test': 0.2}, or folds=5"
        )
    shares = {str(name): share for name, share in parts.items()}
    for name, share in shares.items():
        odd = CONTROL.search(name) or "/" in name or name != name.strip()
        if not name or name == REMOVED or odd:
            raise UsageError(
                f"part {name!r}: not a valid name of a part; give one without '/', "
                f"and not {REMOVED!r}"
            )
        if not (is_number(share) and 0 < share <= 1):
            raise UsageError(
                f"part {name}: share {share!r}: a fraction above 0, up to 1, is needed"
            )
    total = sum(shares.values())
    if len(shares) < 2 or not isclose(total, 1, abs_tol=1e-6):
        raise UsageError(
            f"{counted(len(shares), 'part')}, shares that sum to {total:g}: two or "
            "more parts are needed, and a sum of 1"
        )
    return shares


def labels_of(
    labels: Any, names: tuple[str, ...], unlabelled: str | None = None
) -> Labels | None:
    """Labels of sequences: one each in their order, or a mapping of names to labels.

    unlabelled : the label of sequences without one; else they are refused
    Raises InputError: a sequence has no label, or a label belongs to no sequence
    """
    if labels is None:
        return None
    values = _values(labels, names, "label", unlabelled)
    kinds, numbers = np.unique(np.array([str(x) for x in values]), return_inverse=True)
    return Labels(tuple(kinds.tolist()), numbers.reshape(-1).astype(np.int32))


def parts_of(fixed: Any, names: tuple[str, ...]) -> KnownParts | None:
    """An existing split: one part each, None for none, or a mapping of names to parts.

    Raises InputError: a name is of no sequence, or there are fewer than two parts
    """
    if fixed is None:
        return None
    values = _values(fixed, names, "part", REMOVED)
    values = [None if x is None or str(x) == REMOVED else str(x) for x in values]
    order = tuple(dict.fromkeys(x for x in values if x is not None))
    if len(order) < 2:
        raise InputError(f"fixed has {len(order)} parts; two or more are needed")
    number = {name: k for k, name in enumerate(order)} | {None: -1}
    return KnownParts(order, np.array([number[x] for x in values], np.int32))


def weights_of(priority: Any, names: tuple[str, ...]) -> np.ndarray | None:
    """Return priorities of sequences, int64 (n,); 1 without one.

    Raises InputError: a name is of no sequence, or a priority is no whole number from 1
        on
    """
    if priority is None:
        return None
    values = _values(priority, names, "priority", 1)
    weights = []
    for value, name in zip(values, names, strict=True):
        try:
            number = value if is_number(value) else float(value)
        except (TypeError, ValueError):
            number = 0
        if not (1 <= number <= HIGHEST and int(number) == number):
            raise InputError(
                f"{written(name)}: priority {value!r} is not a whole number from 1 to "
                f"{HIGHEST:,}"
            )
        weights.append(int(number))
    if sum(weights) >= 2**30:
        raise UsageError(
            f"priorities add up to {sum(weights):,}: their sum must be below 2^30"
        )
    return np.array(weights, np.int64)


def sizes_of(weights: Any, names: tuple[str, ...]) -> np.ndarray | None:
    """Return weights of sequences, scaled to 1 on average, float64 (n,); 1 without one.

    Raises InputError: a name is of no sequence, or a weight is no number above 0
    """
    if weights is None:
        return None
    numbers = []
    for value, name in zip(_values(weights, names, "weight", 1), names, strict=True):
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = 0.0
        if not 0 < number < inf:
            raise InputError(
                f"{written(name)}: weight {value!r} is not a finite number above 0"
            )
        numbers.append(number)
    sizes = np.array(numbers)
    return sizes / sizes.mean() if len(sizes) else sizes


def _values(table: Any, names: tuple[str, ...], noun: str, usual: Any) -> list:
    """Return a value of every sequence; ``usual``, unless it is None, for one that the
    table lacks."""
    if hasattr(table, "items"):
        table = {str(name): value for name, value in table.items()}
        missing = [name for name in names if name not in table]
        if missing and usual is None:
            raise InputError(_lacking(missing, noun))
        unknown = sorted(table.keys() - set(names))
        if unknown:
            raise InputError(f"{_some(unknown, noun, 'belong')} to no sequence")
        return [table.get(name, usual) for name in names]
    values = list(table)
    if len(values) != len(names):
        raise InputError(
            f"{counted(len(names), 'sequence')}, and a {noun} for {len(values):,}: "
            "give one each"
        )
    without = [name for name, x in zip(names, values, strict=True) if x is None]
    if without and usual is None:
        raise InputError(_lacking(without, noun))
    return [usual if x is None else x for x in values]


def _lacking(names: list[str], noun: str) -> str:
    return (
        f"{_some(names)} no {noun}\nhint: unlabelled='label' gives them one of their "
        "own, unlabelled='remove' leaves them out"
    )


def _some(names: list[str], noun: str = "sequence", verb: str = "have") -> str:
    """``2 sequences (a, b) have``."""
    shown = ", ".join(map(written, names[:SHOWN])) + ", …" * (len(names) > SHOWN)
    single = len(names) == 1
    verb = {"have": "has", "belong": "belongs"}[verb] if single else verb
    plural = {"priority": "priorities"}.get(noun, f"{noun}s")
    return f"{len(names):,} {noun if single else plural} ({shown}) {verb}"


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


def aimed_tallies(ratios: np.ndarray, tallies: np.ndarray) -> Wanted:
    """Scale the sum of tallies (groups, 1 + labels) by shares."""
    return Wanted(ratios[:, None] * tallies.sum(axis=0)[None, :])


def tally(
    groups: np.ndarray,
    labels: np.ndarray | None,
    shape: tuple[int, ...] | None = None,
    sizes: np.ndarray | None = None,
) -> np.ndarray:
    """Count the sequences of every group, in all and of each label: float64 (groups, 1
    + labels), or with 0 up to a shape. Members with a group below 0 count nowhere.

    sizes : float64 (n,), optional; what sequences count in all
    """
    placed = groups >= 0
    count = int(groups.max(initial=-1)) + 1
    weights = None if sizes is None else sizes[placed]
    counts = np.bincount(groups[placed], weights, count)[:, None].astype(np.float64)
    if labels is not None:
        kinds = int(labels.max(initial=-1)) + 1
        flat = groups[placed].astype(np.int64) * kinds + labels[placed]
        table = np.bincount(flat, minlength=count * kinds).reshape(count, kinds)
        counts = np.concatenate([counts, table], axis=1)
    if shape is None:
        return counts
    room = [(0, x - y) for x, y in zip(shape, counts.shape, strict=True)]
    return np.pad(counts, room)


def assign(
    tallies: np.ndarray,
    aim: Wanted,
    seed: int | tuple[int, ...],
    before: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Put every group into a part.

    tallies : float64 (groups, 1 + labels)
    seed : of the order of groups of one size
    before : float64 (parts, 1 + labels), optional; what the parts have already
    Returns part : int32 (groups,)
    Returns too_large : bool (groups,), no part had room for it when it was placed:
        every one would be more than a tenth over its share
    """
    random = np.random.default_rng(seed)
    order = np.lexsort((random.permutation(len(tallies)), -tallies[:, 0]))
    part = np.zeros(len(tallies), np.int32)
    too_large = np.zeros(len(tallies), bool)
    filled = np.zeros_like(aim.counts) if before is None else before.copy()
    share = aim.counts[:, 0]
    limit = np.maximum(np.floor(share * OVER), np.ceil(share))
    for group in order.tolist():
        group_tally = tallies[group]
        fits = filled[:, 0] + group_tally[0] <= limit
        cost = _cost(filled + group_tally, aim) - _cost(filled, aim)
        too_large[group] = not fits.any()
        if fits.any():
            cost = np.where(fits, cost, np.inf)
        part[group] = target = int(np.argmin(cost))
        filled[target] += group_tally
    if len(tallies):
        _improve(part, tallies, aim, filled)
    return part, too_large


def _cost(counts: np.ndarray, aim: Wanted) -> np.ndarray:
    """Measure the distances of tallies (..., 1 + labels) from their aim, (..., parts)
    where the last but one axis is of parts."""
    return ((counts - aim.counts) ** 2 * aim.weight).sum(axis=-1)


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
        for k, source, target in steps:
            part[np.flatnonzero((kind == k) & (part == source))[0]] = target
            members[k, source] -= 1
            members[k, target] += 1
            filled[source] -= kinds[k]
            filled[target] += kinds[k]


def _best_move(
    kinds: np.ndarray, members: np.ndarray, aim: Wanted, filled: np.ndarray
) -> list[tuple]:
    """Find the best move, [(kind, from part, to part)]; nothing where no move helps."""
    current = _cost(filled, aim)
    gain = current - _cost(filled - kinds[:, None], aim)
    loss = _cost(filled + kinds[:, None], aim) - current
    change = loss[:, None, :] - gain[:, :, None]  # of kind k from part p to part q
    change[members == 0] = np.inf
    change[:, np.arange(len(filled)), np.arange(len(filled))] = np.inf
    k, source, target = np.unravel_index(np.argmin(change), change.shape)
    return [(k, source, target)] if change[k, source, target] < -ENOUGH else []


def _best_swap(
    kinds: np.ndarray, members: np.ndarray, aim: Wanted, filled: np.ndarray
) -> list[tuple]:
    """Find the best two moves, kind k from part p to part q and kind l back; only of
    the smallest kinds."""
    smallest = np.argsort(kinds[:, 0], kind="stable")[:SWAPPED]
    differences = kinds[smallest][None] - kinds[smallest][:, None]  # of l and k
    current = _cost(filled, aim)
    # part p has l for k
    half_change = _cost(filled + differences[:, :, None], aim) - current
    change = half_change[:, :, :, None] + half_change.transpose(1, 0, 2)[:, :, None, :]
    there = members[smallest] > 0
    change[~(there[:, None, :, None] & there[None, :, None, :])] = np.inf
    k, l, p, q = np.unravel_index(np.argmin(change), change.shape)
    if not change[k, l, p, q] < -ENOUGH:
        return []
    return [(smallest[k], p, q), (smallest[l], q, p)]
