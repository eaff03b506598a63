"""Rows of ``benchmarks.gpu``: all that a user waits for, from FASTA to the result.

Swiss-Prot (``benchmarks/fetch.py``) where it is there, else random protein of the same
number and log-normal lengths. Every job runs twice in one process: the second run is
the row, the first has the compilations or their cache in it (``first``).
"""

import tempfile
import time
from pathlib import Path

import jax
import numpy as np

import jaxalign
from jaxalign.io import fasta, formats
from jaxalign.model.scoring import Scoring

SWISSPROT = Path(__file__).parents[1] / "data" / "swissprot12071.fasta"
COUNT, FEW = 12071, 2000


def fasta_file(folder: str) -> tuple[Path, str]:
    """A FASTA file of 12,071 proteins, and what is in it."""
    if SWISSPROT.exists():
        return SWISSPROT, "Swiss-Prot"
    rng = np.random.default_rng(4)
    letters = np.frombuffer(b"ARNDCQEGHILKMFPSTWYV", np.uint8)
    path = Path(folder) / "random.fasta"
    with open(path, "wb") as file:
        for k, n in enumerate(rng.lognormal(5.8, 0.65, COUNT).astype(int).clip(30)):
            file.write(b">p%d\n" % k + rng.choice(letters, n).tobytes() + b"\n")
    return path, "random protein"


def run_once(path, output: str, few: int | None, write: str | None):
    """(seconds by stage, table): read, align, write."""
    scoring, begin = Scoring(), time.perf_counter()
    sequences = fasta.read(path, scoring.alphabet, "mask")
    if few:
        sequences = sequences.take(
            range(0, len(sequences), len(sequences) // few)[:few]
        )
    read = time.perf_counter()
    table = jaxalign.align_all(sequences, scoring, mode="local", output=output)
    aligned = time.perf_counter()
    if write:
        formats.write(table, write, "parquet", None, "alignment", True)
    done = time.perf_counter()
    stages = dict(read=read - begin, align=aligned - read, write=done - aligned)
    return stages | {"seconds": done - begin}, table


def check(table, count=40) -> bool:
    """Scores (and paths) of a sample against one pair at a time by wavefront."""
    at = np.random.default_rng(5).integers(0, len(table), count)
    q = [table.queries[k] for k in table["query"][at]]
    t = [table.targets[k] for k in table["target"][at]]
    found = jaxalign.align_pairs(q, t, table.scoring, mode="local", output="score",
                                 implementation="sweep")  # fmt: skip
    right = bool((found["score"] == table["score"][at]).all())
    if table.operations is not None:
        rescored = [table.alignment(k).rescore() for k in at]
        right &= bool((np.array(rescored) == table["score"][at]).all())
    return right


def rows(device_seconds):
    """Rows of the table; ``device_seconds`` runs a call under the profiler."""
    jobs = (
        ("all pairs, scores", "score", None, False, 6.0),
        ("all pairs, identities without paths", "identity", None, False, 12.0),
        ("all pairs, identities of paths", "stats", None, False, 12.0),
        ("2,000 proteins, alignments to parquet", "alignment", FEW, True, None),
    )
    with tempfile.TemporaryDirectory() as folder:
        path, what = fasta_file(folder)
        for name, output, few, write, aim in jobs:
            target = str(Path(folder) / "out.parquet") if write else None
            first, _ = run_once(path, output, few, target)
            again, table = run_once(path, output, few, target)
            row = dict(name=f"{what}, {name}", aim_seconds=aim, **again,
                       first=first["seconds"], cells=table.info["cells"],
                       pairs=len(table), launches=table.info["windows"],
                       tcups=table.info["cells"] / again["seconds"] / 1e12,
                       dtype="/".join(table.info["dtypes"]),
                       right=check(table))  # fmt: skip
            del table
            row |= device_seconds(lambda: run_once(path, output, few, target))  # noqa: B023
            row["of_device"] = row["seconds"] / (row.get("device_seconds") or np.nan)
            yield row


def traced(run) -> dict:
    """Sum of kernel times of a call in a profiler trace, of all devices and of each,
    and the largest kernels."""
    spent: dict = {}
    for device, name, seconds in _events(run):
        spent[device, name] = spent.get((device, name), 0.0) + seconds
    if not spent:
        return {}
    copies = sum(t for (_, name), t in spent.items() if "emcpy" in name)
    by_device: dict = {}
    kernels: dict = {}
    for (device, name), seconds in spent.items():
        if "emcpy" not in name:
            by_device[device] = by_device.get(device, 0.0) + seconds
            kernels[name[:60]] = kernels.get(name[:60], 0.0) + seconds
    largest = sorted(kernels.items(), key=lambda x: -x[1])[:12]
    return dict(device_seconds=sum(by_device.values()), copy_seconds=copies,
                by_device=list(by_device.values()), largest=dict(largest))  # fmt: skip


def _events(run):
    """(device, kernel or copy, seconds) of all that a call does on GPUs."""
    with tempfile.TemporaryDirectory() as folder:
        options = jax.profiler.ProfileOptions()
        options.host_tracer_level = options.python_tracer_level = 0  # kernels alone
        with jax.profiler.trace(folder, profiler_options=options):
            run()
        for file in sorted(Path(folder).rglob("*.xplane.pb")):
            data = jax.profiler.ProfileData.from_file(str(file))
            for plane in data.planes:
                if not plane.name.startswith("/device:GPU"):
                    continue
                for line in plane.lines:
                    if line.name.startswith("Stream"):
                        for event in line.events:
                            yield plane.name, event.name, event.duration_ns / 1e9
