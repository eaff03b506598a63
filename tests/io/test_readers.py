"""Every reader: any bytes are read, or refused with the file's name, and with the line
where it is text. There is no other exception."""

import importlib
import inspect
import json
import os
import pkgutil
import re
import sys
import threading
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxalign
from jaxalign.errors import JaxalignError, UsageError
from jaxalign.homology import certificate
from jaxalign.io import (
    arrow,
    delimited,
    embeddings,
    encoded_database,
    fasta,
    runs,
    structures,
)
from jaxalign.io.delimited import KnownNames
from jaxalign.model import scoring, source
from jaxalign.model.alphabet import named_alphabet

PROTEIN = named_alphabet("protein")
EQUAL = " ".join(["2.99573"] * 20)
MOVES = "0.35667 1.20397 * 0.3 1.35023 0.0 *"
HEAD = "HMMER3/f\nNAME  x\nLENG  1\nALPH  amino\nHMM  A\n  m->m\n"
MODEL = f"{HEAD}{EQUAL}\n{MOVES}\n1 {EQUAL}\n{EQUAL}\n{MOVES}\n//\n"
ABOUT = {"format": certificate.FORMAT, "definition": {}, "inputs": [], "parts": [],
         "worst": []}  # fmt: skip


def read_receptors(path):
    """As ``repertoire`` does, which reads a pipe once."""
    buffer = source.keep(path)
    return (
        delimited.read_airr(path, buffer) if delimited.is_airr(path, buffer) else None
    )


# What reads, and a file that it reads.
READERS = {
    "fasta": (lambda p: fasta.read(p, PROTEIN), b">a x\nMKV\n\n;c\n>b\nMK V\nAA\n"),
    "family": (fasta.read_family, b">a\nMK-V\n>b\nM.\nKV\n"),
    "names": (lambda p: delimited.read_names(p, {"a"}), b"name\tpart\na\tx\nb\\t\ty\n"),
    "matrix": (lambda p: scoring.load_matrix(p), b"# c\n A C\nA 1 -2\nC -2 3.5\n"),
    "alignment": (jaxalign.Profile.from_alignment, b">a\nMK-V\n>b\nMKvV-\n"),
    "stockholm": (
        jaxalign.Profile.from_alignment,
        b"# STOCKHOLM 1.0\n#=GF ID x\na MK-\n\na V\nb MKVV\n//\n",
    ),
    "hmm": (jaxalign.Profile.from_hmm, MODEL.encode()),
    "certificate": (certificate.read, json.dumps(ABOUT).encode()),
    "index": (jaxalign.open_database, None),
    "embeddings": (embeddings.read, None),
    "blocks": (lambda p: [*fasta.read_blocks(p, PROTEIN)], b">a\nMK\n>b\nV\n"),
    "receptors": (read_receptors, b"junction_aa\tlocus\nCASSF\tTRB\nCAW\tTRA\n"),
    "genes": (delimited.read_genes, b"gene\tcdr1\tcdr2\nA\tMK\tV\nB\tMR\tV\n"),
    "distances": (delimited.gene_distances, b"gene\tA\tB\nA\t0\t1\nB\t1\t0\n"),
    "pairs": (
        lambda p: delimited.read_pairs(p, KnownNames(["a", "b"])),
        b"a\tb\nb\ta\n",
    ),
    "edges": (
        lambda p: delimited.read_edges(p, KnownNames(["a", "b"]), "TM"),
        b"query\ttarget\tTM\na\tb\t0.5\nb\ta\t1e-3\n",
    ),
    "groups": (
        lambda p: delimited.read_groups(p, KnownNames(["a", "b"])),
        b"name\tcomplex\tpatient\na\tx\t\nb\tx\t7\n",
    ),
    "taxa": (delimited.read_taxa, b"name\ttaxon\na\t7\nb\\t\t8\n"),
    "taxa of headings": (fasta.read_taxa, b">a x OX=7\nMKV\n>b TaxID=1\n"),
    "taxa of an index": (encoded_database.taxa_of, None),
    "parquet": (arrow.read_rows, None),
    "structure": (
        structures.read_file,
        b"ATOM  %5d  CA  GLY A%4d    %8.3f%8.3f%8.3f%6.2f%6.2f%12s\n"
        % (1, 1, 1, 2, 3, 1, 10, b"C"),
    ),
}
ODD = [
    b"",
    b"\0",
    b"\n",
    b"\xff",
    b">",
    b"\t",
    b"nan",
    b"-",
    b"\x1f\x8b",
    b"BZh9",
    b"{",
]
PIECES = st.one_of(st.sampled_from(ODD), st.binary(max_size=5))


