"""The options that the command line has beside those of the functions: files, formats,
messages, and a scoring in parts.

Choices are spelled out so that ``--help`` imports neither numpy nor JAX; a test holds
them equal to the model's.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from jaxalign.model.choices import RepeatedNames, UnknownLetters

PresetName = Literal["blastp", "blastn", "needle", "ssearch", "mmseqs", "parasail"]
HitFormat = Literal["tsv", "csv", "m8", "sam", "paf", "maf", "fasta", "pair", "parquet"]
Format = Literal[HitFormat, "graphpart", "hestia", "datasail"]
Cold = Literal["both", "one", "none"]
Second = Literal["proteins", "groups"]
Device = Literal["auto", "cpu", "gpu"]
ThreeFormat = Literal["pretty", "fasta", "clustal", "json"]

# In the order of --help.
SCORING = Group("Scoring", sort_key=1)
ALIGNMENT = Group("Alignment", sort_key=2)
AUDIT = Group("Audit", sort_key=3)
OUTPUT = Group("Output", sort_key=3)
MACHINE = Group("Machine", sort_key=4)
MESSAGES = Group("Messages", sort_key=5)
LONG = Group("Long runs", sort_key=6)


def refuse_option(_type: object, value: object) -> None:
    """A path may be ``-``, never an option that nobody knows."""
    if isinstance(value, str) and value.startswith("-") and value != "-":
        raise ValueError(f"Unknown option: {value}.")


FILE = Parameter(allow_leading_hyphen=True, validator=refuse_option)
FLAG = Parameter(negative="", show_default=False)
Fasta = Annotated[str, FILE]
Fraction = Annotated[float | None, Parameter(metavar="F")]
Flag = Annotated[bool, FLAG]
Picture = Annotated[str | None, FILE, Parameter(metavar="OUT.png", group=OUTPUT)]
Sheet = Annotated[str | None, FILE, Parameter(metavar="TABLE.tsv")]
Out = Annotated[str | None, FILE, Parameter(alias="-o", metavar="OUT")]


@dataclass(frozen=True)
class ScoringOptions:
    """Substitution scores and gap costs."""

    preset: PresetName | None = None
    """Another tool's matrix, gaps, mode, identity. Other options override it."""

    matrix: str | None = None
    """A bundled matrix (`jaxalign matrices`) or an NCBI-format file. [BLOSUM62;
    nucleotides none]"""

    match: float | None = None
    """Score of two equal letters, in place of a matrix. [nucleotides 2]"""

    mismatch: float | None = None
    """Score of two different letters. [nucleotides -3]"""

    gap_open: float | None = None
    """Cost of the first residue of a gap. [11; nucleotides 7]"""

    gap_extend: float | None = None
    """Cost of each further residue. [1; nucleotides 2]"""

    gap_style: Literal["first-included", "blast"] = "first-included"
    """A gap of k costs open + extend*(k-1), or in BLAST's numbers open + extend*k."""

    alphabet: Literal["auto", "protein", "dna", "rna"] = "auto"
    """dna, rna: the scoring of blastn if no matrix. rna reads T as U. auto: the letters
    of the matrix, or dna or rna where all letters say so and no matrix is named."""

    unknown: UnknownLetters = "error"
    """X reads U, O, J as the wildcard; mask reads every unknown letter so."""

    strip_stop: Flag = False
    """Take a stop, *, off the end of each sequence of a file."""

    names: RepeatedNames = "error"
    """number: of a name that comes again in a file, make NAME_2, NAME_3 and so on."""


@dataclass(frozen=True)
class FileOptions:
    """Where a result goes."""

    out: Out = None
    """Output file. [standard output]"""

    force: Flag = False
    """Replace existing output files."""


@dataclass(frozen=True)
class SummaryOptions:
    """A summary of the run for programs."""

    json: Flag = False
    """Print one JSON object about the run; the result then goes only to -o."""


