"""``nearest`` of many queries against a large synthetic corpus: TCUPS end to end.

    python -m benchmarks.nearest_gpu FOLDER --write 1e9      # so many residues
    python -m benchmarks.nearest_gpu FOLDER --by identity

``--write`` makes FOLDER/queries.fasta, FOLDER/planted.tsv and FOLDER/corpus: the same
for the same numbers, whatever the number of processes. A search prints a line of JSON:
seconds from the files to the rows, cells a second, the share of the time that the scan
waited for the next block, after the first ten seconds, the memory of the host, and how
many of the planted relatives are found. One that is not the nearest is found where the
nearest is nearer: its identity or its score, of an alignment of its own, is larger.
"""

import json
import time
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

import measure
import numpy as np
import problems

import jaxalign
import jaxalign.corpus
from jaxalign.database import nearest, nearest_launches, nearest_state
from jaxalign.io import corpus_files, fasta
from jaxalign.model.scoring import Scoring
from jaxalign.pairs import engine
from jaxalign.pairs.gpu import dispatch

# A synthetic corpus of any size: lengths as UniRef50's, relatives of queries in it

RESIDUES = np.frombuffer(problems.LETTERS.encode(), np.uint8)
# Lengths have this median and this deviation of their logarithm: 240 on average, as
# 17e9 residues in 70.9 million sequences.
MEDIAN, DEVIATION, SHORTEST, LONGEST = 187, 0.7, 11, 35_000
MEAN = 240
PARTS, LINE, BATCH = 16, 60, 2**15
IDENTITIES = 0.20, 0.95  # of the planted relatives


def queries(path: Path, count: int, length: int = 200) -> list[tuple[str, bytes]]:
    """Real proteins of a file, those whose lengths are nearest to a length."""
    usual = set(problems.LETTERS)
    records = [x for x in problems.read_fasta(path) if not set(x[1]) - usual]
    records.sort(key=lambda record: (abs(len(record[1]) - length), record[0]))
    return [(name, text.encode()) for name, text in records[:count]]


def relative(query: bytes, identity: float, random) -> np.ndarray:
    """A copy in which so many residues are others."""
    letters = np.frombuffer(query, np.uint8).copy()
    some = random.permutation(len(letters))[: round((1 - identity) * len(letters))]
    old = np.searchsorted(np.sort(RESIDUES), letters[some]) % len(RESIDUES)
    new = (old + random.integers(1, len(RESIDUES), len(some))) % len(RESIDUES)
    letters[some] = np.sort(RESIDUES)[new]
    return letters


def write_part(folder: str, part: int, sequences: int, planted: list) -> int:
    """Write a part of the corpus; its residues."""
    random, residues = np.random.default_rng([7, part]), 0
    table = np.repeat(
        RESIDUES, np.round(problems.FREQUENCY * 65536 / 1000 + 1).astype(int)
    )
    places = sorted(random.choice(sequences, len(planted), replace=False).tolist())
    waiting = dict(zip(places, planted, strict=True))
    path = Path(folder) / "corpus" / f"part-{part:02}.fasta"
    with open(path, "wb", 2**22) as out:
        for first in range(0, sequences, BATCH):
            count = min(BATCH, sequences - first)
            lengths = np.exp(random.normal(np.log(MEDIAN), DEVIATION, count))
            lengths = np.clip(lengths, SHORTEST, LONGEST).astype(int)
            draws = random.integers(0, 2**16, int(lengths.sum()), dtype=np.uint16)
            text = table[draws].tobytes()
            at, lines = 0, []
            for k, length in enumerate(lengths.tolist()):
                one, at = text[at : at + length], at + length
                if first + k in waiting:
                    one = waiting[first + k][1]
                residues += len(one)
                lines.append(b">p%02d_%d synthetic\n" % (part, first + k))
                lines += [one[i : i + LINE] + b"\n" for i in range(0, len(one), LINE)]
            out.writelines(lines)
    with open(Path(folder) / f"planted-{part:02}.tsv", "w") as out:
        for place, (name, _, identity) in waiting.items():
            print(name, f"p{part:02}_{place}", f"{identity:.3f}", sep="\t", file=out)
    return residues


