"""Figures of the Pallas kernels on the GPU that is there.

``python benchmarks/kernels.py``: random protein, median of five runs, device work only:
codes lie on the device, results stay there. A sample of every row's scores is compared
with plain numpy. ``--json FILE`` writes the rows; ``--only WORD`` takes those whose
name contains the word.
"""

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import kernels_pallas as kp
from kernels_pallas import layout
from kernels_pallas.pair_fill import fill

LETTERS, OPEN, EXTEND = 20, 11, 1
ENDS = ("query_start", "query_end", "target_start", "target_end")
QUERIES = (144, 189, 222, 375, 464, 567, 657, 729, 850, 1000)
QUERIES += (1500, 2005, 2504, 3005, 3564, 4061, 4548, 4743, 5147, 5478)


SHAPES = ((32, 4),)  # beside the default of packed backtrack


def matrix():
    """Like BLOSUM62: an expected score well below zero, 4 to 11 on the diagonal."""
    rng = np.random.default_rng(0)
    scores = rng.integers(-4, 2, (LETTERS, LETTERS))
    scores = np.minimum(scores, scores.T)
    np.fill_diagonal(scores, rng.integers(4, 12, LETTERS))
    return scores.astype(np.int32)


SCORES = matrix()


def reference(q, t, local, free):
    """Scores of pairs (P, m), (P, n) by rows, all pairs at once."""
    pairs, n = t.shape
    h = np.zeros((pairs, n + 1), np.int64)
    if not local and "target_start" not in free:
        h[:, 1:] = -(OPEN + EXTEND * np.arange(n))
    e = np.full_like(h, -(10**9))
    best, column = np.zeros(pairs, np.int64), h[:, n].copy()
    for i in range(1, q.shape[1] + 1):
        e[:, 1:] = np.maximum(e[:, 1:] - EXTEND, h[:, 1:] - OPEN)
        x = np.maximum(h[:, :-1] + SCORES[q[:, i - 1][:, None], t], e[:, 1:])
        x = np.maximum(x, 0) if local else x
        left = 0 if local or "query_start" in free else -(OPEN + EXTEND * (i - 1))
        h[:, 0], f = left, np.full(pairs, -(10**9))
        for j in range(1, n + 1):
            f = np.maximum(f - EXTEND, h[:, j - 1] - OPEN)
            h[:, j] = np.maximum(x[:, j - 1], f)
        best, column = np.maximum(best, h.max(1)), np.maximum(column, h[:, n])
    if local:
        return best
    score = np.maximum(h[:, n], column if "query_end" in free else h[:, n])
    return np.maximum(score, h.max(1) if "target_end" in free else score)


