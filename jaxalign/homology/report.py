"""A report of an audit for people: one page of HTML, which needs no network."""

from collections.abc import Iterator
from html import escape

import numpy as np

from jaxalign.homology import charts
from jaxalign.homology.audit import Audit
from jaxalign.homology.certificate import sha256_of
from jaxalign.homology.links import BINS, EDGES
from jaxalign.homology.result import Split
from jaxalign.homology.within import Within, within_parts
from jaxalign.model.names import written
from jaxalign.model.versions import package_versions

PACKAGES = ("jaxalign", "jax", "jaxlib", "numpy", "scipy")
MOST_LABELS = 12  # with a colour; the others are counted together
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; color: #222; background: #fff; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; } td, th { padding: .2rem .7rem; text-align: left;
  border-bottom: 1px solid #ddd; } td.n, th.n { text-align: right; }
figure { margin: 1rem 0; } figcaption { color: #444; font-size: .9rem; }
svg { width: 100%; height: auto; font: 11px sans-serif; } svg .g { stroke: #e4e4e4; }
pre { overflow-x: auto; background: #f6f6f6; padding: .7rem; font-size: 12px; }
summary { cursor: pointer; } .ok { color: #1c6b34; } .leak { color: #a3261b; }
"""


def report(audit: Audit, split: Split | None = None) -> list[str]:
    """The lines of the page; ``split`` has the labels, where there are any."""
    within = within_parts(audit.parts, audit.definition, split)
    sections = (
        _verdict(audit),
        _parts(audit, split),
        _identities(audit, within),
        _components(within),
        _labels(split),
        _worst(audit),
        _small_print(audit),
    )
    head = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(audit.heading())}</title><style>{STYLE}</style></head><body>\n"
    )
    lines = (f"{line}\n" for section in sections for line in section)
    return [head, *lines, "</body></html>\n"]


def _verdict(audit: Audit) -> Iterator[str]:
    yield "<h1>Audit of a split</h1>"
    kind, says = ("ok", "holds") if audit.holds else ("leak", "does not hold")
    yield f'<p class="{kind}"><strong>The split {says}: {escape(audit.heading())}.'
    yield "</strong></p>"
    yield "<p>A leak is a pair of sequences of different parts with "
    yield f"<code>{escape(str(audit.definition))}</code>.</p>"


def _parts(audit: Audit, split: Split | None) -> Iterator[str]:
    yield "<h2>Parts</h2><table><tr><th>part</th><th class=n>sequences</th>"
    yield "<th class=n>share</th><th class=n>asked for</th>"
    yield "<th class=n>in a leak</th></tr>"
    whole = max(sum(map(len, audit.parts)), 1)
    asked = [""] * len(audit.names)
    if split is not None:
        asked = [f"{share:.2%}" for share in split.shares.tolist()]
    rows = zip(audit.names, audit.parts, asked, audit.leaking, strict=True)
    for name, one, share, leaking in rows:
        yield (
            f"<tr><td>{escape(name)}</td><td class=n>{len(one):,}</td>"
            f"<td class=n>{len(one) / whole:.2%}</td><td class=n>{share}</td>"
            f"<td class=n>{int(leaking.sum()):,}</td></tr>"
        )
    yield "</table>"
    if split is not None:
        yield f"<p>{escape(split.heading())}; {escape(split.nearness())}.</p>"


def _identities(audit: Audit, within: Within) -> Iterator[str]:
    yield "<h2>Identities</h2>"
    across = audit.info["all"], audit.info["histogram"]
    for name, colour, (pairs, histogram) in (
        ("within parts", charts.COLOURS[0], (within.pairs, within.histogram)),
        ("across parts", charts.COLOURS[1], across),
    ):
        yield _histogram(audit, name, colour, pairs, histogram)


def _histogram(audit: Audit, name: str, colour: str, pairs: int, histogram) -> str:
    """Bars of identities, and left of them what is known to be below."""
    shown, cut = int(histogram.sum()), audit.definition.cut
    rest = pairs - shown
    full = audit.definition.options.full_histogram
    other = "not compared" if full else "proved below the cut"
    labels = [other, "", *(f"{edge:.2f}" for edge in EDGES[:-1])]
    tenths = (f"{k / BINS:.1f}" if k % (BINS // 10) == 0 else "" for k in range(BINS))
    colours = [charts.PROVED, "", *[colour] * len(histogram)]
    at = 2 + cut * len(histogram)
    bars = charts.log_bars(
        f"Identities of pairs {name}",
        labels,
        [rest, 0, *histogram.tolist()],
        colours,
        at,
        ["", "", *tenths],
    )
    above = int(histogram[EDGES[:-1] >= cut - 1e-12].sum())
    caption = (
        f"Identities of {pairs:,} pairs {name}, on a logarithmic scale. The grey bar "
        f"is {rest:,} pairs {other}; the dashed line is the cut, {cut:g}"
    )
    return charts.figure(bars, f"{caption}; {above:,} pairs are in bars above it.")


def _components(within: Within) -> Iterator[str]:
    sizes = within.component_sizes
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


def _labels(split: Split | None) -> Iterator[str]:
    if split is None or split.labels is None or split.label_counts is None:
        return
    names, counts = list(split.labels.names), split.label_counts
    if len(names) > MOST_LABELS:
        order = np.argsort(-counts.sum(axis=0), kind="stable")
        first, others = order[: MOST_LABELS - 1], order[MOST_LABELS - 1 :]
        rest = counts[:, others].sum(axis=1)
        counts = np.concatenate([counts[:, first], rest[:, None]], axis=1)
        names = [*(names[k] for k in first.tolist()), f"{len(others)} others"]
    rows = list(zip(split.names, counts.tolist(), strict=True))
    rows.append(("all", counts.sum(axis=0).tolist()))
    yield "<h2>Labels</h2>"
    yield charts.figure(
        charts.stacked("Labels of every part", rows, names),
        "Shares of each label in every part and in all parts together; they differ by "
        f"{split.label_error:.2%} at most.",
    )


def _worst(audit: Audit) -> Iterator[str]:
    yield f"<h2>The {len(audit.worst['identity'])} worst pairs across parts</h2>"
    yield (
        "<p>They are exact below the cut too. The identity is that of the optimal "
        "alignment with the most identical pairs; another optimal one may be "
        "shown.</p>"
    )
    pairs = zip(audit.lines(), audit.alignments.alignments(), strict=True)
    for line, alignment in pairs:
        yield f"<details><summary>{escape(written(line))}</summary>"
        yield f"<pre>{escape(str(alignment))}</pre></details>"


def _small_print(audit: Audit) -> Iterator[str]:
    info = audit.info
    yield "<h2>How it was computed</h2>"
    yield f"<p>{info['all']:,} pairs across, {info['aligned']:,} of them aligned.</p>"
    yield "<ul>"
    for bound, count in info["excluded"].items():
        yield f"<li>{count:,} excluded by proof: {escape(bound)}</li>"
    yield "</ul><table>"
    for name, one in zip(audit.names, audit.parts, strict=True):
        yield f"<tr><td>SHA-256 of {escape(name)}</td>"
        yield f"<td><code>{sha256_of(one)}</code></td></tr>"
    for name, number in package_versions(PACKAGES).items():
        yield f"<tr><td>{escape(name)}</td><td>{escape(number)}</td></tr>"
    yield "</table>"
