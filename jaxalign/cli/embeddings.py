"""``jaxalign align --embeddings A.npz B.npz``: alignments of a network's vectors."""

import os
from collections.abc import Iterator
from dataclasses import replace
from math import isfinite
from typing import Any

import numpy as np

from jaxalign.cli.derive import Given, refuse_others
from jaxalign.cli.request import mode_of
from jaxalign.cli.run import check_outputs, run
from jaxalign.cli.terminal import Messages, Report
from jaxalign.errors import InputError, UsageError
from jaxalign.io import embeddings, fasta, formats, output
from jaxalign.io.delimited import csv_text
from jaxalign.model.alphabet import PROTEIN, Sequences
from jaxalign.model.names import written
from jaxalign.model.scoring import Scoring
from jaxalign.model.table import lettered
from jaxalign.similarity.hard.api import hard_alignment
from jaxalign.similarity.soft.buckets import bucket_lengths

# Options that go with vectors; with --sequences those of formats and columns too.
OWN = ("embeddings", "sequences", "gap_open", "gap_extend", "mode", "free_ends")
OWN += ("out", "force", "no_cache")
OF_LETTERS = ("format", "columns")
TABLES = ("tsv", "csv")
# For letters and identities alone: embeddings have no matrix, nor its statistics.
SCORING = Scoring((PROTEIN, np.zeros((len(PROTEIN), len(PROTEIN)))))
CELLS_AT_A_TIME = 2**24  # padded cells of a batch
MAX_TOTAL = 1e29  # of an alignment: larger numbers forbid a pair or a gap


def align(options: Given) -> int:
    """Pairs of two files: first with first, or a single array with all."""
    a, b, sequences = options.a, options.b, options.sequences
    _check(options, sequences is not None)
    mode, free_ends = mode_of(options)
    path = options.out or output.STDOUT
    files = (a, b) if sequences is None else (a, b, sequences)
    check_outputs(options, path, (), files)
    suffix = os.path.splitext(path)[1]
    if sequences is None and formats.SUFFIXES.get(suffix, "tsv") not in TABLES:
        raise UsageError(
            f"{path}: this format shows letters: add --sequences, or choose another "
            "suffix"
        )
    queries, targets = embeddings.read(a), embeddings.read(b)
    letters = None if sequences is None else _letters(sequences, queries, targets)
    pairs = _zipped(a, b, queries, targets)
    gaps = {"gap_open": options.scoring.gap_open}
    gaps["gap_extend"] = options.scoring.gap_extend
    _check_totals(queries, targets, pairs, options.scoring.gap_open or 0.0)

    def compute(_: Report | None) -> list:
        chosen = gaps | {"mode": mode, "free_ends": free_ends}
        return _aligned(queries, targets, pairs, chosen)

    def finish(results: list) -> Iterator[str]:
        if letters is None:
            lines = embeddings.tsv(*zip(*results, strict=True)) if results else []
            if suffix == ".csv":
                lines = (csv_text([line.rstrip("\n").split("\t")]) for line in lines)
            output.write_text(path, lines)
        else:
            alignments = [alignment for alignment, _ in results]
            table = lettered(alignments, *letters, SCORING, mode)
            columns = options.columns or None
            formats.write(table, path, options.format, columns, force=options.force)
        yield f"{len(results):,} pairs of embeddings, {mode}"

    return run(options, Messages(options.quiet), (), compute, finish)


def _letters(
    path: str, queries: dict[str, np.ndarray], targets: dict[str, np.ndarray]
) -> tuple[Sequences, Sequences]:
    """The sequences of both files by name, as long as their arrays."""
    known = fasta.read(path, SCORING.alphabet)
    place = {name: k for k, name in enumerate(known.names)}
    for name, x in (*queries.items(), *targets.items()):
        if name not in place:
            raise InputError(f"{path} has no sequence {name!r}")
        if (length := int(known.lengths[place[name]])) != len(x):
            raise InputError(
                f"{path}: {name!r} has {length} letters, its array {len(x)}"
            )
    first, second = ([place[name] for name in side] for side in (queries, targets))
    return known.take(first), known.take(second)


