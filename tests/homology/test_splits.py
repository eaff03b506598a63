"""Splits and audits: no leak, by brute force; shares, labels, what is removed."""

import brute_force as bf
import numpy as np
import pytest

import jaxalign
from jaxalign.homology import across, assignment, removal, splitting
from jaxalign.homology.audit import audit_of
from jaxalign.homology.links import Links
from jaxalign.pairs.proofs import proof

SCORING = jaxalign.Scoring(match=2, mismatch=-1, gap_open=bf.OPEN, gap_extend=bf.EXTEND)
HALVES = {"train": 0.5, "test": 0.5}
THREE = {"train": 0.6, "valid": 0.2, "test": 0.2}


def drawn(seed: int):
    """Words, a cut that some pair is at exactly if there is one, and a link."""
    random = np.random.default_rng(seed)
    words = bf.random_words(random, int(random.integers(4, 14)))
    kind = str(random.choice(["longer", "shorter", "mean"]))
    link, shares = bf.drawn_link(seed, words, kind)
    some = shares[np.isfinite(shares) & (shares > 0)]
    cut = float(random.choice(some)) if len(some) else 0.5
    return words, shares, cut, link


def check_split(seed: int):
    words, shares, cut, link = drawn(seed)
    too_large = ("keep", "remove")[seed % 2]
    parts = (HALVES, THREE)[seed // 2 % 2]
    asked = {"min_identity": cut, "seed": seed, **link}
    try:
        found = jaxalign.split(
            words, SCORING, parts=parts, too_large=too_large, **asked
        )
    except jaxalign.UsageError as error:
        assert "would be empty" in str(error) and too_large == "remove"
        return None
    assert bf.leaks(found.part, shares, cut) == 0
    assert too_large == "remove" or not len(found.removed)
    sets = {name: found.take(name) for name in found.names}
    audit = jaxalign.audit(sets, SCORING, min_identity=cut, **link)
    assert audit.holds and audit.leaks == 0
    check_worst(audit, found.part, shares, audit.definition.options.worst)
    return found


def check_worst(audit, part, shares, count):
    """The worst pairs are those of all pairs across."""
    identities = [
        shares[i, j]
        for i in range(len(part))
        for j in range(i)
        if -1 < part[i] != part[j] > -1 and np.isfinite(shares[i, j])
    ]
    assert audit.worst["identity"].tolist() == sorted(identities, reverse=True)[:count]


@pytest.mark.parametrize(
    "first",
    [0, 10, *[pytest.param(x, marks=pytest.mark.slow) for x in range(20, 60, 10)]],
)
def test_random_splits_have_no_leak(first):
    assert any([check_split(seed) for seed in range(first, first + 10)])


@pytest.mark.slow
@pytest.mark.parametrize("first", range(60, 1000, 188))
def test_two_hundred_random_splits_have_no_leak(first):
    assert any([check_split(seed) for seed in range(first, first + 47)])


@pytest.mark.parametrize("seed", range(20))
def test_an_audit_finds_every_leak(seed):
    words, shares, cut, link = drawn(seed)
    part = np.random.default_rng(seed).integers(0, 3, len(words))
    sets = [[w for w, p in zip(words, part, strict=True) if p == k] for k in range(3)]
    asked = {"min_identity": cut, "worst": 3, **link}
    found = jaxalign.audit(sets, SCORING, **asked)
    assert found.leaks == bf.leaks(part, shares, cut)
    assert found.holds == (found.leaks == 0)
    check_worst(found, part, shares, 3)
    pairs = sum(part[i] != part[j] for i in range(len(part)) for j in range(i))
    assert found.info["all"] == pairs
    assert found.info["aligned"] + sum(found.info["excluded"].values()) == pairs
    leaking = (part[:, None] != part[None, :]) & (shares >= cut)
    for k in range(3):
        assert found.leaking[k].tolist() == leaking.any(axis=1)[part == k].tolist()


@pytest.mark.usefixtures("compiled")
@pytest.mark.slow
@pytest.mark.parametrize("ratio, cut", [(None, 0.7), (0.35, 0.7), (None, 0.95)])
def test_what_is_excluded_changes_nothing(ratio, cut, monkeypatch):
    """Real alphabets have many letters: most pairs are excluded by a proof."""
    monkeypatch.setattr(proof, "LEAST_CELLS", 0)
    random = np.random.default_rng(0)
    words = ["".join(random.choice([*"ARNDCQEGHILKMFPSTWYV"], 30)) for _ in range(40)]
    words += [word[: 10 + k] + "WW" for k, word in enumerate(words[:20])]
    parts = {"a": words[:40], "b": words[40:]}
    asked = {"min_identity": cut, "worst": 5, "min_length_ratio": ratio}
    found = jaxalign.audit(parts, **asked, link="whole")
    plain = jaxalign.audit(parts, filter=False, **asked, link="whole")
    assert {k: v.tolist() for k, v in found.worst.items()} == {
        k: v.tolist() for k, v in plain.worst.items()
    }
    assert found.leaks == plain.leaks == found.info["at_or_above_cut"] > 0
    assert found.info["aligned"] < found.info["all"] / 2 < plain.info["all"]
    reasons = found.info["excluded"]
    assert sum(reasons.values()) + found.info["aligned"] == 800
    assert any("lcs" in name for name in reasons) and len(reasons) == 2 + bool(ratio)
    rises = len(found.worst["identity"]) > found.leaks  # a pair below the cut is wanted
    assert all(across.RISING_CUT in name for name in reasons) == rises == (cut == 0.95)
    assert ratio is None or f"min(m, n) / max(m, n) < {ratio}" in str(reasons)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_every_leaking_sequence_has_its_nearest(seed, full):
    """By brute force: the most identical one of another part, of equals the first."""
    words, shares, cut, link = drawn(seed)
    part = np.random.default_rng(seed).integers(0, 3, len(words))
    names = [f"s{k}" for k in range(len(words))]
    sets = {
        f"p{p}": {names[k]: words[k] for k in np.flatnonzero(part == p)}
        for p in range(3)
    }
    asked = {"min_identity": cut, "full_histogram": full, **link}
    found = jaxalign.audit(sets, SCORING, **asked).leak_columns()
    rows = dict(zip(found["name"], zip(*found.values(), strict=True), strict=True))
    for k, name in enumerate(names):
        others = [j for j in range(len(words)) if part[j] != part[k]]
        others = [j for j in others if np.isfinite(shares[k, j])]
        best = max(others, key=lambda j: (shares[k, j], -part[j], -j), default=None)
        leaks = best is not None and shares[k, best] >= cut
        if not (leaks or (full and best is not None)):
            assert name not in rows
            continue
        expected = names[best], f"p{part[best]}", shares[k, best]
        assert rows[name] == (name, f"p{part[k]}", leaks, *expected)


def test_an_audit_tells_of_other_measures():
    """A fragment: nothing end to end, everything locally."""
    random = np.random.default_rng(1)
    whole = "".join(random.choice([*"ARNDCQEGHILKMFPSTWYV"], 200))
    parts = {"train": {"w": whole}, "test": {"f": whole[50:90], "o": "W" * 60}}
    found = jaxalign.audit(parts, min_identity=0.4, link="whole")
    assert found.holds
    others = {(x.mode, x.identity): x for x in found.others()}
    assert set(others) == {("local", "shorter")}
    local = others["local", "shorter"]
    assert local.linked == 1 and local.largest == 1 and set(local.worst) == {"w", "f"}
    page = found.report()
    assert 'class="warn"><strong>The split holds for this question alone' in page
    assert f"The question: {found.definition.question()}" in page
    assert f"local, over the shorter, score &gt;= {local.score}: at least 1 at" in page
    higher = jaxalign.audit(parts, min_identity=0.5, link="whole").others()
    assert [x.identity for x in higher] == ["shorter", "shorter"]
    without = jaxalign.audit(
        {"a": parts["train"], "b": {"o": "W" * 60}}, min_identity=0.4, link="whole"
    )
    assert 'class="ok"><strong>The split holds: no leak' in without.report()
    asked = {"mode": "local", "identity": "shorter", "min_identity": 0.4}
    assert jaxalign.audit(parts, **asked).leaks == 1
    assert "fragments" in jaxalign.audit(parts, **asked).definition.question()
    assert "neither fragments" in found.definition.question()
    assert (
        jaxalign.audit({"a": [], "b": []}, min_identity=0.5, link="whole").others()
        == []
    )


@pytest.mark.parametrize(
    ("cut", "worst", "every"),
    [
        (0.9, 7, 2),
        pytest.param(0.9, 2, 0, marks=pytest.mark.slow),
        pytest.param(1, 1, 3, marks=pytest.mark.slow),
    ],
)
def test_likely_pairs_are_looked_for_once(cut, worst, every, monkeypatch):
    """Those of a few sequences suffice where enough of them reach the cut; those of all
    serve the worst pairs and the other measures alike."""
    random, sizes = np.random.default_rng(5), []
    words = ["".join(random.choice([*"ACGT"], 20)) for _ in range(16)]
    changed = [x[:-2] + ("CA" if x[-2:] == "GT" else "GT") for x in words[:8]]
    words, likely_pairs = words + changed, across.likely_pairs

    def spied(a, b, *given):
        sizes.append((len(a), len(b)))
        return likely_pairs(a, b, *given)

    monkeypatch.setattr(across, "likely_pairs", spied)
    monkeypatch.setattr(across, "FEW", 4)
    monkeypatch.setattr(across, "SHORT_WORD", 4)  # which random words rarely share
    part, asked = np.repeat([0, 1, 2], 8), {"min_identity": cut, "worst": worst}
    sets = {f"p{p}": [words[k] for k in np.flatnonzero(part == p)] for p in range(3)}
    found = jaxalign.audit(sets, SCORING, link="whole", **asked)
    check_worst(found, part, bf.identities(words), worst)
    few = 3 if every else 2  # pairs of parts; the second has the pairs that are alike
    assert sizes == few * [(4, 4)] + every * [(8, 8)]
    expected = found.others()
    sizes.clear()
    parts = dict(zip(found.names, found.parts, strict=True))
    meanwhile = audit_of(parts, found.definition, with_others=True)
    assert meanwhile.others() == expected and expected
    assert sorted(sizes) == few * [(4, 4)] + 2 * 3 * [(8, 8)]  # of two strands
    assert meanwhile.worst["identity"].tolist() == found.worst["identity"].tolist()


def planted_pair(random, anchor: str) -> tuple[str, str]:
    """Two proteins with a similar core, and identical residues beside it that are too
    far apart for a local alignment, and for words in common."""
    alike = random.choice(["IV", "KR", "DE", "FY", "LM"], random.integers(50, 70))
    cores = ("".join(pair[k] for pair in alike) for k in range(2))
    sides = []
    for letters, core in zip(("WC", "KDE"), cores, strict=True):
        between = ("".join(random.choice([*letters], 2)) for _ in range(50))
        flanks = "".join(anchor + x for x in between)
        sides.append(flanks[:75] + core + flanks[75:])
    a, b = sides
    return a, b


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 9))]
)
def test_pairs_that_reach_the_score_are_measured_otherwise(seed):
    """Short sequences share the words of planted ones, whose likely pairs they are."""
    random, cut = np.random.default_rng(seed), 0.2
    anchors = "AGS"[: random.integers(1, 4)]
    train, test = [], []
    for k, anchor in enumerate(anchors):
        a, b = planted_pair(random, anchor)
        start = int(random.integers(20))
        train += [(f"like{k}", b[start : start + 30]), (f"a{k}", a)]
        test.append((f"b{k}", b))
    sides = {"train": train, "test": test}
    found = jaxalign.audit(sides, min_identity=cut, min_length_ratio=0.5)
    assert found.holds
    (whole,) = (x for x in found.others() if x.identity == "longer")
    leaks = jaxalign.audit(sides, min_identity=cut, link="whole").leaks
    assert whole.linked == leaks == len(anchors)
    assert whole.pairs == 2 * len(anchors)  # those that share words, and planted ones
    assert found.report().count("global, over the longer") == 1


