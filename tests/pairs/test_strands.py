"""Pairs of either strand: beside the oracle's scores of reverse complements by hand."""

import re

import numpy as np
import oracle
import pytest
from cases import same_tables

import jaxalign
from jaxalign.errors import UsageError
from jaxalign.model.scoring import as_scoring
from jaxalign.pairs.long import align as long_pieces
from jaxalign.pairs.long import fill, pruning

SCORING = jaxalign.Scoring("NUC", 7, 2)
PARTNER = dict(zip("ACGTRYSWKMBDHVN", "TGCAYRSWMKVHDBN", strict=True))
ENDS = [
    {"mode": "global"},
    {"mode": "local"},
    {"mode": "semiglobal"},
    {"mode": "global", "free_ends": ("query_start",)},
    {"mode": "global", "free_ends": ("target_end", "query_end")},
]
SPANS = ("query_start", "query_end", "target_start", "target_end")


def turned(text):
    return "".join(PARTNER[letter] for letter in text)[::-1]


def texts():
    """Queries and targets; of the first targets some part is on the minus strand."""
    rng = np.random.default_rng(5)

    def text(length, letters="ACGT"):
        return "".join(rng.choice(list(letters), length))

    queries = [text(31), text(24), text(17, "ACGTNRY"), text(40), "ACGTACGT", "", "A"]
    targets = [text(4) + turned(queries[0])[3:], turned(queries[1])[:9] + text(11)]
    targets += [turned(queries[2]), queries[3][:30] + text(3), "ACGTACG", "AC", ""]
    return queries, targets


def want(query, target, mode="global", free_ends=()):
    """(score, strand, query span along plus, target span, operations)."""
    s = as_scoring(SCORING)
    answers = []
    for sign, one in ((1, query), (-1, turned(query))):
        codes = s.alphabet.encode(one), s.alphabet.encode(target)
        costs = s.scores, s.open, s.extend, mode, frozenset(free_ends)
        score, start, end, operations = oracle.align(*codes, *costs)
        assert oracle.rescore(*codes, start, end, operations, *costs) == score
        answers.append((score, sign, start, end, operations))
    score, sign, (i, j), (k, h), operations = max(answers, key=lambda x: x[:2])
    if sign < 0:
        i, k = len(query) - k, len(query) - i
    return score, sign, (i, k, j, h), "".join(f"{n}{op}" for op, n in operations) or "*"


def answers_of(table):
    spans = zip(*(table[name].tolist() for name in SPANS), strict=True)
    columns = table["score"].tolist(), table["strand"].tolist(), spans, table.cigar()
    return list(zip(*columns, strict=True))


def align(queries, targets, output="alignment", **options):
    options = {"strand": "both", "output": output} | options
    return jaxalign.align_pairs(queries, targets, SCORING, **options)


@pytest.mark.parametrize(
    "ends", ENDS, ids=lambda ends: "-".join(map(str, ends.values()))
)
def test_the_better_strand_is_that_of_the_oracle(ends):
    queries, targets = texts()
    table = align(queries, targets, **ends)
    some = [want(*pair, **ends) for pair in zip(queries, targets, strict=True)]
    assert answers_of(table) == some
    assert {sign for _, sign, *_ in some} == {1, -1}
    assert (table.rescore() == table["score"]).all()
    assert table.queries.texts() == queries and table.targets.texts() == targets


@pytest.mark.parametrize("output", ["score", "identity", "stats"])
def test_other_outputs_are_of_the_same_strand(output):
    queries, targets = texts()
    whole, table = align(queries, targets), align(queries, targets, output)
    for name in ("query", "target", "score", "strand", *SPANS):
        if name in table.columns:
            assert table[name].tolist() == whole[name].tolist(), name
    if output == "identity":
        by_hand = [turned(q) if x < 0 else q
                   for q, x in zip(queries, whole["strand"], strict=True)]  # fmt: skip
        other = jaxalign.align_pairs(by_hand, targets, SCORING, output=output)
        assert table["max_identities"].tolist() == other["max_identities"].tolist()


