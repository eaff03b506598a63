"""Calls of small jobs in a loop: by rows, compiled, and as the process chooses.

    python -m benchmarks.small_jobs                 # 4 calls, all jobs
    python -m benchmarks.small_jobs --calls 30 --only local

Each line is a process: the seconds of each call, CPU seconds of the process, and who
ran (r: rows, s: sweep). ``empty`` has no compiled programs, ``filled`` those of the
process before. ``JAX_DISABLE_MOST_OPTIMIZATIONS`` and JAX's own cache are switched off.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import product

import numpy as np

LETTERS, SEED = "ACDEFGHIKLMNPQRSTVWY", 2011
WAYS = "rows", "sweep", None
JOBS = {
    f"120 proteins of 200 to 400, {mode} {output}": {"mode": mode, "output": output}
    for mode, output in product(("global", "local"), ("alignment", "score"))
}


def proteins(count: int, seed: int) -> list[str]:
    """Random proteins of 200 to 400 residues; each call has others."""
    dice = np.random.default_rng(seed)
    lengths = dice.integers(200, 401, count)
    return ["".join(dice.choice([*LETTERS], n)) for n in lengths]


def child(options: dict, calls: int) -> None:
    """Make the calls in this process, and print their seconds."""
    import jaxalign

    seconds, ran = [], ""
    for call in range(calls):
        texts = proteins(120, SEED + call)
        start = time.perf_counter()
        table = jaxalign.align_all(texts, **options)
        seconds.append(round(time.perf_counter() - start, 2))
        ran += table.info["ran"][0]
    print(json.dumps([seconds, time.process_time(), ran]))


def process(options: dict, calls: int, folder: str) -> str:
    """A line of figures of a process."""
    own = os.environ | {"JAXALIGN_CACHE_DIR": folder}
    for name in ("JAX_COMPILATION_CACHE_DIR", "JAX_DISABLE_MOST_OPTIMIZATIONS"):
        own.pop(name, None)
    words = [sys.executable, "-m", "benchmarks.small_jobs", "--child"]
    words += [json.dumps(options), "--calls", str(calls)]
    done = subprocess.run(words, env=own, capture_output=True, text=True, check=True)
    seconds, cpu, ran = json.loads(done.stdout)
    each = " ".join(f"{x:5.2f}" for x in seconds)
    return f"{each}  sum {sum(seconds):6.2f}, CPU {cpu:6.2f} s  {ran}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=4)
    parser.add_argument("--only", default="")
    parser.add_argument("--child", type=json.loads)
    words = parser.parse_args()
    if words.child is not None:
        return child(words.child, words.calls)
    for name, options in JOBS.items():
        if words.only not in name:
            continue
        print(name)
        for way in WAYS:
            with tempfile.TemporaryDirectory() as folder:
                for state in ("empty", "filled")[: 1 + (way != "rows")]:
                    line = process(
                        {**options, "implementation": way}, words.calls, folder
                    )
                    print(f"  {way or 'chosen':6s} {state:6s} {line}", flush=True)


if __name__ == "__main__":
    main()
