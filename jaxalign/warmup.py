"""Compiled programs in the user's folder: what is there, and those of usual jobs.

A program is compiled by the first job that needs it, which takes seconds, and loaded by
later processes in hundredths of a second. ``warm_up`` compiles what usual jobs need, so
that no job has to wait; ``jaxalign warmup`` is the same on the command line.
``make_pack`` compiles for GPUs that are elsewhere, into a folder that can be shipped.
What needs JAX is imported by the functions: every job with a progress bar loads this.
"""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from jaxalign.database.api import search
from jaxalign.errors import JaxalignError, UsageError
from jaxalign.model.alphabet import Sequences, from_parts
from jaxalign.model.scoring import Scoring
from jaxalign.pairs import api
from jaxalign.runtime import program_folder
from jaxalign.runtime.pipeline import COUNTS, default_threads, programs_listener
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
    capabilities = sorted({GPUS[name] for name in names})
    program_folder.begin_pack(Path(folder))
    for capability in capabilities:
        target_device(capability)
    sizes, modules = list[int](), dict[str, set[str]]()
    count = min(default_threads(), MAX_PROCESSES)
    with ExitStack() as stack:
        # Lowering holds Python's lock, so each core has a process.
        processes = [
            stack.enter_context(_share_process(capabilities, folder, k, count))
            for k in range(count)
        ]
        for line in _lines_of(processes):
            if "size" in line:
                sizes.append(line["size"])
                log(f"{line['architecture']}, {len(sizes)} programs: {line['job']}")
            for verb, makers in line.get("modules", {}).items():
                modules[verb] = modules.get(verb, set()) | set(makers)
    architectures = [f"sm_{x.replace('.', '')}" for x in capabilities]
    program_folder.finish_pack(Path(folder), architectures, modules)
    return {"programs": len(sizes), "bytes": sum(sizes)}


def target_device(capability: str) -> Any:
    """Return the device of a GPU that need not be there, by its compute capability.

    Raises DeviceError: there is no JAX plugin for CUDA.
    """
    os.environ.setdefault("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")
    if "jax" not in sys.modules:
        os.environ["JAX_PLATFORMS"] = "cpu"
    from jaxalign.runtime.backend import kernels_pallas
    from jaxalign.runtime.programs import topology_device

    kernels: Any = kernels_pallas
    return topology_device(kernels.configuration(kernels.target_of(capability)))


def make_share(
    capabilities: Sequence[str], folder: str, first: int, step: int
) -> Iterator[dict[str, Any]]:
    """Compile the programs of every ``step``-th job from ``first`` on, but for those
    that another process has begun.

    Yields ``architecture``, ``job`` and ``size`` of each program, then ``modules``,
    those that make the programs of each verb.
    """
    devices = {capability: target_device(capability) for capability in capabilities}
    from jaxalign.program_table import calls_of, verbs_of
    from jaxalign.runtime.backend import kernels_pallas
    from jaxalign.runtime.programs import key_of_call, make_program, modules_of_call

    kernels: Any = kernels_pallas
    modules = dict[str, set[str]]()
    for capability, device in devices.items():
        target = kernels.target_of(capability)
        architecture = target.architecture
        with kernels.made_for(target):
            for name, calls in calls_of(kernels, share=(first, step)):
                by_key = {key_of_call(call, architecture): call for call in calls}
                makers = set[str]().union(*map(modules_of_call, by_key.values()))
                for verb in verbs_of(name):
                    modules[verb] = modules.get(verb, set()) | makers
                for key, call in by_key.items():
                    if program_folder.claim(Path(folder), key):
                        size = make_program(call, device, architecture, Path(folder))
                        yield {"architecture": architecture, "job": name, "size": size}
    yield {"modules": {verb: sorted(makers) for verb, makers in modules.items()}}


# Of which each takes 0.9 GB
MAX_PROCESSES = 16
# What a process of ``make_pack`` runs: a line of JSON for each answer
SHARE = "import sys; from jaxalign.warmup import print_share; print_share(sys.argv[1])"


def print_share(share: str) -> None:
    """Print the answers of ``make_share``, whose arguments are JSON."""
    for answer in make_share(*json.loads(share)):
        print(json.dumps(answer), flush=True)


@contextmanager
def _share_process(
    capabilities: Sequence[str], folder: str, first: int, step: int
) -> Iterator[subprocess.Popen[str]]:
    """Run ``make_share`` in a process of its own, which ends with the caller's work.

    A pool, as ``io.structures`` has one, imports the caller's script anew: a script
    that asks for a pack would have to guard its own start.
    """
    share = json.dumps([capabilities, folder, first, step])
    words = [sys.executable, "-c", SHARE, share]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _lines_of(processes: Sequence[subprocess.Popen[str]]) -> Iterator[dict[str, Any]]:
    """Yield the answers of some processes as they come.

    Raises JaxalignError: one of them failed.
    """
    answers = queue.SimpleQueue[Any]()

    def read(process: subprocess.Popen[str]) -> None:
        for line in process.stdout or ():
            answers.put(json.loads(line))
        answers.put(process.wait())

    for process in processes:
        threading.Thread(target=read, args=(process,), daemon=True).start()
    running = len(processes)
    while running:
        if isinstance(answer := answers.get(), dict):
            yield answer
            continue
        running -= 1
        if answer:
            raise JaxalignError(f"a process that makes programs ended with {answer}")


__all__ = [
    "make_pack",
    "make_share",
    "print_share",
    "pack_facts",
    "program_files",
    "programs_listener",
    "usual_jobs",
    "warm_up",
]
