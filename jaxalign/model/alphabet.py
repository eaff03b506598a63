"""Letters <-> uint8 codes, in bulk, and sets of sequences as one flat array.

The project owns its alphabets: biotite 1.6 and 2.x give the same letter different
codes, so no biotite code is ever stored.

``as_sequences`` takes sequences in whatever form a caller holds them: str, bytes, an
array of codes, biotite's sequences, Biopython's ``Seq`` and ``SeqRecord``, and a pair
(name, any of these). Neither library is imported for the question: who holds one of its
objects has imported it. ``encode_letters`` takes the same with any letters: edit
distances need no alphabet, only whether two letters are the same, so letters are the
characters of a str as they stand there, and ``a`` is not ``A``.

What follows ``as_sequences`` selects some of many that stand one after the other in
flat arrays: rows of a table and their ragged paths, groups, and sequences of a set in
any order and as often as wanted.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from jaxalign.errors import InputError, UsageError
from jaxalign.model.choices import RepeatedNames, UnknownLetters
from jaxalign.model.names import written

FORMS = (
    "a str, (name, str), codes, a Path, a biotite sequence, or a Seq or SeqRecord of "
    "Biopython"
)
NO_NAME = ("", "<unknown id>", None)  # the second is Biopython's


class Item(NamedTuple):
    """One sequence.

    name : str or None
    content : str, bytes or an array of codes
    nucleic : str or None
        What its type says it is, where that is a nucleic acid.
    """

    name: str | None
    content: Any
    nucleic: str | None = None


def item_of(value: Any, number: int) -> Item:
    """Convert any supported form to an ``Item``.

    value : object
    number : its place in the set, from 0, for messages.
    """
    if isinstance(value, tuple) and len(value) == 2:
        inner = item_of(value[1], number)
        return inner._replace(name=str(value[0]))
    if isinstance(value, (str, bytes)):
        return Item(None, value)
    if (item := _of_library(value)) is not None:
        return item
    kind = type(value).__name__
    if not hasattr(value, "__array__"):
        raise InputError(f"record {number + 1}: a {kind} is not a sequence; {FORMS} is")
    try:  # an array of numpy, of JAX, or of whoever offers one as numpy's
        return Item(None, np.asarray(value))
    except Exception as error:  # whatever the owner of an array may raise
        why = next(iter(str(error).splitlines()), "")
        raise InputError(
            f"a {kind} has no values that can be read ({why}). Inside jax.jit, arrays "
            "have none yet: call this function outside"
        ) from error


def items_of(data: Any) -> list:
    """List the sequences of a set; of a mapping, (name, sequence) pairs."""
    if isinstance(data, Mapping):
        return list(data.items())
    single = isinstance(data, (str, bytes, bytearray)) or _of_library(data) is not None
    if isinstance(data, np.ndarray) and data.ndim == 1:
        single = data.dtype.kind in "biuf"
    if single:
        raise InputError(
            f"a list of sequences is needed, not one string or sequence: a "
            f"{type(data).__name__} may stand in a list, [sequence]"
        )
    try:
        if hasattr(data, "columns"):  # a table, of which a loop would give anything
            raise TypeError
        return list(data)
    except TypeError:
        raise InputError(
            f"a {type(data).__name__} is not a set of sequences: give a list, a "
            "mapping of names to sequences, or the path of a file"
        ) from None


def _of_library(value: Any) -> Item | None:
    """Convert a biotite or Biopython sequence; None for other types."""
    library = sys.modules.get("biotite.sequence")
    if library is not None and isinstance(value, library.Sequence):
        nucleic = isinstance(value, library.NucleotideSequence)
        return Item(None, str(value), type(value).__name__ if nucleic else None)
    records, sequences = map(sys.modules.get, ("Bio.SeqRecord", "Bio.Seq"))
    name = nucleic = None
    if records is not None and isinstance(value, records.SeqRecord):
        name = None if value.id in NO_NAME else str(value.id)
        kind = str(value.annotations.get("molecule_type") or "")
        nucleic = kind if kind.upper().endswith(("DNA", "RNA")) else None
        called, value = name or "a SeqRecord", value.seq
    elif sequences and isinstance(value, (sequences.Seq, sequences.MutableSeq)):
        called = f"a {type(value).__name__}"
    else:
        return None
    try:
        return Item(name, str(value), nucleic)
    except Exception as error:  # a Seq may have no letters, only a length
        raise InputError(f"{called}: {error}") from error


PROTEIN = "ARNDCQEGHILKMFPSTWYVBZX*"
DNA = "ACGTRYSWKMBDHVN"
STATES = "acdefghiklmnpqrstvwyx"  # of 3Di; x of a residue without backbone
BAD = 255
# Of two tracks a code is that of the first, plus TRACK times that of the second: uint16
TRACK = 256
SHORT = 32  # letters of a sequence that are gathered as fast as they are copied
NO_LETTERS = ">;#-."  # they mean something else in FASTA, matrix files and alignments
UNKNOWN_POLICIES: tuple[str, ...] = get_args(UnknownLetters)


class Reading(NamedTuple):
    """How the records of files are read, as the options of these names say."""

    unknown: UnknownLetters = "error"
    strip_stop: bool = False
    names: RepeatedNames = "error"

    def said(self) -> dict[str, Any]:
        """The policy of letters, and others where they are not the usual ones."""
        usual = AS_WRITTEN._asdict()
        values = self._asdict().items()
        return {k: x for k, x in values if k == "unknown" or x != usual[k]}


AS_WRITTEN = Reading()


def reading_of(options: Any) -> Reading:
    """Take how files are read from a record with options of these names.

    Raises UsageError: no policy of names, or no flag.
    """
    reading = Reading(options.unknown, options.strip_stop, options.names)
    if reading.names not in get_args(RepeatedNames):
        raise UsageError(f"names = {reading.names!r}: error or number is needed")
    if not isinstance(reading.strip_stop, bool):
        raise UsageError(f"strip_stop = {reading.strip_stop!r}: must be True or False")
    return reading


@dataclass(frozen=True)
class Alphabet:
    """Letters in the order of their codes; ``wildcard`` is the letter for *unknown*.

    Reading ignores case, unless the alphabet has letters in both cases, or only lower
    case letters (structural alphabets). RNA reads T as U.
    """

    letters: str
    wildcard: str | None = None
    kind: str = "custom"
    states: "Alphabet | None" = None  # of a second track: codes are packed

    def __post_init__(self):
        check_letters(self.letters)
        if self.wildcard is not None and self.wildcard not in self.letters:
            raise UsageError(
                f"the wildcard {self.wildcard!r} is not a letter of the alphabet"
            )

    @cached_property
    def size(self) -> int:
        return len(self.letters)

    @cached_property
    def residues(self) -> int:
        """How many letters, the first ones, are single residues."""
        return {"protein": 20, "dna": 4, "rna": 4, "3di": 20}.get(self.kind, self.size)

    @cached_property
    def padding(self) -> int:
        """The code behind those of all letters; of two tracks in both."""
        if self.states is None:
            return self.size
        return max(self.size, self.states.size) * (1 + TRACK)

    @cached_property
    def table(self) -> np.ndarray:
        """(256,) uint8: ASCII -> code, ``BAD`` where there is no such letter."""
        table = np.full(256, BAD, np.uint8)
        for code, letter in enumerate(self.letters):
            for form in (letter.lower(), letter.upper()):
                if form == letter or form not in self.letters:
                    table[ord(form)] = code
        if self.kind == "rna" and "U" in self.letters:
            table[[ord("t"), ord("T")]] = table[ord("U")]
        return table

    @cached_property
    def wildcard_code(self) -> int:
        """Code of the wildcard, or ``BAD`` where the alphabet has none."""
        return BAD if self.wildcard is None else self.letters.index(self.wildcard)

    def encode(self, text: Any) -> np.ndarray:
        """Convert ``text`` (str, bytes or uint8 ASCII) to uint8 codes of its length."""
        return self.table[as_ascii(text)]

    def decode(self, codes: Any) -> str:
        """Convert uint8 ``codes`` to a str."""
        letters = np.frombuffer(self.letters.encode(), np.uint8)
        return letters[np.asarray(first_track(codes), np.intp)].tobytes().decode()

    def rule(self) -> str:
        """Describe the allowed letters, for messages."""
        return f"the {self.kind} alphabet is {self.letters}"


def first_track(codes: Any) -> Any:
    """The codes of the first of two tracks, or those of the only one, uint8."""
    packed = isinstance(codes, np.ndarray) and codes.dtype == np.uint16
    return codes.astype(np.uint8) if packed else codes


def check_letters(letters: str) -> None:
    """Check the letters of an alphabet."""
    if not isinstance(letters, str) or not letters:
        raise UsageError(f"the letters of an alphabet must be a str, not {letters!r}")
    for index, letter in enumerate(letters):
        if not "!" <= letter <= "~" or letter in NO_LETTERS:
            raise UsageError(
                f"{letter!r} cannot be a letter of an alphabet: letters are visible "
                f"ASCII characters other than {' '.join(NO_LETTERS)}"
            )
        if letter in letters[:index]:
            raise UsageError(f"letters must differ, and {letter!r} is there twice")


def named_alphabet(kind: str) -> Alphabet:
    """``protein``, ``dna``, ``rna``, ``3di``, or the letters themselves."""
    if not isinstance(kind, str):
        raise UsageError(
            f"alphabet = {kind!r}: protein, dna, rna, 3di or letters are needed"
        )
    return _KNOWN.get(kind) or Alphabet(kind)


NUCLEIC = ("dna", "rna")  # kinds of alphabets
_KNOWN = {
    "protein": Alphabet(PROTEIN, "X", "protein"),
    "dna": Alphabet(DNA, "N", "dna"),
    "rna": Alphabet(DNA.replace("T", "U"), "N", "rna"),
    "3di": Alphabet(STATES, "x", "3di"),
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

    Returns codes, uint8, and how many letters were replaced.
    """
    ascii_codes, table = as_ascii(text), alphabet.table.tobytes()
    codes = np.empty(len(ascii_codes), np.uint8)
    for start in range(0, len(codes), TRANSLATED):
        # Ten times as fast as an index of NumPy, and nothing as large as one.
        part = ascii_codes[start : start + TRANSLATED].tobytes().translate(table)
        codes[start : start + len(part)] = np.frombuffer(part, np.uint8)
    allowed = {"error": b"", "X": b"UOJuoj", "mask": bytes(range(65, 91))}[unknown]
    if unknown == "mask":
        allowed += allowed.lower()
    if not allowed or alphabet.wildcard is None or codes.max(initial=0) < BAD:
        return codes, 0
    swap = np.zeros(256, bool)
    swap[list(allowed)] = True
    hit = (codes == BAD) & swap[ascii_codes]
    codes[hit] = alphabet.wildcard_code
    return codes, int(hit.sum())


