"""Jobs of the fuzz in a process of their own: a line of JSON when it begins and when it
ends one.

    python benchmarks/fuzz_run.py --seed 1 --first 0 --last 39
"""

import json
import os
import sys
import time
import traceback
from contextlib import contextmanager
from dataclasses import replace

import fuzz_checks as checks
import fuzz_jobs as jobs
import fuzz_oracle as oracle
import jax
import jax.numpy as jnp
import measure
import numpy as np

import jaxalign
from jaxalign.model.alphabet import as_sequences
from jaxalign.model.table import Table, join

SHOWN = 5  # differences of a job
SWEPT_CELLS = 2 * 10**9  # of a job whose scores are all computed again
DEVICES: dict = {}  # the option of every job of pairs, with ``--all-devices``


def run(job, cap=jobs.CAP) -> dict:
    """Run a job and look for differences; exceptions of the library go up."""
    if job.kind in ("three", "soft"):
        ran, cells, wrong = run_other(job, small=cap < jobs.CAP)
        return {"ran": ran, "cells": cells, "differences": wrong[:SHOWN]}
    scoring = jobs.scoring_of(job)
    flat = [jobs.sequences_of(job, scoring, side) for side in (0, 1)]
    one = job.kind in ("all", "stream", "distance")
    sides = [np.split(x[0], x[1][1:-1]) for x in (flat[0], flat[0 if one else 1])]
    if job.kind == "one" and job.number % 2:
        sides, flat = sides[::-1], flat[::-1]
    problem = checks.Problem(job, scoring, *sides)
    checked = {"search": _search, "distance": _distance}.get(job.kind, _table)
    # Of the small jobs every other one is compiled; the rest are computed by rows.
    with _variable("JAXALIGN_ROWS", "off" if job.number % 2 else "on"):
        table, wrong = checked(problem, flat)
    cells = int(problem.cells(slice(None)).sum())
    ran = getattr(table, "implementation", "-")
    return {"ran": ran, "cells": cells, "differences": wrong[:SHOWN]}


@contextmanager
def _variable(name: str, value: str):
    """Set one variable of the environment for a while."""
    # ``patch.dict`` would also take back what JAX has set meanwhile, by which Mosaic
    # finds its library.
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _options(job) -> dict:
    options = {"mode": job.mode, "window": job.window} | DEVICES
    return options | ({"free_ends": job.free_ends} if job.free_ends else {})


def _rng(job):
    return np.random.default_rng((job.seed, job.number, 7))


def _table(problem, flat):
    """A job whose result is a table of all its pairs, or of those that are kept."""
    rows = {
        k: checks.wanted(problem, k) for k in checks.sample(problem, _rng(problem.job))
    }
    least = _least(problem, rows)
    table = _call(problem, flat, least)
    wrong = list(checks.differences(problem, table, rows, least))
    if problem.job.again and not _same(table, _call(problem, flat, least)):
        wrong.append("the same call gives another table")
    if table.implementation.startswith("pallas") and not least:
        wrong += _swept(problem, flat, table)
    return table, wrong


def _swept(problem, flat, table):
    """Every score of the kernels is the CPU's, where that takes a second or two."""
    if problem.cells(slice(None)).sum() > SWEPT_CELLS:
        return
    counted = problem.job.output == "identity"
    options = {"devices": jax.devices("cpu")[:1], "implementation": "sweep"}
    options |= {"output": "identity" if counted else "score"}
    other = _call(problem, flat, options)
    for name in ("score", "max_identities")[: 1 + counted]:
        wrong = np.flatnonzero(table[name] != other[name])
        if len(wrong):
            k = wrong[0]
            yield (f"{len(wrong)} of {len(table)} {name}: in row {k} "
                   f"{table[name][k]}, the sweep has {other[name][k]}")  # fmt: skip


