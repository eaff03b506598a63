"""Figures of the GPU kernels on the GPU that is there: one table, in one run.

``python -m benchmarks.gpu`` needs JAX with CUDA and no network; ``--json FILE`` writes
the rows, ``--only WORD`` takes those whose name contains the word, ``--skip WORD``
leaves some out. Medians; each figure also as a share of what the card's own min-max
rate or copy bandwidth, measured first, would allow.
"""

import argparse
import json
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from pairs import gpu_card, gpu_end_to_end, gpu_rows  # noqa: E402

import kernels_pallas as kp  # noqa: E402

BUILDERS = 14  # compilations side by side


def bound(row, card) -> float | None:
    """TCUPS that the card's rates allow for a row."""
    if not row.get("cost"):
        return None
    min_max, bytes_a_cell = row["cost"]
    limits = [card["min_max"] / min_max]
    limits += [card["copy"] / bytes_a_cell] if bytes_a_cell else []
    return min(limits) / 1e12


def shown(row) -> str:
    """One line of the table."""
    best = row.get("fill_tcups") or row["tcups"]
    parts = [f"{row['name']:<52} {row['tcups']:7.3f} TCUPS"]
    parts += [f"{row['seconds'] * 1e3:10.2f} ms"]
    if row.get("fill_tcups"):
        parts += [f"fill {row['fill_tcups']:.2f}"]
    if row.get("bound"):
        parts += [f"{best / row['bound']:5.0%} of {row['bound']:.1f}"]
    for key, unit in (("aim", "TCUPS"), ("aim_seconds", "s")):
        if row.get(key):
            parts += [f"aim {row[key]:g} {unit}"]
    parts += [row.get("dtype", ""), "right" if row.get("right") else "NOT CHECKED"]
    keys = ("mean", "compilations", "read", "align", "write", "first", "launches",
            "device_seconds", "of_device", "over_score", "bytes")  # fmt: skip
    parts += [f"{key} {row[key]:.3g}" for key in keys if row.get(key) is not None]
    return "  ".join(parts)


def overheads(rows):
    """X1.8 and the aims of paths: time of a cell over that of the score alone."""
    speeds = {row["name"].removeprefix("score, "): row["tcups"] for row in rows}
    for row in rows:
        way, _, rest = row["name"].partition(", ")
        if way == "tiles" and speeds.get(rest) and row["tcups"]:
            row["over_score"] = speeds[rest] / row["tcups"]
            print(f"X1.8 {row['name']}: {row['over_score']:.2f} x the score alone")


def transfers():
    """X3.1: host -> device -> host, three designs."""
    from pairs import papers_transfer

    for name, design in papers_transfer.designs().items():
        for pairs in (1, 16):
            move = papers_transfer._mover(*design, pairs)
            row = dict(name=f"X3.1 {name}, {pairs} pairs of 2000", cells=0, tcups=0.0)
            seconds = gpu_card.timed(move, repeats=3)
            size = papers_transfer._bytes(*design, pairs)
            yield row | dict(seconds=seconds, bytes=size, right=True)


def sections(options):
    """All rows, in order."""
    chosen = [
        (name, make)
        for name, make in gpu_rows.kernel_rows()
        if options.only in name and not (options.skip and options.skip in name)
    ]
    with ThreadPoolExecutor(BUILDERS) as pool:
        built = [pool.submit(lambda make: make().compile(), make) for _, make in chosen]
        pool.shutdown()  # nothing is measured while other rows compile
    for (name, _), row in zip(chosen, built, strict=True):
        yield from attempt(name, lambda row: [row.result().measure()], row)
    single = {
        "log-normal": lambda: [gpu_rows.log_normal()],
        "XLA wavefront": gpu_rows.xla_rows,
        "X3.1": transfers,
        "end to end": lambda: gpu_end_to_end.rows(gpu_end_to_end.traced),
    }
    for name, make in single.items():
        if options.only in name and not (options.skip and options.skip in name):
            yield from attempt(name, make)


def attempt(name, make, *arguments):
    """Rows of a section; one that fails is a row too, and the others go on."""
    try:
        yield from make(*arguments)
    except Exception:
        traceback.print_exc()
        yield dict(name=name, seconds=0.0, cells=0, tcups=0.0, right=False)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json")
    parser.add_argument("--only", default="")
    parser.add_argument("--skip", default="")
    options = parser.parse_args(argv)
    works, why = kp.supported()
    device = jax.devices()[0].device_kind
    print(f"{device}, JAX {jax.__version__}, {why}", flush=True)
    if not works:
        return 1
    begin = time.perf_counter()
    card = {"copy": gpu_card.copy_rate(), "min_max": gpu_card.min_max_rate()}
    print(f"copy {card['copy'] / 1e12:.2f} TB/s, min-max {card['min_max'] / 1e12:.1f} "
          "T thread-instructions/s", flush=True)  # fmt: skip
    rows = []
    for row in sections(options):
        row["bound"] = bound(row, card)
        rows.append(row)
        print(shown(row), flush=True)
    overheads(rows)
    seconds = time.perf_counter() - begin
    print(f"{len(rows)} rows in {seconds:.0f} s")
    versions = {"device": device, "jax": jax.__version__}
    report = versions | card | {"seconds": seconds, "rows": rows}
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=1, default=float))
    return 0 if all(row.get("right") for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