@pytest.mark.parametrize("output", ["score", "alignment"])
def test_one_on_a_side_meets_all_of_the_other(output):
    queries, targets = texts()
    for sides in ((queries[:1], targets), (queries, targets[:1]), ([], [])):
        table = align(*sides, output)
        several = [len(side) > 1 for side in sides]
        pairs = [(q, t) for q in sides[0] for t in sides[1]]
        some = [want(*pair) for pair in pairs]
        assert table["score"].tolist() == [x[0] for x in some]
        assert table["strand"].tolist() == [x[1] for x in some]
        for name, many in zip(("query", "target"), several, strict=True):
            assert table[name].tolist() == [k * many for k in range(len(pairs))]
        if output == "alignment":
            assert answers_of(table) == some


def test_equal_scores_are_of_the_plus_strand():
    table = align(["ACGT", "AACGTT"], ["ACGTT", "AACG"], mode="local")
    assert table["strand"].tolist() == [1, 1]


def test_one_strand_alone():
    queries, targets = texts()
    plain = jaxalign.align_pairs(queries, targets, SCORING, output="alignment")
    other = jaxalign.align_pairs(
        [turned(x) for x in queries], targets, SCORING, output="alignment"
    )
    assert "strand" not in plain.columns
    for strand, sign, by_hand in (("plus", 1, plain), ("minus", -1, other)):
        table = align(queries, targets, strand=strand)
        assert set(table["strand"].tolist()) == {sign}
        assert table["score"].tolist() == by_hand["score"].tolist()
        assert table.cigar() == by_hand.cigar()
        assert table.rows() == by_hand.rows()
        assert table.info["strands"] == (sign,)


@pytest.mark.parametrize("output", ["score", "alignment"])
@pytest.mark.parametrize(
    "filters, passes",
    [
        ({"min_score": 20}, lambda table, *_: table["score"] >= 20),
        ({"min_length_ratio": 0.9}, lambda _, m, n: (m >= 0.9 * n) & (n >= 0.9 * m)),
        (
            {"min_identity": 0.7, "identity": "longer"},
            lambda table, *_: np.nan_to_num(table.identity("longer")) >= 0.7,
        ),
    ],
)
def test_filters_drop_rows_of_the_better_strand(filters, passes, output):
    if output == "score" and "min_identity" in filters:
        output = "identity"
    whole, table = align(*texts(), output), align(*texts(), output, **filters)
    m, n = whole.lengths()
    kept = passes(whole, m, n) & (m + n > 0)
    assert 0 < kept.sum() < len(whole)
    same_tables(table, whole.filter(kept))
    assert table.info["pairs"] == len(whole)


@pytest.mark.parametrize(
    "implementation", ["wavefront", pytest.param("sweep", marks=pytest.mark.slow)]
)
def test_compiled_pairs_have_the_rows_of_small_ones(implementation):
    queries, targets = texts()
    table = align(queries[:4], targets[:4], implementation=implementation)
    assert answers_of(table) == answers_of(align(queries[:4], targets[:4]))


def test_long_pairs(monkeypatch):
    monkeypatch.setattr(long_pieces, "LONG_CELLS", 10_000)
    monkeypatch.setattr(pruning, "MIN_CELLS", 0)
    monkeypatch.setattr(fill, "TILE_ROWS", 64)
    monkeypatch.setattr(fill, "SMALL_TILE_COLUMNS", 64)
    rng = np.random.default_rng(2)
    query = "".join(rng.choice(list("ACGT"), 190))
    target = turned(query[:80] + query[91:])
    for mode in ("global", "local"):
        options = {"implementation": "wavefront", "mode": mode}
        table = align([query], [target], **options)
        assert answers_of(table) == [want(query, target, mode)]
        assert table["strand"].tolist() == [-1]


def test_progress_rises_to_the_whole():
    cells = sum(len(q) * len(t) for q, t in zip(*texts(), strict=True))
    for output, fills in (("score", 2), ("stats", 3)):
        told: list = []
        align(*texts(), output, progress=lambda *cells, told=told: told.append(cells))
        assert told[-1] == (fills * cells, fills * cells)
        assert told == sorted(told)


def test_a_plan_counts_both_strands():
    queries, targets = texts()
    both, plus = (jaxalign.plan(queries, targets, SCORING, strand=strand)
                  for strand in ("both", "plus"))  # fmt: skip
    assert both["pairs"] == plus["pairs"] == 7
    assert both["cells"] == 2 * plus["cells"]


