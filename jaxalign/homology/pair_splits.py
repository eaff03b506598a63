"""Splits of pairs of sequences, as of interactions, and their audit."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, eigsh

from jaxalign.errors import InputError, UsageError
from jaxalign.homology import across
from jaxalign.homology.assignment import REMOVED, aimed_tallies, assign, shares_of
from jaxalign.homology.links import (
    PairCounts,
    components,
    kept_together,
    stream_links,
)
from jaxalign.homology.options import Definition, check_audited, check_choice
from jaxalign.homology.removal import outwards
from jaxalign.homology.result import (
    largest_share_error,
    not_in_parts,
    part_count,
    part_sizes,
)
from jaxalign.model import frames, show
from jaxalign.model.alphabet import Sequences
from jaxalign.model.names import written
from jaxalign.model.numbers import check_whole
from jaxalign.pairs.plan import SavedState

# ------------------------------------------------------------------------------
# Parts of pairs, as of interactions, by their proteins: the mathematics.
#
# Proteins that are linked are one *unit*, and so is every group of a second column that
# is not of proteins; a pair joins two units. With ``both`` (C3) units are put into
# parts, and a pair stays where both of its units are in one part. With ``one`` (C2) a
# pair has a side that no earlier part knows. With ``none`` (C1) pairs are dealt out.

STARTS = 4  # orders of units that are cut into parts
CUTS, PASSES = 30, 30  # rounds that even the parts of an order; that move units
IMBALANCE = 5.0  # what a pair that a part has beyond its share counts, kept pairs 1
SEEN = 1.1  # a part may have a tenth more than its share
SMALL = 20_000  # units, parts and pairs multiplied, that are moved one by one
DENSE = 200  # units whose eigenvalues are computed at once
# The eigenvalues that an iteration looks for, and how exactly.
LARGEST: dict[str, Any] = {"which": "LA", "tol": 1e-4}
EIGENVALUE_ERROR = 1e-3  # what an iteration may leave, added to be safe


@dataclass(frozen=True, eq=False)
class UnitGraph:
    """Pairs of units.

    Attributes
    ----------
    count : int
        Units.
    a, b : int64 (pairs,)
        The units of every pair.
    """

    count: int
    a: np.ndarray
    b: np.ndarray

    def matrix(self) -> csr_array:
        """Count the pairs of every two units, (count, count), symmetric; a pair within
        a unit counts twice on the diagonal."""
        rows = np.concatenate([self.a, self.b])
        columns = np.concatenate([self.b, self.a])
        shape = (self.count,) * 2
        graph = csr_array(coo_array((np.ones(len(rows)), (rows, columns)), shape=shape))
        graph.sum_duplicates()
        return graph


def dealt(keys: np.ndarray, ratios: np.ndarray, seed: int) -> np.ndarray:
    """C1: a part for every pair, int32 (pairs,); equal keys stay together."""
    _, of_key, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(sizes))
    ends = np.cumsum(sizes[order])
    bounds = np.cumsum(ratios) * len(keys)
    place = np.searchsorted(bounds[:-1], ends - sizes[order] / 2, side="right")
    part = np.zeros(len(sizes), np.int32)
    part[order] = place
    return part[of_key.reshape(-1)]


def by_last(graph: UnitGraph, ratios: np.ndarray, seed: int) -> np.ndarray:
    """C2 of two columns of proteins: a part for every unit, int32 (count,). A pair is
    in the later of the parts of its units, so that this unit is new to all earlier
    parts. Parts are filled from the last to the second."""
    matrix, random = graph.matrix(), np.random.default_rng(seed)
    part = np.zeros(graph.count, np.int32)
    diagonal = matrix.diagonal() / 2
    for number in range(len(ratios) - 1, 0, -1):
        aim, pairs = ratios[number] * len(graph.a), 0.0
        for unit in random.permutation(np.flatnonzero(part == 0)).tolist():
            span = slice(matrix.indptr[unit], matrix.indptr[unit + 1])
            neighbours = matrix.indices[span]
            fresh = (part[neighbours] == 0) & (neighbours != unit)
            gain = float(matrix.data[span][fresh].sum()) + diagonal[unit]
            if not gain or pairs + gain > max(aim * SEEN, aim + 1):
                continue
            part[unit], pairs = number, pairs + gain
            if pairs >= aim:
                break
    return part


def pairs_by_last(graph: UnitGraph, part: np.ndarray) -> np.ndarray:
    """Return the part of every pair, int32 (pairs,), by ``by_last``."""
    return np.maximum(part[graph.a], part[graph.b])


def apart(graph: UnitGraph, ratios: np.ndarray, seed: int) -> np.ndarray:
    """C3: a part for every unit, int32 (count,), so that many pairs have both of their
    units in one part and parts have their shares of these."""
    matrix = graph.matrix()
    blocks = connected_components(matrix, directed=False)[1]
    pairs = np.bincount(blocks[graph.a], minlength=int(blocks.max(initial=-1)) + 1)
    tallies = pairs.astype(np.float64)[:, None]
    part_of_block, large = assign(tallies, aimed_tallies(ratios, tallies), seed)
    best, highest = part_of_block[blocks].astype(np.int32), -np.inf
    if not large.any():
        return best
    # Orders of units that keep neighbours close: outwards from one unit, and by the
    # second eigenvector of the random walk; and a random one.
    random = np.random.default_rng(seed)
    orders = [outwards(matrix, random) for _ in range(STARTS - 2)]
    vector = _second(matrix)[1]
    if vector is not None:
        orders.append(np.argsort(vector, kind="stable"))
    orders.append(random.permutation(graph.count))
    for order in orders:
        part = _cut(order, graph, ratios)
        part = _moved(part, graph, matrix, ratios, seed)
        if graph.count * len(ratios) * len(graph.a) <= SMALL:
            part = _one_by_one(part, graph, ratios)
        value = _value(part, graph, ratios)
        if value > highest:
            best, highest = part, value
    return best


def pairs_apart(graph: UnitGraph, part: np.ndarray) -> np.ndarray:
    """Return the part of every pair, int32 (pairs,); -1 where its units are in two
    parts."""
    return np.where(part[graph.a] == part[graph.b], part[graph.a], -1).astype(np.int32)


def _cut(order: np.ndarray, graph: UnitGraph, ratios: np.ndarray) -> np.ndarray:
    """Cut an order of units into parts that have their shares of the pairs inside."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    low = np.minimum(place[graph.a], place[graph.b])
    high = np.maximum(place[graph.a], place[graph.b])
    widths = np.sqrt(ratios) / np.sqrt(ratios).sum()
    best, error = widths, np.inf
    for _ in range(CUTS):
        ends = np.ceil(np.cumsum(widths) * len(order)).astype(np.int64)
        of_low = np.searchsorted(ends[:-1], low, side="right")
        of_high = np.searchsorted(ends[:-1], high, side="right")
        inside = np.bincount(of_low[of_low == of_high], minlength=len(ratios))
        shares = (inside + 1) / (inside + 1).sum()
        away = float(np.abs(shares - ratios).max())
        if away < error:
            best, error = widths, away
        widths = widths * np.sqrt(ratios / shares)
        widths = widths / widths.sum()
    ends = np.ceil(np.cumsum(best) * len(order)).astype(np.int64)
    return np.searchsorted(ends[:-1], place, side="right").astype(np.int32)


