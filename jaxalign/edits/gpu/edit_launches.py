"""Edit distances on a GPU: those within a cut, of launches of ``kernels_pallas``.

Queries beyond the registers of the kernel are computed on the CPU.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.bits import few_pairs
from jaxalign.model.letters import LetterCodes
from jaxalign.runtime.backend import kernels_pallas
from jaxalign.runtime.programs import program, stored

# Static arguments of the kernels.
TABLE = ("words", "padding", "stacks")
EDITS = ("words", "padding", "rows", "interpret")
BLOCKS = ("padding", "room", "front")


@dataclass(frozen=True, eq=False)
class EditLaunches:
    """Sequences of up to 255 letters, and their codes on JAX's default device."""

    sequences: LetterCodes
    interpret: Any = None  # parameters of the GPU interpreter, for tests
    queries: int = 1024  # of a launch at most …
    stacks: int = 128  # … in as many stacks of the kernel at most
    targets: int = 16384

    @property
    def longest(self) -> int:
        """Letters of a query at most."""
        return int(kernels_pallas.MAX_EDIT_QUERY)

    def query_count(self, longest: int) -> int:
        """Queries of a launch whose longest has so many letters."""
        return min(self.queries, self.stacks * kernels_pallas.edit_stack(longest)[1])

    @cached_property
    def codes(self):
        """On the device."""
        return jnp.asarray(np.append(self.sequences.codes, np.uint8(0)))

    def blocks(self, targets: np.ndarray):
        """The letters of some targets, of one launch at most, longest first, and their
        lengths."""
        *where, room = few_pairs.columns_of(self.sequences, targets, self.targets)
        layout = stored(kernels_pallas.target_blocks, BLOCKS)
        size = self.sequences.size
        some = layout(self.codes, *where, padding=size, room=room, front=True)
        return some, where[1]

    def distances(
        self, queries: np.ndarray, blocks: tuple[jax.Array, np.ndarray], met: slice
    ):
        """Distances of one launch: int32 (``self.queries``, ``self.targets``), on the
        device; rows beyond the queries, and targets that none meets, may hold anything.

        queries : indices, longest first, ``query_count`` of the first at most
        blocks : of ``self.blocks``
        met : slice of the targets that any of the queries meets
        """
        first, length = few_pairs.places(self.sequences, queries, self.queries)
        words, slots = kernels_pallas.edit_stack(int(length.max(initial=0)))
        static: Any = {"words": words, "padding": self.sequences.size}
        blocks_met = met.start // few_pairs.THREADS, -(-met.stop // few_pairs.THREADS)
        layout = np.array([slots, len(queries), *blocks_met], np.int32)
        table = stored(kernels_pallas.edit_table, TABLE)
        where = self.codes, first, length, layout[0]
        table = table(*where, stacks=self.stacks, **static)
        static |= {"rows": self.queries, "interpret": self.interpret}
        edits = stored(kernels_pallas.edit_distances, EDITS)
        return edits(table, layout, *blocks, **static)

    def near(
        self,
        queries: np.ndarray,
        blocks: tuple[jax.Array, np.ndarray],
        first: int,
        last: np.ndarray,
        cut: int,
    ) -> few_pairs.FewPairs:
        """Pairs of one launch within a cut, and their distances.

        queries, blocks : as of ``distances``
        first, last : the targets before the first are beyond the cut; int (queries,),
            how many each query meets, no fewer than the query before
        """
        met = slice(first, int(last[-1]))
        last = np.pad(last, (0, self.queries - len(last))).astype(np.int32)
        # A thread has no default device of its own.
        with jax.default_device(self.codes.device):
            edits = self.distances(queries, blocks, met)
            where = edits, np.int32(first), last, np.int32(cut)
            return few_pairs.chosen(partial(_within, *where), edits.shape)


def launches_of(sequences: LetterCodes) -> EditLaunches | None:
    """Launches on JAX's default device, if that is a GPU."""
    return EditLaunches(sequences) if kernels_pallas.supported()[0] else None


@program(("size",))
def _within(
    edits: jax.Array,
    first: jax.Array,
    last: jax.Array,
    cut: jax.Array,
    start: jax.Array,
    *,
    size: int,
):
    """Which pairs are within the cut (``few_pairs.compact``)."""
    column = jnp.arange(edits.shape[1], dtype=jnp.int32)[None]
    mask = (edits <= cut) & (first <= column) & (column < last[:, None])
    return few_pairs.compact(mask, edits, size, start)
