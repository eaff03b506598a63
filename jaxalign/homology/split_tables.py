"""Tables about sequences: their labels, their parts until now, their priorities."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxalign.errors import InputError, UsageError
from jaxalign.model.names import written
from jaxalign.model.numbers import is_number

SHOWN = 3  # names in a message
REMOVED = "removed"  # what lists call a sequence in no part
UNLABELLED = "unlabelled"  # the label of sequences that have none
HIGHEST = 1_000_000  # a priority


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


def labels_of(
    labels: Any, names: tuple[str, ...], unlabelled: str | None = None
) -> Labels | None:
    """Labels of sequences: one each in their order, or a mapping of names to labels.

    Parameters
    ----------
    unlabelled : str, optional
        The label of sequences without one; else they are refused.

    Raises
    ------
    InputError
        A sequence has no label, or a label belongs to no sequence.
    """
    if labels is None:
        return None
    values = _values(labels, names, "label", unlabelled)
    kinds, numbers = np.unique(np.array([str(x) for x in values]), return_inverse=True)
    return Labels(tuple(kinds.tolist()), numbers.reshape(-1).astype(np.int32))


def parts_of(fixed: Any, names: tuple[str, ...]) -> KnownParts | None:
    """An existing split: one part each, None for none, or a mapping of names to parts.

    Raises
    ------
    InputError
        A name is of no sequence, or there are fewer than two parts.
    """
    if fixed is None:
        return None
    values = _values(fixed, names, "part", REMOVED)
    values = [None if x is None or str(x) == REMOVED else str(x) for x in values]
    order = tuple(dict.fromkeys(x for x in values if x is not None))
    if len(order) < 2:
        raise InputError(f"{len(order)} parts are fixed, where two or more are needed")
    number = {name: k for k, name in enumerate(order)} | {None: -1}
    return KnownParts(order, np.array([number[x] for x in values], np.int32))


def weights_of(priority: Any, names: tuple[str, ...]) -> np.ndarray | None:
    """Priorities of sequences, int64 (n,), 1 of those that have none.

    Raises
    ------
    InputError
        A name is of no sequence, or a priority is no whole number from 1 on.
    """
    if priority is None:
        return None
    values = _values(priority, names, "priority", 1)
    weights = [_whole(value, name) for value, name in zip(values, names, strict=True)]
    if sum(weights) >= 2**30:
        raise UsageError(f"priorities add up to {sum(weights):,}: less than 2^30 fits")
    return np.array(weights, np.int64)


def _whole(value: Any, name: str) -> int:
    try:
        number = value if is_number(value) else float(value)
    except (TypeError, ValueError):
        number = 0
    if not (1 <= number <= HIGHEST and int(number) == number):
        raise InputError(
            f"{written(name)}: priority {value!r} is no whole number from 1 to "
            f"{HIGHEST:,}"
        )
    return int(number)


def _values(table: Any, names: tuple[str, ...], noun: str, usual: Any) -> list:
    """A value of every sequence; ``usual`` of one that the table does not have, where
    that is not None."""
    if hasattr(table, "items"):
        known = {str(name): value for name, value in table.items()}
        return _by_name(known, names, noun, usual)
    values = list(table)
    if len(values) != len(names):
        plural = {"priority": "priorities"}.get(noun, f"{noun}s")
        raise InputError(f"{len(values)} {plural} for {len(names)} sequences")
    without = [name for name, x in zip(names, values, strict=True) if x is None]
    if without and usual is None:
        raise InputError(_lacking(without, noun))
    return [usual if x is None else x for x in values]


def _by_name(table: dict, names: tuple[str, ...], noun: str, usual: Any) -> list:
    missing = [name for name in names if name not in table]
    if missing and usual is None:
        raise InputError(_lacking(missing, noun))
    unknown = sorted(table.keys() - set(names))
    if unknown:
        raise InputError(f"{_some(unknown, noun, 'belong')} to no sequence")
    return [table.get(name, usual) for name in names]


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