def test_a_report_may_leave_out_pairs_within_parts():
    words = ["ACGTACGT", "ACGTACGA", "GGGGGGGG", "TTTTTTTT"]
    found = jaxalign.audit(
        [words[:2], words[2:]], SCORING, min_identity=0.5, link="whole"
    )
    assert "within parts" in found.report() and "Components" in found.report()
    across = found.report(within=False)
    assert "within parts" not in across and "Components" not in across


def test_a_pair_at_exactly_the_cut_is_a_leak():
    words = ["ACGTACGTAC", "ACGTTTTTTT"]
    cut = bf.identity(*words)
    assert 0 < cut < 1
    above = float(np.nextafter(cut, 2))
    parts = [[words[0]], [words[1]]]
    assert jaxalign.audit(parts, SCORING, min_identity=cut, link="whole").leaks == 1
    assert jaxalign.audit(parts, SCORING, min_identity=above, link="whole").leaks == 0
    with pytest.raises(jaxalign.UsageError, match="fit into no part"):
        jaxalign.split(words, SCORING, min_identity=cut, parts=HALVES, link="whole")
    found = jaxalign.split(
        words, SCORING, min_identity=above, parts=HALVES, link="whole"
    )
    assert found.sizes.tolist() == [1, 1]


def far_apart(count: int):
    """Words of which no two are alike at 0.9."""
    random = np.random.default_rng(0)
    return ["".join(random.choice([*"ACGT"], 30)) for _ in range(count)]