def content_of(name: str, folder) -> bytes:
    """A file that the reader reads."""
    path = folder / "whole"
    if name in ("index", "taxa of an index"):
        (folder / "a.fa").write_text(">a OX=9\nMKV\n>b\nACDEFG\n>c\n\n")
        jaxalign.index_database(folder / "a.fa", path, force=True)
    elif name == "embeddings":
        with open(path, "wb") as file:
            np.savez(file, a=np.ones((3, 2), np.float32))
    elif name == "parquet":
        pyarrow = pytest.importorskip("pyarrow.parquet")
        rows = importlib.import_module("pyarrow").table({"name": ["a"], "part": ["x"]})
        pyarrow.write_table(rows, path)
    else:
        return READERS[name][1]
    return path.read_bytes()


@pytest.mark.parametrize(
    "bounds",
    [
        partial(settings, max_examples=60, derandomize=True),
        pytest.param(partial(settings, max_examples=400), marks=pytest.mark.slow),
    ],
    ids=["short", "long"],
)
@pytest.mark.parametrize("name", READERS)
def test_any_bytes_are_read_or_refused(tmp_path, name, bounds):
    read, whole, path = (
        READERS[name][0],
        content_of(name, tmp_path),
        tmp_path / "in.txt",
    )
    path.write_bytes(whole)
    read(str(path))
    places = st.integers(0, len(whole))

    def check(changes, end):
        data = whole[:end]
        for place, length, piece in changes:
            data = data[:place] + piece + data[place + length :]
        path.write_bytes(data)
        try:
            read(str(path))
        except JaxalignError as error:
            assert str(path) in str(error) and len(str(error)) < 2000

    change = st.tuples(places, st.integers(0, 4), PIECES)
    ends = st.one_of(st.just(len(whole)), places)
    settled = bounds(deadline=None, database=None)
    settled(given(st.lists(change, max_size=3), ends)(check))()


@pytest.mark.parametrize("first", ["", "\n \n", "\t\n"])
def test_tables_may_begin_with_blank_lines(tmp_path, first):
    path = tmp_path / "table.tsv"
    path.write_text(f"{first}gene\tcdr1\nA\tMK\n")
    assert delimited.read_genes(str(path)) == (["cdr1"], {"A": ["MK"]})
    assert columns_of(path) == {"gene": ["A"], "cdr1": ["MK"]}


def columns_of(path):
    columns = delimited.read_airr(str(path))
    return {name: list(values) for name, values in columns.items()}


def drawn_table(seed, usual):
    """A table of receptors: of plain fields, or of anything."""
    draw = np.random.default_rng(seed)
    separator, end = draw.choice(["\t", ","]), draw.choice(["\n", "\n", "\r\n", "\r"])
    fields = ["CASSF", "", "a b", "1.5", "x"]
    fields += [] if usual else [" y", "z ", "", '"q"', '"', "\u00e9", "\x0b", "\x1c"]
    count = int(draw.integers(2, 5))
    lines = [[f"t{k}" for k in range(count)]]
    lines[0][-1] = "t0" if not usual and draw.random() < 0.1 else lines[0][-1]
    for _ in range(int(draw.integers(1, 7))):
        width = count if usual else max(count - int(draw.choice([0, 0, 0, 1, -1])), 0)
        lines.append(draw.choice(fields, width).tolist())
        lines[-1][:1] = ["x"] if usual else lines[-1][:1]  # no blank line
    text = end.join(separator.join(line) for line in lines)
    mark = "\ufeff" * int(draw.integers(2))
    return (mark + text + end * int(draw.integers(2))).encode()


@pytest.mark.parametrize("usual", [True, False])
def test_a_plain_table_is_read_as_any_other(tmp_path, monkeypatch, usual):
    def outcome(path):
        try:
            return columns_of(path)
        except JaxalignError as error:
            return str(error)

    plain, parsed = 0, delimited._plain_columns
    path = tmp_path / "table.tsv"
    for seed in range(300):
        path.write_bytes(drawn_table(seed, usual))
        columns = outcome(path)
        plain += parsed(path.read_bytes()) is not None
        with monkeypatch.context() as patch:
            patch.setattr(delimited, "_plain_columns", lambda data: None)
            assert outcome(path) == columns, path.read_bytes()
    assert plain == 300 if usual else 0 < plain < 100


def test_a_column_of_a_plain_table(tmp_path):
    path = tmp_path / "table.tsv"
    path.write_text("a\tb\nx\ty\n\tz\nuvw\t1\n")
    column = delimited.read_airr(str(path))["a"]
    assert [*column] == ["x", "", "uvw"] and len(column) == 3
    assert column[2] == "uvw" and [*column[1:]] == ["", "uvw"]


