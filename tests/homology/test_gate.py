"""Links whose alignment must also reach a score: what they are, and what they find."""

import json
from dataclasses import replace
from importlib.resources import files
from itertools import combinations
from typing import Any, NamedTuple

import brute_force as bf
import numpy as np
import oracle
import pytest

import jaxalign
from jaxalign.homology import api, certificate, clustering, links, options
from jaxalign.homology.certificate import definition_of, differences
from jaxalign.homology.links import PairCounts, link_jobs
from jaxalign.model import statistics
from jaxalign.model.alphabet import as_sequences
from jaxalign.options import HomologyOptions
from jaxalign.pairs import by_rows, compiled, jobs, plan
from jaxalign.pairs.options import MEASURES

SCORING = jaxalign.Scoring(match=2, mismatch=-1, gap_open=bf.OPEN, gap_extend=bf.EXTEND)
LETTERS = list("ACDEFGHIKLMNPQRSTVWY")


def self_score(word: str) -> int:
    """The score of a word with itself: 2 a letter, -1 an N."""
    return sum(-1 if x == "N" else 2 for x in word)


def linked(words, kind, mode, cut, least, relative=-np.inf) -> np.ndarray:
    """Whether pairs are linked along either strand, by the oracle's loops; equal words
    always are."""
    n, square = len(words), np.zeros((len(words),) * 2, bool)
    for i in range(n):
        for j in range(i):
            for word in (words[i], bf.turned(words[i])):
                sides = [[bf.LETTERS.index(x) for x in y] for y in (word, words[j])]
                score, count = oracle.max_identities(
                    *sides, bf.matrix(), bf.OPEN, bf.EXTEND, mode, wildcard=bf.WILDCARD
                )
                length = bf.below(kind, len(words[i]), len(words[j]))
                reached = length > 0 and count / length >= cut and score >= least
                own = bf.below(kind, self_score(words[i]), self_score(words[j]))
                if relative > 0:
                    reached &= own > 0 and score / max(own, 0.1) >= relative
                square[i, j] |= word == words[j] or reached
            square[j, i] = square[i, j]
    return square


@pytest.fixture
def by_parts(monkeypatch, compiled):
    """Jobs are large: none is one table, and scores come before rows."""
    monkeypatch.setattr(plan, "LARGE_JOB_CELLS", 0)
    monkeypatch.setattr(by_rows, "MAX_SECONDS", {False: -1.0, True: -1.0})


BY_PARTS = pytest.param(True, marks=pytest.mark.slow)  # compiles


LARGE_BY = [
    pytest.param(True, by, marks=pytest.mark.slow) for by in ("score", "relative")
]


@pytest.mark.parametrize(
    "large, by", [*((False, x) for x in ("score", "relative", "both")), *LARGE_BY]
)
@pytest.mark.parametrize("seed", range(4))
def test_links_reach_both(seed, by, large, request):
    """An identity and a score; by relative scores alone, they are the cut."""
    if large:
        request.getfixturevalue("by_parts")
    random = np.random.default_rng(seed)
    words = [*bf.random_words(random, 14), "G", "G"]  # equal, and of a low score
    mode = ("local", "global")[seed % 2]
    kind = str(random.choice(["longer", "shorter", "mean"]))
    cut, least = float(random.choice([0.3, 0.5])), int(random.integers(3, 7))
    asked: dict = {"identity": kind, "mode": mode}
    if by == "score":
        want = linked(words, kind, mode, cut, least)
        asked |= {"min_score": least}
    else:
        relative, cut = float(random.choice([0.3, 0.6])), cut if by == "both" else None
        want = linked(words, kind, mode, cut or 0.0, -np.inf, relative)
        asked |= {"min_relative_score": relative}
    found = jaxalign.cluster(words, SCORING, min_identity=cut, **asked)
    assert found.labels.tolist() == bf.labels_of(want).tolist()
    graph = jaxalign.identity_graph(words, SCORING, min_identity=cut, **asked)
    stored = np.zeros(want.shape, bool)
    graph = graph.tocoo()
    stored[graph.row, graph.col] = True  # of no identical residues, too
    assert stored.tolist() == want.tolist()
    kept = jaxalign.deduplicate(words, SCORING, min_identity=cut, **asked)
    for k, of in enumerate(kept.representative_of.tolist()):
        assert k == of or want[k, of]
    purged = jaxalign.purge(words[:9], words[9:], SCORING, min_identity=cut, **asked)
    assert purged.removed.tolist() == np.flatnonzero(want[:9, 9:].any(axis=1)).tolist()
    halves = [*range(7), 14], [*range(7, 14), 15]  # one of two equal ones in each
    parts = {x: [words[k] for k in y] for x, y in zip("ab", halves, strict=True)}
    audit = jaxalign.audit(parts, SCORING, min_identity=cut, **asked)
    assert audit.leaks == want[np.ix_(*halves)].sum()


