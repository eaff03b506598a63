"""Covers, repairs, priorities, series and bounds beside the exhaustive optimum."""

from itertools import product

import brute_force as bf
import numpy as np
import pytest

import jaxalign
from jaxalign.homology import removal, splitting
from jaxalign.homology.links import Links

SCORING = jaxalign.Scoring(match=2, mismatch=-1, gap_open=bf.OPEN, gap_extend=bf.EXTEND)
HALVES = {"train": 0.5, "test": 0.5}


def drawn_graph(random, count: int, density: float) -> Links:
    i, j = np.nonzero(np.triu(random.random((count, count)) < density, 1))
    return Links(i, j, random.random(len(i)))


def least_weight(links, weight) -> int:
    """Of all vertex covers, one by one."""
    masks = np.array(list(product([False, True], repeat=len(weight))))
    covers = (masks[:, links.i] | masks[:, links.j]).all(axis=1)
    return int((masks[covers] @ weight).min())


@pytest.mark.parametrize("seed", range(60))
def test_covers_and_their_bound(seed):
    random = np.random.default_rng(seed)
    count = int(random.integers(2, 11))
    links = drawn_graph(random, count, 0.35)
    weight = random.integers(1, (2, 6)[seed % 2], count)
    if seed % 3 == 0:  # between two parts
        side = random.integers(0, 2, count)
        across = side[links.i] != side[links.j]
        links = Links(links.i[across], links.j[across], links.identity[across])
    best = least_weight(links, weight)
    found = removal.least_cover(links.i, links.j, weight)
    total = int(weight[found.inside].sum())
    assert (found.inside[links.i] | found.inside[links.j]).all()
    assert found.bound <= best <= total <= 2 * best
    if seed % 3 == 0:
        assert found.bound == best == total


def test_no_member_of_a_cover_is_superfluous():
    for seed in range(30):
        random = np.random.default_rng(seed)
        count = int(random.integers(10, 30))
        links = drawn_graph(random, count, 0.35)
        weight = random.integers(1, 6, count)
        inside = removal.least_cover(links.i, links.j, weight).inside
        needed = np.zeros(count, bool)
        needed[links.i[~inside[links.j]]] = needed[links.j[~inside[links.i]]] = True
        assert (inside == needed).all()


def repairs(known, links, parts: int):
    """All parts, -1 for none, that a repair may give: no link across."""
    for part in product(range(-1, parts), repeat=len(known)):
        part = np.array(part)
        a, b = part[links.i], part[links.j]
        if not ((a >= 0) & (b >= 0) & (a != b)).any():
            yield part


@pytest.mark.parametrize("seed", range(40))
def test_repairs_change_as_little_as_can_be(seed):
    random = np.random.default_rng(seed)
    parts, count = (2, 3)[seed % 2], int(random.integers(3, 8))
    links = drawn_graph(random, count, 0.3)
    known = random.integers(0, parts, count).astype(np.int32)
    weight = random.integers(1, 4, count)
    graph = removal.graph_of(count, links)
    component = np.array(jaxalign_components(count, links), np.int32)
    best = {False: np.inf, True: np.inf}
    for part in repairs(known, links, parts):
        cost = weight[part != known].sum()
        best[True] = min(best[True], cost)
        if (part >= 0).all():
            best[False] = min(best[False], cost)
    moved = splitting.by_moves(component, known, weight, parts)
    cost = weight[moved.part != known].sum()
    assert moved.bound == cost == best[False] and not moved.free.any()
    removed = splitting.by_removal(graph, links, known, weight)
    a, b = removed.part[links.i], removed.part[links.j]
    assert not ((a >= 0) & (b >= 0) & (a != b)).any()
    cost = weight[removed.part != known].sum()
    assert removed.bound <= best[True] <= cost
    assert cost == best[True] or parts == 3
    # What is in no part has links into two parts, or it would have been moved.
    for v in np.flatnonzero(removed.part < 0):
        near = removed.part[graph.indices[graph.indptr[v] : graph.indptr[v + 1]]]
        assert len(set(near[near >= 0].tolist())) != 1


def jaxalign_components(count, links):
    """Labels of components, by spreading the least number along links."""
    labels = list(range(count))
    for _ in range(count):
        for i, j in zip(links.i, links.j, strict=True):
            labels[i] = labels[j] = min(labels[i], labels[j])
    return [sorted(set(labels)).index(x) for x in labels]


def drawn_words(seed: int):
    random = np.random.default_rng(seed)
    words = bf.random_words(random, int(random.integers(6, 12)))
    link, shares = bf.drawn_link(seed, words)
    some = shares[np.isfinite(shares) & (shares > 0)]
    cut = float(random.choice(some)) if len(some) else 0.5
    return random, words, shares, cut, link


