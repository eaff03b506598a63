"""The straight line of ``jaxalign family``."""

import json
import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from jaxalign.cli import inputs, report
from jaxalign.cli.derive import Given, changed, refuse
from jaxalign.cli.request import devices_of, scoring_of
from jaxalign.cli.run import FREE, check_outputs, check_resume, place_of, run
from jaxalign.cli.terminal import Messages, Report
from jaxalign.database.api import residues_about
from jaxalign.errors import UsageError
from jaxalign.family import api
from jaxalign.family.api import ComplexAlignment, FamilyAlignment
from jaxalign.io import corpus_files, output, picture
from jaxalign.io.fasta import NO_TAXON
from jaxalign.io.runs import SUFFIX, SavedRun, about_file
from jaxalign.model.alphabet import NUCLEIC, reading_of
from jaxalign.model.scoring import Scoring
from jaxalign.model.show import counted
from jaxalign.model.source import sha256
from jaxalign.options import ComplexOptions, FamilyOptions, shared
from jaxalign.pairs.api import SavedState

PAIRING = "pair_strategy", "pair_evalue", "taxa", "rna_database"
NUCLEOTIDES = "ssearch-dna"  # the preset that scores them where no other is named
SUFFIXES = {"a3m": ".a3m", "stockholm": ".sto", "hmm": ".hmm", "pssm": ".pssm"}


def family(options: Given) -> int:
    """``jaxalign family QUERY DB``."""
    query, database, given = options.query, options.database, options.scoring
    is_free = (given.preset, given.matrix, given.match) == (None, None, None)
    if is_free and given.alphabet in NUCLEIC:
        options = changed(options, scoring=replace(given, preset=NUCLEOTIDES))
    scoring, own = scoring_of(options.scoring), reading_of(options.scoring)._asdict()
    own |= {"devices": devices_of(options), "progress": None}
    chosen = ComplexOptions(**shared(options, ComplexOptions, **own))
    api.check(chosen)
    if query == database == "-":
        raise UsageError(
            "'-' is given twice, and standard input can be read only once: name a file"
        )
    if options.pair:
        return _complexes(options, scoring, chosen)
    refuse(options, PAIRING, "about complexes: give --pair")
    check_resume(options, (query, database))
    if options.json and options.out is None:
        refuse(options, ("format",), "about a file: give -o FILE")
    out, plot = options.out, options.plot
    out, plot = (None if x and _is_folder(x) else x for x in (out, plot))
    check_outputs(options, out, (), (query, database, options.scoring.matrix), (plot,))
    if out:
        api.format_of(out, options.format)
    if options.plot and not plot:
        picture.check(f"{options.plot}x.png")
    messages = Messages(options.quiet)
    read = _read((query,), options, scoring, messages)
    scoring = read.scoring
    queries, texts = read.sequences[0], read.texts[0]
    place = place_of(options)
    begun = options.resume and os.path.isfile(f"{place}{SUFFIX}")
    force = options.force or begun  # an interrupted run may have written some
    paths: list[str] = []
    if options.out or not options.json:
        suffix = SUFFIXES[options.format or "a3m"]
        paths = _paths(options.out or output.STDOUT, queries.names, suffix, force)
    pictures = options.plot and _paths(
        options.plot, queries.names, ".png", force, "--plot"
    )
    chosen = FamilyOptions(**shared(chosen, FamilyOptions))
    saved = _checkpoint(place, (query, database), read.scoring, chosen)
    arrays = saved and saved.load(options.resume, options.force)
    state = saved and SavedState(arrays or {}, saved.save)
    for k, path in enumerate(paths):
        if state and f"done.{k}" in state.arrays and not os.path.isfile(path):
            raise UsageError(
                f"{path}: was written by the interrupted run and is missing; use "
                "--force without --resume to start over"
            )
    seconds = [0.0]

    def write(number: int, relatives: FamilyAlignment) -> str:
        """Write the files of a query; what is said of it, as JSON."""
        if saved and state and len(queries) > 1:
            # A file is there only once the run can be resumed, which replaces it.
            saved.save(state.arrays.copy, unless_begun=True)
        if paths:
            relatives.write(paths[number], options.format, force)
        if pictures:
            about = relatives.codes, relatives.query_identities, relatives.name
            picture.coverage(pictures[number], *about)
        return json.dumps(_said(relatives, chosen, options.json, len(queries) == 1))

    def compute(progress: Report | None) -> list[dict]:
        reported, start = replace(chosen, progress=progress), time.perf_counter()
        about = reported, texts, state, write
        said = api.families_of(queries, database, scoring, *about)
        seconds[0] = time.perf_counter() - start
        return [json.loads(text) for text in said]

    def finish(said: list[dict]) -> Iterator[str]:
        yield from _lines(said, database, messages)
        if len(said) > 1:
            each = f"{seconds[0] / len(said):.3f} s a query"
            yield f"{len(said):,} queries in {seconds[0]:.1f} s, {each}"

    kind = chosen.strand or "both"
    strands = f", {kind} strands" if scoring.alphabet.kind in NUCLEIC else ""
    heading = [f"{scoring}{strands}; {len(queries):,} queries against {database}"]
    cells = len(queries.codes) * residues_about(database) * chosen.iterations
    heading += report.expected(cells, "score", chosen)
    about = partial(_about, read, database, chosen)
    return run(options, messages, heading, compute, finish, about, saved=saved)


