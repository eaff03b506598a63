"""Reference alignments: aligned FASTA in, and the Pfam seeds that are shipped."""

from importlib import resources
from pathlib import Path

import numpy as np
from biotite.sequence.io.fasta import FastaFile

from jaxalign.errors import InputError
from jaxalign.model.alphabet import BAD, Alphabet, as_ascii, named_alphabet
from jaxalign.model.family import GAP, Family


def read(path, alphabet: Alphabet | None = None) -> Family:
    """An aligned FASTA file; ``-`` and ``.`` are gaps.

    Parameters
    ----------
    path : path of a plain file
    alphabet : Alphabet, optional
        Protein by default.

    Raises
    ------
    InputError
        No records, rows of unequal length, or a letter that is not in the alphabet.
    """
    alphabet = alphabet or named_alphabet("protein")
    records = list(FastaFile.read_iter(str(path)))
    if not records:
        raise InputError(f"{path}: no records")
    names = tuple(header.split()[0] for header, _ in records)
    rows = [_row(path, *record, alphabet) for record in records]
    widths = sorted({len(row) for row in rows})
    if len(widths) > 1:
        raise InputError(f"{path}: rows of {widths[0]} to {widths[-1]} columns")
    return Family(Path(path).stem, names, np.stack(rows))


def _row(path, header: str, text: str, alphabet: Alphabet) -> np.ndarray:
    letters = as_ascii(text)
    gaps = np.isin(letters, as_ascii("-."))
    codes = np.where(gaps, GAP, alphabet.encode(letters).astype(np.int16))
    if (bad := codes == BAD).any():
        column = int(bad.argmax())
        raise InputError(
            f"{path}, {header.split()[0]}, column {column + 1}: "
            f"{chr(letters[column])!r}; {alphabet.rule()}"
        )
    return codes.astype(np.int16)


def pfam(alphabet: Alphabet | None = None) -> dict[str, Family]:
    """The Pfam seed alignments that are shipped, by name.

    Examples
    --------
    >>> from jaxalign.io import families
    >>> {name: len(family) for name, family in families.pfam().items()}["fn3"]
    98
    """
    folder = resources.files("jaxalign.data") / "pfam"
    with resources.as_file(folder) as real:
        files = sorted(real.glob("*.fasta"))
        return {path.stem: read(path, alphabet) for path in files}