def test_shares_and_labels_are_near():
    words = far_apart(100)
    labels = ["rare" if k % 10 == 0 else "common" for k in range(100)]
    asked = {"min_identity": 0.9, "labels": labels}
    parts = {"train": 0.8, "valid": 0.1, "test": 0.1}
    found = jaxalign.split(words, SCORING, parts=parts, **asked, link="whole")
    assert found.sizes.tolist() == [80, 10, 10]
    assert found.labels is not None and found.labels.names == ("common", "rare")
    assert found.label_counts is not None
    assert found.label_counts.tolist() == [[72, 8], [9, 1], [9, 1]]
    assert found.share_error < 1e-12 and found.label_error < 1e-12
    assert "shares differ by 0.00% at most, those of labels by 0.00%" in str(found)
    folds = jaxalign.split(words, SCORING, folds=5, **asked, link="whole")
    assert folds.names == ("fold1", "fold2", "fold3", "fold4", "fold5")
    assert folds.sizes.tolist() == [20] * 5
    for train, test in folds.folds():
        assert sorted([*train, *test]) == list(range(100)) and len(test) == 20


@pytest.mark.parametrize("count", range(2, 12))
def test_shares_need_not_be_whole_numbers(count):
    """Parts of half a sequence more than others are no reason to refuse."""
    found = jaxalign.split(
        far_apart(count), SCORING, min_identity=0.9, parts=HALVES, link="whole"
    )
    assert abs(found.sizes[0] - found.sizes[1]) <= 1