@pytest.mark.parametrize("seed", range(24))
def test_repaired_splits_have_no_leak(seed):
    random, words, shares, cut, link = drawn_words(seed)
    too_large = ("keep", "remove")[seed % 2]
    names = ["a", "b", "c"][: 2 + seed // 2 % 2]
    fixed = [None if random.random() < 0.2 else random.choice(names) for _ in words]
    if len(set(fixed) - {None}) < 2:
        return
    asked = {"min_identity": cut, "fixed": fixed, "too_large": too_large, **link}
    try:
        found = jaxalign.split(words, SCORING, **asked)
    except jaxalign.UsageError as error:
        assert "would be empty" in str(error)
        return
    assert bf.leaks(found.part, shares, cut) == 0
    changes, names = found.info["changes"], found.names
    before = np.array([-1 if x is None else names.index(x) for x in fixed])
    old = before >= 0
    assert changes["kept"] == (old & (before == found.part)).sum()
    assert changes["removed"] == (old & (found.part < 0)).sum()
    assert changes["kept"] + changes["moved"] + changes["removed"] == old.sum()
    assert changes["bound"] <= changes["moved"] + changes["removed"]
    assert too_large == "remove" or not len(found.removed)
    assert f"{changes['moved']} moved" in str(found)


def test_a_split_without_leaks_is_kept():
    words = ["ACGTACGT", "ACGTACGA", "GGGGGGGG", "TTTTTTTT"]
    fixed = ["x", "x", "y", "x"]
    found = jaxalign.split(words, SCORING, min_identity=0.5, fixed=fixed, link="whole")
    assert found.part.tolist() == [0, 0, 1, 0] and found.shares.tolist() == [0.75, 0.25]
    assert "4 stay where they were, 0 moved, 0 removed; no repair changes less" in str(
        found
    )
    fixed = ["x", "y", "y", None]
    asked = {"min_identity": 0.5, "fixed": fixed, "parts": {"y": 0.5, "x": 0.5}}
    found = jaxalign.split(words, SCORING, too_large="keep", **asked, link="whole")
    assert found.names == ("y", "x") and found.info["changes"]["moved"] == 1
    with pytest.raises(jaxalign.UsageError, match="fixed has the part 'x'"):
        jaxalign.split(
            words, SCORING, **asked | {"parts": {"y": 0.5, "z": 0.5}}, link="whole"
        )


@pytest.mark.parametrize(
    "seed",
    [*range(3), *[pytest.param(x, marks=pytest.mark.slow) for x in range(3, 12)]],
)
def test_a_division_beside_the_optimum(seed):
    """What is kept is bounded by the best of all divisions, and the bound by it."""
    random = np.random.default_rng(seed)
    count, parts = int(random.integers(5, 9)), 2
    links = drawn_graph(random, count, 0.4)
    weight = random.integers(1, 4, count) if seed % 2 else None
    shares = removal.Shares(np.full(parts, count / parts), 0, weight)
    part = removal.divide(count, links, shares, seed)
    a, b = part[links.i], part[links.j]
    assert not ((a >= 0) & (b >= 0) & (a != b)).any()
    none = np.zeros(count, int)
    values = [(shares.value(x), (x < 0).sum()) for x in repairs(none, links, parts)]
    best = max(value for value, _ in values)
    assert best >= shares.value(part) >= best - (2 if weight is None else 4)
    fits = [
        (x < 0).sum()
        for x in repairs(none, links, parts)
        if (np.bincount(x[x >= 0], minlength=parts) <= shares.room).all()
    ]
    component = np.array(jaxalign_components(count, links), np.int32)
    divided = np.ones(component.max() + 1, bool)
    graph = removal.graph_of(count, links)
    room = int(shares.room.max())
    assert removal.fewest_removed(graph, component, divided, room) <= min(fits)


@pytest.mark.parametrize("seed", range(20))
def test_no_split_is_nearer_than_the_bound(seed):
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 9, int(random.integers(2, 6)))
    ratios = np.array([0.7, 0.2, 0.1])
    least = splitting.least_share_error(sizes, ratios)
    errors = []
    for place in product(range(3), repeat=len(sizes)):
        got = np.bincount(place, sizes, minlength=3) / sizes.sum()
        errors.append(np.abs(got - ratios).max())
    assert least <= min(errors) + 1e-12


@pytest.mark.parametrize("light", [3, 4, 5])
def test_priority_says_who_stays(light):
    """A chain is cut at the link in its middle that has the least priority."""
    at = np.arange(8)
    links = Links(at, at + 1, np.ones(8))
    weight = np.full(9, 5)
    weight[light] = 2
    component, halves = np.zeros(9, np.int32), {"train": 0.5, "test": 0.5}
    part = splitting.place(component, links, halves, None, 0, "remove", weight)
    assert np.flatnonzero(part < 0).tolist() == [light]


