"""FASTA by chunks is FASTA by lines, whatever stands in a file."""

import gzip
import io
import random
import re
import sys
import zlib
from itertools import product

import numpy as np
import pytest

from jaxalign.errors import InputError
from jaxalign.io import fasta
from jaxalign.model.alphabet import Reading, hashes_of, named_alphabet, names_of

# What lines begin with, end with and hold; the first of each are the usual ones.
STARTS = ["MKV", "", ">", ">a", ">b c", " >d", ";", " ", "M", "AC\tG"]
ENDS = ["\n", "\n", "\r\n", "\r", " \n", "\x0b\n", "\n\n"]
MIDDLES = ["MKTAYIAK", "", "ACGT", "\u00e9", "\x85", " ", "\x00", "MK\x1cT", "\udcff"]


def drawn(seed: int, usual: bool) -> bytes:
    """A file that begins with a header; plain, or of anything."""
    draw = random.Random(seed)
    text = ">first\n"
    for _ in range(draw.randrange(12)):
        start = draw.choice(STARTS[:5] if usual else STARTS)
        name = f"{draw.randrange(99)} x" if start.startswith(">") else ""
        middle = draw.choice(MIDDLES[:3] if usual else MIDDLES)
        text += start + name + ("" if name else middle)
        text += draw.choice(ENDS[:1] if usual else ENDS)
    text = text if draw.random() < 0.7 else text.rstrip("\n")
    return text.encode(errors="surrogateescape")


def by_lines(data: bytes):
    handle = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", errors="replace")
    return [(name, part) for name, part in fasta.records(handle)]


def by_chunks(data: bytes):
    records = []
    for chunk in fasta.record_chunks(io.BytesIO(data)):
        assert chunk.lengths.sum() == len(chunk.text)
        ends = np.cumsum(chunk.lengths).tolist()
        sides = zip(chunk.names, [0, *ends], ends, strict=False)
        records += [(name, chunk.text[a:b].tobytes()) for name, a, b in sides]
    return records


@pytest.mark.parametrize("size", [1, 7, 2**24])
@pytest.mark.parametrize("usual", [True, False])
def test_records_are_those_of_lines(monkeypatch, size, usual):
    monkeypatch.setattr(fasta, "CHUNK", size)
    for seed in range(300):
        data = drawn(seed, usual)
        assert by_chunks(data) == by_lines(data), data


@pytest.mark.parametrize("size", [1, 7, 2**24])
@pytest.mark.parametrize("usual", [True, False])
def test_taxa_are_those_of_lines(monkeypatch, tmp_path, size, usual):
    """A taxon in some headings; what follows an odd sign is of another line or none."""
    monkeypatch.setattr(fasta, "CHUNK", size)
    lengths = set()
    for seed in range(200):
        draw, data = random.Random(seed), drawn(seed, usual)
        headings = [b" OX=%d", b" Tax=a TaxID=%d r", b"", b" OX=", b"\tOX=%d"]
        headings += [b" FOX=%d", b" OX=%dx OX=8", b" OX=12345678901", b"|OX=%d|7"]
        headings += [b" OX=123456789", b" OX=%d OX=7 TaxID=6", b" xTaxID=%d"]
        lines = data.split(b"\n")
        for k, line in enumerate(lines):
            if line.strip().startswith(b">") and line.endswith(b"x"):
                word = draw.choice(headings)
                lines[k] += word % k if b"%" in word else word
        data = b"\n".join(lines)
        handle = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", errors="replace")
        expected = []
        for line in map(str.strip, handle):
            if line.startswith(">"):
                pairs = [x.split("=") for x in re.split("[^A-Za-z0-9_=]", line)]
                pairs = [x for x in pairs if x[0] in ("OX", "TaxID") and len(x) == 2]
                values = [y for _, y in pairs if re.fullmatch("[0-9]{1,9}", y)]
                expected.append(int(values[0]) if values else -1)
        (tmp_path / "x.fa").write_bytes(data)
        assert fasta.read_taxa(tmp_path / "x.fa").tolist() == expected, data
        taxa: list[np.ndarray] = []
        chunks = fasta.record_chunks(io.BytesIO(data), taxa=taxa)
        assert sum(len(x.names) for x in chunks) == len(expected)
        assert np.concatenate([[], *taxa]).tolist() == expected
        lengths.add((len(expected) > 2, max(expected, default=-1) > 0))
    assert (True, True) in lengths


