"""Do these letters look like nucleotides? For a word before they are scored as protein.

They do where there are 20 letters or more, all of them IUPAC codes of nucleotides,
nine tenths of them A, C, G, T, U or N, and three of the four bases among them. A third
of a protein's residues are letters that stand for no nucleotide (E, F, I, L, P, Q), and
only a quarter are A, C, G, T or N: chance makes no DNA of a protein of 20 residues.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from jaxalign.model.alphabet import DNA, Sequences

LEAST_LETTERS = 20
LEAST_BASES = 0.9  # the share of A, C, G, T, U and N
BASES = ("A", "C", "G", "TU")
BLOCK = 2**16  # letters looked at before the next are


def look_nucleic(texts: Iterable[np.ndarray]) -> bool:
    """Whether letters look like nucleotides.

    Parameters
    ----------
    texts : iterable of uint8 arrays
        ASCII; proteins are known for what they are within the first few.

    Returns
    -------
    bool

    Examples
    --------
    >>> look_nucleic([np.frombuffer(b"ACGTTGCANNACGTAAGGCT", np.uint8)])
    True
    """
    counts = np.zeros(256, np.int64)
    for text in texts:
        for start in range(0, len(text), BLOCK):
            counts += np.bincount(text[start : start + BLOCK], minlength=256)
            if counts[~_ALLOWED].any():
                return False
    total, plain = counts.sum(), counts[_marked("ACGTUN")].sum()
    present = sum(bool(counts[_marked(base)].any()) for base in BASES)
    return total >= LEAST_LETTERS and plain >= LEAST_BASES * total and present >= 3


def has_uracil(texts: Sequence[np.ndarray]) -> bool:
    """Whether there is a U and no T: RNA."""
    uracil = [np.isin(text, _codes("U")).any() for text in texts]
    return any(uracil) and not any(np.isin(text, _codes("T")).any() for text in texts)


def letters_of(sequences: Sequences) -> Iterator[np.ndarray]:
    """A set as ASCII, uint8, ``BLOCK`` letters at a time."""
    letters = np.frombuffer(sequences.alphabet.letters.encode(), np.uint8)
    for start in range(0, len(sequences.codes), BLOCK):
        yield letters[sequences.codes[start : start + BLOCK]]


def _codes(letters: str) -> np.ndarray:
    return np.frombuffer((letters + letters.lower()).encode(), np.uint8)


def _marked(letters: str) -> np.ndarray:
    table = np.zeros(256, bool)
    table[_codes(letters)] = True
    return table


_ALLOWED = _marked(DNA + "U")