def test_seeds_differ_and_repeat():
    words = far_apart(40)
    parts = [
        jaxalign.split(
            words, SCORING, min_identity=0.9, parts=HALVES, seed=seed, link="whole"
        ).part
        for seed in (0, 0, 1)
    ]
    assert parts[0].tolist() == parts[1].tolist() != parts[2].tolist()


def test_what_a_split_gives():
    words = {"a": "ACGTACGT", "b": "ACGTACGA", "c": "GGGGGGGG", "d": "TTTTTTTT"}
    found = jaxalign.split(words, SCORING, min_identity=0.5, parts=HALVES, link="whole")
    assert found.groups.tolist() == [0, 0, 1, 2]
    assert found.indices("train").tolist() in ([0, 1], [2, 3])
    assert found.take("train").names in (("a", "b"), ("c", "d"))
    with pytest.raises(jaxalign.UsageError, match="train, test"):
        found.indices("valid")
    assert repr(found) == "<Split: train 2, test 2>"
    assert "identity_longer >= 0.5" in str(found) and found.label_error is None
    assert found.to_pandas().columns.tolist() == ["name", "part", "component"]
    assert "<br>" in found._repr_html_()


def test_folds_are_groups_of_scikit_learn():
    """What GroupKFold asks of groups and a cv of pairs of indices."""
    words = bf.random_words(np.random.default_rng(5), 30)
    found = jaxalign.split(
        words, SCORING, min_identity=0.7, folds=2, too_large="keep", link="whole"
    )
    for train, test in found.folds():
        assert not set(found.groups[train]) & set(found.groups[test])
    splitter = found.splitter()
    assert splitter.get_n_splits(words, None, None) == 2 and "2 splits" in repr(
        splitter
    )
    assert splitter.groups is found.groups
    pairs = zip(found.folds(), splitter.split(words, words), strict=True)
    assert all(
        np.array_equal(*sides) for pair in pairs for sides in zip(*pair, strict=True)
    )
    with pytest.raises(jaxalign.UsageError, match="y has 2 samples, and the split 30"):
        splitter.split(words, [0, 1])
    with pytest.raises(jaxalign.UsageError, match="groups of its own"):
        splitter.split(words, groups=[0] * 30)


