"""``--plot`` and ``--dendrogram``: pictures are looked at, or refused at once."""

import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import jaxalign
from jaxalign.cli import pictures
from jaxalign.errors import EXIT_CODES
from jaxalign.model.show import dot_plot, word_dots

DONE, FAILED, USAGE, INPUT, MEMORY, DEVICE, LEAK, FORGED, INTERRUPTED = EXIT_CODES
SEQUENCES = {
    "a": "MKTAYIAKQRQISFVKSHFSRQ",
    "b": "MKTAYIAKQRQISFVKSHFSWW",
    "c": "HEAGAWGHEEPAWHEAEHEAGA",
    "d$x$": "MKTAYIAKQRSHFSWWGGEEP",
}
TEXT = "{http://www.w3.org/2000/svg}text"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    both = {"all.fa": SEQUENCES, **{f"{n[0]}.fa": {n: s} for n, s in SEQUENCES.items()}}
    for name, some in both.items():
        (tmp_path / name).write_text("".join(f">{n}\n{s}\n" for n, s in some.items()))
    return tmp_path


@pytest.fixture
def image():
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    return imread


def svg(path):
    """(ids, texts) of a drawing; an id is there once."""
    tree = ET.parse(path)
    ids = [one.get("id") for one in tree.iter() if one.get("id")]
    assert len(set(ids)) == len(ids)
    texts = ["".join(one.itertext()) for one in tree.iter(TEXT)]
    return tree, ids, texts


def lines(tree, name) -> np.ndarray:
    """The corners of a line, (points, 2), in the units of the drawing."""
    group = next(one for one in tree.iter() if one.get("id") == name)
    words = next(one.get("d") for one in group.iter() if one.get("d")).split()
    return np.array([w for w in words if w not in "MLz"], float).reshape(-1, 2)


def inked(picture) -> int:
    """Pixels that are not white."""
    return int((picture[..., :3] < 0.99).any(axis=-1).sum())


def test_histogram_and_dendrogram(run, folder, image):
    words = ("all", "all.fa", "--output", "identity", "-q", "-o", "t.tsv", "--force")
    for suffix in ("png", "svg"):
        asked = ("--plot", f"h.{suffix}", "--dendrogram", f"d.{suffix}")
        assert run(*words, *asked)[0] == DONE
    shown = image("h.png")
    assert shown.shape[:2] == (525, 1050) and 5000 < inked(shown) < 300_000
    assert image("d.png").shape[1] == 1050 and inked(image("d.png")) > 2000
    distances = jaxalign.distance_matrix(SEQUENCES)
    upper = distances[np.triu_indices(4, 1)]
    _, ids, texts = svg("h.svg")
    bins = {f"bar-{np.floor(50 * (1 - x) + 1e-9) / 50:g}" for x in upper}
    assert {x for x in ids if x.startswith("bar-")} == bins
    assert {"6 pairs", "identity (longer)", "pairs"} <= {*texts} and "cut" not in ids
    tree, ids, texts = svg("d.svg")
    assert [x for x in ids if x.startswith("joint-")] == [
        f"joint-{k}" for k in range(3)
    ]
    assert {*SEQUENCES} <= {*texts}, "names are texts, no formula"
    # a joins b, d both, c all three; each joint has a leaf, so its width is its height.
    ab, with_d = distances[0, 1], distances[[0, 1], 3].mean()
    heights = np.array([ab, with_d, distances[2, [0, 1, 3]].mean()])
    widths = np.sort([np.ptp(lines(tree, f"joint-{k}")[:, 0]) for k in range(3)])
    np.testing.assert_allclose(widths / widths[-1], heights / heights[-1], atol=1e-3)


def test_a_cut_is_a_line(run, folder, image):
    words = ("all", "all.fa", "--min-identity", "0.5", "-q", "--plot", "h.svg")
    assert run(*words)[0] == DONE
    _, ids, texts = svg("h.svg")
    assert "cut" in ids and any("kept (identity_alignment >= 0.5)" in x for x in texts)


