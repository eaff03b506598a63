"""Every writer: names that it takes are read back as they were, by a reader that knows
the format alone; others it refuses in words."""

import io
import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxalign
from jaxalign.errors import JaxalignError
from jaxalign.io import delimited, embeddings, fasta, formats, text_formats
from jaxalign.model.alphabet import from_parts
from jaxalign.model.names import read_back, written

SCORING = jaxalign.Scoring()
ODD = st.sampled_from(["\t", "\n", "\r", "\\", "\\t", " ", ",", "|", ">", "@", "#", '"',
                       "\x1b", "\x85", "\u2028", "é", "\U0001f9ec", "a", "*", "=", "'",
                       ";", "\0", "x09", "\xa0", "-", "name", "AC"])  # fmt: skip
NAME = st.lists(st.one_of(ODD, st.characters(codec="utf-8")), min_size=1, max_size=5)
NAMES = st.lists(NAME.map("".join), min_size=3, max_size=3, unique=True)
TEXTS = ("MKVLAT", "MKVAT", "MKVLA")
every_length = pytest.mark.parametrize(
    "bounds",
    [
        partial(settings, max_examples=20, derandomize=True),
        pytest.param(partial(settings, max_examples=400), marks=pytest.mark.slow),
    ],
    ids=["short", "long"],
)


def drawn(bounds, check):
    bounds(deadline=None, database=None)(given(NAMES)(check))()


def fields(text: str) -> list[list[str]]:
    """Rows of fields: a line ends at a line feed, a field at a tab."""
    assert text.endswith("\n") and not set(text) & {
        "\r",
        "\x85",
        "\u2028",
        "\x1b",
        "\0",
    }
    return [line.split("\t") for line in text[:-1].split("\n")]


def of_columns(text: str, first: int, second: int, heading: int):
    return [(read_back(x[first]), read_back(x[second])) for x in fields(text)[heading:]]


def of_sam(text: str):
    rows = [x for x in fields(text) if not x[0].startswith("@") or len(x) > 5]
    return [(row[0], row[2]) for row in rows]


def of_headings(text: str, end: str) -> list[str]:
    """The names of FASTA whose headings go on with something known."""
    assert not set(text) & {"\r", "\x85", "\u2028", "\x1b", "\0"}
    heads = [line for line in text.split("\n") if line.startswith(">")]
    return [read_back(re.fullmatch(f">(.*) {end}.*", line)[1]) for line in heads]


def of_fasta(text: str):
    names = of_headings(text, "pair=")
    return list(zip(names[::2], names[1::2], strict=True))


def of_graphpart(text: str):
    """As ``load_edge_list`` of graph-part 1.0.2 reads it: no field is quoted."""
    rows = [line.strip().split(",") for line in io.StringIO(text, newline=None)]
    return [(row[0], row[1]) for row in rows]


def of_maf(text: str):
    names = [line.split(" ")[1] for line in text.split("\n") if line[:2] == "s "]
    return list(zip(names[1::2], names[::2], strict=True))


# Of each format: the pairs of names in its text.
PARSERS = {
    "tsv": partial(of_columns, first=0, second=1, heading=1),
    "m8": partial(of_columns, first=0, second=1, heading=0),
    "paf": partial(of_columns, first=0, second=5, heading=0),
    "sam": of_sam,
    "maf": of_maf,
    "fasta": of_fasta,
    "graphpart": of_graphpart,
}


@pytest.fixture(scope="module")
def alignments():
    return jaxalign.align_all(list(TEXTS), scoring=SCORING, output="alignment")


def named(table, names):
    """The same table of sequences that are called otherwise."""
    some = from_parts(names, [SCORING.alphabet.encode(x) for x in TEXTS],
                      SCORING.alphabet)  # fmt: skip
    return replace(table, queries=some, targets=some)


@every_length
@pytest.mark.parametrize("format", PARSERS)
def test_names_in_text(tmp_path, alignments, format, bounds):
    path = tmp_path / "out"

    def check(names):
        table = named(alignments, names)
        pairs = [(names[i], names[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
        try:
            formats.write(table, path, format, force=True)
        except JaxalignError as error:
            assert format in ("sam", "maf", "graphpart") and "name" in str(error)
            return
        found = PARSERS[format](path.read_bytes().decode())
        if format == "graphpart":
            pairs = [tuple(x.split("|")[0] for x in pair) for pair in pairs]
        assert found == pairs

    drawn(bounds, check)


@every_length
def test_names_in_parquet(tmp_path, alignments, bounds):
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "out.parquet"

    def check(names):
        formats.write(named(alignments, names), path, force=True)
        rows = pq.read_table(path).to_pydict()
        assert rows["query"] == [names[0], names[0], names[1]]
        assert rows["target"] == [names[1], names[2], names[2]]

    drawn(bounds, check)


@every_length
def test_names_in_lists(tmp_path, bounds):
    """The lists of clusters and splits, by the reader of such lists."""
    path = tmp_path / "list.tsv"

    def check(names):
        columns = {"name": names, "part": ["x", "y", "x"], "component": [0, 1, 2]}
        lines = delimited.list_lines(columns, lambda x: written(str(x)))
        path.write_bytes("".join(lines).encode())
        if any(not name.strip() or name != name.strip() for name in names):
            return  # blanks at the ends of fields are none of a name
        found = delimited.read_names(str(path), set(names), ("part",))
        assert found == dict(zip(names, ["x", "y", "x"], strict=True))

    drawn(bounds, check)


@every_length
def test_names_in_an_encoded_database(tmp_path, bounds):
    """As FASTA has them: the first word of a heading."""

    def check(names):
        names = [
            ("".join(name.split()) or "x") + str(k) for k, name in enumerate(names)
        ]
        lines = [f">{name}\n{text}\n" for name, text in zip(names, TEXTS, strict=True)]
        (tmp_path / "a.fa").write_bytes("".join(lines).encode())
        known = fasta.read(tmp_path / "a.fa", SCORING.alphabet).names
        assert list(known) == names
        jaxalign.index_database(tmp_path / "a.fa", tmp_path / "a.jaxdb", force=True)
        found = jaxalign.open_database(tmp_path / "a.jaxdb")
        assert list(found.names) == names

    drawn(bounds, check)


@every_length
def test_names_in_alignments_of_embeddings(bounds):
    one = jaxalign.align(*TEXTS[:2], SCORING)

    def check(names):
        row = replace(one, query_name=names[0], target_name=names[1])
        text = "".join(embeddings.tsv([row], [np.array([0, 1])]))
        assert of_columns(text, 0, 1, 1) == [(names[0], names[1])]

    drawn(bounds, check)


@pytest.mark.slow  # programs of three sequences
@every_length
def test_names_in_triples(tmp_path, bounds):
    triple, path = jaxalign.align_three(*TEXTS, SCORING), str(tmp_path / "out")

    def check(names):
        some = replace(triple, names=tuple(names))
        text_formats.write_triple(some, path, "json", force=True)
        assert json.loads(Path(path).read_bytes())["names"] == names
        text_formats.write_triple(some, path, "fasta", force=True)
        assert of_headings(Path(path).read_bytes().decode(), "span=") == names

    drawn(bounds, check)
