"""Every public class with large and odd contents: what ``repr`` and notebooks show."""

from html.parser import HTMLParser
from inspect import isclass

import numpy as np
import pytest

import jaxalign
from jaxalign import Scoring

MOST, MOST_HTML = 2000, 100_000  # characters
ODD = "<b>&\t\x1b\u2028'\"é" + "n" * 4000
LONG = "MKTAYIAKQRLWGHEDSC" * 6000
CUT = {"min_identity": 0.5}
PARTS = {f"part-{k:0200}": 1 / 40 for k in range(40)}


def named(texts):
    return [(f"{ODD}{k}", text) for k, text in enumerate(texts)]


def short_texts(count, length=3):
    letters = np.array(list("MKTAYIWR"))
    draw = np.random.default_rng(1).integers(len(letters), size=(count, length))
    return ["".join(row) for row in letters[draw]]


SET = named(short_texts(450))
PAIRS = [(SET[k][0], SET[j][0]) for k in range(90) for j in range(100, 200)]


def long_alignment():
    runs = np.tile(
        np.array([5 << 4, 1 << 4 | 1, 1 << 4 | 2], np.uint32), len(LONG) // 6
    )
    spans = 0, len(LONG), 0, len(LONG)
    return jaxalign.Alignment(
        LONG, LONG[::-1], 1.5, *spans, runs, Scoring(), "global",
        query_name=ODD, target_name=ODD,
    )  # fmt: skip


def triple():
    texts = [LONG[:k] for k in (70, 80, 90)]
    return jaxalign.align_three(*named(texts), traceback="auto")


def family():
    database = named([LONG[:60]] * 3)
    return jaxalign.search_family(database[:1], database, iterations=1)[0]


def complex_():
    chains = {ODD: LONG[:60], f"{ODD}2": LONG[30:99]}
    names = {f"{ODD} OX=9": LONG[:60], f"{ODD}2 OX=9": LONG[30:99]}
    return jaxalign.search_complexes({ODD: chains}, names, iterations=1)[0]


def hard():
    return jaxalign.hard_alignment(np.ones((300, 4, 5)), gap_open=1.0, gap_extend=0.5)


def distribution():
    return jaxalign.AlignmentDistribution(
        np.ones((300, 4, 5)), gap_open=1.0, gap_extend=0.5
    )


def scoring():
    letters = "".join(map(chr, range(33, 127)))
    letters = "".join(dict.fromkeys(c for c in letters if c not in ">;#-."))
    return Scoring((letters, np.eye(len(letters))), gap_open=32767, gap_extend=1)


RESULTS = {
    "Table": lambda: jaxalign.align_all(SET, output="identity"),
    "Alignment": long_alignment,
    "TripleAlignment": triple,
    "TripleTable": lambda: jaxalign.align_triples([named(["MKTA", "MTA", "MKT"])] * 40),
    "TriplePlan": lambda: jaxalign.plan_three(*named([LONG[:300]] * 3)),
    "Plan": lambda: jaxalign.plan(SET),
    "Part": lambda: jaxalign.plan(SET, part_rows=64).parts[0],
    "Sequences": lambda: jaxalign.align_all(SET, output="score").queries,
    "Alphabet": lambda: scoring().alphabet,
    "Scoring": scoring,
    "Profile": lambda: jaxalign.Profile(ODD, np.ones((9, 24)), Scoring().alphabet),
    "Clusters": lambda: jaxalign.cluster(SET, **CUT),
    "Split": lambda: jaxalign.split(SET, parts=PARTS, too_large="keep", **CUT),
    "Purge": lambda: jaxalign.purge(SET, SET[:200], **CUT),
    "Edges": lambda: jaxalign.Edges(
        ([n for n, _ in SET], [n for n, _ in SET], [0.5] * len(SET)), at_least=0.5
    ),
    "Nearest": lambda: jaxalign.nearest(SET[:20], SET),
    "Audit": lambda: jaxalign.audit({n: [(n, t)] for n, t in SET[:25]}, **CUT),
    "PairSplit": lambda: jaxalign.split_pairs(
        SET, PAIRS, cold="none", parts=PARTS, **CUT
    ),
    "PairAudit": lambda: jaxalign.audit_pairs(
        SET, PAIRS[::40][:60], [f"{ODD}{k % 20}" for k in range(60)], **CUT
    ),
    "RepertoireGraph": lambda: jaxalign.repertoire_graph(short_texts(3000, 12)),
    "EdgeBlock": lambda: next(iter(jaxalign.stream_repertoire(short_texts(900, 12)))),
    "FamilyAlignment": family,
    "ComplexAlignment": complex_,
    "HardAlignments": hard,
    "AlignmentDistribution": distribution,
    "ScoreBlock": lambda: next(
        iter(
            jaxalign.stream_hard_matrix(
                np.ones((30, 3, 2)), gap_open=1.0, gap_extend=0.5
            )
        )
    ),
    "LengthBucket": lambda: jaxalign.bucket_lengths(
        np.arange(9999), np.arange(9999), shapes=2
    )[0],
}
SLOW = {"Audit", "PairAudit", "ScoreBlock", "TripleAlignment", "TripleTable"}
PUBLIC = {name for name in jaxalign.__all__ if isclass(getattr(jaxalign, name))}
ERRORS = {name for name in PUBLIC if issubclass(getattr(jaxalign, name), Exception)}


