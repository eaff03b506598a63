# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Search for families: an iterated, exhaustive search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from jaxalign import inputs
from jaxalign.database.api import in_memory, read_blocks
from jaxalign.errors import InputError, UsageError
from jaxalign.family import engine, pairing
from jaxalign.family.engine import SavedState, Search, Source
from jaxalign.family.options import check
from jaxalign.family.pairing import Chains, ComplexAlignment
from jaxalign.family.result import FamilyAlignment, format_of
from jaxalign.inputs import SetLike
from jaxalign.keywords import ComplexKeywords, FamilyKeywords
from jaxalign.model.alphabet import NUCLEIC, Sequences, reading_of
from jaxalign.model.scoring import Scoring, ScoringLike, as_scoring
from jaxalign.model.source import is_stream, label, reads_again
from jaxalign.model.strands import PLUS, strands_of
from jaxalign.options import ComplexOptions, FamilyOptions
from jaxalign.signatures import with_options


@with_options(FamilyOptions)
def search_family(
    queries: SetLike,
    database: SetLike,
    scoring: ScoringLike = None,
    **options: Unpack[FamilyKeywords],
) -> list[FamilyAlignment]:
    """Find the relatives of each query in a database, and align them to it.

    The first pass searches with the sequence, the next ones with a profile of the hits,
    until a pass includes the same hits as the one before. Every score of every pass is
    computed. E-values are fitted to the scores of that query or profile with this
    database (``statistics="fitted"`` of ``search``).

    Parameters
    ----------
    database : path, mapping, iterable, Sequences or flat ``(codes, offsets)``
        Proteins, or nucleotides, in which T and U are one letter. FASTA is read once
        per pass for all queries, and never held whole. A sequence of nucleotides that
        is long beside the queries is searched in windows, each with a hit of its own.
    scoring : Scoring, or the name or file of a matrix, optional
        BLOSUM62 with gap costs 11 and 1 by default. All passes use its gap costs. For
        nucleotides, use ``Scoring.preset("ssearch-dna")``.
    iterations : int
        Largest number of passes; 1 searches only with the sequence.
    max_evalue : float
        Report hits with at most this E-value.
    include : float
        Build the next profile from hits with at most this E-value.
    include_cov : float
        Build the next profile only from hits that cover at least this share of the
        query, 0 to 1.
    max_sequences : int
        Largest number of hits per pass; the best are kept.
    strand : {"both", "plus", "minus"}, optional
        Strands of the database to search, for nucleotides; both by default.
    min_cov, min_query_identity, max_identity : float
        Filters of the result, 0 to 1, as ``-cov``, ``-qid`` and ``-id`` of hhfilter. A
        row must have residues at ``min_cov`` of the query's positions, and
        ``min_query_identity`` of them must equal the query's. Of two rows with a larger
        identity than ``max_identity``, the one with fewer residues is removed.
    hsps : int
        Largest number of rows of a hit: its alignments as of ``search``, with an
        E-value of at most ``max_evalue`` or ``include``.
    correct_composition : bool
        Subtract the score that the composition of a hit explains (HMMER's second null
        model).

    Returns
    -------
    list of FamilyAlignment
        One per query, in input order; without relatives, it has only the query's row.

    Raises
    ------
    InputError, UsageError, MemoryPlanError, DeviceError
        As ``search``; also if the scoring is of other letters, its mean score by
        chance is not negative, or the database of several passes is standard input.

    Notes
    -----
    Altschul et al., Nucleic Acids Research 25:3389 (1997); Johnson, Eddy and Portugaly,
    BMC Bioinformatics 11:431 (2010).

    Examples
    --------
    >>> from importlib.resources import files
    >>> import jaxalign
    >>> globins = str(files("jaxalign.data") / "globins.fasta")
    >>> query = "VLSPADKTNVKAAWGKVGAHAGEYGAEALERMFLSFPTTKTYFPHFDLSHGSAQVKGHGKKVADALTN"
    >>> (family,) = jaxalign.search_family([("alpha", query)], globins)
    >>> family.converged, family.names[:2]
    (True, ('alpha', 'P69905'))
    """
    return families_of(queries, database, scoring, FamilyOptions(**options))


