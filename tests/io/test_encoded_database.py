"""Encoded databases: what is written is read back, what is wrong is refused. And FASTA
in blocks: the same records and the same messages as a file read whole."""

import gzip
import json
import struct
import tracemalloc
import zlib
from pathlib import Path

import jax  # noqa: F401  (before main(): else it turns on a compilation cache)
import numpy as np
import pytest
from cases import some_texts

import jaxalign
from jaxalign.cli.main import main
from jaxalign.errors import InputError, UsageError
from jaxalign.io import encoded_database, fasta
from jaxalign.model.alphabet import Reading, as_sequences, named_alphabet

PROTEINS = Path(__file__).parents[1] / "data" / "proteins.fasta"
PROTEIN = named_alphabet("protein")


def write(path, records):
    path.write_text("".join(f">{name}\n{text}\n" for name, text in records))
    return str(path)


@pytest.fixture
def indexed(tmp_path):
    """The path of an index of the proteins."""
    path = tmp_path / "p.jaxdb"
    jaxalign.index_database(PROTEINS, path)
    return path


# ------------------------------------------------------------------------------- index


def test_an_index_holds_what_the_file_holds(indexed):
    want, found = fasta.read(PROTEINS, PROTEIN), jaxalign.open_database(indexed)
    assert tuple(found.names) == want.names and len(found) == len(want)
    np.testing.assert_array_equal(found.codes, want.codes)
    np.testing.assert_array_equal(found.offsets, want.offsets)
    assert found.alphabet == want.alphabet
    assert found.text(7) == want.text(7)


def test_what_the_index_says_of_itself(tmp_path):
    path = write(tmp_path / "a.fa", [("a", "MKV"), ("b", ""), ("c", "MKUO")])
    with pytest.raises(InputError, match="line 6, column 3"):
        jaxalign.index_database(path, tmp_path / "a.jaxdb")
    assert list(tmp_path.iterdir()) == [tmp_path / "a.fa"]  # nothing is left behind
    made = jaxalign.index_database(path, tmp_path / "a.jaxdb", unknown="X")
    size = (tmp_path / "a.jaxdb").stat().st_size
    assert made == {"records": 3, "residues": 7, "longest": 4, "bytes": size,
                    "substituted": 2}  # fmt: skip
    with pytest.raises(UsageError, match="exists"):
        jaxalign.index_database(path, tmp_path / "a.jaxdb", unknown="X")


@pytest.mark.parametrize("texts", [[], [""], ["", "", "A"]])
def test_empty_ones(tmp_path, texts):
    sequences = as_sequences(texts, PROTEIN)
    encoded_database.create(str(tmp_path / "d"), [sequences] if texts else [], PROTEIN)
    found = jaxalign.open_database(tmp_path / "d", verify=True)
    assert [found.text(k) for k in range(len(found))] == texts


def test_blocks_and_names_beyond_ascii(tmp_path):
    texts = some_texts(1, 9)
    named = [(f"größe{k}", text) for k, text in enumerate(texts)]
    whole = as_sequences(named, PROTEIN)
    blocks = [whole.between(0, 4), whole.between(4, 5), whole.between(5, 9)]
    encoded_database.create(str(tmp_path / "d"), blocks, PROTEIN)
    found = jaxalign.open_database(tmp_path / "d", verify=True)
    assert list(found.names) == list(whole.names)
    assert [found.text(k) for k in range(9)] == texts
    assert found.names[-1] == "größe8" and len(found.names[2:5]) == 3
    assert list(found.between(2, 5).names) == list(whole.names[2:5])
    with pytest.raises(IndexError):
        found.names[9]


@pytest.mark.parametrize("alphabet", ["dna", "rna", "AB"])
def test_other_alphabets(tmp_path, alphabet):
    made = named_alphabet(alphabet)
    encoded_database.create(str(tmp_path / "d"), [as_sequences(["A"], made)], made)
    assert jaxalign.open_database(tmp_path / "d").alphabet == made
    with pytest.raises(InputError, match="letters"):
        encoded_database.mapped(tmp_path / "d", PROTEIN)


DAMAGE = {  # what is done to the bytes: what the message names
    "short": (lambda data: data[:-1], "truncated"),
    "long": (lambda data: data + b"\0", "appended"),
    "page": (lambda data: data[:100], "truncated"),
    "version": (
        lambda data: data[:8] + struct.pack("<I", 3) + data[12:],
        "version 3, this program reads versions 1 and 2",
    ),
    "text": (lambda data: flipped(data, 30), "damaged"),
    "magic": (lambda data: flipped(data, 0), "not an index"),
}


