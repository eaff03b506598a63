"""The one way in of every public function: whatever callers hold becomes ``Sequences``.

A ``Path`` is a file everywhere: FASTA, plain or gz, bz2, xz, zst, or an index that
``index_database`` made. A ``str`` is a sequence where one is wanted, and the path of a
file where a set is wanted. All other forms are those of ``jaxalign.model.alphabet``.
"""

import os
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from jaxalign.errors import InputError, UsageError
from jaxalign.model.alphabet import (
    AS_WRITTEN,
    LetterCodes,
    Reading,
    Sequences,
    as_sequences,
    contents_of,
    encode_letters,
    from_texts,
    is_flat,
    item_of,
    items_of,
)
from jaxalign.model.profile import Profile
from jaxalign.model.scoring import Scoring
from jaxalign.model.source import reads_again
from jaxalign.model.strands import (
    look_nucleic,
    nucleic_sets,
    protein_letters,
    seem_nucleic,
)

PATH = (str, os.PathLike)
NO_FILE = (
    "{}: no such file. Where a set of sequences is wanted, a str is the path of one; a "
    "single sequence is given as a list of one"
)


class Residues(Protocol):
    """Letters or codes: a str, bytes, an array, a biotite or Biopython sequence, and a
    (name, sequence) pair."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: Any, /) -> Any: ...


# A sequence and a set of sequences as a caller may hold them.
SequenceLike = Residues | os.PathLike[str]
SetLike = (
    str
    | os.PathLike[str]
    | Sequences
    | Mapping[str, SequenceLike]
    | Iterable[SequenceLike]
)


def sets(
    scoring: Scoring, *data: SetLike, reading: Reading = AS_WRITTEN
) -> list[Sequences]:
    """Encode sets of sequences, each in any form; warn of nucleotides scored as
    protein.

    Parameters
    ----------
    scoring : Scoring
        Its alphabet is that of the sequences.
    *data : str, Path, Sequences, mapping or iterable of sequences, (codes, offsets)
    reading : of files

    Returns
    -------
    list of Sequences

    Raises
    ------
    InputError
        A file cannot be read, a letter is not in the alphabet, or it is no set.
    UsageError
        Nucleotides by their type, and a scoring of proteins.

    Warns
    -----
    UserWarning
        Nucleotides by their letters, in all sets or in one, and a scoring of proteins.
    """
    encoded = [_set(sequences, scoring, reading) for sequences in data]
    _tell_of_nucleotides(scoring, encoded)
    return [sequences for sequences, _ in encoded]


def with_texts(
    scoring: Scoring,
    data: SetLike,
    reading: Reading = AS_WRITTEN,
    of_complex: bool = False,
) -> tuple[Sequences, list[str] | None]:
    """Encode a set as ``sets`` does, with the letters as they stand there: some of them
    may be read as another. None of what has no letters, or not all as str.

    of_complex : nucleotides among proteins are encoded as X
    """
    from jaxalign.io import encoded_database, fasta

    path = os.fspath(data) if isinstance(data, PATH) else ""
    if not (path == "-" or os.path.exists(path)) or encoded_database.is_database(path):
        if isinstance(data, (*PATH, Sequences)) or is_flat(data):
            texts = data.texts() if isinstance(data, Sequences) else None
            return sets(scoring, data, reading=reading)[0], texts
        contents = contents_of(items := items_of(data))
        has_letters = all(isinstance(text, str) for text in contents)
        texts = contents if has_letters else None
        if of_complex and texts is not None:
            names = [x[0] if isinstance(x, tuple) else f"seq{k + 1}"
                     for k, x in enumerate(items)]  # fmt: skip
            items = [*zip(names, map(protein_letters, texts), strict=True)]
        return sets(scoring, items, reading=reading)[0], texts
    raw = fasta.read_raw(path, reading=reading)
    read = fasta.proteins_alone(raw) if of_complex else raw
    sequences = fasta.encode(read, scoring.alphabet, reading.unknown)
    _tell_of_nucleotides(scoring, [(sequences, True)])
    return sequences, raw.texts()


def letters(*data: SetLike) -> tuple[LetterCodes, list[int]]:
    """Encode sets of sequences of any letters, one after the other: (codes, the size of
    each set); of a file its records.

    Raises
    ------
    InputError
        A file cannot be read, it is no set, or some letters are text and others
        numbers.
    """
    return encode_letters(*map(_as_text, data))


def _as_text(data: Any) -> Any:
    """Read a set if it is a file or an index."""
    from jaxalign.io import encoded_database, fasta

    if not isinstance(data, PATH):
        return data
    if isinstance(data, str) and data != "-" and not os.path.exists(data):
        raise InputError(NO_FILE.format(data[:60]))
    if encoded_database.is_database(os.fspath(data)):
        return encoded_database.open_database(os.fspath(data))
    return fasta.read_raw(data).texts()


def named_values(path: str, column: str) -> dict[str, str]:
    """Read a column of a table whose first column has names, and that has a heading.

    Raises
    ------
    InputError
        The file cannot be read, or a name comes twice.
    """
    from jaxalign.io import delimited

    return delimited.read_names(path, (), (column,))


def singles(scoring: Scoring, **data: SequenceLike) -> list[Sequences]:
    """Encode single sequences as sets of one; a sequence without a name has that of its
    argument.

    Parameters and errors are those of ``sets``, but a ``str`` is a sequence, and a
    file or a mapping has exactly one.
    """
    named = (_named(item, name, scoring) for name, item in data.items())
    encoded = [_encoded([item], scoring) for item in named]
    _tell_of_nucleotides(scoring, encoded)
    return [sequences for sequences, _ in encoded]


def threes(scoring: Scoring, triples: Any) -> Sequences:
    """Encode triples one after the other as one set; called a, b, c if they have no
    names.

    Parameters
    ----------
    triples : iterable
        Each three sequences, as in ``singles``; a mapping of three names to sequences,
        or the path of a file with three records. Or a set, or the path of a file, whose
        records are triples: 1 to 3, 4 to 6 and so on.

    Errors and warnings are those of ``sets``.
    """
    if isinstance(triples, (Sequences, os.PathLike)):
        (sequences,) = sets(scoring, triples)
        if len(sequences) % 3:
            raise InputError(
                f"{len(sequences):,} sequences: triples need three sequences each"
            )
        return sequences
    flat = [
        _named(item, letter, scoring)
        for triple in items_of(triples)
        for letter, item in zip("abc", _three(triple, scoring), strict=True)
    ]
    encoded = _encoded(flat, scoring)
    _tell_of_nucleotides(scoring, [encoded])
    return encoded[0]


def _three(triple: Any, scoring: Scoring) -> Sequence[Any]:
    """Return the three sequences of a triple, with their names where they have any."""
    if isinstance(triple, os.PathLike):
        read, _ = _read(triple, scoring)
        triple = list(zip(read.names, read.texts(), strict=True))
    if isinstance(triple, Sequences):
        codes = as_sequences(triple, scoring.alphabet)
        triple = [(name, codes[k]) for k, name in enumerate(triple.names)]
    items = triple if type(triple) in (tuple, list) else items_of(triple)
    if len(items) != 3:
        raise InputError(f"a triple has three sequences, not {len(items)}")
    return items


def _set(data: Any, scoring: Scoring, reading: Reading) -> tuple[Sequences, bool]:
    """Encode a set: (sequences, whether they were given as letters)."""
    if type(data) is list:
        return _encoded(data, scoring)
    if isinstance(data, Profile):
        raise UsageError(
            "a profile can only be a query, of align, align_profile or search"
        )
    if isinstance(data, PATH):
        return _read(data, scoring, reading)
    if isinstance(data, Sequences) or is_flat(data):
        return as_sequences(data, scoring.alphabet), False
    return _encoded(items_of(data), scoring)


def _encoded(items: list, scoring: Scoring) -> tuple[Sequences, bool]:
    if (encoded := from_texts(items, scoring.alphabet)) is not None:
        return encoded, True
    contents = contents_of(items)
    letters = not any(hasattr(content, "__array__") for content in contents)
    items = [_loaded(item, scoring) for item in items]
    return as_sequences(items, scoring.alphabet), letters


def _named(item: Any, name: str, scoring: Scoring):
    """Return a single sequence with a name: that of its argument, if it has none."""
    if type(item) is str:
        return name, item
    if isinstance(item, (Sequences, Mapping)):
        if len(item) != 1:
            raise InputError(f"{name}: has {len(item)} sequences; one is needed")
        if isinstance(item, Mapping):
            ((called, sequence),) = item.items()
        else:
            called, sequence = item.names[0], as_sequences(item, scoring.alphabet)[0]
        item = called, sequence
    item = _loaded(item, scoring)
    return (name, item) if item_of(item, 0).name is None else item


def _loaded(item: Any, scoring: Scoring):
    """Read an item that is a path: (name, text) of the one record of the file."""
    (path,) = contents_of([item])
    if not isinstance(path, os.PathLike):
        return item
    read, _ = _read(path, scoring)
    if len(read) != 1:
        raise InputError(f"{path}: has {len(read)} records; one is needed")
    content = read[0] if scoring.tracks else read.text(0)
    return (read.names[0] if item is path else item[0]), content


def _read(
    path: str | os.PathLike[str], scoring: Scoring, reading: Reading = AS_WRITTEN
) -> tuple[Sequences, bool]:
    """Read a file: (sequences, whether they are letters there)."""
    from jaxalign.io import encoded_database, fasta

    if isinstance(path, str) and path != "-" and not os.path.exists(path):
        raise InputError(NO_FILE.format(path[:60]))
    path = os.fspath(path)
    if encoded_database.is_database(path):
        return encoded_database.mapped(path, scoring.alphabet), False
    raw = fasta.read_raw(path, reading=reading)
    return fasta.encode(raw, scoring.alphabet, reading.unknown), True


def _tell_of_nucleotides(
    scoring: Scoring, encoded: list[tuple[Sequences, bool]]
) -> None:
    """Warn where all letters of a call, or of one of its sets, are nucleotides and are
    scored as protein."""
    letters = [sequences for sequences, has_letters in encoded if has_letters]
    if scoring.alphabet.kind != "protein" or scoring.tracks or not letters:
        return
    nucleic = nucleic_sets(letters)
    if all(nucleic):
        warnings.warn(
            f"all letters are nucleotides, and {scoring.matrix_name} scores proteins: "
            "use scoring=Scoring.preset('blastn') or Scoring('NUC')",
            stacklevel=_outside(),
        )
    elif any(nucleic):
        _tell_of_some("some sequences", scoring)


def tell_of_file(
    scoring: Scoring, corpus: SetLike, queries: Any, encoded: Sequences
) -> None:
    """Warn where a corpus that is read in blocks begins with nucleotides that are
    scored as protein; of what is held in memory, and of queries, ``sets`` warns.

    queries : as they were given; whoever made codes of them chose an alphabet
    encoded : the same
    """
    if isinstance(queries, (Sequences, Profile)) or not isinstance(corpus, PATH):
        return
    if scoring.alphabet.kind != "protein" or seem_nucleic([encoded]):
        return
    from jaxalign.io import corpus_files, encoded_database

    path = os.fspath(corpus)
    if os.path.exists(path):
        path = corpus_files.files_of(path)[0]
        if reads_again(path) and not encoded_database.is_database(path):
            if look_nucleic(corpus_files.opening(path)):
                _tell_of_some(path, scoring)


def _tell_of_some(which: str, scoring: Scoring) -> None:
    warnings.warn(
        f"all letters of {which} are nucleotides, and {scoring.matrix_name} scores "
        "proteins: translate them first",
        stacklevel=_outside(),
    )


def _outside() -> int:
    """Count the frames from the caller up to the entry of the package."""
    level, frame = 1, sys._getframe(1)
    inside = frame.f_globals["__name__"].partition(".")[0]
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] == inside:
        level, frame = level + 1, frame.f_back
    return level
