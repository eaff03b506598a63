"""``jaxalign cluster`` and ``dedup``, and steps that all verbs of links share."""

from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jaxalign.cli import inputs, pairs, report, terminal
from jaxalign.cli.derive import Given
from jaxalign.cli.inputs import Inputs
from jaxalign.cli.request import devices_of, mode_of, scoring_of
from jaxalign.cli.terminal import answer_json
from jaxalign.errors import UsageError
from jaxalign.homology import api
from jaxalign.homology.api import Definition
from jaxalign.io import corpus_files, delimited, output
from jaxalign.io.delimited import KnownNames
from jaxalign.model.choices import Mode
from jaxalign.model.scoring import Scoring
from jaxalign.model.show import counted
from jaxalign.options import (
    AlignedEnds,
    Execution,
    HomologyOptions,
    LengthIdentity,
    Measure,
    shared,
)

# Why pairs are neither aligned nor excluded by proof
WHY_NOT = {
    "components": "other links connect the two",
    "greedy": "one of them has a representative",
}


@dataclass(frozen=True, eq=False)
class LinkJob:
    """A job whose options are checked and whose inputs are read."""

    read: Inputs
    options: HomologyOptions
    verb: Given
    messages: pairs.Messages

    @contextmanager
    def watched(self):
        """Yield the options with somebody who is told of progress."""
        with terminal.reporting(self.verb.progress, self.verb.quiet) as tell:
            if tell is None:
                yield self.options
            else:
                yield replace(self.options, progress=tell, busy=tell.busy)


def prepare(
    paths: tuple[str, ...],
    verb: Given,
    outs: Iterable[str | None],
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
    linked, identity = linked_as(verb)
    chosen = Given(**vars(verb) | {"mode": linked})
    scoring, (mode, free) = known or scoring_of(verb.scoring), mode_of(chosen)
    outs = [path for path in outs if path is not None]
    if verb.json and output.STDOUT in outs:
        raise UsageError("--json takes standard output: a list needs -o FILE")
    if len(set(outs)) < len(outs):
        raise UsageError(f"two outputs are one: {', '.join(outs)}")
    for path in outs:
        output.check(path, verb.force)
        output.check_inputs(path, (*paths, *beside, verb.scoring.matrix))
    messages = pairs.Messages(verb.quiet)
    hashed = hashed or verb.json
    about = scoring, verb.scoring, hashed, messages.warn
    read = inputs.read(paths, *about, letters)
    pairs.select_device(chosen)
    ends = {"mode": mode, "free_ends": free, "identity": identity}
    given = shared(verb, Measure, Execution, devices=devices_of(verb), **ends)
    return LinkJob(read, HomologyOptions(**given), verb, messages)


def scan_options(job: LinkJob, record: type, **changes: Any) -> Any:
    """The options of a scan of a corpus, from those of its links.

    record : class of the options
    """
    links = shared(job.options, AlignedEnds, Measure, Execution)
    unknown = job.verb.scoring.unknown
    return record(**links | {"unknown": unknown} | changes)


def linked_as(links: Given) -> tuple[Mode | None, LengthIdentity]:
    """The mode, None where another option says it, and the length of a link.

    Raises
    ------
    UsageError
        Another option says otherwise.
    """
    if links.link is None:
        return links.mode, links.identity or "longer"
    if links.mode or links.identity or links.free_ends:
        raise UsageError(
            f"--link {links.link} says the mode and the length: leave out --mode, "
            "--identity and --free-ends"
        )
    local = links.link == "local"
    return ("local", "shorter") if local else ("global", "longer")


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


def write_table(path: str | None, columns: dict, verb: Given) -> None:
    """Write columns in the format of a suffix; None is standard output, which JSON may
    have."""
    if path is None and verb.json:
        return
    delimited.write_list(path or output.STDOUT, columns, delimited.text_field)


def known_names(path: str, read: Inputs) -> KnownNames:
    """The names that tables may call the sequences of a file by."""
    return KnownNames(set(read.sequences[0].names), path)


def say_json(job: LinkJob, definition: Definition, info: dict, about: dict) -> None:
    """Print one JSON object about a run, where it was asked for."""
    if not job.verb.json:
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


def cluster(given: Given) -> int:
    """``jaxalign cluster SEQS``."""
    path, out, fasta = given.sequences, given.out, given.representatives
    delimited.check_list_format(out)
    check_plot(given.plot, given.force, (path,), (out, fasta))
    result = _clusters(given, given.method, (out, fasta))
    write_table(out, result.columns(), given)
    if fasta:
        _write_representatives(path, fasta, result)
    if given.plot:
        from jaxalign.cli import pictures

        pictures.clusters(given.plot, result)
    return 0


def dedup(given: Given) -> int:
    """``jaxalign dedup SEQS``."""
    delimited.check_list_format(given.list_out)
    result = _clusters(given, "greedy", (given.out, given.list_out))
    if given.out or not given.json:
        _write_representatives(given.sequences, given.out or output.STDOUT, result)
    if given.list_out:
        write_table(given.list_out, result.columns(), given)
    return 0


def _clusters(given: Given, method: str, outs: tuple[str | None, ...]) -> api.Clusters:
    # 1 check and read, 2 say what will be done, 3 cluster, 4 say what was done
    job = prepare((given.sequences,), given, outs)
    (data,), scoring = job.read.sequences, job.read.scoring
    definition = api.define(scoring, job.options, "--min-identity", given.min_identity)
    job.messages.say(f"{len(data):,} sequences; linked: {definition}")
    with job.watched() as chosen:
        seen = replace(definition, options=chosen)
        every_link = given.json  # which has their number
        result = api.clusters_of(data, seen, method, every_link)
    job.messages.say(pairs_line(result.info, WHY_NOT.get(method)))
    alone = int((result.sizes == 1).sum())
    job.messages.say(f"{result.heading()}; {alone:,} alone ({method})")
    about = {"method": method, "clusters": len(result)}
    about |= {"largest": int(result.sizes.max(initial=0)), "alone": alone}
    say_json(job, definition, result.info, about)
    return result


def _write_representatives(path: str, out: str, result: api.Clusters) -> None:
    wanted = np.zeros(len(result.sequences), bool)
    wanted[result.representatives] = True
    output.write_text(out, corpus_files.pieces(path, result.sequences, wanted))
