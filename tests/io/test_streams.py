"""A compressed file of several streams gives all of its text, or an error: whichever
byte of a stream's head is changed, and wherever the file is cut."""

import bz2
import gzip
import io
import lzma
import struct
import sys
import zlib

import pytest

from jaxalign.errors import InputError
from jaxalign.model.source import BGZF_END, BUFFER, open_bytes

TEXT = b"".join(b">s%d\n%s\n" % (k, b"MKTAYIAKQR" * (k % 7)) for k in range(200))
HALF = TEXT.index(b">", len(TEXT) // 2)


@pytest.fixture(params=["zlib", "isal"])
def inflater(request, monkeypatch):
    """The library that inflates gzip."""
    if request.param == "isal":
        pytest.importorskip("isal.isal_zlib")
    else:
        monkeypatch.setitem(sys.modules, "isal.isal_zlib", None)


def zstd(data):
    return pytest.importorskip("pyarrow").Codec("zstd").compress(data, asbytes=True)


def bgzf(data):
    """A block as bgzip writes it: its size stands in the head."""
    packed = zlib.compressobj(wbits=-15)
    body = packed.compress(data) + packed.flush()
    size = struct.pack("<H", len(body) + 25)
    head = bytes.fromhex("1f8b08040000000000ff060042430200") + size
    return head + body + struct.pack("<II", zlib.crc32(data), len(data))


PACKS = {
    "gzip": (gzip.compress, b""),
    "bgzf": (bgzf, BGZF_END),
    "bzip2": (bz2.compress, b""),
    "xz": (lzma.compress, b""),
    "zstd": (zstd, b""),
}


def read(path, data):
    path.write_bytes(data)
    try:
        with open_bytes(str(path)) as stream:
            text = stream.read()
            stream.seek(0)
            assert stream.read() == text
            return text
    except InputError as error:
        assert "x.fa" in str(error)
        return None


@pytest.mark.parametrize("kind", PACKS)
@pytest.mark.usefixtures("inflater")
def test_streams_are_read_whole_or_not_at_all(kind, tmp_path):
    pack, end = PACKS[kind]
    path = tmp_path / "x.fa"
    first, second = pack(TEXT[:HALF]), pack(TEXT[HALF:])
    assert read(path, first + second + end) == TEXT
    for place in range(4 if kind == "zstd" else 24):  # these frames have no checksum
        for bit in (1, 4, 128):
            damaged = bytearray(second)
            damaged[place] ^= bit
            assert read(path, first + bytes(damaged) + end) in (None, TEXT), place
    cuts = {*range(1, 40), *range(-40, 0), len(second) // 2}
    for cut in cuts:
        assert read(path, first + second[:cut]) is None, cut
    if kind == "bgzf":
        assert read(path, first) is read(path, first + second) is None
    if kind != "zstd":
        assert read(path, first + b"no stream") is None


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "xz"])
@pytest.mark.usefixtures("inflater")
def test_padding_and_long_streams(kind, tmp_path):
    pack, path = PACKS[kind][0], tmp_path / "x.fa"
    padded = pack(TEXT[:HALF]) + bytes(4 * BUFFER) + pack(TEXT[HALF:]) + bytes(8)
    assert read(path, padded) == TEXT
    long = bytes(3 * BUFFER + 1) + TEXT
    assert read(path, pack(long) + pack(TEXT)) == long + TEXT


def test_a_frame_of_zstd_that_is_skipped(tmp_path):
    skipped = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"abcd"
    frames = (zstd(TEXT[:HALF]), zstd(TEXT[HALF:]))
    for data in (skipped + b"".join(frames), skipped.join(frames) + skipped):
        assert read(tmp_path / "x.fa", data) == TEXT


def test_reading_in_pieces(tmp_path):
    path = tmp_path / "x.fa"
    path.write_bytes(bz2.compress(TEXT) + bz2.compress(TEXT))
    with open_bytes(str(path)) as stream:
        assert io.BytesIO(TEXT + TEXT).readlines() == list(stream)
