"""The straight line of ``jaxalign repertoire``."""

import time
from collections.abc import Iterator

from jaxalign.cli import report
from jaxalign.cli.derive import Given
from jaxalign.cli.terminal import Messages, answer_json
from jaxalign.errors import UsageError
from jaxalign.io import delimited, output
from jaxalign.model.names import written
from jaxalign.model.show import counted
from jaxalign.options import RepertoireOptions, shared
from jaxalign.repertoire import api

FORMATS = (".tsv", ".parquet", ".npz")


def repertoire(options: Given) -> int:
    """``jaxalign repertoire CELLS``."""
    # 1 check options and outputs, 2 read, 3 say what will be done, 4 compare and write,
    # 5 say what was done
    began, messages = time.perf_counter(), Messages(options.quiet)
    path, reference = options.receptors, options.reference
    _check_outputs(options)
    chosen = _options(options)
    plan = api.plan_of(path, reference, chosen, _block_rows(options))
    messages.say(str(plan))
    _warn_of_rows(plan, messages)
    edges = _write(plan, chosen, options)
    seconds = time.perf_counter() - began
    messages.say(f"{counted(edges, 'edge')}, {seconds:.1f} s")
    if options.json:
        answer_json(_about(plan, edges, seconds, messages))
    return 0


def _check_outputs(options: Given) -> None:
    out, listed = options.out, options.list_out
    if options.json and output.STDOUT in (out, listed):
        raise UsageError("--json takes standard output: edges need -o FILE")
    if listed and options.reference:
        raise UsageError("--list has clusters, which a --reference has not")
    if out and out == listed:
        raise UsageError(f"two outputs are one: {out}")
    if out and out != output.STDOUT and not out.endswith(FORMATS):
        raise UsageError(f"{out}: the suffix is one of {', '.join(FORMATS)}")
    genes = options.v_distances, options.v_loops
    inputs = (options.receptors, options.reference, *genes, options.scoring)
    for file in filter(None, (out, listed)):
        output.check(file, options.force)
        output.check_inputs(file, inputs)


def _options(given: Given) -> RepertoireOptions:
    distances, loops = given.v_distances, given.v_loops
    if distances and loops:
        raise UsageError("--v-distances and --v-loops: one of the two")
    tables = {
        "v_distances": delimited.gene_distances(distances) if distances else None,
        "v_loops": delimited.read_genes(loops)[1] if loops else None,
    }
    hidden = dict.fromkeys(("offset", "cap", "devices"))
    return RepertoireOptions(**shared(given, RepertoireOptions, **tables, **hidden))


def _block_rows(options: Given) -> int | None:
    """Receptors of a block; None where all edges are needed at once."""
    if options.block_rows < 1:
        raise UsageError(f"--block-rows {options.block_rows}: 1 or more")
    out = options.out
    whole = options.list_out or (out and out.endswith(".npz"))
    return None if whole else options.block_rows


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
    chosen: RepertoireOptions,
    options: Given,
) -> int:
    """Write what is asked for; how many edges there were."""
    counts, out = [], options.out

    def sides() -> Iterator[delimited.EdgeColumns]:
        for block in api.graph.blocks(plan, api.machine_of(chosen)):
            counts.append(len(block.edges))
            yield block.edges.sides

    edges, rows = sides(), _first_names(plan.receptors)
    columns = rows if plan.reference is None else _first_names(plan.reference)
    matrix = bool(out and out.endswith(".npz"))
    if options.list_out or matrix:  # which need all edges at once
        block = next(edges)
        whole, edges = api.result_of(plan, api.Edges(*block), 0.0), iter([block])
        if options.list_out:
            lines = delimited.list_lines(whole.columns(), lambda x: written(str(x)))
            output.write_text(options.list_out, lines)
        if matrix:
            output.write_file(str(out), whole.save)
    if out and out.endswith(".parquet"):
        delimited.write_edges_parquet(out, edges, rows, columns)
    elif (out and not matrix) or not (out or options.json):
        delimited.write_edges(out or output.STDOUT, edges, rows, columns)
    for _ in edges:  # only their count is wanted
        pass
    return sum(counts)


def _first_names(receptors: api.Receptors) -> list[str]:
    names = receptors.rows.names
    return [str(names[row]) for row in receptors.first.tolist()]


def _about(
    plan: api.RepertoirePlan, edges: int, seconds: float, messages: Messages
) -> dict:
    """A run as plain values."""
    sides = {"receptors": plan.receptors, "reference": plan.reference}
    return {
        "versions": report.versions(),
        "definition": plan.definition.about() | {"text": str(plan.definition)},
        **{
            name: {
                "file": side.rows.origin,
                "rows": len(side.rows),
                "receptors": len(side),
                "without_distance": {k: len(x) for k, x in side.problems.items()},
            }
            for name, side in sides.items()
            if side is not None
        },
        "edges": edges,
        "seconds": round(seconds, 3),
        "warnings": messages.warnings,
    }
