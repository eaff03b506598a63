"""The report of an audit: what it says, that it is one sound page, and a browser."""

import json
import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser

import brute_force as bf
import numpy as np
import pytest

import jaxalign
from jaxalign.model import show

SCORING = jaxalign.Scoring(match=2, mismatch=-1, gap_open=bf.OPEN, gap_extend=bf.EXTEND)
VOID = {"meta", "rect", "line"}
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


class Page(HTMLParser):
    """Opens and closes every element, and keeps titles, captions and attributes."""

    def __init__(self, text: str):
        super().__init__()
        self.open, self.texts, self.attributes = [], {}, []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        if tag not in VOID or not self.get_starttag_text().endswith("/>"):
            if tag != "meta":
                self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)


def drawn(**options):
    """An audit of a split with labels, as a page; some names are no HTML."""
    random = np.random.default_rng(3)
    words = bf.random_words(random, 40, 20)
    named = {f"<w{k}>&\"|'": word for k, word in enumerate(words)}
    labels = [f"kind<{k % 15}>" for k in range(40)]
    divided = jaxalign.split(
        named,
        SCORING,
        min_identity=0.6,
        folds=3,
        labels=labels,
        too_large="keep",
        link="whole",
    )
    found = jaxalign.audit(divided, SCORING, min_identity=0.6, **options, link="whole")
    text = found.report(divided)
    return words, divided, found, text


def test_what_a_report_says():
    words, divided, found, text = drawn()
    page = Page(text)
    assert page.open == [] and text.startswith("<!DOCTYPE html>")
    assert page.texts["strong"][0].startswith("The split holds: no leak in")
    assert page.texts["h2"][:4] == ["Parts", "Identities", "Components", "Labels"]
    assert page.texts["h2"][4] == "The 10 worst pairs across parts"
    within, across, components, labels = page.texts["figcaption"]
    shares = bf.identities(words)
    same = divided.part[:, None] == divided.part[None, :]
    upper = np.triu(np.ones_like(same), 1)
    count = int((same & upper).sum())
    above = int((same & upper & (shares >= 0.6)).sum())
    assert f"of {count:,} pairs within parts" in within
    assert f"{count - above:,} pairs proved below the cut" in within
    assert f"the cut, 0.6; {above:,} pairs are in bars above it" in within
    assert "across parts" in across and "0 pairs are in bars above it" in across
    assert f"{divided.groups.max() + 1:,} components" in components
    assert f"{divided.label_error:.2%} at most" in labels
    assert "4 others" in text and len(page.texts["pre"]) == 10
    assert "<w" not in text.replace("<w>", "") and "&lt;w" in text
    assert page.texts["summary"] == found.lines()


def test_a_report_needs_no_network():
    text = drawn()[-1]
    page = Page(text)
    assert not re.search(r"https?:|<script|<link|@import|url\(", text)
    assert not {"src", "href"} & {name for name, _ in page.attributes}
    assert text.count("<svg") == text.count('role="img"') == 4


def test_a_full_histogram_has_all_pairs():
    words, divided, found, text = drawn(full_histogram=True)
    captions = Page(text).texts["figcaption"]
    shares = bf.identities(words)
    across = divided.part[:, None] != divided.part[None, :]
    across &= np.triu(np.ones_like(across), 1)
    want = np.histogram(shares[across & np.isfinite(shares)] + 1e-12, 50, (0, 1.02))
    assert found.info["histogram"].sum() == want[0].sum()
    missing = int((across & ~np.isfinite(shares)).sum())
    assert f"The grey bar is {missing:,} pairs not compared" in captions[1]
    assert found.info["aligned"] == found.info["all"] == int(across.sum())


@pytest.mark.parametrize("full", [False, True])
def test_a_report_says_no_pair_of_low_score_to_be_below_the_cut(full):
    """15 of 40 letters are identical, which is above the cut."""
    shared = "CGGCTCGACTGCATG"
    parts = {"train": ["A" * 25 + shared], "test": ["C" * 25 + shared]}
    gate = {"link": "local", "min_score": 20, "full_histogram": full}
    found = jaxalign.audit(parts, jaxalign.Scoring("NUC"), min_identity=0.3, **gate)
    assert not found.holds
    gate["min_score"] = 80
    found = jaxalign.audit(parts, jaxalign.Scoring("NUC"), min_identity=0.3, **gate)
    assert found.holds and "is 1 pair below score 80" in found.report()


def test_a_report_of_leaks_and_of_no_split():
    parts = {"train": ["ACGTACGT"], "test": ["ACGTACGA", ""], "none": []}
    found = jaxalign.audit(parts, SCORING, min_identity=0.5, link="whole")
    text = found.report()
    page = Page(text)
    assert "The split does not hold: 1 leak in 2 pairs" in text
    cells = page.texts["td"]
    assert cells[:4] == ["train", "1", "33.33%", "1"]
    assert "Labels" not in page.texts["h2"]


def test_bars_are_as_high_as_their_logarithms():
    chart = show.log_bars("t", ["a", "b", "c"], [1000, 10, 0], ["#1", "#2", "#3"])
    heights = [float(x) for x in re.findall(r'height="([\d.]+)" fill', chart)]
    assert len(heights) == 2 and heights[0] == pytest.approx(3 * heights[1], abs=0.2)
    assert "<title>a: 1,000 pairs</title>" in chart
    stacked = show.stacked_bars("t", [("p", [3, 1])], ["x", "y"])
    widths = [float(x) for x in re.findall(r'width="([\d.]+)" height="20"', stacked)]
    assert widths[0] == pytest.approx(3 * widths[1], abs=0.1)
    assert "p, x: 3 (75.0%)" in stacked


# What a browser has laid out, written where --dump-dom shows it.
MEASURE = """<script>
document.body.dataset.boxes = JSON.stringify([...document.querySelectorAll("svg")].map(
  chart => [...chart.querySelectorAll("rect")].map(bar => {
    const box = bar.getBoundingClientRect();
    return [box.left, box.right, box.top, box.bottom, innerWidth];
  })));
</script></body>"""


@pytest.mark.skipif(BROWSER is None, reason="no browser")
def test_a_browser_shows_the_report(tmp_path):
    text = drawn()[-1]
    path = tmp_path / "report.html"
    path.write_text(text.replace("</body>", MEASURE), encoding="utf-8")
    words = (BROWSER, "--headless", "--no-sandbox", "--disable-gpu")
    words += (f"--user-data-dir={tmp_path / 'profile'}", "--timeout=100000")
    words += ("--window-size=900,1200", "--dump-dom", path.as_uri())
    dom = subprocess.run(words, capture_output=True, text=True, timeout=120).stdout
    assert dom.count("<figcaption>") == 4 and dom.count("<details>") == 10
    assert "The split holds" in dom and "&lt;w" in dom
    boxes = json.loads(unescape(re.search(r'data-boxes="([^"]*)"', dom)[1]))
    assert [len(chart) for chart in boxes] == [
        text.split("<svg")[k].count("<rect") for k in range(1, 5)
    ]
    bottom = 0.0
    for chart in boxes:
        left, right, top, low, wide = map(np.array, zip(*chart, strict=True))
        assert (left >= 0).all() and (right <= wide).all() and (top > bottom).all()
        assert (right > left).all() and (low > top).all()
        bottom = low.max()