def proteins(random, count: int, planted: int, longest: int = 150):
    """Unrelated sequences, and fragments of 40 letters and more inside others."""
    texts = [
        "".join(random.choice(LETTERS, n)) for n in random.integers(60, longest, count)
    ]
    pairs = []
    for k in range(planted):
        source, size = texts[k], int(random.integers(40, 60))
        at = int(random.integers(0, len(source) - size + 1))
        ends = ["".join(random.choice(LETTERS, 30)) for _ in range(2)]
        pairs.append((k, len(texts)))
        texts.append(ends[0] + source[at : at + size] + ends[1])
    return texts, pairs


LARGE = pytest.param((500, 12, 500), marks=pytest.mark.slow)


@pytest.mark.parametrize("size", [(20, 8, 120), LARGE])
def test_planted_fragments_are_linked_and_nothing_else(size):
    """At 0.3, where local identities alone link nearly all of so many sequences."""
    texts, pairs = proteins(np.random.default_rng(7), *size)
    found = jaxalign.cluster(texts, min_identity=0.3, link="local")
    sizes = np.bincount(found.labels)
    assert all(found.labels[i] == found.labels[j] for i, j in pairs)
    # Of so many searches 0.5 find something by chance; more than 3 one set of 500 has.
    by_chance = len(texts) - len(found) - len(pairs)
    assert sizes.max() <= 3 and 0 <= by_chance <= 3


def test_the_score_of_a_link_is_that_of_a_search():
    """One less is expected more often than once in 1,000, by the function that gives
    E-values; the set's size moves it."""
    texts = ["".join(np.random.default_rng(k).choice(LETTERS, 150)) for k in range(30)]
    found = jaxalign.cluster(texts, min_identity=0.5, link="local")
    score = found.definition.options.min_score
    assert score is not None
    karlin = statistics.parameters(found.definition.scoring, "local")
    tried = np.array([score - 1, score])
    expected = statistics.evalues(tried, np.array([150] * 2), 4500, 30, karlin)
    assert expected[0] > 1e-3 >= expected[1]
    larger = jaxalign.cluster(texts * 20, min_identity=0.5, link="local")
    assert (larger.definition.options.min_score or 0) > score


def test_other_options_that_say_what_a_link_is():
    unknown: Any = "fragments"
    refused: list[dict] = [{"mode": "local"}, {"identity": "mean"}]
    refused.append({"free_ends": ("query_end",)})
    for asked in refused:
        with pytest.raises(jaxalign.UsageError, match="sets the mode and the length"):
            jaxalign.cluster(["MK"], min_identity=0.5, link="local", **asked)
    with pytest.raises(jaxalign.UsageError, match="one of whole, local is needed"):
        jaxalign.cluster(["MK"], min_identity=0.5, link=unknown)
    with pytest.raises(jaxalign.UsageError, match="no statistics are published"):
        jaxalign.cluster(["MK"], "GONNET", min_identity=0.5, link="local")
    with pytest.raises(jaxalign.UsageError, match="min_score = nan"):
        jaxalign.cluster(["MK"], min_identity=0.5, min_score=float("nan"))
    found = jaxalign.cluster(
        ["MK"], "GONNET", min_identity=0.5, link="local", min_score=20
    )
    assert "score >= 20; local alignment" in str(found.definition)


