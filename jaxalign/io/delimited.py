"""Delimited tables: names and what belongs to them, pairs, receptors, genes, edges.

Tables of names and of pairs have two or more columns, apart by tabs, or by commas in a
file without tabs; or they are Parquet, where the suffix says so. The first line of a
table of names is a heading where it begins with one of ``HEADINGS``, or has the name of
the column that is meant, and does not begin with the name of a sequence. That of a
table of pairs has two of ``PAIR_HEADINGS``, or one of ``PARTS`` for its parts.

Tables of receptors and of V genes have a heading. Receptors come in the format of the
AIRR Community (Vander Heiden et al. 2018): one chain a line, which may lack fields that
are empty at its end, and a column ``junction_aa`` has the CDR3 with the two residues
around it.
"""

import csv
import io
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any

import numpy as np

from jaxalign.errors import InputError, UsageError, nearest_word
from jaxalign.io import arrow, output
from jaxalign.io.corpus_files import headings
from jaxalign.io.fasta import BYTE_ORDER_MARK, IS_SPACE, NEWLINE
from jaxalign.model.names import read_back, written
from jaxalign.model.numbers import printed_beside, texts_beside
from jaxalign.model.source import label, open_bytes, open_text

HEADINGS = (
    "name", "ac", "id", "accession", "entry", "identifier", "sequence", "seqid",
    "seq_id", "header", "protein", "query",
)  # fmt: skip
PAIR_HEADINGS = (
    *HEADINGS, "", "seq", "target", "subject", "reference", "source", "receptor",
    "ligand", "antibody", "antigen", "epitope", "peptide", "compound", "molecule",
    "drug", "smiles", "group", "interactor", "partner", "uniprot", "gene", "first",
    "second",
)  # fmt: skip
# What may follow such a word: protein1, interactor_a, uniprot_id_b.
NUMBERED = re.compile(r"([\s_.#-]*(id|ac|name|[12ab]))*$")
PARTS = ("part", "split", "fold", "set")
EDGE_HEADING = "receptor\tneighbour\tdistance\n"
PARQUET = ".parquet"
STRETCH = 2**20  # bytes that are searched together
SEPARATORS = {"": "\t", ".tsv": "\t", ".txt": "\t", ".csv": ","}
Rows = list[tuple[int, list[str]]]
EdgeColumns = tuple[Any, Any, Any]  # (i, j, distance), integers (edges,) each


def rows_of(path: str, buffer: bytes | None = None, titled: bool = False) -> Rows:
    """Read the number and the fields of every line that is not blank.

    A heading whose fields are all quoted, as R writes it, has quoted text below it; a
    first column without a name, the index that pandas writes, is left out.

    buffer : what ``io.source.keep`` returned.
    titled : every column has a title, if an empty one: all stay, and no row has more
        fields. The last line may not be short and without a line end, as of a file that
        was cut.
    """
    if str(path).lower().endswith(PARQUET):
        return list(enumerate(arrow.read_rows(path), 1))
    with open_text(path, buffer) as handle:
        lines = list(handle)
    cut = bool(lines) and not lines[-1].endswith("\n")
    lines = [line.rstrip("\n") for line in lines]
    tabs, rows = any("\t" in line for line in lines), []
    first = next((line for line in lines if line.strip()), "")
    quoted = all(re.fullmatch('\\s*".*"\\s*', field) for field in first.split("\t"))
    try:
        for number, line in enumerate(lines, 1):
            if line.strip():
                separator = "\t" if tabs else ","
                fields = (
                    next(csv.reader([line], delimiter=separator, skipinitialspace=True))
                    if quoted or not tabs
                    else line.split("\t")
                )
                rows.append((number, [field.strip() for field in fields]))
    except csv.Error as error:
        raise InputError(f"{label(path)}: {error}") from error
    if titled and cut and rows and len(rows[-1][1]) < len(rows[0][1]):
        why = "the file ends within this line, and without a line end: it may be cut"
        raise _wrong(path, rows[-1][0], why)
    if not titled and rows and rows[0][1][0] == "" and any(rows[0][1]):
        rows = [(number, fields[1:]) for number, fields in rows]
    elif len(rows) > 1 and quoted and len(rows[0][1]) + 1 == len(rows[1][1]):
        why = "the rows have one field more than the heading, as R writes row names"
        raise _wrong(path, rows[0][0], f"{why}\nhint: write.table(row.names = FALSE)")
    return rows


