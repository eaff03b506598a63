"""``jaxalign matrices [NAME]``: the substitution matrices, in NCBI format."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def matrices(name: str | None = None, /) -> int:
    """List the bundled substitution matrices, or print one in NCBI format.

    Parameters
    ----------
    name
        A bundled matrix, or a matrix file to be read and checked.
    """
    from jaxalign.cli.terminal import answer
    from jaxalign.model import matrix

    if name is None:
        answer(matrix.matrix_names())
    else:
        answer(ncbi_lines(name, *matrix.load(name)))
    return 0


def ncbi_lines(name: str, letters: str, scores: "np.ndarray") -> Iterator[str]:
    """The lines of an NCBI matrix file."""
    cells = [[f"{value:g}" for value in row] for row in scores.tolist()]
    width = 1 + max(len(cell) for row in cells for cell in row)
    yield f"# {name}"
    yield " " + "".join(letter.rjust(width) for letter in letters)
    for letter, row in zip(letters, cells, strict=True):
        yield letter + "".join(cell.rjust(width) for cell in row)
