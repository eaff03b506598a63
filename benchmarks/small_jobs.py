"""Jobs that end before a compiler has begun: seconds of whole processes, and of a fill.

    python benchmarks/small_jobs.py              by rows and compiled, each three times
    python benchmarks/small_jobs.py --fill       GCUPS of the fill by rows alone

A process starts, imports, reads, aligns and writes. ``stored`` has the programs of the
run before on disk; ``cold`` has an empty folder for them.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from measure import gcups, machine, show_machine  # noqa: E402

LETTERS = np.array(list("ARNDCQEGHILKMFPSTWYV"))
CALLS = """
import numpy as np, jaxalign
rng = np.random.default_rng(3)
letters = np.array(list("ARNDCQEGHILKMFPSTWYV"))
def text(low, high):
    return "".join(rng.choice(letters, rng.integers(low, high)))
"""
MANY = (
    CALLS
    + """
for _ in range(100):
    jaxalign.align(text(20, 901), text(20, 901))
"""
)
ZIPPED = (
    CALLS
    + """
sets = [[text(50, 501) for _ in range(1000)] for _ in "ab"]
jaxalign.align_pairs(*sets, output="alignment")
"""
)
PROCESSES = {
    "jaxalign align, 330 and 340 residues": ["-m", "jaxalign", "align", "a.fa", "b.fa"],
    "jaxalign demo, 120 pairs of globins": ["-m", "jaxalign", "demo"],
    "jaxalign search, 20 residues in 30 proteins": [
        "-m", "jaxalign", "search", "q.fa", "db.fa"
    ],
    "100 calls of align, 20 to 900 residues": ["-c", MANY],
    "align_pairs, 1,000 pairs of 50 to 500 with paths": ["-c", ZIPPED],
}  # fmt: skip
SHAPES = ((1, 330, 340), (1, 900, 900), (100, 275, 275), (32, 900, 900))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fill", action="store_true", help="GCUPS of the fill alone")
    asked = parser.parse_args()
    show_machine(machine())
    if asked.fill:
        fills()
    else:
        processes()


def processes() -> None:
    """Median seconds of each process, by rows, compiled with stored programs, cold."""
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(Path(folder))
        for name, words in PROCESSES.items():
            stored = os.path.join(folder, "stored")
            cold = seconds(words, folder, rows=False, cache=os.path.join(stored, name))
            again = seconds(words, folder, rows=False, cache=os.path.join(stored, name))
            rows = statistics.median(seconds(words, folder, rows=True) for _ in "123")
            print(f"{name}: rows {rows:.2f} s, stored {again:.2f} s, cold {cold:.2f} s")


def seconds(words, folder: str, rows: bool, cache: str = "") -> float:
    """Wall seconds of one process."""
    named = {"JAXALIGN_ROWS": "on" if rows else "off"}
    named |= {"XDG_CACHE_HOME": cache} if cache else {}
    begin = time.perf_counter()
    subprocess.run(
        [sys.executable, *words], cwd=folder, env=os.environ | named,
        capture_output=True, check=True,
    )  # fmt: skip
    return time.perf_counter() - begin


def write_inputs(folder: Path) -> None:
    rng = np.random.default_rng(1)

    def text(length):
        return "".join(rng.choice(LETTERS, length))

    for name, length in (("a", 330), ("b", 340), ("q", 20)):
        (folder / f"{name}.fa").write_text(f">{name}\n{text(length)}\n")
    records = (f">d{k}\n{text(200)}\n" for k in range(30))
    (folder / "db.fa").write_text("".join(records))


def fills() -> None:
    """The fill and its walk, the best of five, in each integer type."""
    from jaxalign.model.scoring import Scoring
    from jaxalign.pairs.dp import rows, rows_walk

    rng, scores = np.random.default_rng(2), Scoring().scores.astype(np.int64)
    for pairs, m, n in SHAPES:
        sides = [rng.integers(0, 20, (pairs, k)).astype(np.uint8) for k in (m, n)]
        lengths = [np.full(pairs, k) for k in (m, n)]
        for dtype in ("int16", "int32"):
            for local in (False, True):
                problem = rows.RowsProblem(scores, 11, 1, frozenset(), local, False)
                figures = []
                for paths in (False, True):
                    best = np.inf
                    for _ in range(5):
                        begin = time.perf_counter()
                        filled = rows.fill(sides[0], lengths[0], sides[1], lengths[1],
                                           problem, dtype, paths)  # fmt: skip
                        if paths:
                            rows_walk.walk(filled, *sides, 255)
                        best = min(best, time.perf_counter() - begin)
                    figures.append(
                        f"{best * 1e3:.1f} ms {gcups(pairs * m * n, best):.3f} GCUPS"
                    )
                mode = "local" if local else "global"
                shown = f"score {figures[0]}, with path {figures[1]}"
                print(f"{pairs} x {m} x {n} {mode} {dtype}: {shown}")


if __name__ == "__main__":
    main()
