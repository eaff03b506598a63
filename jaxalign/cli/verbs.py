"""The verbs of the command line: files, options of their own, and what each does.

The body of a verb is in the module that ``takes`` names; it gets the value of every
option in a ``Given``. Options that a function of Python has too come from its record.
"""

from typing import Annotated, Literal

from cyclopts import Parameter, validators

from jaxalign import options
from jaxalign.cli.arguments import (
    COMMON,
    FILE,
    LONG,
    OUTPUT,
    AuditOptions,
    CacheOptions,
    Cold,
    ColumnOptions,
    CorpusRunOptions,
    Device,
    Fasta,
    FileOptions,
    Flag,
    Fraction,
    HitOptions,
    ListOptions,
    MessageOptions,
    Picture,
    ResumeOptions,
    ScoringOptions,
    Second,
    Sheet,
    SummaryOptions,
    ThreeFormat,
)
from jaxalign.cli.derive import Spelling, takes

FASTA = "FASTA, plain, gz, bz2, xz or zst; - is standard input."
BLOCKS = "FASTA, read in blocks and never held whole, or what `jaxalign index` made."
CORPUS = "FASTA, what `jaxalign index` made, or a folder of such files; read in blocks."
Seqs = Annotated[Fasta, Parameter(name="SEQS", help=FASTA)]
Query = Annotated[Fasta, Parameter(name="QUERY", help=FASTA)]
Database = Annotated[Fasta, Parameter(name="DB", help=BLOCKS)]
Receptors = Annotated[Fasta, Parameter(name="CELLS")]
OutFasta = Annotated[str | None, FILE, Parameter(metavar="OUT.fasta")]
OutJson = Annotated[str | None, FILE, Parameter(metavar="OUT.json")]
OutList = Annotated[
    str | None, FILE, Parameter(name="--list", metavar="OUT.tsv", group=OUTPUT)
]
EXAMPLES = """
align a.fasta b.fasta --format pair
align reads.fasta gene.fasta --free-ends t5,t3 -o reads.sam
all proteins.fasta --output identity -o pairs.tsv
all proteins.fasta --min-identity 0.3 -o pairs/ --resume
three abc.fasta
three abc.fasta --format clustal -o abc.aln
soft a.fasta b.fasta --temperature 2.89
soft a.fasta b.fasta -o posterior.npz --plot posterior.png
search queries.fasta uniprot.fasta --max-evalue 1e-3 -o hits.m8
search family.hmm uniprot.jaxdb --profile --top 1000 -o hits.tsv
nearest test.fasta train.fasta -o nearest.tsv
nearest test.fasta train.fasta --link local --report nearest.html
family query.fasta uniprot.jaxdb -o query.a3m
family queries.fasta uniprot.jaxdb --iterations 1 -o families/
index uniprot.fasta.gz -o uniprot.jaxdb
index uniprot.jaxdb --verify
cluster proteins.fasta --min-identity 0.4 -o clusters.tsv
cluster proteins.fasta --min-identity 0.9 --method greedy --fasta some.fasta
dedup proteins.fasta -o kept.fasta
dedup proteins.fasta --min-identity 1 -o kept.fasta --list stands-for.tsv
split proteins.fasta --min-identity 0.3 --parts train=0.8,test=0.2 -o split.tsv
split proteins.fasta --min-identity 0.3 --folds 5 -o split.tsv --fasta folds/
audit train.fasta test.fasta --min-identity 0.3
audit --verify certificate.json
purge train.fasta --against test.fasta --min-identity 0.3 -o clean.fasta
purge train.fasta --against test.fasta --max-evalue 1e-3 --list removed.tsv
repertoire cells.tsv -o edges.tsv
repertoire cells.tsv --against known.tsv --metric hamming --cutoff 1
info
info --plan proteins.fasta
warmup
warmup --target h100 -o programs/
selftest
selftest --seconds 60
matrices
matrices BLOSUM62
demo
demo --files examples
"""
LINKED = (options.Linked, SummaryOptions, *COMMON)


