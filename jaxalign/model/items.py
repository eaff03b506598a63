"""One sequence in whatever form a caller holds it: its name, its letters or codes.

Known forms: str, bytes, an array of codes, biotite's sequences, Biopython's ``Seq`` and
``SeqRecord``, and a pair (name, any of these). Neither library is imported for the
question: who holds one of its objects has imported it.
"""

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from jaxalign.errors import InputError
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
    """Any known form -> an ``Item``.

    Parameters
    ----------
    value : object
    number : int
        Its place in the set, from 0, for messages.

    Raises
    ------
    InputError
        It is no sequence.
    """
    if isinstance(value, tuple) and len(value) == 2:
        inner = item_of(value[1], number)
        return inner._replace(name=str(value[0]))
    if isinstance(value, (str, bytes)):
        return Item(None, value)
    for known in (_of_biotite, _of_biopython, _of_array):
        if (item := known(value)) is not None:
            return item
    what = f"record {number + 1}: a {type(value).__name__} is no sequence"
    raise InputError(f"{what}; {FORMS} is")


def items_of(data: Any) -> list:
    """The sequences of a set, those of a mapping as (name, sequence).

    Raises
    ------
    InputError
        It is no set, or a single sequence.
    """
    if isinstance(data, Mapping):
        return list(data.items())
    single = isinstance(data, (str, bytes, bytearray)) or any(
        known(data) is not None for known in (_of_biotite, _of_biopython)
    )
    if single or (isinstance(data, np.ndarray) and data.ndim == 1 and _numbers(data)):
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
            f"a {type(data).__name__} is no set of sequences: a list of them, a "
            "mapping of names to them, or the path of a file is needed"
        ) from None


def text_of(item: Item, number: int) -> tuple[str, Any]:
    """(name, content) of an item; without a name it is ``seq1`` and so on."""
    return f"seq{number + 1}" if item.name is None else item.name, item.content


def place(name: str, number: int) -> str:
    """How messages call a sequence."""
    return f"record {number + 1} ({written(name)})"


def _of_biotite(value: Any) -> Item | None:
    library = sys.modules.get("biotite.sequence")
    if library is None or not isinstance(value, library.Sequence):
        return None
    nucleic = isinstance(value, library.NucleotideSequence)
    return Item(None, str(value), type(value).__name__ if nucleic else None)


def _of_biopython(value: Any) -> Item | None:
    records, sequences = map(sys.modules.get, ("Bio.SeqRecord", "Bio.Seq"))
    if records is not None and isinstance(value, records.SeqRecord):
        name = None if value.id in NO_NAME else str(value.id)
        kind = str(value.annotations.get("molecule_type") or "")
        nucleic = kind if kind.upper().endswith(("DNA", "RNA")) else None
        return Item(name, _letters(value.seq, name or "a SeqRecord"), nucleic)
    known = sequences and (sequences.Seq, sequences.MutableSeq)
    if known and isinstance(value, known):
        return Item(None, _letters(value, f"a {type(value).__name__}"))
    return None


def _letters(sequence: Any, name: str) -> str:
    """The letters of a ``Seq``, which may have none: unknown, only its length."""
    try:
        return str(sequence)
    except Exception as error:
        raise InputError(f"{name}: {error}") from error


def _of_array(value: Any) -> Item | None:
    """Codes in an array of numpy, of JAX, or of whoever offers one as numpy's."""
    if not isinstance(value, np.ndarray) and not hasattr(value, "__array__"):
        return None
    try:
        return Item(None, np.asarray(value))
    except Exception as error:  # whatever the owner of an array may raise
        why = next(iter(str(error).splitlines()), "")
        raise InputError(
            f"a {type(value).__name__} has no values that can be read ({why}). Inside "
            "jax.jit there are none yet: call this function outside of it"
        ) from error


def _numbers(array: np.ndarray) -> bool:
    return array.dtype.kind in "biuf"
