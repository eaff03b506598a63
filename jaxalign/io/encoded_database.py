"""An encoded database as one file that is mapped: 10^8 residues open in 15 ms.

The file, all numbers little-endian, every section at a multiple of 64 bytes::

    page     4096 bytes: b"JAXALNDB", version u32, CRC-32 of the text u32, its length
             u32, then the text: JSON of alphabet, counts, and for each section its
             name, offset, bytes and CRC-32; zeros to the end
    codes    uint8, all sequences end to end, in the codes of the alphabet; uint16 of
             two tracks, the second one in the upper byte
    offsets  int64 (records + 1), sequence i is codes[offsets[i]:offsets[i + 1]]
    names    UTF-8, all names end to end
    places   int64 (records + 1), name i is names[places[i]:places[i + 1]]
    taxa     int32 (records), -1 for none; only where a heading has one

The letters of the alphabet stand in the page, and as ``states`` those of a second
track, so that codes mean the same in every version of this program and of its
dependencies. An index of two tracks is of version 2, which earlier programs refuse.
"""

import json
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, BinaryIO

import numpy as np

from jaxalign.errors import InputError
from jaxalign.io import output
from jaxalign.model.alphabet import (
    TRACK,
    Alphabet,
    Names,
    Sequences,
    falls,
    first_track,
    names_of,
)

MAGIC, VERSION, TWO_TRACKS = b"JAXALNDB", 1, 2
PAGE, ALIGNED = 4096, 64
SUFFIX = ".jaxdb"
STRETCH = 2**20  # entries that are checked together
_HEAD = struct.Struct("<8sIII")
_SECTIONS = {"codes": "<u1", "offsets": "<i8", "names": "<u1", "places": "<i8"}
_SECTIONS |= {"taxa": "<i4"}  # which an index may lack


