"""Groups of ``golden_jobs`` that align pairs: zipped, one by one, all of a set."""

import json
from itertools import cycle, islice

import biotite.sequence as biotite
import numpy as np
from golden_draw import AMBIGUOUS, PROTEIN, RARE, Draw
from golden_groups import END_SETS, LONGEST, SCORINGS, Group, name_of
from golden_rows import Cells, Matrix, Note

import jaxalign

NO_ENDS = frozenset()


def pairs(scoring, count=50, longest=LONGEST, **options) -> Group:
    """``align_pairs``, first with first."""
    name = name_of("align_pairs", scoring, options, f"{count} to {longest}")

    def run(folder):
        make, letters = SCORINGS[scoring]
        queries, targets = Draw(name).pairs(count, letters, longest)
        return [jaxalign.align_pairs(queries, targets, make(), **options)]

    return Group(name, run)


def preset(tool, **options) -> Group:
    """``align_pairs`` under another tool's scoring."""
    name = name_of("align_pairs", f"preset {tool}", options)
    letters = AMBIGUOUS if tool == "blastn" else RARE

    def run(folder):
        queries, targets = Draw(name).pairs(40, letters, LONGEST)
        scoring = jaxalign.Scoring.preset(tool)
        return [jaxalign.align_pairs(queries, targets, scoring, **options)]

    return Group(name, run)


def one_to_all(scoring, side, **options) -> Group:
    """``align_pairs`` of one sequence with each of the others."""
    name = name_of("align_pairs", scoring, options, f"one {side}")

    def run(folder):
        make, letters = SCORINGS[scoring]
        many = Draw(name).family(40, letters, LONGEST)
        one = many[-1:]
        sides = (one, many) if side == "query" else (many, one)
        return [jaxalign.align_pairs(*sides, make(), **options)]

    return Group(name, run)


def matrix_file(**options) -> Group:
    """``align_pairs`` with a matrix in NCBI's format."""
    name = name_of("align_pairs", "matrix file", options)

    def run(folder):
        square = SCORINGS["skew"][0]().scores.tolist()
        letters = jaxalign.Scoring().alphabet.letters
        lines = ["# a comment", "   " + "  ".join(letters)]
        lines += [" ".join(map(str, [x, *row]))
                  for x, row in zip(letters, square, strict=True)]  # fmt: skip
        (folder / "skew.mat").write_text("\n".join([*lines, ""]))
        scoring = jaxalign.Scoring(str(folder / "skew.mat"), 12, 3)
        queries, targets = Draw(name).pairs(40, RARE, LONGEST)
        return [jaxalign.align_pairs(queries, targets, scoring, **options)]

    return Group(name, run)


def single(mode, scorings) -> Group:
    """``align``, a call a job; scorings, forms of sequences and free ends in turn."""
    name = name_of("align", "+".join(scorings), {"mode": mode})

    def run(folder):
        found, draw = [], Draw(name)
        for k, scoring in enumerate(islice(cycle(scorings), 40)):
            scoring = SCORINGS[scoring][0]()
            query, target = draw.pair(PROTEIN, LONGEST)
            given = [form(k + n, text, scoring.alphabet)
                     for n, text in enumerate((query, target))]  # fmt: skip
            ends = {"free_ends": END_SETS[k % 16]} if mode == "global" else {}
            found.append(jaxalign.align(*given, scoring, mode=mode, **ends))
        return found

    return Group(name, run)


def form(k: int, text: str, alphabet):
    """A protein in one of the forms in which it may be given."""
    forms = [text, text.encode(), (f"name {k}", text), text.lower()]
    forms += [alphabet.encode(text), biotite.ProteinSequence(text)]
    return forms[k % len(forms)]


def biotite_and_back(scoring) -> Group:
    """``to_biotite``, and ``from_biotite`` of it."""
    name = name_of("to_biotite", scoring, {})

    def run(folder):
        make, letters = SCORINGS[scoring]
        queries, targets = Draw(name).pairs(30, letters, LONGEST)
        table = jaxalign.align_pairs(
            queries, targets, make(), mode="local", output="alignment"
        )
        return [_there_and_back(table.alignment(k)) for k in range(len(table))]

    return Group(name, run)


def _there_and_back(alignment) -> str:
    there = alignment.to_biotite()
    back = jaxalign.Alignment.from_biotite(there, alignment.scoring, "local")
    texts = there.trace.tolist(), there.score, back.cigar(), back.identities
    return " ".join(map(str, [*texts, back.query_start, back.target_start]))


