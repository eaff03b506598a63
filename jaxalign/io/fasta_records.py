"""Write some records of a FASTA file as they stand there, headings whole."""

import os
from collections.abc import Iterator

import numpy as np

from jaxalign.io.encoded_database import is_database
from jaxalign.io.source import open_text
from jaxalign.model.alphabet import Sequences

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


def _copied(path: str, wanted: list[bool]) -> Iterator[str]:
    number = -1
    with open_text(path) as handle:
        for line in map(str.strip, handle):
            number += line.startswith(">")
            if line and number >= 0 and wanted[number]:
                yield f"{line}\n"


def headings(path: str) -> Iterator[str]:
    """Yield the headings of a FASTA file, whole, without ``>``; none of an index, or of
    what can be read only once."""
    if os.path.isfile(path) and not is_database(path):
        with open_text(path) as handle:
            yield from (line[1:].strip() for line in handle if line.startswith(">"))