@pytest.mark.parametrize("mode", ["global", "local"])
def test_dot_plot_and_its_path(run, folder, image, mode):
    words = ("align", "a.fa", "d.fa", "--mode", mode, "-q", "-o", "t.tsv", "--force")
    for path in ("p.png", "p.svg"):
        assert run(*words, "--plot", path)[0] == DONE
    shown = image("p.png")
    assert shown.shape[:2] == (900, 900) and inked(shown) > 2000
    red = (shown[..., 0] > 0.6) & (shown[..., 1:3] < 0.4).all(axis=-1)
    assert red.sum() > 200, "the path"
    tree, ids, texts = svg("p.svg")
    assert {"dots", "path"} <= {*ids} and {"a", "d$x$"} <= {*texts}
    one = jaxalign.align(SEQUENCES["a"], SEQUENCES["d$x$"], mode=mode)
    moves = np.diff(lines(tree, "path"), axis=0)
    runs = one.operations.astype(int)
    steps = np.stack([runs >> 4] * 2, axis=1) * np.stack(
        [runs & 15 != 1, runs & 15 != 2], axis=1
    )  # to the right is along the target, down along the query
    residue = np.abs(moves).sum() / steps.sum()
    np.testing.assert_allclose(moves / residue, steps, atol=0.01)
    assert one.identity() < 1 and len(runs) > (mode == "global")


def test_a_dot_plot_says_the_strand(run, folder, image):
    for name, text in (("q", "GGGACGTTGCAACCA"), ("t", "TTTGGTTGCAACGTCCC")):
        (folder / f"{name}.fa").write_text(f">{name}\n{text}\n")
    words = "align", "q.fa", "t.fa", "--alphabet", "dna", "-q", "--plot", "p.svg"
    for strand, label in (("both", "q, reverse complement"), ("plus", "q")):
        assert run(*words, "--force", "--strand", strand)[0] == DONE
        assert label in svg("p.svg")[2]


def test_an_empty_sequence_has_a_picture_too(run, folder, image):
    (folder / "e.fa").write_text(">e\n\n")
    assert run("align", "e.fa", "a.fa", "-q", "--plot", "p.svg")[0] == DONE
    tree, _, texts = svg("p.svg")
    assert {"e", "a"} <= {*texts} and len(lines(tree, "path")) == 2


def test_dots_are_sums_along_diagonals():
    rng = np.random.default_rng(1)
    q, t, scores = (
        rng.integers(4, size=7),
        rng.integers(4, size=9),
        rng.normal(size=(4, 4)),
    )
    sums = np.zeros((7, 9))
    for i, j in np.ndindex(7, 9):
        for k in (-1, 0, 1):
            if 0 <= i + k < 7 and 0 <= j + k < 9:
                sums[i, j] += scores[q[i + k], t[j + k]]
    shades = sums.clip(0) / sums.max()
    np.testing.assert_allclose(dot_plot(q, t, scores, 3), shades, atol=1e-6)
    pooled = np.pad(shades, ((0, 2), (0, 0))).reshape(3, 3, 3, 3).max(axis=(1, 3))
    np.testing.assert_allclose(dot_plot(q, t, scores, 3, 3), pooled, atol=1e-6)