def relatives(some: list[tuple[str, bytes]]) -> list[tuple[str, bytes, float]]:
    """(name, text, identity) of a relative of each query."""
    random, low, high = np.random.default_rng(3), *IDENTITIES
    planted = []
    for k, (name, text) in enumerate(some):
        identity = low + (high - low) * k / max(len(some) - 1, 1)
        planted.append((name, relative(text, identity, random).tobytes(), identity))
    return planted


def write(
    folder: Path, residues: float, count: int, processes: int = 4, plant=relatives
) -> int:
    """Write a corpus and its queries; its residues.

    plant : function from queries to what is planted, (name, text, identity)
    """
    (folder / "corpus").mkdir(parents=True, exist_ok=True)
    some = queries(problems.SWISSPROT, count)
    records = [(name, text.decode()) for name, text in some]
    problems.write_fasta(folder / "queries.fasta", records)
    planted = plant(some)
    sequences = max(int(residues / MEAN / PARTS), len(planted))
    jobs = [(str(folder), k, sequences, planted[k::PARTS]) for k in range(PARTS)]
    with get_context("spawn").Pool(processes) as pool:
        total = sum(pool.starmap(write_part, jobs))
    lines = [(folder / f"planted-{k:02}.tsv").read_text() for k in range(PARTS)]
    (folder / "planted.tsv").write_text("".join(lines))
    return total


# Searches -----------------------------------------------------------------------------

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


def checked(folder: Path, near, by: str) -> dict:
    """How many of the planted relatives are the nearest, or are less near."""
    lines = (folder / "planted.tsv").read_text().splitlines()
    planted = dict(line.split("\t")[:2] for line in lines)  # of each query
    wanted, texts = {*planted.values()}, {}
    for path in sorted((folder / "corpus").iterdir()):
        with open(path) as handle:
            records = fasta.records(handle)
            texts |= {name: text.decode() for name, text in records if name in wanted}
    columns = near.columns()
    tests = dict(zip(near.tests.names, near.tests.texts(), strict=True))
    names = [str(name) for name in columns["test"]]
    queries = [tests[name] for name in names]
    targets = [texts[planted[name]] for name in names]
    mode, output = ("global", "identity") if by == "identity" else ("local", "score")
    table = jaxalign.align_pairs(
        queries, targets, mode=mode, output=output, implementation="sweep"
    )
    own = table.identity("longer") if by == "identity" else table["score"]
    best = columns["identity" if by == "identity" else "score"]
    same = [planted[n] == x for n, x in zip(names, columns["nearest"], strict=True)]
    pairs = list(zip(same, own.tolist(), best.tolist(), strict=True))
    return {
        "planted": len(pairs),
        "nearest": sum(is_it for is_it, _, _ in pairs),
        "a nearer one": sum(not x and b >= a for x, a, b in pairs),
        "missed": sum(b < a or (x and a != b) for x, a, b in pairs),
    }


