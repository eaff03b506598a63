"""Clusters that grow are those of all pairs, with the numbers of the old ones."""

import json
from typing import Any

import brute_force as bf
import numpy as np
import pytest
from draws import pairwise

import jaxalign
from jaxalign.errors import VerificationError
from jaxalign.homology import clustering, links
from jaxalign.pairs import by_rows, part_stream

SCORING = jaxalign.Scoring(match=2, mismatch=-1, gap_open=bf.OPEN, gap_extend=bf.EXTEND)
CASES = pairwise(
    ["longer", "shorter", "mean", "local"],
    [0.3, 0.5, 2 / 3, 0.75],
    [(9, 14), (1, 7, 12), (5, 6, 6, 13)],
    [False, True],
    [False, True],
)


def small_parts(monkeypatch) -> None:
    """Cut jobs into parts of a few pairs, which links come in."""
    monkeypatch.setattr(by_rows, "is_short", lambda *_: False)
    for name, value in {"MIN_PARTS": 5, "QUERIES_STEP": 1, "MIN_CELLS": 1}.items():
        monkeypatch.setattr(part_stream, name, value)
    monkeypatch.setattr(links, "MIN_BUFFER", 2)


def check_bridges(growth, shares, cut, rows, known) -> None:
    """The bridges are links, each has a new end, and without any one of them some
    clusters that merged are apart."""
    ends = growth.bridges["query"], growth.bridges["target"]
    pairs = [(int(a), int(b)) for a, b in zip(*ends, strict=True)]
    for (a, b), identity in zip(pairs, growth.bridges["identity"], strict=True):
        assert shares[a, b] == identity >= cut
        assert rows[a] not in known or rows[b] not in known

    def joined(pairs) -> set[frozenset[int]]:
        label = {number: {number} for number in set(known.values())}
        edges = [{known.get(rows[x], (x,)) for x in pair} for pair in pairs]
        for edge in edges:
            union = set().union(*(label.get(x, {x}) for x in edge))
            label |= dict.fromkeys(union, union)
        groups = (frozenset(x for x in y if isinstance(x, int)) for y in label.values())
        return {x for x in groups if len(x) > 1}

    want = {frozenset(x) for x in growth.merged}
    assert joined(pairs) == want
    for k in range(len(pairs)):
        assert joined(pairs[:k] + pairs[k + 1 :]) != want


@pytest.mark.parametrize(("kind", "cut", "steps", "parts", "shuffled"), CASES)
def test_updates_are_clusters_made_anew(kind, cut, steps, parts, shuffled, monkeypatch):
    if parts:
        small_parts(monkeypatch)
    seed = CASES.index((kind, cut, steps, parts, shuffled))
    random = np.random.default_rng([seed, 5])
    words = bf.random_words(random, steps[-1])
    asked: dict[str, Any] = {"min_identity": cut}
    if kind == "local":
        asked["min_score"] = int(random.integers(3, 8))
        shares = bf.identities(words, asked["min_score"], of=bf.local_identity)
    else:
        asked["identity"] = kind
        shares = bf.identities(words, kind)
    found = numbers = None
    most = 0
    for count in steps:
        rows = np.arange(count)
        if shuffled:
            random.shuffle(rows)
        data = {f"{k}": words[k] for k in rows.tolist()}
        before = 0 if found is None else len(found.sequences)
        found = jaxalign.cluster(data, SCORING, update=found, **asked)
        linked = shares[np.ix_(rows, rows)] >= cut
        want = bf.labels_of(linked)
        assert found.labels.tolist() == want.tolist()
        for number, one in enumerate(found.representatives):
            members = np.flatnonzero(want == number)
            assert one == max(members, key=lambda k: (len(data[f"{rows[k]}"]), -k))
        now = dict(
            zip(rows.tolist(), found.numbers[found.labels].tolist(), strict=True)
        )
        if numbers is not None:
            growth = found.growth
            assert growth is not None
            sides: dict[int, set[int]] = {}
            for k, number in numbers.items():
                sides.setdefault(now[k], set()).add(number)
            assert all(name == min(olds) for name, olds in sides.items())
            merged = sorted(tuple(sorted(x)) for x in sides.values() if len(x) > 1)
            assert sorted(growth.merged) == merged
            new = {now[k] for k in now if k not in numbers}
            fresh = new - set(sides)
            assert not fresh or min(fresh) >= most, "no number is used again"
            assert growth.founded == len(fresh)
            assert growth.joined == sum(
                now[k] in sides for k in now if k not in numbers
            )
            n = count - before
            assert growth.added == n
            assert found.info["all"] == n * before + n * (n - 1) // 2
            of_words = {k: k for k in range(len(words))}
            check_bridges(growth, shares, cut, of_words, numbers)
        numbers, most = now, max(most, max(now.values()) + 1)
    assert found is not None


def test_bridges_do_not_depend_on_parts(monkeypatch):
    """Links tie, and the tree of them is the same however they come."""
    old = {"a": "ACGTACGTACGT", "b": "GGGGCCCCGGGG", "c": "ATATTTAATTAA"}
    new = {f"{k}": "".join(old.values()) for k in range(4)} | {"x": old["a"] + "TTT"}
    asked: dict[str, Any] = {"min_identity": 0.9, "identity": "shorter"}
    trees = []
    for parts in (False, True):
        with monkeypatch.context() as context:
            if parts:
                small_parts(context)
            before = jaxalign.cluster(old, SCORING, **asked)
            grown = jaxalign.cluster(old | new, SCORING, update=before, **asked).growth
        trees.append([x.tolist() for x in grown.bridges.values()])
        assert grown.bridges["identity"].tolist() == [1.0] * 3
        assert grown.merged == ((0, 1, 2),)
    assert trees[0] == trees[1]