def flat_arrays() -> Group:
    """Sets as flat arrays and ``Sequences``; tables as records of other libraries."""
    name = name_of("align_pairs", "flat arrays", {})

    def run(folder):
        scoring = jaxalign.Scoring()
        queries, targets = Draw(name).pairs(40, PROTEIN, LONGEST)
        codes = [scoring.alphabet.encode(text) for text in queries]
        flat = np.concatenate(codes), np.cumsum([0, *map(len, codes)])
        names = tuple(f"q{k}" for k in range(40))
        held = jaxalign.Sequences(names, *flat, scoring.alphabet)
        targets = [(f"target|{k}", text) for k, text in enumerate(targets)]
        options = {"output": "alignment"}
        table = jaxalign.align_pairs(held, targets, scoring, **options)
        records = [table.to_arrow().to_pylist(), table.to_pandas().to_dict("records")]
        anew = jaxalign.align_pairs(flat, targets, scoring, **options)
        return [anew, *map(json.dumps, records)]

    return Group(name, run)


# All pairs of a set -------------------------------------------------------------------


def every_pair(scoring, count=10, longest=LONGEST, **options) -> Group:
    """``align_all``."""
    name = name_of("align_all", scoring, options, f"{count} to {longest}")

    def run(folder):
        make, letters = SCORINGS[scoring]
        texts = Draw(name).family(count, letters, longest)
        return [jaxalign.align_all(texts, make(), **options)]

    return Group(name, run)


def parts(scoring, part_rows, shards=1, **options) -> Group:
    """``stream_all``, one shard after the other."""
    given = {"part_rows": part_rows, "shards": shards} | options
    name = name_of("stream_all", scoring, given)

    def run(folder):
        make, letters = SCORINGS[scoring]
        texts, found = Draw(name).family(11, letters, LONGEST), []
        for shard in range(1, shards + 1):
            share = {"part_rows": part_rows, "shard": (shard, shards)} | options
            found += tables_of(jaxalign.stream_all(texts, make(), **share))
        return found

    return Group(name, run)


def tables_of(stream) -> list:
    """Tables of a stream, each after a note on its part."""
    found = []
    for part, table in stream:
        found += [Note(f"part {part.index}, {part.start} to {part.stop}"), table]
    return found


def scores(scoring, square, **options) -> Group:
    """``scores_matrix``, of a set against itself or of two sets."""
    shape = "square" if square else "cross"
    name = name_of("scores_matrix", scoring, options, shape)

    def run(folder):
        make, letters = SCORINGS[scoring]
        texts = Draw(name).family(12, letters, LONGEST)
        queries, targets = (texts[5:],) * 2 if square else (texts[:4], texts[3:])
        given = queries, None if square else targets, make()
        values = jaxalign.scores_matrix(*given, **options)
        problem = make(), options.get("mode", "global")
        ends = options.get("free_ends", NO_ENDS)
        return [Matrix(values, queries, targets, *problem, ends)]

    return Group(name, run)


def distances(scoring, **options) -> Group:
    """``distance_matrix``; a job is a row."""
    name = name_of("distance_matrix", scoring, options)

    def run(folder):
        make, letters = SCORINGS[scoring]
        texts = Draw(name).family(12, letters, LONGEST)
        found = jaxalign.distance_matrix(texts, make(), **options)
        return [f"{found.dtype} {row}" for row in found.tolist()]

    return Group(name, run)


# Tables of one pair -------------------------------------------------------------------


def cells(mode) -> Group:
    """``dp_table`` with gaps and ``directions``, free ends and scorings in turn.

    There are only four shapes, because each is compiled anew.
    """
    name = name_of("dp_table", "", {"mode": mode}, "and directions")
    shapes = ((40, 57), (57, 40), (1, 9), (17, 17))

    def run(folder):
        found, draw = [], Draw(name)
        for k in range(32):
            make, letters = SCORINGS[("affine", "ties", "half", "skew")[k // 8]]
            query, target = (draw.text(n, letters) for n in shapes[k % 4])
            found.append(_cells(END_SETS[k % 16], query, target, make(), mode))
        return found

    return Group(name, run)


def _cells(ends, query, target, scoring, mode) -> Cells:
    ends = ends if mode == "global" else None
    given = query, target, scoring
    tables = jaxalign.dp_table(*given, mode=mode, free_ends=ends, gaps=True)
    directions = jaxalign.directions(*given, mode=mode, free_ends=ends)
    return Cells(*given, mode, ends or NO_ENDS, *tables, directions)


def accurate(mode) -> Group:
    """``mea_alignment`` of posteriors that are given: sixteenths, with many ties."""
    name = name_of("mea_alignment", "", {"mode": mode})

    def run(folder):
        draw = Draw(name)
        return [_accurate(draw, mode, (k % 4) / 8) for k in range(20)]

    return Group(name, run)


def _accurate(draw, mode, threshold) -> str:
    query, target = draw.pair(PROTEIN, 40)
    values = np.array(draw.numbers(len(query) * len(target), 11)) / 16
    x = jaxalign.mea_alignment(
        values.reshape(len(query), len(target)), query, target, jaxalign.Scoring(),
        threshold=threshold, mode=mode,
    )  # fmt: skip
    spans = x.query_start, x.query_end, x.target_start, x.target_end
    return " ".join(map(str, [f"{x.score:.6g}", *spans, x.cigar()]))
