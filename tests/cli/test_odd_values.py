"""Every number that an option of a verb may have, as nobody means it: an answer of
numbers, or a refusal in words. Verbs and options are those of the command line."""

import re

import jax  # noqa: F401  (before main(), as in test_cli.py)
import numpy as np
import pytest
from verb_jobs import OTHERS, VERBS, fasta, first_fasta, verb_of, words

from jaxalign import warmup
from jaxalign.cli.main import app, main
from jaxalign.errors import EXIT_CODES

DONE, LEAK = 0, 6
FEW = ("nan", "-1", "9223372036854775808")
MANY = ("inf", "-inf", "1e30", "-0.0", "0", "1e-45", "1e308", "1e400", "0.1", "2.5",
        "1_0", "0x1", "\u0663", "", " 1", "1,2", "100000000")  # fmt: skip
NO_NUMBER = re.compile(r"(?i)(?<![a-z])-?(nan|inf|infinity)(?![a-z])")
EMBEDDINGS = ["--embeddings", "e.npz", "f.npz", "--gap-open", "2", "--gap-extend", "1"]


@pytest.fixture(autouse=True)
def folder(request, tmp_path, monkeypatch):
    """A working directory with files of records, and two of embeddings."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.fa").write_bytes(first_fasta(verb_of(request, "job")))
    (tmp_path / "b.fa").write_bytes(fasta(texts=OTHERS))
    draw = np.random.default_rng(0).normal
    for name, length in (("e.npz", 5), ("f.npz", 4)):
        np.savez(name, a=draw(size=(length, 8)).astype(np.float32))
    # Programs of usual jobs take a minute.
    monkeypatch.setattr(warmup, "usual_jobs", lambda _: [("none", lambda: None)])
    monkeypatch.setattr("jaxalign.selftest.selftest", lambda _, tell: ("a card", True))


def numbers(verb: str) -> list[str]:
    """The options of a verb that are numbers."""
    arguments = app()[verb].assemble_argument_collection()
    return [
        next(name for name in argument.names if name.startswith("--"))
        for argument in arguments
        if re.search(r"\b(int|float)\b", str(argument.hint))
        and argument.field_info.kind.name == "KEYWORD_ONLY"
    ]


def jobs() -> dict[str, list[str]]:
    """A command line of every verb, and the other one of ``align``."""
    usual = {verb: words(verb, ["a.fa", "b.fa"]) for verb in VERBS}
    return usual | {"align --embeddings": ["align", *EMBEDDINGS]}


@pytest.mark.parametrize(
    "values",
    [(), *(pytest.param(x, marks=pytest.mark.slow) for x in (FEW, MANY))],
    ids=["one", "few", "many"],
)
@pytest.mark.parametrize(
    "job",
    [
        pytest.param(x, marks=() if x in ("align", "search") else pytest.mark.slow)
        for x in jobs()
    ],
)
def test_odd_numbers(job, values, capsys):
    """Options have each another one of a few, all of a few, or a quarter of many."""
    line = jobs()[job]
    for k, name in enumerate(numbers(line[0])):
        some = MANY[k % 4 :: 4] if values == MANY else values
        for value in some or [FEW[k % len(FEW)]]:
            given = [*without(line, name), f"{name}={value}"]
            code = main(given)
            out, err = capsys.readouterr()
            assert code in EXIT_CODES and "hint: -v" not in err, (given, err)
            assert code in (DONE, LEAK) or err.strip(), given
            if code == DONE:
                assert not NO_NUMBER.search("\n".join(scores(out))), (given, out)


def scores(out: str) -> list[str]:
    """The lines of an answer, but for bits and E-values, which tables may lack, and
    rows that say why they have no numbers."""
    rows = [line.split("\t") for line in out.splitlines()] or [[]]
    rows = [row for row in rows if "none" not in row]
    lacking = [k for k, name in enumerate(rows[0]) if name in ("bits", "evalue")]
    kept = ([x for k, x in enumerate(row) if k not in lacking] for row in rows)
    return ["\t".join(row) for row in kept]


def without(line: list[str], name: str) -> list[str]:
    """A command line without an option."""
    if name not in line:
        return line
    at = line.index(name)
    return line[:at] + line[at + 2 :]


def test_numbers_are_looked_for():
    """Else none would be tried."""
    counts = {verb: len(numbers(verb)) for verb in VERBS}
    assert counts["align"] >= 5 and counts["soft"] >= 4, counts
