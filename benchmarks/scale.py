"""Scale: several GPUs, long jobs, long sequences, schedules, a cluster.

    python -m benchmarks.scale devices --counts 1,2 --seconds 60
    python -m benchmarks.scale parquet                   # 32,071 proteins, one GPU
    python -m benchmarks.scale longest --budget 64MiB    # X1.9
    python -m benchmarks.scale lpt                       # against a static split
    python -m benchmarks.scale ray --seconds 120         # needs jaxalign[cluster]
    python -m benchmarks.scale links --proteins 100000 --verbs cluster
    python -m benchmarks.scale all --quick               # does it run?

devices  gpu-pairalign's X1.4, X1.5 and X1.7: all against all, three modes, 1 to n
         devices of one host, as many of the proteins of ``fetch.py`` as one device
         needs ``--seconds`` for. ``seconds`` is a whole call of ``align_all``, after a
         smaller one that compiles (``first``); ``device`` the kernel time of the
         busiest device in a profiler trace of it (GPUs). ``speed-up`` and ``of device``
         divide by those of one device.
parquet  identities of all pairs (``--count`` of the 32,071) by the command line into a
         folder of parts; ``wall/device``, and the most host memory the process had.
longest  X1.9: the longest pair of which a window of W x W pairs with its backtrack fits
         the budget: by the plan, and by running it.
lpt      real windows of a length-mixed set, timed one by one; when the last of m
         devices would end if they are dealt heaviest first to whoever is idle, or in
         equal shares before the start.
ray      a cluster of two local nodes of one core each, against one process.
links    ``cluster`` finds the components of a set at 0.4 over the longer length,
         ``audit`` compares a fifth of the set with the rest, ``dedup`` finds greedy
         clusters at 0.9. More proteins than there are come again, ``--relatives`` of
         them with some residues replaced and the others shuffled, so that links grow
         with the set as those of a database do. A row is a call in the process of all
         rows: the first of each count of devices compiles, and ``--repeats 2`` has a
         row without. ``digest``, of the labels or of the leaks and worst pairs, must
         not depend on the number of devices.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import jax
import measure
import numpy as np
import problems

import jaxalign
from jaxalign.io import fasta
from jaxalign.model.alphabet import from_parts
from jaxalign.model.scoring import Scoring
from jaxalign.options import PairOptions
from jaxalign.pairs import engine, jobs, pair_matrix
from jaxalign.pairs.options import make_task


def proteins(count=None, seed=0):
    """Some of the proteins of ``fetch.py``, random ones in the order of the files; the
    shipped test proteins where there are none. Those that more are needed than there
    are come again with their letters shuffled."""
    alphabet = Scoring().alphabet
    paths = [path for path in problems.SETS if path.exists()]
    paths = paths or [problems.ROOT / "tests" / "data" / "proteins.fasta"]
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
    report = []
    for mode in options.modes.split(","):
        count = options.count
        if not count:
            chosen = {"mode": mode, "output": options.output}
            count = busy_count(_sample(proteins()), options.seconds, **chosen)
        sequences = proteins(count)
        rows = []
        for number in available(options.counts):
            rows.append(row := _on(sequences, mode, number, options))
            row["speed-up"] = rows[0]["seconds"] / row["seconds"]
            row["of device"] = rows[0]["device"] / row["device"]
            print(row, flush=True)  # a run that is cut off has something to show
        report += rows
    return report


SAMPLE = 1500, 20000  # proteins that compile what long jobs need, on a CPU, on a GPU


def available(counts) -> list[int]:
    """Those numbers of devices that there are."""
    return [count for count in counts if count <= len(jax.devices())]


def _sample(sequences):
    """As many of some sequences as a warm-up takes, from all of them."""
    count = SAMPLE[jax.default_backend() == "gpu"]
    return sequences.take(range(0, len(sequences), max(len(sequences) // count, 1)))


def busy_count(sample, seconds: float, **options) -> int:
    """The number of proteins that keep a machine busy so long."""
    jaxalign.align_all(sample, **options)  # compiles
    info = jaxalign.align_all(sample, **options).info
    mean = float(proteins().lengths.mean())
    return int(np.sqrt(2 * info["cells"] / info["seconds"] * seconds) / mean) + 2


def _on(sequences, mode: str, count: int, options) -> dict:
    chosen = {"devices": list(range(count))} if count > 1 else {}
    chosen |= {"mode": mode, "output": options.output}
    runs = []

    def call(sequences):
        run = measure.timed(lambda: jaxalign.align_all(sequences, **chosen))
        runs.append({
            "seconds": run.seconds,
            "cells": float(run.result.info["cells"]),
            # the same for every count
            "sum of scores": int(run.result["score"].sum(dtype=np.int64)),
        })  # fmt: skip

    call(_sample(sequences))
    busy = traced_seconds(lambda: call(sequences))
    first, last = runs
    return {
        "device kind": jax.devices()[0].device_kind, **chosen, "devices": count,
        "proteins": len(sequences), **last, "device": max(busy),
        "GCUPS": last["cells"] / last["seconds"] / 1e9, "first": first["seconds"],
    }  # fmt: skip


def traced_seconds(call) -> list[float]:
    """Kernel seconds of each device; nan on a CPU, whose trace has no kernels."""
    if jax.default_backend() != "gpu":
        call()
        return [float("nan")]
    from gpu import traced

    return traced(call)["by_device"]


# A long job to parquet ----------------------------------------------------------------


def parquet(options) -> list[dict]:
    """Identities of all pairs into a folder of parts, by the command line.

    In a process of its own, for its memory.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.scale", "parquet", "--folder"]
        command += [folder, "--count", str(options.count or 0)]
        process = subprocess.run(
            command, cwd=problems.ROOT, check=True, stdout=subprocess.PIPE, text=True
        )
    return [json.loads(process.stdout.splitlines()[-1])]