def flipped(data, place):
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize("how", DAMAGE)
def test_a_wrong_file_is_refused_at_once(indexed, how):
    change, message = DAMAGE[how]
    indexed.write_bytes(change(indexed.read_bytes()))
    with pytest.raises(InputError, match=message):
        jaxalign.open_database(indexed)


def test_a_wrong_residue_is_found_by_the_checksum(indexed):
    jaxalign.open_database(indexed, verify=True)
    indexed.write_bytes(flipped(indexed.read_bytes(), encoded_database.PAGE + 5))
    jaxalign.open_database(indexed)
    with pytest.raises(InputError, match="codes"):
        jaxalign.open_database(indexed, verify=True)


def test_a_missing_file(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        jaxalign.open_database(tmp_path / "none")
    assert not encoded_database.is_database(tmp_path / "none")
    assert not encoded_database.is_database(tmp_path)


def test_sections_are_aligned_and_stand_where_the_page_says(indexed):
    data = indexed.read_bytes()
    assert data[:8] == encoded_database.MAGIC
    version, _, length = struct.unpack("<III", data[8:20])
    about = json.loads(data[20 : 20 + length])
    assert version == encoded_database.VERSION and about["alphabet"][
        "letters"
    ] == "".join(PROTEIN.letters)
    starts = [about["sections"][name][0] for name in ("codes", "offsets", "places")]
    assert all(start % 64 == 0 for start in starts)
    start, count, _ = about["sections"]["codes"]
    first = fasta.read(PROTEINS, PROTEIN)[0]
    assert data[start : start + len(first)] == first.tobytes()
    assert count == about["residues"]


def test_taxa_of_headings_are_kept(tmp_path, capsys):
    path = write(
        tmp_path / "t.fa", [("a OX=9606", "MKV"), ("b", ""), ("c TaxID=1", "G")]
    )
    jaxalign.index_database(path, tmp_path / "t.jaxdb")
    index = tmp_path / "t.jaxdb"
    assert encoded_database.taxa_of(index).tolist() == [9606, -1, 1]
    assert [*jaxalign.open_database(index, verify=True).names] == ["a", "b", "c"]
    data = bytearray(index.read_bytes())
    data[-4:] = b"\x02\0\0\0"  # the last taxon
    index.write_bytes(data)
    assert encoded_database.taxa_of(index).tolist() == [9606, -1, 2]
    with pytest.raises(InputError, match="damaged .taxa"):
        jaxalign.open_database(index, verify=True)
    rewrite(index, lambda x: x | {"sections": x["sections"] | {"taxa": [4096, 8, 0]}})
    with pytest.raises(InputError, match="damaged .first page"):
        encoded_database.taxa_of(index)


def test_an_index_without_taxa_is_that_of_earlier_versions(indexed):
    """Byte for byte, so that either version opens it."""
    assert encoded_database.taxa_of(indexed) is None
    data = indexed.read_bytes()
    about = json.loads(data[20 : 20 + struct.unpack("<I", data[16:20])[0]])
    assert [*about["sections"]] == ["codes", "offsets", "names", "places"]
    assert encoded_database.VERSION == 1


def test_an_index_keeps_both_tracks(tmp_path, capsys):
    """Earlier programs refuse its version; scorings of one track read theirs."""
    letters = [("a", "MKVW"), ("b", ""), ("c", "MKTAYIAK")]
    states = [("a", "dvxp"), ("b", ""), ("c", "DDPVLQVC")]
    fasta_path = write(tmp_path / "t.fa", letters)
    write(tmp_path / "t_ss.fa", states)
    scoring = jaxalign.Scoring.preset("foldseek")
    assert main(["index", fasta_path, "--preset", "foldseek", "-q"]) == 0
    path = f"{fasta_path}.jaxdb"
    assert (tmp_path / "t.fa.jaxdb").read_bytes()[8] == 2
    both = jaxalign.open_database(path, verify=True)
    assert [both.text(k) for k in range(3)] == [x for _, x in letters]
    assert [both.states(k) for k in range(3)] == [x.lower() for _, x in states]
    found, want = (jaxalign.search(x, x, scoring, top=2) for x in (path, fasta_path))
    rows = [[str(table.row(k)) for k in range(4)] for table in (found, want)]
    assert rows[0] == rows[1]  # as text: bits are nan
    for matrix, source in ((None, fasta_path), ("3Di", str(tmp_path / "t_ss.fa"))):
        tables = [jaxalign.align_all(Path(x), matrix) for x in (path, source)]
        np.testing.assert_array_equal(*(table["score"] for table in tables))
    jaxalign.index_database(fasta_path, tmp_path / "one.jaxdb")
    with pytest.raises(InputError, match="both tracks of the scoring: make an index"):
        jaxalign.align_all(tmp_path / "one.jaxdb", scoring)
    data = bytearray(Path(path).read_bytes())
    data[encoded_database.PAGE + 3] = 30  # a state
    Path(path).write_bytes(data)
    with pytest.raises(InputError, match="damaged .codes"):
        jaxalign.open_database(path)


def test_opening_reads_neither_codes_nor_names(tmp_path):
    """Of 64 MB of codes, and 200,000 names, which would be a tuple of 10 MB."""
    codes = np.zeros(2**26, np.uint8)
    offsets = np.linspace(0, len(codes), 200_001).astype(np.int64)
    names = tuple(f"s{k}" for k in range(200_000))
    whole = jaxalign.Sequences(names, codes, offsets, PROTEIN)
    encoded_database.create(str(tmp_path / "d"), [whole], PROTEIN)
    jaxalign.open_database(tmp_path / "d")  # imports what it needs
    tracemalloc.start()
    found = jaxalign.open_database(tmp_path / "d")
    highest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.names[123_456] == "s123456"
    assert highest < 2**20


def rewrite(path, change, sections=None):
    """An index with another page or other sections, and right checksums."""
    data = bytearray(path.read_bytes())
    length = struct.unpack("<I", data[16:20])[0]
    about = json.loads(data[20 : 20 + length])
    for name, values in (sections or {}).items():
        start, size, _ = about["sections"][name]
        assert len(values) == size
        data[start : start + size] = values
        about["sections"][name][2] = zlib.crc32(values)
    about = change(about)
    text = about if isinstance(about, bytes) else json.dumps(about).encode()
    head = struct.pack("<8sIII", b"JAXALNDB", 1, zlib.crc32(text), len(text))
    data[: encoded_database.PAGE] = (head + text).ljust(encoded_database.PAGE, b"\0")
    path.write_bytes(data)


def section(path, name):
    """The entries of a section, to be changed."""
    data = path.read_bytes()
    length = struct.unpack("<I", data[16:20])[0]
    start, size, _ = json.loads(data[20 : 20 + length])["sections"][name]
    return np.frombuffer(data[start : start + size], encoded_database._SECTIONS[name])


def with_section(name, values):
    return lambda about: about | {"sections": about["sections"] | {name: values}}


NONSENSE = {
    "no JSON": lambda _: b"{",
    "no UTF-8": lambda _: b"\xff\xfe",
    "deep": lambda _: b"[" * 4000,
    "a list": lambda _: [],
    "null": lambda _: None,
    "no entries": lambda _: {},
    "no sections": lambda about: about | {"sections": []},
    "records as text": lambda about: about | {"records": "9"},
    "records below 0": lambda about: about | {"records": -1},
    "more records": lambda about: about | {"records": about["records"] + 1},
    "residues in fractions": lambda about: about | {"residues": 1.5},
    "more residues": lambda about: about | {"residues": about["residues"] + 1},
    "bytes as text": lambda about: about | {"bytes": "many"},
    "alphabet as text": lambda about: about | {"alphabet": "ACGT"},
    "letters as numbers": lambda about: about | {"alphabet": {"letters": 5}},
    "letters twice": lambda about: about | {"alphabet": {"letters": "AA"}},
    "other words": lambda about: about | {"alphabet": {"letters": "A", "x": 1}},
    "beyond the file": with_section("codes", [4096, 2**62, 0]),
    "before the file": with_section("offsets", [-64, 8, 0]),
    "in the page": with_section("names", [0, 8, 0]),
    "not aligned": with_section("names", [4097, 8, 0]),
    "fractions": with_section("names", [4096.0, 8, 0]),
    "two numbers": with_section("places", [4096, 8]),
    "null for a section": with_section("places", None),
}


@pytest.mark.parametrize("verify", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("name", NONSENSE)
def test_a_page_of_nonsense_with_a_right_checksum(indexed, capsys, name, verify):
    rewrite(indexed, NONSENSE[name])
    with pytest.raises(InputError, match="damaged"):
        jaxalign.open_database(indexed, verify)
    verb = ["index", "--verify"] if verify else ["all"]
    assert main([*verb, str(indexed)]) == InputError.exit_code
    assert "damaged (first page)" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["offsets", "places"])
@pytest.mark.parametrize(
    "place, value",
    [
        (5, lambda values: values[4] - 1),  # falls
        (1, lambda values: -1),
        (5, lambda values: values[-1] + 1),
        (0, lambda values: 1),
        (-1, lambda values: values[-1] + 1),
    ],
)
def test_offsets_that_are_none(indexed, monkeypatch, name, place, value):
    monkeypatch.setattr(encoded_database, "STRETCH", 4)
    values = section(indexed, name).copy()
    values[place] = value(values)
    rewrite(indexed, lambda about: about, {name: values.tobytes()})
    with pytest.raises(InputError, match=f"damaged .{name}"):
        jaxalign.open_database(indexed)


@pytest.mark.parametrize("place", [0, 1000, -1])
def test_codes_beyond_the_alphabet(indexed, monkeypatch, place):
    """They would be looked up beyond the matrix."""
    monkeypatch.setattr(encoded_database, "STRETCH", 100)
    codes = section(indexed, "codes").copy()
    codes[place] = PROTEIN.size
    rewrite(indexed, lambda about: about, {"codes": codes.tobytes()})
    with pytest.raises(InputError, match="damaged .codes"):
        jaxalign.open_database(indexed)


def test_names_that_are_no_utf_8(indexed):
    names = section(indexed, "names").copy()
    names[0] = 255
    rewrite(indexed, lambda about: about, {"names": names.tobytes()})
    assert jaxalign.open_database(indexed).names[0].startswith("\ufffd")


def test_an_index_is_taken_where_sequences_are(indexed):
    found = jaxalign.open_database(indexed).between(0, 5)
    plain = fasta.read(PROTEINS, PROTEIN).between(0, 5)
    table = jaxalign.align_all(found, output="score")
    want = jaxalign.align_all(plain, output="score")
    assert table["score"].tolist() == want["score"].tolist()
    assert table.row(3) == want.row(3)


# ------------------------------------------------------------------------------ blocks


@pytest.mark.parametrize("residues, records", [(1, 99), (1000, 99), (10**9, 10)])
def test_blocks_are_the_file(residues, records, tmp_path):
    packed = tmp_path / "p.gz"
    packed.write_bytes(gzip.compress(PROTEINS.read_bytes()))
    want = fasta.read(PROTEINS, PROTEIN)
    blocks = [b for b, _ in fasta.read_blocks(packed, PROTEIN, Reading(), residues,
                                               records)]  # fmt: skip
    assert all(len(block) <= records for block in blocks) and len(blocks) > 4
    assert all(
        block.between(0, len(block) - 1).codes.size < residues for block in blocks
    )
    assert [name for block in blocks for name in block.names] == list(want.names)
    np.testing.assert_array_equal(np.concatenate([b.codes for b in blocks]), want.codes)


BAD = {
    "letter": [("a", "MKV"), ("b", "MK"), ("c", "M1K")],
    "twice in a block": [("a", "MKV"), ("b", "MK"), ("b", "MM")],
    "twice in the file": [("a", "MKV"), ("b", "MK"), ("a", "MM")],
    "no name": [("a", "MKV"), ("b", "MK"), ("", "MM")],
}


@pytest.mark.parametrize("records", [1, 2, 3])
@pytest.mark.parametrize("name", BAD)
def test_faults_are_named_as_in_a_whole_file(tmp_path, name, records):
    path = write(tmp_path / "a.fa", BAD[name])
    with pytest.raises(InputError) as want:
        fasta.read(path, PROTEIN)
    with pytest.raises(InputError) as found:
        list(fasta.read_blocks(path, PROTEIN, Reading(), 10**9, records))
    assert str(found.value) == str(want.value)


def test_equal_hashes_of_different_names_are_no_fault(tmp_path, monkeypatch):
    monkeypatch.setattr(fasta, "hash", lambda _: 7, raising=False)
    path = write(tmp_path / "a.fa", [("a", "MKV"), ("b", "MK"), ("c", "M")])
    assert len(list(fasta.read_blocks(path, PROTEIN, Reading(), 10**9, 1))) == 3
