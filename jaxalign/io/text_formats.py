"""Alignments as text: SAM and PAF, MAF, formats for people and for splitters, triples.

SAM and PAF lay the query on the target; MAF is the Multiple Alignment Format of two
sequences, as genome browsers and LAST have it; ``fasta`` and ``pair`` are for people.
Homology splitters read three:

graphpart
    ``graphpart precomputed --edge-file``: ``id1,id2,identity``, no heading. An id ends
    at the first ``|``, as in GraphPart's own FASTA headings.
hestia
    A table ``query,target,metric`` of 0-based record numbers and identities, for
    ``HestiaGenerator.calculate_partitions(sim_df=...)``.
datasail
    ``datasail --e-sim``: a square table, tab-separated, ids in first row and column.

Sources: graph-part 1.0.2, precomputed_utils.load_edge_list; hestia-good 1.2.2,
similarity.sim_df2mtx; datasail 1.4.0, reader.utils.read_clustering_file.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.io import output
from jaxalign.io.columns import chunks, require
from jaxalign.model import show
from jaxalign.model.alignment import Alignment
from jaxalign.model.names import CONTROL, all_written, written
from jaxalign.model.scoring import Scoring
from jaxalign.model.strands import other_strand
from jaxalign.model.system import program_version
from jaxalign.model.table import Table
from jaxalign.model.triple import PAIRS, SIGNS, TripleAlignment

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
    # A reference of length 0 is not allowed, and no row can be mapped to it.
    sizes = zip(table.targets.names, table.targets.lengths.tolist(), strict=True)
    references = "".join(f"@SQ\tSN:{name}\tLN:{n}\n" for name, n in sizes if n)
    program = f"@PG\tID:jaxalign\tPN:jaxalign\tVN:{program_version()}"
    what = f"\tDS:{table.mode}, {table.scoring}\n"
    yield "@HD\tVN:1.6\tSO:unknown\n" + references + program + what
    unmapped = table["target_end"] == table["target_start"]
    order = np.lexsort((-table["score"].astype(float), unmapped, table["query"]))
    query = table["query"][order]
    best = np.ones(len(table), bool)
    best[1:] = query[1:] != query[:-1]
    flags = np.full(len(table), SECONDARY)
    flags[order[best]] = 0
    flags[unmapped] = UNMAPPED
    flags[~unmapped & (_strands(table) < 0)] += REVERSE
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
        ends = (f"{length}S" if length else "" for length in (qs, len(residues) - qe))
        clipped = part.cigar(i).join(ends)
        if flag == UNMAPPED:
            place, clipped, tags = "*\t0\t0", "*", _score_tag(score)
        yield (
            f"{names[q]}\t{flag}\t{place}\t{clipped}\t*\t0\t0\t"
            f"{residues or '*'}\t*\t{tags}\n"
        )


def _score_tag(score: int | float) -> str:
    # AS is defined as an integer; lower-case tags are free for local use.
    integral = isinstance(score, int)
    return f"AS:i:{score}" if integral else f"as:f:{show.number(score)}"


def _paf_lines(part: Table) -> Iterator[str]:
    queries, targets, paths = part.queries, part.targets, part.operations is not None
    counts = ("query_start", "query_end", "target_start", "target_end")
    fields = ("query", "target", "score", *counts, "identities", "columns")
    signs = ["+" if sign > 0 else "-" for sign in _strands(part).tolist()]
    rows = zip(signs, *(part[c].tolist() for c in fields), strict=True)
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


_NAME = re.compile(r"[!-~]+")


def maf(table: Table) -> Iterator[str]:
    """Yield MAF: a block an alignment, the target first.

    Starts are from 0, of a query on the minus strand from the beginning of its reverse
    complement, as the format has it. An alignment without columns has no block.
    """
    require(table, "alignment", "format 'maf'")
    for name in (*table.queries.names, *table.targets.names):
        if not _NAME.fullmatch(name):  # fields are divided by white space
            raise UsageError(
                f"format 'maf' cannot hold the name {name!r} (MAF allows printable "
                "ASCII without white space); write tsv or paf instead"
            )
    about = f"jaxalign {program_version()}, {table.mode}, {table.scoring}"
    yield f"##maf version=1\n# {about}\n"
    for a, sign in zip(table.alignments(), _strands(table).tolist(), strict=True):
        query, target = a.rows()
        if not query:
            continue
        strand, m = "+" if sign > 0 else "-", len(a.query)
        sides = (
            (a.target_name, a.target_start, a.target_end, "+", len(a.target), target),
            (a.query_name, a.query_start, a.query_end, strand, m, query),
        )
        lines = (
            f"s {name} {start} {end - start} {strand} {length} {text}\n"
            for name, start, end, strand, length, text in sides
        )
        yield f"\na score={show.number(a.score)}\n" + "".join(lines)


WIDTH = 50
_RESIDUE = re.compile("[^-]")
_BREAKS = re.compile(r"[\s:]")
GAP = "-"


def fasta(table: Table) -> Iterator[str]:
    """Yield two gapped rows per alignment; spans are 0-based and half-open."""
    require(table, "alignment", "format 'fasta'")
    for number, alignment in _alignments(table):
        a, query, target = alignment, *alignment.rows()
        tail = f"mode={a.mode} score={show.number(a.score)}"
        q_span, t_span = (a.query_start, a.query_end), (a.target_start, a.target_end)
        yield (
            f">{a.query_name} pair={number} row=query "
            f"span={q_span[0]}:{q_span[1]} length={len(a.query)} {tail}\n{query}\n"
            f">{a.target_name} pair={number} row=target "
            f"span={t_span[0]}:{t_span[1]} length={len(a.target)} {tail}\n{target}\n"
        )


def pair(table: Table) -> Iterator[str]:
    """Yield every alignment in the look of EMBOSS needle and water (srspair).

    Residues that hang over a free end are written against gaps and counted in
    Length and Gaps, as needle does; the header says so. A name is cut in the rows, as
    needle cuts it, and its blanks and colons are _, since readers end a name there. An
    alignment without columns is a line of its own, which they skip.
    """
    require(table, "alignment", "format 'pair'")
    rule = "#" * 40 + "\n"
    free = ", ".join(sorted(table.free_ends)) or "none"
    overhang = ""
    if table.free_ends and table.mode != "local":
        overhang = (
            "# Overhang: residues beyond the free ends are written against gaps, "
            "counted in Length and Gaps\n"
        )
    yield (
        f"{rule}# Program: jaxalign {program_version()}\n# Align_format: srspair\n"
        f"# Scoring: {table.scoring}\n# Mode: {table.mode}\n"
        f"# Free_ends: {free}\n{overhang}{rule}\n"
    )
    for _, alignment in _alignments(table):
        names = (alignment.query_name, alignment.target_name)
        names = [_BREAKS.sub("_", name) or "_" for name in names]
        alignment = replace(alignment, query_name=names[0], target_name=names[1])
        query, target = with_overhang(alignment)
        start = alignment.query_start if alignment.mode == "local" else 0
        signs = show.marks(query, target, table.scoring, start)
        if not signs:
            score = show.number(alignment.score)
            yield f"#{'-' * 39} {' and '.join(names)}: score {score}, no columns\n\n"
            continue
        yield _pair_header(alignment, table.scoring, query, target, signs)
        # Blocks of both rows with their numbers, from 0 unless the match is local.
        a, q = alignment, start
        t = a.target_start if a.mode == "local" else 0
        heads = [[x.start() for x in islice(_RESIDUE.finditer(row), 2)]
                 for row in (query, target)]  # fmt: skip
        lines, end = [], 0
        while end < len(signs):
            piece = slice(end, end := end + WIDTH)
            # A block ends before a row's first residue that would be alone in it:
            # Biopython takes such a row for one of the other strand.
            for head, following in (x for x in heads if len(x) == 2):
                if piece.start < head < end <= following:
                    piece = slice(piece.start, end := head)
            upper, lower = query[piece], target[piece]
            first = _row(a.query_name, q, upper)
            middle = f"{'':{ROW_HEAD}}{signs[piece]}\n"
            last = _row(a.target_name, t, lower)
            q += len(upper) - upper.count(GAP)
            t += len(lower) - lower.count(GAP)
            lines.append(first + middle + last + "\n")
        yield "".join(lines) + "\n"
    yield "#" + "-" * 39 + "\n" + "#" + "-" * 39 + "\n"


def with_overhang(alignment: Alignment) -> tuple[str, str]:
    """Return both gapped rows, the residues outside the core against gaps.

    In local mode nothing is added: what lies outside is not part of the match.
    """
    query, target = alignment.rows()
    if alignment.mode == "local":
        return query, target
    a = alignment
    head, front = a.query[: a.query_start], a.target[: a.target_start]
    tail, back = a.query[a.query_end :], a.target[a.target_end :]
    return (
        head + GAP * len(front) + query + tail + GAP * len(back),
        GAP * len(head) + front + target + GAP * len(tail) + back,
    )


def _alignments(table: Table) -> Iterator[tuple[int, Alignment]]:
    """Yield numbers from 1, and alignments with names that end no line, as in tsv."""
    for number, alignment in enumerate(table.alignments(), 1):
        names = alignment.query_name, alignment.target_name
        query, target = all_written(names)
        if (query, target) != names:
            alignment = replace(alignment, query_name=query, target_name=target)
        yield number, alignment


def _pair_header(
    alignment: Alignment, scoring: Scoring, query: str, target: str, signs: str
) -> str:
    a, rule, length = alignment, "#" + "=" * 39, len(signs)
    same, penalties = signs.count("|"), ["by position"] * 2
    if scoring.gap_costs is None:
        penalties = [x / scoring.scale for x in (scoring.open, scoring.extend)]

    def share(count: int) -> str:
        return f"{count:>5}/{length} ({100 * count / length:4.1f}%)"

    return (
        f"{rule}\n#\n# Aligned_sequences: 2\n"
        f"# 1: {a.query_name}\n# 2: {a.target_name}\n"
        f"# Matrix: {scoring.matrix_name}\n"
        f"# Gap_penalty: {penalties[0]}\n"
        f"# Extend_penalty: {penalties[1]}\n"
        f"#\n# Length: {length}\n"
        f"# Identity:   {share(same)}\n"
        f"# Similarity: {share(same + signs.count(':'))}\n"
        f"# Gaps:       {share(query.count(GAP) + target.count(GAP))}\n"
        f"# Score: {show.number(a.score)}\n"
        f"#\n#\n{rule}\n\n"
    )


ROW_HEAD = 21  # characters of name and number, after which readers expect the letters


def _row(name: str, before: int, letters: str) -> str:
    """Format one row; without residues it repeats the last number, as needle does."""
    after = before + len(letters) - letters.count(GAP)
    first = f"{before + (after > before):>6}"
    width = ROW_HEAD - len(first) - 2
    return f"{name[:width]:<{width}} {first} {letters} {after:>6}\n"


def graphpart(table: Table, identity: str) -> Iterator[str]:
    """Yield an edge list. Pairs that are not listed are taken for unlike."""
    require(table, "identity", "format 'graphpart'")
    queries, targets = (
        _ids(names, ",", "graphpart", "|")
        for names in (table.queries.names, table.targets.names)
    )
    for part in chunks(table):
        rows = _rows(part, identity)
        yield "".join(f"{queries[i]},{targets[j]},{x!r}\n" for i, j, x in rows)


def hestia(table: Table, identity: str) -> Iterator[str]:
    """Yield record numbers and identities below the heading query,target,metric."""
    require(table, "identity", "format 'hestia'")
    yield "query,target,metric\n"
    for part in chunks(table):
        yield "".join(f"{i},{j},{x!r}\n" for i, j, x in _rows(part, identity))


def datasail(table: Table, identity: str) -> Iterator[str]:
    """Yield the square of identities, 1 on the diagonal; pairs without a row are 0."""
    require(table, "identity", "format 'datasail'")
    if table.queries is not table.targets:
        raise UsageError(
            "format 'datasail' is a square matrix: compare one set with itself"
        )
    names = _ids(table.queries.names, "\t", "datasail")
    square = np.zeros((len(names), len(names)), np.float32)
    values = _identities(table, identity)
    square[table["query"], table["target"]] = values
    square[table["target"], table["query"]] = values
    np.fill_diagonal(square, 1)
    yield "\t".join(["ID", *names]) + "\n"
    for name, row in zip(names, square, strict=True):
        yield name + "".join(f"\t{x:.6g}" for x in row.tolist()) + "\n"


def _rows(table: Table, identity: str):
    """(query, target, identity) of each row; floats print so that they read back."""
    values = _identities(table, identity).tolist()
    return zip(table["query"].tolist(), table["target"].tolist(), values, strict=True)


def _identities(table: Table, identity: str) -> np.ndarray:
    """Identity of each row, 0 where the denominator is 0."""
    return np.nan_to_num(table.identity(identity))


def _ids(names: Sequence[str], separator: str, format: str, end: str | None = None):
    """Return names as the target tool reads them."""
    ids = [name.split(end, 1)[0] if end else name for name in names]
    for name in ids:
        fits = separator not in name and not CONTROL.search(name)
        if not fits or name != name.strip() or not name:
            raise UsageError(f"format {format!r} cannot hold the name {name!r}")
    if len(set(ids)) < len(ids):
        raise UsageError(
            f"format {format!r} needs names that differ{_why(names, ids, end)}"
        )
    return ids


def _why(names: Sequence[str], ids: list[str], end: str | None) -> str:
    """Explain which two names collide after truncation, and how to fix it."""
    first: dict[str, int] = {}
    number = next(k for k, id in enumerate(ids) if first.setdefault(id, k) != k)
    id, partner = names[first[ids[number]]], names[number]
    if end is None or id == partner:
        return ""
    return (
        f": it reads a name up to the first {end!r}, so {id!r} and {partner!r} are "
        f"both {ids[number]!r}; keep what differs, as the accession number: "
        r"sed 's/^>[a-z]*|\([^|]*\)|.*/>\1/' IN > OUT"
    )


TRIPLE_WIDTH = 60


def write_triple(
    triple: TripleAlignment, path: str, format: str = "pretty", force: bool = False
) -> None:
    """Write one alignment to a file, or with ``"-"`` to standard output, in one of
    ``FORMATS``. In all but json a control character in a name is an escape
    (``jaxalign.model.names``)."""
    if format not in TRIPLE_FORMATS:
        names = ", ".join(TRIPLE_FORMATS)
        raise UsageError(f"unknown format {format!r}: one of {names}")
    if triple.gapped is None and format in ("fasta", "clustal"):
        raise UsageError(
            f"format {format!r} needs the rows of the alignment: align with a traceback"
        )
    output.check(path, force)
    if format != "json":  # which has escapes of its own
        triple = replace(triple, names=tuple(map(written, triple.names)))
    output.write_text(path, TRIPLE_FORMATS[format](triple))


def triple_pretty(triple: TripleAlignment) -> Iterator[str]:
    """Scores, then blocks of three rows with 1-based numbers and the consensus."""
    yield f"# {triple.scoring}; {triple.gap_model} gaps; {triple.mode}\n"
    yield f"# score {show.number(triple.score)}\n"
    if triple.gapped is None:
        return
    for (x, y), score in zip(PAIRS, triple.pair_scores, strict=True):
        yield f"# {triple.names[x]} / {triple.names[y]}: {show.number(score)}\n"
    yield f"# with natural gaps {show.number(triple.score_natural)}\n"
    width = max(9, *(len(name) for name in triple.names))
    at, consensus = [start for start, _ in triple.spans], triple.consensus()
    for first in range(0, triple.columns, TRIPLE_WIDTH):
        piece = slice(first, first + TRIPLE_WIDTH)
        yield "\n"
        for n, (name, row) in enumerate(zip(triple.names, triple.gapped, strict=True)):
            residues = len(row[piece]) - row[piece].count("-")
            first_residue, at[n] = at[n] + (residues > 0), at[n] + residues
            yield f"{name:<{width}} {first_residue:>6} {row[piece]} {at[n]:>6}\n"
        line = f"{'consensus':<{width}} {'':>6} {consensus[piece]}"
        yield line.rstrip() + "\n"


def triple_fasta(triple: TripleAlignment) -> Iterator[str]:
    """Three gapped rows; spans are 0-based and half-open."""
    score, texts = show.number(triple.score), triple.sequences
    spans: tuple = triple.spans or ()
    records = zip(triple.names, spans, texts, triple.rows(), strict=True)
    for name, (start, end), text, row in records:
        about = f"span={start}:{end} length={len(text)} score={score}"
        yield f">{name} {about}\n{row}\n"


def triple_clustal(triple: TripleAlignment) -> Iterator[str]:
    """Clustal's look: ``*`` three equal letters, ``:`` every pair scores above 0,
    ``.`` two letters equal; names keep no blanks."""
    yield f"CLUSTAL alignment by jaxalign {program_version()}\n\n"
    names = [name.replace(" ", "_") or "_" for name in triple.names]
    width = max(map(len, names)) + 6
    marks = "".join(SIGNS[kind] for kind in triple.agreement())
    for first in range(0, triple.columns, TRIPLE_WIDTH):
        piece = slice(first, first + TRIPLE_WIDTH)
        yield "\n"
        for name, row in zip(names, triple.rows(), strict=True):
            yield f"{name:<{width}}{row[piece]}\n"
        yield f"{'':<{width}}{marks[piece]}\n"


def triple_json(triple: TripleAlignment) -> Iterator[str]:
    """Yield one JSON object with every field of the result."""
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


TRIPLE_FORMATS = {
    "pretty": triple_pretty,
    "fasta": triple_fasta,
    "clustal": triple_clustal,
    "json": triple_json,
}
