"""The options verbs share: frozen dataclasses that cyclopts flattens into flags.

Choices are spelled out so that ``--help`` imports neither numpy nor JAX; a test holds
them equal to the model's.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from jaxalign.model.choices import (
    Coverage,
    GapModel,
    Identity,
    Mode,
    Output,
    UnknownLetters,
)

PresetName = Literal["blastp", "blastn", "needle", "ssearch", "mmseqs", "parasail"]
Format = Literal[
    "tsv", "m8", "sam", "paf", "maf", "fasta", "pair", "parquet",
    "graphpart", "hestia", "datasail",
]  # fmt: skip
Implementation = Literal["rows", "sweep", "wavefront", "pallas"]


def refuse_option(_type: object, value: object) -> None:
    """A path may be ``-``, never an option that nobody knows."""
    if isinstance(value, str) and value.startswith("-") and value != "-":
        raise ValueError(f"Unknown option: {value}.")


FILE = Parameter(allow_leading_hyphen=True, validator=refuse_option)
Fasta = Annotated[str, FILE]
PairTable = Annotated[str | None, FILE, Parameter(metavar="PAIRS.tsv")]
Cold = Literal["both", "one", "none"]
Second = Literal["proteins", "groups"]
FLAG = Parameter(negative="", show_default=False)


@Parameter(name="*", group=Group("Scoring", sort_key=1))
@dataclass(frozen=True)
class ScoringOptions:
    """Substitution scores and gap costs."""

    preset: PresetName | None = None
    """Another tool's matrix, gaps, mode and identity; other options override it."""

    matrix: str | None = None
    """A bundled matrix (`jaxalign matrices`) or an NCBI-format file. [BLOSUM62]"""

    match: float | None = None
    """Score of two equal letters, in place of a matrix."""

    mismatch: float | None = None
    """Score of two different letters."""

    gap_open: Annotated[float | None, Parameter(alias="-gapopen")] = None
    """Cost of the first residue of a gap. [11]"""

    gap_extend: Annotated[float | None, Parameter(alias="-gapextend")] = None
    """Cost of each further residue. [1]"""

    gap_style: Literal["first-included", "blast"] = "first-included"
    """A gap of k costs open + extend*(k-1), or in BLAST's numbers open + extend*k."""

    alphabet: Literal["auto", "protein", "dna", "rna"] = "auto"
    """dna, rna: match 2, mismatch -3 if no matrix. auto: the letters of the matrix, or
    dna or rna where all letters say so and no matrix is named."""

    unknown: UnknownLetters = "error"
    """X reads U, O, J as the wildcard; mask reads every unknown letter so."""


@Parameter(name="*", group=Group("Alignment", sort_key=2))
@dataclass(frozen=True)
class ModeOptions:
    """Which ends are aligned, and what counts as identical."""

    mode: Mode | None = None
    """semiglobal frees all four end gaps. [global]"""

    free_ends: Annotated[str | None, Parameter(metavar="q5,q3,t5,t3")] = None
    """Ends of query and target that may hang over free of cost, with mode global."""

    identity: Identity | None = None
    """What identities are divided by. [alignment: its columns; with --output identity
    longer, or shorter where ends may hang over]"""

    min_identity: Annotated[float | None, Parameter(metavar="F")] = None
    """Keep pairs with at least this identity, 0 to 1; the summary counts the rest."""

    min_score: Annotated[float | None, Parameter(metavar="S")] = None
    """Keep pairs with at least this score."""

    min_cov: Annotated[float | None, Parameter(metavar="F")] = None
    """Keep pairs with at least this share of the sequences in the alignment, 0 to 1."""

    coverage: Coverage = "both"
    """Whose share --min-cov is about (columns qcov and tcov)."""

    min_length_ratio: Annotated[float | None, Parameter(metavar="F")] = None
    """Keep pairs whose shorter length is at least this share of the longer, 0 to 1."""

    no_filter: Annotated[bool, FLAG] = False
    """Align also the pairs that provably cannot pass --min-identity."""


@Parameter(name="*", group=Group("Output", sort_key=3))
@dataclass(frozen=True)
class OutputOptions:
    """The result that is computed, and where it goes."""

    output: Output | None = None
    """What to compute; formats with paths raise it to alignment. [stats]"""

    out: Annotated[str | None, FILE, Parameter(alias="-o", metavar="OUT")] = None
    """Output file; its suffix is the format. Standard output is a tsv."""

    format: Format | None = None
    """In place of the suffix."""

    columns: Annotated[str | None, Parameter(metavar="A,B,C")] = None
    """Columns of tsv and parquet; BLAST's and MMseqs2's names are known too."""

    force: Annotated[bool, FLAG] = False
    """Replace an existing output file."""

    json: Annotated[bool, FLAG] = False
    """Print one JSON object about the run; the table then goes only to -o."""


