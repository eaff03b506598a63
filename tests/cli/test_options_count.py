"""Every option of every verb changes an output, or is refused; and every output that
was asked for is there after exit code 0, whatever its kind.

Options are read from the verbs, so a new one joins by itself: where its type does not
say a value, ``VALUES`` has one, or the test asks for it.
"""

import contextlib
import io
import os
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Literal, get_args, get_origin

import jax  # noqa: F401  (before main(), as in test_cli.py)
import numpy as np
import pytest

from jaxalign.cli.main import app, main
from jaxalign.errors import EXIT_CODES

DONE, _, USAGE, INPUT, *_ = EXIT_CODES
# Way -> a command line whose answer each option of its verb may change.
WAYS = {
    "align": "align a.fa b.fa",
    "align of nucleotides": "align dna.fa dna2.fa",
    "align of scores": "align a.fa b.fa --output score",
    "align to columns": "align a.fa b.fa --columns query,target,score",
    "align --profile": "align fam.a3m a.fa --profile",
    "align --embeddings": "align 1.npz 2.npz --embeddings --gap-open 1 --gap-extend 1",
    "align --sequences": "align 1.npz 2.npz --embeddings --gap-open 1 --gap-extend 1 "
    "--sequences e.fa",
    "all": "all g.fa",
    "all --json": "all g.fa --json",
    "all of scores": "all g.fa --output score",
    "all into a folder": "all g.fa -o parts/ --part-rows 9",
    "search": "search q.fa g.fa",
    "search of nucleotides": "search dna.fa dna2.fa",
    "search --json": "search q.fa g.fa --json",
    "search globally": "search q.fa g.fa --mode global",
    "search into a folder": "search q.fa g.fa -o parts/ --part-rows 3",
    "search --profile": "search fam.a3m g.fa --profile",
    "nearest": "nearest t.fa g.fa",
    "nearest by score": "nearest t.fa g.fa --by score",
    "nearest --json": "nearest t.fa g.fa --json",
    "family": "family one.fa g.fa",
    "family --json": "family one.fa g.fa --json",
    "family of several": "family q.fa g.fa -o families/",
    "index": "index dna.fa",
    "index --verify": "index a.jaxdb --verify",
    "cluster": "cluster g.fa --min-identity 0.5",
    "cluster --json": "cluster g.fa --min-identity 0.5 --json",
    "dedup": "dedup g.fa --min-identity 0.5",
    "dedup --json": "dedup g.fa --min-identity 0.5 --json",
    "split": "split g.fa --max-identity 0.5 --parts a=0.5,b=0.5",
    "split --json": "split g.fa --max-identity 0.5 --folds 2 --json",
    "split --cuts": "split g.fa --cuts 0.5,0.8 --folds 2",
    "split --fixed": "split g.fa --max-identity 0.5 --fixed parts.tsv --too-large keep",
    "split --labels": "split g.fa --max-identity 0.5 --folds 2 --labels labels.tsv "
    "--unlabelled label",
    "split --pairs": "split g.fa --max-identity 0.5 --folds 2 --pairs pairs.tsv",
    "audit": "audit t.fa g.fa --max-identity 0.5",
    "audit --json": "audit t.fa g.fa --max-identity 0.5 --json",
    "audit --split": "audit g.fa --max-identity 0.5 --split parts.tsv",
    "audit --pairs": "audit g.fa --max-identity 0.5 --pairs parted.tsv",
    "audit --pairs --json": "audit g.fa --max-identity 0.5 --pairs parted.tsv --json",
    "audit --certificate": "audit --certificate c.json",
    "purge": "purge g.fa --against t.fa --max-identity 0.5",
    "purge by score": "purge g.fa --against t.fa --score 60",
    "purge by E-value": "purge g.fa --against t.fa --max-evalue 1e-3",
    "purge --json": "purge g.fa --against t.fa --max-identity 0.5 --json",
    "repertoire": "repertoire cells.tsv --chains any --bad keep",
    "repertoire --metric hamming": "repertoire cdr3.fa --metric hamming",
    "repertoire --metric levenshtein": "repertoire cdr3.fa --metric levenshtein",
    "repertoire --metric alignment": "repertoire cdr3.fa --metric alignment",
    "repertoire --reference": "repertoire cdr3.fa --reference ref.fa",
    "repertoire --json": "repertoire cdr3.fa --json",
    "three": "three three.fa",
    "three without a path": "three three.fa --traceback none",
    "soft": "soft a.fa b.fa",
    "info": "info --json",
    "info --plan": "info --json --plan g.fa",
    "matrices": "matrices PAM30",
}
# Option -> a value; a dict where verbs want values of their own.
VALUES = {
    "preset": "parasail",
    "matrix": {"repertoire": "PAM30", "": "PAM30"},
    "match": "3",
    "mismatch": "-4",
    "gap-open": "5",
    "gap-extend": "3",
    "free-ends": "q5,t3",
    "min-score": "25",
    "min-identity": "0.7",
    "min-cov": {"family": "0.99", "": "0.9"},
    "min-length-ratio": "0.9",
    "part-rows": "7",
    "shard": "1/2",
    "columns": "query,target",
    "sequences": "e.fa",
    "top": {"search": "2", "": "2"},
    "max-evalue": {"family": "1e-30", "search": "1e-12", "": "1e-9"},
    "bands": "0.2,0.45",
    "iterations": "1",
    "include": "1e-30",
    "include-coverage": "1",
    "max-sequences": "2",
    "min-query-identity": "0.8",
    "max-identity": "0.8",
    "cuts": "0.5,0.7",
    "parts": "a=0.2,b=0.8",
    "folds": "3",
    "labels": "labels.tsv",
    "fixed": "parts.tsv",
    "priority": "priority.tsv",
    "pairs": {"audit": "parted.tsv", "": "pairs.tsv"},
    "seed": "5",
    "split": "parts.tsv",
    "column": "other",
    "certificate": {"audit": "c.json"},
    "worst": "1",
    "against": "a.fa",
    "score": "100",
    "cutoff": "1",
    "weight": "1",
    "gap-penalty": "9",
    "ntrim": "0",
    "ctrim": "0",
    "v-distances": "genes.tsv",
    "v-loops": "loops.tsv",
    "reference": "ref.fa",
    "chunk": "4",
    "height": "3",
    "depth": "3",
    "temperature": "2",
    "threshold": "0.5",
    "plan": "g.fa",
}
# Option -> suffixes of the files it may write.
OUTPUTS = {
    "out": {
        "align": "tsv m8 sam paf maf fasta pair parquet",
        "all": "tsv m8 sam paf maf fasta pair parquet",
        "search": "tsv m8 sam paf maf fasta pair parquet",
        "family": "a3m sto hmm pssm",
        "index": "jaxdb",
        "dedup": "fasta",
        "purge": "fasta",
        "audit": "json",
        "repertoire": "tsv parquet npz",
        "soft": "npz",
        "three": "txt",
        "": "tsv csv parquet",
    },
    "representatives": "fasta",
    "list": "tsv csv parquet",
    "removed": "tsv csv parquet",
    "leaks": "tsv csv parquet",
    "report": "html",
    "plot": "svg",
    "dendrogram": "svg",
    "certificate": {"audit": "", "": "json"},
    "fasta": "",
}
# What may change no output: where and how fast a job runs, and what is said of it.
# --force, --resume and --no-filter are what keeps an output as it is.
FREE = set(
    "memory-budget threads implementation devices device no-cache quiet verbose "
    "progress force resume no-filter block-rows cluster schedule help".split()
)
# What becomes of inputs that are odd: a command line that fails, or not, without it.
POLICIES = {
    "unknown": "align odd.fa b.fa",
    "bad": "repertoire cells.tsv --chains any",
    "partial": "audit g.fa --max-identity 0.5 --split some.tsv",
    "too-large": "split g.fa --max-identity 0.5 --parts a=0.9,b=0.1",
    "unlabelled": "split g.fa --max-identity 0.5 --folds 2 --labels labels.tsv",
}
MASKS = (
    (rb'"(seconds|gcups|walk|total|host_free_bytes)": [^,\n}]+', rb""),
    (rb'"budget_bytes": \d+|"out": [^\n]+', rb""),
    (rb'"sha256": "\w+"|"path": "\w+\.fa"', rb""),
)


