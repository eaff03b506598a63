"""The options that the command line has beside those of the functions: files, formats,
messages, and a scoring in parts.

Choices are spelled out so that ``--help`` imports neither numpy nor JAX; a test holds
them equal to the model's.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from jaxalign.model.choices import RepeatedNames, UnknownLetters

PresetName = Literal[
    "blastp",
    "blastn",
    "needle",
    "ssearch",
    "ssearch-dna",
    "mmseqs",
    "parasail",
    "foldseek",
]
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
Column = Annotated[str | None, Parameter(metavar="NAME")]
Sheet = Annotated[str | None, FILE, Parameter(metavar="TABLE.tsv")]
Out = Annotated[str | None, FILE, Parameter(alias="-o", metavar="OUT")]


@dataclass(frozen=True)
class ScoringOptions:
    """Substitution scores and gap costs."""

    preset: PresetName | None = None
    """Use another tool's matrix, gap costs, mode and identity. Other options override
    it."""

    matrix: str | None = None
    """A bundled matrix (`jaxalign matrices` lists them) or a file in NCBI format.
    [BLOSUM62; nucleotides none]"""

    match: float | None = None
    """Score of two equal letters, in place of a matrix. [nucleotides 2]"""

    mismatch: float | None = None
    """Score of two different letters. [nucleotides -3]"""

    gap_open: float | None = None
    """Cost of the first residue of a gap. [11; 3Di 10; nucleotides 7]"""

    gap_extend: float | None = None
    """Cost of each further residue. [1; nucleotides 2]"""

    gap_style: Literal["first-included", "blast"] = "first-included"
    """first-included: a gap of k residues costs open + extend*(k-1). blast: open +
    extend*k, as BLAST counts."""

    alphabet: Literal["auto", "protein", "dna", "rna"] = "auto"
    """Kind of sequence. dna and rna score as blastn does unless a matrix is named; rna
    reads T as U. auto: dna or rna if all letters are nucleotides and no matrix is
    named, otherwise the letters of the matrix."""

    unknown: UnknownLetters = "error"
    """How to treat unknown letters. X reads U, O and J as the wildcard; mask reads
    every unknown letter as the wildcard."""

    strip_stop: Flag = False
    """Remove a stop, *, from the end of each sequence of a file."""

    names: RepeatedNames = "error"
    """What to do with a name that is repeated in a file. number makes NAME_2, NAME_3
    and so on."""


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
    """Output file; its suffix sets the format. [standard output, a tsv]"""

    format: Format | None = None
    """Format of the output. [the suffix of -o]"""

    columns: Annotated[str | None, Parameter(metavar="A,B,C")] = None
    """Columns of tsv, csv and parquet. BLAST's and MMseqs2's names are accepted too."""

    eqx: Flag = False
    """Write = and X instead of M in CIGARs of sam, paf and the column cigar."""


@dataclass(frozen=True)
class HitOptions(ColumnOptions):
    """The form of a table of hits."""

    output: Literal["score", "stats", "alignment"] | None = None
    """What to compute. Formats with paths raise it to alignment. [stats]"""

    format: HitFormat | None = None
    """Format of the output. [the suffix of -o]"""


@dataclass(frozen=True)
class ListOptions(FileOptions):
    """Where the list of sequences goes."""

    out: Out = None
    """Output file: .tsv, .csv or .parquet. [standard output, a tsv]"""


@dataclass(frozen=True)
class AuditOptions:
    """How the pairs across parts are shown."""

    report: Annotated[str | None, FILE, Parameter(metavar="OUT.html")] = None
    """Write a report, an HTML page. It shows identities within and across parts,
    components, labels and worst pairs, and needs no network."""

    plot: Annotated[str | None, FILE, Parameter(metavar="OUT.png")] = None
    """Draw a histogram of identities across parts. Its suffix is png, svg or pdf. Needs
    matplotlib."""

    leaks: Annotated[str | None, FILE, Parameter(metavar="LEAKS.tsv")] = None
    """List every sequence that leaks, with its nearest sequence in another part; tsv,
    csv or parquet. With --full-histogram, list every sequence."""

    across_only: Flag = False
    """Do not compare pairs within parts for the report."""


@dataclass(frozen=True)
class CacheOptions:
    """Whether compiled programs are kept."""

    no_cache: Flag = False
    """Neither load nor store compiled programs (also JAXALIGN_CACHE_DIR=off)."""


@dataclass(frozen=True)
class MachineOptions(CacheOptions):
    """Where it runs."""

    device: Device = "auto"
    """Where to compute; gpu fails if there is none."""


@dataclass(frozen=True)
class QuietOptions:
    """How much is said on standard error."""

    quiet: Annotated[bool, FLAG, Parameter(alias="-q")] = False
    """Print only warnings and errors."""

    verbose: Annotated[bool, FLAG, Parameter(alias="-v")] = False
    """Also print the memory plan, and a traceback after an error."""


@dataclass(frozen=True)
class MessageOptions(QuietOptions):
    """Lines on standard error."""

    progress: Literal["auto", "bar", "plain", "json", "none"] = "auto"
    """How progress is shown. auto: a bar on a terminal after two seconds, otherwise a
    line each minute."""


@dataclass(frozen=True)
class ResumeOptions:
    """Runs that can be completed after an interruption."""

    resume: Flag = False
    """Continue an interrupted run, from the state that it saved next to -o or from the
    finished parts in -o FOLDER/."""


@dataclass(frozen=True)
class CorpusRunOptions(ResumeOptions):
    """Long runs against a corpus, whose output is a file (-o)."""

    shard: Annotated[str | None, Parameter(metavar="K/N")] = None
    """Compute only the K-th of N shares, counted from 1. Concatenate the outputs of all
    shares for the whole result."""


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