class Row:
    """One row: inputs on the device, compiled functions, cells."""

    def __init__(self, name, m, n, q, t, *, local=True, dtype="int16", way=None,
                 shared=True, free=(), identity=False, fill_only=False,
                 shape=None):  # fmt: skip
        self.name, self.local, self.free, self.way = name, local, free, way
        self.shared, self.identity, self.dtype = shared, identity, dtype
        rng = np.random.default_rng(len(name))
        draw = partial(rng.integers, 0, LETTERS, dtype=np.uint8)
        problem = kp.problem_of(SCORES, OPEN, EXTEND, free)
        self.problem = kp.identity_problem(problem) if identity else problem
        call = kp.align_block if shared else kp.align_list
        self.host = draw((q, m)), draw((t, n))
        lengths = np.full(q, m, np.int32), np.full(t, n, np.int32)
        arrays = self.host[0], lengths[0], self.host[1], lengths[1]
        self.arrays = [jnp.asarray(x) for x in arrays]
        self.cells = (q if shared else 1) * t * m * n
        options = dict(local=local, dtype=dtype, paths=way is not None, way=way or "")
        chosen = kp.choose(
            m, local=local, packed=dtype == "int16", shared=shared, way=way
        )
        self.shape = shape or chosen
        options |= dict(runs=128 if way else 0, shape=self.shape)
        self.prepare = partial(call.lower, self.problem, *self.arrays, **options)
        self.fill_only, self.filled = fill_only, None

    def compile(self):
        begin = time.perf_counter()
        self.run = self.prepare().compile()
        if self.fill_only:
            most = -(-self.host[0].shape[1] // self.shape.strip)
            make = layout.shared_inputs if self.shared else layout.list_inputs
            self.inputs = jax.jit(partial(make, s=self.shape, most=most))(
                self.problem, *self.arrays
            )
            run = jax.jit(partial(fill, s=self.shape, strips=most))
            self.filled = run.lower(self.inputs).compile()
        self.made = time.perf_counter() - begin
        return self

    def measure(self):
        found = self.run(self.problem, *self.arrays)
        seconds = timed(self.run, self.problem, *self.arrays)
        s = self.shape
        row = dict(name=self.name, dtype=self.dtype, local=self.local, way=self.way,
                   rows=s.rows, lanes=s.lanes, tile=s.tile, cells=self.cells,
                   seconds=seconds, tcups=self.cells / seconds / 1e12,
                   compile_seconds=self.made, right=self.check(found))  # fmt: skip
        if self.filled is not None:
            alone = timed(self.filled, self.inputs)
            row |= dict(fill_seconds=alone, fill_tcups=self.cells / alone / 1e12)
        return row

    def check(self, found):
        rng = np.random.default_rng(1)
        q, t = self.host
        a, b = rng.integers(0, len(q), 12), rng.integers(0, len(t), 12)
        a = a if self.shared else b
        score = found.score
        score = kp.split_identity(score)[0] if self.identity else score
        at = (a, b) if self.shared else (a,)
        want = reference(q[a], t[b], self.local, self.free)
        return bool((np.asarray(score[at]) == want).all())


def timed(run, *arguments, repeats=5):
    """Median seconds; what a run returns is dropped before the next one."""
    jax.block_until_ready(run(*arguments))
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        jax.block_until_ready(run(*arguments))
        seconds.append(time.perf_counter() - begin)
    return float(np.median(seconds))


def rows():
    """The rows of the table, as unbuilt ``Row``s."""
    block = dict(m=384, n=384, q=64, t=4224)
    fewer = dict(m=384, n=384, q=32, t=2112)
    yield "local", partial(Row, **block, fill_only=True)
    yield "global", partial(Row, **block, local=False, fill_only=True)
    yield "semiglobal", partial(Row, **block, local=False, free=ENDS)
    yield "int32 local", partial(Row, **fewer, dtype="int32")
    yield "identity", partial(Row, **fewer, dtype="int32", identity=True)
    yield "list", partial(Row, m=384, n=384, q=67584, t=67584, shared=False)
    for local in (True, False):
        mode = "local" if local else "global"
        for way in ("tiles", "words"):
            more = dict(local=local, way=way, fill_only=True)
            yield f"{way} {mode}", partial(Row, **fewer, **more)
    for rows, lanes in SHAPES:
        s = kp.Fill(rows, lanes, 2, False, True, words=True)
        yield (
            f"words global K{rows} G{lanes}",
            partial(Row, **fewer, local=False, way="words", fill_only=True, shape=s),
        )
    longer = dict(m=1152, n=1152, q=16, t=1056)
    yield "local 1152", partial(Row, **longer)
    yield "tiles local 1152", partial(Row, **longer, way="tiles")


def mixed():
    """60,000 targets of log-normal lengths with the 20 queries, sorted by length.

    One call for every bucket of queries (pairs of neighbours) and of targets.
    """
    rng = np.random.default_rng(2)
    lengths = rng.lognormal(5.73, 0.6, 60000).astype(np.int32).clip(30, 4000)
    lengths = np.sort(lengths)[::-1]
    problem = kp.problem_of(SCORES, OPEN, EXTEND)
    launches = []
    sizes = np.array([kp.bucket(x) for x in lengths.tolist()])
    tall = np.repeat([kp.bucket(m) for m in QUERIES[1::2]], 2)  # of a pair's longer one
    for high in np.unique(sizes):
        own = lengths[sizes == high]
        codes = rng.integers(0, LETTERS, (len(own), high), dtype=np.uint8)
        targets = jnp.asarray(codes), jnp.asarray(own)
        for rows in np.unique(tall):
            m = np.array(QUERIES, np.int32)[tall == rows]
            q = jnp.asarray(rng.integers(0, LETTERS, (len(m), rows), dtype=np.uint8))
            launches.append((q, jnp.asarray(m), *targets))
    call = partial(kp.align_block, problem, local=True)
    shapes = {(x[0].shape, x[2].shape): x for x in launches}

    def run():
        return [call(*launch).score for launch in launches]

    with ThreadPoolExecutor(9) as pool:
        begin = time.perf_counter()
        list(pool.map(lambda x: jax.block_until_ready(call(*x)), shapes.values()))
        made = time.perf_counter() - begin
    seconds = timed(run, repeats=3)
    cells = int(sum(QUERIES)) * int(lengths.sum())
    return dict(name="log-normal lengths", seconds=seconds, cells=cells,
                tcups=cells / seconds / 1e12, mean=float(lengths.mean()),
                compilations=len(shapes), compile_seconds=made)  # fmt: skip


def bandwidth():
    """Bytes read and written a second by a copy of 1 GiB."""
    x = jnp.zeros(2**28, jnp.int32)
    copy = jax.jit(lambda x: x + 1)
    return 2 * x.nbytes / timed(copy, x)


def show(row):
    extra = "".join(
        f"  {key} {row[key]:.3g}" for key in ("fill_tcups", "mean", "compilations")
        if key in row
    )  # fmt: skip
    print(f"{row['name']:<22} {row['tcups']:6.2f} TCUPS {row['seconds'] * 1e3:9.2f} ms"
          f"{extra}  right={row.get('right')}  compiled in {row['compile_seconds']:.0f}"
          f" s", flush=True)  # fmt: skip


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    parser.add_argument("--only", default="")
    options = parser.parse_args(argv)
    works, why = kp.supported()
    print(jax.devices()[0].device_kind, "JAX", jax.__version__, why, flush=True)
    if not works:
        return 1
    found = [dict(name="copy", bytes_per_second=bandwidth())]
    print(f"copy {found[0]['bytes_per_second'] / 1e12:.2f} TB/s", flush=True)
    chosen = [(name, row) for name, row in rows() if options.only in name]
    built = [row(name) for name, row in chosen]
    with ThreadPoolExecutor(6) as pool:
        built = list(pool.map(Row.compile, built))
    for row in built:
        found.append(row.measure())
        show(found[-1])
    if options.only in "log-normal":
        found.append(mixed())
        show(found[-1])
    if options.json:
        with open(options.json, "w") as file:
            json.dump(found, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
