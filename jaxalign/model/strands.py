"""The two strands of a nucleic acid, and whether letters look like nucleotides.

Letters do where there are 20 or more, all of them IUPAC codes of nucleotides, nine
tenths of them A, C, G, T, U or N, and three of the four bases among them. A third of a
protein's residues are letters that stand for no nucleotide (E, F, I, L, P, Q), and only
a quarter are A, C, G, T or N: chance makes no DNA of a protein of 20 residues.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.model.alphabet import DNA, Alphabet, Sequences, as_ascii
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
    """
    if strand is None:
        usual = preset("blastn")
        same = all(getattr(scoring, x) == getattr(usual.scoring, x) for x in COSTS)
        nucleic = scoring.alphabet.kind in ("dna", "rna")
        return SIGNS["both"] if same and nucleic and mode == usual.mode else None
    if scoring.by_position and strand in ("both", "minus"):
        raise UsageError(f"strand = {strand!r}: a profile has only one strand")
    if not isinstance(strand, str) or strand not in SIGNS:
        raise UsageError(f"unknown strand {strand!r}: one of {', '.join(SIGNS)}")
    try:
        complement_codes(scoring.alphabet)
    except UsageError as error:
        raise UsageError(f"strand = {strand!r}: {error}") from None
    return SIGNS[strand]


def complement_codes(alphabet: Alphabet) -> np.ndarray:
    """uint8 (letters,): the code of the complement of each letter."""
    codes = []
    for letter in alphabet.letters:
        complement = COMPLEMENT.get(letter, "")
        if complement == "T" and "T" not in alphabet.letters:
            complement = "U"
        if not complement or complement not in alphabet.letters:
            raise UsageError(
                f"nucleotides have two strands; the letter {letter} of the "
                f"{alphabet.kind} alphabet has no complement"
            )
        codes.append(alphabet.letters.index(complement))
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


def molecule_of(text: str) -> str:
    """Tell ``protein``, ``dna`` or ``rna`` by letters; nucleotides without a T are
    RNA, and so are those with a U. A short text has to be of A, C, G and U.

    Examples
    --------
    >>> [molecule_of(x) for x in ("MKTAYIAKQR", "ACGT" * 5, "acgu" * 2, "ACGT" * 4)]
    ['protein', 'dna', 'rna', 'protein']
    """
    short_rna = "U" in text.upper() and {*text.upper()} <= {*"ACGU"}
    if not short_rna and not look_nucleic([as_ascii(text)]):
        return "protein"
    return nucleic_kind(text)


def protein_letters(text: str) -> str:
    """Return the letters of a protein, or as many X of nucleotides."""
    return text if molecule_of(text) == "protein" else "X" * len(text)


def nucleic_kind(text: str) -> str:
    """Tell ``dna`` or ``rna`` by the letters of nucleotides."""
    letters = {*text.upper()}
    return "dna" if "T" in letters and "U" not in letters else "rna"


def seem_nucleic(sets: Iterable[Sequences]) -> bool:
    """Whether the letters of encoded sets look like nucleotides."""
    return look_nucleic(block for sequences in sets for block in _letters_of(sequences))


def nucleic_sets(sets: Sequence[Sequences]) -> list[bool]:
    """Which of some encoded sets look like nucleotides; all do, if they do together and
    one is too short to say."""
    each = [look_nucleic(_letters_of(x)) for x in sets]
    short = min(len(x.codes) for x in sets) < LEAST_LETTERS
    letters = chain.from_iterable(map(_letters_of, sets))
    if short and len(sets) > 1 and not any(each) and look_nucleic(letters):
        return [True] * len(sets)
    return each


def _letters_of(sequences: Sequences) -> Iterator[np.ndarray]:
    """A set as ASCII, uint8, ``BLOCK`` letters at a time."""
    letters = np.frombuffer(sequences.alphabet.letters.encode(), np.uint8)
    if sequences.alphabet.states is not None:
        sequences = sequences.track(0)
    for start in range(0, len(sequences.codes), BLOCK):
        yield letters[sequences.codes[start : start + BLOCK]]


def has_uracil(texts: Sequence[np.ndarray]) -> bool:
    """Whether there is a U: then nucleotides are read as RNA, T as U."""
    return any(np.isin(text, as_ascii("Uu")).any() for text in texts)


def _marked(letters: str) -> np.ndarray:
    table = np.zeros(256, bool)
    table[as_ascii(letters + letters.lower())] = True
    return table


_ALLOWED = _marked(DNA + "U")