def test_a_bridge_is_removed():
    words = ["ACGTACGTAC"] * 4 + ["GGGGGGGGGG"] * 4
    bridge = "ACGTAGGGGG"
    words.append(bridge)
    cut = min(bf.identity(bridge, words[0]), bf.identity(bridge, words[4]))
    assert bf.identity(words[0], words[4]) < cut
    asked = {"min_identity": cut, "parts": HALVES, "too_large": "remove"}
    plain = jaxalign.split(words, SCORING, **asked, link="whole")
    assert plain.removed.tolist() == [8] and plain.info["fewest_removed"] == 1
    assert "1 removed by a search; any split of these shares removes 1" in str(plain)
    valued = jaxalign.split(
        words, SCORING, priority=[1] * 8 + [100], **asked, link="whole"
    )
    assert valued.removed.tolist() == [8], "else a part would be empty"
    for values, message in (([0] * 9, "priority 0"), ({"x": 1}, "belongs to no")):
        with pytest.raises(jaxalign.InputError, match=message):
            jaxalign.split(words, SCORING, priority=values, **asked, link="whole")
    with pytest.raises(jaxalign.UsageError, match="it needs too_large='remove'"):
        jaxalign.split(
            words, SCORING, min_identity=cut, folds=2, priority=[1] * 9, link="whole"
        )


@pytest.mark.parametrize(
    "seed",
    [*range(4), *(pytest.param(x, marks=pytest.mark.slow) for x in range(4, 7))],
)
def test_a_series_is_the_splits_one_by_one(seed):
    random, words, shares, _, link = drawn_words(seed)
    some = np.unique(shares[np.isfinite(shares) & (shares > 0)])
    cuts = random.choice(some, min(3, len(some)), replace=False).tolist()
    too_large = ("keep", "remove")[seed % 2]
    asked = {"parts": HALVES, "seed": seed, "too_large": too_large, **link}
    try:
        series = jaxalign.split_series(words, SCORING, cuts=cuts, **asked)
    except jaxalign.UsageError as error:
        assert "would be empty" in str(error)
        return
    assert list(series) == cuts
    for cut, split in series.items():
        alone = jaxalign.split(words, SCORING, min_identity=cut, **asked)
        assert split.part.tolist() == alone.part.tolist()
        assert split.groups.tolist() == alone.groups.tolist()
        assert split.definition.cut == cut and str(split) == str(alone)
        linked = np.nansum(np.triu(shares, 1) >= cut)
        assert split.info["at_or_above_cut"] == linked == alone.info["at_or_above_cut"]


@pytest.mark.parametrize("cuts", [[], [0.0], [0.5, 2], [0.5, 0.5], ["x"]])
def test_cuts_that_are_none(cuts):
    with pytest.raises(jaxalign.UsageError, match="cuts = "):
        jaxalign.split_series(
            ["ACGT", "GGGG"], SCORING, cuts=cuts, folds=2, link="whole"
        )


def test_sequences_without_a_label():
    random = np.random.default_rng(0)
    words = {f"s{k}": "".join(random.choice([*"ACGT"], 30)) for k in range(20)}
    labels = {name: "ab"[k % 2] for k, name in enumerate(words) if k >= 4}
    asked = {"min_identity": 0.9, "parts": HALVES, "labels": labels}
    with pytest.raises(jaxalign.InputError, match="has no label|have no label"):
        jaxalign.split(words, SCORING, **asked, link="whole")
    kept = jaxalign.split(words, SCORING, unlabelled="label", **asked, link="whole")
    assert kept.labels is not None and kept.labels.names == ("a", "b", "unlabelled")
    assert kept.label_counts is not None
    assert kept.label_counts.tolist() == [[4, 4, 2]] * 2
    gone = jaxalign.split(words, SCORING, unlabelled="remove", **asked, link="whole")
    assert gone.removed.tolist() == [0, 1, 2, 3] and gone.sizes.tolist() == [8, 8]
    assert gone.info["unlabelled"] == 4 and len(set(gone.groups.tolist())) == 20
    assert "4 without a label are in no part" in str(gone)
    listed = [labels.get(name) for name in words]
    again = jaxalign.split(
        words, SCORING, unlabelled="remove", **asked | {"labels": listed}, link="whole"
    )
    assert again.part.tolist() == gone.part.tolist()
    with pytest.raises(jaxalign.InputError, match="no label"):
        jaxalign.split(words, SCORING, **asked | {"labels": listed}, link="whole")
    with pytest.raises(jaxalign.UsageError, match="no effect without labels"):
        jaxalign.split(
            words, SCORING, min_identity=0.9, folds=2, unlabelled="remove", link="whole"
        )


def test_the_shares_of_labels_are_said():
    random = np.random.default_rng(0)
    words = ["".join(random.choice([*"ACGT"], 30)) for _ in range(20)]
    labels = ["ab"[k % 2] for k in range(20)]
    found = jaxalign.split(
        words, SCORING, min_identity=0.9, parts=HALVES, labels=labels, link="whole"
    )
    assert "label a: 50.00%; train 50.00%, test 50.00%" in str(found)
