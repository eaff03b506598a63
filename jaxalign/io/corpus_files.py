"""A corpus of sequences in one or more files, read block by block, never whole.

A corpus is a FASTA file, plain or compressed, an index that ``jaxalign index`` made, or
a folder of such files, which are read in the order of their names.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from jaxalign.errors import InputError
from jaxalign.io import fasta_blocks
from jaxalign.io.encoded_database import SUFFIX, is_database, mapped
from jaxalign.io.name_hashes import NameHashes
from jaxalign.io.source import STDIN, label
from jaxalign.model.alphabet import Alphabet, Sequences
from jaxalign.model.selection import in_blocks

FASTA_ENDS = (".fasta", ".fa", ".faa", ".fas", ".fna", ".ffn")
PACKED_ENDS = ("", ".gz", ".bz2", ".xz", ".zst")
BLOCK_RESIDUES, BLOCK_RECORDS = 2**26, 2**20


class CorpusBlock(NamedTuple):
    """Some records of a corpus, encoded.

    ``first`` counts the records of the corpus before them; ``substituted`` the residues
    that were read as the wildcard.
    """

    sequences: Sequences
    first: int
    substituted: int


def files_of(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The files of a corpus.

    Raises
    ------
    InputError
        There is none, or a file stands beside its own index.
    """
    path = os.fspath(path)
    if path != STDIN and not os.path.exists(path):
        raise InputError(f"{label(path)}: no such file")
    if not os.path.isdir(path):
        return (path,)
    names = sorted(name for name in os.listdir(path) if _is_member(path, name))
    if not names:
        ends = ", ".join((*FASTA_ENDS, SUFFIX))
        raise InputError(f"{label(path)}: the folder has no file that ends with {ends}")
    twice = {name + SUFFIX for name in names} & set(names)
    if twice:
        index = min(twice)
        raise InputError(
            f"{label(path)}: has {index} and {index.removesuffix(SUFFIX)}, so its "
            "records would count twice: name one of the two"
        )
    return tuple(os.path.join(path, name) for name in names)


def _is_member(folder: str, name: str) -> bool:
    ends = (*(end + packed for end in FASTA_ENDS for packed in PACKED_ENDS), SUFFIX)
    visible = not name.startswith(".") and os.path.isfile(os.path.join(folder, name))
    return visible and name.lower().endswith(ends)


def blocks(
    files: tuple[str, ...],
    alphabet: Alphabet,
    unknown: str = "error",
    residues: int = BLOCK_RESIDUES,
    records: int = BLOCK_RECORDS,
) -> Iterator[CorpusBlock]:
    """The records of a corpus, in order; a block ends with the record that reaches
    either number, or with its file.

    Raises
    ------
    InputError
        As ``fasta.read`` and ``encoded_database.mapped``; or a name comes again in
        another file.
    """
    first, known = 0, NameHashes()
    for path in files:
        for sequences, substituted in _of_file(
            path, alphabet, unknown, residues, records
        ):
            if len(files) > 1:
                _refuse_repeated(path, sequences, known)
            yield CorpusBlock(sequences, first, substituted)
            first += len(sequences)


def _of_file(path: str, alphabet: Alphabet, unknown: str, residues: int, records: int):
    if is_database(path):
        for block in in_blocks(mapped(path, alphabet), residues, records):
            yield block, 0
    else:
        yield from fasta_blocks.read_blocks(path, alphabet, unknown, residues, records)


def _refuse_repeated(path: str, block: Sequences, known: NameHashes) -> None:
    """Two names of one hash are taken for one: of 10^8 names there are 1 in 3,000."""
    again = known.add(list(block.names))
    if len(again):
        name = block.names[int(again[0])]
        raise InputError(
            f"{label(path)}: the name {name!r} comes again, in this file or in one "
            "before it; names, the first word of each header, must differ"
        )
