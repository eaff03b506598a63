# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The public functions of linked sequences: clusters, deduplication, splits, audits.

Two sequences are linked where their identity is at or above the cut. It is
``max_identities`` over a length, so it depends neither on a path nor on the order of
the two; by default of the best local alignment, over the shorter length, if chance does
not explain its score. No heuristic decides who is
compared: pairs are left out where a bound proves that they are below the cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

from jaxalign import inputs
from jaxalign.errors import UsageError
from jaxalign.homology import certificate
from jaxalign.homology.assignment import (
    REMOVED,
    SplitChoices,
    Unlabelled,
    check_choices,
)
from jaxalign.homology.audit import Audit, audit_of
from jaxalign.homology.certificate import coverage
from jaxalign.homology.clustering import clusters_of, dendrogram, graph_of
from jaxalign.homology.options import (
    Definition,
    Method,
    TooLarge,
    check_cuts,
    define,
    with_link,
)
from jaxalign.homology.pair_splits import (
    Cold,
    PairAudit,
    PairChoices,
    PairSplit,
    Second,
    audit_pairs_of,
    check_pair_choices,
    named_pairs,
    numbered_parts,
    split_pairs_of,
)
from jaxalign.homology.result import Clusters, Split
from jaxalign.homology.splitting import series_of, split_of
from jaxalign.inputs import SetLike
from jaxalign.keywords import AuditKeywords, LinkKeywords
from jaxalign.model.alphabet import Sequences
from jaxalign.model.scoring import ScoringLike, as_scoring
from jaxalign.options import HomologyOptions
from jaxalign.signatures import with_options


@with_options(HomologyOptions)
def cluster(
    sequences: SetLike,
    scoring: ScoringLike = None,
    *,
    min_identity: float,
    method: Method = "components",
    **options: Unpack[LinkKeywords],
) -> Clusters:
    """Cluster a set by exact identities.

    Parameters
    ----------
    sequences : path, mapping, iterable, Sequences or flat ``(codes, offsets)``
        See ``jaxalign.inputs``.
    scoring : Scoring, or the name or file of a matrix, optional
    min_identity : float
        The cut, a fraction: pairs at or above it are linked.
    method : {"components", "greedy", "complete", "average"}
        ``components``: connected by links, so no link leaves a cluster. ``greedy``:
        longest first, as CD-HIT means it; every member is linked to its representative,
        the first that it reaches, and no two representatives are linked. ``complete``:
        all pairs of a cluster are linked. ``average``: the mean identity of the pairs
        between clusters that were joined is at or above the cut (UPGMA).
    identity : {"longer", "shorter", "mean"}
        What identical pairs are divided by. ``shorter`` alone links a short sequence to
        long ones that it has nothing to do with: set ``min_length_ratio`` with it.
        By default that of ``link``; ``longer`` where a mode or free ends are given.
    link : {"whole", "local"}, optional
        In place of mode and ``identity``. ``whole``: alike from end to end, over the
        longer length. ``local``, the default if none of mode, ``identity`` and free
        ends is given: identical residues of the best local alignment over the shorter
        length, which sees fragments and shared domains; the alignment has at least
        ``min_score``, or chance would link most long sequences at low cuts. Short
        sequences, which hardly reach it, are linked from end to end, too.
    min_score : float, optional
        Link only pairs whose best alignment has this score or more; equal sequences
        are linked whatever they score. With ``link="local"`` its default is the score
        that one search of the set with a sequence of its mean length reaches by chance
        once in 1,000 (``jaxalign.model.statistics``).
    min_length_ratio : float, optional
        Link only pairs whose shorter length is at least this share of the longer one.
    filter : bool
        Leave out pairs that provably are below the cut. Results are the same without.

    Returns
    -------
    Clusters

    Raises
    ------
    InputError, UsageError
    MemoryPlanError
        ``complete`` and ``average`` hold the matrix of a component.

    Examples
    --------
    >>> import jaxalign
    >>> clusters = jaxalign.cluster(["MKTAYIA", "MRV", "MKTAIA"], min_identity=0.5)
    >>> clusters.labels.tolist(), clusters.representatives.tolist()
    ([0, 1, 0], [0, 1])
    """
    settings = HomologyOptions(**options)
    definition, data = _read(sequences, scoring, settings, min_identity)
    return clusters_of(data, definition, method)