def test_a_splitter_of_one_split():
    words, parts = far_apart(12), {"train": 0.5, "valid": 0.25, "test": 0.25}
    asked = {"min_identity": 0.9, "link": "whole", "parts": parts}
    found = jaxalign.split(words, SCORING, **asked)
    for train, names in ((None, ("train", "valid")), ("valid", ("valid",))):
        ((rows, tests),) = found.splitter("test", train).split()
        assert tests.tolist() == found.indices("test").tolist()
        want = np.sort(np.concatenate([found.indices(x) for x in names]))
        assert rows.tolist() == want.tolist()
    for about in (("best",), ("test", "best")):
        with pytest.raises(jaxalign.UsageError, match="part 'best': one of train"):
            found.splitter(*about)
    with pytest.raises(jaxalign.UsageError, match="test cannot be tested on, too"):
        found.splitter("test", ["train", "test"])


# What is too large -------------------------------------------------------------------


def test_too_large_is_the_users_choice():
    words = ["ACGTACGTAC"] * 8 + ["GGGGGGGGGG", "TTTTTTTTTT"]
    asked = {"min_identity": 0.9, "parts": HALVES}
    with pytest.raises(jaxalign.UsageError, match="the largest of them has 8 of 10"):
        jaxalign.split(words, SCORING, **asked, link="whole")
    kept = jaxalign.split(words, SCORING, too_large="keep", **asked, link="whole")
    assert sorted(kept.sizes.tolist()) == [2, 8] and kept.share_error > 0.29
    cut = jaxalign.split(words, SCORING, too_large="remove", **asked, link="whole")
    assert len(cut.removed) == 1 and sorted(cut.sizes.tolist()) == [2, 7]
    assert cut.columns()["part"][cut.removed].tolist() == ["removed"]
    assert "1 removed" in str(cut)


def test_all_equal_cannot_be_split():
    words = ["ACGT"] * 6
    for too_large, message in (("error", "fit into no part"), ("remove", "empty")):
        with pytest.raises(jaxalign.UsageError, match=message):
            jaxalign.split(
                words,
                SCORING,
                min_identity=0.5,
                parts=HALVES,
                too_large=too_large,
                link="whole",
            )