@pytest.mark.parametrize("size", [7, 2**24])
@pytest.mark.parametrize("strip_stop", [True, False])
@pytest.mark.parametrize("unknown", ["error", "X", "mask"])
def test_blocks_are_those_of_lines(monkeypatch, tmp_path, size, strip_stop, unknown):
    """Codes, counts of letters that were replaced, and errors."""
    path, alphabet = tmp_path / "a.fa", named_alphabet("protein")
    reading = Reading(unknown, strip_stop)

    def outcome():
        blocks = fasta.read_blocks(path, alphabet, reading, 20, 3)
        found = []
        try:
            for block, substituted in blocks:
                found.append((*block.names, block.texts(), substituted))
        except InputError as error:
            found.append(str(error))
        return found

    monkeypatch.setattr(fasta, "CHUNK", size)
    for seed in range(40):
        data = drawn(seed, seed % 2 == 0)
        path.write_bytes(data.replace(b"MKT", [b"MUT", b"M*T", b"m*\n"][seed % 3]))
        found = outcome()
        with monkeypatch.context() as patch:
            patch.setattr(fasta, "_plain", lambda chunk, table: None)
            assert outcome() == found, path.read_bytes()


def test_an_error_comes_behind_the_blocks_before_it(monkeypatch, tmp_path):
    chunk = fasta.LEAST_CHUNK
    monkeypatch.setattr(fasta, "CHUNK", chunk)
    draw = np.random.default_rng(0)
    letters = draw.choice([*"ARNDCQ"], (9000, 60))
    text = "".join(f">s{k}\n{''.join(x)}\n" for k, x in enumerate(letters)).encode()
    packed = gzip.compress(text)[: -len(text) // 9]
    whole = len(zlib.decompressobj(31).decompress(packed)) - chunk
    assert whole > 4 * chunk
    path, names = tmp_path / "a.fa.gz", []
    path.write_bytes(packed)
    with pytest.raises(InputError, match="truncated"):
        for block, _ in fasta.read_blocks(path, named_alphabet("protein"), residues=1):
            names += block.names
    assert names == [f"s{k}" for k in range(len(names))]
    assert sum(map(len, names)) + 63 * len(names) > whole - chunk


def test_hashes_tell_names_apart():
    """Names of equal letters in another order, of equal beginnings, and none."""
    letters = "ab|1"
    names = ["".join(x) for n in range(6) for x in product(letters, repeat=n)]
    names += ["\u00e9", "e\u0301", "x" * 5000, "x" * 4999 + "y"]
    assert len({*hashes_of(names).tolist()}) == len(names)
    assert (
        [*names_of(names)] == names == [names_of(names)[k] for k in range(len(names))]
    )
    part = names_of(names)[3:9]
    assert hashes_of(part).tolist() == hashes_of(names[3:9]).tolist()
    assert [*names_of(part)] == names[3:9]


def test_most_files_are_read_without_a_line(monkeypatch):
    monkeypatch.setattr(fasta, "records", None)
    for seed in range(50):
        by_chunks(drawn(seed, True))


@pytest.mark.parametrize("residues, records", [(1, 9), (7, 9), (99, 2), (99, 99)])
def test_blocks_end_with_a_record(monkeypatch, tmp_path, residues, records):
    monkeypatch.setattr(fasta, "CHUNK", 16)
    lengths = [3, 0, 9, 5, 0, 0, 12, 1]
    path = tmp_path / "a.fa"
    path.write_text("".join(f">s{k}\n{'M' * n}\n" for k, n in enumerate(lengths)))
    alphabet = named_alphabet("protein")
    blocks = fasta.read_blocks(path, alphabet, Reading(), residues, records)
    blocks = [block for block, _ in blocks]
    assert [n for block in blocks for n in block.lengths.tolist()] == lengths
    names = [name for block in blocks for name in block.names]
    assert names == [f"s{k}" for k in range(len(lengths))]
    for block in blocks[:-1]:
        assert len(block) == records or block.lengths.sum() >= residues
        assert len(block) <= records and block.lengths[:-1].sum() < residues


def test_zstd(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "a.fa.zst"
    text = "".join(f">s{k}\nMKTAYIAK\n" for k in range(300)).encode()
    with pyarrow.CompressedOutputStream(str(path), "zstd") as stream:
        stream.write(text)
    alphabet = named_alphabet("protein")
    assert len(fasta.read(path, alphabet)) == 300
    assert sum(len(x) for x, _ in fasta.read_blocks(path, alphabet)) == 300


def test_zstd_that_is_cut_short(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "a.fa.zst"
    text = "".join(f">s{k}\n{'MKTAYIAK' * (k % 9)}\n" for k in range(999)).encode()
    packed = pyarrow.compress(text, "zstd", asbytes=True)
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(InputError, match="a.fa.zst: the zstd data|truncated"):
        fasta.read(path, named_alphabet("protein"))


def test_zstd_without_a_reader(tmp_path, monkeypatch):
    path = tmp_path / "a.fa.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfdnone")
    for module in ("compression.zstd", "pyarrow"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match="needs Python 3.14 or pyarrow"):
        fasta.read(path, named_alphabet("protein"))
