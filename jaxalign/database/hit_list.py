"""The best hits of a scan so far, and the blocks that a database comes in."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from jaxalign.model.alphabet import Sequences

BLOCK_RESIDUES, BLOCK_RECORDS = 2**26, 2**20  # of a block of the database, at most
NO_HIT = -1
_known: WeakKeyDictionary[Sequences, list[Sequences]] = WeakKeyDictionary()
NO_WORK = dict.fromkeys(("pairs", "cells", "windows", "checkpointed_pairs"), 0)
NO_WORK |= dict.fromkeys(("threads", "result_bytes", "window_bytes"), 0)
NO_WORK |= {
    "halved_launches": 0,
    "seconds": 0.0,
    "dtypes": [],
    "implementation": "",
    "reason": "",
}


@dataclass
class Hits:
    """The hits of a scan so far, and what it has counted."""

    score: np.ndarray  # (Q, K) int32 or int64, scaled integers
    index: np.ndarray  # (Q, K), of the database; -1: no hit
    residues: int = 0
    sequences: int = 0
    records: dict = field(default_factory=dict)  # index -> (name, codes)
    info: dict = field(default_factory=lambda: dict(NO_WORK))


def keep(records: dict, wanted: np.ndarray, first: int, block: Sequences) -> None:
    """Names and codes of the hits; those that are hits no longer go."""
    for index in records.keys() - set(wanted.tolist()):
        del records[index]
    for i in wanted[wanted >= first].tolist():
        records[i] = block.names[i - first], np.array(block[i - first])


def blocks_of(sequences: Sequences) -> list[Sequences]:
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
        limit = sequences.offsets[start] + BLOCK_RESIDUES
        stop = int(np.searchsorted(sequences.offsets, limit, side="left"))
        stop = min(max(stop, start + 1), start + BLOCK_RECORDS, count)
        yield sequences.between(start, stop)
        start = stop