def test_every_public_class_is_drawn():
    assert {*RESULTS} == PUBLIC - ERRORS


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_errors_are_short(name):
    assert len(repr(getattr(jaxalign, name)(LONG))) <= MOST


def reached(value, depth=3):
    """The value and the objects of the project that it holds, by their paths."""
    if type(value).__module__.startswith("jaxalign"):
        yield type(value).__name__, value
        names = getattr(value, "_fields", None) or getattr(value, "__dict__", ())
        held = [getattr(value, name) for name in names]
    elif isinstance(value, (list, tuple)):
        held = value[:2]
    elif isinstance(value, dict):
        held = list(value.values())[:50]
    else:
        return
    for part in held if depth else ():
        yield from reached(part, depth - 1)


class Balanced(HTMLParser):
    """Check that tags close in order, and collect what spans of each class show."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.tags, self.runs = [], "", set(), []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag != "br":
            self.open.append(tag)
        if tag == "span":
            self.runs.append((dict(attrs)["class"], ""))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1] == "span":
            style, text = self.runs[-1]
            self.runs[-1] = style, text + data


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=[pytest.mark.slow] * (x in SLOW)) for x in RESULTS],
)
def test_results_of_any_size_are_short(name):
    result = RESULTS[name]()
    assert type(result).__name__ == name
    for path, value in reached(result):
        text = repr(value)
        assert len(text) <= MOST and "\n" not in text, (path, len(text), text[:200])
    if hasattr(result, "_repr_html_"):
        html = result._repr_html_()
        assert len(html) <= MOST_HTML, len(html)
        assert "b" not in Balanced(html).tags and "\x1b" not in html


def test_notebooks_show_columns_in_colours():
    query, target = "MKTAYIAKQRQISFVKSHFSRQ" * 5, "MKTAYVAKQRQISDVKSHFS" * 5
    alignment = jaxalign.align(("<q>", query), target)
    shown = Balanced(alignment._repr_html_())
    rows = alignment.rows()
    assert "".join(rows[0][:60]) in shown.text and "<q>" in shown.text
    legend, runs = shown.runs[:4], shown.runs[4:]
    assert [text for _, text in legend] == [
        "identical", "scores above 0", "scores 0 or less", "gap"
    ]  # fmt: skip
    same, good, poor, gap = (style for style, _ in legend)
    scoring, columns = jaxalign.Scoring(), []
    letters = scoring.alphabet.letters
    for a, b in zip(*rows, strict=True):
        kind = gap if "-" in (a, b) else same if a == b else None
        if kind is None:
            score = scoring.scores[letters.index(a), letters.index(b)]
            kind = good if score > 0 else poor
        columns.append((kind, a, b))
    blocks = (columns[k : k + 60] for k in range(0, len(columns), 60))
    expected = [(x[0], x[row]) for part in blocks for row in (1, 2) for x in part]
    assert [(style, x) for style, text in runs for x in text] == expected


def test_notebooks_say_what_a_long_alignment_hides():
    html = long_alignment()._repr_html_()
    assert f"{len(long_alignment().rows()[0]) - 20 * 60:,} more columns" in html
