"""The traceback ``store``: one box with the choices of all its cells, and a walk.

The fastest, where memory holds the choices; the others fill smaller boxes of the same
kind and join their paths.
"""

from functools import partial

import jax
import numpy as np

from jaxalign.runtime.programs import program
from jaxalign.triples import engine, gpu
from jaxalign.triples.dp import boxes, choice_walk
from jaxalign.triples.dp.recurrence import Model
from jaxalign.triples.engine import FILLS, padded_length
from jaxalign.triples.result import Region, Triple


def align(triple: Triple, region: Region) -> tuple[int, np.ndarray]:
    """(score, columns from start to end) of a best path through a region."""
    if triple.kernels:
        triple.tally.add(region.cells)
        with triple.tally.timed("fill and walk"):
            return gpu.solve([triple], [region], True)[0]
    with triple.tally.timed("fill"):
        filled = engine.sweep(triple, region, choices=True)
        score, state = engine.best_end(region, filled.end)
    with triple.tally.timed("walk"):
        begin = np.array([*(n + 1 for n in region.extent), state], np.int32)
        longest = padded_length(int(begin[:3].sum()))
        path = walk(triple.schedule, triple.model, filled.choices, begin, longest)
        return score, np.asarray(path.columns)[: int(path.count)][::-1]


@program(("schedule", "model", "longest"))
def walk(
    schedule: str, model: Model, choices: jax.Array, begin: jax.Array, longest: int
):
    """``choice_walk.walk`` to the seed, over choices in the order of a schedule."""
    choice_at = partial(FILLS[schedule].choice_at, model, choices)
    return choice_walk.walk(model, choice_at, begin, longest)


def device_bytes(triple: Triple, region: Region) -> int:
    """Device bytes of ``align``: the choices of all planes or layers, and planes."""
    if triple.kernels:
        return gpu.bytes_of(triple, region, paths=True)
    cells = FILLS[triple.schedule].stored_cells(engine.shape_of(region))
    return boxes.choice_bytes(triple.model, cells) + engine.sweep_bytes(triple, region)
