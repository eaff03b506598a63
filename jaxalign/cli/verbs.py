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
    Column,
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
BLOCKS = "FASTA, or an index made by `jaxalign index`; never held in memory whole."
CORPUS = "FASTA, an index made by `jaxalign index`, or a folder of such files."
STRUCTURES = "PDB, mmCIF or BinaryCIF, plain or compressed, or folders of them."
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
nearest test.fasta train.fasta --report nearest.html
family query.fasta uniprot.jaxdb -o query.a3m
family rna.fasta rnacentral.fasta --strand plus -o rna.a3m
family --pair chains.fasta uniprot.jaxdb -o complex/
index uniprot.fasta.gz -o uniprot.jaxdb
index uniprot.jaxdb --verify
structures folder -o chains.fasta
cluster proteins.fasta --min-identity 0.4 -o clusters.tsv
cluster proteins.fasta --min-identity 0.9 --method greedy --fasta some.fasta
cluster more.fasta --min-identity 0.4 --update clusters.json -o more.tsv
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
    """Align record k of A with record k of B, for every k.

    If one file has a single record, it is aligned with every record of the other. A
    terminal shows up to ten pairs as alignments, unless an option names another output.

    Parameters
    ----------
    a
        Queries: FASTA, plain, gz, bz2, xz or zst; - is standard input.
    b
        Targets.
    embeddings
        A and B are npz files with an array (residues, k) for each name. The score of
        two residues is the dot product of their vectors. Writes a tsv with CIGAR and
        partners. Needs --gap-open and --gap-extend.
    sequences
        With --embeddings: FASTA with every name of both npz files, for output formats
        that show letters.
    plot
        Draw a dot plot of a single pair with its path; png, svg or pdf. Needs
        matplotlib.
    profile
        A is a protein family: one HMMER3 model, or one alignment as a3m, Stockholm or
        FASTA. Each of its positions has its own scores; gaps cost --gap-open and
        --gap-extend, or in mode local what the transitions of a model say, if neither
        is named.
    resume
        Continue an interrupted run of very large pairs, from the state that it saved
        next to -o.
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
    """Align all pairs of records of SEQS, each pair once.

    With -o FOLDER/ the result is a folder of parquet parts. --resume completes it after
    an interruption, and several --shard runs may fill it together.

    Parameters
    ----------
    plot
        Draw a histogram of the identities; png, svg or pdf. Needs matplotlib.
    dendrogram
        Draw a tree of the set, by 1 - identity and average linkage (UPGMA).
    heat_map
        Draw the identities of all pairs of up to 2,000 sequences, in the order of the
        tree.
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
    """Find the records of DB that score best with each record of QUERY.

    Every score is computed exactly, and the best hits are aligned. --output score skips
    the alignments. The format m8 has BLAST's 12 columns. With -o FOLDER/ the result is
    a folder of parquet parts, which --resume completes after an interruption.

    Parameters
    ----------
    max_evalue
        Keep hits with at most this E-value, by published statistics, or by fitted ones
        if the scoring has none.
    identity
        What the number of identical pairs is divided by. [alignment: its columns]
    strand
        Strands of the queries to align, for nucleotides. [both with the default scoring
        in mode local, otherwise plus]
    profile
        QUERY is a protein family: one HMMER3 model, or one alignment as a3m, Stockholm
        or FASTA. Each of its positions has its own scores; gaps cost --gap-open and
        --gap-extend, or in mode local what the transitions of a model say, if neither
        is named.
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
    """Find the sequence of CORPUS that is most similar to each sequence of TEST.

    Every pair is compared or proved to be no nearer. The list has a row for every test
    sequence, however remote its nearest sequence is: name, nearest, identity, band, and
    the score, E-value and coverages of the best local alignment of the two. Of several
    equally near sequences, the first in CORPUS is listed. The number of test sequences
    in each band of identity is printed.

    Parameters
    ----------
    plot
        Draw a histogram of the identities to the nearest sequences. Needs matplotlib.
    report
        Write a report, an HTML page. It shows bands and identities, and needs no
        network.
    """


@takes(
    "jaxalign.cli.family:family",
    options.ComplexOptions,
    FileOptions,
    SummaryOptions,
    ResumeOptions,
    *COMMON,
)
def family(
    query: Query,
    database: Database,
    /,
    *,
    pair: Flag = False,
    format: Annotated[
        Literal["a3m", "stockholm", "hmm", "pssm"] | None, Parameter(group=OUTPUT)
    ] = None,
    plot: Picture = None,
) -> None:
    """Find the relatives of QUERY in DB by iterated search, and align them to QUERY.

    The first pass searches with the sequence, later ones with a profile of the hits,
    until no hit is new. Every score is computed; there is no prefilter. AlphaFold 3,
    Boltz and ColabFold read the a3m. Without relatives it has one sequence.

    Parameters
    ----------
    query
        FASTA of proteins or nucleotides, plain, gz, bz2, xz or zst; - is standard
        input. For several records the output is a folder with a file for each, which is
        written as soon as its passes are over.
    pair
        QUERY has the chains of a complex, or is a folder of such files. -o FOLDER/ gets
        inputs of AlphaFold 3, Boltz and ColabFold, with rows of proteins paired by
        taxon; RNA and DNA are known by their letters. From a folder each complex has a
        folder of its own.
    out
        Output file, or a folder/ of files; the suffix sets the format. [standard
        output, a3m]
    format
        Format of the output; hmm and pssm are the profile of the last pass. [the suffix
        of -o]
    plot
        Draw the rows by their identity to the query, and how many have a residue at
        each position; of several queries a folder/ of files. Needs matplotlib.
    """


@takes(
    "jaxalign.cli.machine:index",
    FileOptions,
    ScoringOptions,
    MessageOptions,
    hidden={"match", "mismatch", "gap_open", "gap_extend", "gap_style"},
)
def index(
    database: Annotated[Fasta, Parameter(name="DB", help=FASTA)],
    /,
    *,
    verify: Annotated[Flag, Parameter(group=OUTPUT)] = False,
) -> None:
    """Encode the records of DB into a file that opens in milliseconds.

    All verbs take the index in place of the FASTA file. It keeps names, and the taxa of
    headings (OX=, TaxID=) for family --pair. An interrupted run writes nothing and
    starts over.

    Parameters
    ----------
    preset
        A scoring whose letters are the alphabet. With foldseek the index keeps the
        states of DB_ss beside DB, too.
    matrix
        A matrix whose letters are the alphabet. [BLOSUM62; nucleotides none]
    alphabet
        Kind of sequence. auto: dna or rna if all letters are nucleotides and no matrix
        is named, otherwise the letters of the matrix.
    out
        File of the index. [DB.jaxdb]
    verify
        Check the checksums of an index, DB, and write nothing.
    """


@takes("jaxalign.cli.links:cluster", ListOptions, ResumeOptions, *LINKED)
def cluster(
    sequences: Seqs,
    /,
    *,
    min_identity: Fraction = None,
    method: Literal["components", "greedy", "complete", "average"] = "components",
    update: Annotated[str | None, FILE, Parameter(metavar="CLUSTERS.json")] = None,
    certificate: OutJson = None,
    fasta: OutFasta = None,
    plot: Picture = None,
) -> None:
    """Cluster the records of SEQS by exact identities.

    Two sequences are linked if their identity is at least --min-identity. The list has
    a row for each sequence: its name, cluster and representative.

    Parameters
    ----------
    min_identity
        The cut, 0 to 1: sequences with at least this identity are linked. It or
        --min-relative-score is needed.
    method
        What a cluster is. components: sequences connected by links. greedy: longest
        first, each sequence joins the first representative that it is linked to, as in
        CD-HIT. complete: all pairs of a cluster are linked. average: UPGMA.
    update
        Add to clusters, whose --certificate this is. SEQS has their sequences,
        unchanged, and new ones. Only pairs with a new one are compared. The clusters
        are those of all pairs, and old ones keep their numbers.
    certificate
        Write what --update needs beside the table of -o. It is the rule of a link, and
        SHA-256 of the sequences and of the table.
    fasta
        Write the representative of each cluster as FASTA.
    plot
        Draw the sizes of clusters; png, svg or pdf. Needs matplotlib.
    """


@takes("jaxalign.cli.links:dedup", FileOptions, ResumeOptions, *LINKED)
def dedup(
    sequences: Seqs,
    /,
    *,
    min_identity: Fraction = None,
    list_out: OutList = None,
) -> None:
    """Remove near-duplicates: sequences with at least --min-identity to a kept one.

    Sequences are taken from the longest to the shortest, and kept unless they are
    linked to a kept sequence, their representative. So no two kept sequences are
    linked, and each removed one is linked to its representative.

    Parameters
    ----------
    min_identity
        The cut, 0 to 1: sequences with at least this identity are linked. [0.9, none
        with --min-relative-score]
    out
        Kept sequences as FASTA, with their full headings. [standard output]
    list_out
        Write a table of all sequences: name, cluster, representative, identity.
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
    weights: Sheet = None,
    column: Column = None,
    pairs: Sheet = None,
    cold: Cold = "both",
    second: Second = "proteins",
    seed: int = 0,
    too_large: Literal["error", "keep", "remove"] = "error",
    fasta: Annotated[str | None, Parameter(metavar="FOLDER")] = None,
    certificate: OutJson = None,
) -> None:
    """Split the records of SEQS so that no two in different parts are linked.

    Two sequences are linked if their identity is at least --min-identity. Sequences
    that are connected by links stay together. The list has a row for each sequence: its
    name, part and component.

    Parameters
    ----------
    min_identity
        The cut, 0 to 1: sequences with at least this identity are linked. A pair across
        parts at exactly this identity is a leak.
    cuts
        In place of --min-identity: a split at each cut. All pairs are compared once,
        and the list has a column for each cut, such as part_0.3.
    parts
        Parts and their shares, such as train=0.8,test=0.2.
    folds
        In place of --parts: this many equal parts. They are fold1, fold2 and so on.
    labels
        A table of names and labels. Every part gets its share of each label; the shares
        are printed.
    unlabelled
        What to do with sequences without a label. They are refused, get a label of
        their own, or are left out.
    fixed
        An existing split to repair: names and parts. As few sequences as possible are
        moved, or with --too-large remove moved or removed. Sequences that the table
        lacks are placed. Shares are those of the table, unless --parts sets others.
    priority
        A table of names and numbers, for --too-large remove. The numbers are whole ones
        from 1, in the column priority or the second one. Sequences with larger
        numbers are kept first. Unlisted ones have 1.
    weights
        A table of names and numbers above 0. Shares of parts are those of their sums.
        The numbers are in the column weight or the second one; unlisted sequences have
        1. Shares of labels count sequences.
    column
        The column that is read. It is one of labels, parts or numbers in the table of
        --labels, --fixed, --priority or --weights, by default the one with a usual
        name, else the second.
    pairs
        A table of two names per row, such as interactions. Its pairs are split instead
        of the sequences, and the list has a row for each pair.
    cold
        How many sides of a pair must be new to other parts. both (C3): no protein of a
        pair is linked to one in another part; pairs between parts are removed. one
        (C2): each pair has a protein that is linked to none in an earlier part; with
        --second groups, its protein is linked to none in any other part. none (C1): no
        pair is in two parts.
    second
        The second column of --pairs: names of sequences, or groups, such as ligands.
    seed
        Seed of the search. Another seed may give another split.
    too_large
        What to do with a component that fits into no part. It is refused, the shares
        may differ, or sequences are removed, which the list puts into the part removed.
    fasta
        Write the FASTA of each part into this folder. The files are train.fasta and so
        on, with full headings.
    certificate
        Audit the split, and write a certificate.
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
    column: Column = None,
    verify: Annotated[str | None, FILE, Parameter(metavar="FILE.json")] = None,
    partial: Flag = False,
) -> None:
    """Compare every pair of sequences in different PARTS, exactly.

    The exit code is 0 if no pair is at --min-identity or above, 6 if one is, and 7 if a
    certificate does not match. Every record is compared, unless --partial allows some
    to be left out. The worst pairs are printed with their alignments; their identities
    are exact below the cut too. --json prints the certificate instead.

    Parameters
    ----------
    parts
        FASTA of each part, two or more files; with --split, one file of all sequences.
    min_identity
        The cut, 0 to 1: a pair across parts with at least this identity is a leak.
    split
        A table of names and parts, as written by jaxalign split or GraphPart. It must
        put every sequence into a part.
    pairs
        A table of two names and a part per row, as written by split --pairs. The rule
        of --cold is checked, for one file of sequences.
    cold
        How many sides of a pair must be new to other parts, as in split.
    second
        The second column of --pairs: names of sequences, or groups, such as ligands.
    column
        The column that has the parts, such as part_0.3 of split --cuts. By default the
        one with a usual name, else the second, with --pairs the third.
    verify
        Verify a certificate: repeat its audit and compare. PARTS are the files that the
        certificate names, unless you give others.
    out
        Write a certificate of the audit.
    partial
        Allow sequences that the table lists as removed or does not list. They are left
        out, and messages and certificate say how many.
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
    """Remove from TRAIN each sequence that is similar to any sequence of TEST.

    Every pair is compared exactly, so no kept sequence reaches the cut. The cut is one
    of --min-identity, --min-score and --max-evalue.

    Parameters
    ----------
    against
        FASTA of the test sequences; - is standard input.
    out
        Kept sequences as FASTA, with their full headings. [standard output, unless
        --json is given]
    list_out
        Write a table of removed sequences: name, nearest test sequence, identity, score
        or E-value.
    certificate
        Audit the kept sequences against TEST, and write a certificate, which jaxalign
        audit --verify verifies. Only with --min-identity.
    """


