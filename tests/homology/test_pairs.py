"""Splits of pairs: rules by loops over pairs, bounds and searches by enumeration."""

from itertools import product

import brute_force as bf
import numpy as np
import pytest

import jaxalign
from jaxalign.homology import pair_splits
from jaxalign.homology.pair_splits import UnitGraph

SCORING = jaxalign.Scoring(match=2, mismatch=-1, gap_open=bf.OPEN, gap_extend=bf.EXTEND)
PARTS = ({"train": 0.6, "test": 0.4}, {"train": 0.5, "valid": 0.25, "test": 0.25})


def drawn(seed: int, second: str):
    random = np.random.default_rng(seed)
    words = bf.random_words(random, 14, 12)
    names = [f"s{k}" for k in range(len(words))]
    others = names if second == "proteins" else [f"g{k}" for k in range(5)]
    pairs = [(random.choice(names), random.choice(others)) for _ in range(25)]
    pairs += [pairs[0], pairs[1][::-1] if second == "proteins" else pairs[1]]
    link, shares = bf.drawn_link(seed, words)
    np.fill_diagonal(shares, 1)
    cut = float(random.choice(shares[np.isfinite(shares) & (shares > 0.3)]))
    return dict(zip(names, words, strict=True)), pairs, shares, cut, link


def breaks(texts, pairs, part, shares, cut, cold, second):
    """Pairs that break the rule, one by one."""
    number = lambda name: int(name[1:])  # noqa: E731
    near = lambda a, b: a == b or shares[number(a), number(b)] >= cut  # noqa: E731
    proteins = second == "proteins"
    leaking = []

    def equal(a, b):
        """Whether two names are of one text, or of one group."""
        return a == b or (a[0] == b[0] == "s" and texts[a] == texts[b])

    for (a, b), p in zip(pairs, part, strict=True):
        others = [(x, q) for x, q in zip(pairs, part, strict=True) if -1 < q != p > -1]
        if cold == "none":
            same = [equal(a, x) and equal(b, y) for (x, y), _ in others]
            same += [equal(a, y) and equal(b, x) for (x, y), _ in others if proteins]
            leaking.append(any(same))
        elif cold == "both" and proteins:
            names = {y for x, _ in others for y in x}
            leaking.append(any(near(a, y) or near(b, y) for y in names))
        elif not proteins:
            known = any(near(a, x[0]) for x, _ in others)
            group = cold == "both" and any(b == x[1] for x, _ in others)
            leaking.append(known or group)
        else:
            earlier = {y for x, q in others if q < p for y in x}
            sides = [any(near(x, y) for y in earlier) for x in (a, b)]
            leaking.append(all(sides))
    return leaking


@pytest.mark.parametrize("second", ["proteins", "groups"])
@pytest.mark.parametrize("cold", ["both", "one", "none"])
@pytest.mark.parametrize("seed", range(6))
def test_splits_of_pairs_keep_their_rule(seed, cold, second):
    proteins, pairs, shares, cut, link = drawn(seed, second)
    parts = PARTS[seed % 2]
    asked = {"min_identity": cut, "cold": cold, "second": second}
    try:
        found = jaxalign.split_pairs(
            proteins, pairs, SCORING, parts=parts, seed=seed, **asked, **link
        )
    except jaxalign.UsageError as error:
        assert "would be empty" in str(error)
        return
    part = found.part.tolist()
    assert not any(breaks(proteins, pairs, part, shares, cut, cold, second))
    assert cold == "both" or -1 not in part
    assert found.sizes.sum() + len(found.removed) == len(pairs)
    rows = found.columns()
    assert list(zip(rows["first"], rows["second"], strict=True)) == pairs
    assert part.count(-1) == rows["part"].tolist().count("removed")
    assert found.info.get("most_kept", len(pairs)) >= found.sizes.sum()
    listed = [[*found.names, "removed"][p] for p in part]
    order = [x for x in dict.fromkeys(listed) if x != "removed"]
    audit = jaxalign.audit_pairs(proteins, pairs, listed, SCORING, **asked, **link)
    ordered = order == list(found.names)
    assert audit.holds or ((cold, second) == ("one", "proteins") and not ordered)


@pytest.mark.parametrize("second", ["proteins", "groups"])
@pytest.mark.parametrize("cold", ["both", "one", "none"])
@pytest.mark.parametrize("seed", range(6))
def test_audits_of_pairs_find_what_breaks_the_rule(seed, cold, second):
    proteins, pairs, shares, cut, link = drawn(seed, second)
    random = np.random.default_rng(seed)
    names = ["x", "y", "z", "removed"]
    listed = ["x", "y", "z", *random.choice(names, len(pairs) - 3)]
    part = [-1 if x == "removed" else names.index(x) for x in listed]
    asked = {"min_identity": cut, "cold": cold, "second": second}
    found = jaxalign.audit_pairs(proteins, pairs, listed, SCORING, **asked, **link)
    expected = breaks(proteins, pairs, part, shares, cut, cold, second)
    assert found.leaking.tolist() == expected
    assert found.leaks == sum(expected) and found.holds == (not any(expected))
    assert ("no leak" in str(found)) == found.holds


