"""The lines of docs/how-to/other-libraries.md, run where a library is installed."""

import re
from pathlib import Path

import numpy as np
import pytest

import jaxalign

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "other-libraries.md"
START, *SECTIONS = PAGE.read_text(encoding="utf-8").split("\n## ")
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS = {
    (section.splitlines()[0], number): source
    for section in SECTIONS
    for number, source in enumerate(FENCE.findall(section))
}


def run(heading: str, number: int = 0) -> dict:
    """The names that a block leaves."""
    source = BLOCKS[heading, number]
    for library in re.findall(r"^(?:from|import) (\w+)", source, re.MULTILINE):
        pytest.importorskip(library)
    names: dict = {}
    exec(FENCE.search(START)[1] + source, names)
    return names


def test_every_block_has_a_test():
    first = {heading.split()[0].strip(",").lower() for heading, _ in BLOCKS}
    assert {f"test_{word.replace('-', '')}" for word in first} <= {*globals()}


def test_biopython():
    names = run("Biopython")
    one, found = names["table"].alignment(0), names["alignment"]
    assert tuple(found) == one.rows()[::-1] and found.score == one.score
    assert (found.target.id, found.query.id) == ("b", "a")
    assert names["sam"].split("\t")[5] == one.cigar()


def test_biopython_has_spans_and_overhangs():
    pytest.importorskip("Bio")
    pair = "PPMKTAYIAKQR", "MKTAIAKQRWW"
    for options in ({"mode": "local"}, {"mode": "global"}, {"mode": "semiglobal"}):
        one = jaxalign.align(*pair, **options)
        found = one.to_biopython()
        assert tuple(found) == one.rows()[::-1]
        assert (str(found.query.seq), str(found.target.seq)) == pair
        spans = found.coordinates[::-1, [0, -1]].ravel().tolist()
        assert spans == [
            one.query_start, one.query_end, one.target_start, one.target_end
        ]  # fmt: skip


def test_biotite():
    names = run("biotite")
    assert names["again"].rows() == names["result"].rows()


def test_pandas():
    names = run("pandas, polars and Arrow")
    close = names["close"]
    assert close["score"].to_list() == [x for x in names["table"]["score"] if x > 50]
    assert 0 < len(close) < 6 and set(close["query"]) <= {*names["names"]}


def test_scikitbio():
    names = run("scikit-bio")
    assert names["distances"].ids == (*"abcd",)
    assert {tip.name for tip in names["tree"].tips()} == {*"abcd"}


def test_scipy():
    names = run("scipy")
    labels = jaxalign.cluster(names["texts"], min_identity=0.8).labels
    assert names["count"] == labels.max() + 1
    np.testing.assert_array_equal(names["labels"], labels)
    assert names["tree"].shape == (3, 4)


def test_scikitlearn():
    names = run("scikit-learn")
    assert names["model"].score(names["distances"], names["y"]) == 1
    groups = names["groups"]
    assert not {*groups[names["train"]]} & {*groups[names["test"]]}
    assert len(names["scores"]) == 2
    names = run("scikit-learn", 1)
    shown = {k: f"{x:.2f}" for k, x in names["scores"].items()}
    assert shown == {"random folds": "0.81", "without relatives": "0.69"}
    sizes = np.bincount(names["divided"].groups)
    assert (
        (sizes == 1).sum() == 258 and sizes.max() == 89 and names["viral"].sum() == 303
    )


def test_scikitlearn_searches_and_validates():
    selection = pytest.importorskip("sklearn.model_selection")
    neighbors = pytest.importorskip("sklearn.neighbors")
    random = np.random.default_rng(3)
    texts = ["".join(random.choice([*"ACDEFGHIKL"], 30)) for _ in range(20)]
    texts += [text[:-1] for text in texts]
    X, y = random.random((40, 2)), np.arange(40) % 2
    asked = {"min_identity": 0.9, "link": "whole"}
    folds = jaxalign.split(texts, folds=4, **asked).splitter()
    model = neighbors.KNeighborsClassifier(1)
    search = selection.GridSearchCV(model, {"n_neighbors": [1, 3]}, cv=folds).fit(X, y)
    assert (
        search.n_splits_ == 4 == len(selection.cross_val_score(model, X, y, cv=folds))
    )
    parts = {"train": 0.5, "valid": 0.25, "test": 0.25}
    one = jaxalign.split(texts, parts=parts, **asked).splitter("test", "train")
    assert len(selection.cross_validate(model, X, y, cv=one)["test_score"]) == 1
    with pytest.raises(ValueError, match="20 samples, and the split 40 sequences"):
        selection.cross_val_score(model, X[:20], y[:20], cv=folds)
    with pytest.raises(ValueError, match="groups of its own"):
        selection.cross_val_score(model, X, y, cv=folds, groups=y)


def test_anndata():
    cells = run("AnnData and scirpy")["cells"]
    graph = cells.obsp["identity"].toarray() > 0
    assert np.argwhere(np.triu(graph)).tolist() == [[0, 1], [1, 2]]
    assert cells.obs["clone"].tolist() == [0, 0, 0, 1]


def test_scirpy():
    names = run("AnnData and scirpy", 1)
    from scirpy.ir_dist.metrics import LevenshteinDistanceCalculator

    texts, some = np.array(names["texts"]), np.array(names["texts"][:2])
    theirs = LevenshteinDistanceCalculator(cutoff=2, n_jobs=1)
    for sides in ((texts,), (texts, some)):
        ours = names["metric"].calc_dist_mat(*sides).toarray()
        np.testing.assert_array_equal(ours, theirs.calc_dist_mat(*sides).toarray())
