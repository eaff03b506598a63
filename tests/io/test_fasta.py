"""FASTA in: what is read, and what every refusal says."""

import bz2
import gzip
import io
import lzma
import os
import sys
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from biotite.sequence.io.fasta import FastaFile

from jaxalign.cli.main import main
from jaxalign.errors import InputError, MemoryPlanError, UsageError
from jaxalign.io import corpus_files, fasta
from jaxalign.io.fasta import encode, encode_counted, read, read_raw
from jaxalign.model.alphabet import Reading, named_alphabet

PROTEIN, DNA = named_alphabet("protein"), named_alphabet("dna")
TEXT = ">a first\nWWCH\nEY\n\n>b\nhkml*\n>empty\n>c\tlast\nAR ND\t\n"


def written(tmp_path, text, name="q.fasta"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def records(sequences):
    return {n: sequences.text(i) for i, n in enumerate(sequences.names)}


def refused(path, alphabet=PROTEIN, unknown="error", error=InputError):
    with pytest.raises(error) as caught:
        read(path, alphabet, unknown)
    return str(caught.value)


def says(message, *parts):
    missing = [part for part in parts if part not in message]
    assert not missing, f"{missing} not in {message!r}"


def stdin_of(monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


EXPECTED = {"a": "WWCHEY", "b": "HKML*", "empty": "", "c": "ARND"}


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_compression_is_told_by_the_first_bytes(tmp_path, pack):
    path = written(tmp_path, pack(TEXT.encode()), "no_suffix")
    assert records(read(path, PROTEIN)) == EXPECTED


def test_layout(tmp_path):
    sequences = read(written(tmp_path, TEXT), PROTEIN)
    assert sequences.codes.dtype == np.uint8
    assert sequences.offsets.dtype == np.int64
    assert sequences.offsets.tolist() == [0, 6, 11, 11, 15]
    assert sequences.lengths.tolist() == [6, 5, 0, 4]


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("\n", "\r\n"),
        TEXT.rstrip(),
        "\ufeff" + TEXT,
        "; a comment\n\n" + TEXT.replace(">b", ";c\n> b"),
        TEXT.replace("WWCH\nEY", "W W C H E\u00a0Y"),
    ],
    ids=["crlf", "no final newline", "byte order mark", "comments", "spaces"],
)
def test_variants_read_the_same(tmp_path, text):
    assert records(read(written(tmp_path, text), PROTEIN)) == EXPECTED


def test_path_objects_and_utf8_names(tmp_path):
    path = written(tmp_path, ">protéine\nWW\n")
    assert read(tmp_path / os.path.basename(path), PROTEIN).names == ("protéine",)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input(monkeypatch, pack):
    stdin_of(monkeypatch, pack(TEXT.encode()))
    assert records(read("-", PROTEIN)) == EXPECTED


def test_standard_input_is_looked_up_again(monkeypatch):
    stdin_of(monkeypatch, b">a\nWW\n>b\nW1W\n")
    says(refused("-"), "standard input, line 4, column 2", "record 2 ('b')", "'1'")


