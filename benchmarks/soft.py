"""Soft alignment beside other differentiable aligners, in one run.

    python benchmarks/soft.py --quick
    python benchmarks/soft.py --json soft.json

small      16 pairs of 200 x 200: score; score and gradient; Hessian-vector product
large      one pair of 2,000 x 2,000: score; score and gradient; Hessian-vector product
precision  score and posterior in float32 against float64, 2,000 x 2,000

Random proteins with BLOSUM62 over T, gaps of 5.5 + 0.5 (k - 1), affine and local
unless a row says otherwise; milliseconds are medians of calls in turns, compilation
apart ("compile": XLA's seconds for score and gradient). MB is what
XLA reports as temporary memory of score and gradient. Peers that are not installed are
left out:

ott        SoftDTW of ott-jax: dynamic time warping, no gap costs; each pair of random
           series, the gradient by both. The yardstick of speed.
nwgrad     C++ threads, soft affine; score and gradient by matrix and gap costs.
DiffBio    linear gaps, a scan in a loop over rows; small sizes only.
autodiff   linear gaps by anti-diagonals, JAX's own derivative: the plain way to write
           it (as in SynJax or SMURF's linear functions).
SMURF      local, affine (--smurf: the folder of its sw_functions.py, which has no
           package); a path of one pair alone is missing there.
"""

import argparse
import statistics
import time

import measure
import numpy as np
from soft_peers import (
    GAPS,
    autodiff,
    diffbio,
    nwgrad_call,
    problem,
    ready,
    series,
    smurf_forms,
    soft_dtw,
)

OURS = {
    "jaxalign": {},
    "jaxalign scaled": {"implementation": "scaled"},
    "jaxalign global": {"mode": "global"},
    "jaxalign blocked": {"implementation": "blocked"},
}


def ours(**options):
    """Similarity -> sum of scores."""
    import jaxalign

    options = GAPS | {"mode": "local"} | options
    return lambda s: jaxalign.soft_score(s, **options).sum()


def entrants(count: int, length: int) -> dict:
    """name -> (function, its arguments)."""
    _, s = problem(count, length)
    calls = {name: (ours(**options), (s,)) for name, options in OURS.items()}
    calls["autodiff, linear"] = autodiff, (s,)
    try:
        calls["ott SoftDTW"] = soft_dtw(), series(count, length)
    except ImportError as missing:
        print(f"# ott left out: {missing}")
    try:
        if length <= 500:  # beyond, a call takes many seconds
            calls["DiffBio, linear"] = diffbio(length), (s,)
    except ImportError as missing:
        print(f"# DiffBio left out: {missing}")
    return calls


def forms(function, args) -> dict:
    """Compiled calls of a function, its seconds to compile, and its bytes."""
    import jax

    both = jax.value_and_grad(function, tuple(range(len(args))))

    def product(*args):
        return jax.jvp(jax.grad(function), args, args)[1]

    programs = {}
    for name, form in (("score", function), ("score+grad", both), ("hvp", product)):
        try:
            lowered = jax.jit(form).lower(*args)
        except TypeError:  # a peer without a second derivative
            continue
        began = time.perf_counter()
        compiled = lowered.compile()
        seconds = time.perf_counter() - began
        call = ready(compiled, args)
        programs[name] = call, seconds, compiled.memory_analysis().temp_size_in_bytes
    return programs


def table(count: int, length: int, repeats: int, smurf=None) -> list[dict]:
    """A row an entrant; ratios are to ott's score and gradient in the same run."""
    programs = {name: forms(*one) for name, one in entrants(count, length).items()}
    calls = {
        (name, form): call
        for name, forms_of in programs.items()
        for form, (call, *_) in forms_of.items()
    }
    nwgrad = nwgrad_call(count, length)
    if nwgrad:
        calls["nwgrad", "score+grad"] = nwgrad
        programs["nwgrad"] = {"score+grad": (nwgrad, None, None)}
    if smurf:
        forms_of = programs["SMURF sw_affine"] = smurf_forms(smurf, count, length)
        calls["SMURF sw_affine", "score+grad"] = forms_of["score+grad"][0]
    timed = {
        key: one["seconds"] for key, one in measure.in_turns(calls, repeats).items()
    }
    rows = []
    for name, forms_of in programs.items():
        ms = {form: timed.get((name, form)) for form in ("score", "score+grad", "hvp")}
        _, compile_s, temporary = forms_of["score+grad"]
        both, yardstick = ms["score+grad"], timed.get(("ott SoftDTW", "score+grad"))
        row = {"tool": name}
        row |= {f"{form} ms": t and 1e3 * t for form, t in ms.items()}
        row["/ ott"] = both / yardstick if yardstick else None
        row["hvp / grad"] = ms["hvp"] / both if ms["hvp"] else None
        row["compile s"] = compile_s
        row["MB"] = temporary / 1e6 if temporary is not None else None
        rows.append(row)
    return rows


def precision(length: int) -> list[dict]:
    """Errors of float32 against the same program in float64."""
    import jax

    _, s = problem(1, length, seed=2)
    rows = []
    for mode, temperature in (("local", 0.5), ("local", 1.5), ("global", 0.5)):
        options = {"mode": mode, "temperature": temperature}
        run = jax.jit(jax.value_and_grad(ours(**options)))
        f, p = jax.tree.map(np.asarray, run(s))
        with jax.enable_x64(True):
            wide = jax.jit(jax.value_and_grad(ours(**options)))
            f64, p64 = jax.tree.map(np.asarray, wide(s.astype("float64")))
        rows.append(
            {
                "mode": mode,
                "T": temperature,
                "F": float(f64),
                "|F - F64|": float(abs(f - f64)),
                "allowed": max(1e-4, 1.2e-7 * abs(float(f64))),
                "|P - P64|": float(abs(p - p64).max()),
                "row sum": float(p.sum(-1).max()),
            }
        )
    return rows


def traced(repeats: int = 3) -> float:
    """Seconds to trace score and gradient of 16 pairs of 200 x 200, median."""
    import jax

    _, s = problem(16, 200)
    times = []
    for k in range(repeats):
        began = time.perf_counter()
        jax.jit(jax.value_and_grad(ours(temperature=1.0 + k))).lower(s)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main(argv=None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=["small", "large", "precision"])
    parser.add_argument("--quick", action="store_true", help="too small for figures")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--smurf", metavar="FOLDER")
    parser.add_argument("--json", metavar="PATH")
    options = parser.parse_args(argv)
    report = {"machine": measure.machine()}
    measure.show_machine(report["machine"])
    count, short, long = (2, 20, 40) if options.quick else (16, 200, 2000)
    makers = {
        "small": lambda: table(count, short, options.repeats, options.smurf),
        "large": lambda: table(1, long, max(2, options.repeats // 2), options.smurf),
        "precision": lambda: precision(long),
    }
    for name in options.names:
        print(f"\n# {name}")
        report[name] = makers[name]()
        measure.show(report[name])
    if "small" in options.names:
        print(f"# tracing score and gradient: {traced():.2f} s")
    measure.save(options.json, report)


if __name__ == "__main__":
    main()