def data(folder: Path) -> None:
    """Files of every kind that the ways read."""
    random = np.random.default_rng(8)

    def some(count: int, letters: str = "ARNDCQEGHILKMFPSTWYV") -> str:
        return "".join(random.choice([*letters], count))

    def like(text: str, share: float, letters: str = "ARNDCQEGHILKMFPSTWYV") -> str:
        new = random.random(len(text)) < share
        return "".join(
            some(1, letters) if x else y for x, y in zip(new, text, strict=True)
        )

    def fasta(name: str, texts, first: str = "") -> None:
        first = first or Path(name).stem
        lines = (f">{first}{k} x\n{x}\n" for k, x in enumerate(texts))
        (folder / name).write_text("".join(lines))

    def table(name: str, *rows) -> None:
        text = "".join("\t".join(map(str, row)) + "\n" for row in rows)
        (folder / name).write_text(text)

    bases = [some(n) for n in (40, 34, 29)]
    members = [like(bases[k % 3], 0.1 + 0.05 * k)[k % 4 :] for k in range(9)]
    members.append(members[0] + some(60))
    fasta("g.fa", members)
    fasta("t.fa", [like(bases[0], 0.2), like(bases[1], 0.5)[3:20], some(30)])
    fasta("q.fa", [like(bases[0], 0.2), like(bases[1], 0.3)])
    fasta("one.fa", [like(bases[0], 0.2)])
    fasta("a.fa", [bases[0][4:], bases[1], some(12) + bases[2]])
    fasta("b.fa", [like(x, 0.3)[:-3] for x in bases])
    gene = some(40, "ACGT")
    fasta("dna.fa", [gene, some(8, "ACGT") + gene[:20]])
    other = gene[::-1].translate(str.maketrans("ACGT", "TGCA"))
    fasta("dna2.fa", [other, like(gene, 0.2, "ACGT")])
    fasta("fam.a3m", [bases[0], like(bases[0], 0.3)])
    fasta("three.fa", [like(bases[0], 0.2)[k:20] for k in range(3)])
    for name, sizes in (("1", (6, 5)), ("2", (7,))):
        arrays = {f"{name}{n}": random.normal(size=(n, 4)).astype("f4") for n in sizes}
        np.savez(folder / f"{name}.npz", **arrays)
    (folder / "e.fa").write_text(">16\nMKTAYI\n>15\nMKTAY\n>27\nMKTAYIA\n")
    names = [f"g{k}" for k in range(10)]
    alike = [k % 3 == 1 for k in range(9)] + [False]
    parts = [
        (name, "xy"[far], "yx"[k < 4])
        for k, (name, far) in enumerate(zip(names, alike, strict=True))
    ]
    table("parts.tsv", ("name", "part", "other"), *parts)
    table(
        "labels.tsv", ("name", "label"), *((x, k // 5) for k, x in enumerate(names[:8]))
    )
    table(
        "priority.tsv", ("name", "priority"), *((x, k) for k, x in enumerate(names, 1))
    )
    pairs = [(names[k], names[(k * 3 + 2) % 10]) for k in range(10)]
    table("pairs.tsv", *pairs)
    table("parted.tsv", *((*x, "xy"[k % 2]) for k, x in enumerate(pairs)))
    cdr3 = [
        "CASSLGQAYEQYF",
        "CASSLGTAYEQYF",
        "CASSLGQAYEQFF",
        "CSARDRTGNGYTF",
        "CASSLGQAYEQYYF",
        "CASWLGQAYEQF",
    ]
    fasta("cdr3.fa", cdr3)
    fasta("ref.fa", [cdr3[1], cdr3[3]])
    arms = [("TRB", "TRBV1"), ("TRA", "TRAV2")]
    cells = [(x, *arms[k % 2], f"c{k // 2}", k) for k, x in enumerate(cdr3)]
    heading = "junction_aa locus v_call cell_id umi_count".split()
    table("cells.tsv", heading, *cells, ("CAS*", "TRB", "TRBV1", "c9", 1))
    table("genes.tsv", ("gene", "TRBV1", "TRAV2"), ("TRBV1", 0, 7), ("TRAV2", 7, 3))
    table(
        "loops.tsv",
        ("gene", "cdr1", "cdr2", "cdr25"),
        ("TRBV1", "GHD", "YYS", "PS"),
        ("TRAV2", "GHN", "YYD", "PW"),
    )


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    data(folder)
    with contextlib.chdir(folder):
        assert main(["index", "a.fa", "-o", "a.jaxdb", "-q"]) == DONE
        words = "g.fa --max-identity 0.5 --split parts.tsv -o c.json -q".split()
        main(["audit", *words])
        assert Path("c.json").exists()
    return folder


@cache
def arguments(verb: str) -> dict:
    """The options of a verb: name -> (values of its choices, whether it is a flag)."""
    shown = {}
    for argument in app(verb)[verb].assemble_argument_collection():
        name = argument.name
        if name.startswith("--"):
            shown[name[2:]] = argument.hint
    return shown


def values(verb: str, option: str, hint) -> list[str | None]:
    """Words behind an option; None for a flag."""
    if option in OUTPUTS and (verb, option) != ("audit", "certificate"):
        suffixes = OUTPUTS[option]
        if isinstance(suffixes, dict):
            suffixes = suffixes.get(verb, suffixes[""])
        return [f"new.{x}" if x else "new" for x in suffixes.split(" ")]
    kinds = [hint, *get_args(hint)]
    choices = [y for x in kinds if get_origin(x) is Literal for y in get_args(x)]
    choices += [z for x in choices if get_origin(x) is Literal for z in get_args(x)]
    choices = [x for x in choices if isinstance(x, str)]
    if choices:
        return choices
    if bool in kinds:
        return [None]
    value = VALUES[option]
    return [value.get(verb, value.get("")) if isinstance(value, dict) else value]


class Place:
    """Command lines in a folder with the inputs and nothing else."""

    def __init__(self, inputs: Path, folder: Path):
        self.inputs, self.folder = inputs, folder
        self.known = {x.name for x in inputs.iterdir()}
        for name in self.known:
            shutil.copy(inputs / name, folder)

    def run(self, words: list[str]) -> tuple[int, bytes, dict[str, bytes], str]:
        """(exit code, standard output, new files, messages)."""
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
        with contextlib.chdir(self.folder):
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main([*words])
        out.flush()
        new = {}
        for path in sorted(self.folder.rglob("*")):
            name = os.path.relpath(path, self.folder)
            if path.is_file() and name not in self.known:
                new[name] = path.read_bytes()
        for path in self.folder.iterdir():
            if path.name not in self.known:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        return code, out.buffer.getvalue(), new, err.getvalue()


@pytest.fixture
def place(inputs, tmp_path):
    return Place(inputs, tmp_path)


def masked(text: bytes) -> bytes:
    for pattern, to in MASKS:
        text = re.sub(pattern, to, text)
    return text


def seen(outcome) -> tuple:
    """What of an outcome a user sees, without seconds."""
    code, out, new, _ = outcome
    return code, masked(out), {name: masked(x) for name, x in new.items()}


def drawn(ways=WAYS):
    """(way, option, value) of every option."""
    for way, line in ways.items():
        verb = line.split()[0]
        for option, hint in arguments(verb).items():
            given = {w[2:] for w in line.split() if w.startswith("--")}
            if (
                option in FREE | POLICIES.keys()
                or option in given
                or (option == "out" and "-o" in line)
            ):
                continue
            for value in values(verb, option, hint):
                yield way, option, value