def test_standard_input_closed(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    says(refused("-"), "standard input", "closed")


def test_named_pipe_is_looked_up_again(tmp_path):
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    write = Path(path).write_text
    writer = threading.Thread(target=write, args=(">a\nW\n-\n",))
    writer.start()
    says(refused(path), path, "line 3, column 1", "'-'", "unaligned")
    writer.join()


NOISE = ">a\n" + "".join(np.random.default_rng(0).choice(list("ARND"), 200_000))


def halved(pack):
    data = pack(NOISE.encode())
    return data[: len(data) // 2]


def corrupt(place):
    data = bytearray(gzip.compress(NOISE[:5000].encode()))
    data[place : place + 4] = b"\xff\xff\xff\xff"
    return bytes(data)


@pytest.mark.parametrize(
    "text, parts",
    [
        (
            TEXT + ">d x\nWWW\n;c\n W 7WW\n8\n",
            [
                "line 13, column 4: record 5 ('d') holds '7'",
                "1 more",
                "the protein alphabet is ARND",
            ],
        ),
        (">a\n>b\n>c\n\n?\n", ["line 5, column 1: record 3"]),
        (">a\nWWéW\n", ["line 2, column 3", "'é'"]),
        (b"", ["is empty", "'>'"]),
        (gzip.compress(b""), ["is empty", "'>'"]),
        ("\n;x\n", ["holds no record"]),
        ("\nMKT\n>a\nWW\n", ["line 2, column 1", "'>'", "'MKT'"]),
        ("@r\nAC\n+\n!!\n", ["line 1", "FASTQ"]),
        (halved(gzip.compress), ["gzip", "truncated"]),
        (halved(bz2.compress), ["bzip2", "truncated"]),
        (halved(lzma.compress), ["xz", "truncated"]),
        (corrupt(-6), ["gzip", "corrupt"]),
        (corrupt(200), ["gzip", "corrupt"]),
        (
            ">a one\nW\n>b\nW\n\n>a two\nW\n",
            ["line 6, column 1", "record 3", "'a'", "record 1 (line 1)"],
        ),
        *(
            (f">a\nW\n{heading}\nW\n", ["line 3, column 1", "record 2", "empty header"])
            for heading in (">", "> ", ">\t")
        ),
    ],
    ids=map(str, range(17)),
)
def test_what_is_wrong_is_said_and_where(tmp_path, text, parts):
    path = written(tmp_path, text)
    message = refused(path)
    says(message, *parts)
    assert message.startswith(path)


def test_missing_file_and_folder(tmp_path):
    says(refused(str(tmp_path / "none.fa")), "none.fa", "no such file")
    says(refused(str(tmp_path)), str(tmp_path), "is a folder, and a file is needed")


@pytest.mark.parametrize("letter", "UOJu")
def test_hint_to_unknown_x(tmp_path, letter):
    path = written(tmp_path, f">a\nW{letter}W\n")
    says(refused(path), f"{letter!r}", "hint: --unknown X reads U, O and J as X")
    sequences, count = encode_counted(read_raw(path), PROTEIN, "X")
    assert (sequences.text(0), count) == ("WXW", 1)


def test_hint_to_mask(tmp_path):
    path = written(tmp_path, f">a\nACEF{'ACGT' * 5}\n")
    says(refused(path, DNA), "'E'", "dna alphabet", "--unknown mask", "as N")
    sequences, count = encode_counted(read_raw(path), DNA, "mask")
    assert (sequences.text(0)[:5], count) == ("ACNNA", 2)
    protein = written(tmp_path, ">a\nMKTAYIAK\n")
    says(refused(protein, DNA), "'I'", "letters of proteins, the scoring is of nucleo")


@pytest.mark.parametrize("unknown", ["error", "X", "mask"])
@pytest.mark.parametrize("sign", "-.17?")
def test_signs_are_refused_under_every_policy(tmp_path, unknown, sign):
    message = refused(written(tmp_path, f">a\nWW{sign}\n"), unknown=unknown)
    says(message, "line 2, column 3", repr(sign))


def test_unknown_policy_is_checked(tmp_path):
    message = refused(written(tmp_path, TEXT), unknown="U", error=UsageError)
    says(message, "'U'", "error, X, mask")


def test_second_read_of_a_changed_file(tmp_path):
    path = written(tmp_path, ">a\nW\n>b\nW7\n")
    raw = read_raw(path)
    written(tmp_path, ">a\nW\n")
    with pytest.raises(InputError, match="changed while"):
        encode_counted(raw, PROTEIN)


@pytest.mark.parametrize("seed", range(40))
def test_records_are_those_of_biotite(tmp_path, seed):
    """Headers, blank lines, comments, white space and ends of lines of any kind."""
    rng = np.random.default_rng(seed)
    pieces = ["WWCH", " EY\t", "", ";no >x", "  ", "hk l*", "W\u00a0H", "\x0bAR"]
    ends = ["\n", "\r\n", "\r"]
    lines = [f">r{k} of {k}" if k % 4 == 0 else rng.choice(pieces) for k in range(40)]
    text = "".join(
        line + rng.choice(ends[:3] if seed % 2 else ends[:1]) for line in lines
    )
    path = written(tmp_path, text)
    raw = read_raw(path)
    with open(path) as handle:
        known = [
            (h.split()[0], "".join(s.split())) for h, s in FastaFile.read_iter(handle)
        ]
    letters = [
        raw.text[i:j].tobytes().decode()
        for i, j in zip(raw.offsets[:-1], raw.offsets[1:], strict=True)
    ]
    assert list(raw.names) == [header.split()[0] for header, _ in known]
    assert letters == ["".join(text.split()) for _, text in known]


@pytest.mark.parametrize("place", ["record_chunks", "_joined", "substitute_unknown"])
def test_what_does_not_fit_into_memory_is_named(tmp_path, monkeypatch, capsys, place):
    """A small file may hold a large text: no option makes it smaller."""

    def full(*_):
        raise MemoryError

    monkeypatch.setattr(fasta, place, full)
    path = tmp_path / "bomb.fa.gz"
    path.write_bytes(gzip.compress(b">a\nMKV\n>b\nMKV\n"))
    assert main(["all", str(path)]) == MemoryPlanError.exit_code
    said = capsys.readouterr().err
    assert "bomb.fa.gz: its content does not fit" in said
    assert "memory-budget" not in said


@pytest.mark.parametrize("stretch", [1, 2, 3, 7, 10**6])
def test_a_place_does_not_depend_on_stretches(tmp_path, monkeypatch, stretch):
    monkeypatch.setattr(fasta, "STRETCH", stretch)
    path = tmp_path / "a.fa"
    path.write_text(">a\n  MK V\tA \n\n; a comment\n M K\u00e91 A\n>b\nM1\n")
    letters = [fasta.letter_place(str(path), None, 0, k) for k in range(9)]
    assert "".join(place.letter for place in letters) == "MKVAMK\u00e91A"
    assert [place.line for place in letters] == [2] * 4 + [5] * 5
    assert [place.column for place in letters] == [3, 4, 6, 8, 2, 4, 5, 6, 8]
    assert fasta.letter_place(str(path), None, 1, 1) == (7, 2, "1")
    with pytest.raises(InputError, match="changed"):
        fasta.letter_place(str(path), None, 0, 9)


@pytest.mark.parametrize("letter, most", [(b"1", 42), (b"\xff", 62), (b"\xc3\xa9", 42)])
def test_a_bad_letter_at_the_end_of_a_long_line(tmp_path, letter, most):
    """10 MB of one line, of which few copies are made: a list of its letters or columns
    has 8 bytes or more each."""
    path = tmp_path / "a.fa"
    path.write_bytes(b">a\n" + b"A" * (10**7 - 1) + letter + b"\n")
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="line 2, column 10000000: "):
            fasta.read(path, PROTEIN)
        megabytes = tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()
    assert megabytes < most


def plainly(text: str) -> tuple[list[str], list[str]]:
    """Names and letters with numbered names and without stops, a record at a time."""
    names, letters = [], []
    for record in ("\n" + text).split("\n>")[1:]:
        heading, _, body = record.partition("\n")
        name, number = heading.split()[0], 2
        while f"{name}_{number}" in names:
            number += 1
        names.append(f"{name}_{number}" if name in names else name)
        body = "".join(x for x in body.split("\n") if not x.startswith(";"))
        letters.append(body.upper()[:-1] if body.endswith("*") else body.upper())
    return names, letters


@pytest.mark.parametrize("seed", [*range(20)])
def test_stops_go_and_names_are_numbered(tmp_path, seed):
    """In any blocks, in a folder of files, and in what is copied."""
    random = np.random.default_rng(seed)
    draw, reading = random.choice, Reading("error", True, "number")
    lines = ["", "MK", "MK*", "*", "V", "; c*", "mk*v"]

    def file():
        headings = draw(["a", "a x", "b", "a_2", "a_2 y", "b_2 z"], 8)
        bodies = ("\n".join(draw(lines, draw(4))) for _ in headings)
        pairs = zip(headings, bodies, strict=True)
        return "".join(f">{x}\n{y}\n" for x, y in pairs)

    (tmp_path / "db").mkdir()
    texts = [file(), file()]
    for name, text in zip("xy", texts, strict=True):
        (tmp_path / "db" / f"{name}.fa").write_text(text)
    names, letters = plainly("".join(texts))
    path = str(tmp_path / "db" / "x.fa")
    raw = read_raw(path, reading=reading)
    assert [*raw.names] == names[:8] and len(set(names)) == 16
    assert encode(raw, PROTEIN).texts() == letters[:8]
    files = corpus_files.files_of(tmp_path / "db")
    blocks = [*corpus_files.blocks(files, PROTEIN, reading, 3, 1 + seed % 5)]
    assert [x for block in blocks for x in block.sequences.names] == names
    assert [x for block in blocks for x in block.sequences.texts()] == letters
    chosen = random.random(16) < 0.6
    copied = tmp_path / "copied.fa"
    for count, some in ((8, files[:1]), (16, files)):
        which = chosen[:count]
        if which.any():
            pieces = corpus_files.corpus_pieces(some, PROTEIN, which, reading)
            copied.write_text("".join(pieces))
            again = encode(read_raw(copied), PROTEIN)
            assert [*again.names] == [*np.array(names)[:count][which]]
            assert again.texts() == [*np.array(letters)[:count][which]]
