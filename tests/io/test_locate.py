"""Where a letter stands is found in the memory and time of one more read."""

import subprocess
import sys

import pytest

from jaxalign.errors import InputError
from jaxalign.io import locate


@pytest.mark.parametrize("stretch", [1, 2, 3, 7, 10**6])
def test_a_place_does_not_depend_on_stretches(tmp_path, monkeypatch, stretch):
    monkeypatch.setattr(locate, "STRETCH", stretch)
    path = tmp_path / "a.fa"
    path.write_text(">a\n  MK V\tA \n\n; a comment\n M K\u00e91 A\n>b\nM1\n")
    letters = [locate.letter_place(str(path), None, 0, k) for k in range(9)]
    assert "".join(place.letter for place in letters) == "MKVAMK\u00e91A"
    assert [place.line for place in letters] == [2] * 4 + [5] * 5
    assert [place.column for place in letters] == [3, 4, 6, 8, 2, 4, 5, 6, 8]
    assert locate.letter_place(str(path), None, 1, 1) == (7, 2, "1")
    with pytest.raises(InputError, match="changed"):
        locate.letter_place(str(path), None, 0, 9)


LONG = """
import resource
from jaxalign.errors import InputError
from jaxalign.io import fasta
from jaxalign.model.scoring import Scoring
alphabet = Scoring().alphabet
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    fasta.read({path!r}, alphabet)
except InputError as error:
    print(str(error).split(":")[0].rsplit(",", 1)[1])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def test_a_bad_letter_at_the_end_of_a_long_line(tmp_path):
    """10 MB of one line: a list of its columns took 400 MB."""
    path = tmp_path / "a.fa"
    path.write_bytes(b">a\n" + b"A" * (10**7 - 1) + b"1\n")
    words = [sys.executable, "-c", LONG.format(path=str(path))]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    column, megabytes = done.stdout.split("\n")[:2]
    assert column == " column 10000000" and float(megabytes) < 150
