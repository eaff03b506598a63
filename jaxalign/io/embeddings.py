"""Embeddings in npz files, one array a name, and alignments of them as tsv."""

from collections.abc import Iterable, Iterator

import numpy as np

from jaxalign.errors import InputError
from jaxalign.model import names, operations
from jaxalign.model.alignment import Alignment

HEADING = (
    "query", "target", "score", "query_start", "query_end", "target_start",
    "target_end", "cigar", "partners",
)  # fmt: skip


def read(path: str) -> dict[str, np.ndarray]:
    """The arrays of an npz file by name, in its order: float32 (residues, k) each.

    Raises
    ------
    InputError
        No such file, or an array that is no table of finite numbers, or whose k
        differs from that of the first.
    """
    try:
        # NumPy would leave a damaged file open that it has opened itself.
        with open(path, "rb") as source, np.load(source, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error})") from error
    except Exception as error:  # damaged files fail in as many ways as there are
        raise InputError(f"{path}: not an npz file of arrays ({error})") from error
    widths = {x.shape[1] for x in found.values() if x.ndim == 2}
    for name, x in found.items():
        kind = f"{path}: array {name!r} of {x.dtype}, shape {x.shape}"
        if x.ndim != 2 or x.dtype.kind not in "fiu":
            raise InputError(f"{kind}: numbers (residues, k) are needed")
        if len(widths) > 1:
            raise InputError(f"{kind}: all arrays need the same k, not {widths}")
        if not np.isfinite(x).all():
            raise InputError(f"{kind}: it has entries that are nan or infinite")
    return {name: x.astype(np.float32) for name, x in found.items()}


def tsv(
    alignments: Iterable[Alignment], partners: Iterable[np.ndarray]
) -> Iterator[str]:
    """Lines of text: a heading, and one line for each alignment.

    ``partners`` are written from 0, separated by commas, -1 for none.
    """
    yield "\t".join(HEADING) + "\n"
    for one, to in zip(alignments, partners, strict=True):
        spans = (one.query_start, one.query_end, one.target_start, one.target_end)
        fields = (
            names.written(one.query_name),
            names.written(one.target_name),
            f"{one.score:.6g}",
            *map(str, spans),
            operations.cigar(one.operations),
            ",".join(map(str, to.tolist())) or "*",
        )
        yield "\t".join(fields) + "\n"
