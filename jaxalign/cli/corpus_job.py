"""``--resume`` and ``--shard`` of verbs that read a corpus block by block."""

import os
from dataclasses import asdict, dataclass, replace

import numpy as np

from jaxalign.cli import audit_job, inputs, link_job, report
from jaxalign.cli.audit_job import AuditRequest
from jaxalign.cli.link_job import LinkJob
from jaxalign.cli.options import (
    AuditOptions,
    CorpusRunOptions,
    ListOptions,
    NearestPictures,
    VerbOptions,
)
from jaxalign.cli.parts_job import shard_of
from jaxalign.cli.terminal import answer_json, as_json
from jaxalign.database.nearest import (
    By,
    Nearest,
    NearestOptions,
    check_nearest,
    files_of,
    histogram,
    html,
    nearest_of,
)
from jaxalign.errors import JaxalignError, UsageError
from jaxalign.homology.api import define
from jaxalign.homology.purge import (
    Corpus,
    Purge,
    PurgeOptions,
    cut_of,
    purge_of,
)
from jaxalign.io import corpus_files, output
from jaxalign.io.runs import SavedRun, about_file
from jaxalign.io.source import STDIN, sha256

FREE = ("implementation", "memory_budget", "threads", "devices", "progress")


def check_run(run: CorpusRunOptions, out: str | None, corpus: str) -> None:
    """Refuse what cannot be, before any work is done.

    Raises
    ------
    UsageError
    """
    shard_of(run.shard)
    if run.resume and (out in (None, output.STDOUT) or corpus == STDIN):
        raise UsageError("--resume needs -o FILE, and a corpus that can be read again")


def checkpoint(
    job: LinkJob,
    run: CorpusRunOptions,
    chosen: "NearestOptions | PurgeOptions",
    files: tuple[str, ...],
    out: str | None,
) -> SavedRun | None:
    """The file of the state of a run; None where it has none.

    chosen : options of the scan
    """
    if out in (None, output.STDOUT) or files == (STDIN,) or not _plain(files):
        return None
    options = {name: x for name, x in asdict(chosen).items() if name not in FREE}
    manifest = {
        "inputs": report.files(job.read),
        "corpus": [about_file(path) for path in files],
        "scoring": report.scoring(job.read.scoring)
        | {"scores_sha256": report.digest(job.read.scoring.scores)},
        "options": {name: repr(x) for name, x in options.items()},
        "shard": run.shard,
        "jaxalign": report.versions()["jaxalign"],
    }
    return SavedRun(str(out), manifest)


def _plain(files: tuple[str, ...]) -> bool:
    """Whether all are files, and no pipes."""
    return all(map(os.path.isfile, files))


def share(count: int, run: CorpusRunOptions) -> tuple[int, int]:
    """The first of some rows, and one beyond the last, of a share."""
    shard = shard_of(run.shard)
    if shard is None:
        return 0, count
    k, n = shard
    return count * (k - 1) // n, count * k // n


# ------------------------------------------------------------------------------
# The straight line of ``jaxalign nearest``.


@dataclass(frozen=True)
class NearestRequest:
    """The options of ``nearest`` of its own."""

    tests: str
    corpus: str
    by: By
    bands: str
    top: int


def nearest(
    request: NearestRequest,
    pictures: NearestPictures,
    listed: ListOptions,
    long: CorpusRunOptions,
    options: VerbOptions,
) -> int:
    """``jaxalign nearest TEST CORPUS``."""
    # 1 check and read the tests, 2 scan the corpus, 3 say and write
    check_run(long, listed.out, request.corpus)
    files = files_of(request.corpus)
    job = prepare_nearest(request, files, pictures, listed, options)
    chosen = nearest_options(request, job)
    check_nearest(chosen, job.read.scoring)
    (tests,), scoring = job.read.sequences, job.read.scoring
    tests = tests.between(*share(len(tests), long))
    saved = checkpoint(job, long, chosen, files, listed.out)
    arrays = saved and saved.load(long.resume, listed.force)
    job.messages.say(f"{len(tests):,} test sequences against {request.corpus}")
    with job.watched() as watched:
        seen = replace(chosen, progress=watched.progress)
        corpus = request.corpus, scoring, seen
        near = nearest_of(tests, *corpus, saved, arrays)
    finish_nearest(job, request, near, pictures, listed, files)
    if saved is not None:
        saved.remove()
    return 0