# X1.9 ---------------------------------------------------------------------------------


def longest(options) -> list[dict]:
    """The longest sequences of a window of W x W pairs, by the plan and by a run."""
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
    least, most = 16, 32
    while _fits(size, most, chosen):
        least, most = most, 2 * most
    while most - least > max(16, least // 50):
        middle = (least + most) // 2
        within = _fits(size, middle, chosen)
        least, most = (middle, most) if within else (least, middle)
    sides = _alike(size, least)
    seconds, _, table = measure.timed(lambda: jaxalign.align_pairs(*sides, **chosen))
    beyond = _planned(size, 4 * most, chosen)
    stats = jax.devices()[0].memory_stats() or {}
    return {
        "W": size, "implementation": chosen["implementation"], "longest": least,
        "window bytes": table.info["window_bytes"],
        "budget": table.info["budget_bytes"], "seconds": seconds,
        "4 x as long": f"{beyond['windows']} windows" if beyond else "refused",
        # of the device, or of this process
        "peak bytes": stats.get("peak_bytes_in_use", int(measure.peak_gib() * 2**30)),
    }  # fmt: skip


def _fits(size: int, length: int, chosen: dict) -> bool:
    plan = _planned(size, length, chosen)
    return bool(plan) and plan["windows"] == 1 and not plan["checkpointed_pairs"]


def _planned(size: int, length: int, chosen: dict) -> dict | None:
    """The plan of a window; None where it is refused."""
    try:
        return jaxalign.plan(*_alike(size, length), **chosen)
    except jaxalign.MemoryPlanError:
        return None


def _alike(size: int, length: int):
    """W x W pairs of random protein of one length."""
    rng = np.random.default_rng(length)
    codes = rng.integers(0, 20, (2, size * size, length), dtype=np.uint8)
    return list(codes[0]), list(codes[1])


# LPT ----------------------------------------------------------------------------------


def lpt(options) -> list[dict]:
    """Windows of a set of mixed lengths, timed one by one, then dealt two ways."""
    sequences = proteins(options.count or 1200)
    seconds, cells = _timed_windows(sequences)
    report = []
    for count in (2, 4, 8):
        pulled, static = makespans(cells, seconds, count)
        report.append({
            "devices": count, "windows": len(seconds), "proteins": len(sequences),
            "total s": sum(seconds), "share s": sum(seconds) / count,
            "LPT s": pulled, "static s": static, "static/LPT": static / pulled,
            "LPT/least": pulled / max(sum(seconds) / count, max(seconds)),
        })  # fmt: skip
    return report


def _timed_windows(sequences):
    """Seconds and estimated cells of every window, in the order of the pair matrix."""
    options = {"mode": "local", "output": "score", "threads": 1, "window": 64}
    options["implementation"] = "sweep"  # of few proteins rows would be computed
    task = make_task("all", sequences, sequences, Scoring(), PairOptions(**options))
    plan = engine.plan(task)
    engine.run(plan)  # compiles
    ends = [time.perf_counter()]
    engine.run(plan, lambda *_: ends.append(time.perf_counter()))
    seconds = np.diff(ends)
    cells = np.array([piece.cells for piece in plan.pieces])
    windows = [piece.content for piece in plan.pieces]
    first = [int(np.min(window.targets)) for window in windows]
    order = np.lexsort(([int(np.min(w.queries)) for w in windows], first))
    return seconds[: len(windows)][order].tolist(), cells[order].tolist()


def makespans(cells, seconds, count: int) -> tuple[float, float]:
    """When the last device ends: heaviest first to whoever is idle; equal shares of
    the windows as they come."""
    idle = [0.0] * count
    for k in pair_matrix.heaviest_first(cells):
        idle[int(np.argmin(idle))] += seconds[k]
    shares = np.array_split(np.asarray(seconds), count)
    return max(idle), max(float(share.sum()) for share in shares)


# Ray ----------------------------------------------------------------------------------


def ray(options) -> list[dict]:
    """Two local nodes of one core each, against one process with both cores."""
    from ray.cluster_utils import Cluster

    chosen = {"mode": "local", "output": "score"}
    count = options.count
    if not count:
        count = busy_count(proteins(900), options.seconds, threads=2, **chosen)
    sequences = proteins(count)
    head = {"num_cpus": 0, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        there = chosen | {"cluster": cluster.address}
        calls = {"one process, 2 threads": chosen | {"threads": 2}, "Ray": there}
        rows = [_row(name, sequences, how) for name, how in calls.items()]
    finally:
        import ray as own

        own.shutdown()
        cluster.shutdown()
    for row in rows:
        row["overhead"] = row["seconds"] / rows[0]["seconds"] - 1
    return rows


def _row(name, sequences, how) -> dict:
    """The second of two runs: each worker compiles in the first."""
    run = measure.in_turns({0: lambda: jaxalign.align_all(sequences, **how)}, 1)[0]
    table, seconds = run["result"], run["seconds"]
    parts = table.info.get("parts", 1)
    return {"run": name, "proteins": len(sequences), "parts": parts,
            "seconds": seconds, "first": run["first"],
            "GCUPS": table.info["cells"] / seconds / 1e9,
            "sum of scores": int(table["score"].sum(dtype=np.int64))}  # fmt: skip


# Linked sequences ---------------------------------------------------------------------

CUT, DEDUP_CUT = 0.4, 0.9
TEST_SHARE = 5  # every fifth sequence is in the second part of an audit
REPLACED = 0.1, 0.8  # shares of residues that a relative has replaced


def large_set(count: int, relatives: float, seed: int = 0):
    """So many proteins: real ones, then relatives and shuffled copies of these."""
    real = proteins()
    dice = np.random.default_rng(seed)
    order = dice.permutation(len(real))
    parts = [real[k] for k in order[:count]]
    while len(parts) < count:
        one = parts[len(parts) - len(real)]
        if dice.random() < relatives:
            parts.append(_relative(one, dice))
        else:
            parts.append(dice.permutation(one))
    return from_parts([f"p{k}" for k in range(count)], parts, real.alphabet)


def _relative(codes, dice):
    """A copy of a protein in which a random share of the residues is replaced."""
    replaced = dice.random(len(codes)) < dice.uniform(*REPLACED)
    return np.where(replaced, dice.permutation(codes), codes)


def cluster(sequences, devices) -> dict:
    """Components of a set."""
    found = jaxalign.cluster(sequences, link="whole", min_identity=CUT, devices=devices)
    return _row_of(found, found.labels)


def audit(sequences, devices) -> dict:
    """A fifth of a set against the rest."""
    number = np.arange(len(sequences))
    test = number % TEST_SHARE == 0
    parts = {
        "train": sequences.take(number[~test]),
        "test": sequences.take(number[test]),
    }
    found = jaxalign.audit(parts, link="whole", min_identity=CUT, devices=devices)
    worst = found.worst["query"].astype(str), found.worst["target"].astype(str)
    return {
        "pairs": found.info["all"],
        "aligned": found.info["aligned"],
        "found": found.leaks,
        "clusters": "-",
        "digest": _digest(np.concatenate([*found.leaking]), *worst),
    }


def dedup(sequences, devices) -> dict:
    """Greedy clusters."""
    found = jaxalign.deduplicate(
        sequences, link="whole", min_identity=DEDUP_CUT, devices=devices
    )
    return _row_of(found, found.representative_of)


def _row_of(found, members) -> dict:
    """What a row says of clusters."""
    return {
        "pairs": found.info["all"],
        "aligned": found.info["aligned"],
        "found": found.info["at_or_above_cut"],
        "clusters": len(found.representatives),
        "digest": _digest(members),
    }


VERBS = {"cluster": cluster, "audit": audit, "dedup": dedup}


def _digest(*arrays) -> str:
    """Short, of the bytes of some arrays."""
    whole = hashlib.sha256()
    for array in arrays:
        whole.update(np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()[:8]


def links(options) -> list[dict]:
    """A row for each number of proteins, verb, number of devices, and repeat."""
    report: list[dict] = []
    for count in [100] if options.quick else options.proteins:
        sequences = large_set(count, options.relatives)
        for verb in options.verbs.split(","):
            alone: dict[int, float] = {}
            for number in available(options.counts):
                devices = list(range(number)) if number > 1 else None
                run = partial(VERBS[verb], sequences, devices)
                for call in range(1, options.repeats + 1):
                    seconds, busy, found = measure.timed(run)
                    row = {
                        "verb": verb, "proteins": len(sequences), "devices": number,
                        "seconds": seconds, "CPU s": busy, **found,
                        "host GiB": measure.peak_gib(),
                    }  # fmt: skip
                    first = alone.setdefault(call, row["seconds"])
                    row |= {"call": call, "speed-up": first / row["seconds"]}
                    print(row, flush=True)  # a run cut off has something
                    report.append(row)
                if options.trace:  # kernel seconds of each device and of the largest
                    from gpu import traced

                    found, keys = traced(run), ("by_device", "copy_seconds", "largest")
                    print({key: found.get(key) for key in keys})
    return report


# The long job of ``parquet``, in a process of its own ---------------------------------
# It prints one line of JSON, and its progress to standard error. Some parts are
# computed twice, into another folder before, so that the programs are compiled.

WARM = 20  # parts


def run(path: Path, out: Path, *words: str) -> None:
    from jaxalign.cli.main import main

    usual = ["all", str(path), "-o", f"{out}/", "--mode", "local"]
    code = main([*usual, "--output", "identity", "--progress", "json", *words])
    if code:
        raise SystemExit(code)


def measured(folder: Path, count) -> dict:
    import pyarrow.parquet as pq

    path, sequences = folder / "all.fa", proteins(count)
    texts = (sequences.text(k) for k in range(len(sequences)))
    problems.write_fasta(path, ((f"p{k}", text) for k, text in enumerate(texts)))
    count = len(jobs.parts_all(fasta.read(str(path), Scoring().alphabet)))
    shard = "--shard", f"1/{max(count // WARM, 1)}"
    first = measure.timed(run, path, folder / "warm", *shard).seconds
    runs = []

    def job():
        seconds = measure.timed(run, path, folder / "out").seconds
        runs.append((seconds, measure.peak_gib()))

    device = max(traced_seconds(job))
    seconds, most = runs[0]
    parts = list((folder / "out").glob("part-*.parquet"))
    rows = sum(pq.read_metadata(part).num_rows for part in parts)
    return {
        "device kind": jax.devices()[0].device_kind, "rows": rows, "parts": len(parts),
        "bytes": sum(part.stat().st_size for part in parts), "seconds": seconds,
        "some parts": first, "device": device, "wall/device": seconds / device,
        "host GiB": most,
    }  # fmt: skip


ROWS = {
    "parquet": parquet,  # first: its process takes the GPU's memory
    "devices": devices,
    "longest": longest,
    "lpt": lpt,
    "ray": ray,
    "links": links,
}


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = measure.arguments(__doc__, "quick", "json", repeats=1)
    numbers = measure.numbers
    made.add_argument("what", choices=(*ROWS, "all"))
    made.add_argument("--counts", type=numbers, default=[1, 2, 4], help="of devices")
    made.add_argument("--modes", default="local,global,semiglobal")
    made.add_argument("--output", default="score", choices=("score", "stats"))
    made.add_argument("--seconds", type=float, default=60, help="on one device")
    made.add_argument("--count", type=int, help="proteins; all that are needed")
    made.add_argument("--budget", default="64MiB", help="of a window of X1.9, on a CPU")
    made.add_argument("--verbs", default="cluster,audit", help="of links")
    made.add_argument("--proteins", type=numbers, default=[100_000, 300_000])
    made.add_argument("--relatives", type=float, default=0.0, help="share of copies")
    made.add_argument("--trace", action="store_true", help="kernels of one more call")
    made.add_argument("--folder", type=Path, help="of the process of ``parquet``")
    return made


def main(argv=None) -> None:
    options = parser().parse_args(argv)
    if options.folder:
        print(json.dumps(measured(options.folder, options.count or None)))
        return
    if options.quick:
        options.seconds, options.count = 0.2, options.count or 60
    chosen = ROWS if options.what == "all" else {options.what: ROWS[options.what]}
    made = {}
    for name, rows in chosen.items():
        print(f"# {name}", flush=True)
        made[name] = rows(options)
        measure.show(made[name])
    report = {"command": sys.argv[1:], "machine": measure.machine()}
    measure.save(options.json, report | {"cores": os.cpu_count(), "rows": made})


if __name__ == "__main__":
    main()