@takes("jaxalign.cli.pairs:align", options.Pairs, ColumnOptions, *COMMON)
def align(
    a: Fasta,
    b: Fasta,
    /,
    *,
    embeddings: Flag = False,
    sequences: Annotated[str | None, FILE] = None,
    plot: Picture = None,
    profile: Flag = False,
    resume: Annotated[Flag, Parameter(group=LONG)] = False,
) -> None:
    """Align the records of A with those of B: first with first, second with second.

    Where one file has a single record, it is aligned with every record of the other.
    A terminal shows up to ten pairs as alignments, unless an option says what it gets.

    Parameters
    ----------
    a
        Queries: FASTA, plain, gz, bz2, xz or zst; - is standard input.
    b
        Targets.
    embeddings
        A and B are npz files with an array (residues, k) for each name; a pair of
        residues scores the product of their vectors. Writes a tsv with CIGAR and
        partners; needs --gap-open and --gap-extend.
    sequences
        FASTA of proteins with every name of both npz files, for the formats of -o and
        --format that have letters.
    plot
        Dot plot of a single pair with its path; the suffix, png, svg or pdf, is the
        format. Computes paths. Needs matplotlib.
    profile
        A is a family of proteins: one HMMER3 model, or one alignment as a3m, Stockholm
        or FASTA. Its positions have scores of their own, and gaps the costs of
        --gap-open and --gap-extend.
    resume
        Complete an interrupted run: the state of very large pairs is in a file beside
        -o.
    """


@takes(
    "jaxalign.cli.pairs:all_pairs",
    options.Stream,
    ColumnOptions,
    ResumeOptions,
    *COMMON,
)
def all_pairs(
    sequences: Seqs,
    /,
    *,
    plot: Picture = None,
    dendrogram: Picture = None,
    heat_map: Picture = None,
) -> None:
    """Align all pairs of the records of SEQS, each pair once.

    With -o FOLDER/ the result is a folder of parquet parts, which --resume completes
    after an interruption, and which several --shard runs may fill together.

    Parameters
    ----------
    plot
        Histogram of the identities; the suffix, png, svg or pdf, is the format. Needs
        matplotlib.
    dendrogram
        Tree of the set by 1 - identity and average linkage (UPGMA).
    heat_map
        Identities of all pairs of at most 2,000 sequences, in the order of the tree.
    """


@takes(
    "jaxalign.cli.search:search",
    options.SearchOptions,
    HitOptions,
    options.Tabular,
    ResumeOptions,
    *COMMON,
)
def search(
    query: Query,
    database: Database,
    /,
    *,
    max_evalue: Annotated[float | None, Parameter(metavar="E")] = None,
    profile: Flag = False,
) -> None:
    """Align every record of QUERY with every record of DB, and show the best.

    Every score is computed, none is estimated; hits are aligned again with their path.
    The mode is local unless another is asked for, and --output score leaves the paths
    out. m8 is BLAST's 12 columns. With -o FOLDER/ the result is a folder of parquet
    parts, some queries each, which --resume completes after an interruption.

    Parameters
    ----------
    max_evalue
        Keep hits of at most this E-value, by published statistics, or where the
        scoring has none by fitted ones.
    identity
        What identities are divided by. [alignment: its columns]
    strand
        Of nucleotides: which strands of the queries are aligned. [both with the usual
        scoring in mode local, else plus]
    profile
        QUERY is a family of proteins: one HMMER3 model, or one alignment as a3m,
        Stockholm or FASTA. Its positions have scores of their own, and gaps the
        costs of --gap-open and --gap-extend.
    """


