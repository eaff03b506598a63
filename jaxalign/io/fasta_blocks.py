"""FASTA in blocks: a file larger than memory, read once from its first record on."""

import os
from collections.abc import Iterator

import numpy as np

from jaxalign.io import fasta
from jaxalign.io.source import keep, open_text
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
    known = np.zeros(0, np.int64)
    for raw in _raw_blocks(os.fspath(path), residues, records):
        known = _check_names(raw, known)
        yield fasta.encode_counted(raw, alphabet, unknown)


def _raw_blocks(source: str, residues: int, records: int) -> Iterator[fasta.RawRecords]:
    buffer = keep(source)
    with open_text(source, buffer) as handle:
        fasta.check_first_line(source, handle)
        before, names, parts, size = 0, [], [], 0
        for name, letters in fasta.records(handle):
            names.append(name)
            parts.append(letters)
            size += len(letters)
            if size >= residues or len(names) >= records:
                yield fasta.raw_records(source, names, parts, buffer, before)
                before, names, parts, size = before + len(names), [], [], 0
        if names:
            yield fasta.raw_records(source, names, parts, buffer, before)


def _check_names(raw: fasta.RawRecords, known: np.ndarray) -> np.ndarray:
    """Hashes of all names so far, sorted: 8 bytes a record, whatever its name."""
    fasta.check_names(raw)
    new = np.array([hash(name) for name in raw.names], np.int64)
    if np.isin(new, known).any():
        _refuse_repeated(raw)
    return np.sort(np.concatenate([known, new]))


def _refuse_repeated(raw: fasta.RawRecords) -> None:
    """Look for the names of a block in what came before it; hashes may collide."""
    places = {name: record for record, name in enumerate(raw.names)}
    with open_text(raw.source, raw.buffer) as handle:
        for record, (name, _) in zip(range(raw.before), fasta.records(handle)):  # noqa: B905
            if name in places:
                raise fasta.duplicate(raw, record, places[name])