def _complexes(options: Given, scoring: Scoring, chosen: ComplexOptions) -> int:
    """``jaxalign family --pair QUERY DB``."""
    query, database, out = options.query, options.database, options.out
    refuse(options, ("format", "plot"), "about one alignment: leave out --pair")
    if out is None or out == output.STDOUT:
        raise UsageError("--pair writes several files: give -o FOLDER/")
    files, is_folder = corpus_files.files_of(query), os.path.isdir(query)
    check_resume(options, (*files, database))
    messages, names = Messages(options.quiet), ["complex"]
    if query != output.STDOUT:
        names = [re.sub(r"(\.[A-Za-z]+)?(\.(gz|bz2|xz|zst))?$", "", x) for x in files]
        names = [re.sub(r"^\.|[^\w.-]", "_", os.path.basename(x)) for x in names]
    read = _read(files, options, scoring, messages)
    beside = [x for x in (chosen.taxa, chosen.rna_database) if x is not None]
    if chosen.rna_database is not None:
        inputs.check(chosen.rna_database)
    complexes = [
        api.Chains(name, sequences, sequences.texts() if texts is None else texts)
        for name, sequences, texts in zip(
            names, read.sequences, read.texts, strict=True
        )
    ]
    place = place_of(options)
    begun = options.resume and os.path.isfile(f"{place}{SUFFIX}")
    force = options.force or begun
    folders = [os.path.join(out, name) for name in names] if is_folder else [out]
    for folder, chains in zip(folders, complexes, strict=True):
        if folders.count(folder) > 1:
            raise UsageError(f"{folder}: would be the folder of two files of {query}")
        if os.path.isfile(folder):
            raise UsageError(f"{folder}: is a file, and --pair writes a folder")
        with output.naming(folder):
            os.makedirs(folder, exist_ok=True)
        for file in chains.file_names():
            path = os.path.join(folder, file)
            output.check_inputs(path, (*files, database, *beside))
            output.check(path, force)
    saved = _checkpoint(place, (*files, database, *beside), read.scoring, chosen)
    arrays = saved and saved.load(options.resume, options.force)
    state = saved and SavedState(arrays or {}, saved.save)

    def compute(progress: Report | None) -> list[ComplexAlignment]:
        reported = replace(chosen, progress=progress)
        return api.complexes_of(complexes, database, scoring, reported, state)

    def finish(results: list[ComplexAlignment]) -> Iterator[str]:
        described: dict[int, dict] = {}  # sequences of several complexes
        for result, folder in zip(results, folders, strict=True):
            result.write(folder, force)
            for relatives in result.families:
                if id(relatives) not in described:
                    described[id(relatives)] = said = _said(relatives, chosen)
                    yield from _lines(
                        [said | {"letters": (0, "X")}], database, messages
                    )
            yield from _pairs(result, messages)
        letters = [said["letters"] for said in described.values()]
        _warn_of_letters(letters, database, messages)

    texts, count = {x for chains in complexes for x in chains.entities}, len(complexes)
    heading = [
        f"{scoring}; {counted(len(texts), 'sequence')} of {counted(count, 'file')} "
        f"against {database}"
    ]
    cells = sum(map(len, texts)) * residues_about(database) * chosen.iterations
    heading += report.expected(cells, "score", chosen)

    def about(results: list[ComplexAlignment]) -> dict:
        families = {id(x): x for result in results for x in result.families}
        pairs = [
            {
                "complex": result.name,
                "chains": list(result.chains),
                "sequences": len(result.entities),
                "hits": [len(entity.names) for entity in result.entities],
                "pairs": len(result),
            }
            for result in results
        ]
        said = [_said(x, chosen, options.json) for x in families.values()]
        return _about(read, database, chosen, said) | {
            "pair_strategy": chosen.pair_strategy,
            "pair_evalue": chosen.pair_evalue,
            "complexes": pairs,
        }

    return run(options, messages, heading, compute, finish, about, saved=saved)


