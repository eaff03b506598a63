"""Commands start fast: small jobs import no compiler, large ones start a GPU while
files are read."""

import json
import subprocess
import sys
from importlib.resources import files

import pytest

from jaxalign.cli import process

HEAVY = ["jax", "jaxlib", "biotite", "kernels_pallas", "pyarrow", "pandas"]
ALIGN = "align a.fa b.fa --json".split()
PROGRAM = f"""
import sys
from jaxalign.cli.main import main
assert main(sys.argv[1:]) == 0
heavy = [name for name in {HEAVY} if name in sys.modules]
assert not heavy, heavy
"""


@pytest.fixture
def fasta(tmp_path):
    records = (files("jaxalign.data") / "globins.fasta").read_text().split(">")[1:]
    for name, record in zip("abq", records, strict=False):
        (tmp_path / f"{name}.fa").write_text(f">{record}")
    (tmp_path / "db.fa").write_text("".join(f">{record}" for record in records))
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["align", "a.fa", "b.fa"],
        ["align", "a.fa", "b.fa", "-o", "out.sam", "--matrix", "PAM250"],
        ["all", "db.fa", "--min-identity", "0.2"],
        ["all", "db.fa", "--preset", "needle", "--implementation", "rows"],
        ["search", "q.fa", "db.fa", "-o", "hits.m8"],
        ["soft", "a.fa", "b.fa", "--mode", "local", "-o", "p.npz"],
        ["demo"],
    ],
    ids=" ".join,
)
def test_small_jobs_import_no_compiler(fasta, words):
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        cwd=fasta, capture_output=True, text=True,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr


@pytest.mark.slow
def test_a_device_by_name_computes(fasta):
    """A job for a device is not computed by rows; of --device cpu it is."""
    for words, ran in (
        (["--devices", "0"], "sweep"),
        (["--device", "cpu"], "rows"),
        (["--implementation", "wavefront"], "wavefront"),
    ):
        found = subprocess.run(
            [sys.executable, "-m", "jaxalign", *ALIGN, *words],
            cwd=fasta, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert json.loads(found.stdout)["implementation"] == ran


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
