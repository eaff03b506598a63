"""``--plot`` and ``--dendrogram``: what is checked before the work, and drawn after."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from jaxalign.cli.request import Pictures, Request
from jaxalign.cli.terminal import Messages
from jaxalign.errors import UsageError
from jaxalign.homology import api
from jaxalign.io import picture
from jaxalign.model.alphabet import NUCLEIC
from jaxalign.model.numbers import exact, printed_beside
from jaxalign.model.operations import corners
from jaxalign.model.show import (
    MOST_SUMS,
    WINDOW,
    counted,
    dot_plot,
    word_dots,
    word_length,
)
from jaxalign.model.strands import MINUS, other_strand
from jaxalign.model.table import Table
from jaxalign.pairs.api import filters_of

BINS = 50


def prepare(drawn: Pictures, request: Request) -> Request:
    """Refuse pictures that cannot be; the request, with paths for a dot plot."""
    if drawn.dot_plot:
        return replace(request, options=replace(request.options, output="alignment"))
    if request.options.output == "score":
        raise UsageError(
            "the picture shows identities, which --output score does not compute"
        )
    if (drawn.dendrogram or drawn.heat_map) and request.filters:
        word = "--dendrogram" if drawn.dendrogram else "--heat-map"
        raise UsageError(f"{word} shows all pairs: leave out the filters")
    return request


def check_counts(drawn: Pictures, count: int) -> None:
    """Refuse pictures of too few sequences, or of more than one could read."""
    if drawn.dot_plot and count != 1:
        raise UsageError(f"{drawn.dot_plot}: a dot plot shows one pair, not {count:,}")
    for path, kind, most in (
        (drawn.dendrogram, "dendrogram", picture.MOST_LEAVES),
        (drawn.heat_map, "heat map", picture.MOST_ROWS),
    ):
        if path and not 2 <= count <= most:
            raise UsageError(
                f"{path}: a {kind} shows 2 to {most:,} sequences, not {count:,}"
            )


def draw(drawn: Pictures, table: Table, request: Request, messages: Messages) -> None:
    """The pictures of a table."""
    if drawn.histogram:
        identities(drawn.histogram, table, request)
    if drawn.dendrogram:
        tree(drawn.dendrogram, table, request)
    if drawn.heat_map:
        heat_map(drawn.heat_map, table, request)
    if drawn.dot_plot and len(table):
        pair(drawn.dot_plot, table, messages.say)
    elif drawn.dot_plot:
        messages.warn(f"{drawn.dot_plot}: not drawn, the filters leave no pair")


def identities(path: str, table: Table, request: Request) -> None:
    """The histogram of a table's identities."""
    kind, cut = request.identity, request.options.min_identity
    shares = table.identity(kind)
    shares = shares[~np.isnan(shares)]
    edges = np.arange(BINS + 1) / BINS
    bins = np.searchsorted(edges, shares, side="right") - 1
    counts = np.bincount(np.clip(bins, 0, BINS - 1), minlength=BINS)
    title = counted(len(table), "pair")
    if request.filters:
        title += f" kept ({filters_of(request.options)})"
    picture.histogram(path, counts, edges, f"identity ({kind})", title, cut)


def tree(path: str, table: Table, request: Request) -> None:
    """The dendrogram of all pairs of a set."""
    drawn = api.dendrogram(1 - _identities(table, request))
    names = [table.queries.names[k] for k in drawn.order.tolist()]
    title = f"{counted(len(names), 'sequence')}, average linkage (UPGMA)"
    axis = f"1 - identity ({request.identity})"
    picture.dendrogram(path, drawn.lines, names, axis, title)


def heat_map(path: str, table: Table, request: Request) -> None:
    """The identities of all pairs of a set, in the order of its dendrogram."""
    identities, count = _identities(table, request), len(table.queries)
    shares = np.eye(count)
    shares[np.triu_indices(count, 1)] = identities
    order = api.dendrogram(1 - identities).order
    shares = np.maximum(shares, shares.T)[np.ix_(order, order)]
    axis, label = counted(count, "sequence"), f"identity ({request.identity})"
    names = [table.queries.names[k] for k in order.tolist()]
    picture.heat_map(path, shares, axis, axis, label, "viridis", names)


def _identities(table: Table, request: Request) -> np.ndarray:
    """Identities of the pairs i < j of a set, row by row; nan is 0."""
    off_diagonal = table["query"] != table["target"]
    return np.nan_to_num(table.identity(request.identity)[off_diagonal])


def pair(path: str, table: Table, say: Callable[[str], object]) -> None:
    """The dot plot of the single pair of a table, with its path; of nucleotides also
    of the opposite strand."""
    shown = table.alignment(0)
    scoring, reverse = shown.scoring, None
    letters, encode = scoring.alphabet, scoring.alphabet.encode
    query, target = encode(shown.query), encode(shown.target)
    if len(query) * len(target) <= MOST_SUMS or scoring.by_position:
        shades_of = partial(dot_plot, target=target, scores=scoring.scores)
        method = f"windows of {WINDOW}"
    else:
        count = 4 if letters.kind in NUCLEIC else letters.size
        count = 20 if letters.kind == "protein" else count
        word = word_length(len(query), len(target), count)
        shades_of = partial(word_dots, target=target, letters=count, word=word)
        method = f"equal words of {word}"
    say(f"drawing {path}: {method}")
    rows: Any = range(len(query)) if scoring.by_position else query
    shades = shades_of(rows)
    if letters.kind in NUCLEIC and not scoring.by_position:
        opposite = encode(other_strand(shown.query, letters))
        reverse = shades_of(opposite, backwards=True)
    line = corners(shown.operations, (shown.query_start, shown.target_start))
    size = len(query), len(target)
    minus = ", reverse complement" if shown.strand == MINUS else ""
    names = shown.query_name + minus, shown.target_name
    title = f"{shown.mode}, score {shown.score:.15g}, "
    title += f"{printed_beside(shown.identity(), 3, 1):.1%} identical"
    title += f"\n{method}" + (", blue: opposite strand" if reverse is not None else "")
    picture.dot_plot(path, shades, size, line, names, title, reverse)


def across(path: str, audit: api.Audit) -> None:
    """The identities of the pairs across parts."""
    counts, cut = audit.info["histogram"], audit.definition.cut
    below = audit.info["all"] - int(counts.sum())
    edges = np.arange(len(counts) + 1) / len(counts)
    title = f"{counted(audit.info['all'], 'pair')} across parts, "
    title += counted(audit.leaks, "leak")
    if below:
        title += f"; {below:,} {audit.definition.unshown} are not shown"
    axis = f"identity ({audit.definition.length})"
    picture.histogram(path, counts, edges, axis, title, cut)


def clusters(path: str, result: api.Clusters) -> None:
    """The sizes of clusters, each class twice as wide as the one before."""
    powers = np.ceil(np.log2(result.sizes)).astype(int)
    counts = np.bincount(powers, minlength=1)
    names = ["1", "2", *(f"{2 ** (k - 1) + 1}–{2**k}" for k in range(2, len(counts)))]
    title = f"{result.heading()} ({result.method}, cut {exact(result.definition.cut)})"
    axis = "sequences of a cluster"
    picture.bars(path, names[: len(counts)], counts, axis, title, "clusters")
