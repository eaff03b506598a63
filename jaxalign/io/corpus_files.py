"""A corpus of sequences in one or more files, read block by block, never whole.

A corpus is a FASTA file, plain or compressed, an index that ``jaxalign index`` made, or
a folder of such files, which are read in the order of their names. ``pieces`` copies
some records of a FASTA file as they stand there, headings whole.
"""

import os
from collections.abc import Generator, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from jaxalign.errors import InputError
from jaxalign.io import fasta
from jaxalign.io.encoded_database import SUFFIX, is_database, mapped, open_database
from jaxalign.io.fasta import NameHashes
from jaxalign.model.alphabet import (
    AS_WRITTEN,
    NUCLEIC,
    Alphabet,
    Reading,
    Sequences,
    hashes_of,
    in_blocks,
)
from jaxalign.model.source import STDIN, label, open_text, reads_again
from jaxalign.model.strands import BLOCK, LEAST_LETTERS

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
    """List the files of a corpus."""
    path = os.fspath(path)
    if path != STDIN and not os.path.exists(path):
        raise InputError(f"{label(path)}: no such file")
    if not os.path.isdir(path):
        return (path,)
    # FASTA files, packed or not, and indices; hidden files are none.
    suffixes = [end + packed for end in FASTA_ENDS for packed in PACKED_ENDS]
    names = sorted(
        name
        for name in os.listdir(path)
        if not name.startswith(".")
        and name.lower().endswith((*suffixes, SUFFIX))
        and os.path.isfile(os.path.join(path, name))
    )
    if not names:
        ends = ", ".join((*FASTA_ENDS, SUFFIX))
        raise InputError(f"{label(path)}: the folder has no file that ends with {ends}")
    twice = {name + SUFFIX for name in names} & set(names)
    if twice:
        index = min(twice)
        raise InputError(
            f"{label(path)}: has {index} and {index.removesuffix(SUFFIX)}, so its "
            "records would count twice: give one of the two"
        )
    return tuple(os.path.join(path, name) for name in names)


def blocks(
    files: tuple[str, ...],
    alphabet: Alphabet,
    reading: Reading = AS_WRITTEN,
    residues: int = BLOCK_RESIDUES,
    records: int = BLOCK_RECORDS,
    *,
    at_most: tuple[int, int] = (BLOCK_RESIDUES, BLOCK_RECORDS),
) -> Iterator[CorpusBlock]:
    """Yield a corpus in blocks, in order; a block ends with the record that reaches
    ``residues`` or ``records``, or with its file.

    at_most : residues and records, as a memory budget allows
    """
    sizes = min(residues, at_most[0]), min(records, at_most[1])
    first, hashes, counts = 0, NameHashes(), {}
    for path in files:
        if is_database(path):
            views = in_blocks(mapped(path, alphabet), *sizes)
            pairs = ((block, 0) for block in views)
        else:
            pairs = fasta.read_blocks(path, alphabet, reading, *sizes, counts)
        for sequences, substituted in pairs:
            # Equal hashes count as equal names: of 10^8 names the chance of a
            # collision is 1 in 3,000.
            names = sequences.names
            if len(files) > 1 and len(repeats := hashes.add(hashes_of(names))):
                raise InputError(
                    f"{label(path)}: the name {names[int(repeats[0])]!r} is repeated, "
                    "in this file or an earlier one; names (the first word of each "
                    "header) must differ"
                )
            yield CorpusBlock(sequences, first, substituted)
            first += len(sequences)


def opening(path: str) -> list[np.ndarray]:
    """The first letters of a database that is read in blocks, or mapped.

    Of an index its alphabet counts, not its letters: all of that are given, or the four
    bases, often enough to be known, where it is one of nucleotides.
    """
    if is_database(path):
        alphabet = open_database(path).alphabet
        letters = np.frombuffer(alphabet.letters.encode(), np.uint8)
        if alphabet.kind in NUCLEIC:
            letters = np.tile(alphabet.encode("ACGT"), LEAST_LETTERS)
            return [np.frombuffer(alphabet.decode(letters).encode(), np.uint8)]
        return [letters]
    texts, count = [], 0
    with open_text(path) as handle:
        fasta.check_first_line(path, handle)
        for _, letters in fasta.records(handle):
            texts.append(np.frombuffer(letters, np.uint8))
            count += len(letters)
            if count >= BLOCK:
                break
    return texts


WIDTH = 60


def pieces(
    path: str,
    sequences: Sequences,
    selected: np.ndarray,
    reading: Reading = AS_WRITTEN,
) -> Iterator[str]:
    """Yield the text of some records, in their order.

    path : where the sequences were read. What can be read only once, and an index, is
        written from the sequences instead: names and letters.
    selected : bool (n,)
    """
    if reads_again(path) and not is_database(path):
        yield from _copied(path, selected.tolist(), reading, {})
        return
    for number in np.flatnonzero(selected).tolist():
        text = sequences.text(number)
        yield f">{sequences.names[number]}\n"
        yield from (f"{text[k : k + WIDTH]}\n" for k in range(0, len(text), WIDTH))


def corpus_pieces(
    files: Iterable[str],
    alphabet: Alphabet,
    selected: np.ndarray,
    reading: Reading = AS_WRITTEN,
) -> Iterator[str]:
    """Yield the text of some records of a corpus, in their order.

    files : paths of FASTA and of indices, one after the other
    alphabet : of the indices
    selected : bool (n,). None of those beyond.
    """
    first, counts = 0, {}
    for path in files:
        if is_database(path):
            sequences = mapped(path, alphabet)
            last = first + len(sequences)
            yield from pieces(path, sequences, selected[first:last])
            first = last
        else:
            first += yield from _copied(
                path, selected[first:].tolist(), reading, counts
            )


def _copied(
    path: str, selected: list[bool], reading: Reading, counts: dict[str, int]
) -> Generator[str, None, int]:
    """Yield the text of some records of a file, with the names that were read and
    without the stops that were taken off; returns how many it has."""
    number, stop = -1, ""
    with open_text(path) as handle:
        for line in map(str.strip, handle):
            if line.startswith(">"):
                number, stop = number + 1, ""
                if reading.names == "number":
                    name = fasta.header_name(line[1:])
                    (unique,) = fasta.numbered([name], counts)
                    line = f">{unique}{line[1:].lstrip().removeprefix(name)}"
            elif reading.strip_stop and line and line[0] != ";":
                line = stop + line  # a stop that is not the last letter
                stop = "*" * line.endswith("*")
                line = line.removesuffix("*")
            if line and 0 <= number < len(selected) and selected[number]:
                yield f"{line}\n"
    return number + 1


def headings(path: str) -> Iterator[str]:
    """Yield the headings of a FASTA file, whole, without ``>``; none of an index, or of
    what can be read only once."""
    if reads_again(path) and not is_database(path):
        with open_text(path) as handle:
            yield from (line[1:].strip() for line in handle if line.startswith(">"))
