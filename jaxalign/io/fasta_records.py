"""Write some records of a FASTA file as they stand there, headings whole."""

import os
from collections.abc import Generator, Iterable, Iterator

import numpy as np

from jaxalign.io.encoded_database import is_database, mapped
from jaxalign.io.source import open_text
from jaxalign.model.alphabet import Alphabet, Sequences

WIDTH = 60


def pieces(path: str, sequences: Sequences, wanted: np.ndarray) -> Iterator[str]:
    """Yield the text of some records, in their order.

    Parameters
    ----------
    path : str
        Where the sequences were read. What can be read only once, and an index, is
        written from the sequences instead: names and letters.
    sequences : Sequences
    wanted : bool (n,)
    """
    if os.path.isfile(path) and not is_database(path):
        yield from _copied(path, wanted.tolist())
        return
    for number in np.flatnonzero(wanted).tolist():
        text = sequences.text(number)
        yield f">{sequences.names[number]}\n"
        yield from (f"{text[k : k + WIDTH]}\n" for k in range(0, len(text), WIDTH))


def corpus_pieces(
    files: Iterable[str], alphabet: Alphabet, wanted: np.ndarray
) -> Iterator[str]:
    """Yield the text of some records of a corpus, in their order.

    Parameters
    ----------
    files : paths of FASTA and of indices, one after the other
    alphabet : of the indices
    wanted : bool (n,)
        None of those beyond.
    """
    first = 0
    for path in files:
        if is_database(path):
            sequences = mapped(path, alphabet)
            last = first + len(sequences)
            yield from pieces(path, sequences, wanted[first:last])
            first = last
        else:
            first += yield from _copied(path, wanted[first:].tolist())


def _copied(path: str, wanted: list[bool]) -> Generator[str, None, int]:
    """Yield the text of some records of a file; returns how many it has."""
    number = -1
    with open_text(path) as handle:
        for line in map(str.strip, handle):
            number += line.startswith(">")
            if line and 0 <= number < len(wanted) and wanted[number]:
                yield f"{line}\n"
    return number + 1


def headings(path: str) -> Iterator[str]:
    """Yield the headings of a FASTA file, whole, without ``>``; none of an index, or of
    what can be read only once."""
    if os.path.isfile(path) and not is_database(path):
        with open_text(path) as handle:
            yield from (line[1:].strip() for line in handle if line.startswith(">"))