def families_of(
    queries: SetLike,
    database: SetLike,
    scoring: ScoringLike,
    options: FamilyOptions,
    texts: Sequence[str] | None = None,
    saved: SavedState | None = None,
    finish: Callable[[int, FamilyAlignment], Any] = lambda _, family: family,
) -> list[Any]:
    """``search_family``, its options packed.

    texts : the letters of the queries as their file has them; by default they are read
    saved : the state of a run that was interrupted, or may be
    finish : as of ``engine.run``, with the filtered alignment
    """
    # 1 check and encode, 2 the passes, 3 filters
    scoring = _checked(options, scoring)
    encoded, file_texts = inputs.with_texts(scoring, queries, reading_of(options))
    for name, length in zip(encoded.names, encoded.lengths, strict=True):
        if not length:
            raise InputError(f"the query {name!r} is empty")
    source = _source(database, scoring, options, encoded)

    def finish_search(number: int, search: Search) -> Any:
        shown = engine.rows_of(search, options)
        return finish(number, engine.alignment_of(search, shown, source, options))

    about = source, scoring, options, texts or file_texts, saved, finish_search
    return engine.run(encoded, *about)


def _checked(options: FamilyOptions, scoring: ScoringLike) -> Scoring:
    """The scoring of a search, its options checked. That of nucleotides reads T and U
    as one letter."""
    check(options)
    scoring = as_scoring(scoring)
    nucleic = scoring.alphabet.kind in NUCLEIC
    if not (nucleic or scoring.alphabet.kind == "protein") or scoring.scale != 1:
        raise UsageError(
            f"{scoring}: a family needs a scoring of proteins or nucleotides with "
            "whole scores"
        )
    return replace(scoring, alphabet_name="rna") if nucleic else scoring


def _source(
    database: SetLike, scoring: Scoring, options: FamilyOptions, queries: Sequences
) -> Source:
    """The source of the database, which every pass reads."""
    sequences, window = in_memory(database, scoring), None
    strand = options.strand
    if scoring.alphabet.kind in NUCLEIC:
        strand, window = strand or "both", engine.window_of(queries)
    strands = strands_of(strand, scoring, "local") or (PLUS,)
    if sequences is None and options.iterations > 1:
        path: Any = database
        if is_stream(path) and not reads_again(path):
            raise UsageError(
                f"{label(str(path))}: several passes read the database again; give a "
                "file, or iterations=1"
            )

    substituted = [0]

    def read() -> Iterator[Sequences]:
        substituted[0] = 0
        about = reading_of(options), options.memory_budget, substituted
        return read_blocks(database, scoring.alphabet, *about)

    return Source(sequences, read, substituted, strands, window)


