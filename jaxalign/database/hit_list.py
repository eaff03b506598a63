"""The best hits of a scan so far, and the blocks that a database comes in."""

from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from jaxalign.model.alphabet import Alphabet, Sequences, from_parts, in_blocks

# Of the hits, or of some of them: index in the database -> (name, codes)
Records = dict[int, tuple[str, np.ndarray]]

BLOCK_RESIDUES, BLOCK_RECORDS = 2**26, 2**20  # of a block of the database, at most
NO_HIT = -1
_known: WeakKeyDictionary[Sequences, list[Sequences]] = WeakKeyDictionary()
NO_WORK: dict[str, Any] = {
    "pairs": 0,
    "cells": 0,
    "windows": 0,
    "checkpointed_pairs": 0,
    "threads": 0,
    "result_bytes": 0,
    "window_bytes": 0,
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
    records: Records = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=lambda: dict(NO_WORK))


def keep(records: Records, wanted: np.ndarray, first: int, block: Sequences) -> None:
    """Names and codes of the hits; those that are hits no longer go."""
    for index in records.keys() - set(wanted.tolist()):
        del records[index]
    for i in wanted[wanted >= first].tolist():
        records[i] = block.names[i - first], np.array(block[i - first])


def sequences_of(records: Records, alphabet: Alphabet) -> tuple[np.ndarray, Sequences]:
    """(indices in the database, int64, in its order; the sequences)."""
    indices = sorted(records)
    names, codes = [records[i][0] for i in indices], [records[i][1] for i in indices]
    return np.array(indices, np.int64), from_parts(names, codes, alphabet)


def blocks_of(sequences: Sequences) -> list[Sequences]:
    """Blocks of a set, as ``io.fasta_blocks`` cuts them; of a set that nobody can
    change the same ones in every call, because a GPU may have them
    (``pairs.gpu.device_sequences``)."""
    blocks = in_blocks(sequences, BLOCK_RESIDUES, BLOCK_RECORDS)
    if sequences.codes.flags.writeable:
        return [*blocks]
    if sequences not in _known:
        _known[sequences] = [*blocks]
    return _known[sequences]
