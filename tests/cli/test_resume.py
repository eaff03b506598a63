"""Runs that are killed at any moment, and completed by --resume: the same bytes."""

import re
import shutil
from pathlib import Path

import draws
import jax  # noqa: F401  (before main(), which else turns on a compilation cache)
import numpy as np
import pytest
from cases import check_state

from jaxalign.database import pieces
from jaxalign.errors import EXIT_CODES
from jaxalign.homology import clustering
from jaxalign.io import output, runs
from jaxalign.pairs import by_rows, part_stream
from jaxalign.pairs.proofs import proof
from jaxalign.triples import engine

DONE, FAILED, USAGE, INPUT, *_, INTERRUPTED = EXIT_CODES
LEAK = 6
CUT = ("--min-identity", "0.6")
AUDIT = ("audit", "a.fa", "b.fa", "c.fa", *CUT, "--worst", "2")
RELATIVES = ("--iterations", "2", "--max-evalue", "10", "--include", "1")
PAIRS = ("--pairs", "p.tsv", *CUT)
MEMORY = ("--memory-budget", "64MiB")  # which a heading says
VERBS = {
    "audit": (*AUDIT, "-o", "o.json"),
    "report": (*AUDIT, "--report", "r.html", "--leaks", "l.tsv", "-o", "o.json"),
    "histogram": (*AUDIT, "--report", "r.html", "--full-histogram"),
    "list": ("audit", "s.fa", "--split", "d.tsv", "--leaks", "l.tsv", *CUT)
    + ("--link", "whole"),
    "pairs": ("split", "s.fa", *PAIRS, "--cold", "both", "-o", "o.tsv", "--folds", "2"),
    "checked": ("audit", "s.fa", *PAIRS, "--leaks", "l.tsv", "--cold", "one"),
    "cluster": ("cluster", "s.fa", *CUT, "-o", "o.tsv", "--fasta", "f.fasta"),
    "grown": ("cluster", "s.fa", *CUT, "-o", "o.tsv", "--certificate", "o.json")
    + ("--update", "c.json"),
    "split": ("split", "s.fa", *CUT, "--folds", "2", "--too-large", "keep")
    + ("-o", "o.tsv", "--certificate", "c.json", "--report", "r.html"),
    "evidence": ("split", "s.fa", *CUT, "--folds", "2", "--too-large", "keep")
    + ("--edges", "e.tsv:3>=0.5", "--edges", "n.tsv:3<=0.9,and")
    + ("--together", "g.tsv", "-o", "o.tsv", "--certificate", "c.json"),
    "repertoire": ("repertoire", "r.fa", "--part-rows", "3", "--cutoff", "40")
    + ("-o", "o.parquet"),
    "graph": ("repertoire", "r.fa", "--part-rows", "3", "--cutoff", "40")
    + ("-o", "o.npz", "--list", "l.tsv"),
    "reference": ("repertoire", "r.fa", "--against", "t.fa", "-o", "o.tsv")
    + ("--metric", "levenshtein", "--part-rows", "2"),
    "three": ("three", "abc.fa", "--traceback", "split", *MEMORY, "-o", "o.aln"),
    "local": ("three", "abc.fa", "--mode", "local", "--schedule", "sloped", *MEMORY)
    + ("-o", "o.txt"),
    "family": ("family", "q.fa", "s.fa", *RELATIVES, "-o", "o.a3m"),
    "families": ("family", "c.fa", "s.fa", *RELATIVES, "-o", "out/"),
    "complexes": ("family", "--pair", "b.fa", "s.fa", *RELATIVES, "-o", "out/")
    + ("--taxa", "taxa.tsv"),
    "purge": ("purge", "s.fa", "--against", "a.fa", *CUT, "-o", "o.fasta")
    + ("--certificate", "c.json", "--list", "l.tsv"),
}
QUICK = {
    "pairs": 7,
    "checked": 11,
    "repertoire": 2,
    "reference": 3,
}
# Of others every state is completed, but for some that write many like ones.
STEPS = {"families": 7, "complexes": 11, "histogram": 3, "report": 3, "split": 2}
SLOW = [pytest.param(x, STEPS.get(x, 1), marks=pytest.mark.slow) for x in VERBS]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Sequences in families, in three files and one; pairs of them; small parts."""
    whole = tmp_path / "whole"
    whole.mkdir()
    monkeypatch.chdir(whole)
    random = np.random.default_rng(8)
    texts = draws.families(random)
    records = [f">s{k}\n{text}\n" for k, text in enumerate(texts)]
    random.shuffle(records)
    Path("s.fa").write_text("".join(records))
    Path("q.fa").write_text(records[0])
    for k, name in enumerate("abc"):
        Path(f"{name}.fa").write_text("".join(records[k::3]))
    count = len(texts)
    parts = [f"s{k}\t{'xyz'[k % 3]}\n" for k in range(count)]
    Path("d.tsv").write_text("name\tpart\n" + "".join(parts))
    for name, size in (("r", 16), ("t", 9)):
        middles = ("".join(random.choice([*"GLAQ"], 5)) for _ in range(size))
        lines = (f">{name}{k}\nCASS{x}YF\n" for k, x in enumerate(middles))
        Path(f"{name}.fa").write_text("".join(lines))
    sides = random.integers(count, size=(40, 2)).tolist()
    parts = [f"s{a}\ts{b}\t{'xyz'[k % 3]}\n" for k, (a, b) in enumerate(sides)]
    Path("p.tsv").write_text("first\tsecond\tpart\n" + "".join(parts))
    edges = [f"s{a}\ts{b}\t{k % 10 / 10}\tx\n" for k, (a, b) in enumerate(sides)]
    Path("e.tsv").write_text("".join(edges))
    near = [
        f"s{a}\ts{b}\t{a * b % 10 / 10}\tx\n" for a in range(count) for b in range(a)
    ]
    Path("n.tsv").write_text("".join(near))
    Path("g.tsv").write_text(
        "".join(f"s{k}\t{'xyz'[k % 3]}{k // 9}\n" for k in range(count))
    )
    Path("taxa.tsv").write_text("".join(f"s{k}\t{k // 2}\n" for k in range(count)))
    three = "".join(f">s{k}\n{text[:24]}\n" for k, text in enumerate(texts[:3]))
    Path("abc.fa").write_text(three)
    monkeypatch.setattr(pieces, "BLOCK_RECORDS", 9)
    monkeypatch.setattr(engine, "MIN_PIECE_CELLS", 2**10)
    monkeypatch.setattr(runs, "EVERY", -1.0)
    monkeypatch.setattr(by_rows, "is_short", lambda *_: False)
    monkeypatch.setattr(part_stream, "MIN_CELLS", 2**12)
    monkeypatch.setattr(part_stream, "QUERIES_STEP", 1)
    monkeypatch.setattr(proof, "LEAST_CELLS_BY_ROWS", 0)
    monkeypatch.setattr(clustering, "MOST_WAITING", 9)
    return whole


def files(path: Path) -> dict[str, bytes]:
    every = (x for x in path.rglob("*") if x.is_file())
    return {str(x.relative_to(path)): x.read_bytes() for x in every}


def timeless(answer: tuple[int, str, str]) -> tuple[int, str, str]:
    code, out, err = answer
    return code, out, re.sub(r"[0-9.]+ (s|million)\b", "0", err)


def find_old_clusters(run, verb: str) -> None:
    """Write what ``grown`` adds sequences to."""
    if verb == "grown":
        old = ("-o", "c.tsv", "--certificate", "c.json")
        assert run("cluster", "a.fa", *CUT, *old)[0] == DONE


@pytest.mark.parametrize(("verb", "step"), [*QUICK.items(), *SLOW])
def test_a_run_that_is_killed_at_any_moment_is_completed(
    run, folder, monkeypatch, verb, step
):
    """Folders are copied after a file is written, state or output, as ``kill -9`` would
    leave them; each copy is completed."""
    words = (*VERBS[verb], "--progress", "none")  # which a busy machine would print
    find_old_clusters(run, verb)
    replace_file, copies, count = output.replace_file, [], [0]

    def copying(path, fill):
        replace_file(path, fill)
        count[0] += 1
        state = Path(path).suffix == ".partial"
        if not state or not count[0] % step:
            copies.append(folder.parent / f"copy{count[0]}")
            shutil.copytree(folder, copies[-1])

    with monkeypatch.context() as context:
        context.setattr(output, "replace_file", copying)
        code, out, said = timeless(run(*words))
    assert code in (DONE, LEAK), said
    whole = files(folder)
    assert count[0] > 6 and not [x for x in whole if x.endswith(".partial")]
    copies = [copy for copy in copies if [*copy.glob("*.partial")]]
    assert copies
    monkeypatch.setattr(runs, "EVERY", 60)
    for number, copy in enumerate(copies):
        monkeypatch.chdir(copy)
        if step == 1 or not number:
            answer = run(*words)
            assert answer[0] == USAGE and not answer[1]
            assert "--resume" in answer[2] or "--force" in answer[2]
        answer = timeless(run(*words, "--resume"))
        if answer[0] == USAGE:  # a further output was written
            assert "exists; use --force" in answer[2]
            answer = timeless(run(*words, "--resume", "--force"))
        assert answer == (code, out, said), copy
        assert files(copy) == whole, copy


OTHERS = (("--gap-open", "10"), ("--min-length-ratio", "0.8"), ("--strip-stop",))
OF_RECEPTORS = (("--cutoff", "1"), ("--bad", "drop"), ("--part-rows", "4"))
OF_TRIPLES = (("--gap-open", "10"), ("--gap-model", "linear", "--gap-open", "1"))
OF_FAMILIES = (("--gap-open", "10"), ("--min-cov", "0.1"), ("--strip-stop",))
OWN = {
    "audit": ("--worst", "3"),
    "pairs": ("--seed", "3"),
    "checked": ("--second", "groups"),
    "cluster": ("--method", "greedy"),
    "split": ("--seed", "3"),
    "evidence": ("--edges", "e.tsv:3>=0.9"),
    "purge": ("--min-score", "30"),
}


@pytest.mark.parametrize(
    "verb",
    [pytest.param(x, marks=[pytest.mark.slow] * (x not in QUICK)) for x in VERBS],
)
def test_a_run_whose_inputs_or_options_changed_is_refused(
    run, folder, monkeypatch, verb
):
    words = VERBS[verb]
    find_old_clusters(run, verb)

    def ending(self, arrays):
        save(self, arrays)
        raise KeyboardInterrupt

    save = runs.SavedRun.save
    with monkeypatch.context() as context:
        context.setattr(runs.SavedRun, "save", ending)
        assert run(*words)[0] == INTERRUPTED
    (state,) = folder.glob("*.partial")
    of_verbs = {"repertoire": OF_RECEPTORS, "family": OF_FAMILIES, "three": OF_TRIPLES}
    others = of_verbs.get(words[0], OTHERS)
    changed = [(*words, *x) for x in others if x[0] != "--cutoff" or x[0] not in words]
    changed.append(tuple({"0.6": "0.65", "40": "41"}.get(x, x) for x in words))
    changed = [x for x in changed if x != words]
    changed += [(*words, *OWN[verb])] if verb in OWN else []
    for other in changed:
        for name, value in (("--worst", "3"), ("--part-rows", "4")):  # once alone
            if other[-2:] == (name, value) and name in words:
                at = words.index(name) + 1
                other = (*words[:at], value, *words[at + 1 :])
        code, _, err = run(*other, "--resume")
        assert code == USAGE and "is of another run" in err, other
    named = {x.partition(":")[0] for x in words}
    for path in sorted(named & {x.name for x in folder.iterdir()} - {"o.tsv"}):
        whole = Path(path).read_text()
        body = whole.rstrip("\n")
        other = body[:-1] + ("y" if body[-1] in "xz" else "K") + "\n"
        Path(path).write_text(f"{whole}\n" if path.endswith(".json") else other)
        code, _, err = run(*words, "--resume")
        assert code == USAGE and "is of another run" in err, path
        Path(path).write_text(whole)
    check_state(state.name, 997)
    assert run(*words, "--resume")[0] in (DONE, LEAK)
