"""Embeddings in npz files, one array a name, and alignments of them as tsv."""

from collections.abc import Iterable, Iterator

import numpy as np

from jaxalign.errors import InputError
from jaxalign.model import names, operations
from jaxalign.model.alignment import Alignment
from jaxalign.model.source import refuse_endless

HEADING = (
    "query", "target", "score", "query_start", "query_end", "target_start",
    "target_end", "cigar", "partners",
)  # fmt: skip


def read(path: str) -> dict[str, np.ndarray]:
    """Read the arrays of an npz file by name, in its order: float32 (residues, k)."""
    refuse_endless(path, path)
    try:
        # NumPy would leave a damaged file open that it has opened itself.
        with open(path, "rb") as source, np.load(source, allow_pickle=False) as file:
            matrices = {name: file[name] for name in file.files}
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error})") from error
    except Exception as error:  # damaged files fail in as many ways as there are
        raise InputError(f"{path}: not an npz file of arrays ({error})") from error
    widths = {x.shape[1] for x in matrices.values() if x.ndim == 2}
    arrays = {}
    for name, x in matrices.items():
        kind = f"{path}: array {name!r} of {x.dtype}, shape {x.shape}"
        if x.ndim != 2 or x.dtype.kind not in "fiu":
            raise InputError(f"{kind}: an array of numbers (residues, k) is needed")
        if len(widths) > 1:
            raise InputError(f"{kind}: all arrays need the same k, not {widths}")
        with np.errstate(over="ignore"):
            arrays[name] = x.astype(np.float32)
        if not np.isfinite(arrays[name]).all():
            raise InputError(f"{kind}: has entries that are nan or infinite")
    return arrays


def largest_score(query: np.ndarray, target: np.ndarray) -> float:
    """Upper bound on products of two vectors and on their partial sums: the product of
    the largest norms (Cauchy-Schwarz)."""
    lengths = (
        np.linalg.norm(x.astype(np.float64), axis=1).max(initial=0)
        for x in (query, target)
    )
    return float(np.prod([*lengths]))


def tsv(
    alignments: Iterable[Alignment], partners: Iterable[np.ndarray]
) -> Iterator[str]:
    """Lines of text: a heading, and one line for each alignment.

    ``partners`` are written from 0, separated by commas, -1 for none.
    """
    yield "\t".join(HEADING) + "\n"
    for x, to in zip(alignments, partners, strict=True):
        spans = (x.query_start, x.query_end, x.target_start, x.target_end)
        fields = (
            names.written(x.query_name),
            names.written(x.target_name),
            f"{x.score:.6g}",
            *map(str, spans),
            operations.cigar(x.operations),
            ",".join(map(str, to.tolist())) or "*",
        )
        yield "\t".join(fields) + "\n"
