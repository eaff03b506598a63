"""What a person waits for: whole processes, from the command to the result.

    python -m benchmarks.whole_process                 # a CPU
    python -m benchmarks.whole_process --gpu           # jobs of a GPU
    python -m benchmarks.whole_process --only zipped   # rows whose name contains it
    python -m benchmarks.whole_process --json rows.json
    python -m benchmarks.whole_process --fills         # windows of pairs by rows

Each job runs in processes of its own: once with an empty folder of compiled programs,
then with the folder that this run has filled. ``empty`` and ``filled`` are seconds
from the start of the process to its end; ``filled`` and ``peer`` are medians of
``--repeats`` processes, in turns. The split of a process stands below its row:
seconds until ``jaxalign`` is imported, of reading, planning, computing and writing,
and what the programs took, summed over threads: trace, lower, compile, load, store.
Peers are run where they are installed: needle, ssearch36, parasail.
"""

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import measure
import numpy as np
import problems

ROOT = problems.ROOT
SPLIT = "JAXALIGN_BENCHMARK_SPLIT"  # the file that a child writes its split to


@dataclass(frozen=True)
class Job:
    """A job, in words for ``jaxalign`` or as Python; and a peer's command."""

    name: str
    words: tuple[str, ...] = ()
    code: str = ""
    peer: str = ""
    peer_code: str = ""
    output: str | None = None


def child() -> None:
    """Run a job in this process, and write down where its time went: the steps of the
    verbs that align, too."""
    started = float(os.environ["JAXALIGN_BENCHMARK_START"])
    imported = time.time()
    import jaxalign

    job, *words = sys.argv[2:]
    spent = {"start": imported - started, "import": time.time() - imported}
    code = 0
    if job == "cli":
        from jaxalign.cli import main, pairs, search
        from jaxalign.pairs import api

        steps = (
            (pairs, "read_inputs", "read"), (search, "read_inputs", "read"),
            (api, "plan_of", "plan"), (api, "run_plan", "compute"),
            (search, "hits_of", "compute"), (pairs, "write", "write"),
        )  # fmt: skip
        for place, name, step in steps:
            setattr(place, name, partial(_timed, getattr(place, name), step, spent))
        spent["import"] = time.time() - imported
        code = main.main(words)
    else:
        exec(compile(words[0], "job", "exec"), {"jaxalign": jaxalign})  # noqa: S102
    counts = getattr(sys.modules.get("jaxalign.runtime.programs"), "COUNTS", None)
    if counts:
        spent |= {k: v for k, v in counts.seconds.items()}
        spent["programs"] = counts.calls["compile"] + counts.calls["load"]
    spent["jax"] = "jax" in sys.modules
    Path(os.environ[SPLIT]).write_text(json.dumps(spent))
    sys.exit(code)


def _timed(function, step, spent, *args, **kwargs):
    began = time.time()
    try:
        return function(*args, **kwargs)
    finally:
        spent[step] = spent.get(step, 0.0) + time.time() - began


