"""Compiled programs in the user's folder: what is there, and those of usual jobs.

A program is compiled by the first job that needs it, which takes seconds, and loaded by
later processes in hundredths of a second. ``warm_up`` compiles what usual jobs need, so
that no job has to wait; ``jaxalign warmup`` is the same on the command line.
"""

from collections.abc import Callable

import numpy as np

from jaxalign.database.api import search
from jaxalign.model.alphabet import Sequences, from_parts
from jaxalign.model.scoring import Scoring
from jaxalign.pairs import api
from jaxalign.runtime.program_counts import COUNTS, programs_listener
from jaxalign.runtime.program_folder import program_files

MODES = "global", "local", "semiglobal"
OUTPUTS = "score", "identity", "stats", "alignment"
# Lengths as those of proteins: ln N(5.7, 0.6), so that half are from 200 to 450, and
# two long ones.
LOG_MEAN, LOG_SPREAD, LONGEST = 5.7, 0.6, 5000
SEED = 2011


def proteins(count: int) -> Sequences:
    """Random sequences of proteins' lengths, the same whenever it is called."""
    dice = np.random.default_rng(SEED)
    lengths = np.exp(dice.normal(LOG_MEAN, LOG_SPREAD, count)).astype(int)
    lengths = np.minimum(np.maximum(lengths, 20), LONGEST)
    lengths[:2] = LONGEST, LONGEST // 2
    parts = [dice.integers(0, 20, length).astype(np.uint8) for length in lengths]
    return from_parts([f"p{k}" for k in range(count)], parts, Scoring().alphabet)


def usual_jobs(implementation: api.Implementation):
    """(name, function) of the jobs whose programs are compiled.

    implementation : of ``pairs.api``; without a name, small jobs would compile nothing
    """
    gpu = implementation == "pallas"
    few, many = proteins(540 if gpu else 150), proteins(1000)
    named = {"implementation": implementation}
    for mode in MODES:
        for output in OUTPUTS:
            options = {"mode": mode, "output": output, **named}
            yield (
                f"all pairs, {mode}, {output}",
                lambda options=options: api.align_all(few, **options),
            )
        options = {"mode": mode, "output": "alignment", **named}
        yield (
            f"zipped pairs, {mode}, alignment",
            lambda options=options: api.align_pairs(many, many, **options),
        )
    yield (
        "search, local",
        lambda: search(
            proteins(10),
            proteins(2000),
            top=10,
            align_top=False,
            implementation=implementation,
        ),
    )


def warm_up(device: str = "auto", tell: Callable[[str], None] = print) -> None:
    """Compile what usual jobs need on a device, and keep it in the user's folder.

    Parameters
    ----------
    device : {"auto", "cpu", "gpu"}
    tell : callable
        Takes a line for every job.

    Raises
    ------
    DeviceError
        There is no such device.
    """
    api.select_device(device)
    implementation, _ = api.implementation_of(api.PairOptions())
    for name, job in usual_jobs(implementation):
        before = dict(COUNTS.calls)
        job()
        compiled, there = (
            COUNTS.calls[what] - before.get(what, 0) for what in ("compile", "load")
        )
        tell(f"{name}: {compiled} programs compiled, {there} loaded")


__all__ = ["program_files", "programs_listener", "usual_jobs", "warm_up"]
