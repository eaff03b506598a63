"""Every option of every verb changes an output, or is refused; and every output that
was asked for is there after exit code 0, whatever its kind.

Options are read from the verbs, so a new one joins by itself: where its type does not
say a value, ``VALUES`` has one, or the test asks for it.
"""

import atexit
import contextlib
import inspect
import io
import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args, get_origin

import jax  # noqa: F401  (before main(), as in test_cli.py)
import numpy as np
import pytest

from jaxalign.cli.main import app, main
from jaxalign.errors import EXIT_CODES, LeakError

DONE, FAILED, USAGE, INPUT, *_ = EXIT_CODES
LEAK = LeakError.exit_code
# Way -> a command line whose answer each option of its verb may change.
WAYS = {
    "align": "align a.fa b.fa",
    "align of nucleotides": "align dna.fa dna2.fa",
    "align of scores": "align a.fa b.fa --output score",
    "align to columns": "align a.fa b.fa --columns query,target,fident",
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
    "family --pair": "family --pair chains.fa ox.fa -o complex/",
    "index": "index dna.fa",
    "index --verify": "index a.jaxdb --verify",
    "cluster": "cluster g.fa --min-identity 0.5",
    "cluster --json": "cluster g.fa --min-identity 0.5 --json",
    "cluster --update": "cluster g.fa --min-identity 0.5 --update old.json -o g.tsv",
    "dedup": "dedup g.fa --min-identity 0.5",
    "dedup --json": "dedup g.fa --min-identity 0.5 --json",
    "split": "split g.fa --min-identity 0.5 --parts a=0.5,b=0.5",
    "split --json": "split g.fa --min-identity 0.5 --folds 2 --json",
    "split --cuts": "split g.fa --cuts 0.5,0.8 --folds 2",
    "split --fixed": "split g.fa --min-identity 0.5 --fixed some.tsv --too-large keep",
    "split --labels": "split g.fa --min-identity 0.5 --folds 2 --labels labels.tsv "
    "--unlabelled label",
    "split --pairs": "split g.fa --min-identity 0.5 --folds 2 --pairs pairs.tsv",
    "audit": "audit t.fa g.fa --min-identity 0.5",
    "audit --json": "audit t.fa g.fa --min-identity 0.5 --json",
    "audit --split": "audit g.fa --min-identity 0.5 --min-score 20 --split parts.tsv",
    "audit --pairs": "audit g.fa --min-identity 0.4 --pairs parted.tsv --cold one "
    "--leaks leaks.tsv",
    "audit --pairs --json": "audit g.fa --min-identity 0.5 --pairs parted.tsv --json",
    "audit --verify": "audit --verify c.json",
    "purge": "purge g.fa --against t.fa --min-identity 0.5",
    "purge by score": "purge g.fa --against t.fa --min-score 60",
    "purge by E-value": "purge g.fa --against t.fa --max-evalue 1e-3",
    "purge --json": "purge g.fa --against t.fa --min-identity 0.5 --json",
    "repertoire": "repertoire cdr3.fa",
    "repertoire of cells": "repertoire cells.tsv --chains VDJ --bad keep",
    "repertoire --metric hamming": "repertoire cdr3.fa --metric hamming",
    "repertoire --metric levenshtein": "repertoire cdr3.fa --metric levenshtein",
    "repertoire --metric alignment": "repertoire cdr3.fa --metric alignment",
    "repertoire --against": "repertoire cdr3.fa --against ref.fa",
    "repertoire --json": "repertoire cdr3.fa --json",
    "three": "three three.fa",
    "three without a path": "three three.fa --traceback none",
    "soft": "soft a.fa b.fa --temperature 5",
    "info": "info --json",
    "info --plan": "info --json --plan g.fa",
    "matrices": "matrices PAM30",
}
LINKING = "cluster", "dedup", "split", "audit"
# Option -> a value; a dict where verbs want values of their own.
VALUES = {
    "preset": {**dict.fromkeys((*LINKING, "purge"), "ssearch"), "": "parasail"},
    "matrix": "PAM30",
    "match": "3",
    "mismatch": "-4",
    "gap-open": "5",
    "gap-extend": "9",
    "gap-style": "blast --gap-open 2",
    "free-ends": "q5,t3",
    # Above every score of g.fa, whose links are gone then
    "min-score": {"purge": "100", **dict.fromkeys(LINKING, "1000"), "": "60"},
    "min-relative-score": "0.99",
    "min-identity": "0.9",
    "min-cov": {"family": "0.99", "": "0.9"},
    "min-length-ratio": "0.95",
    "part-rows": "7",
    "shard": "1/2",
    "columns": "query,target",
    "sequences": "e.fa",
    "top": {"nearest": "2", "": "1"},
    "max-evalue": {"family": "1e-30", "search": "1e-12", "": "1e-9"},
    "bands": "0.2,0.45",
    "iterations": "1",
    "include": "1e-30",
    "pair-evalue": "1e-30",
    "taxa": "taxa.tsv",
    "rna-database": "rna.fa",
    "include-cov": "1",
    "max-sequences": "2",
    "hsps": {"family": "1", "": "9"},
    "min-query-identity": "0.8",
    "max-identity": "0.8",
    "cuts": "0.5,0.7",
    "parts": "a=0.2,b=0.8",
    "folds": "3",
    "labels": "labels.tsv",
    "fixed": "parts.tsv",
    "priority": "priority.tsv",
    "weights": "priority.tsv",
    "edges": {
        **dict.fromkeys(("audit", "purge"), "edges.tsv:3<=0.5,unknown=count"),
        "": "edges.tsv:value>=0.5,unknown=count",
    },
    "update": "old.json",
    "together": {"audit": "across.tsv", "": "groups.tsv"},
    "pairs": {"audit": "parted.tsv", "": "pairs.tsv"},
    "seed": "5",
    "split": "some.tsv",
    "column": "other",
    "verify": "c.json",
    "worst": "1",
    "against": {"repertoire": "ref.fa", "": "a.fa"},
    "cutoff": "1",
    "weight": "1",
    "gap-penalty": "9",
    "ntrim": "0",
    "ctrim": "0",
    "v-distances": "genes.tsv",
    "v-loops": "loops.tsv",
    "traceback": "none",
    "chunk": "4",
    "height": "3",
    "depth": "3",
    "temperature": "2",
    "threshold": "0.97",
    "plan": "g.fa",
}
# Option -> suffixes of the files it may write.
OUTPUTS = {
    "out": {
        "align": "tsv csv m8 sam paf maf fasta pair parquet",
        "all": "tsv csv m8 sam paf maf fasta pair parquet",
        "search": "tsv csv m8 sam paf maf fasta pair parquet",
        "family": "a3m sto hmm pssm",
        "index": "jaxdb",
        "dedup": "fasta",
        "purge": "fasta",
        "audit": "json",
        "repertoire": "tsv csv parquet npz",
        "soft": "npz",
        "three": "txt",
        "": "tsv csv parquet",
    },
    "list": "tsv csv parquet",
    "leaks": "tsv csv parquet",
    "report": "html",
    "plot": "svg",
    "dendrogram": "svg",
    "heat-map": "svg",
    "certificate": "json",
    "fasta": {"cluster": "fasta", "": ""},
}
# What may change no output: where and how fast a job runs, and what is said of it.
# --force, --resume and --no-filter are what keeps an output as it is.
FREE = set(
    "memory-budget threads implementation devices device no-cache quiet verbose "
    "progress force resume no-filter cluster schedule help".split()
)
# Options that show with other inputs than these.
UNSEEN = {
    "dedup": {"preset"},
    "family --json": {"no-composition"},
    # How many receptors are compared at once changes no edge.
    **{way: {"part-rows"} for way in WAYS if way.startswith("repertoire")},
    "audit --pairs": {"gap-extend", "preset"},
}
# What becomes of inputs that are odd: a command line that fails, or not, without it.
POLICIES = {
    "unknown": "align odd.fa b.fa",
    "strip-stop": "align stop.fa b.fa",
    "names": "align twice.fa b.fa",
    "bad": "repertoire cells.tsv --chains any",
    "partial": "audit g.fa --min-identity 0.5 --split some.tsv",
    "too-large": "split g.fa --min-identity 0.2 --folds 3 --link whole",
    "unlabelled": "split g.fa --min-identity 0.5 --folds 2 --labels labels.tsv",
}
MASKS = (
    rb'"(seconds|gcups|walk|total|host_free_bytes)": [^,\n}]+',
    rb'"budget_bytes": \d+|"out": [^\n]+',
)