def chain(count: int) -> Links:
    """Every vertex linked to the next."""
    one = np.arange(count - 1)
    return Links(one, one + 1, np.full(count - 1, 0.5))


def test_a_chain_is_cut_once():
    shares = removal.Shares(np.array([50.0, 50.0]), 0)
    part = removal.divide(100, chain(100), shares, 0)
    assert (part < 0).sum() == 1 and abs(np.bincount(part[part >= 0])[0] - 50) <= 8


def random_graph(seed: int, count: int = 300, near: float = 0.09) -> Links:
    """Points in a square, linked where they are near."""
    points = np.random.default_rng(seed).random((count, 2))
    away = np.linalg.norm(points[:, None] - points[None], axis=2)
    i, j = np.nonzero(np.triu(away < near, 1))
    return Links(i, j, 1 - away[i, j])


@pytest.mark.parametrize(
    "seed", [0, *[pytest.param(x, marks=pytest.mark.slow) for x in range(1, 6)]]
)
def test_what_is_kept_has_no_link_across(seed):
    links = random_graph(seed)
    shares = removal.Shares(np.array([180.0, 60.0, 60.0]), 0)
    part = removal.divide(300, links, shares, seed)
    a, b = part[links.i], part[links.j]
    assert not ((a >= 0) & (b >= 0) & (a != b)).any()
    assert (part >= 0).sum() > 250
    assert (np.bincount(part[part >= 0]) <= shares.room).all()


def attached_graph(seed: int, count: int) -> Links:
    """Every vertex linked to two that have many links already, about."""
    dice, ends = np.random.default_rng(seed), [0, 1]
    links = set()
    for new in range(2, count):
        for old in set(dice.choice(ends, 2).tolist()):
            links.add((old, new))
            ends += [old, new]
    i, j = np.array(sorted(links)).T
    return Links(i, j, 0.4 + 0.6 * dice.random(len(i)))


def as_graph_part(count: int, links: Links, shares: removal.Shares) -> np.ndarray:
    """What GraphPart does: pieces along the strongest links go to the part that lacks
    most, vertices to where most of their neighbours are; then the vertex with the most
    links across goes out, until there is none."""
    parts, target = len(shares.target), shares.target
    pieces = max(round(count / target.min()), parts)
    groups, order = removal.along_links(count, links, count // pieces)
    part, lacking = np.zeros(count, int), target.copy()
    for group in dict.fromkeys(groups[order].tolist()):
        part[groups == group] = chosen = int(np.argmax(lacking))
        lacking[chosen] -= (groups == group).sum()
    near = [[] for _ in range(count)]
    for a, b in zip(links.i.tolist(), links.j.tolist(), strict=True):
        near[a].append(b)
        near[b].append(a)
    for v in [*range(count)] * 10:
        there = np.bincount(part[near[v]], minlength=parts)
        if there.max() > there[part[v]]:
            part[v] = there.argmax()
    across = np.array([(part[near[v]] != part[v]).sum() for v in range(count)])
    while across.max() > 0:
        out = int(across.argmax())
        for v in near[out]:
            across[v] -= part[v] >= 0 and part[v] != part[out]
        across[out], part[out] = 0, -1
    return part


def keeps_no_fewer(count: int, links: Links, ratios) -> None:
    shares = removal.Shares(np.array(ratios) * count, 0)
    part = removal.divide(count, links, shares, 0)
    other = as_graph_part(count, links, shares)
    for one in (part, other):
        a, b = one[links.i], one[links.j]
        assert not ((a >= 0) & (b >= 0) & (a != b)).any()
    sizes, others = (
        np.bincount(x[x >= 0], minlength=len(ratios)) for x in (part, other)
    )
    assert sizes.min() > 0 and (sizes <= shares.room).all()
    assert shares.value(part) >= shares.value(other)
    if (others >= shares.least).all():
        assert sizes.sum() >= others.sum()


def test_a_component_that_would_leave_a_part_empty_is_divided():
    links = random_graph(0, 120, 0.14)
    component = np.zeros(120, np.int32)
    shares = {"most": 0.95, "rest": 0.05}
    part = splitting.place(component, links, shares, None, 0, "remove")
    a, b = part[links.i], part[links.j]
    assert not ((a >= 0) & (b >= 0) & (a != b)).any()
    sizes = np.bincount(part[part >= 0], minlength=2)
    assert 4 <= sizes[1] <= 8 and sizes.sum() >= 114
    with pytest.raises(jaxalign.UsageError, match="would be empty"):
        splitting.place(component, links, shares, None, 0, "error")
    assert not splitting.place(component, links, shares, None, 0, "keep").any()


FIFTHS = (0.2,) * 5


@pytest.mark.slow
@pytest.mark.parametrize("ratios", [(0.8, 0.1, 0.1), FIFTHS])
def test_no_fewer_are_kept_than_by_graph_part(ratios):
    keeps_no_fewer(120, random_graph(2, 120, 0.14), ratios)
    keeps_no_fewer(120, attached_graph(2, 120), ratios)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed, ratios",
    [
        *enumerate(
            [(0.9, 0.1), (0.8, 0.2), (0.95, 0.05), (0.5, 0.5), (0.8, 0.1, 0.1), FIFTHS]
        )
    ],
)
def test_no_fewer_are_kept_than_by_graph_part_of_many(ratios, seed):
    keeps_no_fewer(120, random_graph(seed, 120, 0.14), ratios)
    keeps_no_fewer(150, random_graph(seed, 150, 0.1), ratios)
    keeps_no_fewer(120, attached_graph(seed, 120), ratios)


