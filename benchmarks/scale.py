"""Scale: several GPUs, long jobs, long sequences, schedules, a cluster.

    python -m benchmarks.scale devices --counts 1,2 --seconds 60
    python -m benchmarks.scale parquet                   # 32,071 proteins, one GPU
    python -m benchmarks.scale longest --budget 64MiB    # X1.9
    python -m benchmarks.scale lpt                       # against a static split
    python -m benchmarks.scale ray --seconds 120         # needs jaxalign[cluster]
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
"""

import argparse
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import measure  # noqa: E402
from pairs import scale_dealt, scale_rows  # noqa: E402

ROWS = {
    "parquet": scale_rows.parquet,  # first: its process takes the GPU's memory
    "devices": scale_rows.devices,
    "longest": scale_rows.longest,
    "lpt": scale_dealt.lpt,
    "ray": scale_dealt.ray,
}


def numbers(text: str) -> list[int]:
    """ "1,2,4" -> [1, 2, 4]."""
    return [int(word) for word in text.split(",")]


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("what", choices=(*ROWS, "all"))
    made.add_argument("--counts", type=numbers, default=[1, 2, 4], help="of devices")
    made.add_argument("--modes", default="local,global,semiglobal")
    made.add_argument("--output", default="score", choices=("score", "stats"))
    made.add_argument("--seconds", type=float, default=60, help="on one device")
    made.add_argument("--count", type=int, help="proteins; all that are needed")
    made.add_argument("--budget", default="64MiB", help="of a window of X1.9, on a CPU")
    made.add_argument("--quick", action="store_true", help="too small for figures")
    made.add_argument("--json", metavar="PATH", help="write the rows here too")
    return made


def main(argv=None) -> None:
    """Command line."""
    options = parser().parse_args(argv)
    if options.quick:
        options.seconds, options.count = 0.2, options.count or 60
    chosen = ROWS if options.what == "all" else {options.what: ROWS[options.what]}
    made = {}
    for name, rows in chosen.items():
        print(f"# {name}", flush=True)
        made[name] = rows(options)
        measure.show(made[name])
    found = measure.machine()
    measure.show_machine(found)
    report = {"command": sys.argv[1:], "machine": found, "cores": os.cpu_count()}
    measure.save(options.json, report | {"rows": made})


if __name__ == "__main__":
    main()