def readers():
    """Every function of the package that reads a file by its name."""
    for module in pkgutil.walk_packages(jaxalign.__path__, "jaxalign."):
        if not module.name.startswith(("jaxalign.io.", "jaxalign.model.", CERTIFICATE)):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if not (READS.fullmatch(name) and inspect.isfunction(value)):
                continue
            first = next(iter(inspect.signature(value).parameters), "")
            if value.__module__ == module.name and first in ("path", "source"):
                yield f"{module.name}.{name}", inspect.unwrap(value).__code__


CERTIFICATE = "jaxalign.homology.certificate"
READS = re.compile("read(_[a-z]+)*|load|open_[a-z]+|rows_of|distances|is_table")


def test_every_reader_is_among_them(tmp_path):
    """A new one is to have an example here."""
    called = set()
    for name in READERS:
        path = tmp_path / "in.txt"
        path.write_bytes(content_of(name, tmp_path))
        sys.setprofile(lambda frame, *_: called.add(frame.f_code))
        try:
            READERS[name][0](str(path))
        finally:
            sys.setprofile(None)
    # Of folders; test_fuzz.py has examples of them.
    called |= {runs.read_manifest.__code__, runs.read_json.__code__}
    lacking = [name for name, code in readers() if code not in called]
    assert not lacking


@pytest.mark.parametrize("name", [*READERS, "manifest"])
def test_what_is_no_file(tmp_path, name):
    """Nothing, a folder, and a path that no file can have."""
    read = runs.read_manifest if name == "manifest" else READERS[name][0]
    for path in (tmp_path / "none", tmp_path, "\0", "x" * 300):
        with pytest.raises(JaxalignError):
            read(str(path))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="devices of Linux")
@pytest.mark.parametrize("name", READERS)
def test_what_has_no_end(tmp_path, name):
    """Devices, and links to them: refused before they are read, as nothing of theirs
    is; what of them is read ends the process where it has all memory."""
    (tmp_path / "link").symlink_to("/dev/urandom")
    for path in ("/dev/zero", "/dev/full", tmp_path / "link"):
        with pytest.raises(
            JaxalignError, match="no end|not an index|unknown matrix|such file"
        ):
            READERS[name][0](str(path))


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_is_read_as_a_file(tmp_path, name):
    """Where it is text; what is not is refused in words."""
    content, pipe = content_of(name, tmp_path), tmp_path / "pipe"
    os.mkfifo(pipe)

    def write():
        with suppress(OSError):
            pipe.write_bytes(content)

    threading.Thread(target=write, daemon=True).start()
    if name in ("index", "taxa of an index", "parquet", "embeddings"):
        with pytest.raises(JaxalignError):
            READERS[name][0](str(pipe))
    else:
        READERS[name][0](str(pipe))


def test_an_endless_pipe(tmp_path, monkeypatch):
    """It is read up to a limit."""
    monkeypatch.setattr(source, "MOST_BYTES", 2**20)
    monkeypatch.setattr(source, "PIECE_BYTES", 2**16)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write():
        with suppress(BrokenPipeError), open(pipe, "wb") as file:
            while True:
                file.write(b">a\nMKV\n" * 2**12)

    thread = threading.Thread(target=write)
    thread.start()
    with pytest.raises(jaxalign.MemoryPlanError, match="no end so far"):
        fasta.read(pipe, PROTEIN)
    thread.join()


@pytest.mark.parametrize(
    "text, place",
    [
        (">a\nMKV\n>b\nM1V\n", "line 4, column 2"),
        (">a\nMKV\n>b\nMK\n", "line 3"),
        (">a\nMKV\n>\nMKV\n", "line 3"),
        ("MKV\n", "line 1"),
    ],
)
def test_a_family_is_refused_with_its_line(tmp_path, text, place):
    path = tmp_path / "f.fasta"
    path.write_text(text)
    with pytest.raises(jaxalign.InputError, match=place):
        fasta.read_family(path)


@pytest.mark.parametrize("data", [">a\n-\n", ">a\n--\n>b\n..\n"])
def test_an_alignment_without_positions_is_named(tmp_path, data):
    path = tmp_path / "rows.a3m"
    path.write_text(data)
    with pytest.raises(UsageError, match=r"rows\.a3m: (the weights|no column)"):
        jaxalign.Profile.from_alignment(path)
    rows = [line for line in data.splitlines() if line[0] != ">"]
    with pytest.raises(UsageError, match=r"^(the weights|no column)"):
        jaxalign.Profile.from_alignment(rows)