def run(job: Job, folder: Path, cache: Path) -> tuple[float, dict]:
    """(seconds of the whole process, its split)."""
    split = folder / "split.json"
    if job.output:
        (folder / job.output).unlink(missing_ok=True)
    own = os.environ | {
        SPLIT: str(split),
        "JAXALIGN_CACHE_DIR": str(cache),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    own.pop("JAX_COMPILATION_CACHE_DIR", None)
    what = ["code", job.code] if job.code else ["cli", *job.words]
    words = [sys.executable, __file__, "--child", *what]
    seconds = _process(words, folder, own)
    return seconds, json.loads(split.read_text())


def _process(words, folder, own=None) -> float:
    began = time.time()
    own = dict(os.environ if own is None else own)
    own["JAXALIGN_BENCHMARK_START"] = repr(began)
    done = subprocess.run(words, cwd=folder, env=own, capture_output=True, text=True)
    seconds = time.time() - began
    if done.returncode:
        raise RuntimeError(f"{words}: {done.stderr[-2000:]}")
    return seconds


def peer(job: Job, folder: Path) -> float | None:
    """Seconds of the peer's process, None where it is not installed."""
    if job.peer and shutil.which(job.peer.split()[0]):
        return _process(job.peer.split(), folder)
    if job.peer_code and find_spec("parasail"):
        return _process([sys.executable, "-c", job.peer_code], folder)
    return None


def row(job: Job, folder: Path, repeats: int) -> dict:
    """A job's figures."""
    cache = folder / "programs"
    shutil.rmtree(cache, ignore_errors=True)
    peers = [peer(job, folder)]
    empty, first = run(job, folder, cache)
    filled = []
    for _ in range(repeats):
        filled.append(run(job, folder, cache))
        peers.append(peer(job, folder))
    seconds = statistics.median(x for x, _ in filled)
    split = min(filled, key=lambda one: abs(one[0] - seconds))[1]
    others = [x for x in peers if x is not None]
    return {
        "job": job.name,
        "empty": empty,
        "filled": seconds,
        "peer": statistics.median(others) if others else None,
        "tool": (job.peer or "parasail").split()[0] if others else "",
        "split, empty": first,
        "split, filled": split,
    }


def show(one: dict) -> None:
    """A row and its splits."""
    beside = "" if one["peer"] is None else f"{one['peer']:8.2f} {one['tool']}"
    print(f"{one['job']:44} {one['empty']:8.2f} {one['filled']:8.2f} {beside}")
    for name in ("empty", "filled"):
        steps = one[f"split, {name}"].items()
        parts = [
            f"{k} {v:.2f}" if isinstance(v, float) else f"{k} {v}" for k, v in steps
        ]
        print(f"    {name}: {', '.join(parts)}", flush=True)


# ----------------------------------------------------------------------------- the jobs

# Pairs of random proteins: how many, of what lengths; and the calls of a tool.
DRAWN = """
import random
rng = random.Random(5)
texts = ["".join(rng.choices("ACDEFGHIKLMNPQRSTVWY", k=rng.randint({}, {})))
         for _ in range({})]
queries, targets = texts[::2], texts[1::2]
"""
MANY, THOUSAND = DRAWN.format(20, 900, 200), DRAWN.format(50, 500, 2000)
MANY_CALLS = """
import jaxalign
for query, target in zip(queries, targets):
    jaxalign.align(query, target)
"""
ZIPPED = """
import jaxalign
jaxalign.align_pairs(queries, targets, output="alignment", threads=2)
"""
PARASAIL = """
import parasail
for query, target in zip(queries, targets):
    parasail.nw_trace_scan_16(query, target, 11, 1, parasail.blosum62).cigar
"""
PEPTIDE = 'import jaxalign; jaxalign.search(["MKTAYIAKQR"], ["MKTAYIAKRR", "AYIAKQ"])'
NEEDLE = "needle -auto -gapopen 11 -gapextend 1 -datafile EBLOSUM62 a.fa b.fa out"
SSEARCH = "ssearch36 -q -T 2 -s BL62 -f -11 -g -1 -b 10 -d 10 queries.fa small.fa"


def cpu_jobs() -> list[Job]:
    """Jobs of a CPU, small ones first."""
    globins = str(ROOT / "jaxalign" / "data" / "globins.fasta")
    return [
        Job("align two proteins of 330", ("align", "a.fa", "b.fa"), peer=NEEDLE),
        Job("all 16 globins", ("all", globins)),
        Job("demo", ("demo",)),
        Job("search of a peptide", code=PEPTIDE),
        Job("100 align() of 20 to 900", code=MANY + MANY_CALLS,
            peer_code=MANY + PARASAIL),
        Job("1,000 zipped pairs with paths", code=THOUSAND + ZIPPED,
            peer_code=THOUSAND + PARASAIL),
        Job("search 10 x 2,247", ("search", "queries.fa", "small.fa", "-o", "hits.m8"),
            peer=SSEARCH, output="hits.m8"),
    ]  # fmt: skip


def gpu_jobs() -> list[Job]:
    """Jobs of a GPU."""
    globins = str(ROOT / "jaxalign" / "data" / "globins.fasta")
    scores = ("--output", "score", "-o", "all.parquet")
    near = ("--output", "identity", "--identity", "shorter")
    near += ("--min-identity", "0.3", "-o", "near.tsv")
    paths = ("--output", "alignment", "-o", "some.parquet")
    return [
        Job("all 16 globins", ("all", globins, "-o", "g.tsv"), output="g.tsv"),
        Job("all 12,071, scores", ("all", "all.fa", *scores), output="all.parquet"),
        Job("all 12,071, identity >= 0.3", ("all", "all.fa", *near), output="near.tsv"),
        Job("all 540, alignments", ("all", "some.fa", *paths), output="some.parquet"),
        *(
            Job(
                f"search 20 x 257,208, {top} hits each",
                ("search", "twenty.fa", "large.jaxdb", "--top", top, "-o", "hits.m8"),
                output="hits.m8",
            )
            for top in ("10", "300")
        ),
    ]


def prepare(folder: Path, large: bool) -> None:
    """The files of the jobs."""
    rng = random.Random(7)
    for name in "ab":
        text = "".join(rng.choices(problems.LETTERS, k=330))
        problems.write_fasta(folder / f"{name}.fa", [(name, text)])
    records = problems.read_fasta(problems.SWISSPROT, masked="UOJ")
    sets = {
        "all": records,
        "small": records[::5][:2247],
        "queries": records[3::1200][:10],
        "some": records[::22][:540],
        "twenty": records[5::600][:20],
    }
    for name, some in sets.items():
        problems.write_fasta(folder / f"{name}.fa", some)
    if large:
        import jaxalign

        dice, shuffled = np.random.default_rng(8), []
        for k in range(257_208):
            letters = np.frombuffer(records[k % len(records)][1].encode(), np.uint8)
            shuffled.append((f"s{k}", dice.permutation(letters).tobytes().decode()))
        problems.write_fasta(folder / "large.fa", shuffled)
        jaxalign.index_database(folder / "large.fa", folder / "large.jaxdb")


# The fill by rows, without a process of its own --------------------------------------

FILL_REPEATS = 5  # of which the best counts
FILL_SHAPES = ((1, 330, 340), (1, 900, 900), (100, 275, 275), (32, 900, 900))


def fills() -> None:
    """Print milliseconds and GCUPS of the fill by rows, in one thread."""
    from jaxalign.model.scoring import Scoring
    from jaxalign.pairs.dp.rows import RowsProblem

    measure.machine()
    scores = Scoring().scores.astype(np.int64)
    for shape, dtype, local in product(FILL_SHAPES, ("int16", "int32"), (False, True)):
        problem = RowsProblem(scores, 11, 1, frozenset(), local, False)
        best = [fill_seconds(shape, problem, dtype, paths) for paths in (False, True)]
        cells = np.prod(shape)
        score, path = (
            f"{s * 1e3:.1f} ms, {measure.gcups(cells, s):.3f} GCUPS" for s in best
        )
        name = f"{' x '.join(map(str, shape))} {'local' if local else 'global'} {dtype}"
        print(f"{name}: score {score}; with path {path}")


def fill_seconds(shape, problem, dtype: str, paths: bool) -> float:
    """The best time of a fill, and of its walk with ``paths``, on random proteins."""
    from jaxalign.pairs.dp import rows

    pairs, m, n = shape
    rng = np.random.default_rng(2)
    queries, targets = (rng.integers(0, 20, (pairs, k), np.uint8) for k in (m, n))
    sides = queries, np.full(pairs, m), targets, np.full(pairs, n)

    def call():
        filled = rows.fill(*sides, problem, dtype, paths)
        if paths:
            rows.walk(filled, queries, targets, 255)

    return min(measure.timed(call).seconds for _ in range(FILL_REPEATS))


def main() -> None:
    parser = measure.arguments(__doc__, "only", "json", repeats=3)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--fills", action="store_true", help="the fill by rows alone")
    options = parser.parse_args()
    if options.fills:
        return fills()
    jobs = [
        x for x in (gpu_jobs if options.gpu else cpu_jobs)() if options.only in x.name
    ]
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, any("257" in job.name for job in jobs))
        print(f"{'job':44} {'empty':>8} {'filled':>8} {'peer':>8}   seconds")
        for job in jobs:
            rows.append(row(job, folder, options.repeats))
            show(rows[-1])
    measure.save(options.json, {"command": sys.argv[1:], "rows": rows})


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child()
    else:
        main()
