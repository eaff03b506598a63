"""Score and gradient of soft alignment on a CPU, in CPU seconds, beside nwgrad.

    python benchmarks/soft_cpu.py
    python benchmarks/soft_cpu.py --quick          # any machine; too small for figures
    python benchmarks/soft_cpu.py --small          # NumPy beside compiled calls

Local, float32, gaps of 5.5 and 0.5: pairs of random proteins, as ``soft.py`` draws
them. CPU seconds are user and system time of the process, the smallest of a few calls,
so that a busy machine disturbs them little; ``taskset -c 0`` gives those of one core.
nwgrad (PyPI) is measured where it is installed; its gradient is by matrix and gap
costs, and has no posterior. "rows, costs" has the gradient by gap costs as well.

``--small`` has two tables: calls of one process by size, and CPU seconds from the start
of a process to the end of its first four calls, with an empty and a filled folder of
programs. ``XLA_FLAGS=--xla_cpu_max_isa=AVX2`` gives XLA vectors of 256 bits.
"""

import os
import subprocess
import sys
import tempfile

import jax
import jax.numpy as jnp
import measure
import numpy as np
from soft import GAPS, nwgrad_call, problem

import jaxalign
from jaxalign.similarity import arguments
from jaxalign.similarity.hard import small as small_hard

IMPLEMENTATIONS = ("log", "blocked", "rows")


def gradient_call(similarity, implementation: str, costs: bool = False):
    """A call of the compiled gradient, by gap costs too, that waits for its result."""

    def total(s, gaps):
        options = {"mode": "local", "implementation": implementation}
        return jaxalign.soft_score(s, **gaps, **options).sum()

    run = jax.jit(jax.value_and_grad(total, (0, 1) if costs else 0))
    return measure.ready(run, similarity, GAPS)


SMALL = ((1, 30), (1, 60), (1, 120), (1, 250), (1, 400), (16, 60), (128, 30), (1024, 8))
BEST = 8  # alignments of ``k_best``
PROCESS = """
import sys, time
import numpy as np
import jaxalign

name, kind = sys.argv[1:]
s = np.random.default_rng(0).normal(size=(120, 128)).astype(np.float32) * 3
if kind == "compiled":
    import jax.numpy as jnp
    s = jnp.asarray(s)
for _ in range(4):
    value = getattr(jaxalign, name)(s, gap_open=5.5, gap_extend=0.5)
    np.asarray(getattr(value, "score", value))
    print(time.process_time())
"""


def calls_by_size(sizes: tuple) -> None:
    """Print CPU milliseconds of the two forms."""
    print("| pairs | function | NumPy, ms | compiled, ms | its first call, s |")
    print("|---|---|---|---|---|")
    for count, length in sizes:
        s = np.random.default_rng(0).normal(size=(count, length, length)) * 3
        s = s.astype(np.float32)

        def paths(k, s=s):
            read = arguments.read(s, None, *GAPS.values(), "global", None, True)
            return small_hard.results(read, None, k, False)

        forms = {
            "soft_posterior": (
                lambda s: jaxalign.soft_posterior(s, **GAPS),
                lambda s=s: jaxalign.soft_posterior(s, **GAPS, implementation="numpy"),
            ),
            "hard_alignment": (
                lambda s: jaxalign.hard_alignment(s, **GAPS),
                lambda paths=paths: paths(None),
            ),
            "k_best": (
                lambda s: jaxalign.k_best(BEST, s, **GAPS),
                lambda paths=paths: paths(BEST),
            ),
        }
        for name, (compiled, by_numpy) in forms.items():
            by_xla = measure.ready(lambda s, f=compiled: f(jnp.asarray(s)), s)
            first, *later = (measure.timed(by_xla).cpu for _ in range(6))
            numpy = min(measure.timed(by_numpy).cpu for _ in range(5))
            figures = f"{numpy * 1e3:.1f} | {min(later) * 1e3:.1f} | {first:.1f}"
            print(f"| {count} x {length}² | {name} | {figures} |", flush=True)


def processes() -> None:
    """Print CPU seconds from the start of a process to the end of each call."""
    print("\n| 120 x 128 | form, programs | call 1, s | 2 | 3 | 4 |")
    print("|---|---|---|---|---|---|")
    for name in ("soft_posterior", "hard_alignment"):
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"JAXALIGN_CACHE_DIR": folder}
            for kind, programs in (
                ("NumPy", "none"),
                ("compiled", "empty"),
                ("compiled", "filled"),
            ):
                words = [sys.executable, "-c", PROCESS, name, kind]
                lines = subprocess.check_output(words, env=environment, text=True)
                seconds = " | ".join(f"{float(x):.2f}" for x in lines.split())
                print(f"| {name} | {kind}, {programs} | {seconds} |", flush=True)


def main() -> None:
    parser = measure.arguments(__doc__, "quick")
    parser.add_argument("--small", action="store_true", help="small problems")
    parsed = parser.parse_args()
    quick = parsed.quick
    if parsed.small:
        calls_by_size(SMALL[:1] if quick else SMALL)
        processes()
        return
    print("| pairs | tool | first call, CPU s | score + gradient, CPU ms |")
    print("|---|---|---|---|")
    for count, length in ((2, 20),) if quick else ((16, 200), (8, 1000)):
        _, similarity = problem(count, length)
        calls = {name: gradient_call(similarity, name) for name in IMPLEMENTATIONS}
        calls["rows, costs"] = gradient_call(similarity, "rows", costs=True)
        if peer := nwgrad_call(count, length):
            calls["nwgrad"] = peer
        for name, call in calls.items():
            seconds = [measure.timed(call).cpu for _ in range(3 if quick else 8)]
            first, _, *later = seconds
            figures = f"{first:.2f} | {min(later) * 1e3:.1f}"
            print(f"| {count} x {length}² | {name} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
