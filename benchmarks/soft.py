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

import statistics
import sys

import jax
import jax.numpy as jnp
import measure
import numpy as np
from problems import LETTERS

import jaxalign
from jaxalign.similarity.arrays import down, skew

# Peers, each where it is installed ---------------------------------------------------


GAPS = {"gap_open": 5.5, "gap_extend": 0.5}


def problem(count: int, length: int, seed: int = 0, related: float = 0.0):
    """Codes (count, length) of both sides, and their similarity, in half bits / 2, on
    the device; a share of the residues is the same."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 20, (2, count, length))
    if related:
        codes[1] = np.where(rng.random(codes[1].shape) < related, *codes)
    matrix = jnp.asarray(jaxalign.Scoring().scores / 2, jnp.float32)
    gather = jax.jit(lambda a, b: matrix[a[:, :, None], b[:, None, :]])
    return codes, gather(*map(jnp.asarray, codes))


def autodiff(s):
    """Global, linear gaps of 0.5: a scan over anti-diagonals, differentiated by JAX."""

    def one(s):
        m, n = s.shape
        whole = skew(jnp.pad(s, ((1, 0), (1, 0)), constant_values=-1e30), -1e30)
        i = jnp.arange(m + 1, dtype=jnp.int32)

        def step(carry, x):
            before, last = carry
            d, s = x
            moves = s + down(before, -1e30), down(last, -1e30) - 0.5, last - 0.5
            h = jax.nn.logsumexp(jnp.stack(moves), axis=0)
            inside = (d - i >= 0) & (d - i <= n)
            h = jnp.where((i == 0) & (d == 0), 0, jnp.where(inside, h, -1e30))
            return (last, h), None

        dead = jnp.full(m + 1, -1e30, s.dtype)
        steps = jnp.arange(m + n + 1, dtype=jnp.int32)
        return jax.lax.scan(step, (dead, dead), (steps, whole))[0][1][m]

    return jax.vmap(one)(s).sum()


def diffbio(length: int):
    """Similarity -> sum of DiffBio's scores, local, linear gaps of 0.5."""
    from diffbio.operators.alignment import smith_waterman

    costs = {"temperature": 1.0, "gap_open": 0.0, "gap_extend": -0.5}
    config = smith_waterman.SmithWatermanConfig(**costs)
    # It multiplies one-hot sequences with a matrix: here the similarity with ones.
    one = jnp.eye(length)
    aligner = smith_waterman.SmoothSmithWaterman(config, scoring_matrix=one)
    return lambda s: jax.vmap(lambda x: aligner.align(x, one).score)(s).sum()


def soft_dtw(count, length):
    """(x, y) -> sum of soft-DTW costs; two batches of random series."""
    from ott.geometry import costs

    cost, rng = costs.SoftDTW(gamma=1.0), np.random.default_rng(1)
    sides = [jnp.asarray(rng.normal(size=(count, length)), "float32") for _ in "xy"]
    return lambda x, y: jax.vmap(cost)(x, y).sum(), sides


def nwgrad_call(count, length):
    """The same pairs by nwgrad, or None. Its gap of k costs open + extend k."""
    try:
        import nwgrad
        from nwgrad.matrices import BLOSUM62
    except ImportError as missing:
        print(f"# nwgrad left out: {missing}")
        return None
    codes, _ = problem(count, length)
    texts = [["".join(LETTERS[c] for c in row) for row in side] for side in codes]
    costs = {
        f"gap_{k}_{s}": v for s in "ab" for k, v in (("open", 5.0), ("extend", 0.5))
    }
    params = nwgrad.AlignParams(BLOSUM62, **costs)
    options = {"gap_model": "affine", "mode": "local", "grad_mode": "soft"}
    batch = nwgrad.SeqPairBatch(*texts, params, **options)

    def call():
        batch.set_params(params)
        return batch.score_and_grad(), batch.compute_grad()

    return call