TRANSLATED = 2**18  # letters that are encoded together
NAMES_STRETCH = 2**12  # names that are looked at together


@dataclass(frozen=True, eq=False)
class Names:
    """Names end to end, decoded when they are asked for: those of a large file.

    text : ndarray, uint8, UTF-8
    places : ndarray, int64, shape (n + 1,): where each begins, and the end
    """

    text: np.ndarray
    places: np.ndarray

    def __len__(self) -> int:
        return len(self.places) - 1

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            start, stop, _ = index.indices(len(self))
            return Names(self.text, self.places[start : stop + 1])
        index = range(len(self))[index]
        start, stop = self.places[index : index + 2]
        return self.text[start:stop].tobytes().decode(errors="replace")

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), NAMES_STRETCH):
            places = self.places[first : first + NAMES_STRETCH + 1]
            text = self.text[places[0] : places[-1]].tobytes()
            sides = pairwise((places - places[0]).tolist())
            yield from (text[a:b].decode(errors="replace") for a, b in sides)


def names_of(names: Iterable[str]) -> Names:
    """Encode names end to end; no copy of those that are."""
    if isinstance(names, Names):
        text, places = names.text, names.places
        return Names(text[places[0] : places[-1]], places - places[0])
    words = [name.encode(errors="surrogatepass") for name in names]
    places = np.zeros(len(words) + 1, np.int64)
    np.cumsum([len(word) for word in words], out=places[1:])
    return Names(np.frombuffer(b"".join(words), np.uint8), places)


