"""Figures of the GPU kernels on the GPU that is there: one table, in one run.

``python -m benchmarks.gpu`` needs JAX with CUDA and no network; ``--json FILE`` writes
the rows, ``--only WORD`` takes those whose name contains the word, ``--skip WORD``
leaves some out. Medians; each figure also as a share of what the card's own min-max
rate or copy bandwidth, measured first, would allow.
"""

import sys
import tempfile
import time
import traceback
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path

import fuzz_oracle
import jax
import jax.numpy as jnp
import measure
import numpy as np
import problems
from fuzz_oracle import ENDS

import jaxalign
import kernels_pallas as kp
from jaxalign.affine import Gaps
from jaxalign.io import fasta, formats
from jaxalign.model.scoring import Scoring
from jaxalign.pairs.dp import wavefront
from kernels_pallas.core.mosaic import THREADS, Threads, kernel
from kernels_pallas.pairs import layout
from kernels_pallas.pairs.fill import fill

# The card ----------------------------------------------------------------------------
# Rates of the card: bytes a second of a copy, min-max instructions a second.


CHAINS, UNROLLED, LOOPS, PROGRAMS = 8, 16, 512, 132 * 16


def timed(run, *arguments, repeats: int = 5) -> float:
    """Median seconds of a call and all its device work; a first call is not counted."""
    return measure.median_seconds(measure.ready(run, *arguments), repeats)


def copy_rate() -> float:
    """Bytes read and written a second, copying 1 GiB."""
    x = jnp.arange(2**28, dtype=jnp.int32)
    return 2 * x.nbytes / timed(jax.jit(lambda x: x + 1), x)


def min_max_rate() -> float:
    """``max(a + b, c)`` on pairs of int16 a second: one instruction a thread each."""
    chains = min_max_kernel()
    seconds = timed(jax.jit(chains), jnp.array([3, -5], jnp.int32))
    work = PROGRAMS * THREADS * CHAINS * UNROLLED * LOOPS
    return work / seconds


def min_max_kernel(interpret=None):
    """A kernel of independent chains of min-max instructions, and nothing else."""
    body = partial(_chains, plain=interpret is not None)
    shapes = [(PROGRAMS * THREADS,)]
    return kernel(body, shapes, [], (PROGRAMS,), ("program",), interpret)


def _chains(numbers, out, *, plain):
    th = Threads(plain)
    program = jax.lax.axis_index("program")
    a, b = (th.halves(th.splat(numbers[k] * 65537)) for k in range(2))
    start = tuple(th.halves(th.index() * (k + 1) + numbers[0]) for k in range(CHAINS))

    def loop(_, values):
        for _ in range(UNROLLED):
            values = tuple(jnp.maximum(x + a, b) for x in values)
        return values

    values = jax.lax.fori_loop(jnp.int32(0), jnp.int32(LOOPS), loop, start)
    total = th.splat(0)
    for value in values:
        total = total ^ th.words(value)
    th.store(out, th.index(), (total,), program, THREADS)


# Kernels alone -----------------------------------------------------------------------
# Codes and results are on the device: random protein of equal lengths, or targets of
# log-normal lengths. A sample of the scores of every row is compared with plain numpy.


LETTERS, OPEN, EXTEND = 20, 11, 1
# The 20 queries that CUDASW++ is measured with.
QUERIES = (144, 189, 222, 375, 464, 567, 657, 729, 850, 1000)
QUERIES += (1500, 2005, 2504, 3005, 3564, 4061, 4548, 4743, 5147, 5478)
# Min-max instructions a cell and bytes a cell, counted in docs/logs/gpu-pairs.md.
LOCAL, BORDER, WIDE = (2.25, 0.0), (1.5, 0.0), (4.5, 0.0)
LINEAR_LOCAL, LINEAR_BORDER = (1.0, 0.0), (0.5, 0.0)
TILES_LOCAL, TILES_BORDER, LONG_TILES = (2.25, 0.42), (1.5, 0.42), (2.25, 0.33)