@Parameter(name="*", group=Group("Machine", sort_key=4))
@dataclass(frozen=True)
class MachineOptions:
    """Where it runs."""

    memory_budget: Annotated[str | None, Parameter(metavar="2GiB")] = None
    """Bytes to plan with. [half of what is available]"""

    threads: Annotated[int | None, Parameter(metavar="N")] = None
    """Host threads, one window each. [all cores]"""

    implementation: Implementation | None = None
    """Run this one or fail. [the fastest that can run]"""

    device: Literal["auto", "cpu", "gpu"] = "auto"
    """gpu fails where there is none."""

    devices: Annotated[str | None, Parameter(metavar="0,1")] = None
    """Which of them, by number, or all; idle ones take the next window. [the first]"""

    no_cache: Annotated[bool, FLAG] = False
    """Neither load nor keep compiled programs (also JAXALIGN_CACHE_DIR=off)."""


@Parameter(name="*", group=Group("Messages", sort_key=5))
@dataclass(frozen=True)
class MessageOptions:
    """Lines on standard error."""

    progress: Literal["auto", "bar", "plain", "json", "none"] = "auto"
    """auto: a bar on a terminal after two seconds, else a line each minute."""

    quiet: Annotated[bool, FLAG, Parameter(alias="-q")] = False
    """Only warnings and errors."""

    verbose: Annotated[bool, FLAG, Parameter(alias="-v")] = False
    """The memory plan, and a traceback with an error."""


LONG = Group("Long runs", sort_key=6)
Cluster = Annotated[str | None, Parameter(metavar="ADDRESS", group=LONG)]


@Parameter(name="*", group=LONG)
@dataclass(frozen=True)
class FolderOptions:
    """Results in a folder of parts (-o FOLDER/)."""

    resume: Annotated[bool, FLAG] = False
    """Complete the folder named by -o: parts that are there are not computed again."""

    shard: Annotated[str | None, Parameter(metavar="K/N")] = None
    """Only the K-th of N shares of the parts, from 1; shares may fill one folder."""

    part_rows: Annotated[int | None, Parameter(metavar="ROWS")] = None
    """Rows of a part at most, unless a single query has more. [4194304, less where
    all are few]"""


@Parameter(name="*", group=LONG)
@dataclass(frozen=True)
class CorpusRunOptions:
    """Long runs against a corpus, whose output is a file (-o)."""

    resume: Annotated[bool, FLAG] = False
    """Complete an interrupted run: its state is in a file beside -o."""

    shard: Annotated[str | None, Parameter(metavar="K/N")] = None
    """Only the K-th of N shares, from 1; one below the other, their rows are those of
    the whole."""


@Parameter(name="*", group=Group("Alignment", sort_key=2))
@dataclass(frozen=True)
class LinkOptions:
    """When two sequences are linked, beside the cut."""

    link: Literal["whole", "local"] | None = None
    """whole: alike from end to end, over the longer length. local: identical residues
    of the best local alignment over the shorter length, which sees fragments and shared
    domains. [whole; --mode and --identity say other links]"""

    identity: Literal["longer", "shorter", "mean"] | None = None
    """Whose length identical pairs are divided by. In mode global, shorter needs
    --min-length-ratio, or short sequences are linked to whatever is long. [longer]"""

    min_length_ratio: Annotated[float | None, Parameter(metavar="F")] = None
    """Link only pairs whose shorter length is this share of the longer, 0 to 1."""

    mode: Mode | None = None
    """semiglobal frees all four end gaps. [global]"""

    free_ends: Annotated[str | None, Parameter(metavar="q5,q3,t5,t3")] = None
    """Ends that may hang over free of cost, with mode global; those of both sides."""

    no_filter: Annotated[bool, FLAG] = False
    """Align also the pairs that provably are below the cut."""


@Parameter(name="*", group=Group("Output", sort_key=3))
@dataclass(frozen=True)
class ListOptions:
    """Where the list of sequences goes."""

    out: Annotated[str | None, FILE, Parameter(alias="-o", metavar="OUT")] = None
    """Output file; .tsv, .csv or .parquet. [standard output, a tsv]"""

    force: Annotated[bool, FLAG] = False
    """Replace existing output files."""