def _check(options: Given, letters: bool) -> None:
    """Refuse options that mean nothing without letters."""
    refuse_others(
        options,
        (*OWN, *(OF_LETTERS if letters else ())),
        "about letters or their fills: --embeddings takes --gap-open, --gap-extend, "
        "--mode, --free-ends, -o, --force and -q",
    )
    scoring = options.scoring
    if scoring.gap_open is None or scoring.gap_extend is None:
        raise UsageError("--embeddings needs --gap-open and --gap-extend")
    for number in (scoring.gap_open, scoring.gap_extend):
        if not isfinite(number):
            raise UsageError(f"{number}: a gap cost must be a finite number")


def _zipped(
    a: str, b: str, queries: dict[str, np.ndarray], targets: dict[str, np.ndarray]
) -> list[tuple[str, str]]:
    """Names of the pairs."""
    m, n = len(queries), len(targets)
    if 1 not in (m, n) and m != n:
        raise UsageError(
            f"{a} has {m} arrays, {b} has {n}: array k is aligned with array k, so "
            "the numbers must be equal, or one of them 1"
        )
    widths = {x.shape[1] for x in (*queries.values(), *targets.values())}
    if len(widths) > 1:
        sizes = " and ".join(map(str, sorted(widths)))
        raise InputError(
            f"{a}, {b}: vectors of {sizes} numbers: all must have one length"
        )
    count = max(m, n) if min(m, n) else 0
    first, second = ([*x] * (count if len(x) == 1 else 1) for x in (queries, targets))
    return [*zip(first, second, strict=True)] if count else []


def _check_totals(
    queries: dict[str, np.ndarray],
    targets: dict[str, np.ndarray],
    pairs: list[tuple[str, str]],
    gap_open: float,
) -> None:
    """Refuse a pair whose score might be no number, or too large to mean one.

    Raises
    ------
    InputError
        It names the pair.
    """
    for x, y in pairs:
        a, b = queries[x], targets[y]
        largest = embeddings.largest_score(a, b)
        if not (len(a) + len(b)) * max(largest, gap_open) <= MAX_TOTAL:
            raise InputError(
                f"{written(x)} and {written(y)}: two vectors may score {largest:.3g}, "
                f"a gap costs {gap_open:g}, and the sum over {len(a)} + {len(b)} of "
                f"them may exceed {MAX_TOTAL:g}\nhint: divide vectors and gap costs by "
                "a constant"
            )


def _aligned(
    queries: dict[str, np.ndarray],
    targets: dict[str, np.ndarray],
    pairs: list[tuple[str, str]],
    options: dict[str, Any],
):
    """(Alignment, partners) of each pair, in their order."""
    lengths = np.array([(len(queries[x]), len(targets[y])) for x, y in pairs])
    lengths = lengths.reshape(-1, 2)
    results: list = [None] * len(pairs)
    for (rows, columns), indices in bucket_lengths(*lengths.T):
        count = max(1, min(len(indices), CELLS_AT_A_TIME // max(rows * columns, 1)))
        for first in range(0, len(indices), count):
            batch = indices[first : first + count]
            padded = np.resize(batch, count)  # a batch of the same size: one program
            both = (
                _padded([side[pairs[k][s]] for k in padded], size)
                for s, (side, size) in enumerate(((queries, rows), (targets, columns)))
            )
            best = hard_alignment(
                tuple(both), lengths[padded].astype(np.int32), **options
            )
            several = best.alignments(scoring=SCORING)
            for row, k in enumerate(batch):
                name, other = pairs[k]
                named = replace(several[row], query_name=name, target_name=other)
                results[k] = named, np.asarray(best.partners[row])[: lengths[k][0]]
    return results


def _padded(arrays: Any, size: Any):
    """One array (count, size, k)."""
    wide = np.zeros((len(arrays), size, arrays[0].shape[1]), np.float32)
    for row, x in zip(wide, arrays, strict=True):
        row[: len(x)] = x
    return wide