class Profile:
    """When the steps of a scan by identity ran, in whichever thread, and their pairs
    and cells."""

    def __init__(self):
        self.calls: dict[str, list[tuple[float, float, int, int]]] = {}
        bounds, launches = nearest_launches.LaunchBounds, nearest_launches
        self.watch(launches, "bounds_of", lambda *x: ("count", _grid(x[3], x[4]), 0))
        for name in ("best", "reaching", "near"):
            self.watch(
                bounds, name, lambda x, *_, n=name: (n, _grid(x.rows, x.columns), 0)
            )
        self.watch(
            engine, "plan", lambda x: ("plan of " + KINDS[x.kind], x.job.pairs, 0)
        )
        self.watch(dispatch, "run", lambda x, *_: (
            KINDS[x.task.kind], x.task.job.pairs, x.task.job.cells
        ))  # fmt: skip
        self.watch(nearest_state, "join_pairs", lambda *x: ("join", len(x[1]), 0))

    def watch(self, module, name: str, about) -> None:
        """Note each call of a function; about : (arguments) -> (step, pairs, cells)."""
        function = getattr(module, name)

        def noted(*arguments):
            began = time.perf_counter()
            result = function(*arguments)
            step, *sizes = about(*arguments)
            interval = began, time.perf_counter(), *sizes
            self.calls.setdefault(step, []).append(interval)
            return result

        setattr(module, name, noted)

    def lines(self, began: float, seconds: float) -> list[str]:
        """Of each step: calls, seconds in which one ran, their share, pairs, a pair's
        nanoseconds, cells a second. Steps of several threads overlap."""
        rows = [f"{'step':20} calls  seconds  share  pairs/10^6  ns/pair  TCUPS"]
        steps = self.calls | {
            "aligning, any": self.calls.get(RECTANGLES, []) + self.calls.get(LISTS, []),
            "any of these": [x for some in self.calls.values() for x in some],
        }
        for step, calls in steps.items():
            time_of = union([x[:2] for x in calls])
            pairs, cells = (sum(x[k] for x in calls) for k in (2, 3))
            rows.append(
                f"{step:20} {len(calls):5} {time_of:8.2f} {time_of / seconds:6.1%}"
                f" {pairs / 1e6:11.1f} {time_of / max(pairs, 1) * 1e9:8.1f}"
                f" {cells / max(time_of, 1e-9) / 1e12:6.2f}"
            )
        first = min((x[0] for some in self.calls.values() for x in some), default=began)
        return [*rows, f"before the first of these {first - began:.2f} s"]


RECTANGLES, LISTS = "rectangles", "lists"
KINDS = {"cross": RECTANGLES, "zip": LISTS}


def _grid(rows, columns) -> int:
    return len(rows) * len(columns)


def union(intervals: list[tuple[float, float]]) -> float:
    """Seconds that lie in some of the intervals."""
    total, end = 0.0, -float("inf")
    for start, stop in sorted(intervals):
        total += max(stop - max(start, end), 0.0)
        end = max(end, stop)
    return total


def set_constant(text: str) -> None:
    """``nearest_launches.MAX_LEFT=0.01``: a trial of another value."""
    place, value = text.split("=")
    module, name = place.split(".")
    module = import_module(f"jaxalign.database.{module}")
    setattr(module, name, type(getattr(module, name))(float(value)))


def main() -> None:
    parser = measure.arguments(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--write", type=float, metavar="RESIDUES", help="a corpus first"
    )
    parser.add_argument("--queries", type=int, default=554, help="of ``--write``")
    parser.add_argument("--processes", type=int, default=4, help="of ``--write``")
    parser.add_argument("--by", default="identity", choices=["identity", "score"])
    parser.add_argument("--files", type=int, help="only so many parts of the corpus")
    parser.add_argument("--devices")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--profile", action="store_true", help="seconds of each step")
    parser.add_argument("--set", action="append", default=[], type=set_constant)
    chosen = parser.parse_args()
    if chosen.write:
        numbers = chosen.write, chosen.queries, chosen.processes
        print(f"{write(chosen.folder, *numbers):,} residues")
        return
    corpus, scoring = chosen.folder / "corpus", Scoring()
    if chosen.files:
        files = corpus_files.files_of(corpus)[: chosen.files]
        jaxalign.corpus.files_of = lambda path: files
    steps = Profile() if chosen.profile else None
    waits, began = Waits(), time.perf_counter()
    chosen_options = {"by": chosen.by, "link": "whole", "devices": chosen.devices}
    options = nearest.NearestOptions(**chosen_options)
    near = nearest.nearest_of(chosen.folder / "queries.fasta", corpus, scoring, options)
    seconds, waiting = time.perf_counter() - began, waits.share()
    if steps:
        print("\n".join(steps.lines(began, seconds)), flush=True)
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
        "host_gib": measure.peak_gib(),
        "bands": dict(zip(near.band_names, near.band_counts.tolist(), strict=True)),
    }
    if chosen.check:
        about |= checked(chosen.folder, near, chosen.by)
    print(json.dumps(about), flush=True)


if __name__ == "__main__":
    main()
