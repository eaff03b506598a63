"""The nearest sequences of a corpus by score: an exhaustive search, local mode."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from jaxalign.database import hit_tables
from jaxalign.database.hit_list import Hits, Records
from jaxalign.database.nearest_options import NearestOptions, score_options
from jaxalign.database.nearest_state import NONE, NearestState, no_state
from jaxalign.model.alphabet import Sequences, from_parts
from jaxalign.model.scoring import Scoring
from jaxalign.pairs.options import make_task


def scan(
    tests: Sequences,
    blocks: Iterable[Sequences],
    scoring: Scoring,
    options: NearestOptions,
    tell: Callable[[int], object],
    begun: tuple[Hits, Records] | None = None,
    watch: Callable[[Hits, Records], object] | None = None,
) -> NearestState:
    """The best ``options.top`` of each test sequence in all blocks of a corpus.

    Where no pair of residues of the two scores above 0, every score is 0, and the first
    sequence of the corpus is the nearest.

    Parameters
    ----------
    blocks : iterable of Sequences
        Those that follow what is known.
    begun : (hits so far, the first record of the corpus), optional
    watch : callable, optional
        Takes the same after each block.
    """
    nothing = from_parts((), [], scoring.alphabet)
    task = make_task("cross", tests, nothing, scoring, score_options(options))
    task = replace(task, top=options.top)
    hits, first = begun or (None, {})
    watched = None if watch is None else lambda so_far: watch(so_far, first)
    hits = hit_tables.scan(task, _noting(blocks, first), True, tell, hits, watched)
    state = no_state(len(tests), options.top)
    width = min(hits.index.shape[1], options.top)
    state.index[:, :width] = hits.index[:, :width]
    state.records = dict(hits.records)
    if first and (state.index[:, 0] == NONE).any():
        state.index[state.index[:, 0] == NONE, 0] = 0
        state.records |= first
    state.sequences, state.residues = hits.sequences, hits.residues
    state.implementation = hits.info["implementation"]
    state.aligned = hits.sequences * len(tests)
    return state


def _noting(blocks: Iterable[Sequences], first: Records) -> Iterator[Sequences]:
    """The same blocks; the first record of all is kept."""
    for block in blocks:
        if not first and len(block):
            first[0] = block.names[0], np.array(block[0])
        yield block
