"""``jaxalign nearest`` and ``purge``, which read a corpus block by block."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from functools import partial

import numpy as np

from jaxalign.cli import audit, links, report
from jaxalign.cli.derive import Given, changed, refuse
from jaxalign.cli.links import LinkJob
from jaxalign.cli.run import FREE, check_resume, run
from jaxalign.cli.terminal import Report, as_json
from jaxalign.database.api import residues_about
from jaxalign.database.nearest import (
    Nearest,
    check_nearest,
    files_of,
    histogram,
    html,
    linked,
    nearest_of,
)
from jaxalign.errors import InputError, JaxalignError, UsageError
from jaxalign.homology.api import Audit, Definition, with_evidence
from jaxalign.homology.purge import (
    Corpus,
    Purge,
    cut_of,
    purge_of,
    with_edges,
)
from jaxalign.io import corpus_files, output
from jaxalign.io.runs import SavedRun, about_file
from jaxalign.model.alphabet import reading_of
from jaxalign.model.source import STDIN, label, sha256
from jaxalign.options import NearestOptions, PurgeOptions


def checkpoint(
    job: LinkJob, chosen: NearestOptions | PurgeOptions, files: tuple[str, ...]
) -> SavedRun | None:
    """The file of the state of a run; None where it has none.

    chosen : options of the scan
    """
    out, shard = job.verb.out, job.verb.shard
    if out in (None, output.STDOUT) or not all(map(os.path.isfile, files)):  # a pipe
        return None
    options = {name: x for name, x in asdict(chosen).items() if name not in FREE}
    dates = [os.stat(path).st_mtime_ns for path in files]
    tables = [x.table for x in getattr(chosen, "edges", None) or ()]

    def describe() -> dict:
        corpus = [about_file(path) for path in files]
        if [os.stat(path).st_mtime_ns for path in files] != dates:
            raise InputError(f"{label(files[0])}: the corpus changed while it was read")
        return {"corpus": corpus, **manifest}

    about = {
        **({"edges": list(map(sha256, tables))} if tables else {}),
        "options": {name: repr(x) for name, x in options.items()},
        "shard": None if shard is None else "{}/{}".format(*shard),
    }
    manifest = report.manifest(report.files(job.read), job.read.scoring, about)
    return SavedRun(str(out), describe)


def share(count: int, shard: tuple[int, int] | None) -> tuple[int, int]:
    """The first of some rows, and one beyond the last, of a share."""
    if shard is None:
        return 0, count
    k, n = shard
    return count * (k - 1) // n, count * k // n


def nearest(given: Given) -> int:
    """``jaxalign nearest TEST CORPUS``."""
    path, corpus = given.tests, given.corpus
    files = files_of(corpus)
    check_resume(given, files)
    if path == corpus == "-":
        raise UsageError(
            "'-' is given twice, and standard input can be read only once: name a file"
        )
    outs = (given.out, given.report)
    job = links.prepare(
        (path,),
        given,
        outs,
        files,
        True,
        letters=[(corpus, corpus_files.opening(files[0]))],
    )
    own = {x: getattr(given, x) for x in ("by", "top", "bands", "link", "min_score")}
    chosen = links.scan_options(job, NearestOptions, **own)
    (tests,), scoring = job.read.sequences, job.read.scoring
    check_nearest(chosen, scoring)
    chosen = linked(chosen, scoring, tests)
    tests = tests.between(*share(len(tests), given.shard))
    saved = checkpoint(job, chosen, files)
    arrays = saved and saved.load(given.resume, given.force)

    def compute(progress: Report | None) -> Nearest:
        reported = replace(chosen, progress=progress)
        return nearest_of(tests, corpus, scoring, reported, saved, arrays)

    def finish(near: Nearest) -> Iterator[str]:
        count, wildcard = near.info["substituted"], near.tests.alphabet.wildcard
        job.messages.warn_of_letters(corpus, count, wildcard)
        links.write_table(given.out, near.columns(), given, near.cuts)
        if given.report is not None:
            output.write_text(given.report, [html(near)])
        if given.plot is not None:
            from jaxalign.io import picture

            counts, edges = histogram(near)
            length, none = near.definition.partition(";")[0], near.band_counts[-1]
            axis = f"{length.partition(',')[0]} of the nearest"
            axis += f"; {none:,} have none" if none else ""
            about = counts, edges, axis, near.heading()
            picture.histogram(given.plot, *about, unit="test sequences")
        summary = f"{path} against {corpus}: {near.heading()}"
        yield "\n".join((summary, near.definition, *near.band_lines()))
        yield f"{near.comparisons()}; {near.info['seconds']:.1f} s"

    heading = [f"{path}, {len(tests):,} test sequences, against {corpus}"]
    cells = len(tests.codes) * residues_about(*files)
    cells *= 1 + (chosen.strand == "both")
    proofs = given.by == "identity" and chosen.filter
    heading += report.expected(cells, "score", chosen, proofs=proofs)
    about = partial(about_nearest, job, files)
    return run(given, job.messages, heading, compute, finish, about, saved=saved)


def about_nearest(job: LinkJob, files: tuple[str, ...], near: Nearest) -> dict:
    """A run, as plain values."""
    bands = zip(near.band_names, near.band_counts.tolist(), strict=True)
    return {
        "definition": near.definition,
        "by": near.by,
        "inputs": report.files(job.read),
        "corpus": _about_corpus(files, near.info),
        "bands": dict(bands),
        "pairs": {name: near.info[name] for name in ("compared", "aligned")},
        "rows": len(near),
        "implementation": near.info["implementation"],
        "seconds": near.info["seconds"],
    }


def _about_corpus(files: tuple[str, ...], info: dict) -> dict:
    hashes = [{"path": path, "sha256": sha256(path)} for path in files]
    sizes = {name: info[name] for name in ("residues", "substituted")}
    return {"files": hashes, "records": info["sequences"]} | sizes


CUTS = ("min_identity", "min_relative_score", "min_score", "max_evalue")


def purge(given: Given) -> int:
    """``jaxalign purge TRAIN --against TEST``."""
    files, by_link = files_of(given.train), links.has_cut(given)
    check_resume(given, files)
    if given.certificate is not None:  # whose audit has a state of its own
        SavedRun(given.certificate, {}).is_begun(given.resume, given.force)
    if given.shard is not None and given.certificate is not None:
        raise UsageError("--certificate covers the whole result: leave out --shard")
    if given.certificate is not None:
        if given.out is None:
            raise UsageError(
                "--certificate certifies the file that -o writes: add -o FILE"
            )
        if not by_link:
            raise UsageError("--certificate needs --min-identity")
        if given.against == STDIN:
            raise UsageError("--certificate needs --against FILE, not standard input")
    if not by_link:
        refuse(given, ("link", "identity", "edges"), "about a cut by --min-identity")
    outs = (given.out, given.list_out, given.certificate)
    job = links.prepare(
        (given.against,),
        given,
        outs,
        files,
        True,
        letters=[(given.train, corpus_files.opening(files[0]))],
    )
    own = {name: getattr(given, name) for name in (*CUTS, "link", "edges")}
    if not by_link:  # local alignments have a mode of their own
        own["mode"] = given.mode
    chosen, (tests,) = links.scan_options(job, PurgeOptions, **own), job.read.sequences
    scoring = job.read.scoring
    cut, records = cut_of(chosen, scoring, tests), (0, None)
    if given.edges or given.shard:  # for which the training set is read once more
        about = reading_of(given.scoring), chosen.memory_budget
        corpus = Corpus(given.train, scoring, *about)
        cut = with_edges(cut, given.train, tests, corpus)
        if given.shard:
            records = share(corpus.size()[0], given.shard)
    saved = checkpoint(job, cut.options, files)
    arrays = saved and saved.load(given.resume, given.force)

    def compute(progress: Report | None) -> Purge:
        sides = given.train, tests, scoring, replace(chosen, progress=progress)
        return purge_of(*sides, records, saved, arrays, cut)

    def finish(result: Purge) -> Iterator[str]:
        _write_kept(job, result, files, records[0])
        yield f"{given.train} against {given.against}: {result.heading()}"
        if given.certificate is not None and result.kept.any():
            assert cut.definition is not None
            _audit_purge(given, cut.definition)
        if given.list_out is not None:
            listed = given.list_out, result.columns()
            links.write_table(*listed, given, result.cuts)

    def check(result: Purge) -> Iterable[str]:
        if given.certificate is not None and not result.kept.any():
            raise InputError(
                f"{given.out}: no sequence is kept, so there is nothing to certify, "
                f"and {given.certificate} is not written"
            )
        return ()

    sides = f"{given.train} against {given.against}, {len(tests):,} test sequences"
    heading = [f"{sides}; near: {cut}"]
    heading += links.evidence_lines(cut.definition) if cut.definition else ()
    cells = len(tests.codes) * residues_about(*files)
    cells *= 1 + (cut.options.strand == "both")
    proofs = cut.definition is not None and chosen.filter
    heading += report.expected(cells, "score", chosen, proofs=proofs)
    about, ends = partial(about_purge, job, files), {"saved": saved, "check": check}
    return run(given, job.messages, heading, compute, finish, about, **ends)


def _write_kept(
    job: LinkJob, result: Purge, files: tuple[str, ...], first: int
) -> None:
    """Write what stays; the records before ``first`` are in another share, and so are
    those behind."""
    given = job.verb
    count, wildcard = result.info["substituted"], result.tests.alphabet.wildcard
    job.messages.warn_of_letters(given.train, count, wildcard)
    alphabet = job.read.scoring.alphabet
    wanted = np.concatenate([np.zeros(first, bool), result.kept])
    reading = reading_of(given.scoring)
    pieces = corpus_files.corpus_pieces(files, alphabet, wanted, reading)
    if given.out is not None or not given.json:
        output.write_text(given.out or output.STDOUT, pieces)


def _audit_purge(given: Given, definition: Definition) -> None:
    """Audit what stays against the test sequences, and write the certificate.

    Raises
    ------
    JaxalignError
        There is a pair at the cut.
    """
    paths = (str(given.out), given.against)
    nothing = dict.fromkeys(("split", "out", "report", "plot", "leaks"))
    audited = changed(given, parts=paths, quiet=True, json=False, **nothing)
    job = audit.prepare(audited, ())
    parts = audit.read_parts(paths, None, job, False)
    if definition.evidence is not None:  # tables name what is removed, too
        tables = [replace(x, unknown="count") for x in definition.options.edges or ()]
        options = replace(definition.options, edges=tables)
        definition = replace(definition, options=options)
        definition = with_evidence(definition, links.every_name(job))
    of_audit = {"audit": "of a purge"}
    saved, state = links.checkpoint(job, definition, of_audit, given.certificate)

    def finish(checked: Audit) -> Iterable[str]:
        if not checked.holds:
            raise JaxalignError(f"{given.out}: {checked.heading()}: this is a bug")
        about = checked.certificate(audit.audited_files(paths, job), None)
        output.write_text(str(given.certificate), [as_json(about) + "\n"])
        return ()

    compute = partial(audit.compare, job, parts, definition, state)
    run(audited, job.messages, (), compute, finish, saved=saved)


def about_purge(job: LinkJob, files: tuple[str, ...], result: Purge) -> dict:
    """A run, as plain values."""
    info, definition = result.info, result.cut.definition
    evidence = None if definition is None else definition.evidence
    return {
        "near": str(result.cut),
        **({} if evidence is None else evidence.about()),
        "inputs": report.files(job.read),
        "train": _about_corpus(files, info),
        "removed": len(result),
        "stay": result.size - len(result),
        "pairs": {name: info[name] for name in ("compared", "aligned")},
        "implementation": info["implementation"],
        "seconds": info["seconds"],
    }