def drawn_graph(seed: int):
    random = np.random.default_rng(seed)
    count, pairs = int(random.integers(2, 8)), int(random.integers(3, 16))
    a, b = random.integers(0, count, (2, pairs))
    ratios = (np.array([0.6, 0.4]), np.array([0.5, 0.3, 0.2]))[seed % 2]
    return UnitGraph(count, a, b), ratios


@pytest.mark.parametrize(
    "seed",
    [*range(6), *(pytest.param(x, marks=pytest.mark.slow) for x in range(6, 12))],
)
def test_pairs_kept_beside_the_optimum_and_the_bound(seed):
    graph, ratios = drawn_graph(seed)
    part = pair_splits.apart(graph, ratios, seed)
    best = -np.inf
    for place in product(range(len(ratios)), repeat=graph.count):
        place = np.array(place)
        best = max(best, pair_splits._value(place, graph, ratios))
        inside = pair_splits._inside(place, graph, len(ratios))
        if inside.all():
            bound = pair_splits.most_apart(graph, inside / inside.sum())
            assert inside.sum() <= bound
    found = pair_splits._value(part, graph, ratios)
    assert found <= best and (found >= best - 3 or found < 0)


def test_the_bound_of_two_cliques():
    """Two sets of 20 with all pairs within and three across lose three at least, and
    the bound is not trivial."""
    pairs = [(i, j) for i in range(40) for j in range(i) if i // 20 == j // 20]
    pairs += [(0, 20), (1, 21), (2, 22)]
    a, b = np.array(pairs).T
    graph, halves = UnitGraph(40, a, b), np.array([0.5, 0.5])
    part = pair_splits.apart(graph, halves, 0)
    inside = pair_splits._inside(part, graph, 2)
    assert inside.tolist() == [190, 190]
    assert 380 <= pair_splits.most_apart(graph, inside / inside.sum()) < 383


def test_shares_of_many_pairs():
    random = np.random.default_rng(0)
    graph = UnitGraph(3000, *random.integers(0, 3000, (2, 9000)))
    ratios = np.array([0.8, 0.1, 0.1])
    inside = pair_splits._inside(pair_splits.apart(graph, ratios, 0), graph, 3)
    assert np.abs(inside / inside.sum() - ratios).max() < 0.05
    bound = pair_splits.most_apart(graph, inside / inside.sum())
    assert inside.sum() <= bound < 9000
    of_pair = pair_splits.pairs_by_last(graph, pair_splits.by_last(graph, ratios, 0))
    assert np.abs(np.bincount(of_pair) / 9000 - ratios).max() < 0.02
    keys = random.integers(0, 5000, 9000)
    dealt = pair_splits.dealt(keys, ratios, 0)
    assert np.abs(np.bincount(dealt) / 9000 - ratios).max() < 0.01
    assert len({*zip(keys.tolist(), dealt.tolist(), strict=True)}) == len({*keys})


@pytest.mark.parametrize(
    "asked, error, message",
    [
        ({"cold": "x"}, "UsageError", "cold = 'x'"),
        ({"second": "x"}, "UsageError", "second = 'x'"),
        ({"seed": -1}, "UsageError", "seed"),
        ({"cold": "one", "folds": 2, "parts": None}, "UsageError", "would belong to"),
        (
            {"pairs": [("a", "z")]},
            "InputError",
            "pair 0: z is not the name of a sequence",
        ),
        (
            {"pairs": [("z", "a")], "second": "groups"},
            "InputError",
            "z is not the name",
        ),
        ({"pairs": []}, "InputError", "there are no pairs"),
        ({"pairs": [("a", "b")]}, "UsageError", "would be empty"),
    ],
)
def test_refusals(asked, error, message):
    proteins = {"a": "ACGTACGT", "b": "GGGGGGGG"}
    asked = {"min_identity": 0.9, "parts": PARTS[0], "pairs": [("a", "b")]} | asked
    with pytest.raises(getattr(jaxalign, error), match=message):
        jaxalign.split_pairs(
            proteins, asked.pop("pairs"), SCORING, **asked, link="whole"
        )


def test_as_many_parts_as_pairs():
    proteins = {"a": "ACGTACGT", "b": "GGGGGGGG"}
    for parts, error in ((["x"], "InputError"), (["x", "x"], "UsageError")):
        with pytest.raises(getattr(jaxalign, error), match="part"):
            jaxalign.audit_pairs(
                proteins,
                [("a", "a"), ("b", "b")],
                parts,
                SCORING,
                min_identity=0.9,
                link="whole",
            )