def test_a_certificate_keeps_the_score():
    texts, _ = proteins(np.random.default_rng(3), 9, 3)
    parts = {"train": 0.7, "test": 0.3}
    divided = jaxalign.split(texts, min_identity=0.4, parts=parts, link="local")
    audit = jaxalign.audit(divided, min_identity=0.4, link="local")
    assert audit.holds
    about = json.loads(json.dumps(audit.certificate()))
    score = divided.definition.options.min_score
    assert f"score >= {score}; local alignment" in about["claim"]
    rebuilt = definition_of(about, options.HomologyOptions())
    assert str(rebuilt) == str(divided.definition)
    before = {name: about[name] for name in about if name != "question"}
    assert differences(before, about) != []
    assert differences(before | {"format": certificate.FORMER}, about) == []
    other = replace(rebuilt, options=replace(rebuilt.options, min_score=None))
    assert "min_score" not in other.about()  # certificates of before have no such field


@pytest.mark.parametrize("kind, mode", [("longer", "global"), ("shorter", "local")])
def test_relative_scores_of_real_proteins(kind, mode):
    """With proofs and without, what a table of all scores says; purge and audit agree,
    and a certificate keeps the cut."""
    records = (files("jaxalign.data") / "swissprot1000.fasta").read_text().split(">")
    every = ["".join(x.split("\n")[1:]) for x in records[1:]]
    texts = [x for x in every if len(x) < 160][:60]
    table = jaxalign.align_all(texts, mode=mode, output="score")
    scoring = jaxalign.Scoring()
    own = [scoring.pair_scores(x, x).sum() for x in table.queries]
    sides = np.array(own)[np.stack([table["query"], table["target"]])]
    below = (np.maximum if kind == "longer" else np.minimum)(*sides)
    rows = table["score"] / below >= 0.25
    pairs = np.stack([table["query"], table["target"]])[:, rows]
    asked: dict = {"min_relative_score": 0.25, "mode": mode, "identity": kind}
    for proofs in (True, False):
        found = jaxalign.identity_graph(texts, filter=proofs, **asked).tocoo()
        assert {*zip(found.row, found.col, strict=True)} == {
            *zip(*pairs, strict=True), *zip(*pairs[::-1], strict=True)
        }  # fmt: skip
    halves = {"a": 0.5, "b": 0.5}
    divided = jaxalign.split(texts, parts=halves, too_large="keep", **asked)
    audit = jaxalign.audit(divided, **asked)
    assert audit.holds and audit.leaks == 0
    rebuilt = definition_of(
        json.loads(json.dumps(audit.certificate())), HomologyOptions()
    )
    assert str(rebuilt) == str(divided.definition)
    assert "self score >= 0.25; " in str(rebuilt) and "identity" not in str(rebuilt)


def test_a_relative_score_and_what_it_needs():
    words = ["MKTAYIAK", "MKTAYIAR"]
    for method in ("complete", "average"):
        with pytest.raises(jaxalign.UsageError, match="goes by identities"):
            jaxalign.cluster(words, min_relative_score=0.5, method=method)
    with pytest.raises(jaxalign.UsageError, match="a cut is needed"):
        jaxalign.cluster(words)
    with pytest.raises(jaxalign.UsageError, match="min_relative_score = 1.5"):
        jaxalign.cluster(words, min_relative_score=1.5)
    with pytest.raises(jaxalign.UsageError, match="cluster, split, audit and purge"):
        jaxalign.nearest(words, words, min_relative_score=0.5)
    assert len(jaxalign.deduplicate(words, min_relative_score=0.8)) == 1
    assert len(jaxalign.deduplicate(words)) == 2  # at an identity of 0.9


