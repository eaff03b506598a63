"""The options of ``jaxalign three`` beside those that verbs share."""

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from jaxalign.cli.options import FILE, FLAG, MessageOptions, ScoringOptions
from jaxalign.model.choices import GapModel, Mode

Schedule = Literal["auto", "sloped", "layered"]
TripleFill = Literal["planes", "layers", "pallas"]
Traceback = Literal["auto", "store", "split", "bt1", "bt2", "bt3", "none"]
ThreeFormat = Literal["pretty", "fasta", "clustal", "json"]


@Parameter(name="*", group=Group("Alignment", sort_key=2))
@dataclass(frozen=True)
class ThreeMode:
    """Which ends are aligned, and how gaps are counted."""

    gap_model: GapModel = "quasi-natural"
    """quasi-natural and natural are affine; in quasi-natural a column that has gaps in
    both rows of a pair cuts that pair's gap, at half of the work. linear needs
    --gap-open and --gap-extend to be equal."""

    mode: Mode | None = None
    """semiglobal frees the end gaps of every pair. [global]"""


@Parameter(name="*", group=Group("Output", sort_key=3))
@dataclass(frozen=True)
class ThreeOutput:
    """Where the alignment goes."""

    out: Annotated[str | None, FILE, Parameter(alias="-o", metavar="OUT")] = None
    """Output file. [standard output]"""

    format: ThreeFormat = "pretty"
    """pretty: three rows and their consensus, in blocks."""

    force: Annotated[bool, FLAG] = False
    """Replace an existing output file."""


@Parameter(name="*", group=Group("Machine", sort_key=4))
@dataclass(frozen=True)
class ThreeMachine:
    """Where and how it runs; the score does not depend on it."""

    traceback: Traceback = "auto"
    """auto stores what fits the budget, else splits; none computes the score only."""

    schedule: Schedule = "auto"
    """The order of the cells: auto is layered on a CPU, the kernels' or sloped on a
    GPU."""

    implementation: TripleFill | None = None
    """What fills the table, and nothing else. [pallas where it can, else the others]"""

    chunk: Annotated[int | None, Parameter(metavar="S")] = None
    """Side of a chunk, for bt1 to bt3. [31 sloped, 47 layered]"""

    height: Annotated[int | None, Parameter(metavar="H")] = None
    """Height of a sub-chunk, for bt2 and bt3. [100 sloped, 40 layered; of a cube S]"""

    depth: Annotated[int | None, Parameter(metavar="D")] = None
    """Depth of a chunk, for cubes. [the longest sequence's; on a GPU S, if it fits]"""

    memory_budget: Annotated[str | None, Parameter(metavar="2GiB")] = None
    """Bytes to plan with. [half of what is available; of a GPU most]"""

    device: Literal["auto", "cpu", "gpu"] = "auto"
    """gpu fails where there is none."""

    no_cache: Annotated[bool, FLAG] = False
    """Neither load nor keep compiled programs (also JAXALIGN_CACHE_DIR=off)."""


@Parameter(name="*")
@dataclass(frozen=True)
class ThreeOptions:
    """Every option of ``jaxalign three``."""

    scoring: ScoringOptions = ScoringOptions()
    mode: ThreeMode = ThreeMode()
    output: ThreeOutput = ThreeOutput()
    machine: ThreeMachine = ThreeMachine()
    messages: MessageOptions = MessageOptions()
