"""A report of an audit for people: one page of HTML, which needs no network."""

from collections.abc import Collection, Iterable, Iterator
from html import escape

import numpy as np

from jaxalign.homology.certificate import sha256_of
from jaxalign.homology.links import BINS, EDGES
from jaxalign.homology.options import Definition
from jaxalign.homology.result import Split
from jaxalign.homology.within import Within
from jaxalign.model import charts
from jaxalign.model.alphabet import Sequences
from jaxalign.model.names import written
from jaxalign.model.table import Table
from jaxalign.model.versions import package_versions

PACKAGES = ("jaxalign", "jax", "jaxlib", "numpy", "scipy")
MOST_LABELS = 12  # with a colour; the others are counted together


def verdict(heading: str, holds: bool, definition: Definition) -> Iterator[str]:
    """Whether the split holds, and by which definition."""
    yield "<h1>Audit of a split</h1>"
    kind, says = ("ok", "holds") if holds else ("leak", "does not hold")
    yield f'<p class="{kind}"><strong>The split {says}: {escape(heading)}.'
    yield "</strong></p>"
    yield "<p>A leak is a pair of sequences of different parts with "
    yield f"<code>{escape(str(definition))}</code>.</p>"


def parts(
    names: Iterable[str],
    sets: Collection[Sequences],
    leaking: Iterable[np.ndarray],
    split: Split | None,
) -> Iterator[str]:
    """The parts, and how many of their sequences are in a leak."""
    yield "<h2>Parts</h2><table><tr><th>part</th><th class=n>sequences</th>"
    yield "<th class=n>share</th><th class=n>asked for</th>"
    yield "<th class=n>in a leak</th></tr>"
    count = max(sum(map(len, sets)), 1)
    shares = [""] * len(sets)
    if split is not None:
        shares = [f"{share:.2%}" for share in split.shares.tolist()]
    for name, sequences, share, leaks in zip(names, sets, shares, leaking, strict=True):
        size = len(sequences)
        yield (
            f"<tr><td>{escape(name)}</td><td class=n>{size:,}</td>"
            f"<td class=n>{size / count:.2%}</td><td class=n>{share}</td>"
            f"<td class=n>{int(leaks.sum()):,}</td></tr>"
        )
    yield "</table>"
    if split is not None:
        yield f"<p>{escape(split.heading())}; {escape(split.nearness())}.</p>"


def identities(
    info: dict, within: Within | None, definition: Definition
) -> Iterator[str]:
    """Histograms of identities within parts and across them."""
    yield "<h2>Identities</h2>"
    across = "across parts", info["all"], info["histogram"]
    if within is not None:
        inside = "within parts", within.pairs, within.histogram
        yield _histogram(*inside, charts.COLOURS[0], definition)
    yield _histogram(*across, charts.COLOURS[1], definition)


def _histogram(
    name: str, pairs: int, histogram: np.ndarray, colour: str, definition: Definition
) -> str:
    """Bars of identities, and left of them what is known to be below."""
    below, cut = pairs - int(histogram.sum()), definition.cut
    full = definition.options.full_histogram
    other = "not compared" if full else "proved below the cut"
    labels = [other, "", *(f"{edge:.2f}" for edge in EDGES[:-1])]
    tenths = (f"{k / BINS:.1f}" if k % (BINS // 10) == 0 else "" for k in range(BINS))
    colours = [charts.PROVED, "", *[colour] * len(histogram)]
    at = 2 + cut * len(histogram)
    bars = charts.log_bars(
        f"Identities of pairs {name}",
        labels,
        [below, 0, *histogram.tolist()],
        colours,
        at,
        ["", "", *tenths],
    )
    above = int(histogram[EDGES[:-1] >= cut - 1e-12].sum())
    caption = (
        f"Identities of {pairs:,} pairs {name}, on a logarithmic scale. The grey bar "
        f"is {below:,} pairs {other}; the dashed line is the cut, {cut:g}"
    )
    return charts.figure(bars, f"{caption}; {above:,} pairs are in bars above it.")


def components(sizes: np.ndarray) -> Iterator[str]:
    """The sizes of components as a chart."""
    if not len(sizes):
        return
    powers = np.ceil(np.log2(sizes)).astype(int)
    counts = np.bincount(powers).tolist()
    names = ["1", "2", *(f"{2 ** (k - 1) + 1}–{2**k}" for k in range(2, len(counts)))]
    yield "<h2>Components</h2>"
    bars = charts.log_bars(
        "Sizes of components",
        names[: len(counts)],
        counts,
        [charts.COLOURS[2]] * len(counts),
        unit="components",
    )
    yield charts.figure(
        bars,
        f"{len(sizes):,} components of sequences that are connected by pairs at or "
        f"above the cut, by their size; the largest has {int(sizes.max()):,}.",
    )


def labels(split: Split | None) -> Iterator[str]:
    """Shares of labels in every part, where a split has labels."""
    if split is None or split.labels is None or split.label_counts is None:
        return
    names, counts = list(split.labels.names), split.label_counts
    if len(names) > MOST_LABELS:
        order = np.argsort(-counts.sum(axis=0), kind="stable")
        first, others = order[: MOST_LABELS - 1], order[MOST_LABELS - 1 :]
        last = counts[:, others].sum(axis=1, keepdims=True)
        counts = np.concatenate([counts[:, first], last], axis=1)
        names = [*(names[k] for k in first.tolist()), f"{len(others)} others"]
    rows = list(zip(split.names, counts.tolist(), strict=True))
    rows.append(("all", counts.sum(axis=0).tolist()))
    yield "<h2>Labels</h2>"
    yield charts.figure(
        charts.stacked("Labels of every part", rows, names),
        "Shares of each label in every part and in all parts together; they differ by "
        f"{split.label_error:.2%} at most.",
    )


def worst_pairs(lines: Collection[str], alignments: Table) -> Iterator[str]:
    """The worst pairs, each with its alignment."""
    yield f"<h2>The {len(lines)} worst pairs across parts</h2>"
    yield (
        "<p>They are exact below the cut too. The identity is that of the optimal "
        "alignment with the most identical pairs; another optimal one may be "
        "shown.</p>"
    )
    for line, alignment in zip(lines, alignments.alignments(), strict=True):
        yield f"<details><summary>{escape(written(line))}</summary>"
        yield f"<pre>{escape(str(alignment))}</pre></details>"


def computation(
    names: Iterable[str], sets: Iterable[Sequences], info: dict
) -> Iterator[str]:
    """Pairs that were aligned or excluded, digests of the parts, and versions."""
    yield "<h2>How it was computed</h2>"
    yield f"<p>{info['all']:,} pairs across, {info['aligned']:,} of them aligned.</p>"
    yield "<ul>"
    for bound, count in info["excluded"].items():
        yield f"<li>{count:,} excluded by proof: {escape(bound)}</li>"
    yield "</ul><table>"
    for name, sequences in zip(names, sets, strict=True):
        yield f"<tr><td>SHA-256 of {escape(name)}</td>"
        yield f"<td><code>{sha256_of(sequences)}</code></td></tr>"
    for name, number in package_versions(PACKAGES).items():
        yield f"<tr><td>{escape(name)}</td><td>{escape(number)}</td></tr>"
    yield "</table>"
