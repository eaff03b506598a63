"""Forked and spawned processes. What would wait for JAX's threads runs in a script of
its own, which a timeout ends."""

import os
import re
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import jaxalign
from jaxalign.cli.main import main
from jaxalign.io import fasta
from jaxalign.runtime import forks
from jaxalign.similarity import small

pytestmark = pytest.mark.usefixtures("compiled")  # rows need no JAX

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "multiprocessing.md"
# What the page shows, in its order: a pool, a loader, a loader whose workers align.
POOL, LOAD, ALIGN = re.findall(
    r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
)
SECONDS = 120
has_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
torch = pytest.mark.skipif(find_spec("torch") is None, reason="no torch")

SOME = ["MKTAY", "MKTA", "MRTAY"]
SIMILARITY, GAPS = np.eye(3, dtype=np.float32), {"gap_open": 2.0, "gap_extend": 1.0}
FLAT = np.full((2, 24), 1 / 24, np.float32)
PROFILE = jaxalign.Profile.from_sequence("MKV")
MODEL = {"similarity": SIMILARITY, **GAPS}
CALLS = {
    "align": lambda: jaxalign.align("MKV", "MRV"),
    "align_pairs": lambda: jaxalign.align_pairs(SOME, SOME),
    "align_all": lambda: jaxalign.align_all(SOME, devices="all"),
    "stream_all": lambda: list(jaxalign.stream_all(SOME)),
    "scores_matrix": lambda: jaxalign.scores_matrix(SOME),
    "distance_matrix": lambda: jaxalign.distance_matrix(SOME),
    "directions": lambda: jaxalign.directions("MKV", "MRV"),
    "dp_table": lambda: jaxalign.dp_table("MKV", "MRV"),
    "plan": lambda: jaxalign.plan(SOME),
    "hard_alignment": lambda: jaxalign.hard_alignment(**MODEL),
    "local_hits": lambda: jaxalign.local_hits(2, **MODEL),
    "k_best": lambda: jaxalign.k_best(2, **MODEL),
    "align_profile": lambda: jaxalign.align_profile(PROFILE, SOME),
    "cluster": lambda: jaxalign.cluster(SOME, min_identity=0.5),
    "deduplicate": lambda: jaxalign.deduplicate(SOME),
    "identity_graph": lambda: jaxalign.identity_graph(SOME, min_identity=0.5),
    "split": lambda: jaxalign.split(SOME, min_identity=0.9, folds=2),
    "split_series": lambda: jaxalign.split_series(SOME, cuts=[0.9], folds=2),
    "search_family": lambda: jaxalign.search_family(SOME[:1], SOME),
    "search_complexes": lambda: jaxalign.search_complexes({"ab": SOME[:2]}, SOME),
    "profile_similarity": lambda: jaxalign.profile_similarity(FLAT, FLAT),
    "hard_matrix": lambda: jaxalign.hard_matrix([SIMILARITY], **GAPS),
    "stream_hard_matrix": lambda: [*jaxalign.stream_hard_matrix([SIMILARITY], **GAPS)],
    "split_pairs": lambda: jaxalign.split_pairs(
        SOME, [("seq1", "seq2")], min_identity=0.9, folds=2
    ),
    "audit_pairs": lambda: jaxalign.audit_pairs(
        SOME, [("seq1", "seq2"), ("seq2", "seq3")], ["a", "b"], min_identity=0.9
    ),
    "audit": lambda: jaxalign.audit([SOME, SOME], min_identity=0.9),
    "search": lambda: jaxalign.search(SOME, SOME),
    "stream_search": lambda: list(jaxalign.stream_search(SOME, SOME)),
    "purge": lambda: jaxalign.purge(SOME, SOME, min_identity=0.9),
    "nearest": lambda: jaxalign.nearest(SOME, SOME),
    "align_three": lambda: jaxalign.align_three(*SOME),
    "align_triples": lambda: jaxalign.align_triples([SOME]),
    "plan_three": lambda: jaxalign.plan_three(*SOME),
    "soft_score": lambda: jaxalign.soft_score(**MODEL),
    "soft_posterior": lambda: jaxalign.soft_posterior(**MODEL),
    "expected_gaps": lambda: jaxalign.expected_gaps(**MODEL),
    "alignment_entropy": lambda: jaxalign.alignment_entropy(**MODEL),
    "sample_alignments": lambda: jaxalign.sample_alignments(None, 2, **MODEL),
    "alignment_log_prob": lambda: jaxalign.alignment_log_prob([0, 1, 2], **MODEL),
    "kl_divergence": lambda: jaxalign.kl_divergence(MODEL, MODEL),
}
NO_JAX = {"index_database", "open_database", "mea_alignment", "bucket_lengths"}
NO_JAX |= {"edit_distance", "edit_distance_graph"}  # small jobs, as the next two
NO_JAX |= {"repertoire_graph", "stream_repertoire", "read_structures"}


