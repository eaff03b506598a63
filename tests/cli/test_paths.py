"""A name in the data never makes a path: whatever parts and queries are called, only
files in the folder that was asked for are new."""

import os
from pathlib import Path

import pytest

from jaxalign.cli.main import main

NAMES = (
    "../evil",
    "/{root}/absolute",
    "in/side",
    ".hidden",
    "..",
    ".",
    "a\0b",
    "\\",
    "é",
)
LETTERS = "ARNDCQEGHILKMFPSTWYV"


def files(root):
    return {
        os.path.join(folder, name)
        for folder, _, names in os.walk(root)
        for name in names
    }


def fasta(path, names):
    texts = (LETTERS[5 * k :][:5] * 5 for k in range(len(names)))
    path.write_text("".join(f">{x}\n{y}\n" for x, y in zip(names, texts, strict=True)))


@pytest.mark.parametrize("name", NAMES)
def test_no_name_leaves_its_folder(name, tmp_path, monkeypatch):
    root = tmp_path / "deep" / "in"
    root.mkdir(parents=True)
    monkeypatch.chdir(root)
    name = name.format(root=root)
    fasta(Path("s.fa"), [f"s{k}" for k in range(4)])
    fasta(Path("q.fa"), [name.replace("\0", ""), "q2"])
    rows = "".join(f"s{k}\t{[name, 'b'][k % 2]}\n" for k in range(4))
    Path("x.tsv").write_text(rows)
    before = files(tmp_path)
    split = ["split", "s.fa", "--min-identity", "0.9", "--fasta", "parts", "-q"]
    codes = [main([*split, "-o", "1.tsv", "--fixed", "x.tsv", "--force"])]
    if not {*"=,\0"} & {*name}:
        parts = ["--parts", f"{name}=0.5,b=0.5"]
        codes.append(main([*split, "-o", "2.tsv", *parts, "--force"]))
    codes.append(main(["family", "q.fa", "s.fa", "-o", "families/", "-q"]))
    new = {os.path.relpath(x, root) for x in files(tmp_path) - before}
    folders = {os.path.dirname(x) for x in new - {"1.tsv", "2.tsv"}}
    assert folders <= {"parts", "families"} and not any("/." in x for x in new)
    assert {*codes} <= {0, 2}
    assert name != "é" or len(new) >= 6