def _wrong(path: str, number: int, why: str) -> InputError:
    return InputError(f"{label(path)}, line {number}: {why}")


@dataclass(frozen=True, eq=False)
class KnownNames:
    """Names of sequences: first words of headings, and the headings, whole.

    names : collection of str. First words, in the order of the file where it is named.
    path : the FASTA that they come from, if it can be read again.
    """

    names: Collection[str]
    path: str | None = None

    def resolve(self, text: str) -> str:
        """Return the sequence name for a whole heading, or the text unchanged."""
        if text in self.names or len(text.split()) < 2:
            return text
        return self._whole.get(" ".join(text.split()), text)

    @cached_property
    def _whole(self) -> dict[str, str]:
        """Map each heading that occurs once to its first word."""
        if self.path is None:
            return {}
        whole: dict[str, str] = {}
        twice = set()
        for heading, name in zip(headings(self.path), self.names, strict=False):
            text = " ".join(heading.split())
            twice |= {text} & whole.keys()
            whole[text] = name
        return {text: name for text, name in whole.items() if text not in twice}


def read_names(
    path: str,
    names: Collection[str] | KnownNames,
    columns: tuple[str, ...] = (),
    column: str | None = None,
) -> dict[str, str]:
    """Read a two-column mapping: first column to the selected one.

    names : collection of str, or KnownNames. Of the sequences that the table is about:
        the row of one of them is no heading.
    columns : what the heading may call the column that is meant, the first that is
        there; else it is the second.
    column : what the heading has to call it.
    """
    sequence_names = names if isinstance(names, KnownNames) else KnownNames(names)
    rows, place = rows_of(path), 1
    if rows and _is_heading(
        path, rows, sequence_names, (column,) if column else columns
    ):
        _, heading = rows.pop(0)
        if column is not None:
            _check_column(path, heading[1:], column)
        lower, candidates = [name.lower() for name in heading], columns
        if column is not None:
            lower, candidates = heading, (column,)
        place = next((lower.index(x, 1) for x in candidates if x in lower[1:]), 1)
    elif column is not None:
        raise InputError(
            f"{label(path)}: the file has no heading, which must name the column "
            f"{column!r}"
        )
    table: dict[str, str] = {}
    for number, fields in rows:
        if len(fields) <= place or not fields[0] or not fields[place]:
            why = "a name and what belongs to it are needed, apart by a tab"
            raise _wrong(path, number, why)
        name = sequence_names.resolve(read_back(fields[0]))
        if name in table:
            raise _wrong(path, number, f"{name!r} comes twice")
        table[name] = read_back(fields[place])
    if not table:
        raise InputError(f"{label(path)}: the file lists no sequence")
    return table


def _check_column(path: str, titles: list[str], column: str) -> None:
    if column not in titles:
        raise InputError(
            f"{label(path)}: there is no column {column!r}; the columns are "
            f"{', '.join(map(written, titles)) or 'none'}"
        )


def _is_heading(
    path: str, rows: Rows, sequence_names: KnownNames, columns: tuple[str, ...]
) -> bool:
    """Whether the first row is a heading."""
    (number, (first, *fields)), *data_rows = rows
    named = first.lower() in HEADINGS
    tells = {field.lower() for field in fields} & {name.lower() for name in columns}
    if not fields or not (named or tells):
        return False
    if sequence_names.resolve(read_back(first)) not in sequence_names.names:
        return True
    if not named or not tells:
        return False
    if any(fields[0] == first for _, fields in data_rows):
        return True
    why = (
        f"{written(first)!r} is a sequence and may be a heading\nhint: put the line "
        f"name<TAB>{columns[0]} before it if it is a sequence; else give that sequence "
        "a line"
    )
    raise _wrong(path, number, why)


