"""The Python examples of README.md and docs/ are run; a page is one session."""

import doctest
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import jax
import pytest

import jaxalign

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
START = (ROOT / "README.md", ROOT / "docs" / "tutorial.md")
FENCE = re.compile(r"^```.*$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)")
CONSOLE = re.compile(r"^```console\n\$ (.+\n)((?:(?!\$|`).*\n)+)```", re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


class Fenced(doctest.DocTestParser):
    """A closing fence would count as expected output, so fences become blank lines."""

    def parse(self, string, name="<string>"):
        return super().parse(FENCE.sub("", string), name)


def _named(page: Path) -> str:
    return str(page.relative_to(ROOT))


EXAMPLES = [page for page in PAGES if ">>> " in page.read_text(encoding="utf-8")]


LONG = {
    "benchmark-leaks.md",
    "embeddings.md",
    "fit-a-profile.md",
    "homology-split.md",
    "inside-jit.md",
    "large-jobs.md",
    "learn-a-scoring.md",
    "posterior-decoding.md",
    "pytorch.md",
    "soft-alignment.md",
    "three-sequences.md",
    "train-an-aligner.md",
}
MARKED = [
    pytest.param(page, marks=[pytest.mark.slow] * (page.name in LONG))
    for page in EXAMPLES
]


def test_every_long_page_has_examples():
    assert {page.name for page in EXAMPLES} >= LONG


@pytest.mark.parametrize("page", MARKED, ids=_named)
def test_examples(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # examples may write files
    if ">>> import torch" in page.read_text(encoding="utf-8"):
        pytest.importorskip("torch")
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


def _anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of the headings of a page, outside of its code."""
    prose = "".join(FENCE.split(page.read_text(encoding="utf-8"))[::2])
    headings = [heading.strip().lower() for heading in HEADING.findall(prose)]
    return {re.sub(r"[^\w\- ]", "", words).replace(" ", "-") for words in headings}


def _dead_links(page: Path) -> list[tuple[str, str]]:
    """Links to a file that is not there, or to an anchor that the file lacks."""
    dead = []
    for path, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        target = page.parent / path if path else page
        if not target.exists() or anchor and anchor not in _anchors(target):
            dead.append((path, anchor))
    return dead


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_links(page):
    assert not _dead_links(page)


def test_a_dead_link_is_noticed(tmp_path):
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    other.write_text("# X2.1 (`f`): m, n\n```\n# no heading\n```\n", encoding="utf-8")
    links = "[a](other.md#x21-f-m-n) [b](#a-b) [c](other.md#no-heading) [d](#b)"
    page.write_text(f"## A b\n{links} [e](lost.md)\n", encoding="utf-8")
    assert _dead_links(page) == [("other.md", "no-heading"), ("", "b"), ("lost.md", "")]


@pytest.mark.slow
def test_the_commands_of_the_readme_print_what_it_shows(tmp_path):
    """Every command that is followed by its output, in a shell."""
    pytest.importorskip("matplotlib")
    (tmp_path / "jaxalign").mkdir()
    (tmp_path / "jaxalign" / "data").symlink_to(ROOT / "jaxalign" / "data")
    program = f'jaxalign() {{ "{sys.executable}" -P -m jaxalign "$@"; }}\n'
    blocks = CONSOLE.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(blocks) == 3
    for command, shown in blocks:
        done = subprocess.run(
            ["bash", "-c", program + command],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert (done.returncode, done.stdout) == (0, shown)


def test_the_pages_a_reader_starts_from_have_examples():
    assert set(START) <= set(EXAMPLES)


def test_every_public_name_is_on_the_api_page():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert [name for name in jaxalign.__all__ if f"`{name}`" not in page] == []


def test_the_site_has_the_docstring_of_every_public_name(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    site = runpy.run_path(str(ROOT / "docs" / "conf.py"))
    page = site["_with_docstrings"]((ROOT / "docs" / "api.md").read_text("utf-8"))
    assert [x for x in jaxalign.__all__ if f":: jaxalign.{x}\n" not in page] == []
