"""A GPU starts while files are read, and only where one will be used."""

import pytest

from jaxalign.cli import process

CASES = (
    ("search q.fa large.fa", True),
    ("cluster large.fa --min-identity 0.4", True),
    ("all small.fa", False),
    ("all gone.fa", False),
    ("all large.fa --device cpu", False),
    ("all large.fa --device=cpu", False),
    ("all large.fa --implementation sweep", False),
    ("index large.fa", False),
    ("--help", False),
    ("", False),
)


@pytest.mark.parametrize("words, wanted", CASES)
def test_large_jobs_start_a_gpu(words, wanted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.fa").write_text(">a\nMK\n")
    (tmp_path / "large.fa").write_bytes(b"A" * process.GPU_BYTES)
    assert process.seems_large(words.split()) == wanted


def test_without_a_driver_nothing_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "NVIDIA", str(tmp_path / "none"))
    monkeypatch.setattr(process, "seems_large", lambda _: True)
    monkeypatch.setattr("threading.Thread", None)
    process.start_gpu(["all", "large.fa"])


def test_what_fails_ahead_is_left_to_the_job(monkeypatch):
    """No driver, no device: the job says so where it needs one."""
    monkeypatch.setattr(process, "DRIVER", "no such library")
    monkeypatch.setattr("jaxalign.pairs.api.start_jax", lambda: 1 / 0)
    process._start_gpu()
