"""``jaxalign info``: what would run here, and what a job would need."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, validators

from jaxalign.cli.options import FILE, FLAG, Options
from jaxalign.cli.terminal import answer, answer_json
from jaxalign.errors import MemoryPlanError

if TYPE_CHECKING:
    import numpy as np

    from jaxalign.model.table import Table


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


# ------------------------------------------------------------------------------
# ``jaxalign warmup``: compile what usual jobs need, before they need it.


def warmup(
    *,
    device: Literal["auto", "cpu", "gpu"] = "auto",
    target: str | None = None,
    out: Annotated[str | None, Parameter(alias="-o")] = None,
    quiet: Annotated[bool, FLAG, Parameter(alias="-q")] = False,
) -> int:
    """Compile the programs of usual jobs, and keep them for later processes.

    Jobs of proteins in every mode and output, and a search: a minute on a CPU, a few on
    a GPU. `jaxalign info` says where programs are kept, and how many there are.

    Parameters
    ----------
    device
        gpu fails where there is none.
    target
        Compile for GPUs that need not be here, such as h100 or h100,b200.
    out
        Folder of the programs for these: a pack, for JAXALIGN_PROGRAMS.
    quiet
        Only warnings and errors.
    """
    from jaxalign import warmup
    from jaxalign.cli import terminal
    from jaxalign.errors import UsageError

    say = (lambda _: None) if quiet else terminal.say
    if (target is None) != (out is None):
        raise UsageError("--target and --out belong together")
    if target is not None and out is not None:
        pack = warmup.make_pack(target, out, say)
        say(f"{out}: {pack['programs']} programs, {pack['bytes'] / 1e6:.1f} MB")
        return 0
    if warmup.program_files()["folder"] == "none":
        raise UsageError("there is no folder for programs: see JAXALIGN_CACHE_DIR")
    warmup.warm_up(device, say)
    return 0


# ------------------------------------------------------------------------------
# ``jaxalign selftest``: whether the GPU kernels are right on this card.


def selftest(
    *,
    seconds: Annotated[float, Parameter(validator=validators.Number(gte=0))] = 36,
) -> int:
    """Compare the GPU kernels with NumPy on this card, and print a line to send.

    Random jobs of every mode and output run by both until the time is over; the first
    of each kind compiles. The kernels are measured on a few kinds of cards only
    (`jaxalign info` says on which): a line from another one is welcome at the project's
    issues. Ends with code 1 where a result differs, and with 5 where no kernels run.

    Parameters
    ----------
    seconds
        No job begins later. The whole command takes up to 20 seconds more: it starts
        JAX, ends its last jobs, and measures the speed.
    """
    from jaxalign import selftest
    from jaxalign.cli.terminal import answer, say

    line, equal = selftest.selftest(seconds, say)
    answer([line])
    return 0 if equal else 1


# ------------------------------------------------------------------------------
# ``jaxalign matrices [NAME]``: the substitution matrices, in NCBI format.


def matrices(name: str | None = None, /) -> int:
    """List the bundled substitution matrices, or print one in NCBI format.

    Parameters
    ----------
    name
        A bundled matrix, or a matrix file to be read and checked.
    """
    from jaxalign.cli.terminal import answer
    from jaxalign.model import scoring

    if name is None:
        answer(scoring.matrix_names())
    else:
        answer(ncbi_lines(name, *scoring.load_matrix(name)))
    return 0


def ncbi_lines(name: str, letters: str, scores: "np.ndarray") -> Iterator[str]:
    """The lines of an NCBI matrix file."""
    cells = [[f"{value:g}" for value in row] for row in scores.tolist()]
    width = 1 + max(len(cell) for row in cells for cell in row)
    yield f"# {name}"
    yield " " + "".join(letter.rjust(width) for letter in letters)
    for letter, row in zip(letters, cells, strict=True):
        yield letter + "".join(cell.rjust(width) for cell in row)


# ------------------------------------------------------------------------------
# ``jaxalign demo``: the main job on a family of globins that ships with jaxalign.

PAIR = "P69905", "P68871"  # human haemoglobin, alpha and beta


def demo() -> int:
    """Align 16 globins, all against all; show a table and one alignment."""
    from importlib.resources import as_file, files

    from jaxalign.cli import report
    from jaxalign.cli.terminal import answer, say
    from jaxalign.io import fasta, formats
    from jaxalign.model.scoring import Scoring
    from jaxalign.pairs import api

    scoring = Scoring()
    with as_file(files("jaxalign.data") / "globins.fasta") as path:
        sequences = fasta.read(path, scoring.alphabet)
    table = api.align_all(sequences, scoring, output="alignment")
    reason = table.info["reason"]
    answer([f"jaxalign all globins.fasta: {scoring}; {table.mode}; {reason}"])
    _show(table)
    query, target = (sequences.names.index(name) for name in PAIR)
    shown = (table["query"] == query) & (table["target"] == target)
    formats.write(table.filter(shown), "-", "pair")
    say(report.summary(table.info, len(table), ""))
    return 0


def _show(table: "Table", best: int = 10, least: int = 3) -> None:
    """The best pairs and the worst ones."""
    from rich.console import Console
    from rich.table import Table

    from jaxalign.cli.terminal import standard_output

    view = Table(title=f"best {best}, last {least} of {len(table)} pairs")
    for name in ("query", "target", "score", "identity", "columns", "gaps"):
        view.add_column(
            name, justify="left" if name in ("query", "target") else "right"
        )
    order = (-table["score"]).argsort(kind="stable")
    identity = table.identity("alignment")
    for place, row in enumerate((*order[:best], *order[-least:]), 1):
        view.add_row(
            *_cells(table.row(row), float(identity[row])), end_section=place == best
        )
    Console(file=standard_output()).print(view)


def _cells(row: dict, identity: float) -> list[str]:
    numbers = (row["score"], f"{identity:.1%}", row["columns"], row["gaps"])
    return [row["query"], row["target"], *map(str, numbers)]