def _value(part: np.ndarray, graph: UnitGraph, ratios: np.ndarray) -> float:
    """Value a division: pairs kept, less those beyond the shares of parts; an empty
    part is worst."""
    inside = _inside(part, graph, len(ratios))
    over = np.maximum(inside - ratios * inside.sum(), 0).sum()
    empty = int((inside == 0).sum()) * len(graph.a)
    return float(inside.sum() - IMBALANCE * over - empty)


def _inside(part: np.ndarray, graph: UnitGraph, parts: int) -> np.ndarray:
    """Count the pairs of every part."""
    of_pair = pairs_apart(graph, part)
    return np.bincount(of_pair[of_pair >= 0], minlength=parts)


def _moved(
    part: np.ndarray,
    graph: UnitGraph,
    matrix: csr_array,
    ratios: np.ndarray,
    seed: int,
) -> np.ndarray:
    """Move units to where most of their pairs are, many at a time, while that helps.

    Parts with more than their share lend no help: a unit needs the more pairs to go
    there. Of those that would move, fewer are moved after a step that made it worse.
    """
    random, parts = np.random.default_rng(seed), len(ratios)
    best, highest, share = part, _value(part, graph, ratios), 0.5
    for _ in range(PASSES):
        inside = _inside(best, graph, parts)
        price = inside / np.maximum(ratios * max(inside.sum(), 1), 1)
        pull = matrix @ np.eye(parts)[best] / np.maximum(price, 0.25)
        target = pull.argmax(axis=1).astype(np.int32)
        gain = pull[np.arange(len(best)), target] - pull[np.arange(len(best)), best]
        movers = (gain > 0) & (random.random(len(best)) < share)
        part = np.where(movers, target, best)
        value = _value(part, graph, ratios)
        if value > highest:
            best, highest = part, value
        elif share < 0.01:
            break
        else:
            share /= 2
    return best


