"""Names a reader can rely on: nouns of the field, and class names that stand once."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("jaxalign", "kernels_pallas")
FILES = [path for name in PACKAGES for path in (ROOT / name).rglob("*.py")]


@cache
def trees():
    return [(x.relative_to(ROOT).as_posix(), ast.parse(x.read_text())) for x in FILES]


def test_a_class_name_stands_once():
    homes = defaultdict(list)
    for file, tree in trees():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(file)
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


# Participles that say nothing of what they hold: scores, a plan, progress …
PARTICIPLES = {"found", "made", "kept", "held", "asked", "told", "done"}
# Words that say where a value stands in a sentence, not what it is; ``left`` is a side.
STUMBLES = PARTICIPLES | {
    *("known", "some", "chosen", "one", "more", "near", "other", "tell", "watch"),
    *("beside", "ahead", "most", "others", "new", "wanted", "both", "given", "rest"),
    *("own", "many", "few", "here", "begun", "began", "begin", "again", "alone"),
    *("watched", "now"),
}
# Where participles alone are refused as yet.
STUMBLES_NOT_YET = (
    "jaxalign/cli/",
    "jaxalign/database/options.py",
    "jaxalign/homology/options.py",
    "jaxalign/options.py",
    "jaxalign/repertoire/options.py",
    "jaxalign/similarity/distribution.py",  # ``other`` is a parameter of the interface
    "jaxalign/triples/options.py",
)
# Public fields, which callers read.
STUMBLING_FIELDS = {"jaxalign/family/result.py": {"new"}}


def bound_names(tree):
    """Variables, parameters, fields and imports of a source; functions are verbs."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield node.asname or node.name
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name


def docstrings(tree):
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)):
            yield ast.get_docstring(node) or ""


def test_names_are_nouns():
    bound = {}
    for file, tree in trees():
        words = PARTICIPLES if file.startswith(STUMBLES_NOT_YET) else STUMBLES
        bound[file] = words & {*bound_names(tree)} - STUMBLING_FIELDS.get(file, set())
    assert {file: names for file, names in bound.items() if names} == {}


def test_docstrings_are_sentences():
    """``What it holds`` leaves a reader to guess what *it* is."""
    begin = {
        file: [text for text in docstrings(tree) if text.startswith("What")]
        for file, tree in trees()
    }
    assert {file: texts for file, texts in begin.items() if texts} == {}


def test_a_participle_and_a_docstring_are_noticed():
    source = '''
"""What it is."""
def f(kept, *told):
    """Whatever it does."""
    made: int = 1
    for found in (asked := kept):
        lambda held: done
'''
    tree = ast.parse(source)
    assert PARTICIPLES - {*bound_names(tree)} == {"done"}
    assert [text.startswith("What") for text in docstrings(tree)] == [True, True]
