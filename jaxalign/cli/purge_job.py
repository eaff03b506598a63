"""The straight line of ``jaxalign purge``."""

from dataclasses import dataclass, replace

import numpy as np

from jaxalign.cli import (
    audit_job,
    audited_parts,
    corpus_run,
    inputs,
    link_job,
    report,
)
from jaxalign.cli.audit_job import AuditRequest
from jaxalign.cli.link_job import LinkJob
from jaxalign.cli.options import AuditOptions, CorpusRunOptions, VerbOptions
from jaxalign.cli.terminal import answer_json, as_json
from jaxalign.errors import JaxalignError, UsageError
from jaxalign.homology.api import define
from jaxalign.homology.purge import (
    Corpus,
    Purge,
    PurgeOptions,
    cut_of,
    files_of,
    purge_of,
)
from jaxalign.io import fasta_records, output
from jaxalign.io.source import STDIN, sha256


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


def run(request: PurgeRequest, long: CorpusRunOptions, options: VerbOptions) -> int:
    """``jaxalign purge TRAIN --against TEST``."""
    # 1 check and read the tests, 2 scan the training set, 3 write, 4 audit, 5 say
    _check(request, long)
    files = files_of(request.train)
    job = prepare(request, files, options)
    chosen, (tests,) = settings(request, job), job.read.sequences
    scoring = job.read.scoring
    cut = cut_of(chosen, scoring)
    records = share(request, job, long)
    saved = corpus_run.checkpoint(job, long, chosen, files, request.out)
    arrays = saved and saved.load(long.resume, request.force)
    job.messages.say(f"{request.train} against {len(tests):,}; near: {cut}")
    with job.watched() as watched:
        seen = replace(chosen, progress=watched.progress)
        sides = request.train, tests, scoring, seen
        result = purge_of(*sides, records, saved, arrays)
    write(job, request, result, files, records[0])
    if saved is not None:
        saved.remove()
    job.messages.say(result.heading())
    if request.certificate is not None:
        audit(request, options)
    if options.summary.json:
        answer_json(as_dict(job, result, files))
    return 0


def share(
    request: PurgeRequest, job: LinkJob, long: CorpusRunOptions
) -> tuple[int, int | None]:
    """The records of a share, for which the training set is read once more."""
    if long.shard is None:
        return 0, None
    count, _ = Corpus(request.train, job.read.scoring, job.verb.scoring.unknown).size()
    return corpus_run.share(count, long)


def _check(request: PurgeRequest, long: CorpusRunOptions) -> None:
    corpus_run.check(long, request.out, request.train)
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


def prepare(
    request: PurgeRequest, files: tuple[str, ...], options: VerbOptions
) -> LinkJob:
    """Options and outputs checked, test sequences read."""
    outs = (request.out, request.removed, request.certificate)
    about = request.force, files, True
    letters = inputs.opening(files[0])
    return link_job.prepare((request.against,), options, outs, *about, letters=letters)


def settings(request: PurgeRequest, job: LinkJob) -> PurgeOptions:
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


def write(
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
    pieces = fasta_records.corpus_pieces(files, alphabet, wanted)
    if request.out is not None or not job.verb.summary.json:
        output.write_text(request.out or output.STDOUT, pieces)
    if request.removed is not None:
        link_job.write_table(request.removed, result.columns(), job.verb)


def audit(request: PurgeRequest, options: VerbOptions) -> None:
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
    parts = audited_parts.read(paths, None, job, False)
    checked = audit_job.compare(job, parts, definition)
    if not checked.holds:
        raise JaxalignError(f"{request.out}: {checked.heading()}: this is a bug")
    about = checked.certificate(audited_parts.files(paths, job), None)
    output.write_text(str(request.certificate), [as_json(about) + "\n"])


def as_dict(job: LinkJob, result: Purge, files: tuple[str, ...]) -> dict:
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
