"""A fuzz of random jobs on a GPU: no fault, and no difference from NumPy's answers.

    python -m benchmarks.gpu_fuzz --seconds 400 --seed 1 --workers 4 --cache DIR
    python -m benchmarks.gpu_fuzz --job 1:57
    python -m benchmarks.gpu_fuzz --seconds 400 --all-devices   # of a machine

A job is one call of the public API, drawn from (seed, number) alone (``fuzz_jobs``);
``fuzz_checks`` compares it with ``fuzz_oracle``. Jobs run in processes of their own,
``PROCESS`` one after the other, under JAX's allocators in turn. A process that dies or
hangs is a fault. Without a GPU the jobs are small and run on the CPU.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import measure

HERE = Path(__file__).resolve().parent

PROCESS = 40  # jobs
SHARE = 0.85  # of the device memory, for all workers
ALLOCATORS = {
    "pool": {},
    "growing": {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    "platform": {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"},
}
GPU_CELLS, CPU_CELLS = 10**11, 3 * 10**5
RESULTS = HERE / "results" / "gpu_fuzz.jsonl"
STARTS = 3  # processes in a row that end before their first job: then the fuzz ends


@dataclass
class Log:
    """The progress of all workers."""

    options: argparse.Namespace
    until: float
    ended: list = field(default_factory=list)  # a dict a job
    machine: dict = field(default_factory=dict)
    next: int = 0
    failed_starts: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def batch(self) -> int | None:
        """The number of the next batch, None after the last."""
        with self.lock:
            if time.time() > self.until or self.failed_starts >= STARTS:
                return None
            self.next += 1
            return self.next - 1

    def end(self, job: dict) -> None:
        """Keep a job, and say what is wrong with it."""
        with self.lock:
            self.ended.append(job)
            where = f"--job {self.options.seed}:{job['number']} ({job['allocator']})"
            for line in job["differences"]:
                print(f"DIFFERENCE {where}: {line}", flush=True)
            if job["fault"]:
                print(f"FAULT {where}: {job['fault']}", flush=True)
            if job["fault"] or job["differences"]:
                print(f"  {job['job']}", flush=True)
            if len(self.ended) % 50 == 0:
                left = max(0, self.until - time.time())
                print(f"{len(self.ended)} jobs, {left:.0f} s left", flush=True)


def environment(options, allocator: str) -> dict:
    """Of a process that runs jobs."""
    variables = {
        "JAX_COMPILATION_CACHE_DIR": options.cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
        "XLA_PYTHON_CLIENT_MEM_FRACTION": f"{SHARE / options.workers:.3f}",
        # The packages of this checkout, installed or not.
        "PYTHONPATH": f"{HERE.parent}:{os.environ.get('PYTHONPATH', '')}",
        "PYTHONWARNINGS": "ignore",
        "PYTHONFAULTHANDLER": "1",
    }
    device = {"JAX_PLATFORMS": "cpu"} if options.device == "cpu" else {}
    return os.environ | variables | device | ALLOCATORS[allocator]


def has_gpu() -> bool:
    """Asked in a process of its own, since JAX takes memory where it looks."""
    code = "import jax; print(jax.default_backend())"
    listing = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True,
        env=os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    )  # fmt: skip
    return "gpu" in listing.stdout


def run_batch(log: Log, first: int, last: int, allocator: str) -> None:
    """Jobs ``first`` to ``last``, in a new process after each fault."""
    while first <= last and (time.time() < log.until or log.options.job):
        reached = process(log, first, last, allocator)
        if reached is None:
            return
        first = reached + 1


def process(log: Log, first: int, last: int, allocator: str) -> int | None:
    """Run jobs in one process; the job at which it ended by a fault, or None."""
    options = log.options
    words = [sys.executable, str(HERE / "fuzz_run.py"), f"--seed={options.seed}"]
    words += [f"--first={first}", f"--last={last}", f"--cells={options.cells}"]
    words += [] if options.job else [f"--until={log.until}"]
    words += ["--all-devices"] if options.all_devices else []
    begun, hangs, message = None, [], {}
    own = environment(options, allocator)
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=errors, text=True, env=own
        ) as child,
    ):
        timer = _timer(child, options.timeout, hangs)
        for line in child.stdout:
            timer.cancel()
            timer = _timer(child, options.timeout, hangs)
            message = json.loads(line) if line.startswith("{") else {}
            if "device" in message:
                log.machine, log.failed_starts = message, 0
            elif "begin" in message:
                begun = message
            elif "end" in message:
                log.end(_job(begun, message, allocator))
        code = child.wait()
        timer.cancel()
        errors.seek(0)
        tail = errors.read()[-2000:].strip()
    if code == 0:
        return None
    why = (
        f"silent for {options.timeout} s" if hangs else f"its process ended with {code}"
    )
    if begun is None:
        log.failed_starts += 1
        print(f"FAULT before the first job: {why}\n{tail}", flush=True)
        return None
    if not message.get("fault"):
        log.end(_job(begun, {"fault": f"{why}\n{tail}"}, allocator))
    return begun["begin"]


def _timer(child, seconds, hangs):
    """Ends a process that says nothing for so long."""

    def end():
        hangs.append(True)
        child.kill()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    return timer


def _job(begun, message, allocator) -> dict:
    """The record of a job."""
    words = dict(x.split("=", 1) for x in begun["job"].split(" ") if "=" in x)
    job = {"number": begun["begin"], "job": begun["job"], "allocator": allocator}
    job |= {x: words.get(x, "-") for x in ("kind", "mode", "output", "letters")}
    if job["kind"] in ("three", "soft"):
        job |= {"output": "-", "letters": "-"}
    usual = {"seconds": 0.0, "differences": [], "fault": None, "ran": "-", "cells": 0}
    return job | usual | {x: y for x, y in message.items() if x != "end"}


def work(log: Log) -> None:
    """Batch after batch, until the time is over."""
    names = [*ALLOCATORS]
    while (batch := log.batch()) is not None:
        first = batch * PROCESS + log.options.start
        last = first + PROCESS - 1
        if log.options.jobs:
            last = min(last, log.options.start + log.options.jobs - 1)
        if first <= last:
            run_batch(log, first, last, names[batch % len(names)])
        else:
            return


def show(log: Log) -> None:
    """Jobs, seconds, faults and differences by what they are."""
    lines = []
    for key in ("kind", "mode", "output", "letters", "allocator", "ran"):
        groups = defaultdict(list)
        for job in log.ended:
            groups[job[key]].append(job)
        for value, some in sorted(groups.items()):
            line = {"by": key, "of": value, "jobs": len(some)}
            line["seconds"] = sum(x["seconds"] for x in some)
            line["Gcells"] = sum(x["cells"] for x in some) / 1e9
            lines.append(line | _bad(some))
    measure.show(lines)


def _bad(some) -> dict:
    """Jobs with faults and with differences."""
    keys = {"faults": "fault", "differences": "differences"}
    return {name: sum(bool(job[key]) for job in some) for name, key in keys.items()}


def summary(log: Log, seconds: float) -> dict:
    """The record of a run."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE,
                            capture_output=True, text=True).stdout.strip()  # fmt: skip
    bad = [x for x in log.ended if x["fault"] or x["differences"]]
    return {
        "commit": commit, **log.machine, "seed": log.options.seed,
        "seconds": round(seconds), "jobs": len(log.ended), **_bad(log.ended),
        "failed_starts": log.failed_starts,
        "kinds": dict(Counter(x["kind"] for x in log.ended)),
        "allocators": dict(Counter(x["allocator"] for x in log.ended)), "bad": bad,
    }  # fmt: skip