def _one_by_one(part: np.ndarray, graph: UnitGraph, ratios: np.ndarray) -> np.ndarray:
    """Move single units of a small graph, or swap two, as long as one step helps."""
    best, highest, helps = part.copy(), _value(part, graph, ratios), True
    while helps:
        helps = False
        steps = [((v, p),) for v in range(graph.count) for p in range(len(ratios))]
        steps += [
            ((v, best[u]), (u, best[v]))
            for v in range(graph.count)
            for u in range(v)
            if best[u] != best[v]
        ]
        for step in steps:
            part = best.copy()
            for unit, target in step:
                part[unit] = target
            value = _value(part, graph, ratios)
            if value > highest + 1e-9:
                best, highest, helps = part, value, True
    return best


def most_apart(graph: UnitGraph, shares: np.ndarray) -> int:
    """C3: bound the pairs that any split with these shares of kept pairs keeps.

    Of two sets of units with volumes v and w, the sums of their pairs at either end, at
    least mu v w / (v + w) pairs are across (Chung 1997, section 2.3), where mu is the
    second least eigenvalue of the normalized Laplacian. Parts are joined to two sets of
    nearly equal shares; pairs outside the largest connected block count as kept.
    """
    matrix, total = graph.matrix(), len(graph.a)
    if not total:
        return 0
    value, _, block = _second(matrix)
    # the joint share of a subset of parts that is nearest to a half
    if len(shares) > 12:
        sums = np.cumsum(np.sort(shares)[::-1])
    else:
        masks = (np.arange(2 ** len(shares))[:, None] >> np.arange(len(shares))) & 1
        sums = masks @ shares
    share = float(sums[np.argmin(np.abs(sums - 0.5))])
    inner = int(block[graph.a].sum())
    # Beyond 1 the inequality would not rise with what is across.
    mu, outer = min(max(1 - value, 0.0), 1.0), total - inner

    def allowed(across: int) -> bool:
        within, least = total - across, np.inf
        for part in (share, 1 - share):
            pairs = min(max(part * within - outer, 0.0), inner - across)
            v = 2 * pairs + across
            least = min(least, mu * v * (2 * inner - v) / (2 * inner))
        return across >= least - 1e-6 * total

    low, high = 0, inner
    while low < high:
        across = (low + high) // 2
        low, high = (low, across) if allowed(across) else (across + 1, high)
    return total - low