def matrix():
    """Like BLOSUM62: an expected score well below zero, 4 to 11 on the diagonal."""
    rng = np.random.default_rng(0)
    scores = rng.integers(-4, 2, (LETTERS, LETTERS))
    scores = np.minimum(scores, scores.T)
    np.fill_diagonal(scores, rng.integers(4, 12, LETTERS))
    return scores.astype(np.int32)


SCORES = matrix()


def reference(q, t, local, free, gaps=(OPEN, EXTEND)):
    """Scores of pairs (P, m), (P, n) by plain numpy."""
    costs = fuzz_oracle.Problem(SCORES, gaps[0], gaps[1], local, frozenset(free))
    pairs = zip(q, t, strict=True)
    return np.array([fuzz_oracle.best(*pair, costs)[0] for pair in pairs])


class Row:
    """One row: inputs on the device, compiled functions, cells."""

    def __init__(self, name, m, n, q, t, *, local=True, dtype="int16", paths=False,
                 shared=True, free=(), identity=False, fill_only=False, aim=None,
                 cost=None, gaps=(OPEN, EXTEND), shape=None):  # fmt: skip
        self.name, self.local, self.free = name, local, free
        self.shared, self.identity, self.dtype = shared, identity, dtype
        self.aim, self.cost, self.gaps = aim, cost, gaps
        rng = np.random.default_rng(len(name))
        draw = partial(rng.integers, 0, LETTERS, dtype=np.uint8)
        scale = 2**13 if identity else 1
        scores = SCORES * scale + identity * np.eye(LETTERS, dtype=np.int32)
        self.problem = kp.problem_of(scores, *(scale * gap for gap in gaps), free)
        self.host = draw((q, m)), draw((t, n))
        lengths = np.full(q, m, np.int32), np.full(t, n, np.int32)
        arrays = self.host[0], lengths[0], self.host[1], lengths[1]
        self.arrays = [jnp.asarray(x) for x in arrays]
        self.cells = (q if shared else 1) * t * m * n
        self.shape = shape or kp.choose(
            m, local=local, packed=dtype == "int16", shared=shared, paths=paths,
            linear=gaps[0] == gaps[1],
        )  # fmt: skip
        options = dict(runs=128 if paths else 0, shape=self.shape)
        self.prepare = partial(kp.align.lower, self.problem, *self.arrays, **options)
        self.fill_only, self.filled = fill_only, None

    def compile(self):
        begin = time.perf_counter()
        self.run = self.prepare().compile()
        if self.fill_only:
            most = -(-self.host[0].shape[1] // self.shape.strip)
            make = layout.shared_inputs if self.shared else layout.list_inputs
            self.inputs = jax.jit(partial(make, s=self.shape, strip_room=most))(
                self.problem, *self.arrays
            )
            run = jax.jit(partial(fill, s=self.shape, strips=most))
            self.filled = run.lower(self.inputs).compile()
        self.compile_seconds = time.perf_counter() - begin
        return self

    def measure(self):
        result = self.run(self.problem, *self.arrays)
        right = self.check(result)
        del result
        seconds = timed(self.run, self.problem, *self.arrays)
        s = self.shape
        row = dict(name=self.name, dtype=self.dtype, rows=s.rows, lanes=s.lanes,
                   tile=s.tile, cells=self.cells, seconds=seconds,
                   tcups=self.cells / seconds / 1e12, aim=self.aim, cost=self.cost,
                   compile_seconds=self.compile_seconds, right=right)  # fmt: skip
        if self.filled is not None:
            alone = timed(self.filled, self.inputs)
            row |= dict(fill_seconds=alone, fill_tcups=self.cells / alone / 1e12)
        self.arrays = self.inputs = self.run = self.filled = None
        return row

    def check(self, result):
        rng = np.random.default_rng(1)
        q, t = self.host
        a, b = rng.integers(0, len(q), 12), rng.integers(0, len(t), 12)
        a = a if self.shared else b
        score = result.score
        score = kp.split_identity(score)[0] if self.identity else score
        at = (a, b) if self.shared else (a,)
        want = reference(q[a], t[b], self.local, self.free, self.gaps)
        return bool((np.asarray(score[at]) == want).all())


def kernel_rows():
    """(name, unbuilt ``Row``) of the table."""
    block = dict(m=384, n=384, q=64, t=4224)
    fewer = dict(m=384, n=384, q=32, t=2112)
    border = dict(local=False, cost=BORDER)
    options_of = {
        "local": dict(block, fill_only=True, aim=5.0, cost=LOCAL),
        "global": dict(block, **border, fill_only=True, aim=5.5),
        "semiglobal": dict(block, **border, free=ENDS),
        "int32 local": dict(fewer, dtype="int32", aim=2.2, cost=WIDE),
        "identity, no path": dict(fewer, dtype="int32", identity=True, aim=2.2,
                                  cost=WIDE),
        "list, no shared side": dict(m=384, n=384, q=67584, t=67584, shared=False,
                                     aim=1.0, cost=LOCAL),
    }  # fmt: skip
    for local in (True, False):
        mode = "local" if local else "global"
        cost = TILES_LOCAL if local else TILES_BORDER
        more = dict(local=local, fill_only=True, paths=True)
        options_of[f"tiles, {mode}"] = dict(block, **more, cost=cost)
    longer = dict(m=1152, n=1152, q=32, t=1344, fill_only=True)
    options_of["score, local 1152"] = dict(longer, cost=LOCAL)
    options_of["tiles, local 1152"] = dict(longer, paths=True, cost=LONG_TILES)
    for n in (16, 64, 256, 1024):
        options_of[f"X1.6 local, {n} x {n}"] = dict(m=384, n=384, q=n, t=n, cost=LOCAL)
    linear = dict(block, gaps=(4, 4), fill_only=True)
    options_of["linear, local"] = dict(linear, cost=LINEAR_LOCAL)
    options_of["linear, global"] = dict(linear, local=False, cost=LINEAR_BORDER, aim=10)
    for rows, lanes in ((48, 8), (64, 4)):
        own = kp.Fill(rows, lanes, 2, False, True, linear=True)
        height = dict(linear, local=False, cost=LINEAR_BORDER, shape=own)
        options_of[f"linear, global, {rows} rows of {lanes} lanes"] = height
    linear = dict(m=2000, n=2000, local=False, shared=False, gaps=(8, 8),
                  cost=LINEAR_BORDER)  # fmt: skip
    for n in (64, 1024, 4096):
        options_of[f"X3.2 global linear 2000, {n} pairs"] = dict(linear, q=n, t=n)
    for rows in (64, 80):
        height = dict(m=4 * rows, n=384, q=64, t=4224, cost=LOCAL)
        options_of[f"local, strips of {4 * rows}"] = height
    return [
        (name, partial(Row, name, **options)) for name, options in options_of.items()
    ]


def log_normal(count=60000):
    """Targets of log-normal lengths with the 20 queries: one call for every shape of
    queries, targets of all lengths together."""
    rng = np.random.default_rng(2)
    lengths = rng.lognormal(5.73, 0.6, count).astype(np.int32).clip(30, 4000)
    lengths = np.sort(lengths)[::-1]
    codes = rng.integers(0, LETTERS, int(lengths.sum()) + 1, dtype=np.uint8)
    first = np.cumsum(lengths) - lengths
    flat = jnp.asarray(codes), jnp.asarray(first.astype(np.int32)), jnp.asarray(lengths)
    n, problem = jnp.asarray(lengths), kp.problem_of(SCORES, OPEN, EXTEND)
    merged: dict = {}
    for pair in zip(QUERIES[::2], QUERIES[1::2], strict=True):
        s = kp.choose(pair[1], local=True, packed=True)
        rows = s.strip if pair[1] <= s.strip else kp.bucket(pair[1])
        merged.setdefault((s, rows), []).extend(pair)
    launches, checks = [], []
    for (s, rows), m in merged.items():
        m = np.array(m[::-1], np.int32)
        q = rng.integers(0, LETTERS, (len(m), rows), dtype=np.uint8)
        laid = partial(kp.letters, shape=s, room=int(kp.rows_of(lengths, s)[-1]))
        codes_of = jnp.asarray(q), jnp.asarray(m)
        call = kp.align.lower(problem, *codes_of, laid(*flat), n, shape=s)
        launches.append((call, *codes_of, laid))
        checks.append((q, m))

    def build():
        with ThreadPoolExecutor(9) as pool:
            return list(pool.map(lambda x: x[0].compile(), launches))

    compiling, _, built = measure.timed(build)

    def run():
        return [
            call(problem, q, m, laid(*flat), n).score
            for call, (_, q, m, laid) in zip(built, launches, strict=True)
        ]

    right = True
    for result, (q, m) in zip(run(), checks, strict=True):
        for a, x in product((0, len(m) - 1), rng.integers(0, count, 3)):
            t = codes[first[x] : first[x] + lengths[x]]
            want = reference(q[a : a + 1, : m[a]], t[None], True, ())[0]
            right &= int(result[a, x]) == int(want)
    seconds = timed(run, repeats=3)
    cells = int(sum(QUERIES)) * int(lengths.sum())
    return dict(name="log-normal lengths", dtype="int16", seconds=seconds, cells=cells,
                tcups=cells / seconds / 1e12, mean=float(lengths.mean()), aim=4.0,
                cost=LOCAL, compilations=len(launches), compile_seconds=compiling,
                right=right)  # fmt: skip


def xla_rows():
    """XLA's own anti-diagonal scan (``pairs.dp.wavefront``) on the same GPU, local,
    int16."""
    rng = np.random.default_rng(3)
    scores = jnp.asarray(SCORES, jnp.int16)
    gaps = Gaps(jnp.int16(OPEN), jnp.int16(EXTEND))
    free = dict.fromkeys(ENDS, jnp.asarray(False))

    def one(q, t):
        m, n = jnp.int32(q.shape[0]), jnp.int32(t.shape[0])
        return wavefront.fill(q, t, m, n, scores, gaps, free, local=True)[0].score

    for count in (1024, 16384):
        q, t = (rng.integers(0, LETTERS, (count, 384), np.uint8) for _ in range(2))
        run = jax.jit(jax.vmap(one))
        compiling, _, result = measure.timed(measure.ready(run, q, t))
        want = reference(q[:8], t[:8], True, ())
        right = bool((np.asarray(result[:8]) == want).all())
        seconds = timed(run, jnp.asarray(q), jnp.asarray(t), repeats=3)
        cells = count * 384 * 384
        yield dict(name=f"XLA wavefront, {count} pairs", dtype="int16", cells=cells,
                   seconds=seconds, tcups=cells / seconds / 1e12, cost=LOCAL,
                   right=right, compile_seconds=compiling)  # fmt: skip


# End to end ---------------------------------------------------------------------------
# All that a user waits for, from FASTA to the result.
#
# Swiss-Prot (``benchmarks/fetch.py``) where it is there, else random protein of the
# same number and log-normal lengths. Every job runs twice in one process: the second
# run is the row, the first has the compilations or their cache in it (``first``).


COUNT, FEW = 12071, 2000


def fasta_file(folder: str) -> tuple[Path, str]:
    """A FASTA file of 12,071 proteins, and what is in it."""
    if problems.SWISSPROT.exists():
        return problems.SWISSPROT, "Swiss-Prot"
    rng, path = np.random.default_rng(4), Path(folder) / "random.fasta"
    lengths = rng.lognormal(5.8, 0.65, COUNT).astype(int).clip(30)
    texts = problems.random_texts(rng, lengths, uniform=True)
    problems.write_fasta(path, [(f"p{k}", text) for k, text in enumerate(texts)])
    return path, "random protein"


def run_once(path, output: str, few: int | None, write: str | None):
    """(seconds by stage, table): read, align, write."""
    scoring, begin = Scoring(), time.perf_counter()
    sequences = fasta.read(path, scoring.alphabet, "mask")
    if few:
        sequences = sequences.take(
            range(0, len(sequences), len(sequences) // few)[:few]
        )
    read = time.perf_counter()
    table = jaxalign.align_all(sequences, scoring, mode="local", output=output)
    aligned = time.perf_counter()
    if write:
        formats.write(table, write, "parquet", None, "alignment", True)
    done = time.perf_counter()
    stages = dict(read=read - begin, align=aligned - read, write=done - aligned)
    return stages | {"seconds": done - begin}, table


def check(table, count=40) -> bool:
    """Scores (and paths) of a sample against one pair at a time by the sweep."""
    at = np.random.default_rng(5).integers(0, len(table), count)
    q = [table.queries[k] for k in table["query"][at]]
    t = [table.targets[k] for k in table["target"][at]]
    found = jaxalign.align_pairs(q, t, table.scoring, mode="local", output="score",
                                 implementation="sweep")  # fmt: skip
    right = bool((found["score"] == table["score"][at]).all())
    if table.operations is not None:
        rescored = [table.alignment(k).rescore() for k in at]
        right &= bool((np.array(rescored) == table["score"][at]).all())
    return right


def rows(device_seconds):
    """Rows of the table; ``device_seconds`` runs a call under the profiler."""
    jobs = (
        ("all pairs, scores", "score", None, False, 6.0),
        ("all pairs, identities without paths", "identity", None, False, 12.0),
        ("all pairs, identities of paths", "stats", None, False, 12.0),
        ("2,000 proteins, alignments to parquet", "alignment", FEW, True, None),
    )
    with tempfile.TemporaryDirectory() as folder:
        path, what = fasta_file(folder)
        for name, output, few, write, aim in jobs:
            target = str(Path(folder) / "out.parquet") if write else None
            first, _ = run_once(path, output, few, target)
            again, table = run_once(path, output, few, target)
            row = dict(name=f"{what}, {name}", aim_seconds=aim, **again,
                       first=first["seconds"], cells=table.info["cells"],
                       pairs=len(table), launches=table.info["windows"],
                       tcups=table.info["cells"] / again["seconds"] / 1e12,
                       dtype="/".join(table.info["dtypes"]),
                       right=check(table))  # fmt: skip
            del table
            row |= device_seconds(lambda: run_once(path, output, few, target))  # noqa: B023
            row["of_device"] = row["seconds"] / (row.get("device_seconds") or np.nan)
            yield row


def traced(run) -> dict:
    """Sum of kernel times of a call in a profiler trace, of all devices and of each,
    and the largest kernels."""
    by_device, kernels, copies = (defaultdict(float) for _ in range(3))
    for device, name, seconds in _events(run):
        if "emcpy" in name:
            copies[device] += seconds
        else:
            by_device[device] += seconds
            kernels[name[:60]] += seconds
    if not by_device and not copies:
        return {}
    largest = sorted(kernels.items(), key=lambda x: -x[1])[:12]
    return dict(device_seconds=sum(by_device.values()),
                copy_seconds=sum(copies.values()),
                by_device=list(by_device.values()), largest=dict(largest))  # fmt: skip


def _events(run):
    """(device, kernel or copy, seconds) of all that a call does on GPUs."""
    with tempfile.TemporaryDirectory() as folder:
        options = jax.profiler.ProfileOptions()
        options.host_tracer_level = options.python_tracer_level = 0  # kernels alone
        with jax.profiler.trace(folder, profiler_options=options):
            run()
        for file in sorted(Path(folder).rglob("*.xplane.pb")):
            data = jax.profiler.ProfileData.from_file(str(file))
            for plane in data.planes:
                if not plane.name.startswith("/device:GPU"):
                    continue
                for line in plane.lines:
                    if line.name.startswith("Stream"):
                        for event in line.events:
                            yield plane.name, event.name, event.duration_ns / 1e9


BUILDERS = 14  # compilations side by side


def bound(row, card) -> float | None:
    """TCUPS that the card's rates allow for a row."""
    if not row.get("cost"):
        return None
    min_max, bytes_a_cell = row["cost"]
    limits = [card["min_max"] / min_max]
    limits += [card["copy"] / bytes_a_cell] if bytes_a_cell else []
    return min(limits) / 1e12


def shown(row) -> str:
    """One line of the table."""
    best = row.get("fill_tcups") or row["tcups"]
    parts = [f"{row['name']:<52} {row['tcups']:7.3f} TCUPS"]
    parts += [f"{row['seconds'] * 1e3:10.2f} ms"]
    if row.get("fill_tcups"):
        parts += [f"fill {row['fill_tcups']:.2f}"]
    if row.get("bound"):
        parts += [f"{best / row['bound']:5.0%} of {row['bound']:.1f}"]
    for key, unit in (("aim", "TCUPS"), ("aim_seconds", "s")):
        if row.get(key):
            parts += [f"aim {row[key]:g} {unit}"]
    parts += [row.get("dtype", ""), "right" if row.get("right") else "NOT CHECKED"]
    keys = ("mean", "compilations", "read", "align", "write", "first", "launches",
            "device_seconds", "of_device", "over_score", "bytes")  # fmt: skip
    parts += [f"{key} {row[key]:.3g}" for key in keys if row.get(key) is not None]
    return "  ".join(parts)


def overheads(rows):
    """X1.8 and the aims of paths: time of a cell over that of the score alone."""
    speeds = {row["name"].removeprefix("score, "): row["tcups"] for row in rows}
    for row in rows:
        way, _, rest = row["name"].partition(", ")
        if way == "tiles" and speeds.get(rest) and row["tcups"]:
            row["over_score"] = speeds[rest] / row["tcups"]
            print(f"X1.8 {row['name']}: {row['over_score']:.2f} x the score alone")


def transfers():
    """X3.1: host -> device -> host, three designs."""
    import papers

    for name, design in papers.designs().items():
        for pairs in (1, 16):
            move = papers._mover(*design, pairs)
            row = dict(name=f"X3.1 {name}, {pairs} pairs of 2000", cells=0, tcups=0.0)
            seconds = timed(move, repeats=3)
            size = papers._bytes(*design, pairs)
            yield row | dict(seconds=seconds, bytes=size, right=True)


def sections(options):
    """All rows, in order."""

    def asked(name):
        return options.only in name and not (options.skip and options.skip in name)

    chosen = [(name, make) for name, make in kernel_rows() if asked(name)]
    with ThreadPoolExecutor(BUILDERS) as pool:
        built = [pool.submit(lambda make: make().compile(), make) for _, make in chosen]
        pool.shutdown()  # nothing is measured while other rows compile
    for (name, _), row in zip(chosen, built, strict=True):
        yield from attempt(name, lambda row: [row.result().measure()], row)
    single = {
        "log-normal": lambda: [log_normal()],
        "XLA wavefront": xla_rows,
        "X3.1": transfers,
        "end to end": lambda: rows(traced),
    }
    for name, make in single.items():
        if asked(name):
            yield from attempt(name, make)


def attempt(name, make, *arguments):
    """Rows of a section; one that fails is a row too, and the others go on."""
    try:
        yield from make(*arguments)
    except Exception:
        traceback.print_exc()
        yield dict(name=name, seconds=0.0, cells=0, tcups=0.0, right=False)


def main(argv=None):
    parser = measure.arguments(__doc__, "json", "only")
    parser.add_argument("--skip", default="", help="rows whose name contains it")
    options = parser.parse_args(argv)
    works, why = kp.supported()
    device = jax.devices()[0].device_kind
    print(f"{device}, JAX {jax.__version__}, {why}", flush=True)
    if not works:
        return 1
    begin = time.perf_counter()
    card = {"copy": copy_rate(), "min_max": min_max_rate()}
    print(f"copy {card['copy'] / 1e12:.2f} TB/s, min-max {card['min_max'] / 1e12:.1f} "
          "T thread-instructions/s", flush=True)  # fmt: skip
    rows = []
    for row in sections(options):
        row["bound"] = bound(row, card)
        rows.append(row)
        print(shown(row), flush=True)
    overheads(rows)
    seconds = time.perf_counter() - begin
    print(f"{len(rows)} rows in {seconds:.0f} s")
    versions = {"device": device, "jax": jax.__version__}
    measure.save(options.json, versions | card | {"seconds": seconds, "rows": rows})
    return 0 if all(row.get("right") for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
