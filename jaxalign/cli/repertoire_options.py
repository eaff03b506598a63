"""The options of ``jaxalign repertoire``."""

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from jaxalign.cli.options import FILE, FLAG


@Parameter(name="*", group=Group("Distance", sort_key=1))
@dataclass(frozen=True)
class MetricOptions:
    """When two receptors have an edge."""

    metric: Literal["tcrdist", "hamming", "levenshtein", "alignment"] = "tcrdist"
    """alignment: linear Needleman-Wunsch, min(S(a,a), S(b,b)) - S(a,b)."""

    cutoff: Annotated[int | None, Parameter(metavar="D")] = None
    """The largest distance of an edge. [20, 2, 2, 10]"""

    matrix: Annotated[str | None, Parameter(metavar="NAME")] = None
    """A bundled matrix or a file, of tcrdist and alignment. [BLOSUM62]"""

    weight: Annotated[int | None, Parameter(metavar="N")] = None
    """Of tcrdist: times the distances of letters. [3]"""

    gap_penalty: Annotated[int | None, Parameter(metavar="N")] = None
    """Of tcrdist and alignment: each letter more. [4]"""

    ntrim: Annotated[int | None, Parameter(metavar="N")] = None
    """Of tcrdist: letters at the start that do not count. [3]"""

    ctrim: Annotated[int | None, Parameter(metavar="N")] = None
    """Of tcrdist: letters at the end that do not count. [2]"""

    sliding_gap: Annotated[bool, FLAG] = False
    """Of tcrdist: the gap is at the best place, not at a fixed one."""

    chains: Literal["VJ", "VDJ", "sum", "all", "any"] | None = None
    """One arm of a table, or both of each cell: their sum, both within the cutoff, or
    either. [the only arm]"""

    v_distances: Annotated[str | None, FILE, Parameter(metavar="GENES.tsv")] = None
    """A square table of V genes, whose distances are added."""

    v_loops: Annotated[str | None, FILE, Parameter(metavar="GENES.tsv")] = None
    """A table of V genes and their loops, whose TCRdist is added."""

    bad: Literal["error", "keep", "drop"] = "error"
    """Rows without a distance: stop, keep them without edges, or leave them out."""


@Parameter(name="*", group=Group("Output", sort_key=3))
@dataclass(frozen=True)
class GraphOptions:
    """Where the graph goes."""

    out: Annotated[str | None, FILE, Parameter(alias="-o", metavar="OUT")] = None
    """Edges as .tsv or .parquet, or the matrix as .npz. [standard output, a tsv]"""

    list_out: Annotated[
        str | None, FILE, Parameter(name="--list", metavar="OUT.tsv")
    ] = None
    """Each row's name, receptor, count and clonotype cluster."""

    force: Annotated[bool, FLAG] = False
    """Replace existing output files."""

    json: Annotated[bool, FLAG] = False
    """Print one JSON object about the run; edges then go only to -o."""


@Parameter(name="*", group=Group("Machine", sort_key=4))
@dataclass(frozen=True)
class HostOptions:
    """Where it runs."""

    memory_budget: Annotated[str | None, Parameter(metavar="2GiB")] = None
    """Bytes for the edges. [half of what is available]"""

    block_rows: Annotated[int, Parameter(metavar="ROWS")] = 2**17
    """Receptors whose edges are found, and written, together."""

    threads: Annotated[int | None, Parameter(metavar="N")] = None
    """Host threads. [all cores]"""

    no_cache: Annotated[bool, FLAG] = False
    """Neither load nor keep compiled programs (also JAXALIGN_CACHE_DIR=off)."""

    quiet: Annotated[bool, FLAG, Parameter(alias="-q")] = False
    """Only warnings and errors."""

    verbose: Annotated[bool, FLAG, Parameter(alias="-v")] = False
    """A traceback with an error."""


@Parameter(name="*")
@dataclass(frozen=True)
class RepertoireVerbOptions:
    """Every option of the verb, but its files."""

    metric: MetricOptions = MetricOptions()
    output: GraphOptions = GraphOptions()
    host: HostOptions = HostOptions()
