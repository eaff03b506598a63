# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Public functions of receptor repertoires: sparse graphs of CDR3 sequences.

Two receptors have an edge if their distance is at most the cutoff. No heuristic selects
the pairs: a pair is skipped only if a bound proves that it is above the cutoff.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Unpack

from jaxalign.errors import InputError, UsageError
from jaxalign.io import delimited, fasta
from jaxalign.keywords import RepertoireKeywords
from jaxalign.model.numbers import check_whole
from jaxalign.model.scoring import as_scoring
from jaxalign.model.source import keep
from jaxalign.model.strands import look_nucleic
from jaxalign.options import RepertoireOptions
from jaxalign.repertoire import graph, receptors
from jaxalign.repertoire.graph import EdgeBlock, RepertoirePlan, blocks_of
from jaxalign.repertoire.metrics import tcrdist_table
from jaxalign.repertoire.options import TCRDIST, define
from jaxalign.repertoire.receptors import (
    Chain,
    ReceptorRows,
    Receptors,
    unique_receptors,
)
from jaxalign.repertoire.rectangles import Machine
from jaxalign.repertoire.result import RepertoireGraph, matrix_of
from jaxalign.runtime import pipeline
from jaxalign.runtime.devices import budget_of, resolve_devices
from jaxalign.signatures import with_options
from jaxalign.words.edges import EdgeSet

MAX_THREADS = 512  # more are not started, whatever number is given
# CDR3 sequences, a table of AIRR rearrangements, or the path of a file of either.
ReceptorsLike = (
    str
    | os.PathLike[str]
    | ReceptorRows
    | Mapping[str, Any]
    | Iterable[str | None]
    | Any
)


@with_options(RepertoireOptions)
def repertoire_graph(
    receptors: ReceptorsLike,
    reference: ReceptorsLike | None = None,
    **options: Unpack[RepertoireKeywords],
) -> RepertoireGraph:
    """Find all pairs of receptors within a distance, as a sparse matrix.

    Equal receptors are one vertex, with a count. Every pair is compared, or proved to
    be above the cutoff.

    Parameters
    ----------
    receptors : list of str, mapping of names to str, table, or path
        CDR3 sequences (``junction_aa``, from the conserved C to the F or W). A table is
        a ``DataFrame`` or a mapping of columns with ``junction_aa`` and optionally
        ``v_call``, ``locus``, ``cell_id`` and ``productive`` (AIRR), or 10x's names of
        these. A path is a file of such a table, or FASTA. ``NA``, ``None`` and the like
        are missing values.
    reference : as ``receptors``, optional
        Compare with these instead: all edges are between the two sets.
    metric : {"tcrdist", "hamming", "levenshtein", "alignment"}
        The distance; see Notes.
    cutoff : int, optional
        Largest distance of an edge. By default 20, 2, 2 and 10 for these metrics.
    scoring : Scoring, or the name or file of a matrix, optional
        For ``alignment`` a matrix or any ``Scoring``, by default BLOSUM62 and 4 for
        each letter opposite a gap; for ``tcrdist`` the matrix.
    weight, gap_penalty, ntrim, ctrim, fixed_gap : int, int, int, int, bool
        For ``tcrdist``, by default 3, 4, 3, 2 and True; see Notes. ``alignment`` uses
        ``gap_penalty``, too.
    offset, cap : int, int
        For ``tcrdist``: two letters with the score S have the distance
        ``min(cap, offset - S)``; 4 and 4 by default.
    chains : {"VJ", "VDJ", "sum", "all", "any"}, optional
        For tables with both arms. ``VJ`` and ``VDJ`` compare the rows of one arm. The
        others compare cells, by the sum of the distances of both arms, the larger one
        (``all``: both are within the cutoff) or the smaller one (``any``). By default
        the only arm of the table.
    v_distances : mapping of (gene, gene) to int, or square DataFrame, optional
        Distances of V genes, added to those of the CDR3.
    v_loops : mapping of gene to its loops, optional
        Add the TCRdist of these loops, such as CDR1, CDR2 and CDR2.5.
    bad : {"error", "keep", "drop"}
        What to do with rows that have no distance (empty or not productive, with a stop
        codon, lower case, a letter outside the twenty, an unknown V gene or a missing
        chain): raise an error that names them, keep them without edges, or leave them
        out. ``receptors.problems`` of the result lists them. Unusable chains of cells
        are left out, and ``receptors.rows.notes`` counts them.
    threads : int, optional
        Host threads; all cores by default.
    memory_budget : int or str, optional
        Memory for the edges: bytes, or text such as ``"2GiB"``. By default half of the
        free memory.
    devices : "all", a number, several, or JAX devices, optional
        GPUs that share the work. By default JAX's default device.

    Returns
    -------
    RepertoireGraph
        ``matrix``, ``counts``, ``labels`` (clonotype clusters), ``of_rows()``,
        ``to_scirpy()`` and ``columns()``.

    Raises
    ------
    InputError
        If a file or table cannot be read, or rows have no distance and ``bad`` is
        "error".
    UsageError
        If an option is unknown, or does not belong to the metric.
    MemoryPlanError
        If the edges exceed the budget; ``stream_repertoire`` yields them block by
        block.

    Notes
    -----
    TCRdist (Dash et al. 2017) leaves out ``ntrim`` letters at the start and ``ctrim``
    at the end. It is ``weight`` times the sum of the distances of aligned letters, plus
    ``gap_penalty`` for each letter opposite the gap, which is at one place
    (``fixed_gap``) or at the best one. Defaults and results are those of scirpy.
    ``alignment`` is min(S(a, a), S(b, b)) - S(a, b), where S is the best global score.

    Examples
    --------
    >>> import jaxalign
    >>> cdr3s = ["CASSLGQAYEQYF", "CASSLGTAYEQYF", "CASSLGQAYEQYF", "CSARDRTGNGYTF"]
    >>> graph = jaxalign.repertoire_graph(cdr3s)
    >>> graph.matrix.toarray().tolist(), graph.counts.tolist(), graph.labels.tolist()
    ([[0, 12, 0], [12, 0, 0], [0, 0, 0]], [2, 1, 1], [0, 0, 1])
    """
    start = time.perf_counter()
    checked = RepertoireOptions(**options)
    plan = plan_of(receptors, reference, checked)
    machine = machine_of(checked)
    (block,) = graph.blocks(plan, machine)
    seconds = time.perf_counter() - start
    return result_of(plan, block.edges, seconds, machine.threads)


