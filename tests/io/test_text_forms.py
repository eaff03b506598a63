"""One opening of text for every reader: what a file holds does not depend on how it is
packed, how its lines end, what comments say, or whether it can be read twice."""

import bz2
import gzip
import io
import lzma
import os
import threading

import numpy as np
import pytest
from draws import pairwise

import jaxalign
from jaxalign.io import delimited, fasta
from jaxalign.io.delimited import KnownNames
from jaxalign.model import scoring
from jaxalign.model.alphabet import named_alphabet
from jaxalign.model.source import keep

PROTEIN = named_alphabet("protein")
EQUAL = " ".join(["2.99573"] * 20)
MOVES = "0.35667 1.20397 * 0.3 1.35023 0.0 *"
MODEL = (
    "HMMER3/f\nNAME  é\nDESC  Müller\nLENG  1\nALPH  amino\nHMM  A\n  m->m\n"
    f"{EQUAL}\n{MOVES}\n1 {EQUAL}\n{EQUAL}\n{MOVES}\n//\n"
)
BLOSUM = "# Müller\n   A  C\nA  4 -1\nC -1  9\n"


def zstd(data):
    return pytest.importorskip("pyarrow").Codec("zstd").compress(data, asbytes=True)


def scores(profile):
    return profile.scores.tolist()


def records(sequences):
    return sequences.names, sequences.codes.tolist()


def alignment(path):
    return scores(jaxalign.Profile.from_alignment(path))


def pairs(path):
    return delimited.read_pairs(path, KnownNames(["a", "é"])).pairs


# Of each kind of text: its reader, the text, and what begins a comment in it.
KINDS = {
    "fasta": (
        lambda p: records(fasta.read(p, PROTEIN)),
        ">a Müller\nMKV\n>b\nMK\n",
        ";",
    ),
    "a3m": (alignment, ">a Müller\nMK-VA\n>bé\nMKvVV-\n", ";"),
    "aligned fasta": (alignment, ">a\nMK-VA\n>b|é\nMKVV-\n", ";"),
    "stockholm": (
        alignment,
        "# STOCKHOLM 1.0\n#=GF AU   Müller K\na MK-\nbé MKV\n\na V\nbé A\n//\n",
        "#",
    ),
    "hmm": (lambda p: scores(jaxalign.Profile.from_hmm(p)), MODEL, None),
    "matrix": (lambda p: np.asarray(scoring.load_matrix(p)[1]).tolist(), BLOSUM, "#"),
    "names": (
        lambda p: delimited.read_names(p, {"a", "é"}),
        "name\tpart\na\tx\né\ty\n",
        None,
    ),
    "pairs": (pairs, "a\té\né\ta\n", None),
    "receptors": (
        lambda p: {x: [*y] for x, y in delimited.read_airr(p, keep(p)).items()},
        "sequence_id\tjunction_aa\tlocus\né\tCASSF\tTRB\nb\tCAW\tTRA\n",
        None,
    ),
}
MARKS = {"none": b"", "byte order mark": b"\xef\xbb\xbf"}
ENDS = {"\\n": "\n", "\\r\\n": "\r\n", "\\r": "\r"}
PACKS = {
    "plain": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstd,
}
WAYS = ("file", "pipe", "standard input")
COMMENTS = ("none", "first", "second", "last")


def with_comment(text: str, sign: str | None, where: str) -> str:
    if sign is None or where == "none":
        return text
    lines = text.splitlines(keepends=True)
    place = {"first": int(sign == "#" and text[0] == "#"), "second": 1}.get(where)
    place = len(lines) - int("//" in text) if place is None else place
    return "".join([*lines[:place], f"{sign} ünd >x\n", *lines[place:]])


def read_as(reader, data: bytes, way: str, folder, monkeypatch):
    """What a reader makes of bytes that reach it in some way."""
    path = str(folder / "text")
    if way == "standard input":
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        return reader("-")
    if os.path.exists(path):
        os.unlink(path)
    if way == "file":
        (folder / "text").write_bytes(data)
        return reader(path)
    os.mkfifo(path)
    thread = threading.Thread(target=(folder / "text").write_bytes, args=[data])
    thread.start()
    try:
        return reader(path)
    finally:
        thread.join()


@pytest.mark.parametrize("kind", KINDS)
def test_forms_of_a_text(kind, tmp_path, monkeypatch):
    reader, text, sign = KINDS[kind]
    plain = tmp_path / "plain"
    plain.write_bytes(text.encode())
    want = reader(str(plain))
    ways = WAYS[:2] if kind == "matrix" else WAYS
    drawn = pairwise(list(MARKS), list(ENDS), list(PACKS), ways, COMMENTS)
    for mark, end, pack, way, comment in drawn:
        lines = with_comment(text, sign, comment).replace("\n", ENDS[end])
        data = PACKS[pack](MARKS[mark] + lines.encode())
        found = read_as(reader, data, way, tmp_path, monkeypatch)
        assert found == want, (mark, end, pack, way, comment)
