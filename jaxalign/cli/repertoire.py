"""``jaxalign repertoire``: receptors -> plan -> edges, block by block."""

import time
from collections.abc import Iterator
from typing import Any

from jaxalign.cli.derive import Given
from jaxalign.cli.run import check_outputs, run
from jaxalign.cli.terminal import Messages, Report
from jaxalign.errors import UsageError
from jaxalign.io import delimited, output
from jaxalign.model.names import written
from jaxalign.model.show import counted
from jaxalign.options import RepertoireOptions, shared
from jaxalign.repertoire import api

FORMATS = (".tsv", ".csv", ".parquet", ".npz")


def repertoire(given: Given) -> int:
    """``jaxalign repertoire CELLS``."""
    began, messages = time.perf_counter(), Messages(given.quiet)
    out, listed = given.out, given.list_out
    distances, loops = given.v_distances, given.v_loops
    _check_outputs(given)
    if distances and loops:
        raise UsageError("--v-distances and --v-loops: one of the two")
    own: dict[str, Any] = dict.fromkeys(("offset", "cap", "devices"))
    own["v_distances"] = delimited.gene_distances(distances) if distances else None
    own["v_loops"] = delimited.read_genes(loops)[1] if loops else None
    chosen = RepertoireOptions(**shared(given, RepertoireOptions, **own))
    if given.part_rows < 1:
        raise UsageError(f"--part-rows {given.part_rows}: 1 or more")
    whole = listed or (out and out.endswith(".npz"))  # which need all edges at once
    part_rows = None if whole else given.part_rows
    machine = api.machine_of(chosen)
    plan = api.plan_of(given.receptors, given.against, chosen, part_rows)

    def heading() -> Iterator[str]:
        yield str(plan)
        _warn_of_rows(plan, messages)

    def compute(progress: Report | None) -> tuple[int, float]:
        count = _write(plan, machine, given, progress)
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

    return run(given, messages, heading(), compute, finish, about)


def _check_outputs(options: Given) -> None:
    out, listed = options.out, options.list_out
    if listed and options.against:
        raise UsageError("--list has clusters, which two sets (--against) have not")
    if out and out != output.STDOUT and not out.endswith(FORMATS):
        raise UsageError(f"{out}: the suffix is one of {', '.join(FORMATS)}")
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
    machine: api.Machine,
    options: Given,
    progress: Report | None,
) -> int:
    """Write what is asked for; how many edges there were."""
    counts, out = [], options.out
    one_set = plan.reference is None
    side = plan.receptors if plan.reference is None else plan.reference
    total = len(plan.receptors) * len(side)

    def sides() -> Iterator[delimited.EdgeColumns]:
        for block in api.graph.blocks(plan, machine):
            counts.append(len(block.edges))
            if progress is not None:  # of one set, each pair once
                pairs, left = block.rows.stop * len(side), len(side) - block.rows.stop
                progress(total - left**2 if one_set else pairs, total)
            yield block.edges.sides

    edges, rows = sides(), _first_names(plan.receptors)
    columns = rows if plan.reference is None else _first_names(plan.reference)
    matrix = bool(out and out.endswith(".npz"))
    if options.list_out or matrix:  # which need all edges at once
        block = next(edges)
        whole, edges = api.result_of(plan, api.Edges(*block), 0.0), iter([block])
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
