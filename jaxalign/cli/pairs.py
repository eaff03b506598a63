"""``jaxalign align`` and ``all``: options -> inputs -> table -> files."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from jaxalign.cli import inputs, parts, report
from jaxalign.cli.derive import Given
from jaxalign.cli.inputs import Inputs
from jaxalign.cli.request import (
    Pictures,
    Request,
    check_identity,
    resolve,
    wants_folder,
)
from jaxalign.cli.run import check_outputs, check_resume, run
from jaxalign.cli.terminal import Messages, Report
from jaxalign.errors import UsageError
from jaxalign.io import formats, output
from jaxalign.io.runs import SavedRun
from jaxalign.model.alignment import SPANS
from jaxalign.model.alphabet import NUCLEIC, Sequences
from jaxalign.model.source import sha256
from jaxalign.model.table import Table
from jaxalign.pairs import api, jobs

STATS = (*SPANS, "identities", "columns", "gap_openings", "gaps")
FEW, LONGEST = 10, 10_000  # pairs that a terminal shows, and letters of a sequence
# What a read and its reference have, in place of mode global.
MEANT = (
    "--free-ends t5,t3 aligns each query whole, anywhere in its target; --mode local "
    "the best pieces of both; --mode global both from end to end"
)
HELD = {"score": (), "identity": ("max_identities",)}


@dataclass(frozen=True, eq=False)
class TableJob:
    """A job whose options are checked and whose inputs are read."""

    request: Request
    read: Inputs
    options: api.PairOptions
    devices: list
    drawn: Pictures | None
    given: Given
    messages: Messages


# What a job has computed: figures, rows kept and the best score, and the table, unless
# its rows were written while others were computed.
Computed = tuple[Mapping, dict, Table | None]


def align(given: Given) -> int:
    """``jaxalign align A B``."""
    if given.profile and given.embeddings:
        raise UsageError("--profile and --embeddings exclude each other")
    if given.sequences is not None and not given.embeddings:
        raise UsageError("--sequences needs --embeddings")
    if given.embeddings:
        from jaxalign.cli import embeddings

        return embeddings.align(given)
    drawn = Pictures(dot_plot=given.plot) if given.plot else None
    paths, resume = (given.a, given.b), given.resume
    check_resume(given, paths)
    job = _prepare(paths, given, drawn, given.profile, strand=given.strand)
    plan = api.plan_sets(
        *job.read.sequences, scoring=job.read.scoring, options=job.options
    )
    saved = _checkpoint(job)
    state = saved and api.SavedState(saved.load(resume, given.force) or {}, saved.save)

    def compute(chosen: api.PairOptions) -> Computed:
        return _whole(api.run_plan(plan, chosen, state))

    return _run(job, plan, compute, saved=saved)


def all_pairs(given: Given) -> int:
    """``jaxalign all SEQS``, into a folder or one file."""
    drawings = given.plot, given.dendrogram, given.heat_map
    if wants_folder(given):
        if any(drawings):
            raise UsageError("a picture needs a result in one file, not a folder")
        return _all_into_folder(given)
    drawn = Pictures(*drawings) if any(drawings) else None
    which = {"include_self": given.include_self, "cluster": given.cluster}
    job = _prepare((given.sequences,), given, drawn, **which)
    chosen, (sequences,) = job.options, job.read.sequences
    # All rows of a file of Parquet are written while others are computed, where they
    # are too many for one part.
    rows_of_part = None
    parquet = job.request.out is not None and job.request.format == "parquet"
    if parquet and not (drawn or chosen.cluster or api.filters_of(chosen)):
        rows_of_part = jobs.rows_at_once(len(sequences), chosen)
    if rows_of_part is not None:
        chosen = replace(chosen, parts=True, part_rows=rows_of_part)
    plan = api.plan_sets(sequences, scoring=job.read.scoring, options=chosen)
    if rows_of_part is None:
        return _run(job, plan, lambda chosen: _whole(api.run_plan(plan, chosen)))

    def compute(chosen: api.PairOptions) -> Computed:
        results = []

        def fill(write: Callable[[Table], None]) -> None:
            stream: Any = jobs.stream_parts(plan.task, plan.parts, chosen)
            rows_of = job.request.rows
            with closing(stream):
                passed = parts.passed_on(stream, lambda x, _: write(rows_of(x)))
            results.append(passed)

        request = job.request
        about = request.columns, request.identity, given.force
        formats.write_while(str(request.out), *about, fill)
        ((info, rows),) = results
        return plan | info, rows, None

    return _run(job, plan, compute)


def _all_into_folder(given: Given) -> int:
    request, messages = resolve(given, folder=True), Messages(given.quiet)
    output.check_inputs(request.out, (given.sequences, given.scoring.matrix))
    request, read = read_inputs((given.sequences,), request, given, True, messages)
    rehearse(request, read.sequences)
    devices, (sequences,) = select_device(given), read.sequences
    which = {"include_self": given.include_self, "part_rows": given.part_rows}
    pieces = jobs.parts_all(sequences, **which)
    about = {"format": "jaxalign parts, 1", "include_self": given.include_self}
    about |= {"rows": pieces[-1].stop}
    about |= {"parts_sha256": report.digest([part.stop for part in pieces])}
    check_identity(given, request, False)
    manifest = about | parts.manifest(request, read, pieces)
    folder = parts.opened_folder(request, manifest, pieces, given, messages)
    chosen = replace(request.options, **which)
    if given.cluster:  # which chooses by itself
        chosen = replace(chosen, devices=given.devices)
    in_parts = replace(chosen, parts=True)
    plan = api.plan_of(sequences, None, request.scoring, in_parts)
    shares = {"skip": folder.skip, "shard": given.shard, "cluster": given.cluster}
    chosen = replace(chosen, **shares)
    job = TableJob(request, read, chosen, devices, None, given, messages)

    def compute(chosen: api.PairOptions) -> Computed:
        stream = jobs.stream_parts(plan.task, plan.parts, chosen)
        info, rows = parts.written(stream, folder)
        return plan | info, rows, None

    return _run(job, plan, compute, [str(folder)])


def _prepare(
    paths: tuple[str, ...],
    given: Given,
    drawn: Pictures | None,
    profile: bool = False,
    **which: Any,
) -> TableJob:
    """Check options, read, and refuse what cannot be written."""
    request = resolve(given)
    shown = drawn or Pictures()
    drawings = tuple(vars(shown).values())
    files = (*paths, given.scoring.matrix)
    check_outputs(given, request.out, (), files, drawings)
    if drawn:
        from jaxalign.cli import pictures

        request = pictures.prepare(drawn, request)
    messages = Messages(given.quiet)
    request, read = read_inputs(paths, request, given, given.json, messages, profile)
    counts = [len(sequences) for sequences in read.sequences]
    if 1 not in counts and len(set(counts)) > 1:
        (a, b), (m, n) = read.paths, counts
        raise UsageError(
            f"{a} has {m} records, {b} has {n}: record k is aligned with record k, "
            "so the numbers must be equal, or one of them 1\n"
            "hint: `jaxalign search` aligns each record of one file with each of the "
            "other, `jaxalign all` those of one file with each other"
        )
    if drawn:
        pictures.check_counts(drawn, max(counts))
    said = given.mode, given.free_ends, given.scoring.preset
    if request.format in ("sam", "paf") and said == (None, None, None):
        if request.scoring.alphabet.kind in NUCLEIC:
            raise UsageError(f"{request.format} of nucleotides needs a mode: {MEANT}")
    if len(paths) == 2:
        request = _for_terminal(request, given, read.sequences)
    rehearse(request, read.sequences)
    check_identity(given, request, bool(drawn and not shown.dot_plot))
    if request.format == "graphpart":
        inputs.warn_of_headings(paths[0], messages.warn)
    devices = select_device(given)
    chosen = replace(request.options, **which)
    if chosen.cluster:  # which chooses by itself
        chosen = replace(chosen, devices=given.devices)
    return TableJob(request, read, chosen, devices, drawn, given, messages)


def _for_terminal(request: Request, given: Given, sets: Sequence[Sequences]) -> Request:
    """The alignments of few pairs in place of their table, where a terminal gets them
    and no option says what it gets."""
    said = given.out, given.format, given.columns, given.output, given.identity
    few = max(map(len, sets)) <= FEW
    short = max(x.lengths.max(initial=0) for x in sets) <= LONGEST
    if said != (None,) * 5 or given.json or not (few and short):
        return request
    if not output.standard_output().isatty():
        return request
    chosen = replace(request.options, output="alignment")
    return replace(request, options=chosen, format="pair")


def _run(
    job: TableJob,
    plan: Mapping,
    compute: Callable[[api.PairOptions], Computed],
    further: Iterable[str] = (),
    saved: SavedRun | None = None,
) -> int:
    """Run a planned job; its exit code.

    compute : takes the options with a report of progress
    further : lines that say what will be done, behind the plan
    saved : the state of the run
    """
    request, given, drawn = job.request, job.given, job.drawn
    lines = report.plan_lines(plan) if given.verbose else []
    heading = [report.heading(request, plan), *lines, *further, *_expected(job, plan)]

    def reported(progress: Report | None) -> Computed:
        busy = {"busy": progress.busy} if progress else {}
        return compute(replace(job.options, progress=progress, **busy))

    def finish(result: Computed) -> Iterator[str]:
        info, rows, table = result
        if table is not None:
            write(table, request, given.force)
            if drawn:
                from jaxalign.cli import pictures

                pictures.draw(drawn, table, request, job.messages)
        filters = str(api.filters_of(request.options))
        yield report.summary(info, rows["kept"], filters)

    def about(result: Computed) -> dict:
        info, rows, _ = result
        device = device_of(info, job.devices)
        return report.about_run(request, job.read, info, rows, device)

    return run(given, job.messages, heading, reported, finish, about, saved=saved)


def _expected(job: TableJob, plan: Mapping) -> list[str]:
    """A line about a long job; the parts that a folder has are not computed again."""
    chosen, cells, rows = job.options, plan["cells"], plan["pairs"]
    if chosen.cluster is not None:
        return []
    pieces = getattr(plan, "parts", ())
    if pieces:
        left = [
            x
            for x in jobs.share(list(pieces), chosen.shard)
            if x.index not in chosen.skip
        ]
        cells, rows = sum(x.cells for x in left), sum(x.stop - x.start for x in left)
    proofs, row_bytes = chosen.min_identity is not None and chosen.filter, None
    if job.request.out is not None and not api.filters_of(chosen):
        row_bytes = partial(_bytes_of, job, rows)
    return report.expected(cells, chosen.output, chosen, row_bytes, proofs)


# Bytes of a row beside its two names: as text, and in Parquet, which knows names once
ROW_BYTES = {
    "score": (6, 2),
    "identity": (23, 5),
    "stats": (42, 8),
    "alignment": (42, 20),
}
SAMPLE = 1000  # names whose mean length is that of all


def _bytes_of(job: TableJob, rows: int) -> float:
    """Bytes of rows as they are written, about; formats of alignments hold more."""
    text, packed = ROW_BYTES[job.options.output]
    if job.request.format == "parquet":
        return rows * packed
    sides = (side.names[:SAMPLE] for side in job.read.sequences)
    names = [sum(map(len, some)) / max(len(some), 1) for some in sides]
    return rows * (text + names[0] + names[-1])


def _whole(table: Table) -> Computed:
    """A result computed in one piece, with its figures."""
    return table.info, {"kept": len(table), "max_score": parts.best_score(table)}, table


def _checkpoint(job: TableJob) -> SavedRun | None:
    """The file of the state of very large pairs, beside the output; None where the run
    has none."""
    request, read = job.request, job.read
    if request.out in (None, output.STDOUT) or not all(map(os.path.isfile, read.paths)):
        return None

    def manifest() -> dict:
        # Digests of files are read when they are needed, which is in few runs.
        hashed = replace(read, hashes=tuple(map(sha256, read.paths)))
        about = {
            "mode": request.options.mode,
            "free_ends": report.free_ends(request),
            "output": request.options.output,
            "filters": request.filters,
            "strand": job.options.strand,
        }
        return report.manifest(report.files(hashed), request.scoring, about)

    return SavedRun(str(request.out), manifest)


def read_inputs(
    paths: tuple[str, ...],
    request: Request,
    options: Given,
    hashed: bool,
    messages: Messages,
    profile: bool = False,
):
    """(the request, scored as the letters ask for it; the files of a job)."""
    about = request.scoring, options.scoring, hashed, messages
    as_given = not hasattr(options, "strand")
    local = request.options.mode == "local" and request.options.output != "identity"
    kinds: Any = {"profile": profile, "local": local, "as_given": as_given}
    read = inputs.read(paths, *about, **kinds)
    return replace(request, scoring=read.scoring), read


def rehearse(request: Request, sequences: Sequence[Sequences]) -> None:
    """Write a table of no rows, so that a refusal comes before the work."""
    if request.format is None:
        return
    names = ("query", "target", "score", *HELD.get(request.options.output, STATS))
    columns = {name: np.zeros(0, np.int32) for name in names}
    paths = (np.zeros(0, np.uint32), np.zeros(1, np.int64))
    runs = paths if request.options.output == "alignment" else (None, None)
    sides = sequences[0], sequences[-1]
    about = request.scoring, request.options.mode, frozenset(), "", {}
    table = Table(columns, *sides, *about, *runs)
    about = request.format, request.columns, request.identity
    formats.write(table, os.devnull, *about)


def write(table: Table, request: Request, force: bool) -> None:
    """Write a table to where the request says, if anywhere."""
    if request.out is not None:
        columns, identity = request.columns, request.identity
        rows = request.rows(table)
        formats.write(rows, request.out, request.format, columns, identity, force)


def select_device(options: Given) -> list:
    """The devices of the platform that is named; none where it is left open, since a
    small job needs no JAX to look for them."""
    named = options.device
    return [] if named == "auto" else api.select_device(named)


def device_of(info: Mapping, devices: list) -> dict:
    """The platform, kind and number of what has computed."""
    if info["implementation"] == "rows":
        return {"platform": "cpu", "kind": "NumPy", "count": 1}
    return api.describe_device(devices or api.select_device("auto"))
