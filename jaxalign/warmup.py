"""Compiled programs in the user's folder: what is there, and those of usual jobs.

A program is compiled by the first job that needs it, which takes seconds, and loaded by
later processes in hundredths of a second. ``warm_up`` compiles what usual jobs need, so
that no job has to wait; ``jaxalign warmup`` is the same on the command line.
``make_pack`` compiles for GPUs that are elsewhere, into a folder that can be shipped.
What needs JAX is imported by the functions: every job with a progress bar loads this.
"""

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jaxalign.database.api import search
from jaxalign.errors import UsageError
from jaxalign.model.alphabet import Sequences, from_parts
from jaxalign.model.scoring import Scoring
from jaxalign.pairs import api
from jaxalign.runtime.pipeline import (
    COUNTS,
    default_threads,
    in_advance,
    programs_listener,
)
from jaxalign.runtime.program_folder import pack_facts, program_files

# Compute capabilities; a pack for one GPU serves all of its capability.
GPUS = {"a100": "8.0", "a6000": "8.6", "rtx4090": "8.9", "l40s": "8.9", "h100": "9.0",
        "h200": "9.0", "b200": "10.0", "rtx6000": "12.0"}  # fmt: skip
MODES = "global", "local", "semiglobal"
OUTPUTS = "score", "identity", "stats", "alignment"
# Lengths as those of proteins: ln N(5.7, 0.6), so that half are from 200 to 450, and
# two long ones.
LOG_MEAN, LOG_SPREAD, LONGEST = 5.7, 0.6, 5000
SEED = 2011


def proteins(count: int) -> Sequences:
    """Random sequences with lengths of proteins, the same at every call."""
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
    small_set, large_set = proteins(540 if gpu else 150), proteins(1000)
    named = {"implementation": implementation}
    for mode in MODES:
        for output in OUTPUTS:
            options = {"mode": mode, "output": output, **named}
            yield (
                f"all pairs, {mode}, {output}",
                lambda options=options: api.align_all(small_set, **options),
            )
        options = {"mode": mode, "output": "alignment", **named}
        yield (
            f"zipped pairs, {mode}, alignment",
            lambda options=options: api.align_pairs(large_set, large_set, **options),
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


def warm_up(device: str = "auto", log: Callable[[str], None] = print) -> None:
    """Compile what usual jobs need on a device, and keep it in the user's folder.

    Parameters
    ----------
    device : {"auto", "cpu", "gpu"}
    log : callable
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
        log(f"{name}: {compiled} programs compiled, {there} loaded")


def make_pack(
    targets: str, folder: str, log: Callable[[str], None] = print
) -> dict[str, int]:
    """Compile the programs of usual jobs for GPUs that need not be there, into a pack
    for ``JAXALIGN_PROGRAMS``. JAX's plugin for CUDA is needed, no GPU and no driver.

    Parameters
    ----------
    targets : names of GPUs, such as "h100,b200"
    folder : of the pack; one that is there is replaced
    log : callable
        Takes a line for every job.

    Returns
    -------
    dict of ``programs`` and ``bytes``

    Raises
    ------
    UsageError
        An unknown name, or a folder with something else.
    DeviceError
        There is no such plugin.
    """
    names = targets.lower().split(",")
    if unknown := [name for name in names if name not in GPUS]:
        raise UsageError(f"--target {unknown[0]}: one of {', '.join(GPUS)}")
    os.environ.setdefault("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")
    if "jax" not in sys.modules:
        os.environ["JAX_PLATFORMS"] = "cpu"
    from jaxalign.program_table import calls_of, verbs_of
    from jaxalign.runtime import program_folder, programs
    from jaxalign.runtime.backend import kernels_pallas

    kernels: Any = kernels_pallas
    path, sizes, modules = Path(folder), list[int](), dict[str, set[str]]()
    capabilities = sorted({GPUS[name] for name in names})
    program_folder.begin_pack(path)
    for capability in capabilities:
        target, seen = kernels.target_of(capability), set[str]()
        architecture = target.architecture
        device = programs.topology_device(kernels.configuration(target))
        make = partial(
            programs.make_program,
            device=device,
            architecture=architecture,
            folder=path,
        )
        with kernels.made_for(target):
            unseen: list[tuple[str, Any]] = []
            for name, calls in calls_of(kernels).items():
                by_key = {programs.key_of_call(x, architecture): x for x in calls}
                unseen += [(name, x) for key, x in by_key.items() if key not in seen]
                seen |= set(by_key)
                makers = set[str]().union(*map(programs.modules_of_call, calls))
                for verb in verbs_of(name):
                    modules[verb] = modules.get(verb, set()) | makers
            # Most jobs have a program or two of their own: cores need those of many.
            sizes_ahead = in_advance(make, [x for _, x in unseen], default_threads())
            for (name, _), size in zip(unseen, sizes_ahead, strict=True):
                sizes.append(size)
                log(f"{architecture}, {len(sizes)} programs: {name}")
    architectures = [f"sm_{x.replace('.', '')}" for x in capabilities]
    program_folder.finish_pack(path, architectures, modules)
    return {"programs": len(sizes), "bytes": sum(sizes)}


__all__ = [
    "make_pack",
    "pack_facts",
    "program_files",
    "programs_listener",
    "usual_jobs",
    "warm_up",
]
