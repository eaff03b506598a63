"""``jaxalign cluster`` and ``dedup``, and steps that all verbs of links share."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from jaxalign.cli import inputs, pairs, report
from jaxalign.cli.derive import Given, changed
from jaxalign.cli.inputs import Inputs
from jaxalign.cli.request import devices_of, mode_of, scoring_of
from jaxalign.cli.run import check_outputs, check_resume, place_of, run
from jaxalign.cli.terminal import Messages, Report, as_json
from jaxalign.errors import UsageError
from jaxalign.homology import api
from jaxalign.homology.api import Definition
from jaxalign.io import corpus_files, delimited, output
from jaxalign.io.delimited import KnownNames
from jaxalign.io.runs import SavedRun
from jaxalign.model.alphabet import Sequences, reading_of
from jaxalign.model.scoring import Scoring
from jaxalign.model.show import counted
from jaxalign.model.source import sha256
from jaxalign.options import (
    AlignedEnds,
    Execution,
    HomologyOptions,
    Measure,
    shared,
)
from jaxalign.pairs.api import SavedState

MERGES_SHOWN = 20  # lines
SHOWN = ("worst", "full_histogram")  # options of audits
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
    messages: Messages

    def options_with(self, progress: Report | None) -> HomologyOptions:
        """The options with a report of progress, None for none."""
        if progress is None:
            return self.options
        return replace(self.options, progress=progress, busy=progress.busy)


def has_cut(given: Given) -> bool:
    """Whether a cut by identity or by relative score is named."""
    return (given.min_identity, given.min_relative_score) != (None, None)


def prepare(
    paths: tuple[str, ...],
    verb: Given,
    outs: tuple[str | None, ...],
    beside: Iterable[str | None] = (),
    hashed: bool = False,
    known: Scoring | None = None,
    letters: inputs.Sides = (),
) -> LinkJob:
    """Check options and outputs, and read the inputs.

    Parameters
    ----------
    outs : paths that will be written, None for none; the first is that of the answer,
        which has standard output where it is None
    beside : further inputs, which no output may replace
    hashed : whether SHA-256 of the inputs are wanted
    known : the scoring, where something else than options says it
    letters : of what the inputs are compared with, where it is not read yet
    """
    scoring, ends = known or scoring_of(verb.scoring), ends_of_links(verb)
    out, *others = outs
    tables = [x.table for x in getattr(verb, "edges", None) or ()]
    tables.append(getattr(verb, "together", None))
    files = (*paths, *beside, *tables, verb.scoring.matrix)
    check_outputs(verb, out, others, files, [getattr(verb, "plot", None)])
    messages = Messages(verb.quiet)
    hashed = hashed or verb.json
    about = scoring, verb.scoring, hashed, messages
    # Of links a line says the strands; only those of DNA alone may be as given.
    as_given = verb.strand == "plus"
    read = inputs.read(paths, *about, letters, as_given=as_given)
    pairs.select_device(verb)
    own = {x: getattr(verb, x) for x in SHOWN if hasattr(verb, x)}
    # Scans of a corpus know what their score is about (``cli.corpus``).
    scans = hasattr(verb, "max_evalue") or hasattr(verb, "bands")
    if known is not None:  # a certificate says what a link is
        own["link"] = "whole"
    elif not scans:
        names = "link", "min_score", "min_relative_score", "edges"
        own |= {name: getattr(verb, name) for name in names}
        own |= {"together": getattr(verb, "together", None)}
    given = shared(verb, Measure, Execution, devices=devices_of(verb), **ends, **own)
    links = HomologyOptions(**given)
    if not scans:
        links = api.with_link(links, read.scoring, read.sequences)
    return LinkJob(read, links, verb, messages)


def scan_options(job: LinkJob, record: type, **changes: Any) -> Any:
    """The options of a scan of a corpus, from those of its links.

    record : class of the options
    """
    links = shared(job.options, AlignedEnds, Measure, Execution)
    reading = reading_of(job.verb.scoring)._asdict()
    return record(**links | reading | changes)


def ends_of_links(links: Given) -> dict[str, Any]:
    """Mode, free ends and length of a link, as far as options say them.

    Raises
    ------
    UsageError
        They say other than ``--link``.
    """
    if links.link and (links.mode or links.identity or links.free_ends):
        raise UsageError(
            f"--link {links.link} sets the mode and the length: leave out --mode, "
            "--identity and --free-ends"
        )
    scoring, said = links.scoring, (links.mode, links.free_ends, links.identity)
    if links.link or (said == (None,) * 3 and not scoring.preset):
        return {}
    mode, free = mode_of(links)
    return {"mode": mode, "free_ends": free, "identity": links.identity or "longer"}


def checkpoint(
    job: LinkJob, definition: Definition, about: dict, place: str | None
) -> tuple[SavedRun | None, SavedState | None]:
    """The file of the state of a run, and what it holds; None where it has none.

    about : what the links depend on beside their definition, as plain values
    place : the output beside which it is
    """
    given, paths = job.verb, job.read.paths
    if place is None or not all(map(os.path.isfile, paths)):
        return None, None

    def describe() -> dict:
        # Digests of files are read where there is a state, which few runs have.
        read = replace(job.read, hashes=tuple(map(sha256, paths)))
        described = {
            "verb": about,
            "definition": about_definition(definition),
            "reading": reading_of(given.scoring).said(),
            "filter": job.options.filter,
            "json": given.json,
        }
        return report.manifest(report.files(read), read.scoring, described)

    saved = SavedRun(place, describe)
    arrays = saved.load(given.resume, given.force) or {}
    return saved, SavedState(arrays, saved.save)


def expected(definition: Definition, *sets: Sequences) -> list[str]:
    """A line about the pairs of one set, or across some, where these take long.

    Where a link has a score, all pairs are scored, and those that reach it take about
    as long again.
    """
    letters = [int(data.lengths.sum()) for data in sets]
    alone = sets[0].lengths.tolist() if len(sets) == 1 else letters
    cells = (sum(letters) ** 2 - sum(x**2 for x in alone)) / 2
    options = definition.options
    cells *= 1 + (options.strand == "both")
    if options.min_score is not None or options.min_relative_score is not None:
        return report.expected(2 * cells, "score", options)
    return report.expected(cells, "identity", options, proofs=options.filter)


def write_table(
    path: str | None, columns: dict, verb: Given, cuts: Sequence[float] = ()
) -> None:
    """Write columns in the format of a suffix; None is standard output, which JSON may
    have.

    cuts : across which no number is rounded
    """
    if path is None and verb.json:
        return
    delimited.write_list(path or output.STDOUT, columns, delimited.text_field, cuts)


def defined(job: LinkJob, cut: Any, sets: Iterable[Sequences] = ()) -> Definition:
    """The checked definition of a link, and the tables of edges and of groups read.

    sets : whose short sequences count, unless they are not known yet
    """
    definition = api.define(job.read.scoring, job.options, cut, sets)
    return api.with_evidence(definition, every_name(job))


def every_name(job: LinkJob) -> list[api.NamesOfSet]:
    """The names of the sequences of each file."""
    files = zip(job.read.paths, job.read.sequences, strict=True)
    return [(data.names, path) for path, data in files]


def evidence_lines(definition: Definition) -> Iterator[str]:
    """A line about each table of edges, and one about groups."""
    evidence = definition.evidence
    for table in () if evidence is None else evidence.tables:
        about = table.about
        lacking = about["sequences_without_a_row"]
        text = (
            f"{counted(about['pairs'], 'pair')} by {table}, of {about['rows']:,} rows"
        )
        if unknown := about["rows_of_unknown_names"]:
            text += f"; {unknown:,} of unknown names"
        yield f"{text}; {counted(lacking, 'sequence')} without a row"
    if evidence is not None and evidence.together is not None:
        about = evidence.together
        counts = (f"{n:,} of {title}" for title, n in about["columns"].items())
        lacking = counted(about["sequences_without_a_group"], "sequence")
        yield f"groups that stay together: {', '.join(counts)}; {lacking} in none"


def known_names(path: str, read: Inputs) -> KnownNames:
    """The names that tables may call the sequences of a file by."""
    return KnownNames(dict.fromkeys(read.sequences[0].names), path)


def about_definition(definition: Definition) -> dict:
    """The definition of a link as plain values."""
    return definition.about() | {"text": str(definition)}


def about_links(job: LinkJob, definition: Definition, info: dict) -> dict:
    """The linked pairs of a run as plain values, for ``--json``."""
    names = ("all", "aligned", "excluded", "at_or_above_cut")
    return {
        "definition": about_definition(definition),
        "inputs": report.files(job.read),
        "pairs": {name: info[name] for name in names},
    }


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


def cluster(given: Given) -> int:
    """``jaxalign cluster SEQS``."""
    out, fasta, certificate = given.out, given.fasta, given.certificate
    delimited.check_list_format(out)
    if not has_cut(given):
        raise UsageError(
            "cluster: --min-identity is missing: the cut, 0 to 1, or "
            "--min-relative-score"
        )
    if certificate or given.update:
        api.certificate.check_growing(given.method, given.edges)
    if certificate and place_of(given) is None:
        raise UsageError("--certificate describes a table in a file: add -o FILE")

    def write(result: api.Clusters) -> None:
        write_table(out, result.columns(), given, result.cuts)
        if certificate:
            about = as_json(result.certificate(out))
            output.write_text(certificate, [about + "\n"])
        if fasta:
            _write_representatives(given, fasta, result)
        if given.plot:
            from jaxalign.cli import pictures

            pictures.clusters(given.plot, result)

    return _clusters(given, given.method, (out, fasta, certificate), write)


def dedup(given: Given) -> int:
    """``jaxalign dedup SEQS``."""
    delimited.check_list_format(given.list_out)
    if not has_cut(given):
        given = changed(given, min_identity=api.DUPLICATES)

    def write(result: api.Clusters) -> None:
        if given.out or not given.json:
            _write_representatives(given, given.out or output.STDOUT, result)
        if given.list_out:
            write_table(given.list_out, result.columns(), given, result.cuts)

    return _clusters(given, "greedy", (given.out, given.list_out), write)


def _clusters(
    given: Given,
    method: str,
    outs: tuple[str | None, ...],
    write: Callable[[api.Clusters], None],
) -> int:
    update = getattr(given, "update", None)
    check_resume(given, (given.sequences, *filter(None, [update])))
    old, beside, described = None, (), {"method": method}
    if update is not None:
        old = api.read_clusters(update)
        beside, described = (update, old.table), described | {"update": sha256(update)}
        if given.min_score is None:
            given = changed(given, min_score=old.min_score)
    job = prepare((given.sequences,), given, outs, beside)
    (data,) = job.read.sequences
    definition = defined(job, given.min_identity, [data])
    heading = [f"{len(data):,} sequences; linked: {definition}"]
    heading += evidence_lines(definition)
    if old is None:
        heading += expected(definition, data)
    place = place_of(given)
    saved, state = checkpoint(job, definition, described, place)

    def compute(progress: Report | None) -> api.Clusters:
        reported = replace(definition, options=job.options_with(progress))
        if old is not None:
            return api.grown_of(data, reported, old, state)
        every_link = given.json  # which has their number
        return api.clusters_of(data, reported, method, every_link, state)

    def finish(result: api.Clusters) -> Iterator[str]:
        yield pairs_line(result.info, WHY_NOT.get(method))
        singles = int((result.sizes == 1).sum())
        yield f"{result.heading()}; {singles:,} alone ({method})"
        if (growth := result.growth) is not None:
            yield growth.heading()
            yield from islice(growth.lines(), MERGES_SHOWN)
            if (more := len(growth.merged) - MERGES_SHOWN) > 0:
                yield f"{more:,} more merged clusters, which --json lists"
        write(result)

    def about(result: api.Clusters) -> dict:
        return about_links(job, definition, result.info) | {
            "method": method,
            "clusters": len(result),
            "largest": int(result.sizes.max(initial=0)),
            "alone": int((result.sizes == 1).sum()),
            **({} if result.growth is None else {"update": result.growth.about()}),
        }

    return run(given, job.messages, heading, compute, finish, about, saved=saved)


def _write_representatives(given: Given, out: str, result: api.Clusters) -> None:
    wanted = np.zeros(len(result.sequences), bool)
    wanted[result.representatives] = True
    reading, path = reading_of(given.scoring), given.sequences
    output.write_text(out, corpus_files.pieces(path, result.sequences, wanted, reading))
