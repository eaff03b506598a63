"""Edit distances on a GPU: those within a cut, of launches of ``kernels_pallas.edits``.

Queries beyond the registers of the kernel are computed on the CPU.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxalign.model.letters import LetterCodes
from jaxalign.pairs.windows import bucket
from jaxalign.runtime.backend import kernels_pallas
from jaxalign.runtime.programs import program, stored

THREADS = 128  # targets of a program of the kernel
LEAST_ROWS = 2**15  # room for letters: one program for most launches
LEAST_NEAR = 2**14  # room for pairs

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
        many = -(-self.targets // THREADS) * THREADS
        first, length = _places(self.sequences, targets, many)
        rows = int((-(-length.reshape(-1, THREADS).max(1) // 4)).sum())
        layout = stored(kernels_pallas.target_blocks, BLOCKS)
        room, size = bucket(rows, 2, LEAST_ROWS), self.sequences.size
        return layout(self.codes, first, length, padding=size, room=room, front=True)

    def near(self, queries, blocks, last, cut: int):
        """Pairs of one launch within a cut.

        queries : indices, ``self.queries`` at most
        blocks : of ``self.blocks``
        last : int (queries,), how many of the targets each query meets

        Returns
        -------
        Places int64 (P,) of the queries, and of the targets; distances int32 (P,).
        """
        first, length = _places(self.sequences, queries, self.queries)
        words = kernels_pallas.edit_words(int(length.max(initial=1)))
        static = {"words": words, "padding": self.sequences.size}
        table = stored(kernels_pallas.edit_table, TABLE)
        table = table(self.codes, first, length, **static)
        edits = stored(kernels_pallas.edits, EDITS)
        edits = edits(table, blocks, interpret=self.interpret, **static)
        last = np.pad(last, (0, self.queries - len(last))).astype(np.int32)
        size, total = LEAST_NEAR, None
        while total is None or total > size:
            size = max(size, bucket(total or 0))
            found = _compact(edits, last, np.int32(cut), size=min(size, edits.size))
            total = int(found[0])
        place, distance = (np.asarray(x)[:total] for x in found[1:])
        return *np.divmod(place.astype(np.int64), edits.shape[1]), distance


def launches_of(sequences: LetterCodes) -> EditLaunches | None:
    """What computes distances on JAX's default device, if that is a GPU."""
    return EditLaunches(sequences) if kernels_pallas.supported()[0] else None


def _places(sequences: LetterCodes, which, room: int):
    """int32 (room,): where sequences begin, and their lengths; 0 beyond the last."""
    sides = sequences.starts[which], sequences.lengths[which]
    return tuple(np.pad(x, (0, room - len(x))).astype(np.int32) for x in sides)


@program(("size",))
def _compact(edits, last, cut, *, size):
    """(number of pairs within the cut, flat places (size,) of the first, distances)."""
    column = jnp.arange(edits.shape[1], dtype=jnp.int32)[None]
    mask = (edits <= cut) & (column < last[:, None])
    (index,) = jnp.nonzero(mask.reshape(-1), size=size, fill_value=0)
    total = mask.sum(dtype=jnp.int32)
    return total, index.astype(jnp.int32), edits.reshape(-1)[index]
