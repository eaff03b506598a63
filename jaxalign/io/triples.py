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
    triple: TripleAlignment, path: str, format: str = "pretty", force: bool = False
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
    if triple.gapped is None and format in ("fasta", "clustal"):
        raise UsageError(f"format {format!r} needs rows: ask for a traceback")
    output.check(path, force)
    if format != "json":  # which has escapes of its own
        triple = replace(triple, names=tuple(map(written, triple.names)))
    output.write_text(path, FORMATS[format](triple))


def pretty(triple: TripleAlignment) -> Iterator[str]:
    """Scores, then blocks of three rows with 1-based numbers and the consensus."""
    yield from _heading(triple)
    if triple.gapped is None:
        return
    width = max(9, *(len(name) for name in triple.names))
    at, consensus = [start for start, _ in triple.spans], triple.consensus()
    for first in range(0, triple.columns, WIDTH):
        piece = slice(first, first + WIDTH)
        yield "\n"
        for n, (name, row) in enumerate(zip(triple.names, triple.gapped, strict=True)):
            residues = len(row[piece]) - row[piece].count("-")
            begin, at[n] = at[n] + (residues > 0), at[n] + residues
            yield f"{name:<{width}} {begin:>6} {row[piece]} {at[n]:>6}\n"
        line = f"{'consensus':<{width}} {'':>6} {consensus[piece]}"
        yield line.rstrip() + "\n"


def _heading(triple: TripleAlignment) -> Iterator[str]:
    yield f"# {triple.scoring}; {triple.gap_model} gaps; {triple.mode}\n"
    yield f"# score {score_text(triple.score)}\n"
    if triple.gapped is None:
        return
    scores = zip(PAIRS, triple.pair_scores, strict=True)
    for (x, y), score in scores:
        yield f"# {triple.names[x]} / {triple.names[y]}: {score_text(score)}\n"
    yield f"# with natural gaps {score_text(triple.score_natural)}\n"


def fasta(triple: TripleAlignment) -> Iterator[str]:
    """Three gapped rows; spans are 0-based and half-open."""
    score, texts = score_text(triple.score), triple.sequences
    spans: tuple = triple.spans or ()
    records = zip(triple.names, spans, texts, triple.rows(), strict=True)
    for name, (start, end), text, row in records:
        about = f"span={start}:{end} length={len(text)} score={score}"
        yield f">{name} {about}\n{row}\n"


def clustal(triple: TripleAlignment) -> Iterator[str]:
    """Clustal's look: ``*`` three equal letters, ``:`` every pair scores above 0,
    ``.`` two letters equal; names keep no blanks."""
    yield f"CLUSTAL alignment by jaxalign {program_version()}\n\n"
    names = [name.replace(" ", "_") or "_" for name in triple.names]
    width, marks = max(map(len, names)) + 6, _marks(triple)
    for first in range(0, triple.columns, WIDTH):
        piece = slice(first, first + WIDTH)
        yield "\n"
        for name, row in zip(names, triple.rows(), strict=True):
            yield f"{name:<{width}}{row[piece]}\n"
        yield f"{'':<{width}}{marks[piece]}\n"


def _marks(triple: TripleAlignment) -> str:
    kinds = {"three": "*", "similar": ":", "two": ".", "none": " "}
    return "".join(kinds[kind] for kind in triple.agreement())


def as_json(triple: TripleAlignment) -> Iterator[str]:
    """One object with all that the result holds."""
    rows = triple.gapped is not None
    yield (
        json.dumps(
            {
                "program": f"jaxalign {program_version()}",
                "names": triple.names,
                "score": triple.score,
                "scoring": str(triple.scoring),
                "gap_model": triple.gap_model,
                "mode": triple.mode,
                "rows": triple.gapped,
                "spans": triple.spans,
                "pair_scores": triple.pair_scores if rows else None,
                "score_natural": triple.score_natural if rows else None,
                "schedule": triple.schedule,
                "traceback": triple.traceback,
                "implementation": triple.implementation,
                "cells": triple.cells,
                "seconds": triple.seconds,
                "bytes": triple.bytes,
            }
        )
        + "\n"
    )


FORMATS = {"pretty": pretty, "fasta": fasta, "clustal": clustal, "json": as_json}
