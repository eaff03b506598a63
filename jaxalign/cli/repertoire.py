"""``jaxalign repertoire``: receptors -> plan -> edges, block by block."""

import os
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from jaxalign.cli import report
from jaxalign.cli.derive import Given
from jaxalign.cli.run import FREE, check_outputs, check_resume, place_of, run
from jaxalign.cli.terminal import Messages, Report
from jaxalign.errors import UsageError
from jaxalign.io import delimited, output
from jaxalign.io.runs import Arrays, SavedRun, about_file
from jaxalign.model.names import written
from jaxalign.model.show import counted
from jaxalign.options import RepertoireOptions, shared
from jaxalign.repertoire import api

FORMATS = (".tsv", ".csv", ".parquet", ".npz")
INPUTS = ("receptors", "against", "v_distances", "v_loops")
PLACES = ("list_out",)  # outputs beside which a state may be
SIDES, EDGE_BYTES = ("i", "j", "distance"), 72  # of a state, in half a memory


def repertoire(given: Given) -> int:
    """``jaxalign repertoire CELLS``."""
    began, messages = time.perf_counter(), Messages(given.quiet)
    distances, loops = given.v_distances, given.v_loops
    _check_outputs(given)
    if distances and loops:
        raise UsageError("--v-distances and --v-loops exclude each other")
    own: dict[str, Any] = dict.fromkeys(("offset", "cap", "devices"))
    own["v_distances"] = delimited.gene_distances(distances) if distances else None
    own["v_loops"] = delimited.read_genes(loops)[1] if loops else None
    chosen = RepertoireOptions(**shared(given, RepertoireOptions, **own))
    if given.part_rows < 1:
        raise UsageError(f"--part-rows {given.part_rows}: must be 1 or more")
    files = {x: getattr(given, x) for x in INPUTS if getattr(given, x) is not None}
    check_resume(given, files.values(), PLACES)
    machine = api.machine_of(chosen)
    # A graph is written when it is whole; in one block, variants are made once.
    whole = given.list_out or (given.out and given.out.endswith(".npz"))
    in_one = whole and chosen.metric == "levenshtein"
    part_rows = None if in_one else given.part_rows
    plan = api.plan_of(given.receptors, given.against, chosen, part_rows)
    saved = _checkpoint(given, files, chosen)
    before = saved and saved.load(given.resume, given.force)

    def heading() -> Iterator[str]:
        yield str(plan)
        yield from report.long_job(api.graph.expected_seconds(plan, machine))
        _warn_of_rows(plan, messages)

    def compute(progress: Report | None) -> tuple[int, float]:
        edges = _edges(plan, machine, progress, saved, before or {})
        count = _write(plan, edges, given, machine.threads)
        return count, time.perf_counter() - began

    def finish(result: tuple[int, float]) -> Iterator[str]:
        yield f"{counted(result[0], 'edge')}, {result[1]:.1f} s"

    def about(result: tuple[int, float]) -> dict:
        sides = {"receptors": plan.receptors, "reference": plan.reference}
        described = {
            name: {
                "file": side.rows.origin,
                "rows": len(side.rows),
                "receptors": len(side),
                "without_distance": {k: len(x) for k, x in side.problems.items()},
            }
            for name, side in sides.items()
            if side is not None
        }
        definition = plan.definition.about() | {"text": str(plan.definition)}
        figures = {"edges": result[0], "seconds": round(result[1], 3)}
        return {"definition": definition, **described, **figures}

    return run(given, messages, heading(), compute, finish, about, saved=saved)


def _checkpoint(
    given: Given, files: dict[str, str], chosen: RepertoireOptions
) -> SavedRun | None:
    """The file of the state of a run; None where it has none.

    files : inputs by their options
    """
    place, scoring = place_of(given, PLACES), str(given.scoring)
    if place is None or not all(map(os.path.isfile, files.values())):
        return None

    def describe() -> dict:
        read = files | ({"scoring": scoring} if os.path.isfile(scoring) else {})
        free = {*FREE, *INPUTS}
        options = {x: repr(y) for x, y in vars(chosen).items() if x not in free}
        return {
            "inputs": {name: about_file(path) for name, path in read.items()},
            "options": options,
            "part_rows": given.part_rows,
            "jaxalign": report.versions()["jaxalign"],
        }

    return SavedRun(place, describe)


