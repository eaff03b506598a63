"""Where a letter stands is found in the memory and time of one more read."""

import tracemalloc

import pytest

from jaxalign.errors import InputError
from jaxalign.io import fasta
from jaxalign.model.scoring import Scoring


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
    path, alphabet = tmp_path / "a.fa", Scoring().alphabet
    path.write_bytes(b">a\n" + b"A" * (10**7 - 1) + letter + b"\n")
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="line 2, column 10000000: "):
            fasta.read(path, alphabet)
        megabytes = tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()
    assert megabytes < most
