"""The two strands of a nucleic acid: which are meant, and reverse complements."""

from itertools import pairwise

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.model.alphabet import Alphabet, Sequences
from jaxalign.model.choices import Strand
from jaxalign.model.scoring import Scoring, preset

PLUS, MINUS = 1, -1
SIGNS = {"both": (PLUS, MINUS), "plus": (PLUS,), "minus": (MINUS,)}
# IUPAC: a letter stands for the complements of what its partner stands for.
COMPLEMENT = dict(zip("ACGTURYSWKMBDHVN", "TGCAAYRSWMKVHDBN", strict=True))
COSTS = "match", "mismatch", "gap_open", "gap_extend"


def strands_of(
    strand: Strand | None, scoring: Scoring, mode: str
) -> tuple[int, ...] | None:
    """The strands of the queries of a search, 1 for plus and -1 for minus.

    None where nothing is asked for, which means plus, except where the scoring and the
    mode are those of ``blastn``: there it means both.

    Raises
    ------
    UsageError
        An unknown word, or letters without complements, such as proteins'.
    """
    if strand is None:
        usual = preset("blastn")
        same = all(getattr(scoring, x) == getattr(usual.scoring, x) for x in COSTS)
        nucleic = scoring.alphabet.kind in ("dna", "rna")
        return SIGNS["both"] if same and nucleic and mode == usual.mode else None
    if scoring.by_position and strand in ("both", "minus"):
        raise UsageError(f"strand = {strand!r}: a profile has one strand")
    if not isinstance(strand, str) or strand not in SIGNS:
        raise UsageError(f"unknown strand {strand!r}: one of {', '.join(SIGNS)}")
    try:
        complement_codes(scoring.alphabet)
    except UsageError as error:
        raise UsageError(f"strand = {strand!r}: {error}") from None
    return SIGNS[strand]


def complement_codes(alphabet: Alphabet) -> np.ndarray:
    """uint8 (letters,): the code of the complement of each letter.

    Raises
    ------
    UsageError
        A letter has none.
    """
    codes = []
    for letter in alphabet.letters:
        other = COMPLEMENT.get(letter, "")
        if other == "T" and "T" not in alphabet.letters:
            other = "U"
        if not other or other not in alphabet.letters:
            raise UsageError(
                f"nucleotides have two strands; the letter {letter} of the "
                f"{alphabet.kind} alphabet has no complement"
            )
        codes.append(alphabet.letters.index(other))
    return np.array(codes, np.uint8)


def reverse_complement(sequences: Sequences) -> Sequences:
    """The other strand of each sequence, read from its own start.

    Examples
    --------
    >>> from jaxalign.model.alphabet import as_sequences, named_alphabet
    >>> reverse_complement(as_sequences(["AACGTN"], named_alphabet("dna"))).texts()
    ['NACGTT']
    """
    codes = complement_codes(sequences.alphabet)[sequences.codes]
    ends = pairwise(sequences.offsets.tolist())
    parts = [codes[start:stop][::-1] for start, stop in ends]
    flat = np.concatenate([np.zeros(0, np.uint8), *parts])
    return Sequences(sequences.names, flat, sequences.offsets, sequences.alphabet)


def other_strand(text: str, alphabet: Alphabet) -> str:
    """The reverse complement of a text."""
    codes = complement_codes(alphabet)[alphabet.encode(text)]
    return alphabet.decode(codes[::-1])
