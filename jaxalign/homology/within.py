"""The figures of a report beyond an audit: the pairs within parts, and components."""

from dataclasses import dataclass

import numpy as np

from jaxalign.homology.links import PairCounts, components, stream_links
from jaxalign.homology.options import Definition, everything
from jaxalign.homology.result import Split
from jaxalign.model.alphabet import Sequences


@dataclass(frozen=True, eq=False)
class Within:
    """Pairs of sequences of one part.

    Attributes
    ----------
    pairs : int
    histogram : int64 (bins,)
        Of identities (``links.EDGES``); of the others it is proved that they are below
        the cut.
    component_sizes : int64 (components,)
    """

    pairs: int
    histogram: np.ndarray
    component_sizes: np.ndarray


def within_parts(
    parts: tuple[Sequences, ...], definition: Definition, split: Split | None
) -> Within:
    """Compare the sequences of every part with each other.

    What a split knows of its links is not computed again, unless all identities are
    wanted.
    """
    full = definition.options.full_histogram
    if split is not None and not full and not len(split.removed):
        sizes = [len(sequences) for sequences in parts]
        pairs = sum(n * (n - 1) // 2 for n in sizes)
        return Within(pairs, split.info["histogram"], np.bincount(split.groups))
    counts, sizes = PairCounts(), []
    for sequences in parts:
        links = stream_links(sequences, everything(definition), counts)
        cut = definition.cut
        linked = ((x.i[x.identity >= cut], x.j[x.identity >= cut]) for x in links)
        sizes.append(np.bincount(components(len(sequences), linked)))
    return Within(counts.pairs, counts.histogram, np.concatenate(sizes))
