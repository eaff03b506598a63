"""The straight line of every verb that aligns: options -> inputs -> table -> files."""

import os
import tempfile
from dataclasses import dataclass, field

import numpy as np

from jaxalign import api
from jaxalign.cli import inputs, progress, report
from jaxalign.cli.options import Options
from jaxalign.cli.request import Request, resolve
from jaxalign.errors import UsageError
from jaxalign.io import formats
from jaxalign.model.table import SPANS, Table

STATS = (*SPANS, "identities", "columns", "gap_openings", "gaps")
HELD = {"score": (), "identity": ("max_identities",)}


@dataclass(frozen=True)
class Messages:
    """Standard error under ``-q``; warnings are shown always and kept."""

    quiet: bool
    warnings: list = field(default_factory=list)

    def say(self, text: str) -> None:
        if not self.quiet:
            report.say(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)
        report.say(f"warning: {text}")


def pairs(a: str, b: str, options: Options) -> int:
    """``jaxalign align A B``."""
    return _run((a, b), options)


def all_pairs(path: str, options: Options, include_self: bool) -> int:
    """``jaxalign all SEQS``."""
    return _run((path,), options, include_self=include_self)


def _run(paths, options: Options, **which) -> int:
    # 1 check options, 2 read, 3 refuse what cannot be written, 4 plan, 5 align, 6 write
    request = resolve(options)
    messages = Messages(options.messages.quiet)
    hashed, alphabet = options.output.json, request.scoring.alphabet
    read = inputs.read(paths, alphabet, options.scoring, hashed, messages.warn)
    _check_counts(read)
    rehearse(request, read.sequences)
    devices = api.select_device(options.machine.device)
    chosen = settings(request, options) | which
    plan = api.plan(*_sides(read.sequences), request.scoring, **chosen)
    messages.say(report.heading(request, plan))
    if options.messages.verbose:
        for line in report.plan_lines(plan):
            messages.say(line)
    table = _align(read.sequences, request, options, chosen)
    kept = _filter(table, request.identity, options.mode.min_identity)
    write(kept, request, options.output.force)
    _finish(request, read, table, kept, options, devices, messages)
    return 0


def _check_counts(read) -> None:
    """Pairs are zipped, or one meets all."""
    counts = [len(sequences) for sequences in read.sequences]
    if 1 not in counts and len(set(counts)) > 1:
        (a, b), (m, n) = read.paths, counts
        raise UsageError(
            f"{a} has {m} records, {b} has {n}: pairs are zipped, so there must be "
            "as many, or one in either file (`jaxalign all` aligns a set to itself)"
        )


def rehearse(request: Request, sequences) -> None:
    """Write a table of no rows, so that a refusal comes before the work."""
    if request.format is None:
        return
    names = ("query", "target", "score", *HELD.get(request.output, STATS))
    columns = {name: np.zeros(0, np.int32) for name in names}
    paths = (np.zeros(0, np.uint32), np.zeros(1, np.int64))
    runs = paths if request.output == "alignment" else (None, None)
    sides = sequences[0], sequences[-1]
    table = Table(
        columns, *sides, request.scoring, request.mode, frozenset(), "", {}, *runs
    )
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rehearsal")
        formats.write(table, path, request.format, request.columns, request.identity)


def settings(request: Request, options: Options) -> dict:
    """What ``api.plan`` and the verbs of ``api`` take."""
    return {
        "mode": request.mode,
        "free_ends": request.free_ends,
        "output": request.output,
        "implementation": options.machine.implementation,
        "memory_budget": options.machine.memory_budget,
        "threads": options.machine.threads,
    }


def _sides(sequences):
    """(queries, targets), targets None for a set against itself."""
    return sequences if len(sequences) == 2 else (sequences[0], None)


def _align(sequences, request: Request, options: Options, chosen: dict) -> Table:
    verb = api.align_pairs if len(sequences) == 2 else api.align_all
    asked = options.messages
    with progress.reporting(asked.progress, asked.quiet) as tell:
        return verb(*sequences, request.scoring, progress=tell, **chosen)


def _filter(table: Table, identity: str, least: float | None) -> Table:
    """Rows of at least this identity; a pair without a denominator has none."""
    if least is None:
        return table
    return table.filter(table.identity(identity) >= least)


def write(table: Table, request: Request, force: bool) -> None:
    """Write a table to where the request says, if anywhere."""
    if request.out is not None:
        columns, identity = request.columns, request.identity
        formats.write(table, request.out, request.format, columns, identity, force)


def _finish(request, read, table, kept, options, devices, messages) -> None:
    least = options.mode.min_identity
    messages.say(report.summary(table, len(kept), request.identity, least))
    if options.output.json:
        about = (api.describe_device(devices), messages.warnings)
        print(report.as_json(request, read, table, len(kept), least, *about))