@pytest.mark.parametrize("seed", range(6))
def test_the_search_for_separators_makes_nothing_worse(seed):
    links, random = random_graph(seed), np.random.default_rng(seed)
    shares = removal.Shares(np.array([180.0, 60.0, 60.0]), 0)
    graph = removal.graph_of(300, links)
    part = removal.cover(random.integers(0, 3, 300).astype(np.int32), graph, 3)
    found = removal.improve(part, graph, shares, random, 8, shares.value(part))
    a, b = found[links.i], found[links.j]
    assert not ((a >= 0) & (b >= 0) & (a != b)).any()
    assert shares.value(found) > shares.value(part)
    assert (np.bincount(found[found >= 0]) <= shares.room).all()


@pytest.mark.parametrize("seed", range(40))
def test_the_smallest_cover_of_two_parts(seed):
    from scipy.sparse import csr_array

    random = np.random.default_rng(seed)
    table = random.random(random.integers(1, 6, 2)) < 0.4
    rows, columns = removal._smallest_cover(csr_array(table.astype(np.int32)))
    assert not (table & ~rows[:, None] & ~columns[None]).any(), "every link is covered"
    sizes = [
        bin(mask).count("1") + (table & ~chosen[:, None]).any(axis=0).sum()
        for mask in range(2 ** len(rows))
        for chosen in [np.array([mask >> k & 1 for k in range(len(rows))], bool)]
    ]
    assert rows.sum() + columns.sum() == min(sizes)


@pytest.mark.slow
def test_many_groups():
    random = np.random.default_rng(0)
    groups = np.arange(100_000, dtype=np.int32)
    groups[random.integers(0, 100_000, 20_000)] = 7
    groups = np.unique(groups, return_inverse=True)[1]
    labels = random.integers(0, 3, 100_000)
    tallies = assignment.tally(groups, labels)
    aim = assignment.aimed_tallies(np.array([0.8, 0.1, 0.1]), tallies)
    part, too_large = assignment.assign(tallies, aim, 0)
    sizes = np.bincount(part, weights=tallies[:, 0])
    assert not too_large.any() and np.abs(sizes - [80e3, 10e3, 10e3]).max() <= 1


