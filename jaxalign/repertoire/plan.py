"""The plan of a repertoire graph, before anything is compared."""

from dataclasses import dataclass

from jaxalign.repertoire.genes import GeneDistances
from jaxalign.repertoire.options import GraphDefinition
from jaxalign.repertoire.receptors import Receptors


@dataclass(frozen=True, eq=False)
class RepertoirePlan:
    """One job: who is compared with whom, and what decides.

    Attributes
    ----------
    receptors : Receptors
    reference : Receptors or None
        What they are compared with; None for themselves.
    definition : GraphDefinition
    combine : {"sum", "all", "any"}
        How the distances of chains are one.
    genes : GeneDistances or None
    blocks : tuple of range
        Receptors whose edges are found together.
    """

    receptors: Receptors
    reference: Receptors | None
    definition: GraphDefinition
    combine: str
    genes: GeneDistances | None
    blocks: tuple[range, ...]

    def __str__(self) -> str:
        many, rows = len(self.receptors), len(self.receptors.rows)
        others = ""
        if self.reference is not None:
            others = f" against {len(self.reference):,}"
        chains = [chain.name for chain in self.receptors.rows.chains]
        joined = f" {self.combine} of".join(["", " and ".join(chains)])
        names = joined if len(chains) > 1 else f" {chains[0]}"
        blocks = f", {len(self.blocks)} blocks" if len(self.blocks) > 1 else ""
        subject = f"{rows:,} rows, {many:,} receptors{others};{names}"
        return f"{subject}: {self.definition}{blocks}"


def blocks_of(receptors: int, size: int | None) -> tuple[range, ...]:
    """Consecutive receptors, so many at a time; all of them if ``size`` is None."""
    step = max(receptors if size is None else size, 1)
    starts = range(0, max(receptors, 1), step)
    return tuple(range(start, min(start + step, receptors)) for start in starts)
