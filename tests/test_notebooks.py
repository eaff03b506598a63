"""The notebooks of the docs run from top to bottom, and draw what they show."""

import json
from pathlib import Path

import jax
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))
PICTURES = {
    "align-learned-similarities": 2,
    "receptors-of-one-epitope": 1,
    "search-and-look": 3,
    "split-a-data-set": 2,
}


def cells(path: Path, kind: str) -> list[dict]:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [one for one in notebook["cells"] if one["cell_type"] == kind]


def test_every_notebook_is_known():
    assert {path.stem for path in NOTEBOOKS} == {*PICTURES}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_not_stored(path):
    """The site has them: it runs the notebooks when it is built."""
    assert all(not one["outputs"] for one in cells(path, "code"))
    assert all(one["execution_count"] is None for one in cells(path, "code"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, monkeypatch, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)
    pyplot.close("all")
    names: dict = {"__name__": "__main__"}
    sources = ["".join(one["source"]) for one in cells(path, "code")]
    # optax promotes dtypes, as JAX does by default.
    loose = any("import optax" in source for source in sources)
    with jax.numpy_dtype_promotion("standard" if loose else "strict"):
        for source in sources:
            exec(compile(source, path.name, "exec"), names)
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    assert len(figures) == PICTURES[path.stem]
    for figure in figures:
        figure.canvas.draw()
        pixels = figure.canvas.buffer_rgba()
        assert len(set(memoryview(pixels).cast("B")[::7])) > 10, "not blank"
    pyplot.close("all")