# Refusals ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked, error, message",
    [
        ({"parts": {"a": 0.5, "b": 0.4}}, "UsageError", "sum to 0.9"),
        ({"parts": {"a": 1.0}}, "UsageError", "two or more"),
        ({"parts": {"a": 1.5, "b": -0.5}}, "UsageError", "part a: share 1.5"),
        ({"parts": {"a/b": 0.5, "c": 0.5}}, "UsageError", "not a valid name"),
        ({"parts": {"": 0.5, "c": 0.5}}, "UsageError", "not a valid name"),
        ({"parts": HALVES, "folds": 2}, "UsageError", "exclude each other"),
        ({"parts": None}, "UsageError", "parts or folds are needed"),
        ({"parts": [0.5, 0.5]}, "UsageError", "parts or folds are needed"),
        ({"parts": None, "folds": 1}, "UsageError", "folds = 1"),
        ({"parts": None, "folds": 2.5}, "UsageError", "folds = 2.5"),
        ({"labels": ["x"]}, "InputError", "2 sequences, and a label for 1"),
        ({"labels": {"seq1": 1}}, "InputError", r"1 sequence \(seq2\) has no label"),
        ({"labels": {"seq1": 1, "seq2": 1, "z": 0}}, "InputError", r"label \(z\) belo"),
        ({"too_large": "cut"}, "UsageError", "error, keep, remove"),
        ({"seed": -1}, "UsageError", "seed"),
        ({"min_identity": 0}, "UsageError", "min_identity = 0"),
    ],
)
def test_refusals(asked, error, message):
    words = ["ACGTACGT", "GGGGGGGG"]
    asked = {"min_identity": 0.9, "parts": HALVES, **asked}
    with pytest.raises(getattr(jaxalign, error), match=message):
        jaxalign.split(words, SCORING, **asked, link="whole")


@pytest.mark.parametrize("words", [[], ["ACGT"], [""]])
def test_too_few_to_split(words):
    with pytest.raises(jaxalign.UsageError, match="would be empty"):
        jaxalign.split(words, SCORING, min_identity=0.5, parts=HALVES, link="whole")


def test_empty_sequences_are_like_empty_ones():
    words = ["", "", "ACGT", "GGGG"]
    found = jaxalign.split(words, SCORING, min_identity=0.5, parts=HALVES, link="whole")
    assert found.sizes.tolist() == [2, 2]
    audit = jaxalign.audit(
        [["", "AC"], ["", ""]], SCORING, min_identity=0.5, link="whole"
    )
    assert audit.leaks == 2 and audit.info["all"] == 4
    assert jaxalign.audit([["AC"], []], SCORING, min_identity=0.5, link="whole").holds


def test_refusals_of_an_audit():
    with pytest.raises(jaxalign.UsageError, match="1 part: an audit needs two or more"):
        jaxalign.audit([["ACGT"]], SCORING, min_identity=0.5, link="whole")
    with pytest.raises(jaxalign.UsageError, match="worst"):
        jaxalign.audit(
            [["ACGT"], ["A"]], SCORING, min_identity=0.5, worst=0, link="whole"
        )


def test_an_audit_of_a_split_and_its_texts():
    words = {"a": "ACGTACGT", "b": "ACGTACGA", "c": "GGGGGGGG", "d": "TTTTTTTT"}
    divided = jaxalign.split(
        words, SCORING, min_identity=0.5, parts=HALVES, link="whole"
    )
    found = jaxalign.audit(divided, SCORING, min_identity=0.5, worst=2, link="whole")
    assert found.names == ("train", "test") and found.holds
    assert repr(found) == "<Audit: no leak in 4 pairs across train 2, test 2>"
    assert str(found).count("\n") == 3 and "<br>" in found._repr_html_()
    assert len(found.alignments) == 2 and len(found.to_pandas()) == 2
    assert "min_identity" not in str(found.definition)


def test_the_default_seed_of_labels_is_names():
    names = ("x", "y")
    found = assignment.labels_of({"y": "b", "x": "a"}, names)
    assert found is not None
    assert found.names == ("a", "b") and found.numbers.tolist() == [0, 1]