def _read(
    paths: tuple[str, ...], options: Given, scoring: Scoring, messages: Messages
) -> inputs.Inputs:
    """Read files of queries, and check that the database is one."""
    database = options.database
    about = options.scoring, options.json, messages
    beside = [(database, corpus_files.opening(database))]
    kinds = {"of_proteins": options.pair, "usual": NUCLEOTIDES}
    read = inputs.read(paths, scoring, *about, beside, as_given=False, **kinds)
    inputs.check(database)
    return read


def _pairs(result: ComplexAlignment, messages: Messages) -> Iterator[str]:
    """A line about the pairs of a complex; warns of taxa that lack."""
    yield f"{result.name}: {result.heading().partition(', ')[2]}"
    proteins = [entity for entity in result.entities if entity.kind == "protein"]
    if len(proteins) < 2:
        return
    counts = [len(entity.names) for entity in proteins]
    taxa = [int((x.taxon != NO_TAXON).sum()) for x in proteins]
    for entity, hits, count in zip(proteins, counts, taxa, strict=True):
        chain = result.chains[entity.chains[0]]
        yield f"{result.name}: {chain}: {counted(hits, 'hit')}, {count:,} with a taxon"
    if any(counts) and not any(taxa):
        messages.warn(
            f"{result.name}: no hit has a taxon, so no rows are paired: headings need "
            "OX= or TaxID=, or give --taxa TABLE.tsv"
        )


def _checkpoint(
    place: str | None,
    files: Sequence[str],
    scoring: Scoring,
    chosen: FamilyOptions,
) -> SavedRun | None:
    """The file of the state of a run; None where it has none."""
    if place is None or not all(map(os.path.isfile, files)):
        return None

    def describe() -> dict:
        said = {x: repr(y) for x, y in vars(chosen).items() if x not in FREE}
        about = {"options": said}
        return report.manifest([*map(about_file, files)], scoring, about)

    return SavedRun(place, describe)


def _is_folder(out: str) -> bool:
    return out.endswith("/") or os.path.isdir(out)