def _second(matrix: csr_array) -> tuple[float, np.ndarray | None, np.ndarray]:
    """Find the second largest eigenvalue of the normalized adjacency of the largest
    connected block; its vector, over all units, 0 elsewhere; the block, bool (count,).
    """
    labels = connected_components(matrix, directed=False)[1]
    weights = np.bincount(labels, matrix.sum(axis=1))
    block = labels == int(np.argmax(weights))
    members = np.flatnonzero(block)
    if len(members) < 2:
        return -1.0, None, block
    inner = csr_array(matrix[members][:, members])
    scale = diags_array(1 / np.sqrt(inner.sum(axis=1)))
    normal = csr_array(scale @ inner @ scale)
    if len(members) < DENSE:
        values, vectors = np.linalg.eigh(normal.toarray())
    else:
        start = np.random.default_rng(0).random(len(members))
        try:
            values, vectors = eigsh(normal, 2, v0=start, **LARGEST)
        except ArpackError:  # it did not converge: the trivial bound
            return 1.0, None, block
    order = np.argsort(values)
    vector = np.zeros(len(labels))
    vector[members] = vectors[:, order[-2]] / np.sqrt(inner.sum(axis=1))
    return float(values[order[-2]]) + EIGENVALUE_ERROR, vector, block


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
    """A split of pairs of sequences into parts.

    Attributes
    ----------
    sequences : Sequences
        The sequences that pairs name.
    first, second : int64 (pairs,)
        Indices of the two sequences of every pair; ``second`` indexes ``groups`` if the
        second column has groups.
    groups : tuple of str or None
        Names of the groups.
    names : tuple of str
        Names of the parts.
    part : int32 (pairs,)
        The part of every pair; -1 for none.
    units : int32 (n,)
        The component of every sequence.
    shares : float64 (parts,)
        Requested shares, which sum to 1.
    cold : {"both", "one", "none"}
        What pairs of different parts may share; see ``split_pairs``.
    definition : Definition
        When two sequences are linked; ``str`` is the sentence.
    info : dict
        ``most_kept`` is an upper bound on the pairs that a split with these shares
        keeps.
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

    to_pandas, to_arrow, to_polars, write, __repr__, _repr_html_ = frames.METHODS

    __len__ = part_count
    sizes = part_sizes
    removed = not_in_parts
    share_error = largest_share_error

    def columns(self) -> dict[str, Any]:
        """Return one row per pair: its names and its part; "removed" means none."""
        names = np.array(self.sequences.names, object)
        second_names = names if self.groups is None else np.array(self.groups, object)
        parts = np.array([*self.names, REMOVED], object)
        return {
            "first": names[self.first],
            "second": second_names[self.second],
            "part": parts[self.part],
        }

    def heading(self) -> str:
        """Summarise the sizes of the parts, and what was removed, with its bound."""
        parts = zip(self.names, self.sizes.tolist(), strict=True)
        text = show.listed([f"{name} {size:,}" for name, size in parts])
        text += f"; shares differ by {self.share_error:.2%} at most"
        if not len(self.removed):
            return f"{text}; no pair removed"
        least = max(len(self.part) - self.info["most_kept"], 0)
        return (
            f"{text}; {len(self.removed):,} of {len(self.part):,} pairs removed by a "
            f"search; any split with these shares removes {least:,} or more"
        )

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
    """Convert pairs of names to numbers.

    where : (number of a pair from 0) -> how messages call it
    Raises InputError: a name is that of no sequence, or there is no pair
    """
    number_of = {name: number for number, name in enumerate(names)}
    where = where or (lambda number: f"pair {number}")
    groups: dict[str, int] = {}
    first, second_numbers = [], []
    for number, (a, b) in enumerate(pairs):
        if a not in number_of:
            raise InputError(
                f"{where(number)}: {written(str(a))} is not the name of a sequence"
            )
        if second == "proteins" and b not in number_of:
            raise InputError(
                f"{where(number)}: {written(str(b))} is not the name of a sequence\n"
                "hint: second='groups' reads the second column as groups, such as "
                "ligands"
            )
        first.append(number_of[a])
        column = number_of if second == "proteins" else groups
        second_numbers.append(column.setdefault(b, len(column)))
    if not first:
        raise InputError("there are no pairs: give one or more")
    numbers = np.array(first, np.int64), np.array(second_numbers, np.int64)
    return NamedPairs(*numbers, tuple(groups) if second == "groups" else None)


def check_pair_choices(choices: PairChoices) -> dict[str, float]:
    """Return shares by the names of parts; refuse invalid choices before anything is
    aligned."""
    check_choice("cold", choices.cold, get_args(Cold))
    check_choice("second", choices.second, get_args(Second))
    seed = choices.seed
    check_whole("seed", seed, "0 or more is needed", least=0)
    if choices.cold == "one" and choices.folds and choices.second == "proteins":
        raise UsageError(
            "folds with cold='one': a pair of two folds would belong to both, since "
            "either of its proteins is new to the other; give parts, or cold='both'"
        )
    return shares_of(choices.parts, choices.folds)


def split_pairs_of(
    data: Sequences,
    definition: Definition,
    pairs: NamedPairs,
    choices: PairChoices,
    saved: SavedState | None = None,
) -> PairSplit:
    """Split pairs.

    saved : the state of a run that was interrupted, or may be
    """
    shares, counts = check_pair_choices(choices), PairCounts()
    stream = stream_links(data, definition, counts, saved=saved)
    together = kept_together(data, definition)
    units = components(len(data), ((x.i, x.j) for x in stream), together)
    ratios, seed = np.array(list(shares.values())), choices.seed
    count = int(units.max(initial=-1)) + 1
    grouped = pairs.groups is not None
    second = pairs.second + count if grouped else units[pairs.second].astype(np.int64)
    unit_count = count + (len(pairs.groups) if pairs.groups is not None else 0)
    graph = UnitGraph(unit_count, units[pairs.first].astype(np.int64), second)
    about = counts.about() | {"seed": seed, "units": count}
    if choices.cold == "none":
        part = dealt(pair_keys(pairs, data), ratios, seed)
    elif choices.cold == "both":
        part = pairs_apart(graph, apart(graph, ratios, seed))
    elif grouped:
        # C2 of groups: units of the first column go into parts, by shares of pairs
        tallies = np.bincount(graph.a, minlength=graph.count)[:, None].astype(float)
        present = np.flatnonzero(tallies[:, 0])
        of_unit = np.zeros(graph.count, np.int32)
        aim = aimed_tallies(ratios, tallies)
        of_unit[present] = assign(tallies[present], aim, seed)[0]
        part = of_unit[graph.a]
    else:
        part = pairs_by_last(graph, by_last(graph, ratios, seed))
    sizes = np.bincount(part[part >= 0], minlength=len(ratios))
    if (sizes == 0).any():
        empty = list(shares)[int(np.argmin(sizes))]
        raise UsageError(
            f"part {empty} would be empty: {len(part):,} pairs join {count:,} "
            "components of sequences; a higher cut has more components"
        )
    if (part < 0).any():
        about["most_kept"] = most_apart(graph, sizes / sizes.sum())
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


def pair_keys(pairs: NamedPairs, data: Sequences) -> np.ndarray:
    """Number pairs so that equal pairs have equal numbers: of equal texts, two proteins
    in either order."""
    numbers: dict[bytes, int] = {}
    texts = (data[k].tobytes() for k in range(len(data)))
    text = np.array([numbers.setdefault(x, len(numbers)) for x in texts], np.int64)
    a, b = text[pairs.first], pairs.second
    if pairs.groups is None:
        a, b = np.minimum(a, text[b]), np.maximum(a, text[b])
    return a * (max(len(data), len(pairs.groups or ())) + 1) + b


# ------------------------------------------------------------------------------
# Check a split of pairs of sequences, whoever made it, exactly.


@dataclass(frozen=True, eq=False, repr=False)
class PairAudit:
    """An exact check of a split of pairs.

    Attributes
    ----------
    names : tuple of str
        Names of the parts, in their order.
    part : int32 (pairs,)
        The part of every pair; -1 for none.
    leaking : bool (pairs,)
        Pairs that break the rule: a member is near one in another part, or, for
        ``one``, both members are near a pair of an earlier part.
    cold : {"both", "one", "none"}
        The rule; see ``split_pairs``.
    grouped : bool
        Whether the second column has groups.
    definition : Definition
        When two sequences are linked; ``str`` is the sentence.
    info : dict
        Numbers of pairs of proteins across parts, in total, aligned and excluded.
    """

    names: tuple[str, ...]
    part: np.ndarray
    leaking: np.ndarray
    cold: str
    grouped: bool
    definition: Definition
    info: dict[str, Any]

    to_pandas, to_arrow, to_polars, write, __repr__, _repr_html_ = frames.METHODS

    @property
    def leaks(self) -> int:
        """Number of pairs that break the rule."""
        return int(self.leaking.sum())

    @property
    def holds(self) -> bool:
        """Whether no pair breaks the rule."""
        return self.leaks == 0

    def columns(self) -> dict[str, Any]:
        """Return one row per pair: its index, its part, and whether it breaks the
        rule."""
        parts = np.array([*self.names, REMOVED], object)
        number = np.arange(len(self.part))
        return {"pair": number, "part": parts[self.part], "leaks": self.leaking}

    def heading(self) -> str:
        """Count the pairs, and those that break the rule."""
        count = f"{self.leaks:,} of {len(self.leaking):,} pairs leak"
        count = count if self.leaks else f"no leak in {len(self.leaking):,} pairs"
        says = (SAYS_OF_GROUPS if self.grouped else SAYS)[self.cold]
        names = show.listed([*map(written, self.names)])
        return f"{count} across {names}; {CLASSES[self.cold]}: {says}"

    def __str__(self) -> str:
        return f"{self.heading()}\nnear: {self.definition}"


def numbered_parts(
    parts: Sequence[str], pairs: NamedPairs
) -> tuple[tuple[str, ...], np.ndarray]:
    """Return (names of parts in the order of their first pairs, the number of every
    pair).

    Raises InputError: there are not as many as pairs
    """
    if len(parts) != len(pairs.first):
        raise InputError(
            f"{show.counted(len(pairs.first), 'pair')}, and a part for "
            f"{len(parts):,}: give one each"
        )
    names = tuple(x for x in dict.fromkeys(map(str, parts)) if x != REMOVED)
    number = {name: k for k, name in enumerate(names)} | {REMOVED: -1}
    return names, np.array([number[str(x)] for x in parts], np.int32)


def audit_pairs_of(
    data: Sequences,
    definition: Definition,
    pairs: NamedPairs,
    parts: tuple[tuple[str, ...], np.ndarray],
    cold: str,
    saved: SavedState | None = None,
) -> PairAudit:
    """Check parts of pairs.

    parts : names, and the number of every pair, -1 for one that is in none
    saved : the state of a run that was interrupted, or may be

    Raises UsageError: there are fewer than two parts
    """
    names, part = parts
    check_audited(len(names))
    counts = PairCounts()
    if cold == "none":
        leaking = _shared(pair_keys(pairs, data), part)
    elif cold == "one" and pairs.groups is None:
        # both proteins are near one of an earlier part
        leaking = np.zeros(len(part), bool)
        for number in range(1, len(names)):
            sides = part == number, (part >= 0) & (part < number)
            state = None if saved is None else saved.part(f"near{number}")
            mask = _near(data, definition, pairs, sides, False, counts, state)[0]
            leaking |= sides[0] & mask[pairs.first] & mask[pairs.second]
    else:
        sides, inside = [part == k for k in range(len(names))], part >= 0
        masks = _near(data, definition, pairs, sides, cold == "one", counts, saved)
        leaking = inside & masks[part, pairs.first]
        if cold == "both" and pairs.groups is None:
            leaking |= inside & masks[part, pairs.second]
        elif cold == "both":
            leaking |= _shared(pairs.second, part)
    about = counts.about()
    grouped = pairs.groups is not None
    return PairAudit(names, part, leaking, cold, grouped, definition, about)


def _shared(keys: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Mark pairs whose key is in more than one part."""
    inside = part >= 0
    _, of_key = np.unique(keys, return_inverse=True)
    of_key = of_key.reshape(-1)
    key_parts = np.unique(np.stack([of_key[inside], part[inside]]), axis=1)
    parts = np.bincount(key_parts[0], minlength=int(of_key.max(initial=-1)) + 1)
    return inside & (parts[of_key] > 1)


def _near(
    data: Sequences,
    definition: Definition,
    pairs: NamedPairs,
    sides: Sequence[np.ndarray],
    first: bool,
    counts: PairCounts,
    saved: SavedState | None,
) -> np.ndarray:
    """Mark the proteins of each of some groups of pairs that are near one of another
    group: bool (groups, n).

    sides : bool (pairs,) each, the pairs of a group
    first : whether the first column alone counts
    """
    members = []
    for inside in sides:
        columns = [pairs.first[inside]]
        if pairs.groups is None and not first:
            columns.append(pairs.second[inside])
        members.append(np.unique(np.concatenate(columns)))
    sets = [data.take(x.tolist()) for x in members]
    result = across.compare(sets, definition, 1, counts, saved)
    is_near = np.zeros((len(sides), len(data)), bool)
    times = np.bincount(np.concatenate(members), minlength=len(data))
    for number, leaking in enumerate(result.leaking):
        # A sequence of two groups is near itself.
        is_near[number, members[number]] = leaking | (times[members[number]] > 1)
    return is_near
