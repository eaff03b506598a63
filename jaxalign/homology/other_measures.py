"""Pairs across that are alike by other measures than that of an audit.

A split by one measure says nothing of another: end to end over the longer length, a
fragment is unlike the protein that it is of. Pairs across that share the most words
for the shorter length are compared by other measures. These are some pairs and no
proof; the audit by that measure is one.
"""

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from jaxalign.homology.options import Definition, identities, pair_options
from jaxalign.homology.seeds import likely_pairs
from jaxalign.model.alphabet import Sequences, from_parts
from jaxalign.model.names import written
from jaxalign.pairs import jobs
from jaxalign.runtime import pipeline

LIKELY = 200  # pairs that are looked at, of every two parts
MEASURES = (("global", "longer"), ("global", "shorter"), ("local", "shorter"))


@dataclass(frozen=True)
class OtherMeasure:
    """Likely pairs across by another measure.

    Attributes
    ----------
    mode, identity : str
    pairs, linked : int
        Pairs that were compared, and those at or above the cut.
    worst : (str, str)
        The names of the pair with the largest identity.
    largest : float
    """

    mode: str
    identity: str
    pairs: int
    linked: int
    worst: tuple[str, str]
    largest: float

    def __str__(self) -> str:
        a, b = map(written, self.worst)
        return (
            f"{self.mode}, over the {self.identity}: {self.linked:,} of {self.pairs:,} "
            f"at the cut, the worst {self.largest:.4f} ({a}, {b})"
        )


def other_measures(sets: list[Sequences], definition: Definition) -> list[OtherMeasure]:
    """Likely pairs across by the measures that a definition is not of."""
    options = definition.options
    chosen = [x for x in MEASURES if x != (options.mode, options.identity)]
    sides = _likely(sets, options.threads)
    if not len(sides[0]):
        return []
    cells = sum(len(x.codes) * len(y.codes) for x, y in combinations(sets, 2))
    return [_by(measure, *sides, definition, cells) for measure in chosen]


def _likely(sets: list[Sequences], threads: int | None) -> tuple[Sequences, Sequences]:
    """Pairs across that share many words, of every two sets."""
    threads = threads or pipeline.default_threads()
    sides: tuple[list, list] = [], []
    for a in range(len(sets)):
        for b in range(a):
            if not len(sets[a]) or not len(sets[b]):
                continue
            i, j = likely_pairs(sets[a], sets[b], LIKELY, threads, of_shorter=True)
            sides[0].extend((sets[a].names[k], sets[a][k]) for k in i.tolist())
            sides[1].extend((sets[b].names[k], sets[b][k]) for k in j.tolist())
    alphabet = sets[0].alphabet
    joined = (from_parts([x for x, _ in y], [x for _, x in y], alphabet) for y in sides)
    queries, targets = joined
    return queries, targets


def _by(
    measure: tuple[Any, Any],
    queries: Sequences,
    targets: Sequences,
    definition: Definition,
    cells: int,
) -> OtherMeasure:
    """cells : of the audit that they belong to"""
    mode, identity = measure
    options = replace(
        definition.options,
        mode=mode,
        free_ends=None,
        identity=identity,
        min_length_ratio=None,
        progress=None,
        busy=None,
    )
    other = replace(definition, options=options)
    chosen = jobs.beside(pair_options(other, 0.0), cells)
    table = jobs.run("zip", queries, targets, definition.scoring, chosen)
    shares = np.nan_to_num(identities(table, other))
    at = int(np.argmax(shares)) if len(shares) else 0
    row = int(table["query"][at]) if len(shares) else 0
    return OtherMeasure(
        mode,
        identity,
        len(queries),
        int((shares >= definition.cut).sum()),
        (queries.names[row], targets.names[row]),
        float(shares[at]) if len(shares) else 0.0,
    )