@takes(
    "jaxalign.cli.corpus:nearest",
    options.NearestOptions,
    ListOptions,
    SummaryOptions,
    CorpusRunOptions,
    *COMMON,
)
def nearest(
    tests: Annotated[Fasta, Parameter(name="TEST", help=FASTA)],
    corpus: Annotated[Fasta, Parameter(name="CORPUS", help=CORPUS)],
    /,
    *,
    plot: Picture = None,
    report: Annotated[
        str | None, FILE, Parameter(metavar="OUT.html", group=OUTPUT)
    ] = None,
) -> None:
    """Find the sequence of CORPUS that is nearest to each sequence of TEST, exactly.

    The list has a row for every test sequence, however far its nearest is: name,
    nearest, identity, band, and score, E-value and coverages of the best local
    alignment of the two. Of equals the first of CORPUS is named. How many test
    sequences are in each band of identity is printed.

    Parameters
    ----------
    plot
        Histogram of the identities of the nearest; needs matplotlib.
    report
        A page for people: bands, identities. One file, which needs no network.
    """


@takes(
    "jaxalign.cli.family:family",
    options.FamilyOptions,
    FileOptions,
    SummaryOptions,
    *COMMON,
)
def family(
    query: Query,
    database: Database,
    /,
    *,
    format: Annotated[
        Literal["a3m", "stockholm", "hmm", "pssm"] | None, Parameter(group=OUTPUT)
    ] = None,
) -> None:
    """Find the relatives of QUERY in DB by iterated search, and align them to it.

    The first pass searches by the sequence, the next ones by a profile of the hits,
    until no hit is new. Every score is computed, nothing is prefiltered. The a3m is
    what AlphaFold 3, Boltz and ColabFold read. Without relatives it has one sequence.

    Parameters
    ----------
    query
        FASTA of proteins, plain, gz, bz2, xz or zst; - is standard input. Of several
        records the output is a folder, with a file for each.
    out
        Output file, or a folder/ of files; its suffix is the format. Standard output is
        a3m.
    format
        In place of the suffix. hmm and pssm are the profile of the last pass.
    """


@takes(
    "jaxalign.cli.machine:index",
    FileOptions,
    ScoringOptions,
    MessageOptions,
    hidden={"preset", "match", "mismatch", "gap_open", "gap_extend", "gap_style"},
)
def index(
    database: Annotated[Fasta, Parameter(name="DB", help=FASTA)],
    /,
    *,
    verify: Annotated[Flag, Parameter(group=OUTPUT)] = False,
) -> None:
    """Encode the records of DB into a file that opens in milliseconds.

    Search and all take the index in place of the FASTA file.

    Parameters
    ----------
    matrix
        One whose letters are the alphabet, if they are others. [BLOSUM62; nucleotides
        none]
    alphabet
        auto: the letters of the matrix, or dna or rna where all letters say so and no
        matrix is named.
    out
        The index. [DB.jaxdb]
    verify
        Read an index, DB, and compare its checksums; write nothing.
    """


@takes("jaxalign.cli.links:cluster", ListOptions, ResumeOptions, *LINKED)
def cluster(
    sequences: Seqs,
    /,
    *,
    min_identity: Annotated[float, Parameter(metavar="F")],
    method: Literal["components", "greedy", "complete", "average"] = "components",
    fasta: OutFasta = None,
    plot: Picture = None,
) -> None:
    """Cluster the records of SEQS by exact identities.

    Two sequences are linked where their identity is at least --min-identity. The list
    has a row a sequence: its name, cluster and representative.

    Parameters
    ----------
    min_identity
        The cut, 0 to 1.
    method
        components: connected by links. greedy: longest first, each joins the first
        representative that it is linked to, as CD-HIT means it. complete: all pairs of
        a cluster are linked. average: UPGMA.
    fasta
        FASTA of one sequence a cluster, its representative.
    plot
        The sizes of clusters as bars, png, svg or pdf. Needs matplotlib.
    """


