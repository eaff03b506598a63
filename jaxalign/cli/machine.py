"""Verbs of this machine: info, warmup, selftest, index, structures, matrices and
demo."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jaxalign.cli.derive import Given, refuse, refuse_others
from jaxalign.cli.run import PRINTED, check_outputs, run
from jaxalign.cli.terminal import Messages, Report, answer, answer_json
from jaxalign.errors import MemoryPlanError, UsageError
from jaxalign.options import Execution, field_types

if TYPE_CHECKING:
    import numpy as np

    from jaxalign.model.table import Table

RESIDUES_A_SECOND = 3e7  # that a core encodes


def info(given: Given) -> int:
    """``jaxalign info``."""
    if given.plan is None:
        usual = ("json", "device", *field_types(Execution))
        refuse_others(given, usual, "about a job: give --plan SEQS")
    refuse(given, ("out", "force"), "about a file, and none is written: --format")
    facts = machine(given)
    if given.plan is not None:
        facts |= planned(given.plan, given)
    if given.json:
        answer_json(facts)
    else:
        answer(_lines(facts))
    return 0


def machine(options: Given) -> dict:
    """Versions, devices, implementation and memory."""
    from jaxalign import warmup
    from jaxalign.cli import report
    from jaxalign.pairs import api

    devices = api.select_device(options.device)
    named = options.implementation, options.devices
    large = api.PairOptions(implementation=named[0], devices=named[1])
    name, reason = api.implementation_of(large)
    tiny = api.plan(
        ["A"], ["A"], implementation=name, threads=options.threads,
        memory_budget=options.memory_budget, devices=options.devices,
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
        "compiled": warmup.program_files() | warmup.pack_facts(devices[0]),
    }


def planned(path: str, options: Given) -> dict:
    """The memory plan of ``jaxalign all`` on a file: as one table in memory, and as a
    folder of parts.

    Raises
    ------
    MemoryPlanError
        Not even the folder can be written within the budget.
    """
    from jaxalign.cli import inputs, report, request
    from jaxalign.pairs import api

    plain = request.resolve(options)
    messages = Messages(options.quiet)
    read = inputs.read((path,), plain.scoring, options.scoring, False, messages)
    scoring, chosen = read.scoring, plain.options
    about = {"scoring": str(scoring), "records": len(read.sequences[0])}
    about |= {"output": chosen.output, "mode": chosen.mode}
    about |= {"identity": plain.identity, "free_ends": report.free_ends(plain)}
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


def warmup(given: Given) -> int:
    """``jaxalign warmup``."""
    device, target, out = given.device, given.target, given.out
    from jaxalign import warmup
    from jaxalign.cli import terminal

    say = (lambda _: None) if given.quiet else terminal.say
    if (target is None) != (out is None):
        raise UsageError("--target and --out go together: give both or neither")
    if target is not None and out is not None:
        refuse(given, ("device",), "about this machine, and --target about others")
        pack = warmup.make_pack(target, out, say)
        say(f"{out}: {pack['programs']} programs, {pack['bytes'] / 1e6:.1f} MB")
        return 0
    if warmup.program_files()["folder"] == "none":
        raise UsageError(
            "there is no folder for programs: set JAXALIGN_CACHE_DIR to one"
        )
    warmup.warm_up(device, say)
    return 0


def selftest(given: Given) -> int:
    """``jaxalign selftest``."""
    from jaxalign import selftest
    from jaxalign.cli.terminal import say

    line, equal = selftest.selftest(given.seconds, say)
    answer([line])
    return 0 if equal else 1


def matrices(given: Given) -> int:
    """``jaxalign matrices``."""
    from jaxalign.model import scoring

    if given.name is None:
        answer(scoring.matrix_names())
    else:
        answer(ncbi_lines(given.name, *scoring.load_matrix(given.name)))
    return 0


def ncbi_lines(name: str, letters: str, scores: "np.ndarray") -> Iterator[str]:
    """The lines of an NCBI matrix file."""
    cells = [[f"{value:g}" for value in row] for row in scores.tolist()]
    width = 1 + max(len(cell) for row in cells for cell in row)
    yield f"# {name}"
    yield " " + "".join(letter.rjust(width) for letter in letters)
    for letter, row in zip(letters, cells, strict=True):
        yield letter + "".join(cell.rjust(width) for cell in row)


def structures(given: Given) -> int:
    """``jaxalign structures FOLDER -o set.fasta``."""
    from jaxalign.io import output
    from jaxalign.io.structures import (
        fasta_of,
        files_of,
        missing,
        read_files,
    )
    from jaxalign.model.source import states_path

    messages, out = Messages(given.quiet), given.out
    if out is None or out in PRINTED:
        raise UsageError("two FASTA files are written, and not printed: give -o FILE")
    states = states_path(out)
    files = [file for path in given.paths for file in files_of(path)]
    check_outputs(given, out, (states,), files)

    def compute(progress: Report | None) -> tuple:
        if progress is not None:
            progress.unit = "structures"
        return read_files(files, given.unreadable, given.processes, progress)

    def finish(result: tuple) -> Iterator[str]:
        chains, errors = result
        for error in errors:
            messages.warn(f"left out: {error}")
        output.write_text(out, fasta_of(chains, "letters"))
        output.write_text(states, fasta_of(chains, "states"))
        residues = sum(len(chain.letters) for chain in chains)
        yield (
            f"{out}, {states}: {len(chains):,} chains of {len(files) - len(errors):,} "
            f"files, {residues:,} residues"
        )
        if lacking := missing(chains):
            yield lacking

    return run(given, messages, (), compute, finish)


PAIR = "P69905", "P68871"  # human haemoglobin, alpha and beta


def demo(options: Given) -> int:
    """``jaxalign demo``."""
    from importlib.resources import as_file, files

    from jaxalign.cli import report
    from jaxalign.cli.terminal import say
    from jaxalign.io import fasta, formats
    from jaxalign.model.scoring import Scoring
    from jaxalign.pairs import api

    if options.files is not None:
        return _copy_examples(options.files)
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


def _copy_examples(folder: str) -> int:
    """Copy the files that the documentation reads; replace none that differs."""
    import shutil
    from importlib import resources
    from pathlib import Path

    from jaxalign.cli.terminal import say
    from jaxalign.io.output import naming

    source = Path(str(resources.files("jaxalign.data")))
    files = [x for x in sorted(source.rglob("*")) if x.suffix in (".fasta", ".tsv")]
    copies = {Path(folder) / path.relative_to(source): path for path in files}
    with naming(folder):
        for copy, path in copies.items():
            if copy.exists() and copy.read_bytes() != path.read_bytes():
                raise UsageError(f"{copy}: exists and differs; name another folder")
        for copy, path in copies.items():
            copy.parent.mkdir(parents=True, exist_ok=True)
            if not copy.exists():
                shutil.copyfile(path, copy)
    say(f"{len(copies)} example files copied to {folder}; sources: {source}/README.md")
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


def index(options: Given) -> int:
    """``jaxalign index DB``."""
    from jaxalign.cli import report
    from jaxalign.cli.inputs import scoring_for
    from jaxalign.cli.request import scoring_of
    from jaxalign.database.api import index_database, open_database, residues_about
    from jaxalign.io.corpus_files import opening
    from jaxalign.io.encoded_database import SUFFIX, is_database
    from jaxalign.model.alphabet import reading_of

    database, scoring = options.database, options.scoring
    messages = Messages(options.quiet)
    if options.verify:
        refuse_others(
            options, ("verify",), "not for --verify, which reads an index as it is"
        )
        encoded = open_database(database, verify=True)
        messages.say(f"{database}: {len(encoded):,} sequences, checksums are right")
        return 0
    if is_database(database):
        raise UsageError(f"{database}: is an index already; --verify checks it")
    if options.out is None and database == "-":
        raise UsageError("an index of standard input needs a name: -o OUT")
    out = options.out or database + SUFFIX
    if out in PRINTED:
        raise UsageError("an index is binary and is not printed: give -o FILE")
    check_outputs(options, out, (), (database, scoring.matrix))
    letters = [(database, opening(database))]
    scored = scoring_for(letters, scoring_of(scoring), scoring, messages)

    def compute(progress: Report | None) -> dict:
        how = reading_of(scoring)._asdict() | {"force": options.force}
        if progress is not None:
            progress.unit = "residues"
        return index_database(database, out, scored, **how, progress=progress)

    def finish(about: dict) -> Iterator[str]:
        wildcard = scored.alphabet.wildcard
        messages.warn_of_letters(database, about["substituted"], wildcard)
        yield (
            f"{out}: {about['records']:,} sequences, {about['residues']:,} residues, "
            f"longest {about['longest']:,}, {scored.alphabet.kind} alphabet"
        )

    size = residues_about(database)
    expected = report.long_job(size / RESIDUES_A_SECOND, lambda: size, "index")
    return run(options, messages, expected, compute, finish)