def test_an_alignment_says_its_strand():
    query, target = "GGGACGTTGCAACCA", "TTTGGTTGCAACGTAA"
    options = {"mode": "local", "strand": "both"}
    a, matrices = jaxalign.align(
        query, target, SCORING, return_directions=True, **options
    )
    assert a.strand == -1 and a.query == turned(query) and a.rescore() == a.score
    assert "minus strand" in str(a) and "strand=-1" in repr(a)
    by_hand = jaxalign.directions(turned(query), target, SCORING, mode="local")
    assert (matrices["words"] == by_hand["words"]).all()
    table = align([query], [target], mode="local")
    row, columns = table.to_pandas().iloc[0], a.to_pandas().iloc[0]
    for name in ("score", "strand", *SPANS, "cigar"):
        assert row[name] == columns[name], name
    plus = jaxalign.align(query, query, SCORING, **options)
    assert plus.strand == 1 and "strand" not in str(plus)
    assert jaxalign.align(query, query, SCORING).strand is None


def test_formats_say_the_strand(tmp_path):
    """It is an alignment of the letters that the format says, and has the score."""
    queries, targets = texts()
    table = align(queries[:4], targets[:4], mode="local")
    lines = {}
    for name in ("paf", "sam", "maf"):
        path = tmp_path / f"t.{name}"
        table.write(path)
        lines[name] = path.read_text().splitlines()
    signs = ["+" if sign > 0 else "-" for sign in table["strand"]]
    assert set(signs) == {"+", "-"}
    for k, line in enumerate(lines["paf"]):
        fields = line.split("\t")
        start, end, first, last = (int(fields[x]) for x in (2, 3, 7, 8))
        assert fields[4] == signs[k]
        query = queries[k][start:end]
        query = turned(query) if fields[4] == "-" else query
        rescored(query, targets[k][first:last], fields[-1][5:], table["score"][k])
    mapped = [line.split("\t") for line in lines["sam"] if line[0] != "@"]
    for k, (_, flag, _, first, _, cigar, _, _, _, letters, *_) in enumerate(mapped):
        assert flag == ("16" if signs[k] == "-" else "0")
        assert letters == (turned(queries[k]) if signs[k] == "-" else queries[k])
        clips = re.findall(r"^(\d+)S|(\d+)S$", cigar)
        before = int(clips[0][0] or 0) if clips else 0
        after = int(clips[-1][1] or 0) if clips else 0
        core = re.sub(r"\d+S", "", cigar)
        target = targets[k][int(first) - 1 :]
        query = letters[before : len(letters) - after]
        rescored(query, target, core, table["score"][k], whole=False)
    sides = [line.split() for line in lines["maf"] if line.startswith("s ")]
    for k in range(4):
        _, _, start, size, sign, length, row = sides[2 * k + 1]
        whole = turned(queries[k]) if sign == "-" else queries[k]
        assert sign == signs[k] and int(length) == len(whole)
        assert row.replace("-", "") == whole[int(start) :][: int(size)]


def rescored(query, target, cigar, score, whole=True):
    s = as_scoring(SCORING)
    runs = [(op, int(length)) for length, op in re.findall(r"(\d+)([MID])", cigar)]
    end = [sum(n for op, n in runs if op != beside) for beside in "DI"]
    if whole:
        assert end == [len(query), len(target)]
    codes = s.alphabet.encode(query), s.alphabet.encode(target[: end[1]])
    costs = s.scores, s.open, s.extend, "global", frozenset()
    assert oracle.rescore(*codes, (0, 0), tuple(end), runs, *costs) == score


def test_what_has_no_strands():
    profile = jaxalign.Profile.from_alignment(["ACDE", "ACDF"])
    calls = [
        lambda: jaxalign.align("MKV", "MKV", strand="both"),
        lambda: jaxalign.align_pairs(["MKV"], ["MKV"], strand="minus"),
        lambda: jaxalign.align(profile, "MKV", strand="minus"),
    ]
    for call in calls:
        with pytest.raises(UsageError, match="one strand|two strands"):
            call()
    with pytest.raises(UsageError, match="unknown strand 'watson'"):
        align(["A"], ["A"], strand="watson")
    with pytest.raises(UsageError, match="queries and targets"):
        jaxalign.plan(["ACGT", "AC"], None, SCORING, strand="both")