def hashes_of(names: Iterable[str]) -> np.ndarray:
    """A hash of each name, int64, the same in every process: of each of its bytes a
    random number times that of its place, summed."""
    encoded = names_of(names)
    widths = np.diff(encoded.places)
    dice = np.random.default_rng(2011)
    of_byte = dice.integers(2**63, size=256)
    of_place = dice.integers(2**62, size=int(widths.max(initial=0))) * 2 + 1
    hashes = np.zeros(len(widths), np.int64)
    for first in range(0, len(widths), NAMES_STRETCH):
        places = encoded.places[first : first + NAMES_STRETCH + 1]
        text = encoded.text[places[0] : places[-1]]
        starts = np.repeat(places[:-1], widths[first : first + NAMES_STRETCH])
        products = of_byte[text] * of_place[np.arange(*places[[0, -1]]) - starts]
        sums = np.concatenate([[0], np.cumsum(products)])  # of int64: they wrap around
        hashes[first : first + NAMES_STRETCH] = np.diff(sums[places - places[0]])
    return hashes


@dataclass(frozen=True, eq=False)
class Sequences:
    """A set of sequences: names, one flat code array, and n + 1 int64 offsets.

    Codes are uint8. Those of two tracks (``with_states``) are uint16, the second track
    in the high byte, so that whatever selects residues selects both.
    """

    names: tuple[str, ...]
    codes: np.ndarray
    offsets: np.ndarray
    alphabet: Alphabet

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        count = f"{len(self):,} sequence" + "s" * (len(self) != 1)
        residues = f"{len(self.codes):,} residues"
        return f"<Sequences: {count}, {residues}, {self.alphabet.kind}>"

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
        """Return the letters of sequence ``index``."""
        return self.alphabet.decode(self[index])

    def states(self, index: int) -> str:
        """Return the second track of sequence ``index``, of two."""
        assert self.alphabet.states is not None
        return self.alphabet.states.decode((self[index] >> 8).astype(np.uint8))

    def texts(self) -> list[str]:
        """Decode all sequences at once."""
        letters, at = self.alphabet.decode(self.codes), self.offsets.tolist()
        return [letters[start:stop] for start, stop in pairwise(at)]

    def between(self, start: int, stop: int) -> "Sequences":
        """Slice the set from ``start`` up to ``stop``; codes are a view."""
        offsets = self.offsets[start : stop + 1]
        codes = self.codes[offsets[0] : offsets[-1]]
        names = self.names[start:stop]
        return Sequences(names, codes, np.asarray(offsets - offsets[0]), self.alphabet)

    def take(self, indices: Any) -> "Sequences":
        """Return the sequences at ``indices``, in that order; the set itself if that
        is all of it."""
        index = np.asarray(indices, np.intp)
        if len(index) == len(self) and np.array_equal(index, np.arange(len(self))):
            return self
        ends = self.offsets[index].tolist(), self.offsets[index + 1].tolist()
        parts = [self.codes[start:stop] for start, stop in zip(*ends, strict=True)]
        return from_parts([self.names[i] for i in indices], parts, self.alphabet)

    def with_states(self, states: "Sequences") -> "Sequences":
        """Join a second track, such as 3Di states.

        Parameters
        ----------
        states : Sequences
            Of the same names and lengths.

        Returns
        -------
        Sequences
            Of both tracks, for a scoring of two.

        Raises
        ------
        InputError
            A name or a length differs, or there are two tracks already.
        """
        if self.alphabet.states or states.alphabet.states:
            raise InputError("a set of two tracks takes no further one")
        if not np.array_equal(self.offsets, states.offsets):
            lengths = zip(self.lengths.tolist(), states.lengths.tolist(), strict=False)
            at = next((k for k, (m, n) in enumerate(lengths) if m != n), -1)
            where = f"{len(self):,} and {len(states):,} sequences"
            if at >= 0:
                where = f"{written(self.names[at])} has {self.lengths[at]:,} residues "
                where += f"and {states.lengths[at]:,} states"
            raise InputError(f"two tracks of unequal lengths: {where}")
        for name, of_states in zip(self.names, states.names, strict=True):
            if name != of_states:
                different = f"{written(name)}, {written(of_states)}"
                raise InputError(f"two tracks of unequal names: {different}")
        codes = self.codes + states.codes.astype(np.uint16) * TRACK
        alphabet = replace(self.alphabet, states=states.alphabet)
        return Sequences(self.names, codes, self.offsets, alphabet)

    def track(self, which: int) -> "Sequences":
        """Select one of two tracks.

        Parameters
        ----------
        which : int
            0 for the first, 1 for the second.

        Returns
        -------
        Sequences

        Raises
        ------
        UsageError
            There is one track.
        """
        alphabet = self.alphabet.states if which else self.alphabet
        if self.alphabet.states is None or alphabet is None:
            raise UsageError("a set of one track")
        codes = (self.codes >> (8 * which)).astype(np.uint8)
        alphabet = replace(alphabet, states=None)
        return Sequences(self.names, codes, self.offsets, alphabet)


