"""Reference alignments: aligned FASTA in, and the Pfam seeds that are shipped."""

import os
from importlib import resources
from pathlib import Path

import numpy as np

from jaxalign.errors import InputError
from jaxalign.io import fasta
from jaxalign.io.locate import header_line, letter_place
from jaxalign.model.alphabet import BAD, Alphabet, as_ascii, named_alphabet
from jaxalign.model.family import GAP, Family


def read(path: str | os.PathLike[str], alphabet: Alphabet | None = None) -> Family:
    """An aligned FASTA file; ``-`` and ``.`` are gaps.

    Parameters
    ----------
    path : path, as of ``io.fasta.read_raw``
    alphabet : Alphabet, optional
        Protein by default.

    Raises
    ------
    InputError
        No FASTA, rows of unequal length, or a letter that is not in the alphabet.
    """
    alphabet, raw = alphabet or named_alphabet("protein"), fasta.read_raw(path)
    widths = np.diff(raw.offsets)
    if (other := widths != widths[0]).any():
        record = int(other.argmax())
        line = header_line(raw.source, raw.buffer, record)
        raise InputError(
            f"{raw.source}, line {line}: a row of {widths[record]} columns, where the "
            f"first has {widths[0]}"
        )
    codes = alphabet.encode(raw.text).astype(np.int16)
    codes[np.isin(raw.text, as_ascii("-."))] = GAP
    if (bad := codes == BAD).any():
        raise _bad_letter(raw, int(bad.argmax()), int(widths[0]), alphabet)
    name = Path(raw.source).stem
    return Family(name, raw.names, codes.reshape(len(raw), int(widths[0])))


def _bad_letter(
    raw: fasta.RawRecords, at: int, width: int, alphabet: Alphabet
) -> InputError:
    place = letter_place(raw.source, raw.buffer, *divmod(at, width))
    return InputError(
        f"{raw.source}, line {place.line}, column {place.column}: {place.letter!r}; "
        f"{alphabet.rule()}"
    )


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
