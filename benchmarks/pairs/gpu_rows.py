"""Rows of ``benchmarks.gpu``: the kernels alone, codes and results on the device.

Random protein of equal lengths, or targets of log-normal lengths. A sample of the
scores of every row is compared with plain numpy.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from pairs.gpu_card import timed

import kernels_pallas as kp
from jaxalign.affine import Gaps
from jaxalign.pairs.dp import wavefront
from kernels_pallas.pairs import layout
from kernels_pallas.pairs.fill import fill

LETTERS, OPEN, EXTEND = 20, 11, 1
ENDS = ("query_start", "query_end", "target_start", "target_end")
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
    """Scores of pairs (P, m), (P, n) by rows, all pairs at once."""
    first, more = gaps
    pairs, n = t.shape
    h = np.zeros((pairs, n + 1), np.int64)
    if not local and "target_start" not in free:
        h[:, 1:] = -(first + more * np.arange(n))
    e = np.full_like(h, -(10**9))
    best, column = np.zeros(pairs, np.int64), h[:, n].copy()
    for i in range(1, q.shape[1] + 1):
        e[:, 1:] = np.maximum(e[:, 1:] - more, h[:, 1:] - first)
        x = np.maximum(h[:, :-1] + SCORES[q[:, i - 1][:, None], t], e[:, 1:])
        x = np.maximum(x, 0) if local else x
        left = 0 if local or "query_start" in free else -(first + more * (i - 1))
        h[:, 0], f = left, np.full(pairs, -(10**9))
        for j in range(1, n + 1):
            f = np.maximum(f - more, h[:, j - 1] - first)
            h[:, j] = np.maximum(x[:, j - 1], f)
        best, column = np.maximum(best, h.max(1)), np.maximum(column, h[:, n])
    if local:
        return best
    score = np.maximum(h[:, n], column if "query_end" in free else h[:, n])
    return np.maximum(score, h.max(1) if "target_end" in free else score)


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
    calls, checks = [], []
    for k in range(0, len(QUERIES), 2):
        calls.append(list(QUERIES[k : k + 2]))
    merged: dict = {}
    for pair in calls:
        s = kp.choose(pair[1], local=True, packed=True)
        rows = s.strip if pair[1] <= s.strip else kp.bucket(pair[1])
        merged.setdefault((s, rows), []).extend(pair)
    launches = []
    for (s, rows), m in merged.items():
        m = np.array(m[::-1], np.int32)
        q = rng.integers(0, LETTERS, (len(m), rows), dtype=np.uint8)
        laid = partial(kp.letters, shape=s, room=int(kp.rows_of(lengths, s)[-1]))
        codes_of = jnp.asarray(q), jnp.asarray(m)
        call = kp.align.lower(problem, *codes_of, laid(*flat), n, shape=s)
        launches.append((call, *codes_of, laid))
        checks.append((q, m))
    with ThreadPoolExecutor(9) as pool:
        begin = time.perf_counter()
        built = list(pool.map(lambda x: x[0].compile(), launches))
        compiling = time.perf_counter() - begin

    def run():
        return [
            call(problem, q, m, laid(*flat), n).score
            for call, (_, q, m, laid) in zip(built, launches, strict=True)
        ]

    right = True
    for result, (q, m) in zip(run(), checks, strict=True):
        b = rng.integers(0, count, 3)
        for a in (0, len(m) - 1):
            for x in b:
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
        begin = time.perf_counter()
        result = np.asarray(run(q, t))
        compiling = time.perf_counter() - begin
        right = bool((result[:8] == reference(q[:8], t[:8], True, ())).all())
        seconds = timed(run, jnp.asarray(q), jnp.asarray(t), repeats=3)
        cells = count * 384 * 384
        yield dict(name=f"XLA wavefront, {count} pairs", dtype="int16", cells=cells,
                   seconds=seconds, tcups=cells / seconds / 1e12, cost=LOCAL,
                   right=right, compile_seconds=compiling)  # fmt: skip