def from_parts(
    names: Iterable[str], parts: Sequence[np.ndarray], alphabet: Alphabet
) -> Sequences:
    """Names and code arrays -> one flat set."""
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    dtype = np.uint8 if alphabet.states is None else np.uint16
    flat = np.concatenate([np.zeros(0, np.uint8), *parts]).astype(dtype, copy=False)
    return Sequences(tuple(names), flat, offsets, alphabet)


def as_sequences(data: Any, alphabet: Alphabet) -> Sequences:
    """Convert any supported in-memory input to ``Sequences``.

    Accepts ``Sequences``; ``(codes, offsets)`` flat arrays in this alphabet's codes; a
    mapping of names to sequences; or an iterable of sequences in any of the forms of
    ``jaxalign.model.alphabet``. A single sequence is a mistake and is refused.
    """
    if isinstance(data, Sequences) and data.alphabet.states and not alphabet.states:
        data = data.track(int(data.alphabet.states.letters == alphabet.letters))
    if alphabet.states is not None:
        if type(data) is list:
            contents = contents_of(data)
            if all(getattr(x, "dtype", None) == np.uint16 for x in contents):
                return from_parts([str(x[0]) for x in data], contents, alphabet)
        if not (isinstance(data, Sequences) and data.alphabet == alphabet):
            raise InputError(
                "a scoring of two tracks takes the path of FASTA with states beside it "
                "(`jaxalign structures` writes both), or Sequences.with_states"
            )
        return data
    if isinstance(data, Sequences):
        if data.alphabet.letters == alphabet.letters:
            return data
        data = [(name, data.text(i)) for i, name in enumerate(data.names)]
    if is_flat(data):
        check_codes(data[0], alphabet, "flat codes")
        offsets = checked_offsets(data[1], len(data[0]))
        names = tuple(f"seq{i + 1}" for i in range(len(offsets) - 1))
        return Sequences(names, data[0].astype(np.uint8), offsets, alphabet)
    data = data if type(data) is list else items_of(data)
    if (encoded := from_texts(data, alphabet)) is not None:
        return encoded
    named = [_name_and_codes(item, i, alphabet) for i, item in enumerate(data)]
    names, parts = zip(*named, strict=True) if named else ((), ())
    return from_parts(names, list(parts), alphabet)


