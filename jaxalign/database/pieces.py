"""The one scan over a database, piece by piece, and the best hits so far.

Search, nearest and purge differ in what they prepare for a piece, which a thread may do
ahead, and in how they fold it into their state: the ``k`` best of each query, or the
sequences above a cut. An audit has a loop of its own (``homology.across``), since it
asks for the worst pairs so far before it plans what comes next.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np

from jaxalign.model.alphabet import (
    Alphabet,
    Sequences,
    from_parts,
    in_blocks,
    join_best,
)
from jaxalign.pairs.plan import merge
from jaxalign.runtime.devices import block_sizes

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
    """The hits of a scan so far, and its counts."""

    score: np.ndarray  # (Q, K) int32 or int64, scaled integers
    index: np.ndarray  # (Q, K), of the database; -1: no hit
    residues: int = 0
    sequences: int = 0
    records: Records = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=lambda: dict(NO_WORK))

    def count(self, info: dict[str, Any]) -> None:
        """Add the counts of a computation."""
        implementation = self.info["implementation"]
        self.info = merge([self.info, info]) if implementation else info

    def add(
        self,
        top: int,
        query: np.ndarray,
        score: np.ndarray,
        index: np.ndarray,
        dtype: str,
    ) -> None:
        """Join hits with the best ``top`` of each query so far; of equal scores the
        first of the database comes first.

        dtype : of the scores
        """
        width = self.index.shape[1]
        largest = int(np.bincount(query, minlength=1).max())
        room = (0, 0), (0, max(min(top, width + largest) - width, 0))
        tables = (
            np.pad(self.score.astype(np.int64), room),
            np.pad(self.index, room, constant_values=NO_HIT),
        )
        filled = tables[1] != NO_HIT
        join_best(tables, filled, query, (score, index), lambda x, y: (-x, y))
        none = tables[1] == NO_HIT
        self.score = np.where(none, np.iinfo(dtype).min, tables[0]).astype(dtype)
        self.index = tables[1]


def no_hits(queries: int) -> Hits:
    """Make the hits before anything is read."""
    shape = queries, 0
    return Hits(np.zeros(shape, np.int32), np.zeros(shape, np.int32))


class BlockPiece(NamedTuple):
    """Sequences of a database, and what was prepared to compare them.

    block : the block that these sequences complete; None where it has more pieces
    """

    targets: Sequences
    block: Sequences | None
    work: Any = None


State = TypeVar("State")
TellPiece = Callable[..., object]  # cells so far of a piece, and of all of it


def scan(
    state: State,
    pieces: Iterable[BlockPiece],
    fold: Callable[[State, BlockPiece, TellPiece | None], object],
    letters: int,
    report_progress: Callable[[int], object] | None = None,
    records: bool | Callable[[Any], np.ndarray] = True,
) -> Iterator[State]:
    """Fold the pieces of a database into a state, which is yielded after each block.

    fold : function of (state, piece, whom to tell of cells)
    letters : of all queries: each meets every sequence
    report_progress : takes the cells so far
    records : keep names and codes of the sequences in ``state.index``, or of those
        that a function of the state selects
    """
    cells, seen = 0, cast(Any, state)
    for piece in pieces:
        fold(state, piece, tell_after(report_progress, cells))
        residues = int(piece.targets.lengths.sum())
        seen.sequences += len(piece.targets)
        seen.residues += residues
        cells += letters * residues
        if report_progress is not None:
            report_progress(cells)
        if piece.block is None:
            continue
        if records:
            first = seen.sequences - len(piece.block)
            index = seen.index if records is True else seen.index[records(seen)]
            keep(seen.records, np.unique(index), first, piece.block)
        yield state


def tell_after(report_progress: TellPiece | None, before: int) -> TellPiece | None:
    """Add the cells of earlier pieces to those that are reported."""
    if report_progress is None:
        return None
    return lambda cells, _all=None: report_progress(before + cells)


def keep(records: Records, indices: np.ndarray, first: int, block: Sequences) -> None:
    """Store names and codes of the current hits, and drop those of former hits."""
    for index in records.keys() - set(indices.tolist()):
        del records[index]
    places = indices[indices >= first] - first
    spans = (block.offsets[places + k].tolist() for k in (0, 1))
    for place, start, stop in zip(places.tolist(), *spans, strict=True):
        records[first + place] = block.names[place], np.array(block.codes[start:stop])


def sequences_of(records: Records, alphabet: Alphabet) -> tuple[np.ndarray, Sequences]:
    """Return (indices in the database, int64, in its order; the sequences)."""
    indices = sorted(records)
    names, codes = [records[i][0] for i in indices], [records[i][1] for i in indices]
    return np.array(indices, np.int64), from_parts(names, codes, alphabet)


def sizes_of(memory_budget: Any) -> tuple[int, int]:
    """Residues and records of a block of a database that is read."""
    return block_sizes((BLOCK_RESIDUES, BLOCK_RECORDS), memory_budget)


def blocks_of(sequences: Sequences) -> list[Sequences]:
    """Blocks of a set, as ``io.fasta`` cuts them; of a set that nobody can
    change the same ones in every call, because a GPU may have them
    (``pairs.gpu.device_job``)."""
    blocks = in_blocks(sequences, BLOCK_RESIDUES, BLOCK_RECORDS)
    if sequences.codes.flags.writeable:
        return [*blocks]
    if sequences not in _known:
        _known[sequences] = [*blocks]
    return _known[sequences]