@dataclass(frozen=True)
class PairList:
    """Rows of a table.

    pairs : list of (str, str)
    parts : where a heading has a column of parts.
    """

    path: str
    lines: list[int]
    pairs: list[tuple[str, str]]
    parts: list[str] | None

    def where(self, number: int) -> str:
        """Name a pair by file and line, for messages."""
        return f"{label(self.path)}, line {self.lines[number]}"


def read_pairs(
    path: str,
    sequence_names: KnownNames,
    parts: bool = False,
    column: str | None = None,
) -> PairList:
    """Read pairs from a table of two or more columns.

    The first line is a heading where neither of its names is a sequence and its words
    mean something.

    parts : whether a column of parts is needed: one that the heading calls so, else the
        third.
    column : what the heading has to call it.
    """

    def is_sequence(text: str) -> bool:
        return sequence_names.resolve(read_back(text)) in sequence_names.names

    rows, place = rows_of(path), 2
    heading = [x.lower() for x in rows[0][1]] if rows else []
    named_part = [x for x in PARTS if x in heading[2:]]
    if column is not None:
        heading = rows[0][1] if rows else []
        _check_column(path, heading[2:], column)
        named_part = [column]
    words = all(NUMBERED.sub("", x) in PAIR_HEADINGS for x in heading[:2])
    if rows and (named_part or words) and not any(map(is_sequence, rows[0][1][:2])):
        rows.pop(0)
        place = heading.index(named_part[0], 2) if named_part else 2
    least = place + 1 if parts else 2
    lines, pairs, of_pair = [], [], []
    for number, fields in rows:
        if len(fields) < least or not all(fields[:2]):
            needed = "two names and a part" if parts else "two names"
            raise _wrong(path, number, f"{needed} are needed, apart by a tab")
        lines.append(number)
        a, b = read_back(fields[0]), read_back(fields[1])
        pairs.append((sequence_names.resolve(a), sequence_names.resolve(b)))
        of_pair.append(read_back(fields[place]) if parts else "")
    if not pairs:
        raise InputError(f"{label(path)}: the file lists no pair")
    return PairList(path, lines, pairs, of_pair if parts else None)


def read_edges(
    path: str, sequence_names: KnownNames, column: str | int | None = None
) -> tuple[str, list[tuple[str, str]], np.ndarray]:
    """Read pairs of names with a value each.

    The first line is a heading where it has the title that is meant, or where its value
    is no number and neither of its names is a sequence.

    column : the title of the values, or their number from 1; by default the third.
    Returns the title of the values, or their number as text; the pairs, as they come;
        and float64 (pairs,).
    """
    rows = rows_of(path)
    titles = rows[0][1] if rows else []
    if column is None or str(column).isdecimal():
        place = 2 if column is None else int(column) - 1
    elif column in titles[2:]:
        place = titles.index(str(column), 2)
    else:
        meant = nearest_word(column, titles[2:]) if titles[2:] else None
        hint = f"\nhint: did you mean {written(meant)!r}?" if meant else ""
        named = ", ".join(map(written, titles[2:])) or "none"
        raise InputError(
            f"{label(path)}: there is no column {column!r} of values; the heading has "
            f"{named}{hint}"
        )
    if not 2 <= place < max(len(titles), 3):
        raise InputError(
            f"{label(path)}: there is no column {column} of values: the columns after "
            f"the two names are 3 to {len(titles)}"
        )
    title = str(place + 1)
    resolved = [sequence_names.resolve(read_back(x)) for x in titles[:2]]
    named = any(x in sequence_names.names for x in resolved)
    in_words = bool(rows) and not _is_number(titles[place : place + 1])
    if in_words and (titles[place : place + 1] == [column] or not named):
        _, heading = rows.pop(0)
        if len(heading) > place and not heading[place].isdecimal():
            title = heading[place]
    pairs, values = [], np.empty(len(rows))
    for row, (number, fields) in enumerate(rows):
        if len(fields) <= place or not all(fields[:2]):
            why = f"two names and a value in column {title} are needed, apart by a tab"
            raise _wrong(path, number, why)
        if not _is_number(fields[place : place + 1]):
            raise _wrong(path, number, f"{title} {fields[place]!r} is not a number")
        values[row] = float(fields[place])
        pairs.append((read_back(fields[0]), read_back(fields[1])))
    if not pairs:
        raise InputError(f"{label(path)}: the file lists no pair")
    return title, pairs, values