@pytest.mark.slow
def test_scores_of_a_large_job_come_first(monkeypatch, by_parts):
    """Pairs below the score are not aligned, and components need no proof for them."""
    monkeypatch.setattr(clustering, "joined_components", None)
    texts, pairs = proteins(np.random.default_rng(1), 8, 3)
    found = jaxalign.cluster(texts, min_identity=0.3, link="local")
    assert found.info["aligned"] < len(texts)
    assert [found.labels[j] for _, j in pairs] == [0, 1, 2]
    assert sum(found.info["excluded"].values()) + found.info["aligned"] == 55
    definition, counts = found.definition, PairCounts()
    parts = [*links.stream_links(found.sequences, definition, counts)]
    assert sum(map(len, parts)) == len(pairs) == counts.linked


# Short sequences: those that cannot reach twice the score.


def short_ones(words, least: float) -> np.ndarray:
    """No letter of the matrix of ``brute_force`` scores more than 2; N scores less
    than 0 with all."""
    return np.array([2 * sum(x != "N" for x in word) < 2 * least for word in words])


def linked_or_short(words, cut, least) -> np.ndarray:
    """Whether pairs are linked: by the gate, or end to end where one is short."""
    gate = linked(words, "shorter", "local", cut, least)
    whole = linked(words, "longer", "global", cut, -np.inf)
    short = short_ones(words, least)
    return gate | (whole & (short[:, None] | short))


def mixed_words(random: np.random.Generator, count: int) -> list[str]:
    """Words of 0 to 24 letters, of which a part are pieces of others, or copies."""
    words = bf.random_words(random, count, 24)
    for k in range(0, count, 4):
        at = int(random.integers(0, 5))
        words[k] = words[k - 1][at : at + int(random.integers(2, 14))]
    # one that is not short, and two that are alike from end to end alone
    words[0], words[1] = "ACGTTGCAACGTTGCATGCAACGT", "GATCA"
    return [*words, "NNN", "NNN", "", "GTTGA"]


@pytest.mark.parametrize("large", [False, BY_PARTS])
@pytest.mark.parametrize("seed", range(3))
def test_short_sequences_are_compared_from_end_to_end_too(seed, large, request):
    if large:
        request.getfixturevalue("by_parts")
    random = np.random.default_rng(seed)
    words = mixed_words(random, 13)
    cut, least = float(random.choice([0.4, 0.6])), int(random.integers(6, 12))
    want, count = linked_or_short(words, cut, least), len(words)
    short = int(short_ones(words, least).sum())
    assert 0 < short < count
    asked: dict = {"min_identity": cut, "link": "local", "min_score": least}
    found = jaxalign.cluster(words, SCORING, **asked)
    assert found.labels.tolist() == bf.labels_of(want).tolist()
    assert found.info["all"] == count * (count - 1) // 2
    graph = jaxalign.identity_graph(words, SCORING, **asked)
    assert (graph.toarray() > 0).tolist() == want.tolist()
    halves = {"a": 0.5, "b": 0.5}
    divided = jaxalign.split(words, SCORING, parts=halves, too_large="keep", **asked)
    assert divided.groups.tolist() == bf.labels_of(want).tolist()
    # greedy: each in turn, longest first, joins the first representative it reaches
    representatives: list[int] = []
    joined = jaxalign.deduplicate(words, SCORING, **asked).representative_of
    for k in sorted(range(count), key=lambda k: -len(words[k])):
        reached = [r for r in representatives if want[r, k]]
        assert joined[k] == (reached[0] if reached else k)
        representatives += [] if reached else [k]
    audit = jaxalign.audit({"a": words[:7], "b": words[7:]}, SCORING, **asked)
    assert audit.leaks == want[:7, 7:].sum()
    assert audit.info["all"] == 7 * (count - 7)
    assert f"or, with one of {short} short sequences, identity_longer" in str(audit)
    modes = {alignment.mode for alignment in audit.alignments}
    assert modes <= {"local", "global"}
    ends_alone = want & ~linked(words, "shorter", "local", cut, least)
    if audit.leaks <= len(audit.alignments):  # all are shown
        assert ends_alone[1, -1] and "global" in modes


