"""Alignments for people: aligned FASTA rows and the EMBOSS srspair look."""

from collections.abc import Iterator
from dataclasses import replace

from jaxalign.io.columns import chunks, require
from jaxalign.io.sam_paf import program_version, score_text
from jaxalign.model import show
from jaxalign.model.alignment import Alignment
from jaxalign.model.names import all_written
from jaxalign.model.scoring import Scoring
from jaxalign.model.table import Table

WIDTH = 50
GAP = "-"


def fasta(table: Table) -> Iterator[str]:
    """Yield two gapped rows per alignment; spans are 0-based and half-open."""
    require(table, "alignment", "format 'fasta'")
    for number, alignment in _alignments(table):
        a, query, target = alignment, *alignment.rows()
        tail = f"mode={a.mode} score={score_text(a.score)}"
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
    Length and Gaps, as needle does; the header says so.
    """
    require(table, "alignment", "format 'pair'")
    yield _file_header(table)
    for _, alignment in _alignments(table):
        query, target = with_overhang(alignment)
        start = alignment.query_start if alignment.mode == "local" else 0
        signs = show.marks(query, target, table.scoring, start)
        yield _pair_header(alignment, table.scoring, query, target, signs)
        yield _blocks(alignment, query, signs, target)
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
    number = 0
    for part in chunks(table):
        for row in range(len(part)):
            number += 1
            yield number, _named(part.alignment(row))


def _named(alignment: Alignment) -> Alignment:
    """With names that end no line, as in tsv (``jaxalign.model.names``)."""
    names = alignment.query_name, alignment.target_name
    query, target = all_written(names)
    if (query, target) == names:
        return alignment
    return replace(alignment, query_name=query, target_name=target)


def _file_header(table: Table) -> str:
    rule = "#" * 40 + "\n"
    free = ", ".join(sorted(table.free_ends)) or "none"
    return (
        f"{rule}# Program: jaxalign {program_version()}\n# Align_format: srspair\n"
        f"# Scoring: {table.scoring}\n# Mode: {table.mode}\n"
        f"# Free_ends: {free}\n{rule}\n"
    )


def _pair_header(
    alignment: Alignment, scoring: Scoring, query: str, target: str, signs: str
) -> str:
    a, rule, length = alignment, "#" + "=" * 39, len(signs)
    same = signs.count("|")
    return (
        f"{rule}\n#\n# Aligned_sequences: 2\n"
        f"# 1: {a.query_name}\n# 2: {a.target_name}\n"
        f"# Matrix: {scoring.matrix_name}\n"
        f"# Gap_penalty: {scoring.open / scoring.scale}\n"
        f"# Extend_penalty: {scoring.extend / scoring.scale}\n"
        f"#\n# Length: {length}\n"
        f"# Identity:   {_share(same, length)}\n"
        f"# Similarity: {_share(same + signs.count(':'), length)}\n"
        f"# Gaps:       {_share(query.count(GAP) + target.count(GAP), length)}\n"
        f"# Score: {score_text(a.score)}\n"
        f"{_overhang_line(a)}#\n#\n{rule}\n\n"
    )


def _share(count: int, length: int) -> str:
    percent = 100 * count / length if length else 0.0
    return f"{count:>5}/{length} ({percent:4.1f}%)"


def _overhang_line(alignment: Alignment) -> str:
    a = alignment
    query = len(a.query) - (a.query_end - a.query_start)
    target = len(a.target) - (a.target_end - a.target_start)
    if a.mode == "local" or not query + target:
        return ""
    return (
        f"# Overhang: {query} query and {target} target residues beyond the free ends, "
        "written against gaps, counted in Length and Gaps\n"
    )


def _blocks(alignment: Alignment, query: str, signs: str, target: str) -> str:
    a, local = alignment, alignment.mode == "local"
    width = max(13, len(a.query_name), len(a.target_name))
    q, t = (a.query_start, a.target_start) if local else (0, 0)
    lines = []
    for start in range(0, len(signs), WIDTH):
        piece = slice(start, start + WIDTH)
        upper, lower = query[piece], target[piece]
        first = _row(a.query_name, width, q, upper)
        middle = f"{'':{width + 8}}{signs[piece]}\n"
        last = _row(a.target_name, width, t, lower)
        q += len(upper) - upper.count(GAP)
        t += len(lower) - lower.count(GAP)
        lines.append(first + middle + last + "\n")
    return "".join(lines) + "\n"


def _row(name: str, width: int, before: int, letters: str) -> str:
    """A row without residues repeats the last number, as needle's do."""
    after = before + len(letters) - letters.count(GAP)
    first = before + (after > before)
    return f"{name:<{width}} {first:>6} {letters} {after:>6}\n"
