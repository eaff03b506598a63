"""Names a reader can rely on: a class name stands once in both packages."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("jaxalign", "kernels_pallas")
FILES = [path for name in PACKAGES for path in (ROOT / name).rglob("*.py")]


def trees():
    for path in FILES:
        yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())


def test_a_class_name_stands_once():
    homes = defaultdict(list)
    for file, tree in trees():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(file)
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}
