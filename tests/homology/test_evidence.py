"""Edges and groups beside identities, by brute force over all pairs: clusters, splits,
audits. Nothing of the package says here what is linked."""

from itertools import combinations

import brute_force as bf
import numpy as np
import pytest

import jaxalign
from jaxalign.homology import clustering
from jaxalign.io import corpus_files

SCORING = jaxalign.Scoring(match=2, mismatch=-1, gap_open=bf.OPEN, gap_extend=bf.EXTEND)
HALVES = {"train": 0.5, "test": 0.5}


def linked_by(words, shares, cut, tables, groups) -> np.ndarray:
    """All linked pairs, bool (n, n): by tables of (rows, sign, cut, join) and by lists
    of members."""
    n = len(words)
    linked = np.zeros((n, n), bool)
    for i in range(n):
        for j in range(n):
            if i == j:
                continue
            passes = [
                any(
                    {a, b} == {i, j} and (value >= at if sign == ">=" else value <= at)
                    for a, b, value in rows
                )
                for rows, sign, at, _ in tables
            ]
            joins = [join for *_, join in tables]
            both = list(zip(passes, joins, strict=True))
            aligned = shares[i, j] >= cut and all(
                x for x, join in both if join == "and"
            )
            linked[i, j] = aligned or any(x for x, join in both if join == "or")
            linked[i, j] |= any(i in group and j in group for group in groups)
    return linked


def components(linked) -> list[int]:
    label = list(range(len(linked)))
    for i, j in np.argwhere(linked):
        label = [label[i] if x == label[j] else x for x in label]
    return label


def partition(labels) -> set:
    labels = np.array(labels)
    return {frozenset(np.flatnonzero(labels == x).tolist()) for x in np.unique(labels)}