@with_options(ComplexOptions, like=(search_family,))
def search_complexes(
    complexes: Mapping[str, SetLike],
    database: SetLike,
    scoring: ScoringLike = None,
    **options: Unpack[ComplexKeywords],
) -> list[ComplexAlignment]:
    """Search with the chains of complexes, and pair the rows of proteins by taxon.

    Each sequence is searched once, as ``search_family`` does. Chains of a complex with
    equal letters share its hits. Hits of several chains are paired if they have one
    taxon, the best hit of each chain (``docs/conventions.md``). Pairs are made of all
    hits up to ``pair_evalue``, not of the rows of the unpaired alignments.

    Parameters
    ----------
    complexes : mapping of names to sets of chains
        A set is a path of FASTA, a mapping, an iterable or Sequences. Chains of 20 or
        more letters that are all nucleotides are RNA, or DNA if they have T and no U;
        a shorter RNA has only A, C, G and U.
    database : path, mapping, iterable, Sequences or flat ``(codes, offsets)``
        Proteins whose headings have ``OX=`` or ``TaxID=``: FASTA, or an index made of
        it. Of what is no file, names are the headings.
    pair_strategy : {"greedy", "complete"}
        Pair taxa of two or more chains, or only those of all chains.
    pair_evalue : float
        Pair hits with at most this E-value.
    taxa : path or mapping, optional
        Taxa by the names of sequences, in place of those of headings.
    rna_database : path, mapping, iterable, Sequences or flat, optional
        Nucleotides, for unpaired alignments of RNA; its scores are those of the preset
        ``ssearch-dna``. Without it, an RNA has no alignment; DNA has none.

    Returns
    -------
    list of ComplexAlignment
        One per complex, in their order.

    Raises
    ------
    InputError
        As ``search_family``; also if a complex or a chain is empty, or a table is
        wrong.
    UsageError, MemoryPlanError, DeviceError
        As ``search_family``; also if pairs are to be made, and the database is an index
        without taxa, or is read only once, or if ``rna_database`` is given and no chain
        is RNA.

    Notes
    -----
    Mirdita et al., Nature Methods 19:679 (2022).

    Examples
    --------
    >>> from importlib.resources import files
    >>> import jaxalign
    >>> globins = str(files("jaxalign.data") / "globins.fasta")
    >>> alpha = "VLSPADKTNVKAAWGKVGAHAGEYGAEALERMFLSFPTTKTYFPHFDLSHGSAQVKGHGKKVADALT"
    >>> beta = "VHLTPEEKSAVTALWGKVNVDEVGGEALGRLLVVYPWTQRFFESFGDLSTPDAVMGNPKVKAHGKKV"
    >>> complexes = {"hemoglobin": {"A": alpha, "B": beta, "C": alpha, "D": beta}}
    >>> taxa = {"P69905": 9606, "P68871": 9606, "P01958": 9796, "P02062": 9796}
    >>> jaxalign.search_complexes(complexes, globins, taxa=taxa)
    [<ComplexAlignment: 'hemoglobin', 4 chains of 2 sequences, 2 rows paired, 2 of all>]
    """
    packed = ComplexOptions(**options)
    scoring = _checked(packed, scoring)
    if not hasattr(complexes, "items"):
        raise UsageError("complexes: give a mapping of names to sets of chains")
    sets = []
    for name, chains in complexes.items():
        about = scoring, chains, reading_of(packed)
        sequences, texts = inputs.with_texts(*about, of_complex=True)
        sets.append(Chains(name, sequences, texts or sequences.texts()))
    return complexes_of(sets, database, scoring, packed)


def complexes_of(
    complexes: Sequence[Chains],
    database: SetLike,
    scoring: ScoringLike,
    options: ComplexOptions,
    saved: SavedState | None = None,
) -> list[ComplexAlignment]:
    """``search_complexes``, its sets encoded and its options packed.

    saved : the state of a run that was interrupted, or may be
    """
    # 1 each sequence once, 2 where taxa are, 3 the passes, 4 pairs
    scoring = _checked(options, scoring)
    if scoring.alphabet.kind != "protein":
        raise UsageError(f"{scoring}: complexes need a scoring of proteins")
    taxa = pairing.taxa_source(complexes, database, options)
    nucleic = _checked(options, Scoring.preset("ssearch-dna"))
    rna = () if options.rna_database is None else options.rna_database
    searches, sources, along = [], [], replace(options, strand=None)
    for kind, target, scored, packed in (
        ("protein", database, scoring, options if rna == () else along),
        ("rna", rna, nucleic, options),
        ("dna", (), nucleic, options),
    ):
        queries, texts = pairing.queries_of(complexes, scored.alphabet, kind)
        if not texts and kind == "rna" and options.rna_database is not None:
            raise UsageError("rna_database: no chain is RNA")
        if not texts and kind != "protein":
            continue
        sources.append(_source(target, scored, packed, queries))
        state = saved if saved is None or kind == "protein" else saved.part(kind)
        searches += engine.run(queries, sources[-1], scored, packed, texts, state)
    return pairing.aligned(complexes, searches, taxa, sources[0], options)


__all__ = [
    "Chains",
    "ComplexAlignment",
    "ComplexOptions",
    "FamilyAlignment",
    "FamilyOptions",
    "check",
    "complexes_of",
    "families_of",
    "format_of",
    "search_complexes",
    "search_family",
]
