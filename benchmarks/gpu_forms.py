"""The two forms of the 16-bit kernels on one GPU: equal results, and the speed of each.

``python -m benchmarks.gpu_forms`` needs a GPU with DPX instructions (Hopper or newer)
and JAX 0.11: it runs the kernels for such a GPU and those for GPUs before Hopper, whose
maxima are those of float16.

- ``local`` and ``border`` compare the kernels' results, in all kinds of launches;
- ``jobs`` compares whole jobs by the older form with NumPy, for ``--seconds``;
- ``speed`` times both in turns. ``--after FILE`` lets it compile at once and wait for
  that file: other processes may use the GPU until it is there.

All sequences have up to 384 letters, so that programs are few; they are compiled side
by side. ``--json FILE`` writes the figures. It ends with 1 where a result differs.
"""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import jax
import measure
import numpy as np
from fuzz_jobs import SETS
from gpu import SCORES, Row, copy_rate, min_max_rate

import kernels_pallas as kp
from jaxalign import selftest
from kernels_pallas.pairs import config

LONGEST, QUERIES, TARGETS, LIST = 384, 8, 256, 512
RUNS = 128  # kept of a path
STACKS = 2  # items of stacked queries
EXACT_IN_FLOAT16 = 2048  # integers of larger size are not all float16 numbers
# Factors of scores: far below the range of 16 bits, near its end, beyond it.
FACTORS = {True: (1, 3, 12, 40), False: (1, 2, 3, 4)}
ROUNDS = 7  # of each form, in turns
THREADS = 6  # that compile
COUNTS = "pairs", "differ", "beyond_2048", "again"
FORMS = {"int16 (DPX)": kp.HOPPER, "float16 maxima": kp.AMPERE}


# Equal results of the kernels


@dataclass(frozen=True)
class Kind:
    """A kind of launches: a program of each form."""

    local: bool
    shared: bool = True
    paths: bool = False
    linear: bool = False
    stacked: bool = False

    def __str__(self):
        names = ["local" if self.local else "border"]
        names += [] if self.shared else ["list"]
        return " ".join(
            names + [x for x in ("paths", "linear", "stacked") if getattr(self, x)]
        )


def kinds(local: bool) -> list[Kind]:
    """All kinds of a mode."""
    some = [Kind(local, shared, paths) for shared in (True, False)
            for paths in (False, True)]  # fmt: skip
    some += [Kind(local, shared, linear=True) for shared in (True, False)]
    return some + ([Kind(local, stacked=True)] if local else [])


