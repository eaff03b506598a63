"""The Python examples of README.md and docs/ are run; a page is one session."""

import doctest
import re
from pathlib import Path

import jax
import pytest

import jaxalign

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
START = (ROOT / "README.md", ROOT / "docs" / "tutorial.md")
FENCE = re.compile(r"^```.*$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)")
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


class Fenced(doctest.DocTestParser):
    """A closing fence would count as expected output, so fences become blank lines."""

    def parse(self, string, name="<string>"):
        return super().parse(FENCE.sub("", string), name)


def _named(page: Path) -> str:
    return str(page.relative_to(ROOT))


EXAMPLES = [page for page in PAGES if ">>> " in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", EXAMPLES, ids=_named)
def test_examples(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # examples may write files
    # optax promotes dtypes, as JAX does by default.
    loose = "import optax" in page.read_text(encoding="utf-8")
    with jax.numpy_dtype_promotion("standard" if loose else "strict"):
        failed, tried = doctest.testfile(
            str(page),
            module_relative=False,
            parser=Fenced(),
            optionflags=FLAGS,
            encoding="utf-8",
        )
    assert tried and not failed


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_links(page):
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


def test_the_pages_a_reader_starts_from_have_examples():
    assert set(START) <= set(EXAMPLES)


def test_every_public_name_is_on_the_api_page():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert [name for name in jaxalign.__all__ if f"`{name}`" not in page] == []