@with_options(HomologyOptions, like=(cluster,))
def deduplicate(
    sequences: SetLike,
    scoring: ScoringLike = None,
    *,
    min_identity: float = 0.9,
    **options: Unpack[LinkKeywords],
) -> Clusters:
    """Keep one sequence of those that are alike: ``cluster`` with the greedy method.

    Returns
    -------
    Clusters
        ``kept()`` are the sequences that stay, ``representative_of`` says who stands
        for whom, and ``identity`` how alike the two are.

    Examples
    --------
    >>> import jaxalign
    >>> jaxalign.deduplicate(["MKTAYIAK", "MKTAYIAK", "MRV"]).kept().names
    ('seq1', 'seq3')
    """
    return cluster(
        sequences, scoring, min_identity=min_identity, method="greedy", **options
    )


@with_options(HomologyOptions, like=(cluster,))
def identity_graph(
    sequences: SetLike,
    scoring: ScoringLike = None,
    *,
    min_identity: float,
    **options: Unpack[LinkKeywords],
) -> Any:
    """The pairs of a set at or above a cut, as a sparse matrix.

    Memory holds these pairs, not all.

    Returns
    -------
    scipy.sparse.csr_array, (n, n) float64
        Identities of linked pairs, symmetric; the diagonal is empty.

    Examples
    --------
    >>> import jaxalign
    >>> some = ["CASSLGQAYEQYF", "CASSLGTAYEQYF", "CSARDRTGNGYTF"]
    >>> graph = jaxalign.identity_graph(some, min_identity=0.8)
    >>> graph.toarray().round(3).tolist()
    [[0.0, 0.923, 0.0], [0.923, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    settings = HomologyOptions(**options)
    definition, data = _read(sequences, scoring, settings, min_identity)
    return graph_of(data, definition)


@with_options(HomologyOptions, like=(cluster,))
def split(
    sequences: SetLike,
    scoring: ScoringLike = None,
    *,
    min_identity: float,
    parts: Mapping[str, float] | None = None,
    folds: int | None = None,
    labels: Mapping[str, Any] | Sequence[Any] | None = None,
    seed: int = 0,
    too_large: TooLarge = "error",
    unlabelled: Unlabelled = "error",
    fixed: Mapping[str, Any] | Sequence[Any] | None = None,
    priority: Mapping[str, int] | Sequence[int] | None = None,
    **options: Unpack[LinkKeywords],
) -> Split:
    """Split a set so that no pair across parts is at ``min_identity`` or above.

    Components of linked sequences stay together. They are put into parts so that
    shares, and those of each label, are as near as can be to what is asked.

    Parameters
    ----------
    min_identity : float
        The cut, a fraction: a pair across parts at exactly this identity is a leak,
        and there is none.
    parts : mapping of names to shares, which sum to 1
        Such as ``{"train": 0.8, "valid": 0.1, "test": 0.1}``.
    folds : int, optional
        In place of ``parts``: so many of equal shares, ``fold1`` and so on.
    labels : sequence, or mapping of names to labels, optional
        One label a sequence; every part gets its share of each.
    seed : int
        Another seed may give another split of the same quality.
    too_large : {"error", "keep", "remove"}
        What to do where a component fits into no part, since every part would be more
        than a tenth over its share: refuse, let shares differ, or take out sequences,
        as few as it can find.
    unlabelled : {"error", "label", "remove"}
        Sequences without a label: refuse, give them one of their own, leave them out.
    fixed : sequence, or mapping of names to parts, optional
        An existing split, which is repaired: components move to the part that has most
        of them, so that as few sequences move as can; with ``too_large="remove"`` the
        fewest are moved or taken out. Sequences that it does not have are placed.
        Shares are its own, unless ``parts`` says others.
    priority : sequence, or mapping of names to whole numbers from 1 on, optional
        With ``too_large="remove"``: what is taken out has as little of it together as
        can be found. Sequences that it does not have count 1.

    Returns
    -------
    Split
        ``info`` has ``least_share_error`` and, where something was removed or changed,
        bounds that no split of the same request is below.

    Raises
    ------
    InputError
        A sequence without a label, or a label without a sequence.
    UsageError
        Shares that do not sum to 1, a component that is too large, an empty part.

    Examples
    --------
    >>> import jaxalign
    >>> some = ["MKTAYIA", "MKTAIA", "MRVLLK", "WWPHGE"]
    >>> halves = {"train": 0.5, "test": 0.5}
    >>> divided = jaxalign.split(some, min_identity=0.5, parts=halves)
    >>> divided.indices("train").tolist(), divided.indices("test").tolist()
    ([0, 1], [2, 3])
    """
    choices = SplitChoices(
        parts, folds, labels, seed, too_large, unlabelled, fixed, priority
    )
    settings = HomologyOptions(**options)
    definition, data = _read(sequences, scoring, settings, min_identity)
    return split_of(data, definition, choices)


@with_options(HomologyOptions, like=(split,))
def split_series(
    sequences: SetLike,
    scoring: ScoringLike = None,
    *,
    cuts: Sequence[float],
    parts: Mapping[str, float] | None = None,
    folds: int | None = None,
    labels: Mapping[str, Any] | Sequence[Any] | None = None,
    seed: int = 0,
    too_large: TooLarge = "error",
    unlabelled: Unlabelled = "error",
    priority: Mapping[str, int] | Sequence[int] | None = None,
    **options: Unpack[LinkKeywords],
) -> dict[float, Split]:
    """Split a set at several cuts by one pass of identities.

    Parameters
    ----------
    cuts : sequence of float
        Fractions that differ, as ``min_identity`` of ``split``. Pairs are compared
        once, at the lowest.

    Returns
    -------
    dict of Split
        By cut, in the order given; each is that of ``split``.

    Raises
    ------
    InputError, UsageError
        As ``split``, at the first cut that has no split.

    Examples
    --------
    >>> import jaxalign
    >>> some = ["MKTAYIA", "MKTAIA", "MRVLLK", "WWPHGE"]
    >>> series = jaxalign.split_series(some, cuts=[0.5, 0.9], folds=2)
    >>> [int(split.groups.max()) + 1 for split in series.values()]
    [3, 4]
    """
    check_cuts("cuts", cuts)
    choices = SplitChoices(
        parts, folds, labels, seed, too_large, unlabelled, None, priority
    )
    settings = HomologyOptions(**options)
    definition, data = _read(sequences, scoring, settings, min(cuts))
    values = tuple(map(float, cuts))
    series = series_of(data, definition, choices, values)
    return dict(zip(values, series, strict=True))


@with_options(HomologyOptions, like=(split,))
def split_pairs(
    sequences: SetLike,
    pairs: Iterable[Sequence[str]],
    scoring: ScoringLike = None,
    *,
    min_identity: float,
    parts: Mapping[str, float] | None = None,
    folds: int | None = None,
    cold: Cold = "both",
    second: Second = "proteins",
    seed: int = 0,
    **options: Unpack[LinkKeywords],
) -> PairSplit:
    """Split pairs of sequences, as interactions, by what their sequences are near to.

    Near are two sequences whose identity is ``min_identity`` or more, and all that
    chains of such connect.

    Parameters
    ----------
    pairs : iterable of (str, str)
        Names of two sequences, or of a sequence and a group.
    cold : {"both", "one", "none"}
        What a pair of a later part shares with those of earlier ones (Park and Marcotte
        2012). ``both`` (C3): neither protein is near one of another part; pairs between
        parts are removed. ``one`` (C2): of two proteins one is near none of any earlier
        part, in the order of ``parts``; of a protein and a group it is the protein, for
        every two parts. ``none`` (C1): pairs are dealt out, equal ones together.
    second : {"proteins", "groups"}
        What the second column is: names of sequences too, or of groups, as ligands, of
        which equal ones are one.

    Returns
    -------
    PairSplit

    Raises
    ------
    InputError
        A name is of no sequence.
    UsageError
        As ``split``; an empty part; folds of two columns of proteins with ``one``.

    Examples
    --------
    >>> import jaxalign
    >>> proteins = {"a": "MKTAYIA", "b": "MKTAIA", "c": "MRVLLK", "d": "WWPHGE"}
    >>> pairs = [("a", "b"), ("c", "d"), ("b", "d")]
    >>> halves = {"train": 0.5, "test": 0.5}
    >>> jaxalign.split_pairs(proteins, pairs, min_identity=0.5, parts=halves).sizes
    array([1, 1])
    """
    choices = PairChoices(parts, folds, cold, second, seed)
    check_pair_choices(choices)
    settings = HomologyOptions(**options)
    definition, data = _read(sequences, scoring, settings, min_identity)
    return split_pairs_of(
        data, definition, named_pairs(pairs, data.names, second), choices
    )


@with_options(HomologyOptions, like=(split_pairs,))
def audit_pairs(
    sequences: SetLike,
    pairs: Iterable[Sequence[str]],
    parts: Sequence[str],
    scoring: ScoringLike = None,
    *,
    min_identity: float,
    cold: Cold = "both",
    second: Second = "proteins",
    **options: Unpack[LinkKeywords],
) -> PairAudit:
    """Check a split of pairs, whoever made it, by every pair of sequences across.

    Parameters
    ----------
    parts : sequence of str
        The part of every pair; ``removed`` is none. Their order, which ``one`` of two
        columns of proteins needs, is that of their first pairs.

    Returns
    -------
    PairAudit

    Raises
    ------
    InputError, UsageError

    Examples
    --------
    >>> import jaxalign
    >>> proteins = {"a": "MKTAYIA", "b": "MKTAIA", "c": "MRVLLK", "d": "WWPHGE"}
    >>> pairs, parts = [("a", "c"), ("b", "d")], ["train", "test"]
    >>> jaxalign.audit_pairs(proteins, pairs, parts, min_identity=0.5).leaks
    2
    """
    check_pair_choices(PairChoices({"a": 0.5, "b": 0.5}, None, cold, second))
    settings = HomologyOptions(**options)
    definition, data = _read(sequences, scoring, settings, min_identity)
    named = named_pairs(pairs, data.names, second)
    numbers = numbered_parts([*parts], named)
    return audit_pairs_of(data, definition, named, numbers, cold)


@with_options(HomologyOptions, like=(cluster,))
def audit(
    parts: Split | Mapping[str, SetLike] | Sequence[SetLike],
    scoring: ScoringLike = None,
    *,
    min_identity: float,
    **options: Unpack[AuditKeywords],
) -> Audit:
    """Check a split, whoever made it: compare every pair across its parts, exactly.

    Parameters
    ----------
    parts : Split, mapping of names to sets, or sequence of sets
        Two or more; a set in any form of ``jaxalign.inputs``.
    min_identity : float
        The cut, a fraction: a pair across at or above it is a leak.
    worst : int
        How many of the worst pairs are wanted, with their alignments. They are exact
        below the cut too.

    Returns
    -------
    Audit
        ``leaks`` counts the pairs; ``holds`` says that there is none.

    Examples
    --------
    >>> import jaxalign
    >>> parts = {"train": ["MKTAYIA", "MRVLLK"], "test": ["MKTAIA"]}
    >>> found = jaxalign.audit(parts, min_identity=0.5)
    >>> found.holds, found.leaks, found.worst["identity"].round(3).tolist()
    (False, 1, [0.857, 0.167])
    """
    scoring, settings = as_scoring(scoring), HomologyOptions(**options)
    if isinstance(parts, Split):
        settings = with_link(settings, scoring, [parts.sequences])
        definition = define(scoring, settings, min_identity)
        sets, removed = {x: parts.take(x) for x in parts.names}, len(parts.removed)
        return audit_of(sets, definition, removed)
    if not isinstance(parts, Mapping):
        parts = {f"part{k}": part for k, part in enumerate(parts, 1)}
    if len(parts) < 2:
        raise UsageError("an audit needs two parts or more")
    sets = inputs.sets(scoring, *parts.values())
    settings = with_link(settings, scoring, sets)
    definition = define(scoring, settings, min_identity)
    return audit_of(dict(zip(map(str, parts), sets, strict=True)), definition)


def _read(
    sequences: SetLike,
    scoring: ScoringLike,
    options: HomologyOptions,
    cut: float,
) -> tuple[Definition, Sequences]:
    """The checked definition of a call, and its encoded set."""
    scoring = as_scoring(scoring)
    data = inputs.sets(scoring, sequences)[0]
    settings = with_link(options, scoring, [data])
    return define(scoring, settings, cut, [data]), data


__all__ = [
    "REMOVED",
    "Audit",
    "Clusters",
    "Definition",
    "HomologyOptions",
    "PairAudit",
    "PairChoices",
    "PairSplit",
    "Split",
    "SplitChoices",
    "audit",
    "audit_of",
    "audit_pairs",
    "audit_pairs_of",
    "certificate",
    "check_choices",
    "check_cuts",
    "check_pair_choices",
    "cluster",
    "clusters_of",
    "coverage",
    "deduplicate",
    "define",
    "dendrogram",
    "identity_graph",
    "named_pairs",
    "numbered_parts",
    "series_of",
    "split",
    "split_of",
    "split_pairs",
    "split_pairs_of",
    "split_series",
    "with_link",
]
