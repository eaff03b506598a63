# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The public function of families: an iterated, exhaustive search."""

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
    """Find the relatives of proteins in a database, and align them to each.

    The first pass is a search by the sequence; the next ones are by a profile of the
    hits, until a pass includes no other hits than the one before. Every score of every
    pass is computed. E-values are those of scores of that query or profile with this
    database (``statistics="fitted"`` of ``search``).

    Parameters
    ----------
    database : path, mapping, iterable, Sequences or flat ``(codes, offsets)``
        Proteins. FASTA is read once a pass for all queries, never held whole.
    scoring : Scoring, or the name or file of a matrix, optional
        Its gap costs are those of all passes.
    iterations : int
        Passes at most.
    max_evalue : float
        Hits up to it are in the result.
    include : float
        Hits up to it are in the next profile.
    include_cov : float
        … if they have residues at this part of the query's positions.
    max_sequences : int
        Hits of a pass at most, the best.
    min_cov, min_query_identity, max_identity : float
        Rows that the result keeps: ``-cov``, ``-qid`` and ``-id`` of hhfilter, as
        fractions. Rows with residues at fewer of the positions, or fewer of them the
        query's, go; of two rows that are more alike, the one with fewer residues.
    correct_composition : bool
        Whether a hit loses the score that its composition explains (HMMER's second null
        model).

    Returns
    -------
    list of FamilyAlignment
        One for each query, in their order; of a query without relatives it has one row.

    Raises
    ------
    InputError, UsageError, MemoryPlanError, DeviceError
        As ``search``; other letters than those of proteins, or standard input as a
        database of several passes.

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
        raise UsageError(f"{scoring}: a family is of proteins, its scores are whole")
    encoded, file_texts = inputs.with_texts(scoring, queries, reading_of(options))
    # The source of the database, which every pass reads.
    sequences = in_memory(database, scoring)
    if sequences is None and options.iterations > 1:
        path: Any = database
        if is_stream(path) and not reads_again(path):
            raise UsageError(
                f"{label(str(path))}: a database of several passes is a file"
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
