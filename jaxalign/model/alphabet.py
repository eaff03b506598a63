"""Letters <-> uint8 codes, in bulk, and sets of sequences as one flat array.

The project owns its alphabets: biotite 1.6 and 2.x give the same letter different
codes, so no biotite code is ever stored.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, get_args

import numpy as np

from jaxalign.errors import InputError, UsageError
from jaxalign.model.choices import UnknownLetters
from jaxalign.model.items import item_of, items_of, place, text_of

PROTEIN = "ARNDCQEGHILKMFPSTWYVBZX*"
DNA = "ACGTRYSWKMBDHVN"
BAD = 255
NO_LETTERS = ">;#-."  # they mean something else in FASTA, matrix files and alignments
UNKNOWN_POLICIES: tuple[str, ...] = get_args(UnknownLetters)


@dataclass(frozen=True)
class Alphabet:
    """Letters in code order; ``wildcard`` is the letter that means *unknown*.

    Letters are read without regard to case, unless both cases are letters or all
    letters are lower case (structural alphabets), which lower only their own case.
    """

    letters: str
    wildcard: str | None = None
    kind: str = "custom"

    def __post_init__(self):
        check_letters(self.letters)
        if self.wildcard is not None and self.wildcard not in self.letters:
            raise UsageError(f"the wildcard {self.wildcard!r} is no letter")

    @cached_property
    def size(self) -> int:
        return len(self.letters)

    @cached_property
    def table(self) -> np.ndarray:
        """(256,) uint8: ASCII -> code, ``BAD`` where there is no such letter."""
        table = np.full(256, BAD, np.uint8)
        for code, letter in enumerate(self.letters):
            for form in (letter.lower(), letter.upper()):
                if form == letter or form not in self.letters:
                    table[ord(form)] = code
        return table

    @cached_property
    def wildcard_code(self) -> int:
        """Code of the wildcard, or ``BAD`` where the alphabet has none."""
        return BAD if self.wildcard is None else self.letters.index(self.wildcard)

    def encode(self, text: Any) -> np.ndarray:
        """str, bytes or uint8 ASCII array -> uint8 codes of the same length."""
        return self.table[as_ascii(text)]

    def decode(self, codes: Any) -> str:
        """uint8 codes -> str."""
        letters = np.frombuffer(self.letters.encode(), np.uint8)
        return letters[np.asarray(codes, np.intp)].tobytes().decode()

    def rule(self) -> str:
        """The letters allowed, for messages."""
        return f"the {self.kind} alphabet is {self.letters}"


def check_letters(letters: str) -> None:
    """Refuse what cannot be the letters of an alphabet.

    Raises
    ------
    UsageError
        None at all, one that comes twice, or one that is no visible ASCII letter or
        means something else in a file.
    """
    if not isinstance(letters, str) or not letters:
        raise UsageError(f"the letters of an alphabet are a str, not {letters!r}")
    for index, letter in enumerate(letters):
        if not "!" <= letter <= "~" or letter in NO_LETTERS:
            raise UsageError(
                f"{letter!r} cannot be a letter of an alphabet: letters are visible "
                f"ASCII characters other than {' '.join(NO_LETTERS)}"
            )
        if letter in letters[:index]:
            raise UsageError(f"letters must differ, and {letter!r} comes twice")


def named_alphabet(kind: str) -> Alphabet:
    """``protein``, ``dna``, ``rna``, or the letters themselves."""
    if not isinstance(kind, str):
        raise UsageError(
            f"alphabet = {kind!r}: protein, dna, rna or letters are needed"
        )
    return _KNOWN.get(kind) or Alphabet(kind)


_KNOWN = {
    "protein": Alphabet(PROTEIN, "X", "protein"),
    "dna": Alphabet(DNA, "N", "dna"),
    "rna": Alphabet(DNA.replace("T", "U"), "N", "rna"),
}


def as_ascii(text: Any) -> np.ndarray:
    """str, bytes or uint8 array -> uint8 array; a letter beyond ASCII becomes 0."""
    if isinstance(text, str):
        text = text.encode("latin-1", "replace")
    if isinstance(text, (bytes, bytearray)):
        return np.frombuffer(bytes(text), np.uint8)
    return np.asarray(text, np.uint8)


def substitute_unknown(text: Any, alphabet: Alphabet, unknown: str = "error"):
    """Encode under a policy for letters that are not in the alphabet.

    ``error`` leaves them ``BAD``; ``X`` turns U, O and J, residues that exist but
    have no row in the matrix, into the wildcard; ``mask`` turns any letter A-Z into
    it. Digits, gaps and punctuation are always ``BAD``.

    Returns
    -------
    codes : uint8 array
    count : int
        How many letters were replaced.
    """
    ascii_codes = as_ascii(text)
    # Ten times as fast as an index of NumPy, and nothing as large as one.
    translated = bytearray(ascii_codes).translate(alphabet.table.tobytes())
    codes = np.frombuffer(translated, np.uint8)
    allowed = {"error": b"", "X": b"UOJuoj", "mask": bytes(range(65, 91))}[unknown]
    if unknown == "mask":
        allowed += allowed.lower()
    if not allowed or alphabet.wildcard is None:
        return codes, 0
    swap = np.zeros(256, bool)
    swap[list(allowed)] = True
    hit = (codes == BAD) & swap[ascii_codes]
    codes[hit] = alphabet.wildcard_code
    return codes, int(hit.sum())


@dataclass(frozen=True, eq=False)
class Sequences:
    """A set of sequences: names, one flat uint8 code array, n + 1 offsets."""

    names: tuple[str, ...]
    codes: np.ndarray
    offsets: np.ndarray
    alphabet: Alphabet

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        many = f"{len(self):,} sequence" + "s" * (len(self) != 1)
        residues = f"{len(self.codes):,} residues"
        return f"<Sequences: {many}, {residues}, {self.alphabet.kind}>"

    def __getitem__(self, index: int) -> np.ndarray:
        return self.codes[self.offsets[index] : self.offsets[index + 1]]

    @cached_property
    def lengths(self) -> np.ndarray:
        """(n,) int64, read-only."""
        lengths = np.diff(self.offsets)
        lengths.flags.writeable = False
        return lengths

    @cached_property
    def starts(self) -> np.ndarray:
        """(n,) int64: where each begins."""
        return self.offsets[:-1]

    def text(self, index: int) -> str:
        return self.alphabet.decode(self[index])

    def texts(self) -> list[str]:
        """All of them, decoded at once."""
        letters, at = self.alphabet.decode(self.codes), self.offsets.tolist()
        return [letters[start:stop] for start, stop in pairwise(at)]

    def between(self, start: int, stop: int) -> "Sequences":
        """The sequences from ``start`` up to ``stop``; codes are a view."""
        offsets = self.offsets[start : stop + 1]
        codes = self.codes[offsets[0] : offsets[-1]]
        names = self.names[start:stop]
        return Sequences(names, codes, np.asarray(offsets - offsets[0]), self.alphabet)

    def take(self, indices: Any) -> "Sequences":
        """The sequences at ``indices``, in that order."""
        parts = [self[i] for i in indices]
        return from_parts([self.names[i] for i in indices], parts, self.alphabet)


def from_parts(
    names: Iterable[str], parts: Sequence[np.ndarray], alphabet: Alphabet
) -> Sequences:
    """Names and code arrays -> one flat set."""
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    flat = np.concatenate([np.zeros(0, np.uint8), *parts]).astype(np.uint8)
    return Sequences(tuple(names), flat, offsets, alphabet)


def as_sequences(data: Any, alphabet: Alphabet) -> Sequences:
    """``Sequences`` of whatever a caller may hold but a file.

    Accepts ``Sequences``; ``(codes, offsets)`` flat arrays in this alphabet's codes; a
    mapping of names to sequences; or an iterable of sequences in any of the forms of
    ``jaxalign.model.items``. A single sequence is a mistake and is refused.

    Raises
    ------
    InputError
        A letter is not in the alphabet; the message names record and column.
    UsageError
        A sequence of a nucleotides' type, and an alphabet of proteins.
    """
    if isinstance(data, Sequences):
        if data.alphabet.letters == alphabet.letters:
            return data
        data = [(name, data.text(i)) for i, name in enumerate(data.names)]
    if is_flat(data):
        codes, offsets = data
        return _from_flat(codes, offsets, alphabet)
    data = data if type(data) is list else items_of(data)
    if all(isinstance(_item(item), str) for item in data):
        sequences = _from_texts(data, alphabet)
        if not (sequences.codes == BAD).any():  # else found and told one by one
            return sequences
    named = [_name_and_codes(item, i, alphabet) for i, item in enumerate(data)]
    names, parts = zip(*named, strict=True) if named else ((), ())
    return from_parts(names, list(parts), alphabet)


def _item(item: Any) -> Any:
    """The sequence that a caller gave, without its name."""
    return item[1] if isinstance(item, tuple) and len(item) == 2 else item


def _from_texts(data: Any, alphabet: Alphabet) -> Sequences:
    """Texts, some with names, encoded at once."""
    names = tuple(
        str(item[0]) if isinstance(item, tuple) else f"seq{i + 1}"
        for i, item in enumerate(data)
    )
    texts: list[str] = [_item(item) for item in data]
    offsets = np.array([*accumulate(map(len, texts), initial=0)], np.int64)
    return Sequences(names, alphabet.encode("".join(texts)), offsets, alphabet)


def is_flat(data: Any) -> bool:
    """Whether data are (codes, offsets)."""
    pair = isinstance(data, tuple) and len(data) == 2
    return pair and all(isinstance(part, np.ndarray) for part in data)


def _from_flat(codes: Any, offsets: Any, alphabet: Alphabet) -> Sequences:
    check_codes(codes, alphabet, "flat codes")
    offsets = checked_offsets(offsets, len(codes))
    names = tuple(f"seq{i + 1}" for i in range(len(offsets) - 1))
    return Sequences(names, codes.astype(np.uint8), offsets, alphabet)


def checked_offsets(offsets: np.ndarray, length: int) -> np.ndarray:
    """Offsets of sequences in flat codes of a length, as int64.

    Raises
    ------
    InputError
        They are no integers in one dimension, or do not rise from 0 to the length.
    """
    if offsets.ndim != 1 or offsets.dtype.kind not in "iu":
        raise InputError(
            f"offsets are integers in one dimension, not {offsets.dtype} of shape "
            f"{offsets.shape}"
        )
    within = len(offsets) and offsets[0] == 0 and offsets[-1] == length
    if not within or falls(offsets):
        raise InputError("offsets must rise from 0 to the length of the flat codes")
    return offsets.astype(np.int64)


def falls(offsets: np.ndarray) -> bool:
    """Whether an offset is smaller than the one before it."""
    return bool((offsets[1:] < offsets[:-1]).any())


def check_codes(codes: Any, alphabet: Alphabet, what: str) -> None:
    """Refuse codes that are no letters."""
    codes = np.asarray(codes)
    if codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise InputError(
            f"{what}: codes are integers in one dimension, not {codes.dtype} of shape "
            f"{codes.shape}"
        )
    if codes.size and not 0 <= int(codes.min()) <= int(codes.max()) < alphabet.size:
        raise InputError(f"{what}: codes must lie in 0..{alphabet.size - 1}")


def _name_and_codes(item: Any, index: int, alphabet: Alphabet):
    item = item_of(item, index)
    name, text = text_of(item, index)
    if item.nucleic and alphabet.kind == "protein":
        raise UsageError(
            f"{place(name, index)} is of type {item.nucleic}, and the matrix scores "
            "proteins: use scoring=Scoring(match=2, mismatch=-3), Scoring('NUC') or "
            "Scoring.preset('blastn')"
        )
    if isinstance(text, np.ndarray):
        check_codes(text, alphabet, place(name, index))
        return name, text.astype(np.uint8)
    codes = alphabet.encode(text)
    bad = np.flatnonzero(codes == BAD)
    if bad.size:
        letter = text[bad[0]] if isinstance(text, str) else chr(text[bad[0]])
        where = f"{place(name, index)}, column {bad[0] + 1}"
        raise InputError(f"{where}: {letter!r} is no letter; {alphabet.rule()}")
    return name, codes