@takes("jaxalign.cli.links:dedup", FileOptions, ResumeOptions, *LINKED)
def dedup(
    sequences: Seqs,
    /,
    *,
    min_identity: Annotated[float, Parameter(metavar="F")] = 0.9,
    list_out: OutList = None,
) -> None:
    """Keep one sequence of those whose identity is at least --min-identity.

    Sequences are taken from the longest to the shortest. One that is linked to a
    sequence that was kept is left out, any other one is kept. So no two that stay are
    linked, and each that goes is linked to the one that stands for it.

    Parameters
    ----------
    min_identity
        The cut, 0 to 1.
    out
        FASTA of what stays, headings whole. [standard output]
    list_out
        Who stands for whom: name, cluster, representative, identity.
    """


@takes(
    "jaxalign.cli.split:split",
    ListOptions,
    options.HomologyOptions,
    AuditOptions,
    ResumeOptions,
    *LINKED,
)
def split(
    sequences: Seqs,
    /,
    *,
    min_identity: Fraction = None,
    cuts: Annotated[str | None, Parameter(metavar="F,F,F")] = None,
    parts: Annotated[str | None, Parameter(metavar="A=F,B=F")] = None,
    folds: Annotated[int | None, Parameter(metavar="K")] = None,
    labels: Sheet = None,
    unlabelled: Literal["error", "label", "remove"] = "error",
    fixed: Sheet = None,
    priority: Sheet = None,
    pairs: Sheet = None,
    cold: Cold = "both",
    second: Second = "proteins",
    seed: int = 0,
    too_large: Literal["error", "keep", "remove"] = "error",
    fasta: Annotated[str | None, Parameter(metavar="FOLDER")] = None,
    certificate: OutJson = None,
) -> None:
    """Split the records of SEQS so that no two of different parts are alike.

    Alike are two whose identity is --min-identity or more. Sequences that are connected
    by such pairs stay together. The list has a row a sequence: its name, part and
    component.

    Parameters
    ----------
    min_identity
        The cut, 0 to 1. A pair across parts at exactly this identity is a leak.
    cuts
        In place of --min-identity: a split at each cut. All pairs are compared once,
        and the list has a column for each, as part_0.3.
    parts
        Parts and their shares, as train=0.8,test=0.2.
    folds
        In place of --parts: so many equal ones, as fold1.
    labels
        A table of names and labels; every part gets its share of each label. The
        shares are printed.
    unlabelled
        Of sequences that the table lacks. They are refused, have a label of their own,
        or are left out.
    fixed
        A table of names and parts, an existing split that is repaired. As few
        sequences as can be move, or with --too-large remove are moved or taken out.
        Sequences that it lacks are placed. Shares are its own, unless --parts says
        others.
    priority
        With --too-large remove: a table of names and numbers. They are whole ones from
        1 on, in the column priority or the second. What has more stays. Others have 1.
    pairs
        A table of two names a row, as interactions, which are split in place of the
        sequences. The list has a row a pair.
    cold
        What pairs of different parts share. both (C3): no protein of a pair is near one
        of another part; pairs between parts are removed. one (C2): a pair has a protein
        that no earlier part is near to, or with --second groups its protein is near
        none of any other part. none (C1): no pair is in two parts.
    second
        The second column of --pairs: names of sequences too, or groups, as ligands.
    seed
        Another seed may give another split.
    too_large
        Where a component fits into no part. It is refused, shares may differ, or
        sequences are taken out, which the list calls removed.
    fasta
        A folder for the FASTA of each part. train.fasta and so on, headings whole.
    certificate
        Audit the split, and write what was found.
    """


