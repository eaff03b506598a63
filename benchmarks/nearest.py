"""``nearest`` of held-out proteins: seconds, every row against brute force, and the
share that MMseqs2 misses.

    python -m benchmarks.nearest --tests 200 --brute 50 --mmseqs /path/of/mmseqs

200 of the 32,071 proteins of ``benchmarks/fetch.py`` against the others. Brute force is
parasail: scores times a power of two plus one for each identical pair, so that one
score has the best score and the most identical pairs of all alignments that reach it.
A nearest is missed by MMseqs2 where none of its hits, aligned exactly, has the identity
of the nearest.
"""

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import measure
import numpy as np
import problems

import jaxalign
from jaxalign.io import fasta

BANDS = 0.3, 0.5, 0.7, 0.9
UNIT = 2**13  # more than any of these proteins has residues
OPEN, EXTEND = 11, 1


def held_out(folder: Path, tests: int) -> tuple[list, list]:
    """(tests, corpus), and their files; names of both sets are made different."""
    records = [
        (f"{path.name[0]}_{name}", text.upper())
        for path in problems.SETS
        for name, text in problems.read_fasta(path)
        if text
    ]
    chosen = set(random.Random(1).sample(range(len(records)), tests))
    some = [x for k, x in enumerate(records) if k in chosen]
    rest = [x for k, x in enumerate(records) if k not in chosen]
    problems.write_fasta(folder / "tests.fasta", some)
    problems.write_fasta(folder / "corpus.fasta", rest)
    return some, rest


def process(folder: Path, *words: str) -> measure.Timed:
    """A command in a folder, timed."""
    return measure.timed(lambda: subprocess.run(words, cwd=folder, check=True))


def rows(path: Path) -> dict[str, dict[str, str]]:
    heading, *lines = path.read_text().splitlines()
    names = heading.split("\t")
    some = (dict(zip(names, line.split("\t"), strict=True)) for line in lines)
    return {row["test"]: row for row in some}


def brute_force(tests: list, corpus: list, near: dict) -> dict:
    """How many of some rows are those of all alignments by parasail."""
    import parasail

    letters = "ARNDCQEGHILKMFPSTWYVBZX*"
    align, costs = parasail.nw_scan_profile_32, (OPEN * UNIT, EXTEND * UNIT)
    usual = parasail.blosum62
    matrix = parasail.matrix_create(letters, 0, 0)
    places = [usual.mapper[ord(x)] for x in letters]
    scores = usual.matrix[np.ix_(places, places)].astype(np.int64) * UNIT
    own = np.arange(len(letters))[np.array(list(letters)) != "X"]
    scores[own, own] += 1
    for (i, j), score in np.ndenumerate(scores):
        matrix[i, j] = int(score)  # releases differ in what else they take
    known = set(letters)
    texts = ["".join(x if x in known else "X" for x in text) for _, text in corpus]
    lengths, wrong = np.array([len(text) for text in texts]), []
    for name, text in tests:
        text = "".join(x if x in known else "X" for x in text)
        profile = parasail.profile_create_32(text, matrix)
        counts = np.array([align(profile, x, *costs).score % UNIT for x in texts])
        shares = counts / np.maximum(lengths, len(text))
        best, row = int(np.argmax(shares)), near[name]
        same = row["nearest"] == corpus[best][0]
        if not same or row["identity"] != f"{shares[best]:.6g}":
            wrong.append((name, row["nearest"], corpus[best][0], shares[best]))
    return {"rows": len(tests), "wrong": wrong}


def missed(folder: Path, mmseqs: str, near: dict, threads: int) -> dict:
    """By band of the nearest: tests, those without a hit, and with a further one."""
    words = "easy-search tests.fasta corpus.fasta hits.m8 tmp -s 7.5 --max-seqs 4000"
    words += f" --threads {threads} -v 1"
    seconds = process(folder, mmseqs, *words.split()).seconds
    best = best_of_hits(folder)
    names = [
        f"<{BANDS[0]}",
        *(f"{a}-{b}" for a, b in zip(BANDS, BANDS[1:], strict=False)),
    ]
    names.append(f">={BANDS[-1]}")
    table = {name: [0, 0, 0] for name in names}
    for test, row in near.items():
        exact = float(row["identity"])
        line = table[names[int(np.searchsorted(BANDS, exact, side="right"))]]
        found = best.get(test)
        line[0] += 1
        line[1] += found is None
        line[2] += found is not None and found < exact - 1e-6
    about = ("tests", "no hit", "only further ones")
    return {"seconds": round(seconds, 1)} | {
        name: dict(zip(about, line, strict=True)) for name, line in table.items()
    }


def best_of_hits(folder: Path) -> dict[str, float]:
    """The largest exact identity among the hits of each test."""
    alphabet = jaxalign.Scoring().alphabet
    sides = [
        fasta.read(folder / name, alphabet, "mask")
        for name in ("tests.fasta", "corpus.fasta")
    ]
    places = [{name: k for k, name in enumerate(side.names)} for side in sides]
    hits = [x.split("\t")[:2] for x in (folder / "hits.m8").read_text().splitlines()]
    i, j = ([places[k][hit[k]] for hit in hits] for k in (0, 1))
    table = jaxalign.align_pairs(sides[0].take(i), sides[1].take(j), output="identity")
    shares, best = table.identity("longer"), {}
    for (test, _), share in zip(hits, shares.tolist(), strict=True):
        best[test] = max(best.get(test, 0.0), share)
    return best


def main() -> None:
    parser = measure.arguments(__doc__, threads=2)
    parser.add_argument("--tests", type=int, default=200)
    parser.add_argument("--brute", type=int, default=0, help="rows checked by parasail")
    parser.add_argument("--mmseqs", help="path of mmseqs")
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        tests, corpus = held_out(folder, chosen.tests)
        if not (folder / "near.tsv").exists():  # the verb as a process of its own
            words = "nearest tests.fasta corpus.fasta --link whole -o near.tsv -q"
            words += f" --unknown mask --threads {chosen.threads}"
            words = f"-m jaxalign {words}".split()
            seconds, cpu, _ = process(folder, sys.executable, *words)
            about = {"seconds": round(seconds, 1), "cpu_seconds": round(cpu, 1)}
            print(json.dumps(about), flush=True)
        near = rows(folder / "near.tsv")
        if chosen.mmseqs:
            about = missed(folder, chosen.mmseqs, near, chosen.threads)
            print(json.dumps(about), flush=True)
        if chosen.brute:
            step = -(-len(tests) // chosen.brute)
            print(json.dumps(brute_force(tests[::step], corpus, near)), flush=True)


if __name__ == "__main__":
    main()