@dataclass(frozen=True)
class ColumnOptions(SummaryOptions, FileOptions):
    """The form of a table of pairs."""

    out: Out = None
    """Output file; its suffix is the format. Standard output is a tsv."""

    format: Format | None = None
    """In place of the suffix."""

    columns: Annotated[str | None, Parameter(metavar="A,B,C")] = None
    """Columns of tsv, csv and parquet; BLAST's and MMseqs2's names are known too."""

    eqx: Flag = False
    """= and X in place of M in CIGARs: of sam, paf, and the column cigar."""


@dataclass(frozen=True)
class HitOptions(ColumnOptions):
    """The form of a table of hits."""

    output: Literal["score", "stats", "alignment"] | None = None
    """What to compute; formats with paths raise it to alignment. [stats]"""

    format: HitFormat | None = None
    """In place of the suffix."""


@dataclass(frozen=True)
class ListOptions(FileOptions):
    """Where the list of sequences goes."""

    out: Out = None
    """Output file; .tsv, .csv or .parquet. [standard output, a tsv]"""


@dataclass(frozen=True)
class AuditOptions:
    """How the pairs across parts are shown."""

    report: Annotated[str | None, FILE, Parameter(metavar="OUT.html")] = None
    """A page for people: identities within and across parts, components, labels,
    worst pairs. One file, which needs no network."""

    plot: Annotated[str | None, FILE, Parameter(metavar="OUT.png")] = None
    """Histogram of identities across parts, png, svg or pdf; needs matplotlib."""

    leaks: Annotated[str | None, FILE, Parameter(metavar="LEAKS.tsv")] = None
    """Every sequence that leaks, with its nearest one of another part. tsv, csv or
    parquet; with --full-histogram every sequence."""

    across_only: Flag = False
    """Leave pairs within parts out of the report: they are not compared."""


@dataclass(frozen=True)
class CacheOptions:
    """Whether compiled programs are kept."""

    no_cache: Flag = False
    """Neither load nor keep compiled programs (also JAXALIGN_CACHE_DIR=off)."""


@dataclass(frozen=True)
class MachineOptions(CacheOptions):
    """Where it runs."""

    device: Device = "auto"
    """gpu fails where there is none."""


@dataclass(frozen=True)
class QuietOptions:
    """How much is said on standard error."""

    quiet: Annotated[bool, FLAG, Parameter(alias="-q")] = False
    """Only warnings and errors."""

    verbose: Annotated[bool, FLAG, Parameter(alias="-v")] = False
    """The memory plan, and a traceback with an error."""


@dataclass(frozen=True)
class MessageOptions(QuietOptions):
    """Lines on standard error."""

    progress: Literal["auto", "bar", "plain", "json", "none"] = "auto"
    """auto: a bar on a terminal after two seconds, else a line each minute."""


@dataclass(frozen=True)
class ResumeOptions:
    """Runs that can be completed after an interruption."""

    resume: Flag = False
    """Complete an interrupted run: its state is in a file beside -o, or in the parts of
    -o FOLDER/, which are not computed again."""


@dataclass(frozen=True)
class CorpusRunOptions(ResumeOptions):
    """Long runs against a corpus, whose output is a file (-o)."""

    shard: Annotated[str | None, Parameter(metavar="K/N")] = None
    """Only the K-th of N shares, from 1; one below the other, their rows are those of
    the whole."""


GROUPS = {
    ScoringOptions: SCORING,
    FileOptions: OUTPUT,
    SummaryOptions: OUTPUT,
    ColumnOptions: OUTPUT,
    HitOptions: OUTPUT,
    AuditOptions: AUDIT,
    CacheOptions: MACHINE,
    MachineOptions: MACHINE,
    QuietOptions: MESSAGES,
    MessageOptions: MESSAGES,
    ResumeOptions: LONG,
    CorpusRunOptions: LONG,
}
COMMON = (ScoringOptions, MachineOptions, MessageOptions)
