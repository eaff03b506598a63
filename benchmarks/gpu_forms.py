"""The two forms of the 16-bit kernels on one GPU: equal results, and the speed of each.

``python -m benchmarks.gpu_forms`` needs a GPU with DPX instructions (Hopper or newer)
and JAX 0.11: it runs the kernels for such a GPU and those for GPUs before Hopper, whose
maxima are those of float16, on the same random jobs. ``--equality`` and ``--speed`` run
a half of it, ``--jobs`` sets the random jobs, ``--json FILE`` writes the figures. It
ends with 1 where a result differs.
"""

import argparse
import json
import sys
import time
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import jax
import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from pairs.gpu_card import copy_rate, min_max_rate  # noqa: E402
from pairs.gpu_rows import ENDS, SCORES, Row  # noqa: E402

import jaxalign  # noqa: E402
import kernels_pallas as kp  # noqa: E402
from kernels_pallas.pairs import config  # noqa: E402

FREE_SETS = [ends for k in range(5) for ends in combinations(ENDS, k)]
ROUNDS = 7  # of each form, in turns
FORMS = {"int16 (DPX)": kp.HOPPER, "float16 maxima": kp.AMPERE}


# Equal results of the kernels


def draw(rng, count, longest, relatives):
    """Residues (count, longest) and lengths; some are relatives of ``relatives``."""
    codes = rng.integers(0, len(SCORES), (count, longest)).astype(np.uint8)
    for k in range(0, count if len(relatives) else 0, 2):
        part = min(longest, relatives.shape[1])
        near = rng.random(part) < 0.85
        codes[k, :part] = np.where(
            near, relatives[k % len(relatives), :part], codes[k, :part]
        )
    special = [0, 1, longest, longest // 2]
    return codes, np.array(
        [*special, *rng.integers(1, longest + 1, count)][:count], np.int32
    )


def kernel_job(number: int) -> dict:
    """The arguments of a random call of ``kernels_pallas.align``."""
    rng = np.random.default_rng(number)
    local, shared, paths = (bool(rng.integers(2)) for _ in range(3))
    longest = int(rng.choice([60, 250, 384, 500, 1300]))
    queries = int(rng.choice([2, 8])) if shared else 256
    q, m = draw(rng, queries, longest, np.zeros((0, 0), np.uint8))
    t, n = draw(rng, 64 if shared else 256, longest, q)
    gap_open = int(rng.choice([1, 4, 11, 30]))
    gaps = gap_open, int(rng.integers(0, gap_open + 1))
    # Factors of scores: far below the range of 16 bits, near its end, beyond it.
    factor = int(rng.choice([1, 1, 3, 12, 40]))
    scores, gaps = factor * SCORES, tuple(factor * gap for gap in gaps)
    stacked = local and shared and not paths and bool(rng.integers(2))
    free = () if local else FREE_SETS[int(rng.integers(16))]
    return dict(q=q, m=m, t=t, n=n, scores=scores, gaps=gaps, free=free, local=local,
                shared=shared, paths=paths, stacked=stacked)  # fmt: skip


def shape_of(job: dict, target) -> "kp.Fill":
    """The shape of a job for a target; for both targets of the same sizes."""
    linear = job["gaps"][0] == job["gaps"][1]
    if job["stacked"]:
        s = kp.spread(np.sort(job["m"])[::-1], np.sort(job["n"])[::-1], local=True,
                      packed=True, linear=linear, target=kp.HOPPER)  # fmt: skip
        return replace(s, target=target)
    return kp.choose(
        job["q"].shape[1], local=job["local"], packed=True, shared=job["shared"],
        paths=job["paths"], linear=linear, target=target,
    )  # fmt: skip


def run_kernel(job: dict, target) -> dict:
    """Results of a job by the kernels of a target, as arrays by name."""
    s = shape_of(job, target)
    problem = kp.problem_of(job["scores"], *job["gaps"], job["free"])
    stacks = kp.stack(job["m"], s) if s.stacks else None
    result = kp.align(problem, job["q"], job["m"], job["t"], job["n"], None, stacks,
                      shape=s, runs=64 if job["paths"] else 0)  # fmt: skip
    named = {k: v for k, v in result._asdict().items() if v is not None}
    return jax.tree.map(np.asarray, named)


def proved(job: dict, target) -> bool:
    """Whether no value of a job can leave the range of a target."""
    return kp.fits(job["scores"], *job["gaps"], job["q"].shape[1], job["t"].shape[1],
                   job["local"], paths=job["paths"], target=target)  # fmt: skip


def compare_kernels(number: int) -> tuple[int, int]:
    """Pairs that were compared, and those that differ, of a random job."""
    job = kernel_job(number)
    hopper, older = (run_kernel(job, target) for target in FORMS.values())
    detected = job["local"] and all(
        kp.detects(job["scores"], *job["gaps"], target) for target in FORMS.values()
    )
    if not detected and not all(proved(job, target) for target in FORMS.values()):
        return 0, 0
    # A pair whose score may have left a range is computed again by those who call.
    sure = np.ones_like(hopper["score"], bool)
    for results in (hopper, older):
        sure &= ~results.get("overflow", np.zeros_like(sure))
    wrong = np.zeros_like(sure)
    for name in set(hopper) - {"overflow", "runs"}:
        wrong |= sure & (hopper[name] != older[name])
    if job["paths"]:
        place = np.arange(len(hopper["runs"])).reshape((-1,) + (1,) * sure.ndim)
        valid = place < np.minimum(hopper["count"], len(place))
        wrong |= sure & ((hopper["runs"] != older["runs"]) & valid).any(0)
    return int(sure.sum()), int(wrong.sum())


# Equal results of whole jobs


def sequences(rng, count: int) -> list[str]:
    """Proteins of all lengths, relatives and some that score beyond 16 bits."""
    letters = np.array(list("ARNDCQEGHILKMFPSTWYV"))
    lengths = np.minimum(rng.lognormal(5.6, 0.8, count).astype(int) + 1, 3500)
    texts = ["".join(rng.choice(letters, n)) for n in lengths]
    for k in range(0, count, 3):
        relative = np.array(list(texts[k - 1]))
        changed = rng.random(len(relative)) < 0.2
        texts[k] = "".join(
            np.where(changed, rng.choice(letters, len(relative)), relative)
        )
    return [*texts, "W" * 3300, "W" * 3200, "W" * 40, "M"]


def whole_jobs():
    """(name, function of texts) of jobs whose tables have to be equal."""
    for mode in ("local", "global", "semiglobal"):
        for output in ("score", "identity", "stats", "alignment"):
            options = {"mode": mode, "output": output}
            yield (
                f"all, {mode}, {output}",
                lambda x, o=options: table_of(
                    jaxalign.align_all(x, implementation="pallas", **o)
                ),
            )
    yield "search", lambda x: table_of(jaxalign.search(x[:20], x, top=5))


def table_of(table) -> dict:
    """The columns of a table as lists."""
    frame = table.to_pandas()
    return {name: frame[name].tolist() for name in frame}


def compare_jobs() -> list[str]:
    """Names of the whole jobs whose results differ."""
    texts, different = sequences(np.random.default_rng(3), 400), []
    for name, run in whole_jobs():
        tables = []
        for target in FORMS.values():
            use(target)
            tables.append(run(texts))
        same = repr(tables[0]) == repr(tables[1])
        print(f"{name:<28} {'equal' if same else 'DIFFERENT'}", flush=True)
        different += [] if same else [name]
    use(kp.this_target())
    return different


def use(target) -> None:
    """Have the kernels of a target run, whatever GPU is there."""
    config.this_target = lambda: target


# Speed


def speed_rows():
    """(name, options) of the rows that are measured."""
    block = dict(m=384, n=384, q=64, t=4224)
    yield "local", block
    yield "global", dict(block, local=False)
    yield "semiglobal", dict(block, local=False, free=ENDS)
    yield "linear, local", dict(block, gaps=(4, 4))
    yield "linear, global", dict(block, local=False, gaps=(4, 4))
    yield "paths, local", dict(block, paths=True)
    yield "paths, global", dict(block, local=False, paths=True)
    yield "local 1152", dict(m=1152, n=1152, q=32, t=1344)
    yield "list, local", dict(m=384, n=384, q=67584, t=67584, shared=False)


def measure(name: str, options: dict) -> dict:
    """TCUPS of both forms of a row, timed in turns; medians."""
    rows, seconds = {}, {}
    for form, target in FORMS.items():
        s = kp.choose(
            options["m"], local=options.get("local", True), packed=True,
            shared=options.get("shared", True), paths=options.get("paths", False),
            linear=len({*options.get("gaps", (1, 2))}) == 1, target=target,
        )  # fmt: skip
        rows[form] = Row(f"score, {name}", shape=s, **options).compile()
        seconds[form] = []
        right = rows[form].check(rows[form].run(rows[form].problem, *rows[form].arrays))
        assert right, (name, form)
    for _ in range(ROUNDS):
        for form, row in rows.items():
            begin = time.perf_counter()
            jax.block_until_ready(row.run(row.problem, *row.arrays))
            seconds[form].append(time.perf_counter() - begin)
    return {
        "name": name,
        **{k: rows[k].cells / float(np.median(v)) / 1e12 for k, v in seconds.items()},
    }


def main(words=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--equality", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--jobs", type=int, default=120)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(words)
    both = given.equality == given.speed
    wrong, report = 0, {"card": jax.devices()[0].device_kind, "jax": jax.__version__}
    if given.equality or both:
        counts = [compare_kernels(k) for k in range(given.jobs)]
        pairs, differ = (sum(x) for x in zip(*counts, strict=True))
        bad = [k for k, (_, x) in enumerate(counts) if x]
        print(f"kernels: {pairs} pairs of {given.jobs} jobs, {differ} differ, in {bad}")
        different = compare_jobs()
        wrong = differ + len(different)
        report |= {"pairs": pairs, "differ": differ, "jobs": different}
    if given.speed or both:
        report |= {"min_max": min_max_rate(), "copy": copy_rate(), "rows": []}
        print(
            f"min-max {report['min_max'] / 1e12:.1f} T/s, TCUPS of {', '.join(FORMS)}"
        )
        for name, options in speed_rows():
            row = measure(name, options)
            report["rows"].append(row)
            one, two = (row[form] for form in FORMS)
            print(f"{name:<20} {one:6.2f} {two:6.2f}  {two / one:.2f}", flush=True)
    if given.json:
        given.json.write_text(json.dumps(report, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
