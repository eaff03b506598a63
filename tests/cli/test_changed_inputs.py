"""A file that changes while a command reads it is refused, and nothing is written."""

import os
from pathlib import Path

import jax  # noqa: F401  (before main(), which else turns on a compilation cache)
import numpy as np
import pytest
from verb_jobs import fasta

import jaxalign
from jaxalign.cli.main import main
from jaxalign.errors import InputError
from jaxalign.io import corpus_files
from jaxalign.model import source
from jaxalign.model.alphabet import named_alphabet

CUT = ("--max-identity", "0.5")
# Of verbs that read their sequences again, to copy headings and letters as they are.
COPIES = {
    "dedup": ("dedup", "a.fa", "--min-identity", "0.5", "-o", "out.fa"),
    "purge": ("purge", "a.fa", "--against", "b.fa", *CUT, "-o", "out.fa"),
    "split": ("split", "a.fa", *CUT, "--folds", "2", "--fasta", "out.fa"),
}
CHANGES = {
    "appended": lambda text: text + b">d\nMK\n",
    "cut": lambda text: text[:-3],
    "a letter": lambda text: text.replace(b"MKTAY", b"MKTAW"),
    "dates alone": lambda text: text,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.fa").write_bytes(fasta())
    Path("b.fa").write_bytes(fasta(("x",), ("WWWWWWWW",)))
    return tmp_path


def change(how: str) -> None:
    """A change of the file, with another date."""
    path = Path("a.fa")
    path.write_bytes(CHANGES[how](path.read_bytes()))
    os.utime(path, ns=(1, np.random.default_rng(0).integers(1, 2**60).item()))


@pytest.mark.parametrize("verb", COPIES)
@pytest.mark.parametrize("how", CHANGES)
def test_between_two_readings(folder, monkeypatch, capsys, verb, how):
    copied = corpus_files._copied

    def copied_later(*given):
        monkeypatch.setattr(corpus_files, "_copied", copied)
        change(how)
        yield from copied(*given)

    monkeypatch.setattr(corpus_files, "_copied", copied_later)
    assert main([*COPIES[verb], "-q"]) == InputError.exit_code
    assert "a.fa: changed while it was read" in capsys.readouterr().err
    files = [path for path in Path("out.fa").rglob("*") if path.is_file()]
    assert not files and not Path("out.fa").is_file()
    Path("a.fa").write_bytes(fasta())
    assert main([*COPIES[verb], "-q", "--force"]) == 0


@pytest.mark.parametrize("how", CHANGES)
def test_during_a_reading(folder, how):
    """In Python too, where a later call may read what is new."""
    with pytest.raises(InputError, match="changed while it was read"):
        with source.open_text("a.fa") as handle:
            next(handle)
            change(how)
            handle.read()
    Path("a.fa").write_bytes(fasta())
    alphabet = named_alphabet("protein")
    blocks = corpus_files.blocks(("a.fa",), alphabet, records=1)
    next(blocks)
    change(how)
    with pytest.raises(InputError, match="changed while it was read"):
        list(blocks)
    Path("a.fa").write_bytes(fasta())
    jaxalign.align_all("a.fa", output="score")


def test_during_the_digest_of_a_command(folder):
    with source.streams_kept():
        assert len(source.sha256("a.fa") or "") == 64
        change("dates alone")
        with pytest.raises(InputError, match="changed while it was read"):
            source.sha256("a.fa")
    assert source.sha256("a.fa")
