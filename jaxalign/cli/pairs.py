"""The straight line of every verb that aligns: options -> inputs -> table -> files."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jaxalign.cli import inputs, report, terminal
from jaxalign.cli.derive import Given
from jaxalign.cli.inputs import Inputs
from jaxalign.cli.request import Pictures, Request, resolve
from jaxalign.cli.terminal import Messages, answer_json
from jaxalign.errors import UsageError
from jaxalign.io import formats, output
from jaxalign.io.runs import SavedRun
from jaxalign.io.source import STDIN, sha256
from jaxalign.model.alignment import SPANS
from jaxalign.model.alphabet import Sequences
from jaxalign.model.choices import Strand
from jaxalign.model.table import Table
from jaxalign.pairs import api, jobs
from jaxalign.pairs.api import SavedState

# ------------------------------------------------------------------------------
# ``jaxalign align --resume``: the state of very large pairs, beside the output.


def pair_checkpoint(
    request: Request, read: Inputs, strand: Strand | None
) -> SavedRun | None:
    """The file of the state of a run; None where it has none."""
    out = request.out
    if out in (None, output.STDOUT) or not all(map(os.path.isfile, read.paths)):
        return None

    def manifest() -> dict:
        """All that the rows depend on; digests of files are read when they are needed,
        which is in few runs."""
        hashed = replace(read, hashes=tuple(map(sha256, read.paths)))
        return {
            "inputs": report.files(hashed),
            "scoring": report.scoring(request.scoring)
            | {"scores_sha256": report.digest(request.scoring.scores)},
            "mode": request.options.mode,
            "free_ends": report.free_ends(request),
            "output": request.options.output,
            "filters": request.filters,
            "strand": strand,
            "jaxalign": report.versions()["jaxalign"],
        }

    return SavedRun(str(out), manifest)


def state_of(saved: SavedRun | None, resume: bool, force: bool) -> SavedState | None:
    """The state of a run that was interrupted, or of one that begins.

    Raises
    ------
    UsageError
        See ``SavedRun.load``.
    """
    if saved is None:
        return None
    return SavedState(saved.load(resume, force) or {}, saved.save)


STATS = (*SPANS, "identities", "columns", "gap_openings", "gaps")
HELD = {"score": (), "identity": ("max_identities",)}


def align(given: Given) -> int:
    """``jaxalign align A B``."""
    if given.profile and given.embeddings:
        raise UsageError("--profile and --embeddings: A is either")
    if given.sequences is not None and not given.embeddings:
        raise UsageError("--sequences goes with --embeddings")
    if given.embeddings:
        if given.plot:
            raise UsageError("--plot is of letters, not of --embeddings")
        if given.strand is not None:
            raise UsageError("--strand is of nucleotides, not of --embeddings")
        if given.resume:
            raise UsageError("--resume is of letters, not of --embeddings")
        from jaxalign.cli import embeddings

        return embeddings.align(given)
    drawn = Pictures(dot_plot=given.plot) if given.plot else None
    how = given.profile, given.resume
    return _run((given.a, given.b), given, drawn, *how, strand=given.strand)


def all_pairs(given: Given, in_parts: Callable[..., int]) -> int:
    """``jaxalign all SEQS`` into one file.

    in_parts : computes and writes a large file of Parquet
    """
    plot, dendrogram = given.plot, given.dendrogram
    drawn = Pictures(plot, dendrogram) if plot or dendrogram else None
    which = {"include_self": given.include_self, "cluster": given.cluster}
    return _run((given.sequences,), given, drawn, in_parts=in_parts, **which)


def _run(
    paths: tuple[str, ...],
    options: Given,
    drawn: Pictures | None,
    profile: bool = False,
    resume: bool | None = None,
    in_parts: Callable[..., int] | None = None,
    **which: Any,
) -> int:
    # 1 check options, 2 read, 3 refuse what cannot be written, 4 plan, 5 align, 6 write
    request = resolve(options)
    if resume and (request.out in (None, output.STDOUT) or STDIN in paths):
        raise UsageError("--resume needs -o FILE, and inputs that can be read again")
    if drawn:
        from jaxalign.cli import pictures

        request = pictures.prepare(drawn, request, paths, options)
    messages = Messages(options.quiet)
    hashed = options.json
    request, read = read_inputs(paths, request, options, hashed, messages, profile)
    _check_counts(read)
    if drawn:
        pictures.check_counts(drawn, read.sequences)
    rehearse(request, read.sequences)
    if request.format == "graphpart":
        inputs.warn_of_headings(paths[0], messages.warn)
    devices = select_device(options)
    chosen = replace(request.options, **which)
    if chosen.cluster:  # which chooses by itself
        chosen = replace(chosen, devices=options.devices)
    if in_parts is not None and not drawn and _is_streamed(request, read, chosen):
        return in_parts(request, read, chosen, options, devices, messages)
    plan = api.plan_sets(*read.sequences, scoring=request.scoring, options=chosen)
    saved = state = None
    if resume is not None:
        saved = pair_checkpoint(request, read, chosen.strand)
        state = state_of(saved, resume, options.force)
    introduce(request, plan, options, messages)
    with terminal.reporting(options.progress, options.quiet) as progress:
        table = api.run_plan(plan, watched(chosen, progress), state)
    write(table, request, options.force)
    if drawn:
        pictures.draw(drawn, table, request, messages.warn)
    rows = {"kept": len(table), "max_score": best_score(table)}
    finish(request, read, table.info, rows, options, devices, messages)
    if saved is not None:
        saved.remove()
    return 0


def _is_streamed(
    request: Request, read: inputs.Inputs, chosen: api.PairOptions
) -> bool:
    """Whether rows of all pairs are written while others are computed: into a file of
    Parquet, where all of them are kept, and they are too many for one part."""
    parquet = request.out is not None and request.format == "parquet"
    if not parquet or chosen.cluster or api.filters_of(chosen):
        return False
    return jobs.rows_at_once(len(read.sequences[0])) is not None


def read_inputs(
    paths: tuple[str, ...],
    request: Request,
    options: Given,
    hashed: bool,
    messages: Messages,
    profile: bool = False,
):
    """(the request, scored as the letters ask for it; the files of a job, of which
    the result replaces none)."""
    output.check_inputs(request.out, (*paths, options.scoring.matrix))
    letters, warn = options.scoring, messages.warn
    read = inputs.read(paths, request.scoring, letters, hashed, warn, profile=profile)
    return replace(request, scoring=read.scoring), read


def introduce(
    request: Request, plan: Mapping, options: Given, messages: Messages
) -> None:
    """Say what will be done, before it is."""
    messages.say(report.heading(request, plan))
    if options.verbose:
        for line in report.plan_lines(plan):
            messages.say(line)


def best_score(table: Table):
    """The greatest score of the rows kept, None where there is none."""
    return table["score"].max().item() if len(table) else None


def _check_counts(read: inputs.Inputs) -> None:
    """Pairs are zipped, or one meets all."""
    counts = [len(sequences) for sequences in read.sequences]
    if 1 not in counts and len(set(counts)) > 1:
        (a, b), (m, n) = read.paths, counts
        raise UsageError(
            f"{a} has {m} records, {b} has {n}: pairs are zipped, so there must be "
            "as many, or one in either file (`jaxalign all` aligns a set to itself)"
        )


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


def watched(options: api.PairOptions, tell: Any) -> api.PairOptions:
    """Options with somebody who is told of progress, None for nobody."""
    return replace(options, progress=tell, busy=tell.busy) if tell else options


def write(table: Table, request: Request, force: bool) -> None:
    """Write a table to where the request says, if anywhere."""
    if request.out is not None:
        columns, identity = request.columns, request.identity
        formats.write(table, request.out, request.format, columns, identity, force)


def finish(
    request: Request,
    read: inputs.Inputs,
    info: Any,
    rows: dict,
    options: Given,
    devices: list,
    messages: Messages,
) -> None:
    """Say what has been done."""
    filters = str(api.filters_of(request.options))
    messages.say(report.summary(info, rows["kept"], filters))
    if options.json:
        about = (device_of(info, devices), messages.warnings)
        answer_json(report.about_run(request, read, info, rows, *about))


def select_device(options: Given) -> list:
    """The devices of the platform that is named; none where it is left open, since a
    small job needs no JAX to look for them."""
    named = options.device
    return [] if named == "auto" else api.select_device(named)


def device_of(info: dict, devices: list) -> dict:
    """The platform, kind and number of what has computed."""
    if info["implementation"] == "rows":
        return {"platform": "cpu", "kind": "NumPy", "count": 1}
    return api.describe_device(devices or api.select_device("auto"))
