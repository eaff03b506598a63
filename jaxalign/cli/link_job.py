"""The verbs of linked sequences share these: options, inputs, messages, tables."""

from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jaxalign.cli import inputs, job, report, terminal
from jaxalign.cli.inputs import Inputs
from jaxalign.cli.options import (
    LinkOptions,
    ListOptions,
    ModeOptions,
    Options,
    VerbOptions,
)
from jaxalign.cli.request import devices_of, mode_of, scoring_of
from jaxalign.cli.terminal import answer_json
from jaxalign.errors import UsageError
from jaxalign.homology import api
from jaxalign.homology.api import Definition, HomologyOptions
from jaxalign.io import corpus_files, delimited, output
from jaxalign.io.delimited import KnownNames
from jaxalign.model.scoring import Scoring
from jaxalign.model.show import counted


@dataclass(frozen=True, eq=False)
class LinkJob:
    """A job whose options are checked and whose inputs are read."""

    read: Inputs
    options: HomologyOptions
    verb: VerbOptions
    messages: job.Messages

    @contextmanager
    def watched(self):
        """Yield the options with somebody who is told of progress."""
        wanted = self.verb.messages
        with terminal.reporting(wanted.progress, wanted.quiet) as tell:
            if tell is None:
                yield self.options
            else:
                yield replace(self.options, progress=tell, busy=tell.busy)


def prepare(
    paths: tuple[str, ...],
    verb: VerbOptions,
    outs: Iterable[str | None],
    force: bool,
    beside: Iterable[str | None] = (),
    hashed: bool = False,
    known: Scoring | None = None,
    letters: Any = (),
) -> LinkJob:
    """Check options and outputs, and read the inputs.

    Parameters
    ----------
    outs : paths that will be written, None for none
    beside : further inputs, which no output may replace
    hashed : whether SHA-256 of the inputs are wanted
    known : the scoring, where something else than options says it
    letters : of what the inputs are compared with, where it is not read yet

    Raises
    ------
    UsageError, InputError
    """
    links = linked_as(verb.links)
    ends = ModeOptions(mode=links.mode, free_ends=links.free_ends)
    chosen = Options(scoring=verb.scoring, mode=ends, machine=verb.machine)
    scoring, (mode, free) = known or scoring_of(verb.scoring), mode_of(chosen)
    outs = [path for path in outs if path is not None]
    if verb.summary.json and output.STDOUT in outs:
        raise UsageError("--json takes standard output: a list needs -o FILE")
    if len(set(outs)) < len(outs):
        raise UsageError(f"two outputs are one: {', '.join(outs)}")
    for path in outs:
        output.check(path, force)
        output.check_inputs(path, (*paths, *beside, verb.scoring.matrix))
    messages = job.Messages(verb.messages.quiet)
    hashed = hashed or verb.summary.json
    about = scoring, verb.scoring, hashed, messages.warn
    read = inputs.read(paths, *about, letters)
    job.select_device(chosen)
    options = HomologyOptions(
        mode=mode,
        free_ends=free,
        identity=links.identity or "longer",
        min_length_ratio=links.min_length_ratio,
        filter=not links.no_filter,
        implementation=verb.machine.implementation,
        memory_budget=verb.machine.memory_budget,
        threads=verb.machine.threads,
        devices=devices_of(verb.machine),
    )
    return LinkJob(read, options, verb, messages)


def linked_as(links: LinkOptions) -> LinkOptions:
    """Link options with the mode and the length that ``--link`` stands for.

    Raises
    ------
    UsageError
        Another option says otherwise.
    """
    if links.link is None:
        return links
    if links.mode or links.identity or links.free_ends:
        raise UsageError(
            f"--link {links.link} says the mode and the length: leave out --mode, "
            "--identity and --free-ends"
        )
    local = links.link == "local"
    mode, identity = ("local", "shorter") if local else ("global", "longer")
    return replace(links, mode=mode, identity=identity)


def check_plot(
    path: str | None,
    force: bool,
    inputs: Iterable[str | None],
    outs: Iterable[str | None],
) -> None:
    """Refuse a picture that cannot be written, before any work is done for it."""
    if path is not None:
        from jaxalign.cli import pictures

        pictures.check(path, force, inputs, outs)


def write_table(path: str | None, columns: dict, verb: VerbOptions) -> None:
    """Write columns in the format of a suffix; None is standard output, which JSON may
    have."""
    if path is None and verb.summary.json:
        return
    delimited.write_list(path or output.STDOUT, columns, delimited.text_field)