@with_options(RepertoireOptions, like=(repertoire_graph,))
def stream_repertoire(
    receptors: ReceptorsLike,
    reference: ReceptorsLike | None = None,
    *,
    part_rows: int = 2**17,
    **options: Unpack[RepertoireKeywords],
) -> Iterator[EdgeBlock]:
    """Find the edges of ``repertoire_graph`` block by block, for a graph of any size.

    Parameters
    ----------
    part_rows : int
        Number of receptors per block. Edges do not depend on it.

    Yields
    ------
    EdgeBlock
        ``rows``, a range of receptors, and ``edges``, their i, j and distance, sorted
        by i and j. In one set each pair occurs once, with i < j.

    Raises
    ------
    InputError, UsageError, MemoryPlanError
        As ``repertoire_graph``.

    Examples
    --------
    >>> import jaxalign
    >>> cdr3s = ["CASSLGQAYEQYF", "CASSLGTAYEQYF", "CASSLGTAYEQFF"]
    >>> for block in jaxalign.stream_repertoire(cdr3s, part_rows=2):
    ...     print(block.rows, block.edges.j.tolist(), block.edges.distance.tolist())
    range(0, 2) [1, 2, 2] [12, 12, 0]
    range(2, 3) [] []
    """
    check_whole("part_rows", part_rows, optional=False)
    checked = RepertoireOptions(**options)
    plan = plan_of(receptors, reference, checked, part_rows)
    return graph.blocks(plan, machine_of(checked))


def plan_of(
    receptors: ReceptorsLike,
    reference: ReceptorsLike | None,
    options: RepertoireOptions,
    block_rows: int | None = None,
) -> RepertoirePlan:
    """Check the arguments of a call and plan its job."""
    definition, gene_distances = define(options), _gene_distances(options)
    data = _unique(receptors, options, gene_distances)
    reference_receptors = None
    if reference is not None:
        reference_receptors = _unique(reference, options, gene_distances)
    blocks = blocks_of(len(data), block_rows)
    combine = options.chains if options.chains in ("all", "any") else "sum"
    return RepertoirePlan(
        data, reference_receptors, definition, combine, gene_distances, blocks
    )


def result_of(
    plan: RepertoirePlan, edges: EdgeSet, seconds: float, threads: int = 1
) -> RepertoireGraph:
    """Make a graph of all edges of a job."""
    one_set = plan.reference is None
    columns = len(plan.receptors if plan.reference is None else plan.reference)
    matrix = matrix_of(edges, len(plan.receptors), columns, one_set, threads)
    return RepertoireGraph(matrix, plan.receptors, plan.reference, plan, seconds)


