"""``--plot`` and ``--dendrogram``: what is checked before the work, and drawn after."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from jaxalign.cli.request import Pictures, Request
from jaxalign.errors import UsageError
from jaxalign.homology import api
from jaxalign.io import picture
from jaxalign.model.numbers import exact, printed_beside
from jaxalign.model.operations import corners
from jaxalign.model.show import counted, dot_plot
from jaxalign.model.strands import MINUS
from jaxalign.model.table import Table
from jaxalign.pairs.api import filters_of

BINS = 50


def prepare(drawn: Pictures, request: Request) -> Request:
    """Refuse pictures that cannot be; the request, with paths for a dot plot."""
    if drawn.dot_plot:
        return replace(request, options=replace(request.options, output="alignment"))
    if request.options.output == "score":
        raise UsageError("a picture of identities: --output score computes none")
    if drawn.dendrogram and request.filters:
        raise UsageError("--dendrogram is of all pairs: leave out the filters")
    return request


def check_counts(drawn: Pictures, count: int) -> None:
    """Refuse pictures of too few sequences, or of more than one could read."""
    if drawn.dot_plot and count != 1:
        raise UsageError(f"{drawn.dot_plot}: a dot plot has one pair, not {count:,}")
    if drawn.dendrogram and not 2 <= count <= picture.MOST_LEAVES:
        raise UsageError(
            f"{drawn.dendrogram}: a dendrogram has 2 to {picture.MOST_LEAVES:,} "
            f"sequences, not {count:,}"
        )


def draw(
    drawn: Pictures, table: Table, request: Request, warn: Callable[[str], object]
) -> None:
    """The pictures of a table."""
    if drawn.histogram:
        identities(drawn.histogram, table, request)
    if drawn.dendrogram:
        tree(drawn.dendrogram, table, request)
    if drawn.dot_plot and len(table):
        pair(drawn.dot_plot, table)
    elif drawn.dot_plot:
        warn(f"{drawn.dot_plot}: not drawn, the filters leave no pair")


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
    off_diagonal = table["query"] != table["target"]
    distances = 1 - np.nan_to_num(table.identity(request.identity)[off_diagonal])
    drawn = api.dendrogram(distances)
    names = [table.queries.names[k] for k in drawn.order.tolist()]
    title = f"{counted(len(names), 'sequence')}, average linkage (UPGMA)"
    axis = f"1 - identity ({request.identity})"
    picture.dendrogram(path, drawn.lines, names, axis, title)


def pair(path: str, table: Table) -> None:
    """The dot plot of the single pair of a table, with its path."""
    shown = table.alignment(0)
    codes = shown.scoring.alphabet.encode
    query, target = codes(shown.query), codes(shown.target)
    rows = range(len(query)) if shown.scoring.by_position else query
    shades = dot_plot(rows, target, shown.scoring.scores)
    line = corners(shown.operations, (shown.query_start, shown.target_start))
    size = len(query), len(target)
    minus = ", reverse complement" if shown.strand == MINUS else ""
    names = shown.query_name + minus, shown.target_name
    title = f"{shown.mode}, score {shown.score:.15g}, "
    title += f"{printed_beside(shown.identity(), 3, 1):.1%} identical"
    picture.dot_plot(path, shades, size, line, names, title)


def across(path: str, audit: api.Audit) -> None:
    """The identities of the pairs across parts."""
    counts, cut = audit.info["histogram"], audit.definition.cut
    below = audit.info["all"] - int(counts.sum())
    edges = np.arange(len(counts) + 1) / len(counts)
    title = f"{counted(audit.info['all'], 'pair')} across parts, "
    title += counted(audit.leaks, "leak")
    if below:
        title += f"; {below:,} proved below the cut are not shown"
    axis = f"identity ({audit.definition.options.identity})"
    picture.histogram(path, counts, edges, axis, title, cut)


def clusters(path: str, result: api.Clusters) -> None:
    """The sizes of clusters, each class twice as wide as the one before."""
    powers = np.ceil(np.log2(result.sizes)).astype(int)
    counts = np.bincount(powers, minlength=1)
    names = ["1", "2", *(f"{2 ** (k - 1) + 1}–{2**k}" for k in range(2, len(counts)))]
    title = f"{result.heading()} ({result.method}, cut {exact(result.definition.cut)})"
    axis = "sequences of a cluster"
    picture.bars(path, names[: len(counts)], counts, axis, title, "clusters")
