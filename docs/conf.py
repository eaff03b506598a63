"""The documentation site: ``make docs`` builds it into build/site.

Sphinx, since numpydoc reads the docstrings as NumPy's own site does, signatures come
from the imported functions, and ``-W`` ends with an error at every warning. MyST reads
the pages as they are shown elsewhere, so what only a site needs is added here. MyST-NB
runs the notebooks, which are stored without outputs; it needs no program beside Python.
"""

import contextlib
import io
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import jaxalign  # noqa: E402

project = "jaxalign"
author = "The jaxalign developers"
extensions = ["myst_nb", "sphinx.ext.autodoc", "numpydoc", "sphinx_copybutton"]
# A copy has neither prompts nor what is printed.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
html_math_renderer = "mathml"
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
myst_heading_anchors = 4
myst_enable_extensions = ["amsmath", "dollarmath"]
html_theme = "furo"
html_title = "jaxalign"
html_copy_source = html_show_copyright = False
html_baseurl = ""
autosummary_generate = False
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # numpydoc's sections say the types
autodoc_inherit_docstrings = False
pygments_style, pygments_dark_style = "friendly", "monokai"

CONTENTS = {
    "Learn": ["install", "tutorial"],
    "Notebooks": "notebooks/*",
    "Split and audit": [
        "how-to/homology-split",
        "how-to/evidence",
        "how-to/structures",
        "how-to/benchmark-leaks",
    ],
    "Align and search": [
        "how-to/search-a-database",
        "how-to/align-reads",
        "how-to/profiles",
        "how-to/align-a-family",
        "how-to/long-pairs",
        "how-to/three-sequences",
        "how-to/match-other-tools",
        "how-to/bad-letters",
        "how-to/plots",
    ],
    "Compare receptors": [
        "how-to/repertoires",
    ],
    "Train models": [
        "how-to/soft-alignment",
        "how-to/layers",
        "how-to/train-an-aligner",
        "how-to/pytorch",
        "how-to/embeddings",
        "how-to/learn-a-scoring",
        "how-to/fit-a-profile",
        "how-to/posterior-decoding",
        "how-to/inside-jit",
    ],
    "Run large jobs": [
        "how-to/large-jobs",
        "how-to/start-up",
        "how-to/multiprocessing",
        "how-to/pipelines",
        "how-to/other-libraries",
    ],
    "Look up": ["command-line", "api", "conventions", "comparison", "glossary"],
    "Understand": [
        "recurrences",
        "architecture",
        "kernels",
        "gpu-kernels",
        "three-gpu",
        "soft-kernels",
        "papers",
    ],
    "Logs": "logs/*",
}
SECTIONS = {  # of the page of public names, and the room of each
    "Two sequences, and many pairs": "pairs",
    "Database search": "database",
    "Families": "family",
    "Edit distances": "words",
    "Receptor repertoires": "repertoire",
    "Clusters, splits and audits": "homology",
    "Three sequences": "triples",
    "Similarities": "similarity",
    "Values and results": "model",
    "Errors": "errors",
}
OUTSIDE = re.compile(r"\[([^\]]*)\]\((?:\.\./)+((?:jaxalign|[A-Z]+\.md)[^)]*)\)")


def _contents() -> str:
    """The tables of contents of the site."""
    lines = []
    for title, pages in CONTENTS.items():
        glob = [":glob:"] if isinstance(pages, str) else []
        names = [pages] if glob else pages
        lines += ["", "```{toctree}", ":hidden:", f":caption: {title}", *glob, *names]
        lines += ["```"]
    return "\n".join(lines) + "\n"


def _with_docstrings(page: str) -> str:
    """The page of public names; each section ends with the docstrings of its room."""
    first, *sections = page.split("\n## ")
    return "\n## ".join([first, *(text + _docstrings(text) for text in sections)])


def _docstrings(section: str) -> str:
    room, lines = SECTIONS.get(section.partition("\n")[0]), []
    for name, home in jaxalign._HOMES.items():
        if home.split(".")[1] == room:
            kind = _kind(name)
            members = ["   :members:"] if kind == "autoclass" else []
            lines += [f".. {kind}:: jaxalign.{name}", *members, ""]
    return "\n".join(["", "```{eval-rst}", *lines, "```", ""]) if lines else ""


def _kind(name: str) -> str:
    value = getattr(jaxalign, name)
    if not isinstance(value, type):
        return "autofunction"
    return "autoexception" if issubclass(value, Exception) else "autoclass"


def _helps() -> str:
    """The help of every verb."""
    from jaxalign.cli.main import app

    verbs = (verb for verb in app() if not verb.startswith("-"))
    return "".join(f"\n## {verb}\n\n```text\n{_help(verb)}```\n" for verb in verbs)


def _help(verb: str) -> str:
    from jaxalign.cli.main import main

    with contextlib.redirect_stdout(io.StringIO()) as printed:
        main([verb, "--help-all"])
    return printed.getvalue()


def _read(_, name: str, source: list[str]) -> None:
    """Add the contents to the first page; files outside of the pages are named, not
    linked."""
    if name.startswith("notebooks/"):  # JSON
        return
    text = OUTSIDE.sub(r"\1 (`\2`)", source[0])
    if name == "index":
        text += _contents()
    if name == "command-line":
        text += _helps()
    source[0] = _with_docstrings(text) if name == "api" else text


def _formula(writer, node) -> None:
    """A formula as MathML, which browsers show without a program from elsewhere."""
    from docutils import nodes
    from latex2mathml.converter import convert

    display = "block" if isinstance(node, nodes.math_block) else "inline"
    formula = convert(node.astext(), display=display)
    if display == "block":  # browsers centre the cells of an array, whatever it says
        formula = formula.replace("<mtd", '<mtd style="text-align: left"')
        formula = f'<div style="overflow-x: auto; padding: 0.5rem 0">{formula}</div>'
    writer.body.append(formula)
    raise nodes.SkipNode


def setup(app) -> None:
    app.add_html_math_renderer("mathml", (_formula, None), (_formula, None))
    app.connect("source-read", _read)
