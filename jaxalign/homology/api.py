# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Public functions of linked sequences: clusters, deduplication, splits, audits.

Two sequences are linked if their identity is at or above the cut. Identity is
``max_identities`` over a length, so it depends neither on a path nor on the order of
the two sequences. By default it is that of the best local alignment, over the shorter
length, if chance does not explain the score. No heuristic selects the pairs: a pair is
skipped only if a bound proves that it is below the cut.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from jaxalign import inputs
from jaxalign.errors import InputError, UsageError, VerificationError
from jaxalign.homology import certificate
from jaxalign.homology.assignment import (
    REMOVED,
    SplitChoices,
    Unlabelled,
    check_choices,
)
from jaxalign.homology.audit import Audit, audit_of
from jaxalign.homology.certificate import OldClusters, coverage
from jaxalign.homology.clustering import (
    clusters_of,
    dendrogram,
    graph_of,
    grown_of,
)
from jaxalign.homology.evidence import (
    EdgeTable,
    Evidence,
    Grouping,
    checked_cut,
    distinct,
)
from jaxalign.homology.options import (
    TWO_PARTS,
    Definition,
    Method,
    TooLarge,
    check_audited,
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
from jaxalign.io import delimited
from jaxalign.io.delimited import KnownNames
from jaxalign.keywords import AuditKeywords, LinkKeywords, SplitKeywords
from jaxalign.model.alphabet import Sequences
from jaxalign.model.choices import Edges
from jaxalign.model.names import written
from jaxalign.model.numbers import exact
from jaxalign.model.scoring import ScoringLike, as_scoring
from jaxalign.model.show import counted
from jaxalign.model.source import sha256
from jaxalign.options import HomologyOptions
from jaxalign.signatures import with_options

DUPLICATES = 0.9  # least identity of a sequence that another one represents
NamesOfSet = tuple[Iterable[str], str | None]  # and its file, if it has one


@with_options(HomologyOptions)
def cluster(
    sequences: SetLike,
    scoring: ScoringLike = None,
    *,
    min_identity: float | None = None,
    method: Method = "components",
    update: Clusters | str | os.PathLike[str] | None = None,
    **options: Unpack[LinkKeywords],
) -> Clusters:
    """Cluster a set by exact identities.

    Parameters
    ----------
    sequences : path, mapping, iterable, Sequences or flat ``(codes, offsets)``
        The set; see ``jaxalign.inputs``.
    scoring : Scoring, or the name or file of a matrix, optional
        BLOSUM62 with gap costs 11 and 1 by default.
    min_identity : float, optional
        The cut, 0 to 1: pairs with at least this identity are linked.
    method : {"components", "greedy", "complete", "average"}
        ``components``: clusters are connected by links, and no link leaves a cluster.
        ``greedy``: as CD-HIT, longest first; every member is linked to its
        representative, the first that it reaches, and no two representatives are
        linked. ``complete``: all pairs of a cluster are linked. ``average``: two
        clusters are joined while the mean identity of the pairs between them is at or
        above the cut (UPGMA).
    update : Clusters, or path of a certificate of clusters, optional
        Clusters of some of the sequences, of method ``components`` and the same rule.
        Only pairs with a new sequence are compared. The result is that of all pairs,
        but old clusters keep their numbers; its ``growth`` says which of them merged.
    identity : {"longer", "shorter", "mean"}
        The length that the number of identical pairs is divided by. ``shorter`` alone
        links short sequences to unrelated long ones: set ``min_length_ratio`` too. By
        default that of ``link``, or ``longer`` if a mode or free ends are given.
    link : {"whole", "local"}, optional
        Replaces mode and ``identity``. ``whole`` compares from end to end, over the
        longer length. ``local``, the default if none of mode, ``identity`` and free
        ends is given, counts the identical residues of the best local alignment over
        the shorter length, and so finds fragments and shared domains. The alignment
        must score at least ``min_score``; otherwise chance would link most long
        sequences at low cuts. Short sequences, which rarely reach that score, are also
        linked from end to end.
    min_score : float, optional
        Link only pairs whose best alignment has at least this score; equal sequences
        are linked whatever their score. By default none, and with ``link="local"`` the
        score that one search of the set by a sequence of mean length reaches by chance
        once in 1,000 (``jaxalign.model.statistics``).
    min_relative_score : float, optional
        Link only pairs whose score is at least this share of a self score, 0 to 1: of
        the smaller one with ``identity="shorter"``, as in ``link="local"``, of the
        larger one with ``longer``, or of the mean. A self score is that of a sequence
        with itself, residue by residue. It replaces the default of ``min_score``;
        without ``min_identity`` it is the cut. Identities stay those of amino acids,
        and no part of it.
    min_length_ratio : float, optional
        Link only pairs whose shorter length is at least this share of the longer one.
    filter : bool
        Skip pairs that are provably below the cut. Results do not depend on it.

    Returns
    -------
    Clusters

    Raises
    ------
    InputError
        If a file cannot be read, or a letter is not in the alphabet.
    UsageError
        If an option is unknown, out of range, or without effect in this call; or if the
        rule is not that of ``update``.
    VerificationError
        If the table or the old sequences of ``update`` have changed.
    MemoryPlanError
        If the job exceeds the budget. ``complete`` and ``average`` hold the matrix of a
        component.

    Examples
    --------
    >>> import jaxalign
    >>> clusters = jaxalign.cluster(["MKTAYIA", "MRV", "MKTAIA"], min_identity=0.5)
    >>> clusters.labels.tolist(), clusters.representatives.tolist()
    ([0, 1, 0], [0, 1])
    >>> more = ["MKTAYIA", "MRV", "MKTAIA", "MRVA"]
    >>> jaxalign.cluster(more, min_identity=0.5, update=clusters).labels.tolist()
    [0, 1, 0, 1]
    """
    settings = HomologyOptions(**options)
    if update is None:
        definition, data = _read(sequences, scoring, settings, min_identity)
        return clusters_of(data, definition, method)
    certificate.check_growing(method, settings.edges)
    old = update.old() if isinstance(update, Clusters) else read_clusters(update)
    if settings.min_score is None:
        settings = replace(settings, min_score=old.min_score)
    definition, data = _read(sequences, scoring, settings, min_identity)
    return grown_of(data, definition, old)


def read_clusters(path: str | os.PathLike[str]) -> OldClusters:
    """Read the certificate of clusters, and their table, at its path or beside it.

    Raises InputError: one of them cannot be read
    Raises VerificationError: the table is not that of the certificate
    """
    where = os.fspath(path)
    about = certificate.read(where, growing=True)
    listed, next_number = str(about["table"].get("path")), about["next_cluster"]
    if not os.path.exists(listed):
        listed = os.path.join(os.path.dirname(where), os.path.basename(listed))
    if not os.path.isfile(listed):
        raise InputError(f"{where}: {listed}, its table: no such file")
    if sha256(listed) != about["table"].get("sha256"):
        raise VerificationError(
            f"{where}: {listed} is not its table: the SHA-256 differs; it was cut "
            "short, or edited"
        )
    clusters = inputs.named_values(listed, "cluster")
    numbers = [int(x) if x.isdecimal() else -1 for x in clusters.values()]
    if not all(0 <= x < next_number < 2**62 for x in numbers):
        raise InputError(
            f"{where}: next_cluster = {next_number}: the clusters of {listed} need "
            "whole numbers below it"
        )
    about_table = tuple(clusters), np.array(numbers, np.int64), next_number
    digest, rule = about["sha256"], about["definition"]
    return OldClusters(*about_table, digest, rule, where, listed)


@with_options(HomologyOptions, like=(cluster,))
def deduplicate(
    sequences: SetLike,
    scoring: ScoringLike = None,
    *,
    min_identity: float | None = None,
    **options: Unpack[LinkKeywords],
) -> Clusters:
    """Keep one representative of similar sequences: ``cluster`` with method greedy.

    Parameters
    ----------
    min_identity : float, optional
        The cut, 0.9 by default, and with ``min_relative_score`` none.

    Returns
    -------
    Clusters
        ``kept()`` are the sequences kept, ``representative_of`` the representative of
        each sequence, and ``identity`` the identity of the two.

    Raises
    ------
    InputError, UsageError, MemoryPlanError
        As ``cluster``.

    Examples
    --------
    >>> import jaxalign
    >>> jaxalign.deduplicate(["MKTAYIAK", "MKTAYIAK", "MRV"]).kept().names
    ('seq1', 'seq3')
    """
    if min_identity is None and options.get("min_relative_score") is None:
        min_identity = DUPLICATES
    return cluster(
        sequences, scoring, min_identity=min_identity, method="greedy", **options
    )


@with_options(HomologyOptions, like=(cluster,))
def identity_graph(
    sequences: SetLike,
    scoring: ScoringLike = None,
    *,
    min_identity: float | None = None,
    **options: Unpack[LinkKeywords],
) -> Any:
    """Find the linked pairs of a set, as a sparse matrix.

    Only linked pairs are held in memory.

    Returns
    -------
    scipy.sparse.csr_array, (n, n) float64
        Identities of linked pairs, 0 to 1; symmetric, with an empty diagonal.

    Raises
    ------
    InputError, UsageError, MemoryPlanError
        As ``cluster``.

    Examples
    --------
    >>> import jaxalign
    >>> some = ["CASSLGQAYEQYF", "CASSLGTAYEQYF", "CSARDRTGNGYTF"]
    >>> graph = jaxalign.identity_graph(some, min_identity=0.8)
    >>> graph.toarray().round(3).tolist()
    [[0.0, 0.923, 0.0], [0.923, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    settings = HomologyOptions(**options)
    if settings.edges is not None:
        raise UsageError("edges have no identity, and the graph is one of identities")
    definition, data = _read(sequences, scoring, settings, min_identity)
    return graph_of(data, definition)


@with_options(HomologyOptions, like=(cluster,))
def split(
    sequences: SetLike,
    scoring: ScoringLike = None,
    *,
    min_identity: float | None = None,
    parts: Mapping[str, float] | None = None,
    folds: int | None = None,
    labels: Mapping[str, Any] | Sequence[Any] | None = None,
    seed: int = 0,
    too_large: TooLarge = "error",
    unlabelled: Unlabelled = "error",
    fixed: Mapping[str, Any] | Sequence[Any] | None = None,
    priority: Mapping[str, int] | Sequence[int] | None = None,
    weights: Mapping[str, float] | Sequence[float] | None = None,
    **options: Unpack[SplitKeywords],
) -> Split:
    """Split a set so that no pair across parts reaches ``min_identity``.

    Components of linked sequences stay together. They are assigned to parts so that the
    shares of all sequences, and of each label, are as close to the request as possible.

    Parameters
    ----------
    min_identity : float, optional
        The cut, 0 to 1: no pair across parts has this identity or more.
    parts : mapping of names to shares, which sum to 1
        For example ``{"train": 0.8, "valid": 0.1, "test": 0.1}``.
    folds : int, optional
        Instead of ``parts``: this many parts of equal shares, named ``fold1`` and so
        on.
    labels : sequence, or mapping of names to labels, optional
        One label per sequence; every part gets its share of each label.
    seed : int
        A different seed may give a different split of the same quality.
    too_large : {"error", "keep", "remove"}
        What to do if a component fits into no part, because it would exceed the share
        of every part by more than a tenth: raise an error, accept other shares, or
        remove as few sequences as the search finds.
    unlabelled : {"error", "label", "remove"}
        What to do with sequences without a label: raise an error, give them a label of
        their own, or leave them out.
    fixed : sequence, or mapping of names to parts, optional
        An existing split to repair. Each component moves to the part that holds most of
        it, so few sequences move; with ``too_large="remove"``, the number moved or
        removed is minimised. Sequences missing from it are placed. Its shares apply
        unless ``parts`` is given.
    priority : sequence, or mapping of names to integers from 1, optional
        With ``too_large="remove"``: remove sequences with the smallest total priority
        that the search finds. Sequences missing from it have priority 1.
    weights : sequence, or mapping of names to numbers above 0, optional
        What each sequence counts in the shares of parts; 1 if it is missing. Labels
        count sequences all the same.

    Returns
    -------
    Split
        ``info`` has ``least_share_error`` and, if sequences were removed or moved,
        lower bounds for any split of the same request.

    Raises
    ------
    InputError
        If a sequence has no label, or a label no sequence.
    UsageError
        If shares do not sum to 1, a component is too large, or a part would be empty.
    MemoryPlanError
        If the job exceeds the budget.



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
        parts, folds, labels, seed, too_large, unlabelled, fixed, priority, weights
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
    weights: Mapping[str, float] | Sequence[float] | None = None,
    **options: Unpack[SplitKeywords],
) -> dict[float, Split]:
    """Split a set at several cuts, comparing its pairs once.

    Parameters
    ----------
    cuts : sequence of float
        Different values for ``min_identity`` of ``split``, 0 to 1. Pairs are compared
        at the lowest.

    Returns
    -------
    dict of float to Split
        The result of ``split`` at each cut, in the order given.

    Raises
    ------
    InputError, UsageError, MemoryPlanError
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
        parts, folds, labels, seed, too_large, unlabelled, None, priority, weights
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
    min_identity: float | None = None,
    parts: Mapping[str, float] | None = None,
    folds: int | None = None,
    cold: Cold = "both",
    second: Second = "proteins",
    seed: int = 0,
    **options: Unpack[SplitKeywords],
) -> PairSplit:
    """Split pairs of sequences, such as interactions, by the similarity of their
    members.

    Two sequences are near if they are linked (identity of ``min_identity`` or more), or
    connected by a chain of links.

    Parameters
    ----------
    pairs : iterable of (str, str)
        Names of two sequences, or of a sequence and a group.
    cold : {"both", "one", "none"}
        What a pair may share with pairs of other parts (classes of Park and Marcotte
        2012). ``both`` (C3): neither protein is near one of another part; pairs between
        parts are removed. ``one`` (C2): one of two proteins is near none of any earlier
        part, in the order of ``parts``; with groups, the protein is near none of any
        other part. ``none`` (C1): pairs are assigned to parts freely, but equal pairs
        stay together.
    second : {"proteins", "groups"}
        What the second column names: sequences, or groups such as ligands.

    Returns
    -------
    PairSplit

    Raises
    ------
    InputError
        If a name is not that of a sequence.
    UsageError
        As ``split``; if a part would be empty; or for ``folds`` of two columns of
        proteins with ``cold="one"``.
    MemoryPlanError
        If the job exceeds the budget.

    Notes
    -----
    Park and Marcotte, Nature Methods 9:1134 (2012).

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
    min_identity: float | None = None,
    cold: Cold = "both",
    second: Second = "proteins",
    **options: Unpack[SplitKeywords],
) -> PairAudit:
    """Check a split of pairs made by any tool, by every pair of sequences across parts.

    Parameters
    ----------
    parts : sequence of str
        The part of each pair; ``removed`` means no part. Parts are ordered by their
        first pairs, which matters for ``cold="one"`` with two columns of proteins.

    Returns
    -------
    PairAudit

    Raises
    ------
    InputError, UsageError, MemoryPlanError
        As ``split_pairs``.

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
    min_identity: float | None = None,
    **options: Unpack[AuditKeywords],
) -> Audit:
    """Check a split made by any tool: compare every pair across its parts, exactly.

    Parameters
    ----------
    parts : Split, mapping of names to sets, or sequence of sets
        Two or more parts; see ``jaxalign.inputs`` for the forms of a set.
    min_identity : float, optional
        The cut, 0 to 1: a pair across parts with at least this identity is a leak.
    worst : int
        Number of worst pairs to report, with their alignments. They are exact below the
        cut, too.

    Returns
    -------
    Audit
        ``leaks`` is the number of leaking pairs; ``holds`` is True if there are none.

    Raises
    ------
    InputError, UsageError, MemoryPlanError
        As ``cluster``.

    Examples
    --------
    >>> import jaxalign
    >>> parts = {"train": ["MKTAYIA", "MRVLLK"], "test": ["MKTAIA"]}
    >>> found = jaxalign.audit(parts, min_identity=0.5)
    >>> found.holds, found.leaks, found.worst["identity"].round(3).tolist()
    (False, 1, [0.857, 0.167])
    """
    scoring, settings = as_scoring(scoring, tracks=True), HomologyOptions(**options)
    if isinstance(parts, Split):
        settings = with_link(settings, scoring, [parts.sequences])
        definition = define(scoring, settings, min_identity)
        definition = with_evidence(definition, [(parts.sequences.names, None)])
        sets, removed = {x: parts.take(x) for x in parts.names}, len(parts.removed)
        return audit_of(sets, definition, removed)
    if not isinstance(parts, Mapping):
        parts = {f"part{k}": part for k, part in enumerate(parts, 1)}
    check_audited(len(parts))
    sets = inputs.sets(scoring, *parts.values())
    settings = with_link(settings, scoring, sets)
    definition = define(scoring, settings, min_identity)
    definition = with_evidence(definition, [*map(_known, sets, parts.values())])
    return audit_of(dict(zip(map(str, parts), sets, strict=True)), definition)


def _read(
    sequences: SetLike,
    scoring: ScoringLike,
    options: HomologyOptions,
    cut: float | None,
) -> tuple[Definition, Sequences]:
    """The checked definition of a call, and its encoded set."""
    scoring = as_scoring(scoring, tracks=True)
    data = inputs.sets(scoring, sequences)[0]
    settings = with_link(options, scoring, [data])
    definition = define(scoring, settings, cut, [data])
    return with_evidence(definition, [_known(data, sequences)]), data


def _known(data: Sequences, source: Any) -> NamesOfSet:
    """The names of a set, and its file."""
    path = str(source) if isinstance(source, str | os.PathLike) else None
    return data.names, path


def _known_names(names: Iterable[str], path: str | None) -> KnownNames:
    """The names that tables may call the sequences of a set by, which must differ."""
    seen: dict[str, None] = {}
    for name in names:
        if name in seen:
            raise InputError(
                f"{_label(path)}: {written(name)} is the name of two sequences: edges "
                "and groups need names that differ"
            )
        seen[name] = None
    return KnownNames(seen, path)


# ------------------------------------------------------------------------------
# Evidence beside alignments: read tables of edges and of groups.

COUNTED = "\nhint: a rule with unknown=count counts such rows and leaves them out"
SHOWN = 3  # names in a message


def with_evidence(definition: Definition, sets: Sequence[NamesOfSet]) -> Definition:
    """Add the edges and groups of the options to a definition; read their tables.

    sets : names of all sequences, those of no part too, and the file of each set

    Raises InputError: a table cannot be read, or has a name that no sequence has, or
        that sequences of two sets have; a name is repeated in a set
    """
    edges, together = definition.options.edges, definition.options.together
    if edges is None and together is None:
        return definition
    names_of_sets = [_known_names(*x) for x in sets]
    number: dict[str, int] = {}
    twice = set()
    for names in names_of_sets:
        twice |= number.keys() & set(names.names)
        for name in names.names:
            number.setdefault(name, len(number))

    def number_of(name: str) -> int:
        """The number of a name of a table, -1 of one that no sequence has."""
        for names in names_of_sets:
            resolved = names.resolve(name)
            if resolved in twice:
                raise InputError(
                    f"{written(name)} is the name of two sequences: edges and groups "
                    "need names that differ"
                )
            if resolved in number:
                return number[resolved]
        return -1

    tables = [edges] if isinstance(edges, Edges) else edges or ()
    every = KnownNames(number)
    edge_tables = tuple(_edge_table(x, every, number_of) for x in tables)
    groupings, about = _groupings(together, every, number_of)
    evidence = Evidence(number, edge_tables, groupings, about)
    return replace(definition, evidence=evidence)


def _edge_table(edges: Any, sequence_names: KnownNames, number_of: Any) -> EdgeTable:
    """The pairs of one table that pass its rule."""
    cut, upper = checked_cut(edges)
    if isinstance(edges.table, str | os.PathLike):
        path = str(edges.table)
        title, pairs, values = delimited.read_edges(path, sequence_names, edges.column)
        digest = _digest(path)
    else:
        path, title = None, "value" if edges.column is None else str(edges.column)
        a, b, values = ([str(x) for x in edges.table[0]],
                        [str(x) for x in edges.table[1]],
                        np.asarray(edges.table[2], np.float64))  # fmt: skip
        if not len(a) == len(b) == len(values) or not np.isfinite(values).all():
            raise InputError(
                f"edges: {len(a):,} and {len(b):,} names, {len(values):,} values: as "
                "many of each are needed, and finite values"
            )
        pairs = list(zip(a, b, strict=True))
        rows = zip(a, b, values.tolist(), strict=True)
        text = "".join(f"{x}\t{y}\t{exact(z)}\n" for x, y, z in rows)
        digest = hashlib.sha256(text.encode()).hexdigest()
    numbers = {
        x: number_of(x) for x in dict.fromkeys(x for pair in pairs for x in pair)
    }
    unknown = [name for name, k in numbers.items() if k < 0]
    if unknown and (edges.unknown == "error" or len(unknown) == len(numbers)):
        raise InputError(f"{_label(path)}: {_some(unknown)} of no sequence{COUNTED}")
    sides = np.array([[numbers[x] for x in pair] for pair in pairs], np.int64)
    sides = np.sort(sides.reshape(-1, 2).T, axis=0)
    named_rows, apart = sides[0] >= 0, sides[0] != sides[1]
    passing = values <= cut if upper else values >= cut
    linked = distinct(sides[:, named_rows & apart & passing])
    sign = "<=" if upper else ">="
    listed = np.unique(sides[:, named_rows])
    about = {
        "path": path,
        "sha256": digest,
        "column": title,
        "rule": f"{sign} {exact(float(cut))}",
        "join": edges.join,
        "unknown": edges.unknown,
        "rows": len(pairs),
        "rows_of_unknown_names": int((~named_rows).sum()),
        "rows_of_a_sequence_with_itself": int((named_rows & ~apart).sum()),
        "sequences_without_a_row": len(sequence_names.names) - len(listed),
        "pairs": linked.shape[1],
    }
    return EdgeTable(linked, about)


def _groupings(
    together: Any, sequence_names: KnownNames, number_of: Any
) -> tuple[tuple[Grouping, ...], dict[str, Any] | None]:
    """The groups of a table, or of a mapping of names to groups; and what a certificate
    says of them."""
    if together is None:
        return (), None
    if isinstance(together, str | os.PathLike):
        path, columns = (
            str(together),
            delimited.read_groups(str(together), sequence_names),
        )
        digest = _digest(path)
    else:
        if not hasattr(together, "items"):
            values, count = list(together), len(sequence_names.names)
            if len(values) != count:
                raise InputError(
                    f"{counted(count, 'sequence')}, and a group for "
                    f"{len(values):,}: give one each, None for none"
                )
            together = dict(zip(sequence_names.names, values, strict=True))
        rows = [(str(x), str(y)) for x, y in together.items() if y is not None]
        path, columns = None, {"group": rows}
        text = "".join(f"{x}\t{y}\n" for x, y in rows)
        digest = hashlib.sha256(text.encode()).hexdigest()
    names = dict.fromkeys(x for rows in columns.values() for x, _ in rows)
    numbers = {name: number_of(name) for name in names}
    unknown = [name for name, k in numbers.items() if k < 0]
    if unknown:
        raise InputError(f"{_label(path)}: {_some(unknown)} of no sequence")
    groupings = []
    for title, rows in columns.items():
        groups: dict[str, int] = {}
        group = [groups.setdefault(y, len(groups)) for _, y in rows]
        member = np.array([numbers[x] for x, _ in rows], np.int64)
        array = np.array(group, np.int64)
        groupings.append(Grouping(title, tuple(groups), member, array))
    about = {
        "path": path,
        "sha256": digest,
        "columns": {x.title: len(x.names) for x in groupings},
        "sequences_without_a_group": len(sequence_names.names)
        - len({*numbers.values()}),
    }
    return tuple(groupings), about


def _digest(path: str) -> str:
    digest = sha256(path)
    if digest is None:
        raise UsageError(f"{path}: edges and groups need a file that is read again")
    return digest


def _label(path: str | None) -> str:
    return "edges or groups" if path is None else path


def _some(names: list[str]) -> str:
    shown = ", ".join(map(written, names[:SHOWN])) + ", …" * (len(names) > SHOWN)
    return f"{counted(len(names), 'name')} ({shown})"


__all__ = [
    "DUPLICATES",
    "REMOVED",
    "Audit",
    "Clusters",
    "Definition",
    "HomologyOptions",
    "TWO_PARTS",
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
    "grown_of",
    "identity_graph",
    "named_pairs",
    "numbered_parts",
    "read_clusters",
    "series_of",
    "split",
    "split_of",
    "split_pairs",
    "split_pairs_of",
    "split_series",
    "with_evidence",
    "with_link",
]
