"""Helpers of all benchmarks: options, cell counts, timing, tables, the machine."""

import argparse
import json
import os
import platform
import resource
import statistics
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

PACKAGES = ("jaxalign", "jax", "jaxlib", "numpy", "parasail", "biotite", "biopython")
OPTIONS: dict[str, dict[str, Any]] = {
    "quick": {"action": "store_true", "help": "too small for figures"},
    "only": {"default": "", "help": "rows whose name contains it"},
    "threads": {"type": int, "help": "cores of all tools"},
    "repeats": {"type": int, "help": "timed rounds"},
    "plot": {"metavar": "PATH", "help": "draw pictures"},
    "json": {"metavar": "PATH", "help": "write the figures here too"},
}


def arguments(text: str | None, *flags: str, **defaults) -> argparse.ArgumentParser:
    """A parser whose help is the docstring of the script, as it stands.

    ``flags`` and ``defaults`` are the options of ``OPTIONS`` that the script has.
    """
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in (*flags, *defaults):
        parser.add_argument(f"--{name}", **OPTIONS[name])
    parser.set_defaults(**defaults)
    return parser


def words(text: str) -> list[str]:
    """ "a,b" -> ["a", "b"]: the type of an option."""
    return text.split(",")


def numbers(text: str) -> list[int]:
    """ "1,2,4" -> [1, 2, 4]."""
    return [int(word) for word in words(text)]


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


class Timed(NamedTuple):
    """Seconds of a call; its CPU seconds, those of ended processes too; its result."""

    seconds: float
    cpu: float
    result: Any


def timed(call, *args) -> Timed:
    """Time one call."""
    busy, wall = _cpu_seconds(), time.perf_counter()
    result = call(*args)
    return Timed(time.perf_counter() - wall, _cpu_seconds() - busy, result)


def _cpu_seconds() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def in_turns(calls: dict, repeats: int = 3, warm: bool = True):
    """Time functions in turns, so that a slow minute of the machine hits them all.

    Parameters
    ----------
    calls : dict
        key -> function without arguments.
    repeats : int
        Timed rounds.
    warm : bool
        Call each once before, not counted (it compiles).

    Returns
    -------
    dict
        key -> {"seconds": median, "spread": (max - min) / median, "first": seconds
        of the first call, "cores": CPU seconds per second, "result": last result}.
    """
    first = {key: timed(call).seconds for key, call in calls.items() if warm}
    rounds, results = {key: [] for key in calls}, {}
    for _ in range(repeats):
        for key, call in calls.items():
            seconds, busy, results[key] = timed(call)
            rounds[key].append((seconds, busy))
    table = {}
    for key in calls:
        walls, busy = zip(*rounds[key], strict=True)
        median = statistics.median(walls)
        table[key] = {
            "seconds": median,
            "spread": (max(walls) - min(walls)) / median,
            "first": first.get(key),
            "cores": sum(busy) / sum(walls),
            "result": results[key],
        }
    return table


def median_seconds(call, repeats: int = 5) -> float:
    """The median wall time of some calls after the first; no result is held."""
    call()
    return statistics.median(timed(call).seconds for _ in range(repeats))


def ready(program, *args):
    """A call of a function of JAX that waits for its results on the device."""
    import jax

    return lambda: jax.block_until_ready(program(*args))


def compiled(function, *args):
    """(program, seconds to compile) of a function of JAX."""
    import jax

    seconds, _, program = timed(jax.jit(function).lower(*args).compile)
    return program, seconds


def peak_gib() -> float:
    """The most host memory that this process has had, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


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
    """Devices, CPU model and versions, shown as the header of every report."""
    import jax

    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    try:
        with open("/proc/cpuinfo") as file:
            lines = [line for line in file if line.startswith("model name")]
        model = lines[0].split(":", 1)[1].strip()
    except (OSError, IndexError):
        model = platform.processor() or platform.machine()
    devices = [f"{d.platform} {d.device_kind}" for d in jax.devices()]
    packages = " ".join(f"{k} {v}" for k, v in versions.items())
    print(f"# CPU {model}, {os.cpu_count()} cores; JAX on {devices}")
    print(f"# Python {platform.python_version()}; {packages}")
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "devices": devices,
        "python": platform.python_version(),
        "versions": versions,
    }


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


def show_line(row: dict) -> dict:
    """One row on a line of its own, for tables whose rows take minutes; returns it."""
    print(" | ".join(f"{k} {_cell(v)}" for k, v in row.items()), flush=True)
    return row


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


def append(path: Path, rows: list[dict]) -> None:
    """Add rows to a file of JSON lines, the record of all runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def _plain(value):
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else str(value)