def from_texts(data: list, alphabet: Alphabet) -> Sequences | None:
    """Encode sequences at once that are all of type str; None where any is not, or has
    a letter that is not in the alphabet."""
    texts = contents_of(data)
    is_text = all(isinstance(text, str) for text in texts)
    if alphabet.states is not None or not is_text:
        return None
    names = tuple(
        str(item[0]) if isinstance(item, tuple) else f"seq{i + 1}"
        for i, item in enumerate(data)
    )
    offsets = np.array([*accumulate(map(len, texts), initial=0)], np.int64)
    codes = alphabet.encode("".join(texts))
    return None if (codes == BAD).any() else Sequences(names, codes, offsets, alphabet)


def contents_of(items: Iterable[Any]) -> list[Any]:
    """Contents of sequences, without their names."""
    return [x[1] if isinstance(x, tuple) and len(x) == 2 else x for x in items]


def is_flat(data: Any) -> bool:
    """Whether data are (codes, offsets)."""
    pair = isinstance(data, tuple) and len(data) == 2
    return pair and all(isinstance(part, np.ndarray) for part in data)


def checked_offsets(offsets: np.ndarray, length: int) -> np.ndarray:
    """Offsets of sequences in flat codes of a length, as int64."""
    if offsets.ndim != 1 or offsets.dtype.kind not in "iu":
        raise InputError(
            f"offsets must be integers in one dimension, not {offsets.dtype} of shape "
            f"{offsets.shape}"
        )
    within = len(offsets) and offsets[0] == 0 and offsets[-1] == length
    if not within or falls(offsets):
        raise InputError(f"offsets must rise from 0 to {length:,}, the number of codes")
    return offsets.astype(np.int64)


def falls(offsets: np.ndarray) -> bool:
    """Whether any offset is smaller than its predecessor."""
    return bool((offsets[1:] < offsets[:-1]).any())


def check_codes(codes: Any, alphabet: Alphabet, what: str) -> None:
    """Check that all codes are letters of the alphabet."""
    codes = np.asarray(codes)
    if codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise InputError(
            f"{what}: codes must be integers in one dimension, not {codes.dtype} of "
            f"shape {codes.shape}"
        )
    if codes.size and not 0 <= int(codes.min()) <= int(codes.max()) < alphabet.size:
        low, high = int(codes.min()), int(codes.max())
        raise InputError(
            f"{what}: codes must lie in 0..{alphabet.size - 1}, not {low}..{high}"
        )


def _name_and_codes(value: Any, index: int, alphabet: Alphabet):
    name, content, nucleic = item_of(value, index)
    name = f"seq{index + 1}" if name is None else name
    place = f"record {index + 1} ({written(name)})"
    if nucleic and alphabet.kind == "protein":
        raise UsageError(
            f"{place} is of type {nucleic}, and the matrix scores proteins: use "
            "scoring=Scoring.preset('blastn') or Scoring('NUC')"
        )
    if isinstance(content, np.ndarray):
        check_codes(content, alphabet, place)
        return name, content.astype(np.uint8)
    codes = alphabet.encode(content)
    bad = np.flatnonzero(codes == BAD)
    if bad.size:
        letter = content[bad[0]]
        letter = letter if isinstance(content, str) else chr(letter)
        rna = alphabet.kind == "dna" and letter in "Uu"
        hint = "; a Scoring with alphabet='rna' reads U" if rna else ""
        raise InputError(
            f"{place}, column {bad[0] + 1}: {letter!r} is not a letter; "
            f"{alphabet.rule()}{hint}"
        )
    return name, codes