@takes(
    "jaxalign.cli.audit:audit",
    FileOptions,
    options.HomologyOptions,
    AuditOptions,
    ResumeOptions,
    *LINKED,
)
def audit(
    *parts: Annotated[Fasta, Parameter(name="PARTS")],
    min_identity: Fraction = None,
    split: Sheet = None,
    pairs: Sheet = None,
    cold: Cold = "both",
    second: Second = "proteins",
    column: Annotated[str | None, Parameter(metavar="NAME")] = None,
    verify: Annotated[str | None, FILE, Parameter(metavar="FILE.json")] = None,
    partial: Flag = False,
) -> None:
    """Compare every pair of sequences of different PARTS, exactly.

    The exit code is 0 where no pair is at --min-identity or above, 6 where one is, and
    7 where a certificate is not what it says. Every record is compared, unless
    --partial allows to leave some out. The worst pairs are printed with their
    alignments; they are exact below the cut too. With --json the certificate is
    printed in their place.

    Parameters
    ----------
    parts
        FASTA of each part, two or more; with --split one file that holds all.
    min_identity
        The cut, 0 to 1. A pair at exactly this identity is a leak.
    split
        A table of names and parts, as jaxalign split and GraphPart write it. It has to
        put every sequence into a part.
    pairs
        A table of two names and a part a row, as split --pairs writes it: its rule is
        checked, of --cold, in one file of sequences.
    cold
        What pairs of different parts may share, as of split.
    second
        The second column of --pairs: names of sequences too, or groups, as ligands.
    column
        The column of the table that has the parts, as part_0.3 of split --cuts.
    verify
        Verify a certificate: do its audit again and compare. PARTS are the files that
        it names, unless others are given.
    out
        Write a certificate of this audit.
    partial
        Leave out sequences that the table calls removed, or does not have: the messages
        and the certificate say how many.
    """


@takes(
    "jaxalign.cli.corpus:purge",
    options.PurgeOptions,
    FileOptions,
    SummaryOptions,
    CorpusRunOptions,
    *COMMON,
)
def purge(
    train: Annotated[Fasta, Parameter(name="TRAIN", help=CORPUS)],
    /,
    *,
    against: Annotated[str, FILE, Parameter(metavar="TEST")],
    list_out: OutList = None,
    certificate: OutJson = None,
) -> None:
    """Take out of TRAIN each sequence that is near to any sequence of TEST.

    Every pair is compared, exactly: none that stays is at the cut or beyond. The cut is
    one of --min-identity, --min-score and --max-evalue.

    Parameters
    ----------
    against
        FASTA of the test sequences; - is standard input.
    out
        FASTA of what stays, headings whole. [standard output, unless --json takes it]
    list_out
        Who goes: name, the nearest test sequence, identity, score or E-value.
    certificate
        Audit what stays against TEST, and write what was compared and found; jaxalign
        audit --verify does it again. Of a cut by --min-identity.
    """


@takes(
    "jaxalign.cli.repertoire:repertoire",
    options.RepertoireOptions,
    FileOptions,
    SummaryOptions,
    CacheOptions,
    MessageOptions,
    hidden={"offset", "cap", "devices"},
    scoring=Spelling("matrix", metavar="NAME"),
)
def repertoire(
    receptors: Receptors,
    /,
    *,
    against: Annotated[str | None, FILE, Parameter(metavar="CELLS")] = None,
    list_out: OutList = None,
    part_rows: Annotated[int, Parameter(metavar="N", group=LONG)] = 2**17,
) -> None:
    """All pairs of receptors within a distance: TCRdist, Hamming, Levenshtein, NW.

    Equal receptors are compared once. An edge has the names of the first rows of both,
    and the distance; each pair stands once.

    Parameters
    ----------
    receptors
        An AIRR table (tsv, csv or parquet with junction_aa; v_call, locus and cell_id
        where they are needed), a table of contigs of 10x, or FASTA of CDR3, plain, gz,
        bz2, xz or zst; - is standard input.
    against
        Compare with these receptors instead of with each other.
    out
        Edges as .tsv, .csv or .parquet, or the matrix as .npz. [standard output, a tsv]
    list_out
        Each row's name, receptor, count and clonotype cluster.
    part_rows
        Receptors whose edges are found, and written, together.
    """


@takes(
    "jaxalign.cli.three:three",
    options.TripleOptions,
    FileOptions,
    *COMMON,
    traceback=Spelling(type=Literal[options.Traceback, "none"]),
)
def three(
    sequences: Annotated[Fasta, Parameter(name="ABC")],
    /,
    *,
    format: Annotated[ThreeFormat, Parameter(group=OUTPUT)] = "pretty",
) -> None:
    """Align the three records of ABC with each other, exactly.

    Parameters
    ----------
    sequences
        FASTA with three records, plain, gz, bz2, xz or zst; - is standard input.
    format
        pretty: three rows and their consensus, in blocks.
    """


