"""Rows of ``benchmarks.scale``."""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parents[1]


def proteins(count=None, seed=0):
    """Some of the proteins of ``fetch.py``, random ones in the order of the files; the
    shipped test proteins where there are none. Those that more are needed than there
    are come again with their letters shuffled."""
    from jaxalign.io import fasta
    from jaxalign.model.alphabet import from_parts
    from jaxalign.model.scoring import Scoring

    alphabet = Scoring().alphabet
    names = ("swissprot12071.fasta", "uniprot20000.fasta")
    paths = [HERE / "data" / name for name in names if (HERE / "data" / name).exists()]
    paths = paths or [HERE.parent / "tests" / "data" / "proteins.fasta"]
    read = [fasta.read(str(path), alphabet, "mask") for path in paths]
    parts = [one[k] for one in read for k in range(len(one))]
    rng, there = np.random.default_rng(seed), len(parts)
    while count is not None and len(parts) < count:
        parts.append(rng.permutation(parts[len(parts) - there]))
    whole = from_parts([f"p{k}" for k in range(len(parts))], parts, alphabet)
    if count is None:
        return whole
    return whole.take(np.sort(rng.choice(len(whole), count, replace=False)))


# Devices: X1.4, X1.5, X1.7 ------------------------------------------------------------


def devices(options) -> list[dict]:
    """All against all on 1 ... n devices, three modes."""
    import jax

    report = []
    there = [count for count in options.counts if count <= len(jax.devices())]
    for mode in options.modes.split(","):
        sequences = proteins(options.count or _needed(mode, options))
        rows = []
        for count in there:
            rows.append(row := _on(sequences, mode, count, options))
            row["speed-up"] = rows[0]["seconds"] / row["seconds"]
            row["of device"] = rows[0]["device"] / row["device"]
            print(row, flush=True)  # a run that is cut off has something to show
        report += rows
    return report


SAMPLE = 1500, 20000  # proteins that compile what long jobs need, on a CPU, on a GPU


def _sample(sequences):
    """As many of some sequences as a warm-up takes, from all of them."""
    import jax

    count = SAMPLE[jax.default_backend() == "gpu"]
    return sequences.take(range(0, len(sequences), max(len(sequences) // count, 1)))


def _needed(mode: str, options) -> int:
    """The number of proteins that keep one device busy for ``--seconds``."""
    import jaxalign

    some = _sample(proteins())
    for _ in range(2):  # the first compiles
        table = jaxalign.align_all(some, mode=mode, output=options.output)
    rate = table.info["cells"] / table.info["seconds"]
    mean = float(proteins().lengths.mean())
    return int(np.sqrt(2 * rate * options.seconds) / mean) + 2


def _on(sequences, mode: str, count: int, options) -> dict:
    import jax

    import jaxalign

    chosen = {"devices": list(range(count))} if count > 1 else {}
    chosen |= {"mode": mode, "output": options.output}
    last_run = {}

    def call(sequences):
        begin = time.perf_counter()
        table = jaxalign.align_all(sequences, **chosen)
        last_run["seconds"] = time.perf_counter() - begin
        last_run["cells"] = float(table.info["cells"])
        # the same for every count
        last_run["sum of scores"] = int(table["score"].sum(dtype=np.int64))

    call(_sample(sequences))
    first = last_run["seconds"]
    busy = traced_seconds(lambda: call(sequences))
    return {
        "device kind": jax.devices()[0].device_kind, **chosen, "devices": count,
        "proteins": len(sequences), **last_run, "device": max(busy),
        "GCUPS": last_run["cells"] / last_run["seconds"] / 1e9, "first": first,
    }  # fmt: skip


def traced_seconds(call) -> list[float]:
    """Kernel seconds of each device; nan on a CPU, whose trace has no kernels."""
    import jax

    if jax.default_backend() != "gpu":
        call()
        return [float("nan")]
    from pairs import gpu_end_to_end

    return gpu_end_to_end.traced(call)["by_device"]


# A long job to parquet ----------------------------------------------------------------


def parquet(options) -> list[dict]:
    """Identities of all pairs into a folder of parts, by the command line.

    In a process of its own, for its memory.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(HERE / "pairs" / "scale_parquet.py"), folder]
        command += [str(options.count or 0)]
        process = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(process.stdout.splitlines()[-1])]


# X1.9 ---------------------------------------------------------------------------------


def longest(options) -> list[dict]:
    """The longest sequences of a window of W x W pairs, by the plan and by a run."""
    import jax

    on_gpu = jax.default_backend() == "gpu"
    sizes = (2, 1) if options.quick else (64, 16, 4, 1) if on_gpu else (8, 4, 2, 1)
    chosen = {"mode": "local", "implementation": "pallas" if on_gpu else "sweep"}
    if not on_gpu:
        chosen |= {"memory_budget": options.budget, "threads": 1}
    report = []
    for size in sizes:
        report.append(_longest(size, chosen))
        print(report[-1], flush=True)
    return report


def _longest(size: int, chosen: dict) -> dict:
    import jaxalign

    least, most = 16, 32
    while _fits(size, most, chosen):
        least, most = most, 2 * most
    while most - least > max(16, least // 50):
        middle = (least + most) // 2
        within = _fits(size, middle, chosen)
        least, most = (middle, most) if within else (least, middle)
    begin = time.perf_counter()
    table = jaxalign.align_pairs(*_alike(size, least), **chosen)
    seconds = time.perf_counter() - begin
    beyond = _planned(size, 4 * most, chosen)
    return {
        "W": size, "implementation": chosen["implementation"], "longest": least,
        "window bytes": table.info["window_bytes"],
        "budget": table.info["budget_bytes"], "seconds": seconds,
        "4 x as long": f"{beyond['windows']} windows" if beyond else "refused",
        "peak bytes": _peak(),
    }  # fmt: skip


def _fits(size: int, length: int, chosen: dict) -> bool:
    plan = _planned(size, length, chosen)
    return bool(plan) and plan["windows"] == 1 and not plan["checkpointed_pairs"]


def _planned(size: int, length: int, chosen: dict) -> dict | None:
    """The plan of a window; None where it is refused."""
    import jaxalign

    try:
        return jaxalign.plan(*_alike(size, length), **chosen)
    except jaxalign.MemoryPlanError:
        return None


def _alike(size: int, length: int):
    """W x W pairs of random protein of one length."""
    rng = np.random.default_rng(length)
    codes = rng.integers(0, 20, (2, size * size, length), dtype=np.uint8)
    return list(codes[0]), list(codes[1])


def _peak() -> int:
    """The most bytes the device, or this process, has had."""
    import jax

    stats = jax.devices()[0].memory_stats() or {}
    usual = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return stats.get("peak_bytes_in_use", usual)