def row_numbers(which: ArrayLike, count: int) -> np.ndarray:
    """A mask of ``count`` truth values, or numbers of rows -> numbers from 0."""
    which = np.asarray(which)
    if which.ndim != 1:
        raise UsageError(f"rows of shape {which.shape}: a mask or a list is needed")
    if which.dtype == bool:
        if len(which) != count:
            raise UsageError(f"a mask of {len(which):,} values for {count:,} rows")
        return np.flatnonzero(which)
    if not len(which):
        return np.zeros(0, np.intp)
    if which.dtype.kind not in "iu":
        raise UsageError(f"rows by {which.dtype}: bool or integers are needed")
    outside = (which < -count) | (which >= count)
    if outside.any():
        raise UsageError(f"row {which[outside][0]}: the table has {count:,} rows")
    return np.where(which < 0, which + count, which).astype(np.intp)


def gather_runs(runs: np.ndarray, offsets: np.ndarray, rows: np.ndarray):
    """Gather ragged rows of (runs, offsets), in the order of ``rows``."""
    counts = np.diff(offsets)[rows]
    gathered = np.concatenate([[0], np.cumsum(counts)])
    index = np.arange(gathered[-1]) + np.repeat(offsets[rows] - gathered[:-1], counts)
    return runs[index], gathered


def begins(*columns: np.ndarray) -> np.ndarray:
    """Whether each row of sorted columns differs from the one before it, bool (n,)."""
    starts = np.zeros(len(columns[0]), bool)
    starts[:1] = True
    for column in columns:
        starts[1:] |= column[1:] != column[:-1]
    return starts


