"""Commands of small jobs start fast: what they import, and what they say of it."""

import json
import subprocess
import sys
from importlib.resources import files

import pytest

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
