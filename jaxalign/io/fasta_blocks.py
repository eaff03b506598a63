"""FASTA in blocks: a file larger than memory, read once from its first record on."""

import os
from collections.abc import Iterable, Iterator

import numpy as np

from jaxalign.io import fasta, fasta_chunks
from jaxalign.io.fasta_chunks import ChunkRecords
from jaxalign.io.name_hashes import NameHashes
from jaxalign.io.source import keep, open_bytes, open_text
from jaxalign.model.alphabet import Alphabet, Sequences


def read_blocks(
    path: str | os.PathLike[str],
    alphabet: Alphabet,
    unknown: str = "error",
    residues: int = 2**26,
    records: int = 2**20,
) -> Iterator[tuple[Sequences, int]]:
    """Blocks of a FASTA file, encoded, and how many residues of each were read as the
    wildcard because of ``unknown``; checks and errors are those of ``fasta.read``.

    A block ends with the record that reaches either number. An error comes when its
    block is read; earlier blocks have been yielded by then.
    """
    known = NameHashes()
    for raw in _raw_blocks(os.fspath(path), residues, records):
        _check_names(raw, known)
        yield fasta.encode_counted(raw, alphabet, unknown)


def _raw_blocks(source: str, residues: int, records: int) -> Iterator[fasta.RawRecords]:
    buffer = keep(source)
    with open_text(source, buffer) as handle:
        fasta.check_first_line(source, handle)
    before = 0
    with open_bytes(source, buffer) as handle:
        for block in _cut(fasta_chunks.chunks(handle), residues, records):
            offsets = np.zeros(len(block.names) + 1, np.int64)
            np.cumsum(block.lengths, out=offsets[1:])
            names = tuple(block.names)
            yield fasta.RawRecords(source, names, block.text, offsets, buffer, before)
            before += len(names)


def _cut(
    chunks: Iterable[ChunkRecords], residues: int, records: int
) -> Iterator[ChunkRecords]:
    """The same records in blocks, each of which ends with the record that reaches
    either number."""
    pending: list[ChunkRecords] = []
    size = count = 0
    for chunk in chunks:
        while len(chunk.names):
            ends = np.cumsum(chunk.lengths)
            reach = int(np.searchsorted(ends, residues - size)) + 1
            stop = min(reach, records - count, len(chunk.names))
            letters = int(ends[stop - 1])
            names, lengths = chunk.names[:stop], chunk.lengths[:stop]
            pending.append(ChunkRecords(names, chunk.text[:letters], lengths))
            size, count = size + letters, count + stop
            rest = chunk.names[stop:], chunk.text[letters:], chunk.lengths[stop:]
            chunk = ChunkRecords(*rest)
            if size >= residues or count >= records:
                yield _joined(pending)
                pending, size, count = [], 0, 0
    if pending:
        yield _joined(pending)


def _joined(some: list[ChunkRecords]) -> ChunkRecords:
    if len(some) == 1:
        return some[0]
    names = [name for chunk in some for name in chunk.names]
    text = np.concatenate([chunk.text for chunk in some])
    return ChunkRecords(names, text, np.concatenate([x.lengths for x in some]))


def _check_names(raw: fasta.RawRecords, known: NameHashes) -> None:
    """Refuse an empty name, or one that came before."""
    fasta.check_names(raw)
    if len(known.add(raw.names)):
        _refuse_repeated(raw)


def _refuse_repeated(raw: fasta.RawRecords) -> None:
    """Look for the names of a block in what came before it; hashes may collide."""
    places = {name: record for record, name in enumerate(raw.names)}
    with open_text(raw.source, raw.buffer) as handle:
        for record, (name, _) in zip(range(raw.before), fasta.records(handle)):  # noqa: B905
            if name in places:
                raise fasta.duplicate(raw, record, places[name])