def _is_number(fields: list[str]) -> bool:
    """Whether a field is a finite number."""
    try:
        return bool(np.isfinite(float(fields[0])))
    except (IndexError, ValueError):
        return False


def read_groups(
    path: str, sequence_names: KnownNames
) -> dict[str, list[tuple[str, str]]]:
    """Read the groups that sequences are members of, from all columns of a table.

    A name may have several rows, and a field may be empty: no group.

    Returns, by the title of a column or its number, pairs of a name and a group.
    """
    rows = rows_of(path)
    width = max((len(fields) for _, fields in rows), default=0)
    titles = [str(number) for number in range(1, width + 1)]
    if rows and _is_heading(path, rows, sequence_names, ()):
        number, heading = rows.pop(0)
        titles = [*heading, *titles[len(heading) :]]
        if len(set(titles)) < len(titles):
            raise _wrong(path, number, "a column comes twice")
    groups: dict[str, list[tuple[str, str]]] = {title: [] for title in titles[1:]}
    for number, fields in rows:
        if len(fields) < 2 or not fields[0]:
            raise _wrong(path, number, "a name and its groups are needed")
        name = read_back(fields[0])
        for title, field in zip(titles[1:], fields[1:], strict=False):
            if field:
                groups[title].append((name, read_back(field)))
    if not any(groups.values()):
        raise InputError(f"{label(path)}: the file has no group")
    return groups


def read_taxa(path: str) -> dict[str, int]:
    """Read a table of names and taxa: two columns, tsv, csv or parquet.

    Raises
    ------
    InputError
        A taxon is no whole number of 9 digits at most, a name has two taxa, or there is
        none.
    """
    taxa: dict[str, int] = {}
    for row, (number, fields) in enumerate(rows_of(path)):
        name, taxon = [*fields, "", ""][:2]
        if not re.fullmatch(r"\d{1,9}", taxon, re.ASCII):
            if row == 0:
                continue  # a heading
            raise _wrong(path, number, f"{taxon!r} is no taxon, a whole number")
        if taxa.setdefault(read_back(name), int(taxon)) != int(taxon):
            raise _wrong(path, number, f"{name} has two taxa")
    if not taxa:
        raise InputError(f"{label(path)}: the file has no taxon")
    return taxa


def is_airr(path: str, buffer: bytes | None = None) -> bool:
    """Whether a file is a table, not FASTA: its first line does not begin with ``>``.

    ``buffer`` : what ``model.source.keep`` returned.
    """
    if str(path).lower().endswith(PARQUET):
        return True
    with open_text(path, buffer) as handle:
        line = next((line for line in handle if line.strip()), "")
    return not line.startswith(">")


@dataclass(frozen=True, eq=False)
class TextColumn(Sequence[str]):
    """A column of a text table, whose fields are cut out when they are asked for.

    table : all of its bytes, ASCII
    starts, stops : int64 (rows,). Where each field is.
    """

    table: bytes
    starts: np.ndarray
    stops: np.ndarray

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return TextColumn(self.table, self.starts[index], self.stops[index])
        return self.table[self.starts[index] : self.stops[index]].decode()

    def __iter__(self) -> Iterator[str]:
        spans = map(slice, self.starts.tolist(), self.stops.tolist())
        return map(bytes.decode, map(self.table.__getitem__, spans))


def read_airr(
    path: str, buffer: bytes | None = None
) -> dict[str, list[str]] | dict[str, TextColumn]:
    """Read the columns of a table of rearrangements, by their names, as text.

    ``buffer`` : what ``model.source.keep`` returned.
    """
    if not str(path).lower().endswith(PARQUET):
        with open_bytes(path, buffer) as handle:
            plain = _plain_columns(handle.read())
        if plain is not None:
            return plain
    names, rows = _titled_rows(path, buffer)
    columns = zip_longest(*(fields for _, fields in rows), fillvalue="")
    lists = [list(column) for column in columns]
    lists += [[""] * len(rows) for _ in names[len(lists) :]]
    return dict(zip(names, lists, strict=True))