def prepare_nearest(
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


def nearest_options(request: NearestRequest, job: LinkJob) -> NearestOptions:
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


def finish_nearest(
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
        answer_json(about_nearest(job, near, files))


def about_nearest(job: LinkJob, near: Nearest, files: tuple[str, ...]) -> dict:
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


# ------------------------------------------------------------------------------
# The straight line of ``jaxalign purge``.


@dataclass(frozen=True)
class PurgeRequest:
    """The options of ``purge`` of its own."""

    train: str
    against: str
    max_identity: float | None
    score: float | None
    max_evalue: float | None
    min_cov: float | None
    out: str | None
    removed: str | None
    certificate: str | None
    force: bool


def purge(request: PurgeRequest, long: CorpusRunOptions, options: VerbOptions) -> int:
    """``jaxalign purge TRAIN --against TEST``."""
    # 1 check and read the tests, 2 scan the training set, 3 write, 4 audit, 5 say
    _check(request, long)
    files = files_of(request.train)
    job = prepare_purge(request, files, options)
    chosen, (tests,) = purge_options(request, job), job.read.sequences
    scoring = job.read.scoring
    cut = cut_of(chosen, scoring)
    records = purge_share(request, job, long)
    saved = checkpoint(job, long, chosen, files, request.out)
    arrays = saved and saved.load(long.resume, request.force)
    job.messages.say(f"{request.train} against {len(tests):,}; near: {cut}")
    with job.watched() as watched:
        seen = replace(chosen, progress=watched.progress)
        sides = request.train, tests, scoring, seen
        result = purge_of(*sides, records, saved, arrays)
    write_purge(job, request, result, files, records[0])
    if saved is not None:
        saved.remove()
    job.messages.say(result.heading())
    if request.certificate is not None:
        audit_purge(request, options)
    if options.summary.json:
        answer_json(about_purge(job, result, files))
    return 0


def purge_share(
    request: PurgeRequest, job: LinkJob, long: CorpusRunOptions
) -> tuple[int, int | None]:
    """The records of a share, for which the training set is read once more."""
    if long.shard is None:
        return 0, None
    count, _ = Corpus(request.train, job.read.scoring, job.verb.scoring.unknown).size()
    return share(count, long)


def _check(request: PurgeRequest, long: CorpusRunOptions) -> None:
    check_run(long, request.out, request.train)
    if long.shard is not None and request.certificate is not None:
        raise UsageError("--certificate is of all that stays: leave out --shard")
    if request.train == STDIN:
        raise UsageError("TRAIN is read again to write what stays: give a file")
    if request.certificate is None:
        return
    if request.out is None:
        raise UsageError("--certificate is about the file that -o names")
    if request.max_identity is None or request.min_cov is not None:
        raise UsageError("--certificate is of --max-identity alone, without --min-cov")
    if request.against == STDIN:
        raise UsageError("--certificate names the file of --against")


def prepare_purge(
    request: PurgeRequest, files: tuple[str, ...], options: VerbOptions
) -> LinkJob:
    """Options and outputs checked, test sequences read."""
    outs = (request.out, request.removed, request.certificate)
    about = request.force, files, True
    letters = inputs.opening(files[0])
    return link_job.prepare((request.against,), options, outs, *about, letters=letters)


def purge_options(request: PurgeRequest, job: LinkJob) -> PurgeOptions:
    """The options of the scan."""
    links, given = job.options, job.verb.links
    local = request.max_identity is None
    return PurgeOptions(
        max_identity=request.max_identity,
        score=request.score,
        max_evalue=request.max_evalue,
        min_cov=request.min_cov,
        mode=given.mode if local else links.mode,
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


def write_purge(
    job: LinkJob,
    request: PurgeRequest,
    result: Purge,
    files: tuple[str, ...],
    first: int,
) -> None:
    """Write what stays, and who goes; the records before ``first`` are in another
    share, and so are those behind."""
    count, wildcard = result.info["substituted"], result.tests.alphabet.wildcard
    job.messages.warn_of_letters(request.train, count, wildcard)
    alphabet = job.read.scoring.alphabet
    wanted = np.concatenate([np.zeros(first, bool), result.kept])
    pieces = corpus_files.corpus_pieces(files, alphabet, wanted)
    if request.out is not None or not job.verb.summary.json:
        output.write_text(request.out or output.STDOUT, pieces)
    if request.removed is not None:
        link_job.write_table(request.removed, result.columns(), job.verb)


def audit_purge(request: PurgeRequest, options: VerbOptions) -> None:
    """Audit what stays against the test sequences, and write the certificate.

    Raises
    ------
    JaxalignError
        There is a pair at the cut.
    """
    paths = (str(request.out), request.against)
    audited = AuditRequest(
        paths, request.max_identity, split=None, out=None, partial=False, force=True
    )
    quiet = replace(options, messages=replace(options.messages, quiet=True))
    job = audit_job.prepare(audited, AuditOptions(), quiet, ())
    chosen = audit_job.wanted(job.options, AuditOptions())
    cut, scoring = request.max_identity, job.read.scoring
    definition = define(scoring, chosen, "--max-identity", cut)
    parts = audit_job.read_parts(paths, None, job, False)
    checked = audit_job.compare(job, parts, definition)
    if not checked.holds:
        raise JaxalignError(f"{request.out}: {checked.heading()}: this is a bug")
    about = checked.certificate(audit_job.audited_files(paths, job), None)
    output.write_text(str(request.certificate), [as_json(about) + "\n"])


def about_purge(job: LinkJob, result: Purge, files: tuple[str, ...]) -> dict:
    """A run, as plain values."""
    info = result.info
    return {
        "versions": report.versions(),
        "near": str(result.cut),
        "inputs": report.files(job.read),
        "train": {
            "files": [{"path": path, "sha256": sha256(path)} for path in files],
            "records": info["sequences"],
            "residues": info["residues"],
            "substituted": info["substituted"],
        },
        "removed": len(result),
        "stay": result.size - len(result),
        "pairs": {name: info[name] for name in ("compared", "aligned")},
        "implementation": info["implementation"],
        "seconds": info["seconds"],
        "warnings": job.messages.warnings,
    }
