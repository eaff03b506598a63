"""Groups of ``golden_jobs`` that search databases, in memory, as FASTA, as an index."""

import gzip

from golden_draw import PROTEIN, Draw
from golden_groups import LONGEST, SCORINGS, Group, name_of
from golden_pairs import tables_of

import jaxalign


def hits(scoring, source="list", count=60, longest=LONGEST, **options) -> Group:
    """``search`` of five queries; some sequences of the database are equal."""
    options = {"top": 10} | options
    note = f"{source} of {count} to {longest}"
    name = name_of("search", scoring, options, note)

    def run(folder):
        make, letters = SCORINGS[scoring]
        texts = Draw(name).family(count, letters, longest)
        queries = texts[1:5] + texts[-1:]
        database = database_of(texts + texts[:3], source, folder, make())
        return [jaxalign.search(queries, database, make(), **options)]

    return Group(name, run)


def hits_in_parts(scoring, source, part_rows, **options) -> Group:
    """``stream_search``."""
    name = name_of("stream_search", scoring, {"part_rows": part_rows} | options, source)

    def run(folder):
        make, letters = SCORINGS[scoring]
        texts = Draw(name).family(40, letters, LONGEST)
        database = database_of(texts, source, folder, make())
        options_of_parts = {"top": 9, "part_rows": part_rows} | options
        stream = jaxalign.stream_search(texts[:5], database, make(), **options_of_parts)
        return tables_of(stream)

    return Group(name, run)


def unknown_letters(unknown, letters) -> Group:
    """``search`` of a file with letters that the alphabet lacks, and its index."""
    name = name_of("search", letters, {"unknown": unknown})

    def run(folder):
        texts = Draw(name).family(30, PROTEIN + letters, LONGEST)
        path = database_of(texts, "file", folder, None)
        table = jaxalign.search(path, path, unknown=unknown, top=2)
        index = folder / "other.jaxdb"
        counts = jaxalign.index_database(path, index, unknown=unknown)
        held = jaxalign.open_database(index, verify=True)
        texts = [f"{held.names[k]} {held.text(k)}" for k in range(len(held))]
        numbers = [f"{key} {counts[key]}" for key in ("records", "residues", "longest")]
        return [table, " ".join([*numbers, f"substituted {counts['substituted']}"]),
                "\n".join(texts)]  # fmt: skip

    return Group(name, run)


def database_of(texts, source, folder, scoring):
    """A list, the path of FASTA in lines of 60, plain or compressed, or an index."""
    if source == "list":
        return [(f"t{k}", text) for k, text in enumerate(texts)]
    path = folder / ("database.fasta.gz" if source == "gz" else "database.fasta")
    content = _fasta(texts, "\r\n" if source == "gz" else "\n").encode()
    path.write_bytes(gzip.compress(content) if source == "gz" else content)
    if source == "index":
        jaxalign.index_database(path, folder / "database.jaxdb", scoring)
        return folder / "database.jaxdb"
    return path


def _fasta(texts, newline) -> str:
    lines = []
    for k, text in enumerate(texts):
        text = text.lower() if k % 3 == 0 else text
        lines.append(f">t{k} of a file")
        lines += [text[at : at + 60] for at in range(0, len(text), 60)]
    return newline.join([*lines, ""])