def run_script(folder: Path, text: str, *words: str) -> list[str]:
    """The lines that a script prints; it and its children end after ``SECONDS``."""
    script = folder / "script.py"
    script.write_text(text, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, str(script), *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        lines, errors = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    assert process.returncode == 0, errors
    return lines.splitlines()


@pytest.fixture
def without_threads(monkeypatch):
    """As in a child that was forked after JAX had started."""
    monkeypatch.setattr(forks, "threads_lost", True)


@pytest.mark.parametrize("name", CALLS)
def test_calls_that_need_jax_are_refused(name, without_threads, monkeypatch):
    monkeypatch.setattr(small, "MAX_LANES", -1)  # as if the arrays were large
    with pytest.raises(jaxalign.DeviceError, match="spawn"):
        CALLS[name]()


def test_every_public_function_is_refused_or_needs_no_jax():
    functions = {name for name in jaxalign._HOMES if name.islower()}
    assert functions == set(CALLS) | NO_JAX


def test_the_command_line_is_refused(without_threads, tmp_path, capsys, monkeypatch):
    for name in ("jaxalign.similarity.small", "jaxalign.cli.soft"):
        monkeypatch.setattr(f"{name}.MAX_LANES", -1)
    path = tmp_path / "some.fasta"
    path.write_text("".join(f">{k}\n{text}\n" for k, text in enumerate(SOME)))
    for verb in (["all"], ["three"], ["align", str(path)], ["soft", str(path)]):
        assert main([*verb, str(path)]) == jaxalign.DeviceError.exit_code
        assert "spawn" in capsys.readouterr().err


def test_what_needs_no_jax_goes_on(without_threads, tmp_path):
    path, index = tmp_path / "some.fasta", tmp_path / "some.index"
    path.write_text(">a\nMKV\n")
    assert fasta.read(path, jaxalign.Scoring().alphabet).texts() == ["MKV"]
    jaxalign.index_database(path, index)
    assert len(jaxalign.open_database(index)) == 1
    assert jaxalign.mea_alignment(SIMILARITY, "MKV", "MRV").cigar() == "3M"
    assert jaxalign.soft_posterior(**MODEL).shape == (3, 3)  # small arrays of NumPy
    assert jaxalign.hard_alignment(**MODEL).implementation == "numpy"


WORKER = """
import multiprocessing
import sys

import jaxalign


def score(pair):
    return jaxalign.align(*pair).score


def cost(gap_open):
    return jaxalign.Scoring(gap_open=gap_open).gap_open


def ask(pool, function, argument):
    try:
        return pool.apply_async(function, [argument]).get(60)
    except jaxalign.DeviceError as error:
        return error
"""
AFTER = """

if __name__ == "__main__":
    START
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        print(ask(pool, cost, 12))
        print(ask(pool, score, ("MKV", "MRV")))
        print(ask(pool, cost, 13))
"""
BEFORE = """

if __name__ == "__main__":
    import jax

    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(ask(pool, score, ("MKV", "MRV")))
        print(score(("MKTAYIA", "MKTAIA")))
        print(ask(pool, score, ("MKV", "MRV")))
"""


@has_fork
@pytest.mark.parametrize(
    "start",
    [
        'score(("MKV", "MRV"))',
        "import jax; jax.devices()",
    ],
    ids=["we", "user"],
)
@pytest.mark.slow
def test_a_fork_after_jax_has_started(start, tmp_path):
    before, refused, after = run_script(
        tmp_path, WORKER + AFTER.replace("START", start), "fork"
    )
    assert "forked after JAX had started" in refused and '"spawn"' in refused
    assert (float(before), float(after)) == (12, 13)


@pytest.mark.slow
@has_fork
def test_a_fork_before_jax_starts(tmp_path):
    assert run_script(tmp_path, WORKER + BEFORE) == ["11", "16", "11"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", ["spawn", pytest.param("forkserver", marks=has_fork)]
)
def test_other_start_methods(method, tmp_path):
    text = WORKER + AFTER.replace("START", "import jax; jax.devices()")
    before, score, after = map(float, run_script(tmp_path, text, method))
    assert (before, score, after) == (12, 11, 13)


@pytest.mark.slow
def test_the_pool_of_the_page(tmp_path):
    assert run_script(tmp_path, POOL) == ["[16, 11]"]


@torch
@pytest.mark.slow
@pytest.mark.parametrize("script", [LOAD, ALIGN], ids=["load", "align"])
def test_the_loaders_of_the_page(script, tmp_path):
    assert run_script(tmp_path, script) == ["[16, 11]"]


@has_fork
@torch
@pytest.mark.slow
@pytest.mark.parametrize(
    "script, aligns", [(LOAD, False), (ALIGN, True)], ids=["load", "align"]
)
def test_a_loader_that_forks_after_jax_has_started(script, aligns, tmp_path):
    started = 'jaxalign.align("MKV", "MRV")\n    options'
    script = script.replace('"spawn"', '"fork"').replace("options", started, 1)
    if not aligns:
        assert run_script(tmp_path, script) == ["[16, 11]"]
        return
    with pytest.raises(AssertionError, match="forked after JAX had started"):
        run_script(tmp_path, script)
