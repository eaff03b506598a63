"""An alignment of three sequences as text: for people, FASTA, Clustal, JSON."""

import json
from collections.abc import Iterator
from dataclasses import replace

from jaxalign.errors import UsageError
from jaxalign.io import output
from jaxalign.io.sam_paf import program_version, score_text
from jaxalign.model.names import written
from jaxalign.model.triple import PAIRS, TripleAlignment

WIDTH = 60


def write(
    found: TripleAlignment, path: str, format: str = "pretty", force: bool = False
) -> None:
    """Write one alignment to a file, or with ``"-"`` to standard output, in one of
    ``FORMATS``. In all but json a control character in a name is an escape
    (``jaxalign.model.names``).

    Raises
    ------
    UsageError
        An unknown format, one that needs rows where only a score was computed, or a
        path that cannot be written.
    """
    if format not in FORMATS:
        names = ", ".join(FORMATS)
        raise UsageError(f"unknown format {format!r}: one of {names}")
    if found.gapped is None and format in ("fasta", "clustal"):
        raise UsageError(f"format {format!r} needs rows: ask for a traceback")
    output.check(path, force)
    if format != "json":  # which has escapes of its own
        found = replace(found, names=tuple(map(written, found.names)))
    output.write_text(path, FORMATS[format](found))


def pretty(found: TripleAlignment) -> Iterator[str]:
    """Scores, then blocks of three rows with 1-based numbers and the consensus."""
    yield from _heading(found)
    if found.gapped is None:
        return
    width = max(9, *(len(name) for name in found.names))
    at, consensus = [start for start, _ in found.spans], found.consensus()
    for first in range(0, found.columns, WIDTH):
        piece = slice(first, first + WIDTH)
        yield "\n"
        for n, (name, row) in enumerate(zip(found.names, found.gapped, strict=True)):
            residues = len(row[piece]) - row[piece].count("-")
            begin, at[n] = at[n] + (residues > 0), at[n] + residues
            yield f"{name:<{width}} {begin:>6} {row[piece]} {at[n]:>6}\n"
        line = f"{'consensus':<{width}} {'':>6} {consensus[piece]}"
        yield line.rstrip() + "\n"


def _heading(found: TripleAlignment) -> Iterator[str]:
    yield f"# {found.scoring}; {found.gap_model} gaps; {found.mode}\n"
    yield f"# score {score_text(found.score)}\n"
    if found.gapped is None:
        return
    scores = zip(PAIRS, found.pair_scores, strict=True)
    for (x, y), score in scores:
        yield f"# {found.names[x]} / {found.names[y]}: {score_text(score)}\n"
    yield f"# with natural gaps {score_text(found.score_natural)}\n"


def fasta(found: TripleAlignment) -> Iterator[str]:
    """Three gapped rows; spans are 0-based and half-open."""
    records = zip(found.names, found.spans, found.sequences, found.gapped, strict=True)
    for name, (start, end), text, row in records:
        about = f"span={start}:{end} length={len(text)} score={score_text(found.score)}"
        yield f">{name} {about}\n{row}\n"


def clustal(found: TripleAlignment) -> Iterator[str]:
    """Clustal's look: ``*`` three equal letters, ``:`` every pair scores above 0,
    ``.`` two letters equal; names keep no blanks."""
    yield f"CLUSTAL alignment by jaxalign {program_version()}\n\n"
    names = [name.replace(" ", "_") or "_" for name in found.names]
    width, marks = max(map(len, names)) + 6, _marks(found)
    for first in range(0, found.columns, WIDTH):
        piece = slice(first, first + WIDTH)
        yield "\n"
        for name, row in zip(names, found.gapped, strict=True):
            yield f"{name:<{width}}{row[piece]}\n"
        yield f"{'':<{width}}{marks[piece]}\n"


def _marks(found: TripleAlignment) -> str:
    kinds = {"three": "*", "similar": ":", "two": ".", "none": " "}
    return "".join(kinds[kind] for kind in found.agreement())


def as_json(found: TripleAlignment) -> Iterator[str]:
    """One object with all that the result holds."""
    rows = found.gapped is not None
    yield (
        json.dumps(
            {
                "program": f"jaxalign {program_version()}",
                "names": found.names,
                "score": found.score,
                "scoring": str(found.scoring),
                "gap_model": found.gap_model,
                "mode": found.mode,
                "rows": found.gapped,
                "spans": found.spans,
                "pair_scores": found.pair_scores if rows else None,
                "score_natural": found.score_natural if rows else None,
                "schedule": found.schedule,
                "traceback": found.traceback,
                "implementation": found.implementation,
                "cells": found.cells,
                "seconds": found.seconds,
                "bytes": found.bytes,
            }
        )
        + "\n"
    )


FORMATS = {"pretty": pretty, "fasta": fasta, "clustal": clustal, "json": as_json}