@pytest.mark.parametrize("backwards", [False, True])
def test_words_are_found_in_both_strands(backwards):
    rng = np.random.default_rng(2)
    q = rng.integers(5, size=90).astype(np.uint8)  # 4 is no letter
    t = np.concatenate([q[20:50], rng.integers(5, size=41), q[:33]]).astype(np.uint8)
    word, counts = 4, np.zeros((23, 21))
    for i, j in np.ndindex(len(q) - word + 1, len(t) - word + 1):
        if (q[i : i + word] == t[j : j + word]).all() and (q[i : i + word] < 4).all():
            row = len(q) - 1 - i if backwards else i
            counts[row // 4, j // 5] += 1
    shades = np.where(counts > 0, np.clip(counts / 4, 0.25, 1), 0)
    found = word_dots(q, t, 4, word, 25, backwards)
    np.testing.assert_allclose(found, shades, atol=1e-6)
    assert (counts > 0).sum() > 10


def test_windows_backwards_are_rows_from_the_end():
    rng = np.random.default_rng(3)
    q, t = rng.integers(4, size=9), rng.integers(4, size=6)
    scores = rng.normal(size=(4, 4))
    ahead, back = (dot_plot(q, t, scores, 3, backwards=x) for x in (False, True))
    np.testing.assert_array_equal(back, ahead[::-1])
    pooled = ahead[::-1].reshape(3, 3, 3, 2).max(axis=(1, 3))
    np.testing.assert_array_equal(dot_plot(q, t, scores, 3, 3, True), pooled)


def test_an_inversion_is_drawn(run, folder, image, monkeypatch):
    rng = np.random.default_rng(4)
    text = "".join(rng.choice(list("ACGT"), 3000))
    turned = text[1000:2000][::-1].translate(str.maketrans("ACGT", "TGCA"))
    both = {"q": text, "t": text[:1000] + turned + text[2000:]}
    for name, letters in both.items():
        (folder / f"{name}.fa").write_text(f">{name}\n{letters}\n")
    words = "align", "q.fa", "t.fa", "--plot"
    for sums, method in ((2**26, "windows of 11"), (2**22, "equal words of 7")):
        monkeypatch.setattr(pictures, "MOST_SUMS", sums)
        path = f"{sums}.png"
        code, _, err = run(*words, path)
        assert code == DONE and f"drawing {path}: {method}" in err
        shown = image(path)[..., :3]
        blue = np.argwhere((shown[..., 2] > 0.8) & (shown[..., :2] < 0.3).all(axis=-1))
        assert len(blue) > 50
    # Of words: from the lower left to the upper right, in the middle third of both.
    assert (np.ptp(blue, axis=0) / shown.shape[0] > 0.15).all()
    assert np.corrcoef(blue.T)[0, 1] < -0.9


def test_a_heat_map_has_the_identities(run, folder, image):
    words = ("all", "all.fa", "--output", "identity", "-q", "-o", "t.tsv", "--force")
    assert run(*words, "--heat-map", "h.svg")[0] == DONE
    _, ids, texts = svg("h.svg")
    assert "table" in ids and {"4 sequences", "identity (longer)"} <= {*texts}
    assert {*SEQUENCES} <= {*texts}
    assert run(*words, "--heat-map", "h.png")[0] == DONE
    assert inked(image("h.png")) > 50_000


def test_clusters_and_parts(run, folder, image):
    words = ("all.fa", "-q", "--plot")
    assert run("cluster", "--min-identity", "0.8", *words, "c.svg")[0] == DONE
    _, ids, texts = svg("c.svg")
    assert {"bar-1", "bar-2"} == {x for x in ids if x.startswith("bar-")}
    assert any("3 clusters of 4 sequences" in x for x in texts)
    words = ("--min-identity", "0.5", "-q", "--force", "--full-histogram", "--plot")
    assert run("audit", "a.fa", "b.fa", *words, "x.svg")[0] == LEAK
    _, ids, texts = svg("x.svg")
    assert {"cut", "bar-0.9"} <= {*ids} and "1 pair across parts, 1 leak" in texts
    assert run("audit", "a.fa", "b.fa", *words, "x.png")[0] == LEAK
    assert inked(image("x.png")) > 2000


REFUSED = {
    "align none.fa b.fa --plot p.doc": "not a picture format",
    "align all.fa all.fa --plot p.png": "one pair, not 4",
    "align a.npz b.npz --embeddings --plot p.png": "embeddings",
    "all all.fa --plot p.png --output score": "--output score",
    "all all.fa --plot p.png -o parts/": "folder",
    "all all.fa --plot p.png --dendrogram p.png": "two outputs go to the same place",
    "all all.fa --dendrogram p.png --min-score 3": "filters",
    "all a.fa --dendrogram p.png": "2 to 1,000",
    "all a.fa --heat-map p.png": "2 to 2,000",
    "all all.fa --heat-map p.png --min-score 3": "--heat-map shows all pairs",
    "all all.fa --heat-map p.png --output score": "--output score",
    "all all.fa --plot all.png": "is the input",
    "cluster all.fa --min-identity 0.5 --plot there.png": "--force",
    "audit a.fa b.fa --min-identity 0.5 --plot x.png -o x.png": "two outputs",
}


@pytest.mark.parametrize("words, why", REFUSED.items())
def test_what_is_refused(run, folder, image, words, why):
    (folder / "there.png").write_text("")
    (folder / "all.png").symlink_to("all.fa")
    more = ["--force"] * ("all.png" in words)
    code, out, err = run(*words.split(), *more)
    assert (code, out) == (USAGE, "") and why in err


def test_without_matplotlib(run, folder, monkeypatch):
    """The refusal comes before a file is read."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for words in ("all none.fa", "align none.fa a.fa", "soft none.fa a.fa"):
        code, _, err = run(*words.split(), "--plot", "p.png")
        assert code == USAGE and "pip install matplotlib" in err