@takes(
    "jaxalign.cli.soft:soft",
    options.AlignedEnds,
    FileOptions,
    ScoringOptions,
    MessageOptions,
)
def soft(
    a: Fasta,
    b: Fasta,
    /,
    *,
    temperature: float = 1.0,
    threshold: float = 0.0,
    forbid_adjacent_gaps: Flag = False,
    plot: Picture = None,
) -> None:
    """Probability of every pair of residues, over all alignments of two sequences.

    Prints the soft score, the expected identities and the alignment of maximum
    expected accuracy of the first record of A and the first of B.

    Parameters
    ----------
    a
        Query: FASTA, plain, gz, bz2, xz or zst; - is standard input.
    b
        Target.
    temperature
        Scores are divided by it; 2.89 takes half bits such as BLOSUM62's as they are.
    threshold
        Pairs below this probability never pay in the alignment.
    forbid_adjacent_gaps
        No insertion next to a deletion, as in biotite.
    out
        npz file: posterior, score, entropy, names, and the alignment, which is not
        printed where it has more than 2,000 columns.
    plot
        Picture of the posterior; its suffix is the format. Needs matplotlib.
    """


@takes("jaxalign.cli.machine:info", options.Tabular, ColumnOptions, *COMMON)
def info(
    *, plan: Annotated[str | None, FILE, Parameter(metavar="SEQS")] = None
) -> None:
    """Show versions, devices, the implementation that would run, and memory.

    Parameters
    ----------
    plan
        Also print the memory plan of `jaxalign all SEQS` with these options.
    """


@takes("jaxalign.cli.machine:warmup")
def warmup(
    *,
    device: Device = "auto",
    target: str | None = None,
    out: Annotated[str | None, Parameter(alias="-o")] = None,
    quiet: Annotated[Flag, Parameter(alias="-q")] = False,
) -> None:
    """Compile the programs of usual jobs, and keep them for later processes.

    Jobs of proteins in every mode and output, and a search: a minute on a CPU, a few on
    a GPU. `jaxalign info` says where programs are kept, and how many there are.

    Parameters
    ----------
    device
        gpu fails where there is none.
    target
        Compile for GPUs that need not be here, such as h100 or h100,b200.
    out
        Folder of the programs for these: a pack, for JAXALIGN_PROGRAMS.
    quiet
        Only warnings and errors.
    """


@takes("jaxalign.cli.machine:selftest")
def selftest(
    *,
    seconds: Annotated[float, Parameter(validator=validators.Number(gte=0))] = 36,
) -> None:
    """Compare the GPU kernels with NumPy on this card, and print a line to send.

    Random jobs of every mode and output run by both until the time is over; the first
    of each kind compiles. The kernels are measured on a few kinds of cards only
    (`jaxalign info` says on which): a line from another one is welcome at the project's
    issues. Ends with code 1 where a result differs, and with 5 where no kernels run.

    Parameters
    ----------
    seconds
        No job begins later. The whole command takes up to 20 seconds more: it starts
        JAX, ends its last jobs, and measures the speed.
    """


@takes("jaxalign.cli.machine:matrices")
def matrices(name: str | None = None, /) -> None:
    """List the bundled substitution matrices, or print one in NCBI format.

    Parameters
    ----------
    name
        A bundled matrix, or a matrix file to be read and checked.
    """


@takes("jaxalign.cli.machine:demo")
def demo(
    *, files: Annotated[str | None, FILE, Parameter(metavar="FOLDER")] = None
) -> None:
    """Align 16 globins, all against all; show a table and one alignment.

    Parameters
    ----------
    files
        Copy the example files of the documentation into this folder, and align nothing.
    """