@takes(
    "jaxalign.cli.repertoire:repertoire",
    options.RepertoireOptions,
    FileOptions,
    SummaryOptions,
    ResumeOptions,
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
    """Find all pairs of receptors within a distance: TCRdist, Hamming, Levenshtein, NW.

    Equal receptors are compared once. An edge has the name of the first row of each
    receptor, and the distance; each pair is listed once.

    Parameters
    ----------
    receptors
        An AIRR table (tsv, csv or parquet with junction_aa, and v_call, locus and
        cell_id if needed), a table of contigs from 10x, or FASTA of CDR3; plain, gz,
        bz2, xz or zst; - is standard input.
    against
        Compare with these receptors instead of with each other.
    out
        Edges as .tsv, .csv or .parquet, or the matrix as .npz. [standard output, a tsv]
    list_out
        Write a table of all rows: name, receptor, count and clonotype cluster.
    part_rows
        Number of receptors whose edges are computed and written together.
    """


@takes(
    "jaxalign.cli.three:three",
    options.TripleOptions,
    FileOptions,
    ResumeOptions,
    *COMMON,
    traceback=Spelling(type=Literal[options.Traceback, "none"]),
)
def three(
    sequences: Annotated[Fasta, Parameter(name="ABC")],
    /,
    *,
    all: Annotated[Flag, Parameter(group=OUTPUT)] = False,
    format: Annotated[ThreeFormat, Parameter(group=OUTPUT)] = "pretty",
) -> None:
    """Align the three records of ABC, exactly.

    Parameters
    ----------
    sequences
        FASTA with three records, plain, gz, bz2, xz or zst; - is standard input.
    all
        Align records 1 to 3, 4 to 6 and so on, and write a table with one line per
        triple: tsv, csv or parquet, as the suffix of -o says.
    format
        Format of the output. pretty: three rows and their consensus, in blocks.
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
    """Compute the probability of every pair of residues, over all alignments.

    Prints the soft score, the expected identities and the alignment of maximum expected
    accuracy for the first record of A and the first record of B. One program computes
    the pair, so an interrupted run starts over.

    Parameters
    ----------
    a
        Query: FASTA, plain, gz, bz2, xz or zst; - is standard input.
    b
        Target.
    temperature
        Divide scores by this number; 2.89 suits scores in half bits, such as
        BLOSUM62's.
    threshold
        Leave pairs below this probability out of the alignment.
    forbid_adjacent_gaps
        Forbid an insertion next to a deletion, as biotite does.
    out
        npz file with posterior, score, entropy, names and alignment. The alignment is
        not printed if it has more than 2,000 columns.
    plot
        Draw the posterior; png, svg or pdf. Needs matplotlib.
    """


@takes("jaxalign.cli.machine:info", options.Tabular, ColumnOptions, *COMMON)
def info(
    *, plan: Annotated[str | None, FILE, Parameter(metavar="SEQS")] = None
) -> None:
    """Show versions, devices, memory, and the implementation that would run.

    Parameters
    ----------
    plan
        Also print the memory plan of `jaxalign all SEQS` with these options.
    """


@takes("jaxalign.cli.machine:structures", FileOptions, MessageOptions)
def structures(
    *paths: Annotated[str, FILE, Parameter(name="STRUCTURES", help=STRUCTURES)],
    unreadable: Literal["error", "remove"] = "error",
    processes: Annotated[int | None, Parameter(metavar="N")] = None,
) -> None:
    """Write amino acids and 3Di states of all protein chains as two FASTA files.

    -o set.fasta gets the amino acids and set_ss.fasta the states, in Foldseek's
    letters. A chain is a record, FILE_A. Headings count what is missing: gaps in the
    chain, residues other than the 20 amino acids, and residues without backbone, whose
    state is X. Of several models the first is read.

    Parameters
    ----------
    paths
        Structures, or folders of them: PDB, mmCIF or BinaryCIF, plain, gz, bz2, xz or
        zst, by their suffix.
    out
        FASTA of the amino acids; the states go to OUT_ss beside it.
    unreadable
        What to do with files that are damaged or have no protein chain. They are
        refused, or left out with a warning.
    processes
        Number of processes that read files. [one a core]
    """


@takes("jaxalign.cli.machine:warmup")
def warmup(
    *,
    device: Device = "auto",
    target: str | None = None,
    out: Annotated[str | None, Parameter(alias="-o")] = None,
    quiet: Annotated[Flag, Parameter(alias="-q")] = False,
) -> None:
    """Compile the programs of common jobs, and keep them for later processes.

    Covers jobs with proteins in every mode and output, and a search. Takes a minute or
    two on a CPU, and several on a GPU. `jaxalign info` says where programs are kept,
    and how many there are.

    Parameters
    ----------
    device
        gpu fails where there is none.
    target
        Compile for GPUs that this machine need not have, such as h100 or h100,b200.
    out
        With --target: the folder of the programs, a pack for JAXALIGN_PROGRAMS.
    quiet
        Only warnings and errors.
    """


@takes("jaxalign.cli.machine:selftest")
def selftest(
    *,
    seconds: Annotated[float, Parameter(validator=validators.Number(gte=0))] = 36,
) -> None:
    """Compare the GPU kernels with NumPy on this card, and print a line to report.

    Runs random jobs of every mode and output with kernels and NumPy until the time is
    over; the first job of each kind compiles. The kernels have been measured on few
    kinds of cards (`jaxalign info` names them), so please post the line from another
    one in the project's issues. The exit code is 1 if a result differs, and 5 if no
    kernel can run.

    Parameters
    ----------
    seconds
        Start no job after this time. The whole command takes up to 20 seconds more, to
        start JAX, finish its last jobs and measure the speed.
    """


@takes("jaxalign.cli.machine:matrices")
def matrices(name: str | None = None, /) -> None:
    """List the bundled substitution matrices, or print one in NCBI format.

    Parameters
    ----------
    name
        A bundled matrix, or a matrix file to read and check.
    """


@takes("jaxalign.cli.machine:demo")
def demo(
    *, files: Annotated[str | None, FILE, Parameter(metavar="FOLDER")] = None
) -> None:
    """Align 16 globins, all against all, and show a table and one alignment.

    Parameters
    ----------
    files
        Only copy the example files of the documentation into this folder.
    """