def machine_of(options: RepertoireOptions) -> Machine:
    """Resolve threads, bytes and devices from the options."""
    threads = min(options.threads or pipeline.default_threads(), MAX_THREADS)
    devices = () if options.devices is None else resolve_devices(options.devices)
    return Machine(threads, budget_of(options.memory_budget), devices)


def _gene_distances(options: RepertoireOptions) -> receptors.GeneDistances | None:
    if options.v_distances is not None and options.v_loops is not None:
        raise UsageError("v_distances and v_loops exclude each other: give one")
    if options.v_distances is not None:
        return receptors.genes_from_table(options.v_distances)
    if options.v_loops is None:
        return None
    offset = TCRDIST["offset"] if options.offset is None else options.offset
    cap = TCRDIST["cap"] if options.cap is None else options.cap
    table = tcrdist_table(as_scoring(options.scoring), offset, cap, 1)
    return receptors.genes_from_loops(options.v_loops, table)


def _unique(
    data: ReceptorsLike,
    options: RepertoireOptions,
    gene_distances: receptors.GeneDistances | None,
) -> Receptors:
    gene_known = None if gene_distances is None else gene_distances.knows
    all_chains = options.chains in ("sum", "all")
    rows = read_rows(data, options.chains, gene_known, options.column)
    return unique_receptors(rows, options.bad, gene_known, all_chains)


def read_rows(
    data: ReceptorsLike,
    chains: str | None,
    gene_known: Callable[[str], bool] | None = None,
    column: str | None = None,
) -> ReceptorRows:
    """Read receptor rows from any input of a caller.

    column : that of the CDR3 in a table, in place of ``junction_aa``
    """
    of_tables = {"chains": chains, "column": column}
    needs_table = next(
        (f"{x} = {y!r}" for x, y in of_tables.items() if y is not None), None
    )
    if isinstance(data, ReceptorRows):
        return data
    if isinstance(data, (str, os.PathLike)):
        path = os.fspath(data)
        if path != "-" and not os.path.exists(path):
            raise InputError(f"{path}: no such file")
        buffer = keep(path)  # a pipe is read once
        if delimited.is_airr(path, buffer):
            table = delimited.read_airr(path, buffer)
            return receptors.rows_of_table(table, chains, gene_known, path, column)
        if needs_table:
            raise UsageError(f"{needs_table}: {path} is FASTA, not a table")
        raw = fasta.read_raw(path, buffer)
        if look_nucleic([raw.text]):
            raise InputError(
                f"{path}: has nucleotides; CDR3 sequences of amino acids are needed"
            )
        text, ends = raw.text.tobytes().decode("latin-1"), raw.offsets.tolist()
        texts = [text[start:stop] for start, stop in pairwise(ends)]
        return _rows([*raw.names], texts, path)
    frame: Any = data
    junctions = (column, receptors.JUNCTION, *receptors.COLUMNS[receptors.JUNCTION])
    table = None
    if hasattr(frame, "to_pydict"):  # an Arrow table
        table = frame.to_pydict()
    elif hasattr(frame, "columns") and hasattr(frame, "__getitem__"):
        names = [str(x) for x in frame.columns]
        if len(set(names)) < len(names):
            raise InputError("table: two columns have the same name")
        table = {str(x): frame[x] for x in frame.columns}
    elif isinstance(frame, Mapping) and any(
        not isinstance(frame.get(name), str | None) for name in junctions
    ):
        table = frame
    if table is not None:
        return receptors.rows_of_table(table, chains, gene_known, "", column)
    if needs_table:
        raise UsageError(f"{needs_table}: a table of rearrangements is needed")
    if isinstance(frame, Mapping):
        return _rows([*map(str, frame)], receptors.meanings(frame.values()))
    texts = frame.to_pylist() if hasattr(frame, "to_pylist") else frame
    texts = receptors.meanings(texts)
    return _rows([f"seq{k}" for k in range(1, len(texts) + 1)], texts)


def _rows(names: list[str], texts: list[Any], origin: str = "") -> ReceptorRows:
    return ReceptorRows(names, (Chain("CDR3", texts),), origin)


__all__ = [
    "EdgeBlock",
    "EdgeSet",
    "Machine",
    "RepertoirePlan",
    "RepertoireGraph",
    "RepertoireOptions",
    "Receptors",
    "graph",
    "machine_of",
    "plan_of",
    "read_rows",
    "repertoire_graph",
    "result_of",
    "stream_repertoire",
]