def _least(problem, rows) -> dict:
    """Filters, at a value that occurs in the sample."""
    job = problem.job
    if not job.threshold:
        return {}
    values = [_value(problem, k, row) for k, row in rows.items()]
    values = sorted(x for x in values if x is not None)
    value = values[len(values) // 2] if values else 0.4
    return {
        job.threshold: value,
        **({"identity": job.identity} if job.threshold == "min_identity" else {}),
        **({"coverage": job.coverage} if job.threshold == "min_cov" else {}),
    }


def _value(problem, k, row):
    """The column that a filter tests, if the oracle has it and it is a threshold."""
    if problem.job.threshold == "min_score":
        return row["score"]
    m, n = checks.sizes(problem, k)
    count = row.get("identities", row.get("max_identities"))
    if problem.job.threshold == "min_identity" and count is not None:
        return count / max(m, n, 1)
    if "query_start" in row and m:
        return (row["query_end"] - row["query_start"]) / m
    return None


def _call(problem, flat, least) -> Table:
    job, scoring = problem.job, problem.scoring
    options = _options(job) | {"output": job.output} | least
    if job.kind == "all":
        return jaxalign.align_all(flat[0], scoring, include_self=job.include_self,
                                  **options)  # fmt: skip
    if job.kind == "stream":
        parts = jaxalign.stream_all(flat[0], scoring, include_self=job.include_self,
                                    part_rows=job.part_rows, **options)  # fmt: skip
        return join([table for _, table in parts], {})
    if job.kind == "matrix":
        return _of_matrix(problem, flat, options)
    return jaxalign.align_pairs(*flat, scoring, **options)


def _of_matrix(problem, flat, options) -> Table:
    """A matrix of scores as a table."""
    del options["output"]
    scoring = problem.scoring
    scores = jaxalign.scores_matrix(*flat, scoring, **options)
    sides = [as_sequences(x, scoring.alphabet) for x in flat]
    i, j = (x.astype(np.int32) for x in problem.pairs)
    columns = {"query": i, "target": j, "score": scores.ravel()}
    ran = "pallas, a matrix" if jax.devices()[0].platform == "gpu" else "a matrix"
    return Table(columns, *sides, scoring, problem.job.mode, implementation=ran)


def _same(one, other) -> bool:
    pairs = [(np.nan_to_num(one[x], nan=-1), np.nan_to_num(other[x], nan=-1))
             for x in one.columns]  # fmt: skip
    if one.operations is not None:
        pairs.append((one.operations, other.operations))
    return all(np.array_equal(*pair) for pair in pairs)


def _distance(problem, flat):
    """Symmetric, 0 with itself, and of a sample 1 - matches / denominator."""
    job = problem.job
    options = _options(job) | {"identity": job.identity}
    matrix = jaxalign.distance_matrix(flat[0], problem.scoring, **options)
    wrong = []
    if not np.array_equal(matrix, matrix.T) or matrix.diagonal().any():
        wrong.append("a distance matrix is not symmetric, or not 0 on its diagonal")
    for k in checks.sample(problem, _rng(job)):
        i, j = (int(of[k]) for of in problem.pairs)
        m, n = len(problem.queries[i]), len(problem.queries[j])
        count = checks.wanted(problem, k)["max_identities"]
        below = {"shorter": min(m, n), "longer": max(m, n), "mean": (m + n) / 2}
        below = below[job.identity]
        want = 1 - count / below if below else 1.0
        if matrix[i, j] != want:
            wrong.append(f"distance {i}, {j}: {matrix[i, j]}, {want} is right")
    return matrix, wrong


def _search(problem, flat):
    """Hits in order, none too many, none too few; their scores and paths."""
    job, scoring = problem.job, problem.scoring

    def call():
        return jaxalign.search(*flat, scoring, top=job.top, align_top=job.align_top,
                               **_options(job))  # fmt: skip

    table = call()
    wrong = [*_ranks(problem, table)]
    if job.align_top:
        columns = table.lengths()
        wrong += checks.paths(problem, table, *columns)
    if job.again and not _same(table, call()):
        wrong.append("the same search gives another table")
    return table, wrong


def _ranks(problem, table):
    q, t, score = table["query"], table["target"], table["score"]
    same = q[1:] == q[:-1]
    ordered = (score[1:] < score[:-1]) | ((score[1:] == score[:-1]) & (t[1:] > t[:-1]))
    if (np.diff(q) < 0).any() or (same & ~ordered).any():
        yield "hits are out of order"
    local, count = problem.job.mode == "local", len(problem.targets)
    most = min(problem.job.top, count)
    hits = np.bincount(q, minlength=len(problem.queries))
    if (hits > most).any() or (not local and (hits != most).any()):
        yield f"{hits.tolist()[:9]} hits, at most {most} are right"
    if local and (score <= 0).any():
        yield "a hit without a positive score"
    for k in checks.sample(problem, _rng(problem.job)):
        yield from _rank(problem, table, *(int(of[k]) for of in problem.pairs), most)


def _rank(problem, table, i, j, most):
    """Whether target j is where it has to be among the hits of query i."""
    want = oracle.best(problem.queries[i], problem.targets[j], problem.costs)[0]
    want /= problem.scoring.scale
    own = np.flatnonzero(table["query"] == i)
    place = own[table["target"][own] == j]
    if len(place):
        if table["score"][place[0]] != want:
            yield f"hit {i}, {j}: {table['score'][place[0]]}, the oracle has {want}"
        return
    full = len(own) == most
    worst = (table["score"][own[-1]], -table["target"][own[-1]]) if full else None
    hit = want > 0 or problem.job.mode != "local"
    if hit and (worst is None or (want, -j) > worst):
        yield f"hit {i}, {j} with score {want} is missing"


# Triples and soft alignments: a few, compared with the CPU ----------------------------


SIZES = ((12, 40), (70, 33), (100, 16), (180, 3), (300, 1))  # longest, triples
SOFT = ((20, 64), (65, 32), (130, 9), (300, 4), (513, 2))  # longest, pairs
SCORE, PROBABILITY = 2e-5, 5e-4  # may be off by so much, the first over 1 + |F|


@contextmanager
def on_cpu():
    """The CPU is JAX's device, in host threads too."""
    before = jax.config.jax_default_device
    jax.config.update("jax_default_device", jax.devices("cpu")[0])
    try:
        yield
    finally:
        jax.config.update("jax_default_device", before)


def run_other(job, small: bool):
    """(implementation, cells, differences) of a job."""
    rng = np.random.default_rng((job.seed, job.number, 6))
    sizes = SIZES if job.kind == "three" else SOFT
    longest, count = sizes[rng.integers(len(sizes))]
    if small:
        longest, count = min(longest, 14), min(count, 3)
    return (_triples if job.kind == "three" else _soft)(job, rng, longest, count)


def _triples(job, rng, longest, count):
    model = str(rng.choice(["linear", "quasi-natural", "natural"]))
    gaps = (job.gaps[0],) * 2 if model == "linear" else job.gaps
    scoring = jaxalign.Scoring(job.matrix, *gaps)
    texts = replace(job, letters="protein", queries=3 * count, longest=longest)
    codes, offsets = jobs.sequences_of(texts, scoring, 0)
    codes = np.split(codes, offsets[1:-1])
    triples = [codes[3 * k : 3 * k + 3] for k in range(count)]
    options = {"gap_model": model, "mode": job.mode}
    paths = rng.random() < 0.7
    if count == 1:
        traceback = str(rng.choice(["auto", "split"])) if paths else None
        answers = [
            jaxalign.align_three(*triples[0], scoring, traceback=traceback, **options)
        ]
    else:
        traceback = "auto" if paths else None
        answers = jaxalign.align_triples(
            triples, scoring, traceback=traceback, **options
        )
    some = range(0, count, -(-count // 3))
    with on_cpu():
        # Rows that are stored whole are those of the CPU, of equal ones too.
        alike = paths and count > 1
        right = jaxalign.align_triples(
            [triples[k] for k in some],
            scoring,
            traceback="auto" if alike else None,
            **options,
        )
    kind = f"({model}, {job.mode})"
    wrong = [
        f"triple {k} {kind}: {answers[k].score}, on the CPU {one.score}"
        for k, one in zip(some, right, strict=True)
        if answers[k].score != one.score
    ]
    if alike:
        wrong += [
            f"triple {k} {kind}: {answers[k].rows()}, on the CPU {one.rows()}"
            for k, one in zip(some, right, strict=True)
            if answers[k].rows() != one.rows()
        ]
    if paths:
        wrong += [f"triple {k} {kind}: {x.score}, its rows {x.rescore()}"
                  for k, x in enumerate(answers) if x.score != x.rescore()]  # fmt: skip
    cells = sum(int(np.prod([len(x) + 1 for x in triple])) for triple in triples)
    return answers[0].implementation, cells, wrong


def _soft(job, rng, longest, count):
    m, n = longest, longest - 5
    lengths = rng.integers(0, (m + 1, n + 1), (count, 2))
    lengths[0] = m, n
    scores = (rng.normal(size=(count, m, n)) * rng.choice([0.5, 3])).astype(np.float32)
    options = {"gap_open": float(rng.choice([1.5, 4, 11])),
               "gap_extend": float(rng.choice([0.5, 1])), "mode": job.mode,
               "temperature": float(rng.choice([0.5, 1, 3]))}  # fmt: skip
    if job.free_ends:
        options["free_ends"] = job.free_ends

    def both(dtype, **more):
        given = jnp.asarray(scores, dtype), jnp.asarray(lengths, jnp.int32)
        functions = jaxalign.soft_score, jaxalign.soft_posterior
        return [np.asarray(f(*given, **options, **more), float) for f in functions]

    f, p = both(jnp.float32)
    with on_cpu(), jax.enable_x64(True):
        right = both(jnp.float64, implementation="log")
    off = np.abs(f - right[0]) / (1 + np.abs(right[0])), np.abs(p - right[1])
    note = f"of {lengths.tolist()[:4]} …, {options}"
    wrong = []
    if not off[0].max() < SCORE:  # nan is wrong too
        k = int(off[0].argmax())
        wrong.append(f"soft score {f[k]}, in float64 {right[0][k]}, pair {k} {note}")
    if not off[1].max() < PROBABILITY:
        wrong.append(f"a posterior is off by {off[1].max():.2g} {note}")
    platform = jax.devices()[0].platform
    return f"soft on {platform}", int(lengths.prod(1).sum()), wrong


# The process --------------------------------------------------------------------------


def main(argv=None) -> int:
    parser = measure.arguments(__doc__)
    for name in ("--seed", "--first", "--last"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--until", type=float, default=float("inf"))
    parser.add_argument("--cells", type=int, default=jobs.CAP)
    parser.add_argument("--all-devices", action="store_true")
    options = parser.parse_args(argv)
    DEVICES.update({"devices": "all"} if options.all_devices else {})
    device = jax.devices()[0]
    _tell(device=device.device_kind, platform=device.platform, jax=jax.__version__)
    for number in range(options.first, options.last + 1):
        if time.time() > options.until:
            break
        job = jobs.draw(options.seed, number, options.cells)
        _tell(begin=number, job=str(job))
        try:
            seconds, _, result = measure.timed(run, job, options.cells)
        except BaseException:
            _tell(end=number, fault=traceback.format_exc()[-3000:])
            os._exit(3)  # a device is of no use after a fault, nor is its clean-up
        _tell(end=number, seconds=seconds, **result)
    return 0


def _tell(**values) -> None:
    print(json.dumps(values), flush=True)


if __name__ == "__main__":
    sys.exit(main())
