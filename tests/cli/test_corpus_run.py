"""--resume and --shard of nearest and purge, and --resume of clusters and splits: the
same bytes, whatever the parts."""

import os
from pathlib import Path
from typing import Any

import draws
import jax  # noqa: F401  (before main(), which else turns on a compilation cache)
import numpy as np
import pytest
from cases import check_state

from jaxalign.database import hits, nearest_scan, pieces
from jaxalign.errors import EXIT_CODES
from jaxalign.homology import clustering, links, purge_scan
from jaxalign.io import corpus_files, runs
from jaxalign.pairs import by_rows, part_stream
from jaxalign.pairs.proofs import proof

DONE, FAILED, USAGE, INPUT, *_, INTERRUPTED = EXIT_CODES
VERBS = {
    "identity": ("nearest", "t.fa", "c.fa", "--top", "2", "--link", "whole"),
    "score": ("nearest", "t.fa", "c.fa", "--top", "2", "--by", "score"),
    "local": ("nearest", "t.fa", "c.fa", "--min-score", "30"),
    "gated": (*"purge c.fa --against t.fa --min-identity 0.4 --min-score 30".split(),),
    "purge": (*"purge c.fa --against t.fa --min-identity 0.4 --link whole".split(),),
}
every_scan = pytest.mark.parametrize("verb", VERBS)
every_verb = pytest.mark.parametrize("verb", ("identity", "score", "purge"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A corpus of blocks of three records, a checkpoint after each."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(5)
    sizes = random.integers(4, 30, 20)
    texts = ["".join(random.choice([*"ARNDC"], size)) for size in sizes]
    tests = [text[2:] + "A" for text in texts[::4]] + ["", "XX"]
    for name, some in (("c", texts), ("t", tests)):
        lines = (f">{name}{k} x\n{text}\n" for k, text in enumerate(some))
        Path(f"{name}.fa").write_text("".join(lines))
    default = corpus_files.blocks.__defaults__
    monkeypatch.setattr(corpus_files.blocks, "__defaults__", (default[0], 10**6, 3))
    monkeypatch.setattr(runs, "EVERY", -1.0)
    monkeypatch.setattr(hits, "small_plan", lambda task, block: None)
    return tmp_path


def break_after(monkeypatch, blocks: int) -> None:
    """End a run after so many blocks, by an error that is none of the program's."""
    read, count = corpus_files.fasta.read_blocks, [0]

    def reading(*given):
        for block in read(*given):
            count[0] += 1
            if count[0] > blocks:
                raise KeyboardInterrupt
            yield block

    monkeypatch.setattr(corpus_files.fasta, "read_blocks", reading)


@every_scan
def test_an_interrupted_run_is_completed(run, folder, monkeypatch, verb):
    blocks = 3
    words = VERBS[verb]
    assert run(*words, "-o", "whole.out", "-q")[0] == DONE
    assert not Path("whole.out.partial").exists()
    with monkeypatch.context() as context:
        break_after(context, blocks)
        assert run(*words, "-o", "o.out", "-q")[0] == INTERRUPTED
    assert Path("o.out.partial").exists() and not Path("o.out").exists()
    code, _, err = run(*words, "-o", "o.out", "-q")
    assert code == USAGE and "use --resume" in err
    seen = []
    watch(monkeypatch, nearest_scan, "scan_by_identity", seen)
    watch(monkeypatch, purge_scan, "scan", seen)
    assert run(*words, "-o", "o.out", "-q", "--resume")[0] == DONE
    assert Path("o.out").read_bytes() == Path("whole.out").read_bytes()
    assert not Path("o.out.partial").exists()
    assert verb == "score" or len(seen) == 7 - blocks, "finished blocks are not read"


def watch(monkeypatch, module, name, seen):
    """Note the blocks that a scan is given."""
    scan = getattr(module, name)

    def watched(tests, blocks, *given):
        def noted():
            for block in blocks:
                seen.append(len(block))
                yield block

        return scan(tests, noted(), *given)

    monkeypatch.setattr(module, name, watched)


@every_scan
def test_a_state_of_another_run_is_refused(run, folder, monkeypatch, verb):
    words = (*VERBS[verb], "-o", "o.out", "-q")
    with monkeypatch.context() as context:
        break_after(context, 3)
        run(*words)
    changed = [(*words, *x) for x in (("--gap-open", "10"), ("--shard", "1/2"))]
    if "--min-score" in words:
        changed.append(tuple("31" if x == "30" else x for x in words))
    for other in changed:
        code, _, err = run(*other, "--resume")
        assert code == USAGE and "is of another run" in err
    whole = Path("o.out.partial").read_bytes()
    Path("o.out.partial").write_bytes(whole[: len(whole) // 2])
    code, _, err = run(*words, "--resume")
    assert code == USAGE and "is damaged" in err
    assert run(*words, "--force")[0] == DONE


@every_verb
@pytest.mark.parametrize("step", [37, pytest.param(1, marks=pytest.mark.slow)])
def test_no_state_is_trusted(run, folder, monkeypatch, verb, step):
    words = (*VERBS[verb], "-o", "o.out", "-q")
    with monkeypatch.context() as context:
        break_after(context, 3)
        run(*words)
    check_state("o.out.partial", step)
    assert run(*words, "--resume")[0] == DONE


def test_a_state_that_is_no_file_is_named(run, folder):
    words = (*VERBS["identity"], "-o", "o.out", "-q")
    Path("o.out.partial").mkdir()
    for more in ((), ("--resume",), ("--force",)):
        code, _, err = run(*words, *more)
        assert code == USAGE and "o.out.partial: is not a file" in err


# Options of each verb that a state depends on, or its result does not.
OTHERS = {
    "nearest": [
        "--top 1", "--bands 0.5", "--by score", "--by bits", "--by identity",
        "--report r.html",
    ],
    "purge": [
        "--min-identity 0.6", "--min-score 20", "--max-evalue 10", "--list r.tsv",
        "--min-identity 0.4 --min-cov 0.2 --mode local",
    ],
    "both": [
        "--identity shorter --min-length-ratio 0.5", "--identity mean",
        "--min-length-ratio 0.9", "--mode semiglobal", "--free-ends q5,t5,q3,t3",
        "--gap-open 9", "--gap-extend 2", "--gap-style blast", "--matrix BLOSUM45",
        "--match 3 --mismatch -1", "--unknown X", "--unknown mask", "--strip-stop",
        "--names number", "--no-filter", "--threads 1", "--memory-budget 1GiB",
        "--implementation rows", "--progress none", "--shard 2/2", "--alphabet dna",
    ],
}  # fmt: skip


@every_verb
@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_another_option_is_noticed(run, folder, monkeypatch, verb, step):
    """A state of other options is refused, or the result is that of a new run."""
    name, *_ = words = VERBS[verb]
    with monkeypatch.context() as context:
        break_after(context, 3)
        run(*words, "-o", "o.out", "-q")
    state = Path("o.out.partial").read_bytes()
    done = refused = 0
    for more in [*OTHERS[name], *OTHERS["both"]][::step]:
        option = more.partition(" ")[0]
        at = words.index(option) if option in words else len(words)
        changed = (*words[:at], *words[at + 2 :], *more.split(), "--force", "-q")
        if option in ("--min-score", "--max-evalue"):
            changed = [x for x in changed if x not in ("--min-identity", "0.4")]
        Path("o.out.partial").write_bytes(state)
        code, _, err = run(*changed, "-o", "o.out", "--resume")
        if code == USAGE and "is of another run" in err:
            refused += 1
            continue
        anew = run(*changed, "-o", "anew.out")
        assert (code, err) == (anew[0], anew[2]), more
        if code == DONE:
            assert Path("o.out").read_bytes() == Path("anew.out").read_bytes(), more
            done += 1
    assert refused and (done or step > 1)


@every_scan
@pytest.mark.parametrize("count", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_shards_are_the_whole(run, folder, verb, count):
    words = (*VERBS[verb], "-q")
    _, whole, _ = run(*words)
    parts = [run(*words, "--shard", f"{k}/{count}") for k in range(1, count + 1)]
    assert all(code == DONE for code, _, _ in parts)
    heading = "" if words[0] == "purge" else whole.splitlines(keepends=True)[0]
    rows = [out.removeprefix(heading) for _, out, _ in parts]
    assert heading + "".join(rows) == whole


@pytest.mark.parametrize(
    "words, text",
    [
        (("--resume",), "--resume needs -o FILE"),
        (("--shard", "3/2"), "K/N with K from 1 to N"),
    ],
)
@every_verb
def test_refusals(run, folder, verb, words, text):
    code, out, err = run(*VERBS[verb], *words)
    assert (code, out) == (USAGE, "") and text in err


def test_shards_have_no_certificate(run, folder):
    words = ("--shard", "1/2", "-o", "o.fa", "--certificate", "c.json")
    code, _, err = run(*VERBS["purge"], *words)
    assert code == USAGE and "leave out --shard" in err


LATE = {**VERBS, "search": ("search", "t.fa", "c.fa"), "index": ("index", "c.fa")}


@pytest.mark.parametrize("verb", LATE)
def test_a_fault_in_the_last_block_leaves_no_output(run, folder, monkeypatch, verb):
    """It is named; the same command on the mended file is as if it had never run."""
    monkeypatch.setattr(pieces, "BLOCK_RECORDS", 3)
    good = Path("c.fa").read_text()
    out = "o.jaxdb" if verb == "index" else "o.tsv" if verb != "purge" else "o.fa"
    words = (*LATE[verb], "-o", out, "-q")
    before = {*Path().iterdir()}
    Path("c.fa").write_text(good + ">last\nAR1NDC\n")
    code, text, err = run(*words)
    assert (code, text) == (INPUT, "") and "'1'" in err and "'last'" in err, err
    left = {*Path().iterdir()} - before
    assert all(path.suffix == ".partial" for path in left), left
    Path("c.fa").write_text(good)
    assert run(*words, "--force")[0] == DONE
    again = Path(out).read_bytes()
    for path in {*Path().iterdir()} - before:
        path.unlink()
    assert run(*words)[0] == DONE and Path(out).read_bytes() == again


@pytest.mark.slow
@every_verb
def test_an_edit_anywhere_in_the_corpus_is_noticed(run, folder, monkeypatch, verb):
    """One byte, at whichever place, with the date as it was; a new date is none."""
    words, corpus = (*VERBS[verb], "-o", "o.out", "-q"), Path("c.fa")
    assert run(*VERBS[verb], "-o", "whole.out", "-q")[0] == DONE
    with monkeypatch.context() as context:
        break_after(context, 3)
        run(*words)
    text, dates = corpus.read_bytes(), (corpus.stat().st_atime_ns,) * 2
    for place in range(0, len(text), 11):
        letter = b"A" if text[place] == ord("D") else b"D"
        corpus.write_bytes(text[:place] + letter + text[place + 1 :])
        os.utime(corpus, ns=dates)
        code, _, err = run(*words, "--resume")
        refused = code == USAGE and "another run" in err
        assert refused or code == INPUT, (place, err)
    corpus.write_bytes(text)
    os.utime(corpus, (1e9, 1e9))
    assert run(*words, "--resume")[0] == DONE
    assert Path("o.out").read_bytes() == Path("whole.out").read_bytes()


# Each way by which links become clusters or parts, a state after each part or band
CUT = ("--min-identity", "0.5")
OF_LINKS = {
    "local": ("cluster", "s.fa", *CUT, "--link", "local", "--min-score", "20"),
    "whole": ("cluster", "s.fa", *CUT, "--link", "whole"),
    "complete": ("cluster", "s.fa", *CUT, "--link", "whole", "--method", "complete"),
    "greedy": ("cluster", "s.fa", *CUT, "--method", "greedy"),
    "dedup": ("dedup", "s.fa", "--min-identity", "0.7"),
    "split": ("split", "s.fa", *CUT, "--folds", "2", "--too-large", "keep"),
    "cuts": ("split", "s.fa", "--cuts", "0.4,0.6", "--folds", "2")
    + ("--too-large", "keep", "--link", "whole"),
    "removed": ("split", "s.fa", *CUT, "--folds", "2", "--too-large", "remove"),
}
STATES = {
    "local": "joined_done",
    "whole": "joined_done",
    "greedy": "later",
    "dedup": "later",
}
SLOW = ("local", "greedy", "complete", "dedup", "cuts", "removed")
every_link = pytest.mark.parametrize(
    "verb",
    [pytest.param(x, marks=[pytest.mark.slow] * (x in SLOW)) for x in OF_LINKS],
)


@pytest.fixture
def families(tmp_path, monkeypatch):
    """Sequences in families, in parts of few rows and bands of few sequences."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(8)
    texts = draws.families(random)
    lines = (f">s{k}\n{text}\n" for k, text in enumerate(texts))
    Path("s.fa").write_text("".join(lines))
    monkeypatch.setattr(runs, "EVERY", -1.0)
    monkeypatch.setattr(by_rows, "is_short", lambda *_: False)
    monkeypatch.setattr(part_stream, "MIN_CELLS", 2**12)
    monkeypatch.setattr(part_stream, "QUERIES_STEP", 1)
    monkeypatch.setattr(proof, "LEAST_CELLS_BY_ROWS", 0)
    monkeypatch.setattr(clustering, "MOST_WAITING", 9)
    monkeypatch.setattr(clustering, "MIN_BAND", 4)
    monkeypatch.setattr(clustering, "MAX_BAND", 4)
    return len(texts)


def end_at(monkeypatch, state: int) -> None:
    """End a run when so many states were written."""
    save, count = runs.SavedRun.save, [0]

    def saving(self, arrays):
        save(self, arrays)
        count[0] += 1
        if count[0] == state:
            raise KeyboardInterrupt

    monkeypatch.setattr(runs.SavedRun, "save", saving)


@every_link
def test_links_of_an_interrupted_run_are_not_found_again(
    run, families, monkeypatch, verb
):
    """Of one that is interrupted twice, too; messages have the same counts."""
    words, aligned = OF_LINKS[verb], []

    def note(module: Any, name: str) -> None:
        known = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *x: aligned.append(1) or known(*x))

    note(clustering, "_pairs_of")
    note(links.PairCounts, "add")
    code, _, said = run(*words, "-o", "whole.tsv")
    assert code == DONE and not Path("whole.tsv.partial").exists()
    words, every = (*words, "-o", "o.tsv"), len(aligned)
    for states in ((1,), (2, 1)):
        for number, state in enumerate(states):
            with monkeypatch.context() as context:
                end_at(context, state)
                assert run(*words, *("--resume",) * number)[0] == INTERRUPTED
            assert Path("o.tsv.partial").exists() and not Path("o.tsv").exists()
            with np.load("o.tsv.partial") as arrays:
                assert STATES.get(verb, "links_done") in arrays
        aligned.clear()
        code, _, err = run(*words, "--resume")
        assert (code, err) == (DONE, said) and len(aligned) < every
        assert Path("o.tsv").read_bytes() == Path("whole.tsv").read_bytes()
        assert not Path("o.tsv.partial").exists()
        Path("o.tsv").unlink()


@every_link
def test_links_of_another_run_are_refused(run, families, monkeypatch, verb):
    words = (*OF_LINKS[verb], "-o", "o.tsv", "-q")
    with monkeypatch.context() as context:
        end_at(context, 2)
        assert run(*words)[0] == INTERRUPTED
    code, _, err = run(*words)
    assert code == USAGE and "use --resume" in err
    cut = words.index("--cuts" if verb == "cuts" else "--min-identity") + 1
    others = [("--gap-open", "10"), ("--min-length-ratio", "0.8"), ("--strip-stop",)]
    changed = [(*words, *x) for x in others]
    changed.append((*words[:cut], "0.45", *words[cut + 1 :]))
    if words[0] == "split":
        changed.append((*words, "--seed", "3"))
    for other in changed:
        code, _, err = run(*other, "--resume")
        assert code == USAGE and "is of another run" in err, other
    check_state("o.tsv.partial", 997)
    text = Path("s.fa").read_text()
    Path("s.fa").write_text(text.replace("W", "Y", 1))
    code, _, err = run(*words, "--resume")
    assert code == USAGE and "is of another run" in err
    Path("s.fa").write_text(text)
    assert run(*words, "--resume")[0] == DONE


def test_links_that_cannot_be_resumed_are_refused(run, families):
    for words in (("dedup", "s.fa"), ("cluster", "s.fa", *CUT, "-o", "-")):
        code, out, err = run(*words, "--resume")
        assert (code, out) == (USAGE, "") and "--resume needs -o FILE" in err
