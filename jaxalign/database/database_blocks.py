# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The blocks that a database in memory is searched in."""

from collections.abc import Iterator
from weakref import WeakKeyDictionary

import numpy as np

from jaxalign.database import hit_list
from jaxalign.model.alphabet import Sequences

_known: WeakKeyDictionary[Sequences, list[Sequences]] = WeakKeyDictionary()


def of(sequences: Sequences) -> list[Sequences]:
    """Blocks of a set, as ``io.fasta_blocks`` cuts them; of a set that nobody can
    change the same ones in every call, because a GPU may have them
    (``pairs.gpu.device_sequences``)."""
    if sequences.codes.flags.writeable:
        return [*_cut(sequences)]
    if sequences not in _known:
        _known[sequences] = [*_cut(sequences)]
    return _known[sequences]


def _cut(sequences: Sequences) -> Iterator[Sequences]:
    start, count = 0, len(sequences)
    while start < count:
        limit = sequences.offsets[start] + hit_list.BLOCK_RESIDUES
        stop = int(np.searchsorted(sequences.offsets, limit, side="left"))
        stop = min(max(stop, start + 1), start + hit_list.BLOCK_RECORDS, count)
        yield sequences.between(start, stop)
        start = stop
