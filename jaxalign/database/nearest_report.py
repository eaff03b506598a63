"""A report of ``nearest`` for people: one page of HTML, which needs no network."""

from collections.abc import Iterator
from html import escape

import numpy as np

from jaxalign.database.nearest_result import Nearest
from jaxalign.model import charts
from jaxalign.model.page import page
from jaxalign.model.versions import package_versions

BINS, SHOWN = 50, 20
PACKAGES = ("jaxalign", "jax", "jaxlib", "numpy")


def report(near: Nearest) -> str:
    """The whole page."""
    sections = _bands(near), _identities(near), _nearest(near), _computation(near)
    return page(near.heading(), sections)


def histogram(near: Nearest) -> tuple[np.ndarray, np.ndarray]:
    """(test sequences by the identity of their nearest, edges)."""
    identity = near.identity[(near.rank == 1) & ~np.isnan(near.identity)]
    edges = np.arange(BINS + 1) / BINS
    bins = np.searchsorted(edges, identity, side="right") - 1
    return np.bincount(np.clip(bins, 0, BINS - 1), minlength=BINS), edges


def _bands(near: Nearest) -> Iterator[str]:
    yield f"<h1>Nearest sequences</h1><p><strong>{escape(near.heading())}.</strong></p>"
    yield f"<p>Identity is <code>{escape(near.definition)}</code>: the largest of the "
    yield "whole corpus, exactly." if near.by == "identity" else "nearest by score."
    yield "</p><h2>Bands</h2><table><tr><th>identity</th><th class=n>tests</th>"
    yield "<th class=n>share</th></tr>"
    total = max(len(near.tests), 1)
    for name, count in zip(near.band_names, near.band_counts.tolist(), strict=True):
        yield f"<tr><td>{escape(name)}</td><td class=n>{count:,}</td>"
        yield f"<td class=n>{count / total:.1%}</td></tr>"
    yield "</table>"


def _identities(near: Nearest) -> Iterator[str]:
    counts, edges = histogram(near)
    tenths = [f"{k / BINS:.1f}" if k % (BINS // 10) == 0 else "" for k in range(BINS)]
    bars = charts.log_bars(
        "Identity of the nearest",
        [f"{edge:.2f}" for edge in edges[:-1]],
        counts.tolist(),
        [charts.COLOURS[0]] * BINS,
        marks=tenths,
        unit="test sequences",
    )
    yield "<h2>Identities</h2>"
    yield charts.figure(bars, "Test sequences by the identity of their nearest.")


def _nearest(near: Nearest) -> Iterator[str]:
    lines = near.lines(SHOWN)
    yield f"<h2>The {len(lines)} with the nearest</h2><pre>"
    yield escape("\n".join(lines))
    yield "</pre>"


def _computation(near: Nearest) -> Iterator[str]:
    yield "<h2>How it was computed</h2>"
    yield f"<p>{near.comparisons()}.</p><table>"
    for name, number in package_versions(PACKAGES).items():
        yield f"<tr><td>{escape(name)}</td><td>{escape(number)}</td></tr>"
    yield "</table>"