@Parameter(name="*", group=Group("Audit", sort_key=3))
@dataclass(frozen=True)
class AuditOptions:
    """How the pairs across parts are shown."""

    worst: Annotated[int, Parameter(metavar="N")] = 10
    """How many of the worst pairs are shown, with their alignments."""

    report: Annotated[str | None, FILE, Parameter(metavar="OUT.html")] = None
    """A page for people: identities within and across parts, components, labels,
    worst pairs. One file, which needs no network."""

    plot: Annotated[str | None, FILE, Parameter(metavar="OUT.png")] = None
    """Histogram of identities across parts, png, svg or pdf; needs jaxalign[plot]."""

    full_histogram: Annotated[bool, FLAG] = False
    """Align all pairs for the pictures, also those provably below the cut."""

    leaks: Annotated[str | None, FILE, Parameter(metavar="LEAKS.tsv")] = None
    """Every sequence that leaks, with its nearest one of another part, tsv, csv or
    parquet; with --full-histogram every sequence."""

    across_only: Annotated[bool, FLAG] = False
    """Leave pairs within parts out of the report: they are not compared."""


@Parameter(name="*", group=Group("Output", sort_key=3))
@dataclass(frozen=True)
class SummaryOptions:
    """A summary of the run for programs."""

    json: Annotated[bool, FLAG] = False
    """Print one JSON object about the run; a list then goes only to -o."""


@Parameter(name="*")
@dataclass(frozen=True)
class VerbOptions:
    """Every option of a verb of linked sequences, but its own and its files."""

    links: LinkOptions = LinkOptions()
    scoring: ScoringOptions = ScoringOptions()
    machine: MachineOptions = MachineOptions()
    messages: MessageOptions = MessageOptions()
    summary: SummaryOptions = SummaryOptions()


@Parameter(name="*", group=Group("Output", sort_key=3))
@dataclass(frozen=True)
class IndexOptions:
    """Where the index goes."""

    out: Annotated[str | None, FILE, Parameter(alias="-o", metavar="OUT")] = None
    """The index. [DB.jaxdb]"""

    force: Annotated[bool, FLAG] = False
    """Replace an existing file."""

    verify: Annotated[bool, FLAG] = False
    """Read an index, DB, and compare its checksums; write nothing."""

    quiet: Annotated[bool, FLAG, Parameter(alias="-q")] = False
    """Only warnings and errors."""

    verbose: Annotated[bool, FLAG, Parameter(alias="-v")] = False
    """A traceback with an error."""


@Parameter(name="*")
@dataclass(frozen=True)
class Options:
    """Every option of a verb that computes."""

    scoring: ScoringOptions = ScoringOptions()
    mode: ModeOptions = ModeOptions()
    output: OutputOptions = OutputOptions()
    machine: MachineOptions = MachineOptions()
    messages: MessageOptions = MessageOptions()


@Parameter(name="*", group=Group("Output", sort_key=3))
@dataclass(frozen=True)
class HitOutputOptions(OutputOptions):
    """The hits that are computed, and where they go."""

    output: Literal["score", "stats", "alignment"] | None = None
    """What to compute; formats with paths raise it to alignment. [stats]"""

    format: (
        Literal["tsv", "m8", "sam", "paf", "maf", "fasta", "pair", "parquet"] | None
    ) = None
    """In place of the suffix."""


@Parameter(name="*")
@dataclass(frozen=True)
class HitOptions(Options):
    """Every option of a search."""

    output: HitOutputOptions = HitOutputOptions()


# ------------------------------------------------------------------------------
# ``--plot`` and ``--dendrogram``: pictures beside a result.

PICTURE = Parameter(metavar="OUT.png", group=Group("Output", sort_key=3))
Plot = Annotated[str | None, FILE, PICTURE]


@dataclass(frozen=True)
class Pictures:
    """Files of pictures, one at least; None for none."""

    histogram: str | None = None
    dendrogram: str | None = None
    dot_plot: str | None = None


@Parameter(name="*", group=Group("Output", sort_key=3))
@dataclass(frozen=True)
class NearestPictures:
    """How the nearest are shown."""

    plot: Annotated[str | None, FILE, Parameter(metavar="OUT.png")] = None
    """Histogram of the identities of the nearest; needs jaxalign[plot]."""

    report: Annotated[str | None, FILE, Parameter(metavar="OUT.html")] = None
    """A page for people: bands, identities. One file, which needs no network."""


# ------------------------------------------------------------------------------
# The options of ``jaxalign family``.


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


# ------------------------------------------------------------------------------
# The options of ``jaxalign repertoire``.


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


# ------------------------------------------------------------------------------
# The options of ``jaxalign three`` beside those that verbs share.

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