def draw(rng, count, relatives):
    """Residues (count, LONGEST) and lengths; some are relatives of ``relatives``."""
    codes = rng.integers(0, len(SCORES), (count, LONGEST)).astype(np.uint8)
    for k in range(0, count if len(relatives) else 0, 2):
        near = rng.random(LONGEST) < 0.85
        codes[k] = np.where(near, relatives[k % len(relatives)], codes[k])
    special = [LONGEST, 0, 1, LONGEST - 1, LONGEST // 2, LONGEST]
    lengths = [*special, *rng.integers(1, LONGEST + 1, count)][:count]
    return codes, np.array(lengths, np.int32)


def job_of(kind: Kind, number: int) -> dict:
    """Random arguments of a call of ``kernels_pallas.align``."""
    rng = np.random.default_rng([number, *map(int, (kind.local, kind.paths))])
    q, m = draw(rng, QUERIES if kind.shared else LIST, np.zeros((0, 0), np.uint8))
    t, n = draw(rng, TARGETS if kind.shared else LIST, q)
    if kind.stacked:  # which lane has which query is data of a size that lengths give
        m = np.array([384, 0, 1, 383, 192, 257, 64, 300], np.int32)
    gap_open = int(rng.choice([4, 11, 30]))
    gap_extend = gap_open if kind.linear else int(rng.integers(0, 4))
    factor = FACTORS[kind.local][number % 4]
    gaps = factor * gap_open, factor * gap_extend
    free = () if kind.local else tuple(sorted(SETS[number % len(SETS)]))
    return dict(q=q, m=m, t=t, n=n, scores=factor * SCORES, gaps=gaps, free=free)


def shape_of(kind: Kind, target) -> "kp.Fill":
    """The shape of a kind for a target."""
    if kind.stacked:
        return kp.Fill(64, 8, 4, True, True, stacks=STACKS, target=target)
    return kp.choose(LONGEST, local=kind.local, packed=True, shared=kind.shared,
                     paths=kind.paths, linear=kind.linear, target=target)  # fmt: skip


def call_of(kind: Kind, target, job: dict):
    """``align`` of a job: positional and static arguments."""
    s = shape_of(kind, target)
    stacks = kp.stack(job["m"], s) if s.stacks else None
    problem = kp.problem_of(job["scores"], *job["gaps"], job["free"])
    arrays = problem, job["q"], job["m"], job["t"], job["n"], None, stacks
    return arrays, dict(shape=s, runs=RUNS if kind.paths else 0)


def proved(kind: Kind, job: dict, target) -> bool:
    """Whether no value of a job can leave the range of a target unseen."""
    if kind.local and kp.detects(job["scores"], *job["gaps"], target):
        return True
    return kp.fits(job["scores"], *job["gaps"], LONGEST, LONGEST, kind.local,
                   paths=kind.paths, target=target)  # fmt: skip


def compare_kind(kind: Kind, programs: dict, number: int) -> np.ndarray:
    """Pairs of a random job that were compared, that differ, whose scores are beyond
    the integers of float16, and that have to run again; int (4,)."""
    job = job_of(kind, number)
    if not all(proved(kind, job, target) for target in FORMS.values()):
        return np.zeros(4, int)
    results = []
    for form, target in FORMS.items():
        result = programs[kind, form](*call_of(kind, target, job)[0])._asdict()
        results.append({k: np.asarray(v) for k, v in result.items() if v is not None})
    hopper, older = results
    sure, wrong, again = differences(hopper, older)
    large = sure & (np.abs(hopper["score"]) > EXACT_IN_FLOAT16)
    return np.array([x.sum() for x in (sure, wrong, large, again)])


def differences(one: dict, other: dict) -> tuple[np.ndarray, ...]:
    """Pairs that are right in both results, that differ though, and that run again
    in either, bool; those are computed in int32 by who calls."""
    again = np.zeros_like(one["score"], bool)
    for results in (one, other):
        again |= results.get("overflow", False)
    wrong = np.zeros_like(again)
    for name in set(one) - {"overflow", "runs"}:
        wrong |= one[name] != other[name]
    if "runs" in one:
        place = np.arange(len(one["runs"])).reshape((-1,) + (1,) * again.ndim)
        valid = place < np.minimum(one["count"], len(place))
        wrong |= ((one["runs"] != other["runs"]) & valid).any(0)
    return ~again, wrong & ~again, again


def compare_mode(local: bool, jobs: int) -> dict:
    """All kinds of a mode; jobs of each."""
    some = kinds(local)
    keys = [(kind, form) for kind in some for form in FORMS]

    def build(key):
        arrays, static = call_of(key[0], FORMS[key[1]], job_of(key[0], 0))
        return kp.align.lower(*arrays, **static).compile()

    with ThreadPoolExecutor(THREADS) as pool:
        programs = dict(zip(keys, pool.map(build, keys), strict=True))
    table = {}
    for kind in some:
        total = sum(compare_kind(kind, programs, k) for k in range(jobs))
        table[str(kind)] = dict(zip(COUNTS, map(int, total), strict=True))
        print(f"{kind!s:<20}", table[str(kind)], flush=True)
    return table


# Equal results of whole jobs


def compare_jobs(seconds: float) -> dict:
    """Jobs of the self test, by the older form and by NumPy."""
    config.this_target = lambda: FORMS["float16 maxima"]
    findings = selftest.compare(seconds, print)
    print(f"{findings.jobs} jobs, {findings.pairs} pairs, {findings.different}")
    return {"pairs": findings.pairs, "differ": len(findings.different),
            "jobs": findings.jobs}  # fmt: skip


# Speed


def speed_rows() -> dict[str, dict]:
    """Options of the rows that are measured; semiglobal runs the program of global."""
    block = dict(m=384, n=384, q=64, t=4224)
    border = dict(block, local=False)
    return {
        "local": block,
        "global": border,
        "linear, local": dict(block, gaps=(4, 4)),
        "linear, global": dict(border, gaps=(4, 4)),
        "paths, local": dict(block, paths=True),
        "paths, global": dict(border, paths=True),
        "list, local": dict(m=384, n=384, q=67584, t=67584, shared=False),
    }


def row_of(name: str, options: dict, target) -> Row:
    """A row of one form, compiled."""
    s = kp.choose(
        options["m"], local=options.get("local", True), packed=True,
        shared=options.get("shared", True), paths=options.get("paths", False),
        linear=len({*options.get("gaps", (1, 2))}) == 1, target=target,
    )  # fmt: skip
    return Row(f"score, {name}", shape=s, **options).compile()


def compare_speed(after: Path | None) -> dict:
    """Rates of the card, and the speed of all rows in both forms, timed in turns."""
    options = speed_rows()
    keys = [(name, form) for name in options for form in FORMS]
    with ThreadPoolExecutor(THREADS) as pool:
        made = pool.map(lambda x: row_of(x[0], options[x[0]], FORMS[x[1]]), keys)
        rows = dict(zip(keys, made, strict=True))
    while after is not None and not after.exists():
        time.sleep(0.1)
    report = {"min_max": min_max_rate(), "copy": copy_rate(), "rows": [], "differ": 0}
    print(f"{report['min_max'] / 1e12:.1f} T/s of maxima, TCUPS of {', '.join(FORMS)}")
    for name in options:
        calls, cells = {}, {}
        for form in FORMS:
            row = rows.pop((name, form))
            assert row.check(row.run(row.problem, *row.arrays)), (name, form)
            calls[form] = measure.ready(row.run, row.problem, *row.arrays)
            cells[form] = row.cells
        timed = measure.in_turns(calls, ROUNDS)
        tcups = {k: cells[k] / one["seconds"] / 1e12 for k, one in timed.items()}
        report["rows"].append({"name": name, **tcups})
        one, two = tcups.values()
        print(f"{name:<20} {one:6.2f} {two:6.2f}  {two / one:.2f}", flush=True)
    return report


def main(words=None) -> int:
    parser = measure.arguments(__doc__, "json")
    names = "local", "border", "jobs", "speed"
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(names))
    parser.add_argument("--jobs", type=int, default=32, help="of a kind of launches")
    parser.add_argument("--seconds", type=float, default=40, help="of whole jobs")
    parser.add_argument("--after", type=Path)
    given = parser.parse_args(words)
    if wrong := set(given.parts) - set(names):
        parser.error(f"{', '.join(wrong)}: parts are {', '.join(names)}")
    run = {
        "local": lambda: compare_mode(True, given.jobs),
        "border": lambda: compare_mode(False, given.jobs),
        "speed": lambda: compare_speed(given.after),
        "jobs": lambda: compare_jobs(given.seconds),  # the last: it sets the form
    }
    report = {name: f() for name, f in run.items() if name in (given.parts or names)}
    about = {"card": jax.devices()[0].device_kind, "jax": jax.__version__}
    measure.save(given.json, about | report)
    tables = [x for name in ("local", "border") for x in report.get(name, {}).values()]
    return int(any(x["differ"] for x in (*tables, report.get("jobs", {"differ": 0}))))


if __name__ == "__main__":
    sys.exit(main())
