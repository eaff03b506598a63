"""The options of ``jaxalign family``."""

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from jaxalign.cli.options import (
    FILE,
    FLAG,
    MachineOptions,
    MessageOptions,
    ScoringOptions,
)


@Parameter(name="*", group=Group("Passes", sort_key=1))
@dataclass(frozen=True)
class PassOptions:
    """How the search goes on."""

    iterations: Annotated[int, Parameter(metavar="N")] = 3
    """Passes at most; 1 searches by the sequence alone."""

    max_evalue: Annotated[float, Parameter(metavar="E")] = 1e-3
    """Hits up to it are written."""

    include: Annotated[float, Parameter(metavar="E")] = 1e-2
    """Hits up to it are in the next profile."""

    include_coverage: Annotated[float, Parameter(metavar="F")] = 0.3
    """... if they cover this share of QUERY, 0 to 1."""

    max_sequences: Annotated[int, Parameter(metavar="N")] = 10_000
    """Hits of a pass at most, the best."""

    no_composition: Annotated[bool, FLAG] = False
    """Do not take off the score that the composition of a hit explains."""


@Parameter(name="*", group=Group("Filters", sort_key=2))
@dataclass(frozen=True)
class RowFilterOptions:
    """Rows that are written, as hhfilter means it."""

    min_cov: Annotated[float, Parameter(metavar="F", alias="-cov")] = 0.0
    """At least this share of QUERY is covered, 0 to 1."""

    min_query_identity: Annotated[float, Parameter(metavar="F", alias="-qid")] = 0.0
    """At least this share of the residues of a row is QUERY's, 0 to 1."""

    max_identity: Annotated[float, Parameter(metavar="F", alias="-id")] = 1.0
    """Of two rows that are more alike, the shorter one goes, 0 to 1."""


@Parameter(name="*", group=Group("Output", sort_key=3))
@dataclass(frozen=True)
class FamilyOutputOptions:
    """Where the alignment goes."""

    out: Annotated[str | None, FILE, Parameter(alias="-o", metavar="OUT")] = None
    """Output file, or a folder/ of files; its suffix is the format. Standard output is
    a3m."""

    format: Literal["a3m", "stockholm", "hmm", "pssm"] | None = None
    """In place of the suffix. hmm and pssm are the profile of the last pass."""

    force: Annotated[bool, FLAG] = False
    """Replace existing output files."""

    json: Annotated[bool, FLAG] = False
    """Print one JSON object about the run; the alignment then goes only to -o."""


@Parameter(name="*")
@dataclass(frozen=True)
class FamilyVerbOptions:
    """Every option of the verb, but its files."""

    passes: PassOptions = PassOptions()
    filters: RowFilterOptions = RowFilterOptions()
    scoring: ScoringOptions = ScoringOptions()
    output: FamilyOutputOptions = FamilyOutputOptions()
    machine: MachineOptions = MachineOptions()
    messages: MessageOptions = MessageOptions()