def _edges(
    plan: api.RepertoirePlan,
    machine: api.Machine,
    progress: Report | None,
    saved: SavedRun | None,
    before: Arrays,
) -> Iterator[delimited.EdgeColumns]:
    """Yield the edges of each block; those of an interrupted run come first.

    saved : takes all edges so far, unless they are more than a share of the memory
    before : the edges of an interrupted run
    """
    one_set = plan.reference is None
    side = plan.receptors if plan.reference is None else plan.reference
    total, ends = len(plan.receptors) * len(side), [0]
    sides: list[list[np.ndarray]] = [[], [], []]

    def state() -> Arrays:
        sides[:] = [[np.concatenate(x)] for x in sides]
        return {x: y for x, (y,) in zip(SIDES, sides, strict=True)} | {
            "ends": np.array(ends)
        }

    if before:
        ends, sides = before["ends"].tolist(), [[before[x]] for x in SIDES]
        (i,), (j,), (distance,) = sides
        for start, stop in pairwise(ends):
            yield i[start:stop], j[start:stop], distance[start:stop]
    for block in api.graph.blocks(plan, machine, len(ends) - 1):
        if progress is not None:  # of one set, each pair once
            pairs, left = block.rows.stop * len(side), len(side) - block.rows.stop
            progress(total - left**2 if one_set else pairs, total)
        edges = block.edges.sides
        if saved is not None:
            for array, all_of_side in zip(edges, sides, strict=True):
                all_of_side.append(array)
            ends.append(ends[-1] + len(block.edges))
            if ends[-1] * EDGE_BYTES > machine.budget:
                saved, sides = None, [[], [], []]
            else:
                saved.save(state)
        yield edges


def _check_outputs(options: Given) -> None:
    out, listed = options.out, options.list_out
    if listed and options.against:
        raise UsageError(
            "--list writes clusters, which a comparison with --against does not have"
        )
    if out and out != output.STDOUT and not out.endswith(FORMATS):
        raise UsageError(f"{out}: unknown suffix; use one of {', '.join(FORMATS)}")
    genes = options.v_distances, options.v_loops
    inputs = (options.receptors, options.against, *genes, options.scoring)
    delimited.check_list_format(listed)
    check_outputs(options, out, [listed], inputs)


def _warn_of_rows(plan: api.RepertoirePlan, messages: Messages) -> None:
    """Rows without a distance, and rows that were left out."""
    for side in filter(None, (plan.receptors, plan.reference)):
        for note in side.rows.notes:
            messages.warn(f"{side.rows.origin}: {note}")
        for why, rows in side.problems.items():
            some = ", ".join(f"{side.rows.names[row]}" for row in rows[:5].tolist())
            more = ", …" if len(rows) > 5 else ""
            count = counted(len(rows), "row")
            messages.warn(f"{side.rows.origin}: {count}: {why} ({some}{more})")


def _write(
    plan: api.RepertoirePlan,
    blocks: Iterator[delimited.EdgeColumns],
    options: Given,
    threads: int,
) -> int:
    """Write what is asked for; how many edges there were."""
    counts, out = [], options.out

    def counted_edges() -> Iterator[delimited.EdgeColumns]:
        for sides in blocks:
            counts.append(len(sides[0]))
            yield sides

    edges, rows = counted_edges(), _first_names(plan.receptors)
    columns = rows if plan.reference is None else _first_names(plan.reference)
    matrix = bool(out and out.endswith(".npz"))
    if options.list_out or matrix:  # which need all edges at once
        sides = map(np.concatenate, zip(*edges, strict=True))
        joined = api.EdgeSet(*sides)
        whole, edges = api.result_of(plan, joined, 0.0, threads), iter([joined.sides])
        if options.list_out:
            delimited.write_list(options.list_out, whole.columns(), _field)
        if matrix:
            output.write_file(str(out), whole.save)
    if out and out.endswith(".parquet"):
        delimited.write_edges_parquet(out, edges, rows, columns)
    elif (out and not matrix) or not (out or options.json):
        delimited.write_edges(out or output.STDOUT, edges, rows, columns)
    for _ in edges:  # only their count is wanted
        pass
    return sum(counts)


def _field(value: object) -> str:
    """A field of the list, with all digits of a number."""
    return written(str(value))


def _first_names(receptors: api.Receptors) -> list[str]:
    names = receptors.rows.names
    return [str(names[row]) for row in receptors.first.tolist()]
