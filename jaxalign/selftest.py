"""A test of the GPU kernels on the card that is there, against NumPy.

Random jobs run twice: by the kernels, and by rows in NumPy, which share no code with
them. ``jaxalign selftest`` is the same on the command line. It ends with a line that
its owner can send to those who write the kernels for a card that they do not have.
"""

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from threading import Lock
from typing import Any

import numpy as np

from jaxalign import __version__
from jaxalign.errors import DeviceError
from jaxalign.model.alignment import SPANS
from jaxalign.model.alphabet import Sequences, from_parts
from jaxalign.model.scoring import Scoring
from jaxalign.model.system import package_versions
from jaxalign.model.table import Table
from jaxalign.pairs import api
from jaxalign.runtime import machine

OUTPUTS = "score", "identity", "stats", "alignment"
# A matrix with its costs, linear gaps, and scores that 16 bits do not always hold.
SCORINGS = (
    Scoring(),
    Scoring("BLOSUM50", gap_open=12, gap_extend=2),
    Scoring("PAM250", gap_open=6, gap_extend=6),
    Scoring(match=120, mismatch=-150, gap_open=200, gap_extend=40),
)
LETTERS = 4  # all alphabets have as many
COUNT, LONGEST = 24, 384  # sequences of a job, and letters
THREADS = 8  # jobs at a time: compiling a kernel takes seconds of one
SPEED_COUNT = 2000  # sequences of the job that is timed, 384 letters each


@dataclass
class Findings:
    """Counts of jobs and pairs that were compared, and the jobs that differ; of all
    threads."""

    jobs: int = 0
    pairs: int = 0
    different: list[str] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def add(self, number: int, pairs: int, columns: str, log: Callable[[str], None]):
        """Count a job; ``log`` takes a line if it has columns that differ."""
        with self.lock:
            self.jobs += 1
            self.pairs += pairs
            if columns:
                self.different.append(f"job {number}: {columns}")
                log(self.different[-1])


def random_sequences(dice: np.random.Generator, scoring: Scoring) -> Sequences:
    """Related and unrelated sequences of 1 to ``LONGEST`` letters; all jobs have the
    same lengths, so that few programs are compiled."""
    random_lengths = np.random.default_rng(COUNT).integers(1, LONGEST, COUNT - 4)
    lengths = [1, 2, LONGEST, LONGEST - 1, *random_lengths]
    parts = [dice.integers(0, LETTERS, n).astype(np.uint8) for n in lengths]
    for k in range(3, COUNT, 2):
        conserved = dice.random(len(parts[k])) < (0.95 if k == 3 else 0.8)
        parent = np.resize(parts[k - 1], len(parts[k]))
        parts[k] = np.where(conserved, parent, parts[k])
    return from_parts([f"s{k}" for k in range(COUNT)], parts, scoring.alphabet)


def random_job(number: int) -> tuple[Sequences, Scoring, dict]:
    """The sequences, scoring and options of a job; the first ones take every output in
    every mode."""
    dice = np.random.default_rng(number)
    scoring = SCORINGS[number // (3 * len(OUTPUTS)) % len(SCORINGS)]
    mode = ("local", "global", "semiglobal")[number % 3]
    options: dict[str, Any] = {
        "mode": mode,
        "output": OUTPUTS[number // 3 % len(OUTPUTS)],
    }
    if mode == "global":
        options["free_ends"] = [end for end in SPANS if dice.random() < 0.4]
    return random_sequences(dice, scoring), scoring, options


def difference(number: int) -> tuple[int, str]:
    """Run a job both ways; return its pairs and the names of differing columns."""
    sequences, scoring, options = random_job(number)
    tables = [
        api.align_all(sequences, scoring, implementation=name, **options)
        for name in ("pallas", "rows")
    ]
    return len(tables[0]), ", ".join(different_columns(*tables))


def different_columns(table: Table, reference: Table) -> list[str]:
    """Names of columns that differ between two tables; paths are ``operations``."""
    names = {*table.columns, *reference.columns}
    named = [
        name
        for name in sorted(names)
        if not np.array_equal(
            table.columns.get(name, ()), reference.columns.get(name, ())
        )
    ]
    a, b = table.operations, reference.operations
    same = a is b or (a is not None and b is not None and np.array_equal(a, b))
    return named if same else [*named, "operations"]


def compare(seconds: float, log: Callable[[str], None]) -> Findings:
    """Run random jobs for so many seconds, and at least one.

    Parameters
    ----------
    seconds : from the start of the first job to that of the last one
    log : takes a line for each job that differs
    """
    findings, start, numbers = Findings(), time.monotonic(), count()

    def work(_: int) -> None:
        while (number := next(numbers)) == 0 or time.monotonic() - start < seconds:
            findings.add(number, *difference(number), log)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))
    return findings


def speed(count: int = SPEED_COUNT) -> float:
    """GCUPS of the local scores of random proteins of 384 letters, second call."""
    dice = np.random.default_rng(1)
    parts = list(dice.integers(0, 20, (count, LONGEST)).astype(np.uint8))
    names = [f"s{k}" for k in range(count)]
    sequences = from_parts(names, parts, Scoring().alphabet)
    for _ in range(2):
        start = time.monotonic()
        api.align_all(sequences, mode="local", output="score", implementation="pallas")
        seconds = time.monotonic() - start
    return count * (count - 1) / 2 * LONGEST**2 / seconds / 1e9


def selftest(seconds: float, log: Callable[[str], None]) -> tuple[str, bool]:
    """Run the self-test; return the report line and whether all results were equal.

    Raises
    ------
    DeviceError
        There are no kernels for JAX's first device.
    """
    implementation, why = api.implementation_of(api.PairOptions())
    if implementation != "pallas":
        use = api.gpu_use()
        hint = f"\nhint: {use['hint']}" if "hint" in use else ""
        raise DeviceError(f"selftest: no GPU kernels run here: {use['why']}{hint}")
    findings = compare(seconds, log)
    return report(findings, speed(), why), not findings.different


def report(findings: Findings, gcups: float, why: str) -> str:
    """Card, driver, versions, what was compared and the speed, in a line."""
    card = api.describe_device(api.select_device("auto"))
    driver = re.search(r"\d{3}\.[\d.]+", machine.driver() or "")
    versions = package_versions(("jax", "jaxlib"))
    differ = f"{len(findings.different)} jobs differ" if findings.different else "equal"
    return "; ".join(
        (
            f"jaxalign {__version__}",
            f"{card['kind']} ({why})",
            f"driver {driver[0] if driver else 'unknown'}",
            f"JAX {versions['jax']}, jaxlib {versions['jaxlib']}",
            f"{findings.jobs} jobs, {findings.pairs:,} pairs: {differ}",
            f"local scores {gcups:,.0f} GCUPS",
        )
    )
