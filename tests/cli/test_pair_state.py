"""--resume of align: the same bytes as of a run that nobody interrupted."""

from pathlib import Path

import jax  # noqa: F401  (before main(), which else turns on a compilation cache)
import numpy as np
import pytest
from cases import check_state

from jaxalign.errors import EXIT_CODES
from jaxalign.io import runs
from jaxalign.pairs.long import align, fill, pruning

DONE, FAILED, USAGE, INPUT, *_, INTERRUPTED = EXIT_CODES
WORDS = ("align", "q.fa", "t.fa", "--implementation", "wavefront", "--alphabet", "dna")
WORDS += ("--threads", "1")
KINDS = {
    "paths": ("--format", "paf", "--mode", "local"),
    "scores": ("--output", "score", "--format", "tsv"),
    "strands": ("--format", "sam", "--strand", "both", "--mode", "semiglobal"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A pair that is filled in slabs, a checkpoint after each."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(5)
    query = "".join(random.choice([*"ACGT"], 240))
    target = query[:90] + query[95:200] + "".join(random.choice([*"ACGT"], 60))
    target = target.translate(str.maketrans("ACGT", "TGCA"))[::-1]
    for name, text in (("q", query), ("t", target)):
        Path(f"{name}.fa").write_text(f">{name}\n{text}\n")
    monkeypatch.setattr(runs, "EVERY", -1.0)
    monkeypatch.setenv("JAXALIGN_ROWS", "off")
    monkeypatch.setattr(align, "LONG_CELLS", 10_000)
    monkeypatch.setattr(align, "SLAB_CELLS", 10_000)
    monkeypatch.setattr(pruning, "MIN_CELLS", 0)
    monkeypatch.setattr(fill, "TILE_ROWS", 64)
    monkeypatch.setattr(fill, "SMALL_TILE_COLUMNS", 64)
    return tmp_path


class Slabs:
    """Counts the slabs that are filled, and ends a run after some of them."""

    def __init__(self, monkeypatch, last=10**9):
        self.count, self.last, self.fill = 0, last, fill.fill_by_tiles
        monkeypatch.setattr(fill, "fill_by_tiles", self)

    def __call__(self, *args, **options):
        if "share" in options:
            self.count += 1
            if self.count > self.last:
                raise KeyboardInterrupt
        return self.fill(*args, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_run_is_completed(run, folder, monkeypatch, kind):
    words = (*WORDS, *KINDS[kind], "-q")
    with monkeypatch.context() as context:
        slabs = Slabs(context)
        assert run(*words, "-o", "whole.out")[0] == DONE
    assert slabs.count >= 6 and not Path("whole.out.partial").exists()
    for last in (1, slabs.count - 1):
        with monkeypatch.context() as context:
            Slabs(context, last)
            assert run(*words, "-o", "o.out", "--force")[0] == INTERRUPTED
        assert Path("o.out.partial").exists() and not Path("o.out").exists()
        code, _, err = run(*words, "-o", "o.out")
        assert code == USAGE and "use --resume" in err
        with monkeypatch.context() as context:
            rest = Slabs(context)
            assert run(*words, "-o", "o.out", "--resume")[0] == DONE
        assert rest.count == slabs.count - last
        assert Path("o.out").read_bytes() == Path("whole.out").read_bytes()
        assert not Path("o.out.partial").exists()
        Path("o.out").unlink()


def test_a_state_of_another_run_is_refused(run, folder, monkeypatch):
    words = (*WORDS, *KINDS["paths"], "-o", "o.out", "-q")
    with monkeypatch.context() as context:
        Slabs(context, 2)
        assert run(*words)[0] == INTERRUPTED
    for more in (("--gap-open", "9"), ("--strand", "both"), ("--free-ends", "q5")):
        same = ("--mode", "local") if "--free-ends" in more else ()
        words_of_one = [x for x in words if x not in same]
        code, _, err = run(*words_of_one, "--resume", *more)
        assert code == USAGE and "is of another run" in err
    Path("t.fa").write_text(Path("t.fa").read_text().replace("ACG", "ACA", 1))
    code, _, err = run(*words, "--resume")
    assert code == USAGE and "is of another run" in err
    whole = Path("o.out.partial").read_bytes()
    Path("o.out.partial").write_bytes(whole[: len(whole) // 2])
    code, _, err = run(*words, "--resume")
    assert code == USAGE and "is damaged" in err
    assert run(*words, "--force")[0] == DONE


@pytest.mark.parametrize("step", [997, pytest.param(7, marks=pytest.mark.slow)])
def test_no_state_is_trusted(run, folder, monkeypatch, step):
    words = (*WORDS, *KINDS["paths"], "-o", "o.out", "-q")
    with monkeypatch.context() as context:
        Slabs(context, 2)
        assert run(*words)[0] == INTERRUPTED
    check_state("o.out.partial", step)
    assert run(*words, "--resume")[0] == DONE


def test_refusals(run, folder):
    for more in ((), ("-o", "-")):
        code, out, err = run(*WORDS, "--resume", *more)
        assert (code, out) == (USAGE, "") and "--resume needs -o FILE" in err
    code, _, err = run("align", "-", "t.fa", "-o", "o.tsv", "--resume")
    assert code == USAGE and "read again" in err
    code, _, err = run("align", "q.npz", "t.npz", "--embeddings", "--resume")
    assert code == USAGE and "--embeddings" in err


def test_small_pairs_leave_nothing(run, folder, monkeypatch):
    monkeypatch.setattr(align, "SLAB_CELLS", 10**6)
    with monkeypatch.context() as context:
        slabs = Slabs(context, 0)
        assert run(*WORDS, "-o", "o.tsv", "--resume", "-q")[0] == DONE
    assert not slabs.count and {*Path().iterdir()} >= {Path("o.tsv")}
    assert not Path("o.tsv.partial").exists()
