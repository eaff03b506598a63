"""Helpers of all benchmarks: cell counts, timing in turns, tables, the machine."""

import argparse
import json
import os
import platform
import statistics
import time
from importlib.metadata import PackageNotFoundError, version

import numpy as np

PACKAGES = ("jaxalign", "jax", "jaxlib", "numpy", "parasail", "biotite", "biopython")


def arguments(text: str) -> argparse.ArgumentParser:
    """A parser whose help is the docstring of the script, as it stands."""
    return argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def all_pairs_cells(lengths, include_self: bool = False) -> int:
    """Sum of len_i * len_j over the pairs i < j, or i <= j.

    The 2011 paper's program counts and computes the self pairs.
    """
    lengths = [int(length) for length in lengths]  # Python integers cannot overflow
    square, squares = sum(lengths) ** 2, sum(length**2 for length in lengths)
    return (square + squares) // 2 if include_self else (square - squares) // 2


def gcups(cells: int, seconds: float) -> float:
    """Billion cell updates a second: the sum of len_i * len_j, over t, over 1e9."""
    return cells / seconds / 1e9


def in_turns(calls: dict, repeats: int = 3):
    """Time functions in turns, so that a slow minute of the machine hits them all.

    Parameters
    ----------
    calls : dict
        key -> function without arguments.
    repeats : int
        Timed rounds after one call of each that is not counted (it compiles).

    Returns
    -------
    dict
        key -> {"seconds": median, "spread": (max - min) / median, "first": seconds
        of the first call, "cores": CPU seconds per second, "result": last result}.
    """
    first = {key: _timed(call) for key, call in calls.items()}
    rounds = [{k: _timed(call) for k, call in calls.items()} for _ in range(repeats)]
    return {key: _summary(first[key], [one[key] for one in rounds]) for key in calls}


def median_seconds(call, repeats: int = 5) -> float:
    """The median wall time of some calls after the first."""
    call()
    return statistics.median(_timed(call)[0] for _ in range(repeats))


def _timed(call):
    wall, busy = time.perf_counter(), time.process_time()
    result = call()
    return time.perf_counter() - wall, time.process_time() - busy, result


def _summary(first, rounds) -> dict:
    walls = [wall for wall, _, _ in rounds]
    median = statistics.median(walls)
    return {
        "seconds": median,
        "spread": (max(walls) - min(walls)) / median,
        "first": first[0],
        "cores": sum(busy for _, busy, _ in rounds) / sum(walls),
        "result": rounds[-1][2],
    }


def pin(threads: int) -> str:
    """Keep this process on ``threads`` cores; call it before JAX is imported.

    XLA sizes its thread pool by the cores it may use, so without this a run on one
    thread would not be one.
    """
    if not hasattr(os, "sched_setaffinity"):
        return f"{threads} threads asked for; this system cannot pin a process"
    cores = sorted(os.sched_getaffinity(0))
    if threads > len(cores):
        raise SystemExit(f"{threads} threads asked for, {len(cores)} cores allowed")
    os.sched_setaffinity(0, cores[:threads])
    return f"pinned to {threads} of {len(cores)} cores"


def machine() -> dict:
    """Devices, CPU model and versions."""
    import jax

    found = {name: _version(name) for name in PACKAGES}
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "devices": [f"{d.platform} {d.device_kind}" for d in jax.devices()],
        "python": platform.python_version(),
        "versions": {name: value for name, value in found.items() if value},
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            lines = [line for line in file if line.startswith("model name")]
        return lines[0].split(":", 1)[1].strip()
    except (OSError, IndexError):
        return platform.processor() or platform.machine()


def show_machine(found: dict) -> None:
    """The header of every report."""
    packages = " ".join(f"{k} {v}" for k, v in found["versions"].items())
    print(f"# CPU {found['cpu']}, {found['cores']} cores; JAX on {found['devices']}")
    print(f"# Python {found['python']}; {packages}")


def show(rows: list[dict]) -> None:
    """Rows of one set of keys, as an aligned table."""
    if not rows:
        return
    cells = [[_cell(value) for value in row.values()] for row in rows]
    heads = list(rows[0])
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    for line in [heads, *cells]:
        parts = [c.ljust(w) for c, w in zip(line, widths, strict=True)]
        print("  ".join(parts).rstrip(), flush=True)


def _cell(value) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def save(path: str | None, report: dict) -> None:
    """Write a report as JSON; numpy numbers become Python's."""
    if path:
        with open(path, "w") as file:
            json.dump(report, file, indent=1, default=_plain)
            file.write("\n")


def _plain(value):
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else str(value)