def known_names(path: str, read: Inputs) -> KnownNames:
    """The names that tables may call the sequences of a file by."""
    return KnownNames(set(read.sequences[0].names), path)


def say_json(job: LinkJob, definition: Definition, info: dict, about: dict) -> None:
    """Print one JSON object about a run, where it was asked for."""
    if not job.verb.summary.json:
        return
    names = ("all", "aligned", "excluded", "at_or_above_cut")
    about_run = {
        "versions": report.versions(),
        "definition": definition.about() | {"text": str(definition)},
        "inputs": report.files(job.read),
        "pairs": {name: info[name] for name in names},
        **about,
        "warnings": job.messages.warnings,
    }
    answer_json(about_run)


def pairs_line(info: dict, why_not: str | None = None) -> str:
    """How many pairs there were, and how many of them were aligned.

    why_not : why others are neither aligned nor excluded
    """
    excluded = info["excluded"]
    text = f"{counted(info['all'], 'pair')}, {info['aligned']:,} aligned"
    reasons = (f"{count:,} by {bound}" for bound, count in excluded.items())
    if excluded:
        text += f", excluded by proof: {'; '.join(reasons)}"
    unknown = info["all"] - info["aligned"] - sum(excluded.values())
    if unknown > 0:
        text += f"; {unknown:,} not aligned, {why_not}"
    return text


__all__ = [
    "LinkJob",
    "check_plot",
    "known_names",
    "pairs_line",
    "prepare",
    "report",
    "say_json",
    "write_table",
]

# ------------------------------------------------------------------------------
# The straight lines of ``jaxalign cluster`` and ``jaxalign dedup``.

# Why pairs are neither aligned nor excluded by proof
WHY_NOT = {
    "components": "other links connect the two",
    "greedy": "one of them has a representative",
}


@dataclass(frozen=True)
class ClusterRequest:
    """The options of a clustering of its own; ``fasta`` is where representatives go."""

    min_identity: float
    method: str
    fasta: str | None
    plot: str | None = None


def cluster(
    path: str, request: ClusterRequest, listed: ListOptions, options: VerbOptions
) -> int:
    """``jaxalign cluster SEQS``."""
    outs = (listed.out, request.fasta)
    delimited.check_list_format(listed.out)
    check_plot(request.plot, listed.force, (path,), outs)
    result = _clusters(path, request, outs, listed.force, options)
    write_table(listed.out, result.columns(), options)
    if request.fasta:
        _write_representatives(path, request.fasta, result)
    if request.plot:
        from jaxalign.cli import pictures

        pictures.clusters(request.plot, result)
    return 0


def dedup(
    path: str,
    request: ClusterRequest,
    listed: str | None,
    force: bool,
    options: VerbOptions,
) -> int:
    """``jaxalign dedup SEQS``."""
    delimited.check_list_format(listed)
    result = _clusters(path, request, (request.fasta, listed), force, options)
    if request.fasta or not options.summary.json:
        _write_representatives(path, request.fasta or output.STDOUT, result)
    if listed:
        write_table(listed, result.columns(), options)
    return 0


def _clusters(
    path: str,
    request: ClusterRequest,
    outs: tuple[str | None, ...],
    force: bool,
    options: VerbOptions,
) -> api.Clusters:
    # 1 check and read, 2 say what will be done, 3 cluster, 4 say what was done
    job = prepare((path,), options, outs, force)
    cut, scoring = request.min_identity, job.read.scoring
    (data,) = job.read.sequences
    definition = api.define(scoring, job.options, "--min-identity", cut)
    job.messages.say(f"{len(data):,} sequences; linked: {definition}")
    with job.watched() as chosen:
        seen = replace(definition, options=chosen)
        every_link = options.summary.json  # which has their number
        result = api.clusters_of(data, seen, request.method, every_link)
    job.messages.say(pairs_line(result.info, WHY_NOT.get(request.method)))
    alone = int((result.sizes == 1).sum())
    job.messages.say(f"{result.heading()}; {alone:,} alone ({request.method})")
    about = {"method": request.method, "clusters": len(result)}
    about |= {"largest": int(result.sizes.max(initial=0)), "alone": alone}
    say_json(job, definition, result.info, about)
    return result


def _write_representatives(path: str, out: str, result: api.Clusters) -> None:
    wanted = np.zeros(len(result.sequences), bool)
    wanted[result.representatives] = True
    output.write_text(out, corpus_files.pieces(path, result.sequences, wanted))
