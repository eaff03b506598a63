"""``nearest`` of many queries against a large synthetic corpus: TCUPS end to end.

    python -m benchmarks.nearest_gpu FOLDER --by identity

FOLDER is of ``benchmarks.nearest_corpus``. Prints a line of JSON: seconds from the
files to the rows, cells a second, the share of the time that the scan waited for the
next block, after the first ten seconds, the memory of the host, and how many of the
planted relatives are found. One that is not the nearest is found where the nearest is
nearer: its identity or its score, of an alignment of its own, is larger.
"""

import argparse
import json
import resource
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

import jaxalign  # noqa: E402
import jaxalign.corpus  # noqa: E402
from jaxalign.database import nearest, nearest_launches, nearest_state  # noqa: E402
from jaxalign.io import corpus_files, fasta  # noqa: E402
from jaxalign.model.scoring import Scoring  # noqa: E402

WARM_SECONDS = 10


class Waits:
    """Seconds that a scan waits for blocks: (when, how long)."""

    def __init__(self):
        self.began, self.times = time.perf_counter(), []
        self.reads = nearest.read_ahead
        nearest.read_ahead = self.watched

    def watched(self, blocks):
        blocks = iter(self.reads(blocks))
        while True:
            asked = time.perf_counter()
            block = next(blocks, None)
            self.times.append((asked, time.perf_counter() - asked))
            if block is None:
                return
            yield block

    def share(self) -> float:
        """Of the time after the first seconds; that for the end of the files counts."""
        end, start = time.perf_counter(), self.began + WARM_SECONDS
        late = sum(long for when, long in self.times if when > start)
        return late / max(end - start, 1e-9)


def relatives(folder: Path) -> dict[str, tuple[str, float]]:
    """query -> (planted relative, identity without gaps)."""
    rows = (line.split("\t") for line in open(folder / "planted.tsv"))
    return {row[0]: (row[1], float(row[2])) for row in rows}


def planted_texts(folder: Path, names: set[str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for path in sorted((folder / "corpus").iterdir()):
        with open(path) as handle:
            records = fasta.records(handle)
            texts |= {name: text.decode() for name, text in records if name in names}
    return texts


def checked(folder: Path, near, by: str) -> dict:
    """How many of the planted relatives are the nearest, or are less near."""
    known = relatives(folder)
    columns = near.columns()
    texts = planted_texts(folder, {name for name, _ in known.values()})
    tests = dict(zip(near.tests.names, near.tests.texts(), strict=True))
    names = [str(name) for name in columns["test"]]
    queries = [tests[name] for name in names]
    targets = [texts[known[name][0]] for name in names]
    mode, output = ("global", "identity") if by == "identity" else ("local", "score")
    table = jaxalign.align_pairs(
        queries, targets, mode=mode, output=output, implementation="sweep"
    )
    own = table.identity("longer") if by == "identity" else table["score"]
    best = columns["identity" if by == "identity" else "score"]
    same = [known[n][0] == x for n, x in zip(names, columns["nearest"], strict=True)]
    pairs = list(zip(same, own.tolist(), best.tolist(), strict=True))
    return {
        "planted": len(pairs),
        "nearest": sum(is_it for is_it, _, _ in pairs),
        "a nearer one": sum(not x and b >= a for x, a, b in pairs),
        "missed": sum(b < a or (x and a != b) for x, a, b in pairs),
    }


def profile() -> None:
    """Print the seconds and the size of each step of a scan by identity."""
    bounds = nearest_launches.LaunchBounds
    watched(nearest_launches, "bounds_of", lambda _, x: (len(x.rows), len(x.columns)))
    watched(bounds, "best", lambda _, x: len(x[0]))
    watched(bounds, "reaching", lambda _, x: int(x.sum()))
    watched(bounds, "near", lambda _, x: len(x[0]))
    watched(nearest_launches, "align_zipped", lambda given, _: len(given[1]))
    watched(
        nearest_state,
        "_align_dense",
        lambda given, _: (len(given[1]), len(given[2]), given[3]),
    )


def watched(module, name: str, size) -> None:
    function = getattr(module, name)

    def timed(*given):
        began = time.perf_counter()
        result = function(*given)
        seconds = time.perf_counter() - began
        print(f"{began:.2f} {name} {seconds:.3f} s {size(given, result)}", flush=True)
        return result

    setattr(module, name, timed)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--by", default="identity", choices=["identity", "score"])
    parser.add_argument("--files", type=int, help="only so many parts of the corpus")
    parser.add_argument("--devices")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--profile", action="store_true", help="seconds of each step")
    chosen = parser.parse_args()
    corpus, scoring = chosen.folder / "corpus", Scoring()
    if chosen.files:
        files = corpus_files.files_of(corpus)[: chosen.files]
        jaxalign.corpus.files_of = lambda path: files
    if chosen.profile:
        profile()
    waits, began = Waits(), time.perf_counter()
    options = nearest.NearestOptions(by=chosen.by, devices=chosen.devices)
    near = nearest.nearest_of(chosen.folder / "queries.fasta", corpus, scoring, options)
    seconds, waiting = time.perf_counter() - began, waits.share()
    cells = len(near.tests.codes) * near.info["residues"]
    about = {
        "by": chosen.by,
        "queries": len(near.tests),
        "query_residues": len(near.tests.codes),
        "sequences": near.info["sequences"],
        "residues": near.info["residues"],
        "seconds": round(seconds, 2),
        "tcups": round(cells / seconds / 1e12, 3),
        "aligned": near.info["aligned"],
        "waiting_share": round(waiting, 4),
        "host_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "bands": dict(zip(near.band_names, near.band_counts.tolist(), strict=True)),
    }
    if chosen.check:
        about |= checked(chosen.folder, near, chosen.by)
    print(json.dumps(about), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
