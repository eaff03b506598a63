"""Hard alignments of similarities: the kernels beside XLA's scan, in one run.

    python -m benchmarks.hard --json hard.json
    python -m benchmarks.hard --quick        # any machine; too small for figures
    python -m benchmarks.hard --peer         # beside pynw, with linear gaps, on a CPU

Random similarities of -4 to 4 on the device, gaps of 11 and 1, global, paths included
unless a row says otherwise; embeddings are of 1,024 numbers. Milliseconds are medians
of calls in turns, TCUPS 10^12 cells a second. Partners and scores of both forms are
compared before anything is timed.
"""

import contextlib
import time

import jax
import jax.numpy as jnp
import measure
import numpy as np

import jaxalign
from jaxalign.runtime import backend

GAPS = {"gap_open": 11.0, "gap_extend": 1.0}
WIDTH = 1024  # of embeddings
# (pairs, rows, columns, dtype, mode, whether XLA's scan is timed too)
SIMILARITIES = (
    (8192, 400, 400, "int8", "global", True),
    (8192, 400, 400, "bfloat16", "global", True),
    (8192, 400, 400, "float16", "global", False),
    (8192, 400, 400, "float32", "global", False),
    (8192, 400, 400, "int8", "local", False),
    (8192, 400, 400, "int8", "semiglobal", False),
    (8192, 400, 512, "int8", "global", False),
    (64, 400, 400, "int8", "global", True),
    (64, 400, 400, "float32", "global", False),
    (64, 2000, 2000, "int8", "global", False),
)
EMBEDDINGS = (
    (4096, 400, 400, "bfloat16"),
    (4096, 400, 400, "float32"),
    (64, 400, 400, "bfloat16"),
    (64, 400, 400, "float32"),
)
QUICK = ((6, 20, 30, "int8", "global", True), (3, 9, 8, "bfloat16", "local", True))
QUICK_EMBEDDINGS = ((2, 10, 12, "bfloat16"),)


@contextlib.contextmanager
def without_kernels():
    """Within it XLA's scan is chosen everywhere."""
    kept, backend.kernels = backend.kernels, lambda: (None, "left out")
    try:
        yield
    finally:
        backend.kernels = kept


def similarity(shape, dtype):
    draw = jax.jit(lambda key: jax.random.randint(key, shape, -4, 5, jnp.int8))
    return draw(jax.random.key(0)).astype(dtype)


def embeddings(count, m, n, dtype):
    keys = jax.random.split(jax.random.key(1))
    scale = WIDTH**-0.25  # products of variance 1
    return tuple(
        scale * jax.random.normal(key, (count, size, WIDTH), dtype)
        for key, size in zip(keys, (m, n), strict=True)
    )


def align_call(given, **options):
    """A compiled call of ``hard_alignment``: scores and partners."""

    def run(given):
        found = jaxalign.hard_alignment(given, **options)
        return found.score, found.partners

    return measure.ready(measure.compiled(run, given)[0], given)


def calls(given, mode, scan: bool) -> dict:
    """name -> compiled call."""
    made = {"kernels": align_call(given, mode=mode, **GAPS)}
    if scan:
        with without_kernels():
            made["scan"] = align_call(given, mode=mode, **GAPS)
    return made


def row(work: str, cells: int, made: dict, repeats: int) -> dict:
    """Compare, then time."""
    found = [[np.asarray(x) for x in call()] for call in made.values()]
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            assert (a == b).all(), f"{work}: {(a != b).sum()} of {a.size} differ"
    timed = measure.in_turns(made, repeats)
    result = {"work": work}
    for name in ("kernels", "scan"):
        seconds = timed[name]["seconds"] if name in timed else None
        result[f"{name} ms"] = 1e3 * seconds if seconds else None
        result[f"{name} TCUPS"] = cells / seconds / 1e12 if seconds else None
    print(result, flush=True)  # a run that is cut off has something to show
    return result


PEER_SHAPES = ((1, 400, 400), (64, 400, 400), (1, 2000, 2000))


def peer(repeats: int) -> list[dict]:
    """``hard_alignment`` beside pynw, which takes float64 tables one by one."""
    import pynw  # pyright: ignore[reportMissingImports]

    rows = []
    for shape in PEER_SHAPES:
        tables = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        doubles = tables.astype(np.float64)
        costs = {"gap_open": 1.0, "gap_extend": 1.0}
        made = {
            "hard_alignment": align_call(jnp.asarray(tables), **costs),
            "pynw": lambda: [pynw.needleman_wunsch(x, gap_penalty=-1) for x in doubles],  # noqa: B023
        }
        scores = [score for score, _ in made["pynw"]()]
        np.testing.assert_allclose(made["hard_alignment"]()[0], scores, rtol=1e-5)
        timed = measure.in_turns(made, repeats)
        each = {f"{name} ms": 1e3 * x["seconds"] for name, x in timed.items()}
        rows.append({"work": " x ".join(map(str, shape)) + " linear gaps"} | each)
    return rows


def main(argv=None) -> None:
    parser = measure.arguments(__doc__, "quick", "json", repeats=7)
    parser.add_argument("--peer", action="store_true")
    asked = parser.parse_args(argv)
    report = {"machine": measure.machine(), "rows": []}
    if asked.peer:
        report["rows"] = peer(asked.repeats)
        measure.show(report["rows"])
        return measure.save(asked.json, report)
    began = time.perf_counter()
    for *shape, dtype, mode, scan in QUICK if asked.quick else SIMILARITIES:
        work = " x ".join(map(str, shape)) + f" {dtype} {mode}"
        made = calls(similarity(shape, dtype), mode, scan)
        report["rows"].append(row(work, int(np.prod(shape)), made, asked.repeats))
    for *shape, dtype in QUICK_EMBEDDINGS if asked.quick else EMBEDDINGS:
        work = " x ".join(map(str, shape)) + f" from embeddings, {dtype}"
        made = calls(embeddings(*shape, dtype), "global", False)
        report["rows"].append(row(work, int(np.prod(shape)), made, asked.repeats))
    measure.show(report["rows"])
    print(f"# {time.perf_counter() - began:.0f} s")
    measure.save(asked.json, report)


if __name__ == "__main__":
    main()
