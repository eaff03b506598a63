"""Triples and soft alignments of the fuzz: a few, compared with the CPU."""

from contextlib import contextmanager
from dataclasses import replace

import fuzz_jobs
import jax
import jax.numpy as jnp
import numpy as np

import jaxalign

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


def run(job, small: bool):
    """(implementation, cells, differences) of a job."""
    rng = np.random.default_rng((job.seed, job.number, 6))
    sizes = SIZES if job.kind == "three" else SOFT
    longest, count = sizes[rng.integers(len(sizes))]
    if small:
        longest, count = min(longest, 14), min(count, 3)
    return (_triples if job.kind == "three" else _soft)(job, rng, longest, count)


def _triples(job, rng, longest, count):
    model = str(rng.choice(["linear", "quasi-natural", "quasi-natural"]))
    gaps = (job.gaps[0],) * 2 if model == "linear" else job.gaps
    scoring = jaxalign.Scoring(job.matrix, *gaps)
    mode = job.mode if rng.random() < 0.3 and count < 9 else "global"
    texts = replace(job, letters="protein", queries=3 * count, longest=longest)
    codes, offsets = fuzz_jobs.sequences_of(texts, scoring, 0)
    codes = np.split(codes, offsets[1:-1])
    triples = [codes[3 * k : 3 * k + 3] for k in range(count)]
    options = {"gap_model": model, "mode": mode}
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
        right = jaxalign.align_triples([triples[k] for k in some], scoring,
                                       traceback=None, **options)  # fmt: skip
    wrong = [
        f"triple {k} ({model}, {mode}): {answers[k].score}, on the CPU {one.score}"
        for k, one in zip(some, right, strict=True)
        if answers[k].score != one.score
    ]
    if paths:
        wrong += [f"triple {k} ({model}, {mode}): {x.score}, its rows {x.rescore()}"
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