def _plain_columns(data: bytes) -> dict[str, TextColumn] | None:
    """Find the fields of a plain table in a quarter of the time of ``csv``: ASCII, as
    many fields a line as in the heading, no quotes, no space beside them. Else None."""
    data = data.removeprefix(BYTE_ORDER_MARK)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    separator = b"\t" if b"\t" in data else b","
    heading = data[: max(data.find(b"\n"), 0)]
    names = heading.decode("latin-1").split(separator.decode())
    quoted = b'"' in (data if separator == b"," else heading)
    if len(names) == 1 or len({*names}) < len(names) or quoted or not data.isascii():
        return None
    if not data.endswith(b"\n"):
        data += b"\n"
    signs = np.frombuffer(data, np.uint8)
    ends = np.concatenate(
        [
            start + np.flatnonzero((stretch == ord(separator)) | (stretch == NEWLINE))
            for start in range(0, len(signs), STRETCH)
            for stretch in [signs[start : start + STRETCH]]
        ]
    )
    if len(ends) % len(names) or len(ends) == len(names):
        return None
    ends = ends.reshape(-1, len(names))
    begins = np.append(0, ends.ravel()[:-1] + 1).reshape(ends.shape)
    neighbours = signs[np.stack([ends - 1, begins])]
    ends_line = signs[ends] == NEWLINE
    spaces = IS_SPACE & (np.arange(256) != ord(separator)) & (np.arange(256) != NEWLINE)
    if (
        ends_line[:, :-1].any()
        or not ends_line[:, -1].all()
        or spaces[neighbours].any()
    ):
        return None
    # A line without a letter is blank.
    if (ends[1:, -1] - begins[1:, 0] < len(names)).any():
        return None
    sides = zip(begins[1:].T, ends[1:].T, strict=True)
    return dict(zip(names, (TextColumn(data, *x) for x in sides), strict=True))


def _titled_rows(path: str, buffer: bytes | None = None) -> tuple[list[str], Rows]:
    """Read the titles of the columns, and the rows, which have no further fields."""
    rows = rows_of(path, buffer, titled=True)
    if not rows:
        raise InputError(f"{label(path)}: the file is empty")
    number, names = rows.pop(0)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise _wrong(path, number, f"column {twice!r} comes twice")
    for number, fields in rows:
        if len(fields) > len(names):
            why = f"{len(fields)} fields, the heading has {len(names)}"
            raise _wrong(path, number, why)
    return names, rows


def read_genes(path: str) -> tuple[list[str], dict[str, list[str]]]:
    """Read a table of V genes, whose first column has their names.

    Returns the other names of the heading, and the other fields of each gene.
    """
    names, rows = _titled_rows(path)
    genes: dict[str, list[str]] = {}
    for number, (gene, *fields) in rows:
        if gene in genes:
            raise _wrong(path, number, f"{gene!r} comes twice")
        if len(fields) + 1 < len(names):
            why = f"{len(fields) + 1} fields, the heading has {len(names)}"
            raise _wrong(path, number, why)
        genes[gene] = fields
    return names[1:], genes


def gene_distances(path: str) -> dict[tuple[str, str], float]:
    """Read the distance of each pair of genes from a square table."""
    names, rows = read_genes(path)
    if sorted(names) != sorted(rows):
        raise InputError(f"{label(path)}: rows and columns need the same genes")
    genes: dict[tuple[str, str], float] = {}
    for gene, fields in rows.items():
        for column, field in zip(names, fields, strict=True):
            try:
                genes[gene, column] = float(field)
            except ValueError:
                raise InputError(
                    f"{label(path)}: {gene}, {column}: {field!r} is not a number"
                ) from None
    return genes


def check_list_format(path: str | None) -> None:
    """Refuse a list whose suffix names no format of lists."""
    if path in (None, output.STDOUT) or not os.path.basename(path):
        return
    suffix = os.path.splitext(path)[1].lower()
    if suffix == PARQUET:
        arrow.pyarrow()
    elif suffix not in SEPARATORS:
        raise UsageError(
            f"{path}: the suffix {suffix!r} is not a format of lists; use .tsv, .csv "
            "or .parquet"
        )


