"""Every option of a public function: its type, its default and what it means, once.

A function takes the fields of one record, or of a part of it: signatures come from here
(``signatures``), types for checkers (``keywords``, generated), and the arguments of the
command line (``cli.derive``), whose ``--help`` prints the texts below. Nothing heavy is
imported, so that this help is as fast as can be.

Parameters
----------
query, target : str, (name, str), Path, uint8 codes, biotite or Biopython sequence
    A file must have one record; see ``jaxalign.inputs``.
sequences, queries, targets, tests : path, mapping, iterable, Sequences or flat arrays
    A file (FASTA or an index), names to sequences, sequences as ``align`` takes them,
    or ``(codes, offsets)``; see ``jaxalign.inputs``. A str is a path.
scoring : Scoring, or the name or file of a matrix, optional
    The default is BLOSUM62 with gap costs 11 and 1.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from linecache import getlines
from typing import TYPE_CHECKING, Any, Literal, TypeVar, dataclass_transform

from jaxalign.model.choices import (
    Coverage,
    Edges,
    FreeEnd,
    GapModel,
    Identity,
    Mode,
    Output,
    RepeatedNames,
    Statistics,
    Strand,
    UnknownLetters,
)

if TYPE_CHECKING:
    from jax import Device
    from jax.sharding import Mesh

    from jaxalign.model.scoring import ScoringLike
else:
    Device = Mesh = ScoringLike = Any

Implementation = Literal["rows", "sweep", "wavefront", "pallas"]
Devices = str | int | Sequence[int | Device] | None
# Cells done and cells in all; of some jobs None, while the size is not known.
Progress = Callable[[int, int], object] | None
SearchProgress = Callable[[int, int | None], object] | None
# Denominators that depend on neither a path nor the order of two sequences.
LengthIdentity = Literal["longer", "shorter", "mean"]
Link = Literal["whole", "local"]
LinkStrand = Literal["both", "plus"]
By = Literal["identity", "score", "bits"]
PairStrategy = Literal["greedy", "complete"]
Metric = Literal["tcrdist", "hamming", "levenshtein", "alignment"]
Chains = Literal["VJ", "VDJ", "sum", "all", "any"]
Bad = Literal["error", "keep", "drop"]
Schedule = Literal["auto", "sloped", "layered"]
Traceback = Literal["auto", "store", "split", "bt1", "bt2", "bt3"]
TripleImplementation = Literal["planes", "layers", "pallas"]
Class = TypeVar("Class", bound=type)
# The beginning of a class, or a field of one with the string below it
_FIELDS = re.compile(
    r'^class (\w+)|^    (\w+): [^\n]+\n    """(.*?)"""', re.MULTILINE | re.DOTALL
)

# One word a concept (docs/conventions.md). A word that another one replaced is still
# taken, and answered with a line, where it means the same: word -> (the word in its
# place, the functions and verbs that take it; "" is all). It is in no help.
OLD_WORDS = {
    "max_identity": ("min_identity", "split split_pairs audit audit_pairs purge"),
    "score": ("min_score", "purge"),
    "min_coverage": ("min_cov", "search_family"),
    "include_coverage": ("include_cov", "search_family family"),
    "removed": ("list", "purge"),
    "representatives": ("fasta", "cluster"),
    "certificate": ("verify", "audit"),
    "stratify": ("labels", "split"),
    "reference": ("against", "repertoire"),
    "block_rows": ("part_rows", "stream_repertoire repertoire"),
    # as HH-suite and BLAST write them
    "cov": ("min_cov", "family"),
    "qid": ("min_query_identity", "family"),
    "id": ("max_identity", "family"),
    "gapopen": ("gap_open", ""),
    "gapextend": ("gap_extend", ""),
}


def current_word(word: str, function: str) -> str | None:
    """The word in the place of an old one of a function or a verb; None for others."""
    word, places = OLD_WORDS.get(word, ("", "none"))
    return word if function in places.split() or not places else None


# Options that a related function or verb has, and why others lack them.
OTHERS_HAVE = {
    "min_relative_score": (
        "nearest",
        "it ranks by identity or score; cluster, split, audit and purge take it",
    ),
    "edges": (
        "nearest",
        "it ranks by identity or score, and a pair of a table has none; purge and "
        "audit take edges between two sets",
    ),
    "together": (
        "cluster deduplicate dedup identity_graph nearest purge",
        "it says which sequences no part may divide; split and audit take it",
    ),
    "weights": (
        "cluster deduplicate dedup identity_graph split_pairs audit audit_pairs "
        "nearest purge",
        "it says what sequences count in the shares of parts; split takes it",
    ),
    "update": (
        "deduplicate dedup identity_graph split split_series nearest purge",
        "only clusters of method components can grow; cluster takes it",
    ),
}


def why_absent(word: str, function: str) -> str | None:
    """The reason for which a function or verb lacks an option of related ones."""
    places, reason = OTHERS_HAVE.get(word, ("", ""))
    return reason if function in places.split() else None


@dataclass_transform(frozen_default=True, kw_only_default=True)
def part(record: Class) -> Class:
    """Mark fields that several records have.

    Type checkers take it for a dataclass. It is none: to make one takes a millisecond,
    and each process would make all of them.
    """
    return record


def whole(record: Class) -> Class:
    """Give a class the fields of its parts, for ``dataclass``."""
    record.__annotations__ = field_types(record)
    return record


def field_types(record: type) -> dict[str, str]:
    """The fields of a record and its parts, with their types as they are written."""
    types: dict[str, str] = {}
    for owner in reversed(record.__mro__):
        types |= vars(owner).get("__annotations__", {})
    return types


@part
class AlignedEnds:
    """Which ends of two sequences are aligned."""

    mode: Mode = "global"
    """How sequences are aligned; semiglobal makes all four end gaps free."""

    free_ends: Collection[FreeEnd] | None = None
    """Ends whose gaps are free, in mode global."""


@part
class Host:
    """Memory and threads of the host."""

    memory_budget: int | str | None = None
    """Memory that the job may use. [half of what is available]"""

    threads: int | None = None
    """Threads of the host. [all cores]"""


@part
class Execution(Host):
    """The implementation and the devices of a job of two sequences."""

    implementation: Implementation | None = None
    """Use this implementation or fail. [the fastest that can run]"""

    devices: Devices = None
    """JAX devices, by number, or all of them. [the first]"""


@part
class Watch:
    """Callbacks of a job whose size is known."""

    progress: Progress = None
    """Called with (cells done, cells in all)."""

    busy: Progress = None
    """Called with (devices at work, devices in all)."""


@part
class Measure:
    """Which pairs of linked sequences are compared, and by what length."""

    identity: LengthIdentity | None = None
    """The length that the number of identical pairs is divided by. In mode global,
    shorter needs min_length_ratio; otherwise short sequences are linked to any long
    one. [the link's]"""

    min_length_ratio: float | None = None
    """Compare only pairs whose shorter length is at least this share of the longer, 0
    to 1."""

    min_cov: float | None = None
    """Least share that an alignment has to cover, 0 to 1. For mode local and free ends;
    identities are then those of a path."""

    coverage: Coverage = "both"
    """The sequences that min_cov tests: both, the shorter one, or either of the two
    (query or target)."""

    strand: LinkStrand | None = None
    """Strands of nucleotides to compare. With both, the reverse complement of one
    sequence of each pair is compared, too. [both for DNA, plus for RNA]"""

    filter: bool = True
    """Skip pairs that provably cannot pass; results do not change."""


@part
class Nucleotides:
    """Options of pairs of nucleotides."""

    strand: Strand | None = None
    """Strand of the queries to align, for nucleotides: plus, unless given; both keeps
    the strand with the higher score."""


@part
class Meshed(Execution, AlignedEnds):
    """Options of every function of two sequences."""

    mesh: Mesh | None = None
    """Run one program over all devices of this mesh."""


@part
class Align(Nucleotides, Watch, Meshed):
    """Options of ``align``."""


@part
class Windowed(Meshed):
    """Options of functions of many pairs."""

    window: int | None = None
    """Largest number of queries, and of targets, in a window."""


@part
class Matrix(Watch, Windowed):
    """Options of ``scores_matrix`` and ``distance_matrix``."""


@part
class Tabular(Windowed):
    """Options of functions whose pairs are rows of a table."""

    output: Output = "stats"
    """What to compute. Formats with paths raise it to alignment."""

    min_score: float | None = None
    """Keep pairs with at least this score."""

    min_identity: float | None = None
    """Keep pairs with at least this identity, 0 to 1. The summary counts the rest."""

    identity: Identity | None = None
    """What the number of identical pairs is divided by. [alignment: its columns; with
    output identity: longer, or shorter if ends are free]"""

    min_cov: float | None = None
    """Keep pairs whose alignment covers at least this share of the sequences, 0 to
    1."""

    coverage: Coverage = "both"
    """The sequences that min_cov tests (columns qcov and tcov), or the shorter one."""

    min_length_ratio: float | None = None
    """Keep pairs whose shorter length is at least this share of the longer, 0 to 1."""

    filter: bool = True
    """Skip pairs that provably cannot reach min_identity; results do not change."""


@part
class Pairs(Nucleotides, Watch, Tabular):
    """Options of ``align_pairs``."""


@part
class OneSet(Tabular):
    """Options of functions of all pairs of a set."""

    include_self: bool = False
    """Also align every record with itself."""

    part_rows: int | None = None
    """Largest number of rows in a part; a single query may have more. [4194304, less
    for small jobs]"""


@part
class All(Watch, OneSet):
    """Options of ``align_all``."""

    cluster: str | None = None
    """Compute on a Ray cluster; auto is the cluster that this machine belongs to."""


@part
class Parts:
    """Options of results that come part by part."""

    skip: Collection[int] = ()
    """Numbers of parts to leave out."""

    shard: tuple[int, int] | None = None
    """Compute only the k-th of n shares of the parts, counted from 1."""


@part
class Stream(Parts, All):
    """Options of ``stream_all``."""


@part
class Planned(Nucleotides, OneSet):
    """Options of ``plan``."""

    parts: bool = False
    """Plan a result that is written part by part."""


@dataclass(frozen=True, kw_only=True)
@whole
class PairOptions(Planned, Stream):
    """Every option of a function of two sequences, with its default."""

    equals_alike: bool = False
    """Count all residues of two equal sequences as identical, wildcards too, and keep
    their row whatever the filters say. Set by the functions that find duplicates, leaks
    or the nearest sequence."""

    min_relative_score: float | None = None
    """Keep pairs whose score is at least this share of a self score. Set by functions
    of linked sequences."""


@part
class FileLetters:
    """How the letters of files are read."""

    unknown: UnknownLetters = "error"
    """How to treat unknown letters. X reads U, O and J as the wildcard; mask reads
    every unknown letter as the wildcard."""

    strip_stop: bool = False
    """Remove a stop, *, from the end of each sequence of a file."""

    names: RepeatedNames = "error"
    """What to do with a name that is repeated in a file. number makes NAME_2, NAME_3
    and so on."""


@part
class CorpusScan(FileLetters, Execution):
    """Options of functions that read a database block by block."""

    progress: SearchProgress = None
    """Called with (cells done, cells in all or None)."""


@part
class ReportedHits:
    """The hits of a search that are reported."""

    top: int = 300
    """Largest number of hits of a query, best first."""

    align_top: bool = True
    """Align the hits; otherwise they have only scores."""

    hsps: int = 1
    """Largest number of local alignments of a hit. After the best one, each is the best
    that shares no aligned pair of residues with those before, and has an E-value of at
    most 1."""

    statistics: Statistics = "published"
    """Parameters of bits and E-values, published by NCBI or fitted to the scores of
    each query with a sample of the database."""


@part
class DatabaseSearch(CorpusScan, Nucleotides, ReportedHits, AlignedEnds):
    """Options of ``search``."""

    mode: Mode = "local"
    """How sequences are aligned; semiglobal makes all four end gaps free."""

    window: int | None = None
    """Largest number of queries, and of targets, in a window."""


@dataclass(frozen=True, kw_only=True)
@whole
class SearchOptions(Parts, DatabaseSearch):
    """Every option of a search, with its default."""

    part_rows: int | None = None
    """Largest number of rows in a part; a single query may have more. [4194304, less
    for small jobs]"""


@dataclass(frozen=True, kw_only=True)
@whole
class FamilyOptions(CorpusScan):
    """Every option of an iterated search, with its default."""

    iterations: int = 3
    """Largest number of passes; 1 searches only with the sequence."""

    max_evalue: float = 1e-3
    """Write hits with at most this E-value."""

    include: float = 1e-2
    """Build the next profile from hits with at most this E-value."""

    include_cov: float = 0.3
    """Build the next profile from hits that cover at least this share of the query, 0
    to 1."""

    max_sequences: int = 10_000
    """Largest number of hits of a pass; the best are kept."""

    strand: Strand | None = None
    """Strands of the database to search, for nucleotides. [nucleotides both]"""

    min_cov: float = 0.0
    """Keep hits that cover at least this share of the query, 0 to 1."""

    min_query_identity: float = 0.0
    """Keep hits with at least this share of residues identical to the query's, 0 to
    1."""

    max_identity: float = 1.0
    """Remove the shorter of two rows with a larger identity than this, 0 to 1."""

    hsps: int = 4
    """Largest number of rows of a hit. After the best alignment, each is the best that
    shares no aligned pair of residues with those before."""

    correct_composition: bool = True
    """Subtract the score that the composition of a hit explains."""

    @property
    def largest_evalue(self) -> float:
        """The largest E-value of a hit that is reported or included."""
        return max(self.max_evalue, self.include)


@dataclass(frozen=True, kw_only=True)
@whole
class ComplexOptions(FamilyOptions):
    """Every option of a search with the chains of complexes, with its default."""

    pair_strategy: PairStrategy = "greedy"
    """Which taxa have a paired row. greedy: those of hits of two or more sequences.
    complete: those of hits of every sequence of the complex."""

    pair_evalue: float = 0.1
    """Pair hits with at most this E-value, whether they are shown or not."""

    taxa: Any = None
    """A table of names and taxa, in place of OX= and TaxID= in the headings of the
    database. It is tsv, csv or parquet."""

    rna_database: Any = None
    """A database of nucleotides for chains of RNA: FASTA or an index. Without it they
    have no alignment."""

    @property
    def largest_evalue(self) -> float:
        """The largest E-value of a hit that is reported, included or paired."""
        return max(self.max_evalue, self.include, self.pair_evalue)


@part
class AsLinked:
    """A link of two sequences, in a word."""

    link: Link | None = None
    """Link by identity from end to end (whole), or of the best local alignment (local).
    whole is global, over the longer length. local is over the shorter length, counts
    only if chance does not explain the score, and finds fragments and shared domains.
    [local, unless --mode, --identity or --free-ends is given]"""


@part
class FromOutside:
    """Evidence beside alignments."""

    edges: Sequence[Edges] | None = None
    """Link the pairs of a table, too. Its rows have two names and values; tsv, csv or
    Parquet. FILE:TM>=0.5 takes the column TM, FILE:3<=0.5 the third. With ,and behind
    it, alignments link only such pairs. With ,unknown=count, rows that name no sequence
    are counted instead of refused."""


@part
class Linked(AsLinked, Watch, Measure, FromOutside, Execution, AlignedEnds):
    """Options of functions of linked sequences: what a link is, and what computes."""

    mode: Mode | None = None
    """How sequences are aligned; semiglobal makes all four end gaps free. [the mode of
    the link]"""

    min_score: float | None = None
    """Link only pairs whose best alignment has at least this score. [with --link local:
    the score with E = 0.001 in a search of the set]"""

    min_relative_score: float | None = None
    """Least score over the smaller self score, 0 to 1. Only pairs that reach it are
    linked. With --identity it is over the larger self score or the mean. Without
    min_identity, it alone is the cut."""


@part
class Divided(Linked):
    """Options of functions of splits."""

    together: Any = None
    """A table of groups that no split divides. It has a name and its groups per row, in
    any number of columns, such as complex and patient; tsv, csv or Parquet."""


@dataclass(frozen=True, kw_only=True)
@whole
class HomologyOptions(Divided):
    """Every option of a function of linked sequences, with its default."""

    worst: int = 10
    """Number of worst pairs to show, with their alignments."""

    full_histogram: bool = False
    """Align all pairs for the histograms, including those provably below the cut."""


@dataclass(frozen=True, kw_only=True)
@whole
class NearestOptions(AsLinked, Measure, CorpusScan, AlignedEnds):
    """Every option of ``nearest``, with its default."""

    mode: Mode | None = None
    """How sequences are aligned; semiglobal makes all four end gaps free. [the mode of
    the link]"""

    min_score: float | None = None
    """By identity: consider only sequences whose best alignment has at least this
    score. [with --link local: the score with E = 0.001 in a search of the test set]"""

    by: By = "identity"
    """What nearest means: the largest identity, or the best score (or bits) of a local
    alignment."""

    top: int = 1
    """Number of nearest sequences to list, with their rank."""

    bands: Sequence[float] = (0.3, 0.5, 0.7, 0.9)
    """Edges of the bands of identity, 0 to 1."""


@dataclass(frozen=True, kw_only=True)
@whole
class PurgeOptions(AsLinked, Measure, FromOutside, CorpusScan):
    """Every option of ``purge``, with its default."""

    mode: Mode | None = None
    """How sequences are aligned; semiglobal makes all four end gaps free. [the mode of
    the link]"""

    free_ends: Collection[FreeEnd] | None = None
    """Ends whose gaps are free, in mode global."""

    min_identity: float | None = None
    """The cut, 0 to 1: remove sequences with at least this identity."""

    min_score: float | None = None
    """Alone, the cut: remove sequences whose best local alignment has at least this
    score. With min_identity, the score that a pair must reach as well. [with --link
    local: the score with E = 0.001 in a search of the test set]"""

    min_relative_score: float | None = None
    """Least score over the smaller self score, 0 to 1. Only sequences that reach it are
    removed. With --identity it is over the larger self score or the mean. Without
    min_identity, it alone is the cut."""

    max_evalue: float | None = None
    """Another cut: remove sequences whose best local alignment has at most this E-value
    in a search of the whole training set."""


@dataclass(frozen=True, kw_only=True)
@whole
class RepertoireOptions(Host):
    """Every option of a repertoire graph, with its default; None is a metric's own."""

    metric: Metric = "tcrdist"
    """The distance. alignment is Needleman-Wunsch with linear gaps: min(S(a,a), S(b,b))
    - S(a,b)."""

    cutoff: int | None = None
    """The largest distance of an edge. [20; alignment 10; hamming 2; levenshtein 2]"""

    scoring: ScoringLike = None
    """A bundled matrix or a matrix file (tcrdist, alignment). [BLOSUM62]"""

    weight: int | None = None
    """Factor of the letter distances (tcrdist). [3]"""

    gap_penalty: int | None = None
    """Cost of each letter opposite a gap (tcrdist, alignment). [4]"""

    ntrim: int | None = None
    """Number of letters at the start that do not count (tcrdist). [3]"""

    ctrim: int | None = None
    """Number of letters at the end that do not count (tcrdist). [2]"""

    fixed_gap: bool | None = None
    """Fix the place of the gap (tcrdist). [True]"""

    offset: int | None = None
    """Letters with the score S have the distance min(cap, offset - S) (tcrdist). [4]"""

    cap: int | None = None
    """The largest distance of two letters (tcrdist). [4]"""

    column: str | None = None
    """The column of the CDR3 in a table. By default junction_aa, else cdr3_aa, cdr3,
    CDR3, cdr3aa or CDR3aa."""

    chains: Chains | None = None
    """Compare one chain of each cell (VJ, VDJ), the sum of both distances, the larger
    one (all) or the smaller one (any). [the only chain]"""

    v_distances: Any = None
    """A square table of distances between V genes, to be added."""

    v_loops: Any = None
    """A table of V genes and their loops; the TCRdist of the loops is added."""

    bad: Bad = "error"
    """What to do with rows without a distance: stop, keep them without edges, or drop
    them."""

    devices: Any = None
    """GPUs that share the work. [the first]"""


@part
class TripleModel:
    """Options of every function of three sequences."""

    gap_model: GapModel = "quasi-natural"
    """How gaps are counted. natural is the exact sum of affine pair scores.
    quasi-natural takes half the time; a column with gaps in both rows of a pair ends
    that pair's gap. linear needs gap_open equal to gap_extend."""

    mode: Mode = "global"
    """How sequences are aligned; semiglobal makes the end gaps of every pair free."""

    memory_budget: int | str | None = None
    """Memory that the job may use. [half of what is available; most of a GPU's]"""

    implementation: TripleImplementation | None = None
    """How the table is filled. [pallas if it can run]"""


@part
class PlanThree(TripleModel):
    """Options of ``plan_three``."""

    schedule: Schedule = "auto"
    """The order in which cells are computed. auto is layered on a CPU; on a GPU, the
    order of the kernels, or sloped."""

    traceback: Traceback | None = "auto"
    """How the path is found. auto stores all choices if they fit the budget, otherwise
    splits; none computes only the score."""

    chunk: int | None = None
    """Side of a chunk, for bt1 to bt3. [sloped 31, layered 47]"""

    height: int | None = None
    """Height of a sub-chunk, for bt2 and bt3. [sloped 100, layered 40; of a cube its
    side]"""

    depth: int | None = None
    """Depth of a chunk, for cubes. [the longest sequence; on a GPU the side of the
    chunk, if it fits]"""


@part
class RunTriples:
    """The devices and a callback of a job of three sequences."""

    devices: Devices = None
    """JAX devices that share the work, by number, or all of them. [the first]"""

    progress: Progress = None
    """Called with (cells done, cells in all)."""


@part
class AlignTriples(RunTriples, TripleModel):
    """Options of ``align_triples``, beside its ``traceback``."""


@dataclass(frozen=True, kw_only=True)
@whole
class TripleOptions(RunTriples, PlanThree):
    """Every option of a function of three sequences, with its default."""


@cache
def field_texts(module: str) -> dict[tuple[str, str], str]:
    """The string below each field of the records of a module, by (class, field)."""
    about = vars(sys.modules[module])
    source = "".join(getlines(about["__file__"], about))
    texts, record = {}, ""
    for name, field, text in _FIELDS.findall(source):
        record = name or record
        if field:
            texts[record, field] = text.replace("\n    ", "\n")
    return texts


def shared(options: object, *parts: type, **others: Any) -> dict[str, Any]:
    """The values of the fields of some parts, by name, to make another record of.

    others : values of fields that ``options`` lacks, or has in another form
    """
    names = {name for each in parts for name in field_types(each)} - others.keys()
    return {name: getattr(options, name) for name in names} | others
