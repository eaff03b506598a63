"""Edit distances on a GPU: those within a cut, of launches of ``kernels_pallas.edits``.

Queries beyond the registers of the kernel are computed on the CPU.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxalign.model.letters import LetterCodes
from jaxalign.pairs.gpu import few_pairs
from jaxalign.runtime.backend import kernels_pallas
from jaxalign.runtime.programs import program, stored

# Static arguments of the kernels.
TABLE, EDITS = ("words", "padding"), ("words", "padding", "interpret")
BLOCKS = ("padding", "room", "front")


@dataclass(frozen=True, eq=False)
class EditLaunches:
    """Sequences of up to 255 letters, and their codes on JAX's default device."""

    sequences: LetterCodes
    interpret: Any = None  # parameters of the GPU interpreter, for tests
    queries: int = 128  # of a launch
    targets: int = 16384

    @property
    def longest(self) -> int:
        """Letters of a query at most."""
        return int(kernels_pallas.MAX_EDIT_QUERY)

    @cached_property
    def codes(self):
        """On the device."""
        return jnp.asarray(np.append(self.sequences.codes, np.uint8(0)))

    def blocks(self, targets):
        """The letters of some targets, of one launch at most, longest first."""
        *where, room = few_pairs.columns_of(self.sequences, targets, self.targets)
        layout = stored(kernels_pallas.target_blocks, BLOCKS)
        size = self.sequences.size
        return layout(self.codes, *where, padding=size, room=room, front=True)

    def near(self, queries, blocks, last, cut: int) -> few_pairs.FewPairs:
        """Pairs of one launch within a cut, and their distances.

        queries : indices, ``self.queries`` at most
        blocks : of ``self.blocks``
        last : int (queries,), how many of the targets each query meets
        """
        first, length = few_pairs.places(self.sequences, queries, self.queries)
        words = kernels_pallas.edit_words(int(length.max(initial=1)))
        static = {"words": words, "padding": self.sequences.size}
        table = stored(kernels_pallas.edit_table, TABLE)
        table = table(self.codes, first, length, **static)
        edits = stored(kernels_pallas.edits, EDITS)
        edits = edits(table, blocks, interpret=self.interpret, **static)
        last = np.pad(last, (0, self.queries - len(last))).astype(np.int32)
        return few_pairs.chosen(_within(edits, last, np.int32(cut)), edits)


def launches_of(sequences: LetterCodes) -> EditLaunches | None:
    """What computes distances on JAX's default device, if that is a GPU."""
    return EditLaunches(sequences) if kernels_pallas.supported()[0] else None


@program()
def _within(edits, last, cut):
    """Which pairs are within the cut."""
    column = jnp.arange(edits.shape[1], dtype=jnp.int32)[None]
    return (edits <= cut) & (column < last[:, None])
