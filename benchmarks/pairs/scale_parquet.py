"""The long job of ``benchmarks.scale parquet``, in a process of its own.

    python benchmarks/pairs/scale_parquet.py FOLDER COUNT      # 0: all proteins

Prints one line of JSON, and how far it is to standard error. Some parts are computed
twice, into another folder before, so that the programs are compiled.
"""

import json
import resource
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(HERE.parent), str(HERE)]

from pairs import scale_rows  # noqa: E402

WARM = 20  # parts


def written(folder: Path, name: str, count) -> Path:
    """A FASTA file of some proteins."""
    sequences = scale_rows.proteins(count)
    path = folder / f"{name}.fa"
    with open(path, "w") as file:
        for k in range(len(sequences)):
            file.write(f">p{k}\n{sequences.text(k)}\n")
    return path


def run(path: Path, out: Path, *words: str) -> None:
    from jaxalign.cli.main import main

    usual = ["all", str(path), "-o", f"{out}/", "--mode", "local"]
    code = main([*usual, "--output", "identity", "--progress", "json", *words])
    if code:
        raise SystemExit(code)


def measured(folder: Path, count) -> dict:
    import jax

    path = written(folder, "all", count)
    begin = time.perf_counter()
    run(path, folder / "warm", "--shard", f"1/{max(_parts(path) // WARM, 1)}")
    first, took, most = time.perf_counter() - begin, [], []

    def job():
        begin = time.perf_counter()
        run(path, folder / "out")
        took.append(time.perf_counter() - begin)
        most.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)

    device = max(scale_rows.traced_seconds(job))
    parts = list((folder / "out").glob("part-*.parquet"))
    rows = sum(_rows(part) for part in parts)
    return {
        "device kind": jax.devices()[0].device_kind, "rows": rows, "parts": len(parts),
        "bytes": sum(part.stat().st_size for part in parts), "seconds": took[0],
        "some parts": first, "device": device, "wall/device": took[0] / device,
        "host GiB": most[0],
    }  # fmt: skip


def _parts(path: Path) -> int:
    from jaxalign.io import fasta
    from jaxalign.model.scoring import Scoring
    from jaxalign.pairs import jobs

    return len(jobs.parts_all(fasta.read(str(path), Scoring().alphabet)))


def _rows(path) -> int:
    import pyarrow.parquet as pq

    return pq.read_metadata(path).num_rows


if __name__ == "__main__":
    number = int(sys.argv[2]) or None
    print(json.dumps(measured(Path(sys.argv[1]), number)))