RECEPTOR = "CASS{}YEQYF"


@pytest.mark.parametrize("pattern", ["{}", RECEPTOR])
def test_sets_of_short_sequences_are_linked_as_a_whole(pattern):
    """Peptides of 9 residues, and receptors of 15, in families."""
    random, words = np.random.default_rng(5), []
    for _ in range(40):
        letters = random.choice(LETTERS, 9 if pattern == "{}" else 6)
        for place in random.integers(0, len(letters), 3):
            words.append(pattern.format("".join(letters)))
            letters[place] = random.choice(LETTERS)
    for method in ("components", "greedy"):
        local, whole = (
            jaxalign.cluster(words, min_identity=0.8, link=link, method=method)
            for link in ("local", "whole")
        )
        assert local.labels.tolist() == whole.labels.tolist()
        assert 10 < len(local) < 100
        assert local.definition.short == len(words)
        assert "short" not in str(whole)


def test_a_certificate_counts_short_sequences():
    texts = [*proteins(np.random.default_rng(3), 9, 3)[0], "MKTAYIAK", "MRTAYIAK"]
    parts = {"train": 0.7, "test": 0.3}
    divided = jaxalign.split(texts, min_identity=0.4, parts=parts, link="local")
    assert divided.part[-1] == divided.part[-2]
    audit = jaxalign.audit(divided, min_identity=0.4, link="local")
    about = json.loads(json.dumps(audit.certificate()))
    assert "or, with one of 2 short sequences, identity_longer" in about["claim"]
    assert about["definition"]["short_sequences"] == 2
    rebuilt = definition_of(about, options.HomologyOptions())
    assert str(rebuilt.of_sets([divided.sequences])) == str(divided.definition)
    without = jaxalign.audit(divided, min_identity=0.4, mode="local").certificate()
    assert "short_sequences" not in without["definition"]


class FakeDevice(NamedTuple):
    platform: str


@pytest.mark.parametrize("gpu", [True, False])
def test_short_jobs_of_a_call_are_judged_by_their_sum(gpu, monkeypatch):
    """On a GPU kernels compute all of them where each alone would go by rows and all
    together are no small job; without one each goes by itself."""
    device = FakeDevice("gpu")
    monkeypatch.setattr(by_rows, "may_have_gpu", lambda: gpu)
    monkeypatch.setattr(by_rows, "ROW_SECONDS", 0.0)
    monkeypatch.setattr(jobs, "first_device", lambda: device)
    monkeypatch.setattr(compiled, "choose", lambda *_: ("pallas", ""))
    texts = ["MK" * n for n in (2, 2, 2, 8, 8, 9, 15, 17, 19)]
    data = as_sequences(texts, SCORING.alphabet)
    asked = HomologyOptions(link="local", min_score=20)
    asked = replace(asked, **MEASURES["local"])
    definition = api.define(SCORING, asked, 0.5, [data])

    def ways(share: float) -> tuple[int, int]:
        """Tasks by rows, and all, if rows may take a share of what all pairs take."""
        cells = sum(len(a) * len(b) for a, b in combinations(texts, 2))
        most = share * cells * by_rows.CELL_SECONDS * 2 / 3
        monkeypatch.setattr(by_rows, "MAX_SECONDS", {False: most, True: most})
        tasks = [task for job in link_jobs(data, definition) for task in job.tasks]
        return sum(by_rows.plan_by_rows(x) is not None for x in tasks), len(tasks)

    assert ways(1) == (7, 7)
    assert ways(0.99) == ((0, 7) if gpu else (7, 7))
