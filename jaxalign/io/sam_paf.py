"""Read-mapping formats, the query laid on the target: SAM and PAF."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.io.columns import chunks, require
from jaxalign.model.names import written
from jaxalign.model.strands import other_strand
from jaxalign.model.table import Table

UNMAPPED, REVERSE, SECONDARY, NO_QUALITY = 4, 16, 256, 255

_QUERY_NAME = re.compile(r"[!-?A-~]{1,254}")
_TARGET_NAME = re.compile(
    r"[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*"
)


def sam(table: Table) -> Iterator[str]:
    """Yield SAM 1.6: targets are the references, query ends are soft-clipped.

    The best row of a query is its primary line, its other rows are secondary
    (flag 256); a row that covers no target residue is unmapped (flag 4). A row of the
    minus strand has flag 16 and the reverse complement of its query.
    """
    require(table, "alignment", "format 'sam'")
    _check_sam_names(table.queries.names, _QUERY_NAME, "query")
    _check_sam_names(table.targets.names, _TARGET_NAME, "target")
    yield _sam_header(table)
    flags = _flags(table)
    sequence = lru_cache(maxsize=1024)(table.queries.text)
    start = 0
    for part in chunks(table):
        stop = start + len(part)
        yield "".join(_sam_lines(part, flags[start:stop], sequence))
        start = stop


def paf(table: Table) -> Iterator[str]:
    """Yield PAF: 12 columns, from 0, half-open; cg:Z where paths were kept.

    Names are as in tsv (``jaxalign.model.names``).
    """
    require(table, "stats", "format 'paf'")
    for part in chunks(table):
        yield "".join(_paf_lines(part))


def program_version() -> str:
    """Return the installed version of jaxalign, or "unknown"."""
    try:
        return version("jaxalign")
    except PackageNotFoundError:
        return "unknown"


def score_text(score: float) -> str:
    """Write a score the shortest way: 5, not 5.0; 292.5."""
    return f"{score:.15g}"


def _sam_header(table: Table) -> str:
    # A reference of length 0 is not allowed, and no row can be mapped to it.
    references = "".join(
        f"@SQ\tSN:{name}\tLN:{length}\n"
        for name, length in zip(
            table.targets.names, table.targets.lengths.tolist(), strict=True
        )
        if length
    )
    program = f"@PG\tID:jaxalign\tPN:jaxalign\tVN:{program_version()}"
    what = f"\tDS:{table.mode}, {table.scoring}\n"
    return "@HD\tVN:1.6\tSO:unknown\n" + references + program + what


def _flags(table: Table) -> np.ndarray:
    unmapped = table["target_end"] == table["target_start"]
    order = np.lexsort((-table["score"].astype(float), unmapped, table["query"]))
    query = table["query"][order]
    best = np.ones(len(table), bool)
    best[1:] = query[1:] != query[:-1]
    flags = np.full(len(table), SECONDARY)
    flags[order[best]] = 0
    flags[unmapped] = UNMAPPED
    flags[~unmapped & (_strands(table) < 0)] += REVERSE
    return flags


def _strands(table: Table) -> np.ndarray:
    return table.columns.get("strand", np.ones(len(table), np.int8))


def _sam_lines(
    part: Table, flags: np.ndarray, sequence: Callable[[int], str]
) -> Iterator[str]:
    spans = ("query_start", "query_end", "target_start")
    counts = ("query", "target", "score", *spans, "columns", "identities")
    rows = zip(flags.tolist(), *(part[c].tolist() for c in counts), strict=True)
    names, references = part.queries.names, part.targets.names
    for i, (flag, q, t, score, qs, qe, ts, columns, same) in enumerate(rows):
        residues = sequence(q)
        if flag & REVERSE:
            residues = other_strand(residues, part.scoring.alphabet)
            qs, qe = len(residues) - qe, len(residues) - qs
        tags = f"{_score_tag(score)}\tNM:i:{columns - same}"
        place = f"{references[t]}\t{ts + 1}\t{NO_QUALITY}"
        clipped = _clips(qs) + part.cigar(i) + _clips(len(residues) - qe)
        if flag == UNMAPPED:
            place, clipped, tags = "*\t0\t0", "*", _score_tag(score)
        yield (
            f"{names[q]}\t{flag}\t{place}\t{clipped}\t*\t0\t0\t"
            f"{residues or '*'}\t*\t{tags}\n"
        )


def _clips(length: int) -> str:
    return f"{length}S" if length else ""


def _score_tag(score: int | float) -> str:
    # AS is defined as an integer; lower-case tags are free for local use.
    integral = isinstance(score, int)
    return f"AS:i:{score}" if integral else f"as:f:{score_text(score)}"


def _paf_lines(part: Table) -> Iterator[str]:
    queries, targets, paths = part.queries, part.targets, part.operations is not None
    counts = ("query_start", "query_end", "target_start", "target_end")
    wanted = ("query", "target", "score", *counts, "identities", "columns")
    signs = ["+" if sign > 0 else "-" for sign in _strands(part).tolist()]
    rows = zip(signs, *(part[c].tolist() for c in wanted), strict=True)
    m, n = queries.lengths.tolist(), targets.lengths.tolist()
    for i, (sign, q, t, score, qs, qe, ts, te, same, columns) in enumerate(rows):
        path = f"\tcg:Z:{part.cigar(i)}" if paths and columns else ""
        query, target = written(queries.names[q]), written(targets.names[t])
        yield (
            f"{query}\t{m[q]}\t{qs}\t{qe}\t{sign}\t"
            f"{target}\t{n[t]}\t{ts}\t{te}\t{same}\t{columns}\t"
            f"{NO_QUALITY}\t{_score_tag(score)}{path}\n"
        )


def _check_sam_names(names: Sequence[str], rule: re.Pattern[str], side: str) -> None:
    for name in names:
        if not rule.fullmatch(name):
            raise UsageError(
                f"format 'sam' cannot hold the {side} name {name!r} (SAM allows "
                "letters, digits and most signs, but no comma, quote or bracket in "
                "targets, '@' in queries); write tsv or paf instead"
            )