def data(folder: Path, seed: int) -> None:
    """Files of every kind that the ways read."""
    random = np.random.default_rng(seed)

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
    members = []
    for k in range(9):  # with identities around 0.5, and a gap
        text, at = like(bases[k % 3], 0.15 + 0.04 * k)[k % 4 :], random.integers(8, 20)
        members.append(text[:at] + text[at + int(random.integers(0, 6)) :])
    members.append(members[0] + some(60)[:24] + members[0])  # a domain twice
    alone = [some(25) for _ in range(4)]  # of which a seed decides where they go
    # Two with 20 letters of 24 in common where gaps are cheap, else with 10
    first, second = some(10), some(14)
    shifted = first + some(4) + second[:10]
    alone += [first + second, shifted]
    fasta("g.fa", [*members, *alone])
    old = (f">g{k} x\n{members[k]}\n" for k in (5, 4, 3, 2, 1, 0))
    (folder / "old.fa").write_text("".join(old))
    tests = [like(x, share) for x in bases for share in (0.2, 0.35, 0.45, 0.55)]
    tests.append(shifted)
    fasta("t.fa", [*tests, like(bases[1], 0.5)[3:20]])
    fasta("q.fa", [like(bases[0], 0.2), like(bases[1], 0.3)])
    fasta("one.fa", [like(bases[0], 0.2)])
    rna = "GGAUACGUCCAUUGCAGCUUAGCAUCGAACGUAUGCCAGU"
    fasta("rna.fa", ["ACCUGAU" * 30 + rna])
    fasta("chains.fa", [*(like(x, 0.2) for x in bases), rna])
    lines = (f">g{k} OX={k // 3 + 1}\n{x}\n" for k, x in enumerate(members[:1:-1]))
    (folder / "ox.fa").write_text("".join(lines))
    table("taxa.tsv", *((f"g{k}", 7) for k in range(3)))
    fasta("a.fa", [bases[0][4:], bases[1], some(12) + bases[2]])
    fasta("b.fa", [like(x, 0.3)[:-3] for x in bases])
    gene = some(40, "ACGT")
    fasta("dna.fa", [gene, some(8, "ACGT") + gene[:20], like(gene, 0.1, "ACGT")])
    other = gene[::-1].translate(str.maketrans("ACGT", "TGCA"))
    gapped = gene[:18] + gene[22:]
    fasta("dna2.fa", [other, like(gapped, 0.15, "ACGT"), like(gene, 0.3, "ACGT")])
    fasta("fam.a3m", [bases[0], like(bases[0], 0.3)])
    fasta("three.fa", [like(bases[0], 0.2)[k:20] for k in range(3)])
    for name, sizes in (("1", (6, 5)), ("2", (7,))):
        arrays = {f"{name}{n}": random.normal(size=(n, 4)).astype("f4") for n in sizes}
        np.savez(folder / f"{name}.npz", **arrays)
    (folder / "e.fa").write_text(">16\nMKTAYI\n>15\nMKTAY\n>27\nMKTAYIA\n")
    names = [f"g{k}" for k in range(len(members + alone))]
    alike = [k % 3 == 1 and k < 9 for k in range(len(names))]
    parts = [
        (name, "xy"[far], "yx"[k < 4])
        for k, (name, far) in enumerate(zip(names, alike, strict=True))
    ]
    table("parts.tsv", ("name", "part", "other"), *parts)
    labels = ((x, k // 5, k % 2) for k, x in enumerate(names[:8]))
    table("labels.tsv", ("name", "label", "other"), *labels)
    table(
        "priority.tsv", ("name", "priority"), *((x, k) for k, x in enumerate(names, 1))
    )
    ends = [(names[k], names[(k * 5 + 1) % 14], k % 2) for k in range(14)]
    table("edges.tsv", ("a", "b", "value"), *ends, ("t0", "g4", 0), ("t1", "t2", 0))
    table("across.tsv", ("t0", "x"), ("g0", "x"))
    table("groups.tsv", *((x, k % 4, k % 5) for k, x in enumerate(names)))
    pairs = [(names[k], names[(k * 3 + 2) % 10]) for k in range(10)]
    table("pairs.tsv", *pairs)
    table("some.tsv", ("name", "part"), *(x[:2] for x in parts[:7]))
    (folder / "odd.fa").write_text(">o\nMKTJOUAY\n")
    (folder / "stop.fa").write_text(">s\nMKTAY*\n")
    (folder / "twice.fa").write_text(">a\nMKTAY\n>a\nMKAY\n")
    parted = ((*x, "xy"[k % 2], "xy"[k // 5]) for k, x in enumerate(pairs))
    table("parted.tsv", ("first", "second", "part", "other"), *parted)
    cdr3, base = [], "CASSLGQAYEQYF"
    for k in range(10):
        text, at = like(base, 0.2), random.integers(2, 10)
        cdr3.append(text[:at] + some(int(k % 3 == 0)) + text[at:])
    edited = [
        base,
        base[:6] + "W" + base[6:],  # at the place of TCRdist's gap
        base[:7] + "W" + base[7:],  # beside it: with the gap there, 12 cheaper
        base[0] + "W" + base[2:],  # among the letters that ntrim leaves out
        base[:11] + "W" + base[12:],  # and ctrim
        base[:5] + "WW" + base[7:],  # with a Hamming distance of 2
    ]
    fasta("cdr3.fa", [*cdr3, *edited])
    fasta("ref.fa", [*(like(x, 0.15) for x in cdr3), *edited])
    arms = [("TRB", "TRBV1"), ("TRB", "TRBV2"), ("TRA", "TRAV2")]
    cells = [(x, *arms[k % 3], f"c{k // 3}", k) for k, x in enumerate(cdr3)]
    cells += [(x, *arms[0], f"d{k}", 1) for k, x in enumerate(edited)]
    cells.append((base[:6] + "H" + base[7:], *arms[1], "d", 1))
    cells.append(("CAS*", "TRB", "TRBV1", "c9", 1))
    heading = "junction_aa locus v_call cell_id umi_count other".split()
    table("cells.tsv", heading, *((*x, x[0][::-1]) for x in cells))
    table("genes.tsv", ("gene", "TRBV1", "TRAV2"), ("TRBV1", 0, 7), ("TRAV2", 7, 3))
    table(
        "loops.tsv",
        ("gene", "cdr1", "cdr2", "cdr25"),
        ("TRBV1", "GHD", "YYS", "PS"),
        ("TRAV2", "GHN", "YYD", "PW"),
    )


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
    if option in OUTPUTS:
        suffixes = OUTPUTS[option]
        if isinstance(suffixes, dict):
            suffixes = suffixes.get(verb, suffixes[""])
        return [f"new.{x}" if x else "new" for x in suffixes.split(" ")]
    if option in VALUES:
        value = VALUES[option]
        return [value.get(verb, value.get("")) if isinstance(value, dict) else value]
    kinds = [hint, *get_args(hint)]
    choices = [y for x in kinds if get_origin(x) is Literal for y in get_args(x)]
    choices += [z for x in choices if get_origin(x) is Literal for z in get_args(x)]
    choices = [x for x in choices if isinstance(x, str)]
    if choices:
        return choices
    assert bool in kinds, f"--{option}: VALUES has a value that changes an output"
    return [None]


@dataclass
class Place:
    """Command lines in a folder with the inputs and nothing else."""

    folder: Path
    known: set[str]
    base: dict[str, tuple]

    def run(self, line: str) -> tuple[int, bytes, dict[str, bytes], str]:
        """(exit code, standard output, new files, messages)."""
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
        with contextlib.chdir(self.folder):
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main(line.split())
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

    def changes(self, line: str, more: str) -> bool:
        """Whether words behind a line change what a user gets, or are refused."""
        if line not in self.base:
            self.base[line] = seen(self.run(line))
        outcome = self.run(f"{line} {more}")
        assert outcome[0] != FAILED, (line, more, outcome[3])
        return seen(outcome) != self.base[line]


@cache
def place(seed: int) -> Place:
    """Inputs of their own for each seed."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, True)
    data(folder, seed)
    ready = Place(folder, set(), {})
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        assert main(["index", "a.fa", "-o", "a.jaxdb", "-q"]) == DONE
        words = "g.fa --min-identity 0.5 --split parts.tsv -o c.json -q".split()
        assert main(["audit", *words]) in (DONE, LEAK)
        words = "old.fa --min-identity 0.5 -o old.tsv --certificate old.json -q".split()
        assert main(["cluster", *words]) == DONE
    ready.known.update(x.name for x in folder.iterdir())
    return ready


def masked(text: bytes) -> bytes:
    for pattern in MASKS:
        text = re.sub(pattern, b"", text)
    return text


def seen(outcome: tuple) -> tuple:
    """What of an outcome a user gets, without seconds."""
    code, out, new, _ = outcome
    return code, masked(out), {name: masked(x) for name, x in new.items()}


def drawn(way: str) -> Iterator[tuple[str, list[str | None]]]:
    """(option, its values) of a way: of all options that it does not have yet."""
    verb, *words = WAYS[way].split()
    for option, hint in arguments(verb).items():
        here = f"--{option}" in words or (option == "out" and "-o" in words)
        if not here and option not in FREE | POLICIES.keys():
            yield option, values(verb, option, hint)


def written(option: str, value: str | None) -> str:
    return f"--{option}" + ("" if value is None else f" {value}")


def has_effect(way: str, option: str, choices: list[str | None]) -> bool:
    """Whether a value changes an output, or is refused, with some inputs."""
    line = WAYS[way]
    return any(
        place(seed).changes(line, written(option, value))
        for seed in range(SEEDS)
        for value in choices
    )


SEEDS = 100  # of inputs; nearly every option shows with the first ones
SCORING = set(
    "preset matrix match mismatch gap-open gap-extend gap-style alphabet mode link "
    "free-ends identity min-length-ratio strand".split()
)
# A way of each verb that has a job, and those whose defaults are others.
FIRST_WAYS = {line.split()[0]: way for way, line in reversed(WAYS.items())}
WHERE_DEFAULTS_COUNT = [x for x in FIRST_WAYS.values() if x not in ("info", "matrices")]
WHERE_DEFAULTS_COUNT += ["align of nucleotides", "search of nucleotides", "info --plan"]
WHERE_DEFAULTS_COUNT += [x for x in WAYS if "--metric" in x]
QUICK = ("audit --verify", "index --verify", "info")


@pytest.mark.parametrize(
    "way",
    [pytest.param(x, marks=() if x in QUICK else pytest.mark.slow) for x in WAYS],
)
def test_an_option_changes_an_output_or_is_refused(way):
    assert place(0).run(WAYS[way])[0] in (DONE, LEAK)
    lost = [
        option
        for option, choices in drawn(way)
        if option not in SCORING | UNSEEN.get(way, set())
        and not has_effect(way, option, choices)
    ]
    assert lost == []


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_scoring_changes_an_output_or_is_refused(way):
    lost = [
        option
        for option, choices in drawn(way)
        if option in SCORING - UNSEEN.get(way, set())
        and not has_effect(way, option, choices)
    ]
    assert lost == []


@pytest.mark.parametrize("option", POLICIES)
def test_an_option_of_odd_inputs_decides_over_them(option):
    verb = POLICIES[option].split()[0]
    choices = values(verb, option, arguments(verb)[option])
    assert any(place(0).changes(POLICIES[option], written(option, x)) for x in choices)


def shown_defaults(way: str) -> dict[str, str]:
    """Option -> the default that help shows, of those that a way leaves open: [local],
    or of some kinds of jobs another, [11; nucleotides 7]."""
    verb, *words = WAYS[way].split()
    kinds = {*words, "nucleotides"} if words[0] == "dna.fa" else {*words}
    doc = inspect.getdoc(app(verb)[verb].default_command) or ""
    texts = dict(re.findall(r"^(\w+)\n((?:    .*\n?)+)", doc, re.MULTILINE))
    shown = {}
    for argument in app(verb)[verb].assemble_argument_collection():
        option, info = argument.name[2:], argument.field_info
        if argument.name in words or option in FREE | OUTPUTS.keys():
            continue
        text = " ".join((argument.parameter.help or texts.get(info.name, "")).split())
        default = "" if info.default in (None, info.empty) else str(info.default)
        if not default and (brackets := re.search(r"\[([^]]*)\]$", text)):
            default, *others = re.split("[;:] ", brackets[1])
            named = (x.rpartition(" ") for x in others)
            default = next((x for kind, _, x in named if kind in kinds), default)
        choices = (
            values(verb, option, argument.hint) if "Lit" in str(argument.hint) else ()
        )
        if default in choices or re.fullmatch(r"-?[\d.,]+|BLOSUM62", default):
            shown[option] = default
    return shown


@pytest.mark.parametrize("way", WHERE_DEFAULTS_COUNT)
def test_a_default_that_help_shows_is_the_one_that_is_taken(way):
    """All of a verb at once change nothing, but for --link, which says what two others
    say, and those that a metric refuses."""
    line, shown = WAYS[way], shown_defaults(way)
    before, words = seen(place(0).run(line)), [written(*x) for x in shown.items()]
    links = [x for x in words if x.startswith("--link")]
    all_at_once = " ".join(x for x in words if x not in links)
    for more in words if "--metric" in line else [all_at_once, *links]:
        outcome = place(0).run(f"{line} {more}")
        refused = "has no effect with metric" in outcome[3]
        assert refused or seen(outcome) == before, (more, outcome[3])


def outputs_of(way: str) -> dict[str, list[str | None]]:
    return {option: x for option, x in drawn(way) if option in OUTPUTS}


def are_there(way: str) -> None:
    """Each output of a way is there after exit code 0, or nothing is."""
    line = WAYS[way]
    for option, names in outputs_of(way).items():
        texts = set()
        for name in map(str, names):
            code, _, new, err = place(0).run(f"{line} {written(option, name)}")
            if code not in (DONE, LEAK):
                assert code == USAGE and new == {}, (option, name, err)
                continue
            content = b"".join(x for y, x in new.items() if y.startswith(name))
            assert content, (option, name)
            assert name.endswith(".parquet") == (content[:4] == b"PAR1"), name
            texts.add(masked(content))
            packed = place(0).run(f"{line} {written(option, name + '.gz')}")
            refused = packed[0] == USAGE and packed[2] == {}
            assert refused or option == "fasta", (option, name)  # which is a folder
        code, out, new, _ = place(0).run(f"{line} {written(option, '-')}")
        assert code == USAGE and (out, new) == (b"", {}) or masked(out) in texts, option


def are_apart(way: str) -> None:
    """Two outputs are never one, however it is written, nor both standard output."""
    found = outputs_of(way)
    for first, second in itertools.permutations(found, 2):
        for name in map(str, found[second]):
            for other in (f"./{name}", "-"):
                same = name if other != "-" else "-"
                more = f"{written(first, other)} {written(second, same)}"
                code, out, new, _ = place(0).run(f"{WAYS[way]} {more}")
                assert (code, out, new) == (USAGE, b"", {}), more


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(
            x, marks=() if x in ("dedup", "audit --pairs") else pytest.mark.slow
        )
        for x in WAYS
        if "--json" not in x
    ],
)
@pytest.mark.parametrize("check", [are_there, are_apart])
def test_outputs(check, way):
    check(way)
