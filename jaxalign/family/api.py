# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Search for families: an iterated, exhaustive search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Unpack

from jaxalign import inputs
from jaxalign.database.api import in_memory, read_blocks
from jaxalign.errors import UsageError
from jaxalign.family import engine
from jaxalign.family.engine import SavedState, Source
from jaxalign.family.options import check
from jaxalign.family.result import FamilyAlignment, format_of
from jaxalign.inputs import SetLike
from jaxalign.keywords import FamilyKeywords
from jaxalign.model.alphabet import Sequences, reading_of
from jaxalign.model.scoring import ScoringLike, as_scoring
from jaxalign.model.source import is_stream, label, reads_again
from jaxalign.options import FamilyOptions
from jaxalign.signatures import with_options


@with_options(FamilyOptions)
def search_family(
    queries: SetLike,
    database: SetLike,
    scoring: ScoringLike = None,
    **options: Unpack[FamilyKeywords],
) -> list[FamilyAlignment]:
    """Find the relatives of each query protein in a database, and align them to it.

    The first pass searches with the sequence, the next ones with a profile of the hits,
    until a pass includes the same hits as the one before. Every score of every pass is
    computed. E-values are fitted to the scores of that query or profile with this
    database (``statistics="fitted"`` of ``search``).

    Parameters
    ----------
    database : path, mapping, iterable, Sequences or flat ``(codes, offsets)``
        Proteins. FASTA is read once per pass for all queries, and never held whole.
    scoring : Scoring, or the name or file of a matrix, optional
        BLOSUM62 with gap costs 11 and 1 by default. All passes use its gap costs.
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
    min_cov, min_query_identity, max_identity : float
        Filters of the result, 0 to 1, as ``-cov``, ``-qid`` and ``-id`` of hhfilter. A
        row must have residues at ``min_cov`` of the query's positions, and
        ``min_query_identity`` of them must equal the query's. Of two rows with a larger
        identity than ``max_identity``, the one with fewer residues is removed.
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
        As ``search``; also if sequences are not proteins, or the database of several
        passes is standard input.

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
) -> list[FamilyAlignment]:
    """``search_family``, its options packed.

    texts : the letters of the queries as their file has them; by default they are read
    saved : the state of a run that was interrupted, or may be
    """
    # 1 check and encode, 2 the passes, 3 filters
    check(options)
    scoring = as_scoring(scoring)
    if scoring.alphabet.kind != "protein" or scoring.scale != 1:
        raise UsageError(
            f"{scoring}: a family needs a scoring of proteins with whole scores"
        )
    encoded, file_texts = inputs.with_texts(scoring, queries, reading_of(options))
    # The source of the database, which every pass reads.
    sequences = in_memory(database, scoring)
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

    source = Source(sequences, read, substituted)
    return engine.run(encoded, source, scoring, options, texts or file_texts, saved)


__all__ = [
    "FamilyAlignment",
    "FamilyOptions",
    "check",
    "families_of",
    "format_of",
    "search_family",
]