@pytest.mark.parametrize(("strand", "times"), [("plus", 1), ("both", 2)])
def test_only_pairs_with_a_new_sequence_are_compared(strand, times, monkeypatch):
    seen = []
    jobs = clustering.link_jobs

    def watched(*about):
        seen.extend(task.job.total for x in jobs(*about) for task in x.tasks)
        return jobs(*about)

    words = ["ACGT", "GGGGG", "ACG"]
    asked: dict[str, Any] = {"min_identity": 0.9, "link": "whole", "strand": strand}
    old = jaxalign.cluster(words[:2], SCORING, **asked)
    monkeypatch.setattr(clustering, "link_jobs", watched)
    jaxalign.cluster(words, SCORING, update=old, **asked)
    assert sum(seen) == times * 3 * (4 + 5)
    same = jaxalign.cluster(words[:2], SCORING, update=old, **asked)
    assert same.numbers.tolist() == [0, 1] and same.info["all"] == 0


def test_what_cannot_grow_is_refused():
    words = {"a": "ACGTACGT", "b": "GGGGGG"}
    asked: dict[str, Any] = {"min_identity": 0.5, "link": "whole"}
    old = jaxalign.cluster(words, SCORING, **asked)
    more = words | {"c": "ACGTACG"}
    for method in ("greedy", "complete", "average"):
        with pytest.raises(jaxalign.UsageError, match="depend on all pairs"):
            jaxalign.cluster(more, SCORING, update=old, method=method, **asked)
    greedy = jaxalign.cluster(words, SCORING, method="greedy", **asked)
    with pytest.raises(jaxalign.UsageError, match="depend on all pairs"):
        jaxalign.cluster(more, SCORING, update=greedy, **asked)
    edges = jaxalign.Edges((["a"], ["c"], [1.0]), at_least=0.5)
    with pytest.raises(jaxalign.UsageError, match="clusters with edges cannot grow"):
        jaxalign.cluster(more, SCORING, update=old, edges=[edges], **asked)
    with pytest.raises(jaxalign.UsageError, match="clusters with edges cannot grow"):
        jaxalign.cluster(more, SCORING, edges=[edges], **asked).certificate("c.tsv")
    changes = {"min_identity": 0.6}, {"min_length_ratio": 0.5}, {"link": "local"}
    for change in changes:
        change |= {"min_score": 4} if "link" in change else {}
        with pytest.raises(jaxalign.UsageError, match="another rule\n"):
            jaxalign.cluster(more, SCORING, update=old, **asked | change)
    other = jaxalign.Scoring(match=3, mismatch=-1, gap_open=3, gap_extend=1)
    with pytest.raises(jaxalign.UsageError, match="scores_sha256: the certificate"):
        jaxalign.cluster(more, other, update=old, **asked)
    with pytest.raises(jaxalign.InputError, match=r"1 old sequence \(b\) missing"):
        jaxalign.cluster({"a": words["a"], "c": "AC"}, SCORING, update=old, **asked)
    with pytest.raises(VerificationError, match="one of them has changed"):
        jaxalign.cluster(more | {"b": "GGGGGA"}, SCORING, update=old, **asked)


def test_a_certificate_and_its_table(tmp_path, monkeypatch):
    """From files; moved together they are found, and any change is noticed."""
    monkeypatch.chdir(tmp_path)
    asked: dict[str, Any] = {"min_identity": 0.5, "link": "whole"}
    folder = tmp_path / "there"
    folder.mkdir()
    names = {"name": "ACGTACGT", "b\tc": "GGGGGG"}
    old = jaxalign.cluster(names, SCORING, **asked)
    more = names | {"d": "GGGGG"}
    for suffix in (".tsv", ".csv", ".parquet"):
        table = f"c{suffix}"
        old.write(table, force=True)
        about = old.certificate(table)
        path = folder / f"{suffix[1:]}.json"
        path.write_text(json.dumps(about))
        grown = jaxalign.cluster(more, SCORING, update=path, **asked)
        assert grown.numbers[grown.labels].tolist() == [0, 1, 1]
    (tmp_path / "c.tsv").rename(folder / "c.tsv")
    path = folder / "tsv.json"
    about = json.loads(path.read_text())
    jaxalign.cluster(more, SCORING, update=path, **asked)

    def refused(error, match: str | None) -> None:
        with pytest.raises(error, match=match):
            jaxalign.cluster(more, SCORING, update=path, **asked)

    for name in about:
        for value in (None, {}, "x", -1, [], {"cut": 0.6, "path": 3}):
            path.write_text(json.dumps(about | {name: value}))
            wrong = jaxalign.UsageError, jaxalign.InputError
            refused((*wrong, VerificationError), None)
    for name in about["definition"]:
        changed = about["definition"] | {name: "other"}
        path.write_text(json.dumps(about | {"definition": changed}))
        refused(
            jaxalign.UsageError, None if name == "min_score" else f"{name}: the cert"
        )
    path.write_text(json.dumps(about | {"next_cluster": 1}))
    refused(jaxalign.InputError, "next_cluster = 1")
    path.write_text(json.dumps(about))
    text = (folder / "c.tsv").read_text()
    for other in (text[:-1], text.replace("\t1\t", "\t0\t"), text + "e\t2\te\n", ""):
        (folder / "c.tsv").write_text(other)
        refused(VerificationError, "is not its table")
    (folder / "c.tsv").unlink()
    refused(jaxalign.InputError, "no such file")
