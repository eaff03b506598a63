"""Edges of receptors: those of their chains' unique sequences, joined."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jaxalign.model.letters import LetterCodes
from jaxalign.repertoire.edges import Edges
from jaxalign.repertoire.engine import near_pairs
from jaxalign.repertoire.joins import Neighbours, from_square, join, neighbours
from jaxalign.repertoire.plan import RepertoirePlan
from jaxalign.repertoire.receptors import Receptors
from jaxalign.repertoire.rectangles import Machine
from jaxalign.runtime.pipeline import in_threads


class EdgeBlock(NamedTuple):
    """Edges of consecutive receptors, by i and j."""

    rows: range
    edges: Edges


@dataclass(frozen=True, eq=False)
class _Receptors:
    """Receptors of one side of a block, and the values that they have."""

    receptors: Receptors
    rows: np.ndarray

    @property
    def sequences(self) -> tuple[LetterCodes, np.ndarray]:
        """The sequences of receptors that are one each, and who has them."""
        values, (known, numbers) = self.receptors.values[0], self.parts(0)
        return values.sequences(values.parts[known, 0]), np.flatnonzero(numbers >= 0)

    def parts(self, chain: int) -> tuple[np.ndarray, np.ndarray]:
        """(values that occur, int64; which of these each receptor has, -1 for none)."""
        numbers = self.receptors.of_chain[self.rows, chain]
        known = numbers[numbers >= 0]
        if (np.diff(known) > 0).all():
            places = np.cumsum(numbers >= 0) - 1
        else:
            known = np.unique(known)
            places = np.searchsorted(known, numbers)
        return known, np.where(numbers >= 0, places, -1)


def blocks(plan: RepertoirePlan, machine: Machine) -> Iterator[EdgeBlock]:
    """Yield the edges of all receptors, block by block: i < j of one set, (i of the
    receptors, j of the reference) of two.

    Raises
    ------
    MemoryPlanError
        Those of a block exceed the budget.
    """
    for rows in plan.blocks:
        yield EdgeBlock(rows, _edges(plan, rows, machine))


def _edges(plan: RepertoirePlan, rows: range, machine: Machine) -> Edges:
    some = _Receptors(plan.receptors, np.arange(rows.start, rows.stop))
    one_set = plan.reference is None
    if plan.reference is None:  # pairs i < j: those before the block are not needed
        others = _Receptors(plan.receptors, np.arange(rows.start, len(plan.receptors)))
    else:
        others = _Receptors(plan.reference, np.arange(len(plan.reference)))
    whole = one_set and rows.stop == len(plan.receptors)
    chains = range(len(plan.receptors.rows.chains))
    if len(chains) == 1 and plan.genes is None:
        edges = _of_sequences(plan, some, others, whole, machine)
    else:
        graphs, sides = [], []
        for chain in chains:
            graph, *numbers = _chain_graph(plan, chain, some, others, whole, machine)
            graphs.append(graph)
            sides.append(numbers)
        a, b = (np.stack(side, axis=1) for side in zip(*sides, strict=True))
        about = plan.combine, plan.definition.cutoff, one_set, machine.budget
        edges = join(graphs, a, b, *about)
    return _named(edges, some.rows, others.rows)


def _named(edges: Edges, a: np.ndarray, b: np.ndarray) -> Edges:
    """Edges between the numbers that stand in rising arrays, at the places that edges
    name."""
    return Edges(_at(a, edges.i), _at(b, edges.j), edges.distance)


def _at(numbers: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Numbers of a rising array at some places, int32."""
    first = int(numbers[0]) if len(numbers) else 0
    if not len(numbers) or numbers[-1] - first == len(numbers) - 1:  # it has all
        return places + np.int32(first) if first else places
    return numbers[places].astype(np.int32)


def _of_sequences(
    plan: RepertoirePlan,
    some: _Receptors,
    others: _Receptors,
    whole: bool,
    machine: Machine,
) -> Edges:
    """Edges of receptors that are one sequence each: no join is needed."""
    (a, owners), (b, theirs) = (side.sequences for side in (some, others))
    if whole:
        return _named(near_pairs(a, None, plan.definition, machine), owners, owners)
    edges = _named(near_pairs(a, b, plan.definition, machine), owners, theirs)
    if plan.reference is not None:
        return edges
    real = edges.i < edges.j
    sides = in_threads(lambda side: side[real], edges.sides, min(machine.threads, 3))
    return Edges(*sides)


def _chain_graph(
    plan: RepertoirePlan,
    chain: int,
    some: _Receptors,
    others: _Receptors,
    whole: bool,
    machine: Machine,
) -> tuple[Neighbours, np.ndarray, np.ndarray]:
    """The neighbours of the values of a chain, and which value each receptor has."""
    (known, numbers), (theirs, places) = some.parts(chain), others.parts(chain)
    values = [side.receptors.values[chain] for side in (some, others)]
    parts = [values[0].parts[known], values[1].parts[theirs]]
    sequences = [np.unique(x[:, 0], return_inverse=True) for x in parts]
    texts = [
        value.sequences(which)
        for value, (which, _) in zip(values, sequences, strict=True)
    ]
    edges = near_pairs(texts[0], None if whole else texts[1], plan.definition, machine)
    graph = neighbours(edges, len(texts[0]), len(texts[1]), symmetric=whole)
    a, b = (places for _, places in sequences)
    if plan.genes is not None:
        genes = plan.genes.between(values[0].genes, values[1].genes)
        of_genes = from_square(genes, plan.definition.cutoff)
        a = np.stack([a, parts[0][:, 1]], axis=1)
        b = np.stack([b, parts[1][:, 1]], axis=1)
        about = "sum", plan.definition.cutoff, False, machine.budget
        edges = join([graph, of_genes], a, b, *about)
        graph = neighbours(edges, len(a), len(b), symmetric=False)
        return graph, numbers, places
    return _relabelled(graph, a, b), numbers, places


def _relabelled(graph: Neighbours, a: np.ndarray, b: np.ndarray) -> Neighbours:
    """The graph of values that are one sequence each, numbered as the values are."""
    rows = np.repeat(np.arange(len(graph.starts) - 1), np.diff(graph.starts))
    back = [np.argsort(side) for side in (a, b)]
    edges = Edges(back[0][rows], back[1][graph.columns], graph.distance)
    return neighbours(edges, len(a), len(b), symmetric=False)