def _paths(
    out: str, names: Sequence[str], suffix: str, force: bool, flag: str = "-o"
) -> list[str]:
    """Where the file of each query goes; ``flag`` names the option in messages.

    Raises
    ------
    UsageError
        Several queries and no folder, or two of them with one file.
    """
    if not _is_folder(out):
        if len(names) != 1:
            raise UsageError(
                f"{len(names)} queries need a folder of files: {flag} FOLDER/"
            )
        return [out]
    os.makedirs(out, exist_ok=True)
    files = (re.sub(r"^\.|[^\w.-]", "_", name) for name in names)
    paths = [output.file_in(out, file, suffix) for file in files]
    counts = Counter(paths)
    for path, name in zip(paths, names, strict=True):
        if counts[path] > 1:
            raise UsageError(
                f"{path}: would be the file of {name} and of another query; rename one "
                "of them"
            )
        output.check(path, force)
    return paths


FITS = {
    "shuffled": "too many sequences of the database are related to it: E-values are "
    "fitted to sequences with their letters in random orders",
    "none": "its scores fit no distribution, so there are no E-values and no hits",
}


def _said(
    family: FamilyAlignment,
    chosen: FamilyOptions,
    as_json: bool = False,
    each_pass: bool = True,
) -> dict:
    """Collect lines, warnings, the entry of ``--json``, and counts of the database."""
    lines, warnings = [], []
    for number, scan in enumerate(family.passes, 1):
        if each_pass:
            lines.append(
                f"{family.name}: pass {number}: {counted(scan.hits, 'hit')}, "
                f"{scan.included:,} included, {scan.new:,} of them new; "
                f"{scan.seconds:.1f} s"
            )
        if scan.fitted_to != "database" and family.table.info["sequences"]:
            warnings.append(f"{family.name}, pass {number}: {FITS[scan.fitted_to]}")
    end = "converged" if family.converged else "may go on"
    if len(family) == 1:
        lines.append(
            f"{family.name}: no relatives with E-values up to {chosen.max_evalue:g}: "
            "the alignment is the query alone"
        )
    else:
        lines.append(
            f"{family.name}: {counted(len(family), 'row')}, the query's included; Neff "
            f"{family.neff:.2f} (exponential of the mean entropy of columns); {end}"
        )
    info = family.table.info
    said: dict[str, Any] = {"lines": lines, "warnings": warnings}
    said["letters"] = info.get("substituted", 0), family.profile.alphabet.wildcard
    said["database"] = {name: info.get(name) for name in ("sequences", "residues")}
    if not as_json:
        return said
    passes = [
        {
            "hits": scan.hits,
            "included": scan.included,
            "new": scan.new,
            "lambda": scan.lambda_,
            "K": scan.k,
            "fitted_to": scan.fitted_to,
            "seconds": round(scan.seconds, 3),
        }
        for scan in family.passes
    ]
    entry = {
        "query": family.name,
        "rows": len(family),
        "neff": round(family.neff, 4),
        "neff_of_clusters": round(family.neff_of_clusters(), 4),
        "depth": family.depth.tolist(),
        "converged": family.converged,
        "passes": passes,
    }
    return said | {"entry": entry}


def _lines(said: Sequence[dict], database: str, messages: Messages) -> Iterator[str]:
    """The lines of alignments; warns of statistics that lack, and of letters of the
    database that were read as X, or N."""
    for about in said:
        for text in about["warnings"]:
            messages.warn(text)
        yield from about["lines"]
    _warn_of_letters([about["letters"] for about in said], database, messages)


def _warn_of_letters(
    letters: Sequence[tuple[int, str]], database: str, messages: Messages
) -> None:
    """Warn of letters of the database, from how many there are and as what they are
    read of each alignment."""
    if letters:
        messages.warn_of_letters(database, *max(letters))


def _about(
    read: inputs.Inputs, database: str, chosen: FamilyOptions, said: Sequence[dict]
) -> dict:
    """A run as plain values."""
    counts = said[0]["database"] if said else {"sequences": None, "residues": None}
    return {
        "inputs": report.files(read),
        "database": {"path": database, "sha256": sha256(database), **counts},
        "scoring": report.scoring(read.scoring),
        "max_evalue": chosen.max_evalue,
        "include": chosen.include,
        "families": [about["entry"] for about in said],
    }