def write_list(
    path: str,
    columns: dict,
    field: Callable[[object], str],
    cuts: Sequence[float] = (),
) -> None:
    """Write columns in the format that the suffix of the path names.

    path : a file name or "-".
    columns : dict of arrays of equal lengths
    field : makes a value one field of text.
    cuts : of identities or E-values, across which no text is rounded
    """
    suffix = os.path.splitext(path)[1].lower()
    if suffix == PARQUET:
        arrays = {name: np.asarray(values) for name, values in columns.items()}
        output.write_file(
            path, lambda temporary: arrow.write_columns(temporary, arrays)
        )
    else:
        separator = SEPARATORS.get(suffix, "\t")
        output.write_text(path, list_lines(columns, field, separator, cuts))


def write_columns(
    path: str, columns: dict, force: bool, cuts: Sequence[float] = ()
) -> None:
    """Write the columns of a result, numbers of six digits."""
    check_list_format(path)
    output.check(path, force)
    write_list(path, columns, text_field, cuts)


def text_field(value: object) -> str:
    """Format a value as one field of text."""
    return f"{value:.6g}" if isinstance(value, float) else written(str(value))


def list_lines(
    columns: dict,
    field: Callable[[object], str],
    separator: str = "\t",
    cuts: Sequence[float] = (),
) -> list[str]:
    """Format columns as lines, a heading first; ``field`` formats one value.
    Identities below a cut of four decimals, or 1, are not printed as the cut; nor are
    E-values above one of a digit. All are on their side of ``cuts``."""

    def shown(name: str, column: Any) -> Any:
        if name.startswith("identity"):
            rounded = np.ceil(np.multiply(column, 1e4)) / 1e4
            return printed_beside(column, 6, rounded, *cuts).tolist()
        return texts_beside(column, 6, *cuts) if name == "evalue" else column

    values = [shown(name, column) for name, column in columns.items()]
    rows = zip(*values, strict=True)
    texts = [list(columns), *(list(map(field, row)) for row in rows)]
    if separator == "\t":
        return ["\t".join(fields) + "\n" for fields in texts]
    return [csv_text([fields]) for fields in texts]


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Format rows as text with commas; a field that has one is quoted."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


def write_edges(
    path: str,
    blocks: Iterable[EdgeColumns],
    rows: Sequence[str],
    columns: Sequence[str],
) -> None:
    """Write a table with a heading: names of both ends, and the distance."""
    commas = path.lower().endswith(".csv")

    def lines() -> Iterator[str]:
        yield EDGE_HEADING.replace("\t", ",") if commas else EDGE_HEADING
        for i, j, distance in blocks:
            edges: Iterable[tuple[int, int, int]]
            edges = zip(i.tolist(), j.tolist(), distance.tolist(), strict=True)
            names = ((written(rows[a]), written(columns[b]), d) for a, b, d in edges)
            yield (
                csv_text(names)
                if commas
                else "".join(map("%s\t%s\t%d\n".__mod__, names))
            )

    output.write_text(path, lines())


def write_edges_parquet(
    path: str,
    blocks: Iterable[EdgeColumns],
    rows: Sequence[str],
    columns: Sequence[str],
) -> None:
    """Write zstd Parquet with the same columns, a row group a block; names are
    dictionary-encoded."""
    pa, pq = arrow.pyarrow()
    names = [pa.array(list(side), pa.string()) for side in (rows, columns)]
    text = pa.dictionary(pa.int32(), pa.string())
    titles = EDGE_HEADING.split()
    kinds = (text, text, pa.int32())
    schema = pa.schema(list(zip(titles, kinds, strict=True)))

    def fill(temporary: str) -> None:
        with pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
            for *ends, distance in blocks:
                arrays = [
                    pa.DictionaryArray.from_arrays(pa.array(x, pa.int32()), name)
                    for x, name in zip(ends, names, strict=True)
                ]
                arrays.append(pa.array(distance, pa.int32()))
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))

    output.write_file(path, fill)
