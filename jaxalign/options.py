"""Every option of a public function: its type, its default and what it means, once.

A function takes the fields of one record, or of a part of it: signatures come from here
(``signatures``), types for checkers (``keywords``, generated), and the arguments of the
command line (``cli.derive``), whose ``--help`` prints the texts below. Nothing heavy is
imported, so that this help is as fast as can be.

Parameters
----------
query, target : str, (name, str), Path, uint8 codes, biotite or Biopython sequence
    See ``jaxalign.inputs``; a file has one record.
sequences, queries, targets, tests : path, mapping, iterable, Sequences or flat arrays
    A file (FASTA or an index), names to sequences, sequences as ``align`` takes them,
    or ``(codes, offsets)``; see ``jaxalign.inputs``. A str is a path.
scoring : Scoring, or the name or file of a matrix, optional
    By default BLOSUM62, 11/1.
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
By = Literal["identity", "score", "bits"]
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
    """semiglobal frees all four end gaps."""

    free_ends: Collection[FreeEnd] | None = None
    """Ends that may hang over free of cost, with mode global."""


@part
class Host:
    """Memory and threads of the host."""

    memory_budget: int | str | None = None
    """Bytes to plan with. [half of what is available]"""

    threads: int | None = None
    """Host threads, one window each. [all cores]"""


@part
class Execution(Host):
    """The implementation and the devices of a job of two sequences."""

    implementation: Implementation | None = None
    """Run this one or fail. [the fastest that can run]"""

    devices: Devices = None
    """JAX devices, by number, or all; idle ones take the next window. [the first]"""


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
    """Whose length identical pairs are divided by. In mode global, shorter needs
    min_length_ratio, or short sequences are linked to whatever is long. [the link's]"""

    min_length_ratio: float | None = None
    """Compare only pairs whose shorter length is at least this share of the longer, 0
    to 1."""

    filter: bool = True
    """Leave out pairs that provably cannot pass; results are the same without."""


@part
class Nucleotides:
    """Options of pairs of nucleotides."""

    strand: Strand | None = None
    """Of nucleotides: which strand of the queries is aligned, or of both the one that
    scores more. The usual one is plus."""


@part
class Meshed(Execution, AlignedEnds):
    """Options of every function of two sequences."""

    mesh: Mesh | None = None
    """One program over all devices of a mesh, a window on each."""


@part
class Align(Nucleotides, Watch, Meshed):
    """Options of ``align``."""


@part
class Windowed(Meshed):
    """Options of functions of many pairs."""

    window: int | None = None
    """Queries and targets of a window at most."""


@part
class Matrix(Watch, Windowed):
    """Options of ``scores_matrix`` and ``distance_matrix``."""


@part
class Tabular(Windowed):
    """Options of functions whose pairs are rows of a table."""

    output: Output = "stats"
    """What to compute; formats with paths raise it to alignment."""

    min_score: float | None = None
    """Keep pairs with at least this score."""

    min_identity: float | None = None
    """Keep pairs with at least this identity, 0 to 1; the summary counts the rest."""

    identity: Identity | None = None
    """What identities are divided by. [alignment: its columns; with output identity
    longer, or shorter where ends may hang over]"""

    min_cov: float | None = None
    """Keep pairs with at least this share of the sequences in the alignment, 0 to 1."""

    coverage: Coverage = "both"
    """Whose share min_cov is about (columns qcov and tcov)."""

    min_length_ratio: float | None = None
    """Keep pairs whose shorter length is at least this share of the longer, 0 to 1."""

    filter: bool = True
    """Leave out pairs that provably cannot pass min_identity."""


@part
class Pairs(Nucleotides, Watch, Tabular):
    """Options of ``align_pairs``."""


@part
class OneSet(Tabular):
    """Options of functions of all pairs of a set."""

    include_self: bool = False
    """Also every record with itself."""

    part_rows: int | None = None
    """Rows of a part at most, unless a single query has more. [4194304, less where
    all are few]"""


@part
class All(Watch, OneSet):
    """Options of ``align_all``."""

    cluster: str | None = None
    """Compute on a Ray cluster; auto is the one this machine belongs to."""


@part
class Parts:
    """Options of results that come part by part."""

    skip: Collection[int] = ()
    """Numbers of parts that are not computed."""

    shard: tuple[int, int] | None = None
    """Only the k-th of n shares of the parts, from 1."""


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
    """Count all residues of a pair of equal texts as identical, wildcards too, and keep
    its row whatever the filters; of verbs that say duplicate, leak or nearest."""


@part
class FileLetters:
    """How the letters of files are read."""

    unknown: UnknownLetters = "error"
    """X reads U, O, J as the wildcard; mask reads every unknown letter so."""

    strip_stop: bool = False
    """Take a stop, *, off the end of each sequence of a file."""

    names: RepeatedNames = "error"
    """number: of a name that comes again in a file, make NAME_2, NAME_3 and so on."""


@part
class CorpusScan(FileLetters, Execution):
    """Options of functions that read a database block by block."""

    progress: SearchProgress = None
    """Called with (cells done, cells in all or None)."""


@part
class ReportedHits:
    """The hits of a search that are reported."""

    top: int = 300
    """Hits of a query at most, the best first."""

    align_top: bool = True
    """Align the hits; without, they have scores alone."""

    statistics: Statistics = "published"
    """Of bits and E-values: published in NCBI's table, or fitted to the scores of each
    query with a sample of the database."""


@part
class DatabaseSearch(CorpusScan, Nucleotides, ReportedHits, AlignedEnds):
    """Options of ``search``."""

    mode: Mode = "local"
    """semiglobal frees all four end gaps."""

    window: int | None = None
    """Queries and targets of a window at most."""


@dataclass(frozen=True, kw_only=True)
@whole
class SearchOptions(Parts, DatabaseSearch):
    """Every option of a search, with its default."""

    part_rows: int | None = None
    """Rows of a part at most, unless a single query has more. [4194304, less where
    all are few]"""


@dataclass(frozen=True, kw_only=True)
@whole
class FamilyOptions(CorpusScan):
    """Every option of an iterated search, with its default."""

    iterations: int = 3
    """Passes at most; 1 searches by the sequence alone."""

    max_evalue: float = 1e-3
    """Hits up to it are written."""

    include: float = 1e-2
    """Hits up to it are in the next profile."""

    include_cov: float = 0.3
    """Hits in the next profile cover this share of the query or more, 0 to 1."""

    max_sequences: int = 10_000
    """Hits of a pass at most, the best."""

    min_cov: float = 0.0
    """At least this share of the query is covered, 0 to 1."""

    min_query_identity: float = 0.0
    """At least this share of the residues of a row is the query's, 0 to 1."""

    max_identity: float = 1.0
    """Of two rows that are more alike, the shorter one goes, 0 to 1."""

    correct_composition: bool = True
    """Take off the score that the composition of a hit explains."""

    @property
    def largest_evalue(self) -> float:
        """The largest E-value of a hit that is reported or included."""
        return max(self.max_evalue, self.include)


@part
class AsLinked:
    """A link of two sequences, in a word."""

    link: Link | None = None
    """whole: alike from end to end, over the longer length. local: identical residues
    of the best local alignment over the shorter length, if its score is not one of
    chance; it sees fragments and shared domains. [local, unless --mode, --identity or
    --free-ends is given; of nearest and purge whole]"""


@part
class Linked(AsLinked, Watch, Measure, Execution, AlignedEnds):
    """Options of functions of linked sequences: what a link is, and what computes."""

    mode: Mode | None = None
    """semiglobal frees all four end gaps. [the mode of the link]"""

    min_score: float | None = None
    """Link only pairs whose best alignment scores so much or more. [with --link local:
    the score of E = 0.001 in a search of the set]"""


@dataclass(frozen=True, kw_only=True)
@whole
class HomologyOptions(Linked):
    """Every option of a function of linked sequences, with its default."""

    worst: int = 10
    """How many of the worst pairs are shown, with their alignments."""

    full_histogram: bool = False
    """Align all pairs for the pictures, also those provably below the cut."""


@dataclass(frozen=True, kw_only=True)
@whole
class NearestOptions(AsLinked, Measure, CorpusScan, AlignedEnds):
    """Every option of ``nearest``, with its default."""

    min_score: float | None = None
    """By identity: only sequences are near whose best alignment scores so much or more.
    [with --link local: the score of E = 0.001 in a search of the test set]"""

    by: By = "identity"
    """The largest identity, or the best local alignment."""

    top: int = 1
    """So many of the nearest, with their rank."""

    bands: Sequence[float] = (0.3, 0.5, 0.7, 0.9)
    """Edges of the bands of identity, from 0 to 1."""


@dataclass(frozen=True, kw_only=True)
@whole
class PurgeOptions(AsLinked, Measure, CorpusScan):
    """Every option of ``purge``, with its default."""

    mode: Mode | None = None
    """semiglobal frees all four end gaps."""

    free_ends: Collection[FreeEnd] | None = None
    """Ends that may hang over free of cost, with mode global."""

    min_identity: float | None = None
    """The cut, 0 to 1: a sequence goes that has this identity or more."""

    min_score: float | None = None
    """Alone, the cut: the best local alignment has this score or more. Beside
    min_identity, what a pair has to score as well. [with --link local: the score of E =
    0.001 in a search of the test set]"""

    max_evalue: float | None = None
    """In place of both: the best local alignment has this E-value or less, in a search
    of all the training set."""

    min_cov: float | None = None
    """Only alignments count with at least this share of both sequences, in mode local
    or with free ends."""


@dataclass(frozen=True, kw_only=True)
@whole
class RepertoireOptions(Host):
    """Every option of a repertoire graph, with its default; None is a metric's own."""

    metric: Metric = "tcrdist"
    """alignment: linear Needleman-Wunsch, min(S(a,a), S(b,b)) - S(a,b)."""

    cutoff: int | None = None
    """The largest distance of an edge. [20; alignment 10; hamming 2; levenshtein 2]"""

    scoring: ScoringLike = None
    """A bundled matrix or a file, of tcrdist and alignment. [BLOSUM62]"""

    weight: int | None = None
    """Of tcrdist: times the distances of letters. [3]"""

    gap_penalty: int | None = None
    """Of tcrdist and alignment: each letter more. [4]"""

    ntrim: int | None = None
    """Of tcrdist: letters at the start that do not count. [3]"""

    ctrim: int | None = None
    """Of tcrdist: letters at the end that do not count. [2]"""

    fixed_gap: bool | None = None
    """Of tcrdist: the gap is at a fixed place, not at the best one. [True]"""

    offset: int | None = None
    """Of tcrdist: letters that score S have the distance min(cap, offset - S). [4]"""

    cap: int | None = None
    """Of tcrdist: the largest distance of two letters. [4]"""

    chains: Chains | None = None
    """One arm of a table, or both of each cell: their sum, both within the cutoff, or
    either. [the only arm]"""

    v_distances: Any = None
    """A square table of V genes, whose distances are added."""

    v_loops: Any = None
    """A table of V genes and their loops, whose TCRdist is added."""

    bad: Bad = "error"
    """Rows without a distance: stop, keep them without edges, or leave them out."""

    devices: Any = None
    """GPUs that share the work. [the first]"""


@part
class TripleModel:
    """Options of every function of three sequences."""

    gap_model: GapModel = "quasi-natural"
    """quasi-natural and natural are affine; in quasi-natural a column that has gaps in
    both rows of a pair cuts that pair's gap, at half of the work. linear needs
    gap_open and gap_extend to be equal."""

    mode: Mode = "global"
    """semiglobal frees the end gaps of every pair."""

    memory_budget: int | str | None = None
    """Bytes to plan with. [half of what is available; of a GPU most]"""

    implementation: TripleImplementation | None = None
    """What fills the table, and nothing else. [pallas where it can, else the others]"""


@part
class PlanThree(TripleModel):
    """Options of ``plan_three``."""

    schedule: Schedule = "auto"
    """The order of the cells: auto is layered on a CPU, the kernels' or sloped on a
    GPU."""

    traceback: Traceback | None = "auto"
    """auto stores what fits the budget, else splits; none computes the score only."""

    chunk: int | None = None
    """Side of a chunk, for bt1 to bt3. [31 sloped, 47 layered]"""

    height: int | None = None
    """Height of a sub-chunk, for bt2 and bt3. [100 sloped, 40 layered; of a cube S]"""

    depth: int | None = None
    """Depth of a chunk, for cubes. [the longest sequence's; on a GPU S, if it fits]"""


@part
class WatchTriples:
    """A callback of a job of three sequences."""

    progress: Progress = None
    """Called with (cells done, cells in all)."""


@part
class AlignTriples(WatchTriples, TripleModel):
    """Options of ``align_triples``, beside its ``traceback``."""


@dataclass(frozen=True, kw_only=True)
@whole
class TripleOptions(WatchTriples, PlanThree):
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