def drawn(seed: int, grouped: bool = True):
    """Words, the options of a link and of its evidence, and all linked pairs."""
    random = np.random.default_rng([seed, 7])
    words = bf.random_words(random, int(random.integers(5, 13)))
    link, shares = bf.drawn_link(seed, words, "longer")
    cut = float(random.choice([0.4, 0.5, 2 / 3, 0.9]))
    names, tables, edges = [f"seq{k + 1}" for k in range(len(words))], [], []
    for _ in range(int(random.integers(1, 4))):
        # both directions, the same pair with other values, sequences with themselves
        rows = [
            (*random.integers(0, len(words), 2).tolist(), float(random.integers(0, 9)))
            for _ in range(int(random.integers(1, 3 * len(words))))
        ]
        sign, join = random.choice([">=", "<="]), random.choice(["or", "or", "and"])
        at = float(random.integers(0, 9))
        tables.append((rows, sign, at, join))
        a, b, values = zip(*rows, strict=True)
        table = [names[k] for k in a], [names[k] for k in b], values
        rule = {"at_least" if sign == ">=" else "at_most": at}
        edges.append(jaxalign.Edges(table, **rule, join=str(join)))
    together, groups = None, []
    if grouped and random.random() < 0.7:
        of = random.integers(-1, len(words) // 2, len(words)).tolist()
        together = [None if x < 0 else f"c{x}" for x in of]
        groups = [[k for k, x in enumerate(of) if x == y] for y in {*of} - {-1}]
    asked = {"min_identity": cut, "edges": edges, **link}
    linked = linked_by(words, shares, cut, tables, groups)
    more = {} if together is None else {"together": together}
    return words, shares, asked, more, linked, groups


@pytest.mark.parametrize("seed", range(24))
def test_purges_take_edges(seed, monkeypatch):
    """… between a test set and the blocks of a corpus, in either direction."""
    monkeypatch.setattr(corpus_files, "BLOCK_RECORDS", 2 + seed % 3)
    words, shares, asked, _, linked, _ = drawn(seed, grouped=False)
    names = [f"seq{k + 1}" for k in range(len(words))]
    order = np.random.default_rng([seed, 8]).permutation(len(words)).tolist()
    tests, train = order[: len(words) // 3], order[len(words) // 3 :]
    sides = [[(names[k], words[k]) for k in side] for side in (train, tests)]
    clean = jaxalign.purge(*sides, SCORING, **asked)
    near = linked[np.ix_(train, tests)]
    assert clean.removed.tolist() == np.flatnonzero(near.any(axis=1)).tolist()
    cut = asked["min_identity"]
    passing = near & (shares[np.ix_(train, tests)] >= cut)
    for k, of, value in zip(clean.removed, clean.test, clean.value, strict=True):
        found = shares[train[k], tests[of]]
        if passing[k].any():
            best = np.where(passing[k], shares[np.ix_(train, tests)][k], -1).max()
            assert value == found == best
        else:
            assert np.isnan(value) and of == np.flatnonzero(near[k])[0]
    assert len(clean.cut.definition.evidence.tables) == len(asked["edges"])


def test_names_may_be_repeated_without_tables():
    some = [("a", "MKTAYIAKQR"), ("a", "MKTAYIAKQR"), ("b", "GGGG")]
    assert jaxalign.cluster(some, min_identity=0.9).labels.tolist() == [0, 0, 1]
    assert len(jaxalign.purge(some, some[:2], min_identity=0.9)) == 2


@pytest.mark.parametrize("whose", [0, 1])
def test_repeated_names_are_refused_beside_tables(whose):
    """A table could mean either sequence, and the first had no pair of it."""
    sides = [("a", "MKTAYIAKQR"), ("c", "PAWHEAEWW")], [("b", "GGGG"), ("d", "WWPGG")]
    sides[whose].append((sides[whose][0][0], "HEAGAWGHEE"))
    edges = jaxalign.Edges((["a"], ["b"], [1.0]), at_least=0.5)
    words, every = {"min_identity": 0.8, "edges": edges}, [*sides[0], *sides[1]]
    for call in (
        lambda: jaxalign.cluster(every, **words),
        lambda: jaxalign.deduplicate(every, **words),
        lambda: jaxalign.split(every, parts=HALVES, **words),
        lambda: jaxalign.audit(sides, **words),
        lambda: jaxalign.purge(*sides, **words),
    ):
        with pytest.raises(jaxalign.InputError, match="is the name of two sequences"):
            call()


def test_edges_of_a_purge_are_refused():
    edges = jaxalign.Edges((["t"], ["b"], [1.0]), at_least=0.5)
    train, tests = [("a", "MKTAYIAKQR"), ("b", "GGGG")], [("t", "MKTAYIAKR")]
    with pytest.raises(jaxalign.UsageError, match="need a cut by min_identity"):
        jaxalign.purge(train, tests, min_score=20, edges=edges)
    for sides in (([*train, train[1]], tests), (train, [*tests, *tests])):
        with pytest.raises(jaxalign.InputError, match="is the name of two sequences"):
            jaxalign.purge(*sides, min_identity=0.8, edges=edges)
    other = jaxalign.Edges((["t", "t"], ["b", "c"], [1.0, 1.0]), at_least=0.5)
    with pytest.raises(jaxalign.InputError, match=r"1 name \(c\) of no sequence"):
        jaxalign.purge(train, tests, min_identity=0.8, edges=other)


def leaks(part, linked) -> int:
    return sum(
        linked[i, j] and -1 < part[i] != part[j] > -1
        for i, j in combinations(range(len(part)), 2)
    )


@pytest.mark.parametrize("seed", range(16))
def test_clusters_join_edges(seed, monkeypatch):
    monkeypatch.setattr(clustering, "MIN_BAND", 3)
    words, shares, asked, _, linked, _ = drawn(seed, grouped=False)
    found = jaxalign.cluster(words, SCORING, **asked)
    assert partition(found.labels) == partition(components(linked))
    assert found.info["at_or_above_cut"] == linked.sum() // 2
    kept = jaxalign.deduplicate(words, SCORING, **asked)
    representatives, want = [], {}
    for k in sorted(range(len(words)), key=lambda k: (-len(words[k]), k)):
        first = [r for r in representatives if linked[k, r]][:1] or [k]
        want[k] = first[0]
        representatives += [k] if want[k] == k else []
    assert kept.representative_of.tolist() == [want[k] for k in range(len(words))]
    for k, r in want.items():
        if k != r and shares[k, r] >= asked["min_identity"]:
            assert kept.identity[k] == shares[k, r]
        assert (
            k == r
            or shares[k, r] >= asked["min_identity"]
            or np.isnan(kept.identity[k])
        )


@pytest.mark.parametrize("seed", range(24))
def test_splits_divide_neither_links_nor_groups(seed):
    words, _, asked, more, linked, groups = drawn(seed)
    too_large = ("keep", "remove")[seed % 2]
    try:
        found = jaxalign.split(
            words, SCORING, parts=HALVES, too_large=too_large, **asked, **more
        )
    except jaxalign.UsageError as error:
        assert "would be empty" in str(error) and too_large == "remove"
        return
    assert leaks(found.part, linked) == 0
    assert partition(found.groups) == partition(components(linked))
    assert too_large == "remove" or not len(found.removed)
    audit = jaxalign.audit(found, SCORING, **asked, **more)
    assert audit.holds and not any(audit.divided.values())
    if too_large == "remove":
        least = fewest(linked, int(np.ceil(len(words) / 2 * 4 / 3)))
        assert found.info.get("fewest_removed", 0) <= least


def fewest(linked, room) -> int:
    """The fewest that leave two parts of so many at most, with no link across."""
    n, best = len(linked), len(linked)
    for code in range(3**n) if n <= 8 else ():
        part = np.array([code // 3**k % 3 - 1 for k in range(n)])
        sizes = [(part == k).sum() for k in (0, 1)]
        if max(sizes) <= room and leaks(part, linked) == 0:
            best = min(best, int((part < 0).sum()))
    return best


@pytest.mark.parametrize("seed", range(24))
def test_audits_find_links_and_divided_groups(seed):
    words, shares, asked, more, linked, groups = drawn(seed)
    part = np.random.default_rng(seed).integers(0, 3, len(words))
    sets = {
        f"p{k}": {f"seq{i + 1}": words[i] for i in np.flatnonzero(part == k)}
        for k in range(3)
    }
    if more:
        together = more["together"]
        more = {"together": {f"seq{i + 1}": x for i, x in enumerate(together)}}
    found = jaxalign.audit(sets, SCORING, **asked, **more, worst=4)
    ungrouped = drawn(seed, grouped=False)[4]
    assert found.leaks == leaks(part, ungrouped)
    by_edges = [x for x in found.evidence_lines() if x.endswith("by edges")]
    assert len(by_edges) == min(4, found.info["evidence"]["leaks_by_edges_alone"])
    divided = sum(len({part[k] for k in group}) > 1 for group in groups)
    assert sum(map(len, found.divided.values())) == divided
    assert found.holds == (leaks(part, linked) == 0)
    leaking = (part[:, None] != part[None, :]) & linked
    for k in range(3):
        assert found.leaking[k].tolist() == leaking.any(axis=1)[part == k].tolist()
    across = part[:, None] != part[None, :]
    identities = sorted(shares[across & np.isfinite(shares)])[::-1]
    assert found.worst["identity"].tolist() == identities[::2][:4]


@pytest.mark.parametrize("seed", range(12))
def test_repairs_and_series(seed):
    words, shares, asked, more, linked, groups = drawn(seed)
    before = np.random.default_rng(seed).integers(0, 2, len(words))
    fixed = [("train", "test")[k] for k in before]
    if len({*fixed}) == 2:
        for too_large in ("keep", "remove"):
            try:
                found = jaxalign.split(
                    words, SCORING, fixed=fixed, too_large=too_large, **asked, **more
                )
            except jaxalign.UsageError as error:
                assert "would be empty" in str(error)
                continue
            assert leaks(found.part, linked) == 0
            now = np.array([found.names.index(x) for x in fixed])
            changed = int((found.part != now).sum())
            assert found.info["changes"]["bound"] <= changed
            if too_large == "keep":
                assert changed == fewest_moved(linked, now)
            weights = [1.0 + k % 3 for k in range(len(words))]
            more_weights = {"weights": weights, "too_large": too_large, **asked, **more}
            heavy = jaxalign.split(words, SCORING, fixed=fixed, **more_weights)
            assert heavy.info["changes"]["changed_weight"] == changed
            assert leaks(heavy.part, linked) == 0
            placed = np.bincount(heavy.part[heavy.part >= 0],
                                 np.array(weights)[heavy.part >= 0], 2)  # fmt: skip
            assert heavy.kept_shares == pytest.approx(placed / placed.sum())
    cut = asked.pop("min_identity")
    cuts = [cut, min(cut + 0.05, 1.0)]
    series = jaxalign.split_series(
        words, SCORING, cuts=cuts, parts=HALVES, too_large="keep", **asked, **more
    )
    for at, found in series.items():
        alone = jaxalign.split(
            words,
            SCORING,
            min_identity=at,
            parts=HALVES,
            too_large="keep",
            **asked,
            **more,
        )
        assert found.part.tolist() == alone.part.tolist()
        assert found.groups.tolist() == alone.groups.tolist()


def fewest_moved(linked, before) -> int:
    """Each component goes where most of it is."""
    label, moved = np.array(components(linked)), 0
    for x in np.unique(label):
        moved += min((before[label == x] != k).sum() for k in (0, 1))
    return int(moved)


@pytest.mark.parametrize("seed", range(12))
def test_pairs_keep_their_rule(seed):
    words, _, asked, more, linked, groups = drawn(seed)
    random = np.random.default_rng([seed, 9])
    ends = random.integers(0, len(words), (2 * len(words), 2))
    pairs = [(f"seq{a + 1}", f"seq{b + 1}") for a, b in ends]
    label = np.array(components(linked))
    try:
        found = jaxalign.split_pairs(
            words, pairs, SCORING, parts=HALVES, **asked, **more
        )
    except jaxalign.UsageError as error:
        assert "would be empty" in str(error)
    else:
        units = label[ends]
        for k, part in enumerate(found.part):
            for m in range(k):
                if -1 < part != found.part[m] > -1:
                    assert not {*units[k]} & {*units[m]}
    parts = random.choice(["train", "test"], len(pairs)).tolist()
    parts[:2] = "train", "test"
    audit = jaxalign.audit_pairs(words, pairs, parts, SCORING, **asked, **more)
    near = linked | np.eye(len(words), dtype=bool)
    want = [
        any(
            parts[k] != parts[m] and near[a, b]
            for m in range(len(pairs))
            for a in ends[k]
            for b in ends[m]
        )
        for k in range(len(pairs))
    ]
    assert audit.leaking.tolist() == want


@pytest.mark.parametrize("seed", range(20))
def test_shares_are_those_of_weights(seed):
    """No assignment of whole components is nearer than the bound; scale is nothing."""
    words, _, asked, more, linked, _ = drawn(seed)
    weights = np.random.default_rng(seed).integers(1, 9, len(words)).astype(float)
    keep = {"parts": HALVES, "too_large": "keep", **asked, **more}
    found = jaxalign.split(words, SCORING, weights=weights, **keep)
    scaled = jaxalign.split(words, SCORING, weights=(weights * 7.5).tolist(), **keep)
    assert found.part.tolist() == scaled.part.tolist()
    assert leaks(found.part, linked) == 0
    shares = [weights[found.part == k].sum() / weights.sum() for k in (0, 1)]
    assert found.share_error == pytest.approx(max(abs(x - 0.5) for x in shares))
    label = np.array(components(linked))
    kinds = np.unique(label)
    sums = [weights[label == x].sum() / weights.sum() for x in kinds]
    masks = (np.arange(2 ** len(kinds))[:, None] >> np.arange(len(kinds))) & 1
    nearest = np.abs(masks @ sums - 0.5).min()
    assert found.info["least_share_error"] <= nearest + 1e-12
    assert nearest <= found.share_error + 1e-12
    assert found.share_error <= nearest + max(weights) / weights.sum()


def test_weights_are_checked():
    asked = {"min_identity": 0.9, "parts": HALVES}
    words = {"a": "MKTAYIA", "b": "WWPHGE", "c": "MRVLLK"}
    for weight in (0, -1, float("nan"), "x"):
        with pytest.raises(jaxalign.InputError, match="a: weight"):
            jaxalign.split(words, weights={"a": weight}, **asked)
    with pytest.raises(jaxalign.InputError, match="belongs to no sequence"):
        jaxalign.split(words, weights={"z": 1}, **asked)
    with pytest.raises(jaxalign.UsageError, match="shares of the weight"):
        jaxalign.split(words, weights={"a": 2}, too_large="remove", **asked)
    found = jaxalign.split(words, weights={"a": 2}, **asked)
    assert found.share_error == 0
    old = {"a": "train", "b": "test", "c": "test"}
    asked = {"min_identity": 0.9, "fixed": old}
    assert jaxalign.split(words, weights={"a": 2}, **asked).shares.tolist() == [0.5] * 2