def main(argv=None) -> int:
    parser = measure.arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="the first job")
    parser.add_argument("--jobs", type=int, help="so many at most")
    parser.add_argument("--job", help="SEED:NUMBER or SEED:FIRST-LAST, one process")
    parser.add_argument("--allocator", choices=[*ALLOCATORS], help="of --job")
    parser.add_argument("--workers", type=int, default=1, help="processes at a time")
    parser.add_argument("--timeout", type=float, default=240, help="seconds of a job")
    parser.add_argument("--cache", help="folder of compiled programs")
    parser.add_argument("--cells", type=int, help="of a job at most, about")
    parser.add_argument("--all-devices", action="store_true", help="for each job")
    parser.add_argument("--device", choices=["auto", "cpu"], default="auto")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(argv)
    if options.device == "auto" and not has_gpu():
        options.device = "cpu"
        print("no GPU: small jobs on the CPU", flush=True)
    usual = CPU_CELLS if options.device == "cpu" else GPU_CELLS
    options.cells = options.cells or usual
    if options.job:
        seed, numbers = options.job.split(":")
        first, _, last = numbers.partition("-")
        options.seed, options.start = int(seed), int(first)
        options.jobs = int(last or first) - options.start + 1
    with tempfile.TemporaryDirectory() as folder:
        options.cache = options.cache or folder
        return fuzz(options)


def fuzz(options) -> int:
    """Run jobs, show them and keep a line; 1 if anything was wrong."""
    began = time.time()
    log = Log(options, began + options.seconds)
    if options.job:
        usual = [*ALLOCATORS][options.start // PROCESS % len(ALLOCATORS)]
        last = options.start + options.jobs - 1
        run_batch(log, options.start, last, options.allocator or usual)
    else:
        with ThreadPoolExecutor(options.workers) as pool:
            list(pool.map(work, [log] * options.workers))
    seconds = time.time() - began
    show(log)
    line = summary(log, seconds)
    measure.append(options.results, [line])
    rate = 60 * line["jobs"] / max(seconds, 1)
    print(f"{line['jobs']} jobs in {seconds:.0f} s, {rate:.0f} a minute; "
          f"{line['faults']} faults, {line['differences']} differences")  # fmt: skip
    return 1 if line["faults"] or line["differences"] or log.failed_starts else 0


if __name__ == "__main__":
    sys.exit(main())