def is_database(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins like an index; False if it cannot be opened."""
    try:
        if not os.path.isfile(path):  # to open a pipe would wait for who writes it
            return False
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):  # or no name of a file
        return False


def create(
    path: str,
    blocks: Iterable[Sequences],
    alphabet: Alphabet,
    force: bool = False,
    taxa: Sequence[np.ndarray] = (),
) -> dict:
    """Write an index of blocks in the order of the database, one in memory at a time;
    the file appears under its name when it is complete.

    taxa : of all records, int32, once the blocks are read; nothing if they are not kept

    Returns its ``records``, ``residues``, ``longest`` and ``bytes``.
    """
    output.check(path, force)
    sizes = {}

    def fill(temporary: str) -> None:
        with open(temporary, "w+b") as file:
            sizes.update(_fill(file, blocks, alphabet, taxa))

    output.write_file(path, fill)
    return sizes


def _fill(
    file: BinaryIO,
    blocks: Iterable[Sequences],
    alphabet: Alphabet,
    taxa: Sequence[np.ndarray],
) -> dict:
    file.write(bytes(PAGE))
    lengths, widths = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    names, crc = bytearray(), 0
    for block in blocks:
        codes = block.codes.astype(_codes_type(alphabet.states), copy=False)
        crc = zlib.crc32(codes.data, crc)
        file.write(codes.data)
        lengths.append(block.lengths)
        words = names_of(block.names)
        widths.append(np.diff(words.places))
        names += words.text.data
    offsets, places = (np.cumsum(np.concatenate(x)) for x in (lengths, widths))
    width = np.dtype(_codes_type(alphabet.states)).itemsize
    sections = {"codes": [PAGE, int(offsets[-1]) * width, crc]}
    flat = np.frombuffer(bytes(names), np.uint8)
    arrays = {"offsets": offsets, "names": flat, "places": places}
    if any((x >= 0).any() for x in taxa):
        arrays["taxa"] = np.concatenate(taxa)
    for name, values in arrays.items():
        # [offset, bytes, CRC-32] of a section, which begins at an aligned place.
        section = values.astype(_SECTIONS[name])
        file.write(bytes(-file.tell() % ALIGNED))
        sections[name] = [file.tell(), section.nbytes, zlib.crc32(section.data)]
        file.write(section.data)
    size = file.tell()
    about = {
        "records": len(offsets) - 1,
        "residues": int(offsets[-1]),
        "longest": int(np.diff(offsets).max(initial=0)),
        "bytes": size,
    }
    tracks = {"alphabet": alphabet}
    version = VERSION if alphabet.states is None else TWO_TRACKS
    tracks |= {} if alphabet.states is None else {"states": alphabet.states}
    fields = "letters", "wildcard", "kind"
    written = {x: {y: getattr(z, y) for y in fields} for x, z in tracks.items()}
    text = json.dumps(about | written | {"sections": sections}).encode()
    file.seek(0)
    file.write(_HEAD.pack(MAGIC, version, zlib.crc32(text), len(text)) + text)
    return about


def _codes_type(states: object) -> str:
    return "<u1" if states is None else "<u2"


def open_database(path: str | os.PathLike[str], verify: bool = False) -> Sequences:
    """Map an index that ``create`` wrote; names are decoded when they are asked for.

    The page, the size of the file, every offset and the largest code are checked: 15 ms
    for 10^8 residues that are in memory, and no copy of them. ``verify`` reads all of
    it and compares the checksums as well.
    """
    path = os.fspath(path)
    about, alphabet = _about(path)
    names = [name for name in _SECTIONS if name in about["sections"]]
    parts = {name: _section(path, about, name) for name in names}
    if verify:
        for name, values in parts.items():
            _same(path, zlib.crc32(values.data) == about["sections"][name][2], name)
    for name, flat in (("offsets", "codes"), ("places", "names")):
        # Offsets rise from 0 to the length of the flat array.
        offsets, end = parts[name], len(parts[flat])
        rises = not any(falls(stretch) for stretch in _stretches(offsets))
        _same(path, rises and offsets[0] == 0 and offsets[-1] == end, name)
    for codes in _stretches(parts["codes"]):
        right = int(first_track(codes).max()) < alphabet.size
        if alphabet.states is not None:
            right &= int(codes.max()) // TRACK < alphabet.states.size
        _same(path, right, "codes")
    words: Any = Names(parts["names"], parts["places"])
    return Sequences(words, parts["codes"], parts["offsets"], alphabet)


def taxa_of(path: str | os.PathLike[str]) -> np.ndarray | None:
    """Map the taxa of the records of an index, int32 (records,), -1 for none; None if
    it has no taxa."""
    path = os.fspath(path)
    about, _ = _about(path)
    return _section(path, about, "taxa") if "taxa" in about["sections"] else None


def _section(path: str, about: dict, name: str) -> np.ndarray:
    """Map a section."""
    (start, size, _), kind = about["sections"][name], np.dtype(_SECTIONS[name])
    if name == "codes":
        kind = np.dtype(_codes_type(about.get("states")))
    if not size:  # there is nothing to map
        return np.zeros(0, kind)
    return np.asarray(np.memmap(path, kind, "r", start, size // kind.itemsize))


def mapped(path: str | os.PathLike[str], alphabet: Alphabet) -> Sequences:
    """Map an index and check its alphabet; one of DNA is read as RNA, or in turn."""
    sequences, second = open_database(path), alphabet.states
    states = sequences.alphabet.states
    if states is not None and second is None:
        sequences = sequences.track(int(states.letters == alphabet.letters))
    elif second is not None and (states is None or states.letters != second.letters):
        raise InputError(
            f"{path}: has not both tracks of the scoring: make an index for this "
            "scoring, such as `jaxalign index --preset foldseek`"
        )
    if {sequences.alphabet.kind, alphabet.kind} == {"dna", "rna"}:
        sequences = replace(sequences, alphabet=alphabet)
    if sequences.alphabet.letters != alphabet.letters:
        raise InputError(
            f"{path}: was made for the {sequences.alphabet.kind} letters "
            f"{sequences.alphabet.letters}, and the scoring has the {alphabet.kind} "
            f"letters {alphabet.letters}: make an index for this scoring"
        )
    return sequences


def _stretches(values: np.ndarray) -> Iterator[np.ndarray]:
    """Yield views that cover an array and overlap by one element, so that temporaries
    stay small for any file size."""
    for start in range(0, len(values), STRETCH):
        yield values[start : start + STRETCH + 1]


def _about(path: str) -> tuple[dict, Alphabet]:
    """Read and check the header page; return its text and alphabet."""
    try:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            page = file.read(PAGE)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", error)
        raise InputError(f"{path}: cannot be read ({why})") from error
    if page[: len(MAGIC)] != MAGIC:
        raise InputError(f"{path}: is not an index; `jaxalign index` makes one")
    if len(page) < PAGE:
        raise InputError(f"{path}: the index is truncated; make it again")
    _, version, crc, length = _HEAD.unpack_from(page)
    if version not in (VERSION, TWO_TRACKS):
        raise InputError(
            f"{path}: is an index of version {version}, this program reads versions "
            f"{VERSION} and {TWO_TRACKS}; make it again with `jaxalign index`"
        )
    text = page[_HEAD.size : _HEAD.size + length]
    _same(path, zlib.crc32(text) == crc, "first page")
    try:
        about = json.loads(text)
        states = Alphabet(**about["states"]) if "states" in about else None
        written, alphabet = about["bytes"], Alphabet(**about["alphabet"], states=states)
        places = _places(about, written)
    except (ValueError, TypeError, KeyError, RecursionError):
        written, alphabet, places = size, Alphabet("A"), False
    _same(path, places, "first page")
    if written != size:
        raise InputError(
            f"{path}: the index has {size} bytes, {written} were written; it is "
            "truncated or was appended to: make it again"
        )
    return about, alphabet


def _places(about: dict, size: int) -> bool:
    """Whether each section lies in the file and has the size that the counts imply."""
    counts = {
        "codes": about["residues"],
        "offsets": about["records"] + 1,
        "names": None,
        "places": about["records"] + 1,
    }
    if "taxa" in about["sections"]:
        counts["taxa"] = about["records"]
    for name, count in counts.items():
        start, length, crc = about["sections"][name]
        item = np.dtype(_SECTIONS[name]).itemsize
        item *= 1 + (name == "codes" and "states" in about)
        integers = all(type(number) is int for number in (start, length, crc, size))
        if (
            not integers
            or start % ALIGNED
            or not PAGE <= start <= start + length <= size
        ):
            return False
        if count is not None and (type(count) is not int or length != count * item):
            return False
    return about["records"] >= 0


def _same(path: str, right: bool, what: str) -> None:
    if not right:
        raise InputError(f"{path}: the index is damaged ({what}); make it again")
