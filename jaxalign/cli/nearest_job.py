"""The straight line of ``jaxalign nearest``."""

from dataclasses import dataclass, replace

from jaxalign.cli import corpus_run, inputs, link_job, report
from jaxalign.cli.link_job import LinkJob
from jaxalign.cli.options import CorpusRunOptions, ListOptions, VerbOptions
from jaxalign.cli.picture_options import NearestPictures
from jaxalign.cli.terminal import answer_json
from jaxalign.database.nearest import (
    By,
    Nearest,
    NearestOptions,
    check,
    files_of,
    histogram,
    html,
    nearest_of,
)
from jaxalign.errors import UsageError
from jaxalign.io import output
from jaxalign.io.source import sha256


@dataclass(frozen=True)
class NearestRequest:
    """The options of ``nearest`` of its own."""

    tests: str
    corpus: str
    by: By
    bands: str
    top: int


def run(
    request: NearestRequest,
    pictures: NearestPictures,
    listed: ListOptions,
    long: CorpusRunOptions,
    options: VerbOptions,
) -> int:
    """``jaxalign nearest TEST CORPUS``."""
    # 1 check and read the tests, 2 scan the corpus, 3 say and write
    corpus_run.check(long, listed.out, request.corpus)
    files = files_of(request.corpus)
    job = prepare(request, files, pictures, listed, options)
    chosen = settings(request, job)
    check(chosen, job.read.scoring)
    (tests,), scoring = job.read.sequences, job.read.scoring
    tests = tests.between(*corpus_run.share(len(tests), long))
    saved = corpus_run.checkpoint(job, long, chosen, files, listed.out)
    arrays = saved and saved.load(long.resume, listed.force)
    job.messages.say(f"{len(tests):,} test sequences against {request.corpus}")
    with job.watched() as watched:
        seen = replace(chosen, progress=watched.progress)
        corpus = request.corpus, scoring, seen
        near = nearest_of(tests, *corpus, saved, arrays)
    finish(job, request, near, pictures, listed, files)
    if saved is not None:
        saved.remove()
    return 0


def prepare(
    request: NearestRequest,
    files: tuple[str, ...],
    pictures: NearestPictures,
    listed: ListOptions,
    options: VerbOptions,
) -> LinkJob:
    """Options and outputs checked, test sequences read."""
    if request.tests == request.corpus == "-":
        raise UsageError("'-' twice: standard input can be read once")
    outs = (listed.out, pictures.report)
    link_job.check_plot(pictures.plot, listed.force, (request.tests, *files), outs)
    letters = inputs.opening(files[0])
    about = listed.force, files, True
    return link_job.prepare((request.tests,), options, outs, *about, letters=letters)


def settings(request: NearestRequest, job: LinkJob) -> NearestOptions:
    """The options of the scan.

    Raises
    ------
    UsageError
        An edge of a band is no number.
    """
    try:
        bands = tuple(float(word) for word in request.bands.split(","))
    except ValueError as error:
        raise UsageError(f"--bands {request.bands}: numbers are needed") from error
    links = job.options
    return NearestOptions(
        by=request.by,
        top=request.top,
        bands=bands,
        mode=links.mode,
        free_ends=links.free_ends,
        identity=links.identity,
        min_length_ratio=links.min_length_ratio,
        filter=links.filter,
        unknown=job.verb.scoring.unknown,
        implementation=links.implementation,
        memory_budget=links.memory_budget,
        threads=links.threads,
        devices=links.devices,
    )


def finish(
    job: LinkJob,
    request: NearestRequest,
    near: Nearest,
    pictures: NearestPictures,
    listed: ListOptions,
    files: tuple[str, ...],
) -> None:
    """Write and say what was found."""
    count, wildcard = near.info["substituted"], near.tests.alphabet.wildcard
    job.messages.warn_of_letters(request.corpus, count, wildcard)
    link_job.write_table(listed.out, near.columns(), job.verb)
    if pictures.report is not None:
        output.write_text(pictures.report, [html(near)])
    if pictures.plot is not None:
        _plot(pictures.plot, near)
    job.messages.say("\n".join((near.heading(), near.definition, *near.band_lines())))
    job.messages.say(f"{near.comparisons()}; {near.info['seconds']:.1f} s")
    if job.verb.summary.json:
        answer_json(as_dict(job, near, files))


def as_dict(job: LinkJob, near: Nearest, files: tuple[str, ...]) -> dict:
    """A run, as plain values."""
    bands = zip(near.band_names, near.band_counts.tolist(), strict=True)
    return {
        "versions": report.versions(),
        "definition": near.definition,
        "by": near.by,
        "inputs": report.files(job.read),
        "corpus": {
            "files": [{"path": path, "sha256": sha256(path)} for path in files],
            "records": near.info["sequences"],
            "residues": near.info["residues"],
            "substituted": near.info["substituted"],
        },
        "bands": dict(bands),
        "pairs": {name: near.info[name] for name in ("compared", "aligned")},
        "implementation": near.info["implementation"],
        "seconds": near.info["seconds"],
        "warnings": job.messages.warnings,
    }


def _plot(path: str, near: Nearest) -> None:
    from jaxalign.io import picture

    counts, edges = histogram(near)
    axis = f"{near.definition.partition(';')[0]} of the nearest"
    picture.histogram(path, counts, edges, axis, near.heading(), unit="test sequences")
