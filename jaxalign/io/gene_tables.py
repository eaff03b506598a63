"""Tables of V genes: their distances, or the loops that distances are computed from.

Tab-separated text with a heading; the first column has the names of genes.
"""

from jaxalign.errors import InputError
from jaxalign.io.source import label, open_text


def read(path: str) -> tuple[list[str], dict[str, list[str]]]:
    """(the other columns of the heading, the fields of each gene).

    Raises
    ------
    InputError
        A line has more or fewer fields than the heading, or a gene comes twice.
    """
    with open_text(path) as handle:
        lines = [line.rstrip("\r\n").split("\t") for line in handle if line.strip()]
    if not lines:
        raise InputError(f"{label(path)}: the file is empty")
    genes: dict[str, list[str]] = {}
    for number, fields in enumerate(lines[1:], 2):
        if len(fields) != len(lines[0]):
            raise InputError(
                f"{label(path)}, line {number}: {len(fields)} fields, the heading has "
                f"{len(lines[0])}"
            )
        if fields[0] in genes:
            raise InputError(f"{label(path)}, line {number}: {fields[0]!r} comes twice")
        genes[fields[0]] = fields[1:]
    return lines[0][1:], genes


def distances(path: str) -> dict[tuple[str, str], float]:
    """The distance of each pair of genes, of a square table.

    Raises
    ------
    InputError
        Rows and columns differ, or a distance is no number.
    """
    names, rows = read(path)
    if sorted(names) != sorted(rows):
        raise InputError(f"{label(path)}: rows and columns need the same genes")
    genes: dict[tuple[str, str], float] = {}
    for gene, fields in rows.items():
        for other, field in zip(names, fields, strict=True):
            try:
                genes[gene, other] = float(field)
            except ValueError:
                raise InputError(
                    f"{label(path)}: {gene}, {other}: {field!r} is no number"
                ) from None
    return genes
