"""Score and gradient of soft alignment on a CPU, in CPU seconds, beside nwgrad.

    python benchmarks/soft_cpu.py
    python benchmarks/soft_cpu.py --quick          # any machine; too small for figures

Local, float32, gaps of 5.5 and 0.5: pairs of random proteins, as ``soft.py`` draws
them. CPU seconds are user and system time of the process, the smallest of a few calls,
so that a busy machine disturbs them little; ``taskset -c 0`` gives those of one core.
nwgrad (PyPI) is measured where it is installed; its gradient is by matrix and gap
costs, and has no posterior. "rows, costs" has the gradient by gap costs as well.
"""

import argparse
import resource

from soft import GAPS, nwgrad_call, problem

IMPLEMENTATIONS = ("log", "blocked", "rows")


def cpu_seconds(call, times: int) -> float:
    """The least of some calls, after one that is not counted."""
    call()
    return min(_used(call) for _ in range(times))


def _used(call) -> float:
    before = resource.getrusage(resource.RUSAGE_SELF)
    call()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def gradient_call(similarity, implementation: str, costs: bool = False):
    """A call of the compiled gradient, by gap costs too, that waits for its result."""
    import jax

    import jaxalign

    def total(s, gaps):
        options = {"mode": "local", "implementation": implementation}
        return jaxalign.soft_score(s, **gaps, **options).sum()

    run = jax.jit(jax.value_and_grad(total, (0, 1) if costs else 0))
    return lambda: jax.block_until_ready(run(similarity, GAPS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    print("| pairs | tool | first call, CPU s | score + gradient, CPU ms |")
    print("|---|---|---|---|")
    for count, length in ((2, 20),) if quick else ((16, 200), (8, 1000)):
        _, similarity = problem(count, length)
        calls = {name: gradient_call(similarity, name) for name in IMPLEMENTATIONS}
        calls["rows, costs"] = gradient_call(similarity, "rows", costs=True)
        if peer := nwgrad_call(count, length):
            calls["nwgrad"] = peer
        for name, call in calls.items():
            first, later = _used(call), cpu_seconds(call, 1 if quick else 6)
            size = f"{count} x {length}²"
            print(f"| {size} | {name} | {first:.2f} | {later * 1e3:.1f} |", flush=True)


if __name__ == "__main__":
    main()
