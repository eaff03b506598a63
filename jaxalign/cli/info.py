"""``jaxalign info``: what would run here, and what a job would need."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from cyclopts import Parameter

from jaxalign.cli.options import FILE, Options
from jaxalign.cli.terminal import answer, answer_json
from jaxalign.errors import MemoryPlanError


def info(
    *,
    plan: Annotated[str | None, FILE, Parameter(metavar="SEQS")] = None,
    options: Options = Options(),  # noqa: B008
) -> int:
    """Show versions, devices, the implementation that would run, and memory.

    Parameters
    ----------
    plan
        Also print the memory plan of `jaxalign all SEQS` with these options.
    """
    facts = machine(options)
    if plan is not None:
        facts |= planned(plan, options)
    if options.output.json:
        answer_json(facts)
    else:
        answer(_lines(facts))
    return 0


def machine(options: Options) -> dict:
    """Versions, devices, implementation and memory."""
    from jaxalign import warmup
    from jaxalign.cli import report
    from jaxalign.pairs import api

    devices = api.select_device(options.machine.device)
    machine = options.machine
    named = machine.implementation, machine.devices
    large = api.PairOptions(implementation=named[0], devices=named[1])
    name, reason = api.implementation_of(large)
    tiny = api.plan(
        ["A"], ["A"], implementation=name, threads=machine.threads,
        memory_budget=machine.memory_budget, devices=machine.devices,
    )  # fmt: skip
    names = "devices", "threads", "budget_bytes"
    chosen = {"implementation": name, "reason": reason}
    chosen |= {name: tiny[name] for name in names}
    return {
        "versions": report.versions(),
        "device": api.describe_device(devices),
        "gpu": api.gpu_use(),
        "runs": chosen,
        "memory": _memory(devices),
        "compiled": warmup.program_files(),
    }


def planned(path: str, options: Options) -> dict:
    """The memory plan of ``jaxalign all`` on a file: as one table in memory, and as a
    folder of parts.

    Raises
    ------
    MemoryPlanError
        Not even the folder can be written within the budget.
    """
    from jaxalign.cli import inputs, job, request
    from jaxalign.pairs import api

    plain = request.resolve(options)
    warn = job.Messages(options.messages.quiet).warn
    read = inputs.read((path,), plain.scoring, options.scoring, False, warn)
    scoring, chosen = read.scoring, plain.options
    about = {"scoring": str(scoring), "records": len(read.sequences[0])}
    about |= {"output": chosen.output, "mode": chosen.mode}
    sides = read.sequences[0], None
    folder = api.plan_of(*sides, scoring, replace(chosen, parts=True))
    try:
        table = api.plan_of(*sides, scoring, chosen)
    except MemoryPlanError as error:
        table = {"refused": f"{error}; a folder of parts (-o FOLDER/) needs less"}
    return {"plan": {**about, **table}, "folder_plan": dict(folder)}


def _memory(devices: Sequence[Any]) -> dict:
    """Bytes of the host, and of the device where it has its own."""
    names = {"host_bytes": "SC_PHYS_PAGES", "host_free_bytes": "SC_AVPHYS_PAGES"}
    known = {name: key for name, key in names.items() if key in os.sysconf_names}
    page = os.sysconf("SC_PAGE_SIZE")
    sizes = {name: page * os.sysconf(key) for name, key in known.items()}
    limit = (devices[0].memory_stats() or {}).get("bytes_limit")
    return sizes | ({} if limit is None else {"device_bytes": limit})


def _lines(facts: dict):
    from jaxalign.cli import report

    for heading, values in facts.items():
        yield heading.replace("_", " ")
        yield from (f"  {line}" for line in report.plan_lines(values))