def smurf_forms(folder, count, length) -> dict:
    """As ``forms``, of SMURF's gradients; it keeps the scores to itself."""
    sys.path.insert(0, folder)
    import sw_functions

    _, s = problem(count, length)
    lengths = jnp.full((count, 2), length, jnp.int32)
    costs = -GAPS["gap_extend"], -GAPS["gap_open"], 1.0
    function = sw_functions.sw_affine(batch=True)
    return {"score+grad": compiled_call(function, (s, lengths, *costs))}


def compiled_call(function, args):
    """(call that waits for its result, seconds to compile, temporary bytes)."""
    program, seconds = measure.compiled(function, *args)
    temporary = program.memory_analysis().temp_size_in_bytes
    return measure.ready(program, *args), seconds, temporary


# The tables --------------------------------------------------------------------------

OURS = {
    "jaxalign": {},
    "jaxalign rows": {"implementation": "rows"},
    "jaxalign global": {"mode": "global"},
    "jaxalign blocked": {"implementation": "blocked"},
}


def ours(**options):
    """Similarity -> sum of scores."""
    options = GAPS | {"mode": "local"} | options
    return lambda s: jaxalign.soft_score(s, **options).sum()


def entrants(count: int, length: int) -> dict:
    """name -> (function, its arguments)."""
    _, s = problem(count, length)
    calls = {name: (ours(**options), (s,)) for name, options in OURS.items()}
    calls["autodiff, linear"] = autodiff, (s,)
    try:
        calls["ott SoftDTW"] = soft_dtw(count, length)
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
    both = jax.value_and_grad(function, tuple(range(len(args))))

    def product(*args):
        return jax.jvp(jax.grad(function), args, args)[1]

    programs = {}
    for name, form in (("score", function), ("score+grad", both), ("hvp", product)):
        try:
            programs[name] = compiled_call(form, args)
        except TypeError:  # a peer without a second derivative
            continue
    return programs


def table(count: int, length: int, repeats: int, smurf=None) -> list[dict]:
    """A row an entrant; ratios are to ott's score and gradient in the same run."""
    programs = {name: forms(*one) for name, one in entrants(count, length).items()}
    if nwgrad := nwgrad_call(count, length):
        programs["nwgrad"] = {"score+grad": (nwgrad, None, None)}
    if smurf:
        programs["SMURF sw_affine"] = smurf_forms(smurf, count, length)
    calls = {
        (name, form): call
        for name, forms_of in programs.items()
        for form, (call, *_) in forms_of.items()
    }
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
    _, s = problem(1, length, seed=2)
    rows = []
    for mode, temperature in (("local", 0.5), ("local", 1.5), ("global", 0.5)):
        options = {"mode": mode, "temperature": temperature}
        run = jax.jit(jax.value_and_grad(ours(**options)))
        with jax.enable_x64(True):
            wide = jax.jit(jax.value_and_grad(ours(**options)))
            in_double = wide(s.astype("float64"))
        row = {"mode": mode, "T": temperature}
        rows.append(row | errors(run(s), in_double))
    return rows


def errors(single, double) -> dict:
    """Of a score and a posterior in float32, beside those in float64."""
    (f, p), (f64, p64) = jax.tree.map(np.asarray, (single, double))
    return {
        "F": float(f64),
        "|F - F64|": float(abs(f - f64)),
        "allowed": max(1e-4, 1.2e-7 * abs(float(f64))),
        "|P - P64|": float(abs(p - p64).max()),
        "row sum": float(p.sum(-1).max()),
    }


def main(argv=None) -> None:
    parser = measure.arguments(__doc__, "quick", "json", repeats=7)
    parser.add_argument("names", nargs="*", default=["small", "large", "precision"])
    parser.add_argument("--smurf", metavar="FOLDER")
    options = parser.parse_args(argv)
    report: dict = {"machine": measure.machine()}
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
        _, s = problem(16, 200)
        traced = []
        for temperature in (1.0, 2.0, 3.0):
            run = jax.jit(jax.value_and_grad(ours(temperature=temperature)))
            traced.append(measure.timed(run.lower, s).seconds)
        print(f"# tracing score and gradient: {statistics.median(traced):.2f} s")
    measure.save(options.json, report)


if __name__ == "__main__":
    main()