def best_rows(
    groups: np.ndarray,
    keys: Sequence[np.ndarray],
    count: int,
    distinct: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Find the best ``count`` rows of each group.

    groups : integers (rows,)
    keys : arrays (rows,). The smallest comes first; each key decides where those before
        it are equal.
    distinct : whether rows of a group that are equal in all keys are one row.
    Returns rows and ranks, int64, by group and rank, which counts from 0.
    """
    order = np.lexsort((*keys[::-1], groups))
    if distinct:
        order = order[begins(groups[order], *(key[order] for key in keys))]
    of_row = groups[order]
    rank = np.arange(len(order)) - np.searchsorted(of_row, of_row)
    inside = rank < count
    return order[inside], rank[inside]


def join_best(
    tables: Sequence[np.ndarray],
    filled: np.ndarray,
    groups: np.ndarray,
    columns: Sequence[np.ndarray],
    keys_of: Callable[..., Sequence[np.ndarray]],
) -> None:
    """Join rows with the best of each group so far; a row may come twice.

    tables : arrays (groups, k). A row a group, the best first: they are changed.
    filled : bool (groups, k). Which of their entries are used.
    groups : integers (rows,)
    columns : arrays (rows,). What goes into each table.
    keys_of : columns -> keys of ``best_rows``.
    """
    changed = np.unique(groups)
    row, place = np.nonzero(filled[changed])
    row = changed[row]
    groups = np.concatenate([row, groups])
    pairs = zip(tables, columns, strict=True)
    joined = [np.concatenate([table[row, place], values]) for table, values in pairs]
    top = filled.shape[1]
    best, rank = best_rows(groups, keys_of(*joined), top, distinct=True)
    for table, column in zip(tables, joined, strict=True):
        table[groups[best], rank] = column[best]


def ranks(sizes: np.ndarray) -> np.ndarray:
    """0 … size - 1 of each size, one after the other."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)


def spans(sizes: np.ndarray, limit: int) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of runs of groups with at most ``limit`` members together, or
    of one larger group."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(ends):
        before = ends[start - 1] if start else 0
        stop = int(np.searchsorted(ends, before + limit, side="right"))
        stop = max(stop, start + 1)
        yield start, stop
        start = stop


def renumbered(labels: np.ndarray) -> np.ndarray:
    """Renumber groups from 0 in the order of their first members, int32."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.empty(len(first), np.int32)
    order[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return order[inverse]


@dataclass(frozen=True, eq=False)
class SequenceViews:
    """The views of ``Sequences`` that alignments are computed from.

    ``codes`` (uint8) are those of the whole set; ``starts`` and ``lengths`` are int64,
    one a sequence.
    """

    codes: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int) -> np.ndarray:
        start = self.starts[index]
        return self.codes[start : start + self.lengths[index]]


# Sequences as codes in one flat array.
CodedSequences = Sequences | SequenceViews


def views(sequences: Sequences, indices: np.ndarray) -> SequenceViews:
    """The sequences at ``indices``, in that order."""
    starts, lengths = sequences.starts[indices], sequences.lengths[indices]
    return SequenceViews(sequences.codes, starts, lengths)


def first_letters(sequences: "CodedSequences") -> Any:
    """The sequences by the letters that identities are of: of two tracks the first."""
    if sequences.codes.dtype != np.uint16:
        return sequences
    return replace(sequences, codes=first_track(sequences.codes))


def stacked(
    sequences: CodedSequences,
    index: np.ndarray,
    beyond: int = 0,
    shape: tuple[int, int] | None = None,
) -> np.ndarray:
    """Gather the codes of some sequences into the rows of one array.

    index : integers (P,)
    beyond : the code that fills a row beyond the end of its sequence, and further rows.
    shape : (rows, columns). At least (P, longest), which is the default.
    Returns codes (rows, columns), of the dtype of the sequences
    """
    starts, lengths = sequences.starts[index], sequences.lengths[index]
    shape = shape or (len(index), int(lengths.max(initial=0)))
    codes = np.full(shape, beyond, sequences.codes.dtype)
    total = int(lengths.sum())
    if total < SHORT * len(index):  # else a copy a row is faster
        inside = np.arange(codes.shape[1]) < lengths[:, None]
        place = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        codes[: len(index)][inside] = sequences.codes[place + np.arange(total)]
        return codes
    for row, start, length in zip(codes, starts.tolist(), lengths.tolist()):  # noqa: B905
        row[:length] = sequences.codes[start : start + length]
    return codes


def in_blocks(sequences: Sequences, residues: int, records: int) -> Iterator[Sequences]:
    """Yield views of a set in blocks; each ends with the record that reaches either
    number."""
    start, count = 0, len(sequences)
    while start < count:
        limit = sequences.offsets[start] + residues
        stop = int(np.searchsorted(sequences.offsets, limit, side="left"))
        stop = min(max(stop, start + 1), start + records, count)
        yield sequences.between(start, stop)
        start = stop


FEW = 4096  # texts that are joined at once: copies of more leave the cache
LETTERS_STRETCH = 2**18  # values that are looked at together
MAX_TABLE = 2**21  # values that a table has room for; those of Unicode are fewer


@dataclass(frozen=True, eq=False)
class LetterCodes:
    """Some sequences as one flat array of codes, and the number of codes.

    codes : uint8, uint16 or uint32 (letters,), each less than ``size``
    offsets : int64 (n + 1,)
    size : of all sets that were encoded together; some codes may have no letter.
    """

    codes: np.ndarray
    offsets: np.ndarray
    size: int

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        return self.codes[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """(n,) int64."""
        return np.diff(self.offsets)

    @property
    def starts(self) -> np.ndarray:
        """(n,) int64: where each begins."""
        return self.offsets[:-1]

    def chosen(self, which: np.ndarray) -> "LetterCodes":
        """Select sequences by number, int64."""
        if len(which) and (np.diff(which) == 1).all():  # a part, without a copy
            offsets = self.offsets[which[0] : which[-1] + 2]
            codes = self.codes[offsets[0] : offsets[-1]]
            return LetterCodes(codes, offsets - offsets[0], self.size)
        lengths = self.lengths[which]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        places = np.repeat(self.starts[which], lengths) + ranks(lengths)
        return LetterCodes(self.codes[places], offsets, self.size)

    def folded(self, size: int) -> "LetterCodes":
        """Fold the alphabet to at most ``size`` codes, some of which stand for several
        letters; no distance increases."""
        if self.size <= size:
            return self
        return LetterCodes((self.codes % size).astype(np.uint8), self.offsets, size)


def encode_letters(*sets: Any) -> tuple[LetterCodes, list[int]]:
    """Encode sets of sequences end to end; also return the size of each set.

    *sets : Sequences, mapping or iterable of sequences, or flat ``(codes, offsets)``.
        Sequences in the forms of ``jaxalign.model.alphabet``. Numbers of an array are
        letters.
    """
    parts = [_any_letters(sequences) for sequences in sets]
    lengths = np.concatenate([part.lengths for part in parts])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    filled = [part for part in parts if part.lengths.any()]
    if len({part.text for part in filled}) > 1:
        raise InputError(
            "some sequences are text and others numbers, which cannot be compared"
        )
    flat = _joined([array for part in filled for array in part.flat])
    if filled and all(part.distinct for part in filled):
        size, codes = _fewer(flat, set().union(*(part.distinct for part in filled)))
    else:
        size, codes = _numbered(flat)
    return LetterCodes(codes, offsets, size), [len(part.lengths) for part in parts]


class _SetLetters(NamedTuple):
    """Letters of a set as numbers, in consecutive arrays."""

    flat: list[np.ndarray]
    lengths: np.ndarray
    text: bool
    distinct: set[int]  # values of ASCII text or of bytes, else empty


def _fewer(flat: np.ndarray, distinct: set[int]) -> tuple[int, np.ndarray]:
    """Return (number of codes, codes below it) for ASCII letters."""
    low, high = min(distinct), max(distinct)
    if (high - low + 1).bit_length() == len(distinct).bit_length():
        flat -= np.uint8(low)  # as short as ranks
        return high - low + 1, flat
    ranks = np.zeros(256, np.uint8)
    ranks[sorted(distinct)] = np.arange(len(distinct))
    codes = flat.tobytes().translate(ranks.tobytes())
    return len(distinct), np.frombuffer(codes, np.uint8)


def _numbered(flat: np.ndarray) -> tuple[int, np.ndarray]:
    """Return (number of distinct values, rank of each value)."""
    if flat.min(initial=0) < 0 or flat.max(initial=0) >= MAX_TABLE:
        values, codes = np.unique(flat, return_inverse=True)
        return len(values), codes.astype(np.min_scalar_type(len(values)))
    seen = np.zeros(int(flat.max(initial=0)) + 1, bool)
    seen[flat] = True
    size = int(np.count_nonzero(seen))
    ranks = (np.cumsum(seen) - 1).clip(0).astype(np.min_scalar_type(size))
    return size, ranks.take(flat, mode="clip")


def _any_letters(data: Any) -> _SetLetters:
    if isinstance(data, Sequences):
        letters = data.alphabet.letters.encode()
        flat = first_track(data.codes).tobytes().translate(letters.ljust(256))
        flat = np.frombuffer(flat, np.uint8)
        return _SetLetters([flat], data.lengths, True, _distinct_values(flat))
    if is_flat(data):
        flat = _any_numbers(data[0])
        offsets = checked_offsets(data[1], len(flat))
        distinct = _distinct_values(flat) if flat.dtype == np.uint8 else set[int]()
        return _SetLetters([flat], np.diff(offsets), False, distinct)
    items = items_of(data)
    try:
        return _of_texts(items)
    except TypeError:  # some are no str
        items = [item_of(item, k).content for k, item in enumerate(items)]
    items = [x.decode("latin-1") if isinstance(x, bytes) else x for x in items]
    if all(isinstance(item, str) for item in items):
        return _of_texts(items)
    arrays = [_any_numbers(item) for item in items if len(item)]
    lengths = np.array([*map(len, items)], np.int64)
    return _SetLetters(arrays, lengths, False, set())


def _joined(arrays: list[np.ndarray]) -> np.ndarray:
    """Concatenate arrays of numbers, or their ranks where no NumPy integer holds all:
    int64 with uint64 would become float64, which takes neighbours for equal."""
    flat = [np.zeros(0, np.uint8), *arrays]
    if np.result_type(*flat).kind != "f":
        return np.concatenate(flat)
    exact = np.concatenate([array.astype(object) for array in flat])
    return np.unique(exact, return_inverse=True)[1]


def _of_texts(texts: list[str]) -> _SetLetters:
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    flat, at, distinct = np.empty(lengths.sum(), np.uint8), 0, set()
    for k in range(0, len(texts), FEW):
        text = "".join(texts[k : k + FEW])
        if not text.isascii():
            points = "".join(texts).encode("utf-32-le", "surrogatepass")
            return _SetLetters([np.frombuffer(points, "<u4")], lengths, True, set())
        letters = text.encode()
        flat[at : at + len(letters)] = np.frombuffer(letters, np.uint8)
        _add_letters(distinct, letters, flat[at : at + len(letters)])
        at += len(letters)
    return _SetLetters([flat], lengths, True, distinct)


def _distinct_values(flat: np.ndarray) -> set[int]:
    """Find the distinct values of an array of bytes."""
    distinct: set[int] = set()
    for at in range(0, len(flat), LETTERS_STRETCH):
        stretch = flat[at : at + LETTERS_STRETCH]
        _add_letters(distinct, stretch.tobytes(), stretch)
    return distinct


def _add_letters(distinct: set[int], letters: bytes, values: np.ndarray) -> None:
    """Add the letters of a text to a set; ``values`` is the text as an array."""
    # To look for a letter that is there takes no time.
    span = range(int(values.min(initial=255)), int(values.max(initial=0)) + 1)
    distinct.update(c for c in span if c not in distinct and c in letters)


def _any_numbers(item: Any) -> np.ndarray:
    array = np.asarray(item)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            "a sequence must be text or whole numbers in one dimension, not "
            f"{array.dtype} of shape {array.shape}"
        )
    return array
