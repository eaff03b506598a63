"""Score and gradient of soft alignment on a CPU, in CPU seconds, beside nwgrad.

    python benchmarks/soft_cpu.py
    python benchmarks/soft_cpu.py --quick          # any machine; too small for figures

Local, float32, gaps of 5.5 and 0.5: pairs of random proteins, as ``soft.py`` draws
them. CPU seconds are user and system time of the process, the smallest of a few calls,
so that a busy machine disturbs them little; ``taskset -c 0`` gives those of one core.
nwgrad (PyPI) is measured where it is installed; its gradient is by matrix and gap
costs, and has no posterior. "rows, costs" has the gradient by gap costs as well.
"""

import jax
import measure
from soft import GAPS, nwgrad_call, problem

import jaxalign

IMPLEMENTATIONS = ("log", "blocked", "rows")


def gradient_call(similarity, implementation: str, costs: bool = False):
    """A call of the compiled gradient, by gap costs too, that waits for its result."""

    def total(s, gaps):
        options = {"mode": "local", "implementation": implementation}
        return jaxalign.soft_score(s, **gaps, **options).sum()

    run = jax.jit(jax.value_and_grad(total, (0, 1) if costs else 0))
    return measure.ready(run, similarity, GAPS)


def main() -> None:
    quick = measure.arguments(__doc__, "quick").parse_args().quick
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
